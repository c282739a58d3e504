/* How long the program's calls took, by function: percentiles, when the program ends.
 *
 *   cc -std=c99 -Wall -Wextra -pedantic -shared -fPIC -o libapi_latency.so api_latency.c $(pkg-config --cflags --libs gputrail)
 *   gputrail record --tool ./libapi_latency.so -- PROGRAM
 */
#include "gputrail.h"
#include <stdio.h>

/* Eight buckets to each power of two: a percentile is off by at most an eighth. */
enum { FUNCTIONS = 1024, BUCKETS = 64 * 8 };

/* The functions that were called: of OpenCL, of CUDA's driver and runtime. */
static struct {
    gputrail_operation operation;
    uint64_t calls, failed;
    uint32_t took[BUCKETS];
} functions[FUNCTIONS];

static gputrail_context context;
static gputrail_buffer buffer;

static unsigned bucket_of(gputrail_nanos took) {
    unsigned power = 0;
    if (took < 8) return (unsigned)took;
    while ((took >> power) >= 16) power++;
    return power * 8 + (unsigned)(took >> power);
}

static double lowest_of(unsigned bucket) {
    return bucket < 16 ? bucket : (double)(8 + bucket % 8) * (double)(1ull << (bucket / 8 - 1));
}

static void deliver(const gputrail_batch *batch, void *user_data) {
    const gputrail_record_header *record = NULL;
    (void)user_data;
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK) {
        const gputrail_record_api *call = (const gputrail_record_api *)record;
        size_t place = 0;
        if (record->kind != GPUTRAIL_KIND_API || call->end < call->start) continue;
        while (place < FUNCTIONS - 1 && functions[place].calls > 0 &&
               (functions[place].operation.domain != call->operation.domain ||
                functions[place].operation.number != call->operation.number))
            place++;
        functions[place].operation = call->operation;
        functions[place].calls++;
        functions[place].failed += (record->flags & GPUTRAIL_FLAG_FAILED) != 0;
        functions[place].took[bucket_of(call->end - call->start)]++;
    }
}

static gputrail_status initialise(gputrail_tool tool, void *user_data) {
    static const gputrail_kind kind = GPUTRAIL_KIND_API;
    gputrail_selection selection = GPUTRAIL_SELECTION_INIT;
    gputrail_status status;
    (void)tool;
    selection.kinds = &kind;
    selection.kind_count = 1;
    if ((status = gputrail_context_create(&context)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_buffer_create(NULL, deliver, user_data, &buffer)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_context_trace_to(context, buffer, &selection)) != GPUTRAIL_OK) return status;
    return gputrail_context_start(context);
}

static double percentile(const uint32_t *buckets, uint64_t total, double share) {
    uint64_t below = 0;
    unsigned bucket;
    for (bucket = 0; bucket < BUCKETS; bucket++) {
        below += buckets[bucket];
        if ((double)below >= share * (double)total) return lowest_of(bucket);
    }
    return 0;
}

static void finalise(void *user_data) {
    size_t place;
    (void)user_data;
    gputrail_context_stop(context);
    gputrail_buffer_flush(buffer);
    fprintf(stderr, "%-40s %8s %8s %10s %10s %10s\n", "function", "calls", "failed", "50% us", "90% us", "99% us");
    for (place = 0; place < FUNCTIONS && functions[place].calls > 0; place++) {
        const char *name = gputrail_operation_name(functions[place].operation);
        uint64_t calls = functions[place].calls;
        const uint32_t *took = functions[place].took;
        fprintf(stderr, "%-40s %8llu %8llu %10.2f %10.2f %10.2f\n", name ? name : "?", (unsigned long long)calls,
                (unsigned long long)functions[place].failed, percentile(took, calls, 0.5) / 1e3,
                percentile(took, calls, 0.9) / 1e3, percentile(took, calls, 0.99) / 1e3);
    }
}

const gputrail_tool_description *gputrail_tool_configure(const gputrail_tool_host *host) {
    static gputrail_tool_description description = GPUTRAIL_TOOL_DESCRIPTION_INIT;
    (void)host;
    description.name = "api-latency";
    description.initialise = initialise;
    description.finalise = finalise;
    return &description;
}
