/* A program that is linked with gputrail and observes the simulated GPU in joined records: times in nanoseconds wherever a tool
   looks, work without a completion, and joined and raw records in memory of the program's, also as a ring. */
#include "gputrail.h"
#include "checks.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static gputrail_nanos begun, ended;
static gputrail_operation last_call;
static volatile int may_deliver;

static gputrail_nanos boottime(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (gputrail_nanos)now.tv_sec * 1000000000u + (gputrail_nanos)now.tv_nsec;
}

enum { CALLS = 20000 };

/* What came to one buffer. */
typedef struct {
    uint64_t of[256], timed, without, unflagged, other_times, last_calls;
    uint64_t lent, back, blocks;
    /* Its calls. */
    gputrail_correlation_id calls[CALLS];
    gputrail_nanos ends[CALLS];
} received;

static received usual, slow, packed, joined_ring, raw_ring;

/* Whether the program ran at this time. The conversion of times has an error. */
static int is_in_run(gputrail_nanos time) {
    return time + 1000000000u > begun && (ended == 0 || time < ended + 1000000000u);
}

static void take(const gputrail_batch *batch, received *to) {
    const gputrail_record_header *record = NULL;
    gputrail_status status;
    while ((status = gputrail_batch_next(batch, &record)) == GPUTRAIL_OK) {
        const gputrail_record_api *call = (const gputrail_record_api *)record;
        gputrail_work_times times;
        to->of[record->kind]++;
        if (record->kind == GPUTRAIL_KIND_API && to->of[record->kind] <= CALLS) {
            to->calls[to->of[record->kind] - 1] = call->correlation;
            to->ends[to->of[record->kind] - 1] = call->end;
        }
        if (record->kind == GPUTRAIL_KIND_API) {
            to->last_calls += call->operation.domain == last_call.domain && call->operation.number == last_call.number;
            to->other_times += !is_in_run(call->start) || !is_in_run(call->end) || call->start > call->end;
        }
        if (gputrail_times_of(record, &times) != GPUTRAIL_OK) continue;
        if (times.start != 0) {
            to->timed++;
            to->other_times += !is_in_run(times.enqueued) || !is_in_run(times.end) || times.start > times.end;
            CHECK(!(record->flags & GPUTRAIL_FLAG_UNFINISHED) && times.unfinished == GPUTRAIL_UNFINISHED_NO);
        } else {
            to->without++;
            to->unflagged += !(record->flags & GPUTRAIL_FLAG_TIME_UNKNOWN);
            CHECK(times.unfinished == GPUTRAIL_UNFINISHED_NO_COMPLETION && times.completed == 0);
        }
    }
    CHECK(status == GPUTRAIL_END);
}

static void deliver(const gputrail_batch *batch, void *user_data) { take(batch, (received *)user_data); }

static void deliver_late(const gputrail_batch *batch, void *user_data) {
    while (!may_deliver) usleep(1000);
    take(batch, (received *)user_data);
}

/* Lends as many blocks as there are. */
static void lend(gputrail_block *block, void *user_data) {
    received *of = (received *)user_data;
    if (of->lent == of->blocks) return;
    of->lent++;
    block->bytes = 4096;
    block->memory = (uint8_t *)calloc(1, 4096);
}

static void take_back(const gputrail_block *block, const gputrail_batch *records, void *user_data) {
    received *of = (received *)user_data;
    of->back++;
    CHECK(records->records == block->memory && records->bytes <= block->bytes);
    take(records, of);
    free(block->memory);
}

static uint64_t told, in_nanos, in_ticks, told_calls, in_callbacks;

static void tell(gputrail_callback *callback, void *user_data) {
    const gputrail_record_completion *work = (const gputrail_record_completion *)callback->record;
    uint64_t *count = (uint64_t *)user_data;
    gputrail_nanos nanos = 0, end = 0;
    told++;
    CHECK(work->header.kind == GPUTRAIL_KIND_COMPLETION);
    if (count == &in_nanos) {
        *count += is_in_run(work->start) && is_in_run(work->completed) && work->start <= work->end;
    } else {
        CHECK(gputrail_ticks_to_nanos(work->completed, &nanos) == GPUTRAIL_OK);
        CHECK(gputrail_device_time_to_nanos(work->agent, work->end, &end) == GPUTRAIL_OK);
        *count += is_in_run(nanos) && is_in_run(end) && !is_in_run(work->end);
    }
}

static void tell_calls(gputrail_callback *callback, void *user_data) {
    const gputrail_record_kernel_dispatch *kernel = (const gputrail_record_kernel_dispatch *)callback->record;
    (void)user_data;
    told_calls++;
    in_callbacks += is_in_run(kernel->work.enqueued);
}

static gputrail_buffer_options options(uint32_t format, uint32_t policy) {
    gputrail_buffer_options of;
    memset(&of, 0, sizeof of);
    of.size = sizeof of;
    of.format = format;
    of.policy = policy;
    return of;
}

