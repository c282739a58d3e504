/* A program that is linked with gputrail and has no GPU: it runs the simulated one, and observes everything there is,
   stochastic samples with their bit fields included. */
#include "gputrail.h"
#include "checks.h"
#include <stdio.h>
#include <string.h>

/* The external ids that are pushed for the contexts, and those that are supplied for launches and for kernels. */
static const gputrail_external_id OF_CONTEXT = 1111, OF_SAMPLES = 2222, OF_OTHER = 3333, OF_LAUNCH = 4444,
                                  OF_KERNEL = 5555;

static gputrail_buffer buffer, others;
static gputrail_context sampling;
static gputrail_operation launch, enqueue;
static uint64_t requests, launches, children, wrong_ids, pushed_ids;
static uint64_t calls, kernels, copies, samples, issued, waiting, stalled, placed, counted, named, refused, agents;

/* Calls, kernels and copies of the first tool have its ids, samples those of the context that samples. */
static void check_ids(const gputrail_record_header *record, gputrail_external_id kernel) {
    const gputrail_record_api *call = (const gputrail_record_api *)record;
    const gputrail_record_kernel_dispatch *dispatch = (const gputrail_record_kernel_dispatch *)record;
    const gputrail_record_memory_copy *copy = (const gputrail_record_memory_copy *)record;
    gputrail_external_id pushed = kernel == OF_KERNEL ? OF_CONTEXT : kernel;
    if (record->kind == GPUTRAIL_KIND_API) {
        int is_launch = kernel == OF_KERNEL && call->operation.domain == launch.domain &&
                        call->operation.number == launch.number;
        pushed_ids += call->external == pushed;
        wrong_ids += call->external != (is_launch ? OF_LAUNCH : pushed);
    }
    if (record->kind == GPUTRAIL_KIND_KERNEL_DISPATCH) wrong_ids += dispatch->work.external != kernel;
    if (record->kind == GPUTRAIL_KIND_MEMORY_COPY) wrong_ids += copy->work.external != pushed;
}

/* A stream is found by the handle that its description has; it and its context get names. */
static void look_up_stream(gputrail_stream_id id) {
    static gputrail_string_id own_name;
    gputrail_record_stream stream;
    gputrail_record_context of;
    gputrail_stream_id found = 0;
    CHECK(gputrail_describe_stream(id, &stream) == GPUTRAIL_OK);
    CHECK(gputrail_stream_of(stream.handle, &found) == GPUTRAIL_OK && found == id);
    CHECK(stream.flag == GPUTRAIL_STREAM_FLAG_DEFAULT || stream.flag == GPUTRAIL_STREAM_FLAG_NON_BLOCKING);
    if (stream.name != own_name) {
        char name[32] = "";
        gputrail_runtime_context_id context = 0;
        CHECK(gputrail_name_stream((const void *)(uintptr_t)stream.handle, "a stream", &found) == GPUTRAIL_OK && found == id);
        CHECK(gputrail_describe_stream(id, &stream) == GPUTRAIL_OK);
        own_name = stream.name;
        CHECK(gputrail_string(own_name, name, sizeof name, NULL) == GPUTRAIL_OK && strcmp(name, "a stream") == 0);
        CHECK(gputrail_describe_runtime_context(stream.context, &of) == GPUTRAIL_OK);
        CHECK(gputrail_name_runtime_context((const void *)(uintptr_t)of.handle, "a context", &context) == GPUTRAIL_OK && context == of.id);
        CHECK(gputrail_describe_runtime_context(stream.context, &of) == GPUTRAIL_OK);
        CHECK(gputrail_string(of.name, name, sizeof name, NULL) == GPUTRAIL_OK && strcmp(name, "a context") == 0);
    }
}

static void deliver_to_other(const gputrail_batch *batch, void *user_data) {
    const gputrail_record_header *record = NULL;
    (void)user_data;
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK) check_ids(record, OF_OTHER);
}

static int32_t supply(const gputrail_external_request *request, gputrail_external_id *id, void *user_data) {
    int is_kernel = request->operation.domain == enqueue.domain;
    (void)user_data;
    requests++;
    CHECK(request->kernel != 0 || !is_kernel);
    *id = is_kernel ? OF_KERNEL : OF_LAUNCH;
    return 1;
}

