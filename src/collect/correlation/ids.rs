//! Ids of calls and of work: unique in the process, and reserved by each thread in ranges.

use std::sync::atomic::{AtomicU64, Ordering};

/// Ids reserved at a time.
pub(super) const RANGE: u64 = 4096;
/// Where the ids of one process come from.
#[derive(Debug)]
pub struct Ids {
    pub(super) correlation: AtomicU64,
    pub(super) work: AtomicU64,
}

impl Default for Ids {
    fn default() -> Self {
        Ids {
            correlation: AtomicU64::new(1),
            work: AtomicU64::new(1),
        }
    }
}

/// Ids that one thread has reserved.
#[derive(Debug, Default)]
pub(super) struct IdRange {
    next: u64,
    end: u64,
}

impl IdRange {
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
