//! Joined records: each piece of work is one record, its enqueue record with [`WorkTimes`] behind it. All times are
//! nanoseconds of CLOCK_BOOTTIME. Buffers of tools deliver these unless they ask for records as they were written.

use bytemuck::{Pod, Zeroable};
use gputrail_record::{
    KernelDispatch, Kind, MemoryCopy, MemorySet, Nanos, RecordRef, Synchronization, Unfinished,
};

/// The form in which a buffer delivers work.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum RecordFormat {
    /// One record for each piece of work when it has completed, with its times behind it. All times are nanoseconds of
    /// CLOCK_BOOTTIME.
    #[default]
    Joined = 0,
    /// Records as they were written: one when work is enqueued, one when it completes, in the units of the clocks.
    Raw = 1,
}

/// The times of a piece of work, in nanoseconds of CLOCK_BOOTTIME; 0 is not known. They follow its record in buffers of
/// joined records.
///
/// Commands of a command buffer (`SHARED` in the flags of the record) have the times of the whole buffer. Some runtimes
/// measure only its end, and state that it began shortly before.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct WorkTimes {
    /// When the call that enqueued it was entered.
    pub enqueued: Nanos,
    /// When the runtime took it.
    pub queued: Nanos,
    /// When the runtime handed it to the agent.
    pub submitted: Nanos,
    /// When it began to run.
    pub start: Nanos,
    /// When it ended.
    pub end: Nanos,
    /// When the host learnt of its completion.
    pub completed: Nanos,
    /// Status of the runtime, negative for errors; of OpenCL's work that has not completed, its execution status.
    pub status: i32,
    /// Why times are missing. The record has the flag `UNFINISHED` if the work had not completed, else `TIME_UNKNOWN`.
    pub unfinished: Unfinished,
    /// 0.
    pub reserved: [u8; 3],
}

impl WorkTimes {
    /// The times of a record of work, if it is a joined one.
    pub fn of(record: RecordRef<'_>) -> Option<WorkTimes> {
        let alone = match record.kind() {
            Kind::KERNEL_DISPATCH => size_of::<KernelDispatch>(),
            Kind::MEMORY_COPY => size_of::<MemoryCopy>(),
            Kind::MEMORY_SET => size_of::<MemorySet>(),
            Kind::SYNCHRONIZATION => size_of::<Synchronization>(),
            _ => return None,
        };
        let times = record.bytes().get(alone..)?;
        (times.len() == size_of::<WorkTimes>()).then(|| bytemuck::pod_read_unaligned(times))
    }

    /// How long it ran, if that is known.
    pub fn duration(&self) -> Option<Nanos> {
        let known = self.start.is_some() && self.end.is_some();
        known.then(|| Nanos(self.end.0.saturating_sub(self.start.0)))
    }
}
