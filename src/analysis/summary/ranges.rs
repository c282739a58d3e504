//! Ranges of markers: their number and duration, and the calls and the work in them.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::Distribution;
use gputrail_record::number_map::NumberMap;
use gputrail_record::{Nanos, ThreadId};
use gputrail_trace::model::{ProcessIndex, TrackIndex, category};

/// Maximum number of names of ranges that are distinguished.
const MAX_NAMES: usize = 1 << 14;
/// Maximum number of ranges of one thread that are kept for work that completes later.
const MAX_RANGES: usize = 1 << 14;
/// Maximum number of enclosing ranges of a thread that are kept beside them.
const MAX_OUTER: usize = 1 << 10;
/// Number of ranges of all threads from which on threads keep few.
const MANY_RANGES: usize = 1 << 20;
/// Maximum number of ranges of a thread then.
const FEW_RANGES: usize = 1 << 8;
/// Maximum number of pairs of a range and a kernel that are distinguished; the rest of a range is summed up.
const MAX_PAIRS: usize = 1 << 16;
/// Maximum depth of slices of a thread.
const MAX_DEPTH: usize = 1 << 12;
/// The name under which the rest is summed up.
const REST: &str = "(others)";

/// The ranges with one name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RangeSummary {
    /// Its name.
    pub name: String,
    /// Whether it is an operator of a framework, such as `aten::add`.
    pub is_operator: bool,
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

/// A kernel that was launched in ranges of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeKernel {
    /// The name of the ranges.
    pub range: String,
    /// The name of the kernel.
    pub kernel: String,
    /// The number of its launches in these ranges that completed.
    pub count: u64,
    /// The time for which they ran.
    pub time: Nanos,
}

/// A track on which ranges are.
#[derive(Debug)]
pub(super) enum RangeTrack {
    /// Of a thread.
    Thread(ThreadTrack),
    /// Whole ranges of a process, if its parent is one.
    Whole(Option<ProcessIndex>),
}

impl RangeTrack {
    pub fn of_thread(place: RangePlace, only_ranges: bool) -> RangeTrack {
        RangeTrack::Thread(ThreadTrack {
            place,
            only_ranges,
            open: Vec::new(),
            calls: 0,
            deeper: 0,
        })
    }

    /// Whether all slices on it are ranges of markers.
    pub fn has_only_ranges(&self) -> bool {
        match self {
            RangeTrack::Thread(thread) => thread.only_ranges,
            RangeTrack::Whole(_) => true,
        }
    }
}

/// An open slice of a thread.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum ThreadEntry {
    Range,
    Call,
    Other,
}

/// A track of a thread: of its markers alone, or of its calls with the operators and annotations around them.
#[derive(Debug)]
pub(super) struct ThreadTrack {
    pub place: RangePlace,
    pub only_ranges: bool,
    open: Vec<ThreadEntry>,
    /// The number of calls among them.
    calls: usize,
    /// The number of open slices below the maximum depth.
    deeper: u64,
}

impl ThreadTrack {
    /// Whether a slice of this category is a range, and if so, whether an operator.
    pub fn range(&self, category: &str) -> Option<bool> {
        if self.only_ranges {
            return Some(false);
        }
        match category {
            category::OVERHEAD | category::RECORDING | "python_function" | "Trace" => None,
            "cpu_op" | "Operator" => Some(true),
            _ => Some(false),
        }
    }

    /// Whether a call is open.
    pub fn in_calls(&self) -> bool {
        self.calls > 0
    }

    /// Adds an open slice. The result is whether it is kept; one below the maximum depth is only counted.
    pub fn push(&mut self, entry: ThreadEntry) -> bool {
        if self.open.len() >= MAX_DEPTH {
            self.deeper += 1;
            return false;
        }
        self.calls += usize::from(entry == ThreadEntry::Call);
        self.open.push(entry);
        true
    }

    pub fn pop(&mut self) -> Option<ThreadEntry> {
        if self.deeper > 0 {
            self.deeper -= 1;
            return None;
        }
        let entry = self.open.pop()?;
        self.calls -= usize::from(entry == ThreadEntry::Call);
        Some(entry)
    }
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
    /// The number of the step that it is.
    step: Option<u32>,
}

