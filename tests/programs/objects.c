/* Prints what can be queried about platforms, devices, contexts, queues, programs, kernels and memory objects, and the
 * status codes of wrong calls. */
#include "report.h"

static cl_program build(const char *source, const char *options) {
    cl_int status;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    VALUE(status);
    STATUS(clBuildProgram(program, 1, &device, options, NULL, NULL));
    return program;
}

static const char *const SOURCE =
    "__attribute__((reqd_work_group_size(4, 1, 1)))\n"
    "kernel void fixed(global int *out) { out[get_global_id(0)] = 1; }\n"
    "kernel void scale(global float *data, const float factor, local float *scratch, constant float *table) {\n"
    "    size_t i = get_global_id(0);\n"
    "    scratch[get_local_id(0)] = data[i];\n"
    "    data[i] = factor * scratch[get_local_id(0)] + table[0] + OFFSET;\n"
    "}\n";

static void print_text(const char *title, cl_int status, const char *text, size_t size) {
    printf("%-40s %d %zu %.*s\n", title, status, size, (int)size, text);
}

static void platform_and_device(void) {
    static const cl_platform_info platform_texts[] = {CL_PLATFORM_PROFILE, CL_PLATFORM_VERSION, CL_PLATFORM_NAME, CL_PLATFORM_VENDOR,
                                                      CL_PLATFORM_EXTENSIONS, CL_PLATFORM_ICD_SUFFIX_KHR};
    static const cl_device_info device_texts[] = {CL_DEVICE_NAME, CL_DEVICE_VENDOR, CL_DRIVER_VERSION, CL_DEVICE_VERSION,
                                                  CL_DEVICE_OPENCL_C_VERSION, CL_DEVICE_EXTENSIONS, CL_DEVICE_BUILT_IN_KERNELS};
    static const cl_device_info device_numbers[] = {
        CL_DEVICE_TYPE, CL_DEVICE_QUEUE_ON_HOST_PROPERTIES, CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES, CL_DEVICE_MAX_COMPUTE_UNITS,
        CL_DEVICE_MAX_WORK_GROUP_SIZE, CL_DEVICE_PROFILING_TIMER_RESOLUTION, CL_DEVICE_REFERENCE_COUNT, CL_DEVICE_SVM_CAPABILITIES,
        CL_DEVICE_GLOBAL_MEM_SIZE, CL_DEVICE_LOCAL_MEM_SIZE, CL_DEVICE_EXECUTION_CAPABILITIES, CL_DEVICE_AVAILABLE, 0x7777};
    char text[16384];
    size_t size;
    cl_uint count;
    STATUS(clGetPlatformIDs(0, NULL, &count));
    VALUE(count);
    STATUS(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count));
    VALUE(count);
    for (size_t i = 0; i < LENGTH(platform_texts); i++) {
        cl_int status = clGetPlatformInfo(platform, platform_texts[i], sizeof text, text, &size);
        print_text("platform", status, text, size);
    }
    for (size_t i = 0; i < LENGTH(device_texts); i++) {
        cl_int status = clGetDeviceInfo(device, device_texts[i], sizeof text, text, &size);
        print_text("device", status, text, size);
    }
    for (size_t i = 0; i < LENGTH(device_numbers); i++) {
        cl_ulong number = 0;
        cl_int status = clGetDeviceInfo(device, device_numbers[i], sizeof number, &number, &size);
        printf("device %#x: %d %zu %llu\n", device_numbers[i], status, size, (unsigned long long)number);
    }
    STATUS(clGetDeviceInfo(device, CL_DEVICE_NAME, 1, text, NULL));
    STATUS(clGetPlatformInfo(NULL, CL_PLATFORM_NAME, sizeof text, text, NULL));
}

