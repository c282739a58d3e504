/* Does some work and then ends, forks, or becomes another program, as its arguments say:
 *
 *     lives WORK [exit CODE | _exit CODE | quick_exit CODE | abort | crash | signal NUMBER | wait | fork | exec | spawn | threads COUNT | announce | nothing]
 *
 * WORK kernels named `work` are run, by each thread with `threads`. `fork`, `exec` and `spawn` have as many more run by a
 * child, by the program that takes this one's place, and by a program started through a shell; `wait` prints "ready" and
 * sleeps for ever; `announce` prints "working" when the first kernel has ended. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report.h"

static int kernels; /* how many each worker runs */
static int announces;
static cl_program program;

static void check(cl_int status, const char *what) {
    if (status == CL_SUCCESS) return;
    fprintf(stderr, "%s: %d\n", what, status);
    exit(99);
}

static void set_up(void) {
    const char *source = "kernel void work(global int *data) { data[get_global_id(0)] += 1; }\n";
    cl_int status;
    open_device();
    program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    check(status, "program");
    check(clBuildProgram(program, 1, &device, NULL, NULL, NULL), "build");
}

static void *run_kernels(void *unused) {
    cl_int status;
    (void)unused;
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    check(status, "queue");
    cl_kernel kernel = clCreateKernel(program, "work", &status);
    check(status, "kernel");
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &status);
    check(status, "buffer");
    check(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), "argument");
    for (int i = 0; i < kernels; i++) {
        check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &(size_t){1024}, NULL, 0, NULL, NULL), "enqueue");
        if (i == 0 && announces) {
            check(clFinish(queue), "first");
            puts("working");
            fflush(stdout);
        }
    }
    check(clFinish(queue), "finish");
    return NULL;
}

static void work(void) {
    set_up();
    run_kernels(NULL);
}

static int in_threads(int count) {
    pthread_t threads[64];
    set_up();
    for (int i = 0; i < count && i < 64; i++) pthread_create(&threads[i], NULL, run_kernels, NULL);
    for (int i = 0; i < count && i < 64; i++) pthread_join(threads[i], NULL);
    return 0;
}

int main(int count, char **arguments) {
    if (count < 2) return 98;
    kernels = atoi(arguments[1]);
    const char *then = count > 2 ? arguments[2] : "nothing";
    int number = count > 3 ? atoi(arguments[3]) : 0;
    announces = strcmp(then, "announce") == 0;
    char command[4096];
    if (strcmp(then, "threads") == 0) return in_threads(number);
    if (strcmp(then, "fork") == 0) {
        /* A runtime does not survive a fork: one child works beside its parent, and one made after the work only exits. */
        pid_t early = fork();
        work();
        if (early == 0) return 0;
        pid_t late = fork();
        if (late == 0) exit(0);
        for (int i = 0; i < 2; i++)
            if (wait(&number) < 0 || number != 0) return 97;
        return 0;
    }
    if (kernels > 0) work();
    if (strcmp(then, "exit") == 0) exit(number);
    if (strcmp(then, "_exit") == 0) _exit(number);
    if (strcmp(then, "quick_exit") == 0) quick_exit(number);
    if (strcmp(then, "abort") == 0) abort();
    if (strcmp(then, "crash") == 0) *(volatile int *)number = 1;
    if (strcmp(then, "signal") == 0) {
        signal(number, SIG_DFL);
        raise(number);
    }
    if (strcmp(then, "wait") == 0) {
        puts("ready");
        fflush(stdout);
        for (;;) pause();
    }
    if (strcmp(then, "exec") == 0) execl("/proc/self/exe", arguments[0], arguments[1], "exit", "0", NULL);
    if (strcmp(then, "spawn") == 0) {
        snprintf(command, sizeof command, "'%s' %s exit 0", arguments[0], arguments[1]);
        return system(command) == 0 ? 0 : 96;
    }
    return 0;
}
