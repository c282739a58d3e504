//! The function that CUPTI calls back. It records each enter and exit of a function that is wanted, on the calling thread, and
//! passes on what CUPTI tells of objects, waits and errors.
//!
//! What tools see otherwise than from other sources: copies of two and three dimensions, copies between devices, and functions
//! whose arguments are not read are reported as calls only. A kernel has a module only if the tool subscribes to `kernel symbol
//! registered`. There are no retirement records. Callbacks about completed work may come on a thread of CUPTI's, where CUDA must
//! not be called.

use super::ffi::{self, CallData};
use super::functions::{self, CudaFunction, Effect, MAX_ARGUMENTS};
use super::inside::InsideCupti;
use super::recent::{self, RECENT};
use super::session::current_session;
use super::{agents, counting, enabling, graphs, inner, notes, objects, resources, sampling};
use crate::calls::{CurrentCall, stack};
use core::ffi::c_void;
use gputrail_buffer::clock;
use gputrail_buffer::platform::inside::contain;
use gputrail_collect::correlation::{CallInProgress, Extra};
use gputrail_collect::process::{self, Current};
use gputrail_collect::switchboard::{
    CallArguments, CallbackArguments, Observed, Payload, ReportedPart,
};
use gputrail_interface::operations::Phase;
use gputrail_interface::return_codes::CUDA_NOT_READY;
use gputrail_record::{Dependency, KernelId, Operation, Ticks, WorkId, flags};
use std::cell::Cell;

/// The function with which we subscribe.
pub(super) unsafe extern "C" fn callback(
    _: *mut c_void,
    domain: u32,
    number: u32,
    data: *const c_void,
) {
    // CUPTI says what it cannot do in calls of ours, too.
    if InsideCupti::is_set() && domain != ffi::STATE {
        return;
    }
    contain(|| {
        let _inside = InsideCupti::begin();
        match functions::api_of(domain) {
            Some(domain) if !data.is_null() => {
                let operation = Operation {
                    domain,
                    number: number as u16,
                };
                // SAFETY: CUPTI's description of the call, which is valid during the callback.
                let data = unsafe { &*data.cast::<CallData>() };
                match data.site {
                    ffi::ENTER => {
                        enter(operation, data);
                        count(operation, data, counting::before);
                    }
                    _ => {
                        count(operation, data, counting::after);
                        exit(operation, data);
                    }
                }
            }
            None if domain == ffi::RESOURCE => {
                if matches!(number, ffi::INITIALIZED | ffi::CONTEXT_CREATED) {
                    agents::driver_changed();
                }
                // SAFETY: CUPTI's description of an object, which is valid during the callback.
                unsafe {
                    objects::resource(number, data);
                    sampling::resource(number, data);
                    counting::resource(number, data);
                    resources::notify(domain, number, data);
                }
            }
            None if domain == ffi::SYNCHRONIZE => {
                // SAFETY: CUPTI's description of a wait, which is valid during the callback.
                unsafe { resources::notify(domain, number, data) };
            }
            None if domain == ffi::STATE => {
                // SAFETY: CUPTI's description of an error, which is valid during the callback.
                unsafe { notes::state(number, data) };
            }
            _ => {}
        }
    });
}

/// Tells the counters of kernels of a call's enter or exit.
#[inline(always)]
fn count(operation: Operation, data: &CallData, tell: fn(&CudaFunction, &CallData)) {
    if enabling::is_counting()
        && let Some(function) = functions::get(operation)
        && function.effect.is_launch()
    {
        tell(function, data);
    }
}

/// The word that CUPTI keeps for the call.
fn word(data: &CallData) -> Option<&Cell<u64>> {
    // SAFETY: null, or CUPTI's place for a word of the subscriber's, which this thread alone uses.
    unsafe { data.correlation_data.cast::<Cell<u64>>().as_ref() }
}