/// A range that has ended.
#[derive(Copy, Clone, Debug)]
pub(super) struct EndedRange {
    pub label: u32,
    pub start: Nanos,
    pub step: Option<u32>,
}

/// The ranges of one track of a thread, in the order of their begins.
#[derive(Debug, Default)]
struct ThreadRanges {
    begun: VecDeque<Instance>,
    /// The number of the first of them.
    first: u64,
    open: Vec<u64>,
    /// Ranges before the first that had not ended when they left: they enclose many others.
    outer: BTreeMap<u64, Instance>,
}

impl ThreadRanges {
    fn at(&mut self, number: u64) -> Option<&mut Instance> {
        match number.checked_sub(self.first) {
            Some(place) => self.begun.get_mut(usize::try_from(place).ok()?),
            None => self.outer.get_mut(&number),
        }
    }

    /// The range with this number; where it is not kept, the nearest one before it that is.
    fn at_or_before(&self, number: u64) -> Option<&Instance> {
        match number.checked_sub(self.first) {
            Some(place) => self.begun.get(usize::try_from(place).ok()?),
            None => self.outer.range(..=number).next_back().map(|(_, one)| one),
        }
    }

    /// Makes room for a range.
    fn drop_first(&mut self) {
        let Some(one) = self.begun.pop_front() else {
            return;
        };
        if one.end.is_none() {
            if self.outer.len() >= MAX_OUTER {
                let ended = self.outer.iter().find(|(_, one)| one.end.is_some());
                let oldest = ended.or_else(|| self.outer.first_key_value());
                if let Some(number) = oldest.map(|(number, _)| *number) {
                    self.outer.remove(&number);
                }
            }
            self.outer.insert(self.first, one);
        }
        self.first += 1;
    }

