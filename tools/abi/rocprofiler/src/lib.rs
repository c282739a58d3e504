//! ROCProfiler v1 for OpenCL and the simulated GPU, by its own names: the interface of ROCm's `rocprofiler.h` 8.0 on the counters
//! of gputrail, and the forms that AMD's "ROCProfiler Version 1 Library Specification" has of some functions (`document`).
//!
//! The library is a translation: a group of a context is a pool of gputrail while it counts kernels, and a group of counters
//! between a start and a stop. `docs/apis.md` says how programs use it.
//!
//! # Functions
//!
//! Statuses are without `HSA_STATUS_ERROR_`. All functions return `NOT_INITIALIZED` if gputrail's library is not found or OpenCL was
//! in use before, and `INVALID_ARGUMENT` without a place for the answer, without a needed callback, and for a context or pool that
//! is not open.
//!
//! | function | here | statuses |
//! |---|---|---|
//! | `rocprofiler_error_string` | the function that failed last on this thread, and what failed; empty before any failure | |
//! | `rocprofiler_version_major`, `..._minor`, `rocprofiler_major_version`, `rocprofiler_minor_version` | 8, 0 | |
//! | `rocprofiler_get_info` | the number of counters and metrics of a device, or of all; the simulated GPU has one trace, without parameters | `INVALID_AGENT`; `INVALID_ARGUMENT` of kinds that are iterated |
//! | `rocprofiler_iterate_info`, `rocprofiler_query_info` | counters are basic, metrics have an `expr`. `agent_index` numbers devices in the order in which they became known; OpenCL is asked for its devices if none is. The fields of the document's query that are not null or 0 have to be equal; ROCm's query with a kind is an iteration of that kind, and one with a trace's name finds no parameters | `INVALID_AGENT`; `INVALID_ARGUMENT` of kinds that are numbers; what the callback returns, if it is not `SUCCESS` |
//! | `rocprofiler_open` | a group has the features that are counted in one run of a kernel, each feature in the first group that has room for it. A metric that needs several runs alone has a group of its own, and its kernels are repeated. Without features, a context has the times of a kernel. No queue is created or used. Upper and lower case of names are alike. The `name` of a feature is what is read, as by ROCm's library: the `block` of a `counter` is taken for one | `INVALID_AGENT`; `INVALID_ARGUMENT` of unknown names (the sentence names the nearest one, or the counter that the device lacks), traces that the device does not have, unknown modes, `STANDALONE` without `queue` or `CREATEQUEUE`, `CREATEQUEUE` without `STANDALONE` or `queue_depth`; `ERROR` if `SINGLEGROUP` does not suffice |
//! | `rocprofiler_get_agent` | the device of a context; not in the document | |
//! | `rocprofiler_close` | also while a kernel runs, whose values are lost then, and in callbacks | `INVALID_ARGUMENT` of a context of a pool |
//! | `rocprofiler_group_count`, `rocprofiler_get_group` | | `INVALID_INDEX` |
//! | `rocprofiler_get_metrics` | counters are `INT64`, metrics `DOUBLE`; of all groups | `ERROR`: a group has no data, or a feature no value, whose data is then `UNINIT`; all others are written |
//! | `rocprofiler_iterate_trace_data` | of a context with the trace of the simulated GPU (`trace`): one instance, the latest kernel of the first group; otherwise the callback is not called | `ERROR`: no kernel has ended, or within a callback; what the callback returns, if it is not `SUCCESS` |
//! | `rocprofiler_get_time` | times of records are nanoseconds of CLOCK_BOOTTIME. The error is half the time that comparing both clocks took, and the resolution of the clock; of a coarse clock that is no bound where ticks come late, as on virtual machines (4.0 ms given, 6.5 ms seen). In ROCm's form, both places may be NULL | `INVALID_ARGUMENT` of another clock |
//! | `rocprofiler_start`, `rocprofiler_group_start` | counts from 0, with `STANDALONE` whatever runs on the device, without it the kernels, which run one after the other then | `ERROR`: it is started, something else counts, or the context has no features; `INVALID_ARGUMENT`: a metric does not follow from the sums of its counters, or needs several runs; `INVALID_INDEX` |
//! | `rocprofiler_read`, `rocprofiler_group_read` | the values since the start, for `rocprofiler_get_metrics`. Not in callbacks | `ERROR`: it is not started; `INVALID_INDEX` |
//! | `rocprofiler_stop`, `rocprofiler_group_stop` | the same, and counting ends | as above |
//! | `rocprofiler_get_data`, `rocprofiler_group_get_data` | waits for the kernel of the group; values that were read are there. Writes the values that exist to the features of the group | `ERROR`: no kernel was given to the group, and it was not read; the timeout; it would have to wait in a callback; `INVALID_INDEX` |
//! | `rocprofiler_reset`, `rocprofiler_group_reset` | forget what has been counted. The document has neither, ROCm's header the first | `ERROR`: the kernel of the group has not ended, or it is called in a callback; `INVALID_INDEX` |
//! | `rocprofiler_set_queue_callbacks`, `rocprofiler_set_intercepting` | replace earlier callbacks | `INVALID_ARGUMENT`: no callback at all; `ERROR`: another context of the tool, or the recording, counts |
//! | `rocprofiler_add_dispatch_callback` | the same, for dispatches alone | as above |
//! | `rocprofiler_remove_queue_callbacks`, `rocprofiler_remove_intercepting` | kernels that run have no values; nothing happens without callbacks. In a dispatch callback, counting ends shortly after that has returned | |
//! | `rocprofiler_stop_queue_callbacks`, `rocprofiler_start_queue_callbacks` | suspend and resume the calls of `dispatch`; callbacks begin started. Kernels run one after the other meanwhile. Not in the document | |
//! | `rocprofiler_pool_open` | 1 to 65536 entries with payloads of at most 1 GiB together. Contexts of a pool share the features, and with them the place of the values: get the data and the metrics in the handler, and not in two threads | as `rocprofiler_open`; modes other than `SINGLEGROUP` and 0 are refused, which is the same; without a handler, entries are released by `rocprofiler_pool_release` alone |
//! | `rocprofiler_pool_close` | the contexts of its entries are closed | `ERROR`: kernels of entries run, or the handler does |
//! | `rocprofiler_pool_fetch` | the payload is all 0, aligned to 16 bytes. Never waits | `OUT_OF_RESOURCES`: all entries are fetched |
//! | `rocprofiler_pool_release` | also in the handler, which otherwise releases by returning true | `ERROR`: its kernel runs, or it is not fetched |
//! | `rocprofiler_pool_iterate` | the entries that are fetched; the callback may release them | what the callback returns, if it is not `SUCCESS` |
//! | `rocprofiler_pool_flush` | calls the handler for entries whose kernels have ended and that it has kept | |
//! | `rocprofiler_add_feature`, `rocprofiler_features_set_open` | not available: nothing in the API makes a set of features | `ERROR` |
//! | `rocprofiler_queue_create_profiled`, `rocprofiler_set_hsa_callbacks` | not available: there is no HSA runtime | `ERROR` |
//! | `OnLoadTool`, `OnLoadToolProp`, `OnUnloadTool` | functions of the tool, which the library calls | |
//! | `OnLoad`, `OnUnload` | what an HSA runtime calls that `HSA_TOOLS_LIB` has load the library: `false` if no tool can work | |
//!
//! The programs of `tests/programs/abi` call each function and provoke each status, in the document's form (`rocprofiler.c`), in
//! ROCm's (`rocprofiler_published.c`), and without gputrail's library (`threads.c`). They do not provoke `NOT_INITIALIZED` of an
//! OpenCL that was in use, `OUT_OF_RESOURCES` of the memory of payloads, and `ERROR` of the timeout of `rocprofiler_get_data`.

