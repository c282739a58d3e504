//! rocprof's trace events, `results.json`: the rows of its database with whole microseconds, and with exact times among the
//! arguments.
//!
//! Processes stand for kinds of records ("CPU HIP API", "COPY", "GPU0"), and the ids of calls are missing: arrows lead from the
//! middle of a call to the begin of its operation, both in whole microseconds. The file is read twice, first for the arrows.
//!
//! Memory: some tens of bytes for each arrow.

use std::collections::HashMap;
use std::io;

use serde_json::value::RawValue;

use super::records::{CALL, KERNEL, MARKER, OPERATION, OperationTable, Records};
use crate::import::chrome::arguments::each;
use crate::import::chrome::event::{ChromeEvent, text};
use crate::import::chrome::scan::{ScanVisitor, scan};
use crate::import::row::{Damage, Row, RowField};
use crate::import::{Allowance, InputFile, Report};
use gputrail_record::Domain;
use gputrail_trace::model::Consumer;

/// Parts of the names of functions that submit operations, or wait for them.
const SUBMITTING: [&str; 8] = [
    "Launch",
    "emcpy",
    "emset",
    "WaitEvent",
    "Synchronize",
    "WaitValue",
    "WriteValue",
    "async_copy",
];

/// Whether a file that begins so has rocprof's trace events: their array begins with an empty object, and events have times in
/// nanoseconds among their arguments.
pub(in crate::import) fn is_events(head: &[u8]) -> bool {
    let has = |part: &[u8]| head.windows(part.len()).any(|bytes| bytes == part);
    let letters = head.iter().filter(|byte| !byte.is_ascii_whitespace());
    letters.take(18).eq(b"{\"traceEvents\":[{}") && has(b"\"BeginNs\":")
}

/// Passes a file on.
pub(in crate::import) fn read(
    source: &InputFile,
    allowance: Allowance,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let mut arrows = Arrows::default();
    scan(source.reader()?, &mut arrows)?;
    let mut records = Records::new(source.name(), allowance, report);
    records.set_format("rocprof JSON");
    let mut reader = EventReader {
        records,
        sections: HashMap::new(),
        sources: arrows.sources,
        targets: arrows.targets,
        ties: 0,
        has_operations: arrows.has_operations,
    };
    let is_whole = scan(source.reader()?, &mut reader)?;
    let EventReader {
        mut records, ties, ..
    } = reader;
    records.add_kept_back();
    let Records { tables, report, .. } = records;
    let loose = arrows.ends.saturating_sub(ties);
    report.arrows += ties;
    report.loose_arrows += loose;
    if !is_whole && report.is_sound() {
        report.finding(
            source.name(),
            None,
            "the end of the file",
            "the end of the events",
        );
    }
    tables.pass_on(source.name(), consumer, report)
}

/// The place of an end of an arrow: process, thread and microseconds, as the file has them.
type ArrowEnd = (i64, i64, i64);

/// The arrows of a file.
#[derive(Default)]
struct Arrows {
    /// The number of the arrow from a place; the first one, if there are several.
    sources: HashMap<ArrowEnd, u64>,
    /// The number of the arrow to a place.
    targets: HashMap<ArrowEnd, u64>,
    /// Begins of arrows, by their ids: those with the same id follow each other.
    begun: HashMap<i64, u64>,
    ends: u64,
    /// Whether the file has operations beside the table of kernels.
    has_operations: bool,
}

fn number(raw: Option<&str>) -> Option<i64> {
    text(raw?).trim().parse().ok()
}

impl ScanVisitor for Arrows {
    fn event(&mut self, _: u64, event: &ChromeEvent<'_>) -> io::Result<()> {
        let phase = event.ph.map(text).unwrap_or_default();
        if phase == "X" && !self.has_operations {
            self.has_operations = event.args.is_some_and(|args| args.contains("\"dev-id\""));
        }
        if phase != "s" && phase != "t" && phase != "f" {
            return Ok(());
        }
        self.ends += 1;
        let id = number(event.id);
        let place = (number(event.pid), number(event.tid), number(event.ts));
        let (Some(id), (Some(process), Some(thread), Some(time))) = (id, place) else {
            return Ok(());
        };
        let place = (process, thread, time);
        if phase == "s" {
            let next = self.ends;
            let arrow = *self.sources.entry(place).or_insert(next);
            self.begun.insert(id, arrow);
        } else if let Some(arrow) = self.begun.remove(&id) {
            self.targets.entry(place).or_insert(arrow);
        }
        Ok(())
    }

