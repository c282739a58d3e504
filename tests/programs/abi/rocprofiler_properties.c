/* A tool that sets callbacks, or says why it cannot, then changes a global property, and has failed before it is unloaded. */
#include "rocprofiler.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int dispatches, records, queues;

static hsa_status_t dispatched(const rocprofiler_callback_data_t *data, void *user, rocprofiler_group_t *group) {
    (void)user, (void)group;
    dispatches++;
    records += data->record != NULL;
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t queue_created(hsa_queue_t *queue, void *user) {
    (void)queue, (void)user;
    queues++;
    return HSA_STATUS_SUCCESS;
}

void OnLoadToolProp(rocprofiler_settings_t *settings) {
    const char *property = getenv("PROPERTY");
    rocprofiler_queue_callbacks_t callbacks = {dispatched, queue_created, NULL};
    if (rocprofiler_set_queue_callbacks(callbacks, NULL) != HSA_STATUS_SUCCESS) {
        const char *sentence = NULL;
        rocprofiler_error_string(&sentence);
        printf("%s\n", sentence);
    }
    if (!property) return;
    if (strcmp(property, "intercept_mode") == 0) settings->intercept_mode = 0;
    if (strcmp(property, "timestamp_on") == 0) settings->timestamp_on = 0;
    rocprofiler_close(NULL);
}

void OnUnloadTool(void) {
    const char *sentence = NULL;
    rocprofiler_group_count(NULL, NULL);
    rocprofiler_error_string(&sentence);
    printf("%d dispatches, %d records, %d queues, %s\n", dispatches, records, queues, sentence);
    fflush(stdout);
}
