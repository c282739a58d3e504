// A library with NVTX that is preloaded: its range begins before main, and ends when the program does.
#include <nvtx3/nvToolsExt.h>

__attribute__((constructor)) static void begin(void) {
    nvtxRangePushA("the whole program");
    nvtxMarkA("begun");
}

__attribute__((destructor)) static void end(void) { nvtxRangePop(); }
