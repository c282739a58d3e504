/* A program that is linked with gputrail and counts what its own kernels do: the counters there are, what is refused, and
   values of dispatches. Compiled as C and as C++. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include "gputrail.h"
#include "checks.h"
#include "handles.h"
#include <stdio.h>
#include <string.h>

#define LAUNCHES 20

static gputrail_context counting, other;
static gputrail_buffer values;
static gputrail_counting_options options;
static gputrail_counter_definition definitions[64];
static gputrail_agent_id agent;
static gputrail_metric_part parts[4];

/* What came in a buffer. */
typedef struct {
    unsigned long of_dispatches, of_ranges, last, invalid;
    int reason;
    uint64_t time;
} counts;

static void deliver(const gputrail_batch *batch, void *user_data) {
    counts *seen = (counts *)user_data;
    const gputrail_record_header *record = NULL;
    size_t count;
    /* A source may wait for the end of a callback. */
    EXPECT(gputrail_counters(agent, definitions, 64, &count), GPUTRAIL_BUSY);
    EXPECT(gputrail_metric_parts(agent, "CPUS_UTILIZED", parts, 4, &count), GPUTRAIL_BUSY);
    EXPECT(gputrail_context_count(other, values, agent, &options), GPUTRAIL_BUSY);
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK) {
        if (record->kind == GPUTRAIL_KIND_COUNTER_VALUE) {
            const gputrail_record_counter_value *value = (const gputrail_record_counter_value *)record;
            seen->of_dispatches += value->work != 0 && value->correlation != 0 && value->agent == agent;
            seen->of_ranges += value->range != 0 && value->work == 0 && value->start < value->end && value->agent == agent;
            seen->last += value->remaining == 0;
            seen->invalid += value->invalid != GPUTRAIL_COUNTER_INVALID_NO;
            if (value->invalid != GPUTRAIL_COUNTER_INVALID_NO) seen->reason = value->invalid;
            if (value->usage == GPUTRAIL_COUNTER_USAGE_NANOSECONDS) seen->time += value->value;
        }
    }
}

static int passes_told, last_passes_told;

static void replayed(gputrail_callback *callback, void *user_data) {
    char name[16];
    (void)user_data;
    gputrail_kernel_name(callback->kernel, name, sizeof name, NULL);
    CHECK(strcmp(name, "hot") == 0 && callback->passes == 2);
    CHECK(callback->passes_done == 1 + (uint32_t)(passes_told % 2));
    passes_told++;
    last_passes_told += callback->passes_done == callback->passes;
}

/* What metrics are computed from, and their values by totals. */
static void metrics(gputrail_agent_id of) {
    gputrail_named_value given[2];
    double value = 0;
    size_t count = 0;
    EXPECT(gputrail_metric_parts(of, "CPUS_UTILIZED", parts, 4, &count), GPUTRAIL_OK);
    CHECK(count == 2 && strcmp(parts[0].name, "TASK_CLOCK") == 0 && parts[0].is_property == 0);
    CHECK(strcmp(parts[1].name, "KERNEL_TIME") == 0 && parts[1].is_property == 1);
    EXPECT(gputrail_metric_parts(of, "CPUS_UTILIZED", parts, 1, &count), GPUTRAIL_TOO_SMALL);
    EXPECT(gputrail_metric_parts(of, "CPUS_UTILISED", parts, 4, &count), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_metric_parts(of, "TASK_CLOCK", parts, 4, &count), GPUTRAIL_INVALID_ARGUMENT);
    EXPECT(gputrail_metric_parts(999, "CPUS_UTILIZED", parts, 4, &count), GPUTRAIL_NO_SUCH_AGENT);
    EXPECT(gputrail_metric_parts(of, NULL, parts, 4, &count), GPUTRAIL_NULL_POINTER);
    given[0].name = "TASK_CLOCK";
    given[0].value = 3000;
    given[1].name = "KERNEL_TIME";
    given[1].value = 1500;
    EXPECT(gputrail_metric_value(of, "CPUS_UTILIZED", given, 2, &value), GPUTRAIL_OK);
    CHECK(value == 2);
    EXPECT(gputrail_metric_value(of, "CPUS_UTILIZED", given, 1, &value), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_metric_value(of, "CPUS_UTILIZED", NULL, 2, &value), GPUTRAIL_NULL_POINTER);
    given[1].value = 0;
    EXPECT(gputrail_metric_value(of, "CPUS_UTILIZED", given, 2, &value), GPUTRAIL_NO_VALUE);
}

