/* Prints the activity records of a program: CUPTI's sample activity_trace_async as its document describes it, as a library that
 * is injected into a program.
 *
 *     cc -std=c99 -fPIC -shared -I include -o libtrace.so cupti_activity_trace_async.c
 *     CUDA_INJECTION64_PATH=./libtrace.so LD_PRELOAD=./libcupti.so.10.0 ./program
 *
 * `include` is tools/abi/cupti/include; libcupti.so.10.0 lies beside libgputrail.so.0.
 */
#include "cupti.h"
#include <stdio.h>
#include <stdlib.h>

enum { BUFFER_BYTES = 64 * 1024, ALIGNMENT = 8 };

#define CALL(call)                                                                                                     \
    do {                                                                                                               \
        CUptiResult status = call;                                                                                     \
        const char *text = "";                                                                                         \
        if (status != CUPTI_SUCCESS) {                                                                                 \
            cuptiGetResultString(status, &text);                                                                       \
            fprintf(stderr, "%s: %s\n", #call, text);                                                                  \
        }                                                                                                              \
    } while (0)

static uint64_t begin;

/* A time since the tool was loaded. */
static unsigned long long since(uint64_t time) {
    return time > begin ? (unsigned long long)(time - begin) : 0;
}

static const char *direction(unsigned kind) {
    switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD: return "HtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH: return "DtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA: return "HtoA";
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH: return "AtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOA: return "AtoA";
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOD: return "AtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOA: return "DtoA";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD: return "DtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH: return "HtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP: return "PtoP";
    default: return "unknown";
    }
}

static const char *named(const char *name) {
    return name != NULL ? name : "";
}

static void print_call(const CUpti_ActivityAPI *call) {
    int is_driver = call->kind == CUPTI_ACTIVITY_KIND_DRIVER;
    const char *name = "";
    cuptiGetCallbackName(is_driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API, call->cbid, &name);
    printf("%s %s [%llu - %llu] thread %u, correlation %u, returned %d\n", is_driver ? "DRIVER" : "RUNTIME", named(name),
           since(call->start), since(call->end), call->threadId, call->correlationId, (int)call->returnValue);
}

