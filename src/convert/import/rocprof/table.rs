//! rocprof's table of kernels, `results.csv`, also with the columns that `rocprofv2 --plugin file` had first.

use std::io;

use super::records::{KERNEL, Records};
use crate::import::csv::{Csv, CsvRow};
use crate::import::row::{Row, RowField};
use crate::import::{Allowance, InputFile, Report};
use gputrail_trace::model::Consumer;

/// Whether a file that begins so is a table of kernels.
pub(in crate::import) fn is_table(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let line = head.split(|byte| *byte == b'\n').next();
    let line = String::from_utf8_lossy(line.unwrap_or_default());
    let columns: Vec<&str> = line
        .split(',')
        .map(|one| one.trim().trim_matches('"'))
        .collect();
    ["Index", "KernelName", "gpu-id"]
        .iter()
        .all(|name| columns.contains(name))
}

/// Passes a table on.
pub(in crate::import) fn read(
    source: &InputFile,
    allowance: Allowance,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let mut records = Records::new(source.name(), allowance, report);
    records.set_format("rocprof CSV");
    let mut csv = Csv::open(source.reader()?)?;
    let places = csv.places(KERNEL);
    loop {
        let result = match csv.next() {
            Ok(None) => break,
            Ok(Some(record)) => record.and_then(|record| {
                let row: &dyn Row = &CsvRow {
                    record,
                    places: &places,
                };
                let rest = row.rest();
                let counters: Vec<_> = rest
                    .iter()
                    .filter(|(name, _)| !name.is_empty())
                    .map(|(name, value)| (*name, RowField::Text(value)))
                    .collect();
                records.add_kernel(row, &counters, false)
            }),
            Err(error) => {
                let (found, expected) = (error.to_string(), "the rest of the file");
                records.report.finding(source.name(), None, found, expected);
                break;
            }
        };
        if let Err(damage) = result {
            records.report.damage(source.name(), damage);
        }
    }
    let Records { tables, report, .. } = records;
    tables.pass_on(source.name(), consumer, report)
}
