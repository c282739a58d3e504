/* A stand-in of libcupti, by our own declarations. See standin.h.
 *
 *     STANDIN_VERSION   1108, 1201, 1209, 1300, 1301, 1303, 1305: sizes of records, and which functions there are
 *     STANDIN_FAULT     words: subscribed (another subscriber), unknown (999 to all), before (a record from before the
 *                       start), untimed (kernels without times), dropped (says so), dropped_in (of a stream), late (buffers
 *                       come at the forced flush), never (buffers do not come), null (buffers without an address come,
 *                       too), foreign (records of unknown kinds), unsized (the size of copies is not stated), troubled
 *                       (an error and a warning of its own), rare (records, nodes of graphs and reasons of stalls that programs rarely
 *                       have)
 *
 * and of PC sampling: old_device (27), no_privileges (35), full_buffer (of the hardware, once), lost_samples (five, once),
 * bit_by_bit (an address a call), at_end (samples come when sampling is disabled). Compiled with WITHOUT_SAMPLING it has
 * none of it. The range profiler is in profiler.c. */
#define _GNU_SOURCE
#include "standin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*callback_function)(void *, unsigned, unsigned, const void *);
typedef void (*request_function)(uint8_t **, size_t *, size_t *);
typedef void (*complete_function)(void *, uint32_t, uint8_t *, size_t, size_t);

static callback_function callback;
static void *user;
static request_function request;
static complete_function complete;
static uint8_t enabled[3][1024], kinds[64];
/* Held while work is reported and buffers are exchanged, as by the real library, and by each function that is asked
 * something: who asks with a lock that he takes in a callback, too, waits for ever. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static void in_turn(void) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

/* A buffer that is being filled; from version 13 on there is one for each thread. */
struct buffer {
    uint8_t *start;
    size_t size, used;
    struct buffer *next;
};
static struct buffer shared, *all = &shared;
static __thread struct buffer *own;

/* The callbacks about its own state and about waits that are enabled. */
static uint8_t states[4], waits[3];

static uint64_t (*now)(void);
static uint8_t latency, event_times;

static int version(void) {
    static int known;
    const char *text = known ? NULL : getenv("STANDIN_VERSION");
    if (!known) known = text ? atoi(text) : 1209;
    return known;
}

static int fault(const char *word) {
    const char *text = getenv("STANDIN_FAULT");
    return text && strstr(text, word);
}

/* Without libcuda the real library crashes in its first call, or refuses. */
static int refuses(void) {
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!cuda) abort();
    now = (uint64_t(*)(void))dlsym(cuda, "standin_now");
    return fault("unknown");
}

static size_t size_of(uint32_t kind) {
    int v = version();
    switch (kind) {
    case 3:
    case 10:
        return v < 1201 ? 200 : v < 1300 ? 208 : v < 1301 ? 216 : v < 1303 ? 224 : v < 1305 ? 232 : 248;
    case 1: return v < 1209 ? 88 : v < 1305 ? 96 : 112;
    case 2: return v < 1305 ? 88 : 104;
    case 22: return 96;
    case 17: return v < 1209 ? 40 : 56;
    case 49: return v < 1209 ? 120 : 128;
    case 20: return 40;
    case 25: return v < 1209 ? 64 : 104;
    case 36: return v < 1209 ? 24 : v < 1303 ? 56 : 80;
    case 37: return 24;
    case 39: return 24;
    case 26: return 32;
    case 52: return v < 1209 ? 64 : 72;
    case 38: return v < 1209 ? 40 : 56;
    case 50: return v < 1300 ? 72 : 80;
    case 60: return 48;
    default: return 0;
    }
}

int cuptiGetVersion(uint32_t *answer) {
    if (refuses()) return 999;
    int v = version();
    *answer = v <= 1201 ? 18 : v < 1300 ? 28 : 130000 + 100 * (v - 1300);
    return 0;
}
int cuptiGetTimestamp(uint64_t *time) { in_turn(); if (refuses()) return 999; *time = now(); return 0; }

