//! The functions of CUDA's two APIs that each function of OpenCL, and of the simulated GPU's runtime, appears as: those that do
//! the same.
//!
//! A row is `function [as blocking_function if argument] = function_of_cuda(values);`, with values for the parameters in their order.
//! Functions without a row have no like in that API: they have callbacks under gputrail's ids alone.
//!
//! Differences: a workgroup whose size the runtime chooses counts as one work-item, so that the grid is the work-items. An object
//! that is released may have other references. Images are arrays, and `cudaFree` releases them, too. A list of events is its
//! first one. A fill of words is one of bytes, with the pattern's first one.

use super::functions::{self, *};
use Value::{Block, Element, Grid, Made, Number, Of, Pattern, Same};
use gputrail_abi::calls::{Length, Value};

/// A function.
#[derive(Debug)]
pub struct Row {
    /// Its name.
    pub function: &'static str,
    /// The function of CUDA that it appears as.
    pub shown: &'static functions::Function,
    /// The one if an argument is not 0, which says that the call waits for the work. It has the same parameters, or fewer.
    pub blocking: Option<(&'static str, &'static functions::Function)>,
    /// The values of the parameters, in their order.
    pub values: &'static [Value],
}

/// `cudaMemcpyKind`
const HOST_TO_DEVICE: Value = Number(1);
const DEVICE_TO_HOST: Value = Number(2);
const DEVICE_TO_DEVICE: Value = Number(3);
const DEFAULT: Value = Number(4);

const NOTHING: Value = Number(0);
const ONE: Value = Number(1);
const QUEUE: Value = Of("command_queue");
const STREAM: Value = Of("stream");
/// The bytes, rows and slices of a rectangle.
const fn region(dimension: usize) -> Value {
    Element("region", dimension, Length::Is(3))
}
const fn first(list: &'static str, count: &'static str) -> Value {
    Element(list, 0, Length::Of(count))
}

macro_rules! rows {
    ($table:ident: $($function:ident $(as $blocking:ident if $argument:ident)? = $shown:ident($($value:expr),*);)*) => {
        /// All rows of an API.
        pub static $table: &[Row] = &[$(Row {
            function: stringify!($function),
            shown: &$shown,
            blocking: rows!(@ $($blocking $argument)?),
            values: &[$($value),*],
        }),*];
    };
    (@) => { None };
    (@ $blocking:ident $argument:ident) => { Some((stringify!($argument), &$blocking)) };
}

