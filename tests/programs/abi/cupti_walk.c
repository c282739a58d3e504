/* A tool that walks over all records of the layout that it is compiled for (CUPTI_GPUTRAIL_LAYOUT): each is as long as its structure, and
   no field has what lay in the buffer before, or lies behind the record. Prints the kinds that it has seen. */
#include <cupti.h>
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if CUPTI_GPUTRAIL_LAYOUT == 10
typedef CUpti_ActivityKernel4 Kernel;
typedef CUpti_ActivityMemcpy Copy;
typedef CUpti_ActivityMemcpy2 PeerCopy;
typedef CUpti_ActivityMemset Set;
typedef CUpti_ActivityDevice2 Device;
typedef CUpti_ActivityContext Context;
typedef CUpti_ActivityCudaEvent Event;
typedef CUpti_ActivityOverhead Overhead;
typedef CUpti_ActivitySynchronization Wait;
typedef CUpti_ActivityUnifiedMemoryCounter2 Counter;
typedef CUpti_ActivityNvLink3 Link;
#elif CUPTI_GPUTRAIL_LAYOUT == 11
typedef CUpti_ActivityKernel8 Kernel;
typedef CUpti_ActivityMemcpy5 Copy;
typedef CUpti_ActivityMemcpyPtoP4 PeerCopy;
typedef CUpti_ActivityMemset4 Set;
typedef CUpti_ActivityDevice4 Device;
typedef CUpti_ActivityContext Context;
typedef CUpti_ActivityCudaEvent Event;
typedef CUpti_ActivityOverhead Overhead;
typedef CUpti_ActivitySynchronization Wait;
typedef CUpti_ActivityUnifiedMemoryCounter2 Counter;
typedef CUpti_ActivityNvLink4 Link;
#elif CUPTI_GPUTRAIL_LAYOUT == 12
typedef CUpti_ActivityKernel9 Kernel;
typedef CUpti_ActivityMemcpy6 Copy;
typedef CUpti_ActivityMemcpyPtoP4 PeerCopy;
typedef CUpti_ActivityMemset4 Set;
typedef CUpti_ActivityDevice5 Device;
typedef CUpti_ActivityContext3 Context;
typedef CUpti_ActivityCudaEvent2 Event;
typedef CUpti_ActivityOverhead3 Overhead;
typedef CUpti_ActivitySynchronization2 Wait;
typedef CUpti_ActivityUnifiedMemoryCounter3 Counter;
typedef CUpti_ActivityNvLink4 Link;
#else
typedef CUpti_ActivityKernel13 Kernel;
typedef CUpti_ActivityMemcpy7 Copy;
typedef CUpti_ActivityMemcpyPtoP4 PeerCopy;
typedef CUpti_ActivityMemset5 Set;
typedef CUpti_ActivityDevice6 Device;
typedef CUpti_ActivityContext4 Context;
typedef CUpti_ActivityCudaEvent3 Event;
typedef CUpti_ActivityOverhead3 Overhead;
typedef CUpti_ActivitySynchronization2 Wait;
typedef CUpti_ActivityUnifiedMemoryCounter3 Counter;
typedef CUpti_ActivityNvLink5 Link;
#endif

/* Each buffer is full of it when it is given away. */
enum { GARBAGE = 0xa5 };
static const uint32_t garbage = 0xa5a5a5a5;

static int failures, records[CUPTI_ACTIVITY_KIND_COUNT], links;
static uint64_t begun;

static void check(const char *what, int line, int holds) {
    if (holds) return;
    if (failures < 20) printf("line %d: does not hold: %s\n", line, what);
    failures++;
}
#define CHECK(what) check(#what, __LINE__, (what) ? 1 : 0)

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

/* A time of day since the tool was loaded; the simulated GPU's clock may run faster, but not for an hour. */
static int is_time(uint64_t time) { return time >= begun && time < now() + 3600000000000ull; }
static int is_time_or_none(uint64_t time) { return time == 0 || is_time(time); }

static int is_name(const char *name) { return name != NULL && strlen(name) < 4096; }

static void request(uint8_t **buffer, size_t *size, size_t *most) {
    *size = 1 << 16;
    *most = 0;
    *buffer = (uint8_t *)malloc(*size);
    memset(*buffer, GARBAGE, *size);
}

