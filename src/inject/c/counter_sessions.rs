//! Sessions, passes and samples of counters.

use super::kinds::list;
use super::objects::destroy;
use super::sized;
use super::status::FailedCall;
use super::text::{copy, given, kept};
use super::{Answer, caller, done, library, place};
use core::ffi::c_char;
use core::num::NonZeroU32;
use gputrail_collect::context::{CounterSessions, SessionError};
use gputrail_collect::counting::values::usage;
use gputrail_counters::the_nearest;
use gputrail_interface::c::{
    CounterSessionsHandle, CounterSessionsOptions, SampleValue, SessionCounter, Status,
};
use gputrail_interface::counting::{Number, SampleNumber, SessionOptions};
use gputrail_record::{AgentId, CounterValueType};
use std::sync::Arc;

impl From<SessionError> for FailedCall {
    fn from(error: SessionError) -> FailedCall {
        let status = match error {
            SessionError::OutOfRange { .. } => Status::OUT_OF_RANGE,
            SessionError::AlreadyEnabled(_) => Status::ALREADY_ENABLED,
            SessionError::NotEnabled(_) => Status::NOT_ENABLED,
            SessionError::NoCounters => Status::NO_COUNTERS_ENABLED,
            SessionError::Sampling => Status::SESSION_STARTED,
            SessionError::NotSampling => Status::SESSION_NOT_STARTED,
            SessionError::PassStarted => Status::PASS_STARTED,
            SessionError::PassNotStarted => Status::PASS_NOT_STARTED,
            SessionError::SampleStarted => Status::SAMPLE_STARTED,
            SessionError::SampleNotStarted => Status::SAMPLE_NOT_STARTED,
            SessionError::SampleExists(_) => Status::INVALID_ARGUMENT,
            SessionError::OtherSamples { .. } => Status::SAMPLES_DIFFER,
            SessionError::NoSession(_) => Status::NO_SUCH_SESSION,
            SessionError::NotInAllPasses(_) => Status::NO_SUCH_SAMPLE,
            SessionError::Invalid { .. } | SessionError::NoKernel(_) => Status::NO_VALUE,
            SessionError::Tool(error) => return error.into(),
        };
        FailedCall::new(status, error.to_string())
    }
}

fn found(sessions: CounterSessionsHandle) -> Answer<Arc<CounterSessions>> {
    library::state()?.counter_sessions.get(sessions.handle)
}

/// Asks the opened counters, and writes the answer.
///
/// # Safety
///
/// `to` is null, misaligned or a place for an answer, which nobody else uses during the call.
unsafe fn ask<T>(
    sessions: CounterSessionsHandle,
    to: *mut T,
    work: impl FnOnce(&CounterSessions) -> Answer<T>,
) -> Status {
    done(|| {
        // SAFETY: `to` is null, misaligned or a place for an answer, which nobody else uses while `work` runs (the caller's
        // promise).
        let place = unsafe { place(to, "the place for the answer") }?;
        place.write(work(&*found(sessions)?)?);
        Ok(())
    })
}

/// Opens the counters that an agent can count now for sessions, none of them enabled (GPUPerfAPI: `GPA_OpenContext`). A null
/// `options` stands for all queues of the agent.
///
/// Errors: `GPUTRAIL_NO_SUCH_AGENT`, `GPUTRAIL_COUNTERS_NOT_AVAILABLE` if it counts no dispatches; `GPUTRAIL_BUSY` from
/// within a buffer's callback; `GPUTRAIL_WRONG_SIZE`, `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`,
/// `GPUTRAIL_TOO_MANY`, `GPUTRAIL_OUT_OF_MEMORY`, `GPUTRAIL_NO_THREAD`.
///
/// # Safety
///
/// `options` is null or leads to options; `sessions` is null or a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_sessions_open(
    agent: AgentId,
    options: *const CounterSessionsOptions,
    sessions: *mut CounterSessionsHandle,
) -> Status {
    done(|| {
        // SAFETY: `sessions` is null or a place for a handle (the caller's promise).
        let place = unsafe { place(sessions, "sessions") }?;
        drop(library::state()?);
        let mut asked = SessionOptions::default();
        if !options.is_null() {
            // SAFETY: `options` is not null, so it leads to options of as many bytes as their size says (the caller's
            // promise).
            let options = unsafe { sized::read(options) }?;
            asked.queue = (options.queue.0 != 0).then_some(options.queue);
            asked.per_pass = NonZeroU32::new(options.per_pass);
        }
        let opened = Arc::new(CounterSessions::open(agent, asked)?);
        let mut state = library::state()?;
        let handle = state.counter_sessions.new_handle();
        state.counter_sessions.insert(handle, opened);
        place.write(CounterSessionsHandle { handle });
        Ok(())
    })
}

