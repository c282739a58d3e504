/* Calls what ROCm's header of ROCProfiler v1 has in another form than AMD's document, or has alone: rocprofiler.c has the rest.
   It is linked with the library. Compiled as C and as C++, with ROCPROFILER_PUBLISHED. */
#include "rocprofiler_checks.h"
#include <sys/syscall.h>

static void layouts(void) {
    layouts_of_both();
    SIZE(hsa_ven_amd_aqlprofile_parameter_t, 8);
    AT(rocprofiler_settings_t, code_obj_tracking, 4);
    AT(rocprofiler_settings_t, memcopy_tracking, 8);
    AT(rocprofiler_settings_t, trace_size, 12);
    AT(rocprofiler_settings_t, trace_local, 16);
    AT(rocprofiler_settings_t, hsa_intercepting, 36);
    AT(rocprofiler_settings_t, k_concurrent, 40);
    AT(rocprofiler_settings_t, opt_mode, 44);
    AT(rocprofiler_settings_t, obj_dumping, 48);
    SIZE(rocprofiler_parameter_t, 8);
    AT(rocprofiler_data_t, result_bytes.instance_count, 20);
    AT(rocprofiler_data_t, result_bytes.copy, 24);
    AT(rocprofiler_feature_t, counter.block, 8);
    AT(rocprofiler_feature_t, counter.event, 16);
    AT(rocprofiler_properties_t, queue, 0);
    AT(rocprofiler_properties_t, queue_depth, 8);
    AT(rocprofiler_properties_t, handler, 16);
    AT(rocprofiler_properties_t, handler_arg, 24);
    AT(rocprofiler_callback_data_t, queue_id, 32);
    AT(rocprofiler_callback_data_t, completion_signal, 40);
    AT(rocprofiler_callback_data_t, kernel_object, 64);
    AT(rocprofiler_callback_data_t, kernel_code, 72);
    AT(rocprofiler_callback_data_t, thread_id, 80);
    SIZE(rocprofiler_queue_callbacks_t, 24);
    AT(rocprofiler_queue_callbacks_t, create, 8);
    AT(rocprofiler_queue_callbacks_t, destroy, 16);
    SIZE(rocprofiler_info_query_t, 8);
    AT(rocprofiler_info_data_t, trace_parameter.code, 8);
    AT(rocprofiler_info_data_t, trace_parameter.trace_name, 16);
    AT(rocprofiler_info_data_t, trace_parameter.parameter_name, 24);
    AT(rocprofiler_info_data_t, trace_parameter.description, 32);
    SIZE(rocprofiler_hsa_callback_data_t, 72);
    SIZE(rocprofiler_hsa_callbacks_t, 48);
    CHECK(ROCPROFILER_FEATURE_KIND_SPM_MOD == 2 && ROCPROFILER_FEATURE_KIND_PCSMP_MOD == 4);
    CHECK(ROCPROFILER_TIME_ID_CLOCK_MONOTONIC == 2 && ROCPROFILER_TIME_ID_CLOCK_MONOTONIC_RAW == 4);
    CHECK(ROCPROFILER_INFO_KIND_TRACE_PARAMETER == 4 && ROCPROFILER_INFO_KIND_TRACE_PARAMETER_COUNT == 5);
}

static void versions_and_errors(void) {
    const char *text = NULL;
    CHECK(last_error()[0] == 0);
    CHECK(rocprofiler_version_major() == 8 && ROCPROFILER_VERSION_MAJOR == 8);
    CHECK(rocprofiler_version_minor() == 0 && ROCPROFILER_VERSION_MINOR == 0);
    EXPECT(rocprofiler_close(NULL), ERROR_INVALID_ARGUMENT);
    CHECK(rocprofiler_error_string(&text) == HSA_STATUS_SUCCESS);
    CHECK(strcmp(text, "rocprofiler_close: the context is null") == 0);
    EXPECT(rocprofiler_error_string(NULL), ERROR_INVALID_ARGUMENT);
    CHECK(strcmp(last_error(), "rocprofiler_error_string: str is null") == 0);
}

