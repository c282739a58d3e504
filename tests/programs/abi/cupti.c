/* Calls the functions of CUPTI's Activity and Callback APIs, its versions, results and ids, and provokes each status that they
   return, as far as it can happen here. It is linked with the library. Compiled as C and as C++. */
#define CL_TARGET_OPENCL_VERSION 120
#include "cupti.h"
#include "gputrail.h"
#include <CL/cl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const unsigned last_statuses[] = {35, 42, 45, 47}, attribute_counts[] = {5, 9, 11, 25};
enum { VERSION = CUPTI_GPUTRAIL_LAYOUT - 10 };
#define SECOND_SUBSCRIBER (CUPTI_GPUTRAIL_LAYOUT == 10 ? CUPTI_ERROR_MAX_LIMIT_REACHED : CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)

static int failures;

static void expect(const char *what, CUptiResult got, CUptiResult wanted) {
    if (got == wanted) return;
    printf("%s: %d, expected %d\n", what, (int)got, (int)wanted);
    failures++;
}
#define EXPECT(call, wanted) expect(#call, call, CUPTI_##wanted)

static void check(const char *what, int line, int holds) {
    if (holds) return;
    printf("line %d: does not hold: %s\n", line, what);
    failures++;
}
#define CHECK(what) check(#what, __LINE__, (what) ? 1 : 0)

enum { ITEMS = 64, BYTES = 4 * ITEMS };

static cl_device_id device;
static cl_context in;
static cl_command_queue queue;
static cl_kernel kernel;
static cl_mem data, copy;
#define CONTEXT ((CUcontext)(void *)in)
#define STREAM ((CUstream)(void *)queue)

static void open_device(void) {
    cl_platform_id platform;
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
}

static void create(void) {
    const char *source = "kernel void triple(global int *data) { data[get_global_id(0)] *= 3; }";
    cl_program program;
    in = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    queue = clCreateCommandQueue(in, device, 0, NULL);
    program = clCreateProgramWithSource(in, 1, &source, NULL, NULL);
    CHECK(clBuildProgram(program, 1, &device, NULL, NULL, NULL) == CL_SUCCESS);
    kernel = clCreateKernel(program, "triple", NULL);
    data = clCreateBuffer(in, CL_MEM_READ_WRITE, BYTES, NULL, NULL);
    copy = clCreateBuffer(in, CL_MEM_READ_WRITE, BYTES, NULL, NULL);
    CHECK(clSetKernelArg(kernel, 0, sizeof data, &data) == CL_SUCCESS);
    clReleaseProgram(program);
}

static void launch(int count) {
    size_t items = ITEMS, group = 16;
    int of;
    for (of = 0; of < count; of++)
        CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &group, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clFinish(queue) == CL_SUCCESS);
}

