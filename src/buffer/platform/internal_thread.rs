//! Internal threads of the library inside the recorded process. They are created here with all signals blocked, since
//! signals are for the program's threads, and are announced to tools (rocprofiler-sdk:
//! `rocprofiler_at_internal_thread_create`).

use crate::platform::sync::PerProcess;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The moments at which a tool is notified of an internal thread.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum InternalThread {
    /// The calling thread is about to create it.
    Before,
    /// It was created, or creating it failed.
    After,
}

type WatchFunction = Arc<dyn Fn(InternalThread) + Send + Sync>;

static WATCHES: PerProcess<Watches> = PerProcess::new();

#[derive(Default)]
struct Watches {
    last: u64,
    all: Vec<(u64, WatchFunction)>,
}

/// The registration of a function that is notified of internal threads, until this is dropped.
#[derive(Debug)]
#[must_use = "dropping it ends the watch"]
pub struct InternalThreadWatch(u64);

impl InternalThreadWatch {
    /// Calls `watch` before and after the creation of each internal thread, on the creating thread. A watch that panics
    /// is not called again.
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
        let removed = remove(self.0);
        // Drops the function after the lock was released.
        drop(removed);
    }
}

fn remove(number: u64) -> Option<(u64, WatchFunction)> {
    let mut watches = WATCHES.lock();
    let index = watches.all.iter().position(|(of, _)| *of == number)?;
    Some(watches.all.remove(index))
}

/// The internal threads that have been created and have not got their name.
static UNNAMED: AtomicU32 = AtomicU32::new(0);
/// How long a new thread is waited for.
const LONGEST_START: Duration = Duration::from_millis(100);

/// Spawns a thread named `gputrail`.
pub fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    announce(InternalThread::Before);
    UNNAMED.fetch_add(1, Ordering::AcqRel);
    let named = move || {
        // The name is set before this is called.
        UNNAMED.fetch_sub(1, Ordering::AcqRel);
        work();
    };
    let made = crate::platform::sync::with_signals_blocked(|| {
        std::thread::Builder::new()
            .name("gputrail".into())
            .spawn(named)
    });
    if made.is_err() {
        UNNAMED.fetch_sub(1, Ordering::AcqRel);
    }
    announce(InternalThread::After);
    made.map(drop)
}

/// Waits, for a short time at most, until the internal threads that have been created can be told from others by their name.
pub fn wait_for_names() {
    let until = Instant::now() + LONGEST_START;
    while UNNAMED.load(Ordering::Acquire) != 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_micros(50));
    }
}

fn announce(moment: InternalThread) {
    let watches = WATCHES.lock().all.clone();
    for (number, watch) in watches {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| watch(moment))) {
            // The payload and the function may panic when they are dropped.
            std::mem::forget(panic);
            std::mem::forget(remove(number));
        }
    }
}
