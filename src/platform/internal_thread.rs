//! Threads of our own, in somebody else's process: made here, with every signal blocked (signals are for the
//! program's threads), and announced to tools that want to know (rocprofiler-sdk: `rocprofiler_at_internal_thread_create`).

use crate::platform::sync::PerProcess;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// When a tool is told of a thread of ours.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum InternalThread {
    /// It is about to be made, by the calling thread.
    Before,
    /// It has been made, or could not be.
    After,
}

type Watch = Arc<dyn Fn(InternalThread) + Send + Sync>;

static WATCHES: PerProcess<Watches> = PerProcess::new();

#[derive(Default)]
struct Watches {
    last: u64,
    all: Vec<(u64, Watch)>,
}

/// A function that is told of our threads, until this is dropped.
#[derive(Debug)]
#[must_use = "dropping it ends the watch"]
pub struct InternalThreadWatch(u64);

impl InternalThreadWatch {
    /// Has `watch` called around the making of each thread of ours from now on, on the thread that makes it. A watch
    /// that panics is not called again.
    pub fn new(watch: impl Fn(InternalThread) + Send + Sync + 'static) -> InternalThreadWatch {
        let mut watches = WATCHES.lock();
        watches.last += 1;
        let number = watches.last;
        watches.all.push((number, Arc::new(watch)));
        InternalThreadWatch(number)
    }
}

impl Drop for InternalThreadWatch {
    fn drop(&mut self) {
        let gone = remove(self.0);
        // What it owns is dropped without the lock.
        drop(gone);
    }
}

fn remove(number: u64) -> Option<(u64, Watch)> {
    let mut watches = WATCHES.lock();
    let place = watches.all.iter().position(|(of, _)| *of == number)?;
    Some(watches.all.remove(place))
}

/// Makes a thread named `gputrail`.
pub(crate) fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    announce(InternalThread::Before);
    let made = crate::platform::sync::with_signals_blocked(|| {
        std::thread::Builder::new()
            .name("gputrail".into())
            .spawn(work)
    });
    announce(InternalThread::After);
    made.map(drop)
}

fn announce(moment: InternalThread) {
    let watches = WATCHES.lock().all.clone();
    for (number, watch) in watches {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| watch(moment))) {
            // Its payload may be anything, and may panic when it is dropped; so may the watch.
            std::mem::forget(panic);
            std::mem::forget(remove(number));
        }
    }
}
