//! rocprofv3's databases (rocpd, SQLite).
//!
//! A database has the tables of one run or, merged, of several: the names of the tables of each end in its id. Two
//! generations of the schema are in use: in the older one rows have their process, device and times themselves; in the
//! newer one a track holds the process, device and queue, and a table holds all times. A run has a database for each
//! process; they are read together. Times are nanoseconds of CLOCK_BOOTTIME.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;

use super::{calls, kernels, memory};
use crate::import::row::{Damage, Row, RowRest, rows};
use crate::import::sqlite::Database;
use crate::import::table_source::TableInfo;
use crate::import::tables::{
    AgentHandle, AgentRow, AllocationRow, ArgumentRange, ArgumentValue, DispatchCounterRow,
    HostKind, HostLane, HostRow, ProcessHandle, ProcessRow, QueueHandle, QueueRow, Tables,
    TextHandle, WorkRow,
};
use crate::import::{Allowance, InputFile, Report};
use gputrail_record::Domain;
use gputrail_trace::model::{Agent, Consumer, Launch, Resources};

/// Devices that are compared, to find those that several databases name.
const MAX_COMPARED: usize = 256;
/// The beginning of the names of all tables.
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

rows! {
    Text<'r> {
        id: i64 = "id",
        value: Option<&'r str> = "string",
    }

    Node<'r> {
        host: &'r str = "hostname",
        system: &'r str = "system_name",
        release: &'r str = "release",
        version: &'r str = "version",
        hardware: &'r str = "hardware_name",
    }

    Process<'r> {
        id: i64 = "id",
        pid: u32 = "pid",
        command: &'r str = "command",
    }

    Thread<'r> {
        id: i64 = "id",
        tid: u32 = "tid",
        process: Option<i64> = "pid",
        name: &'r str = "name",
    }

    Device<'r> {
        id: i64 = "id",
        kind: &'r str = "type",
        absolute: Option<i64> = "absolute_index",
        index: Option<i64> = "type_index",
        name: &'r str = "name",
        generic: &'r str = "generic_name",
        model: &'r str = "model_name",
        vendor: &'r str = "vendor_name",
        product: &'r str = "product_name",
    }

    /// A queue, a stream or a counter.
    Named<'r> {
        id: i64 = "id",
        name: &'r str = "name",
    }

    Symbol<'r> {
        id: i64 = "id",
        name: &'r str = "kernel_name",
        display: &'r str = "display_name",
        registers: u32 = "arch_vgpr_count",
        accumulation: u32 = "accum_vgpr_count",
        scalar: u32 = "sgpr_count",
    }

    Track {
        id: i64 = "id",
        process: Option<i64> = "pid",
        thread: Option<i64> = "tid",
        agent: Option<i64> = "agent_id",
        queue: Option<i64> = "queue_id",
        stream: Option<i64> = "stream_id",
        name: Option<i64> = "name_id",
    }

    Time {
        id: i64 = "id",
        value: u64 = "value",
    }

    Event {
        id: i64 = "id",
        category: Option<i64> = "category_id",
        stack: u64 = "stack_id",
        external: u64 = "correlation_id",
    }

    Argument<'r> {
        event: i64 = "event_id",
        name: &'r str = "name",
        value: &'r str = "value",
    }

    CounterValue {
        event: i64 = "event_id",
        counter: i64 = "pmc_id",
        value: Option<f64> = "value",
    }

    /// The columns that say when and where an event happened. Rows have them themselves, or name a track and two times.
    Common {
        start: Option<u64> = "start|timestamp",
        end: Option<u64> = "end|timestamp",
        start_id: Option<i64> = "start_id|timestamp_id",
        end_id: Option<i64> = "end_id|timestamp_id",
        track: Option<i64> = "track_id",
        process: Option<i64> = "pid",
        thread: Option<i64> = "tid",
        agent: Option<i64> = "agent_id",
        queue: Option<i64> = "queue_id",
        stream: Option<i64> = "stream_id",
        event: Option<i64> = "event_id",
        name: Option<i64> = "name_id",
    }

    Dispatch {
        kernel: Option<i64> = "kernel_id",
        dispatch: u64 = "dispatch_id",
        private: u32 = "private_segment_size",
        group: u32 = "group_segment_size",
        group_x: u32 = "workgroup_size_x",
        group_y: u32 = "workgroup_size_y",
        group_z: u32 = "workgroup_size_z",
        grid_x: u64 = "grid_size_x",
        grid_y: u64 = "grid_size_y",
        grid_z: u64 = "grid_size_z",
        region: Option<i64> = "region_name_id",
    }

    Transfer {
        destination: Option<i64> = "dst_agent_id",
        destination_address: Option<i64> = "dst_address",
        source: Option<i64> = "src_agent_id",
        source_address: Option<i64> = "src_address",
        size: u64 = "size",
    }

    Allocation<'r> {
        kind: &'r str = "type",
        level: &'r str = "level",
        address: Option<i64> = "address",
        size: u64 = "size",
    }
}

