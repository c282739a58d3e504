/* rocprofiler-sdk for gputrail: what happens to scratch memory. */
#ifndef ROCPROFILER_SDK_HSA_SCRATCH_MEMORY_ARGS_H
#define ROCPROFILER_SDK_HSA_SCRATCH_MEMORY_ARGS_H

#include <stddef.h>
#include <stdint.h>

/* In C and in C++, a structure of one byte. */
typedef struct rocprofiler_scratch_memory_no_args {
    char empty;
} rocprofiler_scratch_memory_no_args;

/* By the operation and the phase of a callback. */
typedef union rocprofiler_scratch_memory_args_t {
    struct {
        uint64_t dispatch_id;
    } alloc_start;
    struct {
        uint64_t dispatch_id;
        size_t size;
        size_t num_slots;
    } alloc_end;
    struct {
        rocprofiler_scratch_memory_no_args no_args;
    } free_start;
    struct {
        rocprofiler_scratch_memory_no_args no_args;
    } free_end;
    struct {
        rocprofiler_scratch_memory_no_args no_args;
    } async_reclaim_start;
    struct {
        rocprofiler_scratch_memory_no_args no_args;
    } async_reclaim_end;
} rocprofiler_scratch_memory_args_t;

#endif
