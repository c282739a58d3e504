//! Losses of records, and notes about the recording.

use super::{EventArgument, ProcessIndex, TrackIndex, Value};
use gputrail_record::{Kind, Nanos, NoteKind, ThreadId};

/// A loss of records.
#[derive(Copy, Clone, Debug)]
pub struct Loss {
    /// The process; `None` if unknown.
    pub process: Option<ProcessIndex>,
    /// The thread that lost them; none if the thread had no lane.
    pub thread: ThreadId,
    /// The thread's track, if it has one.
    pub track: Option<TrackIndex>,
    /// Their kind; 0 for several kinds.
    pub kind: Kind,
    /// The number of lost records.
    pub count: u64,
    /// A time before the first loss.
    pub first: Nanos,
    /// A time after the last loss.
    pub last: Nanos,
    /// The time at which the loss is shown.
    pub time: Nanos,
}

/// A fact about the recording of a process.
#[derive(Copy, Clone, Debug)]
pub struct Note<'a> {
    /// The process.
    pub process: ProcessIndex,
    /// The time of the fact.
    pub time: Nanos,
    /// Its kind, in words.
    pub name: &'a str,
    /// Further values.
    pub arguments: &'a [EventArgument<'a>],
}

impl Note<'_> {
    /// Name of a note about a part of a capture that cannot be read.
    pub const NOT_READABLE: &'static str = "not readable";
    /// Name of a note about ranges of markers whose begins and ends do not fit.
    pub const UNBALANCED_MARKERS: &'static str = "unbalanced markers";

    /// The reason why records are missing, or why the recording ended early, if the note says one.
    pub fn missing(&self) -> Option<&str> {
        let mut texts = self
            .arguments
            .iter()
            .filter_map(|argument| match argument.value {
                Value::Text(text) => Some(text),
                _ => None,
            });
        let is_missing = Note::of_missing(self.name);
        is_missing.then(|| texts.next()).flatten()
    }

    fn of_missing(name: &str) -> bool {
        let by_kind = [NoteKind::ENDED_EARLY, NoteKind::MISSING];
        by_kind.iter().any(|kind| kind.name() == Some(name))
    }

    /// Whether an unknown number of records is missing.
    pub fn reports_loss(&self) -> bool {
        self.name == Note::NOT_READABLE || Note::of_missing(self.name)
    }
}
