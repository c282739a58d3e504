/* A program that is linked with gputrail and observes itself: records, callbacks, names, times; and what callbacks
   must not do. Works alone and under `gputrail record`. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include "gputrail.h"
#include "checks.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 20 };

static struct {
    int calls, finishes, dispatches, copies, completions, timed, arguments, named_arguments;
    int supplied, pushed, overheads[8];
    gputrail_kernel_id kernel;
    gputrail_nanos first, last;
    gputrail_status flush, destroy, finalise;
} seen;

static gputrail_operation finish;
static gputrail_buffer buffer;
static gputrail_flight flight;

static void deliver(const gputrail_batch *batch, void *user_data) {
    const gputrail_record_header *record = NULL;
    CHECK(user_data == &seen && batch->buffer.handle != 0);
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK) {
        if (record->kind == GPUTRAIL_KIND_API) {
            const gputrail_record_api *call = (const gputrail_record_api *)record;
            seen.calls++;
            if (call->operation.number == finish.number) seen.finishes++;
        } else if (record->kind == GPUTRAIL_KIND_KERNEL_DISPATCH) {
            const gputrail_record_kernel_dispatch *dispatch = (const gputrail_record_kernel_dispatch *)record;
            seen.dispatches++;
            seen.kernel = dispatch->kernel;
            if (dispatch->work.external == 1000 + dispatch->work.correlation) seen.supplied++;
        } else if (record->kind == GPUTRAIL_KIND_MEMORY_COPY) {
            seen.copies++;
            if (((const gputrail_record_memory_copy *)record)->work.external == 7) seen.pushed++;
        } else if (record->kind == GPUTRAIL_KIND_COMPLETION) {
            const gputrail_record_completion *work = (const gputrail_record_completion *)record;
            gputrail_nanos start = 0, end = 0;
            seen.completions++;
            if (gputrail_device_time_to_nanos(work->agent, work->start, &start) == GPUTRAIL_OK &&
                gputrail_device_time_to_nanos(work->agent, work->end, &end) == GPUTRAIL_OK && start <= end && start > 0)
                seen.timed++;
        } else if (record->kind == GPUTRAIL_KIND_OVERHEAD) {
            const gputrail_record_overhead *overhead = (const gputrail_record_overhead *)record;
            CHECK(overhead->what < 8 && overhead->start <= overhead->end && overhead->thread != 0);
            seen.overheads[overhead->what % 8]++;
        } else if (record->kind == GPUTRAIL_KIND_ARGUMENTS) {
            gputrail_argument argument;
            uint32_t place = 0;
            argument.size = sizeof argument;
            seen.arguments++;
            while (gputrail_record_argument(record, place, &argument) == GPUTRAIL_OK) {
                if (argument.name[0] != 0) seen.named_arguments++;
                place++;
            }
        }
    }
    seen.flush = gputrail_buffer_flush(batch->buffer);
    seen.destroy = gputrail_buffer_destroy(batch->buffer);
    seen.finalise = gputrail_finalise();
}

static struct {
    int enters, exits, kept, queues;
    gputrail_status again, finalise, flush;
    cl_command_queue queue;
    uint64_t context;
} told;

static struct {
    int objects, code, kernels, memories;
    uint64_t memory;
} things;

/* Told of code objects, and of launches. */
static void told_of_things(gputrail_callback *callback, void *user_data) {
    char text[200];
    size_t length;
    CHECK(user_data == &things);
    /* Also where something is about to go. */
    CHECK(gputrail_buffer_flush(buffer) == GPUTRAIL_BUSY && gputrail_buffer_flush_forced(buffer) == GPUTRAIL_BUSY);
    CHECK(gputrail_buffer_flush_synchronized(buffer, 0, 0) == GPUTRAIL_BUSY);
    if (callback->record && callback->record->kind == GPUTRAIL_KIND_CODE_OBJECT) {
        const gputrail_record_code_object *object = (const gputrail_record_code_object *)callback->record;
        gputrail_record_code_object described;
        things.objects++;
        things.code += callback->code && callback->code_bytes > 1000;
        CHECK(gputrail_describe_code_object(object->id, &described) == GPUTRAIL_OK && described.module == object->module);
    }
    if (callback->phase == GPUTRAIL_PHASE_EXIT && strcmp(callback->name, "clCreateBuffer") == 0) {
        gputrail_record_context described;
        things.memories++;
        things.memory = callback->return_value;
        CHECK(callback->return_code == 0 && callback->runtime_correlation == 0);
        CHECK(gputrail_describe_runtime_context(callback->runtime_context, &described) == GPUTRAIL_OK && described.handle == told.context);
    }
    if (callback->phase != GPUTRAIL_PHASE_ENTER || strcmp(callback->name, "clEnqueueNDRangeKernel") != 0) return;
    CHECK(gputrail_kernel_name(callback->kernel, text, sizeof text, NULL) == GPUTRAIL_OK && strcmp(text, "triple") == 0);
    /* global_work_size: a pointer to what follows it. */
    CHECK(gputrail_callback_argument_text(callback, 4, 1, text, sizeof text, &length) == GPUTRAIL_OK);
    CHECK(length == strlen(text) && strstr(text, " -> 1024"));
    CHECK(gputrail_callback_argument_text(callback, 4, 1, text, 3, &length) == GPUTRAIL_TOO_SMALL);
    CHECK(gputrail_callback_argument_text(callback, 99, 1, text, 3, &length) == GPUTRAIL_NOT_FOUND);
    things.kernels++;
}

