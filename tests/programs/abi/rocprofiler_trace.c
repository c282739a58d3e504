/* A tool of the simulated GPU: the trace of a kernel beside a counter of it. */
#include "rocprofiler.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures, infos, instances;
static rocprofiler_t *context;
static rocprofiler_feature_t features[2];
static uint64_t executed;

static void check(const char *what, int line, int holds) {
    if (holds) return;
    printf("line %d: does not hold: %s\n", line, what);
    failures++;
}
#define CHECK(what) check(#what, __LINE__, (what) ? 1 : 0)

static hsa_status_t see(const rocprofiler_info_data_t info, void *data) {
    CHECK(data == &infos && info.trace.parameter_count == 0 && info.trace.description != NULL);
    CHECK(strcmp(info.trace.name, "GPUTRAIL_INSTRUCTION_TRACE") == 0);
    infos++;
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t instance(hsa_ven_amd_aqlprofile_info_type_t type, hsa_ven_amd_aqlprofile_info_data_t *info, void *data) {
    const rocprofiler_gputrail_instruction_t *entry = (const rocprofiler_gputrail_instruction_t *)info->trace_data.ptr;
    const size_t count = info->trace_data.size / sizeof *entry;
    size_t of;
    CHECK(type == HSA_VEN_AMD_AQLPROFILE_INFO_TRACE_DATA && data == &instances && info->sample_id == 0);
    CHECK(count > 0 && info->trace_data.size % sizeof *entry == 0);
    for (of = 0; of < count; of++) {
        CHECK(of == 0 || entry[of].offset > entry[of - 1].offset);
        CHECK(entry[of].executed > 0 && entry[of].lanes >= entry[of].executed);
        executed += entry[of].executed;
    }
    instances++;
    return HSA_STATUS_SUCCESS;
}

/* The first kernel alone. */
static hsa_status_t dispatched(const rocprofiler_callback_data_t *data, void *user, rocprofiler_group_t *group) {
    uint32_t count = 0;
    (void)user;
    if (context != NULL) return HSA_STATUS_SUCCESS;
    CHECK(rocprofiler_get_info(&data->agent, ROCPROFILER_INFO_KIND_TRACE_COUNT, &count) == HSA_STATUS_SUCCESS && count == 1);
    CHECK(rocprofiler_iterate_info(&data->agent, ROCPROFILER_INFO_KIND_TRACE, see, &infos) == HSA_STATUS_SUCCESS && infos == 1);
    features[0].kind = ROCPROFILER_FEATURE_KIND_TRACE;
    features[0].name = "ANOTHER_TRACE";
    CHECK(rocprofiler_open(data->agent, features, 1, &context, 0, NULL) == HSA_STATUS_ERROR_INVALID_ARGUMENT);
    features[0].name = "GPUTRAIL_INSTRUCTION_TRACE";
    features[1].kind = ROCPROFILER_FEATURE_KIND_METRIC;
    features[1].name = "SQ_WAVES";
    CHECK(rocprofiler_open(data->agent, features, 2, &context, ROCPROFILER_MODE_SINGLEGROUP, NULL) == HSA_STATUS_SUCCESS);
    CHECK(rocprofiler_iterate_trace_data(context, instance, &instances) == HSA_STATUS_ERROR);
    CHECK(rocprofiler_get_group(context, 0, group) == HSA_STATUS_SUCCESS && group->feature_count == 2);
    return HSA_STATUS_SUCCESS;
}

void OnLoadToolProp(rocprofiler_settings_t *settings) {
    settings->timestamp_on = 1;
    CHECK(rocprofiler_add_dispatch_callback(dispatched, NULL) == HSA_STATUS_SUCCESS);
}

void OnUnloadTool(void) {
    CHECK(rocprofiler_iterate_trace_data(context, instance, &instances) == HSA_STATUS_SUCCESS);
    CHECK(rocprofiler_get_metrics(context) == HSA_STATUS_SUCCESS);
    CHECK(instances == 1 && features[1].data.kind == ROCPROFILER_DATA_KIND_INT64 && features[1].data.result_int64 > 0);
    CHECK(features[0].data.kind == ROCPROFILER_DATA_KIND_BYTES && features[0].data.result_bytes.size > 0);
    /* Each wavefront executes at least one instruction. */
    CHECK(executed >= features[1].data.result_int64);
    CHECK(rocprofiler_close(context) == HSA_STATUS_SUCCESS);
    printf(failures == 0 ? "passed\n" : "failed\n");
    fflush(stdout);
}
