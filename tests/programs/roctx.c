// Calls every function of ROCTx in the library that the first argument names, and prints what they return.
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static void* library;
#define ROCTX(type, name, ...) ((type (*)(__VA_ARGS__))function(#name))

static void* function(const char* name) {
    void* found = dlsym(library, name);
    if (!found) printf("no %s\n", name);
    return found;
}

static void* worker(void* range) {
    ROCTX(int, roctxNameOsThread, const char*)("roctx worker");
    for (int n = 0; n < 50; n++) {
        ROCTX(int, roctxRangePushA, const char*)("in thread");
        ROCTX(void, roctxMarkA, const char*)("moment in thread");
        ROCTX(int, roctxRangePop, void)();
    }
    ROCTX(void, roctxRangeStop, uint64_t)(*(uint64_t*)range);
    return NULL;
}

int main(int count, char** arguments) {
    library = dlopen(arguments[1], RTLD_NOW);
    if (count < 2 || !library) return printf("%s\n", dlerror()), 1;
    printf("push %d\n", ROCTX(int, roctxRangePushA, const char*)("outer"));
    printf("push %d\n", ROCTX(int, roctxRangePushA, const char*)("inner"));
    ROCTX(void, roctxMarkA, const char*)("moment");
    printf("pop %d\n", ROCTX(int, roctxRangePop, void)());
    printf("pop %d\n", ROCTX(int, roctxRangePop, void)());
    printf("pop without push %d\n", ROCTX(int, roctxRangePop, void)());

    uint64_t range = ROCTX(uint64_t, roctxRangeStartA, const char*)("moves"), thread = 0;
    uint64_t other = ROCTX(uint64_t, roctxRangeStartA, const char*)("overlaps");
    printf("ranges %d\n", range != 0 && other != range);
    pthread_t threads[2];
    for (int n = 0; n < 2; n++) pthread_create(&threads[n], NULL, worker, n ? &other : &range);
    for (int n = 0; n < 2; n++) pthread_join(threads[n], NULL);

    printf("thread id %d\n", ROCTX(int, roctxGetThreadId, uint64_t*)(&thread) == 0 && thread == (uint64_t)syscall(SYS_gettid));
    const uint64_t agent = 77;
    printf("names %d %d %d\n", ROCTX(int, roctxNameHsaAgent, const char*, const uint64_t*)("the agent", &agent),
           ROCTX(int, roctxNameHipDevice, const char*, int)("the device", 1),
           ROCTX(int, roctxNameHipStream, const char*, void*)("the stream", (void*)0x50));
    printf("pause %d %d\n", ROCTX(int, roctxProfilerPause, uint64_t)(0), ROCTX(int, roctxProfilerPause, uint64_t)(0));
    printf("push while paused %d\n", ROCTX(int, roctxRangePushA, const char*)("not recorded"));
    printf("pop while paused %d\n", ROCTX(int, roctxRangePop, void)());
    printf("resume %d %d\n", ROCTX(int, roctxProfilerResume, uint64_t)(0), ROCTX(int, roctxProfilerResume, uint64_t)(0));
    ROCTX(void, roctxMarkA, const char*)("after the pause");
    printf("version %d\n", ROCTX(uint32_t, roctx_version_major, void)() == 4 && ROCTX(uint32_t, roctx_version_minor, void)() >= 1);
    printf("error '%s'\n", ROCTX(const char*, roctracer_error_string, void)());
    return 0;
}
