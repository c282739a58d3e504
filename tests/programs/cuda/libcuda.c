/* A stand-in of libcuda.so.1, with a few functions of the runtime API in it. See standin.h. */
#include "standin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct standin_tool tool;
static uint32_t last_id = 100;

void standin_observe(const struct standin_tool *observer) { tool = *observer; }

uint64_t standin_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static __thread uint32_t outer_id;

/* A call of the runtime and those of the driver that it makes have one id. */
#define CALL(domain_, number_, name_, parameters_)                                                                        \
    struct standin_call call = {domain_, number_, name_, parameters_, 0, 0, 0};                                           \
    uint32_t outer = outer_id;                                                                                            \
    call.id = outer ? outer : __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);                                          \
    if (domain_ == RUNTIME) outer_id = call.id;                                                                           \
    if (tool.call) tool.call(&call, 0)

#define END(status_)                                                                                                      \
    do {                                                                                                                  \
        call.status = status_;                                                                                            \
        if (tool.call) tool.call(&call, 1);                                                                               \
        outer_id = outer;                                                                                                 \
        return call.status;                                                                                               \
    } while (0)

/* Work runs while the call that enqueues it does. */
static void work(struct standin_work work) {
    work.start = standin_now();
    while (standin_now() < work.start + 20000) {}
    work.end = standin_now();
    if (tool.work) tool.work(&work);
}

int cuInit(unsigned flags) {
    static int initialized;
    if (initialized) return 0;
    initialized = 1;
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path && *path ? dlopen(path, RTLD_NOW) : NULL;
    if (path && *path && !library) fprintf(stderr, "%s\n", dlerror());
    int (*initialize)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
    /* The driver may do so more than once. */
    if (initialize) initialize(), initialize();
    if (tool.initialized) tool.initialized();
    struct { unsigned flags; } parameters = {flags};
    CALL(DRIVER, 1, "cuInit", &parameters);
    END(0);
}

int cuDriverGetVersion(int *version) { *version = 12080; return 0; }
/* STANDIN_DEVICES is the number of devices; the first has the default stream, the last all others. */
int cuDeviceGetCount(int *count) {
    const char *text = getenv("STANDIN_DEVICES");
    *count = text ? atoi(text) : 1;
    return 0;
}
int cuDeviceGet(int *device, int number) { *device = number; return 0; }
int cuDeviceGetName(char *name, int length, int device) { snprintf(name, length, "Stand-in %d", device); return 0; }
int cuDeviceGetPCIBusId(char *name, int length, int device) { snprintf(name, length, "0000:%02x:00.0", device); return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = 1u << 30; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    const char *capability = getenv("STANDIN_CAPABILITY");
    *value = attribute == 75 ? capability ? atoi(capability) : 9 : attribute == 76 ? 0 : attribute == 16 ? 132 : attribute == 13 ? 1980000 : 1024;
    return 0;
}

int cuMemAlloc_v2(uint64_t *pointer, size_t bytes) {
    struct { uint64_t *pointer; size_t bytes; } parameters = {pointer, bytes};
    CALL(DRIVER, 243, "cuMemAlloc_v2", &parameters);
    if (bytes > 1u << 30) END(2);
    *pointer = (uint64_t)(uintptr_t)malloc(bytes);
    if (tool.memory) tool.memory(call.id, 1, *pointer, bytes);
    END(0);
}

int cuMemFree_v2(uint64_t pointer) {
    struct { uint64_t pointer; } parameters = {pointer};
    CALL(DRIVER, 245, "cuMemFree_v2", &parameters);
    if (tool.memory) tool.memory(call.id, 2, pointer, 0);
    free((void *)(uintptr_t)pointer);
    END(0);
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
    struct { uint64_t to; const void *from; size_t bytes; } parameters = {to, from, bytes};
    CALL(DRIVER, 276, "cuMemcpyHtoD_v2", &parameters);
    memcpy((void *)(uintptr_t)to, from, bytes);
    work((struct standin_work){.kind = WORK_COPY, .id = call.id, .stream = 7, .bytes = bytes, .copy_kind = 1});
    END(0);
}

