//! The tables of a profiler.
//!
//! Profilers write tables: one of calls, one of kernels, one of counters, each in an order of its own. A reader adds their
//! rows to [`Tables`] in any order. [`Tables::pass_on`] then sorts them, ties calls to the work they submitted by
//! their correlation ids, gives work that overlaps rows of its own, and passes all of it on as the
//! [model of a trace](gputrail_trace::model). Rows go to sorters, which write what exceeds their budget to temporary files;
//! names, devices, tracks and instructions are in memory, each once.

#![cfg_attr(not(feature = "sqlite"), allow(dead_code))] // Only databases have some kinds of rows.

mod allocation;
mod join;
mod pack;
mod pass_on;
mod rows;
mod samples;
mod texts;

use std::collections::HashMap;

use crate::import::Allowance;
pub(crate) use allocation::AllocationRow;
use gputrail_code::aggregate::WaveOutcome;
use gputrail_record::{Domain, OperationGroup};
use gputrail_trace::model::{Agent, CounterUnit, Launch, Resources, TraceHeader, WorkKind};
use join::RecordingRows;
pub(crate) use texts::{TableTexts, TextHandle};

/// The time of an event that did not end.
pub(crate) const NO_END: u64 = u64::MAX;
/// Work that runs longer than a day is taken for a damaged record.
const MAX_DURATION: u64 = 86_400_000_000_000;

/// Handles of what [`Tables`] hold, by its place there.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) struct $name(pub u32);
    )*};
}

handles! {
    /// A process.
    ProcessHandle;
    /// A device.
    AgentHandle;
    /// A queue of a device.
    QueueHandle;
    /// A track of the host.
    LaneHandle;
    /// A kernel, or a kind of copy or fill.
    StageHandle;
    /// A function.
    FunctionHandle;
    /// A counter that stands by itself.
    CounterHandle;
    /// An instruction that was sampled.
    PlaceHandle;
}

impl AgentHandle {
    /// A device that the tables do not name.
    pub const UNKNOWN: AgentHandle = AgentHandle(u32::MAX);
}

/// A process.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessRow {
    pub pid: u32,
    pub name: String,
    pub rank: String,
    pub command: Vec<String>,
}

/// A device.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentRow {
    pub agent: Agent,
    /// Compute units, or 0.
    pub compute_units: u32,
}

/// A queue of a device.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct QueueRow {
    pub process: ProcessHandle,
    pub agent: AgentHandle,
    pub context: u32,
    pub domain: Domain,
    /// The number that viewers group work by.
    pub stream: u32,
    pub name: TextHandle,
}

/// The events of a track of the host.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum HostLane {
    /// The calls of a thread.
    Thread(ProcessHandle, u32),
    /// The markers and pushed ranges of a thread.
    ThreadRanges(ProcessHandle, u32),
    /// Ranges of a process that are of no thread.
    Ranges(ProcessHandle),
    /// Other events of a process.
    Process(ProcessHandle, TextHandle),
    /// Other events of a thread.
    OfThread(ProcessHandle, u32, TextHandle),
}

impl HostLane {
    /// Other events of a thread, or of the process if the thread is 0.
    pub fn other(process: ProcessHandle, thread: u32, name: TextHandle) -> HostLane {
        match thread {
            0 => HostLane::Process(process, name),
            thread => HostLane::OfThread(process, thread, name),
        }
    }

    /// The process and the thread; 0 for no thread.
    fn owner(&self) -> (ProcessHandle, u32) {
        match *self {
            HostLane::Thread(process, thread)
            | HostLane::ThreadRanges(process, thread)
            | HostLane::OfThread(process, thread, _) => (process, thread),
            HostLane::Ranges(process) | HostLane::Process(process, _) => (process, 0),
        }
    }
}

/// A kernel, or a kind of copy or fill.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StageRow {
    pub kind: WorkKind,
    pub name: TextHandle,
    /// The name as the compiler mangled or demangled it, where it differs.
    pub demangled: TextHandle,
}

/// A function of an API.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FunctionRow {
    pub name: TextHandle,
    pub domain: Domain,
    /// The names of its parameters, one in a line.
    pub parameters: TextHandle,
}

/// Arguments of a row: a part of [`Tables::arguments`].
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ArgumentRange {
    first: u32,
    count: u32,
}

/// The value of an argument.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum ArgumentValue {
    Uint(u64),
    Int(i64),
    Double(f64),
    Text(TextHandle),
    Pointer(u64),
}

/// An argument.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct ArgumentRow {
    pub name: TextHandle,
    pub value: ArgumentValue,
}

