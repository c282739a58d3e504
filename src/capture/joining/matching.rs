//! Which dispatch of one run of a program is which of another run.

use gputrail_record::{ExternalId, KernelDispatch, WorkId};
use std::collections::{HashMap, VecDeque};

/// A dispatch, as far as runs are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ComparedDispatch {
    pub work: WorkId,
    /// The number of the kernel's name.
    pub name: usize,
    pub external: ExternalId,
    pub grid: [u64; 3],
    pub workgroup: [u32; 3],
    /// Its place among all dispatches: when it was enqueued.
    pub order: (u64, u64),
}

impl ComparedDispatch {
    pub fn of(dispatch: &KernelDispatch, name: usize) -> ComparedDispatch {
        ComparedDispatch {
            work: dispatch.work.id,
            name,
            external: dispatch.work.external,
            grid: dispatch.grid,
            workgroup: dispatch.workgroup,
            order: (dispatch.work.enqueued.0, dispatch.work.id.0),
        }
    }
}

/// How many dispatches of a run do not match those of the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unmatched {
    /// Dispatches of the first run that the run does not have.
    pub missing: u64,
    /// Dispatches that the first run does not have.
    pub added: u64,
    /// Dispatches with another grid or workgroup.
    pub other_grid: u64,
    /// Dispatches that come in another order.
    pub other_order: u64,
}

impl Unmatched {
    /// The number of all of them.
    pub fn total(&self) -> u64 {
        self.missing + self.added + self.other_grid + self.other_order
    }
}

impl std::ops::AddAssign for Unmatched {
    fn add_assign(&mut self, other: Unmatched) {
        self.missing += other.missing;
        self.added += other.added;
        self.other_grid += other.other_grid;
        self.other_order += other.other_order;
    }
}

/// The pairs of dispatches of one queue that match: the n-th of a name and external id is the n-th of the other run, as far
/// as they come in the same order with the same grid. Both lists are in the order of their launch.
pub(super) fn pairs(
    first: &[ComparedDispatch],
    other: &[ComparedDispatch],
) -> (Vec<(WorkId, WorkId)>, Unmatched) {
    let mut unmatched = Unmatched::default();
    let mut places: HashMap<(usize, ExternalId), VecDeque<usize>> = HashMap::new();
    for (place, launch) in other.iter().enumerate() {
        let of_name = places.entry((launch.name, launch.external)).or_default();
        of_name.push_back(place);
    }
    let mut found = Vec::new();
    for launch in first {
        let of_name = places.get_mut(&(launch.name, launch.external));
        match of_name.and_then(VecDeque::pop_front) {
            Some(place) => found.push((launch, place)),
            None => unmatched.missing += 1,
        }
    }
    unmatched.added = (other.len() - found.len()) as u64;
    let in_order = longest_ascent(&found.iter().map(|(_, place)| *place).collect::<Vec<_>>());
    unmatched.other_order = (found.len() - in_order.len()) as u64;
    let mut pairs = Vec::with_capacity(in_order.len());
    for (launch, place) in in_order.into_iter().map(|index| found[index]) {
        let of_other = &other[place];
        if (launch.grid, launch.workgroup) == (of_other.grid, of_other.workgroup) {
            pairs.push((launch.work, of_other.work))
        } else {
            unmatched.other_grid += 1
        }
    }
    (pairs, unmatched)
}

/// The places of a longest ascending part of different `numbers`.
fn longest_ascent(numbers: &[usize]) -> Vec<usize> {
    // Of all ascents of a length, the place of the last number of the one that ends lowest.
    let mut lowest: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(numbers.len());
    for (place, number) in numbers.iter().enumerate() {
        let length = lowest.partition_point(|of| numbers[*of] < *number);
        before.push(length.checked_sub(1).map(|shorter| lowest[shorter]));
        match lowest.get_mut(length) {
            Some(last) => *last = place,
            None => lowest.push(place),
        }
    }
    let steps = std::iter::successors(lowest.last().copied(), |place| before[*place]);
    let mut ascent: Vec<usize> = steps.collect();
    ascent.reverse();
    ascent
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Launches of the named kernels with the work ids `from`, `from + 1`, and so on.
    fn launches(from: u64, names: &[usize]) -> Vec<ComparedDispatch> {
        let launch = |(place, name): (usize, &usize)| ComparedDispatch {
            work: WorkId(from + place as u64),
            name: *name,
            external: ExternalId::NONE,
            grid: [64, 1, 1],
            workgroup: [8, 1, 1],
            order: (place as u64, 0),
        };
        names.iter().enumerate().map(launch).collect()
    }

    fn numbers(pairs: &[(WorkId, WorkId)]) -> Vec<(u64, u64)> {
        pairs
            .iter()
            .map(|(first, other)| (first.0, other.0))
            .collect()
    }

    #[test]
    fn dispatches_match_by_name_and_order() {
        let (same, unmatched) = pairs(&launches(1, &[5, 6, 5]), &launches(11, &[5, 6, 5]));
        assert_eq!(numbers(&same), [(1, 11), (2, 12), (3, 13)]);
        assert_eq!(unmatched.total(), 0);
    }

    #[test]
    fn what_does_not_match_is_counted_by_its_reason() {
        let first = launches(1, &[5, 6, 7, 8, 5]);
        let mut other = launches(11, &[5, 7, 6, 9, 5]);
        other[0].grid[1] = 2;
        let (same, unmatched) = pairs(&first, &other);
        let expected = Unmatched {
            missing: 1,
            added: 1,
            other_grid: 1,
            other_order: 1,
        };
        assert_eq!(unmatched, expected);
        assert_eq!(numbers(&same)[1..], [(5, 15)]);
        // Another external id is another dispatch.
        let mut other = launches(11, &[5]);
        other[0].external = ExternalId(3);
        let (none, unmatched) = pairs(&launches(1, &[5]), &other);
        assert_eq!((none.len(), unmatched.missing, unmatched.added), (0, 1, 1));
    }

    #[test]
    fn a_longest_ascent_leaves_out_as_few_as_possible() {
        assert_eq!(longest_ascent(&[]), [0; 0]);
        assert_eq!(longest_ascent(&[3, 0, 1, 2]), [1, 2, 3]);
        assert_eq!(longest_ascent(&[0, 4, 1, 2, 3, 5]), [0, 2, 3, 4, 5]);
    }
}
