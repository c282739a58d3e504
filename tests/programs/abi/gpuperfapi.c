/* Calls every function of GPUPerfAPI, and provokes every status that its guide documents, as far as it can happen here. It is
   linked with the library. Compiled as C and as C++. */
#define CL_TARGET_OPENCL_VERSION 120
#include "../checks.h"
#include "GPUPerfAPI.h"
#include "GPUPerfAPIFunctionTypes.h"
#include "gputrail.h"
#include <CL/cl.h>
#include <stdio.h>
#include <string.h>

static int errors, messages, traces;

static void expect(const char *what, GPA_Status got, GPA_Status wanted) {
    if (got == wanted) return;
    printf("%s: %s, expected %s\n", what, GPA_GetStatusAsStr(got), GPA_GetStatusAsStr(wanted));
    failures++;
}
#define EXPECT(call, wanted) expect(#call, call, GPA_STATUS_##wanted)

static char last_error[400];
static void log_message(GPA_Logging_Type type, const char *message) {
    CHECK(message[0] && !strchr(message, '\n'));
    if (type == GPA_LOGGING_ERROR) {
        errors++;
        snprintf(last_error, sizeof last_error, "%s", message);
    }
    messages += type == GPA_LOGGING_MESSAGE;
    traces += type == GPA_LOGGING_TRACE;
}

static cl_context context;
static cl_command_queue queue, other;
static cl_kernel kernel;

static void launch(int times) {
    size_t items = 256;
    while (times--) CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) == CL_SUCCESS);
}

static void logging(void) {
    EXPECT(GPA_RegisterLoggingCallback(GPA_LOGGING_ALL, NULL), ERROR_NULL_POINTER);
    EXPECT(GPA_RegisterLoggingCallback(GPA_LOGGING_ALL, log_message), OK);
    CHECK(messages == 1 && errors == 0);
    EXPECT(GPA_CloseContext(), ERROR_COUNTERS_NOT_OPEN);
    CHECK(errors == 1 && traces == 1 && strstr(last_error, "GPA_CloseContext: ") == last_error);
    EXPECT(GPA_RegisterLoggingCallback(GPA_LOGGING_MESSAGE, log_message), OK);
    EXPECT(GPA_CloseContext(), ERROR_COUNTERS_NOT_OPEN);
    CHECK(errors == 1 && messages == 2);
    EXPECT(GPA_RegisterLoggingCallback(GPA_LOGGING_NONE, NULL), OK);
    EXPECT(GPA_CloseContext(), ERROR_COUNTERS_NOT_OPEN);
    CHECK(errors == 1 && messages == 2);
    EXPECT(GPA_RegisterLoggingCallback(GPA_LOGGING_ERROR, log_message), OK);
}

/* The names that AMD's headers have beside those of the guide. */
static void names(void) {
    CHECK(GPA_TYPE__LAST == GPA_TYPE_INT64 + 1 && GPA_USAGE_TYPE__LAST == GPA_USAGE_TYPE_KILOBYTES + 1);
    CHECK(GPA_STATUS_ERROR_DRIVER_NOT_SUPPORTED == GPA_STATUS_ERROR_HARDWARE_NOT_SUPPORTED + 1);
    CHECK(GPA_STATUS_INTERNAL == 256 && GPA_STATUS_OK_HANDLED == GPA_STATUS_INTERNAL);
    CHECK((GPA_LOGGING_DEBUG_ERROR | GPA_LOGGING_DEBUG_MESSAGE | GPA_LOGGING_DEBUG_TRACE | GPA_LOGGING_DEBUG_COUNTERDEFS) == 0xF00);
    CHECK(GPA_LOG_ERROR_AND_MESSAGE == GPA_LOGGING_ERROR_AND_MESSAGE && GPA_LOGGING_DEBUG_ALL == 0xFF00);
    CHECK(GPA_UINT32_MAX == 0xffffffffu && GPA_UINT64_MAX == ~(gpa_uint64)0);
}

