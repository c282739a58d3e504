/* CUPTI of CUDA 10.0 on gputrail. Include CUDA's own cuda.h before, if it is there. */
#ifndef CUPTI_H
#define CUPTI_H

#include "cupti_cuda.h"
#include "cupti_result.h"
#include "cupti_version.h"

#include "cupti_activity.h"
#include "cupti_callbacks.h"
#include "cupti_events.h"
#include "cupti_metrics.h"

#endif