static struct { int domain; unsigned number; const char *name; } names[] = {
    {DRIVER, 1, "cuInit"}, {DRIVER, 243, "cuMemAlloc_v2"}, {DRIVER, 245, "cuMemFree_v2"},
    {DRIVER, 276, "cuMemcpyHtoD_v2"}, {DRIVER, 249, "cuMemsetD8_v2"}, {DRIVER, 307, "cuLaunchKernel"},
    {DRIVER, 519, "cuGraphLaunch"}, {DRIVER, 126, "cuStreamSynchronize"}, {DRIVER, 125, "cuStreamQuery"},
    {RUNTIME, 211, "cudaLaunchKernel_v7000"}, {DRIVER, 800, "cuNew"}, {DRIVER, 17, "cuCtxSynchronize"},
    {DRIVER, 119, "cuEventRecord"}, {DRIVER, 121, "cuEventSynchronize"}, {DRIVER, 295, "cuStreamWaitEvent"},
    {DRIVER, 607, "cuMemPoolCreate"}, {DRIVER, 608, "cuMemPoolDestroy"}, {DRIVER, 371, "cuMemAllocManaged"},
    {DRIVER, 643, "cuGraphInstantiateWithFlags"}, {DRIVER, 317, "cuMemcpyPeer"},
    {DRIVER, 278, "cuMemcpyDtoH_v2"}, {DRIVER, 280, "cuMemcpyDtoD_v2"}, {DRIVER, 277, "cuMemcpyHtoDAsync_v2"},
    {DRIVER, 279, "cuMemcpyDtoHAsync_v2"}, {DRIVER, 251, "cuMemsetD32_v2"}, {DRIVER, 19, "cuModuleLoadData"},
};

int cuptiGetCallbackName(uint32_t domain, uint32_t number, const char **name) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].domain == (int)domain && names[i].number == number) return *name = names[i].name, 0;
    return 1;
}

/* Places a value in a record. */
#define PUT(record, offset, type, value) (*(type *)((record) + (offset)) = (type)(value))

static void deliver(struct buffer *buffer) {
    if (!buffer->start || fault("never")) return;
    uint8_t *start = buffer->start;
    size_t used = buffer->used;
    buffer->start = NULL;
    int placed = !!fault("dropped_in");
    if (fault("null")) complete(NULL, 0, NULL, 0, 0), complete(NULL, 0, NULL, 4096, 96);
    complete(placed ? (void *)1 : NULL, placed ? 7 : 0, start, buffer->size, used);
}

static uint8_t *room(uint32_t kind) {
    struct buffer *buffer = &shared;
    size_t size = size_of(kind), most = 0;
    if (version() >= 1300) {
        if (!own) {
            own = calloc(1, sizeof *own);
            own->next = all;
            all = own;
        }
        buffer = own;
    }
    if (buffer->start && buffer->used + size > buffer->size) deliver(buffer);
    if (!buffer->start) {
        request(&buffer->start, &buffer->size, &most);
        if (!buffer->start) abort();
        buffer->used = 0;
    }
    uint8_t *record = buffer->start + buffer->used;
    memset(record, 0, size);
    PUT(record, 0, uint32_t, kind);
    buffer->used += size;
    return record;
}

static void put_kernel(const struct standin_work *work, uint64_t start, uint64_t end) {
    uint8_t *record = room(10);
    PUT(record, 6, uint16_t, 42);
    PUT(record, 16, uint64_t, start);
    PUT(record, 24, uint64_t, end);
    const char *devices = getenv("STANDIN_DEVICES");
    PUT(record, 40, uint32_t, devices && work->stream != 7 ? atoi(devices) - 1 : 0);
    PUT(record, 44, uint32_t, devices && work->stream != 7 ? atoi(devices) : 1);
    PUT(record, 48, uint32_t, work->stream);
    memcpy(record + 52, work->grid, 12);
    memcpy(record + 64, work->block, 12);
    PUT(record, 76, uint32_t, 256);
    PUT(record, 92, uint32_t, work->id);
    PUT(record, 104, const char *, work->name);
    PUT(record, 120, uint64_t, start && latency ? start - 2000 : 0);
    PUT(record, 128, uint64_t, start && latency ? start - 1000 : 0);
    static unsigned launched;
    if (fault("rare")) PUT(record, 136, uint8_t, ++launched % 3);
    PUT(record, 144, uint64_t, work->graph_node);
    PUT(record, 156, uint32_t, work->graph);
}

static void sample(const struct standin_work *work);

/* The external ids of the thread, by kind: the latest one. */
static __thread uint64_t pushed[6];

int cuptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id) {
    if (kind < 1 || kind > 5) return 1;
    return pushed[kind] = id, 0;
}

int cuptiActivityPopExternalCorrelationId(uint32_t kind, uint64_t *last) {
    if (kind < 1 || kind > 5) return 1;
    if (last) *last = pushed[kind];
    return pushed[kind] = 0, 0;
}

/* The ids that precede the record of a call. */
static void external(uint32_t id) {
    for (uint32_t kind = 1; kinds[39] && kind < 6; kind++) {
        if (!pushed[kind]) continue;
        uint8_t *record = room(39);
        PUT(record, 4, uint32_t, kind);
        PUT(record, 8, uint64_t, pushed[kind]);
        PUT(record, 16, uint32_t, id);
    }
}

