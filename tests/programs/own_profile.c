// A program that profiles itself while it runs kernels: a SIGPROF timer, a timer of the main thread's CPU time, and perf
// events of its own, one counting and one sampling into a ring. Prints what is the same in every run, or what failed.
#define CL_TARGET_OPENCL_VERSION 120
#define _GNU_SOURCE
#include <CL/cl.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t profiled, ticked, elsewhere;
static pid_t main_thread;

static void on_profile(int signal) {
    (void)signal;
    profiled = profiled < 1000000 ? profiled + 1 : profiled;
}

static void on_tick(int signal) {
    (void)signal;
    ticked = 1;
    if (syscall(SYS_gettid) != main_thread)
        elsewhere = 1;
}

static int event(unsigned long config, unsigned long period) {
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attributes,
        .config = config,
        .sample_period = period,
        .sample_type = period ? PERF_SAMPLE_IP | PERF_SAMPLE_TIME : 0,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    return syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0);
}

int main(void) {
    main_thread = syscall(SYS_gettid);
    struct sigaction action = {.sa_handler = on_profile, .sa_flags = SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    action.sa_handler = on_tick;
    sigaction(SIGRTMIN + 3, &action, NULL);
    struct itimerval every = {{0, 4000}, {0, 4000}};
    setitimer(ITIMER_PROF, &every, NULL);
    struct sigevent to = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 3};
    to._sigev_un._tid = main_thread;
    timer_t timer;
    timer_create(CLOCK_THREAD_CPUTIME_ID, &to, &timer);
    struct itimerspec often = {{0, 4000000}, {0, 4000000}};
    timer_settime(timer, 0, &often, NULL);
    int counting = event(PERF_COUNT_SW_TASK_CLOCK, 0), sampling = event(PERF_COUNT_SW_CPU_CLOCK, 1000000);
    printf("own events %d\n", counting >= 0 && sampling >= 0);
    printf("files %d %d\n", counting, sampling);
    long page = sysconf(_SC_PAGESIZE);
    struct perf_event_mmap_page *ring = mmap(NULL, 9 * page, PROT_READ | PROT_WRITE, MAP_SHARED, sampling, 0);
    printf("own ring %d\n", ring != MAP_FAILED);

    cl_platform_id platform;
    cl_device_id device;
    clGetPlatformIDs(1, &platform, NULL);
    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
    const char *source = "kernel void work(global float *x) { float v = get_global_id(0);"
                         " for (int i = 0; i < 200000; i++) v = v * 0.999f + 0.5f; x[get_global_id(0)] = v; }";
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
    clBuildProgram(program, 1, &device, "", NULL, NULL);
    cl_kernel kernel = clCreateKernel(program, "work", NULL);
    cl_mem buffer = clCreateBuffer(context, 0, 256 * 4, NULL, NULL);
    clSetKernelArg(kernel, 0, sizeof buffer, &buffer);
    size_t items = 256;
    // Until everything has been seen at work, which takes as long as it takes.
    unsigned long long counted = 0;
    for (int round = 0; round < 10000 && !(profiled >= 10 && ticked && counted && ring->data_head); round++) {
        clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL);
        clFinish(queue);
        for (volatile int i = 0; i < 1000000; i++)
            ;
        if (read(counting, &counted, sizeof counted) != sizeof counted)
            printf("read: %s\n", strerror(errno));
    }
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    printf("SIGPROF %d, timer %d, of another thread %d, counted %d, sampled %d, blocked %d\n", profiled >= 10, (int)ticked,
           (int)elsewhere, counted > 0, ring->data_head > 0,
           sigismember(&blocked, SIGPROF) + sigismember(&blocked, SIGRTMIN + 3));
    ioctl(sampling, PERF_EVENT_IOC_DISABLE, 0);
    timer_delete(timer);
    return 0;
}
