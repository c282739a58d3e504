/* Records of versions after CUDA 10.0: each structure has the fields of the one before, and more behind them. Fields that mean nothing
   here are 0. */
#ifndef CUPTI_ACTIVITY_LATER_H
#define CUPTI_ACTIVITY_LATER_H

#include "cupti_activity.h"

#if defined(__cplusplus)
extern "C" {
#endif

typedef enum {
    CUPTI_FUNC_SHMEM_LIMIT_DEFAULT = 0,
    CUPTI_FUNC_SHMEM_LIMIT_OPTIN = 1,
    CUPTI_FUNC_SHMEM_LIMIT_FORCE_INT = 0x7fffffff
} CUpti_FuncShmemLimitConfig;

typedef enum {
    CUPTI_CHANNEL_TYPE_INVALID = 0,
    CUPTI_CHANNEL_TYPE_COMPUTE = 1,
    CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY = 2,
    CUPTI_CHANNEL_TYPE_DECOMP = 3,
    CUPTI_CHANNEL_TYPE_FORCE_INT = 0x7fffffff
} CUpti_ChannelType;

typedef enum {
    CUPTI_CONTEXT_CIG_MODE_NONE = 0,
    CUPTI_CONTEXT_CIG_MODE_CIG = 1,
    CUPTI_CONTEXT_CIG_MODE_CIG_FALLBACK = 2,
    CUPTI_CONTEXT_CIG_MODE_FORCE_INT = 0x7fffffff
} CUpti_ContextCigMode;

typedef enum {
    CUPTI_FUNC_EXECUTION_MODEL_UNKNOWN = 0,
    CUPTI_FUNC_EXECUTION_MODEL_SIMT = 1,
    CUPTI_FUNC_EXECUTION_MODEL_TILE = 2,
    CUPTI_FUNC_EXECUTION_MODEL_HYBRID = 3,
    CUPTI_FUNC_EXECUTION_MODEL_SIZE = 4,
    CUPTI_FUNC_EXECUTION_MODEL_FORCE_INT = 0x7fffffff
} CUpti_FuncExecutionModel;

#define CUPTI_GPUTRAIL_KERNEL5                   \
    CUPTI_GPUTRAIL_KERNEL4                       \
    uint64_t graphNodeId;                        \
    CUpti_FuncShmemLimitConfig shmemLimitConfig; \
    uint32_t graphId;
typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_KERNEL5
} CUpti_ActivityKernel5;

#define CUPTI_GPUTRAIL_KERNEL6                 \
    CUPTI_GPUTRAIL_KERNEL5                     \
    CUaccessPolicyWindow *pAccessPolicyWindow;
typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_KERNEL6
} CUpti_ActivityKernel6;

#define CUPTI_GPUTRAIL_KERNEL7     \
    CUPTI_GPUTRAIL_KERNEL6         \
    uint32_t channelID;            \
    CUpti_ChannelType channelType;
typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_KERNEL7
} CUpti_ActivityKernel7;

#define CUPTI_GPUTRAIL_KERNEL8        \
    CUPTI_GPUTRAIL_KERNEL7            \
    uint32_t clusterX;                \
    uint32_t clusterY;                \
    uint32_t clusterZ;                \
    uint32_t clusterSchedulingPolicy; \
    uint64_t localMemoryTotal_v2;
typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_KERNEL8
} CUpti_ActivityKernel8;

#define CUPTI_GPUTRAIL_KERNEL9        \
    CUPTI_GPUTRAIL_KERNEL8            \
    uint32_t maxPotentialClusterSize; \
    uint32_t maxActiveClusters;
typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_KERNEL9
} CUpti_ActivityKernel9;

#define CUPTI_GPUTRAIL_KERNEL10 \
    CUPTI_GPUTRAIL_KERNEL9      \
    uint8_t isDeviceLaunched;   \
    uint8_t padding3[7];
typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_KERNEL10
} CUpti_ActivityKernel10;