/// The kind of a row of the host.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostKind {
    /// A call, and what it returned if it failed.
    Call(FunctionHandle, Option<i32>),
    /// A slice with its name and category.
    Slice(TextHandle, TextHandle),
    /// A marker with its name and category.
    Instant(TextHandle, TextHandle),
}

impl Default for HostKind {
    fn default() -> HostKind {
        HostKind::Slice(TextHandle::default(), TextHandle::default())
    }
}

/// A call, a range or a marker.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct HostRow {
    pub lane: LaneHandle,
    pub kind: HostKind,
    pub start: u64,
    /// [`NO_END`] if it did not end.
    pub end: u64,
    pub correlation: u64,
    pub external: u64,
    pub arguments: ArgumentRange,
}

/// A kernel, copy or fill.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct WorkRow {
    pub process: ProcessHandle,
    pub queue: QueueHandle,
    pub stage: StageHandle,
    /// The thread that enqueued it, or 0.
    pub thread: u32,
    pub correlation: u64,
    /// Its number among the dispatches of its process, by which samples and counters name it; or 0.
    pub dispatch: u64,
    pub start: u64,
    pub end: u64,
    pub bytes: u64,
    pub launch: Option<Launch>,
    pub resources: Resources,
    pub arguments: ArgumentRange,
}

/// A value of a counter that stands by itself.
#[derive(Copy, Clone, Debug)]
pub(crate) struct ValueRow {
    pub counter: CounterHandle,
    pub time: u64,
    pub value: CounterNumber,
}

/// The value of a counter.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum CounterNumber {
    Int(i64),
    Double(f64),
}

/// A counter that stands by itself.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CounterRow {
    /// None: it is of the whole machine.
    pub process: Option<ProcessHandle>,
    pub name: TextHandle,
    pub unit: CounterUnit,
}

/// The value of a hardware counter during a dispatch.
#[derive(Copy, Clone, Debug)]
pub(crate) struct DispatchCounterRow {
    pub process: ProcessHandle,
    pub dispatch: u64,
    pub counter: TextHandle,
    pub value: f64,
}

/// A change of the memory that a process has in use.
#[derive(Copy, Clone, Debug)]
pub(crate) struct MemoryRow {
    pub process: ProcessHandle,
    /// The device, where the row tells it.
    pub agent: AgentHandle,
    pub time: u64,
    pub address: u64,
    pub bytes: u64,
    pub freed: bool,
}

/// An instruction that was sampled.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PlaceRow {
    /// The code object, from 1; 0 if it is not known.
    pub code_object: u32,
    /// Bytes from its load base; without a code object, the address, or 0 if that is not known either.
    pub offset: u64,
    pub instruction: TextHandle,
    pub file: TextHandle,
    /// The line, or 0.
    pub line: u32,
}

/// A sample of the program counter.
#[derive(Copy, Clone, Debug)]
pub(crate) struct SampleRow {
    pub process: ProcessHandle,
    pub time: u64,
    pub dispatch: u64,
    pub correlation: u64,
    pub external: u64,
    pub exec_mask: u64,
    pub hardware: u64,
    pub place: PlaceHandle,
    pub outcome: WaveOutcome,
    /// Whether the arbiter issued nothing at all.
    pub latency: bool,
    pub workgroup: [u32; 3],
    pub wave_in_group: u8,
    pub wave_count: u32,
    /// Bits of [`Absent`](gputrail_record::Absent).
    pub absent: u16,
}

/// A list in which each entry stands once, with the place of each.
#[derive(Debug)]
pub(crate) struct Unique<T> {
    all: Vec<T>,
    places: HashMap<T, u32, foldhash::fast::RandomState>,
}

impl<T> Default for Unique<T> {
    fn default() -> Unique<T> {
        Unique {
            all: Vec::new(),
            places: HashMap::default(),
        }
    }
}

impl<T: Copy + Eq + std::hash::Hash> Unique<T> {
    fn place(&mut self, one: T) -> u32 {
        *self.places.entry(one).or_insert_with(|| {
            self.all.push(one);
            self.all.len() as u32 - 1
        })
    }

    fn get(&self, place: u32) -> Option<&T> {
        self.all.get(place as usize)
    }
}

/// Counts of what was passed on, and of what could not be drawn as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowCounts {
    pub calls: u64,
    pub slices: u64,
    pub instants: u64,
    pub work: u64,
    pub values: u64,
    pub samples: u64,
    /// Arrows from a call to work.
    pub ties: u64,
    /// Work whose start and end are both 0, which stands for "not measured".
    pub unmeasured: u64,
    /// Work and events that end before they start, or last longer than a day.
    pub impossible: u64,
    /// Work and events that start later than any machine can run.
    pub too_late: u64,
    /// Work that overlaps other work of its queue.
    pub overlapping: u64,
    /// Work that starts before the call that submitted it.
    pub early: u64,
    /// Long texts that were cut, since another event has them whole.
    pub cut_texts: u64,
    /// Values of counters for dispatches that no table has.
    pub without_dispatch: u64,
    /// Samples that were taken before or after the dispatch with their number.
    pub of_other_runs: u64,
}

