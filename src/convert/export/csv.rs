//! A writer of tables in CSV with the columns of rocprofv3, in one folder: `PID_kernel_trace.csv` and so on.
//!
//! The tables have no place for samples, counters over time, flows, notes and losses: [`CsvFolder::left_out`] counts them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use super::spans::{OpenSpans, Span};
use gputrail_record::{Nanos, ThreadId, TransferKind, spreadsheet_text};
use gputrail_trace::model::{
    Agent, AgentIndex, Call, Consumer, CounterBlock, CounterIndex, CounterValue, EventArgument,
    Instant, Loss, Note, Parent, Process, ProcessIndex, Samples, Slice, SliceEnd, StackSamples,
    Track, TrackIndex, TrackKind, Value, Work, WorkKind, category,
};

/// Maximum number of open files. A file that is closed for another one is opened again at its end.
const MAX_FILES: usize = 64;

const AGENTS: &[&str] = &[
    "Node_Id",
    "Logical_Node_Id",
    "Agent_Type",
    "Name",
    "Vendor_Name",
    "Product_Name",
    "Model_Name",
];
const COUNTED_RANGES: &[&str] = &[
    "Range_Name",
    "Agent",
    "Process_Id",
    "Counter_Name",
    "Counter_Value",
    "Start_Timestamp",
    "End_Timestamp",
];
const CALLS: &[&str] = &[
    "Domain",
    "Function",
    "Process_Id",
    "Thread_Id",
    "Correlation_Id",
    "Start_Timestamp",
    "End_Timestamp",
];
const KERNELS: &[&str] = &[
    "Kind",
    "Agent_Id",
    "Queue_Id",
    "Stream_Id",
    "Thread_Id",
    "Dispatch_Id",
    "Kernel_Id",
    "Kernel_Name",
    "Correlation_Id",
    "Start_Timestamp",
    "End_Timestamp",
    "LDS_Block_Size",
    "Scratch_Size",
    "VGPR_Count",
    "Accum_VGPR_Count",
    "SGPR_Count",
    "Workgroup_Size_X",
    "Workgroup_Size_Y",
    "Workgroup_Size_Z",
    "Grid_Size_X",
    "Grid_Size_Y",
    "Grid_Size_Z",
];
const COPIES: &[&str] = &[
    "Kind",
    "Direction",
    "Stream_Id",
    "Source_Agent_Id",
    "Destination_Agent_Id",
    "Thread_Id",
    "Correlation_Id",
    "Start_Timestamp",
    "End_Timestamp",
    "Copy_Bytes",
];
const COUNTERS: &[&str] = &[
    "Correlation_Id",
    "Dispatch_Id",
    "Agent_Id",
    "Queue_Id",
    "Process_Id",
    "Thread_Id",
    "Grid_Size",
    "Kernel_Id",
    "Kernel_Name",
    "Workgroup_Size",
    "LDS_Block_Size",
    "Scratch_Size",
    "VGPR_Count",
    "Accum_VGPR_Count",
    "SGPR_Count",
    "Counter_Name",
    "Counter_Value",
    "Start_Timestamp",
    "End_Timestamp",
];

/// A field of a row.
#[derive(Copy, Clone)]
enum CsvField<'a> {
    /// A text, in quotes.
    Text(&'a str),
    /// A number.
    Number(u64),
    /// A number with a fraction.
    Double(f64),
}

/// Writes the stream into a folder of CSV files.
pub struct CsvFolder {
    /// The folder; without one, events are only counted.
    root: Option<PathBuf>,
    files: HashMap<String, Option<OpenCsv>>,
    rows: u64,
    processes: Vec<u32>,
    tracks: Vec<(ProcessIndex, ThreadId)>,
    agents: Vec<Agent>,
    /// Agents that are in the table of a process.
    known_agents: BTreeSet<(u32, u32)>,
    /// Names of counters of agents, each with whether it has rows in the table of counters.
    counters: BTreeMap<String, bool>,
    /// Names of the counters of each block.
    blocks: HashMap<CounterIndex, Vec<String>>,
    /// The number of values over time of each counter. Counters that have rows beside kernels are not left out.
    values: BTreeMap<String, u64>,
    /// Numbers of kernels, by their names.
    kernels: HashMap<String, u64>,
    open: OpenSpans,
    left_out: u64,
}

