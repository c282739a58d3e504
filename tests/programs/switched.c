/* Makes calls in threads until its input ends, while its recording is switched on and off:
 *
 *     switched THREADS [fork]
 *
 * Each thread marks each of its steps with a payload that counts them, in a domain of its own (`thread 0`), runs a kernel
 * and waits for it. Prints "ready" when the threads run, and in the end the number of steps of each thread. With `fork` it
 * is a child that runs the threads, and that has to be waited for. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gputrail.h"
#include "report.h"

static void check(cl_int status, const char *what) {
    if (status == CL_SUCCESS) return;
    fprintf(stderr, "%s: %d\n", what, status);
    exit(99);
}

static cl_program program;
static atomic_int ends;
static gputrail_status (*mark)(const gputrail_mark_options *);

static void *run(void *steps) {
    unsigned long *count = steps;
    char domain[32];
    size_t items = 1;
    cl_int status;
    snprintf(domain, sizeof domain, "thread %lu", *count);
    *count = 0;
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    check(status, "queue");
    cl_kernel kernel = clCreateKernel(program, "work", &status);
    check(status, "kernel");
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &status);
    check(status, "buffer");
    check(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), "argument");
    while (!atomic_load(&ends)) {
        gputrail_mark_options step = {.size = sizeof step, .name = "step", .domain = domain,
                                      .payload = ++*count, .payload_kind = GPUTRAIL_PAYLOAD_KIND_UNSIGNED};
        if (mark(&step) != GPUTRAIL_OK) exit(94);
        check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL), "enqueue");
        check(clFinish(queue), "finish");
        usleep(500); /* many switches, and a trace of moderate size */
    }
    return NULL;
}

static int work(int count) {
    const char *text = "kernel void work(global int *data) { data[get_global_id(0)] += 1; }\n";
    pthread_t threads[16];
    unsigned long steps[16];
    char line[64];
    cl_int status;
    void *library;
    open_device();
    program = clCreateProgramWithSource(context, 1, &text, NULL, &status);
    check(status, "program");
    check(clBuildProgram(program, 1, &device, NULL, NULL, NULL), "build");
    library = dlopen("libgputrail.so.0", RTLD_NOW | RTLD_NOLOAD);
    if (library) *(void **)&mark = dlsym(library, "gputrail_mark");
    if (!mark) exit(95);
    for (int i = 0; i < count; i++) {
        steps[i] = (unsigned long)i;
        pthread_create(&threads[i], NULL, run, &steps[i]);
    }
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) continue;
    atomic_store(&ends, 1);
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        printf("%lu\n", steps[i]);
    }
    return 0;
}

int main(int count, char **arguments) {
    int threads = count > 1 ? atoi(arguments[1]) : 1, status;
    if (count < 3) return work(threads);
    pid_t child = fork();
    if (child == 0) return work(threads);
    return waitpid(child, &status, 0) == child ? status : 97;
}
