/* rocprofiler-sdk for gputrail: counters of agents. */
#ifndef ROCPROFILER_SDK_DEVICE_COUNTING_SERVICE_H
#define ROCPROFILER_SDK_DEVICE_COUNTING_SERVICE_H

#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/fwd.h>

ROCPROFILER_EXTERN_C_INIT

/* Sets what an agent counts, while its context is being started. */
typedef rocprofiler_status_t (*rocprofiler_device_counting_agent_cb_t)(
    rocprofiler_context_id_t context_id, rocprofiler_counter_config_id_t config_id);
/* Is called when the context is started, and calls `set_config`. */
typedef void (*rocprofiler_device_counting_service_cb_t)(rocprofiler_context_id_t context_id,
    rocprofiler_agent_id_t agent_id, rocprofiler_device_counting_agent_cb_t set_config, void *user_data);
typedef rocprofiler_device_counting_agent_cb_t rocprofiler_agent_set_profile_callback_t;

rocprofiler_status_t rocprofiler_configure_device_counting_service(rocprofiler_context_id_t context_id,
    rocprofiler_buffer_id_t buffer_id, rocprofiler_agent_id_t agent_id, rocprofiler_device_counting_service_cb_t cb,
    void *user_data);
/* `rec_count`: the room in `output_records`, then the number of records. */
rocprofiler_status_t rocprofiler_sample_device_counting_service(rocprofiler_context_id_t context_id,
    rocprofiler_user_data_t user_data, rocprofiler_counter_flag_t flags, rocprofiler_counter_record_t *output_records,
    size_t *rec_count);

ROCPROFILER_EXTERN_C_FINI

#endif
