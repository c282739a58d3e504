//! API calls (CUPTI: `CUpti_ActivityAPI`; rocprofiler-sdk: buffer tracing of the API domains).

use super::*;

open_enum! {
    /// The API of an operation, or the kind of activity that subscribers are notified of.
    Domain(u16) {
        /// OpenCL.
        OPENCL = 1, "opencl";
        /// The simulated GPU's own runtime.
        SIM = 2, "sim";
        /// The CUDA driver API.
        CUDA_DRIVER = 3, "cuda driver";
        /// The CUDA runtime API.
        CUDA_RUNTIME = 4, "cuda runtime";
        /// The runtime API of HIP.
        HIP = 5, "hip";
        /// HSA: its core, AMD's extension, images and the finaliser.
        HSA = 6, "hsa";
        /// The functions of HIP that compilers call.
        HIP_COMPILER = 7, "hip compiler";
        /// Creation and destruction of objects; for subscribers only.
        RESOURCE = 8, "resource";
        /// Enqueue and completion of kernels; for subscribers only.
        KERNEL_DISPATCH = 9, "kernel dispatch";
        /// Enqueue and completion of copies and fills; for subscribers only.
        MEMORY_COPY = 10, "memory copy";
        /// Allocation and release of memory; for subscribers only.
        MEMORY_ALLOCATION = 11, "memory allocation";
        /// Waits of the host; for subscribers only.
        SYNCHRONIZATION = 12, "synchronization";
        /// Markers and ranges made by the program.
        MARKER = 13, "marker";
        /// RCCL, AMD's library of collectives.
        RCCL = 14, "rccl";
        /// Events of the OMPT interface, as rocprofiler-sdk tells them.
        OMPT = 15, "ompt";
    }
}

/// A function of a domain (CUPTI: callback id). [`OperationName`] has its name.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Operation {
    /// The API of the function.
    pub domain: Domain,
    /// The number of the function in its domain.
    pub number: u16,
}

impl core::fmt::Display for Operation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "operation {} of domain {}", self.number, self.domain)
    }
}

/// One API call, from enter to exit. 64 bytes.
///
/// ```text
///  0 header                     8 start            16 end
/// 24 correlation id            32 ancestor         40 external id
/// 48 thread   52 return code   56 domain, operation   60 stack
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Api {
    /// Kind [`Kind::API`]. Flag `UNFINISHED`: the call was in progress and `end` is 0.
    pub header: Header,
    /// When the call was entered.
    pub start: Ticks,
    /// When it returned.
    pub end: Ticks,
    /// The id of the call.
    pub correlation: CorrelationId,
    /// The enclosing call on the same thread, or none.
    pub ancestor: CorrelationId,
    /// The external id at the end of the call: the one supplied for it, or else the latest pushed on the thread, of any
    /// kind; a thread without one inherits the main thread's. In buffers of a context with ids of its own it is one of
    /// these.
    pub external: ExternalId,
    /// The calling thread.
    pub thread: ThreadId,
    /// The status that the function returned; 0 for success if it returns none.
    pub return_code: i32,
    /// The function.
    pub operation: Operation,
    /// The call stack of the host, if `gputrail record --call-stacks` records the process; otherwise none.
    pub stack: CallStackId,
}
record!(Api, Kind::API, 64);