mod agents;
mod context;
mod document;
mod errors;
mod flight;
mod info;
mod intercept;
mod load;
mod plan;
mod pool;
mod record;
mod settings;
mod time;
mod trace;
mod types;
mod unavailable;
mod within;

use context::{CONTEXTS, Context, Theirs, Told, names};
use core::ffi::{c_char, c_void};
use errors::api;
use gputrail_abi::Place;
use info::Query;
use load::prepared;
use pool::Pool;
use std::sync::Arc;
use types::{
    AgentHandle, Answer, Failure, Feature, Group, Handle, INFO_TRACE_DATA, InfoCallback, InfoKind,
    InfoQuery, PoolEntry, PoolProperties, PoolVisitor, Properties, QueueCallbacks, Status, TimeId,
    TraceCallback, TraceData, mode,
};

const MAJOR: u32 = 8;
const MINOR: u32 = 0;

/// Runs a function of the API that needs gputrail.
fn with_gputrail(name: &str, work: impl FnOnce() -> Answer) -> Status {
    api(name, || {
        prepared()?;
        work()
    })
}

/// A place for an answer, `what` it is.
///
/// # Safety
///
/// As for [`Place::new`].
unsafe fn place_of<T>(place: *mut T, what: &str) -> Answer<Place<T>> {
    // SAFETY: the promise of this function, as `new` asks for it.
    unsafe { Place::new(place) }.map_err(|why| Failure::argument(format!("{what} {why}")))
}

