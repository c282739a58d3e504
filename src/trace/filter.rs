//! A part of a stream: between two times, of some processes, devices, streams, names or categories.
//!
//! [`Filter`] stands between a producer and a consumer. What a criterion does not apply to (the stream of an API call, the
//! category of a counter) is not held against an event by that criterion.

use std::io;

use wildmatch::WildMatch;

use crate::record::Nanos;
use crate::trace::model::{
    Agent, AgentIndex, Call, Consumer, CounterBlock, CounterIndex, CounterValue, Instant, Loss,
    Note, Parent, Process, ProcessIndex, Queue, QueueIndex, Samples, Slice, SliceEnd, StackFrame,
    StackIndex, StackSamples, SystemClocks, TraceHeader, Track, TrackIndex, TrackKind, Work,
};

/// A time in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeBound {
    /// A time in the clock of the trace.
    Absolute(Nanos),
    /// A time since the trace begins.
    SinceBegin(Nanos),
    /// The first slice or marker of this name: its begin, or its end where the bound is the end of an interval.
    Name(String),
}

impl TimeBound {
    fn time(&self, begin: u64) -> u64 {
        match self {
            TimeBound::Absolute(time) => time.0,
            TimeBound::SinceBegin(time) => begin.saturating_add(time.0),
            TimeBound::Name(_) => 0,
        }
    }

    /// The name of a slice or marker whose time is to be found.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            TimeBound::Name(name) => Some(name),
            _ => None,
        }
    }
}

impl From<&str> for TimeBound {
    /// Nanoseconds of the trace's clock, a time since the beginning with its unit (`1.5s`, `20ms`, `7us`), or otherwise a
    /// name.
    fn from(text: &str) -> TimeBound {
        if let Ok(nanos) = text.parse() {
            return TimeBound::Absolute(Nanos(nanos));
        }
        let units = [("ns", 1e0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
        let found = units.iter().find_map(|(unit, nanos)| {
            let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
            (number >= 0.0).then(|| Nanos((number * nanos).round() as u64))
        });
        found.map_or_else(|| TimeBound::Name(text.to_owned()), TimeBound::SinceBegin)
    }
}

/// A selection of the items of a stream. Empty lists keep everything.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Events that end before this are left out.
    pub from: Option<TimeBound>,
    /// Events that begin after this are left out.
    pub to: Option<TimeBound>,
    /// Processes, by their ids or by patterns of their names.
    pub processes: Vec<String>,
    /// Devices, by their places among all devices.
    pub devices: Vec<u32>,
    /// Streams of devices, by their numbers.
    pub streams: Vec<u32>,
    /// Patterns (`*` and `?`) of names of slices, calls, instants, work and counters.
    pub names: Vec<String>,
    /// Patterns of categories of slices, calls and instants.
    pub categories: Vec<String>,
    /// Whether arguments are left out.
    pub drop_arguments: bool,
}

impl Selection {
    /// Whether it keeps everything.
    pub fn is_everything(&self) -> bool {
        let lists = [&self.processes, &self.names, &self.categories];
        self.from.is_none()
            && self.to.is_none()
            && lists.iter().all(|list| list.is_empty())
            && self.devices.is_empty()
            && self.streams.is_empty()
            && !self.drop_arguments
    }
}

/// Passes a selection of a stream on.
pub struct Filter<'a> {
    consumer: &'a mut dyn Consumer,
    selection: Selection,
    names: Vec<WildMatch>,
    categories: Vec<WildMatch>,
    process_names: Vec<WildMatch>,
    /// The interval that is kept.
    interval: (u64, u64),
    /// Whether each process is kept.
    processes: Vec<bool>,
    tracks: Vec<TrackState>,
    /// Agents of blocks of counters.
    blocks: Vec<(ProcessIndex, AgentIndex)>,
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
    /// Whether each open slice is kept.
    open: Vec<bool>,
}

fn patterns(list: &[String]) -> Vec<WildMatch> {
    list.iter().map(|pattern| WildMatch::new(pattern)).collect()
}

fn keeps(patterns: &[WildMatch], text: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(text))
}

