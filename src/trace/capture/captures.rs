//! The captures of a recording, read one after the other.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;

use super::agents::Agents;
use super::process::{self, ProcessStream};
use super::{Report, StreamOutput};
use crate::model::{
    AgentIndex, Consumer, Machine, ProcessIndex, Producer, Stream, SystemClocks, TraceHeader,
};
use gputrail_buffer::clock::{HostClock, TickSource};
use gputrail_capture::{CaptureFinding, FileHeader, Metadata, Reader};
use gputrail_record::{AgentId, ClockSnapshot, Nanos};

/// Clock snapshots that follow another one within this time are left out, ns.
const SNAPSHOT_SPACING: u64 = 500_000_000;

/// The parts of a capture to pass on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether calls that enqueue work have their recorded arguments. There are many such calls, and their work shows
    /// most of the arguments; other calls always have theirs.
    pub arguments: bool,
    /// Whether each sample of the program counter is passed on singly, in addition to the counts.
    pub raw_samples: bool,
    /// Whether all queues of a process on a device share a row.
    pub device_rows: bool,
    /// The machine of the captures, if more than its name is known.
    pub machine: Machine,
    /// Whether the captures are being written, so that they have no end yet.
    pub is_growing: bool,
    /// The time before which nothing is kept: [`make_trace`](crate::make_trace) leaves out what ended earlier.
    pub from: Option<gputrail_record::Nanos>,
}

/// The captures of one recording: the processes of one machine.
#[derive(Copy, Clone, Debug)]
pub struct Captures<'a> {
    captures: &'a [Reader],
    options: &'a Options,
}

impl<'a> Captures<'a> {
    /// A recording of `captures`.
    pub fn new(captures: &'a [Reader], options: &'a Options) -> Captures<'a> {
        Captures { captures, options }
    }
}

impl Producer for Captures<'_> {
    type Outcome = Report;

    fn produce(self, consumer: &mut dyn Consumer) -> io::Result<Report> {
        let Captures { captures, options } = self;
        let mut output = StreamOutput {
            stream: Stream::new(consumer),
            options,
            report: Report::default(),
        };
        let processes: Vec<_> = captures
            .iter()
            .map(|capture| (capture.header(), capture.metadata()))
            .collect();
        let clocks = all_snapshots(captures);
        let indices = begin(&processes, &clocks, options, output.stream.consumer)?;
        for (place, (capture, agents)) in (0..).zip(captures.iter().zip(indices)) {
            let findings = one(capture, ProcessIndex(place), agents, &mut output)?;
            let path = capture.path();
            let findings = findings
                .into_iter()
                .map(|finding| (path.to_owned(), finding));
            output.report.findings.extend(findings);
            output.report.processes += 1;
        }
        output.stream.consumer.finish()?;
        Ok(output.report)
    }
}

/// Begins the stream of a recording with what describes all of it: header, agents, clocks, attributes and processes. Returns
/// the indices of the agents of each process.
pub(super) fn begin(
    processes: &[(&FileHeader, &Metadata)],
    clocks: &[SystemClocks],
    options: &Options,
    consumer: &mut dyn Consumer,
) -> io::Result<Vec<HashMap<AgentId, AgentIndex>>> {
    consumer.begin(&TraceHeader {
        identity: processes
            .iter()
            .fold(0, |all, (header, _)| all ^ identity(header)),
        clocks: clocks.first().copied().unwrap_or_default(),
        machine: machine(processes, options),
        ..TraceHeader::default()
    })?;
    let mut agents = Agents::default();
    let indices = processes
        .iter()
        .map(|(_, metadata)| agents.add(metadata))
        .collect();
    consumer.agents(AgentIndex(0), agents.list())?;
    for clocks in clocks.get(1..).unwrap_or_default() {
        consumer.clocks(clocks)?;
    }
    consumer.attributes(&attributes(processes))?;
    // Also those whose records turn out to be unreadable: their numbers are taken.
    for (place, (header, metadata)) in (0..).zip(processes) {
        process::declare(consumer, ProcessIndex(place), header.process, metadata)?;
    }
    Ok(indices)
}

