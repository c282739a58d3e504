// Uses the extensions of NVTX with data that is described by layouts: unions, deferred events of several clocks, scopes,
// samples with times, locks with several holders, and memory. Prints whether NVTX gave an id for each.
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtMem.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <nvtx3/nvToolsExtSemanticsScope.h>
#include <nvtx3/nvToolsExtSemanticsTime.h>
#include <nvtx3/nvToolsExtSync.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <thread>
#include <time.h>

static void check(const char* what, bool value) { printf("%s %d\n", what, value); }

static int64_t read_clock(clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static nvtxPayloadSchemaEntry_t entry(uint64_t type, const char* name, uint64_t flags = 0, uint64_t detail = 0) {
    nvtxPayloadSchemaEntry_t one;
    memset(&one, 0, sizeof one);
    one.type = type;
    one.name = name;
    one.flags = flags;
    one.arrayOrUnionDetail = detail;
    return one;
}

static uint64_t layout(nvtxDomainHandle_t domain, uint64_t type, const nvtxPayloadSchemaEntry_t* entries, size_t count, size_t size,
                       const char* name = NULL) {
    nvtxPayloadSchemaAttr_t schema;
    memset(&schema, 0, sizeof schema);
    schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
        NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE;
    if (name) schema.fieldMask |= NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME;
    schema.name = name;
    schema.type = type;
    schema.entries = entries;
    schema.numEntries = count;
    schema.payloadStaticSize = size;
    return nvtxPayloadSchemaRegister(domain, &schema);
}

static void mark(nvtxDomainHandle_t domain, const char* name, uint64_t schema, const void* data, size_t size) {
    const auto text = entry(NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "", NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE, strlen(name) + 1);
    const uint64_t named = layout(domain, NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, &text, 1, strlen(name) + 1);
    const nvtxPayloadData_t all[] = {{named, strlen(name) + 1, name}, {schema, size, data}};
    nvtxMarkPayload(domain, all, 2);
}

static void unions(nvtxDomainHandle_t domain) {
    // A union whose member is chosen by an entry before it.
    const nvtxPayloadSchemaEntry_t members[] = {entry(NVTX_PAYLOAD_ENTRY_TYPE_INT64, "whole"), entry(NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, "real")};
    const uint64_t number = layout(domain, NVTX_PAYLOAD_SCHEMA_TYPE_UNION, members, 2, 8);
    const nvtxPayloadSchemaEntry_t outer[] = {entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "member"), entry(number, "value", 0, 0)};
    const uint64_t chosen = layout(domain, NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, outer, 2, 16);
    struct { uint64_t member; double real; } real = {1, 2.5};
    struct { uint64_t member; int64_t whole; } whole = {0, -7};
    mark(domain, "real member", chosen, &real, sizeof real);
    mark(domain, "whole member", chosen, &whole, sizeof whole);
    // A union with the choice inside of it.
    nvtxPayloadSchemaEntry_t own[] = {entry(NVTX_PAYLOAD_ENTRY_TYPE_UNION_SELECTOR, "selector"), entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT32, "code"),
                                      entry(NVTX_PAYLOAD_ENTRY_TYPE_FLOAT, "ratio")};
    own[1].offset = own[2].offset = 8;
    const uint64_t inner = layout(domain, NVTX_PAYLOAD_SCHEMA_TYPE_UNION_WITH_INTERNAL_SELECTOR, own, 3, 16);
    struct { uint64_t selector; float ratio; uint32_t rest; } ratio = {2, 0.5f, 0};
    mark(domain, "inner choice", inner, &ratio, sizeof ratio);
    check("unions", number && chosen && inner);
}

struct Event { int64_t begin, end; uint32_t size; uint32_t unused; };

