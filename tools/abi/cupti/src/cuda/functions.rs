//! Functions of CUDA's runtime and driver: their parameters, as they lie in the structures `NAME_params` of
//! `generated_cuda_runtime_api_meta.h` and `generated_cuda_meta.h`, and the actions of OpenCL and of the simulated GPU's runtime that
//! appear as them.
//!
//! `cudaFree` releases images, too. Copies of rectangles and images lead to a structure in the driver: they are the runtime's alone.

use gputrail_abi::functions;
use gputrail_abi::functions::Type;

const fn of(bytes: usize) -> Type {
    Type {
        mangled: c"",
        depth: 0,
        bytes,
    }
}

/// A pointer, a handle, or a size.
const P: Type = of(8);
/// A number.
const I: Type = of(4);
/// A byte.
const B: Type = of(1);

functions! {
    /// The functions of the runtime.
    RUNTIME:
    cudaGetDeviceCount_v3020(count: P = Count) for CountDevices;
    cudaDeviceGetAttribute_v5000(value: P = Made, attr: I = CudaAttribute, device: I = Device) for GetDeviceAttribute;
    cudaSetDevice_v3020(device: I = Device) for SetDevice;
    cudaDeviceSynchronize_v3020() for SynchronizeDevice;
    cudaGetLastError_v3020() for GetLastError;
    cudaMemGetInfo_v3020(free: P = Made, total: P = Total) for GetMemoryInfo;
    cudaStreamCreateWithFlags_v5000(pStream: P = Made, flags: I) for CreateStream;
    cudaStreamDestroy_v5050(stream: P = Stream) for DestroyStream;
    cudaStreamSynchronize_v3020(stream: P = Stream) for SynchronizeStream;
    cudaStreamWaitEvent_v3020(stream: P = Stream, event: P = Event, flags: I) for WaitInStream;
    cudaEventCreate_v3020(event: P = Made) for CreateEvent;
    cudaEventDestroy_v3020(event: P = Event) for DestroyEvent;
    cudaEventSynchronize_v3020(event: P = Event) for SynchronizeEvent;
    cudaEventQuery_v3020(event: P = Event) for QueryEvent;
    cudaEventRecord_v3020(event: P = Event, stream: P = Stream) for RecordEvent;
    cudaMalloc_v3020(devPtr: P = Made, size: P = Bytes) for Allocate;
    cudaMallocArray_v3020(array: P = Made, desc: P, width: P = Width, height: P = Height, flags: I) for AllocateArray;
    cudaMallocManaged_v6000(devPtr: P = Made, size: P = Bytes, flags: I) for AllocateManaged;
    cudaHostAlloc_v3020(pHost: P = Made, size: P = Bytes, flags: I) for AllocateHost;
    cudaFree_v3020(devPtr: P = Memory) for Free;
    cudaFreeHost_v3020(ptr: P = Memory) for FreeHost;
    cudaFreeAsync_v11020(devPtr: P = Memory, hStream: P = Stream) for FreeInStream;
    cudaMemPrefetchAsync_v8000(devPtr: P = Memory, count: P = Bytes, dstDevice: I, stream: P = Stream) for Prefetch;
    cudaMemcpy_v3020(dst: P = Destination, src: P = Source, count: P = Bytes, kind: I = Direction)
        for CopyToHostAndWait, CopyToDeviceAndWait, CopyAndWait, CopyWithoutStream;
    cudaMemcpyAsync_v3020(dst: P = Destination, src: P = Source, count: P = Bytes, kind: I = Direction, stream: P = Stream)
        for CopyToHost, CopyToDevice, CopyWithinDevice, Copy;
    cudaMemcpyPeerAsync_v4000(dst: P = Destination, dstDevice: I, src: P = Source, srcDevice: I, count: P = Bytes,
        stream: P = Stream) for CopyBetweenDevices;
    cudaMemcpy2D_v3020(dst: P = Destination, dpitch: P = DestinationPitch, src: P = Source, spitch: P = SourcePitch,
        width: P = Width, height: P = Height, kind: I = Direction) for CopyRectangleAndWait;
    cudaMemcpy2DAsync_v3020(dst: P = Destination, dpitch: P = DestinationPitch, src: P = Source, spitch: P = SourcePitch,
        width: P = Width, height: P = Height, kind: I = Direction, stream: P = Stream) for CopyRectangle;
    cudaMemcpy2DFromArray_v3020(dst: P = Destination, dpitch: P = DestinationPitch, src: P = Source, wOffset: P, hOffset: P,
        width: P = Width, height: P = Height, kind: I = Direction) for CopyFromArrayAndWait;
    cudaMemcpy2DFromArrayAsync_v3020(dst: P = Destination, dpitch: P = DestinationPitch, src: P = Source, wOffset: P,
        hOffset: P, width: P = Width, height: P = Height, kind: I = Direction, stream: P = Stream) for CopyFromArray;
    cudaMemcpy2DToArray_v3020(dst: P = Destination, wOffset: P, hOffset: P, src: P = Source, spitch: P = SourcePitch,
        width: P = Width, height: P = Height, kind: I = Direction) for CopyToArrayAndWait;
    cudaMemcpy2DToArrayAsync_v3020(dst: P = Destination, wOffset: P, hOffset: P, src: P = Source, spitch: P = SourcePitch,
        width: P = Width, height: P = Height, kind: I = Direction, stream: P = Stream) for CopyToArray;
    cudaMemsetAsync_v3020(devPtr: P = Memory, value: I = Value, count: P = Bytes, stream: P = Stream) for Fill;
    cudaLaunchKernel_v7000(func: P = Kernel, gridDim.x: I = GridX, gridDim.y: I = GridY, gridDim.z: I = GridZ,
        blockDim.x: I = BlockX, blockDim.y: I = BlockY, blockDim.z: I = BlockZ, args: P, sharedMem: P = LocalMemory,
        stream: P = Stream) for Launch;
    cudaLaunchHostFunc_v10000(stream: P = Stream, fn: P = HostFunction, userData: P = UserData) for LaunchHostFunction;
    cudaGraphCreate_v10000(pGraph: P = Made, flags: I = Flags) for CreateGraph;
    cudaGraphInstantiate_v10000(pGraphExec: P = Made, graph: P = Graph, pErrorNode: P, pLogBuffer: P, bufferSize: P)
        for InstantiateGraph;
    cudaGraphLaunch_v10000(graphExec: P = Graph, stream: P = Stream) for LaunchGraph;
    cudaGraphExecDestroy_v10000(graphExec: P = Graph) for DestroyExecutableGraph;
    cudaGraphDestroy_v10000(graph: P = Graph) for DestroyGraph;
}