static void deliver(const gputrail_batch *batch, void *user_data) {
    const gputrail_record_header *record = NULL;
    (void)user_data;
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK) {
        const gputrail_record_stochastic_sample *sample = (const gputrail_record_stochastic_sample *)record;
        gputrail_work_times times;
        check_ids(record, OF_KERNEL);
        if (record->kind == GPUTRAIL_KIND_API) {
            calls++;
            launches += ((const gputrail_record_api *)record)->operation.number == launch.number;
        }
        if (record->kind == GPUTRAIL_KIND_MEMORY_COPY) copies++;
        if (record->kind == GPUTRAIL_KIND_KERNEL_DISPATCH) {
            gputrail_stream_id stream = ((const gputrail_record_kernel_dispatch *)record)->work.stream;
            /* Kernels that kernels launch have no stream. */
            if (stream == 0) children++;
            else look_up_stream(stream);
        }
        if (record->kind == GPUTRAIL_KIND_KERNEL_DISPATCH)
            kernels += gputrail_times_of(record, &times) == GPUTRAIL_OK && times.end > times.start;
        if (record->kind != GPUTRAIL_KIND_PC_SAMPLE_STOCHASTIC) continue;
        samples++;
        wrong_ids += sample->external != (sample->work ? OF_SAMPLES : 0);
        placed += gputrail_hardware_id_compute_unit(sample->hardware) > 0;
        counted += sample->has_memory_counters && gputrail_memory_counters_load(sample->memory_counters) > 0;
        if (gputrail_issue_issued(sample->issue)) {
            issued++;
            named += gputrail_instruction_type_name(gputrail_issue_instruction(sample->issue)) != NULL;
        } else {
            gputrail_not_issued reason = (gputrail_not_issued)gputrail_snapshot_reason_not_issued(sample->snapshot);
            waiting++;
            named += gputrail_not_issued_name(reason) != NULL;
        }
        stalled += gputrail_snapshot_stall_valu(sample->snapshot);
    }
}

/* The first agent has a link to the host, the second also one to the first. */
static void look_up_links(gputrail_agent_id agent, size_t number) {
    gputrail_record_link links[4];
    size_t count = 0;
    CHECK(gputrail_agent_links(agent, links, 4, &count) == GPUTRAIL_OK && count == number);
    CHECK(links[0].agent == agent && links[0].peer == 0 && links[0].what == GPUTRAIL_LINK_KIND_PCIE);
    CHECK(links[0].bandwidth > 0 && links[0].width == 16 && links[0].upstream != 0);
    if (number < 2) return;
    CHECK(links[1].peer != 0 && links[1].peer != agent && links[1].what == GPUTRAIL_LINK_KIND_PEER);
    CHECK(links[1].flags & GPUTRAIL_LINK_FLAG_PEER_ACCESS);
    CHECK(gputrail_agent_links(agent, links, 1, &count) == GPUTRAIL_TOO_SMALL && count == 2);
}

/* Both agents are known before the program's first call: their sampling begins with the second one. */
static void agent_known(gputrail_callback *callback, void *user_data) {
    const gputrail_record_agent *agent = (const gputrail_record_agent *)callback->record;
    gputrail_sampling_options options;
    (void)user_data;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.method = GPUTRAIL_SAMPLING_METHOD_STOCHASTIC;
    options.unit = GPUTRAIL_SAMPLING_UNIT_CYCLES;
    options.interval = 1 << 20;
    CHECK(agent != NULL && calls == 0);
    if (agents++ == 0) CHECK(gputrail_context_create(&sampling) == GPUTRAIL_OK);
    look_up_links(agent->id, (size_t)agents);
    CHECK(gputrail_context_push_external(sampling, GPUTRAIL_EXTERNAL_KIND_CUSTOM0, OF_SAMPLES) == GPUTRAIL_OK);
    CHECK(gputrail_context_sample(sampling, buffer, agent->id, &options) == GPUTRAIL_OK);
    if (agents == 2) CHECK(gputrail_context_start(sampling) == GPUTRAIL_OK);
    refused += gputrail_simulation_run(NULL, NULL) == GPUTRAIL_BUSY;
}

