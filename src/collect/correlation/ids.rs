//! Ids of calls and of work: unique in the process, and reserved by each thread in ranges.

use crate::record::ExternalId;
use std::sync::atomic::{AtomicU64, Ordering};

/// Ids reserved at a time.
pub(super) const RANGE: u64 = 4096;
/// Where the ids of one process come from.
#[derive(Debug)]
pub struct Ids {
    pub(super) correlation: AtomicU64,
    pub(super) work: AtomicU64,
    /// The latest external id of the main thread.
    pub(super) main_external: AtomicU64,
}

impl Default for Ids {
    fn default() -> Self {
        Ids {
            correlation: AtomicU64::new(1),
            work: AtomicU64::new(1),
            main_external: AtomicU64::new(0),
        }
    }
}

impl Ids {
    /// The latest external id that the main thread has pushed.
    #[inline(always)]
    pub(super) fn main_external(&self) -> ExternalId {
        ExternalId(self.main_external.load(Ordering::Relaxed))
    }
}

/// Ids that one thread has reserved.
#[derive(Debug, Default)]
pub(super) struct Range {
    next: u64,
    end: u64,
}

impl Range {
    /// The next one.
    #[inline]
    pub fn take(&mut self, from: &AtomicU64) -> u64 {
        if self.next == self.end {
            self.reserve(from);
        }
        let id = self.next;
        self.next += 1;
        id
    }

    #[cold]
    #[inline(never)]
    fn reserve(&mut self, from: &AtomicU64) {
        // Ids only need to differ.
        self.next = from.fetch_add(RANGE, Ordering::Relaxed);
        self.end = self.next + RANGE;
    }
}
