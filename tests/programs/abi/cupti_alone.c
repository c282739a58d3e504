/* Calls CUPTI where gputrail's library is not found. */
#include "cupti.h"
#include <stdio.h>

int main(void) {
    uint32_t version = 0;
    uint64_t now = 0;
    const char *name = NULL;
    CUpti_SubscriberHandle subscriber = NULL;
    printf("%d ", cuptiGetVersion(&version));
    printf("%d ", cuptiGetTimestamp(&now));
    printf("%d ", cuptiActivityEnable(CUPTI_ACTIVITY_KIND_KERNEL));
    printf("%d ", cuptiActivityFlushAll(0));
    printf("%d ", cuptiSubscribe(&subscriber, NULL, NULL));
    printf("%d ", cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, 1, &name));
    printf("%d ", cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 1));
    printf("%d\n", cuptiFinalize());
    return 0;
}
