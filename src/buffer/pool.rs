//! The pool: which blocks are empty, and who waits for one.
//!
//! Touched only when a lane changes blocks. The collector puts blocks back; lanes of a lossless
//! buffer may wait here, with a bound on each wait, so that a lost wake-up costs one period.

use crate::sync::{AtomicU32, AtomicU64, Condvar, Mutex, Ordering, fence, lock};

/// The empty blocks, the one emptied last on top: few blocks are in use at a time, and they are those
/// whose pages are in place and in the caches.
///
/// A stack after R. K. Treiber (1986); the count of changes beside its top tells a top that left and
/// came back from one that never moved.
struct Stack {
    /// changes << 32 | the top block and 1, or 0.
    top: AtomicU64,
    /// For each block in the stack, the one below it and 1, or 0.
    below: Box<[AtomicU32]>,
    /// Blocks in the stack, or just about to be.
    count: AtomicU32,
}

impl Stack {
    fn new(blocks: u32) -> Stack {
        Stack {
            top: AtomicU64::new(0),
            below: (0..blocks).map(|_| AtomicU32::new(0)).collect(),
            count: AtomicU32::new(0),
        }
    }

    fn push(&self, block: u32) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut top = self.top.load(Ordering::Relaxed);
        loop {
            self.below[block as usize].store(top as u32, Ordering::Relaxed);
            let new = ((top >> 32).wrapping_add(1) << 32) | u64::from(block + 1);
            // Release: whoever takes the block sees what was done with it, and what lies below it.
            match self
                .top
                .compare_exchange_weak(top, new, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    fn pop(&self) -> Option<u32> {
        // Acquire: pairs with the release of `push`; so does that of every later push, since pops
        // between them only exchange what they found.
        let mut top = self.top.load(Ordering::Acquire);
        loop {
            let block = (top as u32).checked_sub(1)?;
            let below = self.below[block as usize].load(Ordering::Relaxed);
            let new = ((top >> 32).wrapping_add(1) << 32) | u64::from(below);
            match self
                .top
                .compare_exchange_weak(top, new, Ordering::Acquire, Ordering::Acquire)
            {
                Ok(_) => {
                    self.count.fetch_sub(1, Ordering::Relaxed);
                    return Some(block);
                }
                Err(now) => top = now,
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.top.load(Ordering::Relaxed) as u32 == 0
    }

    fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed) as usize
    }
}

pub(super) struct Pool {
    empty: Stack,
    /// 1 once no lane may take a block any more.
    closed: AtomicU32,
    /// Lanes in `wait`.
    waiting: AtomicU32,
    /// Blocks of the pool.
    blocks: usize,
    lock: Mutex<()>,
    returned: Condvar,
}

impl Pool {
    /// A pool in which all of `blocks` are empty.
    pub fn new(blocks: u32) -> Pool {
        let pool = Pool {
            empty: Stack::new(blocks),
            closed: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            blocks: blocks as usize,
            lock: Mutex::new(()),
            returned: Condvar::new(),
        };
        (0..blocks).rev().for_each(|block| pool.put(block));
        pool
    }

    /// An empty block, if there is one.
    pub fn take(&self) -> Option<u32> {
        if self.is_closed() {
            None
        } else {
            self.empty.pop()
        }
    }

    /// Waits until a block may have come back, the pool was closed, or a short time has passed.
    pub fn wait(&self) {
        let guard = lock(&self.lock);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence in `wake_waiting`: whoever puts a block back, or closes the pool, after
        // the look below sees us waiting, and needs the lock to wake us.
        fence(Ordering::SeqCst);
        if self.empty.is_empty() && !self.is_closed() {
            #[cfg(not(loom))]
            drop(
                self.returned
                    .wait_timeout(guard, std::time::Duration::from_millis(5)),
            );
            #[cfg(loom)]
            drop(self.returned.wait(guard));
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes back a block that was emptied.
    pub fn put(&self, block: u32) {
        self.empty.push(block);
        self.wake_waiting();
    }

    /// Lets nobody take a block any more.
    pub fn close(&self) {
        self.closed.store(1, Ordering::Release);
        self.wake_waiting();
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) == 1
    }

    pub fn len(&self) -> usize {
        self.empty.len()
    }

    /// Whether so few blocks are empty that the collector had better come at once.
    pub fn is_low(&self) -> bool {
        self.empty.len() <= self.blocks / 2
    }

    fn wake_waiting(&self) {
        // Pairs with the fence in `wait`: either this sees the one that waits, or that one sees what
        // this was called for.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) > 0 {
            drop(lock(&self.lock));
            self.returned.notify_all();
        }
    }
}
