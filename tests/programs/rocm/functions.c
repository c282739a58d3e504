/* The functions of the runtimes that the stand-in has: their numbers, which are those of the real library, and their arguments. */
#include "standin.h"

/* What C++ calls the types: i int, j unsigned, m unsigned long, Pv void *, Kc const char. */
#define INT(offset, name) {offset, 4, 0, "i", name}
#define UNSIGNED(offset, name) {offset, 4, 0, "j", name}
#define LONG(offset, name) {offset, 8, 0, "m", name}
#define POINTER(offset, name) {offset, 8, 1, "Pv", name}
#define PLACE(offset, name) {offset, 8, 2, "PPv", name}
#define TEXT(offset, name) {offset, 8, 1, "PKc", name}
#define STREAM(offset, name) {offset, 8, 1, "P12ihipStream_t", name}
#define SIZES(offset, name) {offset, 12, 0, "18rocprofiler_dim3_t", name}
#define HANDLE(offset, type, name) {offset, 8, 0, type, name}

const struct function standin_functions[] = {
    {C_HSA, 0, "hsa_init", {{0}}},
    {C_HSA, 1, "hsa_shut_down", {{0}}},
    {C_HSA, 42, "hsa_signal_store_screlease", {HANDLE(0, "12hsa_signal_s", "signal"), {8, 8, 0, "l", "value"}}},
    {C_HSA_AMD, 13, "hsa_amd_memory_pool_allocate",
     {HANDLE(0, "21hsa_amd_memory_pool_s", "memory_pool"), LONG(8, "size"), UNSIGNED(16, "flags"), PLACE(24, "ptr")}},
    {C_HSA_AMD, 14, "hsa_amd_memory_pool_free", {POINTER(0, "ptr")}},
    {C_HSA_AMD, 15, "hsa_amd_memory_async_copy",
     {POINTER(0, "dst"), HANDLE(8, "11hsa_agent_s", "dst_agent"), POINTER(16, "src"), HANDLE(24, "11hsa_agent_s", "src_agent"),
      LONG(32, "size"), UNSIGNED(40, "num_dep_signals"), POINTER(48, "dep_signals"), HANDLE(56, "12hsa_signal_s", "completion_signal")}},
    {C_HIP, 66, "hipDeviceSynchronize", {{0}}},
    {C_HIP, 90, "hipFree", {POINTER(0, "ptr")}},
    {C_HIP, 103, "hipGetDeviceCount", {{0, 8, 1, "Pi", "count"}}},
    {C_HIP, 202, "hipInit", {UNSIGNED(0, "flags")}},
    {C_HIP, 214, "hipLaunchKernel",
     {POINTER(0, "function_address"), SIZES(8, "numBlocks"), SIZES(20, "dimBlocks"), PLACE(32, "args"), LONG(40, "sharedMemBytes"),
      STREAM(48, "stream")}},
    {C_HIP, 215, "hipMalloc", {PLACE(0, "ptr"), LONG(8, "size")}},
    {C_HIP, 222, "hipMallocManaged", {PLACE(0, "dev_ptr"), LONG(8, "size"), UNSIGNED(16, "flags")}},
    {C_HIP, 259, "hipMemcpy", {POINTER(0, "dst"), POINTER(8, "src"), LONG(16, "sizeBytes"), {24, 4, 0, "13hipMemcpyKind", "kind"}}},
    {C_HIP, 268, "hipMemcpyAsync",
     {POINTER(0, "dst"), POINTER(8, "src"), LONG(16, "sizeBytes"), {24, 4, 0, "13hipMemcpyKind", "kind"}, STREAM(32, "stream")}},
    {C_HIP, 288, "hipMemset", {POINTER(0, "dst"), INT(8, "value"), LONG(16, "sizeBytes")}},
    {C_HIP, 303, "hipModuleGetFunction", {PLACE(0, "function"), POINTER(8, "module"), TEXT(16, "kname")}},
    {C_HIP, 308, "hipModuleLaunchKernel",
     {POINTER(0, "func"), UNSIGNED(8, "gridDimX"), UNSIGNED(12, "gridDimY"), UNSIGNED(16, "gridDimZ"), UNSIGNED(20, "blockDimX"),
      UNSIGNED(24, "blockDimY"), UNSIGNED(28, "blockDimZ"), UNSIGNED(32, "sharedMemBytes"), STREAM(40, "stream"),
      PLACE(48, "kernelParams"), PLACE(56, "extra")}},
    {C_HIP, 310, "hipModuleLoadData", {PLACE(0, "module"), POINTER(8, "image")}},
    {C_HIP, 316, "hipModuleUnload", {POINTER(0, "module")}},
    {C_HIP, 334, "hipStreamCreate", {PLACE(0, "stream")}},
    {C_HIP, 337, "hipStreamDestroy", {STREAM(0, "stream")}},
    {C_HIP, 346, "hipStreamSynchronize", {STREAM(0, "stream")}},
    {C_HIP_COMPILER, 0, "__hipPopCallConfiguration",
     {{0, 8, 1, "P4dim3", "gridDim"}, {8, 8, 1, "P4dim3", "blockDim"}, {16, 8, 1, "Pm", "sharedMem"}, PLACE(24, "stream")}},
    {C_HIP_COMPILER, 1, "__hipPushCallConfiguration",
     {SIZES(0, "gridDim"), SIZES(12, "blockDim"), LONG(24, "sharedMem"), STREAM(32, "stream")}},
    {C_HIP_COMPILER, 3, "__hipRegisterFunction", {PLACE(0, "modules"), POINTER(8, "hostFunction"), {16, 8, 1, "Pc", "deviceFunction"}, TEXT(24, "deviceName")}},
    {C_MARKER, 0, "roctxMarkA", {TEXT(0, "message")}},
    {C_MARKER, 1, "roctxRangePushA", {TEXT(0, "message")}},
    {C_MARKER, 2, "roctxRangePop", {{0}}},
    {0, 0, NULL, {{0}}},
};
