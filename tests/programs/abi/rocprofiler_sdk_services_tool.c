/* A tool of rocprofiler-sdk that samples the simulated GPU by both methods (compiled with SAMPLING), or traces its calls and streams
 * (CALLS), or counts its dispatches or, with DEVICES, the device itself, instance by instance; it says at the end what it has seen. */
#include <pthread.h>
#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int bad;
static rocprofiler_agent_id_t gpus[4];
static size_t gpu_count;
static rocprofiler_buffer_id_t buffer;

static void expect(const char *what, int line, rocprofiler_status_t got, rocprofiler_status_t wanted) {
    if (got == wanted) return;
    printf("line %d: %s: %s, expected %s\n", line, what, rocprofiler_get_status_name(got), rocprofiler_get_status_name(wanted));
    bad++;
}
#define EXPECT(call, wanted) expect(#call, __LINE__, call, ROCPROFILER_STATUS_##wanted)

static void check(const char *what, int line, int holds) {
    if (holds) return;
    if (bad++ < 20) printf("line %d: does not hold: %s\n", line, what);
}
#define CHECK(what) check(#what, __LINE__, (what) ? 1 : 0)

static rocprofiler_status_t see_agents(rocprofiler_agent_version_t version, const void **agents, size_t number, void *data) {
    size_t place;
    (void)version, (void)data;
    for (place = 0; place < number && gpu_count < 4; place++) {
        const rocprofiler_agent_v0_t *agent = agents[place];
        if (agent->type == ROCPROFILER_AGENT_TYPE_GPU) gpus[gpu_count++] = agent->id;
    }
    return ROCPROFILER_STATUS_SUCCESS;
}

#ifdef SAMPLING
static int trapped, stochastic, issued, with_counters, reasons[32];

/* The device has both methods. */
static rocprofiler_status_t see(const rocprofiler_pc_sampling_configuration_t *all, size_t number, void *data) {
    int by_host = 0, by_device = 0;
    size_t place;
    (void)data;
    for (place = 0; place < number; place++) {
        const rocprofiler_pc_sampling_configuration_t *one = &all[place];
        CHECK(one->size == sizeof *one && one->min_interval < one->max_interval);
        if (one->method == ROCPROFILER_PC_SAMPLING_METHOD_HOST_TRAP) {
            by_host++;
            CHECK(one->unit == ROCPROFILER_PC_SAMPLING_UNIT_TIME && one->min_interval == 1);
            CHECK(one->flags == ROCPROFILER_PC_SAMPLING_CONFIGURATION_FLAGS_NONE);
        } else if (one->unit == ROCPROFILER_PC_SAMPLING_UNIT_CYCLES) {
            by_device++;
            CHECK(one->method == ROCPROFILER_PC_SAMPLING_METHOD_STOCHASTIC && one->min_interval == 256);
            CHECK(one->flags == ROCPROFILER_PC_SAMPLING_CONFIGURATION_FLAGS_INTERVAL_POW2);
        }
    }
    CHECK(by_host == 1 && by_device == 1);
    return ROCPROFILER_STATUS_SUCCESS;
}

