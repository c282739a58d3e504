/* What the test programs of ROCProfiler v1 share, in both forms of the API: checks, and a device of OpenCL with a kernel. */
#ifndef ROCPROFILER_CHECKS_H
#define ROCPROFILER_CHECKS_H
#define CL_TARGET_OPENCL_VERSION 120
#include "../checks.h"
#include "gputrail.h"
#include "rocprofiler.h"
#include <CL/cl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static inline const char *last_error(void) {
#ifdef ROCPROFILER_PUBLISHED
    const char *text = NULL;
    CHECK(rocprofiler_error_string(&text) == HSA_STATUS_SUCCESS && text != NULL);
    return text ? text : "";
#else
    return rocprofiler_error_string();
#endif
}

static inline void expect(const char *what, hsa_status_t got, hsa_status_t wanted) {
    if (got != wanted) {
        printf("%s: %#x (%s), expected %#x\n", what, (unsigned)got, last_error(), (unsigned)wanted);
        failures++;
    } else if (wanted >= HSA_STATUS_ERROR && strstr(last_error(), "rocprofiler_") != last_error()) {
        printf("%s: the error is told as %s\n", what, last_error());
        failures++;
    }
}
#define EXPECT(call, wanted) expect(#call, call, HSA_STATUS_##wanted)

#define SIZE(type, size) CHECK(sizeof(type) == size)
#define AT(type, field, place) CHECK(offsetof(type, field) == place)

/* The layouts that both forms have. The numbers are those of ROCm's header 8.0 on x86-64. */
static inline void layouts_of_both(void) {
    SIZE(hsa_agent_t, 8);
    SIZE(hsa_queue_t, 40);
    AT(hsa_queue_t, base_address, 8);
    AT(hsa_queue_t, doorbell_signal, 16);
    AT(hsa_queue_t, size, 24);
    AT(hsa_queue_t, id, 32);
    SIZE(hsa_kernel_dispatch_packet_t, 64);
    AT(hsa_kernel_dispatch_packet_t, workgroup_size_x, 4);
    AT(hsa_kernel_dispatch_packet_t, grid_size_x, 12);
    AT(hsa_kernel_dispatch_packet_t, private_segment_size, 24);
    AT(hsa_kernel_dispatch_packet_t, kernel_object, 32);
    AT(hsa_kernel_dispatch_packet_t, kernarg_address, 40);
    AT(hsa_kernel_dispatch_packet_t, completion_signal, 56);
    SIZE(rocprofiler_settings_t, 56);
    AT(rocprofiler_settings_t, timeout, 24);
    AT(rocprofiler_settings_t, timestamp_on, 32);
    SIZE(rocprofiler_info_data_t, 56);
    AT(rocprofiler_info_data_t, agent_index, 0);
    AT(rocprofiler_info_data_t, kind, 4);
    AT(rocprofiler_info_data_t, metric.name, 8);
    AT(rocprofiler_info_data_t, metric.instances, 16);
    AT(rocprofiler_info_data_t, metric.expr, 24);
    AT(rocprofiler_info_data_t, metric.description, 32);
    AT(rocprofiler_info_data_t, metric.block_name, 40);
    AT(rocprofiler_info_data_t, metric.block_counters, 48);
    AT(rocprofiler_info_data_t, trace.name, 8);
    AT(rocprofiler_info_data_t, trace.description, 16);
    AT(rocprofiler_info_data_t, trace.parameter_count, 24);
    SIZE(rocprofiler_data_t, 32);
    AT(rocprofiler_data_t, result_int64, 8);
    AT(rocprofiler_data_t, result_bytes.ptr, 8);
    AT(rocprofiler_data_t, result_bytes.size, 16);
    SIZE(rocprofiler_feature_t, 72);
    AT(rocprofiler_feature_t, name, 8);
    AT(rocprofiler_feature_t, parameters, 24);
    AT(rocprofiler_feature_t, parameter_count, 32);
    AT(rocprofiler_feature_t, data, 40);
    SIZE(rocprofiler_group_t, 32);
    AT(rocprofiler_group_t, features, 8);
    AT(rocprofiler_group_t, feature_count, 16);
    AT(rocprofiler_group_t, context, 24);
    SIZE(rocprofiler_properties_t, 32);
    SIZE(rocprofiler_dispatch_record_t, 32);
    SIZE(rocprofiler_callback_data_t, 96);
    AT(rocprofiler_callback_data_t, agent_index, 8);
    AT(rocprofiler_callback_data_t, queue, 16);
    AT(rocprofiler_callback_data_t, queue_index, 24);
    AT(rocprofiler_callback_data_t, packet, 48);
    AT(rocprofiler_callback_data_t, kernel_name, 56);
    AT(rocprofiler_callback_data_t, record, 88);
    SIZE(rocprofiler_pool_entry_t, 16);
    SIZE(rocprofiler_pool_properties_t, 24);
    AT(rocprofiler_pool_properties_t, handler, 8);
    AT(rocprofiler_pool_properties_t, handler_arg, 16);
}

