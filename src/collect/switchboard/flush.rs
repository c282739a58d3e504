//! Flushing: what sources do before what has been recorded is delivered.

use super::{Buffers, Switchboard};
use crate::platform::sync::lock_std;
use std::sync::{Arc, Mutex};

/// What a source is asked for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Flush {
    /// To write the completions of all work that has completed, also where the runtime has not said so yet.
    Completed,
    /// Besides, to say of all other work to these buffers that it has not completed, by a completion that is
    /// [`Unfinished::AT_FLUSH`](crate::record::Unfinished::AT_FLUSH). The real one still comes later.
    Outstanding(Buffers),
}

type Hook = Arc<dyn Fn(Flush) + Send + Sync>;

/// The sources that are asked.
#[derive(Default)]
pub(super) struct FlushHooks(Mutex<Vec<Hook>>);

impl Switchboard {
    /// Has `hook` called when somebody flushes, on the thread that does. It must not wait for work.
    pub fn on_flush(&self, hook: impl Fn(Flush) + Send + Sync + 'static) {
        lock_std(&self.flush_hooks.0).push(Arc::new(hook));
    }

    /// Asks all sources.
    pub(crate) fn flush_sources(&self, flush: Flush) {
        // They may take their time, and locks.
        let hooks = lock_std(&self.flush_hooks.0).clone();
        hooks.iter().for_each(|hook| hook(flush));
        self.sampling().flush();
    }
}
