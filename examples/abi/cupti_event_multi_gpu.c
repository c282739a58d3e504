/* Counts an event of all devices at the same time: on each for as long as its context is there. */
#include "cupti_example.h"

enum { MOST_DEVICES = 16 };

static struct counted {
    CUcontext context;
    CUdevice device;
    CUpti_EventGroup group;
    CUpti_EventID event;
} all[MOST_DEVICES];
static int count;

static void *report(void *data) {
    struct counted *one = (struct counted *)data;
    uint64_t value = read_event(one->device, one->group, one->event);
    printf("device %d: %s = %" PRIu64 "\n", one->device, setting("EVENT", "TASK_CLOCK"), value);
    fflush(stdout);
    SUCCEED(cuptiEventGroupDisable(one->group));
    SUCCEED(cuptiEventGroupDestroy(one->group));
    one->context = NULL;
    return NULL;
}

static void end(void) {
    int of;
    for (of = 0; of < count; of++) {
        if (all[of].context) report(&all[of]);
    }
}

static void CUPTIAPI call_back(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *given) {
    const CUpti_ResourceData *data = (const CUpti_ResourceData *)given;
    int of;
    (void)user;
    for (of = 0; of < count; of++) {
        if (all[of].context && is_end(domain, id, given, all[of].context)) elsewhere(report, &all[of]);
    }
    if (domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED && count < MOST_DEVICES) {
        struct counted *one = &all[count];
        if (make_group(data->context, &one->device, &one->group, &one->event, CUPTI_EVENT_PROFILING_SCOPE_DEVICE) &&
            SUCCEED(cuptiSetEventCollectionMode(data->context, CUPTI_EVENT_COLLECTION_MODE_CONTINUOUS)) &&
            SUCCEED(cuptiEventGroupEnable(one->group))) {
            one->context = data->context;
            count++;
        }
    }
}

int InitializeInjection(void);
int InitializeInjection(void) {
    subscribe(call_back);
    atexit(end);
    return 1;
}
