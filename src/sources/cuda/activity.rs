//! The buffers that CUPTI asks for and returns, full of activity records.
//!
//! A buffer comes back when it is full, at a flush, and now and then, on a thread of CUPTI's or on the one that flushes. Its
//! records are translated there and then ([`super::translation`]). Nothing waits: a record for which a lane has no room is
//! dropped and counted. Records without a call (overhead before 12.9, clocks) are kept if recording is on when they come. CUPTI
//! has no record of copies and fills of 0 bytes; they are not counted as missing if the call's arguments are read.
//!
//! CUPTI is never called with a lock of ours held: it may wait for a thread that waits for that lock.

use super::counts;
use super::ffi::{self, call};
use super::inner::{self, TOLD};
use super::inside::InsideCupti;
use super::objects::{KnownObjects, OBJECTS};
use super::pool::{self, POOL};
use super::recent::RECENT;
use super::records::{self, READ};
use super::resources;
use super::session::{CuptiReading, CuptiSession, current_session};
use super::translation::Translation;
use core::ffi::c_void;
use gputrail_buffer::clock;
use gputrail_buffer::platform::inside::contain;
use gputrail_capture::names::Names;
use gputrail_collect::process;
use gputrail_record::Kind;
use std::io;

/// The number of records that are translated under one lock of the objects.
const BATCH: usize = 256;

/// Maps the memory of buffers and calls.
pub(super) fn open() -> io::Result<()> {
    POOL.open()?;
    RECENT.open()
}

/// CUPTI asks for a buffer, perhaps inside of a call of the program.
pub(super) unsafe extern "C" fn requested(
    buffer: *mut *mut u8,
    size: *mut usize,
    records: *mut usize,
) {
    // SAFETY: CUPTI's places for the answer. As many records as fit: 0.
    unsafe {
        buffer.write(POOL.take());
        size.write(pool::BYTES);
        records.write(0);
    }
}

/// CUPTI returns a buffer, of which the first `valid` bytes are records.
pub(super) unsafe extern "C" fn completed(
    context: *mut c_void,
    stream: u32,
    buffer: *mut u8,
    _: usize,
    valid: usize,
) {
    contain(|| {
        let _inside = InsideCupti::begin();
        if let Some(session) = current_session() {
            if valid > 0 && POOL.is_readable(buffer) {
                translate(session, buffer, valid.min(pool::BYTES));
            }
            let mut dropped = 0;
            // SAFETY: `context` is null, for the global queue, or what CUPTI has just passed; CUPTI writes to a local.
            let status = unsafe {
                call!(
                    session.cupti,
                    cuptiActivityGetNumDroppedRecords(context, stream, &raw mut dropped)
                )
            };
            if status == Some(ffi::SUCCESS) {
                let place = (!context.is_null()).then(|| {
                    // SAFETY: CUPTI has just passed this context.
                    let number = unsafe { session.cupti.context_number(context) };
                    (number.unwrap_or(0), stream)
                });
                counts::dropped(dropped, place);
                count_dropped(dropped);
            }
        }
    });
    POOL.put(buffer);
}

/// Counts records that CUPTI dropped. It does not say of which kind they were.
fn count_dropped(dropped: usize) {
    const MAX_COUNTED: usize = 1 << 16;
    if let Some(board) = process::board() {
        let buffers = board.buffers_for(Kind::COMPLETION);
        (0..dropped.min(MAX_COUNTED)).for_each(|_| board.count_unlaned(buffers, Kind::default()));
    }
}

/// Reads the clock for all agents.
pub(super) fn read_clocks() {
    let reading = current_session().and_then(CuptiSession::reading);
    if let (Some(reading), Some(names)) = (reading, process::names()) {
        note_reading(names, &OBJECTS.lock(), reading);
    }
}

fn note_reading(names: &Names, objects: &KnownObjects, reading: CuptiReading) {
    for agent in objects.agents() {
        names.clock_pair(reading.of_agent(agent));
    }
}

/// Translates the records of a buffer.
fn translate(session: &CuptiSession, buffer: *mut u8, valid: usize) {
    let (Some(thread), Some(names)) = (process::current(), process::names()) else {
        return counts::AFTER_END.add(1);
    };
    let mut reading = session.reading_if_due();
    let mut walk = BufferWalk {
        session,
        buffer,
        valid,
        latest: core::ptr::null_mut(),
    };
    let mut batch = [&[][..]; BATCH];
    loop {
        let records = walk.fill(&mut batch);
        if records.is_empty() {
            return;
        }
        let translated = thread.with(|host| {
            let mut objects = OBJECTS.lock();
            if let Some(reading) = reading.take() {
                note_reading(names, &objects, reading);
                objects.latest_reading = Some(reading);
            }
            let mut translation = Translation {
                begin: session.begin,
                names,
                reading: objects.latest_reading.or(session.first_reading),
                objects: &mut objects,
                host,
                now: clock::now(),
                frequency: clock::frequency(),
                told: Some(TOLD.lock()).filter(|told| told.follows_any()),
            };
            records.iter().for_each(|bytes| translation.record(bytes));
        });
        if translated.is_none() {
            return counts::BUSY.add(1);
        }
        inner::tell_completed(thread);
        resources::tell_registered(thread);
    }
}

/// A walk through the records of a buffer. The library does it: it knows the size of each kind.
struct BufferWalk<'a> {
    session: &'a CuptiSession,
    buffer: *mut u8,
    valid: usize,
    latest: *mut u8,
}

impl<'a> BufferWalk<'a> {
    /// The next records, each with the bytes that it covers; none at the end of the buffer.
    fn fill<'b>(&mut self, batch: &'b mut [&'a [u8]; BATCH]) -> &'b [&'a [u8]] {
        let mut count = 0;
        while count < BATCH {
            let Some((kind, rest)) = self.next() else {
                break;
            };
            if !READ.contains(&kind) {
                counts::FOREIGN.add(1);
                continue;
            }
            match self.session.strides.of(kind) {
                Some(size) if size <= rest.len() => {
                    batch[count] = &rest[..size];
                    count += 1;
                }
                Some(_) => counts::MALFORMED.add(1),
                None => counts::UNKNOWN_SIZE.add(1),
            }
        }
        &batch[..count]
    }

    /// The kind of the next record, and the bytes of the buffer from its start on.
    fn next(&mut self) -> Option<(u32, &'a [u8])> {
        if self.valid == 0 {
            return None;
        }
        // SAFETY: CUPTI has returned `buffer`, whose first `valid` bytes are its records and are ours until the buffer is
        // put back. `latest` is null, or the record that CUPTI has set it to.
        let next = unsafe {
            call!(
                self.session.cupti,
                cuptiActivityGetNextRecord(self.buffer, self.valid, &raw mut self.latest)
            )
        };
        let offset = (self.latest as usize).wrapping_sub(self.buffer as usize);
        let room = self.valid.checked_sub(offset).filter(|room| *room >= 4);
        match (next, room) {
            (Some(ffi::SUCCESS), Some(room)) => {
                // SAFETY: inside of the buffer, which is ours until it is put back.
                let rest = unsafe { core::slice::from_raw_parts(self.latest, room) };
                return Some((records::kind(rest), rest));
            }
            (Some(ffi::MAX_LIMIT_REACHED), _) => {}
            _ => counts::MALFORMED.add(1),
        }
        self.valid = 0;
        None
    }
}
