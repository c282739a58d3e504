/* Ends while a kernel waits for an event that nobody completes; one has run before. Its only clFlush comes between. */
#include "report.h"

static void check(cl_int status, const char *what) {
    if (status == CL_SUCCESS) return;
    fprintf(stderr, "%s: %d\n", what, status);
    exit(99);
}

int main(void) {
    const char *source = "kernel void work(global int *data) { data[0] += 1; }\n";
    cl_int status;
    open_device();
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    check(status, "program");
    check(clBuildProgram(program, 1, &device, NULL, NULL, NULL), "build");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    check(status, "queue");
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &status);
    check(status, "buffer");
    cl_kernel kernel = clCreateKernel(program, "work", &status);
    check(status, "kernel");
    check(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), "argument");
    cl_event never = clCreateUserEvent(context, &status);
    check(status, "user event");
    size_t one = 1;
    check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL), "first");
    check(clFinish(queue), "finish");
    check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 1, &never, NULL), "second");
    check(clFlush(queue), "flush");
    return 0;
}
