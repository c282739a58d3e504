/* Counts each kernel in a context of its own, and prints the values as soon as the kernel has ended (chapter 5.3). */
#include "rocprofiler_example.h"
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void completed(rocprofiler_group_t group, void *arg) {
    rocprofiler_feature_t *features = (rocprofiler_feature_t *)arg;
    SUCCEED(rocprofiler_get_metrics(group.context));
    pthread_mutex_lock(&lock);
    printf("kernel\n");
    print_results(features, group.feature_count);
    pthread_mutex_unlock(&lock);
    SUCCEED(rocprofiler_close(group.context));
    free(features);
}

static hsa_status_t dispatched(const rocprofiler_callback_data_t *data, void *user_data, rocprofiler_group_t *group) {
    rocprofiler_t *context;
    rocprofiler_properties_t properties;
    rocprofiler_feature_t *features = (rocprofiler_feature_t *)calloc(MOST_FEATURES, sizeof *features);
    uint32_t count;
    (void)user_data;
    if (!features) return HSA_STATUS_ERROR;
    count = make_features(features);
    memset(&properties, 0, sizeof properties);
    properties.callback = completed;
    properties.callback_arg = features;
    if (SUCCEED(rocprofiler_open(data->agent, features, count, &context, ROCPROFILER_MODE_SINGLEGROUP, &properties)))
        return rocprofiler_get_group(context, 0, group);
    free(features);
    return HSA_STATUS_ERROR;
}

void OnLoadTool(void) {
    rocprofiler_queue_callbacks_t callbacks = {dispatched, NULL};
    SUCCEED(rocprofiler_set_queue_callbacks(callbacks, NULL));
}

void OnUnloadTool(void) {
    SUCCEED(rocprofiler_remove_queue_callbacks());
}
