// Ranges that begin or end while the recording is paused. The first argument names the interface that makes them: ROCTx,
// CLPerfMarker or gputrail.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* interface;
static void* library;

static void* find(const char* name) {
    void* found = dlsym(library, name);
    if (!found) exit((printf("no %s\n", name), 1));
    return found;
}

static void push(const char* name) {
    if (!strcmp(interface, "ROCTx")) {
        ((int (*)(const char*))find("roctxRangePushA"))(name);
    } else if (!strcmp(interface, "CLPerfMarker")) {
        ((int (*)(const char*, const char*))find("clBeginPerfMarkerAMD"))(name, NULL);
    } else {
        ((int (*)(const char*))find("gputrail_range_push_name"))(name);
    }
}

static void pop(void) {
    if (!strcmp(interface, "ROCTx")) {
        ((int (*)(void))find("roctxRangePop"))();
    } else if (!strcmp(interface, "CLPerfMarker")) {
        ((int (*)(void))find("clEndPerfMarkerAMD"))();
    } else {
        ((int (*)(void))find("gputrail_range_pop"))();
    }
}

int main(int count, char** arguments) {
    if (count < 3) return 2;
    interface = arguments[1];
    library = dlopen(arguments[2], RTLD_NOW);
    if (!library) return printf("%s\n", dlerror()), 1;
    ((int (*)(void))find("clInitializePerfMarkerAMD"))();
    push("around all");
    push("popped while off");
    push("last inside");
    pop();
    ((int (*)(uint64_t))find("roctxProfilerPause"))(0);
    pop();
    push("pushed while off");
    ((int (*)(uint64_t))find("roctxProfilerResume"))(0);
    pop();
    push("recorded");
    pop();
    pop();
    return 0;
}
