//! The sentence of the last failed call of each thread.

use crate::types::{Answer, Failure, Status};
use core::ffi::c_char;
use gputrail_abi::{Callee, contained};
use std::cell::RefCell;
use std::ffi::CString;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    /// Nothing frees the last one of a thread: `OnUnloadTool` asks for it after the thread's values have ended.
    static LAST: RefCell<Option<ManuallyDrop<CString>>> = const { RefCell::new(None) };
}

/// A function of the tool's, which it has given to the function `set_by`, or which is found by that name.
pub fn callee(set_by: &'static str, function: *const ()) -> Callee {
    Callee {
        library: "librocprofiler64",
        set_by,
        function,
    }
}

/// Keeps the sentence of a failure for the calling thread.
pub fn note(failure: Failure) {
    let text = failure.text.replace('\0', " ");
    let text = CString::new(text).unwrap_or_default();
    let before = LAST.replace(Some(ManuallyDrop::new(text)));
    drop(before.map(ManuallyDrop::into_inner));
}

/// The sentence; it lasts until the next failure on this thread.
pub fn last() -> *const c_char {
    LAST.with_borrow(|last| last.as_ref().map_or(c"".as_ptr(), |last| last.as_ptr()))
}

/// Tells the user of a failure that no call answers.
pub fn message(failure: Failure) {
    eprintln!("librocprofiler64: {}", failure.text);
    note(failure);
}

/// As [`message`], of what may come with each kernel: the first is printed.
pub fn message_once(failure: Failure) {
    static IS_TOLD: AtomicBool = AtomicBool::new(false);
    if IS_TOLD.swap(true, Ordering::Relaxed) {
        note(failure)
    } else {
        message(failure)
    }
}

/// Runs the function `name` of the API.
pub fn api(name: &str, work: impl FnOnce() -> Answer) -> Status {
    let failure = match contained(work) {
        Some(Ok(())) => return Status::SUCCESS,
        Some(Err(failure)) => failure,
        None => Failure::state("internal error"),
    };
    let status = failure.status;
    note(Failure::new(status, format!("{name}: {}", failure.text)));
    status
}
