//! How lanes wake the collector.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::Thread;
#[cfg(not(loom))]
use std::time::Duration;

/// The collector works, or will look again by itself soon.
const AWAKE: u32 = 0;
/// It sleeps for a short time.
const NAPPING: u32 = 1;
/// It sleeps for a long time, since there was nothing to do.
const SLEEPING: u32 = 2;

/// The lanes' way to wake the collector: a system call only when it sleeps.
///
/// Nothing is ordered by this: a wake-up that is lost costs one period.
pub(super) struct Wake {
    state: AtomicU32,
    thread: OnceLock<Thread>,
}

impl Wake {
    pub fn new() -> Wake {
        Wake {
            state: AtomicU32::new(AWAKE),
            thread: OnceLock::new(),
        }
    }

    /// Names the thread that sleeps here.
    #[cfg(not(loom))]
    pub fn is_for(&self, thread: &Thread) {
        self.thread.get_or_init(|| thread.clone());
    }

    /// Sleeps until woken, or for `period`. `long`: the first block that is full is reason to wake.
    #[cfg(not(loom))]
    pub fn sleep(&self, period: Duration, long: bool) {
        self.state
            .store(if long { SLEEPING } else { NAPPING }, Ordering::Relaxed);
        std::thread::park_timeout(period);
        self.state.store(AWAKE, Ordering::Relaxed);
    }

    /// There is a full block: wakes a collector that sleeps for long.
    pub fn tell(&self) {
        if self.state.load(Ordering::Relaxed) == SLEEPING {
            self.wake();
        }
    }

    /// Wakes the collector if it sleeps.
    pub fn wake(&self) {
        if self.state.load(Ordering::Relaxed) != AWAKE
            && self.state.swap(AWAKE, Ordering::Relaxed) != AWAKE
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }
}
