/* The tracing services of the stand-in of rocprofiler-sdk: calls, work, code objects and streams that runtime.c reports become
 * callbacks and records, with correlation ids and external ids as AMD's library gives them. See sdk.c. */
#define _GNU_SOURCE
#include "sdk.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const callback_kinds[] = {
    "NONE", "HSA_CORE_API", "HSA_AMD_EXT_API", "HSA_IMAGE_EXT_API", "HSA_FINALIZE_EXT_API", "HIP_RUNTIME_API", "HIP_COMPILER_API",
    "MARKER_CORE_API", "MARKER_CONTROL_API", "MARKER_NAME_API", "CODE_OBJECT", "SCRATCH_MEMORY", "KERNEL_DISPATCH", "MEMORY_COPY",
    "RCCL_API", "OMPT", "MEMORY_ALLOCATION", "RUNTIME_INITIALIZATION", "ROCDECODE_API", "ROCJPEG_API", "HIP_STREAM",
    "MARKER_CORE_RANGE_API",
};
static const char *const buffer_kinds[] = {
    "NONE", "HSA_CORE_API", "HSA_AMD_EXT_API", "HSA_IMAGE_EXT_API", "HSA_FINALIZE_EXT_API", "HIP_RUNTIME_API", "HIP_COMPILER_API",
    "MARKER_CORE_API", "MARKER_CONTROL_API", "MARKER_NAME_API", "MEMORY_COPY", "KERNEL_DISPATCH",
#if BEFORE_1_0
    "PAGE_MIGRATION",
#endif
    "SCRATCH_MEMORY", "CORRELATION_ID_RETIREMENT", "RCCL_API", "OMPT", "MEMORY_ALLOCATION", "RUNTIME_INITIALIZATION", "ROCDECODE_API",
    "ROCJPEG_API", "HIP_STREAM", "HIP_RUNTIME_API_EXT", "HIP_COMPILER_API_EXT", "ROCDECODE_API_EXT", "KFD_EVENT_PAGE_MIGRATE",
    "KFD_EVENT_PAGE_FAULT", "KFD_EVENT_QUEUE", "KFD_EVENT_UNMAP_FROM_GPU", "KFD_EVENT_DROPPED_EVENTS", "KFD_PAGE_MIGRATE",
    "KFD_PAGE_FAULT", "KFD_QUEUE", "MARKER_CORE_RANGE_API",
};
/* Operations of kinds that have no functions, from number 0 on. */
static const struct { const char *kind, *names[8]; } operations[] = {
    {"MEMORY_COPY", {"NONE", "HOST_TO_HOST", "HOST_TO_DEVICE", "DEVICE_TO_HOST", "DEVICE_TO_DEVICE"}},
    {"KERNEL_DISPATCH", {"NONE", "ENQUEUE", "COMPLETE"}},
    {"SCRATCH_MEMORY", {"NONE", "ALLOC", "FREE", "ASYNC_RECLAIM"}},
    {"MEMORY_ALLOCATION", {"NONE", "ALLOCATE", "VMEM_ALLOCATE", "FREE", "VMEM_FREE"}},
    {"RUNTIME_INITIALIZATION", {"NONE", "HSA", "HIP", "MARKER", "RCCL"}},
    {"CODE_OBJECT", {"NONE", "LOAD", "DEVICE_KERNEL_SYMBOL_REGISTER", "HOST_KERNEL_SYMBOL_REGISTER"}},
    {"HIP_STREAM", {"NONE", "CREATE", "DESTROY", "SET"}},
    {"KFD_PAGE_MIGRATE", {"PREFETCH", "PAGEFAULT_GPU", "PAGEFAULT_CPU", "TTM_EVICTION"}},
    {"KFD_PAGE_FAULT", {"READ_FAULT_MIGRATED", "READ_FAULT_UPDATED", "WRITE_FAULT_MIGRATED", "WRITE_FAULT_UPDATED"}},
};

static int give(const char *text, const char **name, uint64_t *length, int missing) {
    if (name) *name = text;
    if (length) *length = text ? strlen(text) : 0;
    return text ? SUCCESS : missing;
}

