//! API calls (CUPTI: `CUpti_ActivityAPI`; rocprofiler-sdk: buffer tracing of the API domains).

use super::*;

open_enum! {
    /// Whose API was called, or what subscribers are told of.
    Domain(u16) {
        /// OpenCL.
        OPENCL = 1, "opencl";
        /// The simulated GPU's own runtime.
        SIM = 2, "sim";
        /// The CUDA driver API. Reserved.
        CUDA_DRIVER = 3, "cuda driver";
        /// The CUDA runtime API. Reserved.
        CUDA_RUNTIME = 4, "cuda runtime";
        /// HIP. Reserved.
        HIP = 5, "hip";
        /// HSA. Reserved.
        HSA = 6, "hsa";
        /// Objects that come and go; told to subscribers only.
        RESOURCE = 8, "resource";
        /// Kernels that are enqueued and complete; told to subscribers only.
        KERNEL_DISPATCH = 9, "kernel dispatch";
        /// Copies and fills that are enqueued and complete; told to subscribers only.
        MEMORY_COPY = 10, "memory copy";
        /// Memory that is allocated and freed; told to subscribers only.
        MEMORY_ALLOCATION = 11, "memory allocation";
        /// Waits of the host; told to subscribers only.
        SYNCHRONIZATION = 12, "synchronization";
        /// Markers and ranges of the program's own.
        MARKER = 13, "marker";
    }
}

/// A function of a domain; CUPTI's callback id. [`OperationName`] tells its name.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Operation {
    /// Whose function.
    pub domain: Domain,
    /// Number of the function in its domain.
    pub number: u16,
}

/// One API call, from enter to exit. 64 bytes.
///
/// ```text
///  0 header                     8 start            16 end
/// 24 correlation id            32 ancestor         40 external id
/// 48 thread   52 return code   56 domain, operation   60 reserved
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Api {
    /// Kind [`Kind::API`]. Flag `UNFINISHED`: the call was in progress, `end` is 0.
    pub header: Header,
    /// When the call was entered.
    pub start: Ticks,
    /// When it returned.
    pub end: Ticks,
    /// The call's own id.
    pub correlation: CorrelationId,
    /// The call on the same thread that this one was made from, or none.
    pub ancestor: CorrelationId,
    /// The latest external id pushed on the thread, of any kind; a thread without one inherits the
    /// main thread's. Read after the enter callbacks.
    pub external: ExternalId,
    /// The calling thread.
    pub thread: ThreadId,
    /// What the call returned: the status for functions that have one, else 0 for success.
    pub return_code: i32,
    /// The function.
    pub operation: Operation,
    /// 0.
    pub reserved: u32,
}
record!(Api, Kind::API, 64);
