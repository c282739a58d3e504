//! A trace, told to an [`Observer`] as if it were being made.
//!
//! Of anybody's trace: slices on tracks of threads are calls, render stages are work. Calls are told when they end.
//! Work is tied to its call by the ids that the call names; what waits for its tie takes bounded memory.

use std::collections::HashMap;
use std::io::Read;

use super::check::{our_version, rare};
use super::findings::{Findings, Place};
use super::texts::TextId;
use super::tracks::{TrackId, TrackOf};
use super::{
    AnnotationValue, EventKind, Fields, HostEvent, Input, Known, Outcome, Packet, Text, Visitor,
    WorkEvent, field, read,
};
use crate::record::number_map::NumberMap;
use crate::record::{
    Domain, Kind, Nanos, OperationGroup, ProcessId, SynchronizationType, ThreadId, TransferKind,
    Unfinished,
};
use crate::trace::perfetto::schema::{GpuInfo, PcSamples, TraceStats};
use crate::trace::perfetto::stages::{FILL, NO_ENQUEUE};
use crate::trace::perfetto::{
    Call, DeviceWork, GpuIndex, Missing, Observer, ProcessIndex, WorkKind,
};

/// Most functions and stages that are told apart.
const MAX_LABELS: usize = 1 << 16;
/// Most slices that are open at the same time, on all tracks.
const MAX_OPEN: usize = 1 << 20;
/// Most calls whose work has not come, and most work whose call has not come.
const MAX_WAITING: usize = 1 << 20;
/// Most devices.
const MAX_GPUS: u32 = 1 << 12;
/// Most processes.
const MAX_PROCESSES: usize = 1 << 16;

/// What came of telling a trace.
#[derive(Debug, Default)]
pub struct Replayed {
    /// What came of reading it.
    pub outcome: Outcome,
    /// The version of gputrail that made it; none if it is not ours.
    pub version: Option<String>,
    /// Work that no call in the trace names as its own: when it was enqueued is not known.
    pub untied: u64,
}

/// Reads a trace to its end, and lets `observer` hear of it.
pub fn replay(source: impl Read, observer: &mut dyn Observer) -> Replayed {
    replay_all(Box::new(source), observer)
}

fn replay_all(source: Input<'_>, observer: &mut dyn Observer) -> Replayed {
    let mut replay = Replay {
        observer,
        labels: Labels::default(),
        processes: NumberMap::default(),
        open: NumberMap::default(),
        open_count: 0,
        ranges: NumberMap::default(),
        calls: NumberMap::default(),
        held: NumberMap::default(),
        gpus: 0,
        version: None,
        untied: 0,
    };
    let outcome = read(source, &mut replay);
    replay.finish();
    Replayed {
        outcome,
        version: replay.version,
        untied: replay.untied,
    }
}

/// Names that functions and stages have, by number.
#[derive(Debug, Default)]
struct Labels {
    numbers: NumberMap<(TextId, TextId), u32>,
    /// Those that stand in the packets themselves.
    own: HashMap<(Box<str>, Box<str>), u32>,
    list: Vec<(Domain, Box<str>)>,
}

impl Labels {
    fn number(&mut self, category: Text<'_>, name: Text<'_>) -> u32 {
        let interned = category.id != TextId::OTHER && name.id != TextId::OTHER;
        if interned && let Some(number) = self.numbers.get(&(category.id, name.id)) {
            return *number;
        }
        let own = (category.text.into(), name.text.into());
        let number = match self.own.get(&own) {
            Some(number) => *number,
            None if self.list.len() > MAX_LABELS => return 0,
            None => {
                if self.list.is_empty() {
                    self.list.push((Domain(0), "(others)".into()));
                }
                let domain = Domain::from_name(category.text).unwrap_or(Domain(0));
                self.list.push((domain, name.text.into()));
                self.own.insert(own, self.list.len() as u32 - 1);
                self.list.len() as u32 - 1
            }
        };
        if interned {
            self.numbers.insert((category.id, name.id), number);
        }
        number
    }
}

/// A slice that has not ended.
#[derive(Debug)]
struct Open {
    label: u32,
    start: Nanos,
    error: Option<i32>,
}

/// Work whose call has not come.
#[derive(Debug)]
struct Held {
    process: ProcessIndex,
    gpu: GpuIndex,
    kind: WorkKind,
    label: u32,
    interval: Option<(Nanos, Nanos)>,
    bytes: u64,
    status: i32,
}

/// The call that enqueued a piece of work.
#[derive(Copy, Clone, Debug)]
struct Enqueuing {
    thread: ThreadId,
    start: Nanos,
}

/// A track of ranges: those that were pushed on a thread, or one of ranges that meet no other.
#[derive(Debug)]
struct RangeTrack {
    pid: ProcessId,
    /// None of a process's own.
    thread: ThreadId,
    /// What is open on a process's own.
    open: Option<(u32, Nanos)>,
}

