/* A program that is linked with gputrail and counts in sessions, passes and samples: kernels of the simulated GPU, whose
   counts are compared with the kernels' own sizes, and its own. Every status is provoked. Compiled as C and as C++. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include "gputrail.h"
#include "checks.h"
#include "handles.h"
#include <stdio.h>
#include <string.h>

#define MOST 512
enum { ITEMS = 256 };
static gputrail_counter_sessions_options options;
static gputrail_counter_sessions opened, none, many[40];
static gputrail_agent_id counted;
static uint32_t session, waves_of, reads_of, busy_of, wanted_passes;
static uint64_t waves, kernels;
static int end_at, in_batch, is_first = 1;
static gputrail_session_counter counters[MOST];
static gputrail_sample_value values[MOST];
static uint32_t enabled[MOST];

static uint32_t enable(const char *name) {
    uint32_t counter = 12345;
    EXPECT(gputrail_counter_sessions_find(opened, name, &counter), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_enable(opened, counter), GPUTRAIL_OK);
    return counter;
}

static void deliver(const gputrail_batch *batch, void *user_data) {
    const gputrail_record_header *record = NULL;
    uint32_t number = 0;
    (void)user_data;
    if (in_batch) {
        in_batch = 0;
        EXPECT(gputrail_counter_sessions_open(counted, &options, &none), GPUTRAIL_BUSY);
        EXPECT(gputrail_counter_sessions_passes(opened, &number), GPUTRAIL_BUSY);
        EXPECT(gputrail_counter_sessions_begin(opened, &number), GPUTRAIL_BUSY);
        EXPECT(gputrail_counter_sessions_end(opened), GPUTRAIL_BUSY);
    }
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK) {
        const gputrail_record_kernel_dispatch *dispatch = (const gputrail_record_kernel_dispatch *)record;
        uint64_t groups = 1, items = 1;
        int of;
        if (record->kind != GPUTRAIL_KIND_KERNEL_DISPATCH || dispatch->work.agent != counted) continue;
        /* Kernels that kernels launch have no stream, and are not counted. */
        if (dispatch->work.stream == 0) continue;
        for (of = 0; of < 3; of++) {
            uint64_t size = dispatch->workgroup[of] ? dispatch->workgroup[of] : 1;
            groups *= (dispatch->grid[of] + size - 1) / size;
            items *= size;
        }
        waves += groups * ((items + 63) / 64);
        kernels++;
    }
}

/* Ends the session when so many kernels have been enqueued: the last of them still runs, and its result cannot be waited for. */
static void enqueued(gputrail_callback *callback, void *user_data) {
    const gputrail_record_kernel_dispatch *dispatch = (const gputrail_record_kernel_dispatch *)callback->record;
    uint64_t number = 0;
    int32_t is = 1;
    size_t count = 0;
    (void)user_data;
    if (!end_at || callback->phase != GPUTRAIL_PHASE_ENTER || !dispatch || dispatch->work.agent != counted) return;
    if (--end_at) return;
    EXPECT(gputrail_counter_sessions_end_sample(opened), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_end_pass(opened), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_end(opened), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_is_ready(opened, session, &is), GPUTRAIL_OK);
    CHECK(is == 0);
    EXPECT(gputrail_counter_sessions_uint64(opened, session, 7, waves_of, &number), GPUTRAIL_BUSY);
    EXPECT(gputrail_counter_sessions_values(opened, session, 7, values, MOST, &count), GPUTRAIL_BUSY);
}

/* The session begins when the first agent is known, before its first kernel. */
static void agent_known(gputrail_callback *callback, void *user_data) {
    uint32_t passes = 0;
    (void)user_data;
    if (counted) return;
    counted = ((const gputrail_record_agent *)callback->record)->id;
    EXPECT(gputrail_counter_sessions_open(counted, &options, &opened), GPUTRAIL_OK);
    waves_of = enable("sq_waves");
    reads_of = enable("TCC_EA_RDREQ");
    busy_of = enable("VALUInsts");
    EXPECT(gputrail_counter_sessions_passes(opened, &passes), GPUTRAIL_OK);
    CHECK(passes == wanted_passes);
    EXPECT(gputrail_counter_sessions_begin(opened, &session), GPUTRAIL_OK);
    CHECK(session == 1);
    EXPECT(gputrail_counter_sessions_begin_pass(opened), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_begin_sample(opened, 7), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_close(opened), GPUTRAIL_BUSY);
    /* What is delivered from now on is at the latest delivered by the flush. */
    in_batch = is_first;
    is_first = 0;
}