/* Everything clGetCommandQueueInfo says of one queue, or the status of its creation. */
static void describe_queue(const char *title, cl_command_queue queue, cl_int status) {
    printf("queue %s: status %d, %s\n", title, status, queue ? "made" : "none");
    if (!queue) return;
    cl_command_queue_properties properties = 0x1111;
    cl_queue_properties array[16];
    cl_uint number;
    size_t size;
    cl_context its_context;
    cl_device_id its_device;
    memset(array, 0x55, sizeof array);
    STATUS(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, &size));
    VALUE(properties);
    VALUE(size);
    STATUS(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, 0, NULL, &size));
    VALUE(size);
    STATUS(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, 1, &properties, NULL));
    STATUS(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES_ARRAY, 0, NULL, &size));
    VALUE(size);
    if (size > 0) STATUS(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES_ARRAY, 1, array, NULL));
    STATUS(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES_ARRAY, sizeof array, array, &size));
    VALUE(size);
    for (size_t i = 0; i < LENGTH(array); i++) printf(" %llx", (unsigned long long)array[i]);
    putchar('\n');
    STATUS(clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof number, &number, NULL));
    VALUE(number);
    STATUS(clGetCommandQueueInfo(queue, CL_QUEUE_SIZE, sizeof number, &number, NULL));
    STATUS(clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE_DEFAULT, sizeof its_context, &its_context, NULL));
    STATUS(clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof its_context, &its_context, NULL));
    VALUE(its_context == context);
    STATUS(clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof its_device, &its_device, NULL));
    VALUE(its_device == device);
    STATUS(clGetCommandQueueInfo(queue, 0x7777, sizeof number, &number, NULL));
    STATUS(clRetainCommandQueue(queue));
    STATUS(clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof number, &number, NULL));
    VALUE(number);
    STATUS(clReleaseCommandQueue(queue));
    STATUS(clReleaseCommandQueue(queue));
}

/* PoCL 3.1 ends the process when asked for a queue on the device, so nobody asks here. */
static void queues(void) {
    static const cl_command_queue_properties bits[] = {
        0, CL_QUEUE_PROFILING_ENABLE, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
        CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0xf000, 0xf002};
    static const cl_queue_properties none[] = {0}, unknown[] = {0x7777, 1, 0},
        twice[] = {CL_QUEUE_PROPERTIES, 0, CL_QUEUE_PROPERTIES, 0, 0}, size_alone[] = {CL_QUEUE_SIZE, 4096, 0},
        priority[] = {CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PRIORITY_LOW_KHR, 0};
    static const struct {
        const char *title;
        const cl_queue_properties *properties;
    } lists[] = {{"null list", NULL}, {"empty list", none}, {"unknown property", unknown}, {"the same property twice", twice},
                 {"size without device", size_alone}, {"priority", priority}};
    cl_command_queue queue;
    cl_int status;
    char title[40];
    for (size_t i = 0; i < LENGTH(bits); i++) {
        status = 77;
        snprintf(title, sizeof title, "%#llx", (unsigned long long)bits[i]);
        queue = clCreateCommandQueue(context, device, bits[i], &status);
        describe_queue(title, queue, status);
        const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, bits[i], 0};
        status = 77;
        snprintf(title, sizeof title, "with properties %#llx", (unsigned long long)bits[i]);
        queue = clCreateCommandQueueWithProperties(context, device, properties, &status);
        describe_queue(title, queue, status);
    }
    for (size_t i = 0; i < LENGTH(lists); i++) {
        status = 77;
        queue = clCreateCommandQueueWithProperties(context, device, lists[i].properties, &status);
        describe_queue(lists[i].title, queue, status);
    }
    status = 77;
    queue = clCreateCommandQueue(NULL, device, 0, &status);
    describe_queue("no context", queue, status);
    status = 77;
    queue = clCreateCommandQueueWithProperties(context, NULL, none, &status);
    describe_queue("no device", queue, status);
    describe_queue("no status wanted", clCreateCommandQueue(context, device, 0, NULL), 0);
    STATUS(clRetainCommandQueue(NULL));
    STATUS(clReleaseCommandQueue(NULL));
    STATUS(clFlush(NULL));
    STATUS(clFinish(NULL));
}

