/* A tool of the simulated GPU: at the exit of calls, the parameters lead to what the calls made, and agree with the records. */
#include "cupti.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 1 << 20 };

typedef struct {
    uint32_t stream;
    int grid[3], block[3];
    int shared;
} Launch;

static int failures, devices, streams, launches, allocations, events, graphs, modules, peers, compared[2];
static int device_records, stream_records, urgent, has_ended, refused;
static int priorities[256];
static Launch *launched[CALLS];
static uint64_t *made[CALLS];

static void check(const char *what, int line, int holds) {
    if (holds) return;
    if (failures++ < 20) printf("line %d: does not hold: %s\n", line, what);
}
#define CHECK(what) check(#what, __LINE__, (what) ? 1 : 0)

static void CUPTIAPI request(uint8_t **buffer, size_t *size, size_t *most) {
    *size = 1 << 16;
    *most = 0;
    *buffer = (uint8_t *)malloc(*size);
}

static void look(const CUpti_Activity *record) {
    if (record->kind == CUPTI_ACTIVITY_KIND_DEVICE) device_records++;
    else if (record->kind == CUPTI_ACTIVITY_KIND_STREAM) {
        const CUpti_ActivityStream *one = (const CUpti_ActivityStream *)record;
        priorities[one->streamId % 256] = (int)one->priority;
        stream_records++;
    } else if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
        const CUpti_ActivityKernel13 *of = (const CUpti_ActivityKernel13 *)record;
        const Launch *launch = launched[of->correlationId % CALLS];
        if (of->priority != 0) {
            CHECK(of->priority == priorities[of->streamId % 256]);
            urgent++;
        }
        if (launch == NULL) return;
        CHECK(launch->stream == of->streamId && launch->shared == of->dynamicSharedMemory);
        CHECK(launch->grid[0] == of->gridX && launch->grid[1] == of->gridY && launch->grid[2] == of->gridZ);
        CHECK(launch->block[0] == of->blockX && launch->block[1] == of->blockY && launch->block[2] == of->blockZ);
        compared[0]++;
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMORY2) {
        const CUpti_ActivityMemory4 *of = (const CUpti_ActivityMemory4 *)record;
        const uint64_t *address = made[of->correlationId % CALLS];
        if (address == NULL) return;
        CHECK(*address == of->address);
        compared[1]++;
    } else if (record->kind == CUPTI_ACTIVITY_KIND_PCIE) {
        const CUpti_ActivityPcie *of = (const CUpti_ActivityPcie *)record;
        CHECK(of->id.devId < 2 && of->attr.gpuAttr.peerDev[0] == 1 - of->id.devId && of->attr.gpuAttr.peerDev[1] == -1);
        peers++;
    }
}

static void CUPTIAPI complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)size;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) look(record);
    if (!has_ended) {
        /* Within this function nothing is disabled. */
        CHECK(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_ERROR_INVALID_OPERATION);
        CHECK(cuptiFinalize() == CUPTI_ERROR_INVALID_OPERATION);
        refused++;
    }
    free(buffer);
}

static uint32_t id_of(CUcontext context, CUstream stream) {
    uint32_t id = 0;
    CHECK(cuptiGetStreamId(context, stream, &id) == CUPTI_SUCCESS && id != 0);
    return id;
}

static void allocated(const CUpti_CallbackData *call, uint64_t address) {
    uint64_t **place = &made[call->correlationId % CALLS];
    CHECK(address != 0);
    if (*place == NULL) *place = (uint64_t *)malloc(sizeof address);
    **place = address;
    allocations++;
}

