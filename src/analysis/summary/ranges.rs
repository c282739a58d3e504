//! Ranges of markers: their number and duration, and the calls and the work in them.

use std::collections::{HashMap, VecDeque};

use super::Distribution;
use gputrail_record::number_map::NumberMap;
use gputrail_record::{Nanos, ThreadId};
use gputrail_trace::model::{ProcessIndex, TrackIndex};

/// Maximum number of names of ranges that are distinguished.
const MAX_NAMES: usize = 1 << 14;
/// Maximum number of ranges of one thread that are kept for work that completes later.
const MAX_RANGES: usize = 1 << 12;
/// The name under which the rest is summed up.
const REST: &str = "(others)";

/// The ranges with one name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RangeSummary {
    /// Its name.
    pub name: String,
    /// Their durations, ns.
    pub times: Distribution,
    /// The number of ranges that did not end.
    pub unfinished: u64,
    /// The number of calls that began in them on their thread, without calls made by other calls.
    pub calls: u64,
    /// The time of these calls.
    pub call_time: Nanos,
    /// The number of pieces of device work that these calls enqueued and that completed.
    pub work: u64,
    /// The time of this work.
    pub work_time: Nanos,
}

/// A track of ranges of a thread.
#[derive(Copy, Clone, Debug)]
pub(super) struct RangePlace {
    pub process: ProcessIndex,
    pub thread: ThreadId,
    pub track: TrackIndex,
}

/// A range on its thread.
#[derive(Copy, Clone, Debug)]
struct Instance {
    label: u32,
    start: Nanos,
    end: Option<Nanos>,
    /// The number of the enclosing range.
    parent: Option<u64>,
}

/// The ranges of one track of a thread, in the order of their begins.
#[derive(Debug, Default)]
struct ThreadRanges {
    begun: VecDeque<Instance>,
    /// The number of the first of them.
    first: u64,
    open: Vec<u64>,
}

impl ThreadRanges {
    fn at(&mut self, number: u64) -> Option<&mut Instance> {
        let place = number.checked_sub(self.first)?;
        self.begun.get_mut(usize::try_from(place).ok()?)
    }

    /// The ranges that were open at `time`, from the innermost outwards.
    fn around(&self, time: Nanos) -> impl Iterator<Item = u32> {
        let begun = self.begun.partition_point(|one| one.start <= time) as u64;
        let mut next = (self.first + begun).checked_sub(1);
        let chain = std::iter::from_fn(move || {
            let place = next?.checked_sub(self.first)?;
            let one = self.begun.get(usize::try_from(place).ok()?)?;
            next = one.parent;
            Some(one)
        });
        let open = move |one: &&Instance| one.end.is_none_or(|end| time < end);
        chain.filter(open).map(|one| one.label)
    }
}

/// All ranges.
#[derive(Debug, Default)]
pub(super) struct SummedRanges {
    labels: HashMap<Box<str>, u32>,
    list: Vec<RangeSummary>,
    /// The ranges of each thread, by their tracks.
    threads: NumberMap<(ProcessIndex, ThreadId), Vec<(TrackIndex, ThreadRanges)>>,
}

impl SummedRanges {
    /// Adds a range without a thread, from `start` to `end`, which is `None` if it did not end.
    pub fn add(&mut self, name: &str, start: Nanos, end: Option<Nanos>) {
        let label = self.label(name);
        let sum = &mut self.list[label as usize];
        match end {
            Some(end) => sum.times.add(end.0.saturating_sub(start.0)),
            None => sum.unfinished += 1,
        }
    }

    pub fn begin(&mut self, place: RangePlace, name: &str, start: Nanos) {
        let label = self.label(name);
        let tracks = self
            .threads
            .entry((place.process, place.thread))
            .or_default();
        let known = tracks.iter().position(|(track, _)| *track == place.track);
        let known = known.unwrap_or_else(|| {
            tracks.push((place.track, ThreadRanges::default()));
            tracks.len() - 1
        });
        let of = &mut tracks[known].1;
        if of.open.len() >= MAX_RANGES {
            return;
        }
        if of.begun.len() >= MAX_RANGES {
            of.begun.pop_front();
            of.first += 1;
        }
        let parent = of.open.last().copied();
        of.open.push(of.first + of.begun.len() as u64);
        of.begun.push_back(Instance {
            label,
            start,
            end: None,
            parent,
        });
        self.list[label as usize].unfinished += 1;
    }

    pub fn end(&mut self, place: RangePlace, end: Nanos) {
        let tracks = self.threads.get_mut(&(place.process, place.thread));
        let mut tracks = tracks.into_iter().flatten();
        let Some((_, of)) = tracks.find(|(track, _)| *track == place.track) else {
            return;
        };
        let Some(number) = of.open.pop() else {
            return;
        };
        if let Some(one) = of.at(number) {
            one.end = Some(end);
            let sum = &mut self.list[one.label as usize];
            sum.unfinished -= 1;
            sum.times.add(end.0.saturating_sub(one.start.0));
        }
    }

