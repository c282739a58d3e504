//! The functions by which runtimes of OpenMP and OpenACC find this library.

use crate::c::serve_tools;
use crate::elder::elder;
use core::ffi::{c_char, c_void};
use gputrail_sources::openacc::{self, Register};
use gputrail_sources::openmp::{self, StartTool, StartToolFunction};

/// Called by an OpenMP runtime when it begins: the tool, or null if it is to work without one.
///
/// # Safety
///
/// `runtime` is null or a text that ends with a 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompt_start_tool(version: u32, runtime: *const c_char) -> *const StartTool {
    match elder::<StartToolFunction>("ompt_start_tool") {
        // SAFETY: the earlier copy's function of this name is this function (`elder`), and is promised the same: `runtime`
        // is null or a text that ends with a 0.
        Some(elder) => unsafe { elder(version, runtime) },
        None => {
            serve_tools();
            openmp::start_tool()
        }
    }
}

/// Called by an OpenACC runtime when it begins.
///
/// # Safety
///
/// `register` is null or the runtime's function, which registers callbacks until this function returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acc_register_library(
    register: Option<Register>,
    unregister: *const c_void,
    lookup: *const c_void,
) {
    type Function = unsafe extern "C" fn(Option<Register>, *const c_void, *const c_void);
    match elder::<Function>("acc_register_library") {
        // SAFETY: the earlier copy's function of this name is this function (`elder`), and is promised the same: `register`
        // is null or the runtime's function.
        Some(elder) => unsafe { elder(register, unregister, lookup) },
        None => {
            serve_tools();
            if let Some(register) = register {
                // SAFETY: `register` is the runtime's function, which may be called until this returns (the caller's
                // promise).
                unsafe { openacc::register(register) };
            }
        }
    }
}
