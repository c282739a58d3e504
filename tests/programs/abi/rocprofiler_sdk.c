/* Calls every function of rocprofiler-sdk but those of counters and samples, and provokes each of their statuses: a program that is
 * its own tool. Argument "force": it has itself configured, before the first call of OpenCL; otherwise that does. */
#define CL_TARGET_OPENCL_VERSION 120
#include "../checks.h"
#include <CL/cl.h>
#include <pthread.h>
#include <rocprofiler-sdk/gputrail.h>
#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void expect(const char *what, int line, rocprofiler_status_t got, rocprofiler_status_t wanted) {
    if (got == wanted) return;
    printf("line %d: %s: %s, expected %s\n", line, what, rocprofiler_get_status_name(got), rocprofiler_get_status_name(wanted));
    failures++;
}
#define EXPECT(call, wanted) expect(#call, __LINE__, call, ROCPROFILER_STATUS_##wanted)

enum { ITEMS = 256, KERNELS = 20, SMALL = 200 };

static const rocprofiler_context_id_t no_context = {1};
static const rocprofiler_buffer_id_t no_buffer = {1};
static rocprofiler_context_id_t calls, records, asked, small;
static rocprofiler_buffer_id_t of_calls, of_work, of_asked, of_small;
static rocprofiler_client_id_t *client;
static rocprofiler_client_finalize_t finish;
static uint64_t main_thread;

static int count(const int *counter) { return __atomic_load_n(counter, __ATOMIC_SEQ_CST); }
static void add(int *counter) { __atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST); }

static uint64_t this_thread(void) { return (uint64_t)syscall(SYS_gettid); }

/* Waits until so many have come: the end of work may be told on another thread, after the program knows of it. */
static void await(const char *what, const int *counter, int wanted) {
    int waited;
    for (waited = 0; waited < 10000 && count(counter) < wanted; waited++) usleep(1000);
    if (count(counter) == wanted) return;
    printf("%s: %d, expected %d\n", what, count(counter), wanted);
    failures++;
}
#define AWAIT(counter, wanted) await(#counter, &counter, wanted)

/* Names and numbers. */

static int find_kind(rocprofiler_callback_tracing_kind_t kind, void *data) {
    const char *name = NULL;
    uint64_t length = 0;
    EXPECT(rocprofiler_query_callback_tracing_kind_name(kind, &name, &length), SUCCESS);
    CHECK(name != NULL && strlen(name) == length);
    ++*(int *)data;
    return 0;
}

static int find_buffer_kind(rocprofiler_buffer_tracing_kind_t kind, void *data) {
    EXPECT(rocprofiler_query_buffer_tracing_kind_name(kind, NULL, NULL), SUCCESS);
    ++*(int *)data;
    return *(int *)data == 5;
}

struct named {
    const char *name;
    rocprofiler_tracing_operation_t operation;
};

static int find_operation(rocprofiler_callback_tracing_kind_t kind, rocprofiler_tracing_operation_t operation, void *data) {
    struct named *wanted = data;
    const char *name = NULL;
    EXPECT(rocprofiler_query_callback_tracing_kind_operation_name(kind, operation, &name, NULL), SUCCESS);
    if (strcmp(name, wanted->name) != 0) return 0;
    wanted->operation = operation;
    return 1;
}

static rocprofiler_tracing_operation_t operation_of(rocprofiler_callback_tracing_kind_t kind, const char *name) {
    struct named wanted = {name, -1};
    EXPECT(rocprofiler_iterate_callback_tracing_kind_operations(kind, find_operation, &wanted), SUCCESS);
    if (wanted.operation < 0) {
        printf("no operation %s\n", name);
        failures++;
    }
    return wanted.operation;
}

static int find_buffer_operation(rocprofiler_buffer_tracing_kind_t kind, rocprofiler_tracing_operation_t operation, void *data) {
    const char *name = NULL;
    uint64_t length = 0;
    EXPECT(rocprofiler_query_buffer_tracing_kind_operation_name(kind, operation, &name, &length), SUCCESS);
    CHECK(name != NULL && strlen(name) == length);
    ++*(int *)data;
    return 0;
}

static rocprofiler_tracing_operation_t launch_operation, enqueue_operation;

