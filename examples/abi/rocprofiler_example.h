/* What the examples of ROCProfiler v1 have in common. Each is a tool: the library of ROCProfiler loads it into a program.
 *
 *   cc -std=c99 -D_GNU_SOURCE -Wall -Wextra -shared -fPIC -Iinclude -o libkernels.so rocprofiler_kernels.c -lpthread
 *   ROCP_TOOL_LIB=./libkernels.so FEATURES=TASK_CLOCK,CPUS_UTILIZED LD_PRELOAD=librocprofiler64.so.1 ./program
 *   ROCP_TOOL_LIB=./libkernels.so FEATURES=SQ_WAVES,L2CacheHit gputrail demo --tool librocprofiler64.so.1
 *
 * `include` is tools/abi/rocprofiler/include; librocprofiler64.so.1 lies beside libgputrail.so.0.
 */
#ifndef ROCPROFILER_EXAMPLE_H
#define ROCPROFILER_EXAMPLE_H

#include "rocprofiler.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FEATURES = 16 };

/* Says what failed, and goes on: a tool does not end the program. */
static bool succeed(const char *what, hsa_status_t status) {
    if (status == HSA_STATUS_SUCCESS) return true;
    fprintf(stderr, "%s: %s\n", what, rocprofiler_error_string());
    return false;
}
#define SUCCEED(call) succeed(#call, call)

/* The features that the variable FEATURES names, with commas between them. Their names last. */
static inline uint32_t make_features(rocprofiler_feature_t *features) {
    static char names[1024];
    static const char *starts[MOST_FEATURES];
    static uint32_t count;
    uint32_t of;
    if (count == 0) {
        char *name;
        snprintf(names, sizeof names, "%s", getenv("FEATURES") ? getenv("FEATURES") : "TASK_CLOCK");
        for (name = strtok(names, ","); name && count < MOST_FEATURES; name = strtok(NULL, ",")) starts[count++] = name;
    }
    memset(features, 0, MOST_FEATURES * sizeof *features);
    for (of = 0; of < count; of++) {
        features[of].kind = ROCPROFILER_FEATURE_KIND_METRIC;
        features[of].name = starts[of];
    }
    return count;
}

static inline void print_results(const rocprofiler_feature_t *features, uint32_t count) {
    uint32_t of;
    for (of = 0; of < count; of++) {
        const rocprofiler_feature_t *feature = &features[of];
        printf("  %u: %s", of, feature->name);
        switch (feature->data.kind) {
        case ROCPROFILER_DATA_KIND_INT64: printf(" result_int64 (%" PRIu64 ")\n", feature->data.result_int64); break;
        case ROCPROFILER_DATA_KIND_DOUBLE: printf(" result_double (%f)\n", feature->data.result_double); break;
        default: printf(" has no value\n");
        }
    }
}

#endif
