/* PC sampling of the stand-in of rocprofiler-sdk: each dispatch has the same samples. See sdk.c.
 *
 * STANDIN_FAULT: old_driver (status 28), no_sampling (37 at the query), none (no configuration), taken (another process samples
 * by host traps every 1000 us, so that only this is possible), no_privileges (40), invalid_samples (two of each dispatch say
 * nothing), unknown_code (a sample of no code object for each dispatch). ROCPROFILER_PC_SAMPLING_BETA_ENABLED must be set. */
#include "sdk.h"

#include <stdlib.h>
#include <string.h>

enum { STOCHASTIC = 1, HOST_TRAP, CYCLES = 2, TIME };
enum { INVALID_SAMPLE = 1, TRAP_SAMPLE = BEFORE_1_0 ? 1 : 2, STOCHASTIC_SAMPLE = 3 };

/* Times are microseconds. */
struct configuration { uint64_t size; int method, unit; size_t least, most; uint64_t flags; };
struct trap_sample {
    uint64_t size, hw_id, code, offset, mask, time, dispatch;
    struct async_correlation correlation;
    struct dim3 workgroup;
    uint32_t wave;
};
struct stochastic_sample {
    uint64_t size;
    uint8_t flags, wave, issue;
    uint64_t hw_id, code, offset, mask;
    struct dim3 workgroup;
    uint32_t waves;
    uint64_t time, dispatch;
    struct async_correlation correlation;
    uint32_t snapshot;
    /* What is under way: 32 bits, and from 1.3 on 64. */
#if VERSION >= 10300
    uint64_t memory;
#else
    uint32_t memory;
#endif
};

static int is_enabled(void) {
    const char *text = getenv("ROCPROFILER_PC_SAMPLING_BETA_ENABLED");
    return text && *text && strcmp(text, "0") && strcmp(text, "OFF") && strcmp(text, "false");
}

static int hindrance(void) {
    return sdk_fault("old_driver") ? INCOMPATIBLE_KERNEL : sdk_fault("no_sampling") ? NOT_AVAILABLE : sdk_fault("no_privileges") ? PERMISSION_DENIED : SUCCESS;
}

/* The ways in which an agent samples now; their number. */
static size_t configurations(struct configuration *ways) {
    size_t count = 0;
    if (sdk_fault("none")) return 0;
    if (sdk_fault("taken")) {
        ways[count++] = (struct configuration){sizeof *ways, HOST_TRAP, TIME, 1000, 1000, 0};
        return count;
    }
    ways[count++] = (struct configuration){sizeof *ways, HOST_TRAP, TIME, 1, (size_t)1 << 32, 0};
    if (!BEFORE_1_0) ways[count++] = (struct configuration){sizeof *ways, STOCHASTIC, CYCLES, 256, (size_t)1 << 31, 1};
    return count;
}

int rocprofiler_query_pc_sampling_agent_configurations(uint64_t agent, int (*callback)(const struct configuration *, size_t, void *),
                                                       void *data) {
    struct configuration ways[2] = {{0}};
    if (!is_enabled()) return NOT_IMPLEMENTED;
    if (agent != CPU_AGENT && !sdk_is_gpu(agent)) return AGENT_NOT_FOUND;
    if (hindrance() != SUCCESS) return hindrance();
    return callback(ways, sdk_is_gpu(agent) ? configurations(ways) : 0, data);
}

int rocprofiler_configure_pc_sampling_service(uint64_t id, uint64_t agent, int method, int unit, uint64_t interval, uint64_t buffer,
                                              int flags) {
    struct context *context = sdk_context(id);
    struct configuration ways[2] = {{0}};
    (void)flags;
    if (!is_enabled()) return NOT_IMPLEMENTED;
    if (sdk_initialized > -1) return CONFIGURATION_LOCKED;
    if (!sdk_is_gpu(agent)) return AGENT_NOT_FOUND;
    if (!context) return CONTEXT_NOT_FOUND;
    if (!sdk_is_buffer(buffer)) return BUFFER_NOT_FOUND;
    if (hindrance() != SUCCESS) return hindrance();
    if (context->counts) return CONTEXT_CONFLICT;
    for (int i = 1; i < sdk_context_count; i++)
        if (sdk_contexts[i].sampled_agents && &sdk_contexts[i] != context) return SERVICE_ALREADY_CONFIGURED;
    for (int i = 0; i < context->sampled_agents; i++)
        if (context->sampling[i].agent == agent) return SERVICE_ALREADY_CONFIGURED;
    size_t count = configurations(ways), way = 0;
    while (way < count && (ways[way].method != method || ways[way].unit != unit)) way++;
    if (way == count) return sdk_fault("taken") ? NOT_AVAILABLE : INVALID_ARGUMENT;
    if (interval < ways[way].least || interval > ways[way].most) return sdk_fault("taken") ? NOT_AVAILABLE : INVALID_ARGUMENT;
    if (ways[way].flags & 1 && interval & (interval - 1)) return INVALID_ARGUMENT;
    context->sampling[context->sampled_agents++] = (struct sampling){agent, interval, buffer, method, unit};
    sdk_log("sampling %d %d %lu", method, unit, interval);
    return SUCCESS;
}