/* A ring of blocks, which lends them all at once. */
static gputrail_buffer ring(uint32_t format, gputrail_callback_thread thread, received *of) {
    gputrail_buffer_options overwriting = options(format, GPUTRAIL_POLICY_OVERWRITE);
    gputrail_buffer buffer;
    overwriting.callback_thread = thread;
    of->blocks = 24;
    CHECK(gputrail_buffer_create_of_client(&overwriting, lend, deliver, take_back, of, &buffer) == GPUTRAIL_OK);
    CHECK(of->lent == of->blocks);
    return buffer;
}

/* The place of a call among those of the buffer that has all. */
static size_t place_of(gputrail_correlation_id call) {
    size_t place = 0;
    while (place < CALLS && usual.calls[place] != call) place++;
    CHECK(place < CALLS);
    return place < CALLS ? place : 0;
}

/* Whether a ring has every call that ended after the earliest of those that it has. The error of times is taken off. */
static int has_latest(const received *ring) {
    static char is_there[CALLS];
    const uint64_t kept = ring->of[GPUTRAIL_KIND_API], all = usual.of[GPUTRAIL_KIND_API];
    gputrail_nanos earliest = UINT64_MAX;
    size_t place;
    memset(is_there, 0, sizeof is_there);
    for (place = 0; place < kept && place < CALLS; place++) {
        const size_t at = place_of(ring->calls[place]);
        is_there[at] = 1;
        if (usual.ends[at] < earliest) earliest = usual.ends[at];
    }
    for (place = 0; place < all && place < CALLS; place++)
        if (usual.ends[place] > earliest + 100000u && !is_there[place]) return 0;
    return 1;
}

/* A ring is shown as it is, twice the same, and comes back at the end: its latest records. */
static void check_ring(gputrail_buffer buffer, received *of, int joined) {
    static received first;
    CHECK(of->of[GPUTRAIL_KIND_API] == 0 && of->back == 0);
    CHECK(gputrail_buffer_flush(buffer) == GPUTRAIL_OK);
    first = *of;
    CHECK(first.of[GPUTRAIL_KIND_API] > 20 && first.last_calls == 1 && first.back == 0);
    CHECK(first.of[GPUTRAIL_KIND_API] < usual.of[GPUTRAIL_KIND_API] / 2 && usual.of[GPUTRAIL_KIND_API] <= CALLS);
    if (joined) CHECK(has_latest(&first));
    CHECK(gputrail_buffer_flush(buffer) == GPUTRAIL_OK && of->of[GPUTRAIL_KIND_API] == 2 * first.of[GPUTRAIL_KIND_API]);
    CHECK(gputrail_buffer_destroy(buffer) == GPUTRAIL_OK && of->last_calls == 3 && of->back == of->blocks);
    CHECK(of->of[GPUTRAIL_KIND_API] == 3 * first.of[GPUTRAIL_KIND_API]);
    if (joined) CHECK(of->timed > 60 && of->other_times == 0 && of->of[GPUTRAIL_KIND_COMPLETION] == 0);
    else CHECK(of->of[GPUTRAIL_KIND_COMPLETION] > 20 && of->timed == 0);
}

