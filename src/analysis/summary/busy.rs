//! The time for which a device was busy: the union of intervals that come nearly in order.
//!
//! Intervals that do not touch are kept in a window of bounded size; when it is full, the earliest one is closed. Most
//! intervals come in order; the others are sorted in, many at once. An interval that reaches back before the window is
//! cut off and counted.

use std::collections::{BTreeMap, VecDeque};

use super::Occasion;
use super::distribution::Distribution;

use gputrail_record::Nanos;

/// Maximum number of intervals in the window.
const MAX_INTERVALS: usize = 1 << 15;
/// Maximum number of intervals that wait to be sorted in: sorting all at once costs little more than sorting one.
const MAX_UNSORTED: usize = 1 << 12;

/// The work that ends a gap.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Opener {
    /// Its label, a number.
    pub label: u32,
    /// When it was enqueued, if known.
    pub enqueued: Option<Nanos>,
}

/// The gaps that work with one label ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gaps {
    /// The lengths of the gaps, ns.
    pub times: Distribution,
    /// The part of the gaps before the work was enqueued: the host gave the device nothing to do.
    pub host: Nanos,
    /// The longest part of a gap before the work was enqueued.
    pub longest_host: Option<Occasion>,
    /// The part of the gaps after the work was enqueued: the device, its driver or other work delayed it.
    pub waiting: Nanos,
}

/// The busy time of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Busy {
    /// The begin of the first interval.
    pub first: Nanos,
    /// The end of the last interval.
    pub last: Nanos,
    /// The busy time; overlapping intervals count once.
    pub busy: Nanos,
    /// The longest gap between two intervals: from, to; `None` without a gap.
    pub largest_gap: Option<(Nanos, Nanos)>,
    /// All gaps, by the label of the work that ended them.
    pub gaps: BTreeMap<u32, Gaps>,
    /// The number of intervals that came too late to be counted in full; 0 if the result is exact.
    pub late: u64,
}

impl Busy {
    /// The share of busy time from the first begin to the last end, 0 to 1.
    pub fn share(&self) -> f64 {
        match self.last.0.saturating_sub(self.first.0) {
            0 => 1.0,
            span => self.busy.0 as f64 / span as f64,
        }
    }
}

/// A busy time without a gap.
#[derive(Copy, Clone, Debug)]
struct BusyInterval {
    start: u64,
    end: u64,
    /// When the work that begins it was enqueued, if known.
    enqueued: Nanos,
    /// The label of the work that begins it, or [`NOBODY`].
    label: u32,
}

/// The label of work that ends no gap of interest.
const NOBODY: u32 = u32::MAX;

impl BusyInterval {
    fn new(start: u64, end: u64, opener: Option<Opener>) -> BusyInterval {
        let enqueued = opener.and_then(|opener| opener.enqueued);
        BusyInterval {
            start,
            end,
            enqueued: enqueued.unwrap_or(Nanos::NONE),
            label: opener.map_or(NOBODY, |opener| opener.label),
        }
    }
}

/// Adds up the busy time of a device.
#[derive(Debug)]
pub struct BusyTime {
    /// The intervals in the window, in order, without overlap or contact.
    window: VecDeque<BusyInterval>,
    /// Intervals that came out of order, and all that came after them: not in the window yet.
    unsorted: Vec<BusyInterval>,
    /// The intervals that have left the window; its `last` is the begin of the window.
    closed: Option<Busy>,
    late: u64,
    most: usize,
    /// Spans in which nothing was recorded, in order and apart: a gap that meets one is not known to be one.
    unrecorded: Vec<(u64, u64)>,
}

impl Default for BusyTime {
    fn default() -> BusyTime {
        BusyTime::of_size(MAX_INTERVALS)
    }
}

impl BusyTime {
    fn of_size(most: usize) -> BusyTime {
        BusyTime {
            window: VecDeque::new(),
            unsorted: Vec::new(),
            closed: None,
            late: 0,
            most,
            unrecorded: Vec::new(),
        }
    }

    /// Nothing was recorded from `start` to `end`: gaps that meet this span do not count. Must be called before the work
    /// after it is added.
    pub fn exclude(&mut self, start: Nanos, end: Nanos) {
        let spans = &mut self.unrecorded;
        let first = spans.partition_point(|span| span.1 < start.0);
        let behind = spans.partition_point(|span| span.0 <= end.0).max(first);
        let (mut from, mut to) = (start.0, end.0);
        if let [earliest, ..] = spans[first..behind] {
            (from, to) = (from.min(earliest.0), to.max(spans[behind - 1].1));
        }
        if spans.len() < MAX_INTERVALS || behind > first {
            spans.splice(first..behind, [(from, to)]);
        }
    }

