/* Prints all counters and metrics of the first device that runs a kernel (chapter 5.1 of the document). */
#include "rocprofiler_example.h"

static hsa_status_t print_info(const rocprofiler_info_data_t info, void *data) {
    (void)data;
    if (info.kind != ROCPROFILER_INFO_KIND_METRIC) return HSA_STATUS_ERROR;
    if (info.metric.expr != NULL) {
        printf("Derived counter:  gpu-agent%u : %s : %s\n", info.agent_index, info.metric.name, info.metric.description);
        printf("      %s = %s\n", info.metric.name, info.metric.expr);
    } else {
        printf("Basic counter:  gpu-agent%u : %s", info.agent_index, info.metric.name);
        if (info.metric.instances > 1) printf("[0-%u]", info.metric.instances - 1);
        printf(" : %s\n", info.metric.description);
        printf("      block %s has %u counters\n", info.metric.block_name, info.metric.block_counters);
    }
    fflush(stdout);
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t dispatched(const rocprofiler_callback_data_t *data, void *user_data, rocprofiler_group_t *group) {
    (void)user_data;
    (void)group;
    SUCCEED(rocprofiler_iterate_info(&data->agent, ROCPROFILER_INFO_KIND_METRIC, print_info, NULL));
    SUCCEED(rocprofiler_remove_queue_callbacks());
    return HSA_STATUS_SUCCESS;
}

void OnLoadTool(void) {
    SUCCEED(rocprofiler_add_dispatch_callback(dispatched, NULL));
}

void OnUnloadTool(void) {
    SUCCEED(rocprofiler_remove_queue_callbacks());
}
