/* Shared by programs that are tools of rocprofiler-sdk: checks of its statuses, its agents, and a kernel of OpenCL. */
#ifndef ROCPROFILER_SDK_CHECKS_H
#define ROCPROFILER_SDK_CHECKS_H
#define CL_TARGET_OPENCL_VERSION 120
#include "../checks.h"
#include <CL/cl.h>
#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline void expect(const char *what, int line, rocprofiler_status_t got, rocprofiler_status_t wanted) {
    if (got == wanted) return;
    printf("line %d: %s: %s, expected %s\n", line, what, rocprofiler_get_status_name(got), rocprofiler_get_status_name(wanted));
    failures++;
}
#define EXPECT(call, wanted) expect(#call, __LINE__, call, ROCPROFILER_STATUS_##wanted)

static inline int count(const int *counter) { return __atomic_load_n(counter, __ATOMIC_SEQ_CST); }
static inline void add(int *counter) { __atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST); }

/* Waits until so many have come: the end of work may be told on another thread, after the program knows of it. */
static inline void await(const char *what, int line, const int *counter, int wanted) {
    int waited;
    for (waited = 0; waited < 10000 && count(counter) < wanted; waited++) usleep(1000);
    if (count(counter) == wanted) return;
    printf("line %d: %s: %d, expected %d\n", line, what, count(counter), wanted);
    failures++;
}
#define AWAIT(counter, wanted) await(#counter, __LINE__, &counter, wanted)

static inline rocprofiler_thread_id_t this_thread(void) { return (rocprofiler_thread_id_t)syscall(SYS_gettid); }

/* Ids of nothing. */
static const rocprofiler_context_id_t no_context = {1};
static const rocprofiler_buffer_id_t no_buffer = {1};
static const rocprofiler_agent_id_t no_agent = {1};

/* The host, and the first device. */
static rocprofiler_agent_id_t host, device_agent;

static inline rocprofiler_status_t see_agents(rocprofiler_agent_version_t version, const void **agents, size_t number, void *data) {
    size_t place;
    (void)version, (void)data;
    for (place = 0; place < number; place++) {
        const rocprofiler_agent_v0_t *agent = (const rocprofiler_agent_v0_t *)agents[place];
        if (agent->type == ROCPROFILER_AGENT_TYPE_CPU) host = agent->id;
        else if (device_agent.handle == 0) device_agent = agent->id;
    }
    return ROCPROFILER_STATUS_SUCCESS;
}

static inline void find_agents(void) {
    EXPECT(rocprofiler_query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0, see_agents, sizeof(rocprofiler_agent_v0_t), NULL),
        SUCCESS);
    CHECK(host.handle != 0 && device_agent.handle != 0);
}

/* A kernel of a device, which computes in each of its work-items for so many rounds. */

enum { ITEMS = 256 };

static cl_context in;
static cl_command_queue queue;
static cl_kernel kernel;
static cl_mem memory;

static inline void set_up(int rounds) {
    static const char *source = "kernel void hot(global float *out, int rounds) {\n"
                                "    float x = get_global_id(0);\n"
                                "    for (int j = 0; j < rounds; j++) { x = x * 0.999f + 0.5f; }\n"
                                "    out[get_global_id(0)] = x;\n"
                                "}\n";
    cl_platform_id platform;
    cl_device_id device;
    cl_program program;
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    in = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    queue = clCreateCommandQueue(in, device, 0, NULL);
    program = clCreateProgramWithSource(in, 1, &source, NULL, NULL);
    CHECK(clBuildProgram(program, 1, &device, NULL, NULL, NULL) == CL_SUCCESS);
    kernel = clCreateKernel(program, "hot", NULL);
    clReleaseProgram(program);
    memory = clCreateBuffer(in, CL_MEM_READ_WRITE, ITEMS * sizeof(float), NULL, NULL);
    clSetKernelArg(kernel, 0, sizeof memory, &memory);
    clSetKernelArg(kernel, 1, sizeof rounds, &rounds);
}

static inline void launch(int times) {
    const size_t items = ITEMS, group = 16;
    while (times--) CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &group, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clFinish(queue) == CL_SUCCESS);
}

static inline void tear_down(void) {
    clReleaseMemObject(memory);
    clReleaseKernel(kernel);
    clReleaseCommandQueue(queue);
    clReleaseContext(in);
}
#endif
