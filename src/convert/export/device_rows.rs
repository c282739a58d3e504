//! Rows of device work: on each of them, no work overlaps other work.

use std::collections::{BTreeMap, HashMap, HashSet};

use gputrail_trace::model::QueueIndex;

/// Ids of rows that are not those of streams count from here.
const FIRST_ROW: u64 = 0x7800_0000;
/// Most pieces of work of a row whose times are remembered. What begins before them takes another row.
const MAX_REMEMBERED: usize = 1 << 12;

/// The device, the stream and the queue of work.
type StreamQueue = (u64, u32, QueueIndex);

/// A row for a piece of work.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct RowOfWork {
    /// Its id among the rows of its device.
    pub tid: u64,
    /// Whether it has no other work yet.
    pub is_new: bool,
    /// Whether it is the first row of its queue and stream.
    pub is_first: bool,
}

/// The rows of all devices.
#[derive(Debug, Default)]
pub(super) struct DeviceRows {
    queues: HashMap<StreamQueue, Vec<RowIntervals>>,
    /// Devices and streams whose number is the id of a row.
    taken: HashSet<(u64, u32)>,
    count: u64,
}

#[derive(Debug)]
struct RowIntervals {
    tid: u64,
    /// Ends of pieces of work, by their begins.
    intervals: BTreeMap<u64, u64>,
    /// When the latest piece ended that is not remembered.
    forgotten: u64,
}

impl RowIntervals {
    /// Takes an interval if it overlaps no other one.
    fn take(&mut self, (start, end): (u64, u64)) -> bool {
        let before = self.intervals.range(..=start).next_back();
        let after = self.intervals.range(start..).find(|next| *next.1 > start);
        let overlaps = before.is_some_and(|(_, before)| *before > start)
            || after.is_some_and(|(after, _)| *after < end);
        if start < self.forgotten || overlaps {
            return false;
        }
        self.intervals.insert(start, end);
        if self.intervals.len() > MAX_REMEMBERED {
            let middle = self.intervals.keys().nth(MAX_REMEMBERED / 2).copied();
            let later = self.intervals.split_off(&middle.unwrap_or(start));
            let earlier = std::mem::replace(&mut self.intervals, later);
            let ends = earlier.values().copied().max();
            self.forgotten = self.forgotten.max(ends.unwrap_or(0));
        }
        true
    }
}

impl DeviceRows {
    /// The row for work of a queue that takes this time: the first one that is free.
    pub fn row(&mut self, key: StreamQueue, interval: (u64, u64)) -> RowOfWork {
        let (device, stream, _) = key;
        let rows = self.queues.entry(key).or_default();
        if let Some(place) = rows.iter_mut().position(|row| row.take(interval)) {
            return RowOfWork {
                tid: rows[place].tid,
                is_new: false,
                is_first: place == 0,
            };
        }
        let is_first = rows.is_empty();
        let tid = if is_first && self.taken.insert((device, stream)) {
            u64::from(stream)
        } else {
            self.count += 1;
            FIRST_ROW + self.count
        };
        rows.push(RowIntervals {
            tid,
            intervals: BTreeMap::from([interval]),
            forgotten: 0,
        });
        RowOfWork {
            tid,
            is_new: true,
            is_first,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(intervals: &[(u64, u64)]) -> Vec<u64> {
        let mut rows = DeviceRows::default();
        let place = |interval: &(u64, u64)| rows.row((0, 7, QueueIndex(0)), *interval).tid;
        intervals.iter().map(place).collect()
    }

    #[test]
    fn work_that_overlaps_takes_a_row_of_its_own_in_whatever_order_it_comes() {
        let second = FIRST_ROW + 1;
        assert_eq!(rows(&[(10, 20), (20, 30), (25, 26)]), [7, 7, second]);
        assert_eq!(rows(&[(20, 30), (10, 20), (10, 21)]), [7, 7, second]);
        assert_eq!(rows(&[(10, 20), (30, 40), (5, 50)]), [7, 7, second]);
        // Work that takes no time overlaps nothing at its begin or end.
        assert_eq!(
            rows(&[(10, 10), (10, 20), (20, 20), (15, 15)]),
            [7, 7, 7, second]
        );
        assert_eq!(rows(&[(10, 20), (10, 10)]), [7, second]);
    }

    #[test]
    fn queues_of_several_processes_do_not_share_the_row_of_a_stream() {
        let mut rows = DeviceRows::default();
        let first = rows.row((0, 7, QueueIndex(0)), (1, 2));
        let second = rows.row((0, 7, QueueIndex(1)), (3, 4));
        let other = rows.row((1, 7, QueueIndex(2)), (3, 4));
        assert_eq!((first.tid, second.tid, other.tid), (7, FIRST_ROW + 1, 7));
        assert!(second.is_new && second.is_first);
    }

    #[test]
    fn a_row_remembers_its_latest_work() {
        let mut rows = DeviceRows::default();
        let count = 3 * MAX_REMEMBERED as u64;
        for time in 0..count {
            let row = rows.row((0, 7, QueueIndex(0)), (10 * time, 10 * time + 10));
            assert_eq!(row.tid, 7);
        }
        let remembered = rows
            .queues
            .values()
            .flatten()
            .map(|row| row.intervals.len());
        assert!(remembered.sum::<usize>() <= MAX_REMEMBERED);
        assert_ne!(rows.row((0, 7, QueueIndex(0)), (5, 6)).tid, 7);
    }
}