static void called_back(gputrail_callback *callback, void *user_data) {
    gputrail_argument argument;
    argument.size = sizeof argument;
    CHECK(user_data == &told && strcmp(callback->name, "clFinish") == 0);
    if (callback->phase == GPUTRAIL_PHASE_ENTER) {
        told.enters++;
        CHECK(callback->user_data == 0 && !callback->has_return_code);
        callback->user_data = callback->correlation;
        CHECK(callback->arguments == 1 && gputrail_callback_argument(callback, 0, &argument) == GPUTRAIL_OK);
        if (argument.value == (uint64_t)(size_t)told.queue && strstr(argument.name, "queue")) told.queues++;
        CHECK(gputrail_callback_argument(callback, 1, &argument) == GPUTRAIL_NOT_FOUND);
        told.again = gputrail_callback_argument((const gputrail_callback *)&argument, 0, &argument);
        told.finalise = gputrail_finalise();
        told.flush = gputrail_buffer_flush(buffer);
        argument.size = 3;
        CHECK(gputrail_callback_argument(callback, 0, &argument) == GPUTRAIL_WRONG_SIZE);
        CHECK(gputrail_buffer_destroy(buffer) == GPUTRAIL_BUSY);
        CHECK(gputrail_flight_dump(flight, "dump", NULL) == GPUTRAIL_BUSY && gputrail_flight_stop(flight) == GPUTRAIL_BUSY);
        /* Not told: it is in a callback. */
        clFinish(told.queue);
    } else {
        told.exits++;
        if (callback->user_data == callback->correlation && callback->has_return_code && callback->return_code == 0 &&
            callback->return_value == 0 && callback->runtime_context != 0)
            told.kept++;
    }
}

/* Asked for the external ids of launches. */
static int32_t supply(const gputrail_external_request *request, gputrail_external_id *id, void *user_data) {
    CHECK(user_data == &seen && request->thread == gputrail_thread());
    CHECK(strcmp(request->name, "clEnqueueNDRangeKernel") == 0);
    *id = 1000 + request->correlation;
    return 1;
}

