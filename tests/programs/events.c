/* Prints what can be queried about the events of all kinds of commands, with and without profiling, the order and
 * arguments of callbacks, what failed enqueues leave behind, and the results that the device computed. With
 * --references also the events' reference counts, which are steady with PoCL's basic driver alone; that driver in turn
 * hangs when a user event is completed. */
#include <time.h>

#include "report.h"

static cl_program build(const char *source, const char *options) {
    cl_int status;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    VALUE(status);
    STATUS(clBuildProgram(program, 1, &device, options, NULL, NULL));
    return program;
}

static const char *const SOURCE =
    "kernel void add(global int *data, int amount) { data[get_global_id(0)] += amount; }\n"
    "kernel void one(global int *data) { data[0] *= 3; }\n";

enum { COUNT = 1024 };
static cl_program program;
static cl_kernel add, one;
static int callbacks, callback_sum;
static int steady_references;

static void CL_CALLBACK on_status(cl_event event, cl_int status, void *data) {
    (void)event;
    __atomic_fetch_add(&callbacks, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&callback_sum, *(int *)data * (10 + status), __ATOMIC_SEQ_CST);
}

static int destroyed;

/* A thread of the runtime may hold the last reference, also after its command has completed. */
static void CL_CALLBACK on_destroyed(cl_mem memory, void *data) {
    (void)memory;
    __atomic_fetch_add(&destroyed, *(int *)data, __ATOMIC_SEQ_CST);
}

static void CL_CALLBACK on_svm_free(cl_command_queue queue, cl_uint count, void *pointers[], void *data) {
    (void)queue;
    for (cl_uint i = 0; i < count; i++) clSVMFree(context, pointers[i]);
    __atomic_fetch_add((int *)data, (int)count, __ATOMIC_SEQ_CST);
}

static void CL_CALLBACK native(void *arguments) { **(int **)arguments += 5; }

/* Everything an event can be asked once its command is complete. Takes the caller's reference. */
static void describe(const char *title, cl_command_queue queue, cl_event event) {
    static const cl_profiling_info stages[] = {CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT, CL_PROFILING_COMMAND_START,
                                               CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_COMPLETE, 0x7777};
    cl_int status, wait = clWaitForEvents(1, &event), execution = 77;
    cl_command_type type = 0;
    cl_uint references = 0;
    cl_command_queue its_queue = NULL;
    cl_context its_context = NULL;
    cl_ulong time, before = 0;
    size_t size;
    if (queue) clFinish(queue);
    status = clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL);
    printf("event of %s: wait %d, type %d %#x", title, wait, status, type);
    status = clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof its_queue, &its_queue, NULL);
    printf(", queue %d %d", status, its_queue == queue);
    status = clGetEventInfo(event, CL_EVENT_CONTEXT, sizeof its_context, &its_context, NULL);
    printf(", context %d %d", status, its_context == context);
    status = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof execution, &execution, &size);
    printf(", execution %d %d (%zu)", status, execution, size);
    status = clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof references, &references, NULL);
    printf(", references %d %u\n   profiling", status, steady_references ? references : 0);
    for (size_t i = 0; i < LENGTH(stages); i++) {
        time = 12345;
        size = 9;
        status = clGetEventProfilingInfo(event, stages[i], sizeof time, &time, &size);
        printf(" %d/%zu/%s", status, size, time == 12345 ? "untouched" : time >= before ? "in order" : "out of order");
        if (status == CL_SUCCESS) before = time;
    }
    printf(" small %d", clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, 1, &time, NULL));
    status = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, 0, NULL, &size);
    printf(" size %d/%zu\n   release %d\n", status, size, clReleaseEvent(event));
}