static void take(rocprofiler_context_id_t context, rocprofiler_buffer_id_t from, rocprofiler_record_header_t **headers, size_t number,
    void *data, uint64_t drops) {
    size_t place;
    /* The device drops samples when its buffer is full. */
    (void)context, (void)from, (void)data, (void)drops;
    for (place = 0; place < number; place++) {
        CHECK(headers[place]->category == ROCPROFILER_BUFFER_CATEGORY_PC_SAMPLING);
        if (headers[place]->kind == ROCPROFILER_PC_SAMPLING_RECORD_HOST_TRAP_V0_SAMPLE) {
            const rocprofiler_pc_sampling_record_host_trap_v0_t *sample = headers[place]->payload;
            CHECK(sample->size == sizeof *sample && sample->timestamp > 0 && sample->dispatch_id != 0 && sample->exec_mask != 0);
            CHECK(sample->correlation_id.internal != 0 && sample->pc.code_object_id != 0);
            trapped++;
        } else if (headers[place]->kind == ROCPROFILER_PC_SAMPLING_RECORD_INVALID_SAMPLE) {
            const rocprofiler_pc_sampling_record_invalid_t *sample = headers[place]->payload;
            CHECK(sample->size == sizeof *sample);
        } else {
            const rocprofiler_pc_sampling_record_stochastic_v0_t *sample = headers[place]->payload;
            CHECK(headers[place]->kind == ROCPROFILER_PC_SAMPLING_RECORD_STOCHASTIC_V0_SAMPLE && sample->size == sizeof *sample);
            CHECK(sample->timestamp > 0 && sample->dispatch_id != 0 && sample->exec_mask != 0 && sample->wave_count > 0);
            CHECK(sample->correlation_id.internal != 0 && sample->pc.code_object_id != 0);
            if (sample->wave_issued) {
                const char *name = rocprofiler_get_pc_sampling_instruction_type_name(
                    (rocprofiler_pc_sampling_instruction_type_t)sample->inst_type);
                CHECK(name != NULL);
                issued++;
            } else {
                const char *name = rocprofiler_get_pc_sampling_instruction_not_issued_reason_name(
                    (rocprofiler_pc_sampling_instruction_not_issued_reason_t)sample->snapshot.reason_not_issued);
                CHECK(name != NULL);
                reasons[sample->snapshot.reason_not_issued]++;
            }
            with_counters += sample->flags.has_memory_counter;
            stochastic++;
        }
    }
}

static void configure(rocprofiler_context_id_t context) {
    const rocprofiler_pc_sampling_method_t by_host = ROCPROFILER_PC_SAMPLING_METHOD_HOST_TRAP;
    const rocprofiler_pc_sampling_method_t by_device = ROCPROFILER_PC_SAMPLING_METHOD_STOCHASTIC;
    const rocprofiler_pc_sampling_unit_t time = ROCPROFILER_PC_SAMPLING_UNIT_TIME, cycles = ROCPROFILER_PC_SAMPLING_UNIT_CYCLES;
    EXPECT(rocprofiler_create_buffer(context, 1 << 20, 1 << 19, ROCPROFILER_BUFFER_POLICY_LOSSLESS, take, NULL, &buffer), SUCCESS);
    CHECK(gpu_count > 0);
    EXPECT(rocprofiler_query_pc_sampling_agent_configurations(gpus[0], see, NULL), SUCCESS);
    /* Not a power of two; in another unit. */
    EXPECT(rocprofiler_configure_pc_sampling_service(context, gpus[0], by_device, cycles, 1000, buffer, 0), ERROR_INVALID_ARGUMENT);
    EXPECT(rocprofiler_configure_pc_sampling_service(context, gpus[0], by_device, time, 1024, buffer, 0), ERROR_NOT_AVAILABLE);
#ifdef HOST_TRAP
    EXPECT(rocprofiler_configure_pc_sampling_service(context, gpus[0], by_host, time, 1, buffer, 0), SUCCESS);
    EXPECT(rocprofiler_configure_pc_sampling_service(context, gpus[0], by_device, cycles, 1024, buffer, 0), ERROR_NOT_AVAILABLE);
#else
    EXPECT(rocprofiler_configure_pc_sampling_service(context, gpus[0], by_device, cycles, 1024, buffer, 0), SUCCESS);
    EXPECT(rocprofiler_configure_pc_sampling_service(context, gpus[0], by_host, time, 1, buffer, 0), ERROR_NOT_AVAILABLE);
#endif
}

static void say(void) {
    int reason, kinds = 0;
    for (reason = 0; reason < 32; reason++) kinds += reasons[reason] > 0;
#ifdef HOST_TRAP
    printf("sampling: %s by host trap, %d others, %d bad\n", trapped > 100 ? "many" : "few", stochastic, bad);
#else
    printf("sampling: %s stochastic, %d others, %s, %s, %s, %d bad\n", stochastic > 100 ? "many" : "few", trapped,
        issued > 0 && issued < stochastic ? "some issued" : "all or none issued", kinds > 2 ? "several reasons" : "few reasons",
        with_counters > 0 ? "memory counters" : "no memory counters", bad);
#endif
    (void)kinds;
}
#elif defined(CALLS)
#include <rocprofiler-sdk/gputrail.h>
#include <rocprofiler-sdk/hip/runtime_api_id.h>

