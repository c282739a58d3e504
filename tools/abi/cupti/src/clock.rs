//! The clock of records: CLOCK_REALTIME, as NVIDIA documents it, or that of the program ([`timestamp`]).
//!
//! gputrail's times are of CLOCK_BOOTTIME. Both clocks run at the same speed, and the distance between them changes only when somebody
//! sets the time of day. It is measured once, so that the lengths of times between records are those that gputrail has
//! measured.

use crate::timestamp;
use std::sync::LazyLock;

/// How often the distance is measured: the shortest measurement is taken.
const TRIES: usize = 8;

/// A time of gputrail's in the clock of records. 0, which stands for none, stays 0.
pub fn told(nanos: u64) -> u64 {
    static DISTANCE: LazyLock<i64> = LazyLock::new(distance);
    match nanos {
        0 => 0,
        known => timestamp::told(known).unwrap_or_else(|| known.wrapping_add_signed(*DISTANCE)),
    }
}

/// The nanoseconds from CLOCK_BOOTTIME to CLOCK_REALTIME.
fn distance() -> i64 {
    let measured = (0..TRIES).map(|_| {
        let before = read(libc::CLOCK_BOOTTIME);
        let of_day = read(libc::CLOCK_REALTIME);
        let after = read(libc::CLOCK_BOOTTIME);
        (after - before, of_day - (before + (after - before) / 2))
    });
    measured.min().map_or(0, |(_, distance)| distance)
}

fn read(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a place for the time; every system has these clocks.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_day_and_none_remains_none() {
        let (before, now) = (read(libc::CLOCK_REALTIME), read(libc::CLOCK_BOOTTIME));
        let told_now = told(now as u64) as i64;
        let after = read(libc::CLOCK_REALTIME);
        // Within the time that a measurement takes.
        let doubt = 1_000_000;
        assert!(told_now >= before - doubt && told_now <= after + doubt);
        assert_eq!(told(now as u64 + 5) - told(now as u64), 5);
        assert_eq!(told(0), 0);
    }
}
