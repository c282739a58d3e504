/* Threads that end, are interrupted or fork at any moment of their OpenCL calls, and programs that close descriptors and write
 * over memory that they do not know:
 *
 *     disturbed cancel-first        a thread that has a cancellation pending makes its first call
 *     disturbed cancel-naming       a thread is cancelled that creates and releases kernels
 *     disturbed forks COUNT         children are forked while two threads retain and release, and make a call each
 *     disturbed handler COUNT       a handler makes calls while the thread retains and releases
 *     disturbed closes COUNT        COUNT calls, all descriptors from 3 on are closed and opened as a file of the program,
 *                                   COUNT calls and new objects
 *     disturbed exits COUNT         exit, in a handler of which registered before all others another thread makes COUNT calls
 *                                   of clGetDeviceIDs
 *     disturbed exits-running       exit while a kernel runs that does not end
 *     disturbed fails COUNT         COUNT commands fail, since the event that they wait for fails
 *     disturbed scribbles COUNT     COUNT calls, each word of the header of the recorder's memory that is no count is
 *                                   overwritten, COUNT calls and new objects
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report.h"

static pthread_barrier_t barrier;
static cl_program program;
static cl_mem buffers[3];
static volatile int stop, handled;

static void *makes_its_first_call(void *unused) {
    cl_uint count = 0;
    (void)unused;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    STATUS(clGetPlatformIDs(0, NULL, &count)); /* no cancellation point in the runtime */
    pthread_testcancel();
    return NULL;
}

static void *creates_kernels(void *unused) {
    (void)unused;
    for (;;) {
        cl_kernel kernel = clCreateKernel(program, "work", NULL);
        clReleaseKernel(kernel);
        pthread_testcancel();
    }
    return NULL;
}

static void joined(pthread_t thread) {
    void *result;
    pthread_join(thread, &result);
    puts(result == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
}

static void cancel_first(void) {
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, makes_its_first_call, NULL);
    pthread_barrier_wait(&barrier);
    pthread_cancel(thread);
    pthread_barrier_wait(&barrier);
    joined(thread);
}

static void cancel_naming(void) {
    const char *source = "kernel void work(global int *data) { data[0] = 1; }\n";
    pthread_t thread;
    program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
    STATUS(clBuildProgram(program, 0, NULL, NULL, NULL, NULL));
    pthread_create(&thread, NULL, creates_kernels, NULL);
    usleep(50000);
    pthread_cancel(thread);
    joined(thread);
}

static void *retains(void *buffer) {
    while (!stop) {
        clRetainMemObject(*(cl_mem *)buffer);
        clReleaseMemObject(*(cl_mem *)buffer);
    }
    return NULL;
}

static void forks(int count) {
    pthread_t threads[2];
    int ended = 0, hung = 0;
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, retains, &buffers[i]);
    for (int i = 0; i < count; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            cl_uint platforms;
            alarm(60);
            clGetPlatformIDs(0, NULL, &platforms);
            _exit(0);
        }
        waitpid(child, &status, 0);
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) hung++;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) ended++;
    }
    stop = 1;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("children: %d ended, %d hung\n", ended, hung);
}

static void handle(int signal) {
    (void)signal;
    clRetainMemObject(buffers[1]);
    clReleaseMemObject(buffers[1]);
    handled++;
}

