/* Functions and kinds of CUPTI that are younger than CUDA 10.0, on OpenCL. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <cupti.h>
#include <cupti_pcsampling.h>
#include <cupti_profiler_target.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ITEMS = 1 << 16, ADDRESSES = 64 };
static int failures;

static void check(const char *what, int line, int holds) {
    if (holds) return;
    printf("line %d: does not hold: %s\n", line, what);
    failures++;
}
#define CHECK(what) check(#what, __LINE__, (what) ? 1 : 0)
#define EXPECT(call, status) CHECK((call) == CUPTI_##status)

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_kernel kernel;
static cl_mem memory;
#define CONTEXT ((CUcontext)(void *)context)

static int of_kind[64], of_launch, of_others, wrong;
static uint64_t first_time, last_time;
static uint32_t launch_id, own_launch_id;
static uint64_t allocated;

static void time_of(uint64_t time) {
    if (first_time == 0 || time < first_time) first_time = time;
    if (time > last_time) last_time = time;
}

static void CUPTIAPI request(uint8_t **buffer, size_t *size, size_t *most) {
    *size = 1 << 18;
    *buffer = (uint8_t *)aligned_alloc(8, *size);
    *most = 0;
}

static void CUPTIAPI complete(CUcontext of, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *record = NULL;
    (void)of, (void)stream, (void)size;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        of_kind[record->kind % 64]++;
        switch (record->kind) {
        case CUPTI_ACTIVITY_KIND_DRIVER: {
            const CUpti_ActivityAPI *call = (const CUpti_ActivityAPI *)record;
            if (call->cbid == launch_id || call->cbid == own_launch_id) of_launch++;
            else of_others++;
            break;
        }
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
            const CUpti_ActivityKernel9 *work = (const CUpti_ActivityKernel9 *)record;
            time_of(work->start);
            time_of(work->end);
            break;
        }
        case CUPTI_ACTIVITY_KIND_MEMORY2: {
            const CUpti_ActivityMemory4 *one = (const CUpti_ActivityMemory4 *)record;
            CHECK(one->timestamp != 0 && one->correlationId != 0 && one->deviceId == 0 && one->address != 0);
            if (one->memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION) allocated += one->bytes;
            else if (one->memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE) allocated -= one->bytes;
            else wrong++;
            break;
        }
        case CUPTI_ACTIVITY_KIND_JIT: {
            const CUpti_ActivityJit2 *one = (const CUpti_ActivityJit2 *)record;
            CHECK(one->jitOperationType == CUPTI_ACTIVITY_JIT_OPERATION_COMPILE && one->end >= one->start);
            CHECK(one->jitEntryType == CUPTI_ACTIVITY_JIT_ENTRY_PTX_TO_CUBIN && one->start != 0);
            break;
        }
        default: break;
        }
    }
    free(buffer);
}

static void make(void) {
    const char *source = "kernel void spin(global float *a) { size_t i = get_global_id(0); float x = a[i];"
                         "  for (int n = 0; n < 3000; n++) x = x * 1.0001f + 0.5f; a[i] = x; }";
    cl_platform_id platform;
    cl_int status;
    cl_program program;
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    queue = clCreateCommandQueue(context, device, 0, &status);
    program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    CHECK(clBuildProgram(program, 1, &device, "", NULL, NULL) == CL_SUCCESS);
    memory = clCreateBuffer(context, CL_MEM_READ_WRITE, ITEMS * sizeof(float), NULL, &status);
    kernel = clCreateKernel(program, "spin", &status);
    CHECK(clSetKernelArg(kernel, 0, sizeof memory, &memory) == CL_SUCCESS);
}

static void launch(int times) {
    size_t items = ITEMS;
    while (times-- > 0)
        CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clFinish(queue) == CL_SUCCESS);
}

static int calls_of(int times) {
    of_launch = of_others = 0;
    launch(times);
    EXPECT(cuptiActivityFlushAll(0), SUCCESS);
    return of_launch;
}

/* Single functions: https://docs.nvidia.com/cupti, cuptiActivityEnableDriverApi. */
static void functions(void) {
    const char *name;
    launch_id = CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel;
    for (own_launch_id = CUPTI_CBID_GPUTRAIL; own_launch_id < CUPTI_CBID_GPUTRAIL + 1024; own_launch_id++)
        if (cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, own_launch_id, &name) == CUPTI_SUCCESS &&
            strcmp(name, "clEnqueueNDRangeKernel") == 0) break;
    EXPECT(cuptiActivityEnableDriverApi(0, 1), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityEnableRuntimeApi(0xffffff, 1), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityEnableDriverApi(launch_id, 1), SUCCESS);
    CHECK(calls_of(2) == 2 && of_others == 0);
    EXPECT(cuptiActivityEnableDriverApi(launch_id, 0), SUCCESS);
    CHECK(calls_of(2) == 0 && of_others == 0);
    EXPECT(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER), SUCCESS);
    CHECK(calls_of(2) == 2 && of_others > 0);
    EXPECT(cuptiActivityEnableDriverApi(launch_id, 0), SUCCESS);
    CHECK(calls_of(2) == 0 && of_others > 0);
    EXPECT(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER), SUCCESS);
    CHECK(calls_of(2) == 2);
    EXPECT(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_DRIVER), SUCCESS);
    CHECK(calls_of(2) == 0 && of_others == 0);
}

