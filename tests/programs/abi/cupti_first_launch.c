/* A library that is injected and waits for the first launch before it asks for anything. In each launch of OpenCL it counts the
   kernel: it enables a group when the call begins, and reads it when the call ends. In the first launch of the simulated GPU it has
   the program counter sampled, and then counts the samples that have lines. */
#include "cupti.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures, launches;
static uint64_t samples, with_lines, lines;
static CUpti_EventGroup group;
static CUpti_EventID event;

static void check(const char *what, int line, int holds) {
    if (holds) return;
    printf("line %d: does not hold: %s\n", line, what);
    failures++;
}
#define CHECK(what) check(#what, __LINE__, (what) ? 1 : 0)
#define OK(call) CHECK(call == CUPTI_SUCCESS)

static void CUPTIAPI request(uint8_t **buffer, size_t *size, size_t *most) {
    *size = 1 << 20;
    *most = 0;
    *buffer = (uint8_t *)malloc(*size);
}

static void CUPTIAPI complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)size;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (record->kind == CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR) {
            lines++;
        } else if (record->kind == CUPTI_ACTIVITY_KIND_PC_SAMPLING) {
            samples++;
            with_lines += ((const CUpti_ActivityPCSampling3 *)record)->sourceLocatorId != 0;
        }
    }
    free(buffer);
}

static void count(const CUpti_CallbackData *call) {
    uint64_t value = 0;
    size_t size = sizeof value;
    if (call->callbackSite == CUPTI_API_ENTER) {
        uint32_t device = 0;
        OK(cuptiGetDeviceId(call->context, &device));
        OK(cuptiEventGetIdFromName((CUdevice)device, "TASK_CLOCK", &event));
        OK(cuptiSetEventCollectionMode(call->context, CUPTI_EVENT_COLLECTION_MODE_KERNEL));
        OK(cuptiEventGroupCreate(call->context, &group, 0));
        OK(cuptiEventGroupAddEvent(group, event));
        OK(cuptiEventGroupEnable(group));
        return;
    }
    launches++;
    OK(cuptiEventGroupReadEvent(group, CUPTI_EVENT_READ_FLAG_NONE, event, &size, &value));
    CHECK(value > 0 && value != CUPTI_EVENT_INVALID);
    OK(cuptiEventGroupDisable(group));
    OK(cuptiEventGroupDestroy(group));
}

static void CUPTIAPI called_back(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data) {
    const CUpti_CallbackData *call = (const CUpti_CallbackData *)data;
    (void)user, (void)domain, (void)id;
    if (strcmp(call->functionName, "clEnqueueNDRangeKernel") == 0) count(call);
    if (strcmp(call->functionName, "simLaunchKernel") == 0 && launches++ == 0) OK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_PC_SAMPLING));
}

static void end(void) {
    OK(cuptiActivityFlushAll(0));
    CHECK(launches > 0 && samples == with_lines && (samples == 0) == (lines == 0));
    printf("%s, %s\n", samples > 0 ? "sampled" : "counted", failures == 0 ? "passed" : "failed");
}

int InitializeInjection(void) {
    CUpti_SubscriberHandle subscriber;
    OK(cuptiActivityRegisterCallbacks(request, complete));
    OK(cuptiSubscribe(&subscriber, called_back, NULL));
    OK(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API));
    OK(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API));
    return atexit(end) == 0;
}
