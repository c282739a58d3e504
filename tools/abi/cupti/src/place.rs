//! Memory of the caller's.

use crate::result::{Answer, CUptiResult};

use gputrail_abi::Misplaced;
pub use gputrail_abi::Place;

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
