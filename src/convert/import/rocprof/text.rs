//! roctracer's lists in text, which rocprof makes its other files of: a record in each line.
//!
//! | list | a line |
//! |---|---|
//! | `hip_api_trace.txt`, `hsa_api_trace.txt` | `BEGIN:END PID:TID FUNCTION(ARGUMENTS) kernel=NAME :ID` |
//! | `hcc_ops_trace.txt` | `BEGIN:END DEVICE:QUEUE NAME:ID:PID` |
//! | `async_copy_trace.txt` | `BEGIN:END async-copy:ID:PID` |
//! | `roctx_trace.txt` | `TIME PID:TID KIND:ID:"TEXT"` |
//!
//! The lists of one folder are one recording. Calls come first, since they have the names of the kernels. Without an id, the
//! number of a call among those of its process is its id.

use std::collections::HashMap;
use std::io::{self, BufRead, Read};

use super::records::{CALL, MARKER, OPERATION, OperationTable, Records};
use crate::import::row::{Damage, Row, RowField};
use crate::import::tables::TextHandle;
use crate::import::{Allowance, InputFile, Report};
use gputrail_record::Domain;
use gputrail_trace::model::Consumer;

/// Bytes of the longest line.
const MAX_LINE: u64 = 1 << 20;
/// Ranges of a thread that may be open at a time.
const MAX_OPEN: usize = 4096;

/// A line.
#[derive(Debug, PartialEq)]
enum Line<'l> {
    Call {
        times: [&'l str; 2],
        process: &'l str,
        thread: &'l str,
        function: &'l str,
        arguments: &'l str,
        kernel: &'l str,
        id: &'l str,
    },
    Operation {
        times: [&'l str; 2],
        /// Empty for copies of HSA.
        device: &'l str,
        queue: &'l str,
        name: &'l str,
        id: &'l str,
        process: &'l str,
    },
    Marker {
        time: &'l str,
        process: u32,
        thread: u32,
        kind: u32,
        id: u64,
        text: &'l str,
    },
}

/// Two numbers with a colon between them.
fn pair(text: &str) -> Option<[&str; 2]> {
    let (first, second) = text.split_once(':')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(first) && is_number(second)).then_some([first, second])
}

impl<'l> Line<'l> {
    fn parse(line: &'l str) -> Option<Line<'l>> {
        let line = line.trim_end();
        let (first, rest) = line.split_once(' ')?;
        if !first.contains(':') {
            return Line::marker(first, rest);
        }
        let times = pair(first)?;
        if let Some(copy) = rest.strip_prefix("async-copy:") {
            let [id, process] = pair(copy)?;
            let name = "async-copy";
            return Some(Line::Operation {
                times,
                device: "",
                queue: "",
                name,
                id,
                process,
            });
        }
        let (place, rest) = rest.split_once(' ')?;
        let [owner, second] = pair(place)?;
        let Some((function, arguments)) = rest.split_once('(').filter(|(name, _)| is_name(name))
        else {
            let (name, ids) = rest.split_once(':')?;
            // Names of kernels may have colons.
            let (name, ids) = match pair(ids) {
                Some(ids) => (name, ids),
                None => {
                    let (before, last) = rest.rsplit_once(':')?;
                    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
                    match before.rsplit_once(':') {
                        Some((name, id)) if is_number(id) => (name, [id, last]),
                        // Older versions do not write the process.
                        _ if is_number(last) => (before, [last, ""]),
                        _ => return None,
                    }
                }
            };
            return Some(Line::Operation {
                times,
                device: owner,
                queue: second,
                name,
                id: ids[0],
                process: ids[1],
            });
        };
        let (arguments, id) = match arguments.rsplit_once(" :") {
            Some((arguments, id)) if id.bytes().all(|byte| byte.is_ascii_digit()) => {
                (arguments, id)
            }
            _ => (arguments, ""),
        };
        let (arguments, kernel) = match arguments.split_once(" kernel=") {
            Some((arguments, kernel)) => (arguments, kernel),
            None => (arguments, ""),
        };
        let arguments = arguments.trim();
        Some(Line::Call {
            times,
            process: owner,
            thread: second,
            function,
            arguments: arguments.strip_suffix(')').unwrap_or(arguments),
            kernel: kernel.trim(),
            id,
        })
    }

    fn marker(time: &'l str, rest: &'l str) -> Option<Line<'l>> {
        time.parse::<u64>().ok()?;
        let (place, rest) = rest.split_once(' ')?;
        let [process, thread] = pair(place)?;
        let (kind, rest) = rest.split_once(':')?;
        let (id, text) = rest.split_once(':')?;
        Some(Line::Marker {
            time,
            process: process.parse().ok()?,
            thread: thread.parse().ok()?,
            kind: kind.parse().ok()?,
            id: id.parse().ok()?,
            text: text.strip_prefix('"')?.strip_suffix('"')?,
        })
    }

