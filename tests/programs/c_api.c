/* Every misuse of the C API, each with its status, and the library works on. Compiled as C and as C++. */
#include "gputrail.h"
#include "checks.h"
#include "handles.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void deliver(const gputrail_batch *batch, void *user_data) {
    (void)batch;
    (void)user_data;
}

static void called_back(gputrail_callback *callback, void *user_data) {
    (void)callback;
    (void)user_data;
}

static int32_t supply(const gputrail_external_request *request, gputrail_external_id *id, void *user_data) {
    (void)request;
    (void)id;
    (void)user_data;
    return 0;
}

static void request(gputrail_block *block, void *user_data) {
    (void)block;
    (void)user_data;
}

static void complete(const gputrail_block *block, const gputrail_batch *records, void *user_data) {
    (void)block;
    (void)records;
    (void)user_data;
}

static int made[2];

static void thread_made(int32_t after, void *user_data) {
    CHECK(user_data == made && (after == 0 || after == 1));
    made[after]++;
}

static void before_initialisation(void) {
    gputrail_context context;
    gputrail_buffer buffer;
    gputrail_nanos nanos;
    char text[64];
    size_t length;
    CHECK(!gputrail_is_initialised());
    EXPECT(gputrail_context_create(&context), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_buffer_create(NULL, deliver, NULL, &buffer), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_context_start(context_of(1)), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_ticks_to_nanos(1, &nanos), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_string(1, text, sizeof text, &length), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_observe_opencl(), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_finalise(), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_last_error(text, sizeof text), GPUTRAIL_NOT_INITIALISED);
    CHECK(strlen(text) > 10);
}

