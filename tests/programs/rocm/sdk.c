/* A stand-in of rocprofiler-sdk, by our own declarations: tools, contexts, buffers and their threads, agents. See standin.h.
 *
 *     STANDIN_LOG      a file that is told what happened, one event a line
 *     STANDIN_FAULT    words: refuse:KIND (a kind of callbacks or records is not implemented), locked (no context can be made),
 *                      conflict (no context starts), late (buffers come when the main thread flushes them), never (they do not come), dropped (three
 *                      records dropped, it says), foreign (records of unknown categories and kinds), short (records of kernels
 *                      without their last fields), untimed (work with the times 0), inverted (work that ends before it
 *                      starts), no_code (code objects without bytes), twice (the runtimes register again)
 *
 * and those of sampling.c and counting.c. It is told of calls and work by runtime.c. */
#define _GNU_SOURCE
#include "sdk.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct context sdk_contexts[MOST_CONTEXTS];
int sdk_context_count = 1, sdk_initialized, sdk_finalized;

int sdk_fault(const char *word) {
    const char *text = getenv("STANDIN_FAULT");
    return text && strstr(text, word);
}

void sdk_log(const char *format, ...) {
    const char *path = getenv("STANDIN_LOG");
    char line[512];
    va_list values;
    if (!path) return;
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    va_start(values, format);
    int length = vsnprintf(line, sizeof line - 1, format, values);
    va_end(values);
    if (length > (int)sizeof line - 2) length = (int)sizeof line - 2;
    line[length++] = '\n';
    if (file < 0 || write(file, line, (size_t)length) != length) abort();
    close(file);
}

uint64_t sdk_thread(void) { return (uint64_t)syscall(SYS_gettid); }

uint64_t standin_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Buffers and the threads that deliver them. */

struct job {
    struct job *next;
    buffer_callback *callback;
    uint64_t context, buffer, dropped;
    void *data;
    struct header *headers[4096];
    size_t count;
};
struct thread {
    pthread_t thread;
    struct job *first;
    int busy;
};
struct buffer {
    uint64_t context, thread, dropped;
    size_t capacity, watermark, used;
    int policy;
    buffer_callback *callback;
    void *data;
    struct job *filling;
};

static struct buffer buffers[MOST_BUFFERS];
static uint64_t buffer_count = 1;
static struct thread threads[16];
static uint64_t thread_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void discard(struct job *job) {
    for (size_t i = 0; i < job->count; i++) free(job->headers[i]);
    free(job);
}

static void *deliver(void *argument) {
    struct thread *thread = argument;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!thread->first) pthread_cond_wait(&changed, &lock);
        struct job *job = thread->first;
        thread->first = job->next;
        thread->busy = 1;
        pthread_mutex_unlock(&lock);
        sdk_log("delivered %zu", job->count);
        job->callback(job->context, job->buffer, job->headers, job->count, job->data, job->dropped);
        discard(job);
        pthread_mutex_lock(&lock);
        thread->busy = 0;
        pthread_cond_broadcast(&changed);
    }
    return NULL;
}

/* A forked child has threads of its own, and nothing to deliver from before. */
static void in_child(void) {
    pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t unawaited = PTHREAD_COND_INITIALIZER;
    lock = unlocked;
    changed = unawaited;
    for (uint64_t i = 0; i < thread_count; i++) {
        threads[i].first = NULL;
        threads[i].busy = 0;
        pthread_create(&threads[i].thread, NULL, deliver, &threads[i]);
    }
}

static uint64_t new_thread(void) {
    if (!thread_count) pthread_atfork(NULL, NULL, in_child);
    pthread_create(&threads[thread_count].thread, NULL, deliver, &threads[thread_count]);
    return thread_count++;
}

/* With the lock: hands what a buffer has to its thread. */
static void hand_over(uint64_t id) {
    struct buffer *buffer = &buffers[id];
    struct job *job = buffer->filling, **last = &threads[buffer->thread].first;
    if (!job) return;
    buffer->filling = NULL;
    buffer->used = 0;
    if (sdk_fault("never")) return discard(job);
    job->dropped = buffer->dropped + (sdk_fault("dropped") ? 3 : 0);
    while (*last) last = &(*last)->next;
    *last = job;
    pthread_cond_broadcast(&changed);
}

