/* rocprofiler-sdk for gputrail: what only gputrail has, and functions that only answer that they cannot be had. */
#ifndef ROCPROFILER_SDK_GPUTRAIL_H
#define ROCPROFILER_SDK_GPUTRAIL_H

#include <rocprofiler-sdk/rocprofiler.h>

ROCPROFILER_EXTERN_C_INIT

/* All calls of OpenCL, and of the simulated GPU's runtime, with the numbers of gputrail's operations. Their records are
 * rocprofiler_buffer_tracing_hip_api_record_t. Visitors of kinds do not get them. */
#define ROCPROFILER_CALLBACK_TRACING_GPUTRAIL_OPENCL_API ((rocprofiler_callback_tracing_kind_t) 0x1000)
#define ROCPROFILER_CALLBACK_TRACING_GPUTRAIL_SIMULATED_API ((rocprofiler_callback_tracing_kind_t) 0x1001)
#define ROCPROFILER_BUFFER_TRACING_GPUTRAIL_OPENCL_API ((rocprofiler_buffer_tracing_kind_t) 0x1000)
#define ROCPROFILER_BUFFER_TRACING_GPUTRAIL_SIMULATED_API ((rocprofiler_buffer_tracing_kind_t) 0x1001)
#define ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_GPUTRAIL_OPENCL_API \
    ((rocprofiler_external_correlation_id_request_kind_t) 0x1000)
#define ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_GPUTRAIL_SIMULATED_API \
    ((rocprofiler_external_correlation_id_request_kind_t) 0x1001)

/* What callbacks of these kinds get: the values of the arguments, in the order of the function's, of which there are count, and
 * at the exit what the function has returned. */
typedef struct rocprofiler_gputrail_call_data_t {
    uint64_t size;
    uint64_t count;
    uint64_t arguments[20];
    uint64_t result;
} rocprofiler_gputrail_call_data_t;

/* ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED: thread traces, and counters over time. Their structures are AMD's. */
rocprofiler_status_t rocprofiler_configure_device_thread_trace_service(rocprofiler_context_id_t context_id,
    rocprofiler_agent_id_t agent_id, void *parameters, size_t num_parameters, void *shader_callback,
    rocprofiler_user_data_t callback_userdata);
rocprofiler_status_t rocprofiler_configure_dispatch_thread_trace_service(rocprofiler_context_id_t context_id,
    rocprofiler_agent_id_t agent_id, void *parameters, size_t num_parameters, void *dispatch_callback,
    void *shader_callback, void *callback_userdata);
rocprofiler_status_t rocprofiler_spm_configure_buffer_dispatch_service(rocprofiler_context_id_t context_id,
    rocprofiler_buffer_id_t buffer_id, void *callback, void *callback_data_args);
rocprofiler_status_t rocprofiler_spm_configure_callback_dispatch_service(rocprofiler_context_id_t context_id,
    void *dispatch_callback, void *dispatch_callback_args, void *record_callback, void *record_callback_args);
rocprofiler_status_t rocprofiler_spm_create_counter_config(rocprofiler_agent_id_t agent_id,
    rocprofiler_counter_id_t *counters_list, size_t counters_count, void **parameters, size_t parameters_count,
    rocprofiler_counter_config_id_t *config_id);
rocprofiler_status_t rocprofiler_spm_destroy_counter_config(rocprofiler_counter_config_id_t config_id);
rocprofiler_status_t rocprofiler_spm_iterate_agent_supported_counters(rocprofiler_agent_id_t agent_id, void *cb,
    void *user_data);
rocprofiler_status_t rocprofiler_spm_query_agent_configurations(rocprofiler_agent_id_t agent_id, void *cb,
    void *user_data);
/* ROCPROFILER_STATUS_ERROR_INCOMPATIBLE_REGISTER_VERSION: no runtime of AMD's registers itself. */
rocprofiler_status_t rocprofiler_iterate_runtime_registration_info(void *callback, void *data);

ROCPROFILER_EXTERN_C_FINI

#endif
