/* OpenMP: the function by which CUPTI takes the events of its runtime. A tool of OMPT calls it in its initialize, whose result is that of
   the function: 1, or 0 if nothing is taken. The type of lookup is that of omp-tools.h (ompt_function_lookup_t). */
#ifndef CUPTI_OPENMP_H
#define CUPTI_OPENMP_H

#include "cupti_result.h"

#if defined(__cplusplus)
extern "C" {
#endif

typedef void (*CUpti_OpenMpFunction)(void);
typedef CUpti_OpenMpFunction (*CUpti_OpenMpLookup)(const char *name);

int CUPTIAPI cuptiOpenMpInitialize(CUpti_OpenMpLookup lookup, const char *runtimeVersion, unsigned int omptVersion);
/* The same of CUDA 11 and later: the other arguments are not used. toolData is OMPT's ompt_data_t. */
int CUPTIAPI cuptiOpenMpInitialize_v2(CUpti_OpenMpLookup lookup, int initialDevice, void *toolData);

#if defined(__cplusplus)
}
#endif

#endif
