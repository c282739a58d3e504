/* A program that is its own tool: samples of the program counter in kernels of OpenCL, what other contexts and processes may then do,
 * and each status. Arguments: "called", which is as none, but the first call of OpenCL configures it; and those of the processes that
 * it starts: "other", beside it, and "debugged". "forbidden": the system has no perf events. */
#include "rocprofiler_sdk_checks.h"
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { ROUNDS = 20000, LAUNCHES = 100, MOST = 1000, PUSHED = 55 };

static const uint64_t interval = 1000; /* Microseconds. */
static const rocprofiler_pc_sampling_method_t by_host = ROCPROFILER_PC_SAMPLING_METHOD_HOST_TRAP;
static const rocprofiler_pc_sampling_unit_t in_time = ROCPROFILER_PC_SAMPLING_UNIT_TIME;
static const char *mode = "";
static rocprofiler_context_id_t sampled, other, counted, dispatched, coded;
static rocprofiler_buffer_id_t of_samples, of_others;
static rocprofiler_client_id_t *client;
static rocprofiler_client_finalize_t finish;

/* Configurations that are offered. */

static rocprofiler_pc_sampling_configuration_t seen;
static size_t configurations;

static rocprofiler_status_t see(const rocprofiler_pc_sampling_configuration_t *all, size_t number, void *data) {
    CHECK(data == &seen);
    configurations = number;
    if (number > 0) seen = all[0];
    return ROCPROFILER_STATUS_SUCCESS;
}

static rocprofiler_status_t refuse(const rocprofiler_pc_sampling_configuration_t *all, size_t number, void *data) {
    (void)all, (void)number, (void)data;
    return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
}

static void expect_configuration(size_t least, size_t most) {
    EXPECT(rocprofiler_query_pc_sampling_agent_configurations(device_agent, see, &seen), SUCCESS);
    CHECK(configurations == 1 && seen.size == sizeof seen && seen.method == by_host && seen.unit == in_time);
    CHECK(seen.min_interval <= least && seen.max_interval >= most && seen.flags == ROCPROFILER_PC_SAMPLING_CONFIGURATION_FLAGS_NONE);
}

static void queries(void) {
    EXPECT(rocprofiler_query_pc_sampling_agent_configurations(device_agent, NULL, NULL), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_query_pc_sampling_agent_configurations(no_agent, see, &seen), ERROR_AGENT_NOT_FOUND);
    EXPECT(rocprofiler_query_pc_sampling_agent_configurations(device_agent, refuse, NULL), ERROR_OUT_OF_RESOURCES);
    EXPECT(rocprofiler_query_pc_sampling_agent_configurations(host, see, &seen), SUCCESS);
    CHECK(configurations == 0);
    expect_configuration(1000, 1000);
    CHECK(seen.min_interval < seen.max_interval);
}

/* A way of sampling the device. */
static rocprofiler_status_t configure(rocprofiler_context_id_t context, uint64_t every, rocprofiler_buffer_id_t buffer) {
    return rocprofiler_configure_pc_sampling_service(context, device_agent, by_host, in_time, every, buffer, 0);
}

static rocprofiler_status_t configure_as(rocprofiler_agent_id_t agent, rocprofiler_pc_sampling_method_t method,
    rocprofiler_pc_sampling_unit_t unit) {
    return rocprofiler_configure_pc_sampling_service(sampled, agent, method, unit, interval, of_samples, 0);
}

/* Counters, which exclude samples. */

static rocprofiler_status_t choose_counter(rocprofiler_agent_id_t agent, rocprofiler_counter_id_t *counters, size_t number, void *data) {
    CHECK(agent.handle == device_agent.handle && number > 0);
    if (number > 0) EXPECT(rocprofiler_create_counter_config(agent, counters, 1, (rocprofiler_counter_config_id_t *)data), SUCCESS);
    return ROCPROFILER_STATUS_SUCCESS;
}

static void choose(rocprofiler_context_id_t context, rocprofiler_agent_id_t agent, rocprofiler_device_counting_agent_cb_t set,
    void *data) {
    CHECK(context.handle == counted.handle && agent.handle == device_agent.handle);
    EXPECT(set(context, *(rocprofiler_counter_config_id_t *)data), SUCCESS);
}

static void choose_for_dispatch(rocprofiler_dispatch_counting_service_data_t dispatch, rocprofiler_counter_config_id_t *config,
    rocprofiler_user_data_t *word, void *data) {
    (void)dispatch, (void)config, (void)word, (void)data;
}

static void take_values(rocprofiler_dispatch_counting_service_data_t dispatch, rocprofiler_counter_record_t *values, size_t number,
    rocprofiler_user_data_t word, void *data) {
    (void)dispatch, (void)values, (void)number, (void)word, (void)data;
}

