/* Calls every function of CUPTI's Event and Metric APIs and that of PC sampling, and provokes every status that its text
   documents, as far as it can happen here. It is linked with the library. Compiled as C and as C++. */
#define CL_TARGET_OPENCL_VERSION 120
#include "cupti.h"
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static void expect(const char *what, int line, CUptiResult got, CUptiResult wanted) {
    const char *text = "?", *other = "?";
    if (got == wanted) return;
    cuptiGetResultString(got, &text);
    cuptiGetResultString(wanted, &other);
    printf("line %d: %s: %s, expected: %s\n", line, what, text, other);
    failures++;
}
#define EXPECT(call, wanted) expect(#call, __LINE__, call, wanted)
#define OK(call) expect(#call, __LINE__, call, CUPTI_SUCCESS)

static void check(const char *what, int line, int holds) {
    if (holds) return;
    printf("line %d: does not hold: %s\n", line, what);
    failures++;
}
#define CHECK(what) check(#what, __LINE__, (what) ? 1 : 0)

enum { MOST = 512 };

static cl_context in, other_in;
static cl_device_id cl_device;
static cl_command_queue queue;
static cl_kernel kernel;
static CUcontext context, other_context;
static CUdevice device;
static void *const nowhere = &failures;

static void launch(int times) {
    size_t items = 256;
    while (times--) CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(clFinish(queue) == CL_SUCCESS);
}

static CUpti_EventID named(const char *name) {
    CUpti_EventID event = 0;
    OK(cuptiEventGetIdFromName(device, name, &event));
    return event;
}

