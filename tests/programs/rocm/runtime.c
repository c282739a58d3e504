/* A stand-in of libamdhip64, with a few functions of HSA's and ROCTx's in it. It executes nothing but saxpy: a kernel is a pause of
 * the thread that plays the GPU. What it does it tells the stand-in of rocprofiler-sdk, which it loads as librocprofiler-register
 * would: if a tool is visible in the process, or a variable names one. See standin.h. */
#define _GNU_SOURCE
#include "standin.h"

#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct standin_hooks hooks;
enum { HIP_VERSION = 60300 };

static uint64_t now(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Registration of a runtime's table. */

static int is_set(const char *name) {
    const char *text = getenv(name);
    return text && *text;
}

static void registers(const char *name) {
    const char *soname = BEFORE_1_0 ? "librocprofiler-sdk.so.0" : "librocprofiler-sdk.so.1";
    void *sdk = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
    int wanted = sdk || dlsym(RTLD_DEFAULT, "rocprofiler_configure") || is_set("ROCP_TOOL_LIBRARIES")
                 || is_set("ROCPROFILER_REGISTER_LIBRARY") || is_set("ROCPROFILER_REGISTER_FORCE_LOAD");
    if (!sdk && wanted) sdk = dlopen(is_set("ROCPROFILER_REGISTER_LIBRARY") ? getenv("ROCPROFILER_REGISTER_LIBRARY") : soname, RTLD_GLOBAL | RTLD_LAZY);
    if (!sdk) return;
    int (*set)(const char *, uint64_t, uint64_t, void **, uint64_t) =
        (int (*)(const char *, uint64_t, uint64_t, void **, uint64_t))dlsym(sdk, "rocprofiler_set_api_table");
    void *tables[] = {&hooks};
    if (set) set(name, HIP_VERSION, 0, tables, 1);
}

static int is_hip, is_hsa, is_roctx;

/* The modules that are loaded. */
static struct code *modules[64];
static int module_count;

/* Hands over the tables of what is initialised, and what is loaded: for an SDK that comes later. */
void standin_register_all(void) {
    if (is_hip) registers("hip");
    if (is_hsa) registers("hsa");
    if (is_roctx) registers("roctx");
    for (int i = 0; hooks.code && i < module_count; i++)
        if (!modules[i]->id) hooks.code(modules[i], 1);
}

/* Waits for an attacher (rocattach.c): it writes variables, and an empty one at the end, into a pipe whose name has the process. */
static void *attached_to(void *unused) {
    char name[256], line[1024];
    (void)unused;
    pthread_setname_np(pthread_self(), "rocp-bg-attach");
    snprintf(name, sizeof name, "%s/%d", getenv("STANDIN_ATTACH"), getpid());
    mkfifo(name, 0600);
    FILE *pipe = fopen(name, "r");
    while (pipe && fgets(line, sizeof line, pipe) && line[0] != '\n') {
        char *value = strchr(line, '=');
        line[strcspn(line, "\n")] = 0;
        if (!value) continue;
        *value = 0;
        setenv(line, value + 1, 1);
    }
    standin_register_all();
    strcat(name, ".done");
    fclose(fopen(name, "w"));
    return NULL;
}

/* Calls. */

static struct call enter(const char *name, void *arguments, size_t bytes) {
    const struct function *function = standin_functions;
    while (strcmp(function->name, name)) function++;
    struct call call = {.function = function, .arguments = arguments, .bytes = bytes};
    if (hooks.enter) hooks.enter(&call);
    return call;
}

static int leave(struct call *call, int64_t result) {
    call->result = result;
    if (hooks.exit) hooks.exit(call);
    return (int)result;
}

#define CALL(name, ...)                                                                                                               \
    struct name arguments = {__VA_ARGS__};                                                                                            \
    struct call call = enter(#name, &arguments, sizeof arguments)

/* The GPU: work in the order in which it was enqueued. */

struct work {
    struct work *next;
    struct dispatch dispatch;
    struct copy copy;
    int is_copy;
    void (*run)(struct work *);
    uint32_t count;
    float factor, *to;
    const float *from;
};
static struct work *first, **last = &first;
static int executing;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void *gpu(void *unused) {
    (void)unused;
    pthread_setname_np(pthread_self(), "gpu");
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!first) pthread_cond_wait(&changed, &lock);
        struct work *work = first;
        first = work->next;
        if (!first) last = &first;
        executing = 1;
        pthread_mutex_unlock(&lock);
        uint64_t start = now(), end;
        if (work->run) work->run(work);
        while ((end = now()) < start + 20000) {}
        work->dispatch.start = work->copy.start = start;
        work->dispatch.end = work->copy.end = end;
        if (work->is_copy && work->copy.of_sdk) hooks.copy(&work->copy, 1);
        if (!work->is_copy && work->dispatch.of_sdk) hooks.dispatch(&work->dispatch, 1);
        free(work);
        pthread_mutex_lock(&lock);
        executing = 0;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void drain(void) {
    static pid_t owner;
    if (!owner) owner = getpid();
    pthread_mutex_lock(&lock);
    /* A forked child has no GPU. */
    while (owner == getpid() && (first || executing)) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void enqueue(struct work *work) {
    if (work->is_copy && hooks.copy) hooks.copy(&work->copy, 0);
    if (!work->is_copy && hooks.dispatch) hooks.dispatch(&work->dispatch, 0);
    pthread_mutex_lock(&lock);
    *last = work;
    last = &work->next;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* Initialisation: HIP's by its first function, which initialises HSA. */

struct hsa_init { char unused; };
int hsa_init(void) {
    static int initialized;
    pthread_t thread;
    if (!initialized++) {
        is_hsa = 1;
        hooks.drain = drain;
        drain();
        registers("hsa");
        pthread_create(&thread, NULL, gpu, NULL);
        pthread_detach(thread);
        if (is_set("ROCP_TOOL_ATTACH") && is_set("STANDIN_ATTACH")) {
            pthread_create(&thread, NULL, attached_to, NULL);
            pthread_detach(thread);
        }
    }
    CALL(hsa_init, 0);
    return leave(&call, 0);
}

static void begin(void) {
    is_hip = 1;
    hooks.drain = drain;
    registers("hip");
    hsa_init();
}
static pthread_once_t once = PTHREAD_ONCE_INIT;
#define HIP pthread_once(&once, begin)

struct hipInit { unsigned flags; };
int hipInit(unsigned flags) {
    HIP;
    CALL(hipInit, flags);
    return leave(&call, 0);
}

struct hipGetDeviceCount { int *count; };
int hipGetDeviceCount(int *count) {
    HIP;
    CALL(hipGetDeviceCount, count);
    *count = is_set("STANDIN_GPUS") ? atoi(getenv("STANDIN_GPUS")) : 1;
    return leave(&call, 0);
}

/* Memory. */

struct hsa_amd_memory_pool_allocate { uint64_t memory_pool; size_t size; uint32_t flags; void **ptr; };
static int hsa_amd_memory_pool_allocate_(size_t size, void **pointer) {
    uint64_t start = now();
    CALL(hsa_amd_memory_pool_allocate, 7, size, 0, pointer);
    if (size > (size_t)1 << 36) return leave(&call, 0x1008);
    *pointer = malloc(size);
    if (hooks.allocation) hooks.allocation(1, (uint64_t)(uintptr_t)*pointer, size, start, now());
    return leave(&call, 0);
}

struct hipMalloc { void **ptr; size_t size; };
int hipMalloc(void **pointer, size_t size) {
    HIP;
    CALL(hipMalloc, pointer, size);
    return leave(&call, hsa_amd_memory_pool_allocate_(size, pointer) ? 2 : 0);
}

struct hsa_amd_memory_pool_free { void *ptr; };
struct hipFree { void *ptr; };
int hipFree(void *pointer) {
    HIP;
    CALL(hipFree, pointer);
    {
        uint64_t start = now();
        CALL(hsa_amd_memory_pool_free, pointer);
        if (hooks.allocation) hooks.allocation(3, (uint64_t)(uintptr_t)pointer, 0, start, now());
        leave(&call, 0);
    }
    free(pointer);
    return leave(&call, 0);
}

/* Both sides touch it: pages move, and a page fault is resolved. */
struct hipMallocManaged { void **dev_ptr; size_t size; unsigned flags; };
int hipMallocManaged(void **pointer, size_t size, unsigned flags) {
    HIP;
    CALL(hipMallocManaged, pointer, size, flags);
    int status = hsa_amd_memory_pool_allocate_(size, pointer) ? 2 : 0;
    uint64_t start = now();
    for (int faults = 0; !status && hooks.pages && faults < 2; faults++)
        hooks.pages(faults, (uint64_t)(uintptr_t)*pointer, size, start, start + 5000);
    return leave(&call, status);
}

static void copy_now(struct work *work) { memcpy((void *)(uintptr_t)work->copy.to, (const void *)(uintptr_t)work->copy.from, work->copy.bytes); }

struct hsa_amd_memory_async_copy {
    void *dst; uint64_t dst_agent; const void *src; uint64_t src_agent; size_t size; uint32_t num_dep_signals; const void *dep_signals;
    uint64_t completion_signal;
};
static void copy(void *to, const void *from, size_t bytes, int kind) {
    static const int directions[] = {1, 2, 3, 4};
    CALL(hsa_amd_memory_async_copy, to, GPU_AGENT, from, CPU_AGENT, bytes, 0, NULL, 99);
    struct work *work = calloc(1, sizeof *work);
    work->is_copy = 1;
    work->copy = (struct copy){.direction = directions[kind & 3], .bytes = bytes, .to = (uint64_t)(uintptr_t)to, .from = (uint64_t)(uintptr_t)from};
    work->run = copy_now;
    enqueue(work);
    leave(&call, 0);
}

/* Streams. */

struct stream { uint64_t id, queue; };

static void in_stream(int phase, const struct stream *stream) {
    if (hooks.stream) hooks.stream(3, phase, stream ? stream->id : 0, (uint64_t)(uintptr_t)stream);
}

struct hipMemcpy { void *dst; const void *src; size_t sizeBytes; int kind; };
int hipMemcpy(void *to, const void *from, size_t bytes, int kind) {
    HIP;
    in_stream(ENTER, NULL);
    CALL(hipMemcpy, to, from, bytes, kind);
    copy(to, from, bytes, kind);
    drain();
    leave(&call, 0);
    in_stream(EXIT, NULL);
    return 0;
}

struct hipMemcpyAsync { void *dst; const void *src; size_t sizeBytes; int kind; struct stream *stream; };
int hipMemcpyAsync(void *to, const void *from, size_t bytes, int kind, struct stream *stream) {
    HIP;
    in_stream(ENTER, stream);
    CALL(hipMemcpyAsync, to, from, bytes, kind, stream);
    copy(to, from, bytes, kind);
    leave(&call, 0);
    in_stream(EXIT, stream);
    return 0;
}

/* With several GPUs, every other stream is one of the second. */
struct hipStreamCreate { struct stream **stream; };
int hipStreamCreate(struct stream **stream) {
    static uint64_t streams;
    HIP;
    CALL(hipStreamCreate, stream);
    *stream = malloc(sizeof **stream);
    (*stream)->id = __atomic_add_fetch(&streams, 1, __ATOMIC_RELAXED);
    (*stream)->queue = (*stream)->id % 8 + (is_set("STANDIN_GPUS") && atoi(getenv("STANDIN_GPUS")) > 1 && (*stream)->id % 2 ? 16 : 0);
    if (hooks.stream) hooks.stream(1, PHASE_NONE, (*stream)->id, (uint64_t)(uintptr_t)*stream);
    return leave(&call, 0);
}

struct hipStreamDestroy { struct stream *stream; };
int hipStreamDestroy(struct stream *stream) {
    HIP;
    CALL(hipStreamDestroy, stream);
    if (hooks.stream) hooks.stream(2, PHASE_NONE, stream->id, (uint64_t)(uintptr_t)stream);
    free(stream);
    return leave(&call, 0);
}

struct hipStreamSynchronize { struct stream *stream; };
int hipStreamSynchronize(struct stream *stream) {
    HIP;
    in_stream(ENTER, stream);
    CALL(hipStreamSynchronize, stream);
    drain();
    leave(&call, 0);
    in_stream(EXIT, stream);
    return 0;
}

struct hipDeviceSynchronize { char unused; };
int hipDeviceSynchronize(void) {
    HIP;
    CALL(hipDeviceSynchronize, 0);
    drain();
    return leave(&call, 0);
}

/* Code: a module has both kernels, whose machine code is the same. */

static const struct kernel kernels[] = {
    {"saxpy", 0x1000, 16, 0, 0, 16, 8, 0},
    {"_Z5scalePff", 0x1010, 16, 512, 16, 32, 24, 8},
};
enum { KERNELS = 2, TEXT = 0x1000 };

/* An ELF file of gfx90a, which LLVM 14 knows: v_mov_b32 v0, v0; s_waitcnt vmcnt(0); s_nop 0; s_endpgm. */
static void *machine_code(size_t *size) {
    static const char names[] = "\0.text\0.symtab\0.strtab";
    static const uint32_t text[] = {0x7e000300, 0xbf8c0f70, 0xbf800000, 0xbf810000};
    struct file {
        Elf64_Ehdr header;
        Elf64_Shdr sections[4];
        Elf64_Sym symbols[1 + KERNELS];
        char strings[64], fill[TEXT - sizeof(Elf64_Ehdr) - 4 * sizeof(Elf64_Shdr) - 3 * sizeof(Elf64_Sym) - 64];
        uint32_t text[KERNELS][4];
    } *file = calloc(1, sizeof *file);
    const size_t symbols = offsetof(struct file, symbols), strings = offsetof(struct file, strings);
    size_t at = sizeof names;
    memcpy(file->strings, names, sizeof names);
    file->header = (Elf64_Ehdr){.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT, 64, 3}, .e_type = ET_DYN, .e_machine = 224,
                                .e_version = EV_CURRENT, .e_shoff = offsetof(struct file, sections), .e_flags = 0x3f,
                                .e_ehsize = sizeof file->header, .e_shentsize = sizeof *file->sections, .e_shnum = 4, .e_shstrndx = 3};
    file->sections[1] = (Elf64_Shdr){.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = TEXT,
                                     .sh_offset = TEXT, .sh_size = sizeof file->text, .sh_addralign = 4};
    file->sections[2] = (Elf64_Shdr){.sh_name = 7, .sh_type = SHT_SYMTAB, .sh_offset = symbols, .sh_size = sizeof file->symbols, .sh_link = 3,
                                     .sh_info = 1, .sh_addralign = 8, .sh_entsize = sizeof *file->symbols};
    file->sections[3] = (Elf64_Shdr){.sh_name = 15, .sh_type = SHT_STRTAB, .sh_offset = strings, .sh_size = sizeof file->strings, .sh_addralign = 1};
    for (int i = 0; i < KERNELS; i++) {
        file->symbols[1 + i] = (Elf64_Sym){.st_name = (uint32_t)at, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1,
                                           .st_value = kernels[i].offset, .st_size = kernels[i].length};
        strcpy(file->strings + at, kernels[i].name);
        at += strlen(kernels[i].name) + 1;
        memcpy(file->text[i], text, sizeof text);
    }
    *size = sizeof *file;
    return file;
}

struct hipModuleLoadData { struct code **module; const void *image; };
int hipModuleLoadData(struct code **module, const void *image) {
    static uint64_t base = 0x7f0000000000;
    HIP;
    CALL(hipModuleLoadData, module, image);
    struct code *code = *module = calloc(1, sizeof *code);
    code->elf = machine_code(&code->size);
    code->base = __atomic_add_fetch(&base, 0x100000, __ATOMIC_RELAXED);
    code->kernels = kernels;
    code->count = KERNELS;
    modules[module_count++] = code;
    if (hooks.code) hooks.code(code, 1);
    return leave(&call, 0);
}

struct hipModuleUnload { struct code *module; };
int hipModuleUnload(struct code *module) {
    HIP;
    CALL(hipModuleUnload, module);
    drain();
    if (hooks.code) hooks.code(module, 0);
    for (int i = 0; i < module_count; i++)
        if (modules[i] == module) modules[i] = modules[--module_count];
    return leave(&call, 0);
}

/* A function of a module, and a function of the program that launches one. */
struct of_module { struct code *module; int kernel; };
struct hipModuleGetFunction { struct of_module **function; struct code *module; const char *kname; };
int hipModuleGetFunction(struct of_module **function, struct code *module, const char *name) {
    HIP;
    CALL(hipModuleGetFunction, function, module, name);
    for (int i = 0; i < KERNELS; i++) {
        if (strcmp(kernels[i].name, name)) continue;
        *function = malloc(sizeof **function);
        **function = (struct of_module){module, i};
        return leave(&call, 0);
    }
    return leave(&call, 500);
}

static void saxpy(struct work *work) {
    for (uint32_t i = 0; i < work->count; i++) work->to[i] = work->factor * work->from[i] + work->to[i];
}

struct hsa_signal_store_screlease { uint64_t signal; int64_t value; };
static int launch(const struct of_module *function, struct dim3 blocks, struct dim3 block, uint32_t lds, struct stream *stream, void **values) {
    if (!block.x || block.x > 1024) return 1;
    const struct kernel *kernel = &kernels[function->kernel];
    struct work *work = calloc(1, sizeof *work);
    work->dispatch = (struct dispatch){.kernel = kernel, .kernel_id = function->module->first + (uint64_t)function->kernel,
                                       .code = function->module->id, .queue = stream ? stream->queue : 0,
                                       .grid = {blocks.x * block.x, blocks.y * block.y, blocks.z * block.z}, .workgroup = block, .lds = lds};
    if (values && function->kernel == 0) {
        work->count = *(uint32_t *)values[0];
        work->factor = *(float *)values[1];
        work->from = *(const float **)values[2];
        work->to = *(float **)values[3];
        work->run = saxpy;
    }
    static uint64_t with_scratch;
    uint64_t start = now();
    if (kernel->scratch && hooks.scratch && !__atomic_fetch_add(&with_scratch, 1, __ATOMIC_RELAXED))
        hooks.scratch(1, work->dispatch.queue, 65536, start, now());
    CALL(hsa_signal_store_screlease, 98, 1);
    enqueue(work);
    leave(&call, 0);
    return 0;
}

struct hipModuleLaunchKernel {
    struct of_module *func;
    unsigned gx, gy, gz, bx, by, bz, shared;
    struct stream *stream;
    void **params, **extra;
};
int hipModuleLaunchKernel(struct of_module *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, struct stream *stream, void **values, void **extra) {
    HIP;
    in_stream(ENTER, stream);
    CALL(hipModuleLaunchKernel, function, gx, gy, gz, bx, by, bz, shared, stream, values, extra);
    int status = launch(function, (struct dim3){gx, gy, gz}, (struct dim3){bx, by, bz}, shared, stream, values);
    leave(&call, status);
    in_stream(EXIT, stream);
    return status;
}

/* As compilers have `kernel<<<...>>>` call it: the function stands for the kernel with its name. */
struct __hipPushCallConfiguration { struct dim3 grid, block; size_t shared; struct stream *stream; };
struct hipLaunchKernel { const void *function; struct dim3 grid, block; void **args; size_t shared; struct stream *stream; };
int hipLaunchKernel(const struct of_module *function, struct dim3 grid, struct dim3 block, void **values, size_t shared, struct stream *stream) {
    HIP;
    {
        CALL(__hipPushCallConfiguration, grid, block, shared, stream);
        leave(&call, 0);
    }
    in_stream(ENTER, stream);
    CALL(hipLaunchKernel, function, grid, block, values, shared, stream);
    int status = launch(function, grid, block, (uint32_t)shared, stream, values);
    leave(&call, status);
    in_stream(EXIT, stream);
    return status;
}

/* ROCTx. */

static void begin_roctx(void) {
    is_roctx = 1;
    registers("roctx");
}
static pthread_once_t roctx_once = PTHREAD_ONCE_INIT;
struct roctxMarkA { const char *message; };
void roctxMarkA(const char *message) {
    pthread_once(&roctx_once, begin_roctx);
    CALL(roctxMarkA, message);
    leave(&call, 0);
}
static __thread int level;
struct roctxRangePushA { const char *message; };
int roctxRangePushA(const char *message) {
    pthread_once(&roctx_once, begin_roctx);
    CALL(roctxRangePushA, message);
    return leave(&call, level++);
}
struct roctxRangePop { char unused; };
int roctxRangePop(void) {
    CALL(roctxRangePop, 0);
    return leave(&call, --level);
}
