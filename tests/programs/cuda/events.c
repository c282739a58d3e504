/* The Event and Metric APIs of the stand-in of libcupti, by our own declarations: libcupti.c includes it.
 *
 * A device has two domains. `domain_sm` has 4 instances of which 2 are read, and the events warps_launched and inst_executed: the
 * warps of a launch and three times as many, in equal parts. `domain_l2` has 3 instances of which one is read, and the
 * event l2_reads: twice the threads. Metrics: inst_per_warp (a double: 3), sm_percent (33.3), sm_level (a level: 5) and
 * l2_read_throughput (32 bytes for each read of all instances). The two domains are not counted at the same time.
 *
 * From version 13 on the functions are not supported. STANDIN_FAULT: no_group (a group is not enabled), no_sets (no groups for
 * events), overflow (of inst_executed), invalid_event (of l2_reads), no_events (none is told). */
#define ALL_INSTANCES(domain) ((domain) == 1 ? 4u : 3u)
#define INSTANCES(domain) ((domain) == 1 ? 2u : 1u)

static const struct { uint32_t id, domain; const char *name, *description; } events[] = {
    {10, 1, "warps_launched", "Warps that were launched"},
    {11, 1, "inst_executed", "Instructions that were executed"},
    {20, 2, "l2_reads", "Reads of the second cache"},
};
static const struct { uint32_t id, kind, count, events[2]; const char *name, *description; } event_metrics[] = {
    {100, 0, 2, {10, 11}, "inst_per_warp", "Instructions of a warp"},
    {101, 3, 1, {20}, "l2_read_throughput", "Bytes that were read in a second"},
    {102, 2, 2, {10, 11}, "sm_percent", "Share of instructions"},
    {103, 5, 1, {10}, "sm_level", "Utilization, from 0 to 10"},
};
#define COUNT(list) (sizeof(list) / sizeof *(list))

/* The group of a domain. */
struct group {
    uint32_t domain, count, ids[4];
    int all, enabled;
    uint64_t threads;
};
struct group_set { uint32_t count; struct group **groups; };
struct group_sets { uint32_t count; struct group_set *sets; };
static struct group *live[64];
static int replays, kernel_mode;

static int unsupported(void) { return in_turn(), version() >= 1300 ? 27 : 0; }
static int text_to(const char *text, size_t *bytes, void *value) {
    if (strlen(text) + 1 > *bytes) return 10;
    return strcpy(value, text), *bytes = strlen(text) + 1, 0;
}
static int number_to(uint32_t number, size_t *bytes, void *value) {
    if (*bytes < 4) return 10;
    return *(uint32_t *)value = number, *bytes = 4, 0;
}
static int known_device(int device) { return device >= 0 && device < 16; }

