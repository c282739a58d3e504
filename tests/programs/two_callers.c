/* Calls on two threads: one runs kernels for ever, the other asks for the name of the device for ever. A tool ends it. */
#include <pthread.h>

#include "report.h"

static void *ask(void *unused) {
    char name[200];
    (void)unused;
    for (;;) clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL);
    return NULL;
}

int main(void) {
    const char *source = "kernel void work(global int *data) { data[0] += 1; }\n";
    cl_int status;
    pthread_t thread;
    size_t one = 1;
    open_device();
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    if (clBuildProgram(program, 1, &device, NULL, NULL, NULL) != CL_SUCCESS) return 99;
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &status);
    cl_kernel kernel = clCreateKernel(program, "work", &status);
    if (clSetKernelArg(kernel, 0, sizeof buffer, &buffer) != CL_SUCCESS) return 99;
    pthread_create(&thread, NULL, ask, NULL);
    for (;;) {
        status = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL);
        if (status != CL_SUCCESS || clFinish(queue) != CL_SUCCESS) return 99;
    }
}
