//! Memory of the caller's.

use crate::result::Answer;
use core::ffi::{CStr, c_char};
use gputrail_abi::Place;
use gputrail_rocprofiler::Status;

/// A place for an answer: `INVALID_ARGUMENT` for a null or misaligned one.
///
/// # Safety
///
/// As for [`Place::new`].
pub unsafe fn place_of<T>(place: *mut T) -> Answer<Place<T>> {
    // SAFETY: the promise of this function, as `new` asks for it.
    unsafe { Place::new(place) }.map_err(|_| Status::ERROR_INVALID_ARGUMENT)
}

/// The values of an array that the caller gave; none for null.
///
/// # Safety
///
/// `values` is null, or leads to `count` values that are left alone for `'a`.
pub unsafe fn array<'a, T>(values: *const T, count: usize) -> &'a [T] {
    if values.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: not null, so that there are `count` values, which are left alone for `'a`.
    unsafe { std::slice::from_raw_parts(values, count) }
}

/// Writes a name and its length, each to its place if that is not null. Without a name, null and 0 are written, and `status` is the
/// answer.
///
/// # Safety
///
/// Both places are null or can be written to.
pub unsafe fn put_name(
    name: Option<&'static CStr>,
    to: *mut *const c_char,
    length: *mut u64,
    status: Status,
) -> Answer {
    let (text, bytes) = name.map_or((std::ptr::null(), 0), |name| {
        (name.as_ptr(), name.count_bytes() as u64)
    });
    if !to.is_null() {
        // SAFETY: not null, so that it can be written to.
        unsafe { to.write(text) };
    }
    if !length.is_null() {
        // SAFETY: not null, so that it can be written to.
        unsafe { length.write(bytes) };
    }
    name.map(|_| ()).ok_or(status)
}
