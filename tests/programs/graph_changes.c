/* A tool that says what happens to graphs: as its subscriber is told ("told"), and as its buffer records it ("recorded"). */
#include "gputrail.h"
#include <stdio.h>
#include <string.h>

static gputrail_context context;
static gputrail_buffer buffer;
static gputrail_subscriber subscriber;

static void say(const char *how, const gputrail_record_graph_change *change) {
    fprintf(stderr, "%s: %u, graph %u of %u, node %u and %u of type %u, call %d, handle %d\n", how, (unsigned)change->what,
            (unsigned)change->graph, (unsigned)change->other_graph, (unsigned)change->node, (unsigned)change->other_node,
            (unsigned)change->node_type, change->correlation != 0, change->handle != 0);
}

static void observe(gputrail_callback *callback, void *user_data) {
    (void)user_data;
    if (callback->record && callback->record->kind == GPUTRAIL_KIND_GRAPH_CHANGE)
        say("told", (const gputrail_record_graph_change *)callback->record);
}

static void deliver(const gputrail_batch *batch, void *user_data) {
    const gputrail_record_header *record = NULL;
    (void)user_data;
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK)
        if (record->kind == GPUTRAIL_KIND_GRAPH_CHANGE) say("recorded", (const gputrail_record_graph_change *)record);
}

static gputrail_status initialise(gputrail_tool tool, void *user_data) {
    static const gputrail_kind kinds[] = {GPUTRAIL_KIND_GRAPH_CHANGE};
    gputrail_selection selection;
    gputrail_operation created;
    gputrail_status status;
    (void)tool;
    memset(&selection, 0, sizeof selection);
    selection.size = sizeof selection;
    selection.kinds = kinds;
    selection.kind_count = 1;
    if ((status = gputrail_operation_by_name(GPUTRAIL_DOMAIN_RESOURCE, "graph created", &created)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_context_create(&context)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_subscribe(context, NULL, 0, observe, user_data, &subscriber)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_buffer_create(NULL, deliver, NULL, &buffer)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_context_trace_to(context, buffer, &selection)) != GPUTRAIL_OK) return status;
    return gputrail_context_start(context);
}

const gputrail_tool_description *gputrail_tool_configure(const gputrail_tool_host *host) {
    static gputrail_tool_description description;
    (void)host;
    description.size = sizeof description;
    description.api_version = GPUTRAIL_API_VERSION;
    description.name = "graph-changes";
    description.initialise = initialise;
    return &description;
}
