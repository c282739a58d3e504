//! Functions of the tool's that the library calls: panics go no further.

use core::ffi::c_void;
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
pub struct Callee<F> {
    pub failed: AtomicBool,
    pub function: F,
}

/// Holds a [`Callee`] for as long as the library may call it. Unless it is released, it stays for ever.
pub struct HeldCallee {
    callee: *mut c_void,
    drop: unsafe fn(*mut c_void),
}

// SAFETY: the function that it leads to is `Send` and `Sync`.
unsafe impl Send for HeldCallee {}
// SAFETY: as above.
unsafe impl Sync for HeldCallee {}

impl HeldCallee {
    pub fn new<F: Send + Sync + 'static>(function: F) -> HeldCallee {
        /// # Safety
        ///
        /// `HeldCallee::new` has boxed `callee` as a `Callee<F>`, nobody uses it any more, and this is called once for it.
        unsafe fn drop_it<F>(callee: *mut c_void) {
            // SAFETY: the pointer is that of a box of a `Callee<F>`, which nobody uses any more (the caller's promise).
            drop(unsafe { Box::from_raw(callee.cast::<Callee<F>>()) });
        }
        let callee = Box::new(Callee {
            failed: false.into(),
            function,
        });
        HeldCallee {
            callee: Box::into_raw(callee).cast(),
            drop: drop_it::<F>,
        }
    }

    /// The `Callee`, for the library to hand back.
    pub fn pointer(&self) -> *mut c_void {
        self.callee
    }

    /// Drops the function.
    ///
    /// # Safety
    ///
    /// The library does not call it any more, or never knew of it.
    pub unsafe fn release(self) {
        // SAFETY: `self`, which is used up here, is the only one to drop the callee; `drop` has its type; and the library
        // does not call it any more (the caller's promise).
        unsafe { (self.drop)(self.callee) }
    }
}

/// Whether the thread is in a callback of this tool's.
pub fn is_called() -> bool {
    CALLED.get()
}
