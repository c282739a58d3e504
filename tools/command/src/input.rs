//! The input files of commands: captures and traces.

use crate::Failure;
use crate::cli::Contents;
use crate::trace::Order;
use anyhow::{Context, Result, anyhow};
use gputrail::capture::Reader;
use gputrail::trace::capture::Captures;
use gputrail::trace::import::{Format, Inputs};
use gputrail::trace::model::{Consumer, Producer};
use gputrail::trace::perfetto::reader::{Outcome, Replay};
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

/// The first bytes of a capture.
const CAPTURE: &[u8] = b"GPUTRAIL";

/// An input file.
pub enum Input {
    /// A capture, whose names and clocks have been read.
    Capture(Box<Reader>),
    /// A trace, or a file that is read as one.
    Trace(File),
    /// A folder, or a file of another program.
    Foreign(Inputs),
}

impl Input {
    /// Opens a file and determines its format.
    pub fn open(path: &Path) -> Result<Input> {
        let cannot = || format!("cannot read {}", path.display());
        let mut file = File::open(path).with_context(cannot)?;
        if file.metadata().with_context(cannot)?.is_dir() {
            return Ok(Input::Foreign(Inputs::open(&[path])?));
        }
        let mut first = Vec::new();
        file.by_ref()
            .take(CAPTURE.len() as u64)
            .read_to_end(&mut first)
            .with_context(cannot)?;
        if first == CAPTURE {
            let reader = Reader::open(path).map_err(|error| anyhow!(error))?;
            return Ok(Input::Capture(Box::new(reader)));
        }
        file.rewind().with_context(cannot)?;
        // The reader of traces reports the offset at which a file of another kind goes wrong.
        match file.metadata().with_context(cannot)?.is_file() {
            true => match Inputs::open(&[path]) {
                Ok(inputs) if !is_trace(&inputs) => Ok(Input::Foreign(inputs)),
                _ => Ok(Input::Trace(file)),
            },
            false => Ok(Input::Trace(file)),
        }
    }
}

/// Returns an error for a file in which no packet could be read: it is neither a capture nor a trace.
pub fn refuse_without_packets(path: &Path, outcome: &Outcome) -> Result<()> {
    if outcome.packets > 0 {
        return Ok(());
    }
    match outcome.findings.list().first() {
        Some(finding) => Err(anyhow!("{}: {finding}", path.display())),
        None => Err(anyhow!("{} is empty", path.display())),
    }
}

fn is_trace(inputs: &Inputs) -> bool {
    let recordings = inputs.recordings();
    recordings
        .iter()
        .all(|recording| recording.format() == Format::Perfetto)
}

/// Passes the content of files of any format to `consumer`.
fn read_all(
    files: &[PathBuf],
    contents: Contents,
    consumer: &mut impl Consumer,
) -> Result<Vec<String>, Failure> {
    let inputs = Inputs::open(files).map_err(|error| anyhow!(error))?;
    let inputs = inputs.with_options(Order::options(contents));
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
            Input::Trace(file) => traces.push((path, file)),
            Input::Foreign(_) => return read_all(files, contents, consumer),
        }
    }
    match (&captures[..], &mut traces[..]) {
        ([_, ..], []) => {
            let options = Order::options(contents);
            let report = Captures::new(&captures, &options)
                .produce(consumer)
                .map_err(|error| anyhow!(error))?;
            let findings = report.findings.iter();
            let findings = findings.map(|(path, finding)| format!("{}: {finding}", path.display()));
            Ok(findings.collect())
        }
        ([], [(path, file)]) => {
            let replayed = Replay::new(file).produce(consumer);
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
