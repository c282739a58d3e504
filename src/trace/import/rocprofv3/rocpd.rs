//! rocprofv3's databases (rocpd, SQLite).
//!
//! A database has the tables of one run or, merged, of several: the names of the tables of each end in its id. Two
//! generations of the schema are in use: in the older one rows have their process, device and times themselves; in the
//! newer one a track holds the process, device and queue, and a table holds all times. A run has a database for each
//! process; they are read together. Times are nanoseconds of CLOCK_BOOTTIME.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;

use super::csv_reader::{kernel_stage, transfer};
use crate::record::{Domain, TransferKind};
use crate::trace::import::sqlite::{Damage, Database, Row, TableInfo, columns};
use crate::trace::import::tables::{
    AgentHandle, AgentRow, ArgumentValue, DispatchCounterRow, HostKind, HostRow, Lane, MemoryRow,
    ProcessHandle, ProcessRow, QueueRow, Tables, TextId, WorkRow,
};
use crate::trace::import::{Report, Source};
use crate::trace::model::{Agent, Consumer, Launch, Resources, WorkKind};

/// Devices that are compared, to find those that several databases name.
const MAX_COMPARED: usize = 256;
/// What the names of all tables begin with.
const PREFIX: &str = "rocpd_";
/// The tables, without the prefix and the id of the run. None begins with another.
const NAMES: [&str; 21] = [
    "metadata",
    "string",
    "info_node",
    "info_process",
    "info_thread",
    "info_agent",
    "info_queue",
    "info_stream",
    "info_pmc",
    "info_code_object",
    "info_kernel_symbol",
    "track",
    "timestamp",
    "event",
    "arg",
    "pmc_event",
    "region",
    "sample",
    "kernel_dispatch",
    "memory_copy",
    "memory_allocate",
];

columns!(Text { id = "id", value = "string", });
columns!(Node { host = "hostname", system = "system_name", release = "release", version = "version", hardware = "hardware_name", });
columns!(Process { id = "id", pid = "pid", command = "command", });
columns!(Thread { id = "id", tid = "tid", process = "pid", name = "name", });
columns!(Device {
    id = "id", kind = "type", absolute = "absolute_index", index = "type_index", name = "name", generic = "generic_name", model = "model_name",
    vendor = "vendor_name", product = "product_name",
});
columns!(Named { id = "id", name = "name", });
columns!(Counter { id = "id", name = "name", });
columns!(Symbol {
    id = "id", name = "kernel_name", display = "display_name", registers = "arch_vgpr_count",
    accumulation = "accum_vgpr_count", scalar = "sgpr_count",
});
columns!(Track { id = "id", process = "pid", thread = "tid", agent = "agent_id", queue = "queue_id", stream = "stream_id", name = "name_id", });
columns!(Time { id = "id", value = "value", });
columns!(Event { id = "id", category = "category_id", stack = "stack_id", external = "correlation_id", });
columns!(Argument { event = "event_id", name = "name", value = "value", });
columns!(Value { event = "event_id", counter = "pmc_id", value = "value", });
columns!(Region {
    start = "start", end = "end", start_id = "start_id", end_id = "end_id", track = "track_id",
    process = "pid", thread = "tid", name = "name_id", event = "event_id",
});
columns!(Mark { time = "timestamp", time_id = "timestamp_id", track = "track_id", name = "name_id", event = "event_id", });
columns!(Dispatch {
    start = "start", end = "end", start_id = "start_id", end_id = "end_id", track = "track_id",
    process = "pid", thread = "tid", agent = "agent_id", queue = "queue_id", stream = "stream_id",
    kernel = "kernel_id", dispatch = "dispatch_id", private = "private_segment_size",
    group = "group_segment_size", group_x = "workgroup_size_x", group_y = "workgroup_size_y",
    group_z = "workgroup_size_z", grid_x = "grid_size_x", grid_y = "grid_size_y",
    grid_z = "grid_size_z", region = "region_name_id", event = "event_id",
});
columns!(Transfer {
    start = "start", end = "end", start_id = "start_id", end_id = "end_id", track = "track_id",
    process = "pid", thread = "tid", queue = "queue_id", stream = "stream_id", name = "name_id",
    to = "dst_agent_id", to_address = "dst_address", from = "src_agent_id", from_address = "src_address",
    size = "size", region = "region_name_id", event = "event_id",
});
columns!(Allocation {
    start = "start", end = "end", start_id = "start_id", end_id = "end_id", track = "track_id",
    process = "pid", thread = "tid", agent = "agent_id", kind = "type", level = "level",
    address = "address", size = "size", queue = "queue_id", event = "event_id",
});

