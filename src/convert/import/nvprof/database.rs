//! nvprof's databases: a table for each kind of CUPTI's activity records.
//!
//! Tables and columns differ between versions; those that are missing are empty. Ids of objects, payloads and readings of
//! sensors are the bytes of CUPTI's structures. Times are nanoseconds of the time of day.
//!
//! Memory: each text once, and some tens of bytes for each call and each range.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;

use super::{DRIVER, RUNTIME};
use crate::import::demangle::demangled;
use crate::import::row::{Damage, ParsedField, Row, RowField, rows};
use crate::import::sqlite::Database;
use crate::import::table_source::TableInfo;
use crate::import::tables::{
    AgentHandle, AgentRow, ArgumentValue, HostKind, HostLane, HostRow, NO_END, ProcessHandle,
    ProcessRow, StageHandle, Tables, TextHandle,
};
use crate::import::{Allowance, InputFile, Report};
use gputrail_record::{Domain, Nanos};
use gputrail_trace::capture::short_name;
use gputrail_trace::model::{Agent, Consumer};

/// The prefix of the names of tables.
const PREFIX: &str = "CUPTI_ACTIVITY_KIND_";
/// Times from here on, ns, are times of day: before 1973 there was no CUDA.
const TIME_OF_DAY: u64 = 100_000_000_000_000_000;

/// Tables that describe others, or hold code.
const DESCRIPTIONS: [&str; 11] = [
    "DEVICE",
    "CONTEXT",
    "STREAM",
    "NAME",
    "DEVICE_ATTRIBUTE",
    "MODULE",
    "FUNCTION",
    "SOURCE_LOCATOR",
    "NVLINK",
    "PCIE",
    "EXTERNAL_CORRELATION",
];

/// Whether a database is one of nvprof.
pub(in crate::import) fn is_nvprof(database: &Database) -> bool {
    let texts = database.table("StringTable");
    texts.is_some_and(|table| table.has("_id_"))
        && database
            .tables()
            .iter()
            .any(|table| table.name.starts_with(PREFIX))
}

rows! {
    Text<'r> {
        id: i64 = "_id_",
        value: Option<&'r str> = "value",
    }

    Device {
        id: i64 = "id",
        name: Option<i64> = "name",
        multiprocessors: u32 = "numMultiprocessors",
        major: u64 = "computeCapabilityMajor",
        minor: u64 = "computeCapabilityMinor",
        memory: u64 = "globalMemorySize",
        bandwidth: u64 = "globalMemoryBandwidth",
        clock: u64 = "coreClockRate",
    }

    External {
        external: u64 = "externalId",
        correlation: u64 = "correlationId",
    }

    Call {
        function: i64 = "cbid",
        start: u64 = "start",
        end: u64 = "end",
        process: Option<u32> = "processId",
        thread: Option<i64> = "threadId",
        correlation: u64 = "correlationId",
        result: Option<i64> = "returnValue",
    }

    Name<'r> {
        kind: i64 = "objectKind",
        object: RowField<'r> = "objectId",
        name: Option<i64> = "name",
    }

    /// A mark, or an end of a range.
    Marker<'r> {
        flags: i64 = "flags",
        time: u64 = "timestamp",
        id: i64 = "id",
        kind: i64 = "objectKind",
        object: RowField<'r> = "objectId",
        name: Option<i64> = "name",
        domain: Option<i64> = "domain",
    }

    MarkerData<'r> {
        flags: i64 = "flags",
        id: i64 = "id",
        kind: i64 = "payloadKind",
        payload: RowField<'r> = "payload",
        color: Option<i64> = "color",
        category: Option<i64> = "category",
    }
}

/// Flags of markers, and of their colours.
mod flag {
    pub const MARK: i64 = 1 << 0;
    pub const BEGIN: i64 = 1 << 1;
    pub const END: i64 = 1 << 2;
    pub const HAS_COLOR: i64 = 1 << 1;
}

/// Kinds of objects.
pub(super) mod object {
    pub const PROCESS: i64 = 1;
    pub const THREAD: i64 = 2;
    pub const STREAM: i64 = 5;
}

/// The number at a place in the bytes of a structure; 0 beyond its end.
pub(super) fn word(bytes: &[u8], place: usize) -> u32 {
    let bytes = bytes.get(4 * place..4 * place + 4);
    bytes.map_or(0, |bytes| {
        bytes
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u32::from(*byte))
    })
}

