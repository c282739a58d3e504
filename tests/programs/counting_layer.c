/* An OpenCL layer of somebody else's: counts the kernels enqueued and prints their number when the program ends. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_layer.h>
#include <stdio.h>
#include <string.h>

static struct _cl_icd_dispatch table;
static const struct _cl_icd_dispatch *below;
static int kernels;

static cl_int CL_API_CALL enqueue(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset, const size_t *global,
                                  const size_t *local, cl_uint waits, const cl_event *wait_list, cl_event *event) {
    kernels++;
    return below->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits, wait_list, event);
}

__attribute__((destructor)) static void report(void) {
    if (below) fprintf(stderr, "the layer counted %d kernels\n", kernels);
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
    memcpy(&table, target, sizeof table);
    table.clEnqueueNDRangeKernel = enqueue;
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