/// The tables of a recording.
#[derive(Debug)]
pub(crate) struct Tables {
    pub header: TraceHeader,
    /// Facts about the recording: keys and values.
    pub attributes: Vec<(String, String)>,
    pub texts: TableTexts,
    pub processes: Vec<ProcessRow>,
    pub agents: Vec<AgentRow>,
    /// Names of threads.
    pub threads: HashMap<(ProcessHandle, u32), String>,
    /// Paths of code objects, by their numbers in a process.
    pub code_objects: HashMap<(ProcessHandle, u32), String>,
    queues: Unique<QueueRow>,
    lanes: Unique<HostLane>,
    stages: Unique<StageRow>,
    functions: Unique<FunctionRow>,
    counters: Unique<CounterRow>,
    places: Unique<PlaceRow>,
    /// The arguments of the row that is added next.
    arguments: Vec<ArgumentRow>,
    rows: RecordingRows,
    /// Values of counters that name no dispatch.
    without_dispatch: u64,
}

impl Tables {
    /// Tables whose rows are sorted in the memory of `allowance`.
    pub fn new(allowance: Allowance) -> Tables {
        Tables {
            header: TraceHeader::default(),
            attributes: Vec::new(),
            texts: TableTexts::default(),
            processes: Vec::new(),
            agents: Vec::new(),
            threads: HashMap::new(),
            code_objects: HashMap::new(),
            queues: Unique::default(),
            lanes: Unique::default(),
            stages: Unique::default(),
            functions: Unique::default(),
            counters: Unique::default(),
            places: Unique::default(),
            arguments: Vec::new(),
            rows: RecordingRows::new(allowance),
            without_dispatch: 0,
        }
    }

    /// The id of a text.
    pub fn text(&mut self, text: &str) -> TextHandle {
        self.texts.id(text)
    }

    /// Adds a process.
    pub fn process(&mut self, process: ProcessRow) -> ProcessHandle {
        self.processes.push(process);
        ProcessHandle(self.processes.len() as u32 - 1)
    }

    /// Adds a device.
    pub fn agent(&mut self, agent: AgentRow) -> AgentHandle {
        self.agents.push(agent);
        AgentHandle(self.agents.len() as u32 - 1)
    }

    /// The title of a device, if it is known.
    pub fn agent_title(&mut self, agent: AgentHandle) -> Option<TextHandle> {
        let row = self.agents.get(agent.0 as usize)?;
        Some(self.texts.id(&row.agent.title))
    }

    pub fn queue(&mut self, queue: QueueRow) -> QueueHandle {
        QueueHandle(self.queues.place(queue))
    }

    fn lane(&mut self, lane: HostLane) -> LaneHandle {
        if let HostLane::ThreadRanges(process, thread) | HostLane::OfThread(process, thread, _) =
            lane
        {
            // Its track stands below that of the thread.
            self.lanes.place(HostLane::Thread(process, thread));
        }
        LaneHandle(self.lanes.place(lane))
    }

    pub fn stage(&mut self, kind: WorkKind, name: &str, demangled: &str) -> StageHandle {
        let name = self.texts.id(name);
        let demangled = self.texts.id(demangled);
        StageHandle(self.stages.place(StageRow {
            kind,
            name,
            demangled,
        }))
    }

    /// The stage of a kernel with its short name and its full one. One of them may be empty.
    pub fn kernel(&mut self, short: &str, full: &str) -> StageHandle {
        match short {
            "" => self.stage(WorkKind::Kernel, full, ""),
            _ if short == full => self.stage(WorkKind::Kernel, short, ""),
            _ => self.stage(WorkKind::Kernel, short, full),
        }
    }

    pub fn function(&mut self, name: TextHandle, domain: Domain) -> FunctionHandle {
        self.function_with(name, domain, TextHandle::default())
    }

    /// A function whose calls have arguments, with the names of its parameters, one in a line.
    pub fn function_with(
        &mut self,
        name: TextHandle,
        domain: Domain,
        parameters: TextHandle,
    ) -> FunctionHandle {
        FunctionHandle(self.functions.place(FunctionRow {
            name,
            domain,
            parameters,
        }))
    }

    pub fn counter(&mut self, counter: CounterRow) -> CounterHandle {
        CounterHandle(self.counters.place(counter))
    }

    pub fn place(&mut self, place: PlaceRow) -> PlaceHandle {
        PlaceHandle(self.places.place(place))
    }

