//! The logging callback.

use crate::types::LoggingType;
use core::ffi::c_char;
use gputrail_abi::{Callee, lock};
use std::ffi::CString;
use std::sync::Mutex;

/// A function that gets messages (`GPA_LoggingCallbackPtrType`).
pub type LoggingCallback = unsafe extern "C-unwind" fn(LoggingType, *const c_char);

/// The callback, and the types of messages that it gets.
static LOGGING: Mutex<Option<(LoggingCallback, LoggingType)>> = Mutex::new(None);

/// Has `callback` get the messages of `types`; with no types, nobody.
pub fn register(callback: Option<LoggingCallback>, types: LoggingType) {
    *lock(&LOGGING) = callback.map(|callback| (callback, types));
    log(LoggingType::MESSAGE, || {
        "Logging callback registered successfully.".to_owned()
    });
}

/// Gives the callback a message, if it wants those of this type. The message is made only then.
pub fn log(of: LoggingType, message: impl FnOnce() -> String) {
    // Called without the lock: it may call the API.
    let registered = *lock(&LOGGING);
    if let Some((callback, types)) = registered
        && types.has(of)
        && let Ok(text) = CString::new(message())
    {
        // SAFETY: the program's function for such messages; the text ends with a 0.
        let call = || unsafe { callback(of, text.as_ptr()) };
        let callee = Callee {
            library: "libGPUPerfAPICL",
            set_by: "GPA_RegisterLoggingCallback",
            function: callback as *const (),
        };
        callee.call(call);
    }
}
