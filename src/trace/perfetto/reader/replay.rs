//! Perfetto traces as producers of the [model](crate::trace::model).
//!
//! This works for all traces: slices on tracks of threads are calls, render stages are work. Work is joined with its
//! call by the ids that the call names; work and calls that wait for each other take bounded memory.

use std::collections::HashMap;
use std::io::{self, Read};

use super::check::{our_version, rare};
use super::findings::{Findings, PacketPosition};
use super::texts::TextId;
use super::tracks::{TrackId, TrackOf};
use super::{
    AnnotationValue, EventKind, Fields, HostEvent, Input, Known, Outcome, Packet, Text, Visitor,
    WorkEvent, field, read,
};
use crate::record::number_map::NumberMap;
use crate::record::{
    ContextId, CorrelationId, Domain, ExternalId, Kind, Nanos, OperationGroup, ProcessId,
    SynchronizationType, ThreadId, TransferKind,
};
use crate::trace::model::nesting::{Nested, Nesting, Step};
use crate::trace::model::{
    self, Agent, AgentIndex, Call, Consumer, EventId, Function, FunctionIndex, Loss, Parent,
    Process, ProcessIndex, Producer, Queue, QueueIndex, Resources, SamplerIndex, Slice, Stage,
    StageId, Stream, TraceHeader, Track, TrackIndex, TrackKind, Work, WorkKind, category,
};
use crate::trace::perfetto::samples;
use crate::trace::perfetto::schema::{GpuInfo, PcSamples, TraceStats, gpu_info};

/// Maximum number of functions and stages that are distinguished.
const MAX_LABELS: usize = 1 << 16;
/// Maximum number of slices that are open, and of slices that wait for the end of their outermost one, on all tracks.
const MAX_OPEN: usize = 1 << 20;
/// Maximum number of calls whose work has not come, and of pieces of work whose call has not come.
const MAX_WAITING: usize = 1 << 20;
/// Maximum number of devices.
const MAX_GPUS: u32 = 1 << 12;
/// Maximum number of processes, and of queues.
const MAX_PROCESSES: usize = 1 << 16;
const MAX_QUEUES: usize = 1 << 16;

/// The outcome of reading a trace.
#[derive(Debug, Default)]
pub struct Replayed {
    /// Its findings and sizes.
    pub outcome: Outcome,
    /// The version of gputrail that made it; `None` for other traces.
    pub version: Option<String>,
    /// Number of pieces of work that no call in the trace names: their enqueue time is unknown.
    pub untied: u64,
}

/// A producer that reads a trace to its end.
pub struct Replay<'a> {
    source: Input<'a>,
}

impl<'a> Replay<'a> {
    /// A producer of the trace in `source`.
    pub fn new(source: impl Read + 'a) -> Replay<'a> {
        Replay {
            source: Box::new(source),
        }
    }
}

impl Producer for Replay<'_> {
    type Outcome = Replayed;

    fn produce(self, consumer: &mut dyn Consumer) -> io::Result<Replayed> {
        consumer.begin(&TraceHeader::default())?;
        let mut replaying = Replaying {
            wants_calls: consumer.wants_calls(),
            stream: Stream::new(consumer),
            failed: None,
            labels: Labels::default(),
            processes: NumberMap::default(),
            queues: NumberMap::default(),
            threads: NumberMap::default(),
            open: 0,
            waiting: 0,
            begun: 0,
            ranges: NumberMap::default(),
            calls: NumberMap::default(),
            held: NumberMap::default(),
            agents: 0,
            version: None,
            untied: 0,
        };
        let outcome = read(self.source, &mut replaying);
        replaying.guard(Replaying::finish);
        match replaying.failed {
            Some(error) => Err(error),
            None => Ok(Replayed {
                outcome,
                version: replaying.version,
                untied: replaying.untied,
            }),
        }
    }
}

/// Names of functions, stages and queues, by number.
#[derive(Debug, Default)]
struct Labels {
    numbers: NumberMap<(TextId, TextId), u32>,
    /// Numbers of names that are written in full in packets.
    own: HashMap<(Box<str>, Box<str>), u32>,
    list: Vec<Function>,
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
                    self.add(Domain(0), "(others)");
                }
                let domain = Domain::from_name(category.text).unwrap_or(Domain(0));
                self.add(domain, name.text);
                self.own.insert(own, self.list.len() as u32 - 1);
                self.list.len() as u32 - 1
            }
        };
        if interned {
            self.numbers.insert((category.id, name.id), number);
        }
        number
    }

    fn add(&mut self, domain: Domain, name: &str) {
        self.list.push(Function {
            index: FunctionIndex(self.list.len() as u32),
            name: name.into(),
            domain,
            category: None,
            group: OperationGroup::OTHER,
            parameters: Vec::new(),
        });
    }

    fn name(&self, number: u32) -> &str {
        &self.list[number as usize].name
    }
}