static void texts(void) {
    const char *text = NULL;
    CHECK(strcmp(GPA_GetStatusAsStr((GPA_Status)77), "Unknown Error") == 0);
    CHECK(strstr(GPA_GetStatusAsStr(GPA_STATUS_ERROR_FAILED), "FAILED"));
    EXPECT(GPA_GetDataTypeAsStr(GPA_TYPE_UINT64, &text), OK);
    CHECK(text && strcmp(text, "gpa_uint64") == 0);
    EXPECT(GPA_GetDataTypeAsStr((GPA_Type)77, &text), ERROR_NOT_FOUND);
    EXPECT(GPA_GetDataTypeAsStr(GPA_TYPE_UINT64, NULL), ERROR_NULL_POINTER);
    EXPECT(GPA_GetUsageTypeAsStr(GPA_USAGE_TYPE_PERCENTAGE, &text), OK);
    CHECK(text && strcmp(text, "percentage") == 0);
    EXPECT(GPA_GetUsageTypeAsStr((GPA_Usage_Type)77, &text), ERROR_NOT_FOUND);
    EXPECT(GPA_GetUsageTypeAsStr(GPA_USAGE_TYPE_RATIO, NULL), ERROR_NULL_POINTER);
}

/* Every function that needs counters says so when they are not open. */
static void nothing_open(void) {
    const char *text;
    gpa_uint32 number;
    gpa_uint64 whole;
    gpa_float32 single;
    gpa_float64 real;
    GPA_Type type;
    GPA_Usage_Type usage;
    bool is;
    EXPECT(GPA_CloseContext(), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_GetNumCounters(&number), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_GetCounterName(0, &text), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_GetCounterIndex("TASK_CLOCK", &number), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_GetCounterDescription(0, &text), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_GetCounterDataType(0, &type), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_GetCounterUsageType(0, &usage), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_GetDeviceID(&number), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_GetDeviceDesc(&text), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_EnableCounter(0), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_DisableCounter(0), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_EnableCounterStr("TASK_CLOCK"), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_DisableCounterStr("TASK_CLOCK"), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_EnableAllCounters(), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_DisableAllCounters(), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_GetEnabledCount(&number), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_GetEnabledIndex(0, &number), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_IsCounterEnabled(0), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_GetPassCount(&number), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_BeginSession(&number), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_EndSession(), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_BeginPass(), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_EndPass(), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_BeginSample(0), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_EndSample(), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_GetSampleCount(1, &number), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_IsSessionReady(&is, 1), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_IsSampleReady(&is, 1, 0), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_GetSampleUInt32(1, 0, 0, &number), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_GetSampleUInt64(1, 0, 0, &whole), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_GetSampleFloat32(1, 0, 0, &single), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_GetSampleFloat64(1, 0, 0, &real), ERROR_COUNTERS_NOT_OPEN);
}

static void null_pointers(void) {
    EXPECT(GPA_OpenContext(NULL), ERROR_NULL_POINTER);
    EXPECT(GPA_SelectContext(NULL), ERROR_NULL_POINTER);
    EXPECT(GPA_GetNumCounters(NULL), ERROR_NULL_POINTER);
    EXPECT(GPA_GetCounterName(0, NULL), ERROR_NULL_POINTER);
    EXPECT(GPA_GetCounterIndex(NULL, NULL), ERROR_NULL_POINTER);
    EXPECT(GPA_GetCounterIndex("TASK_CLOCK", NULL), ERROR_NULL_POINTER);
    EXPECT(GPA_GetCounterDescription(0, NULL), ERROR_NULL_POINTER);
    EXPECT(GPA_GetCounterDataType(0, NULL), ERROR_NULL_POINTER);
    EXPECT(GPA_GetCounterUsageType(0, NULL), ERROR_NULL_POINTER);
    EXPECT(GPA_GetDeviceID(NULL), ERROR_NULL_POINTER);
    EXPECT(GPA_GetDeviceDesc(NULL), ERROR_NULL_POINTER);
    EXPECT(GPA_EnableCounterStr(NULL), ERROR_NULL_POINTER);
    EXPECT(GPA_DisableCounterStr(NULL), ERROR_NULL_POINTER);
    EXPECT(GPA_GetEnabledCount(NULL), ERROR_NULL_POINTER);
    EXPECT(GPA_GetEnabledIndex(0, NULL), ERROR_NULL_POINTER);
    EXPECT(GPA_GetPassCount(NULL), ERROR_NULL_POINTER);
    EXPECT(GPA_BeginSession(NULL), ERROR_NULL_POINTER);
    EXPECT(GPA_GetSampleCount(1, NULL), ERROR_NULL_POINTER);
    EXPECT(GPA_IsSessionReady(NULL, 1), ERROR_NULL_POINTER);
    EXPECT(GPA_IsSampleReady(NULL, 1, 0), ERROR_NULL_POINTER);
    EXPECT(GPA_GetSampleUInt32(1, 0, 0, NULL), ERROR_NULL_POINTER);
    EXPECT(GPA_GetSampleUInt64(1, 0, 0, NULL), ERROR_NULL_POINTER);
    EXPECT(GPA_GetSampleFloat32(1, 0, 0, NULL), ERROR_NULL_POINTER);
    EXPECT(GPA_GetSampleFloat64(1, 0, 0, NULL), ERROR_NULL_POINTER);
}

