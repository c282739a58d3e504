/* Works for as long as it is told to, for a recorder that keeps only what happens last:
 *
 *     flight ROUNDS WORK
 *
 * In each round it runs WORK kernels named `work`, then one named `round_N`, prints the number of the round, and waits for a
 * line of its input: `slow` makes it wait in clFinish for a kernel that takes long, `dump` asks gputrail for what is kept,
 * `late` marks a range of this name, `kill` kills it, and anything else, or the end, goes on. */
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include "report.h"

static void check(cl_int status, const char *what) {
    if (status == CL_SUCCESS) return;
    fprintf(stderr, "%s: %d\n", what, status);
    exit(99);
}

static char source[8192];
static cl_program program;
static cl_command_queue queue;
static cl_mem buffer;

static cl_kernel kernel(const char *name) {
    cl_int status;
    cl_kernel made = clCreateKernel(program, name, &status);
    check(status, name);
    check(clSetKernelArg(made, 0, sizeof buffer, &buffer), "argument");
    return made;
}

static void run(cl_kernel what, size_t items) {
    check(clEnqueueNDRangeKernel(queue, what, 1, NULL, &items, NULL, 0, NULL, NULL), "enqueue");
}

/* A function of gputrail's, which is there when it records. */
static void *of_gputrail(const char *name) {
    void *library = dlopen("libgputrail.so.0", RTLD_NOW | RTLD_NOLOAD), *function = NULL;
    if (library) function = dlsym(library, name);
    if (!function) exit(95);
    return function;
}

int main(int count, char **arguments) {
    char name[32], line[64];
    int rounds = count > 1 ? atoi(arguments[1]) : 1, work = count > 2 ? atoi(arguments[2]) : 1;
    const char *text = source;
    cl_kernel small, slow;
    cl_int status;
    size_t length = 0;
    open_device();
    length += (size_t)sprintf(source + length, "kernel void work(global int *data) { data[get_global_id(0)] += 1; }\n"
        "kernel void slow(global int *data) {\n"
        "    int x = data[0]; for (int i = 0; i < 30000000; i++) x = x * 31 + i; data[get_global_id(0)] = x; }\n");
    for (int round = 1; round <= rounds && round <= 40; round++)
        length += (size_t)sprintf(source + length, "kernel void round_%d(global int *data) { data[0] = %d; }\n", round, round);
    program = clCreateProgramWithSource(context, 1, &text, NULL, &status);
    check(status, "program");
    check(clBuildProgram(program, 1, &device, NULL, NULL, NULL), "build");
    queue = clCreateCommandQueue(context, device, 0, &status);
    check(status, "queue");
    buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &status);
    check(status, "buffer");
    small = kernel("work");
    slow = kernel("slow");
    for (int round = 1; round <= rounds; round++) {
        sprintf(name, "round_%d", round);
        for (int i = 0; i < work; i++) run(small, 1024);
        run(kernel(name), 1);
        check(clFinish(queue), "finish");
        printf("%d\n", round);
        fflush(stdout);
        if (fgets(line, sizeof line, stdin) == NULL) continue;
        if (strncmp(line, "slow", 4) == 0) {
            run(slow, 1);
            check(clFinish(queue), "finish");
        }
        if (strncmp(line, "kill", 4) == 0) raise(SIGKILL);
        if (strncmp(line, "dump", 4) == 0) {
            int (*dump)(void);
            *(void **)&dump = of_gputrail("gputrail_recording_dump");
            if (dump() != 0) return 95;
        }
        if (strncmp(line, "late", 4) == 0) {
            int (*push)(const char *), (*pop)(void);
            *(void **)&push = of_gputrail("gputrail_range_push_name");
            *(void **)&pop = of_gputrail("gputrail_range_pop");
            if (push("late frame") != 0 || pop() != 0) return 94;
        }
    }
    return 0;
}
