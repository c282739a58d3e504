//! XPlane files (`.xplane.pb`), which JAX, TensorFlow and other programs with XLA's profiler write.
//!
//! A file is one message: planes (a device, the host, the programs in HLO), in these lines (a stream, a thread, the steps),
//! in these events. Names stand in tables of their plane, behind its lines. So each plane is read twice; events are read one
//! by one, whatever the size of the file. The messages are read by their field numbers.
//!
//! Streams of devices, and lines of XLA operations on devices without streams (TPU), are queues of work. An operation that
//! contains others (a loop) is a slice. All other lines are tracks of slices; functions of CUDA and HIP with a correlation id
//! are calls. Operations have the scope, the source line and the opcode that the program in HLO gives them.
//!
//! Times are picoseconds from the start of their line, and lines count from the start of the recording, whose time of day the
//! file tells, or have the time of day themselves.
//!
//! Memory: each text once, the names of one plane, and some tens of bytes for each operation of the programs in HLO.

mod details;
mod events;
mod hlo;
mod messages;
mod planes;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use super::format::split_message;
use super::tables::{ArgumentValue, ProcessHandle, ProcessRow, Tables, TextHandle};
use super::{Compression, InputFile, Report};
use crate::import::Allowance;
pub(super) use details::Details;
use gputrail_record::Nanos;
use gputrail_trace::model::Consumer;
use gputrail_trace::perfetto::reader::{FieldValue, MessageFields};
use hlo::HloOperation;
use messages::{MessageFile, Span, SpanField, SpanFields, SpanValue};

/// Longest event, description of an event or statistic that is read.
const MAX_MESSAGE: u64 = 64 << 20;
/// Times of lines below this, in ns, count from the start of the recording; others are the time of day.
const EARLIEST_DATE: i64 = 100_000_000_000_000_000;
/// The time of the start of a recording whose time of day is not told, ns.
const UNKNOWN_START: i64 = 1_000_000_000_000;
/// Bytes of the statistics of names that events repeat, for each byte of the file and once: a few bytes may name many.
const MAX_REPEATED: (u64, u64) = (256, if cfg!(test) { 1 << 16 } else { 256 << 20 });
/// The plane of facts about the recording, and its statistic of the start.
const ENVIRONMENT: &str = "Task Environment";
const START: &str = "profile_start_time";
/// The plane of the programs in HLO.
const PROGRAMS: &str = "/host:metadata";

/// Field numbers of the messages.
mod field {
    /// The whole file.
    pub mod space {
        pub const PLANES: u32 = 1;
        pub const ERRORS: u32 = 2;
        pub const WARNINGS: u32 = 3;
        pub const HOSTS: u32 = 4;
    }
    pub mod plane {
        pub const NAME: u32 = 2;
        pub const LINES: u32 = 3;
        pub const EVENTS: u32 = 4;
        pub const STATISTICS: u32 = 5;
        pub const OWN_STATISTICS: u32 = 6;
    }
    /// An entry of a table by numbers.
    pub mod entry {
        pub const KEY: u32 = 1;
        pub const VALUE: u32 = 2;
    }
    /// The metadata of events with one name, or the name of a statistic.
    pub mod description {
        pub const NAME: u32 = 2;
        pub const METADATA: u32 = 3;
        pub const DISPLAY_NAME: u32 = 4;
        pub const STATISTICS: u32 = 5;
    }
    pub mod line {
        pub const ID: u32 = 1;
        pub const NAME: u32 = 2;
        pub const START: u32 = 3;
        pub const EVENTS: u32 = 4;
        pub const DISPLAY_NAME: u32 = 11;
    }
    pub mod event {
        pub const DESCRIPTION: u32 = 1;
        pub const OFFSET: u32 = 2;
        pub const DURATION: u32 = 3;
        pub const STATISTICS: u32 = 4;
        pub const OCCURRENCES: u32 = 5;
    }
    pub mod statistic {
        pub const NAME: u32 = 1;
        pub const DOUBLE: u32 = 2;
        pub const UNSIGNED: u32 = 3;
        pub const SIGNED: u32 = 4;
        pub const TEXT: u32 = 5;
        pub const BYTES: u32 = 6;
        pub const NAMED_TEXT: u32 = 7;
    }
}

/// Whether a file that begins so has planes: its first message has a name behind an optional number. Packets of Perfetto,
/// which begin with the same byte, have no number there, and no text.
pub(super) fn is_file(head: &[u8]) -> bool {
    let [0x0a, rest @ ..] = head else {
        return false;
    };
    let Some((plane, _)) = split_message(rest) else {
        return false;
    };
    for field in MessageFields::new(plane).take(2) {
        match (field.number, field.value) {
            (1, FieldValue::Number(_)) => {}
            (field::plane::NAME, FieldValue::Bytes(name)) => {
                let is_name = |name: &str| !name.is_empty() && !name.contains(char::is_control);
                return std::str::from_utf8(name).is_ok_and(is_name);
            }
            _ => return false,
        }
    }
    false
}

