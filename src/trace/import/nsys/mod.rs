//! Nsight Systems' exports to SQLite.
//!
//! Versions differ in the tables and columns that they have, and a table without rows is mostly left out: what is missing is
//! empty. Tables that are not known here become slices if they have a start, an end and a name, and are counted otherwise.
//! Times are nanoseconds from the start of the session, whose time of day the file tells. `docs/convert-tables.md` says what
//! becomes of each table.
//!
//! All rows are held in memory until the last table has been read: some 100 to 200 bytes each.

mod device;
mod host;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;

use super::sqlite::{Damage, Database, Row, TableInfo, columns};
use super::tables::{AgentHandle, AgentRow, ProcessHandle, ProcessRow, Tables, TextId};
use super::{Report, Source};
use crate::trace::model::{Agent, Consumer};

/// The time of a session whose start is not told: events before it have times, too.
const UNKNOWN_START: i64 = 1_000_000_000_000;

/// Whether a database is an export of Nsight Systems.
pub(super) fn is_export(database: &Database) -> bool {
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

/// Passes a database on.
pub(super) fn read(
    source: &Source,
    database: &Database,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let mut tables = Tables::default();
    Export::new(source.name(), database, &mut tables, report).read();
    tables.pass_on(source.name(), consumer, report)
}

columns!(Text { id = "id", value = "value", });
columns!(Start { utc = "utcEpochNs", });
columns!(Property { name = "name", value = "value", });
columns!(Process { global = "globalPid", pid = "pid", name = "name", });
columns!(Thread { name = "nameId", global = "globalTid", });
columns!(Enumeration { id = "id", name = "name", label = "label", });
columns!(Gpu {
    id = "id", name = "name", bus = "busLocation", multiprocessors = "smCount", chip = "chipName",
    major = "computeMajor", minor = "computeMinor", memory = "totalMemory", clock = "clockRate",
    bandwidth = "memoryBandwidth", uuid = "uuid",
});
columns!(CudaDevice { gpu = "gpuId", cuda = "cudaId", pid = "pid", });
columns!(NamedStream { name = "name", pid = "processId", context = "contextId", stream = "streamId", });

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
    database: &'e Database,
    tables: &'e mut Tables,
    report: &'e mut Report,
    /// What is added to times.
    start: i64,
    texts: HashMap<i64, TextId>,
    /// By the bits of a global id that are of the process.
    processes: HashMap<u64, ProcessHandle>,
    /// By the numbers of devices in the system.
    agents: HashMap<i64, AgentHandle>,
    /// The number in the system of each device of a process.
    devices: HashMap<(u32, i64), i64>,
    /// Names of streams, by process, context and number.
    streams: HashMap<(u32, i64, i64), String>,
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
        database: &'e Database,
        tables: &'e mut Tables,
        report: &'e mut Report,
    ) -> Export<'e> {
        Export {
            file,
            database,
            tables,
            report,
            start: UNKNOWN_START,
            texts: HashMap::new(),
            processes: HashMap::new(),
            agents: HashMap::new(),
            devices: HashMap::new(),
            streams: HashMap::new(),
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
        self.cuda_events();
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
        columns: &'static [&'static str],
        mut each: impl FnMut(&mut Self, &Row<'_>) -> Result<(), Damage>,
    ) {
        let database = self.database;
        self.done.insert(table.to_owned());
        let Some(info) = database.table(table) else {
            return;
        };
        let file = self.file;
        let mut damages = Vec::new();
        database.rows(
            info,
            columns,
            |row| each(self, row),
            |damage| damages.push(damage),
        );
        for damage in damages {
            self.report
                .finding(file, None, damage.found, damage.expected);
        }
    }

    /// When the session began, the machine, and facts about the export.
    fn session(&mut self) {
        self.each(
            "TARGET_INFO_SESSION_START_TIME",
            Start::ALL,
            |export, row| {
                let Some(utc) = row.int(Start::utc as usize)?.filter(|utc| *utc > 0) else {
                    return Ok(());
                };
                export.start = utc;
                let clocks = &mut export.tables.header.clocks;
                (clocks.boottime, clocks.realtime) = (utc as u64, utc as u64);
                Ok(())
            },
        );
        self.each("TARGET_INFO_SYSTEM_ENV", Property::ALL, |export, row| {
            let name = row.text(Property::name as usize)?.unwrap_or("");
            let value = row.text(Property::value as usize)?.unwrap_or("");
            if name == "Hostname" {
                export.tables.header.machine.host = value.to_owned();
            }
            Ok(())
        });
        for table in ["META_DATA_EXPORT", "META_DATA_CAPTURE", "EXPORT_META_DATA"] {
            self.each(table, Property::ALL, |export, row| {
                let name = row.text(Property::name as usize)?.unwrap_or("");
                let value = row.text(Property::value as usize)?.unwrap_or("");
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
        self.tables.attributes.extend([
            (
                "format".to_owned(),
                "Nsight Systems SQLite export".to_owned(),
            ),
            ("clock".to_owned(), clock.to_owned()),
        ]);
    }

    fn strings(&mut self) {
        self.each("StringIds", Text::ALL, |export, row| {
            let id = row.known_int(Text::id as usize)?;
            if let Some(text) = row.text(Text::value as usize)? {
                let text = export.tables.text(text);
                export.texts.insert(id, text);
            }
            Ok(())
        });
    }

    fn processes(&mut self) {
        self.each("PROCESSES", Process::ALL, |export, row| {
            let Some(global) = row.int(Process::global as usize)? else {
                return Ok(());
            };
            let (process, _) = thread_of(global);
            let handle = export.process(process);
            let path = row.text(Process::name as usize)?.unwrap_or("");
            if let Some(name) = path.rsplit('/').next().filter(|name| !name.is_empty()) {
                let row = &mut export.tables.processes[handle.0 as usize];
                row.name = name.to_owned();
                row.command = vec![path.to_owned()];
            }
            Ok(())
        });
        self.each("ThreadNames", Thread::ALL, |export, row| {
            let Some(global) = row.int(Thread::global as usize)? else {
                return Ok(());
            };
            let (process, thread) = thread_of(global);
            let process = export.process(process);
            let name = export.string(row.int(Thread::name as usize)?);
            let name = export.tables.texts.get(name).to_owned();
            export.tables.threads.insert((process, thread), name);
            Ok(())
        });
    }

    fn gpus(&mut self) {
        self.each("TARGET_INFO_GPU", Gpu::ALL, |export, row| {
            let id = row.known_int(Gpu::id as usize)?;
            let text = |column: Gpu| Ok(row.text(column as usize)?.unwrap_or("").to_owned());
            let number = |column: Gpu| row.size(column as usize);
            let mut attributes = Vec::new();
            for (name, column) in [
                ("compute_units", Gpu::multiprocessors),
                ("memory_bytes", Gpu::memory),
                ("memory_bandwidth", Gpu::bandwidth),
                ("clock_hz", Gpu::clock),
            ] {
                let value = number(column)?;
                if value != 0 {
                    attributes.push((name.to_owned(), value.to_string()));
                }
            }
            let uuid = text(Gpu::uuid)?;
            if !uuid.is_empty() {
                attributes.push(("uuid".to_owned(), uuid));
            }
            let (major, minor) = (number(Gpu::major)?, number(Gpu::minor)?);
            let agent = AgentRow {
                agent: Agent {
                    title: format!("GPU {id}"),
                    name: text(Gpu::name)?,
                    vendor: "NVIDIA".to_owned(),
                    model: text(Gpu::chip)?,
                    architecture: match major {
                        0 => String::new(),
                        _ => format!("sm_{major}{minor}"),
                    },
                    pci_address: text(Gpu::bus)?,
                    attributes,
                },
                compute_units: row.small(Gpu::multiprocessors as usize)?,
            };
            if !export.agents.contains_key(&id) {
                let handle = export.tables.agent(agent);
                export.agents.insert(id, handle);
            }
            Ok(())
        });
        self.each("TARGET_INFO_CUDA_DEVICE", CudaDevice::ALL, |export, row| {
            let pid = row.small(CudaDevice::pid as usize)?;
            let cuda = row.known_int(CudaDevice::cuda as usize)?;
            if let Some(gpu) = row.int(CudaDevice::gpu as usize)? {
                export.devices.insert((pid, cuda), gpu);
            }
            Ok(())
        });
        self.each(
            "TARGET_INFO_NVTX_CUDA_STREAM",
            NamedStream::ALL,
            |export, row| {
                let pid = row.small(NamedStream::pid as usize)?;
                let context = row.known_int(NamedStream::context as usize)?;
                let stream = row.known_int(NamedStream::stream as usize)?;
                let name = row.text(NamedStream::name as usize)?.unwrap_or("");
                export
                    .streams
                    .insert((pid, context, stream), name.to_owned());
                Ok(())
            },
        );
    }

    fn enumerations(&mut self) {
        for table in [
            "ENUM_CUDA_MEMCPY_OPER",
            "ENUM_CUDA_MEM_KIND",
            "ENUM_CUPTI_SYNC_TYPE",
            "ENUM_NSYS_EVENT_TYPE",
        ] {
            self.each(table, Enumeration::ALL, |export, row| {
                let id = row.known_int(Enumeration::id as usize)?;
                let label = match row.text(Enumeration::label as usize)? {
                    Some(label) => label,
                    None => row.text(Enumeration::name as usize)?.unwrap_or(""),
                };
                export.labels.insert((table, id), label.to_owned());
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
    fn string(&self, id: Option<i64>) -> TextId {
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

    /// A time of the session in the clock of the trace.
    fn time(&self, row: &Row<'_>, place: usize) -> Result<u64, Damage> {
        let time = row.known_int(place)?;
        let shifted = self.start.checked_add(time).filter(|time| *time > 0);
        shifted.map(|time| time as u64).ok_or_else(|| {
            row.damage(
                place,
                &time.to_string(),
                "nanoseconds from the start of the session",
            )
        })
    }

    /// The times of work: 0 and 0 where it was not measured.
    fn interval(&self, row: &Row<'_>, start: usize, end: usize) -> Result<(u64, u64), Damage> {
        if row.int(start)? == Some(0) && row.int(end)? == Some(0) {
            return Ok((0, 0));
        }
        Ok((self.time(row, start)?, self.time(row, end)?))
    }

    /// Whether a table describes others.
    fn is_description(table: &TableInfo) -> bool {
        DESCRIPTIONS
            .iter()
            .any(|prefix| table.name.starts_with(prefix))
    }
}
