/* The profiler host and range profiler interface of the stand-in of libcupti, by our own declarations: libcupti.c includes it.
 *
 * Metrics: dram__bytes_read, smsp__inst_executed, sm__threads_launched and dramc__cycles (counters), l1tex__hit_rate (a ratio),
 * gpu__compute_memory_throughput. The value of a metric is that of the kernel: the threads of its launch times 4, 1, 1, or a
 * constant; of a range that is pushed and popped, those of all its kernels. All take one pass together, a form with "per_second" one more, and a throughput four more.
 *
 * STANDIN_FAULT: no_privileges (35 when a context is enabled), old_device (not supported), many_passes (300), lost_ranges
 * (the first kernel or range of a reading has no values), bad_decode (999), no_push (7 when a range is pushed). Before version 12.6 the interface is not there: that is
 * decided when it is compiled, by WITHOUT_PROFILER. */
#define PARAMS(name, ...) struct name { size_t size; void *private; __VA_ARGS__ }
static int fits(const void *params, size_t size) { return *(const size_t *)params == size; }
/* The size of a structure without the padding behind its last member. */
#define FITS(params, last) fits(params, (size_t)((const char *)&(params)->last - (const char *)(params)) + sizeof (params)->last)

PARAMS(initialize, ;);
int cuptiProfilerInitialize(struct initialize *params) { return fits(params, 16) ? 0 : 1; }

PARAMS(supported, int device; int supported, architecture, others[5], api;);
int cuptiProfilerDeviceSupported(struct supported *params) {
    if (!FITS(params, api)) return 1;
    params->supported = params->architecture = fault("old_device") ? 1 : 3;
    for (int i = 0; i < 5; i++) params->others[i] = 3;
    return 0;
}

PARAMS(chip_name, size_t device; const char *name;);
int cuptiDeviceGetChipName(struct chip_name *params) {
    if (!FITS(params, name)) return 1;
    return params->name = "GH100", 0;
}

/* Some are of one configuration of the hardware, which stands before their names; of these one is listed without it, too. All
 * functions want a metric as it is listed, with its form. */
static const char *const metric_names[3][5] = {
    {"SM_A.TriageCompute.smsp__inst_executed", "FBSP.TriageCompute.dramc__cycles", "dram__bytes_read", "smsp__inst_executed",
     "sm__threads_launched"},
    {"l1tex__hit_rate"},
    {"gpu__compute_memory_throughput"},
};
static const size_t name_counts[] = {5, 1, 1};
static const char *const forms[3][3] = {
    {".sum", ".sum.per_second", ".avg"},
    {".pct", ".ratio"},
    {".avg.pct_of_peak_sustained_elapsed"},
};
static const size_t form_counts[] = {3, 2, 1};

struct host {
    char names[16][64];
    size_t count;
};

PARAMS(host_initialize, int profiler; const char *chip; const void *availability; struct host *host;);
int cuptiProfilerHostInitialize(struct host_initialize *params) {
    if (!FITS(params, host) || params->profiler || strcmp(params->chip, "GH100")) return 1;
    return params->host = calloc(1, sizeof *params->host), 0;
}
PARAMS(host_end, struct host *host;);
int cuptiProfilerHostDeinitialize(struct host_end *params) { return FITS(params, host) ? free(params->host), 0 : 1; }