enum { MOST = 256 };

static struct { uint64_t id, value; } made[MOST];
static int streams, sets, results, asked;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void see_call(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *word, void *data) {
    (void)word, (void)data;
    pthread_mutex_lock(&lock);
    if (record.kind == ROCPROFILER_CALLBACK_TRACING_HIP_STREAM) {
        const rocprofiler_callback_tracing_hip_stream_data_t *of = record.payload;
        int place = 0;
        if (record.operation == ROCPROFILER_HIP_STREAM_CREATE && streams < MOST) {
            made[streams].id = of->stream_id.handle;
            made[streams++].value = of->stream_value.value;
        } else if (record.operation == ROCPROFILER_HIP_STREAM_SET) {
            /* A stream that was created has its id and its handle. */
            while (place < streams && made[place].id != of->stream_id.handle) place++;
            CHECK(place < streams && made[place].value == of->stream_value.value);
            sets++;
        }
    } else if (record.phase == ROCPROFILER_CALLBACK_PHASE_EXIT) {
        /* A status, whatever the call has made. */
        CHECK(((const rocprofiler_gputrail_call_data_t *)record.payload)->result < 4);
        results++;
    }
    pthread_mutex_unlock(&lock);
}

static void take(rocprofiler_context_id_t context, rocprofiler_buffer_id_t from, rocprofiler_record_header_t **headers, size_t number,
    void *data, uint64_t drops) {
    size_t place;
    (void)context, (void)from, (void)data, (void)drops;
    for (place = 0; place < number; place++) {
        const rocprofiler_buffer_tracing_hip_api_ext_record_t *call = headers[place]->payload;
        if (call->operation != ROCPROFILER_HIP_RUNTIME_API_ID_hipMemGetInfo) continue;
        /* The places of results are gone. */
        CHECK(call->args.hipMemGetInfo.free == NULL && call->args.hipMemGetInfo.total == NULL);
        asked++;
    }
}

static void configure(rocprofiler_context_id_t context) {
    EXPECT(rocprofiler_create_buffer(context, 1 << 20, 1 << 19, ROCPROFILER_BUFFER_POLICY_LOSSLESS, take, NULL, &buffer), SUCCESS);
    EXPECT(rocprofiler_configure_buffer_tracing_service(context, ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT, NULL, 0, buffer), SUCCESS);
    EXPECT(rocprofiler_configure_callback_tracing_service(context, ROCPROFILER_CALLBACK_TRACING_HIP_STREAM, NULL, 0, see_call, NULL),
        SUCCESS);
    EXPECT(rocprofiler_configure_callback_tracing_service(context, ROCPROFILER_CALLBACK_TRACING_GPUTRAIL_SIMULATED_API, NULL, 0, see_call,
        NULL), SUCCESS);
}

static void say(void) {
    printf("calls: %s, %s, %s, %s, %d bad\n", streams > 0 ? "streams" : "no streams", sets > streams ? "sets" : "no sets",
        results > 100 ? "results" : "no results", asked > 0 ? "memory" : "no memory", bad);
}
#else
enum { MOST = 64 };

static rocprofiler_counter_id_t waves, vector, hits, misses, all_misses;
static rocprofiler_counter_id_t of_sq[MOST];
static size_t sq_count, wave_instances, miss_instances;
static rocprofiler_counter_config_id_t config, second_config;
static rocprofiler_context_id_t of_dispatches, of_devices;
static int dispatches;
static double all_waves;