static void names(void) {
    int kinds = 0, buffer_kinds = 0, operations = 0;
    const char *name = "";
    uint64_t length = 1;
    EXPECT(rocprofiler_iterate_callback_tracing_kinds(find_kind, &kinds), SUCCESS);
    CHECK(kinds == ROCPROFILER_CALLBACK_TRACING_LAST);
    EXPECT(rocprofiler_iterate_callback_tracing_kinds(NULL, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_iterate_buffer_tracing_kinds(find_buffer_kind, &buffer_kinds), SUCCESS);
    CHECK(buffer_kinds == 5);
    EXPECT(rocprofiler_iterate_buffer_tracing_kinds(NULL, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_query_callback_tracing_kind_name(ROCPROFILER_CALLBACK_TRACING_LAST, &name, &length), ERROR_KIND_NOT_FOUND);
    CHECK(name == NULL && length == 0);
    EXPECT(rocprofiler_query_buffer_tracing_kind_name(ROCPROFILER_BUFFER_TRACING_LAST, &name, NULL), ERROR_KIND_NOT_FOUND);
    EXPECT(rocprofiler_query_callback_tracing_kind_name(ROCPROFILER_CALLBACK_TRACING_GPUTRAIL_OPENCL_API, &name, NULL), SUCCESS);
    CHECK(name != NULL && strcmp(name, "GPUTRAIL_OPENCL_API") == 0);
    EXPECT(rocprofiler_iterate_buffer_tracing_kind_operations(ROCPROFILER_BUFFER_TRACING_MEMORY_COPY, find_buffer_operation,
        &operations), SUCCESS);
    CHECK(operations == ROCPROFILER_MEMORY_COPY_LAST);
    EXPECT(rocprofiler_iterate_buffer_tracing_kind_operations(ROCPROFILER_BUFFER_TRACING_NONE, find_buffer_operation,
        &operations), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_iterate_buffer_tracing_kind_operations(ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT,
        find_buffer_operation, &operations), ERROR_NOT_IMPLEMENTED);
    EXPECT(rocprofiler_iterate_buffer_tracing_kind_operations(ROCPROFILER_BUFFER_TRACING_LAST, find_buffer_operation,
        &operations), ERROR_KIND_NOT_FOUND);
    EXPECT(rocprofiler_iterate_callback_tracing_kind_operations(ROCPROFILER_CALLBACK_TRACING_LAST, find_operation, NULL),
        ERROR_KIND_NOT_FOUND);
    EXPECT(rocprofiler_query_callback_tracing_kind_operation_name(ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT, 1, &name, &length),
        SUCCESS);
    CHECK(strcmp(name, "CODE_OBJECT_LOAD") == 0 && length == 16);
    EXPECT(rocprofiler_query_callback_tracing_kind_operation_name(ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT, 99, &name, NULL),
        ERROR_OPERATION_NOT_FOUND);
    CHECK(name == NULL);
    EXPECT(rocprofiler_query_buffer_tracing_kind_operation_name(ROCPROFILER_BUFFER_TRACING_MARKER_CORE_API, 1, &name, NULL),
        SUCCESS);
    CHECK(strcmp(name, "roctxRangePushA") == 0);
    EXPECT(rocprofiler_query_external_correlation_id_request_kind_name(
        ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_KERNEL_DISPATCH, &name, &length), SUCCESS);
    CHECK(strcmp(name, "KERNEL_DISPATCH") == 0 && length == 15);
    EXPECT(rocprofiler_query_external_correlation_id_request_kind_name(ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_LAST, NULL, NULL),
        ERROR_KIND_NOT_FOUND);
    EXPECT(rocprofiler_query_intercept_table_name(ROCPROFILER_HSA_TABLE, &name, &length), SUCCESS);
    CHECK(strcmp(name, "HSA") == 0 && length == 3);
    EXPECT(rocprofiler_query_intercept_table_name((rocprofiler_intercept_table_t)3, NULL, NULL), ERROR_KIND_NOT_FOUND);
    launch_operation = operation_of(ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API, "hipModuleLaunchKernel");
}

/* The version, the time, the thread, and texts of statuses. */
static void general(void) {
    uint32_t major = 0, minor = 0, patch = 9;
    rocprofiler_version_triplet_t version;
    rocprofiler_timestamp_t first = 0, second = 0;
    rocprofiler_thread_id_t thread = 0;
    EXPECT(rocprofiler_get_version(&major, &minor, &patch), SUCCESS);
    CHECK(major == 1 && minor == 3 && patch == 0);
    EXPECT(rocprofiler_get_version(NULL, NULL, NULL), SUCCESS);
    EXPECT(rocprofiler_get_version_triplet(&version), SUCCESS);
    CHECK(version.major == 1 && version.minor == 3 && version.patch == 0);
    EXPECT(rocprofiler_get_version_triplet(NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_get_timestamp(&first), SUCCESS);
    EXPECT(rocprofiler_get_timestamp(&second), SUCCESS);
    CHECK(first > 0 && second >= first);
    EXPECT(rocprofiler_get_timestamp(NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_get_thread_id(&thread), SUCCESS);
    CHECK(thread == this_thread());
    EXPECT(rocprofiler_get_thread_id(NULL), ERROR_INVALID_ARGUMENT);
    CHECK(strcmp(rocprofiler_get_status_name(ROCPROFILER_STATUS_ERROR_BUFFER_BUSY), "ROCPROFILER_STATUS_ERROR_BUFFER_BUSY") == 0);
    CHECK(rocprofiler_get_status_string(ROCPROFILER_STATUS_SUCCESS) != NULL);
    CHECK(rocprofiler_get_status_name((rocprofiler_status_t)10000) == NULL);
    CHECK(rocprofiler_get_status_string((rocprofiler_status_t)10000) == NULL);
    EXPECT(rocprofiler_spm_destroy_counter_config((rocprofiler_counter_config_id_t){0}), ERROR_NOT_IMPLEMENTED);
    EXPECT(rocprofiler_iterate_runtime_registration_info(NULL, NULL), ERROR_INCOMPATIBLE_REGISTER_VERSION);
}

/* Agents: the host, and a device of OpenCL, also before there is a context for it. */

static rocprofiler_agent_id_t host, device_agent;

static rocprofiler_status_t see_agents(rocprofiler_agent_version_t version, const void **agents, size_t number, void *data) {
    size_t place;
    CHECK(version == ROCPROFILER_AGENT_INFO_VERSION_0 && number >= 2);
    for (place = 0; place < number; place++) {
        const rocprofiler_agent_v0_t *agent = agents[place];
        CHECK(agent->size == sizeof *agent && agent->name != NULL && agent->product_name[0] != 0);
        CHECK(agent->node_id == place);
        if (agent->type == ROCPROFILER_AGENT_TYPE_CPU) {
            CHECK(place == 0 && agent->cpu_cores_count > 0);
            host = agent->id;
        } else {
            CHECK(agent->type == ROCPROFILER_AGENT_TYPE_GPU && agent->cu_count > 0 && agent->mem_banks_count == 1);
            /* What clients divide by, or tell devices by. */
            CHECK(agent->wave_front_size > 0 && agent->max_waves_per_simd > 0 && agent->max_waves_per_cu > 0);
            CHECK(agent->simd_per_cu > 0 && agent->num_xcc > 0 && agent->cu_per_simd_array > 0 && agent->gpu_id != 0);
            CHECK(agent->max_engine_clk_fcompute > 0 && agent->workgroup_max_size > 0 && agent->local_mem_size > 0);
            if (device_agent.handle == 0) device_agent = agent->id;
        }
    }
    ++*(int *)data;
    return ROCPROFILER_STATUS_SUCCESS;
}

static rocprofiler_status_t refuse_agents(rocprofiler_agent_version_t version, const void **agents, size_t number, void *data) {
    (void)version, (void)agents, (void)number, (void)data;
    return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
}

static void agents(void) {
    const size_t size = sizeof(rocprofiler_agent_v0_t);
    int seen = 0;
    EXPECT(rocprofiler_query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0, see_agents, size, &seen), SUCCESS);
    EXPECT(rocprofiler_query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0, see_agents, 8, &seen), SUCCESS);
    CHECK(seen == 2 && host.handle != 0 && device_agent.handle != 0);
    EXPECT(rocprofiler_query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0, refuse_agents, size, NULL), ERROR_OUT_OF_RESOURCES);
    EXPECT(rocprofiler_query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_NONE, see_agents, size, &seen), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0, NULL, size, &seen), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0, see_agents, size + 8, &seen), ERROR_INCOMPATIBLE_ABI);
}

/* Callbacks. */

static int launch_enters, launch_exits, enqueue_enters, enqueue_exits, completes, copy_enters, copy_exits, loads, symbols, streams,
    sets, set_ends, fills, initialisations, allocations, frees, own_enters, own_exits, grid_seen;
static uint64_t launch_ids[KERNELS], kernel_of_symbol, kernel_of_fills, stream_in_use;

