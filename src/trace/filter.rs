//! A part of a stream: between two times, of some processes, devices, streams, names or categories.
//!
//! [`Filter`] stands between a producer and a consumer. A criterion decides on the events that have the property: the stream
//! of an API call or the category of a counter is no reason to leave it out. Counts of samples and work that never ran have no
//! time: they belong to the part that begins with the trace.
//!
//! A slice whose end is not known when it begins, and that begins before the interval, waits: it is passed on with the first
//! event of its track or call of its thread that is kept, and left out if it ends before the interval.

use std::collections::HashMap;
use std::io;

use super::arguments::StoredArguments;
use super::selection::{GlobPattern, Selection, WantedValues};
use crate::model::{
    Agent, AgentIndex, Call, Consumer, CounterBlock, CounterIndex, CounterValue, EventArgument,
    FlowPoint, Instant, Loss, Note, Parent, Process, ProcessIndex, Queue, QueueIndex, SamplerIndex,
    Samples, Slice, SliceEnd, StackFrame, StackIndex, StackSamples, SystemClocks, TraceHeader,
    Track, TrackIndex, TrackKind, Work,
};
use gputrail_record::{AgentId, CorrelationId, KernelId, Nanos, ThreadId};

/// Maximum number of slices that wait for their ends. Further ones are passed on.
const MAX_WAITING: usize = 1 << 16;
/// Maximum number of bytes of arguments and names of slices that wait.
const MAX_WAITING_BYTES: usize = 64 << 20;

/// Passes a selection of a stream on.
pub struct Filter<'a> {
    consumer: &'a mut dyn Consumer,
    selection: Selection,
    processes: WantedValues<GlobPattern>,
    devices: WantedValues<u32>,
    streams: WantedValues<u32>,
    names: WantedValues<GlobPattern>,
    categories: WantedValues<GlobPattern>,
    /// The interval that is kept.
    interval: (u64, u64),
    /// Whether each process is kept.
    kept_processes: Vec<bool>,
    tracks: Vec<TrackState>,
    /// Tracks with the pushed ranges of a thread among which slices wait.
    waiting_ranges: HashMap<(ProcessIndex, ThreadId), Vec<TrackIndex>>,
    /// Number of slices that wait for their ends, and their bytes.
    waiting: usize,
    waiting_bytes: usize,
    /// Short names of the agents.
    titles: Vec<String>,
    /// Agents of blocks of counters.
    blocks: Vec<(ProcessIndex, AgentIndex)>,
    samplers: HashMap<SamplerIndex, KeptSampler>,
    /// Whether each stack of samples is kept, where devices or names are selected.
    stacks: HashMap<(TrackIndex, StackIndex), bool>,
    left_out: u64,
    kept: u64,
}

/// A track of the stream.
#[derive(Debug, Default)]
struct TrackState {
    /// Whether its process is kept.
    keeps_process: bool,
    /// Whether its name is kept, of counters.
    keeps_name: bool,
    /// The thread whose pushed ranges it has.
    thread: Option<(ProcessIndex, ThreadId)>,
    /// Its open slices, outermost first.
    open: Vec<OpenSlice>,
    /// Number of slices among them that wait.
    waiting: usize,
}

/// An open call or slice.
#[derive(Debug)]
enum OpenSlice {
    Kept,
    LeftOut,
    /// It began before the interval, and is kept unless it ends before the interval, too.
    Waiting(Box<WaitingSlice>),
}

impl OpenSlice {
    fn decided(keep: bool) -> OpenSlice {
        if keep {
            OpenSlice::Kept
        } else {
            OpenSlice::LeftOut
        }
    }
}

/// A slice that waits for its end.
#[derive(Debug)]
struct WaitingSlice {
    name: Box<str>,
    category: Box<str>,
    start: Nanos,
    correlation: CorrelationId,
    arguments: StoredArguments,
    flows: Vec<FlowPoint>,
}

impl WaitingSlice {
    fn new(slice: &Slice<'_>) -> WaitingSlice {
        let mut arguments = StoredArguments::default();
        arguments.extend(slice.arguments);
        WaitingSlice {
            name: slice.name.into(),
            category: slice.category.into(),
            start: slice.start,
            correlation: slice.correlation,
            arguments,
            flows: slice.flows.to_vec(),
        }
    }

