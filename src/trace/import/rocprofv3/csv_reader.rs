//! rocprofv3's folders of CSV.
//!
//! Each table is a file, `[PREFIX_]kernel_trace.csv` and so on. Files of one folder with one prefix are of one process, which
//! some of them name; those that do not are taken to be of it. Times are nanoseconds of CLOCK_BOOTTIME. All rows are held in
//! memory until the last file has been read: some 100 to 200 bytes each.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use super::csv::{Column, Csv, Damage, Record};
use super::table::{Number, Table, parse};
use crate::code::aggregate::Outcome;
use crate::record::{
    Absent, Domain, InstructionType, Issue, NotIssued, Snapshot, StochasticSample, TransferKind,
};
use crate::trace::capture::short_name;
use crate::trace::import::tables::{
    AgentHandle, AgentRow, ArgumentValue, Arguments, DispatchCounterRow, HostKind, HostRow, Lane,
    MemoryRow, PlaceRow, ProcessHandle, ProcessRow, QueueRow, SampleRow, Tables, TextId, WorkRow,
};
use crate::trace::import::{Report, Source};
use crate::trace::model::{Agent, Consumer, Launch, Resources, WorkKind};

/// Words that the names of tables begin with.
const TABLES: [&str; 15] = [
    "kernel_",
    "hip_",
    "hsa_",
    "marker_",
    "memory_",
    "scratch_",
    "rccl_",
    "rocdecode_",
    "rocjpeg_",
    "ompt_",
    "counter_",
    "agent_",
    "pc_sampling",
    "domain_",
    "roctx_",
];

/// Files of one process: their folder, and what stands before the name of the table.
type Group = (PathBuf, String);

fn group_of(file: &Path) -> Group {
    let folder = file.parent().map(Path::to_owned).unwrap_or_default();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let begins = |at: &usize| TABLES.iter().any(|table| name[*at..].starts_with(table));
    let after = name.match_indices('_').map(|(at, _)| at + 1);
    let table = std::iter::once(0).chain(after).find(begins);
    let prefix = table.map_or(&*name, |at| &name[..at]);
    (folder, prefix.trim_end_matches('_').to_owned())
}

/// Passes the tables of `sources` on.
pub(in crate::trace::import) fn read(
    sources: &[Source],
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let mut reader = Reader::default();
    let mut files = Vec::new();
    for source in sources {
        let csv = source.reader().and_then(Csv::open);
        match csv {
            Ok(csv) => match Table::recognise(csv.columns()) {
                Some(table) => files.push((source, table, csv)),
                None => {
                    let columns: Vec<_> = csv.columns().iter().take(8).map(|c| &c[..]).collect();
                    let found = format!("a table with the columns {}", columns.join(", "));
                    let expected = "a table of rocprofv3: with Start_Timestamp, Sample_Timestamp or Counter_Name";
                    report.finding(source.name(), Some(0), found, expected);
                }
            },
            Err(error) => report.finding(source.name(), Some(0), error.to_string(), "CSV"),
        }
    }
    // Devices come first. Then the tables that name their process, and then those that do not.
    files.sort_by_key(|(_, table, csv)| {
        let names_process = csv.column(&["Process_Id"]).exists();
        (
            *table != Table::Agents,
            !names_process,
            *table == Table::Counters,
        )
    });
    for (source, table, csv) in files {
        let file = File {
            path: source.name(),
            group: group_of(source.name()),
        };
        reader.table(&file, table, csv, report);
    }
    let folder = sources.first().map_or(Path::new(""), |first| first.name());
    let folder = match sources {
        [_] => folder,
        _ => folder.parent().unwrap_or(folder),
    };
    reader.finish(folder, consumer, report)
}

/// A file that is being read.
struct File<'s> {
    path: &'s Path,
    group: Group,
}

#[derive(Default)]
struct Reader {
    tables: Tables,
    /// Processes by group and id.
    processes: HashMap<(Group, u32), ProcessHandle>,
    /// Ids of the processes that the files of a group name.
    named: HashMap<Group, HashSet<u32>>,
    /// Devices of a group, as its files call them.
    agents: HashMap<(Group, String), AgentHandle>,
    /// Devices of each kind.
    kinds: HashMap<String, u32>,
    /// Work of dispatches that counters name, until it is known whether a table of kernels has it.
    counted: HashMap<(ProcessHandle, u64), WorkRow>,
    dispatches: HashSet<(ProcessHandle, u64)>,
}

