/* rocprofiler-sdk for gputrail: the functions of HSA, by their numbers. */
#ifndef ROCPROFILER_SDK_HSA_API_ID_H
#define ROCPROFILER_SDK_HSA_API_ID_H

#include <rocprofiler-sdk/hsa/core_api_id.h>
#include <rocprofiler-sdk/hsa/amd_ext_api_id.h>
#include <rocprofiler-sdk/hsa/image_ext_api_id.h>
#include <rocprofiler-sdk/hsa/finalize_ext_api_id.h>

/* By the table that has them. */

#endif
