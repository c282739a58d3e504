/* A program that is linked with gputrail and samples the program counters of its own kernels: what can be asked for, what
   is refused, samples, their numbers, and the vendors' words. Compiled as C and as C++. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include "gputrail.h"
#include "checks.h"
#include "handles.h"
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* What came in one buffer. */
typedef struct {
    unsigned long samples, in_code, of_dispatches, total, dropped, aggregated;
    gputrail_record_host_trap_sample one;
} counts;

static void deliver(const gputrail_batch *batch, void *user_data) {
    counts *seen = (counts *)user_data;
    const gputrail_record_header *record = NULL;
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK) {
        if (record->kind == GPUTRAIL_KIND_PC_SAMPLE_HOST_TRAP) {
            const gputrail_record_host_trap_sample *sample = (const gputrail_record_host_trap_sample *)record;
            seen->samples++;
            seen->in_code += sample->code_object != 0 && sample->offset != 0;
            seen->of_dispatches += sample->work != 0 && sample->correlation != 0;
            if (sample->code_object != 0) seen->one = *sample;
        } else if (record->kind == GPUTRAIL_KIND_PC_SAMPLING_TOTALS) {
            const gputrail_record_sampling_totals *totals = (const gputrail_record_sampling_totals *)record;
            seen->total += totals->total;
            seen->dropped += totals->dropped;
            CHECK(totals->interval != 0 && totals->method == GPUTRAIL_SAMPLING_METHOD_HOST_TRAP);
        } else if (record->kind == GPUTRAIL_KIND_PC_SAMPLE_AGGREGATE) {
            seen->aggregated += ((const gputrail_record_sample_aggregate *)record)->samples;
        }
    }
}

static gputrail_context sampling, other;
static gputrail_buffer samples;
static gputrail_sampling_options options;
static gputrail_agent_id agent;

/* Samplers may wait for who is told. */
static void deliver_busily(const gputrail_batch *batch, void *user_data) {
    EXPECT(gputrail_context_start(sampling), GPUTRAIL_BUSY);
    EXPECT(gputrail_context_stop(sampling), GPUTRAIL_BUSY);
    EXPECT(gputrail_context_sample(other, samples, agent, &options), GPUTRAIL_BUSY);
    deliver(batch, user_data);
}

static void ignore(const gputrail_batch *batch, void *user_data) {
    (void)batch;
    (void)user_data;
}

static struct {
    int modules, named;
} profiled;

/* Told of modules whose kernels are sampled. */
static void told(gputrail_callback *callback, void *user_data) {
    const gputrail_record_module *module = (const gputrail_record_module *)callback->record;
    gputrail_record_module described;
    CHECK(user_data == &profiled && strcmp(callback->name, "module profiled") == 0);
    profiled.modules++;
    if (module && gputrail_describe_module(module->id, &described) == GPUTRAIL_OK && described.context == module->context)
        profiled.named++;
}

static void words(void) {
    static const char *const SYNC = "CUPTI_ACTIVITY_PC_SAMPLING_STALL_SYNC";
    gputrail_not_issued reason;
    gputrail_stall_reason stall;
    gputrail_instruction_type type;
    int number;
    for (number = 1; number < 10; number++) {
        const char *name = gputrail_not_issued_name((gputrail_not_issued)number);
        CHECK(name && gputrail_not_issued_by_name(name, &reason) == GPUTRAIL_OK && reason == number);
    }
    for (number = 1; number <= 12; number++) {
        const char *name = gputrail_stall_reason_name((gputrail_stall_reason)number);
        CHECK(name && gputrail_stall_reason_by_name(name, &stall) == GPUTRAIL_OK && stall == number);
    }
    CHECK(strcmp(gputrail_stall_reason_name(GPUTRAIL_STALL_REASON_SYNC), SYNC) == 0);
    CHECK(gputrail_stall_reason_of(GPUTRAIL_NOT_ISSUED_BARRIER_WAIT) == GPUTRAIL_STALL_REASON_SYNC);
    CHECK(gputrail_not_issued_of(GPUTRAIL_STALL_REASON_SYNC) == GPUTRAIL_NOT_ISSUED_BARRIER_WAIT);
    CHECK(strcmp(gputrail_instruction_type_name(GPUTRAIL_INSTRUCTION_TYPE_VALU),
                 "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_VALU") == 0);
    EXPECT(gputrail_instruction_type_by_name("ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_VALU", &type), GPUTRAIL_OK);
    CHECK(type == GPUTRAIL_INSTRUCTION_TYPE_VALU);
    CHECK(gputrail_not_issued_name(200) == NULL && gputrail_stall_reason_name(200) == NULL);
    CHECK(gputrail_instruction_type_name(200) == NULL);
    EXPECT(gputrail_not_issued_by_name("no such", &reason), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_stall_reason_by_name(NULL, &stall), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_instruction_type_by_name(SYNC, NULL), GPUTRAIL_NULL_POINTER);
}

static cl_command_queue queue;
static cl_kernel kernel;

