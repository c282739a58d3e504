/* Runs the kernel `before` in a started range, which belongs to no thread, `inside` in two ranges of gputrail's API,
 * `elsewhere` meanwhile on a thread without ranges, and `between` in the outer one. */
#include <dlfcn.h>
#include <pthread.h>

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

static void *elsewhere(void *unused) {
    (void)unused;
    run("elsewhere");
    return NULL;
}

int main(void) {
    const char *text = "kernel void before(void) {} kernel void inside(void) {} kernel void between(void) {}\n"
                       "kernel void elsewhere(void) {}\n";
    uint64_t started;
    pthread_t thread;
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
    gputrail_status (*start)(const gputrail_mark_options *, uint64_t *);
    *(void **)&start = library ? dlsym(library, "gputrail_range_start") : NULL;
    if (!push || !push_name || !pop || !start) return 95;
    if (start(&step, &started) != GPUTRAIL_OK) return 94;
    run("before");
    if (push_name("epoch") != GPUTRAIL_OK || push(&step) != GPUTRAIL_OK) return 94;
    run("inside");
    if (pthread_create(&thread, NULL, elsewhere, NULL) || pthread_join(thread, NULL)) return 93;
    if (pop() != GPUTRAIL_OK) return 94;
    run("between");
    return pop() == GPUTRAIL_OK ? 0 : 94;
}