PARAMS(base, struct host *host; int kind; const char *const *names; size_t count;);
int cuptiProfilerHostGetBaseMetrics(struct base *params) {
    if (!FITS(params, count)) return 1;
    params->names = metric_names[params->kind];
    return params->count = name_counts[params->kind], 0;
}
/* Whether it is a metric with a form of its kind. */
static int is_metric(const char *name) {
    for (int kind = 0; kind < 3; kind++) {
        for (size_t i = 0; i < name_counts[kind]; i++) {
            const char *base = metric_names[kind][i];
            size_t length = strlen(base);
            for (size_t form = 0; form < form_counts[kind]; form++)
                if (!strncmp(name, base, length) && !strcmp(name + length, forms[kind][form])) return 1;
        }
    }
    return 0;
}
PARAMS(sub, struct host *host; int kind; const char *metric; size_t count; const char *const *names;);
int cuptiProfilerHostGetSubMetrics(struct sub *params) {
    if (!FITS(params, names)) return 1;
    if (!is_metric(params->metric)) return 17;
    params->names = forms[params->kind];
    return params->count = form_counts[params->kind], 0;
}
PARAMS(properties, struct host *host; const char *metric, *description, *hardware, *unit; int kind;);
int cuptiProfilerHostGetMetricProperties(struct properties *params) {
    if (!FITS(params, kind)) return 1;
    if (!is_metric(params->metric)) return 17;
    params->description = "of the stand-in";
    params->hardware = !strncmp(params->metric, "dram", 4) ? "dram" : !strncmp(params->metric, "smsp", 4) ? "smsp" : "l1tex";
    params->unit = !strncmp(params->metric, "dram", 4) ? "byte" : "";
    return 0;
}
PARAMS(add, struct host *host; const char *const *names; size_t count;);
int cuptiProfilerHostConfigAddMetrics(struct add *params) {
    if (!FITS(params, count) || params->host->count + params->count > 16) return 1;
    for (size_t i = 0; i < params->count; i++)
        if (!is_metric(params->names[i])) return 1;
    for (size_t i = 0; i < params->count; i++) strncpy(params->host->names[params->host->count++], params->names[i], 63);
    return 0;
}
/* A configuration is the number of its passes. */
PARAMS(config_size, struct host *host; size_t bytes;);
int cuptiProfilerHostGetConfigImageSize(struct config_size *params) { return FITS(params, bytes) ? params->bytes = 8, 0 : 1; }
PARAMS(config, struct host *host; size_t bytes; uint64_t *image;);
int cuptiProfilerHostGetConfigImage(struct config *params) {
    if (!FITS(params, image) || params->bytes != 8) return 1;
    *params->image = fault("many_passes") ? 300 : 1;
    for (size_t i = 0; i < params->host->count; i++) {
        const char *name = params->host->names[i];
        *params->image += strstr(name, "per_second") ? 1 : strstr(name, "throughput") ? 4 : 0;
    }
    return 0;
}
PARAMS(passes, size_t bytes; const uint64_t *image; size_t passes;);
int cuptiProfilerHostGetNumOfPasses(struct passes *params) {
    if (!FITS(params, passes) || params->bytes != 8) return 1;
    return params->passes = *params->image, 0;
}

/* The image of counted ranges: their number, and the threads of each kernel. */
struct image {
    uint64_t initialized, count, threads[];
};
static struct profiler {
    uintptr_t context;
    struct image *image;
    size_t most, passes;
    int configured, started, user, pushed;
    uint64_t count, threads[1024];
} profilers[16];

static double value_of(const char *name, uint64_t threads) {
    double value = !strncmp(name, "dram", 4) ? 4.0 * (double)threads : !strncmp(name, "sm", 2) ? (double)threads : 62.5;
    return strstr(name, "per_second") ? value * 1000.0 : value;
}
PARAMS(evaluate, struct host *host; const struct image *image; size_t bytes, range; const char *const *names; size_t count; double *values;);
int cuptiProfilerHostEvaluateToGpuValues(struct evaluate *params) {
    if (!FITS(params, values) || params->range >= params->image->count) return 1;
    for (size_t i = 0; i < params->count; i++) params->values[i] = value_of(params->names[i], params->image->threads[params->range]);
    return 0;
}

PARAMS(enable, uintptr_t context; struct profiler *profiler;);
int cuptiRangeProfilerEnable(struct enable *params) {
    in_turn();
    if (!FITS(params, profiler)) return 1;
    if (fault("no_privileges")) return 35;
    for (int i = 0; i < 16; i++)
        if (profilers[i].context == params->context) return 7;
    for (int i = 0; i < 16; i++)
        if (!profilers[i].context) return profilers[i].context = params->context, params->profiler = &profilers[i], 0;
    return 8;
}
PARAMS(of_profiler, struct profiler *profiler;);
int cuptiRangeProfilerDisable(struct of_profiler *params) {
    if (!FITS(params, profiler) || params->profiler->started) return 1;
    return memset(params->profiler, 0, sizeof *params->profiler), 0;
}
PARAMS(data_size, struct profiler *profiler; const char *const *names; size_t count, most; uint32_t nodes; size_t bytes;);
int cuptiRangeProfilerGetCounterDataSize(struct data_size *params) {
    if (!FITS(params, bytes) || params->nodes < params->most) return 1;
    return params->bytes = sizeof(struct image) + 8 * params->most, 0;
}
PARAMS(new_data, struct profiler *profiler; size_t bytes; struct image *image;);
int cuptiRangeProfilerCounterDataImageInitialize(struct new_data *params) {
    if (!FITS(params, image)) return 1;
    memset(params->image, 0, params->bytes);
    return params->image->initialized = 1, 0;
}
PARAMS(set_config, struct profiler *profiler; size_t config_size; const uint64_t *config; size_t bytes; struct image *image;
       int range, replay; size_t most; uint16_t levels, first_level; size_t pass; uint16_t target;);
