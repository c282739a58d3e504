/* What programs do more rarely: command buffers, builds in parts and with callbacks, kernels that are cloned or made all
 * at once, local memory, mapped images, callbacks that call OpenCL again, calls that are left by longjmp, several devices.
 */
#include "report.h"
#include <setjmp.h>

#define FUNCTION(type, name) type##_fn name = (type##_fn)clGetExtensionFunctionAddressForPlatform(platform, #type)

static const char *source =
    "kernel void twice(global int *data) { data[get_global_id(0)] *= 2; }\n"
    "kernel void add(global int *data, int n) { data[get_global_id(0)] += n; }\n"
    "kernel void shared(global int *data, local int *part) {\n"
    "  local int fixed[16];\n"
    "  part[get_local_id(0)] = data[get_global_id(0)]; fixed[get_local_id(0)] = 1;\n"
    "  barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  data[get_global_id(0)] = part[get_local_size(0) - 1 - get_local_id(0)] + fixed[0];\n"
    "}\n";

static int data[16];

static cl_mem numbers(cl_command_queue queue) {
    cl_int status;
    for (int i = 0; i < 16; i++) data[i] = i;
    cl_mem memory = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof data, data, &status);
    VALUE(status);
    (void)queue;
    return memory;
}

static void show(cl_command_queue queue, cl_mem memory) {
    STATUS(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL));
    for (int i = 0; i < 16; i++) printf(" %d", data[i]);
    printf("\n");
}

static void kernels(cl_command_queue queue, cl_program program) {
    cl_kernel all[3];
    cl_uint count = 0;
    cl_int status;
    size_t items = 16, group = 8;
    cl_mem memory = numbers(queue);
    STATUS(clCreateKernelsInProgram(program, 0, NULL, &count));
    VALUE(count);
    STATUS(clCreateKernelsInProgram(program, 2, all, NULL));
    STATUS(clCreateKernelsInProgram(program, 3, all, NULL));
    cl_kernel shared = clCreateKernel(program, "shared", &status);
    STATUS(clSetKernelArg(shared, 0, sizeof memory, &memory));
    STATUS(clSetKernelArg(shared, 1, 1 << 30, NULL));
    STATUS(clSetKernelArg(shared, 1, 8 * sizeof(int), NULL));
    STATUS(clEnqueueNDRangeKernel(queue, shared, 1, NULL, &items, &group, 0, NULL, NULL));
    cl_kernel copy = clCloneKernel(shared, &status);
    VALUE(status);
    if (status == CL_SUCCESS) {
        STATUS(clEnqueueNDRangeKernel(queue, copy, 1, NULL, &items, &group, 0, NULL, NULL));
        STATUS(clReleaseKernel(copy));
    }
    show(queue, memory);
    for (cl_uint i = 0; i < 3; i++) STATUS(clReleaseKernel(all[i]));
    STATUS(clReleaseKernel(shared));
    STATUS(clReleaseMemObject(memory));
}

static volatile int built;

static void CL_CALLBACK on_built(cl_program program, void *what) {
    cl_int status;
    cl_uint references;
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_STATUS, sizeof status, &status, NULL);
    clGetProgramInfo(program, CL_PROGRAM_REFERENCE_COUNT, sizeof references, &references, NULL);
    printf("%s: built with status %d\n", (const char *)what, status);
    built++;
}

static void builds(void) {
    const char *half = "int f(int x); kernel void k(global int *x) { *x = f(*x); }", *other = "int f(int x) { return x + 1; }";
    const char *broken = "kernel void k( { }";
    cl_int status;
    cl_program parts[2] = {clCreateProgramWithSource(context, 1, &half, NULL, NULL),
                           clCreateProgramWithSource(context, 1, &other, NULL, NULL)};
    STATUS(clCompileProgram(parts[0], 1, &device, "", 0, NULL, NULL, NULL, NULL));
    STATUS(clCompileProgram(parts[1], 1, &device, "", 0, NULL, NULL, on_built, "part"));
    cl_program whole = clLinkProgram(context, 1, &device, "", 2, parts, on_built, "whole", &status);
    VALUE(status);
    for (int i = 0; i < 2; i++) STATUS(clReleaseProgram(parts[i]));
    if (whole) STATUS(clReleaseProgram(whole));
    cl_program bad = clCreateProgramWithSource(context, 1, &broken, NULL, &status);
    STATUS(clBuildProgram(bad, 1, &device, "-DX=1", on_built, "broken"));
    STATUS(clBuildProgram(bad, 1, &device, "--no-such-option", NULL, NULL));
    STATUS(clBuildProgram(bad, 1, NULL, "", NULL, NULL));
    STATUS(clReleaseProgram(bad));
    VALUE(built);
}

