//! The memory for writing a very long trace.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use gputrail_capture::Reader;
use gputrail_collect::recorder::DEFAULT_POOL_BYTES;

use crate::{Outcome, Row};

/// Number of steps of the simulated training that make more than 100 million records.
const STEPS: u64 = 68_000;

/// Runs `command` to record the simulated GPU and to make the trace.
pub fn measure(command: &Path, scratch: &Path) -> Outcome<Row> {
    let trace = scratch.join("long.pftrace");
    eprintln!(
        "recording a long run of the simulated GPU: minutes, and some 20 GB in {}",
        scratch.display()
    );
    let mut child = Command::new(command)
        .args(["demo", "--quiet", "--capture", "--steps"])
        .arg(STEPS.to_string())
        .arg("-o")
        .arg(&trace)
        .stdin(Stdio::null())
        .spawn()?;
    let peak = peak_until_end(&mut child)?;
    let written = trace.metadata()?.len();
    std::fs::remove_file(&trace)?;
    let records = records(&trace.with_extension("gputrail"))?;
    eprintln!(
        "{:.1} million records, a trace of {:.1} GB",
        records as f64 / 1e6,
        written as f64 / 1e9
    );
    let beyond = peak.saturating_sub(DEFAULT_POOL_BYTES as u64);
    Ok(Row::at_most(
        "memory to record and write more than 100 million records, beyond the pool",
        beyond as f64 / (1 << 20) as f64,
        64.0,
        "MiB",
    ))
}

/// The maximum memory in use by `child`, in bytes, including mapped files.
fn peak_until_end(child: &mut Child) -> Outcome<u64> {
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        // There is no such line once the process has ended.
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        if let Some(kibibytes) = line.and_then(|line| line.split_whitespace().next()) {
            peak = kibibytes.parse::<u64>()? << 10;
        }
        if let Some(status) = child.try_wait()? {
            return if status.success() {
                Ok(peak)
            } else {
                Err(format!("gputrail demo: {status}").into())
            };
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn records(capture: &Path) -> Outcome<u64> {
    let capture = Reader::open(capture)?;
    let mut chunks = capture.chunks();
    let mut records = 0;
    while let Some(chunk) = chunks.next() {
        records += chunk.records().count() as u64;
    }
    Ok(records)
}
