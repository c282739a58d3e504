/* A program that is linked with gputrail and launches kernels that wait for it: a forced flush and the destruction of a buffer
   tell of them, in joined records and in raw ones. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include "gputrail.h"
#include "checks.h"
#include <string.h>

/* What came since the last look. */
static struct {
    int kernels, completions, timed, flagged;
    gputrail_unfinished reason;
} came;

static void deliver(const gputrail_batch *batch, void *user_data) {
    const gputrail_record_header *record = NULL;
    (void)user_data;
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK) {
        gputrail_work_times times;
        if (record->kind == GPUTRAIL_KIND_KERNEL_DISPATCH) came.kernels++;
        if (record->kind == GPUTRAIL_KIND_COMPLETION) {
            came.completions++;
            came.reason = ((const gputrail_record_completion *)record)->unfinished;
        }
        came.flagged += (record->flags & GPUTRAIL_FLAG_UNFINISHED) != 0;
        if (gputrail_times_of(record, &times) != GPUTRAIL_OK) continue;
        came.reason = times.unfinished;
        came.timed += times.start != 0 && times.end >= times.start && times.completed != 0;
        CHECK(times.enqueued != 0 && (times.start != 0 || times.completed == 0));
    }
}

/* Whether this came: kernels, completions, kernels with their times, records that are flagged as unfinished. */
static int is_came(int kernels, int completions, int timed, int flagged) {
    int is = came.kernels == kernels && came.completions == completions && came.timed == timed && came.flagged == flagged;
    if (!is) printf("came: %d %d %d %d\n", came.kernels, came.completions, came.timed, came.flagged);
    came.kernels = came.completions = came.timed = came.flagged = 0;
    return is;
}

static cl_command_queue queue;
static cl_kernel kernel;
static cl_context context;

/* Launches a kernel that waits. */
static cl_event launch(void) {
    size_t items = 16;
    cl_int status;
    cl_event event = clCreateUserEvent(context, &status);
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 1, &event, NULL) == CL_SUCCESS);
    CHECK(clFlush(queue) == CL_SUCCESS);
    return event;
}

static void complete(cl_event event) {
    CHECK(clSetUserEventStatus(event, CL_COMPLETE) == CL_SUCCESS && clFinish(queue) == CL_SUCCESS);
    clReleaseEvent(event);
}

static void of_format(uint32_t format) {
    static const gputrail_kind kinds[] = {GPUTRAIL_KIND_KERNEL_DISPATCH, GPUTRAIL_KIND_COMPLETION};
    int joined = format == GPUTRAIL_RECORD_FORMAT_JOINED;
    gputrail_buffer_options options;
    gputrail_selection selection;
    gputrail_context observing;
    gputrail_buffer buffer;
    cl_event event;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.format = format;
    memset(&selection, 0, sizeof selection);
    selection.size = sizeof selection;
    selection.kinds = kinds;
    selection.kind_count = joined ? 1 : 2;
    CHECK(gputrail_buffer_create(&options, deliver, NULL, &buffer) == GPUTRAIL_OK);
    CHECK(gputrail_context_create(&observing) == GPUTRAIL_OK);
    CHECK(gputrail_context_trace_to(observing, buffer, &selection) == GPUTRAIL_OK);
    CHECK(gputrail_context_start(observing) == GPUTRAIL_OK);

    event = launch();
    CHECK(gputrail_buffer_flush(buffer) == GPUTRAIL_OK && (joined ? is_came(0, 0, 0, 0) : is_came(1, 0, 0, 0)));
    /* Each time that is asked. */
    CHECK(gputrail_buffer_flush_forced(buffer) == GPUTRAIL_OK && (joined ? is_came(1, 0, 0, 1) : is_came(0, 1, 0, 1)));
    CHECK(gputrail_buffer_flush_forced(buffer) == GPUTRAIL_OK && (joined ? is_came(1, 0, 0, 1) : is_came(0, 1, 0, 1)));
    CHECK(came.reason == GPUTRAIL_UNFINISHED_AT_FLUSH);
    complete(event);
    CHECK(gputrail_buffer_flush(buffer) == GPUTRAIL_OK && (joined ? is_came(1, 0, 1, 0) : is_came(0, 1, 0, 0)));
    CHECK(came.reason == GPUTRAIL_UNFINISHED_NO);

    event = launch();
    CHECK(gputrail_buffer_destroy(buffer) == GPUTRAIL_OK && (joined ? is_came(1, 0, 0, 1) : is_came(1, 0, 0, 0)));
    if (joined) CHECK(came.reason == GPUTRAIL_UNFINISHED_AT_END);
    complete(event);
    CHECK(gputrail_context_destroy(observing) == GPUTRAIL_OK && is_came(0, 0, 0, 0));
}

int main(void) {
    static const char *source = "kernel void add(global int *a) { a[get_global_id(0)] += 1; }";
    cl_platform_id platform;
    cl_device_id device;
    cl_program program;
    cl_mem memory;
    cl_int status;
    CHECK(gputrail_initialise() == GPUTRAIL_OK && gputrail_observe_opencl() == GPUTRAIL_OK);
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    queue = clCreateCommandQueue(context, device, 0, &status);
    program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    CHECK(clBuildProgram(program, 1, &device, NULL, NULL, NULL) == CL_SUCCESS);
    kernel = clCreateKernel(program, "add", &status);
    memory = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &status);
    CHECK(clSetKernelArg(kernel, 0, sizeof memory, &memory) == CL_SUCCESS);
    of_format(GPUTRAIL_RECORD_FORMAT_JOINED);
    of_format(GPUTRAIL_RECORD_FORMAT_RAW);
    CHECK(gputrail_finalise() == GPUTRAIL_OK);
    clReleaseMemObject(memory);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    printf("%s\n", failures ? "failed" : "passed");
    return failures > 0;
}
