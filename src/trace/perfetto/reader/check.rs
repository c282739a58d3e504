//! Checks a trace for defects.
//!
//! In any trace: the wire format, references to interned data, loops among the tracks. In a trace of gputrail also that
//! every id of work is resolved, that no interval is impossible, that slices begin before they end, and that nothing
//! was lost.

use std::io::Read;

use prost::Message;

use super::findings::{Findings, PacketPosition};
use super::id_set::IdSet;
use super::samples::SampleReferences;
use super::tracks::{TrackId, Tracks};
use super::{EventKind, HostEvent, Input, Known, Outcome, Packet, Visitor, WorkEvent, field, read};
use gputrail_capture::description::is_selective;
use gputrail_record::number_map::NumberMap;
use gputrail_record::{Nanos, NoteKind, SynchronizationType, count};
use crate::model::{EventId, Slice, category};
use crate::perfetto::schema::{GpuInfo, PcSamples, SystemInfo, TraceAttributes, TraceStats};

/// Maximum number of slices that are open at the same time, on all tracks.
const MAX_OPEN: usize = 1 << 22;
/// Maximum number of ids that wait for the packet they refer to.
pub(super) const MAX_WAITING: usize = if cfg!(test) { 1 << 8 } else { 1 << 20 };
/// Later times are impossible: this is 146 years after the machine was started.
const LATEST: u64 = 1 << 62;
/// Maximum size of a packet of an infrequent kind.
pub(super) const MAX_RARE_PACKET_BYTES: usize = 1 << 20;

/// The attribute of traces that were converted from another format.
const FORMAT: &str = "format";

/// Name of the instant that describes a process's recording.
pub(super) const RECORDING: &str = "recording";
/// The first words of the version that a trace of gputrail names.
const OURS: &str = "gputrail ";

/// The version of gputrail in a packet that names it.
pub(super) fn our_version(packet: &Packet<'_>) -> Option<String> {
    let (field::trace_packet::SYSTEM_INFO, data) = packet.data else {
        return None;
    };
    let version = rare::<SystemInfo>(data)?.tracing_service_version?;
    version.strip_prefix(OURS).map(str::to_owned)
}

/// Decodes a message of an infrequent kind. Messages larger than any useful one are not read: decoded, they take more
/// memory than their bytes.
pub(in crate::perfetto) fn rare<M: Message + Default>(data: &[u8]) -> Option<M> {
    if data.len() > MAX_RARE_PACKET_BYTES {
        return None;
    }
    M::decode(data).ok()
}

/// Reads a trace to its end; the outcome's findings are its defects.
pub fn check(source: impl Read) -> Outcome {
    check_all(Box::new(source))
}

fn check_all(source: Input<'_>) -> Outcome {
    let mut check = Check::default();
    let mut outcome = read(source, &mut check);
    check.finish(&outcome.known.tracks, &mut outcome.findings);
    outcome
}

/// An id that waits for the packet it refers to.
#[derive(Copy, Clone, Debug)]
struct Waiting {
    position: PacketPosition,
    start: Nanos,
    /// The number of the call of work ([`call_of`]); 0 for a call.
    call: u64,
}

/// The number of the call that submitted work: the process's number of it, below the process's own.
fn call_of(event: &WorkEvent<'_>, id: u64) -> u64 {
    const OWN: u64 = (1 << EventId::OWN_BITS) - 1;
    id & !OWN | event.submission & OWN
}

#[derive(Debug, Default)]
struct Check {
    ours: bool,
    /// Begins of the open slices of each track.
    open: NumberMap<TrackId, Vec<Nanos>>,
    open_count: usize,
    /// Ids that calls have named.
    submitted: IdSet,
    /// Ids of the work.
    worked: IdSet,
    /// Ids named by calls whose work has not come.
    without_work: NumberMap<u64, Waiting>,
    /// Ids of work that no call has named.
    without_call: NumberMap<u64, Waiting>,
    /// Calls of work that a call has named. They may have further work: nodes of a graph.
    calls: IdSet,
    /// Ids that a call or work waited for, and whose work has not come.
    waited: NumberMap<u64, PacketPosition>,
    left_out: u64,
    gpus: Option<usize>,
    samples: SampleReferences,
    /// Whether it was converted from a file of another profiler, which may have work without calls.
    imported: bool,
    /// Whether only some calls or work were recorded: then the target of an id may be missing.
    selective: bool,
}

