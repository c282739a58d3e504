/* What the parts of the stand-in of ROCm share: the structures of rocprofiler-sdk's interface as its version VERSION has them,
 * and what the stand-in of the runtimes (runtime.c) and that of the SDK (sdk.c, tracing.c, sampling.c, counting.c) say to each
 * other, which the real libraries do by their tables of functions. All of it is declared here anew.
 *
 * VERSION is 10000 times the major version, 100 times the minor one, and the patch: 500, 600, 10000, 10200, 10300. */
#include <stddef.h>
#include <stdint.h>

#ifndef VERSION
#define VERSION 10300
#endif
#define BEFORE_1_0 (VERSION < 10000)

enum {
    SUCCESS, ERROR, CONTEXT_NOT_FOUND, BUFFER_NOT_FOUND, KIND_NOT_FOUND, OPERATION_NOT_FOUND, THREAD_NOT_FOUND, AGENT_NOT_FOUND,
    COUNTER_NOT_FOUND, CONTEXT_ERROR, CONTEXT_INVALID, CONTEXT_NOT_STARTED, CONTEXT_CONFLICT, CONTEXT_ID_NOT_ZERO, BUFFER_BUSY,
    SERVICE_ALREADY_CONFIGURED, CONFIGURATION_LOCKED, NOT_IMPLEMENTED, INCOMPATIBLE_ABI, INVALID_ARGUMENT,
    METRIC_NOT_VALID_FOR_AGENT, FINALIZED, HSA_NOT_LOADED, DIM_NOT_FOUND, PROFILE_COUNTER_NOT_FOUND, INCOMPATIBLE_KERNEL = 28,
    OUT_OF_RESOURCES, AGENT_DISPATCH_CONFLICT = 31, NO_HARDWARE_COUNTERS = 35, NOT_AVAILABLE = 37, EXCEEDS_HW_LIMIT,
    AGENT_ARCH_NOT_SUPPORTED, PERMISSION_DENIED
};

/* Kinds of callbacks. Before 1.0 those from ROCJPEG on are missing, in 0.5 that of ROCDECODE, too. */
enum {
    C_HSA = 1, C_HSA_AMD, C_HIP = 5, C_HIP_COMPILER, C_MARKER, C_CODE = 10, C_SCRATCH, C_KERNEL, C_COPY, C_RCCL, C_OMPT,
    C_ALLOCATION, C_RUNTIME, C_STREAM = 20, C_RANGE,
    C_KINDS = VERSION < 600 ? 18 : BEFORE_1_0 ? 19 : 22
};
/* Kinds of records. Before 1.0 there was one more after the kernels: migrations of pages. */
enum {
    B_COPY = 10, B_KERNEL = 11, B_SCRATCH = 12 + BEFORE_1_0, B_RETIREMENT, B_RCCL, B_OMPT, B_ALLOCATION, B_RUNTIME, B_STREAM = 20,
    B_PAGE_MIGRATE = 29, B_PAGE_FAULT, B_QUEUE, B_KINDS = VERSION < 600 ? 19 : BEFORE_1_0 ? 20 : 33
};
/* Kinds of requests for external ids. Those of calls are those of callbacks. */
enum { E_COPY = 10, E_KERNEL, E_SCRATCH, E_ALLOCATION = 15, E_KINDS = 19 };
enum { PHASE_NONE, ENTER, EXIT };
enum { TRACING = 1, SAMPLES, COUNTERS };

struct correlation {
    uint64_t internal, external;
#if !BEFORE_1_0
    uint64_t ancestor;
#endif
};
struct async_correlation { uint64_t internal, external; };
struct dim3 { uint32_t x, y, z; };

struct client {
#if !BEFORE_1_0
    size_t size;
#endif
    const char *name;
    uint32_t handle;
};
struct configured {
    size_t size;
    int (*initialize)(void (*)(struct client), void *);
    void (*finalize)(void *);
    void *data;
};
typedef struct configured *configure_function(uint32_t, const char *, uint32_t, struct client *);

struct callback_record {
    uint64_t context, thread;
    struct correlation correlation;
    int kind, operation, phase;
    void *payload;
};
struct header { uint32_t category, kind; void *payload; };
typedef void tracing_callback(struct callback_record, uint64_t *, void *);
typedef void buffer_callback(uint64_t, uint64_t, struct header **, size_t, void *, uint64_t);
typedef int request_callback(uint64_t, uint64_t, int, int, uint64_t, uint64_t *, void *);

