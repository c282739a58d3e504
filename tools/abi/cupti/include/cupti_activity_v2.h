/* The functions of CUDA 13 that name a subscriber: those of the same names without _v2 for the one that there is. They refuse another
   handle with CUPTI_ERROR_INVALID_PARAMETER. */
#ifndef CUPTI_ACTIVITY_V2_H
#define CUPTI_ACTIVITY_V2_H

#include "cupti_activity.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* The fields of records that the program lays out itself: a selection is refused with CUPTI_ERROR_NOT_SUPPORTED. */
typedef struct {
    size_t structSize;
    size_t numFields;
    int *pFieldIds;
} CUpti_ActivityFieldSelection;

typedef struct {
    size_t structSize;
    int fieldId;
    size_t offset;
    size_t size;
    size_t alignment;
} CUpti_ActivityFieldLayoutEntry;

typedef struct {
    size_t structSize;
    CUpti_ActivityFieldLayoutEntry *pEntries;
    size_t numFields;
    size_t recordSize;
} CUpti_ActivityRecordLayout;

/* The functions of a kind of calls that have records (enable 1), or that have none (0). */
typedef struct {
    size_t structSize;
    CUpti_CallbackId *pCbids;
    size_t numCbids;
    uint8_t enable;
} CUpti_ActivityApiCbidOptions;

/* Options of the kinds CUPTI_ACTIVITY_KIND_DRIVER and CUPTI_ACTIVITY_KIND_RUNTIME. */
typedef struct {
    size_t structSize;
    CUpti_ActivityApiCbidOptions *pCbidOptions;
} CUpti_ActivityApiOptions;

typedef struct {
    size_t structSize;
    CUpti_ActivityFieldSelection fieldSelection;
    void *pKindOptions; /* CUpti_ActivityApiOptions, or null */
} CUpti_ActivityConfig;

typedef struct {
    size_t structSize;
} CUpti_BufferCallbackRequestInfo;

typedef struct {
    size_t structSize;
    uint64_t threadId;                            /* 0: buffers are not those of threads */
    CUpti_ActivityRecordLayout **ppRecordLayouts; /* null */
    size_t numRecordLayouts;                      /* 0 */
} CUpti_BufferCallbackCompleteInfo;

typedef void(CUPTIAPI *CUpti_BuffersCallbackRequestFunc_v2)(
    uint8_t **buffer, size_t *size, size_t *maxNumRecords, CUpti_BufferCallbackRequestInfo *info);
typedef void(CUPTIAPI *CUpti_BuffersCallbackCompleteFunc_v2)(
    uint8_t *buffer, size_t size, size_t validSize, CUpti_BufferCallbackCompleteInfo *info);

CUptiResult CUPTIAPI cuptiActivityDisable_v2(
    CUpti_SubscriberHandle subscriber, CUpti_ActivityKind kind, CUpti_ActivityConfig *config);
CUptiResult CUPTIAPI cuptiActivityEnableAndDump_v2(
    CUpti_SubscriberHandle subscriber, CUpti_ActivityKind kind, CUpti_ActivityConfig *config);
CUptiResult CUPTIAPI cuptiActivityEnableDriverApi_v2(
    CUpti_SubscriberHandle subscriber, CUpti_CallbackId cbid, uint8_t enable);
CUptiResult CUPTIAPI cuptiActivityEnableRuntimeApi_v2(
    CUpti_SubscriberHandle subscriber, CUpti_CallbackId cbid, uint8_t enable);
CUptiResult CUPTIAPI cuptiActivityEnable_v2(
    CUpti_SubscriberHandle subscriber, CUpti_ActivityKind kind, CUpti_ActivityConfig *config);
CUptiResult CUPTIAPI cuptiActivityGetAttribute_v2(
    CUpti_SubscriberHandle subscriber, CUpti_ActivityAttribute attr, size_t *valueSize, void *value);
CUptiResult CUPTIAPI cuptiActivityGetNextRecord_v2(
    CUpti_SubscriberHandle subscriber, uint8_t *buffer, size_t validBufferSizeBytes, CUpti_Activity **record);
CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords_v2(
    CUpti_SubscriberHandle subscriber, CUcontext context, uint32_t streamId, size_t *dropped);
CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId_v2(
    CUpti_SubscriberHandle subscriber, CUpti_ExternalCorrelationKind kind, uint64_t *lastId);
CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId_v2(
    CUpti_SubscriberHandle subscriber, CUpti_ExternalCorrelationKind kind, uint64_t id);
CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks_v2(
    CUpti_SubscriberHandle subscriber, CUpti_BuffersCallbackRequestFunc_v2 funcBufferRequested,
    CUpti_BuffersCallbackCompleteFunc_v2 funcBufferCompleted);
CUptiResult CUPTIAPI cuptiActivitySetAttribute_v2(
    CUpti_SubscriberHandle subscriber, CUpti_ActivityAttribute attr, size_t *valueSize, void *value);
CUptiResult CUPTIAPI cuptiGetTimestamp_v2(CUpti_SubscriberHandle subscriber, uint64_t *timestamp);

#if defined(__cplusplus)
}
#endif

#endif
