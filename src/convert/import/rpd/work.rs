//! The work of devices, what calls say about it, and counters.

use std::collections::HashMap;

use super::{Rpd, split};
use crate::import::row::{RowField, rows};
use crate::import::tables::{
    AgentHandle, AgentRow, ArgumentValue, CounterHandle, CounterNumber, CounterRow,
    DispatchCounterRow, ProcessHandle, ProcessRow, QueueHandle, QueueRow, TextHandle, ValueRow,
    WorkRow,
};
use gputrail_record::{Domain, TransferKind};
use gputrail_trace::capture::short_name;
use gputrail_trace::model::{Agent, CounterUnit, Launch, Resources, WorkKind};

rows! {
    /// A piece of work. On CUDA, the queue is the context and the sequence number is the stream.
    Operation<'r> {
        id: i64 = "id",
        device: u32 = "gpuId",
        queue: Option<i64> = "queueId",
        sequence: Option<i64> = "sequenceId",
        signal: &'r str = "completionSignal",
        start: Option<u64> = "start",
        end: u64 = "end",
        name: Option<i64> = "description_id",
        kind: Option<i64> = "opType_id",
    }

    /// The launch of a kernel.
    KernelCall<'r> {
        call: i64 = "api_ptr_id",
        stream: RowField<'r> = "stream",
        grid_x: u64 = "gridX",
        grid_y: u64 = "gridY",
        grid_z: u64 = "gridZ",
        group_x: u32 = "workgroupX",
        group_y: u32 = "workgroupY",
        group_z: u32 = "workgroupZ",
        local: u32 = "groupSegmentSize",
        private: u32 = "privateSegmentSize",
        name: Option<i64> = "kernelName_id",
        arguments: RowField<'r> = "kernelArgAddress",
        acquire: RowField<'r> = "aquireFence",
        release: RowField<'r> = "releaseFence",
        code: Option<i64> = "codeObject_id",
    }

    CodeObject {
        id: i64 = "id",
        registers: u32 = "vgpr",
        scalar: u32 = "sgpr",
    }

    CopyCall<'r> {
        call: i64 = "api_ptr_id",
        stream: RowField<'r> = "stream",
        size: u64 = "size",
        width: u64 = "width",
        height: u64 = "height",
        kind: Option<i64> = "kind",
        destination: RowField<'r> = "dst",
        source: RowField<'r> = "src",
        destination_device: RowField<'r> = "dstDevice",
        source_device: RowField<'r> = "srcDevice",
        sync: RowField<'r> = "sync",
        pinned: RowField<'r> = "pinned",
    }

    Counter {
        work: i64 = "op_id",
        name: Option<i64> = "name_id",
        value: Option<f64> = "value",
    }

    /// A value of a device that held from a time to another.
    Monitored<'r> {
        device_kind: &'r str = "deviceType",
        device: u32 = "deviceId",
        what: &'r str = "monitorType",
        start: u64 = "start",
        end: u64 = "end",
        value: RowField<'r> = "value",
    }
}

/// The launch that a call describes.
pub(super) struct RpdLaunch {
    /// As the file has it: workgroups or work-items.
    grid: [u64; 3],
    workgroup: [u32; 3],
    resources: Resources,
    /// The name of the kernel, which the work has, too.
    name: TextHandle,
    arguments: Vec<(TextHandle, ArgumentValue)>,
}

/// The copy that a call describes.
pub(super) struct RpdCopy {
    bytes: u64,
    kind: Option<i64>,
    arguments: Vec<(TextHandle, ArgumentValue)>,
}

/// Types of kernels that are launched by themselves; those of graphs are called `Task`.
const PLAIN_KERNELS: [&str; 3] = ["KernelExecution", "Kernel", "ConcurrentKernel"];

/// The kind of work, by the name of its type.
fn kind_of(name: &str) -> WorkKind {
    let name = name.to_ascii_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    if has(&["copy", "memcpy"]) {
        WorkKind::Copy
    } else if has(&["fill", "memset"]) {
        WorkKind::Set
    } else if has(&["kernel", "task", "dispatch"]) {
        WorkKind::Kernel
    } else if has(&["barrier", "marker"]) {
        WorkKind::Synchronization
    } else {
        WorkKind::Unknown
    }
}