/* The bytes of a record lie behind its header, as the real library has them anywhere. */
static void add(struct buffer *buffer, uint64_t id, uint32_t category, uint32_t kind, const void *record, size_t size) {
    struct job *job = buffer->filling;
    if (!job) {
        job = buffer->filling = calloc(1, sizeof *job);
        job->callback = buffer->callback;
        job->context = buffer->context;
        job->buffer = id;
        job->data = buffer->data;
    }
    struct header *header = calloc(1, sizeof *header + size);
    header->category = category;
    header->kind = kind;
    header->payload = header + 1;
    memcpy(header->payload, record, size);
    job->headers[job->count++] = header;
    buffer->used += size;
}

void sdk_put(uint64_t id, uint32_t category, uint32_t kind, const void *record, size_t size) {
    struct buffer *buffer = &buffers[id];
    const uint64_t unknown[4] = {sizeof unknown, 900 + ((uint64_t)7 << 32), 1, 2};
    pthread_mutex_lock(&lock);
    size_t most = sizeof buffer->filling->headers / sizeof *buffer->filling->headers;
    if (buffer->used + size > buffer->capacity || (buffer->filling && buffer->filling->count + 3 > most)) hand_over(id);
    if (sdk_fault("foreign")) {
        add(buffer, id, 17, kind, unknown, sizeof unknown);
        add(buffer, id, category, 900, unknown, sizeof unknown);
    }
    add(buffer, id, category, kind, record, size);
    if (buffer->used >= buffer->watermark && !sdk_fault("late")) hand_over(id);
    pthread_mutex_unlock(&lock);
}

int sdk_is_buffer(uint64_t id) { return id > 0 && id < buffer_count; }

int rocprofiler_create_buffer(uint64_t context, size_t bytes, size_t watermark, int policy, buffer_callback *callback, void *data,
                              uint64_t *id) {
    if (sdk_initialized > -1) return CONFIGURATION_LOCKED;
    if (!sdk_context(context)) return CONTEXT_NOT_FOUND;
    if (sdk_is_buffer(*id)) return SERVICE_ALREADY_CONFIGURED;
    if (!callback || !bytes || policy < 1 || policy > 2) return INVALID_ARGUMENT;
    if (!thread_count) new_thread();
    *id = buffer_count++;
    buffers[*id] = (struct buffer){.context = context, .capacity = bytes, .watermark = watermark, .policy = policy,
                                   .callback = callback, .data = data};
    sdk_log("buffer %zu %zu", bytes, watermark);
    return SUCCESS;
}