static void command_buffers(cl_command_queue queue, cl_program program) {
    FUNCTION(clCreateCommandBufferKHR, create);
    FUNCTION(clFinalizeCommandBufferKHR, finalize);
    FUNCTION(clEnqueueCommandBufferKHR, enqueue);
    FUNCTION(clRetainCommandBufferKHR, retain);
    FUNCTION(clReleaseCommandBufferKHR, release);
    FUNCTION(clCommandNDRangeKernelKHR, kernel_command);
    FUNCTION(clCommandCopyBufferKHR, copy_command);
    FUNCTION(clCommandFillBufferKHR, fill_command);
    printf("command buffers: %d\n", create != NULL);
    if (!create) return;
    cl_int status;
    cl_mem memory = numbers(queue), spare = numbers(queue);
    cl_kernel twice = clCreateKernel(program, "twice", &status);
    STATUS(clSetKernelArg(twice, 0, sizeof memory, &memory));
    size_t items = 16;
    int pattern = 3;
    cl_sync_point_khr first, second;
    cl_command_buffer_khr buffer = create(1, &queue, NULL, &status);
    VALUE(status);
    STATUS(kernel_command(buffer, NULL, NULL, twice, 1, NULL, &items, NULL, 0, NULL, &first, NULL));
    STATUS(kernel_command(buffer, NULL, NULL, twice, 1, NULL, &items, NULL, 1, &first, &second, NULL));
    STATUS(copy_command(buffer, NULL, memory, spare, 0, 0, 32, 1, &second, NULL, NULL));
    STATUS(fill_command(buffer, NULL, spare, &pattern, 4, 32, 32, 0, NULL, NULL, NULL));
    STATUS(enqueue(0, NULL, buffer, 0, NULL, NULL));
    STATUS(finalize(buffer));
    STATUS(retain(buffer));
    cl_event event = UNTOUCHED;
    STATUS(enqueue(0, NULL, buffer, 0, NULL, &event));
    STATUS(clWaitForEvents(1, &event));
    cl_ulong time;
    cl_uint references;
    STATUS(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof time, &time, NULL));
    STATUS(clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof references, &references, NULL));
    STATUS(clReleaseEvent(event));
    STATUS(release(buffer));
    STATUS(enqueue(1, &queue, buffer, 0, NULL, NULL));
    STATUS(clFinish(queue));
    STATUS(release(buffer));
    show(queue, memory);
    show(queue, spare);
    clReleaseKernel(twice), clReleaseMemObject(memory), clReleaseMemObject(spare);
}

static void images(cl_command_queue queue) {
    cl_int status;
    cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    cl_image_desc desc = {CL_MEM_OBJECT_IMAGE2D, 8, 4, 0, 0, 0, 0, 0, 0, {NULL}};
    cl_mem image = clCreateImage(context, 0, &format, &desc, NULL, &status);
    VALUE(status);
    if (!image) return;
    size_t origin[3] = {0, 0, 0}, region[3] = {8, 4, 1}, pitch = 0, beyond[3] = {9, 4, 1};
    cl_uint color[4] = {1, 2, 3, 4};
    cl_event event = UNTOUCHED;
    STATUS(clEnqueueFillImage(queue, image, color, origin, region, 0, NULL, NULL));
    void *none = clEnqueueMapImage(queue, image, CL_TRUE, CL_MAP_READ, origin, beyond, &pitch, NULL, 0, NULL, &event, &status);
    VALUE(status);
    VALUE(none == NULL && event == UNTOUCHED);
    unsigned char *mapped = clEnqueueMapImage(queue, image, CL_TRUE, CL_MAP_READ, origin, region, &pitch, NULL, 0, NULL, &event, NULL);
    printf("%d %d %d %d\n", mapped[0], mapped[1], mapped[pitch + 2], mapped[pitch + 3]);
    STATUS(clReleaseEvent(event));
    STATUS(clEnqueueUnmapMemObject(queue, image, mapped, 0, NULL, NULL));
    STATUS(clFinish(queue));
    STATUS(clReleaseMemObject(image));
}