static int profile(uintptr_t context, const struct standin_work *work);
static void count_events(const struct standin_work *work);

/* The latest call that enqueued work. */
static uint32_t latest_call;

static void work(const struct standin_work *work) {
    latest_call = work->id;
    sample(work);
    int untimed = profile(1, work) || fault("untimed");
    count_events(work);
    uint64_t start = untimed ? 0 : work->start, end = untimed ? 0 : work->end;
    pthread_mutex_lock(&lock);
    external(work->id);
    if (fault("foreign")) room(60);
    if (work->kind == WORK_KERNEL && kinds[10]) {
        put_kernel(work, start, end);
    } else if (work->kind == WORK_COPY && kinds[1]) {
        uint8_t *record = room(1);
        PUT(record, 4, uint8_t, work->copy_kind);
        PUT(record, 5, uint8_t, work->copy_kind == 1 ? 1 : 3);
        PUT(record, 6, uint8_t, work->copy_kind == 2 ? 1 : 3);
        PUT(record, 8, uint64_t, work->bytes);
        PUT(record, 16, uint64_t, start);
        PUT(record, 24, uint64_t, end);
        PUT(record, 36, uint32_t, 1);
        PUT(record, 40, uint32_t, work->stream);
        PUT(record, 44, uint32_t, work->id);
    } else if (work->kind == WORK_PEER_COPY && kinds[22]) {
        uint8_t *record = room(22);
        PUT(record, 4, uint8_t, 10);
        PUT(record, 5, uint8_t, 3);
        PUT(record, 6, uint8_t, 3);
        PUT(record, 8, uint64_t, work->bytes);
        PUT(record, 16, uint64_t, start);
        PUT(record, 24, uint64_t, end);
        PUT(record, 32, uint32_t, 0);
        PUT(record, 36, uint32_t, 1);
        PUT(record, 40, uint32_t, work->stream);
        PUT(record, 44, uint32_t, 0);
        PUT(record, 48, uint32_t, 1);
        PUT(record, 52, uint32_t, 1);
        PUT(record, 56, uint32_t, 2);
        PUT(record, 60, uint32_t, work->id);
    } else if (work->kind == WORK_SET && kinds[2]) {
        uint8_t *record = room(2);
        PUT(record, 8, uint64_t, work->bytes);
        PUT(record, 16, uint64_t, start);
        PUT(record, 24, uint64_t, end);
        PUT(record, 36, uint32_t, 1);
        PUT(record, 40, uint32_t, work->stream);
        PUT(record, 44, uint32_t, work->id);
        PUT(record, 50, uint16_t, 3);
    }
    pthread_mutex_unlock(&lock);
}

static void memory(uint32_t id, int operation, uint64_t address, uint64_t bytes) {
    if (!kinds[49]) return;
    pthread_mutex_lock(&lock);
    uint8_t *record = room(49);
    PUT(record, 4, uint32_t, operation);
    PUT(record, 8, uint32_t, 3);
    PUT(record, 12, uint32_t, id);
    PUT(record, 16, uint64_t, address);
    PUT(record, 24, uint64_t, bytes);
    PUT(record, 32, uint64_t, now());
    pthread_mutex_unlock(&lock);
}

/* Whether the counters of managed memory are configured. */
static int managed;

