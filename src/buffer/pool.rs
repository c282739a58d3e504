//! The pool: which blocks are empty, and who waits for one.
//!
//! It lies in the mapping, since those who use it may be two processes: the program's lanes take blocks, the collector
//! puts them back. Touched only when a lane changes blocks. Lanes of a lossless buffer may wait here, with a bound on
//! each wait, so that a lost wake-up costs one period.

use super::{Mapping, SessionState};
use crate::platform::sync::{AtomicU32, AtomicU64, Ordering, Signal, fence};
use std::time::Duration;

/// Longest wait for a block to come back.
const WAIT: Duration = Duration::from_millis(5);

/// Who waits for a block.
#[repr(C)]
pub(super) struct Waiting {
    /// Lanes in `wait`.
    lanes: AtomicU32,
    /// Raised for them when a block has come back.
    returned: Signal,
}

impl Waiting {
    #[cfg(loom)]
    pub fn new() -> Waiting {
        Waiting {
            lanes: AtomicU32::new(0),
            returned: Signal::new(),
        }
    }
}

/// The empty blocks of a mapping: one bit each.
///
/// The first empty block is taken, so that few are in use at a time, and they are those whose pages are in place and in
/// the caches. Taking and putting back are one atomic operation on a word each: nobody's bytes can lead anybody astray
/// or keep them here.
#[derive(Copy, Clone)]
pub(super) struct Pool<'a> {
    mapping: &'a Mapping,
    /// Bit `n` of word `w` is set: block `64 * w + n` is empty.
    empty: &'a [AtomicU64],
    waiting: &'a Waiting,
}

impl<'a> Pool<'a> {
    pub fn new(mapping: &'a Mapping, empty: &'a [AtomicU64], waiting: &'a Waiting) -> Pool<'a> {
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
                // Acquire: pairs with the release of `put`, which others that take only continue. What was done with
                // the block before it was put back is over.
                let found = word.fetch_and(!(1 << lowest), Ordering::Acquire);
                let block = place as u32 * 64 + lowest;
                // Somebody else may have been faster; and bits behind the last block are none of ours.
                if found & 1 << lowest != 0 && block < self.blocks() {
                    return Some(block);
                }
                bits = found & !(1 << lowest);
            }
        }
        None
    }

    /// Takes `block` out of the pool, also after its end. `false`: a lane has taken it.
    #[cfg(not(loom))]
    pub fn take_back(&self, block: u32) -> bool {
        let bit = 1 << (block % 64);
        // Acquire: as in `take`.
        self.empty[block as usize / 64].fetch_and(!bit, Ordering::Acquire) & bit != 0
    }

    /// Waits until a block may have come back, the pool was closed, or a short time has passed.
    pub fn wait(&self) {
        let seen = self.waiting.returned.value();
        self.waiting.lanes.fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence in `wake_waiting`: whoever puts a block back, or closes the pool, after the look below
        // sees us waiting, and raises the number that we saw.
        fence(Ordering::SeqCst);
        if !self.any() && !self.is_closed() {
            self.waiting.returned.wait(seen, WAIT);
        }
        self.waiting.lanes.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes back a block that was emptied.
    pub fn put(&self, block: u32) {
        // Release: whoever takes the block sees what was done with it.
        self.empty[block as usize / 64].fetch_or(1 << (block % 64), Ordering::Release);
        self.wake_waiting();
    }

    /// Whether nobody may take a block any more: the session is over.
    pub fn is_closed(&self) -> bool {
        matches!(
            self.mapping.state(),
            SessionState::Ended | SessionState::Abandoned
        )
    }

    /// Wakes those that wait.
    pub fn wake_waiting(&self) {
        // Pairs with the fence in `wait`: either this sees the one that waits, or that one sees what this was called
        // for.
        fence(Ordering::SeqCst);
        if self.waiting.lanes.load(Ordering::Relaxed) > 0 {
            self.waiting.returned.raise();
        }
    }

    /// Blocks that are empty now.
    pub fn len(&self) -> usize {
        let ones = |word: &AtomicU64| word.load(Ordering::Relaxed).count_ones() as usize;
        self.empty.iter().map(ones).sum()
    }

    /// Whether so few blocks are empty that the collector had better come at once.
    pub fn is_low(&self) -> bool {
        self.len() <= self.blocks() as usize / 2
    }

    fn any(&self) -> bool {
        let any = |word: &AtomicU64| word.load(Ordering::Relaxed) != 0;
        self.empty.iter().any(any)
    }
}
