//! Records of rocprof as rows of tables.

use std::collections::HashMap;
use std::path::Path;

use crate::import::Allowance;
use crate::import::Report;
use crate::import::demangle::demangled;
use crate::import::row::{Damage, Row, RowField, rows};
use crate::import::tables::{
    AgentHandle, AgentRow, ArgumentValue, DispatchCounterRow, HostKind, HostLane, HostRow,
    ProcessHandle, ProcessRow, QueueRow, StageHandle, Tables, TextHandle, WorkRow,
};
use gputrail_record::{Domain, TransferKind};
use gputrail_trace::capture::short_name;
use gputrail_trace::model::{Agent, Resources, WorkKind};

rows! {
    /// A kernel with its counters.
    Kernel<'r> {
        index: Option<u64> = "Index",
        name: &'r str = "KernelName",
        device: u32 = "gpu-id",
        queue: Option<i64> = "queue-id",
        place: Option<i64> = "queue-index",
        process: Option<u32> = "pid",
        thread: u32 = "tid",
        items: Option<i64> = "grd",
        group: Option<i64> = "wgr|wgp",
        local: u32 = "lds",
        private: u32 = "scr",
        registers: u32 = "arch_vgpr|vgpr",
        accumulation: u32 = "accum_vgpr",
        scalar: u32 = "sgpr",
        barriers: Option<i64> = "fbar",
        wave: Option<i64> = "wave_size",
        signal: RowField<'r> = "sig",
        object: RowField<'r> = "obj",
        dispatched: Option<i64> = "DispatchNs",
        start: u64 = "BeginNs",
        end: u64 = "EndNs",
        completed: Option<i64> = "CompleteNs",
    }

    /// A call.
    ApiCall<'r> {
        index: u64 = "Index",
        name: &'r str = "Name",
        process: Option<u32> = "pid",
        thread: u32 = "tid",
        start: Option<u64> = "BeginNs",
        end: u64 = "EndNs",
        arguments: &'r str = "args",
        data: &'r str = "Data",
    }

    /// An operation of a device.
    Operation<'r> {
        index: u64 = "Index",
        name: &'r str = "Name",
        process: Option<u32> = "pid",
        thread: Option<i64> = "tid",
        start: Option<u64> = "BeginNs",
        end: u64 = "EndNs",
        device: u32 = "dev-id",
        queue: Option<i64> = "queue-id",
        stream: Option<u32> = "stream-id",
        range: &'r str = "roctx-range",
        data: &'r str = "Data",
    }

    /// A marker or a range.
    Marker<'r> {
        name: &'r str = "Name",
        process: Option<u32> = "pid",
        thread: u32 = "tid",
        start: Option<u64> = "BeginNs",
        end: u64 = "EndNs",
        lane: Option<u32> = "__lane",
    }
}

/// The columns of kernels and markers, of which readers look for others.
pub(super) const KERNEL: &[&str] = Kernel::COLUMNS;
pub(super) const CALL: &[&str] = ApiCall::COLUMNS;
pub(super) const OPERATION: &[&str] = Operation::COLUMNS;
pub(super) const MARKER: &[&str] = Marker::COLUMNS;

/// The call in HSA's list that stands for the submission of a kernel.
const DISPATCH: &str = "hsa_dispatch";
/// A column of kernels that follows from their start and end.
const DURATION: &str = "DurationNs";
/// The first correlation id of HSA's calls, whose numbers are those of HIP's calls, too.
const HSA_CALLS: u64 = 1 << 48;

/// The kind of records that a table of operations has.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum OperationTable {
    /// Kernels and barriers.
    Kernels,
    /// Copies and fills that calls of HIP submitted.
    HipCopies,
    /// Copies that calls of HSA submitted.
    HsaCopies,
    /// All kinds of operations, told by their names.
    Any,
}

/// The description of a kernel, beside its operation.
#[derive(Debug)]
struct Described {
    work: WorkRow,
    arguments: Vec<(TextHandle, ArgumentValue)>,
    counters: Vec<(TextHandle, f64)>,
}

/// A recording that is being read.
pub(super) struct Records<'r> {
    pub file: &'r Path,
    pub report: &'r mut Report,
    pub tables: Tables,
    processes: HashMap<u32, ProcessHandle>,
    agents: HashMap<u32, AgentHandle>,
    kernels: HashMap<TextHandle, StageHandle>,
    /// Numbers of kernels, where the file has none.
    counted: u64,
    /// Kernels whose operation may be in another table, by device, start and end.
    described: HashMap<(u32, u64, u64), Described>,
}