int cuptiDeviceGetNumEventDomains(int device, uint32_t *count) {
    if (unsupported()) return 27;
    return known_device(device) ? *count = fault("no_events") ? 0 : 2, 0 : 2;
}
int cuptiDeviceEnumEventDomains(int device, size_t *bytes, uint32_t *list) {
    if (!known_device(device) || *bytes < 8) return 2;
    return list[0] = 1, list[1] = 2, *bytes = 8, 0;
}
int cuptiDeviceGetEventDomainAttribute(int device, uint32_t domain, uint32_t attribute, size_t *bytes, void *value) {
    if (!known_device(device) || domain < 1 || domain > 2) return 4;
    if (attribute == 0) return text_to(domain == 1 ? "domain_sm" : "domain_l2", bytes, value);
    return attribute == 3 ? number_to(ALL_INSTANCES(domain), bytes, value) : 1;
}
int cuptiEventDomainGetNumEvents(uint32_t domain, uint32_t *count) { return *count = domain == 1 ? 2 : 1, 0; }
int cuptiEventDomainEnumEvents(uint32_t domain, size_t *bytes, uint32_t *list) {
    size_t count = 0;
    for (size_t i = 0; i < COUNT(events); i++)
        if (events[i].domain == domain && 4 * count + 4 <= *bytes) list[count++] = events[i].id;
    return *bytes = 4 * count, 0;
}
int cuptiEventGetAttribute(uint32_t event, uint32_t attribute, size_t *bytes, void *value) {
    for (size_t i = 0; i < COUNT(events); i++)
        if (events[i].id == event)
            return attribute == 0 ? text_to(events[i].name, bytes, value) : attribute == 2 ? text_to(events[i].description, bytes, value) : 1;
    return 5;
}
int cuptiDeviceGetNumMetrics(int device, uint32_t *count) { return known_device(device) ? *count = fault("no_events") ? 0 : 4, 0 : 2; }
int cuptiDeviceEnumMetrics(int device, size_t *bytes, uint32_t *list) {
    if (!known_device(device) || *bytes < 4 * COUNT(event_metrics)) return 2;
    for (size_t i = 0; i < COUNT(event_metrics); i++) list[i] = event_metrics[i].id;
    return *bytes = 4 * COUNT(event_metrics), 0;
}
#define METRIC(number) ((number) >= 100 && (number) < 100 + COUNT(event_metrics) ? &event_metrics[(number) - 100] : NULL)
int cuptiMetricGetAttribute(uint32_t metric, uint32_t attribute, size_t *bytes, void *value) {
    if (!METRIC(metric)) return 16;
    if (attribute == 4) return number_to(METRIC(metric)->kind, bytes, value);
    if (attribute == 0) return text_to(METRIC(metric)->name, bytes, value);
    return attribute == 2 ? text_to(METRIC(metric)->description, bytes, value) : 1;
}
int cuptiMetricGetNumEvents(uint32_t metric, uint32_t *count) { return METRIC(metric) ? *count = METRIC(metric)->count, 0 : 16; }
int cuptiMetricEnumEvents(uint32_t metric, size_t *bytes, uint32_t *list) {
    if (!METRIC(metric) || *bytes < 4 * METRIC(metric)->count) return 16;
    memcpy(list, METRIC(metric)->events, 4 * METRIC(metric)->count);
    return *bytes = 4 * METRIC(metric)->count, 0;
}
/* The values are in the order of `list`, of all instances. */
int cuptiMetricGetValue(int device, uint32_t metric, size_t id_bytes, const uint32_t *list, size_t value_bytes, const uint64_t *values,
                        uint64_t duration, void *value) {
    if (!known_device(device) || !METRIC(metric) || id_bytes / 4 != METRIC(metric)->count || value_bytes / 8 != METRIC(metric)->count) return 10;
    if (memcmp(list, METRIC(metric)->events, id_bytes)) return 10;
    double number = 0;
    switch (metric) {
    case 100: number = (double)values[1] / (double)values[0]; break;
    case 101:
        if (!duration) return 25;
        return *(uint64_t *)value = values[0] * 32 * 1000000000 / duration, 0;
    case 102: number = 100.0 * (double)values[0] / (double)values[1]; break;
    case 103: return *(uint32_t *)value = 5, 0;
    }
    return memcpy(value, &number, 8), 0;
}