int rocprofiler_flush_buffer(uint64_t id) {
    if (sdk_finalized > 0) return FINALIZED;
    if (!sdk_is_buffer(id)) return BUFFER_NOT_FOUND;
    struct thread *thread = &threads[buffers[id].thread];
    pthread_mutex_lock(&lock);
    if (!sdk_fault("late") || sdk_thread() == (uint64_t)getpid()) hand_over(id);
    int waits = !pthread_equal(pthread_self(), thread->thread);
    while (waits && (thread->first || thread->busy)) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

int rocprofiler_destroy_buffer(uint64_t id) { return sdk_is_buffer(id) ? SUCCESS : BUFFER_NOT_FOUND; }

int rocprofiler_create_callback_thread(uint64_t *id) {
    if (sdk_initialized > 0) return CONFIGURATION_LOCKED;
    if (!thread_count) new_thread();
    *id = new_thread();
    return SUCCESS;
}

int rocprofiler_assign_callback_thread(uint64_t buffer, uint64_t thread) {
    if (sdk_initialized > 0) return CONFIGURATION_LOCKED;
    if (thread >= thread_count) return THREAD_NOT_FOUND;
    if (!sdk_is_buffer(buffer)) return BUFFER_NOT_FOUND;
    buffers[buffer].thread = thread;
    return SUCCESS;
}

int rocprofiler_at_internal_thread_create(void *before, void *after, int libraries, void *data) {
    (void)before, (void)after, (void)libraries, (void)data;
    return SUCCESS;
}

/* Contexts. */

struct context *sdk_context(uint64_t id) { return id > 0 && id < (uint64_t)sdk_context_count ? &sdk_contexts[id] : NULL; }

static uint32_t configuring;

int rocprofiler_create_context(uint64_t *id) {
    if (*id) return CONTEXT_ID_NOT_ZERO;
    if (sdk_initialized > -1 || sdk_fault("locked")) return CONFIGURATION_LOCKED;
    if (sdk_context_count == MOST_CONTEXTS) return CONTEXT_ERROR;
    *id = (uint64_t)sdk_context_count++;
    sdk_contexts[*id].client = configuring;
    return SUCCESS;
}

int rocprofiler_start_context(uint64_t id) {
    struct context *context = sdk_context(id);
    if (!context) return CONTEXT_NOT_FOUND;
    if (sdk_finalized) return CONFIGURATION_LOCKED;
    if (sdk_fault("conflict")) return CONTEXT_CONFLICT;
    int status = sdk_may_start(id);
    if (status == SUCCESS) context->active = 1;
    return status;
}

int rocprofiler_stop_context(uint64_t id) {
    struct context *context = sdk_context(id);
    if (!context) return CONTEXT_NOT_FOUND;
    context->active = 0;
    return SUCCESS;
}

int rocprofiler_context_is_active(uint64_t id, int *active) {
    struct context *context = sdk_context(id);
    *active = context && context->active;
    return context ? SUCCESS : CONTEXT_NOT_FOUND;
}

int rocprofiler_context_is_valid(uint64_t id, int *valid) { return *valid = !!sdk_context(id), *valid ? SUCCESS : CONTEXT_NOT_FOUND; }

/* Tools. */

static struct tool {
    configure_function *configure;
    struct client client;
    struct configured result;
    int configured;
} tools[8];
static int tool_count;
static configure_function *forced;
enum { FIRST_CLIENT = 4711 };

static void add_tool(configure_function *configure) {
    if (!configure || tool_count == 8) return;
    for (int i = 0; i < tool_count; i++)
        if (tools[i].configure == configure) return;
    tools[tool_count++].configure = configure;
}

/* What comes after the last colon of a list is lost. */
static void find_tools(void) {
    const char *variable = getenv("ROCP_TOOL_LIBRARIES");
    char *list = variable && !(VERSION >= 10300 && getauxval(AT_SECURE)) ? strdup(variable) : NULL;
    int alone = list && !strchr(list, ':');
    add_tool(forced);
    for (char *path = list; path && *path;) {
        char *end = strchr(path, ':');
        if (!end && !alone) break;
        if (end) *end = 0;
        if (*path) {
            void *library = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
            if (!library) library = dlopen(path, RTLD_LOCAL | RTLD_LAZY);
            if (!library) fprintf(stderr, "stand-in: %s\n", dlerror()), abort();
            void *configure = dlsym(library, "rocprofiler_configure");
            if (!configure && BEFORE_1_0) abort();
            add_tool((configure_function *)configure);
        }
        path = end ? end + 1 : NULL;
    }
    free(list);
    add_tool((configure_function *)dlsym(RTLD_DEFAULT, "rocprofiler_configure"));
}

static void finalize_tool(struct client client) {
    int before = sdk_finalized;
    for (int i = 0; i < tool_count; i++) {
        struct tool *tool = &tools[i];
        /* A tool that has written over its number is not found. */
        if (!tool->configured || tool->client.handle != client.handle || client.handle != FIRST_CLIENT + (uint32_t)i) continue;
        for (int context = 1; context < sdk_context_count; context++)
            if (sdk_contexts[context].client == client.handle) sdk_contexts[context].active = 0;
        if (!before) sdk_finalized = -1;
        if (tool->result.finalize) tool->result.finalize(tool->result.data);
        sdk_finalized = before;
        tool->result.finalize = NULL;
        sdk_log("finalized %s", tool->client.name ? tool->client.name : "-");
    }
}

static void finalize(void) {
    if (sdk_finalized || sdk_initialized < 1) return;
    sdk_finalized = -1;
    sdk_unload_all();
    for (int i = 0; i < tool_count; i++) finalize_tool(tools[i].client);
    sdk_finalized = 1;
}

/* The end of the only tool is that of the library. */
static void finalize_all(struct client client) {
    (void)client;
    finalize();
}

static void initialize(void) {
    static const char *const text = VERSION == 500 ? "0.5.0" : VERSION == 600 ? "0.6.0" : VERSION == 10000 ? "1.0.0" : VERSION == 10200 ? "1.2.0" : "1.3.0";
    if (sdk_initialized) return;
    sdk_initialized = -1;
    atexit(finalize);
    find_tools();
    for (int i = 0; i < tool_count; i++) {
        struct tool *tool = &tools[i];
#if !BEFORE_1_0
        tool->client.size = sizeof tool->client;
#endif
        tool->client.handle = FIRST_CLIENT + (uint32_t)i;
        struct configured *result = tool->configure(VERSION, text, (uint32_t)i, &tool->client);
        if (!result) continue;
        if (result->size < sizeof *result) abort();
        tool->result = *result;
        tool->configured = 1;
    }
    for (int i = 0; i < tool_count; i++) {
        struct tool *tool = &tools[i];
        if (!tool->configured || !tool->result.initialize) continue;
        configuring = tool->client.handle;
        int status = tool->result.initialize(tool_count == 1 ? finalize_all : finalize_tool, tool->result.data);
        sdk_log("tool %s %d", tool->client.name ? tool->client.name : "-", status);
    }
    sdk_initialized = 1;
}

int rocprofiler_is_initialized(int *status) { return *status = sdk_initialized, SUCCESS; }
int rocprofiler_is_finalized(int *status) { return *status = sdk_finalized, SUCCESS; }

int rocprofiler_force_configure(configure_function *configure) {
    if (sdk_initialized || forced) return CONFIGURATION_LOCKED;
    setenv("ROCPROFILER_REGISTER_FORCE_LOAD", "1", 1);
    forced = configure;
    initialize();
    /* Runtimes that are there already hand over their tables now. */
    void (*propagate)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "standin_register_all");
    if (propagate) propagate();
    return SUCCESS;
}

