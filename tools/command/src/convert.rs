//! `gputrail convert`: makes a trace from captures and from files of other programs.

use crate::cli::{Contents, Convert};
use crate::figures::{bytes, count};
use crate::output::Output;
use crate::progress::Progress;
use crate::signals::Signals;
use crate::summary_text::Known;
use crate::trace::Order;
use crate::{Failure, say, summary_text};
use anyhow::{Context, anyhow, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use gputrail::capture::Reader;
use gputrail::record::Nanos;
use gputrail::trace::export::ChromeWriter;
use gputrail::trace::filter::{Filter, Markers, Selection, TimeBound};
use gputrail::trace::import::{Format, Inputs, LocalFile, Recording, Report, Source};
use gputrail::trace::model::{Consumer, Producer};
use gputrail::trace::perfetto::Exporter;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Lines of each list of findings.
const MAX_LINES: usize = 10;
/// Exit code when input was damaged, and everything else was converted.
const DAMAGED: u8 = 1;

/// Runs the command; the result is the exit code.
pub fn run(arguments: Convert) -> Result<u8, Failure> {
    let inputs = Inputs::open(&arguments.inputs).map_err(|error| anyhow!(error))?;
    let inputs = inputs.with_options(Order::options(arguments.contents));
    if arguments.dry_run {
        let report = inputs
            .produce(&mut Everything)
            .map_err(|error| anyhow!(error))?;
        say!("{}", summary(&report, 0));
        return Ok(problems(&report));
    }
    let selection = selection(&arguments)?;
    let format = OutputFormat::of(&arguments);
    if selection.is_everything()
        && format == OutputFormat::Perfetto
        && let [captures] = inputs.recordings()
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
    let (report, left_out) = convert(inputs, selection, &file, format, &arguments)
        .context("the output could not be made")?;
    let length = std::fs::metadata(&file).map_or(0, |data| data.len());
    let path = output
        .deliver(&file, &path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    if !arguments.quiet {
        say!("{}", summary(&report, left_out));
        say!(
            "trace: {} ({}); open it in https://ui.perfetto.dev (\"Open trace file\")",
            path.display(),
            bytes(length)
        );
    }
    Ok(problems(&report))
}

/// Writes a selection of inputs into `file`. The result has the number of events that the selection or the format left out.
fn convert(
    inputs: Inputs,
    selection: Selection,
    file: &Path,
    format: OutputFormat,
    arguments: &Convert,
) -> anyhow::Result<(Report, u64)> {
    let mut progress = Progress::new();
    let (total, counters) = inputs.progress();
    progress.reads(total, counters);
    let out = progress.through(File::create_new(file)?);
    match format {
        OutputFormat::Perfetto => {
            let mut exporter = Exporter::new(out).compressed(arguments.contents.compress);
            Ok(pass_on(inputs, selection, &mut exporter)?)
        }
        OutputFormat::Json => {
            let mut writer = ChromeWriter::new(BufWriter::new(out));
            let (report, left_out) = pass_on(inputs, selection, &mut writer)?;
            Ok((report, left_out + writer.left_out()))
        }
        OutputFormat::PackedJson => {
            let packed = GzEncoder::new(BufWriter::new(out), Compression::fast());
            let mut writer = ChromeWriter::new(packed);
            let (report, left_out) = pass_on(inputs, selection, &mut writer)?;
            let left_out = left_out + writer.left_out();
            writer.into_inner().finish()?.flush()?;
            Ok((report, left_out))
        }
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

fn pass_on(
    inputs: Inputs,
    selection: Selection,
    consumer: &mut dyn Consumer,
) -> io::Result<(Report, u64)> {
    if selection.is_everything() {
        return Ok((inputs.produce(consumer)?, 0));
    }
    let mut filter = Filter::new(selection, consumer);
    let report = inputs.produce(&mut filter)?;
    let left_out = filter.left_out();
    Ok((report, left_out))
}

/// The format of an output.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum OutputFormat {
    Perfetto,
    Json,
    PackedJson,
}

impl OutputFormat {
    fn of(arguments: &Convert) -> OutputFormat {
        let name = arguments.output.as_deref().unwrap_or_default();
        let name = name.as_encoded_bytes();
        let is_packed = name.ends_with(b".gz");
        let is_json = name.ends_with(b".json") || name.ends_with(b".json.gz");
        match (arguments.format.as_deref(), is_json, is_packed) {
            (Some("perfetto"), ..) | (None, false, _) => OutputFormat::Perfetto,
            (_, _, true) => OutputFormat::PackedJson,
            (_, _, false) => OutputFormat::Json,
        }
    }
}

/// Takes everything, for the counts of a report.
pub struct Everything;

impl Consumer for Everything {}

/// The selection of the command line. Names of slices and markers are looked up in the inputs.
fn selection(arguments: &Convert) -> anyhow::Result<Selection> {
    let given = &arguments.selection;
    let bounds = [&given.from, &given.to];
    let is_marker = |text: &&String| time_bound(text).is_none();
    let names: Vec<String> = bounds
        .into_iter()
        .flatten()
        .filter(is_marker)
        .cloned()
        .collect();
    let mut markers = Markers::new(names.clone());
    if !names.is_empty() {
        if arguments
            .inputs
            .iter()
            .any(|input| input.as_os_str() == "-")
        {
            bail!(
                "markers are looked up before anything is converted: standard input allows times only"
            );
        }
        let inputs = Inputs::open(&arguments.inputs)?;
        inputs.produce(&mut markers)?;
    }
    let bound = |text: &Option<String>, is_end: bool| -> anyhow::Result<Option<TimeBound>> {
        let Some(text) = text else { return Ok(None) };
        if let Some(bound) = time_bound(text) {
            return Ok(Some(bound));
        }
        let (begin, end) = markers.interval(text).with_context(|| {
            format!(
                "{text} is no time (1.5s, 20ms, nanoseconds) and no slice or marker of the inputs"
            )
        })?;
        Ok(Some(TimeBound::Absolute(if is_end { end } else { begin })))
    };
    Ok(Selection {
        from: bound(&given.from, false)?,
        to: bound(&given.to, true)?,
        processes: given.process.clone(),
        devices: given.device.clone(),
        streams: given.stream.clone(),
        names: given.name.clone(),
        categories: given.category.clone(),
        drop_arguments: given.drop_args,
    })
}

/// A time of the command line; none if it is the name of a marker.
fn time_bound(text: &str) -> Option<TimeBound> {
    if let Ok(nanos) = text.parse() {
        return Some(TimeBound::Absolute(Nanos(nanos)));
    }
    let units = [("ns", 1e0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (number, unit) = units
        .iter()
        .find_map(|(unit, nanos)| Some((text.strip_suffix(unit)?, nanos)))?;
    let nanos: f64 = number.trim().parse().ok()?;
    (nanos >= 0.0).then(|| TimeBound::SinceBegin(Nanos((nanos * unit).round() as u64)))
}

/// Counts of what went in and came out.
pub fn summary(report: &Report, left_out: u64) -> String {
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
    if left_out > 0 {
        text += &format!("; left out: {}", count(left_out, "event"));
    }
    for remark in report.remarks.iter().take(MAX_LINES) {
        text += &format!("\n{remark}");
    }
    for one in report.unrepresented.iter().take(MAX_LINES) {
        text += &format!("\nnot in the trace: {one}");
    }
    text
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
