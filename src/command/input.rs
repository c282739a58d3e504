//! The input files of commands: captures and traces.

use crate::cli::contents::Contents;
use crate::failure::Failure;
use crate::trace::TraceOrder;
use anyhow::{Context, Result, anyhow};
use gputrail_capture::Reader;
use gputrail_convert::import::{Compression, InputFile, InputFormat, Inputs, Recording};
use gputrail_trace::capture::Captures;
use gputrail_trace::model::{Consumer, Producer};
use gputrail_trace::perfetto::reader::{ReadOutcome, TraceReplay};
use std::io::Read;
use std::path::{Path, PathBuf};

/// An input file.
pub enum Input {
    /// A capture, whose names and clocks have been read.
    Capture(Box<Reader>),
    /// A Perfetto trace.
    Trace(InputFile),
    /// A folder, or a file of another program.
    Foreign(Inputs),
}

impl Input {
    /// Opens a file or a folder and determines its format.
    pub fn open(path: &Path) -> Result<Input> {
        let inputs = Inputs::open(&[path])?;
        let is = |wanted: InputFormat| move |one: &Recording| one.format() == wanted;
        let recordings = inputs.recordings();
        if path.is_dir() {
            return Ok(Input::Foreign(inputs));
        }
        if recordings.iter().all(is(InputFormat::Capture)) {
            let packed = |source: &InputFile| source.compression() != Compression::None;
            return Ok(
                if recordings.iter().flat_map(Recording::sources).any(packed) {
                    Input::Foreign(inputs)
                } else {
                    Input::Capture(Box::new(Reader::open(path)?))
                },
            );
        }
        match recordings.iter().flat_map(Recording::sources).next() {
            Some(source) if recordings.iter().all(is(InputFormat::Perfetto)) => {
                Ok(Input::Trace(source.clone()))
            }
            _ => Ok(Input::Foreign(inputs)),
        }
    }
}

/// The unpacked bytes of a file.
pub fn unpacked(file: &InputFile) -> Result<impl Read + Send + use<>> {
    let cannot = || format!("cannot read {}", file.name().display());
    file.reader().with_context(cannot)
}

/// Returns an error for a file in which no packet could be read: it is neither a capture nor a trace.
pub fn refuse_without_packets(path: &Path, outcome: &ReadOutcome) -> Result<()> {
    if outcome.packets > 0 {
        return Ok(());
    }
    match outcome.findings.list().first() {
        Some(finding) => Err(anyhow!("{}: {finding}", path.display())),
        None => Err(anyhow!("{} is empty", path.display())),
    }
}

/// Passes the content of files of any format to `consumer`.
fn read_all(
    files: &[PathBuf],
    contents: Contents,
    consumer: &mut impl Consumer,
) -> Result<Vec<String>, Failure> {
    let inputs = Inputs::open(files).map_err(|error| anyhow!(error))?;
    let inputs = inputs.with_options(TraceOrder::options(contents));
    let report = inputs.produce(consumer).map_err(|error| anyhow!(error))?;
    Ok(report.findings.iter().map(ToString::to_string).collect())
}

/// Passes the contents of all files, captures or one trace, to `consumer`. Returns the parts that could not be read.
pub fn read(
    files: &[PathBuf],
    contents: Contents,
    consumer: &mut impl Consumer,
) -> Result<Vec<String>, Failure> {
    let mut captures: Vec<Reader> = Vec::new();
    let mut traces = Vec::new();
    for path in files {
        match Input::open(path)? {
            Input::Capture(reader) => captures.push(*reader),
            Input::Trace(trace) => traces.push((path, trace)),
            Input::Foreign(_) => return read_all(files, contents, consumer),
        }
    }
    match (&captures[..], &traces[..]) {
        ([_, ..], []) => {
            let options = TraceOrder::options(contents);
            let report = Captures::new(&captures, &options)
                .produce(consumer)
                .map_err(|error| anyhow!(error))?;
            let findings = report.findings.iter();
            let findings = findings.map(|(path, finding)| format!("{}: {finding}", path.display()));
            Ok(findings.collect())
        }
        ([], [(path, trace)]) => {
            let replayed = TraceReplay::new(unpacked(trace)?).produce(consumer);
            let replayed = replayed.map_err(|error| anyhow!(error))?;
            refuse_without_packets(path, &replayed.outcome)?;
            let findings = replayed.outcome.findings.list().iter();
            Ok(findings
                .map(|finding| format!("{}: {finding}", path.display()))
                .collect())
        }
        ([], _) => Err(anyhow!("only one trace at a time; `gputrail merge` merges several").into()),
        _ => Err(anyhow!(
            "captures and traces cannot be combined: the same work would count twice"
        )
        .into()),
    }
}

/// The names of all files that inputs consist of, also those in folders.
pub fn files_of(inputs: &Inputs) -> impl Iterator<Item = &Path> {
    let sources = inputs.recordings().iter().flat_map(Recording::sources);
    sources.map(InputFile::name)
}
