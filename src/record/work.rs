//! Kernels, and the completion of any work (CUPTI: `CUpti_ActivityKernel4`; rocprofiler-sdk: kernel dispatch
//! records).
//!
//! Grids are in work-items as in OpenCL and HSA, while CUPTI counts workgroups. Workgroups are CUPTI's blocks, local
//! memory is CUPTI's shared memory, and private memory is CUPTI's local memory.

use super::*;

open_enum! {
    /// The type of a launch (CUPTI: `CUpti_ActivityLaunchType`).
    LaunchType(u8) {
        /// A regular launch.
        REGULAR = 0, "regular";
        /// A cooperative launch on one device.
        COOPERATIVE_SINGLE_DEVICE = 1, "cooperative, single device";
        /// A cooperative launch on several devices.
        COOPERATIVE_MULTI_DEVICE = 2, "cooperative, multi device";
        /// Part of a command buffer or graph, with one completion for all its kernels.
        COMMAND_BUFFER = 3, "command buffer";
        /// A host function executed by a queue (clEnqueueNativeKernel).
        NATIVE = 4, "native";
    }
}

/// The fields of all work records, after the [`Header`]: the call, the work, and where it was enqueued. 56 bytes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct WorkHeader {
    /// The id of the work, shared by the parts of a command buffer. None for waits of the host.
    pub id: WorkId,
    /// The call that enqueued the work, or that waits.
    pub correlation: CorrelationId,
    /// The external id supplied for the work, or else that of the call.
    pub external: ExternalId,
    /// The start of that call.
    pub enqueued: Ticks,
    /// The agent that executes the work.
    pub agent: AgentId,
    /// The context of the queue.
    pub context: ContextId,
    /// The queue.
    pub queue: QueueId,
    /// The stream, if the runtime has streams.
    pub stream: StreamId,
    /// The calling thread.
    pub thread: ThreadId,
    /// For a command of a command buffer, its number among them, from 0.
    pub command: u16,
    /// The number of commands of the command buffer; 0 for other work, and above 65535.
    pub commands: u16,
}

/// The enqueue of a kernel. 152 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct KernelDispatch {
    /// Kind [`Kind::KERNEL_DISPATCH`].
    pub header: Header,
    /// The fields of all work records.
    pub work: WorkHeader,
    /// The kernel.
    pub kernel: KernelId,
    /// Work-items per workgroup in x, y, z; 0 if the runtime chose.
    pub workgroup: [u32; 3],
    /// Work-items in x, y, z; 1 in unused dimensions.
    pub grid: [u64; 3],
    /// Registers per work-item. Where scalar ones and those of matrix instructions are counted apart, the ordinary ones.
    pub registers: u32,
    /// Local memory declared by the kernel, in bytes per workgroup.
    pub static_local_memory: u32,
    /// Local memory added by the launch, in bytes per workgroup.
    pub dynamic_local_memory: u32,
    /// Private memory per work-item, in bytes.
    pub private_memory: u32,
    /// Private memory of the launch, in bytes (CUPTI: localMemoryTotal).
    pub private_memory_total: u64,
    /// The id of the grid, or 0 (CUPTI: gridId).
    pub grid_id: i64,
    /// Local memory reserved by the driver, in bytes (CUPTI: sharedMemoryExecuted).
    pub executed_local_memory: u32,
    /// The requested cache configuration, in the runtime's encoding.
    pub cache_requested: u8,
    /// The effective cache configuration.
    pub cache_executed: u8,
    /// The bank configuration of local memory (CUPTI: sharedMemoryConfig).
    pub local_memory_config: u8,
    /// The requested local-memory carve-out in percent; 255: none.
    pub carveout: u8,
    /// The type of the launch.
    pub launch: LaunchType,
    /// The number of dimensions of the launch; 0: unknown.
    pub dimensions: u8,
    /// Registers per work-item in which matrix instructions accumulate, if they are counted apart (AMD: accumulation VGPRs).
    pub accumulation_registers: u16,
    /// Scalar registers per wave, if they are counted apart (AMD: SGPRs).
    pub scalar_registers: u16,
    /// Reserved, 0.
    pub reserved: [u8; 2],
}
work_record!(KernelDispatch, Kind::KERNEL_DISPATCH, 152);

open_enum! {
    /// The reason for missing times in a completion.
    Unfinished(u8) {
        /// No times are missing.
        NO = 0, "finished";
        /// The work had not completed when the recording ended.
        AT_END = 1, "not complete when the recording ended";
        /// The runtime provided no times.
        NO_TIMES = 2, "no times from the runtime";
        /// The work had not completed at a forced flush. Another completion follows.
        AT_FLUSH = 3, "not complete at a flush";
        /// In joined records: no completion has come. It was dropped, or the work had not completed.
        NO_COMPLETION = 4, "no completion recorded";
    }
}

/// The completion of work. 80 bytes.
///
/// Known times satisfy `queued <= submitted <= start <= end`; they are in the agent's clock.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Completion {
    /// Kind [`Kind::COMPLETION`].
    pub header: Header,
    /// The id of the work in its enqueue record.
    pub work: WorkId,
    /// The call that enqueued it.
    pub correlation: CorrelationId,
    /// When the runtime accepted the command.
    pub queued: DeviceTime,
    /// When the runtime submitted the command to the device.
    pub submitted: DeviceTime,
    /// When execution began.
    pub start: DeviceTime,
    /// When execution ended.
    pub end: DeviceTime,
    /// When the host learned of the completion.
    pub completed: Ticks,
    /// The agent.
    pub agent: AgentId,
    /// The status of the runtime; errors are negative.
    pub status: i32,
    /// The reason for missing times.
    pub unfinished: Unfinished,
    /// Reserved, 0.
    pub reserved: [u8; 7],
}
record!(Completion, Kind::COMPLETION, 80);

/// The retirement of a correlation id: its call has returned, all work that it enqueued has completed, and every record
/// with the id has been written (rocprofiler-sdk: correlation-id retirement). Batches of other threads, with records of
/// the id, may be delivered later; after a flush that begins once this record is delivered, none are. 24 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Retirement {
    /// Kind [`Kind::RETIREMENT`].
    pub header: Header,
    /// The call.
    pub correlation: CorrelationId,
    /// When the retirement was detected.
    pub time: Ticks,
}
record!(Retirement, Kind::RETIREMENT, 24);

/// A wait for a piece of work: by other work through its event wait list, or by the call itself. It precedes the record
/// of the waiting work or call on the same lane. 32 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Dependency {
    /// Kind [`Kind::DEPENDENCY`].
    pub header: Header,
    /// The call that waits, or that enqueued the waiting work.
    pub correlation: CorrelationId,
    /// The work that waits, or none if the call does.
    pub work: WorkId,
    /// The work waited for.
    pub waited_for: WorkId,
}
record!(Dependency, Kind::DEPENDENCY, 32);
