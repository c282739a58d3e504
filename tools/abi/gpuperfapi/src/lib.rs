//! GPUPerfAPI 2 for OpenCL, by its own names: AMD's "GPUPerfAPI User Guide" on the counters of gputrail.
//!
//! The library is a translation: contexts, sessions, passes and samples are those of
//! [`gputrail_tool::counting::CounterSessions`]. `docs/apis.md` says how programs use it. The functions have their statuses
//! here; `tests/programs/abi/gpuperfapi.c` calls each function, and provokes each status but `GPA_STATUS_ERROR_NOT_ENOUGH_PASSES`,
//! which is never returned.
//!
//! Beside the guide:
//!
//! * [`GPA_OpenContext`] takes a `cl_command_queue`, or the handle of a queue of the simulated GPU: `queue->id` in a dispatch
//!   callback of ROCProfiler, or the handle in a tool's callback `queue created`, and not a `CUstream`, since streams of the
//!   simulated GPU share queues. All kernels of one call, such as a graph, belong to one sample.
//! * Counters are `GPA_TYPE_UINT64`, metrics `GPA_TYPE_FLOAT64`; nanoseconds, for which the API has no unit, are
//!   `GPA_USAGE_TYPE_ITEMS`.
//! * The logging callback gets each call's name (`GPA_LOGGING_TRACE`) and a sentence for each failure (`GPA_LOGGING_ERROR`), on
//!   the calling thread.
//! * Reading results waits for the sample's kernels.
//! * Statuses: `FAILED` of `GPA_BeginSession` if something else counts or samples; `SAMPLING_NOT_STARTED` of [`GPA_EndSession`]
//!   for the guide's `SAMPLE_NOT_STARTED`; `READING_COUNTER_RESULT` if there is no value, with a message why;
//!   `SAMPLE_NOT_FOUND_IN_ALL_PASSES` also if the session had too few passes.

// The names are the API's.
#![allow(non_snake_case)]

mod contexts;
mod logging;
mod types;

use contexts::{Opened, selected};
use core::ffi::{CStr, c_char, c_void};
use gputrail_abi::{Place, contained, given, kept};
use gputrail_record::AgentAttributeKind;
use gputrail_tool as tool;
use logging::{LoggingCallback, log};
use std::ptr::NonNull;
use types::{DataType, Failure, LoggingType, Status, UsageType};

type Answer<T = ()> = Result<T, Failure>;

/// Calls `work` as the function `name` of the API, whose status is the answer.
fn api(name: &str, work: impl FnOnce() -> Answer) -> Status {
    log(LoggingType::TRACE, || name.to_owned());
    let failure = match contained(work) {
        Some(Ok(())) => return Status::OK,
        Some(Err(failure)) => failure,
        None => Failure::new(Status::FAILED, "internal error"),
    };
    log(LoggingType::ERROR, || format!("{name}: {}", failure.text));
    failure.status
}

/// Calls `work` with the selected context.
fn on_selected(name: &str, work: impl FnOnce(&Opened) -> Answer) -> Status {
    api(name, || work(&*selected()?))
}

/// A place for an answer.
///
/// # Safety
///
/// As for [`Place::new`].
unsafe fn place_of<T>(place: *mut T) -> Answer<Place<T>> {
    // SAFETY: the promise of this function, as `new` asks for it.
    let place = unsafe { Place::new(place) };
    place.map_err(|why| {
        Failure::new(
            Status::NULL_POINTER,
            format!("the place for the answer {why}"),
        )
    })
}

fn null(what: &str) -> Failure {
    Failure::new(Status::NULL_POINTER, format!("{what} is null"))
}

/// # Safety
///
/// As for [`given`], of `name`, during the call.
unsafe fn counter_named(opened: &Opened, name: *const c_char) -> Answer<u32> {
    // SAFETY: `name` is null or ends with a 0, and the program leaves it alone during the call.
    let name = unsafe { given(name) }.ok_or_else(|| null("the name of the counter"))?;
    Ok(opened.sessions.find(&name)?)
}