#define CUPTI_GPUTRAIL_KERNEL11 \
    CUPTI_GPUTRAIL_KERNEL10     \
    int32_t priority;           \
    uint32_t padding4;
typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_KERNEL11
} CUpti_ActivityKernel11;

#define CUPTI_GPUTRAIL_KERNEL12 \
    CUPTI_GPUTRAIL_KERNEL11     \
    uint32_t executionModel;    \
    uint32_t padding5;
typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_KERNEL12
} CUpti_ActivityKernel12;

typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_KERNEL12
    uint32_t sourceGraphId;
    uint32_t padding6;
    uint64_t sourceGraphNodeId;
} CUpti_ActivityKernel13;

#define CUPTI_GPUTRAIL_MEMCPY3 \
    CUPTI_GPUTRAIL_MEMCPY      \
    uint64_t graphNodeId;
typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_MEMCPY3
} CUpti_ActivityMemcpy3;

typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_MEMCPY3
    uint32_t graphId;
    uint32_t padding;
} CUpti_ActivityMemcpy4;

typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_MEMCPY3
    uint32_t graphId;
    uint32_t channelID;
    CUpti_ChannelType channelType;
    uint32_t pad2;
} CUpti_ActivityMemcpy5;

#define CUPTI_GPUTRAIL_MEMCPY6     \
    CUPTI_GPUTRAIL_MEMCPY3         \
    uint32_t graphId;              \
    uint32_t channelID;            \
    CUpti_ChannelType channelType; \
    uint8_t isDeviceLaunched;      \
    uint8_t pad2[3];               \
    uint64_t copyCount;
typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_MEMCPY6
} CUpti_ActivityMemcpy6;

typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_MEMCPY6
    uint32_t sourceGraphId;
    uint32_t pad3;
    uint64_t sourceGraphNodeId;
} CUpti_ActivityMemcpy7;

typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_MEMCPY2
} CUpti_ActivityMemcpyPtoP;

#define CUPTI_GPUTRAIL_MEMCPY_PTO_P2 \
    CUPTI_GPUTRAIL_MEMCPY2           \
    uint64_t graphNodeId;
typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_MEMCPY_PTO_P2
} CUpti_ActivityMemcpyPtoP2;

typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_MEMCPY_PTO_P2
    uint32_t graphId;
    uint32_t padding;
} CUpti_ActivityMemcpyPtoP3;

typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_MEMCPY_PTO_P2
    uint32_t graphId;
    uint32_t channelID;
    CUpti_ChannelType channelType;
} CUpti_ActivityMemcpyPtoP4;

#define CUPTI_GPUTRAIL_MEMSET2 \
    CUPTI_GPUTRAIL_MEMSET      \
    uint64_t graphNodeId;
typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_MEMSET2
} CUpti_ActivityMemset2;

typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_MEMSET2
    uint32_t graphId;
    uint32_t padding;
} CUpti_ActivityMemset3;

#define CUPTI_GPUTRAIL_MEMSET4     \
    CUPTI_GPUTRAIL_MEMSET2         \
    uint32_t graphId;              \
    uint32_t channelID;            \
    CUpti_ChannelType channelType; \
    uint8_t isDeviceLaunched;      \
    uint8_t pad2[3];
typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_MEMSET4
} CUpti_ActivityMemset4;

typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_MEMSET4
    uint32_t sourceGraphId;
    uint32_t pad3;
    uint64_t sourceGraphNodeId;
} CUpti_ActivityMemset5;

typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_DEVICE2
    uint8_t isCudaVisible;
    uint8_t reserved[7];
} CUpti_ActivityDevice3;

#define CUPTI_GPUTRAIL_DEVICE4  \
    CUPTI_GPUTRAIL_DEVICE2      \
    uint8_t isCudaVisible;      \
    uint8_t isMigEnabled;       \
    uint8_t reserved[6];        \
    uint32_t gpuInstanceId;     \
    uint32_t computeInstanceId; \
    CUuuid migUuid;
typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_DEVICE4
} CUpti_ActivityDevice4;

#define CUPTI_GPUTRAIL_DEVICE5 \
    CUPTI_GPUTRAIL_DEVICE4     \
    uint32_t isNumaNode;       \
    uint32_t numaId;
typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_DEVICE5
} CUpti_ActivityDevice5;

typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_DEVICE5
    uint32_t numTpcs;
    uint32_t reserved0;
} CUpti_ActivityDevice6;

#define CUPTI_GPUTRAIL_CONTEXT2  \
    CUPTI_GPUTRAIL_CONTEXT       \
    uint32_t parentContextId;    \
    uint8_t isGreenContext;      \
    uint8_t padding;             \
    uint16_t numMultiprocessors;
typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_CONTEXT2
} CUpti_ActivityContext2;

#define CUPTI_GPUTRAIL_CONTEXT3   \
    CUPTI_GPUTRAIL_CONTEXT2       \
    CUpti_ContextCigMode cigMode; \
    uint32_t padding2;
typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_CONTEXT3
} CUpti_ActivityContext3;

typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_CONTEXT3
    uint64_t processId;
} CUpti_ActivityContext4;

#define CUPTI_GPUTRAIL_CUDA_EVENT2 \
    CUPTI_GPUTRAIL_CUDA_EVENT      \
    uint32_t deviceId;             \
    uint32_t pad2;                 \
    void *reserved0;               \
    uint64_t deviceTimestamp;      \
    uint64_t cudaEventSyncId;
typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_CUDA_EVENT2
} CUpti_ActivityCudaEvent2;

typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_CUDA_EVENT2
    uint64_t graphNodeId;
    uint32_t graphId;
    uint32_t sourceGraphId;
    uint64_t sourceGraphNodeId;
} CUpti_ActivityCudaEvent3;

typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_MARKER_DATA
    uint32_t cuptiDomainId;
    uint32_t padding;
} CUpti_ActivityMarkerData2;

#define CUPTI_GPUTRAIL_OVERHEAD2 \
    CUPTI_GPUTRAIL_OVERHEAD      \
    uint32_t correlationId;      \
    uint32_t reserved0;
typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_OVERHEAD2
} CUpti_ActivityOverhead2;

typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_OVERHEAD2
    void *overheadData;
} CUpti_ActivityOverhead3;

typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_SYNCHRONIZATION
    uint64_t cudaEventSyncId;
    uint32_t returnValue;
    uint32_t pad;
} CUpti_ActivitySynchronization2;

typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_UNIFIED_MEMORY_COUNTER2
    uint64_t processors[5];
} CUpti_ActivityUnifiedMemoryCounter3;

typedef struct CUPTI_RECORD {
    CUpti_ActivityKind kind;
    uint32_t nvlinkVersion;
    CUpti_DevType typeDev0;
    CUpti_DevType typeDev1;
    union {
        CUuuid uuidDev;
        CUpti_ActivityNvLinkNpu npu;
    } idDev0;
    union {
        CUuuid uuidDev;
        CUpti_ActivityNvLinkNpu npu;
    } idDev1;
    uint32_t flag;
    uint32_t physicalNvLinkCount;
    int8_t portDev0[32];
    int8_t portDev1[32];
    uint64_t bandwidth;
    uint8_t nvswitchConnected;
    uint8_t pad[7];
} CUpti_ActivityNvLink4;

typedef struct CUPTI_RECORD {
    CUpti_ActivityKind kind;
    uint32_t nvlinkVersion;
    CUpti_DevType typeDev0;
    CUpti_DevType typeDev1;
    union {
        CUuuid uuidDev;
        CUpti_ActivityNvLinkNpu npu;
    } idDev0;
    union {
        CUuuid uuidDev;
        CUpti_ActivityNvLinkNpu npu;
    } idDev1;
    uint32_t flag;
    uint32_t physicalNvLinkCount;
    uint32_t *portDev0;
    uint32_t *portDev1;
    uint64_t bandwidth;
    uint8_t nvswitchConnected;
    uint8_t pad[7];
} CUpti_ActivityNvLink5;

