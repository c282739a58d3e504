/* How long each kernel ran: a histogram per kernel, by powers of two, when the program ends.
 *
 *   cc -std=c99 -Wall -Wextra -pedantic -shared -fPIC -o libkernel_times.so kernel_times.c $(pkg-config --cflags --libs gputrail)
 *   gputrail record --tool ./libkernel_times.so -- PROGRAM
 */
#include "gputrail.h"
#include <stdio.h>

enum { KERNELS = 256, BUCKETS = 40 };

static struct {
    gputrail_kernel_id id;
    uint64_t runs, nanos, unfinished, buckets[BUCKETS];
} kernels[KERNELS];

static gputrail_context context;
static gputrail_buffer buffer;

/* Needs no lock: the batches of a buffer come one after the other. */
static void kernel_done(const gputrail_record_kernel_dispatch *kernel) {
    gputrail_work_times times;
    size_t place = 0, bucket = 0;
    uint64_t nanos;
    if (gputrail_times_of(&kernel->header, &times) != GPUTRAIL_OK) return;
    while (place < KERNELS - 1 && kernels[place].id != kernel->kernel && kernels[place].id != 0) place++;
    kernels[place].id = kernel->kernel;
    if (times.start == 0 || times.end < times.start) {
        kernels[place].unfinished++;
        return;
    }
    nanos = times.end - times.start;
    while (bucket < BUCKETS - 1 && (nanos >> bucket) > 1) bucket++;
    kernels[place].runs++;
    kernels[place].nanos += nanos;
    kernels[place].buckets[bucket]++;
}

static void deliver(const gputrail_batch *batch, void *user_data) {
    const gputrail_record_header *record = NULL;
    (void)user_data;
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK)
        if (record->kind == GPUTRAIL_KIND_KERNEL_DISPATCH) kernel_done((const gputrail_record_kernel_dispatch *)record);
}

static gputrail_status initialise(gputrail_tool tool, void *user_data) {
    static const gputrail_kind kinds[] = {GPUTRAIL_KIND_KERNEL_DISPATCH};
    gputrail_selection selection = GPUTRAIL_SELECTION_INIT;
    gputrail_status status;
    (void)tool;
    selection.kinds = kinds;
    selection.kind_count = sizeof kinds / sizeof kinds[0];
    if ((status = gputrail_context_create(&context)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_buffer_create(NULL, deliver, user_data, &buffer)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_context_trace_to(context, buffer, &selection)) != GPUTRAIL_OK) return status;
    return gputrail_context_start(context);
}

static void finalise(void *user_data) {
    gputrail_drops drops = GPUTRAIL_DROPS_INIT;
    size_t place, bucket;
    gputrail_context_stop(context);
    (void)user_data;
    gputrail_buffer_flush(buffer);
    gputrail_buffer_dropped_in_total(buffer, &drops);
    /* Kernels that have not completed come now, without times. */
    gputrail_buffer_destroy(buffer);
    for (place = 0; place < KERNELS && kernels[place].id != 0; place++) {
        char name[200] = "(unknown)";
        gputrail_kernel_name(kernels[place].id, name, sizeof name, NULL);
        fprintf(stderr, "%s: %llu runs, %.3f ms", name, (unsigned long long)kernels[place].runs, (double)kernels[place].nanos / 1e6);
        if (kernels[place].unfinished > 0) fprintf(stderr, ", %llu without times", (unsigned long long)kernels[place].unfinished);
        fputc('\n', stderr);
        for (bucket = 0; bucket < BUCKETS; bucket++)
            if (kernels[place].buckets[bucket] > 0)
                fprintf(stderr, "  from %10.3f us: %llu\n", (double)(1ull << bucket) / 1e3, (unsigned long long)kernels[place].buckets[bucket]);
    }
    if (drops.total > 0) fprintf(stderr, "%llu records were dropped\n", (unsigned long long)drops.total);
}

const gputrail_tool_description *gputrail_tool_configure(const gputrail_tool_host *host) {
    static gputrail_tool_description description = GPUTRAIL_TOOL_DESCRIPTION_INIT;
    (void)host;
    description.name = "kernel-times";
    description.initialise = initialise;
    description.finalise = finalise;
    return &description;
}
