//! Tables of the kernels of an NPU in CSV: `kernel_details.csv` of PyTorch on Ascend, `op_summary_*.csv` of msprof.
//!
//! A row says more of the kernel, or of the operation of communication, that has its name and begins at its time in the trace events
//! beside the table. Without them, rows become kernels and operations themselves.

use std::io;

use super::ascend;
use super::collect::{Collected, MetadataNames};
use super::decimal;
use super::event::ChromeEvent;
use super::ids::Id;
use super::record::{RecordHead, StoredKind};
use super::reworded::{member, quoted};
use super::scan::ScanVisitor;
use crate::import::InputFile;
use crate::import::csv::Csv;

/// The names of columns, in PyTorch's tables and in those of msprof.
const NAME: [&str; 2] = ["Name", "Op Name"];
const START: [&str; 2] = ["Start Time(us)", "Task Start Time(us)"];
const DURATION: [&str; 2] = ["Duration(us)", "Task Duration(us)"];
const KIND: [&str; 2] = ["Accelerator Core", "Task Type"];
const DEVICE: [&str; 2] = ["Device_id", "Device Id"];
const STREAM: [&str; 2] = ["Stream ID", "Stream Id"];
/// Columns that trace events have, too.
const KNOWN: [&str; 3] = ["Model ID", "Task ID", "Context ID"];
/// Values of `KIND` of operations of communication.
const COMMUNICATION: [&str; 2] = ["HCCL", "COMMUNICATION"];

/// The largest number of an NPU.
const MAX_NPU: u32 = (1 << 10) - 1;

/// Whether a file that begins so is such a table.
pub(in crate::import) fn is_table(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Csv::open(line).is_ok_and(|csv| {
        let has = |names: &[&str]| {
            csv.columns()
                .iter()
                .any(|column| names.contains(&&**column))
        };
        [NAME, START, DURATION, KIND].iter().all(|names| has(names))
    })
}

/// A row.
#[derive(Default)]
struct KernelRow<'r> {
    name: &'r str,
    start: &'r str,
    duration: &'r str,
    kind: &'r str,
    device: Option<u32>,
    stream: Option<u32>,
    rest: Vec<(&'r str, &'r str)>,
}

impl<'r> KernelRow<'r> {
    fn of(fields: impl Iterator<Item = (&'r str, &'r str)>) -> KernelRow<'r> {
        let mut row = KernelRow::default();
        for (column, value) in fields {
            let value = value.trim();
            match column {
                _ if NAME.contains(&column) => row.name = value,
                _ if START.contains(&column) => row.start = value,
                _ if DURATION.contains(&column) => row.duration = value,
                _ if DEVICE.contains(&column) => row.device = value.parse().ok(),
                _ if STREAM.contains(&column) => row.stream = value.parse().ok(),
                _ if matches!(value, "" | "N/A") => {}
                _ => {
                    if KIND.contains(&column) {
                        row.kind = value;
                    }
                    row.rest.push((column, value));
                }
            }
        }
        row
    }

    /// The values of further columns as an object, without those of `but`.
    fn arguments(&self, mut object: String, but: &[&str]) -> String {
        for (column, value) in &self.rest {
            if but.contains(column) {
                continue;
            }
            match serde_json::from_str::<serde_json::Number>(value) {
                Ok(_) => member(&mut object, column, value),
                Err(_) => member(&mut object, column, &quoted(value)),
            }
        }
        if !object.is_empty() {
            object.push('}');
        }
        object
    }
}

/// Adds the rows of a table to what has been read.
pub(super) fn read<'a>(source: &'a InputFile, collected: &mut Collected<'a>) -> io::Result<()> {
    collected.file = source.name();
    let is_beside = collected.writers.ascend.has_tasks;
    let mut csv = match Csv::open(source.reader()?) {
        Ok(csv) => csv,
        Err(error) => {
            collected.damage(0, error.to_string(), "CSV");
            return Ok(());
        }
    };
    loop {
        match csv.next() {
            Ok(None) => return Ok(()),
            Ok(Some(Ok(record))) => {
                let row = KernelRow::of(record.fields());
                if is_beside {
                    detail(collected, record.offset, &row)?;
                } else {
                    kernel(collected, record.offset, &row)?;
                }
            }
            Ok(Some(Err(damage))) => {
                let file = collected.file;
                collected.report.damage(file, damage);
            }
            Err(error) => {
                let file = collected.file;
                let expected = "the rest of the file";
                collected
                    .report
                    .finding(file, None, error.to_string(), expected);
                return Ok(());
            }
        }
    }
}

/// A row about a kernel of the trace.
fn detail(collected: &mut Collected<'_>, offset: u64, row: &KernelRow<'_>) -> io::Result<()> {
    let start = decimal::microseconds(row.start);
    let Some(start) = start.and_then(|start| i64::try_from(start.nanos).ok()) else {
        collected.lost("row of a table of kernels whose time is no number", offset);
        return Ok(());
    };
    let head = RecordHead::new(StoredKind::Detail, 0, offset);
    let args = row.arguments(String::new(), &KNOWN);
    // Ahead of all that begins then.
    collected.add(false, (start, 0), head, row.name, &[&args])
}

/// A row that is a kernel, or an operation of communication.
fn kernel(collected: &mut Collected<'_>, offset: u64, row: &KernelRow<'_>) -> io::Result<()> {
    let device = row.device.unwrap_or(0).min(MAX_NPU);
    let pid = Id::Number(device.into());
    collected.writers.npus.insert(device);
    let process = || MetadataNames {
        name: Some("unknown process".to_owned()),
        ..MetadataNames::default()
    };
    collected.processes.entry(pid).or_insert_with(process);
    let stream = row.stream.unwrap_or(0).to_string();
    let mut object = String::new();
    let is_communication = COMMUNICATION.contains(&row.kind);
    let category = if is_communication {
        "\"communication\""
    } else {
        member(&mut object, "stream", &stream);
        ascend::category(row.kind, row.name)
    };
    let args = row.arguments(object, &[]);
    let [name, start, duration] = [row.name, row.start, row.duration].map(quoted);
    let device = device.to_string();
    collected.complete(
        offset,
        &ChromeEvent {
            ph: Some("\"X\""),
            name: Some(&name),
            cat: Some(category),
            pid: Some(&device),
            tid: Some(&stream),
            ts: Some(&start),
            dur: Some(&duration),
            args: (!args.is_empty()).then_some(&*args),
            ..ChromeEvent::default()
        },
    )
}
