/* A program that uses CUDA by the driver's library:
 *
 *     program [KERNELS [THREADS]]   each thread copies, sets, launches KERNELS kernels by each API, and a graph
 *     program kill KERNELS          kills itself after its kernels
 *     program others                waits, events, pools of memory and managed memory
 *     program ids                   pushes ids to CUPTI around kernels, with libcupti.so.12 that is in the process
 *     program objects               a context, a stream and a module that come and go, and waits for both
 *     program streams               a kernel in each of two streams: one that does not wait for the default stream, with a priority
 *     program graphs                a graph of three kernels that is launched twice
 *     program ranges                kernels in ranges of markers: nested, of two threads, without kernels, and one that is left open
 *     program sampled KERNELS       contexts and modules whose kernels are sampled
 *     program fork                  a child does nothing and exits, then as above with 2 kernels */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct dim3 { unsigned x, y, z; };

static void *cuda;
static int kernels = 10;

#define CU(name, ...) ((int (*)())dlsym(cuda, #name))(__VA_ARGS__)

static int launch(unsigned block) {
    return ((int (*)(const char *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, uintptr_t, void **,
                     void **))dlsym(cuda, "cuLaunchKernel"))("saxpy", 4, 2, 1, block, 1, 1, 0, 0, NULL, NULL);
}

/* The stream of all threads. */
static uintptr_t stream;

static void *work(void *unused) {
    static const char data[4096];
    uint64_t memory = 0;
    (void)unused;
    if (CU(cuMemAlloc_v2, &memory, sizeof data)) exit(3);
    if (CU(cuMemcpyHtoD_v2, memory, data, sizeof data)) exit(4);
    if (CU(cuMemsetD8_v2, memory, 5, sizeof data)) exit(5);
    for (int i = 0; i < kernels; i++) {
        if (launch(128)) exit(6);
        int (*launch_kernel)(const char *, struct dim3, struct dim3, void **, size_t, uintptr_t) =
            (int (*)(const char *, struct dim3, struct dim3, void **, size_t, uintptr_t))dlsym(cuda, "cudaLaunchKernel");
        if (launch_kernel("_Z5scalePff", (struct dim3){8, 1, 1}, (struct dim3){64, 1, 1}, NULL, (size_t)0, stream)) exit(7);
    }
    if (CU(cuGraphLaunch, NULL, stream)) exit(8);
    if (launch(0) != 1) exit(9);
    if (CU(cuStreamQuery, stream) != 600) exit(10);
    if (CU(cuStreamSynchronize, stream)) exit(11);
    if (CU(cuMemFree_v2, memory)) exit(12);
    return NULL;
}

static void others(void) {
    uint64_t pool = 0, managed = 0, module = 0;
    if (launch(128)) exit(30);
    if (CU(cuEventRecord, (uintptr_t)41, (uintptr_t)0)) exit(31);
    if (CU(cuStreamWaitEvent, (uintptr_t)0, (uintptr_t)41, 0u)) exit(32);
    if (CU(cuEventSynchronize, (uintptr_t)41)) exit(33);
    if (CU(cuMemPoolCreate, &pool, NULL)) exit(34);
    if (CU(cuMemAllocManaged, &managed, (size_t)65536, 1u)) exit(35);
    if (CU(cuMemPoolDestroy, pool)) exit(36);
    if (CU(cuModuleLoadData, &module, "function x\n")) exit(39);
    if (CU(cuMemcpyPeer, (uint64_t)0x2000, (uintptr_t)2, (uint64_t)0x1000, (uintptr_t)1, (size_t)8192)) exit(29);
    if (CU(cuStreamSynchronize, (uintptr_t)0)) exit(37);
    if (CU(cuCtxSynchronize)) exit(38);
}

static void graphs(void) {
    const uintptr_t stream = 13;
    void *graph = NULL, *executable = NULL;
    if (CU(cuStreamBeginCapture_v2, stream, 0)) exit(50);
    for (unsigned node = 1; node <= 3; node++)
        if (((int (*)(const char *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, uintptr_t, void **,
                      void **))dlsym(cuda, "cuLaunchKernel"))("node", node, 1, 1, 32, 1, 1, 0, stream, NULL, NULL))
            exit(51);
    if (CU(cuStreamEndCapture, stream, &graph)) exit(52);
    if (CU(cuGraphInstantiateWithFlags, &executable, graph, (uint64_t)0)) exit(53);
    for (int i = 0; i < 2; i++)
        if (CU(cuGraphLaunch, executable, stream)) exit(54);
    if (CU(cuStreamSynchronize, stream)) exit(55);
    if (CU(cuGraphExecDestroy, executable)) exit(56);
    if (CU(cuGraphDestroy, graph)) exit(57);
}

static int launch_named(const char *name) {
    return ((int (*)(const char *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, uintptr_t, void **,
                     void **))dlsym(cuda, "cuLaunchKernel"))(name, 4, 1, 1, 128, 1, 1, 0, 0, NULL, NULL);
}

/* Ids of kinds 3 and 5 around the second kernel, one of kind 3 around the third. */
static void ids(void) {
    void *cupti = dlopen("libcupti.so.12", RTLD_NOW | RTLD_NOLOAD);
    int (*push)(uint32_t, uint64_t) = cupti ? (int (*)(uint32_t, uint64_t))dlsym(cupti, "cuptiActivityPushExternalCorrelationId") : NULL;
    int (*pop)(uint32_t, uint64_t *) = cupti ? (int (*)(uint32_t, uint64_t *))dlsym(cupti, "cuptiActivityPopExternalCorrelationId") : NULL;
    uint64_t last = 0;
    if (!push || !pop) exit(50);
    if (launch(128) || push(3, 77) || push(5, 78)) exit(51);
    if (launch(128) || pop(5, &last) || last != 78) exit(52);
    if (launch(128) || pop(3, &last) || last != 77) exit(53);
    if (CU(cuCtxSynchronize)) exit(54);
}

