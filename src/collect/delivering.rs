//! Threads that are in a buffer's callback: whoever waits for a buffer may wait for that very thread.

use std::cell::Cell;

thread_local! {
    static DELIVERING: Cell<bool> = const { Cell::new(false) };
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
