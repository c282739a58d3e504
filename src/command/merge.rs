//! `gputrail merge`: makes one trace of several traces and captures, of one machine or of several.

use crate::cli::contents::Contents;
use crate::cli::merge::{Merge, Offset};
use crate::failure::{DAMAGED, Failure};
use crate::figures::{bytes, count, time};
use crate::input::{Input, files_of, unpacked};
use crate::messages::say;
use crate::output::{Output, refuse_inputs};
use crate::progress::Progress;
use crate::report::problems;
use crate::signals::Signals;
use crate::trace::{TraceOrder, to_trace};
use anyhow::{Context, Result, anyhow};
use gputrail_capture::Reader;
use gputrail_convert::import::InputFile;
use gputrail_record::Nanos;
use gputrail_trace::perfetto::Exporter;
use gputrail_trace::perfetto::merge::{Placement, Survey, Trust, merge, place, survey};
use gputrail_trace::{MadeTrace, make_trace};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Maximum number of findings that are printed for each input.
const MAX_FINDINGS: usize = 5;

/// A trace to be merged, and the inputs from which it was made.
struct Piece {
    trace: InputFile,
    inputs: Vec<usize>,
    survey: Survey,
}

/// The inputs as traces, and whether all of them could be read without damage.
struct Pieces {
    list: Vec<Piece>,
    are_sound: bool,
}

