/* Does what an HSA runtime does with the library in HSA_TOOLS_LIB, and then uses OpenCL. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef bool (*on_load)(void *table, uint64_t runtime_version, uint64_t failed_tool_count, const char *const *failed_tool_names);
typedef void (*on_unload)(void);

static cl_context context;

static void use_opencl(void) {
    static const char *source = "kernel void work(global float *data) { data[get_global_id(0)] *= 3.0f; }\n";
    const size_t items = 256;
    cl_platform_id platform;
    cl_device_id device;
    clGetPlatformIDs(1, &platform, NULL);
    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
    clBuildProgram(program, 1, &device, NULL, NULL, NULL);
    cl_kernel kernel = clCreateKernel(program, "work", NULL);
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, items * sizeof(float), NULL, NULL);
    clSetKernelArg(kernel, 0, sizeof memory, &memory);
    for (int n = 0; n < 3; n++) clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL);
    clFinish(queue);
}

int main(int count, char **arguments) {
    (void)arguments;
    if (count > 1) use_opencl();
    void *library = dlopen(getenv("HSA_TOOLS_LIB"), RTLD_NOW);
    if (!library) return printf("%s\n", dlerror()), 1;
    const uint32_t *priority = (const uint32_t *)dlsym(library, "HSA_AMD_TOOL_PRIORITY");
    const on_load load = (on_load)dlsym(library, "OnLoad");
    const on_unload unload = (on_unload)dlsym(library, "OnUnload");
    printf("priority %u, loaded %d\n", *priority, load(NULL, 1, 0, NULL));
    fflush(stdout);
    if (count == 1) use_opencl();
    unload();
    unload();
    return 0;
}
