/* Kernels of three names, a fill and a copy, whose times the program asks for itself.
 *
 *     timed ROUNDS [late]
 *
 * Each line of the output is the name of the work, its length in nanoseconds as its event gives it, and 1 if it was computed
 * rightly. With `late`, a destructor makes one call more, when the handlers of exit have run. */
#include "report.h"

enum { ITEMS = 256 };

static const char *source = "kernel void add(global int *data, int n) { for (int i = 0; i < n; i++) data[get_global_id(0)] += 1; }\n"
                            "kernel void twice(global int *data, int n) { for (int i = 0; i < n; i++) data[get_global_id(0)] *= 2; }\n"
                            "kernel void clear(global int *data, int n) { data[get_global_id(0)] = n - n; }\n";
static int data[ITEMS], is_late;

static void need(cl_int status, const char *what) {
    if (status == CL_SUCCESS) return;
    printf("%s: %d\n", what, status);
    exit(1);
}

static void say(const char *name, cl_event event, int is_right) {
    cl_ulong start = 0, end = 0;
    need(clWaitForEvents(1, &event), "clWaitForEvents");
    need(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL), "start");
    need(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL), "end");
    printf("%s %llu %d\n", name, (unsigned long long)(end - start), is_right);
    clReleaseEvent(event);
}

__attribute__((destructor)) static void at_last(void) {
    if (is_late) printf("late: %d\n", clRetainContext(context));
}

int main(int count, char **arguments) {
    int rounds = count > 1 ? atoi(arguments[1]) : 1;
    cl_int status;
    open_device();
    is_late = count > 2 && strcmp(arguments[2], "late") == 0;
    cl_command_queue queue = clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, &status);
    need(status, "queue");
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    need(clBuildProgram(program, 1, &device, NULL, NULL, NULL), "build");
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof data, NULL, &status);
    need(status, "buffer");
    cl_event event;
    need(clEnqueueFillBuffer(queue, memory, &(int){1}, sizeof(int), 0, sizeof data, 0, NULL, &event), "fill");
    say("fill", event, 1);
    static const char *names[] = {"add", "twice", "clear"};
    for (int round = 0; round < rounds; round++) {
        const char *name = names[round % 3];
        cl_kernel kernel = clCreateKernel(program, name, &status);
        need(status, name);
        need(clSetKernelArg(kernel, 0, sizeof memory, &memory), "argument");
        need(clSetKernelArg(kernel, 1, sizeof(int), &(int){100 * (round + 1)}), "argument");
        need(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &(size_t){ITEMS}, NULL, 0, NULL, &event), name);
        say(name, event, 1);
        clReleaseKernel(kernel);
    }
    need(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, sizeof data, data, 0, NULL, &event), "read");
    int is_right = 1;
    for (int i = 0; i < ITEMS; i++) is_right &= data[i] == data[0];
    say("read", event, is_right && (rounds % 3 != 0 || data[0] == 0));
    return 0;
}
