/* rocprofiler-sdk for gputrail: buffers of records. */
#ifndef ROCPROFILER_SDK_BUFFER_H
#define ROCPROFILER_SDK_BUFFER_H

#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/fwd.h>

ROCPROFILER_EXTERN_C_INIT

typedef void (*rocprofiler_buffer_tracing_cb_t)(rocprofiler_context_id_t context, rocprofiler_buffer_id_t buffer_id,
    rocprofiler_record_header_t **headers, size_t num_headers, void *data, uint64_t drop_count);

/* `watermark`: the bytes from which on records are delivered. */
rocprofiler_status_t rocprofiler_create_buffer(rocprofiler_context_id_t context, size_t size, size_t watermark,
    rocprofiler_buffer_policy_t policy, rocprofiler_buffer_tracing_cb_t callback, void *callback_data,
    rocprofiler_buffer_id_t *buffer_id);
rocprofiler_status_t rocprofiler_destroy_buffer(rocprofiler_buffer_id_t buffer_id);
rocprofiler_status_t rocprofiler_flush_buffer(rocprofiler_buffer_id_t buffer_id);

ROCPROFILER_EXTERN_C_FINI

#endif