/* The name of an operation of a kind, whose functions have the number `functions`. */
static const char *operation_name(const char *kind, int functions, int operation) {
    static char names[64][64];
    static int used;
    for (const struct function *one = standin_functions; one->name; one++)
        if (one->kind == functions && one->operation == operation) return one->name;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (strcmp(operations[i].kind, kind) || operation < 0 || operation > 7 || !operations[i].names[operation]) continue;
        char text[64];
        snprintf(text, sizeof text, "%s_%s", kind, operations[i].names[operation]);
        for (int at = 0; at < used; at++)
            if (!strcmp(names[at], text)) return names[at];
        return strcpy(names[used++], text);
    }
    return NULL;
}

static int iterate_operations(const char *kind, int number, int functions, int (*visit)(int, int, void *), void *data) {
    for (const struct function *one = standin_functions; one->name; one++)
        if (one->kind == functions && visit(number, one->operation, data)) return SUCCESS;
    for (int i = 0; i < 8; i++)
        if (!(functions && functions <= 9) && operation_name(kind, 0, i) && visit(number, i, data)) return SUCCESS;
    return SUCCESS;
}

static const char *callback_kind(int kind) { return kind >= 0 && kind < C_KINDS ? callback_kinds[kind] : NULL; }
static const char *buffer_kind(int kind) { return kind >= 0 && kind < B_KINDS ? buffer_kinds[kind] : NULL; }
/* The kinds of calls have the same numbers in both enumerations. */
static int functions_of(int kind) { return kind <= 9 ? kind : 0; }

int rocprofiler_query_callback_tracing_kind_name(int kind, const char **name, uint64_t *length) {
    return give(callback_kind(kind), name, length, KIND_NOT_FOUND);
}
int rocprofiler_query_buffer_tracing_kind_name(int kind, const char **name, uint64_t *length) {
    return give(buffer_kind(kind), name, length, KIND_NOT_FOUND);
}
int rocprofiler_query_callback_tracing_kind_operation_name(int kind, int operation, const char **name, uint64_t *length) {
    if (!callback_kind(kind)) return KIND_NOT_FOUND;
    return give(operation_name(callback_kind(kind), functions_of(kind), operation), name, length, OPERATION_NOT_FOUND);
}
int rocprofiler_query_buffer_tracing_kind_operation_name(int kind, int operation, const char **name, uint64_t *length) {
    if (!buffer_kind(kind)) return KIND_NOT_FOUND;
    return give(operation_name(buffer_kind(kind), functions_of(kind), operation), name, length, OPERATION_NOT_FOUND);
}
int rocprofiler_iterate_callback_tracing_kinds(int (*visit)(int, void *), void *data) {
    for (int kind = 0; kind < C_KINDS; kind++)
        if (visit(kind, data)) break;
    return SUCCESS;
}
int rocprofiler_iterate_buffer_tracing_kinds(int (*visit)(int, void *), void *data) {
    for (int kind = 0; kind < B_KINDS; kind++)
        if (visit(kind, data)) break;
    return SUCCESS;
}
int rocprofiler_iterate_callback_tracing_kind_operations(int kind, int (*visit)(int, int, void *), void *data) {
    if (kind == 0 || !callback_kind(kind)) return INVALID_ARGUMENT;
    return iterate_operations(callback_kind(kind), kind, functions_of(kind), visit, data);
}
int rocprofiler_iterate_buffer_tracing_kind_operations(int kind, int (*visit)(int, int, void *), void *data) {
    if (kind == 0 || !buffer_kind(kind)) return INVALID_ARGUMENT;
    return iterate_operations(buffer_kind(kind), kind, functions_of(kind), visit, data);
}

/* Services. */

static int refused(const char *kind) {
    char word[64];
    snprintf(word, sizeof word, "refuse:%s", kind);
    return sdk_fault(word);
}

static int configure(struct service *service, const char *kind, const int *wanted, size_t count) {
    if (service->configured) return SERVICE_ALREADY_CONFIGURED;
    if (refused(kind)) return NOT_IMPLEMENTED;
    for (size_t i = 0; i < count; i++) {
        if (wanted[i] < 0 || wanted[i] >= 640) return OPERATION_NOT_FOUND;
        service->operations[wanted[i] / 64] |= (uint64_t)1 << wanted[i] % 64;
    }
    service->all = !count;
    service->configured = 1;
    return SUCCESS;
}

