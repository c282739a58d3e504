/* OpenCL, CUDA and NVTX in one process: two rounds of a range of NVTX around a kernel of each. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int status, const char *what) {
    if (status) exit((printf("%s: %d\n", what, status), 1));
}

typedef int (*launch_function)(const char *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                               uintptr_t, void **, void **);

int main(void) {
    static const char *source = "kernel void add(global uint *data) { data[get_global_id(0)] += 1; }";
    static unsigned data[256];
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!cuda) return puts(dlerror()), 1;
    check(((int (*)(unsigned))dlsym(cuda, "cuInit"))(0), "cuInit");
    launch_function launch = (launch_function)dlsym(cuda, "cuLaunchKernel");

    cl_int status;
    cl_platform_id platform;
    cl_device_id device;
    check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    check(status, "clCreateContext");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    check(status, "clCreateCommandQueue");
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    check(status, "clCreateProgramWithSource");
    check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
    cl_kernel kernel = clCreateKernel(program, "add", &status);
    check(status, "clCreateKernel");
    cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof data, data, &status);
    check(status, "clCreateBuffer");
    check(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), "clSetKernelArg");

    for (int round = 0; round < 2; round++) {
        size_t size = 256;
        nvtxRangePushA("round");
        check(launch("saxpy", 4, 1, 1, 128, 1, 1, 0, 0, NULL, NULL), "cuLaunchKernel");
        check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL), "clEnqueueNDRangeKernel");
        check(clFinish(queue), "clFinish");
        nvtxRangePop();
    }
    check(((int (*)(uintptr_t))dlsym(cuda, "cuStreamSynchronize"))(0), "cuStreamSynchronize");
    puts("done");
    return 0;
}
