/* The least that a layer has to do to learn when kernels ran: it forces profiling on, and sets a completion callback that
 * does nothing. What gputrail's layer costs beyond this is gputrail's own. With PASS_THROUGH it only hands one call on: that is
 * what the loader and a function of a layer take.
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>
#include <string.h>

static struct _cl_icd_dispatch layer;
static const struct _cl_icd_dispatch *below;

#ifdef PASS_THROUGH
static cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    return below->clSetKernelArg(kernel, index, size, value);
}
#else
static void CL_CALLBACK completed(cl_event event, cl_int status, void *data)
{
    (void)event, (void)status, (void)data;
}

static cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
                                                 cl_command_queue_properties properties, cl_int *status)
{
    return below->clCreateCommandQueue(context, device, properties | CL_QUEUE_PROFILING_ENABLE, status);
}

static cl_int CL_API_CALL enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                         const size_t *offset, const size_t *global, const size_t *local,
                                         cl_uint waits, const cl_event *wait_list, cl_event *event)
{
    cl_event own = NULL;
    cl_int status = below->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits, wait_list,
                                                  event ? event : &own);
    if (status == CL_SUCCESS) {
        below->clSetEventCallback(event ? *event : own, CL_COMPLETE, completed, NULL);
        if (!event)
            below->clReleaseEvent(own);
    }
    return status;
}
#endif

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t size, void *value, size_t *size_ret)
{
    static const char name[] = "minimal";
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
#ifdef PASS_THROUGH
    layer.clSetKernelArg = set_argument;
#else
    layer.clCreateCommandQueue = create_queue;
    layer.clEnqueueNDRangeKernel = enqueue_kernel;
#endif
    *entries_ret = entries < known ? entries : (cl_uint)known;
    *layer_ret = &layer;
    return CL_SUCCESS;
}
