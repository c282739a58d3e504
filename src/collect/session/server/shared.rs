//! The state that the session's thread shares with those who command it, and with the collectors.

use crate::session::control::Requests;
use gputrail_buffer::platform::sync::lock_std;
use gputrail_buffer::{BlockView, Sink};
use gputrail_capture::queue::QueueReader;
use gputrail_capture::{CaptureSink, Writer};
use gputrail_record::ClockSnapshot;
use rustix::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The state that the session's thread shares with those who command it.
pub(super) struct SessionShared {
    pub wake: OwnedFd,
    /// See [`Arrivals::first_ended`](super::Arrivals::first_ended).
    pub first_ended: OwnedFd,
    pub command: AtomicU32,
    pub attached: Mutex<Vec<(u32, PathBuf)>>,
    pub requests: Requests,
    pub is_off: AtomicBool,
}

/// Bits of `SessionShared::command`.
pub(super) const KILL: u32 = 1;
pub(super) const FINISH: u32 = 2;
pub(super) const DUMP: u32 = 4;

impl SessionShared {
    pub fn send(&self, command: u32) {
        self.command.fetch_or(command, Ordering::Release);
        raise(&self.wake);
    }
}

pub(super) fn raise(event: &OwnedFd) {
    // The write fails only when the counter is full: then the waiting thread has been woken anyway.
    let _ = rustix::io::write(event, &1u64.to_ne_bytes());
}

/// Writes to the capture of a process: records after the names that they refer to.
pub(super) struct SessionSink {
    pub metadata: Arc<Mutex<QueueReader>>,
    pub capture: CaptureSink,
    pub writer: Writer,
    pub records: Arc<AtomicU64>,
    pub session: Arc<SessionShared>,
    /// Whether the clocks have been read since the session was switched off.
    pub rests: bool,
}

impl Sink for SessionSink {
    fn look(&mut self) {
        lock_std(&self.metadata).drain(&self.writer);
    }

    fn records(&mut self, view: &BlockView<'_>) {
        // The records may have names that came after the look.
        self.look();
        let records = view.records().count() as u64;
        self.records.fetch_add(records, Ordering::Relaxed);
        self.capture.records(view);
    }

    fn tick(&mut self, reading: Option<&ClockSnapshot>) {
        self.look();
        // A session that is off for a month does not fill the disk with readings of clocks.
        let is_off = self.session.is_off.load(Ordering::Relaxed);
        if !(std::mem::replace(&mut self.rests, is_off) && is_off) {
            self.capture.tick(reading);
        }
    }
}
