/* A program that is its own tool: the counters of a device, those of its dispatches, for a function and into a buffer, and those of the
 * device itself; and each status. Argument "called": the first call of OpenCL configures it; otherwise it has itself configured. */
#include "rocprofiler_sdk_checks.h"
#include <pthread.h>

enum { ROUNDS = 20000, LAUNCHES = 30, PUSHED = 55, WORD = 4000, LATE = 4, OF_LATE = 9 };

static rocprofiler_context_id_t by_function, by_buffer, of_device, of_device_too, told;
static rocprofiler_buffer_id_t of_dispatches, of_device_values;
static rocprofiler_client_id_t *client;
static rocprofiler_client_finalize_t finish;
static const rocprofiler_buffer_id_t without_buffer = {0};
static const rocprofiler_counter_id_t no_counter = {60000};
static const rocprofiler_counter_config_id_t no_config = {99999};

/* The counters of the device. */

static rocprofiler_counter_id_t task_clock, page_faults, used, twice;
static size_t counters;

static rocprofiler_status_t refuse(rocprofiler_agent_id_t agent, rocprofiler_counter_id_t *all, size_t number, void *data) {
    (void)agent, (void)all, (void)number, (void)data;
    return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
}

static rocprofiler_status_t see_dimension(rocprofiler_counter_id_t counter, const rocprofiler_counter_record_dimension_info_t *all,
    size_t number, void *data) {
    CHECK(number == 1 && strcmp(all->name, "DIMENSION_INSTANCE") == 0 && all->instance_size == 1);
    *(uint64_t *)data += counter.handle;
    return ROCPROFILER_STATUS_SUCCESS;
}

/* A counter of the system has one instance. */
static void see_instance(const rocprofiler_counter_info_v1_t *info) {
    const rocprofiler_counter_record_dimension_instance_info_t *one = info->dimensions_instances[0];
    rocprofiler_counter_id_t of = {0};
    size_t position = 9;
    CHECK(info->dimensions_count == 1 && info->dimensions_instances_count == 1 && info->spm_support == 0);
    CHECK(strcmp(info->dimensions[0]->name, "DIMENSION_INSTANCE") == 0 && info->dimensions[0]->instance_size == 1);
    CHECK(one->size == sizeof *one && one->counter_id == info->id.handle && one->dimensions_count == 1);
    CHECK((*one->dimensions)->index == 0 && strcmp((*one->dimensions)->dimension_name, "DIMENSION_INSTANCE") == 0);
    EXPECT(rocprofiler_query_record_counter_id(one->instance_id, &of), SUCCESS);
    CHECK(of.handle == info->id.handle);
    EXPECT(rocprofiler_query_record_dimension_position(one->instance_id, info->dimensions[0]->id, &position), SUCCESS);
    CHECK(position == 0);
}

static rocprofiler_status_t see(rocprofiler_agent_id_t agent, rocprofiler_counter_id_t *all, size_t number, void *data) {
    size_t place;
    CHECK(agent.handle == device_agent.handle && data == &counters);
    counters = number;
    for (place = 0; place < number; place++) {
        rocprofiler_counter_info_v0_t short_one;
        rocprofiler_counter_info_v1_t one;
        EXPECT(rocprofiler_query_counter_info(all[place], ROCPROFILER_COUNTER_INFO_VERSION_0, &short_one), SUCCESS);
        EXPECT(rocprofiler_query_counter_info(all[place], ROCPROFILER_COUNTER_INFO_VERSION_1, &one), SUCCESS);
        CHECK(one.size == sizeof one && one.id.handle == all[place].handle && short_one.id.handle == all[place].handle);
        CHECK(one.name == short_one.name && strcmp(one.description, short_one.description) == 0);
        CHECK(one.is_derived == short_one.is_derived && !one.is_constant && one.is_derived == (*one.block == 0));
        CHECK(one.is_derived == (*one.expression != 0));
        if (strcmp(one.name, "TASK_CLOCK") == 0) {
            task_clock = one.id;
            see_instance(&one);
        }
        if (strcmp(one.name, "PAGE_FAULTS") == 0) page_faults = one.id;
        if (strcmp(one.name, "CPUS_UTILIZED") == 0) {
            used = one.id;
            CHECK(one.is_derived && strstr(one.expression, "TASK_CLOCK"));
        }
        if (strcmp(one.name, "TWICE") == 0) CHECK(one.is_derived && strcmp(one.description, "two of them") == 0);
    }
    return ROCPROFILER_STATUS_SUCCESS;
}

