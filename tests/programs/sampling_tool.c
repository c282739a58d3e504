/* A tool that has all agents sampled as the guide says (`guide.h` is its code), or with METHOD=stochastic by the hardware, or with
   COUNT=NAMES counts on all of them. It tells what each agent gave, looks up the lines of single samples, and compares the words for
   why waves waited. Counters need several passes, which are told one by one. With GUIDE=1 it does the other things that the
   guide shows: a buffer in its own memory, a forced flush, the line of a sample. */
#include "gputrail.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guide.h"

enum { AGENTS = 8 };

static int failures;
static unsigned long samples[AGENTS], values[AGENTS], lines, refined, replayed, completed, pending, early, in_own_memory;
static gputrail_buffer buffer, lent;

static void check(const char *what, int line, int holds) {
    if (holds) return;
    fprintf(stderr, "line %d: does not hold: %s\n", line, what);
    failures++;
}
#define CHECK(what) check(#what, __LINE__, (what) ? 1 : 0)

static void look_up(gputrail_code_object_id code_object, uint64_t offset) {
    gputrail_source_line line;
    char text[64] = "";
    CHECK(gputrail_source_line_of(code_object, offset, &line) == GPUTRAIL_OK);
    CHECK(gputrail_string(line.file, text, sizeof text, NULL) == GPUTRAIL_OK);
    CHECK(strcmp(text, "train/kernels.cl") == 0 && line.line > 0 && line.function != 0 && line.instruction != 0);
    lines++;
}

static void deliver(const gputrail_batch *batch, void *user_data) {
    const gputrail_record_header *record = NULL;
    (void)user_data;
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK) {
        if (record->kind == GPUTRAIL_KIND_PC_SAMPLE_HOST_TRAP) {
            const gputrail_record_host_trap_sample *sample = (const gputrail_record_host_trap_sample *)record;
            if (getenv("GUIDE") && samples[1] + samples[2] == 0) print_line(sample);
            samples[sample->agent % AGENTS]++;
            look_up(sample->code_object, sample->offset);
        } else if (record->kind == GPUTRAIL_KIND_KERNEL_DISPATCH) {
            gputrail_work_times times;
            pending += is_pending(record);
            CHECK(gputrail_times_of(record, &times) == GPUTRAIL_OK);
            early += (times.queued && times.queued < times.enqueued) || (times.start && times.start < times.enqueued);
        } else if (record->kind == GPUTRAIL_KIND_PC_SAMPLE_STOCHASTIC) {
            const gputrail_record_stochastic_sample *sample = (const gputrail_record_stochastic_sample *)record;
            gputrail_not_issued reason = (gputrail_not_issued)gputrail_snapshot_reason_not_issued(sample->snapshot);
            gputrail_stall_reason stall = gputrail_stall_reason_of_sample(sample);
            samples[sample->agent % AGENTS]++;
            look_up(sample->code_object, sample->offset);
            if (gputrail_issue_issued(sample->issue)) {
                CHECK(stall == GPUTRAIL_STALL_REASON_NONE);
            } else {
                CHECK(gputrail_stall_reason_of(gputrail_not_issued_of(stall)) == gputrail_stall_reason_of(reason));
                refined += stall != gputrail_stall_reason_of(reason);
            }
        } else if (record->kind == GPUTRAIL_KIND_COUNTER_VALUE) {
            values[((const gputrail_record_counter_value *)record)->agent % AGENTS]++;
        }
    }
}

static void passes(gputrail_callback *callback, void *user_data) {
    (void)user_data;
    if (callback->phase == GPUTRAIL_PHASE_COMPLETE) {
        completed++;
    } else {
        CHECK(callback->passes_done >= 1 && callback->passes_done <= callback->passes && callback->kernel != 0);
        replayed += callback->passes_done == callback->passes;
    }
}