    /// Adds the interval from `start` to `end`. `opener` is the work that began it, if its gap is of interest.
    pub fn add(&mut self, start: Nanos, end: Nanos, opener: Option<Opener>) {
        let (mut start, end) = (start.0, end.0.max(start.0));
        if let Some(closed) = &self.closed
            && start < closed.last.0
        {
            self.late += 1;
            start = closed.last.0;
            if end <= start {
                return;
            }
        }
        let interval = BusyInterval::new(start, end, opener);
        // Most intervals begin after all others, or before the latest has ended.
        let in_order = self
            .window
            .back()
            .is_none_or(|latest| latest.start <= start);
        if self.unsorted.is_empty() && in_order {
            let touches = self.window.back().is_some_and(|latest| start <= latest.end);
            if !touches {
                // Done before the window grows beyond its size, which would double its allocation.
                self.keep_to_size(self.most - 1);
            }
            append(&mut self.window, interval);
            return;
        }
        self.unsorted.push(interval);
        if self.unsorted.len() >= self.most.min(MAX_UNSORTED) {
            sort_in(&mut self.window, &mut self.unsorted);
            self.keep_to_size(self.most);
        }
    }

    /// Closes the earliest intervals until `most` are left.
    fn keep_to_size(&mut self, most: usize) {
        while self.window.len() > most
            && let Some(interval) = self.window.pop_front()
        {
            close(&mut self.closed, interval, &self.unrecorded);
        }
    }

    /// The busy time so far; `None` without intervals.
    pub fn busy(&self) -> Option<Busy> {
        let mut sum = self.closed.clone();
        let (mut window, mut unsorted) = (self.window.clone(), self.unsorted.clone());
        sort_in(&mut window, &mut unsorted);
        for interval in window {
            close(&mut sum, interval, &self.unrecorded);
        }
        sum.map(|sum| Busy {
            late: self.late,
            ..sum
        })
    }
}

/// Adds an interval that begins no earlier than the latest.
fn append(window: &mut VecDeque<BusyInterval>, interval: BusyInterval) {
    match window.back_mut() {
        Some(latest) if interval.start <= latest.end => latest.end = latest.end.max(interval.end),
        _ => window.push_back(interval),
    }
}

/// Sorts in the intervals that came out of order. Reads only the part of the window after the first of them.
fn sort_in(window: &mut VecDeque<BusyInterval>, unsorted: &mut Vec<BusyInterval>) {
    let Some(first) = unsorted.iter().map(|interval| interval.start).min() else {
        return;
    };
    let behind = window.partition_point(|interval| interval.start <= first);
    // Intervals with equal begins keep the order in which they came.
    let mut all: Vec<BusyInterval> = window.drain(behind..).collect();
    all.append(unsorted);
    all.sort_by_key(|interval| interval.start);
    // Exactly as many: the allocation is kept.
    window.reserve_exact(all.len());
    for interval in all {
        append(window, interval);
    }
}