static void what_there_is(void) {
    rocprofiler_counter_info_v1_t info;
    rocprofiler_counter_id_t of = {0};
    uint64_t seen = 0;
    size_t number = 9;
    EXPECT(rocprofiler_iterate_agent_supported_counters(device_agent, NULL, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_iterate_agent_supported_counters(no_agent, see, &counters), ERROR_AGENT_NOT_FOUND);
    EXPECT(rocprofiler_iterate_agent_supported_counters(host, see, &counters), ERROR_AGENT_ARCH_NOT_SUPPORTED);
    EXPECT(rocprofiler_iterate_agent_supported_counters(device_agent, refuse, NULL), ERROR_OUT_OF_RESOURCES);
    EXPECT(rocprofiler_iterate_agent_supported_counters(device_agent, see, &counters), SUCCESS);
    CHECK(counters > 4 && task_clock.handle != 0 && page_faults.handle != 0 && used.handle != 0);
    EXPECT(rocprofiler_query_counter_info(task_clock, ROCPROFILER_COUNTER_INFO_VERSION_1, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_query_counter_info(task_clock, ROCPROFILER_COUNTER_INFO_VERSION_NONE, &info), ERROR_INCOMPATIBLE_ABI);
    EXPECT(rocprofiler_query_counter_info(no_counter, ROCPROFILER_COUNTER_INFO_VERSION_1, &info), ERROR_COUNTER_NOT_FOUND);
    EXPECT(rocprofiler_iterate_counter_dimensions(task_clock, see_dimension, &seen), SUCCESS);
    CHECK(seen == task_clock.handle);
    EXPECT(rocprofiler_iterate_counter_dimensions(task_clock, NULL, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_iterate_counter_dimensions(no_counter, see_dimension, &seen), ERROR_COUNTER_NOT_FOUND);
    EXPECT(rocprofiler_query_counter_instance_count(device_agent, task_clock, &number), SUCCESS);
    CHECK(number == 1);
    EXPECT(rocprofiler_query_counter_instance_count(device_agent, task_clock, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_query_counter_instance_count(device_agent, no_counter, &number), ERROR_COUNTER_NOT_FOUND);
    CHECK(number == 0);
    EXPECT(rocprofiler_query_counter_instance_count(no_agent, task_clock, &number), ERROR_AGENT_NOT_FOUND);
    EXPECT(rocprofiler_query_record_counter_id((uint64_t)7 << 48 | 3, &of), SUCCESS);
    CHECK(of.handle == 7);
    EXPECT(rocprofiler_query_record_counter_id(0, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_query_record_dimension_position(0, 0, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_query_record_dimension_position((uint64_t)5 << 36, 7, &number), SUCCESS);
    CHECK(number == 5);
}

/* Counters of the tool's own. */
static rocprofiler_status_t define(const char *name, const char *expression, rocprofiler_agent_id_t agent,
    rocprofiler_counter_id_t *counter) {
    static const char description[] = "two of them";
    return rocprofiler_create_counter(name, strlen(name), expression, strlen(expression), description, sizeof description - 1, agent,
        counter);
}

static void own_counters(void) {
    const size_t before = counters;
    rocprofiler_counter_id_t none = {0};
    EXPECT(define("TWICE", "2*TASK_CLOCK", device_agent, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(define("", "2*TASK_CLOCK", device_agent, &none), ERROR_INVALID_ARGUMENT);
    EXPECT(define("two words", "2*TASK_CLOCK", device_agent, &none), ERROR_INVALID_ARGUMENT);
    EXPECT(define("TASK_CLOCK", "2*TASK_CLOCK", device_agent, &none), ERROR_INVALID_ARGUMENT);
    EXPECT(define("TWICE", "", device_agent, &none), ERROR_AST_GENERATION_FAILED);
    EXPECT(define("TWICE", "2*TASK_CLOCK", no_agent, &none), ERROR_AGENT_NOT_FOUND);
    EXPECT(define("TWICE", "2*TASK_CLOCK", host, &none), ERROR_AGENT_ARCH_NOT_SUPPORTED);
    CHECK(none.handle == 0);
    EXPECT(define("TWICE", "2*TASK_CLOCK", device_agent, &twice), SUCCESS);
    EXPECT(define("TWICE", "2*TASK_CLOCK", device_agent, &none), ERROR_INVALID_ARGUMENT);
    /* The library says on standard error what is wrong with this expression. */
    EXPECT(define("WRONG", "2*(TASK_CLOCK", device_agent, &none), ERROR_AST_GENERATION_FAILED);
    EXPECT(define("UNKNOWN", "2*NO_SUCH_COUNTER", device_agent, &none), ERROR_AST_GENERATION_FAILED);
    /* Of another one of its own. */
    EXPECT(define("THRICE", "TASK_CLOCK + TWICE", device_agent, &none), SUCCESS);
    EXPECT(rocprofiler_iterate_agent_supported_counters(device_agent, see, &counters), SUCCESS);
    CHECK(counters == before + 2 && twice.handle != 0 && none.handle != 0);
}

/* Sets of counters: "pair" of two, "all" of these and two metrics, "only" of one. */

static rocprofiler_counter_config_id_t pair, all, only;

static void sets(void) {
    rocprofiler_counter_id_t two[] = {task_clock, page_faults}, metrics[] = {used, twice, task_clock}, none = no_counter;
    rocprofiler_counter_config_id_t gone = {0};
    EXPECT(rocprofiler_create_counter_config(device_agent, two, 2, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_create_counter_config(device_agent, NULL, 0, &pair), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_create_counter_config(no_agent, two, 2, &pair), ERROR_AGENT_NOT_FOUND);
    EXPECT(rocprofiler_create_counter_config(host, two, 2, &pair), ERROR_METRIC_NOT_VALID_FOR_AGENT);
    EXPECT(rocprofiler_create_counter_config(device_agent, &none, 1, &pair), ERROR_COUNTER_NOT_FOUND);
    CHECK(pair.handle == 0);
    EXPECT(rocprofiler_create_counter_config(device_agent, two, 2, &pair), SUCCESS);
    all = pair;
    EXPECT(rocprofiler_create_counter_config(device_agent, metrics, 3, &all), SUCCESS);
    CHECK(pair.handle != 0 && all.handle != pair.handle);
    EXPECT(rocprofiler_create_counter_config(device_agent, two, 1, &only), SUCCESS);
    EXPECT(rocprofiler_create_counter_config(device_agent, two, 1, &gone), SUCCESS);
    EXPECT(rocprofiler_destroy_counter_config(gone), SUCCESS);
    EXPECT(rocprofiler_destroy_counter_config(gone), SUCCESS);
}

/* Dispatches: two sets in turn, and then one that is not counted. */

static int choices, counted_dispatches, values_of_functions, headers_seen, buffered_values;
static int delivered;
static uint64_t dispatch_ids[LAUNCHES];

static void choose(rocprofiler_dispatch_counting_service_data_t dispatch, rocprofiler_counter_config_id_t *config,
    rocprofiler_user_data_t *word, void *data) {
    const int choice = __atomic_fetch_add(&choices, 1, __ATOMIC_SEQ_CST) % 3;
    CHECK(data == &choices && config->handle == 0 && word->value == 0 && dispatch.size == sizeof dispatch);
    CHECK(dispatch.correlation_id.internal != 0 && dispatch.correlation_id.external.value == PUSHED);
    CHECK(dispatch.start_timestamp == 0 && dispatch.end_timestamp == 0);
    CHECK(dispatch.dispatch_info.agent_id.handle == device_agent.handle && dispatch.dispatch_info.grid_size.x == ITEMS);
    CHECK(dispatch.dispatch_info.kernel_id != 0 && dispatch.dispatch_info.queue_id.handle != 0);
    if (choice == 0) *config = pair;
    if (choice == 1) *config = all;
    word->value = WORD + (uint64_t)choice;
}

/* The values of a dispatch with one of the sets, with the word that was chosen with it. */
static void see_values(const rocprofiler_counter_record_t *values, size_t number, uint64_t dispatch) {
    double clock = 0, doubled = 0;
    size_t place;
    CHECK(number == 2 || number == 4);
    for (place = 0; place < number; place++) {
        rocprofiler_counter_id_t counter = {0};
        EXPECT(rocprofiler_query_record_counter_id(values[place].id, &counter), SUCCESS);
        CHECK(values[place].dispatch_id == dispatch && values[place].agent_id.handle == device_agent.handle);
        CHECK(values[place].user_data.value == WORD + (number > 2));
        if (counter.handle == task_clock.handle) clock = values[place].counter_value;
        else if (counter.handle == twice.handle) doubled = values[place].counter_value;
        else CHECK(values[place].counter_value >= 0 && (counter.handle == page_faults.handle || counter.handle == used.handle));
    }
    CHECK(clock > 0 && (number == 2 || doubled == 2 * clock));
}

static void take_values(rocprofiler_dispatch_counting_service_data_t dispatch, rocprofiler_counter_record_t *values, size_t number,
    rocprofiler_user_data_t word, void *data) {
    int place;
    CHECK(data == &values_of_functions && dispatch.size == sizeof dispatch && dispatch.dispatch_info.dispatch_id != 0);
    CHECK(dispatch.correlation_id.internal != 0 && dispatch.correlation_id.external.value == PUSHED);
    CHECK(dispatch.start_timestamp > 0 && dispatch.end_timestamp >= dispatch.start_timestamp);
    CHECK(word.value == WORD + (number > 2));
    see_values(values, number, dispatch.dispatch_info.dispatch_id);
    __atomic_fetch_add(&values_of_functions, (int)number, __ATOMIC_SEQ_CST);
    place = __atomic_fetch_add(&delivered, 1, __ATOMIC_SEQ_CST);
    if (place < LAUNCHES) dispatch_ids[place] = dispatch.dispatch_info.dispatch_id;
    add(&counted_dispatches);
}

static void take_records(rocprofiler_context_id_t context, rocprofiler_buffer_id_t buffer, rocprofiler_record_header_t **headers,
    size_t number, void *data, uint64_t drops) {
    size_t place, value;
    CHECK(context.handle == by_buffer.handle && buffer.handle == of_dispatches.handle && data == NULL && drops == 0);
    for (place = 0; place < number; place++) {
        const rocprofiler_dispatch_counting_service_record_t *header = headers[place]->payload;
        rocprofiler_counter_record_t values[4];
        CHECK(headers[place]->category == ROCPROFILER_BUFFER_CATEGORY_COUNTERS);
        CHECK(headers[place]->kind == ROCPROFILER_COUNTER_RECORD_PROFILE_COUNTING_DISPATCH_HEADER);
        CHECK(header->size == sizeof *header && header->num_records <= 4 && place + header->num_records < number);
        CHECK(header->end_timestamp >= header->start_timestamp && header->start_timestamp > 0);
        CHECK(header->correlation_id.internal != 0 && header->correlation_id.external.value == PUSHED);
        if (header->num_records > 4 || place + header->num_records >= number) return;
        for (value = 0; value < header->num_records; value++) {
            CHECK(headers[place + 1 + value]->kind == ROCPROFILER_COUNTER_RECORD_VALUE);
            values[value] = *(const rocprofiler_counter_record_t *)headers[place + 1 + value]->payload;
            add(&buffered_values);
        }
        see_values(values, header->num_records, header->dispatch_info.dispatch_id);
        place += header->num_records;
        add(&headers_seen);
    }
}

/* The device. */

static rocprofiler_counter_config_id_t wanted;
static rocprofiler_device_counting_agent_cb_t kept_set;
static int device_choices, device_records, samples_within;

static void choose_for_device(rocprofiler_context_id_t context, rocprofiler_agent_id_t agent,
    rocprofiler_device_counting_agent_cb_t set, void *data) {
    CHECK(agent.handle == device_agent.handle && data == &device_choices && set != NULL);
    EXPECT(set(no_context, pair), ERROR_CONTEXT_INVALID);
    EXPECT(set(told, pair), ERROR_CONTEXT_INVALID);
    EXPECT(set(context, no_config), ERROR_CONFIG_NOT_FOUND);
    if (wanted.handle != 0) EXPECT(set(context, wanted), SUCCESS);
    kept_set = set;
    device_choices++;
}

static void take_device_records(rocprofiler_context_id_t context, rocprofiler_buffer_id_t buffer,
    rocprofiler_record_header_t **headers, size_t number, void *data, uint64_t drops) {
    size_t place;
    CHECK(context.handle == of_device.handle && buffer.handle == of_device_values.handle && data == NULL && drops == 0);
    for (place = 0; place < number; place++) {
        const rocprofiler_counter_record_t *value = headers[place]->payload;
        CHECK(headers[place]->category == ROCPROFILER_BUFFER_CATEGORY_COUNTERS);
        CHECK(headers[place]->kind == ROCPROFILER_COUNTER_RECORD_VALUE && value->dispatch_id == 0);
        CHECK(value->user_data.value >= WORD && value->agent_id.handle == device_agent.handle);
        add(&device_records);
    }
}

/* Within a callback of a dispatch nothing can be read. */
static void see_dispatch(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *word, void *data) {
    const rocprofiler_user_data_t own = {1};
    (void)word, (void)data;
    if (record.phase != ROCPROFILER_CALLBACK_PHASE_ENTER) return;
    EXPECT(rocprofiler_sample_device_counting_service(of_device, own, ROCPROFILER_COUNTER_FLAG_NONE, NULL, NULL), ERROR_CONTEXT_ERROR);
    add(&samples_within);
}

static rocprofiler_status_t sample(rocprofiler_context_id_t context, uint64_t word, rocprofiler_counter_flag_t flag,
    rocprofiler_counter_record_t *values, size_t *number) {
    const rocprofiler_user_data_t own = {word};
    return rocprofiler_sample_device_counting_service(context, own, flag, values, number);
}

static double value_of(rocprofiler_counter_id_t counter, const rocprofiler_counter_record_t *values, size_t number) {
    size_t place;
    for (place = 0; place < number; place++) {
        rocprofiler_counter_id_t of = {0};
        EXPECT(rocprofiler_query_record_counter_id(values[place].id, &of), SUCCESS);
        if (of.handle == counter.handle) return values[place].counter_value;
    }
    printf("counter %d has no value\n", (int)counter.handle);
    failures++;
    return 0;
}

static void device(void) {
    const rocprofiler_counter_flag_t none = ROCPROFILER_COUNTER_FLAG_NONE, async = ROCPROFILER_COUNTER_FLAG_ASYNC;
    rocprofiler_counter_record_t values[8];
    size_t number = 8;
    double first;
    EXPECT(sample((rocprofiler_context_id_t){0}, WORD, none, values, &number), ERROR_CONTEXT_NOT_FOUND);
    EXPECT(sample(no_context, WORD, none, values, &number), ERROR_CONTEXT_NOT_STARTED);
    EXPECT(sample(of_device, WORD, none, values, &number), ERROR_CONTEXT_NOT_STARTED);

    /* A device for which nothing is set counts nothing. */
    EXPECT(rocprofiler_start_context(of_device), SUCCESS);
    CHECK(device_choices == 1);
    EXPECT(sample(of_device, WORD, none, values, &number), SUCCESS);
    CHECK(number == 0);
    EXPECT(rocprofiler_stop_context(of_device), SUCCESS);

    wanted = all;
    EXPECT(rocprofiler_start_context(of_device), SUCCESS);
    CHECK(device_choices == 2);
    EXPECT(kept_set(of_device, pair), ERROR_CONFIGURATION_LOCKED);
    EXPECT(rocprofiler_start_context(of_device_too), ERROR_CONTEXT_CONFLICT);
    EXPECT(rocprofiler_start_context(by_function), ERROR_CONTEXT_CONFLICT);
    launch(LAUNCHES);
    EXPECT(sample(of_device, WORD, none, values, NULL), ERROR_INVALID_ARGUMENT);
    number = 8;
    EXPECT(sample(of_device, WORD, async, values, &number), ERROR_INVALID_ARGUMENT);
    number = 0;
    EXPECT(sample(of_device, WORD, none, values, &number), ERROR_OUT_OF_RESOURCES);
    number = 3;
    EXPECT(sample(of_device, WORD, none, values, &number), ERROR_OUT_OF_RESOURCES);
    CHECK(number == 4);
    number = 8;
    EXPECT(sample(of_device, WORD + 1, none, values, &number), SUCCESS);
    CHECK(number == 4 && values[0].user_data.value == WORD + 1 && values[0].dispatch_id == 0);
    first = value_of(task_clock, values, number);
    CHECK(first > 0 && value_of(twice, values, number) == 2 * first && value_of(used, values, number) > 0);
    /* Totals are of all the time since the start. */
    EXPECT(rocprofiler_start_context(told), SUCCESS);
    launch(LAUNCHES);
    EXPECT(sample(told, WORD, none, NULL, NULL), ERROR_CONTEXT_INVALID);
    EXPECT(rocprofiler_stop_context(told), SUCCESS);
    CHECK(count(&samples_within) == LAUNCHES);
    number = 8;
    EXPECT(sample(of_device, WORD + 2, none, values, &number), SUCCESS);
    CHECK(number == 4 && value_of(task_clock, values, number) > first);
    EXPECT(sample(of_device, WORD + 3, async, NULL, NULL), SUCCESS);
    EXPECT(rocprofiler_flush_buffer(of_device_values), SUCCESS);
    /* Of the one that had too little room, too. */
    AWAIT(device_records, 4 * 4);
    EXPECT(rocprofiler_stop_context(of_device), SUCCESS);
    EXPECT(sample(of_device, WORD, none, values, &number), ERROR_CONTEXT_NOT_STARTED);

    EXPECT(rocprofiler_start_context(of_device_too), SUCCESS);
    launch(1);
    number = 8;
    EXPECT(sample(of_device_too, WORD, none, values, &number), SUCCESS);
    CHECK(number == 4 && value_of(task_clock, values, number) > 0);
    EXPECT(rocprofiler_stop_context(of_device_too), SUCCESS);
}

/* The tool. */

static void configure_dispatches(void) {
    EXPECT(rocprofiler_configure_callback_dispatch_counting_service(no_context, choose, &choices, take_values, NULL),
        ERROR_CONTEXT_INVALID);
    EXPECT(rocprofiler_configure_callback_dispatch_counting_service(by_function, NULL, NULL, take_values, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_configure_callback_dispatch_counting_service(by_function, choose, &choices, NULL, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_configure_callback_dispatch_counting_service(by_function, choose, &choices, take_values, &values_of_functions),
        SUCCESS);
    EXPECT(rocprofiler_configure_callback_dispatch_counting_service(by_function, choose, &choices, take_values, &values_of_functions),
        ERROR_SERVICE_ALREADY_CONFIGURED);
    EXPECT(rocprofiler_configure_buffer_dispatch_counting_service(no_context, of_dispatches, choose, &choices), ERROR_CONTEXT_INVALID);
    EXPECT(rocprofiler_configure_buffer_dispatch_counting_service(by_buffer, no_buffer, choose, &choices), ERROR_BUFFER_NOT_FOUND);
    EXPECT(rocprofiler_configure_buffer_dispatch_counting_service(by_buffer, of_dispatches, NULL, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_configure_buffer_dispatch_counting_service(by_buffer, of_dispatches, choose, &choices), SUCCESS);
}

static rocprofiler_status_t configure_device(rocprofiler_context_id_t context, rocprofiler_buffer_id_t buffer,
    rocprofiler_agent_id_t agent, rocprofiler_device_counting_service_cb_t chooser) {
    return rocprofiler_configure_device_counting_service(context, buffer, agent, chooser, &device_choices);
}

static void configure_devices(void) {
    EXPECT(configure_device(no_context, without_buffer, device_agent, choose_for_device), ERROR_CONTEXT_INVALID);
    EXPECT(configure_device(of_device, no_buffer, device_agent, choose_for_device), ERROR_BUFFER_NOT_FOUND);
    EXPECT(configure_device(of_device, without_buffer, no_agent, choose_for_device), ERROR_AGENT_NOT_FOUND);
    EXPECT(configure_device(of_device, without_buffer, host, choose_for_device), ERROR_AGENT_ARCH_NOT_SUPPORTED);
    EXPECT(configure_device(of_device, without_buffer, device_agent, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(configure_device(of_device, of_device_values, device_agent, choose_for_device), SUCCESS);
    EXPECT(configure_device(of_device, of_device_values, device_agent, choose_for_device), ERROR_INVALID_ARGUMENT);
    EXPECT(configure_device(of_device_too, without_buffer, device_agent, choose_for_device), SUCCESS);
    EXPECT(configure_device(by_function, without_buffer, device_agent, choose_for_device), ERROR_AGENT_DISPATCH_CONFLICT);
    EXPECT(rocprofiler_configure_callback_dispatch_counting_service(of_device, choose, &choices, take_values, NULL),
        ERROR_AGENT_DISPATCH_CONFLICT);
    EXPECT(rocprofiler_configure_buffer_dispatch_counting_service(of_device, of_device_values, choose, &choices),
        ERROR_AGENT_DISPATCH_CONFLICT);
}

static int initialise(rocprofiler_client_finalize_t finalise, void *data) {
    const rocprofiler_buffer_policy_t lossless = ROCPROFILER_BUFFER_POLICY_LOSSLESS;
    rocprofiler_context_id_t *const contexts[] = {&by_function, &by_buffer, &of_device, &of_device_too, &told};
    const rocprofiler_tracing_operation_t enqueue = ROCPROFILER_KERNEL_DISPATCH_ENQUEUE;
    size_t place;
    (void)data;
    finish = finalise;
    for (place = 0; place < sizeof contexts / sizeof *contexts; place++) EXPECT(rocprofiler_create_context(contexts[place]), SUCCESS);
    find_agents();
    what_there_is();
    own_counters();
    sets();
    EXPECT(rocprofiler_create_buffer(by_buffer, 1 << 16, 1 << 16, lossless, take_records, NULL, &of_dispatches), SUCCESS);
    EXPECT(rocprofiler_create_buffer(of_device, 1 << 16, 1 << 16, lossless, take_device_records, NULL, &of_device_values), SUCCESS);
    EXPECT(rocprofiler_configure_callback_tracing_service(told, ROCPROFILER_CALLBACK_TRACING_KERNEL_DISPATCH, &enqueue, 1,
        see_dispatch, NULL), SUCCESS);
    configure_dispatches();
    configure_devices();
    return 0;
}

static int finalised;

static void finalise(void *data) {
    (void)data;
    finalised++;
}

rocprofiler_tool_configure_result_t *rocprofiler_configure(uint32_t version, const char *text, uint32_t priority,
    rocprofiler_client_id_t *id) {
    static rocprofiler_tool_configure_result_t result = {sizeof result, initialise, finalise, NULL};
    (void)version, (void)text, (void)priority;
    client = id;
    return &result;
}

static void dispatches(void) {
    const rocprofiler_user_data_t id = {PUSHED};
    int place;
    EXPECT(rocprofiler_push_external_correlation_id(by_function, this_thread(), id), SUCCESS);
    EXPECT(rocprofiler_push_external_correlation_id(by_buffer, this_thread(), id), SUCCESS);
    EXPECT(rocprofiler_start_context(by_function), SUCCESS);
    EXPECT(rocprofiler_start_context(by_buffer), ERROR_CONTEXT_CONFLICT);
    EXPECT(rocprofiler_start_context(of_device), SUCCESS);
    EXPECT(rocprofiler_stop_context(of_device), SUCCESS);
    device_choices = 0;
    launch(LAUNCHES);
    AWAIT(counted_dispatches, LAUNCHES / 3 * 2);
    CHECK(choices == LAUNCHES && values_of_functions == LAUNCHES / 3 * (2 + 4));
    for (place = 1; place < count(&counted_dispatches); place++) CHECK(dispatch_ids[place] > dispatch_ids[place - 1]);
    EXPECT(rocprofiler_stop_context(by_function), SUCCESS);
    launch(1);
    CHECK(choices == LAUNCHES);

    EXPECT(rocprofiler_start_context(by_buffer), SUCCESS);
    launch(LAUNCHES);
    EXPECT(rocprofiler_stop_context(by_buffer), SUCCESS);
    EXPECT(rocprofiler_flush_buffer(of_dispatches), SUCCESS);
    CHECK(choices == 2 * LAUNCHES && headers_seen == LAUNCHES / 3 * 2 && buffered_values == LAUNCHES / 3 * (2 + 4));
}

/* Threads that begin while the context is started, some at the same time, launch kernels of their own. */
static void *launch_late(void *program) {
    const rocprofiler_user_data_t id = {PUSHED};
    const size_t items = ITEMS, group = 16;
    const int rounds = ROUNDS;
    cl_device_id device;
    cl_command_queue own_queue;
    cl_kernel own_kernel;
    int times;
    EXPECT(rocprofiler_push_external_correlation_id(by_function, this_thread(), id), SUCCESS);
    CHECK(clGetContextInfo(in, CL_CONTEXT_DEVICES, sizeof device, &device, NULL) == CL_SUCCESS);
    own_queue = clCreateCommandQueue(in, device, 0, NULL);
    own_kernel = clCreateKernel((cl_program)program, "hot", NULL);
    clSetKernelArg(own_kernel, 0, sizeof memory, &memory);
    clSetKernelArg(own_kernel, 1, sizeof rounds, &rounds);
    for (times = 0; times < OF_LATE; times++) {
        CHECK(clEnqueueNDRangeKernel(own_queue, own_kernel, 1, NULL, &items, &group, 0, NULL, NULL) == CL_SUCCESS);
    }
    CHECK(clFinish(own_queue) == CL_SUCCESS);
    clReleaseKernel(own_kernel);
    clReleaseCommandQueue(own_queue);
    return NULL;
}

static void late_threads(void) {
    pthread_t threads[LATE];
    cl_program program;
    int place;
    CHECK(clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof program, &program, NULL) == CL_SUCCESS);
    choices = counted_dispatches = values_of_functions = 0;
    EXPECT(rocprofiler_start_context(by_function), SUCCESS);
    for (place = 0; place < LATE; place++) {
        CHECK(pthread_create(&threads[place], NULL, launch_late, program) == 0);
        if (place == 0) pthread_join(threads[place], NULL);
    }
    for (place = 1; place < LATE; place++) pthread_join(threads[place], NULL);
    AWAIT(choices, LATE * OF_LATE);
    AWAIT(counted_dispatches, LATE * OF_LATE / 3 * 2);
    CHECK(values_of_functions == LATE * OF_LATE / 3 * (2 + 4));
    EXPECT(rocprofiler_stop_context(by_function), SUCCESS);
}

int main(int argc, char **argv) {
    (void)argv;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 2) EXPECT(rocprofiler_force_configure(rocprofiler_configure), SUCCESS);
    set_up(ROUNDS);
    CHECK(client != NULL && finish != NULL && finalised == 0);
    dispatches();
    late_threads();
    device();
    EXPECT(rocprofiler_start_context(of_device), SUCCESS);
    finish(*client);
    CHECK(finalised == 1);
    EXPECT(sample(of_device, WORD, ROCPROFILER_COUNTER_FLAG_NONE, NULL, NULL), ERROR_FINALIZED);
    tear_down();
    printf("%s\n", failures ? "failed" : "passed");
    return failures > 0;
}