static void work(cl_context *context, cl_command_queue *queue, cl_device_id *device) {
    static const char *source = "kernel void triple(global int *a) { a[get_global_id(0)] *= 3; }";
    cl_platform_id platform;
    cl_program program;
    cl_kernel kernel;
    cl_mem memory;
    size_t items = 1024;
    int round, paused, data[1024] = {0};
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, device, NULL) == CL_SUCCESS);
    *context = clCreateContext(NULL, 1, device, NULL, NULL, NULL);
    *queue = clCreateCommandQueue(*context, *device, 0, NULL);
    told.queue = *queue;
    told.context = (uint64_t)(size_t)*context;
    program = clCreateProgramWithSource(*context, 1, &source, NULL, NULL);
    CHECK(clBuildProgram(program, 1, device, NULL, NULL, NULL) == CL_SUCCESS);
    kernel = clCreateKernel(program, "triple", NULL);
    memory = clCreateBuffer(*context, CL_MEM_READ_WRITE, sizeof data, NULL, NULL);
    CHECK(things.memories == 1 && things.memory == (uint64_t)(size_t)memory);
    clSetKernelArg(kernel, 0, sizeof memory, &memory);
    CHECK(gputrail_name_queue(*queue, "the queue", NULL) == GPUTRAIL_OK);
    CHECK(gputrail_external_name(GPUTRAIL_EXTERNAL_KIND_CUSTOM0, 7, "seven") == GPUTRAIL_OK);
    CHECK(gputrail_external_push(GPUTRAIL_EXTERNAL_KIND_CUSTOM0, 7) == GPUTRAIL_OK);
    CHECK(gputrail_range_push_name("rounds") == GPUTRAIL_OK);
    for (round = 0; round < ROUNDS; round++) {
        clEnqueueWriteBuffer(*queue, memory, CL_FALSE, 0, sizeof data, data, 0, NULL, NULL);
        clEnqueueNDRangeKernel(*queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL);
        CHECK(clFinish(*queue) == CL_SUCCESS);
    }
    CHECK(gputrail_range_pop() == GPUTRAIL_OK);
    CHECK(gputrail_external_pop(GPUTRAIL_EXTERNAL_KIND_CUSTOM0, NULL) == GPUTRAIL_OK);
    /* Only where there is a recording: what comes now is not in it. */
    paused = gputrail_recording_stop() == GPUTRAIL_OK;
    clReleaseMemObject(memory);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    CHECK(gputrail_recording_start() == (paused ? GPUTRAIL_OK : GPUTRAIL_NOT_FOUND));
    CHECK(gputrail_recording_dump() == (paused ? GPUTRAIL_NOT_AVAILABLE : GPUTRAIL_NOT_FOUND));
    CHECK(gputrail_recording_flush() == (paused ? GPUTRAIL_OK : GPUTRAIL_NOT_FOUND));
}

/* A flush that synchronises waits for the work of the queues that it names, and for that of no other. */
static void synchronise(cl_context context, cl_command_queue queue, gputrail_queue_id id) {
    static const int pattern = 7;
    cl_event gate = clCreateUserEvent(context, NULL), filled = NULL;
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, 1 << 20, NULL, NULL);
    gputrail_record_queue described;
    uint64_t dropped = 1;
    int before, round;
    CHECK(gputrail_describe_queue(id, &described) == GPUTRAIL_OK);
    CHECK(gputrail_buffer_flush(buffer) == GPUTRAIL_OK);
    before = seen.completions;
    CHECK(clEnqueueFillBuffer(queue, memory, &pattern, sizeof pattern, 0, 1 << 20, 1, &gate, &filled) == CL_SUCCESS);
    for (round = 0; round < 3; round++)
        CHECK(clEnqueueFillBuffer(queue, memory, &pattern, sizeof pattern, 0, 1 << 20, 1, &filled, NULL) == CL_SUCCESS);
    /* These wait for nothing; the work waits for the program. */
    CHECK(gputrail_buffer_flush_synchronized(buffer, described.context, id + 1000) == GPUTRAIL_INVALID_ARGUMENT);
    CHECK(gputrail_buffer_flush_synchronized(buffer, described.context + 1000, 0) == GPUTRAIL_INVALID_ARGUMENT);
    CHECK(gputrail_buffer_dropped_at(buffer, 0, id + 1000, 0, &dropped) == GPUTRAIL_INVALID_ARGUMENT);
    CHECK(gputrail_buffer_flush(buffer) == GPUTRAIL_OK && seen.completions == before);
    CHECK(clSetUserEventStatus(gate, CL_COMPLETE) == CL_SUCCESS);
    CHECK(gputrail_buffer_flush_synchronized(buffer, described.context, id) == GPUTRAIL_OK);
    CHECK(gputrail_buffer_flush(buffer) == GPUTRAIL_OK && seen.completions >= before + 4);
    CHECK(gputrail_buffer_flush_synchronized(buffer, 0, 0) == GPUTRAIL_OK);
    CHECK(gputrail_buffer_dropped_at(buffer, 0, 0, 0, &dropped) == GPUTRAIL_OK && dropped == 0);
    CHECK(gputrail_buffer_dropped_at(buffer, 0, 0, 0, NULL) == GPUTRAIL_NULL_POINTER);
    clReleaseEvent(filled);
    clReleaseEvent(gate);
    clReleaseMemObject(memory);
}

