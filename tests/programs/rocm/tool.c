/* A tool of rocprofiler-sdk, written by our own declarations: it counts the enters and exits of calls of HIP, kernels by their
 * records, and says so at the end. It is loaded before or after gputrail. */
#include "standin.h"

#include <stdio.h>

int rocprofiler_create_context(uint64_t *);
int rocprofiler_start_context(uint64_t);
int rocprofiler_create_buffer(uint64_t, size_t, size_t, int, buffer_callback *, void *, uint64_t *);
int rocprofiler_flush_buffer(uint64_t);
int rocprofiler_configure_callback_tracing_service(uint64_t, int, const int *, size_t, tracing_callback *, void *);
int rocprofiler_configure_buffer_tracing_service(uint64_t, int, const int *, size_t, uint64_t);

static uint64_t context, buffer;
static int enters, exits, kernels;

static void called(struct callback_record record, uint64_t *word, void *data) {
    (void)data;
    if (record.phase == ENTER) __atomic_add_fetch(&enters, 1, __ATOMIC_RELAXED), *word = 77;
    if (record.phase == EXIT && *word == 77) __atomic_add_fetch(&exits, 1, __ATOMIC_RELAXED);
}

static void completed(uint64_t of, uint64_t from, struct header **headers, size_t count, void *data, uint64_t dropped) {
    (void)of, (void)from, (void)data, (void)dropped;
    for (size_t i = 0; i < count; i++) kernels += headers[i]->category == TRACING && headers[i]->kind == B_KERNEL;
}

static int initialize(void (*finish)(struct client), void *data) {
    (void)finish, (void)data;
    if (rocprofiler_create_context(&context) || rocprofiler_create_buffer(context, 65536, 60000, 2, completed, NULL, &buffer)
        || rocprofiler_configure_callback_tracing_service(context, C_HIP, NULL, 0, called, NULL)
        || rocprofiler_configure_buffer_tracing_service(context, B_KERNEL, NULL, 0, buffer) || rocprofiler_start_context(context))
        return -1;
    return 0;
}

static void finalize(void *data) {
    (void)data;
    rocprofiler_flush_buffer(buffer);
    fprintf(stderr, "other tool: %d enters, %d exits, %d kernels\n", enters, exits, kernels);
}

struct configured *rocprofiler_configure(uint32_t version, const char *text, uint32_t before, struct client *client) {
    static struct configured result = {sizeof result, initialize, finalize, NULL};
    (void)text;
    client->name = "other tool";
    fprintf(stderr, "other tool: version %u, %u before\n", version, before);
    return &result;
}