struct OpenCsv {
    file: BufWriter<File>,
    /// When it was last written to.
    used: u64,
}

impl CsvFolder {
    /// Writes into the folder `root`, which exists and is empty.
    pub fn new(root: impl Into<PathBuf>) -> CsvFolder {
        CsvFolder {
            root: Some(root.into()),
            ..CsvFolder::nowhere()
        }
    }

    /// Writes nothing, and counts what the tables have no place for.
    pub fn nowhere() -> CsvFolder {
        CsvFolder {
            root: None,
            files: HashMap::new(),
            rows: 0,
            processes: Vec::new(),
            tracks: Vec::new(),
            agents: Vec::new(),
            known_agents: BTreeSet::new(),
            counters: BTreeMap::new(),
            blocks: HashMap::new(),
            values: BTreeMap::new(),
            kernels: HashMap::new(),
            open: OpenSpans::default(),
            left_out: 0,
        }
    }

    /// Number of events that these tables have no place for.
    pub fn left_out(&self) -> u64 {
        let values = self.values.iter();
        let over_time =
            values.filter(|(name, _)| !self.counters.get(*name).is_some_and(|has| *has));
        self.left_out + over_time.map(|(_, count)| count).sum::<u64>()
    }

    fn pid(&self, process: ProcessIndex) -> u32 {
        let pid = self.processes.get(process.0 as usize);
        pid.copied().unwrap_or(0)
    }