static void other(const struct standin_other *other) {
    static const uint32_t kind_of[] = {38, 36, 50, 25, 17, 52};
    uint32_t kind = kind_of[other->kind];
    const uint32_t wait = other->kind == OTHER_WAIT && other->what >= 3 ? other->what - 2 : 0;
    if (wait && waits[wait]) {
        const struct { uintptr_t context, stream; } data = {1, wait == 1 ? other->stream : 0};
        callback(user, 4, wait, &data);
    }
    if (!kinds[kind] || (kind == 25 && !managed)) return;
    pthread_mutex_lock(&lock);
    uint8_t *record = room(kind);
    switch (kind) {
    case 38:
        PUT(record, 4, uint32_t, other->what);
        PUT(record, 8, uint64_t, other->start);
        PUT(record, 16, uint64_t, other->end);
        PUT(record, 24, uint32_t, other->id);
        PUT(record, 28, uint32_t, 1);
        PUT(record, 32, uint32_t, other->stream);
        PUT(record, 36, uint32_t, other->event);
        break;
    case 36:
        PUT(record, 4, uint32_t, other->id);
        PUT(record, 8, uint32_t, 1);
        PUT(record, 12, uint32_t, other->stream);
        PUT(record, 16, uint32_t, other->event);
        if (event_times) PUT(record, 40, uint64_t, other->end);
        break;
    case 50:
        PUT(record, 4, uint32_t, other->what);
        PUT(record, 12, uint32_t, other->id);
        PUT(record, 32, uint64_t, other->address);
        PUT(record, 40, uint64_t, other->value);
        PUT(record, 56, uint64_t, other->end);
        break;
    case 25:
        PUT(record, 4, uint32_t, other->what);
        /* Of a fault of the host it is the address of the instruction. */
        PUT(record, 8, uint64_t, other->what == 3 ? 0x55f3aaf122f8 : other->value);
        PUT(record, 16, uint64_t, other->start);
        PUT(record, 24, uint64_t, other->what == 3 ? 0 : other->end);
        PUT(record, 32, uint64_t, other->address);
        PUT(record, 40, uint32_t, other->what == 1 || other->what == 3 ? UINT32_MAX : 0);
        PUT(record, 44, uint32_t, other->what == 2 ? UINT32_MAX : 0);
        break;
    case 52:
        PUT(record, 4, uint32_t, 1);
        PUT(record, 8, uint32_t, other->what);
        PUT(record, 16, uint64_t, other->start);
        PUT(record, 24, uint64_t, other->end);
        PUT(record, 32, uint32_t, other->id);
        PUT(record, 48, uint64_t, other->value);
        PUT(record, 56, uint64_t, other->address);
        break;
    default:
        PUT(record, 4, uint32_t, other->what);
        PUT(record, 24, uint64_t, other->start);
        PUT(record, 32, uint64_t, other->end);
        if (version() >= 1209) PUT(record, 40, uint32_t, other->id);
    }
    pthread_mutex_unlock(&lock);
}

/* Clocks, temperature, power and fan. */
static void environment(void) {
    static const uint32_t values[4][5] = {{1980, 2619, 5, 16, 4}, {61}, {350000, 700000}, {30}};
    for (uint32_t what = 1; kinds[20] && what <= 4; what++) {
        uint8_t *record = room(20);
        PUT(record, 8, uint64_t, now());
        PUT(record, 16, uint32_t, what);
        memcpy(record + 20, values[what - 1], 20);
    }
}

/* Errors and warnings of its own. */
static void troubles(void) {
    static int told;
    const struct { int status; const char *message; } error = {8, "out of something"}, warning = {7, "be careful"};
    if (!fault("troubled") || told++) return;
    if (states[2]) callback(user, 6, 2, &error);
    if (states[3]) callback(user, 6, 3, &warning);
}

/* Records of what is rare: kinds of copies, memory, pools, overhead, waits, external ids and managed memory. */
static void rare(void) {
    static int told;
    static const struct { uint32_t kind, offset, value; } records[] = {
        {1, 4, 0}, {1, 4, 3}, {1, 4, 5}, {1, 4, 9}, {49, 8, 6}, {49, 8, 7}, {50, 4, 3}, {17, 4, 0}, {38, 4, 0}, {39, 4, 1}, {25, 4, 0},
    };
    if (!fault("rare") || !latest_call || told++) return;
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        uint32_t kind = records[i].kind;
        if (!kinds[kind]) continue;
        uint8_t *record = room(kind);
        uint64_t time = now();
        switch (kind) {
        case 1:
            PUT(record, 8, uint64_t, 64);
            PUT(record, 16, uint64_t, time - 10);
            PUT(record, 24, uint64_t, time);
            PUT(record, 36, uint32_t, 1);
            PUT(record, 40, uint32_t, 7);
            break;
        case 49:
            PUT(record, 4, uint32_t, 1);
            PUT(record, 32, uint64_t, time);
            break;
        case 50: PUT(record, 56, uint64_t, time); break;
        case 17:
            PUT(record, 24, uint64_t, time - 10);
            PUT(record, 32, uint64_t, time);
            break;
        case 38:
            PUT(record, 8, uint64_t, time - 10);
            PUT(record, 16, uint64_t, time);
            PUT(record, 28, uint32_t, 1);
            break;
        case 39:
            PUT(record, 8, uint64_t, 79);
            PUT(record, 16, uint32_t, latest_call);
            break;
        default:
            PUT(record, 8, uint64_t, 1);
            PUT(record, 16, uint64_t, time - 10);
            PUT(record, 24, uint64_t, time);
            PUT(record, 56, uint32_t, 1);
        }
        PUT(record, records[i].offset, uint32_t, records[i].value);
        if (kind == 1) PUT(record, 4, uint32_t, records[i].value);
    }
}

