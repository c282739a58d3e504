// The library of another tool for NVTX: appends a line for each call to the file that NVTX_TOOL_LOG names. Its handles and
// ids are its own numbers, and lead nowhere.
#include <fcntl.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void (*function)(void);
struct callbacks {
    size_t size;
    int (*table)(int module, function*** table, unsigned* size);
};
struct segment { size_t id, count; function* slots; };
struct module {
    uint16_t version, size, number, compatibility;
    size_t count;
    struct segment* segments;
};
struct attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const void* message;
};

static void say(const char* format, ...) {
    char line[256];
    va_list values;
    va_start(values, format);
    int size = vsnprintf(line, sizeof line - 1, format, values);
    va_end(values);
    line[size++] = '\n';
    int file = open(getenv("NVTX_TOOL_LOG"), O_WRONLY | O_APPEND | O_CREAT, 0644);
    if (file < 0 || write(file, line, size) != size) abort();
    close(file);
}

static uintptr_t next(void) {
    static atomic_uintptr_t last = 0x1000;
    return atomic_fetch_add(&last, 1) + 1;
}

static const char* message(const struct attributes* given) {
    static _Thread_local char text[64];
    if (given->message_type == 1) return given->message;
    snprintf(text, sizeof text, "message %#lx", (unsigned long)(uintptr_t)given->message);
    return text;
}

enum { LEVEL = 70 };
static void mark_a(const char* text) { say("mark %s", text); }
static void mark_ex(const struct attributes* given) { say("mark %s", message(given)); }
static uint64_t start_a(const char* text) { return say("start %s", text), next(); }
static void end(uint64_t range) { say("end %d", range > 0x1000); }
static int push_a(const char* text) { return say("push %s", text), LEVEL; }
static int pop(void) { return say("pop"), LEVEL; }
static void domain_mark(uintptr_t domain, const struct attributes* given) { say("mark %#lx %s", domain, message(given)); }
static uint64_t domain_start(uintptr_t domain, const struct attributes* given) { return say("start %#lx %s", domain, message(given)), next(); }
static void domain_end(uintptr_t domain, uint64_t range) { say("end %#lx %d", domain, range > 0x1000); }
static int domain_push(uintptr_t domain, const struct attributes* given) { return say("push %#lx %s", domain, message(given)), LEVEL; }
static int domain_pop(uintptr_t domain) { return say("pop %#lx", domain), LEVEL; }
static uintptr_t resource(uintptr_t domain, const void* given) { return say("resource %#lx %d", domain, given != NULL), next(); }
static void resource_end(uintptr_t handle) { say("resource ends %d", handle > 0x1000); }
static uintptr_t string_a(uintptr_t domain, const char* text) { return say("string %#lx %s", domain, text), next(); }
static uintptr_t create_a(const char* text) { return say("domain %s", text), next(); }
static void destroy(uintptr_t domain) { say("domain ends %#lx", domain); }
static uintptr_t lock_create(uintptr_t domain, const void* given) { return say("lock %#lx %d", domain, given != NULL), next(); }
static void lock_destroy(uintptr_t lock) { say("lock ends %#lx", lock); }
static void lock_start(uintptr_t lock) { say("lock waits %#lx", lock); }
static void lock_failed(uintptr_t lock) { say("lock failed %#lx", lock); }
static void lock_success(uintptr_t lock) { say("lock held %#lx", lock); }
static void lock_releasing(uintptr_t lock) { say("lock released %#lx", lock); }

static uint64_t registered(uintptr_t domain, const void* given) { return say("registered %#lx %d", domain, given != NULL), ((uint64_t)1 << 32) + next(); }
static int push_payload(uintptr_t domain, const void* data, size_t count) { return say("push %#lx with %d %zu", domain, data != NULL, count), LEVEL; }
static int pop_payload(uintptr_t domain, const void* data, size_t count) { return say("pop %#lx with %d %zu", domain, data != NULL, count), LEVEL; }
static uint64_t start_payload(uintptr_t domain, const void* data, size_t count) { return say("start %#lx with %d %zu", domain, data != NULL, count), next(); }
static void end_payload(uintptr_t domain, uint64_t range, const void* data, size_t count) { say("end %#lx %d with %d %zu", domain, range > 0x1000, data != NULL, count); }
static uint8_t is_enabled(uintptr_t domain) { return say("enabled %#lx", domain), 1; }
// Seconds, so that they are not taken for those of anybody else.
static int64_t timestamp(void) { return say("timestamp"), 5000 + (int64_t)next(); }
static void sample(uintptr_t domain, uint64_t counter, int64_t value) { say("sample %#lx %#lx %ld", domain, counter, (long)value); }

int InitializeInjectionNvtx2(const void* (*export)(uint32_t)) {
    const struct callbacks* callbacks = export(1);
    function** table;
    unsigned size;
    if (callbacks->table(1, &table, &size)) {
        *table[1] = (function)mark_ex;
        *table[2] = (function)mark_a;
        *table[5] = (function)start_a;
        *table[7] = (function)end;
        *table[9] = (function)push_a;
        *table[11] = (function)pop;
    }
    if (callbacks->table(5, &table, &size)) {
        function own[] = {NULL, (function)domain_mark, (function)domain_start, (function)domain_end, (function)domain_push,
                          (function)domain_pop, (function)resource, (function)resource_end, NULL, NULL, (function)string_a, NULL,
                          (function)create_a, NULL, (function)destroy};
        for (unsigned id = 1; id < 15; id++)
            if (own[id]) *table[id] = own[id];
    }
    if (callbacks->table(6, &table, &size)) {
        function own[] = {NULL, (function)lock_create, (function)lock_destroy, (function)lock_start, (function)lock_failed,
                          (function)lock_success, (function)lock_releasing};
        for (unsigned id = 1; id < 7; id++) *table[id] = own[id];
    }
    return 1;
}

int InitializeInjectionNvtxExtension(struct module* module) {
    function* slots = module->segments->slots;
    if (module->number == 2) {
        function own[] = {(function)registered, (function)registered, NULL, (function)push_payload, (function)pop_payload,
                          (function)start_payload, (function)end_payload, (function)is_enabled, (function)timestamp};
        for (size_t place = 0; place < 9; place++)
            if (own[place]) slots[place] = own[place];
    }
    if (module->number == 4) {
        slots[0] = (function)registered;
        slots[1] = (function)sample;
    }
    return 1;
}