int main(void) {
    static const char *source = "kernel void hot(global float *out, int rounds) {\n"
                                "    float x = get_global_id(0);\n"
                                "    for (int j = 0; j < rounds; j++) { x = x * 0.999f + 0.5f; }\n"
                                "    out[get_global_id(0)] = x;\n"
                                "}\n";
    static counts seen;
    gputrail_agent_id agents[4];
    gputrail_selection selection;
    gputrail_kind kernels = GPUTRAIL_KIND_KERNEL_DISPATCH;
    gputrail_kind with_markers[] = {GPUTRAIL_KIND_KERNEL_DISPATCH, GPUTRAIL_KIND_MARKER};
    gputrail_context locked;
    gputrail_subscriber subscriber;
    gputrail_operation replay;
    char text[400];
    size_t count = 0, items = 256;
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel;
    cl_mem out;
    int rounds = 20000, launch;

    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.counters = "TASK_CLOCK,PAGE_FAULTS";
    EXPECT(gputrail_counting_agents(agents, 4, &count), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counters(1, definitions, 64, &count), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_metric_parts(1, "CPUS_UTILIZED", parts, 4, &count), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_context_count(context_of(1), buffer_of(1), 1, &options), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_initialise(), GPUTRAIL_OK);
    EXPECT(gputrail_observe_opencl(), GPUTRAIL_OK);
    EXPECT(gputrail_context_create(&counting), GPUTRAIL_OK);
    EXPECT(gputrail_context_create(&other), GPUTRAIL_OK);
    EXPECT(gputrail_context_create(&locked), GPUTRAIL_OK);
    EXPECT(gputrail_context_start(locked), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_create(NULL, deliver, &seen, &values), GPUTRAIL_OK);
    memset(&selection, 0, sizeof selection);
    selection.size = sizeof selection;
    selection.kinds = &kernels;
    selection.kind_count = 1;
    EXPECT(gputrail_context_trace_to(counting, values, &selection), GPUTRAIL_OK);

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

    CHECK(gputrail_agent_of((uint64_t)(size_t)device, &agent) == GPUTRAIL_OK);
    EXPECT(gputrail_counting_agents(agents, 4, &count), GPUTRAIL_OK);
    CHECK(count == 1 && agents[0] == agent);
    EXPECT(gputrail_counters(agent, definitions, 64, &count), GPUTRAIL_OK);
    CHECK(count > 4 && strcmp(definitions[0].name, "TASK_CLOCK") == 0 && !definitions[0].is_metric);
    CHECK(definitions[count - 1].is_metric && strchr(definitions[count - 1].from, '/'));
    EXPECT(gputrail_counters(agent, definitions, 1, &count), GPUTRAIL_TOO_SMALL);
    EXPECT(gputrail_counters(999, definitions, 64, &count), GPUTRAIL_NO_SUCH_AGENT);
    EXPECT(gputrail_counters(agent, definitions, 64, NULL), GPUTRAIL_NULL_POINTER);
    metrics(agent);

    /* Counting that is reserved is that of one context. */
    EXPECT(gputrail_context_reserve_counters(other), GPUTRAIL_OK);
    EXPECT(gputrail_context_reserve_counters(counting), GPUTRAIL_CONTEXT_CONFLICT);
    options.counters = "TASK_CLOCK";
    EXPECT(gputrail_context_count(counting, values, agent, &options), GPUTRAIL_CONTEXT_CONFLICT);
    EXPECT(gputrail_context_destroy(other), GPUTRAIL_OK);
    EXPECT(gputrail_context_create(&other), GPUTRAIL_OK);
    options.counters = "TASK_CLOK";
    EXPECT(gputrail_context_count(counting, values, agent, &options), GPUTRAIL_NOT_FOUND);
    gputrail_last_error(text, sizeof text);
    CHECK(strstr(text, "; the nearest ") && strstr(text, " TASK_CLOCK"));
    options.counters = "TASK_CLOCK,,PAGE_FAULTS";
    EXPECT(gputrail_context_count(counting, values, agent, &options), GPUTRAIL_INVALID_ARGUMENT);
    options.counters = "task_clock, PAGE_FAULTS";
    options.period = 1;
    EXPECT(gputrail_context_count(counting, values, agent, &options), GPUTRAIL_INVALID_ARGUMENT);
    options.period = 0;
    options.size = 3;
    EXPECT(gputrail_context_count(counting, values, agent, &options), GPUTRAIL_WRONG_SIZE);
    options.size = sizeof options;
    EXPECT(gputrail_context_count(counting, values, agent, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_context_count(counting, values, 999, &options), GPUTRAIL_NO_SUCH_AGENT);
    EXPECT(gputrail_context_count(context_of(999), values, agent, &options), GPUTRAIL_NO_SUCH_CONTEXT);
    EXPECT(gputrail_context_count(counting, buffer_of(999), agent, &options), GPUTRAIL_NO_SUCH_BUFFER);
    EXPECT(gputrail_context_count(locked, values, agent, &options), GPUTRAIL_LOCKED);
    EXPECT(gputrail_context_count(counting, values, agent, &options), GPUTRAIL_OK);
    EXPECT(gputrail_context_count(counting, values, agent, &options), GPUTRAIL_COUNTERS_NOT_AVAILABLE);
    EXPECT(gputrail_context_count(other, values, agent, &options), GPUTRAIL_CONTEXT_CONFLICT);
    EXPECT(gputrail_context_reserve_counters(other), GPUTRAIL_CONTEXT_CONFLICT);

    EXPECT(gputrail_context_start(counting), GPUTRAIL_OK);
    for (launch = 0; launch < LAUNCHES; launch++)
        CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clFinish(queue) == CL_SUCCESS);
    EXPECT(gputrail_context_stop(counting), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_flush(values), GPUTRAIL_OK);
    CHECK(seen.of_dispatches == 2 * LAUNCHES && seen.last == LAUNCHES);
    CHECK(seen.invalid == 0 && seen.time > 0);

    /* Several passes: what the kernel may write is not known before its arguments have been set again. */
    EXPECT(gputrail_context_destroy(counting), GPUTRAIL_OK);
    EXPECT(gputrail_context_create(&counting), GPUTRAIL_OK);
    EXPECT(gputrail_context_trace_to(counting, values, &selection), GPUTRAIL_OK);
    replay.domain = GPUTRAIL_DOMAIN_KERNEL_DISPATCH;
    replay.number = 3;
    EXPECT(gputrail_subscribe(counting, &replay, 1, replayed, NULL, &subscriber), GPUTRAIL_OK);
    options.per_pass = 1;
    options.period = 1000000;
    EXPECT(gputrail_context_count(counting, values, agent, &options), GPUTRAIL_INVALID_ARGUMENT);
    options.period = 0;
    EXPECT(gputrail_context_count(counting, values, agent, &options), GPUTRAIL_OK);
    EXPECT(gputrail_context_start(counting), GPUTRAIL_OK);
    memset(&seen, 0, sizeof seen);
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clFinish(queue) == CL_SUCCESS);
    EXPECT(gputrail_buffer_flush(values), GPUTRAIL_OK);
    CHECK(seen.of_dispatches == 2 && seen.invalid == 2 && seen.reason == GPUTRAIL_COUNTER_INVALID_UNKNOWN_ARGUMENT);
    clSetKernelArg(kernel, 0, sizeof out, &out);
    clSetKernelArg(kernel, 1, sizeof rounds, &rounds);
    for (launch = 0; launch < LAUNCHES; launch++)
        CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clFinish(queue) == CL_SUCCESS);
    EXPECT(gputrail_context_stop(counting), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_flush(values), GPUTRAIL_OK);
    CHECK(seen.of_dispatches == 2 + 2 * LAUNCHES && seen.invalid == 2);
    CHECK(passes_told == 2 * LAUNCHES && last_passes_told == LAUNCHES);

    /* A range as a whole: two of the kernels are in it. */
    EXPECT(gputrail_context_destroy(counting), GPUTRAIL_OK);
    EXPECT(gputrail_context_create(&counting), GPUTRAIL_OK);
    selection.kinds = with_markers;
    selection.kind_count = 2;
    EXPECT(gputrail_context_trace_to(counting, values, &selection), GPUTRAIL_OK);
    options.range = "st?p";
    EXPECT(gputrail_context_count(counting, values, agent, &options), GPUTRAIL_INVALID_ARGUMENT);
    options.per_pass = 0;
    EXPECT(gputrail_context_count(counting, values, agent, &options), GPUTRAIL_OK);
    EXPECT(gputrail_context_start(counting), GPUTRAIL_OK);
    memset(&seen, 0, sizeof seen);
    for (launch = 0; launch < 4; launch++) {
        if (launch == 1) EXPECT(gputrail_range_push_name("step"), GPUTRAIL_OK);
        CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) == CL_SUCCESS);
        CHECK(clFinish(queue) == CL_SUCCESS);
        if (launch == 2) EXPECT(gputrail_range_pop(), GPUTRAIL_OK);
    }
    EXPECT(gputrail_context_stop(counting), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_flush(values), GPUTRAIL_OK);
    CHECK(seen.of_dispatches == 0 && seen.of_ranges == 2 && seen.last == 1 && seen.invalid == 0 && seen.time > 0);
    EXPECT(gputrail_finalise(), GPUTRAIL_OK);
    clReleaseMemObject(out);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    printf("%s\n", failures ? "failed" : "passed");
    return failures > 0;
}
