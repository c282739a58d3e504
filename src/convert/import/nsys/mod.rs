//! Nsight Systems' exports: to SQLite, to a folder of Parquet files, and to JSON lines. All of them have the same tables.
//!
//! Versions differ in the tables and columns that they have, and a table without rows is mostly left out: what is missing is
//! empty. Tables that are not known here become slices if they have a start, an end and a name, and are counted otherwise.
//! Times are nanoseconds from the start of the session, whose time of day the file tells. `docs/convert-tables.md` says what
//! becomes of each table.

mod arrow_tables;
#[cfg(test)]
mod arrow_tests;
mod device;
mod flatbuffer;
mod host;
mod json_lines;
#[cfg(test)]
mod json_lines_tests;
#[cfg(feature = "parquet")]
mod parquet_tables;
#[cfg(all(test, feature = "parquet"))]
mod parquet_tests;
#[cfg(all(test, feature = "sqlite"))]
mod tests;

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;

use super::row::{Damage, ParsedField, Row, rows};
use super::table_source::{TableInfo, TableSource};
use super::tables::{AgentHandle, AgentRow, ProcessHandle, ProcessRow, Tables, TextHandle};
use super::{InputFile, Report};
use crate::import::Allowance;
use gputrail_record::Nanos;
use gputrail_record::number_map::NumberMap;
use gputrail_trace::model::{Agent, Consumer};

pub(super) use arrow_tables::{is_export as is_arrow, is_stream as is_arrow_stream};
pub(super) use json_lines::is_export as is_json_lines;

/// The time of a session whose start is not told: events before it have times, too.
const UNKNOWN_START: i64 = 1_000_000_000_000;

/// Whether a database is an export of Nsight Systems.
#[cfg(feature = "sqlite")]
pub(super) fn is_export(database: &dyn TableSource) -> bool {
    database.table("StringIds").is_some()
        && database.tables().iter().any(|table| {
            let name = &table.name;
            ["CUPTI_ACTIVITY_", "TARGET_INFO_", "META_DATA_", "ENUM_"]
                .iter()
                .any(|p| name.starts_with(p))
                || [
                    "NVTX_EVENTS",
                    "OSRT_API",
                    "PROCESSES",
                    "ThreadNames",
                    "ANALYSIS_DETAILS",
                ]
                .contains(&&name[..])
        })
}

/// Passes an export to JSON lines on.
pub(super) fn read_json_lines(
    source: &InputFile,
    allowance: Allowance,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let (tables, damages) = json_lines::LineTables::open(source)?;
    damages.report(source.name(), report);
    let export = (&tables as &dyn TableSource, "Nsight Systems JSON lines");
    read(source, export, allowance, consumer, report)
}

/// Whether a Parquet file is a table of an export: the table of texts lies beside it.
pub(super) fn is_parquet_table(path: &Path) -> bool {
    path.with_file_name("StringIds.parquet").is_file()
}

/// Whether a file of Arrow is one table of an export.
pub(super) fn is_arrow_table(path: &Path) -> bool {
    path.with_file_name("StringIds.arrow").is_file()
}

/// Passes files of Arrow on: one with all tables, or those of a folder.
pub(super) fn read_arrow(
    sources: &[InputFile],
    allowance: Allowance,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let (tables, damages) = arrow_tables::ArrowTables::open(sources)?;
    for (path, damage) in damages {
        report.damage(&path, damage);
    }
    let Some(first) = sources.first() else {
        return Ok(());
    };
    let export = (&tables as &dyn TableSource, "Nsight Systems Arrow export");
    read(first, export, allowance, consumer, report)
}

/// Passes the Parquet files of a folder on.
#[cfg(feature = "parquet")]
pub(super) fn read_parquet(
    sources: &[InputFile],
    allowance: Allowance,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let (tables, damages) = parquet_tables::ParquetTables::open(sources);
    for (path, damage) in damages {
        report.damage(&path, damage);
    }
    let Some(first) = sources.first() else {
        return Ok(());
    };
    if tables.table("StringIds").is_none() {
        let expected = "all files of the folder: names are in StringIds.parquet";
        report.finding(first.name(), None, "a part of an export", expected);
    }
    let export = (&tables as &dyn TableSource, "Nsight Systems Parquet export");
    read(first, export, allowance, consumer, report)
}