/* Samples, the kernels that they belong to, and the code that they are in, which is told of before. */

static int samples, of_other_buffer, kernels, in_unknown_code;
static uint64_t begin, dispatches[MOST], sampled_dispatches[MOST];

static int is_among(uint64_t wanted, const uint64_t *all, int number);

static int objects;
static uint64_t code_objects[MOST];

static void see_code(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *word, void *data) {
    const rocprofiler_callback_tracing_code_object_load_data_t *code = record.payload;
    (void)word;
    CHECK(data == &objects && record.context_id.handle == coded.handle);
    if (record.operation != ROCPROFILER_CODE_OBJECT_LOAD || record.phase != ROCPROFILER_CALLBACK_PHASE_LOAD) return;
    if (strcmp(code->uri, "gputrail://fill") == 0) return;
    CHECK(code->size == sizeof *code && code->agent_id.handle == device_agent.handle && code->load_size > 0);
    CHECK(!is_among(code->code_object_id, code_objects, count(&objects)));
    /* The machine code that samples show is a file. */
    if (strncmp(code->uri, "file:///", 8) == 0) CHECK(access(code->uri + 7, R_OK) == 0 && code->load_base != 0);
    if (count(&objects) < MOST) code_objects[count(&objects)] = code->code_object_id;
    add(&objects);
}

static void take(rocprofiler_context_id_t context, rocprofiler_buffer_id_t buffer, rocprofiler_record_header_t **headers, size_t number,
    void *data, uint64_t drops) {
    size_t place;
    CHECK(context.handle == sampled.handle && buffer.handle == of_samples.handle && data == NULL && drops == 0);
    for (place = 0; place < number; place++) {
        const rocprofiler_record_header_t *header = headers[place];
        if (header->category == ROCPROFILER_BUFFER_CATEGORY_TRACING) {
            const rocprofiler_buffer_tracing_kernel_dispatch_record_t *one = header->payload;
            CHECK(header->kind == ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH && count(&kernels) < MOST);
            if (count(&kernels) < MOST) dispatches[count(&kernels)] = one->dispatch_info.dispatch_id;
            add(&kernels);
        } else {
            const rocprofiler_pc_sampling_record_host_trap_v0_t *sample = header->payload;
            uint64_t now = 0;
            EXPECT(rocprofiler_get_timestamp(&now), SUCCESS);
            CHECK(header->category == ROCPROFILER_BUFFER_CATEGORY_PC_SAMPLING);
            CHECK(header->kind == ROCPROFILER_PC_SAMPLING_RECORD_HOST_TRAP_V0_SAMPLE && sample->size == sizeof *sample);
            CHECK(sample->timestamp >= begin && sample->timestamp <= now);
            CHECK(sample->correlation_id.internal != 0 && sample->correlation_id.external.value == PUSHED);
            CHECK(sample->exec_mask == 0 && sample->wave_in_group == 0 && sample->workgroup_id.x == 0);
            CHECK(sample->pc.code_object_id != 0 && sample->dispatch_id != 0);
            if (!is_among(sample->pc.code_object_id, code_objects, count(&objects))) add(&in_unknown_code);
            if (count(&samples) < MOST) sampled_dispatches[count(&samples)] = sample->dispatch_id;
            add(&samples);
        }
    }
}

static void take_of_others(rocprofiler_context_id_t context, rocprofiler_buffer_id_t buffer, rocprofiler_record_header_t **headers,
    size_t number, void *data, uint64_t drops) {
    (void)context, (void)buffer, (void)headers, (void)data, (void)drops;
    of_other_buffer += number > 0;
}

static int is_among(uint64_t wanted, const uint64_t *all, int number) {
    int place;
    for (place = 0; place < number; place++) {
        if (all[place] == wanted) return 1;
    }
    return 0;
}

static void names(void) {
    const char *name = rocprofiler_get_pc_sampling_instruction_type_name(ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_MATRIX);
    CHECK(name != NULL && strcmp(name, "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_MATRIX") == 0);
    CHECK(rocprofiler_get_pc_sampling_instruction_type_name((rocprofiler_pc_sampling_instruction_type_t)200) == NULL);
    name = rocprofiler_get_pc_sampling_instruction_not_issued_reason_name(
        ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_BARRIER_WAIT);
    CHECK(name != NULL && strcmp(name, "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_BARRIER_WAIT") == 0);
    CHECK(rocprofiler_get_pc_sampling_instruction_not_issued_reason_name(
        (rocprofiler_pc_sampling_instruction_not_issued_reason_t)200) == NULL);
}

