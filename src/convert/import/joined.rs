//! Several recordings as one stream.

use std::collections::HashMap;
use std::io;

use super::Counts;
use super::shared::{Alignment, Meetings};
use gputrail_record::{Nanos, ProcessId};
use gputrail_trace::model::{
    Agent, AgentIndex, Call, Consumer, CounterBlock, CounterIndex, CounterValue, EventId, FlowId,
    FlowPoint, Function, FunctionIndex, Instant, Loss, Note, Parent, Process, ProcessIndex, Queue,
    QueueIndex, SamplerIndex, Samples, Slice, SliceEnd, StackFrame, StackIndex, StackSamples,
    SystemClocks, TraceHeader, Track, TrackIndex, TrackKind, Work, WorkKind,
};

/// The indices that recordings have taken.
#[derive(Copy, Clone, Debug, Default)]
pub struct TakenIndices {
    processes: u32,
    agents: u32,
    tracks: u32,
    queues: u32,
    counters: u32,
    functions: u32,
    samplers: u32,
    events: u64,
    flows: u64,
}

impl TakenIndices {
    fn take(count: &mut u32, base: u32, index: u32) {
        *count = (*count).max(base.saturating_add(index).saturating_add(1));
    }
}

/// Passes recordings on to one consumer, one after the other. Each has indices of its own; here they become those of the
/// stream. Times of a recording whose header has the time of day are moved to the clock of the first one.
pub(super) struct Joined<'a> {
    consumer: &'a mut dyn Consumer,
    /// The indices that earlier recordings have taken: this one's count from there.
    base: TakenIndices,
    /// The indices that have been taken so far.
    taken: TakenIndices,
    /// The clocks and the machine of the first recording.
    first: Option<(SystemClocks, String)>,
    /// Whether clocks are aligned by the collective operations that recordings share.
    aligns: bool,
    meetings: Meetings,
    /// Recordings whose clocks were aligned.
    aligned: Vec<(u32, Alignment)>,
    /// Recordings that have no clock in common with the first one.
    without_common_clock: Vec<u32>,
    /// Nanoseconds to add to the times of this recording.
    shift: u64,
    agents: Vec<Agent>,
    /// Functions of this recording under the indices of the stream, where those differ.
    functions: Vec<Option<Function>>,
    /// Buffers for ids under the numbers of the stream.
    events: [Vec<EventId>; 2],
    flows: Vec<FlowPoint>,
    counts: Counts,
    /// Ids of processes, with the rank and the recording of each.
    pids: HashMap<u32, (String, u32)>,
    /// The number of this recording.
    recording: u32,
}

/// The outcome of all recordings.
pub(super) struct JoinedOutcome {
    pub counts: Counts,
    /// The numbers of recordings that have no clock in common with the first one. Their times were passed on as they are.
    pub without_common_clock: Vec<u32>,
    /// The numbers of recordings whose clocks were aligned, and how.
    pub aligned: Vec<(u32, Alignment)>,
}

/// Where ids for processes begin whose own id another recording has given to another process.
const FIRST_PID: u32 = 0x7000_0000;

impl<'a> Joined<'a> {
    /// Recordings for `consumer`.
    pub fn new(consumer: &'a mut dyn Consumer) -> Joined<'a> {
        Joined {
            consumer,
            base: TakenIndices::default(),
            taken: TakenIndices::default(),
            first: None,
            aligns: false,
            meetings: Meetings::default(),
            aligned: Vec::new(),
            without_common_clock: Vec::new(),
            shift: 0,
            agents: Vec::new(),
            functions: Vec::new(),
            events: [Vec::new(), Vec::new()],
            flows: Vec::new(),
            counts: Counts::default(),
            pids: HashMap::new(),
            recording: 0,
        }
    }

    /// Aligns the clocks of recordings by the collective operations that they share.
    pub fn aligning(self, aligns: bool) -> Joined<'a> {
        Joined { aligns, ..self }
    }

    /// A further recording follows.
    pub fn next_recording(&mut self) {
        self.base = self.taken;
        self.recording += 1;
        self.shift = 0;
        self.functions.clear();
    }

    /// All recordings have been passed on.
    pub fn finish_all(self) -> io::Result<JoinedOutcome> {
        if self.first.is_none() {
            self.consumer.begin(&TraceHeader::default())?;
        }
        self.consumer.finish()?;
        Ok(JoinedOutcome {
            counts: self.counts,
            without_common_clock: self.without_common_clock,
            aligned: self.aligned,
        })
    }

