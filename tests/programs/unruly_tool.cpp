// A tool that misbehaves in the way that UNRULY names:
//
// exit-call, exit-deliver: ends the program by exit(5) in a callback of a subscriber, of a buffer. Its end says how many calls
//     had ended, and how many were delivered and dropped.
// exit-complete: ends the program by exit(5) in a callback of a completion. Its end waits for further calls of the program, which
//     another subscriber sees, and says how many the first one was called back about.
// fork: forks in a callback. The child initialises the library.
// throw-configure, throw-initialise, throw-call, throw-deliver, throw-finalise: throws an exception there.
// none: nothing; its end says that it has come.
#include "gputrail.h"
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

static const unsigned long CALLS = 30;
static std::string mode;
static gputrail_context context;
static gputrail_buffer buffer;
static gputrail_subscriber subscriber;
static std::atomic<unsigned long> ended{0}, delivered{0};
static std::atomic<bool> finalised{false};
static std::atomic<bool> exiting{false};
static std::atomic<unsigned long> watched{0}, after_exit{0};

static bool is(const char *name) { return mode == name; }

static void throw_at(const char *place) {
    if (mode == std::string("throw-") + place) throw std::runtime_error(place);
}

static void fork_here() {
    pid_t child = fork();
    if (child == 0) {
        gputrail_context own;
        gputrail_status begun = gputrail_initialise();
        int is_there = gputrail_is_initialised();
        gputrail_status created = gputrail_context_create(&own);
        fprintf(stderr, "child: %d %d %d\n", begun, is_there, created);
        _exit(0);
    }
    waitpid(child, nullptr, 0);
}

static void watch(gputrail_callback *, void *) { watched++; }

static void call(gputrail_callback *callback, void *) {
    if (exiting) after_exit++;
    if (is("exit-complete") && callback->phase == GPUTRAIL_PHASE_COMPLETE && !exiting.exchange(true)) exit(5);
    if (callback->operation.domain != GPUTRAIL_DOMAIN_OPENCL) return;
    if (callback->phase == GPUTRAIL_PHASE_ENTER && is("exit-deliver")) {
        // No further call until the number of those that have ended has been said.
        while (ended == CALLS && !finalised) usleep(1000);
    }
    if (callback->phase != GPUTRAIL_PHASE_EXIT) return;
    unsigned long number = ++ended;
    throw_at("call");
    if (number == 1 && is("fork")) fork_here();
    if (number == CALLS && is("exit-call")) exit(5);
}

static void deliver(const gputrail_batch *batch, void *) {
    const gputrail_record_header *record = nullptr;
    throw_at("deliver");
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK) delivered += record->kind == GPUTRAIL_KIND_API;
    if (is("exit-deliver")) {
        while (ended < CALLS) usleep(1000);
        exit(5);
    }
}

static gputrail_status initialise(gputrail_tool, void *) {
    throw_at("initialise");
    gputrail_kind kind = GPUTRAIL_KIND_API;
    gputrail_selection selection{};
    selection.size = sizeof selection;
    selection.kinds = &kind;
    selection.kind_count = 1;
    gputrail_buffer_options options{};
    options.size = sizeof options;
    options.format = GPUTRAIL_RECORD_FORMAT_RAW;
    options.watermark = 1;
    options.period_nanos = 1000000;
    gputrail_status status = gputrail_context_create(&context);
    if (!status) status = gputrail_buffer_create(&options, deliver, nullptr, &buffer);
    if (!status) status = gputrail_context_trace_to(context, buffer, &selection);
    if (!status) status = gputrail_subscribe(context, nullptr, 0, call, nullptr, &subscriber);
    if (!status && is("exit-complete")) {
        gputrail_subscriber watcher;
        status = gputrail_subscribe(context, nullptr, 0, watch, nullptr, &watcher);
    }
    return status ? status : gputrail_context_start(context);
}

static void finalise(void *) {
    throw_at("finalise");
    if (exiting) {
        // A callback of the other thread's may have been in progress.
        unsigned long before = watched, called;
        while (watched < before + 20) usleep(1000);
        called = after_exit;
        before = watched;
        while (watched < before + 20) usleep(1000);
        fprintf(stderr, "after exit: %lu\n", after_exit - called);
    }
    gputrail_drops drops{};
    drops.size = sizeof drops;
    gputrail_status flushed = gputrail_buffer_flush(buffer);
    gputrail_status told = gputrail_buffer_dropped_in_total(buffer, &drops);
    fprintf(stderr, "end: %lu calls, %lu delivered, %lu dropped, flush %s, drops %s\n", ended.load(), delivered.load(),
            (unsigned long)drops.total, gputrail_status_name(flushed), gputrail_status_name(told));
    finalised = true;
}

extern "C" const gputrail_tool_description *gputrail_tool_configure(const gputrail_tool_host *host) {
    static gputrail_tool_description description{};
    const char *asked = getenv("UNRULY");
    mode = asked ? asked : "none";
    if (!host->probing) throw_at("configure");
    description.size = sizeof description;
    description.api_version = GPUTRAIL_API_VERSION;
    description.name = "unruly";
    description.initialise = initialise;
    description.finalise = finalise;
    return &description;
}
