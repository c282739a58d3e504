/* Functions of GPUPerfAPI 2, as AMD's "GPUPerfAPI User Guide" describes them. docs/apis.md of gputrail says what each does. */
#ifndef GPUPERFAPI_H
#define GPUPERFAPI_H

#include "GPUPerfAPITypes.h"

#ifdef __cplusplus
extern "C" {
#endif

GPA_Status GPA_RegisterLoggingCallback(GPA_Logging_Type loggingType, GPA_LoggingCallbackPtrType pCallbackFuncPtr);
GPA_Status GPA_Initialize(void);
GPA_Status GPA_Destroy(void);
GPA_Status GPA_OpenContext(void *pContext);
GPA_Status GPA_CloseContext(void);
GPA_Status GPA_SelectContext(void *pContext);
GPA_Status GPA_GetNumCounters(gpa_uint32 *pCount);
GPA_Status GPA_GetCounterName(gpa_uint32 index, const char **ppName);
GPA_Status GPA_GetCounterIndex(const char *pCounter, gpa_uint32 *pIndex);
GPA_Status GPA_GetCounterDescription(gpa_uint32 index, const char **ppDescription);
GPA_Status GPA_GetCounterDataType(gpa_uint32 index, GPA_Type *pCounterDataType);
GPA_Status GPA_GetCounterUsageType(gpa_uint32 index, GPA_Usage_Type *pCounterUsageType);
GPA_Status GPA_GetDataTypeAsStr(GPA_Type counterDataType, const char **ppTypeStr);
GPA_Status GPA_GetUsageTypeAsStr(GPA_Usage_Type counterUsageType, const char **ppTypeStr);
GPA_Status GPA_GetDeviceID(gpa_uint32 *pDeviceID);
GPA_Status GPA_GetDeviceDesc(const char **ppDesc);
GPA_Status GPA_EnableCounter(gpa_uint32 index);
GPA_Status GPA_DisableCounter(gpa_uint32 index);
GPA_Status GPA_EnableCounterStr(const char *pCounter);
GPA_Status GPA_DisableCounterStr(const char *pCounter);
GPA_Status GPA_EnableAllCounters(void);
GPA_Status GPA_DisableAllCounters(void);
GPA_Status GPA_GetEnabledCount(gpa_uint32 *pCount);
GPA_Status GPA_GetEnabledIndex(gpa_uint32 enabledNumber, gpa_uint32 *pEnabledCounterIndex);
GPA_Status GPA_IsCounterEnabled(gpa_uint32 counterIndex);
GPA_Status GPA_GetPassCount(gpa_uint32 *pNumPasses);
GPA_Status GPA_BeginSession(gpa_uint32 *pSessionID);
GPA_Status GPA_EndSession(void);
GPA_Status GPA_BeginPass(void);
GPA_Status GPA_EndPass(void);
GPA_Status GPA_BeginSample(gpa_uint32 sampleID);
GPA_Status GPA_EndSample(void);
GPA_Status GPA_GetSampleCount(gpa_uint32 sessionID, gpa_uint32 *pSamples);
GPA_Status GPA_IsSessionReady(bool *pReadyResult, gpa_uint32 sessionID);
GPA_Status GPA_IsSampleReady(bool *pReadyResult, gpa_uint32 sessionID, gpa_uint32 sampleID);
GPA_Status GPA_GetSampleUInt32(gpa_uint32 sessionID, gpa_uint32 sampleID, gpa_uint32 counterID, gpa_uint32 *pResult);
GPA_Status GPA_GetSampleUInt64(gpa_uint32 sessionID, gpa_uint32 sampleID, gpa_uint32 counterID, gpa_uint64 *pResult);
GPA_Status GPA_GetSampleFloat32(gpa_uint32 sessionID, gpa_uint32 sampleID, gpa_uint32 counterID, gpa_float32 *pResult);
GPA_Status GPA_GetSampleFloat64(gpa_uint32 sessionID, gpa_uint32 sampleID, gpa_uint32 counterID, gpa_float64 *pResult);
const char *GPA_GetStatusAsStr(GPA_Status status);

#ifdef __cplusplus
}
#endif

#endif
