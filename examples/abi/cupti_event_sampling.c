/* Samples an event of a device from a second thread, whatever runs: its value since the sample before, and the device's time. */
#include "cupti_example.h"
#include <unistd.h>

static struct sampled {
    CUcontext context;
    CUdevice device;
    CUpti_EventGroup group;
    CUpti_EventID event;
    uint64_t total;
    uint32_t samples;
} one;
static pthread_t thread;
static bool is_sampling;
static volatile bool is_over;

static void sample(void) {
    uint64_t value = read_event(one.device, one.group, one.event), time = 0;
    SUCCEED(cuptiDeviceGetTimestamp(one.context, &time));
    if (getenv("SAMPLES") && value) printf("%" PRIu64 ": %" PRIu64 "\n", time, value);
    one.total += value;
    one.samples++;
}

static void *sampling(void *data) {
    (void)data;
    while (!is_over) {
        usleep(1000);
        sample();
    }
    /* What came since. */
    sample();
    return NULL;
}

static void end(void) {
    if (!is_sampling) return;
    is_sampling = false;
    is_over = true;
    pthread_join(thread, NULL);
    printf("%s = %" PRIu64 " in all samples\n", setting("EVENT", "TASK_CLOCK"), one.total);
    fflush(stdout);
}

static void CUPTIAPI call_back(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *given) {
    const CUpti_ResourceData *data = (const CUpti_ResourceData *)given;
    (void)user;
    if (one.context && is_end(domain, id, given, one.context)) {
        end();
    } else if (domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED && !one.context) {
        one.context = data->context;
        if (make_group(one.context, &one.device, &one.group, &one.event, CUPTI_EVENT_PROFILING_SCOPE_DEVICE) &&
            SUCCEED(cuptiSetEventCollectionMode(one.context, CUPTI_EVENT_COLLECTION_MODE_CONTINUOUS)) &&
            SUCCEED(cuptiEventGroupEnable(one.group))) {
            is_sampling = pthread_create(&thread, NULL, sampling, NULL) == 0;
        }
    }
}

int InitializeInjection(void);
int InitializeInjection(void) {
    subscribe(call_back);
    atexit(end);
    return 1;
}