impl<'a> Filter<'a> {
    /// A filter in front of `consumer`.
    pub fn new(selection: Selection, consumer: &'a mut dyn Consumer) -> Filter<'a> {
        Filter {
            consumer,
            names: patterns(&selection.names),
            categories: patterns(&selection.categories),
            process_names: patterns(&selection.processes),
            selection,
            interval: (0, u64::MAX),
            processes: Vec::new(),
            tracks: Vec::new(),
            blocks: Vec::new(),
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

    fn keeps_time(&self, start: Nanos, end: Option<Nanos>) -> bool {
        let (from, to) = self.interval;
        start.0 <= to && end.is_none_or(|end| end.0 >= from)
    }

    fn keeps_process(&self, index: ProcessIndex) -> bool {
        self.processes
            .get(index.0 as usize)
            .copied()
            .unwrap_or(true)
    }

    fn keeps_device(&self, agent: AgentIndex) -> bool {
        let devices = &self.selection.devices;
        devices.is_empty() || devices.contains(&agent.0)
    }

    fn keeps_track(&self, track: TrackIndex) -> bool {
        let track = self.tracks.get(track.0 as usize);
        track.is_none_or(|track| track.keeps_process)
    }

    /// Counts an event.
    fn count(&mut self, keep: bool) -> bool {
        self.left_out += u64::from(!keep);
        self.kept += u64::from(keep);
        keep
    }

    /// A slice that stays open: its end goes with it.
    fn begin_open(&mut self, track: TrackIndex, keep: bool) {
        if let Some(track) = self.tracks.get_mut(track.0 as usize) {
            track.open.push(keep);
        }
    }

    /// Whether the slice that ends on a track was kept.
    fn ends(&mut self, track: TrackIndex) -> bool {
        let track = self.tracks.get_mut(track.0 as usize);
        track.and_then(|track| track.open.pop()).unwrap_or(true)
    }
}

impl Consumer for Filter<'_> {
    fn wants_calls(&self) -> bool {
        self.consumer.wants_calls()
    }

    fn begin(&mut self, header: &TraceHeader) -> io::Result<()> {
        let begin = header.clocks.boottime;
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
        self.consumer.agents(first, agents)
    }

    fn process(&mut self, index: ProcessIndex, process: &Process<'_>) -> io::Result<()> {
        let place = index.0 as usize;
        if place >= self.processes.len() {
            self.processes.resize(place + 1, true);
        }
        let id = process.pid.0.to_string();
        // `3` and `rank 3` are the rank `rank 3 of 8`.
        let number = |rank: &str| {
            let rank = rank.strip_prefix("rank ").unwrap_or(rank);
            rank.split(' ').next().unwrap_or("").to_owned()
        };
        let rank = number(process.rank);
        let mut wanted = self.selection.processes.iter();
        self.processes[place] = keeps(&self.process_names, process.name)
            || keeps(&self.process_names, process.rank)
            || wanted.any(|wanted| *wanted == id || (!rank.is_empty() && number(wanted) == rank));
        self.consumer.process(index, process)
    }

    fn track(&mut self, index: TrackIndex, track: &Track<'_>) -> io::Result<()> {
        let keeps_process = match (track.kind, track.parent) {
            (TrackKind::Thread(process, _) | TrackKind::ThreadRanges(process, _), _)
            | (_, Parent::Process(process)) => self.keeps_process(process),
            (_, Parent::Track(parent)) => self.keeps_track(parent),
            (_, Parent::Trace) => true,
        };
        let place = index.0 as usize;
        if place >= self.tracks.len() {
            self.tracks.resize_with(place + 1, TrackState::default);
        }
        self.tracks[place] = TrackState {
            keeps_process,
            keeps_name: keeps(&self.names, track.name),
            open: Vec::new(),
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
            && self.keeps_time(call.start, call.end)
            && keeps(&self.names, &function.name)
            && keeps(&self.categories, category.unwrap_or(""));
        if call.open {
            self.begin_open(call.track, keep);
        }
        if !self.count(keep) {
            return Ok(());
        }
        // Without arguments, a call is one of a function that has no parameters.
        match self.selection.drop_arguments {
            true => self.consumer.call(&Call {
                arguments: &[],
                ..*call
            }),
            false => self.consumer.call(call),
        }
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        let keep = self.keeps_track(slice.track)
            && self.keeps_time(slice.start, slice.end)
            && keeps(&self.names, slice.name)
            && keeps(&self.categories, slice.category);
        if slice.open {
            self.begin_open(slice.track, keep);
        }
        if !self.count(keep) {
            return Ok(());
        }
        let mut slice = *slice;
        if self.selection.drop_arguments {
            slice.arguments = &[];
        }
        self.consumer.slice(&slice)
    }

    fn end(&mut self, track: TrackIndex, end: Nanos) -> io::Result<()> {
        match self.ends(track) {
            true => self.consumer.end(track, end),
            false => Ok(()),
        }
    }

    fn end_slice(&mut self, end: &SliceEnd<'_>) -> io::Result<()> {
        if !self.ends(end.track) {
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
            && self.keeps_time(instant.time, Some(instant.time))
            && keeps(&self.names, instant.name)
            && keeps(&self.categories, instant.category);
        if !self.count(keep) {
            return Ok(());
        }
        let mut instant = *instant;
        if self.selection.drop_arguments {
            instant.arguments = &[];
        }
        self.consumer.instant(&instant)
    }

    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        let end = work.interval.map(|(_, end)| end);
        let streams = &self.selection.streams;
        let keep = self.keeps_process(work.process)
            && self.keeps_device(work.agent)
            && (streams.is_empty() || streams.contains(&work.stream))
            && work.start.is_none_or(|start| self.keeps_time(start, end))
            && keeps(&self.names, work.stage.name);
        if !self.count(keep) {
            return Ok(());
        }
        let mut work = *work;
        if self.selection.drop_arguments {
            work.arguments = &[];
        }
        self.consumer.work(&work)
    }

    fn value(&mut self, track: TrackIndex, time: Nanos, value: CounterValue) -> io::Result<()> {
        let named = self.tracks.get(track.0 as usize);
        let keep = self.keeps_track(track)
            && named.is_none_or(|track| track.keeps_name)
            && self.keeps_time(time, Some(time));
        match self.count(keep) {
            true => self.consumer.value(track, time, value),
            false => Ok(()),
        }
    }

    fn counter_values(
        &mut self,
        block: CounterIndex,
        time: Nanos,
        values: &[CounterValue],
    ) -> io::Result<()> {
        let of = self.blocks.get(block.0 as usize).copied();
        let keep = self.keeps_time(time, Some(time))
            && of.is_none_or(|(process, agent)| {
                self.keeps_process(process) && self.keeps_device(agent)
            });
        match self.count(keep) {
            true => self.consumer.counter_values(block, time, values),
            false => Ok(()),
        }
    }

    fn samples(&mut self, samples: &Samples) -> io::Result<()> {
        self.consumer.samples(samples)
    }

    fn stack(
        &mut self,
        track: TrackIndex,
        stack: StackIndex,
        frames: &[StackFrame],
    ) -> io::Result<()> {
        self.consumer.stack(track, stack, frames)
    }

    fn stack_samples(&mut self, samples: &StackSamples<'_>) -> io::Result<()> {
        let kept: Vec<_> = samples
            .samples
            .iter()
            .filter(|(time, _)| self.keeps_time(*time, Some(*time)))
            .copied()
            .collect();
        self.left_out += (samples.samples.len() - kept.len()) as u64;
        self.kept += kept.len() as u64;
        self.consumer.stack_samples(&StackSamples {
            track: samples.track,
            samples: &kept,
        })
    }

    fn loss(&mut self, loss: &Loss) -> io::Result<()> {
        self.consumer.loss(loss)
    }

    fn note(&mut self, note: &Note<'_>) -> io::Result<()> {
        self.consumer.note(note)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.consumer.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.consumer.finish()
    }
}

/// Finds slices and instants by name: when the first one of each begins, and when it ends.
#[derive(Debug, Default)]
pub struct Markers {
    names: Vec<String>,
    /// When the first one begins and ends.
    found: Vec<Option<(Nanos, Nanos)>>,
    /// Slices that were found and are open: their tracks, their depths there, and their places in `found`.
    open: Vec<(TrackIndex, usize, usize)>,
    depths: Vec<usize>,
}

impl Markers {
    /// Looks for slices and instants with these names.
    pub fn new(names: Vec<String>) -> Markers {
        Markers {
            found: vec![None; names.len()],
            names,
            ..Markers::default()
        }
    }

    /// The interval of the first slice or instant called `name`.
    pub fn interval(&self, name: &str) -> Option<(Nanos, Nanos)> {
        let place = self.names.iter().position(|known| known == name)?;
        self.found[place]
    }

    fn depth(&mut self, track: TrackIndex) -> &mut usize {
        let place = track.0 as usize;
        if place >= self.depths.len() {
            self.depths.resize(place + 1, 0);
        }
        &mut self.depths[place]
    }
}

impl Consumer for Markers {
    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        if call.open {
            *self.depth(call.track) += 1;
        }
        Ok(())
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        if slice.open {
            *self.depth(slice.track) += 1;
        }
        let place = self.names.iter().position(|name| name == slice.name);
        if let Some(place) = place
            && self.found[place].is_none()
        {
            self.found[place] = Some((slice.start, slice.end.unwrap_or(Nanos(u64::MAX))));
            if slice.open {
                let depth = *self.depth(slice.track);
                self.open.push((slice.track, depth, place));
            }
        }
        Ok(())
    }

    fn end(&mut self, track: TrackIndex, end: Nanos) -> io::Result<()> {
        let depth = *self.depth(track);
        *self.depth(track) = depth.saturating_sub(1);
        let open = self
            .open
            .iter()
            .position(|one| (one.0, one.1) == (track, depth));
        if let Some(open) = open {
            let (_, _, place) = self.open.swap_remove(open);
            if let Some((_, known)) = &mut self.found[place] {
                *known = end;
            }
        }
        Ok(())
    }

    fn instant(&mut self, instant: &Instant<'_>) -> io::Result<()> {
        let place = self.names.iter().position(|name| name == instant.name);
        if let Some(place) = place {
            self.found[place].get_or_insert((instant.time, instant.time));
        }
        Ok(())
    }
}
