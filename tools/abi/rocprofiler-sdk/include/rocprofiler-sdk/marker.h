/* rocprofiler-sdk for gputrail: ROCTx. */
#ifndef ROCPROFILER_SDK_MARKER_H
#define ROCPROFILER_SDK_MARKER_H

#include <rocprofiler-sdk/marker/api_args.h>
#include <rocprofiler-sdk/marker/api_id.h>

/* Numbers and arguments of its functions. */

#endif
