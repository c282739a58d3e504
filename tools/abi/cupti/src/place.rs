//! Memory of the caller's.

use crate::result::{Answer, CUptiResult};
use std::ptr::NonNull;

/// A place for an answer.
pub struct Place<T>(NonNull<T>);

impl<T> Place<T> {
    /// `INVALID_PARAMETER` for a null or misaligned `place`.
    ///
    /// # Safety
    ///
    /// `place` is null, or can be written to until the answer has been. If it is for [`get`](Place::get), too, it holds a
    /// value.
    pub unsafe fn new(place: *mut T) -> Answer<Place<T>> {
        let place = NonNull::new(place).filter(|place| place.is_aligned());
        place.map(Place).ok_or(CUptiResult::INVALID_PARAMETER)
    }

    /// Writes the answer.
    pub fn put(self, answer: T) {
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