/* Called by each runtime that is initialised: its hooks are its table. */
int rocprofiler_set_api_table(const char *name, uint64_t version, uint64_t instance, void **tables, uint64_t count) {
    static const char *const runtimes[] = {"", "hsa", "hip", "roctx"};
    if (sdk_finalized || !count) return 0;
    initialize();
    sdk_observe(tables[0]);
    for (int i = 1; i < 4; i++)
        if (!strcmp(runtimes[i], name)) {
            sdk_runtime(i, version, instance);
            if (sdk_fault("twice")) sdk_runtime(i, version, instance + 1);
        }
    return 0;
}

/* Agents: a processor and its GPUs, all of gfx942. */

struct agent {
    uint64_t size, id;
    int type;
    uint32_t numbers[20];
    uint32_t gfx;
    uint16_t vendor, device;
    uint32_t location, domain, more[10], cu_per_engine, waves_per_cu, family, workgroup_max, grid_max;
    uint64_t memory, hive, gpu;
    struct dim3 workgroup_most, grid_most;
    const void *mem_banks, *caches, *io_links;
    const char *name, *vendor_name, *product, *model;
    uint32_t node;
    int32_t logical_node, logical_type;
    uint32_t visibility;
#if !BEFORE_1_0
    uint8_t uuid[16];
#elif VERSION >= 600
    uint64_t uuid;
#endif
};

int sdk_gpus(void) {
    const char *text = getenv("STANDIN_GPUS");
    int count = text ? atoi(text) : 1;
    return count > 3 ? 3 : count;
}
int sdk_is_gpu(uint64_t agent) { return agent >= GPU_AGENT && agent < GPU_AGENT + (uint64_t)sdk_gpus(); }

int rocprofiler_query_available_agents(int version, int (*callback)(int, const void **, size_t, void *), size_t size, void *data) {
    static struct agent agents[4];
    static char names[4][32];
    const void *all[4];
    int count = 1 + sdk_gpus();
    if (version != 1) return INVALID_ARGUMENT;
    if (size > sizeof *agents) return INCOMPATIBLE_ABI;
    for (int i = 0; i < count; i++) {
        struct agent *agent = &agents[i];
        snprintf(names[i], sizeof names[i], "Stand-in %s %d", i ? "MI300X" : "processor", i ? i - 1 : 0);
        *agent = (struct agent){.size = sizeof *agent, .id = CPU_AGENT + (uint64_t)i, .type = i ? 2 : 1, .name = i ? "gfx942" : "processor",
                                .vendor_name = i ? "AMD" : "CPU", .product = names[i], .model = i ? "aqua_vanjaram" : "",
                                .node = (uint32_t)i, .logical_node = i, .logical_type = i ? i - 1 : 0, .visibility = 15};
        if (i) {
            agent->gfx = 90402;
            agent->vendor = 0x1002;
            agent->device = 0x74a1;
            agent->location = (uint32_t)(0x100 * i);
            /* SIMDs, waves of each, KiB of LDS, work-items of a wave, chiplets, compute units, arrays, shader banks, arrays and units
             * of each, SIMDs of a unit, scratch slots of a unit; then MHz. */
            agent->numbers[1] = 1216, agent->numbers[7] = 8, agent->numbers[8] = 64, agent->numbers[11] = 64;
            agent->numbers[12] = 8, agent->numbers[13] = 304, agent->numbers[14] = 32, agent->numbers[15] = 32;
            agent->numbers[16] = 1, agent->numbers[17] = 10, agent->numbers[18] = 4, agent->numbers[19] = 32;
            agent->more[6] = 2100;
            agent->waves_per_cu = 32;
            agent->workgroup_max = 1024;
            agent->gpu = 0x5000u + (uint64_t)i;
#if !BEFORE_1_0
            memcpy(agent->uuid, "GPU-standin-uuid", 16);
#endif
        }
        all[i] = agent;
    }
    return callback(version, all, (size_t)count, data);
}