/// Passes on one capture. Returns the parts of it that could not be read.
fn one(
    capture: &Reader,
    process: ProcessIndex,
    agents: HashMap<AgentId, AgentIndex>,
    output: &mut StreamOutput<'_>,
) -> io::Result<Vec<CaptureFinding>> {
    let mut findings = capture.findings().to_vec();
    let (ticks, host) = match host_clock(capture.header(), &capture.metadata().snapshots) {
        Ok(clock) => clock,
        Err(what) => {
            let what = format!("{what}; its records are left out");
            findings.push(CaptureFinding { offset: 0, what });
            return Ok(findings);
        }
    };
    let names = Cow::Borrowed(capture.metadata());
    let mut stream = ProcessStream::new(names, process, host, agents, output)?;
    let mut chunks = capture.chunks();
    chunks.each(|thread, record| stream.record(output, thread, record))?;
    let is_open = capture.is_open() && !output.options.is_growing;
    stream.may_lack_completions |= is_open || chunks.has_gaps();
    stream.finish(output)?;
    if is_open {
        stream.open_end(output, ticks)?;
    }
    // Damage to the file's structure has already been found when the names were read.
    let new = |found: &&CaptureFinding| !capture.findings().contains(found);
    findings.extend(chunks.findings().iter().filter(new).cloned());
    for finding in &findings {
        stream.unreadable(output, finding)?;
    }
    Ok(findings)
}

/// The clock of the host's ticks, by these snapshots.
pub(super) fn host_clock(
    header: &FileHeader,
    snapshots: &[ClockSnapshot],
) -> Result<(TickSource, HostClock), String> {
    let source = TickSource::from_code(header.tick_source)
        .ok_or_else(|| format!("unknown tick source {}", header.tick_source))?;
    let host = HostClock::new(source, header.tick_frequency, snapshots);
    host.map(|host| (source, host))
        .map_err(|error| error.to_string())
}

/// Facts about the recording: its version, and how each process was recorded.
fn attributes(processes: &[(&FileHeader, &Metadata)]) -> Vec<(String, String)> {
    let mut attributes = vec![(
        "gputrail.version".to_owned(),
        env!("CARGO_PKG_VERSION").to_owned(),
    )];
    for (header, metadata) in processes {
        let pid = header.process;
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
    attributes
}

/// The machine, from the captures and from the options.
fn machine(processes: &[(&FileHeader, &Metadata)], options: &Options) -> Machine {
    let host = processes.iter().find_map(|(_, metadata)| {
        let host = metadata.string(metadata.process?.host);
        (!host.is_empty()).then(|| host.to_owned())
    });
    match host {
        // The captures come from another machine.
        Some(host) if host != options.machine.host => Machine {
            host,
            ..Machine::default()
        },
        _ => options.machine.clone(),
    }
}

/// The number of a recording, from the identity of a capture.
fn identity(header: &FileHeader) -> u64 {
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
    let mut snapshots = Snapshots::default();
    all.into_iter()
        .filter_map(|snapshot| snapshots.next(snapshot))
        .collect()
}

/// Thins out clock snapshots that come in order.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    latest: Option<SystemClocks>,
}

impl Snapshots {
    /// The clocks of `snapshot` for the trace, unless it is too near to the one before. Clocks that were set back are
    /// left out.
    pub fn next(&mut self, snapshot: &ClockSnapshot) -> Option<SystemClocks> {
        let mut clocks = SystemClocks {
            boottime: snapshot.boottime,
            monotonic: snapshot.monotonic,
            monotonic_raw: snapshot.monotonic_raw,
            realtime: snapshot.realtime,
        };
        let due = self.latest.map_or(0, |latest| {
            latest.boottime.0.saturating_add(SNAPSHOT_SPACING)
        });
        if clocks.boottime == Nanos::NONE || clocks.boottime.0 < due {
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
                *clock = Nanos::NONE;
            } else {
                *latest = *clock;
            }
        }
        Some(clocks)
    }
}