/// The bytes of a field; none for other fields.
pub(super) fn bytes_of(field: RowField<'_>) -> &[u8] {
    match field {
        RowField::Bytes(bytes) => bytes,
        RowField::Text(text) => text.as_bytes(),
        _ => &[],
    }
}

/// Passes a database on.
pub(in crate::import) fn read(
    source: &InputFile,
    database: &Database,
    allowance: Allowance,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let mut nvprof = Nvprof {
        file: source.name(),
        database,
        tables: Tables::new(allowance),
        report,
        texts: HashMap::new(),
        processes: HashMap::new(),
        agents: HashMap::new(),
        streams: HashMap::new(),
        kernels: HashMap::new(),
        callers: HashMap::new(),
        externals: HashMap::new(),
        first: u64::MAX,
        done: HashSet::new(),
    };
    nvprof.read();
    nvprof
        .tables
        .pass_on(source.name(), consumer, nvprof.report)
}

/// A database that is being read.
pub(super) struct Nvprof<'r> {
    pub file: &'r Path,
    pub database: &'r Database,
    pub tables: Tables,
    pub report: &'r mut Report,
    texts: HashMap<i64, TextHandle>,
    processes: HashMap<u32, ProcessHandle>,
    agents: HashMap<i64, AgentHandle>,
    /// Names of streams, by context and number.
    pub streams: HashMap<(i64, i64), TextHandle>,
    /// Kernels, by the ids of their names.
    kernels: HashMap<Option<i64>, StageHandle>,
    /// The process of the call with a correlation id.
    callers: HashMap<u64, ProcessHandle>,
    /// Ids of other APIs, by correlation id.
    externals: HashMap<u64, u64>,
    /// The first time.
    first: u64,
    /// Tables that have been read.
    done: HashSet<String>,
}

impl<'r> Nvprof<'r> {
    fn read(&mut self) {
        self.strings();
        self.devices();
        self.externals();
        self.calls("RUNTIME", RUNTIME, Domain::CUDA_RUNTIME);
        self.calls("DRIVER", DRIVER, Domain::CUDA_DRIVER);
        self.names();
        self.markers();
        self.work();
        self.spans();
        self.others();
        let is_time_of_day = (TIME_OF_DAY..u64::MAX).contains(&self.first);
        if is_time_of_day {
            let clocks = &mut self.tables.header.clocks;
            (clocks.boottime, clocks.realtime) = (Nanos(self.first), Nanos(self.first));
        }
        let clock = if is_time_of_day {
            "time of day (UTC)"
        } else {
            "clock of CUPTI"
        };
        self.tables.attributes.extend([
            ("format".to_owned(), "nvprof database".to_owned()),
            ("clock".to_owned(), clock.to_owned()),
        ]);
    }

    /// Calls `each` with every row of a table, whose name is without its prefix, if there is one.
    pub fn each(
        &mut self,
        table: &str,
        columns: &[&str],
        mut each: impl FnMut(&mut Self, &dyn Row) -> Result<(), Damage>,
    ) {
        let name = format!("{PREFIX}{table}");
        let database = self.database;
        if let Some(info) = database.table(&name) {
            let damages = database.rows(info, columns, |row| each(self, row));
            damages.report(self.file, self.report);
        }
        self.done.insert(name);
    }

    /// A time of an event.
    pub fn time(&mut self, time: u64) -> u64 {
        if time != 0 {
            self.first = self.first.min(time);
        }
        time
    }

    fn strings(&mut self) {
        let database = self.database;
        self.done
            .extend(["StringTable".to_owned(), "Version".to_owned()]);
        let Some(info) = database.table("StringTable") else {
            return;
        };
        let damages = database.rows(info, Text::COLUMNS, |row| {
            let text = Text::read(row)?;
            // Rows of a file that was cut have no values.
            let value = text.value.ok_or_else(|| row.damage(1, "a text"))?;
            let value = self.tables.text(value);
            self.texts.insert(text.id, value);
            Ok(())
        });
        damages.report(self.file, self.report);
    }

    /// The text of an id; the empty text for none.
    pub fn string(&self, id: Option<i64>) -> TextHandle {
        let known = id.and_then(|id| self.texts.get(&id));
        known.copied().unwrap_or_default()
    }