    fn field(&mut self, _: &str, _: &str) {}

    fn long_field(&mut self, _: &str, _: u64) {}

    fn damage(&mut self, _: u64, _: String, _: &'static str) {}
}

/// The kind of records that a process of the file stands for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Section {
    Hip,
    Hsa,
    Copies,
    Device,
    Markers,
    Unknown,
}

impl Section {
    /// The kind of a process with this name; names of merged files have more at either end.
    fn of(name: &str) -> Section {
        match name {
            _ if name.contains("HIP API") => Section::Hip,
            _ if name.contains("HSA API") => Section::Hsa,
            _ if name.contains("Markers and Ranges") => Section::Markers,
            _ if name.contains("COPY") => Section::Copies,
            _ if name.contains("GPU") => Section::Device,
            _ => Section::Unknown,
        }
    }
}

/// Passes events to the records.
struct EventReader<'r> {
    records: Records<'r>,
    sections: HashMap<i64, Section>,
    sources: HashMap<ArrowEnd, u64>,
    targets: HashMap<ArrowEnd, u64>,
    /// Ends of arrows whose call or operation was found.
    ties: u64,
    has_operations: bool,
}

/// The arguments of an event as a row of some columns.
struct EventRow<'e> {
    columns: &'static [&'static str],
    values: Vec<(String, std::borrow::Cow<'e, str>)>,
    /// The id of the call, which the file has as an arrow.
    index: u64,
    name: &'e str,
    offset: u64,
}

impl EventRow<'_> {
    fn get(&self, column: &str) -> Option<&str> {
        let found = self.values.iter().find(|(name, _)| name == column);
        found.map(|(_, value)| &**value)
    }
}

impl Row for EventRow<'_> {
    fn field(&self, place: usize) -> RowField<'_> {
        let mut names = self.columns[place].split('|');
        let value = names.find_map(|name| self.get(name));
        match (self.columns[place], value) {
            // Kernels are numbered by their records.
            ("Index", None) if self.columns != KERNEL => RowField::Int(self.index as i64),
            ("Name" | "KernelName", None) => RowField::Text(self.name),
            (_, Some(value)) => RowField::Text(value),
            (_, None) => RowField::Null,
        }
    }

    fn column(&self, place: usize) -> &str {
        self.columns[place]
    }

    fn position(&self) -> (Option<u64>, String) {
        (Some(self.offset), format!("an event {:?}", self.name))
    }
}

