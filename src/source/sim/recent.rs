//! What is known of each piece of work, until long after it has ended: a simulation of any length takes little memory.

use std::collections::VecDeque;

use super::machine::WorkIndex;

/// Work that is remembered after it has ended: far more than streams and events still refer to.
const KEPT: usize = 1 << 14;

/// Something about each piece of work.
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
    /// Index of the work that comes next.
    pub(super) fn next(&self) -> WorkIndex {
        WorkIndex(self.first + self.list.len())
    }

    /// Adds that work. Of the oldest, whatever `ended` says of is forgotten when there is enough behind it.
    pub(super) fn push(&mut self, one: T, ended: impl Fn(&T) -> bool) {
        while self.list.len() >= KEPT && self.list.front().is_some_and(&ended) {
            self.list.pop_front();
            self.first += 1;
        }
        self.list.push_back(one);
    }

    /// What is known of work; none if it ended long ago.
    pub(super) fn get(&self, work: WorkIndex) -> Option<&T> {
        self.list.get(work.0.checked_sub(self.first)?)
    }

    /// The same, to change it.
    pub(super) fn get_mut(&mut self, work: WorkIndex) -> Option<&mut T> {
        self.list.get_mut(work.0.checked_sub(self.first)?)
    }

    /// The latest.
    pub(super) fn last_mut(&mut self) -> Option<&mut T> {
        self.list.back_mut()
    }

    /// The same of work that has not ended, which is never forgotten.
    pub(super) fn live(&self, work: WorkIndex) -> &T {
        self.get(work).expect("it has not ended")
    }

    /// The same, to change it.
    pub(super) fn live_mut(&mut self, work: WorkIndex) -> &mut T {
        self.get_mut(work).expect("it has not ended")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_ended_is_forgotten_and_what_has_not_stays() {
        let mut recent = Recent::default();
        for number in 0..KEPT + 10 {
            assert_eq!(recent.next(), WorkIndex(number));
            recent.push(number, |number| *number < 4);
        }
        assert_eq!(recent.get(WorkIndex(3)), None);
        assert_eq!(recent.live(WorkIndex(4)), &4);
        assert_eq!(recent.last_mut(), Some(&mut (KEPT + 9)));
    }
}
