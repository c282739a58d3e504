// A library with NVTX in it: a second binary that NVTX initialises.
#include <nvtx3/nvToolsExt.h>

extern "C" void other_marks(void) {
    nvtxRangePushA("other binary");
    nvtxMarkA("other moment");
    nvtxRangePop();
}

extern "C" int other_push(void) { return nvtxRangePushA("of the other binary"); }