struct Replay<'o> {
    observer: &'o mut dyn Observer,
    labels: Labels,
    processes: NumberMap<ProcessId, ProcessIndex>,
    open: NumberMap<TrackId, (ProcessIndex, ThreadId, Vec<Open>)>,
    open_count: usize,
    ranges: NumberMap<TrackId, RangeTrack>,
    /// When calls began whose work has not come, by the id of the work.
    calls: NumberMap<u64, Enqueuing>,
    held: NumberMap<u64, Held>,
    /// Devices that have been told.
    gpus: u32,
    version: Option<String>,
    untied: u64,
}

impl Visitor for Replay<'_> {
    fn packet(&mut self, packet: &Packet<'_>, known: &Known, _: &mut Findings) {
        let (kind, data) = packet.data;
        match kind {
            field::trace_packet::TRACK_DESCRIPTOR => self.track(data, known),
            field::trace_packet::SYSTEM_INFO => {
                self.version = our_version(packet).or(self.version.take())
            }
            field::trace_packet::GPU_INFO => {
                for (index, gpu) in
                    (0..MAX_GPUS).zip(rare::<GpuInfo>(data).unwrap_or_default().gpus)
                {
                    self.observer
                        .gpu(GpuIndex(index), gpu.name.as_deref().unwrap_or(""));
                    self.gpus = self.gpus.max(index + 1);
                }
            }
            field::trace_packet::PC_SAMPLES => {
                if let Some(samples) = rare::<PcSamples>(data) {
                    self.observer.samples(packet.sequence, &samples);
                }
            }
            field::trace_packet::TRACE_STATS => {
                let stats = rare::<TraceStats>(data).unwrap_or_default();
                let lost = stats.buffer_stats.iter();
                let lost = lost
                    .filter_map(|buffer| buffer.trace_writer_packet_loss)
                    .fold(0, u64::saturating_add);
                if lost > 0 {
                    self.observer.missing(&Missing {
                        process: ProcessIndex(0),
                        thread: ThreadId::NONE,
                        kind: Kind(0),
                        count: lost,
                        first: Nanos(0),
                        last: Nanos(0),
                    });
                }
            }
            _ => {}
        }
    }

    fn host(&mut self, _: Place, event: &HostEvent<'_>, _: &mut Findings) {
        let of = event.described.map(|track| track.of);
        for id in event.submitted() {
            let call = Enqueuing {
                thread: match of {
                    Some(TrackOf::Thread(_, tid)) => tid,
                    _ => ThreadId::NONE,
                },
                start: event.time,
            };
            match self.held.remove(&id) {
                Some(held) => self.tell(&held, Some(call)),
                None if self.calls.len() < MAX_WAITING => drop(self.calls.insert(id, call)),
                None => {}
            }
        }
        let Some(TrackOf::Thread(pid, tid)) = of else {
            self.range(event);
            return;
        };
        match event.kind {
            EventKind::Begin if self.open_count < MAX_OPEN => {
                let label = self.labels.number(event.category, event.name);
                let error = event
                    .annotations
                    .iter()
                    .find_map(|(name, value)| match value {
                        AnnotationValue::Signed(code) if *name == "error" => Some(*code as i32),
                        _ => None,
                    });
                let open = Open {
                    label,
                    start: event.time,
                    error,
                };
                match self.open.get_mut(&event.track) {
                    Some((_, _, list)) => list.push(open),
                    None => {
                        let process = self.process(pid);
                        self.open.insert(event.track, (process, tid, vec![open]));
                    }
                }
                self.open_count += 1;
            }
            EventKind::End => {
                let Some((process, thread, list)) = self.open.get_mut(&event.track) else {
                    return;
                };
                let Some(open) = list.pop() else {
                    return;
                };
                self.open_count -= 1;
                let (process, thread, nested) = (*process, *thread, !list.is_empty());
                self.call(process, thread, &open, Some(event.time), nested);
            }
            _ => {}
        }
    }

    fn work(&mut self, _: Place, event: &WorkEvent<'_>, _: &mut Findings) {
        if event.gpu < MAX_GPUS {
            for gpu in self.gpus..=event.gpu {
                self.observer.gpu(GpuIndex(gpu), "");
            }
            self.gpus = self.gpus.max(event.gpu + 1);
        }
        let ended = event.duration.is_some() && !event.details.unfinished;
        let end = event.start.0.saturating_add(event.duration.unwrap_or(0));
        let held = Held {
            process: self.process(event.process),
            gpu: GpuIndex(event.gpu),
            kind: kind_of(event),
            label: self.labels.number(Text::default(), event.name),
            interval: ended.then_some((event.start, Nanos(end))),
            bytes: event.details.bytes as u64,
            status: event.details.status as i32,
        };
        let Some(id) = event.event else {
            self.untied += 1;
            self.tell(&held, None);
            return;
        };
        if let Some(call) = self.calls.remove(&id) {
            self.tell(&held, Some(call));
            return;
        }
        if self.held.len() >= MAX_WAITING {
            self.tell_held();
        }
        if let Some(other) = self.held.insert(id, held) {
            self.untied += 1;
            self.tell(&other, None);
        }
    }
}

