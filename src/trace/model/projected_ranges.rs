//! Ranges of threads on the rows of devices: from the begin of the first work that was launched in a range to the end of the
//! last.
//!
//! A call belongs to the ranges that are open on its thread when it begins, and work to the ranges of the call that submitted
//! it. The rows come at the end of the stream.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;

use super::{
    AgentIndex, Call, Consumer, EventId, Nanos, Parent, ProcessIndex, Slice, SliceEnd, Track,
    TrackIndex, TrackKind, Work, category,
};
use crate::forward;
use gputrail_record::ThreadId;

/// Maximum number of projected ranges; further ones are left out.
const MAX_RANGES: usize = 1 << 20;
/// Maximum number of calls and of work that wait for the other.
const MAX_WAITING: usize = 1 << 16;
/// Maximum depth of the slices of a thread.
const MAX_DEPTH: usize = 1 << 12;
/// Maximum number of rows of a device.
const MAX_ROWS: usize = 1 << 6;
/// The category of the slices.
const CATEGORY: &str = "projected range";

/// A range that has begun.
#[derive(Copy, Clone, Debug)]
struct OpenRange {
    /// Its place in the list of names.
    number: u64,
    /// Its end if that was known at the begin: the stream may tell of it after calls behind it.
    end: Option<Nanos>,
}

/// A slice that has begun; `None` is one that is no range.
type OpenSlice = Option<OpenRange>;

/// A track of a thread.
#[derive(Debug)]
struct ThreadSlices {
    thread: (ProcessIndex, ThreadId),
    only_ranges: bool,
    open: Vec<OpenSlice>,
    /// The number of open slices below the maximum depth.
    deeper: u64,
}

/// The half of a launch that came first.
#[derive(Clone, Debug)]
enum LaunchHalf {
    /// The ranges of the call.
    Call(Box<[u64]>),
    Work(ProcessIndex, AgentIndex, (Nanos, Nanos)),
}

/// A range on a device.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Projection {
    start: Nanos,
    end: Nanos,
}

/// Passes a stream on, with rows of projected ranges at its end.
#[derive(Debug)]
pub struct ProjectedRanges<C> {
    consumer: C,
    /// The number of tracks of the stream.
    tracks: u32,
    threads: HashMap<TrackIndex, ThreadSlices>,
    of_thread: HashMap<(ProcessIndex, ThreadId), Vec<TrackIndex>>,
    /// The number of ranges that have begun.
    begun: u64,
    /// The names of ranges in which work was launched, and of open ones.
    names: HashMap<u64, Box<str>>,
    halves: HashMap<EventId, LaunchHalf>,
    order: VecDeque<EventId>,
    devices: BTreeMap<(ProcessIndex, AgentIndex), BTreeMap<u64, Projection>>,
    projections: usize,
    titles: BTreeMap<AgentIndex, String>,
}

impl<C: Consumer> ProjectedRanges<C> {
    /// Passes the stream on to `consumer`.
    pub fn new(consumer: C) -> ProjectedRanges<C> {
        ProjectedRanges {
            consumer,
            tracks: 0,
            threads: HashMap::new(),
            of_thread: HashMap::new(),
            begun: 0,
            names: HashMap::new(),
            halves: HashMap::new(),
            order: VecDeque::new(),
            devices: BTreeMap::new(),
            projections: 0,
            titles: BTreeMap::new(),
        }
    }

    /// A slice begins: the name of a range, and its end if it is known already.
    fn open(&mut self, track: TrackIndex, range: Option<(&str, Option<Nanos>)>) {
        let Some(thread) = self.threads.get_mut(&track) else {
            return;
        };
        if thread.open.len() >= MAX_DEPTH {
            thread.deeper += 1;
            return;
        }
        let range = range.map(|(name, end)| {
            self.begun += 1;
            self.names.insert(self.begun, name.into());
            OpenRange {
                number: self.begun,
                end,
            }
        });
        thread.open.push(range);
    }

