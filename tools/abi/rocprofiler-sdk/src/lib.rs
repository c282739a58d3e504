//! rocprofiler-sdk for OpenCL and the simulated GPU, by its own names: the API of version 1.3 on gputrail.
//!
//! The library is a translation: a context of a client is one of gputrail's, whose records and callbacks become those of the API.
//! `docs/apis.md` says how programs use it.
//!
//! # AMD's words
//!
//! | rocprofiler-sdk | here |
//! |---|---|
//! | HSA, HIP | OpenCL, and the simulated GPU's runtime. `kinds` says what comes of each kind, `hip` which function a call appears as |
//! | agent | `agents`: the host, and each device, of type GPU |
//! | stream | a queue, of the simulated GPU a stream |
//! | queue id, kernel id, code object id, dispatch id | gputrail's ids |
//! | correlation id | gputrail's id of the call. Calls of callbacks, and all that is done on threads of gputrail, are not told |
//! | time | nanoseconds of CLOCK_BOOTTIME, of host and devices |
//! | thread id | that of gettid |
//!
//! # Functions
//!
//! Statuses are without `ROCPROFILER_STATUS_ERROR_`. Functions return `INVALID_ARGUMENT` without a place for an answer that they need,
//! or without a function to call; AMD's library dereferences null. *Locked* is `CONFIGURATION_LOCKED` except while clients are
//! initialized. `sampling` and `counting` have tables of their own.
//!
//! | function | here | statuses |
//! |---|---|---|
//! | `get_version`, `get_version_triplet`, `get_timestamp`, `get_thread_id` | 1.3.0 | |
//! | `get_status_name`, `get_status_string` | a sentence of gputrail's own; null for no status | |
//! | `force_configure` | from then on, without waiting for the first call | `CONFIGURATION_LOCKED`: clients are or were initialized; `NOT_AVAILABLE`: gputrail's library is not found, or OpenCL was in use before |
//! | `is_initialized`, `is_finalized` | 0, -1, 1; in a forked child, finalized | |
//! | `create_context` | | `CONTEXT_ID_NOT_ZERO`; locked; `CONTEXT_ERROR`: gputrail has no place for more |
//! | `start_context` | nothing if it is started | `CONTEXT_NOT_FOUND`; `CONFIGURATION_LOCKED`: clients are being or were finalized; `OUT_OF_RESOURCES`: gputrail has 32 buffers and 23 callbacks, and a context needs one of each that it uses; `CONTEXT_CONFLICT`, and what services of agents say |
//! | `stop_context` | | `CONTEXT_NOT_FOUND`, also if it is not started |
//! | `context_is_active`, `context_is_valid` | | `CONTEXT_NOT_FOUND` |
//! | `create_buffer` | `buffer` says how it fills | locked; `SERVICE_ALREADY_CONFIGURED`: the place holds a buffer; `OUT_OF_RESOURCES` |
//! | `flush_buffer` | also takes what gputrail has; returns when the client has had it. Does not wait for work | `BUFFER_NOT_FOUND`; `BUFFER_BUSY`: in a callback on the same thread; `FINALIZED` |
//! | `destroy_buffer` | what it has is not delivered | `BUFFER_NOT_FOUND`, `BUFFER_BUSY` |
//! | `create_callback_thread`, `assign_callback_thread` | also before clients are initialized | `CONFIGURATION_LOCKED` afterwards; `THREAD_NOT_FOUND`, `BUFFER_NOT_FOUND`, `OUT_OF_RESOURCES` |
//! | `at_internal_thread_create` | threads of this library and of gputrail's | |
//! | `at_intercept_table_registration` | never called | `CONFIGURATION_LOCKED` once clients are initialized |
//! | `query_intercept_table_name` | | `KIND_NOT_FOUND` |
//! | `configure_buffer_tracing_service`, `configure_callback_tracing_service` | a buffer of another context gets nothing | locked; `CONTEXT_NOT_FOUND`, `BUFFER_NOT_FOUND`, `KIND_NOT_FOUND`, `OPERATION_NOT_FOUND`, `SERVICE_ALREADY_CONFIGURED` |
//! | `query_*_tracing_kind_name`, `query_external_correlation_id_request_kind_name` | | `KIND_NOT_FOUND`, and null |
//! | `query_*_tracing_kind_operation_name`, `iterate_*_tracing_kind_operations` | | `INVALID_ARGUMENT` of `NONE`; `NOT_IMPLEMENTED` of `CORRELATION_ID_RETIREMENT`; `KIND_NOT_FOUND`, `OPERATION_NOT_FOUND` |
//! | `iterate_*_tracing_kinds` | AMD's kinds | |
//! | `iterate_callback_tracing_kind_operation_args` | of HIP and of markers; no pointer is followed but that of a message | `INVALID_ARGUMENT` of `NONE` or without a payload; `NOT_IMPLEMENTED` of other kinds |
//! | `iterate_buffer_tracing_record_args` | of `HIP_RUNTIME_API_EXT` | the same |
//! | `push_external_correlation_id`, `pop_external_correlation_id` | `external` says when another thread's ids hold | `CONTEXT_NOT_FOUND`; `INVALID_ARGUMENT`: a number below the process's; `OUT_OF_RESOURCES` with 1024 ids |
//! | `configure_external_correlation_id_request_service` | asked for calls and work that the context tells of, on their thread | locked; `CONTEXT_NOT_FOUND`, `KIND_NOT_FOUND`, `SERVICE_ALREADY_CONFIGURED` |
//! | `query_available_agents` | the callback's answer is returned | `INVALID_ARGUMENT`: another version; `INCOMPATIBLE_ABI`: a larger structure |
//! | thread traces, counters over time | | `NOT_IMPLEMENTED` |
//! | `iterate_runtime_registration_info` | | `INCOMPATIBLE_REGISTER_VERSION` |
//!
//! `tests/programs/abi/rocprofiler_sdk.c` calls each function, and provokes each status but `OUT_OF_RESOURCES`, `CONTEXT_ERROR`,
//! `CONTEXT_CONFLICT` and, of `force_configure`, `NOT_AVAILABLE`. `ERROR` stands for an error within, which no test provokes.

