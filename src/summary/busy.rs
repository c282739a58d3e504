//! How long a device was busy: the union of intervals that come nearly in order.
//!
//! Intervals that do not touch are kept apart in a window of bounded size; when it is full, the
//! earliest one is closed. What comes later and reaches back before that is cut off, and counted.

use std::collections::BTreeMap;

use crate::record::Nanos;

/// Most intervals in the window.
const MOST: usize = 1 << 18;

/// When a device was busy.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Busy {
    /// When it first was.
    pub first: Nanos,
    /// When it last was.
    pub last: Nanos,
    /// For how long; what overlaps counts once.
    pub busy: Nanos,
    /// The longest time between two intervals: from, to; none if there was no gap.
    pub largest_gap: Option<(Nanos, Nanos)>,
    /// Intervals that came too late to be counted in full; 0 says that the rest is exact.
    pub late: u64,
}

impl Busy {
    /// The share of the time from first to last, 0 to 1.
    pub fn share(&self) -> f64 {
        match self.last.0.saturating_sub(self.first.0) {
            0 => 1.0,
            span => self.busy.0 as f64 / span as f64,
        }
    }
}

/// Adds up the busy time of a device.
#[derive(Debug)]
pub struct BusyTime {
    /// Start to end of the intervals in the window. They neither overlap nor touch.
    window: BTreeMap<u64, u64>,
    /// What has left the window; its `last` is where the window begins.
    closed: Option<Busy>,
    late: u64,
    most: usize,
}

impl Default for BusyTime {
    fn default() -> BusyTime {
        BusyTime::of_size(MOST)
    }
}

impl BusyTime {
    fn of_size(most: usize) -> BusyTime {
        BusyTime {
            window: BTreeMap::new(),
            closed: None,
            late: 0,
            most,
        }
    }

    /// The device was busy from `start` to `end`.
    pub fn add(&mut self, start: Nanos, end: Nanos) {
        let (mut start, mut end) = (start.0, end.0.max(start.0));
        if let Some(closed) = &self.closed
            && start < closed.last.0
        {
            self.late += 1;
            start = closed.last.0;
            if end <= start {
                return;
            }
        }
        // Often it goes on where the latest has not ended yet.
        if let Some(mut latest) = self.window.last_entry()
            && (*latest.key()..=*latest.get()).contains(&start)
        {
            let latest = latest.get_mut();
            *latest = end.max(*latest);
            return;
        }
        // Whatever begins before the new end and ends after the new start becomes part of it.
        while let Some((&other_start, &other_end)) = self.window.range(..=end).next_back() {
            if other_end < start {
                break;
            }
            self.window.remove(&other_start);
            start = start.min(other_start);
            end = end.max(other_end);
        }
        self.window.insert(start, end);
        if self.window.len() > self.most
            && let Some((start, end)) = self.window.pop_first()
        {
            close(&mut self.closed, start, end);
        }
    }

    /// The sum so far; none if there was nothing.
    pub fn busy(&self) -> Option<Busy> {
        let mut sum = self.closed;
        for (&start, &end) in &self.window {
            close(&mut sum, start, end);
        }
        sum.map(|sum| Busy {
            late: self.late,
            ..sum
        })
    }
}

/// Adds an interval that begins after all before it.
fn close(sum: &mut Option<Busy>, start: u64, end: u64) {
    let interval = Busy {
        first: Nanos(start),
        last: Nanos(end),
        busy: Nanos(end - start),
        largest_gap: None,
        late: 0,
    };
    let Some(sum) = sum else {
        *sum = Some(interval);
        return;
    };
    let gap = (sum.last, interval.first);
    let largest = sum.largest_gap.map_or(0, |(from, to)| to.0 - from.0);
    if start.saturating_sub(sum.last.0) > largest {
        sum.largest_gap = Some(gap);
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
            time.add(Nanos(*start), Nanos(*end));
        }
        time.busy()
    }

    #[test]
    fn what_overlaps_counts_once() {
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
    fn what_comes_too_late_is_counted_as_such() {
        let busy = sum(&[(10, 20), (30, 40), (50, 60), (5, 7), (15, 35)], 2).unwrap();
        assert_eq!((busy.busy.0, busy.late), (40, 2));
    }

    #[test]
    fn nothing_is_no_time() {
        assert_eq!(sum(&[], 3), None);
    }

    proptest! {
        #[test]
        fn in_a_window_that_is_large_enough_the_sum_is_exact(
            intervals in prop::collection::vec((0u64..500, 0u64..20), 1..60),
        ) {
            let intervals: Vec<_> = intervals.iter().map(|(start, length)| (*start, start + length)).collect();
            let mut covered = [false; 520];
            for (start, end) in &intervals {
                covered[*start as usize..*end as usize].fill(true);
            }
            let busy = sum(&intervals, 100).unwrap();
            prop_assert_eq!(busy.busy.0 as usize, covered.iter().filter(|covered| **covered).count());
            prop_assert_eq!(busy.first.0, intervals.iter().map(|i| i.0).min().unwrap());
            prop_assert_eq!(busy.last.0, intervals.iter().map(|i| i.1).max().unwrap());
            prop_assert_eq!(busy.late, 0);
        }
    }
}