/// Passes a file on.
pub(super) fn read(
    source: &InputFile,
    allowance: Allowance,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let file = match source.compression() {
        Compression::None => Arc::new(source.file().try_clone()?),
        _ => Arc::new(unpacked(source, report)?),
    };
    let mut space = Space::new(source.name(), MessageFile::new(file)?, allowance, report);
    space.read()?;
    space.pass_on(consumer)
}

/// A copy of the content of a packed file, as far as it can be read.
fn unpacked(source: &InputFile, report: &mut Report) -> io::Result<File> {
    let mut copy = tempfile::tempfile()?;
    let mut reader = source.reader()?;
    let mut buffer = vec![0; 1 << 18];
    let mut length = 0;
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(copy),
            Ok(count) => {
                copy.write_all(&buffer[..count])?;
                length += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                let found = format!("the rest cannot be read: {error}");
                report.finding(
                    source.name(),
                    Some(length),
                    found,
                    "planes of an XPlane file",
                );
                return Ok(copy);
            }
        }
    }
}

/// Names of statistics that have a meaning of their own.
struct KnownNames {
    correlation: TextHandle,
    kernel: TextHandle,
    copy: TextHandle,
    set: TextHandle,
    program: TextHandle,
    operation: TextHandle,
}

impl KnownNames {
    fn new(tables: &mut Tables) -> KnownNames {
        KnownNames {
            correlation: tables.text("correlation_id"),
            kernel: tables.text("kernel_details"),
            copy: tables.text("memcpy_details"),
            set: tables.text("memset_details"),
            program: tables.text("program_id"),
            operation: tables.text("hlo_op"),
        }
    }
}

/// A file that is being read.
struct Space<'r> {
    name: &'r Path,
    file: MessageFile,
    report: &'r mut Report,
    tables: Tables,
    known: KnownNames,
    /// The start of the recording, ns, and whether the file tells its time of day.
    start: i64,
    is_dated: bool,
    /// The earliest time of day of a line.
    first_date: Option<i64>,
    /// Whether damage at the end of the file has been reported.
    is_cut: bool,
    hosts: Vec<String>,
    /// Operations of the programs, by the number of the program and the name of the operation.
    operations: HashMap<(u64, TextHandle), HloOperation>,
    process: ProcessHandle,
    /// How often a name of a track has been used.
    tracks: HashMap<String, u32>,
    /// Events whose times were rounded.
    rounded: u64,
    /// Bytes of statistics that events may still repeat, and the number of statistics beyond them.
    repeatable: u64,
    not_repeated: u64,
    buffer: Vec<u8>,
}