    /// Calls come before the operations of devices.
    fn is_call(&self) -> bool {
        matches!(self, Line::Call { .. })
    }
}

/// Whether a text can be the name of a function.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether a file that begins so is a list of roctracer.
pub(in crate::import) fn is_list(head: &[u8]) -> bool {
    first_line(head).is_some()
}

/// Whether the first line is a call; none if it is no record.
fn first_line(head: &[u8]) -> Option<bool> {
    let line = head.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    Line::parse(line).map(|line| line.is_call())
}

/// Values of a record, in the order of its columns.
struct TextRow<'l> {
    columns: &'static [&'static str],
    values: Vec<RowField<'l>>,
    line: u64,
    offset: u64,
}

impl Row for TextRow<'_> {
    fn field(&self, place: usize) -> RowField<'_> {
        self.values.get(place).copied().unwrap_or(RowField::Null)
    }

    fn column(&self, place: usize) -> &str {
        self.columns[place]
    }

    fn position(&self) -> (Option<u64>, String) {
        (Some(self.offset), format!("line {}", self.line))
    }
}

/// A range that is open: its start and its text.
type OpenRange = (String, String);

/// The state of a recording between lines.
#[derive(Default)]
struct Lists {
    /// The number of calls of each process and API.
    calls: HashMap<(String, bool), u64>,
    /// The kernels of calls of HIP, by process and id.
    kernels: HashMap<(String, String), TextHandle>,
    /// Ranges that were pushed, by process and thread.
    pushed: HashMap<(u32, u32), Vec<OpenRange>>,
    /// Ranges that were started, by process and id.
    started: HashMap<(u32, u64), OpenRange>,
}

/// Passes the lists of a folder on.
pub(in crate::import) fn read(
    sources: &[InputFile],
    allowance: Allowance,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let Some(first) = sources.first() else {
        return Ok(());
    };
    let mut records = Records::new(first.name(), allowance, report);
    records.set_format("roctracer text");
    let mut lists = Lists::default();
    let mut sorted: Vec<&InputFile> = sources.iter().collect();
    sorted.sort_by_key(|source| first_line(source.head()) != Some(true));
    for source in sorted {
        records.file = source.name();
        lists.read(source, &mut records)?;
    }
    let open = lists.pushed.values().map(Vec::len).sum::<usize>() + lists.started.len();
    let reason = "ranges that did not end";
    let Records { tables, report, .. } = records;
    report.unrepresented_many(first.name(), reason, open as u64);
    tables.pass_on(first.name(), consumer, report)
}