/* The library itself. */

int rocprofiler_get_version(uint32_t *major, uint32_t *minor, uint32_t *patch) {
    if (major) *major = VERSION / 10000;
    if (minor) *minor = VERSION / 100 % 100;
    if (patch) *patch = VERSION % 100;
    return SUCCESS;
}
#if !BEFORE_1_0
int rocprofiler_get_version_triplet(uint32_t *version) { return rocprofiler_get_version(version, version + 1, version + 2); }
#endif
int rocprofiler_get_timestamp(uint64_t *time) { return *time = standin_now(), SUCCESS; }
int rocprofiler_get_thread_id(uint64_t *thread) { return *thread = sdk_thread(), SUCCESS; }

static const char *const statuses[] = {
    "SUCCESS", "ERROR", "ERROR_CONTEXT_NOT_FOUND", "ERROR_BUFFER_NOT_FOUND", "ERROR_KIND_NOT_FOUND", "ERROR_OPERATION_NOT_FOUND",
    "ERROR_THREAD_NOT_FOUND", "ERROR_AGENT_NOT_FOUND", "ERROR_COUNTER_NOT_FOUND", "ERROR_CONTEXT_ERROR", "ERROR_CONTEXT_INVALID",
    "ERROR_CONTEXT_NOT_STARTED", "ERROR_CONTEXT_CONFLICT", "ERROR_CONTEXT_ID_NOT_ZERO", "ERROR_BUFFER_BUSY",
    "ERROR_SERVICE_ALREADY_CONFIGURED", "ERROR_CONFIGURATION_LOCKED", "ERROR_NOT_IMPLEMENTED", "ERROR_INCOMPATIBLE_ABI",
    "ERROR_INVALID_ARGUMENT", "ERROR_METRIC_NOT_VALID_FOR_AGENT", "ERROR_FINALIZED", "ERROR_HSA_NOT_LOADED", "ERROR_DIM_NOT_FOUND",
    "ERROR_PROFILE_COUNTER_NOT_FOUND", "ERROR_AST_GENERATION_FAILED", "ERROR_AST_NOT_FOUND", "ERROR_AQL_NO_EVENT_COORD",
    "ERROR_INCOMPATIBLE_KERNEL", "ERROR_OUT_OF_RESOURCES", "ERROR_PROFILE_NOT_FOUND", "ERROR_AGENT_DISPATCH_CONFLICT",
    "INTERNAL_NO_AGENT_CONTEXT", "ERROR_SAMPLE_RATE_EXCEEDED", "ERROR_NO_PROFILE_QUEUE", "ERROR_NO_HARDWARE_COUNTERS",
    "ERROR_AGENT_MISMATCH", "ERROR_NOT_AVAILABLE", "ERROR_EXCEEDS_HW_LIMIT", "ERROR_AGENT_ARCH_NOT_SUPPORTED",
    "ERROR_PERMISSION_DENIED",
};
const char *rocprofiler_get_status_name(int status) {
    static char names[sizeof statuses / sizeof *statuses][64];
    if (status < 0 || (size_t)status >= sizeof statuses / sizeof *statuses) return NULL;
    snprintf(names[status], sizeof names[status], "ROCPROFILER_STATUS_%s", statuses[status]);
    return names[status];
}
const char *rocprofiler_get_status_string(int status) { return rocprofiler_get_status_name(status) ? statuses[status] : NULL; }
