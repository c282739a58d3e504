/* Counters of the stand-in of rocprofiler-sdk: values follow from the work-items of a dispatch. See sdk.c.
 *
 *     SQ_WAVES     at engine e of chiplet x: (x + 1) (e + 1) times the work-items (2 chiplets, 4 engines)
 *     TCC_HIT      at instance i: (i + 1) times the work-items (16 instances)
 *     GRBM_COUNT   twice the work-items
 *     GRBM_GUI_ACTIVE   as GRBM_COUNT
 *     MeanHits     TCC_HIT's sum divided by 16, by an expression
 *     CU_NUM       304, a property
 *
 * Two of the hardware's fit at once. STANDIN_FAULT: no_hardware (status 35), no_counting (40: no privileges), no_values (of
 * dispatches). An agent's values add up from the start of the context. */
#include "sdk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNTERS_COUNT = 6, XCC = 1, SHADER_ENGINE = 3, INSTANCE = 7, DEVICE_LIMIT = 2 };
static const struct counter {
    const char *name, *description, *block, *expression;
    int constant, dimensions[2], sizes[2];
} counters[COUNTERS_COUNT + 1] = {
    {0},
    {"SQ_WAVES", "Waves that were sent to the shaders.", "SQ", "", 0, {XCC, SHADER_ENGINE}, {2, 4}},
    {"TCC_HIT", "Hits in the L2 cache.", "TCC", "", 0, {INSTANCE}, {16}},
    {"GRBM_COUNT", "Cycles.", "GRBM", "", 0, {INSTANCE}, {1}},
    {"GRBM_GUI_ACTIVE", "Cycles in which the GPU worked.", "GRBM", "", 0, {INSTANCE}, {1}},
    {"MeanHits", "Hits in the L2 cache of an instance.", "", "reduce(TCC_HIT,sum)/16", 0, {INSTANCE}, {1}},
    {"CU_NUM", "Compute units.", "", "", 1, {INSTANCE}, {1}},
};

/* The number of instances. */
static int instances(int counter) {
    int count = counters[counter].sizes[0];
    return counters[counter].sizes[1] ? count * counters[counter].sizes[1] : count;
}
static double value(int counter, int instance, double items) {
    switch (counter) {
    case 1: return (instance % 2 + 1) * (instance / 2 + 1) * items;
    case 2: return (instance + 1) * items;
    case 5: return 136 * items / 16;
    case 6: return 304;
    default: return 2 * items;
    }
}
/* The id of a value: the counter above 48 bits, the positions in the dimensions below, 6 bits each by the dimension's number. */
static uint64_t instance_id(int counter, int instance) {
    const struct counter *of = &counters[counter];
    uint64_t id = (uint64_t)counter << 48 | (uint64_t)(instance % of->sizes[0]) << 6 * of->dimensions[0];
    return of->sizes[1] ? id | (uint64_t)(instance / of->sizes[0]) << 6 * of->dimensions[1] : id;
}
static int is_counter(uint64_t id) { return id >= 1 && id <= COUNTERS_COUNT; }

int rocprofiler_iterate_agent_supported_counters(uint64_t agent, int (*callback)(uint64_t, uint64_t *, size_t, void *), void *data) {
    uint64_t ids[COUNTERS_COUNT];
    if (agent == CPU_AGENT) return AGENT_ARCH_NOT_SUPPORTED;
    if (!sdk_is_gpu(agent)) return AGENT_NOT_FOUND;
    if (sdk_fault("no_hardware")) return NO_HARDWARE_COUNTERS;
    for (uint64_t i = 0; i < COUNTERS_COUNT; i++) ids[i] = i + 1;
    return callback(agent, ids, COUNTERS_COUNT, data);
}

struct dimension { const char *name; size_t size; uint64_t id; };
static size_t dimensions(int counter, struct dimension *all) {
    size_t count = 0;
    for (int i = 0; i < 2 && counters[counter].sizes[i]; i++) {
        int id = counters[counter].dimensions[i];
        const char *name = id == XCC ? "DIMENSION_XCC" : id == INSTANCE ? "DIMENSION_INSTANCE" : "DIMENSION_SHADER_ENGINE";
        all[count++] = (struct dimension){name, (size_t)counters[counter].sizes[i], (uint64_t)id};
    }
    return count;
}

