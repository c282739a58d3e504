//! Notes about the recording of a process: its configuration, observations, losses, and unreadable parts.

use std::io;

use super::StreamOutput;
use super::off::OffTimes;
use super::process::ProcessStream;
use crate::model::{EventArgument, Loss, Note, Value};
use gputrail_buffer::Policy;
use gputrail_buffer::clock::TickSource;
use gputrail_capture::CaptureFinding;
use gputrail_capture::description::is_selective;
use gputrail_record::{self as record, Kind, Nanos, NoteKind, StringId, ThreadId, Ticks, count};

/// Notes about what is missing that are kept, at most.
const MAX_MISSING: usize = 64;

impl ProcessStream<'_> {
    /// Passes on the configuration of the recording.
    pub(super) fn introduce(&self, output: &mut StreamOutput<'_>) -> io::Result<()> {
        let clocks: Vec<String> = self.devices.clocks().map(|(_, _, clock)| clock).collect();
        let clocks = clocks.join("; ");
        let metadata = &self.metadata;
        let process = metadata.process;
        let text = |id: Option<StringId>| id.map_or("", |id| metadata.string(id));
        let facts = [
            ("version", text(process.map(|process| process.version))),
            ("host", text(process.map(|process| process.host))),
            ("command", text(process.map(|process| process.command))),
            (
                "configuration",
                text(process.map(|process| process.configuration)),
            ),
            ("clock", &clocks),
        ];
        let arguments: Vec<EventArgument<'_>> = facts
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(name, text)| EventArgument {
                name,
                value: Value::Text(text),
            })
            .collect();
        output.stream.consumer.note(&Note {
            process: self.index,
            time: self.began,
            name: "recording",
            arguments: &arguments,
        })
    }

    /// Passes on a note that was recorded.
    pub(super) fn note(
        &self,
        output: &mut StreamOutput<'_>,
        note: &record::Note,
    ) -> io::Result<()> {
        let time = match note.time {
            Ticks(0) => self.began,
            time => self.time_or_latest(self.host.to_boottime(time)),
        };
        let name = note.what.name().unwrap_or("note");
        let text = self.metadata.string(note.text);
        if note.what == NoteKind::MISSING && output.report.missing.len() < MAX_MISSING {
            output.report.missing.push(text.to_owned());
        }
        self.detail(output, time, name, text)
    }

    /// Passes on how many pieces of work were announced by their calls and have no records.
    pub(super) fn undelivered(&self, output: &mut StreamOutput<'_>) -> io::Result<()> {
        let number = self.announced.outstanding();
        if number == 0 || is_selective(self.configuration()) {
            return Ok(());
        }
        let text = format!(
            "no record of {} that calls enqueued: the runtime did not deliver it before the end, or it was lost",
            count(number, "operation")
        );
        let time = self.cut().unwrap_or_else(|| self.end());
        self.detail(
            output,
            time,
            NoteKind::MISSING.name().unwrap_or_default(),
            &text,
        )?;
        output.report.missing.push(text);
        Ok(())
    }

    /// Takes a note about switching the recording; ignores others. Passes on the span for which it was off.
    pub fn switched(
        &mut self,
        output: &mut StreamOutput<'_>,
        note: &record::Note,
    ) -> io::Result<()> {
        if !OffTimes::concern(note) {
            return Ok(());
        }
        let time = self.time_or_latest(self.host.to_boottime(note.time));
        match self.off.add(note, time) {
            Some((start, reason)) => {
                let reason = self.metadata.string(reason);
                let span = (start, Some(time));
                self.off
                    .pass_on(&mut output.stream, self.index, span, reason)
            }
            None => Ok(()),
        }
    }

    /// The recording stays off until its end.
    pub(super) fn remain_off(
        &mut self,
        output: &mut StreamOutput<'_>,
        end: Nanos,
    ) -> io::Result<()> {
        match self.off.last() {
            Some((start, reason)) => {
                let reason = self.metadata.string(reason);
                let span = (start, Some(end));
                self.off
                    .pass_on(&mut output.stream, self.index, span, reason)
            }
            None => Ok(()),
        }
    }

    /// Passes on that nothing says how the recording ended ([`Reader::is_open`](gputrail_capture::Reader::is_open)), from the
    /// time on up to which the records are complete: that of the last reading of the clocks, which follows all records
    /// that were committed before it. Under [`Policy::Overwrite`] and in a simulation records do not come before the end.
    pub(super) fn open_end(
        &self,
        output: &mut StreamOutput<'_>,
        ticks: TickSource,
    ) -> io::Result<()> {
        let comes_at_end = ticks == TickSource::Virtual
            || self
                .configuration()
                .contains(&format!(", {} policy", Policy::Overwrite));
        let readings = self.metadata.snapshots.iter();
        let last = readings.map(|reading| reading.boottime).max();
        let time = last.filter(|_| !comes_at_end).unwrap_or(self.began);
        let text = "the recording was not ended: gputrail was killed (or the process, where the library records alone), or it \
                    still records; what had not been written is missing";
        output.report.missing.push(text.to_owned());
        let name = NoteKind::ENDED_EARLY.name().unwrap_or_default();
        self.detail(output, time, name, text)
    }

    /// How the process was recorded.
    fn configuration(&self) -> &str {
        let process = self.metadata.process;
        process.map_or("", |process| self.metadata.string(process.configuration))
    }

    /// Passes on a part that could not be read.
    pub fn unreadable(
        &self,
        output: &mut StreamOutput<'_>,
        finding: &CaptureFinding,
    ) -> io::Result<()> {
        self.detail(
            output,
            self.latest,
            Note::NOT_READABLE,
            &finding.to_string(),
        )
    }

    pub(super) fn detail(
        &self,
        output: &mut StreamOutput<'_>,
        time: Nanos,
        name: &str,
        text: &str,
    ) -> io::Result<()> {
        output.stream.consumer.note(&Note {
            process: self.index,
            time,
            name,
            arguments: &[EventArgument {
                name: "detail",
                value: Value::Text(text),
            }],
        })
    }

    /// The time at which the recording was cut, as far as calls and notes show; `None` if it was not.
    pub(super) fn cut(&self) -> Option<Nanos> {
        let notes = self.metadata.notes.iter();
        let cuts = notes.filter(|note| note.what.is_of_end());
        cuts.map(|note| self.host.to_boottime(note.time).max(self.latest))
            .max()
    }

    /// When a recording that was not cut ended.
    pub(super) fn end(&self) -> Nanos {
        let snapshots = self.metadata.snapshots.iter();
        let last = snapshots.map(|snapshot| snapshot.boottime).max();
        self.latest.max(last.unwrap_or_default())
    }

    /// Passes on that records are missing, on the thread that lost them.
    pub(super) fn loss(
        &mut self,
        output: &mut StreamOutput<'_>,
        record: &record::Loss,
    ) -> io::Result<()> {
        let (first, last) = (
            self.host.to_boottime(record.first),
            self.host.to_boottime(record.last),
        );
        let time = [first, last].into_iter().find(|time| time.is_some());
        output.report.lost = output.report.lost.saturating_add(record.count);
        // A runtime does not say of which kind they were.
        let is_of_runtime = record.lost == Kind::default();
        let of_runtime = if is_of_runtime { record.count } else { 0 };
        output.report.lost_by_runtime = output.report.lost_by_runtime.saturating_add(of_runtime);
        self.may_lack_completions |= is_of_runtime || record.lost == Kind::COMPLETION;
        let track = match record.thread {
            ThreadId::NONE => None,
            thread => Some(self.thread(output, thread)?.track),
        };
        output.stream.consumer.loss(&Loss {
            process: Some(self.index),
            thread: record.thread,
            track,
            kind: record.lost,
            count: record.count,
            first,
            last,
            time: self.time_or_latest(time.unwrap_or_default()),
        })
    }
}
