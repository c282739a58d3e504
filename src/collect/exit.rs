//! The end of a process: outstanding work gets time to complete, then tools and the recording are ended.
//!
//! It comes in a handler of exit(3), before the runtime's own threads and destructors go. A handler runs before all
//! that was registered earlier. Ours is registered when a source attaches and again behind everything that a tool may
//! have registered for its own end, so that no destructor of a tool runs while its callbacks may still be called.

use super::process;
use crate::platform::inside::{Uncancelled, contain};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Time for outstanding work to complete when the program ends.
const PATIENCE: Duration = Duration::from_secs(2);

/// The room of tools, which lies above this one.
pub(crate) struct Tools {
    /// Loads and initialises the tools that the environment names, at most once in a process.
    pub load: fn(),
    /// Delivers everything to the tools, and finalises them.
    pub finalise: fn(),
}

/// Null where tools are not loaded.
static TOOLS: AtomicPtr<Tools> = AtomicPtr::new(std::ptr::null_mut());

/// Has tools loaded when a source attaches, and finalised when the process ends.
#[cfg(feature = "capi")]
pub(crate) fn set_tools(tools: &'static Tools) {
    TOOLS.store(std::ptr::from_ref(tools).cast_mut(), Ordering::Release);
}

fn tools() -> Option<&'static Tools> {
    // SAFETY: null, or from a reference that lasts for ever.
    unsafe { TOOLS.load(Ordering::Acquire).as_ref() }
}

/// A source has attached: loads tools, and registers the handler.
pub(super) fn begin() {
    register();
    if let Some(tools) = tools() {
        (tools.load)();
        register();
        at_end_of_thread();
    }
}

/// Registers the handler, if there is something to be ended. It then runs before all handlers and destructors that have
/// been registered so far. There is room for it behind each thread of many, and not behind each of an endless row.
fn register() {
    const MAX_REGISTERED: u32 = 4096;
    static REGISTERED: AtomicU32 = AtomicU32::new(0);
    if REGISTERED.fetch_add(1, Ordering::Relaxed) < MAX_REGISTERED {
        // SAFETY: a function of this library, which is never unloaded.
        unsafe { libc::atexit(at_exit) };
    }
}

/// The calling thread records: should it be the one that calls exit, its destructor registers the handler once more,
/// behind what tools have registered since. exit(3) runs the destructors of its own thread before all handlers.
pub(super) fn at_end_of_thread() {
    thread_local! {
        static LAST: RegisterAtEnd = const { RegisterAtEnd };
    }
    if tools().is_some() {
        // The first use of a thread registers its destructor.
        let _ = LAST.try_with(|_| ());
    }
}

struct RegisterAtEnd;

impl Drop for RegisterAtEnd {
    fn drop(&mut self) {
        // In a process that has ended its recording, and in a child without one, there is nothing to end.
        if process::board().is_some() {
            register();
        }
    }
}

/// The program ends through exit, or by returning from main.
extern "C" fn at_exit() {
    contain(finish);
}

/// Ends the recording and the tools of this process. A forked child that has made no call has none.
fn finish() {
    if process::board().is_none() {
        return;
    }
    let _uncancelled = Uncancelled::begin();
    // Work that is outstanding in a child that is not observed is its parent's.
    if let Some(thread) = process::current().filter(|_| process::is_observed()) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let outstanding: usize = process::observing()
                .map(|source| source.outstanding(thread))
                .sum();
            if outstanding == 0 || Instant::now() >= deadline {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        for source in process::observing() {
            source.end(thread);
        }
    }
    if let Some(tools) = tools() {
        (tools.finalise)();
    }
    if let Some(recorder) = process::end() {
        // The mapping says what went wrong with the capture; the parent reads it there.
        let _ = recorder.finish();
    }
}
