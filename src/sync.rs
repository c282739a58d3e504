//! The atomics and locks that the hand-overs are made of: the standard library's, or loom's when
//! the crate is built with `--cfg loom` to check every interleaving of them.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use std::time::Duration;

/// Locks one of the standard library's mutexes, also when a thread panicked while it held it.
#[cfg(not(loom))]
pub(crate) fn lock_std<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A number that threads sleep on, of one process or of several that share its memory: a futex.
#[cfg(not(loom))]
#[derive(Default)]
#[repr(transparent)]
pub(crate) struct Signal(AtomicU32);

#[cfg(not(loom))]
impl Signal {
    /// The number now.
    pub fn value(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Sleeps until the number is raised, or for `longest`; not at all if it is not `seen` any more.
    pub fn wait(&self, seen: u32, longest: Duration) {
        sleep_on(&self.0, seen, longest);
    }

    /// Changes the number, and wakes everybody.
    pub fn raise(&self) {
        self.0.fetch_add(1, Ordering::Release);
        wake(&self.0, u32::MAX >> 1);
    }
}

/// Sleeps while `word` is `seen`, until woken or for `longest`. It may wake for no reason.
#[cfg(not(loom))]
pub(crate) fn sleep_on(word: &AtomicU32, seen: u32, longest: Duration) {
    use rustix::thread::futex;
    let longest = longest.try_into().expect("seconds fit");
    // Whatever the system says: the caller looks for itself.
    let _ = futex::wait(word, futex::Flags::empty(), seen, Some(&longest));
}

/// Wakes up to `most` of those that sleep on `word`.
#[cfg(not(loom))]
pub(crate) fn wake(word: &AtomicU32, most: u32) {
    use rustix::thread::futex;
    let _ = futex::wake(word, futex::Flags::empty(), most);
}

/// A futex as loom can check it: it compares and falls asleep in one step.
#[cfg(loom)]
pub(crate) struct Signal {
    number: loom::sync::Mutex<u32>,
    raised: loom::sync::Condvar,
}

#[cfg(loom)]
impl Signal {
    pub fn new() -> Signal {
        Signal {
            number: loom::sync::Mutex::new(0),
            raised: loom::sync::Condvar::new(),
        }
    }

    pub fn value(&self) -> u32 {
        *self.number.lock().unwrap()
    }

    pub fn wait(&self, seen: u32, _: Duration) {
        let number = self.number.lock().unwrap();
        if *number == seen {
            drop(self.raised.wait(number));
        }
    }

    pub fn raise(&self) {
        *self.number.lock().unwrap() += 1;
        self.raised.notify_all();
    }
}
