/* A layer that passes one call through: what the loader and a function of a layer take, and nothing else.
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>
#include <string.h>

static struct _cl_icd_dispatch layer;
static const struct _cl_icd_dispatch *below;

static cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    return below->clSetKernelArg(kernel, index, size, value);
}

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t size, void *value, size_t *size_ret)
{
    static const char name[] = "pass through";
    const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    const void *answer = what == CL_LAYER_API_VERSION ? (const void *)&version : (const void *)name;
    size_t bytes = what == CL_LAYER_API_VERSION ? sizeof version : sizeof name;
    if (value && size < bytes)
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, answer, bytes);
    if (size_ret)
        *size_ret = bytes;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries, const struct _cl_icd_dispatch *target,
                                            cl_uint *entries_ret, const struct _cl_icd_dispatch **layer_ret)
{
    size_t known = sizeof layer / sizeof(void *);
    below = target;
    memcpy(&layer, target, (entries < known ? entries : known) * sizeof(void *));
    layer.clSetKernelArg = set_argument;
    *entries_ret = entries < known ? entries : (cl_uint)known;
    *layer_ret = &layer;
    return CL_SUCCESS;
}
