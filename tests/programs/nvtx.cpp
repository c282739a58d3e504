// Uses NVTX through its own headers: markers, ranges, domains, categories, strings, resources, locks, payloads and
// counters. Prints the values that NVTX returns, one in a line. `nvtx_other.cpp` is a second binary with NVTX in it.
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <nvtx3/nvToolsExtSync.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static void check(const char* what, long value) { printf("%s %ld\n", what, value); }

static nvtxEventAttributes_t attributes(const char* message) {
    nvtxEventAttributes_t event;
    memset(&event, 0, sizeof event);
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = message;
    return event;
}

struct Sizes { int32_t width; double scale; char name[8]; uint64_t address; };
enum class Mode : uint8_t { slow = 1, fast = 2 };

static void payloads(nvtxDomainHandle_t domain) {
    const nvtxPayloadEnum_t modes[] = {{"slow", 1, 0}, {"fast", 2, 0}};
    nvtxPayloadEnumAttr_t names;
    memset(&names, 0, sizeof names);
    names.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
        NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE;
    names.entries = modes;
    names.numEntries = 2;
    names.sizeOfEnum = 1;
    uint64_t mode = nvtxPayloadEnumRegister(domain, &names);

    nvtxPayloadSchemaEntry_t entries[4];
    memset(entries, 0, sizeof entries);
    entries[0].type = NVTX_PAYLOAD_ENTRY_TYPE_INT32;
    entries[0].name = "width";
    entries[1].type = NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE;
    entries[1].name = "scale";
    entries[2].type = NVTX_PAYLOAD_ENTRY_TYPE_CSTRING;
    entries[2].arrayOrUnionDetail = 8;
    entries[2].name = "name";
    entries[3].type = NVTX_PAYLOAD_ENTRY_TYPE_ADDRESS;
    entries[3].name = "address";
    nvtxPayloadSchemaAttr_t schema;
    memset(&schema, 0, sizeof schema);
    schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
        NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE;
    schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
    schema.entries = entries;
    schema.numEntries = 4;
    schema.payloadStaticSize = sizeof(Sizes);
    uint64_t id = nvtxPayloadSchemaRegister(domain, &schema);
    check("registered", mode != 0 && id != 0);

    Sizes sizes = {-3, 1.5, "box", 0xbeef};
    Mode fast = Mode::fast;
    const char message[] = "with payloads";
    nvtxPayloadSchemaEntry_t text;
    memset(&text, 0, sizeof text);
    text.type = NVTX_PAYLOAD_ENTRY_TYPE_CSTRING;
    text.flags = NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE;
    text.arrayOrUnionDetail = sizeof message;
    schema.entries = &text;
    schema.numEntries = 1;
    schema.payloadStaticSize = sizeof message;
    uint64_t named = nvtxPayloadSchemaRegister(domain, &schema);
    const int32_t list[] = {1, 2, 3};
    nvtxPayloadData_t data[] = {
        {named, sizeof message, message}, {id, sizeof sizes, &sizes}, {mode, sizeof fast, &fast},
        {NVTX_PAYLOAD_ENTRY_TYPE_INT32, sizeof list, list},
    };
    check("push payload", nvtxRangePushPayload(domain, data, 4));
    nvtxPayloadData_t late = {id, sizeof sizes, &sizes};
    check("pop payload", nvtxRangePopPayload(domain, &late, 1));
    nvtxEventAttributes_t event = attributes("by attributes");
    event.payloadType = NVTX_PAYLOAD_TYPE_EXT;
    event.payload.ullValue = (uint64_t)(uintptr_t)&late;
    event.reserved0 = 1;
    nvtxDomainMarkEx(domain, &event);
    nvtxRangeEndPayload(domain, nvtxRangeStartPayload(domain, data, 1), &late, 1);
    check("enabled", nvtxDomainIsEnabled(domain));
}

static void counters(nvtxDomainHandle_t domain) {
    nvtxCounterAttr_t counter;
    memset(&counter, 0, sizeof counter);
    counter.structSize = sizeof counter;
    counter.schemaId = NVTX_PAYLOAD_ENTRY_TYPE_INT64;
    counter.name = "queue length";
    uint64_t id = nvtxCounterRegister(domain, &counter);
    for (int n = 0; n < 3; n++) nvtxCounterSampleInt64(domain, id, n * n);
    counter.schemaId = NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE;
    counter.name = "loss";
    uint64_t loss = nvtxCounterRegister(domain, &counter);
    nvtxCounterSampleFloat64(domain, loss, 0.25);
    const int64_t batch[] = {7, 8};
    const int64_t now = nvtxTimestampGet();
    const int64_t times[] = {now, now + 1};
    nvtxCounterBatch_t all = {id, batch, sizeof batch, 0, times, sizeof times};
    nvtxCounterBatchSubmit(domain, &all);
    check("counters", id != 0 && loss != 0);
}

