//! SQLite databases: whose they are is told by their tables.

use std::io;

use super::sqlite::Database;
use super::{InputFile, Report, nsys, rocprofv3};
use gputrail_trace::model::{Consumer, TraceHeader};

/// Passes on the databases of a recording: one of Nsight Systems, or those of a run of rocprofv3. Sorting takes about `budget`
/// bytes of memory.
pub(super) fn read(
    sources: &[InputFile],
    budget: usize,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let mut exports = Vec::new();
    let mut runs = Vec::new();
    for source in sources {
        let file = source.local_file()?;
        let database = match file.with_plain_path(Database::open)? {
            Ok(database) => database,
            Err(damage) => {
                report.finding(source.name(), None, damage.found, damage.expected);
                continue;
            }
        };
        let log = source.name().with_extension("sqlite-wal");
        let mut beside = source.name().as_os_str().to_owned();
        beside.push("-wal");
        for log in [log, beside.into()] {
            if log.metadata().is_ok_and(|log| log.len() > 0) {
                let found = format!("{} beside it, which is not read", log.display());
                report.finding(source.name(), None, found, "a database that was closed");
                break;
            }
        }
        if rocprofv3::is_rocpd(&database) {
            runs.push((source, database));
        } else if nsys::is_export(&database) {
            exports.push((source, database));
        } else {
            let names: Vec<_> = database
                .tables()
                .iter()
                .take(8)
                .map(|table| &table.name[..])
                .collect();
            let found = format!("an SQLite database with the tables {}", names.join(", "));
            let expected = "an export of Nsight Systems (StringIds, CUPTI_ACTIVITY_KIND_...) or a database of rocprofv3 (rocpd_...)";
            report.finding(source.name(), None, found, expected);
        }
    }
    match (&exports[..], &runs[..]) {
        ([(source, database)], []) => nsys::read(source, database, budget, consumer, report),
        ([], [_, ..]) => rocprofv3::read_rocpd(&runs, budget, consumer, report),
        ([], []) => {
            consumer.begin(&TraceHeader::default())?;
            consumer.finish()
        }
        _ => {
            for (source, _) in exports.iter().skip(1) {
                let reason = "databases beside another one of their recording";
                report.unrepresented(source.name(), reason, None);
            }
            nsys::read(exports[0].0, &exports[0].1, budget, consumer, report)
        }
    }
}
