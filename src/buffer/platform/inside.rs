//! Protection of the recorded program: its threads are cancelled, interrupted by signals and forked, and a panic in our
//! code must not reach it.

use std::cell::Cell;
use std::fmt::{Arguments, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

/// Runs `work` and contains any panic in it.
#[inline(always)]
pub fn contain(work: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
        // The payload may panic when it is dropped.
        std::mem::forget(panic);
    }
}

/// A reader of messages: returns whether it has taken one.
pub(crate) type MessageReader = fn(&str) -> bool;

/// The reader that is asked before a message is written.
static READER: OnceLock<MessageReader> = OnceLock::new();

/// Has `reader` asked for each message from now on. There is one in the process; a second one is not taken.
pub fn set_message_reader(reader: MessageReader) {
    let _ = READER.set(reader);
}

/// Writes a line to the program's standard error, unless a tool reads messages. Unlike `eprintln` it takes no lock: a forked
/// child may have inherited that lock from a thread that does not exist in it.
pub fn message(text: Arguments<'_>) {
    let mut line = String::from("gputrail: ");
    let start = line.len();
    let _ = writeln!(line, "{text}");
    let _uncancelled = Uncancelled::begin();
    if let Some(reader) = READER.get()
        && reader(&line[start..])
    {
        return;
    }
    // Errors are ignored: standard error may be closed.
    // SAFETY: the buffer is valid for its length.
    let _ = unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}

/// Disables cancellation of the calling thread while it lives: a pthread_cancel takes effect at the next
/// cancellation point after the last of them was dropped, in any order.
///
/// The system calls that we make are cancellation points, and cancellation unwinds the stack. Unwinding our frames
/// would leave locks held, and unwinding through `catch_unwind` ends the program.
pub struct Uncancelled {
    /// The thread's [`UNCANCELLED`]. In a loaded library each access by the variable's name costs a call.
    ///
    /// Not `Send`: it belongs to its thread.
    state: *const Cell<(u32, i32)>,
}

thread_local! {
    /// How many of them the thread has, and its state before the first.
    static UNCANCELLED: Cell<(u32, i32)> = const { Cell::new((0, 0)) };
}

#[cfg(target_os = "linux")]
unsafe extern "C" {
    // <pthread.h>
    fn pthread_setcancelstate(state: i32, before: *mut i32) -> i32;
}

#[cfg(target_os = "linux")]
unsafe extern "C-unwind" {
    // <pthread.h>. Back at the asynchronous type, a thread that has been cancelled ends at once.
    fn pthread_setcanceltype(cancel_type: i32, before: *mut i32) -> i32;
}

const PTHREAD_CANCEL_DEFERRED: i32 = 0;

/// The cancellation type of a thread before [`defer_cancellation`]. It has no destructor: see there.
#[must_use]
pub struct CancelType(i32);

/// Has a pthread_cancel of the calling thread take effect at cancellation points only, until the type is restored. The
/// asynchronous type unwinds the stack from any instruction, also from those of our frames at which they cannot be unwound,
/// which ends the program.
///
/// The calling frame is unwound from any instruction before and after: it must have no destructors and catch no panics.
#[inline(always)]
pub fn defer_cancellation() -> CancelType {
    let mut before = PTHREAD_CANCEL_DEFERRED;
    #[cfg(target_os = "linux")]
    // SAFETY: a type that there is, and a place for the one before.
    unsafe {
        pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &mut before)
    };
    CancelType(before)
}

impl CancelType {
    /// Restores the type.
    #[inline(always)]
    pub fn restore(self) {
        if self.0 != PTHREAD_CANCEL_DEFERRED {
            #[cfg(target_os = "linux")]
            // SAFETY: the type that the thread had.
            unsafe {
                pthread_setcanceltype(self.0, std::ptr::null_mut())
            };
        }
    }
}

/// Sets whether the calling thread may be cancelled, and returns what held before.
fn set_cancellation(state: i32) -> i32 {
    let mut before = state;
    #[cfg(target_os = "linux")]
    // SAFETY: a state that there is, and a place for the one before.
    unsafe {
        pthread_setcancelstate(state, &mut before)
    };
    before
}

impl Uncancelled {
    /// Keeps the calling thread from being cancelled until the value is dropped.
    #[inline]
    pub fn begin() -> Uncancelled {
        const PTHREAD_CANCEL_DISABLE: i32 = 1;
        UNCANCELLED.with(|state| {
            let (depth, before) = state.get();
            state.set(match depth {
                0 => (1, set_cancellation(PTHREAD_CANCEL_DISABLE)),
                _ => (depth + 1, before),
            });
            Uncancelled { state }
        })
    }
}

impl Drop for Uncancelled {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: a thread-local variable without a destructor lives as long as its thread, which drops this.
        let state = unsafe { &*self.state };
        let (depth, before) = state.get();
        state.set((depth - 1, before));
        if depth == 1 {
            set_cancellation(before);
        }
    }
}