int rocprofiler_configure_callback_tracing_service(uint64_t id, int kind, const int *wanted, size_t count, tracing_callback *callback,
                                                   void *data) {
    struct context *context = sdk_context(id);
    if (sdk_initialized > -1) return CONFIGURATION_LOCKED;
    if (!context) return CONTEXT_NOT_FOUND;
    if (kind < 1 || kind >= C_KINDS) return KIND_NOT_FOUND;
    int status = configure(&context->callbacks[kind], callback_kinds[kind], wanted, count);
    if (status != SUCCESS) return status;
    context->callbacks[kind].callback = callback;
    context->callbacks[kind].data = data;
    sdk_log("callbacks %s", callback_kinds[kind]);
    return SUCCESS;
}

int rocprofiler_configure_buffer_tracing_service(uint64_t id, int kind, const int *wanted, size_t count, uint64_t buffer) {
    struct context *context = sdk_context(id);
    if (sdk_initialized > -1) return CONFIGURATION_LOCKED;
    if (!context) return CONTEXT_NOT_FOUND;
    if (!sdk_is_buffer(buffer)) return BUFFER_NOT_FOUND;
    if (kind < 1 || kind >= B_KINDS) return KIND_NOT_FOUND;
    int status = configure(&context->buffers[kind], buffer_kinds[kind], wanted, count);
    if (status != SUCCESS) return status;
    context->buffers[kind].buffer = buffer;
    sdk_log("records %s", buffer_kinds[kind]);
    return SUCCESS;
}

int sdk_wants(const struct service *service, int operation) {
    return service->configured && (service->all || (operation >= 0 && service->operations[operation / 64] >> operation % 64 & 1));
}

/* The contexts that are started and want an operation, as bits. */
static uint32_t called(int kind, int operation) {
    uint32_t found = 0;
    for (int i = 1; i < sdk_context_count; i++)
        if (sdk_contexts[i].active && sdk_wants(&sdk_contexts[i].callbacks[kind], operation)) found |= 1u << i;
    return found;
}
static uint32_t recorded(int kind, int operation) {
    uint32_t found = 0;
    for (int i = 1; i < sdk_context_count; i++)
        if (sdk_contexts[i].active && sdk_wants(&sdk_contexts[i].buffers[kind], operation)) found |= 1u << i;
    return found;
}

/* External ids. */

static pthread_mutex_t pushing = PTHREAD_MUTEX_INITIALIZER;

/* The place of a thread's ids, -1 if there is none; `makes` makes one. */
static int place(struct context *context, uint64_t thread, int makes) {
    for (int i = 0; i < MOST_THREADS; i++) {
        if (context->pushed[i].thread == thread) return i;
        if (!context->pushed[i].thread) return makes ? (context->pushed[i].thread = thread, i) : -1;
    }
    return -1;
}

int rocprofiler_push_external_correlation_id(uint64_t id, uint64_t thread, uint64_t value) {
    struct context *context = sdk_context(id);
    if (!context) return CONTEXT_NOT_FOUND;
    pthread_mutex_lock(&pushing);
    int at = place(context, thread, 1);
    if (at >= 0 && context->pushed[at].depth < 16) context->pushed[at].ids[context->pushed[at].depth++] = value;
    pthread_mutex_unlock(&pushing);
    return SUCCESS;
}

int rocprofiler_pop_external_correlation_id(uint64_t id, uint64_t thread, uint64_t *value) {
    struct context *context = sdk_context(id);
    if (!context) return CONTEXT_NOT_FOUND;
    pthread_mutex_lock(&pushing);
    int at = place(context, thread, 0);
    uint64_t popped = at >= 0 && context->pushed[at].depth ? context->pushed[at].ids[--context->pushed[at].depth] : 0;
    pthread_mutex_unlock(&pushing);
    if (value) *value = popped;
    return SUCCESS;
}

