//! `gputrail convert`: makes a trace from captures and from files of other programs.

use crate::cli::contents::Contents;
use crate::cli::convert::Convert;
use crate::failure::{DAMAGED, Failure};
use crate::figures::{bytes, count, grouped};
use crate::input::files_of;
use crate::messages::{say, say_lines};
use crate::output::{
    Output, WORKSHOP_PREFIX, beside, folder_of, free_name, refuse_inputs, refuse_older,
};
use crate::progress::Progress;
use crate::report::{problems, summary, trace_line};
use crate::signals::Signals;
use crate::summary::tables_of as summary_tables;
use crate::summary_text::{self, TraceFacts};
use crate::trace::TraceOrder;
use crate::{contents, links, private_dir, stdout, tables};
use anyhow::{Context, anyhow, bail};
use gputrail_analysis::summary::Summary;
use gputrail_capture::Reader;
use gputrail_convert::import::{InputFile, InputFormat, Inputs, LocalFile, Recording};
use gputrail_convert::{
    Conversion, Outcome, OutputFormat, Part, Selection, TimeBound, deliver_tables,
};
use gputrail_record::{NoteKind, printable};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Runs the command; the result is the exit code.
pub fn run(arguments: Convert) -> Result<u8, Failure> {
    let inputs = Inputs::open(&arguments.inputs).map_err(|error| anyhow!(error))?;
    let inputs = inputs.with_options(TraceOrder::options(arguments.contents));
    let inputs = match arguments.jobs {
        Some(jobs) => inputs.with_jobs(jobs as usize),
        None => inputs,
    };
    let format = format(&arguments);
    // Nodes that convert their own ranks into one folder would each align to another rank.
    let inputs = inputs.with_alignment(!arguments.no_align && !format.is_folder());
    let selection = selection(&arguments.selection);
    refuse_contents(arguments.contents, format)?;
    if arguments.dry_run {
        return list_contents(&Conversion::of(inputs).select(selection), format);
    }
    let is_limited = arguments.max_size.or(arguments.split).is_some();
    if is_limited && format.is_folder() {
        return Err(anyhow!("--max-size and --split are for outputs that are one file").into());
    }
    if selection.is_everything()
        && !is_limited
        && format == OutputFormat::Perfetto
        && inputs.are_known()
        && let [captures] = inputs.recordings()
        && captures.format() == InputFormat::Capture
        && let Some(files) = plain_files(captures)
    {
        return convert_captures(&arguments, &files);
    }
    let conversion = Conversion::of(inputs)
        .select(selection)
        .with_projected_ranges(arguments.project_ranges);
    let (outcome, path) = match (arguments.max_size, arguments.split) {
        (Some(limit), _) => to_limited_file(&conversion, &arguments, format, limit)?,
        (None, Some(limit)) => to_parts(&conversion, &arguments, format, limit)?,
        _ if format.is_folder() => to_folder(&conversion, &arguments, format)?,
        _ => to_file(&conversion, &arguments, format)?,
    };
    if !arguments.quiet {
        say_lines(&summary(&outcome.report));
        say_left_out(&outcome);
        say_lines(path.trim_end());
    }
    warn(&outcome);
    Ok(problems(&outcome.report))
}

/// Refuses to make an output of damaged inputs of which nothing could be read.
fn refuse_without_events(outcome: &Outcome) -> anyhow::Result<()> {
    let report = &outcome.report;
    let read = report.counts.events() + outcome.selected + outcome.not_selected;
    match report.findings.first() {
        Some(finding) if read == 0 => {
            bail!("{finding}; nothing else could be read, so there is no output")
        }
        _ => Ok(()),
    }
}

/// Refuses options that say how a Perfetto trace is made, where the output is none.
fn refuse_contents(contents: Contents, format: OutputFormat) -> anyhow::Result<()> {
    let instead = match format {
        OutputFormat::Json => "; an output called .json.gz is packed",
        OutputFormat::Parquet => "; Parquet files are packed in any case",
        OutputFormat::Csv | OutputFormat::PackedJson => "",
        OutputFormat::Perfetto | OutputFormat::CompressedPerfetto => return Ok(()),
    };
    if contents.compress && format != OutputFormat::PackedJson {
        bail!("--compress packs Perfetto traces{instead}")
    }
    if contents.device_rows && format.is_folder() {
        bail!(
            "--device-rows arranges the rows of traces; the tables name device and queue of all work"
        )
    }
    Ok(())
}

/// Lists the contents of the inputs, as far as they are selected, and what the output would leave out.
fn list_contents(conversion: &Conversion, format: OutputFormat) -> Result<u8, Failure> {
    let mut contents = contents::StreamContents::default();
    let outcome = conversion
        .try_out(format, &mut contents)
        .map_err(|error| anyhow!(error))?;
    stdout::print(&contents.text(&outcome.report))?;
    say_left_out(&outcome);
    warn(&outcome);
    Ok(problems(&outcome.report))
}

