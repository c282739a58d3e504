//! Markers and ranges, names for objects, threads and the process, and the recording of the process itself.

use super::library::board;
use super::sized;
use super::status::FailedCall;
use super::tools::serve_tools;
use super::{Answer, checked, done, place, text};
use core::ffi::c_char;
use gputrail_collect::marker::{self, Unbalanced};
use gputrail_collect::process;
use gputrail_interface::c::{MarkOptions, SizedStruct, Status};
use gputrail_interface::marker::{Mark, RangeId, Value};
use gputrail_record::{AgentId, ContextId, PayloadKind, QueueId, StreamId};
use gputrail_sources::{handles, markers};
use std::sync::atomic::{AtomicBool, Ordering};

/// The caller's text; empty where it is null.
///
/// # Safety
///
/// As for [`text::given`].
unsafe fn optional<'a>(given: *const c_char, name: &'static str) -> Answer<&'a str> {
    if given.is_null() {
        return Ok("");
    }
    // SAFETY: `given` is not null, and a text that ends with a 0 and that nobody writes for `'a` (the caller's promise).
    unsafe { text::given(given, name) }
}

/// Attaches the source of markers with the first one: in a program without OpenCL and CUDA, markers begin the recording.
pub(super) fn begin() {
    static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
    if !HAS_BEGUN.load(Ordering::Relaxed) {
        serve_tools();
        markers::attach();
        HAS_BEGUN.store(true, Ordering::Relaxed);
    }
}

/// Begins the recording as markers do, and refuses the caller in a process that is not recorded and for which the library is
/// not initialised.
pub(super) fn begin_observed() -> Answer {
    begin();
    match process::recorder() {
        Some(_) => Ok(()),
        None => board().map(drop),
    }
}

/// Does `work` with what the caller says of a marker.
///
/// # Safety
///
/// `mark` is null or leads to options whose texts are null or end with a 0.
unsafe fn with<R>(mark: *const MarkOptions, work: impl FnOnce(Mark<'_>) -> R) -> Answer<R> {
    // SAFETY: `mark` is null or leads to options of as many bytes as their size says (the caller's promise).
    let asked = unsafe { sized::read(mark) }?;
    // SAFETY: the texts in the options are null or end with a 0 (the caller's promise), and are not used after `work`.
    let (name, domain, category) = unsafe {
        (
            text::given(asked.name, "name")?,
            optional(asked.domain, "domain")?,
            optional(asked.category, "category")?,
        )
    };
    let mark = Mark::named(name)
        .domain(domain)
        .category(category)
        .color(asked.color);
    let kind = u8::try_from(asked.payload_kind).map(PayloadKind);
    let mark = match kind {
        Ok(PayloadKind::NONE) => mark,
        Ok(PayloadKind::UNSIGNED) => mark.payload(Value::Unsigned(asked.payload)),
        Ok(PayloadKind::SIGNED) => mark.payload(Value::Signed(asked.payload as i64)),
        Ok(PayloadKind::FLOAT) => mark.payload(Value::Float(f64::from_bits(asked.payload))),
        _ => {
            let text = format!("unknown payload_kind {}", asked.payload_kind);
            return Err(FailedCall::new(Status::INVALID_ARGUMENT, text));
        }
    };
    begin();
    Ok(work(mark))
}

/// The options of a marker that has only a name.
fn named(name: *const c_char) -> MarkOptions {
    let mut options = MarkOptions::blank();
    options.name = name;
    options
}

impl From<Unbalanced> for FailedCall {
    fn from(unbalanced: Unbalanced) -> FailedCall {
        let status = match unbalanced {
            Unbalanced::Pop => Status::STACK_EMPTY,
            Unbalanced::End(_) => Status::NOT_FOUND,
        };
        FailedCall::new(status, unbalanced.to_string())
    }
}

/// Marks a moment. Markers may be made before the library is initialised, and begin the recording of a program that uses no
/// GPU; while nobody listens they cost next to nothing.
///
/// Errors: `GPUTRAIL_NULL_POINTER`; `GPUTRAIL_INVALID_ARGUMENT` for text that is not UTF-8 or a payload kind that is
/// none; `GPUTRAIL_WRONG_SIZE`.
///
/// # Safety
///
/// `mark` is null or leads to options whose texts are null or end with a 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_mark(mark: *const MarkOptions) -> Status {
    // SAFETY: `mark` is null or leads to options whose texts are null or end with a 0 (the caller's promise), as `with`
    // asks.
    done(|| unsafe { with(mark, |mark| marker::mark(mark)) })
}

