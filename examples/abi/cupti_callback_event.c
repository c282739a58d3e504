/* Counts an event of each kernel by callbacks: it is enabled before the kernel, and read and disabled when that has ended.
   Where the program launches kernels and goes on, as on the simulated GPU, the event stays enabled, and is read when the
   program has waited: it has the value of the kernel that ended last. */
#include "cupti_example.h"
#include <dlfcn.h>

enum { MOST_CONTEXTS = 8 };

static struct counted {
    CUcontext context;
    CUdevice device;
    CUpti_EventGroup group;
    CUpti_EventID event;
    bool is_enabled;
} all[MOST_CONTEXTS];

/* The event of a context, which is made when it is first asked for. */
static struct counted *of_context(CUcontext context) {
    struct counted *one;
    for (one = all; one < all + MOST_CONTEXTS; one++) {
        if (one->context == context) return one->group ? one : NULL;
        if (one->context) continue;
        one->context = context;
        const uint32_t scope = CUPTI_EVENT_PROFILING_SCOPE_CONTEXT;
        return make_group(context, &one->device, &one->group, &one->event, scope) ? one : NULL;
    }
    return NULL;
}

static void report(struct counted *one, const char *kernel) {
    uint64_t value = read_event(one->device, one->group, one->event);
    if (value) printf("%s: %s = %" PRIu64 "\n", kernel, setting("EVENT", "TASK_CLOCK"), value);
}

/* Waits for a queue of OpenCL, the first argument of the call. */
static void finish(const CUpti_CallbackData *data) {
    const CUpti_GputrailParams *params = (const CUpti_GputrailParams *)data->functionParams;
    int (*finish)(void *);
    *(void **)&finish = dlsym(RTLD_DEFAULT, "clFinish");
    if (finish) finish((void *)(uintptr_t)params->values[0]);
}

static void CUPTIAPI call_back(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *given) {
    (void)user;
    if (is_launch(domain, id)) {
        const CUpti_CallbackData *data = (const CUpti_CallbackData *)given;
        struct counted *one = of_context(data->context);
        if (!one) return;
        if (data->callbackSite == CUPTI_API_ENTER && !one->is_enabled) {
            one->is_enabled = SUCCEED(cuptiSetEventCollectionMode(data->context, CUPTI_EVENT_COLLECTION_MODE_KERNEL)) &&
                              SUCCEED(cuptiEventGroupEnable(one->group));
        } else if (data->callbackSite == CUPTI_API_EXIT && domain == CUPTI_CB_DOMAIN_DRIVER_API) {
            finish(data);
            report(one, data->symbolName ? data->symbolName : "?");
            one->is_enabled = !SUCCEED(cuptiEventGroupDisable(one->group));
        }
    } else if (domain == CUPTI_CB_DOMAIN_SYNCHRONIZE) {
        const CUpti_SynchronizeData *data = (const CUpti_SynchronizeData *)given;
        struct counted *one = of_context(data->context);
        if (one && one->is_enabled) report(one, "the latest kernel");
    }
}

int InitializeInjection(void);
int InitializeInjection(void) {
    subscribe(call_back);
    return 1;
}
