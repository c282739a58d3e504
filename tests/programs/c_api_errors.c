/* Errors that functions of the C API document, and that c_api.c has no story for: each of them, from each function. A test
   compares what the header documents with what these programs see. Compiled as C and as C++. */
#include "gputrail.h"
#include "checks.h"
#include "handles.h"
#include <stdio.h>
#include <string.h>

static const gputrail_operation NO_OPERATION = {0x7fff, 1};

static void deliver(const gputrail_batch *batch, void *user_data) {
    (void)batch;
    (void)user_data;
}

static void called_back(gputrail_callback *callback, void *user_data) {
    (void)callback;
    (void)user_data;
}

static void tell_work(const gputrail_work *work, void *user_data) {
    (void)work;
    (void)user_data;
}

static void tell_thread(int32_t after, void *user_data) {
    (void)after;
    (void)user_data;
}

/* Before the library is initialised, and after its end. */
static void not_initialised(void) {
    size_t links = 0;
    static const gputrail_operation none = {0, 0};
    gputrail_attributes attributes;
    gputrail_selection selection;
    gputrail_drops drops;
    gputrail_batch batch;
    gputrail_sampling_configuration can;
    gputrail_sampling_options sampling;
    gputrail_source_line line;
    gputrail_operation all[2];
    gputrail_nanos nanos;
    gputrail_agent_id agent;
    gputrail_runtime_context_id context;
    gputrail_queue_id queue;
    gputrail_record_agent of_agent;
    gputrail_record_context of_context;
    gputrail_record_queue of_queue;
    gputrail_record_module of_module;
    gputrail_record_stream of_stream;
    gputrail_record_event of_event;
    gputrail_record_kernel_symbol of_kernel;
    gputrail_record_code_object of_code;
    gputrail_record_thread of_thread;
    gputrail_callback_thread thread;
    gputrail_watch watch;
    gputrail_subscriber subscriber;
    gputrail_timeline timeline;
    gputrail_external_id external;
    size_t count;
    int32_t on;
    memset(&attributes, 0, sizeof attributes);
    attributes.size = sizeof attributes;
    memset(&selection, 0, sizeof selection);
    selection.size = sizeof selection;
    memset(&drops, 0, sizeof drops);
    drops.size = sizeof drops;
    memset(&batch, 0, sizeof batch);
    batch.size = sizeof batch;
    memset(&sampling, 0, sizeof sampling);
    sampling.size = sizeof sampling;
    EXPECT(gputrail_attributes_get(&attributes), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_attributes_set(&attributes), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_device_time_to_nanos(1, 1, &nanos), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_describe_agent(1, &of_agent), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_agent_links(1, NULL, 0, &links), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_agent_attribute(1, GPUTRAIL_AGENT_ATTRIBUTE_KIND_ECC, &of_agent.handle), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_unified_memory_configure(0, GPUTRAIL_UNIFIED_MEMORY_COUNTER_KIND_THRASHING, 1), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_describe_runtime_context(1, &of_context), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_describe_queue(1, &of_queue), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_describe_module(1, &of_module), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_describe_stream(1, &of_stream), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_describe_event(1, &of_event), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_describe_kernel(1, &of_kernel), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_describe_code_object(1, &of_code), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_describe_thread(1, &of_thread), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_agents(&agent, 1, &count), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_find_agents(), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_agent_of(1, &agent), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_runtime_context_of(1, &context), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_queue_of(1, &queue), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_stream_of(1, &of_stream.id), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_event_of(1, &of_event.id), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_name_stream(NULL, "x", NULL), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_name_runtime_context(NULL, "x", NULL), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_name_process("x"), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_buffer_destroy(buffer_of(1)), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_buffer_flush(buffer_of(1)), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_buffer_dropped(buffer_of(1), &drops), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_buffer_dropped_at(buffer_of(1), 0, 0, 0, &drops.total), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_buffer_flush_synchronized(buffer_of(1), 0, 0), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_buffer_assign(buffer_of(1), callback_thread_of(1)), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_recover(0, deliver, NULL), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_callback_thread_create(&thread), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_callback_thread_destroy(callback_thread_of(1)), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_thread_watch(tell_thread, NULL, &watch), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_thread_unwatch(watch_of(1)), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_context_destroy(context_of(1)), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_context_stop(context_of(1)), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_context_is_valid(context_of(1), &on), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_context_is_active(context_of(1), &on), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_context_trace_to(context_of(1), buffer_of(1), &selection), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_context_enable_kind(context_of(1), buffer_of(1), GPUTRAIL_KIND_API, 1), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_context_enable_kind_in(context_of(1), buffer_of(1), 1, GPUTRAIL_KIND_API, 1), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_context_enable_operation(context_of(1), buffer_of(1), none, 1), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_subscribe(context_of(1), NULL, 0, called_back, NULL, &subscriber), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_unsubscribe(subscriber_of(1)), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_enable_callback(subscriber_of(1), none, 1), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_subscriber_format(subscriber_of(1), GPUTRAIL_RECORD_FORMAT_RAW), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_callback_is_enabled(subscriber_of(1), none, &on), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_enable_all_callbacks(subscriber_of(1), 1), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_enabled_callbacks(subscriber_of(1), all, 2, &count), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_timeline_create(&timeline), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_timeline_add(timeline_of(1), &batch, tell_work, NULL), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_timeline_destroy(timeline_of(1), NULL, NULL), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_name_thread("name"), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_external_push(GPUTRAIL_EXTERNAL_KIND_CUSTOM0, 1), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_context_current_external(context_of(1), &external), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_flight_dump(flight_of(1), "dump", NULL), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_flight_triggered(flight_of(1), &count), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_flight_stop(flight_of(1)), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_sampling_configurations(1, &can, 1, &count), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_context_sample(context_of(1), buffer_of(1), 1, &sampling), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_source_line_of(1, 0, &line), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_context_collects_counters(context_of(1)), GPUTRAIL_NOT_INITIALISED);
    EXPECT(gputrail_context_reserve_counters(context_of(1)), GPUTRAIL_NOT_INITIALISED);
}

