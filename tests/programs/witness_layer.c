/* An OpenCL layer of somebody else's, between gputrail's layer and the driver, that knows how far a program has come when it is
 * killed: it counts calls of a few functions, by thread, in a file that outlives the program. The functions are some that
 * gputrail never calls for itself.
 *
 * A call is counted when it comes in. A thread whose count is N has thus returned from N - 1 of these calls, through
 * gputrail's layer, and is in the last one or behind it.
 *
 * The file, whose name is in WITNESS, is 4096 bytes: process id, threads seen (4 bytes each), calls of all threads (8), and for
 * each thread its id, nothing (4 each), and its calls (8). */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl_layer.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 255 };

struct thread {
    atomic_uint id;
    uint32_t nothing;
    atomic_ullong calls;
};

struct account {
    atomic_uint process, threads;
    atomic_ullong calls;
    struct thread of[THREADS];
};

_Static_assert(sizeof(struct account) == 4096, "as said above");

static struct _cl_icd_dispatch table;
static const struct _cl_icd_dispatch *below;
static struct account *account;
static _Thread_local struct thread *mine;

static void count(void) {
    if (!mine) {
        unsigned place = atomic_fetch_add(&account->threads, 1);
        if (place >= THREADS) abort();
        mine = &account->of[place];
        atomic_store(&mine->id, (unsigned)syscall(SYS_gettid));
    }
    atomic_fetch_add(&mine->calls, 1);
    atomic_fetch_add(&account->calls, 1);
}

#define WITNESS(name, parameters, ...)                                                                                               \
    static cl_int CL_API_CALL witness_##name parameters {                                                                            \
        count();                                                                                                                     \
        return below->name(__VA_ARGS__);                                                                                             \
    }

WITNESS(clSetKernelArg, (cl_kernel kernel, cl_uint index, size_t size, const void *value), kernel, index, size, value)
WITNESS(clFlush, (cl_command_queue queue), queue)
WITNESS(clFinish, (cl_command_queue queue), queue)
WITNESS(clWaitForEvents, (cl_uint waits, const cl_event *events), waits, events)
WITNESS(clEnqueueNDRangeKernel,
        (cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset, const size_t *global, const size_t *local,
         cl_uint waits, const cl_event *wait_list, cl_event *event),
        queue, kernel, dimensions, offset, global, local, waits, wait_list, event)
WITNESS(clEnqueueReadImage,
        (cl_command_queue queue, cl_mem image, cl_bool blocking, const size_t *origin, const size_t *region, size_t row, size_t slice,
         void *to, cl_uint waits, const cl_event *wait_list, cl_event *event),
        queue, image, blocking, origin, region, row, slice, to, waits, wait_list, event)
WITNESS(clEnqueueWriteImage,
        (cl_command_queue queue, cl_mem image, cl_bool blocking, const size_t *origin, const size_t *region, size_t row, size_t slice,
         const void *from, cl_uint waits, const cl_event *wait_list, cl_event *event),
        queue, image, blocking, origin, region, row, slice, from, waits, wait_list, event)

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
    int file = open(getenv("WITNESS"), O_RDWR | O_CLOEXEC);
    account = mmap(NULL, sizeof *account, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (account == MAP_FAILED) abort();
    close(file);
    atomic_store(&account->process, (unsigned)getpid());
    below = target;
    memcpy(&table, target, sizeof table);
    table.clSetKernelArg = witness_clSetKernelArg;
    table.clFlush = witness_clFlush;
    table.clFinish = witness_clFinish;
    table.clWaitForEvents = witness_clWaitForEvents;
    table.clEnqueueNDRangeKernel = witness_clEnqueueNDRangeKernel;
    table.clEnqueueReadImage = witness_clEnqueueReadImage;
    table.clEnqueueWriteImage = witness_clEnqueueWriteImage;
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
