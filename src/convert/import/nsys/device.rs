//! Work of devices, waits for it, memory, and counters.

use super::super::row::{Damage, Row, RowField, RowRest, rows};
use super::super::tables::{
    AllocationRow, ArgumentValue, CounterNumber, CounterRow, HostKind, HostLane, HostRow,
    QueueHandle, QueueRow, StageHandle, TextHandle, ValueRow, WorkRow,
};
use super::{Export, pid_of, thread_of};
use gputrail_record::{Domain, TransferKind};
use gputrail_trace::model::{CounterUnit, Launch, Resources, WorkKind};

rows! {
    /// The columns that all work has.
    Common {
        start: i64 = "start",
        end: i64 = "end",
        device: i64 = "deviceId",
        context: Option<i64> = "contextId",
        stream: Option<i64> = "streamId",
        correlation: u64 = "correlationId",
        process: Option<i64> = "globalPid",
        node: Option<i64> = "graphNodeId",
    }

    Kernel {
        demangled: Option<i64> = "demangledName",
        short: Option<i64> = "shortName",
        registers: u32 = "registersPerThread",
        grid_x: u64 = "gridX",
        grid_y: u64 = "gridY",
        grid_z: u64 = "gridZ",
        block_x: u32 = "blockX",
        block_y: u32 = "blockY",
        block_z: u32 = "blockZ",
        static_shared: u32 = "staticSharedMemory",
        dynamic_shared: u32 = "dynamicSharedMemory",
        local: u32 = "localMemoryPerThread",
        graph: Option<i64> = "graphId",
        grid: Option<i64> = "gridId",
        launch: Option<i64> = "launchType",
        executed: Option<i64> = "sharedMemoryExecuted",
        local_total: Option<i64> = "localMemoryTotal",
        green: Option<i64> = "greenContextId",
    }

    Memcpy {
        bytes: u64 = "bytes",
        kind: Option<i64> = "copyKind",
        source: Option<i64> = "srcKind",
        destination: Option<i64> = "dstKind",
        source_device: Option<i64> = "srcDeviceId",
        destination_device: Option<i64> = "dstDeviceId",
        address: Option<i64> = "virtualAddress",
        count: Option<i64> = "copyCount",
        cause: Option<i64> = "migrationCause",
    }

    Memset {
        bytes: u64 = "bytes",
        value: Option<i64> = "value",
        kind: Option<i64> = "memKind",
    }

    /// A graph that was traced as a whole, without its nodes.
    Graph {
        graph: Option<i64> = "graphId",
        executable: Option<i64> = "graphExecId",
    }

    /// A wait of the host for a device, or an event that a stream recorded.
    Sync {
        start: Option<i64> = "start|timestamp",
        end: Option<i64> = "end|timestamp",
        device: Option<i64> = "deviceId",
        context: Option<i64> = "contextId",
        stream: Option<i64> = "streamId",
        correlation: u64 = "correlationId",
        process: Option<i64> = "globalPid",
        kind: Option<i64> = "syncType",
        event: Option<i64> = "eventId",
    }

    Memory<'r> {
        time: i64 = "start",
        process: Option<i64> = "globalPid",
        device: Option<i64> = "deviceId",
        address: Option<i64> = "address",
        bytes: u64 = "bytes",
        kind: Option<i64> = "memKind",
        operation: Option<i64> = "memoryOperationType",
        name: &'r str = "name",
        correlation: u64 = "correlationId",
    }

    Metric<'r> {
        kind: Option<i64> = "typeId",
        metric: i64 = "metricId",
        name: &'r str = "metricName",
    }

    Sample<'r> {
        time: i64 = "timestamp",
        kind: Option<i64> = "typeId",
        metric: i64 = "metricId",
        value: RowField<'r> = "value",
    }
}

/// The kinds of memory of the host, whose numbers begin at 0 in exports.
const HOST_MEMORY: [i64; 2] = [0, 1];
/// The operation that frees memory.
const DEALLOCATION: i64 = 1;
/// No context, stream or device, as CUPTI writes it.
const NONE: i64 = 0xffff_ffff;

