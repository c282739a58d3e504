//! The pool: which blocks are empty, and who waits for one.
//!
//! Touched only when a lane changes blocks. The collector puts blocks back; lanes of a lossless
//! buffer may wait here, with a bound on each wait, so that a lost wake-up costs one period.

use crate::sync::{AtomicU32, Condvar, Mutex, Ordering, fence, lock};

#[cfg(not(loom))]
type Queue = crossbeam_queue::ArrayQueue<u32>;

/// Under loom the queue is a lock around a deque: crossbeam's own atomics are not loom's.
#[cfg(loom)]
struct Queue(Mutex<std::collections::VecDeque<u32>>);

#[cfg(loom)]
impl Queue {
    fn new(_: usize) -> Queue {
        Queue(Mutex::new(Default::default()))
    }
    fn pop(&self) -> Option<u32> {
        lock(&self.0).pop_front()
    }
    fn push(&self, block: u32) -> Result<(), u32> {
        lock(&self.0).push_back(block);
        Ok(())
    }
    fn len(&self) -> usize {
        lock(&self.0).len()
    }
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

pub(super) struct Pool {
    empty: Queue,
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
            empty: Queue::new(blocks as usize),
            closed: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            blocks: blocks as usize,
            lock: Mutex::new(()),
            returned: Condvar::new(),
        };
        (0..blocks).for_each(|block| pool.put(block));
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
        // The queue has room for every block there is, and a block is put back once per use.
        let full = self.empty.push(block).is_err();
        debug_assert!(!full, "block {block} was put back twice");
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
