//! Whether the calling thread is in a callback of CUPTI or in a call of our own. What CUPTI tells of meanwhile is
//! not the program's.

use std::cell::Cell;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Marks the calling thread as in a callback of CUPTI, or in a call of our own, while it lives.
pub(super) struct InsideCupti(bool);

impl InsideCupti {
    pub fn begin() -> InsideCupti {
        InsideCupti(INSIDE.replace(true))
    }

    pub fn is_set() -> bool {
        INSIDE.get()
    }
}

impl Drop for InsideCupti {
    fn drop(&mut self) {
        INSIDE.set(self.0);
    }
}
