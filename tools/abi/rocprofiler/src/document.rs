//! The functions as AMD's document has them, where ROCm's header has another form or none. Our header declares the former under
//! the names of the document with the symbols `rocprofiler_document_*`, and the latter have the document's names.
//!
//! Each calls the function of ROCm's form, or what that calls.

use crate::context::Context;
use crate::errors::api;
use crate::info::Query;
use crate::types::{
    AgentHandle, ContextHandler, DispatchCallback, Failure, Feature, Group, Handle, InfoCallback,
    InfoData, InfoKind, Properties, Queue, QueueCallback, QueueCallbacks, Status, TimeId,
};
use crate::{
    errors, given, info, intercept, place_of, rocprofiler_open, rocprofiler_remove_queue_callbacks,
    rocprofiler_set_queue_callbacks, rocprofiler_version_major, rocprofiler_version_minor, time,
    with_gputrail,
};
use core::ffi::{c_char, c_int, c_void};

/// Properties of a context (`rocprofiler_properties_t`).
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct DocumentProperties {
    pub callback: Option<ContextHandler>,
    pub callback_arg: *mut c_void,
    pub queue: *mut Queue,
    pub queue_depth: u32,
}

/// Callbacks on queues (`rocprofiler_queue_callbacks_t`, `rocprofiler_intercepting_t`).
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct DocumentQueueCallbacks {
    pub dispatch: Option<DispatchCallback>,
    pub destroy: Option<QueueCallback>,
}

/// The sentence of the last failed call of the calling thread; empty before one has failed.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_document_error_string() -> *const c_char {
    errors::last()
}

/// As [`rocprofiler_version_major`].
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_major_version() -> u32 {
    rocprofiler_version_major()
}

/// As [`rocprofiler_version_minor`].
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_minor_version() -> u32 {
    rocprofiler_version_minor()
}

/// Calls `callback` for each metric or trace that fits the fields of `query` that are not null.
///
/// # Safety
///
/// As for [`crate::rocprofiler_iterate_info`]; `query` is of this `kind`, and its texts are null or end with a 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_document_query_info(
    agent: *const AgentHandle,
    kind: InfoKind,
    query: InfoData,
    callback: Option<InfoCallback>,
    data: *mut c_void,
) -> Status {
    with_gputrail("rocprofiler_query_info", || {
        let callback = callback.ok_or_else(|| Failure::null("the callback"))?;
        // SAFETY: `agent` is null or leads to a handle. A query of a metric has texts that are null or end with a 0. `callback`
        // takes an information and `data`.
        unsafe {
            let query = if kind == InfoKind::METRIC {
                Query::new(&query.of.metric)
            } else {
                Query::default()
            };
            info::iterate(given(agent), kind, query, callback, data)
        }
    })
}

/// Opens a context.
///
/// # Safety
///
/// As for [`rocprofiler_open`], with `properties` of the document's form.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_document_open(
    agent: AgentHandle,
    features: *mut Feature,
    feature_count: u32,
    context: *mut Handle,
    modes: u32,
    properties: *mut DocumentProperties,
) -> Status {
    // SAFETY: `properties` is null or leads to properties of the document's form.
    let properties = unsafe { given(properties) };
    let mut properties = properties.map(|from| Properties {
        queue: from.queue,
        queue_depth: from.queue_depth,
        handler: from.callback,
        handler_arg: from.callback_arg,
    });
    let properties = properties.as_mut().map_or(std::ptr::null_mut(), |of| of);
    // SAFETY: `properties` is null or leads to our own, which live until the function returns; the other pointers are the
    // program's, who promises the same of them here.
    unsafe { rocprofiler_open(agent, features, feature_count, context, modes, properties) }
}

/// Converts a time of the API to another clock.
///
/// # Safety
///
/// `value` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_document_get_time(
    time_id: c_int,
    timestamp: u64,
    value: *mut u64,
) -> Status {
    api("rocprofiler_get_time", || {
        // SAFETY: `value` is null or a place for a number.
        let place = unsafe { place_of(value, "value_ns") }?;
        let time_id = match time_id {
            0 => TimeId::CLOCK_REALTIME,
            1 => TimeId::CLOCK_MONOTONIC,
            other => return Err(Failure::argument(format!("there is no clock {other}"))),
        };
        place.put(time::convert(time_id, timestamp)?.value);
        Ok(())
    })
}

impl From<DocumentQueueCallbacks> for QueueCallbacks {
    fn from(callbacks: DocumentQueueCallbacks) -> QueueCallbacks {
        QueueCallbacks {
            dispatch: callbacks.dispatch,
            create: None,
            destroy: callbacks.destroy,
        }
    }
}

/// Has callbacks called for kernels that are put into queues, and for queues that are destroyed.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_document_set_queue_callbacks(
    callbacks: DocumentQueueCallbacks,
    data: *mut c_void,
) -> Status {
    rocprofiler_set_queue_callbacks(callbacks.into(), data)
}

/// As [`rocprofiler_document_set_queue_callbacks`].
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_set_intercepting(
    callbacks: DocumentQueueCallbacks,
    data: *mut c_void,
) -> Status {
    with_gputrail("rocprofiler_set_intercepting", || {
        intercept::set(callbacks.into(), data)
    })
}

/// As [`rocprofiler_remove_queue_callbacks`].
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_remove_intercepting() -> Status {
    rocprofiler_remove_queue_callbacks()
}

/// As [`rocprofiler_document_set_queue_callbacks`], for kernels alone.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_add_dispatch_callback(
    callback: Option<DispatchCallback>,
    data: *mut c_void,
) -> Status {
    with_gputrail("rocprofiler_add_dispatch_callback", || {
        let callbacks = DocumentQueueCallbacks {
            dispatch: Some(callback.ok_or_else(|| Failure::null("the callback"))?),
            destroy: None,
        };
        intercept::set(callbacks.into(), data)
    })
}

/// As [`crate::rocprofiler_reset`], of a group. Neither ROCm nor the document has it.
///
/// # Safety
///
/// `group` is null or leads to a group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_group_reset(group: *mut Group) -> Status {
    api("rocprofiler_group_reset", || {
        // SAFETY: `group` is null or leads to a group.
        let group = unsafe { given(group) }.ok_or_else(|| Failure::null("group"))?;
        Context::found(group.context)?.reset(group.index)
    })
}