impl<'r> Records<'r> {
    /// A recording whose rows are sorted in the memory of `allowance`.
    pub fn new(file: &'r Path, allowance: Allowance, report: &'r mut Report) -> Records<'r> {
        Records {
            file,
            report,
            tables: Tables::new(allowance),
            processes: HashMap::new(),
            agents: HashMap::new(),
            kernels: HashMap::new(),
            counted: 0,
            described: HashMap::new(),
        }
    }

    /// The format and the clock, as attributes of the trace.
    pub fn set_format(&mut self, format: &str) {
        self.tables.attributes.extend([
            ("format".to_owned(), format.to_owned()),
            (
                "clock".to_owned(),
                "system clock of HSA on the recorded machine".to_owned(),
            ),
        ]);
    }

    pub fn process(&mut self, pid: Option<u32>) -> ProcessHandle {
        let tables = &mut self.tables;
        *self.processes.entry(pid.unwrap_or(0)).or_insert_with(|| {
            tables.process(ProcessRow {
                pid: pid.unwrap_or(1),
                name: match pid {
                    Some(_) => "process".to_owned(),
                    None => "unknown process".to_owned(),
                },
                ..ProcessRow::default()
            })
        })
    }

    fn agent(&mut self, id: u32) -> AgentHandle {
        let tables = &mut self.tables;
        *self.agents.entry(id).or_insert_with(|| {
            tables.agent(AgentRow {
                agent: Agent {
                    title: format!("GPU {id}"),
                    vendor: "AMD".to_owned(),
                    ..Agent::default()
                },
                compute_units: 0,
            })
        })
    }

    /// The stage of a kernel, by its name in the file.
    fn kernel_stage(&mut self, name: &str) -> StageHandle {
        let key = self.tables.text(name);
        if let Some(stage) = self.kernels.get(&key) {
            return *stage;
        }
        let name = name.trim_matches('"');
        let name = name.strip_suffix(" [clone .kd]").unwrap_or(name);
        let name = name.strip_suffix(".kd").unwrap_or(name);
        let full = demangled(name);
        let stage = self.tables.kernel(short_name(&full), &full);
        self.kernels.insert(key, stage);
        stage
    }

    fn queue(&mut self, process: ProcessHandle, device: u32, number: u32, name: &str) -> QueueRow {
        QueueRow {
            process,
            agent: self.agent(device),
            context: 0,
            domain: Domain::HIP,
            stream: number,
            name: self.tables.text(name),
        }
    }

    fn text_argument(&mut self, name: &str, text: &str) -> Option<(TextHandle, ArgumentValue)> {
        let text = text.trim_matches('"');
        if text.is_empty() {
            return None;
        }
        let text = ArgumentValue::Text(self.tables.text(text));
        Some((self.tables.text(name), text))
    }

    /// Adds a kernel with the values of its counters. It is kept back if its operation may follow in another table.
    pub fn add_kernel(
        &mut self,
        row: &dyn Row,
        counters: &[(&str, RowField<'_>)],
        keep_back: bool,
    ) -> Result<(), Damage> {
        let kernel = Kernel::read(row)?;
        if (kernel.start == 0) != (kernel.end == 0) {
            return Err(row.damage(20, "a start and an end, or neither"));
        }
        let process = self.process(kernel.process);
        let mut values = Vec::new();
        for (name, field) in counters.iter().filter(|(name, _)| *name != DURATION) {
            let value = match field {
                RowField::Int(value) => *value as f64,
                RowField::Real(value) => *value,
                RowField::Text(text) => match text.trim() {
                    // It was not counted in this run.
                    "" | "None" => continue,
                    text => match text.parse() {
                        Ok(value) => value,
                        Err(_) => {
                            let found = format!("{text:?} in column {name}");
                            let mut damage = row.damage(0, "a number");
                            damage.found = format!("{found}, {}", row.position().1);
                            return Err(damage);
                        }
                    },
                },
                RowField::Null | RowField::Bytes(_) => continue,
            };
            values.push((self.tables.text(name), value));
        }
        let queue = kernel.queue.unwrap_or(0);
        let queue = self.queue(
            process,
            kernel.device,
            queue as u32,
            &format!("queue {queue}"),
        );
        let mut arguments = self.tables.numbers(&[
            ("grid_size", kernel.items),
            ("workgroup_size", kernel.group),
            ("barriers", kernel.barriers),
            ("wave_size", kernel.wave),
            ("queue_index", kernel.place),
            ("dispatched_ns", kernel.dispatched),
            ("completed_ns", kernel.completed),
        ]);
        for (name, field) in [("signal", kernel.signal), ("object", kernel.object)] {
            if let RowField::Text(text) = field {
                arguments.extend(self.text_argument(name, text).filter(|_| text != "0x0"));
            }
        }
        self.counted += 1;
        let work = WorkRow {
            process,
            queue: self.tables.queue(queue),
            stage: self.kernel_stage(kernel.name),
            thread: kernel.thread,
            // 0 is no number.
            dispatch: kernel.index.unwrap_or(self.counted - 1).saturating_add(1),
            start: kernel.start,
            end: kernel.end,
            resources: Resources {
                registers: kernel.registers,
                accumulation_registers: kernel.accumulation,
                scalar_registers: kernel.scalar,
                static_local: kernel.local,
                private: kernel.private,
                ..Resources::default()
            },
            ..WorkRow::default()
        };
        let described = Described {
            work,
            arguments,
            counters: values,
        };
        let key = (kernel.device, kernel.start, kernel.end);
        if keep_back && kernel.start != 0 {
            if let Some(other) = self.described.insert(key, described) {
                self.add_described(other);
            }
        } else {
            self.add_described(described);
        }
        Ok(())
    }

    fn add_described(&mut self, kernel: Described) {
        let mut work = kernel.work;
        for (counter, value) in kernel.counters {
            self.tables.add_dispatch_counter(DispatchCounterRow {
                process: work.process,
                dispatch: work.dispatch,
                counter,
                value,
            });
        }
        work.arguments = self.tables.arguments(kernel.arguments);
        self.tables.add_work(work);
    }

    /// Adds the kernels that were kept back and have no operation.
    pub fn add_kept_back(&mut self) {
        let mut kept: Vec<_> = self.described.drain().collect();
        kept.sort_unstable_by_key(|(key, _)| *key);
        for (_, kernel) in kept {
            self.add_described(kernel);
        }
    }

    /// Adds a call.
    pub fn add_call(&mut self, row: &dyn Row, api: Domain) -> Result<(), Damage> {
        let call = ApiCall::read(row)?;
        let start = call.start.ok_or_else(|| row.damage(4, "a time"))?;
        let process = self.process(call.process);
        let mut arguments = Vec::new();
        arguments.extend(self.text_argument("args", call.arguments.trim()));
        arguments.extend(self.text_argument("data", call.data));
        let arguments = self.tables.arguments(arguments);
        let name = self.tables.text(call.name);
        let event = HostRow {
            start,
            end: call.end,
            arguments,
            ..HostRow::default()
        };
        if call.name == DISPATCH {
            let category = self.tables.text("HSA");
            let kind = HostKind::Instant(name, category);
            let lane = HostLane::ThreadRanges(process, call.thread);
            self.tables.add_host_in(lane, HostRow { kind, ..event });
            return Ok(());
        }
        let parameters = self.tables.names_of(arguments);
        let function = self.tables.function_with(name, api, parameters);
        let correlation = match (call.index, api) {
            (0, _) => 0,
            (index, Domain::HSA) => index.saturating_add(HSA_CALLS),
            (index, _) => index,
        };
        let row = HostRow {
            kind: HostKind::Call(function, None),
            correlation,
            ..event
        };
        let lane = HostLane::Thread(process, call.thread);
        self.tables.add_host_in(lane, row);
        Ok(())
    }

    /// Adds an operation of a device.
    pub fn add_operation(&mut self, row: &dyn Row, table: OperationTable) -> Result<(), Damage> {
        let operation = Operation::read(row)?;
        let start = operation.start.ok_or_else(|| row.damage(4, "a time"))?;
        let process = self.process(operation.process);
        let name = operation.name.trim_matches('"');
        let kind = match table {
            OperationTable::HipCopies | OperationTable::HsaCopies if name.contains("Fill") => {
                WorkKind::Set
            }
            OperationTable::HipCopies | OperationTable::HsaCopies => WorkKind::Copy,
            _ if name == "<barrier packet>" || name.contains("Marker") => WorkKind::Synchronization,
            OperationTable::Kernels => WorkKind::Kernel,
            OperationTable::Any if name.starts_with("Copy") || name == "async-copy" => {
                WorkKind::Copy
            }
            OperationTable::Any if name.contains("Memcpy") => WorkKind::Copy,
            OperationTable::Any if name.starts_with("Fill") => WorkKind::Set,
            OperationTable::Any => WorkKind::Kernel,
        };
        let is_of_hsa = table == OperationTable::HsaCopies || name == "async-copy";
        let key = (operation.device, start, operation.end);
        let described = match kind {
            WorkKind::Kernel => self.described.remove(&key),
            _ => None,
        };
        let (mut work, mut arguments, counters) = match described {
            Some(one) => (one.work, one.arguments, one.counters),
            None => (WorkRow::default(), Vec::new(), Vec::new()),
        };
        work.stage = match kind {
            WorkKind::Copy => {
                let name = direction(name).name().unwrap_or("copy");
                self.tables.stage(kind, name, "")
            }
            WorkKind::Set => self.tables.stage(kind, WorkKind::FILL, ""),
            WorkKind::Synchronization => self.tables.stage(kind, "barrier", ""),
            _ => self.kernel_stage(operation.name),
        };
        let queue = match (operation.stream, operation.queue) {
            _ if is_of_hsa => self.queue(process, operation.device, 0, "copies of HSA"),
            (Some(stream), queue) => {
                arguments.extend(self.tables.numbers(&[("queue_id", queue)]));
                let name = format!("stream {stream}");
                self.queue(process, operation.device, stream, &name)
            }
            (None, queue) => {
                let queue = queue.unwrap_or(0);
                let name = format!("queue {queue}");
                self.queue(process, operation.device, queue as u32, &name)
            }
        };
        let own_range = Some(operation.range).filter(|range| *range != operation.name);
        if let Some(range) = own_range {
            arguments.extend(self.text_argument("roctx_range", range));
        }
        arguments.extend(self.text_argument("data", operation.data));
        work.process = process;
        work.queue = self.tables.queue(queue);
        let thread = operation
            .thread
            .and_then(|thread| u32::try_from(thread).ok());
        work.thread = thread.unwrap_or(0);
        work.correlation = match operation.index {
            0 => 0,
            index if is_of_hsa => index.saturating_add(HSA_CALLS),
            index => index,
        };
        work.start = start;
        work.end = operation.end;
        self.add_described(Described {
            work,
            arguments,
            counters,
        });
        Ok(())
    }

    /// Adds a marker or a range.
    pub fn add_marker(&mut self, row: &dyn Row) -> Result<(), Damage> {
        let marker = Marker::read(row)?;
        let start = marker.start.ok_or_else(|| row.damage(3, "a time"))?;
        let process = self.process(marker.process);
        let name = self.tables.text(marker.name.trim_matches('"'));
        let category = self.tables.text("marker");
        // A marker lasts for 1 ns there.
        let is_mark = marker.end <= start.saturating_add(1) && marker.end >= start;
        let kind = if is_mark {
            HostKind::Instant(name, category)
        } else {
            HostKind::Slice(name, category)
        };
        let lane = match (marker.lane, marker.thread) {
            (Some(0), _) | (_, 0) => HostLane::Ranges(process),
            (_, thread) => HostLane::ThreadRanges(process, thread),
        };
        let row = HostRow {
            kind,
            start,
            end: if is_mark { start } else { marker.end },
            ..HostRow::default()
        };
        self.tables.add_host_in(lane, row);
        Ok(())
    }
}

/// The direction of a copy, by its name.
fn direction(name: &str) -> TransferKind {
    let named = [
        ("HostToDevice", TransferKind::HOST_TO_DEVICE),
        ("DeviceToHost", TransferKind::DEVICE_TO_HOST),
        ("DeviceToDevice", TransferKind::DEVICE_TO_DEVICE),
        ("HostToHost", TransferKind::HOST_TO_HOST),
        ("PeerToPeer", TransferKind::PEER_TO_PEER),
    ];
    let found = named.iter().find(|(word, _)| name.contains(word));
    found.map_or(TransferKind::UNKNOWN, |(_, kind)| *kind)
}
