//! SQLite databases: whose they are is told by their tables.

use std::io;
use std::path::PathBuf;

use super::sqlite::Database;
use super::table_source::TableSource;
use super::{InputFile, InputFormat, Report, nsys, nvprof, rocprof, rocprofv3, rpd};
use crate::import::Allowance;
use gputrail_trace::model::{Consumer, TraceHeader};

/// Most tables that the description of an unknown database names.
const MAX_NAMED: usize = 8;

/// The format of a database, or a description of one that has no known format.
pub(super) fn recognise(source: &InputFile) -> io::Result<Result<InputFormat, String>> {
    let file = source.local_file()?;
    let database = match file.with_plain_path(Database::open)? {
        Ok(database) => database,
        Err(damage) => {
            return Ok(Err(format!(
                "an SQLite database that cannot be read ({})",
                damage.found
            )));
        }
    };
    Ok(if rpd::is_rpd(&database) {
        Ok(InputFormat::Rpd)
    } else if rocprofv3::is_rocpd(&database) {
        Ok(InputFormat::Rocpd)
    } else if rocprof::is_rocprof(&database) {
        Ok(InputFormat::RocprofDatabase)
    } else if nvprof::is_nvprof(&database) {
        Ok(InputFormat::Nvprof)
    } else if nsys::is_export(&database) {
        Ok(InputFormat::NsightSystems)
    } else {
        Err(describe(source, &database))
    })
}

/// A description of a database of no known format.
fn describe(source: &InputFile, database: &Database) -> String {
    let tables = database.tables();
    let names = tables.iter().take(MAX_NAMED).map(|table| &table.name[..]);
    let names: Vec<&str> = names.collect();
    let more = if tables.len() > MAX_NAMED {
        ", ..."
    } else {
        ""
    };
    match (&names[..], log_beside(source)) {
        ([], Some(log)) => format!(
            "an SQLite database without tables, beside {}, which is not read: close the database first",
            log.display()
        ),
        ([], None) => "an SQLite database without tables".to_owned(),
        (names, _) => format!(
            "an SQLite database of unknown tables ({}{more})",
            names.join(", ")
        ),
    }
}

/// The log beside a database that was not closed.
fn log_beside(source: &InputFile) -> Option<PathBuf> {
    let log = source.name().with_extension("sqlite-wal");
    let mut beside = source.name().as_os_str().to_owned();
    beside.push("-wal");
    let is_filled = |log: &PathBuf| log.metadata().is_ok_and(|log| log.len() > 0);
    [log, beside.into()].into_iter().find(is_filled)
}

/// Passes on the databases of a recording in a format, as [`recognise`] says. Sorting takes the memory of `allowance`.
pub(super) fn read(
    format: InputFormat,
    sources: &[InputFile],
    allowance: Allowance,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let mut databases = Vec::new();
    for source in sources {
        let file = source.local_file()?;
        match file.with_plain_path(Database::open)? {
            Ok(database) => {
                if let Some(damage) = database.schema_damage() {
                    report.damage(source.name(), damage);
                }
                databases.push((source, database.with_threads(allowance.has_threads)));
            }
            Err(damage) => {
                report.finding(source.name(), None, damage.found, damage.expected);
                continue;
            }
        }
        if let Some(log) = log_beside(source) {
            let found = format!("{} beside it, which is not read", log.display());
            report.finding(source.name(), None, found, "a database that was closed");
        }
    }
    match (format, &databases[..]) {
        (_, []) => {
            consumer.begin(&TraceHeader::default())?;
            consumer.finish()
        }
        (InputFormat::Rpd, [(source, database), ..]) => {
            rpd::read(source, database, allowance, consumer, report)
        }
        (InputFormat::RocprofDatabase, [(source, database), ..]) => {
            rocprof::read_database(source, database, allowance, consumer, report)
        }
        (InputFormat::Nvprof, [(source, database), ..]) => {
            nvprof::read_database(source, database, allowance, consumer, report)
        }
        (InputFormat::Rocpd, databases) => {
            rocprofv3::read_rocpd(databases, allowance, consumer, report)
        }
        (_, [(source, database), ..]) => {
            let export = (database as &dyn TableSource, "Nsight Systems SQLite export");
            nsys::read(source, export, allowance, consumer, report)
        }
    }
}