    fn devices(&mut self) {
        self.each("DEVICE", Device::COLUMNS, |nvprof, row| {
            let device = Device::read(row)?;
            let numbers = [
                ("compute_units", device.multiprocessors.into()),
                ("memory_bytes", device.memory),
                // Of CUPTI in KB/s and kHz.
                ("memory_bandwidth", device.bandwidth.saturating_mul(1000)),
                ("clock_hz", device.clock.saturating_mul(1000)),
            ];
            let known = numbers.into_iter().filter(|(_, value)| *value != 0);
            let name = nvprof.string(device.name);
            let agent = AgentRow {
                agent: Agent {
                    title: format!("GPU {}", device.id),
                    name: nvprof.tables.texts.get(name).to_owned(),
                    vendor: "NVIDIA".to_owned(),
                    architecture: match device.major {
                        0 => String::new(),
                        major => format!("sm_{major}{}", device.minor),
                    },
                    attributes: known
                        .map(|(name, value)| (name.to_owned(), value.to_string()))
                        .collect(),
                    ..Agent::default()
                },
                compute_units: device.multiprocessors,
            };
            if !nvprof.agents.contains_key(&device.id) {
                let handle = nvprof.tables.agent(agent);
                nvprof.agents.insert(device.id, handle);
            }
            Ok(())
        });
    }

    /// The device of a number.
    pub fn agent(&mut self, id: i64) -> AgentHandle {
        let tables = &mut self.tables;
        *self.agents.entry(id).or_insert_with(|| {
            tables.agent(AgentRow {
                agent: Agent {
                    title: format!("GPU {id}"),
                    vendor: "NVIDIA".to_owned(),
                    ..Agent::default()
                },
                compute_units: 0,
            })
        })
    }

    /// The process of an id.
    pub fn process(&mut self, pid: u32) -> ProcessHandle {
        let tables = &mut self.tables;
        *self.processes.entry(pid).or_insert_with(|| {
            tables.process(ProcessRow {
                pid,
                name: "process".to_owned(),
                ..ProcessRow::default()
            })
        })
    }

    /// The process of work: that of its call, or the only one.
    pub fn process_of(&mut self, correlation: u64) -> ProcessHandle {
        if let Some(process) = self.callers.get(&correlation) {
            return *process;
        }
        let mut processes = self.processes.values();
        match (processes.next().copied(), processes.next()) {
            (Some(only), None) => only,
            (known, _) => {
                let reason = "work whose process the database does not tell";
                self.report.remark(self.file, reason, None);
                known.unwrap_or_else(|| self.process(1))
            }
        }
    }

    fn externals(&mut self) {
        let table = "EXTERNAL_CORRELATION";
        self.each(table, External::COLUMNS, |nvprof, row| {
            let External {
                external,
                correlation,
            } = External::read(row)?;
            nvprof.externals.insert(correlation, external);
            Ok(())
        });
    }

    fn calls(&mut self, table: &str, functions: &str, api: Domain) {
        let names: Vec<&str> = functions.lines().collect();
        self.each(table, Call::COLUMNS, |nvprof, row| {
            let call = Call::read(row)?;
            let process = call.process.ok_or_else(|| row.damage(3, "a process"))?;
            let process = nvprof.process(process);
            // The lower half of the thread's handle, with or without a sign.
            let thread = call.thread.unwrap_or(0) as u32;
            let place = usize::try_from(call.function).ok();
            let place = place.and_then(|number| number.checked_sub(1));
            let name = match place.and_then(|place| names.get(place)) {
                Some(name) if !name.is_empty() => nvprof.tables.text(name),
                _ => nvprof.tables.text(&format!(
                    "CUDA function {} of the {}",
                    call.function,
                    table.to_ascii_lowercase()
                )),
            };
            let function = nvprof.tables.function(name, api);
            let result = i32::try_from(call.result.unwrap_or(0)).ok();
            let error = result.filter(|result| *result != 0);
            nvprof.callers.insert(call.correlation, process);
            let external = nvprof.externals.get(&call.correlation).copied();
            let start = nvprof.time(call.start);
            nvprof.tables.add_host_in(
                HostLane::Thread(process, thread),
                HostRow {
                    kind: HostKind::Call(function, error),
                    start,
                    end: if call.end == 0 { NO_END } else { call.end },
                    correlation: call.correlation,
                    external: external.unwrap_or(0),
                    ..HostRow::default()
                },
            );
            Ok(())
        });
    }

