/* Counts kernels in the contexts of a pool, so that a program of any length needs the memory of a few (chapter 5.4). */
#include "rocprofiler_example.h"
#include <pthread.h>

enum { ENTRIES = 100 };

/* What the tool keeps in an entry of the pool. */
typedef struct {
    const char *kernel_name;
    rocprofiler_group_t group;
} context_entry_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rocprofiler_feature_t features[MOST_FEATURES];
static uint32_t feature_count;
static rocprofiler_pool_t *pool;
static hsa_agent_t agent;
static unsigned missed;

static bool context_handler(const rocprofiler_pool_entry_t *pool_entry, void *arg) {
    const context_entry_t *entry = (const context_entry_t *)pool_entry->payload;
    unsigned *counted = (unsigned *)arg;
    pthread_mutex_lock(&lock);
    SUCCEED(rocprofiler_get_metrics(pool_entry->context));
    printf("kernel \"%s\"\n", entry->kernel_name);
    print_results(*entry->group.features, entry->group.feature_count);
    ++*counted;
    pthread_mutex_unlock(&lock);
    /* The entry is released. */
    return true;
}

static unsigned counted;

static hsa_status_t dispatched(const rocprofiler_callback_data_t *data, void *user_data, rocprofiler_group_t *group) {
    rocprofiler_pool_entry_t pool_entry;
    context_entry_t *entry;
    (void)user_data;
    pthread_mutex_lock(&lock);
    if (!pool) {
        rocprofiler_pool_properties_t properties;
        memset(&properties, 0, sizeof properties);
        properties.num_entries = ENTRIES;
        properties.payload_bytes = sizeof(context_entry_t);
        properties.handler = context_handler;
        properties.handler_arg = &counted;
        feature_count = make_features(features);
        agent = data->agent;
        SUCCEED(rocprofiler_pool_open(agent, features, feature_count, &pool, ROCPROFILER_MODE_SINGLEGROUP, &properties));
    }
    pthread_mutex_unlock(&lock);
    /* A pool belongs to one device. */
    if (!pool || data->agent.handle != agent.handle) return HSA_STATUS_SUCCESS;
    if (rocprofiler_pool_fetch(pool, &pool_entry) != HSA_STATUS_SUCCESS) {
        missed++;
        return HSA_STATUS_SUCCESS;
    }
    entry = (context_entry_t *)pool_entry.payload;
    entry->kernel_name = data->kernel_name;
    SUCCEED(rocprofiler_get_group(pool_entry.context, 0, &entry->group));
    *group = entry->group;
    return HSA_STATUS_SUCCESS;
}

void OnLoadTool(void) {
    SUCCEED(rocprofiler_add_dispatch_callback(dispatched, NULL));
}

void OnUnloadTool(void) {
    SUCCEED(rocprofiler_remove_queue_callbacks());
    if (pool) {
        SUCCEED(rocprofiler_pool_flush(pool));
        SUCCEED(rocprofiler_pool_close(pool));
    }
    printf("%u kernels counted, %u missed\n", counted, missed);
}
