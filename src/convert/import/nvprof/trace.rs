//! nvprof's lists of activities in CSV: what devices did (`--print-gpu-trace`), calls (`--print-api-trace`), or both.
//!
//! The table stands behind nvprof's messages, which begin with `==` and the process id, and often behind what the program
//! printed. Its second line has the units. Times count from the first activity, with six digits behind the point, so that
//! they are whole microseconds where the unit is the second.

use std::collections::HashMap;
use std::io::{self, BufRead, Read};
use std::path::Path;

use crate::import::chrome::decimal::microseconds;
use crate::import::csv::{Csv, CsvRow};
use crate::import::row::{Damage, Row, rows};
use crate::import::tables::{
    AgentHandle, AgentRow, ArgumentValue, HostKind, HostLane, HostRow, ProcessHandle, ProcessRow,
    QueueRow, Tables, TextHandle, WorkRow, api_of_function,
};
use crate::import::{Allowance, InputFile, Report};
use gputrail_record::{Domain, TransferKind};
use gputrail_trace::capture::short_name;
use gputrail_trace::model::{Agent, Consumer, Launch, Resources, WorkKind};

/// The time of the first activity, ns.
const BEGIN: u64 = 1_000_000_000_000;
/// Bytes of the longest line before the table.
const MAX_LINE: u64 = 1 << 20;
/// The begin of messages of nvprof.
const MESSAGE: &[u8] = b"==";

rows! {
    Activity<'r> {
        start: &'r str = "Start",
        duration: &'r str = "Duration",
        grid_x: u64 = "Grid X",
        grid_y: u64 = "Grid Y",
        grid_z: u64 = "Grid Z",
        block_x: u32 = "Block X",
        block_y: u32 = "Block Y",
        block_z: u32 = "Block Z",
        registers: u32 = "Registers Per Thread",
        static_shared: Option<f64> = "Static SMem",
        dynamic_shared: Option<f64> = "Dynamic SMem",
        size: Option<f64> = "Size",
        source: &'r str = "SrcMemType",
        destination: &'r str = "DstMemType",
        device: &'r str = "Device",
        context: u32 = "Context",
        stream: u32 = "Stream",
        source_device: &'r str = "Src Dev",
        destination_device: &'r str = "Dst Dev",
        unified: &'r str = "Unified Memory",
        address: &'r str = "Virtual Address",
        name: &'r str = "Name",
        correlation: u64 = "Correlation_ID",
    }
}

/// The places of columns in [`Activity`].
mod column {
    pub const START: usize = 0;
    pub const DURATION: usize = 1;
    pub const STATIC_SHARED: usize = 9;
    pub const DYNAMIC_SHARED: usize = 10;
    pub const SIZE: usize = 11;
    pub const UNIFIED: usize = 19;
}

/// Whether a file that begins so is a list of activities.
pub(in crate::import) fn is_trace(head: &[u8]) -> bool {
    head.split(|byte| *byte == b'\n').any(is_header)
}

/// Whether a line is the header of a list.
fn is_header(line: &[u8]) -> bool {
    let line: Vec<u8> = line.iter().copied().filter(|byte| *byte != b'"').collect();
    let line = line.trim_ascii_end();
    let has_name = line.ends_with(b",Name") || line.ends_with(b",Name,Correlation_ID");
    line.starts_with(b"Start,Duration,") && has_name
}

/// Passes a list on.
pub(in crate::import) fn read(
    source: &InputFile,
    allowance: Allowance,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let mut lines = source.reader()?;
    let mut before = Preamble::default();
    let mut tables = Tables::new(allowance);
    if let Some(header) = before.read(&mut lines)? {
        let pid = before.pid.unwrap_or(1);
        let process = tables.process(ProcessRow {
            pid,
            name: match (&before.command, before.pid) {
                (_, None) => "unknown process".to_owned(),
                (command, _) => program(command).unwrap_or_else(|| "process".to_owned()),
            },
            command: before.command.clone(),
            ..ProcessRow::default()
        });
        let csv = Csv::open_at(
            io::Cursor::new(header).chain(lines),
            before.lines,
            before.bytes,
            MESSAGE,
        );
        let list = ActivityList {
            file: source.name(),
            tables: &mut tables,
            report,
            process,
            pid,
            agents: HashMap::new(),
            units: Units::default(),
            rounded: 0,
        };
        list.read(csv?);
    } else {
        let expected = "a line that begins with \"Start\",\"Duration\"";
        report.finding(source.name(), Some(0), "no table", expected);
    }
    let reason = "lines before the table, which are of the program or of nvprof";
    report.remarks(source.name(), reason, before.lines.saturating_sub(1));
    tables.attributes.extend([
        ("format".to_owned(), "nvprof CSV".to_owned()),
        (
            "clock".to_owned(),
            "from 1000 s before the first activity, whose time of day is not told".to_owned(),
        ),
    ]);
    tables.pass_on(source.name(), consumer, report)
}