impl Replay<'_> {
    fn process(&mut self, pid: ProcessId) -> ProcessIndex {
        let count = self.processes.len();
        if count >= MAX_PROCESSES {
            return self.processes.get(&pid).copied().unwrap_or(ProcessIndex(0));
        }
        *self
            .processes
            .entry(pid)
            .or_insert(ProcessIndex(count as u32))
    }

    fn call(
        &mut self,
        process: ProcessIndex,
        thread: ThreadId,
        open: &Open,
        end: Option<Nanos>,
        nested: bool,
    ) {
        let (domain, name) = &self.labels.list[open.label as usize];
        self.observer.call(&Call {
            process,
            thread,
            function: open.label,
            name,
            domain: *domain,
            group: OperationGroup::OTHER,
            start: open.start,
            end,
            nested,
            failed: open.error.is_some(),
            return_code: open.error.unwrap_or(0),
        });
    }

    /// Takes in a track's description: those of ranges are called so, and stand below a thread or a process.
    fn track(&mut self, descriptor: &[u8], known: &Known) {
        let id =
            Fields::new(descriptor).find(|field| field.number == field::track_descriptor::UUID);
        let id = id.and_then(|field| field.number()).map(TrackId);
        let Some(track) = id.and_then(|id| known.tracks.get(id)) else {
            return;
        };
        let (pid, thread) = match known.tracks.get(track.parent).map(|parent| parent.of) {
            Some(TrackOf::Thread(pid, tid)) => (pid, tid),
            Some(TrackOf::Process(pid)) => (pid, ThreadId::NONE),
            _ => return,
        };
        let named = match thread {
            ThreadId::NONE => "ranges",
            _ => "markers",
        };
        if track.of == TrackOf::Other && known.texts.get(track.name) == named {
            let open = None;
            let range = RangeTrack { pid, thread, open };
            self.ranges.insert(track.id, range);
        }
    }

    fn range(&mut self, event: &HostEvent<'_>) {
        let Some(range) = self.ranges.get_mut(&event.track) else {
            return;
        };
        let (pid, thread) = (range.pid, range.thread);
        match (event.kind, thread) {
            (EventKind::Begin, ThreadId::NONE) => {
                let label = self.labels.number(Text::default(), event.name);
                range.open = Some((label, event.time));
            }
            (EventKind::End, ThreadId::NONE) => {
                if let Some((label, start)) = range.open.take() {
                    let (_, name) = &self.labels.list[label as usize];
                    self.observer.range(name, start, event.time);
                }
            }
            (EventKind::Begin, _) => {
                let process = self.process(pid);
                let name = event.name.text;
                self.observer
                    .range_begins(process, thread, name, event.time);
            }
            (EventKind::End, _) => {
                let process = self.process(pid);
                self.observer.range_ends(process, thread, event.time);
            }
            _ => {}
        }
    }

    fn tell(&mut self, held: &Held, call: Option<Enqueuing>) {
        let (_, name) = &self.labels.list[held.label as usize];
        // One name may be that of a kernel and of something else.
        let stage = (held.kind as u64) << 32 | u64::from(held.label);
        self.observer.work(&DeviceWork {
            process: held.process,
            gpu: held.gpu,
            kind: held.kind,
            stage,
            name,
            thread: call.map_or(ThreadId::NONE, |call| call.thread),
            enqueued: call.map(|call| call.start),
            interval: held.interval,
            unfinished: Unfinished::NO,
            bytes: held.bytes,
            launch: None,
            status: held.status,
        });
    }

    /// Tells what waits for a call, in the order in which it ran.
    fn tell_held(&mut self) {
        let mut held: Vec<_> = std::mem::take(&mut self.held).into_iter().collect();
        held.sort_by_key(|(id, held)| (held.interval, *id));
        self.untied += held.len() as u64;
        for (_, held) in held {
            self.tell(&held, None);
        }
    }

    fn finish(&mut self) {
        self.tell_held();
        let mut tracks: Vec<_> = std::mem::take(&mut self.open).into_iter().collect();
        tracks.sort_by_key(|(track, _)| *track);
        for (_, (process, thread, open)) in tracks {
            for (depth, open) in open.iter().enumerate() {
                self.call(process, thread, open, None, depth > 0);
            }
        }
    }
}

/// What kind of work it is: traces of ours have it in the category and the names, others mostly too.
fn kind_of(event: &WorkEvent<'_>) -> WorkKind {
    let name = event.name.text;
    if matches!(event.category, Some(1 | 2)) {
        return WorkKind::Kernel;
    }
    if TransferKind::from_name(name).is_some() {
        return WorkKind::Copy;
    }
    if SynchronizationType::from_name(name).is_some() {
        return WorkKind::Synchronization;
    }
    match name {
        FILL => return WorkKind::Set,
        NO_ENQUEUE => return WorkKind::Unknown,
        _ => {}
    }
    let name = name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    match () {
        () if has(&["memset", "fill"]) => WorkKind::Set,
        () if has(&["memcpy", "copy", "transfer"]) => WorkKind::Copy,
        () => WorkKind::Kernel,
    }
}
