/* The inside of the stand-in of rocprofiler-sdk: contexts, buffers, and what its parts call of each other. */
#include "standin.h"

enum { MOST_CONTEXTS = 32, MOST_BUFFERS = 32, MOST_KINDS = 40, MOST_THREADS = 64 };

/* What a context wants of a kind: all operations, or those whose bits are set. */
struct service {
    int configured, all;
    uint64_t operations[10];
    tracing_callback *callback;
    void *data;
    uint64_t buffer;
};
struct sampling { uint64_t agent, interval, buffer; int method, unit; };
struct counting {
    void *choose, *take, *choose_data, *take_data;
    uint64_t buffer, agent, chosen;
    int of_device;
};
struct context {
    int active;
    uint32_t client;
    struct service callbacks[MOST_KINDS], buffers[MOST_KINDS];
    request_callback *request;
    void *request_data;
    uint32_t request_kinds;
    struct { uint64_t thread, ids[16]; int depth; } pushed[MOST_THREADS];
    struct sampling sampling[4];
    struct counting counting;
    int sampled_agents, counts;
};
/* Context number N has the id N. */
extern struct context sdk_contexts[MOST_CONTEXTS];
extern int sdk_context_count;

int sdk_fault(const char *word);
void sdk_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t sdk_thread(void);
/* 0: not yet, -1: in progress, 1: done. */
extern int sdk_initialized, sdk_finalized;
struct context *sdk_context(uint64_t id);
int sdk_is_buffer(uint64_t id);
void sdk_put(uint64_t buffer, uint32_t category, uint32_t kind, const void *record, size_t size);
int sdk_is_gpu(uint64_t agent);
int sdk_gpus(void);

/* A dispatch between its enqueue and its completion: the ids of its call, of each context, and the contexts that want it. */
struct flight {
    uint64_t internal, thread, external[MOST_CONTEXTS], words[MOST_CONTEXTS], chosen[MOST_CONTEXTS], counted[MOST_CONTEXTS];
    uint32_t recorded, called;
    struct dispatch_info info;
};

/* tracing.c */
void sdk_observe(struct standin_hooks *hooks);
void sdk_runtime(int operation, uint64_t version, uint64_t instance);
void sdk_unload_all(void);
int sdk_wants(const struct service *service, int operation);
uint64_t sdk_external(struct context *context, int kind, int operation, uint64_t internal);

/* sampling.c: the samples of a dispatch that has completed. */
void sdk_sample(const struct dispatch *dispatch, const struct flight *flight);
/* counting.c: chooses what is counted of a dispatch, and gives its values; whether a context may start; HSA is initialised. */
void sdk_choose(struct flight *flight);
void sdk_count(const struct dispatch *dispatch, const struct flight *flight);
int sdk_may_start(uint64_t context);
void sdk_hsa_is_there(void);
