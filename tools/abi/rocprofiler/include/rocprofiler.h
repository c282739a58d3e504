/* ROCProfiler v1, in one of two forms.
 *
 * As it is, the header declares what AMD's "ROCProfiler Version 1 Library Specification" describes. Where the structures and
 * the examples of that document differ, the examples count: `data` of a feature is a value and no pointer, the callback of a
 * context gets the group itself, that of a dispatch a place for it, and information has the index of its device. Two names
 * that the document has for one thing are both there.
 *
 * With ROCPROFILER_PUBLISHED defined before it, the header declares what ROCm's rocprofiler.h 8.0 does.
 *
 * The library has the binary interface of ROCm's header, and so have all structures here that both forms share. The functions
 * that the document has in another form have symbols of their own, rocprofiler_document_*.
 */
#ifndef ROCPROFILER_H
#define ROCPROFILER_H

#include "rocprofiler_hsa.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROCPROFILER_VERSION_MAJOR 8
#define ROCPROFILER_VERSION_MINOR 0

#if defined(__cplusplus) && !defined(ROCPROFILER_PUBLISHED)
#define ROCPROFILER_DEFAULT(value) = value
#else
#define ROCPROFILER_DEFAULT(value)
#endif

/* The symbol of a function whose form in the document is not ROCm's. */
#define ROCPROFILER_SYMBOL(name) __asm__(name)