/* All copies take these arguments, the synchronous ones without the stream. */
static int copy(unsigned number, const char *name, uint64_t to, uint64_t from, size_t bytes, uintptr_t stream, int kind) {
    struct { uint64_t to, from; size_t bytes; uintptr_t stream; } parameters = {to, from, bytes, stream};
    CALL(DRIVER, number, name, &parameters);
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    work((struct standin_work){.kind = WORK_COPY, .id = call.id, .stream = stream ? (uint32_t)stream : 7, .bytes = bytes,
                               .copy_kind = kind});
    END(0);
}

#define ADDRESS(pointer) ((uint64_t)(uintptr_t)(pointer))

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
    return copy(278, "cuMemcpyDtoH_v2", ADDRESS(to), from, bytes, 0, 2);
}
int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes) {
    return copy(280, "cuMemcpyDtoD_v2", to, from, bytes, 0, 8);
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, uintptr_t stream) {
    return copy(277, "cuMemcpyHtoDAsync_v2", to, ADDRESS(from), bytes, stream, 1);
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, uintptr_t stream) {
    return copy(279, "cuMemcpyDtoHAsync_v2", ADDRESS(to), from, bytes, stream, 2);
}

/* From device 0 to device 1. */
int cuMemcpyPeer(uint64_t to, uintptr_t to_context, uint64_t from, uintptr_t from_context, size_t bytes) {
    struct { uint64_t to; uintptr_t to_context; uint64_t from; uintptr_t from_context; size_t bytes; } parameters =
        {to, to_context, from, from_context, bytes};
    CALL(DRIVER, 317, "cuMemcpyPeer", &parameters);
    work((struct standin_work){.kind = WORK_PEER_COPY, .id = call.id, .stream = 7, .bytes = bytes});
    END(0);
}

int cuMemsetD32_v2(uint64_t to, unsigned value, size_t count) {
    struct { uint64_t to; unsigned value; size_t count; } parameters = {to, value, count};
    CALL(DRIVER, 251, "cuMemsetD32_v2", &parameters);
    for (size_t i = 0; i < count; i++) ((unsigned *)(uintptr_t)to)[i] = value;
    work((struct standin_work){.kind = WORK_SET, .id = call.id, .stream = 7, .bytes = 4 * count});
    END(0);
}

/* Without callbacks: calls that nothing is checked of. */
int cuCtxSetCurrent(uint64_t context) { return context ? 0 : 201; }

/* The context that was created last has all modules. */
static uintptr_t context;

int cuDevicePrimaryCtxRetain(uint64_t *primary, int device) {
    static int created;
    if (!created++ && tool.context) tool.context(context = 1, device, 1);
    *primary = 1;
    return 0;
}
int cuCtxCreate_v2(uintptr_t *created, unsigned flags, int device) {
    static uintptr_t last = 0x1000;
    (void)flags;
    *created = context = ++last;
    if (tool.context) tool.context(context, device, 1);
    return 0;
}
int cuCtxDestroy_v2(uintptr_t destroyed) {
    if (tool.context) tool.context(destroyed, 0, 0);
    return 0;
}

/* An image is a text. It is the cubin, too. */
int cuModuleLoadData(uint64_t *module, const void *image) {
    struct { uint64_t *module; const void *image; } parameters = {module, image};
    CALL(DRIVER, 19, "cuModuleLoadData", &parameters);
    *module = ADDRESS(image);
    if (tool.module) tool.module(context, image, strlen(image), 1);
    struct standin_other one = {OTHER_JIT, call.id, 3, 0, 0, standin_now() - 1000, standin_now(), ADDRESS("/cache/index"), 4096};
    if (tool.other) tool.other(&one);
    END(0);
}
int cuModuleUnload(uint64_t module) {
    const char *image = (const char *)(uintptr_t)module;
    if (tool.module) tool.module(context, image, strlen(image), 0);
    return 0;
}
int cuMemAllocHost_v2(void **pointer, size_t bytes) { return *pointer = malloc(bytes), 0; }
int cuMemFreeHost(void *pointer) { return free(pointer), 0; }
int cuStreamCreateWithPriority(uintptr_t *stream, unsigned flags, int priority) {
    static uintptr_t last = 12;
    *stream = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    if (tool.stream) tool.stream(context, *stream, flags, priority, 1);
    return 0;
}
int cuStreamCreate(uintptr_t *stream, unsigned flags) { return cuStreamCreateWithPriority(stream, flags, 0); }
int cuStreamDestroy_v2(uintptr_t stream) {
    if (tool.stream) tool.stream(context, stream, 0, 0, 0);
    return 0;
}