static void null_pointers(gputrail_context context, gputrail_buffer buffer) {
    gputrail_subscriber subscriber;
    gputrail_operation operation = {0, 0};
    EXPECT(gputrail_context_create(NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_buffer_create(NULL, NULL, NULL, &buffer), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_buffer_create(NULL, deliver, NULL, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_buffer_dropped(buffer, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_subscribe(context, NULL, 0, NULL, NULL, &subscriber), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_subscribe(context, NULL, 0, called_back, NULL, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_subscribe(context, NULL, 5, called_back, NULL, &subscriber), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_external_supply(context, NULL, 0, NULL, NULL, &subscriber), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_external_supply(context, NULL, 0, supply, NULL, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_external_supply(context, NULL, 5, supply, NULL, &subscriber), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_context_is_active(context, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_context_is_valid(context, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_kind_by_name(NULL, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_operation_by_name(GPUTRAIL_DOMAIN_OPENCL, NULL, &operation), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_batch_next(NULL, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_callback_argument(NULL, 0, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_record_argument(NULL, 0, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_ticks_to_nanos(1, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_agents(NULL, 0, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_describe_agent(1, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_agent_links(1, NULL, 0, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_agent_attribute(1, GPUTRAIL_AGENT_ATTRIBUTE_KIND_ECC, NULL), GPUTRAIL_NULL_POINTER);
}

static void sizes(gputrail_context context, gputrail_buffer buffer) {
    gputrail_buffer_options options;
    gputrail_selection selection;
    gputrail_record_header header;
    gputrail_work_times times;
    gputrail_drops drops;
    gputrail_buffer made;
    /* A structure of a version to come, that asks for what this one cannot do; and one that does not. */
    struct { gputrail_buffer_options known; uint64_t more; } newer;

    memset(&options, 0, sizeof options);
    EXPECT(gputrail_buffer_create(&options, deliver, NULL, &made), GPUTRAIL_WRONG_SIZE);
    options.size = 7;
    EXPECT(gputrail_buffer_create(&options, deliver, NULL, &made), GPUTRAIL_WRONG_SIZE);
    options.size = (size_t)-1;
    EXPECT(gputrail_buffer_create(&options, deliver, NULL, &made), GPUTRAIL_WRONG_SIZE);
    options.size = sizeof options;
    options.block_bytes = 5000;
    EXPECT(gputrail_buffer_create(&options, deliver, NULL, &made), GPUTRAIL_LAYOUT);
    options.block_bytes = UINT64_MAX;
    EXPECT(gputrail_buffer_create(&options, deliver, NULL, &made), GPUTRAIL_LAYOUT);
    options.block_bytes = 0;
    options.policy = 99;
    EXPECT(gputrail_buffer_create(&options, deliver, NULL, &made), GPUTRAIL_INVALID_ARGUMENT);
    options.policy = 0;
    options.format = 7;
    EXPECT(gputrail_buffer_create(&options, deliver, NULL, &made), GPUTRAIL_INVALID_ARGUMENT);
    EXPECT(gputrail_times_of(NULL, &times), GPUTRAIL_NULL_POINTER);
    memset(&header, 0, sizeof header);
    header.kind = GPUTRAIL_KIND_KERNEL_DISPATCH;
    header.words = 1;
    EXPECT(gputrail_times_of(&header, &times), GPUTRAIL_NOT_FOUND);

    memset(&newer, 0, sizeof newer);
    newer.known.size = sizeof newer;
    newer.known.pool_bytes = 1 << 20;
    newer.more = 1;
    EXPECT(gputrail_buffer_create(&newer.known, deliver, NULL, &made), GPUTRAIL_WRONG_SIZE);
    newer.more = 0;
    EXPECT(gputrail_buffer_create(&newer.known, deliver, NULL, &made), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_destroy(made), GPUTRAIL_OK);

    memset(&selection, 0, sizeof selection);
    EXPECT(gputrail_context_trace_to(context, buffer, &selection), GPUTRAIL_WRONG_SIZE);
    selection.size = sizeof selection;
    selection.kind_count = 3;
    EXPECT(gputrail_context_trace_to(context, buffer, &selection), GPUTRAIL_NULL_POINTER);
    memset(&drops, 1, sizeof drops);
    drops.size = 4;
    EXPECT(gputrail_buffer_dropped(buffer, &drops), GPUTRAIL_WRONG_SIZE);
    drops.size = 16; /* an older tool's, that has no more than the total */
    EXPECT(gputrail_buffer_dropped(buffer, &drops), GPUTRAIL_OK);
    CHECK(drops.total == 0 && drops.of_kind[0] == 0x0101010101010101u);
    drops.size = sizeof drops;
    EXPECT(gputrail_buffer_dropped_in_total(buffer, &drops), GPUTRAIL_OK);
    CHECK(drops.of_kind[0] == 0 && drops.size == sizeof drops);
}

static void ids(void) {
    gputrail_context context, other;
    gputrail_buffer buffer;
    gputrail_subscriber subscriber;
    char text[200] = "";
    int32_t answer;
    EXPECT(gputrail_context_create(&context), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_create(NULL, deliver, NULL, &buffer), GPUTRAIL_OK);
    EXPECT(gputrail_subscribe(context, NULL, 0, called_back, NULL, &subscriber), GPUTRAIL_OK);
    EXPECT(gputrail_context_start(context_of(buffer.handle)), GPUTRAIL_NO_SUCH_CONTEXT);
    EXPECT(gputrail_context_start(context_of(context.handle + 1000)), GPUTRAIL_NO_SUCH_CONTEXT);
    gputrail_last_error(text, sizeof text);
    CHECK(strstr(text, "no context has ever had the handle") != NULL);
    EXPECT(gputrail_buffer_flush(buffer_of(context.handle)), GPUTRAIL_NO_SUCH_BUFFER);
    EXPECT(gputrail_unsubscribe(subscriber_of(context.handle)), GPUTRAIL_NO_SUCH_SUBSCRIBER);
    EXPECT(gputrail_context_start(context_of(0)), GPUTRAIL_NO_SUCH_CONTEXT);
    EXPECT(gputrail_context_start(context_of(~(uint64_t)0)), GPUTRAIL_NO_SUCH_CONTEXT);
    EXPECT(gputrail_context_trace_to(context, buffer_of(12345), NULL), GPUTRAIL_NO_SUCH_BUFFER);

    EXPECT(gputrail_context_destroy(context), GPUTRAIL_OK);
    EXPECT(gputrail_context_destroy(context), GPUTRAIL_NO_SUCH_CONTEXT);
    EXPECT(gputrail_context_is_valid(context, &answer), GPUTRAIL_OK);
    CHECK(answer == 0);
    EXPECT(gputrail_context_is_active(context, &answer), GPUTRAIL_NO_SUCH_CONTEXT);
    EXPECT(gputrail_unsubscribe(subscriber), GPUTRAIL_NO_SUCH_SUBSCRIBER);
    EXPECT(gputrail_buffer_destroy(buffer), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_destroy(buffer), GPUTRAIL_NO_SUCH_BUFFER);
    EXPECT(gputrail_buffer_flush(buffer), GPUTRAIL_NO_SUCH_BUFFER);
    /* What takes its place is not it. */
    EXPECT(gputrail_context_create(&other), GPUTRAIL_OK);
    CHECK(other.handle != context.handle);
    EXPECT(gputrail_context_start(context), GPUTRAIL_NO_SUCH_CONTEXT);
    EXPECT(gputrail_context_destroy(other), GPUTRAIL_OK);
}

static void services(gputrail_context context, gputrail_buffer buffer) {
    gputrail_kind alone = GPUTRAIL_KIND_ARGUMENTS, unknown = 0xee, api = GPUTRAIL_KIND_API;
    gputrail_operation far_away;
    gputrail_selection selection;
    gputrail_subscriber subscriber;
    gputrail_buffer other;
    int32_t active;
    far_away.domain = 4000;
    far_away.number = 0;
    memset(&selection, 0, sizeof selection);
    selection.size = sizeof selection;
    selection.kinds = &alone;
    selection.kind_count = 1;
    EXPECT(gputrail_context_trace_to(context, buffer, &selection), GPUTRAIL_NOT_ALONE);
    selection.kinds = &unknown;
    EXPECT(gputrail_context_trace_to(context, buffer, &selection), GPUTRAIL_UNKNOWN_KIND);
    selection.kinds = &api;
    selection.operations = &far_away;
    selection.operation_count = 1;
    EXPECT(gputrail_context_trace_to(context, buffer, &selection), GPUTRAIL_UNKNOWN_OPERATION);
    EXPECT(gputrail_context_enable_kind(context, buffer, api, 1), GPUTRAIL_NO_SUCH_SERVICE);
    EXPECT(gputrail_context_trace_to(context, buffer, NULL), GPUTRAIL_OK);
    EXPECT(gputrail_context_trace_to(context, buffer, NULL), GPUTRAIL_CONFLICT);
    EXPECT(gputrail_context_stop(context), GPUTRAIL_STOPPED);
    EXPECT(gputrail_context_start(context), GPUTRAIL_OK);
    EXPECT(gputrail_context_start(context), GPUTRAIL_STARTED);
    EXPECT(gputrail_context_is_active(context, &active), GPUTRAIL_OK);
    CHECK(active == 1);
    EXPECT(gputrail_buffer_create(NULL, deliver, NULL, &other), GPUTRAIL_OK);
    EXPECT(gputrail_context_trace_to(context, other, NULL), GPUTRAIL_LOCKED);
    EXPECT(gputrail_subscribe(context, NULL, 0, called_back, NULL, &subscriber), GPUTRAIL_LOCKED);
    EXPECT(gputrail_external_supply(context, NULL, 0, supply, NULL, &subscriber), GPUTRAIL_LOCKED);
    EXPECT(gputrail_external_supply(context, &far_away, 1, supply, NULL, &subscriber), GPUTRAIL_UNKNOWN_OPERATION);
    EXPECT(gputrail_context_enable_kind(context, buffer, GPUTRAIL_KIND_LOSS, 0), GPUTRAIL_OK);
    EXPECT(gputrail_context_enable_operation(context, buffer, far_away, 0), GPUTRAIL_UNKNOWN_OPERATION);
    EXPECT(gputrail_context_enable_kind_in(context, buffer, 1, api, 1), GPUTRAIL_UNKNOWN_KIND);
    EXPECT(gputrail_context_enable_kind_in(context, buffer, 1, GPUTRAIL_KIND_MEMORY_COPY, 2), GPUTRAIL_INVALID_ARGUMENT);
    EXPECT(gputrail_context_enable_kind_in(context, other, 1, GPUTRAIL_KIND_MEMORY_COPY, 0), GPUTRAIL_NO_SUCH_SERVICE);
    EXPECT(gputrail_context_enable_kind_in(context, buffer, 1, GPUTRAIL_KIND_MEMORY_COPY, 0), GPUTRAIL_OK);
    EXPECT(gputrail_context_enable_kind_in(context, buffer, 1, GPUTRAIL_KIND_MEMORY_COPY, -1), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_destroy(other), GPUTRAIL_OK);
    EXPECT(gputrail_context_stop(context), GPUTRAIL_OK);
}

static void too_many(void) {
    gputrail_context contexts[65];
    int made = 0;
    while (made < 65 && gputrail_context_create(&contexts[made]) == GPUTRAIL_OK) made++;
    CHECK(made > 10 && made < 65);
    EXPECT(gputrail_context_create(&contexts[made]), GPUTRAIL_TOO_MANY);
    while (made > 0) EXPECT(gputrail_context_destroy(contexts[--made]), GPUTRAIL_OK);
}

static void batches(void) {
    gputrail_record_api records[2];
    gputrail_batch batch;
    const gputrail_record_header *record = NULL;
    memset(records, 0, sizeof records);
    records[0].header.kind = records[1].header.kind = GPUTRAIL_KIND_API;
    records[0].header.words = records[1].header.words = sizeof records[0] / 8;
    memset(&batch, 0, sizeof batch);
    batch.size = sizeof batch;
    batch.records = (const uint8_t *)records;
    batch.bytes = sizeof records;
    EXPECT(gputrail_batch_next(&batch, &record), GPUTRAIL_OK);
    CHECK(record == &records[0].header);
    EXPECT(gputrail_batch_next(&batch, &record), GPUTRAIL_OK);
    CHECK(record == &records[1].header);
    EXPECT(gputrail_batch_next(&batch, &record), GPUTRAIL_END);
    CHECK(record == NULL);
    record = &records[1].header + 100;
    EXPECT(gputrail_batch_next(&batch, &record), GPUTRAIL_INVALID_ARGUMENT);
    record = NULL;
    records[0].header.words = 0;
    EXPECT(gputrail_batch_next(&batch, &record), GPUTRAIL_MALFORMED);
    records[0].header.words = 5000;
    EXPECT(gputrail_batch_next(&batch, &record), GPUTRAIL_MALFORMED);
    batch.bytes = 3;
    EXPECT(gputrail_batch_next(&batch, &record), GPUTRAIL_MALFORMED);
    batch.bytes = 0;
    EXPECT(gputrail_batch_next(&batch, &record), GPUTRAIL_END);
}

static void names(void) {
    char small[2];
    size_t length = 0, count = 0;
    gputrail_kind kinds[3], kind;
    gputrail_domain domain;
    gputrail_agent_id agent;
    gputrail_record_agent described;
    uint64_t value;
    gputrail_operation operation = {GPUTRAIL_DOMAIN_OPENCL, 9999};
    EXPECT(gputrail_string(4000000000u, small, sizeof small, &length), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_describe_agent(77, &described), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_agent_links(77, NULL, 0, &length), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_agent_attribute(77, GPUTRAIL_AGENT_ATTRIBUTE_KIND_ECC, &value), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_agent_of(0, &agent), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_kinds(kinds, 3, &count), GPUTRAIL_TOO_SMALL);
    CHECK(count > 20 && kinds[0] == GPUTRAIL_KIND_API);
    EXPECT(gputrail_kinds(NULL, 0, &count), GPUTRAIL_OK);
    EXPECT(gputrail_kind_by_name("kernel dispatch", &kind), GPUTRAIL_OK);
    CHECK(kind == GPUTRAIL_KIND_KERNEL_DISPATCH);
    EXPECT(gputrail_kind_by_name("nonsense", &kind), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_domain_by_name("opencl", &domain), GPUTRAIL_OK);
    CHECK(domain == GPUTRAIL_DOMAIN_OPENCL && strcmp(gputrail_domain_name(domain), "opencl") == 0);
    CHECK(gputrail_kind_name(0xee) == NULL && gputrail_operation_name(operation) == NULL);
    CHECK(strcmp(gputrail_status_name(-12345), "GPUTRAIL_UNKNOWN") == 0);
}

static void clocks(void) {
    gputrail_ticks first = gputrail_now(), second = gputrail_now();
    gputrail_nanos a, b;
    CHECK(first <= second && gputrail_ticks_per_second() >= 1000000);
    EXPECT(gputrail_ticks_to_nanos(first, &a), GPUTRAIL_OK);
    EXPECT(gputrail_ticks_to_nanos(first + gputrail_ticks_per_second(), &b), GPUTRAIL_OK);
    CHECK(b - a > 900000000 && b - a < 1100000000);
    EXPECT(gputrail_ticks_to_nanos(0, &a), GPUTRAIL_OK);
    CHECK(a == 0);
    EXPECT(gputrail_device_time_to_nanos(1, 5, &a), GPUTRAIL_CLOCK_UNKNOWN);
    EXPECT(gputrail_clock_error(1, &a), GPUTRAIL_CLOCK_UNKNOWN);
    EXPECT(gputrail_clock_error(0, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_clock_error(0, &a), GPUTRAIL_OK);
    CHECK(gputrail_thread() == (gputrail_thread_id)getpid() && gputrail_process() == (gputrail_process_id)getpid());
}

static void flights(gputrail_buffer buffer) {
    gputrail_flight_options options;
    gputrail_selection selection;
    gputrail_flight flight;
    uint64_t records = 7;
    size_t count = 7;
    memset(&options, 0, sizeof options);
    EXPECT(gputrail_flight_start(NULL, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_flight_start(&options, &flight), GPUTRAIL_WRONG_SIZE);
    options.size = sizeof options;
    options.signal = 9999;
    EXPECT(gputrail_flight_start(&options, &flight), GPUTRAIL_INVALID_ARGUMENT);
    options.signal = 0;
    options.block_bytes = 5;
    EXPECT(gputrail_flight_start(&options, &flight), GPUTRAIL_LAYOUT);
    options.block_bytes = 4096;
    memset(&selection, 0, sizeof selection);
    options.selection = &selection;
    EXPECT(gputrail_flight_start(&options, &flight), GPUTRAIL_WRONG_SIZE);
    selection.size = sizeof selection;
    EXPECT(gputrail_flight_start(&options, &flight), GPUTRAIL_OK);
    EXPECT(gputrail_flight_path(flight, 0, NULL, 0, &count), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_flight_path(flight_of(buffer.handle), 0, NULL, 0, &count), GPUTRAIL_NO_SUCH_FLIGHT);
    EXPECT(gputrail_flight_stop(flight), GPUTRAIL_OK);
    EXPECT(gputrail_flight_start(NULL, &flight), GPUTRAIL_OK);
    EXPECT(gputrail_flight_dump(flight, NULL, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_flight_dump(flight, "/no/such/folder/x", &records), GPUTRAIL_NOT_WRITTEN);
    EXPECT(gputrail_flight_dump(flight_of(buffer.handle), "x", &records), GPUTRAIL_NO_SUCH_FLIGHT);
    EXPECT(gputrail_flight_triggered(flight, &count), GPUTRAIL_OK);
    CHECK(count == 0);
    EXPECT(gputrail_flight_stop(flight), GPUTRAIL_OK);
    EXPECT(gputrail_flight_stop(flight), GPUTRAIL_NO_SUCH_FLIGHT);
}

/* Lends one block after the other, of which some cannot be used. */
typedef struct { int asked, back, used, misaligned, small; uint64_t marks, memory[8][256]; } lender;

static void lend(gputrail_block *block, void *user_data) {
    lender *of = (lender *)user_data;
    CHECK(block->size == sizeof *block && block->memory == NULL);
    if (of->asked == 8) return;
    block->memory = (uint8_t *)of->memory[of->asked];
    block->bytes = sizeof of->memory[0];
    block->max_records = 5;
    if (of->asked == 1) block->memory += 4;
    if (of->asked == 2) block->bytes = 512;
    of->asked++;
}

static void returned(const gputrail_block *block, const gputrail_batch *records, void *user_data) {
    lender *of = (lender *)user_data;
    const gputrail_record_header *record = NULL;
    of->back++;
    of->misaligned += (size_t)block->memory % 8 != 0;
    of->small += block->bytes == 512;
    CHECK(records->size == sizeof *records && records->records == block->memory && records->bytes <= block->bytes);
    CHECK(block->shown == 0);
    while (gputrail_batch_next(records, &record) == GPUTRAIL_OK) {
        of->used++;
        of->marks += record->kind == GPUTRAIL_KIND_MARKER;
    }
    CHECK(gputrail_buffer_flush(records->buffer) == GPUTRAIL_BUSY);
}

/* Counts messages. */
static void count_message(uint32_t kind, const char *message, void *user_data) {
    CHECK(kind == GPUTRAIL_LOG_KIND_MESSAGE && message[0] != 0);
    ++*(int *)user_data;
}

/* Blocks that cannot be used are refused where the buffer is made, and come back. */
static void unusable_blocks(uint32_t format) {
    static lender of;
    gputrail_buffer_options options;
    gputrail_buffer buffer;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.format = format;
    memset(&of, 0, sizeof of);
    of.asked = 1;
    EXPECT(gputrail_buffer_create_of_client(&options, lend, NULL, returned, &of, &buffer), GPUTRAIL_INVALID_ARGUMENT);
    CHECK(of.back == 1 && of.misaligned == 1);
    EXPECT(gputrail_buffer_create_of_client(&options, lend, NULL, returned, &of, &buffer), GPUTRAIL_TOO_SMALL);
    CHECK(of.back == 2 && of.small == 1);
    of.asked = of.back = 0;
    options.blocks_ahead = 4;
    EXPECT(gputrail_buffer_create_of_client(&options, lend, NULL, returned, &of, &buffer), GPUTRAIL_INVALID_ARGUMENT);
    CHECK(of.asked == 2 && of.back == 2);
    /* A ring needs a block. */
    of.asked = 8;
    options.policy = GPUTRAIL_POLICY_OVERWRITE;
    EXPECT(gputrail_buffer_create_of_client(&options, lend, NULL, returned, &of, &buffer), GPUTRAIL_INVALID_ARGUMENT);
    CHECK(of.back == 2 && of.used == 0);
}

static void client_memory(uint32_t format) {
    static lender of;
    int messages = 0;
    gputrail_buffer_options options;
    gputrail_context context;
    gputrail_buffer buffer;
    gputrail_drops drops;
    gputrail_mark_options mark;
    int n;
    memset(&of, 0, sizeof of);
    memset(&options, 0, sizeof options);
    EXPECT(gputrail_buffer_create_of_client(NULL, NULL, deliver, complete, NULL, &buffer), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_buffer_create_of_client(NULL, request, deliver, NULL, NULL, &buffer), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_buffer_create_of_client(NULL, request, NULL, complete, NULL, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_buffer_create_of_client(&options, request, NULL, complete, NULL, &buffer), GPUTRAIL_WRONG_SIZE);
    options.size = sizeof options;
    options.format = 2;
    EXPECT(gputrail_buffer_create_of_client(&options, request, NULL, complete, NULL, &buffer), GPUTRAIL_INVALID_ARGUMENT);
    options.format = format;

    unusable_blocks(format);

    EXPECT(gputrail_log_to(GPUTRAIL_LOG_KIND_MESSAGE, count_message, &messages), GPUTRAIL_OK);
    messages = 0;
    EXPECT(gputrail_buffer_create_of_client(&options, lend, NULL, returned, &of, &buffer), GPUTRAIL_OK);
    EXPECT(gputrail_context_create(&context), GPUTRAIL_OK);
    EXPECT(gputrail_context_trace_to(context, buffer, NULL), GPUTRAIL_OK);
    EXPECT(gputrail_context_start(context), GPUTRAIL_OK);
    memset(&mark, 0, sizeof mark);
    mark.size = sizeof mark;
    mark.name = "mark";
    for (n = 0; n < 40; n++) {
        EXPECT(gputrail_mark(&mark), GPUTRAIL_OK);
        EXPECT(gputrail_buffer_flush(buffer), GPUTRAIL_OK);
        /* The flush returns the block. */
        drops.size = sizeof drops;
        EXPECT(gputrail_buffer_dropped_in_total(buffer, &drops), GPUTRAIL_OK);
        CHECK(of.marks + drops.of_kind[GPUTRAIL_KIND_MARKER] == (uint64_t)n + 1);
    }
    EXPECT(gputrail_context_stop(context), GPUTRAIL_OK);
    drops.size = sizeof drops;
    EXPECT(gputrail_buffer_dropped(buffer, &drops), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_destroy(buffer), GPUTRAIL_OK);
    CHECK(of.asked == 8 && of.back == 8 && of.misaligned == 1 && of.small == 1);
    /* Six blocks of at most five records: the rest is counted. What a block says of losses is a record too. */
    CHECK(drops.total > 0 && of.marks > 0 && of.used > 0 && of.used <= 30);
    /* The first block that cannot be used is told of. */
    CHECK(messages == 1);
    EXPECT(gputrail_log_to(0, NULL, NULL), GPUTRAIL_OK);
    EXPECT(gputrail_context_destroy(context), GPUTRAIL_OK);
}

static int left_behind;

static void count_left_behind(const gputrail_batch *batch, void *user_data) {
    const gputrail_record_header *record = NULL;
    CHECK(user_data == &left_behind);
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK) left_behind += record->kind == GPUTRAIL_KIND_MARKER;
}

static void files(void) {
    gputrail_buffer_options options;
    gputrail_buffer buffer;
    gputrail_context context;
    gputrail_mark_options mark;
    uint64_t bytes = 0;
    int status, file = fileno(tmpfile()), other = fileno(tmpfile());
    pid_t child;
    memset(&options, 0, sizeof options);
    EXPECT(gputrail_buffer_file_bytes(&options, &bytes), GPUTRAIL_WRONG_SIZE);
    options.size = sizeof options;
    options.pool_bytes = 1 << 16;
    options.block_bytes = 4096;
    options.threads = 4;
    options.period_nanos = 3600000000000u;
    EXPECT(gputrail_buffer_file_bytes(&options, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_buffer_file_bytes(&options, &bytes), GPUTRAIL_OK);
    CHECK(bytes > options.pool_bytes);
    EXPECT(gputrail_buffer_create_in_file(file, &options, NULL, NULL, &buffer), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_buffer_create_in_file(-1, &options, deliver, NULL, &buffer), GPUTRAIL_INVALID_ARGUMENT);
    EXPECT(gputrail_buffer_create_in_file(9999, &options, deliver, NULL, &buffer), GPUTRAIL_INVALID_ARGUMENT);
    EXPECT(gputrail_buffer_create_in_file(file, &options, deliver, NULL, &buffer), GPUTRAIL_TOO_SMALL);
    EXPECT(gputrail_recover(file, count_left_behind, &left_behind), GPUTRAIL_MALFORMED);
    EXPECT(gputrail_recover(file, NULL, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_recover(-1, count_left_behind, &left_behind), GPUTRAIL_INVALID_ARGUMENT);
    CHECK(ftruncate(file, (off_t)bytes) == 0 && ftruncate(other, (off_t)bytes) == 0 && write(other, "x", 1) == 1);
    EXPECT(gputrail_buffer_create_in_file(other, &options, deliver, NULL, &buffer), GPUTRAIL_INVALID_ARGUMENT);

    child = fork();
    if (child == 0) {
        failures = 0;
        EXPECT(gputrail_initialise(), GPUTRAIL_OK);
        EXPECT(gputrail_buffer_create_in_file(file, &options, deliver, NULL, &buffer), GPUTRAIL_OK);
        EXPECT(gputrail_context_create(&context), GPUTRAIL_OK);
        EXPECT(gputrail_context_trace_to(context, buffer, NULL), GPUTRAIL_OK);
        EXPECT(gputrail_context_start(context), GPUTRAIL_OK);
        memset(&mark, 0, sizeof mark);
        mark.size = sizeof mark;
        mark.name = "last words";
        EXPECT(gputrail_mark(&mark), GPUTRAIL_OK);
        EXPECT(gputrail_mark(&mark), GPUTRAIL_OK);
        fflush(stdout);
        if (failures == 0) raise(SIGKILL);
        _exit(1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    left_behind = 0;
    EXPECT(gputrail_recover(file, count_left_behind, &left_behind), GPUTRAIL_OK);
    CHECK(left_behind == 2);
    EXPECT(gputrail_recover(file, count_left_behind, &left_behind), GPUTRAIL_OK);
    CHECK(left_behind == 2);
}

static void threads(gputrail_buffer buffer) {
    gputrail_callback_thread thread, more[65];
    gputrail_buffer_options options;
    gputrail_buffer other;
    gputrail_watch watch;
    int n = 0;
    EXPECT(gputrail_callback_thread_create(NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_thread_watch(NULL, made, &watch), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_thread_watch(thread_made, made, NULL), GPUTRAIL_NULL_POINTER);
    made[0] = made[1] = 0;
    EXPECT(gputrail_thread_watch(thread_made, made, &watch), GPUTRAIL_OK);
    EXPECT(gputrail_callback_thread_create(&thread), GPUTRAIL_OK);
    CHECK(made[0] == 1 && made[1] == 1);
    EXPECT(gputrail_thread_unwatch(watch_of(thread.handle)), GPUTRAIL_NO_SUCH_WATCH);
    EXPECT(gputrail_thread_unwatch(watch), GPUTRAIL_OK);
    EXPECT(gputrail_thread_unwatch(watch), GPUTRAIL_NO_SUCH_WATCH);
    EXPECT(gputrail_buffer_assign(buffer, callback_thread_of(buffer.handle)), GPUTRAIL_NO_SUCH_THREAD);
    EXPECT(gputrail_buffer_assign(buffer_of(thread.handle), thread), GPUTRAIL_NO_SUCH_BUFFER);
    EXPECT(gputrail_buffer_assign(buffer, thread), GPUTRAIL_OK);
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.callback_thread.handle = buffer.handle;
    EXPECT(gputrail_buffer_create(&options, deliver, NULL, &other), GPUTRAIL_NO_SUCH_THREAD);
    options.callback_thread = thread;
    EXPECT(gputrail_buffer_create(&options, deliver, NULL, &other), GPUTRAIL_OK);
    EXPECT(gputrail_callback_thread_destroy(thread), GPUTRAIL_OK);
    EXPECT(gputrail_callback_thread_destroy(thread), GPUTRAIL_NO_SUCH_THREAD);
    EXPECT(gputrail_buffer_flush(other), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_destroy(other), GPUTRAIL_OK);
    while (n < 65 && gputrail_callback_thread_create(&more[n]) == GPUTRAIL_OK) n++;
    CHECK(n > 10 && n < 65 && made[0] == 1);
    EXPECT(gputrail_callback_thread_create(&more[n]), GPUTRAIL_TOO_MANY);
    while (n > 0) EXPECT(gputrail_callback_thread_destroy(more[--n]), GPUTRAIL_OK);
}

static void attributes(int first) {
    gputrail_attributes attributes;
    gputrail_limits limits;
    gputrail_thread_id system = gputrail_thread();
    memset(&attributes, 0, sizeof attributes);
    EXPECT(gputrail_attributes_get(NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_attributes_get(&attributes), GPUTRAIL_WRONG_SIZE);
    attributes.size = sizeof attributes;
    EXPECT(gputrail_attributes_get(&attributes), GPUTRAIL_OK);
    CHECK(attributes.pool_bytes >= attributes.block_bytes && attributes.latency_times == 1);
    CHECK(attributes.environment_period == (first ? 0 : 7000000));
    EXPECT(gputrail_attributes_set(NULL), GPUTRAIL_NULL_POINTER);
    attributes.block_bytes = 5;
    EXPECT(gputrail_attributes_set(&attributes), GPUTRAIL_LAYOUT);
    attributes.block_bytes = 8192;
    attributes.thread_ids = 77;
    EXPECT(gputrail_attributes_set(&attributes), GPUTRAIL_INVALID_ARGUMENT);
    attributes.thread_ids = GPUTRAIL_THREAD_IDS_PTHREAD;
    attributes.latency_times = 2;
    EXPECT(gputrail_attributes_set(&attributes), GPUTRAIL_INVALID_ARGUMENT);
    attributes.latency_times = 1;
    EXPECT(gputrail_attributes_set(&attributes), first ? GPUTRAIL_OK : GPUTRAIL_ATTRIBUTES_LOCKED);
    if (first) {
        CHECK(gputrail_thread() != system);
        attributes.thread_ids = GPUTRAIL_THREAD_IDS_SYSTEM;
        attributes.environment_period = 7000000;
        EXPECT(gputrail_attributes_set(&attributes), GPUTRAIL_OK);
    }
    CHECK(gputrail_thread() == system);
    EXPECT(gputrail_attributes_get(&attributes), GPUTRAIL_OK);
    CHECK(attributes.block_bytes == 8192 && attributes.environment_period == 7000000);
    EXPECT(gputrail_unified_memory_configure(0, 0, 1), GPUTRAIL_INVALID_ARGUMENT);
    EXPECT(gputrail_unified_memory_configure(0, 8, 1), GPUTRAIL_INVALID_ARGUMENT);
    EXPECT(gputrail_unified_memory_configure(0, GPUTRAIL_UNIFIED_MEMORY_COUNTER_KIND_THRASHING, 2),
           GPUTRAIL_INVALID_ARGUMENT);
    EXPECT(gputrail_unified_memory_configure(0, GPUTRAIL_UNIFIED_MEMORY_COUNTER_KIND_THRASHING, 1),
           first ? GPUTRAIL_OK : GPUTRAIL_ATTRIBUTES_LOCKED);
    limits.size = 3;
    EXPECT(gputrail_limits_get(NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_limits_get(&limits), GPUTRAIL_WRONG_SIZE);
    limits.size = sizeof limits;
    EXPECT(gputrail_limits_get(&limits), GPUTRAIL_OK);
    CHECK(limits.buffers == 32 && limits.contexts == 64 && limits.smallest_block == 1024);
}

static void operations(void) {
    gputrail_operation read, operation, unknown = {GPUTRAIL_DOMAIN_OPENCL, 9999}, all[600];
    gputrail_subscriber subscriber;
    gputrail_context context;
    gputrail_argument argument;
    char text[16];
    size_t length = 0, count = 0, known = 0;
    uint32_t place = 0;
    argument.size = sizeof argument;
    EXPECT(gputrail_operation_by_name(GPUTRAIL_DOMAIN_OPENCL, "clEnqueueReadBuffer", &read), GPUTRAIL_OK);
    CHECK(gputrail_group_of_operation(read) == GPUTRAIL_OPERATION_GROUP_ENQUEUE);
    while (gputrail_operation_argument(read, place, &argument) == GPUTRAIL_OK) place++;
    CHECK(place == 9 && strcmp(argument.name, "event") == 0 && argument.dereference_depth == 1);
    EXPECT(gputrail_operation_argument(read, 9, &argument), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_operation_argument(unknown, 0, &argument), GPUTRAIL_UNKNOWN_OPERATION);
    EXPECT(gputrail_operation_argument(read, 0, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_operation_by_name(GPUTRAIL_DOMAIN_RESOURCE, "code object loaded", &operation), GPUTRAIL_OK);
    EXPECT(gputrail_operations(GPUTRAIL_DOMAIN_RESOURCE, all, 600, &count), GPUTRAIL_OK);
    CHECK(count == 26 && all[0].domain == GPUTRAIL_DOMAIN_RESOURCE);
    EXPECT(gputrail_callback_argument_text(NULL, 0, 1, text, sizeof text, &length), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_external_kind_name(GPUTRAIL_EXTERNAL_KIND_CUSTOM0, text, 1, &length), GPUTRAIL_TOO_SMALL);
    EXPECT(gputrail_external_kind_name(GPUTRAIL_EXTERNAL_KIND_CUSTOM0, text, sizeof text, NULL), GPUTRAIL_OK);
    CHECK(length > 1 && strlen(text) == length);
    EXPECT(gputrail_external_kind_name(9999, text, sizeof text, NULL), GPUTRAIL_NOT_FOUND);

    EXPECT(gputrail_context_create(&context), GPUTRAIL_OK);
    EXPECT(gputrail_subscribe(context, &read, 1, called_back, NULL, &subscriber), GPUTRAIL_OK);
    EXPECT(gputrail_enabled_callbacks(subscriber, all, 600, &count), GPUTRAIL_OK);
    CHECK(count == 1 && all[0].number == read.number);
    EXPECT(gputrail_enabled_callbacks(subscriber, NULL, 0, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_enable_all_callbacks(subscriber, 1), GPUTRAIL_OK);
    EXPECT(gputrail_enabled_callbacks(subscriber, NULL, 0, &known), GPUTRAIL_OK);
    EXPECT(gputrail_enabled_callbacks(subscriber, all, 1, &count), GPUTRAIL_TOO_SMALL);
    CHECK(known > 100 && count == known);
    EXPECT(gputrail_enable_all_callbacks(subscriber, 0), GPUTRAIL_OK);
    EXPECT(gputrail_enabled_callbacks(subscriber, all, 600, &count), GPUTRAIL_OK);
    CHECK(count == 0);
    EXPECT(gputrail_context_destroy(context), GPUTRAIL_OK);
    EXPECT(gputrail_enable_all_callbacks(subscriber, 1), GPUTRAIL_NO_SUCH_SUBSCRIBER);
    EXPECT(gputrail_enabled_callbacks(subscriber, all, 600, &count), GPUTRAIL_NO_SUCH_SUBSCRIBER);
}

static void *from_a_thread(void *user_data) {
    char text[64];
    (void)user_data;
    CHECK(gputrail_last_error(text, sizeof text) == GPUTRAIL_OK && text[0] == 0);
    EXPECT(gputrail_context_start(context_of(1)), GPUTRAIL_NO_SUCH_CONTEXT);
    CHECK(gputrail_last_error(NULL, 0) == GPUTRAIL_NO_SUCH_CONTEXT);
    return NULL;
}

static void in_a_child(gputrail_context context) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        failures = 0;
        EXPECT(gputrail_context_start(context), GPUTRAIL_NOT_INITIALISED);
        EXPECT(gputrail_initialise(), GPUTRAIL_OK);
        EXPECT(gputrail_context_start(context), GPUTRAIL_NO_SUCH_CONTEXT);
        EXPECT(gputrail_context_create(&context), GPUTRAIL_OK);
        fflush(stdout);
        _exit(failures > 0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void markers(void) {
    gputrail_mark_options mark;
    gputrail_external_kind kind, again;
    gputrail_external_id id;
    uint64_t range = 0;
    memset(&mark, 0, sizeof mark);
    EXPECT(gputrail_mark(NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_mark(&mark), GPUTRAIL_WRONG_SIZE);
    mark.size = sizeof mark;
    EXPECT(gputrail_mark(&mark), GPUTRAIL_NULL_POINTER);
    mark.name = "\xff";
    EXPECT(gputrail_mark(&mark), GPUTRAIL_INVALID_ARGUMENT);
    mark.name = "name";
    mark.payload_kind = 77;
    EXPECT(gputrail_range_push(&mark), GPUTRAIL_INVALID_ARGUMENT);
    mark.payload_kind = GPUTRAIL_PAYLOAD_KIND_UNSIGNED;
    EXPECT(gputrail_mark(&mark), GPUTRAIL_OK);
    EXPECT(gputrail_range_pop(), GPUTRAIL_STACK_EMPTY);
    EXPECT(gputrail_range_push(&mark), GPUTRAIL_OK);
    EXPECT(gputrail_range_pop(), GPUTRAIL_OK);
    EXPECT(gputrail_range_start(&mark, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_range_start(&mark, &range), GPUTRAIL_OK);
    EXPECT(gputrail_range_end(range + 1), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_range_end(range), GPUTRAIL_OK);
    EXPECT(gputrail_name_thread(NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_name_queue(&mark, "none", NULL), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_name_agent(999, "none"), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_external_register_kind("mine", NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_external_register_kind("mine", &kind), GPUTRAIL_OK);
    EXPECT(gputrail_external_register_kind("mine", &again), GPUTRAIL_OK);
    CHECK(kind == again);
    EXPECT(gputrail_external_pop(kind, &id), GPUTRAIL_STACK_EMPTY);
    EXPECT(gputrail_external_push(kind + 100, 1), GPUTRAIL_INVALID_ARGUMENT);
    EXPECT(gputrail_external_push(kind, 5), GPUTRAIL_OK);
    EXPECT(gputrail_external_pop(kind, &id), GPUTRAIL_OK);
    CHECK(id == 5);
    EXPECT(gputrail_recording_start(), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_recording_stop(), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_recording_flush(), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_recording_dump(), GPUTRAIL_NOT_FOUND);
}

int main(void) {
    gputrail_context context;
    gputrail_buffer buffer;
    pthread_t thread;
    int round;
    before_initialisation();
    for (round = 0; round < 2; round++) {
        EXPECT(gputrail_initialise(), GPUTRAIL_OK);
        EXPECT(gputrail_initialise(), GPUTRAIL_OK);
        EXPECT(gputrail_context_create(&context), GPUTRAIL_OK);
        EXPECT(gputrail_buffer_create(NULL, deliver, NULL, &buffer), GPUTRAIL_OK);
        attributes(round == 0);
        null_pointers(context, buffer);
        sizes(context, buffer);
        services(context, buffer);
        ids();
        too_many();
        batches();
        names();
        clocks();
        markers();
        flights(buffer);
        threads(buffer);
        operations();
        client_memory(GPUTRAIL_RECORD_FORMAT_JOINED);
    client_memory(GPUTRAIL_RECORD_FORMAT_RAW);
        files();
        CHECK(pthread_create(&thread, NULL, from_a_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
        in_a_child(context);
        EXPECT(gputrail_finalise(), GPUTRAIL_OK);
        EXPECT(gputrail_context_start(context), GPUTRAIL_NOT_INITIALISED);
        EXPECT(gputrail_finalise(), GPUTRAIL_NOT_INITIALISED);
    }
    printf("%s %s\n", failures ? "failed" : "passed", gputrail_version());
    return failures > 0;
}