/// Adds an interval that begins after all earlier ones.
fn close(sum: &mut Option<Busy>, interval: BusyInterval, unrecorded: &[(u64, u64)]) {
    let BusyInterval {
        start,
        end,
        enqueued,
        label,
    } = interval;
    let interval = Busy {
        first: Nanos(start),
        last: Nanos(end),
        busy: Nanos(end - start),
        largest_gap: None,
        gaps: BTreeMap::new(),
        late: 0,
    };
    let Some(sum) = sum else {
        *sum = Some(interval);
        return;
    };
    let gap = (sum.last, interval.first);
    let largest = sum.largest_gap.map_or(0, |(from, to)| to.0 - from.0);
    let next = unrecorded.partition_point(|span| span.1 <= gap.0.0);
    let length = if unrecorded.get(next).is_some_and(|span| span.0 < start) {
        0
    } else {
        start.saturating_sub(sum.last.0)
    };
    if length > largest {
        sum.largest_gap = Some(gap);
    }
    if label != NOBODY && length > 0 {
        let gaps = sum.gaps.entry(label).or_default();
        gaps.times.add(length);
        if enqueued.is_some() {
            let host = enqueued.0.clamp(gap.0.0, start) - gap.0.0;
            gaps.host = Nanos(gaps.host.0.saturating_add(host));
            let longest = Occasion {
                start: gap.0,
                took: host,
            };
            Occasion::keep_longest(&mut gaps.longest_host, Some(longest));
            gaps.waiting = Nanos(gaps.waiting.0.saturating_add(length - host));
        }
    }
    sum.busy = Nanos(sum.busy.0 + (end - start));
    sum.last = interval.last;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(intervals: &[(u64, u64)], most: usize) -> Option<Busy> {
        let mut time = BusyTime::of_size(most);
        for (start, end) in intervals {
            time.add(Nanos(*start), Nanos(*end), None);
        }
        time.busy()
    }

    #[test]
    fn overlapping_intervals_count_once() {
        let busy = sum(&[(10, 20), (15, 25), (40, 50), (12, 14)], 10).unwrap();
        assert_eq!((busy.first.0, busy.last.0, busy.busy.0), (10, 50, 25));
        assert_eq!(busy.largest_gap, Some((Nanos(25), Nanos(40))));
        assert_eq!(busy.share(), 0.625);
    }

    #[test]
    fn an_interval_that_bridges_others_takes_them_in() {
        let busy = sum(&[(0, 1), (5, 6), (10, 11), (1, 10)], 10).unwrap();
        assert_eq!((busy.busy.0, busy.largest_gap), (11, None));
    }

    #[test]
    fn intervals_that_come_too_late_are_counted() {
        let busy = sum(&[(10, 20), (30, 40), (50, 60), (5, 7), (15, 35)], 2).unwrap();
        assert_eq!((busy.busy.0, busy.late), (40, 2));
    }

    #[test]
    fn a_gap_is_the_hosts_until_its_work_is_enqueued() {
        let mut time = BusyTime::default();
        let mut add = |start, end, label, enqueued: Option<u64>| {
            let enqueued = enqueued.map(Nanos);
            time.add(Nanos(start), Nanos(end), Some(Opener { label, enqueued }));
        };
        add(0, 10, 1, Some(0));
        add(100, 110, 2, Some(70));
        add(105, 120, 3, Some(90));
        add(130, 140, 2, Some(50));
        add(150, 160, 4, None);
        let gaps = time.busy().unwrap().gaps;
        let told = |label: u32| {
            let gaps = &gaps[&label];
            (
                gaps.times.count,
                gaps.times.total,
                gaps.host.0,
                gaps.waiting.0,
            )
        };
        assert_eq!(told(2), (2, 100, 60, 40));
        assert_eq!(told(4), (1, 10, 0, 0));
        assert_eq!(gaps.len(), 2, "what overlaps ends no gap");
    }

    #[test]
    fn what_is_not_recorded_is_no_gap() {
        let mut time = BusyTime::default();
        for (start, end) in [(12, 30), (80, 90), (25, 85), (300, 400)] {
            time.exclude(Nanos(start), Nanos(end));
        }
        assert_eq!(time.unrecorded, [(12, 90), (300, 400)]);
        for start in [0, 100, 115] {
            let opener = Opener {
                label: 1,
                enqueued: None,
            };
            time.add(Nanos(start), Nanos(start + 10), Some(opener));
        }
        let busy = time.busy().unwrap();
        assert_eq!(busy.largest_gap, Some((Nanos(110), Nanos(115))));
        assert_eq!((busy.gaps[&1].times.count, busy.busy.0), (1, 30));
    }

    #[test]
    fn nothing_is_no_time() {
        assert_eq!(sum(&[], 3), None);
    }

    proptest! {
        #[test]
        fn in_a_window_that_is_large_enough_the_sum_is_exact(
            intervals in prop::collection::vec((0u64..500, 0u64..20), 1..700),
        ) {
            let intervals: Vec<_> = intervals.iter().map(|(start, length)| (*start, start + length)).collect();
            let mut covered = [false; 520];
            for (start, end) in &intervals {
                covered[*start as usize..*end as usize].fill(true);
            }
            // As many fit in without touching each other.
            let busy = sum(&intervals, 260).unwrap();
            prop_assert_eq!(busy.busy.0 as usize, covered.iter().filter(|covered| **covered).count());
            prop_assert_eq!(busy.first.0, intervals.iter().map(|i| i.0).min().unwrap());
            prop_assert_eq!(busy.last.0, intervals.iter().map(|i| i.1).max().unwrap());
            prop_assert_eq!(busy.late, 0);
        }
    }
}