/// A structure of the program's.
///
/// # Safety
///
/// `from` is null, or is aligned and leads to one.
unsafe fn given<T: Copy>(from: *const T) -> Option<T> {
    // SAFETY: `from` is not null, so that it leads to a `T`.
    (!from.is_null()).then(|| unsafe { from.read() })
}

/// The sentence of the last failed call of the calling thread; empty before one has failed. It lasts until the next failure.
///
/// # Safety
///
/// `text` is null or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_error_string(text: *mut *const c_char) -> Status {
    // The sentence is asked for first: it is another one if the call fails.
    let last = errors::last();
    api("rocprofiler_error_string", || {
        // SAFETY: `text` is null or a place for a pointer.
        unsafe { place_of(text, "str") }?.put(last);
        Ok(())
    })
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
        // SAFETY: `data` is null or a place for a number, and `agent` is null or leads to a handle.
        let (place, agent) = unsafe { (place_of(data.cast::<u32>(), "data")?, given(agent)) };
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
        // SAFETY: `agent` is null or leads to a handle, and `callback` takes an information and `data`.
        unsafe { info::iterate(given(agent), kind, Query::default(), callback, data) }
    })
}

/// Calls `callback` for what `query` asks for: no device has traces, so that only metrics are found.
///
/// # Safety
///
/// As for [`rocprofiler_iterate_info`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_info(
    agent: *const AgentHandle,
    query: InfoQuery,
    callback: Option<InfoCallback>,
    data: *mut c_void,
) -> Status {
    with_gputrail("rocprofiler_query_info", || {
        let callback = callback.ok_or_else(|| Failure::null("the callback"))?;
        // SAFETY: both forms of a query have the bytes of a kind, and any number is one. `agent` is null or leads to a
        // handle, and `callback` takes an information and `data`.
        unsafe {
            info::iterate(
                given(agent),
                query.info_kind,
                Query::default(),
                callback,
                data,
            )
        }
    })
}

/// Opens a context.
///
/// # Safety
///
/// `features` is null or leads to `feature_count` features, until the context is closed, whose names are null or end with a
/// 0; `context` is null or a place for a handle; `properties` is null or leads to properties, whose handler does what its
/// type says, with its argument, until then.
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
        // SAFETY: `context` is null or a place for a handle, and `properties` is null or leads to properties.
        let (place, properties) = unsafe {
            (
                place_of(context, "the place for the context")?,
                given(properties),
            )
        };
        // SAFETY: `features` is null or leads to `feature_count` features, whose names are null or end with a 0.
        let names = unsafe { names(features, feature_count) }?;
        check_queue(modes, properties)?;
        let agent = agents::found(agent)?.id;
        let told = match properties {
            Some(Properties {
                handler: Some(handler),
                handler_arg,
                ..
            }) => Told::Handler(handler, Theirs(handler_arg)),
            _ => Told::Nobody,
        };
        // SAFETY: `features` leads to as many features as `names` has, and the program keeps them until the context is
        // closed.
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
        CONTEXTS.remove(context.addr());
        found.close();
        Ok(())
    })
}

