//! Functions of CUDA's driver and runtime: their parameters, as they lie in the structures `NAME_params` of `generated_cuda_meta.h` and `generated_cuda_runtime_api_meta.h`.

/// A parameter: its name in the structure, and its bytes.
#[derive(Copy, Clone, Debug)]
pub struct Parameter {
    /// Its name; that of a part where the parameter is a structure.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "tests compare it with the headers")
    )]
    pub name: &'static str,
    /// Its bytes: 1, 4 or 8.
    pub bytes: usize,
}

/// A function.
#[derive(Debug)]
pub struct Function {
    /// Its name, as its callback id has it.
    pub name: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
}

/// A pointer, a handle, or a size.
const P: usize = 8;
/// A number.
const I: usize = 4;
/// A byte.
const B: usize = 1;

/// Functions, with the bytes of their parameters.
macro_rules! functions {
    ($($name:ident($($($parameter:ident).+: $bytes:ident),*);)*) => {
        // The names are CUDA's.
        $(#[allow(non_upper_case_globals)]
        pub static $name: Function = Function {
            name: stringify!($name),
            parameters: &[$(Parameter { name: stringify!($($parameter).+), bytes: $bytes }),*],
        };)*

        /// All of them.
        #[cfg(test)]
        pub static ALL: &[&Function] = &[$(&$name),*];
    };
}