static void objects(void) {
    uintptr_t context = 0, stream = 0;
    uint64_t module = 0;
    if (CU(cuCtxCreate_v2, &context, 0u, 0)) exit(60);
    if (CU(cuStreamCreate, &stream, 0u)) exit(61);
    if (CU(cuModuleLoadData, &module, "function x\n") || CU(cuModuleUnload, module)) exit(66);
    if (CU(cuStreamSynchronize, stream)) exit(62);
    if (CU(cuCtxSynchronize)) exit(63);
    if (CU(cuStreamDestroy_v2, stream)) exit(64);
    if (CU(cuCtxDestroy_v2, context)) exit(65);
}

static void streams(void) {
    uintptr_t context = 0, one = 0, other = 0;
    int (*launch_in)(const char *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, uintptr_t, void **, void **) =
        (int (*)(const char *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, uintptr_t, void **,
                 void **))dlsym(cuda, "cuLaunchKernel");
    if (CU(cuCtxCreate_v2, &context, 0u, 0)) exit(70);
    if (CU(cuStreamCreate, &one, 0u) || CU(cuStreamCreateWithPriority, &other, 1u, -1)) exit(71);
    if (launch_in("copy", 1, 1, 1, 32, 1, 1, 0, one, NULL, NULL) || launch_in("scale", 1, 1, 1, 32, 1, 1, 0, other, NULL, NULL)) exit(72);
    if (launch_in("add", 1, 1, 1, 32, 1, 1, 0, 0, NULL, NULL)) exit(73);
    if (CU(cuCtxSynchronize)) exit(74);
}

static int (*push)(const char *), (*pop)(void);

static void *in_thread(void *unused) {
    (void)unused;
    if (push("thread") || launch(128) || pop()) exit(81);
    return NULL;
}

static void ranges(void) {
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    pthread_t thread;
    push = library ? (int (*)(const char *))dlsym(library, "gputrail_range_push_name") : NULL;
    pop = library ? (int (*)(void))dlsym(library, "gputrail_range_pop") : NULL;
    if (!push || !pop) exit(82);
    if (launch(128)) exit(83);
    if (push("outer") || launch(128) || push("inner") || launch(128) || launch(64) || pop() || pop()) exit(84);
    if (push("main") || launch(32)) exit(85);
    if (pthread_create(&thread, NULL, in_thread, NULL) || pthread_join(thread, NULL)) exit(86);
    if (launch(32) || pop()) exit(87);
    if (push("empty") || pop() || launch(128)) exit(88);
    for (int i = 0; i < 200; i++)
        if (push("many") || launch(128) || pop()) exit(89);
    if (push("left") || launch(128)) exit(90);
}

/* The first context is destroyed, the second one is not. */
static void sampled(void) {
    static const char cubin[] = "function _Z5scalePff scale.cu\nfunction bare\n";
    for (int round = 0; round < 2; round++) {
        uintptr_t context = 0;
        uint64_t module = 0;
        if (CU(cuCtxCreate_v2, &context, 0u, 0)) exit(40);
        if (CU(cuModuleLoadData, &module, cubin)) exit(41);
        for (int i = 0; i < kernels; i++)
            if (launch_named("_Z5scalePff")) exit(42);
        if (CU(cuModuleUnload, module)) exit(43);
        if (CU(cuModuleLoadData, &module, cubin)) exit(44);
        if (launch_named("bare")) exit(45);
        if (CU(cuCtxSynchronize)) exit(46);
        if (round == 0 && CU(cuCtxDestroy_v2, context)) exit(47);
    }
}

int main(int count, char **arguments) {
    int threads = 1, kills = count > 1 && !strcmp(arguments[1], "kill");
    int forks = count > 1 && !strcmp(arguments[1], "fork");
    if (forks) kernels = 2;
    else if (kills || (count > 2 && !strcmp(arguments[1], "sampled"))) kernels = atoi(arguments[2]);
    else if (count > 1) kernels = atoi(arguments[1]);
    if (count > 2 && !kills && atoi(arguments[1])) threads = atoi(arguments[2]);
    cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!cuda) return puts(dlerror()), 1;
    if (CU(cuInit, 0u)) return 2;
    if (forks) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) exit(0);
        waitpid(child, &status, 0);
        if (status) return 20;
    }
    if (count > 1 && !strcmp(arguments[1], "sampled")) return sampled(), puts("done"), 0;
    if (count > 1 && !strcmp(arguments[1], "objects")) return objects(), puts("done"), 0;
    if (count > 1 && !strcmp(arguments[1], "streams")) return streams(), puts("done"), 0;
    if (count > 1 && !strcmp(arguments[1], "graphs")) return graphs(), puts("done"), 0;
    if (count > 1 && !strcmp(arguments[1], "ids")) return ids(), puts("done"), 0;
    if (count > 1 && !strcmp(arguments[1], "ranges")) return ranges(), puts("done"), 0;
    if (count > 1 && !strcmp(arguments[1], "others")) return others(), puts("done"), 0;
    uint64_t context = 0;
    if (CU(cuDevicePrimaryCtxRetain, &context, 0) || CU(cuStreamCreate, &stream, 0u)) exit(13);
    pthread_t started[64];
    for (int i = 1; i < threads; i++) pthread_create(&started[i], NULL, work, NULL);
    work(NULL);
    for (int i = 1; i < threads; i++) pthread_join(started[i], NULL);
    printf("done\n");
    fflush(stdout);
    // Longer than gputrail leaves records with CUPTI.
    if (kills) sleep(1), raise(SIGKILL);
    return 0;
}