/* The samples of a dispatch: the instruction's place in the kernel, the lanes, whether it was issued, its type, why not. */
static const struct { uint32_t offset; uint64_t mask; int issued, type, reason; } samples[] = {
    {0, ~(uint64_t)0, 1, 1, 0},
    {0, ~(uint64_t)0, 0, 1, 3},
    {4, 0xffff, 0, 7, 3},
    {4, 0xffff, 0, 7, 5},
    {8, 1, 1, 2, 0},
    {8, 1, 0, 3, 6},
};

static void give(const struct sampling *sampling, const struct dispatch *dispatch, const struct flight *flight, uint64_t external, int i) {
    uint64_t time = dispatch->start + (dispatch->end - dispatch->start) * (uint64_t)(i + 1) / 8;
    int unknown = i < 0;
    int of = unknown ? 0 : i;
    uint64_t code = unknown ? 0 : dispatch->code, offset = unknown ? 0xdead0000 : dispatch->kernel->offset + samples[of].offset;
    /* Chiplet 5, wave 3, SIMD 2, pipe 1, compute unit 9, array 1, engine 6, workgroup 4, memory 8, queue 7, microengine 1. */
    uint64_t hw_id = 5 | 3u << 6 | 2u << 13 | 1u << 15 | 9u << 19 | 1u << 23 | 6u << 24 | (uint64_t)4 << 29 | (uint64_t)8 << 36 | (uint64_t)7 << 42 | (uint64_t)1 << 46;
    const struct async_correlation correlation = {flight->internal, external};
    const struct dim3 workgroup = {1, 2, 3};
    if (sampling->method == HOST_TRAP) {
        const struct trap_sample sample = {sizeof sample, hw_id, code, offset, samples[of].mask, time, dispatch->id, correlation, workgroup, 2};
        sdk_put(sampling->buffer, SAMPLES, TRAP_SAMPLE, &sample, sizeof sample);
    } else {
        const struct stochastic_sample sample = {
            .size = sizeof sample, .flags = 1, .wave = 2, .issue = (uint8_t)(samples[of].issued | samples[of].type << 1), .hw_id = hw_id,
            .code = code, .offset = offset, .mask = samples[of].mask, .workgroup = workgroup, .waves = 11, .time = time,
            .dispatch = dispatch->id, .correlation = correlation,
            /* The reason; VALU issued, FLAT stalled. */
            .snapshot = (uint32_t)samples[of].reason | 1u << 5 | 1u << 22,
            /* 5 loads, 4 stores, 3 of LDS. */
            .memory = 5 | 4u << 6 | 3u << 21};
        sdk_put(sampling->buffer, SAMPLES, STOCHASTIC_SAMPLE, &sample, sizeof sample);
    }
    sdk_log("sample %d %s %lu %d %d %d", sampling->method, unknown ? "-" : dispatch->kernel->name, offset, samples[of].issued,
            samples[of].type, samples[of].reason);
}

void sdk_sample(const struct dispatch *dispatch, const struct flight *flight) {
    for (int i = 1; i < sdk_context_count; i++) {
        struct context *context = &sdk_contexts[i];
        if (!context->active || !dispatch->code) continue;
        for (int agent = 0; agent < context->sampled_agents; agent++) {
            const struct sampling *sampling = &context->sampling[agent];
            if (sampling->agent != flight->info.agent) continue;
            for (size_t one = 0; one < sizeof samples / sizeof *samples; one++) give(sampling, dispatch, flight, flight->external[i], (int)one);
            if (sdk_fault("unknown_code")) give(sampling, dispatch, flight, flight->external[i], -1);
            const uint64_t nothing = sizeof nothing;
            for (int times = 0; !BEFORE_1_0 && sdk_fault("invalid_samples") && times < 2; times++)
                sdk_put(sampling->buffer, SAMPLES, INVALID_SAMPLE, &nothing, sizeof nothing);
        }
    }
}

#if !BEFORE_1_0
const char *rocprofiler_get_pc_sampling_instruction_type_name(int type) {
#define TYPE(name) "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_" name
    static const char *const names[] = {TYPE("NONE"), TYPE("VALU"), TYPE("MATRIX"), TYPE("SCALAR"), TYPE("TEX"), TYPE("LDS"), TYPE("LDS_DIRECT"), TYPE("FLAT"), TYPE("EXPORT"), TYPE("MESSAGE"), TYPE("BARRIER"),
                                        TYPE("BRANCH_NOT_TAKEN"), TYPE("BRANCH_TAKEN"), TYPE("JUMP"), TYPE("OTHER"), TYPE("NO_INST"), TYPE("DUAL_VALU")};
    return type >= 0 && type < 17 ? names[type] : NULL;
}
const char *rocprofiler_get_pc_sampling_instruction_not_issued_reason_name(int reason) {
#define REASON(name) "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_" name
    static const char *const names[] = {REASON("NONE"), REASON("NO_INSTRUCTION_AVAILABLE"), REASON("ALU_DEPENDENCY"), REASON("WAITCNT"), REASON("INTERNAL_INSTRUCTION"), REASON("BARRIER_WAIT"),
                                        REASON("ARBITER_NOT_WIN"), REASON("ARBITER_WIN_EX_STALL"), REASON("OTHER_WAIT"), REASON("SLEEP_WAIT")};
    return reason >= 0 && reason < 10 ? names[reason] : NULL;
}
#endif