// Submits events of a clock that lie 3 to 2 ms ago: one by itself, and two as a batch.
static void deferred(nvtxDomainHandle_t domain, const char* name, uint64_t clock, int64_t now, int64_t unit, uint64_t place) {
    nvtxSemanticsTime_t time = {{sizeof time, NVTX_SEMANTIC_ID_TIME_V1, NVTX_TIME_SEMANTIC_VERSION, NULL}, clock};
    const uint64_t at = NVTX_PAYLOAD_ENTRY_FLAG_TIMESTAMP;
    nvtxPayloadSchemaEntry_t entries[] = {
        entry(NVTX_PAYLOAD_ENTRY_TYPE_INT64, "begin", at | NVTX_PAYLOAD_ENTRY_FLAG_RANGE_BEGIN),
        entry(NVTX_PAYLOAD_ENTRY_TYPE_INT64, "end", at | NVTX_PAYLOAD_ENTRY_FLAG_RANGE_END),
        entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT32, "size"),
        entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT32, "unused", NVTX_PAYLOAD_ENTRY_FLAG_HIDE),
    };
    if (clock) entries[0].semantics = entries[1].semantics = &time.header;
    const uint64_t event = layout(domain, NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, entries, 4, sizeof(Event), name);
    const Event events[] = {{now - 3000 * unit, now - 2000 * unit, 64, 0}, {now - 2000 * unit, now - 1000 * unit, 128, 0}};
    const auto text = entry(NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "", NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE, strlen(name) + 1);
    const uint64_t named = layout(domain, NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, &text, 1, strlen(name) + 1);
    const nvtxPayloadData_t one[] = {{named, strlen(name) + 1, name}, {event, sizeof(Event), events}};
    nvtxEventSubmit(domain, one, 2);
    nvtxEventBatch_t batch;
    memset(&batch, 0, sizeof batch);
    batch.eventSchemaId = event;
    batch.size = sizeof events;
    batch.events = events;
    batch.scope = place;
    nvtxEventBatchSubmit(domain, &batch);
    check(name, event != 0);
}

// Events of a layout without a fixed size: a length, a text of that length, and a moment.
static void dynamic(nvtxDomainHandle_t domain) {
    const nvtxPayloadSchemaEntry_t entries[] = {
        entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT32, "length", NVTX_PAYLOAD_ENTRY_FLAG_HIDE),
        entry(NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "", NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE | NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX, 0),
        entry(NVTX_PAYLOAD_ENTRY_TYPE_INT64, "at", NVTX_PAYLOAD_ENTRY_FLAG_TIMESTAMP | NVTX_PAYLOAD_ENTRY_FLAG_MARK),
    };
    const uint64_t event = layout(domain, NVTX_PAYLOAD_SCHEMA_TYPE_DYNAMIC, entries, 3, 0);
    struct { uint32_t length; char text[12]; int64_t at; uint32_t length_2; char text_2[4]; int64_t at_2; } events;
    memset(&events, 0, sizeof events);
    events.length = sizeof events.text;
    events.length_2 = sizeof events.text_2;
    memcpy(events.text, "twelve bytes", sizeof events.text);
    memcpy(events.text_2, "four", sizeof events.text_2);
    events.at = events.at_2 = nvtxTimestampGet();
    nvtxEventBatch_t batch;
    memset(&batch, 0, sizeof batch);
    batch.eventSchemaId = event;
    batch.size = sizeof events;
    batch.events = &events;
    nvtxEventBatchSubmit(domain, &batch);
    check("dynamic", event != 0);
}

static uint64_t scope(nvtxDomainHandle_t domain, const char* path, uint64_t parent) {
    const nvtxScopeAttr_t scope = {sizeof scope, path, parent, NVTX_SCOPE_NONE};
    return nvtxScopeRegister(domain, &scope);
}

