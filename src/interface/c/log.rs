//! Messages of the library to a function of a tool.

use core::ffi::{c_char, c_void};

/// The kinds of messages. They are combined with `|`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum LogKind {
    /// A call of this library failed: its function, the reason and the status.
    Error = 1,
    /// A line that the library would otherwise write to the standard error of the program.
    Message = 2,
    /// A call of this library has returned: its function and the status.
    Trace = 4,
}

/// Gets a message, of one line without its end, and its kind, a `GPUTRAIL_LOG_KIND`. Called on the thread that the message
/// is about, possibly on several at a time and under locks of the library: it must not call the library or the runtime, and
/// must not throw.
pub type LogFunction =
    Option<unsafe extern "C-unwind" fn(kind: u32, message: *const c_char, user_data: *mut c_void)>;
