/* The profiler of ranges: no device here has its counters. The functions answer CUPTI_ERROR_NOT_SUPPORTED, and
   cuptiProfilerDeviceSupported CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED; counters are those of cupti_events.h. */
#ifndef CUPTI_PROFILER_TARGET_H
#define CUPTI_PROFILER_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include "cupti.h"

#if defined(__cplusplus)
extern "C" {
#endif

typedef enum {
    CUPTI_PROFILER_CONFIGURATION_UNKNOWN = 0,
    CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED = 1,
    CUPTI_PROFILER_CONFIGURATION_DISABLED = 2,
    CUPTI_PROFILER_CONFIGURATION_SUPPORTED = 3
} CUpti_Profiler_Support_Level;

typedef struct {
    size_t structSize;
    void *pPriv;
} CUpti_Profiler_Initialize_Params;

typedef struct {
    size_t structSize;
    void *pPriv;
    CUdevice cuDevice;
    CUpti_Profiler_Support_Level isSupported;
} CUpti_Profiler_DeviceSupported_Params;

CUptiResult CUPTIAPI cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params *pParams);
CUptiResult CUPTIAPI cuptiProfilerDeviceSupported(CUpti_Profiler_DeviceSupported_Params *pParams);

#if defined(__cplusplus)
}
#endif

#endif
