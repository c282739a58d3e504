//! Messages of the library to a function of a tool.

use super::done;
use super::logger::{self, Logger};
use super::owner::{Owner, ToolPointer};
use super::status::FailedCall;
use core::ffi::c_void;
use gputrail_interface::c::{LogFunction, LogKind, Status};

const ALL: u32 = LogKind::Error as u32 | LogKind::Message as u32 | LogKind::Trace as u32;

/// Has `function` called for messages of these kinds, a combination of `GPUTRAIL_LOG_KIND`s (GPUPerfAPI:
/// `GPA_RegisterLoggingCallback`). There is one function in the process: another one replaces it, and `kinds` of 0 removes
/// it; a call that is in progress on another thread may still end after that. Also before `gputrail_initialise`;
/// `gputrail_finalise` of the same user removes it. If it gets messages, one says that it has been registered.
///
/// Errors: `GPUTRAIL_NULL_POINTER` if `function` is null and `kinds` is not 0; `GPUTRAIL_INVALID_ARGUMENT` for unknown kinds.
///
/// # Safety
///
/// `function` does what its type says, with `user_data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_log_to(
    kinds: u32,
    function: LogFunction,
    user_data: *mut c_void,
) -> Status {
    done(|| {
        if kinds & !ALL != 0 {
            let text = format!("kinds: {kinds:#x} has others than {ALL:#x}, which are all");
            return Err(FailedCall::new(Status::INVALID_ARGUMENT, text));
        }
        let logger = match (kinds, function) {
            (0, _) => None,
            (_, None) => return Err(FailedCall::new(Status::NULL_POINTER, "function is null")),
            (_, Some(function)) => Some(Logger {
                kinds,
                function,
                user_data: ToolPointer(user_data),
                owner: Owner::current(),
            }),
        };
        logger::set(logger);
        if logger::is_wanted(LogKind::Message as u32) {
            logger::log(
                LogKind::Message,
                "Logging callback registered successfully.",
            );
        }
        Ok(())
    })
}
