/* A tool of the simulated GPU: enables every kind of records, and all callbacks, and prints how many there were of each. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cupti.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures, records[CUPTI_ACTIVITY_KIND_COUNT], callbacks[CUPTI_CB_DOMAIN_SIZE], enters, exits;
static int resources[32], waits[4], links, loads;
static uint64_t diverged, sampled, total;
static int counters[CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_COUNT];

static void check(const char *what, int line, int holds) {
    if (holds) return;
    printf("line %d: does not hold: %s\n", line, what);
    failures++;
}
#define CHECK(what) check(#what, __LINE__, (what) ? 1 : 0)

static void request(uint8_t **buffer, size_t *size, size_t *most) {
    *size = 8192;
    *most = 0;
    *buffer = (uint8_t *)malloc(*size);
}

/* Managed memory of 512 KiB that the host and both devices use. */
static void look_at_counter(const CUpti_ActivityUnifiedMemoryCounter2 *counter) {
    enum { REGION = 512 << 10, PAGES = 8 };
    counters[counter->counterKind]++;
    switch (counter->counterKind) {
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD:
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH:
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOD:
        CHECK(counter->value == REGION);
        CHECK(counter->flags == CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_COHERENCE);
        break;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT: {
        /* The program counter is in gputrail's library. */
        Dl_info found;
        CHECK(dladdr((void *)(size_t)counter->value, &found) != 0 && strstr(found.dli_fname, "gputrail") != NULL);
        break;
    }
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT:
        CHECK(counter->value == PAGES && counter->srcId < 2);
        CHECK(counter->flags == CUPTI_ACTIVITY_UNIFIED_MEMORY_ACCESS_TYPE_WRITE);
        break;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THRASHING:
        /* Bitwise OR of the ids of the devices. */
        CHECK(counter->value == REGION && counter->srcId <= 1);
        CHECK((counter->flags & ~CUPTI_ACTIVITY_FLAG_THRASHING_IN_CPU) == 0);
        break;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THROTTLING:
        CHECK((counter->flags & CUPTI_ACTIVITY_FLAG_THROTTLING_IN_CPU) == 0 && counter->srcId < 2);
        break;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_REMOTE_MAP:
        CHECK(counter->value == REGION && counter->srcId < 2);
        CHECK(counter->flags == CUPTI_ACTIVITY_UNIFIED_MEMORY_REMOTE_MAP_CAUSE_THRASHING);
        break;
    default: CHECK(0);
    }
}