/// The name of a program in a command.
fn program(command: &[String]) -> Option<String> {
    let name = command.first()?.rsplit('/').next()?;
    Some(name.to_owned()).filter(|name| !name.is_empty())
}

/// The lines before the table.
#[derive(Default)]
struct Preamble {
    /// The number of the line of the header, and its offset.
    lines: u64,
    bytes: u64,
    pid: Option<u32>,
    command: Vec<String>,
}

impl Preamble {
    /// Reads up to the header of the table, which it returns.
    fn read(&mut self, lines: &mut dyn BufRead) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let count = (&mut *lines).take(MAX_LINE).read_until(b'\n', &mut line)?;
            if count == 0 {
                return Ok(None);
            }
            self.lines += 1;
            if is_header(&line) {
                return Ok(Some(line));
            }
            self.bytes += count as u64;
            self.message(&line);
        }
    }

    /// A message: `==PID== NVPROF is profiling process PID, command: COMMAND`.
    fn message(&mut self, line: &[u8]) {
        let Some(rest) = line.strip_prefix(MESSAGE) else {
            return;
        };
        let text = String::from_utf8_lossy(rest);
        let Some((pid, message)) = text.split_once("==") else {
            return;
        };
        if let Ok(pid) = pid.parse() {
            self.pid = Some(pid);
        }
        if let Some((_, command)) = message.split_once(", command: ") {
            self.command = command.split_whitespace().map(str::to_owned).collect();
        }
    }
}

/// The units of columns.
#[derive(Default)]
struct Units {
    /// Powers of ten from microseconds.
    start: i32,
    duration: i32,
    /// Bytes.
    static_shared: f64,
    dynamic_shared: f64,
    size: f64,
    unified: f64,
}

/// The power of ten of a unit of time, from microseconds.
fn time_unit(unit: &str) -> Option<i32> {
    Some(match unit {
        "s" => 6,
        "ms" => 3,
        "us" | "" => 0,
        "ns" => -3,
        _ => return None,
    })
}

/// The bytes of a unit of memory.
fn size_unit(unit: &str) -> Option<f64> {
    let power = ["B", "KB", "MB", "GB", "TB"];
    let power = match unit {
        "" => 0,
        unit => power.iter().position(|one| *one == unit)?,
    };
    Some(1024_f64.powi(power as i32))
}

/// A list that is being read.
struct ActivityList<'r> {
    file: &'r Path,
    tables: &'r mut Tables,
    report: &'r mut Report,
    process: ProcessHandle,
    pid: u32,
    /// Devices, by their names in the file.
    agents: HashMap<String, AgentHandle>,
    units: Units,
    /// Times finer than a nanosecond.
    rounded: u64,
}

