//! Memory of the caller's for attributes and arrays.

use crate::place::Place;
use crate::result::{Answer, CUptiResult};
use core::ffi::CStr;

/// Writes a text to memory for `*size` bytes, as many as fit, and their number to `size`: without its 0 if that does not fit.
///
/// # Safety
///
/// `size` is null or leads to a number; `value` is null or leads to that many bytes.
pub unsafe fn write_text(size: *mut usize, value: *mut u8, text: &CStr) -> Answer {
    // SAFETY: `size` is null or leads to a number.
    let place = unsafe { Place::new(size) }?;
    if value.is_null() {
        return Err(CUptiResult::INVALID_PARAMETER);
    }
    let bytes = text.to_bytes_with_nul();
    let fit = bytes.len().min(place.get());
    // SAFETY: there is room, as the caller says.
    unsafe { value.copy_from_nonoverlapping(bytes.as_ptr(), fit) };
    place.put(fit);
    Ok(())
}

/// Writes the elements of an array to memory for `*size` bytes, as many as fit, and their bytes to `size`.
///
/// # Safety
///
/// `size` is null or leads to a number; `array` is null or leads to that many bytes.
pub unsafe fn write_array<T: Copy>(
    size: *mut usize,
    array: *mut T,
    all: impl IntoIterator<Item = T>,
) -> Answer {
    // SAFETY: `size` is null or leads to a number; `array` is null or leads to that many bytes, and is not read.
    let (place, _) = unsafe { (Place::new(size)?, Place::new(array)?) };
    let fit = place.get() / size_of::<T>();
    let mut written = 0;
    for one in all.into_iter().take(fit) {
        // SAFETY: not null and aligned, and there is room, as the caller says.
        unsafe { array.add(written).write(one) };
        written += 1;
    }
    place.put(written * size_of::<T>());
    Ok(())
}

/// As [`write_array`], of elements all of which have to fit.
///
/// # Safety
///
/// As for [`write_array`].
pub unsafe fn write_whole<T: Copy>(size: *mut usize, array: *mut T, all: &[T]) -> Answer {
    // SAFETY: `size` is null or leads to a number; `array` is null or leads to that many bytes, and is not read.
    let (place, _) = unsafe { (Place::new(size)?, Place::new(array)?) };
    if place.get() < size_of_val(all) {
        return Err(CUptiResult::PARAMETER_SIZE_NOT_SUFFICIENT);
    }
    // SAFETY: as above; `write_array` asks for the same.
    unsafe { write_array(size, array, all.iter().copied()) }
}

/// Pairs of functions: the number of some ids, and the ids. A row has the names of the two, the arguments of both, and the ids.
macro_rules! listed {
    ($($(#[$what:meta])* $count:ident, $list:ident($($argument:ident: $type:ty)?) => $ids:expr;)*) => {$(
        #[doc = concat!("The number of ids of [`", stringify!($list), "`].")]
        ///
        /// # Safety
        ///
        /// `count` is null or a place for a number.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $count($($argument: $type,)? count: *mut u32) -> CUptiResult {
            with_gputrail(|| {
                // SAFETY: `count` is null or a place for a number.
                let place = unsafe { Place::new(count) }?;
                let ids: Vec<u32> = $ids;
                place.put(ids.len() as u32);
                Ok(())
            })
        }

        $(#[$what])*
        ///
        /// # Safety
        ///
        /// `size` is null or leads to a number; `ids` is null or leads to that many bytes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $list(
            $($argument: $type,)?
            size: *mut usize,
            ids: *mut u32,
        ) -> CUptiResult {
            with_gputrail(|| {
                let all: Vec<u32> = $ids;
                // SAFETY: `size` is null or leads to a number; `ids` is null or leads to that many bytes.
                unsafe { write_array(size, ids, all) }
            })
        }
    )*};
}
pub(crate) use listed;

/// The elements of an array of `bytes` bytes.
///
/// # Safety
///
/// `array` is null or leads to that many bytes, of which any are elements, and which are left alone during the call.
pub unsafe fn read_array<T: Copy>(array: *const T, bytes: usize) -> Answer<Vec<T>> {
    if array.is_null() || !array.is_aligned() {
        return Err(CUptiResult::INVALID_PARAMETER);
    }
    let count = bytes / size_of::<T>();
    // SAFETY: `array` is neither null nor misaligned, and leads to `bytes` bytes, which hold `count` elements and are
    // copied.
    Ok(unsafe { std::slice::from_raw_parts(array, count) }.to_vec())
}