static void move(void) {
    int values[ITEMS] = {0}, pattern = 7;
    CHECK(clEnqueueWriteBuffer(queue, data, CL_TRUE, 0, BYTES, values, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clEnqueueFillBuffer(queue, data, &pattern, sizeof pattern, 0, BYTES, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clEnqueueCopyBuffer(queue, data, copy, 0, 0, BYTES, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clEnqueueReadBuffer(queue, copy, CL_TRUE, 0, BYTES, values, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(values[0] == 7 && values[ITEMS - 1] == 7);
}

/* Versions, results, ids. */
static void basics(void) {
    const char *text = NULL;
    uint32_t number = 0, of;
    uint64_t before = 0, after = 0;
    int support = 7;
    EXPECT(cuptiGetVersion(NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiGetLastError(), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiGetLastError(), SUCCESS);
    EXPECT(cuptiGetVersion(&number), SUCCESS);
    CHECK(number == CUPTI_API_VERSION && (CUPTI_GPUTRAIL_LAYOUT != 10 || number == 12));
    for (of = 0; of <= last_statuses[VERSION]; of++) {
        EXPECT(cuptiGetResultString((CUptiResult)of, &text), SUCCESS);
        CHECK(text != NULL && *text != 0);
    }
    EXPECT(cuptiGetResultString(CUPTI_ERROR_UNKNOWN, &text), SUCCESS);
    EXPECT(cuptiGetResultString((CUptiResult)(last_statuses[VERSION] + 1), &text), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiGetResultString(CUPTI_ERROR_FORCE_INT, &text), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiGetResultString(CUPTI_SUCCESS, NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiGetTimestamp(NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiGetTimestamp(&before), SUCCESS);
    EXPECT(cuptiGetTimestamp(&after), SUCCESS);
    CHECK(before > 0 && after >= before);
    EXPECT(cuptiComputeCapabilitySupported(7, 0, NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiComputeCapabilitySupported(7, 0, &support), SUCCESS);
    CHECK(support == 0);
    EXPECT(cuptiDeviceSupported(99, &support), ERROR_INVALID_DEVICE);
    EXPECT(cuptiDeviceSupported(-1, &support), ERROR_INVALID_DEVICE);
}

static void ids(void) {
    CUpti_ActivityAutoBoostState state;
    uint32_t context = 0, of = 7, stream = 0, again = 1;
    int support = 0, nothing = 0;
    CUcontext wrong = (CUcontext)(void *)&nothing;
    CUstream no_stream = (CUstream)(void *)&nothing;
    EXPECT(cuptiDeviceSupported(0, NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiDeviceSupported(0, &support), SUCCESS);
    CHECK(support == CUPTI_DEVICE_SUPPORTED);
    EXPECT(cuptiGetContextId(CONTEXT, &context), SUCCESS);
    CHECK(context != 0);
    EXPECT(cuptiGetContextId(CONTEXT, NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiGetContextId(NULL, &context), ERROR_INVALID_CONTEXT);
    EXPECT(cuptiGetContextId(wrong, &context), ERROR_INVALID_CONTEXT);
    EXPECT(cuptiGetDeviceId(CONTEXT, &of), SUCCESS);
    CHECK(of == 0);
    EXPECT(cuptiGetDeviceId(CONTEXT, NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiGetDeviceId(wrong, &of), ERROR_INVALID_DEVICE);
    EXPECT(cuptiGetDeviceId(NULL, &of), ERROR_INVALID_DEVICE);
    EXPECT(cuptiGetStreamId(NULL, STREAM, &stream), SUCCESS);
    EXPECT(cuptiGetStreamIdEx(CONTEXT, STREAM, 1, &again), SUCCESS);
    CHECK(stream != 0 && stream == again);
    EXPECT(cuptiGetStreamId(CONTEXT, STREAM, NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiGetStreamId(CONTEXT, no_stream, &stream), ERROR_INVALID_STREAM);
    EXPECT(cuptiGetStreamId(wrong, STREAM, &stream), ERROR_INVALID_STREAM);
    EXPECT(cuptiGetStreamIdEx(CONTEXT, NULL, 0, &stream), ERROR_INVALID_STREAM);
    EXPECT(cuptiGetAutoBoostState(CONTEXT, &state), ERROR_NOT_SUPPORTED);
    EXPECT(cuptiGetAutoBoostState(NULL, &state), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiGetAutoBoostState(CONTEXT, NULL), ERROR_INVALID_PARAMETER);
}

/* Callbacks. */
static CUpti_SubscriberHandle subscriber;
static int user_data, enters, exits, launches, contexts, streams, waits, modules, marks, others;
static uint32_t last_correlation, launch_cbid, finish_cbid;
static int unsubscribes;

static uint32_t cbid_of(CUpti_CallbackDomain domain, const char *function) {
    const char *name;
    uint32_t id;
    for (id = CUPTI_CBID_GPUTRAIL; id < CUPTI_CBID_GPUTRAIL + 1024; id++)
        if (cuptiGetCallbackName(domain, id, &name) == CUPTI_SUCCESS && strcmp(name, function) == 0) return id;
    return 0;
}

/* Calls of OpenCL, as functions of CUDA. */
static int cuda_enters, cuda_exits, cuda_launches;

static void called_as_cuda(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const CUpti_CallbackData *call) {
    const char *name = NULL;
    int is_launch = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? cbid == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000
                                                          : cbid == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel;
    EXPECT(cuptiGetCallbackName(domain, cbid, &name), SUCCESS);
    /* The id's name has the version of the runtime's functions, too. */
    CHECK(name != NULL && strncmp(name, call->functionName, strlen(call->functionName)) == 0);
    CHECK(call->correlationId != 0 && call->functionParams != NULL);
    if (call->callbackSite == CUPTI_API_ENTER) {
        CHECK(*call->correlationData == 0 && call->functionReturnValue == NULL);
        *call->correlationData = cbid + 7;
        cuda_enters++;
    } else {
        /* Each id has its own. */
        CHECK(*call->correlationData == cbid + 7 && call->functionReturnValue != NULL);
        cuda_exits++;
    }
    if (!is_launch) {
        CHECK(call->symbolName == NULL);
        return;
    }
    CHECK(call->symbolName != NULL && strcmp(call->symbolName, "triple") == 0);
    if (call->callbackSite != CUPTI_API_EXIT) return;
    CHECK(*(int *)call->functionReturnValue == 0);
    if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
        const cudaLaunchKernel_v7000_params *launch = (const cudaLaunchKernel_v7000_params *)call->functionParams;
        CHECK(launch->func == (const void *)kernel && launch->stream == STREAM);
        CHECK(launch->gridDim.x * launch->blockDim.x == ITEMS && launch->gridDim.y == 1 && launch->blockDim.z == 1);
    } else {
        const cuLaunchKernel_params *launch = (const cuLaunchKernel_params *)call->functionParams;
        CHECK(launch->f == (CUfunction)(void *)kernel && launch->hStream == STREAM && launch->sharedMemBytes == 0);
        CHECK(launch->gridDimX * launch->blockDimX == ITEMS && launch->gridDimY == 1 && launch->blockDimZ == 1);
    }
    cuda_launches++;
}

static void called_back(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *cbdata) {
    CHECK(user == &user_data);
    if (domain == CUPTI_CB_DOMAIN_RUNTIME_API ||
        (domain == CUPTI_CB_DOMAIN_DRIVER_API && cbid < CUPTI_CBID_GPUTRAIL)) {
        called_as_cuda(domain, cbid, (const CUpti_CallbackData *)cbdata);
    } else if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
        const CUpti_CallbackData *call = (const CUpti_CallbackData *)cbdata;
        const CUpti_GputrailParams *params = (const CUpti_GputrailParams *)call->functionParams;
        const char *name = NULL;
        uint32_t current = 7;
        EXPECT(cuptiGetCallbackName(domain, cbid, &name), SUCCESS);
        CHECK(name != NULL && strcmp(name, call->functionName) == 0);
        CHECK(call->correlationId != 0);
        if (call->callbackSite == CUPTI_API_ENTER) {
            CHECK(*call->correlationData == 0 && call->functionReturnValue == NULL);
            *call->correlationData = call->correlationId + 1000;
            enters++;
        } else {
            CHECK(*call->correlationData == call->correlationId + 1000ull);
            CHECK(call->functionReturnValue != NULL);
            exits++;
        }
        if (cbid == launch_cbid) {
            CHECK(call->symbolName != NULL && strcmp(call->symbolName, "triple") == 0);
            CHECK(params->count == 9 && params->values[0] == (uint64_t)(size_t)queue && params->values[2] == 1);
            CHECK(call->context == CONTEXT && call->contextUid != 0);
            EXPECT(cuptiGetDeviceId(NULL, &current), SUCCESS);
            CHECK(current == 0);
            if (call->callbackSite == CUPTI_API_EXIT) {
                CHECK(*(int *)call->functionReturnValue == CL_SUCCESS);
                last_correlation = call->correlationId;
                launches++;
                EXPECT(cuptiEnableCallback(1, subscriber, domain, launch_cbid), SUCCESS);
                if (unsubscribes) EXPECT(cuptiUnsubscribe(subscriber), SUCCESS);
            }
        } else CHECK(call->symbolName == NULL);
    } else if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
        const CUpti_ResourceData *resource = (const CUpti_ResourceData *)cbdata;
        if (cbid == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) contexts++;
        else if (cbid == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING) contexts += 10;
        else if (cbid == CUPTI_CBID_RESOURCE_STREAM_CREATED) streams++;
        else if (cbid == CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING) streams += 10;
        else if (cbid == CUPTI_CBID_RESOURCE_MODULE_LOADED) {
            const CUpti_ModuleResourceData *module = (const CUpti_ModuleResourceData *)resource->resourceDescriptor;
            CHECK(module != NULL && module->moduleId != 0);
            modules++;
        } else others++;
        CHECK(resource->context != NULL || cbid == CUPTI_CBID_RESOURCE_CU_INIT_FINISHED);
        if (cbid == CUPTI_CBID_RESOURCE_STREAM_CREATED) CHECK(resource->resourceHandle.stream != NULL);
    } else if (domain == CUPTI_CB_DOMAIN_SYNCHRONIZE) {
        const CUpti_SynchronizeData *wait = (const CUpti_SynchronizeData *)cbdata;
        CHECK(cbid == CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED);
        CHECK(wait->context == CONTEXT && wait->stream == STREAM);
        waits++;
    } else if (domain == CUPTI_CB_DOMAIN_NVTX) {
        const CUpti_NvtxData *nvtx = (const CUpti_NvtxData *)cbdata;
        const CUpti_GputrailMarkerParams *params = (const CUpti_GputrailMarkerParams *)nvtx->functionParams;
        CHECK(nvtx->functionName != NULL && strncmp(nvtx->functionName, "nvtxDomain", 10) == 0);
        if (cbid == CUPTI_CBID_GPUTRAIL + CUPTI_GPUTRAIL_MARKER_PUSH) CHECK(strcmp(params->name, "range") == 0);
        marks++;
    } else CHECK(0);
}

static void callback_statuses(void) {
    CUpti_SubscriberHandle other = NULL;
    CUpti_DomainTable table = NULL;
    const char *name = "";
    size_t count = 0;
    uint32_t on = 7;
    EXPECT(cuptiSupportedDomains(NULL, &table), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiSupportedDomains(&count, NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiSupportedDomains(&count, &table), SUCCESS);
    CHECK(count == CUPTI_CB_DOMAIN_SIZE - 1 && table[0] == CUPTI_CB_DOMAIN_DRIVER_API && table[4] == CUPTI_CB_DOMAIN_NVTX);
    EXPECT(cuptiUnsubscribe(NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiSubscribe(NULL, called_back, NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiSubscribe(&subscriber, NULL, NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiSubscribe(&subscriber, called_back, &user_data), SUCCESS);
    CHECK(cuptiSubscribe(&other, called_back, NULL) == SECOND_SUBSCRIBER);
    CHECK(subscriber != NULL);
    launch_cbid = cbid_of(CUPTI_CB_DOMAIN_DRIVER_API, "clEnqueueNDRangeKernel");
    finish_cbid = cbid_of(CUPTI_CB_DOMAIN_DRIVER_API, "clFinish");
    CHECK(launch_cbid != 0 && finish_cbid != 0);
    CHECK(cbid_of(CUPTI_CB_DOMAIN_RUNTIME_API, "simLaunchKernel") != 0);
    EXPECT(cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, launch_cbid, NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CBID_GPUTRAIL - 1, &name), ERROR_INVALID_PARAMETER);
    CHECK(name == NULL);
    EXPECT(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RESOURCE, 1, &name), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiGetCallbackName((CUpti_CallbackDomain)6, launch_cbid, &name), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEnableCallback(1, NULL, CUPTI_CB_DOMAIN_DRIVER_API, launch_cbid), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_INVALID, launch_cbid), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, 0), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_INVALID),
           ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_SIZE), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_SIZE),
           ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE),
           ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_STATE, CUPTI_CBID_STATE_SIZE), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_SYNCHRONIZE, 3), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_NVTX, CUPTI_CBID_GPUTRAIL + 6), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEnableDomain(1, NULL, CUPTI_CB_DOMAIN_RESOURCE), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEnableDomain(1, subscriber, (CUpti_CallbackDomain)7), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_STATE), SUCCESS);
    EXPECT(cuptiEnableAllDomains(1, NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiGetCallbackState(NULL, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, launch_cbid), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiGetCallbackState(&on, NULL, CUPTI_CB_DOMAIN_DRIVER_API, launch_cbid), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiGetCallbackState(&on, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CBID_GPUTRAIL - 1), ERROR_INVALID_PARAMETER);
    /* Nothing of OpenCL does what this function does. */
    EXPECT(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuDeviceGetName), SUCCESS);
    EXPECT(cuptiGetCallbackState(&on, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuDeviceGetName), SUCCESS);
    CHECK(on != 0);
    EXPECT(cuptiGetCallbackState(&on, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, launch_cbid), SUCCESS);
    CHECK(on == 0);
    EXPECT(cuptiEnableAllDomains(1, subscriber), SUCCESS);
    EXPECT(cuptiGetCallbackState(&on, subscriber, CUPTI_CB_DOMAIN_NVTX, CUPTI_CBID_GPUTRAIL + 1), SUCCESS);
    CHECK(on != 0);
}

static void callbacks(void) {
    size_t items = ITEMS;
    int before;
    CHECK(contexts == 1 && streams == 1 && enters > 0 && enters == exits && modules >= 1);
    before = launches;
    launch(2);
    CHECK(launches == before + 2 && waits >= 1);
    /* Each exit of a launch, as the runtime's and as the driver's. */
    CHECK(cuda_launches == 2 * launches && cuda_enters > 0 && cuda_enters == cuda_exits);
    CHECK(gputrail_range_push_name("range") == GPUTRAIL_OK && gputrail_range_pop() == GPUTRAIL_OK);
    CHECK(marks == 2);
    EXPECT(cuptiEnableAllDomains(0, subscriber), SUCCESS);
    before = enters;
    launch(1);
    CHECK(enters == before);
    EXPECT(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API), SUCCESS);
    EXPECT(cuptiEnableCallback(0, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, finish_cbid), SUCCESS);
    launch(1);
    CHECK(enters > before);
    /* From within. */
    unsubscribes = 1;
    before = launches;
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) == CL_SUCCESS);
    launch(1);
    CHECK(launches == before + 1);
    EXPECT(cuptiUnsubscribe(subscriber), ERROR_INVALID_PARAMETER);
    unsubscribes = 0;
}