static hsa_status_t see(const rocprofiler_info_data_t info, void *data) {
    CHECK(info.kind == ROCPROFILER_INFO_KIND_METRIC && info.agent_index == 0 && info.metric.name[0]);
    ++*(uint32_t *)data;
    return HSA_STATUS_SUCCESS;
}

static void information(void) {
    const hsa_agent_t nobody = {7777};
    rocprofiler_info_query_t query;
    uint32_t all = 0, seen = 0, none = 7;
    EXPECT(rocprofiler_get_info(&agent, ROCPROFILER_INFO_KIND_METRIC_COUNT, &all), SUCCESS);
    EXPECT(rocprofiler_get_info(&agent, ROCPROFILER_INFO_KIND_TRACE_PARAMETER_COUNT, &none), SUCCESS);
    CHECK(all > 10 && none == 0);
    EXPECT(rocprofiler_get_info(&agent, ROCPROFILER_INFO_KIND_TRACE_PARAMETER, &none), ERROR_INVALID_ARGUMENT);
    memset(&query, 0, sizeof query);
    query.info_kind = ROCPROFILER_INFO_KIND_METRIC;
    EXPECT(rocprofiler_query_info(&agent, query, see, &seen), SUCCESS);
    CHECK(seen == all);
    EXPECT(rocprofiler_query_info(&nobody, query, see, &seen), ERROR_INVALID_AGENT);
    EXPECT(rocprofiler_query_info(NULL, query, NULL, &seen), ERROR_INVALID_ARGUMENT);
    query.info_kind = ROCPROFILER_INFO_KIND_TRACE;
    EXPECT(rocprofiler_query_info(NULL, query, see, &seen), SUCCESS);
    query.info_kind = ROCPROFILER_INFO_KIND_TRACE_PARAMETER;
    EXPECT(rocprofiler_query_info(NULL, query, see, &seen), SUCCESS);
    EXPECT(rocprofiler_iterate_info(NULL, ROCPROFILER_INFO_KIND_TRACE_PARAMETER, see, &seen), SUCCESS);
    CHECK(seen == all);
    query.info_kind = ROCPROFILER_INFO_KIND_TRACE_PARAMETER_COUNT;
    EXPECT(rocprofiler_query_info(NULL, query, see, &seen), ERROR_INVALID_ARGUMENT);
    query.info_kind = (rocprofiler_info_kind_t)77;
    EXPECT(rocprofiler_query_info(NULL, query, see, &seen), ERROR_INVALID_ARGUMENT);
}

/* Counts what `handler` is called for. */
static bool never(rocprofiler_group_t group, void *data) {
    (void)group;
    (void)data;
    failures++;
    return true;
}

