/* What tools that exist do first: NVIDIA's callback ids, devices before a context, the clock that is documented; and the code that the
   document prints. cupti.h comes before cuda.h, and nothing includes <string.h>. */
#include <cupti.h>
#include <cuda.h>
#include <generated_nvtx_meta.h>
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ITEMS = 1024, BYTES = 4 * ITEMS, KERNELS = 5 };

static int failures;

static void check(const char *what, int line, int holds) {
    if (holds) return;
    printf("line %d: does not hold: %s\n", line, what);
    failures++;
}
#define CHECK(what) check(#what, __LINE__, (what) ? 1 : 0)
#define OK(call) CHECK((call) == CUPTI_SUCCESS)

static cl_context context;
static cl_command_queue queue;
static cl_kernel kernel;
static cl_mem memory;
static int values[ITEMS];

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

/* The callbacks that were told, by domain and id. */
static int enters[3][1024], exits[3][1024];

/* As the document has it, section 1.4.1. */
static void my_callback(void *userdata, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *cbdata) {
    const CUpti_CallbackData *cbInfo = (const CUpti_CallbackData *)cbdata;
    (void)userdata;
    if (domain == CUPTI_CB_DOMAIN_NVTX && cbid == NVTX_CBID_CORE_NameOsThreadA) {
        const CUpti_NvtxData *nvtxInfo = (const CUpti_NvtxData *)cbdata;
        const nvtxNameOsThreadA_params *params = (const nvtxNameOsThreadA_params *)nvtxInfo->functionParams;
        CHECK(params->name != NULL);
    }
    if (domain != CUPTI_CB_DOMAIN_DRIVER_API && domain != CUPTI_CB_DOMAIN_RUNTIME_API) return;
    if (cbid >= 1024) return;
    if (cbInfo->callbackSite == CUPTI_API_ENTER) enters[domain][cbid]++;
    else exits[domain][cbid]++;
    if ((domain == CUPTI_CB_DOMAIN_RUNTIME_API) && (cbid == CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020)) {
        if (cbInfo->callbackSite == CUPTI_API_ENTER) {
            cudaMemcpy_v3020_params *funcParams = (cudaMemcpy_v3020_params *)(cbInfo->functionParams);
            size_t count = funcParams->count;
            enum cudaMemcpyKind kind = funcParams->kind;
            CHECK(count == BYTES && (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToHost));
            CHECK((kind == cudaMemcpyHostToDevice ? funcParams->dst : (void *)(size_t)funcParams->src) == (void *)memory);
            CHECK(strcmp(cbInfo->functionName, "cudaMemcpy") == 0);
        }
    }
    if (domain == CUPTI_CB_DOMAIN_RUNTIME_API && cbid == CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020) {
        const cudaMalloc_v3020_params *params = (const cudaMalloc_v3020_params *)cbInfo->functionParams;
        CHECK(params->size == BYTES && params->devPtr != NULL);
        if (cbInfo->callbackSite == CUPTI_API_EXIT) CHECK(*params->devPtr != NULL);
    }
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API && cbid == CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async) {
        const cuMemsetD8Async_params *params = (const cuMemsetD8Async_params *)cbInfo->functionParams;
        CHECK(params->N == BYTES && params->uc == 7 && params->hStream == (CUstream)(void *)queue);
    }
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API && cbid == CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize) {
        const cuStreamSynchronize_params *params = (const cuStreamSynchronize_params *)cbInfo->functionParams;
        CHECK(params->hStream == (CUstream)(void *)queue);
    }
}

static int calls[1024], driver_calls;
static uint64_t begun;

static void CUPTIAPI request(uint8_t **buffer, size_t *size, size_t *most) {
    *size = 1 << 16;
    *most = 0;
    *buffer = (uint8_t *)malloc(*size);
}

static void CUPTIAPI complete(CUcontext of, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *record = NULL;
    (void)of, (void)stream, (void)size;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        const CUpti_ActivityAPI *call = (const CUpti_ActivityAPI *)record;
        if (record->kind != CUPTI_ACTIVITY_KIND_RUNTIME && record->kind != CUPTI_ACTIVITY_KIND_DRIVER) continue;
        CHECK(call->start >= begun && call->end >= call->start && call->end <= now());
        if (record->kind == CUPTI_ACTIVITY_KIND_RUNTIME) {
            CHECK(call->cbid < 1024 && call->returnValue == 0);
            if (call->cbid < 1024) calls[call->cbid]++;
        } else driver_calls++;
    }
    free(buffer);
}