rows! { RUNTIME:
    // Devices.
    clGetDeviceIDs = cudaGetDeviceCount_v3020(Of("num_devices"));
    clGetDeviceInfo = cudaDeviceGetAttribute_v5000(NOTHING, NOTHING, NOTHING);

    // Queues are streams.
    clCreateCommandQueue = cudaStreamCreateWithFlags_v5000(Made, NOTHING);
    clCreateCommandQueueWithProperties = cudaStreamCreateWithFlags_v5000(Made, NOTHING);
    clCreateCommandQueueWithPropertiesKHR = cudaStreamCreateWithFlags_v5000(Made, NOTHING);
    clReleaseCommandQueue = cudaStreamDestroy_v5050(QUEUE);
    clFinish = cudaStreamSynchronize_v3020(QUEUE);

    // Events.
    clCreateUserEvent = cudaEventCreate_v3020(Made);
    clReleaseEvent = cudaEventDestroy_v3020(Of("event"));
    clWaitForEvents = cudaEventSynchronize_v3020(first("event_list", "num_events"));
    clEnqueueMarker = cudaEventRecord_v3020(NOTHING, QUEUE);
    clEnqueueMarkerWithWaitList = cudaEventRecord_v3020(NOTHING, QUEUE);
    clEnqueueBarrier = cudaStreamWaitEvent_v3020(QUEUE, NOTHING, NOTHING);
    clEnqueueWaitForEvents = cudaStreamWaitEvent_v3020(QUEUE, first("event_list", "num_events"), NOTHING);
    clEnqueueBarrierWithWaitList =
        cudaStreamWaitEvent_v3020(QUEUE, first("event_wait_list", "num_events_in_wait_list"), NOTHING);

    // Memory.
    clCreateBuffer = cudaMalloc_v3020(Made, Of("size"));
    clCreateBufferWithProperties = cudaMalloc_v3020(Made, Of("size"));
    clCreateBufferWithPropertiesINTEL = cudaMalloc_v3020(Made, Of("size"));
    clDeviceMemAllocINTEL = cudaMalloc_v3020(Made, Of("size"));
    clHostMemAllocINTEL = cudaHostAlloc_v3020(Made, Of("size"), NOTHING);
    clSharedMemAllocINTEL = cudaMallocManaged_v6000(Made, Of("size"), NOTHING);
    clSVMAlloc = cudaMallocManaged_v6000(Made, Of("size"), NOTHING);
    clCreateImage = cudaMallocArray_v3020(Made, NOTHING, NOTHING, NOTHING, NOTHING);
    clCreateImageWithProperties = cudaMallocArray_v3020(Made, NOTHING, NOTHING, NOTHING, NOTHING);
    clCreateImage2D = cudaMallocArray_v3020(Made, NOTHING, Of("image_width"), Of("image_height"), NOTHING);
    clCreateImage3D = cudaMallocArray_v3020(Made, NOTHING, Of("image_width"), Of("image_height"), NOTHING);
    clReleaseMemObject = cudaFree_v3020(Of("memobj"));
    clSVMFree = cudaFree_v3020(Of("svm_pointer"));
    clMemFreeINTEL = cudaFree_v3020(Of("ptr"));
    clMemBlockingFreeINTEL = cudaFree_v3020(Of("ptr"));
    clEnqueueSVMFree = cudaFreeAsync_v11020(first("svm_pointers", "num_svm_pointers"), QUEUE);
    clEnqueueMigrateMemObjects =
        cudaMemPrefetchAsync_v8000(first("mem_objects", "num_mem_objects"), NOTHING, NOTHING, QUEUE);
    clEnqueueSVMMigrateMem =
        cudaMemPrefetchAsync_v8000(first("svm_pointers", "num_svm_pointers"), NOTHING, NOTHING, QUEUE);
    clEnqueueMigrateMemINTEL = cudaMemPrefetchAsync_v8000(Of("ptr"), Of("size"), NOTHING, QUEUE);

    // Copies, by their direction.
    clEnqueueReadBuffer as cudaMemcpy_v3020 if blocking_read =
        cudaMemcpyAsync_v3020(Of("ptr"), Of("buffer"), Of("cb"), DEVICE_TO_HOST, QUEUE);
    clEnqueueWriteBuffer as cudaMemcpy_v3020 if blocking_write =
        cudaMemcpyAsync_v3020(Of("buffer"), Of("ptr"), Of("cb"), HOST_TO_DEVICE, QUEUE);
    clEnqueueCopyBuffer =
        cudaMemcpyAsync_v3020(Of("dst_buffer"), Of("src_buffer"), Of("cb"), DEVICE_TO_DEVICE, QUEUE);
    clEnqueueSVMMemcpy as cudaMemcpy_v3020 if blocking_copy =
        cudaMemcpyAsync_v3020(Of("dst_ptr"), Of("src_ptr"), Of("size"), DEFAULT, QUEUE);
    clEnqueueMemcpyINTEL as cudaMemcpy_v3020 if blocking =
        cudaMemcpyAsync_v3020(Of("dst_ptr"), Of("src_ptr"), Of("size"), DEFAULT, QUEUE);
    clEnqueueReadBufferRect as cudaMemcpy2D_v3020 if blocking_read =
        cudaMemcpy2DAsync_v3020(Of("ptr"), Of("host_row_pitch"), Of("buffer"), Of("buffer_row_pitch"), region(0),
            region(1), DEVICE_TO_HOST, QUEUE);
    clEnqueueWriteBufferRect as cudaMemcpy2D_v3020 if blocking_read =
        cudaMemcpy2DAsync_v3020(Of("buffer"), Of("buffer_row_pitch"), Of("ptr"), Of("host_row_pitch"), region(0),
            region(1), HOST_TO_DEVICE, QUEUE);
    clEnqueueCopyBufferRect =
        cudaMemcpy2DAsync_v3020(Of("dst_buffer"), Of("dst_row_pitch"), Of("src_buffer"), Of("src_row_pitch"), region(0),
            region(1), DEVICE_TO_DEVICE, QUEUE);
    clEnqueueReadImage as cudaMemcpy2DFromArray_v3020 if blocking_read =
        cudaMemcpy2DFromArrayAsync_v3020(Of("ptr"), Of("row_pitch"), Of("image"), NOTHING, NOTHING, region(0), region(1),
            DEVICE_TO_HOST, QUEUE);
    clEnqueueWriteImage as cudaMemcpy2DToArray_v3020 if blocking_write =
        cudaMemcpy2DToArrayAsync_v3020(Of("image"), NOTHING, NOTHING, Of("ptr"), Of("input_row_pitch"), region(0),
            region(1), HOST_TO_DEVICE, QUEUE);
    clEnqueueCopyImageToBuffer =
        cudaMemcpy2DFromArrayAsync_v3020(Of("dst_buffer"), NOTHING, Of("src_image"), NOTHING, NOTHING, region(0),
            region(1), DEVICE_TO_DEVICE, QUEUE);
    clEnqueueCopyBufferToImage =
        cudaMemcpy2DToArrayAsync_v3020(Of("dst_image"), NOTHING, NOTHING, Of("src_buffer"), NOTHING, region(0), region(1),
            DEVICE_TO_DEVICE, QUEUE);

    // Fills.
    clEnqueueFillBuffer = cudaMemsetAsync_v3020(Of("buffer"), Pattern, Of("cb"), QUEUE);
    clEnqueueSVMMemFill = cudaMemsetAsync_v3020(Of("svm_ptr"), Pattern, Of("size"), QUEUE);
    clEnqueueMemFillINTEL = cudaMemsetAsync_v3020(Of("dst_ptr"), Pattern, Of("size"), QUEUE);
    clEnqueueMemsetINTEL = cudaMemsetAsync_v3020(Of("dst_ptr"), Of("value"), Of("size"), QUEUE);

    // Launches.
    clEnqueueNDRangeKernel =
        cudaLaunchKernel_v7000(Of("kernel"), Grid(0), Grid(1), Grid(2), Block(0), Block(1), Block(2), NOTHING, NOTHING,
            QUEUE);
    clEnqueueTask =
        cudaLaunchKernel_v7000(Of("kernel"), ONE, ONE, ONE, ONE, ONE, ONE, NOTHING, NOTHING, QUEUE);
    clEnqueueNativeKernel = cudaLaunchHostFunc_v10000(QUEUE, Of("user_func"), Of("args"));

    // A command buffer is a graph, and what is launched of it.
    clCreateCommandBufferKHR = cudaGraphCreate_v10000(Made, NOTHING);
    clFinalizeCommandBufferKHR =
        cudaGraphInstantiate_v10000(Same("command_buffer"), Of("command_buffer"), NOTHING, NOTHING, NOTHING);
    clEnqueueCommandBufferKHR = cudaGraphLaunch_v10000(Of("command_buffer"), first("queues", "num_queues"));
    clReleaseCommandBufferKHR = cudaGraphExecDestroy_v10000(Of("command_buffer"));

    // The simulated GPU's runtime.
    simGetDeviceCount = cudaGetDeviceCount_v3020(NOTHING);
    simSetDevice = cudaSetDevice_v3020(Of("device"));
    simDeviceGetAttribute = cudaDeviceGetAttribute_v5000(NOTHING, NOTHING, Of("device"));
    simMemGetInfo = cudaMemGetInfo_v3020(NOTHING, NOTHING);
    simGetLastError = cudaGetLastError_v3020();
    simDeviceSynchronize = cudaDeviceSynchronize_v3020();
    simMalloc = cudaMalloc_v3020(Made, Of("bytes"));
    simMallocHost = cudaHostAlloc_v3020(Made, Of("bytes"), NOTHING);
    simMallocManaged = cudaMallocManaged_v6000(Made, Of("bytes"), NOTHING);
    simFree = cudaFree_v3020(Of("memory"));
    simFreeHost = cudaFreeHost_v3020(Of("memory"));
    simMemcpyAsync = cudaMemcpyAsync_v3020(Of("destination"), Of("source"), Of("bytes"), DEFAULT, STREAM);
    simMemcpy = cudaMemcpy_v3020(Of("destination"), Of("source"), Of("bytes"), DEFAULT);
    simMemcpyPeerAsync =
        cudaMemcpyPeerAsync_v4000(Of("destination"), NOTHING, Of("source"), NOTHING, Of("bytes"), STREAM);
    simMemsetAsync = cudaMemsetAsync_v3020(Of("memory"), Of("value"), Of("bytes"), STREAM);
    simStreamCreate = cudaStreamCreateWithFlags_v5000(Made, NOTHING);
    simStreamDestroy = cudaStreamDestroy_v5050(STREAM);
    simStreamSynchronize = cudaStreamSynchronize_v3020(STREAM);
    simStreamWaitEvent = cudaStreamWaitEvent_v3020(STREAM, Of("event"), NOTHING);
    simEventCreate = cudaEventCreate_v3020(Made);
    simEventDestroy = cudaEventDestroy_v3020(Of("event"));
    simEventRecord = cudaEventRecord_v3020(Of("event"), STREAM);
    simEventSynchronize = cudaEventSynchronize_v3020(Of("event"));
    simEventQuery = cudaEventQuery_v3020(Of("event"));
    simLaunchKernel =
        cudaLaunchKernel_v7000(Of("kernel"), Of("grid_x"), Of("grid_y"), Of("grid_z"), ONE, ONE, ONE, NOTHING,
            Of("local_memory"), STREAM);
    simGraphCreate = cudaGraphCreate_v10000(Made, Of("flags"));
    simGraphInstantiate = cudaGraphInstantiate_v10000(Same("graph"), Of("graph"), NOTHING, NOTHING, NOTHING);
    simGraphLaunch = cudaGraphLaunch_v10000(Of("graph"), STREAM);
    simGraphExecDestroy = cudaGraphExecDestroy_v10000(Of("graph"));
    simGraphDestroy = cudaGraphDestroy_v10000(Of("graph"));
}

