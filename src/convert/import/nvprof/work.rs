//! Work of devices, unified memory, allocations, and readings of sensors.

use std::collections::HashSet;

use super::database::{Nvprof, bytes_of, word};
use crate::import::row::{Damage, Row, RowField, RowRest, rows};
use crate::import::tables::{
    AllocationRow, ArgumentValue, CounterNumber, CounterRow, DispatchCounterRow, HostKind,
    HostLane, HostRow, NO_END, QueueHandle, QueueRow, StageHandle, TextHandle, ValueRow, WorkRow,
};
use gputrail_record::{Domain, MemoryKind, TransferKind};
use gputrail_trace::model::{CounterUnit, Launch, Resources, WorkKind};

rows! {
    /// The columns that all work has.
    Common {
        start: Option<u64> = "start",
        end: u64 = "end",
        device: i64 = "deviceId",
        context: Option<i64> = "contextId",
        stream: Option<i64> = "streamId",
        correlation: u64 = "correlationId",
    }

    Kernel {
        name: Option<i64> = "name",
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
        local_total: Option<i64> = "localMemoryTotal",
        grid: Option<i64> = "gridId",
        parent: Option<i64> = "parentGridId",
        launch: Option<i64> = "launchType",
        executed: Option<i64> = "sharedMemoryExecuted",
    }

    Memcpy {
        bytes: u64 = "bytes",
        kind: u8 = "copyKind",
        source: u8 = "srcKind",
        destination: u8 = "dstKind",
        flags: i64 = "flags",
        source_device: Option<i64> = "srcDeviceId",
        destination_device: Option<i64> = "dstDeviceId",
    }

    Memset {
        bytes: u64 = "bytes",
        value: Option<i64> = "value",
        memory: u8 = "memoryKind",
    }

    /// A value of a device's counter while a kernel ran.
    Event {
        id: i64 = "id",
        value: i64 = "value",
        correlation: u64 = "correlationId",
    }

    Sync {
        kind: i64 = "type",
        start: u64 = "start",
        end: u64 = "end",
        correlation: u64 = "correlationId",
        context: Option<i64> = "contextId",
        stream: Option<i64> = "streamId",
        event: Option<i64> = "cudaEventId",
    }

    Overhead<'r> {
        kind: i64 = "overheadKind",
        object_kind: i64 = "objectKind",
        object: RowField<'r> = "objectId",
        start: u64 = "start",
        end: u64 = "end",
    }

    /// A transfer or fault of unified memory.
    Unified {
        kind: i64 = "counterKind",
        value: i64 = "value",
        start: u64 = "start|timestamp",
        end: u64 = "end",
        address: Option<i64> = "address",
        source: Option<i64> = "srcId|deviceId",
        destination: Option<i64> = "dstId",
        process: u32 = "processId",
        flags: Option<i64> = "flags",
    }

    /// Memory from its allocation to its release.
    Memory {
        kind: u8 = "memoryKind",
        address: i64 = "address",
        bytes: u64 = "bytes",
        start: u64 = "start",
        end: u64 = "end",
        process: u32 = "processId",
        device: i64 = "deviceId",
        name: Option<i64> = "name",
    }

    /// A reading of a sensor of a device.
    Reading<'r> {
        device: i64 = "deviceId",
        time: u64 = "timestamp",
        kind: i64 = "environmentKind",
        data: RowField<'r> = "data",
    }
}

/// Kinds of values of unified memory.
mod unified {
    pub const TO_DEVICE: i64 = 1;
    pub const TO_HOST: i64 = 2;
    pub const BETWEEN_DEVICES: i64 = 8;
}

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

