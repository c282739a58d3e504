// Kernels that depend on their own earlier output, for runs in which each kernel runs in several passes.
// replayed [COUNT]: COUNT launches of each kernel. Prints results and reference counts, which are the same in every run.
#include "report.h"
#include <unistd.h>

#define ITEMS 1024
#define SIDE 16

static const char *const SOURCE =
    "kernel void forward(global uint *x) { size_t i = get_global_id(0); x[i] = x[i] * 3 + 1; }\n"
    "kernel void twice(global uint *part, global uint *whole, const global uint *added) {\n"
    "    size_t i = get_global_id(0);\n"
    "    part[i] += whole[i] + added[i];\n"
    "    whole[i] = part[i] * 5 + 1;\n"
    "}\n"
    "kernel void count(global uint *counter, write_only image2d_t out) {\n"
    "    int2 at = (int2)(get_global_id(0), get_global_id(1));\n"
    "    if (at.x == 0 && at.y == 0) *counter += 7;\n"
    "    write_imageui(out, at, (uint4)(at.x, at.y, 3, 1));\n"
    "}\n"
    "kernel void turn(read_only image2d_t in, write_only image2d_t out) {\n"
    "    int2 at = (int2)(get_global_id(0), get_global_id(1));\n"
    "    write_imageui(out, at, read_imageui(in, at) * 3 + 1);\n"
    "}\n"
    "kernel void constants(constant uint *table, global uint *x, local uint *scratch, ulong number) {\n"
    "    size_t i = get_global_id(0);\n"
    "    scratch[get_local_id(0)] = x[i] + table[i % 4];\n"
    "    x[i] = scratch[get_local_id(0)] * 3 + (uint)number;\n"
    "}\n";

static cl_command_queue queue;
static cl_program program;
static int launches = 3;

static cl_kernel kernel_of(const char *name) {
    cl_int status;
    cl_kernel kernel = clCreateKernel(program, name, &status);
    if (status != CL_SUCCESS) printf("%s: %d\n", name, status);
    return kernel;
}

static cl_mem buffer_of(cl_uint first) {
    cl_uint values[ITEMS];
    for (cl_uint i = 0; i < ITEMS; i++) values[i] = first + i;
    return clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof values, values, NULL);
}

static void print_sum(const char *what, cl_mem buffer) {
    cl_uint values[ITEMS], sum = 0;
    STATUS(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL));
    for (cl_uint i = 0; i < ITEMS; i++) sum = sum * 31 + values[i];
    printf("%s %u\n", what, sum);
}

