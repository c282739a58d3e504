/* rocprofiler-sdk for gputrail: the arguments of the functions of ROCTx. */
#ifndef ROCPROFILER_SDK_MARKER_API_ARGS_H
#define ROCPROFILER_SDK_MARKER_API_ARGS_H

#include <stdint.h>

/* In C and in C++, a structure of one byte. */
typedef struct rocprofiler_marker_api_no_args {
    char empty;
} rocprofiler_marker_api_no_args;

typedef union rocprofiler_marker_api_retval_t {
    int32_t int32_t_retval;
    int64_t int64_t_retval;
    /* The number of a range that roctxRangeStartA began. */
    uint64_t roctx_range_id_t_retval;
} rocprofiler_marker_api_retval_t;

/* Threads are numbered as gettid does. */
typedef union rocprofiler_marker_api_args_t {
    struct {
        const char *message;
    } roctxMarkA;
    struct {
        const char *message;
    } roctxRangePushA;
    struct {
        rocprofiler_marker_api_no_args no_args;
    } roctxRangePop;
    struct {
        const char *message;
    } roctxRangeStartA;
    struct {
        uint64_t id;
    } roctxRangeStop;
    struct {
        uint64_t *tid;
    } roctxGetThreadId;
    struct {
        uint64_t tid;
    } roctxProfilerPause;
    struct {
        uint64_t tid;
    } roctxProfilerResume;
    struct {
        const char *name;
    } roctxNameOsThread;
    struct {
        const char *name;
        const void *agent;
    } roctxNameHsaAgent;
    struct {
        const char *name;
        int device_id;
    } roctxNameHipDevice;
    struct {
        const char *name;
        const void *stream;
    } roctxNameHipStream;
    struct {
        const char *message;
    } roctxThreadRangeA;
    struct {
        const char *message;
    } roctxProcessRangeA;
} rocprofiler_marker_api_args_t;

#endif