/// A call whose end has come or will not come.
#[derive(Debug)]
struct Ended {
    /// Number of the slice, in the order of the begins.
    number: u64,
    /// Number of the enclosing slice; 0 for an outermost one.
    parent: u64,
    label: u32,
    start: Nanos,
    end: Option<Nanos>,
    error: Option<i32>,
}

impl Nested for Ended {
    fn id(&self) -> u64 {
        self.number
    }

    fn parent(&self) -> u64 {
        self.parent
    }

    fn start(&self) -> Nanos {
        self.start
    }

    fn end(&self) -> Option<Nanos> {
        self.end
    }
}

/// A thread.
#[derive(Debug)]
struct Thread {
    place: ThreadPlace,
    open: Vec<Ended>,
    nesting: Nesting<Ended>,
}

/// The indices of a thread in the stream.
#[derive(Copy, Clone, Debug)]
struct ThreadPlace {
    process: ProcessIndex,
    thread: ThreadId,
    track: TrackIndex,
}

impl ThreadPlace {
    fn step(
        self,
        consumer: &mut dyn Consumer,
        labels: &Labels,
        step: Step<'_, Ended>,
    ) -> io::Result<()> {
        match step {
            Step::Begin(slice) => self.pass_on(consumer, labels, slice, slice.end.is_some()),
            Step::End(time) => consumer.end(self.track, time),
        }
    }

    fn pass_on(
        self,
        consumer: &mut dyn Consumer,
        labels: &Labels,
        slice: &Ended,
        open: bool,
    ) -> io::Result<()> {
        consumer.call(&Call {
            process: self.process,
            thread: self.thread,
            track: self.track,
            function: &labels.list[slice.label as usize],
            start: slice.start,
            end: slice.end,
            open,
            nested: slice.parent != 0,
            correlation: CorrelationId::NONE,
            external: ExternalId::NONE,
            error: slice.error,
            submitted: &[],
            waited: &[],
            arguments: &[],
            flows: &[],
        })
    }
}

/// Work whose call has not come.
#[derive(Debug)]
struct Held {
    event: Option<EventId>,
    process: ProcessIndex,
    agent: AgentIndex,
    queue: QueueIndex,
    kind: WorkKind,
    label: u32,
    start: Nanos,
    duration: Option<u64>,
    ended: bool,
    bytes: u64,
    status: i32,
}

impl Held {
    fn interval(&self) -> Option<(Nanos, Nanos)> {
        let duration = self.duration.filter(|_| self.ended)?;
        Some((self.start, Nanos(self.start.0.saturating_add(duration))))
    }
}

/// The call that enqueued a piece of work.
#[derive(Copy, Clone, Debug)]
struct Enqueuing {
    thread: ThreadId,
    start: Nanos,
}

/// A track of ranges: those pushed by a thread, or ranges of a process that do not overlap.
#[derive(Debug)]
struct RangeTrack {
    pid: ProcessId,
    /// The thread; none for ranges of a process.
    thread: ThreadId,
    /// Its index, after its first range.
    track: Option<TrackIndex>,
    /// The open range of a process.
    open: Option<(u32, Nanos)>,
}

struct Replaying<'a> {
    stream: Stream<'a>,
    wants_calls: bool,
    /// The error of the consumer: nothing more is passed on after it.
    failed: Option<io::Error>,
    labels: Labels,
    processes: NumberMap<ProcessId, ProcessIndex>,
    queues: NumberMap<(ProcessIndex, AgentIndex, u32), QueueIndex>,
    threads: NumberMap<TrackId, Thread>,
    /// Number of open slices of all threads.
    open: usize,
    /// Number of slices of all threads that wait for the end of their outermost one.
    waiting: usize,
    /// Number of slices that have begun.
    begun: u64,
    ranges: NumberMap<TrackId, RangeTrack>,
    /// Calls whose work has not come, by the id of the work.
    calls: NumberMap<u64, Enqueuing>,
    held: NumberMap<u64, Held>,
    /// Number of declared agents.
    agents: u32,
    version: Option<String>,
    untied: u64,
}

