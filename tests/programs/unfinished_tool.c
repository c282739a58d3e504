/* A tool that tells when kernels come that have not completed. UNFINISHED names what it does: "forced" flushes so at the
   program's clFlush, "finish" calls gputrail_tool_finish there, "destroy" destroys its buffer in its finalise. */
#include "gputrail.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gputrail_context context;
static gputrail_buffer buffer;
static gputrail_subscriber subscriber;
static gputrail_tool self;
static const char *moment = "before", *mode = "";

static void deliver(const gputrail_batch *batch, void *user_data) {
    const gputrail_record_header *record = NULL;
    gputrail_work_times times;
    (void)user_data;
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK) {
        if (gputrail_times_of(record, &times) != GPUTRAIL_OK) continue;
        if (times.unfinished == GPUTRAIL_UNFINISHED_NO) {
            fprintf(stderr, "complete\n");
            continue;
        }
        fprintf(stderr, "unfinished %s: reason %u, flagged %d, completed %d, status %d\n", moment, times.unfinished,
                (record->flags & GPUTRAIL_FLAG_UNFINISHED) != 0, times.completed != 0, times.status);
    }
}

/* Not in a callback, in which neither is done at once. */
static void *act(void *unused) {
    (void)unused;
    if (strcmp(mode, "forced") == 0) {
        moment = "at the forced flush";
        if (gputrail_buffer_flush_forced(buffer) != GPUTRAIL_OK) fprintf(stderr, "refused\n");
        moment = "before";
    } else if (strcmp(mode, "finish") == 0) {
        if (gputrail_tool_finish(self) != GPUTRAIL_OK) fprintf(stderr, "refused\n");
    }
    return NULL;
}

static void call(gputrail_callback *callback, void *user_data) {
    pthread_t thread;
    (void)user_data;
    if (callback->phase != GPUTRAIL_PHASE_EXIT || pthread_create(&thread, NULL, act, NULL) != 0) return;
    pthread_join(thread, NULL);
}

static gputrail_status initialise(gputrail_tool tool, void *user_data) {
    static const gputrail_kind kinds[] = {GPUTRAIL_KIND_KERNEL_DISPATCH};
    static const gputrail_operation flush = GPUTRAIL_OPERATION_INIT(GPUTRAIL_OPENCL_clFlush);
    gputrail_selection selection = GPUTRAIL_SELECTION_INIT;
    gputrail_status status;
    self = tool;
    if (getenv("UNFINISHED") != NULL) mode = getenv("UNFINISHED");
    selection.kinds = kinds;
    selection.kind_count = 1;
    if ((status = gputrail_buffer_create(NULL, deliver, user_data, &buffer)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_context_create(&context)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_context_trace_to(context, buffer, &selection)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_subscribe(context, &flush, 1, call, NULL, &subscriber)) != GPUTRAIL_OK) return status;
    return gputrail_context_start(context);
}

static void finalise(void *user_data) {
    (void)user_data;
    moment = "in finalise";
    if (gputrail_buffer_flush(buffer) != GPUTRAIL_OK) fprintf(stderr, "refused\n");
    if (strcmp(mode, "destroy") == 0) {
        moment = "when the tool destroys its buffer";
        if (gputrail_buffer_destroy(buffer) != GPUTRAIL_OK) fprintf(stderr, "refused\n");
    }
    moment = "when the library destroys the buffer";
}

const gputrail_tool_description *gputrail_tool_configure(const gputrail_tool_host *host) {
    static gputrail_tool_description description = GPUTRAIL_TOOL_DESCRIPTION_INIT;
    (void)host;
    description.name = "unfinished";
    description.initialise = initialise;
    description.finalise = finalise;
    return &description;
}