/// Columns that hold the times of all tables of spans.
struct Times {
    start: Number,
    end: Number,
    correlation: Number,
}

impl Times {
    fn of<R: BufRead>(csv: &Csv<R>) -> Times {
        Times {
            start: Number::of(csv, &["Start_Timestamp"]),
            end: Number::of(csv, &["End_Timestamp"]),
            correlation: Number::of(csv, &["Correlation_Id"]),
        }
    }
}

impl Reader {
    /// Reads a table; records that are damaged are findings.
    fn table<R: BufRead>(
        &mut self,
        file: &File<'_>,
        table: Table,
        mut csv: Csv<R>,
        report: &mut Report,
    ) {
        let mut read = RowReader::new(table, &csv);
        loop {
            let damage = match csv.next() {
                Ok(None) => return,
                Ok(Some(Ok(record))) => match read.row(self, file, &record, report) {
                    Ok(()) => continue,
                    Err(damage) => damage,
                },
                Ok(Some(Err(damage))) => damage,
                Err(error) => {
                    let expected = "the rest of the file";
                    report.finding(file.path, None, error.to_string(), expected);
                    return;
                }
            };
            let (found, expected) = (damage.found, damage.expected);
            report.finding(file.path, Some(damage.offset), found, expected);
        }
    }

    /// The process of a file that names it.
    fn process(&mut self, file: &File<'_>, pid: u32) -> ProcessHandle {
        self.named
            .entry(file.group.clone())
            .or_default()
            .insert(pid);
        self.process_of(file, pid)
    }

    fn process_of(&mut self, file: &File<'_>, pid: u32) -> ProcessHandle {
        let key = (file.group.clone(), pid);
        match self.processes.get(&key) {
            Some(process) => *process,
            None => {
                let process = self.tables.process(ProcessRow {
                    pid,
                    name: "process".to_owned(),
                    ..ProcessRow::default()
                });
                self.processes.insert(key, process);
                process
            }
        }
    }

    /// The process of a file that does not name it.
    fn implied_process(&mut self, file: &File<'_>, report: &mut Report) -> ProcessHandle {
        let named = self.named.get(&file.group);
        let only = named.filter(|named| named.len() == 1);
        let only = only.and_then(|named| named.iter().next().copied());
        let of_prefix = || file.group.1.parse().ok().filter(|_| named.is_none());
        if let Some(pid) = only.or_else(of_prefix) {
            return self.process_of(file, pid);
        }
        let reason = "rows of a process that no file of the folder tells";
        report.remark(file.path, reason, None);
        let key = (file.group.clone(), 0);
        if let Some(process) = self.processes.get(&key) {
            return *process;
        }
        // The lowest id that no process has.
        let taken: HashSet<u32> = self.tables.processes.iter().map(|row| row.pid).collect();
        let pid = (1..).find(|pid| !taken.contains(pid)).unwrap_or(u32::MAX);
        let process = self.tables.process(ProcessRow {
            pid,
            name: "unknown process".to_owned(),
            ..ProcessRow::default()
        });
        self.processes.insert(key, process);
        process
    }

    /// The device that a field names: `Agent 4`, `GPU 0`, or a number alone.
    fn agent(&mut self, file: &File<'_>, field: &str) -> AgentHandle {
        if field.is_empty() {
            return AgentHandle::UNKNOWN;
        }
        let label = match field.bytes().all(|byte| byte.is_ascii_digit()) {
            true => format!("Agent {field}"),
            false => field.to_owned(),
        };
        let key = (file.group.clone(), label);
        match self.agents.get(&key) {
            Some(agent) => *agent,
            None => {
                let agent = self.tables.agent(AgentRow {
                    agent: Agent {
                        title: key.1.clone(),
                        ..Agent::default()
                    },
                    compute_units: 0,
                });
                self.agents.insert(key, agent);
                agent
            }
        }
    }

