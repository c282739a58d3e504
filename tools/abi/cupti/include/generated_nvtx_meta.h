/* Numbers of NVTX's functions under the names that CUPTI's document has for them, and the parameters of the one that it shows. NVTX's own
   headers have the same names: a program includes either. */
#ifndef GENERATED_NVTX_META_H
#define GENERATED_NVTX_META_H

#include <stdint.h>
#include "cupti_nvtx_cbid.h"

enum {
    NVTX_CBID_CORE_NameOsThreadA = CUPTI_CBID_NVTX_nvtxNameOsThreadA,
    NVTX_CBID_CORE_NameOsThreadW = CUPTI_CBID_NVTX_nvtxNameOsThreadW
};

typedef struct nvtxNameOsThreadA_params_st {
    uint32_t threadId;
    const char *name;
} nvtxNameOsThreadA_params;

#endif
