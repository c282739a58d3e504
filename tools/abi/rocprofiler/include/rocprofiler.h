/* ROCProfiler v1, as AMD's "ROCProfiler Version 1 Library Specification" describes it.
 *
 * Where the structures and the examples of that document differ, the examples count: `data` of a feature is a value and no
 * pointer, the callback of a context gets the group itself, that of a dispatch a place for it, and information has the index
 * of its device. Two names that the document has for one thing are both there.
 */
#ifndef ROCPROFILER_H
#define ROCPROFILER_H

#include "rocprofiler_hsa.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROCPROFILER_VERSION_MAJOR 7
#define ROCPROFILER_VERSION_MINOR 0

#ifdef __cplusplus
#define ROCPROFILER_DEFAULT(value) = value
extern "C" {
#else
#define ROCPROFILER_DEFAULT(value)
#endif

/* The sentence of the last failed call of this thread. */
const char *rocprofiler_error_string(void);

uint32_t rocprofiler_version_major(void);
uint32_t rocprofiler_version_minor(void);
uint32_t rocprofiler_major_version(void);
uint32_t rocprofiler_minor_version(void);

/* Global properties. A tool that ROCP_TOOL_LIB names defines OnLoadToolProp, which may change them, or OnLoadTool. */
typedef struct {
    uint32_t intercept_mode; /* 0: no callbacks on dispatches */
    uint64_t timeout;        /* how long is waited for data, in nanoseconds */
    uint32_t timestamp_on;   /* 0: dispatches have no record */
} rocprofiler_settings_t;

__attribute__((visibility("default"))) void OnLoadTool(void);
__attribute__((visibility("default"))) void OnLoadToolProp(rocprofiler_settings_t *settings);
__attribute__((visibility("default"))) void OnUnloadTool(void);

/* Information. */
typedef enum {
    ROCPROFILER_INFO_KIND_METRIC = 0,
    ROCPROFILER_INFO_KIND_METRIC_COUNT = 1, /* a uint32_t */
    ROCPROFILER_INFO_KIND_TRACE = 2,
    ROCPROFILER_INFO_KIND_TRACE_COUNT = 3 /* a uint32_t */
} rocprofiler_info_kind_t;

typedef struct {
    rocprofiler_info_kind_t kind;
    uint32_t agent_index;
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
    };
} rocprofiler_info_data_t;

/* A field that is NULL or 0 fits everything. */
typedef rocprofiler_info_data_t rocprofiler_info_query_t;

/* A NULL agent stands for all devices that count. */
hsa_status_t rocprofiler_get_info(const hsa_agent_t *agent, rocprofiler_info_kind_t kind, void *data);
hsa_status_t rocprofiler_iterate_info(const hsa_agent_t *agent, rocprofiler_info_kind_t kind,
                                      hsa_status_t (*callback)(const rocprofiler_info_data_t info, void *data), void *data);
hsa_status_t rocprofiler_query_info(const hsa_agent_t *agent, rocprofiler_info_kind_t kind, rocprofiler_info_query_t query,
                                    hsa_status_t (*callback)(const rocprofiler_info_data_t info, void *data), void *data);

/* Contexts. */
typedef void rocprofiler_t;

typedef enum {
    ROCPROFILER_FEATURE_KIND_METRIC = 0,
    ROCPROFILER_FEATURE_KIND_TRACE = 1
} rocprofiler_feature_kind_t;
#define ROCPROFILER_METRIC ROCPROFILER_FEATURE_KIND_METRIC
#define ROCPROFILER_TRACE ROCPROFILER_FEATURE_KIND_TRACE

typedef hsa_ven_amd_aqlprofile_parameter_t rocprofiler_feature_parameter_t;

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
        } result_bytes;
    };
} rocprofiler_data_t;

typedef struct {
    __extension__ union {
        rocprofiler_feature_kind_t type;
        rocprofiler_feature_kind_t kind;
    };
    const char *name;
    const rocprofiler_feature_parameter_t *parameters;
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

typedef void (*rocprofiler_context_callback_t)(rocprofiler_group_t group, void *arg);

typedef struct {
    rocprofiler_context_callback_t callback;
    void *callback_arg;
    hsa_queue_t *queue;
    uint32_t queue_depth;
} rocprofiler_properties_t;

/* The features stay the caller's, and have to be there until the context is closed. */
hsa_status_t rocprofiler_open(hsa_agent_t agent, rocprofiler_feature_t *features, uint32_t feature_count,
                              rocprofiler_t **context, uint32_t mode, rocprofiler_properties_t *properties);
hsa_status_t rocprofiler_close(rocprofiler_t *context);

hsa_status_t rocprofiler_group_count(rocprofiler_t *context, uint32_t *count);
hsa_status_t rocprofiler_get_group(rocprofiler_t *context, uint32_t index, rocprofiler_group_t *group);
hsa_status_t rocprofiler_get_metrics(rocprofiler_t *context);
hsa_status_t rocprofiler_iterate_trace_data(const rocprofiler_t *context, hsa_ven_amd_aqlprofile_data_callback_t callback,
                                            void *callback_data);

typedef enum {
    ROCPROFILER_TIME_ID_CLOCK_REALTIME = 0,
    ROCPROFILER_TIME_ID_CLOCK_MONOTONIC = 1
} rocprofiler_time_id_t;

/* Times of the API are nanoseconds of CLOCK_BOOTTIME. */
hsa_status_t rocprofiler_get_time(rocprofiler_time_id_t time_id, uint64_t timestamp, uint64_t *value_ns);

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
hsa_status_t rocprofiler_group_reset(rocprofiler_group_t *group);

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
    const hsa_kernel_dispatch_packet_t *packet;
    const char *kernel_name;
    const rocprofiler_dispatch_record_t *record; /* filled when the kernel has ended; there as long as its group's context */
} rocprofiler_callback_data_t;

typedef hsa_status_t (*rocprofiler_callback_t)(const rocprofiler_callback_data_t *callback_data, void *user_data,
                                               rocprofiler_group_t *group);

typedef struct {
    rocprofiler_callback_t dispatch;
    hsa_status_t (*destroy)(hsa_queue_t *queue, void *data);
} rocprofiler_queue_callbacks_t;
typedef rocprofiler_queue_callbacks_t rocprofiler_intercepting_t;

hsa_status_t rocprofiler_set_queue_callbacks(rocprofiler_queue_callbacks_t callbacks, void *data);
hsa_status_t rocprofiler_remove_queue_callbacks(void);
hsa_status_t rocprofiler_set_intercepting(rocprofiler_intercepting_t callbacks, void *data);
hsa_status_t rocprofiler_remove_intercepting(void);
hsa_status_t rocprofiler_add_dispatch_callback(rocprofiler_callback_t callback, void *data);

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

#ifdef __cplusplus
}
#endif

#endif
