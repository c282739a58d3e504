//! `gputrail check`: prints the defects of a trace.

use crate::cli::Check;
use crate::failure::Failure;
use crate::figures::{bytes, count};
use crate::input::{Input, unpacked};
use crate::stdout;
use anyhow::{Context, anyhow};
use gputrail_convert::import::{InputFile, OpenError};
use gputrail_record::printable;
use gputrail_trace::perfetto::reader;
use std::fmt::Write;

/// Exit code when there are findings.
const FINDINGS: u8 = 1;

/// Runs the command; the result is the exit code.
pub fn run(arguments: &Check) -> Result<u8, Failure> {
    let path = arguments.trace.display().to_string();
    let path = printable(&path);
    let input = match Input::open(&arguments.trace) {
        // A file of no known format may be a trace whose beginning is damaged.
        Err(error) if error.is::<OpenError>() => Input::Trace(
            InputFile::open(&arguments.trace).with_context(|| format!("cannot read {path}"))?,
        ),
        input => input?,
    };
    let trace = match input {
        Input::Trace(trace) => unpacked(&trace)?,
        Input::Foreign(_) => {
            return Err(anyhow!(
                "{path} is no Perfetto trace; `gputrail convert --dry-run` lists what could not be read of it"
            )
            .into());
        }
        Input::Capture(_) => {
            return Err(anyhow!(
                "{path} is a capture; `gputrail info` tells what could not be read of it, and `gputrail convert` makes a trace of it"
            )
            .into());
        }
    };
    let outcome = reader::check(trace);
    let findings = &outcome.findings;
    let mut text = String::new();
    for finding in findings.list() {
        let _ = writeln!(text, "{path}: {finding}");
    }
    if findings.unlisted() > 0 {
        let rest = count(findings.unlisted(), "further finding");
        let _ = writeln!(text, "{path}: {rest}, not listed");
    }
    for what in &outcome.unchecked {
        let _ = writeln!(text, "{path}: not checked: {what}");
    }
    let _ = writeln!(
        text,
        "{path}: {} in {} ({}, {})",
        match findings.count() {
            0 if outcome.unchecked.is_empty() => "nothing wrong".to_owned(),
            0 => "nothing wrong in what was checked".to_owned(),
            number => count(number, "finding"),
        },
        count(outcome.packets, "packet"),
        count(outcome.sequences, "sequence"),
        bytes(outcome.bytes),
    );
    stdout::print(&text)?;
    Ok(if findings.count() == 0 { 0 } else { FINDINGS })
}
