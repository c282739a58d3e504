/* A program that uses HIP, by the library that its first argument names:
 *
 *     program LIBRARY [KERNELS [THREADS]]   each thread allocates, copies, launches KERNELS kernels in each of two ways, and frees
 *     program LIBRARY kill KERNELS          kills itself after its kernels
 *     program LIBRARY nothing               loads the library and calls nothing
 *     program LIBRARY hsa                   initialises HSA alone
 *     program LIBRARY fork                  a child does nothing and exits, then 2 kernels
 *     program LIBRARY managed               managed memory
 *     program LIBRARY ranges                kernels in ranges of ROCTx, which the library has, too
 *     program LIBRARY sampled KERNELS       a module that is unloaded, and one that is not
 *     program LIBRARY unfinished            ends without waiting for its kernel
 *     program LIBRARY until FILE            launches kernels until the file is there */
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
enum { TO_DEVICE = 1, TO_HOST };

static void *hip;
static int kernels = 10;

#define CALL(name, type, ...) ((int (*) type)dlsym(hip, #name))(__VA_ARGS__)

struct loaded { void *module, *saxpy, *scale; };

static struct loaded load(void) {
    struct loaded loaded = {0};
    if (CALL(hipModuleLoadData, (void **, const void *), &loaded.module, "image")) exit(3);
    if (CALL(hipModuleGetFunction, (void **, void *, const char *), &loaded.saxpy, loaded.module, "saxpy")) exit(4);
    if (CALL(hipModuleGetFunction, (void **, void *, const char *), &loaded.scale, loaded.module, "_Z5scalePff")) exit(5);
    return loaded;
}

static int launch(void *function, unsigned blocks, unsigned block, void *stream, void **values) {
    return CALL(hipModuleLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **),
                function, blocks, 2, 1, block, 1, 1, 0, stream, values, NULL);
}

/* `kernel<<<8, 64, 256, stream>>>()` */
static int launch_by_name(void *function, void *stream) {
    return CALL(hipLaunchKernel, (void *, struct dim3, struct dim3, void **, size_t, void *), function, (struct dim3){8, 1, 1},
                (struct dim3){64, 1, 1}, NULL, 256, stream);
}

static struct loaded loaded;

static void *work(void *unused) {
    enum { COUNT = 1024 };
    static float ones[COUNT];
    float result[COUNT] = {0}, factor = 2;
    float *x = NULL, *y = NULL;
    void *stream = NULL;
    uint32_t count = COUNT;
    (void)unused;
    if (CALL(hipStreamCreate, (void **), &stream)) exit(10);
    if (CALL(hipMalloc, (void **, size_t), (void **)&x, sizeof ones) || CALL(hipMalloc, (void **, size_t), (void **)&y, sizeof ones)) exit(11);
    for (int i = 0; i < COUNT; i++) ones[i] = 1;
    if (CALL(hipMemcpy, (void *, const void *, size_t, int), x, ones, sizeof ones, TO_DEVICE)) exit(12);
    if (CALL(hipMemcpy, (void *, const void *, size_t, int), y, result, sizeof ones, TO_DEVICE)) exit(13);
    void *values[] = {&count, &factor, &x, &y};
    for (int i = 0; i < kernels; i++) {
        if (launch(loaded.saxpy, 4, 128, NULL, values)) exit(14);
        if (launch_by_name(loaded.scale, stream)) exit(15);
    }
    if (launch(loaded.saxpy, 4, 0, NULL, values) != 1) exit(16);
    if (CALL(hipMemcpyAsync, (void *, const void *, size_t, int, void *), result, y, sizeof ones, TO_HOST, stream)) exit(17);
    if (CALL(hipStreamSynchronize, (void *), stream)) exit(18);
    for (int i = 0; i < COUNT; i++)
        if (result[i] != 2 * (float)kernels) exit(19);
    if (CALL(hipMalloc, (void **, size_t), (void **)&x, (size_t)1 << 40) != 2) exit(20);
    if (CALL(hipFree, (void *), y) || CALL(hipStreamDestroy, (void *), stream)) exit(21);
    return NULL;
}

static void sampled(void) {
    for (int round = 0; round < 2; round++) {
        struct loaded module = load();
        for (int i = 0; i < kernels; i++)
            if (launch_by_name(module.scale, NULL)) exit(30);
        if (launch(module.saxpy, 4, 128, NULL, NULL)) exit(31);
        if (CALL(hipDeviceSynchronize, (void))) exit(32);
        if (round == 0 && CALL(hipModuleUnload, (void *), module.module)) exit(33);
    }
}

static void ranges(void) {
    struct loaded module = load();
    if (CALL(roctxRangePushA, (const char *), "outer") != 0 || CALL(roctxRangePushA, (const char *), "inner") != 1) exit(40);
    if (launch(module.saxpy, 4, 128, NULL, NULL)) exit(41);
    if (CALL(roctxRangePop, (void)) != 1 || CALL(roctxRangePop, (void)) != 0) exit(42);
    CALL(roctxMarkA, (const char *), "here");
    if (CALL(hipDeviceSynchronize, (void))) exit(43);
}

int main(int count, char **arguments) {
    const char *mode = count > 2 ? arguments[2] : "10";
    int threads = count > 3 && atoi(mode) ? atoi(arguments[3]) : 1, forks = !strcmp(mode, "fork");
    kernels = atoi(mode) ? atoi(mode) : forks ? 2 : count > 3 ? atoi(arguments[3]) : 1;
    if (count < 2) return 1;
    hip = dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL);
    if (!hip) return puts(dlerror()), 1;
    if (!strcmp(mode, "nothing")) return puts("done"), 0;
    if (!strcmp(mode, "hsa")) return CALL(hsa_init, (void)), puts("done"), 0;
    if (CALL(hipInit, (unsigned), 0)) return 2;
    if (forks) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) exit(0);
        waitpid(child, &status, 0);
        if (status) return 22;
    }
    if (!strcmp(mode, "sampled")) return sampled(), puts("done"), 0;
    if (!strcmp(mode, "ranges")) return ranges(), puts("done"), 0;
    if (!strcmp(mode, "managed")) {
        void *memory = NULL;
        if (CALL(hipMallocManaged, (void **, size_t, unsigned), &memory, 65536, 1)) return 23;
        return puts("done"), 0;
    }
    loaded = load();
    if (!strcmp(mode, "unfinished")) return launch(loaded.saxpy, 4, 128, NULL, NULL), puts("done"), 0;
    if (!strcmp(mode, "until")) {
        while (access(arguments[3], F_OK)) {
            if (launch(loaded.saxpy, 4, 128, NULL, NULL) || CALL(hipDeviceSynchronize, (void))) return 24;
            usleep(2000);
        }
        return puts("done"), 0;
    }
    pthread_t started[64];
    for (int i = 1; i < threads; i++) pthread_create(&started[i], NULL, work, NULL);
    work(NULL);
    for (int i = 1; i < threads; i++) pthread_join(started[i], NULL);
    puts("done");
    fflush(stdout);
    /* Longer than gputrail leaves records with the SDK. */
    if (!strcmp(mode, "kill")) sleep(1), raise(SIGKILL);
    return 0;
}
