//! CUPTI for OpenCL and the simulated GPU, by its own names: the API of CUDA 10.0 on gputrail, with the records of that and later
//! versions (`layout`), and their functions.
//!
//! The library is a translation: subscribers are those of gputrail, and a buffer of gputrail is translated into records in
//! the program's memory. `docs/apis.md` says how programs use it.
//!
//! # CUDA's words
//!
//! | CUDA | here |
//! |---|---|
//! | driver API, runtime API | functions of OpenCL and of the simulated GPU's runtime, as the functions of CUDA that do the same (`cuda`); under ids of gputrail's own, all functions of OpenCL (driver) and of the simulated GPU's runtime (runtime). CUDA's own functions are not reported |
//! | `CUdevice`, device id | the device's number, from 0, in the order in which they became known (OpenCL: when a context is created for it, or a device is asked for that is not known; the simulated GPU's are alone in its process) |
//! | `CUcontext`, `CUstream` | handles of the runtime: `cl_context`, `cl_command_queue` (a queue where there are no streams); `contextId` and `streamId` are gputrail's ids |
//! | current context | in a callback, the call's; otherwise none |
//! | block, grid | workgroup, number of workgroups. A block size that the runtime chose and does not report is 1 |
//! | shared memory, local memory | local memory, private memory |
//! | time | nanoseconds of CLOCK_REALTIME, of host and devices; when that clock is set, times go on without a jump (`clock`). `gputrail demo` begins at that clock and runs faster or slower; `cuptiGetTimestamp` does not follow it |
//! | correlation id | the low 32 bits of gputrail's |
//!
//! # Functions
//!
//! Statuses are without `CUPTI_ERROR_`. Functions return `INVALID_PARAMETER` without a place for the answer, and, but for
//! `cuptiGetVersion`, `cuptiGetResultString`, `cuptiGetErrorMessage`, `cuptiGetLastError`, `cuptiActivityGetNextRecord`,
//! `cuptiActivityGetStructSize`, `cuptiIsTracingSessionRunning` and `cuptiComputeCapabilitySupported`,
//! `NOT_INITIALIZED` if gputrail's library is not found or OpenCL was in use before. `event` and `metric` have tables of their own.
//!
//! | function | here | statuses |
//! |---|---|---|
//! | `cuptiGetVersion` | 12 for the layout of CUDA 10.0, and those of CUDA 11.8, 12.9 and 13.5: 18, 28, 130500 | |
//! | `cuptiGetResultString`, `cuptiGetErrorMessage` | a text of gputrail's own | `INVALID_PARAMETER`: no status of the library's version |
//! | `cuptiGetLastError` | of the calling thread | |
//! | `cuptiGetTimestamp` | the clock of records | |
//! | `cuptiGetContextId` | | `INVALID_CONTEXT` |
//! | `cuptiGetDeviceId` | of a context with several devices the first | `INVALID_DEVICE`: an unknown context, or none outside of a callback |
//! | `cuptiGetStreamId`, `cuptiGetStreamIdEx` | `perThreadStream` is not used | `INVALID_STREAM`: unknown, the null stream, or of another context |
//! | `cuptiGetThreadIdType`, `cuptiSetThreadIdType` | `SYSTEM` unless it is set: records of other tools have these, too. It is set before anything is recorded or called back | `NOT_SUPPORTED`: another type, or something is recorded |
//! | `cuptiDeviceSupported` | `CUPTI_DEVICE_SUPPORTED` for each known device, `CUPTI_DEVICE_VIRTUAL` for the simulated GPU | `INVALID_DEVICE` |
//! | `cuptiComputeCapabilitySupported` | 0: no device has one | |
//! | `cuptiGetAutoBoostState` | | `INVALID_PARAMETER` of null; else `NOT_SUPPORTED`: no device has auto boost |
//! | `cuptiFinalize` | unsubscribes, disables all kinds, delivers what has been recorded and forgets the program's functions. Attributes stay | `INVALID_OPERATION`: within a buffer's function |
//! | `cuptiDeviceVirtualizationMode` | `..._NONE`, `..._VIRTUAL_GPU` for the simulated GPU | `INVALID_DEVICE` |
//! | `cuptiIsTracingSessionRunning` | whether there is a subscriber, or a kind is enabled | |
//! | `cuptiSubscribe`, `cuptiSubscribe_v2` | the second gives the subscriber a name | `MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED`, of CUDA 10.0 `MAX_LIMIT_REACHED`; `INVALID_PARAMETER` also without a function |
//! | `cuptiUnsubscribe` | waits for the function on other threads, but not from within it | `INVALID_PARAMETER` |
//! | `cuptiEnableCallback`, `cuptiEnableDomain`, `cuptiEnableAllDomains` | also from within callbacks | `INVALID_PARAMETER`: an unknown subscriber, domain or id |
//! | `cuptiGetCallbackState`, `cuptiGetEnabledCallbacks` | | the same |
//! | `cuptiGetCallbackName` | of the domains driver and runtime | `INVALID_PARAMETER` of other domains and of ids that the headers do not name, and the name is null |
//! | `cuptiSupportedDomains` | five, from CUDA 12 on six | |
//! | `cuptiActivityRegisterCallbacks` | the functions are called one at a time, on threads of gputrail's or on one that flushes or disables | `INVALID_OPERATION` within them |
//! | `cuptiActivityEnable`, `cuptiActivityEnableAndDump`, `cuptiActivityDisable`, `cuptiActivityGetEnabledKinds` | the table of kinds says which. What was recorded before a kind is disabled is delivered. What cannot be enabled can be disabled | `INVALID_KIND`, `NOT_COMPATIBLE`; `INVALID_OPERATION`: a kind is disabled within a buffer's function |
//! | `cuptiActivityEnableContext`, `cuptiActivityDisableContext` | supersede the setting for all contexts until `cuptiFinalize` | `INVALID_KIND`, `INVALID_CONTEXT`; of kinds whose records belong to no context, calls among them, `NOT_COMPATIBLE` if it is to be enabled and `INVALID_KIND` if disabled |
//! | `cuptiActivityFlushAll`, `cuptiActivityFlush` | wait for the queues of OpenCL, deliver all records of what has ended, and give the buffer back. Forced, they do not wait, and `MEMORY` has a record of each allocation that lives, with an end of 0; work that has not ended has its record when it ends. Context and stream are not used | `INVALID_OPERATION`: no functions are registered, or within a callback or one of these functions; `UNKNOWN` |
//! | `cuptiActivityFlushPeriod` | how often records are looked for and full buffers given back, before a kind is enabled; otherwise each 100 ms | |
//! | `cuptiActivityGetStructSize` | of the library's version (0, or its number) and of CUDA 13.5 | `INVALID_KIND`; `NOT_SUPPORTED`: another version |
//! | `cuptiActivityGetNextRecord` | what is no record ends the buffer | `MAX_LIMIT_REACHED`; `INVALID_PARAMETER`: a pointer that is none of the buffer's records |
//! | `cuptiActivityGetNumDroppedRecords` | of all contexts and streams | |
//! | `cuptiActivityGetAttribute`, `cuptiActivitySetAttribute` | `activity::attributes` | `PARAMETER_SIZE_NOT_SUFFICIENT`; `NOT_SUPPORTED`; `INVALID_PARAMETER`: also one that the library's version does not have |
//! | `cuptiActivityEnableAllocationSource` and the other switches | set attributes | `NOT_SUPPORTED`: `cuptiActivityEnableHWTrace` |
//! | `cuptiActivity..._v2`, `cuptiGetTimestamp_v2` | do what those without `_v2` do. The configuration of a kind of calls may name functions | `INVALID_PARAMETER`: also another subscriber; `NOT_SUPPORTED`: a selection of fields |
//! | `cuptiActivityPushExternalCorrelationId`, `cuptiActivityPopExternalCorrelationId` | external ids of the process: recordings have them, too | `INVALID_PARAMETER`: a kind that is none; `QUEUE_EMPTY`; `MAX_LIMIT_REACHED` with 1024 ids |
//! | `cuptiOpenACCInitialize`, `cuptiOpenMpInitialize` | have OpenACC's and OpenMP's runtimes tell what they do; the second returns 1, or 0 if nothing is taken | `INVALID_PARAMETER` |
//! | `cuptiActivityEnableLatencyTimestamps` | | |
//! | `cuptiActivityRegisterTimestampCallback` | the clock of records, and of `cuptiGetTimestamp`, may have any origin and speed; times between its readings are interpolated | `INVALID_PARAMETER` |
//! | `cuptiActivityEnableDriverApi`, `cuptiActivityEnableRuntimeApi` | a function that is enabled is recorded without its kind, one that is disabled is not recorded with it; enabling or disabling the kind forgets that | `INVALID_PARAMETER`: an unknown id |
//! | `cuptiGetGraphId`, `cuptiGetGraphExecId`, `cuptiGetGraphNodeId`, `cuptiGetCudaEventId` | of the handles in `CUpti_GraphData`, and of the simulated GPU's events, which are numbers | `INVALID_PARAMETER` |
//! | `cuptiPCSampling*`, `cuptiGetCubinCrc`, `cuptiGetSassToSourceCorrelation`, `cuptiRegisterComputeCrcCallback` | `pc_sampling` | |
//! | `cuptiProfiler*`, `cuptiRangeProfiler*`, `cuptiPmSampling*`, `cuptiSassMetrics*`, `cuptiClockControl*`, `cuptiDeviceGetChipName` | no device has these counters and clocks: `cuptiProfilerDeviceSupported` says so | `NOT_SUPPORTED`; `INVALID_PARAMETER` |
//! | `cuptiActivityConfigureUnifiedMemoryCounter` | kinds 3 to 7; the bytes that were moved always have records | `INVALID_PARAMETER`; `UM_PROFILING_NOT_SUPPORTED`: something is recorded or called back already |
//! | `cuptiActivityConfigurePCSampling` | the period of a context's device, also while it is sampled; the medium one, if it is never called | `INVALID_PARAMETER`: null, no context, a size below 8, or a period that does not exist; `INVALID_OPERATION` once the program has chosen a mode of event collection for the context, or has enabled one of its groups; `NOT_SUPPORTED`: the device cannot be sampled, or not so often, or the system does not allow it. Processors know no exponents, which are of cycles |
//!
//! Never returned: `UM_PROFILING_NOT_SUPPORTED_ON_DEVICE`, `UM_PROFILING_NOT_SUPPORTED_ON_NON_P2P_DEVICES`; `UNKNOWN` but for an error
//! within, which no test provokes. `tests/programs/abi/cupti.c` calls each function, and provokes each other status;
//! `cupti_counting.c` does for PC sampling.