enum { ITEMS = 256 };
static cl_context in;
static cl_command_queue queue;
static cl_kernel kernel;
static cl_mem memory;
static hsa_agent_t agent;

static inline cl_command_queue new_queue(void) {
    return clCreateCommandQueue(in, (cl_device_id)(size_t)agent.handle, 0, NULL);
}

static inline rocprofiler_feature_t feature(const char *name) {
    /* In the order of the document's fields. */
    const rocprofiler_feature_t made = {{ROCPROFILER_FEATURE_KIND_METRIC}, {name}, NULL, 0, {ROCPROFILER_DATA_KIND_UNINIT, {0}}};
    return made;
}

/* A pool of a device that the program has made no context of. */
static inline void pool_before_a_context(void) {
    rocprofiler_feature_t counted = feature("TASK_CLOCK");
    rocprofiler_pool_properties_t properties;
    rocprofiler_pool_entry_t entry;
    rocprofiler_pool_t *early = NULL;
    memset(&properties, 0, sizeof properties);
    properties.num_entries = 2;
    EXPECT(rocprofiler_pool_open(agent, &counted, 1, &early, 0, &properties), SUCCESS);
    EXPECT(rocprofiler_pool_fetch(early, &entry), SUCCESS);
    EXPECT(rocprofiler_pool_release(&entry), SUCCESS);
    EXPECT(rocprofiler_pool_close(early), SUCCESS);
}

static inline void set_up(void) {
    static const char *source = "kernel void triple(global float *data) { data[get_global_id(0)] *= 3.0f; }\n";
    cl_platform_id platform;
    cl_device_id device;
    cl_program program;
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    agent.handle = (uint64_t)(size_t)device;
    pool_before_a_context();
    in = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    queue = new_queue();
    program = clCreateProgramWithSource(in, 1, &source, NULL, NULL);
    CHECK(clBuildProgram(program, 1, &device, NULL, NULL, NULL) == CL_SUCCESS);
    kernel = clCreateKernel(program, "triple", NULL);
    clReleaseProgram(program);
    memory = clCreateBuffer(in, CL_MEM_READ_WRITE, ITEMS * sizeof(float), NULL, NULL);
    clSetKernelArg(kernel, 0, sizeof memory, &memory);
}

/* The result of the program. */
static inline int tear_down(void) {
    clReleaseMemObject(memory);
    clReleaseKernel(kernel);
    clReleaseCommandQueue(queue);
    clReleaseContext(in);
    printf("%s\n", failures ? "failed" : "passed");
    return failures > 0;
}

static inline void launch_in(cl_command_queue into, int times) {
    size_t items = ITEMS;
    while (times--) CHECK(clEnqueueNDRangeKernel(into, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clFinish(into) == CL_SUCCESS);
}

static inline void launch(int times) { launch_in(queue, times); }

/* Waits until so many have come: the end of a kernel may be told on another thread, after the program knows of it. */
static inline void await(const int *counter, int wanted) {
    int waited;
    for (waited = 0; waited < 10000 && __atomic_load_n(counter, __ATOMIC_SEQ_CST) < wanted; waited++) usleep(1000);
    CHECK(__atomic_load_n(counter, __ATOMIC_SEQ_CST) == wanted);
}

static inline uint64_t nanos(clockid_t clock) {
    struct timespec now;
    CHECK(clock_gettime(clock, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Runs the simulated GPU. */
static inline void simulate(void) {
    gputrail_simulation_options simulation;
    memset(&simulation, 0, sizeof simulation);
    simulation.size = sizeof simulation;
    simulation.seed = 7;
    simulation.steps = 1;
    CHECK(gputrail_simulation_run(&simulation, NULL) == GPUTRAIL_OK);
}
#endif
