/* The types of CUDA that CUPTI is made of, for machines without CUDA's own headers. Where cuda.h is included before
   cupti.h, its types are used. */
#ifndef CUPTI_CUDA_H
#define CUPTI_CUDA_H

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

#if !defined(__cuda_cuda_h__) && !defined(CUDA_VERSION)

/* A device: its number in the order in which the process has come to know its devices, from 0. */
typedef int CUdevice;
/* A context of the runtime: its handle, in OpenCL the cl_context. */
typedef struct CUctx_st *CUcontext;
/* A queue, or a stream of the simulated GPU: its handle, in OpenCL the cl_command_queue. */
typedef struct CUstream_st *CUstream;

typedef struct CUuuid_st {
    char bytes[16];
} CUuuid;

/* The attributes of devices for which there are records of kind CUPTI_ACTIVITY_KIND_DEVICE_ATTRIBUTE. */
typedef enum CUdevice_attribute_enum {
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y = 3,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z = 4,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y = 6,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z = 7,
    CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY = 9,
    CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38
} CUdevice_attribute;

typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;

typedef enum CUgraphNodeType_enum {
    CU_GRAPH_NODE_TYPE_KERNEL = 0,
    CU_GRAPH_NODE_TYPE_MEMCPY = 1,
    CU_GRAPH_NODE_TYPE_MEMSET = 2,
    CU_GRAPH_NODE_TYPE_HOST = 3,
    CU_GRAPH_NODE_TYPE_GRAPH = 4,
    CU_GRAPH_NODE_TYPE_EMPTY = 5
} CUgraphNodeType;

#endif

#if defined(__cplusplus)
}
#endif

#endif
