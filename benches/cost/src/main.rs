//! The cost of recording, as one table: each figure beside a reference measured in the same run, and beside its target.
//!
//! `benches/run` builds everything and starts it; `--calls` measures single calls only. Nothing is asserted: on a
//! shared machine a figure may miss its target, and the reader of the table judges.

mod in_process;
mod programs;
mod sample;
mod sampling;
mod trace_size;

use std::path::PathBuf;
use std::process::ExitCode;

/// One row of the table.
pub struct Row {
    what: &'static str,
    measured: String,
    beside: String,
    target: String,
    met: bool,
}

/// The paths of the measured files.
pub struct Places {
    /// The command.
    gputrail: PathBuf,
    /// The library that stands for a source.
    library: PathBuf,
    /// A directory for temporary files.
    scratch: PathBuf,
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gputrail-cost: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome<()> {
    let built = std::env::current_exe()?;
    let scratch = tempfile::tempdir()?;
    let places = Places {
        gputrail: built.with_file_name("gputrail"),
        library: built.with_file_name("libgputrail_cost.so"),
        scratch: scratch.path().into(),
    };
    let (tick_pair, mut rows) = in_process::measure(&places)?;
    let measure = match std::env::args().nth(1).as_deref() {
        None => programs::measure,
        Some("--calls") => programs::measure_calls,
        Some(other) => return Err(format!("{other}: only --calls may be asked for").into()),
    };
    match measure(&places, tick_pair) {
        Ok(more) => rows.extend(more),
        Err(error) => eprintln!("gputrail-cost: OpenCL programs could not be measured: {error}"),
    }
    print_table(&rows);
    Ok(())
}

fn print_table(rows: &[Row]) {
    println!("| what | result | beside | target | |");
    println!("|---|---|---|---|---|");
    for row in rows {
        let verdict = if row.met { "met" } else { "missed" };
        println!(
            "| {} | {} | {} | {} | {verdict} |",
            row.what, row.measured, row.beside, row.target
        );
    }
}
