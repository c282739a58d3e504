/* Counts what kernels do by GPUPerfAPI: two samples in each of four sessions, written to a CSV file. The program of the
 * "GPUPerfAPI User Guide" (chapters 3 and 7) with OpenCL in the place of drawing.
 *
 *   cc -std=c99 -Wall -Wextra -Iinclude -o gpuperfapi gpuperfapi.c -ldl -lOpenCL
 *   ./gpuperfapi results.csv
 *
 * `include` is tools/abi/gpuperfapi/include. libGPUPerfAPICL.so is opened by name, so LD_LIBRARY_PATH has its folder.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include "GPUPerfAPI.h"
#include "GPUPerfAPIFunctionTypes.h"
#include <CL/cl.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The functions that are used: an instance of each one's type. */
#define FUNCTIONS(one)                                                                                                \
    one(RegisterLoggingCallback) one(Initialize) one(Destroy) one(OpenContext) one(CloseContext)                       \
    one(EnableAllCounters) one(GetPassCount) one(BeginSession) one(EndSession) one(BeginPass) one(EndPass)             \
    one(BeginSample) one(EndSample) one(IsSessionReady) one(GetEnabledCount) one(GetEnabledIndex)                      \
    one(GetCounterName) one(GetCounterDataType) one(GetSampleCount) one(GetSampleUInt64) one(GetSampleFloat64)         \
    one(GetStatusAsStr)
#define INSTANCE(name) static GPA_##name##PtrType name;
FUNCTIONS(INSTANCE)

static void load(void) {
    void *library = dlopen("libGPUPerfAPICL.so", RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
#define FIND(name) *(void **)&name = dlsym(library, "GPA_" #name);
    FUNCTIONS(FIND)
}

static void succeed(const char *what, GPA_Status status) {
    if (status == GPA_STATUS_OK) return;
    fprintf(stderr, "%s: %s\n", what, GetStatusAsStr(status));
    exit(1);
}
#define SUCCEED(call) succeed(#call, call)

static void message(GPA_Logging_Type type, const char *text) {
    fprintf(stderr, "%s: %s\n", type == GPA_LOGGING_ERROR ? "error" : "message", text);
}

static void write_session(gpa_uint32 session, const char *name) {
    static bool has_headings = false;
    gpa_uint32 counters, samples, sample, number, index;
    FILE *file = fopen(name, has_headings ? "a" : "w");
    if (file == NULL) {
        perror(name);
        exit(1);
    }
    SUCCEED(GetEnabledCount(&counters));
    if (!has_headings) {
        fprintf(file, "Identifier, ");
        for (number = 0; number < counters; number++) {
            const char *counter;
            SUCCEED(GetEnabledIndex(number, &index));
            SUCCEED(GetCounterName(index, &counter));
            fprintf(file, "%s, ", counter);
        }
        fprintf(file, "\n");
        has_headings = true;
    }
    SUCCEED(GetSampleCount(session, &samples));
    for (sample = 0; sample < samples; sample++) {
        fprintf(file, "session: %u; sample: %u, ", session, sample);
        for (number = 0; number < counters; number++) {
            GPA_Type type;
            gpa_uint64 whole;
            gpa_float64 real;
            SUCCEED(GetEnabledIndex(number, &index));
            SUCCEED(GetCounterDataType(index, &type));
            /* A counter that the machine cannot count has no value. */
            if (type == GPA_TYPE_UINT64 && GetSampleUInt64(session, sample, index, &whole) == GPA_STATUS_OK)
                fprintf(file, "%" PRIu64 ",", whole);
            else if (type == GPA_TYPE_FLOAT64 && GetSampleFloat64(session, sample, index, &real) == GPA_STATUS_OK)
                fprintf(file, "%f,", real);
            else
                fprintf(file, ",");
        }
        fprintf(file, "\n");
    }
    fclose(file);
}

static const char *source = "kernel void triple(global float *data) { data[get_global_id(0)] *= 3.0f; }\n";

int main(int count, char **arguments) {
    const char *results = count > 1 ? arguments[1] : "results.csv";
    size_t items = 1 << 16;
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel;
    cl_mem data;
    gpa_uint32 waiting = 1, frame;

    /* Startup: before the first call of OpenCL. */
    load();
    SUCCEED(RegisterLoggingCallback(GPA_LOGGING_ERROR_AND_MESSAGE, message));
    SUCCEED(Initialize());
    if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS) {
        fprintf(stderr, "no OpenCL device\n");
        return 1;
    }
    context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    queue = clCreateCommandQueue(context, device, 0, NULL);
    program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
    clBuildProgram(program, 1, &device, NULL, NULL, NULL);
    kernel = clCreateKernel(program, "triple", NULL);
    data = clCreateBuffer(context, CL_MEM_READ_WRITE, items * sizeof(float), NULL, NULL);
    clSetKernelArg(kernel, 0, sizeof data, &data);
    SUCCEED(OpenContext(queue));
    SUCCEED(EnableAllCounters());

    for (frame = 0; frame < 4; frame++) {
        gpa_uint32 session, passes, pass;
        bool ready = false;
        SUCCEED(BeginSession(&session));
        SUCCEED(GetPassCount(&passes));
        for (pass = 0; pass < passes; pass++) {
            SUCCEED(BeginPass());
            SUCCEED(BeginSample(0));
            clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL);
            SUCCEED(EndSample());
            SUCCEED(BeginSample(1));
            clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL);
            clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL);
            SUCCEED(EndSample());
            SUCCEED(EndPass());
        }
        SUCCEED(EndSession());
        clFinish(queue);
        SUCCEED(IsSessionReady(&ready, waiting));
        if (ready) write_session(waiting++, results);
    }
    printf("%u sessions\n", waiting - 1);

    /* On exit. */
    SUCCEED(CloseContext());
    clReleaseMemObject(data);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    SUCCEED(Destroy());
    return 0;
}
