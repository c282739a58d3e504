/* rocprofiler-sdk for gputrail: HSA. */
#ifndef ROCPROFILER_SDK_HSA_H
#define ROCPROFILER_SDK_HSA_H

#include <rocprofiler-sdk/hsa/api_id.h>
#include <rocprofiler-sdk/hsa/scratch_memory_args.h>
#include <rocprofiler-sdk/hsa/scratch_memory_id.h>

/* Numbers of its functions, and scratch memory. */

#endif
