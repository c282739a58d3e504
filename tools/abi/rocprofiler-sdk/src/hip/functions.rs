//! Functions of HIP: their parameters, as they lie in `rocprofiler_hip_api_args_t`, and the actions of OpenCL and of the simulated
//! GPU's runtime that appear as them. `hipFree` releases images, too.
//!
//! Functions of these without a like in HIP are calls of the kinds `GPUTRAIL_OPENCL_API` and `GPUTRAIL_SIMULATED_API` only, which have
//! all others, too.

use gputrail_abi::functions;
use gputrail_abi::functions::Type;

/// Types: the name that the table below uses, and the fields.
macro_rules! types {
    ($($name:ident = $mangled:literal, $depth:literal, $bytes:literal;)*) => {
        $(pub(super) const $name: Type = Type { mangled: $mangled, depth: $depth, bytes: $bytes };)*
    };
}

types! {
    POINTER = c"Pv", 1, 8;
    CONSTANT = c"PKv", 1, 8;
    PLACE = c"PPv", 2, 8;
    TEXT = c"PKc", 1, 8;
    SIZE = c"m", 0, 8;
    SIZE_PLACE = c"Pm", 1, 8;
    UINT = c"j", 0, 4;
    INT = c"i", 0, 4;
    INT_PLACE = c"Pi", 1, 8;
    COPY_KIND = c"13hipMemcpyKind", 0, 4;
    STREAM = c"P12ihipStream_t", 1, 8;
    STREAM_PLACE = c"PP12ihipStream_t", 2, 8;
    EVENT = c"P11ihipEvent_t", 1, 8;
    EVENT_PLACE = c"PP11ihipEvent_t", 2, 8;
    MODULE = c"P12ihipModule_t", 1, 8;
    MODULE_PLACE = c"PP12ihipModule_t", 2, 8;
    FUNCTION = c"P18ihipModuleSymbol_t", 1, 8;
    FUNCTION_PLACE = c"PP18ihipModuleSymbol_t", 2, 8;
    GRAPH = c"P9ihipGraph", 1, 8;
    GRAPH_PLACE = c"PP9ihipGraph", 2, 8;
    GRAPH_EXEC = c"P12hipGraphExec", 1, 8;
    GRAPH_EXEC_PLACE = c"PP12hipGraphExec", 2, 8;
    NODE_PLACE = c"PP12hipGraphNode", 2, 8;
    ARRAY = c"P8hipArray", 1, 8;
    CONST_ARRAY = c"PK8hipArray", 1, 8;
    ARRAY_PLACE = c"PP8hipArray", 2, 8;
    CHANNELS = c"PK20hipChannelFormatDesc", 1, 8;
    COPY_3D = c"PK15hipMemcpy3DParms", 1, 8;
    HOST_FUNCTION = c"PFvPvE", 1, 8;
    CONTEXT = c"P9ihipCtx_t", 1, 8;
    CONTEXT_PLACE = c"PP9ihipCtx_t", 2, 8;
    ATTRIBUTE = c"20hipDeviceAttribute_t", 0, 4;
}

