//! `gputrail convert`: makes a trace from captures and from files of other programs.

use crate::cli::Convert;
use crate::figures::{bytes, count};
use crate::output::Output;
use crate::progress::Progress;
use crate::signals::Signals;
use crate::summary_text::Known;
use crate::trace::Order;
use crate::{Failure, say, summary_text};
use anyhow::{Context, anyhow};
use gputrail::capture::Reader;
use gputrail::trace::import::{Format, Inputs, LocalFile, Recording, Report, Source};
use gputrail::trace::model::Producer;
use gputrail::trace::perfetto::Exporter;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Lines of each list of findings.
const MAX_LINES: usize = 10;
/// Exit code when input was damaged, and everything else was converted.
const DAMAGED: u8 = 1;

/// Runs the command; the result is the exit code.
pub fn run(arguments: Convert) -> Result<u8, Failure> {
    let inputs = Inputs::open(&arguments.inputs).map_err(|error| anyhow!(error))?;
    if let [captures] = inputs.recordings()
        && captures.format() == Format::Capture
        && let Some(files) = plain_files(captures)
    {
        return convert_captures(&arguments, &files);
    }
    let output = output(&arguments, &arguments.inputs[0])?;
    // An interruption ends the writing like an error, and leaves no file.
    let _signals = Signals::take().context("cannot take signals")?;
    let workshop = output.workshop()?;
    let path = output.path(std::process::id())?;
    let file = workshop.path().join("trace");
    let report = convert(
        inputs.with_options(Order::options(arguments.contents)),
        &file,
        arguments.contents.compress,
    )
    .context("the trace could not be made")?;
    let length = std::fs::metadata(&file).map_or(0, |data| data.len());
    let path = output
        .deliver(&file, &path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    if !arguments.quiet {
        say!("{}", summary(&report));
        say!(
            "trace: {} ({}); open it in https://ui.perfetto.dev (\"Open trace file\")",
            path.display(),
            bytes(length)
        );
    }
    Ok(problems(&report))
}

/// Makes a trace of inputs in `file`.
fn convert(inputs: Inputs, file: &Path, compress: bool) -> anyhow::Result<Report> {
    let mut progress = Progress::new();
    let (total, counters) = inputs.progress();
    progress.reads(total, counters);
    let out = progress.through(File::create_new(file)?);
    let mut exporter = Exporter::new(out).compressed(compress);
    Ok(inputs.produce(&mut exporter)?)
}

/// Counts of what went in and came out.
fn summary(report: &Report) -> String {
    let mut text = String::new();
    for (file, format, length) in report.files.iter().take(MAX_LINES) {
        text += &format!("{}: {format}, {}\n", file.display(), bytes(*length));
    }
    if report.files.len() > MAX_LINES {
        text += &format!("and {} more files\n", report.files.len() - MAX_LINES);
    }
    let counts = report.counts;
    let parts = [
        count(counts.calls, "call"),
        count(counts.kernels, "kernel"),
        count(counts.copies, "copy").replace("copys", "copies"),
        count(counts.sets, "fill"),
        count(counts.slices, "slice"),
        count(counts.instants, "instant"),
        count(counts.values, "counter value"),
    ];
    text += &parts.join(", ");
    for remark in report.remarks.iter().take(MAX_LINES) {
        text += &format!("\n{remark}");
    }
    for one in report.unrepresented.iter().take(MAX_LINES) {
        text += &format!("\nnot in the trace: {one}");
    }
    text
}

/// Says what was damaged; the result is the exit code.
fn problems(report: &Report) -> u8 {
    for finding in report.findings.iter().take(MAX_LINES) {
        say!("{finding}");
    }
    let more = report.findings.len().saturating_sub(MAX_LINES) as u64 + report.further_findings;
    if more > 0 {
        say!("and {more} more");
    }
    match report.is_sound() {
        true => 0,
        false => DAMAGED,
    }
}

fn output(arguments: &Convert, first: &Path) -> anyhow::Result<Output> {
    match &arguments.output {
        Some(name) => Output::named(name),
        None => Output::beside(first),
    }
}

/// The paths of a recording's files, if they can be read as they are.
fn plain_files(recording: &Recording) -> Option<Vec<PathBuf>> {
    let path = |source: &Source| match source.local_file() {
        Ok(LocalFile::Own(path)) => Some(path),
        _ => None,
    };
    recording.sources().iter().map(path).collect()
}

/// Makes a trace of captures, and its summary.
fn convert_captures(arguments: &Convert, captures: &[PathBuf]) -> Result<u8, Failure> {
    // A user who names captures wants all of them: if one cannot be read, nothing is written.
    let mut incomplete = false;
    for capture in captures {
        let reader = Reader::open(capture).map_err(|error| anyhow!(error))?;
        if !reader.ended() {
            incomplete = true;
            say!(
                "{}: cut: its process did not end the recording itself",
                capture.display()
            );
        }
    }
    let output = output(arguments, &captures[0])?;
    // An interruption ends the writing like an error, and leaves no file.
    let _signals = Signals::take().context("cannot take signals")?;
    let workshop = output.workshop()?;
    let path = output.path(std::process::id())?;
    let made = Order {
        captures,
        output: &output,
        path: &path,
        workshop: workshop.path(),
        contents: arguments.contents,
        captures_may_go: false,
    }
    .make()
    .context("the trace could not be made")?;
    if !arguments.quiet {
        summary_text::print(
            &made,
            &Known {
                incomplete,
                ..Known::default()
            },
        );
    }
    Ok(0)
}
