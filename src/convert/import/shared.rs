//! Collective operations, in which several ranks take part, and the alignment of the ranks' clocks by them.
//!
//! No rank leaves an all-reduce or a barrier before the last one has come, and all leave it at nearly the same time. So the
//! ends of one operation on two ranks show how far their clocks are apart. The operations of a group are told apart by the
//! sequence numbers that the recording gives, or else by their order, if all ranks have the same number of them.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

use gputrail_record::Nanos;
use gputrail_trace::model::SharedEvent;

/// Maximum number of operations of a recording that are used.
const MAX_OPERATIONS: usize = 1 << 14;
/// Maximum number of operations of all recordings that are used.
const MAX_SHARED: usize = 1 << 20;
/// Minimum number of operations that two recordings share.
const MIN_SHARED: usize = 3;
/// Maximum median deviation of the ends from each other, ns. If it is larger, they are not ends of the same operations.
const MAX_ERROR: u64 = 1_000_000;

/// Parts of the names of operations that no rank leaves before all have come.
const MEETINGS: [&str; 8] = [
    "allreduce",
    "all_reduce",
    "allgather",
    "all_gather",
    "reducescatter",
    "reduce_scatter",
    "alltoall",
    "barrier",
];

/// A collective operation of a recording.
#[derive(Copy, Clone, Debug)]
struct CollectiveOperation {
    /// A hash of the group of ranks and the name of the operation.
    group: u64,
    sequence: Option<u64>,
    start: i64,
    end: i64,
}

/// The collective operations of a recording.
#[derive(Debug, Default)]
pub(super) struct Operations {
    list: Vec<CollectiveOperation>,
}

/// Equal in all processes and runs.
fn hash(of: impl Hash) -> u64 {
    foldhash::fast::FixedState::default().hash_one(of)
}

impl Operations {
    /// Adds an operation called `name` of a group of ranks, if it is one that all leave at the same time.
    pub fn add(
        &mut self,
        name: &str,
        group: (&str, &str),
        sequence: Option<u64>,
        (start, end): (i64, i64),
    ) {
        let name = name.to_ascii_lowercase();
        let meets = MEETINGS.iter().any(|part| name.contains(part));
        if meets && self.list.len() < MAX_OPERATIONS {
            self.list.push(CollectiveOperation {
                group: hash((group, name)),
                sequence,
                start,
                end,
            });
        }
    }

    /// The ends of the operations, under keys that are equal on all ranks that take part. `time` converts a time of the
    /// recording.
    pub fn shared(mut self, time: impl Fn(i64) -> Nanos) -> Vec<SharedEvent> {
        self.list.sort_by_key(|one| (one.group, one.start));
        let mut shared = Vec::with_capacity(self.list.len());
        for of_group in self.list.chunk_by(|one, other| one.group == other.group) {
            for (place, one) in of_group.iter().enumerate() {
                let key = match one.sequence {
                    Some(number) => hash((one.group, number)),
                    // Without numbers, places mean the same only if all ranks have as many.
                    None => hash((one.group, place, of_group.len())),
                };
                let end = time(one.end);
                shared.push(SharedEvent { key, end });
            }
        }
        shared
    }
}

/// The clock of a recording, aligned by the operations that it shares with earlier ones.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Alignment {
    /// Nanoseconds by which its times were moved.
    pub moved: i64,
    /// Half of the operations end within this distance of those of the other ranks, ns.
    pub error: u64,
    /// The number of shared operations.
    pub operations: usize,
}

/// The ends of the operations of all recordings so far, in the clock of the stream.
#[derive(Debug, Default)]
pub(super) struct Meetings {
    ends: HashMap<u64, u64, foldhash::fast::FixedState>,
}

fn median(list: &mut [i64]) -> i64 {
    let middle = list.len() / 2;
    *list.select_nth_unstable(middle).1
}

impl Meetings {
    /// How to move a recording whose times have been moved by `shift` already; `None` if it shares too few operations with
    /// the earlier ones, or if the ends do not agree.
    pub fn align(&self, own: &[SharedEvent], shift: u64) -> Option<Alignment> {
        let difference = |one: &SharedEvent| {
            let known = self.ends.get(&one.key)?;
            Some(known.wrapping_sub(one.end.0.wrapping_add(shift)) as i64)
        };
        let mut differences: Vec<i64> = own.iter().filter_map(difference).collect();
        if differences.len() < MIN_SHARED {
            return None;
        }
        let moved = median(&mut differences);
        let deviations = differences.iter();
        let mut deviations: Vec<i64> = deviations
            .map(|one| i64::try_from(one.abs_diff(moved)).unwrap_or(i64::MAX))
            .collect();
        let error = median(&mut deviations) as u64;
        (error <= MAX_ERROR).then_some(Alignment {
            moved,
            error,
            operations: differences.len(),
        })
    }

    /// Adds the operations of a recording whose times are moved by `shift`.
    pub fn add(&mut self, own: &[SharedEvent], shift: u64) {
        for one in own {
            if self.ends.len() < MAX_SHARED {
                let end = one.end.0.wrapping_add(shift);
                self.ends.entry(one.key).or_insert(end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The operations of a rank whose clock is ahead by `ahead`, and that leaves the operations some ns late.
    fn rank(count: u64, ahead: i64, late: impl Fn(i64) -> i64) -> Vec<SharedEvent> {
        let mut operations = Operations::default();
        for number in 0..count as i64 {
            let end = 1_000_000 * (number + 1) + ahead + late(number);
            operations.add("allreduce", ("0", "[0, 1]"), None, (end - 500, end));
        }
        operations.shared(|time| Nanos(time as u64))
    }

    #[test]
    fn clocks_are_aligned_by_the_median_of_the_ends() {
        let mut meetings = Meetings::default();
        meetings.add(&rank(9, 0, |_| 0), 0);
        let own = rank(9, 40_000, |number| number % 3 * 10);
        let alignment = meetings.align(&own, 0).unwrap();
        assert_eq!(alignment.moved, -40_010);
        assert_eq!((alignment.error, alignment.operations), (10, 9));
        // What the times of day have moved already is not moved again.
        let moved = meetings.align(&own, 1000).unwrap().moved;
        assert_eq!(moved, -41_010);
    }

    #[test]
    fn other_numbers_of_operations_and_ends_that_disagree_align_nothing() {
        let mut meetings = Meetings::default();
        meetings.add(&rank(9, 0, |_| 0), 0);
        assert_eq!(meetings.align(&rank(8, 7, |_| 0), 0), None);
        assert_eq!(meetings.align(&rank(2, 7, |_| 0), 0), None);
        let wild = rank(9, 0, |number| number * 3_000_000);
        assert_eq!(meetings.align(&wild, 0), None);
    }

    #[test]
    fn numbers_of_operations_tell_them_apart_where_the_first_ones_are_missing() {
        let numbered = |first: u64, ahead: i64| {
            let mut operations = Operations::default();
            for number in first..first + 5 {
                let end = 1_000_000 * number as i64 + ahead;
                operations.add("_allgather_base", ("0", ""), Some(number), (end - 5, end));
                operations.add("send", ("0", ""), Some(number), (end - 5, end + 77));
            }
            operations.shared(|time| Nanos(time as u64))
        };
        let mut meetings = Meetings::default();
        meetings.add(&numbered(1, 0), 0);
        let alignment = meetings.align(&numbered(3, 500), 0).unwrap();
        assert_eq!((alignment.moved, alignment.operations), (-500, 3));
    }
}
