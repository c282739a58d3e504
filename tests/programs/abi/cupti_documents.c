/* What CUPTI's document says of the order and the fields of records, and of contexts, on OpenCL with two contexts. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 1 << 16, CALLS = 1 << 16, LAUNCHES = 12, COPIES = 6 };
static int failures;

static void check(const char *what, int line, int holds) {
    if (holds) return;
    printf("line %d: does not hold: %s\n", line, what);
    failures++;
}
#define CHECK(what) check(#what, __LINE__, (what) ? 1 : 0)
#define OK(call) CHECK((call) == CUPTI_SUCCESS)

typedef struct {
    cl_context context;
    cl_command_queue queue;
    cl_kernel kernels[2];
    cl_mem memory;
    uint32_t id;
} Place;

static cl_device_id device;
static Place places[2];
static unsigned char external[CALLS], called[CALLS];
static uint32_t of_context[CALLS];
static int kernels, copies, early, wrong, of_kind[256];
static uint32_t stream_calls[8], queue_cbid, creating[8];
static int streams, created;
static CUpti_ActivityFunction functions[32];
static int function_count;
static uint32_t sampled[4096], counts_of[2];
static int sample_count;
static int event_waits, waits_elsewhere;

static void CUPTIAPI request(uint8_t **buffer, size_t *size, size_t *most) {
    *size = 1 << 20;
    *buffer = (uint8_t *)aligned_alloc(8, *size);
    *most = 0;
}

/* Reads once, in order, as Caliper does. */
static void CUPTIAPI complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)size;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        of_kind[record->kind & 255]++;
        switch (record->kind) {
        case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
            const CUpti_ActivityExternalCorrelation *of = (const CUpti_ActivityExternalCorrelation *)record;
            CHECK(!called[of->correlationId % CALLS] && of->externalId == 7);
            external[of->correlationId % CALLS] = 1;
            break;
        }
        case CUPTI_ACTIVITY_KIND_DRIVER: {
            const CUpti_ActivityAPI *of = (const CUpti_ActivityAPI *)record;
            called[of->correlationId % CALLS] = 1;
            if (of->cbid == queue_cbid && created < 8) creating[created++] = of->correlationId;
            break;
        }
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
            const CUpti_ActivityKernel4 *of = (const CUpti_ActivityKernel4 *)record;
            kernels++;
            of_context[of->correlationId % CALLS] = of->contextId;
            early += !external[of->correlationId % CALLS] || !called[of->correlationId % CALLS];
            break;
        }
        case CUPTI_ACTIVITY_KIND_MEMCPY: {
            const CUpti_ActivityMemcpy *of = (const CUpti_ActivityMemcpy *)record;
            copies++;
            early += !external[of->correlationId % CALLS] || !called[of->correlationId % CALLS];
            wrong += of->runtimeCorrelationId != of->correlationId || of->correlationId == 0;
            break;
        }
        case CUPTI_ACTIVITY_KIND_CONTEXT:
            CHECK(((const CUpti_ActivityContext *)record)->computeApiKind == CUPTI_ACTIVITY_COMPUTE_API_CUDA);
            break;
        case CUPTI_ACTIVITY_KIND_STREAM:
            if (streams < 8) stream_calls[streams++] = ((const CUpti_ActivityStream *)record)->correlationId;
            break;
        case CUPTI_ACTIVITY_KIND_FUNCTION:
            if (function_count < 32) functions[function_count++] = *(const CUpti_ActivityFunction *)record;
            break;
        case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
            const CUpti_ActivitySynchronization *of = (const CUpti_ActivitySynchronization *)record;
            if (of->type != CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE) break;
            if (of->contextId == places[0].id && of->end >= of->start) event_waits++;
            else waits_elsewhere++;
            break;
        }
        case CUPTI_ACTIVITY_KIND_PC_SAMPLING:
            if (sample_count < 4096) sampled[sample_count++] = ((const CUpti_ActivityPCSampling3 *)record)->correlationId;
            break;
        default: break;
        }
    }
    free(buffer);
}

static const char *const source =
    "kernel void add(global float *a) { size_t i = get_global_id(0); a[i] += 1; }"
    "kernel void spin(global float *a) { size_t i = get_global_id(0); float x = a[i];"
    "  for (int n = 0; n < 3000; n++) x = x * 1.0001f + 0.5f; a[i] = x; }";

static void make(Place *place) {
    static const char *const names[2] = {"add", "spin"};
    const char *text = source;
    cl_int status;
    cl_program program;
    place->context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    CHECK(status == CL_SUCCESS);
    place->queue = clCreateCommandQueue(place->context, device, 0, &status);
    CHECK(status == CL_SUCCESS);
    program = clCreateProgramWithSource(place->context, 1, &text, NULL, &status);
    CHECK(clBuildProgram(program, 1, &device, "", NULL, NULL) == CL_SUCCESS);
    place->memory = clCreateBuffer(place->context, CL_MEM_READ_WRITE, ITEMS * sizeof(float), NULL, &status);
    for (int of = 0; of < 2; of++) {
        place->kernels[of] = clCreateKernel(program, names[of], &status);
        CHECK(clSetKernelArg(place->kernels[of], 0, sizeof place->memory, &place->memory) == CL_SUCCESS);
    }
    clReleaseProgram(program);
    OK(cuptiGetContextId((CUcontext)(void *)place->context, &place->id));
}