    /// Adds a device of the table of devices.
    fn describe_agent(&mut self, file: &File<'_>, record: &Record<'_>) {
        let field = |name: &str| {
            let found = record.fields().find(|(column, _)| *column == name);
            found.map_or("", |(_, field)| field)
        };
        let node = field("Node_Id");
        let key = |label: String| (file.group.clone(), label);
        if self.agents.contains_key(&key(format!("Agent {node}"))) {
            return;
        }
        let kind = field("Agent_Type");
        let number = self.kinds.entry(kind.to_owned()).or_default();
        let label = format!("{kind} {number}");
        *number += 1;
        let kept = ["Name", "Vendor_Name", "Product_Name"];
        let rest = record
            .fields()
            .filter(|(name, value)| !kept.contains(name) && !value.is_empty());
        let rest = rest.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let agent = self.tables.agent(AgentRow {
            agent: Agent {
                title: label.clone(),
                name: match field("Product_Name") {
                    "" => field("Name").to_owned(),
                    product => product.to_owned(),
                },
                vendor: field("Vendor_Name").to_owned(),
                model: field("Product_Name").to_owned(),
                architecture: field("Name").to_owned(),
                pci_address: String::new(),
                attributes: rest.collect(),
            },
            compute_units: field("Cu_Count").parse().unwrap_or(0),
        });
        self.agents.insert(key(format!("Agent {node}")), agent);
        self.agents.entry(key(label)).or_insert(agent);
    }

    /// The fields of a record that are in no other place, as arguments.
    fn rest(&mut self, record: &Record<'_>, used: &[&str]) -> Arguments {
        let mut arguments = Vec::new();
        for (name, field) in record.fields() {
            if used.contains(&name) || matches!(field, "" | "0") {
                continue;
            }
            let value = match (parse(field), field.parse::<f64>()) {
                (Some(value), _) if field.starts_with("0x") => ArgumentValue::Pointer(value),
                (Some(value), _) => ArgumentValue::Uint(value),
                (None, Ok(value)) if value.is_finite() => ArgumentValue::Double(value),
                _ => ArgumentValue::Text(self.tables.text(field)),
            };
            arguments.push((self.tables.text(&name.to_ascii_lowercase()), value));
        }
        self.tables.arguments(arguments)
    }

    /// Adds work of counters that no table of kernels has, and passes everything on.
    fn finish(
        mut self,
        file: &Path,
        consumer: &mut dyn Consumer,
        report: &mut Report,
    ) -> io::Result<()> {
        let mut counted: Vec<_> = std::mem::take(&mut self.counted).into_iter().collect();
        counted.sort_by_key(|(dispatch, _)| *dispatch);
        for (dispatch, row) in counted {
            if !self.dispatches.contains(&dispatch) {
                self.tables.add_work(row);
            }
        }
        self.tables.attributes.extend([
            ("format".to_owned(), "rocprofv3 CSV".to_owned()),
            (
                "clock".to_owned(),
                "CLOCK_BOOTTIME of the recorded machine".to_owned(),
            ),
        ]);
        self.tables.pass_on(file, consumer, report)
    }
}

/// The columns of a table.
enum RowReader {
    Agents,
    Calls(CallColumns),
    Kernels(KernelColumns),
    Counters(CounterColumns),
    Copies(CopyColumns),
    Allocations(AllocationColumns),
    Scratch(ScratchColumns),
    Samples(SampleColumns),
    Spans(SpanColumns),
    Statistics,
}

struct CallColumns {
    times: Times,
    domain: Column,
    function: Column,
    process: Number,
    thread: Number,
}

struct KernelColumns {
    times: Times,
    agent: Column,
    queue: Number,
    stream: Number,
    thread: Number,
    dispatch: Number,
    name: Column,
    local: Number,
    private: Number,
    registers: Number,
    workgroup: [Number; 3],
    grid: [Number; 3],
}

struct CounterColumns {
    times: Times,
    agent: Column,
    queue: Number,
    process: Number,
    thread: Number,
    dispatch: Number,
    kernel: Column,
    local: Number,
    private: Number,
    registers: Number,
    counter: Column,
    value: Column,
}

struct CopyColumns {
    times: Times,
    direction: Column,
    stream: Number,
    source: Column,
    destination: Column,
    thread: Number,
}

struct AllocationColumns {
    times: Times,
    operation: Column,
    agent: Column,
    size: Number,
    address: Number,
}

struct ScratchColumns {
    times: Times,
    operation: Column,
    agent: Column,
}

struct SampleColumns {
    time: Number,
    mask: Number,
    dispatch: Number,
    instruction: Column,
    comment: Column,
    correlation: Number,
    issued: Number,
    kind: Column,
    reason: Column,
    waves: Number,
}

