//! From captures to a trace.
//!
//! The names and clocks of all captures are known beforehand (opening a [`Reader`] reads them), so that
//! the records can be streamed: memory is bounded by the number of names, threads and queues and by
//! what is in flight, not by the length of the recording.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;

use super::gpus::Gpus;
use super::header::{Machine, SystemClocks};
use super::observer::{GpuIndex, Observer, ProcessIndex};
use super::process::ProcessTrace;
use super::writer::TraceWriter;
use crate::capture::{FileHeader, Finding, Metadata, Reader};
use crate::clock::{HostClock, TickSource};
use crate::record::{AgentId, ClockSnapshot, ProcessId};

/// Snapshots nearer to the one before than this add nothing.
const SNAPSHOT_SPACING: u64 = 500_000_000;

/// How a trace is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether the arguments of calls that enqueue work are shown, where they were recorded. There are
    /// many of these, and their work shows most of it; arguments of other calls are always shown.
    pub arguments: bool,
    /// Whether each sample of the program counter is kept with all that is known of it, beside the counts.
    pub raw_samples: bool,
    /// Whether the trace is compressed, in groups of packets that each stand alone.
    pub compress: bool,
    /// The machine that the captures come from, where more is known of it than its name.
    pub machine: Machine,
}

/// What a trace holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Processes.
    pub processes: u32,
    /// API calls.
    pub calls: u64,
    /// Of these, calls that failed.
    pub failed_calls: u64,
    /// Kernels.
    pub kernels: u64,
    /// Copies, maps, unmaps and migrations.
    pub copies: u64,
    /// Fills.
    pub sets: u64,
    /// Markers and barriers.
    pub synchronizations: u64,
    /// Completions whose enqueue record is missing.
    pub unknown_work: u64,
    /// Work whose end is not known.
    pub unfinished: u64,
    /// Work of which it could not be known: the runtime gave no event to follow it by.
    pub untracked: u64,
    /// Calls that did not return.
    pub unfinished_calls: u64,
    /// Records that were dropped while recording.
    pub lost: u64,
    /// Work that seemed to start before it was enqueued, by no more than the clocks' error: moved.
    pub clamped: u64,
    /// Work that starts before it was enqueued, by more than the clocks' error: shown as measured.
    pub before_enqueue: u64,
    /// Work of agents whose clock is not known: placed by when its end was learnt.
    pub estimated: u64,
    /// Samples of the program counter.
    pub samples: u64,
    /// Samples that their agent could not complete.
    pub invalid_samples: u64,
    /// Samples that were dropped, by the totals of their dispatches.
    pub dropped_samples: u64,
    /// The flame graph shows one sample of so many; 0 if there is none.
    pub samples_shown_one_of: u64,
    /// Bytes of the trace.
    pub bytes: u64,
    /// What could not be read, and in which capture.
    pub findings: Vec<(PathBuf, Finding)>,
    /// Each agent's clock, in words: the process, the device, its clock.
    pub clocks: Vec<(ProcessIndex, GpuIndex, String)>,
}

impl Report {
    /// All device work.
    pub fn work(&self) -> u64 {
        self.kernels + self.copies + self.sets + self.synchronizations + self.unknown_work
    }
}

/// The trace could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the trace cannot be written: {source} (its first {written} bytes are whole)")]
pub struct ConvertError {
    /// Bytes that the file has taken as whole packets: cut there, it is a readable trace.
    pub written: u64,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// What the captures of one trace share while it is made.
pub(super) struct Making<'a> {
    pub writer: TraceWriter<Out<'a>>,
    pub options: &'a Options,
    pub observer: &'a mut dyn Observer,
    pub report: Report,
}

