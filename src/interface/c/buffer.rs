//! Buffers, their batches, and the records in them.

use super::{BufferHandle, CallbackThreadHandle, sized::sized};
use core::ffi::c_void;
use gputrail_record::ThreadId;

/// Options of a buffer. A field of 0 asks for the usual value.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct BufferSettings {
    /// `sizeof(gputrail_buffer_options)`.
    pub size: usize,
    /// Bytes of all its blocks together; usually 16 MiB.
    pub pool_bytes: u64,
    /// Bytes of a block, a multiple of 4096; usually 64 KiB. Each recording thread holds one.
    pub block_bytes: u64,
    /// Longest time between two looks at what there is to deliver, in nanoseconds; usually 100 ms.
    pub period_nanos: u64,
    /// Bytes in a thread's block from which on they are delivered at the next look; usually full blocks only. 1
    /// delivers whatever is there.
    pub watermark: u32,
    /// The policy for when no block is empty: `GPUTRAIL_POLICY_DISCARD`, the usual one, drops the record and counts it.
    /// `GPUTRAIL_POLICY_LOSSLESS` makes the calling thread wait until a block has been delivered; blocks that idle threads
    /// hold partly filled are delivered for it, so that two blocks are enough for any number of threads. It never
    /// waits, but drops and counts, in callbacks of a buffer, in callbacks of the runtime (where completions are kept and
    /// written later), when nothing is delivered for 5 seconds, and when the library ends.
    /// `GPUTRAIL_POLICY_OVERWRITE` drops the oldest records.
    pub policy: u32,
    /// Threads that may record at a time; usually 1024.
    pub threads: u32,
    /// `GPUTRAIL_RECORD_FORMAT_JOINED`, the usual one: kernels, copies, fills, markers and barriers come once, when they have
    /// completed, with their times (see `gputrail_times_of`); all times of all records are nanoseconds of CLOCK_BOOTTIME.
    /// Or `GPUTRAIL_RECORD_FORMAT_RAW`: records as they were written, which costs less: one when work is enqueued and one when
    /// it completes, with times of the host in ticks and times of agents in the units of their clocks.
    pub format: u32,
    /// The callback thread that delivers; usually one that all buffers share which have none.
    pub callback_thread: CallbackThreadHandle,
    /// Empty blocks that a tool which supplies the blocks is asked for ahead of need. Usually one, and more when they run
    /// out, up to 1 MiB.
    pub blocks_ahead: u32,
    /// 0.
    pub reserved: u32,
}
sized!(BufferSettings, "gputrail_buffer_options", 48);

/// Some records. Valid during the callback that gets it.
///
/// Of raw records: those of one thread, in the order in which it wrote them, in place in their block. Their sequence numbers
/// run on; a gap is as long as the number of records that were dropped there.
///
/// Of joined records: those that have come with records of one thread. Work may be that of other threads, which its record
/// names, and comes in the order in which it completed. `block`, `offset` and `first_record` are 0, and sequence
/// numbers are those of different lanes: records of the kind `loss` tell of drops.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct Batch {
    /// Size of this structure.
    pub size: usize,
    /// The buffer.
    pub buffer: BufferHandle,
    /// The records: one after the other, each as long as its header says. See `gputrail_batch_next`.
    pub records: *const u8,
    /// Bytes of records.
    pub bytes: usize,
    /// The lane that wrote them, unique in the process.
    pub lane: u32,
    /// The thread that wrote them, of joined records the latest; 0 for records of the library's own, and for work that has
    /// not completed at a forced flush or at the end.
    pub thread: ThreadId,
    /// Number of the block in its lane, from 0.
    pub block: u32,
    /// Where these records begin in the block, in bytes: not 0 if earlier ones were delivered before.
    pub offset: u32,
    /// Sequence number of the first record of the block.
    pub first_record: u32,
    /// 0.
    pub reserved: u32,
}
sized!(Batch, "gputrail_batch", 56);

/// Gets a batch and the user data of `gputrail_buffer_create`, on a thread of the library or on one that flushes; never
/// on two threads at a time. It must not throw.
pub type BatchFunction =
    Option<unsafe extern "C-unwind" fn(batch: *const Batch, user_data: *mut c_void)>;

/// Records that were dropped.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct DropCounts {
    /// `sizeof(gputrail_drops)`.
    pub size: usize,
    /// Of all kinds.
    pub total: u64,
    /// Of each kind, by the kind's value.
    pub of_kind: [u64; 256],
}
sized!(DropCounts, "gputrail_drops", 16);
