//! Losses, and notes about the recording.

use super::{Argument, ProcessIndex, TrackIndex};
use crate::record::{Kind, Nanos, NoteKind, ThreadId};

/// Records that are missing.
#[derive(Copy, Clone, Debug)]
pub struct Loss {
    /// The process; none if it is not known.
    pub process: Option<ProcessIndex>,
    /// The thread that lost them; none if it never had a lane.
    pub thread: ThreadId,
    /// The thread's track, if it has one.
    pub track: Option<TrackIndex>,
    /// Their kind; 0 if mixed.
    pub kind: Kind,
    /// How many they are.
    pub count: u64,
    /// The first was dropped no earlier than this.
    pub first: Nanos,
    /// The last was dropped no later than this.
    pub last: Nanos,
    /// Where the loss is shown.
    pub time: Nanos,
}

/// A fact about the recording of a process.
#[derive(Copy, Clone, Debug)]
pub struct Note<'a> {
    /// The process.
    pub process: ProcessIndex,
    /// The time that it is about.
    pub time: Nanos,
    /// Its kind, in words.
    pub name: &'a str,
    /// More about it.
    pub arguments: &'a [Argument<'a>],
}

impl Note<'_> {
    /// Name of a note about a part of a capture that cannot be read.
    pub const NOT_READABLE: &'static str = "not readable";

    /// Whether an unknown number of records is missing.
    pub fn reports_loss(&self) -> bool {
        self.name == Note::NOT_READABLE || NoteKind::ENDED_EARLY.name() == Some(self.name)
    }
}