static gpa_uint32 clock_of, used_of;

static void counters(void) {
    const char *text = NULL;
    gpa_uint32 count = 0, number = 0, enabled = 0;
    GPA_Type type = GPA_TYPE_INT32;
    GPA_Usage_Type usage = GPA_USAGE_TYPE_RATIO;
    EXPECT(GPA_GetNumCounters(&count), OK);
    CHECK(count > 3);
    EXPECT(GPA_GetCounterIndex("task_clock", &clock_of), OK);
    EXPECT(GPA_GetCounterIndex("CPUS_UTILIZED", &used_of), OK);
    EXPECT(GPA_GetCounterIndex("TASK_CLOK", &number), ERROR_NOT_FOUND);
    CHECK(strstr(last_error, "TASK_CLOCK"));
    EXPECT(GPA_GetCounterName(clock_of, &text), OK);
    CHECK(text && strcmp(text, "TASK_CLOCK") == 0);
    EXPECT(GPA_GetCounterName(count, &text), ERROR_NOT_FOUND);
    EXPECT(GPA_GetCounterDescription(clock_of, &text), OK);
    CHECK(text && text[0]);
    EXPECT(GPA_GetCounterDescription(count, &text), ERROR_INDEX_OUT_OF_RANGE);
    EXPECT(GPA_GetCounterDataType(clock_of, &type), OK);
    CHECK(type == GPA_TYPE_UINT64);
    EXPECT(GPA_GetCounterDataType(used_of, &type), OK);
    CHECK(type == GPA_TYPE_FLOAT64);
    EXPECT(GPA_GetCounterDataType(count, &type), ERROR_INDEX_OUT_OF_RANGE);
    EXPECT(GPA_GetCounterUsageType(clock_of, &usage), OK);
    CHECK(usage <= GPA_USAGE_TYPE_KILOBYTES);
    EXPECT(GPA_GetCounterUsageType(count, &usage), ERROR_INDEX_OUT_OF_RANGE);
    EXPECT(GPA_GetDeviceDesc(&text), OK);
    CHECK(text && text[0]);
    /* A processor is not on the PCI bus. */
    EXPECT(GPA_GetDeviceID(&number), ERROR_NOT_FOUND);

    EXPECT(GPA_EnableCounter(count), ERROR_INDEX_OUT_OF_RANGE);
    EXPECT(GPA_DisableCounter(count), ERROR_INDEX_OUT_OF_RANGE);
    EXPECT(GPA_IsCounterEnabled(count), ERROR_INDEX_OUT_OF_RANGE);
    EXPECT(GPA_EnableAllCounters(), OK);
    EXPECT(GPA_GetEnabledCount(&enabled), OK);
    CHECK(enabled == count);
    EXPECT(GPA_DisableAllCounters(), OK);
    EXPECT(GPA_GetPassCount(&number), OK);
    CHECK(number == 0);
    EXPECT(GPA_BeginSession(&number), ERROR_NO_COUNTERS_ENABLED);
    EXPECT(GPA_DisableCounter(clock_of), ERROR_NOT_ENABLED);
    EXPECT(GPA_DisableCounterStr("TASK_CLOCK"), ERROR_NOT_ENABLED);
    EXPECT(GPA_DisableCounterStr("no such"), ERROR_NOT_FOUND);
    EXPECT(GPA_EnableCounterStr("no such"), ERROR_NOT_FOUND);
    EXPECT(GPA_EnableCounterStr("Task_Clock"), OK);
    EXPECT(GPA_EnableCounterStr("Task_Clock"), ERROR_ALREADY_ENABLED);
    EXPECT(GPA_EnableCounter(clock_of), ERROR_ALREADY_ENABLED);
    EXPECT(GPA_DisableCounterStr("TASK_CLOCK"), OK);
    EXPECT(GPA_EnableCounter(clock_of), OK);
    EXPECT(GPA_DisableCounter(clock_of), OK);
    EXPECT(GPA_IsCounterEnabled(clock_of), ERROR_NOT_FOUND);
    EXPECT(GPA_EnableCounter(clock_of), OK);
    EXPECT(GPA_IsCounterEnabled(clock_of), OK);
    EXPECT(GPA_EnableCounter(used_of), OK);
    EXPECT(GPA_GetEnabledCount(&enabled), OK);
    CHECK(enabled == 2);
    EXPECT(GPA_GetEnabledIndex(0, &number), OK);
    CHECK(number == (clock_of < used_of ? clock_of : used_of));
    EXPECT(GPA_GetEnabledIndex(2, &number), ERROR_INDEX_OUT_OF_RANGE);
}

