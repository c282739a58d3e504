/* What the examples of CUPTI have in common. Each is a library that is injected into a program, which knows nothing of it:
 *
 *   cc -std=c99 -D_GNU_SOURCE -Wall -Wextra -shared -fPIC -Iinclude -o libevent.so cupti_callback_event.c -lpthread
 *   CUDA_INJECTION64_PATH=./libevent.so EVENT=TASK_CLOCK LD_PRELOAD=./libcupti.so.10.0 ./program
 *   CUDA_INJECTION64_PATH=./libevent.so EVENT=SQ_WAVES gputrail demo --tool ./libcupti.so.10.0
 *
 * `include` is tools/abi/cupti/include; libcupti.so.10.0 lies beside libgputrail.so.0.
 */
#ifndef CUPTI_EXAMPLE_H
#define CUPTI_EXAMPLE_H

#include "cupti.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Says what failed, and goes on: a tool does not end the program. */
static bool succeed(const char *what, CUptiResult result) {
    const char *text = "unknown error";
    if (result == CUPTI_SUCCESS) return true;
    cuptiGetResultString(result, &text);
    fprintf(stderr, "%s: %s\n", what, text);
    return false;
}
#define SUCCEED(call) succeed(#call, call)

/* The value of a variable of the environment. */
static inline const char *setting(const char *name, const char *usual) {
    const char *value = getenv(name);
    return value ? value : usual;
}

/* Whether a callback is that of a function that launches kernels. */
static inline bool is_launch(CUpti_CallbackDomain domain, CUpti_CallbackId id) {
    const char *name = NULL;
    if (domain != CUPTI_CB_DOMAIN_DRIVER_API && domain != CUPTI_CB_DOMAIN_RUNTIME_API) return false;
    if (cuptiGetCallbackName(domain, id, &name) != CUPTI_SUCCESS) return false;
    return strcmp(name, "clEnqueueNDRangeKernel") == 0 || strcmp(name, "simLaunchKernel") == 0;
}

/* Whether a callback says that a context, or all of them, are going to be destroyed. Contexts of the simulated GPU end with it. */
static inline bool is_end(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data, CUcontext context) {
    const char *name = NULL;
    if (domain == CUPTI_CB_DOMAIN_RESOURCE)
        return id == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING &&
               (!context || ((const CUpti_ResourceData *)data)->context == context);
    return domain == CUPTI_CB_DOMAIN_RUNTIME_API &&
           ((const CUpti_CallbackData *)data)->callbackSite == CUPTI_API_ENTER &&
           cuptiGetCallbackName(domain, id, &name) == CUPTI_SUCCESS && strcmp(name, "simShutdown") == 0;
}

/* Has `call_back` called for functions, resources and waits. */
static inline void subscribe(CUpti_CallbackFunc call_back) {
    static CUpti_SubscriberHandle subscriber;
    if (!SUCCEED(cuptiSubscribe(&subscriber, call_back, NULL))) return;
    SUCCEED(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API));
    SUCCEED(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API));
    SUCCEED(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE));
    SUCCEED(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_SYNCHRONIZE));
}

/* Does `work` on a thread of its own, and waits for it: within callbacks, events that are counted all the time have the values
   of when they were read last. */
static inline void elsewhere(void *(*work)(void *), void *data) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, data) == 0) pthread_join(thread, NULL);
}

/* The number of instances that a group counts, and of all instances of its domain. */
static inline uint32_t instances(CUdevice device, CUpti_EventGroup group, uint32_t *all) {
    CUpti_EventDomainID domain = 0;
    uint32_t count = 0;
    size_t size = sizeof domain;
    *all = 0;
    SUCCEED(cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_EVENT_DOMAIN_ID, &size, &domain));
    SUCCEED(cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_INSTANCE_COUNT, &size, &count));
    SUCCEED(cuptiDeviceGetEventDomainAttribute(
        device, domain, CUPTI_EVENT_DOMAIN_ATTR_TOTAL_INSTANCE_COUNT, &size, all));
    return count;
}

enum { MOST_INSTANCES = 64 };

/* The value of an event of a group, of all instances of its domain together. */
static inline uint64_t read_event(CUdevice device, CUpti_EventGroup group, CUpti_EventID event) {
    uint64_t values[MOST_INSTANCES], sum = 0;
    size_t size = sizeof values, of;
    uint32_t all, count = instances(device, group, &all);
    if (!SUCCEED(cuptiEventGroupReadEvent(group, CUPTI_EVENT_READ_FLAG_NONE, event, &size, values))) return 0;
    for (of = 0; of < size / sizeof *values; of++) {
        if (values[of] >= CUPTI_EVENT_INVALID) return CUPTI_EVENT_INVALID;
        sum += values[of];
    }
    return count ? sum * all / count : sum;
}

/* A group of a context that counts the event that the variable EVENT names, with all instances of its domain. */
static inline bool make_group(
    CUcontext context, CUdevice *device, CUpti_EventGroup *group, CUpti_EventID *event, uint32_t scope) {
    uint32_t number = 0, on = 1;
    if (!SUCCEED(cuptiGetDeviceId(context, &number))) return false;
    *device = (CUdevice)number;
    return SUCCEED(cuptiEventGetIdFromName(*device, setting("EVENT", "TASK_CLOCK"), event)) &&
           SUCCEED(cuptiEventGroupCreate(context, group, 0)) &&
           SUCCEED(cuptiEventGroupSetAttribute(*group, CUPTI_EVENT_GROUP_ATTR_PROFILING_SCOPE, sizeof scope, &scope)) &&
           SUCCEED(cuptiEventGroupAddEvent(*group, *event)) &&
           SUCCEED(cuptiEventGroupSetAttribute(
               *group, CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES, sizeof on, &on));
}

#endif