/// Whether a database is one of rocprofv3. Databases of rocmProfileData have some tables with the same names.
pub(in crate::import) fn is_rocpd(database: &Database) -> bool {
    let runs = runs(database);
    let mut tables = runs.values().flat_map(HashMap::keys);
    tables.any(|name| !matches!(*name, "metadata" | "string"))
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
pub(in crate::import) fn read(
    sources: &[(&InputFile, Database)],
    allowance: Allowance,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let mut tables = Tables::new(allowance);
    for (source, database) in sources {
        for run in runs(database).into_values() {
            RocpdRun {
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

/// When and where an event happened, as its row or its track says.
struct Happened {
    start: u64,
    end: u64,
    process: ProcessHandle,
    thread: u32,
    agent: AgentHandle,
    queue: Option<i64>,
    stream: Option<i64>,
    /// Its name, and that of its track.
    name: TextHandle,
    track_name: TextHandle,
    event: Option<i64>,
    correlation: u64,
    external: u64,
    category: TextHandle,
}

impl Happened {
    /// The part of a row of work that all work has.
    fn work(&self) -> WorkRow {
        WorkRow {
            process: self.process,
            thread: self.thread,
            correlation: self.correlation,
            start: self.start,
            end: self.end,
            ..WorkRow::default()
        }
    }
}

/// A kernel.
struct RocpdKernel {
    name: String,
    registers: u32,
    accumulation: u32,
    scalar: u32,
}

/// A run that is being read. Maps are by the ids of its tables.
struct RocpdRun<'r> {
    file: &'r Path,
    database: &'r Database,
    of: HashMap<&'static str, &'r TableInfo>,
    tables: &'r mut Tables,
    report: &'r mut Report,
    texts: HashMap<i64, TextHandle>,
    processes: HashMap<i64, ProcessHandle>,
    threads: HashMap<i64, u32>,
    agents: HashMap<i64, AgentHandle>,
    /// Names of queues and streams, by their tables.
    queues: HashMap<(&'static str, i64), String>,
    counters: HashMap<i64, TextHandle>,
    symbols: HashMap<i64, RocpdKernel>,
    tracks: HashMap<i64, Track>,
    times: HashMap<i64, u64>,
    /// Category, correlation id and external id.
    events: HashMap<i64, (TextHandle, u64, u64)>,
    /// Arguments of events.
    arguments: HashMap<i64, Vec<(TextHandle, ArgumentValue)>>,
    /// Dispatches by their events.
    dispatches: HashMap<i64, (ProcessHandle, u64)>,
}

impl RocpdRun<'_> {
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
        columns: &[&str],
        mut each: impl FnMut(&mut Self, &dyn Row) -> Result<(), Damage>,
    ) {
        if let Some(info) = self.of.get(table).copied() {
            let database = self.database;
            let damages = database.rows(info, columns, |row| each(self, row));
            damages.report(self.file, self.report);
        }
    }

    /// Calls `each` with every row of a table of events: when and where it happened, and its values of `columns`.
    fn events(
        &mut self,
        table: &'static str,
        columns: &[&'static str],
        mut each: impl FnMut(&mut Self, &Happened, &dyn Row) -> Result<(), Damage>,
    ) {
        let columns = [Common::COLUMNS, columns].concat();
        self.each(table, &columns, |run, row| {
            let happened = run.happened(row)?;
            each(run, &happened, &RowRest(row, Common::COLUMNS.len()))
        });
    }

    fn names(&mut self) {
        self.each("string", Text::COLUMNS, |run, row| {
            let text = Text::read(row)?;
            if let Some(value) = text.value {
                let value = run.tables.text(value);
                run.texts.insert(text.id, value);
            }
            Ok(())
        });
        self.each("info_node", Node::COLUMNS, |run, row| {
            let node = Node::read(row)?;
            let machine = &mut run.tables.header.machine;
            machine.host = node.host.to_owned();
            machine.system = node.system.to_owned();
            machine.release = node.release.to_owned();
            machine.version = node.version.to_owned();
            machine.architecture = node.hardware.to_owned();
            Ok(())
        });
        self.each("info_process", Process::COLUMNS, |run, row| {
            let process = Process::read(row)?;
            let words = process.command.split_whitespace().map(str::to_owned);
            let words: Vec<String> = words.collect();
            let name = words.first().and_then(|word| word.rsplit('/').next());
            let name = name.filter(|name| !name.is_empty()).unwrap_or("process");
            let handle = run.tables.process(ProcessRow {
                pid: process.pid,
                name: name.to_owned(),
                rank: String::new(),
                command: words,
            });
            run.processes.insert(process.id, handle);
            Ok(())
        });
        self.each("info_thread", Thread::COLUMNS, |run, row| {
            let thread = Thread::read(row)?;
            run.threads.insert(thread.id, thread.tid);
            let process = run.process(thread.process);
            if !thread.name.is_empty() {
                let key = (process, thread.tid);
                run.tables.threads.insert(key, thread.name.to_owned());
            }
            Ok(())
        });
    }

    fn devices(&mut self) {
        self.each("info_agent", Device::COLUMNS, |run, row| {
            let device = Device::read(row)?;
            let index = device.index.or(device.absolute).unwrap_or(device.id);
            let kind = if device.kind.is_empty() {
                "Agent"
            } else {
                device.kind
            };
            let agent = Agent {
                title: format!("{kind} {index}"),
                name: device.product.to_owned(),
                vendor: device.vendor.to_owned(),
                model: device.model.to_owned(),
                architecture: match device.generic {
                    "" => device.name,
                    generic => generic,
                }
                .to_owned(),
                pci_address: String::new(),
                attributes: vec![("kind".to_owned(), device.kind.to_owned())],
            };
            // The databases of a run name the same devices.
            let mut known = run.tables.agents.iter().take(MAX_COMPARED);
            let handle = match known.position(|row| row.agent == agent) {
                Some(place) => AgentHandle(place as u32),
                None => run.tables.agent(AgentRow {
                    agent,
                    compute_units: 0,
                }),
            };
            run.agents.insert(device.id, handle);
            Ok(())
        });
        for table in ["info_queue", "info_stream"] {
            self.each(table, Named::COLUMNS, |run, row| {
                let Named { id, name } = Named::read(row)?;
                run.queues.insert((table, id), name.to_lowercase());
                Ok(())
            });
        }
        self.each("info_pmc", Named::COLUMNS, |run, row| {
            let Named { id, name } = Named::read(row)?;
            let name = run.tables.text(name);
            run.counters.insert(id, name);
            Ok(())
        });
        self.each("info_kernel_symbol", Symbol::COLUMNS, |run, row| {
            let symbol = Symbol::read(row)?;
            let name = match symbol.display {
                "" => symbol.name,
                display => display,
            };
            let kernel = RocpdKernel {
                name: name.to_owned(),
                registers: symbol.registers,
                accumulation: symbol.accumulation,
                scalar: symbol.scalar,
            };
            run.symbols.insert(symbol.id, kernel);
            Ok(())
        });
    }

    /// Tables that others refer to.
    fn links(&mut self) {
        self.each("track", Track::COLUMNS, |run, row| {
            let track = Track::read(row)?;
            run.tracks.insert(track.id, track);
            Ok(())
        });
        self.each("timestamp", Time::COLUMNS, |run, row| {
            let Time { id, value } = Time::read(row)?;
            run.times.insert(id, value);
            Ok(())
        });
        self.each("event", Event::COLUMNS, |run, row| {
            let event = Event::read(row)?;
            let category = run.string(event.category);
            let value = (category, event.stack, event.external);
            run.events.insert(event.id, value);
            Ok(())
        });
        self.each("arg", Argument::COLUMNS, |run, row| {
            let argument = Argument::read(row)?;
            let name = run.tables.text(argument.name);
            let value = ArgumentValue::Text(run.tables.text(argument.value));
            let arguments = run.arguments.entry(argument.event).or_default();
            arguments.push((name, value));
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

    fn string(&self, id: Option<i64>) -> TextHandle {
        let known = id.and_then(|id| self.texts.get(&id));
        known.copied().unwrap_or_default()
    }

    fn agent(&self, id: Option<i64>) -> AgentHandle {
        let known = id.and_then(|id| self.agents.get(&id));
        known.copied().unwrap_or(AgentHandle::UNKNOWN)
    }

    /// A time that stands in its row, or in the table of times under the id in the column at `place`.
    fn time(
        &self,
        row: &dyn Row,
        time: Option<u64>,
        (id, place): (Option<i64>, usize),
    ) -> Result<u64, Damage> {
        if let Some(time) = time {
            return Ok(time);
        }
        let known = id.and_then(|id| self.times.get(&id).copied());
        known.ok_or_else(|| row.damage(place, "an id of the table of times"))
    }

    fn happened(&mut self, row: &dyn Row) -> Result<Happened, Damage> {
        let at = Common::read(row)?;
        let start = self.time(row, at.start, (at.start_id, 2))?;
        let end = self.time(row, at.end, (at.end_id, 3))?;
        let track = at.track.and_then(|track| self.tracks.get(&track));
        let of_track = |field: fn(&Track) -> Option<i64>| track.and_then(field);
        let process = at.process.or(of_track(|track| track.process));
        let thread = at.thread.or(of_track(|track| track.thread)).unwrap_or(0);
        let agent = at.agent.or(of_track(|track| track.agent));
        let queue = at.queue.or(of_track(|track| track.queue));
        let stream = at.stream.or(of_track(|track| track.stream));
        let track_name = of_track(|track| track.name);
        let event = at.event.and_then(|event| self.events.get(&event));
        let (category, correlation, external) = event.copied().unwrap_or_default();
        Ok(Happened {
            start,
            end,
            process: self.process(process),
            thread: self.threads.get(&thread).copied().unwrap_or(thread as u32),
            agent: self.agent(agent),
            queue,
            stream,
            name: self.string(at.name),
            track_name: self.string(track_name),
            event: at.event,
            correlation,
            external,
            category,
        })
    }

    /// The arguments of an event, after `first`.
    fn arguments(
        &mut self,
        event: Option<i64>,
        first: Vec<(TextHandle, ArgumentValue)>,
    ) -> ArgumentRange {
        let of_event = event.and_then(|event| self.arguments.remove(&event));
        let all = first.into_iter().chain(of_event.into_iter().flatten());
        self.tables.arguments(all)
    }

    /// Calls, markers and ranges.
    fn regions(&mut self) {
        self.events("region", &[], |run, at, _| {
            let category = run.tables.texts.get(at.category).to_owned();
            let arguments = run.arguments(at.event, Vec::new());
            let (lane, kind) = calls::of_domain(
                run.tables,
                (at.process, at.thread),
                &category,
                (at.name, arguments),
                (at.start == at.end, None),
            );
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
        self.events("sample", &[], |run, at, _| {
            let name = if at.name == TextHandle::default() {
                at.track_name
            } else {
                at.name
            };
            let lane = if at.track_name == TextHandle::default() {
                run.tables.text("samples")
            } else {
                at.track_name
            };
            let arguments = run.arguments(at.event, Vec::new());
            run.tables.add_host_in(
                HostLane::Process(at.process, lane),
                HostRow {
                    kind: HostKind::Instant(name, lane),
                    start: at.start,
                    end: at.start,
                    arguments,
                    ..HostRow::default()
                },
            );
            Ok(())
        });
    }

    /// The queue of work: that of its stream, if it has one.
    fn queue(&mut self, at: &Happened, agent: AgentHandle) -> QueueHandle {
        let (table, id, label) = match (at.stream, at.queue) {
            (Some(stream), _) => ("info_stream", stream, format!("stream {stream}")),
            (None, Some(queue)) => ("info_queue", queue, format!("queue {queue}")),
            (None, None) => ("info_queue", -1, "queue".to_owned()),
        };
        let name = self.queues.get(&(table, id)).map_or("", |name| name);
        let name = self
            .tables
            .text(if name.is_empty() { &label } else { name });
        self.tables.queue(QueueRow {
            process: at.process,
            agent,
            context: 0,
            domain: Domain::HIP,
            stream: at.stream.unwrap_or(0) as u32,
            name,
        })
    }

    fn kernels(&mut self) {
        self.events("kernel_dispatch", Dispatch::COLUMNS, |run, at, row| {
            let dispatch = Dispatch::read(row)?;
            let kernel = dispatch.kernel.unwrap_or(0);
            let mut resources = Resources {
                static_local: dispatch.group,
                private: dispatch.private,
                ..Resources::default()
            };
            let mut numbers = Vec::new();
            let name = match run.symbols.get(&kernel) {
                Some(symbol) => {
                    resources.registers = symbol.registers;
                    resources.accumulation_registers = symbol.accumulation;
                    resources.scalar_registers = symbol.scalar;
                    symbol.name.clone()
                }
                None => format!("kernel {kernel}"),
            };
            numbers.push(("dispatch_id", Some(dispatch.dispatch as i64)));
            numbers.push(("kernel_id", dispatch.kernel));
            numbers.push(("queue_id", at.queue));
            let mut first = run.tables.numbers(&numbers);
            let region = run.string(dispatch.region);
            if region != TextHandle::default() {
                first.push((run.tables.text("region"), ArgumentValue::Text(region)));
            }
            let queue = run.queue(at, at.agent);
            let stage = kernels::stage(run.tables, &name);
            let arguments = run.arguments(at.event, first);
            if let Some(event) = at.event {
                let counted = (at.process, dispatch.dispatch);
                run.dispatches.insert(event, counted);
            }
            run.tables.add_work(WorkRow {
                queue,
                stage,
                dispatch: dispatch.dispatch,
                launch: (dispatch.grid_x != 0).then_some(Launch {
                    grid: [dispatch.grid_x, dispatch.grid_y, dispatch.grid_z],
                    workgroup: [dispatch.group_x, dispatch.group_y, dispatch.group_z],
                }),
                resources,
                arguments,
                ..at.work()
            });
            Ok(())
        });
    }

    fn copies(&mut self) {
        self.events("memory_copy", Transfer::COLUMNS, |run, at, row| {
            let copy = Transfer::read(row)?;
            let direction = run.tables.texts.get(at.name).to_owned();
            let (stage, from_source) = memory::copy_stage(run.tables, &direction);
            let [source, destination] = [copy.source, copy.destination].map(|id| run.agent(id));
            let agent = if from_source { source } else { destination };
            let mut first = Vec::new();
            for (name, agent) in [("source", source), ("destination", destination)] {
                if let Some(title) = run.tables.agent_title(agent) {
                    first.push((run.tables.text(name), ArgumentValue::Text(title)));
                }
            }
            for (name, address) in [
                ("source_address", copy.source_address),
                ("destination_address", copy.destination_address),
            ] {
                if let Some(address) = address.filter(|value| *value != 0) {
                    let value = ArgumentValue::Pointer(address as u64);
                    first.push((run.tables.text(name), value));
                }
            }
            let queue = run.queue(at, agent);
            let arguments = run.arguments(at.event, first);
            run.tables.add_work(WorkRow {
                queue,
                stage,
                bytes: copy.size,
                arguments,
                ..at.work()
            });
            Ok(())
        });
    }

    fn allocations(&mut self) {
        self.events("memory_allocate", Allocation::COLUMNS, |run, at, row| {
            let allocation = Allocation::read(row)?;
            let mut arguments = Vec::new();
            if let Some(title) = run.tables.agent_title(at.agent) {
                arguments.push((run.tables.text("device"), ArgumentValue::Text(title)));
            }
            let of_event = at.event.and_then(|event| run.arguments.remove(&event));
            arguments.extend(of_event.into_iter().flatten());
            let name = format!("{} {}", allocation.kind, allocation.level).to_ascii_lowercase();
            let is_real = allocation.level == "REAL";
            run.tables.add_allocation(AllocationRow {
                process: at.process,
                agent: at.agent,
                name: name.trim(),
                start: at.start,
                end: Some(at.end),
                correlation: at.correlation,
                address: allocation.address.unwrap_or(0) as u64,
                bytes: allocation.size,
                freed: match allocation.kind {
                    "ALLOC" if is_real => Some(false),
                    "FREE" if is_real => Some(true),
                    _ => None,
                },
                arguments,
            });
            Ok(())
        });
    }

    /// Values of counters: those of one counter for several instances of a block are added up.
    fn counter_values(&mut self) {
        let mut sums: BTreeMap<(i64, i64), f64> = BTreeMap::new();
        self.each("pmc_event", CounterValue::COLUMNS, |run, row| {
            let value = CounterValue::read(row)?;
            if run.dispatches.contains_key(&value.event) {
                let sum = sums.entry((value.event, value.counter)).or_default();
                *sum += value.value.unwrap_or(0.0);
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
