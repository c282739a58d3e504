// Ends what does not run, by the library that the argument names: two pops without a push, a range that ends twice, and two
// ids that were never given out. An end of id 0, which stands for no range, is none.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "gputrail.h"

static void* function(const char* library, const char* name) {
    void* found = dlsym(dlopen(library, RTLD_NOW), name);
    if (!found) printf("no %s\n", name);
    return found;
}

static void roctx(void) {
    const char* library = "libroctx64.so.4";
    uint64_t (*start)(const char*) = (uint64_t (*)(const char*))function(library, "roctxRangeStartA");
    void (*stop)(uint64_t) = (void (*)(uint64_t))function(library, "roctxRangeStop");
    int (*pop)(void) = (int (*)(void))function(library, "roctxRangePop");
    uint64_t range = start("range");
    stop(range);
    stop(range);
    stop(range + 1000);
    stop(UINT64_MAX);
    stop(0);
    if (pop() >= 0 || pop() >= 0) printf("a pop\n");
}

static void clperfmarker(void) {
    const char* library = "libCLPerfMarker.so";
    int (*initialize)(void) = (int (*)(void))function(library, "clInitializePerfMarkerAMD");
    int (*end)(void) = (int (*)(void))function(library, "clEndPerfMarkerAMD");
    if (initialize() != 0) printf("not initialised\n");
    if (end() != -3 || end() != -3) printf("an end\n");
}

static void own(void) {
    uint64_t range = 0;
    gputrail_mark_options mark = {.size = sizeof mark, .name = "range"};
    // The first call of ROCTx has markers recorded in a program that uses no GPU.
    ((uint32_t (*)(const char*))function("libroctx64.so.4", "roctxMarkA"))("begin");
    if (gputrail_range_start(&mark, &range) != GPUTRAIL_OK) printf("no range\n");
    if (gputrail_range_end(range) != GPUTRAIL_OK || gputrail_range_end(range) != GPUTRAIL_OK) printf("no end\n");
    if (gputrail_range_end(range + 1000) != GPUTRAIL_NOT_FOUND || gputrail_range_end(UINT64_MAX) != GPUTRAIL_NOT_FOUND) printf("an end\n");
    if (gputrail_range_end(0) != GPUTRAIL_NOT_FOUND) printf("an end of no range\n");
    if (gputrail_range_pop() != GPUTRAIL_STACK_EMPTY || gputrail_range_pop() != GPUTRAIL_STACK_EMPTY) printf("a pop\n");
}

int main(int count, char** arguments) {
    if (count < 2) return 1;
    if (!strcmp(arguments[1], "roctx")) roctx();
    else if (!strcmp(arguments[1], "clperfmarker")) clperfmarker();
    else own();
    printf("done\n");
    return 0;
}
