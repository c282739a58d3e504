//! Timelines: enqueue records and completions put together, in nanoseconds.

use super::caller::Caller;
use super::library;
use super::sized;
use super::status::FailedCall;
use super::{Answer, done, place, values};
use crate::timeline::{EnqueueRecord, TimedWork, Timeline};
use core::ffi::c_void;
use gputrail_buffer::platform::sync::lock_std;
use gputrail_interface::c::{Batch, SizedStruct, Status, TimelineHandle, WorkData, WorkFunction};
use gputrail_record::*;
use std::sync::{Arc, Mutex};

/// A timeline of this process.
pub(super) fn new() -> Answer<Timeline> {
    let names = library::board()?.names().clone();
    Timeline::new(names).map_err(|error| FailedCall::new(Status::CLOCK_UNKNOWN, error.to_string()))
}

/// Makes a timeline, which puts the enqueue records and completions of raw batches together; joined records it takes as
/// they are. It keeps what waits for its other half, at most 262144 of each.
///
/// Errors: `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `timeline` is null or a place for the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_timeline_create(timeline: *mut TimelineHandle) -> Status {
    done(|| {
        // SAFETY: `timeline` is null or a place for a handle (the caller's promise).
        let place = unsafe { place(timeline, "timeline") }?;
        let made = new()?;
        let mut state = library::state()?;
        let id = state.timelines.new_handle();
        state.timelines.insert(id, Arc::new(Mutex::new(made)));
        place.write(TimelineHandle { handle: id });
        Ok(())
    })
}

/// Takes in a batch, to be called with every batch of a buffer, and calls `callback` once for each piece of work that
/// is complete by it, on the calling thread.
///
/// Errors: `GPUTRAIL_NO_SUCH_TIMELINE`, `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_WRONG_SIZE`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `batch` is null or leads to a batch whose bytes are there, `callback` is null or such a function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_timeline_add(
    timeline: TimelineHandle,
    batch: *const Batch,
    callback: WorkFunction,
    user_data: *mut c_void,
) -> Status {
    done(|| {
        let callback =
            callback.ok_or_else(|| FailedCall::new(Status::NULL_POINTER, "callback is null"))?;
        // SAFETY: `batch` is null or leads to a batch of as many bytes as its size says (the caller's promise).
        let batch = unsafe { sized::read(batch) }?;
        // SAFETY: `batch.records` is null or leads to `batch.bytes` bytes, which nobody writes until this returns (the
        // caller's promise); `timeline.add` keeps copies of what it needs.
        let bytes = unsafe { values(batch.records, batch.bytes, "the batch's records") }?;
        let timeline = library::state()?.timelines.get(timeline.handle)?;
        let mut timeline = lock_std(&timeline);
        timeline.add(Records::new(bytes), |work| {
            with_c(work, |work| {
                // SAFETY: a function of the tool's, which the tool gave for this.
                Caller::of_buffer().run(|| unsafe { callback(work, user_data) })
            });
        });
        Ok(())
    })
}

/// Destroys a timeline, and calls `callback`, which may be null, for the work of which only one record has come.
///
/// Errors: `GPUTRAIL_NO_SUCH_TIMELINE`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `callback` is null or such a function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_timeline_destroy(
    timeline: TimelineHandle,
    callback: WorkFunction,
    user_data: *mut c_void,
) -> Status {
    done(|| -> Answer {
        let timeline = library::state()?.timelines.remove(timeline.handle)?;
        if let Some(callback) = callback {
            lock_std(&timeline).finish(|work| {
                with_c(work, |work| {
                    // SAFETY: a function of the tool's, which the tool gave for this.
                    Caller::of_buffer().run(|| unsafe { callback(work, user_data) })
                });
            });
        }
        Ok(())
    })
}

fn with_c(work: &TimedWork, callback: impl FnOnce(*const WorkData)) {
    let mut data = WorkData {
        record: std::ptr::null(),
        completion: std::ptr::null(),
        enqueued: work.enqueue_time,
        start: work.start,
        end: work.end,
        ..WorkData::blank()
    };
    if let Some(enqueued) = &work.enqueued {
        data.record = enqueued.bytes().as_ptr().cast();
        data.agent = enqueued.work().agent;
        (data.kernel, data.bytes) = match enqueued {
            EnqueueRecord::Kernel(record) => (record.kernel, 0),
            EnqueueRecord::Copy(record) => (KernelId::NONE, record.bytes),
            EnqueueRecord::Set(record) => (KernelId::NONE, record.bytes),
            EnqueueRecord::Synchronization(_) => (KernelId::NONE, 0),
        };
    }
    if let Some(completion) = &work.completion {
        (data.completion, data.agent) = (completion, completion.agent);
    }
    callback(&data);
}