static void threads(nvtxDomainHandle_t domain) {
    std::vector<std::thread> all;
    for (int thread = 0; thread < 4; thread++)
        all.emplace_back([=] {
            char name[32];
            snprintf(name, sizeof name, "worker %d", thread);
            nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), name);
            for (int n = 0; n < 100; n++) {
                nvtxEventAttributes_t event = attributes("in thread");
                nvtxDomainRangePushEx(domain, &event);
                nvtxRangePushA(name);
                nvtxRangePop();
                nvtxDomainRangePop(domain);
            }
        });
    for (auto& one : all) one.join();
}

int main(int, char** arguments) {
    // A second binary with NVTX, initialised from another thread at the same time.
    void* other = dlopen(arguments[1], RTLD_NOW);
    auto marks = (void (*)(void))dlsym(other, "other_marks");
    std::thread second(marks);
    nvtxInitialize(NULL);
    second.join();

    check("push", nvtxRangePushA("outer"));
    check("push", nvtxRangePushW(L"wide \u00fc"));
    nvtxMarkA("moment");
    check("pop", nvtxRangePop());
    check("pop", nvtxRangePop());
    check("pop without push", nvtxRangePop());

    nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
    check("same domain", domain == nvtxDomainCreateW(L"library"));
    nvtxDomainNameCategoryA(domain, 3, "input");
    nvtxNameCategoryW(4, L"output");
    nvtxEventAttributes_t event = attributes(NULL);
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = nvtxDomainRegisterStringA(domain, "registered");
    check("same string", event.message.registered == nvtxDomainRegisterStringW(domain, L"registered"));
    event.category = 3;
    event.colorType = NVTX_COLOR_ARGB;
    event.color = 0xff00ff80;
    event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    event.payload.llValue = -5;
    nvtxRangePushA("around");
    check("domain push", nvtxDomainRangePushEx(domain, &event));
    event.payloadType = NVTX_PAYLOAD_TYPE_FLOAT;
    event.payload.fValue = 0.5f;
    check("domain push", nvtxDomainRangePushEx(domain, &event));
    check("pop", nvtxRangePop());
    check("domain pop", nvtxDomainRangePop(domain));
    check("domain pop", nvtxDomainRangePop(domain));
    const struct { int32_t type; const char* name; } types[] = {
        {NVTX_PAYLOAD_TYPE_UNSIGNED_INT64, "uint64"}, {NVTX_PAYLOAD_TYPE_DOUBLE, "double"},
        {NVTX_PAYLOAD_TYPE_UNSIGNED_INT32, "uint32"}, {NVTX_PAYLOAD_TYPE_INT32, "int32"},
    };
    for (auto& type : types) {
        nvtxEventAttributes_t mark = attributes(type.name);
        mark.category = 4;
        mark.payloadType = type.type;
        if (type.type == NVTX_PAYLOAD_TYPE_DOUBLE) mark.payload.dValue = 2.5;
        else mark.payload.ullValue = 0xfffffffffffffffeULL;
        nvtxMarkEx(&mark);
    }

    nvtxRangeId_t range = nvtxDomainRangeStartEx(domain, &event), lost = nvtxRangeStartA("never ended");
    check("range", range != 0 && lost != range);
    std::thread([=] { nvtxDomainRangeEnd(domain, range); }).join();
    nvtxRangeEnd(nvtxRangeStartW(L"started"));
    nvtxRangeEnd(range);

    nvtxResourceAttributes_t resource;
    memset(&resource, 0, sizeof resource);
    resource.version = NVTX_VERSION;
    resource.size = NVTX_RESOURCE_ATTRIB_STRUCT_SIZE;
    resource.identifierType = NVTX_RESOURCE_TYPE_GENERIC_POINTER;
    resource.identifier.ullValue = 0x1234;
    resource.messageType = NVTX_MESSAGE_TYPE_ASCII;
    resource.message.ascii = "the buffer";
    nvtxDomainResourceDestroy(nvtxDomainResourceCreate(domain, &resource));

    nvtxSyncUserAttributes_t lock;
    memset(&lock, 0, sizeof lock);
    lock.version = NVTX_VERSION;
    lock.size = NVTX_SYNCUSER_ATTRIB_STRUCT_SIZE;
    lock.messageType = NVTX_MESSAGE_TYPE_ASCII;
    lock.message.ascii = "mutex";
    nvtxSyncUser_t user = nvtxDomainSyncUserCreate(domain, &lock);
    nvtxDomainSyncUserAcquireStart(user);
    nvtxDomainSyncUserAcquireFailed(user);
    nvtxDomainSyncUserAcquireStart(user);
    nvtxDomainSyncUserAcquireSuccess(user);
    nvtxDomainSyncUserReleasing(user);
    nvtxDomainSyncUserDestroy(user);

    payloads(domain);
    counters(domain);
    threads(domain);

    // The child has a capture of its own.
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        check("child", nvtxRangePushA("in the child"));
        nvtxRangePop();
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    nvtxDomainDestroy(domain);
    return 0;
}
