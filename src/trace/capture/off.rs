//! The spans of time in which a process was not recorded, because its recording was switched off.

use std::io;

use crate::model::{
    EventArgument, Parent, ProcessIndex, Slice, Stream, Track, TrackIndex, TrackKind, Value,
    category,
};
use gputrail_record::{CorrelationId, Nanos, Note, NoteKind, StringId};

/// Turns notes about switching into slices of one track of the process.
#[derive(Debug, Default)]
pub(super) struct OffTimes {
    track: Option<TrackIndex>,
    /// Switched off from outside.
    is_stopped: bool,
    /// Switched off by the process.
    is_paused: bool,
    /// When the present span began, and its reason.
    since: Option<(Nanos, StringId)>,
}

impl OffTimes {
    /// Whether the note is about switching.
    pub fn concern(note: &Note) -> bool {
        matches!(
            note.what,
            NoteKind::STOPPED | NoteKind::STARTED | NoteKind::PAUSED | NoteKind::RESUMED
        )
    }

    /// Adds a note of `time`. Returns a span that has ended with it: its begin and reason.
    pub fn add(&mut self, note: &Note, time: Nanos) -> Option<(Nanos, StringId)> {
        match note.what {
            NoteKind::STOPPED => self.is_stopped = true,
            NoteKind::STARTED => self.is_stopped = false,
            NoteKind::PAUSED => self.is_paused = true,
            NoteKind::RESUMED => self.is_paused = false,
            _ => return None,
        }
        if self.is_stopped || self.is_paused {
            self.since.get_or_insert((time, note.text));
            None
        } else {
            self.since.take()
        }
    }

    /// The span that has not ended.
    pub fn last(&mut self) -> Option<(Nanos, StringId)> {
        self.since.take()
    }

    /// Passes on a span.
    pub fn pass_on(
        &mut self,
        stream: &mut Stream<'_>,
        process: ProcessIndex,
        (start, end): (Nanos, Option<Nanos>),
        reason: &str,
    ) -> io::Result<()> {
        let track = match self.track {
            Some(track) => track,
            None => *self.track.insert(stream.new_track(&Track {
                parent: Parent::Process(process),
                name: "recording",
                kind: TrackKind::Slices,
                order: None,
            })?),
        };
        stream.consumer.slice(&Slice {
            track,
            name: Slice::OFF,
            category: category::RECORDING,
            start,
            end: end.map(|end| end.max(start)),
            open: false,
            correlation: CorrelationId::NONE,
            arguments: &[EventArgument {
                name: "reason",
                value: Value::Text(reason),
            }],
            flows: &[],
        })
    }
}
