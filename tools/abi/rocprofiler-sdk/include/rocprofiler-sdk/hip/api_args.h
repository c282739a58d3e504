/* rocprofiler-sdk for gputrail: the arguments and results of functions of HIP. */
#ifndef ROCPROFILER_SDK_HIP_API_ARGS_H
#define ROCPROFILER_SDK_HIP_API_ARGS_H

#include <stddef.h>
#include <stdint.h>
#include <rocprofiler-sdk/fwd.h>

/* HIP's handles. HIP's own header declares them alike. */
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct ihipGraph *hipGraph_t;
typedef struct hipGraphExec *hipGraphExec_t;
typedef struct hipArray *hipArray_t;
typedef const struct hipArray *hipArray_const_t;
typedef struct ihipCtx_t *hipCtx_t;

/* In C and in C++, a structure of one byte. */
typedef struct rocprofiler_hip_api_no_args {
    char empty;
} rocprofiler_hip_api_no_args;

/* The result: mostly a hipError_t, which is an int. */
typedef union rocprofiler_hip_api_retval_t {
    uint64_t uint64_t_retval;
    int int_retval;
    const char *const_charp_retval;
    int hipError_t_retval;
    /* Four sizes in bits and a kind: a hipChannelFormatDesc. */
    int hipChannelFormatDesc_retval[5];
    void **voidpp_retval;
} rocprofiler_hip_api_retval_t;