impl Lists {
    fn read(&mut self, source: &InputFile, records: &mut Records<'_>) -> io::Result<()> {
        let mut file = source.reader()?;
        let (mut bytes, mut offset) = (Vec::new(), 0);
        for number in 1.. {
            bytes.clear();
            let read = (&mut file).take(MAX_LINE).read_until(b'\n', &mut bytes);
            let count = match read {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) => {
                    let (found, expected) = (error.to_string(), "the rest of the file");
                    records.report.finding(source.name(), None, found, expected);
                    break;
                }
            };
            let line = String::from_utf8_lossy(&bytes);
            if !line.trim().is_empty() {
                let added = match Line::parse(&line) {
                    Some(parsed) => self.add(records, parsed, (number, offset)),
                    None => {
                        let begin: String = line.trim_end().chars().take(60).collect();
                        Err(Damage {
                            offset: Some(offset),
                            found: format!("{begin:?} in line {number}"),
                            expected: "a record of roctracer".into(),
                        })
                    }
                };
                if let Err(damage) = added {
                    records.report.damage(source.name(), damage);
                }
            }
            offset += count as u64;
        }
        Ok(())
    }

    fn add(
        &mut self,
        records: &mut Records<'_>,
        line: Line<'_>,
        (number, offset): (u64, u64),
    ) -> Result<(), Damage> {
        let text = RowField::Text;
        let row = |columns, values| TextRow {
            columns,
            values,
            line: number,
            offset,
        };
        match line {
            Line::Call {
                times,
                process,
                thread,
                function,
                arguments,
                kernel,
                id,
            } => {
                let is_hsa = function.starts_with("hsa");
                let calls = self.calls.entry((process.to_owned(), is_hsa)).or_default();
                *calls += 1;
                let own = calls.to_string();
                let id = if matches!(id, "" | "0") { &own[..] } else { id };
                if !kernel.is_empty() {
                    let kernel = records.tables.text(kernel);
                    let key = (process.to_owned(), id.to_owned());
                    self.kernels.insert(key, kernel);
                }
                let values = [id, function, process, thread, times[0], times[1], arguments];
                let row = row(CALL, values.map(text).to_vec());
                let api = if is_hsa { Domain::HSA } else { Domain::HIP };
                records.add_call(&row, api)
            }
            Line::Operation {
                times,
                device,
                queue,
                name,
                id,
                process,
            } => {
                // With one process, it is known.
                let mut processes = self.calls.keys().map(|(process, _)| process);
                let only = processes
                    .next()
                    .cloned()
                    .filter(|only| processes.all(|one| one == only));
                let process = match (process, &only) {
                    ("", Some(only)) => &only[..],
                    (process, _) => process,
                };
                let kernel = self.kernels.get(&(process.to_owned(), id.to_owned()));
                let kernel = kernel.map(|kernel| records.tables.texts.get(*kernel).to_owned());
                let is_kernel = name.contains("Kernel") || name.contains("Task");
                let name = kernel.as_deref().filter(|_| is_kernel).unwrap_or(name);
                let values = [id, name, process, "", times[0], times[1], device, queue];
                let row = row(OPERATION, values.map(text).to_vec());
                records.add_operation(&row, OperationTable::Any)
            }
            Line::Marker {
                time,
                process,
                thread,
                kind,
                id,
                text: name,
            } => {
                let open = || (time.to_owned(), name.to_owned());
                let (start, name, lane) = match kind {
                    0 => (time.to_owned(), name.to_owned(), thread),
                    1 => {
                        let pushed = self.pushed.entry((process, thread)).or_default();
                        if pushed.len() < MAX_OPEN {
                            pushed.push(open());
                        }
                        return Ok(());
                    }
                    2 => {
                        let pushed = self.pushed.get_mut(&(process, thread));
                        match pushed.and_then(Vec::pop) {
                            Some((start, name)) => (start, name, thread),
                            None => return Err(lone(number, offset)),
                        }
                    }
                    3 => {
                        self.started.insert((process, id), open());
                        return Ok(());
                    }
                    4 => match self.started.remove(&(process, id)) {
                        Some((start, name)) => (start, name, 0),
                        None => return Err(lone(number, offset)),
                    },
                    _ => {
                        return Err(Damage {
                            offset: Some(offset),
                            found: format!("a marker of kind {kind} in line {number}"),
                            expected: "a kind from 0 to 4".into(),
                        });
                    }
                };
                let (process, thread) = (process.into(), thread.into());
                let values = vec![
                    text(&name),
                    RowField::Int(process),
                    RowField::Int(thread),
                    text(&start),
                    text(time),
                    RowField::Int(lane.into()),
                ];
                records.add_marker(&row(MARKER, values))
            }
        }
    }
}

/// The damage of an end without a begin.
fn lone(line: u64, offset: u64) -> Damage {
    Damage {
        offset: Some(offset),
        found: format!("the end of a range in line {line}"),
        expected: "its begin before it".into(),
    }
}