/* Of an overhead CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL. */
typedef struct {
    uint32_t commandBufferLength;
    uint32_t channelID;
    uint32_t channelType;
} CUpti_ActivityOverheadCommandBufferFullData;

/* Records of kind CUPTI_ACTIVITY_KIND_GRAPH_TRACE: a launch of a graph, from the begin of its first node to the end of its last one. */
#define CUPTI_GPUTRAIL_GRAPH_TRACE \
    CUpti_ActivityKind kind;       \
    uint32_t correlationId;        \
    uint64_t start;                \
    uint64_t end;                  \
    uint32_t deviceId;             \
    uint32_t graphId;              \
    uint32_t contextId;            \
    uint32_t streamId;             \
    void *reserved;
typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_GRAPH_TRACE
} CUpti_ActivityGraphTrace;

typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_GRAPH_TRACE
    uint32_t endDeviceId;
    uint32_t endContextId;
} CUpti_ActivityGraphTrace2;

/* Kinds of which there are no records here: nothing of them happens on any device. */

typedef enum {
    CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_INVALID = 0,
    CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED = 1,
    CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED = 2,
    CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED = 3,
    CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_FORCE_INT = 0x7fffffff
} CUpti_ActivityMemoryPoolOperationType;

#define CUPTI_GPUTRAIL_MEMORY_POOL                                 \
    CUpti_ActivityKind kind;                                       \
    CUpti_ActivityMemoryPoolOperationType memoryPoolOperationType; \
    CUpti_ActivityMemoryPoolType memoryPoolType;                   \
    uint32_t correlationId;                                        \
    uint32_t processId;                                            \
    uint32_t deviceId;                                             \
    size_t minBytesToKeep;                                         \
    uint64_t address;                                              \
    uint64_t size;                                                 \
    uint64_t releaseThreshold;                                     \
    uint64_t timestamp;
typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_MEMORY_POOL
} CUpti_ActivityMemoryPool;

typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_MEMORY_POOL
    uint64_t utilizedSize;
} CUpti_ActivityMemoryPool2;

typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_MEMORY_POOL
    uint64_t utilizedSize;
    uint8_t isManagedPool;
    uint8_t pad2[7];
} CUpti_ActivityMemoryPool3;

typedef enum {
    CUPTI_DEVICE_GRAPH_LAUNCH_MODE_INVALID = 0,
    CUPTI_DEVICE_GRAPH_LAUNCH_MODE_FIRE_AND_FORGET = 1,
    CUPTI_DEVICE_GRAPH_LAUNCH_MODE_TAIL = 2,
    CUPTI_DEVICE_GRAPH_LAUNCH_MODE_FIRE_AND_FORGET_AS_SIBLING = 3
} CUpti_DeviceGraphLaunchMode;

typedef struct CUPTI_RECORD {
    CUpti_ActivityKind kind;
    uint32_t deviceId;
    uint64_t start;
    uint64_t end;
    uint32_t graphId;
    uint32_t launcherGraphId;
    uint32_t deviceLaunchMode;
    uint32_t contextId;
    uint64_t streamId;
    void *reserved;
} CUpti_ActivityDeviceGraphTrace;

typedef struct CUPTI_RECORD {
    CUpti_ActivityKind kind;
    uint32_t deviceId;
    uint32_t contextId;
    uint32_t streamId;
    uint32_t channelID;
    CUpti_ChannelType channelType;
    uint32_t correlationId;
    uint32_t numberOfOperations;
    uint64_t sourceBytes;
    void *reserved0;
    uint64_t start;
    uint64_t end;
} CUpti_ActivityMemDecompress;