static void print(CUpti_Activity *record) {
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_DEVICE: {
        CUpti_ActivityDevice2 *device = (CUpti_ActivityDevice2 *)record;
        printf("DEVICE %u \"%s\": %u units, %u kHz, %llu MiB\n", device->id, named(device->name),
               device->numMultiprocessors, device->coreClockRate, (unsigned long long)(device->globalMemorySize >> 20));
        break;
    }
    case CUPTI_ACTIVITY_KIND_CONTEXT: {
        CUpti_ActivityContext *context = (CUpti_ActivityContext *)record;
        printf("CONTEXT %u, device %u\n", context->contextId, context->deviceId);
        break;
    }
    case CUPTI_ACTIVITY_KIND_STREAM: {
        CUpti_ActivityStream *stream = (CUpti_ActivityStream *)record;
        printf("STREAM %u, context %u\n", stream->streamId, stream->contextId);
        break;
    }
    case CUPTI_ACTIVITY_KIND_NAME: {
        CUpti_ActivityName *name = (CUpti_ActivityName *)record;
        if (name->objectKind == CUPTI_ACTIVITY_OBJECT_THREAD)
            printf("NAME of thread %u of process %u: \"%s\"\n", name->objectId.pt.threadId, name->objectId.pt.processId,
                   named(name->name));
        else
            printf("NAME of object %u of kind %d: \"%s\"\n", name->objectId.dcs.deviceId, (int)name->objectKind, named(name->name));
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
        CUpti_ActivityMemcpy *copy = (CUpti_ActivityMemcpy *)record;
        printf("MEMCPY %s [%llu - %llu] %llu bytes, device %u, context %u, stream %u, correlation %u\n",
               direction(copy->copyKind), since(copy->start), since(copy->end), (unsigned long long)copy->bytes,
               copy->deviceId, copy->contextId, copy->streamId, copy->correlationId);
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
        CUpti_ActivityMemcpy2 *copy = (CUpti_ActivityMemcpy2 *)record;
        printf("MEMCPY2 %s [%llu - %llu] %llu bytes, device %u to %u, correlation %u\n", direction(copy->copyKind),
               since(copy->start), since(copy->end), (unsigned long long)copy->bytes, copy->srcDeviceId,
               copy->dstDeviceId, copy->correlationId);
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
        CUpti_ActivityMemset *set = (CUpti_ActivityMemset *)record;
        printf("MEMSET value %u [%llu - %llu] %llu bytes, device %u, correlation %u\n", set->value, since(set->start),
               since(set->end), (unsigned long long)set->bytes, set->deviceId, set->correlationId);
        break;
    }
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        CUpti_ActivityKernel4 *kernel = (CUpti_ActivityKernel4 *)record;
        printf("%sKERNEL \"%s\" [%llu - %llu] device %u, context %u, stream %u, correlation %u\n",
               kernel->kind == CUPTI_ACTIVITY_KIND_KERNEL ? "" : "CONCURRENT ", named(kernel->name),
               since(kernel->start), since(kernel->end), kernel->deviceId, kernel->contextId, kernel->streamId,
               kernel->correlationId);
        printf("    grid [%d,%d,%d], block [%d,%d,%d], shared memory (static %d, dynamic %d)\n", kernel->gridX,
               kernel->gridY, kernel->gridZ, kernel->blockX, kernel->blockY, kernel->blockZ,
               kernel->staticSharedMemory, kernel->dynamicSharedMemory);
        break;
    }
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME: print_call((CUpti_ActivityAPI *)record); break;
    case CUPTI_ACTIVITY_KIND_MARKER: {
        CUpti_ActivityMarker2 *marker = (CUpti_ActivityMarker2 *)record;
        printf("MARKER %u [%llu] \"%s\", flags %d\n", marker->id, since(marker->timestamp), named(marker->name),
               (int)marker->flags);
        break;
    }
    case CUPTI_ACTIVITY_KIND_MARKER_DATA: {
        CUpti_ActivityMarkerData *data = (CUpti_ActivityMarkerData *)record;
        printf("MARKER_DATA %u, color %#x, category %u, payload %llu\n", data->id, data->color, data->category,
               (unsigned long long)data->payload.metricValueUint64);
        break;
    }
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
        CUpti_ActivitySynchronization *wait = (CUpti_ActivitySynchronization *)record;
        printf("SYNCHRONIZATION type %d [%llu - %llu] context %u, correlation %u\n", (int)wait->type,
               since(wait->start), since(wait->end), wait->contextId, wait->correlationId);
        break;
    }
    case CUPTI_ACTIVITY_KIND_OVERHEAD: {
        CUpti_ActivityOverhead *overhead = (CUpti_ActivityOverhead *)record;
        printf("OVERHEAD %d [%llu - %llu] thread %u\n", (int)overhead->overheadKind, since(overhead->start),
               since(overhead->end), overhead->objectId.pt.threadId);
        break;
    }
    default: printf("kind %d\n", (int)record->kind); break;
    }
}

static void CUPTIAPI buffer_requested(uint8_t **buffer, size_t *size, size_t *max_records) {
    void *memory = malloc(BUFFER_BYTES);
    if (memory == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    *buffer = (uint8_t *)memory;
    *size = BUFFER_BYTES;
    *max_records = 0;
}

static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *record = NULL;
    size_t dropped = 0;
    (void)size;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) print(record);
    CALL(cuptiActivityGetNumDroppedRecords(context, stream, &dropped));
    if (dropped != 0) fprintf(stderr, "%zu records were dropped\n", dropped);
    free(buffer);
}

static void end(void) {
    size_t dropped = 0;
    CALL(cuptiActivityFlushAll(0));
    CALL(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
    printf("%zu records were dropped\n", dropped);
}

int InitializeInjection(void) {
    static const CUpti_ActivityKind kinds[] = {
        CUPTI_ACTIVITY_KIND_DEVICE,          CUPTI_ACTIVITY_KIND_CONTEXT, CUPTI_ACTIVITY_KIND_STREAM,
        CUPTI_ACTIVITY_KIND_DRIVER,          CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMCPY2,         CUPTI_ACTIVITY_KIND_MEMSET,  CUPTI_ACTIVITY_KIND_NAME,
        CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MARKER, CUPTI_ACTIVITY_KIND_MARKER_DATA,
        CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_OVERHEAD};
    size_t of;
    CALL(cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed));
    for (of = 0; of < sizeof kinds / sizeof *kinds; of++) CALL(cuptiActivityEnable(kinds[of]));
    /* CUPTI's sample nvlink_bandwidth has nothing to show. */
    if (cuptiActivityEnable(CUPTI_ACTIVITY_KIND_NVLINK) == CUPTI_ERROR_NOT_COMPATIBLE)
        printf("NVLINK is not traced here\n");
    CALL(cuptiGetTimestamp(&begin));
    return atexit(end) == 0;
}