/// Parquet files cannot be read.
#[cfg(not(feature = "parquet"))]
pub(super) fn read_parquet(
    sources: &[InputFile],
    _: usize,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    for source in sources {
        let expected = "another format: this gputrail was built without the feature `parquet`";
        report.finding(source.name(), None, "a Parquet file", expected);
    }
    consumer.begin(&gputrail_trace::model::TraceHeader::default())?;
    consumer.finish()
}

/// Passes an export on, which messages and attributes call by its format.
pub(super) fn read(
    source: &InputFile,
    (database, format): (&dyn TableSource, &str),
    allowance: Allowance,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let mut tables = Tables::new(allowance);
    let format = ("format".to_owned(), format.to_owned());
    tables.attributes.push(format);
    Export::new(source.name(), database, &mut tables, report).read();
    tables.pass_on(source.name(), consumer, report)
}

rows! {
    Text<'r> {
        id: i64 = "id",
        value: Option<&'r str> = "value",
    }

    Start {
        utc: Option<i64> = "utcEpochNs",
    }

    Property<'r> {
        name: &'r str = "name",
        value: &'r str = "value",
    }

    Process<'r> {
        global: Option<i64> = "globalPid",
        name: &'r str = "name",
    }

    Thread {
        name: Option<i64> = "nameId",
        global: Option<i64> = "globalTid",
    }

    Enumeration<'r> {
        id: i64 = "id",
        name: &'r str = "label|name",
    }

    Gpu<'r> {
        id: i64 = "id",
        name: &'r str = "name",
        bus: &'r str = "busLocation",
        multiprocessors: u32 = "smCount",
        chip: &'r str = "chipName",
        major: u64 = "computeMajor",
        minor: u64 = "computeMinor",
        memory: u64 = "totalMemory",
        clock: u64 = "clockRate",
        bandwidth: u64 = "memoryBandwidth",
        uuid: &'r str = "uuid",
    }

    CudaDevice {
        gpu: Option<i64> = "gpuId",
        cuda: i64 = "cudaId",
        pid: u32 = "pid",
    }

    NamedStream<'r> {
        name: &'r str = "name",
        pid: u32 = "processId",
        context: i64 = "contextId",
        stream: i64 = "streamId",
    }
}

/// Tables that describe the others.
const DESCRIPTIONS: [&str; 12] = [
    "TARGET_INFO_",
    "META_DATA_",
    "ENUM_",
    "ANALYSIS_",
    "EXPORT_META_DATA",
    "StringIds",
    "ThreadNames",
    "PROCESSES",
    "ProcessStreams",
    "GENERIC_EVENT_",
    "NVTX_PAYLOAD_",
    "NIC_ID_MAP",
];

/// An export that is being read.
struct Export<'e> {
    file: &'e Path,
    database: &'e dyn TableSource,
    tables: &'e mut Tables,
    report: &'e mut Report,
    /// The start of the session in the clock of the trace, which is added to times.
    start: i64,
    texts: NumberMap<i64, TextHandle>,
    /// By the bits of a global id that are of the process.
    processes: NumberMap<u64, ProcessHandle>,
    /// By the numbers of devices in the system.
    agents: NumberMap<i64, AgentHandle>,
    /// The number in the system of each device of a process.
    devices: NumberMap<(u32, i64), i64>,
    /// Names of streams, by process, context and number.
    streams: NumberMap<(u32, i64, i64), String>,
    /// Labels of enumerations.
    labels: HashMap<(&'static str, i64), String>,
    /// Tables that have been read.
    done: HashSet<String>,
}

/// The process and the thread of a `globalTid`: 24 bits of the thread, 24 of the process, and the machine above.
fn thread_of(global: i64) -> (u64, u32) {
    let global = global as u64;
    (global >> 24, (global & 0xff_ffff) as u32)
}

/// The process id in the upper bits of a `globalTid`.
fn pid_of(process: u64) -> u32 {
    (process & 0xff_ffff) as u32
}