/* Activity. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int requested, completed, records[CUPTI_ACTIVITY_KIND_COUNT];
static size_t buffer_bytes = 1024, most;
static int declines, offset;
static CUpti_ActivityKernel4 last_kernel;
static CUpti_ActivityAPI launch_calls[8];
static int launch_count;
static CUpti_ActivityMemcpy copies[16];
static CUpti_ActivityMemset last_set;
static CUpti_ActivityExternalCorrelation last_external;
static CUpti_ActivitySynchronization last_wait;
static CUpti_ActivityMarker2 markers[4];
static CUpti_ActivityMarkerData last_data;
static CUpti_ActivityMemory last_memory;
static CUpti_ActivityDevice2 last_device;
static CUpti_ActivityContext last_context;
static CUpti_ActivityStream last_stream;
static CUpti_ActivityFunction last_function;

static void CUPTIAPI request(uint8_t **buffer, size_t *size, size_t *max_records) {
    pthread_mutex_lock(&lock);
    requested++;
    *size = buffer_bytes;
    *max_records = most;
    *buffer = NULL;
    if (!declines) {
        void *memory = NULL;
        if (posix_memalign(&memory, 8, buffer_bytes + 8) != 0) abort();
        *buffer = (uint8_t *)memory + offset;
    }
    pthread_mutex_unlock(&lock);
}

static void keep(CUpti_Activity *record) {
    int count = records[record->kind]++;
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: last_kernel = *(CUpti_ActivityKernel4 *)record; break;
    case CUPTI_ACTIVITY_KIND_DRIVER: {
        CUpti_ActivityAPI *call = (CUpti_ActivityAPI *)record;
        if (call->cbid == launch_cbid) launch_calls[launch_count++ % 8] = *call;
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: copies[count % 16] = *(CUpti_ActivityMemcpy *)record; break;
    case CUPTI_ACTIVITY_KIND_MEMSET: last_set = *(CUpti_ActivityMemset *)record; break;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: last_external = *(CUpti_ActivityExternalCorrelation *)record; break;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: last_wait = *(CUpti_ActivitySynchronization *)record; break;
    case CUPTI_ACTIVITY_KIND_MARKER: markers[count % 4] = *(CUpti_ActivityMarker2 *)record; break;
    case CUPTI_ACTIVITY_KIND_MARKER_DATA: last_data = *(CUpti_ActivityMarkerData *)record; break;
    case CUPTI_ACTIVITY_KIND_MEMORY: last_memory = *(CUpti_ActivityMemory *)record; break;
    case CUPTI_ACTIVITY_KIND_DEVICE: last_device = *(CUpti_ActivityDevice2 *)record; break;
    case CUPTI_ACTIVITY_KIND_CONTEXT: last_context = *(CUpti_ActivityContext *)record; break;
    case CUPTI_ACTIVITY_KIND_STREAM: last_stream = *(CUpti_ActivityStream *)record; break;
    case CUPTI_ACTIVITY_KIND_FUNCTION: last_function = *(CUpti_ActivityFunction *)record; break;
    default: break;
    }
}

static void CUPTIAPI complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *record = NULL;
    CUptiResult status;
    size_t count = 0, dropped;
    CHECK(context == NULL && stream == 0 && size == buffer_bytes && valid <= size);
    pthread_mutex_lock(&lock);
    completed++;
    while ((status = cuptiActivityGetNextRecord(buffer, valid, &record)) == CUPTI_SUCCESS) {
        CHECK(record->kind > 0 && record->kind < CUPTI_ACTIVITY_KIND_COUNT && (size_t)record % 8 == 0);
        keep(record);
        count++;
    }
    pthread_mutex_unlock(&lock);
    CHECK(status == CUPTI_ERROR_MAX_LIMIT_REACHED);
    CHECK(most == 0 || count <= most);
    EXPECT(cuptiActivityFlushAll(0), ERROR_INVALID_OPERATION);
    EXPECT(cuptiActivityRegisterCallbacks(request, complete), ERROR_INVALID_OPERATION);
    if (completed == 1) EXPECT(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped), SUCCESS);
    free(buffer - offset);
}

static void forget(void) {
    pthread_mutex_lock(&lock);
    memset(records, 0, sizeof records);
    requested = completed = 0;
    pthread_mutex_unlock(&lock);
}

static void activity_statuses(void) {
    static const CUpti_ActivityKind refused[] = {
        CUPTI_ACTIVITY_KIND_CDP_KERNEL, CUPTI_ACTIVITY_KIND_NVLINK};
    CUpti_ActivityUnifiedMemoryCounterConfig config = {CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES,
                                                       CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THRASHING, 0, 1};
    CUpti_ActivityThreadIdType type;
    CUpti_Activity *record = NULL;
    /* The bytes of a record of a context in each layout. */
    const size_t context_bytes = CUPTI_GPUTRAIL_LAYOUT >= 13   ? sizeof(CUpti_ActivityContext4)
                                 : CUPTI_GPUTRAIL_LAYOUT >= 12 ? sizeof(CUpti_ActivityContext3)
                                                               : sizeof(CUpti_ActivityContext);
    uint64_t id = 0, area[8];
    size_t size = sizeof(size_t), value = 0, of;
    EXPECT(cuptiActivityFlushAll(0), ERROR_INVALID_OPERATION);
    EXPECT(cuptiActivityFlush(NULL, 0, 0), ERROR_INVALID_OPERATION);
    EXPECT(cuptiActivityRegisterCallbacks(NULL, complete), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityRegisterCallbacks(request, NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityRegisterCallbacks(request, complete), SUCCESS);
    EXPECT(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_INVALID), ERROR_INVALID_KIND);
    EXPECT(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_COUNT), ERROR_INVALID_KIND);
    EXPECT(cuptiActivityDisable((CUpti_ActivityKind)999), ERROR_INVALID_KIND);
    EXPECT(cuptiActivityEnableContext(NULL, CUPTI_ACTIVITY_KIND_COUNT), ERROR_INVALID_KIND);
    EXPECT(cuptiActivityDisableContext(NULL, CUPTI_ACTIVITY_KIND_COUNT), ERROR_INVALID_KIND);
    EXPECT(cuptiActivityEnableContext(NULL, CUPTI_ACTIVITY_KIND_KERNEL), ERROR_INVALID_CONTEXT);
    for (of = 0; of < sizeof refused / sizeof *refused; of++) {
        EXPECT(cuptiActivityEnable(refused[of]), ERROR_NOT_COMPATIBLE);
        EXPECT(cuptiActivityDisable(refused[of]), SUCCESS);
    }
    EXPECT(cuptiActivityGetNumDroppedRecords(NULL, 0, NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityGetNextRecord(NULL, 64, &record), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityGetNextRecord((uint8_t *)area, 64, NULL), ERROR_INVALID_PARAMETER);
    memset(area, 0, sizeof area);
    EXPECT(cuptiActivityGetNextRecord((uint8_t *)area, 64, &record), ERROR_MAX_LIMIT_REACHED);
    EXPECT(cuptiActivityGetNextRecord((uint8_t *)area, 0, &record), ERROR_MAX_LIMIT_REACHED);
    *(uint32_t *)area = CUPTI_ACTIVITY_KIND_CONTEXT;
    EXPECT(cuptiActivityGetNextRecord((uint8_t *)area, context_bytes - 1, &record), ERROR_MAX_LIMIT_REACHED);
    EXPECT(cuptiActivityGetNextRecord((uint8_t *)area, context_bytes, &record), SUCCESS);
    CHECK((void *)record == (void *)area);
    EXPECT(cuptiActivityGetNextRecord((uint8_t *)area, context_bytes, &record), ERROR_MAX_LIMIT_REACHED);
    EXPECT(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &value), SUCCESS);
    CHECK(value == 8388608 && size == sizeof value);
    value = 16777216;
    EXPECT(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &value), SUCCESS);
    value = 0;
    EXPECT(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &value), SUCCESS);
    CHECK(value == 16777216);
    EXPECT(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_SIZE, &size, &value), SUCCESS);
    CHECK(value == 65536);
    EXPECT(cuptiActivityGetAttribute((CUpti_ActivityAttribute)attribute_counts[VERSION], &size, &value), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, NULL, &value), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivitySetAttribute((CUpti_ActivityAttribute)attribute_counts[VERSION], &size, &value), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, NULL, &value), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, NULL), ERROR_INVALID_PARAMETER);
    size = 4;
    EXPECT(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &value),
           ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
    EXPECT(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &value),
           ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
    EXPECT(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_INVALID, 1), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_SIZE, 1), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_INVALID, &id), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id), ERROR_QUEUE_EMPTY);
    for (of = 0; of < 1024; of++)
        EXPECT(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_UNKNOWN, of), SUCCESS);
    EXPECT(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_UNKNOWN, of), ERROR_MAX_LIMIT_REACHED);
    for (of = 1024; of > 0; of--) {
        EXPECT(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_UNKNOWN, &id), SUCCESS);
        CHECK(id == of - 1);
    }
    EXPECT(cuptiActivityConfigureUnifiedMemoryCounter(NULL, 1), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityConfigureUnifiedMemoryCounter(&config, 0), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityConfigureUnifiedMemoryCounter(&config, 1), SUCCESS);
    config.kind = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_UNKNOWN;
    EXPECT(cuptiActivityConfigureUnifiedMemoryCounter(&config, 1), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiGetThreadIdType(NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiSetThreadIdType((CUpti_ActivityThreadIdType)2), ERROR_NOT_SUPPORTED);
    EXPECT(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT), SUCCESS);
    EXPECT(cuptiGetThreadIdType(&type), SUCCESS);
    CHECK(type == CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT);
    EXPECT(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM), SUCCESS);
    EXPECT(cuptiGetThreadIdType(&type), SUCCESS);
    CHECK(type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    EXPECT(cuptiActivityEnableLatencyTimestamps(1), SUCCESS);
}

