/* A tool that appends every record of the process, raw and of every kind, to the file that EVERY_KIND names. With
   EVERY_KIND_PERIOD=N the environment of agents is read every N ns. With EVERY_KIND_SAMPLING=stochastic or host-trap it samples the agents, as soon as
   two are known or EVERY_KIND_AGENTS, and gets the samples counted by address. */
#include "gputrail.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gputrail_context context, sampling;
static gputrail_buffer buffer;
static gputrail_subscriber subscriber;
static FILE *file;
static int agents;

static void deliver(const gputrail_batch *batch, void *user_data) {
    (void)user_data;
    fwrite(batch->records, 1, batch->bytes, file);
}

static void agent_known(gputrail_callback *callback, void *user_data) {
    const gputrail_record_agent *agent = (const gputrail_record_agent *)callback->record;
    const char *method = getenv("EVERY_KIND_SAMPLING");
    gputrail_sampling_options options;
    (void)user_data;
    if (method == NULL || agent == NULL) return;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.method = strcmp(method, "stochastic") ? GPUTRAIL_SAMPLING_METHOD_HOST_TRAP : GPUTRAIL_SAMPLING_METHOD_STOCHASTIC;
    options.unit = strcmp(method, "stochastic") ? GPUTRAIL_SAMPLING_UNIT_TIME : GPUTRAIL_SAMPLING_UNIT_CYCLES;
    options.interval = strcmp(method, "stochastic") ? 100000 : 1 << 16;
    options.aggregates = 1;
    if (agents++ == 0) gputrail_context_create(&sampling);
    gputrail_context_sample(sampling, buffer, agent->id, &options);
    if (agents == (getenv("EVERY_KIND_AGENTS") ? atoi(getenv("EVERY_KIND_AGENTS")) : 2)) gputrail_context_start(sampling);
}

static gputrail_status initialise(gputrail_tool tool, void *user_data) {
    static const gputrail_operation known = {GPUTRAIL_DOMAIN_RESOURCE, 14};
    const char *period = getenv("EVERY_KIND_PERIOD");
    gputrail_buffer_options options;
    gputrail_attributes attributes;
    gputrail_status status;
    (void)tool;
    gputrail_name_process("every kind");
    memset(&attributes, 0, sizeof attributes);
    attributes.size = sizeof attributes;
    if ((status = gputrail_attributes_get(&attributes)) != GPUTRAIL_OK) return status;
    if (period != NULL) attributes.environment_period = strtoull(period, NULL, 10);
    if ((status = gputrail_attributes_set(&attributes)) != GPUTRAIL_OK) return status;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.format = GPUTRAIL_RECORD_FORMAT_RAW;
    if ((file = fopen(getenv("EVERY_KIND"), "ab")) == NULL) return GPUTRAIL_NOT_AVAILABLE;
    if ((status = gputrail_context_create(&context)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_buffer_create(&options, deliver, user_data, &buffer)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_context_trace_to(context, buffer, NULL)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_subscribe(context, &known, 1, agent_known, NULL, &subscriber)) != GPUTRAIL_OK) return status;
    return gputrail_context_start(context);
}

static void finalise(void *user_data) {
    (void)user_data;
    gputrail_context_stop(context);
    gputrail_buffer_flush(buffer);
    fclose(file);
}

const gputrail_tool_description *gputrail_tool_configure(const gputrail_tool_host *host) {
    static gputrail_tool_description description;
    (void)host;
    description.size = sizeof description;
    description.api_version = GPUTRAIL_API_VERSION;
    description.name = "every-kind";
    description.initialise = initialise;
    description.finalise = finalise;
    return &description;
}