impl<'e> Export<'e> {
    fn new(
        file: &'e Path,
        database: &'e dyn TableSource,
        tables: &'e mut Tables,
        report: &'e mut Report,
    ) -> Export<'e> {
        Export {
            file,
            database,
            tables,
            report,
            start: UNKNOWN_START,
            texts: NumberMap::default(),
            processes: NumberMap::default(),
            agents: NumberMap::default(),
            devices: NumberMap::default(),
            streams: NumberMap::default(),
            labels: HashMap::new(),
            done: HashSet::new(),
        }
    }

    fn read(mut self) {
        self.session();
        self.strings();
        self.processes();
        self.gpus();
        self.enumerations();
        self.calls("CUPTI_ACTIVITY_KIND_RUNTIME");
        self.calls("CUPTI_ACTIVITY_KIND_DRIVER");
        self.kernels("CUPTI_ACTIVITY_KIND_KERNEL");
        self.kernels("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL");
        self.copies();
        self.sets();
        self.graphs();
        self.synchronizations();
        self.memory();
        self.nvtx();
        self.os_calls();
        self.metrics("GPU_METRICS", "TARGET_INFO_GPU_METRICS", "GPU");
        self.metrics("SOC_METRICS", "TARGET_INFO_SOC_METRICS", "SoC");
        self.others();
    }

    /// Calls `each` with every row of a table, if there is one.
    fn each(
        &mut self,
        table: &str,
        columns: &[&str],
        mut each: impl FnMut(&mut Self, &dyn Row) -> Result<(), Damage>,
    ) {
        let database = self.database;
        self.done.insert(table.to_owned());
        if let Some(info) = database.table(table) {
            let damages = database.each_row(info, columns, &mut |row| each(self, row));
            damages.report(self.file, self.report);
        }
    }

    /// When the session began, the machine, and facts about the export.
    fn session(&mut self) {
        let table = "TARGET_INFO_SESSION_START_TIME";
        self.each(table, Start::COLUMNS, |export, row| {
            if let Some(utc) = Start::read(row)?.utc.filter(|utc| *utc > 0) {
                export.start = utc;
                let clocks = &mut export.tables.header.clocks;
                (clocks.boottime, clocks.realtime) = (Nanos(utc as u64), Nanos(utc as u64));
            }
            Ok(())
        });
        let table = "TARGET_INFO_SYSTEM_ENV";
        self.each(table, Property::COLUMNS, |export, row| {
            // Values of other properties may be bytes (GpuInfo).
            if <&str>::parse(row, 0)? == "Hostname" {
                export.tables.header.machine.host = Property::read(row)?.value.to_owned();
            }
            Ok(())
        });
        for table in ["META_DATA_EXPORT", "META_DATA_CAPTURE", "EXPORT_META_DATA"] {
            self.each(table, Property::COLUMNS, |export, row| {
                let Property { name, value } = Property::read(row)?;
                let attribute = (format!("nsys {name}"), value.to_owned());
                export.tables.attributes.push(attribute);
                Ok(())
            });
        }
        let clock = match self.start {
            UNKNOWN_START => {
                "from 1000 s before the start of the session, whose time of day is not told"
            }
            _ => "time of day (UTC)",
        };
        let clock = ("clock".to_owned(), clock.to_owned());
        self.tables.attributes.push(clock);
    }

    fn strings(&mut self) {
        self.each("StringIds", Text::COLUMNS, |export, row| {
            let text = Text::read(row)?;
            if let Some(value) = text.value {
                let value = export.tables.text(value);
                export.texts.insert(text.id, value);
            }
            Ok(())
        });
    }

    fn processes(&mut self) {
        self.each("PROCESSES", Process::COLUMNS, |export, row| {
            let process = Process::read(row)?;
            let Some(global) = process.global else {
                return Ok(());
            };
            let handle = export.process(thread_of(global).0);
            let name = process.name.rsplit('/').next();
            if let Some(name) = name.filter(|name| !name.is_empty()) {
                let row = &mut export.tables.processes[handle.0 as usize];
                row.name = name.to_owned();
                row.command = vec![process.name.to_owned()];
            }
            Ok(())
        });
        self.each("ThreadNames", Thread::COLUMNS, |export, row| {
            let row = Thread::read(row)?;
            if let Some(global) = row.global {
                let (process, thread) = thread_of(global);
                let process = export.process(process);
                let name = export.string(row.name);
                let name = export.tables.texts.get(name).to_owned();
                export.tables.threads.insert((process, thread), name);
            }
            Ok(())
        });
    }

    fn gpus(&mut self) {
        self.each("TARGET_INFO_GPU", Gpu::COLUMNS, |export, row| {
            let gpu = Gpu::read(row)?;
            let numbers = [
                ("compute_units", gpu.multiprocessors.into()),
                ("memory_bytes", gpu.memory),
                ("memory_bandwidth", gpu.bandwidth),
                ("clock_hz", gpu.clock),
            ];
            let known = numbers.into_iter().filter(|(_, value)| *value != 0);
            let mut attributes: Vec<_> = known
                .map(|(name, value)| (name.to_owned(), value.to_string()))
                .collect();
            if !gpu.uuid.is_empty() {
                attributes.push(("uuid".to_owned(), gpu.uuid.to_owned()));
            }
            let agent = AgentRow {
                agent: Agent {
                    title: format!("GPU {}", gpu.id),
                    name: gpu.name.to_owned(),
                    vendor: "NVIDIA".to_owned(),
                    model: gpu.chip.to_owned(),
                    architecture: match gpu.major {
                        0 => String::new(),
                        major => format!("sm_{major}{}", gpu.minor),
                    },
                    pci_address: gpu.bus.to_owned(),
                    attributes,
                },
                compute_units: gpu.multiprocessors,
            };
            if !export.agents.contains_key(&gpu.id) {
                let handle = export.tables.agent(agent);
                export.agents.insert(gpu.id, handle);
            }
            Ok(())
        });
        let table = "TARGET_INFO_CUDA_DEVICE";
        self.each(table, CudaDevice::COLUMNS, |export, row| {
            let device = CudaDevice::read(row)?;
            if let Some(gpu) = device.gpu {
                export.devices.insert((device.pid, device.cuda), gpu);
            }
            Ok(())
        });
        let table = "TARGET_INFO_NVTX_CUDA_STREAM";
        self.each(table, NamedStream::COLUMNS, |export, row| {
            let stream = NamedStream::read(row)?;
            let key = (stream.pid, stream.context, stream.stream);
            export.streams.insert(key, stream.name.to_owned());
            Ok(())
        });
    }

    fn enumerations(&mut self) {
        for table in [
            "ENUM_CUDA_MEMCPY_OPER",
            "ENUM_CUDA_MEM_KIND",
            "ENUM_CUPTI_SYNC_TYPE",
            "ENUM_NSYS_EVENT_TYPE",
        ] {
            self.each(table, Enumeration::COLUMNS, |export, row| {
                let Enumeration { id, name } = Enumeration::read(row)?;
                export.labels.insert((table, id), name.to_owned());
                Ok(())
            });
        }
    }

    /// The process in the upper bits of a global id.
    fn process(&mut self, global: u64) -> ProcessHandle {
        let tables = &mut self.tables;
        *self.processes.entry(global).or_insert_with(|| {
            tables.process(ProcessRow {
                pid: pid_of(global),
                name: "process".to_owned(),
                ..ProcessRow::default()
            })
        })
    }

    /// The device of a process.
    fn device(&mut self, pid: u32, device: i64) -> AgentHandle {
        let gpu = self.devices.get(&(pid, device)).copied().unwrap_or(device);
        let tables = &mut self.tables;
        *self.agents.entry(gpu).or_insert_with(|| {
            tables.agent(AgentRow {
                agent: Agent {
                    title: format!("GPU {gpu}"),
                    vendor: "NVIDIA".to_owned(),
                    ..Agent::default()
                },
                compute_units: 0,
            })
        })
    }

    /// The text of an id; the empty text for none.
    fn string(&self, id: Option<i64>) -> TextHandle {
        let known = id.and_then(|id| self.texts.get(&id));
        known.copied().unwrap_or_default()
    }

    /// The label of a value of an enumeration.
    fn label(&self, table: &'static str, id: i64) -> String {
        match self.labels.get(&(table, id)) {
            Some(label) => label.clone(),
            None => id.to_string(),
        }
    }

    /// A time of the session, which stands in the column at `place`, in the clock of the trace.
    fn time(&self, row: &dyn Row, place: usize, time: i64) -> Result<u64, Damage> {
        let shifted = self.start.checked_add(time).filter(|time| *time > 0);
        let expected = "nanoseconds from the start of the session";
        let shifted = shifted.ok_or_else(|| row.damage(place, expected))?;
        Ok(shifted as u64)
    }

    /// Whether a table describes others.
    fn is_description(table: &TableInfo) -> bool {
        DESCRIPTIONS
            .iter()
            .any(|prefix| table.name.starts_with(prefix))
    }
}