int rocprofiler_configure_external_correlation_id_request_service(uint64_t id, const int *kinds, size_t count,
                                                                  request_callback *callback, void *data) {
    struct context *context = sdk_context(id);
    if (!context) return CONTEXT_NOT_FOUND;
    if (context->request) return SERVICE_ALREADY_CONFIGURED;
    if (kinds && !count) return INVALID_ARGUMENT;
    for (size_t i = 0; kinds && i < count; i++) {
        int most = VERSION < 600 ? 16 : BEFORE_1_0 ? 17 : E_KINDS;
        if (kinds[i] < 1 || kinds[i] >= most) return KIND_NOT_FOUND;
        context->request_kinds |= 1u << kinds[i];
    }
    context->request = callback;
    context->request_data = data;
    return SUCCESS;
}

static int requests(const struct context *context, int kind) {
    return context->request && (!context->request_kinds || context->request_kinds >> kind & 1);
}

uint64_t sdk_external(struct context *context, int kind, int operation, uint64_t internal) {
    uint64_t id = 0, thread = sdk_thread();
    uint64_t number = (uint64_t)(context - sdk_contexts);
    if (requests(context, kind) && !context->request(thread, number, kind, operation, internal, &id, context->request_data)) return id;
    pthread_mutex_lock(&pushing);
    int at = place(context, thread, 0);
    id = at >= 0 && context->pushed[at].depth ? context->pushed[at].ids[context->pushed[at].depth - 1] : 0;
    pthread_mutex_unlock(&pushing);
    return id;
}

/* Calls. */

struct traced {
    uint64_t internal, ancestor, thread, start, external[MOST_CONTEXTS], words[MOST_CONTEXTS];
    uint32_t called, recorded;
    struct traced *outer;
    union { struct hip_payload hip; struct hsa_payload hsa; } payload;
};
static __thread struct traced *innermost;
static uint64_t last_id;

static struct correlation ids(uint64_t internal, uint64_t external, uint64_t ancestor) {
    struct correlation ids = {.internal = internal, .external = external};
#if !BEFORE_1_0
    ids.ancestor = ancestor;
#endif
    (void)ancestor;
    return ids;
}

static void tell(int context, int kind, int operation, int phase, struct correlation ids, void *payload, uint64_t *word) {
    const struct service *service = &sdk_contexts[context].callbacks[kind];
    const struct callback_record record = {.context = (uint64_t)context, .thread = sdk_thread(), .correlation = ids, .kind = kind,
                                           .operation = operation, .phase = phase, .payload = payload};
    service->callback(record, word, service->data);
}

static void tell_call(const struct call *call, int phase) {
    struct traced *traced = call->of_sdk;
    int kind = call->function->kind, operation = call->function->operation;
    for (int i = 1; i < sdk_context_count; i++)
        if (traced->called >> i & 1)
            tell(i, kind, operation, phase, ids(traced->internal, traced->external[i], traced->ancestor), &traced->payload,
                 &traced->words[i]);
}

static int is_of_hip(int kind) { return kind == C_HIP || kind == C_HIP_COMPILER; }

static void enter(struct call *call) {
    int kind = call->function->kind, operation = call->function->operation;
    uint32_t calls = called(kind, operation), records = recorded(kind, operation);
    call->of_sdk = NULL;
    if (!(calls | records)) return;
    struct traced *traced = call->of_sdk = calloc(1, sizeof *traced);
    *traced = (struct traced){.internal = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED), .ancestor = innermost ? innermost->internal : 0,
                              .thread = sdk_thread(), .called = calls, .recorded = records, .outer = innermost};
    traced->payload.hip.size = is_of_hip(kind) ? sizeof(struct hip_payload) : sizeof(struct hsa_payload);
    memcpy(traced->payload.hip.arguments, call->arguments, call->bytes);
    innermost = traced;
    for (int i = 1; i < sdk_context_count; i++)
        if ((calls | records) >> i & 1) traced->external[i] = sdk_external(&sdk_contexts[i], kind, operation, traced->internal);
    tell_call(call, ENTER);
    for (int i = 1; i < sdk_context_count; i++)
        if ((calls | records) >> i & 1 && !requests(&sdk_contexts[i], kind))
            traced->external[i] = sdk_external(&sdk_contexts[i], kind, operation, traced->internal);
    traced->start = standin_now();
}

