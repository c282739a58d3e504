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
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int number) { *device = number; return 0; }
int cuDeviceGetName(char *name, int length, int device) { snprintf(name, length, "Stand-in %d", device); return 0; }
int cuDeviceGetPCIBusId(char *name, int length, int device) { snprintf(name, length, "0000:%02x:00.0", device); return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = 1u << 30; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 16 ? 132 : attribute == 13 ? 1980000 : 1024;
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

/* A function is the name of a kernel, a stream its number. */
int cuLaunchKernel(const char *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, uintptr_t stream, void **arguments, void **extra) {
    struct {
        const char *function;
        unsigned size[6], shared;
        uintptr_t stream;
        void **arguments, **extra;
    } parameters = {function, {gx, gy, gz, bx, by, bz}, shared, stream, arguments, extra};
    CALL(DRIVER, 307, "cuLaunchKernel", &parameters);
    if (!bx) END(1);
    work(kernel(call.id, stream ? (uint32_t)stream : 7, function, parameters.size));
    END(0);
}

/* A graph of three kernels. */
int cuGraphLaunch(void *graph, uintptr_t stream) {
    struct { void *graph; uintptr_t stream; } parameters = {graph, stream};
    CALL(DRIVER, 519, "cuGraphLaunch", &parameters);
    for (unsigned node = 1; node <= 3; node++) {
        const unsigned size[6] = {node, 1, 1, 32, 1, 1};
        struct standin_work one = kernel(call.id, stream ? (uint32_t)stream : 7, "node", size);
        one.graph_node = node;
        work(one);
    }
    END(0);
}

int cuStreamSynchronize(uintptr_t stream) {
    struct { uintptr_t stream; } parameters = {stream};
    CALL(DRIVER, 126, "cuStreamSynchronize", &parameters);
    if (tool.flush) tool.flush();
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
