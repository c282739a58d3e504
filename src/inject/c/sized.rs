//! Structures that begin with their size: the tool's and the library's may be of different versions.

use super::status::Failure;
use super::{Answer, checked};
use gputrail_interface::c::{SizedStruct, Status};

/// Structures above this size no version will have.
const MAX_STRUCT_BYTES: usize = 1 << 16;

fn wrong<T: SizedStruct>(size: usize) -> Failure {
    let (name, first, ours) = (T::NAME, T::FIRST, size_of::<T>());
    let text = format!(
        "{name}: its size field says {size} bytes; it has {ours}, or at least {first} in older versions"
    );
    Failure::new(Status::WRONG_SIZE, text)
}

/// Reads a structure of the caller's: fields that it does not have are 0. One that is longer than ours is taken if
/// what we do not know of it is 0, and so asks for nothing.
///
/// # Safety
///
/// `pointer` is null, misaligned, or leads to as many bytes as the size says that it begins with.
pub unsafe fn read<T: SizedStruct>(pointer: *const T) -> Answer<T> {
    // SAFETY: the caller's promise.
    unsafe { read_over(T::blank(), pointer) }
}

/// Reads a structure of the caller's; fields that it does not have are those of `base`.
///
/// # Safety
///
/// As for [`read`].
pub unsafe fn read_over<T: SizedStruct>(mut base: T, pointer: *const T) -> Answer<T> {
    checked(pointer, T::NAME)?;
    // SAFETY: not null and aligned, and the caller's promise.
    let size = unsafe { pointer.cast::<usize>().read() };
    if !(T::FIRST..=MAX_STRUCT_BYTES).contains(&size) {
        return Err(wrong::<T>(size));
    }
    let ours = size_of::<T>();
    if size > ours {
        // SAFETY: the caller's promise: that many bytes are there.
        let more =
            unsafe { std::slice::from_raw_parts(pointer.cast::<u8>().add(ours), size - ours) };
        if more.iter().any(|byte| *byte != 0) {
            let text = format!(
                "{}: {size} bytes, of a newer version, and what is beyond byte {ours} is not 0: this version cannot \
                 do what it asks for",
                T::NAME
            );
            return Err(Failure::new(Status::WRONG_SIZE, text));
        }
    }
    // SAFETY: both have that many bytes, and any bytes are a valid value.
    unsafe { copy((&raw mut base).cast(), pointer.cast(), size.min(ours)) };
    Ok(base)
}

/// Writes an answer into a structure of the caller's, as much of it as it has. Its size stays; what it has beyond ours
/// becomes 0.
///
/// # Safety
///
/// `pointer` is null, misaligned, or leads to as many bytes as the size says that it begins with, which nobody else
/// uses meanwhile.
pub unsafe fn write<T: SizedStruct>(pointer: *mut T, answer: &T) -> Answer {
    checked(pointer, T::NAME)?;
    // SAFETY: not null and aligned, and the caller's promise.
    let size = unsafe { pointer.cast::<usize>().read() };
    if !(T::FIRST..=MAX_STRUCT_BYTES).contains(&size) {
        return Err(wrong::<T>(size));
    }
    let (to, ours) = (pointer.cast::<u8>(), size_of::<T>());
    let known = size.min(ours);
    // SAFETY: the caller's promise: `size` bytes are there; ours has `known`.
    unsafe {
        copy(to, std::ptr::from_ref(answer).cast(), known);
        to.add(known).write_bytes(0, size - known);
        pointer.cast::<usize>().write(size);
    }
    Ok(())
}

/// # Safety
///
/// Both have `bytes` bytes, apart from each other.
unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { to.copy_from_nonoverlapping(from, bytes) }
}