impl Visitor for Check {
    fn packet(&mut self, packet: &Packet<'_>, _: &Known, findings: &mut Findings) {
        self.ours |= our_version(packet).is_some();
        let (position, (kind, data)) = (packet.position, packet.data);
        let readable = match kind {
            field::trace_packet::TRACE_STATS => rare::<TraceStats>(data).map(|stats| {
                let lost = stats.buffer_stats.iter();
                let lost: u64 = lost
                    .filter_map(|buffer| buffer.trace_writer_packet_loss)
                    .fold(0, u64::saturating_add);
                if lost > 0 {
                    findings.add(position, || {
                        format!("{} lost while recording", count(lost, "record"))
                    });
                }
            }),
            field::trace_packet::GPU_INFO => {
                rare::<GpuInfo>(data).map(|info| self.gpus = Some(info.gpus.len()))
            }
            field::trace_packet::TRACE_ATTRIBUTES => rare::<TraceAttributes>(data).map(|list| {
                let mut keys = list.attribute.iter().map(|attribute| attribute.key());
                self.imported |= keys.any(|key| key == FORMAT);
            }),
            field::trace_packet::PC_SAMPLES => rare::<PcSamples>(data).map(|samples| {
                self.samples
                    .check(position, packet.sequence, &samples, findings);
            }),
            field::trace_packet::SYSTEM_INFO => rare::<SystemInfo>(data).map(drop),
            _ => Some(()),
        };
        if readable.is_none() {
            findings.add(position, || {
                format!("field {kind} of the packet cannot be read")
            });
        }
        if packet.dropped && self.ours {
            findings.add(position, || {
                format!(
                    "sequence {}: packets before this one were dropped",
                    packet.sequence
                )
            });
        }
    }

    fn host(&mut self, position: PacketPosition, event: &HostEvent<'_>, findings: &mut Findings) {
        if !self.ours {
            return;
        }
        if event.described.is_none() {
            findings.add(position, || {
                format!(
                    "an event on track {:#x}, which is not described before",
                    event.track.0
                )
            });
        }
        self.time(position, event.time, findings);
        self.selective |=
            event.category.text == category::RECORDING && event.name.text == Slice::OFF;
        match event.kind {
            EventKind::Begin if self.open_count < MAX_OPEN => {
                self.open.entry(event.track).or_default().push(event.time);
                self.open_count += 1;
            }
            EventKind::Begin => self.left_out += 1,
            EventKind::End => match self.open.get_mut(&event.track).and_then(Vec::pop) {
                Some(begin) => {
                    self.open_count -= 1;
                    if event.time < begin {
                        findings.add(position, || {
                            format!(
                                "a slice ends {} ns before it begins",
                                begin.0 - event.time.0
                            )
                        });
                    }
                }
                None if self.left_out > 0 => {}
                None => findings.add(position, || "a slice ends that has not begun".into()),
            },
            EventKind::Instant if event.category.text == "gputrail" => {
                self.own(position, event, findings);
            }
            _ => {}
        }
        for id in event.submitted() {
            self.submits(position, id, event.time, findings);
        }
        for id in event.waited() {
            if !self.worked.has(id) {
                if self.waited.len() < MAX_WAITING {
                    self.waited.insert(id, position);
                } else {
                    self.left_out += 1;
                }
            }
        }
    }

    fn work(&mut self, position: PacketPosition, event: &WorkEvent<'_>, findings: &mut Findings) {
        if !self.ours {
            return;
        }
        self.time(position, event.start, findings);
        let duration = event.duration.unwrap_or(0);
        if duration > LATEST || event.start.0.saturating_add(duration) > LATEST {
            findings.add(position, || {
                format!("work with an impossible duration of {} ns", duration as i64)
            });
        }
        if self
            .gpus
            .is_some_and(|gpus| event.gpu as usize >= gpus.max(1))
        {
            findings.add(position, || {
                format!("work of device {}, which is not described", event.gpu)
            });
        }
        if event.name.text.is_empty() || event.queue.text.is_empty() {
            findings.add(position, || "work without a name or without a queue".into());
        }
        let Some(id) = event.event else {
            findings.add(position, || "work without an id".into());
            return;
        };
        if !self.worked.insert(id) {
            findings.add(position, || {
                format!("a second piece of work has the id {id:#x}")
            });
            return;
        }
        match self.without_work.remove(&id) {
            Some(call) => {
                self.calls.insert(call_of(event, id));
                order(position, id, call.start, event.start, findings);
            }
            None if self.submitted.has(id) => drop(self.calls.insert(call_of(event, id))),
            // CUPTI has no record of an event of CUDA's that is captured: no call names one.
            None if SynchronizationType::MARKER.name() == Some(event.name.text) => {}
            None => {
                let waiting = Waiting {
                    position,
                    start: event.start,
                    call: call_of(event, id),
                };
                self.left_out += wait(&mut self.without_call, id, waiting);
            }
        }
    }
}

