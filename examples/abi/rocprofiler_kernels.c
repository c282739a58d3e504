/* Counts each kernel in a context of its own, and prints the values at the end of the program (chapters 5.2 and 5.6). */
#include "rocprofiler_example.h"
#include <pthread.h>

/* A kernel that was counted. */
struct entry {
    struct entry *next;
    rocprofiler_feature_t features[MOST_FEATURES];
    uint32_t feature_count;
    rocprofiler_group_t group;
    rocprofiler_callback_data_t data;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries;

static hsa_status_t dispatched(const rocprofiler_callback_data_t *data, void *user_data, rocprofiler_group_t *group) {
    rocprofiler_t *context;
    struct entry *entry = (struct entry *)calloc(1, sizeof *entry);
    (void)user_data;
    if (!entry) return HSA_STATUS_ERROR;
    entry->feature_count = make_features(entry->features);
    entry->data = *data;
    if (!SUCCEED(rocprofiler_open(data->agent, entry->features, entry->feature_count, &context, ROCPROFILER_MODE_SINGLEGROUP,
                                  NULL))) {
        free(entry);
        return HSA_STATUS_ERROR;
    }
    /* There is one group in this mode. */
    SUCCEED(rocprofiler_get_group(context, 0, group));
    entry->group = *group;
    pthread_mutex_lock(&lock);
    entry->next = entries;
    entries = entry;
    pthread_mutex_unlock(&lock);
    return HSA_STATUS_SUCCESS;
}

void OnLoadToolProp(rocprofiler_settings_t *settings) {
    settings->timestamp_on = 1;
    settings->timeout = 10000000000;
    SUCCEED(rocprofiler_add_dispatch_callback(dispatched, NULL));
}

static struct entry *reversed(struct entry *list) {
    struct entry *front = NULL;
    while (list) {
        struct entry *next = list->next;
        list->next = front;
        front = list;
        list = next;
    }
    return front;
}

void OnUnloadTool(void) {
    unsigned number = 0;
    struct entry *entry = reversed(entries);
    while (entry) {
        struct entry *next = entry->next;
        const rocprofiler_dispatch_record_t *record = entry->data.record;
        if (SUCCEED(rocprofiler_group_get_data(&entry->group))) SUCCEED(rocprofiler_get_metrics(entry->group.context));
        printf("dispatch[%u] gpu-agent%u kernel \"%s\" %" PRIu64 " ns\n", number++, entry->data.agent_index,
               entry->data.kernel_name, record->end - record->begin);
        print_results(entry->features, entry->feature_count);
        SUCCEED(rocprofiler_close(entry->group.context));
        free(entry);
        entry = next;
    }
    SUCCEED(rocprofiler_remove_queue_callbacks());
}
