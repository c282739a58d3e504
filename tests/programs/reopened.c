/* Opens the OpenCL loader, leaves work behind that still runs, and closes the loader, several times:
 *
 *     reopened LIBRARY TIMES [leave]
 *
 * With `leave` it ends while the last work runs.
 * What was at the loader's addresses is made inaccessible in between. The program prints the sum of what its kernels computed,
 * and how often the loader was gone after it was closed. */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define FUNCTION(name) name##_t name = (name##_t)(size_t)dlsym(loader, #name)
typedef cl_int (*clGetPlatformIDs_t)(cl_uint, cl_platform_id *, cl_uint *);
typedef cl_int (*clGetDeviceIDs_t)(cl_platform_id, cl_device_type, cl_uint, cl_device_id *, cl_uint *);
typedef cl_context (*clCreateContext_t)(const cl_context_properties *, cl_uint, const cl_device_id *, void *, void *, cl_int *);
typedef cl_command_queue (*clCreateCommandQueue_t)(cl_context, cl_device_id, cl_command_queue_properties, cl_int *);
typedef cl_program (*clCreateProgramWithSource_t)(cl_context, cl_uint, const char **, const size_t *, cl_int *);
typedef cl_int (*clBuildProgram_t)(cl_program, cl_uint, const cl_device_id *, const char *, void *, void *);
typedef cl_kernel (*clCreateKernel_t)(cl_program, const char *, cl_int *);
typedef cl_mem (*clCreateBuffer_t)(cl_context, cl_mem_flags, size_t, void *, cl_int *);
typedef cl_int (*clSetKernelArg_t)(cl_kernel, cl_uint, size_t, const void *);
typedef cl_int (*clEnqueueNDRangeKernel_t)(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *,
                                           cl_uint, const cl_event *, cl_event *);
typedef cl_int (*clFlush_t)(cl_command_queue);

static const char *source = "kernel void work(global volatile int *out, int times) {\n"
                            "    for (int i = 0; i < times; i++) out[0] = i;\n"
                            "    out[1] += 1;\n"
                            "}\n";
static int results[16][2];

static void need(int holds, const char *what) {
    if (holds) return;
    printf("%s failed\n", what);
    exit(1);
}

static void work(void *loader, int *result) {
    FUNCTION(clGetPlatformIDs);
    FUNCTION(clGetDeviceIDs);
    FUNCTION(clCreateContext);
    FUNCTION(clCreateCommandQueue);
    FUNCTION(clCreateProgramWithSource);
    FUNCTION(clBuildProgram);
    FUNCTION(clCreateKernel);
    FUNCTION(clCreateBuffer);
    FUNCTION(clSetKernelArg);
    FUNCTION(clEnqueueNDRangeKernel);
    FUNCTION(clFlush);
    cl_platform_id platform;
    cl_device_id device;
    size_t size = 1;
    cl_int times = 100000000, error;
    need(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS, "clGetPlatformIDs");
    need(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS, "clGetDeviceIDs");
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
    need(clBuildProgram(program, 1, &device, "", NULL, NULL) == CL_SUCCESS, "clBuildProgram");
    cl_kernel kernel = clCreateKernel(program, "work", &error);
    cl_mem out = clCreateBuffer(context, CL_MEM_USE_HOST_PTR, sizeof results[0], result, &error);
    clSetKernelArg(kernel, 0, sizeof out, &out);
    clSetKernelArg(kernel, 1, sizeof times, &times);
    error = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, &size, 0, NULL, NULL);
    need(error == CL_SUCCESS, "clEnqueueNDRangeKernel");
    need(clFlush(queue) == CL_SUCCESS, "clFlush");
}

int main(int count, char **arguments) {
    int times = count > 2 ? atoi(arguments[2]) : 0, gone = 0, sum = 0;
    for (int i = 0; i < times && i < 16; i++) {
        void *loader = dlopen(arguments[1], RTLD_NOW);
        need(loader != NULL, "dlopen");
        Dl_info info;
        need(dladdr(dlsym(loader, "clFlush"), &info) != 0, "dladdr");
        work(loader, results[i]);
        if (count > 3 && i + 1 == times) break;
        dlclose(loader);
        loader = dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD);
        if (loader) {
            dlclose(loader);
        } else {
            gone++;
            mmap(info.dli_fbase, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        }
    }
    if (count > 3) return 0;
    for (int i = 0; i < times && i < 16; i++) {
        while (*(volatile int *)&results[i][1] == 0) usleep(1000);
        sum += results[i][1];
    }
    sleep(1);
    printf("sum %d, gone %d\n", sum, gone);
    return 0;
}