static void flush(int forced) {
    troubles();
    if (fault("late") && !forced) return;
    pthread_mutex_lock(&lock);
    environment();
    rare();
    for (struct buffer *buffer = all; buffer; buffer = buffer->next) deliver(buffer);
    pthread_mutex_unlock(&lock);
}

struct callback_data {
    int site;
    const char *name;
    const void *parameters;
    void *status;
    const char *symbol;
    void *context;
    uint32_t context_uid;
    uint64_t *word;
    uint32_t id;
};

static void call(struct standin_call *call, int exits) {
    if (call->number >= 1024 || !enabled[call->domain][call->number]) return;
    /* The handle of a function is its name here. */
    const char *symbol = strstr(call->name, "LaunchKernel") ? *(const char *const *)call->parameters : NULL;
    /* Before cuInit has returned, there is no context. */
    void *context = strcmp(call->name, "cuInit") ? (void *)1 : NULL;
    struct callback_data data = {exits, call->name, call->parameters, &call->status, symbol, context, 1, &call->word, call->id};
    callback(user, (unsigned)call->domain, call->number, &data);
}

static void initialized(void) { callback(user, 3, 5, ""); }

/* The contexts that exist, and whether callbacks about contexts and modules are enabled. */
static struct context {
    uintptr_t handle;
    int device, exists, sampled, serialized;
    uint32_t *data;
} contexts[16];
static uint8_t resources[32];

#define UNDEFINED 0xdeadbeefu

static void tell(uint32_t number, uintptr_t context, uintptr_t handle, const void *descriptor) {
    struct {
        uintptr_t context, handle;
        const void *descriptor;
    } data = {context, handle, descriptor};
    if (resources[number]) callback(user, 3, number, &data);
}

/* The record of a stream that was created, whose flag is 1 (default), 2 (non-blocking) or 3 (the default stream). */
static void created(uint32_t number, int32_t priority, uint32_t flag) {
    if (!kinds[37]) return;
    pthread_mutex_lock(&lock);
    uint8_t *record = room(37);
    PUT(record, 4, uint32_t, 1);
    PUT(record, 8, uint32_t, number);
    PUT(record, 12, int32_t, priority);
    PUT(record, 16, uint32_t, flag);
    pthread_mutex_unlock(&lock);
}

static void context(uintptr_t handle, int device, int exists) {
    static int count;
    if (exists) contexts[count++] = (struct context){.handle = handle, .device = device, .exists = 1};
    if (exists) created(7, 0, 3);
    /* What the union with the stream holds is not defined here. */
    tell(exists ? 1 : 2, handle, UNDEFINED, NULL);
    for (int i = 0; i < count; i++)
        if (contexts[i].handle == handle) contexts[i].exists = exists;
}

static void stream(uintptr_t context, uintptr_t stream, unsigned flags, int priority, int exists) {
    tell(exists ? 3 : 4, context, stream, NULL);
    if (exists) created((uint32_t)stream, priority, flags ? 2 : 1);
}

static void graph(unsigned number, const struct standin_graph *change) { tell(number, 1, 0, (void *)change); }

int cuptiGetGraphId(const uint64_t *graph, uint32_t *number) { in_turn(); return *number = (uint32_t)*graph, 0; }
int cuptiGetGraphExecId(const uint64_t *graph, uint32_t *number) { in_turn(); return *number = (uint32_t)*graph, 0; }
int cuptiGetGraphNodeId(const uint64_t *node, uint64_t *number) { in_turn(); return *number = *node, 0; }

static const char *cubin;

static void module(uintptr_t context, const char *image, size_t size, int exists) {
    struct {
        uint32_t id;
        size_t size;
        const char *cubin;
    } data = {7, size, image};
    cubin = image;
    tell(exists ? 6 : 7, context, 0, &data);
    /* Its only function, whose name is behind the word "function". */
    static char name[64];
    if (!exists || !kinds[26] || sscanf(image, "function %63s", name) != 1) return;
    pthread_mutex_lock(&lock);
    uint8_t *record = room(26);
    PUT(record, 4, uint32_t, 1);
    PUT(record, 8, uint32_t, 1);
    PUT(record, 12, uint32_t, 7);
    PUT(record, 24, const char *, name);
    pthread_mutex_unlock(&lock);
}

int cuptiGetDeviceId(uintptr_t context, uint32_t *device) {
    in_turn();
    for (int i = 0; i < 16; i++)
        if (contexts[i].exists && contexts[i].handle == context) return *device = (uint32_t)contexts[i].device, 0;
    return 3;
}

