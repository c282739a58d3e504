/* The Callback API: functions of the program are called back at enter and exit of calls, and when objects come and go. */
#ifndef CUPTI_CALLBACKS_H
#define CUPTI_CALLBACKS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "cuda.h"
#include "cupti_result.h"
#include "cupti_version.h"

#if defined(__cplusplus)
extern "C" {
#endif

typedef enum {
    CUPTI_API_ENTER = 0,
    CUPTI_API_EXIT = 1,
    CUPTI_API_CBSITE_FORCE_INT = 0x7fffffff
} CUpti_ApiCallbackSite;

typedef enum {
    CUPTI_CB_DOMAIN_INVALID = 0,
    CUPTI_CB_DOMAIN_DRIVER_API = 1,
    CUPTI_CB_DOMAIN_RUNTIME_API = 2,
    CUPTI_CB_DOMAIN_RESOURCE = 3,
    CUPTI_CB_DOMAIN_SYNCHRONIZE = 4,
    CUPTI_CB_DOMAIN_NVTX = 5,
    CUPTI_CB_DOMAIN_STATE = 6,
#if CUPTI_GPUTRAIL_LAYOUT >= 12
    CUPTI_CB_DOMAIN_SIZE = 7,
#else
    CUPTI_CB_DOMAIN_SIZE = 6,
#endif
    CUPTI_CB_DOMAIN_FORCE_INT = 0x7fffffff
} CUpti_CallbackDomain;

typedef enum {
    CUPTI_CBID_RESOURCE_INVALID = 0,
    CUPTI_CBID_RESOURCE_CONTEXT_CREATED = 1,
    CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING = 2,
    CUPTI_CBID_RESOURCE_STREAM_CREATED = 3,
    CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING = 4,
    CUPTI_CBID_RESOURCE_CU_INIT_FINISHED = 5,
    CUPTI_CBID_RESOURCE_MODULE_LOADED = 6,
    CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING = 7,
    CUPTI_CBID_RESOURCE_MODULE_PROFILED = 8,
    CUPTI_CBID_RESOURCE_GRAPH_CREATED = 9,
    CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING = 10,
    CUPTI_CBID_RESOURCE_GRAPH_CLONED = 11,
    CUPTI_CBID_RESOURCE_GRAPHNODE_CREATE_STARTING = 12,
    CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED = 13,
    CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING = 14,
    CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_CREATED = 15,
    CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_DESTROY_STARTING = 16,
    CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING = 17,
    CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED = 18,
    CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING = 19,
    CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED = 20,
    CUPTI_CBID_RESOURCE_STREAM_ATTRIBUTE_CHANGED = 21,
    CUPTI_CBID_RESOURCE_GRAPH_NODE_UPDATED = 22,
    CUPTI_CBID_RESOURCE_GRAPH_NODE_SET_PARAMS = 23,
    CUPTI_CBID_RESOURCE_LOGICAL_ENDPOINT_CREATED = 24,
    CUPTI_CBID_RESOURCE_LOGICAL_ENDPOINT_DESTROYED = 25,
#if CUPTI_GPUTRAIL_LAYOUT >= 13
    CUPTI_CBID_RESOURCE_SIZE = 26,
#elif CUPTI_GPUTRAIL_LAYOUT >= 12
    CUPTI_CBID_RESOURCE_SIZE = 22,
#elif CUPTI_GPUTRAIL_LAYOUT >= 11
    CUPTI_CBID_RESOURCE_SIZE = 21,
#else
    CUPTI_CBID_RESOURCE_SIZE = 20,
#endif
    CUPTI_CBID_RESOURCE_FORCE_INT = 0x7fffffff
} CUpti_CallbackIdResource;

typedef enum {
    CUPTI_CBID_SYNCHRONIZE_INVALID = 0,
    CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED = 1,
    CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED = 2,
    CUPTI_CBID_SYNCHRONIZE_SIZE,
    CUPTI_CBID_SYNCHRONIZE_FORCE_INT = 0x7fffffff
} CUpti_CallbackIdSync;

/* Of the domain CUPTI_CB_DOMAIN_STATE, in which nothing is told. */
typedef enum {
    CUPTI_CBID_STATE_INVALID = 0,
    CUPTI_CBID_STATE_FATAL_ERROR = 1,
    CUPTI_CBID_STATE_ERROR = 2,
    CUPTI_CBID_STATE_WARNING = 3,
    CUPTI_CBID_STATE_SIZE,
    CUPTI_CBID_STATE_FORCE_INT = 0x7fffffff
} CUpti_CallbackIdState;

/* Calls have ids of CUDA's functions that do the same (cupti_driver_cbid.h, cupti_runtime_cbid.h), and beside them those of gputrail:
   of a function of OpenCL (domain CUPTI_CB_DOMAIN_DRIVER_API) or of the simulated GPU's runtime
   (CUPTI_CB_DOMAIN_RUNTIME_API) this number plus that of the function; of NVTX (CUPTI_CB_DOMAIN_NVTX) this number plus
   a CUpti_GputrailMarker. */
#define CUPTI_CBID_GPUTRAIL 0x10000
/* The most arguments that a function has. */
#define CUPTI_GPUTRAIL_PARAMS 32

typedef uint32_t CUpti_CallbackId;
typedef struct CUpti_Subscriber_st *CUpti_SubscriberHandle;
typedef CUpti_CallbackDomain *CUpti_DomainTable;

/* Where functionParams of CUpti_CallbackData leads to: the arguments of the call in the order of its signature. A number
   is itself, a signed one extended to 64 bits; a pointer or handle is an address. */
typedef struct {
    uint64_t count;
    uint64_t values[CUPTI_GPUTRAIL_PARAMS];
} CUpti_GputrailParams;

/* What a marker is. */
typedef enum {
    CUPTI_GPUTRAIL_MARKER_INSTANT = 1,
    CUPTI_GPUTRAIL_MARKER_PUSH = 2,
    CUPTI_GPUTRAIL_MARKER_POP = 3,
    CUPTI_GPUTRAIL_MARKER_START = 4,
    CUPTI_GPUTRAIL_MARKER_END = 5
} CUpti_GputrailMarker;

/* Where functionParams of CUpti_NvtxData leads to. */
typedef struct {
    uint64_t id;          /* of ranges that are started and ended; else 0 */
    const char *name;     /* null where the call has none */
    const char *domain;   /* null for the default domain */
    const char *category; /* null for none */
    uint32_t color;       /* alpha, red, green, blue; 0 for none */
    uint32_t threadId;
} CUpti_GputrailMarkerParams;

/* Domains CUPTI_CB_DOMAIN_DRIVER_API and CUPTI_CB_DOMAIN_RUNTIME_API. */
typedef struct {
    CUpti_ApiCallbackSite callbackSite;
    const char *functionName;
    const void *functionParams; /* under an id of CUDA the function's structure (generated_cuda_meta.h), under gputrail's CUpti_GputrailParams */
    void *functionReturnValue;  /* at exit: leads to 8 bytes, whose first 4 are the status of functions that have one */
    const char *symbolName;     /* the kernel of a launch, else null */
    CUcontext context;
    uint32_t contextUid;
    uint64_t *correlationData;
    uint32_t correlationId;
} CUpti_CallbackData;

/* Domain CUPTI_CB_DOMAIN_RESOURCE. */
typedef struct {
    CUcontext context;
    union {
        CUstream stream;
    } resourceHandle;
    void *resourceDescriptor; /* of modules CUpti_ModuleResourceData, of graphs CUpti_GraphData, else null */
} CUpti_ResourceData;

typedef struct {
    uint32_t moduleId;
    size_t cubinSize;
    const char *pCubin;
} CUpti_ModuleResourceData;

typedef struct {
    CUgraph graph;
    CUgraph originalGraph;
    CUgraphNode node;
#if CUPTI_GPUTRAIL_LAYOUT >= 11
    CUgraphNode originalNode;
#endif
    CUgraphNodeType nodeType;
    CUgraphNode dependency;
    CUgraphExec graphExec;
} CUpti_GraphData;

/* Of CUPTI_CBID_RESOURCE_STREAM_ATTRIBUTE_CHANGED, which is never told. */
typedef struct {
    CUstream stream;
    CUstreamAttrID attr;
    const CUstreamAttrValue *value;
} CUpti_StreamAttrData;

typedef enum {
    CUPTI_LOGICAL_ENDPOINT_TYPE_INVALID = 0,
    CUPTI_LOGICAL_ENDPOINT_TYPE_UNICAST = 1,
    CUPTI_LOGICAL_ENDPOINT_TYPE_MULTICAST = 2,
    CUPTI_LOGICAL_ENDPOINT_TYPE_FORCE_INT = 0x7fffffff
} CUpti_LogicalEndpointType;

/* Of CUPTI_CBID_RESOURCE_LOGICAL_ENDPOINT_CREATED and its like, which are never told. */
typedef struct {
    uint32_t logicalEndpointId;
    CUpti_LogicalEndpointType type;
    uint64_t size;
    union {
        uint32_t unicastDeviceId;
        uint32_t multicastTeamSize;
    } typeInfo;
    uint32_t flags;
} CUpti_LogicalEndpointResourceData;

/* Domain CUPTI_CB_DOMAIN_STATE, in which nothing is told. */
typedef struct {
    struct {
        CUptiResult result;
        const char *message;
    } notification;
} CUpti_StateData;

/* Domain CUPTI_CB_DOMAIN_SYNCHRONIZE. */
typedef struct {
    CUcontext context;
    CUstream stream;
} CUpti_SynchronizeData;

/* Domain CUPTI_CB_DOMAIN_NVTX. */
typedef struct {
    const char *functionName;
    const void *functionParams; /* CUpti_GputrailMarkerParams */
#if CUPTI_GPUTRAIL_LAYOUT >= 11
    const void *functionReturnValue; /* null */
#endif
} CUpti_NvtxData;

/* The payload of a marker of NVTX's extension: none is told. */
typedef enum {
    CUPTI_NVTX_EXT_PAYLOAD_TYPE_UNKNOWN = 0,
    CUPTI_NVTX_EXT_PAYLOAD_TYPE_SCHEMA = 1,
    CUPTI_NVTX_EXT_PAYLOAD_TYPE_ENUM = 2,
    CUPTI_NVTX_EXT_PAYLOAD_TYPE_FORCE_INT = 0x7fffffff
} CUpti_NvtxExtPayloadType;

typedef struct {
    uint32_t structSize;
    uint32_t type;
    void *attributes;
} CUpti_NvtxExtPayloadAttr;

#define CUPTI_SUBSCRIBER_NAME_MAX_LEN 53
#define CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN 64

typedef struct {
    size_t structSize;
    const char *subscriberName;
    char *oldSubscriberName; /* a place for the name of the subscriber that there is already, or null */
    size_t oldSubscriberSize;
    uint8_t allowMultipleSubscribers; /* not used: there is one subscriber */
    uint8_t padding[7];
} CUpti_SubscriberParams;

typedef void(CUPTIAPI *CUpti_CallbackFunc)(void *userdata, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                                           const void *cbdata);

CUptiResult CUPTIAPI cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle subscriber);
CUptiResult CUPTIAPI cuptiEnableCallback(
    uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,
    CUpti_CallbackId cbid);
CUptiResult CUPTIAPI cuptiEnableDomain(
    uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain);
CUptiResult CUPTIAPI cuptiGetCallbackName(
    CUpti_CallbackDomain domain, uint32_t cbid, const char* *name);
CUptiResult CUPTIAPI cuptiGetCallbackState(
    uint32_t *enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,
    CUpti_CallbackId cbid);
CUptiResult CUPTIAPI cuptiGetEnabledCallbacks(
    CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain, CUpti_CallbackId *cbids, uint32_t *room,
    uint32_t *count);
CUptiResult CUPTIAPI cuptiSubscribe(
    CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *userdata);
CUptiResult CUPTIAPI cuptiSubscribe_v2(
    CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *userdata, CUpti_SubscriberParams *params);
CUptiResult CUPTIAPI cuptiSupportedDomains(size_t *domainCount, CUpti_DomainTable *domainTable);
CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle subscriber);

#if defined(__cplusplus)
}
#endif

#endif