    /// Names of processes, threads and streams.
    fn names(&mut self) {
        self.each("NAME", Name::COLUMNS, |nvprof, row| {
            let Name { kind, object, name } = Name::read(row)?;
            let bytes = bytes_of(object);
            let (first, second) = (word(bytes, 0), word(bytes, 1));
            let text = nvprof.string(name);
            let name = nvprof.tables.texts.get(text).to_owned();
            match kind {
                object::PROCESS => {
                    let process = nvprof.process(first);
                    nvprof.tables.processes[process.0 as usize].name = name;
                }
                object::THREAD => {
                    let process = nvprof.process(first);
                    nvprof.tables.threads.insert((process, second), name);
                }
                object::STREAM => {
                    let stream = (i64::from(second), i64::from(word(bytes, 2)));
                    nvprof.streams.insert(stream, text);
                }
                _ => {}
            }
            Ok(())
        });
    }

    /// The process and the thread of an object.
    pub fn owner(&mut self, kind: i64, object: RowField<'_>) -> (ProcessHandle, u32) {
        let bytes = bytes_of(object);
        match kind {
            object::PROCESS => (self.process(word(bytes, 0)), 0),
            object::THREAD => (self.process(word(bytes, 0)), word(bytes, 1)),
            _ => (self.process_of(0), 0),
        }
    }

    /// Marks and ranges of NVTX.
    fn markers(&mut self) {
        let mut ends: HashMap<i64, u64> = HashMap::new();
        self.each("MARKER", Marker::COLUMNS, |_, row| {
            let marker = Marker::read(row)?;
            if marker.flags & flag::END != 0 {
                ends.insert(marker.id, marker.time);
            }
            Ok(())
        });
        let mut details: HashMap<i64, Vec<(TextHandle, ArgumentValue)>> = HashMap::new();
        self.each("MARKER_DATA", MarkerData::COLUMNS, |nvprof, row| {
            let data = MarkerData::read(row)?;
            let arguments = nvprof.marker_data(&data);
            details.insert(data.id, arguments);
            Ok(())
        });
        self.each("MARKER", Marker::COLUMNS, |nvprof, row| {
            let marker = Marker::read(row)?;
            let is_mark = marker.flags & flag::MARK != 0;
            if !is_mark && marker.flags & flag::BEGIN == 0 {
                return Ok(());
            }
            let (process, thread) = nvprof.owner(marker.kind, marker.object);
            let mut arguments = details.remove(&marker.id).unwrap_or_default();
            let domain = nvprof.string(marker.domain);
            if domain != TextHandle::default() {
                let domain = ArgumentValue::Text(domain);
                arguments.insert(0, (nvprof.tables.text("domain"), domain));
            }
            let arguments = nvprof.tables.arguments(arguments);
            let (name, category) = (nvprof.string(marker.name), nvprof.tables.text("marker"));
            let start = nvprof.time(marker.time);
            let lane = match thread {
                0 => HostLane::Ranges(process),
                thread => HostLane::ThreadRanges(process, thread),
            };
            let (kind, end) = match is_mark {
                true => (HostKind::Instant(name, category), start),
                false => {
                    let end = ends.remove(&marker.id).unwrap_or(NO_END);
                    (HostKind::Slice(name, category), end)
                }
            };
            let row = HostRow {
                kind,
                start,
                end,
                arguments,
                ..HostRow::default()
            };
            nvprof.tables.add_host_in(lane, row);
            Ok(())
        });
        let reason = "ends of ranges whose begin is not in the database";
        let ends = ends.len() as u64;
        self.report.unrepresented_many(self.file, reason, ends);
    }

    /// The payload, colour and category of a marker.
    fn marker_data(&mut self, data: &MarkerData<'_>) -> Vec<(TextHandle, ArgumentValue)> {
        let bytes = bytes_of(data.payload);
        let bits = u64::from(word(bytes, 1)) << 32 | u64::from(word(bytes, 0));
        let mut arguments = Vec::new();
        let payload = match data.kind {
            _ if bits == 0 => None,
            // Kinds of the values of metrics: percent, too, is a floating-point number.
            0 | 2 => Some(ArgumentValue::Double(f64::from_bits(bits))),
            4 => Some(ArgumentValue::Int(bits as i64)),
            _ => Some(ArgumentValue::Uint(bits)),
        };
        if let Some(payload) = payload {
            arguments.push((self.tables.text("payload"), payload));
        }
        if data.flags & flag::HAS_COLOR != 0 {
            let color = data.color.unwrap_or(0) as u32;
            let color = ArgumentValue::Pointer(color.into());
            arguments.push((self.tables.text("color"), color));
        }
        arguments.extend(self.tables.numbers(&[("category", data.category)]));
        arguments
    }

