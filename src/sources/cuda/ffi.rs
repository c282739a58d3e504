//! Our own declarations of the part of libcupti's interface that is in use, and of libcuda's.
//!
//! Names and numbers are those of CUPTI. A function that a version lacks is `None`.

// The command lists devices and does nothing else.

use core::ffi::{c_char, c_void};
use libloading::os::unix::Library;

use super::counting::ffi as profiler;
use super::sampling::ffi::{
    ConfigurationParams, ContextParams, CrcParams, DataParams, LineParams, ReasonCountParams,
    ReasonParams,
};

/// CUPTI's status.
pub(super) type CuptiStatus = i32;

pub(super) const SUCCESS: CuptiStatus = 0;
/// The status of functions that the library's version does not implement.
pub(super) const NOT_IMPLEMENTED: CuptiStatus = 11;
/// The end of a buffer of records.
pub(super) const MAX_LIMIT_REACHED: CuptiStatus = 12;
pub(super) const NOT_COMPATIBLE: CuptiStatus = 14;
pub(super) const NOT_INITIALIZED: CuptiStatus = 15;
pub(super) const MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: CuptiStatus = 39;
pub(super) const UNKNOWN: CuptiStatus = 999;

/// Domains of callbacks.
pub(super) const DRIVER_API: u32 = 1;
pub(super) const RUNTIME_API: u32 = 2;
pub(super) const RESOURCE: u32 = 3;
pub(super) const SYNCHRONIZE: u32 = 4;
pub(super) const STATE: u32 = 6;

/// Callbacks of the domain [`RESOURCE`].
pub(super) const CONTEXT_CREATED: u32 = 1;
pub(super) const CONTEXT_DESTROYED: u32 = 2;
pub(super) const STREAM_CREATED: u32 = 3;
pub(super) const STREAM_DESTROYED: u32 = 4;
pub(super) const INITIALIZED: u32 = 5;
pub(super) const MODULE_LOADED: u32 = 6;
pub(super) const MODULE_UNLOADED: u32 = 7;
pub(super) const MODULE_PROFILED: u32 = 8;
pub(super) const GRAPH_CREATED: u32 = 9;
pub(super) const GRAPH_DESTROYED: u32 = 10;
pub(super) const GRAPH_CLONED: u32 = 11;
pub(super) const GRAPH_NODE_CREATED: u32 = 13;
pub(super) const GRAPH_NODE_DESTROYED: u32 = 14;
pub(super) const GRAPH_DEPENDENCY_CREATED: u32 = 15;
pub(super) const GRAPH_DEPENDENCY_DESTROYED: u32 = 16;
pub(super) const GRAPH_INSTANTIATED: u32 = 18;
pub(super) const GRAPH_EXECUTABLE_DESTROYED: u32 = 19;
pub(super) const GRAPH_NODE_CLONED: u32 = 20;
/// The callbacks of the domain [`RESOURCE`] that the session itself needs.
pub(super) const NEEDED: [u32; 7] = [
    INITIALIZED,
    CONTEXT_CREATED,
    CONTEXT_DESTROYED,
    STREAM_CREATED,
    STREAM_DESTROYED,
    MODULE_LOADED,
    MODULE_UNLOADED,
];

/// Callbacks of the domain [`SYNCHRONIZE`].
pub(super) const STREAM_SYNCHRONIZED: u32 = 1;
pub(super) const CONTEXT_SYNCHRONIZED: u32 = 2;

/// Callbacks of the domain [`STATE`]: fatal errors, errors and warnings of CUPTI.
pub(super) const STATES: [u32; 3] = [1, 2, 3];
pub(super) const WARNING: u32 = 3;

/// The site of a callback about a call: its enter. Any other value is its exit.
pub(super) const ENTER: i32 = 0;

/// Kinds of activity records.
pub(super) const MEMCPY: u32 = 1;
pub(super) const MEMSET: u32 = 2;
pub(super) const KERNEL: u32 = 3;
pub(super) const CONCURRENT_KERNEL: u32 = 10;
pub(super) const OVERHEAD: u32 = 17;
pub(super) const ENVIRONMENT: u32 = 20;
pub(super) const MEMCPY_PEER: u32 = 22;
pub(super) const UNIFIED_MEMORY_COUNTER: u32 = 25;
pub(super) const FUNCTION: u32 = 26;
pub(super) const CUDA_EVENT: u32 = 36;
pub(super) const STREAM: u32 = 37;
pub(super) const SYNCHRONIZATION: u32 = 38;
pub(super) const EXTERNAL_CORRELATION: u32 = 39;
pub(super) const MEMORY: u32 = 49;
pub(super) const MEMORY_POOL: u32 = 50;
pub(super) const JIT: u32 = 52;

/// Flushes records of activities that have not completed, too.
pub(super) const FLUSH_FORCED: u32 = 1;

/// The argument of a callback about a call.
#[repr(C)]
pub(super) struct CallData {
    pub site: i32,
    pub function_name: *const c_char,
    pub parameters: *const c_void,
    pub return_value: *const c_void,
    pub symbol_name: *const c_char,
    pub context: *mut c_void,
    pub context_uid: u32,
    /// A word that lasts from the enter of the call to its exit.
    pub correlation_data: *mut u64,
    pub correlation_id: u32,
}