static void exit_call(struct call *call) {
    struct traced *traced = call->of_sdk;
    int kind = call->function->kind, operation = call->function->operation;
    if (!traced) return;
    uint64_t end = standin_now();
    if (is_of_hip(kind)) memcpy(traced->payload.hip.result, &call->result, 8);
    else traced->payload.hsa.result = call->result;
    tell_call(call, EXIT);
    for (int i = 1; i < sdk_context_count; i++) {
        if (!(traced->recorded >> i & 1)) continue;
        const struct api_record record = {.size = sizeof record, .kind = kind, .operation = operation,
                                          .correlation = ids(traced->internal, traced->external[i], traced->ancestor),
                                          .start = traced->start, .end = end, .thread = traced->thread};
        sdk_put(sdk_contexts[i].buffers[kind].buffer, TRACING, (uint32_t)kind, &record, sizeof record);
    }
    sdk_log("call %s %s %lu %lu %lu %lu %lu %ld", callback_kinds[kind], call->function->name, traced->thread, traced->internal,
            traced->ancestor, traced->start, end, call->result);
    innermost = traced->outer;
    free(traced);
}

int rocprofiler_iterate_callback_tracing_kind_operation_args(
    struct callback_record record,
    int (*visit)(int, int, uint32_t, const void *, int, const char *, const char *, const char *, int, void *), int most, void *data) {
    const struct function *function = standin_functions;
    const uint8_t *arguments = ((const struct hip_payload *)record.payload)->arguments;
    /* Addresses are told in a copy, as AMD's library does. */
    const struct hip_payload copy = *(const struct hip_payload *)record.payload;
    while (function->name && (function->kind != record.kind || function->operation != record.operation)) function++;
    if (!function->name) return record.kind > 9 ? NOT_IMPLEMENTED : SUCCESS;
    for (uint32_t i = 0; i < MOST_ARGUMENTS && function->arguments[i].name; i++) {
        const struct argument *argument = &function->arguments[i];
        const uint8_t *value = arguments + argument->offset;
        const uint32_t *words = (const uint32_t *)(const void *)value;
        const uint64_t word = argument->bytes >= 8 ? words[0] | (uint64_t)words[1] << 32 : words[0];
        const char *pointed = (const char *)(uintptr_t)word;
        char text[128];
        int followed = 0;
        if (argument->bytes == 12) snprintf(text, sizeof text, "{z=%u, y=%u, x=%u}", words[2], words[1], words[0]);
        else if (!strcmp(argument->type, "PKc") && pointed && most > 0) snprintf(text, sizeof text, "%s", pointed), followed = 1;
        else snprintf(text, sizeof text, argument->pointers ? "0x%lx" : "%lu", word);
        if (visit(record.kind, record.operation, i, copy.arguments + argument->offset, argument->pointers, argument->type, argument->name, text, followed, data)) break;
    }
    return SUCCESS;
}

/* Work. */

static uint64_t enqueuing(void) { return innermost ? innermost->internal : __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED); }

static void times(uint64_t *start, uint64_t *end) {
    uint64_t first = *start;
    if (sdk_fault("untimed")) *start = *end = 0;
    if (sdk_fault("inverted")) *start = *end, *end = first;
}

static void enqueue(struct dispatch *dispatch) {
    static uint64_t last;
    struct flight *flight = dispatch->of_sdk = calloc(1, sizeof *flight);
    flight->internal = enqueuing();
    flight->thread = sdk_thread();
    dispatch->id = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    flight->info = (struct dispatch_info){.size = offsetof(struct dispatch_info, reserved), .agent = GPU_AGENT + dispatch->queue / 16,
                                          .queue = dispatch->queue + 1, .kernel = dispatch->kernel_id, .dispatch = dispatch->id,
                                          .scratch = dispatch->kernel->scratch, .lds = dispatch->kernel->lds + dispatch->lds,
                                          .workgroup = dispatch->workgroup, .grid = dispatch->grid};
    flight->recorded = recorded(B_KERNEL, 2);
    flight->called = called(C_KERNEL, 1);
    uint32_t told = flight->called | flight->recorded | called(C_KERNEL, 2);
    for (int i = 1; i < sdk_context_count; i++) {
        struct context *context = &sdk_contexts[i];
        if (told >> i & 1 || (context->active && (context->sampled_agents || context->counts)))
            flight->external[i] = sdk_external(context, E_KERNEL, 1, flight->internal);
    }
    struct kernel_payload payload = {.size = sizeof payload, .info = flight->info};
    for (int phase = ENTER; phase <= EXIT; phase++)
        for (int i = 1; i < sdk_context_count; i++)
            if (flight->called >> i & 1)
                tell(i, C_KERNEL, 1, phase, ids(flight->internal, flight->external[i], 0), &payload, &flight->words[i]);
    sdk_choose(flight);
}