functions! {
    /// The functions of the driver.
    DRIVER:
    cuInit(Flags: I = Flags) for Initialise;
    cuDeviceGetCount(count: P = Count) for CountDevices;
    cuDeviceGetAttribute(pi: P = Made, attrib: I = CudaAttribute, dev: I = Device) for GetDeviceAttribute;
    cuCtxCreate_v2(pctx: P = Made, flags: I, dev: I) for CreateContext;
    cuCtxDestroy_v2(ctx: P = Context) for DestroyContext;
    cuCtxSynchronize() for SynchronizeDevice;
    cuMemGetInfo_v2(free: P = Made, total: P = Total) for GetMemoryInfo;
    cuStreamCreate(phStream: P = Made, Flags: I) for CreateStream;
    cuStreamDestroy_v2(hStream: P = Stream) for DestroyStream;
    cuStreamSynchronize(hStream: P = Stream) for SynchronizeStream;
    cuStreamWaitEvent(hStream: P = Stream, hEvent: P = Event, Flags: I) for WaitInStream;
    cuEventCreate(phEvent: P = Made, Flags: I) for CreateEvent;
    cuEventDestroy_v2(hEvent: P = Event) for DestroyEvent;
    cuEventSynchronize(hEvent: P = Event) for SynchronizeEvent;
    cuEventQuery(hEvent: P = Event) for QueryEvent;
    cuEventRecord(hEvent: P = Event, hStream: P = Stream) for RecordEvent;
    cuMemAlloc_v2(dptr: P = Made, bytesize: P = Bytes) for Allocate;
    cuMemAllocManaged(dptr: P = Made, bytesize: P = Bytes, flags: I = One) for AllocateManaged;
    cuMemHostAlloc(pp: P = Made, bytesize: P = Bytes, Flags: I) for AllocateHost;
    cuMemFree_v2(dptr: P = Memory) for Free;
    cuMemFreeHost(p: P = Memory) for FreeHost;
    cuMemFreeAsync(dptr: P = Memory, hStream: P = Stream) for FreeInStream;
    cuMemPrefetchAsync(devPtr: P = Memory, count: P = Bytes, dstDevice: I, hStream: P = Stream) for Prefetch;
    cuMemcpy(dst: P = Destination, src: P = Source, ByteCount: P = Bytes) for CopyAndWait, CopyWithoutStream;
    cuMemcpyAsync(dst: P = Destination, src: P = Source, ByteCount: P = Bytes, hStream: P = Stream) for Copy;
    cuMemcpyHtoD_v2(dstDevice: P = Destination, srcHost: P = Source, ByteCount: P = Bytes) for CopyToDeviceAndWait;
    cuMemcpyHtoDAsync_v2(dstDevice: P = Destination, srcHost: P = Source, ByteCount: P = Bytes, hStream: P = Stream)
        for CopyToDevice;
    cuMemcpyDtoH_v2(dstHost: P = Destination, srcDevice: P = Source, ByteCount: P = Bytes) for CopyToHostAndWait;
    cuMemcpyDtoHAsync_v2(dstHost: P = Destination, srcDevice: P = Source, ByteCount: P = Bytes, hStream: P = Stream)
        for CopyToHost;
    cuMemcpyDtoDAsync_v2(dstDevice: P = Destination, srcDevice: P = Source, ByteCount: P = Bytes, hStream: P = Stream)
        for CopyWithinDevice;
    cuMemcpyPeerAsync(dstDevice: P = Destination, dstContext: P, srcDevice: P = Source, srcContext: P, ByteCount: P = Bytes,
        hStream: P = Stream) for CopyBetweenDevices;
    cuMemsetD8Async(dstDevice: P = Memory, uc: B = Value, N: P = Bytes, hStream: P = Stream) for Fill;
    cuModuleLoad(module: P = Made, fname: P) for LoadModule;
    cuModuleLoadData(module: P = Made, image: P = Code) for LoadModuleData;
    cuModuleUnload(hmod: P = Module) for UnloadModule;
    cuModuleGetFunction(hfunc: P = Made, hmod: P = Module, name: P = Name) for GetFunction;
    cuLaunchKernel(f: P = Kernel, gridDimX: I = GridX, gridDimY: I = GridY, gridDimZ: I = GridZ, blockDimX: I = BlockX,
        blockDimY: I = BlockY, blockDimZ: I = BlockZ, sharedMemBytes: I = LocalMemory, hStream: P = Stream, kernelParams: P,
        extra: P) for Launch;
    cuLaunchHostFunc(hStream: P = Stream, fn: P = HostFunction, userData: P = UserData) for LaunchHostFunction;
    cuGraphCreate(phGraph: P = Made, flags: I = Flags) for CreateGraph;
    cuGraphInstantiate(phGraphExec: P = Made, hGraph: P = Graph, phErrorNode: P, logBuffer: P, bufferSize: P)
        for InstantiateGraph;
    cuGraphLaunch(hGraph: P = Graph, hStream: P = Stream) for LaunchGraph;
    cuGraphExecDestroy(hGraphExec: P = Graph) for DestroyExecutableGraph;
    cuGraphDestroy(hGraph: P = Graph) for DestroyGraph;
}
