//! ROCProfiler v1 for OpenCL and the simulated GPU, by its own names: AMD's "ROCProfiler Version 1 Library Specification" on
//! the counters of gputrail.
//!
//! The library is a translation: a group of a context is a pool of gputrail while it counts kernels, and a group of counters
//! between a start and a stop. `docs/apis.md` has the table of functions.

mod agents;
mod context;
mod errors;
mod flight;
mod handles;
mod info;
mod intercept;
mod load;
mod plan;
mod pool;
mod settings;
mod types;
mod within;

use context::{CONTEXTS, Context, Theirs, Told, names};
use core::ffi::{c_char, c_void};
use errors::api;
use info::Query;
use load::prepared;
use pool::Pool;
use std::ptr::NonNull;
use std::sync::Arc;
use types::{
    AgentHandle, Answer, DispatchCallback, Failure, Feature, Group, Handle, InfoCallback, InfoData,
    InfoKind, PoolEntry, PoolProperties, PoolVisitor, Properties, QueueCallbacks, Status, TimeId,
    TraceCallback, mode,
};

const MAJOR: u32 = 7;
const MINOR: u32 = 0;

/// Runs a function of the API that needs gputrail.
fn with_gputrail(name: &str, work: impl FnOnce() -> Answer) -> Status {
    api(name, || {
        prepared()?;
        work()
    })
}

/// A place for an answer.
struct Place<T>(NonNull<T>);

impl<T> Place<T> {
    /// # Safety
    ///
    /// `place` is null, or can be written to until the answer has been.
    unsafe fn new(place: *mut T, what: &str) -> Answer<Place<T>> {
        let place = NonNull::new(place).ok_or_else(|| Failure::null(what))?;
        match place.is_aligned() {
            true => Ok(Place(place)),
            false => Err(Failure::argument(format!("{what} is not aligned"))),
        }
    }

    fn put(self, answer: T) {
        // SAFETY: the promise of `new`.
        unsafe { self.0.write(answer) };
    }
}

/// A structure of the program's.
///
/// # Safety
///
/// `from` is null, or leads to one.
unsafe fn given<T: Copy>(from: *const T) -> Option<T> {
    // SAFETY: the caller's promise.
    (!from.is_null()).then(|| unsafe { from.read() })
}

/// The sentence of the last failed call of the calling thread; empty before one has failed.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_error_string() -> *const c_char {
    errors::last()
}

/// The major version of the API that the library has.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_version_major() -> u32 {
    MAJOR
}

/// The minor version of the API that the library has.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_version_minor() -> u32 {
    MINOR
}

/// As [`rocprofiler_version_major`].
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_major_version() -> u32 {
    MAJOR
}

/// As [`rocprofiler_version_minor`].
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_minor_version() -> u32 {
    MINOR
}

/// The number of metrics or of traces, a `uint32_t`.
///
/// # Safety
///
/// `agent` is null or leads to a handle, `data` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_get_info(
    agent: *const AgentHandle,
    kind: InfoKind,
    data: *mut c_void,
) -> Status {
    with_gputrail("rocprofiler_get_info", || {
        // SAFETY: the caller's promises.
        let (place, agent) = unsafe { (Place::new(data.cast::<u32>(), "data")?, given(agent)) };
        place.put(info::count(agent, kind)?);
        Ok(())
    })
}

/// Calls `callback` for each metric or trace.
///
/// # Safety
///
/// `agent` is null or leads to a handle; `callback` does what its type says, with `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_iterate_info(
    agent: *const AgentHandle,
    kind: InfoKind,
    callback: Option<InfoCallback>,
    data: *mut c_void,
) -> Status {
    with_gputrail("rocprofiler_iterate_info", || {
        let callback = callback.ok_or_else(|| Failure::null("the callback"))?;
        // SAFETY: the caller's promises.
        unsafe { info::iterate(given(agent), kind, Query::default(), callback, data) }
    })
}

/// Calls `callback` for each metric or trace that fits the fields of `query` that are not null.
///
/// # Safety
///
/// As for [`rocprofiler_iterate_info`]; the texts of `query` are null or end with a 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_info(
    agent: *const AgentHandle,
    kind: InfoKind,
    query: InfoData,
    callback: Option<InfoCallback>,
    data: *mut c_void,
) -> Status {
    with_gputrail("rocprofiler_query_info", || {
        let callback = callback.ok_or_else(|| Failure::null("the callback"))?;
        // SAFETY: plain data; the caller's promises.
        unsafe {
            let query = Query::new(&query.of.metric);
            info::iterate(given(agent), kind, query, callback, data)
        }
    })
}