static void activity_locked(void) {
    CUpti_ActivityUnifiedMemoryCounterConfig config = {CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES,
                                                       CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THRASHING, 0, 1};
    EXPECT(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT), ERROR_NOT_SUPPORTED);
    EXPECT(cuptiActivityConfigureUnifiedMemoryCounter(&config, 1), ERROR_UM_PROFILING_NOT_SUPPORTED);
}

static const CUpti_ActivityKind kinds[] = {
    CUPTI_ACTIVITY_KIND_MEMCPY,          CUPTI_ACTIVITY_KIND_MEMSET,      CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_DRIVER,          CUPTI_ACTIVITY_KIND_RUNTIME,     CUPTI_ACTIVITY_KIND_DEVICE,
    CUPTI_ACTIVITY_KIND_CONTEXT,         CUPTI_ACTIVITY_KIND_NAME,        CUPTI_ACTIVITY_KIND_MARKER,
    CUPTI_ACTIVITY_KIND_MARKER_DATA,     CUPTI_ACTIVITY_KIND_OVERHEAD,    CUPTI_ACTIVITY_KIND_PREEMPTION,
    CUPTI_ACTIVITY_KIND_ENVIRONMENT,     CUPTI_ACTIVITY_KIND_MEMCPY2,     CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER,
    CUPTI_ACTIVITY_KIND_FUNCTION,        CUPTI_ACTIVITY_KIND_MODULE,      CUPTI_ACTIVITY_KIND_DEVICE_ATTRIBUTE,
    CUPTI_ACTIVITY_KIND_CUDA_EVENT,      CUPTI_ACTIVITY_KIND_STREAM,      CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_MEMORY, CUPTI_ACTIVITY_KIND_PCIE};