static void complete(struct dispatch *dispatch) {
    struct flight *flight = dispatch->of_sdk;
    uint64_t start = dispatch->start, end = dispatch->end;
    times(&start, &end);
    struct kernel_payload payload = {.size = sizeof payload, .start = start, .end = end, .info = flight->info};
    uint32_t told = called(C_KERNEL, 2);
    for (int i = 1; i < sdk_context_count; i++) {
        if (told >> i & 1) tell(i, C_KERNEL, 2, PHASE_NONE, ids(flight->internal, flight->external[i], 0), &payload, &flight->words[i]);
        if (!(flight->recorded >> i & 1)) continue;
        struct kernel_record record = {.size = sizeof record, .kind = B_KERNEL, .operation = 2,
                                       .correlation = {flight->internal, flight->external[i]}, .thread = flight->thread, .start = start,
                                       .end = end, .info = flight->info};
        if (sdk_fault("short")) record.size = offsetof(struct kernel_record, info) + offsetof(struct dispatch_info, workgroup);
        sdk_put(sdk_contexts[i].buffers[B_KERNEL].buffer, TRACING, B_KERNEL, &record, sizeof record);
    }
    sdk_sample(dispatch, flight);
    sdk_count(dispatch, flight);
    const struct dispatch_info *info = &flight->info;
    sdk_log("kernel %s %lu %lu %lu %lu %lu %u,%u,%u %u,%u,%u %u %u %lu", dispatch->kernel->name, dispatch->id, info->queue, flight->internal,
            dispatch->start, dispatch->end, info->grid.x, info->grid.y, info->grid.z, info->workgroup.x, info->workgroup.y,
            info->workgroup.z, info->lds, info->scratch, info->agent - GPU_AGENT);
    free(flight);
}

static void dispatch(struct dispatch *dispatch, int completed) { completed ? complete(dispatch) : enqueue(dispatch); }

static void copy(struct copy *copy, int completed) {
    struct flight *flight = copy->of_sdk;
    if (!completed) {
        flight = copy->of_sdk = calloc(1, sizeof *flight);
        flight->internal = enqueuing();
        flight->thread = sdk_thread();
        flight->recorded = recorded(B_COPY, copy->direction);
        for (int i = 1; i < sdk_context_count; i++)
            if (flight->recorded >> i & 1) flight->external[i] = sdk_external(&sdk_contexts[i], E_COPY, copy->direction, flight->internal);
        return;
    }
    uint64_t start = copy->start, end = copy->end;
    times(&start, &end);
    for (int i = 1; i < sdk_context_count; i++) {
        if (!(flight->recorded >> i & 1)) continue;
        struct copy_record record = {.size = sizeof record, .kind = B_COPY, .operation = copy->direction,
                                     .correlation = {flight->internal, flight->external[i]}, .thread = flight->thread, .start = start,
                                     .end = end, .to_agent = copy->direction == 3 ? CPU_AGENT : GPU_AGENT,
                                     .from_agent = copy->direction == 2 ? CPU_AGENT : GPU_AGENT, .bytes = copy->bytes};
#if !BEFORE_1_0
        record.to = copy->to;
        record.from = copy->from;
#endif
        sdk_put(sdk_contexts[i].buffers[B_COPY].buffer, TRACING, B_COPY, &record, sizeof record);
    }
    sdk_log("copy %d %lu %lu %lu %lu", copy->direction, copy->bytes, flight->internal, copy->start, copy->end);
    free(flight);
}

