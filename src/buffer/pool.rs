//! The pool: the empty blocks, and the lanes that wait for one.
//!
//! It is part of the mapping, since its users may be in two processes: the program's lanes take blocks, the collector
//! returns them. It is accessed only when a lane changes blocks. Lanes of a lossless buffer may wait here, with a bound
//! on each wait, so that a lost wake-up costs one period.

use super::{Mapping, SessionState};
use crate::platform::sync::{AtomicU32, AtomicU64, Ordering, Signal, fence};
use std::time::Duration;

/// Maximum wait for a block to be returned.
const WAIT: Duration = Duration::from_millis(5);

/// The lanes that wait for a block.
#[repr(C)]
pub(super) struct WaitingLanes {
    /// Number of lanes in `wait`.
    lanes: AtomicU32,
    /// Raised when a block has been returned.
    returned: Signal,
}

impl WaitingLanes {
    #[cfg(loom)]
    pub fn new() -> WaitingLanes {
        WaitingLanes {
            lanes: AtomicU32::new(0),
            returned: Signal::new(),
        }
    }
}

/// The empty blocks of a mapping: one bit each.
///
/// The first empty block is taken, so that few blocks are in use at a time, whose pages are populated and cached.
/// Taking and returning are one atomic operation on a word each: no value in the mapping can mislead or block a
/// process.
#[derive(Copy, Clone)]
pub(super) struct Pool<'a> {
    mapping: &'a Mapping,
    /// Bit `n` of word `w` is set: block `64 * w + n` is empty.
    empty: &'a [AtomicU64],
    waiting: &'a WaitingLanes,
}

impl<'a> Pool<'a> {
    pub fn new(
        mapping: &'a Mapping,
        empty: &'a [AtomicU64],
        waiting: &'a WaitingLanes,
    ) -> Pool<'a> {
        Pool {
            mapping,
            empty,
            waiting,
        }
    }

    fn blocks(&self) -> u32 {
        self.mapping.layout().blocks()
    }

    /// An empty block, if there is one.
    pub fn take(&self) -> Option<u32> {
        if self.is_closed() {
            return None;
        }
        for (place, word) in self.empty.iter().enumerate() {
            let mut bits = word.load(Ordering::Relaxed);
            while bits != 0 {
                let lowest = bits.trailing_zeros();
                // Acquire: pairs with the release of `put`, whose release sequence other takers only continue. All
                // accesses to the block before it was returned are over.
                let found = word.fetch_and(!(1 << lowest), Ordering::Acquire);
                let block = place as u32 * 64 + lowest;
                // Another thread may have been faster; bits beyond the last block are not blocks.
                if found & 1 << lowest != 0 && block < self.blocks() {
                    return Some(block);
                }
                bits = found & !(1 << lowest);
            }
        }
        None
    }

    /// Takes `block` out of the pool, even after its end. `false` if a lane has taken it.
    pub fn take_back(&self, block: u32) -> bool {
        let bit = 1 << (block % 64);
        // Acquire: as in `take`.
        self.empty[block as usize / 64].fetch_and(!bit, Ordering::Acquire) & bit != 0
    }

    /// Waits until a block has come back, the pool was closed, or a short time has passed, for which the result is `false`.
    pub fn wait(&self) -> bool {
        let seen = self.waiting.returned.value();
        self.waiting.lanes.fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence in `wake_waiting`: a thread that returns a block, or closes the pool, after the check
        // below sees this one waiting, and raises the number that this one has read.
        fence(Ordering::SeqCst);
        if !self.any() && !self.is_closed() {
            self.waiting.returned.wait(seen, WAIT);
        }
        self.waiting.lanes.fetch_sub(1, Ordering::Relaxed);
        self.waiting.returned.value() != seen || self.any()
    }

    /// Returns an emptied block.
    pub fn put(&self, block: u32) {
        // Release: the thread that takes the block sees all accesses to it.
        self.empty[block as usize / 64].fetch_or(1 << (block % 64), Ordering::Release);
        self.wake_waiting();
    }

    /// Whether no block may be taken any more, since the session has ended.
    pub fn is_closed(&self) -> bool {
        matches!(
            self.mapping.state(),
            SessionState::Ended | SessionState::Abandoned
        )
    }

    /// Wakes waiting lanes.
    pub fn wake_waiting(&self) {
        // Pairs with the fence in `wait`: either this thread sees the waiting one, or that one sees the change that
        // this call announces.
        fence(Ordering::SeqCst);
        if self.waiting.lanes.load(Ordering::Relaxed) > 0 {
            self.waiting.returned.raise();
        }
    }

    /// Number of empty blocks.
    pub fn len(&self) -> usize {
        let ones = |word: &AtomicU64| word.load(Ordering::Relaxed).count_ones() as usize;
        self.empty.iter().map(ones).sum()
    }

    /// Whether so few blocks are empty that the collector should be woken.
    pub fn is_low(&self) -> bool {
        self.len() <= self.blocks() as usize / 2
    }

    fn any(&self) -> bool {
        let any = |word: &AtomicU64| word.load(Ordering::Relaxed) != 0;
        self.empty.iter().any(any)
    }
}
