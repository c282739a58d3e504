/* Maps instructions to lines of source code, with the number of times that waves executed each: the sum over all kernels. */
#include "cupti_example.h"

enum { BUFFER_BYTES = 1 << 20, MOST = 4096 };

static struct {
    uint32_t function, offset, line;
    uint64_t executed, threads;
} instructions[MOST];
static struct {
    const char *file;
    uint32_t number;
} lines[MOST];
static const char *functions[MOST];
static uint32_t count;

static void add(const CUpti_ActivityInstructionExecution *one) {
    uint32_t of = 0;
    while (of < count && (instructions[of].function != one->functionId || instructions[of].offset != one->pcOffset)) of++;
    if (of == MOST) return;
    if (of == count) count++;
    instructions[of].function = one->functionId;
    instructions[of].offset = one->pcOffset;
    instructions[of].line = one->sourceLocatorId;
    instructions[of].executed += one->executed;
    instructions[of].threads += one->threadsExecuted;
}

static void CUPTIAPI requested(uint8_t **buffer, size_t *size, size_t *most) {
    *buffer = (uint8_t *)malloc(BUFFER_BYTES);
    *size = BUFFER_BYTES;
    *most = 0;
}

static void CUPTIAPI completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)size;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (record->kind == CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION) {
            add((const CUpti_ActivityInstructionExecution *)record);
        } else if (record->kind == CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR) {
            const CUpti_ActivitySourceLocator *line = (const CUpti_ActivitySourceLocator *)record;
            if (line->id >= MOST) continue;
            lines[line->id].file = line->fileName;
            lines[line->id].number = line->lineNumber;
        } else if (record->kind == CUPTI_ACTIVITY_KIND_FUNCTION) {
            const CUpti_ActivityFunction *function = (const CUpti_ActivityFunction *)record;
            if (function->id < MOST) functions[function->id] = function->name;
        }
    }
    free(buffer);
}

static void *end(void *data) {
    uint32_t of;
    (void)data;
    SUCCEED(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    for (of = 0; of < count; of++) {
        uint32_t function = instructions[of].function, line = instructions[of].line;
        const char *name = function < MOST && functions[function] ? functions[function] : "?";
        const char *file = line < MOST && lines[line].file ? lines[line].file : "?";
        printf("%s 0x%x %s:%u executed %" PRIu64 " threads %" PRIu64 "\n", name, instructions[of].offset, file,
               line < MOST ? lines[line].number : 0, instructions[of].executed, instructions[of].threads);
    }
    fflush(stdout);
    return NULL;
}

static void CUPTIAPI call_back(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *given) {
    (void)user;
    if (is_end(domain, id, given, NULL)) elsewhere(end, NULL);
}

int InitializeInjection(void);
int InitializeInjection(void) {
    SUCCEED(cuptiActivityRegisterCallbacks(requested, completed));
    SUCCEED(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_FUNCTION));
    SUCCEED(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION));
    subscribe(call_back);
    return 1;
}