static void programs_and_kernels(void) {
    char text[4096];
    size_t size, number;
    cl_build_status build_status;
    cl_uint count;
    cl_program program = build(SOURCE, "-DOFFSET=3 -cl-kernel-arg-info");
    STATUS(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_OPTIONS, sizeof text, text, &size));
    printf("options %zu '%s'\n", size, text);
    STATUS(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_STATUS, sizeof build_status, &build_status, NULL));
    VALUE(build_status);
    STATUS(clGetProgramInfo(program, CL_PROGRAM_SOURCE, sizeof text, text, &size));
    VALUE(size);
    VALUE(strcmp(text, SOURCE));
    STATUS(clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, sizeof text, text, &size));
    printf("kernels %zu '%s'\n", size, text);
    STATUS(clGetProgramInfo(program, CL_PROGRAM_REFERENCE_COUNT, sizeof count, &count, NULL));
    VALUE(count);

    cl_int status = 77;
    cl_kernel none = clCreateKernel(program, "no_such_kernel", &status);
    VALUE(none == NULL);
    VALUE(status);
    cl_kernel kernel = clCreateKernel(program, "scale", &status), made[2] = {NULL, NULL};
    VALUE(status);
    STATUS(clCreateKernelsInProgram(program, 2, made, &count));
    VALUE(count);
    for (int i = 0; i < 2; i++) STATUS(clReleaseKernel(made[i]));
    STATUS(clGetProgramInfo(program, CL_PROGRAM_REFERENCE_COUNT, sizeof count, &count, NULL));
    VALUE(count);
    STATUS(clGetKernelInfo(kernel, CL_KERNEL_REFERENCE_COUNT, sizeof count, &count, NULL));
    VALUE(count);
    STATUS(clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL));
    VALUE(count);
    for (cl_uint i = 0; i < 5; i++) {
        memset(text, 0, sizeof text);
        status = clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_TYPE_NAME, sizeof text, text, NULL);
        printf("argument %u: %d '%s'\n", i, status, text);
    }
    static const cl_kernel_work_group_info sizes[] = {CL_KERNEL_WORK_GROUP_SIZE, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE,
                                                      CL_KERNEL_LOCAL_MEM_SIZE, CL_KERNEL_PRIVATE_MEM_SIZE};
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        number = 0;
        status = clGetKernelWorkGroupInfo(kernel, device, sizes[i], sizeof number, &number, NULL);
        printf("work group %#x: %d %zu\n", sizes[i], status, number);
    }
    float factor = 2;
    STATUS(clSetKernelArg(kernel, 1, sizeof factor, &factor));
    STATUS(clSetKernelArg(kernel, 1, 1, &factor));
    STATUS(clSetKernelArg(kernel, 9, sizeof factor, &factor));
    STATUS(clSetKernelArg(kernel, 2, 0, NULL));
    STATUS(clSetKernelArg(NULL, 0, sizeof factor, &factor));
    STATUS(clReleaseKernel(kernel));
    STATUS(clReleaseKernel(NULL));
    STATUS(clReleaseProgram(program));

    const char *broken = "kernel void broken( { nonsense }";
    program = build(broken, NULL);
    STATUS(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_STATUS, sizeof build_status, &build_status, NULL));
    VALUE(build_status);
    STATUS(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_OPTIONS, sizeof text, text, &size));
    printf("options %zu '%s'\n", size, text);
    kernel = clCreateKernel(program, "broken", &status);
    VALUE(status);
    STATUS(clReleaseProgram(program));
    program = build(SOURCE, "-DOFFSET=1 -no-such-option");
    STATUS(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_OPTIONS, sizeof text, text, &size));
    printf("options %zu '%s'\n", size, text);
    STATUS(clReleaseProgram(program));
    STATUS(clReleaseProgram(NULL));
    STATUS(clBuildProgram(NULL, 0, NULL, NULL, NULL, NULL));
    program = clCreateProgramWithSource(context, 0, NULL, NULL, &status);
    VALUE(program == NULL);
    VALUE(status);
}

