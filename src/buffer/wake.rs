//! The wake-up of the collector, which may be in another process, by lanes.

use std::sync::atomic::{AtomicU32, Ordering};
#[cfg(not(loom))]
use std::time::Duration;

/// The collector works, or will poll again soon by itself.
#[cfg(not(loom))]
const AWAKE: u32 = 0;
/// It sleeps for a short time.
const NAPPING: u32 = 1;
/// It sleeps for a long time, since there was nothing to do.
const SLEEPING: u32 = 2;
/// It has been woken, and will poll once more before it sleeps.
const WOKEN: u32 = 3;

/// A word of the mapping through which lanes wake the collector, with a system call only if it sleeps.
///
/// It orders nothing: a lost wake-up costs one period.
#[derive(Default)]
#[repr(transparent)]
pub(super) struct Wake(AtomicU32);

/// Maximum sleep that only a shortage of blocks interrupts.
#[cfg(not(loom))]
const NAP: Duration = Duration::from_millis(5);

impl Wake {
    #[cfg(not(loom))]
    pub const fn new() -> Wake {
        Wake(AtomicU32::new(AWAKE))
    }

    /// Sleeps until woken, or for `period`; not at all if woken since the last sleep. The first full block ends a long
    /// sleep.
    #[cfg(not(loom))]
    pub fn sleep(&self, period: Duration) {
        let how = if period > NAP { SLEEPING } else { NAPPING };
        let relaxed = Ordering::Relaxed;
        match self.0.compare_exchange(AWAKE, how, relaxed, relaxed) {
            Ok(_) => crate::platform::system::sleep_on(&self.0, how, period),
            Err(WOKEN) => {}
            // Another thread, which got this word after this one, sleeps already.
            Err(other) => return crate::platform::system::sleep_on(&self.0, other, period),
        }
        self.0.store(AWAKE, relaxed);
    }

    /// Wakes a collector in a long sleep: there is a full block.
    pub fn wake_from_long_sleep(&self) {
        if self.0.load(Ordering::Relaxed) == SLEEPING {
            self.wake();
        }
    }

    /// Wakes the collector if it sleeps, so that it polls.
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
