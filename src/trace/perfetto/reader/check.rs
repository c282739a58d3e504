//! Checks a trace for defects.
//!
//! In any trace: the wire format, references to interned data, loops among the tracks. In a trace of gputrail also that
//! every id of work is resolved, that no interval is impossible, that slices begin before they end, and that nothing
//! was lost.

use std::io::{self, Read};

use prost::Message;

use super::findings::{Findings, PacketPosition};
use super::samples::SampleReferences;
use super::tracks::{TrackId, Tracks};
use super::{
    EventKind, HostEvent, Known, Packet, ReadOutcome, TraceInput, Visitor, WorkEvent, field, read,
};
use crate::model::{EventId, LATEST, Slice, category};
use crate::perfetto::schema::{GpuInfo, PcSamples, SystemInfo, TraceAttributes, TraceStats};
use crate::sorter::Sorter;
use gputrail_capture::description::is_selective;
use gputrail_record::number_map::NumberMap;
use gputrail_record::{Nanos, NoteKind, SynchronizationType, count};

/// Maximum number of slices that are open at the same time, on all tracks.
const MAX_OPEN: usize = 1 << 22;
/// Memory for the ids of calls and work. What exceeds it goes to a temporary file.
const IDS: usize = if cfg!(test) { 1 << 14 } else { 64 << 20 };
/// Memory for the findings about them.
const FOUND: usize = 1 << 20;
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
pub fn check(source: impl Read) -> ReadOutcome {
    check_all(Box::new(source))
}

fn check_all(source: TraceInput<'_>) -> ReadOutcome {
    let mut check = TraceCheck::new();
    let mut outcome = read(source, &mut check);
    check.finish(&mut outcome);
    outcome
}

/// How an event names an id of work, in the order in which the check needs them.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Role {
    /// A call names it as the work that the call submitted.
    Submitted,
    /// The work itself.
    Worked,
    /// A call waited for it.
    Waited,
}

/// An event that names an id of work.
#[derive(Copy, Clone, Debug)]
struct NamedWork {
    position: PacketPosition,
    start: Nanos,
    /// The number of the call of work ([`call_of`]); 0 for a call.
    call: u64,
    /// Whether it is work that no call has to name.
    is_free: bool,
}

impl NamedWork {
    const BYTES: usize = 29;

    fn to_bytes(self) -> [u8; NamedWork::BYTES] {
        let mut bytes = [0; NamedWork::BYTES];
        bytes[..8].copy_from_slice(&self.position.offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.position.inner.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.start.0.to_le_bytes());
        bytes[20..28].copy_from_slice(&self.call.to_le_bytes());
        bytes[28] = self.is_free.into();
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> NamedWork {
        let number = |at| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        NamedWork {
            position: PacketPosition {
                offset: number(0),
                inner: u32::from_le_bytes(bytes[8..12].try_into().expect("4 bytes")),
            },
            start: Nanos(number(12)),
            call: number(20),
            is_free: bytes[28] != 0,
        }
    }
}

/// The number of the call that submitted work: the process's number of it, below the process's own.
fn call_of(event: &WorkEvent<'_>, id: u64) -> u64 {
    const OWN: u64 = (1 << EventId::OWN_BITS) - 1;
    id & !OWN | event.submission & OWN
}

#[derive(Debug)]
struct TraceCheck {
    ours: bool,
    /// Begins of the open slices of each track.
    open: NumberMap<TrackId, Vec<Nanos>>,
    open_count: usize,
    /// The ids of work that events name, sorted by id. Memory does not depend on their number.
    ids: Sorter,
    /// Why the ids cannot be sorted, if that is so.
    failed: Option<io::Error>,
    /// Slices that were left out for lack of space.
    left_out: u64,
    gpus: Option<usize>,
    samples: SampleReferences,
    /// Whether it was converted from a file of another profiler, which may have work without calls.
    imported: bool,
    /// Whether only some calls or work were recorded: then the target of an id may be missing.
    selective: bool,
}

impl Visitor for TraceCheck {
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
            self.name(
                Role::Submitted,
                id,
                NamedWork::by_call(position, event.time),
            );
        }
        for id in event.waited() {
            self.name(Role::Waited, id, NamedWork::by_call(position, event.time));
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
        // CUPTI has no record of an event of CUDA's that is captured: no call names one.
        let is_marker = SynchronizationType::MARKER.name() == Some(event.name.text);
        let work = NamedWork {
            position,
            start: event.start,
            call: call_of(event, id),
            is_free: is_marker || EventId(id).is_without_call(),
        };
        self.name(Role::Worked, id, work);
    }
}

impl TraceCheck {
    fn new() -> TraceCheck {
        TraceCheck {
            ours: false,
            open: NumberMap::default(),
            open_count: 0,
            ids: Sorter::new(IDS),
            failed: None,
            left_out: 0,
            gpus: None,
            samples: SampleReferences::default(),
            imported: false,
            selective: false,
        }
    }

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

    /// Notes that an event names `id`.
    fn name(&mut self, role: Role, id: u64, named: NamedWork) {
        if self.failed.is_none() {
            let key = (id as i64, role as u64);
            self.failed = self.ids.add(key, &[&named.to_bytes()]).err();
        }
    }

