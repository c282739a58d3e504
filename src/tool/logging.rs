//! Messages of the library to a function of the tool.

use super::Error;
use super::callee::{self, Callee, HeldCallee};
use super::functions::{call, check};
use core::ffi::{CStr, c_char, c_void};
use gputrail_interface::c::LogKind;

type LogReceiver = Box<dyn Fn(LogKind, &str) + Send + Sync>;

/// Has `function` called for messages of these kinds: failed calls, lines that would go to the standard error, calls (GPUPerfAPI:
/// `GPA_RegisterLoggingCallback`). There is one function in the process: another one replaces it, and no kinds remove it. It is
/// called on the thread that the message is about, must not call the library or the runtime, and stays in memory until the
/// process ends. One that panics is not called again.
///
/// # Errors
///
/// None but that the library in the process does not have it.
pub fn log_to(
    kinds: &[LogKind],
    function: impl Fn(LogKind, &str) + Send + Sync + 'static,
) -> Result<(), Error> {
    unsafe extern "C-unwind" fn log(kind: u32, message: *const c_char, callee: *mut c_void) {
        // SAFETY: what was given below, which lasts for ever, and a text that ends with a 0.
        let (callee, message) = unsafe {
            (
                &*callee.cast::<Callee<LogReceiver>>(),
                CStr::from_ptr(message),
            )
        };
        let all = [LogKind::Error, LogKind::Message, LogKind::Trace];
        if let Some(kind) = all.into_iter().find(|of| *of as u32 == kind) {
            let message = message.to_string_lossy();
            callee::call(&callee.failed, || (callee.function)(kind, &message));
        }
    }
    let wanted = kinds.iter().fold(0, |all, kind| all | *kind as u32);
    let function: LogReceiver = Box::new(function);
    let held = HeldCallee::new(function);
    // SAFETY: a function of this type, with its callee.
    let result = check(unsafe { call!(gputrail_log_to(wanted, Some(log), held.pointer())) });
    if result.is_err() || wanted == 0 {
        // SAFETY: the library did not take it.
        unsafe { held.release() };
    }
    result
}