int cuptiRangeProfilerSetConfig(struct set_config *params) {
    struct profiler *one = params->profiler;
    int user = params->range == 2 && params->replay == 3;
    if (!FITS(params, target) || params->config_size != 8 || !params->image->initialized ||
        (!user && (params->range != 1 || params->replay != 2)) || params->levels != 1 || params->first_level != 1 ||
        params->bytes < sizeof(struct image) + 8 * params->most)
        return 1;
    /* Nothing runs again by itself. */
    if (user && *params->config != 1) return 1;
    one->user = user;
    one->image = params->image;
    one->most = params->most;
    one->passes = *params->config;
    return one->configured = 1, 0;
}
int cuptiRangeProfilerStart(struct of_profiler *params) {
    struct profiler *one = params->profiler;
    if (!FITS(params, profiler) || !one->configured || one->started) return 7;
    one->count = one->pushed = 0;
    return one->started = 1, 0;
}
PARAMS(push, struct profiler *profiler; const char *name;);
int cuptiRangeProfilerPushRange(struct push *params) {
    struct profiler *one = params->profiler;
    if (!FITS(params, name) || !params->name || !*params->name) return 1;
    /* One level, and as many ranges as the image has room for. */
    if (!one->user || !one->started || one->pushed || one->count >= one->most || fault("no_push")) return 7;
    one->threads[one->count++] = 0;
    return one->pushed = 1, 0;
}
int cuptiRangeProfilerPopRange(struct of_profiler *params) {
    struct profiler *one = params->profiler;
    if (!FITS(params, profiler) || !one->started || !one->pushed) return 7;
    return one->pushed = 0;
}
PARAMS(stop, struct profiler *profiler; size_t pass, level; uint8_t complete;);
int cuptiRangeProfilerStop(struct stop *params) {
    if (!FITS(params, complete) || !params->profiler->started || params->profiler->pushed) return 7;
    params->profiler->started = 0;
    return params->complete = 1, 0;
}
PARAMS(decode, struct profiler *profiler; size_t dropped;);
int cuptiRangeProfilerDecodeData(struct decode *params) {
    struct profiler *one = params->profiler;
    if (!FITS(params, dropped) || one->started) return 7;
    if (fault("bad_decode")) return 999;
    uint64_t lost = fault("lost_ranges") && one->count > 0;
    one->image->count = one->count - lost;
    memcpy(one->image->threads, one->threads + lost, 8 * one->image->count);
    return params->dropped = 0, 0;
}
PARAMS(data_info, const struct image *image; size_t bytes, ranges;);
int cuptiRangeProfilerGetCounterDataInfo(struct data_info *params) {
    if (!FITS(params, ranges)) return 1;
    return params->ranges = params->image->count, 0;
}

/* A kernel of a context whose profiler is started has run. */
/* Returns whether the kernel is counted by itself: the real library has no times of such a one. */
static int profile(uintptr_t context, const struct standin_work *work) {
    int counted = 0;
    if (work->kind != WORK_KERNEL) return 0;
    for (int i = 0; i < 16; i++) {
        struct profiler *one = &profilers[i];
        if (one->context != context || !one->started || (one->user && !one->pushed)) continue;
        if (!one->user && one->count >= one->most) abort();
        if (!one->user) one->threads[one->count++] = 0;
        one->threads[one->count - 1] += (uint64_t)work->grid[0] * work->grid[1] * work->grid[2] * work->block[0] * work->block[1] * work->block[2];
        counted |= !one->user;
    }
    return counted;
}