#![allow(non_snake_case)]

mod activity;
mod callback;
mod callback_data;
mod clock;
mod counting;
mod cuda;
mod domain;
mod event;
mod graph;
mod layout;
#[cfg(test)]
mod layouts;
mod load;
mod metric;
mod nvtx;
mod objects;
mod pc_sampling;
mod place;
mod result;
mod sampling;
mod timestamp;
mod unavailable;

use core::ffi::c_char;
use gputrail_tool::{now, to_nanos};
use load::prepared;
use objects::{CUcontext, CUstream};
use place::Place;
use result::{Answer, CUptiResult, api};

/// Runs a function of the API that needs gputrail.
fn with_gputrail(work: impl FnOnce() -> Answer) -> CUptiResult {
    api(|| {
        prepared()?;
        work()
    })
}

/// The version of the API, that of the library's layout.
///
/// # Safety
///
/// `version` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetVersion(version: *mut u32) -> CUptiResult {
    api(|| {
        // SAFETY: `version` is null or a place for a number.
        unsafe { Place::new(version) }?.put(layout::layout().version());
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
        // SAFETY: `text` is null or a place for a pointer.
        let place = unsafe { Place::new(text) }?;
        let known = result.text().filter(|_| result.is_of(layout::layout()));
        place.put(known.ok_or(CUptiResult::INVALID_PARAMETER)?.as_ptr());
        Ok(())
    })
}

/// As [`cuptiGetResultString`], whose texts are descriptions.
///
/// # Safety
///
/// As for [`cuptiGetResultString`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetErrorMessage(
    result: CUptiResult,
    text: *mut *const c_char,
) -> CUptiResult {
    // SAFETY: `text` is null or a place for a pointer.
    unsafe { cuptiGetResultString(result, text) }
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
        // SAFETY: `timestamp` is null or a place for a number.
        let place = unsafe { Place::new(timestamp) }?;
        place.put(clock::told(to_nanos(now())?.0));
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
        // SAFETY: `device` is null or a place for a number.
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
        // SAFETY: `id` is null or a place for a number.
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
        // SAFETY: `id` is null or a place for a number.
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
    // SAFETY: `id` is null or a place for a number.
    unsafe { cuptiGetStreamId(context, stream, id) }
}
