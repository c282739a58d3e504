//! Threads of the library: those that deliver records, and callbacks around their creation.

use core::ffi::c_void;

/// Called around the creation of a thread of the library, on the thread that creates it: with `made` 0 before, and with
/// 1 afterwards, also if it could not be created. It must not throw.
pub type ThreadFunction = Option<unsafe extern "C-unwind" fn(made: i32, user_data: *mut c_void)>;