/// Says how many events were selected, and how many have no place in the output.
fn say_left_out(outcome: &Outcome) {
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
}

/// Warns of a selection that matches nothing.
fn warn(outcome: &Outcome) {
    for what in &outcome.unmatched {
        say!("warning: nothing matches --{what}");
    }
    if outcome.selected == 0 && outcome.not_selected > 0 {
        say!("warning: the output is empty: the inputs have nothing that is selected");
    }
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
    output.ends_at_once(signals, workshop.path());
    let path = output.path(std::process::id())?;
    refuse_inputs(std::slice::from_ref(&path), files_of(conversion.inputs()))?;
    let file = workshop.path().join("trace");
    let mut progress = Progress::of(conversion.inputs().progress());
    let out = progress.through(File::create_new(&file)?);
    let outcome = conversion
        .write_to(out, format)
        .context("the output could not be made")?;
    refuse_without_events(&outcome)?;
    let length = std::fs::metadata(&file).map_or(0, |data| data.len());
    let path = output
        .deliver(&file, &path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok((outcome, trace_line(&path, length)))
}

/// Makes one file of limited size, the beginning of the output; the result says which.
fn to_limited_file(
    conversion: &Conversion,
    arguments: &Convert,
    format: OutputFormat,
    limit: u64,
) -> anyhow::Result<(Outcome, String)> {
    let output = file_output(arguments, format)?;
    let path = output.path(std::process::id())?;
    refuse_inputs(std::slice::from_ref(&path), files_of(conversion.inputs()))?;
    let signals = Signals::take().context("cannot take signals")?;
    let workshop = output.workshop()?;
    output.ends_at_once(signals, workshop.path());
    let progress = Progress::of(conversion.inputs().progress());
    let part = conversion
        .write_beginning(&workshop.path().join("trace"), format, limit)
        .context("the output could not be made")?;
    drop(progress);
    refuse_without_events(&part.outcome)?;
    let mut text = too_large(std::slice::from_ref(&part), limit);
    if let Some(end) = part.window.to {
        text += &format!(
            "cut to {}: what begins after {} ns is left out ({}); --from shows it\n",
            bytes(limit),
            end.0,
            count(part.outside, "event")
        );
    }
    text += &deliver_part(&output, &part, &path)?;
    Ok((part.outcome, text))
}

/// Makes several files of limited size; the result says which.
fn to_parts(
    conversion: &Conversion,
    arguments: &Convert,
    format: OutputFormat,
    limit: u64,
) -> anyhow::Result<(Outcome, String)> {
    let output = file_output(arguments, format)?;
    let path = output.path_of_parts(std::process::id())?;
    let signals = Signals::take().context("cannot take signals")?;
    let workshop = output.workshop()?;
    output.ends_at_once(signals, workshop.path());
    let progress = Progress::of(conversion.inputs().progress());
    let parts = conversion
        .write_parts(workshop.path(), format, limit)
        .context("the output could not be made")?;
    drop(progress);
    refuse_without_events(&parts.whole)?;
    let digits = parts.list.len().to_string().len();
    let places = (1..=parts.list.len()).map(|number| numbered(&path, number, digits));
    let places: Vec<_> = places.collect();
    refuse_inputs(&places, files_of(conversion.inputs()))?;
    refuse_older_parts(&output, &path, &places)?;
    let mut text = too_large(&parts.list, limit);
    for (part, place) in parts.list.iter().zip(&places) {
        text += &deliver_part(&output, part, place)?;
    }
    Ok((parts.whole, text))
}

/// The output of files of limited size, which are made beside it.
fn file_output(arguments: &Convert, format: OutputFormat) -> anyhow::Result<Output> {
    let output = output(arguments, &arguments.inputs[0], extension(format))?;
    if !output.is_file() {
        bail!("--max-size and --split write files, and the output is a device or a pipe");
    }
    Ok(output)
}

/// A warning about parts that are larger than `limit`.
fn too_large(parts: &[Part], limit: u64) -> String {
    let larger = parts.iter().filter(|part| part.bytes > limit);
    let (number, largest) = larger.fold((0, 0), |(number, largest), part| {
        (number + 1, part.bytes.max(largest))
    });
    match number {
        0 => String::new(),
        number => format!(
            "warning: {} larger than {}, by up to {}: their events are too close in time to be divided\n",
            count(number, "output"),
            bytes(limit),
            bytes(largest - limit)
        ),
    }
}

/// Gives a part its name.
fn deliver_part(output: &Output, part: &Part, place: &Path) -> anyhow::Result<String> {
    let place = output
        .deliver(&part.file, place)
        .with_context(|| format!("cannot write {}", place.display()))?;
    let line = format!("trace: {} ({})", place.display(), bytes(part.bytes));
    Ok(format!("{}\n", printable(&line)))
}

/// The name of a part: `run-2.pftrace`.
fn numbered(path: &Path, number: usize, digits: usize) -> PathBuf {
    let (stem, end) = stem_and_end(path);
    path.with_file_name(format!("{stem}-{number:0digits$}{end}"))
}

/// The name of a file, and its extensions: `run.json.gz` has two.
fn stem_and_end(path: &Path) -> (String, String) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let end = name.find('.').unwrap_or(name.len());
    (name[..end].to_owned(), name[end..].to_owned())
}

