//! Processes, and tracks of slices, counters and samples.

use super::{CounterUnit, ProcessIndex, TrackIndex};
use gputrail_record::{ProcessId, ThreadId};

/// A process.
#[derive(Copy, Clone, Debug)]
pub struct Process<'a> {
    /// Its id.
    pub pid: ProcessId,
    /// Its name.
    pub name: &'a str,
    /// Its rank in a parallel program, as text ("rank 3"); may be empty.
    pub rank: &'a str,
    /// Its command line.
    pub command: &'a [&'a str],
    /// Its place among the processes, lowest first, where the recording gives one.
    pub order: Option<i32>,
}

/// The parent of a track.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Parent {
    /// The whole trace.
    Trace,
    /// A process.
    Process(ProcessIndex),
    /// Another track.
    Track(TrackIndex),
}

/// The content of a track.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TrackKind {
    /// The calls of a thread.
    Thread(ProcessIndex, ThreadId),
    /// The pushed ranges and the markers of a thread.
    ThreadRanges(ProcessIndex, ThreadId),
    /// Ranges of a process that belong to no thread and do not overlap each other.
    Ranges,
    /// Other nesting slices.
    Slices,
    /// Values of a counter.
    Counter(CounterUnit),
    /// Samples with stacks.
    Samples,
}

/// A track.
#[derive(Copy, Clone, Debug)]
pub struct Track<'a> {
    /// Its parent.
    pub parent: Parent,
    /// Its name; may be empty for threads.
    pub name: &'a str,
    /// Its content.
    pub kind: TrackKind,
    /// Its place among the tracks beside it, lowest first, where the recording gives one.
    pub order: Option<i32>,
}