static void memory(void) {
    cl_int status;
    cl_uint count;
    size_t size;
    cl_mem_flags flags;
    int host[16] = {0};
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &status);
    VALUE(status);
    cl_buffer_region region = {1024, 512};
    cl_mem part = clCreateSubBuffer(buffer, CL_MEM_READ_ONLY, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
    VALUE(status);
    STATUS(clGetMemObjectInfo(part, CL_MEM_FLAGS, sizeof flags, &flags, NULL));
    VALUE(flags);
    STATUS(clGetMemObjectInfo(part, CL_MEM_OFFSET, sizeof size, &size, NULL));
    VALUE(size);
    STATUS(clGetMemObjectInfo(buffer, CL_MEM_REFERENCE_COUNT, sizeof count, &count, NULL));
    VALUE(count);
    STATUS(clReleaseMemObject(part));
    STATUS(clGetMemObjectInfo(buffer, CL_MEM_REFERENCE_COUNT, sizeof count, &count, NULL));
    VALUE(count);
    STATUS(clGetMemObjectInfo(buffer, CL_MEM_MAP_COUNT, sizeof count, &count, NULL));
    VALUE(count);
    STATUS(clReleaseMemObject(buffer));
    STATUS(clReleaseMemObject(NULL));
    VALUE(clCreateBuffer(context, CL_MEM_READ_WRITE, 0, NULL, &status) == NULL);
    VALUE(status);
    VALUE(clCreateBuffer(context, CL_MEM_USE_HOST_PTR, sizeof host, NULL, &status) == NULL);
    VALUE(status);
    VALUE(clCreateBuffer(NULL, CL_MEM_READ_WRITE, 16, NULL, &status) == NULL);
    VALUE(status);
    VALUE(clCreateBuffer(context, CL_MEM_READ_WRITE, (size_t)1 << 60, NULL, &status) == NULL);
    VALUE(status);
    cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
    cl_image_desc description = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 16, .image_height = 8};
    cl_mem image = clCreateImage(context, CL_MEM_READ_ONLY, &format, &description, NULL, &status);
    VALUE(status);
    STATUS(clGetImageInfo(image, CL_IMAGE_WIDTH, sizeof size, &size, NULL));
    VALUE(size);
    STATUS(clReleaseMemObject(image));
    STATUS(clGetSupportedImageFormats(context, CL_MEM_READ_ONLY, CL_MEM_OBJECT_IMAGE2D, 0, NULL, &count));
    VALUE(count);
}

static void extension_functions(void) {
    static const char *const names[] = {
        "clCreateCommandBufferKHR", "clEnqueueCommandBufferKHR", "clCommandNDRangeKernelKHR", "clGetCommandBufferInfoKHR",
        "clHostMemAllocINTEL", "clDeviceMemAllocINTEL", "clSharedMemAllocINTEL", "clMemFreeINTEL", "clEnqueueMemcpyINTEL",
        "clCreateSemaphoreWithPropertiesKHR", "clEnqueueSignalSemaphoresKHR", "clGetKernelSubGroupInfoKHR", "clIcdGetPlatformIDsKHR",
        "clSetContentSizeBufferPoCL", "clCreateProgramWithILKHR", "clTerminateContextKHR", "clCreateCommandQueueWithPropertiesKHR",
        "clSVMAllocARM", "clGetPlatformInfo", "clEnqueueNDRangeKernel", "clNoSuchFunction", ""};
    for (size_t i = 0; i < LENGTH(names); i++)
        printf("extension function %-40s %s %s\n", names[i], clGetExtensionFunctionAddressForPlatform(platform, names[i]) ? "there" : "missing",
               clGetExtensionFunctionAddress(names[i]) ? "there" : "missing");
    VALUE(clGetExtensionFunctionAddressForPlatform(NULL, "clNoSuchFunction") == NULL);
}

int main(void) {
    open_device();
    platform_and_device();
    queues();
    programs_and_kernels();
    memory();
    extension_functions();
    cl_uint count;
    STATUS(clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof count, &count, NULL));
    VALUE(count);
    STATUS(clGetContextInfo(context, CL_CONTEXT_NUM_DEVICES, sizeof count, &count, NULL));
    VALUE(count);
    STATUS(clReleaseContext(context));
    STATUS(clReleaseContext(NULL));
    STATUS(clUnloadPlatformCompiler(platform));
    return 17; /* the exit code is part of what must not change */
}
