//! Memory of the caller's.

use crate::result::Answer;
use core::ffi::{CStr, c_char};
use gputrail_rocprofiler::Status;
use std::ptr::NonNull;

/// A place for an answer.
pub struct Place<T>(NonNull<T>);

impl<T> Place<T> {
    /// `INVALID_ARGUMENT` for a null or misaligned `place`.
    ///
    /// # Safety
    ///
    /// `place` is null, or can be written to until the answer has been. If it is for [`get`](Place::get), too, it holds a
    /// value.
    pub unsafe fn new(place: *mut T) -> Answer<Place<T>> {
        let place = NonNull::new(place).filter(|place| place.is_aligned());
        place.map(Place).ok_or(Status::ERROR_INVALID_ARGUMENT)
    }

    /// Writes the answer.
    pub fn put(&self, answer: T) {
        // SAFETY: the promise of `new`.
        unsafe { self.0.write(answer) };
    }
}

impl<T: Copy> Place<T> {
    /// The value that the caller has put there.
    pub fn get(&self) -> T {
        // SAFETY: `new` has been promised memory that holds a value.
        unsafe { self.0.read() }
    }
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
