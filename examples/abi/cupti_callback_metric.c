/* Computes metrics of kernels by callbacks, those that the variable METRICS names. Their events may need several passes: each
   kernel is repeated as often. The values are read when the program has waited for the kernel, and are those of the kernel that
   ended last. */
#include "cupti_example.h"

enum { MOST_CONTEXTS = 8, MOST_EVENTS = 32, MOST_METRICS = 16 };

static struct measured {
    CUcontext context;
    CUdevice device;
    CUpti_MetricID metrics[MOST_METRICS];
    uint32_t metric_count;
    CUpti_EventGroupSets *passes;
    uint64_t begin;
} all[MOST_CONTEXTS];

static void updated(const char *kernel, int done, void *data) {
    (void)data;
    if (getenv("UPDATES")) printf("%s: pass %d has run\n", kernel, done);
}

/* Has the events of the metrics counted in a context. */
static bool begin(struct measured *one) {
    char names[256], *name, *rest = NULL;
    uint32_t number = 0, on = 1, set, of;
    if (!SUCCEED(cuptiGetDeviceId(one->context, &number))) return false;
    one->device = (CUdevice)number;
    snprintf(names, sizeof names, "%s", setting("METRICS", "CPUS_UTILIZED"));
    for (name = strtok_r(names, ",", &rest); name && one->metric_count < MOST_METRICS; name = strtok_r(NULL, ",", &rest)) {
        if (!SUCCEED(cuptiMetricGetIdFromName(one->device, name, &one->metrics[one->metric_count++]))) return false;
    }
    if (!SUCCEED(cuptiMetricCreateEventGroupSets(
            one->context, one->metric_count * sizeof *one->metrics, one->metrics, &one->passes)))
        return false;
    printf("%" PRIu32 " passes\n", one->passes->numSets);
    SUCCEED(cuptiEnableKernelReplayMode(one->context));
    for (set = 0; set < one->passes->numSets; set++) {
        for (of = 0; of < one->passes->sets[set].numEventGroups; of++) {
            SUCCEED(cuptiEventGroupSetAttribute(
                one->passes->sets[set].eventGroups[of], CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES, sizeof on, &on));
        }
        SUCCEED(cuptiEventGroupSetEnable(&one->passes->sets[set]));
    }
    return true;
}

/* The context, which is prepared when it is first asked for. */
static struct measured *of_context(CUcontext context) {
    struct measured *one;
    for (one = all; one < all + MOST_CONTEXTS; one++) {
        if (one->context == context) return one->passes ? one : NULL;
        if (one->context) continue;
        one->context = context;
        return begin(one) ? one : NULL;
    }
    return NULL;
}

/* Reads the events of all passes, and computes the metrics. */
/* The value of a metric, whatever its kind. */
static double number(CUpti_MetricID metric, CUpti_MetricValue value) {
    CUpti_MetricValueKind kind = CUPTI_METRIC_VALUE_KIND_DOUBLE;
    size_t size = sizeof kind;
    SUCCEED(cuptiMetricGetAttribute(metric, CUPTI_METRIC_ATTR_VALUE_KIND, &size, &kind));
    switch (kind) {
    case CUPTI_METRIC_VALUE_KIND_UINT64: return (double)value.metricValueUint64;
    case CUPTI_METRIC_VALUE_KIND_THROUGHPUT: return (double)value.metricValueThroughput;
    case CUPTI_METRIC_VALUE_KIND_INT64: return (double)value.metricValueInt64;
    case CUPTI_METRIC_VALUE_KIND_PERCENT: return value.metricValuePercent;
    case CUPTI_METRIC_VALUE_KIND_UTILIZATION_LEVEL: return (double)value.metricValueUtilizationLevel;
    default: return value.metricValueDouble;
    }
}

static void report(struct measured *one, const char *kernel) {
    CUpti_EventID ids[MOST_EVENTS];
    uint64_t values[MOST_EVENTS], any = 0, end = 0;
    CUpti_MetricValue value;
    uint32_t set, of, count = 0;
    SUCCEED(cuptiDeviceGetTimestamp(one->context, &end));
    for (set = 0; set < one->passes->numSets; set++) {
        for (of = 0; of < one->passes->sets[set].numEventGroups; of++) {
            CUpti_EventGroup group = one->passes->sets[set].eventGroups[of];
            CUpti_EventID own[MOST_EVENTS];
            size_t size = sizeof own, event;
            SUCCEED(cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_EVENTS, &size, own));
            for (event = 0; event < size / sizeof *own && count < MOST_EVENTS; event++) {
                ids[count] = own[event];
                values[count] = read_event(one->device, group, own[event]);
                any |= values[count++];
            }
        }
    }
    for (of = 0; any && of < one->metric_count; of++) {
        char name[64];
        size_t size = sizeof name;
        SUCCEED(cuptiMetricGetAttribute(one->metrics[of], CUPTI_METRIC_ATTR_NAME, &size, name));
        if (SUCCEED(cuptiMetricGetValue(
                one->device, one->metrics[of], count * sizeof *ids, ids, count * sizeof *values, values, end - one->begin,
                &value)))
            printf("%s: %s = %f\n", kernel, name, number(one->metrics[of], value));
    }
}

static void CUPTIAPI call_back(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *given) {
    (void)user;
    if (is_launch(domain, id)) {
        const CUpti_CallbackData *data = (const CUpti_CallbackData *)given;
        struct measured *one = of_context(data->context);
        if (!one) return;
        if (data->callbackSite == CUPTI_API_ENTER) {
            SUCCEED(cuptiDeviceGetTimestamp(data->context, &one->begin));
        } else if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
            /* On processors, a kernel that is counted has ended. */
            report(one, data->symbolName ? data->symbolName : "?");
        }
    } else if (domain == CUPTI_CB_DOMAIN_SYNCHRONIZE) {
        const CUpti_SynchronizeData *data = (const CUpti_SynchronizeData *)given;
        struct measured *one = of_context(data->context);
        if (one) report(one, "the latest kernel");
    }
}

int InitializeInjection(void);
int InitializeInjection(void) {
    SUCCEED(cuptiKernelReplaySubscribeUpdate(updated, NULL));
    subscribe(call_back);
    return 1;
}
