//! What the trace says of the recording itself: how it was made, what was noticed, lost, and not readable.

use std::io::{self, Write};

use super::ProcessTrace;
use crate::capture::Finding;
use crate::record::{Loss, Nanos, Note, NoteKind, StringId, ThreadId};
use crate::trace::perfetto::convert::Making;
use crate::trace::perfetto::events::{Annotation, Event, Value};
use crate::trace::perfetto::functions::OwnLabel;
use crate::trace::perfetto::observer::Missing;
use crate::trace::perfetto::writer::TraceWriter;

impl ProcessTrace<'_> {
    /// Says on the process's own track how it was recorded, where every version shows it.
    pub(super) fn introduce<W: Write>(&self, writer: &mut TraceWriter<W>) -> io::Result<()> {
        let clocks: Vec<String> = self
            .devices
            .clocks()
            .map(|(_, gpu, clock)| format!("device {}: {clock}", gpu.0))
            .collect();
        let clocks = clocks.join("; ");
        let metadata = &self.metadata;
        let process = metadata.process;
        let text = |id: Option<StringId>| id.map_or("", |id| metadata.string(id));
        let annotations = [
            (
                self.words.version,
                text(process.map(|process| process.version)),
            ),
            (self.words.host, text(process.map(|process| process.host))),
            (
                self.words.command,
                text(process.map(|process| process.command)),
            ),
            (
                self.words.configuration,
                text(process.map(|process| process.configuration)),
            ),
            (self.words.clock, &clocks),
        ];
        let annotations: Vec<Annotation<'_>> = annotations
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(name, text)| Annotation {
                name,
                value: Value::Text(text),
            })
            .collect();
        let label = OwnLabel::Name(self.words.recording);
        writer.instant(
            self.notes,
            self.began.0,
            &self.own_event(&label, &annotations),
        )
    }

    /// Says what was noticed while recording.
    pub(super) fn note<W: Write>(
        &self,
        writer: &mut TraceWriter<W>,
        note: &Note,
    ) -> io::Result<()> {
        let label = OwnLabel::new(writer, note.what.name().unwrap_or("note"));
        let text = Value::Text(self.metadata.string(note.text));
        let annotations = [Annotation {
            name: self.words.detail,
            value: text,
        }];
        let time = self.time_or_latest(self.host.to_boottime(note.time));
        writer.instant(self.notes, time.0, &self.own_event(&label, &annotations))
    }

    /// When the recording was cut, as far as calls and notes tell; none if it was not.
    pub(super) fn cut(&self) -> Option<Nanos> {
        let notes = self.metadata.notes.iter();
        let cuts =
            notes.filter(|note| [NoteKind::DIED, NoteKind::ENDED_EARLY].contains(&note.what));
        cuts.map(|note| self.host.to_boottime(note.time).max(self.latest))
            .max()
    }

    /// An event that is ours, not the program's.
    pub(super) fn own_event<'e>(
        &self,
        label: &'e OwnLabel,
        annotations: &'e [Annotation<'e>],
    ) -> Event<'e> {
        Event {
            label: label.get(),
            category: self.words.gputrail,
            correlation: None,
            submitted: &[],
            waited: &[],
            api: None,
            annotations,
        }
    }

    /// Says what could not be read.
    pub fn unreadable<W: Write>(
        &self,
        writer: &mut TraceWriter<W>,
        finding: &Finding,
    ) -> io::Result<()> {
        let text = finding.to_string();
        let annotations = [Annotation {
            name: self.words.detail,
            value: Value::Text(&text),
        }];
        let label = OwnLabel::Name(self.words.not_readable);
        let event = self.own_event(&label, &annotations);
        writer.instant(self.notes, self.latest.0, &event)
    }

    /// Says that records are missing, on the lane that lost them.
    pub(super) fn loss(&mut self, making: &mut Making<'_>, record: &Loss) -> io::Result<()> {
        let missing = Missing {
            process: self.index,
            thread: record.thread,
            kind: record.lost,
            count: record.count,
            first: self.host.to_boottime(record.first),
            last: self.host.to_boottime(record.last),
        };
        making.report.lost = making.report.lost.saturating_add(record.count);
        making.writer.lost(record.count);
        making.observer.missing(&missing);
        let track = match record.thread {
            ThreadId::NONE => self.notes,
            thread => self.thread(&mut making.writer, thread)?.track,
        };
        let kind = record.lost.name().unwrap_or("mixed");
        let annotations = [
            (self.words.kind, Value::Text(kind)),
            (self.words.count, Value::Uint(record.count)),
            (self.words.from, Value::Uint(missing.first.0)),
            (self.words.to, Value::Uint(missing.last.0)),
        ];
        let annotations = annotations.map(|(name, value)| Annotation { name, value });
        let label = OwnLabel::Name(self.words.records_lost);
        let time = [missing.first, missing.last]
            .into_iter()
            .find(|time| time.is_some());
        let time = self.time_or_latest(time.unwrap_or_default());
        making
            .writer
            .instant(track, time.0, &self.own_event(&label, &annotations))
    }
}