/// The direction of a copy, by the name of its type, or else by the number of its kind in HIP and CUDA.
fn direction(name: &str, kind: Option<i64>) -> TransferKind {
    let name = name.to_ascii_lowercase().replace('_', "");
    let named = [
        ("hosttodevice", TransferKind::HOST_TO_DEVICE),
        ("devicetohost", TransferKind::DEVICE_TO_HOST),
        ("devicetodevice", TransferKind::DEVICE_TO_DEVICE),
        ("hosttohost", TransferKind::HOST_TO_HOST),
    ];
    let found = named.iter().find(|(part, _)| name.contains(part));
    match (found, kind) {
        (Some((_, kind)), _) => *kind,
        (None, Some(0)) => TransferKind::HOST_TO_HOST,
        (None, Some(1)) => TransferKind::HOST_TO_DEVICE,
        (None, Some(2)) => TransferKind::DEVICE_TO_HOST,
        (None, Some(3)) => TransferKind::DEVICE_TO_DEVICE,
        _ => TransferKind::UNKNOWN,
    }
}

/// Functions whose sizes are work-items, also where those of others are workgroups.
pub(super) fn counts_items(function: &str) -> bool {
    matches!(
        function,
        "hipExtModuleLaunchKernel" | "hipHccModuleLaunchKernel"
    )
}

