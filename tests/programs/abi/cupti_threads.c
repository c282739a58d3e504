/* Two threads call CUPTI at the same time, each with a queue of its own, while one more flushes: whatever comes of their calls is a
   status, and each kernel has its record. */
#define CL_TARGET_OPENCL_VERSION 120
#include "cupti.h"
#include <CL/cl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 2, ROUNDS = 100, ITEMS = 64 };

static int failures, kernels, calls, done;
static cl_context in;
static cl_device_id device;
static cl_program program;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void check(const char *what, int line, int holds) {
    if (holds) return;
    pthread_mutex_lock(&lock);
    printf("line %d: does not hold: %s\n", line, what);
    failures++;
    pthread_mutex_unlock(&lock);
}
#define CHECK(what) check(#what, __LINE__, (what) ? 1 : 0)

static void request(uint8_t **buffer, size_t *size, size_t *most) {
    *size = 2048;
    *most = 0;
    *buffer = (uint8_t *)malloc(*size);
}

static void complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *record = NULL;
    size_t dropped;
    (void)context, (void)stream, (void)size;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) kernels++;
    CHECK(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped) == CUPTI_SUCCESS && dropped == 0);
    free(buffer);
}

static void called_back(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *data) {
    (void)user, (void)domain, (void)cbid, (void)data;
    __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
}

static void *work(void *nothing) {
    cl_command_queue queue = clCreateCommandQueue(in, device, 0, NULL);
    cl_kernel kernel = clCreateKernel(program, "triple", NULL);
    cl_mem data = clCreateBuffer(in, CL_MEM_READ_WRITE, 4 * ITEMS, NULL, NULL);
    size_t items = ITEMS;
    int round;
    CHECK(clSetKernelArg(kernel, 0, sizeof data, &data) == CL_SUCCESS);
    for (round = 0; round < ROUNDS; round++) {
        CUpti_SubscriberHandle subscriber;
        uint64_t id;
        uint32_t stream, number;
        CUptiResult status;
        CHECK(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 5) == CUPTI_SUCCESS);
        CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) == CL_SUCCESS);
        CHECK(clFinish(queue) == CL_SUCCESS);
        CHECK(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id) == CUPTI_SUCCESS);
        CHECK(cuptiGetStreamId(NULL, (CUstream)(void *)queue, &stream) == CUPTI_SUCCESS);
        CHECK(cuptiGetContextId((CUcontext)(void *)in, &number) == CUPTI_SUCCESS);
        CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER) == CUPTI_SUCCESS);
        if (round % 8 == 0) {
            status = cuptiSubscribe(&subscriber, called_back, NULL);
            CHECK(status == CUPTI_SUCCESS || status == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
            if (status == CUPTI_SUCCESS) {
                CHECK(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API) == CUPTI_SUCCESS);
                CHECK(clFinish(queue) == CL_SUCCESS);
                CHECK(cuptiUnsubscribe(subscriber) == CUPTI_SUCCESS);
            }
            CHECK(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_DRIVER) == CUPTI_SUCCESS);
        }
    }
    clReleaseMemObject(data);
    clReleaseKernel(kernel);
    clReleaseCommandQueue(queue);
    return nothing;
}

static void *flush(void *nothing) {
    while (!__atomic_load_n(&done, __ATOMIC_SEQ_CST)) CHECK(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
    return nothing;
}

int main(void) {
    const char *source = "kernel void triple(global int *data) { data[get_global_id(0)] *= 3; }";
    pthread_t threads[THREADS], flushing;
    cl_platform_id platform;
    int of;
    CHECK(cuptiActivityRegisterCallbacks(request, complete) == CUPTI_SUCCESS);
    CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS);
    CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MARKER) == CUPTI_SUCCESS);
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    in = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    program = clCreateProgramWithSource(in, 1, &source, NULL, NULL);
    CHECK(clBuildProgram(program, 1, &device, NULL, NULL, NULL) == CL_SUCCESS);
    CHECK(pthread_create(&flushing, NULL, flush, NULL) == 0);
    for (of = 0; of < THREADS; of++) CHECK(pthread_create(&threads[of], NULL, work, NULL) == 0);
    for (of = 0; of < THREADS; of++) CHECK(pthread_join(threads[of], NULL) == 0);
    __atomic_store_n(&done, 1, __ATOMIC_SEQ_CST);
    CHECK(pthread_join(flushing, NULL) == 0);
    CHECK(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
    CHECK(kernels == THREADS * ROUNDS);
    CHECK(calls > 0);
    if (failures == 0) printf("passed\n");
    return failures != 0;
}
