/* Plays an OpenMP runtime with target regions: loads the library that OMP_TOOL_LIBRARIES names first, as a runtime does, and
 * reports events. With the argument "old" it has no events with two ends. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*function)(void);
struct tool {
    int (*initialize)(function (*)(const char *), int, uint64_t *);
    void (*finalize)(uint64_t *);
    uint64_t data;
};

static function callbacks[64];
static int is_old;

static int set_callback(int event, function callback) {
    if (event <= 0 || event >= 64) return 0;
    if (is_old && event >= 33) return 1;
    callbacks[event] = callback;
    return 5;
}

static function lookup(const char *name) { return strcmp(name, "ompt_set_callback") ? NULL : (function)set_callback; }

int main(int count, char **arguments) {
    char path[4096];
    is_old = count > 1 && !strcmp(arguments[1], "old");
    snprintf(path, sizeof path, "%s", getenv("OMP_TOOL_LIBRARIES"));
    if (strchr(path, ':')) *strchr(path, ':') = 0;
    void *library = dlopen(path, RTLD_NOW);
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
    struct tool *(*start)(unsigned, const char *) = (struct tool * (*)(unsigned, const char *)) dlsym(library, "ompt_start_tool");
    struct tool *tool = start(202011, "a runtime that is played");
    if (!tool) return puts("no tool"), 0;
    if (!tool->initialize(lookup, 0, &tool->data)) return 2;
    uint64_t task = 0, target_task = 0, target = 0, operation = 0;
    void *here = (void *)main;
    if (is_old) {
        void (*region)(int, int, int, uint64_t *, uint64_t, void *) =
            (void (*)(int, int, int, uint64_t *, uint64_t, void *))callbacks[8];
        void (*data)(uint64_t, uint64_t, int, void *, int, void *, int, size_t, void *) =
            (void (*)(uint64_t, uint64_t, int, void *, int, void *, int, size_t, void *))callbacks[9];
        void (*submit)(uint64_t, uint64_t, unsigned) = (void (*)(uint64_t, uint64_t, unsigned))callbacks[10];
        region(1, 1, 0, &task, 5, here);
        data(5, 6, 2, here, -1, here, 0, 4096, here);
        submit(5, 7, 16);
        region(1, 2, 0, &task, 5, here);
    } else {
        void (*region)(int, int, int, uint64_t *, uint64_t *, uint64_t *, void *) =
            (void (*)(int, int, int, uint64_t *, uint64_t *, uint64_t *, void *))callbacks[33];
        void (*data)(int, uint64_t *, uint64_t *, uint64_t *, int, void *, int, void *, int, size_t, void *) =
            (void (*)(int, uint64_t *, uint64_t *, uint64_t *, int, void *, int, void *, int, size_t, void *))callbacks[34];
        void (*submit)(int, uint64_t *, uint64_t *, unsigned) = (void (*)(int, uint64_t *, uint64_t *, unsigned))callbacks[35];
        for (int end = 1; end <= 2; end++) region(2, end, 0, &task, &target_task, &target, here);
        region(1, 1, 0, &task, &target_task, &target, here);
        for (int end = 1; end <= 2; end++) data(end, &target_task, &target, &operation, 1, here, -1, NULL, 0, 4096, here);
        for (int end = 1; end <= 2; end++) data(end, &target_task, &target, &operation, 2, here, -1, here, 0, 4096, here);
        for (int end = 1; end <= 2; end++) submit(end, &target, &operation, 16);
        for (int end = 1; end <= 2; end++) data(end, &target_task, &target, &operation, 3, here, 0, here, -1, 4096, here);
        region(1, 2, 0, &task, &target_task, &target, here);
    }
    tool->finalize(&tool->data);
    puts("done");
    return 0;
}
