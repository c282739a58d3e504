//! The Activity API: records of what the runtime and its devices do, in buffers of the program.
//!
//! A buffer of gputrail is translated on the thread that delivers it ([`translate`]), into the program's buffers ([`sink`]).

mod announce;
mod attributes;
mod created;
mod directives;
mod environment;
mod extension;
mod fields;
mod kind;
mod links;
mod markers;
mod memory;
mod openacc;
mod openmp;
mod order;
pub mod record;
mod selected;
mod service;
mod sink;
mod subscriber;
mod translate;
mod unified;
pub mod wanted;

pub use kind::ActivityKind;
#[cfg(test)]
pub use record::{Field, fields, size_in_version};
pub use service::last_words;
pub use sink::put;
pub use translate::correlation;

use crate::callback::{self, SubscriberHandle};
use crate::layout;
use crate::load::prepared;
use crate::objects::{self, CUcontext, CUdevice};
use crate::place::{Place, write_list};
use crate::result::{Answer, CUptiResult, api};
use crate::with_gputrail;
use core::ffi::c_int;
use gputrail_record::{AgentKind, ExternalId, ExternalKind};
use gputrail_tool::{self as tool, Attributes, external};
use sink::Functions;
pub use sink::{Complete, Request};
use std::ptr::NonNull;

/// Has the program asked for buffers, and given them back.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityRegisterCallbacks(
    request: Option<Request>,
    complete: Option<Complete>,
) -> CUptiResult {
    with_gputrail(|| {
        let (Some(request), Some(complete)) = (request, complete) else {
            return Err(CUptiResult::INVALID_PARAMETER);
        };
        sink::register(Functions::Plain(request, complete))
    })
}

/// Enables a kind of records.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnable(kind: ActivityKind) -> CUptiResult {
    with_gputrail(|| service::enable(kind.checked()?, None, true))
}

/// As [`cuptiActivityEnable`]: records of objects come of those that are there already, too.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableAndDump(kind: ActivityKind) -> CUptiResult {
    cuptiActivityEnable(kind)
}

/// Disables a kind of records.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityDisable(kind: ActivityKind) -> CUptiResult {
    with_gputrail(|| service::enable(kind.checked()?, None, false))
}

/// Enables a kind of records of one context.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableContext(
    context: CUcontext,
    kind: ActivityKind,
) -> CUptiResult {
    with_gputrail(|| {
        let kind = kind.checked()?;
        service::enable(kind, Some(objects::context(context)?.id), true)
    })
}

/// Disables a kind of records of one context.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityDisableContext(
    context: CUcontext,
    kind: ActivityKind,
) -> CUptiResult {
    with_gputrail(|| {
        let kind = kind.checked()?;
        service::enable(kind, Some(objects::context(context)?.id), false)
    })
}

/// Delivers all records.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityFlushAll(flag: u32) -> CUptiResult {
    with_gputrail(|| {
        if !sink::is_registered() || sink::is_within() {
            return Err(CUptiResult::INVALID_OPERATION);
        }
        // CUPTI_ACTIVITY_FLAG_FLUSH_FORCED
        service::flush(flag & 1 != 0)
    })
}

/// Says how often records are looked for, in milliseconds; 0 is 100.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityFlushPeriod(milliseconds: u32) -> CUptiResult {
    with_gputrail(|| {
        service::set_period(milliseconds);
        Ok(())
    })
}

/// As [`cuptiActivityFlushAll`]: context and stream are not used.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityFlush(_: CUcontext, _: u32, flag: u32) -> CUptiResult {
    cuptiActivityFlushAll(flag)
}

