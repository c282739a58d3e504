//! Threads that deliver records. Meanwhile their own lanes do not wait for a block, since they might wait for
//! themselves. This applies to code that sinks call, and to handlers of signals during a delivery.

use std::cell::Cell;
use std::ptr;

thread_local! {
    /// The collector that the thread delivers for, or null.
    static DELIVERS: Cell<*const ()> = const { Cell::new(ptr::null()) };
}

/// A guard: while it lives, the calling thread delivers.
#[cfg(not(loom))]
pub(super) struct Delivering(*const ());

#[cfg(not(loom))]
impl Delivering {
    /// The thread delivers for `collector`, whose receivers it locks.
    pub fn begin<T>(collector: &T) -> Delivering {
        let collector = ptr::from_ref(collector).cast();
        let before = DELIVERS.try_with(|delivers| delivers.replace(collector));
        Delivering(before.unwrap_or(collector))
    }

    /// Whether the calling thread delivers for `collector`: its callback has called exit(3), and never returns.
    pub fn is_for<T>(collector: &T) -> bool {
        let collector = ptr::from_ref(collector).cast();
        DELIVERS.try_with(Cell::get).is_ok_and(|of| of == collector)
    }
}

#[cfg(not(loom))]
impl Drop for Delivering {
    fn drop(&mut self) {
        let _ = DELIVERS.try_with(|delivers| delivers.set(self.0));
    }
}

/// Whether the calling thread delivers.
pub(super) fn is_delivering() -> bool {
    DELIVERS
        .try_with(Cell::get)
        .map_or(true, |of| !of.is_null())
}
