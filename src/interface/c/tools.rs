//! Tools that are libraries of their own: loaded into a program that knows nothing of them, when the OpenCL layer
//! begins, and told when the program ends (the model is rocprofiler-sdk's `rocprofiler_configure`).
//!
//! A tool says what it is when it is asked ([`gputrail_tool_configure`](ToolDescription)), is then initialised before
//! the program's first call has gone through, and is finalised when the program ends or when it asks for that. A
//! failure costs the tool, never the program.

use super::{Status, ToolHandle, sized::sized};
use core::ffi::{c_char, c_void};

/// The host of a tool: the argument of the tool's entry point.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct ToolHost {
    /// Size of this structure.
    pub size: usize,
    /// The version of the C API that the library has.
    pub api_version: u32,
    /// 1 if the tool is only looked at, in a process of its own, to see whether it is one: it will not be initialised.
    pub probing: u32,
    /// The version of the library, as text.
    pub version: *const c_char,
    /// Path of the tool's own library.
    pub path: *const c_char,
    /// Its id, for `gputrail_tool_finish`.
    pub tool: ToolHandle,
    /// Its index among the tools that are loaded, from 0, in the order in which they were named.
    pub place: u32,
    /// Number of tools that are loaded.
    pub count: u32,
}
sized!(ToolHost, "gputrail_tool_host", 48);

/// Initialises a tool; gets its `user_data`.
pub type InitialiseFunction =
    Option<unsafe extern "C-unwind" fn(tool: ToolHandle, user_data: *mut c_void) -> Status>;

/// The end of a tool.
pub type FinaliseFunction = Option<unsafe extern "C-unwind" fn(user_data: *mut c_void)>;

/// The description of a tool: what its entry point returns. An exception that leaves one of the tool's functions ends the
/// program, with a message that names the tool. A library that is named twice, by one path or by
/// several, is one tool: it is loaded and initialised once, which a message says.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct ToolDescription {
    /// `sizeof(gputrail_tool_description)`.
    pub size: usize,
    /// `GPUTRAIL_API_VERSION`: the version that the tool was built for.
    pub api_version: u32,
    /// Tools with a lower number are initialised earlier and finalised later; equal ones in the order in which they
    /// were named.
    pub priority: i32,
    /// Its name, for messages.
    pub name: *const c_char,
    /// Called once, before the program's first OpenCL call goes on: makes contexts, and starts them. It must not call
    /// OpenCL. A tool whose initialisation returns something else than `GPUTRAIL_OK` is discarded, with a message.
    pub initialise: InitialiseFunction,
    /// Called once, when the program ends by exit or by returning from main, or after `gputrail_tool_finish`. What was
    /// recorded until then has been delivered, but for joined work that has not completed: that comes when its buffer is
    /// destroyed, after this if not by it. If a callback of a buffer has called exit, what that buffer had not delivered is
    /// counted as dropped. May be null.
    pub finalise: FinaliseFunction,
    /// Given to both.
    pub user_data: *mut c_void,
}
sized!(ToolDescription, "gputrail_tool_description", 48);
