//! Functions of the tool's that the library calls: panics go no further.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    /// Whether the thread is in a callback of this tool's.
    static CALLED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a callback of the tool's: a panic goes no further, and `failed` keeps that it happened.
pub fn call(failed: &AtomicBool, work: impl FnOnce()) {
    if failed.load(Ordering::Relaxed) {
        return;
    }
    let before = CALLED.replace(true);
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        failed.store(true, Ordering::Relaxed);
    }
    CALLED.set(before);
}

/// A function of the tool's that the library calls, at a place of its own.
pub struct Callee<F: ?Sized> {
    pub failed: AtomicBool,
    pub function: F,
}

impl<F> Callee<F> {
    /// Lasts until somebody makes a box of it again.
    pub fn new(function: F) -> *mut Callee<F> {
        Box::into_raw(Box::new(Callee {
            failed: false.into(),
            function,
        }))
    }
}

/// Whether the thread is in a callback of this tool's.
pub fn is_called() -> bool {
    CALLED.get()
}