mod agents;
mod buffer;
mod callbacks;
mod clients;
mod context;
mod counting;
mod external;
#[cfg(test)]
mod headers_tests;
mod hip;
mod intercept;
mod kinds;
mod live;
mod load;
mod markers;
mod objects;
mod payload;
mod place;
mod result;
mod runtime;
mod sampling;
mod threads;
mod tracing;
mod translate;
mod unavailable;

use core::ffi::c_char;
use gputrail_abi::kept;
use gputrail_rocprofiler::{Status, ThreadId, Timestamp, VersionTriplet};
use place::place_of;
use result::api;

/// The version of the API.
const VERSION: VersionTriplet = VersionTriplet {
    major: 1,
    minor: 3,
    patch: 0,
};

/// The version of the API. Each place may be null.
///
/// # Safety
///
/// The places are null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_get_version(
    major: *mut u32,
    minor: *mut u32,
    patch: *mut u32,
) -> Status {
    api(|| {
        for (place, number) in [
            (major, VERSION.major),
            (minor, VERSION.minor),
            (patch, VERSION.patch),
        ] {
            if !place.is_null() {
                // SAFETY: not null, so that it can be written to.
                unsafe { place_of(place) }?.put(number);
            }
        }
        Ok(())
    })
}

/// The version of the API.
///
/// # Safety
///
/// `version` is null or a place for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_get_version_triplet(version: *mut VersionTriplet) -> Status {
    api(|| {
        // SAFETY: `version` is null or a place for it.
        unsafe { place_of(version) }?.put(VERSION);
        Ok(())
    })
}

/// The time now, in nanoseconds of CLOCK_BOOTTIME, as records have it.
///
/// # Safety
///
/// `timestamp` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_get_timestamp(timestamp: *mut Timestamp) -> Status {
    api(|| {
        // SAFETY: `timestamp` is null or a place for a number.
        unsafe { place_of(timestamp) }?.put(now());
        Ok(())
    })
}

/// Nanoseconds of CLOCK_BOOTTIME.
fn now() -> Timestamp {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a clock that there is, and a place for the time.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The number of the calling thread in the system, as records have it.
///
/// # Safety
///
/// `thread` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_get_thread_id(thread: *mut ThreadId) -> Status {
    api(|| {
        // SAFETY: `thread` is null or a place for a number.
        unsafe { place_of(thread) }?.put(thread_id());
        Ok(())
    })
}

/// The number of the calling thread in the system.
fn thread_id() -> ThreadId {
    // SAFETY: asks for a number.
    unsafe { libc::gettid() as ThreadId }
}

/// Whether the process has a thread with this number.
fn is_thread(number: ThreadId) -> bool {
    let Ok(thread) = libc::pid_t::try_from(number) else {
        return false;
    };
    // SAFETY: signal 0 is not sent: the system answers whether it could be.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, 0) == 0 }
}

/// The name of a status, which lasts for ever; null if it is none.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_get_status_name(status: Status) -> *const c_char {
    let name = gputrail_abi::contained(|| {
        let name = status.name()?.to_str().ok()?;
        Some(kept(&format!("ROCPROFILER_STATUS_{name}")))
    });
    name.flatten()
        .map_or(std::ptr::null(), |name| name.as_ptr())
}

/// A sentence about a status, which lasts for ever; null if it is none.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_get_status_string(status: Status) -> *const c_char {
    result::sentence(status).map_or(std::ptr::null(), |text| text.as_ptr())
}
