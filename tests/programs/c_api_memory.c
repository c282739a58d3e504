/* A program that is linked with gputrail and records itself into memory of its own: blocks that it lends one by one, and a
   file that another process looks into when this one has died. Every record is accounted for, by kind. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include "gputrail.h"
#include "checks.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 2, LAUNCHES = 200, BLOCK = 2048, MAX_RECORDS = 10 };

/* Records by kind. */
typedef struct {
    uint64_t of[256];
} counts;

static uint64_t count_records(const gputrail_batch *batch, counts *into) {
    const gputrail_record_header *record = NULL;
    uint64_t count = 0;
    gputrail_status status;
    while ((status = gputrail_batch_next(batch, &record)) == GPUTRAIL_OK) {
        into->of[record->kind]++;
        count++;
    }
    CHECK(status == GPUTRAIL_END);
    return count;
}

static void deliver(const gputrail_batch *batch, void *user_data) { count_records(batch, (counts *)user_data); }

/* ------------------------------------------------------------------------------------------------ blocks that are lent */

static struct {
    counts delivered, shown;
    int lends, lent, back, limited;
} client;

static void lend(gputrail_block *block, void *user_data) {
    CHECK(user_data == &client && block->memory == NULL);
    if (!client.lends) return;
    block->memory = (uint8_t *)malloc(BLOCK);
    block->bytes = BLOCK;
    /* Every other block takes a few records only, although there is room for more. */
    if (client.lent++ % 2) block->max_records = MAX_RECORDS;
}

static void show(const gputrail_batch *batch, void *user_data) {
    CHECK(user_data == &client);
    count_records(batch, &client.shown);
}

static void take_back(const gputrail_block *block, const gputrail_batch *records, void *user_data) {
    uint64_t count = count_records(records, &client.delivered);
    CHECK(user_data == &client && block->bytes == BLOCK && records->records == block->memory);
    CHECK(records->bytes <= BLOCK && block->shown <= records->bytes);
    if (count <= MAX_RECORDS) client.limited++;
    client.back++;
    free(block->memory);
}

/* ------------------------------------------------------------------------------------------------------------ the work */

static cl_device_id device;
static cl_context context;
static cl_program program;

static void set_up(void) {
    static const char *source = "kernel void triple(global int *a) { a[get_global_id(0)] *= 3; }";
    cl_platform_id platform;
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
    CHECK(clBuildProgram(program, 1, &device, NULL, NULL, NULL) == CL_SUCCESS);
}

static void *launch(void *unused) {
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
    cl_kernel kernel = clCreateKernel(program, "triple", NULL);
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, NULL);
    size_t items = 1024;
    int n;
    (void)unused;
    clSetKernelArg(kernel, 0, sizeof memory, &memory);
    for (n = 0; n < LAUNCHES; n++)
        CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clFinish(queue) == CL_SUCCESS);
    clReleaseMemObject(memory);
    clReleaseKernel(kernel);
    clReleaseCommandQueue(queue);
    return NULL;
}

static void work(void) {
    pthread_t threads[THREADS];
    int n;
    for (n = 0; n < THREADS; n++) CHECK(pthread_create(&threads[n], NULL, launch, NULL) == 0);
    for (n = 0; n < THREADS; n++) CHECK(pthread_join(threads[n], NULL) == 0);
}

static gputrail_kind kinds[] = {GPUTRAIL_KIND_API, GPUTRAIL_KIND_KERNEL_DISPATCH, GPUTRAIL_KIND_COMPLETION};
enum { KINDS = 3 };

static gputrail_selection selection(void) {
    gputrail_selection all;
    memset(&all, 0, sizeof all);
    all.size = sizeof all;
    all.kinds = kinds;
    all.kind_count = KINDS;
    return all;
}

static gputrail_buffer_options options(void) {
    gputrail_buffer_options of;
    memset(&of, 0, sizeof of);
    of.size = sizeof of;
    of.pool_bytes = 4 << 20;
    of.block_bytes = 4096;
    of.threads = 64;
    of.format = GPUTRAIL_RECORD_FORMAT_RAW;
    return of;
}

static int file_for(const gputrail_buffer_options *of) {
    uint64_t bytes;
    int file = memfd_create("records", 0);
    CHECK(gputrail_buffer_file_bytes(of, &bytes) == GPUTRAIL_OK && ftruncate(file, (off_t)bytes) == 0);
    return file;
}

/* --------------------------------------------------------------------------------------------- a process that is killed */

