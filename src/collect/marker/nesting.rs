//! Domains of markers whose ranges nest by themselves on each thread, as those of NVTX do.

use super::text::KeptText;
use super::{Event, Text, UNBALANCED, is_wanted, report};
use crate::collect::process;
use crate::record::{Kind, MarkerKind};
use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, Ordering};

/// A domain of markers. It lives for ever.
#[derive(Debug)]
pub(crate) struct MarkerDomain {
    name: KeptText,
    number: u32,
}

/// Why a push or pop has no level.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum NoLevel {
    /// Levels are not counted: the recording has ended, or there are too many domains or threads.
    Uncounted,
    /// A pop, and no range is pushed.
    Empty,
}

/// Numbers of built-in domains are below this.
const BUILT_IN: u32 = 8;

/// The number of the next domain.
static NEXT: AtomicU32 = AtomicU32::new(BUILT_IN);

impl MarkerDomain {
    /// A built-in domain.
    pub const fn built_in(name: &'static str, number: u32) -> MarkerDomain {
        assert!(number < BUILT_IN);
        MarkerDomain {
            name: KeptText::new(Cow::Borrowed(name)),
            number,
        }
    }

    /// A domain of the program's.
    pub fn new(name: String) -> MarkerDomain {
        MarkerDomain {
            name: KeptText::new(Cow::Owned(name)),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Its name.
    pub fn name(&self) -> &KeptText {
        &self.name
    }

    /// A number that no other domain has.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Begins a range in this domain on the calling thread. Returns its level, from 0.
    #[inline]
    pub fn push(&self, event: &Event<'_>) -> Result<u32, NoLevel> {
        let (level, id) = self.change(|ranges| Ok(ranges.push()))?;
        self.report(MarkerKind::PUSH, id, event);
        Ok(level)
    }

    /// Ends the innermost range of this domain on the calling thread. Returns its level, from 0.
    #[inline]
    pub fn pop(&self, event: &Event<'_>) -> Result<u32, NoLevel> {
        let changed = self.change(|ranges| ranges.pop().ok_or(NoLevel::Empty));
        match changed {
            Ok((_, id)) => self.report(MarkerKind::POP, id, event),
            Err(NoLevel::Empty) => self.report(MarkerKind::POP, UNBALANCED, event),
            Err(NoLevel::Uncounted) => {}
        }
        changed.map(|(level, _)| level)
    }

    /// Records a pop for which the caller, which counts the levels itself, has no push.
    pub fn unbalanced_pop(&self) {
        self.report(MarkerKind::POP, UNBALANCED, &Event::default());
    }

    /// Marks a moment in this domain.
    pub fn mark(&self, event: &Event<'_>) {
        self.report(MarkerKind::INSTANT, 1, event);
    }

    /// Records a marker of this domain.
    #[inline]
    pub fn report(&self, what: MarkerKind, id: u64, event: &Event<'_>) {
        if is_wanted(what) {
            let domain = Text::Kept(&self.name);
            report(what, id, &Event { domain, ..*event });
        }
    }

    /// Changes the ranges that are pushed on the calling thread. Counts whether or not a recording is on, so that the
    /// program always gets the levels that it expects.
    #[inline]
    fn change(
        &self,
        change: impl FnOnce(&mut PushedRanges) -> Result<(u32, u64), NoLevel>,
    ) -> Result<(u32, u64), NoLevel> {
        // A forked child attaches with its first marker.
        if process::generation() == 0 {
            process::interest(super::operation(MarkerKind::PUSH));
        }
        let mut host = process::current()
            .and_then(process::Current::borrow)
            .ok_or(NoLevel::Uncounted)?;
        let ranges = host.pushed_ranges(self.number).ok_or(NoLevel::Uncounted)?;
        change(ranges)
    }
}

/// The ranges of a domain that are pushed on a thread.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct PushedRanges {
    /// Their number.
    now: u32,
    /// Their number after the latest marker that was recorded.
    recorded: u32,
    /// The lowest number since then.
    lowest: u32,
}

impl PushedRanges {
    /// None.
    pub const NONE: PushedRanges = PushedRanges {
        now: 0,
        recorded: 0,
        lowest: 0,
    };

    /// A range begins. Returns its level, from 0, and [`Marker::id`](crate::record::Marker::id) for its record.
    #[inline]
    pub fn push(&mut self) -> (u32, u64) {
        let level = self.now;
        let unseen = self.move_to(level.saturating_add(1), is_recorded());
        (level, id(level, unseen))
    }

    /// The innermost range ends, if there is one. Returns as [`push`](PushedRanges::push).
    #[inline]
    pub fn pop(&mut self) -> Option<(u32, u64)> {
        let level = self.now.checked_sub(1)?;
        let unseen = self.move_to(level, is_recorded());
        Some((level, id(level, unseen)))
    }

    /// Changes the number of ranges. Returns how many of those that were open at the latest recorded marker have ended
    /// since without a record, if this change is recorded.
    #[inline]
    fn move_to(&mut self, now: u32, is_on: bool) -> u32 {
        self.now = now;
        if is_on {
            let unseen = self.recorded.saturating_sub(self.lowest);
            (self.recorded, self.lowest) = (now, now);
            return unseen;
        }
        self.lowest = self.lowest.min(now);
        0
    }
}

/// Whether markers are recorded now.
#[inline]
fn is_recorded() -> bool {
    !process::buffers_for(Kind::MARKER).is_none()
}

/// [`Marker::id`](crate::record::Marker::id) of a push or pop.
#[inline]
fn id(level: u32, unseen: u32) -> u64 {
    u64::from(unseen) << 32 | (u64::from(level) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_end_unrecorded_are_counted_with_the_next_record() {
        let mut ranges = PushedRanges::default();
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