static struct group_sets *sets_of(const uint32_t *ids, size_t count) {
    struct group_sets *all = calloc(1, sizeof *all);
    all->sets = calloc(2, sizeof *all->sets);
    for (uint32_t domain = 1; domain <= 2; domain++) {
        struct group *group = calloc(1, sizeof *group);
        group->domain = domain;
        for (size_t i = 0; i < COUNT(events); i++)
            for (size_t at = 0; at < count; at++)
                if (events[i].domain == domain && events[i].id == ids[at]) {
                    group->ids[group->count++] = ids[at];
                    break;
                }
        if (!group->count) {
            free(group);
            continue;
        }
        struct group_set *set = &all->sets[all->count++];
        set->count = 1;
        set->groups = calloc(1, sizeof *set->groups);
        set->groups[0] = group;
        for (int i = 0; i < 64; i++)
            if (!live[i]) { live[i] = group; break; }
    }
    return all;
}
int cuptiEventGroupSetsCreate(uintptr_t context, size_t bytes, uint32_t *ids, struct group_sets **sets) {
    in_turn();
    if (fault("no_privileges")) return 35;
    if (!context || fault("no_sets")) return 3;
    return *sets = sets_of(ids, bytes / 4), 0;
}
int cuptiMetricCreateEventGroupSets(uintptr_t context, size_t bytes, uint32_t *ids, struct group_sets **sets) {
    uint32_t wanted[16];
    size_t count = 0;
    for (size_t i = 0; i < bytes / 4; i++) {
        if (!METRIC(ids[i])) return 16;
        for (size_t at = 0; at < METRIC(ids[i])->count; at++) wanted[count++] = METRIC(ids[i])->events[at];
    }
    return cuptiEventGroupSetsCreate(context, 4 * count, wanted, sets);
}
int cuptiEventGroupSetsDestroy(struct group_sets *sets) {
    for (uint32_t i = 0; i < sets->count; i++) {
        for (int at = 0; at < 64; at++)
            if (live[at] == sets->sets[i].groups[0]) live[at] = NULL;
        free(sets->sets[i].groups[0]);
        free(sets->sets[i].groups);
    }
    return free(sets->sets), free(sets), 0;
}
int cuptiEventGroupSetAttribute(struct group *group, uint32_t attribute, size_t bytes, void *value) {
    if (attribute != 1 || bytes != 4) return 1;
    return group->all = *(int *)value, 0;
}
int cuptiEventGroupGetAttribute(struct group *group, uint32_t attribute, size_t *bytes, void *value) {
    switch (attribute) {
    case 0: return number_to(group->domain, bytes, value);
    case 3: return number_to(group->count, bytes, value);
    case 5: return number_to(group->all ? INSTANCES(group->domain) : 1, bytes, value);
    }
    return 1;
}
int cuptiSetEventCollectionMode(uintptr_t context, uint32_t mode) {
    if (!context || replays) return 7;
    return kernel_mode = mode == 1, 0;
}
int cuptiEnableKernelReplayMode(uintptr_t context) { return context ? replays = 1, 0 : 3; }
int cuptiDisableKernelReplayMode(uintptr_t context) { return context ? replays = 0 : 3; }
int cuptiEventGroupEnable(struct group *group) {
    if (fault("no_group")) return 26;
    if (!kernel_mode && !replays) return 7;
    for (int i = 0; i < 64; i++)
        if (live[i] && live[i] != group && live[i]->enabled && live[i]->domain != group->domain && !replays) return 26;
    return group->enabled = 1, group->threads = 0;
}
int cuptiEventGroupDisable(struct group *group) { return group->enabled ? group->enabled = 0 : 7; }
int cuptiEventGroupReadAllEvents(struct group *group, uint32_t flags, size_t *value_bytes, uint64_t *values, size_t *id_bytes,
                                 uint32_t *ids, size_t *read) {
    size_t instances = group->all ? INSTANCES(group->domain) : 1;
    if (flags || !group->enabled) return 7;
    if (*value_bytes < 8 * instances * group->count || *id_bytes < 4 * group->count) return 10;
    for (size_t instance = 0; instance < instances; instance++)
        for (size_t i = 0; i < group->count; i++) {
            uint64_t value = group->ids[i] == 10 ? group->threads / 128 : group->ids[i] == 11 ? group->threads / 128 * 3 : 2 * group->threads;
            if (group->ids[i] == 11 && instance == 1 && fault("overflow")) value = UINT64_MAX;
            if (group->ids[i] == 20 && fault("invalid_event")) value = UINT64_MAX - 1;
            values[instance * group->count + i] = value;
        }
    memcpy(ids, group->ids, 4 * group->count);
    *value_bytes = 8 * instances * group->count;
    *id_bytes = 4 * group->count;
    *read = group->count;
    return group->threads = 0;
}

/* A kernel has run, whose events the enabled groups count. */
static void count_events(const struct standin_work *work) {
    if (work->kind != WORK_KERNEL) return;
    for (int i = 0; i < 64; i++)
        if (live[i] && live[i]->enabled)
            live[i]->threads += (uint64_t)work->grid[0] * work->grid[1] * work->grid[2] * work->block[0] * work->block[1] * work->block[2];
}
