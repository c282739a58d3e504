/* The version of the API, and the layouts that go with it. CUPTI_GPUTRAIL_LAYOUT may be defined as 10, 11, 12 or 13: a program is compiled
   as with the headers of CUDA 10.0, 11.8, 12.9 or 13.5, and runs with libcupti.so.10.0, .11.8, .12 or .13. */
#ifndef CUPTI_VERSION_H
#define CUPTI_VERSION_H

#include <stdint.h>
#include "cupti_result.h"

#if defined(__cplusplus)
extern "C" {
#endif

#ifndef CUPTI_GPUTRAIL_LAYOUT
#define CUPTI_GPUTRAIL_LAYOUT 13
#endif

#if CUPTI_GPUTRAIL_LAYOUT == 13
#define CUPTI_API_VERSION 130500
#elif CUPTI_GPUTRAIL_LAYOUT == 12
#define CUPTI_API_VERSION 28
#elif CUPTI_GPUTRAIL_LAYOUT == 11
#define CUPTI_API_VERSION 18
#elif CUPTI_GPUTRAIL_LAYOUT == 10
#define CUPTI_API_VERSION 12
#else
#error "CUPTI_GPUTRAIL_LAYOUT is 10, 11, 12 or 13"
#endif

CUptiResult CUPTIAPI cuptiGetVersion(uint32_t *version);

#if defined(__cplusplus)
}
#endif

#endif
