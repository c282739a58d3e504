/* Two threads call ROCProfiler v1 and GPUPerfAPI, of which the program is linked with one, at the same time, each with a queue
   of its own: whatever comes of their calls is a status, and all kernels are counted. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef OF_ROCPROFILER
#include "rocprofiler.h"
#else
#include "GPUPerfAPI.h"
#endif

enum { THREADS = 2, ROUNDS = 40, ITEMS = 64 };

static int failures;
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

struct worker {
    cl_command_queue queue;
    cl_kernel kernel;
    cl_mem data;
};

static void launch(struct worker *worker) {
    size_t items = ITEMS;
    CHECK(clEnqueueNDRangeKernel(worker->queue, worker->kernel, 1, NULL, &items, NULL, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clFinish(worker->queue) == CL_SUCCESS);
}

#ifdef OF_ROCPROFILER

/* What is counted for each kernel, of 2 * ROUNDS of them and 1 more. */
static struct counted {
    rocprofiler_feature_t features[2];
} all[THREADS * ROUNDS];
static rocprofiler_pool_t *pool;
static rocprofiler_feature_t pooled[1];
static int dispatched, completed;

static int next(int *number) {
    int value;
    pthread_mutex_lock(&lock);
    value = (*number)++;
    pthread_mutex_unlock(&lock);
    return value;
}

static void complete(rocprofiler_group_t group, void *arg) {
    const struct counted *of = (const struct counted *)arg;
    /* A kernel that could not be waited for has no values. */
    if (rocprofiler_get_metrics(group.context) == HSA_STATUS_SUCCESS) CHECK(of->features[0].data.result_int64 > 0);
    else CHECK(strstr(rocprofiler_error_string(), " has no value: the dispatch could not be waited for"));
    CHECK(rocprofiler_close(group.context) == HSA_STATUS_SUCCESS);
    next(&completed);
}

static hsa_status_t intercept(const rocprofiler_callback_data_t *data, void *user_data, rocprofiler_group_t *group) {
    struct counted *of = &all[next(&dispatched)];
    rocprofiler_properties_t properties;
    rocprofiler_t *context = NULL;
    (void)user_data;
    memset(of, 0, sizeof *of);
    of->features[0].name = "TASK_CLOCK";
    of->features[1].name = "CPUS_UTILIZED";
    memset(&properties, 0, sizeof properties);
    properties.callback = complete;
    properties.callback_arg = of;
    CHECK(rocprofiler_open(data->agent, of->features, 2, &context, 0, &properties) == HSA_STATUS_SUCCESS);
    return rocprofiler_get_group(context, 0, group);
}

static hsa_status_t see(const rocprofiler_info_data_t info, void *data) {
    *(int *)data += info.metric.name[0] != 0;
    return HSA_STATUS_SUCCESS;
}

static void begin(void) {
    uint32_t count;
    hsa_status_t status = rocprofiler_get_info(NULL, ROCPROFILER_INFO_KIND_METRIC_COUNT, &count);
    if (status == HSA_STATUS_SUCCESS) return;
    printf("%#x %s\n", (unsigned)status, rocprofiler_error_string());
    exit(1);
}

static void *work(void *arg) {
    struct worker *worker = (struct worker *)arg;
    hsa_agent_t agent;
    int round;
    agent.handle = (uint64_t)(size_t)device;
    for (round = 0; round < ROUNDS; round++) {
        rocprofiler_pool_entry_t entry;
        rocprofiler_feature_t features[1];
        rocprofiler_t *context = NULL;
        int seen = 0;
        memset(features, 0, sizeof features);
        features[0].name = "PAGE_FAULTS";
        launch(worker);
        CHECK(rocprofiler_iterate_info(&agent, ROCPROFILER_INFO_KIND_METRIC, see, &seen) == HSA_STATUS_SUCCESS && seen > 10);
        CHECK(rocprofiler_open(agent, features, 1, &context, 0, NULL) == HSA_STATUS_SUCCESS);
        CHECK(rocprofiler_get_data(context, 0) == HSA_STATUS_ERROR);
        CHECK(strstr(rocprofiler_error_string(), "rocprofiler_get_data: ") == rocprofiler_error_string());
        /* Interception counts, so this does not. */
        CHECK(rocprofiler_start(context, 0) == HSA_STATUS_ERROR);
        CHECK(strstr(rocprofiler_error_string(), "rocprofiler_start: ") == rocprofiler_error_string());
        CHECK(rocprofiler_close(context) == HSA_STATUS_SUCCESS);
        CHECK(rocprofiler_pool_fetch(pool, &entry) == HSA_STATUS_SUCCESS);
        CHECK(rocprofiler_pool_flush(pool) == HSA_STATUS_SUCCESS);
        CHECK(rocprofiler_pool_release(&entry) == HSA_STATUS_SUCCESS);
    }
    return NULL;
}

static void before(void) {
    hsa_agent_t agent;
    rocprofiler_pool_properties_t properties;
    agent.handle = (uint64_t)(size_t)device;
    memset(&properties, 0, sizeof properties);
    properties.num_entries = THREADS;
    pooled[0].name = "TASK_CLOCK";
    CHECK(rocprofiler_pool_open(agent, pooled, 1, &pool, 0, &properties) == HSA_STATUS_SUCCESS);
    CHECK(rocprofiler_add_dispatch_callback(intercept, NULL) == HSA_STATUS_SUCCESS);
}