/* A clock with an origin and a speed of its own: tenths of microseconds since the start. */
static uint64_t ticks(void) {
    struct timespec now;
    static int64_t begin;
    int64_t nanos;
    clock_gettime(CLOCK_MONOTONIC, &now);
    nanos = now.tv_sec * 1000000000ll + now.tv_nsec;
    if (begin == 0) begin = nanos;
    return 1000 + (uint64_t)(nanos - begin) / 100;
}

static void clocks(void) {
    uint64_t before, after, told = 0;
    EXPECT(cuptiActivityRegisterTimestampCallback(NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), SUCCESS);
    EXPECT(cuptiActivityRegisterTimestampCallback(ticks), SUCCESS);
    before = ticks();
    EXPECT(cuptiGetTimestamp(&told), SUCCESS);
    first_time = last_time = 0;
    launch(3);
    after = ticks();
    EXPECT(cuptiActivityFlushAll(0), SUCCESS);
    /* To a hundredth of a millisecond. */
    CHECK(told + 100 >= before && told <= after + 100);
    CHECK(first_time + 100 >= before && last_time <= after + 100 && last_time > first_time);
    EXPECT(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), SUCCESS);
}

static void kinds(void) {
    cl_int status;
    cl_mem more;
    EXPECT(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMORY2), SUCCESS);
    EXPECT(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_JIT), SUCCESS);
    make();
    more = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &status);
    clReleaseMemObject(more);
    EXPECT(cuptiActivityFlushAll(0), SUCCESS);
    CHECK(of_kind[CUPTI_ACTIVITY_KIND_JIT] >= 1 && of_kind[CUPTI_ACTIVITY_KIND_MEMORY2] == 3 && wrong == 0);
    CHECK(allocated == ITEMS * sizeof(float));
    EXPECT(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMORY2), SUCCESS);
    EXPECT(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_JIT), SUCCESS);
}