/// Closes opened counters. Their results are gone.
///
/// Errors: `GPUTRAIL_SESSION_STARTED`, and they stay open; `GPUTRAIL_BUSY` from within a callback;
/// `GPUTRAIL_NO_SUCH_COUNTER_SESSIONS`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_counter_sessions_close(sessions: CounterSessionsHandle) -> Status {
    done(|| {
        caller::refuse_inside()?;
        found(sessions)?.check_idle()?;
        let gone = library::state()?.counter_sessions.remove(sessions.handle)?;
        destroy(gone);
        Ok(())
    })
}

/// The counters and metrics that can be enabled, by their index. As `gputrail_kinds`.
///
/// Errors: `GPUTRAIL_TOO_SMALL`, and as many as fit are written; `GPUTRAIL_NO_SUCH_COUNTER_SESSIONS`,
/// `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `counters` is null or leads to room for `capacity` of them, `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_sessions_counters(
    sessions: CounterSessionsHandle,
    counters: *mut SessionCounter,
    capacity: usize,
    count: *mut usize,
) -> Status {
    done(|| {
        let opened = found(sessions)?;
        let all: Vec<SessionCounter> = opened
            .counters()
            .iter()
            .map(|counter| SessionCounter {
                name: kept(&counter.name),
                description: kept(&counter.description),
                value_type: counter.value_type,
                usage: usage(counter.usage),
                reserved: [0; 6],
            })
            .collect();
        // SAFETY: `counters` is null or has room for `capacity` counters, `count` is null or a place for a number (the
        // caller's promises).
        unsafe { list(&all, counters, capacity, count) }
    })
}

/// The index of the counter with this name, upper and lower case alike.
///
/// Errors: `GPUTRAIL_NOT_FOUND`, and the text of the error names the nearest; `GPUTRAIL_INVALID_ARGUMENT` if the name is not
/// UTF-8; `GPUTRAIL_NO_SUCH_COUNTER_SESSIONS`, `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `name` is null or a text that ends with a 0, `counter` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_sessions_find(
    sessions: CounterSessionsHandle,
    name: *const c_char,
    counter: *mut u32,
) -> Status {
    // SAFETY: `counter` is null or a place for a number, `name` is null or a text that ends with a 0 (the caller's
    // promises).
    unsafe {
        ask(sessions, counter, |opened| {
            let name = given(name, "name")?;
            opened.find(name).ok_or_else(|| {
                let nearest = the_nearest(&opened.nearest(name));
                let text = format!("there is no counter or metric {name:?}{nearest}");
                FailedCall::new(Status::NOT_FOUND, text)
            })
        })
    }
}

/// Enables a counter for the sessions that begin later.
///
/// Errors: `GPUTRAIL_OUT_OF_RANGE`, `GPUTRAIL_ALREADY_ENABLED`, `GPUTRAIL_SESSION_STARTED`,
/// `GPUTRAIL_NO_SUCH_COUNTER_SESSIONS`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_counter_sessions_enable(
    sessions: CounterSessionsHandle,
    counter: u32,
) -> Status {
    done(|| Ok(found(sessions)?.enable(counter)?))
}