const _: () = {
    assert!(core::mem::offset_of!(CallData, context_uid) == 48);
    assert!(core::mem::offset_of!(CallData, correlation_id) == 64);
};

/// The argument of a callback of the domain [`STATE`].
#[repr(C)]
pub(super) struct StateData {
    pub status: CuptiStatus,
    pub message: *const c_char,
}

/// A counter of unified memory that [`UNIFIED_MEMORY_COUNTER`] records, on all devices of the process.
#[repr(C)]
pub(super) struct UnifiedMemoryConfig {
    /// 1: the process on one device, 2: on all devices.
    pub scope: u32,
    pub counter: u32,
    pub device: u32,
    pub enable: u32,
}

pub(super) type CuptiCallback =
    unsafe extern "C" fn(user: *mut c_void, domain: u32, number: u32, data: *const c_void);
pub(super) type BufferRequested =
    unsafe extern "C" fn(buffer: *mut *mut u8, size: *mut usize, records: *mut usize);
pub(super) type BufferCompleted = unsafe extern "C" fn(
    context: *mut c_void,
    stream: u32,
    buffer: *mut u8,
    size: usize,
    valid: usize,
);

/// Declares a table of the functions of a library.
macro_rules! functions {
    ($(#[$meta:meta])* $table:ident { $($name:ident($($type:ty),*);)* }) => {
        $(#[$meta])*
        #[allow(non_snake_case)]
        pub(in crate::cuda) struct $table {
            $(pub $name: Option<unsafe extern "C" fn($($type),*) -> i32>,)*
        }

        impl $table {
            /// The functions that `library` exports. They may be called as long as it is loaded.
            pub fn of(library: &Library) -> $table {
                $table {
                    // SAFETY: a function of this name in such a library has this type.
                    $($name: unsafe { library.get(stringify!($name)) }.ok().map(|found| *found),)*
                }
            }
        }
    };
}

pub(super) use functions;

functions! {
    /// The functions of libcupti.
    Cupti {
        cuptiGetVersion(*mut u32);
        cuptiGetTimestamp(*mut u64);
        cuptiSubscribe(*mut *mut c_void, CuptiCallback, *mut c_void);
        cuptiEnableCallback(u32, *mut c_void, u32, u32);
        cuptiGetCallbackName(u32, u32, *mut *const c_char);
        cuptiActivityRegisterCallbacks(BufferRequested, BufferCompleted);
        cuptiActivityEnable(u32);
        cuptiActivityDisable(u32);
        cuptiActivityFlushAll(u32);
        cuptiActivityGetNextRecord(*mut u8, usize, *mut *mut u8);
        cuptiActivityGetNumDroppedRecords(*mut c_void, u32, *mut usize);
        cuptiActivityGetStructSize(u32, u32, *mut usize);
        cuptiActivityEnableLatencyTimestamps(u8);
        cuptiActivityEnableCudaEventDeviceTimestamps(u8);
        cuptiActivityConfigureUnifiedMemoryCounter(*mut UnifiedMemoryConfig, u32);
        cuptiGetDeviceId(*mut c_void, *mut u32);
        cuptiGetContextId(*mut c_void, *mut u32);
        cuptiGetStreamIdEx(*mut c_void, *mut c_void, u8, *mut u32);
        cuptiGetGraphId(*mut c_void, *mut u32);
        cuptiGetGraphExecId(*mut c_void, *mut u32);
        cuptiGetGraphNodeId(*mut c_void, *mut u64);
        cuptiPCSamplingEnable(*mut ContextParams);
        cuptiPCSamplingDisable(*mut ContextParams);
        cuptiPCSamplingSetConfigurationAttribute(*mut ConfigurationParams);
        cuptiPCSamplingGetNumStallReasons(*mut ReasonCountParams);
        cuptiPCSamplingGetStallReasons(*mut ReasonParams);
        cuptiPCSamplingGetData(*mut DataParams);
        cuptiGetCubinCrc(*mut CrcParams);
        cuptiGetSassToSourceCorrelation(*mut LineParams);
        cuptiProfilerInitialize(*mut profiler::Initialize);
        cuptiProfilerDeviceSupported(*mut profiler::DeviceSupported);
        cuptiDeviceGetChipName(*mut profiler::ChipName);
        cuptiProfilerHostInitialize(*mut profiler::HostInitialize);
        cuptiProfilerHostDeinitialize(*mut profiler::HostDeinitialize);
        cuptiProfilerHostGetBaseMetrics(*mut profiler::BaseMetrics);
        cuptiProfilerHostGetSubMetrics(*mut profiler::SubMetrics);
        cuptiProfilerHostGetMetricProperties(*mut profiler::MetricProperties);
        cuptiProfilerHostEvaluateToGpuValues(*mut profiler::Evaluate);
        cuptiProfilerHostConfigAddMetrics(*mut profiler::AddMetrics);
        cuptiProfilerHostGetConfigImageSize(*mut profiler::ConfigSize);
        cuptiProfilerHostGetConfigImage(*mut profiler::Config);
        cuptiProfilerHostGetNumOfPasses(*mut profiler::Passes);
        cuptiRangeProfilerEnable(*mut profiler::Enable);
        cuptiRangeProfilerDisable(*mut profiler::OfProfiler);
        cuptiRangeProfilerStart(*mut profiler::OfProfiler);
        cuptiRangeProfilerStop(*mut profiler::Stop);
        cuptiRangeProfilerPushRange(*mut profiler::PushRange);
        cuptiRangeProfilerPopRange(*mut profiler::OfProfiler);
        cuptiRangeProfilerSetConfig(*mut profiler::SetConfig);
        cuptiRangeProfilerDecodeData(*mut profiler::Decode);
        cuptiRangeProfilerGetCounterDataSize(*mut profiler::DataSize);
        cuptiRangeProfilerCounterDataImageInitialize(*mut profiler::InitializeData);
        cuptiRangeProfilerGetCounterDataInfo(*mut profiler::DataInfo);
    }
}

functions! {
    /// The functions of libcuda.
    Cuda {
        cuInit(u32);
        cuDriverGetVersion(*mut i32);
        cuDeviceGetCount(*mut i32);
        cuDeviceGet(*mut i32, i32);
        cuDeviceGetName(*mut c_char, i32, i32);
        cuDeviceTotalMem_v2(*mut usize, i32);
        cuDeviceGetAttribute(*mut i32, i32, i32);
        cuDeviceGetPCIBusId(*mut c_char, i32, i32);
        cuStreamGetCtx(*mut c_void, *mut *mut c_void);
        cuStreamIsCapturing(*mut c_void, *mut i32);
        cuStreamSynchronize(*mut c_void);
    }
}

/// Attributes of a device.
pub(super) const MAX_THREADS_PER_BLOCK: i32 = 1;
pub(super) const CLOCK_RATE: i32 = 13;
pub(super) const MULTIPROCESSOR_COUNT: i32 = 16;
pub(super) const COMPUTE_CAPABILITY_MAJOR: i32 = 75;
pub(super) const COMPUTE_CAPABILITY_MINOR: i32 = 76;
pub(super) const MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: i32 = 81;

/// Calls a function of a table; `None` if the library lacks it, else its status. The caller's `unsafe` block says why the
/// arguments are what the function asks for.
macro_rules! call {
    ($table:expr, $name:ident($($argument:expr),* $(,)?)) => {
        $table.$name.map(|function| function($($argument),*))
    };
}
pub(super) use call;

impl Cupti {
    /// The version of the library's API; 0 if it does not tell.
    pub fn version(&self) -> u32 {
        let mut version = 0;
        // SAFETY: CUPTI writes to a local.
        unsafe { call!(self, cuptiGetVersion(&raw mut version)) };
        version
    }

    /// The number of the device of a context, or of the thread's current context if `context` is null; `None` if CUPTI tells
    /// none.
    ///
    /// # Safety
    ///
    /// `context` is null or a context that exists during the call.
    pub unsafe fn device_of(&self, context: *mut c_void) -> Option<u32> {
        let mut device = 0;
        // SAFETY: CUPTI takes null and contexts that exist (`# Safety`), and writes to a local.
        let status = unsafe { call!(self, cuptiGetDeviceId(context, &raw mut device)) };
        (status == Some(SUCCESS)).then_some(device)
    }

    /// CUPTI's number of a context; `None` if CUPTI tells none.
    ///
    /// # Safety
    ///
    /// `context` is null or a context that exists during the call.
    pub unsafe fn context_number(&self, context: *mut c_void) -> Option<u32> {
        let mut number = 0;
        // SAFETY: CUPTI refuses null, takes contexts that exist (`# Safety`), and writes to a local.
        let status = unsafe { call!(self, cuptiGetContextId(context, &raw mut number)) };
        (status == Some(SUCCESS)).then_some(number)
    }

    /// CUPTI's number of a stream in its context; `None` if CUPTI tells none, or if the stream is of another context than
    /// `context`, where that is not null.
    ///
    /// # Safety
    ///
    /// `context` is null or a context that exists during the call, and `stream` a default stream's handle or a stream that
    /// does.
    pub unsafe fn stream_number(&self, context: *mut c_void, stream: *mut c_void) -> Option<u32> {
        const NOT_PER_THREAD: u8 = 0;
        let mut number = 0;
        // SAFETY: both handles are null or of objects that exist (`# Safety`), and CUPTI writes to a local.
        let status = unsafe {
            call!(
                self,
                cuptiGetStreamIdEx(context, stream, NOT_PER_THREAD, &raw mut number)
            )
        };
        (status == Some(SUCCESS)).then_some(number)
    }
}

impl Cuda {
    /// The version of CUDA that the driver supports: 12080 for 12.8; 0 if it does not tell.
    pub fn version(&self) -> i32 {
        let mut version = 0;
        // SAFETY: the driver writes to a local, and tells its version before it is initialised, too.
        unsafe { call!(self, cuDriverGetVersion(&raw mut version)) };
        version
    }
}
