/* Runs the kernel `before` outside of ranges, `inside` in two ranges of gputrail's API, and `between` in the outer one. */
#include <dlfcn.h>

#include "gputrail.h"
#include "report.h"

static cl_command_queue queue;
static cl_program program;

static void check(cl_int status, const char *what) {
    if (status == CL_SUCCESS) return;
    fprintf(stderr, "%s: %d\n", what, status);
    exit(99);
}

static void run(const char *name) {
    cl_int status;
    size_t items = 1;
    cl_kernel kernel = clCreateKernel(program, name, &status);
    check(status, name);
    check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL), "enqueue");
    check(clFinish(queue), "finish");
}

int main(void) {
    const char *text = "kernel void before(void) {} kernel void inside(void) {} kernel void between(void) {}\n";
    gputrail_mark_options step = {.size = sizeof step, .name = "step", .domain = "training"};
    cl_int status;
    open_device();
    program = clCreateProgramWithSource(context, 1, &text, NULL, &status);
    check(status, "program");
    check(clBuildProgram(program, 1, &device, NULL, NULL, NULL), "build");
    queue = clCreateCommandQueue(context, device, 0, &status);
    check(status, "queue");
    void *library = dlopen("libgputrail.so.0", RTLD_NOW | RTLD_NOLOAD);
    gputrail_status (*push)(const gputrail_mark_options *), (*push_name)(const char *), (*pop)(void);
    *(void **)&push = library ? dlsym(library, "gputrail_range_push") : NULL;
    *(void **)&push_name = library ? dlsym(library, "gputrail_range_push_name") : NULL;
    *(void **)&pop = library ? dlsym(library, "gputrail_range_pop") : NULL;
    if (!push || !push_name || !pop) return 95;
    run("before");
    if (push_name("epoch") != GPUTRAIL_OK || push(&step) != GPUTRAIL_OK) return 94;
    run("inside");
    if (pop() != GPUTRAIL_OK) return 94;
    run("between");
    return pop() == GPUTRAIL_OK ? 0 : 94;
}
