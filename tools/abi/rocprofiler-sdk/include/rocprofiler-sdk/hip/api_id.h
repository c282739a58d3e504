/* rocprofiler-sdk for gputrail: the functions of HIP, by their numbers. */
#ifndef ROCPROFILER_SDK_HIP_API_ID_H
#define ROCPROFILER_SDK_HIP_API_ID_H

#include <rocprofiler-sdk/hip/compiler_api_id.h>
#include <rocprofiler-sdk/hip/runtime_api_id.h>

/* Functions of the runtime, and functions that compiled code calls. */

#endif