/* A child records into a file, and is killed before anything has been delivered: all of it is found there. */
static void killed(void) {
    gputrail_buffer_options of = options();
    gputrail_selection all = selection();
    gputrail_context observing;
    gputrail_buffer buffer;
    static counts found, again, delivered;
    pid_t child;
    int status = 0, file;
    CHECK(gputrail_initialise() == GPUTRAIL_OK);
    /* Blocks that do not get full, and nobody looks before. */
    of.pool_bytes = 16 << 20;
    of.block_bytes = 1 << 20;
    of.threads = 16;
    of.period_nanos = 3600000000000u;
    file = file_for(&of);
    child = fork();
    if (child == 0) {
        CHECK(gputrail_initialise() == GPUTRAIL_OK && gputrail_observe_opencl() == GPUTRAIL_OK);
        CHECK(gputrail_buffer_create_in_file(file, &of, deliver, &delivered, &buffer) == GPUTRAIL_OK);
        CHECK(close(file) == 0);
        CHECK(gputrail_context_create(&observing) == GPUTRAIL_OK);
        CHECK(gputrail_context_trace_to(observing, buffer, &all) == GPUTRAIL_OK);
        CHECK(gputrail_context_start(observing) == GPUTRAIL_OK);
        set_up();
        launch(NULL);
        CHECK(delivered.of[GPUTRAIL_KIND_API] == 0);
        fflush(stdout);
        if (failures) _exit(1);
        raise(SIGKILL);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK(gputrail_recover(file, deliver, &found) == GPUTRAIL_OK);
    CHECK(found.of[GPUTRAIL_KIND_KERNEL_DISPATCH] == LAUNCHES && found.of[GPUTRAIL_KIND_COMPLETION] == LAUNCHES);
    /* Each launch, and what is done before and after it: see set_up and launch. */
    CHECK(found.of[GPUTRAIL_KIND_API] >= LAUNCHES + 11);
    CHECK(gputrail_recover(file, deliver, &again) == GPUTRAIL_OK && again.of[GPUTRAIL_KIND_API] == 0);
    CHECK(close(file) == 0);
}

/* The calls that a batch has or counts as dropped. */
static void count_calls(const gputrail_batch *batch, void *user_data) {
    const gputrail_record_header *record = NULL;
    uint64_t *calls = (uint64_t *)user_data;
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK) {
        const gputrail_record_loss *loss = (const gputrail_record_loss *)record;
        if (record->kind == GPUTRAIL_KIND_API) calls[0]++;
        if (record->kind == GPUTRAIL_KIND_LOSS && loss->lost == GPUTRAIL_KIND_API) calls[1] += loss->count;
    }
}

static void deliver_never(const gputrail_batch *batch, void *user_data) {
    (void)batch, (void)user_data;
    for (;;) pause();
}