/// Disables a counter for the sessions that begin later.
///
/// Errors: `GPUTRAIL_OUT_OF_RANGE`, `GPUTRAIL_NOT_ENABLED`, `GPUTRAIL_SESSION_STARTED`,
/// `GPUTRAIL_NO_SUCH_COUNTER_SESSIONS`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_counter_sessions_disable(
    sessions: CounterSessionsHandle,
    counter: u32,
) -> Status {
    done(|| Ok(found(sessions)?.disable(counter)?))
}

/// Enables all counters if `on` is not 0, otherwise disables all.
///
/// Errors: `GPUTRAIL_SESSION_STARTED`, `GPUTRAIL_NO_SUCH_COUNTER_SESSIONS`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_counter_sessions_enable_all(
    sessions: CounterSessionsHandle,
    on: i32,
) -> Status {
    done(|| Ok(found(sessions)?.enable_all(on != 0)?))
}

/// The indexes of the enabled counters, in ascending order. As `gputrail_kinds`.
///
/// Errors: `GPUTRAIL_TOO_SMALL`, and as many as fit are written; `GPUTRAIL_NO_SUCH_COUNTER_SESSIONS`,
/// `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `counters` is null or leads to room for `capacity` of them, `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_sessions_enabled(
    sessions: CounterSessionsHandle,
    counters: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> Status {
    // SAFETY: `counters` is null or has room for `capacity` numbers, `count` is null or a place for a number (the caller's
    // promises).
    done(|| unsafe { list(&found(sessions)?.enabled(), counters, capacity, count) })
}

/// The number of passes that the enabled counters need; 0 if none is enabled.
///
/// Errors: `GPUTRAIL_INVALID_ARGUMENT` if they need more than the agent can do, `GPUTRAIL_COUNTERS_NOT_AVAILABLE`;
/// `GPUTRAIL_BUSY` from within a buffer's callback; `GPUTRAIL_NO_SUCH_COUNTER_SESSIONS`, `GPUTRAIL_NULL_POINTER`,
/// `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `passes` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_sessions_passes(
    sessions: CounterSessionsHandle,
    passes: *mut u32,
) -> Status {
    // SAFETY: `passes` is null or a place for a number (the caller's promise).
    unsafe { ask(sessions, passes, |opened| Ok(opened.passes()?)) }
}

/// Begins a session with the enabled counters. The first one has the number 1. Until it ends, kernels of the agent run one
/// after the other.
///
/// Errors: `GPUTRAIL_SESSION_STARTED`, `GPUTRAIL_NO_COUNTERS_ENABLED`; `GPUTRAIL_CONTEXT_CONFLICT` if something else in the
/// process counts or samples; `GPUTRAIL_BUSY` also from the functions of `gputrail_context_count_chosen`; as for
/// `gputrail_counter_sessions_passes`.
///
/// # Safety
///
/// `session` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_sessions_begin(
    sessions: CounterSessionsHandle,
    session: *mut u32,
) -> Status {
    // SAFETY: `session` is null or a place for a number (the caller's promise).
    unsafe { ask(sessions, session, |opened| Ok(opened.begin()?)) }
}

/// Ends the session. Its kernels may still run.
///
/// Errors: `GPUTRAIL_SESSION_NOT_STARTED`, `GPUTRAIL_PASS_STARTED`; `GPUTRAIL_BUSY` from within a buffer's callback or the
/// functions of `gputrail_context_count_chosen`; `GPUTRAIL_NO_SUCH_COUNTER_SESSIONS`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_counter_sessions_end(sessions: CounterSessionsHandle) -> Status {
    done(|| {
        caller::refuse_inside_batch()?;
        Ok(found(sessions)?.end()?)
    })
}

/// Begins a pass.
///
/// Errors: `GPUTRAIL_SESSION_NOT_STARTED`, `GPUTRAIL_PASS_STARTED`, `GPUTRAIL_NO_SUCH_COUNTER_SESSIONS`,
/// `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_counter_sessions_begin_pass(sessions: CounterSessionsHandle) -> Status {
    done(|| Ok(found(sessions)?.begin_pass()?))
}