impl Check {
    /// Reads an instant by which the recording describes itself.
    fn own(&mut self, position: PacketPosition, event: &HostEvent<'_>, findings: &mut Findings) {
        if event.name.text == RECORDING {
            let configuration = event.text("configuration").unwrap_or_default();
            self.selective |= is_selective(configuration);
        } else if NoteKind::MISSING.name() == Some(event.name.text) {
            findings.add(position, || {
                let what = event.text("detail").unwrap_or_default();
                format!("records are missing: {what}")
            });
        } else if NoteKind::ENDED_EARLY.name() == Some(event.name.text) {
            findings.add(position, || {
                let reason = event.text("detail").unwrap_or_default();
                format!(
                    "the recording is incomplete from {} ns on: {reason}",
                    event.time.0
                )
            });
        }
    }

    fn time(&self, position: PacketPosition, time: Nanos, findings: &mut Findings) {
        if time.0 > LATEST {
            findings.add(position, || format!("an impossible time of {} ns", time.0));
        }
    }

    /// Notes that a call that begins at `start` names `id` as its work.
    fn submits(
        &mut self,
        position: PacketPosition,
        id: u64,
        start: Nanos,
        findings: &mut Findings,
    ) {
        if !self.submitted.insert(id) {
            findings.add(position, || format!("two calls name {id:#x} as their work"));
            return;
        }
        match self.without_call.remove(&id) {
            Some(work) => {
                self.calls.insert(work.call);
                order(work.position, id, start, work.start, findings);
            }
            None => {
                let waiting = Waiting {
                    position,
                    start,
                    call: 0,
                };
                self.left_out += wait(&mut self.without_work, id, waiting);
            }
        }
    }

    fn finish(&self, tracks: &Tracks, findings: &mut Findings) {
        loops(tracks, findings);
        if !self.ours {
            return;
        }
        let complete =
            self.worked.is_complete() && self.submitted.is_complete() && self.calls.is_complete();
        let end = PacketPosition::default();
        if self.left_out > 0 || !complete || tracks.left_out() > 0 {
            findings.add(end, || {
                "too many ids, tracks or open slices: not all of them were checked".into()
            });
        }
        if self.selective || self.imported {
            return;
        }
        let mut list: Vec<(PacketPosition, String)> = Vec::new();
        for (id, call) in &self.without_work {
            let what = format!("a call names {id:#x} as its work, which is not in the trace");
            list.push((call.position, what));
        }
        for (id, work) in &self.without_call {
            if EventId(*id).is_without_call() || self.calls.has(work.call) {
                continue;
            }
            list.push((
                work.position,
                format!("no call names the work {id:#x} as its own"),
            ));
        }
        for (id, position) in &self.waited {
            if !self.worked.has(*id) {
                let what = format!("a call waited for {id:#x}, which is not in the trace");
                list.push((*position, what));
            }
        }
        list.sort();
        for (position, what) in list {
            findings.add(position, || what);
        }
    }
}

fn wait(waiting: &mut NumberMap<u64, Waiting>, id: u64, what: Waiting) -> u64 {
    if waiting.len() >= MAX_WAITING {
        return 1;
    }
    waiting.insert(id, what);
    0
}

/// Checks that work runs after the call that submitted it began.
fn order(position: PacketPosition, id: u64, call: Nanos, work: Nanos, findings: &mut Findings) {
    if work < call {
        findings.add(position, || {
            let early = call.0 - work.0;
            format!("work {id:#x} begins {early} ns before the call that submitted it")
        });
    }
}

/// Finds tracks that are below themselves.
fn loops(tracks: &Tracks, findings: &mut Findings) {
    let mut sound: NumberMap<TrackId, ()> = NumberMap::default();
    let mut way = Vec::new();
    let mut found = Vec::new();
    for track in tracks.iter() {
        let mut at = Some(track);
        way.clear();
        while let Some(track) = at
            && sound.insert(track.id, ()).is_none()
        {
            way.push(track.id);
            at = tracks.get(track.parent);
        }
        if let Some(track) = at
            && way.contains(&track.id)
        {
            found.push((track.position, track.id));
        }
    }
    found.sort();
    for (position, id) in found {
        findings.add(position, || {
            format!("track {:#x} is its own ancestor", id.0)
        });
    }
}
