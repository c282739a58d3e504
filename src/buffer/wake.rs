//! How lanes wake the collector.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
#[cfg(not(loom))]
use std::time::Duration;

/// The lanes' way to wake the collector: a system call only when it sleeps.
pub(super) struct Wake {
    sleeping: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Wake {
    pub fn new() -> Wake {
        Wake {
            sleeping: AtomicBool::new(false),
            thread: OnceLock::new(),
        }
    }

    /// Names the thread that sleeps here.
    #[cfg(not(loom))]
    pub fn is_for(&self, thread: &Thread) {
        self.thread.get_or_init(|| thread.clone());
    }

    /// Sleeps until woken, or for `period`.
    #[cfg(not(loom))]
    pub fn sleep(&self, period: Duration) {
        self.sleeping.store(true, Ordering::Relaxed);
        std::thread::park_timeout(period);
        self.sleeping.store(false, Ordering::Relaxed);
    }

    /// Wakes the collector if it sleeps. Nothing is ordered by this: a wake-up that is lost costs one
    /// period.
    pub fn wake(&self) {
        if self.sleeping.load(Ordering::Relaxed)
            && self.sleeping.swap(false, Ordering::Relaxed)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }
}
