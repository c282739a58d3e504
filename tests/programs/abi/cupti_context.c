/* A tool of the simulated GPU: has the instructions counted of the kernels of the first context alone, by cuptiActivityEnableContext, and
 * prints how many kernels of that context and of others have such records. */
#include "cupti.h"
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1 << 16 };

static int failures;
static uint32_t chosen;
/* By correlation id: the context of a call's kernels, and whether there are records of their instructions. */
static uint32_t contexts[MOST];
static char is_counted[MOST];

static void check(const char *what, int line, int holds) {
    if (holds) return;
    printf("line %d: does not hold: %s\n", line, what);
    failures++;
}
#define CHECK(what) check(#what, __LINE__, (what) ? 1 : 0)

static void request(uint8_t **buffer, size_t *size, size_t *most) {
    *size = 1 << 16;
    *most = 0;
    *buffer = (uint8_t *)malloc(*size);
}

static void complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)size;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
            const CUpti_ActivityKernel4 *kernel = (const CUpti_ActivityKernel4 *)record;
            CHECK(kernel->correlationId < MOST);
            contexts[kernel->correlationId % MOST] = kernel->contextId;
        } else if (record->kind == CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION) {
            const CUpti_ActivityInstructionExecution *one = (const CUpti_ActivityInstructionExecution *)record;
            CHECK(one->correlationId < MOST);
            is_counted[one->correlationId % MOST] = 1;
        }
    }
    free(buffer);
}

static void called_back(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data) {
    CUcontext created = ((const CUpti_ResourceData *)data)->context;
    (void)user, (void)domain, (void)id;
    if (chosen != 0) return;
    CHECK(cuptiGetContextId(created, &chosen) == CUPTI_SUCCESS && chosen != 0);
    CHECK(cuptiActivityEnableContext(created, CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION) == CUPTI_SUCCESS);
}

static void end(void) {
    int of, own[2] = {0, 0}, others[2] = {0, 0};
    CHECK(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
    for (of = 0; of < MOST; of++) {
        CHECK(!is_counted[of] || contexts[of] != 0);
        if (contexts[of] != 0) (contexts[of] == chosen ? own : others)[(int)is_counted[of]]++;
    }
    printf("the context: %d calls counted, %d not\n", own[1], own[0]);
    printf("others: %d calls counted, %d not\n", others[1], others[0]);
    printf(failures == 0 ? "passed\n" : "failed\n");
}

int InitializeInjection(void) {
    CUpti_SubscriberHandle subscriber;
    CHECK(cuptiActivityRegisterCallbacks(request, complete) == CUPTI_SUCCESS);
    CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS);
    CHECK(cuptiSubscribe(&subscriber, called_back, NULL) == CUPTI_SUCCESS);
    CHECK(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED) == CUPTI_SUCCESS);
    return atexit(end) == 0;
}
