/* The bandwidth of copies while the program runs: a line whenever something was copied, at most ten a second, and the
 * totals at the end.
 *
 *   cc -std=c99 -Wall -Wextra -pedantic -shared -fPIC -o libcopy_bandwidth.so copy_bandwidth.c $(pkg-config --cflags --libs gputrail)
 *   gputrail record --tool ./libcopy_bandwidth.so -- PROGRAM
 */
#include "gputrail.h"
#include <stdio.h>
#include <string.h>

/* Directions: values of gputrail_transfer_kind. */
enum { DIRECTIONS = 20 };

static const char *const names[DIRECTIONS] = {
    [GPUTRAIL_TRANSFER_KIND_HOST_TO_DEVICE] = "host to device",
    [GPUTRAIL_TRANSFER_KIND_DEVICE_TO_HOST] = "device to host",
    [GPUTRAIL_TRANSFER_KIND_DEVICE_TO_DEVICE] = "device to device",
    [GPUTRAIL_TRANSFER_KIND_PEER_TO_PEER] = "peer to peer",
    [GPUTRAIL_TRANSFER_KIND_MAP] = "map",
    [GPUTRAIL_TRANSFER_KIND_UNMAP] = "unmap",
    [GPUTRAIL_TRANSFER_KIND_MIGRATE] = "migrate",
};

struct sums {
    uint64_t copies, bytes, nanos;
};
static struct sums since[DIRECTIONS], total[DIRECTIONS];

static gputrail_context context;
static gputrail_buffer buffer;

static void copied(const gputrail_record_memory_copy *copy) {
    gputrail_work_times times;
    struct sums *sums;
    if (copy->transfer >= DIRECTIONS || gputrail_times_of(&copy->header, &times) != GPUTRAIL_OK) return;
    if (times.start == 0 || times.end < times.start) return;
    sums = &since[copy->transfer];
    sums->copies++;
    sums->bytes += copy->bytes;
    sums->nanos += times.end - times.start;
}

static void say(const char *when, const struct sums *sums) {
    int direction;
    for (direction = 0; direction < DIRECTIONS; direction++) {
        const struct sums *of = &sums[direction];
        if (of->copies == 0) continue;
        fprintf(stderr, "%s: %s: %llu copies, %.3f MB, %.2f GB/s\n", when, names[direction] ? names[direction] : "other",
                (unsigned long long)of->copies, (double)of->bytes / 1e6, of->nanos ? (double)of->bytes / (double)of->nanos : 0.0);
    }
}

static void add_up(void) {
    int direction;
    for (direction = 0; direction < DIRECTIONS; direction++) {
        total[direction].copies += since[direction].copies;
        total[direction].bytes += since[direction].bytes;
        total[direction].nanos += since[direction].nanos;
    }
    memset(since, 0, sizeof since);
}

static void deliver(const gputrail_batch *batch, void *user_data) {
    static gputrail_ticks said;
    const gputrail_record_header *record = NULL;
    (void)user_data;
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK)
        if (record->kind == GPUTRAIL_KIND_MEMORY_COPY) copied((const gputrail_record_memory_copy *)record);
    if (gputrail_now() - said < gputrail_ticks_per_second() / 10) return;
    said = gputrail_now();
    say("now", since);
    add_up();
}

static gputrail_status initialise(gputrail_tool tool, void *user_data) {
    static const gputrail_kind kinds[] = {GPUTRAIL_KIND_MEMORY_COPY};
    gputrail_buffer_options options = GPUTRAIL_BUFFER_OPTIONS_INIT;
    gputrail_selection selection = GPUTRAIL_SELECTION_INIT;
    gputrail_status status;
    (void)tool;
    selection.kinds = kinds;
    selection.kind_count = sizeof kinds / sizeof kinds[0];
    /* Live: whatever is there is delivered ten times a second. */
    options.watermark = 1;
    if ((status = gputrail_context_create(&context)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_buffer_create(&options, deliver, user_data, &buffer)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_context_trace_to(context, buffer, &selection)) != GPUTRAIL_OK) return status;
    return gputrail_context_start(context);
}

static void finalise(void *user_data) {
    gputrail_context_stop(context);
    gputrail_buffer_destroy(buffer);
    (void)user_data;
    add_up();
    say("in total", total);
}

const gputrail_tool_description *gputrail_tool_configure(const gputrail_tool_host *host) {
    static gputrail_tool_description description = GPUTRAIL_TOOL_DESCRIPTION_INIT;
    (void)host;
    description.name = "copy-bandwidth";
    description.initialise = initialise;
    description.finalise = finalise;
    return &description;
}
