//! Libraries that a program is linked with, or opens itself: they prepare gputrail's library, as such a program in C does.

use super::Error;
use super::functions::{act, call};

/// Prepares the library for the program. A tool finds it prepared. May be called again, which changes nothing.
///
/// # Errors
///
/// `NOT_AVAILABLE` if `libgputrail.so.0` is not in the process, or cannot work in it.
pub fn initialise() -> Result<(), Error> {
    act!(gputrail_initialise())
}

/// Whether `libgputrail.so.0` is in the process, and is prepared for the program or for tools.
pub fn is_initialised() -> bool {
    call!(gputrail_is_initialised()).is_ok_and(|is: i32| is != 0)
}

/// Has the OpenCL loader put the library between the program and the runtimes, before the program's first OpenCL call.
/// Nothing is to be done, and is, where `gputrail record` observes the program.
///
/// # Errors
///
/// `TOO_LATE` after the first OpenCL call, `NOT_INITIALISED`, `NOT_AVAILABLE`.
pub fn observe_opencl() -> Result<(), Error> {
    act!(gputrail_observe_opencl())
}