static void samples(nvtxDomainHandle_t domain, uint64_t place) {
    nvtxSemanticsTime_t time = {{sizeof time, NVTX_SEMANTIC_ID_TIME_V1, NVTX_TIME_SEMANTIC_VERSION, NULL},
                                NVTX_TIMESTAMP_TYPE_CPU_CLOCK_GETTIME_MONOTONIC};
    nvtxPayloadSchemaEntry_t entries[] = {
        entry(NVTX_PAYLOAD_ENTRY_TYPE_INT64, "at", NVTX_PAYLOAD_ENTRY_FLAG_TIMESTAMP),
        entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT32, "reads"),
        entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT32, "writes"),
    };
    entries[0].semantics = &time.header;
    nvtxCounterAttr_t counter;
    memset(&counter, 0, sizeof counter);
    counter.structSize = sizeof counter;
    counter.schemaId = layout(domain, NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, entries, 3, 16);
    counter.name = "disk";
    counter.scopeId = place;
    const uint64_t id = nvtxCounterRegister(domain, &counter);
    const int64_t now = read_clock(CLOCK_MONOTONIC);
    struct { int64_t at; uint32_t reads, writes; } all[] = {{now - 2000, 5, 6}, {now - 1000, 7, 8}};
    nvtxCounterBatch_t batch = {id, all, sizeof all, 0, NULL, 0};
    nvtxCounterBatchSubmit(domain, &batch);
    check("samples", id != 0);
}

static void locks(nvtxDomainHandle_t domain) {
    nvtxSyncUserAttributes_t lock;
    memset(&lock, 0, sizeof lock);
    lock.version = NVTX_VERSION;
    lock.size = NVTX_SYNCUSER_ATTRIB_STRUCT_SIZE;
    lock.messageType = NVTX_MESSAGE_TYPE_ASCII;
    lock.message.ascii = "readers";
    nvtxSyncUser_t user = nvtxDomainSyncUserCreate(domain, &lock);
    auto acquire = [=] {
        nvtxDomainSyncUserAcquireStart(user);
        nvtxDomainSyncUserAcquireSuccess(user);
    };
    // One thread holds it twice, another one meanwhile.
    acquire();
    acquire();
    std::thread([=] {
        acquire();
        nvtxDomainSyncUserReleasing(user);
    }).join();
    nvtxDomainSyncUserReleasing(user);
    nvtxDomainSyncUserReleasing(user);
    nvtxDomainSyncUserDestroy(user);
}

static void memory(nvtxDomainHandle_t domain) {
    static char pool[4096];
    nvtxMemVirtualRangeDesc_t range = {sizeof pool, pool};
    nvtxMemHeapDesc_t heap;
    memset(&heap, 0, sizeof heap);
    heap.extCompatID = NVTX_EXT_COMPATID_MEM;
    heap.structSize = sizeof heap;
    heap.usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR;
    heap.type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
    heap.typeSpecificDescSize = sizeof range;
    heap.typeSpecificDesc = &range;
    heap.messageType = NVTX_MESSAGE_TYPE_ASCII;
    heap.message.ascii = "the pool";
    nvtxMemHeapHandle_t handle = nvtxMemHeapRegister(domain, &heap);
    check("heap", (void*)handle == pool);
    nvtxMemVirtualRangeDesc_t parts[] = {{1024, pool}, {1024, pool + 1024}};
    nvtxMemRegionHandle_t regions[2] = {NULL, NULL};
    nvtxMemRegionsRegisterBatch_t batch;
    memset(&batch, 0, sizeof batch);
    batch.extCompatID = NVTX_EXT_COMPATID_MEM;
    batch.structSize = sizeof batch;
    batch.regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
    batch.heap = handle;
    batch.regionCount = 2;
    batch.regionDescElementSize = sizeof parts[0];
    batch.regionDescElements = parts;
    batch.regionHandleElementsOut = regions;
    nvtxMemRegionsRegister(domain, &batch);
    check("regions", (void*)regions[1] == pool + 1024);
    nvtxMemRegionNameDesc_t name;
    memset(&name, 0, sizeof name);
    name.regionRefType = NVTX_MEM_REGION_REF_TYPE_HANDLE;
    name.nameType = NVTX_MESSAGE_TYPE_ASCII;
    name.region.handle = regions[1];
    name.name.ascii = "second part";
    nvtxMemRegionsNameBatch_t names;
    memset(&names, 0, sizeof names);
    names.extCompatID = NVTX_EXT_COMPATID_MEM;
    names.structSize = sizeof names;
    names.regionCount = 1;
    names.regionElementSize = sizeof name;
    names.regionElements = &name;
    nvtxMemRegionsName(domain, &names);
    nvtxMemPermissionsHandle_t permissions = nvtxMemPermissionsCreate(domain, NVTX_MEM_PERMISSIONS_CREATE_FLAGS_NONE);
    check("permissions", permissions != NULL);
    nvtxMemPermissionsBind(domain, permissions, NVTX_MEM_PERMISSIONS_BIND_SCOPE_CPU_THREAD, NVTX_MEM_PERMISSIONS_BIND_FLAGS_NONE);
    nvtxMemPermissionsUnbind(domain, NVTX_MEM_PERMISSIONS_BIND_SCOPE_CPU_THREAD);
    nvtxMemPermissionsDestroy(domain, permissions);
    nvtxMemHeapUnregister(domain, handle);
}

