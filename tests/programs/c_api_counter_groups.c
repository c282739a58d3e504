/* A program that is linked with gputrail and counts in groups that it starts, stops, reads and resets: on the simulated GPU,
   whose counts are compared with the program's own, and what its own kernels do. Compiled as C and as C++. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include "gputrail.h"
#include "checks.h"
#include "handles.h"
#include <stdio.h>
#include <string.h>

#define LAUNCHES 20
#define MOST 8

static gputrail_counter_group group, second;
static gputrail_counter_group_options options;
static gputrail_counter_group_value values[MOST];
static gputrail_agent_id counted;
/* The waves and kernels of the counted agent, by the records of its kernels. */
static uint64_t waves, kernels;
static gputrail_status in_callback;

static void deliver(const gputrail_batch *batch, void *user_data) {
    const gputrail_record_header *record = NULL;
    size_t count;
    (void)user_data;
    EXPECT(gputrail_counter_group_start(second), GPUTRAIL_BUSY);
    EXPECT(gputrail_counter_group_stop(second), GPUTRAIL_BUSY);
    EXPECT(gputrail_counter_group_read(second, values, MOST, &count), GPUTRAIL_BUSY);
    EXPECT(gputrail_counter_group_reset(second), GPUTRAIL_BUSY);
    EXPECT(gputrail_counter_group_destroy(second), GPUTRAIL_BUSY);
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK) {
        const gputrail_record_kernel_dispatch *kernel = (const gputrail_record_kernel_dispatch *)record;
        uint64_t groups = 1, items = 1;
        int of;
        if (record->kind != GPUTRAIL_KIND_KERNEL_DISPATCH || kernel->work.agent != counted) continue;
        /* Kernels that kernels launch have no stream, and are counted with the device alone. */
        if (kernel->work.stream == 0 && options.period == 0) continue;
        for (of = 0; of < 3; of++) {
            groups *= (kernel->grid[of] + kernel->workgroup[of] - 1) / kernel->workgroup[of];
            items *= kernel->workgroup[of];
        }
        kernels++;
        waves += groups * ((items + 63) / 64);
    }
}

/* The group is created and started when the first agent is known, before its first kernel. */
static void agent_known(gputrail_callback *callback, void *user_data) {
    (void)user_data;
    if (counted) return;
    counted = ((const gputrail_record_agent *)callback->record)->id;
    EXPECT(gputrail_counter_group_create(counted, &options, &group), GPUTRAIL_OK);
    if (!second.handle) EXPECT(gputrail_counter_group_create(counted, &options, &second), GPUTRAIL_OK);
    EXPECT(gputrail_counter_group_start(group), GPUTRAIL_OK);
    in_callback = gputrail_counter_group_stop(group);
}

/* Runs the simulated GPU with a group of `counters`, of so many instances, and reads it. */
static size_t simulate(const char *counters, uint32_t instances, uint64_t period) {
    gputrail_simulation_options simulation;
    size_t count = 0;
    memset(&simulation, 0, sizeof simulation);
    simulation.size = sizeof simulation;
    simulation.seed = 7;
    simulation.steps = 1;
    options.counters = counters;
    options.instances = instances;
    options.period = period;
    counted = 0;
    waves = kernels = 0;
    EXPECT(gputrail_simulation_run(&simulation, NULL), GPUTRAIL_OK);
    CHECK(in_callback == GPUTRAIL_BUSY);
    EXPECT(gputrail_counter_group_start(group), GPUTRAIL_STARTED);
    EXPECT(gputrail_counter_group_stop(group), GPUTRAIL_OK);
    EXPECT(gputrail_counter_group_stop(group), GPUTRAIL_STOPPED);
    EXPECT(gputrail_counter_group_read(group, values, MOST, &count), GPUTRAIL_OK);
    return count;
}