int main(void) {
    static const gputrail_operation known = {GPUTRAIL_DOMAIN_RESOURCE, 14};
    gputrail_simulation_options options;
    gputrail_simulation_report report;
    gputrail_operation supplied[2];
    gputrail_context context, other;
    gputrail_subscriber subscriber, supplier;
    gputrail_external_id id;
    memset(&options, 0, sizeof options);
    memset(&report, 0, sizeof report);
    CHECK(gputrail_simulation_run(&options, NULL) == GPUTRAIL_WRONG_SIZE);
    CHECK(gputrail_simulation_run(NULL, &report) == GPUTRAIL_WRONG_SIZE);
    report.size = sizeof report;
    CHECK(gputrail_simulation_run(NULL, &report) == GPUTRAIL_NOT_INITIALISED);

    CHECK(gputrail_initialise() == GPUTRAIL_OK);
    CHECK(gputrail_buffer_create(NULL, deliver, NULL, &buffer) == GPUTRAIL_OK);
    CHECK(gputrail_context_create(&context) == GPUTRAIL_OK);
    CHECK(gputrail_context_trace_to(context, buffer, NULL) == GPUTRAIL_OK);
    CHECK(gputrail_subscribe(context, &known, 1, agent_known, NULL, &subscriber) == GPUTRAIL_OK);
    CHECK(gputrail_operation_by_name(GPUTRAIL_DOMAIN_SIM, "simLaunchKernel", &launch) == GPUTRAIL_OK);
    CHECK(gputrail_operation_by_name(GPUTRAIL_DOMAIN_KERNEL_DISPATCH, "kernel enqueue", &enqueue) == GPUTRAIL_OK);
    supplied[0] = launch;
    supplied[1] = enqueue;
    CHECK(gputrail_external_supply(context, supplied, 2, supply, NULL, &supplier) == GPUTRAIL_OK);
    CHECK(gputrail_context_start(context) == GPUTRAIL_OK);
    CHECK(gputrail_buffer_create(NULL, deliver_to_other, NULL, &others) == GPUTRAIL_OK);
    CHECK(gputrail_context_create(&other) == GPUTRAIL_OK);
    CHECK(gputrail_context_trace_to(other, others, NULL) == GPUTRAIL_OK);
    CHECK(gputrail_context_start(other) == GPUTRAIL_OK);
    CHECK(gputrail_context_push_external(context, GPUTRAIL_EXTERNAL_KIND_CUSTOM0, OF_CONTEXT) == GPUTRAIL_OK);
    CHECK(gputrail_context_push_external(other, GPUTRAIL_EXTERNAL_KIND_CUSTOM1, OF_OTHER) == GPUTRAIL_OK);
    CHECK(gputrail_context_current_external(context, &id) == GPUTRAIL_OK && id == OF_CONTEXT);
    CHECK(gputrail_external_current() == 0);
    options.size = sizeof options;
    options.seed = 7;
    options.steps = 2;
    CHECK(gputrail_simulation_run(&options, &report) == GPUTRAIL_OK);
    CHECK(gputrail_context_pop_external(context, GPUTRAIL_EXTERNAL_KIND_CUSTOM1, &id) == GPUTRAIL_STACK_EMPTY);
    CHECK(gputrail_context_pop_external(context, GPUTRAIL_EXTERNAL_KIND_CUSTOM0, &id) == GPUTRAIL_OK);
    CHECK(id == OF_CONTEXT && gputrail_context_pop_external(other, GPUTRAIL_EXTERNAL_KIND_CUSTOM1, NULL) == GPUTRAIL_OK);
    CHECK(gputrail_finalise() == GPUTRAIL_OK);

    CHECK(report.devices == 2 && agents == 2 && refused == 2);
    CHECK(report.kernels > 100 && kernels == report.kernels);
    CHECK(copies == report.copies && calls == report.calls);
    CHECK(samples > 1000 && issued + waiting == samples && named == samples);
    CHECK(issued > 0 && waiting > 0 && stalled > 0 && placed > 0 && counted > 0);
    /* Kernels of graphs are launched by no call of their own, and those that kernels launch by none. */
    CHECK(children > 0 && requests == report.kernels - children + launches && launches > 100);
    CHECK(wrong_ids == 0 && pushed_ids > report.calls);
    printf("%s\n", failures ? "failed" : "passed");
    return failures > 0;
}