static rocprofiler_status_t see_counters(rocprofiler_agent_id_t agent, rocprofiler_counter_id_t *all, size_t number, void *data) {
    size_t place, instance;
    (void)agent, (void)data;
    for (place = 0; place < number; place++) {
        rocprofiler_counter_info_v1_t info;
        EXPECT(rocprofiler_query_counter_info(all[place], ROCPROFILER_COUNTER_INFO_VERSION_1, &info), SUCCESS);
        CHECK(info.dimensions_instances_count > 0 && info.dimensions_count == 1);
        CHECK(info.dimensions[0]->instance_size == info.dimensions_instances_count);
        for (instance = 0; instance < info.dimensions_instances_count; instance++) {
            const rocprofiler_counter_record_dimension_instance_info_t *one = info.dimensions_instances[instance];
            size_t position = 9999;
            EXPECT(rocprofiler_query_record_dimension_position(one->instance_id, info.dimensions[0]->id, &position), SUCCESS);
            CHECK(position == instance && one->dimensions[0]->index == instance);
        }
        if (strcmp(info.name, "SQ_WAVES") == 0) {
            waves = info.id;
            wave_instances = info.dimensions_instances_count;
        }
        if (strcmp(info.name, "TCC_MISS") == 0) {
            misses = info.id;
            miss_instances = info.dimensions_instances_count;
        }
        if (strcmp(info.name, "VALUInsts") == 0) vector = info.id;
        if (strcmp(info.name, "L2CacheHit") == 0) hits = info.id;
        if (strcmp(info.block, "SQ") == 0 && sq_count < MOST) of_sq[sq_count++] = info.id;
    }
    return ROCPROFILER_STATUS_SUCCESS;
}

static void choose(rocprofiler_dispatch_counting_service_data_t dispatch, rocprofiler_counter_config_id_t *chosen,
    rocprofiler_user_data_t *word, void *data) {
    (void)word, (void)data;
    if (dispatch.dispatch_info.agent_id.handle == gpus[0].handle) *chosen = config;
}

static void take_values(rocprofiler_dispatch_counting_service_data_t dispatch, rocprofiler_counter_record_t *values, size_t number,
    rocprofiler_user_data_t word, void *data) {
    size_t place, of_waves = 0;
    double sum = 0, own = -1;
    (void)word, (void)data;
    CHECK(number == wave_instances + miss_instances + 3 && dispatch.dispatch_info.agent_id.handle == gpus[0].handle);
    for (place = 0; place < number; place++) {
        rocprofiler_counter_id_t counter = {0};
        size_t position = 0;
        EXPECT(rocprofiler_query_record_counter_id(values[place].id, &counter), SUCCESS);
        EXPECT(rocprofiler_query_record_dimension_position(values[place].id, 7, &position), SUCCESS);
        CHECK(values[place].dispatch_id == dispatch.dispatch_info.dispatch_id && values[place].counter_value >= 0);
        if (counter.handle == misses.handle) sum += values[place].counter_value;
        if (counter.handle == all_misses.handle) own = values[place].counter_value;
        if (counter.handle != waves.handle) continue;
        CHECK(position == of_waves++);
        all_waves += values[place].counter_value;
    }
    CHECK(of_waves == wave_instances && own == sum);
    dispatches++;
}

static void choose_for_device(rocprofiler_context_id_t context, rocprofiler_agent_id_t agent,
    rocprofiler_device_counting_agent_cb_t set, void *data) {
    (void)data;
    CHECK(agent.handle == gpus[0].handle);
    if (gpu_count > 1) EXPECT(set(context, second_config), ERROR_AGENT_MISMATCH);
    EXPECT(set(context, config), SUCCESS);
}

static void configure(rocprofiler_context_id_t context) {
    const rocprofiler_buffer_id_t none = {0};
    static const char expression[] = "reduce(TCC_MISS,sum)";
    rocprofiler_counter_id_t some[5];
    rocprofiler_counter_config_id_t too_much = {0};
    of_dispatches = context;
    CHECK(gpu_count > 0);
    EXPECT(rocprofiler_iterate_agent_supported_counters(gpus[0], see_counters, NULL), SUCCESS);
    CHECK(waves.handle != 0 && vector.handle != 0 && hits.handle != 0 && misses.handle != 0 && miss_instances > 1);
    EXPECT(rocprofiler_create_counter("ALL_MISSES", 10, expression, sizeof expression - 1, "", 0, gpus[0], &all_misses), SUCCESS);
    some[0] = waves, some[1] = vector, some[2] = hits, some[3] = misses, some[4] = all_misses;
    EXPECT(rocprofiler_create_counter_config(gpus[0], some, 5, &config), SUCCESS);
    if (gpu_count > 1) EXPECT(rocprofiler_create_counter_config(gpus[1], some, 1, &second_config), SUCCESS);
    EXPECT(rocprofiler_create_counter_config(gpus[0], of_sq, sq_count, &too_much), ERROR_EXCEEDS_HW_LIMIT);
    EXPECT(rocprofiler_create_context(&of_devices), SUCCESS);
    EXPECT(rocprofiler_configure_device_counting_service(of_devices, none, gpus[0], choose_for_device, NULL), SUCCESS);
#ifdef DEVICES
    of_dispatches = of_devices;
#else
    EXPECT(rocprofiler_configure_callback_dispatch_counting_service(context, choose, NULL, take_values, NULL), SUCCESS);
#endif
    (void)choose, (void)take_values;
}

