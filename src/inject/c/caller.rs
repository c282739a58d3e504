//! Calls of functions of tools: as whom the library calls, and what it refuses within them.

use super::Answer;
use super::owner::Owner;
use super::status::FailedCall;
use gputrail_interface::c::Status;
use std::cell::Cell;

/// Where a thread is: in a buffer's callback, in a subscriber's.
#[derive(Copy, Clone, PartialEq, Eq)]
enum CallbackPlace {
    Nothing,
    Batch,
    Call,
    /// In none any more: the thread ends the process in one, to which it never returns.
    Left,
}

thread_local! {
    static WITHIN: Cell<CallbackPlace> = const { Cell::new(CallbackPlace::Nothing) };
}

/// Runs callbacks: as the owner of the object that they belong to, with calls refused that would wait for them.
#[derive(Copy, Clone)]
pub(super) struct Caller {
    owner: Owner,
    within: CallbackPlace,
}

impl Caller {
    /// For a buffer's callbacks; the calling user owns the buffer.
    pub fn of_buffer() -> Caller {
        Caller {
            owner: Owner::current(),
            within: CallbackPlace::Batch,
        }
    }

    /// For a subscriber's callbacks; the calling user owns the subscriber.
    pub fn of_subscriber() -> Caller {
        Caller {
            within: CallbackPlace::Call,
            ..Caller::of_buffer()
        }
    }

    /// Runs a callback.
    pub fn run<R>(self, callback: impl FnOnce() -> R) -> R {
        let before = WITHIN.try_with(|place| place.replace(self.within));
        let result = self.owner.run(callback);
        if let Ok(before) = before {
            let _ = WITHIN.try_with(|place| place.set(before));
        }
        result
    }
}

fn within() -> CallbackPlace {
    // A forked child and a thread that ends the process have left the callback.
    match Owner::calling() {
        Some(_) if !has_left() => WITHIN.try_with(Cell::get).unwrap_or(CallbackPlace::Nothing),
        _ => CallbackPlace::Nothing,
    }
}

/// The calling thread leaves the callbacks that it is in, to which it never returns: it ends the process.
pub(super) fn leave() {
    if is_inside() {
        let _ = WITHIN.try_with(|within| within.set(CallbackPlace::Left));
    }
    Owner::leave_callbacks();
}

/// Whether the calling thread has left a callback for ever: objects that are used further up its stack stay in use.
pub(super) fn has_left() -> bool {
    WITHIN.try_with(Cell::get) == Ok(CallbackPlace::Left)
}

/// Whether the calling thread is in a callback of a tool's.
pub(super) fn is_inside() -> bool {
    within() != CallbackPlace::Nothing
}

/// Refuses what a source may wait for within a buffer's callback.
pub(super) fn refuse_inside_batch() -> Answer {
    match within() {
        CallbackPlace::Batch => refuse_inside(),
        CallbackPlace::Nothing | CallbackPlace::Call | CallbackPlace::Left => Ok(()),
    }
}

/// Refuses what would wait for callbacks within one.
pub(super) fn refuse_inside() -> Answer {
    let whose = match within() {
        CallbackPlace::Nothing | CallbackPlace::Left => return Ok(()),
        CallbackPlace::Batch => "buffer's",
        CallbackPlace::Call => "subscriber's",
    };
    let text = format!("not allowed within a {whose} callback");
    Err(FailedCall::new(Status::BUSY, text))
}