static int see_argument(rocprofiler_callback_tracing_kind_t kind, rocprofiler_tracing_operation_t operation, uint32_t number,
    const void *const value, int32_t depth, const char *type, const char *name, const char *text, int32_t followed, void *data) {
    (void)kind, (void)operation, (void)number, (void)depth, (void)followed, (void)data;
    CHECK(value != NULL && type != NULL && text != NULL);
    if (strcmp(name, "blockDimX") != 0) return 0;
    CHECK(*(const unsigned *)value == 16 && strcmp(text, "16") == 0);
    add(&grid_seen);
    return 1;
}

static void see(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *word, void *data) {
    const int is_enter = record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER;
    CHECK(data == &failures && record.context_id.handle == calls.handle && record.payload != NULL);
    switch ((int)record.kind) {
    case ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API: {
        const rocprofiler_callback_tracing_hip_api_data_t *call = record.payload;
        CHECK(call->size == sizeof *call && record.thread_id == this_thread() && record.correlation_id.internal != 0);
        if (is_enter) word->value = record.correlation_id.internal;
        else CHECK(word->value == record.correlation_id.internal && call->retval.hipError_t_retval == 0);
        if (record.operation != launch_operation) break;
        if (is_enter) {
            const int place = count(&launch_enters);
            if (place < KERNELS) launch_ids[place] = record.correlation_id.internal;
            add(&launch_enters);
            EXPECT(rocprofiler_iterate_callback_tracing_kind_operation_args(record, see_argument, 1, NULL), SUCCESS);
            EXPECT(rocprofiler_iterate_callback_tracing_kind_operation_args(record, NULL, 1, NULL), ERROR_INVALID_ARGUMENT);
        } else {
            add(&launch_exits);
        }
        break;
    }
    case ROCPROFILER_CALLBACK_TRACING_GPUTRAIL_OPENCL_API: {
        const rocprofiler_gputrail_call_data_t *call = record.payload;
        CHECK(call->size == sizeof *call && record.operation == enqueue_operation && call->count == 9);
        add(is_enter ? &own_enters : &own_exits);
        break;
    }
    case ROCPROFILER_CALLBACK_TRACING_KERNEL_DISPATCH: {
        const rocprofiler_callback_tracing_kernel_dispatch_data_t *kernel = record.payload;
        const rocprofiler_kernel_dispatch_info_t *info = &kernel->dispatch_info;
        if (info->kernel_id == kernel_of_fills) {
            if (record.operation != ROCPROFILER_KERNEL_DISPATCH_COMPLETE) break;
            CHECK(info->grid_size.x == ITEMS * sizeof(float) && kernel->start_timestamp > 0);
            add(&fills);
            break;
        }
        CHECK(kernel->size == sizeof *kernel && info->size == sizeof *info - sizeof info->reserved_padding);
        CHECK(info->agent_id.handle == device_agent.handle && info->grid_size.x == ITEMS && info->workgroup_size.x == 16);
        CHECK(info->kernel_id == kernel_of_symbol && info->dispatch_id != 0 && record.thread_id == main_thread);
        if (record.operation == ROCPROFILER_KERNEL_DISPATCH_ENQUEUE) {
            if (is_enter) word->value = info->dispatch_id;
            else CHECK(word->value == info->dispatch_id);
            add(is_enter ? &enqueue_enters : &enqueue_exits);
        } else {
            CHECK(record.operation == ROCPROFILER_KERNEL_DISPATCH_COMPLETE && record.phase == ROCPROFILER_CALLBACK_PHASE_NONE);
            CHECK(word->value == info->dispatch_id && kernel->start_timestamp > 0);
            CHECK(kernel->end_timestamp >= kernel->start_timestamp);
            add(&completes);
        }
        EXPECT(rocprofiler_iterate_callback_tracing_kind_operation_args(record, see_argument, 1, NULL), ERROR_NOT_IMPLEMENTED);
        break;
    }
    case ROCPROFILER_CALLBACK_TRACING_MEMORY_COPY: {
        const rocprofiler_callback_tracing_memory_copy_data_t *copy = record.payload;
        CHECK(copy->size == sizeof *copy && copy->bytes == ITEMS * sizeof(float));
        if (record.operation == ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE) CHECK(copy->src_agent_id.handle == host.handle);
        else CHECK(record.operation == ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST && copy->dst_agent_id.handle == host.handle);
        if (is_enter) {
            word->value = 77;
            add(&copy_enters);
        } else {
            CHECK(word->value == 77 && copy->end_timestamp >= copy->start_timestamp);
            add(&copy_exits);
        }
        break;
    }
    case ROCPROFILER_CALLBACK_TRACING_MEMORY_ALLOCATION: {
        const rocprofiler_callback_tracing_memory_allocation_data_t *memory = record.payload;
        CHECK(memory->size == sizeof *memory);
        if (is_enter) break;
        if (record.operation == ROCPROFILER_MEMORY_ALLOCATION_FREE) {
            add(&frees);
        } else {
            CHECK(record.operation == ROCPROFILER_MEMORY_ALLOCATION_ALLOCATE);
            CHECK(memory->allocation_size == ITEMS * sizeof(float) && memory->address.value != 0);
            CHECK(memory->agent_id.handle == device_agent.handle);
            add(&allocations);
        }
        break;
    }
    case ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT:
        if (record.phase != ROCPROFILER_CALLBACK_PHASE_LOAD) break;
        if (record.operation == ROCPROFILER_CODE_OBJECT_LOAD) {
            const rocprofiler_callback_tracing_code_object_load_data_t *code = record.payload;
            CHECK(code->size == sizeof *code && code->code_object_id != 0 && code->uri != NULL);
            if (strcmp(code->uri, "gputrail://fill") == 0) break;
            CHECK(code->agent_id.handle == device_agent.handle);
            add(&loads);
        } else {
            const rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t *kernel = record.payload;
            CHECK(record.operation == ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER);
            CHECK(kernel->size == sizeof *kernel);
            if (strcmp(kernel->kernel_name, "gputrail_fill") == 0) {
                kernel_of_fills = kernel->kernel_id;
                break;
            }
            CHECK(strcmp(kernel->kernel_name, "triple") == 0);
            kernel_of_symbol = kernel->kernel_id;
            add(&symbols);
        }
        break;
    case ROCPROFILER_CALLBACK_TRACING_RUNTIME_INITIALIZATION:
        CHECK(record.operation == ROCPROFILER_RUNTIME_INITIALIZATION_HIP);
        add(&initialisations);
        break;
    case ROCPROFILER_CALLBACK_TRACING_HIP_STREAM: {
        const rocprofiler_callback_tracing_hip_stream_data_t *stream = record.payload;
        CHECK(stream->size == sizeof *stream);
        if (record.operation == ROCPROFILER_HIP_STREAM_CREATE) {
            stream_in_use = stream->stream_id.handle;
            add(&streams);
        } else if (record.operation == ROCPROFILER_HIP_STREAM_SET) {
            CHECK(stream->stream_id.handle == stream_in_use && stream->stream_value.value != 0);
            add(is_enter ? &sets : &set_ends);
        }
        break;
    }
    default:
        printf("a callback of kind %d\n", (int)record.kind);
        failures++;
    }
}

