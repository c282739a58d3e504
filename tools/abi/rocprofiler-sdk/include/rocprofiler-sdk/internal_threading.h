/* rocprofiler-sdk for gputrail: threads of the library. */
#ifndef ROCPROFILER_SDK_INTERNAL_THREADING_H
#define ROCPROFILER_SDK_INTERNAL_THREADING_H

#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/fwd.h>

ROCPROFILER_EXTERN_C_INIT

typedef void (*rocprofiler_internal_thread_library_cb_t)(rocprofiler_runtime_library_t library, void *data);

/* Calls before and after `libs`, a set of bits, make a thread. */
rocprofiler_status_t rocprofiler_at_internal_thread_create(rocprofiler_internal_thread_library_cb_t precreate,
    rocprofiler_internal_thread_library_cb_t postcreate, int libs, void *data);

/* A thread that calls the callbacks of buffers. */
typedef struct rocprofiler_callback_thread_t {
    uint64_t handle;
} rocprofiler_callback_thread_t;

rocprofiler_status_t rocprofiler_create_callback_thread(rocprofiler_callback_thread_t *cb_thread_id);
rocprofiler_status_t rocprofiler_assign_callback_thread(
    rocprofiler_buffer_id_t buffer_id, rocprofiler_callback_thread_t cb_thread_id);

ROCPROFILER_EXTERN_C_FINI

#endif