struct info_0 { uint64_t id; const char *name, *description, *block, *expression; uint8_t flags; };
struct position { uint64_t size; const char *name; size_t index; };
struct instance { uint64_t size, id, counter, count; const struct position **positions; };
struct info_1 {
    uint64_t size, id;
    const char *name, *description, *block, *expression;
    uint8_t flags;
    uint64_t dimension_count;
    const struct dimension **dimensions;
    uint64_t instance_count;
    const struct instance **instances;
#if VERSION >= 10300
    uint8_t spm, reserved[7];
#endif
};

static uint8_t flags(uint64_t id) { return (uint8_t)(counters[id].constant | (*counters[id].expression ? 2 : 0)); }

int rocprofiler_query_counter_info(uint64_t id, int version, void *info) {
    if (!is_counter(id)) return COUNTER_NOT_FOUND;
    const struct counter *of = &counters[id];
    if (version == 1) {
        *(struct info_0 *)info = (struct info_0){id, of->name, of->description, of->block, of->expression, flags(id)};
        return SUCCESS;
    }
    if (BEFORE_1_0 || version != 2) return INCOMPATIBLE_ABI;
    struct info_1 *one = info;
    *one = (struct info_1){.size = sizeof *one, .id = id, .name = of->name, .description = of->description, .block = of->block,
                           .expression = of->expression, .flags = flags(id)};
    struct dimension *all = calloc(2, sizeof *all);
    one->dimension_count = dimensions((int)id, all);
    one->dimensions = calloc(2, sizeof *one->dimensions);
    for (uint64_t i = 0; i < one->dimension_count; i++) one->dimensions[i] = &all[i];
    one->instance_count = (uint64_t)instances((int)id);
    one->instances = calloc(one->instance_count, sizeof *one->instances);
    for (uint64_t i = 0; i < one->instance_count; i++) {
        struct instance *instance = calloc(1, sizeof *instance);
        struct position *positions = calloc(2, sizeof *positions);
        *instance = (struct instance){sizeof *instance, instance_id((int)id, (int)i), id, one->dimension_count, calloc(2, sizeof(void *))};
        for (uint64_t at = 0; at < one->dimension_count; at++) {
            uint64_t index = at ? i / (uint64_t)of->sizes[0] : i % (uint64_t)of->sizes[0];
            positions[at] = (struct position){sizeof *positions, all[at].name, index};
            instance->positions[at] = &positions[at];
        }
        one->instances[i] = instance;
    }
    return SUCCESS;
}

int rocprofiler_iterate_counter_dimensions(uint64_t id, int (*callback)(uint64_t, const struct dimension *, size_t, void *), void *data) {
    struct dimension all[2];
    if (!is_counter(id)) return COUNTER_NOT_FOUND;
    size_t count = dimensions((int)id, all);
    callback(id, all, count, data);
    return SUCCESS;
}

int rocprofiler_query_counter_instance_count(uint64_t agent, uint64_t id, size_t *count) {
    *count = 0;
    if (!sdk_is_gpu(agent)) return AGENT_NOT_FOUND;
    if (!is_counter(id)) return COUNTER_NOT_FOUND;
    *count = (size_t)instances((int)id);
    return SUCCESS;
}

int rocprofiler_query_record_counter_id(uint64_t instance, uint64_t *id) { return *id = instance >> 48, SUCCESS; }
int rocprofiler_query_record_dimension_position(uint64_t instance, uint64_t dimension, size_t *position) {
    return *position = instance >> 6 * dimension & 63, SUCCESS;
}

#if !BEFORE_1_0
int rocprofiler_create_counter(const char *name, size_t length, const char *expression, size_t expression_length, const char *description,
                               size_t description_length, uint64_t agent, uint64_t *id) {
    (void)name, (void)length, (void)expression, (void)expression_length, (void)description, (void)description_length, (void)agent, (void)id;
    return NOT_IMPLEMENTED;
}
#endif

/* Sets of counters: bit N of a set is counter N. Set number N has the id N. */
static uint32_t sets[64];
static uint64_t set_count = 1;

