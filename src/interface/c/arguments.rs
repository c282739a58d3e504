//! Arguments: of calls in callbacks, of recorded calls, and of operations.

use super::sized::sized;
use core::ffi::c_char;
use gputrail_record::ArgumentType;

/// An argument of a call.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct Argument {
    /// `sizeof(gputrail_argument)`.
    pub size: usize,
    /// Its name. The text is never freed.
    pub name: *const c_char,
    /// Its type in C. The text is never freed.
    pub type_name: *const c_char,
    /// Its bits: a number as it is, a signed one extended to 64 bits, a pointer or handle as an address. A string that
    /// a record keeps is the id of it, for `gputrail_string`.
    pub value: u64,
    /// How records keep it: `GPUTRAIL_ARGUMENT_TYPE_SIGNED` or another of them, or 0 if they do not.
    pub kept_as: ArgumentType,
    /// 0.
    pub reserved: [u8; 3],
    /// How often its value can be dereferenced: 0 for a number or handle.
    pub dereference_depth: u32,
}
sized!(Argument, "gputrail_argument", 40);
