/* Samples the counters of the first device that runs a kernel, from a thread of its own (chapter 5.5). */
#include "rocprofiler_example.h"
#include <pthread.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_t sampler;
static bool has_agent, is_ending;
static hsa_agent_t agent;

static void print_sample(rocprofiler_t *context, rocprofiler_feature_t *features, uint32_t count) {
    if (SUCCEED(rocprofiler_read(context, 0)) && SUCCEED(rocprofiler_get_data(context, 0))) {
        SUCCEED(rocprofiler_get_metrics(context));
        printf("sample\n");
        print_results(features, count);
    }
}

static void *sample(void *arg) {
    rocprofiler_feature_t features[MOST_FEATURES];
    rocprofiler_properties_t properties;
    rocprofiler_t *context;
    const struct timespec rate = {0, 5000000};
    uint32_t count;
    (void)arg;
    pthread_mutex_lock(&lock);
    while (!has_agent && !is_ending) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    if (!has_agent) return NULL;
    /* One thing counts at a time. */
    SUCCEED(rocprofiler_remove_queue_callbacks());
    count = make_features(features);
    memset(&properties, 0, sizeof properties);
    properties.queue_depth = 128;
    if (!SUCCEED(rocprofiler_open(agent, features, count, &context,
                                  ROCPROFILER_MODE_STANDALONE | ROCPROFILER_MODE_CREATEQUEUE | ROCPROFILER_MODE_SINGLEGROUP,
                                  &properties)))
        return NULL;
    if (SUCCEED(rocprofiler_start(context, 0))) {
        bool ends;
        do {
            nanosleep(&rate, NULL);
            pthread_mutex_lock(&lock);
            ends = is_ending;
            pthread_mutex_unlock(&lock);
            print_sample(context, features, count);
        } while (!ends);
        SUCCEED(rocprofiler_stop(context, 0));
    }
    SUCCEED(rocprofiler_close(context));
    return NULL;
}

static hsa_status_t dispatched(const rocprofiler_callback_data_t *data, void *user_data, rocprofiler_group_t *group) {
    (void)user_data;
    (void)group;
    pthread_mutex_lock(&lock);
    if (!has_agent) agent = data->agent;
    has_agent = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return HSA_STATUS_SUCCESS;
}

void OnLoadTool(void) {
    pthread_create(&sampler, NULL, sample, NULL);
    SUCCEED(rocprofiler_add_dispatch_callback(dispatched, NULL));
}

void OnUnloadTool(void) {
    pthread_mutex_lock(&lock);
    is_ending = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(sampler, NULL);
    printf("sampling has ended\n");
}