    /// Bytes of memory that it takes, approximately.
    fn bytes(&self) -> usize {
        let texts = self.name.len() + self.category.len() + self.arguments.bytes();
        size_of::<WaitingSlice>() + texts + size_of_val(&self.flows[..])
    }

    /// Passes it on as a slice that is open.
    fn pass_on(&self, track: TrackIndex, consumer: &mut dyn Consumer) -> io::Result<()> {
        let arguments: Vec<EventArgument<'_>> = self.arguments.iter().collect();
        consumer.slice(&Slice {
            track,
            name: &self.name,
            category: &self.category,
            start: self.start,
            end: None,
            open: true,
            correlation: self.correlation,
            arguments: &arguments,
            flows: &self.flows,
        })
    }
}

/// Which agents and kernels of a sampler are kept.
#[derive(Debug, Default)]
struct KeptSampler {
    agents: HashMap<AgentId, bool>,
    kernels: HashMap<KernelId, bool>,
}

impl KeptSampler {
    fn keeps(&self, agent: AgentId, kernel: KernelId) -> bool {
        let [agent, kernel] = [self.agents.get(&agent), self.kernels.get(&kernel)];
        agent.copied().unwrap_or(true) && kernel.copied().unwrap_or(true)
    }
}

/// `3` and `rank 3` are the rank `rank 3 of 8`.
fn rank_number(rank: &str) -> &str {
    let rank = rank.strip_prefix("rank ").unwrap_or(rank);
    rank.split(' ').next().unwrap_or("")
}

/// The number in the title of a device: 3 for "GPU 3".
fn number_of(title: &str) -> Option<u32> {
    title.rsplit_once(' ')?.1.parse().ok()
}

/// The number of samples in counts.
fn count_of(samples: &Samples) -> u64 {
    let outcomes = samples.counts.iter().flat_map(|count| &count.outcomes);
    outcomes.map(|outcome| outcome.samples).sum()
}

