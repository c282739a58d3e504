//! Storage for the state of work, dropped long after the work has ended, so that a simulation of any length uses little
//! memory.

use std::collections::VecDeque;

/// Work, numbered in the order of submission.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct WorkIndex(pub(super) usize);

/// The number of entries to keep: far more than streams and events still refer to.
const MAX_ENTRIES: usize = 1 << 14;

/// The state of recent work.
#[derive(Debug)]
pub(super) struct Recent<T> {
    /// Index of the first that is remembered.
    first: usize,
    list: VecDeque<T>,
}

impl<T> Default for Recent<T> {
    fn default() -> Recent<T> {
        Recent {
            first: 0,
            list: VecDeque::new(),
        }
    }
}

impl<T> Recent<T> {
    /// The index of the next entry.
    pub(super) fn next(&self) -> WorkIndex {
        WorkIndex(self.first + self.list.len())
    }

    /// Appends an entry. If there are many, drops the oldest ones for which `ended` returns `true`.
    pub(super) fn push(&mut self, one: T, ended: impl Fn(&T) -> bool) {
        while self.list.len() >= MAX_ENTRIES && self.list.front().is_some_and(&ended) {
            self.list.pop_front();
            self.first += 1;
        }
        self.list.push_back(one);
    }

    /// The state of `work`, or `None` if it was dropped.
    pub(super) fn get(&self, work: WorkIndex) -> Option<&T> {
        self.list.get(work.0.checked_sub(self.first)?)
    }

    /// Like [`Recent::get`], mutable.
    pub(super) fn get_mut(&mut self, work: WorkIndex) -> Option<&mut T> {
        self.list.get_mut(work.0.checked_sub(self.first)?)
    }

    /// The latest entry.
    pub(super) fn last_mut(&mut self) -> Option<&mut T> {
        self.list.back_mut()
    }

    /// The state of work that has not ended and therefore exists.
    pub(super) fn live(&self, work: WorkIndex) -> &T {
        self.get(work).expect("it has not ended")
    }

    /// Like [`Recent::live`], mutable.
    pub(super) fn live_mut(&mut self, work: WorkIndex) -> &mut T {
        self.get_mut(work).expect("it has not ended")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ended_work_is_dropped() {
        let mut recent = Recent::default();
        for number in 0..MAX_ENTRIES + 10 {
            assert_eq!(recent.next(), WorkIndex(number));
            recent.push(number, |number| *number < 4);
        }
        assert_eq!(recent.get(WorkIndex(3)), None);
        assert_eq!(recent.live(WorkIndex(4)), &4);
        assert_eq!(recent.last_mut(), Some(&mut (MAX_ENTRIES + 9)));
    }
}