/// Runs the command; the result is the exit code.
pub fn run(arguments: &Merge) -> Result<u8, Failure> {
    let output = Output::named_or_standard(&arguments.output)?;
    let signals = Signals::take().context("cannot take signals")?;
    let workshop = output.workshop()?;
    output.ends_at_once(signals, workshop.path());
    let path = output.path(std::process::id())?;
    let Pieces {
        list: pieces,
        are_sound,
    } = pieces(&arguments.inputs, &path, workshop.path())?;
    let offsets = offsets(&arguments.offset, &pieces, arguments.inputs.len())?;
    let surveys: Vec<Survey> = pieces.iter().map(|piece| piece.survey.clone()).collect();
    let placements = place(&surveys, &offsets).map_err(|piece| {
        let input = pieces[piece].inputs[0];
        anyhow!(
            "{} has no clock in common with {}: say what to add to its times with --offset {}=NANOSECONDS",
            arguments.inputs[input].display(),
            arguments.inputs[0].display(),
            input + 1
        )
    })?;
    let file = workshop.path().join("trace");
    write(&pieces, &placements, &file)?;
    let made = output
        .deliver(&file, &path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    if !arguments.quiet {
        for (index, (piece, placement)) in pieces.iter().zip(&placements).enumerate() {
            let inputs = piece
                .inputs
                .iter()
                .map(|input| arguments.inputs[*input].display().to_string());
            say!(
                "{}: {}",
                inputs.collect::<Vec<_>>().join(", "),
                in_words(piece, placement, index == 0)
            );
        }
        let length = std::fs::metadata(&made).map_or(0, |data| data.len());
        say!("trace: {} ({})", made.display(), bytes(length));
    }
    Ok(if are_sound { 0 } else { DAMAGED })
}

/// The inputs as traces: captures of one machine become one trace. None of them is the output, `place`.
fn pieces(inputs: &[PathBuf], place: &Path, workshop: &Path) -> Result<Pieces> {
    let mut traces: Vec<(Vec<usize>, InputFile)> = Vec::new();
    let mut captures: BTreeMap<String, Vec<(usize, Reader)>> = BTreeMap::new();
    let mut are_sound = true;
    let place = [place.to_owned()];
    for (index, path) in inputs.iter().enumerate() {
        let input = Input::open(path)?;
        match &input {
            Input::Foreign(inputs) => refuse_inputs(&place, files_of(inputs))?,
            _ => refuse_inputs(&place, std::iter::once(&**path))?,
        }
        match input {
            Input::Trace(trace) => traces.push((vec![index], trace)),
            Input::Foreign(inputs) => {
                let made = workshop.join(format!("input-{index}"));
                are_sound &= problems(&to_trace(inputs, &made)?) == 0;
                traces.push((vec![index], InputFile::open(&made)?));
            }
            Input::Capture(reader) => {
                let metadata = reader.metadata();
                let host = metadata
                    .process
                    .map(|process| metadata.string(process.host).to_owned());
                let of_host = captures.entry(host.unwrap_or_default()).or_default();
                of_host.push((index, *reader));
            }
        }
    }
    for (number, list) in captures.into_values().enumerate() {
        let (indices, readers): (Vec<_>, Vec<_>) = list.into_iter().unzip();
        let path = workshop.join(format!("part-{number}"));
        let file =
            File::create_new(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut progress = Progress::new();
        let trace = Exporter::new(progress.through(file));
        let options = TraceOrder::options(Contents::default());
        let MadeTrace { report, .. } = make_trace(&readers, trace, &options, &mut ())?;
        drop(progress);
        are_sound &= report.findings.is_empty();
        for (capture, finding) in report.findings.iter().take(MAX_FINDINGS) {
            say!("{}: {finding}", capture.display());
        }
        traces.push((indices, InputFile::open(&path)?));
    }
    traces.sort_by(|one, other| one.0.cmp(&other.0));
    let mut list = Vec::new();
    for (indices, trace) in traces {
        let survey = survey(unpacked(&trace)?);
        let name = inputs[indices[0]].display();
        if survey.packets == 0 {
            let what = survey.findings.first().map(ToString::to_string);
            return Err(anyhow!("{name}: {}", what.unwrap_or_default()));
        }
        for finding in survey.findings.iter().take(MAX_FINDINGS) {
            say!("{name}: {finding}");
        }
        if survey.findings.len() > MAX_FINDINGS {
            say!("{name}: and more; `gputrail check` lists them");
        }
        are_sound &= survey.findings.is_empty();
        list.push(Piece {
            trace,
            inputs: indices,
            survey,
        });
    }
    Ok(Pieces { list, are_sound })
}

/// The user's offsets by piece.
fn offsets(given: &[Offset], pieces: &[Piece], inputs: usize) -> Result<HashMap<usize, i64>> {
    let mut offsets = HashMap::new();
    for offset in given {
        let piece = pieces
            .iter()
            .position(|piece| piece.inputs.contains(&(offset.input - 1)))
            .ok_or_else(|| {
                anyhow!(
                    "--offset {}: there are {} only",
                    offset.input,
                    count(inputs as u64, "input")
                )
            })?;
        offsets.insert(piece, offset.nanos);
    }
    Ok(offsets)
}

fn write(pieces: &[Piece], placements: &[Placement], path: &Path) -> Result<()> {
    let cannot = || "the trace could not be written".to_owned();
    let file = File::create_new(path).with_context(cannot)?;
    let mut traces = Vec::new();
    for (piece, placement) in pieces.iter().zip(placements) {
        traces.push((unpacked(&piece.trace)?, &piece.survey, *placement));
    }
    let mut progress = Progress::new();
    let mut out = BufWriter::new(progress.through(file));
    merge(traces, &mut out).with_context(cannot)?;
    out.flush().with_context(cannot)
}

fn in_words(piece: &Piece, placement: &Placement, is_first: bool) -> String {
    let machine = match (&piece.survey.host[..], placement.machine) {
        ("", machine) => format!("machine {machine}"),
        (host, machine) => format!("machine {machine} ({host})"),
    };
    let sign = if placement.offset < 0 { "-" } else { "+" };
    let offset = format!("{sign}{}", time(Nanos(placement.offset.unsigned_abs())));
    match (placement.trust, placement.offset) {
        (Trust::SameMachine, 0) if is_first => {
            format!("{machine}, whose clock is that of the output")
        }
        (Trust::SameMachine, 0) if piece.survey.host.is_empty() => format!(
            "{machine}, as far as can be known: the file names no machine, and its clock began with that of the first; exact only if both are of one machine, otherwise use --offset"
        ),
        (Trust::SameMachine, 0) => format!("{machine}, by the machine's own clock: exact"),
        (Trust::SameMachine | Trust::Given, _) => format!("{machine}, times {offset}, as given"),
        (Trust::RealTime, _) => format!(
            "{machine}, times {offset} by the real-time clocks: as exact as these agree (NTP: milliseconds; PTP: microseconds), which nothing in the files tells"
        ),
    }
}
