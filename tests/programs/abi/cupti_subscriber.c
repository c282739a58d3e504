/* Functions of CUDA 11 to 13 that name a subscriber, switch records and tell about CUPTI itself, on OpenCL. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static void check(const char *what, int line, int holds) {
    if (holds) return;
    printf("line %d: does not hold: %s\n", line, what);
    failures++;
}
#define CHECK(what) check(#what, __LINE__, (what) ? 1 : 0)
#define EXPECT(call, status) CHECK((call) == CUPTI_##status)
#define LAYOUT CUPTI_GPUTRAIL_LAYOUT

static int of_kind[64], launches, others, requests, completions;
static CUpti_SubscriberHandle subscriber;

static void CUPTIAPI request(uint8_t **buffer, size_t *size, size_t *most, CUpti_BufferCallbackRequestInfo *info) {
    CHECK(info != NULL && info->structSize >= sizeof *info);
    *size = 1 << 16;
    *buffer = (uint8_t *)aligned_alloc(8, *size);
    *most = 0;
    requests++;
}

static void CUPTIAPI complete(uint8_t *buffer, size_t size, size_t valid, CUpti_BufferCallbackCompleteInfo *info) {
    CUpti_Activity *record = NULL;
    CHECK(info != NULL && info->structSize >= sizeof *info && info->numRecordLayouts == 0 && size == 1 << 16);
    while (cuptiActivityGetNextRecord_v2(subscriber, buffer, valid, &record) == CUPTI_SUCCESS) {
        of_kind[record->kind % 64]++;
        if (record->kind == CUPTI_ACTIVITY_KIND_RUNTIME) {
            const uint32_t cbid = ((const CUpti_ActivityAPI *)record)->cbid;
            if (cbid == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000) launches++;
            else others++;
        }
    }
    free(buffer);
    completions++;
}

static void CUPTIAPI called(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *data) {
    (void)user, (void)domain, (void)cbid, (void)data;
}

static uint64_t CUPTIAPI clock_of_program(void) {
    static uint64_t time = 1000;
    return time++;
}

static cl_context context;
static cl_command_queue queue;
static cl_kernel kernel;

static void make(void) {
    const char *source = "kernel void one(global float *a) { a[get_global_id(0)] += 1; }";
    cl_platform_id platform;
    cl_device_id device;
    cl_program program;
    cl_mem memory;
    cl_int status;
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    queue = clCreateCommandQueue(context, device, 0, &status);
    program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    CHECK(clBuildProgram(program, 1, &device, "", NULL, NULL) == CL_SUCCESS);
    memory = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &status);
    kernel = clCreateKernel(program, "one", &status);
    CHECK(clSetKernelArg(kernel, 0, sizeof memory, &memory) == CL_SUCCESS);
}

static void launch(void) {
    size_t items = 1024;
    launches = others = 0;
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clFinish(queue) == CL_SUCCESS);
    EXPECT(cuptiActivityFlushAll(0), SUCCESS);
}

static void subscribe(void) {
    char old[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN] = "?";
    CUpti_SubscriberHandle other = NULL;
    CUpti_SubscriberParams params;
    CUpti_CallbackId ids[2] = {0, 0};
    uint32_t room = 2, count = 99;
    uint8_t running = 9;
    EXPECT(cuptiIsTracingSessionRunning(NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiIsTracingSessionRunning(&running), SUCCESS);
    CHECK(running == 0);
    memset(&params, 0, sizeof params);
    EXPECT(cuptiSubscribe_v2(&subscriber, (CUpti_CallbackFunc)called, NULL, &params), ERROR_INVALID_PARAMETER);
    params.structSize = sizeof params;
    params.subscriberName = "test";
    EXPECT(cuptiSubscribe_v2(NULL, (CUpti_CallbackFunc)called, NULL, &params), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiSubscribe_v2(&subscriber, (CUpti_CallbackFunc)called, NULL, &params), SUCCESS);
    params.oldSubscriberName = old;
    params.oldSubscriberSize = sizeof old;
    CHECK(cuptiSubscribe_v2(&other, (CUpti_CallbackFunc)called, NULL, &params) ==
          (LAYOUT == 10 ? CUPTI_ERROR_MAX_LIMIT_REACHED : CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED));
    CHECK(strcmp(old, "CUPTI for test") == 0);
    params.oldSubscriberSize = 9;
    CHECK(cuptiSubscribe_v2(&other, (CUpti_CallbackFunc)called, NULL, &params) != CUPTI_SUCCESS && strcmp(old, "CUPTI fo") == 0);
    EXPECT(cuptiIsTracingSessionRunning(&running), SUCCESS);
    CHECK(running == 1 && other == NULL);

    EXPECT(cuptiGetEnabledCallbacks(subscriber, CUPTI_CB_DOMAIN_DRIVER_API, NULL, NULL, NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiGetEnabledCallbacks(subscriber, CUPTI_CB_DOMAIN_INVALID, NULL, NULL, &count), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiGetEnabledCallbacks(subscriber, CUPTI_CB_DOMAIN_DRIVER_API, NULL, NULL, &count), SUCCESS);
    CHECK(count == 0);
    EXPECT(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, 307), SUCCESS);
    EXPECT(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, 13), SUCCESS);
    EXPECT(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, 20), SUCCESS);
    EXPECT(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, 211), SUCCESS);
    EXPECT(cuptiGetEnabledCallbacks(subscriber, CUPTI_CB_DOMAIN_DRIVER_API, ids, NULL, &count), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiGetEnabledCallbacks(NULL, CUPTI_CB_DOMAIN_DRIVER_API, ids, &room, &count), SUCCESS);
    CHECK(count == 3 && ids[0] == 13 && ids[1] == 20);
    EXPECT(cuptiGetEnabledCallbacks((CUpti_SubscriberHandle)&params, CUPTI_CB_DOMAIN_DRIVER_API, ids, &room, &count),
           ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEnableDomain(0, subscriber, CUPTI_CB_DOMAIN_DRIVER_API), SUCCESS);
    EXPECT(cuptiEnableDomain(0, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API), SUCCESS);
}

static void kinds(void) {
    CUpti_CallbackId launch_id = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
    CUpti_ActivityApiCbidOptions functions = {sizeof functions, &launch_id, 1, 1};
    CUpti_ActivityApiOptions options = {sizeof options, &functions};
    CUpti_ActivityConfig config;
    CUpti_ActivityKind enabled[4];
    uint32_t room = 4, count = 99;
    size_t dropped = 99;
    uint64_t id = 0;
    int field = 0;
    memset(&config, 0, sizeof config);
    EXPECT(cuptiActivityRegisterCallbacks_v2(NULL, request, complete), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityRegisterCallbacks_v2(subscriber, NULL, complete), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityRegisterCallbacks_v2(subscriber, request, complete), SUCCESS);
    EXPECT(cuptiActivityFlushPeriod(20), SUCCESS);
    EXPECT(cuptiActivityEnable_v2(NULL, CUPTI_ACTIVITY_KIND_RUNTIME, NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityEnable_v2(subscriber, (CUpti_ActivityKind)999, NULL), ERROR_INVALID_KIND);
    EXPECT(cuptiActivityEnable_v2(subscriber, CUPTI_ACTIVITY_KIND_RUNTIME, &config), ERROR_INVALID_PARAMETER);
    config.structSize = sizeof config;
    config.fieldSelection.structSize = sizeof config.fieldSelection;
    config.fieldSelection.numFields = 1;
    config.fieldSelection.pFieldIds = &field;
    EXPECT(cuptiActivityEnable_v2(subscriber, CUPTI_ACTIVITY_KIND_RUNTIME, &config), ERROR_NOT_SUPPORTED);
    config.fieldSelection.numFields = 0;
    EXPECT(cuptiActivityEnable_v2(subscriber, CUPTI_ACTIVITY_KIND_RUNTIME, &config), SUCCESS);
    launch();
    CHECK(launches == 1 && others > 0);
    /* Single functions of a kind. */
    config.pKindOptions = &options;
    EXPECT(cuptiActivityEnable_v2(subscriber, CUPTI_ACTIVITY_KIND_RUNTIME, &config), SUCCESS);
    launch();
    CHECK(launches == 1 && others == 0);
    functions.enable = 0;
    EXPECT(cuptiActivityEnableAndDump_v2(subscriber, CUPTI_ACTIVITY_KIND_RUNTIME, &config), SUCCESS);
    launch();
    CHECK(launches == 0 && others > 0);
    EXPECT(cuptiActivityEnableRuntimeApi_v2(NULL, launch_id, 1), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityEnableRuntimeApi_v2(subscriber, launch_id, 1), SUCCESS);
    launch();
    CHECK(launches == 1 && others > 0);
    launch_id = 0xffffff;
    EXPECT(cuptiActivityEnable_v2(subscriber, CUPTI_ACTIVITY_KIND_RUNTIME, &config), ERROR_INVALID_PARAMETER);
    launch();
    CHECK(launches == 1 && others > 0);
    functions.pCbids = NULL;
    EXPECT(cuptiActivityEnable_v2(subscriber, CUPTI_ACTIVITY_KIND_RUNTIME, &config), ERROR_INVALID_PARAMETER);
    /* What is enabled. */
    EXPECT(cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_DEVICE), SUCCESS);
    EXPECT(cuptiActivityGetEnabledKinds(subscriber, NULL, NULL, NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityGetEnabledKinds(subscriber, enabled, NULL, &count), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityGetEnabledKinds(subscriber, enabled, &room, &count), SUCCESS);
    CHECK(count == 2 && enabled[0] == CUPTI_ACTIVITY_KIND_RUNTIME && enabled[1] == CUPTI_ACTIVITY_KIND_DEVICE);
    launch();
    CHECK(of_kind[CUPTI_ACTIVITY_KIND_DEVICE] >= 1);
    EXPECT(cuptiActivityDisable_v2(subscriber, CUPTI_ACTIVITY_KIND_RUNTIME, NULL), SUCCESS);
    launch();
    CHECK(launches == 0 && others == 0);
    EXPECT(cuptiActivityGetNumDroppedRecords_v2(NULL, NULL, 0, &dropped), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityGetNumDroppedRecords_v2(subscriber, NULL, 0, &dropped), SUCCESS);
    CHECK(dropped == 0);
    EXPECT(cuptiActivityPushExternalCorrelationId_v2(subscriber, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 7), SUCCESS);
    EXPECT(cuptiActivityPopExternalCorrelationId_v2(NULL, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityPopExternalCorrelationId_v2(subscriber, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id), SUCCESS);
    CHECK(id == 7);
    /* Kinds of which nothing happens. */
#if LAYOUT >= 11
    EXPECT(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMORY_POOL), SUCCESS);
    EXPECT(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMORY_POOL), SUCCESS);