static void run(uint32_t per_pass, uint32_t passes) {
    gputrail_simulation_options simulation;
    memset(&simulation, 0, sizeof simulation);
    simulation.size = sizeof simulation;
    simulation.seed = 7;
    simulation.steps = 1;
    options.per_pass = per_pass;
    wanted_passes = passes;
    counted = 0;
    waves = kernels = 0;
    EXPECT(gputrail_simulation_run(&simulation, NULL), GPUTRAIL_OK);
}

static void simulate(uint32_t per_pass, uint32_t passes) {
    uint32_t pass;
    run(per_pass, passes);
    EXPECT(gputrail_counter_sessions_end_sample(opened), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_end_pass(opened), GPUTRAIL_OK);
    for (pass = 1; pass < passes; pass++) {
        EXPECT(gputrail_counter_sessions_begin_pass(opened), GPUTRAIL_OK);
        EXPECT(gputrail_counter_sessions_begin_sample(opened, 7), GPUTRAIL_OK);
        EXPECT(gputrail_counter_sessions_end_sample(opened), GPUTRAIL_OK);
        EXPECT(gputrail_counter_sessions_end_pass(opened), GPUTRAIL_OK);
    }
    EXPECT(gputrail_counter_sessions_end(opened), GPUTRAIL_OK);
}

static void on_the_simulated_gpu(void) {
    static const gputrail_operation known = {GPUTRAIL_DOMAIN_RESOURCE, 14};
    gputrail_kind dispatches = GPUTRAIL_KIND_KERNEL_DISPATCH;
    gputrail_selection selection;
    static const gputrail_operation enqueue = {GPUTRAIL_DOMAIN_KERNEL_DISPATCH, 1};
    gputrail_subscriber subscriber, counter;
    gputrail_context watching;
    gputrail_buffer buffer;
    uint64_t number = 0;
    double real = 0;
    int32_t is = 0;

    EXPECT(gputrail_buffer_create(NULL, deliver, NULL, &buffer), GPUTRAIL_OK);
    EXPECT(gputrail_context_create(&watching), GPUTRAIL_OK);
    memset(&selection, 0, sizeof selection);
    selection.size = sizeof selection;
    selection.kinds = &dispatches;
    selection.kind_count = 1;
    EXPECT(gputrail_context_trace_to(watching, buffer, &selection), GPUTRAIL_OK);
    EXPECT(gputrail_subscribe(watching, &known, 1, agent_known, NULL, &subscriber), GPUTRAIL_OK);
    EXPECT(gputrail_subscribe(watching, &enqueue, 1, enqueued, NULL, &counter), GPUTRAIL_OK);
    EXPECT(gputrail_context_start(watching), GPUTRAIL_OK);

    simulate(0, 1);
    EXPECT(gputrail_buffer_flush(buffer), GPUTRAIL_OK);
    CHECK(!in_batch);
    EXPECT(gputrail_counter_sessions_uint64(opened, session, 7, waves_of, &number), GPUTRAIL_OK);
    CHECK(kernels > 20 && number == waves);
    EXPECT(gputrail_counter_sessions_double(opened, session, 7, busy_of, &real), GPUTRAIL_OK);
    CHECK(real > 0);
    EXPECT(gputrail_counter_sessions_double(opened, session, 7, waves_of, &real), GPUTRAIL_WRONG_TYPE);
    EXPECT(gputrail_counter_sessions_uint64(opened, session, 7, busy_of, &number), GPUTRAIL_WRONG_TYPE);
    EXPECT(gputrail_counter_sessions_is_ready(opened, session, &is), GPUTRAIL_OK);
    CHECK(is == 1);
    EXPECT(gputrail_counter_sessions_close(opened), GPUTRAIL_OK);

    /* Counters whose pass had no kernels are 0, and what is divided by them has no value. */
    simulate(1, 3);
    EXPECT(gputrail_buffer_flush(buffer), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_is_pass_complete(opened, session, 0, &is), GPUTRAIL_OK);
    CHECK(is == 1);
    EXPECT(gputrail_counter_sessions_is_pass_complete(opened, session, 3, &is), GPUTRAIL_OK);
    CHECK(is == 0);
    {
        uint64_t requests = 0;
        EXPECT(gputrail_counter_sessions_uint64(opened, session, 7, waves_of, &number), GPUTRAIL_OK);
        EXPECT(gputrail_counter_sessions_uint64(opened, session, 7, reads_of, &requests), GPUTRAIL_OK);
        CHECK((number == waves) != (requests > 0) || (number == 0 && requests == 0));
        if (number == 0) EXPECT(gputrail_counter_sessions_double(opened, session, 7, busy_of, &real), GPUTRAIL_NO_VALUE);
    }
    EXPECT(gputrail_counter_sessions_close(opened), GPUTRAIL_OK);

    /* Results that would have to wait in a callback are refused there, and come later. */
    end_at = 5;
    run(0, 1);
    CHECK(end_at == 0);
    EXPECT(gputrail_counter_sessions_uint64(opened, session, 7, waves_of, &number), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_flush(buffer), GPUTRAIL_OK);
    CHECK(number > 0 && number < waves);
    EXPECT(gputrail_counter_sessions_close(opened), GPUTRAIL_OK);
    EXPECT(gputrail_context_destroy(watching), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_destroy(buffer), GPUTRAIL_OK);
}