/// The part of a piece of work that differs by its kind.
#[derive(Default)]
struct KindDetails {
    stage: StageHandle,
    bytes: u64,
    launch: Option<Launch>,
    resources: Resources,
    arguments: Vec<(TextHandle, ArgumentValue)>,
}

impl Export<'_> {
    /// The queue of work. Nodes of graphs run on streams of the runtime's own, hundreds of them: they share the queue
    /// "CUDA graphs", with as many rows as run at a time.
    fn queue(&mut self, at: &Common) -> QueueHandle {
        let (global, _) = thread_of(at.process.unwrap_or(0));
        let process = self.process(global);
        let pid = pid_of(global);
        let agent = self.device(pid, at.device);
        let (context, stream) = (at.context.unwrap_or(0), at.stream.unwrap_or(0));
        let of_graph = at.node.is_some_and(|node| node != 0);
        let name = match (of_graph, self.streams.get(&(pid, context, stream))) {
            (true, _) => "CUDA graphs".to_owned(),
            (false, Some(name)) => format!("stream {stream} {name}"),
            (false, None) => format!("stream {stream}"),
        };
        let name = self.tables.text(&name);
        self.tables.queue(QueueRow {
            process,
            agent,
            context: context as u32,
            domain: Domain::CUDA_RUNTIME,
            stream: if of_graph { 0 } else { stream as u32 },
            name,
        })
    }

    /// The work of a table, which has `columns` beside the common ones.
    fn work(
        &mut self,
        table: &str,
        columns: &[&'static str],
        mut describe: impl FnMut(&mut Self, &dyn Row) -> Result<KindDetails, Damage>,
    ) {
        let columns = [Common::COLUMNS, columns].concat();
        self.each(table, &columns, |export, row| {
            let at = Common::read(row)?;
            let (start, end) = match (at.start, at.end) {
                // It was not measured.
                (0, 0) => (0, 0),
                (start, end) => (export.time(row, 0, start)?, export.time(row, 1, end)?),
            };
            let described = describe(export, &RowRest(row, Common::COLUMNS.len()))?;
            let queue = export.queue(&at);
            let mut arguments = export.tables.numbers(&[("graph_node_id", at.node)]);
            arguments.extend(described.arguments);
            let process = export.process(thread_of(at.process.unwrap_or(0)).0);
            let arguments = export.tables.arguments(arguments);
            export.tables.add_work(WorkRow {
                process,
                queue,
                stage: described.stage,
                correlation: at.correlation,
                start,
                end,
                bytes: described.bytes,
                launch: described.launch,
                resources: described.resources,
                arguments,
                ..WorkRow::default()
            });
            Ok(())
        });
    }

    pub(super) fn kernels(&mut self, table: &str) {
        self.work(table, Kernel::COLUMNS, |export, row| {
            let kernel = Kernel::read(row)?;
            let workgroup = [kernel.block_x, kernel.block_y, kernel.block_z];
            let groups = [kernel.grid_x, kernel.grid_y, kernel.grid_z];
            let items = [0, 1, 2].map(|at| groups[at].saturating_mul(workgroup[at].into()));
            let texts = &export.tables.texts;
            let [short, full] = [kernel.short, kernel.demangled]
                .map(|name| texts.get(export.string(name)).to_owned());
            Ok(KindDetails {
                stage: export.tables.kernel(&short, &full),
                bytes: 0,
                launch: Some(Launch {
                    grid: items,
                    workgroup,
                }),
                resources: Resources {
                    registers: kernel.registers,
                    static_local: kernel.static_shared,
                    dynamic_local: kernel.dynamic_shared,
                    private: kernel.local,
                    ..Resources::default()
                },
                arguments: export.tables.numbers(&[
                    ("graph_id", kernel.graph),
                    ("grid_id", kernel.grid),
                    ("launch_type", kernel.launch),
                    ("shared_memory_executed", kernel.executed),
                    ("local_memory_total", kernel.local_total),
                    ("green_context_id", kernel.green),
                ]),
            })
        });
    }

    pub(super) fn copies(&mut self) {
        let table = "CUPTI_ACTIVITY_KIND_MEMCPY";
        self.work(table, Memcpy::COLUMNS, |export, row| {
            let copy = Memcpy::read(row)?;
            let kind = copy.kind.unwrap_or(0);
            let transfer = u8::try_from(kind).ok();
            let transfer = transfer.filter(|kind| (1..=10).contains(kind));
            let name = match transfer.and_then(|kind| TransferKind(kind).name()) {
                Some(name) => name.to_owned(),
                None => {
                    let label = export.label("ENUM_CUDA_MEMCPY_OPER", kind);
                    format!("copy {}", label.to_ascii_lowercase())
                }
            };
            let mut arguments = Vec::new();
            for (name, kind) in [("source", copy.source), ("destination", copy.destination)] {
                if let Some(kind) = kind {
                    let label = export.label("ENUM_CUDA_MEM_KIND", kind);
                    let label = ArgumentValue::Text(export.tables.text(&label));
                    arguments.push((export.tables.text(name), label));
                }
            }
            arguments.extend(export.tables.numbers(&[
                ("source_device", copy.source_device),
                ("destination_device", copy.destination_device),
                ("copies", copy.count),
                ("migration_cause", copy.cause),
            ]));
            if let Some(address) = copy.address.filter(|address| *address != 0) {
                let address = ArgumentValue::Pointer(address as u64);
                arguments.push((export.tables.text("address"), address));
            }
            Ok(KindDetails {
                stage: export.tables.stage(WorkKind::Copy, &name, ""),
                bytes: copy.bytes,
                arguments,
                ..KindDetails::default()
            })
        });
    }

    pub(super) fn sets(&mut self) {
        let table = "CUPTI_ACTIVITY_KIND_MEMSET";
        self.work(table, Memset::COLUMNS, |export, row| {
            let set = Memset::read(row)?;
            Ok(KindDetails {
                stage: export.tables.stage(WorkKind::Set, WorkKind::FILL, ""),
                bytes: set.bytes,
                arguments: export
                    .tables
                    .numbers(&[("value", set.value), ("memory_kind", set.kind)]),
                ..KindDetails::default()
            })
        });
    }

    pub(super) fn graphs(&mut self) {
        let table = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
        self.work(table, Graph::COLUMNS, |export, row| {
            let graph = Graph::read(row)?;
            let name = format!("CUDA graph {}", graph.graph.unwrap_or(0));
            Ok(KindDetails {
                stage: export.tables.stage(WorkKind::Kernel, &name, ""),
                arguments: export
                    .tables
                    .numbers(&[("graph_exec_id", graph.executable)]),
                ..KindDetails::default()
            })
        });
    }

    /// Waits of the host for devices, which last while work runs and so are on a track of their own, and events that
    /// streams recorded, where their times were collected.
    pub(super) fn synchronizations(&mut self) {
        for (table, category, is_wait) in [
            (
                "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                "CUDA synchronization",
                true,
            ),
            ("CUPTI_ACTIVITY_KIND_CUDA_EVENT", "CUDA events", false),
        ] {
            self.each(table, Sync::COLUMNS, |export, row| {
                let sync = Sync::read(row)?;
                let (start, end) = (sync.start.unwrap_or(0), sync.end.unwrap_or(0));
                if !is_wait && start == 0 {
                    let reason = "CUDA events without a time, which was not collected";
                    export.report.unrepresented(export.file, reason, None);
                    return Ok(());
                }
                let (start, end) = (export.time(row, 0, start)?, export.time(row, 1, end)?);
                let process = export.process(thread_of(sync.process.unwrap_or(0)).0);
                let name = if is_wait {
                    let label = export.label("ENUM_CUPTI_SYNC_TYPE", sync.kind.unwrap_or(0));
                    match label.parse::<i64>() {
                        Ok(kind) => format!("synchronization of type {kind}"),
                        Err(_) => label,
                    }
                } else {
                    "CUDA event".to_owned()
                };
                let tables = &mut export.tables;
                let mut arguments = Vec::new();
                for (name, value) in [
                    ("device", sync.device),
                    ("context", sync.context),
                    ("stream", sync.stream),
                    ("event", sync.event),
                ] {
                    if let Some(value) = value.filter(|value| (0..NONE).contains(value)) {
                        arguments.push((tables.text(name), ArgumentValue::Int(value)));
                    }
                }
                let arguments = tables.arguments(arguments);
                let (name, category) = (tables.text(&name), tables.text(category));
                tables.add_host_in(
                    HostLane::Process(process, category),
                    HostRow {
                        kind: if is_wait {
                            HostKind::Slice(name, category)
                        } else {
                            HostKind::Instant(name, category)
                        },
                        start,
                        end,
                        correlation: sync.correlation,
                        arguments,
                        ..HostRow::default()
                    },
                );
                Ok(())
            });
        }
    }

    pub(super) fn memory(&mut self) {
        let table = "CUDA_GPU_MEMORY_USAGE_EVENTS";
        self.each(table, Memory::COLUMNS, |export, row| {
            let memory = Memory::read(row)?;
            let time = export.time(row, 0, memory.time)?;
            let (global, _) = thread_of(memory.process.unwrap_or(0));
            let process = export.process(global);
            let agent = export.device(pid_of(global), memory.device.unwrap_or(0));
            let kind = memory.kind.unwrap_or(0);
            let freed = memory.operation == Some(DEALLOCATION);
            let address = memory.address.unwrap_or(0) as u64;
            let label = export.label("ENUM_CUDA_MEM_KIND", kind);
            let tables = &mut export.tables;
            let mut arguments = vec![(
                tables.text("memory"),
                ArgumentValue::Text(tables.text(&label)),
            )];
            if !memory.name.is_empty() {
                let name = ArgumentValue::Text(tables.text(memory.name));
                arguments.push((tables.text("variable"), name));
            }
            tables.add_allocation(AllocationRow {
                process,
                agent,
                name: if freed { "deallocation" } else { "allocation" },
                start: time,
                end: None,
                correlation: memory.correlation,
                address,
                bytes: memory.bytes,
                freed: Some(freed).filter(|_| !HOST_MEMORY.contains(&kind)),
                arguments,
            });
            Ok(())
        });
    }

    /// Counters of devices, sampled by time. `device` is what the names of its devices begin with.
    pub(super) fn metrics(&mut self, table: &str, names: &'static str, device: &'static str) {
        let mut metrics = std::collections::HashMap::new();
        let counter = |export: &mut Self, kind: Option<i64>, name: &str| {
            // The device is in the lowest byte of the type.
            let full = format!("{device} {} {name}", kind.unwrap_or(0) & 0xff);
            let name = export.tables.text(&full);
            let unit = if full.contains('%') {
                CounterUnit::Percent
            } else {
                CounterUnit::Count
            };
            export.tables.counter(CounterRow {
                process: None,
                name,
                unit,
            })
        };
        self.each(names, Metric::COLUMNS, |export, row| {
            let metric = Metric::read(row)?;
            let handle = counter(export, metric.kind, metric.name);
            metrics.insert((metric.kind, metric.metric), handle);
            Ok(())
        });
        self.each(table, Sample::COLUMNS, |export, row| {
            let Sample {
                time,
                kind,
                metric,
                value,
            } = Sample::read(row)?;
            let time = export.time(row, 0, time)?;
            let known = metrics.get(&(kind, metric));
            let known = known.or_else(|| metrics.get(&(None, metric))).copied();
            let counter = known.unwrap_or_else(|| {
                let handle = counter(export, kind, &format!("metric {metric}"));
                *metrics.entry((kind, metric)).or_insert(handle)
            });
            let value = match value {
                RowField::Null => CounterNumber::Int(0),
                RowField::Int(value) => CounterNumber::Int(value),
                RowField::Real(value) => CounterNumber::Double(value),
                RowField::Text(_) | RowField::Bytes(_) => return Err(row.damage(3, "a number")),
            };
            export.tables.add_value(ValueRow {
                counter,
                time,
                value,
            });
            Ok(())
        });
    }
}