/* One command of every kind on one queue. */
static void commands(cl_command_queue queue) {
    int data[COUNT], zero = 0, *native_data = data;
    size_t global = COUNT, origin[3] = {0, 0, 0}, region[3] = {64, 4, 1}, texels[3] = {8, 8, 1};
    unsigned char pixels[8 * 8 * 4];
    cl_int status;
    cl_event event, first;
    cl_mem buffer, other, image;
    for (int i = 0; i < COUNT; i++) data[i] = i;
    buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof data, data, NULL);
    other = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof data, NULL, NULL);
    cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
    cl_image_desc description = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 8, .image_height = 8};
    image = clCreateImage(context, CL_MEM_READ_WRITE, &format, &description, NULL, NULL);
    static int one_object = 1;
    STATUS(clSetMemObjectDestructorCallback(buffer, on_destroyed, &one_object));
    clSetKernelArg(add, 0, sizeof buffer, &buffer);
    clSetKernelArg(add, 1, sizeof(int), &(int){7});
    clSetKernelArg(one, 0, sizeof buffer, &buffer);

    STATUS(clEnqueueNDRangeKernel(queue, add, 1, NULL, &global, NULL, 0, NULL, &first));
    STATUS(clEnqueueNDRangeKernel(queue, add, 1, NULL, &global, &(size_t){64}, 1, &first, &event));
    describe("a kernel that waited", queue, event);
    STATUS(clRetainEvent(first));
    describe("a kernel, retained", queue, first);
    describe("a kernel, released once", queue, first);
    STATUS(clEnqueueNDRangeKernel(queue, add, 1, NULL, &global, NULL, 0, NULL, NULL));
    STATUS(clFinish(queue));
    STATUS(clEnqueueTask(queue, one, 0, NULL, &event));
    describe("a task", queue, event);
    STATUS(clEnqueueNativeKernel(queue, native, &native_data, sizeof native_data, 0, NULL, NULL, 0, NULL, &event));
    describe("a native kernel", queue, event);
    VALUE(data[0]);
    STATUS(clEnqueueWriteBuffer(queue, other, CL_FALSE, 0, sizeof data, data, 0, NULL, &event));
    describe("a write", queue, event);
    STATUS(clEnqueueReadBuffer(queue, other, CL_TRUE, 16, 64, data, 0, NULL, &event));
    describe("a blocking read", queue, event);
    STATUS(clEnqueueCopyBuffer(queue, buffer, other, 0, 0, sizeof data, 0, NULL, &event));
    describe("a copy", queue, event);
    STATUS(clEnqueueFillBuffer(queue, other, &zero, sizeof zero, 0, 256, 0, NULL, &event));
    describe("a fill", queue, event);
    STATUS(clEnqueueReadBufferRect(queue, buffer, CL_FALSE, origin, origin, region, 64, 0, 64, 0, data, 0, NULL, &event));
    describe("a rectangular read", queue, event);
    STATUS(clEnqueueFillImage(queue, image, (float[]){0.25f, 0.5f, 0.75f, 1}, origin, texels, 0, NULL, &event));
    describe("an image fill", queue, event);
    STATUS(clEnqueueReadImage(queue, image, CL_TRUE, origin, texels, 0, 0, pixels, 0, NULL, &event));
    describe("an image read", queue, event);
    int *mapped = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, sizeof data, 0, NULL, &event, &status);
    VALUE(status);
    describe("a map", queue, event);
    long long sum = 0;
    for (int i = 0; i < COUNT; i++) sum += mapped[i];
    VALUE(sum);
    STATUS(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, &event));
    describe("an unmap", queue, event);
    STATUS(clEnqueueMarkerWithWaitList(queue, 0, NULL, &event));
    describe("a marker", queue, event);
    STATUS(clEnqueueBarrierWithWaitList(queue, 0, NULL, &event));
    describe("a barrier", queue, event);
    STATUS(clEnqueueMarker(queue, &event));
    describe("an old marker", queue, event);
    STATUS(clEnqueueBarrier(queue));
    STATUS(clEnqueueMigrateMemObjects(queue, 1, &buffer, 0, 0, NULL, &event));
    describe("a migration", queue, event);

    callbacks = callback_sum = 0;
    STATUS(clEnqueueNDRangeKernel(queue, add, 1, NULL, &global, NULL, 0, NULL, &event));
    STATUS(clSetEventCallback(event, CL_COMPLETE, on_status, &(int){100}));
    STATUS(clSetEventCallback(event, 77, on_status, NULL));
    STATUS(clSetEventCallback(event, CL_COMPLETE, NULL, NULL));
    describe("a kernel with a callback", queue, event);
    while (__atomic_load_n(&callbacks, __ATOMIC_SEQ_CST) < 1) {}
    VALUE(callbacks);
    VALUE(callback_sum);
    STATUS(clReleaseMemObject(image));
    STATUS(clReleaseMemObject(other));
    clSetKernelArg(add, 0, sizeof(cl_mem), NULL);
    clSetKernelArg(one, 0, sizeof(cl_mem), NULL);
    STATUS(clFinish(queue));
    STATUS(clReleaseMemObject(buffer));
}

