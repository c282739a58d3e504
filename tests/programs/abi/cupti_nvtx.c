/* A program with markers of NVTX, which knows nothing of CUPTI. */
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtSync.h>

int main(void) {
    nvtxEventAttributes_t attributes = {0};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.colorType = NVTX_COLOR_ARGB;
    attributes.color = 0xff112233;
    attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    attributes.payload.ullValue = 42;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = "colored";
    nvtxRangePushA("outer");
    nvtxRangePushEx(&attributes);
    nvtxMarkA("moment");
    nvtxRangePop();
    nvtxRangeEnd(nvtxRangeStartA("started"));
    nvtxRangePop();

    nvtxSyncUserAttributes_t lock = {0};
    lock.version = NVTX_VERSION;
    lock.size = NVTX_SYNCUSER_ATTRIB_STRUCT_SIZE;
    lock.messageType = NVTX_MESSAGE_TYPE_ASCII;
    lock.message.ascii = "mutex";
    nvtxSyncUser_t user = nvtxDomainSyncUserCreate(nvtxDomainCreateA("locks"), &lock);
    nvtxDomainSyncUserAcquireStart(user);
    nvtxDomainSyncUserAcquireFailed(user);
    nvtxDomainSyncUserAcquireStart(user);
    nvtxDomainSyncUserAcquireSuccess(user);
    nvtxDomainSyncUserReleasing(user);
    return 0;
}
