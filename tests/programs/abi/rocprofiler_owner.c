/* A tool of ROCProfiler that owns its records, as AMD's rocprof does: it reads the machine code's structure in the callback, waits
   for the times when the program ends, and frees each record. WHEN=callback frees it at once, before it has times. */
#include "rocprofiler.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1024 };
static const rocprofiler_dispatch_record_t *records[MOST];
static int dispatches, with_code, early;

static hsa_status_t dispatched(const rocprofiler_callback_data_t *data, void *user, rocprofiler_group_t *group) {
    static const char none[256];
    (void)user, (void)group;
    with_code += data->kernel_code != NULL && memcmp(data->kernel_code, none, sizeof none) == 0;
    if (early) {
        free((void *)data->record);
        /* The allocator gives the memory to somebody else, who fills it. */
        char *other = malloc(sizeof *data->record);
        memset(other, 'x', sizeof *data->record);
        records[dispatches] = (const rocprofiler_dispatch_record_t *)other;
    } else {
        records[dispatches] = data->record;
    }
    dispatches++;
    return HSA_STATUS_SUCCESS;
}

void OnLoadToolProp(rocprofiler_settings_t *settings) {
    rocprofiler_queue_callbacks_t callbacks = {dispatched, NULL, NULL};
    const char *when = getenv("WHEN");
    (void)settings;
    early = when && strcmp(when, "callback") == 0;
    rocprofiler_set_queue_callbacks(callbacks, NULL);
}

void OnUnloadTool(void) {
    int timed = 0, untouched = 0;
    for (int n = 0; n < dispatches; n++) {
        const rocprofiler_dispatch_record_t *record = records[n];
        char other[sizeof *record];
        memset(other, 'x', sizeof other);
        untouched += memcmp(record, other, sizeof other) == 0;
        timed += record->dispatch <= record->begin && record->begin < record->end && record->end <= record->complete;
        free((void *)record);
    }
    printf("%d dispatches, %d with code, %d timed, %d untouched\n", dispatches, with_code, early ? 0 : timed, untouched);
    fflush(stdout);
}
