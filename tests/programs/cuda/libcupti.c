/* A stand-in of libcupti, by our own declarations. See standin.h.
 *
 *     STANDIN_VERSION   1108, 1201, 1209, 1300, 1301, 1303, 1305: sizes of records, and which functions there are
 *     STANDIN_FAULT     words: subscribed (another subscriber), unknown (999 to all), before (a record from before the
 *                       start), untimed (kernels without times), dropped (says so), late (buffers come at the forced flush),
 *                       never (buffers do not come), foreign (records of unknown kinds) */
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
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A buffer that is being filled; from version 13 on there is one for each thread. */
struct buffer {
    uint8_t *start;
    size_t size, used;
    struct buffer *next;
};
static struct buffer shared, *all = &shared;
static __thread struct buffer *own;

static uint64_t (*now)(void);
static uint8_t latency, event_times;

static int version(void) {
    const char *text = getenv("STANDIN_VERSION");
    return text ? atoi(text) : 1209;
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
    case 38: return v < 1209 ? 40 : 56;
    case 50: return v < 1300 ? 72 : 80;
    case 60: return 48;
    default: return 0;
    }
}

int cuptiGetVersion(uint32_t *answer) { if (refuses()) return 999; *answer = (uint32_t)version(); return 0; }
int cuptiGetTimestamp(uint64_t *time) { if (refuses()) return 999; *time = now(); return 0; }

static struct { int domain; unsigned number; const char *name; } names[] = {
    {DRIVER, 1, "cuInit"}, {DRIVER, 243, "cuMemAlloc_v2"}, {DRIVER, 245, "cuMemFree_v2"},
    {DRIVER, 276, "cuMemcpyHtoD_v2"}, {DRIVER, 249, "cuMemsetD8_v2"}, {DRIVER, 307, "cuLaunchKernel"},
    {DRIVER, 519, "cuGraphLaunch"}, {DRIVER, 126, "cuStreamSynchronize"}, {DRIVER, 125, "cuStreamQuery"},
    {RUNTIME, 211, "cudaLaunchKernel_v7000"}, {DRIVER, 800, "cuNew"}, {DRIVER, 17, "cuCtxSynchronize"},
    {DRIVER, 119, "cuEventRecord"}, {DRIVER, 121, "cuEventSynchronize"}, {DRIVER, 295, "cuStreamWaitEvent"},
    {DRIVER, 607, "cuMemPoolCreate"}, {DRIVER, 608, "cuMemPoolDestroy"}, {DRIVER, 371, "cuMemAllocManaged"},
    {DRIVER, 278, "cuMemcpyDtoH_v2"}, {DRIVER, 280, "cuMemcpyDtoD_v2"}, {DRIVER, 277, "cuMemcpyHtoDAsync_v2"},
    {DRIVER, 279, "cuMemcpyDtoHAsync_v2"}, {DRIVER, 251, "cuMemsetD32_v2"},
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
    complete(NULL, 0, start, buffer->size, used);
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
    PUT(record, 144, uint64_t, work->graph_node);
    PUT(record, 156, uint32_t, work->graph_node ? 5 : 0);
}

static void work(const struct standin_work *work) {
    int untimed = fault("untimed");
    uint64_t start = untimed ? 0 : work->start, end = untimed ? 0 : work->end;
    pthread_mutex_lock(&lock);
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
    static const uint32_t kind_of[] = {38, 36, 50, 25, 17};
    uint32_t kind = kind_of[other->kind];
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
        PUT(record, 8, uint64_t, other->value);
        PUT(record, 16, uint64_t, other->start);
        PUT(record, 24, uint64_t, other->what == 3 ? 0 : other->end);
        PUT(record, 32, uint64_t, other->address);
        PUT(record, 40, uint32_t, other->what == 1 || other->what == 3 ? UINT32_MAX : 0);
        PUT(record, 44, uint32_t, other->what == 2 ? UINT32_MAX : 0);
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

static void flush(int forced) {
    if (fault("late") && !forced) return;
    pthread_mutex_lock(&lock);
    environment();
    for (struct buffer *buffer = all; buffer; buffer = buffer->next) deliver(buffer);
    pthread_mutex_unlock(&lock);
}

static void flush_now(void) { flush(0); }

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
    struct callback_data data = {exits, call->name, call->parameters, &call->status, NULL, NULL, 1, &call->word, call->id};
    callback(user, (unsigned)call->domain, call->number, &data);
}

static void initialized(void) { callback(user, 3, 5, ""); }

int cuptiSubscribe(void **subscriber, callback_function function, void *data) {
    if (refuses()) return 999;
    if (fault("subscribed")) return 39;
    callback = function;
    user = data;
    *subscriber = &callback;
    void (*observe)(const struct standin_tool *) =
        (void (*)(const struct standin_tool *))dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "standin_observe");
    observe(&(struct standin_tool){call, work, initialized, flush_now, memory, other});
    return 0;
}

int cuptiEnableCallback(uint32_t enable, void *subscriber, uint32_t domain, uint32_t number) {
    if (subscriber != &callback) return 1;
    if (domain < 3 && number < 1024) enabled[domain][number] = (uint8_t)enable;
    return 0;
}

int cuptiActivityRegisterCallbacks(request_function requested, complete_function completed) {
    request = requested;
    complete = completed;
    return 0;
}

int cuptiActivityEnable(uint32_t kind) {
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

int cuptiActivityDisable(uint32_t kind) { return kind < 64 ? kinds[kind] = 0, 0 : 21; }
int cuptiActivityFlushAll(uint32_t forced) { flush((int)forced); return 0; }

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record) {
    uint8_t *next = *record ? *record + size_of(*(uint32_t *)*record) : buffer;
    if (*record && next == *record) return 21;
    if (next >= buffer + valid) return 12;
    *record = next;
    return 0;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped) {
    static int said;
    (void)context, (void)stream;
    *dropped = fault("dropped") && !said++ ? 3 : 0;
    return 0;
}

int cuptiActivityGetStructSize(uint32_t kind, uint32_t of, size_t *size) {
    if (version() < 1302) return 11;
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
