/* Hangs, as its argument says, after one kernel named `done` that has run:
 *
 *     hangs user-event | kernel
 *
 * With `user-event`, kernels named `stuck` and `behind` wait for a user event that nobody ever completes, and clFinish waits
 * for them; another thread waits in clWaitForEvents. With `kernel`, a kernel named `spins` never ends, and clFinish waits for
 * it. The kernels' arguments are set before. It prints a line before it hangs. */
#include <pthread.h>

#include "report.h"

static cl_event never;

static void check(cl_int status, const char *what) {
    if (status == CL_SUCCESS) return;
    fprintf(stderr, "%s: %d\n", what, status);
    exit(99);
}

static void *wait_for_it(void *unused) {
    (void)unused;
    clWaitForEvents(1, &never);
    return NULL;
}

int main(int count, char **arguments) {
    if (count < 2) return 98;
    const char *source = "kernel void done(global volatile int *data) { data[0] = 0; }\n"
                         "kernel void stuck(global volatile int *data) { data[0] = 0; }\n"
                         "kernel void behind(global volatile int *data) { data[0] = 0; }\n"
                         "kernel void spins(global volatile int *data) { while (data[0] == 0) ; }\n";
    cl_int status;
    open_device();
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    check(status, "program");
    check(clBuildProgram(program, 1, &device, NULL, NULL, NULL), "build");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    check(status, "queue");
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &status);
    check(status, "buffer");
    const char *names[] = {"done", "stuck", "behind", "spins"};
    cl_kernel kernels[LENGTH(names)];
    for (size_t i = 0; i < LENGTH(names); i++) {
        kernels[i] = clCreateKernel(program, names[i], &status);
        check(status, names[i]);
        check(clSetKernelArg(kernels[i], 0, sizeof buffer, &buffer), "argument");
    }
    size_t one = 1;
    check(clEnqueueNDRangeKernel(queue, kernels[0], 1, NULL, &one, NULL, 0, NULL, NULL), "done");
    check(clFinish(queue), "finish");
    if (strcmp(arguments[1], "user-event") == 0) {
        pthread_t waiter;
        never = clCreateUserEvent(context, &status);
        check(status, "user event");
        pthread_create(&waiter, NULL, wait_for_it, NULL);
        check(clEnqueueNDRangeKernel(queue, kernels[1], 1, NULL, &one, NULL, 1, &never, NULL), "stuck");
        check(clEnqueueNDRangeKernel(queue, kernels[2], 1, NULL, &one, NULL, 0, NULL, NULL), "behind");
    } else {
        check(clEnqueueNDRangeKernel(queue, kernels[3], 1, NULL, &one, NULL, 0, NULL, NULL), "spins");
    }
    puts("hangs");
    fflush(stdout);
    check(clFinish(queue), "the last finish");
    return 0;
}