impl ActivityList<'_> {
    fn read<R: BufRead>(mut self, mut csv: Csv<R>) {
        let places = csv.places(Activity::COLUMNS);
        let mut are_units_next = true;
        loop {
            let result = match csv.next() {
                Ok(None) => break,
                Err(error) => {
                    let (found, expected) = (error.to_string(), "the rest of the file");
                    self.report.finding(self.file, None, found, expected);
                    break;
                }
                Ok(Some(Err(damage))) => Err(damage),
                Ok(Some(Ok(record))) => {
                    let row: &dyn Row = &CsvRow {
                        record,
                        places: &places,
                    };
                    let start = text(row, column::START);
                    if std::mem::take(&mut are_units_next) {
                        self.set_units(row)
                    } else if start == "Start" {
                        // Another list of the same kind.
                        are_units_next = true;
                        Ok(())
                    } else {
                        self.add(row)
                    }
                }
            };
            if let Err(damage) = result {
                self.report.damage(self.file, damage);
            }
        }
        let reason = "times finer than a nanosecond: rounded";
        self.report.remarks(self.file, reason, self.rounded);
    }

    fn set_units(&mut self, row: &dyn Row) -> Result<(), Damage> {
        let time = |place| {
            let unit = time_unit(text(row, place));
            unit.ok_or_else(|| row.damage(place, "a unit of time"))
        };
        let size = |place| {
            let unit = size_unit(text(row, place));
            unit.ok_or_else(|| row.damage(place, "a unit of memory"))
        };
        self.units = Units {
            start: time(column::START)?,
            duration: time(column::DURATION)?,
            static_shared: size(column::STATIC_SHARED)?,
            dynamic_shared: size(column::DYNAMIC_SHARED)?,
            size: size(column::SIZE)?,
            unified: size(column::UNIFIED)?,
        };
        Ok(())
    }

    /// The nanoseconds of a time.
    fn time(&mut self, row: &dyn Row, place: usize, unit: i32) -> Result<u64, Damage> {
        let number = text(row, place);
        let decimal = microseconds(&format!("{number}e{unit}"));
        let nanos = decimal.and_then(|decimal| u64::try_from(decimal.nanos).ok());
        let (decimal, nanos) = decimal
            .zip(nanos)
            .ok_or_else(|| row.damage(place, "a time"))?;
        self.rounded += u64::from(!decimal.exact);
        Ok(nanos)
    }

    fn agent(&mut self, name: &str) -> AgentHandle {
        if let Some(agent) = self.agents.get(name) {
            return *agent;
        }
        // `TITAN Xp (0)`
        let parts = name
            .strip_suffix(')')
            .and_then(|name| name.rsplit_once(" ("));
        let (title, model) = match parts {
            Some((model, number)) => (format!("GPU {number}"), model),
            None => (name.to_owned(), name),
        };
        let agent = self.tables.agent(AgentRow {
            agent: Agent {
                title,
                name: model.to_owned(),
                vendor: "NVIDIA".to_owned(),
                ..Agent::default()
            },
            compute_units: 0,
        });
        self.agents.insert(name.to_owned(), agent);
        agent
    }

    fn add(&mut self, row: &dyn Row) -> Result<(), Damage> {
        let activity = Activity::read(row)?;
        if activity.start.is_empty() {
            return Err(row.damage(column::START, "a time"));
        }
        let start = self.time(row, column::START, self.units.start)?;
        let duration = match activity.duration {
            "" => None,
            _ => Some(self.time(row, column::DURATION, self.units.duration)?),
        };
        let start = BEGIN.saturating_add(start);
        let end = start.saturating_add(duration.unwrap_or(0));
        // Older versions write the id behind the name.
        let behind = activity.name.strip_suffix(']');
        let behind = behind.and_then(|name| name.rsplit_once(" ["));
        let behind = behind.and_then(|(name, id)| Some((name, id.parse().ok()?)));
        let (name, correlation) = match (activity.correlation, behind) {
            (0, Some((name, id))) => (name, id),
            (id, _) => (activity.name, id),
        };
        let event = HostRow {
            start,
            end,
            correlation,
            ..HostRow::default()
        };
        let is_of_device = !activity.device.is_empty();
        if let Some(api) = api_of_function(name).filter(|_| !is_of_device) {
            let function = self.tables.text(name);
            let function = self.tables.function(function, api);
            let kind = HostKind::Call(function, None);
            let lane = HostLane::Thread(self.process, self.pid);
            self.tables.add_host_in(lane, HostRow { kind, ..event });
            return Ok(());
        }
        let inner = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'));
        let mut arguments = self.texts_of(&activity);
        let unified = inner.and_then(|name| name.strip_prefix("Unified Memory "));
        let is_copy = inner.is_some_and(|name| name.contains("emcpy"));
        if !is_of_device || unified.is_some() && !is_copy {
            let name = unified.unwrap_or(name);
            let (name, category) = (self.tables.text(name), self.tables.text("unified memory"));
            if !activity.unified.is_empty() {
                let value = ArgumentValue::Text(self.tables.text(activity.unified));
                arguments.push((self.tables.text("value"), value));
            }
            let arguments = self.tables.arguments(arguments);
            let kind = match duration {
                Some(_) => HostKind::Slice(name, category),
                None => HostKind::Instant(name, category),
            };
            let lane = HostLane::Process(self.process, category);
            let event = HostRow {
                kind,
                arguments,
                ..event
            };
            self.tables.add_host_in(lane, event);
            return Ok(());
        }
        let mut work = WorkRow {
            process: self.process,
            correlation,
            start,
            end,
            ..WorkRow::default()
        };
        match inner {
            Some(inner) if is_copy => {
                let direction = direction(inner);
                let label = direction.name().unwrap_or("copy");
                work.stage = self.tables.stage(WorkKind::Copy, label, "");
                let unit = self.units.unified;
                let moved = activity.unified.parse().ok().map(|size| bytes(size, unit));
                work.bytes = moved.unwrap_or_else(|| self.size(&activity));
            }
            Some(inner) if inner.contains("emset") => {
                work.stage = self.tables.stage(WorkKind::Set, WorkKind::FILL, "");
                work.bytes = self.size(&activity);
            }
            _ => self.kernel(name, &activity, &mut work),
        }
        let agent = self.agent(activity.device);
        let queue_name = match unified {
            Some(_) => "unified memory".to_owned(),
            None => format!("stream {}", activity.stream),
        };
        let queue_name = self.tables.text(&queue_name);
        work.queue = self.tables.queue(QueueRow {
            process: self.process,
            agent,
            context: activity.context,
            domain: Domain::CUDA_RUNTIME,
            stream: activity.stream,
            name: queue_name,
        });
        work.arguments = self.tables.arguments(arguments);
        self.tables.add_work(work);
        Ok(())
    }

    fn size(&self, activity: &Activity<'_>) -> u64 {
        activity.size.map_or(0, |size| bytes(size, self.units.size))
    }

    fn kernel(&mut self, name: &str, activity: &Activity<'_>, work: &mut WorkRow) {
        let groups = [activity.grid_x, activity.grid_y, activity.grid_z];
        let workgroup = [activity.block_x, activity.block_y, activity.block_z];
        let shared = |size: Option<f64>, unit| {
            let bytes = size.map_or(0, |size| bytes(size, unit));
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        work.stage = self.tables.kernel(short_name(name), name);
        work.launch = groups.iter().all(|count| *count > 0).then(|| Launch {
            grid: [0, 1, 2].map(|at| groups[at].saturating_mul(workgroup[at].into())),
            workgroup,
        });
        work.resources = Resources {
            registers: activity.registers,
            static_local: shared(activity.static_shared, self.units.static_shared),
            dynamic_local: shared(activity.dynamic_shared, self.units.dynamic_shared),
            ..Resources::default()
        };
    }

    /// The texts beside an activity.
    fn texts_of(&mut self, activity: &Activity<'_>) -> Vec<(TextHandle, ArgumentValue)> {
        let texts = [
            ("source", activity.source),
            ("destination", activity.destination),
            ("source_device", activity.source_device),
            ("destination_device", activity.destination_device),
            ("address", activity.address),
        ];
        let known = texts.into_iter().filter(|(_, text)| !text.is_empty());
        known
            .map(|(name, text)| {
                let text = ArgumentValue::Text(self.tables.text(text));
                (self.tables.text(name), text)
            })
            .collect()
    }
}

