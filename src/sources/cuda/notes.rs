//! What the trace and the user are told of what CUPTI cannot do, and of what is missing.
//!
//! An error that CUPTI itself reports is a message and a note, a warning a note.

use super::ffi;
use core::ffi::{CStr, c_void};
use gputrail_buffer::platform::inside::message;
use gputrail_capture::names::Names;
use gputrail_collect::process;
use gputrail_record::NoteKind;
use std::sync::atomic::{AtomicU64, Ordering};

/// The meaning of a status of CUPTI.
pub(super) fn why(status: i32) -> String {
    let meaning = match status {
        ffi::NOT_IMPLEMENTED => "this version lacks the function",
        1 => "an argument is not valid",
        ffi::NOT_COMPATIBLE => "it does not fit the driver",
        ffi::NOT_INITIALIZED => "CUDA is not initialized, or there is no GPU",
        21 => "this version does not know the kind",
        7 => "it is not possible now",
        27 | 33 | 42 | 43 | 45 => "the device or its driver does not support it",
        35 | 40 => {
            "the driver allows it to administrators only: run as root or with CAP_SYS_ADMIN, or set \
             NVreg_RestrictProfilingToAdminUsers=0 for the driver's module (`options nvidia \
             NVreg_RestrictProfilingToAdminUsers=0` in a file of /etc/modprobe.d, then restart)"
        }
        ffi::MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED => {
            "another profiler observes CUDA in this process (PyTorch's profiler, Nsight Systems or Nsight Compute, \
             perhaps by CUDA_INJECTION64_PATH); the program goes on, without CUDA in its trace"
        }
        ffi::UNKNOWN => "an unknown error, such as that of a libcupti that does not fit the driver",
        _ => "an unknown error",
    };
    format!("{meaning} (CUPTI status {status})")
}

/// CUPTI says that it cannot do something: the trace has its words, and the user gets them unless they are a warning.
///
/// # Safety
///
/// `data` is null or CUPTI's description of it (`CUpti_StateData`), valid during the call.
pub(super) unsafe fn state(number: u32, data: *const c_void) {
    const MAX_REPORTED: u64 = 16;
    static REPORTED: AtomicU64 = AtomicU64::new(0);
    // SAFETY: `data` is null or CUPTI's description of the error (`CUpti_StateData`), which is valid during the call.
    let Some(state) = (unsafe { data.cast::<ffi::StateData>().as_ref() }) else {
        return;
    };
    if REPORTED.fetch_add(1, Ordering::Relaxed) >= MAX_REPORTED {
        return;
    }
    let words = match state.message.is_null() {
        true => c"an error without words",
        // SAFETY: CUPTI's text.
        false => unsafe { CStr::from_ptr(state.message) },
    };
    let hint = match number {
        ffi::WARNING => "",
        _ => "; records may be missing from here on",
    };
    let text = format!(
        "CUPTI: {} (CUPTI status {}){hint}",
        words.to_string_lossy(),
        state.status
    );
    if let Some(names) = process::names() {
        names.note(NoteKind::OTHER, &text);
    }
    if number != ffi::WARNING {
        message(format_args!("{text}"));
    }
}

/// Notes a fact about the recording. The summary of a recording says what is missing; a process that only tools observe says
/// it itself.
pub(super) fn note(names: &Names, text: &str, is_loss: bool) {
    let what = if is_loss {
        NoteKind::MISSING
    } else {
        NoteKind::OTHER
    };
    names.note(what, text);
    if is_loss && process::recorder().is_none() {
        message(format_args!("{text}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_profiler_is_named() {
        assert!(why(39).contains("PyTorch"));
        assert!(why(999).contains("999"));
    }
}
