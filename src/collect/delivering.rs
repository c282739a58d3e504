//! Threads that are in a callback: whoever waits for a buffer, or for a kernel, may wait for that very thread.

use std::cell::Cell;

thread_local! {
    static DELIVERING: Cell<bool> = const { Cell::new(false) };
    static NOTIFYING: Cell<bool> = const { Cell::new(false) };
}

/// Marks the calling thread as being in a buffer's callback while this lives.
pub(crate) struct Delivering(bool);

impl Delivering {
    pub fn begin() -> Delivering {
        Delivering(DELIVERING.replace(true))
    }
}

impl Drop for Delivering {
    fn drop(&mut self) {
        DELIVERING.set(self.0);
    }
}

/// Whether the calling thread is in a buffer's callback.
pub(crate) fn is_delivering() -> bool {
    DELIVERING.get()
}

/// Marks the calling thread as being in subscribers' callbacks while this lives. A source may call back for threads of its own
/// making (the simulated ones) on one thread.
pub(crate) struct Notifying {
    /// The thread's [`NOTIFYING`]. In a loaded library each access by the variable's name costs a call.
    state: *const Cell<bool>,
    before: bool,
}

impl Notifying {
    #[inline(always)]
    pub fn begin() -> Notifying {
        NOTIFYING.with(|state| Notifying {
            state,
            before: state.replace(true),
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
    NOTIFYING.get()
}
