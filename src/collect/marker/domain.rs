//! Domains of markers whose ranges nest by themselves on each thread, as those of NVTX do.

use super::nesting::{ChangedLevel, PushedRanges};
use super::text::{KeptText, MarkerText};
use super::{MarkerEvent, UNBALANCED, report_in};
use crate::operations::of_marker;
use crate::process;
use gputrail_record::MarkerKind;
use std::borrow::Cow;
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
    pub fn push(&self, event: &MarkerEvent<'_>) -> Result<u32, NoLevel> {
        let pushed = self.change(|ranges| Ok(ranges.push()))?;
        self.report(MarkerKind::PUSH, pushed.id(), event);
        Ok(pushed.level)
    }

    /// Ends the innermost range of this domain on the calling thread. Returns its level, from 0.
    #[inline]
    pub fn pop(&self, event: &MarkerEvent<'_>) -> Result<u32, NoLevel> {
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
        let ranges = host.and_then(|mut host| Some(host.pushed_ranges(self.number)?.level()));
        ranges.unwrap_or(0)
    }

    /// Records a pop for which the caller, which counts the levels itself, has no push.
    pub fn unbalanced_pop(&self) {
        self.report(MarkerKind::POP, UNBALANCED, &MarkerEvent::default());
    }

    /// Marks a moment in this domain.
    pub fn mark(&self, event: &MarkerEvent<'_>) {
        self.report(MarkerKind::INSTANT, 1, event);
    }

    /// Records a marker of this domain.
    #[inline]
    pub fn report(&self, what: MarkerKind, id: u64, event: &MarkerEvent<'_>) {
        report_in(MarkerText::Kept(&self.name), what, id, event);
    }

    /// Changes the ranges that are pushed on the calling thread. Counts whether or not a recording is on, so that the
    /// program always gets the levels that it expects.
    #[inline]
    fn change(
        &self,
        change: impl FnOnce(&PushedRanges) -> Result<ChangedLevel, NoLevel>,
    ) -> Result<ChangedLevel, NoLevel> {
        // A forked child attaches with its first marker.
        if process::generation() == 0 {
            process::interest(of_marker(MarkerKind::PUSH));
        }
        let mut host = process::current()
            .and_then(process::Current::borrow)
            .ok_or(NoLevel::Uncounted)?;
        let ranges = host.pushed_ranges(self.number).ok_or(NoLevel::Uncounted)?;
        change(ranges)
    }
}
