// A binary with NVTX in it, which is initialised by itself. Built as a library several times over.
#include <nvtx3/nvToolsExt.h>

// Pushes and pops a range so many times.
extern "C" void calls(long count) {
    for (long n = 0; n < count; n++) {
        nvtxRangePushA("a range");
        nvtxRangePop();
    }
}
