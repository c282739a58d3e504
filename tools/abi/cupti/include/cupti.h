/* CUPTI on gputrail, as of CUDA 10.0, 11.8, 12.9 or 13.5 (cupti_version.h). CUDA's own headers may be included before or after. */
#ifndef CUPTI_H
#define CUPTI_H

#include "cuda.h"
#include "cupti_result.h"
#include "cupti_version.h"

#include "cupti_activity.h"
#include "cupti_callbacks.h"
#include "cupti_events.h"
#include "cupti_metrics.h"

#include "cupti_driver_cbid.h"
#include "cupti_nvtx_cbid.h"
#include "cupti_runtime_cbid.h"

#include "generated_cuda_meta.h"
#include "generated_cuda_runtime_api_meta.h"

#endif
