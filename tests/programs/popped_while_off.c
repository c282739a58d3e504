// Ranges of ROCTx that begin or end while the recording is paused; the first argument names the library.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

int main(int count, char** arguments) {
    void* library = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    if (!library) return printf("no library\n"), 1;
    int (*push)(const char*) = (int (*)(const char*))dlsym(library, "roctxRangePushA");
    int (*pop)(void) = (int (*)(void))dlsym(library, "roctxRangePop");
    void (*mark)(const char*) = (void (*)(const char*))dlsym(library, "roctxMarkA");
    int (*pause)(uint64_t) = (int (*)(uint64_t))dlsym(library, "roctxProfilerPause");
    int (*resume)(uint64_t) = (int (*)(uint64_t))dlsym(library, "roctxProfilerResume");
    push("around all");
    push("popped while off");
    mark("last inside");
    pause(0);
    pop();
    push("pushed while off");
    resume(0);
    pop();
    push("recorded");
    pop();
    pop();
    return 0;
}
