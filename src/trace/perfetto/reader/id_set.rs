//! A set of numbers that are mostly consecutive: its memory depends on the number of gaps.

use std::collections::BTreeMap;

/// Maximum number of runs.
const MAX_RUNS: usize = 1 << 20;

/// A set of numbers.
#[derive(Debug, Default)]
pub(super) struct IdSet {
    /// First number of each run, and the number after its last one. Runs do not touch.
    runs: BTreeMap<u64, u64>,
    /// Number of ids that were left out for lack of space.
    left_out: u64,
}

impl IdSet {
    /// Adds a number, and returns whether it is new.
    pub fn insert(&mut self, number: u64) -> bool {
        let before = self.runs.range(..=number).next_back();
        let before = before.map(|(first, end)| (*first, *end));
        if before.is_some_and(|(_, end)| number < end) {
            return false;
        }
        let Some(next) = number.checked_add(1) else {
            // The largest number has no end of its run.
            self.left_out += 1;
            return true;
        };
        let after = self.runs.get(&next).copied();
        match (before.filter(|(_, end)| *end == number), after) {
            (Some((first, _)), Some(end)) => {
                self.runs.remove(&next);
                self.runs.insert(first, end);
            }
            (Some((first, _)), None) => drop(self.runs.insert(first, next)),
            (None, Some(end)) => {
                self.runs.remove(&next);
                self.runs.insert(number, end);
            }
            (None, None) if self.runs.len() >= MAX_RUNS => self.left_out += 1,
            (None, None) => drop(self.runs.insert(number, next)),
        }
        true
    }

    /// Whether the number has been added.
    pub fn has(&self, number: u64) -> bool {
        let before = self.runs.range(..=number).next_back();
        before.is_some_and(|(_, end)| number < *end)
    }

    /// Whether no number was left out.
    pub fn is_complete(&self) -> bool {
        self.left_out == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn it_holds_what_was_added(numbers in prop::collection::vec(0_u64..60, 0..80)) {
            let (mut set, mut expected) = (IdSet::default(), HashSet::new());
            for number in &numbers {
                prop_assert_eq!(set.insert(*number), expected.insert(*number));
            }
            for number in 0..61 {
                prop_assert_eq!(set.has(number), expected.contains(&number));
            }
        }
    }

    #[test]
    fn numbers_in_a_row_take_one_run() {
        let mut set = IdSet::default();
        for number in (0..1000).step_by(2).chain((1..1000).step_by(2)) {
            assert!(set.insert(number));
        }
        assert_eq!(set.runs.len(), 1);
        assert!(set.insert(u64::MAX) && !set.is_complete());
    }
}
