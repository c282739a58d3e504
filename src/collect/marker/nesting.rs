//! Ranges that are pushed on a thread, and nest.

use crate::process;
use gputrail_record::{Kind, Marker};
use std::cell::Cell;

/// The ranges that are pushed on a thread and nest in each other: those of a domain, or of all that nest together.
#[derive(Debug)]
pub struct PushedRanges {
    /// Their number.
    now: Cell<u32>,
    /// Their number after the latest marker that was recorded.
    recorded: Cell<u32>,
    /// The lowest number since then.
    lowest: Cell<u32>,
}

/// A push or pop.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ChangedLevel {
    /// The level of the range, from 0.
    pub level: u32,
    /// The number of ranges that ended without a record before it.
    unrecorded: u32,
}

impl ChangedLevel {
    /// [`Marker::id`] in a domain whose ranges nest by themselves.
    #[inline]
    pub fn id(self) -> u64 {
        u64::from(self.unrecorded) << 32 | (u64::from(self.level) + 1)
    }

    /// [`Marker::id`] where ranges of all domains nest in each other.
    #[inline]
    pub fn id_in_all_domains(self) -> u64 {
        Marker::id_in_all_domains(self.id())
    }
}

impl PushedRanges {
    /// No ranges.
    pub const fn new() -> PushedRanges {
        PushedRanges {
            now: Cell::new(0),
            recorded: Cell::new(0),
            lowest: Cell::new(0),
        }
    }

    /// Their number.
    pub fn level(&self) -> u32 {
        self.now.get()
    }

    /// A range begins.
    #[inline]
    pub fn push(&self) -> ChangedLevel {
        let level = self.now.get();
        let unrecorded = self.move_to(level.saturating_add(1), is_recorded());
        ChangedLevel { level, unrecorded }
    }

    /// The innermost range ends, if there is one.
    #[inline]
    pub fn pop(&self) -> Option<ChangedLevel> {
        let level = self.now.get().checked_sub(1)?;
        let unrecorded = self.move_to(level, is_recorded());
        Some(ChangedLevel { level, unrecorded })
    }

    /// Changes the number of ranges. Returns how many of those that were open at the latest recorded marker have ended
    /// since without a record, if this change is recorded.
    #[inline]
    fn move_to(&self, now: u32, is_on: bool) -> u32 {
        self.now.set(now);
        if is_on {
            let unrecorded = self.recorded.get().saturating_sub(self.lowest.get());
            self.recorded.set(now);
            self.lowest.set(now);
            return unrecorded;
        }
        self.lowest.set(self.lowest.get().min(now));
        0
    }
}

/// Whether markers are recorded now.
#[inline]
fn is_recorded() -> bool {
    !process::buffers_for(Kind::MARKER).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_end_unrecorded_are_counted_with_the_next_record() {
        let ranges = PushedRanges::new();
        assert_eq!((ranges.move_to(1, true), ranges.move_to(2, true)), (0, 0));
        // Both end, and three others begin.
        for now in [1, 0, 1, 2, 3] {
            assert_eq!(ranges.move_to(now, false), 0);
        }
        assert_eq!((ranges.move_to(2, true), ranges.move_to(1, true)), (2, 0));
        // An inner one begins and ends.
        for now in [2, 1] {
            assert_eq!(ranges.move_to(now, false), 0);
        }
        assert_eq!(ranges.move_to(0, true), 0);
    }
}