#ifdef DEVICES
static pthread_t sampler;
static int ends, samples;

/* Reads the device again and again, until its context is stopped. */
static void *sample(void *data) {
    static rocprofiler_counter_record_t values[1024];
    const rocprofiler_user_data_t word = {7};
    (void)data;
    while (!__atomic_load_n(&ends, __ATOMIC_SEQ_CST)) {
        double seen = 0;
        size_t number = 1024, place;
        rocprofiler_status_t status;
        usleep(2000);
        status = rocprofiler_sample_device_counting_service(of_devices, word, ROCPROFILER_COUNTER_FLAG_NONE, values, &number);
        if (status != ROCPROFILER_STATUS_SUCCESS) {
            CHECK(status == ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_STARTED || status == ROCPROFILER_STATUS_ERROR_FINALIZED ||
                status == ROCPROFILER_STATUS_ERROR_CONTEXT_ERROR);
            continue;
        }
        CHECK(number == wave_instances + miss_instances + 3);
        for (place = 0; place < number; place++) {
            rocprofiler_counter_id_t counter = {0};
            EXPECT(rocprofiler_query_record_counter_id(values[place].id, &counter), SUCCESS);
            CHECK(values[place].user_data.value == 7 && values[place].dispatch_id == 0);
            if (counter.handle == waves.handle) seen += values[place].counter_value;
        }
        CHECK(seen >= all_waves);
        all_waves = seen;
        samples++;
    }
    return NULL;
}
#endif

static void say(void) {
#ifdef DEVICES
    __atomic_store_n(&ends, 1, __ATOMIC_SEQ_CST);
    pthread_join(sampler, NULL);
    printf("device: %s, %s, %d bad\n", samples > 0 ? "samples" : "no samples", all_waves > 0 ? "waves" : "no waves", bad);
#else
    printf("counting: %s, %s, %d bad\n", dispatches > 10 ? "many dispatches" : "few dispatches", all_waves > 0 ? "waves" : "no waves", bad);
#endif
}
#endif

static int initialise(rocprofiler_client_finalize_t finish, void *data) {
    rocprofiler_context_id_t context = {0};
    (void)finish, (void)data;
    EXPECT(rocprofiler_create_context(&context), SUCCESS);
    EXPECT(rocprofiler_query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0, see_agents, sizeof(rocprofiler_agent_v0_t), NULL), SUCCESS);
    configure(context);
#if defined(SAMPLING) || defined(CALLS)
    EXPECT(rocprofiler_start_context(context), SUCCESS);
#else
    EXPECT(rocprofiler_start_context(of_dispatches), SUCCESS);
#endif
#ifdef DEVICES
    CHECK(pthread_create(&sampler, NULL, sample, NULL) == 0);
#endif
    return 0;
}

static void finalise(void *data) {
    (void)data;
    if (buffer.handle != 0) EXPECT(rocprofiler_flush_buffer(buffer), SUCCESS);
    say();
    fflush(stdout);
}

rocprofiler_tool_configure_result_t *rocprofiler_configure(uint32_t version, const char *text, uint32_t priority,
    rocprofiler_client_id_t *id) {
    static rocprofiler_tool_configure_result_t result = {sizeof result, initialise, finalise, NULL};
    (void)version, (void)text, (void)priority;
    id->name = "services";
    return &result;
}