    /// Adds a call that took `took` ns.
    pub fn call(&mut self, process: ProcessIndex, thread: ThreadId, start: Nanos, took: u64) {
        let tracks = self.threads.get(&(process, thread));
        for (_, of) in tracks.into_iter().flatten() {
            for label in of.around(start) {
                let sum = &mut self.list[label as usize];
                sum.calls += 1;
                sum.call_time = Nanos(sum.call_time.0.saturating_add(took));
            }
        }
    }

    /// Adds work that ran for `ran` ns and was enqueued by the call at `enqueued`.
    pub fn work(&mut self, process: ProcessIndex, thread: ThreadId, enqueued: Nanos, ran: u64) {
        let tracks = self.threads.get(&(process, thread));
        for (_, of) in tracks.into_iter().flatten() {
            for label in of.around(enqueued) {
                let sum = &mut self.list[label as usize];
                sum.work += 1;
                sum.work_time = Nanos(sum.work_time.0.saturating_add(ran));
            }
        }
    }

    /// Ranges by name, in descending order of time.
    pub fn list(&self) -> Vec<RangeSummary> {
        let mut list = self.list.clone();
        list.sort_by(|a, b| {
            let times = b.times.total.cmp(&a.times.total);
            times.then_with(|| a.name.cmp(&b.name))
        });
        list
    }

    fn label(&mut self, name: &str) -> u32 {
        if let Some(label) = self.labels.get(name) {
            return *label;
        }
        let name = match self.list.len() {
            MAX_NAMES.. => REST,
            _ => name,
        };
        *self.labels.entry(name.into()).or_insert_with(|| {
            self.list.push(RangeSummary {
                name: name.to_owned(),
                ..RangeSummary::default()
            });
            self.list.len() as u32 - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROCESS: ProcessIndex = ProcessIndex(0);
    const THREAD: ThreadId = ThreadId(7);
    const PLACE: RangePlace = RangePlace {
        process: PROCESS,
        thread: THREAD,
        track: TrackIndex(1),
    };

    #[test]
    fn work_in_a_range_counts_in_all_enclosing_ranges() {
        let mut ranges = SummedRanges::default();
        ranges.begin(PLACE, "step", Nanos(10));
        ranges.begin(PLACE, "forward", Nanos(20));
        ranges.call(PROCESS, THREAD, Nanos(25), 3);
        ranges.end(PLACE, Nanos(40));
        ranges.begin(PLACE, "backward", Nanos(50));
        ranges.end(PLACE, Nanos(60));
        ranges.end(PLACE, Nanos(100));
        // Work is added when it has completed; the ranges of this thread do not contain work of another thread.
        ranges.work(PROCESS, THREAD, Nanos(25), 500);
        ranges.work(PROCESS, THREAD, Nanos(70), 1);
        ranges.work(PROCESS, THREAD, Nanos(200), 9);
        ranges.work(PROCESS, ThreadId(8), Nanos(25), 9);
        let list = ranges.list();
        let told = |one: &RangeSummary| {
            let (calls, work) = (one.calls, one.work);
            (
                one.name.clone(),
                one.times.total,
                calls,
                work,
                one.work_time.0,
            )
        };
        let expected = [
            ("step", 90, 1, 2, 501),
            ("forward", 20, 1, 1, 500),
            ("backward", 10, 0, 0, 0),
        ];
        let expected = expected
            .map(|(name, time, calls, work, ran)| (name.to_owned(), time, calls, work, ran));
        assert_eq!(list.iter().map(told).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn ranges_of_several_tracks_of_a_thread_need_not_nest() {
        let mut ranges = SummedRanges::default();
        let other = RangePlace {
            track: TrackIndex(2),
            ..PLACE
        };
        ranges.begin(PLACE, "one", Nanos(10));
        ranges.begin(other, "two", Nanos(20));
        ranges.call(PROCESS, THREAD, Nanos(25), 3);
        ranges.end(PLACE, Nanos(30));
        ranges.call(PROCESS, THREAD, Nanos(35), 4);
        ranges.end(other, Nanos(60));
        let list = ranges.list();
        let told = list
            .iter()
            .map(|one| (&*one.name, one.times.total, one.call_time.0));
        assert_eq!(told.collect::<Vec<_>>(), [("two", 40, 7), ("one", 20, 3)]);
    }

    #[test]
    fn ends_without_a_begin_and_begins_without_an_end_harm_nothing() {
        let mut ranges = SummedRanges::default();
        ranges.end(PLACE, Nanos(5));
        for n in 0..MAX_RANGES as u64 + 10 {
            ranges.begin(PLACE, "open", Nanos(n));
        }
        ranges.add("global", Nanos(1), Some(Nanos(4)));
        ranges.add("global", Nanos(5), None);
        let list = ranges.list();
        let global = &list[0];
        assert_eq!((&*global.name, global.times.total), ("global", 3));
        assert_eq!((global.times.count, global.unfinished), (1, 1));
        assert_eq!(list[1].unfinished, MAX_RANGES as u64);
    }
}
