//! `gputrail convert`: makes a trace from captures and from files of other programs.

use crate::cli::{self, Contents, Convert};
use crate::figures::{bytes, count, grouped};
use crate::output::{Output, WORKSHOP_PREFIX, folder_of, free_name};
use crate::progress::Progress;
use crate::signals::Signals;
use crate::summary::tables_of as summary_tables;
use crate::summary_text::Known;
use crate::trace::Order;
use crate::{Failure, private_dir, say, summary_text, tables};
use anyhow::{Context, anyhow, bail};
use gputrail::analysis::summary::Summary;
use gputrail::capture::Reader;
use gputrail::convert::{Conversion, Outcome, OutputFormat, Window, deliver_tables};
use gputrail::trace::filter::{Selection, TimeBound};
use gputrail::trace::import::{
    Format, Inputs, LocalFile, Recording, Report, Source, Unrepresented,
};
use gputrail::trace::model::{Consumer, Producer};
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
    let inputs = inputs.with_options(Order::options(arguments.contents));
    let inputs = match arguments.jobs {
        Some(jobs) => inputs.with_jobs(jobs as usize),
        None => inputs,
    };
    if arguments.dry_run {
        let report = inputs
            .produce(&mut Everything)
            .map_err(|error| anyhow!(error))?;
        say!("{}", summary(&report));
        return Ok(problems(&report));
    }
    let format = format(&arguments);
    let selection = selection(&arguments.selection);
    let limit = arguments.max_size.or(arguments.split);
    if limit.is_some() && format.is_folder() {
        return Err(anyhow!("--max-size and --split are for outputs that are one file").into());
    }
    if selection.is_everything()
        && limit.is_none()
        && format == OutputFormat::Perfetto
        && let [captures] = inputs.recordings()
        && captures.format() == Format::Capture
        && let Some(files) = plain_files(captures)
    {
        return convert_captures(&arguments, &files);
    }
    let mut conversion = Conversion::of(inputs).select(selection);
    let (outcome, path) = match limit {
        Some(limit) => to_parts(&mut conversion, &arguments, format, limit)?,
        None if format.is_folder() => to_folder(&conversion, &arguments, format)?,
        None => to_file(&conversion, &arguments, format)?,
    };
    if !arguments.quiet {
        say!("{}", summary(&outcome.report));
        let (left_out, kept) = (outcome.not_selected, outcome.selected);
        if left_out > 0 {
            say!(
                "selected: {} of {}",
                grouped(kept),
                count(kept + left_out, "event")
            );
        }
        if outcome.without_place > 0 {
            say!(
                "left out, since the output has no place for them: {}",
                count(outcome.without_place, "event")
            );
        }
        say!("{path}");
    }
    if outcome.selected == 0 && outcome.not_selected > 0 {
        say!("warning: the output is empty: the inputs have nothing that is selected");
    }
    Ok(problems(&outcome.report))
}