int cuptiGetContextId(uintptr_t context, uint32_t *id) { in_turn(); return context ? (*id = 1, 0) : 3; }
int cuptiGetStreamIdEx(uintptr_t context, uintptr_t stream, uint8_t per_thread, uint32_t *id) {
    /* With a handle that is none of a stream the real one crashes. */
    if (stream == UNDEFINED || stream == 0x21 || stream == 99) abort();
    (void)context, (void)per_thread;
    in_turn();
    return *id = stream ? (uint32_t)stream : 7, 0;
}

int cuptiSubscribe(void **subscriber, callback_function function, void *data) {
    if (refuses()) return 999;
    if (fault("subscribed")) return 39;
    callback = function;
    user = data;
    *subscriber = &callback;
    void (*observe)(const struct standin_tool *) =
        (void (*)(const struct standin_tool *))dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "standin_observe");
    observe(&(struct standin_tool){call, work, initialized, memory, other, context, module, stream, graph});
    return 0;
}

int cuptiEnableCallback(uint32_t enable, void *subscriber, uint32_t domain, uint32_t number) {
    in_turn();
    if (subscriber != &callback) return 1;
    if (domain < 3 && number < 1024) enabled[domain][number] = (uint8_t)enable;
    if (domain == 3 && number < 32) resources[number] = (uint8_t)enable;
    if (domain == 4 && number < 3) waits[number] = (uint8_t)enable;
    if (domain == 6 && number < 4) states[number] = (uint8_t)enable;
    return 0;
}

int cuptiActivityRegisterCallbacks(request_function requested, complete_function completed) {
    request = requested;
    complete = completed;
    return 0;
}

int cuptiActivityEnable(uint32_t kind) {
    in_turn();
    if (kind >= 64) return 21;
    kinds[kind] = 1;
    if (kind == 10 && fault("before")) {
        struct standin_work early = {.id = 1, .stream = 7, .name = "warm_up", .grid = {1, 1, 1}, .block = {1, 1, 1}};
        pthread_mutex_lock(&lock);
        put_kernel(&early, now() - 2000000000u, now() - 1000000000u);
        pthread_mutex_unlock(&lock);
    }
    return 0;
}

int cuptiActivityDisable(uint32_t kind) { in_turn(); return kind < 64 ? kinds[kind] = 0, 0 : 21; }
int cuptiActivityFlushAll(uint32_t forced) { flush((int)forced); return 0; }

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record) {
    /* Before it has a subscriber it is asked for sizes. */
    if (!callback && fault("unsized") && *(uint32_t *)buffer == 1) return 21;
    uint8_t *next = *record ? *record + size_of(*(uint32_t *)*record) : buffer;
    if (*record && next == *record) return 21;
    if (next >= buffer + valid) return 12;
    *record = next;
    return 0;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped) {
    static int said;
    in_turn();
    if (fault("dropped_in") != (context && stream == 7)) return 1;
    *dropped = fault("dropped") && !said++ ? 3 : 0;
    return 0;
}

int cuptiActivityGetStructSize(uint32_t kind, uint32_t of, size_t *size) {
    if (version() < 1302) return 11;
    if (fault("unsized") && kind == 1) return 21;
    return of == 0 && (*size = size_of(kind)) ? 0 : 21;
}

int cuptiActivityEnableLatencyTimestamps(uint8_t enable) { latency = enable; return 0; }

/* Earlier versions lack it. */
int cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t enable) {
    if (version() < 1300) return 11;
    event_times = enable;
    return 0;
}

int cuptiActivityConfigureUnifiedMemoryCounter(const uint32_t *config, uint32_t count) {
    for (uint32_t i = 0; i < count; i++, config += 4)
        if (config[0] != 2 || config[1] < 1 || config[1] > 8) return 1;
    managed = 1;
    return 0;
}

#ifdef WITHOUT_SAMPLING
static void sample(const struct standin_work *work) { (void)work; }
#else
/* Each launch of a kernel has these samples. */
enum { SCOREBOARD, SCOREBOARD_LATENCY, SELECTED, BARRIER, MATH, NOT_SELECTED, TOTAL, COMMON, MOST = COMMON + 15 };
#define REASON(name) "smsp__pcsamp_warps_issue_stalled_" name
static const char *const reason_names[MOST] = {
    REASON("long_scoreboard"), REASON("long_scoreboard_not_issued"), REASON("selected"), REASON("barrier"),
    REASON("math_pipe_throttle"), REASON("not_selected"), "smsp__pcsamp_sample_count", REASON("gmma"), REASON("imc_miss"),
    REASON("lg_throttle"), REASON("mio_throttle"), REASON("branch_resolving"), REASON("dispatch_stall"), REASON("drain"),
    REASON("membar"), REASON("no_instructions"), REASON("short_scoreboard"), REASON("tex_throttle"), REASON("wait"),
    REASON("warpgroup_arrive"), REASON("sleeping"), REASON("misc"),
};
static const uint32_t per_launch[3][MOST] = {{6, 4, 2}, {[BARRIER] = 3}, {[MATH] = 1, [NOT_SELECTED] = 5}};
/* The rare reasons have a sample each at the first address. */
#define REASONS (fault("rare") ? (uint32_t)MOST : (uint32_t)COMMON)
#define ADDRESSES 3
#define SAMPLES 17
#define NUMBER(reason) (3 * (reason) + 1)