static gputrail_status initialise(gputrail_tool tool, void *user_data) {
    static const gputrail_kind kinds[] = {GPUTRAIL_KIND_KERNEL_DISPATCH};
    static gputrail_context context;
    static gputrail_subscriber subscriber;
    gputrail_sampling_options sampling;
    gputrail_counting_options counting;
    gputrail_selection selection;
    gputrail_operation operations[2];
    size_t agents = 0;
    (void)tool, (void)user_data;
    /* The simulated devices are known before the program uses them. */
    CHECK(gputrail_sampling_agents(NULL, 0, &agents) == GPUTRAIL_OK && agents == 2);
    memset(&selection, 0, sizeof selection);
    selection.size = sizeof selection;
    selection.kinds = kinds;
    selection.kind_count = 1;
    CHECK(gputrail_buffer_create(NULL, deliver, NULL, &buffer) == GPUTRAIL_OK);
    CHECK(gputrail_context_create(&context) == GPUTRAIL_OK);
    CHECK(gputrail_context_trace_to(context, buffer, &selection) == GPUTRAIL_OK);
    if (getenv("GUIDE")) {
        CHECK(count_in_own_memory(&in_own_memory, &lent) == GPUTRAIL_OK);
        CHECK(gputrail_context_trace_to(context, lent, &selection) == GPUTRAIL_OK);
    }
    if (getenv("COUNT")) {
        memset(&counting, 0, sizeof counting);
        counting.size = sizeof counting;
        counting.counters = getenv("COUNT");
        counting.per_pass = 1;
        CHECK(gputrail_context_count(context, buffer, GPUTRAIL_ALL_AGENTS, &counting) == GPUTRAIL_OK);
        /* Sampling and counting exclude each other in a process. */
        CHECK(sample_all(context, buffer) == GPUTRAIL_CONTEXT_CONFLICT);
        CHECK(gputrail_operation_by_name(GPUTRAIL_DOMAIN_KERNEL_DISPATCH, "kernel replay", &operations[0]) == GPUTRAIL_OK);
        CHECK(gputrail_operation_by_name(GPUTRAIL_DOMAIN_KERNEL_DISPATCH, "kernel complete", &operations[1]) == GPUTRAIL_OK);
        CHECK(gputrail_subscribe(context, operations, 2, passes, NULL, &subscriber) == GPUTRAIL_OK);
    } else if (getenv("METHOD")) {
        memset(&sampling, 0, sizeof sampling);
        sampling.size = sizeof sampling;
        sampling.method = GPUTRAIL_SAMPLING_METHOD_STOCHASTIC;
        sampling.unit = GPUTRAIL_SAMPLING_UNIT_CYCLES;
        sampling.interval = 1 << 18;
        CHECK(gputrail_context_sample(context, buffer, GPUTRAIL_ALL_AGENTS, &sampling) == GPUTRAIL_OK);
        CHECK(gputrail_context_sample(context, buffer, GPUTRAIL_ALL_AGENTS, &sampling) == GPUTRAIL_CONFLICT);
    } else {
        CHECK(sample_all(context, buffer) == GPUTRAIL_OK);
    }
    return gputrail_context_start(context);
}

static void finalise(void *user_data) {
    int agent;
    gputrail_source_line line;
    (void)user_data;
    CHECK(gputrail_source_line_of(9999, 0, &line) == GPUTRAIL_NOT_FOUND && line.line == 0);
    CHECK(gputrail_source_line_of(9999, 0, NULL) == GPUTRAIL_NULL_POINTER);
    CHECK(show_pending(buffer) == GPUTRAIL_OK && pending == 0);
    CHECK(early == 0);
    if (getenv("GUIDE")) {
        CHECK(gputrail_buffer_flush(lent) == GPUTRAIL_OK);
        CHECK(in_own_memory > 100);
    }
    for (agent = 0; agent < AGENTS; agent++) {
        if (samples[agent] > 0) printf("agent %d is sampled\n", agent);
        if (values[agent] > 0) printf("agent %d counts\n", agent);
    }
    CHECK(lines == 0 || lines > 100);
    if (getenv("METHOD")) CHECK(refined > 0);
    /* Children of kernels are counted with their parents. */
    if (getenv("COUNT")) CHECK(replayed > 100 && replayed <= completed);
    puts(failures == 0 ? "passed" : "failed");
}

const gputrail_tool_description *gputrail_tool_configure(const gputrail_tool_host *host) {
    static gputrail_tool_description description;
    (void)host;
    description.size = sizeof description;
    description.api_version = GPUTRAIL_API_VERSION;
    description.name = "sampling";
    description.initialise = initialise;
    description.finalise = finalise;
    return &description;
}
