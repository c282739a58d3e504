// A kernel that spends its time in one loop, which stands on one line, and what the program is told of its build.
// hot_loop [OPTIONS [LAUNCHES [DIRECTIVE [time]]]]: the source begins with the directive; prints the build options, the kernel's result, how many files the program has open, and with `time` the processor time that its thread took for the kernels, ns.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ITEMS 256

static const char *const SOURCE[] = {
    "float last(float x) {\n"
    "    return x * 0.5f + 1.0f;\n"
    "}\n",
    "kernel void hot(global float *out, int rounds) {\n"
    "    int i = get_global_id(0);\n"
    "    float x = i;\n"
    "    for (int j = 0; j < rounds; j++) { x = x * 0.999f + 0.5f; } // line 7: the hot loop\n"
    "    out[i] = last(x);\n"
    "}\n",
};

static void check(cl_int status, const char *what) {
    if (status != CL_SUCCESS) {
        fprintf(stderr, "%s: %d\n", what, status);
        exit(1);
    }
}

static long long processor_time(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int open_files(void) {
    int count = 0;
    DIR *files = opendir("/proc/self/fd");
    while (readdir(files))
        count++;
    closedir(files);
    return count;
}

int main(int argc, char **argv) {
    const char *options = argc > 1 ? argv[1] : NULL;
    int launches = argc > 2 ? atoi(argv[2]) : 20;
    cl_platform_id platform;
    cl_device_id device;
    check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    cl_int status;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    check(status, "clCreateContext");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    check(status, "clCreateCommandQueue");
    const char *source[] = {argc > 3 ? argv[3] : "", SOURCE[0], SOURCE[1]};
    cl_program program = clCreateProgramWithSource(context, 3, source, NULL, &status);
    check(status, "clCreateProgramWithSource");
    check(clBuildProgram(program, 1, &device, options, NULL, NULL), "clBuildProgram");
    size_t size;
    check(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_OPTIONS, 0, NULL, &size), "clGetProgramBuildInfo");
    char *told = calloc(size + 1, 1);
    check(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_OPTIONS, size, told, &size), "clGetProgramBuildInfo");
    printf("options '%s', %zu bytes\n", told, size);
    if (size > 1)
        printf("too small: %d\n",
               clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_OPTIONS, size - 1, told, NULL));

    cl_kernel kernel = clCreateKernel(program, "hot", &status);
    check(status, "clCreateKernel");
    cl_mem out = clCreateBuffer(context, CL_MEM_WRITE_ONLY, ITEMS * sizeof(float), NULL, &status);
    check(status, "clCreateBuffer");
    int rounds = 20000;
    check(clSetKernelArg(kernel, 0, sizeof out, &out), "clSetKernelArg");
    check(clSetKernelArg(kernel, 1, sizeof rounds, &rounds), "clSetKernelArg");
    size_t items = ITEMS;
    long long before = processor_time();
    for (int i = 0; i < launches; i++)
        check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL), "clEnqueueNDRangeKernel");
    float result[ITEMS];
    check(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, sizeof result, result, 0, NULL, NULL), "clEnqueueReadBuffer");
    long long took = processor_time() - before;
    printf("result %.3f\n", result[ITEMS - 1]);
    printf("files %d\n", open_files());
    if (argc > 4)
        printf("time %lld\n", took);
    clReleaseMemObject(out);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return 0;
}