    /// The ranges that were open at `time`, from the innermost outwards.
    fn around(&self, time: Nanos) -> impl Iterator<Item = u32> {
        // Calls come while the latest range is open, work later.
        let begun = match self.begun.back() {
            Some(latest) if latest.start <= time => self.begun.len(),
            _ => self.begun.partition_point(|one| one.start <= time),
        } as u64;
        let mut next = (self.first + begun).checked_sub(1);
        let chain = std::iter::from_fn(move || {
            let one = self.at_or_before(next?)?;
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
    labels: NumberMap<Box<str>, u32>,
    list: Vec<RangeSummary>,
    /// The number and the time of kernels by range and kernel.
    kernels: NumberMap<(u32, u32), (u64, u64)>,
    /// The ranges of each thread, by their tracks.
    threads: NumberMap<(ProcessIndex, ThreadId), Vec<(TrackIndex, ThreadRanges)>>,
    /// The number of ranges in them.
    kept: usize,
    /// The labels of the ranges around a time: kept for its allocation.
    around: Vec<u32>,
}

impl SummedRanges {
    /// Adds a range without a thread, from `start` to `end`, which is `None` if it did not end.
    pub fn add(&mut self, name: &str, start: Nanos, end: Option<Nanos>) {
        let label = self.label(name, false);
        let sum = &mut self.list[label as usize];
        match end {
            Some(end) => sum.times.add(end.0.saturating_sub(start.0)),
            None => sum.unfinished += 1,
        }
    }

    /// A range begins: its name, and whether it is an operator. `step` is the number of the step that it is.
    pub fn begin(
        &mut self,
        place: RangePlace,
        (name, is_operator): (&str, bool),
        start: Nanos,
        step: Option<u32>,
    ) {
        let label = self.label(name, is_operator);
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
        let most = match self.kept {
            MANY_RANGES.. => FEW_RANGES,
            _ => MAX_RANGES,
        };
        while of.begun.len() >= most {
            of.drop_first();
            self.kept -= 1;
        }
        self.kept += 1;
        let parent = of.open.last().copied();
        of.open.push(of.first + of.begun.len() as u64);
        of.begun.push_back(Instance {
            label,
            start,
            end: None,
            parent,
            step,
        });
        self.list[label as usize].unfinished += 1;
    }

    /// The innermost range of a track ends.
    pub fn end(&mut self, place: RangePlace, end: Nanos) -> Option<EndedRange> {
        let tracks = self.threads.get_mut(&(place.process, place.thread));
        let mut tracks = tracks.into_iter().flatten();
        let (_, of) = tracks.find(|(track, _)| *track == place.track)?;
        let number = of.open.pop()?;
        let one = of.at(number)?;
        one.end = Some(end);
        let sum = &mut self.list[one.label as usize];
        sum.unfinished -= 1;
        sum.times.add(end.0.saturating_sub(one.start.0));
        Some(EndedRange {
            label: one.label,
            start: one.start,
            step: one.step,
        })
    }

    /// The name of a range.
    pub fn name(&self, label: u32) -> &str {
        self.list.get(label as usize).map_or(REST, |one| &one.name)
    }

    /// Adds a call that took `took` ns.
    pub fn call(&mut self, process: ProcessIndex, thread: ThreadId, start: Nanos, took: u64) {
        let tracks = self.threads.get(&(process, thread));
        for (_, of) in tracks.into_iter().flatten() {
            once_each(of.around(start), &mut self.around);
            for label in &self.around {
                let sum = &mut self.list[*label as usize];
                sum.calls += 1;
                sum.call_time = Nanos(sum.call_time.0.saturating_add(took));
            }
        }
    }

    /// Adds work that ran for `ran` ns and was enqueued by the call at `enqueued`; `kernel` is its label, if it is one.
    pub fn work(
        &mut self,
        thread: (ProcessIndex, ThreadId),
        enqueued: Nanos,
        ran: u64,
        kernel: Option<u32>,
    ) {
        let tracks = self.threads.get(&thread);
        for (_, of) in tracks.into_iter().flatten() {
            once_each(of.around(enqueued), &mut self.around);
            for label in &self.around {
                let sum = &mut self.list[*label as usize];
                sum.work += 1;
                sum.work_time = Nanos(sum.work_time.0.saturating_add(ran));
                let Some(kernel) = kernel else {
                    continue;
                };
                let mut pair = (*label, kernel);
                if self.kernels.len() >= MAX_PAIRS && !self.kernels.contains_key(&pair) {
                    pair = (*label, u32::MAX);
                }
                let (count, time) = self.kernels.entry(pair).or_default();
                *count += 1;
                *time = time.saturating_add(ran);
            }
        }
    }

    /// The names of the ranges of a thread at a time, from the outside inwards.
    pub fn stack(&self, thread: (ProcessIndex, ThreadId), time: Nanos) -> Vec<&str> {
        let tracks = self.threads.get(&thread).into_iter().flatten();
        let mut names = Vec::new();
        for (_, of) in tracks {
            let from = names.len();
            names.extend(of.around(time).map(|label| self.name(label)));
            names[from..].reverse();
        }
        names
    }

    /// The kernels of ranges, whose names are told by `name`: ranges in descending order of time, and kernels in each.
    pub fn kernels<'n>(&self, name: impl Fn(u32) -> &'n str) -> Vec<RangeKernel> {
        // Kernels of several processes may have the same name.
        let mut by_name: HashMap<(u32, &str), (u64, u64)> = HashMap::new();
        for ((range, kernel), (count, time)) in &self.kernels {
            let (all, sum) = by_name.entry((*range, name(*kernel))).or_default();
            *all += count;
            *sum = sum.saturating_add(*time);
        }
        let mut list: Vec<_> = by_name.into_iter().collect();
        let time = |range: u32| self.list[range as usize].work_time.0;
        list.sort_by(
            |((range, kernel), (_, sum)), ((other, other_kernel), (_, other_sum))| {
                let ranges = time(*other).cmp(&time(*range)).then(range.cmp(other));
                let times = ranges.then(other_sum.cmp(sum));
                times.then_with(|| kernel.cmp(other_kernel))
            },
        );
        let row = |((range, kernel), (count, time)): ((u32, &str), (u64, u64))| RangeKernel {
            range: self.name(range).to_owned(),
            kernel: kernel.to_owned(),
            count,
            time: Nanos(time),
        };
        list.into_iter().map(row).collect()
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

    fn label(&mut self, name: &str, is_operator: bool) -> u32 {
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
                is_operator,
                ..RangeSummary::default()
            });
            self.list.len() as u32 - 1
        })
    }
}