int main(void) {
    gputrail_context context;
    gputrail_subscriber subscriber, supplier, thing;
    gputrail_operation of_things[4];
    gputrail_operation launch;
    gputrail_drops drops;
    cl_context cl_context_ = NULL;
    cl_command_queue queue = NULL;
    cl_device_id device = NULL;
    cl_uint platforms;
    gputrail_buffer_options raw;
    gputrail_agent_id agent = 0, listed[8];
    gputrail_queue_id queue_id = 0;
    gputrail_record_queue described;
    gputrail_nanos before, after;
    char name[64];
    size_t length, count, operations;
    int32_t enabled;
    uint64_t attribute = 0;

    CHECK(gputrail_initialise() == GPUTRAIL_OK);
    CHECK(gputrail_observe_opencl() == GPUTRAIL_OK);
    CHECK(gputrail_observe_opencl() == GPUTRAIL_OK);
    clGetPlatformIDs(0, NULL, &platforms);
    CHECK(gputrail_operation_by_name(GPUTRAIL_DOMAIN_OPENCL, "clFinish", &finish) == GPUTRAIL_OK);
    CHECK(strcmp(gputrail_operation_name(finish), "clFinish") == 0);
    CHECK(gputrail_operations(GPUTRAIL_DOMAIN_OPENCL, NULL, 0, &operations) == GPUTRAIL_OK && operations > 100);

    CHECK(gputrail_context_create(&context) == GPUTRAIL_OK);
    memset(&raw, 0, sizeof raw);
    raw.size = sizeof raw;
    raw.format = GPUTRAIL_RECORD_FORMAT_RAW;
    CHECK(gputrail_buffer_create(&raw, deliver, &seen, &buffer) == GPUTRAIL_OK);
    CHECK(gputrail_context_trace_to(context, buffer, NULL) == GPUTRAIL_OK);
    CHECK(gputrail_subscribe(context, &finish, 1, called_back, &told, &subscriber) == GPUTRAIL_OK);
    CHECK(gputrail_operation_by_name(GPUTRAIL_DOMAIN_OPENCL, "clEnqueueNDRangeKernel", &launch) == GPUTRAIL_OK);
    of_things[0] = launch;
    CHECK(gputrail_operation_by_name(GPUTRAIL_DOMAIN_RESOURCE, "code object loaded", &of_things[1]) == GPUTRAIL_OK);
    CHECK(gputrail_operation_by_name(GPUTRAIL_DOMAIN_RESOURCE, "code object unloaded", &of_things[2]) == GPUTRAIL_OK);
    CHECK(gputrail_operation_by_name(GPUTRAIL_DOMAIN_OPENCL, "clCreateBuffer", &of_things[3]) == GPUTRAIL_OK);
    CHECK(gputrail_subscribe(context, of_things, 4, told_of_things, &things, &thing) == GPUTRAIL_OK);
    CHECK(gputrail_external_supply(context, &launch, 1, supply, &seen, &supplier) == GPUTRAIL_OK);
    CHECK(gputrail_callback_is_enabled(subscriber, finish, &enabled) == GPUTRAIL_OK && enabled == 1);
    CHECK(gputrail_flight_start(NULL, &flight) == GPUTRAIL_OK);
    CHECK(gputrail_context_start(context) == GPUTRAIL_OK);
    CHECK(gputrail_ticks_to_nanos(gputrail_now(), &before) == GPUTRAIL_OK);
    work(&cl_context_, &queue, &device);
    CHECK(gputrail_ticks_to_nanos(gputrail_now(), &after) == GPUTRAIL_OK && before < after);

    CHECK(gputrail_agent_of((uint64_t)(size_t)device, &agent) == GPUTRAIL_OK && agent == 1);
    CHECK(gputrail_agent_name(agent, name, sizeof name, &length) == GPUTRAIL_OK && length == strlen(name));
    CHECK(gputrail_agent_attribute(agent, GPUTRAIL_AGENT_ATTRIBUTE_KIND_MAX_WORKGROUP_X, &attribute) == GPUTRAIL_OK && attribute > 0);
    CHECK(gputrail_agents(listed, 8, &count) == GPUTRAIL_OK && count >= 1);
    CHECK(gputrail_queue_of((uint64_t)(size_t)queue, &queue_id) == GPUTRAIL_OK);
    CHECK(gputrail_describe_queue(queue_id, &described) == GPUTRAIL_OK && described.agent == agent);

    CHECK(gputrail_enable_callback(subscriber, finish, 0) == GPUTRAIL_OK);
    clFinish(queue);
    CHECK(gputrail_unsubscribe(subscriber) == GPUTRAIL_OK && gputrail_unsubscribe(supplier) == GPUTRAIL_OK);
    CHECK(gputrail_flight_stop(flight) == GPUTRAIL_OK);
    /* The second delivers what the first took. */
    CHECK(gputrail_buffer_flush(buffer) == GPUTRAIL_OK && gputrail_buffer_flush(buffer) == GPUTRAIL_OK);
    CHECK(seen.overheads[GPUTRAIL_OVERHEAD_KIND_COMPILATION] == 1);
    CHECK(seen.overheads[GPUTRAIL_OVERHEAD_KIND_FLUSH] > 0);
    synchronise(cl_context_, queue, queue_id);
    CHECK(gputrail_context_stop(context) == GPUTRAIL_OK);
    clFinish(queue);
    CHECK(gputrail_buffer_flush(buffer) == GPUTRAIL_OK);
    drops.size = sizeof drops;
    CHECK(gputrail_buffer_dropped(buffer, &drops) == GPUTRAIL_OK && drops.total == 0);

    CHECK(seen.flush == GPUTRAIL_BUSY && seen.destroy == GPUTRAIL_BUSY && seen.finalise == GPUTRAIL_BUSY);
    CHECK(seen.finishes == ROUNDS + 1 && seen.dispatches == ROUNDS && seen.copies == ROUNDS);
    CHECK(things.objects == 2 && things.code >= 1 && things.kernels == ROUNDS);
    CHECK(seen.supplied == ROUNDS && seen.pushed == ROUNDS);
    CHECK(seen.completions >= 2 * ROUNDS && seen.timed > 0);
    CHECK(seen.arguments > 0 && seen.named_arguments >= seen.arguments);
    CHECK(gputrail_kernel_name(seen.kernel, name, sizeof name, NULL) == GPUTRAIL_OK && strcmp(name, "triple") == 0);
    CHECK(gputrail_kernel_name(seen.kernel, name, 6, &length) == GPUTRAIL_TOO_SMALL && length == 6);
    CHECK(told.enters == ROUNDS && told.exits == ROUNDS && told.kept == ROUNDS && told.queues == ROUNDS);
    CHECK(told.again == GPUTRAIL_INVALID_ARGUMENT);
    CHECK(told.finalise == GPUTRAIL_BUSY && told.flush == GPUTRAIL_BUSY);
    CHECK(gputrail_finalise() == GPUTRAIL_OK);
    clReleaseCommandQueue(queue);
    clReleaseContext(cl_context_);
    printf("%s: %d kernels\n", failures ? "failed" : "passed", seen.dispatches);
    return failures > 0;
}
