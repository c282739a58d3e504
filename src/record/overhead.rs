//! Time spent by tools instead of the program (CUPTI: `CUpti_ActivityOverhead`).

use super::*;

open_enum! {
    /// The cause of overhead.
    OverheadKind(u8) {
        /// Unknown.
        UNKNOWN = 0, "overhead";
        /// A compiler (CUPTI: DRIVER_COMPILER).
        COMPILATION = 1, "compilation";
        /// Delivery of records (CUPTI: BUFFER_FLUSH).
        FLUSH = 2, "flush";
        /// Waiting of a lane for an empty block.
        WAIT = 3, "waiting for a block";
        /// Instrumentation (CUPTI: INSTRUMENTATION).
        INSTRUMENTATION = 4, "instrumentation";
        /// Creation of a buffer and its memory (CUPTI: RESOURCE).
        RESOURCE = 5, "collector resources";
        /// The driver's compiler of kernels, or its cache (CUPTI: `CUpti_ActivityJit`).
        JIT = 6, "just-in-time compilation";
    }
}

/// Overhead on a thread, or on an object of the runtime. 56 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Overhead {
    /// Kind [`Kind::OVERHEAD`].
    pub header: Header,
    /// The call during which it occurred, or none.
    pub correlation: CorrelationId,
    /// When it began.
    pub start: Ticks,
    /// When it ended.
    pub end: Ticks,
    /// The thread.
    pub thread: ThreadId,
    /// The agent, or none.
    pub agent: AgentId,
    /// The compiled module, or none.
    pub module: ModuleId,
    /// The cause.
    pub what: OverheadKind,
    /// Reserved, 0.
    pub reserved: [u8; 3],
    /// Details, such as compiler options.
    pub detail: StringId,
    /// Reserved, 0.
    pub reserved2: u32,
}
record!(Overhead, Kind::OVERHEAD, 56);