/// Puts each label into a list once: a range inside of a range of its name counts once.
fn once_each(labels: impl Iterator<Item = u32>, list: &mut Vec<u32>) {
    list.clear();
    for label in labels {
        // Few ranges are around a time.
        if !list.contains(&label) {
            list.push(label);
        }
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
        ranges.begin(PLACE, ("step", false), Nanos(10), None);
        ranges.begin(PLACE, ("forward", false), Nanos(20), None);
        ranges.call(PROCESS, THREAD, Nanos(25), 3);
        ranges.end(PLACE, Nanos(40));
        ranges.begin(PLACE, ("backward", false), Nanos(50), None);
        ranges.end(PLACE, Nanos(60));
        ranges.end(PLACE, Nanos(100));
        // Work is added when it has completed; the ranges of this thread do not contain work of another thread.
        ranges.work((PROCESS, THREAD), Nanos(25), 500, Some(7));
        ranges.work((PROCESS, THREAD), Nanos(70), 1, Some(7));
        ranges.work((PROCESS, THREAD), Nanos(200), 9, Some(7));
        ranges.work((PROCESS, ThreadId(8)), Nanos(25), 9, Some(7));
        // A range inside of one of its name counts once.
        ranges.begin(PLACE, ("step", false), Nanos(300), None);
        ranges.begin(PLACE, ("step", false), Nanos(310), None);
        ranges.work((PROCESS, THREAD), Nanos(320), 100, None);
        ranges.end(PLACE, Nanos(330));
        ranges.end(PLACE, Nanos(340));
        let list = ranges.list();
        let kernels = ranges.kernels(|_| "k");
        let told_kernels = kernels
            .iter()
            .map(|one| (&*one.range, one.count, one.time.0));
        let expected = [("step", 2, 501), ("forward", 1, 500)];
        assert_eq!(told_kernels.collect::<Vec<_>>(), expected);
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
            ("step", 150, 1, 3, 601),
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
        ranges.begin(PLACE, ("one", false), Nanos(10), None);
        ranges.begin(other, ("two", false), Nanos(20), None);
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
    fn a_range_around_very_many_others_is_kept() {
        let mut ranges = SummedRanges::default();
        ranges.begin(PLACE, ("epoch", false), Nanos(1), None);
        ranges.begin(PLACE, ("step", false), Nanos(2), Some(5));
        let last = MAX_RANGES as u64 + 100;
        for n in 10..last {
            ranges.begin(PLACE, ("op", true), Nanos(10 * n), None);
            ranges.end(PLACE, Nanos(10 * n + 5));
        }
        let thread = (PROCESS, THREAD);
        assert_eq!(
            ranges.stack(thread, Nanos(10 * last - 8)),
            ["epoch", "step", "op"]
        );
        // Long ago: the operators of that time are gone.
        assert_eq!(ranges.stack(thread, Nanos(102)), ["epoch", "step"]);
        let ended = ranges.end(PLACE, Nanos(10 * last)).unwrap();
        assert_eq!((ended.step, ended.start), (Some(5), Nanos(2)));
        ranges.end(PLACE, Nanos(10 * last + 1));
        let list = ranges.list();
        assert!(list.iter().all(|one| one.unfinished == 0), "{list:?}");
        assert_eq!(
            ranges.stack(thread, Nanos(10 * last - 2)),
            ["epoch", "step"]
        );
    }

    #[test]
    fn ends_without_a_begin_and_begins_without_an_end_harm_nothing() {
        let mut ranges = SummedRanges::default();
        ranges.end(PLACE, Nanos(5));
        for n in 0..MAX_RANGES as u64 + 10 {
            ranges.begin(PLACE, ("open", false), Nanos(n), None);
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