// The least count of those that are read while the runtime lets go of what has ended.
#define REFERENCES(get, object, what) \
    do { \
        cl_uint least = ~0u, count = 0; \
        for (int i = 0; i < 50; i++) { \
            get(object, what, sizeof count, &count, NULL); \
            if (count < least) least = count; \
            usleep(200); \
        } \
        printf("%s %u\n", #what, least); \
    } while (0)

static void print_references(cl_kernel kernel, cl_mem buffer) {
    STATUS(clFinish(queue));
    REFERENCES(clGetKernelInfo, kernel, CL_KERNEL_REFERENCE_COUNT);
    REFERENCES(clGetMemObjectInfo, buffer, CL_MEM_REFERENCE_COUNT);
    REFERENCES(clGetCommandQueueInfo, queue, CL_QUEUE_REFERENCE_COUNT);
    REFERENCES(clGetContextInfo, context, CL_CONTEXT_REFERENCE_COUNT);
}

static void in_place(void) {
    cl_kernel kernel = kernel_of("forward");
    cl_mem buffer = buffer_of(1);
    size_t items = ITEMS, offset = 8, some = ITEMS - 16, one = 1;
    cl_event event;
    STATUS(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    for (int i = 0; i < launches; i++) STATUS(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
    STATUS(clEnqueueNDRangeKernel(queue, kernel, 1, &offset, &some, NULL, 0, NULL, &event));
    STATUS(clWaitForEvents(1, &event));
    STATUS(clReleaseEvent(event));
    STATUS(clEnqueueTask(queue, kernel, 0, NULL, NULL));
    STATUS(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &items, 0, NULL, NULL)); // an invalid size
    print_sum("in place", buffer);
    print_references(kernel, buffer);
    cl_kernel clone = clCloneKernel(kernel, NULL);
    if (clone) {
        STATUS(clEnqueueNDRangeKernel(queue, clone, 1, NULL, &items, NULL, 0, NULL, NULL));
        print_sum("by a clone", buffer);
        clReleaseKernel(clone);
    }
    clReleaseMemObject(buffer);
    clReleaseKernel(kernel);
}

// Two sub-buffers that overlap a parent which is an argument, too.
static void parts(void) {
    cl_kernel kernel = kernel_of("twice");
    cl_mem whole = buffer_of(1), added = buffer_of(5);
    cl_buffer_region region = {ITEMS * 2, ITEMS};
    cl_mem part = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);
    size_t items = ITEMS / 4;
    STATUS(clSetKernelArg(kernel, 0, sizeof part, &part));
    STATUS(clSetKernelArg(kernel, 1, sizeof whole, &whole));
    STATUS(clSetKernelArg(kernel, 2, sizeof added, &added));
    for (int i = 0; i < launches; i++) STATUS(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
    print_sum("parts", whole);
    print_references(kernel, whole);
    // The same object twice, and a sub-buffer alone.
    STATUS(clSetKernelArg(kernel, 1, sizeof part, &part));
    for (int i = 0; i < launches; i++) STATUS(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
    print_sum("one part", whole);
    clReleaseMemObject(part);
    clReleaseMemObject(whole);
    clReleaseMemObject(added);
    clReleaseKernel(kernel);
}

static void images(void) {
    static const size_t origin[3] = {0, 0, 0}, region[3] = {SIDE, SIDE, 1};
    cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT32};
    cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = SIDE, .image_height = SIDE};
    cl_uint pixels[SIDE * SIDE * 4] = {1, 2, 3, 4}, sum = 0;
    cl_mem image = clCreateImage(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, &format, &desc, pixels, NULL);
    cl_mem counter = buffer_of(0);
    cl_kernel kernel = kernel_of("count");
    STATUS(clSetKernelArg(kernel, 0, sizeof counter, &counter));
    STATUS(clSetKernelArg(kernel, 1, sizeof image, &image));
    for (int i = 0; i < launches; i++) STATUS(clEnqueueNDRangeKernel(queue, kernel, 2, NULL, region, NULL, 0, NULL, NULL));
    print_sum("counter", counter);
    cl_kernel turn = kernel_of("turn");
    // One image, which processors can read and write: each work-item has a pixel of its own.
    STATUS(clSetKernelArg(turn, 0, sizeof image, &image));
    STATUS(clSetKernelArg(turn, 1, sizeof image, &image));
    for (int i = 0; i < launches; i++) STATUS(clEnqueueNDRangeKernel(queue, turn, 2, NULL, region, NULL, 0, NULL, NULL));
    STATUS(clEnqueueReadImage(queue, image, CL_TRUE, origin, region, 0, 0, pixels, 0, NULL, NULL));
    for (size_t i = 0; i < LENGTH(pixels); i++) sum = sum * 31 + pixels[i];
    printf("image %u\n", sum);
    print_references(turn, image);
    clReleaseKernel(turn);
    clReleaseKernel(kernel);
    clReleaseMemObject(image);
    clReleaseMemObject(counter);
}

static void constants(void) {
    cl_kernel kernel = kernel_of("constants");
    cl_mem table = buffer_of(3), buffer = buffer_of(9);
    cl_ulong number = 11;
    size_t items = ITEMS, group = 16;
    STATUS(clSetKernelArg(kernel, 0, sizeof table, &table));
    STATUS(clSetKernelArg(kernel, 1, sizeof buffer, &buffer));
    STATUS(clSetKernelArg(kernel, 2, group * sizeof(cl_uint), NULL));
    STATUS(clSetKernelArg(kernel, 3, sizeof number, &number));
    for (int i = 0; i < launches; i++) STATUS(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &group, 0, NULL, NULL));
    print_sum("constants", buffer);
    clReleaseMemObject(table);
    clReleaseMemObject(buffer);
    clReleaseKernel(kernel);
}

int main(int argc, char **argv) {
    if (argc > 1) launches = atoi(argv[1]);
    open_device();
    cl_int status;
    queue = clCreateCommandQueue(context, device, 0, &status);
    VALUE(status);
    const char *source = SOURCE;
    program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    VALUE(status);
    STATUS(clBuildProgram(program, 1, &device, "", NULL, NULL));
    in_place();
    parts();
    images();
    constants();
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return 0;
}
