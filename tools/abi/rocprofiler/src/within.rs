//! Whether the calling thread is in a callback of the program's, where nothing can be waited for.

use std::cell::Cell;

thread_local! {
    static WITHIN: Cell<bool> = const { Cell::new(false) };
}

/// A callback, until this is dropped.
pub struct Within(bool);

/// Enters a callback.
pub fn enter() -> Within {
    Within(WITHIN.replace(true))
}

/// Whether the thread is in a callback.
pub fn is() -> bool {
    WITHIN.get()
}

impl Drop for Within {
    fn drop(&mut self) {
        WITHIN.set(self.0);
    }
}