static void null_pointers(gputrail_context context) {
    static const gputrail_operation none = {0, 0};
    gputrail_subscriber subscriber;
    gputrail_batch batch;
    gputrail_timeline timeline;
    memset(&batch, 0, sizeof batch);
    batch.size = sizeof batch;
    EXPECT(gputrail_device_time_to_nanos(1, 1, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_kinds(NULL, 0, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_domain_by_name(NULL, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_describe_runtime_context(1, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_describe_queue(1, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_describe_module(1, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_describe_stream(1, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_describe_event(1, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_describe_kernel(1, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_describe_code_object(1, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_describe_thread(1, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_agent_of(1, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_runtime_context_of(1, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_queue_of(1, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_stream_of(1, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_event_of(1, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_name_stream("x", NULL, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_name_runtime_context("x", NULL, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_name_process(NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_subscribe(context, NULL, 0, called_back, NULL, &subscriber), GPUTRAIL_OK);
    EXPECT(gputrail_callback_is_enabled(subscriber, none, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_unsubscribe(subscriber), GPUTRAIL_OK);
    EXPECT(gputrail_timeline_create(NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_timeline_create(&timeline), GPUTRAIL_OK);
    EXPECT(gputrail_timeline_add(timeline, NULL, tell_work, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_timeline_add(timeline, &batch, NULL, NULL), GPUTRAIL_NULL_POINTER);
    batch.size = 3;
    EXPECT(gputrail_timeline_add(timeline, &batch, tell_work, NULL), GPUTRAIL_WRONG_SIZE);
    EXPECT(gputrail_timeline_destroy(timeline, NULL, NULL), GPUTRAIL_OK);
    EXPECT(gputrail_tool_probe(NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_external_name(GPUTRAIL_EXTERNAL_KIND_CUSTOM0, 1, NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_context_current_external(context_of(1), NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_flight_triggered(flight_of(1), NULL), GPUTRAIL_NULL_POINTER);
    EXPECT(gputrail_not_issued_by_name(NULL, NULL), GPUTRAIL_NULL_POINTER);
}

/* Objects that have been destroyed, and things that there are not. */
static void unknown_ids(gputrail_context context, gputrail_buffer buffer) {
    gputrail_context gone;
    gputrail_buffer gone_buffer;
    gputrail_subscriber subscriber;
    gputrail_timeline timeline;
    gputrail_operation mark;
    gputrail_drops drops;
    gputrail_batch batch;
    gputrail_record_context of_context;
    gputrail_record_queue of_queue;
    gputrail_record_module of_module;
    gputrail_record_stream of_stream;
    gputrail_record_event of_event;
    gputrail_record_kernel_symbol of_kernel;
    gputrail_record_code_object of_code;
    gputrail_record_thread of_thread;
    gputrail_runtime_context_id context_id;
    gputrail_queue_id queue_id;
    gputrail_domain domain;
    gputrail_instruction_type type;
    gputrail_stall_reason reason;
    size_t count;
    int32_t on;
    memset(&drops, 0, sizeof drops);
    drops.size = sizeof drops;
    memset(&batch, 0, sizeof batch);
    batch.size = sizeof batch;
    EXPECT(gputrail_context_create(&gone), GPUTRAIL_OK);
    EXPECT(gputrail_context_destroy(gone), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_create(NULL, deliver, NULL, &gone_buffer), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_destroy(gone_buffer), GPUTRAIL_OK);
    EXPECT(gputrail_operation_by_name(GPUTRAIL_DOMAIN_OPENCL, "clFinish", &mark), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_dropped(gone_buffer, &drops), GPUTRAIL_NO_SUCH_BUFFER);
    EXPECT(gputrail_buffer_dropped_at(gone_buffer, 0, 0, 0, &drops.total), GPUTRAIL_NO_SUCH_BUFFER);
    EXPECT(gputrail_buffer_flush_synchronized(gone_buffer, 0, 0), GPUTRAIL_NO_SUCH_BUFFER);
    EXPECT(gputrail_context_stop(gone), GPUTRAIL_NO_SUCH_CONTEXT);
    EXPECT(gputrail_context_trace_to(gone, buffer, NULL), GPUTRAIL_NO_SUCH_CONTEXT);
    EXPECT(gputrail_context_enable_kind(gone, buffer, GPUTRAIL_KIND_API, 1), GPUTRAIL_NO_SUCH_CONTEXT);
    EXPECT(gputrail_context_enable_kind(context, gone_buffer, GPUTRAIL_KIND_API, 1), GPUTRAIL_NO_SUCH_BUFFER);
    EXPECT(gputrail_context_enable_kind_in(gone, buffer, 1, GPUTRAIL_KIND_API, 1), GPUTRAIL_NO_SUCH_CONTEXT);
    EXPECT(gputrail_context_enable_kind_in(context, gone_buffer, 1, GPUTRAIL_KIND_API, 1), GPUTRAIL_NO_SUCH_BUFFER);
    EXPECT(gputrail_context_enable_operation(gone, buffer, mark, 1), GPUTRAIL_NO_SUCH_CONTEXT);
    EXPECT(gputrail_context_enable_operation(context, gone_buffer, mark, 1), GPUTRAIL_NO_SUCH_BUFFER);
    EXPECT(gputrail_context_enable_operation(context, buffer, mark, 1), GPUTRAIL_NO_SUCH_SERVICE);
    EXPECT(gputrail_context_collects_counters(gone), GPUTRAIL_NO_SUCH_CONTEXT);
    EXPECT(gputrail_context_reserve_counters(gone), GPUTRAIL_NO_SUCH_CONTEXT);
    EXPECT(gputrail_subscribe(gone, NULL, 0, called_back, NULL, &subscriber), GPUTRAIL_NO_SUCH_CONTEXT);
    EXPECT(gputrail_subscribe(context, &NO_OPERATION, 1, called_back, NULL, &subscriber), GPUTRAIL_UNKNOWN_OPERATION);
    EXPECT(gputrail_subscribe(context, NULL, 0, called_back, NULL, &subscriber), GPUTRAIL_OK);
    EXPECT(gputrail_enable_callback(subscriber, NO_OPERATION, 1), GPUTRAIL_UNKNOWN_OPERATION);
    EXPECT(gputrail_unsubscribe(subscriber), GPUTRAIL_OK);
    EXPECT(gputrail_enable_callback(subscriber, mark, 1), GPUTRAIL_NO_SUCH_SUBSCRIBER);
    EXPECT(gputrail_subscriber_format(subscriber, GPUTRAIL_RECORD_FORMAT_RAW), GPUTRAIL_NO_SUCH_SUBSCRIBER);
    EXPECT(gputrail_callback_is_enabled(subscriber, mark, &on), GPUTRAIL_NO_SUCH_SUBSCRIBER);
    EXPECT(gputrail_timeline_create(&timeline), GPUTRAIL_OK);
    EXPECT(gputrail_timeline_destroy(timeline, tell_work, NULL), GPUTRAIL_OK);
    EXPECT(gputrail_timeline_destroy(timeline, NULL, NULL), GPUTRAIL_NO_SUCH_TIMELINE);
    EXPECT(gputrail_timeline_add(timeline, &batch, tell_work, NULL), GPUTRAIL_NO_SUCH_TIMELINE);
    EXPECT(gputrail_tool_finish(tool_of(999)), GPUTRAIL_NO_SUCH_TOOL);
    EXPECT(gputrail_tool_probe("./missing.so"), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_flight_triggered(flight_of(999), &count), GPUTRAIL_NO_SUCH_FLIGHT);
    EXPECT(gputrail_domain_by_name("no such", &domain), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_operation_by_name(GPUTRAIL_DOMAIN_OPENCL, "no such", &mark), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_describe_runtime_context(999, &of_context), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_describe_queue(999, &of_queue), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_describe_module(999, &of_module), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_describe_stream(999, &of_stream), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_describe_event(999, &of_event), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_describe_kernel(999, &of_kernel), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_describe_code_object(999, &of_code), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_describe_thread(0x7fffffff, &of_thread), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_runtime_context_of(999, &context_id), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_queue_of(999, &queue_id), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_stream_of(999, &of_stream.id), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_event_of(999, &of_event.id), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_name_stream(&of_stream, "x", NULL), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_name_runtime_context(&of_stream, "x", NULL), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_instruction_type_by_name("no such", &type), GPUTRAIL_NOT_FOUND);
    EXPECT(gputrail_stall_reason_by_name("no such", &reason), GPUTRAIL_NOT_FOUND);
}

static void kinds_and_operations(gputrail_context context, gputrail_buffer buffer) {
    EXPECT(gputrail_context_trace_to(context, buffer, NULL), GPUTRAIL_OK);
    EXPECT(gputrail_context_enable_kind(context, buffer, 250, 1), GPUTRAIL_UNKNOWN_KIND);
    EXPECT(gputrail_context_enable_kind(context, buffer, GPUTRAIL_KIND_API, 0), GPUTRAIL_NOT_ALONE);
    EXPECT(gputrail_context_enable_operation(context, buffer, NO_OPERATION, 1), GPUTRAIL_UNKNOWN_OPERATION);
}

/* Sizes of what is read and written, and records that are none. */
static void sizes(void) {
    gputrail_attributes attributes;
    gputrail_batch batch;
    gputrail_record_arguments record;
    gputrail_argument argument;
    gputrail_callback callback;
    gputrail_operation finish;
    gputrail_record_thread thread;
    const gputrail_record_header *next = NULL;
    char text[3];
    size_t length = 0;
    memset(&attributes, 0, sizeof attributes);
    memset(&batch, 0, sizeof batch);
    memset(&record, 0, sizeof record);
    memset(&callback, 0, sizeof callback);
    memset(&argument, 0, sizeof argument);
    argument.size = sizeof argument;
    callback.size = sizeof callback;
    EXPECT(gputrail_attributes_set(&attributes), GPUTRAIL_WRONG_SIZE);
    EXPECT(gputrail_batch_next(&batch, &next), GPUTRAIL_WRONG_SIZE);
    EXPECT(gputrail_operation_by_name(GPUTRAIL_DOMAIN_OPENCL, "clFinish", &finish), GPUTRAIL_OK);
    EXPECT(gputrail_callback_argument(&callback, 0, &argument), GPUTRAIL_INVALID_ARGUMENT);
    record.header.kind = GPUTRAIL_KIND_ARGUMENTS;
    record.header.words = 4;
    record.count = 1;
    record.operation = finish;
    EXPECT(gputrail_record_argument(&record.header, 0, &argument), GPUTRAIL_OK);
    EXPECT(gputrail_record_argument(&record.header, 1, &argument), GPUTRAIL_NOT_FOUND);
    record.operation = NO_OPERATION;
    EXPECT(gputrail_record_argument(&record.header, 0, &argument), GPUTRAIL_UNKNOWN_OPERATION);
    record.header.kind = GPUTRAIL_KIND_MARKER;
    EXPECT(gputrail_record_argument(&record.header, 0, &argument), GPUTRAIL_MALFORMED);
    record.header.kind = GPUTRAIL_KIND_ARGUMENTS;
    record.operation = finish;
    argument.size = 3;
    EXPECT(gputrail_record_argument(&record.header, 0, &argument), GPUTRAIL_WRONG_SIZE);
    EXPECT(gputrail_operation_argument(finish, 0, &argument), GPUTRAIL_WRONG_SIZE);
    EXPECT(gputrail_name_thread("\xff"), GPUTRAIL_INVALID_ARGUMENT);
    EXPECT(gputrail_name_thread("a name"), GPUTRAIL_OK);
    EXPECT(gputrail_describe_thread(gputrail_thread(), &thread), GPUTRAIL_OK);
    EXPECT(gputrail_string(thread.name, text, sizeof text, &length), GPUTRAIL_TOO_SMALL);
    if (length != 6) failures++;
}

/* One thing too many. */
static void too_many(gputrail_context context) {
    gputrail_subscriber subscribers[28];
    gputrail_external_kind kind = 0;
    gputrail_external_id id;
    char name[16];
    int made = 0, number;
    while (made < 28 && gputrail_subscribe(context, NULL, 0, called_back, NULL, &subscribers[made]) == GPUTRAIL_OK) made++;
    if (made != 23) failures++;
    EXPECT(gputrail_subscribe(context, NULL, 0, called_back, NULL, &subscribers[23]), GPUTRAIL_TOO_MANY);
    while (made > 0) EXPECT(gputrail_unsubscribe(subscribers[--made]), GPUTRAIL_OK);
    for (number = 0; number < 1024; number++)
        EXPECT(gputrail_external_push(GPUTRAIL_EXTERNAL_KIND_CUSTOM1, 7), GPUTRAIL_OK);
    EXPECT(gputrail_external_push(GPUTRAIL_EXTERNAL_KIND_CUSTOM1, 7), GPUTRAIL_STACK_FULL);
    for (number = 0; number < 1024; number++)
        EXPECT(gputrail_external_pop(GPUTRAIL_EXTERNAL_KIND_CUSTOM1, &id), GPUTRAIL_OK);
    EXPECT(gputrail_external_pop(GPUTRAIL_EXTERNAL_KIND_CUSTOM1, &id), GPUTRAIL_STACK_EMPTY);
    EXPECT(gputrail_context_push_external(context_of(99), GPUTRAIL_EXTERNAL_KIND_CUSTOM1, 7), GPUTRAIL_NO_SUCH_CONTEXT);
    EXPECT(gputrail_context_current_external(context_of(99), &id), GPUTRAIL_NO_SUCH_CONTEXT);
    EXPECT(gputrail_external_register_kind("\xff", &kind), GPUTRAIL_INVALID_ARGUMENT);
    for (number = 0; number < 256; number++) {
        snprintf(name, sizeof name, "kind %d", number);
        if (gputrail_external_register_kind(name, &kind) != GPUTRAIL_OK) break;
    }
    EXPECT(gputrail_external_register_kind("too much", &kind), GPUTRAIL_TOO_MANY);
}

static void from_within(const gputrail_batch *batch, void *user_data) {
    int *told = (int *)user_data;
    (void)batch;
    if ((*told)++) return;
    EXPECT(gputrail_finalise(), GPUTRAIL_BUSY);
    EXPECT(gputrail_buffer_destroy(batch->buffer), GPUTRAIL_BUSY);
    EXPECT(gputrail_buffer_flush(batch->buffer), GPUTRAIL_BUSY);
}

static void from_callbacks(void) {
    gputrail_context context;
    gputrail_buffer buffer;
    gputrail_mark_options mark;
    gputrail_attributes attributes;
    int told = 0;
    memset(&mark, 0, sizeof mark);
    mark.size = sizeof mark;
    mark.name = "mark";
    EXPECT(gputrail_context_create(&context), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_create(NULL, from_within, &told, &buffer), GPUTRAIL_OK);
    EXPECT(gputrail_context_trace_to(context, buffer, NULL), GPUTRAIL_OK);
    EXPECT(gputrail_context_start(context), GPUTRAIL_OK);
    EXPECT(gputrail_mark(&mark), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_flush(buffer), GPUTRAIL_OK);
    if (told == 0) failures++;
    memset(&attributes, 0, sizeof attributes);
    attributes.size = sizeof attributes;
    EXPECT(gputrail_attributes_get(&attributes), GPUTRAIL_OK);
    EXPECT(gputrail_attributes_set(&attributes), GPUTRAIL_ATTRIBUTES_LOCKED);
    EXPECT(gputrail_context_destroy(context), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_destroy(buffer), GPUTRAIL_OK);
}

int main(void) {
    gputrail_context context;
    gputrail_buffer buffer;
    not_initialised();
    EXPECT(gputrail_initialise(), GPUTRAIL_OK);
    EXPECT(gputrail_context_create(&context), GPUTRAIL_OK);
    EXPECT(gputrail_buffer_create(NULL, deliver, NULL, &buffer), GPUTRAIL_OK);
    sizes();
    null_pointers(context);
    unknown_ids(context, buffer);
    kinds_and_operations(context, buffer);
    from_callbacks();
    too_many(context);
    EXPECT(gputrail_finalise(), GPUTRAIL_OK);
    not_initialised();
    printf("%s\n", failures ? "failed" : "passed");
    return failures > 0;
}
