//! Times of the API, which are nanoseconds of CLOCK_BOOTTIME, on the other clocks of the system.

use crate::types::{Answer, Failure, TimeId};

/// A time on another clock, in nanoseconds.
#[derive(Copy, Clone, Debug)]
pub struct Converted {
    pub value: u64,
    /// How exactly that is known: half the time that comparing the clocks took, and the resolution of the clock.
    pub error: u64,
}

/// The time `timestamp` on a clock.
pub fn convert(time_id: TimeId, timestamp: u64) -> Answer<Converted> {
    // A coarse clock shows the time of the last tick of its fine one, which may be a while ago: the fine one is read.
    let (clock, shown) = match time_id {
        TimeId::CLOCK_REALTIME => (libc::CLOCK_REALTIME, libc::CLOCK_REALTIME),
        TimeId::CLOCK_REALTIME_COARSE => (libc::CLOCK_REALTIME, libc::CLOCK_REALTIME_COARSE),
        TimeId::CLOCK_MONOTONIC => (libc::CLOCK_MONOTONIC, libc::CLOCK_MONOTONIC),
        TimeId::CLOCK_MONOTONIC_COARSE => (libc::CLOCK_MONOTONIC, libc::CLOCK_MONOTONIC_COARSE),
        TimeId::CLOCK_MONOTONIC_RAW => (libc::CLOCK_MONOTONIC_RAW, libc::CLOCK_MONOTONIC_RAW),
        TimeId(other) => return Err(Failure::argument(format!("there is no clock {other}"))),
    };
    let before = now(libc::CLOCK_BOOTTIME);
    let there = now(clock);
    let after = now(libc::CLOCK_BOOTTIME);
    // The clock was read between both readings of the API's own, at an unknown time.
    let half = (after - before) / 2;
    let time = i128::from(timestamp) + there - (before + half);
    let nanos = |time: i128| time.clamp(0, u64::MAX.into()) as u64;
    Ok(Converted {
        value: nanos(time),
        error: nanos(half + 1 + resolution(shown)),
    })
}

/// The time of a clock, in nanoseconds.
fn now(clock: libc::clockid_t) -> i128 {
    // SAFETY: a clock that there is, and a place for the time.
    read(|time| unsafe { libc::clock_gettime(clock, time) })
}

/// The time between two readings of a clock that differ, in nanoseconds.
fn resolution(clock: libc::clockid_t) -> i128 {
    // SAFETY: a clock that there is, and a place for its resolution.
    read(|time| unsafe { libc::clock_getres(clock, time) })
}

fn read(from: impl FnOnce(&mut libc::timespec) -> i32) -> i128 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    from(&mut time);
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coarse_clocks_are_known_less_exactly_than_the_others() {
        let timestamp = now(libc::CLOCK_BOOTTIME) as u64;
        let error = |time_id| convert(time_id, timestamp).unwrap().error;
        let coarse = error(TimeId::CLOCK_MONOTONIC_COARSE);
        assert!(coarse as i128 > resolution(libc::CLOCK_MONOTONIC_COARSE));
        assert!(error(TimeId::CLOCK_MONOTONIC) > 0);
    }

    #[test]
    fn a_time_of_the_monotonic_clock_is_the_same_by_all_that_run_with_it() {
        let timestamp = now(libc::CLOCK_BOOTTIME) as u64;
        let fine = convert(TimeId::CLOCK_MONOTONIC, timestamp).unwrap();
        let coarse = convert(TimeId::CLOCK_MONOTONIC_COARSE, timestamp).unwrap();
        assert!(fine.value.abs_diff(coarse.value) <= fine.error + coarse.error);
    }

    #[test]
    fn a_clock_that_there_is_not_is_refused() {
        assert!(convert(TimeId(5), 0).is_err());
        assert!(convert(TimeId(-1), 0).is_err());
    }
}