/* The launches whose samples have not been fetched, one for each call in serialized mode. */
static struct sampled {
    struct context *context;
    const char *name;
    uint64_t crc;
    uint32_t correlation, launches, given;
} samples[4096];
static int sampled_count;

static uint64_t crc_of(const char *bytes, size_t size) {
    uint64_t crc = 14695981039346656037u;
    for (size_t i = 0; i < size; i++) crc = (crc ^ (uint8_t)bytes[i]) * 1099511628211u;
    return crc;
}

static void sample(const struct standin_work *work) {
    struct context *to = NULL;
    for (int i = 0; i < 16; i++)
        if (contexts[i].exists) to = &contexts[i];
    if (!to || !to->sampled || work->kind != WORK_KERNEL) return;
    pthread_mutex_lock(&lock);
    struct sampled new = {to, work->name, cubin ? crc_of(cubin, strlen(cubin)) : 0, to->serialized ? work->id : 0, 1, 0};
    for (int i = 0; i < sampled_count && !to->serialized; i++)
        if (samples[i].context == to && samples[i].crc == new.crc && samples[i].given == 0 &&
            !strcmp(samples[i].name, work->name)) {
            samples[i].launches++;
            new.launches = 0;
        }
    if (new.launches && sampled_count < 4096) samples[sampled_count++] = new;
    pthread_mutex_unlock(&lock);
}

/* The structures of the versions. */
struct pc {
    size_t size;
    uint64_t crc, offset;
    uint32_t index, padding;
    char *name;
    size_t reason_count;
    uint32_t (*reasons)[2];
    uint32_t correlation;
};
struct data {
    size_t size, capacity;
    uint64_t total, dropped;
    size_t count, remaining;
    uint64_t range;
    uint8_t *pcs;
    uint64_t foreign;
    uint8_t full;
};
static size_t data_size(void) { return version() <= 1201 ? 72 : 80; }
static size_t pc_size(void) { return version() < 1204 ? 56 : 64; }

/* Moves samples to a buffer: at most `most` addresses. */
static int give(struct context *from, struct data *data, size_t most) {
    if (data->size != data_size() || (data->capacity && ((struct pc *)data->pcs)->size != pc_size())) return 1;
    if (most > data->capacity) most = data->capacity;
    data->total = data->dropped = data->count = data->remaining = 0;
    for (int i = 0; i < sampled_count; i++) {
        struct sampled *one = &samples[i];
        if (one->context != from) continue;
        for (; one->given < ADDRESSES && data->count < most; one->given++) {
            struct pc *pc = (struct pc *)(data->pcs + data->count++ * pc_size());
            pc->crc = one->crc;
            pc->offset = 16 * (one->given + 1);
            pc->name = strdup(one->name);
            if (pc_size() == 64) pc->correlation = one->correlation;
            pc->reason_count = 0;
            for (uint32_t reason = 0; reason < REASONS; reason++) {
                uint32_t each = reason > TOTAL ? one->given == 0 : per_launch[one->given][reason], count = each * one->launches;
                if (!count) continue;
                if (reason != SCOREBOARD_LATENCY) data->total += count;
                pc->reasons[pc->reason_count][0] = NUMBER(reason);
                pc->reasons[pc->reason_count++][1] = count;
            }
        }
        data->remaining += ADDRESSES - one->given;
    }
    int kept = 0;
    for (int i = 0; i < sampled_count; i++)
        if (samples[i].given < ADDRESSES) samples[kept++] = samples[i];
    sampled_count = kept;
    return 0;
}

struct parameters {
    size_t size;
    void *private;
    uintptr_t context;
    void *answers[3];
};

static struct context *of(const struct parameters *parameters, size_t size) {
    for (int i = 0; i < 16; i++)
        if (parameters->size == size && contexts[i].exists && contexts[i].handle == parameters->context) return &contexts[i];
    return NULL;
}