/// Ends the pass.
///
/// Errors: `GPUTRAIL_PASS_NOT_STARTED`, `GPUTRAIL_SAMPLE_STARTED`; `GPUTRAIL_SAMPLES_DIFFER` if it has not as many samples as
/// the first one, and the pass has ended then; `GPUTRAIL_NO_SUCH_COUNTER_SESSIONS`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_counter_sessions_end_pass(sessions: CounterSessionsHandle) -> Status {
    done(|| Ok(found(sessions)?.end_pass()?))
}

/// Begins a sample: kernels that are enqueued from now on, by any thread, belong to it. The same part of the work has the
/// same id in each pass.
///
/// Errors: `GPUTRAIL_SESSION_NOT_STARTED`, `GPUTRAIL_PASS_NOT_STARTED`, `GPUTRAIL_SAMPLE_STARTED`;
/// `GPUTRAIL_INVALID_ARGUMENT` if the pass has had a sample with this id; `GPUTRAIL_NO_SUCH_COUNTER_SESSIONS`,
/// `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_counter_sessions_begin_sample(
    sessions: CounterSessionsHandle,
    sample: u32,
) -> Status {
    done(|| Ok(found(sessions)?.begin_sample(sample)?))
}

/// Ends the sample.
///
/// Errors: `GPUTRAIL_SAMPLE_NOT_STARTED`, `GPUTRAIL_NO_SUCH_COUNTER_SESSIONS`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_counter_sessions_end_sample(sessions: CounterSessionsHandle) -> Status {
    done(|| Ok(found(sessions)?.end_sample()?))
}

/// Whether a pass of a session, from 0, has been ended and its kernels have: 1 or 0. Does not wait.
///
/// Errors: `GPUTRAIL_NO_SUCH_SESSION`, `GPUTRAIL_NO_SUCH_COUNTER_SESSIONS`, `GPUTRAIL_NULL_POINTER`,
/// `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `is_complete` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_sessions_is_pass_complete(
    sessions: CounterSessionsHandle,
    session: u32,
    pass: u32,
    is_complete: *mut i32,
) -> Status {
    // SAFETY: `is_complete` is null or a place for a number (the caller's promise).
    unsafe {
        ask(sessions, is_complete, |opened| {
            Ok(opened.is_pass_complete(session, pass)?.into())
        })
    }
}

/// Whether all results of a session can be read at once: 1 or 0. Does not wait.
///
/// Errors: as for `gputrail_counter_sessions_is_pass_complete`.
///
/// # Safety
///
/// `is_ready` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_sessions_is_ready(
    sessions: CounterSessionsHandle,
    session: u32,
    is_ready: *mut i32,
) -> Status {
    // SAFETY: `is_ready` is null or a place for a number (the caller's promise).
    unsafe {
        ask(sessions, is_ready, |opened| {
            Ok(opened.is_ready(session)?.into())
        })
    }
}

/// Whether the results of a sample can be read at once: 1 or 0. Does not wait.
///
/// Errors: `GPUTRAIL_NO_SUCH_SAMPLE` if the session has ended without it in all of its passes; as for
/// `gputrail_counter_sessions_is_pass_complete`.
///
/// # Safety
///
/// `is_ready` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_sessions_is_sample_ready(
    sessions: CounterSessionsHandle,
    session: u32,
    sample: u32,
    is_ready: *mut i32,
) -> Status {
    // SAFETY: `is_ready` is null or a place for a number (the caller's promise).
    unsafe {
        ask(sessions, is_ready, |opened| {
            Ok(opened.is_sample_ready(session, sample)?.into())
        })
    }
}

/// The number of samples of a session.
///
/// Errors: as for `gputrail_counter_sessions_is_pass_complete`.
///
/// # Safety
///
/// `samples` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_sessions_samples(
    sessions: CounterSessionsHandle,
    session: u32,
    samples: *mut u32,
) -> Status {
    // SAFETY: `samples` is null or a place for a number (the caller's promise).
    unsafe { ask(sessions, samples, |opened| Ok(opened.samples(session)?)) }
}