int main() {
    nvtxDomainHandle_t domain = nvtxDomainCreateA("data");
    const uint64_t node = scope(domain, "/node", NVTX_SCOPE_ROOT), card = scope(domain, "card[0]", node);
    check("scopes", node && card);
    nvtxRangePushA("all of it");
    unions(domain);
    const int64_t stamp = nvtxTimestampGet();
    const timespec pause = {0, 4000000};
    nanosleep(&pause, NULL);
    const int64_t later = nvtxTimestampGet(), unit = (later - stamp) / 4000;
    deferred(domain, "own clock", 0, later, unit, card);
    deferred(domain, "monotonic", NVTX_TIMESTAMP_TYPE_CPU_CLOCK_GETTIME_MONOTONIC, read_clock(CLOCK_MONOTONIC), 1000, card);
    deferred(domain, "realtime", NVTX_TIMESTAMP_TYPE_CPU_CLOCK_GETTIME_REALTIME, read_clock(CLOCK_REALTIME), 1000, card);
    nvtxTimeDomainAttr_t time;
    memset(&time, 0, sizeof time);
    time.timestampTypeId = NVTX_TIMESTAMP_TYPE_CPU_CLOCK_GETTIME_BOOTTIME;
    time.timeDomainId = NVTX_TIME_DOMAIN_ID_STATIC_START + 7;
    check("static time domain", nvtxTimeDomainRegister(domain, &time) == time.timeDomainId);
    deferred(domain, "registered", time.timeDomainId, read_clock(CLOCK_BOOTTIME), 1000, NVTX_SCOPE_NONE);
    // A clock of its own, which runs at a tenth of the speed and begins 5 s ago.
    time.timestampTypeId = NVTX_TIMESTAMP_TYPE_NONE;
    time.timeDomainId = 0;
    const uint64_t own = nvtxTimeDomainRegister(domain, &time);
    deferred(domain, "unknown clock", own, 1000, 0, NVTX_SCOPE_NONE);
    const int64_t now = read_clock(CLOCK_MONOTONIC), start = now - 5000000000LL;
    nvtxTimeSyncPoint(domain, own, NVTX_TIMESTAMP_TYPE_CPU_CLOCK_GETTIME_MONOTONIC, 0, start);
    nvtxTimeSyncPoint(domain, own, NVTX_TIMESTAMP_TYPE_CPU_CLOCK_GETTIME_MONOTONIC, 500000000, now);
    deferred(domain, "tied clock", own, 500000000, 100, NVTX_SCOPE_NONE);
    dynamic(domain);
    samples(domain, card);
    locks(domain);
    memory(domain);
    nvtxRangePop();
    return 0;
}
