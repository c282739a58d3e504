/* A tool that counts the samples of a program's kernels and wants their source lines beside the numbers. It says, when it is
   finalised, how many samples fell on which line, and how many instructions it was told of, with a text and a line of theirs. */
#include "gputrail.h"
#include <stdio.h>
#include <string.h>

enum { LINES = 256 };

static struct {
    gputrail_source_locator_id id;
    uint32_t line;
    char file[200];
    unsigned long long samples;
} lines[LINES];

static unsigned long long samples, instructions, complete;
static gputrail_context observing, sampling;
static gputrail_buffer buffer;

static gputrail_status said(const char *what, gputrail_status status) {
    char why[400] = "";
    if (status == GPUTRAIL_OK) return status;
    gputrail_last_error(why, sizeof why);
    fprintf(stderr, "%s: %s (%s)\n", what, gputrail_status_name(status), why);
    return status;
}

static size_t place_of(gputrail_source_locator_id id) {
    size_t place = 0;
    while (place < LINES && lines[place].id != id) place++;
    return place;
}

static void deliver(const gputrail_batch *batch, void *user_data) {
    const gputrail_record_header *record = NULL;
    (void)user_data;
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK) {
        if (record->kind == GPUTRAIL_KIND_SOURCE_LOCATOR) {
            const gputrail_record_source_locator *locator = (const gputrail_record_source_locator *)record;
            size_t place = place_of(0);
            if (place == LINES) continue;
            lines[place].id = locator->id;
            lines[place].line = locator->line;
            said("gputrail_string", gputrail_string(locator->file, lines[place].file, sizeof lines[place].file, NULL));
        } else if (record->kind == GPUTRAIL_KIND_INSTRUCTION_CORRELATION) {
            const gputrail_record_instruction_correlation *one = (const gputrail_record_instruction_correlation *)record;
            char text[200] = "";
            instructions++;
            if (one->text != 0) said("gputrail_string", gputrail_string(one->text, text, sizeof text, NULL));
            complete += text[0] != 0 && one->source_locator != 0;
        } else if (record->kind == GPUTRAIL_KIND_PC_SAMPLE_AGGREGATE) {
            const gputrail_record_sample_aggregate *sum = (const gputrail_record_sample_aggregate *)record;
            size_t place = sum->source_locator ? place_of(sum->source_locator) : LINES;
            samples += sum->samples;
            if (place < LINES) lines[place].samples += sum->samples;
        }
    }
}

/* A device is known: it is sampled from now on. */
static void agent_known(gputrail_callback *callback, void *user_data) {
    const gputrail_record_agent *agent = (const gputrail_record_agent *)callback->record;
    static const gputrail_kind kinds[] = {GPUTRAIL_KIND_SOURCE_LOCATOR, GPUTRAIL_KIND_INSTRUCTION_CORRELATION};
    gputrail_sampling_options every_millisecond;
    gputrail_selection selection;
    (void)user_data;
    if (agent == NULL || sampling.handle != 0) return;
    memset(&selection, 0, sizeof selection);
    selection.size = sizeof selection;
    selection.kinds = kinds;
    selection.kind_count = sizeof kinds / sizeof kinds[0];
    memset(&every_millisecond, 0, sizeof every_millisecond);
    every_millisecond.size = sizeof every_millisecond;
    every_millisecond.interval = 1000000;
    every_millisecond.method = GPUTRAIL_SAMPLING_METHOD_HOST_TRAP;
    every_millisecond.unit = GPUTRAIL_SAMPLING_UNIT_TIME;
    every_millisecond.aggregates = 1;
    if (said("gputrail_context_create", gputrail_context_create(&sampling)) == GPUTRAIL_OK &&
        said("gputrail_context_trace_to", gputrail_context_trace_to(sampling, buffer, &selection)) == GPUTRAIL_OK &&
        said("gputrail_context_sample", gputrail_context_sample(sampling, buffer, agent->id, &every_millisecond)) == GPUTRAIL_OK)
        said("gputrail_context_start", gputrail_context_start(sampling));
}

static gputrail_status initialise(gputrail_tool tool, void *user_data) {
    gputrail_operation known;
    gputrail_subscriber subscriber;
    gputrail_status status;
    (void)tool;
    if ((status = gputrail_operation_by_name(GPUTRAIL_DOMAIN_RESOURCE, "agent known", &known)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_buffer_create(NULL, deliver, user_data, &buffer)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_context_create(&observing)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_subscribe(observing, &known, 1, agent_known, NULL, &subscriber)) != GPUTRAIL_OK) return status;
    return gputrail_context_start(observing);
}

static void finalise(void *user_data) {
    size_t place;
    (void)user_data;
    if (sampling.handle != 0) said("gputrail_context_stop", gputrail_context_stop(sampling));
    said("gputrail_buffer_flush", gputrail_buffer_flush(buffer));
    for (place = 0; place < LINES && lines[place].id != 0; place++)
        fprintf(stderr, "line %u: %llu samples, in %s\n", (unsigned)lines[place].line, lines[place].samples, lines[place].file);
    fprintf(stderr, "samples: %llu\n", samples);
    fprintf(stderr, "instructions: %llu, complete: %llu\n", instructions, complete);
}

const gputrail_tool_description *gputrail_tool_configure(const gputrail_tool_host *host) {
    static gputrail_tool_description description;
    (void)host;
    memset(&description, 0, sizeof description);
    description.size = sizeof description;
    description.api_version = GPUTRAIL_API_VERSION;
    description.name = "sampled-lines";
    description.initialise = initialise;
    description.finalise = finalise;
    return &description;
}