/// The values of all enabled counters for a sample, in ascending order of their indexes. Waits for the sample's kernels. As
/// `gputrail_kinds`.
///
/// Errors: `GPUTRAIL_TOO_SMALL`, and as many as fit are written; `GPUTRAIL_NO_SUCH_SESSION` also before its end;
/// `GPUTRAIL_NO_SUCH_SAMPLE`; `GPUTRAIL_BUSY` from within a callback if it would have to wait;
/// `GPUTRAIL_NO_SUCH_COUNTER_SESSIONS`, `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `values` is null or leads to room for `capacity` of them, `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_sessions_values(
    sessions: CounterSessionsHandle,
    session: u32,
    sample: u32,
    values: *mut SampleValue,
    capacity: usize,
    count: *mut usize,
) -> Status {
    done(|| {
        let opened = found(sessions)?;
        let read = opened.values(session, sample)?;
        let value = |(counter, value): (u32, SampleNumber)| {
            let of = opened.counters().get(counter as usize);
            let blank = SampleValue {
                counter,
                value_type: of.map_or(CounterValueType::UINT64, |of| of.value_type),
                ..SampleValue::default()
            };
            match value {
                Ok(Number::Uint(value)) => SampleValue { value, ..blank },
                Ok(Number::Double(value)) => SampleValue {
                    value: value.to_bits(),
                    ..blank
                },
                Err(invalid) => SampleValue { invalid, ..blank },
            }
        };
        let all: Vec<SampleValue> = read.into_iter().map(value).collect();
        // SAFETY: `values` is null or has room for `capacity` values, `count` is null or a place for a number (the caller's
        // promises).
        unsafe { list(&all, values, capacity, count) }
    })
}

/// The value of a counter for a sample, which is a whole number. Waits for the sample's kernels.
///
/// Errors: `GPUTRAIL_WRONG_TYPE` if it is a double; `GPUTRAIL_OUT_OF_RANGE`, `GPUTRAIL_NOT_ENABLED`; `GPUTRAIL_NO_VALUE` if it
/// could not be measured; as for `gputrail_counter_sessions_values`.
///
/// # Safety
///
/// `number` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_sessions_uint64(
    sessions: CounterSessionsHandle,
    session: u32,
    sample: u32,
    counter: u32,
    number: *mut u64,
) -> Status {
    // SAFETY: `number` is null or a place for a number (the caller's promise).
    unsafe {
        ask(sessions, number, |opened| {
            let value = opened.value(session, sample, counter)?;
            value.uint().map_err(wrong_type)
        })
    }
}

/// The value of a metric for a sample, which is a floating-point number. Waits for the sample's kernels.
///
/// Errors: `GPUTRAIL_WRONG_TYPE` if it is a whole number; as for `gputrail_counter_sessions_uint64`; `GPUTRAIL_NO_VALUE` also
/// after a division by zero.
///
/// # Safety
///
/// `number` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_sessions_double(
    sessions: CounterSessionsHandle,
    session: u32,
    sample: u32,
    counter: u32,
    number: *mut f64,
) -> Status {
    // SAFETY: `number` is null or a place for a number (the caller's promise).
    unsafe {
        ask(sessions, number, |opened| {
            let value = opened.value(session, sample, counter)?;
            value.double().map_err(wrong_type)
        })
    }
}

fn wrong_type(error: gputrail_interface::counting::WrongType) -> FailedCall {
    FailedCall::new(Status::WRONG_TYPE, error.to_string())
}

/// The results of a session as text with a line for each sample, as the example of GPUPerfAPI's guide writes them; before
/// them a line of names if `headings` is not 0. Waits for the session's kernels. As `gputrail_string`.
///
/// Errors: `GPUTRAIL_TOO_SMALL`; as for `gputrail_counter_sessions_values`.
///
/// # Safety
///
/// `text` is null or leads to `capacity` bytes, `length` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_sessions_csv(
    sessions: CounterSessionsHandle,
    session: u32,
    headings: i32,
    text: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Status {
    done(|| {
        let csv = found(sessions)?.csv(session, headings != 0)?;
        // SAFETY: `text` is null or leads to `capacity` bytes, `length` is null or a place for a number (the caller's
        // promises).
        unsafe { copy(&csv, text, capacity, length) }
    })
}