/* The arguments of the functions that gputrail tells of, by their names. */
typedef union rocprofiler_hip_api_args_t {
    struct {
        hipFunction_t func;
        unsigned int gridDimX;
        unsigned int gridDimY;
        unsigned int gridDimZ;
        unsigned int blockDimX;
        unsigned int blockDimY;
        unsigned int blockDimZ;
        unsigned int sharedMemBytes;
        hipStream_t stream;
        void **kernelParams;
        void **extra;
    } hipModuleLaunchKernel;
    struct {
        hipFunction_t func;
        uint32_t globalWorkSizeX;
        uint32_t globalWorkSizeY;
        uint32_t globalWorkSizeZ;
        uint32_t localWorkSizeX;
        uint32_t localWorkSizeY;
        uint32_t localWorkSizeZ;
        size_t sharedMemBytes;
        hipStream_t stream;
        void **kernelParams;
        void **extra;
        hipEvent_t startEvent;
        hipEvent_t stopEvent;
        uint32_t flags;
    } hipExtModuleLaunchKernel;
    struct {
        const void *function_address;
        rocprofiler_dim3_t numBlocks;
        rocprofiler_dim3_t dimBlocks;
        void **args;
        size_t sharedMemBytes;
        hipStream_t stream;
    } hipLaunchKernel;
    struct {
        hipStream_t stream;
        void (*fn)(void *);
        void *userData;
    } hipLaunchHostFunc;
    struct {
        hipGraphExec_t graphExec;
        hipStream_t stream;
    } hipGraphLaunch;
    struct {
        hipGraph_t *pGraph;
        unsigned int flags;
    } hipGraphCreate;
    struct {
        hipGraphExec_t *pGraphExec;
        hipGraph_t graph;
        void **pErrorNode;
        void *pLogBuffer;
        size_t bufferSize;
    } hipGraphInstantiate;
    struct {
        hipGraphExec_t graphExec;
    } hipGraphExecDestroy;
    struct {
        hipGraph_t graph;
    } hipGraphDestroy;
    struct {
        void *dst;
        const void *src;
        size_t sizeBytes;
        int kind;
    } hipMemcpy;
    struct {
        void *dst;
        const void *src;
        size_t sizeBytes;
        int kind;
        hipStream_t stream;
    } hipMemcpyAsync;
    struct {
        void *dst;
        const void *src;
        size_t sizeBytes;
        int kind;
        hipStream_t stream;
    } hipMemcpyWithStream;
    struct {
        void *dst;
        int dstDeviceId;
        const void *src;
        int srcDevice;
        size_t sizeBytes;
        hipStream_t stream;
    } hipMemcpyPeerAsync;
    struct {
        void *dst;
        size_t dpitch;
        const void *src;
        size_t spitch;
        size_t width;
        size_t height;
        int kind;
    } hipMemcpy2D;
    struct {
        void *dst;
        size_t dpitch;
        const void *src;
        size_t spitch;
        size_t width;
        size_t height;
        int kind;
        hipStream_t stream;
    } hipMemcpy2DAsync;
    struct {
        void *dst;
        size_t dpitch;
        hipArray_const_t src;
        size_t wOffset;
        size_t hOffset;
        size_t width;
        size_t height;
        int kind;
    } hipMemcpy2DFromArray;
    struct {
        void *dst;
        size_t dpitch;
        hipArray_const_t src;
        size_t wOffset;
        size_t hOffset;
        size_t width;
        size_t height;
        int kind;
        hipStream_t stream;
    } hipMemcpy2DFromArrayAsync;
    struct {
        hipArray_t dst;
        size_t wOffset;
        size_t hOffset;
        const void *src;
        size_t spitch;
        size_t width;
        size_t height;
        int kind;
    } hipMemcpy2DToArray;
    struct {
        hipArray_t dst;
        size_t wOffset;
        size_t hOffset;
        const void *src;
        size_t spitch;
        size_t width;
        size_t height;
        int kind;
        hipStream_t stream;
    } hipMemcpy2DToArrayAsync;
    struct {
        const void *p;
        hipStream_t stream;
    } hipMemcpy3DAsync;
    struct {
        void *dst;
        size_t pitch;
        int value;
        size_t width;
        size_t height;
        hipStream_t stream;
    } hipMemset2DAsync;
    struct {
        hipArray_t *array;
        const void *desc;
        size_t width;
        size_t height;
        unsigned int flags;
    } hipMallocArray;
    struct {
        hipCtx_t *ctx;
        unsigned int flags;
        int device;
    } hipCtxCreate;
    struct {
        hipCtx_t ctx;
    } hipCtxDestroy;
    struct {
        void *dst;
        int value;
        size_t sizeBytes;
        hipStream_t stream;
    } hipMemsetAsync;
    struct {
        void **ptr;
        size_t size;
    } hipMalloc;
    struct {
        void *ptr;
    } hipFree;
    struct {
        void **ptr;
        size_t size;
        unsigned int flags;
    } hipHostMalloc;
    struct {
        void *ptr;
    } hipHostFree;
    struct {
        void **dev_ptr;
        size_t size;
        unsigned int flags;
    } hipMallocManaged;
    struct {
        void *dev_ptr;
        hipStream_t stream;
    } hipFreeAsync;
    struct {
        const void *dev_ptr;
        size_t count;
        int device;
        hipStream_t stream;
    } hipMemPrefetchAsync;
    struct {
        hipStream_t *stream;
        unsigned int flags;
    } hipStreamCreateWithFlags;
    struct {
        hipStream_t stream;
    } hipStreamDestroy;
    struct {
        hipStream_t stream;
    } hipStreamSynchronize;
    struct {
        hipStream_t stream;
        hipEvent_t event;
        unsigned int flags;
    } hipStreamWaitEvent;
    struct {
        hipEvent_t *event;
    } hipEventCreate;
    struct {
        hipEvent_t *event;
        unsigned int flags;
    } hipEventCreateWithFlags;
    struct {
        hipEvent_t event;
        hipStream_t stream;
    } hipEventRecord;
    struct {
        hipEvent_t event;
    } hipEventSynchronize;
    struct {
        hipEvent_t event;
    } hipEventQuery;
    struct {
        hipEvent_t event;
    } hipEventDestroy;
    struct {
        hipModule_t *module;
        const void *image;
    } hipModuleLoadData;
    struct {
        hipModule_t *module;
        const char *fname;
    } hipModuleLoad;
    struct {
        hipModule_t module;
    } hipModuleUnload;
    struct {
        hipFunction_t *function;
        hipModule_t module;
        const char *kname;
    } hipModuleGetFunction;
    struct {
        unsigned int flags;
    } hipInit;
    struct {
        int *count;
    } hipGetDeviceCount;
    struct {
        int deviceId;
    } hipSetDevice;
    struct {
        int *pi;
        int attr;
        int deviceId;
    } hipDeviceGetAttribute;
    struct {
        size_t *free;
        size_t *total;
    } hipMemGetInfo;
    struct {
        rocprofiler_hip_api_no_args no_args;
    } hipDeviceSynchronize;
    struct {
        rocprofiler_hip_api_no_args no_args;
    } hipGetLastError;
} rocprofiler_hip_api_args_t;

#endif
