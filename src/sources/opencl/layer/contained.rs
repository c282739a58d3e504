//! Containment of panics in the layer's own work.

use gputrail_buffer::platform::inside::contain;

/// Does the layer's own part of a call. A panic in it is contained, and the program's call goes on.
///
/// Code of the runtime that may be cancelled is not called in it: its unwinding is foreign to Rust.
#[inline(always)]
pub(super) fn contained(work: impl FnOnce()) {
    let work = || {
        #[cfg(test)]
        tests::panic_if_asked();
        work();
    };
    contain(work);
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    thread_local! {
        /// The number of parts of the layer's own work that run before one panics.
        pub static PARTS_LEFT: Cell<Option<u32>> = const { Cell::new(None) };
    }

    pub fn panic_if_asked() {
        match PARTS_LEFT.get() {
            Some(0) => {
                PARTS_LEFT.set(None);
                panic!("as the test asked");
            }
            Some(left) => PARTS_LEFT.set(Some(left - 1)),
            None => {}
        }
    }
}