/// Counters that cannot be changed now.
fn while_sampling(error: tool::Error) -> Failure {
    Failure::from(error).told_as(
        Status::SAMPLING_ALREADY_STARTED,
        Status::CANNOT_CHANGE_COUNTERS_WHEN_SAMPLING,
    )
}

/// Has the logging callback get the messages of these types.
///
/// Returns `GPA_STATUS_ERROR_NULL_POINTER` without a callback, unless `logging_type` is `GPA_LOGGING_NONE`.
#[unsafe(no_mangle)]
pub extern "C" fn GPA_RegisterLoggingCallback(
    logging_type: LoggingType,
    callback: Option<LoggingCallback>,
) -> Status {
    api("GPA_RegisterLoggingCallback", || {
        if callback.is_none() && logging_type != LoggingType::NONE {
            return Err(null("the callback"));
        }
        logging::register(callback, logging_type);
        Ok(())
    })
}

/// Prepares counting, before the program's first call of OpenCL.
///
/// Returns `GPA_STATUS_ERROR_FAILED` if `libgputrail.so.0` is not found or OpenCL is in use already; the logging callback
/// gets the reason.
#[unsafe(no_mangle)]
pub extern "C" fn GPA_Initialize() -> Status {
    api("GPA_Initialize", || {
        let inside = GPA_Initialize as *const ();
        gputrail_abi::prepare(inside).map_err(|text| Failure::new(Status::FAILED, text))?;
        contexts::initialise();
        Ok(())
    })
}

/// Closes all contexts, also during a session.
#[unsafe(no_mangle)]
pub extern "C" fn GPA_Destroy() -> Status {
    api("GPA_Destroy", || {
        contexts::destroy();
        Ok(())
    })
}

/// Opens the counters of the device of a `cl_command_queue`, or of a queue of the simulated GPU, and selects them.
///
/// Returns `GPA_STATUS_ERROR_NULL_POINTER`, `..._COUNTERS_ALREADY_OPEN`; `..._HARDWARE_NOT_SUPPORTED` if the device counts
/// nothing, or the queue was created before [`GPA_Initialize`].
#[unsafe(no_mangle)]
pub extern "C" fn GPA_OpenContext(context: *mut c_void) -> Status {
    api("GPA_OpenContext", || {
        let handle = NonNull::new(context).ok_or_else(|| null("the context"))?;
        contexts::open(handle.addr().get())
    })
}

/// Closes the selected context. None is selected then.
///
/// Returns `GPA_STATUS_ERROR_COUNTERS_NOT_OPEN`, `..._SAMPLING_NOT_ENDED`.
#[unsafe(no_mangle)]
pub extern "C" fn GPA_CloseContext() -> Status {
    api("GPA_CloseContext", contexts::close)
}

/// Selects a context that has been opened.
///
/// Returns `GPA_STATUS_ERROR_NULL_POINTER`, `..._COUNTERS_NOT_OPEN`.
#[unsafe(no_mangle)]
pub extern "C" fn GPA_SelectContext(context: *mut c_void) -> Status {
    api("GPA_SelectContext", || {
        let handle = NonNull::new(context).ok_or_else(|| null("the context"))?;
        contexts::select(handle.addr().get())
    })
}

