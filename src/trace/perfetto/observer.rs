//! What happened, joined and in nanoseconds, for those who want to hear of it while a trace is made.

use crate::record::{Domain, Kind, Nanos, OperationGroup, ThreadId, Unfinished};

use super::schema::PcSamples;
use super::work::Launch;

/// A process, by its place among the captures.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessIndex(pub u32);

/// A device of the trace, by its place in it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GpuIndex(pub u32);

impl GpuIndex {
    /// A device that the names store does not hold.
    pub const UNKNOWN: GpuIndex = GpuIndex(u32::MAX);
}

/// An API call. Times are CLOCK_BOOTTIME.
#[derive(Copy, Clone, Debug)]
pub struct Call<'a> {
    /// Who called.
    pub process: ProcessIndex,
    /// On which thread.
    pub thread: ThreadId,
    /// What was called, as a number that is the same for the same function of the same process.
    pub function: u32,
    /// What was called.
    pub name: &'a str,
    /// Whose API.
    pub domain: Domain,
    /// What kind of function it is.
    pub group: OperationGroup,
    /// When it was entered.
    pub start: Nanos,
    /// When it returned; none if it did not.
    pub end: Option<Nanos>,
    /// Whether it was called by another call.
    pub nested: bool,
    /// Whether it failed.
    pub failed: bool,
    /// What it returned.
    pub return_code: i32,
}

/// What kind of work an event is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum WorkKind {
    /// A kernel.
    Kernel,
    /// A copy, map, unmap or migration.
    Copy,
    /// A fill.
    Set,
    /// A marker or barrier.
    Synchronization,
    /// Its enqueue record is missing.
    Unknown,
}

/// Work of a device. Times are CLOCK_BOOTTIME.
#[derive(Copy, Clone, Debug)]
pub struct DeviceWork<'a> {
    /// Whose work.
    pub process: ProcessIndex,
    /// Where it ran.
    pub gpu: GpuIndex,
    /// What kind it is.
    pub kind: WorkKind,
    /// What it is, as a number that is the same for the same kernel or kind of copy of one process.
    pub stage: u64,
    /// What it is called.
    pub name: &'a str,
    /// The thread that enqueued it; none if that is not known.
    pub thread: ThreadId,
    /// When the call that enqueued it was entered; none if that is not known.
    pub enqueued: Option<Nanos>,
    /// When it ran; none if that is not known or it did not end.
    pub interval: Option<(Nanos, Nanos)>,
    /// Why times are missing.
    pub unfinished: Unfinished,
    /// Bytes moved or set.
    pub bytes: u64,
    /// Size of the launch, of kernels.
    pub launch: Option<Launch>,
    /// Status of the runtime, negative for errors.
    pub status: i32,
}

/// Records that are missing.
#[derive(Copy, Clone, Debug)]
pub struct Missing {
    /// Whose records.
    pub process: ProcessIndex,
    /// The thread that lost them; none if it never had a lane.
    pub thread: ThreadId,
    /// What they were; 0 if mixed.
    pub kind: Kind,
    /// How many.
    pub count: u64,
    /// The first was dropped no earlier than this.
    pub first: Nanos,
    /// The last was dropped no later than this.
    pub last: Nanos,
}

/// Hears of everything that goes into a trace. Calls of a thread come in the order of their begins
/// (but for outer calls of very many inner ones), work as it completes. It may move to another thread with the trace that is
/// being made ([`Following`](super::Following)).
pub trait Observer: Send {
    /// A device that work may run on.
    fn gpu(&mut self, gpu: GpuIndex, name: &str) {
        let _ = (gpu, name);
    }

    /// Whether it wants to hear of calls, which most of a trace is made of. Asked once.
    fn hears_calls(&self) -> bool {
        true
    }

    /// An API call.
    fn call(&mut self, call: &Call<'_>) {
        let _ = call;
    }

    /// Work of a device.
    fn work(&mut self, work: &DeviceWork<'_>) {
        let _ = work;
    }

    /// Samples, exactly counted, and what their ids stand for on packet sequence `sequence`. They come in several parts.
    fn samples(&mut self, sequence: u32, samples: &PcSamples) {
        let _ = (sequence, samples);
    }

    /// A range begins on a thread, within those that are open there.
    fn range_begins(&mut self, process: ProcessIndex, thread: ThreadId, name: &str, start: Nanos) {
        let _ = (process, thread, name, start);
    }

    /// The innermost range of a thread ends; there may be none.
    fn range_ends(&mut self, process: ProcessIndex, thread: ThreadId, end: Nanos) {
        let _ = (process, thread, end);
    }

    /// A range of no thread has begun and ended.
    fn range(&mut self, name: &str, start: Nanos, end: Nanos) {
        let _ = (name, start, end);
    }

    /// Records are missing.
    fn missing(&mut self, missing: &Missing) {
        let _ = missing;
    }
}

/// For those who do not want to hear.
impl Observer for () {
    fn hears_calls(&self) -> bool {
        false
    }
}