/* The tool. */

static rocprofiler_counter_config_id_t config;

static void create(void) {
    const rocprofiler_buffer_policy_t lossless = ROCPROFILER_BUFFER_POLICY_LOSSLESS;
    EXPECT(rocprofiler_create_context(&sampled), SUCCESS);
    EXPECT(rocprofiler_create_context(&other), SUCCESS);
    EXPECT(rocprofiler_create_context(&counted), SUCCESS);
    EXPECT(rocprofiler_create_context(&dispatched), SUCCESS);
    EXPECT(rocprofiler_create_context(&coded), SUCCESS);
    EXPECT(rocprofiler_configure_callback_tracing_service(coded, ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT, NULL, 0, see_code, &objects),
        SUCCESS);
    EXPECT(rocprofiler_start_context(coded), SUCCESS);
    EXPECT(rocprofiler_create_buffer(sampled, 1 << 16, 1 << 15, lossless, take, NULL, &of_samples), SUCCESS);
    EXPECT(rocprofiler_create_buffer(sampled, 1 << 16, 1 << 15, lossless, take_of_others, NULL, &of_others), SUCCESS);
    EXPECT(rocprofiler_configure_buffer_tracing_service(sampled, ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH, NULL, 0, of_samples),
        SUCCESS);
}

/* No file can be opened. */
static void without_files(void) {
    struct rlimit files, none;
    getrlimit(RLIMIT_NOFILE, &files);
    none = files;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    EXPECT(configure(sampled, interval, of_samples), ERROR);
    setrlimit(RLIMIT_NOFILE, &files);
}

static void refused(void) {
    EXPECT(configure(no_context, interval, of_samples), ERROR_CONTEXT_NOT_FOUND);
    EXPECT(configure(sampled, interval, no_buffer), ERROR_BUFFER_NOT_FOUND);
    EXPECT(configure(sampled, 0, of_samples), ERROR_INVALID_ARGUMENT);
    EXPECT(configure_as(no_agent, by_host, in_time), ERROR_AGENT_NOT_FOUND);
    EXPECT(configure_as(host, by_host, in_time), ERROR_NOT_AVAILABLE);
    EXPECT(configure_as(device_agent, ROCPROFILER_PC_SAMPLING_METHOD_NONE, in_time), ERROR_INVALID_ARGUMENT);
    EXPECT(configure_as(device_agent, by_host, ROCPROFILER_PC_SAMPLING_UNIT_NONE), ERROR_INVALID_ARGUMENT);
    EXPECT(configure_as(device_agent, ROCPROFILER_PC_SAMPLING_METHOD_STOCHASTIC, ROCPROFILER_PC_SAMPLING_UNIT_CYCLES),
        ERROR_NOT_AVAILABLE);
    without_files();
}

static void counters(void) {
    EXPECT(rocprofiler_iterate_agent_supported_counters(device_agent, choose_counter, &config), SUCCESS);
    EXPECT(rocprofiler_configure_device_counting_service(counted, (rocprofiler_buffer_id_t){0}, device_agent, choose, &config), SUCCESS);
    EXPECT(rocprofiler_configure_callback_dispatch_counting_service(dispatched, choose_for_dispatch, NULL, take_values, NULL), SUCCESS);
    EXPECT(configure(counted, interval, of_samples), ERROR_CONTEXT_CONFLICT);
    EXPECT(configure(dispatched, interval, of_samples), ERROR_CONTEXT_CONFLICT);
}

static int initialise(rocprofiler_client_finalize_t finalise, void *data) {
    CHECK(data == &sampled);
    finish = finalise;
    find_agents();
    create();
    if (strcmp(mode, "debugged") == 0) {
        EXPECT(configure(sampled, interval, of_samples), ERROR_NOT_AVAILABLE);
        return 0;
    }
    if (strcmp(mode, "forbidden") == 0) {
        EXPECT(configure(sampled, interval, of_samples), ERROR_INCOMPATIBLE_KERNEL);
        return 0;
    }
    if (strcmp(mode, "other") == 0) {
        expect_configuration(1000, 1000);
        CHECK(seen.min_interval == seen.max_interval);
        EXPECT(configure(sampled, 2000, of_samples), ERROR_NOT_AVAILABLE);
        EXPECT(configure(sampled, interval, of_samples), SUCCESS);
        return 0;
    }
    queries();
    refused();
    counters();
    EXPECT(configure(sampled, interval, of_samples), SUCCESS);
    EXPECT(configure(sampled, interval, of_samples), ERROR_SERVICE_ALREADY_CONFIGURED);
    EXPECT(configure(sampled, interval, of_others), ERROR_NOT_AVAILABLE);
    EXPECT(configure(sampled, 2000, of_samples), ERROR_NOT_AVAILABLE);
    EXPECT(configure(other, interval, of_samples), ERROR_CONTEXT_CONFLICT);
    EXPECT(rocprofiler_configure_device_counting_service(sampled, (rocprofiler_buffer_id_t){0}, device_agent, choose, &config),
        ERROR_CONTEXT_CONFLICT);
    EXPECT(rocprofiler_configure_buffer_dispatch_counting_service(sampled, of_samples, choose_for_dispatch, NULL),
        ERROR_CONTEXT_CONFLICT);
    expect_configuration(1000, 1000);
    CHECK(seen.min_interval == seen.max_interval);
    return 0;
}

