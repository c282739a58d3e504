/* The ends of a buffer (`destroy`) and of the library (`finalise`): the callbacks that they cause can use everything. `late`
   tries to observe OpenCL after its first call. `twice` finalises between two halves of its work, beside a tool. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include "gputrail.h"
#include "checks.h"
#include <stdio.h>
#include <string.h>

enum { COPIES = 10 };

static gputrail_timeline timeline;
static int works;

static void tell(const gputrail_work *work, void *user_data) {
    (void)user_data;
    CHECK(work->record != NULL && work->start != 0 && work->end >= work->start);
    works++;
}

static void deliver(const gputrail_batch *batch, void *user_data) {
    const gputrail_record_header *record = NULL;
    (void)user_data;
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK) {
        const gputrail_record_completion *work = (const gputrail_record_completion *)record;
        gputrail_record_agent agent;
        gputrail_drops drops;
        gputrail_nanos nanos = 0;
        char name[200];
        if (record->kind != GPUTRAIL_KIND_COMPLETION) continue;
        drops.size = sizeof drops;
        EXPECT(gputrail_clock_error(work->agent, &nanos), GPUTRAIL_OK);
        EXPECT(gputrail_ticks_to_nanos(work->completed, &nanos), GPUTRAIL_OK);
        EXPECT(gputrail_device_time_to_nanos(work->agent, work->end, &nanos), GPUTRAIL_OK);
        EXPECT(gputrail_agent_name(work->agent, name, sizeof name, NULL), GPUTRAIL_OK);
        EXPECT(gputrail_describe_agent(work->agent, &agent), GPUTRAIL_OK);
        EXPECT(gputrail_buffer_dropped_in_total(batch->buffer, &drops), GPUTRAIL_OK);
        CHECK(gputrail_is_initialised() && drops.total == 0);
    }
    EXPECT(gputrail_timeline_add(timeline, batch, tell, NULL), GPUTRAIL_OK);
}

static void copy(void) {
    static char bytes[4096];
    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    cl_context context;
    cl_command_queue queue;
    cl_mem memory;
    int round;
    clGetPlatformIDs(1, &platform, NULL);
    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    queue = clCreateCommandQueue(context, device, 0, &status);
    memory = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof bytes, NULL, &status);
    for (round = 0; round < COPIES; round++)
        clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, sizeof bytes, bytes, 0, NULL, NULL);
    clFinish(queue);
    clReleaseMemObject(memory);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
}

int main(int argc, char **argv) {
    const char *end = argc > 1 ? argv[1] : "finalise";
    gputrail_buffer_options options;
    gputrail_context context;
    gputrail_buffer buffer;
    if (strcmp(end, "late") == 0) {
        cl_uint platforms = 0;
        clGetPlatformIDs(0, NULL, &platforms);
        EXPECT(gputrail_initialise(), GPUTRAIL_OK);
        EXPECT(gputrail_observe_opencl(), GPUTRAIL_TOO_LATE);
        printf("%s\n", failures == 0 ? "passed" : "failed");
        return failures != 0;
    }
    EXPECT(gputrail_initialise(), GPUTRAIL_OK);
    EXPECT(gputrail_observe_opencl(), GPUTRAIL_OK);
    EXPECT(gputrail_timeline_create(&timeline), GPUTRAIL_OK);
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    if (strcmp(end, "twice") != 0) options.format = GPUTRAIL_RECORD_FORMAT_RAW;
    EXPECT(gputrail_buffer_create(&options, deliver, NULL, &buffer), GPUTRAIL_OK);
    EXPECT(gputrail_context_create(&context), GPUTRAIL_OK);
    EXPECT(gputrail_context_trace_to(context, buffer, NULL), GPUTRAIL_OK);
    EXPECT(gputrail_context_start(context), GPUTRAIL_OK);
    copy();
    if (strcmp(end, "destroy") == 0) {
        EXPECT(gputrail_buffer_destroy(buffer), GPUTRAIL_OK);
        EXPECT(gputrail_buffer_flush(buffer), GPUTRAIL_NO_SUCH_BUFFER);
    }
    EXPECT(gputrail_finalise(), GPUTRAIL_OK);
    CHECK(works == COPIES);
    EXPECT(gputrail_finalise(), GPUTRAIL_NOT_INITIALISED);
    if (strcmp(end, "twice") == 0) copy();
    printf("%s\n", failures == 0 ? "passed" : "failed");
    return failures != 0;
}