impl Visitor for Replaying<'_> {
    fn packet(&mut self, packet: &Packet<'_>, known: &Known, _: &mut Findings) {
        self.guard(|replaying| replaying.read_packet(packet, known));
    }

    fn host(&mut self, _: PacketPosition, event: &HostEvent<'_>, _: &mut Findings) {
        self.guard(|replaying| replaying.read_event(event));
    }

    fn work(&mut self, _: PacketPosition, event: &WorkEvent<'_>, _: &mut Findings) {
        self.guard(|replaying| replaying.read_work(event));
    }
}

impl Replaying<'_> {
    /// Runs `pass_on`, unless the consumer has failed.
    #[inline]
    fn guard(&mut self, pass_on: impl FnOnce(&mut Self) -> io::Result<()>) {
        if self.failed.is_none()
            && let Err(error) = pass_on(self)
        {
            self.failed = Some(error);
        }
    }

    fn read_packet(&mut self, packet: &Packet<'_>, known: &Known) -> io::Result<()> {
        let (kind, data) = packet.data;
        match kind {
            field::trace_packet::TRACK_DESCRIPTOR => self.track(data, known),
            field::trace_packet::SYSTEM_INFO => {
                self.version = our_version(packet).or(self.version.take());
            }
            field::trace_packet::GPU_INFO => {
                let gpus = rare::<GpuInfo>(data).unwrap_or_default().gpus;
                let gpus = (0..MAX_GPUS).zip(gpus);
                let agents: Vec<_> = gpus
                    .map(|(index, gpu)| Agent {
                        title: title(&gpu, index),
                        name: gpu.name.unwrap_or_default(),
                        ..Agent::default()
                    })
                    .collect();
                self.agents = self.agents.max(agents.len() as u32);
                return self.stream.consumer.agents(AgentIndex(0), &agents);
            }
            field::trace_packet::PC_SAMPLES => {
                if let Some(message) = rare::<PcSamples>(data) {
                    let mut samples = samples::samples(&message);
                    samples.sampler = SamplerIndex(packet.sequence);
                    if let Some(pid) = message.pid {
                        samples.process = Some(self.process(ProcessId(pid as u32))?);
                    }
                    return self.stream.consumer.samples(&samples);
                }
            }
            field::trace_packet::TRACE_STATS => {
                let stats = rare::<TraceStats>(data).unwrap_or_default();
                let lost = stats.buffer_stats.iter();
                let count = lost
                    .filter_map(|buffer| buffer.trace_writer_packet_loss)
                    .fold(0, u64::saturating_add);
                if count > 0 {
                    return self.stream.consumer.loss(&Loss {
                        process: None,
                        thread: ThreadId::NONE,
                        track: None,
                        kind: Kind(0),
                        count,
                        first: Nanos(0),
                        last: Nanos(0),
                        time: Nanos(0),
                    });
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn read_event(&mut self, event: &HostEvent<'_>) -> io::Result<()> {
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
                Some(held) => self.pass_on_work(&held, Some(call))?,
                None if self.calls.len() < MAX_WAITING => drop(self.calls.insert(id, call)),
                None => {}
            }
        }
        let Some(TrackOf::Thread(pid, tid)) = of else {
            return self.range(event);
        };
        if !self.wants_calls {
            return Ok(());
        }
        match event.kind {
            EventKind::Begin if self.open < MAX_OPEN => {
                let error = event
                    .annotations
                    .iter()
                    .find_map(|(name, value)| match value {
                        AnnotationValue::Signed(code) if *name == "error" => Some(*code as i32),
                        _ => None,
                    });
                let label = self.labels.number(event.category, event.name);
                if !self.threads.contains_key(&event.track) {
                    self.add_thread(event.track, pid, tid)?;
                }
                self.begun += 1;
                self.open += 1;
                if let Some(thread) = self.threads.get_mut(&event.track) {
                    thread.open.push(Ended {
                        number: self.begun,
                        parent: thread.open.last().map_or(0, |outer| outer.number),
                        label,
                        start: event.time,
                        end: None,
                        error,
                    });
                }
                Ok(())
            }
            EventKind::End => {
                let Some(thread) = self.threads.get_mut(&event.track) else {
                    return Ok(());
                };
                let Some(mut slice) = thread.open.pop() else {
                    return Ok(());
                };
                self.open -= 1;
                slice.end = Some(event.time);
                self.ended(event.track, slice)
            }
            _ => Ok(()),
        }
    }

    fn add_thread(&mut self, track: TrackId, pid: ProcessId, tid: ThreadId) -> io::Result<()> {
        let process = self.process(pid)?;
        let thread = Thread {
            place: ThreadPlace {
                process,
                thread: tid,
                track: self.stream.new_track(&Track {
                    parent: Parent::Process(process),
                    name: "",
                    kind: TrackKind::Thread(process, tid),
                    order: None,
                })?,
            },
            open: Vec::new(),
            nesting: Nesting::default(),
        };
        self.threads.insert(track, thread);
        Ok(())
    }

    /// Passes on an ended slice of a thread, together with its outermost one.
    fn ended(&mut self, track: TrackId, slice: Ended) -> io::Result<()> {
        let Some(thread) = self.threads.get_mut(&track) else {
            return Ok(());
        };
        let place = thread.place;
        let (consumer, labels) = (&mut *self.stream.consumer, &self.labels);
        if slice.parent == 0 && thread.nesting.is_empty() {
            return place.pass_on(consumer, labels, &slice, false);
        }
        let before = thread.nesting.len();
        thread
            .nesting
            .add(slice, |step| place.step(consumer, labels, step))?;
        self.waiting = (self.waiting + thread.nesting.len()).saturating_sub(before);
        if self.waiting >= MAX_OPEN {
            self.waiting = 0;
            for thread in self.threads.values_mut() {
                let place = thread.place;
                thread
                    .nesting
                    .finish(|step| place.step(consumer, labels, step))?;
            }
        }
        Ok(())
    }

    fn read_work(&mut self, event: &WorkEvent<'_>) -> io::Result<()> {
        if event.gpu < MAX_GPUS && event.gpu >= self.agents {
            let missing = (self.agents..=event.gpu).map(|index| Agent {
                title: model::agent_title("", AgentIndex(index)),
                ..Agent::default()
            });
            let missing: Vec<_> = missing.collect();
            self.stream
                .consumer
                .agents(AgentIndex(self.agents), &missing)?;
            self.agents = event.gpu + 1;
        }
        let (process, agent) = (self.process(event.process)?, AgentIndex(event.gpu));
        let held = Held {
            event: event.event.map(EventId),
            process,
            agent,
            queue: self.queue(process, agent, event.queue)?,
            kind: kind_of(event),
            label: self.labels.number(Text::default(), event.name),
            start: event.start,
            duration: event.duration,
            ended: event.duration.is_some() && !event.details.unfinished,
            bytes: event.details.bytes as u64,
            status: event.details.status as i32,
        };
        let Some(id) = event.event else {
            self.untied += 1;
            return self.pass_on_work(&held, None);
        };
        if let Some(call) = self.calls.remove(&id) {
            return self.pass_on_work(&held, Some(call));
        }
        if self.held.len() >= MAX_WAITING {
            self.pass_on_held()?;
        }
        if let Some(other) = self.held.insert(id, held) {
            self.untied += 1;
            self.pass_on_work(&other, None)?;
        }
        Ok(())
    }

    fn process(&mut self, pid: ProcessId) -> io::Result<ProcessIndex> {
        if let Some(process) = self.processes.get(&pid) {
            return Ok(*process);
        }
        let count = self.processes.len();
        if count >= MAX_PROCESSES {
            return Ok(ProcessIndex(0));
        }
        let process = ProcessIndex(count as u32);
        self.processes.insert(pid, process);
        self.stream.consumer.process(
            process,
            &Process {
                pid,
                name: "",
                rank: "",
                command: &[],
                order: None,
            },
        )?;
        Ok(process)
    }

    fn queue(
        &mut self,
        process: ProcessIndex,
        agent: AgentIndex,
        name: Text<'_>,
    ) -> io::Result<QueueIndex> {
        let key = (process, agent, self.labels.number(Text::default(), name));
        if let Some(queue) = self.queues.get(&key) {
            return Ok(*queue);
        }
        if self.queues.len() >= MAX_QUEUES {
            return Ok(QueueIndex(0));
        }
        let queue = self.stream.new_queue(&Queue {
            process,
            agent,
            context: ContextId::NONE,
            domain: Domain(0),
            name: name.text,
            out_of_order: false,
        })?;
        self.queues.insert(key, queue);
        Ok(queue)
    }

    /// Reads a track's description: tracks of ranges have names of their own, and are below a thread or a process.
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
        let rest = known.texts.get(track.name).strip_prefix(named);
        let is_named = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(": "));
        if track.of == TrackOf::Other && is_named {
            let range = RangeTrack {
                pid,
                thread,
                track: None,
                open: None,
            };
            self.ranges.insert(track.id, range);
        }
    }

    fn range(&mut self, event: &HostEvent<'_>) -> io::Result<()> {
        let Some(range) = self.ranges.get(&event.track) else {
            return Ok(());
        };
        let (pid, thread, known) = (range.pid, range.thread, range.track);
        let track = match known {
            Some(track) => track,
            None => {
                let process = self.process(pid)?;
                let kind = match thread {
                    ThreadId::NONE => TrackKind::Ranges,
                    thread => TrackKind::ThreadRanges(process, thread),
                };
                self.stream.new_track(&Track {
                    parent: Parent::Process(process),
                    name: "",
                    kind,
                    order: None,
                })?
            }
        };
        let Some(range) = self.ranges.get_mut(&event.track) else {
            return Ok(());
        };
        range.track = Some(track);
        let mut slice = Slice {
            track,
            name: event.name.text,
            category: category::MARKER,
            start: event.time,
            end: None,
            open: true,
            correlation: CorrelationId::NONE,
            arguments: &[],
            flows: &[],
        };
        let consumer = &mut *self.stream.consumer;
        match (event.kind, thread) {
            (EventKind::Begin, ThreadId::NONE) => {
                let label = self.labels.number(Text::default(), event.name);
                range.open = Some((label, event.time));
            }
            (EventKind::End, ThreadId::NONE) => {
                if let Some((label, start)) = range.open.take() {
                    slice.name = self.labels.name(label);
                    (slice.start, slice.end, slice.open) = (start, Some(event.time), false);
                    return consumer.slice(&slice);
                }
            }
            (EventKind::Begin, _) => return consumer.slice(&slice),
            (EventKind::End, _) => return consumer.end(track, event.time),
            _ => {}
        }
        Ok(())
    }

    fn pass_on_work(&mut self, held: &Held, call: Option<Enqueuing>) -> io::Result<()> {
        self.stream.consumer.work(&Work {
            process: held.process,
            thread: call.map_or(ThreadId::NONE, |call| call.thread),
            correlation: CorrelationId::NONE,
            event: held.event,
            agent: held.agent,
            queue: held.queue,
            stream: 0,
            stage: Stage {
                // A kernel and other work may have the same name.
                id: StageId((held.kind as u64) << 32 | u64::from(held.label)),
                kind: held.kind,
                name: self.labels.name(held.label),
                demangled: "",
                architecture: "",
            },
            enqueued: call.map(|call| call.start),
            queued: None,
            submitted: None,
            interval: held.interval(),
            start: Some(held.start),
            duration: held.duration,
            unfinished: (!held.ended).then_some("not finished"),
            launch: None,
            resources: Resources::default(),
            bytes: held.bytes,
            status: held.status,
            waits: &[],
            samples: None,
            arguments: &[],
        })
    }

    /// Passes on the work that waits for a call, in the order in which it ran.
    fn pass_on_held(&mut self) -> io::Result<()> {
        let mut held: Vec<_> = std::mem::take(&mut self.held).into_values().collect();
        held.sort_by_key(|held| (held.interval(), held.event));
        self.untied += held.len() as u64;
        held.iter()
            .try_for_each(|held| self.pass_on_work(held, None))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.pass_on_held()?;
        let mut threads: Vec<_> = std::mem::take(&mut self.threads).into_iter().collect();
        threads.sort_by_key(|(track, _)| *track);
        let (consumer, labels) = (&mut *self.stream.consumer, &self.labels);
        for (_, mut thread) in threads {
            let place = thread.place;
            // The outermost slice comes last, after all slices inside it.
            while let Some(slice) = thread.open.pop() {
                thread
                    .nesting
                    .add(slice, |step| place.step(consumer, labels, step))?;
            }
            thread
                .nesting
                .finish(|step| place.step(consumer, labels, step))?;
        }
        consumer.finish()
    }
}

/// The kind of work, from its category and name: so our traces have it, and most others.
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
        WorkKind::FILL => return WorkKind::Set,
        WorkKind::NO_ENQUEUE => return WorkKind::Unknown,
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

/// The short name of a device of the trace.
pub(super) fn title(gpu: &gpu_info::Gpu, index: u32) -> String {
    let mut more = gpu.extra_info.iter();
    let kind = more.find(|entry| entry.key.as_deref() == Some("kind"));
    let kind = kind.and_then(|entry| entry.value.as_deref());
    model::agent_title(kind.unwrap_or_default(), AgentIndex(index))
}
