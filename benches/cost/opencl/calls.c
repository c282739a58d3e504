/* Cheap calls and enqueues, timed batch by batch; the medians are printed as
 *     ARGUMENT_NS ENQUEUE_NS PEAK_KIB
 * (one clSetKernelArg, one clEnqueueNDRangeKernel, the most memory that the process had).
 *
 * usage: calls BATCHES
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ARGUMENTS = 1000, ENQUEUES = 100 };

static void check(cl_int status, const char *what)
{
    if (status != CL_SUCCESS) {
        fprintf(stderr, "calls: %s: %d\n", what, (int)status);
        exit(1);
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int ascending(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return values[count / 2];
}

static long peak_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %ld", &kib) == 1)
            break;
    if (status)
        fclose(status);
    return kib;
}

/* Measures from `depth` functions further down, for recordings with call stacks. */
__attribute__((noinline)) static void measure(int depth, cl_command_queue queue, cl_kernel kernel, cl_mem memory, int batches)
{
    if (depth > 0) {
        measure(depth - 1, queue, kernel, memory, batches);
        __asm__ volatile("" ::: "memory");
        return;
    }
    size_t one = 1;
    double *arguments = calloc((size_t)batches, sizeof *arguments);
    double *enqueues = calloc((size_t)batches, sizeof *enqueues);
    for (int batch = 0; batch < batches; batch++) {
        double start = now();
        for (int n = 0; n < ARGUMENTS; n++)
            check(clSetKernelArg(kernel, 0, sizeof memory, &memory), "clSetKernelArg");
        double between = now();
        for (int n = 0; n < ENQUEUES; n++)
            check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL), "clEnqueueNDRangeKernel");
        enqueues[batch] = (now() - between) / ENQUEUES;
        arguments[batch] = (between - start) / ARGUMENTS;
        check(clFinish(queue), "clFinish");
    }
    printf("%.2f %.2f %ld\n", median(arguments, batches), median(enqueues, batches), peak_kib());
}

int main(int count, char **words)
{
    int batches = count > 1 ? atoi(words[1]) : 0;
    if (batches < 1) {
        fprintf(stderr, "usage: calls BATCHES\n");
        return 2;
    }
    const char *source = "kernel void nothing(global int *out) { out[0] = 1; }";
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
    cl_kernel kernel = clCreateKernel(program, "nothing", &status);
    check(status, "clCreateKernel");
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, &status);
    check(status, "clCreateBuffer");

    measure(20, queue, kernel, memory, batches);

    clReleaseMemObject(memory);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return 0;
}
