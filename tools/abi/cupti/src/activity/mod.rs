//! The Activity API: records of what the runtime and its devices do, in buffers of the program.
//!
//! A buffer of gputrail is translated on the thread that delivers it ([`translate`]), into the program's buffers ([`sink`]).

mod announce;
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
mod translate;
mod unified;
pub mod wanted;

pub use kind::ActivityKind;
#[cfg(test)]
pub use record::{Field, fields};
pub use service::last_words;
pub use sink::put;
pub use translate::correlation;

use crate::layout;
use crate::load::prepared;
use crate::objects::{self, CUcontext, CUdevice};
use crate::place::{Place, write_attribute};
use crate::result::{Answer, CUptiResult, api};
use crate::with_gputrail;
use core::ffi::c_int;
use gputrail_abi::lock;
use gputrail_record::{AgentKind, ExternalId, ExternalKind};
use gputrail_tool::{self as tool, Attributes, ThreadIds, external};
use sink::{Complete, Request};
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

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
        if sink::register(request, complete) {
            Ok(())
        } else {
            Err(CUptiResult::INVALID_OPERATION)
        }
    })
}

/// Enables a kind of records.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnable(kind: ActivityKind) -> CUptiResult {
    with_gputrail(|| service::enable(kind.checked()?, None, true))
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

/// `CUpti_ActivityAttribute`: the number of attributes.
const ATTRIBUTES: usize = 5;
/// The attributes, which change nothing here: there is no memory of devices.
static ATTRIBUTE_VALUES: Mutex<[usize; ATTRIBUTES]> =
    Mutex::new([8 << 20, 8 << 20, 100, 65536, 100]);

/// The value of an attribute.
///
/// # Safety
///
/// `size` is null or leads to the bytes of `value`, which is null or has as many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetAttribute(
    attribute: u32,
    size: *mut usize,
    value: *mut u8,
) -> CUptiResult {
    with_gputrail(|| {
        let values = *lock(&ATTRIBUTE_VALUES);
        let known = values.get(attribute as usize).copied();
        let known = known.ok_or(CUptiResult::INVALID_PARAMETER)?;
        // SAFETY: `size` is null or leads to the number of the bytes at `value`, which may be null.
        unsafe { write_attribute(size, value, known) }
    })
}

/// Sets an attribute.
///
/// # Safety
///
/// As for [`cuptiActivityGetAttribute`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivitySetAttribute(
    attribute: u32,
    size: *mut usize,
    value: *mut u8,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `size` is null or leads to the number of the bytes at `value`.
        let place = unsafe { Place::new(size) }?;
        let attribute = attribute as usize;
        if value.is_null() || attribute >= ATTRIBUTES {
            return Err(CUptiResult::INVALID_PARAMETER);
        }
        if place.get() < size_of::<usize>() {
            return Err(CUptiResult::PARAMETER_SIZE_NOT_SUFFICIENT);
        }
        // SAFETY: there are as many bytes, as the caller says.
        lock(&ATTRIBUTE_VALUES)[attribute] = unsafe { value.cast::<usize>().read_unaligned() };
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

/// Says whether kernels have the times at which they were queued and submitted.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableLatencyTimestamps(enable: u8) -> CUptiResult {
    with_gputrail(|| {
        if enable != 0
            && let Ok(attributes) = Attributes::get()
            && !attributes.latency_times
        {
            // Where a context has been started, the times remain unknown.
            let _ = Attributes {
                latency_times: true,
                ..attributes
            }
            .set();
        }
        translate::LATENCY.store(enable != 0, Ordering::Relaxed);
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
    with_gputrail(|| {
        let thread_ids = match kind {
            0 => ThreadIds::Pthread,
            1 => ThreadIds::System,
            _ => return Err(CUptiResult::NOT_SUPPORTED),
        };
        let before = Attributes::get()?;
        if before.thread_ids == thread_ids {
            return Ok(());
        }
        let new = Attributes {
            thread_ids,
            ..before
        };
        new.set().map_err(|error| match error.status {
            tool::Status::ATTRIBUTES_LOCKED => CUptiResult::NOT_SUPPORTED,
            _ => error.into(),
        })
    })
}

/// Ends everything. The next call begins anew.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiFinalize() -> CUptiResult {
    api(|| {
        prepared()?;
        extension::finish();
        crate::callback::finish();
        service::finish();
        sink::reset();
        crate::timestamp::finish();
        Ok(())
    })
}
