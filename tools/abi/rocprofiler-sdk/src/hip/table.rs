//! The function of HIP that each function of OpenCL, and of the simulated GPU's runtime, appears as: the one that does the same.
//!
//! A row is `function [as blocking_function if argument] = function_of_HIP(values);`, with values for the parameters in their order.
//! Functions without a row have no like in HIP: they are calls of the kinds `GPUTRAIL_OPENCL_API` and `GPUTRAIL_SIMULATED_API` only,
//! which have all others, too.
//!
//! Differences: a workgroup whose size the runtime chooses counts as one work-item, so that the grid is the work-items. An object
//! that is released may have other references. Images are arrays, and `hipFree` releases them, too. Attributes of devices have other
//! numbers in HIP, and are 0 here. A list of events is its first one.

use super::functions::*;
use gputrail_abi::calls::{Length, Value};

use Value::{Block, Element, Grid, Made, Number, Of, Pattern, Same};

/// A function.
#[derive(Debug)]
pub struct Row {
    /// Its name.
    pub function: &'static str,
    /// The function of HIP that it appears as.
    pub shown: &'static HipFunction,
    /// The one if an argument is not 0, which says that the call waits for the work. It has the same parameters, or fewer.
    pub blocking: Option<(&'static str, &'static HipFunction)>,
    /// The values of the parameters, in their order.
    pub values: &'static [Value],
}

/// `hipMemcpyKind`
const HOST_TO_DEVICE: Value = Number(1);
const DEVICE_TO_HOST: Value = Number(2);
const DEVICE_TO_DEVICE: Value = Number(3);
const DEFAULT: Value = Number(4);

const NOTHING: Value = Number(0);
const QUEUE: Value = Of("command_queue");
/// The bytes, rows and slices of a rectangle.
const fn region(dimension: usize) -> Value {
    Element("region", dimension, Length::Is(3))
}
const fn first(list: &'static str, count: &'static str) -> Value {
    Element(list, 0, Length::Of(count))
}

macro_rules! rows {
    ($($function:ident $(as $blocking:ident if $argument:ident)? = $shown:ident($($value:expr),*);)*) => {
        /// All rows.
        pub static ROWS: &[Row] = &[$(Row {
            function: stringify!($function),
            shown: &$shown,
            blocking: rows!(@ $($blocking $argument)?),
            values: &[$($value),*],
        }),*];
    };
    (@) => { None };
    (@ $blocking:ident $argument:ident) => { Some((stringify!($argument), &$blocking)) };
}

