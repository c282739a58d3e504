// A tool of CUPTI (OF_CUPTI) or of ROCProfiler whose callback throws an exception of C++.
#include <stdexcept>

static void fail() { throw std::runtime_error("thrown in a callback"); }

#ifdef OF_CUPTI
#include <cupti.h>
extern "C" void throwing_callback(void *, CUpti_CallbackDomain, CUpti_CallbackId, const void *) { fail(); }

extern "C" int InitializeInjection(void) {
    CUpti_SubscriberHandle subscriber;
    if (cuptiSubscribe(&subscriber, (CUpti_CallbackFunc)throwing_callback, nullptr) != CUPTI_SUCCESS) return 0;
    return cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE) == CUPTI_SUCCESS;
}
#else
#include <rocprofiler.h>
extern "C" hsa_status_t throwing_callback(const rocprofiler_callback_data_t *, void *, rocprofiler_group_t *) {
    try {
        fail();
    } catch (const std::runtime_error &) {
        // Its own handlers are found.
        fail();
    }
    return HSA_STATUS_SUCCESS;
}

extern "C" void OnLoadTool(void) {
    rocprofiler_queue_callbacks_t callbacks = {throwing_callback, nullptr, nullptr};
    rocprofiler_set_queue_callbacks(callbacks, nullptr);
}
#endif
