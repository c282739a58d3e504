//! Attributes and limits of the process: defaults of buffers, how calls are recorded, how many objects there may be.

use super::sized::sized;
use gputrail_record::Nanos;

/// Attributes of the process. Ask for them, change what is to be changed, and set them.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct AttributeValues {
    /// `sizeof(gputrail_attributes)`.
    pub size: usize,
    /// Bytes of a buffer's blocks together, where its options say nothing else.
    pub pool_bytes: u64,
    /// Bytes of a block, where a buffer's options say nothing else.
    pub block_bytes: u64,
    /// Threads that may record into a buffer at a time, where its options say nothing else.
    pub threads: u32,
    /// `GPUTRAIL_THREAD_IDS_SYSTEM` or another of them: what records of threads that make their first call from now on
    /// call their thread.
    pub thread_ids: u32,
    /// Whether completions say when work was queued and submitted: 1 or 0. Where they do not, these times are 0.
    pub latency_times: u32,
    /// 0.
    pub reserved: u32,
    /// The period at which clocks, temperature, power and fan of agents are read for buffers that want records of that
    /// kind (`GPUTRAIL_KIND_ENVIRONMENT`), in nanoseconds; 0 if they are not. Where the recording has a period of its own,
    /// the shorter one holds. CUDA reports them at a period of its own.
    pub environment_period: Nanos,
}
sized!(AttributeValues, "gputrail_attributes", 40);

/// The limits of a process: how many objects it may have at a time.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct LimitValues {
    /// `sizeof(gputrail_limits)`.
    pub size: usize,
    /// Buffers.
    pub buffers: u32,
    /// Subscribers.
    pub subscribers: u32,
    /// Contexts.
    pub contexts: u32,
    /// Callback threads.
    pub callback_threads: u32,
    /// Bytes of the smallest block that a tool may supply.
    pub smallest_block: u64,
}
sized!(LimitValues, "gputrail_limits", 32);
