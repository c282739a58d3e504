//! Functions of HIP: their parameters, as they lie in `rocprofiler_hip_api_args_t`.

use core::ffi::CStr;

/// The type of a parameter.
#[derive(Copy, Clone, Debug)]
pub struct Type {
    /// Its name, as C++ mangles it.
    pub mangled: &'static CStr,
    /// How many pointers it is away from what it leads to.
    pub depth: i32,
    /// Its bytes: 4 or 8.
    pub bytes: usize,
}

/// Types: the name that the table below uses, and the fields.
macro_rules! types {
    ($($name:ident = $mangled:literal, $depth:literal, $bytes:literal;)*) => {
        $(const $name: Type = Type { mangled: $mangled, depth: $depth, bytes: $bytes };)*
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

/// A parameter.
#[derive(Copy, Clone, Debug)]
pub struct Parameter {
    /// Its name in HIP.
    pub name: &'static CStr,
    /// Its type.
    pub of: Type,
}

impl Parameter {
    /// Whether it is a text.
    pub fn is_text(&self) -> bool {
        self.of.mangled == TEXT.mangled
    }
}

/// A function of HIP.
#[derive(Debug)]
pub struct HipFunction {
    /// Its name.
    pub name: &'static CStr,
    /// Its parameters.
    pub parameters: &'static [Parameter],
}

impl HipFunction {
    /// The parameters, each with the offset of its value from the first, as C puts the fields of a structure.
    pub fn places(&self) -> impl Iterator<Item = (usize, &'static Parameter)> + use<> {
        let mut end = 0_usize;
        self.parameters.iter().map(move |parameter| {
            let bytes = parameter.of.bytes;
            let place = end.next_multiple_of(bytes);
            end = place + bytes;
            (place, parameter)
        })
    }
}

const fn text(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a name ends with a 0, and has none within"),
    }
}

/// Functions, with the types of their parameters.
macro_rules! functions {
    ($($name:ident($($parameter:ident: $type:ident),*);)*) => {
        // The names are HIP's.
        $(#[allow(non_upper_case_globals)]
        pub static $name: HipFunction = HipFunction {
            name: const { text(concat!(stringify!($name), "\0")) },
            parameters: &[$(Parameter {
                name: const { text(concat!(stringify!($parameter), "\0")) },
                of: $type,
            }),*],
        };)*

        /// All of them.
        pub static ALL: &[&HipFunction] = &[$(&$name),*];
    };
}

functions! {
    hipInit(flags: UINT);
    hipGetDeviceCount(count: INT_PLACE);
    hipSetDevice(deviceId: INT);
    hipDeviceGetAttribute(pi: INT_PLACE, attr: ATTRIBUTE, deviceId: INT);
    hipDeviceSynchronize();
    hipGetLastError();
    hipMemGetInfo(free: SIZE_PLACE, total: SIZE_PLACE);
    hipCtxCreate(ctx: CONTEXT_PLACE, flags: UINT, device: INT);
    hipCtxDestroy(ctx: CONTEXT);

    hipModuleLaunchKernel(func: FUNCTION, gridDimX: UINT, gridDimY: UINT, gridDimZ: UINT, blockDimX: UINT, blockDimY: UINT,
        blockDimZ: UINT, sharedMemBytes: UINT, stream: STREAM, kernelParams: PLACE, extra: PLACE);
    hipLaunchHostFunc(stream: STREAM, fn: HOST_FUNCTION, userData: POINTER);
    hipGraphCreate(pGraph: GRAPH_PLACE, flags: UINT);
    hipGraphInstantiate(pGraphExec: GRAPH_EXEC_PLACE, graph: GRAPH, pErrorNode: NODE_PLACE, pLogBuffer: POINTER,
        bufferSize: SIZE);
    hipGraphLaunch(graphExec: GRAPH_EXEC, stream: STREAM);
    hipGraphExecDestroy(graphExec: GRAPH_EXEC);
    hipGraphDestroy(graph: GRAPH);

    hipMemcpy(dst: POINTER, src: CONSTANT, sizeBytes: SIZE, kind: COPY_KIND);
    hipMemcpyAsync(dst: POINTER, src: CONSTANT, sizeBytes: SIZE, kind: COPY_KIND, stream: STREAM);
    hipMemcpyWithStream(dst: POINTER, src: CONSTANT, sizeBytes: SIZE, kind: COPY_KIND, stream: STREAM);
    hipMemcpyPeerAsync(dst: POINTER, dstDeviceId: INT, src: CONSTANT, srcDevice: INT, sizeBytes: SIZE, stream: STREAM);
    hipMemcpy2D(dst: POINTER, dpitch: SIZE, src: CONSTANT, spitch: SIZE, width: SIZE, height: SIZE, kind: COPY_KIND);
    hipMemcpy2DAsync(dst: POINTER, dpitch: SIZE, src: CONSTANT, spitch: SIZE, width: SIZE, height: SIZE, kind: COPY_KIND,
        stream: STREAM);
    hipMemcpy2DFromArray(dst: POINTER, dpitch: SIZE, src: CONST_ARRAY, wOffset: SIZE, hOffset: SIZE, width: SIZE,
        height: SIZE, kind: COPY_KIND);
    hipMemcpy2DFromArrayAsync(dst: POINTER, dpitch: SIZE, src: CONST_ARRAY, wOffset: SIZE, hOffset: SIZE, width: SIZE,
        height: SIZE, kind: COPY_KIND, stream: STREAM);
    hipMemcpy2DToArray(dst: ARRAY, wOffset: SIZE, hOffset: SIZE, src: CONSTANT, spitch: SIZE, width: SIZE, height: SIZE,
        kind: COPY_KIND);
    hipMemcpy2DToArrayAsync(dst: ARRAY, wOffset: SIZE, hOffset: SIZE, src: CONSTANT, spitch: SIZE, width: SIZE,
        height: SIZE, kind: COPY_KIND, stream: STREAM);
    hipMemcpy3DAsync(p: COPY_3D, stream: STREAM);
    hipMemsetAsync(dst: POINTER, value: INT, sizeBytes: SIZE, stream: STREAM);
    hipMemset2DAsync(dst: POINTER, pitch: SIZE, value: INT, width: SIZE, height: SIZE, stream: STREAM);

    hipMalloc(ptr: PLACE, size: SIZE);
    hipMallocArray(array: ARRAY_PLACE, desc: CHANNELS, width: SIZE, height: SIZE, flags: UINT);
    hipMallocManaged(dev_ptr: PLACE, size: SIZE, flags: UINT);
    hipHostMalloc(ptr: PLACE, size: SIZE, flags: UINT);
    hipFree(ptr: POINTER);
    hipFreeAsync(dev_ptr: POINTER, stream: STREAM);
    hipHostFree(ptr: POINTER);
    hipMemPrefetchAsync(dev_ptr: CONSTANT, count: SIZE, device: INT, stream: STREAM);

    hipStreamCreateWithFlags(stream: STREAM_PLACE, flags: UINT);
    hipStreamDestroy(stream: STREAM);
    hipStreamSynchronize(stream: STREAM);
    hipStreamWaitEvent(stream: STREAM, event: EVENT, flags: UINT);
    hipEventCreate(event: EVENT_PLACE);
    hipEventRecord(event: EVENT, stream: STREAM);
    hipEventSynchronize(event: EVENT);
    hipEventQuery(event: EVENT);
    hipEventDestroy(event: EVENT);

    hipModuleLoad(module: MODULE_PLACE, fname: TEXT);
    hipModuleLoadData(module: MODULE_PLACE, image: CONSTANT);
    hipModuleUnload(module: MODULE);
    hipModuleGetFunction(function: FUNCTION_PLACE, module: MODULE, kname: TEXT);
}
