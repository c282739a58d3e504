/* An OpenCL layer between gputrail's and the driver that makes a device of OpenCL 1.0 of it: functions that came later end the
 * program, unless the program itself may call them. A loader has all functions, whatever its drivers have. */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl_layer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct _cl_icd_dispatch table;
static const struct _cl_icd_dispatch *below;

static void missing(const char *name) {
    fprintf(stderr, "%s was called, which the device does not have\n", name);
    abort();
}

static cl_int CL_API_CALL timers(cl_device_id device, cl_ulong *time, cl_ulong *host) {
    (void)device, (void)time, (void)host;
    missing("clGetDeviceAndHostTimer");
    return CL_SUCCESS;
}

static cl_int CL_API_CALL event_callback(cl_event event, cl_int status, void(CL_CALLBACK *notify)(cl_event, cl_int, void *), void *data) {
    (void)event, (void)status, (void)notify, (void)data;
    missing("clSetEventCallback");
    return CL_SUCCESS;
}

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t size, void *value, size_t *size_ret) {
    static const char version[] = "OpenCL 1.0 old";
    if (what != CL_DEVICE_VERSION) return below->clGetDeviceInfo(device, what, size, value, size_ret);
    if (value && size < sizeof version) return CL_INVALID_VALUE;
    if (value) memcpy(value, version, sizeof version);
    if (size_ret) *size_ret = sizeof version;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t size, void *value, size_t *size_ret) {
    static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    if (what != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
    if (value && size < sizeof version) return CL_INVALID_VALUE;
    if (value) memcpy(value, &version, sizeof version);
    if (size_ret) *size_ret = sizeof version;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries, const struct _cl_icd_dispatch *target, cl_uint *entries_ret,
                                            const struct _cl_icd_dispatch **dispatch) {
    if (entries < sizeof table / sizeof(void *)) return CL_INVALID_VALUE;
    below = target;
    table = *target;
    table.clGetDeviceAndHostTimer = timers;
    table.clSetEventCallback = event_callback;
    table.clGetDeviceInfo = device_info;
    *entries_ret = sizeof table / sizeof(void *);
    *dispatch = &table;
    return CL_SUCCESS;
}

/* Called in place of clInitLayer by Khronos's loader of 2026. */
CL_API_ENTRY cl_int CL_API_CALL clInitLayerWithProperties(cl_uint entries, const struct _cl_icd_dispatch *target, cl_uint *entries_ret,
                                                          const struct _cl_icd_dispatch **dispatch, const cl_properties *properties) {
    (void)properties;
    return clInitLayer(entries, target, entries_ret, dispatch);
}
