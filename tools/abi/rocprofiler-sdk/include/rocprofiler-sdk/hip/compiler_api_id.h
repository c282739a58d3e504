/* rocprofiler-sdk for gputrail: what compiled code calls of HIP, by number. */
#ifndef ROCPROFILER_SDK_HIP_COMPILER_API_ID_H
#define ROCPROFILER_SDK_HIP_COMPILER_API_ID_H

typedef enum rocprofiler_hip_compiler_api_id_t {
    ROCPROFILER_HIP_COMPILER_API_ID_NONE = -1,
    ROCPROFILER_HIP_COMPILER_API_ID___hipPopCallConfiguration = 0,
    ROCPROFILER_HIP_COMPILER_API_ID___hipPushCallConfiguration = 1,
    ROCPROFILER_HIP_COMPILER_API_ID___hipRegisterFatBinary = 2,
    ROCPROFILER_HIP_COMPILER_API_ID___hipRegisterFunction = 3,
    ROCPROFILER_HIP_COMPILER_API_ID___hipRegisterManagedVar = 4,
    ROCPROFILER_HIP_COMPILER_API_ID___hipRegisterSurface = 5,
    ROCPROFILER_HIP_COMPILER_API_ID___hipRegisterTexture = 6,
    ROCPROFILER_HIP_COMPILER_API_ID___hipRegisterVar = 7,
    ROCPROFILER_HIP_COMPILER_API_ID___hipUnregisterFatBinary = 8,
    ROCPROFILER_HIP_COMPILER_API_ID_LAST = 9,
} rocprofiler_hip_compiler_api_id_t;

#endif
