/* Prints how long each call of a program took that launches a kernel, copies or waits: CUPTI's samples callback_timestamp and
 * callback_event as its document describes them, as a library that is injected into a program.
 *
 *     cc -std=c99 -fPIC -shared -I include -o libcalls.so cupti_callback_timestamp.c
 *     CUDA_INJECTION64_PATH=./libcalls.so LD_PRELOAD=./libcupti.so.10.0 ./program
 *
 * `include` is tools/abi/cupti/include; libcupti.so.10.0 lies beside libgputrail.so.0.
 */
#include "cupti.h"
#include <stdio.h>
#include <string.h>

#define CALL(call)                                                                                                     \
    do {                                                                                                               \
        CUptiResult status = call;                                                                                     \
        const char *text = "";                                                                                         \
        if (status != CUPTI_SUCCESS) {                                                                                 \
            cuptiGetResultString(status, &text);                                                                       \
            fprintf(stderr, "%s: %s\n", #call, text);                                                                  \
        }                                                                                                              \
    } while (0)

/* The beginnings of the functions that are timed. */
static const char *const timed[] = {"clEnqueue", "clFinish",  "simLaunch",          "simMemcpy",
                                    "simMemset", "simStreamSynchronize"};

static void CUPTIAPI called_back(void *user_data, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                                 const void *cbdata) {
    const CUpti_CallbackData *call = (const CUpti_CallbackData *)cbdata;
    uint64_t now = 0;
    (void)user_data;
    (void)domain;
    (void)cbid;
    CALL(cuptiGetTimestamp(&now));
    if (call->callbackSite == CUPTI_API_ENTER) {
        *call->correlationData = now;
        return;
    }
    printf("%s %s%s%llu ns, correlation %u\n", call->functionName, call->symbolName != NULL ? call->symbolName : "",
           call->symbolName != NULL ? ": " : "took ", (unsigned long long)(now - *call->correlationData),
           call->correlationId);
}

/* Enables the callbacks of the functions of a domain that are timed. */
static void enable(CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain) {
    uint32_t cbid;
    size_t of;
    for (cbid = CUPTI_CBID_GPUTRAIL; cbid < CUPTI_CBID_GPUTRAIL + 1024; cbid++) {
        const char *name = NULL;
        if (cuptiGetCallbackName(domain, cbid, &name) != CUPTI_SUCCESS) continue;
        for (of = 0; of < sizeof timed / sizeof *timed; of++)
            if (strncmp(name, timed[of], strlen(timed[of])) == 0)
                CALL(cuptiEnableCallback(1, subscriber, domain, cbid));
    }
}

int InitializeInjection(void) {
    CUpti_SubscriberHandle subscriber;
    CALL(cuptiSubscribe(&subscriber, called_back, NULL));
    enable(subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
    enable(subscriber, CUPTI_CB_DOMAIN_RUNTIME_API);
    return 1;
}