/// A range begins on the calling thread, within those that are open there.
///
/// Errors: as for `gputrail_mark`.
///
/// # Safety
///
/// As for `gputrail_mark`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_range_push(mark: *const MarkOptions) -> Status {
    // SAFETY: `mark` is null or leads to options whose texts are null or end with a 0 (the caller's promise), as `with`
    // asks.
    done(|| unsafe { with(mark, |mark| marker::push(mark)) }.map(drop))
}

/// Begins a range that has a name and no other attribute.
///
/// Errors: as for `gputrail_mark`.
///
/// # Safety
///
/// `name` is null or a text that ends with a 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_range_push_name(name: *const c_char) -> Status {
    // SAFETY: the options are a local variable, and their one text, `name`, is null or ends with a 0 (the caller's promise).
    done(|| unsafe { with(&named(name), |mark| marker::push(mark)) }.map(drop))
}

/// The calling thread's innermost range ends.
///
/// Errors: `GPUTRAIL_STACK_EMPTY` when none is open.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_range_pop() -> Status {
    done(|| Ok(marker::pop().map(drop)?))
}

/// A range begins that may end on any thread, whatever else is open. `range` gets its number.
///
/// Errors: as for `gputrail_mark`.
///
/// # Safety
///
/// As for `gputrail_mark`; `range` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_range_start(mark: *const MarkOptions, range: *mut u64) -> Status {
    done(|| {
        checked(range, "range")?;
        // SAFETY: `mark` is null or leads to options whose texts are null or end with a 0, and `range`, which `checked` has
        // not refused, is a place for a number (the caller's promises).
        unsafe {
            let started = with(mark, |mark| marker::start(mark))?;
            place(range, "range")?.write(started.number());
        }
        Ok(())
    })
}

/// Ends a range that `gputrail_range_start` began.
///
/// Errors: `GPUTRAIL_NOT_FOUND` for a number that no range has been given.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_range_end(range: u64) -> Status {
    done(|| Ok(marker::end(RangeId::from_number(range))?))
}

/// Names the calling thread in traces; its name in the system stays what it is. A program under `gputrail record` need not
/// initialise the library for this.
///
/// Errors: `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_INVALID_ARGUMENT`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `name` is null or a text that ends with a 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_name_thread(name: *const c_char) -> Status {
    done(|| {
        begin_observed()?;
        // SAFETY: `name` is null or a text that ends with a 0 (the caller's promise).
        marker::name_thread(unsafe { text::given(name, "name") }?);
        Ok(())
    })
}

/// Names a queue in traces, by its handle in its runtime (a `cl_command_queue`, say). `queue`, which may be null, gets
/// its id.
///
/// Errors: `GPUTRAIL_NOT_FOUND` if no such queue is known; as for `gputrail_name_thread`.
///
/// # Safety
///
/// `name` is null or a text that ends with a 0; `queue` is null or a place for the id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_name_queue(
    handle: *const core::ffi::c_void,
    name: *const c_char,
    queue: *mut QueueId,
) -> Status {
    done(|| {
        board()?;
        // SAFETY: `name` is null or a text that ends with a 0 (the caller's promise).
        let name = unsafe { text::given(name, "name") }?;
        let named = marker::name_queue(handle as u64, name)
            .ok_or_else(|| FailedCall::new(Status::NOT_FOUND, "no queue has this handle"))?;
        if !queue.is_null() {
            // SAFETY: `queue` is not null, and a place for an id (the caller's promise); `place` refuses a misaligned one.
            unsafe { place(queue, "queue")?.write(named) };
        }
        Ok(())
    })
}

/// Names a context of a runtime in traces, by its handle there (a `cl_context` or `CUcontext`, say), which has to be that of
/// a live object. `context`, which may be null, gets its id; 0 if it has not been used yet.
///
/// Errors: `GPUTRAIL_NOT_FOUND` if no such context is known; as for `gputrail_name_thread`.
///
/// # Safety
///
/// `name` is null or a text that ends with a 0; `context` is null or a place for the id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_name_runtime_context(
    handle: *const core::ffi::c_void,
    name: *const c_char,
    context: *mut ContextId,
) -> Status {
    done(|| {
        board()?;
        // SAFETY: `name` is null or a text that ends with a 0 (the caller's promise).
        let name = unsafe { text::given(name, "name") }?;
        let named = handles::name_context(handle as u64, name)
            .ok_or_else(|| FailedCall::new(Status::NOT_FOUND, "no context has this handle"))?;
        if !context.is_null() {
            // SAFETY: `context` is not null, and a place for an id (the caller's promise); `place` refuses a misaligned one.
            unsafe { place(context, "context")?.write(named) };
        }
        Ok(())
    })
}

