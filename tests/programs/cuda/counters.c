/* A tool that counts the threads of kernels of CUDA in a group, from the fourth launch on, and prints their sum. It records
 * no calls. */
#include "gputrail.h"
#include <stdio.h>
#include <string.h>

static gputrail_context context;
static gputrail_subscriber subscriber;
static gputrail_counter_group group;

static void check(const char *what, gputrail_status status) {
    char text[400] = "";
    if (status == GPUTRAIL_OK) return;
    gputrail_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s (%s)\n", what, gputrail_status_name(status), text);
}

static void observe(gputrail_callback *callback, void *user_data) {
    static int launches;
    gputrail_counter_group_options options;
    gputrail_agent_id agents[4];
    size_t count = 0;
    (void)user_data;
    if (callback->operation.domain != GPUTRAIL_DOMAIN_CUDA_DRIVER || callback->phase != GPUTRAIL_PHASE_ENTER ||
        strcmp(callback->name, "cuLaunchKernel") || ++launches != 4)
        return;
    check("gputrail_agents", gputrail_agents(agents, 4, &count));
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.counters = "l1tex__hit_rate.pct";
    if (gputrail_counter_group_create(agents[0], &options, &group) == GPUTRAIL_INVALID_ARGUMENT)
        fprintf(stderr, "a percentage does not add up\n");
    options.counters = "sm__threads_launched,dram__bytes_read.sum";
    check("gputrail_counter_group_create", gputrail_counter_group_create(agents[0], &options, &group));
    check("gputrail_counter_group_start", gputrail_counter_group_start(group));
}

static gputrail_status initialise(gputrail_tool tool, void *user_data) {
    gputrail_status status;
    (void)tool;
    if ((status = gputrail_context_create(&context)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_subscribe(context, NULL, 0, observe, user_data, &subscriber)) != GPUTRAIL_OK) return status;
    return gputrail_context_start(context);
}

static void finalise(void *user_data) {
    gputrail_counter_group_value values[2];
    size_t count = 0;
    double number = 0;
    (void)user_data;
    check("gputrail_counter_group_stop", gputrail_counter_group_stop(group));
    check("gputrail_counter_group_read", gputrail_counter_group_read(group, values, 2, &count));
    for (size_t i = 0; i < count; i++) {
        check("gputrail_counter_group_double", gputrail_counter_group_double(&values[i], &number));
        fprintf(stderr, "sum %.0f of %u\n", number, (unsigned)values[i].readings);
    }
}

const gputrail_tool_description *gputrail_tool_configure(const gputrail_tool_host *host) {
    static gputrail_tool_description description;
    (void)host;
    description.size = sizeof description;
    description.api_version = GPUTRAIL_API_VERSION;
    description.name = "cuda-counters";
    description.initialise = initialise;
    description.finalise = finalise;
    return &description;
}
