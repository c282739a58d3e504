//! Time that is not the program's own (CUPTI: `CUpti_ActivityOverhead`).

use super::*;

open_enum! {
    /// Who took the time.
    OverheadKind(u8) {
        /// Not known.
        UNKNOWN = 0, "overhead";
        /// A compiler (CUPTI: DRIVER_COMPILER).
        COMPILATION = 1, "compilation";
        /// Delivery of records (CUPTI: BUFFER_FLUSH).
        FLUSH = 2, "flush";
        /// A lane waited for an empty block.
        WAIT = 3, "waiting for a block";
        /// Instrumentation (CUPTI: INSTRUMENTATION).
        INSTRUMENTATION = 4, "instrumentation";
        /// Resources of the collector (CUPTI: RESOURCE).
        RESOURCE = 5, "collector resources";
    }
}

/// Overhead on a thread, or on an object of the runtime. 56 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Overhead {
    /// Kind [`Kind::OVERHEAD`].
    pub header: Header,
    /// The call in which it occurred, or none.
    pub correlation: CorrelationId,
    /// When it began.
    pub start: Ticks,
    /// When it ended.
    pub end: Ticks,
    /// The thread.
    pub thread: ThreadId,
    /// The agent concerned, or none.
    pub agent: AgentId,
    /// The module that was compiled, or none.
    pub module: ModuleId,
    /// Who took it.
    pub what: OverheadKind,
    /// 0.
    pub reserved: [u8; 3],
    /// Something about it: the compiler's options, say.
    pub detail: StringId,
    /// 0.
    pub reserved2: u32,
}
record!(Overhead, Kind::OVERHEAD, 56);