typedef enum {
    CUPTI_CONFIDENTIAL_COMPUTE_INVALID_ROTATION_EVENT = 0,
    CUPTI_CONFIDENTIAL_COMPUTE_KEY_ROTATION_CHANNEL_BLOCKED = 1,
    CUPTI_CONFIDENTIAL_COMPUTE_KEY_ROTATION_CHANNEL_DRAINED = 2,
    CUPTI_CONFIDENTIAL_COMPUTE_KEY_ROTATION_CHANNEL_UNBLOCKED = 3,
    CUPTI_CONFIDENTIAL_COMPUTE_EVENT_TYPE_FORCE_INT = 0x7fffffff
} CUpti_ConfidentialComputeRotationEventType;

typedef struct CUPTI_RECORD {
    CUpti_ActivityKind kind;
    CUpti_ConfidentialComputeRotationEventType eventType;
    uint32_t deviceId;
    uint32_t contextId;
    uint32_t channelId;
    CUpti_ChannelType channelType;
    uint64_t timestamp;
} CUpti_ActivityConfidentialComputeRotation;

typedef struct CUPTI_RECORD {
    CUpti_ActivityKind kind;
    uint32_t streamId;
    uint32_t contextId;
    uint32_t deviceId;
    uint32_t correlationId;
    uint32_t graphId;
    uint64_t graphNodeId;
    uint32_t processId;
    uint32_t threadId;
    uint64_t start;
    uint64_t end;
} CUpti_ActivityGraphHostNode;

typedef struct CUPTI_RECORD {
    CUpti_ActivityKind kind;
    uint32_t streamId;
    uint32_t contextId;
    uint32_t deviceId;
    uint32_t correlationId;
    uint32_t processId;
    uint32_t threadId;
    uint32_t padding;
    uint64_t start;
    uint64_t end;
} CUpti_ActivityHostLaunch;

typedef enum {
    CUPTI_COMPUTE_ENGINE_CTX_SWITCH_OPERATION_INVALID = 0,
    CUPTI_COMPUTE_ENGINE_CTX_SWITCH_OPERATION_START = 1,
    CUPTI_COMPUTE_ENGINE_CTX_SWITCH_OPERATION_END = 2,
    CUPTI_COMPUTE_ENGINE_CTX_SWITCH_OPERATION_COUNT = 0x7fffffff
} CUpti_ComputeEngineCtxSwitchOperationType;

typedef struct CUPTI_RECORD {
    CUpti_ActivityKind kind;
    uint32_t contextId;
    uint64_t timestamp;
    CUpti_ComputeEngineCtxSwitchOperationType operationType;
    uint32_t padding;
} CUpti_ActivityComputeEngineCtxSwitch;

#define CUPTI_GPUTRAIL_GREEN_CONTEXT \
    CUpti_ActivityKind kind;         \
    uint32_t contextId;              \
    uint32_t parentContextId;        \
    uint32_t deviceId;               \
    uint32_t numTpcs;                \
    uint16_t numMultiprocessors;     \
    uint8_t logicalTpcMaskSize;      \
    uint8_t padding;                 \
    uint32_t logicalTpcMask[32];
typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_GREEN_CONTEXT
} CUpti_ActivityGreenContext;

#define CUPTI_GPUTRAIL_GREEN_CONTEXT2   \
    CUPTI_GPUTRAIL_GREEN_CONTEXT        \
    uint64_t workqueueResourceId;       \
    uint32_t workqueueConcurrencyLimit; \
    uint32_t workqueueSharingScope;
typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_GREEN_CONTEXT2
} CUpti_ActivityGreenContext2;

typedef struct CUPTI_RECORD {
    CUPTI_GPUTRAIL_GREEN_CONTEXT2
    uint32_t workqueueChannelCount;
    uint32_t padding2;
    uint32_t workqueueChannelIds[32];
} CUpti_ActivityGreenContext3;

#if defined(__cplusplus)
}
#endif

#endif
