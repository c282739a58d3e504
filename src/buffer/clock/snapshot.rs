//! Simultaneous readings of ticks and system clocks, and the frequency of ticks.

use super::{SystemClock, TickSource, init, now_ordered_of};
#[cfg(not(loom))]
use crate::platform::sync::OnceBox;
use gputrail_record::{ClockSnapshot, Nanos, Ticks};
#[cfg(loom)]
use std::sync::OnceLock;
use std::time::Duration;

/// Attempts at a narrow snapshot. One takes about a tenth of a microsecond, and an interrupt is
/// unlikely to hit all.
const TRIES: usize = 8;

/// The shortest span over which [`frequency`] measures. A pair of readings is off by at most 50 ns, so the error is at
/// most 500 ppm.
const CALIBRATION: Duration = Duration::from_micros(200);

/// Reads the host's clocks: the narrowest of several attempts.
///
/// A capture needs one at its start and one at its end. One at least every second bounds the effect of slewing of
/// CLOCK_MONOTONIC in between.
pub fn snapshot() -> ClockSnapshot {
    snapshot_of(init())
}

/// Like [`snapshot`], with ticks of `source`: for a process that uses another source than this one.
pub fn snapshot_of(source: TickSource) -> ClockSnapshot {
    let mut best = read(source);
    for _ in 1..TRIES {
        let next = read(source);
        if next.after - next.before < best.after - best.before {
            best = next;
        }
    }
    best
}

fn read(source: TickSource) -> ClockSnapshot {
    let blank = ClockSnapshot::blank();
    let before = now_ordered_of(source);
    // BOOTTIME is read in the middle of the window: all conversion rests on it.
    let monotonic_raw = SystemClock::MonotonicRaw.read();
    let boottime = SystemClock::Boottime.read();
    let monotonic = SystemClock::Monotonic.read();
    let realtime = SystemClock::Realtime.read();
    let after = now_ordered_of(source);
    ClockSnapshot {
        before,
        after,
        monotonic,
        monotonic_raw,
        boottime,
        realtime,
        ..blank
    }
}

/// The snapshot of a machine with [`TickSource::Virtual`]: every clock equals the ticks.
pub fn virtual_snapshot(now: Ticks) -> ClockSnapshot {
    let time = Nanos(now.0);
    ClockSnapshot {
        before: now,
        after: now,
        monotonic: time,
        monotonic_raw: time,
        boottime: time,
        realtime: time,
        ..ClockSnapshot::blank()
    }
}

/// Ticks per second, for the header of a capture.
///
/// Where the source does not state it, it is measured from the first call on, over at least 200 microseconds: the first
/// call waits for the rest of that span, and later calls measure over a longer one. Readers prefer the rate between
/// snapshots if these are far enough apart.
pub fn frequency() -> u64 {
    match init() {
        TickSource::Monotonic | TickSource::Virtual => 1_000_000_000,
        source => measured(source, START.get_or_init(snapshot)),
    }
}

/// The [`frequency`] of `source`, which another process may use.
#[cfg(not(loom))]
pub fn frequency_of(source: TickSource) -> u64 {
    match source {
        TickSource::Monotonic | TickSource::Virtual => 1_000_000_000,
        source if source == init() => frequency(),
        source => measured(source, &snapshot_of(source)),
    }
}

/// `duration` in ticks of this process.
#[cfg(not(loom))]
pub fn ticks_of(duration: std::time::Duration) -> u64 {
    let ticks = duration.as_nanos() * u128::from(frequency()) / 1_000_000_000;
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

/// Starts measuring the [`frequency`], so that a later call need not wait.
#[cfg(all(not(loom), target_os = "linux"))]
pub fn measure_frequency() {
    START.get_or_init(snapshot);
}

/// The start of the measurement of the frequency.
#[cfg(not(loom))]
static START: OnceBox<ClockSnapshot> = OnceBox::new();
#[cfg(loom)]
static START: OnceLock<ClockSnapshot> = OnceLock::new();

fn measured(source: TickSource, start: &ClockSnapshot) -> u64 {
    loop {
        let end = snapshot_of(source);
        let span = end.monotonic_raw.0.saturating_sub(start.monotonic_raw.0);
        if span >= CALIBRATION.as_nanos() as u64 {
            let ticks = u128::from(end.before - start.before);
            return (ticks * 1_000_000_000 / u128::from(span)) as u64;
        }
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::super::now_ordered;
    use super::*;

    #[test]
    fn a_snapshot_reads_its_clocks_between_its_ticks() {
        let first = snapshot();
        let second = snapshot();
        assert!(first.before <= first.after && first.after <= second.before);
        assert!(second.after <= now_ordered());
        for clock in [
            SystemClock::Monotonic,
            SystemClock::MonotonicRaw,
            SystemClock::Boottime,
        ] {
            assert!(clock.of(&first).is_some() && clock.of(&first) <= clock.of(&second));
        }
    }

    #[test]
    fn the_frequency_is_that_of_a_clock() {
        let frequency = frequency();
        // The slowest architected counter runs at 1 MHz.
        assert!(
            (1_000_000..100_000_000_000).contains(&frequency),
            "{frequency}"
        );
        let again = match init() {
            TickSource::Monotonic | TickSource::Virtual => 1_000_000_000,
            source => measured(source, &snapshot_of(source)),
        };
        // A reading of both clocks may be interrupted.
        assert!(
            (again / 4..again * 4).contains(&frequency),
            "{frequency} {again}"
        );
    }

    #[test]
    fn virtual_time_is_the_same_on_every_clock() {
        let snapshot = virtual_snapshot(Ticks(77));
        for clock in SystemClock::ALL {
            assert_eq!(clock.of(&snapshot), Nanos(77));
        }
    }
}
