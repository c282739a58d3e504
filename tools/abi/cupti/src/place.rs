//! Memory of the caller's.

use crate::result::{Answer, CUptiResult};
use gputrail_abi::Misplaced;
pub use gputrail_abi::Place;
use std::ptr::NonNull;

impl From<Misplaced> for CUptiResult {
    fn from(_: Misplaced) -> CUptiResult {
        CUptiResult::INVALID_PARAMETER
    }
}

/// Writes an attribute's value to the caller's memory of `*size` bytes, and its size to `size`.
///
/// # Safety
///
/// `size` is null or leads to a number; `value` is null or leads to that many bytes.
pub unsafe fn write_attribute<T: Copy>(size: *mut usize, value: *mut u8, answer: T) -> Answer {
    // SAFETY: `size` is null or leads to a number.
    let place = unsafe { Place::new(size) }?;
    if value.is_null() {
        return Err(CUptiResult::INVALID_PARAMETER);
    }
    if place.get() < size_of::<T>() {
        return Err(CUptiResult::PARAMETER_SIZE_NOT_SUFFICIENT);
    }
    // SAFETY: there is room, as the caller says.
    unsafe { value.cast::<T>().write_unaligned(answer) };
    place.put(size_of::<T>());
    Ok(())
}

/// Writes the elements of a list to the caller's memory, which has room for `*room` of them; as many as there is room for. Without a
/// place for elements nothing is written.
///
/// # Safety
///
/// `room` is null or leads to a number; `elements` is null or has room for as many.
pub unsafe fn write_list<T: Copy>(list: &[T], elements: *mut T, room: *mut u32) -> Answer {
    let Some(elements) = NonNull::new(elements) else {
        return Ok(());
    };
    if !elements.is_aligned() {
        return Err(CUptiResult::INVALID_PARAMETER);
    }
    // SAFETY: `room` is null or leads to a number.
    let room = unsafe { Place::new(room) }?.get() as usize;
    let written = list.len().min(room);
    // SAFETY: there is room for as many, as the caller says.
    unsafe { elements.copy_from_nonoverlapping(NonNull::from(list).cast(), written) };
    Ok(())
}