fn enter(operation: Operation, data: &CallData) {
    let Some(word) = word(data) else {
        return;
    };
    word.set(0);
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
    let Some(function) = functions::get(operation) else {
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
    let call = host.enter_wanted(operation, interest, stack.pointer(), now);
    let work = match function.info.observed {
        // CUPTI reports its work later.
        Observed::Work => recent::note(
            &mut host,
            data.correlation_id,
            (call.correlation, call.start),
        ),
        _ => WorkId::NONE,
    };
    drop(host);
    let place = call.depth as usize;
    let id = data.correlation_id;
    let mut open = CurrentCall { call, work, id };
    if call.interest.has_callbacks() {
        notify(thread, function, &call, data, Phase::Enter, None);
        if call.interest.has_inner_callbacks() {
            let around = place
                .checked_sub(1)
                .and_then(|place| stack.calls.get(place));
            let around = around.map_or(0, |around| around.get().id);
            // SAFETY: CUPTI's description of this call.
            unsafe { inner::begin(thread, function, &call, (data, around), work) };
        }
        if open.call.start.is_some() {
            open.call.start = clock::now();
        }
    }
    // A deeper call is left at the next enter.
    if let Some(to) = stack.calls.get(place) {
        to.set(open);
        word.set(place as u64 + 1);
    }
}

fn exit(operation: Operation, data: &CallData) {
    let end = clock::now();
    let Some(place) = word(data).and_then(|word| word.replace(0).checked_sub(1)) else {
        return;
    };
    let Some(thread) = process::current() else {
        return;
    };
    let stack = stack(thread);
    if place == 0 {
        stack.innermost.set((0, 0));
    }
    let open = stack.calls.get(place as usize).map(Cell::get);
    let Some(CurrentCall { call, work, .. }) = open.filter(|open| open.call.operation == operation)
    else {
        return;
    };
    let Some(function) = functions::get(operation) else {
        return;
    };
    // SAFETY: null, or the place of the function's status, which the call has stored.
    let status = unsafe { data.return_value.cast::<i32>().as_ref() };
    let status = status.copied().unwrap_or(0);
    let mut values = [0; MAX_ARGUMENTS];
    let count = match call.interest.has_arguments() {
        // SAFETY: CUPTI's structure with the arguments of this function.
        true => unsafe { functions::arguments(function, data.parameters, &mut values) },
        false => 0,
    };
    if call.interest.has_inner_callbacks() {
        // SAFETY: CUPTI's description of this call, which has returned.
        unsafe { inner::end(thread, function, &call, data, status) };
    }
    if let (Effect::LaunchGraph, 0, Some(session)) = (function.effect, status, current_session()) {
        // SAFETY: CUPTI's structure with the arguments of this function.
        unsafe { graphs::launched(session, thread, function, data.parameters) };
    }
    if let Some(mut host) = thread.borrow() {
        // A call inside of this one with the same id has announced the work.
        let is_its_own = || {
            let noted = RECENT.get(data.correlation_id);
            noted.is_some_and(|noted| noted.correlation == call.correlation)
        };
        // SAFETY: CUPTI's structure with the arguments of this function.
        let has_record = || unsafe { function.has_record(data.parameters) };
        if status == 0 && work.is_some() && has_record() && is_its_own() {
            let mut announcement = Dependency::blank();
            announcement.header = announcement.header.with(flags::LATE);
            (announcement.correlation, announcement.waited_for) = (call.correlation, work);
            host.write(announcement);
        }
        let has_failed = status != 0 && status != CUDA_NOT_READY;
        let extra = Extra {
            flags: if has_failed { flags::FAILED } else { 0 },
            arguments: &values[..count],
        };
        host.exit(&call, end, status, extra);
    }
    if call.interest.has_callbacks() {
        notify(thread, function, &call, data, Phase::Exit, Some(status));
    }
}

/// Notifies the subscribers of the call.
#[cold]
fn notify(
    thread: Current,
    function: &'static CudaFunction,
    call: &CallInProgress,
    data: &CallData,
    phase: Phase,
    return_code: Option<i32>,
) {
    let subscribers = call.interest.subscribers();
    let Some(board) = thread.board().filter(|_| !subscribers.is_none()) else {
        return;
    };
    let mut values = [0; MAX_ARGUMENTS];
    // SAFETY: CUPTI's structure with the arguments of this function.
    let count = unsafe { functions::arguments(function, data.parameters, &mut values) };
    let arguments = CallArguments::in_progress(function.info.arguments, &values[..count]);
    let mut callback = CallbackArguments::new(call.operation, function.info.name, phase)
        .with_kernel(KernelId::NONE, board.names());
    (callback.thread, callback.correlation) = (thread.state().thread(), call.correlation);
    (callback.return_code, callback.payload) = (return_code, Payload::Call(arguments));
    callback.return_value = return_code.map_or(0, |status| i64::from(status) as u64);
    callback.runtime_correlation = data.correlation_id.into();
    callback.runtime_context = objects::context_of(board.names(), data);
    let place = (call.depth, ReportedPart::Call);
    board.notify_within(thread.state(), place, subscribers, &callback);
}