int cuStreamGetCtx(uintptr_t stream, uintptr_t *of) { (void)stream; return *of = 1, 0; }

/* The times of events, by number. */
static uint64_t times[1024];

int cuEventCreate(uintptr_t *event, unsigned flags) {
    static uintptr_t last = 100;
    (void)flags;
    *event = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    return 0;
}
int cuEventElapsedTime(float *milliseconds, uintptr_t start, uintptr_t end) {
    *milliseconds = (float)(times[end] - times[start]) / 1e6f;
    return 0;
}

/* A kernel is its name. */
int cuModuleGetFunction(const char **function, uint64_t module, const char *name) {
    static const char *const names[] = {"saxpy", "empty", "spin", "fault"};
    (void)module;
    for (int i = 0; i < 4; i++)
        if (!strcmp(names[i], name)) return *function = names[i], 0;
    return 500;
}

/* A launch with the arguments of saxpy, which alone computes something. */
struct launch {
    uint64_t node;
    const char *name;
    unsigned size[6], count;
    float factor;
    uint64_t x, y;
};
static int faulted;

static void execute(const struct launch *launch) {
    const float *x = (const float *)(uintptr_t)launch->x;
    float *y = (float *)(uintptr_t)launch->y;
    for (unsigned i = 0; i < launch->count; i++) y[i] = launch->factor * x[i] + y[i];
    if (!strcmp(launch->name, "fault")) faulted = 1;
}

/* A graph or executable graph, whose nodes run one after the other. */
struct graph {
    uint64_t number;
    unsigned count;
    struct launch launches[64];
};
/* The stream whose launches become a graph, and the graph. */
static uintptr_t capturing;
static struct graph *captured;

static struct graph *new_graph(void) {
    static uint64_t graphs;
    struct graph *graph = calloc(1, sizeof *graph);
    graph->number = __atomic_add_fetch(&graphs, 1, __ATOMIC_RELAXED);
    return graph;
}

/* CUPTI's numbers of what happens to graphs. */
enum {
    CREATED = 9, DESTROYED, CLONED, NODE_CREATED = 13, NODE_DESTROYED, DEPENDENCY_CREATED, DEPENDENCY_DESTROYED,
    EXECUTABLE_CREATED = 18, EXECUTABLE_DESTROYED, NODE_CLONED
};

static void changed(unsigned number, struct standin_graph change) {
    if (tool.graph) tool.graph(number, &change);
}

static void add_node(struct graph *graph, struct launch launch) {
    struct launch *node = &graph->launches[graph->count++];
    *node = launch;
    node->node = graph->count;
    changed(NODE_CREATED, (struct standin_graph){.graph = graph, .node = node});
    /* Nodes of all types, which are not launched. */
    const char *fault = getenv("STANDIN_FAULT");
    for (int type = 3; fault && strstr(fault, "rare") && type <= 13; type++)
        changed(NODE_CREATED, (struct standin_graph){.graph = graph, .node = node, .node_type = type});
    if (graph->count > 1)
        changed(DEPENDENCY_CREATED, (struct standin_graph){.graph = graph, .node = node - 1, .dependency = node});
}