    fn time(&self, time: Nanos) -> Nanos {
        Nanos(time.0.wrapping_add(self.shift))
    }

    fn process_index(&self, index: ProcessIndex) -> ProcessIndex {
        ProcessIndex(self.base.processes.wrapping_add(index.0))
    }

    /// The id of a process in the stream. Two ranks on two machines, or in two containers, may have the same id.
    fn pid(&mut self, process: &Process<'_>) -> ProcessId {
        let owner = (process.rank.to_owned(), self.recording);
        let mut pid = process.pid.0;
        let is_other = |known: &(String, u32)| known.1 != owner.1 && known.0 != owner.0;
        if self.pids.get(&pid).is_some_and(is_other) {
            let free = |pid: &u32| !self.pids.contains_key(pid);
            pid = (FIRST_PID..).find(free).unwrap_or(pid);
        }
        self.pids.insert(pid, owner);
        ProcessId(pid)
    }

    fn agent_index(&self, index: AgentIndex) -> AgentIndex {
        match index {
            AgentIndex::UNKNOWN => index,
            AgentIndex(index) => AgentIndex(self.base.agents.wrapping_add(index)),
        }
    }

    fn track_index(&self, index: TrackIndex) -> TrackIndex {
        TrackIndex(self.base.tracks.wrapping_add(index.0))
    }

    fn queue_index(&self, index: QueueIndex) -> QueueIndex {
        QueueIndex(self.base.queues.wrapping_add(index.0))
    }

    fn counter_index(&self, index: CounterIndex) -> CounterIndex {
        CounterIndex(self.base.counters.wrapping_add(index.0))
    }

    /// Whether ids of this recording are those of the stream.
    fn is_first(&self) -> bool {
        self.base.events == 0 && self.base.functions == 0 && self.base.flows == 0
    }

    fn event_id(&mut self, id: EventId) -> EventId {
        let id = self.base.events.wrapping_add(id.0);
        self.taken.events = self.taken.events.max(id.wrapping_add(1));
        EventId(id)
    }

    /// Puts the ids of the stream for `ids` into one of the buffers.
    fn event_ids(&mut self, buffer: usize, ids: &[EventId]) {
        let mut list = std::mem::take(&mut self.events[buffer]);
        list.clear();
        list.extend(ids.iter().map(|id| self.event_id(*id)));
        self.events[buffer] = list;
    }

    /// Puts the flows of the stream for `points` into the buffer.
    fn flow_points(&mut self, points: &[FlowPoint]) {
        self.flows.clear();
        for point in points {
            let flow = self.base.flows.wrapping_add(point.flow.0);
            self.flows.push(FlowPoint {
                flow: FlowId(flow),
                ..*point
            });
        }
    }
}

