/* A tool that says when it is initialised and finalised. The compiler's options give its name (NAME) and priority (PRIORITY),
   and may have it refuse to be initialised (REFUSES), or ask for its end at its second call of the program's (FINISHES), from
   within a callback. */
#include "gputrail.h"
#include <stdio.h>
#include <string.h>

#define TEXT(name) TEXT_OF(name)
#define TEXT_OF(name) #name

static gputrail_tool self;
static gputrail_context context;
static gputrail_subscriber subscriber;
static int calls;

static void called_back(gputrail_callback *callback, void *user_data) {
    (void)user_data;
    if (callback->phase != GPUTRAIL_PHASE_ENTER) return;
    calls++;
#ifdef FINISHES
    if (calls == 2) {
        gputrail_status first = gputrail_tool_finish(self), second = gputrail_tool_finish(self);
        fprintf(stderr, "%s finishes: %s, then %s\n", TEXT(NAME), gputrail_status_name(first), gputrail_status_name(second));
    }
#endif
}

static gputrail_status initialise(gputrail_tool tool, void *user_data) {
    gputrail_operation finish;
    gputrail_status status;
    (void)user_data;
    self = tool;
    fprintf(stderr, "%s initialised\n", TEXT(NAME));
#ifdef REFUSES
    return GPUTRAIL_NOT_AVAILABLE;
#endif
    if ((status = gputrail_operation_by_name(GPUTRAIL_DOMAIN_OPENCL, "clEnqueueNDRangeKernel", &finish)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_context_create(&context)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_subscribe(context, &finish, 1, called_back, NULL, &subscriber)) != GPUTRAIL_OK) return status;
    return gputrail_context_start(context);
}

static void finalise(void *user_data) {
    (void)user_data;
    gputrail_context_destroy(context);
    fprintf(stderr, "%s finalised\n", TEXT(NAME));
}

const gputrail_tool_description *gputrail_tool_configure(const gputrail_tool_host *host) {
    static gputrail_tool_description description;
    (void)host;
    memset(&description, 0, sizeof description);
    description.size = sizeof description;
    description.api_version = GPUTRAIL_API_VERSION;
    description.priority = PRIORITY;
    description.name = TEXT(NAME);
    description.initialise = initialise;
    description.finalise = finalise;
    return &description;
}