/// Whether a database is one of rocprofv3.
pub(in crate::trace::import) fn is_rocpd(database: &Database) -> bool {
    !runs(database).is_empty()
}

/// The tables of each run, by their names without prefix and id.
fn runs(database: &Database) -> BTreeMap<String, HashMap<&'static str, &TableInfo>> {
    let mut runs: BTreeMap<String, HashMap<&'static str, &TableInfo>> = BTreeMap::new();
    for table in database.tables() {
        let Some(rest) = table.name.strip_prefix(PREFIX) else {
            continue;
        };
        let ends = |name: &&&str| rest.strip_prefix(**name).is_some_and(is_id);
        if let Some(name) = NAMES.iter().find(ends) {
            let run = rest[name.len()..].to_owned();
            runs.entry(run).or_default().insert(name, table);
        }
    }
    runs
}

/// Whether a name of a table may end so: in nothing, or in an underscore and an id.
fn is_id(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('_') || rest.starts_with(|one: char| one.is_ascii_digit())
}

/// Passes the databases of a run on.
pub(in crate::trace::import) fn read(
    sources: &[(&Source, Database)],
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let mut tables = Tables::default();
    for (source, database) in sources {
        for run in runs(database).into_values() {
            Run {
                file: source.name(),
                database,
                of: run,
                tables: &mut tables,
                report,
                texts: HashMap::new(),
                processes: HashMap::new(),
                threads: HashMap::new(),
                agents: HashMap::new(),
                queues: HashMap::new(),
                streams: HashMap::new(),
                counters: HashMap::new(),
                symbols: HashMap::new(),
                tracks: HashMap::new(),
                times: HashMap::new(),
                events: HashMap::new(),
                arguments: HashMap::new(),
                dispatches: HashMap::new(),
            }
            .read();
        }
    }
    tables.attributes.extend([
        ("format".to_owned(), "rocprofv3 rocpd".to_owned()),
        (
            "clock".to_owned(),
            "CLOCK_BOOTTIME of the recorded machine".to_owned(),
        ),
    ]);
    let file = sources
        .first()
        .map_or(Path::new(""), |(source, _)| source.name());
    tables.pass_on(file, consumer, report)
}

/// The place of an event: what its row or its track says.
#[derive(Copy, Clone, Default)]
struct Place {
    process: Option<i64>,
    thread: Option<i64>,
    agent: Option<i64>,
    queue: Option<i64>,
    stream: Option<i64>,
    name: Option<i64>,
}

/// Columns of a table that say when and where its rows happened.
struct PlaceColumns {
    start: usize,
    end: usize,
    start_id: usize,
    end_id: usize,
    track: usize,
    process: Option<usize>,
    thread: Option<usize>,
    agent: Option<usize>,
    queue: Option<usize>,
    stream: Option<usize>,
    event: usize,
}

/// When and where a row happened, and its event.
struct Happened {
    start: u64,
    end: u64,
    place: Place,
    process: ProcessHandle,
    thread: u32,
    event: Option<i64>,
    correlation: u64,
    external: u64,
    category: TextId,
}

/// A kernel.
struct KernelSymbol {
    name: String,
    registers: u32,
    accumulation: i64,
    scalar: i64,
}

