//! The sentence of the last failed call of each thread.

use crate::types::{Answer, Failure, Status};
use core::ffi::c_char;
use gputrail_abi::contained;
use std::cell::RefCell;
use std::ffi::CString;

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Keeps the sentence of a failure for the calling thread.
pub fn note(failure: Failure) {
    let text = failure.text.replace('\0', " ");
    let text = CString::new(text).unwrap_or_default();
    // The thread may be ending.
    let _ = LAST.try_with(|last| last.replace(text));
}

/// The sentence; it lasts until the next failure on this thread.
pub fn last() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
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