int main(void) {
    static const gputrail_kind kinds[] = {GPUTRAIL_KIND_API, GPUTRAIL_KIND_KERNEL_DISPATCH};
    gputrail_buffer_options small = options(GPUTRAIL_RECORD_FORMAT_JOINED, GPUTRAIL_POLICY_DISCARD);
    gputrail_simulation_options run;
    gputrail_simulation_report report;
    gputrail_selection selection;
    gputrail_buffer all, late, client, keeping, keeping_raw;
    gputrail_operation complete, enqueue;
    gputrail_subscriber nanos, ticks, calls;
    gputrail_callback_thread thread;
    gputrail_context context;
    gputrail_drops drops;

    CHECK(gputrail_initialise() == GPUTRAIL_OK);
    begun = boottime();
    CHECK(gputrail_operation_by_name(GPUTRAIL_DOMAIN_SIM, "simShutdown", &last_call) == GPUTRAIL_OK);
    memset(&selection, 0, sizeof selection);
    selection.size = sizeof selection;
    selection.kinds = kinds;
    selection.kind_count = 2;
    CHECK(gputrail_context_create(&context) == GPUTRAIL_OK);
    CHECK(gputrail_buffer_create(NULL, deliver, &usual, &all) == GPUTRAIL_OK);
    CHECK(gputrail_callback_thread_create(&thread) == GPUTRAIL_OK);
    small.callback_thread = thread;
    small.pool_bytes = 16 * 4096;
    small.block_bytes = 4096;
    CHECK(gputrail_buffer_create(&small, deliver_late, &slow, &late) == GPUTRAIL_OK);
    packed.blocks = UINT64_MAX;
    CHECK(gputrail_buffer_create_of_client(NULL, lend, NULL, take_back, &packed, &client) == GPUTRAIL_OK);
    /* Nothing is delivered on this thread while the program runs, so that all comes at once. */
    keeping = ring(GPUTRAIL_RECORD_FORMAT_JOINED, thread, &joined_ring);
    keeping_raw = ring(GPUTRAIL_RECORD_FORMAT_RAW, thread, &raw_ring);
    CHECK(gputrail_context_trace_to(context, all, &selection) == GPUTRAIL_OK);
    CHECK(gputrail_context_trace_to(context, late, &selection) == GPUTRAIL_OK);
    CHECK(gputrail_context_trace_to(context, client, &selection) == GPUTRAIL_OK);
    CHECK(gputrail_context_trace_to(context, keeping, &selection) == GPUTRAIL_OK);
    CHECK(gputrail_context_trace_to(context, keeping_raw, NULL) == GPUTRAIL_OK);
    CHECK(gputrail_operation_by_name(GPUTRAIL_DOMAIN_KERNEL_DISPATCH, "kernel complete", &complete) == GPUTRAIL_OK);
    CHECK(gputrail_operation_by_name(GPUTRAIL_DOMAIN_KERNEL_DISPATCH, "kernel enqueue", &enqueue) == GPUTRAIL_OK);
    CHECK(gputrail_subscribe(context, &complete, 1, tell, &in_nanos, &nanos) == GPUTRAIL_OK);
    CHECK(gputrail_subscribe(context, &complete, 1, tell, &in_ticks, &ticks) == GPUTRAIL_OK);
    CHECK(gputrail_subscribe(context, &enqueue, 1, tell_calls, NULL, &calls) == GPUTRAIL_OK);
    CHECK(gputrail_subscriber_format(ticks, 2) == GPUTRAIL_INVALID_ARGUMENT);
    CHECK(gputrail_subscriber_format(ticks, GPUTRAIL_RECORD_FORMAT_RAW) == GPUTRAIL_OK);
    CHECK(gputrail_context_start(context) == GPUTRAIL_OK);
    memset(&run, 0, sizeof run);
    memset(&report, 0, sizeof report);
    run.size = sizeof run;
    run.steps = 2;
    report.size = sizeof report;
    CHECK(gputrail_simulation_run(&run, &report) == GPUTRAIL_OK);
    CHECK(gputrail_context_stop(context) == GPUTRAIL_OK);
    ended = boottime();
    may_deliver = 1;

    /* Each call and kernel once, in nanoseconds, and nothing that nobody asked for. */
    CHECK(gputrail_buffer_destroy(all) == GPUTRAIL_OK);
    CHECK(usual.of[GPUTRAIL_KIND_API] == report.calls && usual.timed == report.kernels);
    CHECK(usual.of[GPUTRAIL_KIND_KERNEL_DISPATCH] == report.kernels && usual.of[GPUTRAIL_KIND_COMPLETION] == 0);
    CHECK(usual.other_times == 0 && usual.without == 0 && usual.last_calls == 1);
    CHECK(in_nanos == in_ticks && told == 2 * in_nanos && in_nanos > report.kernels / 2);
    CHECK(in_callbacks == told_calls && told_calls > report.kernels);

    /* Kernels whose completions were dropped are flagged; completions of kernels that were dropped do not come. */
    drops.size = sizeof drops;
    CHECK(gputrail_buffer_flush(late) == GPUTRAIL_OK && gputrail_buffer_dropped(late, &drops) == GPUTRAIL_OK);
    CHECK(gputrail_buffer_destroy(late) == GPUTRAIL_OK);
    CHECK(slow.without > 0 && slow.unflagged == 0 && slow.timed > 0 && slow.other_times == 0);
    CHECK(slow.of[GPUTRAIL_KIND_KERNEL_DISPATCH] + drops.of_kind[GPUTRAIL_KIND_KERNEL_DISPATCH] == report.kernels);
    CHECK(drops.of_kind[GPUTRAIL_KIND_COMPLETION] >= slow.without && slow.of[GPUTRAIL_KIND_COMPLETION] == 0);

    /* Joined records in blocks of the program's. */
    CHECK(gputrail_buffer_destroy(client) == GPUTRAIL_OK && packed.back == packed.lent && packed.back > 40);
    CHECK(packed.of[GPUTRAIL_KIND_API] == report.calls && packed.timed == report.kernels && packed.other_times == 0);

    check_ring(keeping, &joined_ring, 1);
    check_ring(keeping_raw, &raw_ring, 0);
    CHECK(gputrail_callback_thread_destroy(thread) == GPUTRAIL_OK);
    CHECK(gputrail_finalise() == GPUTRAIL_OK);
    printf("%s\n", failures ? "failed" : "passed");
    return failures > 0;
}
