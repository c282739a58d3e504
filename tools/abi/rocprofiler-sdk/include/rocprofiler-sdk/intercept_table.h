/* rocprofiler-sdk for gputrail: the tables of functions that runtimes register. */
#ifndef ROCPROFILER_SDK_INTERCEPT_TABLE_H
#define ROCPROFILER_SDK_INTERCEPT_TABLE_H

#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/fwd.h>

ROCPROFILER_EXTERN_C_INIT

typedef void (*rocprofiler_intercept_library_cb_t)(rocprofiler_intercept_table_t type, uint64_t lib_version,
    uint64_t lib_instance, void **tables, uint64_t num_tables, void *user_data);

rocprofiler_status_t rocprofiler_query_intercept_table_name(
    rocprofiler_intercept_table_t kind, const char **name, uint64_t *name_len);
rocprofiler_status_t rocprofiler_at_intercept_table_registration(
    rocprofiler_intercept_library_cb_t callback, int libs, void *data);

ROCPROFILER_EXTERN_C_FINI

#endif