#else
    EXPECT(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMORY_POOL), ERROR_INVALID_KIND);
#endif
}

static void attributes(void) {
    size_t bytes = 1, number = 0;
    uint8_t flag = 9;
    uint32_t type = 9;
    CUpti_TimestampCallbackFunc clock = clock_of_program;
    uint64_t time = 0;
#if LAYOUT >= 11
    EXPECT(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &bytes, &flag), SUCCESS);
    CHECK(flag == 0 && bytes == 1);
    flag = 1;
    EXPECT(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &bytes, &flag), SUCCESS);
    flag = 0;
    EXPECT(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &bytes, &flag), SUCCESS);
    CHECK(flag == 1);
    EXPECT(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, &bytes, &number),
           ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
    bytes = 8;
    EXPECT(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, &bytes, &number), SUCCESS);
    CHECK(number == 3);
#endif
#if LAYOUT >= 13
    bytes = 1;
    EXPECT(cuptiActivityGetAttribute_v2(NULL, CUPTI_ACTIVITY_ATTR_ENABLE_HES, &bytes, &flag), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityGetAttribute_v2(subscriber, CUPTI_ACTIVITY_ATTR_ENABLE_HES, &bytes, &flag), SUCCESS);
    CHECK(flag == 0);
    flag = 1;
    EXPECT(cuptiActivitySetAttribute_v2(subscriber, CUPTI_ACTIVITY_ATTR_ENABLE_HES, &bytes, &flag), ERROR_NOT_SUPPORTED);
    EXPECT(cuptiActivitySetAttribute_v2(subscriber, CUPTI_ACTIVITY_ATTR_MULTIPLE_SUBSCRIBER_STATE, &bytes, &flag),
           ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivitySetAttribute_v2(subscriber, CUPTI_ACTIVITY_ATTR_USER_DEFINED_RECORDS, &bytes, &flag), ERROR_NOT_SUPPORTED);
    EXPECT(cuptiActivitySetAttribute_v2(subscriber, CUPTI_ACTIVITY_ATTR_ENABLE_KERNEL_LATENCY_TIMESTAMPS, &bytes, &flag), SUCCESS);
    EXPECT(cuptiActivityEnableAllocationSource(1), SUCCESS);
    flag = 0;
    EXPECT(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_ENABLE_ALLOCATION_SOURCE_TRACKING, &bytes, &flag), SUCCESS);
    CHECK(flag == 1);
    bytes = 4;
    EXPECT(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_THREAD_ID_TYPE, &bytes, &type), SUCCESS);
    CHECK(type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    bytes = sizeof clock;
    EXPECT(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_TIMESTAMP_CALLBACK, &bytes, &clock), SUCCESS);
    clock = NULL;
    EXPECT(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_TIMESTAMP_CALLBACK, &bytes, &clock), SUCCESS);
    CHECK(clock == clock_of_program);
    EXPECT(cuptiGetTimestamp_v2(NULL, &time), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiGetTimestamp_v2(subscriber, &time), SUCCESS);
    CHECK(time >= 1000 && time < 1000000);
    clock = NULL;
    EXPECT(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_TIMESTAMP_CALLBACK, &bytes, &clock), SUCCESS);
