/* A tool of the simulated GPU: each sampled instruction has the source line that cuptiGetSassToSourceCorrelation tells and that the
   records of samples have. */
#include "cupti.h"
#include "cupti_pcsampling.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OFFSETS = 1 << 16, LINES = 4096, MODULES = 8, ADDRESSES = 1 << 14, REASONS = 64 };

static int failures, contexts, modules, told, compared;
static struct {
    void *bytes;
    size_t size;
    uint64_t crc;
} module_of[MODULES];
static uint32_t locator_of[OFFSETS], line_of[LINES];
static char *file_of[LINES];
/* What was told of each address. */
static uint32_t told_line[OFFSETS];
static char *told_file[OFFSETS];

static void check(const char *what, int line, int holds) {
    if (holds) return;
    if (failures++ < 20) printf("line %d: does not hold: %s\n", line, what);
}
#define CHECK(what) check(#what, __LINE__, (what) ? 1 : 0)

static void CUPTIAPI request(uint8_t **buffer, size_t *size, size_t *most) {
    *size = 1 << 16;
    *most = 0;
    *buffer = (uint8_t *)malloc(*size);
}

static void CUPTIAPI complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)size;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (record->kind == CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR) {
            const CUpti_ActivitySourceLocator *one = (const CUpti_ActivitySourceLocator *)record;
            line_of[one->id % LINES] = one->lineNumber;
            file_of[one->id % LINES] = strdup(one->fileName);
        } else if (record->kind == CUPTI_ACTIVITY_KIND_PC_SAMPLING) {
            const CUpti_ActivityPCSampling3 *one = (const CUpti_ActivityPCSampling3 *)record;
            if (one->pcOffset < OFFSETS) locator_of[one->pcOffset] = one->sourceLocatorId;
        }
    }
    free(buffer);
}

static void look(CUpti_PCSamplingPCData *pc);

/* A context ends: its samples are complete. */
static void read_samples(CUcontext context) {
    static CUpti_PCSamplingPCData places[ADDRESSES];
    static CUpti_PCSamplingStallReason reasons[ADDRESSES][REASONS];
    CUpti_PCSamplingData data;
    CUpti_PCSamplingGetDataParams get = {CUpti_PCSamplingGetDataParamsSize, NULL, context, NULL};
    size_t of;
    memset(&data, 0, sizeof data);
    data.size = sizeof data;
    data.collectNumPcs = ADDRESSES;
    data.pPcData = places;
    for (of = 0; of < ADDRESSES; of++) {
        places[of].size = sizeof *places;
        places[of].stallReason = reasons[of];
    }
    get.pcSamplingData = &data;
    CHECK(cuptiPCSamplingGetData(&get) == CUPTI_SUCCESS && data.totalNumPcs > 0 && data.remainingNumPcs == 0);
    for (of = 0; of < data.totalNumPcs; of++) look(&places[of]);
}

static void CUPTIAPI called_back(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *data) {
    const CUpti_ResourceData *of = (const CUpti_ResourceData *)data;
    (void)user, (void)domain;
    if (cbid == CUPTI_CBID_RESOURCE_CONTEXT_CREATED && contexts < 4) {
        CUpti_PCSamplingEnableParams enable = {CUpti_PCSamplingEnableParamsSize, NULL, of->context};
        CHECK(cuptiPCSamplingEnable(&enable) == CUPTI_SUCCESS);
        contexts++;
    } else if (cbid == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING) {
        read_samples(of->context);
    } else if (cbid == CUPTI_CBID_RESOURCE_MODULE_LOADED && modules < MODULES) {
        const CUpti_ModuleResourceData *module = (const CUpti_ModuleResourceData *)of->resourceDescriptor;
        CUpti_GetCubinCrcParams crc = {CUpti_GetCubinCrcParamsSize, module->cubinSize, module->pCubin, 0};
        CHECK(module->cubinSize > 0 && module->pCubin != NULL);
        CHECK(cuptiGetCubinCrc(&crc) == CUPTI_SUCCESS && crc.cubinCrc != 0);
        module_of[modules].bytes = malloc(module->cubinSize);
        memcpy(module_of[modules].bytes, module->pCubin, module->cubinSize);
        module_of[modules].size = module->cubinSize;
        module_of[modules++].crc = crc.cubinCrc;
    }
}

static void look(CUpti_PCSamplingPCData *pc) {
    CUpti_GetSassToSourceCorrelationParams line = {CUpti_GetSassToSourceCorrelationParamsSize, NULL, NULL, 0, 0, 0, NULL, NULL};
    int of;
    for (of = 0; of < modules && module_of[of].crc != pc->cubinCrc; of++) {}
    CHECK(of < modules);
    if (of == modules) return;
    line.cubin = module_of[of].bytes;
    line.cubinSize = module_of[of].size;
    line.functionName = pc->functionName;
    line.pcOffset = pc->pcOffset;
    CHECK(cuptiGetSassToSourceCorrelation(&line) == CUPTI_SUCCESS);
    if (line.fileName == NULL) return;
    CHECK(line.lineNumber > 0 && *line.fileName != 0 && line.dirName != NULL);
    told++;
    if (pc->pcOffset < OFFSETS) {
        told_line[pc->pcOffset] = line.lineNumber;
        told_file[pc->pcOffset] = strdup(line.fileName);
    }
    free(line.fileName), free(line.dirName);
    line.pcOffset = (uint64_t)1 << 40;
    CHECK(cuptiGetSassToSourceCorrelation(&line) == CUPTI_ERROR_NOT_SUPPORTED);
}

static void compare(uint32_t offset) {
    const uint32_t locator = locator_of[offset] % LINES;
    const char *path = file_of[locator], *name = path == NULL ? NULL : strrchr(path, '/');
    if (locator == 0 || told_line[offset] == 0) return;
    CHECK(path != NULL && line_of[locator] == told_line[offset]);
    CHECK(path != NULL && strcmp(name == NULL ? path : name + 1, told_file[offset]) == 0);
    compared++;
}

static void end(void) {
    uint32_t offset;
    CHECK(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
    for (offset = 0; offset < OFFSETS; offset++) compare(offset);
    CHECK(contexts == 2 && modules > 0 && told > 10 && compared > 10);
    printf(failures == 0 ? "passed\n" : "failed\n");
}

int InitializeInjection(void) {
    CUpti_SubscriberHandle subscriber;
    if (cuptiActivityRegisterCallbacks(request, complete) != CUPTI_SUCCESS) return 0;
    CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_PC_SAMPLING) == CUPTI_SUCCESS);
    CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR) == CUPTI_SUCCESS);
    CHECK(cuptiSubscribe(&subscriber, (CUpti_CallbackFunc)called_back, NULL) == CUPTI_SUCCESS);
    CHECK(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE) == CUPTI_SUCCESS);
    return atexit(end) == 0;
}