static cl_command_queue again;
static cl_kernel again_kernel;
static volatile int called;

/* Puts the next kernel into the queue, from inside the callback of the one before. */
static void CL_CALLBACK call_again(cl_event event, cl_int status, void *left) {
    size_t items = 16;
    cl_event next;
    (void)status;
    clReleaseEvent(event);
    if (left && clEnqueueNDRangeKernel(again, again_kernel, 1, NULL, &items, NULL, 0, NULL, &next) == CL_SUCCESS)
        clSetEventCallback(next, CL_COMPLETE, call_again, (char *)left - 1);
    __sync_fetch_and_add(&called, 1);
    clFlush(again);
}

static jmp_buf away;

static void CL_CALLBACK leave(const char *text, const void *info, size_t size, void *unused) {
    (void)text, (void)info, (void)size, (void)unused;
    longjmp(away, 1);
}

static void callbacks(cl_command_queue queue, cl_program program) {
    cl_int status;
    cl_mem memory = numbers(queue);
    size_t items = 16;
    cl_event event;
    again = queue;
    again_kernel = clCreateKernel(program, "add", &status);
    int one = 1;
    STATUS(clSetKernelArg(again_kernel, 0, sizeof memory, &memory));
    STATUS(clSetKernelArg(again_kernel, 1, sizeof one, &one));
    STATUS(clEnqueueNDRangeKernel(queue, again_kernel, 1, NULL, &items, NULL, 0, NULL, &event));
    STATUS(clSetEventCallback(event, CL_COMPLETE, call_again, (void *)5));
    clFlush(queue);
    while (called < 6) clFinish(queue);
    show(queue, memory);
    clReleaseKernel(again_kernel), clReleaseMemObject(memory);

    /* A runtime may report an error by calling the context's function, which does not come back. */
    cl_context noisy = clCreateContext(NULL, 1, &device, leave, NULL, &status);
    for (volatile int i = 0; i < 3; i++)
        if (!setjmp(away)) clCreateBuffer(noisy, 0, 0, NULL, &status);
    STATUS(clReleaseContext(noisy));
}

static void every_device(void) {
    cl_device_id devices[4];
    cl_uint count = 0;
    cl_int status;
    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 4, devices, &count);
    cl_context all = clCreateContext(NULL, count, devices, NULL, NULL, &status);
    VALUE(status);
    cl_program program = clCreateProgramWithSource(all, 1, &source, NULL, &status);
    STATUS(clBuildProgram(program, 0, NULL, "", NULL, NULL));
    cl_kernel kernel = clCreateKernel(program, "twice", &status);
    for (int i = 0; i < 16; i++) data[i] = i;
    cl_mem memory = clCreateBuffer(all, CL_MEM_USE_HOST_PTR, sizeof data, data, &status);
    STATUS(clSetKernelArg(kernel, 0, sizeof memory, &memory));
    size_t items = 16;
    for (cl_uint i = 0; i < count; i++) {
        cl_command_queue queue = clCreateCommandQueue(all, devices[i], CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &status);
        STATUS(clEnqueueMigrateMemObjects(queue, 1, &memory, 0, 0, NULL, NULL));
        STATUS(clEnqueueBarrierWithWaitList(queue, 0, NULL, NULL));
        STATUS(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
        STATUS(clEnqueueBarrierWithWaitList(queue, 0, NULL, NULL));
        show(queue, memory);
        STATUS(clReleaseCommandQueue(queue));
    }
    clReleaseKernel(kernel), clReleaseProgram(program), clReleaseMemObject(memory), clReleaseContext(all);
}

int main(void) {
    open_device();
    cl_int status;
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    STATUS(clBuildProgram(program, 1, &device, "", NULL, NULL));
    kernels(queue, program);
    builds();
    command_buffers(queue, program);
    images(queue);
    callbacks(queue, program);
    every_device();
    STATUS(clReleaseProgram(program));
    STATUS(clReleaseCommandQueue(queue));
    STATUS(clReleaseContext(context));
    return 0;
}