static void shared_virtual_memory(cl_command_queue queue) {
    int *shared = clSVMAlloc(context, CL_MEM_READ_WRITE, COUNT * sizeof(int), 0), freed = 0, pattern = 9;
    size_t global = COUNT;
    cl_event event;
    VALUE(shared != NULL);
    STATUS(clEnqueueSVMMemFill(queue, shared, &pattern, sizeof pattern, COUNT * sizeof(int), 0, NULL, &event));
    describe("a shared memory fill", queue, event);
    STATUS(clSetKernelArgSVMPointer(add, 0, shared));
    STATUS(clEnqueueNDRangeKernel(queue, add, 1, NULL, &global, NULL, 0, NULL, NULL));
    STATUS(clFinish(queue));
    STATUS(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, shared, COUNT * sizeof(int), 0, NULL, &event));
    describe("a shared memory map", queue, event);
    VALUE(shared[5]);
    STATUS(clEnqueueSVMUnmap(queue, shared, 0, NULL, NULL));
    STATUS(clFinish(queue));
    STATUS(clEnqueueSVMFree(queue, 1, (void *[]){shared}, on_svm_free, &freed, 0, NULL, &event));
    describe("a shared memory free", queue, event);
    VALUE(freed);
    shared = clSVMAlloc(context, CL_MEM_READ_WRITE, 4096, 0);
    STATUS(clEnqueueSVMFree(queue, 1, (void *[]){shared}, NULL, NULL, 0, NULL, &event));
    describe("a shared memory free without callback", queue, event);
}

static void failing_calls(cl_command_queue queue) {
    int data[4] = {0};
    size_t global = COUNT, odd = 7;
    cl_event event = UNTOUCHED;
    cl_int status;
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof data, NULL, NULL);
    cl_kernel unset = clCreateKernel(program, "add", NULL);