static cl_command_queue queue, other;
static cl_kernel kernel;

static void launch(cl_command_queue in, int times) {
    size_t items = ITEMS;
    while (times--) CHECK(clEnqueueNDRangeKernel(in, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) == CL_SUCCESS);
}

/* A session of two samples, of one and of three kernels, in as many passes as it needs. */
static uint32_t measure(uint32_t passes) {
    uint32_t number = 0;
    EXPECT(gputrail_counter_sessions_begin(opened, &number), GPUTRAIL_OK);
    while (passes--) {
        EXPECT(gputrail_counter_sessions_begin_pass(opened), GPUTRAIL_OK);
        EXPECT(gputrail_counter_sessions_begin_sample(opened, 1), GPUTRAIL_OK);
        launch(queue, 1);
        EXPECT(gputrail_counter_sessions_end_sample(opened), GPUTRAIL_OK);
        /* Of no sample. */
        launch(queue, 1);
        EXPECT(gputrail_counter_sessions_begin_sample(opened, 20), GPUTRAIL_OK);
        launch(queue, 3);
        EXPECT(gputrail_counter_sessions_end_sample(opened), GPUTRAIL_OK);
        EXPECT(gputrail_counter_sessions_end_pass(opened), GPUTRAIL_OK);
    }
    EXPECT(gputrail_counter_sessions_end(opened), GPUTRAIL_OK);
    return number;
}

