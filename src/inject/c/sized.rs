//! Structures that begin with their size: the tool's and the library's may be of different versions.

use super::status::FailedCall;
use super::{Answer, checked};
use gputrail_interface::c::{SizedStruct, Status};

/// Structures above this size no version will have.
const MAX_STRUCT_BYTES: usize = 1 << 16;

fn wrong<T: SizedStruct>(size: usize) -> FailedCall {
    let (name, first, ours) = (T::NAME, T::FIRST, size_of::<T>());
    let text = format!(
        "{name}: its size field says {size} bytes; it has {ours}, or at least {first} in older versions"
    );
    FailedCall::new(Status::WRONG_SIZE, text)
}

/// Reads a structure of the caller's: fields that it does not have are 0. One that is longer than ours is taken if
/// what we do not know of it is 0, and so asks for nothing.
///
/// # Safety
///
/// `pointer` is null, misaligned, or leads to a `usize` and to as many bytes as that says, itself among them. All of them
/// are initialised, and nobody writes them during the call.
pub unsafe fn read<T: SizedStruct>(pointer: *const T) -> Answer<T> {
    // SAFETY: what `read_over` asks of `pointer` is what this function asks of its caller.
    unsafe { read_over(T::blank(), pointer) }
}

/// Reads a structure of the caller's; fields that it does not have are those of `base`.
///
/// # Safety
///
/// As for [`read`].
pub unsafe fn read_over<T: SizedStruct>(mut base: T, pointer: *const T) -> Answer<T> {
    checked(pointer, T::NAME)?;
    // SAFETY: `checked` has refused null and misaligned pointers; otherwise the structure begins with its size, a `usize`
    // that is initialised (the caller's promise).
    let size = unsafe { pointer.cast::<usize>().read() };
    if !(T::FIRST..=MAX_STRUCT_BYTES).contains(&size) {
        return Err(wrong::<T>(size));
    }
    let ours = size_of::<T>();
    if size > ours {
        // SAFETY: `pointer` leads to `size` initialised bytes (the caller's promise), so those from `ours` to `size` are
        // there, and nobody writes them while `more` is used.
        let more =
            unsafe { std::slice::from_raw_parts(pointer.cast::<u8>().add(ours), size - ours) };
        if more.iter().any(|byte| *byte != 0) {
            let text = format!(
                "{}: {size} bytes, of a newer version, and what is beyond byte {ours} is not 0: this version cannot \
                 do what it asks for",
                T::NAME
            );
            return Err(FailedCall::new(Status::WRONG_SIZE, text));
        }
    }
    // SAFETY: `base` has `ours` bytes and `pointer` leads to `size`, elsewhere; any bytes are a valid `T` (`SizedStruct`).
    unsafe { copy((&raw mut base).cast(), pointer.cast(), size.min(ours)) };
    Ok(base)
}

/// Writes an answer into a structure of the caller's, as much of it as it has. Its size stays; what it has beyond ours
/// becomes 0.
///
/// # Safety
///
/// `pointer` is null, misaligned, or leads to an initialised `usize` and to as many bytes as that says, itself among them.
/// All of them can be written, and nobody else uses them during the call. `answer` is not among them.
pub unsafe fn write<T: SizedStruct>(pointer: *mut T, answer: &T) -> Answer {
    checked(pointer, T::NAME)?;
    // SAFETY: `checked` has refused null and misaligned pointers; otherwise the structure begins with its size, a `usize`
    // that is initialised (the caller's promise).
    let size = unsafe { pointer.cast::<usize>().read() };
    if !(T::FIRST..=MAX_STRUCT_BYTES).contains(&size) {
        return Err(wrong::<T>(size));
    }
    let (to, ours) = (pointer.cast::<u8>(), size_of::<T>());
    let known = size.min(ours);
    // SAFETY: `pointer` leads to `size` bytes that can be written and that nobody else uses (the caller's promise), and
    // `known` is at most `size`; `answer`, which lies elsewhere, has at least `known`.
    unsafe {
        copy(to, std::ptr::from_ref(answer).cast(), known);
        to.add(known).write_bytes(0, size - known);
        pointer.cast::<usize>().write(size);
    }
    Ok(())
}

/// # Safety
///
/// `bytes` bytes can be read at `from` and written at `to`; they do not overlap.
unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: `bytes` bytes can be read at `from` and written at `to`, and they do not overlap (the caller's promise).
    unsafe { to.copy_from_nonoverlapping(from, bytes) }
}