static void allocation(int operation, uint64_t address, uint64_t bytes, uint64_t start, uint64_t end) {
    uint64_t internal = enqueuing(), thread = sdk_thread();
    uint32_t records = recorded(B_ALLOCATION, operation);
    for (int i = 1; i < sdk_context_count; i++) {
        if (!(records >> i & 1)) continue;
        uint64_t external = sdk_external(&sdk_contexts[i], E_ALLOCATION, operation, internal);
        const struct allocation_record record = {.size = sizeof record, .kind = B_ALLOCATION, .operation = operation,
                                                 .correlation = ids(internal, external, 0), .thread = thread, .start = start, .end = end,
                                                 .agent = operation == 1 ? GPU_AGENT : 0, .address = address, .bytes = bytes};
        sdk_put(sdk_contexts[i].buffers[B_ALLOCATION].buffer, TRACING, B_ALLOCATION, &record, sizeof record);
    }
    if (records) sdk_log("allocation %d %lx %lu %lu %lu %lu", operation, address, bytes, internal, start, end);
}

static void scratch(int operation, uint64_t queue, uint64_t bytes, uint64_t start, uint64_t end) {
    uint64_t internal = enqueuing();
    uint32_t records = recorded(B_SCRATCH, operation);
    for (int i = 1; i < sdk_context_count; i++) {
        if (!(records >> i & 1)) continue;
        struct scratch_record record = {.size = sizeof record, .kind = B_SCRATCH, .operation = operation,
                                        .correlation = ids(internal, sdk_external(&sdk_contexts[i], E_SCRATCH, operation, internal), 0),
                                        .agent = GPU_AGENT, .queue = queue + 1, .thread = sdk_thread(), .start = start, .end = end,
                                        .flags = 1};
#if !BEFORE_1_0
        record.bytes = bytes;
#endif
        sdk_put(sdk_contexts[i].buffers[B_SCRATCH].buffer, TRACING, B_SCRATCH, &record, sizeof record);
    }
    (void)bytes;
    if (records) sdk_log("scratch %d %lu %lu %lu %lu", operation, queue + 1, bytes, start, end);
}

/* Migrations and faults of pages, as the driver tells them, without a call. */
static void pages(int faults, uint64_t address, uint64_t bytes, uint64_t start, uint64_t end) {
#if !BEFORE_1_0
    int kind = faults ? B_PAGE_FAULT : B_PAGE_MIGRATE, operation = faults ? 0 : 1;
    uint32_t records = recorded(kind, operation);
    const struct migration_record migration = {.size = sizeof migration, .kind = kind, .operation = operation, .start = start, .end = end,
                                               .pid = (uint32_t)getpid(), .from_address = address, .to_address = address + bytes,
                                               .from_agent = CPU_AGENT, .to_agent = GPU_AGENT, .preferred_agent = GPU_AGENT};
    const struct fault_record fault = {.size = sizeof fault, .kind = kind, .operation = operation, .start = start, .end = end,
                                       .pid = (uint32_t)getpid(), .agent = GPU_AGENT, .address = address};
    for (int i = 1; i < sdk_context_count; i++)
        if (records >> i & 1)
            sdk_put(sdk_contexts[i].buffers[kind].buffer, TRACING, (uint32_t)kind, faults ? (const void *)&fault : &migration,
                    faults ? sizeof fault : sizeof migration);
    if (records) sdk_log("%s %lx %lu %lu %lu", faults ? "fault" : "migration", address, bytes, start, end);
#else
    (void)faults, (void)address, (void)bytes, (void)start, (void)end;
#endif
}

/* Code objects, streams, runtimes. */

static struct code *loaded[64];
static int loads_count;

static void tell_code(int operation, int phase, void *payload) {
    static uint64_t words[MOST_CONTEXTS];
    uint32_t calls = called(C_CODE, operation);
    for (int i = 1; i < sdk_context_count; i++)
        if (calls >> i & 1) tell(i, C_CODE, operation, phase, ids(0, 0, 0), payload, &words[i]);
}

