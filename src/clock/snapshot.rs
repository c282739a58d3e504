//! Reads ticks and system clocks together, and measures how fast ticks run.

use super::{SystemClock, TickSource, init, now_ordered_of};
use crate::record::{ClockSnapshot, Nanos, Ticks};
use std::sync::OnceLock;
use std::time::Duration;

/// Attempts at a tight snapshot. One takes about a tenth of a microsecond; an interrupt that hits one is
/// unlikely to hit them all.
const TRIES: usize = 8;

/// The span over which [`frequency`] measures at least. Two reads are off by about 50 ns at most,
/// so that this gives the rate to 500 parts in a million.
const CALIBRATION: Duration = Duration::from_micros(200);

/// The host's clocks now: the tightest of several readings.
///
/// One at the start of a capture and one at its end are needed; one every second or less bounds
/// what CLOCK_MONOTONIC's slewing can do in between.
pub fn snapshot() -> ClockSnapshot {
    snapshot_of(init())
}

/// The same with ticks of `source`, for a process that has another one than this.
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
    // BOOTTIME, on which all conversion rests, in the middle of the window.
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

/// The snapshot of a machine whose ticks are [`TickSource::Virtual`]: every clock shows the ticks.
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

/// How many ticks a second has, for the header of a capture.
///
/// Where the source does not say, this is measured from the first call of this function on, and
/// that first call takes a fifth of a millisecond, less where a session was joined just before. Later calls take the longer
/// span, for free.
/// A reader that finds snapshots far enough apart goes by them instead.
pub fn frequency() -> u64 {
    match init() {
        TickSource::Monotonic | TickSource::Virtual => 1_000_000_000,
        TickSource::Tsc | TickSource::Counter => measured(START.get_or_init(snapshot)),
    }
}

/// Begins to measure the [`frequency`], for who asks for it soon.
#[cfg(all(not(loom), target_os = "linux"))]
pub(crate) fn measure_frequency() {
    START.get_or_init(snapshot);
}

/// From when on the frequency is measured.
static START: OnceLock<ClockSnapshot> = OnceLock::new();

fn measured(start: &ClockSnapshot) -> u64 {
    loop {
        let end = snapshot();
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
        if init() == TickSource::Monotonic {
            assert_eq!(frequency, 1_000_000_000);
        }
    }

    #[test]
    fn virtual_time_is_the_same_on_every_clock() {
        let snapshot = virtual_snapshot(Ticks(77));
        for clock in SystemClock::ALL {
            assert_eq!(clock.of(&snapshot), Nanos(77));
        }
    }
}
