/* A program that is linked with gputrail and uses HIP, by the library that its argument names. It observes itself, from its fifth
 * kernel on or, with a second argument, from the beginning on. Prints what was recorded. */
#include "gputrail.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define CHECK(holds) do { if (!(holds)) return printf("line %d\n", __LINE__), 1; } while (0)

static int calls, kernels, named;

static void deliver(const gputrail_batch *batch, void *user_data) {
    const gputrail_record_header *record = NULL;
    char name[64];
    (void)user_data;
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK) {
        if (record->kind == GPUTRAIL_KIND_API) calls++;
        if (record->kind == GPUTRAIL_KIND_KERNEL_DISPATCH) {
            const gputrail_record_kernel_dispatch *dispatch = (const gputrail_record_kernel_dispatch *)record;
            kernels++;
            named += gputrail_kernel_name(dispatch->kernel, name, sizeof name, NULL) == GPUTRAIL_OK && !strcmp(name, "saxpy");
        }
    }
}

int main(int count, char **arguments) {
    void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL) : NULL, *module = NULL, *function = NULL;
    int (*load)(void **, const void *), (*get)(void **, void *, const char *), (*wait)(void);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
    gputrail_context context;
    gputrail_buffer buffer;
    gputrail_buffer_options options;
    int i;
    CHECK(library != NULL);
    *(void **)&load = dlsym(library, "hipModuleLoadData");
    *(void **)&get = dlsym(library, "hipModuleGetFunction");
    *(void **)&launch = dlsym(library, "hipModuleLaunchKernel");
    *(void **)&wait = dlsym(library, "hipDeviceSynchronize");
    for (i = count > 2 ? -1 : 0; i < 10; i++) {
        if (i == (count > 2 ? -1 : 4)) {
            CHECK(gputrail_initialise() == GPUTRAIL_OK && gputrail_context_create(&context) == GPUTRAIL_OK);
            memset(&options, 0, sizeof options);
            options.size = sizeof options;
            options.format = GPUTRAIL_RECORD_FORMAT_RAW;
            CHECK(gputrail_buffer_create(&options, deliver, NULL, &buffer) == GPUTRAIL_OK);
            CHECK(gputrail_context_trace_to(context, buffer, NULL) == GPUTRAIL_OK && gputrail_context_start(context) == GPUTRAIL_OK);
        }
        if (i < 0) continue;
        if (i == 0) CHECK(load(&module, "image") == 0 && get(&function, module, "saxpy") == 0);
        CHECK(launch(function, 4, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL) == 0);
    }
    CHECK(wait() == 0 && gputrail_buffer_flush(buffer) == GPUTRAIL_OK && gputrail_finalise() == GPUTRAIL_OK);
    printf("%d kernels, %d of them named, %s\n", kernels, named, calls > 2 * kernels ? "calls" : "no calls");
    return 0;
}
