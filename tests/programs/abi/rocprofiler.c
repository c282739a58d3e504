/* Calls every function of ROCProfiler v1 in the form of AMD's document, and provokes every status that the library returns, as far as it can happen here.
   It is linked with the library. Compiled as C and as C++. */
#include "rocprofiler_checks.h"

static void layouts(void) {
    layouts_of_both();
    SIZE(rocprofiler_feature_parameter_t, 8);
    AT(rocprofiler_data_t, result_bytes.instances, 20);
    AT(rocprofiler_feature_t, type, 0);
    AT(rocprofiler_properties_t, callback_arg, 8);
    AT(rocprofiler_properties_t, queue, 16);
    AT(rocprofiler_properties_t, queue_depth, 24);
    SIZE(rocprofiler_queue_callbacks_t, 16);
}

static void versions_and_errors(void) {
    CHECK(rocprofiler_error_string()[0] == 0);
    CHECK(rocprofiler_version_major() == ROCPROFILER_VERSION_MAJOR && rocprofiler_version_minor() == ROCPROFILER_VERSION_MINOR);
    CHECK(rocprofiler_version_major() == 8 && rocprofiler_version_minor() == 0);
    CHECK(rocprofiler_major_version() == ROCPROFILER_VERSION_MAJOR && rocprofiler_minor_version() == ROCPROFILER_VERSION_MINOR);
    EXPECT(rocprofiler_close(NULL), ERROR_INVALID_ARGUMENT);
    CHECK(strcmp(last_error(), "rocprofiler_close: the context is null") == 0);
}

/* Information. */
static struct found {
    uint32_t counters, metrics, index;
    rocprofiler_info_data_t last;
} found;

