//! rocprofv3's folders of CSV.
//!
//! Each table is a file, `[PREFIX_]kernel_trace.csv` and so on. Files of one folder with one prefix are of one process, which
//! some of them name; the others are taken to be of it. Times are nanoseconds of CLOCK_BOOTTIME.

use std::io::{self, BufRead};
use std::path::Path;

use super::reader::{ProcessFiles, RecordingFile, RecordingReader};
use super::table::RocprofTable;
use crate::import::csv::{Csv, CsvRow};
use crate::import::{Allowance, InputFile, Report};
use gputrail_trace::model::Consumer;

/// Words that the names of tables begin with.
const TABLES: [&str; 18] = [
    "kernel_",
    "hip_",
    "hsa_",
    "marker_",
    "memory_",
    "scratch_",
    "rccl_",
    "rocdecode_",
    "rocjpeg_",
    "ompt_",
    "counter_",
    "agent_",
    "pc_sampling",
    "domain_",
    "roctx_",
    // As `gputrail convert` writes calls of other APIs.
    "cuda_",
    "opencl_",
    "sim_",
];

/// The folder of a file, and the part of its name before that of the table.
fn group_of(file: &Path) -> ProcessFiles {
    let folder = file.parent().map(Path::to_owned).unwrap_or_default();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let begins = |at: &usize| TABLES.iter().any(|table| name[*at..].starts_with(table));
    let after = name.match_indices('_').map(|(at, _)| at + 1);
    let table = std::iter::once(0).chain(after).find(begins);
    let prefix = table.map_or(&*name, |at| &name[..at]);
    (folder, prefix.trim_end_matches('_').to_owned())
}

/// Passes the tables of `sources` on.
pub(in crate::import) fn read(
    sources: &[InputFile],
    allowance: Allowance,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let mut files = Vec::new();
    for source in sources {
        let path = source.name();
        match source.reader().and_then(Csv::open) {
            Ok(csv) => match RocprofTable::of(&csv) {
                Some(table) => files.push((path, table, csv)),
                None => {
                    let columns: Vec<_> = csv.columns().iter().take(8).map(|c| &c[..]).collect();
                    let found = format!("a table with the columns {}", columns.join(", "));
                    let expected = "a table of rocprofv3: with Start_Timestamp, Sample_Timestamp or Counter_Name";
                    report.finding(path, Some(0), found, expected);
                }
            },
            Err(error) => report.finding(path, Some(0), error.to_string(), "CSV"),
        }
    }
    // Devices come first, then the tables that name their process, and then the others.
    files.sort_by_key(|(_, table, csv)| {
        let names_process = csv.columns().iter().any(|column| column == "Process_Id");
        (
            *table != RocprofTable::Agents,
            !names_process,
            *table == RocprofTable::Counters,
        )
    });
    let folder = sources.first().map_or(Path::new(""), InputFile::name);
    let folder = match sources {
        [_] => folder,
        _ => folder.parent().unwrap_or(folder),
    };
    let mut reader = RecordingReader::new(folder, allowance, report);
    for (path, table, csv) in files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let file = RecordingFile {
            path,
            group: group_of(path),
            table: &name,
        };
        read_table(&mut reader, &file, table, csv);
    }
    reader.finish("rocprofv3 CSV", consumer)
}

/// Reads a table. Damaged records are findings.
fn read_table<R: BufRead>(
    reader: &mut RecordingReader<'_>,
    file: &RecordingFile<'_>,
    table: RocprofTable,
    mut csv: Csv<R>,
) {
    let places = csv.places(table.columns());
    loop {
        let result = match csv.next() {
            Ok(None) => return,
            Ok(Some(record)) => record.and_then(|record| {
                let row = CsvRow {
                    record,
                    places: &places,
                };
                table.add(reader, file, &row)
            }),
            Err(error) => {
                let (found, expected) = (error.to_string(), "the rest of the file");
                return reader.report.finding(file.path, None, found, expected);
            }
        };
        if let Err(damage) = result {
            reader.report.damage(file.path, damage);
        }
    }
}