    fn close(&mut self, track: TrackIndex) {
        let Some(thread) = self.threads.get_mut(&track) else {
            return;
        };
        if thread.deeper > 0 {
            thread.deeper -= 1;
        } else {
            thread.open.pop();
        }
        // Names of ranges without work are not needed any more. Looked at seldom, so that it costs little.
        if self.names.len() > 2 * MAX_RANGES {
            self.forget_names();
        }
    }

    fn forget_names(&mut self) {
        let mut needed: std::collections::HashSet<u64> = std::collections::HashSet::new();
        let open = self.threads.values().flat_map(|thread| &thread.open);
        needed.extend(open.flatten().map(|range| range.number));
        for half in self.halves.values() {
            if let LaunchHalf::Call(ranges) = half {
                needed.extend(ranges.iter());
            }
        }
        needed.extend(self.devices.values().flat_map(BTreeMap::keys));
        self.names.retain(|number, _| needed.contains(number));
    }

    /// The ranges that are open on a thread.
    /// The ranges of a thread that are open at `time`.
    fn ranges_of(&self, thread: (ProcessIndex, ThreadId), time: Nanos) -> Box<[u64]> {
        let tracks = self.of_thread.get(&thread).into_iter().flatten();
        let slices = tracks.filter_map(|track| self.threads.get(track));
        let open = slices.flat_map(|slices| &slices.open).flatten();
        let open = open.filter(|range| range.end.is_none_or(|end| time < end));
        open.map(|range| range.number).collect()
    }

    fn project(
        &mut self,
        place: (ProcessIndex, AgentIndex),
        ranges: &[u64],
        (start, end): (Nanos, Nanos),
    ) {
        let device = self.devices.entry(place).or_default();
        for range in ranges {
            match device.get_mut(range) {
                Some(known) => {
                    known.start = known.start.min(start);
                    known.end = known.end.max(end);
                }
                None if self.projections < MAX_RANGES => {
                    self.projections += 1;
                    device.insert(*range, Projection { start, end });
                }
                None => {}
            }
        }
    }

    fn hold(&mut self, event: EventId, half: LaunchHalf) {
        while self.order.len() >= MAX_WAITING
            && let Some(old) = self.order.pop_front()
        {
            self.halves.remove(&old);
        }
        if self.halves.insert(event, half).is_none() {
            self.order.push_back(event);
        }
    }

    /// Writes the rows of a device: each range stands in the first row in which it nests.
    fn write(
        &mut self,
        (process, agent): (ProcessIndex, AgentIndex),
        ranges: &BTreeMap<u64, Projection>,
    ) -> io::Result<()> {
        let title = self.titles.get(&agent).map_or("", |title| title);
        let name = format!("{title}: projected ranges");
        let mut sorted: Vec<(Projection, u64)> =
            ranges.iter().map(|(number, one)| (*one, *number)).collect();
        // Outer ranges before those inside of them: they begin earlier, or have lower numbers.
        sorted.sort_by_key(|(one, number)| (one.start, std::cmp::Reverse(one.end), *number));
        let mut rows: Vec<(TrackIndex, Vec<Nanos>)> = Vec::new();
        for (one, number) in sorted {
            let mut place = rows.len();
            for (number, (track, open)) in rows.iter_mut().enumerate() {
                while let Some(end) = open.pop_if(|end| *end <= one.start) {
                    self.consumer.end(*track, end)?;
                }
                if open.last().is_none_or(|outer| one.end <= *outer) {
                    place = number;
                    break;
                }
            }
            if place == rows.len() {
                if place >= MAX_ROWS {
                    continue;
                }
                let track = TrackIndex(self.tracks);
                self.tracks += 1;
                self.consumer.track(
                    track,
                    &Track {
                        parent: Parent::Process(process),
                        name: &name,
                        kind: TrackKind::Slices,
                        order: None,
                    },
                )?;
                rows.push((track, Vec::new()));
            }
            let (track, open) = &mut rows[place];
            self.consumer.slice(&Slice {
                track: *track,
                name: self.names.get(&number).map_or("", |name| name),
                category: CATEGORY,
                start: one.start,
                end: Some(one.end),
                open: true,
                ..Slice::default()
            })?;
            open.push(one.end);
        }
        for (track, open) in &mut rows {
            while let Some(end) = open.pop() {
                self.consumer.end(*track, end)?;
            }
        }
        Ok(())
    }
}

