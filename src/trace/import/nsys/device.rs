//! Work of devices, waits for it, memory, and counters.

use super::super::sqlite::{Damage, Row, columns};
use super::super::tables::{
    ArgumentValue, Arguments, CounterNumber, CounterRow, HostKind, HostRow, Lane, MemoryRow,
    ProcessHandle, QueueHandle, QueueRow, ValueRow, WorkRow,
};
use super::{Export, pid_of, thread_of};
use crate::record::{Domain, TransferKind};
use crate::trace::model::{CounterUnit, Launch, Resources, WorkKind};

columns!(Kernel {
    start = "start", end = "end", device = "deviceId", context = "contextId", stream = "streamId",
    correlation = "correlationId", process = "globalPid", demangled = "demangledName",
    short = "shortName", registers = "registersPerThread", grid_x = "gridX", grid_y = "gridY",
    grid_z = "gridZ", block_x = "blockX", block_y = "blockY", block_z = "blockZ",
    static_shared = "staticSharedMemory", dynamic_shared = "dynamicSharedMemory",
    local = "localMemoryPerThread", node = "graphNodeId", grid = "gridId", launch = "launchType",
    executed = "sharedMemoryExecuted", green = "greenContextId", local_total = "localMemoryTotal",
    graph = "graphId",
});
columns!(Memcpy {
    start = "start", end = "end", device = "deviceId", context = "contextId", stream = "streamId",
    correlation = "correlationId", process = "globalPid", bytes = "bytes", kind = "copyKind",
    from = "srcKind", to = "dstKind", from_device = "srcDeviceId", to_device = "dstDeviceId",
    node = "graphNodeId", address = "virtualAddress", count = "copyCount", cause = "migrationCause",
});
columns!(Memset {
    start = "start", end = "end", device = "deviceId", context = "contextId", stream = "streamId",
    correlation = "correlationId", process = "globalPid", bytes = "bytes", value = "value",
    node = "graphNodeId", kind = "memKind",
});
columns!(Graph {
    start = "start", end = "end", device = "deviceId", context = "contextId", stream = "streamId",
    correlation = "correlationId", process = "globalPid", graph = "graphId", executable = "graphExecId",
});
columns!(Wait {
    start = "start", end = "end", device = "deviceId", context = "contextId", stream = "streamId",
    correlation = "correlationId", process = "globalPid", kind = "syncType", event = "eventId",
});
columns!(Event {
    time = "timestamp", device = "deviceId", context = "contextId", stream = "streamId",
    correlation = "correlationId", process = "globalPid", event = "eventId",
});
columns!(Memory {
    time = "start", process = "globalPid", device = "deviceId", address = "address", bytes = "bytes",
    kind = "memKind", operation = "memoryOperationType", name = "name", correlation = "correlationId",
});
columns!(Metric { kind = "typeId", metric = "metricId", name = "metricName", });
columns!(Sample { time = "timestamp", kind = "typeId", metric = "metricId", value = "value", });

/// The kinds of memory of the host, whose numbers begin at 0 in exports.
const HOST_MEMORY: [i64; 2] = [0, 1];
/// The operation that frees memory.
const DEALLOCATION: i64 = 1;
/// No context, stream or device, as CUPTI writes it.
const NONE: i64 = 0xffff_ffff;

/// Where work ran.
struct Place {
    process: ProcessHandle,
    queue: QueueHandle,
}

