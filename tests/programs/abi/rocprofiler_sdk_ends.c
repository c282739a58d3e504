/* A program that is its own tool: what begins has an end, also if the runtime refuses it, and an unload says what its load has said. */
#include "rocprofiler_sdk_checks.h"

enum { BYTES = 4096, MOST = 16 };

static rocprofiler_context_id_t context;
static int enters[3], exits[3], refused, loads, unloads;
static uint64_t open_word, bytes_of_enter;
static struct { uint64_t id, base, size; int storage; const char *uri; } loaded[MOST];

/* Copies, kernels, memory. */
static int place_of(rocprofiler_callback_tracing_kind_t kind) {
    return kind == ROCPROFILER_CALLBACK_TRACING_MEMORY_COPY ? 0 : kind == ROCPROFILER_CALLBACK_TRACING_KERNEL_DISPATCH ? 1 : 2;
}

static void see_code(rocprofiler_callback_tracing_record_t record) {
    const rocprofiler_callback_tracing_code_object_load_data_t *code = record.payload;
    int place;
    if (record.operation != ROCPROFILER_CODE_OBJECT_LOAD || strcmp(code->uri, "gputrail://fill") == 0) return;
    if (record.phase == ROCPROFILER_CALLBACK_PHASE_LOAD) {
        if (loads == MOST) return;
        loaded[loads].id = code->code_object_id;
        loaded[loads].base = code->memory_base;
        loaded[loads].size = code->memory_size;
        loaded[loads].storage = (int)code->storage_type;
        loaded[loads++].uri = code->uri;
        return;
    }
    for (place = 0; place < loads && loaded[place].id != code->code_object_id; place++) {}
    CHECK(place < loads && loaded[place].storage == (int)code->storage_type && loaded[place].base == code->memory_base);
    CHECK(loaded[place].size == code->memory_size && strcmp(loaded[place].uri, code->uri) == 0);
    unloads++;
}

static void see(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *word, void *data) {
    const int place = place_of(record.kind);
    (void)data;
    if (record.kind == ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT) {
        see_code(record);
        return;
    }
    if (record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER) {
        word->value = ++open_word;
        if (place == 0) bytes_of_enter = ((const rocprofiler_callback_tracing_memory_copy_data_t *)record.payload)->bytes;
        add(&enters[place]);
    } else if (record.phase == ROCPROFILER_CALLBACK_PHASE_EXIT) {
        CHECK(word->value != 0 && record.correlation_id.internal != 0);
        if (refused) CHECK(word->value == open_word && record.thread_id == this_thread());
        if (refused && place == 0) {
            const rocprofiler_callback_tracing_memory_copy_data_t *copy = record.payload;
            CHECK(copy->bytes == bytes_of_enter && copy->start_timestamp == 0 && copy->end_timestamp == 0);
            CHECK(record.operation == ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST);
        }
        add(&exits[place]);
    }
}

static int initialise(rocprofiler_client_finalize_t finalise, void *data) {
    const rocprofiler_callback_tracing_kind_t kinds[] = {ROCPROFILER_CALLBACK_TRACING_MEMORY_COPY,
        ROCPROFILER_CALLBACK_TRACING_KERNEL_DISPATCH, ROCPROFILER_CALLBACK_TRACING_MEMORY_ALLOCATION,
        ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT};
    size_t place;
    (void)finalise, (void)data;
    EXPECT(rocprofiler_create_context(&context), SUCCESS);
    for (place = 0; place < sizeof kinds / sizeof *kinds; place++)
        EXPECT(rocprofiler_configure_callback_tracing_service(context, kinds[place], NULL, 0, see, NULL), SUCCESS);
    EXPECT(rocprofiler_start_context(context), SUCCESS);
    return 0;
}

rocprofiler_tool_configure_result_t *rocprofiler_configure(uint32_t version, const char *text, uint32_t priority,
    rocprofiler_client_id_t *id) {
    static rocprofiler_tool_configure_result_t result = {sizeof result, initialise, NULL, NULL};
    (void)version, (void)text, (void)priority;
    id->name = "ends";
    return &result;
}

/* What has begun last has ended, and nothing else. */
static void expect_ends(int copies, int kernels, int memory) {
    const int wanted[3] = {copies, kernels, memory};
    int place;
    for (place = 0; place < 3; place++) {
        AWAIT(exits[place], wanted[place]);
        CHECK(count(&enters[place]) == wanted[place]);
    }
}

int main(void) {
    static const char *source = "kernel void triple(global float *data) { data[get_global_id(0)] *= 3.0f; }\n";
    static char data[2 * BYTES];
    const size_t items = 16;
    cl_platform_id platform;
    cl_device_id device;
    cl_context in;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel;
    cl_mem memory;
    cl_int status;
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    in = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    queue = clCreateCommandQueue(in, device, 0, NULL);
    program = clCreateProgramWithSource(in, 1, &source, NULL, NULL);
    CHECK(clBuildProgram(program, 1, &device, NULL, NULL, NULL) == CL_SUCCESS);
    kernel = clCreateKernel(program, "triple", NULL);
    memory = clCreateBuffer(in, CL_MEM_READ_WRITE, BYTES, NULL, NULL);
    CHECK(clSetKernelArg(kernel, 0, sizeof memory, &memory) == CL_SUCCESS);
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, BYTES, data, 0, NULL, NULL) == CL_SUCCESS);
    expect_ends(1, 1, 1);

    refused = 1;
    CHECK(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, 2 * BYTES, data, 0, NULL, NULL) != CL_SUCCESS);
    expect_ends(2, 1, 1);
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 0, NULL, &items, NULL, 0, NULL, NULL) != CL_SUCCESS);
    expect_ends(2, 2, 1);
    CHECK(clCreateBuffer(in, CL_MEM_READ_WRITE, 0, NULL, &status) == NULL && status != CL_SUCCESS);
    CHECK(count(&enters[2]) == count(&exits[2]));
    refused = 0;

    CHECK(clEnqueueReadBuffer(queue, memory, CL_FALSE, 0, BYTES, data, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clFinish(queue) == CL_SUCCESS);
    AWAIT(exits[0], 3);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseMemObject(memory);
    clReleaseCommandQueue(queue);
    clReleaseContext(in);
    CHECK(loads >= 1 && unloads == loads && loaded[0].storage == ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_MEMORY);
    printf("%s\n", failures ? "failed" : "passed");
    return failures > 0;
}
