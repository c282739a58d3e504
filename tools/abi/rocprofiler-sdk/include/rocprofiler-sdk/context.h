/* rocprofiler-sdk for gputrail: contexts. */
#ifndef ROCPROFILER_SDK_CONTEXT_H
#define ROCPROFILER_SDK_CONTEXT_H

#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/fwd.h>

ROCPROFILER_EXTERN_C_INIT

#define ROCPROFILER_CONTEXT_NONE ROCPROFILER_HANDLE_LITERAL(rocprofiler_context_id_t, 0)

rocprofiler_status_t rocprofiler_create_context(rocprofiler_context_id_t *context_id);
rocprofiler_status_t rocprofiler_start_context(rocprofiler_context_id_t context_id);
rocprofiler_status_t rocprofiler_stop_context(rocprofiler_context_id_t context_id);
/* 1 if the context is started, and 0. */
rocprofiler_status_t rocprofiler_context_is_active(rocprofiler_context_id_t context_id, int *status);
/* 1 if the context can be started, and 0. */
rocprofiler_status_t rocprofiler_context_is_valid(rocprofiler_context_id_t context_id, int *status);

ROCPROFILER_EXTERN_C_FINI

#endif