impl<'r> Space<'r> {
    fn new(
        name: &'r Path,
        file: MessageFile,
        allowance: Allowance,
        report: &'r mut Report,
    ) -> Space<'r> {
        let mut tables = Tables::new(allowance);
        let (each, once) = MAX_REPEATED;
        let repeatable = file.length.saturating_mul(each).saturating_add(once);
        Space {
            name,
            file,
            report,
            known: KnownNames::new(&mut tables),
            process: tables.process(ProcessRow {
                pid: 1,
                name: "process".to_owned(),
                ..ProcessRow::default()
            }),
            tables,
            start: UNKNOWN_START,
            is_dated: false,
            first_date: None,
            is_cut: false,
            hosts: Vec::new(),
            operations: HashMap::new(),
            tracks: HashMap::new(),
            rounded: 0,
            repeatable,
            not_repeated: 0,
            buffer: Vec::new(),
        }
    }

    /// The whole file.
    fn whole(&self) -> Span {
        Span {
            from: 0,
            to: self.file.length,
        }
    }

    /// The next field of a message. Damage is reported.
    fn next(&mut self, fields: &mut SpanFields) -> io::Result<Option<SpanField>> {
        let (field, damage) = fields.next(&mut self.file)?;
        let ends_file = fields.end() == self.file.length;
        // All messages that reach to the end of a file that is cut are.
        if let Some(damage) = damage.filter(|_| !(ends_file && self.is_cut)) {
            self.is_cut |= ends_file;
            let expected = "a field of a message of an XPlane file";
            self.report
                .finding(self.name, Some(damage.at), damage.found, expected);
        }
        Ok(field)
    }

    /// The next field of a message that has been read before, and its damage with it.
    fn next_again(&mut self, fields: &mut SpanFields) -> io::Result<Option<SpanField>> {
        Ok(fields.next(&mut self.file)?.0)
    }

    /// The bytes of a small message, in place of those in `buffer`; false if it is too large or cut, which is reported.
    fn message(&mut self, span: Span, buffer: &mut Vec<u8>) -> io::Result<bool> {
        buffer.clear();
        if self.is_cut && span.to == self.file.length {
            return Ok(false);
        }
        if span.length() > MAX_MESSAGE {
            let found = format!("{} bytes of an event or of a name", span.length());
            let expected = "up to 64 MiB";
            self.report
                .finding(self.name, Some(span.from), found, expected);
            return Ok(false);
        }
        buffer.extend_from_slice(self.file.bytes(span)?);
        Ok(true)
    }

    /// The text at a place, with U+FFFD in place of bytes that are not UTF-8.
    fn text_at(&mut self, span: Span) -> io::Result<String> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let read = self.message(span, &mut buffer);
        let text = String::from_utf8_lossy(&buffer).into_owned();
        self.buffer = buffer;
        read.map(|_| text)
    }

    fn read(&mut self) -> io::Result<()> {
        self.overview()?;
        let mut fields = SpanFields::new(self.whole());
        while let Some(field) = self.next_again(&mut fields)? {
            if let (field::space::PLANES, SpanValue::Bytes(plane)) = (field.number, field.value) {
                self.plane(plane)?;
            }
        }
        Ok(())
    }

    /// The context of events of any plane: the start of the recording, and the programs in HLO.
    fn overview(&mut self) -> io::Result<()> {
        let mut fields = SpanFields::new(self.whole());
        while let Some(field) = self.next(&mut fields)? {
            let SpanValue::Bytes(span) = field.value else {
                continue;
            };
            match field.number {
                field::space::PLANES => match &self.plane_name(span)?[..] {
                    ENVIRONMENT => self.environment(span)?,
                    PROGRAMS => self.programs(span)?,
                    _ => {}
                },
                field::space::HOSTS => {
                    let host = self.text_at(span)?;
                    self.hosts
                        .extend(Some(host).filter(|host| !host.is_empty()));
                }
                field::space::ERRORS | field::space::WARNINGS => {
                    let said = self.text_at(span)?;
                    let reason = format!("the profiler said: {said}");
                    self.report.remark(self.name, reason, Some(span.from));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The name of a plane.
    fn plane_name(&mut self, plane: Span) -> io::Result<String> {
        let mut fields = SpanFields::new(plane);
        while let Some(field) = self.next_again(&mut fields)? {
            if let (field::plane::NAME, SpanValue::Bytes(name)) = (field.number, field.value) {
                return self.text_at(name);
            }
        }
        Ok(String::new())
    }

    /// Facts about the recording.
    fn environment(&mut self, plane: Span) -> io::Result<()> {
        let details = self.describe(plane)?;
        for (name, value) in details.own {
            let text = match value {
                ArgumentValue::Uint(value) => value.to_string(),
                ArgumentValue::Int(value) => value.to_string(),
                ArgumentValue::Double(value) => value.to_string(),
                ArgumentValue::Text(text) => self.tables.texts.get(text).to_owned(),
                ArgumentValue::Pointer(value) => format!("{value:#x}"),
            };
            let name = self.tables.texts.get(name).to_owned();
            if name == START
                && let Some(start) = text.parse().ok().filter(|start| *start > EARLIEST_DATE)
            {
                self.start = start;
                self.is_dated = true;
            }
            self.tables.attributes.push((name, text));
        }
        Ok(())
    }

    /// Passes on what was read.
    fn pass_on(mut self, consumer: &mut dyn Consumer) -> io::Result<()> {
        let date = match self.is_dated {
            true => Some(self.start),
            false => self.first_date,
        };
        let clock = match date {
            Some(date) => {
                let clocks = &mut self.tables.header.clocks;
                (clocks.boottime, clocks.realtime) = (Nanos(date as u64), Nanos(date as u64));
                "time of day (UTC)"
            }
            None => "from 1000 s before the start of the recording, whose time of day is not told",
        };
        let facts = [("format", "XPlane (XLA's profiler)"), ("clock", clock)];
        let facts = facts.map(|(name, value)| (name.to_owned(), value.to_owned()));
        self.tables.attributes.extend(facts);
        if let Some(host) = self.hosts.first() {
            self.tables.header.machine.host = host.clone();
            self.tables.processes[self.process.0 as usize].name = format!("process on {host}");
            if self.hosts.len() > 1 {
                let hosts = ("hosts".to_owned(), self.hosts.join(", "));
                self.tables.attributes.push(hosts);
            }
        }
        let reason = "times finer than 1 ns, rounded";
        self.report.remarks(self.name, reason, self.rounded);
        let reason = "statistics that events have by their names, beyond 256 bytes for each byte of the file";
        self.report
            .unrepresented_many(self.name, reason, self.not_repeated);
        self.tables.pass_on(self.name, consumer, self.report)
    }
}