rows! {
    // Devices and contexts.
    clGetPlatformIDs = hipInit(NOTHING);
    clGetDeviceIDs = hipGetDeviceCount(Of("num_devices"));
    clGetDeviceInfo = hipDeviceGetAttribute(NOTHING, NOTHING, NOTHING);
    clCreateContext = hipCtxCreate(Made, NOTHING, NOTHING);
    clCreateContextFromType = hipCtxCreate(Made, NOTHING, NOTHING);
    clReleaseContext = hipCtxDestroy(Of("context"));

    // Queues are streams.
    clCreateCommandQueue = hipStreamCreateWithFlags(Made, NOTHING);
    clCreateCommandQueueWithProperties = hipStreamCreateWithFlags(Made, NOTHING);
    clCreateCommandQueueWithPropertiesKHR = hipStreamCreateWithFlags(Made, NOTHING);
    clReleaseCommandQueue = hipStreamDestroy(QUEUE);
    clFinish = hipStreamSynchronize(QUEUE);

    // Events.
    clCreateUserEvent = hipEventCreate(Made);
    clReleaseEvent = hipEventDestroy(Of("event"));
    clWaitForEvents = hipEventSynchronize(first("event_list", "num_events"));
    clEnqueueMarker = hipEventRecord(NOTHING, QUEUE);
    clEnqueueMarkerWithWaitList = hipEventRecord(NOTHING, QUEUE);
    clEnqueueBarrier = hipStreamWaitEvent(QUEUE, NOTHING, NOTHING);
    clEnqueueWaitForEvents = hipStreamWaitEvent(QUEUE, first("event_list", "num_events"), NOTHING);
    clEnqueueBarrierWithWaitList =
        hipStreamWaitEvent(QUEUE, first("event_wait_list", "num_events_in_wait_list"), NOTHING);

    // Memory.
    clCreateBuffer = hipMalloc(Made, Of("size"));
    clCreateBufferWithProperties = hipMalloc(Made, Of("size"));
    clCreateBufferWithPropertiesINTEL = hipMalloc(Made, Of("size"));
    clDeviceMemAllocINTEL = hipMalloc(Made, Of("size"));
    clHostMemAllocINTEL = hipHostMalloc(Made, Of("size"), NOTHING);
    clSharedMemAllocINTEL = hipMallocManaged(Made, Of("size"), NOTHING);
    clSVMAlloc = hipMallocManaged(Made, Of("size"), NOTHING);
    clCreateImage = hipMallocArray(Made, NOTHING, NOTHING, NOTHING, NOTHING);
    clCreateImageWithProperties = hipMallocArray(Made, NOTHING, NOTHING, NOTHING, NOTHING);
    clCreateImage2D = hipMallocArray(Made, NOTHING, Of("image_width"), Of("image_height"), NOTHING);
    clCreateImage3D = hipMallocArray(Made, NOTHING, Of("image_width"), Of("image_height"), NOTHING);
    clReleaseMemObject = hipFree(Of("memobj"));
    clSVMFree = hipFree(Of("svm_pointer"));
    clMemFreeINTEL = hipFree(Of("ptr"));
    clMemBlockingFreeINTEL = hipFree(Of("ptr"));
    clEnqueueSVMFree = hipFreeAsync(first("svm_pointers", "num_svm_pointers"), QUEUE);
    clEnqueueMigrateMemObjects =
        hipMemPrefetchAsync(first("mem_objects", "num_mem_objects"), NOTHING, NOTHING, QUEUE);
    clEnqueueSVMMigrateMem =
        hipMemPrefetchAsync(first("svm_pointers", "num_svm_pointers"), NOTHING, NOTHING, QUEUE);
    clEnqueueMigrateMemINTEL = hipMemPrefetchAsync(Of("ptr"), Of("size"), NOTHING, QUEUE);

    // Copies, by their direction.
    clEnqueueReadBuffer as hipMemcpyWithStream if blocking_read =
        hipMemcpyAsync(Of("ptr"), Of("buffer"), Of("cb"), DEVICE_TO_HOST, QUEUE);
    clEnqueueWriteBuffer as hipMemcpyWithStream if blocking_write =
        hipMemcpyAsync(Of("buffer"), Of("ptr"), Of("cb"), HOST_TO_DEVICE, QUEUE);
    clEnqueueCopyBuffer =
        hipMemcpyAsync(Of("dst_buffer"), Of("src_buffer"), Of("cb"), DEVICE_TO_DEVICE, QUEUE);
    clEnqueueSVMMemcpy as hipMemcpyWithStream if blocking_copy =
        hipMemcpyAsync(Of("dst_ptr"), Of("src_ptr"), Of("size"), DEFAULT, QUEUE);
    clEnqueueMemcpyINTEL as hipMemcpyWithStream if blocking =
        hipMemcpyAsync(Of("dst_ptr"), Of("src_ptr"), Of("size"), DEFAULT, QUEUE);
    clEnqueueReadBufferRect as hipMemcpy2D if blocking_read =
        hipMemcpy2DAsync(Of("ptr"), Of("host_row_pitch"), Of("buffer"), Of("buffer_row_pitch"), region(0), region(1),
            DEVICE_TO_HOST, QUEUE);
    clEnqueueWriteBufferRect as hipMemcpy2D if blocking_read =
        hipMemcpy2DAsync(Of("buffer"), Of("buffer_row_pitch"), Of("ptr"), Of("host_row_pitch"), region(0), region(1),
            HOST_TO_DEVICE, QUEUE);
    clEnqueueCopyBufferRect =
        hipMemcpy2DAsync(Of("dst_buffer"), Of("dst_row_pitch"), Of("src_buffer"), Of("src_row_pitch"), region(0),
            region(1), DEVICE_TO_DEVICE, QUEUE);
    clEnqueueReadImage as hipMemcpy2DFromArray if blocking_read =
        hipMemcpy2DFromArrayAsync(Of("ptr"), Of("row_pitch"), Of("image"), NOTHING, NOTHING, region(0), region(1),
            DEVICE_TO_HOST, QUEUE);
    clEnqueueWriteImage as hipMemcpy2DToArray if blocking_write =
        hipMemcpy2DToArrayAsync(Of("image"), NOTHING, NOTHING, Of("ptr"), Of("input_row_pitch"), region(0), region(1),
            HOST_TO_DEVICE, QUEUE);
    clEnqueueCopyImageToBuffer =
        hipMemcpy2DFromArrayAsync(Of("dst_buffer"), NOTHING, Of("src_image"), NOTHING, NOTHING, region(0), region(1),
            DEVICE_TO_DEVICE, QUEUE);
    clEnqueueCopyBufferToImage =
        hipMemcpy2DToArrayAsync(Of("dst_image"), NOTHING, NOTHING, Of("src_buffer"), NOTHING, region(0), region(1),
            DEVICE_TO_DEVICE, QUEUE);
    clEnqueueCopyImage = hipMemcpy3DAsync(NOTHING, QUEUE);

    // Fills.
    clEnqueueFillBuffer = hipMemsetAsync(Of("buffer"), Pattern, Of("cb"), QUEUE);
    clEnqueueSVMMemFill = hipMemsetAsync(Of("svm_ptr"), Pattern, Of("size"), QUEUE);
    clEnqueueMemFillINTEL = hipMemsetAsync(Of("dst_ptr"), Pattern, Of("size"), QUEUE);
    clEnqueueMemsetINTEL = hipMemsetAsync(Of("dst_ptr"), Of("value"), Of("size"), QUEUE);
    clEnqueueFillImage = hipMemset2DAsync(Of("image"), NOTHING, NOTHING, region(0), region(1), QUEUE);

    // Programs are modules, kernels functions.
    clCreateProgramWithSource = hipModuleLoadData(Made, NOTHING);
    clCreateProgramWithBinary = hipModuleLoadData(Made, NOTHING);
    clCreateProgramWithBuiltInKernels = hipModuleLoadData(Made, NOTHING);
    clCreateProgramWithIL = hipModuleLoadData(Made, Of("il"));
    clCreateProgramWithILKHR = hipModuleLoadData(Made, Of("il"));
    clReleaseProgram = hipModuleUnload(Of("program"));
    clCreateKernel = hipModuleGetFunction(Made, Of("program"), Of("kernel_name"));
    clEnqueueNDRangeKernel =
        hipModuleLaunchKernel(Of("kernel"), Grid(0), Grid(1), Grid(2), Block(0), Block(1), Block(2), NOTHING, QUEUE,
            NOTHING, NOTHING);
    clEnqueueTask =
        hipModuleLaunchKernel(Of("kernel"), Number(1), Number(1), Number(1), Number(1), Number(1), Number(1), NOTHING,
            QUEUE, NOTHING, NOTHING);
    clEnqueueNativeKernel = hipLaunchHostFunc(QUEUE, Of("user_func"), Of("args"));

    // A command buffer is a graph, and what is launched of it.
    clCreateCommandBufferKHR = hipGraphCreate(Made, NOTHING);
    clFinalizeCommandBufferKHR =
        hipGraphInstantiate(Same("command_buffer"), Of("command_buffer"), NOTHING, NOTHING, NOTHING);
    clEnqueueCommandBufferKHR = hipGraphLaunch(Of("command_buffer"), first("queues", "num_queues"));
    clReleaseCommandBufferKHR = hipGraphExecDestroy(Of("command_buffer"));

    // The simulated GPU's runtime.
    simInit = hipInit(Of("flags"));
    simGetDeviceCount = hipGetDeviceCount(NOTHING);
    simSetDevice = hipSetDevice(Of("device"));
    simDeviceGetAttribute = hipDeviceGetAttribute(NOTHING, NOTHING, Of("device"));
    simMemGetInfo = hipMemGetInfo(NOTHING, NOTHING);
    simGetLastError = hipGetLastError();
    simDeviceSynchronize = hipDeviceSynchronize();
    simMalloc = hipMalloc(Made, Of("bytes"));
    simMallocHost = hipHostMalloc(Made, Of("bytes"), NOTHING);
    simMallocManaged = hipMallocManaged(Made, Of("bytes"), NOTHING);
    simFree = hipFree(Of("memory"));
    simFreeHost = hipHostFree(Of("memory"));
    simMemcpyAsync = hipMemcpyAsync(Of("destination"), Of("source"), Of("bytes"), DEFAULT, Of("stream"));
    simMemcpy = hipMemcpy(Of("destination"), Of("source"), Of("bytes"), DEFAULT);
    simMemcpyPeerAsync =
        hipMemcpyPeerAsync(Of("destination"), NOTHING, Of("source"), NOTHING, Of("bytes"), Of("stream"));
    simMemsetAsync = hipMemsetAsync(Of("memory"), Of("value"), Of("bytes"), Of("stream"));
    simStreamCreate = hipStreamCreateWithFlags(Made, NOTHING);
    simStreamDestroy = hipStreamDestroy(Of("stream"));
    simStreamSynchronize = hipStreamSynchronize(Of("stream"));
    simStreamWaitEvent = hipStreamWaitEvent(Of("stream"), Of("event"), NOTHING);
    simEventCreate = hipEventCreate(Made);
    simEventDestroy = hipEventDestroy(Of("event"));
    simEventRecord = hipEventRecord(Of("event"), Of("stream"));
    simEventSynchronize = hipEventSynchronize(Of("event"));
    simEventQuery = hipEventQuery(Of("event"));
    simModuleLoad = hipModuleLoad(Made, NOTHING);
    simModuleUnload = hipModuleUnload(Of("module"));
    simModuleGetKernel = hipModuleGetFunction(Made, Of("module"), NOTHING);
    simLaunchKernel =
        hipModuleLaunchKernel(Of("kernel"), Of("grid_x"), Of("grid_y"), Of("grid_z"), Number(1), Number(1), Number(1),
            Of("local_memory"), Of("stream"), NOTHING, NOTHING);
    simGraphCreate = hipGraphCreate(Made, Of("flags"));
    simGraphInstantiate = hipGraphInstantiate(Same("graph"), Of("graph"), NOTHING, NOTHING, NOTHING);
    simGraphLaunch = hipGraphLaunch(Of("graph"), Of("stream"));
    simGraphExecDestroy = hipGraphExecDestroy(Of("graph"));
    simGraphDestroy = hipGraphDestroy(Of("graph"));
}
