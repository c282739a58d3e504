/* The types of CUDA's driver that CUPTI is made of, for machines without CUDA's own headers. If its own cuda.h is behind this one in the
   search path, that is used. */
#pragma GCC system_header
#ifdef __has_include_next
#if __has_include_next(<cuda.h>)
#include_next <cuda.h>
#endif
#endif

#ifndef GPUTRAIL_CUDA_H
#define GPUTRAIL_CUDA_H

#if !defined(__cuda_cuda_h__) && !defined(CUDA_VERSION)

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

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

typedef unsigned long long CUdeviceptr;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUevent_st *CUevent;
typedef int CUstreamAttrID;
typedef union CUstreamAttrValue_union CUstreamAttrValue;
typedef struct CUaccessPolicyWindow_st CUaccessPolicyWindow;
typedef void (*CUhostFn)(void *userData);

/* Statuses of the driver, as far as calls of OpenCL have them. */
typedef enum cudaError_enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_UNKNOWN = 999
} CUresult;

#if defined(__cplusplus)
}
#endif

#endif

#endif