/// Makes a file; the result says which.
fn to_file(
    conversion: &Conversion,
    arguments: &Convert,
    format: OutputFormat,
) -> anyhow::Result<(Outcome, String)> {
    let output = output(arguments, &arguments.inputs[0], extension(format))?;
    let signals = Signals::take().context("cannot take signals")?;
    let workshop = output.workshop()?;
    let ends_at_once = signals.end_at_once(workshop.path());
    let path = output.path(std::process::id())?;
    let file = workshop.path().join("trace");
    let mut progress = Progress::new();
    let (total, counters) = conversion.inputs().progress();
    progress.reads(total, counters);
    let out = progress.through(File::create_new(&file)?);
    let outcome = conversion
        .write_to(out, format)
        .context("the output could not be made")?;
    drop(ends_at_once);
    let length = std::fs::metadata(&file).map_or(0, |data| data.len());
    let path = output
        .deliver(&file, &path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    let text = format!(
        "trace: {} ({}); open it in https://ui.perfetto.dev (\"Open trace file\")",
        path.display(),
        bytes(length)
    );
    Ok((outcome, text))
}

/// Makes one file of limited size, or several; the result says which.
fn to_parts(
    conversion: &mut Conversion,
    arguments: &Convert,
    format: OutputFormat,
    limit: u64,
) -> anyhow::Result<(Outcome, String)> {
    let output = output(arguments, &arguments.inputs[0], extension(format))?;
    if !output.is_file() {
        bail!("--max-size and --split write files, and the output is a device or a pipe");
    }
    let signals = Signals::take().context("cannot take signals")?;
    let workshop = output.workshop()?;
    let ends_at_once = signals.end_at_once(workshop.path());
    let path = output.path(std::process::id())?;
    // What crosses a cut is in both parts, which may make them larger than was measured: then smaller ones are tried.
    let mut aim = limit;
    for attempt in 1.. {
        let cuts = conversion
            .cuts(aim, format)
            .context("the output could not be made")?;
        let mut windows = Window::between(&cuts);
        if arguments.max_size.is_some() {
            windows.truncate(1);
        }
        let mut made = Vec::new();
        let mut total = Outcome::default();
        for (number, window) in (1..).zip(&windows) {
            conversion.set_window(*window);
            let file = workshop.path().join(format!("{attempt}-{number}"));
            let outcome = conversion
                .write_to(File::create_new(&file)?, format)
                .context("the output could not be made")?;
            let length = std::fs::metadata(&file)?.len();
            total.selected += outcome.selected;
            total.without_place += outcome.without_place;
            total.not_selected = outcome.not_selected;
            total.report = outcome.report;
            made.push((file, length));
        }
        conversion.set_window(Window::default());
        let largest = made.iter().map(|(_, length)| *length).max().unwrap_or(0);
        if largest > limit && attempt < ATTEMPTS {
            for (file, _) in made {
                std::fs::remove_file(file)?;
            }
            let smaller = u128::from(aim) * u128::from(limit) / u128::from(largest);
            aim = (smaller * 9 / 10).max(1) as u64;
            continue;
        }
        drop(ends_at_once);
        let mut text = String::new();
        if largest > limit {
            text += &format!(
                "warning: more than {} in one output: its events cannot be cut further\n",
                bytes(limit)
            );
        }
        if let (Some(_), [Window { to: Some(end), .. }]) = (arguments.max_size, &windows[..]) {
            text += &format!(
                "cut to {}: what begins after {} ns is left out ({}); --from shows it\n",
                bytes(limit),
                end.0,
                count(total.not_selected, "event")
            );
        }
        if arguments.split.is_some() {
            // An event may be in several parts.
            let selected = &conversion.pass_on(&mut Everything)?;
            (total.selected, total.not_selected) = (selected.selected, selected.not_selected);
        }
        let digits = made.len().to_string().len();
        for (number, (file, length)) in (1..).zip(&made) {
            let place = match arguments.split {
                Some(_) => numbered(&path, number, digits),
                None => path.clone(),
            };
            let place = output
                .deliver(file, &place)
                .with_context(|| format!("cannot write {}", place.display()))?;
            text += &format!("trace: {} ({})\n", place.display(), bytes(*length));
        }
        return Ok((total, text));
    }
    unreachable!("the last attempt ends the loop")
}

/// Maximum number of times that an output is made to find its size.
const ATTEMPTS: u32 = 5;

/// The name of a part: `run-2.pftrace`.
fn numbered(path: &Path, number: usize, digits: usize) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // `run.json.gz` has two extensions.
    let (stem, extensions) = name.split_once('.').unwrap_or((&name, ""));
    let dot = if extensions.is_empty() { "" } else { "." };
    path.with_file_name(format!("{stem}-{number:0digits$}{dot}{extensions}"))
}

