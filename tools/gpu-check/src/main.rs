//! `gpu-check`: checks gputrail on a machine with an NVIDIA GPU, and writes a report.
//!
//! It needs no Rust and no internet, only itself and the `gputrail` command beside it. Small programs of CUDA and OpenCL,
//! which are part of it, run with and without gputrail; results, counts and times are compared, and costs are measured.
//! The report is `report.md` and `report.json` in the folder, beside the traces.

mod check;
mod cuda;
mod cupti;
mod library;
mod markers;
mod opencl;
mod programs;
mod report;

use check::Checks;
use report::Report;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const USAGE: &str = "\
Checks gputrail on a machine with an NVIDIA GPU, and writes a report.

Usage: gpu-check [--gputrail COMMAND] [--output FOLDER] [--limit SECONDS] [--only CHECK]

  --gputrail COMMAND  the command to check [default: gputrail beside gpu-check]
  --output FOLDER     for report.md, report.json and the traces [default: gpu-check-report]
  --limit SECONDS     the time after which no more checks begin [default: 540]
  --only CHECK        one check alone, such as kernels, counters or events

GPUTRAIL_CUPTI names the libcupti to use.

Exit codes: 0 checks passed and none failed, 1 a check failed or none passed, 2 wrong arguments, 3 there is no GPU.
";

/// The longest time for all checks, in seconds.
const LONGEST: u64 = 86_400;
/// The exit code if a check failed, or none passed.
const FAILED: u8 = 1;
/// The exit code for wrong arguments.
const WRONG: u8 = 2;
/// The exit code on a machine without a GPU.
const NO_GPU: u8 = 3;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(|word| &word[..]).collect();
    let done = match words[..] {
        ["program", name] => program(name),
        _ => return check(&words),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a line. If the reader has closed the pipe, the rest is dropped: the report has it.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Runs one of the programs.
fn program(name: &str) -> Result<(), Box<dyn std::error::Error>> {
    match name {
        "opencl" => opencl::run(),
        "spin" => programs::spin(),
        name => {
            cupti::observe()?;
            programs::run(name)
        }
    }
}

/// Runs all checks.
fn check(words: &[&str]) -> ExitCode {
    let beside = std::env::current_exe().unwrap_or_default();
    let mut gputrail = beside.with_file_name("gputrail");
    let mut folder = PathBuf::from("gpu-check-report");
    let mut limit = 540;
    let mut only = None;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let value = words.next();
        match (*word, value) {
            ("--gputrail", Some(path)) => gputrail = path.into(),
            ("--output", Some(path)) => folder = path.into(),
            ("--limit", Some(seconds)) if seconds.parse::<u64>().is_ok() => {
                limit = seconds.parse().unwrap_or(limit).min(LONGEST);
            }
            ("--only", Some(name)) => only = Some((*name).to_owned()),
            _ => {
                eprint!("{USAGE}");
                return ExitCode::from(WRONG);
            }
        }
    }
    let gpu = match check::gpu() {
        Ok(gpu) => gpu,
        Err(reason) => {
            eprintln!("gpu-check: there is no NVIDIA GPU here: {reason}");
            return ExitCode::from(NO_GPU);
        }
    };
    if let Err(error) = std::fs::create_dir_all(&folder) {
        eprintln!("gpu-check: {}: {error}", folder.display());
        return ExitCode::from(WRONG);
    }
    say(&gpu);
    let cupti = cupti::find(&gputrail);
    let report = Report {
        machine: check::machine(&gputrail, &gpu, cupti.as_deref()),
        checks: Vec::new(),
    };
    let mut checks = Checks {
        gputrail,
        folder,
        deadline: Instant::now() + Duration::from_secs(limit),
        cupti,
        only,
        report,
    };
    checks.run();
    if let Err(error) = checks.report.write(&checks.folder) {
        eprintln!("gpu-check: {}: {error}", checks.folder.display());
        return ExitCode::from(FAILED);
    }
    say(&checks.folder.join("report.md").display().to_string());
    if checks.report.is_good() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FAILED)
    }
}
