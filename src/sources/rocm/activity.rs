//! The buffers of the SDK: their records are translated when they are delivered, on the SDK's thread for that.
//!
//! The SDK delivers a buffer when its watermark is reached and at a flush. A program that does little would keep its records until its
//! end, and one that is killed would lose them: a thread of ours flushes in rounds. Nothing waits here: a record for which a lane
//! has no room is dropped and counted. A forked child has none of these threads, and never flushes.

use super::notes;
use super::objects::{KnownObjects, OBJECTS};
use super::sampling;
use super::session::{Reading, SESSION, Session, current_session};
use super::translation::Translation;
use core::ffi::c_void;
use gputrail_buffer::clock;
use gputrail_buffer::platform::inside::contain;
use gputrail_buffer::platform::internal_thread;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_capture::names::Names;
use gputrail_collect::process;
use gputrail_rocprofiler::{BufferCategory, BufferId, ContextId, RecordHeader};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Bytes of the buffer of work.
pub(super) const BYTES: usize = 4 << 20;
/// The bytes at which it is delivered.
pub(super) const WATERMARK: usize = BYTES / 2;
/// Bytes of the buffer of the driver's events.
pub(super) const DRIVER_BYTES: usize = 256 << 10;
/// The number of records that are translated under one lock of the objects.
const BATCH: usize = 256;
/// The pause between two rounds: what a killed process loses.
const ROUND: Duration = Duration::from_millis(200);
/// The longest time that the end waits for the round in progress.
const PATIENCE: Duration = Duration::from_secs(1);

thread_local! {
    /// Whether the calling thread is in a delivery: it must not wait for one.
    static IS_DELIVERING: Cell<bool> = const { Cell::new(false) };
}

/// Whether no round begins any more. Locked during a round.
static HAS_ENDED: PerProcess<bool> = PerProcess::new();

/// Has the SDK deliver the records of completed work.
pub(super) fn flush() {
    if let Some(session) = current_session() {
        flush_all(session);
    }
}

fn flush_all(session: &Session) {
    if IS_DELIVERING.get() {
        return;
    }
    for buffer in [session.work, session.driver].into_iter().flatten() {
        // A buffer that is busy is being delivered.
        let _ = session.sdk.flush(buffer);
    }
    sampling::round(session);
}

/// Starts the rounds. If the thread cannot be created, flushes and the end deliver.
pub(super) fn begin_rounds() {
    let _ = internal_thread::spawn(|| contain(run));
}

fn run() {
    loop {
        std::thread::sleep(ROUND);
        let has_ended = HAS_ENDED.lock();
        if *has_ended || current_session().is_none() {
            return;
        }
        flush();
    }
}

/// The process ends: no round begins any more.
pub(super) fn end_rounds() {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if let Some(mut has_ended) = HAS_ENDED.try_lock() {
            *has_ended = true;
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The SDK delivers the records of a buffer.
pub(super) unsafe extern "C" fn delivered(
    _: ContextId,
    buffer: BufferId,
    headers: *mut *mut RecordHeader,
    count: usize,
    _: *mut c_void,
    dropped: u64,
) {
    contain(|| {
        // The SDK ends its tools' buffers while it ends itself, so that the session may be the one that has ended.
        let Some(session) = SESSION.get().filter(|session| session.is_of_this_process()) else {
            return;
        };
        // The SDK counts from the beginning on.
        if session.work == Some(buffer) {
            notes::DROPPED.raise(dropped);
        }
        if headers.is_null() || count == 0 {
            return;
        }
        let was = IS_DELIVERING.replace(true);
        // SAFETY: the SDK delivers this many headers, which stay during the call.
        let headers = unsafe { core::slice::from_raw_parts(headers, count) };
        // SAFETY: each is null or leads to a header, which leads to its record.
        unsafe { translate(session, headers) };
        IS_DELIVERING.set(was);
    });
}

/// Reads the clock for all agents.
pub(super) fn read_clocks(session: &Session) {
    if let (Some(reading), Some(names)) = (session.reading(), process::names()) {
        note_reading(names, &OBJECTS.lock(), reading);
    }
}

fn note_reading(names: &Names, objects: &KnownObjects, reading: Reading) {
    for agent in objects.agents() {
        names.clock_pair(reading.of_agent(agent));
    }
}

/// Translates records, by their category.
///
/// # Safety
///
/// Each of `headers` is null or leads to a header of the SDK's, and that to the record of its category and kind.
unsafe fn translate(session: &'static Session, headers: &[*mut RecordHeader]) {
    let (Some(thread), Some(names)) = (process::current(), process::names()) else {
        return notes::AFTER_END.add(headers.len() as u64);
    };
    let mut reading = session.reading_if_due();
    for batch in headers.chunks(BATCH) {
        let translated = thread.with(|host| {
            let mut objects = OBJECTS.lock();
            if let Some(reading) = reading.take() {
                note_reading(names, &objects, reading);
                objects.latest_reading = Some(reading);
            }
            let mut translation = Translation {
                session,
                names,
                reading: objects.latest_reading.or(session.first_reading),
                objects: &mut objects,
                host,
                now: clock::now(),
                frequency: clock::frequency(),
            };
            for header in batch {
                let header = *header;
                // SAFETY: null or a header (`# Safety`).
                let Some(header) = (unsafe { header.as_ref() }) else {
                    continue;
                };
                if BufferCategory(header.category as i32) == BufferCategory::TRACING {
                    // SAFETY: the record of this kind (`# Safety`).
                    unsafe { translation.record(header) };
                }
                // Samples and counters have buffers of their own.
            }
        });
        if translated.is_none() {
            notes::BUSY.add(batch.len() as u64);
        }
    }
}