static void after(struct worker *worker) {
    (void)worker;
    /* Kernels whose end has not been told get what there is. */
    CHECK(rocprofiler_remove_queue_callbacks() == HSA_STATUS_SUCCESS);
    CHECK(dispatched == THREADS * ROUNDS && completed == dispatched);
    CHECK(rocprofiler_pool_close(pool) == HSA_STATUS_SUCCESS);
}

#else

static void tell(GPA_Logging_Type type, const char *message) {
    (void)type;
    if (strstr(message, "GPA_Initialize: ")) printf("%s\n", message);
}

static void begin(void) {
    CHECK(GPA_RegisterLoggingCallback(GPA_LOGGING_ERROR, tell) == GPA_STATUS_OK);
    CHECK(GPA_Initialize() == GPA_STATUS_OK);
}

static void before(void) {}

/* The selected context is that of the process: each thread meets what the other one does. */
static void *work(void *arg) {
    struct worker *worker = (struct worker *)arg;
    int round;
    for (round = 0; round < ROUNDS; round++) {
        gpa_uint32 number = 0, session = 0;
        gpa_uint64 value;
        const char *name;
        bool ready;
        GPA_Status statuses[20];
        unsigned of;
        unsigned count = 0;
        statuses[count++] = GPA_OpenContext(worker->queue);
        statuses[count++] = GPA_SelectContext(worker->queue);
        statuses[count++] = GPA_GetNumCounters(&number);
        statuses[count++] = GPA_GetCounterName(0, &name);
        statuses[count++] = GPA_EnableCounterStr("TASK_CLOCK");
        statuses[count++] = GPA_GetEnabledCount(&number);
        statuses[count++] = GPA_GetPassCount(&number);
        statuses[count++] = GPA_BeginSession(&session);
        statuses[count++] = GPA_BeginPass();
        statuses[count++] = GPA_BeginSample((gpa_uint32)round);
        launch(worker);
        statuses[count++] = GPA_EndSample();
        statuses[count++] = GPA_EndPass();
        statuses[count++] = GPA_EndSession();
        statuses[count++] = GPA_IsSessionReady(&ready, session);
        statuses[count++] = GPA_GetSampleUInt64(session, (gpa_uint32)round, 0, &value);
        statuses[count++] = GPA_DisableAllCounters();
        statuses[count++] = GPA_CloseContext();
        for (of = 0; of < count; of++) CHECK(strstr(GPA_GetStatusAsStr(statuses[of]), "GPA_STATUS_") != NULL);
    }
    return NULL;
}

/* It works as ever afterwards. */
static void after(struct worker *worker) {
    gpa_uint32 session = 0, clock = 0;
    gpa_uint64 value = 0;
    CHECK(GPA_Destroy() == GPA_STATUS_OK);
    CHECK(GPA_Initialize() == GPA_STATUS_OK);
    CHECK(GPA_OpenContext(worker->queue) == GPA_STATUS_OK);
    CHECK(GPA_EnableCounterStr("TASK_CLOCK") == GPA_STATUS_OK);
    CHECK(GPA_GetCounterIndex("TASK_CLOCK", &clock) == GPA_STATUS_OK);
    CHECK(GPA_BeginSession(&session) == GPA_STATUS_OK && GPA_BeginPass() == GPA_STATUS_OK);
    CHECK(GPA_BeginSample(1) == GPA_STATUS_OK);
    launch(worker);
    CHECK(GPA_EndSample() == GPA_STATUS_OK && GPA_EndPass() == GPA_STATUS_OK && GPA_EndSession() == GPA_STATUS_OK);
    CHECK(GPA_GetSampleUInt64(session, 1, clock, &value) == GPA_STATUS_OK && value > 0);
    CHECK(GPA_CloseContext() == GPA_STATUS_OK && GPA_Destroy() == GPA_STATUS_OK);
}

#endif

int main(void) {
    static const char *source = "kernel void triple(global float *data) { data[get_global_id(0)] *= 3.0f; }\n";
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    cl_platform_id platform;
    int of;
    begin();
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    in = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    program = clCreateProgramWithSource(in, 1, &source, NULL, NULL);
    CHECK(clBuildProgram(program, 1, &device, NULL, NULL, NULL) == CL_SUCCESS);
    before();
    for (of = 0; of < THREADS; of++) {
        workers[of].queue = clCreateCommandQueue(in, device, 0, NULL);
        workers[of].kernel = clCreateKernel(program, "triple", NULL);
        workers[of].data = clCreateBuffer(in, CL_MEM_READ_WRITE, ITEMS * sizeof(float), NULL, NULL);
        clSetKernelArg(workers[of].kernel, 0, sizeof workers[of].data, &workers[of].data);
    }
    for (of = 0; of < THREADS; of++) CHECK(pthread_create(&threads[of], NULL, work, &workers[of]) == 0);
    for (of = 0; of < THREADS; of++) CHECK(pthread_join(threads[of], NULL) == 0);
    after(&workers[0]);
    for (of = 0; of < THREADS; of++) {
        clReleaseMemObject(workers[of].data);
        clReleaseKernel(workers[of].kernel);
        clReleaseCommandQueue(workers[of].queue);
    }
    clReleaseProgram(program);
    clReleaseContext(in);
    printf("%s\n", failures ? "failed" : "passed");
    return failures > 0;
}
