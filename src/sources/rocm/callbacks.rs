//! The function that the SDK calls back. It records each enter and exit of a function that is wanted, on the calling thread, and
//! passes on what the SDK tells of code, streams, runtimes and markers.
//!
//! Differences for tools from other sources: kernels and copies are told when they have completed, in buffers, and
//! subscribers inside of calls are told nothing. Events of OpenMP that have no end are calls that take no time. There are no
//! retirement records.

use super::functions::{self, MAX_ARGUMENTS, RocmFunction};
use super::sdk::Sdk;
use super::session::{SESSION, Session};
use super::{markers, notes, objects, sampling, streams};
use crate::calls::{CurrentCall, stack};
use core::ffi::c_void;
use gputrail_buffer::clock;
use gputrail_buffer::platform::inside::contain;
use gputrail_collect::correlation::{CallInProgress, Extra};
use gputrail_collect::process::{self, Current};
use gputrail_collect::switchboard::{CallArguments, CallbackArguments, Payload, ReportedPart};
use gputrail_interface::operations::Phase;
use gputrail_interface::return_codes;
use gputrail_record::{KernelId, Ticks, WorkId, flags};
use gputrail_rocprofiler::{
    CallbackPhase, CallbackTracingRecord, CorrelationId, HipStreamData, HipStreamOperation,
    RuntimeInitializationData, TracingCallback, TracingCallbackBefore1_0, UserData, before_1_0,
    read,
};
use std::cell::Cell;

/// Whom a callback is for: what [`Sdk::trace_to_callback`] is told.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Receiver {
    /// The API with this place in [`DOMAINS`](super::DOMAINS), and the table of its functions.
    Api(usize, u16),
    CodeObjects,
    Streams,
    Runtimes,
    Markers,
    MarkerControl,
    MarkerNames,
    /// Kernels that may be sampled.
    Dispatches,
}

impl Receiver {
    const OTHERS: [Receiver; 7] = [
        Receiver::CodeObjects,
        Receiver::Streams,
        Receiver::Runtimes,
        Receiver::Markers,
        Receiver::MarkerControl,
        Receiver::MarkerNames,
        Receiver::Dispatches,
    ];
    /// The first number that stands for no API.
    const FIRST_OTHER: usize = 1 << 8;

    /// As a number.
    pub fn number(self) -> usize {
        match self {
            Receiver::Api(domain, table) => domain << 4 | usize::from(table),
            other => {
                let place = Receiver::OTHERS.iter().position(|one| *one == other);
                Receiver::FIRST_OTHER + place.unwrap_or(0)
            }
        }
    }

    #[inline]
    fn of(number: usize) -> Option<Receiver> {
        match number.checked_sub(Receiver::FIRST_OTHER) {
            None => Some(Receiver::Api(number >> 4, (number & 15) as u16)),
            Some(place) => Receiver::OTHERS.get(place).copied(),
        }
    }
}

/// The function to call back, for the structure of the library's version.
pub(super) fn of_version(sdk: &Sdk) -> TracingCallback {
    if sdk.is_before_1_0() {
        // SAFETY: the library of this version calls the function with the structure that it takes; the type is that of later
        // versions alone.
        unsafe {
            core::mem::transmute::<TracingCallbackBefore1_0, TracingCallback>(callback_before_1_0)
        }
    } else {
        callback
    }
}

unsafe extern "C" fn callback(
    record: CallbackTracingRecord,
    word: *mut UserData,
    receiver: *mut c_void,
) {
    // SAFETY: the SDK's record and its place for a word, which stay during the call.
    unsafe { receive(&record, word, receiver) };
}

unsafe extern "C" fn callback_before_1_0(
    record: before_1_0::CallbackTracingRecord,
    word: *mut UserData,
    receiver: *mut c_void,
) {
    let record = CallbackTracingRecord {
        context_id: record.context_id,
        thread_id: record.thread_id,
        correlation_id: CorrelationId {
            internal: record.correlation_id.internal,
            external: record.correlation_id.external,
            ancestor: 0,
        },
        kind: record.kind,
        operation: record.operation,
        phase: record.phase,
        payload: record.payload,
    };
    // SAFETY: the SDK's record and its place for a word, which stay during the call.
    unsafe { receive(&record, word, receiver) };
}