static int finalised;

static void finalise(void *data) {
    CHECK(data == &sampled);
    if (!*mode || strcmp(mode, "called") == 0) EXPECT(rocprofiler_flush_buffer(of_samples), SUCCESS);
    finalised++;
}

rocprofiler_tool_configure_result_t *rocprofiler_configure(uint32_t version, const char *text, uint32_t priority,
    rocprofiler_client_id_t *id) {
    static rocprofiler_tool_configure_result_t result = {sizeof result, initialise, finalise, &sampled};
    (void)version, (void)text, (void)priority;
    client = id;
    return &result;
}

/* Runs the program itself as another process, which has to succeed. */
static void run_as(const char *other_mode, int is_debugged) {
    int status = 0;
    const pid_t forked = fork();
    if (forked == 0) {
        if (is_debugged) ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execl("/proc/self/exe", "sampling", other_mode, (char *)NULL);
        _exit(99);
    }
    for (;;) {
        int signal;
        if (waitpid(forked, &status, 0) < 0 && errno != EINTR) break;
        if (!WIFSTOPPED(status)) break;
        signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
        ptrace(PTRACE_CONT, forked, NULL, (void *)(long)signal);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    printf("%s: status %d\n", other_mode, status);
    failures++;
}

static int end(void) {
    if (*mode && strcmp(mode, "called") != 0 && strcmp(mode, "forbidden") != 0) return failures > 0;
    printf("%s\n", failures ? "failed" : "passed");
    return failures > 0;
}

static void flush(void) { EXPECT(rocprofiler_flush_buffer(of_samples), SUCCESS); }

int main(int argc, char **argv) {
    const rocprofiler_user_data_t id = {PUSHED};
    int place, before;
    setvbuf(stdout, NULL, _IOLBF, 0);
    mode = argc > 1 ? argv[1] : "";
    names();
    EXPECT(configure(no_context, interval, no_buffer), ERROR_CONFIGURATION_LOCKED);
    if (strcmp(mode, "called") != 0) EXPECT(rocprofiler_force_configure(rocprofiler_configure), SUCCESS);
    if (*mode && strcmp(mode, "called") != 0) return end();
    set_up(ROUNDS);
    CHECK(client != NULL && finish != NULL);
    EXPECT(configure(other, interval, of_samples), ERROR_CONFIGURATION_LOCKED);
    run_as("other", 0);
    run_as("debugged", 1);

    /* Contexts that count do not start beside it. */
    EXPECT(rocprofiler_start_context(counted), ERROR_CONTEXT_CONFLICT);
    EXPECT(rocprofiler_start_context(dispatched), ERROR_CONTEXT_CONFLICT);

    launch(LAUNCHES);
    flush();
    CHECK(samples == 0 && kernels == 0);
    EXPECT(rocprofiler_push_external_correlation_id(sampled, this_thread(), id), SUCCESS);
    EXPECT(rocprofiler_get_timestamp(&begin), SUCCESS);
    EXPECT(rocprofiler_start_context(sampled), SUCCESS);
    launch(LAUNCHES);
    EXPECT(rocprofiler_stop_context(sampled), SUCCESS);
    flush();
    CHECK(samples > 10 && kernels == LAUNCHES && objects > 0 && in_unknown_code == 0);
    for (place = 0; place < samples && place < MOST; place++) {
        CHECK(is_among(sampled_dispatches[place], dispatches, kernels));
    }
    before = samples;
    launch(LAUNCHES);
    flush();
    CHECK(samples == before);
    EXPECT(rocprofiler_start_context(sampled), SUCCESS);
    launch(LAUNCHES);
    finish(*client);
    CHECK(finalised == 1 && samples > before && kernels == 2 * LAUNCHES && of_other_buffer == 0);
    EXPECT(rocprofiler_start_context(sampled), ERROR_CONFIGURATION_LOCKED);
    tear_down();
    return end();
}