impl Nvprof<'_> {
    /// All that devices did.
    pub(super) fn work(&mut self) {
        let counted = self.events();
        for table in ["KERNEL", "CONCURRENT_KERNEL", "CDP_KERNEL"] {
            self.kernels(table, &counted);
        }
        self.copies("MEMCPY");
        self.copies("MEMCPY2");
        self.sets();
        self.synchronizations();
        self.overheads();
        self.unified_memory();
        self.allocations();
        self.sensors();
    }

    fn queue(&mut self, at: &Common) -> QueueHandle {
        let process = self.process_of(at.correlation);
        let agent = self.agent(at.device);
        let (context, stream) = (at.context.unwrap_or(0), at.stream.unwrap_or(0));
        let name = match self.streams.get(&(context, stream)) {
            Some(name) => format!("stream {stream} {}", self.tables.texts.get(*name)),
            None => format!("stream {stream}"),
        };
        let name = self.tables.text(&name);
        self.tables.queue(QueueRow {
            process,
            agent,
            context: context as u32,
            domain: Domain::CUDA_RUNTIME,
            stream: stream as u32,
            name,
        })
    }

    /// The work of a table, which has `columns` beside the common ones.
    fn work_of(
        &mut self,
        table: &str,
        columns: &[&'static str],
        counted: &HashSet<u64>,
        mut describe: impl FnMut(&mut Self, &dyn Row) -> Result<KindDetails, Damage>,
    ) {
        let columns = [Common::COLUMNS, columns].concat();
        self.each(table, &columns, |nvprof, row| {
            let at = Common::read(row)?;
            let start = at.start.ok_or_else(|| row.damage(0, "a time"))?;
            let described = describe(nvprof, &RowRest(row, Common::COLUMNS.len()))?;
            let queue = nvprof.queue(&at);
            let process = nvprof.process_of(at.correlation);
            let arguments = nvprof.tables.arguments(described.arguments);
            let start = nvprof.time(start);
            nvprof.tables.add_work(WorkRow {
                process,
                queue,
                stage: described.stage,
                correlation: at.correlation,
                dispatch: if counted.contains(&at.correlation) {
                    at.correlation
                } else {
                    0
                },
                start,
                end: at.end,
                bytes: described.bytes,
                launch: described.launch,
                resources: described.resources,
                arguments,
                ..WorkRow::default()
            });
            Ok(())
        });
    }

    fn kernels(&mut self, table: &str, counted: &HashSet<u64>) {
        self.work_of(table, Kernel::COLUMNS, counted, |nvprof, row| {
            let kernel = Kernel::read(row)?;
            let workgroup = [kernel.block_x, kernel.block_y, kernel.block_z];
            let groups = [kernel.grid_x, kernel.grid_y, kernel.grid_z];
            let items = [0, 1, 2].map(|at| groups[at].saturating_mul(workgroup[at].into()));
            Ok(KindDetails {
                stage: nvprof.kernel(kernel.name),
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
                arguments: nvprof.tables.numbers(&[
                    ("grid_id", kernel.grid),
                    ("parent_grid_id", kernel.parent),
                    ("launch_type", kernel.launch),
                    ("shared_memory_executed", kernel.executed),
                    ("local_memory_total", kernel.local_total),
                ]),
            })
        });
    }

    /// Values of counters of devices: beside the kernel with their correlation id. Their names are not in the database.
    fn events(&mut self) -> HashSet<u64> {
        let mut counted = HashSet::new();
        self.each("EVENT", Event::COLUMNS, |nvprof, row| {
            let event = Event::read(row)?;
            let process = nvprof.process_of(event.correlation);
            counted.insert(event.correlation);
            let counter = nvprof.tables.text(&format!("event {}", event.id));
            nvprof.tables.add_dispatch_counter(DispatchCounterRow {
                process,
                dispatch: event.correlation,
                counter,
                value: event.value as f64,
            });
            Ok(())
        });
        counted
    }

    /// The name of a kind of memory as an argument.
    fn memory(&mut self, name: &str, kind: u8) -> Option<(TextHandle, ArgumentValue)> {
        let kind = MemoryKind(kind).name().filter(|_| kind != 0)?;
        let kind = ArgumentValue::Text(self.tables.text(kind));
        Some((self.tables.text(name), kind))
    }

    fn copies(&mut self, table: &str) {
        let none = HashSet::new();
        self.work_of(table, Memcpy::COLUMNS, &none, |nvprof, row| {
            let copy = Memcpy::read(row)?;
            let mut arguments = Vec::new();
            arguments.extend(nvprof.memory("source", copy.source));
            arguments.extend(nvprof.memory("destination", copy.destination));
            arguments.extend(nvprof.tables.numbers(&[
                ("source_device", copy.source_device),
                ("destination_device", copy.destination_device),
            ]));
            if copy.flags & 1 != 0 {
                arguments.push((nvprof.tables.text("async"), ArgumentValue::Uint(1)));
            }
            let name = match TransferKind(copy.kind).name() {
                Some(name) => name.to_owned(),
                None => format!("copy of kind {}", copy.kind),
            };
            Ok(KindDetails {
                stage: nvprof.tables.stage(WorkKind::Copy, &name, ""),
                bytes: copy.bytes,
                arguments,
                ..KindDetails::default()
            })
        });
    }

    fn sets(&mut self) {
        let none = HashSet::new();
        self.work_of("MEMSET", Memset::COLUMNS, &none, |nvprof, row| {
            let set = Memset::read(row)?;
            let mut arguments = nvprof.tables.numbers(&[("value", set.value)]);
            arguments.extend(nvprof.memory("memory", set.memory));
            Ok(KindDetails {
                stage: nvprof.tables.stage(WorkKind::Set, WorkKind::FILL, ""),
                bytes: set.bytes,
                arguments,
                ..KindDetails::default()
            })
        });
    }

    /// Waits of the host for devices, which last while work runs and so are on a track of their own.
    fn synchronizations(&mut self) {
        self.each("SYNCHRONIZATION", Sync::COLUMNS, |nvprof, row| {
            let sync = Sync::read(row)?;
            let process = nvprof.process_of(sync.correlation);
            let name = match sync.kind {
                1 => "event synchronize",
                2 => "stream wait event",
                3 => "stream synchronize",
                4 => "context synchronize",
                _ => "synchronization",
            };
            let known = |id: Option<i64>| id.filter(|id| (1..NONE).contains(id));
            let arguments = nvprof.tables.numbers(&[
                ("context", known(sync.context)),
                ("stream", known(sync.stream)),
                ("event", known(sync.event)),
            ]);
            let arguments = nvprof.tables.arguments(arguments);
            let category = nvprof.tables.text("CUDA synchronization");
            let kind = HostKind::Slice(nvprof.tables.text(name), category);
            let row = HostRow {
                kind,
                start: nvprof.time(sync.start),
                end: sync.end,
                correlation: sync.correlation,
                arguments,
                ..HostRow::default()
            };
            let lane = HostLane::Process(process, category);
            nvprof.tables.add_host_in(lane, row);
            Ok(())
        });
    }

    /// Times in which the profiler or the driver held the program up.
    fn overheads(&mut self) {
        self.each("OVERHEAD", Overhead::COLUMNS, |nvprof, row| {
            let overhead = Overhead::read(row)?;
            let (process, thread) = nvprof.owner(overhead.object_kind, overhead.object);
            let name = match overhead.kind {
                1 => "driver compiler",
                0x1_0000 => "buffer flush",
                0x2_0000 => "instrumentation",
                0x3_0000 => "resource",
                _ => "overhead",
            };
            let category = nvprof.tables.text("profiler overhead");
            let kind = HostKind::Slice(nvprof.tables.text(name), category);
            let row = HostRow {
                kind,
                start: nvprof.time(overhead.start),
                end: overhead.end,
                ..HostRow::default()
            };
            let lane = HostLane::other(process, thread, category);
            nvprof.tables.add_host_in(lane, row);
            Ok(())
        });
    }

    /// Transfers of unified memory are copies on a queue of the device; faults are events of the process.
    fn unified_memory(&mut self) {
        let table = "UNIFIED_MEMORY_COUNTER";
        self.each(table, Unified::COLUMNS, |nvprof, row| {
            let unified = Unified::read(row)?;
            let process = nvprof.process(unified.process);
            let start = nvprof.time(unified.start);
            let mut arguments = nvprof.tables.numbers(&[("flags", unified.flags)]);
            if let Some(address) = unified.address.filter(|address| *address != 0) {
                let address = ArgumentValue::Pointer(address as u64);
                arguments.push((nvprof.tables.text("address"), address));
            }
            let (direction, device) = match unified.kind {
                unified::TO_DEVICE => (TransferKind::HOST_TO_DEVICE, unified.destination),
                unified::TO_HOST => (TransferKind::DEVICE_TO_HOST, unified.source),
                unified::BETWEEN_DEVICES => (TransferKind::DEVICE_TO_DEVICE, unified.destination),
                kind => {
                    let name = match kind {
                        3 => "CPU page faults",
                        4 => "GPU page faults",
                        5 => "thrashing",
                        6 => "throttling",
                        7 => "remote map",
                        _ => "event",
                    };
                    let values = [("value", Some(unified.value)), ("device", unified.source)];
                    arguments.extend(nvprof.tables.numbers(&values));
                    let arguments = nvprof.tables.arguments(arguments);
                    let (name, category) = (
                        nvprof.tables.text(name),
                        nvprof.tables.text("unified memory"),
                    );
                    let is_point = unified.end <= start;
                    let row = HostRow {
                        kind: if is_point {
                            HostKind::Instant(name, category)
                        } else {
                            HostKind::Slice(name, category)
                        },
                        start,
                        end: if is_point { start } else { unified.end },
                        arguments,
                        ..HostRow::default()
                    };
                    let lane = HostLane::Process(process, category);
                    nvprof.tables.add_host_in(lane, row);
                    return Ok(());
                }
            };
            let device = device.filter(|device| (0..NONE).contains(device));
            let agent = nvprof.agent(device.unwrap_or(0));
            let name = nvprof.tables.text("unified memory");
            let queue = nvprof.tables.queue(QueueRow {
                process,
                agent,
                context: 0,
                domain: Domain::CUDA_RUNTIME,
                stream: 0,
                name,
            });
            let name = direction.name().unwrap_or("copy");
            let stage = nvprof.tables.stage(WorkKind::Copy, name, "");
            let arguments = nvprof.tables.arguments(arguments);
            nvprof.tables.add_work(WorkRow {
                process,
                queue,
                stage,
                start,
                end: unified.end,
                bytes: u64::try_from(unified.value).unwrap_or(0),
                arguments,
                ..WorkRow::default()
            });
            Ok(())
        });
    }

    fn allocations(&mut self) {
        self.each("MEMORY", Memory::COLUMNS, |nvprof, row| {
            let memory = Memory::read(row)?;
            let process = nvprof.process(memory.process);
            let agent = nvprof.agent(memory.device);
            let start = nvprof.time(memory.start);
            let variable = nvprof.string(memory.name);
            let of_device = !matches!(
                MemoryKind(memory.kind),
                MemoryKind::PAGEABLE | MemoryKind::PINNED
            );
            let times = [(false, start), (true, memory.end)];
            for (freed, time) in times {
                if time == 0 || time == NO_END {
                    continue;
                }
                let mut arguments = Vec::new();
                arguments.extend(nvprof.memory("memory", memory.kind));
                if variable != TextHandle::default() {
                    let name = ArgumentValue::Text(variable);
                    arguments.push((nvprof.tables.text("variable"), name));
                }
                nvprof.tables.add_allocation(AllocationRow {
                    process,
                    agent,
                    name: if freed { "deallocation" } else { "allocation" },
                    start: time,
                    end: None,
                    correlation: 0,
                    address: memory.address as u64,
                    bytes: memory.bytes,
                    freed: Some(freed).filter(|_| of_device),
                    arguments,
                });
            }
            Ok(())
        });
    }

    /// Clocks, temperature, power and fan of devices, over time.
    fn sensors(&mut self) {
        self.each("ENVIRONMENT", Reading::COLUMNS, |nvprof, row| {
            let reading = Reading::read(row)?;
            let bytes = bytes_of(reading.data);
            let values: &[(&str, usize, CounterUnit)] = match reading.kind {
                1 => &[
                    ("SM clock (MHz)", 0, CounterUnit::Unspecified),
                    ("memory clock (MHz)", 1, CounterUnit::Unspecified),
                ],
                2 => &[("temperature (C)", 0, CounterUnit::Unspecified)],
                3 => &[("power (mW)", 0, CounterUnit::Unspecified)],
                4 => &[("fan", 0, CounterUnit::Percent)],
                _ => {
                    let reason = "readings of sensors of a kind that is not known";
                    nvprof.report.unrepresented(nvprof.file, reason, None);
                    return Ok(());
                }
            };
            let time = nvprof.time(reading.time);
            for (name, place, unit) in values {
                if bytes.len() < 4 * place + 4 {
                    return Err(row.damage(3, "the bytes of a reading"));
                }
                let name = format!("GPU {} {name}", reading.device);
                let name = nvprof.tables.text(&name);
                let counter = nvprof.tables.counter(CounterRow {
                    process: None,
                    name,
                    unit: *unit,
                });
                nvprof.tables.add_value(ValueRow {
                    counter,
                    time,
                    value: CounterNumber::Int(word(bytes, *place).into()),
                });
            }
            Ok(())
        });
    }
}
