/* A program that is linked with gputrail and counts kernels of the simulated GPU in entries of a pool: values are compared
   with the kernels' own sizes, and every status is provoked. Compiled as C and as C++. */
#include "gputrail.h"
#include "checks.h"
#include "handles.h"
#include <stdio.h>
#include <string.h>

enum { ENTRIES = 4 };
/* What the tool keeps in an entry: ROCProfiler v1 has it for the same. */
struct payload {
    uint64_t waves;
    gputrail_correlation_id call;
    char more[100];
};
static gputrail_counter_pool_options options;
static gputrail_counter_pool pool, none, other;
static gputrail_buffer buffer;
static gputrail_context context;
static gputrail_agent_id counted;
static int fetched, exhausted, handled, again, keep, visited, fully;
static int user_data;
static int is_in_flight;
static gputrail_counter_pool_entry in_flight;

static int32_t completed(const gputrail_counter_pool_entry *entry, const gputrail_record_counter_value *values, size_t count, void *data) {
    const struct payload *payload = (const struct payload *)entry->payload;
    gputrail_record_counter_value read[3];
    size_t number = 0;
    CHECK(data == &user_data && entry->pool.handle == pool.handle && payload != NULL);
    CHECK(count == 2 && values[0].invalid == 0 && values[0].value == payload->waves);
    CHECK(values[0].correlation == payload->call && values[1].remaining == 0);
    EXPECT(gputrail_counter_pool_values(entry, read, 3, &number), GPUTRAIL_OK);
    CHECK(number == 2 && read[0].value == values[0].value);
    EXPECT(gputrail_counter_pool_values(entry, read, 1, &number), GPUTRAIL_TOO_SMALL);
    EXPECT(gputrail_counter_pool_close(pool), GPUTRAIL_BUSY);
    if (again) {
        /* A handler may release the entry itself. */
        EXPECT(gputrail_counter_pool_release(entry), GPUTRAIL_OK);
        EXPECT(gputrail_counter_pool_release(entry), GPUTRAIL_NO_SUCH_COUNTER_SET);
    }
    handled++;
    return !keep;
}

static void choose(const gputrail_record_kernel_dispatch *dispatch, gputrail_counter_set *set, void *data) {
    gputrail_counter_pool_entry entry;
    struct payload *payload;
    gputrail_status status;
    uint64_t groups = 1, items = 1;
    int of;
    (void)data;
    memset(&entry, 0, sizeof entry);
    status = gputrail_counter_pool_fetch(pool, &entry);
    payload = (struct payload *)entry.payload;
    if (status == GPUTRAIL_TOO_MANY) {
        exhausted++;
        return;
    }
    EXPECT(status, GPUTRAIL_OK);
    CHECK(payload->waves == 0 && payload->call == 0 && payload->more[99] == 0 && ((size_t)payload & 15) == 0);
    for (of = 0; of < 3; of++) {
        uint64_t size = dispatch->workgroup[of] ? dispatch->workgroup[of] : 1;
        groups *= (dispatch->grid[of] + size - 1) / size;
        items *= size;
    }
    payload->waves = groups * ((items + 63) / 64);
    payload->call = dispatch->work.correlation;
    payload->more[99] = 7;
    fetched++;
    in_flight = entry;
    *set = entry.set;
}

/* The kernel has been enqueued and has not ended. */
static void enqueued(gputrail_callback *callback, void *data) {
    gputrail_record_counter_value value;
    size_t count = 1;
    (void)data;
    if (callback->phase != GPUTRAIL_PHASE_ENTER || !in_flight.set.handle || is_in_flight) return;
    is_in_flight = 1;
    EXPECT(gputrail_counter_pool_release(&in_flight), GPUTRAIL_BUSY);
    EXPECT(gputrail_counter_set_destroy(in_flight.set), GPUTRAIL_INVALID_ARGUMENT);
    EXPECT(gputrail_counter_pool_close(pool), GPUTRAIL_BUSY);
    EXPECT(gputrail_counter_pool_values(&in_flight, &value, 1, &count), GPUTRAIL_OK);
    CHECK(count == 0);
}

static void deliver(const gputrail_batch *batch, void *data) {
    (void)batch;
    (void)data;
}

static void agent_known(gputrail_callback *callback, void *data) {
    (void)data;
    if (counted) return;
    counted = ((const gputrail_record_agent *)callback->record)->id;
    options.passes = 1;
    EXPECT(gputrail_counter_pool_open(counted, &options, &pool), GPUTRAIL_INVALID_ARGUMENT);
    options.passes = 2;
    EXPECT(gputrail_counter_pool_open(counted, &options, &pool), GPUTRAIL_OK);
    EXPECT(gputrail_context_count_chosen(context, buffer, counted, choose, NULL, NULL), GPUTRAIL_OK);
    EXPECT(gputrail_context_start(context), GPUTRAIL_OK);
}