/// Functions that do something: name, arguments, what is done.
macro_rules! changes {
    ($($(#[$what:meta])* $name:ident($($argument:ident: $type:ty),*) $work:expr;)*) => {$(
        $(#[$what])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($argument: $type),*) -> Status {
            api(stringify!($name), || $work)
        }
    )*};
}

changes! {
    /// Writes the values of all groups to the features.
    rocprofiler_get_metrics(context: Handle) Context::found(context)?.metrics();
    /// Forgets what has been counted.
    rocprofiler_reset(context: Handle, group_index: u32) Context::found(context)?.reset(group_index);
    /// The callbacks are not called any more.
    rocprofiler_remove_queue_callbacks() { intercept::remove(); Ok(()) };
    /// The callback on dispatches is called again.
    rocprofiler_start_queue_callbacks() { intercept::pause(false); Ok(()) };
    /// The callback on dispatches is not called until it is started again, or callbacks are set.
    rocprofiler_stop_queue_callbacks() { intercept::pause(true); Ok(()) };
    /// Closes a pool, and its contexts.
    rocprofiler_pool_close(pool: Handle) Pool::found(pool)?.close();
    /// Calls the handler for entries whose kernels have ended.
    rocprofiler_pool_flush(pool: Handle) { Pool::found(pool)?.flush(); Ok(()) };
}

/// Functions with an answer: name, arguments, the place for the answer, the answer.
macro_rules! answers {
    ($($(#[$what:meta])* $name:ident($($argument:ident: $type:ty,)* => $place:ident: $answer:ty) $work:expr;)*) => {$(
        $(#[$what])*
        ///
        /// # Safety
        ///
        #[doc = concat!("`", stringify!($place), "` is null or a place for the answer.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type,)* $place: *mut $answer) -> Status {
            api(stringify!($name), || {
                // SAFETY: null or a place for the answer, as the caller says.
                let place = unsafe { place_of($place, stringify!($place)) }?;
                place.put($work);
                Ok(())
            })
        }
    )*};
}

answers! {
    /// The device of a context.
    rocprofiler_get_agent(context: Handle, => agent: AgentHandle) Context::found(context)?.agent()?;
    /// The number of groups of a context.
    rocprofiler_group_count(context: Handle, => count: u32) Context::found(context)?.group_count();
    /// A group of a context.
    rocprofiler_get_group(context: Handle, index: u32, => group: Group) Context::found(context)?.group(index)?;
    /// An empty entry of a pool.
    rocprofiler_pool_fetch(pool: Handle, => entry: PoolEntry) Pool::found(pool)?.fetch()?;
}

/// Calls `callback` for the trace of the latest kernel of the context's first group, if the context has one.
///
/// # Safety
///
/// `callback` does what its type says, with `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_iterate_trace_data(
    context: Handle,
    callback: Option<TraceCallback>,
    data: *mut c_void,
) -> Status {
    api("rocprofiler_iterate_trace_data", || {
        let context = Context::found(context)?;
        let callback = callback.ok_or_else(|| Failure::null("the callback"))?;
        context.trace(|bytes| {
            let mut info = TraceData {
                sample_id: 0,
                ptr: bytes.ptr,
                size: bytes.size,
                reserved: 0,
            };
            let info = (&raw mut info).cast();
            // SAFETY: `callback` takes an information of this type, and `data`.
            let call = || unsafe { callback(INFO_TRACE_DATA, info, data) };
            let name = "rocprofiler_iterate_trace_data";
            match errors::callee(name, callback as *const ()).call(call) {
                Status::SUCCESS => Ok(()),
                status => Err(Failure::new(status, "the callback ended the iteration")),
            }
        })
    })
}

/// Converts a time of the API to another clock, and says how exact that is.
///
/// # Safety
///
/// `value` and `error` are null or places for numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_get_time(
    time_id: TimeId,
    timestamp: u64,
    value: *mut u64,
    error: *mut u64,
) -> Status {
    api("rocprofiler_get_time", || {
        let converted = time::convert(time_id, timestamp)?;
        for (place, answer) in [(value, converted.value), (error, converted.error)] {
            if !place.is_null() {
                // SAFETY: `value` and `error`, one of which `place` is, are null or places for numbers.
                unsafe { place_of(place, "the place for a time") }?.put(answer);
            }
        }
        Ok(())
    })
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
                    // SAFETY: `group` is null or leads to a group.
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
    /// Waits for the values, and writes them to the features of the group.
    rocprofiler_get_data, rocprofiler_group_get_data: data;
}

/// Has callbacks called for kernels that are put into queues, and for queues that are created or destroyed.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_set_queue_callbacks(
    callbacks: QueueCallbacks,
    data: *mut c_void,
) -> Status {
    with_gputrail("rocprofiler_set_queue_callbacks", || {
        intercept::set(callbacks, data)
    })
}

/// Opens a pool of contexts.
///
/// # Safety
///
/// As for [`rocprofiler_open`], with `pool` for the context.
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
        // SAFETY: `pool` is null or a place for a handle, and `properties` is null or leads to properties.
        let (place, properties) =
            unsafe { (place_of(pool, "the place for the pool")?, given(properties)) };
        let properties = properties.ok_or_else(|| Failure::null("properties"))?;
        if modes & !(mode::SINGLEGROUP) != 0 {
            return Err(Failure::argument("the mode of a pool is SINGLEGROUP, or 0"));
        }
        let agent = agents::found(agent)?.id;
        // SAFETY: `features` is null or leads to `feature_count` features, whose names are null or end with a 0, and the
        // program keeps them until the pool is closed.
        place.put(unsafe { Pool::open(agent, (features, feature_count), modes, properties) }?);
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
        // SAFETY: `entry` is null or leads to an entry.
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
        // SAFETY: `callback` takes an entry and `data`.
        unsafe { Pool::found(pool)?.iterate(callback, data) }
    })
}