    /// Tables of other events with a start and an end (OpenACC, OpenMP, ...), as slices with all their values.
    fn spans(&mut self) {
        let database = self.database;
        for table in database.tables() {
            let Some(name) = table.name.strip_prefix(PREFIX) else {
                continue;
            };
            if self.done.contains(&table.name) || !table.has("start") || !table.has("end") {
                continue;
            }
            let used = [
                "start",
                "end",
                "cuProcessId|processId",
                "cuThreadId|threadId",
                "correlationId",
            ];
            let is_used = |column: &str| {
                used.iter()
                    .any(|one| one.split('|').any(|one| one == column))
            };
            let rest = table.columns.iter().map(|column| &column[..]);
            let rest: Vec<&str> = rest.filter(|one| !is_used(one) && *one != "_id_").collect();
            let columns: Vec<&str> = used.into_iter().chain(rest.iter().copied()).collect();
            self.each(name, &columns, |nvprof, row| nvprof.span(name, &rest, row));
        }
    }

    fn span(&mut self, table: &str, rest: &[&str], row: &dyn Row) -> Result<(), Damage> {
        let start = Option::<u64>::parse(row, 0)?.ok_or_else(|| row.damage(0, "a time"))?;
        let (start, end) = (self.time(start), u64::parse(row, 1)?);
        let process: Option<u32> = Option::parse(row, 2)?;
        let thread: Option<i64> = Option::parse(row, 3)?;
        let correlation = u64::parse(row, 4)?;
        let process = match process {
            Some(process) => self.process(process),
            None => self.process_of(correlation),
        };
        let mut arguments = Vec::new();
        for (place, column) in (5..).zip(rest) {
            let is_text = ["srcFile", "funcName", "varName", "kernelName"].contains(column);
            let value = match row.field(place) {
                RowField::Int(0) | RowField::Null | RowField::Bytes(_) => continue,
                RowField::Int(id) if is_text => {
                    let text = self.string(Some(id));
                    if text == TextHandle::default() {
                        continue;
                    }
                    ArgumentValue::Text(text)
                }
                RowField::Int(value) => ArgumentValue::Int(value),
                RowField::Real(value) => ArgumentValue::Double(value),
                RowField::Text(text) => ArgumentValue::Text(self.tables.text(text)),
            };
            arguments.push((self.tables.text(column), value));
        }
        let arguments = self.tables.arguments(arguments);
        let name = table.to_ascii_lowercase().replace('_', " ");
        let name = self.tables.text(&name);
        self.tables.add_host_in(
            HostLane::other(process, thread.unwrap_or(0) as u32, name),
            HostRow {
                kind: HostKind::Slice(name, name),
                start,
                end: if end == 0 { NO_END } else { end },
                correlation,
                arguments,
                ..HostRow::default()
            },
        );
        Ok(())
    }

    /// Counts the rows of tables that nothing above reads.
    fn others(&mut self) {
        let database = self.database;
        let is_description = |table: &TableInfo| {
            let name = table.name.strip_prefix(PREFIX);
            name.is_some_and(|name| DESCRIPTIONS.contains(&name))
        };
        for table in database.tables() {
            if self.done.contains(&table.name) || is_description(table) {
                continue;
            }
            let reason = format!("rows of {}, which has no start and end", table.name);
            let rows = database.count(table);
            self.report.unrepresented_many(self.file, reason, rows);
        }
    }

    /// The stage of a kernel, by the id of its name.
    pub fn kernel(&mut self, id: Option<i64>) -> StageHandle {
        if let Some(stage) = self.kernels.get(&id) {
            return *stage;
        }
        let full = demangled(self.tables.texts.get(self.string(id))).into_owned();
        let stage = self.tables.kernel(short_name(&full), &full);
        self.kernels.insert(id, stage);
        stage
    }
}
