/* A tool that tells the operations that it was called back about, each once: domain, name, phase, kind of the record. */
#include "gputrail.h"
#include <stdio.h>

enum { DOMAINS = 16, OPERATIONS = 1024, PHASES = 5, NO_RECORD = 255, SEVERAL = 254 };

/* The kind of the record, by domain, number and phase; 0 for what was not reported. */
static uint8_t seen[DOMAINS][OPERATIONS][PHASES];

static void called_back(gputrail_callback *callback, void *user_data) {
    const gputrail_operation operation = callback->operation;
    uint8_t kind = callback->record != NULL ? callback->record->kind : NO_RECORD;
    uint8_t *place, before;
    (void)user_data;
    if (operation.domain >= DOMAINS || operation.number >= OPERATIONS || callback->phase >= PHASES) {
        fprintf(stderr, "out of range: %u %u %u\n", operation.domain, operation.number, callback->phase);
        return;
    }
    /* The call has failed: there is no work to tell of. */
    if (callback->record == NULL && callback->phase == GPUTRAIL_PHASE_EXIT && callback->return_code != 0) return;
    place = &seen[operation.domain][operation.number][callback->phase];
    before = __atomic_load_n(place, __ATOMIC_RELAXED);
    if (before != 0 && before != kind) kind = SEVERAL;
    __atomic_store_n(place, kind, __ATOMIC_RELAXED);
}

static gputrail_status make_markers(void) {
    gputrail_mark_options mark = GPUTRAIL_MARK_OPTIONS_INIT;
    gputrail_status status;
    uint64_t range;
    mark.name = "marker";
    if ((status = gputrail_mark(&mark)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_range_push(&mark)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_range_pop()) != GPUTRAIL_OK) return status;
    if ((status = gputrail_external_push(GPUTRAIL_EXTERNAL_KIND_CUSTOM0, 1)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_external_pop(GPUTRAIL_EXTERNAL_KIND_CUSTOM0, NULL)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_range_start(&mark, &range)) != GPUTRAIL_OK) return status;
    return gputrail_range_end(range);
}

static gputrail_status initialise(gputrail_tool tool, void *user_data) {
    gputrail_context context;
    gputrail_subscriber subscriber;
    gputrail_status status;
    (void)tool;
    if ((status = gputrail_context_create(&context)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_subscribe(context, NULL, 0, called_back, user_data, &subscriber)) != GPUTRAIL_OK) return status;
    if ((status = gputrail_context_start(context)) != GPUTRAIL_OK) return status;
    return make_markers();
}

static void finalise(void *user_data) {
    static const char *const phases[PHASES] = {"?", "ENTER", "EXIT", "COMPLETE", "INSTANT"};
    uint32_t domain, number, phase;
    (void)user_data;
    for (domain = 0; domain < DOMAINS; domain++)
        for (number = 0; number < OPERATIONS; number++)
            for (phase = 0; phase < PHASES; phase++) {
                const uint8_t kind = seen[domain][number][phase];
                const gputrail_operation operation = gputrail_operation_of(domain << 16 | number);
                const char *name = gputrail_operation_name(operation), *of_kind = gputrail_kind_name(kind);
                if (kind == 0) continue;
                if (gputrail_operation_code(operation) != (domain << 16 | number)) fprintf(stderr, "no way back\n");
                fprintf(stderr, "reported|%s|%s|%s|%s\n", gputrail_domain_name((gputrail_domain)domain), name ? name : "?",
                        phases[phase], kind == NO_RECORD ? "" : of_kind ? of_kind : "several kinds");
            }
}

const gputrail_tool_description *gputrail_tool_configure(const gputrail_tool_host *host) {
    static gputrail_tool_description description = GPUTRAIL_TOOL_DESCRIPTION_INIT;
    (void)host;
    description.name = "reported-operations";
    description.initialise = initialise;
    description.finalise = finalise;
    return &description;
}
