//! Markers: how they appear as calls of ROCTx, and as ranges.
//!
//! A marker is a moment: the enter and the exit of its call come one after the other, and the record of its call has one time. The
//! ids of their calls are numbers of their own, above those of other calls: one for the call, another one for the range, the same in
//! callbacks, records and contexts. Records are put into their buffers where callbacks are called, on the thread of the marker. A range
//! that began before the context was started has no record.

use crate::result::Answer;
use core::ffi::{CStr, c_void};
use gputrail_abi::{kept, names};
use gputrail_record::{Marker, MarkerKind, StringId, ThreadId};
use gputrail_rocprofiler::{
    CallbackArgumentVisitor, CallbackTracingRecord, ContextId, MarkerCoreApi, MarkerCoreRangeApi,
    Status, TracingOperation,
};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// The payload of a callback on a call of ROCTx (`rocprofiler_callback_tracing_marker_api_data_t`).
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct MarkerData {
    /// Bytes of this structure.
    pub size: u64,
    /// The message, or the range; and room for a second argument.
    pub arguments: [u64; 2],
    /// The result of the call.
    pub result: u64,
}

impl MarkerData {
    /// Of the call that a marker is.
    pub fn new(marker: &Marker) -> MarkerData {
        let argument = match marker.what {
            MarkerKind::INSTANT | MarkerKind::PUSH | MarkerKind::START => {
                message(marker.name).as_ptr().expose_provenance() as u64
            }
            MarkerKind::END => marker.id,
            _ => 0,
        };
        MarkerData {
            size: size_of::<MarkerData>() as u64,
            arguments: [argument, 0],
            result: match marker.what {
                MarkerKind::START => marker.id,
                MarkerKind::PUSH => u64::from(marker.level()).saturating_sub(1),
                _ => 0,
            },
        }
    }
}

/// A text, which lasts for ever.
pub fn message(name: StringId) -> &'static CStr {
    names::string(name).unwrap_or_default()
}

/// The ids of a marker, which no other call has.
#[derive(Copy, Clone, Debug)]
pub struct MarkerIds {
    /// That of the call.
    pub call: u64,
    /// That of the range which it begins, or of the mark.
    pub range: u64,
}

/// The marker that the calling thread makes.
#[derive(Copy, Clone)]
struct Latest {
    what: MarkerKind,
    id: u64,
    time: u64,
    ids: MarkerIds,
    /// The contexts that have been told of it: a bit for each.
    told: u64,
}

/// The most nanoseconds by which contexts are told other times of the same marker: each time is converted on its own.
const SAME_TIME: u64 = 100_000;

impl MarkerIds {
    /// The ids of a marker of the calling thread, of which `context` is told now. All contexts are told of a marker before the next
    /// one of the thread.
    pub fn of(marker: &Marker, context: ContextId) -> MarkerIds {
        static NEXT: AtomicU64 = AtomicU64::new(1 << 62);
        thread_local! {
            static LATEST: Cell<Option<Latest>> = const { Cell::new(None) };
        }
        let bit = 1 << (context.handle % 64);
        let is_same = |latest: &Latest| {
            (latest.what, latest.id) == (marker.what, marker.id)
                && latest.told & bit == 0
                && latest.time.abs_diff(marker.time.0) < SAME_TIME
        };
        // The thread may be ending.
        let latest = LATEST.try_with(Cell::get).ok().flatten().filter(is_same);
        let mut latest = latest.unwrap_or_else(|| {
            let call = NEXT.fetch_add(2, Ordering::Relaxed);
            let range = call + 1;
            Latest {
                what: marker.what,
                id: marker.id,
                time: marker.time.0,
                ids: MarkerIds { call, range },
                told: 0,
            }
        });
        latest.told |= bit;
        let _ = LATEST.try_with(|place| place.set(Some(latest)));
        latest.ids
    }
}

/// The function of ROCTx that a marker is a call of.
pub fn function(what: MarkerKind) -> Option<TracingOperation> {
    let function = match what {
        MarkerKind::INSTANT => MarkerCoreApi::roctxMarkA,
        MarkerKind::PUSH => MarkerCoreApi::roctxRangePushA,
        MarkerKind::POP => MarkerCoreApi::roctxRangePop,
        MarkerKind::START => MarkerCoreApi::roctxRangeStartA,
        MarkerKind::END => MarkerCoreApi::roctxRangeStop,
        _ => return None,
    };
    Some(function.0)
}

/// A range that began.
#[derive(Copy, Clone, Debug)]
pub struct Begun {
    /// `roctxThreadRangeA` or `roctxProcessRangeA`.
    pub operation: TracingOperation,
    /// When.
    pub time: u64,
    /// Its number among calls.
    pub correlation: u64,
    /// The client's id where it began.
    pub external: u64,
    /// The data of its callbacks.
    pub data: u64,
    /// Its message.
    pub name: StringId,
    /// The thread on which it began.
    pub thread: ThreadId,
}

impl Begun {
    /// The range that `marker` begins, with its id and the client's.
    pub fn new(marker: &Marker, correlation: u64, external: u64) -> Begun {
        let operation = match marker.what {
            MarkerKind::PUSH => MarkerCoreRangeApi::roctxThreadRangeA,
            _ => MarkerCoreRangeApi::roctxProcessRangeA,
        };
        Begun {
            operation: operation.0,
            time: marker.time.0,
            correlation,
            external,
            data: 0,
            name: marker.name,
            thread: marker.thread,
        }
    }
}

/// Visits the argument of the call of ROCTx that a callback tells of.
///
/// # Safety
///
/// The payload is a [`MarkerData`], or the client's copy of one; `visitor` takes an argument and `data`.
pub unsafe fn visit(
    record: &CallbackTracingRecord,
    visitor: CallbackArgumentVisitor,
    data: *mut c_void,
) -> Answer {
    if record.payload.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let is_call = record.kind == gputrail_rocprofiler::CallbackTracingKind::MARKER_CORE_API;
    if is_call && record.operation == MarkerCoreApi::roctxRangePop.0 {
        return Ok(());
    }
    let payload = record.payload.cast::<MarkerData>();
    // SAFETY: the payload is such a structure.
    let value = unsafe { (*payload).arguments[0] };
    let is_range = is_call && record.operation == MarkerCoreApi::roctxRangeStop.0;
    let (name, type_name, depth, text) = if is_range {
        (c"id", c"m", 0, kept(&value.to_string()))
    } else {
        let message = core::ptr::with_exposed_provenance(value as usize);
        // SAFETY: the message of a call is null or one of `message`, which lasts for ever.
        let text = unsafe { gputrail_abi::given(message) };
        (c"message", c"PKc", 1, kept(&text.unwrap_or_default()))
    };
    // SAFETY: the client's function for this, with an argument whose texts last for ever.
    unsafe {
        visitor(
            record.kind,
            record.operation,
            0,
            (&raw const (*payload).arguments).cast(),
            depth,
            type_name.as_ptr(),
            name.as_ptr(),
            text.as_ptr(),
            depth,
            data,
        );
    }
    Ok(())
}