int rocprofiler_create_profile_config(uint64_t agent, uint64_t *ids, size_t count, uint64_t *set) {
    uint32_t chosen = *set < set_count ? sets[*set] : 0;
    if (!sdk_is_gpu(agent)) return AGENT_NOT_FOUND;
    if (sdk_fault("no_hardware")) return NO_HARDWARE_COUNTERS;
    if (sdk_fault("no_counting")) return PERMISSION_DENIED;
    for (size_t i = 0; i < count; i++) {
        if (!is_counter(ids[i])) return COUNTER_NOT_FOUND;
        chosen |= 1u << ids[i];
    }
    /* MeanHits needs TCC_HIT. */
    uint32_t hardware = (chosen | (chosen >> 5 & 1) << 2) & 0x1e;
    if (__builtin_popcount(hardware) > DEVICE_LIMIT) return EXCEEDS_HW_LIMIT;
    if (set_count == 64) return OUT_OF_RESOURCES;
    sets[*set = set_count++] = chosen;
    return SUCCESS;
}
int rocprofiler_destroy_profile_config(uint64_t set) { return set < set_count ? SUCCESS : PROFILE_COUNTER_NOT_FOUND; }
#if !BEFORE_1_0
int rocprofiler_create_counter_config(uint64_t agent, uint64_t *ids, size_t count, uint64_t *set) {
    return rocprofiler_create_profile_config(agent, ids, count, set);
}
int rocprofiler_destroy_counter_config(uint64_t set) { return rocprofiler_destroy_profile_config(set); }
#define BUFFERED rocprofiler_configure_buffer_dispatch_counting_service
#else
#define BUFFERED rocprofiler_configure_buffered_dispatch_counting_service
#endif

/* A dispatch, as its callbacks are given it. */
struct counted { uint64_t size; struct async_correlation correlation; uint64_t start, end; struct dispatch_info info; };
struct counted_header { uint64_t size, records; struct async_correlation correlation; uint64_t start, end; struct dispatch_info info; };
struct counter_value { uint64_t id; double value; uint64_t dispatch, word, agent; };
typedef void choose_function(struct counted, uint64_t *, uint64_t *, void *);
typedef void take_function(struct counted, struct counter_value *, size_t, uint64_t, void *);
typedef void choose_of_device(uint64_t, uint64_t, int (*)(uint64_t, uint64_t), void *);

static int configure(uint64_t id, struct counting counting) {
    struct context *context = sdk_context(id);
    if (sdk_initialized > -1) return CONFIGURATION_LOCKED;
    if (!context) return CONTEXT_NOT_FOUND;
    if (context->counts) return SERVICE_ALREADY_CONFIGURED;
    if (context->sampled_agents) return CONTEXT_CONFLICT;
    context->counting = counting;
    context->counts = 1;
    sdk_log("counting %s", counting.of_device ? "device" : "dispatches");
    return SUCCESS;
}

int BUFFERED(uint64_t id, uint64_t buffer, choose_function *choose, void *data) {
    if (!sdk_is_buffer(buffer)) return BUFFER_NOT_FOUND;
    return configure(id, (struct counting){.choose = (void *)choose, .choose_data = data, .buffer = buffer});
}
int rocprofiler_configure_callback_dispatch_counting_service(uint64_t id, choose_function *choose, void *choose_data, take_function *take,
                                                             void *take_data) {
    return configure(id, (struct counting){.choose = (void *)choose, .choose_data = choose_data, .take = (void *)take, .take_data = take_data});
}
int rocprofiler_configure_device_counting_service(uint64_t id, uint64_t buffer, uint64_t agent, choose_of_device *choose, void *data) {
    if (!sdk_is_gpu(agent)) return AGENT_NOT_FOUND;
    return configure(id, (struct counting){.choose = (void *)choose, .choose_data = data, .buffer = buffer, .agent = agent, .of_device = 1});
}

/* Work-items of dispatches since a device's context was started, and whether HSA is there. */
static double items_since[MOST_CONTEXTS];
static int hsa;

static int set_of_device(uint64_t id, uint64_t set) {
    struct context *context = sdk_context(id);
    if (!context || !context->counting.of_device) return CONTEXT_NOT_FOUND;
    if (!set || set >= set_count) return PROFILE_COUNTER_NOT_FOUND;
    context->counting.chosen = set;
    return SUCCESS;
}

static void begin_of_device(uint64_t id) {
    struct counting *counting = &sdk_contexts[id].counting;
    items_since[id] = 0;
    ((choose_of_device *)counting->choose)(id, counting->agent, set_of_device, counting->choose_data);
}

