//! Databases of rocmProfileData (RPD, SQLite), which `rpd_tracer` writes of programs on ROCm and on CUDA.
//!
//! Calls and the work of devices have tables of their own, which ids tie. Both generations of the schema are read: in the
//! newer one calls have a domain, and their arguments stand in a table of texts that do not repeat. Tools add tables about
//! calls (`ext_autogradapi`, `rocpd_graphLaunchapi`): their columns become arguments of the calls. Databases of several
//! machines that were put together have the number of the machine in the upper digits of process and device ids.
//! Times are nanoseconds of CLOCK_MONOTONIC.
//!
//! Memory: each text once, and some tens of bytes for each piece of work, each launch and each row about a call.

mod calls;
#[cfg(test)]
mod tests;
mod work;

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;

use super::row::{Damage, Row, RowField, rows};
use super::sqlite::Database;
use super::table_source::TableInfo;
use super::tables::{AgentHandle, ArgumentValue, ProcessHandle, ProcessRow, Tables, TextHandle};
use super::{InputFile, Report};
use crate::import::Allowance;
use gputrail_trace::model::Consumer;

rows! {
    Metadata<'r> {
        tag: &'r str = "tag",
        value: &'r str = "value",
    }

    Text<'r> {
        id: i64 = "id",
        value: Option<&'r str> = "string",
    }

    /// The call that submitted a piece of work.
    Submission {
        call: i64 = "api_id",
        work: i64 = "op_id",
    }
}

/// The columns by which tables tell whether they are about a call.
const CALL: &str = "api_ptr_id";
/// Tables whose rows follow from those of others, as tools for RPD add them.
const DERIVED: [&str; 3] = ["ext_callstack", "ext_graph", "ext_graph_kernelapis"];

/// Whether a database is one of rocmProfileData.
pub(super) fn is_rpd(database: &Database) -> bool {
    let has = |table, column| database.table(table).is_some_and(|info| info.has(column));
    has("rocpd_api", "apiName_id") || has("rocpd_op", "opType_id")
}

/// Passes a database on.
pub(super) fn read(
    source: &InputFile,
    database: &Database,
    allowance: Allowance,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let mut rpd = Rpd {
        file: source.name(),
        database,
        tables: Tables::new(allowance),
        report,
        machine_of: Strides::default(),
        device_api: DeviceApi::default(),
        texts: HashMap::new(),
        unique_texts: HashMap::new(),
        processes: HashMap::new(),
        agents: HashMap::new(),
        submitters: HashMap::new(),
        calls: HashMap::new(),
        about: HashMap::new(),
        launches: HashMap::new(),
        copies: HashMap::new(),
        item_calls: HashSet::new(),
        done: HashSet::new(),
    };
    rpd.read();
    rpd.tables.pass_on(source.name(), consumer, rpd.report)
}

/// By how much the ids of a machine differ from those of the one before it; 0 for one machine.
#[derive(Copy, Clone, Default)]
struct Strides {
    process: u32,
    device: u32,
}

/// The number of the machine in an id, and the id without it.
fn split(id: u32, stride: u32) -> (u32, u32) {
    match (id.checked_div(stride), id.checked_rem(stride)) {
        (Some(machine), Some(own)) => (machine, own),
        _ => (0, id),
    }
}

/// The API of the devices, as the names of functions tell it.
#[derive(Copy, Clone, Default)]
struct DeviceApi {
    has_hip: bool,
    has_cuda: bool,
    /// Whether rocprofiler-sdk recorded it: sizes of launches are work-items then, and workgroups otherwise.
    counts_items: bool,
}

impl DeviceApi {
    fn is_cuda(self) -> bool {
        self.has_cuda && !self.has_hip
    }
}

/// The process and the thread of a call that submitted work.
type Caller = (ProcessHandle, u32);

/// A database that is being read. Maps are by the ids of its tables.
struct Rpd<'r> {
    file: &'r Path,
    database: &'r Database,
    tables: Tables,
    report: &'r mut Report,
    machine_of: Strides,
    device_api: DeviceApi,
    texts: HashMap<i64, TextHandle>,
    /// Texts that do not repeat; those of the newer schema only.
    unique_texts: HashMap<i64, TextHandle>,
    processes: HashMap<u32, ProcessHandle>,
    agents: HashMap<u32, AgentHandle>,
    /// The call that submitted each piece of work.
    submitters: HashMap<i64, i64>,
    /// Calls that submitted work.
    calls: HashMap<i64, Option<Caller>>,
    /// Arguments of calls.
    about: HashMap<i64, Vec<(TextHandle, ArgumentValue)>>,
    launches: HashMap<i64, work::RpdLaunch>,
    copies: HashMap<i64, work::RpdCopy>,
    /// Calls that give the size of a launch in work-items, where others give it in workgroups.
    item_calls: HashSet<i64>,
    /// Tables that have been read.
    done: HashSet<&'static str>,
}

