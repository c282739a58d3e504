//! Work that calls have announced, until its records come: a runtime that delivers records of work late may never do so.

use gputrail_record::WorkId;
use gputrail_record::number_map::NumberMap;

/// Maximum number of announcements that are kept.
const MAX_ANNOUNCED: usize = 1 << 20;
/// Maximum number of pieces of work in each of the two generations of [`Announced::early`].
const MAX_EARLY: usize = 1 << 16;

/// The announced work of one process.
#[derive(Debug, Default)]
pub(super) struct Announced {
    /// Announced work whose records have not come.
    outstanding: NumberMap<WorkId, ()>,
    /// Work whose records came without an announcement, the latest ones last: the records of several threads come in
    /// parts, so that the announcement may follow. That of further nodes of a graph never does.
    early: [NumberMap<WorkId, ()>; 2],
}

impl Announced {
    /// A call has announced `work`.
    pub fn add(&mut self, work: WorkId) {
        let has_come = self
            .early
            .iter_mut()
            .any(|early| early.remove(&work).is_some());
        if !has_come && self.outstanding.len() < MAX_ANNOUNCED {
            self.outstanding.insert(work, ());
        }
    }

    /// The record of `work` has come.
    pub fn came(&mut self, work: WorkId) {
        if self.outstanding.remove(&work).is_some() {
            return;
        }
        if self.early[1].len() >= MAX_EARLY {
            self.early.swap(0, 1);
            self.early[1].clear();
        }
        self.early[1].insert(work, ());
    }

    /// The number of pieces of work whose records have not come.
    pub fn outstanding(&self) -> u64 {
        self.outstanding.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_before_or_after_their_announcement() {
        let mut announced = Announced::default();
        (1..=3).for_each(|work| announced.add(WorkId(work)));
        announced.came(WorkId(2));
        // A further node of a graph, and work whose announcement comes later.
        announced.came(WorkId(9));
        announced.came(WorkId(4));
        announced.add(WorkId(4));
        assert_eq!(announced.outstanding(), 2);
    }

    #[test]
    fn work_that_is_never_announced_takes_bounded_memory() {
        let mut announced = Announced::default();
        for work in 1..=5 * MAX_EARLY as u64 {
            announced.came(WorkId(work));
        }
        let kept: usize = announced.early.iter().map(|early| early.len()).sum();
        assert!(kept <= 2 * MAX_EARLY);
        announced.add(WorkId(5 * MAX_EARLY as u64));
        assert_eq!(announced.outstanding(), 0);
    }
}