/* Some tenths of a second of processor time. */
static void work(void) {
    size_t items = 256;
    int launch;
    for (launch = 0; launch < 100; launch++)
        CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clFinish(queue) == CL_SUCCESS);
}

int main(int argc, char **argv) {
    static const char *source = "kernel void hot(global float *out, int rounds) {\n"
                                "    float x = get_global_id(0);\n"
                                "    for (int j = 0; j < rounds; j++) { x = x * 0.999f + 0.5f; }\n"
                                "    out[get_global_id(0)] = x;\n"
                                "}\n";
    static counts seen, summed;
    gputrail_sampling_configuration can[4];
    gputrail_sampling_period period;
    gputrail_context observing;
    gputrail_buffer calls, sums;
    gputrail_agent_id agents[4];
    gputrail_operation of_modules;
    gputrail_subscriber subscriber;
    gputrail_record_code_object described;
    char text[400];
    struct rlimit files, no_files;
    uint64_t interval = 0;
    size_t count = 0;
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_program program;
    cl_mem out;
    int rounds = 20000;
    (void)argv;

    words();
    EXPECT(gputrail_sampling_agents(agents, 4, &count), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_initialise(), GPUTRAIL_OK);
    EXPECT(gputrail_observe_opencl(), GPUTRAIL_OK);
    EXPECT(gputrail_context_create(&observing), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_create(NULL, ignore, NULL, &calls), GPUTRAIL_OK);
    EXPECT(gputrail_context_trace_to(observing, calls, NULL), GPUTRAIL_OK);
    EXPECT(gputrail_operation_by_name(GPUTRAIL_DOMAIN_RESOURCE, "module profiled", &of_modules), GPUTRAIL_OK);
    EXPECT(gputrail_subscribe(observing, &of_modules, 1, told, &profiled, &subscriber), GPUTRAIL_OK);
    EXPECT(gputrail_context_start(observing), GPUTRAIL_OK);

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

    EXPECT(gputrail_sampling_agents(agents, 4, &count), GPUTRAIL_OK);
    CHECK(count == 1 && gputrail_agent_of((uint64_t)(size_t)device, &agent) == GPUTRAIL_OK && agents[0] == agent);
    agent = agents[0];
    EXPECT(gputrail_agents(agents, 0, &count), GPUTRAIL_TOO_SMALL);
    EXPECT(gputrail_sampling_configurations(agent, can, 4, &count), GPUTRAIL_OK);
    CHECK(count == 1 && can[0].method == GPUTRAIL_SAMPLING_METHOD_HOST_TRAP);
    CHECK(can[0].unit == GPUTRAIL_SAMPLING_UNIT_TIME && can[0].min_interval <= 1000000 && !can[0].power_of_two);
    EXPECT(gputrail_sampling_configurations(agent, can, 0, &count), GPUTRAIL_TOO_SMALL);
    EXPECT(gputrail_sampling_configurations(999, can, 4, &count), GPUTRAIL_NO_SUCH_AGENT);
    EXPECT(gputrail_sampling_configurations(agent, can, 4, NULL), GPUTRAIL_NULL_POINTER);

    EXPECT(gputrail_context_create(&sampling), GPUTRAIL_OK);
    EXPECT(gputrail_context_create(&other), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_create(NULL, deliver_busily, &seen, &samples), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_create(NULL, deliver, &summed, &sums), GPUTRAIL_OK);
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.interval = 1000000;
    options.method = GPUTRAIL_SAMPLING_METHOD_STOCHASTIC;
    options.unit = GPUTRAIL_SAMPLING_UNIT_CYCLES;
    EXPECT(gputrail_context_sample(sampling, samples, agent, &options), GPUTRAIL_SAMPLING_NOT_AVAILABLE);
    gputrail_last_error(text, sizeof text);
    CHECK(strstr(text, "host-trap"));
    options.method = GPUTRAIL_SAMPLING_METHOD_HOST_TRAP;
    options.unit = GPUTRAIL_SAMPLING_UNIT_TIME;
    options.interval = 1;
    EXPECT(gputrail_context_sample(sampling, samples, agent, &options), GPUTRAIL_INVALID_ARGUMENT);
    options.interval = 1000000;
    options.aggregates = 7;
    EXPECT(gputrail_context_sample(sampling, samples, agent, &options), GPUTRAIL_INVALID_ARGUMENT);
    options.aggregates = 0;
    options.size = 3;
    EXPECT(gputrail_context_sample(sampling, samples, agent, &options), GPUTRAIL_WRONG_SIZE);
    options.size = sizeof options;
    EXPECT(gputrail_context_sample(sampling, samples, agent, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_context_sample(sampling, samples, 999, &options), GPUTRAIL_NO_SUCH_AGENT);
    EXPECT(gputrail_context_sample(context_of(999), samples, agent, &options), GPUTRAIL_NO_SUCH_CONTEXT);
    EXPECT(gputrail_context_sample(sampling, buffer_of(999), agent, &options), GPUTRAIL_NO_SUCH_BUFFER);
    EXPECT(gputrail_context_sample(observing, samples, agent, &options), GPUTRAIL_LOCKED);
    if (argc > 1) {
        /* The system forbids perf events. */
        EXPECT(gputrail_context_sample(sampling, samples, agent, &options), GPUTRAIL_SAMPLING_INCOMPATIBLE_SYSTEM);
        gputrail_last_error(text, sizeof text);
        CHECK(strstr(text, "perf_event_paranoid"));
        puts(failures ? "failed" : "passed");
        return failures != 0;
    }
    /* The system allows perf events, and no file can be opened. */
    getrlimit(RLIMIT_NOFILE, &files);
    no_files = files;
    no_files.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &no_files);
    EXPECT(gputrail_context_sample(sampling, samples, agent, &options), GPUTRAIL_SAMPLING_FAILED);
    setrlimit(RLIMIT_NOFILE, &files);
    gputrail_last_error(text, sizeof text);
    CHECK(strstr(text, "ulimit -n"));
    EXPECT(gputrail_context_sample(sampling, samples, agent, &options), GPUTRAIL_OK);
    /* The same again changes nothing. */
    EXPECT(gputrail_context_sample(sampling, samples, agent, &options), GPUTRAIL_OK);
    options.interval = 2000000;
    EXPECT(gputrail_context_sample(sampling, samples, agent, &options), GPUTRAIL_SAMPLING_NOT_AVAILABLE);
    options.interval = 1000000;
    EXPECT(gputrail_context_sample(sampling, calls, agent, &options), GPUTRAIL_SAMPLING_NOT_AVAILABLE);
    EXPECT(gputrail_context_sample(other, samples, agent, &options), GPUTRAIL_CONTEXT_CONFLICT);
    EXPECT(gputrail_context_collects_counters(sampling), GPUTRAIL_CONTEXT_CONFLICT);
    EXPECT(gputrail_sampling_configurations(agent, can, 4, &count), GPUTRAIL_OK);
    CHECK(count == 1 && can[0].min_interval == 1000000 && can[0].max_interval == 1000000);

    work();
    CHECK(profiled.modules == 0);
    EXPECT(gputrail_context_start(sampling), GPUTRAIL_OK);
    work();
    /* Once, and neither before nor for each kernel. */
    CHECK(profiled.modules == 1 && profiled.named == 1);
    EXPECT(gputrail_context_stop(sampling), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_flush(samples), GPUTRAIL_OK);
    if (seen.total != seen.samples + seen.dropped || seen.samples <= 10) {
        printf("%lu samples, %lu in code, %lu of dispatches; %lu in total, %lu dropped, %lu aggregated\n", seen.samples,
               seen.in_code, seen.of_dispatches, seen.total, seen.dropped, seen.aggregated);
    }
    CHECK(seen.samples > 10 && seen.in_code == seen.samples && seen.of_dispatches == seen.samples);
    CHECK(seen.total == seen.samples + seen.dropped && seen.aggregated == 0);
    CHECK((seen.one.absent & GPUTRAIL_ABSENT_EXEC_MASK) && !(seen.one.absent & GPUTRAIL_ABSENT_HARDWARE));
    EXPECT(gputrail_describe_code_object(seen.one.code_object, &described), GPUTRAIL_OK);
    CHECK(described.load_base != 0);
    EXPECT(gputrail_kernel_name(seen.one.kernel, text, sizeof text, NULL), GPUTRAIL_OK);
    CHECK(strcmp(text, "hot") == 0);

    /* The agent is free when the context is gone. */
    EXPECT(gputrail_context_destroy(sampling), GPUTRAIL_OK);
    memset(&period, 0, sizeof period);
    period.size = sizeof period;
    EXPECT(gputrail_context_sample_every(other, sums, agent, &period, &interval), GPUTRAIL_INVALID_ARGUMENT);
    period.exponent = 32;
    EXPECT(gputrail_context_sample_every(other, sums, agent, &period, &interval), GPUTRAIL_INVALID_ARGUMENT);
    period.exponent = 0;
    period.level = GPUTRAIL_PERIOD_LEVEL_LOW;
    period.aggregates = 1;
    EXPECT(gputrail_context_sample_every(other, sums, agent, &period, &interval), GPUTRAIL_OK);
    CHECK(interval != 0);
    EXPECT(gputrail_context_start(other), GPUTRAIL_OK);
    work();
    EXPECT(gputrail_context_stop(other), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_flush(sums), GPUTRAIL_OK);
    CHECK(summed.samples == 0 && summed.aggregated > 10 && summed.total == summed.aggregated + summed.dropped);

    EXPECT(gputrail_context_destroy(other), GPUTRAIL_OK);
    EXPECT(gputrail_context_create(&other), GPUTRAIL_OK);
    EXPECT(gputrail_context_collects_counters(other), GPUTRAIL_OK);
    EXPECT(gputrail_context_sample(other, samples, agent, &options), GPUTRAIL_CONTEXT_CONFLICT);
    EXPECT(gputrail_finalise(), GPUTRAIL_OK);
    clReleaseMemObject(out);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    printf("%s\n", failures ? "failed" : "passed");
    return failures > 0;
}