impl Rpd<'_> {
    /// Adds the columns that have a value to arguments.
    fn further(
        &mut self,
        arguments: &mut Vec<(TextHandle, ArgumentValue)>,
        fields: &[(&str, RowField<'_>)],
    ) {
        for (name, field) in fields {
            if let Some(value) = self.value(*field) {
                arguments.push((self.tables.text(name), value));
            }
        }
    }

    /// Launches of kernels, by their calls.
    pub(super) fn launches(&mut self) {
        let mut code_objects: HashMap<i64, (u32, u32)> = HashMap::new();
        let table = "rocpd_kernelcodeobject";
        self.each(table, CodeObject::COLUMNS, |_, row| {
            let code = CodeObject::read(row)?;
            code_objects.insert(code.id, (code.registers, code.scalar));
            Ok(())
        });
        self.each("rocpd_kernelapi", KernelCall::COLUMNS, |rpd, row| {
            let kernel = KernelCall::read(row)?;
            let code = kernel.code.and_then(|code| code_objects.get(&code));
            let (registers, scalar_registers) = code.copied().unwrap_or_default();
            let mut arguments = Vec::new();
            rpd.further(
                &mut arguments,
                &[
                    ("stream_handle", kernel.stream),
                    ("kernel_arguments", kernel.arguments),
                    ("acquire_fence", kernel.acquire),
                    ("release_fence", kernel.release),
                ],
            );
            let launch = RpdLaunch {
                grid: [kernel.grid_x, kernel.grid_y, kernel.grid_z],
                workgroup: [kernel.group_x, kernel.group_y, kernel.group_z],
                resources: Resources {
                    registers,
                    scalar_registers,
                    static_local: kernel.local,
                    private: kernel.private,
                    ..Resources::default()
                },
                name: rpd.string(kernel.name),
                arguments,
            };
            rpd.launches.insert(kernel.call, launch);
            Ok(())
        });
    }

    /// Copies, by their calls.
    pub(super) fn copies(&mut self) {
        self.each("rocpd_copyapi", CopyCall::COLUMNS, |rpd, row| {
            let copy = CopyCall::read(row)?;
            let of_rows = copy.width.saturating_mul(copy.height);
            let mut arguments = Vec::new();
            rpd.further(
                &mut arguments,
                &[
                    ("stream_handle", copy.stream),
                    ("destination", copy.destination),
                    ("source", copy.source),
                    ("destination_device", copy.destination_device),
                    ("source_device", copy.source_device),
                    ("sync", copy.sync),
                    ("pinned", copy.pinned),
                ],
            );
            for (name, size) in [("width", copy.width), ("height", copy.height)] {
                if size != 0 {
                    arguments.push((rpd.tables.text(name), ArgumentValue::Uint(size)));
                }
            }
            let described = RpdCopy {
                bytes: if copy.size == 0 { of_rows } else { copy.size },
                kind: copy.kind,
                arguments,
            };
            rpd.copies.insert(copy.call, described);
            Ok(())
        });
    }

    /// The process and the thread that submitted work, and its correlation id.
    fn submitter(&mut self, work: i64) -> (ProcessHandle, u32, u64) {
        let call = self.submitters.get(&work).copied();
        let caller = call.and_then(|call| self.calls.get(&call).copied().flatten());
        if let Some((process, thread)) = caller {
            let correlation = call.and_then(|call| u64::try_from(call).ok());
            return (process, thread, correlation.unwrap_or(0));
        }
        let mut processes = self.processes.values();
        match (processes.next().copied(), processes.next()) {
            (Some(only), None) => (only, 0, 0),
            _ => {
                let reason = "work whose process the database does not tell";
                self.report.remark(self.file, reason, None);
                (self.unknown_process(), 0, 0)
            }
        }
    }

    /// The process of work that no call submitted.
    fn unknown_process(&mut self) -> ProcessHandle {
        let id = u32::MAX;
        if let Some(process) = self.processes.get(&id) {
            return *process;
        }
        let process = self.tables.process(ProcessRow {
            pid: 1,
            name: "unknown process".to_owned(),
            ..ProcessRow::default()
        });
        self.processes.insert(id, process);
        process
    }

    /// The name of a device.
    fn device_name(&self, id: u32) -> String {
        match split(id, self.machine_of.device) {
            (0, device) => format!("GPU {device}"),
            (machine, device) => format!("GPU {device} of machine {machine}"),
        }
    }

    fn agent(&mut self, id: u32) -> AgentHandle {
        if let Some(agent) = self.agents.get(&id) {
            return *agent;
        }
        let vendor = if self.device_api.is_cuda() {
            "NVIDIA"
        } else {
            "AMD"
        };
        let agent = self.tables.agent(AgentRow {
            agent: Agent {
                title: self.device_name(id),
                vendor: vendor.to_owned(),
                ..Agent::default()
            },
            compute_units: 0,
        });
        self.agents.insert(id, agent);
        agent
    }

    fn queue(&mut self, process: ProcessHandle, work: &Operation<'_>) -> QueueHandle {
        let agent = self.agent(work.device);
        let (queue, sequence) = (work.queue.unwrap_or(0), work.sequence.unwrap_or(0));
        let (domain, context, stream, name) = match self.device_api.is_cuda() {
            true => (
                Domain::CUDA_RUNTIME,
                queue,
                sequence,
                format!("stream {sequence}"),
            ),
            false => (Domain::HIP, 0, queue, format!("queue {queue}")),
        };
        let name = self.tables.text(&name);
        self.tables.queue(QueueRow {
            process,
            agent,
            context: context as u32,
            domain,
            stream: stream as u32,
            name,
        })
    }

    /// Work of devices.
    pub(super) fn work(&mut self) {
        // Only counters need the numbers of dispatches.
        let counters = self.database.table("rocpd_counter");
        let is_counted = counters.is_some_and(|table| self.database.count(table) > 0);
        self.each("rocpd_op", Operation::COLUMNS, |rpd, row| {
            let work = Operation::read(row)?;
            let start = work.start.ok_or_else(|| row.damage(5, "a time"))?;
            let (process, thread, correlation) = rpd.submitter(work.id);
            let call = rpd.submitters.get(&work.id).copied();
            let (name, kind_name) = (rpd.string(work.name), rpd.string(work.kind));
            let texts = &rpd.tables.texts;
            let kind_text = texts.get(kind_name).to_owned();
            let own_name = texts.get(name).to_owned();
            let mut kind = kind_of(&kind_text);
            if kind == WorkKind::Unknown && !own_name.is_empty() {
                kind = WorkKind::Kernel;
            }
            // Names of types that say no more than the kind of the work, or are its name.
            let says_nothing = own_name.is_empty()
                || kind == WorkKind::Copy
                || PLAIN_KERNELS.contains(&&kind_text[..]);
            let mut made = WorkRow {
                process,
                queue: rpd.queue(process, &work),
                thread,
                correlation,
                dispatch: match u64::try_from(work.id) {
                    Ok(id) if is_counted => id,
                    _ => 0,
                },
                start,
                end: work.end,
                ..WorkRow::default()
            };
            let sequence = work.sequence.filter(|_| !rpd.device_api.is_cuda());
            let mut arguments = rpd.tables.numbers(&[("sequence", sequence)]);
            rpd.further(
                &mut arguments,
                &[("completion_signal", RowField::Text(work.signal))],
            );
            match kind {
                WorkKind::Kernel => {
                    let own = rpd.launch_of(call, name, &mut made, &mut arguments);
                    let own_name = match own {
                        Some(own) if own_name.is_empty() => rpd.tables.texts.get(own).to_owned(),
                        _ => own_name,
                    };
                    let full = own_name.strip_suffix(".kd").unwrap_or(&own_name);
                    let full = if full.is_empty() {
                        &kind_text[..]
                    } else {
                        full
                    };
                    made.stage = rpd.tables.kernel(short_name(full), full);
                }
                WorkKind::Copy => {
                    // The size of a call that makes several copies is that of all of them.
                    let copy = call.and_then(|call| rpd.copies.remove(&call));
                    let number = copy.as_ref().and_then(|copy| copy.kind);
                    // rocprofiler-sdk's numbers are ids of texts.
                    let number = number.filter(|_| !rpd.device_api.counts_items);
                    let direction = direction(&format!("{kind_text} {own_name}"), number);
                    let direction_name = direction.name().unwrap_or("copy");
                    made.stage = rpd.tables.stage(kind, direction_name, "");
                    if let Some(copy) = copy {
                        made.bytes = copy.bytes;
                        arguments.extend(copy.arguments);
                    }
                }
                _ => {
                    let name = if own_name.is_empty() {
                        &kind_text
                    } else {
                        &own_name
                    };
                    made.stage = rpd.tables.stage(kind, name, "");
                }
            }
            if !says_nothing {
                let kind = ArgumentValue::Text(kind_name);
                arguments.push((rpd.tables.text("type"), kind));
            }
            made.arguments = rpd.tables.arguments(arguments);
            rpd.tables.add_work(made);
            Ok(())
        });
    }

    /// Adds to a kernel what the launch of its call says, if that is a launch of this kernel: a call may launch several.
    /// Returns the name of the kernel in the launch.
    fn launch_of(
        &mut self,
        call: Option<i64>,
        name: TextHandle,
        work: &mut WorkRow,
        arguments: &mut Vec<(TextHandle, ArgumentValue)>,
    ) -> Option<TextHandle> {
        let call = call?;
        let launch = self.launches.get(&call)?;
        let none = TextHandle::default();
        if name != none && launch.name != none && launch.name != name {
            return None;
        }
        let [x, y, z] = launch.workgroup;
        let is_known = launch.grid != [0; 3] && launch.workgroup != [0; 3];
        let by_function = self.item_calls.contains(&call);
        let counts_items = self.device_api.counts_items || by_function;
        let items = |at: usize, size: u32| match counts_items {
            true => launch.grid[at],
            false => launch.grid[at].saturating_mul(size.into()),
        };
        work.launch = is_known.then(|| Launch {
            grid: [items(0, x), items(1, y), items(2, z)],
            workgroup: launch.workgroup,
        });
        work.resources = launch.resources;
        arguments.extend(&launch.arguments);
        Some(launch.name)
    }

    /// Values of hardware counters of work.
    pub(super) fn counters(&mut self) {
        self.each("rocpd_counter", Counter::COLUMNS, |rpd, row| {
            let counter = Counter::read(row)?;
            let (process, ..) = rpd.submitter(counter.work);
            rpd.tables.add_dispatch_counter(DispatchCounterRow {
                process,
                dispatch: u64::try_from(counter.work).unwrap_or(0),
                counter: rpd.string(counter.name),
                value: counter.value.unwrap_or(0.0),
            });
            Ok(())
        });
    }

    /// Clocks and other values of devices: each from its start on, and the last one until its end.
    pub(super) fn monitor(&mut self) {
        let mut latest: HashMap<CounterHandle, ValueRow> = HashMap::new();
        self.each("rocpd_monitor", Monitored::COLUMNS, |rpd, row| {
            let monitored = Monitored::read(row)?;
            let counter = rpd.monitored(&monitored);
            let value = match monitored.value {
                RowField::Int(value) => Some(CounterNumber::Int(value)),
                RowField::Real(value) => Some(CounterNumber::Double(value)),
                RowField::Text(text) => number(text),
                RowField::Null | RowField::Bytes(_) => None,
            };
            let value = value.ok_or_else(|| row.damage(5, "a number"))?;
            let of = |time| ValueRow {
                counter,
                time,
                value,
            };
            if let Some(ended) = latest.insert(counter, of(monitored.end)) {
                // The values of a device follow each other without a gap, unless recording was off.
                if ended.time < monitored.start {
                    rpd.tables.add_value(ended);
                }
            }
            rpd.tables.add_value(of(monitored.start));
            Ok(())
        });
        let mut last: Vec<ValueRow> = latest.into_values().collect();
        last.sort_unstable_by_key(|row| row.counter);
        for row in last.into_iter().filter(|row| row.time != 0) {
            self.tables.add_value(row);
        }
    }

    /// The counter of a value of a device.
    fn monitored(&mut self, row: &Monitored<'_>) -> CounterHandle {
        let device = match row.device_kind {
            "gpu" => self.device_name(row.device),
            kind => format!("{} {}", kind.to_ascii_uppercase(), row.device),
        };
        let (unit, shown) = match row.what {
            "sclk" | "mclk" => (CounterUnit::Unspecified, " (MHz)"),
            what if what.ends_with('%') => (CounterUnit::Percent, ""),
            _ => (CounterUnit::Unspecified, ""),
        };
        let name = format!("{device} {}{shown}", row.what);
        let name = self.tables.text(&name);
        self.tables.counter(CounterRow {
            process: None,
            name,
            unit,
        })
    }
}

/// A number in a text.
fn number(text: &str) -> Option<CounterNumber> {
    let text = text.trim();
    match text.parse() {
        Ok(value) => Some(CounterNumber::Int(value)),
        Err(_) => text
            .parse()
            .ok()
            .filter(|value: &f64| value.is_finite())
            .map(CounterNumber::Double),
    }
}