functions! {
    /// Those of the runtime.
    FUNCTIONS:
    hipInit(flags: UINT = Flags) for Initialise;
    hipGetDeviceCount(count: INT_PLACE = Count) for CountDevices;
    hipSetDevice(deviceId: INT = Device) for SetDevice;
    hipDeviceGetAttribute(pi: INT_PLACE = Made, attr: ATTRIBUTE, deviceId: INT = Device) for GetDeviceAttribute;
    hipDeviceSynchronize() for SynchronizeDevice;
    hipGetLastError() for GetLastError;
    hipMemGetInfo(free: SIZE_PLACE = Made, total: SIZE_PLACE = Total) for GetMemoryInfo;
    hipCtxCreate(ctx: CONTEXT_PLACE = Made, flags: UINT, device: INT) for CreateContext;
    hipCtxDestroy(ctx: CONTEXT = Context) for DestroyContext;

    hipModuleLaunchKernel(func: FUNCTION = Kernel, gridDimX: UINT = GridX, gridDimY: UINT = GridY, gridDimZ: UINT = GridZ,
        blockDimX: UINT = BlockX, blockDimY: UINT = BlockY, blockDimZ: UINT = BlockZ, sharedMemBytes: UINT = LocalMemory,
        stream: STREAM = Stream, kernelParams: PLACE, extra: PLACE) for Launch;
    hipLaunchHostFunc(stream: STREAM = Stream, fn: HOST_FUNCTION = HostFunction, userData: POINTER = UserData)
        for LaunchHostFunction;
    hipGraphCreate(pGraph: GRAPH_PLACE = Made, flags: UINT = Flags) for CreateGraph;
    hipGraphInstantiate(pGraphExec: GRAPH_EXEC_PLACE = Made, graph: GRAPH = Graph, pErrorNode: NODE_PLACE, pLogBuffer: POINTER,
        bufferSize: SIZE) for InstantiateGraph;
    hipGraphLaunch(graphExec: GRAPH_EXEC = Graph, stream: STREAM = Stream) for LaunchGraph;
    hipGraphExecDestroy(graphExec: GRAPH_EXEC = Graph) for DestroyExecutableGraph;
    hipGraphDestroy(graph: GRAPH = Graph) for DestroyGraph;

    hipMemcpy(dst: POINTER = Destination, src: CONSTANT = Source, sizeBytes: SIZE = Bytes, kind: COPY_KIND = Direction)
        for CopyWithoutStream;
    hipMemcpyAsync(dst: POINTER = Destination, src: CONSTANT = Source, sizeBytes: SIZE = Bytes, kind: COPY_KIND = Direction,
        stream: STREAM = Stream) for CopyToHost, CopyToDevice, CopyWithinDevice, Copy;
    hipMemcpyWithStream(dst: POINTER = Destination, src: CONSTANT = Source, sizeBytes: SIZE = Bytes,
        kind: COPY_KIND = Direction, stream: STREAM = Stream) for CopyToHostAndWait, CopyToDeviceAndWait, CopyAndWait;
    hipMemcpyPeerAsync(dst: POINTER = Destination, dstDeviceId: INT, src: CONSTANT = Source, srcDevice: INT,
        sizeBytes: SIZE = Bytes, stream: STREAM = Stream) for CopyBetweenDevices;
    hipMemcpy2D(dst: POINTER = Destination, dpitch: SIZE = DestinationPitch, src: CONSTANT = Source, spitch: SIZE = SourcePitch,
        width: SIZE = Width, height: SIZE = Height, kind: COPY_KIND = Direction) for CopyRectangleAndWait;
    hipMemcpy2DAsync(dst: POINTER = Destination, dpitch: SIZE = DestinationPitch, src: CONSTANT = Source,
        spitch: SIZE = SourcePitch, width: SIZE = Width, height: SIZE = Height, kind: COPY_KIND = Direction,
        stream: STREAM = Stream) for CopyRectangle;
    hipMemcpy2DFromArray(dst: POINTER = Destination, dpitch: SIZE = DestinationPitch, src: CONST_ARRAY = Source, wOffset: SIZE,
        hOffset: SIZE, width: SIZE = Width, height: SIZE = Height, kind: COPY_KIND = Direction) for CopyFromArrayAndWait;
    hipMemcpy2DFromArrayAsync(dst: POINTER = Destination, dpitch: SIZE = DestinationPitch, src: CONST_ARRAY = Source,
        wOffset: SIZE, hOffset: SIZE, width: SIZE = Width, height: SIZE = Height, kind: COPY_KIND = Direction,
        stream: STREAM = Stream) for CopyFromArray;
    hipMemcpy2DToArray(dst: ARRAY = Destination, wOffset: SIZE, hOffset: SIZE, src: CONSTANT = Source,
        spitch: SIZE = SourcePitch, width: SIZE = Width, height: SIZE = Height, kind: COPY_KIND = Direction)
        for CopyToArrayAndWait;
    hipMemcpy2DToArrayAsync(dst: ARRAY = Destination, wOffset: SIZE, hOffset: SIZE, src: CONSTANT = Source,
        spitch: SIZE = SourcePitch, width: SIZE = Width, height: SIZE = Height, kind: COPY_KIND = Direction,
        stream: STREAM = Stream) for CopyToArray;
    hipMemcpy3DAsync(p: COPY_3D, stream: STREAM = Stream) for CopyArray;
    hipMemsetAsync(dst: POINTER = Memory, value: INT = Value, sizeBytes: SIZE = Bytes, stream: STREAM = Stream) for Fill;
    hipMemset2DAsync(dst: POINTER = Memory, pitch: SIZE, value: INT, width: SIZE = Width, height: SIZE = Height,
        stream: STREAM = Stream) for FillArray;

    hipMalloc(ptr: PLACE = Made, size: SIZE = Bytes) for Allocate;
    hipMallocArray(array: ARRAY_PLACE = Made, desc: CHANNELS, width: SIZE = Width, height: SIZE = Height, flags: UINT)
        for AllocateArray;
    hipMallocManaged(dev_ptr: PLACE = Made, size: SIZE = Bytes, flags: UINT) for AllocateManaged;
    hipHostMalloc(ptr: PLACE = Made, size: SIZE = Bytes, flags: UINT) for AllocateHost;
    hipFree(ptr: POINTER = Memory) for Free;
    hipFreeAsync(dev_ptr: POINTER = Memory, stream: STREAM = Stream) for FreeInStream;
    hipHostFree(ptr: POINTER = Memory) for FreeHost;
    hipMemPrefetchAsync(dev_ptr: CONSTANT = Memory, count: SIZE = Bytes, device: INT, stream: STREAM = Stream) for Prefetch;

    hipStreamCreateWithFlags(stream: STREAM_PLACE = Made, flags: UINT) for CreateStream;
    hipStreamDestroy(stream: STREAM = Stream) for DestroyStream;
    hipStreamSynchronize(stream: STREAM = Stream) for SynchronizeStream;
    hipStreamWaitEvent(stream: STREAM = Stream, event: EVENT = Event, flags: UINT) for WaitInStream;
    hipEventCreate(event: EVENT_PLACE = Made) for CreateEvent;
    hipEventRecord(event: EVENT = Event, stream: STREAM = Stream) for RecordEvent;
    hipEventSynchronize(event: EVENT = Event) for SynchronizeEvent;
    hipEventQuery(event: EVENT = Event) for QueryEvent;
    hipEventDestroy(event: EVENT = Event) for DestroyEvent;

    hipModuleLoad(module: MODULE_PLACE = Made, fname: TEXT) for LoadModule;
    hipModuleLoadData(module: MODULE_PLACE = Made, image: CONSTANT = Code) for LoadModuleData;
    hipModuleUnload(module: MODULE = Module) for UnloadModule;
    hipModuleGetFunction(function: FUNCTION_PLACE = Made, module: MODULE = Module, kname: TEXT = Name) for GetFunction;
}
