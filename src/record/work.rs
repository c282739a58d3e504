//! Kernels, and the completion of any work (CUPTI: `CUpti_ActivityKernel4`; rocprofiler-sdk:
//! kernel dispatch records).
//!
//! Grids are in work-items, as in OpenCL and HSA; CUPTI counts workgroups. Workgroups are what
//! CUPTI calls blocks, local memory is what CUPTI calls shared memory, private memory is what
//! CUPTI calls local memory.

use super::*;

open_enum! {
    /// How a kernel was launched (CUPTI: `CUpti_ActivityLaunchType`).
    LaunchType(u8) {
        /// On its own.
        REGULAR = 0, "regular";
        /// All workgroups at once, one device.
        COOPERATIVE_SINGLE_DEVICE = 1, "cooperative, single device";
        /// All workgroups at once, several devices.
        COOPERATIVE_MULTI_DEVICE = 2, "cooperative, multi device";
        /// As part of a command buffer or graph, whose one completion covers all of its kernels.
        COMMAND_BUFFER = 3, "command buffer";
        /// A function of the host run by a queue (clEnqueueNativeKernel).
        NATIVE = 4, "native";
    }
}

/// The fields that all work records share, right after the [`Header`]: which call put which work where. 56 bytes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct WorkHeader {
    /// The work, as its completion names it. The parts of one command buffer share it. None for waits of the host.
    pub id: WorkId,
    /// The call that enqueued the work, or that waits.
    pub correlation: CorrelationId,
    /// External id of that call.
    pub external: ExternalId,
    /// When that call was entered.
    pub enqueued: Ticks,
    /// The agent that executes the work.
    pub agent: AgentId,
    /// The context of the queue.
    pub context: ContextId,
    /// The queue that the work was put into.
    pub queue: QueueId,
    /// The stream that the work was put into, where the runtime has streams.
    pub stream: StreamId,
    /// The thread that made the call.
    pub thread: ThreadId,
    /// 0.
    pub reserved: u32,
}

/// A kernel was enqueued. 152 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct KernelDispatch {
    /// Kind [`Kind::KERNEL_DISPATCH`].
    pub header: Header,
    /// The dispatch, and where it was put.
    pub work: WorkHeader,
    /// The kernel.
    pub kernel: KernelId,
    /// Work-items per workgroup in x, y, z; 0 where the runtime chose.
    pub workgroup: [u32; 3],
    /// Work-items in x, y, z; 1 in dimensions that are not used.
    pub grid: [u64; 3],
    /// Registers per work-item.
    pub registers: u32,
    /// Local memory that the kernel declares, bytes per workgroup.
    pub static_local_memory: u32,
    /// Local memory that the launch added, bytes per workgroup.
    pub dynamic_local_memory: u32,
    /// Private memory, bytes per work-item.
    pub private_memory: u32,
    /// Private memory of the whole launch, bytes (CUPTI: localMemoryTotal).
    pub private_memory_total: u64,
    /// The launch's number in its grid hierarchy, 0 if there is none (CUPTI: gridId).
    pub grid_id: i64,
    /// Local memory that the driver set aside, bytes (CUPTI: sharedMemoryExecuted).
    pub executed_local_memory: u32,
    /// Cache configuration asked for, as the runtime counts them.
    pub cache_requested: u8,
    /// Cache configuration in effect.
    pub cache_executed: u8,
    /// Bank configuration of local memory (CUPTI: sharedMemoryConfig).
    pub local_memory_config: u8,
    /// Local-memory carve-out asked for, percent; 255 if none was.
    pub carveout: u8,
    /// How it was launched.
    pub launch: LaunchType,
    /// Dimensions that the launch named, 0 if unknown.
    pub dimensions: u8,
    /// 0.
    pub reserved: [u8; 6],
}
work_record!(KernelDispatch, Kind::KERNEL_DISPATCH, 152);

open_enum! {
    /// Why the times of a completion are not all there.
    Unfinished(u8) {
        /// They are all there.
        NO = 0, "finished";
        /// It had not completed when the recording ended.
        AT_END = 1, "not complete when the recording ended";
        /// The runtime gave no times for it.
        NO_TIMES = 2, "no times from the runtime";
        /// It had not completed when somebody flushed and wanted to know. Another completion comes later.
        AT_FLUSH = 3, "not complete when it was asked after";
    }
}

/// Work that was enqueued has completed, or will not. 80 bytes.
///
/// `queued <= submitted <= start <= end` as far as they are known, all in the agent's clock.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Completion {
    /// Kind [`Kind::COMPLETION`].
    pub header: Header,
    /// The work, as its enqueue record named it.
    pub work: WorkId,
    /// The call that enqueued it.
    pub correlation: CorrelationId,
    /// When the runtime took the command.
    pub queued: DeviceTime,
    /// When it handed the command to the device.
    pub submitted: DeviceTime,
    /// When execution began.
    pub start: DeviceTime,
    /// When execution ended.
    pub end: DeviceTime,
    /// When the completion became known to the host.
    pub completed: Ticks,
    /// Where it ran.
    pub agent: AgentId,
    /// Status of the runtime, negative for errors.
    pub status: i32,
    /// Why times are missing.
    pub unfinished: Unfinished,
    /// 0.
    pub reserved: [u8; 7],
}
record!(Completion, Kind::COMPLETION, 80);

/// A call has returned, and all work that it enqueued has completed: every record of its correlation id has been written
/// (rocprofiler-sdk: correlation-id retirement). 24 bytes.
///
/// Batches of other threads, with records of that id, may be delivered later than this record. Once a flush has returned that
/// began after this record was delivered, no more of them come. The thread that completes work never waits for an empty
/// block: also a lossless buffer drops retirements when it is full, and counts them among its drops, without a gap in the
/// sequence numbers of a thread.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Retirement {
    /// Kind [`Kind::RETIREMENT`].
    pub header: Header,
    /// The call.
    pub correlation: CorrelationId,
    /// When that became known.
    pub time: Ticks,
}
record!(Retirement, Kind::RETIREMENT, 24);

/// Something waits for a piece of work: another piece of work, by the list of events it was enqueued with, or else
/// the call itself. Written ahead of the record of what waits, on the same lane. 32 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Dependency {
    /// Kind [`Kind::DEPENDENCY`].
    pub header: Header,
    /// The call that waits, or that enqueued what waits.
    pub correlation: CorrelationId,
    /// The work that waits; none if the call does.
    pub work: WorkId,
    /// The work that it waits for.
    pub waited_for: WorkId,
}
record!(Dependency, Kind::DEPENDENCY, 32);