functions! {
    // The driver.
    cuInit(Flags: I);
    cuDeviceGetCount(count: P);
    cuDeviceGetAttribute(pi: P, attrib: I, dev: I);
    cuCtxCreate_v2(pctx: P, flags: I, dev: I);
    cuCtxDestroy_v2(ctx: P);
    cuCtxSynchronize();
    cuMemGetInfo_v2(free: P, total: P);
    cuStreamCreate(phStream: P, Flags: I);
    cuStreamDestroy_v2(hStream: P);
    cuStreamSynchronize(hStream: P);
    cuStreamWaitEvent(hStream: P, hEvent: P, Flags: I);
    cuEventCreate(phEvent: P, Flags: I);
    cuEventDestroy_v2(hEvent: P);
    cuEventSynchronize(hEvent: P);
    cuEventQuery(hEvent: P);
    cuEventRecord(hEvent: P, hStream: P);
    cuMemAlloc_v2(dptr: P, bytesize: P);
    cuMemAllocManaged(dptr: P, bytesize: P, flags: I);
    cuMemHostAlloc(pp: P, bytesize: P, Flags: I);
    cuMemFree_v2(dptr: P);
    cuMemFreeHost(p: P);
    cuMemFreeAsync(dptr: P, hStream: P);
    cuMemPrefetchAsync(devPtr: P, count: P, dstDevice: I, hStream: P);
    cuMemcpy(dst: P, src: P, ByteCount: P);
    cuMemcpyAsync(dst: P, src: P, ByteCount: P, hStream: P);
    cuMemcpyHtoD_v2(dstDevice: P, srcHost: P, ByteCount: P);
    cuMemcpyHtoDAsync_v2(dstDevice: P, srcHost: P, ByteCount: P, hStream: P);
    cuMemcpyDtoH_v2(dstHost: P, srcDevice: P, ByteCount: P);
    cuMemcpyDtoHAsync_v2(dstHost: P, srcDevice: P, ByteCount: P, hStream: P);
    cuMemcpyDtoDAsync_v2(dstDevice: P, srcDevice: P, ByteCount: P, hStream: P);
    cuMemcpyPeerAsync(dstDevice: P, dstContext: P, srcDevice: P, srcContext: P, ByteCount: P, hStream: P);
    cuMemsetD8Async(dstDevice: P, uc: B, N: P, hStream: P);
    cuModuleLoad(module: P, fname: P);
    cuModuleLoadData(module: P, image: P);
    cuModuleUnload(hmod: P);
    cuModuleGetFunction(hfunc: P, hmod: P, name: P);
    cuLaunchKernel(f: P, gridDimX: I, gridDimY: I, gridDimZ: I, blockDimX: I, blockDimY: I, blockDimZ: I,
        sharedMemBytes: I, hStream: P, kernelParams: P, extra: P);
    cuLaunchHostFunc(hStream: P, fn: P, userData: P);
    cuGraphCreate(phGraph: P, flags: I);
    cuGraphInstantiate(phGraphExec: P, hGraph: P, phErrorNode: P, logBuffer: P, bufferSize: P);
    cuGraphLaunch(hGraph: P, hStream: P);
    cuGraphExecDestroy(hGraphExec: P);
    cuGraphDestroy(hGraph: P);

    // The runtime.
    cudaGetDeviceCount_v3020(count: P);
    cudaDeviceGetAttribute_v5000(value: P, attr: I, device: I);
    cudaSetDevice_v3020(device: I);
    cudaDeviceSynchronize_v3020();
    cudaGetLastError_v3020();
    cudaMemGetInfo_v3020(free: P, total: P);
    cudaStreamCreateWithFlags_v5000(pStream: P, flags: I);
    cudaStreamDestroy_v5050(stream: P);
    cudaStreamSynchronize_v3020(stream: P);
    cudaStreamWaitEvent_v3020(stream: P, event: P, flags: I);
    cudaEventCreate_v3020(event: P);
    cudaEventDestroy_v3020(event: P);
    cudaEventSynchronize_v3020(event: P);
    cudaEventQuery_v3020(event: P);
    cudaEventRecord_v3020(event: P, stream: P);
    cudaMalloc_v3020(devPtr: P, size: P);
    cudaMallocArray_v3020(array: P, desc: P, width: P, height: P, flags: I);
    cudaMallocManaged_v6000(devPtr: P, size: P, flags: I);
    cudaHostAlloc_v3020(pHost: P, size: P, flags: I);
    cudaFree_v3020(devPtr: P);
    cudaFreeHost_v3020(ptr: P);
    cudaFreeAsync_v11020(devPtr: P, hStream: P);
    cudaMemPrefetchAsync_v8000(devPtr: P, count: P, dstDevice: I, stream: P);
    cudaMemcpy_v3020(dst: P, src: P, count: P, kind: I);
    cudaMemcpyAsync_v3020(dst: P, src: P, count: P, kind: I, stream: P);
    cudaMemcpyPeerAsync_v4000(dst: P, dstDevice: I, src: P, srcDevice: I, count: P, stream: P);
    cudaMemcpy2D_v3020(dst: P, dpitch: P, src: P, spitch: P, width: P, height: P, kind: I);
    cudaMemcpy2DAsync_v3020(dst: P, dpitch: P, src: P, spitch: P, width: P, height: P, kind: I, stream: P);
    cudaMemcpy2DFromArray_v3020(dst: P, dpitch: P, src: P, wOffset: P, hOffset: P, width: P, height: P, kind: I);
    cudaMemcpy2DFromArrayAsync_v3020(dst: P, dpitch: P, src: P, wOffset: P, hOffset: P, width: P, height: P, kind: I,
        stream: P);
    cudaMemcpy2DToArray_v3020(dst: P, wOffset: P, hOffset: P, src: P, spitch: P, width: P, height: P, kind: I);
    cudaMemcpy2DToArrayAsync_v3020(dst: P, wOffset: P, hOffset: P, src: P, spitch: P, width: P, height: P, kind: I,
        stream: P);
    cudaMemsetAsync_v3020(devPtr: P, value: I, count: P, stream: P);
    cudaLaunchKernel_v7000(func: P, gridDim.x: I, gridDim.y: I, gridDim.z: I, blockDim.x: I, blockDim.y: I, blockDim.z: I,
        args: P, sharedMem: P, stream: P);
    cudaLaunchHostFunc_v10000(stream: P, fn: P, userData: P);
    cudaGraphCreate_v10000(pGraph: P, flags: I);
    cudaGraphInstantiate_v10000(pGraphExec: P, graph: P, pErrorNode: P, pLogBuffer: P, bufferSize: P);
    cudaGraphLaunch_v10000(graphExec: P, stream: P);
    cudaGraphExecDestroy_v10000(graphExec: P);
    cudaGraphDestroy_v10000(graph: P);
}