    fn finish(self, outcome: &mut ReadOutcome) {
        loops(&outcome.known.tracks, &mut outcome.findings);
        if !self.ours {
            return;
        }
        if self.left_out > 0 || outcome.known.tracks.left_out() > 0 {
            let text = "too many tracks or open slices for all of them to be checked";
            outcome.unchecked.push(text.into());
        }
        let is_whole = !self.selective && !self.imported;
        let checked = match self.failed {
            Some(error) => Err(error),
            None => check_ids(self.ids, is_whole, &mut outcome.findings),
        };
        if let Err(error) = checked {
            let place = std::env::temp_dir();
            let text = format!(
                "the ids of work, which take more memory than they may and do not fit into {}: {error}",
                place.display()
            );
            outcome.unchecked.push(text);
        }
    }
}

impl NamedWork {
    fn by_call(position: PacketPosition, start: Nanos) -> NamedWork {
        NamedWork {
            position,
            start,
            call: 0,
            is_free: false,
        }
    }
}

/// The events that name one id.
#[derive(Default)]
struct OneId {
    id: u64,
    submitted: Option<NamedWork>,
    worked: Option<NamedWork>,
    waited: Option<NamedWork>,
}

/// Checks the ids of work. In a trace of a whole recording, each id that is named is that of some work, and some call names
/// each piece of work.
fn check_ids(ids: Sorter, is_whole: bool, findings: &mut Findings) -> io::Result<()> {
    let mut ids_found = IdsFound {
        is_whole,
        found: Sorter::new(FOUND),
        calls: Sorter::new(IDS),
    };
    let mut one = OneId::default();
    ids.drain(|(id, role), bytes| {
        let id = id as u64;
        if id != one.id {
            ids_found.check(&one)?;
            one = OneId {
                id,
                ..OneId::default()
            };
        }
        let named = NamedWork::from_bytes(bytes);
        let (first, again) = match role {
            role if role == Role::Submitted as u64 => {
                (&mut one.submitted, "two calls name {} as their work")
            }
            role if role == Role::Worked as u64 => {
                (&mut one.worked, "a second piece of work has the id {}")
            }
            _ => {
                one.waited.get_or_insert(named);
                return Ok(());
            }
        };
        match first {
            None => *first = Some(named),
            Some(_) => {
                let text = again.replace("{}", &format!("{id:#x}"));
                ids_found.add(named.position, &text)?;
            }
        }
        Ok(())
    })?;
    ids_found.check(&one)?;
    ids_found.finish(findings)
}

/// The findings about ids.
struct IdsFound {
    is_whole: bool,
    /// Findings, sorted by position.
    found: Sorter,
    /// Numbers of the calls of work, sorted: first those of work that a call names, then those of work that none names. A call
    /// that names work may have further work, such as nodes of a graph.
    calls: Sorter,
}

impl IdsFound {
    fn add(&mut self, position: PacketPosition, text: &str) -> io::Result<()> {
        let key = (position.offset as i64, position.inner.into());
        self.found.add(key, &[text.as_bytes()])
    }

    fn check(&mut self, one: &OneId) -> io::Result<()> {
        let id = one.id;
        match (one.submitted, one.worked) {
            // Work runs after the call that submitted it began.
            (Some(call), Some(work)) if work.start < call.start => {
                let early = call.start.0 - work.start.0;
                let text =
                    format!("work {id:#x} begins {early} ns before the call that submitted it");
                self.add(work.position, &text)?;
            }
            (Some(call), None) if self.is_whole => {
                let text = format!("a call names {id:#x} as its work, which is not in the trace");
                self.add(call.position, &text)?;
            }
            _ => {}
        }
        if let (Some(waited), None, true) = (one.waited, one.worked, self.is_whole) {
            let text = format!("a call waited for {id:#x}, which is not in the trace");
            self.add(waited.position, &text)?;
        }
        match one.worked {
            Some(work) if self.is_whole && (one.submitted.is_some() || !work.is_free) => {
                let key = (work.call as i64, one.submitted.is_none().into());
                self.calls.add(key, &[&id.to_le_bytes(), &work.to_bytes()])
            }
            _ => Ok(()),
        }
    }

    fn finish(self, findings: &mut Findings) -> io::Result<()> {
        let IdsFound {
            mut found, calls, ..
        } = self;
        let mut named_call = None;
        calls.drain(|(call, without_call), bytes| {
            if without_call == 0 {
                named_call = Some(call);
            } else if named_call != Some(call) {
                let (id, work) = bytes.split_at(8);
                let id = u64::from_le_bytes(id.try_into().expect("8 bytes"));
                let position = NamedWork::from_bytes(work).position;
                let key = (position.offset as i64, position.inner.into());
                let text = format!("no call names the work {id:#x} as its own");
                found.add(key, &[text.as_bytes()])?;
            }
            Ok(())
        })?;
        found.drain(|(offset, inner), text| {
            let position = PacketPosition {
                offset: offset as u64,
                inner: inner as u32,
            };
            findings.add(position, || String::from_utf8_lossy(text).into_owned());
            Ok(())
        })
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
