//! The end of a process: tools get what is left and are finalised, and the recording ends.
//!
//! It comes in handlers of exit(3), before the runtime's own threads and destructors go. A handler runs before all that
//! were registered earlier. Tools end in the first of ours: it is registered when a source attaches and again behind
//! everything that a tool may have registered for its own end, so that no destructor of a tool runs while its callbacks
//! may still be called.
//!
//! A callback of a tool may call exit(3), which never returns to it. The end is the same: its thread has left the callback.
//! What only that callback's buffer could deliver is counted as dropped.
//!
//! Other threads of the program may go on until the process is gone, and the runtime may complete work in handlers of its
//! own. Where `gputrail record` collects, all that is recorded to the end. A recording without a parent ends in our last
//! handler, which is registered before all that the program registers after its first call.

use super::process;
use super::recorder::Recorder;
use super::source;
use super::switchboard::Buffers;
use gputrail_buffer::platform::inside::{Uncancelled, contain};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

/// The room of tools, which lies above this one.
pub struct Tools {
    /// Loads and initialises the tools that the environment names, at most once in a process.
    pub load: fn(),
    /// Delivers everything to the tools, and finalises them.
    pub finalise: fn(),
}

/// Null where tools are not loaded.
static TOOLS: AtomicPtr<Tools> = AtomicPtr::new(std::ptr::null_mut());

/// Has tools loaded when a source attaches, and finalised when the process ends.
pub fn set_tools(tools: &'static Tools) {
    TOOLS.store(std::ptr::from_ref(tools).cast_mut(), Ordering::Release);
}

fn tools() -> Option<&'static Tools> {
    // SAFETY: null, or from a reference that lasts for ever.
    unsafe { TOOLS.load(Ordering::Acquire).as_ref() }
}

/// A source has attached: loads tools, and registers the handlers.
pub(super) fn begin() {
    static ONCE: AtomicBool = AtomicBool::new(false);
    if !ONCE.swap(true, Ordering::Relaxed) {
        // SAFETY: a function of this library, which is never unloaded.
        unsafe { libc::atexit(at_last) };
    }
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
    contain(begin_to_end);
}

/// The other handlers have run.
extern "C" fn at_last() {
    contain(|| {
        let _uncancelled = Uncancelled::begin();
        if process::recorder().is_some_and(|recorder| !recorder.outlives_exit())
            && let Some(recorder) = process::end()
        {
            // Nobody is left to hear of an error, which the capture shows as well: it has no end.
            let _ = recorder.finish();
        }
    });
}

/// Ends the tools of this process, and what they and the recording need of the sources. A forked child that has made no
/// call has none.
fn begin_to_end() {
    /// The process in which it was done: it is registered more than once, and forked children inherit the value.
    static DONE_IN: AtomicU32 = AtomicU32::new(0);
    let Some(board) = process::board() else {
        return;
    };
    let process = std::process::id();
    if DONE_IN.swap(process, Ordering::Relaxed) == process {
        return;
    }
    let _uncancelled = Uncancelled::begin();
    process::leave_callbacks();
    let recorder = process::recorder();
    // Work that is outstanding in a child that is not observed is its parent's.
    if let Some(thread) = process::current().filter(|_| process::is_observed()) {
        let recording = recorder.map_or(Buffers::NONE, Recorder::buffers);
        for (_, source) in source::of(process::observing()) {
            source.end(thread, board.buffers().without(recording));
        }
    }
    if let Some(tools) = tools() {
        (tools.finalise)();
    }
    if let Some(recorder) = recorder {
        recorder.exit();
    }
}