static void look(const CUpti_Activity *record) {
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const CUpti_ActivityKernel4 *kernel = (const CUpti_ActivityKernel4 *)record;
        CHECK(kernel->name != NULL && kernel->gridX > 0 && kernel->blockX > 0 && kernel->streamId != 0);
        CHECK(kernel->end == 0 || kernel->end >= kernel->start);
        break;
    }
    case CUPTI_ACTIVITY_KIND_CDP_KERNEL: {
        const CUpti_ActivityCdpKernel *kernel = (const CUpti_ActivityCdpKernel *)record;
        CHECK(kernel->name != NULL && kernel->gridId != 0 && kernel->parentGridId != 0);
        break;
    }
    case CUPTI_ACTIVITY_KIND_NVLINK: {
        const CUpti_ActivityNvLink5 *link = (const CUpti_ActivityNvLink5 *)record;
        CHECK(link->typeDev0 == CUPTI_DEV_TYPE_GPU && link->physicalNvLinkCount > 0 && link->bandwidth > 0);
        CHECK(memcmp(&link->idDev0, &link->idDev1, sizeof link->idDev0) != 0);
        break;
    }
    case CUPTI_ACTIVITY_KIND_PCIE: {
        const CUpti_ActivityPcie *link = (const CUpti_ActivityPcie *)record;
        CHECK(link->type == CUPTI_PCIE_DEVICE_TYPE_GPU && link->pcieGeneration > 0 && link->linkWidth > 0);
        CHECK(link->upstreamBus != 0);
        break;
    }
    case CUPTI_ACTIVITY_KIND_ENVIRONMENT: {
        const CUpti_ActivityEnvironment *one = (const CUpti_ActivityEnvironment *)record;
        CHECK(one->timestamp > 0);
        if (one->environmentKind == CUPTI_ACTIVITY_ENVIRONMENT_SPEED) CHECK(one->data.speed.smClock > 0);
        else if (one->environmentKind == CUPTI_ACTIVITY_ENVIRONMENT_POWER) CHECK(one->data.power.power > 0);
        else CHECK(one->environmentKind == CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE ||
                   one->environmentKind == CUPTI_ACTIVITY_ENVIRONMENT_COOLING);
        break;
    }
    case CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER: {
        const CUpti_ActivityUnifiedMemoryCounter2 *counter = (const CUpti_ActivityUnifiedMemoryCounter2 *)record;
        CHECK(counter->counterKind >= 1 && counter->counterKind <= 8 && counter->value > 0);
        CHECK(counter->end >= counter->start && counter->address != 0);
        look_at_counter(counter);
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
        const CUpti_ActivityMemcpy2 *copy = (const CUpti_ActivityMemcpy2 *)record;
        CHECK(copy->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_PTOP && copy->srcDeviceId != copy->dstDeviceId);
        CHECK(copy->srcContextId != 0 && copy->dstContextId != 0);
        break;
    }
    case CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION: {
        const CUpti_ActivityInstructionExecution *of = (const CUpti_ActivityInstructionExecution *)record;
        CHECK(of->functionId != 0 && of->correlationId != 0 && of->executed > 0);
        CHECK(of->threadsExecuted >= of->executed && of->notPredOffThreadsExecuted == of->threadsExecuted);
        break;
    }
    case CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS: {
        const CUpti_ActivityGlobalAccess3 *of = (const CUpti_ActivityGlobalAccess3 *)record;
        const uint32_t bytes = of->flags & CUPTI_ACTIVITY_FLAG_GLOBAL_ACCESS_KIND_SIZE_MASK;
        CHECK(of->functionId != 0 && of->correlationId != 0 && of->executed > 0 && of->threadsExecuted >= of->executed);
        CHECK(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16);
        CHECK((of->flags & CUPTI_ACTIVITY_FLAG_GLOBAL_ACCESS_KIND_CACHED) == 0);
        CHECK(of->l2_transactions >= of->theoreticalL2Transactions && of->theoreticalL2Transactions > 0);
        loads += (of->flags & CUPTI_ACTIVITY_FLAG_GLOBAL_ACCESS_KIND_LOAD) != 0;
        break;
    }
    case CUPTI_ACTIVITY_KIND_SHARED_ACCESS: {
        const CUpti_ActivitySharedAccess *of = (const CUpti_ActivitySharedAccess *)record;
        CHECK(of->functionId != 0 && of->correlationId != 0 && of->executed > 0 && of->threadsExecuted >= of->executed);
        CHECK((of->flags & CUPTI_ACTIVITY_FLAG_SHARED_ACCESS_KIND_SIZE_MASK) != 0);
        CHECK(of->sharedTransactions >= of->theoreticalSharedTransactions && of->theoreticalSharedTransactions > 0);
        break;
    }
    case CUPTI_ACTIVITY_KIND_BRANCH: {
        const CUpti_ActivityBranch2 *of = (const CUpti_ActivityBranch2 *)record;
        CHECK(of->functionId != 0 && of->correlationId != 0 && of->executed > 0 && of->threadsExecuted >= of->executed);
        CHECK(of->diverged <= of->executed);
        diverged += of->diverged;
        break;
    }
    case CUPTI_ACTIVITY_KIND_INSTRUCTION_CORRELATION: {
        const CUpti_ActivityInstructionCorrelation *of = (const CUpti_ActivityInstructionCorrelation *)record;
        CHECK(of->functionId != 0 && of->sourceLocatorId != 0);
        break;
    }
    case CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR: {
        const CUpti_ActivitySourceLocator *line = (const CUpti_ActivitySourceLocator *)record;
        CHECK(line->id != 0 && line->lineNumber != 0 && line->fileName != NULL);
        break;
    }
    case CUPTI_ACTIVITY_KIND_PC_SAMPLING: {
        const CUpti_ActivityPCSampling3 *of = (const CUpti_ActivityPCSampling3 *)record;
        CHECK(of->functionId != 0 && of->correlationId != 0 && of->samples > 0 && of->latencySamples <= of->samples);
        sampled += of->samples;
        break;
    }
    case CUPTI_ACTIVITY_KIND_PC_SAMPLING_RECORD_INFO: {
        const CUpti_ActivityPCSamplingRecordInfo *of = (const CUpti_ActivityPCSamplingRecordInfo *)record;
        CHECK(of->correlationId != 0 && of->samplingPeriodInCycles > 0);
        total += of->totalSamples;
        break;
    }
    case CUPTI_ACTIVITY_KIND_PREEMPTION:
        CHECK(((const CUpti_ActivityPreemption *)record)->timestamp > 0);
        break;
    default: break;
    }
}