#endif
    (void)flag, (void)type, (void)clock, (void)number, (void)bytes;
    EXPECT(cuptiGetTimestamp_v2(subscriber, &time), SUCCESS);
    CHECK(time > 1000000);
    EXPECT(cuptiActivityEnableAllSyncRecords(1), SUCCESS);
    EXPECT(cuptiActivityEnableAllocationSource(1), SUCCESS);
    EXPECT(cuptiActivityEnableCudaEventDeviceTimestamps(1), SUCCESS);
    EXPECT(cuptiActivityEnableDeviceGraph(1), SUCCESS);
    EXPECT(cuptiActivityEnableLaunchAttributes(1), SUCCESS);
    EXPECT(cuptiActivityEnableHWTrace(1), ERROR_NOT_SUPPORTED);
    EXPECT(cuptiActivityEnableHWTrace(0), SUCCESS);
}

static void facts(void) {
    CUpti_DeviceVirtualizationMode mode = CUPTI_DEVICE_VIRTUALIZATION_MODE_FORCE_INT;
    const char *text = NULL;
    uint32_t id = 0;
    size_t bytes = 0;
    EXPECT(cuptiGetErrorMessage(CUPTI_ERROR_INVALID_KIND, &text), SUCCESS);
    CHECK(text != NULL && *text != 0);
    EXPECT(cuptiGetErrorMessage(CUPTI_ERROR_FORCE_INT, &text), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiDeviceVirtualizationMode(0, NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiDeviceVirtualizationMode(99, &mode), ERROR_INVALID_DEVICE);
    EXPECT(cuptiDeviceVirtualizationMode(0, &mode), SUCCESS);
    CHECK(mode == CUPTI_DEVICE_VIRTUALIZATION_MODE_NONE);
    EXPECT(cuptiGetCudaEventId(NULL, &id), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiGetCudaEventId((CUevent)(size_t)7, &id), SUCCESS);
    CHECK(id == 7);
    EXPECT(cuptiActivityGetStructSize(CUPTI_ACTIVITY_KIND_MEMCPY, 0, NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityGetStructSize((CUpti_ActivityKind)999, 0, &bytes), ERROR_INVALID_KIND);
    EXPECT(cuptiActivityGetStructSize(CUPTI_ACTIVITY_KIND_MEMCPY, 120000, &bytes), ERROR_NOT_SUPPORTED);
    EXPECT(cuptiActivityGetStructSize(CUPTI_ACTIVITY_KIND_MEMCPY, 130500, &bytes), SUCCESS);
    CHECK(bytes == sizeof(CUpti_ActivityMemcpy7));
    EXPECT(cuptiActivityGetStructSize(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 0, &bytes), SUCCESS);
    CHECK(bytes == (LAYOUT >= 13   ? sizeof(CUpti_ActivityKernel13)
                    : LAYOUT >= 12 ? sizeof(CUpti_ActivityKernel9)
                    : LAYOUT >= 11 ? sizeof(CUpti_ActivityKernel8)
                                   : sizeof(CUpti_ActivityKernel4)));
}

int main(void) {
    subscribe();
    make();
    kinds();
    attributes();
    facts();
    EXPECT(cuptiUnsubscribe(subscriber), SUCCESS);
    EXPECT(cuptiActivityEnable_v2(subscriber, CUPTI_ACTIVITY_KIND_RUNTIME, NULL), ERROR_INVALID_PARAMETER);
    CHECK(requests > 0 && requests == completions);
    printf(failures == 0 ? "passed\n" : "failed\n");
    return failures != 0;
}
