//! Flushing of sources before records are delivered.

use super::interest::Buffers;
use gputrail_buffer::QueuePlace;
use gputrail_buffer::platform::sync::lock_std;
use std::sync::{Arc, Mutex};

/// The extent of a flush.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Flush {
    /// Write the completions of all completed work, including work whose completion the runtime has not reported.
    Completed,
    /// In addition, write an [`Unfinished::AT_FLUSH`](gputrail_record::Unfinished::AT_FLUSH) completion of all other work
    /// to these buffers. The final completion follows later.
    Outstanding(Buffers),
    /// First wait for the work of these queues, then write as for `Completed`.
    Synchronized(QueuePlace),
}

type FlushHook = Arc<dyn Fn(Flush) + Send + Sync>;

/// The hooks of sources.
#[derive(Default)]
pub(super) struct FlushHooks(Mutex<Vec<FlushHook>>);

impl FlushHooks {
    /// Registers a hook.
    pub fn add(&self, hook: impl Fn(Flush) + Send + Sync + 'static) {
        lock_std(&self.0).push(Arc::new(hook));
    }

    /// Calls the hooks of all sources.
    pub fn call(&self, flush: Flush) {
        // Hooks may take time and locks.
        let hooks = lock_std(&self.0).clone();
        hooks.iter().for_each(|hook| hook(flush));
    }
}