static void runtime(CUpti_CallbackId cbid, const CUpti_CallbackData *call) {
    const void *of = call->functionParams;
    const int failed = *(const int *)call->functionReturnValue;
    switch (cbid) {
    case CUPTI_RUNTIME_TRACE_CBID_cudaGetDeviceCount_v3020:
        CHECK(*((const cudaGetDeviceCount_v3020_params *)of)->count == 2);
        devices++;
        break;
    case CUPTI_RUNTIME_TRACE_CBID_cudaDeviceGetAttribute_v5000: {
        const cudaDeviceGetAttribute_v5000_params *asked = (const cudaDeviceGetAttribute_v5000_params *)of;
        /* Threads of a block, multiprocessors, the compute capability. */
        if (asked->attr == 1) CHECK(*asked->value == 1024);
        else if (asked->attr == 16) CHECK(*asked->value == 80);
        else if (asked->attr == 75) CHECK(*asked->value == 1);
        else CHECK(*asked->value >= 0 && asked->attr != 0);
        CHECK(asked->device < 2);
        break;
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaMemGetInfo_v3020: {
        const cudaMemGetInfo_v3020_params *asked = (const cudaMemGetInfo_v3020_params *)of;
        CHECK(*asked->total == (size_t)24 << 30 && *asked->free > 0 && *asked->free <= *asked->total);
        break;
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020: {
        const cudaMalloc_v3020_params *asked = (const cudaMalloc_v3020_params *)of;
        if (failed) CHECK(failed == 2 && *asked->devPtr == NULL);
        else allocated(call, (uint64_t)(size_t)*asked->devPtr);
        break;
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaStreamCreateWithFlags_v5000:
        id_of(call->context, *((const cudaStreamCreateWithFlags_v5000_params *)of)->pStream);
        streams++;
        break;
    case CUPTI_RUNTIME_TRACE_CBID_cudaEventCreate_v3020: {
        uint32_t id = 0;
        CHECK(cuptiGetCudaEventId(*((const cudaEventCreate_v3020_params *)of)->event, &id) == CUPTI_SUCCESS && id != 0);
        events++;
        break;
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaEventQuery_v3020:
        /* cudaErrorNotReady */
        CHECK(failed == 0 || failed == 600);
        break;
    case CUPTI_RUNTIME_TRACE_CBID_cudaGraphInstantiate_v10000: {
        const cudaGraphInstantiate_v10000_params *asked = (const cudaGraphInstantiate_v10000_params *)of;
        CHECK((const void *)*asked->pGraphExec != NULL && (const void *)*asked->pGraphExec != (const void *)asked->graph);
        graphs++;
        break;
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020:
        id_of(call->context, ((const cudaMemcpyAsync_v3020_params *)of)->stream);
        break;
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000: {
        const cudaLaunchKernel_v7000_params *asked = (const cudaLaunchKernel_v7000_params *)of;
        Launch *launch = (Launch *)malloc(sizeof *launch);
        launch->stream = id_of(NULL, asked->stream);
        launch->grid[0] = (int)asked->gridDim.x, launch->grid[1] = (int)asked->gridDim.y, launch->grid[2] = (int)asked->gridDim.z;
        launch->block[0] = (int)asked->blockDim.x, launch->block[1] = (int)asked->blockDim.y;
        launch->block[2] = (int)asked->blockDim.z;
        launch->shared = (int)asked->sharedMem;
        launched[call->correlationId % CALLS] = launch;
        launches++;
        break;
    }
    default: break;
    }
}

static void driver(CUpti_CallbackId cbid, const CUpti_CallbackData *call) {
    const void *of = call->functionParams;
    switch (cbid) {
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoad:
        CHECK(*((const cuModuleLoad_params *)of)->module != NULL);
        modules++;
        break;
    case CUPTI_DRIVER_TRACE_CBID_cuModuleGetFunction:
        CHECK(*((const cuModuleGetFunction_params *)of)->hfunc != NULL);
        break;
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel: {
        const cuLaunchKernel_params *asked = (const cuLaunchKernel_params *)of;
        CHECK(asked->f != NULL && asked->blockDimX > 0 && id_of(NULL, asked->hStream) != 0);
        break;
    }
    default: break;
    }
}

static void CUPTIAPI called_back(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *data) {
    const CUpti_CallbackData *call = (const CUpti_CallbackData *)data;
    (void)user;
    if (call->callbackSite != CUPTI_API_EXIT) return;
    if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
        if (cbid < CUPTI_CBID_GPUTRAIL) runtime(cbid, call);
        /* Under gputrail's own ids a status is returned. */
        else CHECK(*(const int *)call->functionReturnValue >= 0 && *(const int *)call->functionReturnValue < 4);
    } else driver(cbid, call);
}

static void end(void) {
    has_ended = 1;
    CHECK(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
    CHECK(refused > 0);
    CHECK(devices > 0 && streams == 10 && launches > 0 && allocations > 0 && events > 0 && graphs > 0 && modules > 0);
    CHECK(peers == 2 && device_records == 2 && stream_records == 10 && urgent > 0);
    CHECK(compared[0] == launches && compared[1] > 0);
    printf(failures == 0 ? "passed\n" : "failed\n");
}

int InitializeInjection(void) {
    const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_STREAM, CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_PCIE,
                                        CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMORY2};
    CUpti_SubscriberHandle subscriber;
    int device, support;
    unsigned kind;
    /* Devices are asked for before they are used: there are two. */
    for (device = 0; cuptiDeviceSupported(device, &support) == CUPTI_SUCCESS; device++) CHECK(support == CUPTI_DEVICE_VIRTUAL);
    CHECK(device == 2);
    if (cuptiActivityRegisterCallbacks(request, complete) != CUPTI_SUCCESS) return 0;
    for (kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) CHECK(cuptiActivityEnable(kinds[kind]) == CUPTI_SUCCESS);
    CHECK(cuptiSubscribe(&subscriber, (CUpti_CallbackFunc)called_back, NULL) == CUPTI_SUCCESS);
    CHECK(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API) == CUPTI_SUCCESS);
    CHECK(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API) == CUPTI_SUCCESS);
    return atexit(end) == 0;
}
