/* Kernels of OpenCL, for a program in Python: `open_device` once, then as many launches of kernel 0 ("add") or 1 ("mul") as are asked for,
   and `finish`. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

enum { ITEMS = 1024 };

static cl_command_queue queue;
static cl_kernel kernels[2];

static void check(cl_int status) {
    if (status == CL_SUCCESS) return;
    fprintf(stderr, "OpenCL: %d\n", (int)status);
    exit(1);
}

void open_device(void) {
    const char *source = "kernel void add(global float *a, global float *b) { a[get_global_id(0)] += b[get_global_id(0)]; }"
                         "kernel void mul(global float *a, float b) { a[get_global_id(0)] *= b; }";
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_program program;
    cl_mem buffers[2];
    float factor = 2;
    check(clGetPlatformIDs(1, &platform, NULL));
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    queue = clCreateCommandQueue(context, device, 0, NULL);
    program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
    check(clBuildProgram(program, 1, &device, "", NULL, NULL));
    kernels[0] = clCreateKernel(program, "add", NULL);
    kernels[1] = clCreateKernel(program, "mul", NULL);
    buffers[0] = clCreateBuffer(context, CL_MEM_READ_WRITE, ITEMS * sizeof(float), NULL, NULL);
    buffers[1] = clCreateBuffer(context, CL_MEM_READ_WRITE, ITEMS * sizeof(float), NULL, NULL);
    check(clSetKernelArg(kernels[0], 0, sizeof(cl_mem), &buffers[0]));
    check(clSetKernelArg(kernels[0], 1, sizeof(cl_mem), &buffers[1]));
    check(clSetKernelArg(kernels[1], 0, sizeof(cl_mem), &buffers[0]));
    check(clSetKernelArg(kernels[1], 1, sizeof factor, &factor));
}

void launch(int kernel, int count) {
    size_t items = ITEMS, group = 64;
    while (count-- > 0) check(clEnqueueNDRangeKernel(queue, kernels[kernel], 1, NULL, &items, &group, 0, NULL, NULL));
}

void finish(void) { check(clFinish(queue)); }
