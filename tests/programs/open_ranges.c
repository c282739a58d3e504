// Ranges of ROCTx by the library that the first argument names. As the second argument says:
//
//     open     two ranges, one of each kind, do not end
//     kill     the same, and the program is killed
//     steps    four ranges `step`, each with a moment
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int main(int count, char** arguments) {
    void* library = count > 2 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    if (!library) return printf("no library\n"), 1;
    int (*push)(const char*) = (int (*)(const char*))dlsym(library, "roctxRangePushA");
    int (*pop)(void) = (int (*)(void))dlsym(library, "roctxRangePop");
    void (*mark)(const char*) = (void (*)(const char*))dlsym(library, "roctxMarkA");
    uint64_t (*start)(const char*) = (uint64_t (*)(const char*))dlsym(library, "roctxRangeStartA");
    if (!strcmp(arguments[2], "steps")) {
        const char* moments[] = {"in step 1", "in step 2", "in step 3", "in step 4"};
        for (int step = 0; step < 4; step++) {
            push("step");
            mark(moments[step]);
            pop();
        }
        return 0;
    }
    push("not popped");
    start("not ended");
    push("inside");
    mark("moment");
    pop();
    if (!strcmp(arguments[2], "kill")) raise(SIGKILL);
    return 0;
}