#define FAILS(call) (STATUS(call), printf("   event %s\n", event == UNTOUCHED ? "untouched" : "CHANGED"))
    FAILS(clEnqueueNDRangeKernel(queue, unset, 1, NULL, &global, NULL, 0, NULL, &event));
    FAILS(clEnqueueNDRangeKernel(NULL, add, 1, NULL, &global, NULL, 0, NULL, &event));
    clSetKernelArg(unset, 0, sizeof buffer, &buffer);
    clSetKernelArg(unset, 1, sizeof(int), data);
    FAILS(clEnqueueNDRangeKernel(queue, unset, 4, NULL, &global, NULL, 0, NULL, &event));
    FAILS(clEnqueueNDRangeKernel(queue, unset, 1, NULL, &global, &(size_t){1 << 30}, 0, NULL, &event));
    FAILS(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 4096, data, 0, NULL, &event));
    FAILS(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 4, NULL, 0, NULL, &event));
    FAILS(clEnqueueReadBuffer(queue, NULL, CL_TRUE, 0, 4, data, 0, NULL, &event));
    FAILS(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 4096, 4, data, 0, NULL, &event));
    FAILS(clEnqueueCopyBuffer(queue, buffer, buffer, 0, 4, 8, 0, NULL, &event));
    FAILS(clEnqueueFillBuffer(queue, buffer, data, 3, 0, 8, 0, NULL, &event));
    VALUE(clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, 4096, 0, NULL, &event, &status) == NULL);
    FAILS(status);
    FAILS(clEnqueueUnmapMemObject(queue, NULL, data, 0, NULL, &event));
    FAILS(clEnqueueMarkerWithWaitList(NULL, 0, NULL, &event));
    FAILS(clEnqueueNDRangeKernel(queue, unset, 1, NULL, &odd, &(size_t){2}, 0, NULL, NULL));
    STATUS(clWaitForEvents(0, NULL));
    STATUS(clReleaseEvent(NULL));
    STATUS(clRetainEvent(NULL));
    STATUS(clSetEventCallback(NULL, CL_COMPLETE, on_status, NULL));
    STATUS(clGetEventInfo(NULL, CL_EVENT_REFERENCE_COUNT, 0, NULL, NULL));
    STATUS(clGetEventProfilingInfo(NULL, CL_PROFILING_COMMAND_END, 0, NULL, NULL));
    STATUS(clFinish(queue));
    STATUS(clReleaseKernel(unset));
    STATUS(clReleaseMemObject(buffer));
}

static void user_events(cl_command_queue queue) {
    size_t global = COUNT;
    cl_int status;
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, COUNT * sizeof(int), NULL, NULL);
    cl_event gate = clCreateUserEvent(context, &status), event;
    VALUE(status);
    clSetKernelArg(add, 0, sizeof buffer, &buffer);
    STATUS(clEnqueueNDRangeKernel(queue, add, 1, NULL, &global, NULL, 1, &gate, &event));
    cl_int execution = 77;
    STATUS(clGetEventInfo(gate, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof execution, &execution, NULL));
    VALUE(execution);
    STATUS(clSetUserEventStatus(gate, 5));
    STATUS(clSetUserEventStatus(gate, CL_COMPLETE));
    STATUS(clSetUserEventStatus(gate, CL_COMPLETE));
    STATUS(clSetUserEventStatus(event, CL_COMPLETE));
    describe("a kernel behind a user event", queue, event);
    describe("a user event", NULL, gate);
    VALUE(clCreateUserEvent(NULL, &status) == NULL);
    VALUE(status);
    STATUS(clFinish(queue));
    STATUS(clReleaseMemObject(buffer));
}

int main(int count, char **arguments) {
    steady_references = count > 1 && strcmp(arguments[1], "--references") == 0;
    static const cl_command_queue_properties kinds[] = {
        0, CL_QUEUE_PROFILING_ENABLE, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
        CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE};
    open_device();
    program = build(SOURCE, "");
    add = clCreateKernel(program, "add", NULL);
    one = clCreateKernel(program, "one", NULL);
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        printf("---- a queue with properties %#llx\n", (unsigned long long)kinds[i]);
        cl_command_queue queue = clCreateCommandQueue(context, device, kinds[i], NULL);
        commands(queue);
        shared_virtual_memory(queue);
        failing_calls(queue);
        if (!steady_references) user_events(queue);
        STATUS(clReleaseCommandQueue(queue));
    }
    STATUS(clReleaseKernel(one));
    STATUS(clReleaseKernel(add));
    STATUS(clReleaseProgram(program));
    for (int waits = 0; waits < 10000 && __atomic_load_n(&destroyed, __ATOMIC_SEQ_CST) < (int)LENGTH(kinds); waits++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    printf("memory objects destroyed: %d\n", destroyed);
    STATUS(clReleaseContext(context));
    return 0;
}
