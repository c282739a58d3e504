/* A tool in C++ with static objects of every age: one of the library, and one of a function that is first called when
   something is delivered. It says whether they are there when it is finalised, and how many calls it was given. */
#include "gputrail.h"
#include <cstdio>
#include <map>

struct Counts {
    std::map<unsigned long long, int> calls;
    bool *destroyed;
    explicit Counts(bool *flag) : destroyed(flag) {}
    ~Counts() { *destroyed = true; }
};

static bool early_destroyed, late_destroyed;
static Counts early(&early_destroyed);
static unsigned long delivered_too_late;
static gputrail_context context;
static gputrail_buffer buffer;

static Counts &late() {
    static Counts counts(&late_destroyed);
    return counts;
}

static void deliver(const gputrail_batch *batch, void *) {
    const gputrail_record_header *record = nullptr;
    if (early_destroyed || late_destroyed) {
        delivered_too_late++;
        return;
    }
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK) {
        if (record->kind != GPUTRAIL_KIND_API) continue;
        const gputrail_record_api *call = reinterpret_cast<const gputrail_record_api *>(record);
        early.calls[call->correlation]++;
        late().calls[call->correlation]++;
    }
}

static gputrail_status initialise(gputrail_tool, void *) {
    gputrail_status status;
    if ((status = gputrail_buffer_create(nullptr, deliver, nullptr, &buffer)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_context_create(&context)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_context_trace_to(context, buffer, nullptr)) != GPUTRAIL_OK) return status;
    return gputrail_context_start(context);
}

static void finalise(void *) {
    if (early_destroyed || late_destroyed || delivered_too_late) {
        std::fprintf(stderr, "static tool: destroyed before its end\n");
        return;
    }
    std::fprintf(stderr, "static tool: %lu and %lu calls\n", (unsigned long)early.calls.size(),
                 (unsigned long)late().calls.size());
}

extern "C" const gputrail_tool_description *gputrail_tool_configure(const gputrail_tool_host *) {
    static gputrail_tool_description description;
    description.size = sizeof description;
    description.api_version = GPUTRAIL_API_VERSION;
    description.name = "static";
    description.initialise = initialise;
    description.finalise = finalise;
    return &description;
}