/// The record behind `*record`, or the first one.
///
/// # Safety
///
/// `buffer` is null or leads to `size` bytes of records; `record` is null or a place for a pointer, null or to one of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNextRecord(
    buffer: *mut u8,
    size: usize,
    record: *mut *mut u32,
) -> CUptiResult {
    api(|| {
        // SAFETY: `record` is null or a place for a pointer, which holds one.
        let place = unsafe { Place::new(record) }?;
        let buffer = NonNull::new(buffer).ok_or(CUptiResult::INVALID_PARAMETER)?;
        let previous = place.get();
        let layout = layout::layout();
        let bytes_of = |at: usize| {
            let whole = at.is_multiple_of(sink::ALIGNMENT) && size.saturating_sub(at) >= 8;
            // SAFETY: within the buffer, where a record begins with its kind.
            let kind = whole.then(|| unsafe { buffer.add(at).cast::<u32>().read_unaligned() })?;
            let bytes = record::size_of_kind(ActivityKind(kind), layout);
            bytes.filter(|bytes| size - at >= *bytes)
        };
        let next = if previous.is_null() {
            0
        } else {
            let at = previous.addr().wrapping_sub(buffer.addr().get());
            at + bytes_of(at).ok_or(CUptiResult::INVALID_PARAMETER)?
        };
        if bytes_of(next).is_none() {
            return Err(CUptiResult::MAX_LIMIT_REACHED);
        }
        // SAFETY: within the buffer.
        place.put(unsafe { buffer.add(next) }.as_ptr().cast());
        Ok(())
    })
}

/// The bytes of the structure of a kind, in the library's version or in another one from CUDA 13.0 on: `version` is that version's
/// `CUPTI_API_VERSION`, or 0.
///
/// # Safety
///
/// `bytes` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetStructSize(
    kind: ActivityKind,
    version: u32,
    bytes: *mut usize,
) -> CUptiResult {
    api(|| {
        // SAFETY: `bytes` is null or a place for a number.
        let place = unsafe { Place::new(bytes) }?;
        place.put(record::size_in_version(kind, version)?);
        Ok(())
    })
}

/// The kinds that are enabled everywhere.
///
/// # Safety
///
/// `room` is null or leads to the number of elements of `kinds`, which is null or has as many; `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetEnabledKinds(
    subscriber: SubscriberHandle,
    kinds: *mut ActivityKind,
    room: *mut u32,
    count: *mut u32,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `count` is null or a place for a number.
        let count = unsafe { Place::new(count) }?;
        if !subscriber.is_null() {
            callback::check(subscriber)?;
        }
        let enabled = wanted::enabled().unwrap_or_default();
        let all = (1..kind::COUNT).map(ActivityKind);
        let on: Vec<ActivityKind> = all.filter(|kind| enabled.has(*kind)).collect();
        // SAFETY: `room` is null or leads to the number of elements at `kinds`, which may be null.
        unsafe { write_list(&on, kinds, room) }?;
        count.put(on.len() as u32);
        Ok(())
    })
}

/// Whether anything is subscribed or enabled.
///
/// # Safety
///
/// `is_running` is null or a place for a byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiIsTracingSessionRunning(is_running: *mut u8) -> CUptiResult {
    api(|| {
        // SAFETY: `is_running` is null or a place for a byte.
        let place = unsafe { Place::new(is_running) }?;
        place.put(u8::from(
            callback::is_subscribed() || wanted::anywhere() != 0,
        ));
        Ok(())
    })
}

/// The records that were dropped since the last call. Context and stream are not used.
///
/// # Safety
///
/// `dropped` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNumDroppedRecords(
    _: CUcontext,
    _: u32,
    dropped: *mut usize,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `dropped` is null or a place for a number.
        let place = unsafe { Place::new(dropped) }?;
        let before = service::existing().map_or(0, |service| service.take_dropped());
        place.put((before + sink::take_dropped()) as usize);
        Ok(())
    })
}

/// The kinds of external ids (`CUpti_ExternalCorrelationKind`).
fn external_kind(kind: u32) -> Answer<ExternalKind> {
    match kind {
        1..=5 => Ok(ExternalKind(kind)),
        _ => Err(CUptiResult::INVALID_PARAMETER),
    }
}

