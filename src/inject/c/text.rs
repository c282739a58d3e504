//! Text for C: copied into the caller's memory, or kept for ever where there is not much of it.

use super::status::FailedCall;
use super::{Answer, checked};
use core::ffi::{CStr, c_char};
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_interface::c::Status;
use std::collections::HashMap;
use std::ffi::CString;

/// Copies `text`, ended by a 0, to `to`, and tells its length, without the 0, in `length`, which may be null. A null
/// `to` asks for the length alone.
///
/// # Safety
///
/// `to` is null or leads to `capacity` bytes that can be written, `length` is null, misaligned or a place for a number.
/// Neither overlaps with `text`.
pub unsafe fn copy(text: &str, to: *mut c_char, capacity: usize, length: *mut usize) -> Answer {
    if !length.is_null() {
        checked(length, "length")?;
        // SAFETY: `length` is not null, `checked` has refused a misaligned one, and otherwise it is a place for a number
        // (the caller's promise).
        unsafe { length.write(text.len()) };
    }
    if to.is_null() {
        return Ok(());
    }
    if capacity <= text.len() {
        let text = format!(
            "a text of {} bytes and a 0 into {capacity} bytes",
            text.len()
        );
        return Err(FailedCall::new(Status::TOO_SMALL, text));
    }
    // SAFETY: `to` leads to `capacity` bytes that can be written and are not those of `text` (the caller's promise), more
    // than `text` is long: the text and the 0 fit.
    unsafe {
        to.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
        to.add(text.len()).write(0);
    }
    Ok(())
}

/// The caller's text.
///
/// # Safety
///
/// `text` is null or leads to initialised bytes that end with a 0, which nobody writes for `'a`.
pub unsafe fn given<'a>(text: *const c_char, name: &'static str) -> Answer<&'a str> {
    checked(text, name)?;
    // SAFETY: `checked` has refused null; otherwise `text` leads to bytes that end with a 0 and that nobody writes for `'a`
    // (the caller's promise).
    let text = unsafe { CStr::from_ptr(text) };
    let wrong = |_| FailedCall::new(Status::INVALID_ARGUMENT, format!("{name} is not UTF-8"));
    text.to_str().map_err(wrong)
}

/// `text` with a 0 behind it, for ever. For names of functions and arguments, of which there are not many.
pub fn kept(text: &str) -> *const c_char {
    static KEPT: PerProcess<HashMap<Box<str>, &'static CStr>> = PerProcess::new();
    let mut kept = KEPT.lock();
    if let Some(text) = kept.get(text) {
        return text.as_ptr();
    }
    let c = CString::new(text).unwrap_or_default();
    let c: &'static CStr = Box::leak(c.into_boxed_c_str());
    kept.insert(text.into(), c);
    c.as_ptr()
}
