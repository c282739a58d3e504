//! Failures of the functions of the C API: their statuses, and the text of the last one.

use core::ffi::c_char;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_buffer::platform::system::thread_id;
use gputrail_collect::context::ToolError;
use gputrail_collect::counting::CountingError;
use gputrail_collect::sampling::SamplingError;
use gputrail_interface::c::Status;
use std::borrow::Cow;
use std::cell::RefCell;

/// A call that failed, and why.
#[derive(Debug)]
pub struct FailedCall {
    pub status: Status,
    pub text: Cow<'static, str>,
}

impl FailedCall {
    pub fn new(status: Status, text: impl Into<Cow<'static, str>>) -> FailedCall {
        FailedCall {
            status,
            text: text.into(),
        }
    }
}

impl From<Status> for FailedCall {
    fn from(status: Status) -> FailedCall {
        let found = Status::ALL.iter().find(|(_, of, _)| *of == status);
        FailedCall::new(status, found.map_or("", |(_, _, text)| text))
    }
}

/// As rocprofiler-sdk has it, as far as it has statuses for them.
fn sampling(error: &SamplingError) -> Status {
    match error {
        SamplingError::UnknownAgent(_) => Status::NO_SUCH_AGENT,
        SamplingError::Busy => Status::BUSY,
        SamplingError::OtherContext(_) | SamplingError::Counters => Status::CONTEXT_CONFLICT,
        // rocprofiler-sdk: ROCPROFILER_STATUS_ERROR_INCOMPATIBLE_KERNEL.
        SamplingError::System { .. } => Status::SAMPLING_INCOMPATIBLE_SYSTEM,
        // ROCPROFILER_STATUS_ERROR.
        SamplingError::Failed { .. } => Status::SAMPLING_FAILED,
        SamplingError::Interval { .. }
        | SamplingError::PowerOfTwo { .. }
        | SamplingError::Period(_) => Status::INVALID_ARGUMENT,
        _ => Status::SAMPLING_NOT_AVAILABLE,
    }
}

fn counting(error: &CountingError) -> Status {
    match error {
        CountingError::UnknownAgent(_) => Status::NO_SUCH_AGENT,
        CountingError::UnknownCounters(_) => Status::NOT_FOUND,
        CountingError::Busy => Status::BUSY,
        CountingError::OtherContext(_) | CountingError::Sampling => Status::CONTEXT_CONFLICT,
        CountingError::NoNames
        | CountingError::Impossible(_)
        | CountingError::Passes { .. }
        | CountingError::Period { .. }
        | CountingError::LongPeriod { .. } => Status::INVALID_ARGUMENT,
        _ => Status::COUNTERS_NOT_AVAILABLE,
    }
}

impl From<ToolError> for FailedCall {
    fn from(error: ToolError) -> FailedCall {
        let status = match error {
            ToolError::NotAvailable => Status::NOT_AVAILABLE,
            ToolError::NoSuchContext => Status::NO_SUCH_CONTEXT,
            ToolError::NoSuchBuffer => Status::NO_SUCH_BUFFER,
            ToolError::Locked => Status::LOCKED,
            ToolError::Conflict => Status::CONFLICT,
            ToolError::NoSuchService => Status::NO_SUCH_SERVICE,
            ToolError::Started => Status::STARTED,
            ToolError::Stopped => Status::STOPPED,
            ToolError::UnknownKind(_) => Status::UNKNOWN_KIND,
            ToolError::UnknownOperation(_) => Status::UNKNOWN_OPERATION,
            ToolError::NotAlone(_) => Status::NOT_ALONE,
            ToolError::Busy => Status::BUSY,
            ToolError::Layout(_) => Status::LAYOUT,
            ToolError::Memory(_) => Status::OUT_OF_MEMORY,
            ToolError::Thread(_) => Status::NO_THREAD,
            ToolError::TooMany { .. } => Status::TOO_MANY,
            ToolError::AttributesLocked => Status::ATTRIBUTES_LOCKED,
            ToolError::Signal { .. } => Status::INVALID_ARGUMENT,
            ToolError::Sampling(ref error) => sampling(error),
            ToolError::Counting(ref error) => counting(error),
        };
        FailedCall::new(status, error.to_string())
    }
}

thread_local! {
    static LAST: RefCell<Option<FailedCall>> = const { RefCell::new(None) };
}

/// The last failure of a thread whose thread-local variables are gone, as those of the main thread when tools are
/// finalised.
static LAST_AT_END: PerProcess<Option<(u32, FailedCall)>> = PerProcess::new();

/// Keeps `failure` as the thread's last.
pub(super) fn keep(failure: FailedCall) -> Status {
    let status = failure.status;
    let mut failure = Some(failure);
    let kept = LAST.try_with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            *last = failure.take();
        }
    });
    if let (Err(_), Some(failure)) = (kept, failure) {
        *LAST_AT_END.lock() = Some((thread_id(), failure));
    }
    status
}

/// The name of a status (`GPUTRAIL_NOT_ALONE`), or of an unknown one `GPUTRAIL_UNKNOWN`. The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_status_name(status: Status) -> *const c_char {
    status
        .texts()
        .map_or(c"GPUTRAIL_UNKNOWN", |texts| texts.0)
        .as_ptr()
}

/// The meaning of a status, as a sentence. The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_status_message(status: Status) -> *const c_char {
    status
        .texts()
        .map_or(c"a status of another version", |texts| texts.1)
        .as_ptr()
}

/// The last failure on the calling thread: returns its status, `GPUTRAIL_OK` if nothing has failed yet, and writes what
/// happened, ended by a 0 and cut to `capacity` bytes, to `text`, which may be null. A call that succeeds changes
/// nothing.
///
/// Errors: none of its own.
///
/// # Safety
///
/// `text` is null or leads to `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_last_error(text: *mut c_char, capacity: usize) -> Status {
    let copy = |failure: Option<&FailedCall>| {
        let said = failure.map_or("", |failure| &failure.text);
        if !text.is_null() && capacity > 0 {
            let cut = said.floor_char_boundary(said.len().min(capacity - 1));
            // SAFETY: `text` leads to `capacity` bytes that can be written (the caller's promise), and `cut`, which is less
            // than `capacity`, leaves one for the 0; `said`, a text of ours, has at least `cut`.
            unsafe {
                text.copy_from_nonoverlapping(said.as_ptr().cast(), cut);
                text.add(cut).write(0);
            }
        }
        failure.map_or(Status::OK, |failure| failure.status)
    };
    let kept = LAST.try_with(|last| {
        last.try_borrow()
            .map_or(Status::OK, |last| copy(last.as_ref()))
    });
    kept.unwrap_or_else(|_| {
        let last = LAST_AT_END.lock();
        let of_this_thread = last.as_ref().filter(|(thread, _)| *thread == thread_id());
        copy(of_this_thread.map(|(_, failure)| failure))
    })
}