static void order_of_calls(void) {
    gpa_uint32 session = 0, number = 0;
    gpa_uint64 whole = 0;
    bool is = true;
    EXPECT(GPA_EndSession(), ERROR_SAMPLING_NOT_STARTED);
    EXPECT(GPA_BeginPass(), ERROR_SAMPLING_NOT_STARTED);
    EXPECT(GPA_EndPass(), ERROR_PASS_NOT_STARTED);
    EXPECT(GPA_BeginSample(0), ERROR_SAMPLING_NOT_STARTED);
    EXPECT(GPA_EndSample(), ERROR_SAMPLE_NOT_STARTED);
    EXPECT(GPA_BeginSession(&session), OK);
    CHECK(session == 1);
    EXPECT(GPA_BeginSession(&number), ERROR_SAMPLING_ALREADY_STARTED);
    EXPECT(GPA_CloseContext(), ERROR_SAMPLING_NOT_ENDED);
    EXPECT(GPA_EnableCounter(0), ERROR_CANNOT_CHANGE_COUNTERS_WHEN_SAMPLING);
    EXPECT(GPA_DisableCounter(clock_of), ERROR_CANNOT_CHANGE_COUNTERS_WHEN_SAMPLING);
    EXPECT(GPA_EnableCounterStr("PAGE_FAULTS"), ERROR_CANNOT_CHANGE_COUNTERS_WHEN_SAMPLING);
    EXPECT(GPA_DisableCounterStr("TASK_CLOCK"), ERROR_CANNOT_CHANGE_COUNTERS_WHEN_SAMPLING);
    EXPECT(GPA_EnableAllCounters(), ERROR_CANNOT_CHANGE_COUNTERS_WHEN_SAMPLING);
    EXPECT(GPA_DisableAllCounters(), ERROR_CANNOT_CHANGE_COUNTERS_WHEN_SAMPLING);
    EXPECT(GPA_BeginSample(0), ERROR_PASS_NOT_STARTED);
    EXPECT(GPA_BeginPass(), OK);
    EXPECT(GPA_BeginPass(), ERROR_PASS_ALREADY_STARTED);
    EXPECT(GPA_EndSession(), ERROR_PASS_NOT_ENDED);
    EXPECT(GPA_BeginSample(0), OK);
    EXPECT(GPA_BeginSample(1), ERROR_SAMPLE_ALREADY_STARTED);
    EXPECT(GPA_EndPass(), ERROR_SAMPLE_NOT_ENDED);
    launch(1);
    EXPECT(GPA_EndSample(), OK);
    EXPECT(GPA_BeginSample(0), ERROR_FAILED);
    EXPECT(GPA_EndPass(), OK);
    /* One pass more than needed, with other samples: one is enough for these counters. */
    EXPECT(GPA_BeginPass(), OK);
    EXPECT(GPA_EndPass(), OK);
    EXPECT(GPA_EndSession(), OK);
    EXPECT(GPA_IsSessionReady(&is, 99), ERROR_SESSION_NOT_FOUND);
    EXPECT(GPA_IsSampleReady(&is, 99, 0), ERROR_SESSION_NOT_FOUND);
    EXPECT(GPA_IsSampleReady(&is, 1, 77), ERROR_SAMPLE_NOT_FOUND_IN_ALL_PASSES);
    EXPECT(GPA_GetSampleCount(99, &number), ERROR_SESSION_NOT_FOUND);
    EXPECT(GPA_GetSampleUInt64(99, 0, clock_of, &whole), ERROR_SESSION_NOT_FOUND);
}