static void handler(int count) {
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigaction(SIGALRM, &action, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    while (handled < count) {
        clRetainMemObject(buffers[0]);
        clReleaseMemObject(buffers[0]);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    cl_uint references = 0;
    clGetMemObjectInfo(buffers[1], CL_MEM_REFERENCE_COUNT, sizeof references, &references, NULL);
    VALUE(references);
}

static void make_calls(int count) {
    cl_uint platforms;
    for (int i = 0; i < count; i++) clGetPlatformIDs(0, NULL, &platforms);
}

static void create_objects(void) {
    cl_int status;
    clReleaseCommandQueue(clCreateCommandQueue(context, device, 0, &status));
    program = clCreateProgramWithSource(context, 1, &(const char *){"kernel void named_late(void) {}\n"}, NULL, NULL);
    STATUS(clBuildProgram(program, 0, NULL, NULL, NULL, NULL));
    clReleaseKernel(clCreateKernel(program, "named_late", NULL));
}

static void closes(int count) {
    enum { DESCRIPTORS = 1100 };
    struct stat of_file;
    make_calls(count);
    for (int i = 3; i < DESCRIPTORS; i++) close(i);
    int file = open("own", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
    for (int i = 3; i < DESCRIPTORS; i++)
        if (i != file) dup2(file, i);
    make_calls(count);
    create_objects();
    fstat(file, &of_file);
    VALUE(of_file.st_size);
}

static void fails(int count) {
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
    cl_uint references = 0;
    int data = 0;
    for (int i = 0; i < count; i++) {
        cl_event gate = clCreateUserEvent(context, NULL);
        clEnqueueReadBuffer(queue, buffers[0], CL_FALSE, 0, sizeof data, &data, 1, &gate, NULL);
        clSetUserEventStatus(gate, -5);
        clReleaseEvent(gate);
    }
    clFinish(queue);
    /* The runtime's threads may still refer to the last events, and the queue to its last one. */
    for (int i = 0; i < 5000; i++) {
        clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof references, &references, NULL);
        if (references <= 2) break;
        usleep(1000);
    }
    VALUE(references <= 2);
}

static void scribbles(int count) {
    char line[512];
    char *header = NULL;
    FILE *maps = fopen("/proc/self/maps", "r");
    make_calls(count);
    while (fgets(line, sizeof line, maps))
        if (!header && strstr(line, "gputrail-pool")) header = (char *)strtoul(line, NULL, 16);
    fclose(maps);
    if (header)
        for (int i = 0; i < 568; i += 4)
            if (i < 32 || i >= 544) *(volatile unsigned *)(header + i) = 0x5a5a5a5a;
    make_calls(count);
    create_objects();
}

static volatile int exiting, made;

static void *calls_at_exit(void *calls) {
    cl_uint devices;
    while (!exiting) usleep(100);
    for (int i = 0; i < *(int *)calls; i++, made++) clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &devices);
    return NULL;
}

static pthread_t caller;

/* Registered before OpenCL is used, and so run after all other handlers. */
static void at_last(void) {
    if (!caller) return;
    exiting = 1;
    pthread_join(caller, NULL);
    printf("made %d\n", made);
    fflush(stdout);
}

static void exits_running(void) {
    const char *source = "kernel void endless(global volatile int *data) { while (data[0] == 0) data[1]++; }\n";
    program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
    STATUS(clBuildProgram(program, 0, NULL, NULL, NULL, NULL));
    cl_kernel kernel = clCreateKernel(program, "endless", NULL);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
    int zeros[16] = {0};
    cl_mem data = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof zeros, zeros, NULL);
    STATUS(clSetKernelArg(kernel, 0, sizeof data, &data));
    STATUS(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &(size_t){1}, NULL, 0, NULL, NULL));
    STATUS(clFlush(queue));
    usleep(200000);
    exit(0);
}

int main(int count, char **arguments) {
    const char *how = count > 1 ? arguments[1] : "";
    int number = count > 2 ? atoi(arguments[2]) : 1;
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    if (!strcmp(how, "exits")) atexit(at_last);
    /* The runtime's threads inherit the mask: the handler runs in this thread only. */
    if (!strcmp(how, "handler")) pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    open_device();
    for (int i = 0; i < 3; i++) buffers[i] = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, NULL);
    if (!strcmp(how, "cancel-first")) cancel_first();
    if (!strcmp(how, "cancel-naming")) cancel_naming();
    if (!strcmp(how, "forks")) forks(number);
    if (!strcmp(how, "handler")) handler(number);
    if (!strcmp(how, "exits")) pthread_create(&caller, NULL, calls_at_exit, &number);
    if (!strcmp(how, "exits-running")) exits_running();
    if (!strcmp(how, "closes")) closes(number);
    if (!strcmp(how, "fails")) fails(number);
    if (!strcmp(how, "scribbles")) scribbles(number);
    puts("ended");
    return 0;
}