static void on_the_simulated_gpu(void) {
    static const gputrail_operation known = {GPUTRAIL_DOMAIN_RESOURCE, 14};
    gputrail_kind dispatches = GPUTRAIL_KIND_KERNEL_DISPATCH;
    gputrail_selection selection;
    gputrail_context context;
    gputrail_subscriber subscriber;
    gputrail_buffer buffer;
    uint64_t number = 0, requests = 0;
    size_t count;
    double real = 0;

    EXPECT(gputrail_buffer_create(NULL, deliver, NULL, &buffer), GPUTRAIL_OK);
    EXPECT(gputrail_context_create(&context), GPUTRAIL_OK);
    memset(&selection, 0, sizeof selection);
    selection.size = sizeof selection;
    selection.kinds = &dispatches;
    selection.kind_count = 1;
    EXPECT(gputrail_context_trace_to(context, buffer, &selection), GPUTRAIL_OK);
    EXPECT(gputrail_subscribe(context, &known, 1, agent_known, NULL, &subscriber), GPUTRAIL_OK);
    EXPECT(gputrail_context_start(context), GPUTRAIL_OK);

    /* Whole numbers and doubles, each with its getter. */
    CHECK(simulate("SQ_WAVES,TCC_EA_RDREQ,FETCH_SIZE", 0, 0) == 3);
    EXPECT(gputrail_buffer_flush(buffer), GPUTRAIL_OK);
    CHECK(strcmp(values[0].name, "SQ_WAVES") == 0 && strcmp(values[2].name, "FETCH_SIZE") == 0);
    EXPECT(gputrail_counter_group_uint64(&values[0], &number), GPUTRAIL_OK);
    CHECK(kernels > 20 && number == waves && values[0].readings == kernels && values[0].invalid == 0);
    EXPECT(gputrail_counter_group_double(&values[0], &real), GPUTRAIL_WRONG_TYPE);
    EXPECT(gputrail_counter_group_uint64(&values[2], &number), GPUTRAIL_WRONG_TYPE);
    EXPECT(gputrail_counter_group_double(&values[2], &real), GPUTRAIL_OK);
    EXPECT(gputrail_counter_group_uint64(&values[1], &requests), GPUTRAIL_OK);
    /* Each request is for 64 bytes. */
    CHECK(real > 0 && real == (double)requests / 16);
    CHECK(values[1].sampled_instances == 16 && values[1].total_instances == 16);
    CHECK(values[1].normalized == (double)requests);
    EXPECT(gputrail_counter_group_uint64(NULL, &number), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_counter_group_double(&values[0], NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_counter_group_read(group, values, MOST, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_counter_group_uint64(&values[0], NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_counter_group_destroy(group), GPUTRAIL_OK);
    EXPECT(gputrail_counter_group_start(group), GPUTRAIL_NO_SUCH_COUNTER_GROUP);
    EXPECT(gputrail_counter_group_stop(group), GPUTRAIL_NO_SUCH_COUNTER_GROUP);
    EXPECT(gputrail_counter_group_read(group, values, MOST, &count), GPUTRAIL_NO_SUCH_COUNTER_GROUP);
    EXPECT(gputrail_counter_group_reset(group), GPUTRAIL_NO_SUCH_COUNTER_GROUP);
    EXPECT(gputrail_counter_group_destroy(group), GPUTRAIL_NO_SUCH_COUNTER_GROUP);

    /* Some instances stand for all of them. */
    CHECK(simulate("TCC_EA_RDREQ", 4, 0) == 1);
    EXPECT(gputrail_counter_group_uint64(&values[0], &number), GPUTRAIL_OK);
    CHECK(number > 0 && number < requests && values[0].sampled_instances == 4);
    CHECK(values[0].normalized == 4 * (double)number);
    CHECK(values[0].normalized > 0.9 * (double)requests && values[0].normalized < 1.1 * (double)requests);
    EXPECT(gputrail_counter_group_destroy(group), GPUTRAIL_OK);

    /* All the time. */
    CHECK(simulate("SQ_WAVES", 0, 10000) == 1);
    EXPECT(gputrail_buffer_flush(buffer), GPUTRAIL_OK);
    EXPECT(gputrail_counter_group_uint64(&values[0], &number), GPUTRAIL_OK);
    CHECK(values[0].readings > 10 && number == waves);
    EXPECT(gputrail_counter_group_reset(group), GPUTRAIL_OK);
    EXPECT(gputrail_counter_group_destroy(group), GPUTRAIL_OK);
    EXPECT(gputrail_context_destroy(context), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_flush(buffer), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_destroy(buffer), GPUTRAIL_OK);
    EXPECT(gputrail_counter_group_destroy(second), GPUTRAIL_OK);
}

static void of_own_kernels(void) {
    static const char *source = "kernel void hot(global float *out, int rounds) {\n"
                                "    float x = get_global_id(0);\n"
                                "    for (int j = 0; j < rounds; j++) { x = x * 0.999f + 0.5f; }\n"
                                "    out[get_global_id(0)] = x;\n"
                                "}\n";
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel;
    cl_mem out;
    gputrail_agent_id agent;
    size_t items = 256, count = 0;
    uint64_t time = 0, before = 0;
    int rounds = 20000, launch;

    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    queue = clCreateCommandQueue(context, device, 0, NULL);
    program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
    CHECK(clBuildProgram(program, 1, &device, NULL, NULL, NULL) == CL_SUCCESS);
    kernel = clCreateKernel(program, "hot", NULL);
    out = clCreateBuffer(context, CL_MEM_WRITE_ONLY, 256 * sizeof(float), NULL, NULL);
    clSetKernelArg(kernel, 0, sizeof out, &out);
    clSetKernelArg(kernel, 1, sizeof rounds, &rounds);
    EXPECT(gputrail_agent_of((uint64_t)(size_t)device, &agent), GPUTRAIL_OK);

    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.counters = "TASK_CLOK";
    EXPECT(gputrail_counter_group_create(agent, &options, &group), GPUTRAIL_NOT_FOUND);
    options.counters = "CPUS_UTILIZED";
    EXPECT(gputrail_counter_group_create(agent, &options, &group), GPUTRAIL_INVALID_ARGUMENT);
    options.counters = "TASK_CLOCK,,PAGE_FAULTS";
    EXPECT(gputrail_counter_group_create(agent, &options, &group), GPUTRAIL_INVALID_ARGUMENT);
    options.counters = "TASK_CLOCK,PAGE_FAULTS";
    EXPECT(gputrail_counter_group_create(999, &options, &group), GPUTRAIL_NO_SUCH_AGENT);
    EXPECT(gputrail_counter_group_create(agent, NULL, &group), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_counter_group_create(agent, &options, NULL), GPUTRAIL_NULL_POINTER);
    options.size = 3;
    EXPECT(gputrail_counter_group_create(agent, &options, &group), GPUTRAIL_WRONG_SIZE);
    options.size = sizeof options;
    EXPECT(gputrail_counter_group_create(agent, &options, &group), GPUTRAIL_OK);
    EXPECT(gputrail_counter_group_create(agent, &options, &second), GPUTRAIL_OK);

    /* Two launches of each three are counted, by one group each. */
    for (launch = 0; launch < LAUNCHES; launch++) {
        EXPECT(gputrail_counter_group_start(group), GPUTRAIL_OK);
        EXPECT(gputrail_counter_group_start(second), GPUTRAIL_CONTEXT_CONFLICT);
        CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) == CL_SUCCESS);
        EXPECT(gputrail_counter_group_stop(group), GPUTRAIL_OK);
        CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) == CL_SUCCESS);
        EXPECT(gputrail_counter_group_start(second), GPUTRAIL_OK);
        CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) == CL_SUCCESS);
        EXPECT(gputrail_counter_group_stop(second), GPUTRAIL_OK);
        EXPECT(gputrail_counter_group_read(group, values, MOST, &count), GPUTRAIL_OK);
        CHECK(count == 2 && values[0].readings == 1 + (uint64_t)launch && values[0].invalid == 0);
        EXPECT(gputrail_counter_group_uint64(&values[0], &time), GPUTRAIL_OK);
        CHECK(time > before);
        before = time;
    }
    EXPECT(gputrail_counter_group_read(second, values, MOST, &count), GPUTRAIL_OK);
    CHECK(values[0].readings == LAUNCHES);
    EXPECT(gputrail_counter_group_read(group, values, 1, &count), GPUTRAIL_TOO_SMALL);
    EXPECT(gputrail_counter_group_reset(group), GPUTRAIL_OK);
    EXPECT(gputrail_counter_group_read(group, values, MOST, &count), GPUTRAIL_OK);
    EXPECT(gputrail_counter_group_uint64(&values[0], &time), GPUTRAIL_OK);
    CHECK(time == 0 && values[0].readings == 0);
    /* The end of the library stops this one. */
    EXPECT(gputrail_counter_group_start(group), GPUTRAIL_OK);
    EXPECT(gputrail_finalise(), GPUTRAIL_OK);
    EXPECT(gputrail_counter_group_stop(group), GPUTRAIL_NOT_INITIALISED);
    clReleaseMemObject(out);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
}

int main(void) {
    size_t count;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    EXPECT(gputrail_counter_group_create(1, &options, &group), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_group_start(group), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_group_read(group, values, MOST, &count), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_group_reset(group), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_group_destroy(group), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_initialise(), GPUTRAIL_OK);
    EXPECT(gputrail_observe_opencl(), GPUTRAIL_OK);
    on_the_simulated_gpu();
    of_own_kernels();
    printf("%s\n", failures ? "failed" : "passed");
    return failures > 0;
}