#ifdef __cplusplus
extern "C" {
#endif

/* The sentence of the last failed call of this thread. */
#ifdef ROCPROFILER_PUBLISHED
hsa_status_t rocprofiler_error_string(const char **str);
#else
const char *rocprofiler_error_string(void) ROCPROFILER_SYMBOL("rocprofiler_document_error_string");
#endif

uint32_t rocprofiler_version_major(void);
uint32_t rocprofiler_version_minor(void);
#ifndef ROCPROFILER_PUBLISHED
uint32_t rocprofiler_major_version(void);
uint32_t rocprofiler_minor_version(void);
#endif

/* Global properties. A tool that ROCP_TOOL_LIB names defines OnLoadToolProp, which may change them, or OnLoadTool. Those
   without a comment are ROCm's, and mean nothing here. */
typedef struct {
    uint32_t intercept_mode; /* 0: no callbacks on dispatches */
    uint32_t code_obj_tracking;
    uint32_t memcopy_tracking;
    uint32_t trace_size;
    uint32_t trace_local;
    uint64_t timeout;      /* how long is waited for data, in nanoseconds */
    uint32_t timestamp_on; /* 0: dispatches have no record */
    uint32_t hsa_intercepting;
    uint32_t k_concurrent;
    uint32_t opt_mode;
    uint32_t obj_dumping;
} rocprofiler_settings_t;

__attribute__((visibility("default"))) void OnLoadTool(void);
__attribute__((visibility("default"))) void OnLoadToolProp(rocprofiler_settings_t *settings);
__attribute__((visibility("default"))) void OnUnloadTool(void);

/* Information. */
typedef enum {
    ROCPROFILER_INFO_KIND_METRIC = 0,
    ROCPROFILER_INFO_KIND_METRIC_COUNT = 1, /* a uint32_t */
    ROCPROFILER_INFO_KIND_TRACE = 2,
    ROCPROFILER_INFO_KIND_TRACE_COUNT = 3, /* a uint32_t */
    ROCPROFILER_INFO_KIND_TRACE_PARAMETER = 4,
    ROCPROFILER_INFO_KIND_TRACE_PARAMETER_COUNT = 5 /* a uint32_t */
} rocprofiler_info_kind_t;

typedef struct {
    uint32_t agent_index;
    rocprofiler_info_kind_t kind;
    __extension__ union {
        struct {
            const char *name;
            uint32_t instances;
            const char *expr; /* NULL for basic counters */
            const char *description;
            const char *block_name; /* NULL for metrics with an expression */
            uint32_t block_counters;
        } metric;
        struct {
            const char *name;
            const char *description;
            uint32_t parameter_count;
        } trace;
        struct {
            uint32_t code;
            const char *trace_name;
            const char *parameter_name;
            const char *description;
        } trace_parameter;
    };
} rocprofiler_info_data_t;

#ifdef ROCPROFILER_PUBLISHED
typedef union {
    rocprofiler_info_kind_t info_kind;
    struct {
        const char *trace_name;
    } trace_parameter;
} rocprofiler_info_query_t;
#else
/* A field that is NULL or 0 fits everything. */
typedef rocprofiler_info_data_t rocprofiler_info_query_t;
#endif

/* A NULL agent stands for all devices that count. */
hsa_status_t rocprofiler_get_info(const hsa_agent_t *agent, rocprofiler_info_kind_t kind, void *data);
hsa_status_t rocprofiler_iterate_info(const hsa_agent_t *agent, rocprofiler_info_kind_t kind,
                                      hsa_status_t (*callback)(const rocprofiler_info_data_t info, void *data), void *data);
#ifdef ROCPROFILER_PUBLISHED
hsa_status_t rocprofiler_query_info(const hsa_agent_t *agent, rocprofiler_info_query_t query,
                                    hsa_status_t (*callback)(const rocprofiler_info_data_t info, void *data), void *data);
#else
hsa_status_t rocprofiler_query_info(const hsa_agent_t *agent, rocprofiler_info_kind_t kind, rocprofiler_info_query_t query,
                                    hsa_status_t (*callback)(const rocprofiler_info_data_t info, void *data), void *data)
    ROCPROFILER_SYMBOL("rocprofiler_document_query_info");
#endif

/* Contexts. */
typedef void rocprofiler_t;

typedef enum {
    ROCPROFILER_FEATURE_KIND_METRIC = 0,
    ROCPROFILER_FEATURE_KIND_TRACE = 1,
    ROCPROFILER_FEATURE_KIND_SPM_MOD = 2,
    ROCPROFILER_FEATURE_KIND_PCSMP_MOD = 4
} rocprofiler_feature_kind_t;

typedef hsa_ven_amd_aqlprofile_parameter_t rocprofiler_parameter_t;

#ifndef ROCPROFILER_PUBLISHED
#define ROCPROFILER_METRIC ROCPROFILER_FEATURE_KIND_METRIC
#define ROCPROFILER_TRACE ROCPROFILER_FEATURE_KIND_TRACE
typedef rocprofiler_parameter_t rocprofiler_feature_parameter_t;
#endif

typedef enum {
    ROCPROFILER_DATA_KIND_UNINIT = 0,
    ROCPROFILER_DATA_KIND_INT32 = 1,
    ROCPROFILER_DATA_KIND_INT64 = 2,
    ROCPROFILER_DATA_KIND_FLOAT = 3,
    ROCPROFILER_DATA_KIND_DOUBLE = 4,
    ROCPROFILER_DATA_KIND_BYTES = 5
} rocprofiler_data_kind_t;

typedef struct {
    rocprofiler_data_kind_t kind;
    __extension__ union {
        uint32_t result_int32;
        uint64_t result_int64;
        float result_float;
        double result_double;
        struct {
            void *ptr;
            uint32_t size;
            __extension__ union {
                uint32_t instances;
                uint32_t instance_count;
            };
            bool copy;
        } result_bytes;
    };
} rocprofiler_data_t;

typedef struct {
    __extension__ union {
        rocprofiler_feature_kind_t type;
        rocprofiler_feature_kind_t kind;
    };
    __extension__ union {
        const char *name;
        struct {
            const char *block;
            uint32_t event;
        } counter; /* nothing tells it from a name, which is what is read */
    };
    const rocprofiler_parameter_t *parameters;
    uint32_t parameter_count;
    rocprofiler_data_t data;
} rocprofiler_feature_t;

typedef enum {
    ROCPROFILER_MODE_STANDALONE = 1,
    ROCPROFILER_MODE_CREATEQUEUE = 2,
    ROCPROFILER_MODE_SINGLEGROUP = 4
} rocprofiler_mode_t;

typedef struct rocprofiler_group {
    uint32_t index;
    rocprofiler_feature_t **features;
    uint32_t feature_count;
    rocprofiler_t *context;
} rocprofiler_group_t;

#ifdef ROCPROFILER_PUBLISHED
/* What it returns means nothing. */
typedef bool (*rocprofiler_handler_t)(rocprofiler_group_t group, void *arg);

typedef struct {
    hsa_queue_t *queue;
    uint32_t queue_depth;
    rocprofiler_handler_t handler;
    void *handler_arg;
} rocprofiler_properties_t;
#else
typedef void (*rocprofiler_context_callback_t)(rocprofiler_group_t group, void *arg);

typedef struct {
    rocprofiler_context_callback_t callback;
    void *callback_arg;
    hsa_queue_t *queue;
    uint32_t queue_depth;
} rocprofiler_properties_t;
#endif

typedef hsa_ven_amd_aqlprofile_data_callback_t rocprofiler_trace_data_callback_t;

/* An entry of the trace GPUTRAIL_INSTRUCTION_TRACE, which the simulated GPU has: what an instruction of a kernel did. */
typedef struct {
    uint64_t offset;   /* from the begin of the code object */
    uint64_t executed; /* by wavefronts */
    uint64_t lanes;
    uint64_t diverged; /* branches that lanes took differently */
    uint64_t transactions;
    uint64_t ideal_transactions;
} rocprofiler_gputrail_instruction_t;

/* The features stay the caller's, and have to be there until the context is closed. */
#ifdef ROCPROFILER_PUBLISHED
hsa_status_t rocprofiler_open(hsa_agent_t agent, rocprofiler_feature_t *features, uint32_t feature_count,
                              rocprofiler_t **context, uint32_t mode, rocprofiler_properties_t *properties);
hsa_status_t rocprofiler_group_count(const rocprofiler_t *context, uint32_t *group_count);
hsa_status_t rocprofiler_get_metrics(const rocprofiler_t *context);
hsa_status_t rocprofiler_iterate_trace_data(rocprofiler_t *context, rocprofiler_trace_data_callback_t callback, void *data);
#else
hsa_status_t rocprofiler_open(hsa_agent_t agent, rocprofiler_feature_t *features, uint32_t feature_count,
                              rocprofiler_t **context, uint32_t mode, rocprofiler_properties_t *properties)
    ROCPROFILER_SYMBOL("rocprofiler_document_open");
hsa_status_t rocprofiler_group_count(rocprofiler_t *context, uint32_t *count);
hsa_status_t rocprofiler_get_metrics(rocprofiler_t *context);
hsa_status_t rocprofiler_iterate_trace_data(const rocprofiler_t *context, rocprofiler_trace_data_callback_t callback,
                                            void *callback_data);
#endif
hsa_status_t rocprofiler_close(rocprofiler_t *context);
hsa_status_t rocprofiler_get_agent(rocprofiler_t *context, hsa_agent_t *agent);
hsa_status_t rocprofiler_get_group(rocprofiler_t *context, uint32_t index, rocprofiler_group_t *group);

/* Times of the API are nanoseconds of CLOCK_BOOTTIME. */
#ifdef ROCPROFILER_PUBLISHED
typedef enum {
    ROCPROFILER_TIME_ID_CLOCK_REALTIME = 0,
    ROCPROFILER_TIME_ID_CLOCK_REALTIME_COARSE = 1,
    ROCPROFILER_TIME_ID_CLOCK_MONOTONIC = 2,
    ROCPROFILER_TIME_ID_CLOCK_MONOTONIC_COARSE = 3,
    ROCPROFILER_TIME_ID_CLOCK_MONOTONIC_RAW = 4
} rocprofiler_time_id_t;

/* `error_ns` says how exactly the value is known. Both places may be NULL. */
hsa_status_t rocprofiler_get_time(rocprofiler_time_id_t time_id, uint64_t timestamp, uint64_t *value_ns, uint64_t *error_ns);
#else
typedef enum {
    ROCPROFILER_TIME_ID_CLOCK_REALTIME = 0,
    ROCPROFILER_TIME_ID_CLOCK_MONOTONIC = 1
} rocprofiler_time_id_t;

hsa_status_t rocprofiler_get_time(rocprofiler_time_id_t time_id, uint64_t timestamp, uint64_t *value_ns)
    ROCPROFILER_SYMBOL("rocprofiler_document_get_time");
#endif

/* Sampling. `reset` is not in the document. */
hsa_status_t rocprofiler_start(rocprofiler_t *context, uint32_t group_index ROCPROFILER_DEFAULT(0));
hsa_status_t rocprofiler_stop(rocprofiler_t *context, uint32_t group_index ROCPROFILER_DEFAULT(0));
hsa_status_t rocprofiler_read(rocprofiler_t *context, uint32_t group_index ROCPROFILER_DEFAULT(0));
hsa_status_t rocprofiler_get_data(rocprofiler_t *context, uint32_t group_index ROCPROFILER_DEFAULT(0));
hsa_status_t rocprofiler_reset(rocprofiler_t *context, uint32_t group_index ROCPROFILER_DEFAULT(0));
hsa_status_t rocprofiler_group_start(rocprofiler_group_t *group);
hsa_status_t rocprofiler_group_stop(rocprofiler_group_t *group);
hsa_status_t rocprofiler_group_read(rocprofiler_group_t *group);
hsa_status_t rocprofiler_group_get_data(rocprofiler_group_t *group);
#ifndef ROCPROFILER_PUBLISHED
hsa_status_t rocprofiler_group_reset(rocprofiler_group_t *group);
#endif

/* Interception. */
typedef struct {
    uint64_t dispatch;
    uint64_t begin;
    uint64_t end;
    uint64_t complete;
} rocprofiler_dispatch_record_t;

typedef struct {
    hsa_agent_t agent;
    uint32_t agent_index;
    const hsa_queue_t *queue;
    uint64_t queue_index;
    uint32_t queue_id;              /* the number of the queue, from 0 */
    hsa_signal_t completion_signal; /* 0 */
    const hsa_kernel_dispatch_packet_t *packet;
    const char *kernel_name;
    uint64_t kernel_object;               /* that of the packet */
    const amd_kernel_code_t *kernel_code; /* 256 zeros */
    uint32_t thread_id;                   /* the calling thread */
    const rocprofiler_dispatch_record_t *record; /* filled when the kernel has ended; the tool frees it then */
} rocprofiler_callback_data_t;

typedef hsa_status_t (*rocprofiler_callback_t)(const rocprofiler_callback_data_t *callback_data, void *user_data,
                                               rocprofiler_group_t *group);

#ifdef ROCPROFILER_PUBLISHED
typedef struct {
    rocprofiler_callback_t dispatch;
    hsa_status_t (*create)(hsa_queue_t *queue, void *data);
    hsa_status_t (*destroy)(hsa_queue_t *queue, void *data);
} rocprofiler_queue_callbacks_t;

hsa_status_t rocprofiler_set_queue_callbacks(rocprofiler_queue_callbacks_t callbacks, void *data);
#else
typedef struct {
    rocprofiler_callback_t dispatch;
    hsa_status_t (*destroy)(hsa_queue_t *queue, void *data);
} rocprofiler_queue_callbacks_t;
typedef rocprofiler_queue_callbacks_t rocprofiler_intercepting_t;

hsa_status_t rocprofiler_set_queue_callbacks(rocprofiler_queue_callbacks_t callbacks, void *data)
    ROCPROFILER_SYMBOL("rocprofiler_document_set_queue_callbacks");
hsa_status_t rocprofiler_set_intercepting(rocprofiler_intercepting_t callbacks, void *data);
hsa_status_t rocprofiler_remove_intercepting(void);
hsa_status_t rocprofiler_add_dispatch_callback(rocprofiler_callback_t callback, void *data);
#endif
hsa_status_t rocprofiler_remove_queue_callbacks(void);

/* The callback on dispatches is called again, or not any more until then. Not in the document. */
hsa_status_t rocprofiler_start_queue_callbacks(void);
hsa_status_t rocprofiler_stop_queue_callbacks(void);

/* Pools. */
typedef void rocprofiler_pool_t;

typedef struct {
    rocprofiler_t *context;
    void *payload;
} rocprofiler_pool_entry_t;

/* Returns true for an entry that is to be released. */
typedef bool (*rocprofiler_pool_handler_t)(const rocprofiler_pool_entry_t *entry, void *arg);

typedef struct {
    uint32_t num_entries;
    uint32_t payload_bytes;
    rocprofiler_pool_handler_t handler;
    void *handler_arg;
} rocprofiler_pool_properties_t;

hsa_status_t rocprofiler_pool_open(hsa_agent_t agent, rocprofiler_feature_t *features, uint32_t feature_count,
                                   rocprofiler_pool_t **pool, uint32_t mode, rocprofiler_pool_properties_t *properties);
hsa_status_t rocprofiler_pool_close(rocprofiler_pool_t *pool);
hsa_status_t rocprofiler_pool_fetch(rocprofiler_pool_t *pool, rocprofiler_pool_entry_t *entry);
hsa_status_t rocprofiler_pool_release(rocprofiler_pool_entry_t *entry);
hsa_status_t rocprofiler_pool_iterate(rocprofiler_pool_t *pool,
                                      hsa_status_t (*callback)(rocprofiler_pool_entry_t *entry, void *data), void *data);
hsa_status_t rocprofiler_pool_flush(rocprofiler_pool_t *pool);

#ifdef ROCPROFILER_PUBLISHED
/* What needs an HSA runtime, or sets of features, which nothing makes: these functions answer HSA_STATUS_ERROR. */
typedef void rocprofiler_feature_set_t;

hsa_status_t rocprofiler_add_feature(const rocprofiler_feature_t *feature, rocprofiler_feature_set_t *features_set);
hsa_status_t rocprofiler_features_set_open(hsa_agent_t agent, rocprofiler_feature_set_t *features_set, rocprofiler_t **context,
                                           uint32_t mode, rocprofiler_properties_t *properties);
hsa_status_t rocprofiler_queue_create_profiled(hsa_agent_t agent_handle, uint32_t size, hsa_queue_type32_t type,
                                               void (*callback)(hsa_status_t status, hsa_queue_t *source, void *data),
                                               void *data, uint32_t private_segment_size, uint32_t group_segment_size,
                                               hsa_queue_t **queue);

typedef enum {
    ROCPROFILER_HSA_CB_ID_ALLOCATE = 0,
    ROCPROFILER_HSA_CB_ID_DEVICE = 1,
    ROCPROFILER_HSA_CB_ID_MEMCOPY = 2,
    ROCPROFILER_HSA_CB_ID_SUBMIT = 3,
    ROCPROFILER_HSA_CB_ID_KSYMBOL = 4,
    ROCPROFILER_HSA_CB_ID_CODEOBJ = 5
} rocprofiler_hsa_cb_id_t;

__extension__ typedef struct {
    __extension__ union {
        struct {
            const void *ptr;
            size_t size;
            hsa_amd_segment_t segment;
            hsa_amd_memory_pool_global_flag_t global_flag;
            int is_code;
        } allocate;
        struct {
            hsa_device_type_t type;
            uint32_t id;
            hsa_agent_t agent;
            const void *ptr;
        } device;
        struct {
            const void *dst;
            const void *src;
            size_t size;
        } memcopy;
        struct {
            const void *packet;
            const char *kernel_name;
            hsa_queue_t *queue;
            uint32_t device_type;
            uint32_t device_id;
        } submit;
        struct {
            uint64_t object;
            const char *name;
            uint32_t name_length;
            int unload;
        } ksymbol;
        struct {
            uint32_t storage_type;
            int storage_file;
            uint64_t memory_base;
            uint64_t memory_size;
            uint64_t load_base;
            uint64_t load_size;
            uint64_t load_delta;
            uint32_t uri_length;
            char *uri;
            int unload;
        } codeobj;
    };
} rocprofiler_hsa_callback_data_t;

typedef hsa_status_t (*rocprofiler_hsa_callback_fun_t)(rocprofiler_hsa_cb_id_t id, const rocprofiler_hsa_callback_data_t *data,
                                                       void *arg);

typedef struct {
    rocprofiler_hsa_callback_fun_t allocate;
    rocprofiler_hsa_callback_fun_t device;
    rocprofiler_hsa_callback_fun_t memcopy;
    rocprofiler_hsa_callback_fun_t submit;
    rocprofiler_hsa_callback_fun_t ksymbol;
    rocprofiler_hsa_callback_fun_t codeobj;
} rocprofiler_hsa_callbacks_t;

hsa_status_t rocprofiler_set_hsa_callbacks(const rocprofiler_hsa_callbacks_t callbacks, void *arg);
#endif

#ifdef __cplusplus
}
#endif

#endif