/* One context counts dispatches at a time. Before HSA is there, a device's context waits for it. */
int sdk_may_start(uint64_t id) {
    struct context *context = sdk_context(id);
    if (!context->counts) return SUCCESS;
    for (int i = 1; i < sdk_context_count; i++)
        if (&sdk_contexts[i] != context && sdk_contexts[i].active && sdk_contexts[i].counts
            && sdk_contexts[i].counting.of_device == context->counting.of_device
            && sdk_contexts[i].counting.agent == context->counting.agent)
            return context->counting.of_device ? AGENT_DISPATCH_CONFLICT : CONTEXT_CONFLICT;
    if (context->counting.of_device && hsa) begin_of_device(id);
    return SUCCESS;
}

void sdk_hsa_is_there(void) {
    hsa = 1;
    for (int i = 1; i < sdk_context_count; i++)
        if (sdk_contexts[i].active && sdk_contexts[i].counting.of_device) begin_of_device((uint64_t)i);
}

/* The values of a set of counters. */
static size_t values(uint64_t set, double items, uint64_t dispatch, uint64_t word, uint64_t agent, struct counter_value *found) {
    size_t count = 0;
    for (int counter = 1; counter <= COUNTERS_COUNT; counter++)
        for (int i = 0; sets[set] >> counter & 1 && i < instances(counter); i++)
            found[count++] = (struct counter_value){instance_id(counter, i), value(counter, i, items), dispatch, word, agent};
    return count;
}

void sdk_choose(struct flight *flight) {
    for (int i = 1; i < sdk_context_count; i++) {
        const struct counting *counting = &sdk_contexts[i].counting;
        if (!sdk_contexts[i].active || !sdk_contexts[i].counts || counting->of_device) continue;
        const struct counted counted = {sizeof counted, {flight->internal, flight->external[i]}, 0, 0, flight->info};
        ((choose_function *)counting->choose)(counted, &flight->chosen[i], &flight->counted[i], counting->choose_data);
    }
}

void sdk_count(const struct dispatch *dispatch, const struct flight *flight) {
    double items = (double)dispatch->grid.x * dispatch->grid.y * dispatch->grid.z;
    for (int i = 1; i < sdk_context_count; i++) {
        const struct counting *counting = &sdk_contexts[i].counting;
        struct counter_value found[64];
        if (counting->of_device) items_since[i] += items;
        uint64_t set = flight->chosen[i];
        if (!set || set >= set_count || sdk_fault("no_values")) continue;
        size_t count = values(set, items, dispatch->id, flight->counted[i], flight->info.agent, found);
        const struct async_correlation correlation = {flight->internal, flight->external[i]};
        if (counting->take) {
            const struct counted counted = {sizeof counted, correlation, dispatch->start, dispatch->end, flight->info};
            ((take_function *)counting->take)(counted, found, count, flight->counted[i], counting->take_data);
        } else {
            const struct counted_header header = {sizeof header, count, correlation, dispatch->start, dispatch->end, flight->info};
            sdk_put(counting->buffer, COUNTERS, 1, &header, sizeof header);
            for (size_t one = 0; one < count; one++) sdk_put(counting->buffer, COUNTERS, 2, &found[one], sizeof *found);
        }
        sdk_log("counted %s %lu %zu", dispatch->kernel->name, dispatch->id, count);
    }
}

int rocprofiler_sample_device_counting_service(uint64_t id, uint64_t word, int how, struct counter_value *records, size_t *room) {
    struct context *context = sdk_context(id);
    struct counter_value found[64];
    if (!context) return CONTEXT_NOT_FOUND;
    if (sdk_finalized) return FINALIZED;
    if (!context->active) return CONTEXT_NOT_STARTED;
    if (!context->counting.of_device) return CONTEXT_INVALID;
    if (records && (!room || how & 1)) return INVALID_ARGUMENT;
    if (!hsa) return HSA_NOT_LOADED;
    if (!context->counting.chosen) return PROFILE_COUNTER_NOT_FOUND;
    size_t count = values(context->counting.chosen, items_since[id], 0, word, context->counting.agent, found);
    sdk_log("read %zu", count);
    if (records) {
        size_t most = *room;
        *room = count;
        if (count > most) return OUT_OF_RESOURCES;
        memcpy(records, found, count * sizeof *found);
        return SUCCESS;
    }
    for (size_t i = 0; i < count && context->counting.buffer; i++) sdk_put(context->counting.buffer, COUNTERS, 2, &found[i], sizeof *found);
    return SUCCESS;
}
