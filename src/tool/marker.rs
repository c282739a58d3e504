//! Markers and ranges of the tool's own, and names for objects, threads and the process, in traces and for whoever wants such
//! records. Pushed ranges nest on their thread; started ranges may overlap, and end on any thread.

use super::Error;
use super::functions::{act, c_string, call, check};
pub use gputrail_interface::c::{MarkOptions, SizedStruct, Status};
use gputrail_record::{AgentId, ContextId, PayloadKind, QueueId, StreamId};
use std::marker::PhantomData;

pub use gputrail_interface::marker::{Mark, RangeId, Value};

/// Does `work` with `mark` in the form of C.
fn with(
    mark: Mark<'_>,
    work: impl FnOnce(&MarkOptions) -> Result<Status, Error>,
) -> Result<(), Error> {
    let [name, domain, category] = [mark.name, mark.domain, mark.category].map(c_string);
    let (name, domain, category) = (name?, domain?, category?);
    let (payload, kind) = match mark.payload {
        None => (0, PayloadKind::NONE),
        Some(Value::Unsigned(value)) => (value, PayloadKind::UNSIGNED),
        Some(Value::Signed(value)) => (value as u64, PayloadKind::SIGNED),
        Some(Value::Float(value)) => (value.to_bits(), PayloadKind::FLOAT),
    };
    check(work(&MarkOptions {
        name: name.as_ptr(),
        domain: domain.as_ptr(),
        category: category.as_ptr(),
        payload,
        payload_kind: kind.0.into(),
        color: mark.color,
        ..MarkOptions::blank()
    }))
}

/// Marks a moment.
///
/// # Errors
///
/// `INVALID_ARGUMENT` for text with a 0 in it.
pub fn mark<'a>(mark: impl Into<Mark<'a>>) -> Result<(), Error> {
    with(mark.into(), |mark| {
        // SAFETY: a structure of this size, of texts that end with a 0.
        unsafe { call!(gputrail_mark(mark)) }
    })
}

/// A range on one thread, until this is dropped.
#[must_use = "the range ends when this is dropped"]
pub struct Range(PhantomData<*const ()>);

/// Begins a range on the calling thread, within the ranges that are open there.
///
/// # Errors
///
/// As for [`mark`].
pub fn range<'a>(mark: impl Into<Mark<'a>>) -> Result<Range, Error> {
    with(mark.into(), |mark| {
        // SAFETY: a structure of this size, of texts that end with a 0.
        unsafe { call!(gputrail_range_push(mark)) }
    })?;
    Ok(Range(PhantomData))
}

impl Drop for Range {
    fn drop(&mut self) {
        // It is open: nobody else pops what this thread has pushed here.
        let _ = act!(gputrail_range_pop());
    }
}

/// Begins a range that may end on any thread, whatever else is open.
///
/// # Errors
///
/// As for [`mark`].
pub fn start<'a>(mark: impl Into<Mark<'a>>) -> Result<RangeId, Error> {
    let mut range = 0;
    with(mark.into(), |mark| {
        // SAFETY: a structure of this size, of texts that end with a 0, and a place for the number.
        unsafe { call!(gputrail_range_start(mark, &mut range)) }
    })?;
    Ok(RangeId::from_number(range))
}

/// Ends a range that [`start`] began.
///
/// # Errors
///
/// `NOT_FOUND` when none was started with that number.
pub fn end(range: RangeId) -> Result<(), Error> {
    act!(gputrail_range_end(range.number()))
}

/// Names the calling thread in traces; its name in the system stays what it is.
///
/// # Errors
///
/// As for [`mark`]; `NOT_INITIALISED` after the tool's end.
pub fn name_thread(name: &str) -> Result<(), Error> {
    let name = c_string(name)?;
    // SAFETY: a text that ends with a 0.
    check(unsafe { call!(gputrail_name_thread(name.as_ptr())) })
}

/// Names a queue in traces, by its handle in its runtime (a `cl_command_queue`, say).
///
/// # Errors
///
/// `NOT_FOUND` if no such queue is known; as for [`name_thread`].
pub fn name_queue(handle: u64, name: &str) -> Result<QueueId, Error> {
    let name = c_string(name)?;
    let mut queue = QueueId::NONE;
    // SAFETY: a handle, a text that ends with a 0, and a place for the answer.
    check(unsafe {
        call!(gputrail_name_queue(
            handle as *const _,
            name.as_ptr(),
            &mut queue
        ))
    })?;
    Ok(queue)
}

/// Names a context of a runtime in traces, by its handle there (a `cl_context` or `CUcontext`, say), which has to be that of
/// a live object. Returns its id, which is none if it has not been used yet.
///
/// # Errors
///
/// `NOT_FOUND` if no such context is known; as for [`name_thread`].
pub fn name_context(handle: u64, name: &str) -> Result<ContextId, Error> {
    let name = c_string(name)?;
    let mut context = ContextId::NONE;
    // SAFETY: a handle, a text that ends with a 0, and a place for the answer.
    check(unsafe {
        call!(gputrail_name_runtime_context(
            handle as *const _,
            name.as_ptr(),
            &mut context
        ))
    })?;
    Ok(context)
}

/// Names a stream in traces, by its handle in its runtime (a `CUstream`, say), which has to be that of a live object. Returns
/// its id, which is none if no work has run in it yet.
///
/// # Errors
///
/// `NOT_FOUND` if no such stream is known; as for [`name_thread`].
pub fn name_stream(handle: u64, name: &str) -> Result<StreamId, Error> {
    let name = c_string(name)?;
    let mut stream = StreamId::NONE;
    // SAFETY: a handle, a text that ends with a 0, and a place for the answer.
    check(unsafe {
        call!(gputrail_name_stream(
            handle as *const _,
            name.as_ptr(),
            &mut stream
        ))
    })?;
    Ok(stream)
}

/// Names this process in traces, which otherwise call it by its executable.
///
/// # Errors
///
/// As for [`name_thread`].
pub fn name_process(name: &str) -> Result<(), Error> {
    let name = c_string(name)?;
    // SAFETY: a text that ends with a 0.
    check(unsafe { call!(gputrail_name_process(name.as_ptr())) })
}

/// Names an agent in traces.
///
/// # Errors
///
/// `NOT_FOUND` if no such agent is known; as for [`name_thread`].
pub fn name_agent(agent: AgentId, name: &str) -> Result<(), Error> {
    let name = c_string(name)?;
    // SAFETY: a text that ends with a 0.
    check(unsafe { call!(gputrail_name_agent(agent, name.as_ptr())) })
}