/* Records. */

static int fill_records, call_records, launch_records, ext_records, own_records, kernel_records, copy_records, allocation_records, retirements,
    initialisation_records, asked_kernels, asked_calls, requests, small_records, ext_arguments;
static uint64_t calls_thread, work_thread, small_drops, last_kernel_external;
/* Whether an id has retired: no further record has it. */
static char has_retired[1 << 16];
static int is_blocked;

static int see_ext_argument(rocprofiler_buffer_tracing_kind_t kind, rocprofiler_tracing_operation_t operation, uint32_t number,
    const void *const value, int32_t depth, const char *type, const char *name, const char *text, void *data) {
    (void)kind, (void)operation, (void)number, (void)value, (void)depth, (void)type, (void)data;
    CHECK(name != NULL && text != NULL);
    add(&ext_arguments);
    return 0;
}

static void take_calls(rocprofiler_context_id_t context, rocprofiler_buffer_id_t buffer, rocprofiler_record_header_t **headers,
    size_t number, void *data, uint64_t drops) {
    size_t place;
    CHECK(context.handle == records.handle && buffer.handle == of_calls.handle && data == &of_calls && drops == 0);
    calls_thread = this_thread();
    EXPECT(rocprofiler_flush_buffer(buffer), ERROR_BUFFER_BUSY);
    EXPECT(rocprofiler_destroy_buffer(buffer), ERROR_BUFFER_BUSY);
    for (place = 0; place < number; place++) {
        const rocprofiler_record_header_t *header = headers[place];
        const rocprofiler_buffer_tracing_hip_api_record_t *call = header->payload;
        CHECK(header->category == ROCPROFILER_BUFFER_CATEGORY_TRACING);
        if (header->kind == ROCPROFILER_BUFFER_TRACING_RUNTIME_INITIALIZATION) {
            add(&initialisation_records);
            continue;
        }
        CHECK(call->kind == (rocprofiler_buffer_tracing_kind_t)header->kind && call->end_timestamp >= call->start_timestamp);
        CHECK(call->thread_id == main_thread && call->correlation_id.internal != 0);
        switch ((int)header->kind) {
        case ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API:
            CHECK(call->size == sizeof *call);
            add(&call_records);
            if (call->operation == launch_operation) add(&launch_records);
            break;
        case ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT:
            CHECK(call->size == sizeof(rocprofiler_buffer_tracing_hip_api_ext_record_t));
            if (call->operation == launch_operation) {
                const rocprofiler_buffer_tracing_hip_api_ext_record_t *ext = header->payload;
                CHECK(ext->args.hipModuleLaunchKernel.func != NULL && ext->args.hipModuleLaunchKernel.stream != NULL);
                CHECK(ext->args.hipModuleLaunchKernel.gridDimX * ext->args.hipModuleLaunchKernel.blockDimX == ITEMS);
                CHECK(ext->args.hipModuleLaunchKernel.gridDimY == 1 && ext->args.hipModuleLaunchKernel.blockDimX > 1);
            }
            EXPECT(rocprofiler_iterate_buffer_tracing_record_args(*header, see_ext_argument, NULL), SUCCESS);
            add(&ext_records);
            break;
        case ROCPROFILER_BUFFER_TRACING_GPUTRAIL_OPENCL_API:
            CHECK(call->operation == enqueue_operation);
            EXPECT(rocprofiler_iterate_buffer_tracing_record_args(*header, see_ext_argument, NULL), ERROR_NOT_IMPLEMENTED);
            add(&own_records);
            break;
        default:
            printf("a record of kind %u among calls\n", header->kind);
            failures++;
        }
    }
}

static void take_work(rocprofiler_context_id_t context, rocprofiler_buffer_id_t buffer, rocprofiler_record_header_t **headers,
    size_t number, void *data, uint64_t drops) {
    size_t place;
    CHECK(context.handle == records.handle && buffer.handle == of_work.handle && data == NULL && drops == 0);
    work_thread = this_thread();
    for (place = 0; place < number; place++) {
        const rocprofiler_record_header_t *header = headers[place];
        if (header->kind == ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH) {
            const rocprofiler_buffer_tracing_kernel_dispatch_record_t *kernel = header->payload;
            CHECK(kernel->size == sizeof *kernel && kernel->operation == ROCPROFILER_KERNEL_DISPATCH_COMPLETE);
            CHECK(kernel->start_timestamp > 0 && kernel->end_timestamp >= kernel->start_timestamp);
            if (kernel->dispatch_info.kernel_id == kernel_of_fills) {
                add(&fill_records);
                continue;
            }
            CHECK(kernel->dispatch_info.agent_id.handle == device_agent.handle && kernel->dispatch_info.grid_size.x == ITEMS);
            CHECK(kernel->thread_id == main_thread && kernel->correlation_id.internal != 0);
            CHECK(!has_retired[kernel->correlation_id.internal % sizeof has_retired]);
            last_kernel_external = kernel->correlation_id.external.value;
            add(&kernel_records);
        } else if (header->kind == ROCPROFILER_BUFFER_TRACING_MEMORY_COPY) {
            const rocprofiler_buffer_tracing_memory_copy_record_t *copy = header->payload;
            CHECK(copy->size == sizeof *copy && copy->bytes == ITEMS * sizeof(float));
            add(&copy_records);
        } else if (header->kind == ROCPROFILER_BUFFER_TRACING_MEMORY_ALLOCATION) {
            const rocprofiler_buffer_tracing_memory_allocation_record_t *memory = header->payload;
            CHECK(memory->size == sizeof *memory);
            add(&allocation_records);
        } else {
            const rocprofiler_buffer_tracing_correlation_id_retirement_record_t *retired = header->payload;
            CHECK(header->kind == ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT);
            CHECK(retired->size == sizeof *retired && retired->internal_correlation_id != 0 && retired->timestamp > 0);
            has_retired[retired->internal_correlation_id % sizeof has_retired] = 1;
            add(&retirements);
        }
    }
}