/* A child records more into a file than it holds, and is killed: what was dropped is counted there. */
static void killed_short_of_memory(void) {
    enum { CALLS = 1000 };
    gputrail_buffer_options of = options();
    gputrail_selection all = selection();
    uint64_t found[2] = {0, 0}, again[2] = {0, 0};
    gputrail_context observing;
    gputrail_buffer buffer;
    int n, status = 0, file;
    pid_t child;
    of.pool_bytes = 2 * 4096;
    of.policy = GPUTRAIL_POLICY_DISCARD;
    of.period_nanos = 3600000000000u;
    file = file_for(&of);
    child = fork();
    if (child == 0) {
        cl_uint platforms;
        CHECK(gputrail_initialise() == GPUTRAIL_OK && gputrail_observe_opencl() == GPUTRAIL_OK);
        CHECK(gputrail_buffer_create_in_file(file, &of, deliver_never, NULL, &buffer) == GPUTRAIL_OK);
        CHECK(gputrail_context_create(&observing) == GPUTRAIL_OK);
        CHECK(gputrail_context_trace_to(observing, buffer, &all) == GPUTRAIL_OK);
        CHECK(gputrail_context_start(observing) == GPUTRAIL_OK);
        for (n = 0; n < CALLS; n++) clGetPlatformIDs(0, NULL, &platforms);
        fflush(stdout);
        if (failures) _exit(1);
        raise(SIGKILL);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK(gputrail_recover(file, count_calls, found) == GPUTRAIL_OK);
    CHECK(found[1] > 0 && found[0] + found[1] == CALLS);
    CHECK(gputrail_recover(file, count_calls, again) == GPUTRAIL_OK && again[0] + again[1] == 0);
    CHECK(close(file) == 0);
}

/* ------------------------------------------------------------------------------------------------------------------ all */

int main(void) {
    static counts usual, in_file;
    gputrail_buffer_options of = options(), raw, shown;
    gputrail_selection all = selection();
    gputrail_context observing;
    gputrail_buffer library, lent, filed;
    gputrail_drops drops, more;
    int n, file, before;

    killed();
    killed_short_of_memory();

    CHECK(gputrail_observe_opencl() == GPUTRAIL_OK);
    file = file_for(&of);
    client.lends = 1;
    memset(&raw, 0, sizeof raw);
    raw.size = sizeof raw;
    raw.format = GPUTRAIL_RECORD_FORMAT_RAW;
    CHECK(gputrail_buffer_create(&raw, deliver, &usual, &library) == GPUTRAIL_OK);
    memset(&shown, 0, sizeof shown);
    shown.size = sizeof shown;
    shown.format = GPUTRAIL_RECORD_FORMAT_RAW;
    shown.watermark = 1;
    shown.period_nanos = 1000000;
    CHECK(gputrail_buffer_create_of_client(&shown, lend, show, take_back, &client, &lent) == GPUTRAIL_OK);
    CHECK(gputrail_buffer_create_in_file(file, &of, deliver, &in_file, &filed) == GPUTRAIL_OK);
    CHECK(gputrail_context_create(&observing) == GPUTRAIL_OK);
    CHECK(gputrail_context_trace_to(observing, library, &all) == GPUTRAIL_OK);
    CHECK(gputrail_context_trace_to(observing, lent, &all) == GPUTRAIL_OK);
    CHECK(gputrail_context_trace_to(observing, filed, &all) == GPUTRAIL_OK);
    CHECK(gputrail_context_start(observing) == GPUTRAIL_OK);
    set_up();
    work();
    /* A flush returns the block that the call is in. */
    for (n = 0; n < 20; n++) {
        cl_uint platforms;
        CHECK(clGetPlatformIDs(0, NULL, &platforms) == CL_SUCCESS);
        before = client.back;
        CHECK(gputrail_buffer_flush(lent) == GPUTRAIL_OK && client.back > before);
    }
    /* The watermark shows it before it comes back. */
    while (__atomic_load_n(&client.shown.of[GPUTRAIL_KIND_API], __ATOMIC_RELAXED) == 0) {
        cl_uint platforms;
        CHECK(clGetPlatformIDs(0, NULL, &platforms) == CL_SUCCESS);
        usleep(1000);
    }
    /* Now there are no blocks for a while: those that are lent get full, and what comes then is dropped. */
    client.lends = 0;
    work();
    CHECK(gputrail_buffer_flush(lent) == GPUTRAIL_OK);
    drops.size = more.size = sizeof drops;
    CHECK(gputrail_buffer_dropped(lent, &drops) == GPUTRAIL_OK && drops.total > 0);
    client.lends = 1;
    before = client.lent;
    CHECK(gputrail_buffer_flush(lent) == GPUTRAIL_OK && client.lent > before);
    work();
    CHECK(gputrail_context_stop(observing) == GPUTRAIL_OK);
    CHECK(gputrail_buffer_flush(lent) == GPUTRAIL_OK);
    CHECK(gputrail_buffer_dropped(lent, &more) == GPUTRAIL_OK);
    CHECK(gputrail_buffer_destroy(lent) == GPUTRAIL_OK);
    CHECK(gputrail_buffer_destroy(filed) == GPUTRAIL_OK);
    drops.total = 0;
    for (n = 0; n < 256; n++) drops.of_kind[n] += more.of_kind[n];
    CHECK(gputrail_buffer_dropped_in_total(library, &more) == GPUTRAIL_OK && more.total == 0);
    CHECK(gputrail_buffer_destroy(library) == GPUTRAIL_OK);

    CHECK(client.back == client.lent && client.limited >= client.lent / 2);
    CHECK(usual.of[GPUTRAIL_KIND_KERNEL_DISPATCH] == 3 * THREADS * LAUNCHES);
    CHECK(usual.of[GPUTRAIL_KIND_COMPLETION] == 3 * THREADS * LAUNCHES);
    for (n = 0; n < KINDS; n++) {
        gputrail_kind kind = kinds[n];
        CHECK(in_file.of[kind] == usual.of[kind]);
        CHECK(client.delivered.of[kind] + drops.of_kind[kind] == usual.of[kind]);
        CHECK(client.delivered.of[kind] > 0 && client.shown.of[kind] <= client.delivered.of[kind]);
    }
    CHECK(gputrail_finalise() == GPUTRAIL_OK);
    clReleaseProgram(program);
    clReleaseContext(context);
    printf("%s: %d launches\n", failures ? "failed" : "passed", 3 * THREADS * LAUNCHES);
    return failures > 0;
}
