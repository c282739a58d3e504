//! The session: this process's use of CUPTI, from the subscription on. The library, its clock, and flushes.
//!
//! CUPTI's clock is read between two ticks at the start, at most ten times a second while buffers come, and at the end.

use super::ffi::{self, Cupti, call};
use super::inside::InsideCupti;
use super::records::Strides;
use core::ffi::c_void;
use gputrail_buffer::clock;
use gputrail_buffer::platform::sync::OnceBox;
use gputrail_record::{AgentId, ClockPair, DeviceTime, Ticks};
use std::sync::atomic::{AtomicU64, Ordering};

/// Attempts at a narrow reading of the clock.
const TRIES: usize = 4;

/// The process's use of CUPTI.
pub(super) struct CuptiSession {
    pub cupti: Cupti,
    pub strides: Strides,
    /// CUPTI's clock when the session began: what ended before is left out.
    pub begin: u64,
    /// The host's ticks and CUPTI's clock when the session began.
    pub first_reading: Option<CuptiReading>,
    subscriber: CuptiSubscriber,
    /// The process that made it. It does not work in forked children.
    pub process: u32,
    last_reading: AtomicU64,
}

struct CuptiSubscriber(*mut c_void);

// SAFETY: a handle that CUPTI takes on any thread, in one call at a time: `enabling::enable` lets one thread in.
unsafe impl Send for CuptiSubscriber {}
// SAFETY: as above.
unsafe impl Sync for CuptiSubscriber {}

/// The session of this process, or of the one that it was forked from.
pub(super) static SESSION: OnceBox<CuptiSession> = OnceBox::new();

/// The session of this process.
pub(super) fn current_session() -> Option<&'static CuptiSession> {
    SESSION
        .get()
        .filter(|session| session.process == std::process::id())
}

/// A reading of CUPTI's clock between two ticks.
#[derive(Copy, Clone, Debug)]
pub(super) struct CuptiReading {
    before: Ticks,
    time: u64,
    after: Ticks,
}

impl CuptiReading {
    /// The reading as a pair of the clock of `agent`.
    pub fn of_agent(self, agent: AgentId) -> ClockPair {
        let mut pair = ClockPair::blank();
        (pair.before, pair.after) = (self.before, self.after);
        (pair.device, pair.agent) = (DeviceTime(self.time), agent);
        pair
    }

    /// The host's ticks at a time of CUPTI's clock, by the `frequency` of ticks.
    pub fn to_ticks(self, time: u64, frequency: u64) -> Ticks {
        const SECOND: i128 = 1_000_000_000;
        let since = i128::from(time) - i128::from(self.time);
        let ticks = since * i128::from(frequency) / SECOND;
        let middle = i128::from(self.before.0) + i128::from(self.after - self.before) / 2;
        Ticks((middle + ticks).clamp(1, i128::from(u64::MAX)) as u64)
    }
}

/// Reads CUPTI's clock: the narrowest of several attempts.
fn read_clock(cupti: &Cupti) -> Option<CuptiReading> {
    let readings = (0..TRIES).filter_map(|_| {
        let mut time = 0;
        let before = clock::now_ordered();
        // SAFETY: CUPTI writes to a local.
        let status = unsafe { call!(cupti, cuptiGetTimestamp(&raw mut time)) }?;
        let after = clock::now_ordered();
        (status == ffi::SUCCESS && time != 0).then_some(CuptiReading {
            before,
            time,
            after,
        })
    });
    readings.min_by_key(|reading| reading.after - reading.before)
}

impl CuptiSession {
    /// The use of the library begins: it has told `subscriber`, the handle of the subscription.
    pub fn new(cupti: Cupti, strides: Strides, subscriber: *mut c_void) -> CuptiSession {
        let first_reading = read_clock(&cupti);
        CuptiSession {
            begin: first_reading.map_or(0, |reading| reading.time),
            first_reading,
            cupti,
            strides,
            subscriber: CuptiSubscriber(subscriber),
            process: std::process::id(),
            last_reading: AtomicU64::new(0),
        }
    }

    /// A reading of the clock, at most ten times a second.
    pub fn reading_if_due(&self) -> Option<CuptiReading> {
        let (now, last) = (clock::now().0, self.last_reading.load(Ordering::Relaxed));
        let is_due = now.saturating_sub(last) > clock::frequency() / 10;
        let taken = is_due
            && self
                .last_reading
                .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        taken.then(|| self.reading()).flatten()
    }

    /// A reading of the clock.
    pub fn reading(&self) -> Option<CuptiReading> {
        read_clock(&self.cupti)
    }

    pub fn enable_callback(&self, wanted: bool, domain: u32, number: u32) {
        // SAFETY: the subscription never ends; the rest are numbers, which CUPTI checks.
        unsafe {
            call!(
                self.cupti,
                cuptiEnableCallback(wanted.into(), self.subscriber.0, domain, number)
            )
        };
    }
}

/// Has CUPTI deliver the records of completed work.
pub(super) fn flush() {
    flush_with(0);
}

/// Has CUPTI deliver records, with a flag of its own.
pub(super) fn flush_with(flag: u32) {
    // CUPTI's own callbacks must not flush.
    if let Some(session) = current_session().filter(|_| !InsideCupti::is_set()) {
        let _inside = InsideCupti::begin();
        // SAFETY: a flag alone. CUPTI returns buffers to `activity::completed`, on this thread too.
        unsafe { call!(session.cupti, cuptiActivityFlushAll(flag)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_cupti_become_ticks_by_the_nearest_reading() {
        let reading = CuptiReading {
            before: Ticks(1_000_000_000),
            time: 5_000_000_000,
            after: Ticks(1_000_000_100),
        };
        let ticks = |time| reading.to_ticks(time, 2_000_000_000);
        assert_eq!(ticks(5_000_000_000), Ticks(1_000_000_050));
        assert_eq!(ticks(6_000_000_000), Ticks(3_000_000_050));
        assert_eq!(ticks(0), Ticks(1));
    }
}
