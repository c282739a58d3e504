/* A tool that counts the callbacks of calls of CUDA by name, looks at the arguments of allocations, looks up a stream, and says the ids that
 * the program pushes to CUPTI, its objects and its waits,
 * and what happens inside of its calls. */
#include "gputrail.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { NAMES = 64 };
static struct { const char *name; unsigned enters, exits, failed; } counts[NAMES];
static unsigned allocated, wrong;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gputrail_context context;
static gputrail_buffer buffer;
static gputrail_subscriber subscriber;

static void observe(gputrail_callback *callback, void *user_data) {
    unsigned place = 0;
    gputrail_argument bytes;
    (void)user_data;
    if (callback->operation.domain == GPUTRAIL_DOMAIN_RESOURCE || callback->operation.domain == GPUTRAIL_DOMAIN_SYNCHRONIZATION)
        fprintf(stderr, "told: %s, record %d, call %d\n", callback->name, callback->record ? callback->record->kind : 0,
                callback->correlation != 0);
    if (callback->operation.domain == GPUTRAIL_DOMAIN_KERNEL_DISPATCH || callback->operation.domain == GPUTRAIL_DOMAIN_MEMORY_COPY ||
        callback->operation.domain == GPUTRAIL_DOMAIN_MEMORY_ALLOCATION) {
        char name[64] = "-";
        size_t length;
        if (callback->kernel) gputrail_kernel_name(callback->kernel, name, sizeof name, &length);
        if (callback->phase == GPUTRAIL_PHASE_ENTER) callback->user_data = 7;
        fprintf(stderr, "inside: %s, phase %u, %s, record %d, status %d, word %d, call %d\n", callback->name, callback->phase, name,
                callback->record ? callback->record->kind : 0, callback->has_return_code ? callback->return_code : -1,
                (int)callback->user_data, callback->correlation != 0);
    }
    if (callback->operation.domain != GPUTRAIL_DOMAIN_CUDA_DRIVER && callback->operation.domain != GPUTRAIL_DOMAIN_CUDA_RUNTIME)
        return;
    pthread_mutex_lock(&lock);
    while (place < NAMES - 1 && counts[place].name && strcmp(counts[place].name, callback->name)) place++;
    counts[place].name = callback->name;
    if (callback->phase == GPUTRAIL_PHASE_ENTER) {
        counts[place].enters++;
        callback->user_data = callback->correlation;
    } else if (callback->phase == GPUTRAIL_PHASE_EXIT) {
        counts[place].exits++;
        counts[place].failed += callback->has_return_code && callback->return_code == 1;
        wrong += callback->user_data != callback->correlation || !callback->has_return_code;
        wrong += callback->return_value != (uint64_t)(int64_t)callback->return_code || !callback->runtime_correlation;
        wrong += strcmp(callback->name, "cuInit") && !callback->runtime_context;
    }
    memset(&bytes, 0, sizeof bytes);
    bytes.size = sizeof bytes;
    if (!strcmp(callback->name, "cuMemAlloc_v2") && callback->phase == GPUTRAIL_PHASE_ENTER)
        allocated += gputrail_callback_argument(callback, 1, &bytes) == GPUTRAIL_OK && !strcmp(bytes.name, "bytesize") ? (unsigned)bytes.value : 0;
    pthread_mutex_unlock(&lock);
}

static void deliver(const gputrail_batch *batch, void *user_data) {
    const gputrail_record_header *record = NULL;
    (void)user_data;
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK)
        if (record->kind == GPUTRAIL_KIND_EXTERNAL_CORRELATION) {
            const gputrail_record_external_correlation *id = (const gputrail_record_external_correlation *)record;
            fprintf(stderr, "id %u of kind %u, call %d\n", (unsigned)id->external, (unsigned)id->kind, id->correlation != 0);
        }
}

static gputrail_status initialise(gputrail_tool tool, void *user_data) {
    gputrail_status status;
    (void)tool;
    if ((status = gputrail_context_create(&context)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_subscribe(context, NULL, 0, observe, user_data, &subscriber)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_buffer_create(NULL, deliver, NULL, &buffer)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_context_trace_to(context, buffer, NULL)) != GPUTRAIL_OK) return status;
    return gputrail_context_start(context);
}

/* The stream and the context of the stand-in by their handles, and a handle that is null: none. */
static void look_up(void) {
    gputrail_stream_id stream = 0, none = 0;
    gputrail_runtime_context_id of = 0;
    gputrail_record_stream described;
    gputrail_status found = gputrail_stream_of(13, &stream);
    memset(&described, 0, sizeof described);
    gputrail_runtime_context_of(1, &of);
    if (found == GPUTRAIL_OK) gputrail_describe_stream(stream, &described);
    fprintf(stderr, "looked up: %d, %d, %d\n", found == GPUTRAIL_OK && described.id == stream, of != 0 && described.context == of,
            gputrail_stream_of(99, &none) == GPUTRAIL_NOT_FOUND && none == 0);
}

static void finalise(void *user_data) {
    unsigned place;
    (void)user_data;
    for (place = 0; place < NAMES && counts[place].name; place++)
        fprintf(stderr, "%s: %u enters, %u exits, %u failed\n", counts[place].name, counts[place].enters, counts[place].exits,
                counts[place].failed);
    fprintf(stderr, "allocated %u, wrong %u\n", allocated, wrong);
    look_up();
}

const gputrail_tool_description *gputrail_tool_configure(const gputrail_tool_host *host) {
    static gputrail_tool_description description;
    (void)host;
    description.size = sizeof description;
    description.api_version = GPUTRAIL_API_VERSION;
    description.name = "cuda-calls";
    description.initialise = initialise;
    description.finalise = finalise;
    return &description;
}