static void complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)size;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        records[record->kind]++;
        look(record);
    }
    free(buffer);
}

static void called_back(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *data) {
    (void)user;
    callbacks[domain]++;
    if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
        const CUpti_CallbackData *call = (const CUpti_CallbackData *)data;
        if (call->callbackSite == CUPTI_API_ENTER) {
            *call->correlationData = call->correlationId;
            enters++;
        } else {
            CHECK(*call->correlationData == call->correlationId);
            exits++;
        }
        if (strcmp(call->functionName, "simLaunchKernel") == 0) CHECK(call->symbolName != NULL);
    } else if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
        resources[cbid]++;
        if (cbid == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) {
            uint32_t device = 99, id = 0;
            CUcontext created = ((const CUpti_ResourceData *)data)->context;
            CHECK(created != NULL && cuptiGetContextId(created, &id) == CUPTI_SUCCESS && id != 0);
            CHECK(cuptiGetDeviceId(created, &device) == CUPTI_SUCCESS && device < 2);
            /* Links are known with the second device. */
            if (cuptiActivityEnable(CUPTI_ACTIVITY_KIND_NVLINK) == CUPTI_SUCCESS) links++;
        } else if (cbid == CUPTI_CBID_RESOURCE_MODULE_LOADED) {
            const CUpti_ResourceData *resource = (const CUpti_ResourceData *)data;
            const CUpti_ModuleResourceData *module = (const CUpti_ModuleResourceData *)resource->resourceDescriptor;
            CHECK(module->moduleId != 0);
        } else if (cbid == CUPTI_CBID_RESOURCE_STREAM_CREATED) {
            const CUpti_ResourceData *resource = (const CUpti_ResourceData *)data;
            uint32_t id = 0;
            CHECK(cuptiGetStreamId(resource->context, resource->resourceHandle.stream, &id) == CUPTI_SUCCESS && id != 0);
        }
    } else if (domain == CUPTI_CB_DOMAIN_SYNCHRONIZE) waits[cbid]++;
}

static void end(void) {
    int of;
    CHECK(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
    if (getenv("ONLY_KIND") == NULL) {
        CHECK(enters > 0 && enters == exits && links > 0);
        CHECK(loads > 0 && loads < records[CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS]);
        CHECK(diverged > 0 && sampled > 0 && sampled == total);
    }
    for (of = 0; of < CUPTI_ACTIVITY_KIND_COUNT; of++)
        if (records[of] != 0) printf("kind %d: %d\n", of, records[of]);
    for (of = 0; of < CUPTI_CB_DOMAIN_SIZE; of++)
        if (callbacks[of] != 0) printf("domain %d: %d\n", of, callbacks[of]);
    for (of = 0; of < 32; of++)
        if (resources[of] != 0) printf("resource %d: %d\n", of, resources[of]);
    for (of = 0; of < CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_COUNT; of++)
        if (counters[of] != 0) printf("counter %d: %d\n", of, counters[of]);
    for (of = 0; of < 4; of++)
        if (waits[of] != 0) printf("wait %d: %d\n", of, waits[of]);
    printf(failures == 0 ? "passed\n" : "failed\n");
}

int InitializeInjection(void) {
    CUpti_SubscriberHandle subscriber;
    int kind;
    const char *off = getenv("WITHOUT_COUNTER"), *only = getenv("ONLY_KIND");
    if (off != NULL) {
        CUpti_ActivityUnifiedMemoryCounterConfig config = {CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES,
                                                           (CUpti_ActivityUnifiedMemoryCounterKind)atoi(off), 0, 0};
        CHECK(cuptiActivityConfigureUnifiedMemoryCounter(&config, 1) == CUPTI_SUCCESS);
    }
    if (cuptiActivityRegisterCallbacks(request, complete) != CUPTI_SUCCESS) return 0;
    for (kind = 1; kind < CUPTI_ACTIVITY_KIND_COUNT; kind++) {
        CUptiResult status;
        if (only != NULL && atoi(only) != kind) continue;
        status = cuptiActivityEnable((CUpti_ActivityKind)kind);
        CHECK(status == CUPTI_SUCCESS || status == CUPTI_ERROR_NOT_COMPATIBLE);
    }
    CHECK(cuptiSubscribe(&subscriber, called_back, NULL) == CUPTI_SUCCESS);
    CHECK(cuptiEnableAllDomains(1, subscriber) == CUPTI_SUCCESS);
    return atexit(end) == 0;
}