static void results(void) {
    gpa_uint32 session = 0, passes = 0, pass, number = 0, last = 0, of;
    gpa_uint64 one = 0, three = 0;
    gpa_float32 single = 0;
    gpa_float64 real = 0;
    bool is = false;
    EXPECT(GPA_GetPassCount(&passes), OK);
    CHECK(passes == 1);
    EXPECT(GPA_BeginSession(&session), OK);
    for (pass = 0; pass < passes; pass++) {
        EXPECT(GPA_BeginPass(), OK);
        EXPECT(GPA_BeginSample(5), OK);
        launch(1);
        EXPECT(GPA_EndSample(), OK);
        EXPECT(GPA_BeginSample(6), OK);
        launch(3);
        EXPECT(GPA_EndSample(), OK);
        EXPECT(GPA_EndPass(), OK);
    }
    EXPECT(GPA_EndSession(), OK);
    clFinish(queue);
    EXPECT(GPA_IsSessionReady(&is, session), OK);
    CHECK(is);
    EXPECT(GPA_IsSampleReady(&is, session, 6), OK);
    CHECK(is);
    EXPECT(GPA_GetSampleCount(session, &number), OK);
    CHECK(number == 2);
    EXPECT(GPA_GetSampleUInt64(session, 5, clock_of, &one), OK);
    EXPECT(GPA_GetSampleUInt64(session, 6, clock_of, &three), OK);
    CHECK(one > 0 && three > 0);
    EXPECT(GPA_GetSampleFloat64(session, 6, used_of, &real), OK);
    CHECK(real > 0);
    EXPECT(GPA_GetSampleUInt64(session, 7, clock_of, &one), ERROR_SAMPLE_NOT_FOUND);
    EXPECT(GPA_GetSampleUInt64(session, 5, used_of, &one), ERROR_COUNTER_NOT_OF_SPECIFIED_TYPE);
    EXPECT(GPA_GetSampleFloat64(session, 5, clock_of, &real), ERROR_COUNTER_NOT_OF_SPECIFIED_TYPE);
    EXPECT(GPA_GetSampleUInt32(session, 5, clock_of, &number), ERROR_COUNTER_NOT_OF_SPECIFIED_TYPE);
    EXPECT(GPA_GetSampleFloat32(session, 5, used_of, &single), ERROR_COUNTER_NOT_OF_SPECIFIED_TYPE);
    for (of = 0; of == clock_of || of == used_of;) of++;
    EXPECT(GPA_GetSampleUInt64(session, 5, of, &one), ERROR_NOT_ENABLED);
    EXPECT(GPA_GetSampleFloat64(session, 5, of, &real), ERROR_NOT_ENABLED);
    EXPECT(GPA_GetSampleUInt32(session, 5, of, &number), ERROR_NOT_ENABLED);
    EXPECT(GPA_GetSampleFloat32(session, 5, of, &single), ERROR_NOT_ENABLED);
    EXPECT(GPA_GetSampleUInt64(session, 5, 9999, &one), ERROR_INDEX_OUT_OF_RANGE);
    EXPECT(GPA_GetSampleFloat64(session, 5, 9999, &real), ERROR_INDEX_OUT_OF_RANGE);
    EXPECT(GPA_GetSampleUInt32(session, 5, 9999, &number), ERROR_INDEX_OUT_OF_RANGE);
    EXPECT(GPA_GetSampleFloat32(session, 5, 9999, &single), ERROR_INDEX_OUT_OF_RANGE);
    EXPECT(GPA_GetSampleFloat64(99, 5, used_of, &real), ERROR_SESSION_NOT_FOUND);
    EXPECT(GPA_GetSampleUInt32(99, 5, clock_of, &number), ERROR_SESSION_NOT_FOUND);
    EXPECT(GPA_GetSampleFloat32(99, 5, clock_of, &single), ERROR_SESSION_NOT_FOUND);

    /* At least the latest four sessions are kept. */
    for (of = 0; of < 10; of++) {
        EXPECT(GPA_BeginSession(&last), OK);
        EXPECT(GPA_BeginPass(), OK);
        EXPECT(GPA_BeginSample(0), OK);
        launch(1);
        EXPECT(GPA_EndSample(), OK);
        EXPECT(GPA_EndPass(), OK);
        EXPECT(GPA_EndSession(), OK);
    }
    EXPECT(GPA_GetSampleUInt64(session, 5, clock_of, &one), ERROR_SESSION_NOT_FOUND);
    for (of = last - 3; of <= last; of++) EXPECT(GPA_GetSampleUInt64(of, 0, clock_of, &one), OK);
}