    /// Adds a row to a table of a process.
    fn row(
        &mut self,
        pid: u32,
        table: &str,
        columns: &[&str],
        fields: &[CsvField<'_>],
    ) -> io::Result<()> {
        debug_assert_eq!(columns.len(), fields.len());
        if self.root.is_none() {
            return Ok(());
        }
        let mut line = String::new();
        for (place, field) in fields.iter().enumerate() {
            if place > 0 {
                line.push(',');
            }
            let _ = match field {
                CsvField::Text(text) => {
                    write!(line, "\"{}\"", spreadsheet_text(text).replace('"', "\"\""))
                }
                CsvField::Number(number) => write!(line, "{number}"),
                CsvField::Double(number) => write!(line, "{number:.6}"),
            };
        }
        line.push('\n');
        let name = format!("{pid}_{table}.csv");
        self.rows += 1;
        if !matches!(self.files.get(&name), Some(Some(_))) {
            self.open(&name, columns)?;
        }
        if let Some(Some(open)) = self.files.get_mut(&name) {
            open.used = self.rows;
            open.file.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    fn open(&mut self, name: &str, columns: &[&str]) -> io::Result<()> {
        let open = self.files.values_mut().filter(|file| file.is_some());
        let open: Vec<_> = open.collect();
        if open.len() >= MAX_FILES {
            let used = |file: &Option<OpenCsv>| file.as_ref().map_or(0, |open| open.used);
            let oldest = open.into_iter().min_by_key(|file| used(file));
            if let Some(mut oldest) = oldest.and_then(Option::take) {
                oldest.file.flush()?;
            }
        }
        let Some(root) = &self.root else {
            return Ok(());
        };
        let path = root.join(name);
        let file = File::options().append(true).create(true).open(path)?;
        let mut file = BufWriter::new(file);
        if !self.files.contains_key(name) {
            let columns: Vec<_> = columns.iter().map(|name| format!("\"{name}\"")).collect();
            writeln!(file, "{}", columns.join(","))?;
        }
        let used = self.rows;
        self.files
            .insert(name.to_owned(), Some(OpenCsv { file, used }));
        Ok(())
    }

    /// Makes sure that a process has an agent in its table; the result is the agent's name in other tables.
    fn agent(&mut self, pid: u32, index: AgentIndex) -> io::Result<String> {
        let Some(agent) = self.agents.get(index.0 as usize).cloned() else {
            return Ok(String::new());
        };
        let label = format!("Agent {}", node(&agent, index));
        if self.known_agents.insert((pid, index.0)) {
            let number = node(&agent, index);
            let kind = agent.title.split(' ').next().unwrap_or("GPU");
            let name = match &*agent.architecture {
                "" => &agent.name,
                architecture => architecture,
            };
            let fields = [
                CsvField::Number(number),
                CsvField::Number(number),
                CsvField::Text(kind),
                CsvField::Text(name),
                CsvField::Text(&agent.vendor),
                CsvField::Text(&agent.name),
                CsvField::Text(&agent.model),
            ];
            self.row(pid, "agent_info", AGENTS, &fields)?;
        }
        Ok(label)
    }

    fn kernel(&mut self, name: &str) -> u64 {
        if let Some(number) = self.kernels.get(name) {
            return *number;
        }
        let number = self.kernels.len() as u64 + 1;
        self.kernels.insert(name.to_owned(), number);
        number
    }

    fn span(&mut self, span: &Span<'_>) -> io::Result<()> {
        let (pid, thread, table, domain) = match &span.call {
            Some(call) => {
                let table = call.domain.replace(' ', "_");
                let domain = format!("{}_API", table.to_ascii_uppercase());
                let table = format!("{table}_api_trace");
                (self.pid(call.process), call.thread, table, domain)
            }
            None => {
                let (process, thread) = self.place(span.track);
                let domain = match &*span.category {
                    category::MARKER | "" => "MARKER_CORE_API",
                    category => category,
                };
                let table = "marker_api_trace".to_owned();
                (self.pid(process), thread, table, domain.to_owned())
            }
        };
        let fields = [
            CsvField::Text(&domain),
            CsvField::Text(&span.name),
            CsvField::Number(pid.into()),
            CsvField::Number(thread.0.into()),
            CsvField::Number(span.correlation.0),
            CsvField::Number(span.start.0),
            CsvField::Number(span.end.map_or(0, |end| end.0)),
        ];
        self.row(pid, &table, CALLS, &fields)
    }

    fn place(&self, track: TrackIndex) -> (ProcessIndex, ThreadId) {
        let place = self.tracks.get(track.0 as usize);
        place.copied().unwrap_or_default()
    }

    /// Adds a row for each value of a range that was counted.
    fn write_counted_range(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        let (process, _) = self.place(slice.track);
        let pid = self.pid(process);
        let agent = slice.arguments.iter().find_map(|one| match one.value {
            Value::Text(agent) if one.name == "agent" => Some(agent),
            _ => None,
        });
        for argument in slice.arguments {
            let Some(has_rows) = self.counters.get_mut(argument.name) else {
                continue;
            };
            *has_rows = true;
            let value = match argument.value {
                Value::Uint(value) => value.to_string(),
                Value::Int(value) => value.to_string(),
                Value::Double(value) => value.to_string(),
                // The text of an invalid value is its reason.
                _ => continue,
            };
            let fields = [
                CsvField::Text(slice.name),
                CsvField::Text(agent.unwrap_or_default()),
                CsvField::Number(pid.into()),
                CsvField::Text(argument.name),
                CsvField::Text(&value),
                CsvField::Number(slice.start.0),
                CsvField::Number(slice.end.map_or(0, |end| end.0)),
            ];
            self.row(pid, "range_counters", COUNTED_RANGES, &fields)?;
        }
        Ok(())
    }

    fn write_kernel(&mut self, pid: u32, work: &Work<'_>) -> io::Result<()> {
        let agent = self.agent(pid, work.agent)?;
        let name = match work.stage.demangled {
            "" => work.stage.name,
            demangled => demangled,
        };
        // Numbers that a recording of rocprofv3 had stay what they were.
        let given = |name| number_argument(work, name);
        let kernel = given("kernel_id").unwrap_or_else(|| self.kernel(name));
        let queue = given("queue_id").unwrap_or(work.queue.0.into());
        let resources = &work.resources;
        let [accumulators, scalars] =
            [resources.accumulation_registers, resources.scalar_registers].map(u64::from);
        let (start, end) = interval(work);
        let launch = work.launch.unwrap_or_default();
        let [fixed, dynamic] =
            [work.resources.static_local, work.resources.dynamic_local].map(u64::from);
        let local = fixed + dynamic;
        let event = work.event.map_or(0, |event| event.0);
        let dispatch = given("dispatch_id").unwrap_or(event);
        let [x, y, z] = launch.workgroup.map(u64::from);
        let fields = [
            CsvField::Text("KERNEL_DISPATCH"),
            CsvField::Text(&agent),
            CsvField::Number(queue),
            CsvField::Number(work.stream.into()),
            CsvField::Number(work.thread.0.into()),
            CsvField::Number(dispatch),
            CsvField::Number(kernel),
            CsvField::Text(name),
            CsvField::Number(work.correlation.0),
            CsvField::Number(start),
            CsvField::Number(end),
            CsvField::Number(local),
            CsvField::Number(work.resources.private.into()),
            CsvField::Number(work.resources.registers.into()),
            CsvField::Number(accumulators),
            CsvField::Number(scalars),
            CsvField::Number(x),
            CsvField::Number(y),
            CsvField::Number(z),
            CsvField::Number(launch.grid[0]),
            CsvField::Number(launch.grid[1]),
            CsvField::Number(launch.grid[2]),
        ];
        self.row(pid, "kernel_trace", KERNELS, &fields)?;
        // Tables of counters have sizes as one number, which is an argument of work that no other table describes.
        let product = |sizes: [u64; 3]| sizes.iter().copied().fold(1, u64::saturating_mul);
        let [grid, workgroup] = match work.launch {
            Some(launch) => [product(launch.grid), product([x, y, z])],
            None => ["grid_size", "workgroup_size"].map(|name| given(name).unwrap_or(0)),
        };
        for argument in work.arguments {
            let Some(has_rows) = self.counters.get_mut(argument.name) else {
                continue;
            };
            let Some(value) = number(argument) else {
                continue;
            };
            *has_rows = true;
            let fields = [
                CsvField::Number(work.correlation.0),
                CsvField::Number(dispatch),
                CsvField::Text(&agent),
                CsvField::Number(queue),
                CsvField::Number(pid.into()),
                CsvField::Number(work.thread.0.into()),
                CsvField::Number(grid),
                CsvField::Number(kernel),
                CsvField::Text(name),
                CsvField::Number(workgroup),
                CsvField::Number(local),
                CsvField::Number(work.resources.private.into()),
                CsvField::Number(work.resources.registers.into()),
                CsvField::Number(accumulators),
                CsvField::Number(scalars),
                CsvField::Text(argument.name),
                CsvField::Double(value),
                CsvField::Number(start),
                CsvField::Number(end),
            ];
            self.row(pid, "counter_collection", COUNTERS, &fields)?;
        }
        Ok(())
    }

    /// Copies, and all other work that is no kernel.
    fn write_copy(&mut self, pid: u32, work: &Work<'_>) -> io::Result<()> {
        let agent = self.agent(pid, work.agent)?;
        let (start, end) = interval(work);
        let direction = match TransferKind::from_name(work.stage.name) {
            Some(TransferKind::HOST_TO_DEVICE) => "MEMORY_COPY_HOST_TO_DEVICE",
            Some(TransferKind::DEVICE_TO_HOST) => "MEMORY_COPY_DEVICE_TO_HOST",
            Some(TransferKind::DEVICE_TO_DEVICE) => "MEMORY_COPY_DEVICE_TO_DEVICE",
            Some(TransferKind::HOST_TO_HOST) => "MEMORY_COPY_HOST_TO_HOST",
            _ => work.stage.name,
        };
        let [from, to] = match direction {
            "MEMORY_COPY_DEVICE_TO_HOST" => [&*agent, ""],
            "MEMORY_COPY_DEVICE_TO_DEVICE" => [&*agent, &*agent],
            _ => ["", &*agent],
        };
        let kind = match work.stage.kind {
            WorkKind::Copy => "MEMORY_COPY",
            WorkKind::Set => "MEMORY_SET",
            WorkKind::Graph => "GRAPH",
            _ => "SYNCHRONIZATION",
        };
        let fields = [
            CsvField::Text(kind),
            CsvField::Text(direction),
            CsvField::Number(work.stream.into()),
            CsvField::Text(from),
            CsvField::Text(to),
            CsvField::Number(work.thread.0.into()),
            CsvField::Number(work.correlation.0),
            CsvField::Number(start),
            CsvField::Number(end),
            CsvField::Number(work.bytes),
        ];
        self.row(pid, "memory_copy_trace", COPIES, &fields)
    }
}

/// When work ran; zeros if that is not known, as rocprofv3 writes it.
fn interval(work: &Work<'_>) -> (u64, u64) {
    work.measured()
        .map_or((0, 0), |(start, end)| (start.0, end.0))
}

/// The number by which tables call an agent: that of the recording, if it has one.
fn node(agent: &Agent, index: AgentIndex) -> u64 {
    let attributes = agent.attributes.iter();
    let node = attributes.filter(|(name, _)| name == "Node_Id");
    let node = node.map(|(_, value)| &**value).next();
    let node = node.or_else(|| agent.name.strip_prefix("Agent "));
    let node = node.and_then(|node| node.parse().ok());
    node.unwrap_or(index.0.into())
}

/// A number among the arguments of work. Traces have them as texts.
fn number_argument(work: &Work<'_>, name: &str) -> Option<u64> {
    let mut arguments = work.arguments.iter();
    match arguments.find(|argument| argument.name == name)?.value {
        Value::Uint(number) => Some(number),
        Value::Int(number) => u64::try_from(number).ok(),
        Value::Text(text) => text.parse().ok(),
        _ => None,
    }
}

fn number(argument: &EventArgument<'_>) -> Option<f64> {
    match argument.value {
        Value::Uint(value) => Some(value as f64),
        Value::Int(value) => Some(value as f64),
        Value::Double(value) => Some(value),
        // Traces have the values beside kernels as texts.
        Value::Text(text) => text.parse().ok().filter(|value: &f64| value.is_finite()),
        _ => None,
    }
}

impl Consumer for CsvFolder {
    gputrail_trace::leave_out!(clocks attributes queue stack);

    fn agents(&mut self, first: AgentIndex, agents: &[Agent]) -> io::Result<()> {
        self.agents.truncate(first.0 as usize);
        self.agents.extend_from_slice(agents);
        Ok(())
    }

    fn process(&mut self, _: ProcessIndex, process: &Process<'_>) -> io::Result<()> {
        self.processes.push(process.pid.0);
        Ok(())
    }

    fn track(&mut self, _: TrackIndex, track: &Track<'_>) -> io::Result<()> {
        let last = ProcessIndex((self.processes.len() as u32).saturating_sub(1));
        let place = match (track.kind, track.parent) {
            (TrackKind::Thread(process, thread) | TrackKind::ThreadRanges(process, thread), _) => {
                (process, thread)
            }
            (_, Parent::Process(process)) => (process, ThreadId::default()),
            (_, Parent::Track(parent)) => self.place(parent),
            (_, Parent::Trace) => (last, ThreadId::default()),
        };
        self.tracks.push(place);
        Ok(())
    }

    fn counters(&mut self, index: CounterIndex, block: &CounterBlock) -> io::Result<()> {
        let names = block.counters.iter().map(|counter| counter.name.clone());
        let names: Vec<String> = names.collect();
        for name in &names {
            self.counters.entry(name.clone()).or_default();
        }
        self.blocks.insert(index, names);
        Ok(())
    }

    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        self.left_out += call.flows.len() as u64;
        match self.open.begin(Span::of_call(call), call.open) {
            Some(span) => self.span(&span),
            None => Ok(()),
        }
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        self.left_out += slice.flows.len() as u64;
        if slice.category == category::COUNTED_RANGE {
            return self.write_counted_range(slice);
        }
        match self.open.begin(Span::of_slice(slice), slice.open) {
            Some(span) => self.span(&span),
            None => Ok(()),
        }
    }

    fn end(&mut self, track: TrackIndex, end: Nanos) -> io::Result<()> {
        self.end_slice(&SliceEnd {
            track,
            time: end,
            arguments: &[],
            flows: &[],
        })
    }

    fn end_slice(&mut self, end: &SliceEnd<'_>) -> io::Result<()> {
        self.left_out += end.flows.len() as u64;
        match self.open.end(end) {
            Some(span) => self.span(&span),
            None => Ok(()),
        }
    }

    fn instant(&mut self, instant: &Instant<'_>) -> io::Result<()> {
        self.left_out += instant.flows.len() as u64;
        let (process, thread) = self.place(instant.track);
        let pid = self.pid(process);
        let fields = [
            CsvField::Text("MARKER_CORE_API"),
            CsvField::Text(instant.name),
            CsvField::Number(pid.into()),
            CsvField::Number(thread.0.into()),
            CsvField::Number(0),
            CsvField::Number(instant.time.0),
            CsvField::Number(instant.time.0),
        ];
        self.row(pid, "marker_api_trace", CALLS, &fields)
    }

    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        let pid = self.pid(work.process);
        match work.stage.kind {
            WorkKind::Kernel => self.write_kernel(pid, work),
            _ => self.write_copy(pid, work),
        }
    }

    fn value(&mut self, _: TrackIndex, _: Nanos, _: CounterValue) -> io::Result<()> {
        self.left_out += 1;
        Ok(())
    }

    fn counter_values(
        &mut self,
        block: CounterIndex,
        _: Nanos,
        values: &[CounterValue],
    ) -> io::Result<()> {
        let names = self.blocks.get(&block).map_or(&[][..], |names| names);
        for (place, _) in values.iter().enumerate() {
            let name = names.get(place).map_or("", |name| name);
            match self.values.get_mut(name) {
                Some(count) => *count += 1,
                None => drop(self.values.insert(name.to_owned(), 1)),
            }
        }
        Ok(())
    }

    fn derived_value(&mut self, _: TrackIndex, _: Nanos, _: CounterValue) -> io::Result<()> {
        Ok(())
    }

    fn derived_values(&mut self, _: CounterIndex, _: Nanos, _: &[CounterValue]) -> io::Result<()> {
        Ok(())
    }

    fn samples(&mut self, samples: &Samples) -> io::Result<()> {
        self.left_out += samples.raw.len() as u64;
        Ok(())
    }

    fn stack_samples(&mut self, samples: &StackSamples<'_>) -> io::Result<()> {
        self.left_out += samples.samples.len() as u64;
        Ok(())
    }

    fn loss(&mut self, _: &Loss) -> io::Result<()> {
        self.left_out += 1;
        Ok(())
    }

    fn note(&mut self, _: &Note<'_>) -> io::Result<()> {
        self.left_out += 1;
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let rest: Vec<_> = self.open.rest().collect();
        for span in rest {
            self.span(&span)?;
        }
        for file in self.files.values_mut().flatten() {
            file.file.flush()?;
        }
        Ok(())
    }
}