/* The bytes of a record's structure; 0 of kinds that have the same one in all layouts. */
static size_t bytes_of(CUpti_ActivityKind kind) {
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(Kernel);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(Copy);
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return sizeof(PeerCopy);
    case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(Set);
    case CUPTI_ACTIVITY_KIND_DEVICE: return sizeof(Device);
    case CUPTI_ACTIVITY_KIND_CONTEXT: return sizeof(Context);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT: return sizeof(Event);
    case CUPTI_ACTIVITY_KIND_OVERHEAD: return sizeof(Overhead);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return sizeof(Wait);
    case CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER: return sizeof(Counter);
    case CUPTI_ACTIVITY_KIND_NVLINK: return sizeof(Link);
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME: return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: return sizeof(CUpti_ActivityExternalCorrelation);
    default: return 0;
    }
}

static void look_at_kernel(const Kernel *kernel) {
    CHECK(is_name(kernel->name) && is_time(kernel->start) && is_time_or_none(kernel->end));
    CHECK(is_time_or_none(kernel->queued) && is_time_or_none(kernel->submitted));
    CHECK(kernel->deviceId < 8 && kernel->gridX > 0 && kernel->blockX > 0 && kernel->correlationId != 0);
    CHECK(kernel->reserved0 == NULL && kernel->padding == 0);
#if CUPTI_GPUTRAIL_LAYOUT >= 11
    CHECK(kernel->graphNodeId < 1ull << 40 && kernel->graphId < 1 << 20 && kernel->pAccessPolicyWindow == NULL);
    CHECK(kernel->channelID == 0 && kernel->channelType == CUPTI_CHANNEL_TYPE_INVALID && kernel->clusterX == 0);
    CHECK(kernel->clusterY == 0 && kernel->clusterZ == 0 && kernel->clusterSchedulingPolicy == 0);
    CHECK(kernel->localMemoryTotal_v2 >= kernel->localMemoryTotal);
#endif
#if CUPTI_GPUTRAIL_LAYOUT >= 12
    CHECK(kernel->maxPotentialClusterSize == 0 && kernel->maxActiveClusters == 0);
#endif
#if CUPTI_GPUTRAIL_LAYOUT >= 13
    CHECK(kernel->isDeviceLaunched == 0 && kernel->executionModel == 0 && kernel->padding6 == 0);
    CHECK(kernel->sourceGraphId < 1 << 20 && kernel->sourceGraphNodeId < 1ull << 40);
#endif
}

static void look_at_copy(const Copy *copy) {
    CHECK(copy->copyKind <= 10 && copy->bytes > 0 && is_time(copy->start) && is_time_or_none(copy->end));
    CHECK(copy->deviceId < 8 && copy->reserved0 == NULL);
#if CUPTI_GPUTRAIL_LAYOUT >= 11
    CHECK(copy->graphNodeId < 1ull << 40 && copy->channelID == 0 && copy->channelType == 0);
#endif
#if CUPTI_GPUTRAIL_LAYOUT >= 12
    CHECK(copy->copyCount == 1);
#endif
}

