//! rocprofiler-sdk for OpenCL and the simulated GPU, by its own names: the API of version 1.3 on gputrail.
//!
//! The library is a translation: a context of a client is one of gputrail, whose records and callbacks become those of the API.
//! `docs/apis.md` says how programs use it.

mod agents;
mod buffer;
mod callbacks;
mod clients;
mod context;
mod counting;
mod devices;
mod external;
mod hip;
mod intercept;
mod kinds;
mod known;
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
use place::Place;
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
                unsafe { Place::new(place) }?.put(number);
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
        unsafe { Place::new(version) }?.put(VERSION);
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
        unsafe { Place::new(timestamp) }?.put(now());
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
        unsafe { Place::new(thread) }?.put(thread_id());
        Ok(())
    })
}

/// The number of the calling thread in the system.
fn thread_id() -> ThreadId {
    // SAFETY: asks for a number.
    unsafe { libc::gettid() as ThreadId }
}

/// The name of a status, which lasts for ever; null if it is none.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_get_status_name(status: Status) -> *const c_char {
    let name = gputrail_abi::contained(|| {
        let name = status.name()?.to_str().ok()?;
        Some(kept(&format!("ROCPROFILER_STATUS_{name}")))
    });
    name.flatten().map_or(std::ptr::null(), |name| name.as_ptr())
}

/// A sentence about a status, which lasts for ever; null if it is none.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_get_status_string(status: Status) -> *const c_char {
    result::sentence(status).map_or(std::ptr::null(), |text| text.as_ptr())
}