impl Export<'_> {
    /// The queue of a row. Nodes of graphs run on streams of the runtime's own, hundreds of them: they share the queue
    /// "CUDA graphs", with as many rows as run at a time.
    fn queue(
        &mut self,
        row: &Row<'_>,
        [global, device, context, stream]: [usize; 4],
        node: Option<usize>,
    ) -> Result<Place, Damage> {
        let (global, _) = thread_of(row.int(global)?.unwrap_or(0));
        let process = self.process(global);
        let pid = pid_of(global);
        let agent = self.device(pid, row.known_int(device)?);
        let (context, stream) = (
            row.int(context)?.unwrap_or(0),
            row.int(stream)?.unwrap_or(0),
        );
        let of_graph = match node {
            Some(node) => row.int(node)?.is_some_and(|node| node != 0),
            None => false,
        };
        let name = match (of_graph, self.streams.get(&(pid, context, stream))) {
            (true, _) => "CUDA graphs".to_owned(),
            (false, Some(name)) => format!("stream {stream} {name}"),
            (false, None) => format!("stream {stream}"),
        };
        let name = self.tables.text(&name);
        let queue = self.tables.queue(QueueRow {
            process,
            agent,
            context: context as u32,
            domain: Domain::CUDA_RUNTIME,
            stream: if of_graph { 0 } else { stream as u32 },
            name,
        });
        Ok(Place { process, queue })
    }

    /// The values of a row that are in no other place, as arguments. 0 and `NULL` are left out.
    fn numbers(&mut self, row: &Row<'_>, columns: &[(&str, usize)]) -> Result<Arguments, Damage> {
        let mut arguments = Vec::new();
        for (name, place) in columns {
            if let Some(value) = row.int(*place)?.filter(|value| *value != 0) {
                arguments.push((self.tables.text(name), ArgumentValue::Int(value)));
            }
        }
        Ok(self.tables.arguments(arguments))
    }

    pub(super) fn kernels(&mut self, table: &str) {
        self.each(table, Kernel::ALL, |export, row| {
            let (start, end) =
                export.interval(row, Kernel::start as usize, Kernel::end as usize)?;
            let groups = [Kernel::grid_x, Kernel::grid_y, Kernel::grid_z];
            let blocks = [Kernel::block_x, Kernel::block_y, Kernel::block_z];
            let mut launch = Launch::default();
            for (dimension, (groups, items)) in groups.into_iter().zip(blocks).enumerate() {
                let (groups, items) = (row.size(groups as usize)?, row.small(items as usize)?);
                launch.workgroup[dimension] = items;
                launch.grid[dimension] = groups.saturating_mul(items.into());
            }
            let resources = Resources {
                registers: row.small(Kernel::registers as usize)?,
                static_local: row.small(Kernel::static_shared as usize)?,
                dynamic_local: row.small(Kernel::dynamic_shared as usize)?,
                private: row.small(Kernel::local as usize)?,
            };
            let (short, demangled) = (
                export.string(row.int(Kernel::short as usize)?),
                export.string(row.int(Kernel::demangled as usize)?),
            );
            let texts = &export.tables.texts;
            let demangled = texts.get(demangled).to_owned();
            let short = match texts.get(short) {
                "" => demangled.clone(),
                short => short.to_owned(),
            };
            let demangled = if demangled == short { "" } else { &demangled };
            let stage = export.tables.stage(WorkKind::Kernel, &short, demangled);
            let place = [
                Kernel::process,
                Kernel::device,
                Kernel::context,
                Kernel::stream,
            ];
            let place =
                export.queue(row, place.map(|c| c as usize), Some(Kernel::node as usize))?;
            let arguments = export.numbers(
                row,
                &[
                    ("graph_node_id", Kernel::node as usize),
                    ("graph_id", Kernel::graph as usize),
                    ("grid_id", Kernel::grid as usize),
                    ("launch_type", Kernel::launch as usize),
                    ("shared_memory_executed", Kernel::executed as usize),
                    ("local_memory_total", Kernel::local_total as usize),
                    ("green_context_id", Kernel::green as usize),
                ],
            )?;
            let correlation = row.size(Kernel::correlation as usize)?;
            export.tables.add_work(WorkRow {
                process: place.process,
                queue: place.queue,
                stage,
                thread: 0,
                correlation,
                dispatch: 0,
                start,
                end,
                bytes: 0,
                launch: Some(launch),
                resources,
                arguments,
            });
            Ok(())
        });
    }

    pub(super) fn copies(&mut self) {
        self.each("CUPTI_ACTIVITY_KIND_MEMCPY", Memcpy::ALL, |export, row| {
            let (start, end) =
                export.interval(row, Memcpy::start as usize, Memcpy::end as usize)?;
            let kind = row.int(Memcpy::kind as usize)?.unwrap_or(0);
            let transfer = u8::try_from(kind)
                .ok()
                .filter(|kind| (1..=10).contains(kind));
            let name = match transfer.and_then(|kind| TransferKind(kind).name()) {
                Some(name) => name.to_owned(),
                None => {
                    let label = export.label("ENUM_CUDA_MEMCPY_OPER", kind);
                    format!("copy {}", label.to_ascii_lowercase())
                }
            };
            let stage = export.tables.stage(WorkKind::Copy, &name, "");
            let place = [
                Memcpy::process,
                Memcpy::device,
                Memcpy::context,
                Memcpy::stream,
            ];
            let place =
                export.queue(row, place.map(|c| c as usize), Some(Memcpy::node as usize))?;
            let mut arguments = Vec::new();
            for (name, column) in [("source", Memcpy::from), ("destination", Memcpy::to)] {
                if let Some(kind) = row.int(column as usize)? {
                    let label = export.label("ENUM_CUDA_MEM_KIND", kind);
                    let value = ArgumentValue::Text(export.tables.text(&label));
                    arguments.push((export.tables.text(name), value));
                }
            }
            for (name, column) in [
                ("source_device", Memcpy::from_device),
                ("destination_device", Memcpy::to_device),
                ("graph_node_id", Memcpy::node),
                ("copies", Memcpy::count),
                ("migration_cause", Memcpy::cause),
            ] {
                if let Some(value) = row.int(column as usize)?.filter(|value| *value != 0) {
                    arguments.push((export.tables.text(name), ArgumentValue::Int(value)));
                }
            }
            if let Some(address) = row
                .int(Memcpy::address as usize)?
                .filter(|value| *value != 0)
            {
                let value = ArgumentValue::Pointer(address as u64);
                arguments.push((export.tables.text("address"), value));
            }
            let arguments = export.tables.arguments(arguments);
            let (correlation, bytes) = (
                row.size(Memcpy::correlation as usize)?,
                row.size(Memcpy::bytes as usize)?,
            );
            export.tables.add_work(WorkRow {
                process: place.process,
                queue: place.queue,
                stage,
                thread: 0,
                correlation,
                dispatch: 0,
                start,
                end,
                bytes,
                launch: None,
                resources: Resources::default(),
                arguments,
            });
            Ok(())
        });
    }

    pub(super) fn sets(&mut self) {
        self.each("CUPTI_ACTIVITY_KIND_MEMSET", Memset::ALL, |export, row| {
            let (start, end) =
                export.interval(row, Memset::start as usize, Memset::end as usize)?;
            let stage = export.tables.stage(WorkKind::Set, WorkKind::FILL, "");
            let place = [
                Memset::process,
                Memset::device,
                Memset::context,
                Memset::stream,
            ];
            let place =
                export.queue(row, place.map(|c| c as usize), Some(Memset::node as usize))?;
            let arguments = export.numbers(
                row,
                &[
                    ("value", Memset::value as usize),
                    ("memory_kind", Memset::kind as usize),
                    ("graph_node_id", Memset::node as usize),
                ],
            )?;
            let (correlation, bytes) = (
                row.size(Memset::correlation as usize)?,
                row.size(Memset::bytes as usize)?,
            );
            export.tables.add_work(WorkRow {
                process: place.process,
                queue: place.queue,
                stage,
                thread: 0,
                correlation,
                dispatch: 0,
                start,
                end,
                bytes,
                launch: None,
                resources: Resources::default(),
                arguments,
            });
            Ok(())
        });
    }

    /// Graphs that were traced as a whole, without their nodes.
    pub(super) fn graphs(&mut self) {
        self.each(
            "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
            Graph::ALL,
            |export, row| {
                let (start, end) =
                    export.interval(row, Graph::start as usize, Graph::end as usize)?;
                let name = format!(
                    "CUDA graph {}",
                    row.int(Graph::graph as usize)?.unwrap_or(0)
                );
                let stage = export.tables.stage(WorkKind::Kernel, &name, "");
                let place = [Graph::process, Graph::device, Graph::context, Graph::stream];
                let place = export.queue(row, place.map(|c| c as usize), None)?;
                let executable = [("graph_exec_id", Graph::executable as usize)];
                let arguments = export.numbers(row, &executable)?;
                let correlation = row.size(Graph::correlation as usize)?;
                export.tables.add_work(WorkRow {
                    process: place.process,
                    queue: place.queue,
                    stage,
                    thread: 0,
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
            },
        );
    }

    /// Waits of the host for devices: they last while work runs, so they are on a track of their own.
    pub(super) fn synchronizations(&mut self) {
        self.each(
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
            Wait::ALL,
            |export, row| {
                let start = export.time(row, Wait::start as usize)?;
                let end = export.time(row, Wait::end as usize)?;
                let (process, _) = thread_of(row.int(Wait::process as usize)?.unwrap_or(0));
                let process = export.process(process);
                let kind = row.int(Wait::kind as usize)?.unwrap_or(0);
                let label = export.label("ENUM_CUPTI_SYNC_TYPE", kind);
                let name = match label.parse::<i64>() {
                    Ok(kind) => format!("synchronization of type {kind}"),
                    Err(_) => label,
                };
                let place = export.place_arguments(
                    row,
                    &[
                        ("device", Wait::device),
                        ("context", Wait::context),
                        ("stream", Wait::stream),
                        ("event", Wait::event),
                    ]
                    .map(|(name, column)| (name, column as usize)),
                )?;
                let correlation = row.size(Wait::correlation as usize)?;
                let tables = &mut export.tables;
                let (name, category) = (tables.text(&name), tables.text("CUDA synchronization"));
                tables.add_host_in(
                    Lane::Process(process, category),
                    HostRow {
                        kind: HostKind::Slice(name, category),
                        start,
                        end,
                        correlation,
                        arguments: place,
                        ..HostRow::default()
                    },
                );
                Ok(())
            },
        );
    }

    /// The device, context, stream and event of a row, as far as it has them.
    fn place_arguments(
        &mut self,
        row: &Row<'_>,
        columns: &[(&str, usize)],
    ) -> Result<Arguments, Damage> {
        let mut arguments = Vec::new();
        for (name, column) in columns {
            if let Some(value) = row.int(*column)?.filter(|value| (0..NONE).contains(value)) {
                arguments.push((self.tables.text(name), ArgumentValue::Int(value)));
            }
        }
        Ok(self.tables.arguments(arguments))
    }

    /// Events that streams recorded, where their times were collected.
    pub(super) fn cuda_events(&mut self) {
        self.each(
            "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
            Event::ALL,
            |export, row| {
                if row.int(Event::time as usize)?.unwrap_or(0) == 0 {
                    let reason = "CUDA events without a time, which was not collected";
                    export.report.unrepresented(export.file, reason, None);
                    return Ok(());
                }
                let time = export.time(row, Event::time as usize)?;
                let (process, _) = thread_of(row.int(Event::process as usize)?.unwrap_or(0));
                let process = export.process(process);
                let arguments = export.place_arguments(
                    row,
                    &[
                        ("device", Event::device),
                        ("context", Event::context),
                        ("stream", Event::stream),
                        ("event", Event::event),
                    ]
                    .map(|(name, column)| (name, column as usize)),
                )?;
                let correlation = row.size(Event::correlation as usize)?;
                let tables = &mut export.tables;
                let (name, category) = (tables.text("CUDA event"), tables.text("CUDA events"));
                tables.add_host_in(
                    Lane::Process(process, category),
                    HostRow {
                        kind: HostKind::Instant(name, category),
                        start: time,
                        end: time,
                        correlation,
                        arguments,
                        ..HostRow::default()
                    },
                );
                Ok(())
            },
        );
    }

    pub(super) fn memory(&mut self) {
        self.each(
            "CUDA_GPU_MEMORY_USAGE_EVENTS",
            Memory::ALL,
            |export, row| {
                let time = export.time(row, Memory::time as usize)?;
                let (global, _) = thread_of(row.int(Memory::process as usize)?.unwrap_or(0));
                let process = export.process(global);
                let agent = export.device(
                    pid_of(global),
                    row.int(Memory::device as usize)?.unwrap_or(0),
                );
                let kind = row.int(Memory::kind as usize)?.unwrap_or(0);
                let freed = row.int(Memory::operation as usize)? == Some(DEALLOCATION);
                let address = row.int(Memory::address as usize)?.unwrap_or(0) as u64;
                let bytes = row.size(Memory::bytes as usize)?;
                let correlation = row.size(Memory::correlation as usize)?;
                let label = export.label("ENUM_CUDA_MEM_KIND", kind);
                let tables = &mut export.tables;
                let mut arguments = vec![
                    (tables.text("bytes"), ArgumentValue::Uint(bytes)),
                    (tables.text("address"), ArgumentValue::Pointer(address)),
                    (
                        tables.text("memory"),
                        ArgumentValue::Text(tables.text(&label)),
                    ),
                ];
                if let Some(name) = row
                    .text(Memory::name as usize)?
                    .filter(|name| !name.is_empty())
                {
                    arguments.push((
                        tables.text("variable"),
                        ArgumentValue::Text(tables.text(name)),
                    ));
                }
                let arguments = tables.arguments(arguments);
                let name = tables.text(if freed { "deallocation" } else { "allocation" });
                let category = tables.text("memory allocation");
                tables.add_host_in(
                    Lane::Process(process, category),
                    HostRow {
                        kind: HostKind::Instant(name, category),
                        start: time,
                        end: time,
                        correlation,
                        arguments,
                        ..HostRow::default()
                    },
                );
                if !HOST_MEMORY.contains(&kind) {
                    tables.add_memory(MemoryRow {
                        process,
                        agent,
                        time,
                        address,
                        bytes,
                        freed,
                    });
                }
                Ok(())
            },
        );
    }

    /// Counters of devices, sampled by time. `device` is what the names of its devices begin with.
    pub(super) fn metrics(&mut self, table: &str, names: &'static str, device: &'static str) {
        let mut metrics = std::collections::HashMap::new();
        self.each(names, Metric::ALL, |export, row| {
            let kind = row.int(Metric::kind as usize)?;
            let metric = row.known_int(Metric::metric as usize)?;
            let name = row.text(Metric::name as usize)?.unwrap_or("");
            let unit = match name.contains('%') {
                true => CounterUnit::Percent,
                false => CounterUnit::Count,
            };
            // The device is in the lowest byte of the type.
            let name = format!("{device} {} {name}", kind.unwrap_or(0) & 0xff);
            let name = export.tables.text(&name);
            let counter = CounterRow {
                process: None,
                name,
                unit,
            };
            metrics.insert((kind, metric), export.tables.counter(counter));
            Ok(())
        });
        self.each(table, Sample::ALL, |export, row| {
            let kind = row.int(Sample::kind as usize)?;
            let metric = row.known_int(Sample::metric as usize)?;
            let counter = metrics
                .get(&(kind, metric))
                .or_else(|| metrics.get(&(None, metric)));
            let counter = match counter {
                Some(counter) => *counter,
                None => {
                    let name = format!("{device} {} metric {metric}", kind.unwrap_or(0) & 0xff);
                    let name = export.tables.text(&name);
                    let unit = CounterUnit::Count;
                    let counter = export.tables.counter(CounterRow {
                        process: None,
                        name,
                        unit,
                    });
                    metrics.insert((kind, metric), counter);
                    counter
                }
            };
            let time = export.time(row, Sample::time as usize)?;
            let value = match row.int(Sample::value as usize) {
                Ok(value) => CounterNumber::Int(value.unwrap_or(0)),
                Err(_) => CounterNumber::Double(row.number(Sample::value as usize)?.unwrap_or(0.0)),
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