static void look(const CUpti_Activity *record, size_t bytes) {
    const uint32_t *words = (const uint32_t *)record;
    size_t expected = bytes_of(record->kind), of;
    CHECK(expected == 0 || bytes == expected);
    CHECK(bytes % 8 == 0);
    for (of = 0; of < bytes / 4; of++) CHECK(words[of] != garbage);
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: look_at_kernel((const Kernel *)record); break;
    case CUPTI_ACTIVITY_KIND_MEMCPY: look_at_copy((const Copy *)record); break;
    case CUPTI_ACTIVITY_KIND_MEMSET: {
        const Set *set = (const Set *)record;
        CHECK(set->bytes > 0 && is_time(set->start) && is_time_or_none(set->end) && set->reserved0 == NULL);
        break;
    }
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME: {
        const CUpti_ActivityAPI *call = (const CUpti_ActivityAPI *)record;
        CHECK(is_time(call->start) && call->end >= call->start && call->correlationId != 0);
        break;
    }
    case CUPTI_ACTIVITY_KIND_DEVICE: {
        const Device *device = (const Device *)record;
        CHECK(is_name(device->name) && device->id < 8);
#if CUPTI_GPUTRAIL_LAYOUT >= 11
        CHECK(device->isCudaVisible == 1 && device->isMigEnabled == 0 && device->gpuInstanceId == UINT32_MAX);
#endif
        break;
    }
    case CUPTI_ACTIVITY_KIND_CONTEXT: {
        const Context *context = (const Context *)record;
        CHECK(context->contextId != 0 && context->deviceId < 8);
#if CUPTI_GPUTRAIL_LAYOUT >= 12
        CHECK(context->parentContextId == 0 && context->isGreenContext == 0);
#endif
        break;
    }
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
        const Wait *wait = (const Wait *)record;
        CHECK(is_time(wait->start) && is_time_or_none(wait->end));
#if CUPTI_GPUTRAIL_LAYOUT >= 12
        CHECK(wait->returnValue == 0 && wait->pad == 0);
#endif
        break;
    }
    case CUPTI_ACTIVITY_KIND_OVERHEAD: {
        const Overhead *overhead = (const Overhead *)record;
        CHECK(is_time(overhead->start) && is_time_or_none(overhead->end));
#if CUPTI_GPUTRAIL_LAYOUT >= 12
        CHECK(overhead->overheadData == NULL);
#endif
        break;
    }
    case CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER: {
        const Counter *counter = (const Counter *)record;
        CHECK(counter->counterKind >= 1 && counter->counterKind <= 8 && is_time(counter->start));
        break;
    }
    case CUPTI_ACTIVITY_KIND_NVLINK: {
        const Link *link = (const Link *)record;
        CHECK(link->typeDev0 == CUPTI_DEV_TYPE_GPU && link->bandwidth > 0 && link->physicalNvLinkCount > 0);
        CHECK((int)link->portDev0[0] == CUPTI_NVLINK_INVALID_PORT && (int)link->portDev1[0] == CUPTI_NVLINK_INVALID_PORT);
        break;
    }
    case CUPTI_ACTIVITY_KIND_MARKER:
        CHECK(is_time(((const CUpti_ActivityMarker2 *)record)->timestamp));
        break;
    default: break;
    }
}

static void complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *record = NULL, *next = NULL;
    (void)context, (void)stream, (void)size;
    while (cuptiActivityGetNextRecord(buffer, valid, &next) == CUPTI_SUCCESS) {
        if (record != NULL) look(record, (size_t)((uint8_t *)next - (uint8_t *)record));
        record = next;
        if (record->kind < CUPTI_ACTIVITY_KIND_COUNT) records[record->kind]++;
        else CHECK(record->kind < CUPTI_ACTIVITY_KIND_COUNT);
    }
    /* The walk ends where the records end. */
    if (record != NULL) look(record, (size_t)(buffer + valid - (uint8_t *)record));
    free(buffer);
}

static void called_back(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *data) {
    (void)user, (void)data;
    /* Links are known with the second device. */
    if (domain == CUPTI_CB_DOMAIN_RESOURCE && cbid == CUPTI_CBID_RESOURCE_CONTEXT_CREATED &&
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_NVLINK) == CUPTI_SUCCESS)
        links++;
}

static void end(void) {
    int of;
    CHECK(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
    for (of = 0; of < CUPTI_ACTIVITY_KIND_COUNT; of++)
        if (records[of] != 0) printf("kind %d\n", of);
    printf(failures == 0 ? "passed\n" : "failed\n");
}

int InitializeInjection(void) {
    CUpti_SubscriberHandle subscriber;
    uint32_t version = 0;
    int kind;
    begun = now() - 1000000000ull;
    if (cuptiActivityRegisterCallbacks(request, complete) != CUPTI_SUCCESS) return 0;
    CHECK(cuptiGetVersion(&version) == CUPTI_SUCCESS && version == CUPTI_API_VERSION);
    CHECK(cuptiActivityEnableLatencyTimestamps(1) == CUPTI_SUCCESS);
    for (kind = 1; kind < CUPTI_ACTIVITY_KIND_COUNT; kind++) {
        CUptiResult status = cuptiActivityEnable((CUpti_ActivityKind)kind);
        CHECK(status == CUPTI_SUCCESS || status == CUPTI_ERROR_NOT_COMPATIBLE);
    }
    CHECK(cuptiSubscribe(&subscriber, (CUpti_CallbackFunc)called_back, NULL) == CUPTI_SUCCESS);
    CHECK(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE) == CUPTI_SUCCESS);
    return atexit(end) == 0;
}
