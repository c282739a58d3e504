/* The stand-in of libcupti, with functions that measure what the injected library does in it. */
#include "libcupti.c"

#include <time.h>

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static uint32_t latest = 1000;

static void empty(void *user_data, unsigned domain, unsigned number, const void *data) {
    (void)user_data, (void)domain, (void)number, (void)data;
}

/* Seconds for the enters and exits of so many launches: of the subscriber, or of an empty one. */
double standin_calls(size_t calls, int of_subscriber) {
    const struct {
        const char *function;
        unsigned size[6], shared;
        uintptr_t stream;
        void **arguments, **extra;
    } parameters = {.function = "saxpy", .size = {4, 1, 1, 64, 1, 1}};
    callback_function subscriber = callback;
    if (!of_subscriber) callback = empty;
    double begin = seconds();
    for (size_t i = 0; i < calls; i++) {
        struct standin_call launch = {.domain = DRIVER, .number = 307, .name = "cuLaunchKernel", .parameters = &parameters};
        if (of_subscriber) latest++;
        launch.id = latest;
        call(&launch, 0);
        call(&launch, 1);
    }
    double end = seconds();
    callback = subscriber;
    return end - begin;
}

/* Seconds in which the records of the latest `kernels` launches are taken. */
double standin_records(uint32_t kernels) {
    double taken = 0;
    struct standin_work work = {.stream = 7, .name = "saxpy", .grid = {4, 1, 1}, .block = {64, 1, 1}, .id = latest - kernels};
    uint64_t time = now();
    while (work.id < latest) {
        struct buffer *buffer = version() >= 1300 && own ? own : &shared;
        do {
            work.id++;
            put_kernel(&work, time, time + 1);
            time += 2;
            buffer = version() >= 1300 ? own : &shared;
        } while (work.id < latest && buffer->used + size_of(10) <= buffer->size);
        double begin = seconds();
        deliver(buffer);
        taken += seconds() - begin;
    }
    return taken;
}

/* Seconds to copy as many records as CUPTI has them, and as ours are: the least that taking them can cost. */
double standin_copies(uint32_t kernels) {
    enum { ROOM = 128 << 10, OURS = 152 + 80 };
    static uint8_t from[ROOM], to[ROOM];
    size_t bytes = size_of(10) + OURS, at = 0;
    double begin = seconds();
    for (uint32_t i = 0; i < kernels; i++) {
        if (at + bytes > ROOM) at = 0;
        memcpy(to + at, from + at, bytes);
        __asm__ volatile("" ::: "memory");
        at += bytes;
    }
    return seconds() - begin;
}
