/* OpenACC: the function by which CUPTI takes the events of its runtime. A library that ACC_PROFLIB names passes it the arguments of its
   acc_register_library. */
#ifndef CUPTI_OPENACC_H
#define CUPTI_OPENACC_H

#include "cupti_result.h"

#if defined(__cplusplus)
extern "C" {
#endif

CUptiResult CUPTIAPI cuptiOpenACCInitialize(void *profRegister, void *profUnregister, void *profLookup);

#if defined(__cplusplus)
}
#endif

#endif