/// Functions that ask the selected context: name, further arguments, the place for the answer, the answer.
macro_rules! questions {
    ($($(#[$what:meta])* $name:ident($($argument:ident: $type:ty,)* => $answer:ty) |$opened:ident| $work:expr;)*) => {$(
        $(#[$what])*
        ///
        /// Returns `GPA_STATUS_ERROR_COUNTERS_NOT_OPEN`, `..._NULL_POINTER`.
        ///
        /// # Safety
        ///
        /// `answer` is null or a place for the answer.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type,)* answer: *mut $answer) -> Status {
            on_selected(stringify!($name), |$opened| {
                // SAFETY: `answer` is null or a place for the answer until this function returns.
                let place = unsafe { place_of(answer) }?;
                let answer: Answer<$answer> = $work;
                place.put(answer?);
                Ok(())
            })
        }
    )*};
}

questions! {
    /// The number of counters.
    GPA_GetNumCounters(=> u32) |opened| Ok(opened.counters.len() as u32);
    /// The name of a counter. Also returns `..._NOT_FOUND`.
    GPA_GetCounterName(index: u32, => *const c_char) |opened| {
        let counter = opened.counter(index);
        let named = counter.map_err(|failure| failure.told_as(Status::INDEX_OUT_OF_RANGE, Status::NOT_FOUND));
        Ok(kept(named?.name).as_ptr())
    };
    /// The description of a counter. Also returns `..._INDEX_OUT_OF_RANGE`.
    GPA_GetCounterDescription(index: u32, => *const c_char) |opened|
        Ok(kept(opened.counter(index)?.description).as_ptr());
    /// The type of a counter's values. Also returns `..._INDEX_OUT_OF_RANGE`.
    GPA_GetCounterDataType(index: u32, => DataType) |opened| Ok(opened.counter(index)?.value_type.into());
    /// The unit of a counter's values. Also returns `..._INDEX_OUT_OF_RANGE`.
    GPA_GetCounterUsageType(index: u32, => UsageType) |opened| Ok(opened.counter(index)?.usage.into());
    /// The description of the device. Also returns `..._NOT_FOUND`.
    GPA_GetDeviceDesc(=> *const c_char) |opened| {
        let name = tool::agent_name(opened.agent);
        let name = name.ok_or_else(|| Failure::new(Status::NOT_FOUND, "the device has no description"))?;
        Ok(kept(&name).as_ptr())
    };
    /// The number of the device on the PCI bus. Also returns `..._NOT_FOUND`.
    GPA_GetDeviceID(=> u32) |opened| {
        let id = tool::agent_attribute(opened.agent, AgentAttributeKind::PCI_DEVICE)?;
        Ok(id as u32)
    };
    /// The number of enabled counters.
    GPA_GetEnabledCount(=> u32) |opened| Ok(opened.sessions.enabled()?.len() as u32);
    /// The index of an enabled counter, by its place among them. Also returns `..._INDEX_OUT_OF_RANGE`.
    GPA_GetEnabledIndex(number: u32, => u32) |opened| {
        let enabled = opened.sessions.enabled()?;
        enabled.get(number as usize).copied().ok_or_else(|| {
            let text = format!("no enabled counter {number}: there are {}", enabled.len());
            Failure::new(Status::INDEX_OUT_OF_RANGE, text)
        })
    };
    /// The number of passes that the enabled counters need.
    GPA_GetPassCount(=> u32) |opened| Ok(opened.sessions.passes()?);
    /// Begins a session, and answers its number. Also returns `..._NO_COUNTERS_ENABLED`, `..._SAMPLING_ALREADY_STARTED`;
    /// `..._FAILED` if something else counts or samples.
    GPA_BeginSession(=> u32) |opened| Ok(opened.sessions.begin()?);
    /// The number of samples of a session. Also returns `..._SESSION_NOT_FOUND`.
    GPA_GetSampleCount(session: u32, => u32) |opened| Ok(opened.sessions.samples(session)?);
    /// The value of a counter for a sample: always `..._COUNTER_NOT_OF_SPECIFIED_TYPE`, since no counter is of this type.
    GPA_GetSampleUInt32(session: u32, sample: u32, counter: u32, => u32) |opened| other_type(opened, session, sample, counter);
    /// The value of a counter for a sample: always `..._COUNTER_NOT_OF_SPECIFIED_TYPE`, since no counter is of this type.
    GPA_GetSampleFloat32(session: u32, sample: u32, counter: u32, => f32) |opened| other_type(opened, session, sample, counter);
    /// The value of a counter for a sample. Waits for it. Also returns `..._SESSION_NOT_FOUND`, `..._SAMPLE_NOT_FOUND`,
    /// `..._INDEX_OUT_OF_RANGE`, `..._NOT_ENABLED`, `..._COUNTER_NOT_OF_SPECIFIED_TYPE`, `..._READING_COUNTER_RESULT`.
    GPA_GetSampleUInt64(session: u32, sample: u32, counter: u32, => u64) |opened|
        Ok(opened.sessions.uint(session, sample, counter)?);
    /// The value of a metric for a sample. As [`GPA_GetSampleUInt64`].
    GPA_GetSampleFloat64(session: u32, sample: u32, counter: u32, => f64) |opened|
        Ok(opened.sessions.double(session, sample, counter)?);
}

/// The failure of a getter of a type that no counter has.
fn other_type<T>(opened: &Opened, session: u32, sample: u32, index: u32) -> Answer<T> {
    opened.sessions.is_sample_ready(session, sample)?;
    let counter = opened.counter(index)?;
    if !opened.sessions.enabled()?.contains(&index) {
        let text = format!("{} is not enabled", counter.name);
        return Err(Failure::new(Status::NOT_ENABLED, text));
    }
    let of = DataType::from(counter.value_type)
        .text()
        .unwrap_or_default();
    let text = format!("{} is a {}", counter.name, of.to_string_lossy());
    Err(Failure::new(Status::COUNTER_NOT_OF_SPECIFIED_TYPE, text))
}

/// The index of the counter with this name, upper and lower case alike.
///
/// Returns `GPA_STATUS_ERROR_COUNTERS_NOT_OPEN`, `..._NULL_POINTER`, `..._NOT_FOUND`.
///
/// # Safety
///
/// `name` is null or ends with a 0, `index` is null or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GPA_GetCounterIndex(name: *const c_char, index: *mut u32) -> Status {
    on_selected("GPA_GetCounterIndex", |opened| {
        // SAFETY: `index` is null or a place for the answer until this function returns, `name` is null or ends with a 0.
        let (place, found) = unsafe { (place_of(index)?, counter_named(opened, name)?) };
        place.put(found);
        Ok(())
    })
}

