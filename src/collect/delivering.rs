//! Threads that are in a callback: whoever waits for a buffer, or for a kernel, may wait for that very thread.
//!
//! A thread leaves a callback also by a fork, in the child, and by exit(3), which never returns to it.

use crate::process;
use std::cell::Cell;

/// Whether the calling thread is in a callback: 0, or the [generation](process::generation) of the process that called back
/// and 1. A forked child has another generation.
type CallbackMark = Cell<u64>;

thread_local! {
    static DELIVERING: CallbackMark = const { Cell::new(0) };
    static NOTIFYING: CallbackMark = const { Cell::new(0) };
}

#[inline(always)]
fn here() -> u64 {
    process::generation() + 1
}

/// Marks the calling thread as being in a buffer's callback while this lives.
pub struct InCallback(u64);

impl InCallback {
    /// Marks the calling thread.
    pub fn begin() -> InCallback {
        InCallback(DELIVERING.replace(here()))
    }
}

impl Drop for InCallback {
    fn drop(&mut self) {
        DELIVERING.set(self.0);
    }
}

/// Whether the calling thread is in a buffer's callback.
pub(crate) fn is_delivering() -> bool {
    DELIVERING.get() == here()
}

/// Marks the calling thread as being in subscribers' callbacks while this lives. A source may call back for threads of its own
/// making (the simulated ones) on one thread.
pub(crate) struct Notifying {
    /// The thread's [`NOTIFYING`]. In a loaded library each access by the variable's name costs a call.
    state: *const CallbackMark,
    before: u64,
}

impl Notifying {
    #[inline(always)]
    pub fn begin() -> Notifying {
        NOTIFYING.with(|state| Notifying {
            state,
            before: state.replace(here()),
        })
    }
}

impl Drop for Notifying {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: a thread-local variable without a destructor lives as long as its thread, which drops this.
        unsafe { (*self.state).set(self.before) };
    }
}

/// Whether the calling thread is in a subscriber's callback.
pub(crate) fn is_notifying() -> bool {
    NOTIFYING.get() == here()
}

/// The calling thread leaves the callbacks that it is in, to which it never returns: it ends the process.
pub(super) fn leave() {
    DELIVERING.set(0);
    NOTIFYING.set(0);
}