/// Makes a folder of tables; the result says which.
fn to_folder(
    conversion: &Conversion,
    arguments: &Convert,
    format: OutputFormat,
) -> anyhow::Result<(Outcome, String)> {
    let path = match &arguments.output {
        Some(name) => PathBuf::from(name),
        None => free_name(&crate::output::beside(
            &arguments.inputs[0],
            extension(format),
        )),
    };
    if path.exists() && !path.is_dir() {
        bail!(
            "output {}: {} are a folder, and this is a file",
            path.display(),
            extension(format)
        );
    }
    let beside = folder_of(&path);
    let signals = Signals::take().context("cannot take signals")?;
    let workshop = private_dir::create_in(beside, WORKSHOP_PREFIX)
        .with_context(|| format!("the directory {} cannot be written", beside.display()))?;
    let ends_at_once = signals.end_at_once(workshop.path());
    let made = workshop.path().join("tables");
    // The folder of the result: others may read it.
    std::fs::create_dir(&made)?;
    let mut times = Summary::default();
    let outcome = match format {
        OutputFormat::Csv => {
            let outcome = conversion.write_tables(&made, format, &mut times);
            let outcome = outcome.context("the output could not be made")?;
            let tables = summary_tables(&times, 0);
            let text = tables::write(&tables, tables::Format::Csv);
            std::fs::write(made.join("summary.csv"), text)?;
            outcome
        }
        _ => conversion
            .write_tables(&made, format, &mut ())
            .context("the output could not be made")?,
    };
    drop(ends_at_once);
    deliver_tables(&made, &path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok((outcome, format!("tables: {}", path.display())))
}

/// The format of the output: what `--format` says, or else the output's name.
fn format(arguments: &Convert) -> OutputFormat {
    let name = arguments.output.as_deref().unwrap_or_default();
    let bytes = name.as_encoded_bytes();
    let ends = |end: &str| bytes.ends_with(end.as_bytes());
    let format = match arguments.format.as_deref() {
        Some(format) => format,
        None if ends(".json") || ends(".json.gz") => "json",
        None if ends(".csv") || ends(".csv/") => "csv",
        None if ends("/") || Path::new(name).is_dir() || ends(".parquet") => "parquet",
        None => "perfetto",
    };
    match format {
        "json" if ends(".gz") => OutputFormat::PackedJson,
        "json" => OutputFormat::Json,
        "csv" => OutputFormat::Csv,
        "parquet" => OutputFormat::Parquet,
        _ if arguments.contents.compress => OutputFormat::CompressedPerfetto,
        _ => OutputFormat::Perfetto,
    }
}

/// The extension of default names.
fn extension(format: OutputFormat) -> &'static str {
    match format {
        OutputFormat::Perfetto | OutputFormat::CompressedPerfetto => "pftrace",
        OutputFormat::Json | OutputFormat::PackedJson => "json",
        OutputFormat::Csv => "csv",
        OutputFormat::Parquet => "parquet",
    }
}

/// Makes a trace of inputs in `file`.
pub fn to_trace(inputs: Inputs, file: &Path) -> anyhow::Result<Report> {
    let inputs = inputs.with_options(Order::options(Contents::default()));
    let mut progress = Progress::new();
    let (total, counters) = inputs.progress();
    progress.reads(total, counters);
    let out = progress.through(File::create_new(file)?);
    Ok(inputs.produce(&mut Exporter::new(out))?)
}

/// Takes everything, for the counts of a report.
pub struct Everything;

impl Consumer for Everything {}

/// The selection of the command line.
fn selection(given: &cli::Selection) -> Selection {
    let bound = |text: &Option<String>| text.as_deref().map(TimeBound::from);
    Selection {
        from: bound(&given.from),
        to: bound(&given.to),
        processes: given.process.clone(),
        devices: given.device.clone(),
        streams: given.stream.clone(),
        names: given.name.clone(),
        categories: given.category.clone(),
        drop_arguments: given.drop_args,
    }
}

/// Counts of what went in.
pub fn summary(report: &Report) -> String {
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
        count(counts.samples, "sample"),
        count(counts.values, "counter value"),
    ];
    text += &parts.join(", ");
    for line in by_reason(&report.remarks) {
        text += &format!("\n{line}");
    }
    for line in by_reason(&report.unrepresented) {
        text += &format!("\nnot in the trace: {line}");
    }
    text
}

/// A line for each reason: that of its file, or a count over several files.
fn by_reason(list: &[Unrepresented]) -> Vec<String> {
    let mut lines: Vec<(&Unrepresented, u64, usize)> = Vec::new();
    for one in list {
        match lines.iter_mut().find(|line| line.0.reason == one.reason) {
            Some(line) => (line.1, line.2) = (line.1 + one.count, line.2 + 1),
            None => lines.push((one, one.count, 1)),
        }
    }
    let line = |(first, total, files): (&Unrepresented, u64, usize)| match files {
        1 => first.to_string(),
        _ => format!("{files} files: {total} x {}", first.reason),
    };
    lines.into_iter().take(MAX_LINES).map(line).collect()
}

/// Says what was damaged; the result is the exit code.
pub fn problems(report: &Report) -> u8 {
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

fn output(arguments: &Convert, first: &Path, extension: &str) -> anyhow::Result<Output> {
    match &arguments.output {
        Some(name) => Output::named_beside(name, &arguments.inputs),
        None => Output::beside(first, extension),
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
    let output = output(arguments, &captures[0], "pftrace")?;
    let signals = Signals::take().context("cannot take signals")?;
    let workshop = output.workshop()?;
    let _ends_at_once = signals.end_at_once(workshop.path());
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