/// # Safety
///
/// `record` is the SDK's, its payload the structure of its kind and operation, or null; `word` is null or a place for a word.
#[inline]
unsafe fn receive(record: &CallbackTracingRecord, word: *mut UserData, receiver: *mut c_void) {
    contain(|| {
        let Some(session) = SESSION.get() else {
            return;
        };
        if !session.is_of_this_process() {
            // The SDK tells of code that is unloaded at the end of a child that does nothing.
            if let Some(Receiver::Api(..)) = Receiver::of(receiver as usize) {
                notes::forked();
            }
            return;
        }
        if session.has_ended() {
            return;
        }
        match Receiver::of(receiver as usize) {
            Some(Receiver::Api(domain, table)) => {
                let function = functions::get(domain, table, record.operation);
                // SAFETY: null, or the SDK's place for a word of ours, which this thread alone uses.
                let word = unsafe { word.cast::<Cell<u64>>().as_ref() };
                if let (Some(function), Some(word)) = (function, word) {
                    // SAFETY: the payload is that of this function (`# Safety`).
                    unsafe { api(session, function, record, word) };
                }
            }
            // SAFETY: the payload is that of the kind and operation (`# Safety`).
            Some(other) => unsafe { tell(session, other, record) },
            None => {}
        }
    });
}

/// A callback about something else than an API.
///
/// # Safety
///
/// The payload of `record` is null or the structure of its kind and operation.
unsafe fn tell(session: &Session, receiver: Receiver, record: &CallbackTracingRecord) {
    if record.payload.is_null() {
        return;
    }
    // SAFETY: the payload is the structure of the kind and operation (`# Safety`), which begins with its size.
    unsafe {
        match receiver {
            Receiver::CodeObjects => objects::code(record),
            Receiver::Streams => {
                let stream: HipStreamData = read(record.payload.cast());
                match HipStreamOperation(record.operation) {
                    HipStreamOperation::SET => {
                        if let Some(thread) = process::current() {
                            streams::set(thread, record.phase, stream.stream_id.handle);
                        }
                    }
                    HipStreamOperation::CREATE => objects::stream_created(&stream),
                    HipStreamOperation::DESTROY => objects::stream_destroyed(&stream),
                    _ => {}
                }
            }
            Receiver::Runtimes => {
                let runtime: RuntimeInitializationData = read(record.payload.cast());
                notes::runtime(session, record.operation, &runtime);
            }
            Receiver::Markers => markers::core(record),
            Receiver::MarkerControl => markers::control(record),
            Receiver::MarkerNames => markers::name(record),
            Receiver::Dispatches => sampling::dispatched(record),
            Receiver::Api(..) => {}
        }
    }
}

/// # Safety
///
/// The payload of `record` is that of `function`, or null.
#[inline]
unsafe fn api(
    session: &Session,
    function: &'static RocmFunction,
    record: &CallbackTracingRecord,
    word: &Cell<u64>,
) {
    // SAFETY: the payload is that of this function (`# Safety`).
    unsafe {
        match record.phase {
            CallbackPhase::ENTER => enter(function, record, word),
            CallbackPhase::EXIT => exit(session, function, record, word),
            _ => {
                enter(function, record, word);
                exit(session, function, record, word);
            }
        }
    }
}

/// # Safety
///
/// As for [`api`].
unsafe fn enter(function: &'static RocmFunction, record: &CallbackTracingRecord, word: &Cell<u64>) {
    word.set(0);
    let operation = function.operation();
    let mut interest = process::interest(operation);
    if interest.is_gated() {
        let due;
        (interest, due) = process::pass_gate(operation);
        if due != Default::default() {
            process::flush_due(due);
        }
    }
    if interest.is_none() || !interest.is_recorded() {
        return;
    }
    let Some(thread) = process::current().filter(|thread| !thread.state().is_in_callback()) else {
        return;
    };
    let Some(mut host) = thread.borrow() else {
        return;
    };
    let now = || {
        if interest.is_timed() {
            clock::now()
        } else {
            Ticks::NONE
        }
    };
    let stack = stack(thread);
    let mut call = host.enter_wanted(operation, interest, stack.pointer(), now);
    drop(host);
    if call.interest.has_callbacks() {
        // SAFETY: the payload is that of this function (`# Safety`).
        unsafe { notify(thread, function, &call, record, Phase::Enter, None) };
        if call.start.is_some() {
            call.start = clock::now();
        }
    }
    // A deeper call is left at the next enter.
    let place = call.depth as usize;
    if let Some(to) = stack.calls.get(place) {
        to.set(CurrentCall {
            call,
            work: WorkId::NONE,
            id: 0,
        });
        word.set(place as u64 + 1);
    }
}