/// Names a stream in traces, by its handle in its runtime (a `CUstream`, say), which has to be that of a live object.
/// `stream`, which may be null, gets its id; 0 if no work has run in it yet.
///
/// Errors: `GPUTRAIL_NOT_FOUND` if no such stream is known; as for `gputrail_name_thread`.
///
/// # Safety
///
/// `name` is null or a text that ends with a 0; `stream` is null or a place for the id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_name_stream(
    handle: *const core::ffi::c_void,
    name: *const c_char,
    stream: *mut StreamId,
) -> Status {
    done(|| {
        board()?;
        // SAFETY: `name` is null or a text that ends with a 0 (the caller's promise).
        let name = unsafe { text::given(name, "name") }?;
        let named = handles::name_stream(handle as u64, name)
            .ok_or_else(|| FailedCall::new(Status::NOT_FOUND, "no stream has this handle"))?;
        if !stream.is_null() {
            // SAFETY: `stream` is not null, and a place for an id (the caller's promise); `place` refuses a misaligned one.
            unsafe { place(stream, "stream")?.write(named) };
        }
        Ok(())
    })
}

/// Names this process in traces, which otherwise call it by its executable.
///
/// Errors: as for `gputrail_name_thread`.
///
/// # Safety
///
/// `name` is null or a text that ends with a 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_name_process(name: *const c_char) -> Status {
    done(|| {
        begin_observed()?;
        // SAFETY: `name` is null or a text that ends with a 0 (the caller's promise).
        marker::name_process(unsafe { text::given(name, "name") }?);
        Ok(())
    })
}

/// Names an agent in traces.
///
/// Errors: `GPUTRAIL_NOT_FOUND` if no such agent is known; as for `gputrail_name_thread`.
///
/// # Safety
///
/// `name` is null or a text that ends with a 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_name_agent(agent: AgentId, name: *const c_char) -> Status {
    done(|| {
        board()?;
        // SAFETY: `name` is null or a text that ends with a 0 (the caller's promise).
        let name = unsafe { text::given(name, "name") }?;
        if marker::name_agent(agent, name) {
            Ok(())
        } else {
            Err(FailedCall::new(Status::NOT_FOUND, "no agent has this id"))
        }
    })
}

fn recorder() -> Answer<&'static gputrail_collect::recorder::Recorder> {
    process::recorder().ok_or_else(|| {
        let text =
            "this process is not recorded: there is no `gputrail record` and no GPUTRAIL_CAPTURE";
        FailedCall::new(Status::NOT_FOUND, text)
    })
}

/// Goes on with the recording that `gputrail record`, or GPUTRAIL_CAPTURE, makes of this process.
///
/// Errors: `GPUTRAIL_NOT_FOUND` if there is none; `GPUTRAIL_STARTED` if it is not paused.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_recording_start() -> Status {
    done(|| {
        if recorder()?.resume() {
            Ok(())
        } else {
            Err(FailedCall::new(
                Status::STARTED,
                "the recording is not paused",
            ))
        }
    })
}

/// Pauses it: what begins from now on is not in the trace. Calls and work in progress still are.
///
/// Errors: `GPUTRAIL_NOT_FOUND` if there is none; `GPUTRAIL_STOPPED` if it is paused.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_recording_stop() -> Status {
    done(|| {
        if recorder()?.pause() {
            Ok(())
        } else {
            Err(FailedCall::new(Status::STOPPED, "the recording is paused"))
        }
    })
}

/// Has everything that is recorded so far written to the capture, at once or, where another process writes it, soon.
///
/// Errors: `GPUTRAIL_NOT_FOUND` if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_recording_flush() -> Status {
    done(|| {
        recorder()?.flush();
        Ok(())
    })
}

/// Has `gputrail record --flight-recorder`, which keeps only what happens last, write that out soon, while the program
/// goes on.
///
/// Errors: `GPUTRAIL_NOT_FOUND` if the process is not recorded; `GPUTRAIL_NOT_AVAILABLE` if its recording keeps
/// everything.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_recording_dump() -> Status {
    done(|| {
        if recorder()?.dump() {
            Ok(())
        } else {
            let text = "the recording keeps everything: it has no --flight-recorder";
            Err(FailedCall::new(Status::NOT_AVAILABLE, text))
        }
    })
}