rows! { DRIVER:
    // Devices and contexts.
    clGetPlatformIDs = cuInit(NOTHING);
    clGetDeviceIDs = cuDeviceGetCount(Of("num_devices"));
    clGetDeviceInfo = cuDeviceGetAttribute(NOTHING, NOTHING, NOTHING);
    clCreateContext = cuCtxCreate_v2(Made, NOTHING, NOTHING);
    clCreateContextFromType = cuCtxCreate_v2(Made, NOTHING, NOTHING);
    clReleaseContext = cuCtxDestroy_v2(Of("context"));

    // Queues are streams.
    clCreateCommandQueue = cuStreamCreate(Made, NOTHING);
    clCreateCommandQueueWithProperties = cuStreamCreate(Made, NOTHING);
    clCreateCommandQueueWithPropertiesKHR = cuStreamCreate(Made, NOTHING);
    clReleaseCommandQueue = cuStreamDestroy_v2(QUEUE);
    clFinish = cuStreamSynchronize(QUEUE);

    // Events.
    clCreateUserEvent = cuEventCreate(Made, NOTHING);
    clReleaseEvent = cuEventDestroy_v2(Of("event"));
    clWaitForEvents = cuEventSynchronize(first("event_list", "num_events"));
    clEnqueueMarker = cuEventRecord(NOTHING, QUEUE);
    clEnqueueMarkerWithWaitList = cuEventRecord(NOTHING, QUEUE);
    clEnqueueBarrier = cuStreamWaitEvent(QUEUE, NOTHING, NOTHING);
    clEnqueueWaitForEvents = cuStreamWaitEvent(QUEUE, first("event_list", "num_events"), NOTHING);
    clEnqueueBarrierWithWaitList =
        cuStreamWaitEvent(QUEUE, first("event_wait_list", "num_events_in_wait_list"), NOTHING);

    // Memory.
    clCreateBuffer = cuMemAlloc_v2(Made, Of("size"));
    clCreateBufferWithProperties = cuMemAlloc_v2(Made, Of("size"));
    clCreateBufferWithPropertiesINTEL = cuMemAlloc_v2(Made, Of("size"));
    clDeviceMemAllocINTEL = cuMemAlloc_v2(Made, Of("size"));
    clHostMemAllocINTEL = cuMemHostAlloc(Made, Of("size"), NOTHING);
    clSharedMemAllocINTEL = cuMemAllocManaged(Made, Of("size"), ONE);
    clSVMAlloc = cuMemAllocManaged(Made, Of("size"), ONE);
    clReleaseMemObject = cuMemFree_v2(Of("memobj"));
    clSVMFree = cuMemFree_v2(Of("svm_pointer"));
    clMemFreeINTEL = cuMemFree_v2(Of("ptr"));
    clMemBlockingFreeINTEL = cuMemFree_v2(Of("ptr"));
    clEnqueueSVMFree = cuMemFreeAsync(first("svm_pointers", "num_svm_pointers"), QUEUE);
    clEnqueueMigrateMemObjects = cuMemPrefetchAsync(first("mem_objects", "num_mem_objects"), NOTHING, NOTHING, QUEUE);
    clEnqueueSVMMigrateMem = cuMemPrefetchAsync(first("svm_pointers", "num_svm_pointers"), NOTHING, NOTHING, QUEUE);
    clEnqueueMigrateMemINTEL = cuMemPrefetchAsync(Of("ptr"), Of("size"), NOTHING, QUEUE);

    // Copies, by their direction. Those of rectangles and images lead to a structure in CUDA: they are the runtime's alone.
    clEnqueueReadBuffer as cuMemcpyDtoH_v2 if blocking_read =
        cuMemcpyDtoHAsync_v2(Of("ptr"), Of("buffer"), Of("cb"), QUEUE);
    clEnqueueWriteBuffer as cuMemcpyHtoD_v2 if blocking_write =
        cuMemcpyHtoDAsync_v2(Of("buffer"), Of("ptr"), Of("cb"), QUEUE);
    clEnqueueCopyBuffer = cuMemcpyDtoDAsync_v2(Of("dst_buffer"), Of("src_buffer"), Of("cb"), QUEUE);
    clEnqueueSVMMemcpy as cuMemcpy if blocking_copy =
        cuMemcpyAsync(Of("dst_ptr"), Of("src_ptr"), Of("size"), QUEUE);
    clEnqueueMemcpyINTEL as cuMemcpy if blocking =
        cuMemcpyAsync(Of("dst_ptr"), Of("src_ptr"), Of("size"), QUEUE);

    // Fills.
    clEnqueueFillBuffer = cuMemsetD8Async(Of("buffer"), Pattern, Of("cb"), QUEUE);
    clEnqueueSVMMemFill = cuMemsetD8Async(Of("svm_ptr"), Pattern, Of("size"), QUEUE);
    clEnqueueMemFillINTEL = cuMemsetD8Async(Of("dst_ptr"), Pattern, Of("size"), QUEUE);
    clEnqueueMemsetINTEL = cuMemsetD8Async(Of("dst_ptr"), Of("value"), Of("size"), QUEUE);

    // Programs are modules, kernels functions.
    clCreateProgramWithSource = cuModuleLoadData(Made, NOTHING);
    clCreateProgramWithBinary = cuModuleLoadData(Made, NOTHING);
    clCreateProgramWithBuiltInKernels = cuModuleLoadData(Made, NOTHING);
    clCreateProgramWithIL = cuModuleLoadData(Made, Of("il"));
    clCreateProgramWithILKHR = cuModuleLoadData(Made, Of("il"));
    clReleaseProgram = cuModuleUnload(Of("program"));
    clCreateKernel = cuModuleGetFunction(Made, Of("program"), Of("kernel_name"));
    clEnqueueNDRangeKernel =
        cuLaunchKernel(Of("kernel"), Grid(0), Grid(1), Grid(2), Block(0), Block(1), Block(2), NOTHING, QUEUE, NOTHING,
            NOTHING);
    clEnqueueTask = cuLaunchKernel(Of("kernel"), ONE, ONE, ONE, ONE, ONE, ONE, NOTHING, QUEUE, NOTHING, NOTHING);
    clEnqueueNativeKernel = cuLaunchHostFunc(QUEUE, Of("user_func"), Of("args"));

    // A command buffer is a graph, and what is launched of it.
    clCreateCommandBufferKHR = cuGraphCreate(Made, NOTHING);
    clFinalizeCommandBufferKHR = cuGraphInstantiate(Same("command_buffer"), Of("command_buffer"), NOTHING, NOTHING, NOTHING);
    clEnqueueCommandBufferKHR = cuGraphLaunch(Of("command_buffer"), first("queues", "num_queues"));
    clReleaseCommandBufferKHR = cuGraphExecDestroy(Of("command_buffer"));

    // The simulated GPU's runtime.
    simInit = cuInit(Of("flags"));
    simGetDeviceCount = cuDeviceGetCount(NOTHING);
    simDeviceGetAttribute = cuDeviceGetAttribute(NOTHING, NOTHING, Of("device"));
    simMemGetInfo = cuMemGetInfo_v2(NOTHING, NOTHING);
    simDeviceSynchronize = cuCtxSynchronize();
    simMalloc = cuMemAlloc_v2(Made, Of("bytes"));
    simMallocHost = cuMemHostAlloc(Made, Of("bytes"), NOTHING);
    simMallocManaged = cuMemAllocManaged(Made, Of("bytes"), ONE);
    simFree = cuMemFree_v2(Of("memory"));
    simFreeHost = cuMemFreeHost(Of("memory"));
    simMemcpyAsync = cuMemcpyAsync(Of("destination"), Of("source"), Of("bytes"), STREAM);
    simMemcpy = cuMemcpy(Of("destination"), Of("source"), Of("bytes"));
    simMemcpyPeerAsync = cuMemcpyPeerAsync(Of("destination"), NOTHING, Of("source"), NOTHING, Of("bytes"), STREAM);
    simMemsetAsync = cuMemsetD8Async(Of("memory"), Of("value"), Of("bytes"), STREAM);
    simStreamCreate = cuStreamCreate(Made, NOTHING);
    simStreamDestroy = cuStreamDestroy_v2(STREAM);
    simStreamSynchronize = cuStreamSynchronize(STREAM);
    simStreamWaitEvent = cuStreamWaitEvent(STREAM, Of("event"), NOTHING);
    simEventCreate = cuEventCreate(Made, NOTHING);
    simEventDestroy = cuEventDestroy_v2(Of("event"));
    simEventRecord = cuEventRecord(Of("event"), STREAM);
    simEventSynchronize = cuEventSynchronize(Of("event"));
    simEventQuery = cuEventQuery(Of("event"));
    simModuleLoad = cuModuleLoad(Made, NOTHING);
    simModuleUnload = cuModuleUnload(Of("module"));
    simModuleGetKernel = cuModuleGetFunction(Made, Of("module"), NOTHING);
    simLaunchKernel =
        cuLaunchKernel(Of("kernel"), Of("grid_x"), Of("grid_y"), Of("grid_z"), ONE, ONE, ONE, Of("local_memory"), STREAM,
            NOTHING, NOTHING);
    simGraphCreate = cuGraphCreate(Made, Of("flags"));
    simGraphInstantiate = cuGraphInstantiate(Same("graph"), Of("graph"), NOTHING, NOTHING, NOTHING);
    simGraphLaunch = cuGraphLaunch(Of("graph"), STREAM);
    simGraphExecDestroy = cuGraphExecDestroy(Of("graph"));
    simGraphDestroy = cuGraphDestroy(Of("graph"));
}