static void create(void) {
    const char *source = "kernel void triple(global int *data) { data[get_global_id(0)] *= 3; }";
    cl_platform_id platform;
    cl_device_id device;
    cl_program program;
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    queue = clCreateCommandQueue(context, device, 0, NULL);
    program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
    CHECK(clBuildProgram(program, 1, &device, NULL, NULL, NULL) == CL_SUCCESS);
    kernel = clCreateKernel(program, "triple", NULL);
    memory = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, NULL);
    CHECK(clSetKernelArg(kernel, 0, sizeof memory, &memory) == CL_SUCCESS);
}

static void work(void) {
    size_t items = ITEMS, group = 64;
    unsigned char pattern = 7;
    int of;
    CHECK(clEnqueueWriteBuffer(queue, memory, CL_TRUE, 0, BYTES, values, 0, NULL, NULL) == CL_SUCCESS);
    for (of = 0; of < KERNELS; of++)
        CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &group, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clEnqueueFillBuffer(queue, memory, &pattern, 1, 0, BYTES, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clEnqueueReadBuffer(queue, memory, CL_FALSE, 0, BYTES, values, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clFinish(queue) == CL_SUCCESS);
    CHECK(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, BYTES, values, 0, NULL, NULL) == CL_SUCCESS);
}

/* Devices are there before the program makes a context. */
static void devices(void) {
    CUpti_ActivityUnifiedMemoryCounterConfig config = {CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE,
                                                       CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD, 0, 1};
    uint32_t domains = 0;
    int support = 0;
    OK(cuptiDeviceGetNumEventDomains(0, &domains));
    CHECK(domains > 0);
    OK(cuptiDeviceSupported(0, &support));
    OK(cuptiActivityConfigureUnifiedMemoryCounter(&config, 1));
}

/* Times are of the clock that NVIDIA documents. */
static void times(void) {
    uint64_t before = now(), time = 0, after;
    OK(cuptiGetTimestamp(&time));
    after = now();
    /* The distance of clocks is measured once, within a microsecond or two; machines that are busy may take longer. */
    CHECK(time + 1000000 >= before && time <= after + 1000000);
}

int main(void) {
    CUpti_SubscriberHandle subscriber;
    enum { RUNTIME = CUPTI_CB_DOMAIN_RUNTIME_API, DRIVER = CUPTI_CB_DOMAIN_DRIVER_API };
    begun = now() - 1000000;
    CHECK(strlen("<string.h>") == 10);
    devices();
    times();
    OK(cuptiSubscribe(&subscriber, (CUpti_CallbackFunc)my_callback, NULL));
    OK(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel));
    OK(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000));
    /* What never happens is accepted. */
    OK(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_SIZE - 1));
    OK(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunch_v3020));
    OK(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_NVTX, NVTX_CBID_CORE_NameOsThreadA));
    OK(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_STATE));
    create();
    work();
    CHECK(enters[DRIVER][CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel] == KERNELS);
    CHECK(enters[RUNTIME][CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000] == KERNELS);
    CHECK(exits[RUNTIME][CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000] == KERNELS);
    /* Nothing else was enabled. */
    CHECK(enters[DRIVER][CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize] == 0);
    OK(cuptiEnableCallback(0, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000));
    work();
    CHECK(enters[DRIVER][CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel] == 2 * KERNELS);
    CHECK(enters[RUNTIME][CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000] == KERNELS);

    /* Everything, and records. */
    OK(cuptiEnableAllDomains(1, subscriber));
    OK(cuptiActivityRegisterCallbacks(request, complete));
    OK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
    create();
    work();
    CHECK(exits[RUNTIME][CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020] == 1);
    /* Copies that wait for their end, and one that does not. */
    CHECK(exits[RUNTIME][CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020] == 2);
    CHECK(exits[RUNTIME][CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020] == 1);
    CHECK(exits[DRIVER][CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2] == 1);
    CHECK(exits[DRIVER][CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2] == 1);
    CHECK(exits[DRIVER][CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2] == 1);
    CHECK(exits[DRIVER][CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async] == 1);
    CHECK(exits[DRIVER][CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize] == 1);
    CHECK(exits[DRIVER][CUPTI_DRIVER_TRACE_CBID_cuModuleGetFunction] == 1);
    CHECK(exits[DRIVER][CUPTI_DRIVER_TRACE_CBID_cuCtxCreate_v2] == 1);
    OK(cuptiActivityFlushAll(0));
    CHECK(calls[CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000] == KERNELS && driver_calls == 0);
    CHECK(calls[CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020] == 2);
    CHECK(calls[CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020] == 1);
    CHECK(calls[CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020] == 1);
    if (failures == 0) printf("passed\n");
    return failures != 0;
}
