//! The thread of ours that has CUPTI deliver what has completed, and fetches samples.
//!
//! By itself CUPTI delivers full buffers only (CUPTI: `cuptiActivityFlushPeriod`), and keeps the records of a program that
//! does little until its end: a program that is killed would lose them all.

use super::inside::InsideCupti;
use super::sampling;
use super::session::{current_session, flush};
use gputrail_buffer::platform::inside::contain;
use gputrail_buffer::platform::internal_thread;
use gputrail_buffer::platform::sync::PerProcess;
use std::time::{Duration, Instant};

/// The pause between two rounds: what a killed process loses.
const ROUND: Duration = Duration::from_millis(200);
/// The longest time that the end waits for the round in progress.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether no round begins any more. Locked during a round.
static HAS_ENDED: PerProcess<bool> = PerProcess::new();

/// Starts the thread. If it cannot be created, flushes and the end deliver.
pub(super) fn begin() {
    let _ = internal_thread::spawn(|| contain(run));
}

fn run() {
    loop {
        std::thread::sleep(ROUND);
        let has_ended = HAS_ENDED.lock();
        if *has_ended {
            return;
        }
        let Some(session) = current_session() else {
            return;
        };
        flush();
        let _inside = InsideCupti::begin();
        sampling::fetch(session);
    }
}

/// The process ends: no round begins any more.
pub(super) fn end() {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if let Some(mut has_ended) = HAS_ENDED.try_lock() {
            *has_ended = true;
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