/// # Safety
///
/// As for [`api`].
unsafe fn exit(
    session: &Session,
    function: &'static RocmFunction,
    record: &CallbackTracingRecord,
    word: &Cell<u64>,
) {
    let end = clock::now();
    let Some(place) = word.replace(0).checked_sub(1) else {
        return;
    };
    let Some(thread) = process::current() else {
        return;
    };
    let operation = function.operation();
    let stack = stack(thread);
    if place == 0 {
        stack.innermost.set((0, 0));
    }
    let open = stack.calls.get(place as usize).map(Cell::get);
    let Some(CurrentCall { call, .. }) = open.filter(|open| open.call.operation == operation)
    else {
        return;
    };
    // SAFETY: the payload is that of this function (`# Safety`).
    let status = unsafe { function.status(record.payload) };
    let has_failed = status != 0 && !return_codes::is_answer(operation.domain, status);
    let wants_arguments = call.interest.has_arguments() || call.interest.has_callbacks();
    if wants_arguments && !has_failed && function.lacks_arguments() && !record.payload.is_null() {
        // SAFETY: the call, which is in progress, has returned, so that its arguments lead to what it has stored.
        unsafe { function.learn(&session.sdk, record, process::names()) };
    }
    let mut values = [0; MAX_ARGUMENTS];
    let count = match call.interest.has_arguments() {
        // SAFETY: the payload is that of this function (`# Safety`).
        true => unsafe { function.arguments(record.payload, &mut values) },
        false => 0,
    };
    if let Some(mut host) = thread.borrow() {
        let extra = Extra {
            flags: if has_failed { flags::FAILED } else { 0 },
            arguments: &values[..count],
        };
        host.exit(&call, end, status, extra);
    }
    if call.interest.has_callbacks() {
        // SAFETY: the payload is that of this function (`# Safety`).
        unsafe { notify(thread, function, &call, record, Phase::Exit, Some(status)) };
    }
}

/// Notifies the subscribers of the call.
///
/// # Safety
///
/// The payload of `record` is that of `function`, or null.
#[cold]
unsafe fn notify(
    thread: Current,
    function: &'static RocmFunction,
    call: &CallInProgress,
    record: &CallbackTracingRecord,
    phase: Phase,
    return_code: Option<i32>,
) {
    let subscribers = call.interest.subscribers();
    let Some(board) = thread.board().filter(|_| !subscribers.is_none()) else {
        return;
    };
    let mut values = [0; MAX_ARGUMENTS];
    // SAFETY: the payload is that of this function (`# Safety`).
    let count = unsafe { function.arguments(record.payload, &mut values) };
    let arguments = CallArguments::in_progress(function.info().arguments, &values[..count]);
    let mut callback = CallbackArguments::new(call.operation, function.name(), phase)
        .with_kernel(KernelId::NONE, board.names());
    (callback.thread, callback.correlation) = (thread.state().thread(), call.correlation);
    (callback.return_code, callback.payload) = (return_code, Payload::Call(arguments));
    callback.return_value = return_code.map_or(0, |status| i64::from(status) as u64);
    callback.runtime_correlation = record.correlation_id.internal;
    let place = (call.depth, ReportedPart::Call);
    board.notify_within(thread.state(), place, subscribers, &callback);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_is_found_by_its_number() {
        let others = Receiver::OTHERS.into_iter();
        let apis = (0..super::super::DOMAINS.len())
            .flat_map(|domain| (0..4).map(move |table| Receiver::Api(domain, table)));
        for receiver in others.chain(apis) {
            assert_eq!(Receiver::of(receiver.number()), Some(receiver));
        }
        assert_eq!(Receiver::of(usize::MAX), None);
    }
}