static int supply(rocprofiler_thread_id_t thread, rocprofiler_context_id_t context,
    rocprofiler_external_correlation_id_request_kind_t kind, rocprofiler_tracing_operation_t operation, uint64_t correlation,
    rocprofiler_user_data_t *id, void *data) {
    CHECK(thread == this_thread() && context.handle == asked.handle && correlation != 0 && data == &requests);
    add(&requests);
    if (kind == ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HIP_RUNTIME_API) return 1;
    CHECK(kind == ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_KERNEL_DISPATCH && operation == ROCPROFILER_KERNEL_DISPATCH_ENQUEUE);
    id->value = correlation + 1000000;
    return 0;
}

static void take_asked(rocprofiler_context_id_t context, rocprofiler_buffer_id_t buffer, rocprofiler_record_header_t **headers,
    size_t number, void *data, uint64_t drops) {
    size_t place;
    (void)context, (void)buffer, (void)data, (void)drops;
    for (place = 0; place < number; place++) {
        if (headers[place]->kind == ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH) {
            const rocprofiler_buffer_tracing_kernel_dispatch_record_t *kernel = headers[place]->payload;
            CHECK(kernel->correlation_id.external.value == kernel->correlation_id.internal + 1000000);
            add(&asked_kernels);
        } else {
            const rocprofiler_buffer_tracing_hip_api_record_t *call = headers[place]->payload;
            CHECK(call->operation == launch_operation && call->correlation_id.external.value == 0);
            add(&asked_calls);
        }
    }
}

static void take_small(rocprofiler_context_id_t context, rocprofiler_buffer_id_t buffer, rocprofiler_record_header_t **headers,
    size_t number, void *data, uint64_t drops) {
    (void)context, (void)buffer, (void)headers, (void)data;
    while (count(&is_blocked)) usleep(1000);
    __atomic_add_fetch(&small_records, (int)number, __ATOMIC_SEQ_CST);
    __atomic_store_n(&small_drops, drops, __ATOMIC_SEQ_CST);
}

/* Threads that the library makes. */

static int threads_before, threads_after;

static void before_thread(rocprofiler_runtime_library_t library, void *data) {
    CHECK(library == ROCPROFILER_LIBRARY && data == &threads_before);
    add(&threads_before);
}

static void after_thread(rocprofiler_runtime_library_t library, void *data) {
    (void)library, (void)data;
    add(&threads_after);
}

static void see_table(rocprofiler_intercept_table_t type, uint64_t version, uint64_t instance, void **tables, uint64_t number,
    void *data) {
    (void)type, (void)version, (void)instance, (void)tables, (void)number, (void)data;
    printf("a table is registered\n");
    failures++;
}

/* What can be configured only while tools are initialized. */
static void refuses_configuration(void) {
    rocprofiler_context_id_t context = {0};
    rocprofiler_buffer_id_t buffer = {0};
    rocprofiler_callback_thread_t thread = {0};
    EXPECT(rocprofiler_create_context(&context), ERROR_CONFIGURATION_LOCKED);
    EXPECT(rocprofiler_create_buffer(context, 4096, 2048, ROCPROFILER_BUFFER_POLICY_DISCARD, take_work, NULL, &buffer),
        ERROR_CONFIGURATION_LOCKED);
    EXPECT(rocprofiler_configure_callback_tracing_service(calls, ROCPROFILER_CALLBACK_TRACING_OMPT, NULL, 0, see, NULL),
        ERROR_CONFIGURATION_LOCKED);
    EXPECT(rocprofiler_configure_buffer_tracing_service(records, ROCPROFILER_BUFFER_TRACING_OMPT, NULL, 0, of_work),
        ERROR_CONFIGURATION_LOCKED);
    if (calls.handle == 0) return;
    EXPECT(rocprofiler_configure_external_correlation_id_request_service(calls, NULL, 0, supply, NULL), ERROR_CONFIGURATION_LOCKED);
    EXPECT(rocprofiler_create_callback_thread(&thread), ERROR_CONFIGURATION_LOCKED);
    EXPECT(rocprofiler_assign_callback_thread(of_work, thread), ERROR_CONFIGURATION_LOCKED);
    EXPECT(rocprofiler_at_intercept_table_registration(see_table, ROCPROFILER_HSA_TABLE, NULL), ERROR_CONFIGURATION_LOCKED);
}