int cuStreamBeginCapture_v2(uintptr_t stream, unsigned mode) {
    (void)mode;
    capturing = stream;
    captured = new_graph();
    changed(CREATED, (struct standin_graph){.graph = captured});
    return 0;
}
int cuStreamIsCapturing(uintptr_t stream, int *status) { return *status = stream && stream == capturing, 0; }
int cuStreamEndCapture(uintptr_t stream, struct graph **graph) {
    (void)stream;
    capturing = 0;
    *graph = captured;
    return 0;
}
int cuGraphInstantiateWithFlags(struct graph **executable, struct graph *graph, uint64_t flags) {
    struct { void *executable, *graph; uint64_t flags; } parameters = {executable, graph, flags};
    CALL(DRIVER, 643, "cuGraphInstantiateWithFlags", &parameters);
    struct graph *clone = new_graph(), *made = new_graph();
    changed(CLONED, (struct standin_graph){.graph = clone, .original_graph = graph});
    *made = (struct graph){made->number, graph->count, {{0}}};
    for (unsigned node = 0; node < graph->count; node++) {
        made->launches[node] = graph->launches[node];
        changed(NODE_CLONED, (struct standin_graph){clone, graph, &made->launches[node], &graph->launches[node], 0, NULL, NULL});
    }
    changed(EXECUTABLE_CREATED, (struct standin_graph){.graph = clone, .executable = made});
    *executable = made;
    END(0);
}
int cuGraphExecDestroy(struct graph *executable) {
    changed(EXECUTABLE_DESTROYED, (struct standin_graph){.executable = executable});
    free(executable);
    return 0;
}
int cuGraphDestroy(struct graph *graph) {
    for (unsigned node = 0; node < graph->count; node++) {
        if (node + 1 < graph->count)
            changed(DEPENDENCY_DESTROYED, (struct standin_graph){.graph = graph, .node = &graph->launches[node], .dependency = &graph->launches[node + 1]});
        changed(NODE_DESTROYED, (struct standin_graph){.graph = graph, .node = &graph->launches[node]});
    }
    changed(DESTROYED, (struct standin_graph){.graph = graph});
    free(graph);
    return 0;
}

int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t bytes) {
    struct { uint64_t to; unsigned char value; size_t bytes; } parameters = {to, value, bytes};
    CALL(DRIVER, 249, "cuMemsetD8_v2", &parameters);
    memset((void *)(uintptr_t)to, value, bytes);
    work((struct standin_work){.kind = WORK_SET, .id = call.id, .stream = 7, .bytes = bytes});
    END(0);
}

static struct standin_work kernel(uint32_t id, uint32_t stream, const char *name, const unsigned *size) {
    struct standin_work work = {.kind = WORK_KERNEL, .id = id, .stream = stream, .name = name};
    memcpy(work.grid, size, sizeof work.grid);
    memcpy(work.block, size + 3, sizeof work.block);
    return work;
}

/* A stream is its number. */
int cuLaunchKernel(const char *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, uintptr_t stream, void **arguments, void **extra) {
    struct {
        const char *function;
        unsigned size[6], shared;
        uintptr_t stream;
        void **arguments, **extra;
    } parameters = {function, {gx, gy, gz, bx, by, bz}, shared, stream, arguments, extra};
    CALL(DRIVER, 307, "cuLaunchKernel", &parameters);
    if (!bx || bx > 1024) END(1);
    struct launch launch = {0, function, {gx, gy, gz, bx, by, bz}, 0, 0, 0, 0};
    if (arguments && !strcmp(function, "saxpy")) {
        launch.count = *(unsigned *)arguments[0];
        launch.factor = *(float *)arguments[1];
        launch.x = *(uint64_t *)arguments[2];
        launch.y = *(uint64_t *)arguments[3];
    }
    if (stream && stream == capturing) {
        add_node(captured, launch);
        END(0);
    }
    execute(&launch);
    work(kernel(call.id, stream ? (uint32_t)stream : 7, function, parameters.size));
    END(0);
}

/* The launches that were captured; without a graph, three kernels. */
int cuGraphLaunch(struct graph *graph, uintptr_t stream) {
    struct { void *graph; uintptr_t stream; } parameters = {graph, stream};
    CALL(DRIVER, 519, "cuGraphLaunch", &parameters);
    for (unsigned node = 0; graph && node < graph->count; node++) {
        struct launch *launch = &graph->launches[node];
        struct standin_work one = kernel(call.id, (uint32_t)stream, launch->name, launch->size);
        one.graph_node = node + 1;
        one.graph = (uint32_t)graph->number;
        execute(launch);
        work(one);
    }
    if (graph) END(0);
    for (unsigned node = 1; node <= 3; node++) {
        const unsigned size[6] = {node, 1, 1, 32, 1, 1};
        struct standin_work one = kernel(call.id, stream ? (uint32_t)stream : 7, "node", size);
        one.graph_node = node;
        one.graph = 5;
        work(one);
    }
    END(0);
}

/* What is no work, from `start` until now. */
static void other(int kind, uint32_t id, uint32_t what, uint32_t stream, uint32_t event, uint64_t start) {
    struct standin_other one = {kind, id, what, stream, event, start, standin_now(), 0, 0};
    if (tool.other) tool.other(&one);
}