/// Functions that change the selected context: name, an argument, the change.
macro_rules! changes {
    ($($(#[$what:meta])* $name:ident($($argument:ident: $type:ty)?) |$opened:ident| $work:expr;)*) => {$(
        $(#[$what])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($argument: $type)?) -> Status {
            on_selected(stringify!($name), |$opened| $work)
        }
    )*};
}

changes! {
    /// Enables a counter for the sessions that begin later.
    ///
    /// Returns `GPA_STATUS_ERROR_COUNTERS_NOT_OPEN`, `..._INDEX_OUT_OF_RANGE`, `..._ALREADY_ENABLED`,
    /// `..._CANNOT_CHANGE_COUNTERS_WHEN_SAMPLING`.
    GPA_EnableCounter(index: u32) |opened| opened.sessions.enable(index).map_err(while_sampling);
    /// Disables a counter for the sessions that begin later.
    ///
    /// Returns `GPA_STATUS_ERROR_COUNTERS_NOT_OPEN`, `..._INDEX_OUT_OF_RANGE`, `..._NOT_ENABLED`,
    /// `..._CANNOT_CHANGE_COUNTERS_WHEN_SAMPLING`.
    GPA_DisableCounter(index: u32) |opened| opened.sessions.disable(index).map_err(while_sampling);
    /// Enables all counters.
    ///
    /// Returns `GPA_STATUS_ERROR_COUNTERS_NOT_OPEN`, `..._CANNOT_CHANGE_COUNTERS_WHEN_SAMPLING`.
    GPA_EnableAllCounters() |opened| opened.sessions.enable_all(true).map_err(while_sampling);
    /// Disables all counters.
    ///
    /// Returns `GPA_STATUS_ERROR_COUNTERS_NOT_OPEN`, `..._CANNOT_CHANGE_COUNTERS_WHEN_SAMPLING`.
    GPA_DisableAllCounters() |opened| opened.sessions.enable_all(false).map_err(while_sampling);
    /// Ends the session.
    ///
    /// Returns `GPA_STATUS_ERROR_COUNTERS_NOT_OPEN`, `..._SAMPLING_NOT_STARTED`, `..._PASS_NOT_ENDED`.
    GPA_EndSession() |opened| {
        let ended = opened.sessions.end().map_err(Failure::from);
        ended.map_err(|failure| failure.told_as(Status::PASS_ALREADY_STARTED, Status::PASS_NOT_ENDED))
    };
    /// Begins a pass.
    ///
    /// Returns `GPA_STATUS_ERROR_COUNTERS_NOT_OPEN`, `..._SAMPLING_NOT_STARTED`, `..._PASS_ALREADY_STARTED`.
    GPA_BeginPass() |opened| Ok(opened.sessions.begin_pass()?);
    /// Ends the pass.
    ///
    /// Returns `GPA_STATUS_ERROR_COUNTERS_NOT_OPEN`, `..._PASS_NOT_STARTED`, `..._SAMPLE_NOT_ENDED`,
    /// `..._VARIABLE_NUMBER_OF_SAMPLES_IN_PASSES` if the enabled counters need several passes.
    GPA_EndPass() |opened| opened.sessions.end_pass().map_err(Failure::from).or_else(|failure| {
        let differ = Status::VARIABLE_NUMBER_OF_SAMPLES_IN_PASSES;
        if failure.status == differ && opened.sessions.passes()? <= 1 {
            // Each pass has all counters, so that none has to repeat another.
            return Ok(());
        }
        Err(failure.told_as(Status::SAMPLE_ALREADY_STARTED, Status::SAMPLE_NOT_ENDED))
    });
    /// Begins a sample: kernels that are enqueued from now on belong to it.
    ///
    /// Returns `GPA_STATUS_ERROR_COUNTERS_NOT_OPEN`, `..._SAMPLING_NOT_STARTED`, `..._PASS_NOT_STARTED`,
    /// `..._SAMPLE_ALREADY_STARTED`; `..._FAILED` if the pass has had this id.
    GPA_BeginSample(sample: u32) |opened| Ok(opened.sessions.begin_sample(sample)?);
    /// Ends the sample.
    ///
    /// Returns `GPA_STATUS_ERROR_COUNTERS_NOT_OPEN`, `..._SAMPLE_NOT_STARTED`.
    GPA_EndSample() |opened| Ok(opened.sessions.end_sample()?);
}

/// Enables the counter with this name, as [`GPA_EnableCounter`]; also returns `..._NULL_POINTER`, `..._NOT_FOUND`.
///
/// # Safety
///
/// `name` is null or ends with a 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GPA_EnableCounterStr(name: *const c_char) -> Status {
    on_selected("GPA_EnableCounterStr", |opened| {
        // SAFETY: `name` is null or ends with a 0.
        let index = unsafe { counter_named(opened, name) }?;
        opened.sessions.enable(index).map_err(while_sampling)
    })
}