static void configure_contexts(void) {
    rocprofiler_context_id_t not_zero = {5};
    int status = 9;
    EXPECT(rocprofiler_create_context(NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_create_context(&not_zero), ERROR_CONTEXT_ID_NOT_ZERO);
    EXPECT(rocprofiler_create_context(&calls), SUCCESS);
    EXPECT(rocprofiler_create_context(&records), SUCCESS);
    EXPECT(rocprofiler_create_context(&asked), SUCCESS);
    EXPECT(rocprofiler_create_context(&small), SUCCESS);
    EXPECT(rocprofiler_create_context(&small), ERROR_CONTEXT_ID_NOT_ZERO);
    EXPECT(rocprofiler_context_is_valid(calls, &status), SUCCESS);
    CHECK(status == 1);
    EXPECT(rocprofiler_context_is_valid(no_context, &status), ERROR_CONTEXT_NOT_FOUND);
    CHECK(status == 0);
    EXPECT(rocprofiler_context_is_valid(calls, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_context_is_active(calls, &status), SUCCESS);
    CHECK(status == 0);
    EXPECT(rocprofiler_context_is_active(no_context, &status), ERROR_CONTEXT_NOT_FOUND);
    EXPECT(rocprofiler_context_is_active(calls, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_start_context(no_context), ERROR_CONTEXT_NOT_FOUND);
    EXPECT(rocprofiler_stop_context(no_context), ERROR_CONTEXT_NOT_FOUND);
    EXPECT(rocprofiler_stop_context(calls), ERROR_CONTEXT_NOT_FOUND);
}

static void configure_callbacks(void) {
    const rocprofiler_callback_tracing_kind_t kinds[] = {ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API,
        ROCPROFILER_CALLBACK_TRACING_KERNEL_DISPATCH, ROCPROFILER_CALLBACK_TRACING_MEMORY_COPY,
        ROCPROFILER_CALLBACK_TRACING_MEMORY_ALLOCATION, ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT,
        ROCPROFILER_CALLBACK_TRACING_RUNTIME_INITIALIZATION, ROCPROFILER_CALLBACK_TRACING_HIP_STREAM,
        ROCPROFILER_CALLBACK_TRACING_RCCL_API, ROCPROFILER_CALLBACK_TRACING_HSA_CORE_API};
    const rocprofiler_callback_tracing_kind_t own = ROCPROFILER_CALLBACK_TRACING_GPUTRAIL_OPENCL_API;
    const rocprofiler_tracing_operation_t unknown = 100000;
    size_t place;
    enqueue_operation = operation_of(own, "clEnqueueNDRangeKernel");
    for (place = 0; place < sizeof kinds / sizeof *kinds; place++) {
        EXPECT(rocprofiler_configure_callback_tracing_service(calls, kinds[place], NULL, 0, see, &failures), SUCCESS);
    }
    EXPECT(rocprofiler_configure_callback_tracing_service(calls, own, &enqueue_operation, 1, see, &failures), SUCCESS);
    EXPECT(rocprofiler_configure_callback_tracing_service(calls, kinds[0], NULL, 0, see, &failures), ERROR_SERVICE_ALREADY_CONFIGURED);
    EXPECT(rocprofiler_configure_callback_tracing_service(no_context, kinds[0], NULL, 0, see, NULL), ERROR_CONTEXT_NOT_FOUND);
    EXPECT(rocprofiler_configure_callback_tracing_service(asked, ROCPROFILER_CALLBACK_TRACING_NONE, NULL, 0, see, NULL),
        ERROR_KIND_NOT_FOUND);
    EXPECT(rocprofiler_configure_callback_tracing_service(asked, ROCPROFILER_CALLBACK_TRACING_LAST, NULL, 0, see, NULL),
        ERROR_KIND_NOT_FOUND);
    EXPECT(rocprofiler_configure_callback_tracing_service(asked, kinds[0], &unknown, 1, see, NULL), ERROR_OPERATION_NOT_FOUND);
    EXPECT(rocprofiler_configure_callback_tracing_service(asked, kinds[0], NULL, 0, NULL, NULL), ERROR_INVALID_ARGUMENT);
}

static void configure_buffers(void) {
    const rocprofiler_buffer_policy_t lossless = ROCPROFILER_BUFFER_POLICY_LOSSLESS;
    rocprofiler_callback_thread_t thread = {0}, none = {99};
    rocprofiler_tracing_operation_t unknown = 100000;
    rocprofiler_buffer_id_t gone = {0};
    EXPECT(rocprofiler_create_buffer(records, 4096, 2048, lossless, take_calls, &of_calls, &of_calls), SUCCESS);
    EXPECT(rocprofiler_create_buffer(records, 4096, 2048, lossless, take_calls, &of_calls, &of_calls), ERROR_SERVICE_ALREADY_CONFIGURED);
    EXPECT(rocprofiler_create_buffer(records, 4096, 2048, lossless, take_calls, &of_calls, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_create_buffer(records, 1 << 20, 1 << 20, ROCPROFILER_BUFFER_POLICY_DISCARD, take_work, NULL, &of_work), SUCCESS);
    EXPECT(rocprofiler_create_buffer(asked, 4096, 1, lossless, take_asked, NULL, &of_asked), SUCCESS);
    /* Room for one record of a kernel. */
    EXPECT(rocprofiler_create_buffer(small, 256, 128, ROCPROFILER_BUFFER_POLICY_DISCARD, take_small, NULL, &of_small), SUCCESS);
    EXPECT(rocprofiler_create_buffer(small, 256, 128, ROCPROFILER_BUFFER_POLICY_DISCARD, take_small, NULL, &gone), SUCCESS);
    EXPECT(rocprofiler_destroy_buffer(gone), SUCCESS);
    EXPECT(rocprofiler_destroy_buffer(gone), ERROR_BUFFER_NOT_FOUND);
    EXPECT(rocprofiler_flush_buffer(gone), ERROR_BUFFER_NOT_FOUND);
    EXPECT(rocprofiler_flush_buffer(no_buffer), ERROR_BUFFER_NOT_FOUND);
    EXPECT(rocprofiler_create_callback_thread(NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_create_callback_thread(&thread), SUCCESS);
    CHECK(thread.handle > 0);
    EXPECT(rocprofiler_assign_callback_thread(of_work, thread), SUCCESS);
    EXPECT(rocprofiler_assign_callback_thread(of_work, none), ERROR_THREAD_NOT_FOUND);
    EXPECT(rocprofiler_assign_callback_thread(no_buffer, thread), ERROR_BUFFER_NOT_FOUND);
    EXPECT(rocprofiler_create_callback_thread(&thread), SUCCESS);
    EXPECT(rocprofiler_assign_callback_thread(of_small, thread), SUCCESS);
    {
        const rocprofiler_buffer_tracing_kind_t kinds[] = {ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API,
            ROCPROFILER_BUFFER_TRACING_RUNTIME_INITIALIZATION};
        const rocprofiler_buffer_tracing_kind_t work[] = {ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH,
            ROCPROFILER_BUFFER_TRACING_MEMORY_COPY, ROCPROFILER_BUFFER_TRACING_MEMORY_ALLOCATION,
            ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT, ROCPROFILER_BUFFER_TRACING_KFD_PAGE_FAULT};
        size_t place;
        for (place = 0; place < sizeof kinds / sizeof *kinds; place++) {
            EXPECT(rocprofiler_configure_buffer_tracing_service(records, kinds[place], NULL, 0, of_calls), SUCCESS);
        }
        for (place = 0; place < sizeof work / sizeof *work; place++) {
            EXPECT(rocprofiler_configure_buffer_tracing_service(records, work[place], NULL, 0, of_work), SUCCESS);
        }
        EXPECT(rocprofiler_configure_buffer_tracing_service(records, ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT,
            &launch_operation, 1, of_calls), SUCCESS);
        EXPECT(rocprofiler_configure_buffer_tracing_service(records, ROCPROFILER_BUFFER_TRACING_GPUTRAIL_OPENCL_API,
            &enqueue_operation, 1, of_calls), SUCCESS);
        EXPECT(rocprofiler_configure_buffer_tracing_service(records, kinds[0], NULL, 0, of_work), ERROR_SERVICE_ALREADY_CONFIGURED);
        EXPECT(rocprofiler_configure_buffer_tracing_service(no_context, kinds[0], NULL, 0, of_work), ERROR_CONTEXT_NOT_FOUND);
        EXPECT(rocprofiler_configure_buffer_tracing_service(small, kinds[0], NULL, 0, no_buffer), ERROR_BUFFER_NOT_FOUND);
        EXPECT(rocprofiler_configure_buffer_tracing_service(small, ROCPROFILER_BUFFER_TRACING_NONE, NULL, 0, of_small),
            ERROR_KIND_NOT_FOUND);
        EXPECT(rocprofiler_configure_buffer_tracing_service(small, ROCPROFILER_BUFFER_TRACING_LAST, NULL, 0, of_small),
            ERROR_KIND_NOT_FOUND);
        EXPECT(rocprofiler_configure_buffer_tracing_service(small, kinds[0], &unknown, 1, of_small), ERROR_OPERATION_NOT_FOUND);
        EXPECT(rocprofiler_configure_buffer_tracing_service(small, work[0], NULL, 0, of_small), SUCCESS);
        EXPECT(rocprofiler_configure_buffer_tracing_service(asked, work[0], NULL, 0, of_asked), SUCCESS);
        EXPECT(rocprofiler_configure_buffer_tracing_service(asked, kinds[0], &launch_operation, 1, of_asked), SUCCESS);
    }
}

static void configure_requests(void) {
    const rocprofiler_external_correlation_id_request_kind_t kinds[] = {
        ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_KERNEL_DISPATCH, ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HIP_RUNTIME_API};
    const rocprofiler_external_correlation_id_request_kind_t none = ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_NONE;
    EXPECT(rocprofiler_configure_external_correlation_id_request_service(no_context, kinds, 2, supply, &requests),
        ERROR_CONTEXT_NOT_FOUND);
    EXPECT(rocprofiler_configure_external_correlation_id_request_service(asked, kinds, 0, supply, &requests), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_configure_external_correlation_id_request_service(asked, kinds, 2, NULL, &requests), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_configure_external_correlation_id_request_service(asked, &none, 1, supply, &requests), ERROR_KIND_NOT_FOUND);
    EXPECT(rocprofiler_configure_external_correlation_id_request_service(asked, kinds, 2, supply, &requests), SUCCESS);
    EXPECT(rocprofiler_configure_external_correlation_id_request_service(asked, kinds, 2, supply, &requests),
        ERROR_SERVICE_ALREADY_CONFIGURED);
}

static void expect_states(int initialised, int finalised) {
    int status = 9;
    EXPECT(rocprofiler_is_initialized(&status), SUCCESS);
    CHECK(status == initialised);
    EXPECT(rocprofiler_is_finalized(&status), SUCCESS);
    CHECK(status == finalised);
}

static int is_tool_finalised;

static int initialise(rocprofiler_client_finalize_t finalise, void *data) {
    int status = 0;
    CHECK(data == &calls && finalise != NULL);
    finish = finalise;
    expect_states(-1, 0);
    names();
    configure_contexts();
    EXPECT(rocprofiler_at_internal_thread_create(before_thread, after_thread, 0, &threads_before), SUCCESS);
    EXPECT(rocprofiler_at_internal_thread_create(NULL, NULL, ROCPROFILER_HIP_LIBRARY, NULL), SUCCESS);
    EXPECT(rocprofiler_at_intercept_table_registration(see_table, ROCPROFILER_HSA_TABLE, NULL), SUCCESS);
    EXPECT(rocprofiler_at_intercept_table_registration(NULL, ROCPROFILER_HSA_TABLE, NULL), ERROR_INVALID_ARGUMENT);
    configure_callbacks();
    configure_buffers();
    configure_requests();
    agents();
    EXPECT(rocprofiler_start_context(calls), SUCCESS);
    EXPECT(rocprofiler_start_context(calls), SUCCESS);
    EXPECT(rocprofiler_context_is_active(calls, &status), SUCCESS);
    CHECK(status == 1);
    EXPECT(rocprofiler_start_context(records), SUCCESS);
    EXPECT(rocprofiler_force_configure(rocprofiler_configure), ERROR_CONFIGURATION_LOCKED);
    return 0;
}

static void finalise(void *data) {
    CHECK(data == &calls);
    expect_states(1, -1);
    EXPECT(rocprofiler_start_context(calls), ERROR_CONFIGURATION_LOCKED);
    EXPECT(rocprofiler_flush_buffer(of_work), SUCCESS);
    is_tool_finalised++;
}

rocprofiler_tool_configure_result_t *rocprofiler_configure(uint32_t version, const char *text, uint32_t priority,
    rocprofiler_client_id_t *id) {
    static rocprofiler_tool_configure_result_t result = {sizeof result, initialise, finalise, &calls};
    CHECK(version == 10300 && strcmp(text, "1.3.0") == 0 && priority == 0 && id->size == sizeof *id);
    CHECK(client == NULL);
    id->name = "the program";
    client = id;
    return &result;
}

/* The program. */

static cl_context in;
static cl_command_queue queue;
static cl_kernel kernel;
static cl_mem memory;

static void set_up(void) {
    static const char *source = "kernel void triple(global float *data) { data[get_global_id(0)] *= 3.0f; }\n";
    cl_platform_id platform;
    cl_device_id device;
    cl_program program;
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    in = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    queue = clCreateCommandQueue(in, device, 0, NULL);
    program = clCreateProgramWithSource(in, 1, &source, NULL, NULL);
    CHECK(clBuildProgram(program, 1, &device, NULL, NULL, NULL) == CL_SUCCESS);
    kernel = clCreateKernel(program, "triple", NULL);
    clReleaseProgram(program);
    memory = clCreateBuffer(in, CL_MEM_READ_WRITE, ITEMS * sizeof(float), NULL, NULL);
    clSetKernelArg(kernel, 0, sizeof memory, &memory);
}

static void launch(int times) {
    const size_t items = ITEMS, group = 16;
    while (times--) CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &group, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clFinish(queue) == CL_SUCCESS);
}

static void copies(void) {
    static float data[ITEMS];
    CHECK(clEnqueueWriteBuffer(queue, memory, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL) == CL_SUCCESS);
}

static void fill(void) {
    const float one = 1;
    CHECK(clEnqueueFillBuffer(queue, memory, &one, sizeof one, 0, ITEMS * sizeof one, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clFinish(queue) == CL_SUCCESS);
}

static void flush(rocprofiler_buffer_id_t buffer) { EXPECT(rocprofiler_flush_buffer(buffer), SUCCESS); }

/* Flushes until so many records have come: the times of work may be known later than its end. */
static void flush_until(const char *what, rocprofiler_buffer_id_t buffer, const int *counter, int wanted) {
    int waited;
    flush(buffer);
    for (waited = 0; waited < 5000 && count(counter) < wanted; waited++) {
        usleep(1000);
        flush(buffer);
    }
    await(what, counter, wanted);
}
#define FLUSH_UNTIL(buffer, counter, wanted) flush_until(#counter, buffer, &counter, wanted)

static void launch_one(void) {
    const int before = count(&kernel_records);
    launch(1);
    FLUSH_UNTIL(of_work, kernel_records, before + 1);
}

/* Ids that are pushed: by the thread itself, and by another one. */

static void *push_for_main(void *data) {
    const rocprofiler_user_data_t first = {41}, second = {42};
    rocprofiler_user_data_t popped = {0};
    (void)data;
    EXPECT(rocprofiler_push_external_correlation_id(records, main_thread, first), SUCCESS);
    EXPECT(rocprofiler_push_external_correlation_id(records, main_thread, second), SUCCESS);
    EXPECT(rocprofiler_pop_external_correlation_id(records, main_thread, &popped), SUCCESS);
    CHECK(popped.value == 42);
    return NULL;
}

static void external_ids(void) {
    const rocprofiler_user_data_t id = {7};
    rocprofiler_user_data_t popped = {9};
    pthread_t other;
    EXPECT(rocprofiler_push_external_correlation_id(no_context, main_thread, id), ERROR_CONTEXT_NOT_FOUND);
    EXPECT(rocprofiler_push_external_correlation_id(records, 1, id), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_pop_external_correlation_id(no_context, main_thread, &popped), ERROR_CONTEXT_NOT_FOUND);
    EXPECT(rocprofiler_pop_external_correlation_id(records, 1, &popped), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_pop_external_correlation_id(records, main_thread, &popped), SUCCESS);
    CHECK(popped.value == 0);
    EXPECT(rocprofiler_push_external_correlation_id(records, main_thread, id), SUCCESS);
    launch_one();
    CHECK(last_kernel_external == 7);
    pthread_create(&other, NULL, push_for_main, NULL);
    pthread_join(other, NULL);
    launch_one();
    CHECK(last_kernel_external == 41);
    EXPECT(rocprofiler_pop_external_correlation_id(records, main_thread, &popped), SUCCESS);
    CHECK(popped.value == 41);
    EXPECT(rocprofiler_pop_external_correlation_id(records, main_thread, NULL), SUCCESS);
    launch_one();
    CHECK(last_kernel_external == 0);
}

/* A buffer whose callback holds up its thread loses records, and counts them. */
static void drops(void) {
    int waited;
    is_blocked = 1;
    EXPECT(rocprofiler_start_context(small), SUCCESS);
    launch(SMALL);
    for (waited = 0; waited < 1000; waited++) usleep(1000);
    __atomic_store_n(&is_blocked, 0, __ATOMIC_SEQ_CST);
    launch(1);
    for (waited = 0; waited < 5000 && (uint64_t)count(&small_records) + small_drops < SMALL + 1; waited++) {
        usleep(1000);
        flush(of_small);
    }
    CHECK(small_drops > 0 && (uint64_t)count(&small_records) + small_drops == SMALL + 1);
    EXPECT(rocprofiler_stop_context(small), SUCCESS);
    EXPECT(rocprofiler_stop_context(small), ERROR_CONTEXT_NOT_FOUND);
}

/* A child has the tool of its parent, which is not called. */
static void child(void) {
    int status = 0;
    const pid_t forked = fork();
    if (forked == 0) {
        failures = 0;
        expect_states(1, 1);
        EXPECT(rocprofiler_flush_buffer(of_work), ERROR_FINALIZED);
        EXPECT(rocprofiler_start_context(small), ERROR_CONFIGURATION_LOCKED);
        _exit(failures);
    }
    CHECK(waitpid(forked, &status, 0) == forked && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv) {
    int before;
    (void)argv;
    main_thread = this_thread();
    general();
    expect_states(0, 0);
    EXPECT(rocprofiler_is_initialized(NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_is_finalized(NULL), ERROR_INVALID_ARGUMENT);
    refuses_configuration();
    if (argc > 1) {
        EXPECT(rocprofiler_force_configure(rocprofiler_configure), SUCCESS);
        CHECK(client != NULL);
    }
    set_up();
    CHECK(client != NULL && client->handle != 0);
    expect_states(1, 0);
    refuses_configuration();
    EXPECT(rocprofiler_force_configure(rocprofiler_configure), ERROR_CONFIGURATION_LOCKED);

    EXPECT(rocprofiler_start_context(asked), SUCCESS);
    launch(KERNELS);
    EXPECT(rocprofiler_stop_context(asked), SUCCESS);
    copies();
    fill();
    AWAIT(fills, 1);
    AWAIT(completes, KERNELS);
    AWAIT(copy_exits, 2);
    CHECK(launch_enters == KERNELS && launch_exits == KERNELS && grid_seen == KERNELS);
    CHECK(enqueue_enters == KERNELS && enqueue_exits == KERNELS && copy_enters == 2);
    CHECK(own_enters == KERNELS && own_exits == KERNELS);
    CHECK(loads >= 1 && symbols == 1 && streams == 1 && initialisations == 1 && allocations == 1);
    CHECK(sets > KERNELS && sets == set_ends);

    FLUSH_UNTIL(of_work, kernel_records, KERNELS);
    FLUSH_UNTIL(of_work, fill_records, 1);
    FLUSH_UNTIL(of_asked, asked_kernels, KERNELS);
    flush(of_calls);
    CHECK(kernel_records == KERNELS && fill_records == 1 && copy_records == 2 && allocation_records == 1 && retirements > 0);
    CHECK(launch_records == KERNELS && ext_records == KERNELS && own_records == KERNELS && call_records > launch_records);
    CHECK(ext_arguments == 11 * KERNELS && initialisation_records == 1);
    CHECK(asked_kernels == KERNELS && asked_calls == KERNELS && requests == 2 * KERNELS);
    CHECK(calls_thread != 0 && calls_thread != main_thread && work_thread != main_thread && work_thread != calls_thread);
    CHECK(threads_before >= 2 && threads_before == threads_after);

    external_ids();
    drops();
    child();

    before = count(&launch_enters);
    EXPECT(rocprofiler_stop_context(calls), SUCCESS);
    launch(1);
    CHECK(count(&launch_enters) == before);
    EXPECT(rocprofiler_start_context(calls), SUCCESS);
    launch(1);
    CHECK(count(&launch_enters) == before + 1);

    clReleaseMemObject(memory);
    clReleaseKernel(kernel);
    clReleaseCommandQueue(queue);
    clReleaseContext(in);
    AWAIT(frees, 1);
    CHECK(is_tool_finalised == 0);
    finish(*client);
    CHECK(is_tool_finalised == 1);
    expect_states(1, 1);
    EXPECT(rocprofiler_flush_buffer(of_work), ERROR_FINALIZED);
    EXPECT(rocprofiler_stop_context(calls), SUCCESS);
    EXPECT(rocprofiler_start_context(calls), ERROR_CONFIGURATION_LOCKED);
    EXPECT(rocprofiler_destroy_buffer(of_work), SUCCESS);
    printf("%s\n", failures ? "failed" : "passed");
    return failures > 0;
}