static void launch(Place *place, int kernel, int times) {
    size_t items = ITEMS;
    while (times-- > 0)
        CHECK(clEnqueueNDRangeKernel(place->queue, place->kernels[kernel], 1, NULL, &items, NULL, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clFinish(place->queue) == CL_SUCCESS);
}

static void order_and_fields(void) {
    static float host[ITEMS];
    static const CUpti_ActivityKind kinds[] = {
        CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_FUNCTION, CUPTI_ACTIVITY_KIND_CONTEXT, CUPTI_ACTIVITY_KIND_STREAM};
    const char *name;
    size_t of, other;
    for (of = 0; of < sizeof kinds / sizeof *kinds; of++) OK(cuptiActivityEnable(kinds[of]));
    for (queue_cbid = CUPTI_CBID_GPUTRAIL; queue_cbid < CUPTI_CBID_GPUTRAIL + 1024; queue_cbid++)
        if (cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, queue_cbid, &name) == CUPTI_SUCCESS &&
            strcmp(name, "clCreateCommandQueue") == 0) break;
    OK(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 7));
    for (of = 0; of < 2; of++) make(&places[of]);
    launch(&places[0], 0, LAUNCHES);
    for (of = 0; of < COPIES; of++)
        CHECK(clEnqueueReadBuffer(places[0].queue, places[0].memory, CL_FALSE, 0, sizeof host, host, 0, NULL, NULL) == CL_SUCCESS);
    OK(cuptiActivityFlushAll(0));
    CHECK(kernels == LAUNCHES && copies == COPIES && early == 0 && wrong == 0);
    CHECK(streams == 2 && created == 2 && of_kind[CUPTI_ACTIVITY_KIND_CONTEXT] == 2);
    for (of = 0; of < 2; of++) CHECK(stream_calls[of] == creating[of] && creating[of] != 0);
    CHECK(function_count == 4);
    for (of = 0; of < (size_t)function_count; of++) {
        CHECK(functions[of].functionIndex != 0);
        for (other = 0; other < of; other++)
            CHECK(functions[of].moduleId != functions[other].moduleId ||
                  functions[of].functionIndex != functions[other].functionIndex);
    }
}

/* The samples of kernels, by place. */
static void count_samples(void) {
    OK(cuptiActivityFlushAll(0));
    counts_of[0] = counts_of[1] = 0;
    for (int of = 0; of < sample_count; of++) {
        const uint32_t context = of_context[sampled[of] % CALLS];
        for (int place = 0; place < 2; place++) counts_of[place] += context == places[place].id;
    }
    sample_count = 0;
}

static void contexts(void) {
    CUcontext first = (CUcontext)(void *)places[0].context;
    CUptiResult status = cuptiActivityEnable(CUPTI_ACTIVITY_KIND_PC_SAMPLING);
    if (status == CUPTI_ERROR_NOT_SUPPORTED) {
        printf("not sampled\n");
        return;
    }
    CHECK(status == CUPTI_SUCCESS);
    /* A context's setting supersedes the global one. */
    OK(cuptiActivityDisableContext(first, CUPTI_ACTIVITY_KIND_PC_SAMPLING));
    launch(&places[0], 1, 3);
    launch(&places[1], 1, 3);
    count_samples();
    CHECK(counts_of[0] == 0 && counts_of[1] > 0);
    OK(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_PC_SAMPLING));
    OK(cuptiActivityEnableContext(first, CUPTI_ACTIVITY_KIND_PC_SAMPLING));
    launch(&places[0], 1, 3);
    launch(&places[1], 1, 3);
    count_samples();
    CHECK(counts_of[0] > 0 && counts_of[1] == 0);
    OK(cuptiActivityDisableContext(first, CUPTI_ACTIVITY_KIND_PC_SAMPLING));
}

/* Waits for events of work and of the program, of one of two contexts. */
static void waits(void) {
    size_t items = ITEMS;
    OK(cuptiActivityEnableContext((CUcontext)(void *)places[0].context, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION));
    for (int of = 0; of < 2; of++) {
        cl_event events[2];
        cl_int status;
        CHECK(clEnqueueNDRangeKernel(places[of].queue, places[of].kernels[0], 1, NULL, &items, NULL, 0, NULL, &events[0]) == CL_SUCCESS);
        events[1] = clCreateUserEvent(places[of].context, &status);
        CHECK(status == CL_SUCCESS && clSetUserEventStatus(events[1], CL_COMPLETE) == CL_SUCCESS);
        CHECK(clWaitForEvents(2, events) == CL_SUCCESS && clWaitForEvents(1, &events[1]) == CL_SUCCESS);
        for (int event = 0; event < 2; event++) clReleaseEvent(events[event]);
    }
    OK(cuptiActivityFlushAll(0));
    CHECK(event_waits == 2 && waits_elsewhere == 0);
    OK(cuptiActivityDisableContext((CUcontext)(void *)places[0].context, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION));
}

int main(void) {
    cl_platform_id platform;
    CHECK(cuptiActivityRegisterCallbacks(request, complete) == CUPTI_SUCCESS);
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    order_and_fields();
    contexts();
    waits();
    if (failures == 0) printf("passed\n");
    return failures != 0;
}