/// Disables the counter with this name, as [`GPA_DisableCounter`]; also returns `..._NULL_POINTER`, `..._NOT_FOUND`.
///
/// # Safety
///
/// `name` is null or ends with a 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GPA_DisableCounterStr(name: *const c_char) -> Status {
    on_selected("GPA_DisableCounterStr", |opened| {
        // SAFETY: `name` is null or ends with a 0.
        let index = unsafe { counter_named(opened, name) }?;
        opened.sessions.disable(index).map_err(while_sampling)
    })
}

/// Whether a counter is enabled: `GPA_STATUS_OK`, or `GPA_STATUS_ERROR_NOT_FOUND`.
///
/// Returns `GPA_STATUS_ERROR_COUNTERS_NOT_OPEN`, `..._INDEX_OUT_OF_RANGE`.
#[unsafe(no_mangle)]
pub extern "C" fn GPA_IsCounterEnabled(index: u32) -> Status {
    on_selected("GPA_IsCounterEnabled", |opened| {
        let counter = opened.counter(index)?;
        if opened.sessions.enabled()?.contains(&index) {
            Ok(())
        } else {
            Err(Failure::new(
                Status::NOT_FOUND,
                format!("{} is not enabled", counter.name),
            ))
        }
    })
}

/// Whether all results of a session can be read at once. Does not wait.
///
/// Returns `GPA_STATUS_ERROR_COUNTERS_NOT_OPEN`, `..._NULL_POINTER`, `..._SESSION_NOT_FOUND`.
///
/// # Safety
///
/// `ready` is null or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GPA_IsSessionReady(ready: *mut bool, session: u32) -> Status {
    on_selected("GPA_IsSessionReady", |opened| {
        // SAFETY: `ready` is null or a place for the answer until this function returns.
        let place = unsafe { place_of(ready) }?;
        place.put(opened.sessions.is_ready(session)?);
        Ok(())
    })
}