static void enable_all(int on) {
    size_t of;
    for (of = 0; of < sizeof kinds / sizeof *kinds; of++) {
        if (on) EXPECT(cuptiActivityEnable(kinds[of]), SUCCESS);
        else EXPECT(cuptiActivityDisable(kinds[of]), SUCCESS);
    }
}

static void activity(void) {
    uint32_t context = 0, stream = 0;
    uint64_t popped = 0;
    cl_mem other;
    int of, own = 0, from = 0, to = 0, between = 0;
    EXPECT(cuptiGetContextId(CONTEXT, &context), SUCCESS);
    EXPECT(cuptiGetStreamId(NULL, STREAM, &stream), SUCCESS);
    EXPECT(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, 77), SUCCESS);
    launch(5);
    EXPECT(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, &popped), SUCCESS);
    CHECK(popped == 77);
    EXPECT(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, NULL), ERROR_QUEUE_EMPTY);
    move();
    other = clCreateBuffer(in, CL_MEM_READ_WRITE, 12345, NULL, NULL);
    clReleaseMemObject(other);
    CHECK(clEnqueueMarkerWithWaitList(queue, 0, NULL, NULL) == CL_SUCCESS && clFinish(queue) == CL_SUCCESS);
    CHECK(gputrail_range_push_name("range") == GPUTRAIL_OK && gputrail_range_pop() == GPUTRAIL_OK);
    EXPECT(cuptiActivityFlushAll(0), SUCCESS);
    CHECK(completed > 1 && completed <= requested);

    CHECK(records[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] == 5 && records[CUPTI_ACTIVITY_KIND_KERNEL] == 0);
    CHECK(strcmp(last_kernel.name, "triple") == 0 && last_kernel.start > 0 && last_kernel.end >= last_kernel.start);
    CHECK(last_kernel.queued > 0 && last_kernel.submitted >= last_kernel.queued);
    CHECK(last_kernel.gridX == ITEMS / 16 && last_kernel.blockX == 16 && last_kernel.gridY == 1);
    CHECK(last_kernel.contextId == context && last_kernel.streamId == stream && last_kernel.deviceId == 0);
    CHECK(launch_count == 5);
    for (of = 0; of < 5; of++) {
        const CUpti_ActivityAPI *call = &launch_calls[of];
        own += call->correlationId == last_kernel.correlationId;
        CHECK(call->returnValue == 0 && call->threadId != 0 && call->start > 0 && call->end >= call->start);
    }
    CHECK(own == 1);
    CHECK(last_external.externalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1 && last_external.externalId == 77);
    CHECK(records[CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION] == 6);
    CHECK(records[CUPTI_ACTIVITY_KIND_MEMCPY] == 3 && records[CUPTI_ACTIVITY_KIND_MEMSET] == 1);
    for (of = 0; of < 3; of++) {
        CHECK(copies[of].bytes == BYTES && copies[of].end >= copies[of].start && copies[of].start > 0);
        from += copies[of].copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
        to += copies[of].copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
        between += copies[of].copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
    }
    CHECK(from == 1 && to == 1 && between == 1);
    CHECK(last_set.value == 7 && last_set.bytes == BYTES);
    CHECK(records[CUPTI_ACTIVITY_KIND_SYNCHRONIZATION] >= 2 && last_wait.end >= last_wait.start);
    CHECK(last_wait.type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE && last_wait.streamId == stream);
    CHECK(records[CUPTI_ACTIVITY_KIND_CUDA_EVENT] == 1);
    CHECK(records[CUPTI_ACTIVITY_KIND_MARKER] == 2 && records[CUPTI_ACTIVITY_KIND_MARKER_DATA] == 1);
    CHECK(markers[0].flags == CUPTI_ACTIVITY_FLAG_MARKER_START && markers[1].flags == CUPTI_ACTIVITY_FLAG_MARKER_END);
    CHECK(markers[0].id == markers[1].id && strcmp(markers[0].name, "range") == 0 && markers[1].name == NULL);
    CHECK(last_data.id == markers[0].id && last_data.flags == CUPTI_ACTIVITY_FLAG_MARKER_COLOR_NONE);
    CHECK(records[CUPTI_ACTIVITY_KIND_MEMORY] == 1 && last_memory.bytes == 12345 && last_memory.end >= last_memory.start);
    CHECK(records[CUPTI_ACTIVITY_KIND_DEVICE] == 1 && last_device.numMultiprocessors > 0 && last_device.name != NULL);
    CHECK(records[CUPTI_ACTIVITY_KIND_CONTEXT] == 1 && last_context.contextId == context);
    CHECK(records[CUPTI_ACTIVITY_KIND_STREAM] == 1 && last_stream.streamId == stream && last_stream.contextId == context);
    CHECK(records[CUPTI_ACTIVITY_KIND_FUNCTION] >= 1 && strcmp(last_function.name, "triple") == 0);
    CHECK(records[CUPTI_ACTIVITY_KIND_MODULE] >= 1 && records[CUPTI_ACTIVITY_KIND_DEVICE_ATTRIBUTE] >= 1);
    CHECK(records[CUPTI_ACTIVITY_KIND_NAME] >= 1);
    /* The same calls, as far as CUDA's runtime has such functions. */
    CHECK(records[CUPTI_ACTIVITY_KIND_RUNTIME] >= 9);
    CHECK(records[CUPTI_ACTIVITY_KIND_RUNTIME] <= records[CUPTI_ACTIVITY_KIND_DRIVER]);
    /* Nothing is told twice. */
    forget();
    EXPECT(cuptiActivityFlush(CONTEXT, stream, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), SUCCESS);
    CHECK(records[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] == 0 && records[CUPTI_ACTIVITY_KIND_DEVICE] == 0);
    /* The two buffers that live are told by a forced flush. */
    CHECK(records[CUPTI_ACTIVITY_KIND_MEMORY] <= 2);
}

