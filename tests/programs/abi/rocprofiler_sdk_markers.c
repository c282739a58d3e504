/* A program that is its own tool: markers of two threads have the same ids in callbacks and in records, also of other contexts. */
#include "rocprofiler_sdk_checks.h"
#include <dlfcn.h>
#include <pthread.h>

enum { ROUNDS = 50, THREADS = 2, MOST = 4096, CALLS = 7, RANGES = 4 };

/* A call or a range, as one of the contexts was told of it. */
struct seen { int kind, operation; uint64_t id, thread, start, end; };
struct list { struct seen all[MOST]; int number; };

static rocprofiler_context_id_t called, recorded, both;
static rocprofiler_buffer_id_t of_recorded, of_both;
static struct list callbacks[2], records[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int bad_phases;

static struct seen *add_seen(struct list *list) {
    static struct seen none;
    return list->number < MOST ? &list->all[list->number++] : &none;
}

static struct seen *find(struct list *list, int kind, uint64_t id) {
    int place;
    for (place = 0; place < list->number; place++) {
        if (list->all[place].kind == kind && list->all[place].id == id) return &list->all[place];
    }
    return NULL;
}

static void see(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *word, void *data) {
    struct list *list = data;
    const int kind = record.kind == ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API;
    pthread_mutex_lock(&mutex);
    if (record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER) {
        struct seen *one = add_seen(list);
        bad_phases += find(list, kind, record.correlation_id.internal) != NULL;
        *one = (struct seen){kind, record.operation, record.correlation_id.internal, record.thread_id, 0, 0};
        word->value = record.correlation_id.internal;
    } else {
        struct seen *one = find(list, kind, record.correlation_id.internal);
        bad_phases += one == NULL || one->operation != record.operation || word->value != one->id || one->end++ != 0;
    }
    pthread_mutex_unlock(&mutex);
}

static void take(rocprofiler_context_id_t context, rocprofiler_buffer_id_t buffer, rocprofiler_record_header_t **headers, size_t number,
    void *data, uint64_t drops) {
    size_t place;
    CHECK(context.handle == (data == &records[0] ? recorded : both).handle && buffer.handle != 0 && drops == 0);
    for (place = 0; place < number; place++) {
        const rocprofiler_buffer_tracing_marker_api_record_t *one = headers[place]->payload;
        const int kind = headers[place]->kind == ROCPROFILER_BUFFER_TRACING_MARKER_CORE_API;
        CHECK(kind || headers[place]->kind == ROCPROFILER_BUFFER_TRACING_MARKER_CORE_RANGE_API);
        CHECK(one->size == sizeof *one && one->start_timestamp > 0 && one->end_timestamp >= one->start_timestamp);
        *add_seen(data) = (struct seen){kind, one->operation, one->correlation_id.internal, one->thread_id, one->start_timestamp,
            one->end_timestamp};
    }
}

static void add_callbacks(rocprofiler_context_id_t context, struct list *list) {
    EXPECT(rocprofiler_configure_callback_tracing_service(context, ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API, NULL, 0, see, list),
        SUCCESS);
    EXPECT(rocprofiler_configure_callback_tracing_service(context, ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_RANGE_API, NULL, 0, see,
        list), SUCCESS);
}

static void add_records(rocprofiler_context_id_t context, rocprofiler_buffer_id_t *buffer, struct list *list) {
    const rocprofiler_buffer_policy_t lossless = ROCPROFILER_BUFFER_POLICY_LOSSLESS;
    EXPECT(rocprofiler_create_buffer(context, 4096, 2048, lossless, take, list, buffer), SUCCESS);
    EXPECT(rocprofiler_configure_buffer_tracing_service(context, ROCPROFILER_BUFFER_TRACING_MARKER_CORE_API, NULL, 0, *buffer), SUCCESS);
    EXPECT(rocprofiler_configure_buffer_tracing_service(context, ROCPROFILER_BUFFER_TRACING_MARKER_CORE_RANGE_API, NULL, 0, *buffer),
        SUCCESS);
}

static int initialise(rocprofiler_client_finalize_t finalise, void *data) {
    (void)finalise, (void)data;
    EXPECT(rocprofiler_create_context(&called), SUCCESS);
    EXPECT(rocprofiler_create_context(&recorded), SUCCESS);
    EXPECT(rocprofiler_create_context(&both), SUCCESS);
    add_callbacks(called, &callbacks[0]);
    add_records(recorded, &of_recorded, &records[0]);
    add_callbacks(both, &callbacks[1]);
    add_records(both, &of_both, &records[1]);
    EXPECT(rocprofiler_start_context(called), SUCCESS);
    EXPECT(rocprofiler_start_context(recorded), SUCCESS);
    EXPECT(rocprofiler_start_context(both), SUCCESS);
    return 0;
}

rocprofiler_tool_configure_result_t *rocprofiler_configure(uint32_t version, const char *text, uint32_t priority,
    rocprofiler_client_id_t *id) {
    static rocprofiler_tool_configure_result_t result = {sizeof result, initialise, NULL, NULL};
    (void)version, (void)text, (void)priority, (void)id;
    return &result;
}

/* Seven calls in each round, and four ranges: a mark is one of them. */
static void *mark(void *library) {
    int (*push)(const char *), (*pop)(void), round;
    void (*here)(const char *), (*stop)(uint64_t);
    uint64_t (*start)(const char *), range;
    *(void **)&push = dlsym(library, "roctxRangePushA");
    *(void **)&pop = dlsym(library, "roctxRangePop");
    *(void **)&here = dlsym(library, "roctxMarkA");
    *(void **)&start = dlsym(library, "roctxRangeStartA");
    *(void **)&stop = dlsym(library, "roctxRangeStop");
    for (round = 0; round < ROUNDS; round++) {
        push("outer");
        range = start("moves");
        if (round % 2) here("here");
        push("inner");
        pop();
        stop(range);
        pop();
        if (round % 2 == 0) here("there");
    }
    return NULL;
}

/* Each of the list's is in the other one, of the same function and thread. */
static void compare(int line, struct list *list, struct list *other) {
    int place, different = list->number != other->number;
    for (place = 0; place < list->number; place++) {
        const struct seen *one = &list->all[place], *same = find(other, one->kind, one->id);
        different += same == NULL || same->operation != one->operation || same->thread != one->thread;
    }
    if (different == 0) return;
    printf("line %d: %d of %d differ from %d\n", line, different, list->number, other->number);
    failures++;
}

int main(void) {
    pthread_t thread;
    void *library;
    int place;
    EXPECT(rocprofiler_force_configure(rocprofiler_configure), SUCCESS);
    set_up(1);
    library = dlopen("libgputrail.so.0", RTLD_NOW | RTLD_NOLOAD);
    CHECK(library != NULL && dlsym(library, "roctxMarkA") != NULL);
    if (failures) return 1;
    pthread_create(&thread, NULL, mark, library);
    mark(library);
    pthread_join(thread, NULL);
    EXPECT(rocprofiler_flush_buffer(of_recorded), SUCCESS);
    EXPECT(rocprofiler_flush_buffer(of_both), SUCCESS);
    CHECK(bad_phases == 0 && callbacks[0].number == THREADS * ROUNDS * (CALLS + RANGES));
    for (place = 0; place < callbacks[0].number; place++) CHECK(callbacks[0].all[place].end == 1);
    compare(__LINE__, &callbacks[0], &callbacks[1]);
    compare(__LINE__, &callbacks[0], &records[0]);
    compare(__LINE__, &callbacks[0], &records[1]);
    tear_down();
    printf("%s\n", failures ? "failed" : "passed");
    return failures > 0;
}