static void devices(void) {
    size_t size = sizeof(uint64_t), small = 1;
    uint64_t large = 77, time = 0, later = 0;
    uint32_t number = 0;
    int attribute;
    for (attribute = CUPTI_DEVICE_ATTR_MAX_EVENT_ID; attribute <= CUPTI_DEVICE_ATTR_NVSWITCH_PRESENT; attribute++) {
        size = sizeof large;
        OK(cuptiDeviceGetAttribute(device, (CUpti_DeviceAttribute)attribute, &size, &large));
        CHECK(size == 4 || size == 8);
        small = size - 1;
        EXPECT(
            cuptiDeviceGetAttribute(device, (CUpti_DeviceAttribute)attribute, &small, &large),
            CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
    }
    size = sizeof number;
    OK(cuptiDeviceGetAttribute(device, CUPTI_DEVICE_ATTR_MAX_EVENT_ID, &size, &number));
    CHECK(size == 4 && number >= 9);
    size = sizeof large;
    EXPECT(cuptiDeviceGetAttribute(99, CUPTI_DEVICE_ATTR_MAX_EVENT_ID, &size, &large), CUPTI_ERROR_INVALID_DEVICE);
    EXPECT(cuptiDeviceGetAttribute(device, (CUpti_DeviceAttribute)0, &size, &large), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiDeviceGetAttribute(device, (CUpti_DeviceAttribute)77, &size, &large), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiDeviceGetAttribute(device, CUPTI_DEVICE_ATTR_PCIE_GEN, NULL, &large), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiDeviceGetAttribute(device, CUPTI_DEVICE_ATTR_PCIE_GEN, &size, NULL), CUPTI_ERROR_INVALID_PARAMETER);

    OK(cuptiDeviceGetTimestamp(context, &time));
    OK(cuptiDeviceGetTimestamp(context, &later));
    CHECK(time > 0 && later >= time);
    EXPECT(cuptiDeviceGetTimestamp(context, NULL), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiDeviceGetTimestamp(NULL, &time), CUPTI_ERROR_INVALID_CONTEXT);
    EXPECT(cuptiDeviceGetTimestamp((CUcontext)nowhere, &time), CUPTI_ERROR_INVALID_CONTEXT);
}

static void domains(void) {
    CUpti_EventDomainID all[MOST], of_device[MOST], one = 0;
    CUpti_EventID events[MOST];
    uint32_t count = 0, device_count = 0, number = 0;
    size_t size, instances_size;
    char name[64];
    OK(cuptiGetNumEventDomains(&count));
    OK(cuptiDeviceGetNumEventDomains(device, &device_count));
    CHECK(device_count >= 1 && count >= device_count && count < MOST);
    EXPECT(cuptiGetNumEventDomains(NULL), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiDeviceGetNumEventDomains(device, NULL), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiDeviceGetNumEventDomains(-1, &number), CUPTI_ERROR_INVALID_DEVICE);
    size = sizeof all;
    OK(cuptiEnumEventDomains(&size, all));
    CHECK(size == count * sizeof *all);
    EXPECT(cuptiEnumEventDomains(NULL, all), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEnumEventDomains(&size, NULL), CUPTI_ERROR_INVALID_PARAMETER);
    size = sizeof of_device;
    OK(cuptiDeviceEnumEventDomains(device, &size, of_device));
    CHECK(size == device_count * sizeof *of_device);
    /* Less room: as many as fit. */
    size = sizeof one + 1;
    OK(cuptiDeviceEnumEventDomains(device, &size, &one));
    CHECK(size == sizeof one && one == of_device[0]);
    EXPECT(cuptiDeviceEnumEventDomains(99, &size, of_device), CUPTI_ERROR_INVALID_DEVICE);
    EXPECT(cuptiDeviceEnumEventDomains(device, NULL, of_device), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiDeviceEnumEventDomains(device, &size, NULL), CUPTI_ERROR_INVALID_PARAMETER);

    size = sizeof name;
    OK(cuptiEventDomainGetAttribute(one, CUPTI_EVENT_DOMAIN_ATTR_NAME, &size, name));
    CHECK(size == strlen(name) + 1 && strcmp(name, "SOFTWARE") == 0);
    memset(name, 'x', sizeof name);
    size = 4;
    OK(cuptiDeviceGetEventDomainAttribute(device, one, CUPTI_EVENT_DOMAIN_ATTR_NAME, &size, name));
    CHECK(size == 4 && memcmp(name, "SOFTx", 5) == 0);
    instances_size = sizeof number;
    OK(cuptiDeviceGetEventDomainAttribute(device, one, CUPTI_EVENT_DOMAIN_ATTR_INSTANCE_COUNT, &instances_size, &number));
    CHECK(number == 1);
    OK(cuptiDeviceGetEventDomainAttribute(
        device, one, CUPTI_EVENT_DOMAIN_ATTR_TOTAL_INSTANCE_COUNT, &instances_size, &number));
    CHECK(number == 1);
    OK(cuptiEventDomainGetAttribute(one, CUPTI_EVENT_DOMAIN_ATTR_COLLECTION_METHOD, &instances_size, &number));
    CHECK(number == CUPTI_EVENT_COLLECTION_METHOD_PM);
    EXPECT(
        cuptiEventDomainGetAttribute(one, CUPTI_EVENT_DOMAIN_ATTR_INSTANCE_COUNT, &instances_size, &number),
        CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(
        cuptiEventDomainGetAttribute(0, CUPTI_EVENT_DOMAIN_ATTR_NAME, &size, name),
        CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID);
    EXPECT(
        cuptiEventDomainGetAttribute(one, (CUpti_EventDomainAttribute)9, &size, name), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(
        cuptiEventDomainGetAttribute(one, CUPTI_EVENT_DOMAIN_ATTR_NAME, NULL, name), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(
        cuptiEventDomainGetAttribute(one, CUPTI_EVENT_DOMAIN_ATTR_NAME, &size, NULL), CUPTI_ERROR_INVALID_PARAMETER);
    size = 3;
    EXPECT(
        cuptiEventDomainGetAttribute(one, CUPTI_EVENT_DOMAIN_ATTR_COLLECTION_METHOD, &size, &number),
        CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
    EXPECT(
        cuptiDeviceGetEventDomainAttribute(device, one, CUPTI_EVENT_DOMAIN_ATTR_INSTANCE_COUNT, &size, &number),
        CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
    EXPECT(
        cuptiDeviceGetEventDomainAttribute(99, one, CUPTI_EVENT_DOMAIN_ATTR_NAME, &size, name),
        CUPTI_ERROR_INVALID_DEVICE);
    EXPECT(
        cuptiDeviceGetEventDomainAttribute(device, 0xffffffff, CUPTI_EVENT_DOMAIN_ATTR_NAME, &size, name),
        CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID);
    EXPECT(
        cuptiDeviceGetEventDomainAttribute(device, one, (CUpti_EventDomainAttribute)9, &size, name),
        CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(
        cuptiDeviceGetEventDomainAttribute(device, one, CUPTI_EVENT_DOMAIN_ATTR_NAME, NULL, name),
        CUPTI_ERROR_INVALID_PARAMETER);

    OK(cuptiEventDomainGetNumEvents(one, &number));
    CHECK(number >= 9);
    EXPECT(cuptiEventDomainGetNumEvents(one, NULL), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEventDomainGetNumEvents(0xfffff, &number), CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID);
    size = sizeof events;
    OK(cuptiEventDomainEnumEvents(one, &size, events));
    CHECK(size == number * sizeof *events && events[0] == named("TASK_CLOCK"));
    EXPECT(cuptiEventDomainEnumEvents(one, NULL, events), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEventDomainEnumEvents(one, &size, NULL), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEventDomainEnumEvents(0, &size, events), CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID);
}

static void events(void) {
    CUpti_EventID event = 0, clock = named("TASK_CLOCK");
    char name[256];
    size_t size = sizeof name;
    uint32_t number = 77;
    OK(cuptiEventGetAttribute(clock, CUPTI_EVENT_ATTR_NAME, &size, name));
    CHECK(strcmp(name, "TASK_CLOCK") == 0 && size == sizeof "TASK_CLOCK");
    size = sizeof name;
    OK(cuptiEventGetAttribute(clock, CUPTI_EVENT_ATTR_SHORT_DESCRIPTION, &size, name));
    CHECK(size > 10);
    size = sizeof name;
    OK(cuptiEventGetAttribute(clock, CUPTI_EVENT_ATTR_LONG_DESCRIPTION, &size, name));
    CHECK(size > 10);
    size = sizeof number;
    OK(cuptiEventGetAttribute(clock, CUPTI_EVENT_ATTR_CATEGORY, &size, &number));
    CHECK(number == CUPTI_EVENT_CATEGORY_INSTRUCTION);
    OK(cuptiEventGetAttribute(named("PAGE_FAULTS"), CUPTI_EVENT_ATTR_CATEGORY, &size, &number));
    CHECK(number == CUPTI_EVENT_CATEGORY_MEMORY);
    OK(cuptiEventGetAttribute(clock, CUPTI_EVENT_ATTR_PROFILING_SCOPE, &size, &number));
    CHECK(number == CUPTI_EVENT_PROFILING_SCOPE_BOTH);
    size = 1;
    EXPECT(
        cuptiEventGetAttribute(clock, CUPTI_EVENT_ATTR_CATEGORY, &size, &number),
        CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
    EXPECT(cuptiEventGetAttribute(0, CUPTI_EVENT_ATTR_NAME, &size, name), CUPTI_ERROR_INVALID_EVENT_ID);
    EXPECT(cuptiEventGetAttribute(clock, (CUpti_EventAttribute)4, &size, name), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEventGetAttribute(clock, CUPTI_EVENT_ATTR_NAME, NULL, name), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEventGetAttribute(clock, CUPTI_EVENT_ATTR_NAME, &size, NULL), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEventGetIdFromName(device, "NO_SUCH", &event), CUPTI_ERROR_INVALID_EVENT_NAME);
    EXPECT(cuptiEventGetIdFromName(device, "CPUS_UTILIZED", &event), CUPTI_ERROR_INVALID_EVENT_NAME);
    EXPECT(cuptiEventGetIdFromName(99, "TASK_CLOCK", &event), CUPTI_ERROR_INVALID_DEVICE);
    EXPECT(cuptiEventGetIdFromName(device, NULL, &event), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEventGetIdFromName(device, "TASK_CLOCK", NULL), CUPTI_ERROR_INVALID_PARAMETER);
}

static void group_attributes(void) {
    CUpti_EventID clock = named("TASK_CLOCK"), faults = named("PAGE_FAULTS"), ids[4];
    CUpti_EventGroup group = NULL, gone = NULL;
    uint32_t number = 77, on = 1;
    size_t size;
    void *data = &failures, *read = NULL;
    EXPECT(cuptiEventGroupCreate(context, NULL, 0), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEventGroupCreate(context, &group, 1), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEventGroupCreate(NULL, &group, 0), CUPTI_ERROR_INVALID_CONTEXT);
    EXPECT(cuptiEventGroupCreate((CUcontext)nowhere, &group, 0), CUPTI_ERROR_INVALID_CONTEXT);
    OK(cuptiEventGroupCreate(context, &gone, 0));
    OK(cuptiEventGroupDestroy(gone));
    EXPECT(cuptiEventGroupDestroy(gone), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEventGroupDestroy(NULL), CUPTI_ERROR_INVALID_PARAMETER);
    OK(cuptiEventGroupCreate(context, &group, 0));
    size = sizeof number;
    OK(cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, &size, &number));
    CHECK(number == 0);
    OK(cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_INSTANCE_COUNT, &size, &number));
    CHECK(number == 0);
    on = CUPTI_EVENT_PROFILING_SCOPE_DEVICE;
    OK(cuptiEventGroupSetAttribute(group, CUPTI_EVENT_GROUP_ATTR_PROFILING_SCOPE, sizeof on, &on));
    on = 9;
    EXPECT(
        cuptiEventGroupSetAttribute(group, CUPTI_EVENT_GROUP_ATTR_PROFILING_SCOPE, sizeof on, &on),
        CUPTI_ERROR_INVALID_PARAMETER);

    OK(cuptiEventGroupAddEvent(group, clock));
    OK(cuptiEventGroupAddEvent(group, faults));
    EXPECT(cuptiEventGroupAddEvent(group, 0), CUPTI_ERROR_INVALID_EVENT_ID);
    EXPECT(cuptiEventGroupAddEvent(NULL, clock), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEventGroupAddEvent(group, named("INSTRUCTIONS")), CUPTI_ERROR_NOT_COMPATIBLE);
    on = CUPTI_EVENT_PROFILING_SCOPE_DEVICE;
    EXPECT(
        cuptiEventGroupSetAttribute(group, CUPTI_EVENT_GROUP_ATTR_PROFILING_SCOPE, sizeof on, &on),
        CUPTI_ERROR_INVALID_OPERATION);
    OK(cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_PROFILING_SCOPE, &size, &number));
    CHECK(number == CUPTI_EVENT_PROFILING_SCOPE_DEVICE);
    OK(cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, &size, &number));
    CHECK(number == 2);
    OK(cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_INSTANCE_COUNT, &size, &number));
    CHECK(number == 1);
    OK(cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_EVENT_DOMAIN_ID, &size, &number));
    CHECK(number != 0);
    size = sizeof ids;
    OK(cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_EVENTS, &size, ids));
    CHECK(size == 2 * sizeof *ids && ids[0] == clock && ids[1] == faults);
    size = sizeof *ids;
    EXPECT(
        cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_EVENTS, &size, ids),
        CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
    size = sizeof number;
    on = 1;
    OK(cuptiEventGroupSetAttribute(group, CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES, sizeof on, &on));
    OK(cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES, &size, &number));
    CHECK(number == 1);
    OK(cuptiEventGroupSetAttribute(group, CUPTI_EVENT_GROUP_ATTR_USER_DATA, sizeof data, &data));
    size = sizeof read;
    OK(cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_USER_DATA, &size, &read));
    CHECK(read == data);
    EXPECT(
        cuptiEventGroupSetAttribute(group, CUPTI_EVENT_GROUP_ATTR_USER_DATA, 3, &data),
        CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
    EXPECT(
        cuptiEventGroupSetAttribute(group, CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, sizeof on, &on),
        CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(
        cuptiEventGroupSetAttribute(group, (CUpti_EventGroupAttribute)77, sizeof on, &on),
        CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(
        cuptiEventGroupSetAttribute(group, CUPTI_EVENT_GROUP_ATTR_USER_DATA, sizeof data, NULL),
        CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(
        cuptiEventGroupSetAttribute(NULL, CUPTI_EVENT_GROUP_ATTR_USER_DATA, sizeof data, &data),
        CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(
        cuptiEventGroupGetAttribute(group, (CUpti_EventGroupAttribute)77, &size, &number),
        CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(
        cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, NULL, &number),
        CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(
        cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, &size, NULL),
        CUPTI_ERROR_INVALID_PARAMETER);
    size = 1;
    EXPECT(
        cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, &size, &number),
        CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);

    EXPECT(cuptiEventGroupRemoveEvent(group, 0), CUPTI_ERROR_INVALID_EVENT_ID);
    EXPECT(cuptiEventGroupRemoveEvent(group, named("CPU_CLOCK")), CUPTI_ERROR_INVALID_EVENT_ID);
    EXPECT(cuptiEventGroupRemoveEvent(NULL, clock), CUPTI_ERROR_INVALID_PARAMETER);
    OK(cuptiEventGroupRemoveEvent(group, clock));
    OK(cuptiEventGroupRemoveAllEvents(group));
    EXPECT(cuptiEventGroupRemoveAllEvents(NULL), CUPTI_ERROR_INVALID_PARAMETER);
    /* Without events it is of no domain. */
    OK(cuptiEventGroupAddEvent(group, named("INSTRUCTIONS")));
    OK(cuptiEventGroupDestroy(group));
}

/* Events of each kernel. */
static void kernels(void) {
    CUpti_EventID clock = named("TASK_CLOCK"), faults = named("PAGE_FAULTS"), ids[2];
    CUpti_EventGroup group = NULL, second = NULL, elsewhere = NULL;
    uint32_t scope = 0;
    uint64_t values[2] = {0, 0};
    size_t size = sizeof values, id_size = sizeof ids, count = 0, small = 7;
    OK(cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_KERNEL));
    OK(cuptiEventGroupCreate(context, &group, 0));
    EXPECT(cuptiEventGroupEnable(group), CUPTI_ERROR_NOT_READY);
    EXPECT(cuptiEventGroupEnable(NULL), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEventGroupDisable(NULL), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEventGroupResetAllEvents(NULL), CUPTI_ERROR_INVALID_PARAMETER);
    OK(cuptiEventGroupAddEvent(group, clock));
    OK(cuptiEventGroupAddEvent(group, faults));
    EXPECT(
        cuptiEventGroupReadEvent(group, CUPTI_EVENT_READ_FLAG_NONE, clock, &size, values), CUPTI_ERROR_INVALID_OPERATION);
    EXPECT(
        cuptiEventGroupReadAllEvents(group, CUPTI_EVENT_READ_FLAG_NONE, &size, values, &id_size, ids, &count),
        CUPTI_ERROR_INVALID_OPERATION);
    OK(cuptiEventGroupEnable(group));
    EXPECT(cuptiEventGroupAddEvent(group, named("CPU_CLOCK")), CUPTI_ERROR_INVALID_OPERATION);
    EXPECT(cuptiEventGroupRemoveEvent(group, clock), CUPTI_ERROR_INVALID_OPERATION);
    EXPECT(cuptiEventGroupRemoveAllEvents(group), CUPTI_ERROR_INVALID_OPERATION);
    EXPECT(cuptiEventGroupDestroy(group), CUPTI_ERROR_INVALID_OPERATION);
    OK(cuptiEventGroupReadEvent(group, CUPTI_EVENT_READ_FLAG_NONE, clock, &size, values));
    CHECK(values[0] == 0 && size == sizeof *values);
    launch(1);
    size = sizeof values;
    OK(cuptiEventGroupReadAllEvents(group, CUPTI_EVENT_READ_FLAG_NONE, &size, values, &id_size, ids, &count));
    CHECK(count == 2 && size == 16 && id_size == 8 && ids[0] == clock && ids[1] == faults);
    CHECK(values[0] > 0 && values[0] < CUPTI_EVENT_INVALID);
    /* What has been read is 0. */
    size = sizeof values;
    OK(cuptiEventGroupReadEvent(group, CUPTI_EVENT_READ_FLAG_NONE, clock, &size, values));
    CHECK(values[0] == 0);
    launch(1);
    OK(cuptiEventGroupResetAllEvents(group));
    OK(cuptiEventGroupReadEvent(group, CUPTI_EVENT_READ_FLAG_NONE, clock, &size, values));
    CHECK(values[0] == 0);
    EXPECT(cuptiEventGroupReadEvent(NULL, CUPTI_EVENT_READ_FLAG_NONE, clock, &size, values), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEventGroupReadEvent(group, (CUpti_ReadEventFlags)1, clock, &size, values), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEventGroupReadEvent(group, CUPTI_EVENT_READ_FLAG_NONE, 0, &size, values), CUPTI_ERROR_INVALID_EVENT_ID);
    EXPECT(
        cuptiEventGroupReadEvent(group, CUPTI_EVENT_READ_FLAG_NONE, clock, NULL, values), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(
        cuptiEventGroupReadEvent(group, CUPTI_EVENT_READ_FLAG_NONE, clock, &size, NULL), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(
        cuptiEventGroupReadEvent(group, CUPTI_EVENT_READ_FLAG_NONE, clock, &small, values),
        CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
    size = sizeof values;
    id_size = 4;
    EXPECT(
        cuptiEventGroupReadAllEvents(group, CUPTI_EVENT_READ_FLAG_NONE, &size, values, &id_size, ids, &count),
        CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
    id_size = 8;
    size = 8;
    EXPECT(
        cuptiEventGroupReadAllEvents(group, CUPTI_EVENT_READ_FLAG_NONE, &size, values, &id_size, ids, &count),
        CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
    size = 16;
    EXPECT(
        cuptiEventGroupReadAllEvents(NULL, CUPTI_EVENT_READ_FLAG_NONE, &size, values, &id_size, ids, &count),
        CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(
        cuptiEventGroupReadAllEvents(group, CUPTI_EVENT_READ_FLAG_NONE, NULL, values, &id_size, ids, &count),
        CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(
        cuptiEventGroupReadAllEvents(group, CUPTI_EVENT_READ_FLAG_NONE, &size, NULL, &id_size, ids, &count),
        CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(
        cuptiEventGroupReadAllEvents(group, CUPTI_EVENT_READ_FLAG_NONE, &size, values, NULL, ids, &count),
        CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(
        cuptiEventGroupReadAllEvents(group, CUPTI_EVENT_READ_FLAG_NONE, &size, values, &id_size, NULL, &count),
        CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(
        cuptiEventGroupReadAllEvents(group, CUPTI_EVENT_READ_FLAG_NONE, &size, values, &id_size, ids, NULL),
        CUPTI_ERROR_INVALID_PARAMETER);

    /* A second group of the context counts at the same time; that of another context does not count these kernels. */
    OK(cuptiEventGroupCreate(context, &second, 0));
    OK(cuptiEventGroupAddEvent(second, named("CPU_CLOCK")));
    OK(cuptiEventGroupEnable(second));
    OK(cuptiEventGroupCreate(other_context, &elsewhere, 0));
    OK(cuptiEventGroupAddEvent(elsewhere, clock));
    OK(cuptiEventGroupEnable(elsewhere));
    launch(1);
    OK(cuptiEventGroupReadEvent(group, CUPTI_EVENT_READ_FLAG_NONE, clock, &size, values));
    CHECK(values[0] > 0);
    size = sizeof values;
    OK(cuptiEventGroupReadEvent(elsewhere, CUPTI_EVENT_READ_FLAG_NONE, clock, &size, values));
    CHECK(values[0] == 0);
    /* The continuous mode, too, counts a context. */
    OK(cuptiSetEventCollectionMode(other_context, CUPTI_EVENT_COLLECTION_MODE_CONTINUOUS));
    launch(1);
    OK(cuptiEventGroupReadEvent(elsewhere, CUPTI_EVENT_READ_FLAG_NONE, clock, &size, values));
    CHECK(values[0] == 0);
    OK(cuptiEventGroupDisable(elsewhere));
    /* The device cannot be counted both for itself and for kernels. */
    OK(cuptiEventGroupRemoveAllEvents(elsewhere));
    scope = CUPTI_EVENT_PROFILING_SCOPE_DEVICE;
    OK(cuptiEventGroupSetAttribute(elsewhere, CUPTI_EVENT_GROUP_ATTR_PROFILING_SCOPE, sizeof scope, &scope));
    OK(cuptiEventGroupAddEvent(elsewhere, clock));
    EXPECT(cuptiEventGroupEnable(elsewhere), CUPTI_ERROR_NOT_COMPATIBLE);
    OK(cuptiEventGroupDisable(group));
    OK(cuptiEventGroupDisable(group));
    OK(cuptiEventGroupDisable(second));
    EXPECT(
        cuptiEventGroupReadEvent(group, CUPTI_EVENT_READ_FLAG_NONE, clock, &size, values), CUPTI_ERROR_INVALID_OPERATION);
    OK(cuptiEventGroupDestroy(group));
    OK(cuptiEventGroupDestroy(second));
    OK(cuptiEventGroupDestroy(elsewhere));
}

/* Events of kernels of the context, or of the device, all the time. */
static void continuously(uint32_t scope) {
    CUpti_EventID clock = named("TASK_CLOCK");
    CUpti_EventGroup group = NULL;
    uint64_t value = 0, last = 0;
    size_t size = sizeof value;
    EXPECT(cuptiSetEventCollectionMode(NULL, CUPTI_EVENT_COLLECTION_MODE_KERNEL), CUPTI_ERROR_INVALID_CONTEXT);
    EXPECT(cuptiSetEventCollectionMode(context, (CUpti_EventCollectionMode)7), CUPTI_ERROR_NOT_SUPPORTED);
    OK(cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_CONTINUOUS));
    OK(cuptiEventGroupCreate(context, &group, 0));
    OK(cuptiEventGroupSetAttribute(group, CUPTI_EVENT_GROUP_ATTR_PROFILING_SCOPE, sizeof scope, &scope));
    OK(cuptiEventGroupAddEvent(group, clock));
    OK(cuptiEventGroupEnable(group));
    launch(3);
    OK(cuptiEventGroupReadEvent(group, CUPTI_EVENT_READ_FLAG_NONE, clock, &size, &value));
    CHECK(value > 0 && value < CUPTI_EVENT_INVALID);
    launch(1);
    OK(cuptiEventGroupReadEvent(group, CUPTI_EVENT_READ_FLAG_NONE, clock, &size, &last));
    CHECK(last > 0 && last < CUPTI_EVENT_INVALID);
    /* While the group counts, it can be changed how. */
    OK(cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_KERNEL));
    launch(1);
    OK(cuptiEventGroupReadEvent(group, CUPTI_EVENT_READ_FLAG_NONE, clock, &size, &value));
    CHECK(value > 0 && value < CUPTI_EVENT_INVALID);
    OK(cuptiEventGroupDisable(group));
    OK(cuptiEventGroupDestroy(group));
}

static void sets(void) {
    CUpti_EventID ids[3], unknown = 0;
    CUpti_EventGroupSets *sets = NULL;
    uint64_t value = 0;
    size_t size = sizeof value;
    ids[0] = named("TASK_CLOCK");
    ids[1] = named("PAGE_FAULTS");
    ids[2] = ids[0];
    OK(cuptiEventGroupSetsCreate(context, sizeof ids, ids, &sets));
    CHECK(sets && sets->numSets == 1 && sets->sets[0].numEventGroups == 1);
    EXPECT(cuptiEventGroupSetsCreate(context, sizeof ids, NULL, &sets), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEventGroupSetsCreate(context, sizeof ids, ids, NULL), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEventGroupSetsCreate(NULL, sizeof ids, ids, &sets), CUPTI_ERROR_INVALID_CONTEXT);
    EXPECT(cuptiEventGroupSetsCreate(context, sizeof unknown, &unknown, &sets), CUPTI_ERROR_INVALID_EVENT_ID);
    OK(cuptiEventGroupSetEnable(&sets->sets[0]));
    EXPECT(cuptiEventGroupSetEnable(NULL), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEventGroupSetDisable(NULL), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEventGroupSetsDestroy(sets), CUPTI_ERROR_INVALID_OPERATION);
    launch(1);
    OK(cuptiEventGroupReadEvent(sets->sets[0].eventGroups[0], CUPTI_EVENT_READ_FLAG_NONE, ids[0], &size, &value));
    CHECK(value > 0);
    OK(cuptiEventGroupSetDisable(&sets->sets[0]));
    OK(cuptiEventGroupSetsDestroy(sets));
    EXPECT(cuptiEventGroupSetsDestroy(NULL), CUPTI_ERROR_INVALID_PARAMETER);
}

static void updated(const char *name, int done, void *data) {
    CHECK(name && done > 0);
    ++*(int *)data;
}

static void replays(void) {
    int updates = 0;
    CUpti_EventGroup group = NULL;
    uint64_t value = 0;
    size_t size = sizeof value;
    OK(cuptiKernelReplaySubscribeUpdate(updated, &updates));
    OK(cuptiEnableKernelReplayMode(context));
    EXPECT(cuptiEnableKernelReplayMode(NULL), CUPTI_ERROR_INVALID_CONTEXT);
    EXPECT(cuptiDisableKernelReplayMode(NULL), CUPTI_ERROR_INVALID_CONTEXT);
    EXPECT(cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_KERNEL), CUPTI_ERROR_INVALID_OPERATION);
    OK(cuptiEventGroupCreate(context, &group, 0));
    OK(cuptiEventGroupAddEvent(group, named("TASK_CLOCK")));
    OK(cuptiEventGroupEnable(group));
    launch(1);
    OK(cuptiEventGroupReadEvent(group, CUPTI_EVENT_READ_FLAG_NONE, named("TASK_CLOCK"), &size, &value));
    CHECK(value > 0 && value < CUPTI_EVENT_INVALID);
    /* One pass is enough: nothing is repeated. */
    CHECK(updates == 0);
    OK(cuptiDisableKernelReplayMode(context));
    EXPECT(
        cuptiEventGroupReadEvent(group, CUPTI_EVENT_READ_FLAG_NONE, named("TASK_CLOCK"), &size, &value),
        CUPTI_ERROR_INVALID_OPERATION);
    OK(cuptiEventGroupDestroy(group));
    OK(cuptiKernelReplaySubscribeUpdate(NULL, NULL));
}

static void metrics(void) {
    CUpti_MetricID all[MOST], metric = 0, miss = 0, unknown = 0;
    CUpti_EventID events[8], clock = named("TASK_CLOCK");
    CUpti_MetricPropertyID properties[8];
    CUpti_EventGroupSets *sets = NULL;
    CUpti_MetricValue value;
    uint64_t values[2] = {3000, 0}, property_values[1] = {1500};
    uint32_t count = 0, of_device = 0, number = 0;
    char text[64];
    size_t size;
    OK(cuptiGetNumMetrics(&count));
    OK(cuptiDeviceGetNumMetrics(device, &of_device));
    CHECK(of_device >= 4 && count >= of_device && count < MOST);
    EXPECT(cuptiGetNumMetrics(NULL), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiDeviceGetNumMetrics(device, NULL), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiDeviceGetNumMetrics(99, &number), CUPTI_ERROR_INVALID_DEVICE);
    size = sizeof all;
    OK(cuptiEnumMetrics(&size, all));
    CHECK(size == count * sizeof *all);
    EXPECT(cuptiEnumMetrics(NULL, all), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiEnumMetrics(&size, NULL), CUPTI_ERROR_INVALID_PARAMETER);
    size = sizeof all;
    OK(cuptiDeviceEnumMetrics(device, &size, all));
    CHECK(size == of_device * sizeof *all);
    EXPECT(cuptiDeviceEnumMetrics(99, &size, all), CUPTI_ERROR_INVALID_DEVICE);
    EXPECT(cuptiDeviceEnumMetrics(device, NULL, all), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiDeviceEnumMetrics(device, &size, NULL), CUPTI_ERROR_INVALID_PARAMETER);

    OK(cuptiMetricGetIdFromName(device, "CPUS_UTILIZED", &metric));
    OK(cuptiMetricGetIdFromName(device, "CACHE_MISS_PERCENT", &miss));
    EXPECT(cuptiMetricGetIdFromName(device, "TASK_CLOCK", &unknown), CUPTI_ERROR_INVALID_METRIC_NAME);
    EXPECT(cuptiMetricGetIdFromName(device, NULL, &unknown), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiMetricGetIdFromName(device, "CPUS_UTILIZED", NULL), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiMetricGetIdFromName(99, "CPUS_UTILIZED", &unknown), CUPTI_ERROR_INVALID_DEVICE);
    unknown = 0;

    size = sizeof text;
    OK(cuptiMetricGetAttribute(metric, CUPTI_METRIC_ATTR_NAME, &size, text));
    CHECK(strcmp(text, "CPUS_UTILIZED") == 0 && size == sizeof "CPUS_UTILIZED");
    size = 4;
    OK(cuptiMetricGetAttribute(metric, CUPTI_METRIC_ATTR_SHORT_DESCRIPTION, &size, text));
    CHECK(size == 4);
    size = sizeof text;
    OK(cuptiMetricGetAttribute(metric, CUPTI_METRIC_ATTR_LONG_DESCRIPTION, &size, text));
    size = sizeof number;
    OK(cuptiMetricGetAttribute(metric, CUPTI_METRIC_ATTR_CATEGORY, &size, &number));
    CHECK(number == CUPTI_METRIC_CATEGORY_INSTRUCTION);
    OK(cuptiMetricGetAttribute(miss, CUPTI_METRIC_ATTR_CATEGORY, &size, &number));
    CHECK(number == CUPTI_METRIC_CATEGORY_CACHE);
    OK(cuptiMetricGetAttribute(metric, CUPTI_METRIC_ATTR_VALUE_KIND, &size, &number));
    CHECK(number == CUPTI_METRIC_VALUE_KIND_DOUBLE);
    OK(cuptiMetricGetAttribute(miss, CUPTI_METRIC_ATTR_VALUE_KIND, &size, &number));
    CHECK(number == CUPTI_METRIC_VALUE_KIND_PERCENT);
    OK(cuptiMetricGetAttribute(metric, CUPTI_METRIC_ATTR_EVALUATION_MODE, &size, &number));
    CHECK(number == CUPTI_METRIC_EVALUATION_MODE_AGGREGATE);
    size = 3;
    EXPECT(
        cuptiMetricGetAttribute(metric, CUPTI_METRIC_ATTR_CATEGORY, &size, &number),
        CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
    EXPECT(cuptiMetricGetAttribute(unknown, CUPTI_METRIC_ATTR_NAME, &size, text), CUPTI_ERROR_INVALID_METRIC_ID);
    EXPECT(cuptiMetricGetAttribute(metric, (CUpti_MetricAttribute)9, &size, text), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiMetricGetAttribute(metric, CUPTI_METRIC_ATTR_NAME, NULL, text), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiMetricGetAttribute(metric, CUPTI_METRIC_ATTR_NAME, &size, NULL), CUPTI_ERROR_INVALID_PARAMETER);

    OK(cuptiMetricGetNumEvents(metric, &number));
    CHECK(number == 1);
    EXPECT(cuptiMetricGetNumEvents(unknown, &number), CUPTI_ERROR_INVALID_METRIC_ID);
    EXPECT(cuptiMetricGetNumEvents(metric, NULL), CUPTI_ERROR_INVALID_PARAMETER);
    size = sizeof events;
    OK(cuptiMetricEnumEvents(metric, &size, events));
    CHECK(size == sizeof *events && events[0] == clock);
    EXPECT(cuptiMetricEnumEvents(unknown, &size, events), CUPTI_ERROR_INVALID_METRIC_ID);
    EXPECT(cuptiMetricEnumEvents(metric, NULL, events), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiMetricEnumEvents(metric, &size, NULL), CUPTI_ERROR_INVALID_PARAMETER);
    OK(cuptiMetricGetNumProperties(metric, &number));
    CHECK(number == 1);
    EXPECT(cuptiMetricGetNumProperties(unknown, &number), CUPTI_ERROR_INVALID_METRIC_ID);
    EXPECT(cuptiMetricGetNumProperties(metric, NULL), CUPTI_ERROR_INVALID_PARAMETER);
    size = sizeof properties;
    OK(cuptiMetricEnumProperties(metric, &size, properties));
    CHECK(size == sizeof *properties && properties[0] == CUPTI_METRIC_PROPERTY_KERNEL_GPU_TIME);
    EXPECT(cuptiMetricEnumProperties(unknown, &size, properties), CUPTI_ERROR_INVALID_METRIC_ID);
    EXPECT(cuptiMetricEnumProperties(metric, NULL, properties), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiMetricEnumProperties(metric, &size, NULL), CUPTI_ERROR_INVALID_PARAMETER);

    OK(cuptiMetricCreateEventGroupSets(context, sizeof metric, &metric, &sets));
    CHECK(sets && sets->numSets == 1 && sets->sets[0].numEventGroups == 1);
    OK(cuptiEventGroupSetsDestroy(sets));
    EXPECT(cuptiMetricCreateEventGroupSets(NULL, sizeof metric, &metric, &sets), CUPTI_ERROR_INVALID_CONTEXT);
    EXPECT(cuptiMetricCreateEventGroupSets(context, sizeof unknown, &unknown, &sets), CUPTI_ERROR_INVALID_METRIC_ID);
    EXPECT(cuptiMetricCreateEventGroupSets(context, sizeof metric, NULL, &sets), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiMetricCreateEventGroupSets(context, sizeof metric, &metric, NULL), CUPTI_ERROR_INVALID_PARAMETER);
    OK(cuptiMetricGetRequiredEventGroupSets(context, metric, &sets));
    CHECK(sets == NULL);
    EXPECT(cuptiMetricGetRequiredEventGroupSets(context, unknown, &sets), CUPTI_ERROR_INVALID_METRIC_ID);

    OK(cuptiMetricGetValue(device, metric, sizeof clock, &clock, sizeof *values, values, 1500, &value));
    CHECK(value.metricValueDouble == 2);
    EXPECT(
        cuptiMetricGetValue(device, metric, sizeof clock, &clock, sizeof *values, values, 0, &value),
        CUPTI_ERROR_INVALID_METRIC_VALUE);
    EXPECT(
        cuptiMetricGetValue(device, unknown, sizeof clock, &clock, sizeof *values, values, 1, &value),
        CUPTI_ERROR_INVALID_METRIC_ID);
    EXPECT(
        cuptiMetricGetValue(device, miss, sizeof clock, &clock, sizeof *values, values, 1, &value),
        CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
    EXPECT(
        cuptiMetricGetValue(device, metric, sizeof clock, &clock, 0, values, 1, &value),
        CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
    EXPECT(
        cuptiMetricGetValue(device, metric, sizeof clock, NULL, sizeof *values, values, 1, &value),
        CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(
        cuptiMetricGetValue(device, metric, sizeof clock, &clock, sizeof *values, NULL, 1, &value),
        CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(
        cuptiMetricGetValue(device, metric, sizeof clock, &clock, sizeof *values, values, 1, NULL),
        CUPTI_ERROR_INVALID_PARAMETER);
    values[0] = CUPTI_EVENT_OVERFLOW;
    EXPECT(
        cuptiMetricGetValue(device, metric, sizeof clock, &clock, sizeof *values, values, 1, &value),
        CUPTI_ERROR_INVALID_EVENT_VALUE);
    values[0] = 3000;

    OK(cuptiMetricGetValue2(
        metric, sizeof clock, &clock, sizeof *values, values, sizeof *properties, properties, sizeof property_values,
        property_values, &value));
    CHECK(value.metricValueDouble == 2);
    property_values[0] = 0;
    EXPECT(
        cuptiMetricGetValue2(
            metric, sizeof clock, &clock, sizeof *values, values, sizeof *properties, properties,
            sizeof property_values, property_values, &value),
        CUPTI_ERROR_NOT_COMPATIBLE);
    property_values[0] = 1500;
    EXPECT(
        cuptiMetricGetValue2(
            metric, sizeof clock, &clock, sizeof *values, values, 0, properties, 0, property_values, &value),
        CUPTI_ERROR_INVALID_OPERATION);
    EXPECT(
        cuptiMetricGetValue2(
            unknown, sizeof clock, &clock, sizeof *values, values, sizeof *properties, properties,
            sizeof property_values, property_values, &value),
        CUPTI_ERROR_INVALID_METRIC_ID);
    EXPECT(
        cuptiMetricGetValue2(
            metric, 0, &clock, sizeof *values, values, sizeof *properties, properties, sizeof property_values,
            property_values, &value),
        CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
    EXPECT(
        cuptiMetricGetValue2(
            metric, sizeof clock, &clock, sizeof *values, values, sizeof *properties, properties,
            sizeof property_values, property_values, NULL),
        CUPTI_ERROR_INVALID_PARAMETER);
    values[0] = CUPTI_EVENT_OVERFLOW;
    EXPECT(
        cuptiMetricGetValue2(
            metric, sizeof clock, &clock, sizeof *values, values, sizeof *properties, properties,
            sizeof property_values, property_values, &value),
        CUPTI_ERROR_INVALID_EVENT_VALUE);
}

/* Samples of the program counter, and source-level records. */
static void samples(int is_counted) {
    CUpti_ActivityPCSamplingConfig config;
    memset(&config, 0, sizeof config);
    config.size = sizeof config;
    config.samplingPeriod = CUPTI_ACTIVITY_PC_SAMPLING_PERIOD_MID;
    EXPECT(cuptiActivityConfigurePCSampling(context, NULL), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityConfigurePCSampling(NULL, &config), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT(cuptiActivityConfigurePCSampling((CUcontext)nowhere, &config), CUPTI_ERROR_INVALID_PARAMETER);
    config.size = 4;
    EXPECT(cuptiActivityConfigurePCSampling(context, &config), CUPTI_ERROR_INVALID_PARAMETER);
    config.size = sizeof config;
    config.samplingPeriod = CUPTI_ACTIVITY_PC_SAMPLING_PERIOD_INVALID;
    EXPECT(cuptiActivityConfigurePCSampling(context, &config), CUPTI_ERROR_INVALID_PARAMETER);
    config.samplingPeriod = (CUpti_ActivityPCSamplingPeriod)6;
    EXPECT(cuptiActivityConfigurePCSampling(context, &config), CUPTI_ERROR_INVALID_PARAMETER);
    config.samplingPeriod = CUPTI_ACTIVITY_PC_SAMPLING_PERIOD_MID;
    config.samplingPeriod2 = 4;
    EXPECT(cuptiActivityConfigurePCSampling(context, &config), CUPTI_ERROR_INVALID_PARAMETER);
    config.samplingPeriod2 = 32;
    EXPECT(cuptiActivityConfigurePCSampling(context, &config), CUPTI_ERROR_INVALID_PARAMETER);
    /* Processors are sampled by time. */
    config.samplingPeriod2 = 5;
    EXPECT(
        cuptiActivityConfigurePCSampling(context, &config),
        is_counted ? CUPTI_ERROR_INVALID_OPERATION : CUPTI_ERROR_NOT_SUPPORTED);
    if (!is_counted) {
        OK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR));
        OK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION));
        OK(cuptiActivityEnableContext(context, CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS));
        launch(1);
        OK(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR));
        OK(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION));
        OK(cuptiActivityDisableContext(context, CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS));
    }
    EXPECT(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_EVENT), CUPTI_ERROR_NOT_COMPATIBLE);
    EXPECT(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_METRIC_INSTANCE), CUPTI_ERROR_NOT_COMPATIBLE);
    EXPECT(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_EVENT), CUPTI_ERROR_INVALID_KIND);
    EXPECT(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_INSTANTANEOUS_METRIC), CUPTI_ERROR_INVALID_KIND);
}

int main(void) {
    static const char *text = "kernel void work(global int *data) { data[get_global_id(0)] += 1; }";
    cl_platform_id platform;
    cl_program program;
    cl_mem data;
    cl_int error;
    CHECK(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &cl_device, NULL) == CL_SUCCESS);
    in = clCreateContext(NULL, 1, &cl_device, NULL, NULL, &error);
    other_in = clCreateContext(NULL, 1, &cl_device, NULL, NULL, &error);
    queue = clCreateCommandQueue(in, cl_device, 0, &error);
    program = clCreateProgramWithSource(in, 1, &text, NULL, &error);
    CHECK(clBuildProgram(program, 1, &cl_device, "", NULL, NULL) == CL_SUCCESS);
    kernel = clCreateKernel(program, "work", &error);
    data = clCreateBuffer(in, CL_MEM_READ_WRITE, 1024, NULL, &error);
    CHECK(clSetKernelArg(kernel, 0, sizeof data, &data) == CL_SUCCESS);
    context = (CUcontext)in;
    other_context = (CUcontext)other_in;
    launch(1);

    devices();
    domains();
    events();
    group_attributes();
    samples(0);
    kernels();
    samples(1);
    continuously(CUPTI_EVENT_PROFILING_SCOPE_CONTEXT);
    continuously(CUPTI_EVENT_PROFILING_SCOPE_DEVICE);
    sets();
    replays();
    metrics();

    clReleaseMemObject(data);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(in);
    clReleaseContext(other_in);
    if (failures == 0) printf("passed\n");
    return failures != 0;
}
