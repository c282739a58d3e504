/* A program that uses OpenCL and knows of no profiler: 2 copies to the device, 10 kernels, 1 copy back.
   cc -o saxpy examples/abi/saxpy.c -lOpenCL */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>

enum { ITEMS = 1 << 12, KERNELS = 10 };
static float x[ITEMS], y[ITEMS];

int main(void) {
    static const char *source =
        "kernel void saxpy(float a, global const float *x, global float *y) {\n"
        "    size_t i = get_global_id(0);\n"
        "    y[i] += a * x[i];\n"
        "}\n";
    const size_t items = ITEMS;
    const float a = 2;
    cl_platform_id platform;
    cl_device_id device;
    if (clGetPlatformIDs(1, &platform, NULL) || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL)) {
        fprintf(stderr, "there is no device of OpenCL\n");
        return 1;
    }
    for (int i = 0; i < ITEMS; i++) x[i] = 1;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
    clBuildProgram(program, 1, &device, NULL, NULL, NULL);
    cl_kernel kernel = clCreateKernel(program, "saxpy", NULL);
    cl_mem on_device[2];
    for (int i = 0; i < 2; i++) {
        on_device[i] = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof x, NULL, NULL);
        clEnqueueWriteBuffer(queue, on_device[i], CL_TRUE, 0, sizeof x, i ? y : x, 0, NULL, NULL);
    }
    clSetKernelArg(kernel, 0, sizeof a, &a);
    clSetKernelArg(kernel, 1, sizeof *on_device, &on_device[0]);
    clSetKernelArg(kernel, 2, sizeof *on_device, &on_device[1]);
    for (int i = 0; i < KERNELS; i++) clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL);
    clEnqueueReadBuffer(queue, on_device[1], CL_TRUE, 0, sizeof y, y, 0, NULL, NULL);
    printf("y[0] = %g\n", y[0]);
    for (int i = 0; i < 2; i++) clReleaseMemObject(on_device[i]);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return y[0] != KERNELS * a;
}
