//! Calls that take long, and those who want to hear of them.

use super::Switchboard;
use crate::sync::lock_std;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// Counts calls that took as long as somebody wants to hear of, while it is there.
#[derive(Clone)]
pub(crate) struct SlowCalls(Arc<Watched>);

struct Watched {
    /// In ticks.
    from: u64,
    count: AtomicU32,
    /// Called on the thread that made the call.
    then: Box<dyn Fn() + Send + Sync>,
}

/// All who watch.
#[derive(Default)]
pub(super) struct SlowCallWatches(Mutex<Vec<Weak<Watched>>>);

impl SlowCalls {
    /// How many there were.
    pub fn count(&self) -> u32 {
        self.0.count.load(Ordering::Acquire)
    }
}

impl SlowCallWatches {
    /// Ticks of the shortest call that somebody wants to hear of.
    pub fn from(&self) -> u64 {
        let mut watches = lock_std(&self.0);
        watches.retain(|watched| watched.strong_count() > 0);
        let ticks = watches
            .iter()
            .filter_map(|watched| Some(watched.upgrade()?.from));
        ticks.min().unwrap_or(u64::MAX)
    }
}

impl Switchboard {
    /// Counts calls that take at least as long, and does `then` after each, on its thread.
    pub(crate) fn watch_slow_calls(
        &self,
        from: Duration,
        then: impl Fn() + Send + Sync + 'static,
    ) -> SlowCalls {
        let watched = Arc::new(Watched {
            from: crate::context::ticks_of(from).max(1),
            count: AtomicU32::new(0),
            then: Box::new(then),
        });
        lock_std(&self.slow_calls.0).push(Arc::downgrade(&watched));
        let state = self.state();
        self.publish(&state);
        SlowCalls(watched)
    }

    /// A call has taken `ticks`.
    #[cold]
    pub(crate) fn call_took(&self, ticks: u64) {
        for watched in lock_std(&self.slow_calls.0).iter() {
            if let Some(watched) = watched.upgrade()
                && ticks >= watched.from
            {
                watched.count.fetch_add(1, Ordering::Release);
                (watched.then)();
            }
        }
    }
}