int cuptiPCSamplingEnable(struct parameters *parameters) {
    struct context *one = of(parameters, 24);
    if (!one) return 1;
    if (fault("old_device")) return 27;
    if (fault("no_privileges")) return 35;
    return one->sampled = 1, 0;
}

int cuptiPCSamplingGetNumStallReasons(struct parameters *parameters) {
    struct context *one = of(parameters, 32);
    if (!one || !one->sampled) return 1;
    *(size_t *)parameters->answers[0] = REASONS;
    return 0;
}

int cuptiPCSamplingGetStallReasons(struct parameters *parameters) {
    struct context *one = of(parameters, 48);
    if (!one || !one->sampled || (size_t)parameters->answers[0] != REASONS) return 1;
    for (uint32_t i = 0; i < REASONS; i++) {
        ((uint32_t *)parameters->answers[1])[i] = NUMBER(i);
        strcpy(((char **)parameters->answers[2])[i], reason_names[i]);
    }
    return 0;
}

int cuptiPCSamplingSetConfigurationAttribute(struct parameters *parameters) {
    struct { uint32_t what, status; uint64_t value[3]; } *attribute = parameters->answers[1];
    struct context *one = of(parameters, 40);
    if (!one || !one->sampled) return 1;
    for (size_t i = 0; i < (size_t)parameters->answers[0]; i++, attribute++) {
        uint64_t value = attribute->value[0];
        attribute->status = 0;
        if (attribute->what == 5 && (value == 1 || value == 2)) one->serialized = value == 2;
        else if (attribute->what == 8) one->data = (uint32_t *)(uintptr_t)value;
        else if (!(attribute->what == 1 && value >= 5 && value <= 31) && !(attribute->what == 2 && value == REASONS) &&
                 !(attribute->what == 7 && value == 1))
            return attribute->status = 7, 1;
    }
    return 0;
}

int cuptiPCSamplingGetData(struct parameters *parameters) {
    static int full, lost;
    struct context *one = of(parameters, 32);
    if (!one || !one->sampled) return 7;
    struct data *data = parameters->answers[0];
    pthread_mutex_lock(&lock);
    int status = give(one, data, fault("at_end") ? 0 : fault("bit_by_bit") ? 1 : SIZE_MAX);
    pthread_mutex_unlock(&lock);
    if (fault("at_end")) data->remaining = 0;
    if (!status && data->count && fault("lost_samples") && !lost++) data->total += data->dropped = 5;
    if (!status && fault("full_buffer") && !full++) {
        if (data_size() == 80) data->full = 1;
        return 8;
    }
    return status;
}

int cuptiPCSamplingDisable(struct parameters *parameters) {
    struct context *one = of(parameters, 24);
    if (!one || !one->sampled) return 1;
    pthread_mutex_lock(&lock);
    int status = give(one, (struct data *)one->data, SIZE_MAX);
    pthread_mutex_unlock(&lock);
    one->sampled = 0;
    return status;
}

struct crc {
    size_t size, cubin_size;
    const char *cubin;
    uint64_t crc;
};

int cuptiGetCubinCrc(struct crc *parameters) {
    if (parameters->size != 32 || !parameters->cubin_size) return 1;
    parameters->crc = crc_of(parameters->cubin, parameters->cubin_size);
    return 0;
}

struct line {
    size_t size;
    const char *cubin, *function;
    size_t cubin_size;
    uint32_t line;
    uint64_t offset;
    char *file, *folder;
};

/* A cubin has a line "function NAME FILE" for each function, without a file if there is no line information. */
int cuptiGetSassToSourceCorrelation(struct line *parameters) {
    char line[256];
    if (parameters->size != 64) return 1;
    for (size_t i = 0; i < parameters->cubin_size;) {
        const char *start = parameters->cubin + i, *end = memchr(start, '\n', parameters->cubin_size - i);
        size_t length = end ? (size_t)(end - start) : parameters->cubin_size - i;
        snprintf(line, sizeof line, "%.*s", (int)length, start);
        i += length + 1;
        char name[128] = "", file[128] = "";
        if (sscanf(line, "function %127s %127s", name, file) < 1 || strcmp(name, parameters->function)) continue;
        parameters->file = strdup(file);
        parameters->folder = strdup(*file ? "/src" : "");
        parameters->line = *file ? 100 + (uint32_t)(parameters->offset / 16) : 0;
        return 0;
    }
    return 999;
}
#endif

#include "events.c"

#ifdef WITHOUT_PROFILER
static int profile(uintptr_t context, const struct standin_work *work) { (void)context, (void)work; }
#else
#include "profiler.c"
#endif
