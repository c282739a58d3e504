//! Domains of markers whose ranges nest by themselves on each thread, as those of NVTX do.

use super::text::KeptText;
use super::{Event, Text, UNBALANCED, report_in};
use crate::process;
use gputrail_record::{Kind, Marker, MarkerKind};
use std::borrow::Cow;
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

/// A domain of markers. It lives for ever.
#[derive(Debug)]
pub struct MarkerDomain {
    name: KeptText,
    number: u32,
}

/// Why a push or pop has no level.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum NoLevel {
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
        let pushed = self.change(|ranges| Ok(ranges.push()))?;
        self.report(MarkerKind::PUSH, pushed.id(), event);
        Ok(pushed.level)
    }

    /// Ends the innermost range of this domain on the calling thread. Returns its level, from 0.
    #[inline]
    pub fn pop(&self, event: &Event<'_>) -> Result<u32, NoLevel> {
        let popped = self.change(|ranges| ranges.pop().ok_or(NoLevel::Empty));
        match popped {
            Ok(popped) => self.report(MarkerKind::POP, popped.id(), event),
            Err(NoLevel::Empty) => self.report(MarkerKind::POP, UNBALANCED, event),
            Err(NoLevel::Uncounted) => {}
        }
        popped.map(|popped| popped.level)
    }

    /// The number of ranges of this domain that are open on the calling thread.
    pub fn level(&self) -> u32 {
        let host = process::current().and_then(process::Current::borrow);
        let ranges = host.and_then(|mut host| Some(host.pushed_ranges(self.number)?.now.get()));
        ranges.unwrap_or(0)
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
        report_in(Text::Kept(&self.name), what, id, event);
    }

    /// Changes the ranges that are pushed on the calling thread. Counts whether or not a recording is on, so that the
    /// program always gets the levels that it expects.
    #[inline]
    fn change(
        &self,
        change: impl FnOnce(&PushedRanges) -> Result<Changed, NoLevel>,
    ) -> Result<Changed, NoLevel> {
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
pub struct Changed {
    /// The level of the range, from 0.
    pub level: u32,
    /// The number of ranges that ended without a record before it.
    unrecorded: u32,
}

impl Changed {
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

    /// A range begins.
    #[inline]
    pub fn push(&self) -> Changed {
        let level = self.now.get();
        let unrecorded = self.move_to(level.saturating_add(1), is_recorded());
        Changed { level, unrecorded }
    }

    /// The innermost range ends, if there is one.
    #[inline]
    pub fn pop(&self) -> Option<Changed> {
        let level = self.now.get().checked_sub(1)?;
        let unrecorded = self.move_to(level, is_recorded());
        Some(Changed { level, unrecorded })
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
