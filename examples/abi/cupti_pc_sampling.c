/* Samples the program counter of all devices, and prints the records: for each kernel, at which instruction and line its waves
   were, and for which reason they did not go on. */
#include "cupti_example.h"

enum { BUFFER_BYTES = 1 << 20 };

static const char *const reasons[] = {
    "invalid", "none", "instruction fetch", "execution dependency", "memory dependency", "texture", "synchronization",
    "constant memory dependency", "pipe busy", "memory throttle", "not selected", "other", "sleeping"};

static void print(const CUpti_Activity *record) {
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR: {
        const CUpti_ActivitySourceLocator *line = (const CUpti_ActivitySourceLocator *)record;
        printf("line %u: %s:%u\n", line->id, line->fileName, line->lineNumber);
        break;
    }
    case CUPTI_ACTIVITY_KIND_FUNCTION: {
        const CUpti_ActivityFunction *function = (const CUpti_ActivityFunction *)record;
        printf("function %u: %s\n", function->id, function->name);
        break;
    }
    case CUPTI_ACTIVITY_KIND_PC_SAMPLING: {
        const CUpti_ActivityPCSampling3 *one = (const CUpti_ActivityPCSampling3 *)record;
        printf("samples of kernel %u: %u (%u of latency) in function %u at 0x%" PRIx64 ", line %u: %s\n", one->correlationId,
               one->samples, one->latencySamples, one->functionId, one->pcOffset, one->sourceLocatorId,
               reasons[one->stallReason]);
        break;
    }
    case CUPTI_ACTIVITY_KIND_PC_SAMPLING_RECORD_INFO: {
        const CUpti_ActivityPCSamplingRecordInfo *one = (const CUpti_ActivityPCSamplingRecordInfo *)record;
        printf("kernel %u: %" PRIu64 " samples, %" PRIu64 " dropped, one in %" PRIu64 "\n", one->correlationId,
               one->totalSamples, one->droppedSamples, one->samplingPeriodInCycles);
        break;
    }
    default: break;
    }
}

static void CUPTIAPI requested(uint8_t **buffer, size_t *size, size_t *most) {
    *buffer = (uint8_t *)malloc(BUFFER_BYTES);
    *size = BUFFER_BYTES;
    *most = 0;
}

static void CUPTIAPI completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)size;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) print(record);
    free(buffer);
}

static void *end(void *data) {
    (void)data;
    SUCCEED(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    fflush(stdout);
    return NULL;
}

static void CUPTIAPI call_back(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *given) {
    const CUpti_ResourceData *data = (const CUpti_ResourceData *)given;
    (void)user;
    if (is_end(domain, id, given, NULL)) {
        elsewhere(end, NULL);
    } else if (domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) {
        CUpti_ActivityPCSamplingConfig config;
        memset(&config, 0, sizeof config);
        config.size = sizeof config;
        config.samplingPeriod = CUPTI_ACTIVITY_PC_SAMPLING_PERIOD_LOW;
        config.samplingPeriod2 = (uint32_t)atoi(setting("EXPONENT", "0"));
        SUCCEED(cuptiActivityConfigurePCSampling(data->context, &config));
    }
}

int InitializeInjection(void);
int InitializeInjection(void) {
    SUCCEED(cuptiActivityRegisterCallbacks(requested, completed));
    SUCCEED(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_FUNCTION));
    SUCCEED(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_PC_SAMPLING));
    subscribe(call_back);
    return 1;
}