impl<'a> Filter<'a> {
    /// A filter in front of `consumer`.
    pub fn new(selection: Selection, consumer: &'a mut dyn Consumer) -> Filter<'a> {
        Filter {
            consumer,
            processes: WantedValues::patterns(&selection.processes),
            devices: WantedValues::new(selection.devices.iter().copied()),
            streams: WantedValues::new(selection.streams.iter().copied()),
            names: WantedValues::patterns(&selection.names),
            categories: WantedValues::patterns(&selection.categories),
            selection,
            interval: (0, u64::MAX),
            kept_processes: Vec::new(),
            tracks: Vec::new(),
            waiting_ranges: HashMap::new(),
            waiting: 0,
            waiting_bytes: 0,
            titles: Vec::new(),
            blocks: Vec::new(),
            samplers: HashMap::new(),
            stacks: HashMap::new(),
            left_out: 0,
            kept: 0,
        }
    }

    /// Number of events that were left out.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Number of events that were passed on.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    /// The values of the selection that matched nothing, as `stream 99`.
    pub fn unmatched(&self) -> Vec<String> {
        let texts = |what: &'static str, list: &WantedValues<GlobPattern>| -> Vec<String> {
            let list = list.unmatched();
            list.map(|one| format!("{what} {}", one.text)).collect()
        };
        let numbers = |what: &'static str, list: &WantedValues<u32>| -> Vec<String> {
            list.unmatched()
                .map(|one| format!("{what} {one}"))
                .collect()
        };
        [
            texts("process", &self.processes),
            numbers("device", &self.devices),
            numbers("stream", &self.streams),
            texts("name", &self.names),
            texts("category", &self.categories),
        ]
        .concat()
    }

    fn keeps_time(&self, start: Nanos, end: Option<Nanos>) -> bool {
        let (from, to) = self.interval;
        start.0 <= to && end.is_none_or(|end| end.0 >= from)
    }

    /// The time in the interval that is nearest to `time`.
    fn nearest(&self, time: Nanos) -> Nanos {
        let (from, to) = self.interval;
        Nanos(time.0.clamp(from, to))
    }

    /// Whether items without a time are kept.
    fn keeps_untimed(&self) -> bool {
        self.interval.0 == 0
    }

    fn keeps_process(&self, index: ProcessIndex) -> bool {
        let keeps = self.kept_processes.get(index.0 as usize);
        keeps.copied().unwrap_or(true)
    }

    fn keeps_device(&mut self, agent: AgentIndex) -> bool {
        let title = self.titles.get(agent.0 as usize);
        let number = title.and_then(|title| number_of(title)).unwrap_or(agent.0);
        self.devices.keeps(|device| *device == number)
    }

    /// Whether a device is kept that samples call by its title, followed by `separator` and more.
    fn keeps_title(&mut self, name: &str, separator: &str) -> bool {
        let title = name.split_once(separator).map_or(name, |(title, _)| title);
        self.devices
            .keeps(|device| number_of(title) == Some(*device))
    }

    fn keeps_track(&self, track: TrackIndex) -> bool {
        let track = self.tracks.get(track.0 as usize);
        track.is_none_or(|track| track.keeps_process)
    }

    fn keeps_value(&self, track: TrackIndex, time: Nanos) -> bool {
        let named = self.tracks.get(track.0 as usize);
        self.keeps_track(track)
            && named.is_none_or(|track| track.keeps_name)
            && self.keeps_time(time, Some(time))
    }

    fn keeps_values(&mut self, block: CounterIndex, time: Nanos) -> bool {
        let of = self.blocks.get(block.0 as usize).copied();
        self.keeps_time(time, Some(time))
            && of.is_none_or(|(process, agent)| {
                self.keeps_process(process) && self.keeps_device(agent)
            })
    }

    /// Counts events.
    fn count(&mut self, keep: bool, events: u64) -> bool {
        if keep {
            self.kept += events
        } else {
            self.left_out += events
        }
        keep
    }

    /// A slice that stays open: its end goes with it.
    fn begin_open(&mut self, track: TrackIndex, slice: OpenSlice) {
        if let Some(track) = self.tracks.get_mut(track.0 as usize) {
            track.open.push(slice);
        }
    }

    /// Lets a slice wait for its end.
    fn wait(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        let index = slice.track;
        let Some(track) = self.tracks.get_mut(index.0 as usize) else {
            return Ok(());
        };
        let waiting = WaitingSlice::new(slice);
        self.waiting += 1;
        self.waiting_bytes += waiting.bytes();
        track.waiting += 1;
        track.open.push(OpenSlice::Waiting(Box::new(waiting)));
        if let Some(thread) = track.thread {
            let tracks = self.waiting_ranges.entry(thread).or_default();
            if !tracks.contains(&index) {
                tracks.push(index);
            }
        }
        if self.waiting > MAX_WAITING || self.waiting_bytes > MAX_WAITING_BYTES {
            self.keep_waiting(index)
        } else {
            Ok(())
        }
    }

    /// Passes on the slices of a track that wait: an event after the begin of the interval is kept, and they are around it.
    fn keep_waiting(&mut self, index: TrackIndex) -> io::Result<()> {
        if self.waiting == 0 {
            return Ok(());
        }
        let Some(track) = self.tracks.get_mut(index.0 as usize) else {
            return Ok(());
        };
        if track.waiting == 0 {
            return Ok(());
        }
        for open in &mut track.open {
            if let OpenSlice::Waiting(_) = open
                && let OpenSlice::Waiting(slice) = std::mem::replace(open, OpenSlice::Kept)
            {
                self.waiting -= 1;
                self.waiting_bytes -= slice.bytes();
                self.kept += 1;
                slice.pass_on(index, self.consumer)?;
            }
        }
        track.waiting = 0;
        Ok(())
    }

    /// Passes on the ranges around a call that is kept.
    fn keep_ranges(&mut self, thread: (ProcessIndex, ThreadId)) -> io::Result<()> {
        if self.waiting == 0 {
            return Ok(());
        }
        let tracks = self.waiting_ranges.remove(&thread).unwrap_or_default();
        tracks
            .into_iter()
            .try_for_each(|track| self.keep_waiting(track))
    }

    /// Whether the slice that ends on a track at `time` is kept.
    fn ends(&mut self, index: TrackIndex, time: Nanos) -> io::Result<bool> {
        let from = self.interval.0;
        let Some(track) = self.tracks.get_mut(index.0 as usize) else {
            return Ok(true);
        };
        match track.open.last() {
            Some(OpenSlice::Waiting(_)) if time.0 >= from => self.keep_waiting(index)?,
            Some(OpenSlice::Waiting(slice)) => {
                self.waiting -= 1;
                self.waiting_bytes -= slice.bytes();
                self.left_out += 1;
                track.waiting -= 1;
            }
            _ => {}
        }
        let ended = self
            .tracks
            .get_mut(index.0 as usize)
            .and_then(|track| track.open.pop());
        Ok(matches!(ended, None | Some(OpenSlice::Kept)))
    }
}