impl Rpd<'_> {
    fn read(&mut self) {
        self.metadata();
        self.texts();
        self.links();
        self.stacks();
        self.about();
        self.launches();
        self.copies();
        self.calls("rocpd_api");
        self.calls("rocpd_hsaApi");
        self.work();
        self.counters();
        self.monitor();
        self.others();
    }

    /// Calls `each` with every row of a table, if there is one.
    fn each(
        &mut self,
        table: &'static str,
        columns: &[&str],
        each: impl FnMut(&mut Self, &dyn Row) -> Result<(), Damage>,
    ) {
        self.done.insert(table);
        let database = self.database;
        if let Some(info) = database.table(table) {
            self.rows(info, columns, each);
        }
    }

    fn rows(
        &mut self,
        info: &TableInfo,
        columns: &[&str],
        mut each: impl FnMut(&mut Self, &dyn Row) -> Result<(), Damage>,
    ) {
        let database = self.database;
        let damages = database.rows(info, columns, |row| each(self, row));
        damages.report(self.file, self.report);
    }

    fn metadata(&mut self) {
        self.each("rocpd_metadata", Metadata::COLUMNS, |rpd, row| {
            let Metadata { tag, value } = Metadata::read(row)?;
            match tag {
                "pid_stride" => rpd.machine_of.process = value.parse().unwrap_or(0),
                "gpu_stride" => rpd.machine_of.device = value.parse().unwrap_or(0),
                _ => {}
            }
            let attribute = (format!("rpd {tag}"), value.to_owned());
            rpd.tables.attributes.push(attribute);
            Ok(())
        });
        self.tables.attributes.extend([
            ("format".to_owned(), "rocmProfileData (RPD)".to_owned()),
            (
                "clock".to_owned(),
                "CLOCK_MONOTONIC of the recorded machine".to_owned(),
            ),
        ]);
    }

    fn texts(&mut self) {
        self.each("rocpd_string", Text::COLUMNS, |rpd, row| {
            let text = Text::read(row)?;
            if let Some(value) = text.value {
                let api = &mut rpd.device_api;
                api.has_hip |= value.starts_with("hip");
                api.has_cuda |= value.starts_with("cuda");
                api.counts_items |= value.starts_with("RocprofDataSource::");
                let value = rpd.tables.text(value);
                rpd.texts.insert(text.id, value);
            }
            Ok(())
        });
        self.each("rocpd_ustring", Text::COLUMNS, |rpd, row| {
            let text = Text::read(row)?;
            if let Some(value) = text.value {
                let value = rpd.tables.text(value);
                rpd.unique_texts.insert(text.id, value);
            }
            Ok(())
        });
    }

    /// The calls that submitted each piece of work.
    fn links(&mut self) {
        let mut further = 0;
        self.each("rocpd_api_ops", Submission::COLUMNS, |rpd, row| {
            let Submission { call, work } = Submission::read(row)?;
            match rpd.submitters.insert(work, call) {
                Some(before) if before != call => {
                    rpd.submitters.insert(work, before);
                    further += 1;
                }
                _ => {
                    rpd.calls.insert(call, None);
                }
            }
            Ok(())
        });
        let reason = "calls that submitted work of another call: the first call is shown";
        self.report.remarks(self.file, reason, further);
    }

    /// The text of an id; the empty text for none.
    fn string(&self, id: Option<i64>) -> TextHandle {
        let known = id.and_then(|id| self.texts.get(&id));
        known.copied().unwrap_or_default()
    }

    /// A process of an id.
    fn process(&mut self, id: u32) -> ProcessHandle {
        if let Some(process) = self.processes.get(&id) {
            return *process;
        }
        let (machine, pid) = split(id, self.machine_of.process);
        let process = self.tables.process(ProcessRow {
            pid,
            name: match machine {
                0 => "process".to_owned(),
                machine => format!("process of machine {machine}"),
            },
            ..ProcessRow::default()
        });
        self.processes.insert(id, process);
        process
    }

    /// A value of a column that is an argument; none for no value, 0 and an empty text.
    fn value(&mut self, field: RowField<'_>) -> Option<ArgumentValue> {
        Some(match field {
            RowField::Null | RowField::Int(0) | RowField::Text("") => return None,
            RowField::Int(value) => ArgumentValue::Int(value),
            RowField::Real(value) => ArgumentValue::Double(value),
            RowField::Text(text) => ArgumentValue::Text(self.tables.text(text)),
            RowField::Bytes(bytes) => {
                ArgumentValue::Text(self.tables.text(&format!("{} bytes", bytes.len())))
            }
        })
    }

    /// Counts the rows of tables that nothing above reads.
    fn others(&mut self) {
        let database = self.database;
        for table in database.tables() {
            let name = &table.name;
            if self.done.contains(&name[..]) || table.has(CALL) {
                continue;
            }
            let rows = database.count(table);
            if DERIVED.contains(&&name[..]) {
                let reason =
                    "rows of tables that follow from the others (ext_callstack, ext_graph)";
                self.report.remarks(self.file, reason, rows);
            } else {
                let reason = format!("rows of {name}, which is not known");
                self.report.unrepresented_many(self.file, reason, rows);
            }
        }
    }
}