static void code(struct code *code, int loads) {
    static uint64_t last_code, last_kernel = 1;
    if (loads) {
        code->id = ++last_code;
        code->first = last_kernel + 1;
        last_kernel += (uint64_t)code->count;
        loaded[loads_count++] = code;
    }
    int file = sdk_fault("in_file") ? memfd_create("code", MFD_CLOEXEC) : -1;
    char uri[128];
    if (file >= 0 && write(file, code->elf, code->size) < 0) abort();
    snprintf(uri, sizeof uri, file >= 0 ? "file:///proc/self/fd/%d#offset=0&size=%zu" : "memory://%d#offset=0x1000&size=%zu",
             file >= 0 ? file : getpid(), code->size);
    struct code_payload payload = {.size = sizeof payload, .id = code->id, .agent = GPU_AGENT, .hsa_agent = 77, .uri = uri,
                                   .load_base = code->base, .load_size = code->size, .load_delta = (int64_t)code->base};
    if (file >= 0) payload.storage = 1, payload.memory_base = (uint64_t)file;
    else if (!sdk_fault("no_code")) payload.storage = 2, payload.memory_base = (uint64_t)(uintptr_t)code->elf, payload.memory_size = code->size;
    if (loads) tell_code(1, ENTER, &payload);
    for (int i = 0; i < code->count; i++) {
        const struct kernel *kernel = &code->kernels[i];
        char name[80];
        snprintf(name, sizeof name, "%s.kd", kernel->name);
        struct symbol_payload symbol = {.size = sizeof symbol, .kernel = code->first + (uint64_t)i, .code = code->id, .name = name,
                                        .object = code->base + kernel->offset - 64, .kernarg_size = 24, .kernarg_alignment = 8,
                                        .lds = kernel->lds, .scratch = kernel->scratch, .sgprs = kernel->sgprs,
                                        .arch_vgprs = kernel->vgprs, .accum_vgprs = kernel->accum_vgprs};
#if VERSION >= 600
        symbol.entry = 64;
        symbol.address = code->base + kernel->offset;
#endif
        tell_code(2, loads ? ENTER : EXIT, &symbol);
    }
    if (!loads) tell_code(1, EXIT, &payload);
    if (file >= 0) close(file);
    for (int i = 0; !loads && i < loads_count; i++)
        if (loaded[i] == code) loaded[i] = loaded[--loads_count];
    sdk_log("%s %lu", loads ? "load" : "unload", code->id);
}

static void stream(int operation, int phase, uint64_t id, uint64_t handle) {
    static __thread uint64_t words[MOST_CONTEXTS];
    struct stream_payload payload = {.size = sizeof payload, .id = id, .handle = handle};
    uint32_t calls = called(C_STREAM, operation);
    for (int i = 1; i < sdk_context_count; i++)
        if (calls >> i & 1) tell(i, C_STREAM, operation, phase, ids(innermost ? innermost->internal : 0, 0, 0), &payload, &words[i]);
}

void sdk_runtime(int operation, uint64_t version, uint64_t instance) {
    uint64_t word = 0;
    struct { uint64_t size, version, instance; } payload = {sizeof payload, version, instance};
    uint32_t calls = called(C_RUNTIME, operation), records = recorded(B_RUNTIME, operation);
    for (int i = 1; i < sdk_context_count; i++) {
        if (calls >> i & 1) tell(i, C_RUNTIME, operation, PHASE_NONE, ids(0, 0, 0), &payload, &word);
        const struct runtime_record record = {.size = sizeof record, .kind = B_RUNTIME, .operation = operation, .thread = sdk_thread(),
                                              .time = standin_now(), .version = version, .instance = instance};
        if (records >> i & 1) sdk_put(sdk_contexts[i].buffers[B_RUNTIME].buffer, TRACING, B_RUNTIME, &record, sizeof record);
    }
    if (operation == 1) sdk_hsa_is_there();
    sdk_log("runtime %d", operation);
}

static void (*drain)(void);

/* Before the end, all work has completed. */
void sdk_unload_all(void) {
    if (drain) drain();
    while (loads_count) code(loaded[loads_count - 1], 0);
}

void sdk_observe(struct standin_hooks *hooks) {
    drain = hooks->drain;
    *hooks = (struct standin_hooks){enter, exit_call, code, dispatch, copy, allocation, scratch, stream, pages, drain};
}