static void several_contexts(void) {
    gpa_uint32 enabled = 1;
    EXPECT(GPA_OpenContext(queue), ERROR_COUNTERS_ALREADY_OPEN);
    EXPECT(GPA_OpenContext(other), OK);
    EXPECT(GPA_GetEnabledCount(&enabled), OK);
    CHECK(enabled == 0);
    EXPECT(GPA_SelectContext(&enabled), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_SelectContext(queue), OK);
    EXPECT(GPA_GetEnabledCount(&enabled), OK);
    CHECK(enabled == 2);
    EXPECT(GPA_CloseContext(), OK);
    EXPECT(GPA_CloseContext(), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_SelectContext(queue), ERROR_COUNTERS_NOT_OPEN);
    EXPECT(GPA_SelectContext(other), OK);
    EXPECT(GPA_CloseContext(), OK);
    EXPECT(GPA_OpenContext(&enabled), ERROR_HARDWARE_NOT_SUPPORTED);
}

/* A session of a queue of the simulated GPU, which is opened as soon as the queue is known. */
static gpa_uint32 simulated_session, waves_of;
static int has_opened;

/* Passes with other samples than the first one, of counters that need several. */
static void several_passes(void) {
    gpa_uint32 session, passes = 0;
    EXPECT(GPA_EnableAllCounters(), OK);
    EXPECT(GPA_GetPassCount(&passes), OK);
    CHECK(passes > 1);
    EXPECT(GPA_BeginSession(&session), OK);
    EXPECT(GPA_BeginPass(), OK);
    EXPECT(GPA_BeginSample(0), OK);
    EXPECT(GPA_EndSample(), OK);
    EXPECT(GPA_EndPass(), OK);
    EXPECT(GPA_BeginPass(), OK);
    EXPECT(GPA_EndPass(), ERROR_VARIABLE_NUMBER_OF_SAMPLES_IN_PASSES);
    EXPECT(GPA_EndSession(), OK);
    EXPECT(GPA_DisableAllCounters(), OK);
}

static void queue_created(gputrail_callback *callback, void *user_data) {
    const gputrail_record_queue *created = (const gputrail_record_queue *)callback->record;
    (void)user_data;
    if (has_opened || created == NULL) return;
    has_opened = 1;
    EXPECT(GPA_OpenContext((void *)(size_t)created->handle), OK);
    several_passes();
    EXPECT(GPA_EnableCounterStr("sq_waves"), OK);
    EXPECT(GPA_GetCounterIndex("SQ_WAVES", &waves_of), OK);
    EXPECT(GPA_BeginSession(&simulated_session), OK);
    EXPECT(GPA_BeginPass(), OK);
    EXPECT(GPA_BeginSample(0), OK);
}

