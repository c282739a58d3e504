/* PC sampling by its newer API: samples of a context's device, counted by address and stall reason. */
#ifndef CUPTI_PCSAMPLING_H
#define CUPTI_PCSAMPLING_H

#include <stddef.h>
#include <stdint.h>
#include "cupti.h"

#if defined(__cplusplus)
extern "C" {
#endif

#define CUPTI_STALL_REASON_STRING_SIZE 128

typedef enum {
    CUPTI_PC_SAMPLING_COLLECTION_MODE_INVALID = 0,
    CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS = 1,
    CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED = 2
} CUpti_PCSamplingCollectionMode;

typedef enum {
    CUPTI_PC_SAMPLING_OUTPUT_DATA_FORMAT_INVALID = 0,
    CUPTI_PC_SAMPLING_OUTPUT_DATA_FORMAT_PARSED = 1
} CUpti_PCSamplingOutputDataFormat;

typedef enum {
    CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_INVALID = 0,
    CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD = 1,
    CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON = 2,
    CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE = 3,
    CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE = 4,
    CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE = 5,
    CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL = 6,
    CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_OUTPUT_DATA_FORMAT = 7,
    CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER = 8,
    CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_WORKER_THREAD_PERIODIC_SLEEP_SPAN = 9,
    CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_FORCE_INT = 0x7fffffff
} CUpti_PCSamplingConfigurationAttributeType;

typedef struct {
    uint32_t pcSamplingStallReasonIndex;
    uint32_t samples;
} CUpti_PCSamplingStallReason;

/* The program sets size and stallReason, and frees functionName. */
typedef struct {
    size_t size;
    uint64_t cubinCrc;
    uint64_t pcOffset;
    uint32_t functionIndex;
    uint32_t pad;
    char *functionName;
    size_t stallReasonCount;
    CUpti_PCSamplingStallReason *stallReason;
#if CUPTI_GPUTRAIL_LAYOUT >= 12
    uint32_t correlationId; /* in serialized mode; since CUDA 12.4 */
#endif
} CUpti_PCSamplingPCData;

/* The program sets size, collectNumPcs and pPcData. */
typedef struct {
    size_t size;
    size_t collectNumPcs;
    uint64_t totalSamples;
    uint64_t droppedSamples;
    size_t totalNumPcs;
    size_t remainingNumPcs;
    uint64_t rangeId;
    CUpti_PCSamplingPCData *pPcData;
    uint64_t nonUsrKernelsTotalSamples;
#if CUPTI_GPUTRAIL_LAYOUT >= 12
    uint8_t hardwareBufferFull;
#endif
} CUpti_PCSamplingData;

typedef struct {
    CUpti_PCSamplingConfigurationAttributeType attributeType;
    CUptiResult attributeStatus;
    union {
        struct {
            uint64_t data[3];
        } invalidData;
        struct {
            uint32_t samplingPeriod; /* 5 to 31: the exponent of 2 cycles */
        } samplingPeriodData;
        struct {
            size_t stallReasonCount;
            uint32_t *pStallReasonIndex;
        } stallReasonData;
        struct {
            size_t scratchBufferSize;
        } scratchBufferSizeData;
        struct {
            size_t hardwareBufferSize;
        } hardwareBufferSizeData;
        struct {
            CUpti_PCSamplingCollectionMode collectionMode;
        } collectionModeData;
        struct {
            uint32_t enableStartStopControl;
        } enableStartStopControlData;
        struct {
            CUpti_PCSamplingOutputDataFormat outputDataFormat;
        } outputDataFormatData;
        struct {
            void *samplingDataBuffer;
        } samplingDataBufferData;
        struct {
            uint32_t workerThreadPeriodicSleepSpan;
        } workerThreadPeriodicSleepSpanData;
    } attributeData;
} CUpti_PCSamplingConfigurationInfo;

typedef struct {
    size_t size;
    void *pPriv;
    CUcontext ctx;
    size_t numAttributes;
    CUpti_PCSamplingConfigurationInfo *pPCSamplingConfigurationInfo;
} CUpti_PCSamplingConfigurationInfoParams;
#define CUpti_PCSamplingConfigurationInfoParamsSize sizeof(CUpti_PCSamplingConfigurationInfoParams)

typedef struct {
    size_t size;
    void *pPriv;
    CUcontext ctx;
    void *pcSamplingData; /* a CUpti_PCSamplingData */
} CUpti_PCSamplingGetDataParams;
#define CUpti_PCSamplingGetDataParamsSize sizeof(CUpti_PCSamplingGetDataParams)

typedef struct {
    size_t size;
    void *pPriv;
    CUcontext ctx;
} CUpti_PCSamplingEnableParams;
#define CUpti_PCSamplingEnableParamsSize sizeof(CUpti_PCSamplingEnableParams)
typedef CUpti_PCSamplingEnableParams CUpti_PCSamplingDisableParams;
#define CUpti_PCSamplingDisableParamsSize sizeof(CUpti_PCSamplingDisableParams)
typedef CUpti_PCSamplingEnableParams CUpti_PCSamplingStartParams;
#define CUpti_PCSamplingStartParamsSize sizeof(CUpti_PCSamplingStartParams)
typedef CUpti_PCSamplingEnableParams CUpti_PCSamplingStopParams;
#define CUpti_PCSamplingStopParamsSize sizeof(CUpti_PCSamplingStopParams)

typedef struct {
    size_t size;
    void *pPriv;
    CUcontext ctx;
    size_t *numStallReasons;
} CUpti_PCSamplingGetNumStallReasonsParams;
#define CUpti_PCSamplingGetNumStallReasonsParamsSize sizeof(CUpti_PCSamplingGetNumStallReasonsParams)

typedef struct {
    size_t size;
    void *pPriv;
    CUcontext ctx;
    size_t numStallReasons;
    uint32_t *stallReasonIndex;
    char **stallReasons; /* places of CUPTI_STALL_REASON_STRING_SIZE bytes */
} CUpti_PCSamplingGetStallReasonsParams;
#define CUpti_PCSamplingGetStallReasonsParamsSize sizeof(CUpti_PCSamplingGetStallReasonsParams)

/* The program frees fileName and dirName. */
typedef struct {
    size_t size;
    const void *cubin;
    const char *functionName;
    size_t cubinSize;
    uint32_t lineNumber;
    uint64_t pcOffset;
    char *fileName;
    char *dirName;
} CUpti_GetSassToSourceCorrelationParams;
#define CUpti_GetSassToSourceCorrelationParamsSize sizeof(CUpti_GetSassToSourceCorrelationParams)

typedef struct {
    size_t size;
    size_t cubinSize;
    const void *cubin;
    uint64_t cubinCrc;
} CUpti_GetCubinCrcParams;
#define CUpti_GetCubinCrcParamsSize sizeof(CUpti_GetCubinCrcParams)

typedef void(CUPTIAPI *CUpti_ComputeCrcCallbackFunc)(const void *cubin, size_t cubinSize, uint64_t *cubinCrc);

CUptiResult CUPTIAPI cuptiPCSamplingSetConfigurationAttribute(CUpti_PCSamplingConfigurationInfoParams *pParams);
CUptiResult CUPTIAPI cuptiPCSamplingGetConfigurationAttribute(CUpti_PCSamplingConfigurationInfoParams *pParams);
CUptiResult CUPTIAPI cuptiPCSamplingGetData(CUpti_PCSamplingGetDataParams *pParams);
CUptiResult CUPTIAPI cuptiPCSamplingEnable(CUpti_PCSamplingEnableParams *pParams);
CUptiResult CUPTIAPI cuptiPCSamplingDisable(CUpti_PCSamplingDisableParams *pParams);
CUptiResult CUPTIAPI cuptiPCSamplingStart(CUpti_PCSamplingStartParams *pParams);
CUptiResult CUPTIAPI cuptiPCSamplingStop(CUpti_PCSamplingStopParams *pParams);
CUptiResult CUPTIAPI cuptiPCSamplingGetNumStallReasons(CUpti_PCSamplingGetNumStallReasonsParams *pParams);
CUptiResult CUPTIAPI cuptiPCSamplingGetStallReasons(CUpti_PCSamplingGetStallReasonsParams *pParams);
CUptiResult CUPTIAPI cuptiGetSassToSourceCorrelation(CUpti_GetSassToSourceCorrelationParams *pParams);
CUptiResult CUPTIAPI cuptiGetCubinCrc(CUpti_GetCubinCrcParams *pParams);
CUptiResult CUPTIAPI cuptiRegisterComputeCrcCallback(CUpti_ComputeCrcCallbackFunc funcComputeCubinCrc);

#if defined(__cplusplus)
}
#endif

#endif
