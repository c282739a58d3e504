/* Two threads count events of kernels with CUPTI at the same time, each in a context of its own on the same device, while each
   asks for what there is: all kernels are counted, and each thread has the values of its own. */
#define CL_TARGET_OPENCL_VERSION 120
#include "cupti.h"
#include <CL/cl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 2, ROUNDS = 25, ITEMS = 64 };

static int failures;
static cl_device_id device;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void check(const char *what, int line, int holds) {
    if (holds) return;
    pthread_mutex_lock(&lock);
    printf("line %d: does not hold: %s\n", line, what);
    failures++;
    pthread_mutex_unlock(&lock);
}
#define CHECK(what) check(#what, __LINE__, (what) ? 1 : 0)
#define OK(call) CHECK(call == CUPTI_SUCCESS)

struct worker {
    cl_context in;
    cl_command_queue queue;
    cl_kernel kernel;
    cl_mem data;
    pthread_t thread;
};

static void launch(struct worker *worker) {
    size_t items = ITEMS;
    CHECK(clEnqueueNDRangeKernel(worker->queue, worker->kernel, 1, NULL, &items, NULL, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clFinish(worker->queue) == CL_SUCCESS);
}

static void *work(void *data) {
    struct worker *worker = (struct worker *)data;
    CUcontext context = (CUcontext)worker->in;
    CUpti_EventID event = 0;
    CUpti_MetricID metric = 0;
    CUpti_MetricValue computed;
    uint32_t number = 0;
    int round;
    OK(cuptiGetDeviceId(context, &number));
    for (round = 0; round < ROUNDS; round++) {
        CUpti_EventGroup group = NULL;
        CUpti_EventGroupSets *sets = NULL;
        uint64_t value = 0;
        size_t size = sizeof value;
        OK(cuptiEventGetIdFromName((CUdevice)number, "TASK_CLOCK", &event));
        OK(cuptiMetricGetIdFromName((CUdevice)number, "CPUS_UTILIZED", &metric));
        OK(cuptiMetricCreateEventGroupSets(context, sizeof metric, &metric, &sets));
        OK(cuptiEventGroupSetsDestroy(sets));
        OK(cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_KERNEL));
        OK(cuptiEventGroupCreate(context, &group, 0));
        OK(cuptiEventGroupAddEvent(group, event));
        OK(cuptiEventGroupEnable(group));
        launch(worker);
        OK(cuptiEventGroupReadEvent(group, CUPTI_EVENT_READ_FLAG_NONE, event, &size, &value));
        CHECK(value > 0);
        if (value < CUPTI_EVENT_INVALID)
            OK(cuptiMetricGetValue(
                (CUdevice)number, metric, sizeof event, &event, sizeof value, &value, 1000, &computed));
        OK(cuptiEventGroupDisable(group));
        OK(cuptiEventGroupDestroy(group));
    }
    return NULL;
}

int main(void) {
    static const char *text = "kernel void work(global int *data) { data[get_global_id(0)] += 1; }";
    struct worker workers[THREADS];
    cl_platform_id platform;
    cl_int error;
    int of;
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    for (of = 0; of < THREADS; of++) {
        struct worker *worker = &workers[of];
        cl_program program;
        worker->in = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
        worker->queue = clCreateCommandQueue(worker->in, device, 0, &error);
        program = clCreateProgramWithSource(worker->in, 1, &text, NULL, &error);
        CHECK(clBuildProgram(program, 1, &device, "", NULL, NULL) == CL_SUCCESS);
        worker->kernel = clCreateKernel(program, "work", &error);
        worker->data = clCreateBuffer(worker->in, CL_MEM_READ_WRITE, ITEMS * 4, NULL, &error);
        CHECK(clSetKernelArg(worker->kernel, 0, sizeof worker->data, &worker->data) == CL_SUCCESS);
        launch(worker);
    }
    for (of = 0; of < THREADS; of++) CHECK(pthread_create(&workers[of].thread, NULL, work, &workers[of]) == 0);
    for (of = 0; of < THREADS; of++) pthread_join(workers[of].thread, NULL);
    if (failures == 0) printf("passed\n");
    return failures != 0;
}