struct api_record {
    uint64_t size;
    int kind, operation;
    struct correlation correlation;
    uint64_t start, end, thread;
};
struct dispatch_info {
    uint64_t size, agent, queue, kernel, dispatch;
    uint32_t scratch, lds;
    struct dim3 workgroup, grid;
    uint8_t reserved[56];
};
struct kernel_record {
    uint64_t size;
    int kind, operation;
    struct async_correlation correlation;
    uint64_t thread, start, end;
    struct dispatch_info info;
};
struct kernel_payload { uint64_t size, start, end; struct dispatch_info info; };
struct copy_record {
    uint64_t size;
    int kind, operation;
    struct async_correlation correlation;
    uint64_t thread, start, end, to_agent, from_agent, bytes;
#if !BEFORE_1_0
    uint64_t to, from;
#endif
};
struct allocation_record {
    uint64_t size;
    int kind, operation;
    struct correlation correlation;
    uint64_t thread, start, end, agent, address, bytes;
};
struct scratch_record {
    uint64_t size;
    int kind, operation;
    struct correlation correlation;
    uint64_t agent, queue, thread, start, end;
    int flags;
#if !BEFORE_1_0
    uint64_t bytes;
#endif
};
struct runtime_record {
    uint64_t size;
    int kind, operation;
    struct correlation correlation;
    uint64_t thread, time, version, instance;
};
struct migration_record {
    uint64_t size;
    int kind, operation;
    uint64_t start, end;
    uint32_t pid;
    uint64_t from_address, to_address, from_agent, to_agent, prefetch_agent, preferred_agent;
    int error;
};
struct fault_record {
    uint64_t size;
    int kind, operation;
    uint64_t start, end;
    uint32_t pid;
    uint64_t agent, address;
};

struct code_payload {
    uint64_t size, id, agent, hsa_agent;
    const char *uri;
    uint64_t load_base, load_size;
    int64_t load_delta;
    int storage;
    uint64_t memory_base, memory_size;
};
struct symbol_payload {
    uint64_t size, kernel, code;
    const char *name;
    uint64_t object;
    uint32_t kernarg_size, kernarg_alignment, lds, scratch, sgprs, arch_vgprs, accum_vgprs;
#if VERSION >= 600
    int64_t entry;
    uint64_t address;
#endif
};
struct stream_payload { uint64_t size, id, handle; };

/* A call as its callback is given it: its arguments, and the result at the end. */
enum { MOST_ARGUMENTS = 12 };
struct hip_payload { uint64_t size; uint8_t arguments[88]; int64_t result[3]; };
struct hsa_payload { uint64_t size; uint8_t arguments[88]; int64_t result; };

/* An argument: its place among the arguments, its type as C++ mangles it, how many pointers it is away from that, its name. */
struct argument { uint8_t offset, bytes; int8_t pointers; const char *type, *name; };
/* A function of a runtime. */
struct function {
    int kind, operation;
    const char *name;
    struct argument arguments[MOST_ARGUMENTS];
};
extern const struct function standin_functions[];

/* A call in progress. What the SDK notes about it is its own. */
struct call {
    const struct function *function;
    void *arguments;
    size_t bytes;
    int64_t result;
    uint64_t start;
    void *of_sdk;
};
/* A loaded code object, and its kernels, whose numbers follow `first`. */
struct kernel {
    const char *name;
    uint64_t offset, length;
    uint32_t lds, scratch, sgprs, vgprs, accum_vgprs;
};
struct code {
    uint64_t id, base, first;
    const void *elf;
    size_t size;
    const struct kernel *kernels;
    int count;
};
struct dispatch {
    const struct kernel *kernel;
    uint64_t kernel_id, code, queue;
    struct dim3 grid, workgroup;
    uint32_t lds;
    /* Set by the SDK at the enqueue. */
    uint64_t id;
    uint64_t start, end;
    void *of_sdk;
};
struct copy { int direction; uint64_t bytes, to, from, start, end; void *of_sdk; };

/* What the runtimes tell the SDK, which sets these functions; all are null without one. The last one is the runtimes': it waits
 * for all work. */
struct standin_hooks {
    void (*enter)(struct call *);
    void (*exit)(struct call *);
    void (*code)(struct code *, int loads);
    /* Enqueued (0), completed (1). */
    void (*dispatch)(struct dispatch *, int completed);
    void (*copy)(struct copy *, int completed);
    void (*allocation)(int operation, uint64_t address, uint64_t bytes, uint64_t start, uint64_t end);
    void (*scratch)(int operation, uint64_t queue, uint64_t bytes, uint64_t start, uint64_t end);
    void (*stream)(int operation, int phase, uint64_t id, uint64_t handle);
    void (*pages)(int faults, uint64_t address, uint64_t bytes, uint64_t start, uint64_t end);
    void (*drain)(void);
};

uint64_t standin_now(void);
/* The ids of agents: processor, then GPUs. STANDIN_GPUS is the number of GPUs, 1 if it is not set. */
enum { CPU_AGENT = 0x1000, GPU_AGENT = 0x1001 };