/// Whether the results of a sample can be read at once. Does not wait.
///
/// Returns `GPA_STATUS_ERROR_COUNTERS_NOT_OPEN`, `..._NULL_POINTER`, `..._SESSION_NOT_FOUND`,
/// `..._SAMPLE_NOT_FOUND_IN_ALL_PASSES`.
///
/// # Safety
///
/// `ready` is null or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GPA_IsSampleReady(ready: *mut bool, session: u32, sample: u32) -> Status {
    on_selected("GPA_IsSampleReady", |opened| {
        // SAFETY: `ready` is null or a place for the answer until this function returns.
        let place = unsafe { place_of(ready) }?;
        let is = opened.sessions.is_sample_ready(session, sample);
        place.put(is.map_err(|error| {
            let (of_any, of_all) = (
                Status::SAMPLE_NOT_FOUND,
                Status::SAMPLE_NOT_FOUND_IN_ALL_PASSES,
            );
            Failure::from(error).told_as(of_any, of_all)
        })?);
        Ok(())
    })
}

/// The name of a status; `"Unknown Error"` of others.
#[unsafe(no_mangle)]
pub extern "C" fn GPA_GetStatusAsStr(status: Status) -> *const c_char {
    status.text().unwrap_or(c"Unknown Error").as_ptr()
}

/// The name of a value of an enumeration; `kind` is what the enumeration is of.
///
/// # Safety
///
/// `to` is null or a place for the answer.
unsafe fn name_of(
    function: &str,
    (kind, number): (&str, i32),
    text: Option<&'static CStr>,
    to: *mut *const c_char,
) -> Status {
    api(function, || {
        // SAFETY: `to` is null or a place for the answer until this function returns.
        let place = unsafe { place_of(to) }?;
        let unknown = || Failure::new(Status::NOT_FOUND, format!("no {kind} {number}"));
        place.put(text.ok_or_else(unknown)?.as_ptr());
        Ok(())
    })
}

/// The name of a type of values.
///
/// Returns `GPA_STATUS_ERROR_NULL_POINTER`, `..._NOT_FOUND`.
///
/// # Safety
///
/// `text` is null or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GPA_GetDataTypeAsStr(of: DataType, text: *mut *const c_char) -> Status {
    // SAFETY: `text` is null or a place for the answer.
    unsafe { name_of("GPA_GetDataTypeAsStr", ("type", of.0), of.text(), text) }
}

/// The name of a unit.
///
/// Returns `GPA_STATUS_ERROR_NULL_POINTER`, `..._NOT_FOUND`.
///
/// # Safety
///
/// `text` is null or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GPA_GetUsageTypeAsStr(of: UsageType, text: *mut *const c_char) -> Status {
    // SAFETY: `text` is null or a place for the answer.
    unsafe { name_of("GPA_GetUsageTypeAsStr", ("unit", of.0), of.text(), text) }
}
