//! Watches for slow calls.

use gputrail_buffer::platform::sync::QuietMutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Counts calls that take at least a given time while it exists.
#[derive(Clone)]
pub(crate) struct SlowCalls(Arc<Watched>);

struct Watched {
    /// The threshold in ticks.
    from: u64,
    count: AtomicU32,
    /// Whether the watch has ended.
    ended: AtomicBool,
    /// Called on the thread of the call.
    then: Box<dyn Fn() + Send + Sync>,
}

/// All watches.
pub(crate) struct SlowCallWatches {
    watches: QuietMutex<Vec<Weak<Watched>>>,
    /// The lowest threshold in ticks, or `u64::MAX`.
    from: AtomicU64,
}

impl Default for SlowCallWatches {
    fn default() -> Self {
        SlowCallWatches {
            watches: QuietMutex::default(),
            from: AtomicU64::new(u64::MAX),
        }
    }
}

impl SlowCalls {
    /// The number of slow calls.
    pub fn count(&self) -> u32 {
        self.0.count.load(Ordering::Acquire)
    }

    /// Stops counting. Calls are still timed until the interests are computed again.
    pub fn end(&self) {
        self.0.ended.store(true, Ordering::Release);
    }
}

impl SlowCallWatches {
    /// Whether there are watches. Must be called after a change.
    pub fn are_there(&self) -> bool {
        let mut watches = self.watches.lock();
        let mut from = u64::MAX;
        watches.retain(|watched| {
            let watched = watched.upgrade();
            let watched = watched.filter(|watched| !watched.ended.load(Ordering::Acquire));
            from = from.min(watched.as_ref().map_or(u64::MAX, |watched| watched.from));
            watched.is_some()
        });
        self.from.store(from, Ordering::Relaxed);
        !watches.is_empty()
    }

    /// Counts calls that take at least this long, and calls `then` after each, on its thread.
    pub fn watch(&self, from: Duration, then: impl Fn() + Send + Sync + 'static) -> SlowCalls {
        let watched = Arc::new(Watched {
            from: gputrail_buffer::clock::ticks_of(from).max(1),
            count: AtomicU32::new(0),
            ended: AtomicBool::new(false),
            then: Box::new(then),
        });
        self.watches.lock().push(Arc::downgrade(&watched));
        SlowCalls(watched)
    }

    /// Reports the duration of a call.
    #[inline]
    pub fn call_took(&self, ticks: u64) {
        if ticks >= self.from.load(Ordering::Relaxed) {
            self.slow_call(ticks);
        }
    }

    #[cold]
    fn slow_call(&self, ticks: u64) {
        for watched in self.watches.lock().iter() {
            if let Some(watched) = watched.upgrade()
                && ticks >= watched.from
                && !watched.ended.load(Ordering::Acquire)
            {
                watched.count.fetch_add(1, Ordering::Release);
                (watched.then)();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_reports_slow_calls_until_it_has_ended() {
        let watches = SlowCallWatches::default();
        assert!(!watches.are_there());
        let slow = watches.watch(Duration::from_secs(1), || {});
        assert!(watches.are_there());
        watches.call_took(1);
        watches.call_took(u64::MAX);
        assert_eq!(slow.count(), 1);
        slow.end();
        watches.call_took(u64::MAX);
        assert!(!watches.are_there());
        watches.call_took(u64::MAX);
        assert_eq!(slow.count(), 1);
    }
}