/// Opens a context.
///
/// # Safety
///
/// `features` is null or leads to as many features, until the context is closed, whose names end with a 0; `context` is null
/// or a place for a handle; `properties` is null or leads to properties.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_open(
    agent: AgentHandle,
    features: *mut Feature,
    feature_count: u32,
    context: *mut Handle,
    modes: u32,
    properties: *mut Properties,
) -> Status {
    with_gputrail("rocprofiler_open", || {
        // SAFETY: the caller's promises.
        let (place, properties) = unsafe {
            (
                Place::new(context, "the place for the context")?,
                given(properties),
            )
        };
        // SAFETY: the caller's promise.
        let names = unsafe { names(features, feature_count) }?;
        check_queue(modes, properties)?;
        let agent = agents::found(agent)?.id;
        let told = match properties {
            Some(Properties {
                callback: Some(callback),
                callback_arg,
                ..
            }) => Told::Callback(callback, Theirs(callback_arg)),
            _ => Told::Nobody,
        };
        // SAFETY: the caller's promise.
        let context = unsafe { Context::new(agent, (features, names), modes, told) }?;
        place.put(Arc::new(context).register());
        Ok(())
    })
}

/// Checks what the document says of the queue of a context that is standalone.
fn check_queue(modes: u32, properties: Option<Properties>) -> Answer {
    let is = |bit| modes & bit != 0;
    let failed = |text: &str| Err(Failure::argument(text));
    match properties {
        _ if !is(mode::STANDALONE) && is(mode::CREATEQUEUE) => {
            failed("a queue is created in the mode STANDALONE only")
        }
        _ if !is(mode::STANDALONE) => Ok(()),
        Some(given) if is(mode::CREATEQUEUE) && given.queue_depth > 0 => Ok(()),
        _ if is(mode::CREATEQUEUE) => failed("CREATEQUEUE needs the property queue_depth"),
        Some(given) if !given.queue.is_null() => Ok(()),
        _ => failed("STANDALONE needs the property queue, or CREATEQUEUE"),
    }
}

/// Closes a context.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_close(context: Handle) -> Status {
    api("rocprofiler_close", || {
        let found = Context::found(context)?;
        if let Told::Pool(..) = found.told() {
            return Err(Failure::argument(
                "the context is an entry of a pool: release it",
            ));
        }
        CONTEXTS.remove(context);
        found.close();
        Ok(())
    })
}

/// The number of groups of a context.
///
/// # Safety
///
/// `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_group_count(context: Handle, count: *mut u32) -> Status {
    api("rocprofiler_group_count", || {
        // SAFETY: the caller's promise.
        let place = unsafe { Place::new(count, "count") }?;
        place.put(Context::found(context)?.group_count());
        Ok(())
    })
}

/// A group of a context.
///
/// # Safety
///
/// `group` is null or a place for a group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_get_group(
    context: Handle,
    index: u32,
    group: *mut Group,
) -> Status {
    api("rocprofiler_get_group", || {
        // SAFETY: the caller's promise.
        let place = unsafe { Place::new(group, "group") }?;
        place.put(Context::found(context)?.group(index)?);
        Ok(())
    })
}

/// Writes the values of all groups to the features.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_get_metrics(context: Handle) -> Status {
    api("rocprofiler_get_metrics", || {
        Context::found(context)?.metrics()
    })
}

/// Calls `callback` for the data of traces: there is none.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_iterate_trace_data(
    context: Handle,
    callback: Option<TraceCallback>,
    _: *mut c_void,
) -> Status {
    api("rocprofiler_iterate_trace_data", || {
        Context::found(context)?;
        callback
            .map(drop)
            .ok_or_else(|| Failure::null("the callback"))
    })
}

/// Converts a time of the API to another clock.
///
/// # Safety
///
/// `value` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_get_time(
    time_id: TimeId,
    timestamp: u64,
    value: *mut u64,
) -> Status {
    api("rocprofiler_get_time", || {
        // SAFETY: the caller's promise.
        let place = unsafe { Place::new(value, "value_ns") }?;
        let clock = match time_id {
            TimeId::CLOCK_REALTIME => libc::CLOCK_REALTIME,
            TimeId::CLOCK_MONOTONIC => libc::CLOCK_MONOTONIC,
            TimeId(other) => {
                return Err(Failure::argument(format!("there is no clock {other}")));
            }
        };
        let offset = now(clock) - now(libc::CLOCK_BOOTTIME);
        let time = i128::from(timestamp) + offset;
        place.put(time.clamp(0, u64::MAX.into()) as u64);
        Ok(())
    })
}

/// The time of a clock, in nanoseconds.
fn now(clock: libc::clockid_t) -> i128 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a clock that there is, and a place for the time.
    unsafe { libc::clock_gettime(clock, &mut time) };
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

