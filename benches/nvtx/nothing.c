// An injection whose push and pop do nothing.
#include <stddef.h>
#include <stdint.h>

typedef void (*function)(void);
struct callbacks {
    size_t size;
    int (*table)(int module, function*** table, unsigned* size);
};

static int push(const char* message) { return message == NULL; }
static int pop(void) { return 0; }

int InitializeInjectionNvtx2(const void* (*export)(uint32_t)) {
    const struct callbacks* callbacks = export(1);
    function** table;
    unsigned size;
    if (!callbacks->table(1, &table, &size)) return 0;
    *table[9] = (function)push;
    *table[11] = (function)pop;
    return 1;
}
