//! Attributes and limits of the process: defaults of buffers, how calls are recorded, how many objects there may be.

use super::done;
use super::library;
use super::sized;
use super::status::FailedCall;
use gputrail_collect::context::{LIMITS, ProcessAttributes};
use gputrail_interface::attributes::ThreadIds;
use gputrail_interface::c::{AttributeValues, LimitValues, SizedStruct, Status};
use gputrail_record::Nanos;

fn values_now() -> AttributeValues {
    let now = ProcessAttributes::get();
    AttributeValues {
        pool_bytes: now.pool_bytes as u64,
        block_bytes: now.block_bytes as u64,
        threads: now.threads,
        thread_ids: now.thread_ids as u32,
        latency_times: u32::from(now.latency_times),
        environment_period: now.environment_period.unwrap_or_default(),
        ..AttributeValues::blank()
    }
}

/// The attributes that hold now (CUPTI: `cuptiActivityGetAttribute`).
///
/// Errors: `GPUTRAIL_WRONG_SIZE`, `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `attributes` is null or leads to such a structure, whose size is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_attributes_get(attributes: *mut AttributeValues) -> Status {
    done(|| {
        drop(library::state()?);
        // SAFETY: `attributes` is null or leads to a structure of as many bytes as its size says (the caller's promise).
        unsafe { sized::write(attributes, &values_now()) }
    })
}

/// Lets attributes hold from now on (CUPTI: `cuptiActivitySetAttribute`, `cuptiActivityEnableLatencyTimestamps`,
/// `cuptiSetThreadIdType`). Those that an older tool's structure does not have stay as they are.
///
/// Errors: `GPUTRAIL_ATTRIBUTES_LOCKED` once a context of the process has been started; `GPUTRAIL_LAYOUT` for sizes
/// that make no buffer; `GPUTRAIL_INVALID_ARGUMENT`; `GPUTRAIL_WRONG_SIZE`, `GPUTRAIL_NULL_POINTER`,
/// `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `attributes` is null or leads to such a structure, whose size is set and whose fields are initialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_attributes_set(attributes: *const AttributeValues) -> Status {
    done(|| {
        drop(library::state()?);
        // SAFETY: `attributes` is null or leads to attributes of as many bytes as their size says (the caller's promise).
        let asked = unsafe { sized::read_over(values_now(), attributes) }?;
        let size = |bytes: u64| {
            usize::try_from(bytes)
                .map_err(|_| FailedCall::new(Status::LAYOUT, format!("{bytes} bytes")))
        };
        let kinds = [ThreadIds::System, ThreadIds::Pthread];
        let thread_ids = kinds
            .into_iter()
            .find(|kind| *kind as u32 == asked.thread_ids);
        let unknown = || {
            let text = format!(
                "unknown thread_ids {}: expected 0 (pthread) or 1 (system)",
                asked.thread_ids
            );
            FailedCall::new(Status::INVALID_ARGUMENT, text)
        };
        if asked.latency_times > 1 {
            let text = format!(
                "unknown latency_times {}: expected 0 or 1",
                asked.latency_times
            );
            return Err(FailedCall::new(Status::INVALID_ARGUMENT, text));
        }
        let attributes = ProcessAttributes {
            pool_bytes: size(asked.pool_bytes)?,
            block_bytes: size(asked.block_bytes)?,
            threads: asked.threads,
            thread_ids: thread_ids.ok_or_else(unknown)?,
            latency_times: asked.latency_times != 0,
            environment_period: Some(asked.environment_period).filter(|period| *period != Nanos(0)),
        };
        Ok(attributes.set()?)
    })
}

/// How much of everything there may be.
///
/// Errors: `GPUTRAIL_WRONG_SIZE`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `limits` is null or leads to such a structure, whose size is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_limits_get(limits: *mut LimitValues) -> Status {
    done(|| {
        let all = LIMITS;
        let answer = LimitValues {
            buffers: all.buffers as u32,
            subscribers: all.subscribers as u32,
            contexts: all.contexts as u32,
            callback_threads: all.callback_threads as u32,
            smallest_block: all.smallest_client_block as u64,
            ..LimitValues::blank()
        };
        // SAFETY: `limits` is null or leads to a structure of as many bytes as its size says (the caller's promise).
        unsafe { sized::write(limits, &answer) }
    })
}