impl Consumer for Joined<'_> {
    fn wants_calls(&self) -> bool {
        self.consumer.wants_calls()
    }

    fn begin(&mut self, header: &TraceHeader) -> io::Result<()> {
        let own = header.clocks;
        let Some((first, host)) = &self.first else {
            self.first = Some((own, header.machine.host.clone()));
            self.meetings.add(&header.shared, 0);
            return self.consumer.begin(header);
        };
        let mut has_common_clock = true;
        match (first.realtime.0, own.realtime.0) {
            // Both are in the clock of one machine, as far as the files tell.
            (0, 0) => {
                let hosts = [host, &header.machine.host];
                has_common_clock = hosts[0] == hosts[1] || hosts.iter().any(|host| host.is_empty());
            }
            (0, _) | (_, 0) => has_common_clock = false,
            // From the clock of this recording to the time of day, and from there to the first clock.
            (of_first, realtime) => {
                self.shift = realtime
                    .wrapping_sub(own.boottime.0)
                    .wrapping_sub(of_first)
                    .wrapping_add(first.boottime.0);
            }
        }
        let alignment = self.meetings.align(&header.shared, self.shift);
        if let Some(alignment) = alignment.filter(|_| self.aligns) {
            self.shift = self.shift.wrapping_add_signed(alignment.moved);
            self.aligned.push((self.recording, alignment));
        } else if !has_common_clock {
            self.without_common_clock.push(self.recording);
        }
        self.meetings.add(&header.shared, self.shift);
        Ok(())
    }

    fn clocks(&mut self, clocks: &SystemClocks) -> io::Result<()> {
        self.consumer.clocks(&SystemClocks {
            boottime: self.time(clocks.boottime),
            ..*clocks
        })
    }

    fn attributes(&mut self, attributes: &[(String, String)]) -> io::Result<()> {
        self.consumer.attributes(attributes)
    }

    fn agents(&mut self, first: AgentIndex, agents: &[Agent]) -> io::Result<()> {
        // Viewers number agents by their places in one list.
        self.agents
            .truncate(self.base.agents as usize + first.0 as usize);
        self.agents.extend_from_slice(agents);
        self.taken.agents = self.agents.len() as u32;
        self.consumer.agents(AgentIndex(0), &self.agents)
    }

    fn process(&mut self, index: ProcessIndex, process: &Process<'_>) -> io::Result<()> {
        TakenIndices::take(&mut self.taken.processes, self.base.processes, index.0);
        self.counts.processes += 1;
        let process = Process {
            pid: self.pid(process),
            ..*process
        };
        self.consumer.process(self.process_index(index), &process)
    }

    fn track(&mut self, index: TrackIndex, track: &Track<'_>) -> io::Result<()> {
        TakenIndices::take(&mut self.taken.tracks, self.base.tracks, index.0);
        let parent = match track.parent {
            Parent::Trace => Parent::Trace,
            Parent::Process(process) => Parent::Process(self.process_index(process)),
            Parent::Track(parent) => Parent::Track(self.track_index(parent)),
        };
        let kind = match track.kind {
            TrackKind::Thread(process, thread) => {
                TrackKind::Thread(self.process_index(process), thread)
            }
            TrackKind::ThreadRanges(process, thread) => {
                TrackKind::ThreadRanges(self.process_index(process), thread)
            }
            kind => kind,
        };
        let track = Track {
            parent,
            kind,
            ..*track
        };
        self.consumer.track(self.track_index(index), &track)
    }

    fn queue(&mut self, index: QueueIndex, queue: &Queue<'_>) -> io::Result<()> {
        TakenIndices::take(&mut self.taken.queues, self.base.queues, index.0);
        let queue = Queue {
            process: self.process_index(queue.process),
            agent: self.agent_index(queue.agent),
            ..*queue
        };
        self.consumer.queue(self.queue_index(index), &queue)
    }

    fn counters(&mut self, index: CounterIndex, block: &CounterBlock) -> io::Result<()> {
        TakenIndices::take(&mut self.taken.counters, self.base.counters, index.0);
        let block = CounterBlock {
            process: self.process_index(block.process),
            agent: self.agent_index(block.agent),
            ..block.clone()
        };
        self.consumer.counters(self.counter_index(index), &block)
    }

    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        self.counts.calls += 1;
        let own = call.function.index.0;
        TakenIndices::take(&mut self.taken.functions, self.base.functions, own);
        self.event_ids(0, call.submitted);
        self.event_ids(1, call.waited);
        self.flow_points(call.flows);
        if !self.is_first() {
            let place = own as usize;
            if place >= self.functions.len() {
                self.functions.resize(place + 1, None);
            }
            self.functions[place].get_or_insert_with(|| Function {
                index: FunctionIndex(self.base.functions.wrapping_add(own)),
                ..call.function.clone()
            });
        }
        let function = self.functions.get(own as usize).and_then(Option::as_ref);
        let call = Call {
            process: self.process_index(call.process),
            track: self.track_index(call.track),
            function: function.unwrap_or(call.function),
            start: self.time(call.start),
            end: call.end.map(|end| self.time(end)),
            submitted: &self.events[0],
            waited: &self.events[1],
            flows: &self.flows,
            ..*call
        };
        self.consumer.call(&call)
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        self.counts.slices += 1;
        self.flow_points(slice.flows);
        let slice = Slice {
            track: self.track_index(slice.track),
            start: self.time(slice.start),
            end: slice.end.map(|end| self.time(end)),
            flows: &self.flows,
            ..*slice
        };
        self.consumer.slice(&slice)
    }

    fn end(&mut self, track: TrackIndex, end: Nanos) -> io::Result<()> {
        self.consumer.end(self.track_index(track), self.time(end))
    }

    fn end_slice(&mut self, end: &SliceEnd<'_>) -> io::Result<()> {
        self.flow_points(end.flows);
        let end = SliceEnd {
            track: self.track_index(end.track),
            time: self.time(end.time),
            flows: &self.flows,
            ..*end
        };
        self.consumer.end_slice(&end)
    }

    fn instant(&mut self, instant: &Instant<'_>) -> io::Result<()> {
        self.counts.instants += 1;
        self.flow_points(instant.flows);
        let instant = Instant {
            track: self.track_index(instant.track),
            time: self.time(instant.time),
            flows: &self.flows,
            ..*instant
        };
        self.consumer.instant(&instant)
    }

    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        match work.stage.kind {
            WorkKind::Kernel => self.counts.kernels += 1,
            WorkKind::Copy => self.counts.copies += 1,
            WorkKind::Set => self.counts.sets += 1,
            WorkKind::Synchronization | WorkKind::Graph | WorkKind::Unknown => {
                self.counts.other_work += 1;
            }
        }
        self.event_ids(0, work.waits);
        let event = work.event.map(|event| self.event_id(event));
        let time = |time: Option<Nanos>| time.map(|time| self.time(time));
        let work = Work {
            process: self.process_index(work.process),
            event,
            agent: self.agent_index(work.agent),
            queue: self.queue_index(work.queue),
            enqueued: time(work.enqueued),
            queued: time(work.queued),
            submitted: time(work.submitted),
            interval: work
                .interval
                .map(|(start, end)| (self.time(start), self.time(end))),
            start: time(work.start),
            waits: &self.events[0],
            ..*work
        };
        self.consumer.work(&work)
    }

    fn value(&mut self, track: TrackIndex, time: Nanos, value: CounterValue) -> io::Result<()> {
        self.counts.values += 1;
        self.consumer
            .value(self.track_index(track), self.time(time), value)
    }

    fn counter_values(
        &mut self,
        block: CounterIndex,
        time: Nanos,
        values: &[CounterValue],
    ) -> io::Result<()> {
        self.counts.values += values.len() as u64;
        self.consumer
            .counter_values(self.counter_index(block), self.time(time), values)
    }

    fn derived_value(
        &mut self,
        track: TrackIndex,
        time: Nanos,
        value: CounterValue,
    ) -> io::Result<()> {
        self.consumer
            .derived_value(self.track_index(track), self.time(time), value)
    }

    fn derived_values(
        &mut self,
        block: CounterIndex,
        time: Nanos,
        values: &[CounterValue],
    ) -> io::Result<()> {
        self.consumer
            .derived_values(self.counter_index(block), self.time(time), values)
    }

    fn samples(&mut self, samples: &Samples) -> io::Result<()> {
        let base = self.base.samplers;
        TakenIndices::take(&mut self.taken.samplers, base, samples.sampler.0);
        let counted = samples.counts.iter().flat_map(|count| &count.outcomes);
        self.counts.samples += counted.map(|outcome| outcome.samples).sum::<u64>();
        let mut samples = samples.clone();
        samples.sampler = SamplerIndex(base.wrapping_add(samples.sampler.0));
        samples.process = samples.process.map(|process| self.process_index(process));
        for sample in &mut samples.raw {
            sample.time = self.time(sample.time);
        }
        self.consumer.samples(&samples)
    }

    fn stack(
        &mut self,
        track: TrackIndex,
        stack: StackIndex,
        frames: &[StackFrame],
    ) -> io::Result<()> {
        self.consumer.stack(self.track_index(track), stack, frames)
    }

    fn stack_samples(&mut self, samples: &StackSamples<'_>) -> io::Result<()> {
        let moved: Vec<_> = samples
            .samples
            .iter()
            .map(|(time, stack)| (self.time(*time), *stack))
            .collect();
        self.consumer.stack_samples(&StackSamples {
            track: self.track_index(samples.track),
            samples: &moved,
        })
    }

    fn loss(&mut self, loss: &Loss) -> io::Result<()> {
        self.consumer.loss(&Loss {
            process: loss.process.map(|process| self.process_index(process)),
            track: loss.track.map(|track| self.track_index(track)),
            first: self.time(loss.first),
            last: self.time(loss.last),
            time: self.time(loss.time),
            ..*loss
        })
    }

    fn note(&mut self, note: &Note<'_>) -> io::Result<()> {
        self.consumer.note(&Note {
            process: self.process_index(note.process),
            time: self.time(note.time),
            ..*note
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.consumer.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        // Recordings end here; the stream ends with the last of them.
        self.taken.flows = self.taken.flows.wrapping_add(0x9e37_79b9_7f4a_7c15);
        Ok(())
    }
}