impl EventReader<'_> {
    fn complete(&mut self, offset: u64, event: &ChromeEvent<'_>) -> Result<(), Damage> {
        let mut values = Vec::new();
        let args = event.args.unwrap_or("");
        each(args, |name, value: &RawValue| {
            values.push((name.to_owned(), text(value.get())));
        });
        let name = event.name.map(text).unwrap_or_default();
        let process = number(event.pid).unwrap_or(i64::MIN);
        let section = self.sections.get(&process).copied();
        let mut row = EventRow {
            columns: CALL,
            values,
            index: 0,
            name: &name,
            offset,
        };
        let begin = number(event.ts).unwrap_or(i64::MIN);
        let thread = number(event.tid).unwrap_or(i64::MIN);
        match section.unwrap_or(Section::Unknown) {
            section @ (Section::Hip | Section::Hsa) => {
                let api = match section {
                    Section::Hip => Domain::HIP,
                    _ => Domain::HSA,
                };
                if SUBMITTING.iter().any(|part| name.contains(part))
                    || row.get("args").is_some_and(|args| args.contains("kernel("))
                {
                    let duration = self.duration(&row);
                    let middle = (process, thread, begin.saturating_add(duration / 2));
                    if let Some(arrow) = self.sources.remove(&middle) {
                        row.index = arrow;
                        self.ties += 1;
                    }
                }
                self.records.add_call(&row, api)
            }
            Section::Markers => {
                row.columns = MARKER;
                self.records.add_marker(&row)
            }
            Section::Device if row.get("KernelName").is_some() => {
                row.columns = KERNEL;
                let is_known = |name: &str| {
                    let mut columns = KERNEL.iter().flat_map(|names| names.split('|'));
                    columns.any(|column| column == name)
                };
                let rest = row.values.iter().filter(|(name, _)| !is_known(name));
                let counters: Vec<_> = rest
                    .map(|(name, value)| (&name[..], RowField::Text(value)))
                    .collect();
                self.records
                    .add_kernel(&row, &counters, self.has_operations)
            }
            section @ (Section::Device | Section::Copies) => {
                row.columns = OPERATION;
                if let Some(arrow) = self.targets.remove(&(process, thread, begin)) {
                    row.index = arrow;
                    self.ties += 1;
                }
                let table = match section {
                    Section::Device => OperationTable::Kernels,
                    _ if row.get("dev-id").is_some() => OperationTable::HipCopies,
                    _ => OperationTable::HsaCopies,
                };
                self.records.add_operation(&row, table)
            }
            Section::Unknown => {
                let reason = "event of a process whose name does not tell what it is";
                let file = self.records.file;
                self.records
                    .report
                    .unrepresented(file, reason, Some(offset));
                Ok(())
            }
        }
    }

    /// The whole microseconds of a call, as the arrows have them.
    fn duration(&self, row: &EventRow<'_>) -> i64 {
        let [begin, end] = ["BeginNs", "EndNs"].map(|name| row.get(name));
        let [begin, end] = [begin, end].map(|time| time.and_then(|time| time.parse().ok()));
        let times: Option<(i64, i64)> = begin.zip(end);
        times.map_or(0, |(begin, end)| end.saturating_sub(begin) / 1000)
    }
}

impl ScanVisitor for EventReader<'_> {
    fn event(&mut self, offset: u64, event: &ChromeEvent<'_>) -> io::Result<()> {
        let phase = event.ph.map(text).unwrap_or_default();
        let file = self.records.file;
        match &*phase {
            "X" => {
                if let Err(damage) = self.complete(offset, event) {
                    self.records.report.damage(file, damage);
                }
            }
            "M" => {
                let mut name = String::new();
                each(event.args.unwrap_or(""), |key, value: &RawValue| {
                    if key == "name" {
                        name = text(value.get()).into_owned();
                    }
                });
                if let Some(process) = number(event.pid) {
                    self.sections.insert(process, Section::of(&name));
                }
            }
            // The first reading took the arrows. The first event is an empty object.
            "s" | "t" | "f" => {}
            "" if event.name.is_none() && event.args.is_none() => {}
            phase => {
                let reason = format!("event of phase {phase:?}");
                self.records
                    .report
                    .unrepresented(file, reason, Some(offset));
            }
        }
        Ok(())
    }

    /// Facts about the machine, as `rocminfo` tells them.
    fn field(&mut self, name: &str, value: &str) {
        const MOST: usize = 4096;
        if value.len() <= MOST {
            let attribute = (name.to_owned(), value.to_owned());
            self.records.tables.attributes.push(attribute);
        } else {
            let reason = "fields beside the events that are longer than 4 KiB";
            let file = self.records.file;
            self.records.report.unrepresented(file, reason, None);
        }
    }

    fn long_field(&mut self, _: &str, offset: u64) {
        let reason = "fields beside the events that are longer than 4 KiB";
        let file = self.records.file;
        self.records
            .report
            .unrepresented(file, reason, Some(offset));
    }

    fn damage(&mut self, offset: u64, found: String, expected: &'static str) {
        let file = self.records.file;
        self.records
            .report
            .finding(file, Some(offset), found, expected);
    }
}