static void graphs(void) {
    uint32_t id = 0;
    uint64_t node = 0;
    EXPECT(cuptiGetGraphId(NULL, &id), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiGetGraphId((CUgraph)(size_t)7, NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiGetGraphId((CUgraph)(size_t)7, &id), SUCCESS);
    CHECK(id == 7);
    EXPECT(cuptiGetGraphExecId((CUgraphExec)(size_t)8, &id), SUCCESS);
    EXPECT(cuptiGetGraphNodeId((CUgraphNode)(size_t)9, &node), SUCCESS);
    CHECK(id == 8 && node == 9);
}

static void profiler(void) {
    CUpti_Profiler_Initialize_Params begin = {sizeof begin, NULL};
    CUpti_Profiler_DeviceSupported_Params supported = {sizeof supported, NULL, 0, CUPTI_PROFILER_CONFIGURATION_UNKNOWN};
    EXPECT(cuptiProfilerInitialize(NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiProfilerInitialize(&begin), ERROR_NOT_SUPPORTED);
    EXPECT(cuptiProfilerDeviceSupported(NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiProfilerDeviceSupported(&supported), SUCCESS);
    CHECK(supported.isSupported == CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED);
    supported.cuDevice = 99;
    EXPECT(cuptiProfilerDeviceSupported(&supported), ERROR_INVALID_DEVICE);
}

/* PC sampling. */
static CUpti_PCSamplingData *place_for(size_t addresses, size_t reasons) {
    CUpti_PCSamplingData *data = (CUpti_PCSamplingData *)calloc(1, sizeof *data);
    size_t of;
    data->size = sizeof *data;
    data->collectNumPcs = addresses;
    data->pPcData = (CUpti_PCSamplingPCData *)calloc(addresses, sizeof *data->pPcData);
    for (of = 0; of < addresses; of++) {
        data->pPcData[of].size = sizeof *data->pPcData;
        data->pPcData[of].stallReason = (CUpti_PCSamplingStallReason *)calloc(reasons, sizeof(CUpti_PCSamplingStallReason));
    }
    return data;
}

/* The samples in `data` whose function is the kernel. */
static uint64_t samples_in(CUpti_PCSamplingData *data, char **names, int is_serialized) {
    uint64_t sum = 0;
    size_t of, reason;
    CHECK(data->totalNumPcs <= data->collectNumPcs);
    for (of = 0; of < data->totalNumPcs; of++) {
        CUpti_PCSamplingPCData *pc = &data->pPcData[of];
        CHECK(pc->functionName != NULL && strcmp(pc->functionName, "spin") == 0 && pc->functionIndex != 0);
        CHECK(pc->cubinCrc != 0 && pc->stallReasonCount > 0 && (pc->correlationId != 0) == is_serialized);
        for (reason = 0; reason < pc->stallReasonCount; reason++) {
            const char *name = names[pc->stallReason[reason].pcSamplingStallReasonIndex];
            if (strstr(name, "_not_issued") == NULL) sum += pc->stallReason[reason].samples;
        }
        free(pc->functionName);
        pc->functionName = NULL;
    }
    return sum;
}

static void sampling(void) {
    CUpti_PCSamplingEnableParams of = {CUpti_PCSamplingEnableParamsSize, NULL, CONTEXT};
    CUpti_PCSamplingEnableParams wrong_context = {CUpti_PCSamplingEnableParamsSize, NULL, NULL};
    CUpti_PCSamplingConfigurationInfo attributes[3];
    CUpti_PCSamplingConfigurationInfoParams configuration = {
        CUpti_PCSamplingConfigurationInfoParamsSize, NULL, CONTEXT, 3, attributes};
    CUpti_PCSamplingData *data, *own;
    CUpti_PCSamplingGetDataParams get = {CUpti_PCSamplingGetDataParamsSize, NULL, CONTEXT, NULL};
    size_t count = 0, reason;
    CUpti_PCSamplingGetNumStallReasonsParams number = {CUpti_PCSamplingGetNumStallReasonsParamsSize, NULL, CONTEXT, &count};
    CUpti_PCSamplingGetStallReasonsParams list = {CUpti_PCSamplingGetStallReasonsParamsSize, NULL, CONTEXT, 0, NULL, NULL};
    uint64_t sum = 0, total = 0;
    CUptiResult status;
    EXPECT(cuptiPCSamplingEnable(NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiPCSamplingEnable(&wrong_context), ERROR_INVALID_PARAMETER);
    of.size = 8;
    EXPECT(cuptiPCSamplingEnable(&of), ERROR_INVALID_PARAMETER);
    of.size = CUpti_PCSamplingEnableParamsSize;
    EXPECT(cuptiPCSamplingDisable(&of), ERROR_INVALID_OPERATION);
    EXPECT(cuptiPCSamplingGetNumStallReasons(&number), SUCCESS);
    CHECK(count > 20);
    list.numStallReasons = count;
    list.stallReasonIndex = (uint32_t *)calloc(count, sizeof(uint32_t));
    list.stallReasons = (char **)calloc(count, sizeof(char *));
    for (reason = 0; reason < count; reason++) list.stallReasons[reason] = (char *)calloc(1, CUPTI_STALL_REASON_STRING_SIZE);
    EXPECT(cuptiPCSamplingGetStallReasons(&list), SUCCESS);
    for (reason = 0; reason < count; reason++)
        CHECK(list.stallReasonIndex[reason] == reason && strncmp(list.stallReasons[reason], "smsp__pcsamp_", 13) == 0);
    status = cuptiPCSamplingEnable(&of);
    if (status == CUPTI_ERROR_NOT_SUPPORTED) {
        printf("not sampled\n");
        return;
    }
    CHECK(status == CUPTI_SUCCESS);
    EXPECT(cuptiPCSamplingEnable(&of), ERROR_INVALID_OPERATION);
    own = place_for(4096, count);
    memset(attributes, 0, sizeof attributes);
    attributes[0].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD;
    attributes[0].attributeData.samplingPeriodData.samplingPeriod = 4;
    attributes[1].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE;
    attributes[1].attributeData.collectionModeData.collectionMode = CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED;
    attributes[2].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER;
    attributes[2].attributeData.samplingDataBufferData.samplingDataBuffer = own;
    EXPECT(cuptiPCSamplingSetConfigurationAttribute(&configuration), ERROR_INVALID_PARAMETER);
    CHECK(attributes[0].attributeStatus == CUPTI_ERROR_INVALID_PARAMETER && attributes[1].attributeStatus == CUPTI_SUCCESS);
    attributes[0].attributeData.samplingPeriodData.samplingPeriod = 5;
    EXPECT(cuptiPCSamplingSetConfigurationAttribute(&configuration), SUCCESS);
    attributes[0].attributeData.samplingPeriodData.samplingPeriod = 0;
    EXPECT(cuptiPCSamplingGetConfigurationAttribute(&configuration), SUCCESS);
    CHECK(attributes[0].attributeData.samplingPeriodData.samplingPeriod == 5);
    EXPECT(cuptiPCSamplingStart(&of), ERROR_INVALID_OPERATION);
    launch(5);
    /* In parts. */
    data = place_for(ADDRESSES / 32, count);
    get.pcSamplingData = data;
    do {
        EXPECT(cuptiPCSamplingGetData(&get), SUCCESS);
        total += data->totalSamples - data->droppedSamples;
        sum += samples_in(data, list.stallReasons, 1);
    } while (data->remainingNumPcs > 0 && failures == 0);
    CHECK(sum > 0 && sum == total);
    /* What comes last is in the buffer of the configuration. */
    launch(5);
    EXPECT(cuptiPCSamplingDisable(&of), SUCCESS);
    CHECK(own->totalSamples > 0 && samples_in(own, list.stallReasons, 1) == own->totalSamples - own->droppedSamples);
    EXPECT(cuptiPCSamplingGetData(&get), ERROR_INVALID_OPERATION);
    /* Start and stop. */
    EXPECT(cuptiPCSamplingEnable(&of), SUCCESS);
    configuration.numAttributes = 2;
    attributes[0].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL;
    attributes[0].attributeData.enableStartStopControlData.enableStartStopControl = 1;
    attributes[1] = attributes[2];
    EXPECT(cuptiPCSamplingSetConfigurationAttribute(&configuration), SUCCESS);
    launch(3);
    EXPECT(cuptiPCSamplingStart(&of), SUCCESS);
    EXPECT(cuptiPCSamplingStop(&of), SUCCESS);
    CHECK(own->totalSamples == 0 && own->totalNumPcs == 0);
    EXPECT(cuptiPCSamplingStop(&of), ERROR_INVALID_OPERATION);
    EXPECT(cuptiPCSamplingStart(&of), SUCCESS);
    launch(5);
    EXPECT(cuptiPCSamplingStop(&of), SUCCESS);
    CHECK(own->totalSamples > 0 && own->rangeId == 2 && samples_in(own, list.stallReasons, 0) > 0);
    EXPECT(cuptiPCSamplingDisable(&of), SUCCESS);
}

static void CUPTIAPI compute(const void *cubin, size_t size, uint64_t *crc) {
    (void)cubin;
    *crc = 1000 + size;
}

static void cubins(void) {
    CUpti_GetCubinCrcParams one = {CUpti_GetCubinCrcParamsSize, 3, "abc", 0}, other = {CUpti_GetCubinCrcParamsSize, 3, "abd", 0};
    CUpti_GetSassToSourceCorrelationParams line = {CUpti_GetSassToSourceCorrelationParamsSize, "abc", "spin", 3, 0, 0, NULL, NULL};
    EXPECT(cuptiGetCubinCrc(&one), SUCCESS);
    EXPECT(cuptiGetCubinCrc(&other), SUCCESS);
    CHECK(one.cubinCrc != 0 && one.cubinCrc != other.cubinCrc);
    EXPECT(cuptiGetSassToSourceCorrelation(&line), ERROR_INVALID_MODULE);
    line.functionName = NULL;
    EXPECT(cuptiGetSassToSourceCorrelation(&line), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiRegisterComputeCrcCallback(NULL), ERROR_INVALID_PARAMETER);
    EXPECT(cuptiRegisterComputeCrcCallback(compute), SUCCESS);
    EXPECT(cuptiGetCubinCrc(&one), SUCCESS);
    CHECK(one.cubinCrc == 1003);
    one.cubin = NULL;
    EXPECT(cuptiGetCubinCrc(&one), ERROR_INVALID_PARAMETER);
}

int main(void) {
    EXPECT(cuptiActivityRegisterCallbacks(request, complete), SUCCESS);
    kinds();
    functions();
    graphs();
    profiler();
    sampling();
    cubins();
    clocks();
    if (failures == 0) printf("passed\n");
    return failures != 0;
}
