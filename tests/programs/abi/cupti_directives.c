/* A tool of CUPTI for OpenACC and OpenMP, which their runtimes load: it passes on what they give it, and prints the numbers of records by
   kind of event, in order, when the program ends. */
#define CUPTI_OPENACC_SUPPORT
#define CUPTI_OPENMP_SUPPORT
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EVENTS = 20 };
static int acc[EVENTS], omp[EVENTS], wrong, correlated;
static uint64_t last_bytes;

static void CUPTIAPI request(uint8_t **buffer, size_t *size, size_t *most) {
    *size = 1 << 16;
    *buffer = (uint8_t *)aligned_alloc(8, *size);
    *most = 0;
}

static void CUPTIAPI complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)size;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        switch (record->kind) {
        case CUPTI_ACTIVITY_KIND_OPENACC_DATA: last_bytes = ((CUpti_ActivityOpenAccData *)record)->bytes; /* fall through */
        case CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH:
        case CUPTI_ACTIVITY_KIND_OPENACC_OTHER: {
            const CUpti_ActivityOpenAcc *of = (const CUpti_ActivityOpenAcc *)record;
            acc[of->eventKind % EVENTS]++;
            wrong += of->end < of->start || of->start == 0 || of->cuProcessId != (uint32_t)getpid();
            correlated += of->externalId != 0;
            break;
        }
        case CUPTI_ACTIVITY_KIND_OPENMP: {
            const CUpti_ActivityOpenMp *of = (const CUpti_ActivityOpenMp *)record;
            omp[of->eventKind % EVENTS]++;
            wrong += of->end < of->start || of->start == 0 || of->cuProcessId != (uint32_t)getpid();
            break;
        }
        default: break;
        }
    }
    free(buffer);
}

static void report(void) {
    cuptiActivityFlushAll(0);
    printf("OpenACC:");
    for (int kind = 0; kind < EVENTS; kind++)
        if (acc[kind]) printf(" %d of %d", acc[kind], kind);
    printf("\nOpenMP:");
    for (int kind = 0; kind < EVENTS; kind++)
        if (omp[kind]) printf(" %d of %d", omp[kind], kind);
    printf("\n%d wrong, %s correlated, %s bytes\n", wrong, correlated ? "some" : "none", last_bytes ? "some" : "no");
    fflush(stdout);
}

static void begin(void) {
    static const CUpti_ActivityKind kinds[] = {
        CUPTI_ACTIVITY_KIND_OPENACC_DATA, CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH, CUPTI_ACTIVITY_KIND_OPENACC_OTHER,
        CUPTI_ACTIVITY_KIND_OPENMP, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};
    if (cuptiActivityRegisterCallbacks(request, complete)) puts("no callbacks");
    for (size_t of = 0; of < sizeof kinds / sizeof *kinds; of++)
        if (cuptiActivityEnable(kinds[of])) printf("kind %d is refused\n", (int)kinds[of]);
    atexit(report);
}

void acc_register_library(void *registers, void *unregisters, void *lookup);
void acc_register_library(void *registers, void *unregisters, void *lookup) {
    begin();
    if (cuptiOpenACCInitialize(NULL, NULL, NULL) != CUPTI_ERROR_INVALID_PARAMETER) puts("null is taken");
    if (cuptiOpenACCInitialize(registers, unregisters, lookup)) puts("OpenACC is refused");
}

struct tool {
    int (*initialize)(CUpti_OpenMpLookup lookup, int device, uint64_t *data);
    void (*finalize)(uint64_t *data);
    uint64_t data;
};

static unsigned version;

static int initialize(CUpti_OpenMpLookup lookup, int device, uint64_t *data) {
    (void)device, (void)data;
    begin();
    return cuptiOpenMpInitialize(lookup, "a runtime", version);
}

static void finalize(uint64_t *data) { (void)data; }

struct tool *ompt_start_tool(unsigned of, const char *runtime);
struct tool *ompt_start_tool(unsigned of, const char *runtime) {
    static struct tool tool = {initialize, finalize, 0};
    (void)runtime;
    version = of;
    return &tool;
}