    /// Keeps arguments for the row that is added next, which takes them.
    pub fn arguments(
        &mut self,
        arguments: impl IntoIterator<Item = (TextHandle, ArgumentValue)>,
    ) -> ArgumentRange {
        let first = self.arguments.len();
        let rows = arguments.into_iter();
        self.arguments
            .extend(rows.map(|(name, value)| ArgumentRow { name, value }));
        ArgumentRange {
            first: first as u32,
            count: (self.arguments.len() - first) as u32,
        }
    }

    /// The names of arguments, one in a line.
    pub fn names_of(&mut self, arguments: ArgumentRange) -> TextHandle {
        let names = arguments_in(&self.arguments, arguments).iter();
        let names: Vec<_> = names.map(|row| self.texts.get(row.name)).collect();
        let names = names.join("\n");
        self.texts.id(&names)
    }

    /// Adds a row of `lane`.
    pub fn add_host_in(&mut self, lane: HostLane, row: HostRow) {
        let row = HostRow {
            lane: self.lane(lane),
            ..row
        };
        let process = match row.kind {
            HostKind::Call(..) => Some(lane.owner().0),
            HostKind::Slice(..) | HostKind::Instant(..) => None,
        };
        let arguments = std::mem::take(&mut self.arguments);
        let own = arguments_in(&arguments, row.arguments);
        self.rows.add_host(row, own, process);
        self.clear(arguments);
    }

    pub fn add_work(&mut self, row: WorkRow) {
        self.add_work_row(row, false);
    }

    /// Adds work that a row of a counter describes. It counts where no other row describes its dispatch.
    pub fn add_counted_work(&mut self, row: WorkRow) {
        self.add_work_row(row, true);
    }

    fn add_work_row(&mut self, row: WorkRow, counted: bool) {
        let arguments = std::mem::take(&mut self.arguments);
        let own = arguments_in(&arguments, row.arguments);
        self.rows.add_work(row, own, counted);
        self.clear(arguments);
    }

    /// Makes room for the arguments of the next row.
    fn clear(&mut self, mut arguments: Vec<ArgumentRow>) {
        arguments.clear();
        self.arguments = arguments;
    }

    pub fn add_value(&mut self, row: ValueRow) {
        self.rows.add_value(row);
    }

    pub fn add_dispatch_counter(&mut self, row: DispatchCounterRow) {
        if !self.rows.add_dispatch_counter(row) {
            self.without_dispatch += 1;
        }
    }

    pub fn add_memory(&mut self, row: MemoryRow) {
        self.rows.add_memory(row);
    }

    pub fn add_sample(&mut self, row: SampleRow) {
        self.rows.add_sample(row);
    }
}

fn arguments_in(all: &[ArgumentRow], arguments: ArgumentRange) -> &[ArgumentRow] {
    let first = arguments.first as usize;
    let own = all.get(first..first + arguments.count as usize);
    own.unwrap_or_default()
}

/// The API of a function of CUDA, HIP or HSA, by its name.
pub(crate) fn api_of_function(name: &str) -> Option<Domain> {
    let is_driver = |rest: &str| rest.starts_with(|first: char| first.is_ascii_uppercase());
    match name {
        _ if name.starts_with("hip") => Some(Domain::HIP),
        _ if name.starts_with("hsa_") => Some(Domain::HSA),
        _ if name.starts_with("cuda") => Some(Domain::CUDA_RUNTIME),
        _ if name.strip_prefix("cu").is_some_and(is_driver) => Some(Domain::CUDA_DRIVER),
        _ => None,
    }
}

/// The purpose of a function of CUDA, HIP or HSA, by its name.
fn group_of(name: &str) -> OperationGroup {
    let groups = [
        (
            OperationGroup::SYNCHRONIZE,
            &["Synchronize", "_wait", "WaitEvent"][..],
        ),
        (
            OperationGroup::ENQUEUE,
            &["Launch", "Memcpy", "Memset", "memcpy", "_copy", "Prefetch"],
        ),
        (
            OperationGroup::QUERY,
            &["Get", "Query", "_get_", "_iterate"],
        ),
        (
            OperationGroup::BUILD,
            &["ModuleLoad", "rtcCompile", "Register"],
        ),
        (
            OperationGroup::CREATE,
            &["Create", "Alloc", "_create", "_allocate"],
        ),
        (
            OperationGroup::LIFETIME,
            &["Destroy", "Free", "_destroy", "_free"],
        ),
        (OperationGroup::SET, &["Set", "_set_"]),
    ];
    let found = groups
        .iter()
        .find(|(_, parts)| parts.iter().any(|part| name.contains(part)));
    found.map_or(OperationGroup::OTHER, |(group, _)| *group)
}