static void refusals(uint32_t clock_of, uint32_t faults_of) {
    uint32_t number = 0, passes = 0, last;
    uint64_t value = 0;
    double real;
    int32_t is = 1;
    size_t count = 0;
    EXPECT(gputrail_counter_sessions_find(opened, "TASK_CLOK", &number), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_counter_sessions_find(opened, NULL, &number), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_counter_sessions_find(opened, "TASK_CLOCK", NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_counter_sessions_enable(opened, 9999), GPUTRAIL_OUT_OF_RANGE);
    EXPECT(gputrail_counter_sessions_disable(opened, 9999), GPUTRAIL_OUT_OF_RANGE);
    EXPECT(gputrail_counter_sessions_begin_pass(opened), GPUTRAIL_SESSION_NOT_STARTED);
    EXPECT(gputrail_counter_sessions_begin_sample(opened, 1), GPUTRAIL_SESSION_NOT_STARTED);
    EXPECT(gputrail_counter_sessions_end(opened), GPUTRAIL_SESSION_NOT_STARTED);
    EXPECT(gputrail_counter_sessions_end_pass(opened), GPUTRAIL_PASS_NOT_STARTED);
    EXPECT(gputrail_counter_sessions_end_sample(opened), GPUTRAIL_SAMPLE_NOT_STARTED);
    EXPECT(gputrail_counter_sessions_begin(opened, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_counter_sessions_enable_all(opened, 0), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_begin(opened, &number), GPUTRAIL_NO_COUNTERS_ENABLED);
    EXPECT(gputrail_counter_sessions_passes(opened, &passes), GPUTRAIL_OK);
    CHECK(passes == 0);
    EXPECT(gputrail_counter_sessions_disable(opened, clock_of), GPUTRAIL_NOT_ENABLED);
    EXPECT(gputrail_counter_sessions_enable(opened, clock_of), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_enable(opened, clock_of), GPUTRAIL_ALREADY_ENABLED);
    EXPECT(gputrail_counter_sessions_enable(opened, faults_of), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_passes(opened, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_counter_sessions_passes(opened, &passes), GPUTRAIL_OK);
    CHECK(passes == 2);

    /* Within a session. */
    EXPECT(gputrail_counter_sessions_begin(opened, &number), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_begin(opened, &passes), GPUTRAIL_SESSION_STARTED);
    EXPECT(gputrail_counter_sessions_enable(opened, clock_of), GPUTRAIL_SESSION_STARTED);
    EXPECT(gputrail_counter_sessions_disable(opened, clock_of), GPUTRAIL_SESSION_STARTED);
    EXPECT(gputrail_counter_sessions_enable_all(opened, 1), GPUTRAIL_SESSION_STARTED);
    EXPECT(gputrail_counter_sessions_close(opened), GPUTRAIL_SESSION_STARTED);
    EXPECT(gputrail_counter_sessions_begin_sample(opened, 1), GPUTRAIL_PASS_NOT_STARTED);
    EXPECT(gputrail_counter_sessions_begin_pass(opened), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_begin_pass(opened), GPUTRAIL_PASS_STARTED);
    EXPECT(gputrail_counter_sessions_end(opened), GPUTRAIL_PASS_STARTED);
    EXPECT(gputrail_counter_sessions_end_sample(opened), GPUTRAIL_SAMPLE_NOT_STARTED);
    EXPECT(gputrail_counter_sessions_begin_sample(opened, 1), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_begin_sample(opened, 2), GPUTRAIL_SAMPLE_STARTED);
    EXPECT(gputrail_counter_sessions_end_pass(opened), GPUTRAIL_SAMPLE_STARTED);
    EXPECT(gputrail_counter_sessions_end_sample(opened), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_begin_sample(opened, 1), GPUTRAIL_INVALID_ARGUMENT);
    EXPECT(gputrail_counter_sessions_end_pass(opened), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_is_ready(opened, number, &is), GPUTRAIL_OK);
    CHECK(is == 0);
    EXPECT(gputrail_counter_sessions_uint64(opened, number, 1, clock_of, &value), GPUTRAIL_NO_SUCH_SESSION);
    EXPECT(gputrail_counter_sessions_begin_pass(opened), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_end_pass(opened), GPUTRAIL_SAMPLES_DIFFER);
    EXPECT(gputrail_counter_sessions_end(opened), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_is_sample_ready(opened, number, 1, &is), GPUTRAIL_NO_SUCH_SAMPLE);
    EXPECT(gputrail_counter_sessions_uint64(opened, number, 1, clock_of, &value), GPUTRAIL_NO_SUCH_SAMPLE);
    EXPECT(gputrail_counter_sessions_is_ready(opened, number, &is), GPUTRAIL_OK);
    CHECK(is == 0);

    last = number = measure(2);
    EXPECT(gputrail_counter_sessions_uint64(opened, number, 1, 9999, &value), GPUTRAIL_OUT_OF_RANGE);
    EXPECT(gputrail_counter_sessions_uint64(opened, number, 1, clock_of == 0 ? 1 : 0, &value),
           faults_of == (clock_of == 0 ? 1u : 0u) ? GPUTRAIL_OK : GPUTRAIL_NOT_ENABLED);
    EXPECT(gputrail_counter_sessions_uint64(opened, number, 1, clock_of, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_counter_sessions_double(opened, number, 1, clock_of, &real), GPUTRAIL_WRONG_TYPE);
    EXPECT(gputrail_counter_sessions_values(opened, number, 1, values, 1, &count), GPUTRAIL_TOO_SMALL);
    CHECK(count == 2);
    EXPECT(gputrail_counter_sessions_is_ready(opened, 999, &is), GPUTRAIL_NO_SUCH_SESSION);
    EXPECT(gputrail_counter_sessions_is_sample_ready(opened, 999, 1, &is), GPUTRAIL_NO_SUCH_SESSION);
    EXPECT(gputrail_counter_sessions_is_pass_complete(opened, 999, 1, &is), GPUTRAIL_NO_SUCH_SESSION);
    EXPECT(gputrail_counter_sessions_samples(opened, 999, &number), GPUTRAIL_NO_SUCH_SESSION);
    EXPECT(gputrail_counter_sessions_csv(opened, 999, 1, NULL, 0, &count), GPUTRAIL_NO_SUCH_SESSION);
    EXPECT(gputrail_counter_sessions_end(none), GPUTRAIL_NO_SUCH_COUNTER_SESSIONS);
    EXPECT(gputrail_counter_sessions_close(none), GPUTRAIL_NO_SUCH_COUNTER_SESSIONS);
    EXPECT(gputrail_counter_sessions_counters(none, counters, MOST, &count), GPUTRAIL_NO_SUCH_COUNTER_SESSIONS);
    EXPECT(gputrail_counter_sessions_find(none, "A", &number), GPUTRAIL_NO_SUCH_COUNTER_SESSIONS);
    EXPECT(gputrail_counter_sessions_enable(none, 0), GPUTRAIL_NO_SUCH_COUNTER_SESSIONS);
    EXPECT(gputrail_counter_sessions_disable(none, 0), GPUTRAIL_NO_SUCH_COUNTER_SESSIONS);
    EXPECT(gputrail_counter_sessions_enable_all(none, 1), GPUTRAIL_NO_SUCH_COUNTER_SESSIONS);
    EXPECT(gputrail_counter_sessions_enabled(none, enabled, MOST, &count), GPUTRAIL_NO_SUCH_COUNTER_SESSIONS);
    EXPECT(gputrail_counter_sessions_passes(none, &number), GPUTRAIL_NO_SUCH_COUNTER_SESSIONS);
    EXPECT(gputrail_counter_sessions_begin(none, &number), GPUTRAIL_NO_SUCH_COUNTER_SESSIONS);
    EXPECT(gputrail_counter_sessions_begin_pass(none), GPUTRAIL_NO_SUCH_COUNTER_SESSIONS);
    EXPECT(gputrail_counter_sessions_end_pass(none), GPUTRAIL_NO_SUCH_COUNTER_SESSIONS);
    EXPECT(gputrail_counter_sessions_begin_sample(none, 1), GPUTRAIL_NO_SUCH_COUNTER_SESSIONS);
    EXPECT(gputrail_counter_sessions_end_sample(none), GPUTRAIL_NO_SUCH_COUNTER_SESSIONS);
    EXPECT(gputrail_counter_sessions_is_pass_complete(none, 1, 0, &is), GPUTRAIL_NO_SUCH_COUNTER_SESSIONS);
    EXPECT(gputrail_counter_sessions_values(none, 1, 1, values, MOST, &count), GPUTRAIL_NO_SUCH_COUNTER_SESSIONS);
    EXPECT(gputrail_counter_sessions_find(opened, "\xff", &number), GPUTRAIL_INVALID_ARGUMENT);
    EXPECT(gputrail_counter_sessions_counters(opened, counters, 1, &count), GPUTRAIL_TOO_SMALL);
    EXPECT(gputrail_counter_sessions_counters(opened, counters, MOST, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_counter_sessions_enabled(opened, enabled, 1, &count), GPUTRAIL_TOO_SMALL);
    EXPECT(gputrail_counter_sessions_enabled(opened, enabled, MOST, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_counter_sessions_is_pass_complete(opened, 1, 0, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_counter_sessions_values(opened, 999, 1, values, MOST, &count), GPUTRAIL_NO_SUCH_SESSION);
    EXPECT(gputrail_counter_sessions_values(opened, last, 999, values, MOST, &count), GPUTRAIL_NO_SUCH_SAMPLE);
    EXPECT(gputrail_counter_sessions_values(opened, last, 1, values, MOST, NULL), GPUTRAIL_NULL_POINTER);
}

static void of_own_kernels(void) {
    static const char *source = "kernel void hot(global float *out, int rounds) {\n"
                                "    float x = get_global_id(0);\n"
                                "    for (int j = 0; j < rounds; j++) { x = x * 0.999f + 0.5f; }\n"
                                "    out[get_global_id(0)] = x;\n"
                                "}\n";
    gputrail_counter_group_options group_options;
    gputrail_counter_group group;
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_program program;
    cl_mem out;
    cl_event waits;
    gputrail_agent_id agent;
    uint32_t clock_of, faults_of, used_of, first, last = 0, samples = 0, number, passes = 0;
    uint64_t one = 0, three = 0, wrong = 0;
    double used = 0;
    int32_t is = 0;
    size_t count = 0, length = 0;
    char csv[2000];
    int rounds = 20000, of;

    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    queue = clCreateCommandQueue(context, device, 0, NULL);
    other = clCreateCommandQueue(context, device, 0, NULL);
    program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
    CHECK(clBuildProgram(program, 1, &device, NULL, NULL, NULL) == CL_SUCCESS);
    kernel = clCreateKernel(program, "hot", NULL);
    out = clCreateBuffer(context, CL_MEM_WRITE_ONLY, ITEMS * sizeof(float), NULL, NULL);
    clSetKernelArg(kernel, 0, sizeof out, &out);
    clSetKernelArg(kernel, 1, sizeof rounds, &rounds);
    EXPECT(gputrail_agent_of((uint64_t)(size_t)device, &agent), GPUTRAIL_OK);
    options.per_pass = 1;
    EXPECT(gputrail_queue_of((uint64_t)(size_t)queue, &options.queue), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_open(999, &options, &none), GPUTRAIL_NO_SUCH_AGENT);
    EXPECT(gputrail_counter_sessions_open(agent, &options, NULL), GPUTRAIL_NULL_POINTER);
    options.size = 3;
    EXPECT(gputrail_counter_sessions_open(agent, &options, &none), GPUTRAIL_WRONG_SIZE);
    options.size = sizeof options;
    EXPECT(gputrail_counter_sessions_open(agent, &options, &opened), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_counters(opened, counters, MOST, &count), GPUTRAIL_OK);
    CHECK(count > 3);
    EXPECT(gputrail_counter_sessions_find(opened, "CPUS_UTILIZED", &used_of), GPUTRAIL_OK);
    CHECK(used_of < count && strcmp(counters[used_of].name, "CPUS_UTILIZED") == 0 && counters[used_of].description[0]);
    CHECK(counters[used_of].value_type == GPUTRAIL_COUNTER_VALUE_TYPE_DOUBLE);
    clock_of = enable("Task_Clock");
    faults_of = enable("PAGE_FAULTS");
    refusals(clock_of, faults_of);

    /* A metric of counters that are counted in the first pass, and the time of the last one. */
    EXPECT(gputrail_counter_sessions_enable(opened, used_of), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_enabled(opened, enabled, MOST, &count), GPUTRAIL_OK);
    CHECK(count == 3 && enabled[0] < enabled[1] && enabled[1] < enabled[2]);
    EXPECT(gputrail_counter_sessions_passes(opened, &passes), GPUTRAIL_OK);
    CHECK(passes == 2);
    first = measure(passes);
    EXPECT(gputrail_counter_sessions_is_ready(opened, first, &is), GPUTRAIL_OK);
    CHECK(is == 1);
    EXPECT(gputrail_counter_sessions_is_sample_ready(opened, first, 20, &is), GPUTRAIL_OK);
    CHECK(is == 1);
    EXPECT(gputrail_counter_sessions_samples(opened, first, &samples), GPUTRAIL_OK);
    CHECK(samples == 2);
    EXPECT(gputrail_counter_sessions_uint64(opened, first, 1, clock_of, &one), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_uint64(opened, first, 20, clock_of, &three), GPUTRAIL_OK);
    CHECK(one > 0 && three > one);
    EXPECT(gputrail_counter_sessions_double(opened, first, 20, used_of, &used), GPUTRAIL_OK);
    CHECK(used > 0);
    EXPECT(gputrail_counter_sessions_values(opened, first, 20, values, MOST, &count), GPUTRAIL_OK);
    CHECK(count == 3);
    for (of = 0; of < 3; of++) {
        CHECK(values[of].counter == enabled[of] && values[of].invalid == 0);
        if (values[of].counter == clock_of) CHECK(values[of].value == three);
    }
    EXPECT(gputrail_counter_sessions_csv(opened, first, 1, csv, 3, &length), GPUTRAIL_TOO_SMALL);
    EXPECT(gputrail_counter_sessions_csv(opened, first, 1, csv, sizeof csv, &length), GPUTRAIL_OK);
    CHECK(strlen(csv) == length && strncmp(csv, "Identifier, ", 12) == 0 && strstr(csv, "TASK_CLOCK, "));
    CHECK(strstr(csv, "\nsession: ") && strstr(csv, "; sample: 20, "));

    /* Kernels of another queue belong to no sample. */
    EXPECT(gputrail_counter_sessions_disable(opened, faults_of), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_disable(opened, used_of), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_begin(opened, &number), GPUTRAIL_OK);
    memset(&group_options, 0, sizeof group_options);
    group_options.size = sizeof group_options;
    group_options.counters = "TASK_CLOCK";
    EXPECT(gputrail_counter_group_create(agent, &group_options, &group), GPUTRAIL_OK);
    EXPECT(gputrail_counter_group_start(group), GPUTRAIL_CONTEXT_CONFLICT);
    EXPECT(gputrail_counter_sessions_begin_pass(opened), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_begin_sample(opened, 1), GPUTRAIL_OK);
    launch(other, 2);
    EXPECT(gputrail_counter_sessions_end_sample(opened), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_end_pass(opened), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_end(opened), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_uint64(opened, number, 1, clock_of, &wrong), GPUTRAIL_OK);
    CHECK(wrong == 0);
    /* The end of the session has made room. */
    EXPECT(gputrail_counter_group_start(group), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_begin(opened, &number), GPUTRAIL_CONTEXT_CONFLICT);
    EXPECT(gputrail_counter_group_destroy(group), GPUTRAIL_OK);

    /* The latest sessions are kept. */
    for (of = 0; of < 10; of++) last = measure(1);
    CHECK(last > first + 9);
    EXPECT(gputrail_counter_sessions_uint64(opened, first, 1, clock_of, &one), GPUTRAIL_NO_SUCH_SESSION);
    /* While the agent is read at a period, it counts no kernels. */
    group_options.period = 1000000;
    EXPECT(gputrail_counter_group_create(agent, &group_options, &group), GPUTRAIL_OK);
    EXPECT(gputrail_counter_group_start(group), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_open(agent, &options, &none), GPUTRAIL_COUNTERS_NOT_AVAILABLE);
    EXPECT(gputrail_counter_sessions_passes(opened, &passes), GPUTRAIL_COUNTERS_NOT_AVAILABLE);
    EXPECT(gputrail_counter_group_destroy(group), GPUTRAIL_OK);
    /* Each of them has a buffer, of which there are 32. */
    of = 0;
    while (gputrail_counter_sessions_open(agent, &options, &many[of]) != GPUTRAIL_TOO_MANY && of < 39) of++;
    CHECK(of > 10 && of < 39);
    while (of--) EXPECT(gputrail_counter_sessions_close(many[of]), GPUTRAIL_OK);
    for (number = last - 3; number <= last; number++)
        EXPECT(gputrail_counter_sessions_uint64(opened, number, 1, clock_of, &one), GPUTRAIL_OK);

    /* Kernels that may wait for the program run without being counted, which makes their sample invalid. */
    waits = clCreateUserEvent(context, NULL);
    number = measure(1);
    EXPECT(gputrail_counter_sessions_uint64(opened, number, 1, clock_of, &one), GPUTRAIL_NO_VALUE);
    EXPECT(gputrail_counter_sessions_values(opened, number, 1, values, MOST, &count), GPUTRAIL_OK);
    CHECK(count == 1 && values[0].invalid == GPUTRAIL_COUNTER_INVALID_NOT_AWAITED);
    clReleaseEvent(waits);
    EXPECT(gputrail_counter_sessions_close(opened), GPUTRAIL_OK);
    EXPECT(gputrail_counter_sessions_passes(opened, &passes), GPUTRAIL_NO_SUCH_COUNTER_SESSIONS);

    clReleaseMemObject(out);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(other);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
}

int main(void) {
    uint32_t number = 0;
    int32_t is = 0;
    size_t count = 0;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    EXPECT(gputrail_counter_sessions_open(1, &options, &opened), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_sessions_end(opened), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_sessions_close(none), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_sessions_counters(none, counters, MOST, &count), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_sessions_find(none, "A", &number), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_sessions_enable(none, 0), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_sessions_disable(none, 0), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_sessions_enable_all(none, 1), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_sessions_enabled(none, enabled, MOST, &count), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_sessions_passes(none, &number), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_sessions_begin(none, &number), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_sessions_begin_pass(none), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_sessions_end_pass(none), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_sessions_begin_sample(none, 1), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_sessions_end_sample(none), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_sessions_is_pass_complete(none, 1, 0, &is), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_sessions_values(none, 1, 1, values, MOST, &count), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_initialise(), GPUTRAIL_OK);
    EXPECT(gputrail_observe_opencl(), GPUTRAIL_OK);
    on_the_simulated_gpu();
    of_own_kernels();
    EXPECT(gputrail_finalise(), GPUTRAIL_OK);
    printf("%s\n", failures ? "failed" : "passed");
    return failures > 0;
}