macro_rules! of_group {
    ($($(#[$what:meta])* $function:ident, $of_group:ident: $method:ident;)*) => {
        $(
            $(#[$what])*
            #[unsafe(no_mangle)]
            pub extern "C" fn $function(context: Handle, group_index: u32) -> Status {
                api(stringify!($function), || Context::found(context)?.$method(group_index))
            }

            #[doc = concat!("As [`", stringify!($function), "`], of a group.")]
            ///
            /// # Safety
            ///
            /// `group` is null or leads to a group.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $of_group(group: *mut Group) -> Status {
                api(stringify!($of_group), || {
                    // SAFETY: the caller's promise.
                    let group = unsafe { given(group) }.ok_or_else(|| Failure::null("group"))?;
                    Context::found(group.context)?.$method(group.index)
                })
            }
        )*
    };
}

of_group! {
    /// Counts what runs from now on.
    rocprofiler_start, rocprofiler_group_start: start;
    /// Ends counting, with the values of what has run since the start.
    rocprofiler_stop, rocprofiler_group_stop: stop;
    /// Takes the values of what has run since the start.
    rocprofiler_read, rocprofiler_group_read: read;
    /// Waits for the values.
    rocprofiler_get_data, rocprofiler_group_get_data: wait;
    /// Forgets what has been counted. Not in the document.
    rocprofiler_reset, rocprofiler_group_reset: reset;
}

/// Has callbacks called for kernels that are put into queues, and for queues that are destroyed.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_set_queue_callbacks(
    callbacks: QueueCallbacks,
    data: *mut c_void,
) -> Status {
    with_gputrail("rocprofiler_set_queue_callbacks", || {
        intercept::set(callbacks, data)
    })
}

/// The callbacks are not called any more.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_remove_queue_callbacks() -> Status {
    api("rocprofiler_remove_queue_callbacks", || {
        intercept::remove();
        Ok(())
    })
}

/// As [`rocprofiler_set_queue_callbacks`].
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_set_intercepting(
    callbacks: QueueCallbacks,
    data: *mut c_void,
) -> Status {
    with_gputrail("rocprofiler_set_intercepting", || {
        intercept::set(callbacks, data)
    })
}

/// As [`rocprofiler_remove_queue_callbacks`].
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_remove_intercepting() -> Status {
    api("rocprofiler_remove_intercepting", || {
        intercept::remove();
        Ok(())
    })
}

/// As [`rocprofiler_set_queue_callbacks`], for kernels alone.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_add_dispatch_callback(
    callback: Option<DispatchCallback>,
    data: *mut c_void,
) -> Status {
    with_gputrail("rocprofiler_add_dispatch_callback", || {
        let callbacks = QueueCallbacks {
            dispatch: Some(callback.ok_or_else(|| Failure::null("the callback"))?),
            destroy: None,
        };
        intercept::set(callbacks, data)
    })
}

/// Opens a pool of contexts.
///
/// # Safety
///
/// As for [`rocprofiler_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_pool_open(
    agent: AgentHandle,
    features: *mut Feature,
    feature_count: u32,
    pool: *mut Handle,
    modes: u32,
    properties: *mut PoolProperties,
) -> Status {
    with_gputrail("rocprofiler_pool_open", || {
        // SAFETY: the caller's promises.
        let (place, properties) = unsafe {
            (
                Place::new(pool, "the place for the pool")?,
                given(properties),
            )
        };
        let properties = properties.ok_or_else(|| Failure::null("properties"))?;
        if modes & !(mode::SINGLEGROUP) != 0 {
            return Err(Failure::argument("the mode of a pool is SINGLEGROUP, or 0"));
        }
        let agent = agents::found(agent)?.id;
        // SAFETY: the caller's promises.
        place.put(unsafe { Pool::open(agent, (features, feature_count), modes, properties) }?);
        Ok(())
    })
}

/// Closes a pool, and its contexts.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_pool_close(pool: Handle) -> Status {
    api("rocprofiler_pool_close", || Pool::found(pool)?.close())
}

/// An empty entry of a pool.
///
/// # Safety
///
/// `entry` is null or a place for an entry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_pool_fetch(pool: Handle, entry: *mut PoolEntry) -> Status {
    api("rocprofiler_pool_fetch", || {
        // SAFETY: the caller's promise.
        let place = unsafe { Place::new(entry, "entry") }?;
        place.put(Pool::found(pool)?.fetch()?);
        Ok(())
    })
}

/// Gives an entry back to its pool.
///
/// # Safety
///
/// `entry` is null or leads to an entry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_pool_release(entry: *mut PoolEntry) -> Status {
    api("rocprofiler_pool_release", || {
        // SAFETY: the caller's promise.
        let entry = unsafe { given(entry) }.ok_or_else(|| Failure::null("entry"))?;
        let context = Context::found(entry.context)?;
        Pool::release(&context)
    })
}

/// Calls `callback` for each fetched entry.
///
/// # Safety
///
/// `callback` does what its type says, with `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_pool_iterate(
    pool: Handle,
    callback: Option<PoolVisitor>,
    data: *mut c_void,
) -> Status {
    api("rocprofiler_pool_iterate", || {
        let callback = callback.ok_or_else(|| Failure::null("the callback"))?;
        // SAFETY: the caller's promise.
        unsafe { Pool::found(pool)?.iterate(callback, data) }
    })
}

/// Calls the handler for entries whose kernels have ended.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_pool_flush(pool: Handle) -> Status {
    api("rocprofiler_pool_flush", || {
        Pool::found(pool)?.flush();
        Ok(())
    })
}
