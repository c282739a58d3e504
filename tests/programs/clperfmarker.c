// Calls every function of CLPerfMarker, and prints each status: before and after initialisation, unbalanced, without a
// name, nested, in groups, in threads, and after the end.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static int (*initialize)(void), (*misspelt)(void), (*begin)(const char*, const char*), (*end)(void), (*finalize)(void);

static void* worker(void* group) {
    int failed = 0;
    for (int n = 0; n < 100; n++) {
        failed |= begin("thread work", group);
        failed |= begin("inside", "ignored group");
        failed |= end();
        failed |= end();
    }
    return failed ? group : NULL;
}

int main(void) {
    void* library = dlopen("libCLPerfMarker.so", RTLD_NOW);
    if (!library) return printf("%s\n", dlerror()), 1;
    initialize = (int (*)(void))dlsym(library, "clInitializePerfMarkerAMD");
    misspelt = (int (*)(void))dlsym(library, "clinitializePerfMarkerAMD");
    begin = (int (*)(const char*, const char*))dlsym(library, "clBeginPerfMarkerAMD");
    end = (int (*)(void))dlsym(library, "clEndPerfMarkerAMD");
    finalize = (int (*)(void))dlsym(library, "clFinalizePerfMarkerAMD");

    printf("too early %d %d %d\n", begin("early", NULL), end(), finalize());
    printf("initialize %d %d\n", initialize(), misspelt());
    printf("no name %d\n", begin(NULL, "group"));
    printf("unbalanced %d\n", end());
    printf("begin %d", begin("load the model", "input output"));
    printf(" %d", begin("read", "ignored group"));
    printf(" end %d", end());
    printf(" %d\n", end());
    printf("begin %d", begin("no group", NULL));
    printf(" %d", begin("", ""));
    printf(" end %d", end());
    printf(" %d\n", end());
    pthread_t threads[3];
    static char* groups[] = {"input output", "compute", ""};
    for (int n = 0; n < 3; n++) pthread_create(&threads[n], NULL, worker, groups[n]);
    for (int n = 0; n < 3; n++) {
        void* failed;
        pthread_join(threads[n], &failed);
        printf("thread %d\n", failed == NULL);
    }
    printf("begin %d\n", begin("never ended", NULL));
    printf("finalize %d %d\n", finalize(), finalize());
    printf("too late %d %d %d\n", begin("late", NULL), end(), initialize());
    return 0;
}