static hsa_status_t see(const rocprofiler_info_data_t info, void *data) {
    struct found *all = (struct found *)data;
    CHECK(info.kind == ROCPROFILER_INFO_KIND_METRIC && info.metric.name[0] && info.metric.description);
    if (info.metric.expr) {
        CHECK(info.metric.expr[0] && !info.metric.block_name && info.metric.instances == 1);
        all->metrics++;
    } else {
        CHECK(info.metric.block_name[0] && info.metric.instances > 0);
        all->counters++;
    }
    all->index = info.agent_index;
    all->last = info;
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t leave(const rocprofiler_info_data_t info, void *data) {
    CHECK(info.metric.name);
    ++*(int *)data;
    return HSA_STATUS_INFO_BREAK;
}

static void information(void) {
    const rocprofiler_info_kind_t metric = ROCPROFILER_INFO_KIND_METRIC, metrics = ROCPROFILER_INFO_KIND_METRIC_COUNT;
    const rocprofiler_info_kind_t trace = ROCPROFILER_INFO_KIND_TRACE, traces = ROCPROFILER_INFO_KIND_TRACE_COUNT;
    const hsa_agent_t nobody = {7777};
    rocprofiler_info_query_t query;
    uint32_t all = 0, own = 0, none = 7;
    int calls = 0;
    EXPECT(rocprofiler_get_info(NULL, metrics, &all), SUCCESS);
    EXPECT(rocprofiler_get_info(&agent, metrics, &own), SUCCESS);
    CHECK(all == own && own > 10);
    EXPECT(rocprofiler_get_info(NULL, traces, &none), SUCCESS);
    CHECK(none == 0);
    EXPECT(rocprofiler_get_info(&nobody, metrics, &all), ERROR_INVALID_AGENT);
    EXPECT(rocprofiler_get_info(NULL, metrics, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_get_info(NULL, metric, &all), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_get_info(NULL, trace, &all), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_get_info(NULL, (rocprofiler_info_kind_t)77, &all), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_iterate_info(&agent, metric, see, &found), SUCCESS);
    CHECK(found.counters + found.metrics == own && found.metrics > 0 && found.index == 0);
    EXPECT(rocprofiler_iterate_info(NULL, trace, see, &found), SUCCESS);
    CHECK(found.counters + found.metrics == own);
    CHECK(rocprofiler_iterate_info(NULL, metric, leave, &calls) == HSA_STATUS_INFO_BREAK && calls == 1);
    EXPECT(rocprofiler_iterate_info(&nobody, metric, see, &found), ERROR_INVALID_AGENT);
    EXPECT(rocprofiler_iterate_info(NULL, metrics, see, &found), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_iterate_info(NULL, (rocprofiler_info_kind_t)77, see, &found), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_iterate_info(NULL, metric, NULL, &found), ERROR_INVALID_ARGUMENT);

    memset(&query, 0, sizeof query);
    memset(&found, 0, sizeof found);
    EXPECT(rocprofiler_query_info(&agent, metric, query, see, &found), SUCCESS);
    CHECK(found.counters + found.metrics == own);
    query.metric.name = "TASK_CLOCK";
    memset(&found, 0, sizeof found);
    EXPECT(rocprofiler_query_info(NULL, metric, query, see, &found), SUCCESS);
    CHECK(found.counters == 1 && found.metrics == 0 && strcmp(found.last.metric.name, "TASK_CLOCK") == 0);
    query.metric.name = NULL;
    query.metric.block_name = found.last.metric.block_name;
    memset(&found, 0, sizeof found);
    EXPECT(rocprofiler_query_info(NULL, metric, query, see, &found), SUCCESS);
    CHECK(found.counters > 1 && found.metrics == 0);
    query.metric.name = "CPUS_UTILIZED";
    memset(&found, 0, sizeof found);
    EXPECT(rocprofiler_query_info(NULL, metric, query, see, &found), SUCCESS);
    CHECK(found.counters + found.metrics == 0);
    EXPECT(rocprofiler_query_info(&nobody, metric, query, see, &found), ERROR_INVALID_AGENT);
    EXPECT(rocprofiler_query_info(NULL, metric, query, NULL, &found), ERROR_INVALID_ARGUMENT);
    query.metric.name = NULL;
    CHECK(rocprofiler_query_info(NULL, metric, query, leave, &calls) == HSA_STATUS_INFO_BREAK && calls == 2);
    EXPECT(rocprofiler_query_info(NULL, traces, query, see, &found), ERROR_INVALID_ARGUMENT);
}

static hsa_status_t see_trace(hsa_ven_amd_aqlprofile_info_type_t type, hsa_ven_amd_aqlprofile_info_data_t *info, void *data) {
    (void)type;
    (void)info;
    (void)data;
    failures++;
    return HSA_STATUS_SUCCESS;
}

static void contexts(void) {
    const hsa_agent_t nobody = {7777};
    rocprofiler_feature_t features[3];
    rocprofiler_properties_t properties;
    rocprofiler_group_t group;
    rocprofiler_t *context = NULL, *empty = NULL;
    uint32_t count = 0;
    features[0] = feature("TASK_CLOCK");
    features[1] = feature("cpus_utilized");
    features[2] = feature("TASK_CLOCK");
    memset(&properties, 0, sizeof properties);
    memset(&group, 0, sizeof group);
    EXPECT(rocprofiler_open(nobody, features, 3, &context, 0, NULL), ERROR_INVALID_AGENT);
    EXPECT(rocprofiler_open(agent, NULL, 3, &context, 0, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_open(agent, features, 3, NULL, 0, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_open(agent, features, 3, &context, 8, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_open(agent, features, 3, &context, ROCPROFILER_MODE_STANDALONE, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_open(agent, features, 3, &context, ROCPROFILER_MODE_STANDALONE, &properties), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_open(agent, features, 3, &context, 3, &properties), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_open(agent, features, 3, &context, ROCPROFILER_MODE_CREATEQUEUE, &properties), ERROR_INVALID_ARGUMENT);
    features[1].name = "TASK_CLOK";
    EXPECT(rocprofiler_open(agent, features, 3, &context, 0, NULL), ERROR_INVALID_ARGUMENT);
    CHECK(strstr(last_error(), "TASK_CLOCK") && strstr(last_error(), "`gputrail counters list --agent`"));
    features[1].name = "";
    EXPECT(rocprofiler_open(agent, features, 3, &context, 0, NULL), ERROR_INVALID_ARGUMENT);
    features[1].name = NULL;
    EXPECT(rocprofiler_open(agent, features, 3, &context, 0, NULL), ERROR_INVALID_ARGUMENT);
    features[1] = feature("CPUS_UTILIZED");
    features[1].kind = ROCPROFILER_FEATURE_KIND_TRACE;
    EXPECT(rocprofiler_open(agent, features, 3, &context, 0, NULL), ERROR_INVALID_ARGUMENT);
    features[1].kind = (rocprofiler_feature_kind_t)7;
    EXPECT(rocprofiler_open(agent, features, 3, &context, 0, NULL), ERROR_INVALID_ARGUMENT);
    features[1].kind = ROCPROFILER_FEATURE_KIND_METRIC;
    CHECK(context == NULL);

    EXPECT(rocprofiler_open(agent, features, 3, &context, ROCPROFILER_MODE_SINGLEGROUP, NULL), SUCCESS);
    CHECK(context != NULL);
    EXPECT(rocprofiler_group_count(context, &count), SUCCESS);
    CHECK(count == 1);
    EXPECT(rocprofiler_group_count(context, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_group_count(NULL, &count), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_get_group(context, 0, &group), SUCCESS);
    CHECK(group.index == 0 && group.feature_count == 3 && group.features[1] == &features[1] && group.context == context);
    EXPECT(rocprofiler_get_group(context, 1, &group), ERROR_INVALID_INDEX);
    EXPECT(rocprofiler_get_group(context, 0, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_get_group(NULL, 0, &group), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_get_metrics(context), ERROR);
    EXPECT(rocprofiler_get_metrics(NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_get_data(context, 0), ERROR);
    EXPECT(rocprofiler_get_data(context, 1), ERROR_INVALID_INDEX);
    EXPECT(rocprofiler_get_data(NULL, 0), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_group_get_data(&group), ERROR);
    EXPECT(rocprofiler_group_get_data(NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_iterate_trace_data(context, see_trace, NULL), SUCCESS);
    EXPECT(rocprofiler_iterate_trace_data(context, NULL, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_iterate_trace_data(NULL, see_trace, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_close(context), SUCCESS);
    EXPECT(rocprofiler_close(context), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_get_metrics(context), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_group_get_data(&group), ERROR_INVALID_ARGUMENT);

    EXPECT(rocprofiler_open(agent, NULL, 0, &empty, 0, NULL), SUCCESS);
    EXPECT(rocprofiler_group_count(empty, &count), SUCCESS);
    CHECK(count == 1);
    EXPECT(rocprofiler_start(empty, 0), ERROR);
    EXPECT(rocprofiler_close(empty), SUCCESS);
}

static void times(void) {
    const uint64_t day = 86400000000000, now = nanos(CLOCK_BOOTTIME);
    const uint64_t of_real = nanos(CLOCK_REALTIME), of_monotonic = nanos(CLOCK_MONOTONIC);
    uint64_t value = 0;
    /* The clocks may be set in between, but not by a day. */
    EXPECT(rocprofiler_get_time(ROCPROFILER_TIME_ID_CLOCK_REALTIME, now, &value), SUCCESS);
    CHECK(value / day >= of_real / day - 1 && value / day <= of_real / day + 1);
    EXPECT(rocprofiler_get_time(ROCPROFILER_TIME_ID_CLOCK_MONOTONIC, now, &value), SUCCESS);
    CHECK(value / day <= of_monotonic / day + 1);
    EXPECT(rocprofiler_get_time(ROCPROFILER_TIME_ID_CLOCK_REALTIME, now, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_get_time((rocprofiler_time_id_t)7, now, &value), ERROR_INVALID_ARGUMENT);
}

/* Interception. */
enum way { COUNTED, WITHOUT_FEATURES, UNCOUNTED, REFUSED, WRONG_CONTEXT, WRONG_INDEX };
static enum way way;
static struct intercepted {
    rocprofiler_feature_t features[2];
    rocprofiler_group_t group;
    const rocprofiler_dispatch_record_t *record;
} dispatches[64];
static int dispatched, completed, destroyed, arg;
static bool has_callback;

static void complete(rocprofiler_group_t group, void *data) {
    CHECK(data == &arg && group.feature_count == 2);
    EXPECT(rocprofiler_group_get_data(&group), SUCCESS);
    EXPECT(rocprofiler_get_metrics(group.context), SUCCESS);
    CHECK(group.features[0]->data.kind == ROCPROFILER_DATA_KIND_INT64 && group.features[0]->data.result_int64 > 0);
    EXPECT(rocprofiler_close(group.context), SUCCESS);
    __atomic_add_fetch(&completed, 1, __ATOMIC_SEQ_CST);
}

static hsa_status_t intercept(const rocprofiler_callback_data_t *data, void *user_data, rocprofiler_group_t *group) {
    struct intercepted *of = &dispatches[dispatched];
    rocprofiler_properties_t properties;
    rocprofiler_t *context = NULL;
    CHECK(user_data == &dispatched && data->agent.handle == agent.handle && data->agent_index == 0);
    CHECK(data->queue != NULL && data->queue->id == (uint64_t)(size_t)queue && data->queue_index == (uint64_t)dispatched);
    CHECK(data->packet->grid_size_x == ITEMS && data->packet->header == 2 && data->packet->setup == 1);
    CHECK(data->packet->kernel_object != 0 && strcmp(data->kernel_name, "triple") == 0);
    CHECK(data->record != NULL && data->record->dispatch > 0 && data->record->end == 0);
    CHECK(group->context == NULL && dispatched < 64);
    of->record = data->record;
    dispatched++;
    of->features[0] = feature("TASK_CLOCK");
    of->features[1] = feature("CPUS_UTILIZED");
    memset(&properties, 0, sizeof properties);
    properties.callback = has_callback ? complete : NULL;
    properties.callback_arg = &arg;
    switch (way) {
    case COUNTED:
        EXPECT(rocprofiler_open(data->agent, of->features, 2, &context, ROCPROFILER_MODE_SINGLEGROUP, &properties), SUCCESS);
        EXPECT(rocprofiler_get_group(context, 0, group), SUCCESS);
        of->group = *group;
        EXPECT(rocprofiler_group_get_data(group), ERROR);
        return HSA_STATUS_SUCCESS;
    case WITHOUT_FEATURES:
        EXPECT(rocprofiler_open(data->agent, NULL, 0, &context, 0, NULL), SUCCESS);
        EXPECT(rocprofiler_get_group(context, 0, group), SUCCESS);
        of->group = *group;
        return HSA_STATUS_SUCCESS;
    case UNCOUNTED: return HSA_STATUS_SUCCESS;
    case REFUSED: return HSA_STATUS_ERROR;
    case WRONG_CONTEXT: group->context = &arg; return HSA_STATUS_SUCCESS;
    case WRONG_INDEX:
        EXPECT(rocprofiler_open(data->agent, of->features, 2, &context, 0, NULL), SUCCESS);
        EXPECT(rocprofiler_get_group(context, 0, group), SUCCESS);
        group->index = 1;
        return HSA_STATUS_SUCCESS;
    }
    return HSA_STATUS_ERROR;
}

static hsa_status_t queue_destroyed(hsa_queue_t *of, void *data) {
    CHECK(data == &dispatched && of != NULL && of->id != 0);
    destroyed++;
    return HSA_STATUS_SUCCESS;
}

static void check_record(const rocprofiler_dispatch_record_t *record) {
    CHECK(record->dispatch > 0 && record->begin >= record->dispatch && record->end >= record->begin);
    CHECK(record->complete >= record->end);
}

static void interception(void) {
    rocprofiler_queue_callbacks_t callbacks = {NULL, NULL};
    rocprofiler_feature_t other_feature;
    rocprofiler_t *context = NULL;
    cl_command_queue other;
    int of;
    EXPECT(rocprofiler_set_queue_callbacks(callbacks, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_set_intercepting(callbacks, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_add_dispatch_callback(NULL, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_remove_queue_callbacks(), SUCCESS);
    callbacks.dispatch = intercept;
    callbacks.destroy = queue_destroyed;
    EXPECT(rocprofiler_set_queue_callbacks(callbacks, &dispatched), SUCCESS);
    way = COUNTED;
    launch(10);
    CHECK(dispatched == 10);
    for (of = 0; of < 10; of++) {
        struct intercepted *one = &dispatches[of];
        /* The kernel that was enqueued before has ended; its context is the kernel's own. */
        EXPECT(rocprofiler_group_get_data(&one->group), SUCCESS);
        EXPECT(rocprofiler_get_data(one->group.context, 0), SUCCESS);
        EXPECT(rocprofiler_get_metrics(one->group.context), SUCCESS);
        CHECK(one->features[0].data.kind == ROCPROFILER_DATA_KIND_INT64 && one->features[0].data.result_int64 > 0);
        CHECK(one->features[1].data.kind == ROCPROFILER_DATA_KIND_DOUBLE && one->features[1].data.result_double > 0);
        check_record(one->record);
        EXPECT(rocprofiler_close(one->group.context), SUCCESS);
    }
    has_callback = true;
    launch(5);
    CHECK(dispatched == 15);
    await(&completed, 5);
    way = WITHOUT_FEATURES;
    launch(1);
    EXPECT(rocprofiler_group_get_data(&dispatches[15].group), SUCCESS);
    EXPECT(rocprofiler_get_metrics(dispatches[15].group.context), SUCCESS);
    check_record(dispatches[15].record);
    EXPECT(rocprofiler_close(dispatches[15].group.context), SUCCESS);
    way = UNCOUNTED;
    launch(1);
    way = REFUSED;
    launch(1);
    /* Groups that cannot be used are told on the standard error, the first one, and on this thread. */
    way = WRONG_CONTEXT;
    launch(1);
    CHECK(strstr(last_error(), "the dispatch callback returned for the kernel \"triple\" does not count it: this is no context"));
    way = WRONG_INDEX;
    launch(1);
    CHECK(strstr(last_error(), "does not count it: no group 1: the context has 1"));
    CHECK(dispatched == 20 && destroyed == 0);
    /* A queue that is destroyed. */
    other = new_queue();
    clReleaseCommandQueue(other);
    CHECK(destroyed == 1);
    /* Something else counts. */
    way = COUNTED;
    has_callback = false;
    launch(1);
    EXPECT(rocprofiler_start(dispatches[20].group.context, 0), ERROR_INVALID_ARGUMENT);
    CHECK(strstr(last_error(), "CPUS_UTILIZED"));
    EXPECT(rocprofiler_close(dispatches[20].group.context), SUCCESS);
    other_feature = feature("TASK_CLOCK");
    EXPECT(rocprofiler_open(agent, &other_feature, 1, &context, 0, NULL), SUCCESS);
    EXPECT(rocprofiler_start(context, 0), ERROR);
    CHECK(strstr(last_error(), "the callbacks on dispatches count: remove them before"));
    EXPECT(rocprofiler_close(context), SUCCESS);
    EXPECT(rocprofiler_remove_queue_callbacks(), SUCCESS);
    launch(1);
    CHECK(dispatched == 21);
    /* By the other names. */
    way = UNCOUNTED;
    EXPECT(rocprofiler_set_intercepting(callbacks, &dispatched), SUCCESS);
    launch(1);
    EXPECT(rocprofiler_remove_intercepting(), SUCCESS);
    EXPECT(rocprofiler_add_dispatch_callback(intercept, &dispatched), SUCCESS);
    launch(1);
    EXPECT(rocprofiler_remove_queue_callbacks(), SUCCESS);
    CHECK(dispatched == 23 && destroyed == 1);
}

/* Pools. */
struct payload {
    int number;
    char more[100];
};
enum { ENTRIES = 3 };
static rocprofiler_pool_t *pool;
static rocprofiler_feature_t pooled[1];
static int fetched, exhausted, handled, kept, visited;

static bool handle(const rocprofiler_pool_entry_t *entry, void *data) {
    const struct payload *payload = (const struct payload *)entry->payload;
    CHECK(data == &arg && payload->number == 7);
    EXPECT(rocprofiler_get_data(entry->context, 0), SUCCESS);
    EXPECT(rocprofiler_get_metrics(entry->context), SUCCESS);
    CHECK(pooled[0].data.kind == ROCPROFILER_DATA_KIND_INT64 && pooled[0].data.result_int64 > 0);
    EXPECT(rocprofiler_pool_close(pool), ERROR);
    __atomic_add_fetch(&handled, 1, __ATOMIC_SEQ_CST);
    return !kept;
}

static hsa_status_t fetch(const rocprofiler_callback_data_t *data, void *user_data, rocprofiler_group_t *group) {
    rocprofiler_pool_entry_t entry;
    struct payload *payload;
    (void)data;
    (void)user_data;
    if (exhausted) {
        EXPECT(rocprofiler_pool_fetch(pool, &entry), ERROR_OUT_OF_RESOURCES);
        return HSA_STATUS_SUCCESS;
    }
    EXPECT(rocprofiler_pool_fetch(pool, &entry), SUCCESS);
    payload = (struct payload *)entry.payload;
    CHECK(payload->number == 0 && payload->more[99] == 0 && ((size_t)payload & 15) == 0);
    payload->number = 7;
    payload->more[99] = 9;
    fetched++;
    return rocprofiler_get_group(entry.context, 0, group);
}

static hsa_status_t visit(rocprofiler_pool_entry_t *entry, void *data) {
    CHECK(data == &visited && entry->context != NULL);
    visited++;
    if (kept) return HSA_STATUS_INFO_BREAK;
    EXPECT(rocprofiler_pool_release(entry), SUCCESS);
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t any(rocprofiler_pool_entry_t *entry, void *data) {
    (void)entry;
    (void)data;
    return HSA_STATUS_INFO_BREAK;
}

static void pools(void) {
    const hsa_agent_t nobody = {7777};
    int of;
    rocprofiler_pool_properties_t properties;
    rocprofiler_pool_entry_t entry;
    rocprofiler_pool_t *none = NULL;
    pooled[0] = feature("TASK_CLOCK");
    memset(&properties, 0, sizeof properties);
    memset(&entry, 0, sizeof entry);
    EXPECT(rocprofiler_pool_open(agent, pooled, 1, &none, 0, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_pool_open(agent, pooled, 1, &none, 0, &properties), ERROR_INVALID_ARGUMENT);
    properties.num_entries = ENTRIES;
    properties.payload_bytes = sizeof(struct payload);
    properties.handler = handle;
    properties.handler_arg = &arg;
    EXPECT(rocprofiler_pool_open(nobody, pooled, 1, &none, 0, &properties), ERROR_INVALID_AGENT);
    EXPECT(rocprofiler_pool_open(agent, NULL, 1, &none, 0, &properties), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_pool_open(agent, pooled, 1, NULL, 0, &properties), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_pool_open(agent, pooled, 1, &none, ROCPROFILER_MODE_STANDALONE, &properties), ERROR_INVALID_ARGUMENT);
    pooled[0].name = "TASK_CLOK";
    EXPECT(rocprofiler_pool_open(agent, pooled, 1, &none, 0, &properties), ERROR_INVALID_ARGUMENT);
    pooled[0].name = "TASK_CLOCK";
    properties.payload_bytes = 0xffffffff;
    EXPECT(rocprofiler_pool_open(agent, pooled, 1, &none, 0, &properties), ERROR_INVALID_ARGUMENT);
    properties.payload_bytes = sizeof(struct payload);
    CHECK(none == NULL);
    EXPECT(rocprofiler_pool_open(agent, pooled, 1, &pool, ROCPROFILER_MODE_SINGLEGROUP, &properties), SUCCESS);

    EXPECT(rocprofiler_add_dispatch_callback(fetch, NULL), SUCCESS);
    for (of = 1; of <= 8 + ENTRIES; of++) {
        if (of == 9) {
            EXPECT(rocprofiler_pool_iterate(pool, visit, &visited), SUCCESS);
            CHECK(visited == 0);
            kept = 1;
        }
        launch(1);
        await(&handled, of);
        /* The handler has been called; the entry is released when it has returned. */
        while (of <= 8 && rocprofiler_pool_iterate(pool, any, NULL) != HSA_STATUS_SUCCESS) usleep(1000);
    }
    CHECK(fetched == 8 + ENTRIES);
    exhausted = 1;
    launch(1);
    EXPECT(rocprofiler_pool_fetch(pool, &entry), ERROR_OUT_OF_RESOURCES);
    EXPECT(rocprofiler_pool_flush(pool), SUCCESS);
    CHECK(handled == 8 + 2 * ENTRIES);
    CHECK(rocprofiler_pool_iterate(pool, visit, &visited) == HSA_STATUS_INFO_BREAK && visited == 1);
    kept = 0;
    EXPECT(rocprofiler_pool_iterate(pool, visit, &visited), SUCCESS);
    CHECK(visited == 1 + ENTRIES);
    EXPECT(rocprofiler_remove_queue_callbacks(), SUCCESS);

    EXPECT(rocprofiler_pool_fetch(pool, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_pool_fetch(NULL, &entry), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_pool_fetch(&arg, &entry), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_pool_fetch(pool, &entry), SUCCESS);
    EXPECT(rocprofiler_close(entry.context), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_pool_release(&entry), SUCCESS);
    EXPECT(rocprofiler_pool_release(&entry), ERROR);
    EXPECT(rocprofiler_pool_release(NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_pool_iterate(pool, NULL, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_pool_iterate(NULL, visit, &visited), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_pool_flush(NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_pool_close(NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_pool_close(pool), SUCCESS);
    EXPECT(rocprofiler_pool_close(pool), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_pool_release(&entry), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_pool_flush(pool), ERROR_INVALID_ARGUMENT);
}

/* Sampling, of kernels and of whatever runs. */
static void sampling(uint32_t mode) {
    rocprofiler_feature_t features[1];
    rocprofiler_properties_t properties;
    rocprofiler_group_t group, wrong;
    rocprofiler_t *context = NULL, *second = NULL;
    uint64_t before;
    memset(&properties, 0, sizeof properties);
    properties.queue_depth = 128;
    features[0] = feature("TASK_CLOCK");
    EXPECT(rocprofiler_open(agent, features, 1, &context, mode, &properties), SUCCESS);
    EXPECT(rocprofiler_open(agent, features, 1, &second, mode, &properties), SUCCESS);
    EXPECT(rocprofiler_get_group(context, 0, &group), SUCCESS);
    EXPECT(rocprofiler_stop(context, 0), ERROR);
    EXPECT(rocprofiler_read(context, 0), ERROR);
    EXPECT(rocprofiler_start(context, 0), SUCCESS);
    EXPECT(rocprofiler_start(context, 0), ERROR);
    EXPECT(rocprofiler_start(second, 0), ERROR);
    CHECK(strstr(last_error(), "a context is started: stop it before"));
    EXPECT(rocprofiler_add_dispatch_callback(intercept, NULL), ERROR);
    CHECK(strstr(last_error(), "a context is started: stop it before"));
    EXPECT(rocprofiler_get_data(context, 0), ERROR);
    launch(3);
    EXPECT(rocprofiler_read(context, 0), SUCCESS);
    EXPECT(rocprofiler_get_data(context, 0), SUCCESS);
    EXPECT(rocprofiler_get_metrics(context), SUCCESS);
    CHECK(features[0].data.kind == ROCPROFILER_DATA_KIND_INT64 && features[0].data.result_int64 > 0);
    before = features[0].data.result_int64;
    launch(3);
    EXPECT(rocprofiler_group_read(&group), SUCCESS);
    EXPECT(rocprofiler_group_get_data(&group), SUCCESS);
    EXPECT(rocprofiler_get_metrics(context), SUCCESS);
    CHECK(features[0].data.result_int64 > before);
    EXPECT(rocprofiler_reset(context, 0), SUCCESS);
    EXPECT(rocprofiler_get_metrics(context), ERROR);
    EXPECT(rocprofiler_group_reset(&group), SUCCESS);
    launch(1);
    EXPECT(rocprofiler_stop(context, 0), SUCCESS);
    EXPECT(rocprofiler_get_metrics(context), SUCCESS);
    CHECK(features[0].data.result_int64 > 0);
    EXPECT(rocprofiler_start(second, 0), SUCCESS);
    EXPECT(rocprofiler_close(second), SUCCESS);
    /* A start begins with 0. */
    EXPECT(rocprofiler_group_start(&group), SUCCESS);
    EXPECT(rocprofiler_group_stop(&group), SUCCESS);
    EXPECT(rocprofiler_group_stop(&group), ERROR);
    EXPECT(rocprofiler_get_data(context, 0), SUCCESS);

    EXPECT(rocprofiler_start(context, 1), ERROR_INVALID_INDEX);
    EXPECT(rocprofiler_stop(context, 1), ERROR_INVALID_INDEX);
    EXPECT(rocprofiler_read(context, 1), ERROR_INVALID_INDEX);
    EXPECT(rocprofiler_reset(context, 1), ERROR_INVALID_INDEX);
    EXPECT(rocprofiler_start(NULL, 0), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_stop(NULL, 0), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_read(NULL, 0), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_reset(NULL, 0), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_group_start(NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_group_stop(NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_group_read(NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_group_reset(NULL), ERROR_INVALID_ARGUMENT);
    wrong = group;
    wrong.index = 9;
    EXPECT(rocprofiler_group_start(&wrong), ERROR_INVALID_INDEX);
    EXPECT(rocprofiler_group_read(&wrong), ERROR_INVALID_INDEX);
    EXPECT(rocprofiler_close(context), SUCCESS);
}

/* A kernel after a user event has a record and no values: nothing waits for it. */
static rocprofiler_pool_entry_t pending;
static const rocprofiler_dispatch_record_t *pending_record;

static hsa_status_t fetch_pending(const rocprofiler_callback_data_t *data, void *user_data, rocprofiler_group_t *group) {
    (void)user_data;
    pending_record = data->record;
    EXPECT(rocprofiler_pool_fetch(pool, &pending), SUCCESS);
    return rocprofiler_get_group(pending.context, 0, group);
}

static void after_user_event(void) {
    const cl_event event = clCreateUserEvent(in, NULL);
    rocprofiler_pool_properties_t properties = {1, 0, NULL, NULL};
    char device[100] = "";
    size_t items = ITEMS;
    bool can_wait;
    /* With the driver `basic` of PoCL 3.1, the end of a user event for which a kernel waits does not return. */
    clGetDeviceInfo((cl_device_id)(size_t)agent.handle, CL_DEVICE_NAME, sizeof device, device, NULL);
    can_wait = strncmp(device, "basic", 5) != 0;
    EXPECT(rocprofiler_pool_open(agent, pooled, 1, &pool, 0, &properties), SUCCESS);
    EXPECT(rocprofiler_add_dispatch_callback(fetch_pending, NULL), SUCCESS);
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, can_wait, can_wait ? &event : NULL, NULL) == CL_SUCCESS);
    if (can_wait) {
        EXPECT(rocprofiler_reset(pending.context, 0), ERROR);
        EXPECT(rocprofiler_pool_release(&pending), ERROR);
        EXPECT(rocprofiler_pool_close(pool), ERROR);
    }
    CHECK(clSetUserEventStatus(event, CL_COMPLETE) == CL_SUCCESS && clFinish(queue) == CL_SUCCESS);
    EXPECT(rocprofiler_get_data(pending.context, 0), SUCCESS);
    check_record(pending_record);
    EXPECT(rocprofiler_get_metrics(pending.context), ERROR);
    CHECK(strstr(last_error(), "TASK_CLOCK has no value: the dispatch could not be waited for"));
    CHECK(pooled[0].data.kind == ROCPROFILER_DATA_KIND_UNINIT);
    EXPECT(rocprofiler_pool_release(&pending), SUCCESS);
    EXPECT(rocprofiler_pool_close(pool), SUCCESS);
    EXPECT(rocprofiler_remove_queue_callbacks(), SUCCESS);
    clReleaseEvent(event);
}

/* The simulated GPU. */
enum { MOST = 4096, MANY = 10 };
static const char *many_names[MANY] = {"SQ_WAVES",      "SQ_INSTS_VALU", "SQ_INSTS_SALU", "SQ_INSTS_SMEM", "SQ_INSTS_LDS",
                                       "SQ_INSTS_FLAT", "SQ_INSTS_GDS",  "SQ_INSTS_VMEM_RD", "SQ_INSTS_VMEM_WR", "GPUBusy"};
static struct simulated {
    rocprofiler_feature_t features[1];
    uint64_t waves;
    const rocprofiler_dispatch_record_t *record;
} kernels[MOST];
static rocprofiler_feature_t many[MANY], sampled[2], several[1];
static rocprofiler_t *of_many, *standalone;
static rocprofiler_group_t groups[2];
static int launched, ended, untimed, of_second_device, multiple;

static void kernel_ended(rocprofiler_group_t group, void *data) {
    struct simulated *of = (struct simulated *)data;
    EXPECT(rocprofiler_get_metrics(group.context), SUCCESS);
    CHECK(of->features[0].data.kind == ROCPROFILER_DATA_KIND_INT64 && of->features[0].data.result_int64 == of->waves);
    /* Kernels that kernels launch have no times. */
    if (of->record->complete) CHECK(of->record->end > of->record->begin && of->record->begin >= of->record->dispatch);
    else untimed++;
    EXPECT(rocprofiler_close(group.context), SUCCESS);
    ended++;
}

/* The features of one context in two groups: kernels take turns. */
static hsa_status_t take_turns(const rocprofiler_callback_data_t *data, rocprofiler_group_t *group) {
    rocprofiler_pool_properties_t properties = {1, 0, NULL, NULL};
    rocprofiler_pool_t *none = NULL;
    rocprofiler_t *single = NULL;
    uint32_t count = 0;
    int of;
    if (data->agent.handle != 0) return HSA_STATUS_SUCCESS;
    if (!of_many) {
        for (of = 0; of < MANY; of++) many[of] = feature(many_names[of]);
        EXPECT(rocprofiler_open(data->agent, many, MANY, &single, ROCPROFILER_MODE_SINGLEGROUP, NULL), ERROR);
        EXPECT(rocprofiler_pool_open(data->agent, many, MANY, &none, ROCPROFILER_MODE_SINGLEGROUP, &properties), ERROR);
        EXPECT(rocprofiler_open(data->agent, many, MANY, &of_many, 0, NULL), SUCCESS);
        EXPECT(rocprofiler_group_count(of_many, &count), SUCCESS);
        CHECK(count == 2);
        EXPECT(rocprofiler_get_group(of_many, 0, &groups[0]), SUCCESS);
        EXPECT(rocprofiler_get_group(of_many, 1, &groups[1]), SUCCESS);
        CHECK(groups[0].feature_count + groups[1].feature_count == MANY);
    }
    *group = groups[multiple++ % 2];
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t intercept_simulated(const rocprofiler_callback_data_t *data, void *user_data, rocprofiler_group_t *group) {
    struct simulated *of = &kernels[launched];
    const hsa_kernel_dispatch_packet_t *packet = data->packet;
    rocprofiler_properties_t properties;
    rocprofiler_t *context = NULL;
    uint64_t items = (uint64_t)packet->workgroup_size_x * packet->workgroup_size_y * packet->workgroup_size_z, work_groups;
    if (user_data) return take_turns(data, group);
    CHECK(launched < MOST && data->kernel_name[0] && items > 0 && data->record->end == 0);
    work_groups = (uint64_t)packet->grid_size_x * packet->grid_size_y * packet->grid_size_z / items;
    of->waves = work_groups * ((items + 63) / 64);
    of->record = data->record;
    of->features[0] = feature("SQ_WAVES");
    /* The handles of simulated devices are their numbers. */
    of_second_device += data->agent.handle == 1;
    CHECK(data->agent_index > 0 && data->agent.handle < 2);
    memset(&properties, 0, sizeof properties);
    properties.callback = kernel_ended;
    properties.callback_arg = of;
    EXPECT(rocprofiler_open(data->agent, of->features, 1, &context, ROCPROFILER_MODE_SINGLEGROUP, &properties), SUCCESS);
    launched++;
    return rocprofiler_get_group(context, 0, group);
}

/* Sampling begins when the device is known. */
static void queue_created(gputrail_callback *callback, void *user_data) {
    gputrail_record_agent known;
    const gputrail_record_queue *created = (const gputrail_record_queue *)callback->record;
    rocprofiler_properties_t properties;
    hsa_agent_t of;
    (void)user_data;
    if (standalone || created == NULL) return;
    memset(&known, 0, sizeof known);
    CHECK(gputrail_describe_agent(created->agent, &known) == GPUTRAIL_OK);
    of.handle = known.handle;
    memset(&properties, 0, sizeof properties);
    properties.queue_depth = 128;
    sampled[0] = feature("GPUBusy");
    sampled[1] = feature("SQ_WAVES");
    several[0] = feature("SEVERAL");
    EXPECT(rocprofiler_open(of, several, 1, &standalone, 3, &properties), SUCCESS);
    EXPECT(rocprofiler_start(standalone, 0), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_close(standalone), SUCCESS);
    EXPECT(rocprofiler_open(of, sampled, 2, &standalone, 7, &properties), SUCCESS);
    EXPECT(rocprofiler_start(standalone, 0), SUCCESS);
    EXPECT(rocprofiler_reset(standalone, 0), ERROR);
    CHECK(strstr(last_error(), "a callback cannot wait"));
}

/* Defines a metric that needs several runs of a kernel. */
static void define_several(void) {
    static const char *path = "several.xml";
    FILE *file = fopen(path, "w");
    int of;
    CHECK(file != NULL);
    fprintf(file, "<gfx9>\n<metric name=SEVERAL expr=");
    for (of = 0; of < MANY - 1; of++) fprintf(file, "%s%s", of ? "+" : "", many_names[of]);
    fprintf(file, "></metric>\n</gfx9>\n");
    fclose(file);
    CHECK(gputrail_counters_add(path, NULL) == GPUTRAIL_OK);
}

static void simulated(void) {
    static const gputrail_operation created = {GPUTRAIL_DOMAIN_RESOURCE, 4};
    gputrail_subscriber subscriber;
    gputrail_context watching;
    int of, valued = 0;
    define_several();
    EXPECT(rocprofiler_add_dispatch_callback(intercept_simulated, NULL), SUCCESS);
    simulate();
    CHECK(launched > 20 && ended == launched && untimed < 20);
    CHECK(of_second_device > 0 && of_second_device < launched);
    EXPECT(rocprofiler_add_dispatch_callback(intercept_simulated, &arg), SUCCESS);
    simulate();
    EXPECT(rocprofiler_remove_queue_callbacks(), SUCCESS);
    EXPECT(rocprofiler_group_get_data(&groups[0]), SUCCESS);
    EXPECT(rocprofiler_group_get_data(&groups[1]), SUCCESS);
    EXPECT(rocprofiler_get_metrics(of_many), SUCCESS);
    for (of = 0; of < MANY; of++) valued += many[of].data.kind != ROCPROFILER_DATA_KIND_UNINIT;
    CHECK(valued == MANY && many[0].data.result_int64 > 0 && many[9].data.kind == ROCPROFILER_DATA_KIND_DOUBLE);
    CHECK(many[9].data.result_double > 0 && many[9].data.result_double <= 100);
    EXPECT(rocprofiler_close(of_many), SUCCESS);

    CHECK(gputrail_context_create(&watching) == GPUTRAIL_OK);
    CHECK(gputrail_subscribe(watching, &created, 1, queue_created, NULL, &subscriber) == GPUTRAIL_OK);
    CHECK(gputrail_context_start(watching) == GPUTRAIL_OK);
    simulate();
    EXPECT(rocprofiler_stop(standalone, 0), SUCCESS);
    EXPECT(rocprofiler_get_data(standalone, 0), SUCCESS);
    EXPECT(rocprofiler_get_metrics(standalone), SUCCESS);
    CHECK(sampled[0].data.kind == ROCPROFILER_DATA_KIND_DOUBLE && sampled[1].data.kind == ROCPROFILER_DATA_KIND_INT64);
    CHECK(sampled[0].data.result_double > 0 && sampled[0].data.result_double <= 100 && sampled[1].data.result_int64 > 0);
    EXPECT(rocprofiler_close(standalone), SUCCESS);
    CHECK(gputrail_context_destroy(watching) == GPUTRAIL_OK);
}

int main(void) {
    uint32_t count = 7;
    layouts();
    versions_and_errors();
    /* Devices are there before the program has called OpenCL. */
    EXPECT(rocprofiler_get_info(NULL, ROCPROFILER_INFO_KIND_METRIC_COUNT, &count), SUCCESS);
    CHECK(count > 0 && count != 7);
    set_up();
    information();
    contexts();
    times();
    interception();
    pools();
    sampling(0);
    sampling(ROCPROFILER_MODE_STANDALONE | ROCPROFILER_MODE_CREATEQUEUE | ROCPROFILER_MODE_SINGLEGROUP);
    after_user_event();
    simulated();
    return tear_down();
}