impl<C: Consumer> Consumer for ProjectedRanges<C> {
    forward!(
        self, (self.consumer),
        begin clocks attributes process queue counters instant value counter_values derived_value derived_values
        samples stack stack_samples loss note flush
    );

    fn agents(&mut self, first: AgentIndex, agents: &[super::Agent]) -> io::Result<()> {
        for (index, agent) in (first.0..).zip(agents) {
            self.titles.insert(AgentIndex(index), agent.title.clone());
        }
        self.consumer.agents(first, agents)
    }

    fn track(&mut self, index: TrackIndex, track: &Track<'_>) -> io::Result<()> {
        self.tracks = self.tracks.max(index.0.saturating_add(1));
        let thread = match track.kind {
            TrackKind::Thread(process, thread) => Some(((process, thread), false)),
            TrackKind::ThreadRanges(process, thread) => Some(((process, thread), true)),
            _ => None,
        };
        if let Some((thread, only_ranges)) = thread {
            let slices = ThreadSlices {
                thread,
                only_ranges,
                open: Vec::new(),
                deeper: 0,
            };
            if self.threads.insert(index, slices).is_none() {
                self.of_thread.entry(thread).or_default().push(index);
            }
        }
        self.consumer.track(index, track)
    }

    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        if !call.submitted.is_empty() {
            let thread = self.threads.get(&call.track);
            let thread = thread.map_or((call.process, call.thread), |slices| slices.thread);
            let ranges = self.ranges_of(thread, call.start);
            for event in call.submitted.iter().filter(|_| !ranges.is_empty()) {
                match self.halves.get(event) {
                    Some(LaunchHalf::Work(process, agent, interval)) => {
                        let (place, interval) = ((*process, *agent), *interval);
                        self.halves.remove(event);
                        self.project(place, &ranges, interval);
                    }
                    _ => self.hold(*event, LaunchHalf::Call(ranges.clone())),
                }
            }
        }
        if call.open {
            self.open(call.track, None);
        }
        self.consumer.call(call)
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        if slice.open {
            let only_ranges = self.threads.get(&slice.track);
            let only_ranges = only_ranges.is_some_and(|slices| slices.only_ranges);
            let is_range = only_ranges
                || !matches!(
                    slice.category,
                    category::OVERHEAD | category::RECORDING | "python_function" | "Trace"
                );
            self.open(slice.track, is_range.then_some((slice.name, slice.end)));
        }
        self.consumer.slice(slice)
    }

    fn end(&mut self, track: TrackIndex, end: Nanos) -> io::Result<()> {
        self.close(track);
        self.consumer.end(track, end)
    }

    fn end_slice(&mut self, end: &SliceEnd<'_>) -> io::Result<()> {
        self.close(end.track);
        self.consumer.end_slice(end)
    }

    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        if let (Some(event), Some(interval)) = (work.event, work.interval) {
            let place = (work.process, work.agent);
            match self.halves.remove(&event) {
                Some(LaunchHalf::Call(ranges)) => self.project(place, &ranges, interval),
                _ => self.hold(event, LaunchHalf::Work(place.0, place.1, interval)),
            }
        }
        self.consumer.work(work)
    }

    fn finish(&mut self) -> io::Result<()> {
        for (place, ranges) in std::mem::take(&mut self.devices) {
            self.write(place, &ranges)?;
        }
        self.consumer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leave_out;
    use crate::model::{Function, Stage};

    /// Keeps the slices of tracks without a thread, and the ends of all.
    #[derive(Default)]
    struct Kept {
        tracks: Vec<String>,
        slices: Vec<(u32, String, u64, u64)>,
        ends: Vec<u32>,
    }

    impl Consumer for Kept {
        leave_out!(
            clocks attributes agents process queue counters call instant work value counter_values samples stack
            stack_samples loss note
        );

        fn track(&mut self, _: TrackIndex, track: &Track<'_>) -> io::Result<()> {
            self.tracks.push(track.name.to_owned());
            Ok(())
        }

        fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
            if slice.category == CATEGORY {
                let end = slice.end.map_or(0, |end| end.0);
                let name = slice.name.to_owned();
                self.slices.push((slice.track.0, name, slice.start.0, end));
            }
            Ok(())
        }

        fn end(&mut self, track: TrackIndex, _: Nanos) -> io::Result<()> {
            self.ends.push(track.0);
            Ok(())
        }
    }

    #[test]
    fn ranges_stand_over_the_work_that_was_launched_in_them() {
        let mut kept = Kept::default();
        let mut projected = ProjectedRanges::new(&mut kept);
        let agent = crate::model::Agent {
            title: "GPU 0".to_owned(),
            ..Default::default()
        };
        projected.agents(AgentIndex(0), &[agent]).unwrap();
        let track = Track {
            parent: Parent::Process(ProcessIndex(0)),
            name: "main",
            kind: TrackKind::Thread(ProcessIndex(0), ThreadId(1)),
            order: None,
        };
        projected.track(TrackIndex(0), &track).unwrap();
        let begin = |name, start| Slice {
            name,
            category: "user_annotation",
            start: Nanos(start),
            open: true,
            ..Slice::default()
        };
        let function = Function::default();
        let call = |projected: &mut ProjectedRanges<_>, event: u64| {
            let submitted = [EventId(event)];
            let call = Call {
                thread: ThreadId(1),
                submitted: &submitted,
                ..Call::blank(&function)
            };
            projected.call(&call).unwrap();
        };
        let work = |event: u64, start, end| Work {
            event: Some(EventId(event)),
            interval: Some((Nanos(start), Nanos(end))),
            stage: Stage::default(),
            ..Work::default()
        };
        projected.slice(&begin("step", 0)).unwrap();
        projected.slice(&begin("forward", 1)).unwrap();
        call(&mut projected, 1);
        // Work may come before its call.
        projected.work(&work(2, 120, 150)).unwrap();
        call(&mut projected, 2);
        projected.end(TrackIndex(0), Nanos(10)).unwrap();
        call(&mut projected, 3);
        projected.end(TrackIndex(0), Nanos(20)).unwrap();
        call(&mut projected, 4);
        let ended = Slice {
            end: Some(Nanos(40)),
            ..begin("empty", 30)
        };
        projected.slice(&ended).unwrap();
        let submitted = [EventId(5)];
        let behind = Call {
            thread: ThreadId(1),
            start: Nanos(40),
            submitted: &submitted,
            ..Call::blank(&function)
        };
        projected.call(&behind).unwrap();
        projected.work(&work(5, 400, 410)).unwrap();
        projected.work(&work(1, 100, 110)).unwrap();
        projected.work(&work(3, 150, 200)).unwrap();
        projected.work(&work(4, 300, 400)).unwrap();
        projected.finish().unwrap();
        assert_eq!(kept.tracks, ["main", "GPU 0: projected ranges"]);
        let expected = [(1, "step", 100, 200), (1, "forward", 100, 150)];
        let expected =
            expected.map(|(track, name, start, end)| (track, name.to_owned(), start, end));
        assert_eq!(kept.slices, expected);
        assert_eq!(kept.ends, [0, 0, 1, 1]);
    }
}
