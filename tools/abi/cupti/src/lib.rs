//! CUPTI for OpenCL and the simulated GPU, by its own names: the API of CUDA 10.0 on gputrail.
//!
//! The library is a translation: subscribers are those of gputrail, and a buffer of gputrail is translated into records in
//! the program's memory. `docs/apis.md` says what each function does here.
//!
//! # Statuses
//!
//! Without `CUPTI_ERROR_`. Functions return `INVALID_PARAMETER` for a null place, `INVALID_DEVICE`, `INVALID_CONTEXT`,
//! `INVALID_STREAM` or `INVALID_KIND` for what is unknown, and `NOT_INITIALIZED` if gputrail's library is not found or OpenCL was in
//! use before; `cuptiGetVersion`, `cuptiGetResultString`, `cuptiGetLastError`, `cuptiActivityGetNextRecord` and
//! `cuptiComputeCapabilitySupported` need no library. `event` and `metric` have the statuses of their functions.
//!
//! | function | statuses |
//! |---|---|
//! | `cuptiGetResultString` | `INVALID_PARAMETER`: no status |
//! | `cuptiGetDeviceId` | `INVALID_DEVICE`: an unknown context, or none outside of a callback |
//! | `cuptiGetStreamId`, `cuptiGetStreamIdEx` | `INVALID_STREAM`: unknown, the null stream, or of another context |
//! | `cuptiSetThreadIdType` | `NOT_SUPPORTED`: another type, or something is recorded |
//! | `cuptiGetAutoBoostState` | `NOT_SUPPORTED` |
//! | `cuptiSubscribe` | `MAX_LIMIT_REACHED`: there is a subscriber; `INVALID_PARAMETER`: no function |
//! | `cuptiUnsubscribe` | `INVALID_PARAMETER` |
//! | `cuptiEnableCallback`, `cuptiEnableDomain`, `cuptiEnableAllDomains`, `cuptiGetCallbackState` | `INVALID_PARAMETER`: an unknown subscriber, domain or id |
//! | `cuptiGetCallbackName` | `INVALID_PARAMETER`: a domain other than driver and runtime, an unknown id; the name is null |
//! | `cuptiActivityRegisterCallbacks` | `INVALID_OPERATION`: within the functions that were registered |
//! | `cuptiActivityEnable`, `cuptiActivityDisable` | `INVALID_KIND`, `NOT_COMPATIBLE` |
//! | `cuptiActivityEnableContext`, `cuptiActivityDisableContext` | kinds whose records have no context, calls among them: `NOT_COMPATIBLE` to enable, `INVALID_KIND` to disable |
//! | `cuptiActivityFlushAll`, `cuptiActivityFlush` | `INVALID_OPERATION`: no functions are registered, or within a callback or one of these functions; `UNKNOWN` |
//! | `cuptiActivityGetNextRecord` | `MAX_LIMIT_REACHED`; `INVALID_PARAMETER`: a pointer that is none of the buffer's records |
//! | `cuptiActivityGetAttribute`, `cuptiActivitySetAttribute` | `PARAMETER_SIZE_NOT_SUFFICIENT`, `INVALID_PARAMETER` |
//! | `cuptiActivityPushExternalCorrelationId`, `cuptiActivityPopExternalCorrelationId` | `INVALID_PARAMETER`: an unknown kind; `QUEUE_EMPTY`; `MAX_LIMIT_REACHED`: 1024 ids |
//! | `cuptiActivityConfigureUnifiedMemoryCounter` | `INVALID_PARAMETER`; `UM_PROFILING_NOT_SUPPORTED`: something is recorded or called back already |
//! | `cuptiActivityConfigurePCSampling` | `INVALID_PARAMETER`: null, no context, a size below 8, an unknown period; `INVALID_OPERATION`: a mode of event collection is set for the context, or one of its groups enabled; `NOT_SUPPORTED`: the device cannot be sampled, or not so often, or the system does not allow it |
//!
//! Never returned: `UM_PROFILING_NOT_SUPPORTED_ON_DEVICE`, `UM_PROFILING_NOT_SUPPORTED_ON_NON_P2P_DEVICES`; `UNKNOWN` but for an error
//! within, which no test provokes. `tests/programs/abi/cupti.c` calls each function, and provokes each other status;
//! `cupti_counting.c` does for PC sampling.