/// Makes one trace of `captures`, the processes of one machine. `observer` hears of everything in it.
///
/// What a capture holds that cannot be read is left out and reported.
pub fn convert(
    captures: &[Reader],
    out: impl Write + Send,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Report, ConvertError> {
    convert_to(captures, Box::new(out), options, observer)
}

/// Where a trace goes, whatever it is: what makes traces is compiled once, with the library.
pub(super) type Out<'a> = Box<dyn Write + Send + 'a>;

fn convert_to(
    captures: &[Reader],
    out: Out<'_>,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Report, ConvertError> {
    let start = |source| ConvertError { written: 0, source };
    let snapshots = all_snapshots(captures);
    let machine = machine(captures.iter().map(Reader::metadata), options);
    let seed = captures
        .iter()
        .fold(0, |seed, capture| seed ^ seed_of(capture.header()));
    let first = snapshots.first().copied().unwrap_or_default();
    let mut writer = TraceWriter::new(out, seed, &first, &machine).map_err(start)?;
    if options.compress {
        writer.compress();
    }
    let mut making = Making {
        writer,
        options,
        observer,
        report: Report::default(),
    };
    match make(captures, &snapshots, &mut making) {
        Ok(()) => {}
        Err(source) => {
            let written = making.writer.written();
            return Err(ConvertError { written, source });
        }
    }
    let Making {
        mut writer,
        mut report,
        ..
    } = making;
    let failed = |written| move |source| ConvertError { written, source };
    let written = writer.written();
    writer.end_trace().map_err(failed(written))?;
    report.bytes = writer.bytes();
    Ok(report)
}

fn make(
    captures: &[Reader],
    snapshots: &[SystemClocks],
    making: &mut Making<'_>,
) -> io::Result<()> {
    let mut gpus = Gpus::default();
    let indices: Vec<_> = captures
        .iter()
        .map(|capture| gpus.add(capture.metadata()))
        .collect();
    making.writer.gpus(gpus.list())?;
    for (index, gpu) in (0..).zip(gpus.list()) {
        making.observer.gpu(GpuIndex(index), &gpu.name);
    }
    for snapshot in snapshots.get(1..).unwrap_or_default() {
        making.writer.clocks(snapshot)?;
    }
    let processes = captures
        .iter()
        .map(|capture| (capture.header().process, capture.metadata()));
    describe(processes, making)?;
    for (place, (capture, gpus)) in (0..).zip(captures.iter().zip(indices)) {
        let findings = one(capture, ProcessIndex(place), gpus, making)?;
        let findings = findings.into_iter();
        let path = capture.path();
        let named = findings.map(|finding| (path.to_owned(), finding));
        making.report.findings.extend(named);
        making.report.processes += 1;
    }
    Ok(())
}

/// Streams one capture into the trace; returns what could not be read of it.
fn one(
    capture: &Reader,
    process: ProcessIndex,
    gpus: HashMap<AgentId, GpuIndex>,
    making: &mut Making<'_>,
) -> io::Result<Vec<Finding>> {
    let mut findings = capture.findings().to_vec();
    let host = match host_clock(capture) {
        Ok(host) => host,
        Err(what) => {
            let what = format!("{what}; its records are left out");
            findings.push(Finding { offset: 0, what });
            return Ok(findings);
        }
    };
    let names = Cow::Borrowed(capture.metadata());
    let pid = capture.header().process;
    let mut trace = ProcessTrace::new(names, pid, process, host, gpus, making)?;
    let mut chunks = capture.chunks();
    chunks.each(|thread, record| trace.record(making, thread, record))?;
    trace.finish(making)?;
    // Damage to the file's structure was found when the names were read, and again.
    let new = |found: &&Finding| !capture.findings().contains(found);
    findings.extend(chunks.findings().iter().filter(new).cloned());
    for finding in &findings {
        trace.unreadable(&mut making.writer, finding)?;
    }
    Ok(findings)
}

fn host_clock(capture: &Reader) -> Result<HostClock, String> {
    let header = capture.header();
    let source = TickSource::from_code(header.tick_source)
        .ok_or_else(|| format!("unknown tick source {}", header.tick_source))?;
    let snapshots = &capture.metadata().snapshots;
    HostClock::new(source, header.tick_frequency, snapshots).map_err(|error| error.to_string())
}

/// What the trace says of itself, for new versions.
pub(super) fn describe<'m>(
    processes: impl Iterator<Item = (ProcessId, &'m Metadata)>,
    making: &mut Making<'_>,
) -> io::Result<()> {
    let mut attributes = vec![(
        "gputrail.version".to_owned(),
        env!("CARGO_PKG_VERSION").to_owned(),
    )];
    for (pid, metadata) in processes {
        let Some(process) = metadata.process else {
            continue;
        };
        for (key, id) in [
            ("command", process.command),
            ("configuration", process.configuration),
            ("recorder", process.version),
            ("host", process.host),
        ] {
            let text = metadata.string(id);
            if !text.is_empty() {
                attributes.push((format!("gputrail.{pid}.{key}"), text.to_owned()));
            }
        }
    }
    making.writer.attributes(&attributes)
}

/// The machine, by the captures and by what the options add.
pub(super) fn machine<'m>(
    mut processes: impl Iterator<Item = &'m Metadata>,
    options: &Options,
) -> Machine {
    let host = processes.find_map(|metadata| {
        let host = metadata.string(metadata.process?.host);
        (!host.is_empty()).then(|| host.to_owned())
    });
    match host {
        // Captures may have been carried elsewhere: this is not their machine.
        Some(host) if host != options.machine.host => Machine {
            host,
            ..Machine::default()
        },
        _ => options.machine.clone(),
    }
}

/// What tells a trace apart, from the capture's identity.
pub(super) fn seed_of(header: &FileHeader) -> u64 {
    let (identity, _) = header.identity.split_at(8);
    u64::from_le_bytes(identity.try_into().expect("8 bytes"))
}

/// The clock snapshots of all captures in order, thinned out, and without clocks that were set back.
fn all_snapshots(captures: &[Reader]) -> Vec<SystemClocks> {
    let mut all: Vec<&ClockSnapshot> = captures
        .iter()
        .flat_map(|capture| &capture.metadata().snapshots)
        .collect();
    all.sort_by_key(|snapshot| snapshot.boottime);
    let mut thinned = Snapshots::default();
    all.into_iter()
        .filter_map(|snapshot| thinned.next(snapshot))
        .collect()
}

/// Thins out clock snapshots that come in order.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    latest: Option<SystemClocks>,
}

impl Snapshots {
    /// What the trace says of `snapshot`, if it adds something. Clocks that were set back are left out.
    pub fn next(&mut self, snapshot: &ClockSnapshot) -> Option<SystemClocks> {
        let mut clocks = SystemClocks {
            boottime: snapshot.boottime.0,
            monotonic: snapshot.monotonic.0,
            monotonic_raw: snapshot.monotonic_raw.0,
            realtime: snapshot.realtime.0,
        };
        let due = self
            .latest
            .map_or(0, |latest| latest.boottime.saturating_add(SNAPSHOT_SPACING));
        if clocks.boottime == 0 || clocks.boottime < due {
            return None;
        }
        let latest = self.latest.get_or_insert_default();
        latest.boottime = clocks.boottime;
        for (clock, latest) in [
            (&mut clocks.monotonic, &mut latest.monotonic),
            (&mut clocks.monotonic_raw, &mut latest.monotonic_raw),
            (&mut clocks.realtime, &mut latest.realtime),
        ] {
            if *clock < *latest {
                *clock = 0;
            } else {
                *latest = *clock;
            }
        }
        Some(clocks)
    }
}