struct SpanColumns {
    times: Times,
    name: Column,
    thread: Number,
    process: Number,
}

impl RowReader {
    fn new<R: BufRead>(table: Table, csv: &Csv<R>) -> RowReader {
        let number = |names: &[&'static str]| Number::of(csv, names);
        let column = |names: &[&str]| csv.column(names);
        let times = || Times::of(csv);
        match table {
            Table::Agents => RowReader::Agents,
            Table::Statistics => RowReader::Statistics,
            Table::Calls => RowReader::Calls(CallColumns {
                times: times(),
                domain: column(&["Domain"]),
                function: column(&["Function"]),
                process: number(&["Process_Id"]),
                thread: number(&["Thread_Id"]),
            }),
            Table::Kernels => RowReader::Kernels(KernelColumns {
                times: times(),
                agent: column(&["Agent_Id"]),
                queue: number(&["Queue_Id"]),
                stream: number(&["Stream_Id"]),
                thread: number(&["Thread_Id"]),
                dispatch: number(&["Dispatch_Id"]),
                name: column(&["Kernel_Name"]),
                local: number(&["LDS_Block_Size", "Group_Segment_Size"]),
                private: number(&["Scratch_Size", "Private_Segment_Size"]),
                registers: number(&["VGPR_Count"]),
                workgroup: [
                    number(&["Workgroup_Size_X"]),
                    number(&["Workgroup_Size_Y"]),
                    number(&["Workgroup_Size_Z"]),
                ],
                grid: [
                    number(&["Grid_Size_X"]),
                    number(&["Grid_Size_Y"]),
                    number(&["Grid_Size_Z"]),
                ],
            }),
            Table::Counters => RowReader::Counters(CounterColumns {
                times: times(),
                agent: column(&["Agent_Id"]),
                queue: number(&["Queue_Id"]),
                process: number(&["Process_Id"]),
                thread: number(&["Thread_Id"]),
                dispatch: number(&["Dispatch_Id"]),
                kernel: column(&["Kernel_Name"]),
                local: number(&["LDS_Block_Size"]),
                private: number(&["Scratch_Size"]),
                registers: number(&["VGPR_Count"]),
                counter: column(&["Counter_Name"]),
                value: column(&["Counter_Value"]),
            }),
            Table::Copies => RowReader::Copies(CopyColumns {
                times: times(),
                direction: column(&["Direction"]),
                stream: number(&["Stream_Id"]),
                source: column(&["Source_Agent_Id"]),
                destination: column(&["Destination_Agent_Id"]),
                thread: number(&["Thread_Id"]),
            }),
            Table::Allocations => RowReader::Allocations(AllocationColumns {
                times: times(),
                operation: column(&["Operation"]),
                agent: column(&["Agent_Id"]),
                size: number(&["Allocation_Size"]),
                address: number(&["Address"]),
            }),
            Table::Scratch => RowReader::Scratch(ScratchColumns {
                times: times(),
                operation: column(&["Operation"]),
                agent: column(&["Agent_Id"]),
            }),
            Table::Samples => RowReader::Samples(SampleColumns {
                time: number(&["Sample_Timestamp"]),
                mask: number(&["Exec_Mask"]),
                dispatch: number(&["Dispatch_Id"]),
                instruction: column(&["Instruction"]),
                comment: column(&["Instruction_Comment"]),
                correlation: number(&["Correlation_Id"]),
                issued: number(&["Wave_Issued_Instruction"]),
                kind: column(&["Instruction_Type"]),
                reason: column(&["Stall_Reason"]),
                waves: number(&["Wave_Count"]),
            }),
            Table::Spans => RowReader::Spans(SpanColumns {
                times: times(),
                name: column(&["Function", "Operation", "Name", "Kind"]),
                thread: number(&["Thread_Id"]),
                process: number(&["Process_Id"]),
            }),
        }
    }

    /// Adds the row of a record.
    fn row(
        &mut self,
        reader: &mut Reader,
        file: &File<'_>,
        record: &Record<'_>,
        report: &mut Report,
    ) -> Result<(), Damage> {
        match self {
            RowReader::Agents => reader.describe_agent(file, record),
            RowReader::Statistics => {
                let reason = "rows of statistics, which follow from the other tables";
                report.remark(file.path, reason, Some(record.offset));
            }
            RowReader::Calls(columns) => columns.row(reader, file, record)?,
            RowReader::Kernels(columns) => columns.row(reader, file, record, report)?,
            RowReader::Counters(columns) => columns.row(reader, file, record)?,
            RowReader::Copies(columns) => columns.row(reader, file, record, report)?,
            RowReader::Allocations(columns) => columns.row(reader, file, record, report)?,
            RowReader::Scratch(columns) => columns.row(reader, file, record, report)?,
            RowReader::Samples(columns) => columns.row(reader, file, record, report)?,
            RowReader::Spans(columns) => columns.row(reader, file, record, report)?,
        }
        Ok(())
    }
}

impl CallColumns {
    fn row(&self, reader: &mut Reader, file: &File<'_>, record: &Record<'_>) -> Result<(), Damage> {
        let (start, end) = (self.times.start.get(record)?, self.times.end.get(record)?);
        let process = reader.process(file, self.process.small(record)?);
        let thread = self.thread.small(record)?;
        let tables = &mut reader.tables;
        let domain = record.field(self.domain);
        let name = tables.text(record.field(self.function));
        let marker = |tables: &mut Tables| {
            let category = tables.text("marker");
            match start == end {
                true => HostKind::Instant(name, category),
                false => HostKind::Slice(name, category),
            }
        };
        let (lane, kind) = match domain {
            _ if domain.starts_with("MARKER") && thread == 0 => {
                (Lane::Ranges(process), marker(tables))
            }
            _ if domain.starts_with("MARKER") => {
                (Lane::ThreadRanges(process, thread), marker(tables))
            }
            _ if domain.starts_with("HIP") => {
                let function = tables.function(name, Domain::HIP);
                (
                    Lane::Thread(process, thread),
                    HostKind::Call(function, None),
                )
            }
            _ if domain.starts_with("HSA") => {
                let function = tables.function(name, Domain::HSA);
                (
                    Lane::Thread(process, thread),
                    HostKind::Call(function, None),
                )
            }
            _ => {
                let category = tables.text(&domain.to_ascii_lowercase());
                (
                    Lane::Thread(process, thread),
                    HostKind::Slice(name, category),
                )
            }
        };
        let used = [
            "Domain",
            "Function",
            "Process_Id",
            "Thread_Id",
            "Correlation_Id",
            "Start_Timestamp",
            "End_Timestamp",
        ];
        let arguments = reader.rest(record, &used);
        reader.tables.add_host_in(
            lane,
            HostRow {
                kind,
                start,
                end,
                correlation: self.times.correlation.get(record)?,
                arguments,
                ..HostRow::default()
            },
        );
        Ok(())
    }
}

impl KernelColumns {
    fn row(
        &self,
        reader: &mut Reader,
        file: &File<'_>,
        record: &Record<'_>,
        report: &mut Report,
    ) -> Result<(), Damage> {
        let (start, end) = (self.times.start.get(record)?, self.times.end.get(record)?);
        let (mut workgroup, mut grid) = ([0_u32; 3], [0_u64; 3]);
        for (dimension, (size, items)) in self.workgroup.iter().zip(&self.grid).enumerate() {
            workgroup[dimension] = size.small(record)?;
            grid[dimension] = items.get(record)?;
        }
        let resources = Resources {
            registers: self.registers.small(record)?,
            static_local: self.local.small(record)?,
            dynamic_local: 0,
            private: self.private.small(record)?,
        };
        let (queue_id, stream) = (self.queue.get(record)?, self.stream.small(record)?);
        let (thread, dispatch) = (self.thread.small(record)?, self.dispatch.get(record)?);
        let correlation = self.times.correlation.get(record)?;
        let process = reader.implied_process(file, report);
        let agent = reader.agent(file, record.field(self.agent));
        let queue = match self.stream.exists() {
            true => format!("stream {stream}"),
            false => format!("queue {queue_id}"),
        };
        let name = reader.tables.text(&queue);
        let queue = reader.tables.queue(QueueRow {
            process,
            agent,
            context: 0,
            domain: Domain::HIP,
            stream,
            name,
        });
        let stage = kernel_stage(&mut reader.tables, record.field(self.name));
        let used = [
            "Kind",
            "Agent_Id",
            "Stream_Id",
            "Thread_Id",
            "Kernel_Id",
            "Kernel_Name",
            "Correlation_Id",
            "Start_Timestamp",
            "End_Timestamp",
            "LDS_Block_Size",
            "Group_Segment_Size",
            "Scratch_Size",
            "Private_Segment_Size",
            "VGPR_Count",
            "Workgroup_Size_X",
            "Workgroup_Size_Y",
            "Workgroup_Size_Z",
            "Grid_Size_X",
            "Grid_Size_Y",
            "Grid_Size_Z",
        ];
        let arguments = reader.rest(record, &used);
        reader.dispatches.insert((process, dispatch));
        reader.tables.add_work(WorkRow {
            process,
            queue,
            stage,
            thread,
            correlation,
            dispatch,
            start,
            end,
            bytes: 0,
            launch: (grid[0] != 0).then_some(Launch { grid, workgroup }),
            resources,
            arguments,
        });
        Ok(())
    }
}

/// The stage of a kernel. rocprofv3 writes names demangled, with what a function returns and takes, and with a suffix.
pub(super) fn kernel_stage(
    tables: &mut Tables,
    name: &str,
) -> crate::trace::import::tables::StageHandle {
    let name = name.strip_suffix(".kd").unwrap_or(name);
    let short = short_name(name);
    let demangled = if short == name { "" } else { name };
    tables.stage(WorkKind::Kernel, short, demangled)
}

impl CounterColumns {
    fn row(&self, reader: &mut Reader, file: &File<'_>, record: &Record<'_>) -> Result<(), Damage> {
        let field = record.field(self.value);
        let value: f64 = field
            .parse()
            .map_err(|_| record.damage("Counter_Value", field, "a number"))?;
        let process = reader.process(file, self.process.small(record)?);
        let dispatch = self.dispatch.get(record)?;
        let counter = reader.tables.text(record.field(self.counter));
        if !reader.counted.contains_key(&(process, dispatch)) {
            let work = self.work(reader, file, record, (process, dispatch))?;
            reader.counted.insert((process, dispatch), work);
        }
        reader.tables.add_dispatch_counter(DispatchCounterRow {
            process,
            dispatch,
            counter,
            value,
        });
        Ok(())
    }

