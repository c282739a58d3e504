/* rocprofiler-sdk for gputrail: HIP. */
#ifndef ROCPROFILER_SDK_HIP_H
#define ROCPROFILER_SDK_HIP_H

#include <rocprofiler-sdk/hip/api_args.h>
#include <rocprofiler-sdk/hip/api_id.h>

/* Numbers and arguments of its functions. */

#endif
