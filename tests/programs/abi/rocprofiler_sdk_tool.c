/* A tool of rocprofiler-sdk, as a library that ROCP_TOOL_LIBRARIES names: it counts calls and work, and says at the end how many. NAME
 * is its name. */
#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>
#include <stdio.h>
#include <string.h>

#ifndef NAME
#define NAME "tool"
#endif

static rocprofiler_client_id_t *self;
static rocprofiler_buffer_id_t buffer;
static unsigned place;
static int kernels, copies, calls, callbacks, symbols, bad;

static void need(rocprofiler_status_t status) {
    if (status == ROCPROFILER_STATUS_SUCCESS) return;
    fprintf(stderr, "%s: %s\n", NAME, rocprofiler_get_status_string(status));
    bad++;
}

static void take(rocprofiler_context_id_t context, rocprofiler_buffer_id_t from, rocprofiler_record_header_t **headers, size_t count,
    void *data, uint64_t drops) {
    size_t one;
    (void)context, (void)from, (void)data;
    bad += drops > 0;
    for (one = 0; one < count; one++) {
        switch (headers[one]->kind) {
        case ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH: kernels++; break;
        case ROCPROFILER_BUFFER_TRACING_MEMORY_COPY: copies++; break;
        default: calls++;
        }
    }
}

static void tell(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *word, void *data) {
    (void)word, (void)data;
    if (record.kind == ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT) {
        if (record.operation == ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER
            && record.phase == ROCPROFILER_CALLBACK_PHASE_LOAD) {
            const rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t *kernel = record.payload;
            /* It is there without a kernel of the program's. */
            symbols += strcmp(kernel->kernel_name, "gputrail_fill") != 0;
        }
    } else {
        __atomic_add_fetch(&callbacks, record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER, __ATOMIC_SEQ_CST);
    }
}

static int initialise(rocprofiler_client_finalize_t finish, void *data) {
    rocprofiler_context_id_t context = {0};
    (void)finish, (void)data;
    need(rocprofiler_create_context(&context));
    need(rocprofiler_create_buffer(context, 1 << 16, 1 << 15, ROCPROFILER_BUFFER_POLICY_LOSSLESS, take, NULL, &buffer));
    need(rocprofiler_configure_buffer_tracing_service(context, ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH, NULL, 0, buffer));
    need(rocprofiler_configure_buffer_tracing_service(context, ROCPROFILER_BUFFER_TRACING_MEMORY_COPY, NULL, 0, buffer));
    need(rocprofiler_configure_buffer_tracing_service(context, ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API, NULL, 0, buffer));
    need(rocprofiler_configure_callback_tracing_service(context, ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API, NULL, 0, tell, NULL));
    need(rocprofiler_configure_callback_tracing_service(context, ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT, NULL, 0, tell, NULL));
    need(rocprofiler_start_context(context));
    return 0;
}

static void finalise(void *data) {
    (void)data;
    need(rocprofiler_flush_buffer(buffer));
    printf("%s %u: %d kernels, %d copies, %s symbols, %s, %d bad\n", self->name, place, kernels, copies, symbols > 0 ? "some" : "no",
        calls > 0 && calls == callbacks ? "as many calls as callbacks" : "calls and callbacks differ", bad);
    fflush(stdout);
}

rocprofiler_tool_configure_result_t *rocprofiler_configure(uint32_t version, const char *text, uint32_t priority,
    rocprofiler_client_id_t *id) {
    static rocprofiler_tool_configure_result_t result = {sizeof result, initialise, finalise, NULL};
    (void)version, (void)text;
    id->name = NAME;
    self = id;
    place = priority;
    return &result;
}
