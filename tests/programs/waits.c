/* Three queues, one of them without an order: work that waits for work by lists of events and by barriers, and a call
 * that waits for two queues. */
#include "report.h"

static const char *const SOURCE = "kernel void first(global int *data) { data[0] += 1; }\n"
                                  "kernel void second(global int *data) { data[1] += 2; }\n"
                                  "kernel void both(global int *data) { data[2] = data[0] + data[1]; }\n"
                                  "kernel void before(global int *data) { data[3] = 4; }\n"
                                  "kernel void after(global int *data) { data[4] = data[3]; }\n"
                                  "kernel void nothing(global int *data) { data[5] = 5; }\n";

static void enqueue(cl_program program, const char *name, cl_mem buffer, cl_command_queue queue, cl_uint count,
                    const cl_event *events, cl_event *event) {
    size_t global = 1;
    cl_kernel kernel = clCreateKernel(program, name, NULL);
    clSetKernelArg(kernel, 0, sizeof buffer, &buffer);
    STATUS(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, count, events, event));
    clReleaseKernel(kernel);
}

int main(void) {
    open_device();
    const char *source = SOURCE;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
    STATUS(clBuildProgram(program, 1, &device, "", NULL, NULL));
    cl_command_queue one = clCreateCommandQueue(context, device, 0, NULL);
    cl_command_queue two = clCreateCommandQueue(context, device, 0, NULL);
    cl_command_queue loose = clCreateCommandQueue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, NULL);
    int data[8] = {0};
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof data, data, NULL);
    cl_event events[3];
    enqueue(program, "first", buffer, one, 0, NULL, &events[0]);
    enqueue(program, "second", buffer, two, 0, NULL, &events[1]);
    enqueue(program, "both", buffer, one, 2, events, NULL);
    enqueue(program, "before", buffer, loose, 0, NULL, NULL);
    STATUS(clEnqueueBarrierWithWaitList(loose, 0, NULL, NULL));
    enqueue(program, "after", buffer, loose, 0, NULL, &events[2]);
    STATUS(clWaitForEvents(3, events));
    enqueue(program, "nothing", buffer, two, 0, NULL, NULL);
    clFinish(one);
    clFinish(two);
    clFinish(loose);
    STATUS(clEnqueueReadBuffer(one, buffer, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL));
    for (int i = 0; i < 6; i++) VALUE(data[i]);
    return 0;
}
