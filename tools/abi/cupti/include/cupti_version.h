/* The version of the API: that of CUDA 10.0. */
#ifndef CUPTI_VERSION_H
#define CUPTI_VERSION_H

#include <stdint.h>
#include "cupti_result.h"

#if defined(__cplusplus)
extern "C" {
#endif

#define CUPTI_API_VERSION 12

CUptiResult CUPTIAPI cuptiGetVersion(uint32_t *version);

#if defined(__cplusplus)
}
#endif

#endif
