/* A program that is linked with gputrail and runs the simulated GPU: its calls come from threads of the program. What a tool
   keeps per thread, and an external id that it pushes, are those of one thread. */
#include "gputrail.h"
#include "checks.h"
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 64 };
static const gputrail_external_id PUSHED = 99;

/* What a thread has of its own: the id under which it was called back. */
static __thread gputrail_thread_id own;
static __thread uint64_t own_calls;

static gputrail_context context;
static gputrail_thread_id pushed_on, begun_on;
static uint64_t callbacks, wrong_threads, mixed, completions;
/* The threads of the callbacks, and those of the records. */
typedef struct { gputrail_thread_id thread; uint64_t calls, with_id; } calls_of;
static calls_of called[THREADS], recorded[THREADS];

static calls_of *of_thread(calls_of *all, gputrail_thread_id thread) {
    int place = 0;
    while (place < THREADS - 1 && all[place].thread != 0 && all[place].thread != thread) place++;
    all[place].thread = thread;
    return &all[place];
}

/* One thread calls at a time. */
static void called_back(gputrail_callback *callback, void *user_data) {
    gputrail_thread_id thread = (gputrail_thread_id)syscall(SYS_gettid);
    (void)user_data;
    callbacks++;
    wrong_threads += callback->thread != thread || gputrail_thread() != thread;
    mixed += own != 0 && own != callback->thread;
    own = callback->thread;
    completions += callback->phase == GPUTRAIL_PHASE_COMPLETE;
    if (callback->operation.domain != GPUTRAIL_DOMAIN_SIM) return;
    if (callback->phase == GPUTRAIL_PHASE_ENTER) {
        of_thread(called, callback->thread)->calls = ++own_calls;
        if (begun_on == 0) begun_on = thread;
        if (pushed_on == 0 && thread != begun_on) {
            pushed_on = thread;
            CHECK(gputrail_context_push_external(context, GPUTRAIL_EXTERNAL_KIND_CUSTOM0, PUSHED) == GPUTRAIL_OK);
        }
    }
}

static void deliver(const gputrail_batch *batch, void *user_data) {
    const gputrail_record_header *record = NULL;
    (void)user_data;
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK) {
        const gputrail_record_api *call = (const gputrail_record_api *)record;
        if (record->kind != GPUTRAIL_KIND_API) continue;
        of_thread(recorded, call->thread)->calls++;
        of_thread(recorded, call->thread)->with_id += call->external == PUSHED;
    }
}

int main(void) {
    static const gputrail_kind kind = GPUTRAIL_KIND_API;
    gputrail_simulation_options options;
    gputrail_simulation_report report;
    gputrail_selection selection;
    gputrail_subscriber subscriber;
    gputrail_buffer buffer;
    uint64_t calls = 0;
    int threads = 0, with_id = 0, place;
    memset(&selection, 0, sizeof selection);
    selection.size = sizeof selection;
    selection.kinds = &kind;
    selection.kind_count = 1;
    CHECK(gputrail_initialise() == GPUTRAIL_OK);
    CHECK(gputrail_context_create(&context) == GPUTRAIL_OK);
    CHECK(gputrail_buffer_create(NULL, deliver, NULL, &buffer) == GPUTRAIL_OK);
    CHECK(gputrail_context_trace_to(context, buffer, &selection) == GPUTRAIL_OK);
    CHECK(gputrail_subscribe(context, NULL, 0, called_back, NULL, &subscriber) == GPUTRAIL_OK);
    CHECK(gputrail_context_start(context) == GPUTRAIL_OK);
    memset(&options, 0, sizeof options);
    memset(&report, 0, sizeof report);
    options.size = sizeof options;
    options.steps = 2;
    report.size = sizeof report;
    CHECK(gputrail_simulation_run(&options, &report) == GPUTRAIL_OK);
    CHECK(gputrail_buffer_destroy(buffer) == GPUTRAIL_OK);

    CHECK(callbacks > 2 * report.calls && wrong_threads == 0 && mixed == 0 && completions > report.kernels / 2);
    CHECK(begun_on == (gputrail_thread_id)getpid() && pushed_on != 0);
    for (place = 0; place < THREADS && recorded[place].thread != 0; place++) {
        threads++;
        calls += recorded[place].calls;
        CHECK(of_thread(called, recorded[place].thread)->calls == recorded[place].calls);
        with_id += recorded[place].with_id > 0;
        if (recorded[place].with_id > 0) CHECK(recorded[place].thread == pushed_on);
    }
    CHECK(threads == 9 && calls == report.calls && with_id == 1);
    CHECK(gputrail_finalise() == GPUTRAIL_OK);
    printf("%s\n", failures ? "failed" : "passed");
    return failures > 0;
}
