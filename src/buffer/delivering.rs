//! Threads that deliver records. Meanwhile their own lanes do not wait for a block, since they might wait for
//! themselves. This applies to code that sinks call, and to handlers of signals during a delivery.

use std::cell::Cell;

thread_local! {
    static DELIVERS: Cell<bool> = const { Cell::new(false) };
}

/// A guard: while it lives, the calling thread delivers.
#[cfg(not(loom))]
pub(super) struct Delivering(bool);

#[cfg(not(loom))]
impl Delivering {
    pub fn begin() -> Delivering {
        Delivering(
            DELIVERS
                .try_with(|delivers| delivers.replace(true))
                .unwrap_or(true),
        )
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
    DELIVERS.try_with(Cell::get).unwrap_or(true)
}