    /// The dispatch that was counted.
    fn work(
        &self,
        reader: &mut Reader,
        file: &File<'_>,
        record: &Record<'_>,
        (process, dispatch): (ProcessHandle, u64),
    ) -> Result<WorkRow, Damage> {
        let agent = reader.agent(file, record.field(self.agent));
        let name = format!("queue {}", self.queue.get(record)?);
        let name = reader.tables.text(&name);
        let queue = reader.tables.queue(QueueRow {
            process,
            agent,
            context: 0,
            domain: Domain::HIP,
            stream: 0,
            name,
        });
        // Sizes stand here as products of their dimensions: they remain arguments.
        let used = [
            "Correlation_Id",
            "Agent_Id",
            "Queue_Id",
            "Process_Id",
            "Thread_Id",
            "Kernel_Id",
            "Kernel_Name",
            "LDS_Block_Size",
            "Scratch_Size",
            "VGPR_Count",
            "Counter_Name",
            "Counter_Value",
            "Start_Timestamp",
            "End_Timestamp",
        ];
        Ok(WorkRow {
            process,
            queue,
            stage: kernel_stage(&mut reader.tables, record.field(self.kernel)),
            thread: self.thread.small(record)?,
            correlation: self.times.correlation.get(record)?,
            dispatch,
            start: self.times.start.get(record)?,
            end: self.times.end.get(record)?,
            bytes: 0,
            launch: None,
            resources: Resources {
                registers: self.registers.small(record)?,
                static_local: self.local.small(record)?,
                dynamic_local: 0,
                private: self.private.small(record)?,
            },
            arguments: reader.rest(record, &used),
        })
    }
}

/// The direction of a copy, and whether it ends at the device.
pub(super) fn transfer(direction: &str) -> TransferKind {
    match direction.strip_prefix("MEMORY_COPY_").unwrap_or(direction) {
        "HOST_TO_DEVICE" => TransferKind::HOST_TO_DEVICE,
        "DEVICE_TO_HOST" => TransferKind::DEVICE_TO_HOST,
        "DEVICE_TO_DEVICE" => TransferKind::DEVICE_TO_DEVICE,
        "HOST_TO_HOST" => TransferKind::HOST_TO_HOST,
        _ => TransferKind::UNKNOWN,
    }
}

impl CopyColumns {
    fn row(
        &self,
        reader: &mut Reader,
        file: &File<'_>,
        record: &Record<'_>,
        report: &mut Report,
    ) -> Result<(), Damage> {
        let (start, end) = (self.times.start.get(record)?, self.times.end.get(record)?);
        let correlation = self.times.correlation.get(record)?;
        let (stream, thread) = (self.stream.small(record)?, self.thread.small(record)?);
        let direction = record.field(self.direction);
        let transfer = transfer(direction);
        let from = record.field(self.source);
        let to = record.field(self.destination);
        let device = match transfer {
            TransferKind::DEVICE_TO_HOST => from,
            _ => to,
        };
        let process = reader.implied_process(file, report);
        let agent = reader.agent(file, device);
        let name = match self.stream.exists() {
            true => format!("stream {stream}"),
            false => "copies".to_owned(),
        };
        let tables = &mut reader.tables;
        let name = tables.text(&name);
        let queue = tables.queue(QueueRow {
            process,
            agent,
            context: 0,
            domain: Domain::HIP,
            stream,
            name,
        });
        let stage = match (transfer, transfer.name()) {
            (TransferKind::UNKNOWN, _) | (_, None) => {
                tables.stage(WorkKind::Copy, &direction.to_ascii_lowercase(), "")
            }
            (_, Some(name)) => tables.stage(WorkKind::Copy, name, ""),
        };
        let [source, destination] = [("source", from), ("destination", to)]
            .map(|(name, agent)| (tables.text(name), ArgumentValue::Text(tables.text(agent))));
        let arguments = tables.arguments([source, destination]);
        tables.add_work(WorkRow {
            process,
            queue,
            stage,
            thread,
            correlation,
            dispatch: 0,
            start,
            end,
            bytes: 0,
            launch: None,
            resources: Resources::default(),
            arguments,
        });
        Ok(())
    }
}

impl AllocationColumns {
    fn row(
        &self,
        reader: &mut Reader,
        file: &File<'_>,
        record: &Record<'_>,
        report: &mut Report,
    ) -> Result<(), Damage> {
        let (start, end) = (self.times.start.get(record)?, self.times.end.get(record)?);
        let (address, bytes) = (self.address.get(record)?, self.size.get(record)?);
        let correlation = self.times.correlation.get(record)?;
        let operation = record.field(self.operation);
        let process = reader.implied_process(file, report);
        let agent = reader.agent(file, record.field(self.agent));
        let used = [
            "Kind",
            "Operation",
            "Correlation_Id",
            "Start_Timestamp",
            "End_Timestamp",
        ];
        let arguments = reader.rest(record, &used);
        let tables = &mut reader.tables;
        let (name, category) = (tables.text(operation), tables.text("memory allocation"));
        tables.add_host_in(
            Lane::Process(process, category),
            HostRow {
                kind: HostKind::Slice(name, category),
                start,
                end,
                correlation,
                arguments,
                ..HostRow::default()
            },
        );
        let freed = operation.contains("FREE");
        if freed || operation.contains("ALLOCATE") {
            tables.add_memory(MemoryRow {
                process,
                agent,
                time: end,
                address,
                bytes,
                freed,
            });
        }
        Ok(())
    }
}

impl ScratchColumns {
    fn row(
        &self,
        reader: &mut Reader,
        file: &File<'_>,
        record: &Record<'_>,
        report: &mut Report,
    ) -> Result<(), Damage> {
        let (start, end) = (self.times.start.get(record)?, self.times.end.get(record)?);
        let correlation = self.times.correlation.get(record)?;
        let process = reader.implied_process(file, report);
        let used = [
            "Kind",
            "Operation",
            "Agent_Id",
            "Correlation_Id",
            "Start_Timestamp",
            "End_Timestamp",
        ];
        let arguments = reader.rest(record, &used);
        let tables = &mut reader.tables;
        let lane = tables.text(&format!("{} scratch memory", record.field(self.agent)));
        let (name, category) = (
            tables.text(record.field(self.operation)),
            tables.text("scratch memory"),
        );
        tables.add_host_in(
            Lane::Process(process, lane),
            HostRow {
                kind: HostKind::Slice(name, category),
                start,
                end,
                correlation,
                arguments,
                ..HostRow::default()
            },
        );
        Ok(())
    }
}

/// File and line of a comment such as `/src/main.cpp:44`.
pub(super) fn file_and_line(comment: &str) -> Option<(&str, u32)> {
    let (file, line) = comment.rsplit_once(':')?;
    let line = line.parse().ok().filter(|line| *line > 0)?;
    (!file.is_empty()).then_some((file, line))
}

/// What rocprofv3 says where it does not know the code object, before the address.
pub(super) const NO_CODE_OBJECT: &str = "Unrecognized code object id";

impl SampleColumns {
    fn row(
        &self,
        reader: &mut Reader,
        file: &File<'_>,
        record: &Record<'_>,
        report: &mut Report,
    ) -> Result<(), Damage> {
        let time = self.time.get(record)?;
        let (dispatch, correlation) = (self.dispatch.get(record)?, self.correlation.get(record)?);
        let exec_mask = self.mask.get(record)?;
        let mut sample = StochasticSample::blank();
        sample.wave_count = self.waves.small(record)?;
        sample.absent = Absent::WORKGROUP
            .with(Absent::WAVE_IN_GROUP)
            .with(Absent::HARDWARE)
            .with(Absent::EXTERNAL)
            .with(Absent::ARBITER);
        let outcome = match self.issued.exists() {
            false => Outcome::HOST_TRAP,
            true => {
                let kind = record.field(self.kind);
                let instruction = InstructionType::from_vendor_name(kind);
                let why = record.field(self.reason);
                let reason = NotIssued::from_vendor_name(why);
                for (known, name) in [(instruction.is_some(), kind), (reason.is_some(), why)] {
                    if !known {
                        let reason = format!("samples with the unknown name {name:?}");
                        report.remark(file.path, reason, Some(record.offset));
                    }
                }
                sample.issue = Issue(0)
                    .with_issued(u8::from(self.issued.get(record)? != 0))
                    .with_instruction(instruction.unwrap_or(InstructionType::NONE).0);
                let reason = reason.unwrap_or(NotIssued::NONE).0.into();
                sample.snapshot = Snapshot(0).with_reason_not_issued(reason);
                Outcome::of(&sample)
            }
        };
        let process = reader.implied_process(file, report);
        let tables = &mut reader.tables;
        let comment = record.field(self.comment);
        let (file_name, line) = file_and_line(comment).unwrap_or_default();
        let address = comment.strip_prefix(NO_CODE_OBJECT);
        let address = address.and_then(|rest| parse(rest.rsplit(':').next()?));
        let place = PlaceRow {
            code_object: 0,
            offset: address.unwrap_or(0),
            instruction: tables.text(record.field(self.instruction)),
            file: match address {
                Some(_) => TextId::default(),
                None => tables.text(file_name),
            },
            line: if address.is_some() { 0 } else { line },
        };
        let place = tables.place(place);
        tables.add_sample(SampleRow {
            process,
            time,
            dispatch,
            correlation,
            external: 0,
            exec_mask,
            hardware: 0,
            place,
            outcome,
            latency: sample.is_latency() && self.issued.exists(),
            workgroup: [0; 3],
            wave_in_group: 0,
            wave_count: sample.wave_count,
            absent: sample.absent.0,
        });
        Ok(())
    }
}

impl SpanColumns {
    fn row(
        &self,
        reader: &mut Reader,
        file: &File<'_>,
        record: &Record<'_>,
        report: &mut Report,
    ) -> Result<(), Damage> {
        let (start, end) = (self.times.start.get(record)?, self.times.end.get(record)?);
        let correlation = self.times.correlation.get(record)?;
        let thread = self.thread.small(record)?;
        let process = match self.process.exists() {
            true => reader.process(file, self.process.small(record)?),
            false => reader.implied_process(file, report),
        };
        let used = [
            "Process_Id",
            "Thread_Id",
            "Correlation_Id",
            "Start_Timestamp",
            "End_Timestamp",
        ];
        let arguments = reader.rest(record, &used);
        let table = file.path.file_stem().unwrap_or_default().to_string_lossy();
        let tables = &mut reader.tables;
        let (name, category) = (tables.text(record.field(self.name)), tables.text(&table));
        let lane = match thread {
            0 => Lane::Process(process, category),
            thread => Lane::OfThread(process, thread, category),
        };
        tables.add_host_in(
            lane,
            HostRow {
                kind: HostKind::Slice(name, category),
                start,
                end,
                correlation,
                arguments,
                ..HostRow::default()
            },
        );
        Ok(())
    }
}
