//! Handles, ids and the small structures that others contain.

use core::ffi::c_void;

/// Handles: structures of one 64-bit word.
macro_rules! handles {
    ($($(#[$what:meta])* $name:ident;)*) => {
        $($(#[$what])*
        #[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(C)]
        pub struct $name {
            /// The word.
            pub handle: u64,
        })*
    };
}

handles! {
    /// A set of services that are started and stopped together.
    ContextId;
    /// A buffer of records.
    BufferId;
    /// A thread of the library that calls the callbacks of buffers.
    CallbackThread;
    /// A processor of the machine.
    AgentId;
    /// A queue of an agent.
    QueueId;
    /// A HIP stream.
    StreamId;
    /// A counter of an agent.
    CounterId;
    /// A set of counters that are collected at the same time.
    CounterConfigId;
}

/// A number of a dispatch, unique in a process.
pub type DispatchId = u64;
/// A number of a kernel symbol.
pub type KernelId = u64;
/// Nanoseconds of CLOCK_BOOTTIME.
pub type Timestamp = u64;
/// The thread, as `gettid` numbers it.
pub type ThreadId = u64;
/// A number of an operation in its kind.
pub type TracingOperation = i32;
/// A counter with the positions in its dimensions.
pub type CounterInstanceId = u64;
/// A dimension of a counter.
pub type CounterDimensionId = u64;

/// A word of the tool's: a number or a pointer.
#[derive(Copy, Clone)]
#[repr(C)]
pub union UserData {
    /// As a number.
    pub value: u64,
    /// As a pointer.
    pub ptr: *mut c_void,
}

impl UserData {
    /// The word as a number.
    pub fn value(self) -> u64 {
        // SAFETY: both are words of 64 bits, and any bits are a number.
        unsafe { self.value }
    }
}

impl From<u64> for UserData {
    fn from(value: u64) -> UserData {
        UserData { value }
    }
}

impl core::fmt::Debug for UserData {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "{:#x}", self.value())
    }
}

/// The ids of a call.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct CorrelationId {
    /// The library's number of the call; 0 is none.
    pub internal: u64,
    /// The tool's value for it.
    pub external: UserData,
    /// The number of the call around it; 0 is none.
    pub ancestor: u64,
}

/// The ids of the call that enqueued work.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct AsyncCorrelationId {
    /// The library's number of the call; 0 is none.
    pub internal: u64,
    /// The tool's value for it.
    pub external: UserData,
}

/// Three sizes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Dim3 {
    /// In the first dimension.
    pub x: u32,
    /// In the second.
    pub y: u32,
    /// In the third.
    pub z: u32,
}

/// A version of the library.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct VersionTriplet {
    /// Incompatible changes.
    pub major: u32,
    /// Additions.
    pub minor: u32,
    /// Mends.
    pub patch: u32,
}

/// How a kernel was dispatched.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct KernelDispatchInfo {
    /// Bytes of this structure without the reserved ones.
    pub size: u64,
    /// The agent that executes it.
    pub agent_id: AgentId,
    /// The queue with the packet.
    pub queue_id: QueueId,
    /// The kernel symbol.
    pub kernel_id: KernelId,
    /// The number of the dispatch.
    pub dispatch_id: DispatchId,
    /// Scratch memory of a work-item in bytes.
    pub private_segment_size: u32,
    /// LDS of a workgroup in bytes, static and dynamic.
    pub group_segment_size: u32,
    /// Work-items of a workgroup.
    pub workgroup_size: Dim3,
    /// Work-items of the grid.
    pub grid_size: Dim3,
    /// Room for more.
    pub reserved_padding: [u8; 56],
}

/// A record in a buffer.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct RecordHeader {
    /// Its subject: a [`BufferCategory`](crate::BufferCategory).
    pub category: u32,
    /// The kind in its category.
    pub kind: u32,
    /// The record.
    pub payload: *mut c_void,
}
