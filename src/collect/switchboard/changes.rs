//! Changes of the table: sources that enable callbacks in their runtime learn what is wanted now.

use gputrail_buffer::platform::sync::lock_std;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

type ChangeHook = Arc<dyn Fn() + Send + Sync>;

/// The hooks of sources, and whether the table has changed since they were called.
#[derive(Default)]
pub(super) struct Changes {
    hooks: Mutex<Vec<ChangeHook>>,
    /// Whether there are hooks: without any, a change costs nothing.
    are_there: AtomicBool,
    pending: AtomicBool,
}

impl Changes {
    /// Registers a hook.
    pub fn add(&self, hook: impl Fn() + Send + Sync + 'static) {
        lock_std(&self.hooks).push(Arc::new(hook));
        self.are_there.store(true, Ordering::Relaxed);
    }

    /// The table has changed. The caller holds the lock of the switchboard.
    pub fn note(&self) {
        if self.are_there.load(Ordering::Relaxed) {
            self.pending.store(true, Ordering::Relaxed);
        }
    }

    /// Calls the hooks if the table has changed. The caller has released the lock: hooks call into runtimes, which take
    /// locks of their own.
    pub fn pass_on(&self) {
        if self.are_there.load(Ordering::Relaxed) && self.pending.swap(false, Ordering::Relaxed) {
            let hooks = lock_std(&self.hooks).clone();
            hooks.iter().for_each(|hook| hook());
        }
    }
}
