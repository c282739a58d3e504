/* Two command buffers, each of a quick kernel, a slow one, a fill and a barrier, are enqueued in a row and waited for; then the
 * first once more, with a blocking read behind it. The slow kernel takes far longer than 5 ms on any processor. */
#include "report.h"

#define FUNCTION(type, name) type##_fn name = (type##_fn)clGetExtensionFunctionAddressForPlatform(platform, #type)

static const char *source =
    "kernel void quick(global int *data) { data[get_global_id(0)] += 1; }\n"
    "kernel void slow(global int *data) { for (volatile int i = 0; i < 20000000; i++); data[0] = 1; }\n";

int main(void) {
    cl_int status;
    size_t items = 64, one = 1;
    int pattern = 1, number, i;
    open_device();
    FUNCTION(clCreateCommandBufferKHR, create);
    FUNCTION(clFinalizeCommandBufferKHR, finalize);
    FUNCTION(clEnqueueCommandBufferKHR, enqueue);
    FUNCTION(clReleaseCommandBufferKHR, release);
    FUNCTION(clCommandNDRangeKernelKHR, kernel_command);
    FUNCTION(clCommandFillBufferKHR, fill_command);
    FUNCTION(clCommandBarrierWithWaitListKHR, barrier_command);
    if (!create) {
        fprintf(stderr, "the driver has no cl_khr_command_buffer\n");
        return 1;
    }
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    STATUS(clBuildProgram(program, 1, &device, "", NULL, NULL));
    cl_kernel quick = clCreateKernel(program, "quick", &status), slow = clCreateKernel(program, "slow", &status);
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &status);
    STATUS(clSetKernelArg(quick, 0, sizeof memory, &memory));
    STATUS(clSetKernelArg(slow, 0, sizeof memory, &memory));
    cl_command_buffer_khr buffers[2];
    for (i = 0; i < 2; i++) {
        buffers[i] = create(1, &queue, NULL, &status);
        STATUS(kernel_command(buffers[i], NULL, NULL, quick, 1, NULL, &items, NULL, 0, NULL, NULL, NULL));
        STATUS(kernel_command(buffers[i], NULL, NULL, slow, 1, NULL, &one, NULL, 0, NULL, NULL, NULL));
        STATUS(fill_command(buffers[i], NULL, memory, &pattern, 4, 0, 4096, 0, NULL, NULL, NULL));
        STATUS(barrier_command(buffers[i], NULL, 0, NULL, NULL, NULL));
        STATUS(finalize(buffers[i]));
    }
    STATUS(enqueue(0, NULL, buffers[0], 0, NULL, NULL));
    STATUS(enqueue(0, NULL, buffers[1], 0, NULL, NULL));
    STATUS(clFinish(queue));
    STATUS(enqueue(0, NULL, buffers[0], 0, NULL, NULL));
    STATUS(clFinish(queue));
    STATUS(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, sizeof number, &number, 0, NULL, NULL));
    STATUS(release(buffers[0]));
    STATUS(release(buffers[1]));
    clReleaseKernel(quick), clReleaseKernel(slow), clReleaseMemObject(memory);
    clReleaseProgram(program), clReleaseCommandQueue(queue), clReleaseContext(context);
    return 0;
}