/// The text of a field.
fn text(row: &dyn Row, place: usize) -> &str {
    match row.field(place) {
        crate::import::row::RowField::Text(text) => text.trim(),
        _ => "",
    }
}

/// A size in bytes, as near as its digits tell.
fn bytes(size: f64, unit: f64) -> u64 {
    (size * unit).round() as u64
}

/// The direction of a copy, by its name: `CUDA memcpy HtoD`.
fn direction(name: &str) -> TransferKind {
    let named = [
        ("HtoD", TransferKind::HOST_TO_DEVICE),
        ("DtoH", TransferKind::DEVICE_TO_HOST),
        ("DtoD", TransferKind::DEVICE_TO_DEVICE),
        ("HtoH", TransferKind::HOST_TO_HOST),
        ("PtoP", TransferKind::PEER_TO_PEER),
        ("HtoA", TransferKind::HOST_TO_ARRAY),
        ("AtoH", TransferKind::ARRAY_TO_HOST),
        ("AtoA", TransferKind::ARRAY_TO_ARRAY),
        ("AtoD", TransferKind::ARRAY_TO_DEVICE),
        ("DtoA", TransferKind::DEVICE_TO_ARRAY),
    ];
    let found = named.iter().find(|(word, _)| name.ends_with(word));
    found.map_or(TransferKind::UNKNOWN, |(_, kind)| *kind)
}
