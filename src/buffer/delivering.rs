//! Threads that deliver: while they do, their own lanes wait for no block, since they may be who is to empty it. That
//! concerns what sinks call, and handlers of signals that come meanwhile.

use std::cell::Cell;

thread_local! {
    static DELIVERS: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread delivers, while this lives.
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

/// Whether the calling thread does.
pub(super) fn is_delivering() -> bool {
    DELIVERS.try_with(Cell::get).unwrap_or(true)
}
