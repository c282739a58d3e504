// Kernels that cannot run several times as if they had run once, one of each sort. Prints results, which are the same in
// every run.
#include "report.h"

#define ITEMS 256

static const char *const SOURCE =
    "kernel void shared_memory(global uint *x) { size_t i = get_global_id(0); x[i] = x[i] * 3 + 1; }\n"
    "kernel void indirect(global uint *x) { size_t i = get_global_id(0); x[i] = x[i] * 3 + 1; }\n"
    "kernel void mapped(global uint *x) { size_t i = get_global_id(0); x[i] = x[i] * 3 + 1; }\n"
    "kernel void mapped_part(global uint *x) { size_t i = get_global_id(0); x[i] = x[i] * 3 + 1; }\n"
    "kernel void host_pointer(global uint *x) { size_t i = get_global_id(0); x[i] = x[i] * 3 + 1; }\n"
    "kernel void too_large(global uint *x, global uint *y) { size_t i = get_global_id(0); x[i] = 1; y[i] = 2; }\n"
    "kernel void possible(global uint *x) { size_t i = get_global_id(0); x[i] = x[i] * 3 + 1; }\n"
    "kernel void after_user_event(global uint *x) { size_t i = get_global_id(0); x[i] = x[i] * 3 + 1; }\n";
static const char *const PRINTS =
    "kernel void prints(global uint *x) { size_t i = get_global_id(0); x[i] = x[i] * 3 + 1; if (i == 0) printf(\"printed %u\\n\", x[0]); }\n";
// The pipe is passed for a buffer that the kernel does not touch: not every compiler knows pipes.
static const char *const PIPED =
    "kernel void piped(global uint *x, global uint *p) { size_t i = get_global_id(0); x[i] = x[i] * 3 + 1; if (i > 99999) p[i] = 1; }\n";

static cl_command_queue queue;

static cl_program build(const char *source, const char *options) {
    cl_int status;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    if (clBuildProgram(program, 1, &device, options, NULL, NULL) == CL_SUCCESS) return program;
    clReleaseProgram(program);
    return NULL;
}

static cl_mem buffer_of(cl_mem_flags flags, void *host) {
    static cl_uint values[ITEMS];
    for (cl_uint i = 0; i < ITEMS; i++) values[i] = i;
    if (!host) return clCreateBuffer(context, flags | CL_MEM_COPY_HOST_PTR, sizeof values, values, NULL);
    memcpy(host, values, sizeof values);
    return clCreateBuffer(context, flags | CL_MEM_USE_HOST_PTR, sizeof values, host, NULL);
}

static void launch(cl_program program, const char *name, cl_mem buffer) {
    cl_int status;
    cl_kernel kernel = clCreateKernel(program, name, &status);
    size_t items = ITEMS;
    cl_uint values[ITEMS], sum = 0;
    STATUS(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    if (!strcmp(name, "indirect")) {
        void *memory = clSVMAlloc(context, CL_MEM_READ_WRITE, 4096, 0);
        STATUS(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof memory, &memory));
    }
    STATUS(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
    STATUS(clFinish(queue));
    fflush(stdout);
    if (strncmp(name, "mapped", 6)) {
        STATUS(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL));
        for (cl_uint i = 0; i < ITEMS; i++) sum = sum * 31 + values[i];
        printf("%s %u\n", name, sum);
    }
    clReleaseKernel(kernel);
}

int main(void) {
    open_device();
    cl_int status;
    queue = clCreateCommandQueue(context, device, 0, &status);
    VALUE(status);
    cl_program program = build(SOURCE, "");
    cl_mem plain = buffer_of(CL_MEM_READ_WRITE, NULL);
    size_t items = ITEMS;
    launch(program, "possible", plain);

    cl_uint *memory = clSVMAlloc(context, CL_MEM_READ_WRITE, ITEMS * sizeof(cl_uint), 0), zero = 0, first;
    STATUS(clEnqueueSVMMemFill(queue, memory, &zero, sizeof zero, ITEMS * sizeof(cl_uint), 0, NULL, NULL));
    cl_kernel kernel = clCreateKernel(program, "shared_memory", &status);
    STATUS(clSetKernelArgSVMPointer(kernel, 0, memory));
    STATUS(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
    STATUS(clEnqueueSVMMemcpy(queue, CL_TRUE, &first, memory, sizeof first, 0, NULL, NULL));
    VALUE(first);
    clReleaseKernel(kernel);
    launch(program, "indirect", plain);

    void *at = clEnqueueMapBuffer(queue, plain, CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL, NULL, &status);
    VALUE(status);
    launch(program, "mapped", plain);
    STATUS(clEnqueueUnmapMemObject(queue, plain, at, 0, NULL, NULL));
    cl_buffer_region first_half = {0, ITEMS * 2};
    cl_mem half = clCreateSubBuffer(plain, 0, CL_BUFFER_CREATE_TYPE_REGION, &first_half, NULL);
    at = clEnqueueMapBuffer(queue, half, CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL, NULL, &status);
    VALUE(status);
    launch(program, "mapped_part", plain);
    STATUS(clEnqueueUnmapMemObject(queue, half, at, 0, NULL, NULL));
    STATUS(clFinish(queue));
    clReleaseMemObject(half);

    void *host = aligned_alloc(4096, ITEMS * sizeof(cl_uint));
    cl_mem there = buffer_of(CL_MEM_READ_WRITE, host);
    launch(program, "host_pointer", there);

    cl_mem large[2];
    kernel = clCreateKernel(program, "too_large", &status);
    for (cl_uint i = 0; i < 2; i++) {
        large[i] = clCreateBuffer(context, CL_MEM_READ_WRITE, (size_t)600 << 20, NULL, &status);
        VALUE(status);
        STATUS(clSetKernelArg(kernel, i, sizeof large[i], &large[i]));
    }
    STATUS(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
    STATUS(clEnqueueReadBuffer(queue, large[1], CL_TRUE, 0, sizeof first, &first, 0, NULL, NULL));
    VALUE(first);
    clReleaseKernel(kernel);

    cl_program printing = build(PRINTS, "");
    launch(printing, "prints", plain);
    cl_program piping = build(PIPED, "");
    cl_mem pipe = piping ? clCreatePipe(context, 0, 4, 16, NULL, &status) : NULL;
    if (pipe) {
        kernel = clCreateKernel(piping, "piped", &status);
        STATUS(clSetKernelArg(kernel, 0, sizeof plain, &plain));
        STATUS(clSetKernelArg(kernel, 1, sizeof pipe, &pipe));
        STATUS(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
    } else {
        fprintf(stderr, "no pipes\n");
    }
    launch(program, "possible", plain);

    cl_event user = clCreateUserEvent(context, &status);
    VALUE(status);
    launch(program, "after_user_event", plain);
    STATUS(clSetUserEventStatus(user, CL_COMPLETE));
    return 0;
}