/// A run that is being read. Maps are by the ids of its tables.
struct Run<'r> {
    file: &'r Path,
    database: &'r Database,
    of: HashMap<&'static str, &'r TableInfo>,
    tables: &'r mut Tables,
    report: &'r mut Report,
    texts: HashMap<i64, TextId>,
    processes: HashMap<i64, ProcessHandle>,
    threads: HashMap<i64, u32>,
    agents: HashMap<i64, AgentHandle>,
    queues: HashMap<i64, String>,
    streams: HashMap<i64, String>,
    counters: HashMap<i64, TextId>,
    symbols: HashMap<i64, KernelSymbol>,
    tracks: HashMap<i64, Place>,
    times: HashMap<i64, u64>,
    /// Category, correlation id and external id.
    events: HashMap<i64, (TextId, u64, u64)>,
    /// Arguments of events.
    arguments: HashMap<i64, Vec<(TextId, ArgumentValue)>>,
    /// Dispatches by their events.
    dispatches: HashMap<i64, (ProcessHandle, u64)>,
}

impl Run<'_> {
    fn read(mut self) {
        self.names();
        self.devices();
        self.links();
        self.regions();
        self.marks();
        self.kernels();
        self.copies();
        self.allocations();
        self.counter_values();
    }

    fn each(
        &mut self,
        table: &'static str,
        columns: &'static [&'static str],
        mut each: impl FnMut(&mut Self, &Row<'_>) -> Result<(), Damage>,
    ) {
        let Some(info) = self.of.get(table).copied() else {
            return;
        };
        let (database, file) = (self.database, self.file);
        let mut damages = Vec::new();
        database.rows(
            info,
            columns,
            |row| each(self, row),
            |damage| damages.push(damage),
        );
        for damage in damages {
            self.report
                .finding(file, None, damage.found, damage.expected);
        }
    }

    fn names(&mut self) {
        self.each("string", Text::ALL, |run, row| {
            let id = row.known_int(Text::id as usize)?;
            if let Some(text) = row.text(Text::value as usize)? {
                let text = run.tables.text(text);
                run.texts.insert(id, text);
            }
            Ok(())
        });
        self.each("info_node", Node::ALL, |run, row| {
            let machine = &mut run.tables.header.machine;
            for (field, column) in [
                (&mut machine.host, Node::host),
                (&mut machine.system, Node::system),
                (&mut machine.release, Node::release),
                (&mut machine.version, Node::version),
                (&mut machine.architecture, Node::hardware),
            ] {
                *field = row.text(column as usize)?.unwrap_or("").to_owned();
            }
            Ok(())
        });
        self.each("info_process", Process::ALL, |run, row| {
            let id = row.known_int(Process::id as usize)?;
            let pid = row.small(Process::pid as usize)?;
            let command = row.text(Process::command as usize)?.unwrap_or("");
            let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
            let name = words.first().and_then(|word| word.rsplit('/').next());
            let handle = run.tables.process(ProcessRow {
                pid,
                name: name
                    .filter(|name| !name.is_empty())
                    .unwrap_or("process")
                    .to_owned(),
                rank: String::new(),
                command: words,
            });
            run.processes.insert(id, handle);
            Ok(())
        });
        self.each("info_thread", Thread::ALL, |run, row| {
            let id = row.known_int(Thread::id as usize)?;
            let tid = row.small(Thread::tid as usize)?;
            run.threads.insert(id, tid);
            let process = run.process(row.int(Thread::process as usize)?);
            if let Some(name) = row
                .text(Thread::name as usize)?
                .filter(|name| !name.is_empty())
            {
                run.tables.threads.insert((process, tid), name.to_owned());
            }
            Ok(())
        });
    }

    fn devices(&mut self) {
        self.each("info_agent", Device::ALL, |run, row| {
            let id = row.known_int(Device::id as usize)?;
            let text = |column: Device| Ok(row.text(column as usize)?.unwrap_or("").to_owned());
            let kind = text(Device::kind)?;
            let index = match row.int(Device::index as usize)? {
                Some(index) => index,
                None => row.int(Device::absolute as usize)?.unwrap_or(id),
            };
            let title = format!("{} {index}", if kind.is_empty() { "Agent" } else { &kind });
            let generic = text(Device::generic)?;
            let architecture = if generic.is_empty() {
                text(Device::name)?
            } else {
                generic
            };
            let agent = Agent {
                title,
                name: text(Device::product)?,
                vendor: text(Device::vendor)?,
                model: text(Device::model)?,
                architecture,
                pci_address: String::new(),
                attributes: vec![("kind".to_owned(), kind)],
            };
            // The databases of a run name the same devices.
            let known = run
                .tables
                .agents
                .iter()
                .take(MAX_COMPARED)
                .position(|row| row.agent == agent);
            let handle = match known {
                Some(place) => AgentHandle(place as u32),
                None => run.tables.agent(AgentRow {
                    agent,
                    compute_units: 0,
                }),
            };
            run.agents.insert(id, handle);
            Ok(())
        });
        self.each("info_queue", Named::ALL, |run, row| {
            let id = row.known_int(Named::id as usize)?;
            let name = row.text(Named::name as usize)?.unwrap_or("");
            run.queues.insert(id, name.to_lowercase());
            Ok(())
        });
        self.each("info_stream", Named::ALL, |run, row| {
            let id = row.known_int(Named::id as usize)?;
            let name = row.text(Named::name as usize)?.unwrap_or("");
            run.streams.insert(id, name.to_lowercase());
            Ok(())
        });
        self.each("info_pmc", Counter::ALL, |run, row| {
            let id = row.known_int(Counter::id as usize)?;
            let name = run
                .tables
                .text(row.text(Counter::name as usize)?.unwrap_or(""));
            run.counters.insert(id, name);
            Ok(())
        });
        self.each("info_kernel_symbol", Symbol::ALL, |run, row| {
            let id = row.known_int(Symbol::id as usize)?;
            let display = row
                .text(Symbol::display as usize)?
                .filter(|name| !name.is_empty());
            let name = match display {
                Some(name) => name,
                None => row.text(Symbol::name as usize)?.unwrap_or(""),
            };
            let symbol = KernelSymbol {
                name: name.to_owned(),
                registers: row.small(Symbol::registers as usize)?,
                accumulation: row.int(Symbol::accumulation as usize)?.unwrap_or(0),
                scalar: row.int(Symbol::scalar as usize)?.unwrap_or(0),
            };
            run.symbols.insert(id, symbol);
            Ok(())
        });
    }

    /// Tables that others refer to.
    fn links(&mut self) {
        self.each("track", Track::ALL, |run, row| {
            let id = row.known_int(Track::id as usize)?;
            let place = Place {
                process: row.int(Track::process as usize)?,
                thread: row.int(Track::thread as usize)?,
                agent: row.int(Track::agent as usize)?,
                queue: row.int(Track::queue as usize)?,
                stream: row.int(Track::stream as usize)?,
                name: row.int(Track::name as usize)?,
            };
            run.tracks.insert(id, place);
            Ok(())
        });
        self.each("timestamp", Time::ALL, |run, row| {
            let id = row.known_int(Time::id as usize)?;
            let time = row.size(Time::value as usize)?;
            run.times.insert(id, time);
            Ok(())
        });
        self.each("event", Event::ALL, |run, row| {
            let id = row.known_int(Event::id as usize)?;
            let category = run.string(row.int(Event::category as usize)?);
            let stack = row.size(Event::stack as usize)?;
            let external = row.size(Event::external as usize)?;
            run.events.insert(id, (category, stack, external));
            Ok(())
        });
        self.each("arg", Argument::ALL, |run, row| {
            let event = row.known_int(Argument::event as usize)?;
            let name = run
                .tables
                .text(row.text(Argument::name as usize)?.unwrap_or(""));
            let value = run
                .tables
                .text(row.text(Argument::value as usize)?.unwrap_or(""));
            let arguments = run.arguments.entry(event).or_default();
            arguments.push((name, ArgumentValue::Text(value)));
            Ok(())
        });
    }

    /// The process of an id; one for all rows whose process the database lacks.
    fn process(&mut self, id: Option<i64>) -> ProcessHandle {
        let id = id.unwrap_or(0);
        if let Some(process) = self.processes.get(&id) {
            return *process;
        }
        let reason = "rows of a process that the database does not describe";
        self.report.remark(self.file, reason, None);
        let process = self.tables.process(ProcessRow {
            pid: u32::try_from(id).ok().filter(|pid| *pid != 0).unwrap_or(1),
            name: "unknown process".to_owned(),
            ..ProcessRow::default()
        });
        self.processes.insert(id, process);
        process
    }

    fn string(&self, id: Option<i64>) -> TextId {
        let known = id.and_then(|id| self.texts.get(&id));
        known.copied().unwrap_or_default()
    }

    fn agent(&self, id: Option<i64>) -> AgentHandle {
        let known = id.and_then(|id| self.agents.get(&id));
        known.copied().unwrap_or(AgentHandle::UNKNOWN)
    }

    /// A time that stands in its row, or in the table of times.
    fn time(&self, row: &Row<'_>, value: usize, id: usize) -> Result<u64, Damage> {
        if let Some(time) = row.int(value)? {
            return u64::try_from(time)
                .map_err(|_| row.damage(value, &time.to_string(), "nanoseconds"));
        }
        let id_value = row.known_int(id)?;
        let time = self.times.get(&id_value).copied();
        time.ok_or_else(|| row.damage(id, &id_value.to_string(), "an id of the table of times"))
    }

    fn happened(&mut self, row: &Row<'_>, columns: &PlaceColumns) -> Result<Happened, Damage> {
        let start = self.time(row, columns.start, columns.start_id)?;
        let end = self.time(row, columns.end, columns.end_id)?;
        let track = row.int(columns.track)?;
        let mut place = track
            .and_then(|track| self.tracks.get(&track))
            .copied()
            .unwrap_or_default();
        for (field, column) in [
            (&mut place.process, columns.process),
            (&mut place.thread, columns.thread),
            (&mut place.agent, columns.agent),
            (&mut place.queue, columns.queue),
            (&mut place.stream, columns.stream),
        ] {
            if let Some(column) = column {
                *field = row.int(column)?.or(*field);
            }
        }
        let process = self.process(place.process);
        let thread = place.thread.unwrap_or(0);
        let thread = self.threads.get(&thread).copied().unwrap_or(thread as u32);
        let event = row.int(columns.event)?;
        let known = event.and_then(|event| self.events.get(&event)).copied();
        let (category, correlation, external) = known.unwrap_or_default();
        Ok(Happened {
            start,
            end,
            place,
            process,
            thread,
            event,
            correlation,
            external,
            category,
        })
    }

    /// The arguments of an event, after `first`.
    fn arguments(
        &mut self,
        event: Option<i64>,
        first: Vec<(TextId, ArgumentValue)>,
    ) -> crate::trace::import::tables::Arguments {
        let of_event = event.and_then(|event| self.arguments.remove(&event));
        let all = first.into_iter().chain(of_event.into_iter().flatten());
        let all: Vec<_> = all.collect();
        self.tables.arguments(all)
    }

    /// Calls, markers and ranges.
    fn regions(&mut self) {
        let columns = PlaceColumns {
            start: Region::start as usize,
            end: Region::end as usize,
            start_id: Region::start_id as usize,
            end_id: Region::end_id as usize,
            track: Region::track as usize,
            process: Some(Region::process as usize),
            thread: Some(Region::thread as usize),
            agent: None,
            queue: None,
            stream: None,
            event: Region::event as usize,
        };
        self.each("region", Region::ALL, |run, row| {
            let at = run.happened(row, &columns)?;
            let name = run.string(row.int(Region::name as usize)?);
            let category = run.tables.texts.get(at.category).to_owned();
            let domain = match &category[..] {
                category if category.starts_with("HIP") => Some(Domain::HIP),
                category if category.starts_with("HSA") => Some(Domain::HSA),
                _ => None,
            };
            let is_marker = category.starts_with("MARKER");
            let label = match is_marker {
                true => run.tables.text("marker"),
                false => run.tables.text(&category.to_ascii_lowercase()),
            };
            let of_event = at.event.and_then(|event| run.arguments.get(&event));
            let parameters = of_event.into_iter().flatten();
            let parameters: Vec<_> = parameters
                .map(|(name, _)| run.tables.texts.get(*name))
                .collect();
            let parameters = parameters.join("\n");
            let parameters = run.tables.text(&parameters);
            let arguments = run.arguments(at.event, Vec::new());
            let (lane, kind) = match (domain, is_marker) {
                (Some(domain), _) => {
                    let function = run.tables.function_with(name, domain, parameters);
                    (
                        Lane::Thread(at.process, at.thread),
                        HostKind::Call(function, None),
                    )
                }
                (None, true) if at.start == at.end => (
                    Lane::ThreadRanges(at.process, at.thread),
                    HostKind::Instant(name, label),
                ),
                (None, true) => (
                    Lane::ThreadRanges(at.process, at.thread),
                    HostKind::Slice(name, label),
                ),
                (None, false) => (
                    Lane::Thread(at.process, at.thread),
                    HostKind::Slice(name, label),
                ),
            };
            run.tables.add_host_in(
                lane,
                HostRow {
                    kind,
                    start: at.start,
                    end: at.end,
                    correlation: at.correlation,
                    external: at.external,
                    arguments,
                    ..HostRow::default()
                },
            );
            Ok(())
        });
    }

    /// Points in time of a track.
    fn marks(&mut self) {
        self.each("sample", Mark::ALL, |run, row| {
            let time = run.time(row, Mark::time as usize, Mark::time_id as usize)?;
            let track = row.int(Mark::track as usize)?;
            let place = track
                .and_then(|track| run.tracks.get(&track))
                .copied()
                .unwrap_or_default();
            let process = run.process(place.process);
            let name = match row.int(Mark::name as usize)? {
                Some(name) => run.string(Some(name)),
                None => run.string(place.name),
            };
            let event = row.int(Mark::event as usize)?;
            let arguments = run.arguments(event, Vec::new());
            let lane = match run.tables.texts.get(run.string(place.name)) {
                "" => run.tables.text("samples"),
                _ => run.string(place.name),
            };
            run.tables.add_host_in(
                Lane::Process(process, lane),
                HostRow {
                    kind: HostKind::Instant(name, lane),
                    start: time,
                    end: time,
                    arguments,
                    ..HostRow::default()
                },
            );
            Ok(())
        });
    }

    /// The queue of work.
    fn queue(
        &mut self,
        at: &Happened,
        agent: AgentHandle,
    ) -> crate::trace::import::tables::QueueHandle {
        let name = match (at.place.stream, at.place.queue) {
            (Some(stream), _) => match self.streams.get(&stream).map(|name| &name[..]) {
                Some("") | None => format!("stream {stream}"),
                Some(name) => name.to_owned(),
            },
            (None, Some(queue)) => match self.queues.get(&queue).map(|name| &name[..]) {
                Some("") | None => format!("queue {queue}"),
                Some(name) => name.to_owned(),
            },
            (None, None) => "queue".to_owned(),
        };
        let name = self.tables.text(&name);
        self.tables.queue(QueueRow {
            process: at.process,
            agent,
            context: 0,
            domain: Domain::HIP,
            stream: at.place.stream.unwrap_or(0) as u32,
            name,
        })
    }

    fn kernels(&mut self) {
        let columns = PlaceColumns {
            start: Dispatch::start as usize,
            end: Dispatch::end as usize,
            start_id: Dispatch::start_id as usize,
            end_id: Dispatch::end_id as usize,
            track: Dispatch::track as usize,
            process: Some(Dispatch::process as usize),
            thread: Some(Dispatch::thread as usize),
            agent: Some(Dispatch::agent as usize),
            queue: Some(Dispatch::queue as usize),
            stream: Some(Dispatch::stream as usize),
            event: Dispatch::event as usize,
        };
        self.each("kernel_dispatch", Dispatch::ALL, |run, row| {
            let at = run.happened(row, &columns)?;
            let dispatch = row.size(Dispatch::dispatch as usize)?;
            let (mut grid, mut workgroup) = ([0; 3], [0; 3]);
            let sizes = [Dispatch::grid_x, Dispatch::grid_y, Dispatch::grid_z];
            let groups = [Dispatch::group_x, Dispatch::group_y, Dispatch::group_z];
            for (dimension, (items, size)) in sizes.into_iter().zip(groups).enumerate() {
                grid[dimension] = row.size(items as usize)?;
                workgroup[dimension] = row.small(size as usize)?;
            }
            let kernel = row.int(Dispatch::kernel as usize)?.unwrap_or(0);
            let symbol = run.symbols.get(&kernel);
            let mut resources = Resources {
                registers: 0,
                static_local: row.small(Dispatch::group as usize)?,
                dynamic_local: 0,
                private: row.small(Dispatch::private as usize)?,
            };
            let mut numbers = Vec::new();
            let name = match symbol {
                Some(symbol) => {
                    resources.registers = symbol.registers;
                    numbers.push(("accum_vgpr_count", symbol.accumulation));
                    numbers.push(("sgpr_count", symbol.scalar));
                    symbol.name.clone()
                }
                None => format!("kernel {kernel}"),
            };
            numbers.push(("dispatch_id", dispatch as i64));
            numbers.push(("queue_id", at.place.queue.unwrap_or(0)));
            let mut first = Vec::new();
            for (name, value) in numbers.into_iter().filter(|(_, value)| *value != 0) {
                first.push((run.tables.text(name), ArgumentValue::Int(value)));
            }
            let region = run.string(row.int(Dispatch::region as usize)?);
            if region != TextId::default() {
                first.push((run.tables.text("region"), ArgumentValue::Text(region)));
            }
            let agent = run.agent(at.place.agent);
            let queue = run.queue(&at, agent);
            let stage = kernel_stage(run.tables, &name);
            let arguments = run.arguments(at.event, first);
            if let Some(event) = at.event {
                run.dispatches.insert(event, (at.process, dispatch));
            }
            run.tables.add_work(WorkRow {
                process: at.process,
                queue,
                stage,
                thread: at.thread,
                correlation: at.correlation,
                dispatch,
                start: at.start,
                end: at.end,
                bytes: 0,
                launch: (grid[0] != 0).then_some(Launch { grid, workgroup }),
                resources,
                arguments,
            });
            Ok(())
        });
    }

    fn copies(&mut self) {
        let columns = PlaceColumns {
            start: Transfer::start as usize,
            end: Transfer::end as usize,
            start_id: Transfer::start_id as usize,
            end_id: Transfer::end_id as usize,
            track: Transfer::track as usize,
            process: Some(Transfer::process as usize),
            thread: Some(Transfer::thread as usize),
            agent: None,
            queue: Some(Transfer::queue as usize),
            stream: Some(Transfer::stream as usize),
            event: Transfer::event as usize,
        };
        self.each("memory_copy", Transfer::ALL, |run, row| {
            let at = run.happened(row, &columns)?;
            let bytes = row.size(Transfer::size as usize)?;
            let name = run.string(row.int(Transfer::name as usize)?);
            let direction = run.tables.texts.get(name).to_owned();
            let kind = transfer(&direction);
            let from = run.agent(row.int(Transfer::from as usize)?);
            let to = run.agent(row.int(Transfer::to as usize)?);
            let agent = match kind {
                TransferKind::DEVICE_TO_HOST => from,
                _ => to,
            };
            let mut first = Vec::new();
            for (name, agent) in [("source", from), ("destination", to)] {
                if let Some(row) = run.tables.agents.get(agent.0 as usize) {
                    let title = row.agent.title.clone();
                    let title = ArgumentValue::Text(run.tables.text(&title));
                    first.push((run.tables.text(name), title));
                }
            }
            for (name, column) in [
                ("source_address", Transfer::from_address),
                ("destination_address", Transfer::to_address),
            ] {
                if let Some(address) = row.int(column as usize)?.filter(|value| *value != 0) {
                    let value = ArgumentValue::Pointer(address as u64);
                    first.push((run.tables.text(name), value));
                }
            }
            let queue = run.queue(&at, agent);
            let stage = match (kind, kind.name()) {
                (TransferKind::UNKNOWN, _) | (_, None) => {
                    run.tables
                        .stage(WorkKind::Copy, &direction.to_ascii_lowercase(), "")
                }
                (_, Some(name)) => run.tables.stage(WorkKind::Copy, name, ""),
            };
            let arguments = run.arguments(at.event, first);
            run.tables.add_work(WorkRow {
                process: at.process,
                queue,
                stage,
                thread: at.thread,
                correlation: at.correlation,
                dispatch: 0,
                start: at.start,
                end: at.end,
                bytes,
                launch: None,
                resources: Resources::default(),
                arguments,
            });
            Ok(())
        });
    }

    fn allocations(&mut self) {
        let columns = PlaceColumns {
            start: Allocation::start as usize,
            end: Allocation::end as usize,
            start_id: Allocation::start_id as usize,
            end_id: Allocation::end_id as usize,
            track: Allocation::track as usize,
            process: Some(Allocation::process as usize),
            thread: Some(Allocation::thread as usize),
            agent: Some(Allocation::agent as usize),
            queue: Some(Allocation::queue as usize),
            stream: None,
            event: Allocation::event as usize,
        };
        self.each("memory_allocate", Allocation::ALL, |run, row| {
            let at = run.happened(row, &columns)?;
            let kind = row
                .text(Allocation::kind as usize)?
                .unwrap_or("")
                .to_owned();
            let level = row
                .text(Allocation::level as usize)?
                .unwrap_or("")
                .to_owned();
            let address = row.int(Allocation::address as usize)?.unwrap_or(0) as u64;
            let bytes = row.size(Allocation::size as usize)?;
            let agent = run.agent(at.place.agent);
            let device = run.tables.agents.get(agent.0 as usize);
            let device = device.map(|row| row.agent.title.clone());
            let mut first = vec![
                (run.tables.text("bytes"), ArgumentValue::Uint(bytes)),
                (run.tables.text("address"), ArgumentValue::Pointer(address)),
            ];
            if let Some(device) = device {
                let device = ArgumentValue::Text(run.tables.text(&device));
                first.push((run.tables.text("device"), device));
            }
            let arguments = run.arguments(at.event, first);
            let name = format!(
                "{} {}",
                kind.to_ascii_lowercase(),
                level.to_ascii_lowercase()
            );
            let tables = &mut run.tables;
            let (name, category) = (tables.text(name.trim()), tables.text("memory allocation"));
            tables.add_host_in(
                Lane::Process(at.process, category),
                HostRow {
                    kind: HostKind::Slice(name, category),
                    start: at.start,
                    end: at.end,
                    correlation: at.correlation,
                    arguments,
                    ..HostRow::default()
                },
            );
            if level == "REAL" && matches!(&kind[..], "ALLOC" | "FREE") {
                tables.add_memory(MemoryRow {
                    process: at.process,
                    agent,
                    time: at.end,
                    address,
                    bytes,
                    freed: kind == "FREE",
                });
            }
            Ok(())
        });
    }

    /// Values of counters: those of one counter for several instances of a block are added up.
    fn counter_values(&mut self) {
        let mut sums: BTreeMap<(i64, i64), f64> = BTreeMap::new();
        self.each("pmc_event", Value::ALL, |run, row| {
            let event = row.known_int(Value::event as usize)?;
            let counter = row.known_int(Value::counter as usize)?;
            let value = row.number(Value::value as usize)?.unwrap_or(0.0);
            if run.dispatches.contains_key(&event) {
                *sums.entry((event, counter)).or_default() += value;
            } else {
                let reason = "values of counters that are of no dispatch";
                run.report.unrepresented(run.file, reason, None);
            }
            Ok(())
        });
        for ((event, counter), value) in sums {
            let (process, dispatch) = self.dispatches[&event];
            let counter = match self.counters.get(&counter) {
                Some(name) => *name,
                None => self.tables.text(&format!("counter {counter}")),
            };
            self.tables.add_dispatch_counter(DispatchCounterRow {
                process,
                dispatch,
                counter,
                value,
            });
        }
    }
}