/// Pushes an external id for the calling thread.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityPushExternalCorrelationId(kind: u32, id: u64) -> CUptiResult {
    with_gputrail(|| {
        external::push(external_kind(kind)?, ExternalId(id)).map_err(|error| match error.status {
            tool::Status::STACK_FULL => CUptiResult::MAX_LIMIT_REACHED,
            _ => error.into(),
        })
    })
}

/// Pops an external id of the calling thread.
///
/// # Safety
///
/// `last` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityPopExternalCorrelationId(
    kind: u32,
    last: *mut u64,
) -> CUptiResult {
    with_gputrail(|| {
        let popped = external::pop(external_kind(kind)?).map_err(|error| match error.status {
            tool::Status::STACK_EMPTY => CUptiResult::QUEUE_EMPTY,
            _ => error.into(),
        })?;
        if !last.is_null() {
            // SAFETY: `last` is not null, so that it is a place for a number.
            unsafe { Place::new(last) }?.put(popped.0);
        }
        Ok(())
    })
}

/// `CUpti_ActivityAutoBoostState`
#[repr(C)]
pub struct AutoBoostState {
    enabled: u32,
    process: u32,
}

/// No device here has auto boost.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiGetAutoBoostState(
    context: CUcontext,
    state: *mut AutoBoostState,
) -> CUptiResult {
    with_gputrail(|| {
        if context.is_null() || state.is_null() {
            Err(CUptiResult::INVALID_PARAMETER)
        } else {
            Err(CUptiResult::NOT_SUPPORTED)
        }
    })
}

/// No device here has a compute capability: 0.
///
/// # Safety
///
/// `support` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiComputeCapabilitySupported(
    _: c_int,
    _: c_int,
    support: *mut c_int,
) -> CUptiResult {
    api(|| {
        // SAFETY: `support` is null or a place for a number.
        unsafe { Place::new(support) }?.put(0);
        Ok(())
    })
}

/// Every device that the process knows is supported; the simulated GPU is a virtual one.
///
/// # Safety
///
/// `support` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiDeviceSupported(
    device: CUdevice,
    support: *mut c_int,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `support` is null or a place for a number.
        let place = unsafe { Place::new(support) }?;
        let agent = objects::described(device)?;
        // CUPTI_DEVICE_VIRTUAL, CUPTI_DEVICE_SUPPORTED
        place.put(if agent.kind == AgentKind::SIMULATED {
            2
        } else {
            1
        });
        Ok(())
    })
}

/// How a device is virtual: `CUPTI_DEVICE_VIRTUALIZATION_MODE_NONE`, and `..._VIRTUAL_GPU` of the simulated GPU.
///
/// # Safety
///
/// `mode` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiDeviceVirtualizationMode(
    device: CUdevice,
    mode: *mut c_int,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `mode` is null or a place for a number.
        let place = unsafe { Place::new(mode) }?;
        let is_simulated = objects::described(device)?.kind == AgentKind::SIMULATED;
        place.put(if is_simulated { 2 } else { 0 });
        Ok(())
    })
}

/// The kind of thread ids in records.
///
/// # Safety
///
/// `kind` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetThreadIdType(kind: *mut u32) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `kind` is null or a place for a number.
        let place = unsafe { Place::new(kind) }?;
        place.put(Attributes::get()?.thread_ids as u32);
        Ok(())
    })
}

/// Sets the kind of thread ids, before anything is recorded.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiSetThreadIdType(kind: u32) -> CUptiResult {
    with_gputrail(|| attributes::set_thread_ids(kind))
}

/// Ends everything but the attributes. The next call begins anew.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiFinalize() -> CUptiResult {
    api(|| {
        prepared()?;
        if sink::is_within() {
            return Err(CUptiResult::INVALID_OPERATION);
        }
        extension::finish();
        callback::finish();
        service::finish();
        sink::reset();
        crate::timestamp::finish();
        Ok(())
    })
}
