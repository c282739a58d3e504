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
    CUPTI_CHANNEL_TYPE_FORCE_INT = 0x7fffffff
} CUpti_ChannelType;

typedef enum {
    CUPTI_CONTEXT_CIG_MODE_NONE = 0,
    CUPTI_CONTEXT_CIG_MODE_FORCE_INT = 0x7fffffff
} CUpti_ContextCigMode;

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
        struct {
            uint32_t index;
            uint32_t domainId;
        } npu;
    } idDev0;
    union {
        CUuuid uuidDev;
        struct {
            uint32_t index;
            uint32_t domainId;
        } npu;
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
        struct {
            uint32_t index;
            uint32_t domainId;
        } npu;
    } idDev0;
    union {
        CUuuid uuidDev;
        struct {
            uint32_t index;
            uint32_t domainId;
        } npu;
    } idDev1;
    uint32_t flag;
    uint32_t physicalNvLinkCount;
    uint32_t *portDev0;
    uint32_t *portDev1;
    uint64_t bandwidth;
    uint8_t nvswitchConnected;
    uint8_t pad[7];
} CUpti_ActivityNvLink5;

#if defined(__cplusplus)
}
#endif

#endif