impl Consumer for Filter<'_> {
    fn wants_calls(&self) -> bool {
        self.consumer.wants_calls()
    }

    fn begin(&mut self, header: &TraceHeader) -> io::Result<()> {
        let begin = header.clocks.boottime.0;
        let (from, to) = (&self.selection.from, &self.selection.to);
        self.interval = (
            from.as_ref().map_or(0, |bound| bound.time(begin)),
            to.as_ref().map_or(u64::MAX, |bound| bound.time(begin)),
        );
        if self.interval.0 > self.interval.1 {
            let text = format!(
                "the selection begins after its end: {} ns after {} ns",
                self.interval.0, self.interval.1
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        self.consumer.begin(header)
    }

    fn clocks(&mut self, clocks: &SystemClocks) -> io::Result<()> {
        self.consumer.clocks(clocks)
    }

    fn attributes(&mut self, attributes: &[(String, String)]) -> io::Result<()> {
        self.consumer.attributes(attributes)
    }

    fn agents(&mut self, first: AgentIndex, agents: &[Agent]) -> io::Result<()> {
        self.titles.truncate(first.0 as usize);
        let titles = agents.iter().map(|agent| agent.title.clone());
        self.titles.extend(titles);
        self.consumer.agents(first, agents)
    }

    fn process(&mut self, index: ProcessIndex, process: &Process<'_>) -> io::Result<()> {
        let place = index.0 as usize;
        if place >= self.kept_processes.len() {
            self.kept_processes.resize(place + 1, true);
        }
        let id = process.pid.0.to_string();
        let rank = rank_number(process.rank);
        self.kept_processes[place] = self.processes.keeps(|wanted| {
            wanted.matches(process.name)
                || wanted.matches(process.rank)
                || wanted.text == id
                || (!rank.is_empty() && rank_number(&wanted.text) == rank)
        });
        self.consumer.process(index, process)
    }

    fn track(&mut self, index: TrackIndex, track: &Track<'_>) -> io::Result<()> {
        let keeps_process = match (track.kind, track.parent) {
            (TrackKind::Thread(process, _) | TrackKind::ThreadRanges(process, _), _)
            | (_, Parent::Process(process)) => self.keeps_process(process),
            (_, Parent::Track(parent)) => self.keeps_track(parent),
            (_, Parent::Trace) => true,
        };
        let thread = match track.kind {
            TrackKind::ThreadRanges(process, thread) => Some((process, thread)),
            _ => None,
        };
        let keeps_name = match track.kind {
            TrackKind::Counter(_) => self.names.keeps_text(track.name),
            _ => true,
        };
        let place = index.0 as usize;
        if place >= self.tracks.len() {
            self.tracks.resize_with(place + 1, TrackState::default);
        }
        self.tracks[place] = TrackState {
            keeps_process,
            keeps_name,
            thread,
            ..TrackState::default()
        };
        self.consumer.track(index, track)
    }

    fn queue(&mut self, index: QueueIndex, queue: &Queue<'_>) -> io::Result<()> {
        self.consumer.queue(index, queue)
    }

    fn counters(&mut self, index: CounterIndex, block: &CounterBlock) -> io::Result<()> {
        let place = index.0 as usize;
        if place >= self.blocks.len() {
            self.blocks
                .resize(place + 1, (ProcessIndex(u32::MAX), AgentIndex::UNKNOWN));
        }
        self.blocks[place] = (block.process, block.agent);
        self.consumer.counters(index, block)
    }

    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        let function = call.function;
        let category = function.category.as_deref().or(function.domain.name());
        let keep = self.keeps_process(call.process)
            && self.names.keeps_text(&function.name)
            && self.categories.keeps_text(category.unwrap_or(""))
            && self.keeps_time(call.start, call.end);
        if keep {
            self.keep_ranges((call.process, call.thread))?;
            self.keep_waiting(call.track)?;
        }
        if call.open {
            self.begin_open(call.track, OpenSlice::decided(keep));
        }
        if !self.count(keep, 1) {
            return Ok(());
        }
        // Without arguments, a call is one of a function that has no parameters.
        if self.selection.drop_arguments {
            self.consumer.call(&Call {
                arguments: &[],
                ..*call
            })
        } else {
            self.consumer.call(call)
        }
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        let keep = self.keeps_track(slice.track)
            && self.names.keeps_text(slice.name)
            && self.categories.keeps_text(slice.category)
            && self.keeps_time(slice.start, slice.end);
        let mut slice = *slice;
        if self.selection.drop_arguments {
            slice.arguments = &[];
        }
        if keep && slice.open && slice.end.is_none() && slice.start.0 < self.interval.0 {
            return self.wait(&slice);
        }
        if keep {
            self.keep_waiting(slice.track)?;
        }
        if slice.open {
            self.begin_open(slice.track, OpenSlice::decided(keep));
        }
        if self.count(keep, 1) {
            self.consumer.slice(&slice)
        } else {
            Ok(())
        }
    }

    fn end(&mut self, track: TrackIndex, end: Nanos) -> io::Result<()> {
        if self.ends(track, end)? {
            self.consumer.end(track, end)
        } else {
            Ok(())
        }
    }

    fn end_slice(&mut self, end: &SliceEnd<'_>) -> io::Result<()> {
        if !self.ends(end.track, end.time)? {
            return Ok(());
        }
        let mut end = *end;
        if self.selection.drop_arguments {
            end.arguments = &[];
        }
        self.consumer.end_slice(&end)
    }

    fn instant(&mut self, instant: &Instant<'_>) -> io::Result<()> {
        let keep = self.keeps_track(instant.track)
            && self.names.keeps_text(instant.name)
            && self.categories.keeps_text(instant.category)
            && self.keeps_time(instant.time, Some(instant.time));
        if !self.count(keep, 1) {
            return Ok(());
        }
        self.keep_waiting(instant.track)?;
        let mut instant = *instant;
        if self.selection.drop_arguments {
            instant.arguments = &[];
        }
        self.consumer.instant(&instant)
    }

    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        let end = work.interval.map(|(_, end)| end);
        let keep = self.keeps_process(work.process)
            && self.keeps_device(work.agent)
            && self.streams.keeps(|stream| *stream == work.stream)
            && self
                .names
                .keeps(|name| name.matches(work.stage.name) || name.matches(work.stage.demangled))
            && match work.start {
                Some(start) => self.keeps_time(start, end),
                None => self.keeps_untimed(),
            };
        if !self.count(keep, 1) {
            return Ok(());
        }
        let mut work = *work;
        if self.selection.drop_arguments {
            work.arguments = &[];
        }
        self.consumer.work(&work)
    }

    fn value(&mut self, track: TrackIndex, time: Nanos, value: CounterValue) -> io::Result<()> {
        let keep = self.keeps_value(track, time);
        if self.count(keep, 1) {
            self.consumer.value(track, time, value)
        } else {
            Ok(())
        }
    }

    fn counter_values(
        &mut self,
        block: CounterIndex,
        time: Nanos,
        values: &[CounterValue],
    ) -> io::Result<()> {
        let keep = self.keeps_values(block, time);
        if self.count(keep, values.len() as u64) {
            self.consumer.counter_values(block, time, values)
        } else {
            Ok(())
        }
    }

    fn derived_value(
        &mut self,
        track: TrackIndex,
        time: Nanos,
        value: CounterValue,
    ) -> io::Result<()> {
        if self.keeps_value(track, time) {
            self.consumer.derived_value(track, time, value)
        } else {
            Ok(())
        }
    }

    fn derived_values(
        &mut self,
        block: CounterIndex,
        time: Nanos,
        values: &[CounterValue],
    ) -> io::Result<()> {
        if self.keeps_values(block, time) {
            self.consumer.derived_values(block, time, values)
        } else {
            Ok(())
        }
    }

    fn samples(&mut self, samples: &Samples) -> io::Result<()> {
        let all = count_of(samples);
        if samples.process.is_some_and(|own| !self.keeps_process(own)) {
            self.count(false, all);
            return Ok(());
        }
        let mut sampler = self.samplers.remove(&samples.sampler).unwrap_or_default();
        for (id, name) in &samples.agents {
            let keep = self.keeps_title(name, " (");
            sampler.agents.insert(*id, keep);
        }
        for (id, name) in &samples.kernels {
            sampler.kernels.insert(*id, self.names.keeps_text(name));
        }
        let untimed = self.keeps_untimed();
        let mut kept = samples.clone();
        kept.counts
            .retain(|count| untimed && sampler.keeps(count.agent, count.kernel));
        kept.totals
            .retain(|totals| untimed && sampler.keeps(totals.agent, totals.kernel));
        kept.raw.retain(|sample| {
            sampler.keeps(sample.agent, sample.kernel)
                && self.keeps_time(sample.time, Some(sample.time))
        });
        if !untimed {
            kept.invalid = 0;
        }
        self.samplers.insert(samples.sampler, sampler);
        let count = count_of(&kept);
        self.kept += count;
        self.left_out += all - count;
        self.consumer.samples(&kept)
    }

    fn stack(
        &mut self,
        track: TrackIndex,
        stack: StackIndex,
        frames: &[StackFrame],
    ) -> io::Result<()> {
        if !(self.devices.is_empty() && self.names.is_empty()) {
            // The queue, whose name begins with that of its device, and the kernel.
            let name = |place: usize| frames.get(place).map_or("", |frame| &frame.name);
            let keep = self.keeps_title(name(0), " ·") && self.names.keeps_text(name(1));
            self.stacks.insert((track, stack), keep);
        }
        self.consumer.stack(track, stack, frames)
    }

    fn stack_samples(&mut self, samples: &StackSamples<'_>) -> io::Result<()> {
        if !self.keeps_track(samples.track) {
            return Ok(());
        }
        let keeps = |(time, stack): &&(Nanos, StackIndex)| {
            let stack = self.stacks.get(&(samples.track, *stack));
            self.keeps_time(*time, Some(*time)) && stack.copied().unwrap_or(true)
        };
        let kept: Vec<_> = samples.samples.iter().filter(keeps).copied().collect();
        if kept.is_empty() {
            Ok(())
        } else {
            self.consumer.stack_samples(&StackSamples {
                track: samples.track,
                samples: &kept,
            })
        }
    }

    fn loss(&mut self, loss: &Loss) -> io::Result<()> {
        let keeps_process = loss.process.is_none_or(|own| self.keeps_process(own));
        if keeps_process && self.keeps_time(loss.first, Some(loss.last)) {
            self.consumer.loss(&Loss {
                time: self.nearest(loss.time),
                ..*loss
            })
        } else {
            Ok(())
        }
    }

    /// Notes say how a process was recorded: each part has those of its processes. What was noted before or after it stands
    /// at its border, so that the part is no longer than the interval.
    fn note(&mut self, note: &Note<'_>) -> io::Result<()> {
        if !self.keeps_process(note.process) {
            return Ok(());
        }
        self.consumer.note(&Note {
            time: self.nearest(note.time),
            ..*note
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.consumer.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        // Slices without an end last until the end of the recording.
        for index in 0..self.tracks.len() {
            self.keep_waiting(TrackIndex(index as u32))?;
        }
        self.consumer.finish()
    }
}

#[cfg(test)]
mod tests;