static int32_t visit(const gputrail_counter_pool_entry *entry, void *data) {
    CHECK(entry->pool.handle == pool.handle && data == &visited);
    visited++;
    if (fully) EXPECT(gputrail_counter_pool_release(entry), GPUTRAIL_OK);
    return !fully;
}

static void simulate(void) {
    gputrail_simulation_options simulation;
    gputrail_kind dispatches = GPUTRAIL_KIND_KERNEL_DISPATCH;
    gputrail_selection selection;
    memset(&simulation, 0, sizeof simulation);
    simulation.size = sizeof simulation;
    simulation.seed = 7;
    simulation.steps = 1;
    memset(&selection, 0, sizeof selection);
    selection.size = sizeof selection;
    selection.kinds = &dispatches;
    selection.kind_count = 1;
    counted = 0;
    fetched = exhausted = handled = visited = 0;
    EXPECT(gputrail_context_create(&context), GPUTRAIL_OK);
    EXPECT(gputrail_context_trace_to(context, buffer, &selection), GPUTRAIL_OK);
    EXPECT(gputrail_simulation_run(&simulation, NULL), GPUTRAIL_OK);
}

int main(void) {
    static const gputrail_operation known = {GPUTRAIL_DOMAIN_RESOURCE, 14}, enqueue = {GPUTRAIL_DOMAIN_KERNEL_DISPATCH, 1};
    gputrail_subscriber subscriber, second;
    gputrail_context watching;
    gputrail_counter_pool_entry entry, entries[ENTRIES];
    gputrail_counter_set_options set_options;
    gputrail_counter_set set;
    size_t number = 0;
    int of;

    memset(&options, 0, sizeof options);
    memset(&entry, 0, sizeof entry);
    options.size = sizeof options;
    options.counters = "SQ_WAVES,TCC_EA_RDREQ";
    options.per_pass = 1;
    options.entries = 4096;
    options.payload_bytes = sizeof(struct payload);
    options.handler = completed;
    options.user_data = &user_data;
    EXPECT(gputrail_counter_pool_open(1, &options, &pool), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_pool_fetch(none, &entry), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_pool_close(none), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_pool_release(&entry), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_pool_values(&entry, NULL, 0, &number), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_pool_iterate(none, visit, NULL), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_counter_pool_flush(none), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_initialise(), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_create(NULL, deliver, NULL, &buffer), GPUTRAIL_OK);
    EXPECT(gputrail_context_create(&watching), GPUTRAIL_OK);
    EXPECT(gputrail_subscribe(watching, &known, 1, agent_known, NULL, &subscriber), GPUTRAIL_OK);
    EXPECT(gputrail_subscribe(watching, &enqueue, 1, enqueued, NULL, &second), GPUTRAIL_OK);
    EXPECT(gputrail_context_start(watching), GPUTRAIL_OK);

    /* Entries are released by what the handler returns. */
    simulate();
    CHECK(fetched > 20 && handled == fetched && exhausted == 0);
    CHECK(is_in_flight);
    EXPECT(gputrail_counter_pool_iterate(pool, visit, &visited), GPUTRAIL_OK);
    CHECK(visited == 0);
    EXPECT(gputrail_context_destroy(context), GPUTRAIL_OK);
    EXPECT(gputrail_counter_pool_close(pool), GPUTRAIL_OK);
    EXPECT(gputrail_counter_pool_fetch(pool, &entry), GPUTRAIL_NO_SUCH_COUNTER_POOL);
    EXPECT(gputrail_counter_pool_flush(pool), GPUTRAIL_NO_SUCH_COUNTER_POOL);
    EXPECT(gputrail_counter_pool_iterate(pool, visit, NULL), GPUTRAIL_NO_SUCH_COUNTER_POOL);
    EXPECT(gputrail_counter_pool_release(&in_flight), GPUTRAIL_NO_SUCH_COUNTER_POOL);
    EXPECT(gputrail_counter_pool_values(&in_flight, NULL, 0, &number), GPUTRAIL_NO_SUCH_COUNTER_POOL);
    EXPECT(gputrail_counter_pool_close(pool), GPUTRAIL_NO_SUCH_COUNTER_POOL);

    /* By the handler itself. */
    again = keep = 1;
    simulate();
    CHECK(fetched > 20 && handled == fetched && exhausted == 0);
    EXPECT(gputrail_context_destroy(context), GPUTRAIL_OK);
    EXPECT(gputrail_counter_pool_close(pool), GPUTRAIL_OK);

    /* Not at all: further kernels are not counted, and a flush tells the handler again. */
    again = 0;
    options.entries = ENTRIES;
    simulate();
    CHECK(fetched == ENTRIES && handled == ENTRIES && exhausted > 20);
    EXPECT(gputrail_counter_pool_flush(pool), GPUTRAIL_OK);
    CHECK(handled == 2 * ENTRIES);
    EXPECT(gputrail_counter_pool_fetch(pool, &entry), GPUTRAIL_TOO_MANY);
    EXPECT(gputrail_counter_pool_iterate(pool, visit, &visited), GPUTRAIL_OK);
    CHECK(visited == 1);
    keep = 0;
    EXPECT(gputrail_counter_pool_flush(pool), GPUTRAIL_OK);
    CHECK(handled == 3 * ENTRIES);
    for (of = 0; of < ENTRIES; of++) EXPECT(gputrail_counter_pool_fetch(pool, &entries[of]), GPUTRAIL_OK);
    EXPECT(gputrail_counter_pool_fetch(pool, &entry), GPUTRAIL_TOO_MANY);
    CHECK(((struct payload *)entries[0].payload)->waves == 0 && entries[0].payload != entries[1].payload);
    fully = 1;
    visited = 0;
    EXPECT(gputrail_counter_pool_iterate(pool, visit, &visited), GPUTRAIL_OK);
    CHECK(visited == ENTRIES);
    EXPECT(gputrail_counter_pool_release(&entries[0]), GPUTRAIL_NO_SUCH_COUNTER_SET);
    EXPECT(gputrail_context_destroy(context), GPUTRAIL_OK);

    /* The other refusals. */
    EXPECT(gputrail_counter_pool_fetch(pool, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_counter_pool_release(NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_counter_pool_values(NULL, NULL, 0, &number), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_counter_pool_values(&entries[0], NULL, 0, &number), GPUTRAIL_NO_SUCH_COUNTER_SET);
    EXPECT(gputrail_counter_pool_iterate(pool, NULL, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_counter_pool_open(counted, NULL, &other), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_counter_pool_open(counted, &options, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_counter_pool_open(9999, &options, &other), GPUTRAIL_NO_SUCH_AGENT);
    options.size = 3;
    EXPECT(gputrail_counter_pool_open(counted, &options, &other), GPUTRAIL_WRONG_SIZE);
    options.size = sizeof options;
    options.entries = 0;
    EXPECT(gputrail_counter_pool_open(counted, &options, &other), GPUTRAIL_INVALID_ARGUMENT);
    options.entries = 65537;
    EXPECT(gputrail_counter_pool_open(counted, &options, &other), GPUTRAIL_INVALID_ARGUMENT);
    options.entries = 65536;
    options.payload_bytes = 1 << 20;
    EXPECT(gputrail_counter_pool_open(counted, &options, &other), GPUTRAIL_INVALID_ARGUMENT);
    options.payload_bytes = 0;
    options.entries = ENTRIES;
    options.counters = "SQ_WAVE";
    EXPECT(gputrail_counter_pool_open(counted, &options, &other), GPUTRAIL_NOT_FOUND);
    options.counters = "SQ_WAVES,,";
    EXPECT(gputrail_counter_pool_open(counted, &options, &other), GPUTRAIL_INVALID_ARGUMENT);
    /* Without payload, and without a handler. A set of the tool's own is no entry. */
    options.counters = "SQ_WAVES";
    options.handler = NULL;
    EXPECT(gputrail_counter_pool_open(counted, &options, &other), GPUTRAIL_OK);
    EXPECT(gputrail_counter_pool_fetch(other, &entry), GPUTRAIL_OK);
    CHECK(entry.payload == NULL);
    memset(&set_options, 0, sizeof set_options);
    set_options.size = sizeof set_options;
    set_options.counters = "SQ_WAVES";
    EXPECT(gputrail_counter_set_create(counted, &set_options, &set), GPUTRAIL_OK);
    entry.set = set;
    EXPECT(gputrail_counter_pool_release(&entry), GPUTRAIL_INVALID_ARGUMENT);
    EXPECT(gputrail_counter_set_destroy(set), GPUTRAIL_OK);
    EXPECT(gputrail_counter_pool_close(other), GPUTRAIL_OK);
    EXPECT(gputrail_counter_pool_close(pool), GPUTRAIL_OK);

    EXPECT(gputrail_context_destroy(watching), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_destroy(buffer), GPUTRAIL_OK);
    EXPECT(gputrail_finalise(), GPUTRAIL_OK);
    printf("%s\n", failures ? "failed" : "passed");
    return failures > 0;
}
