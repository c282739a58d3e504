//! Domains of markers whose ranges nest by themselves on each thread, as those of NVTX do.

use super::text::KeptText;
use super::{Event, Text, UNBALANCED, is_wanted, report};
use crate::collect::process;
use crate::record::MarkerKind;
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
        let level = self.change_level(|level| {
            *level = level.saturating_add(1);
            Ok(*level - 1)
        })?;
        self.report(MarkerKind::PUSH, u64::from(level) + 1, event);
        Ok(level)
    }

    /// Ends the innermost range of this domain on the calling thread. Returns its level, from 0.
    #[inline]
    pub fn pop(&self, event: &Event<'_>) -> Result<u32, NoLevel> {
        let level = self.change_level(|level| {
            *level = level.checked_sub(1).ok_or(NoLevel::Empty)?;
            Ok(*level)
        });
        match level {
            Ok(level) => self.report(MarkerKind::POP, u64::from(level) + 1, event),
            Err(NoLevel::Empty) => self.report(MarkerKind::POP, UNBALANCED, event),
            Err(NoLevel::Uncounted) => {}
        }
        level
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

    /// Changes the number of ranges that are pushed on the calling thread. Counts whether or not a recording is on, so
    /// that the program always gets the levels that it expects.
    #[inline]
    fn change_level(
        &self,
        change: impl FnOnce(&mut u32) -> Result<u32, NoLevel>,
    ) -> Result<u32, NoLevel> {
        // A forked child attaches with its first marker.
        if process::generation() == 0 {
            process::interest(super::operation(MarkerKind::PUSH));
        }
        let mut host = process::current()
            .and_then(process::Current::borrow)
            .ok_or(NoLevel::Uncounted)?;
        change(host.level(self.number).ok_or(NoLevel::Uncounted)?)
    }
}