#![allow(non_snake_case)]

mod activity;
mod callback;
mod callback_data;
mod counting;
mod domain;
mod event;
#[cfg(test)]
mod layouts;
mod load;
mod metric;
mod nvtx;
mod objects;
mod place;
mod result;
mod sampling;
mod text;

use core::ffi::c_char;
use gputrail_tool::{now, to_nanos};
use load::prepared;
use objects::{CUcontext, CUstream};
use place::Place;
use result::{Answer, CUptiResult, api};

/// The version of the API: that of CUDA 10.0.
const API_VERSION: u32 = 12;

/// Runs a function of the API that needs gputrail.
fn with_gputrail(work: impl FnOnce() -> Answer) -> CUptiResult {
    api(|| {
        prepared()?;
        work()
    })
}

/// The version of the API.
///
/// # Safety
///
/// `version` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetVersion(version: *mut u32) -> CUptiResult {
    api(|| {
        // SAFETY: the caller's promise.
        unsafe { Place::new(version) }?.put(API_VERSION);
        Ok(())
    })
}

/// The text of a status, which lasts for ever.
///
/// # Safety
///
/// `text` is null or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetResultString(
    result: CUptiResult,
    text: *mut *const c_char,
) -> CUptiResult {
    api(|| {
        // SAFETY: the caller's promise.
        let place = unsafe { Place::new(text) }?;
        let known = result.text().filter(|_| result != CUptiResult::FORCE_INT);
        place.put(known.ok_or(CUptiResult::INVALID_PARAMETER)?.as_ptr());
        Ok(())
    })
}

/// The last error of the calling thread, which is forgotten.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiGetLastError() -> CUptiResult {
    result::take_last()
}

/// The time now, in nanoseconds of the clock of records.
///
/// # Safety
///
/// `timestamp` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetTimestamp(timestamp: *mut u64) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: the caller's promise.
        let place = unsafe { Place::new(timestamp) }?;
        place.put(to_nanos(now())?.0);
        Ok(())
    })
}

/// The number of the device of a context, or of the context that is current in a callback.
///
/// # Safety
///
/// `device` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetDeviceId(context: CUcontext, device: *mut u32) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: the caller's promise.
        let place = unsafe { Place::new(device) }?;
        let id = if context.is_null() {
            objects::current()
        } else {
            objects::context(context)
                .map_err(|_| CUptiResult::INVALID_DEVICE)?
                .id
        };
        let context = gputrail_tool::describe::<gputrail_record::Context>(id);
        let context = context.map_err(|_| CUptiResult::INVALID_DEVICE)?;
        place.put(objects::device_of(context.agent)?);
        Ok(())
    })
}

/// The id of a context in records.
///
/// # Safety
///
/// `id` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetContextId(context: CUcontext, id: *mut u32) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: the caller's promise.
        let place = unsafe { Place::new(id) }?;
        place.put(objects::context(context)?.id.0);
        Ok(())
    })
}

/// The id of a stream in records.
///
/// # Safety
///
/// `id` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetStreamId(
    context: CUcontext,
    stream: CUstream,
    id: *mut u32,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: the caller's promise.
        let place = unsafe { Place::new(id) }?;
        let (found, of) = objects::stream(stream)?;
        let belongs = context.is_null() || objects::context(context).is_ok_and(|one| one.id == of);
        if !belongs {
            return Err(CUptiResult::INVALID_STREAM);
        }
        place.put(found);
        Ok(())
    })
}

/// As [`cuptiGetStreamId`]: no runtime here has a stream for each thread.
///
/// # Safety
///
/// As for [`cuptiGetStreamId`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetStreamIdEx(
    context: CUcontext,
    stream: CUstream,
    _: u8,
    id: *mut u32,
) -> CUptiResult {
    // SAFETY: the caller's promise.
    unsafe { cuptiGetStreamId(context, stream, id) }
}