static void limits(void) {
    size_t dropped = 0;
    enable_all(0);
    EXPECT(cuptiActivityFlushAll(0), SUCCESS);
    forget();
    launch(1);
    EXPECT(cuptiActivityFlushAll(0), SUCCESS);
    CHECK(completed == 0);
    EXPECT(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped), SUCCESS);
    /* One record for each buffer. */
    most = 1;
    EXPECT(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_KERNEL), SUCCESS);
    launch(4);
    EXPECT(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_KERNEL), SUCCESS);
    EXPECT(cuptiActivityFlushAll(0), SUCCESS);
    CHECK(records[CUPTI_ACTIVITY_KIND_KERNEL] == 4 && completed == 4);
    EXPECT(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped), SUCCESS);
    CHECK(dropped == 0);
    most = 0;
    /* Declined; too small; not aligned. */
    EXPECT(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_KERNEL), SUCCESS);
    declines = 1;
    launch(3);
    EXPECT(cuptiActivityFlushAll(0), SUCCESS);
    EXPECT(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped), SUCCESS);
    CHECK(dropped == 3);
    EXPECT(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped), SUCCESS);
    CHECK(dropped == 0);
    declines = 0;
    buffer_bytes = sizeof(CUpti_ActivityKernel4) - 8;
    launch(2);
    EXPECT(cuptiActivityFlushAll(0), SUCCESS);
    EXPECT(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped), SUCCESS);
    CHECK(dropped == 2);
    buffer_bytes = 1024;
    offset = 4;
    launch(2);
    EXPECT(cuptiActivityFlushAll(0), SUCCESS);
    EXPECT(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped), SUCCESS);
    CHECK(dropped == 2);
    offset = 0;
    EXPECT(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_KERNEL), SUCCESS);
    /* One context. */
    forget();
    EXPECT(cuptiActivityEnableContext(CONTEXT, CUPTI_ACTIVITY_KIND_DRIVER), ERROR_NOT_COMPATIBLE);
    EXPECT(cuptiActivityEnableContext(CONTEXT, CUPTI_ACTIVITY_KIND_DEVICE), ERROR_NOT_COMPATIBLE);
    EXPECT(cuptiActivityDisableContext(CONTEXT, CUPTI_ACTIVITY_KIND_DEVICE), ERROR_INVALID_KIND);
    EXPECT(cuptiActivityEnableContext(CONTEXT, CUPTI_ACTIVITY_KIND_KERNEL), SUCCESS);
    EXPECT(cuptiActivityEnableContext(CONTEXT, CUPTI_ACTIVITY_KIND_MEMCPY), SUCCESS);
    EXPECT(cuptiActivityDisableContext(CONTEXT, CUPTI_ACTIVITY_KIND_MEMCPY2), SUCCESS);
    EXPECT(cuptiActivityEnableContext(CONTEXT, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION), SUCCESS);
    EXPECT(cuptiActivityDisableContext(CONTEXT, CUPTI_ACTIVITY_KIND_CUDA_EVENT), SUCCESS);
    launch(2);
    move();
    EXPECT(cuptiActivityDisableContext(CONTEXT, CUPTI_ACTIVITY_KIND_MEMCPY), SUCCESS);
    EXPECT(cuptiActivityDisableContext(CONTEXT, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION), SUCCESS);
    move();
    EXPECT(cuptiActivityDisableContext(CONTEXT, CUPTI_ACTIVITY_KIND_KERNEL), SUCCESS);
    launch(1);
    EXPECT(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_KERNEL), SUCCESS);
    launch(1);
    EXPECT(cuptiActivityFlushAll(0), SUCCESS);
    CHECK(records[CUPTI_ACTIVITY_KIND_KERNEL] == 2);
    CHECK(records[CUPTI_ACTIVITY_KIND_MEMCPY] == 3 && records[CUPTI_ACTIVITY_KIND_SYNCHRONIZATION] >= 1);
}

int main(void) {
    basics();
    activity_statuses();
    callback_statuses();
    open_device();
    create();
    ids();
    callbacks();
    activity_locked();
    enable_all(1);
    activity();
    limits();
    EXPECT(cuptiFinalize(), SUCCESS);
    EXPECT(cuptiActivityFlushAll(0), ERROR_INVALID_OPERATION);
    EXPECT(cuptiFinalize(), SUCCESS);
    /* It begins anew. */
    EXPECT(cuptiActivityRegisterCallbacks(request, complete), SUCCESS);
    forget();
    EXPECT(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DEVICE), SUCCESS);
    EXPECT(cuptiActivityFlushAll(0), SUCCESS);
    CHECK(records[CUPTI_ACTIVITY_KIND_DEVICE] == 1);
    EXPECT(cuptiSubscribe(&subscriber, called_back, &user_data), SUCCESS);
    EXPECT(cuptiUnsubscribe(subscriber), SUCCESS);
    EXPECT(cuptiFinalize(), SUCCESS);
    if (failures == 0) printf("passed\n");
    return failures != 0;
}