/// Refuses to put parts beside those of an earlier run that had more of them: together they would pass for one output.
fn refuse_older_parts(output: &Output, path: &Path, places: &[PathBuf]) -> anyhow::Result<()> {
    let (stem, end) = stem_and_end(path);
    let is_part = |name: &str| {
        let number = name
            .strip_prefix(&*stem)
            .and_then(|rest| rest.strip_prefix('-'));
        let number = number.and_then(|rest| rest.strip_suffix(&*end));
        number.is_some_and(|digits| {
            !digits.is_empty() && digits.len() <= 4 && digits.bytes().all(|b| b.is_ascii_digit())
        })
    };
    refuse_older(folder_of(path), is_part, |name| {
        output.replaces() && places.iter().any(|place| place.file_name() == Some(name))
    })
}

/// Makes a folder of tables; the result says which.
fn to_folder(
    conversion: &Conversion,
    arguments: &Convert,
    format: OutputFormat,
) -> anyhow::Result<(Outcome, String)> {
    let path = match &arguments.output {
        Some(name) => links::followed(Path::new(name))
            .with_context(|| format!("output {}", name.display()))?,
        None => free_name(&beside(&arguments.inputs[0], extension(format))),
    };
    if path == Path::new("-") {
        bail!("output -: tables are a folder, which standard output cannot take");
    }
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
    let progress = Progress::of(conversion.inputs().progress());
    let outcome = match format {
        OutputFormat::Csv => {
            let outcome = conversion.write_tables(&made, format, &mut times);
            let outcome = outcome.context("the output could not be made")?;
            let tables = summary_tables(&times, 0, None);
            let text = tables::write(&tables, tables::Format::Csv, usize::MAX);
            std::fs::write(made.join("summary.csv"), text)?;
            outcome
        }
        _ => conversion
            .write_tables(&made, format, &mut ())
            .context("the output could not be made")?,
    };
    drop(progress);
    refuse_without_events(&outcome)?;
    if format == OutputFormat::Csv && path.is_dir() {
        let made = std::fs::read_dir(&made)?.flatten();
        let places: Vec<PathBuf> = made.map(|file| path.join(file.file_name())).collect();
        refuse_inputs(&places, files_of(conversion.inputs()))?;
    }
    if format == OutputFormat::Csv && path.is_dir() {
        let is_table = |name: &str| name.ends_with(".csv");
        refuse_older(&path, is_table, |name| made.join(name).exists())?;
    }
    drop(ends_at_once);
    deliver_tables(&made, &path).with_context(|| format!("cannot write {}", path.display()))?;
    let text = format!("tables: {}", path.display());
    Ok((outcome, printable(&text).into_owned()))
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

/// The selection of the command line.
fn selection(given: &crate::cli::convert::Selection) -> Selection {
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

fn output(arguments: &Convert, first: &Path, extension: &str) -> anyhow::Result<Output> {
    match &arguments.output {
        Some(name) => Output::named_or_standard(name),
        None => Output::beside(first, extension),
    }
}

/// The paths of a recording's files, if they can be read as they are.
fn plain_files(recording: &Recording) -> Option<Vec<PathBuf>> {
    let path = |source: &InputFile| match source.local_file() {
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
        let mut notes = reader.metadata().notes.iter();
        incomplete |= notes.any(|note| note.what == NoteKind::ENDED_EARLY);
        if !reader.ended() && !reader.is_open() {
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
    output.ends_at_once(signals, workshop.path());
    let path = output.path(std::process::id())?;
    let read = captures.iter().map(PathBuf::as_path);
    refuse_inputs(std::slice::from_ref(&path), read)?;
    let made = TraceOrder {
        captures,
        output: &output,
        path: &path,
        workshop: workshop.path(),
        contents: arguments.contents,
        captures_may_go: false,
        is_growing: false,
    }
    .make()
    .context("the trace could not be made")?;
    if !arguments.quiet {
        summary_text::print(
            &made,
            &TraceFacts {
                incomplete,
                ..TraceFacts::default()
            },
        );
    }
    Ok(if made.report.findings.is_empty() {
        0
    } else {
        DAMAGED
    })
}