int cuStreamSynchronize(uintptr_t stream) {
    struct { uintptr_t stream; } parameters = {stream};
    CALL(DRIVER, 126, "cuStreamSynchronize", &parameters);
    other(OTHER_WAIT, call.id, 3, stream ? (uint32_t)stream : 7, 0, standin_now());
    END(0);
}

int cuCtxSynchronize(void) {
    struct { int unused; } parameters = {0};
    CALL(DRIVER, 17, "cuCtxSynchronize", &parameters);
    if (faulted) END(700);
    other(OTHER_WAIT, call.id, 4, UINT32_MAX, UINT32_MAX, standin_now());
    END(0);
}

/* An event is a number. */
int cuEventRecord(uintptr_t event, uintptr_t stream) {
    struct { uintptr_t event, stream; } parameters = {event, stream};
    CALL(DRIVER, 119, "cuEventRecord", &parameters);
    times[event % 1024] = standin_now();
    other(OTHER_EVENT, call.id, 0, stream ? (uint32_t)stream : 7, (uint32_t)event, standin_now());
    END(0);
}

int cuEventSynchronize(uintptr_t event) {
    struct { uintptr_t event; } parameters = {event};
    CALL(DRIVER, 121, "cuEventSynchronize", &parameters);
    other(OTHER_WAIT, call.id, 1, UINT32_MAX, (uint32_t)event, standin_now());
    END(0);
}

int cuStreamWaitEvent(uintptr_t stream, uintptr_t event, unsigned flags) {
    struct { uintptr_t stream, event; unsigned flags; } parameters = {stream, event, flags};
    CALL(DRIVER, 295, "cuStreamWaitEvent", &parameters);
    other(OTHER_WAIT, call.id, 2, stream ? (uint32_t)stream : 7, (uint32_t)event, standin_now());
    END(0);
}

int cuMemPoolCreate(uint64_t *pool, const void *properties) {
    struct { uint64_t *pool; const void *properties; } parameters = {pool, properties};
    CALL(DRIVER, 607, "cuMemPoolCreate", &parameters);
    *pool = 0x5000;
    struct standin_other one = {OTHER_POOL, call.id, 1, 0, 0, 0, standin_now(), *pool, 1 << 20};
    if (tool.other) tool.other(&one);
    END(0);
}

int cuMemPoolDestroy(uint64_t pool) {
    struct { uint64_t pool; } parameters = {pool};
    CALL(DRIVER, 608, "cuMemPoolDestroy", &parameters);
    struct standin_other one = {OTHER_POOL, call.id, 2, 0, 0, 0, standin_now(), pool, 1 << 20};
    if (tool.other) tool.other(&one);
    END(0);
}

/* Managed memory that both sides touch: pages move both ways, with faults of both. */
int cuMemAllocManaged(uint64_t *pointer, size_t bytes, unsigned flags) {
    struct { uint64_t *pointer; size_t bytes; unsigned flags; } parameters = {pointer, bytes, flags};
    CALL(DRIVER, 371, "cuMemAllocManaged", &parameters);
    *pointer = (uint64_t)(uintptr_t)malloc(bytes);
    for (uint32_t what = 1; what <= 4; what++) {
        struct standin_other one = {OTHER_MANAGED, 0, what, 0, 0, standin_now(), 0, *pointer, what < 3 ? bytes : what};
        one.end = one.start + 5000;
        if (tool.other) tool.other(&one);
    }
    other(OTHER_OVERHEAD, call.id, 1, 0, 0, standin_now() - 1000);
    END(0);
}

int cuStreamQuery(uintptr_t stream) {
    struct { uintptr_t stream; } parameters = {stream};
    CALL(DRIVER, 125, "cuStreamQuery", &parameters);
    END(600);
}

struct dim3 { unsigned x, y, z; };

int cudaLaunchKernel(const char *function, struct dim3 grid, struct dim3 block, void **arguments, size_t shared,
                     uintptr_t stream) {
    struct {
        const char *function;
        struct dim3 grid, block;
        void **arguments;
        size_t shared;
        uintptr_t stream;
    } parameters = {function, grid, block, arguments, shared, stream};
    CALL(RUNTIME, 211, "cudaLaunchKernel", &parameters);
    END(cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared, stream, arguments, NULL));
}