static void contexts(void) {
    rocprofiler_feature_t features[2];
    rocprofiler_properties_t properties;
    rocprofiler_t *context = NULL;
    hsa_agent_t of = {7777};
    hsa_queue_t *own = NULL;
    uint32_t count = 0;
    memset(&properties, 0, sizeof properties);
    properties.handler = never;
    features[0] = feature("TASK_CLOCK");
    features[1] = feature("CPUS_UTILIZED");
    /* The counter of a block is taken for a name, here of none. */
    features[1].counter.block = "SQ";
    features[1].counter.event = 4;
    EXPECT(rocprofiler_open(agent, features, 2, &context, 0, &properties), ERROR_INVALID_ARGUMENT);
    CHECK(strstr(last_error(), "SQ"));
    features[1] = feature("CPUS_UTILIZED");
    features[1].kind = (rocprofiler_feature_kind_t)(ROCPROFILER_FEATURE_KIND_TRACE | ROCPROFILER_FEATURE_KIND_SPM_MOD);
    EXPECT(rocprofiler_open(agent, features, 2, &context, 0, &properties), ERROR_INVALID_ARGUMENT);
    CHECK(strstr(last_error(), "a trace"));
    features[1].kind = ROCPROFILER_FEATURE_KIND_PCSMP_MOD;
    EXPECT(rocprofiler_open(agent, features, 2, &context, 0, &properties), ERROR_INVALID_ARGUMENT);
    features[1].kind = ROCPROFILER_FEATURE_KIND_METRIC;
    EXPECT(rocprofiler_open(agent, features, 2, &context, 3, &properties), ERROR_INVALID_ARGUMENT);
    properties.queue_depth = 128;
    EXPECT(rocprofiler_open(agent, features, 2, &context, 3, &properties), SUCCESS);
    EXPECT(rocprofiler_get_agent(context, &of), SUCCESS);
    CHECK(of.handle == agent.handle);
    EXPECT(rocprofiler_get_agent(context, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_get_agent(NULL, &of), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_group_count(context, &count), SUCCESS);
    CHECK(count == 1);
    EXPECT(rocprofiler_get_metrics(context), ERROR);
    EXPECT(rocprofiler_reset(context, 0), SUCCESS);
    EXPECT(rocprofiler_close(context), SUCCESS);
    EXPECT(rocprofiler_get_agent(context, &of), ERROR_INVALID_ARGUMENT);

    EXPECT(rocprofiler_add_feature(features, NULL), ERROR);
    EXPECT(rocprofiler_features_set_open(agent, NULL, &context, 0, &properties), ERROR);
    EXPECT(rocprofiler_queue_create_profiled(agent, 64, 0, NULL, NULL, 0, 0, &own), ERROR);
    CHECK(own == NULL && strstr(last_error(), "HSA"));
}

static hsa_status_t of_hsa(rocprofiler_hsa_cb_id_t id, const rocprofiler_hsa_callback_data_t *data, void *arg) {
    (void)id;
    (void)data;
    (void)arg;
    failures++;
    return HSA_STATUS_SUCCESS;
}

static void hsa_callbacks(void) {
    rocprofiler_hsa_callbacks_t callbacks;
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.submit = of_hsa;
    EXPECT(rocprofiler_set_hsa_callbacks(callbacks, &callbacks), ERROR);
    CHECK(strstr(last_error(), "HSA"));
}

static void times(void) {
    static const struct {
        rocprofiler_time_id_t id;
        clockid_t clock;
    } clocks[] = {{ROCPROFILER_TIME_ID_CLOCK_REALTIME, CLOCK_REALTIME},
                  {ROCPROFILER_TIME_ID_CLOCK_REALTIME_COARSE, CLOCK_REALTIME_COARSE},
                  {ROCPROFILER_TIME_ID_CLOCK_MONOTONIC, CLOCK_MONOTONIC},
                  {ROCPROFILER_TIME_ID_CLOCK_MONOTONIC_COARSE, CLOCK_MONOTONIC_COARSE},
                  {ROCPROFILER_TIME_ID_CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC_RAW}};
    uint64_t errors[5];
    size_t of;
    for (of = 0; of < 5; of++) {
        /* The clock of the system may be set in between, but not by a minute. */
        const uint64_t minute = 60000000000;
        uint64_t before = nanos(clocks[of].clock), now = nanos(CLOCK_BOOTTIME), value = 0, error = 0;
        EXPECT(rocprofiler_get_time(clocks[of].id, now, &value, &error), SUCCESS);
        CHECK(value + minute > before && value < nanos(clocks[of].clock) + minute);
        CHECK(error > 0 && error < minute);
        errors[of] = error;
        /* Each alone, and neither. */
        EXPECT(rocprofiler_get_time(clocks[of].id, now + 5 * minute, &value, NULL), SUCCESS);
        CHECK(value > before + 3 * minute);
        error = 0;
        EXPECT(rocprofiler_get_time(clocks[of].id, now, NULL, &error), SUCCESS);
        CHECK(error > 0);
        EXPECT(rocprofiler_get_time(clocks[of].id, now, NULL, NULL), SUCCESS);
    }
    CHECK(errors[1] >= 1000000 && errors[3] >= 1000000);
    EXPECT(rocprofiler_get_time((rocprofiler_time_id_t)5, 0, NULL, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_get_time((rocprofiler_time_id_t)77, 0, &errors[0], &errors[1]), ERROR_INVALID_ARGUMENT);
}

/* Interception. */
enum { KERNELS = 40 };
static struct intercepted {
    rocprofiler_feature_t features[2];
    const rocprofiler_dispatch_record_t *record;
} dispatches[KERNELS];
static int dispatched, completed, created, destroyed, arg;
static uint32_t queue_id;
static cl_command_queue into;

static bool complete(rocprofiler_group_t group, void *data) {
    const struct intercepted *of = (const struct intercepted *)data;
    CHECK(group.index == 0 && group.feature_count == 2 && group.features[0] == &of->features[0]);
    /* The values of counters come with the data, as in ROCm. */
    EXPECT(rocprofiler_group_get_data(&group), SUCCESS);
    CHECK(of->features[0].data.kind == ROCPROFILER_DATA_KIND_INT64 && of->features[0].data.result_int64 > 0);
    EXPECT(rocprofiler_get_metrics(group.context), SUCCESS);
    CHECK(of->features[1].data.kind == ROCPROFILER_DATA_KIND_DOUBLE && of->features[1].data.result_double > 0);
    CHECK(of->record->end > of->record->begin && of->record->complete >= of->record->end);
    EXPECT(rocprofiler_close(group.context), SUCCESS);
    __atomic_add_fetch(&completed, 1, __ATOMIC_SEQ_CST);
    return completed % 2;
}

static hsa_status_t intercept(const rocprofiler_callback_data_t *data, void *user_data, rocprofiler_group_t *group) {
    struct intercepted *of = &dispatches[dispatched];
    rocprofiler_properties_t properties;
    rocprofiler_t *context = NULL;
    CHECK(dispatched < KERNELS && user_data == &arg && data->agent.handle == agent.handle && data->agent_index == 0);
    CHECK(data->queue->id == (uint64_t)(size_t)into && data->queue_id == queue_id);
    CHECK(data->completion_signal.handle == 0 && data->kernel_code != NULL);
    CHECK(data->kernel_object != 0 && data->kernel_object == data->packet->kernel_object);
    CHECK(data->thread_id == (uint32_t)syscall(SYS_gettid));
    CHECK(strcmp(data->kernel_name, "triple") == 0 && data->record->dispatch > 0);
    dispatched++;
    of->record = data->record;
    of->features[0] = feature("TASK_CLOCK");
    of->features[1] = feature("CPUS_UTILIZED");
    memset(&properties, 0, sizeof properties);
    properties.handler = complete;
    properties.handler_arg = of;
    EXPECT(rocprofiler_open(data->agent, of->features, 2, &context, 0, &properties), SUCCESS);
    EXPECT(rocprofiler_get_group(context, 0, group), SUCCESS);
    return HSA_STATUS_SUCCESS;
}

static hsa_queue_t *last_created;

static hsa_status_t queue_created(hsa_queue_t *of, void *data) {
    CHECK(data == &arg && of != NULL && of->id != 0);
    last_created = of;
    created++;
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t queue_destroyed(hsa_queue_t *of, void *data) {
    CHECK(data == &arg && of == last_created);
    destroyed++;
    return HSA_STATUS_SUCCESS;
}

static void interception(void) {
    rocprofiler_queue_callbacks_t callbacks;
    cl_command_queue other;
    memset(&callbacks, 0, sizeof callbacks);
    EXPECT(rocprofiler_set_queue_callbacks(callbacks, &arg), ERROR_INVALID_ARGUMENT);
    /* Nothing is set that these could change. */
    EXPECT(rocprofiler_start_queue_callbacks(), SUCCESS);
    EXPECT(rocprofiler_stop_queue_callbacks(), SUCCESS);
    callbacks.dispatch = intercept;
    callbacks.create = queue_created;
    callbacks.destroy = queue_destroyed;
    EXPECT(rocprofiler_set_queue_callbacks(callbacks, &arg), SUCCESS);
    into = queue;
    launch(5);
    CHECK(dispatched == 5);
    await(&completed, 5);
    /* Stopped and started. */
    EXPECT(rocprofiler_stop_queue_callbacks(), SUCCESS);
    EXPECT(rocprofiler_stop_queue_callbacks(), SUCCESS);
    launch(3);
    CHECK(dispatched == 5);
    EXPECT(rocprofiler_start_queue_callbacks(), SUCCESS);
    launch(2);
    CHECK(dispatched == 7);
    await(&completed, 7);
    /* A queue of its own. */
    CHECK(created == 0 && destroyed == 0);
    into = other = new_queue();
    CHECK(created == 1 && last_created->id == (uint64_t)(size_t)other);
    queue_id = 1;
    launch_in(other, 2);
    CHECK(dispatched == 9);
    await(&completed, 9);
    clReleaseCommandQueue(other);
    CHECK(created == 1 && destroyed == 1);
    queue_id = 0;
    into = queue;
    /* Callbacks that are set begin at once. */
    EXPECT(rocprofiler_stop_queue_callbacks(), SUCCESS);
    EXPECT(rocprofiler_set_queue_callbacks(callbacks, &arg), SUCCESS);
    launch(1);
    CHECK(dispatched == 10);
    await(&completed, 10);
    EXPECT(rocprofiler_remove_queue_callbacks(), SUCCESS);
    launch(1);
    CHECK(dispatched == 10);
    /* One callback suffices. */
    callbacks.dispatch = NULL;
    callbacks.destroy = NULL;
    EXPECT(rocprofiler_set_queue_callbacks(callbacks, &arg), SUCCESS);
    clReleaseCommandQueue(new_queue());
    CHECK(created == 2 && destroyed == 1);
    EXPECT(rocprofiler_remove_queue_callbacks(), SUCCESS);
}

/* Pools, on OpenCL and on the simulated GPU. */
enum { ENTRIES = 4 };
struct payload {
    rocprofiler_group_t group;
    const char *kernel_name;
};
static rocprofiler_feature_t pooled[1];
static rocprofiler_pool_t *pool;
static hsa_agent_t pool_agent;
static int fetched, handled;

static bool handle(const rocprofiler_pool_entry_t *entry, void *data) {
    const struct payload *payload = (const struct payload *)entry->payload;
    CHECK(data == &arg && payload->group.context == entry->context && payload->kernel_name[0]);
    EXPECT(rocprofiler_get_metrics(entry->context), SUCCESS);
    CHECK(pooled[0].data.kind == ROCPROFILER_DATA_KIND_INT64 && pooled[0].data.result_int64 > 0);
    __atomic_add_fetch(&handled, 1, __ATOMIC_SEQ_CST);
    return true;
}

static void open_pool(hsa_agent_t of, const char *name) {
    rocprofiler_pool_properties_t properties;
    memset(&properties, 0, sizeof properties);
    properties.num_entries = ENTRIES;
    properties.payload_bytes = sizeof(struct payload);
    properties.handler = handle;
    properties.handler_arg = &arg;
    pooled[0] = feature(name);
    pool_agent = of;
    fetched = handled = 0;
    EXPECT(rocprofiler_pool_open(of, pooled, 1, &pool, ROCPROFILER_MODE_SINGLEGROUP, &properties), SUCCESS);
}

static void close_pool(void) {
    EXPECT(rocprofiler_pool_flush(pool), SUCCESS);
    EXPECT(rocprofiler_pool_close(pool), SUCCESS);
    pool = NULL;
}

static hsa_status_t fetch(const rocprofiler_callback_data_t *data, void *user_data, rocprofiler_group_t *group) {
    rocprofiler_pool_entry_t entry;
    struct payload *payload;
    (void)user_data;
    if (!pool) open_pool(data->agent, "SQ_WAVES");
    if (data->agent.handle != pool_agent.handle) return HSA_STATUS_SUCCESS;
    if (rocprofiler_pool_fetch(pool, &entry) != HSA_STATUS_SUCCESS) return HSA_STATUS_SUCCESS;
    payload = (struct payload *)entry.payload;
    payload->kernel_name = data->kernel_name;
    EXPECT(rocprofiler_get_group(entry.context, 0, &payload->group), SUCCESS);
    *group = payload->group;
    fetched++;
    return HSA_STATUS_SUCCESS;
}

static void pools(void) {
    rocprofiler_queue_callbacks_t callbacks;
    int of;
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.dispatch = fetch;
    open_pool(agent, "TASK_CLOCK");
    EXPECT(rocprofiler_set_queue_callbacks(callbacks, NULL), SUCCESS);
    for (of = 1; of <= 2 * ENTRIES; of++) {
        launch(1);
        await(&handled, of);
    }
    CHECK(fetched > ENTRIES && fetched <= 2 * ENTRIES);
    EXPECT(rocprofiler_remove_queue_callbacks(), SUCCESS);
    close_pool();

    EXPECT(rocprofiler_set_queue_callbacks(callbacks, NULL), SUCCESS);
    simulate();
    EXPECT(rocprofiler_remove_queue_callbacks(), SUCCESS);
    CHECK(fetched > 10 && handled == fetched);
    close_pool();
}

/* The simulated GPU: each kernel in a context with a handler. */
enum { MOST = 4096 };
static rocprofiler_feature_t waves[MOST];
static int simulated_kernels, simulated_ends, simulated_queues;
static uint64_t queues_seen;

static bool simulated_end(rocprofiler_group_t group, void *data) {
    const rocprofiler_feature_t *of = (const rocprofiler_feature_t *)data;
    EXPECT(rocprofiler_get_metrics(group.context), SUCCESS);
    CHECK(group.features[0] == of && of->data.kind == ROCPROFILER_DATA_KIND_INT64 && of->data.result_int64 > 0);
    EXPECT(rocprofiler_close(group.context), SUCCESS);
    simulated_ends++;
    return false;
}

static hsa_status_t simulated_dispatch(const rocprofiler_callback_data_t *data, void *user_data, rocprofiler_group_t *group) {
    rocprofiler_properties_t properties;
    rocprofiler_t *context = NULL;
    CHECK(user_data == &arg && simulated_kernels < MOST && data->queue_id < 64 && data->kernel_object != 0);
    queues_seen |= (uint64_t)1 << data->queue_id;
    waves[simulated_kernels] = feature("SQ_WAVES");
    memset(&properties, 0, sizeof properties);
    properties.handler = simulated_end;
    properties.handler_arg = &waves[simulated_kernels];
    EXPECT(rocprofiler_open(data->agent, &waves[simulated_kernels], 1, &context, 0, &properties), SUCCESS);
    simulated_kernels++;
    return rocprofiler_get_group(context, 0, group);
}

static hsa_status_t simulated_queue(hsa_queue_t *of, void *data) {
    CHECK(of != NULL && data == &arg);
    simulated_queues++;
    return HSA_STATUS_SUCCESS;
}

static void simulated(void) {
    rocprofiler_queue_callbacks_t callbacks;
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.dispatch = simulated_dispatch;
    callbacks.create = simulated_queue;
    EXPECT(rocprofiler_set_queue_callbacks(callbacks, &arg), SUCCESS);
    simulate();
    CHECK(simulated_kernels > 20 && simulated_ends == simulated_kernels);
    /* Several queues, and more than one of them has kernels. */
    CHECK(simulated_queues > 1 && (queues_seen & (queues_seen - 1)) != 0);
    EXPECT(rocprofiler_remove_queue_callbacks(), SUCCESS);
}

int main(void) {
    layouts();
    versions_and_errors();
    set_up();
    information();
    contexts();
    hsa_callbacks();
    times();
    interception();
    pools();
    simulated();
    return tear_down();
}
