//! How lanes wake the collector, which may be in another process.

use std::sync::atomic::{AtomicU32, Ordering};
#[cfg(not(loom))]
use std::time::Duration;

/// The collector works, or will look again by itself soon.
const AWAKE: u32 = 0;
/// It sleeps for a short time.
const NAPPING: u32 = 1;
/// It sleeps for a long time, since there was nothing to do.
const SLEEPING: u32 = 2;
/// It has been woken, and will look once more before it sleeps.
const WOKEN: u32 = 3;

/// The lanes' way to wake the collector: a system call only when it sleeps. A word of the mapping.
///
/// Nothing is ordered by this: a wake-up that is lost costs one period.
#[derive(Default)]
#[repr(transparent)]
pub(super) struct Wake(AtomicU32);

/// Longest sleep from which only a shortage of blocks is reason to wake.
#[cfg(not(loom))]
const NAP: Duration = Duration::from_millis(5);

impl Wake {
    #[cfg(not(loom))]
    pub const fn new() -> Wake {
        Wake(AtomicU32::new(AWAKE))
    }

    /// Sleeps until woken, or for `period`; not at all if woken since the last sleep. From a long sleep, the first
    /// block that is full is reason to wake.
    #[cfg(not(loom))]
    pub fn sleep(&self, period: Duration) {
        let how = if period > NAP { SLEEPING } else { NAPPING };
        let relaxed = Ordering::Relaxed;
        match self.0.compare_exchange(AWAKE, how, relaxed, relaxed) {
            Ok(_) => crate::platform::system::sleep_on(&self.0, how, period),
            Err(WOKEN) => {}
            // Another thread, which has this word after us, sleeps already.
            Err(other) => return crate::platform::system::sleep_on(&self.0, other, period),
        }
        self.0.store(AWAKE, relaxed);
    }

    /// Wakes a collector that sleeps for long: there is a full block.
    pub fn wake_from_long_sleep(&self) {
        if self.0.load(Ordering::Relaxed) == SLEEPING {
            self.wake();
        }
    }

    /// Has the collector look: it is woken if it sleeps.
    pub fn wake(&self) {
        if self.0.load(Ordering::Relaxed) != WOKEN
            && matches!(self.0.swap(WOKEN, Ordering::Relaxed), NAPPING | SLEEPING)
        {
            #[cfg(not(loom))]
            crate::platform::system::wake(&self.0, 1);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_of_an_awake_thread_causes_one_more_look() {
        let wake = Wake::new();
        wake.wake();
        wake.wake();
        wake.sleep(Duration::from_secs(3600));
        assert_eq!(wake.0.load(Ordering::Relaxed), AWAKE);
    }
}
