/* A program that is linked with gputrail and has no GPU: it runs the simulated one, and observes everything there is,
   stochastic samples with their bit fields included. */
#include "gputrail.h"
#include <stdio.h>
#include <string.h>

static int failures;

static void check(const char *what, int holds) {
    char text[300] = "";
    if (holds) return;
    gputrail_last_error(text, sizeof text);
    printf("does not hold: %s (last error: %s)\n", what, text);
    failures++;
}
#define CHECK(what) check(#what, (what) ? 1 : 0)

static gputrail_buffer buffer;
static gputrail_context sampling;
static uint64_t calls, kernels, copies, samples, issued, waiting, stalled, placed, counted, named, refused, agents;

static void deliver(const gputrail_batch *batch, void *user_data) {
    const gputrail_record_header *record = NULL;
    (void)user_data;
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK) {
        const gputrail_record_stochastic_sample *sample = (const gputrail_record_stochastic_sample *)record;
        gputrail_work_times times;
        if (record->kind == GPUTRAIL_KIND_API) calls++;
        if (record->kind == GPUTRAIL_KIND_MEMORY_COPY) copies++;
        if (record->kind == GPUTRAIL_KIND_KERNEL_DISPATCH)
            kernels += gputrail_times_of(record, &times) == GPUTRAIL_OK && times.end > times.start;
        if (record->kind != GPUTRAIL_KIND_PC_SAMPLE_STOCHASTIC) continue;
        samples++;
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
    CHECK(gputrail_context_sample(sampling, buffer, agent->id, &options) == GPUTRAIL_OK);
    if (agents == 2) CHECK(gputrail_context_start(sampling) == GPUTRAIL_OK);
    refused += gputrail_simulation_run(NULL, NULL) == GPUTRAIL_BUSY;
}

int main(void) {
    static const gputrail_operation known = {GPUTRAIL_DOMAIN_RESOURCE, 14};
    gputrail_simulation_options options;
    gputrail_simulation_report report;
    gputrail_context context;
    gputrail_subscriber subscriber;
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
    CHECK(gputrail_context_start(context) == GPUTRAIL_OK);
    options.size = sizeof options;
    options.seed = 7;
    options.steps = 2;
    CHECK(gputrail_simulation_run(&options, &report) == GPUTRAIL_OK);
    CHECK(gputrail_finalise() == GPUTRAIL_OK);

    CHECK(report.devices == 2 && agents == 2 && refused == 2);
    CHECK(report.kernels > 100 && kernels == report.kernels);
    CHECK(copies == report.copies && calls == report.calls);
    CHECK(samples > 1000 && issued + waiting == samples && named == samples);
    CHECK(issued > 0 && waiting > 0 && stalled > 0 && placed > 0 && counted > 0);
    printf("%s\n", failures ? "failed" : "passed");
    return failures > 0;
}