static void simulated(void) {
    gputrail_simulation_options simulation;
    static const gputrail_operation created = {GPUTRAIL_DOMAIN_RESOURCE, 4};
    gputrail_subscriber subscriber;
    gputrail_context watching;
    gpa_uint64 waves = 0;
    memset(&simulation, 0, sizeof simulation);
    simulation.size = sizeof simulation;
    simulation.seed = 7;
    simulation.steps = 1;
    CHECK(gputrail_context_create(&watching) == GPUTRAIL_OK);
    CHECK(gputrail_subscribe(watching, &created, 1, queue_created, NULL, &subscriber) == GPUTRAIL_OK);
    CHECK(gputrail_context_start(watching) == GPUTRAIL_OK);
    CHECK(gputrail_simulation_run(&simulation, NULL) == GPUTRAIL_OK);
    CHECK(has_opened);
    EXPECT(GPA_EndSample(), OK);
    EXPECT(GPA_EndPass(), OK);
    EXPECT(GPA_EndSession(), OK);
    EXPECT(GPA_GetSampleUInt64(simulated_session, 0, waves_of, &waves), OK);
    CHECK(waves > 0);
    EXPECT(GPA_CloseContext(), OK);
    CHECK(gputrail_context_destroy(watching) == GPUTRAIL_OK);
}

/* A kernel after a user event has no values: nothing waits for it. */
static void after_user_event(void) {
    const cl_event event = clCreateUserEvent(context, NULL);
    gpa_uint32 session, clock;
    gpa_uint64 value;
    EXPECT(GPA_OpenContext(queue), OK);
    EXPECT(GPA_EnableCounterStr("TASK_CLOCK"), OK);
    EXPECT(GPA_GetCounterIndex("TASK_CLOCK", &clock), OK);
    EXPECT(GPA_BeginSession(&session), OK);
    EXPECT(GPA_BeginPass(), OK);
    EXPECT(GPA_BeginSample(0), OK);
    launch(1);
    EXPECT(GPA_EndSample(), OK);
    EXPECT(GPA_EndPass(), OK);
    EXPECT(GPA_EndSession(), OK);
    EXPECT(GPA_GetSampleUInt64(session, 0, clock, &value), ERROR_READING_COUNTER_RESULT);
    EXPECT(GPA_CloseContext(), OK);
    clReleaseEvent(event);
}

/* A metric of a sample without kernels has no value, and the message says why. */
static void without_kernels(void) {
    gpa_uint32 session, metric;
    gpa_float64 value;
    EXPECT(GPA_OpenContext(queue), OK);
    EXPECT(GPA_EnableCounterStr("CPUS_UTILIZED"), OK);
    EXPECT(GPA_GetCounterIndex("CPUS_UTILIZED", &metric), OK);
    EXPECT(GPA_BeginSession(&session), OK);
    EXPECT(GPA_BeginPass(), OK);
    EXPECT(GPA_BeginSample(0), OK);
    EXPECT(GPA_EndSample(), OK);
    EXPECT(GPA_EndPass(), OK);
    EXPECT(GPA_EndSession(), OK);
    EXPECT(GPA_GetSampleFloat64(session, 0, metric, &value), ERROR_READING_COUNTER_RESULT);
    CHECK(strstr(last_error, "the sample had no kernel"));
    EXPECT(GPA_CloseContext(), OK);
}

int main(void) {
    static const char *source = "kernel void triple(global float *data) { data[get_global_id(0)] *= 3.0f; }\n";
    cl_platform_id platform;
    cl_device_id device;
    cl_program program;
    cl_mem data;

    logging();
    names();
    texts();
    nothing_open();
    EXPECT(GPA_OpenContext(&failures), ERROR_HARDWARE_NOT_SUPPORTED);
    EXPECT(GPA_Initialize(), OK);
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    queue = clCreateCommandQueue(context, device, 0, NULL);
    other = clCreateCommandQueue(context, device, 0, NULL);
    program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
    CHECK(clBuildProgram(program, 1, &device, NULL, NULL, NULL) == CL_SUCCESS);
    kernel = clCreateKernel(program, "triple", NULL);
    data = clCreateBuffer(context, CL_MEM_READ_WRITE, 256 * sizeof(float), NULL, NULL);
    clSetKernelArg(kernel, 0, sizeof data, &data);

    EXPECT(GPA_OpenContext(queue), OK);
    null_pointers();
    counters();
    order_of_calls();
    results();
    several_contexts();
    simulated();
    without_kernels();
    after_user_event();

    EXPECT(GPA_OpenContext(queue), OK);
    EXPECT(GPA_Destroy(), OK);
    nothing_open();
    EXPECT(GPA_OpenContext(queue), ERROR_HARDWARE_NOT_SUPPORTED);
    clReleaseMemObject(data);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(other);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    printf("%s\n", failures ? "failed" : "passed");
    return failures > 0;
}
