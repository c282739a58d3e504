//! Time domains of deferred events and samples, and their conversion to the ticks of this process.
//!
//! A time domain is a type of timestamps, such as CLOCK_REALTIME, or one that the program registers. The program ties a
//! clock of unknown type, such as that of a network card, to another time domain by a factor or by two readings of both.

use super::domain::{DomainHandle, domain};
use super::registered::Registered;
use super::tables::answer;
use gputrail_buffer::clock::{self, SystemClock, TickSource};
use gputrail_buffer::platform::inside::message;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_collect::marker::Registry;
use gputrail_record::{ClockSnapshot, Ticks};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::hash::Hash;

/// Predefined types of timestamps.
mod kind {
    pub const TOOL: u64 = 1;
    pub const TSC: u64 = 10;
    pub const REALTIME: u64 = 12;
    pub const REALTIME_COARSE: u64 = 13;
    pub const MONOTONIC: u64 = 14;
    pub const MONOTONIC_RAW: u64 = 15;
    pub const MONOTONIC_COARSE: u64 = 16;
    pub const BOOTTIME: u64 = 17;
    pub const STEADY_CLOCK: u64 = 50;
    pub const HIGH_RESOLUTION_CLOCK: u64 = 51;
    pub const SYSTEM_CLOCK: u64 = 52;
}

/// Maximum number of conversions from one time domain to the next.
const MAX_CONVERSIONS: usize = 4;

/// The types of registered time domains, by the number of their NVTX domain and their id.
static TIME_DOMAINS: Registry<(u32, u64), u64> = Registry::new();
/// Maximum number of clocks that are converted, and of pairs of clocks that are read together.
const MAX_TIES: usize = 4096;

/// Conversions and readings of clocks of unknown type, which tie them to others.
static TIES: PerProcess<Ties> = PerProcess::new();

#[derive(Default)]
struct Ties {
    /// The conversions from a time domain to another one.
    conversions: HashMap<(u32, u64), TimeConversion>,
    /// The latest reading of two time domains at the same instant.
    points: HashMap<(u32, u64, u64), (i64, i64)>,
    /// The number of conversions and readings that had no place.
    beyond: u64,
}

/// The first and the latest reading of another tool's clock, each with ours: timestamps of tools are its, where it has one.
static OTHER_CLOCK: PerProcess<Option<[(i64, i64); 2]>> = PerProcess::new();

/// Another tool answers `nvtxTimestampGet` with `theirs`, which is returned, where we would answer with `ours`.
pub(super) fn other_reading(theirs: i64, ours: i64) -> i64 {
    let mut readings = OTHER_CLOCK.lock();
    let first = readings.map_or((theirs, ours), |[first, _]| first);
    *readings = Some([first, (theirs, ours)]);
    theirs
}

/// The ticks of a timestamp from `nvtxTimestampGet`.
fn tool_ticks(timestamp: i64) -> i64 {
    let Some([first, latest]) = *OTHER_CLOCK.lock() else {
        return timestamp;
    };
    let slope = if latest.0 == first.0 {
        1.0
    } else {
        (latest.1 - first.1) as f64 / latest.0.wrapping_sub(first.0) as f64
    };
    TimeConversion {
        to: kind::TOOL,
        slope,
        from: first,
        is_inverse: false,
    }
    .apply(timestamp)
}

/// A timestamp of a time domain.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Timestamp {
    /// The id of the time domain, 0 if none is given.
    pub time_domain: u64,
    pub value: i64,
}

#[derive(Copy, Clone)]
struct TimeConversion {
    to: u64,
    slope: f64,
    from: (i64, i64),
    /// Whether the program ties the other clock to this one.
    is_inverse: bool,
}

/// One reading of the clocks of the system, taken when the first timestamp needs it. Timestamps that are converted by the
/// same reading keep their order and their distances.
#[derive(Default)]
pub(super) struct SystemReading(OnceCell<(ClockSnapshot, u64)>);

impl SystemReading {
    /// The clocks, and the ticks of a second, which are measured again each time that they are asked for.
    fn get(&self) -> &(ClockSnapshot, u64) {
        self.0
            .get_or_init(|| (clock::snapshot(), clock::frequency()))
    }
}

impl Timestamp {
    /// The ticks of this timestamp of the NVTX domain with this number; `None` if its clock is not known.
    pub fn ticks(self, domain: u32, reading: &SystemReading) -> Option<Ticks> {
        let mut timestamp = self;
        for _ in 0..MAX_CONVERSIONS {
            let kind = match TIME_DOMAINS.get(&(domain, timestamp.time_domain)) {
                Some(kind) => *kind,
                // The program says nothing about its timestamps.
                None if timestamp.time_domain == 0 => kind::TOOL,
                None => timestamp.time_domain,
            };
            if let Some(ticks) = ticks_of(kind, timestamp.value, reading) {
                return Some(ticks);
            }
            let key = (domain, timestamp.time_domain);
            let conversion = TIES.lock().conversions.get(&key).copied()?;
            timestamp = Timestamp {
                time_domain: conversion.to,
                value: conversion.apply(timestamp.value),
            };
        }
        None
    }
}

impl TimeConversion {
    fn apply(&self, value: i64) -> i64 {
        let (from, to) = self.from;
        let distance = value.wrapping_sub(from) as f64 * self.slope;
        to.saturating_add(distance as i64)
    }
}

/// The ticks of a timestamp of a predefined type.
fn ticks_of(kind: u64, timestamp: i64, reading: &SystemReading) -> Option<Ticks> {
    let system = |clock: SystemClock| {
        let (now, frequency) = reading.get();
        let ticks = Ticks(now.before.0.midpoint(now.after.0));
        let ago = i128::from(clock.of(now).0) - i128::from(timestamp);
        let distance = u64::try_from(ago.unsigned_abs()).ok()?;
        let distance = u128::from(distance) * u128::from(*frequency) / 1_000_000_000;
        let distance = u64::try_from(distance).unwrap_or(u64::MAX);
        if ago >= 0 {
            ticks.0.checked_sub(distance)
        } else {
            ticks.0.checked_add(distance)
        }
    };
    let ticks = match kind {
        kind::TOOL => u64::try_from(tool_ticks(timestamp)).ok(),
        kind::TSC if clock::init() == TickSource::Tsc => u64::try_from(timestamp).ok(),
        kind::REALTIME | kind::REALTIME_COARSE | kind::SYSTEM_CLOCK => {
            system(SystemClock::Realtime)
        }
        kind::MONOTONIC | kind::MONOTONIC_COARSE | kind::STEADY_CLOCK => {
            system(SystemClock::Monotonic)
        }
        kind::MONOTONIC_RAW => system(SystemClock::MonotonicRaw),
        kind::BOOTTIME => system(SystemClock::Boottime),
        // One or the other, depending on the C++ library: the one whose present is closer.
        kind::HIGH_RESOLUTION_CLOCK => {
            let clocks = [SystemClock::Realtime, SystemClock::Monotonic];
            let distance =
                |clock: &SystemClock| (clock.of(&reading.get().0).0 as i64).abs_diff(timestamp);
            system(clocks.into_iter().min_by_key(distance)?)
        }
        _ => None,
    };
    ticks.map(Ticks)
}

#[repr(C)]
pub(super) struct TimeDomainAttributes {
    scope: u64,
    kind: u64,
    id: u64,
    flags: u64,
    resolution: i64,
    start: u64,
}

impl Registered for TimeDomainAttributes {
    fn chosen(&self) -> Option<u64> {
        Some(self.id)
    }

    unsafe fn put(&self, domain: u32, id: u64) -> Option<()> {
        TIME_DOMAINS.put((domain, id), self.kind).map(|_| ())
    }
}

#[repr(C)]
pub(super) struct SyncPoint {
    source: i64,
    destination: i64,
}

pub(super) unsafe extern "C" fn timestamp_get() -> i64 {
    answer(0, || clock::now().0 as i64)
}

pub(super) unsafe extern "C" fn time_sync_point(
    handle: DomainHandle,
    source: u64,
    destination: u64,
    at_source: i64,
    at_destination: i64,
) {
    answer((), || {
        let domain = domain(handle).number();
        let at = (at_source, at_destination);
        TIES.lock().synchronize(domain, (source, destination), at);
    });
}

pub(super) unsafe extern "C" fn time_sync_point_table(
    handle: DomainHandle,
    source: u64,
    destination: u64,
    points: *const SyncPoint,
    count: usize,
) {
    answer((), || {
        if points.is_null() {
            return;
        }
        // SAFETY: a program's array of this length.
        let points = unsafe { std::slice::from_raw_parts(points, count) };
        // The first and the last one give the mean rate.
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return;
        };
        let domain = domain(handle).number();
        let mut ties = TIES.lock();
        for point in [first, last] {
            let at = (point.source, point.destination);
            ties.synchronize(domain, (source, destination), at);
        }
    });
}

pub(super) unsafe extern "C" fn timestamp_conversion_factor(
    handle: DomainHandle,
    source: u64,
    destination: u64,
    slope: f64,
    at_source: i64,
    at_destination: i64,
) {
    answer((), || {
        let domain = domain(handle).number();
        let at = (at_source, at_destination);
        TIES.lock()
            .convert((source, destination), at, slope, domain);
    });
}

impl Ties {
    /// Two time domains had these values at the same instant. Two such readings give a conversion.
    fn synchronize(&mut self, domain: u32, (source, destination): (u64, u64), at: (i64, i64)) {
        let key = (domain, source, destination);
        if let Some(before) = self.points.get(&key).copied()
            && before.0 != at.0
        {
            let rise = (at.1 as f64) - (before.1 as f64);
            let run = (at.0 as f64) - (before.0 as f64);
            self.convert((source, destination), at, rise / run, domain);
        }
        put(&mut self.points, key, at, &mut self.beyond);
    }

    /// Keeps a conversion, and the inverse one where the destination has no conversion of its own.
    fn convert(
        &mut self,
        (source, destination): (u64, u64),
        at: (i64, i64),
        slope: f64,
        domain: u32,
    ) {
        let given = TimeConversion {
            to: destination,
            slope,
            from: at,
            is_inverse: false,
        };
        let inverse = TimeConversion {
            to: source,
            slope: slope.recip(),
            from: (at.1, at.0),
            is_inverse: true,
        };
        let known = self.conversions.get(&(domain, destination));
        let is_free = known.is_none_or(|known| known.is_inverse && known.to == source);
        for (of, conversion, is_kept) in [(source, given, true), (destination, inverse, is_free)] {
            if is_kept && conversion.slope.is_finite() {
                let key = (domain, of);
                put(&mut self.conversions, key, conversion, &mut self.beyond);
            }
        }
    }
}

/// Puts a value, unless there are too many keys: then it is counted as `beyond`.
fn put<K: Eq + Hash, V>(values: &mut HashMap<K, V>, key: K, value: V, beyond: &mut u64) {
    if values.len() < MAX_TIES || values.contains_key(&key) {
        values.insert(key, value);
        return;
    }
    if *beyond == 0 {
        message(format_args!(
            "NVTX: more than {MAX_TIES} clocks are tied to others: timestamps of further ones are not converted"
        ));
    }
    *beyond += 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(time_domain: u64, value: i64) -> Option<Ticks> {
        Timestamp { time_domain, value }.ticks(7, &SystemReading::default())
    }

    #[test]
    fn timestamps_of_one_reading_keep_their_distance() {
        let reading = SystemReading::default();
        let now = SystemClock::Monotonic.read().0 as i64;
        let at = |value| {
            let time_domain = kind::MONOTONIC;
            let timestamp = Timestamp { time_domain, value };
            timestamp.ticks(7, &reading).unwrap().0
        };
        let first = at(now);
        std::thread::sleep(Duration::from_millis(1));
        let distance = reading.get().1 / 1_000_000;
        assert!((at(now + 1000) - first).abs_diff(distance) <= 1);
    }

    #[test]
    fn clocks_of_the_system_are_converted_and_those_of_unknown_type_are_not() {
        let now = clock::now();
        let monotonic = SystemClock::Monotonic.read().0 as i64;
        let wide = clock::ticks_of(Duration::from_secs(60));
        for kind in [
            kind::MONOTONIC,
            kind::STEADY_CLOCK,
            kind::HIGH_RESOLUTION_CLOCK,
        ] {
            // In the future: the machine may have started less than an hour ago.
            let ticks = at(kind, monotonic + 3600 * 1_000_000_000).unwrap();
            let hour = clock::ticks_of(Duration::from_secs(3600));
            assert!((ticks.0 - now.0).abs_diff(hour) < wide, "{kind}");
        }
        let realtime = SystemClock::Realtime.read().0 as i64;
        assert!(
            at(kind::HIGH_RESOLUTION_CLOCK, realtime)
                .unwrap()
                .0
                .abs_diff(now.0)
                < wide
        );
        assert_eq!(at(0, 42), Some(Ticks(42)));
        assert_eq!(at(80, 42), None);
        TIME_DOMAINS.put((7, 1 << 24), 0);
        assert_eq!(at(1 << 24, 42), None);
        TIME_DOMAINS.put((7, 1 << 24), kind::TOOL);
        assert_eq!(at(1 << 24, 42), Some(Ticks(42)));
    }

    #[test]
    fn two_readings_at_the_same_instant_tie_a_clock_to_another_one() {
        let (card, other) = (1 << 25, 1 << 26);
        let ties = || TIES.lock();
        ties().synchronize(7, (card, kind::TOOL), (1000, 50_000));
        assert_eq!(at(card, 1000), None);
        ties().synchronize(7, (card, kind::TOOL), (2000, 53_000));
        assert_eq!(at(card, 1500), Some(Ticks(51_500)));
        // The clock of another card is known by that of the first.
        ties().convert((other, card), (0, 1500), 0.5, 7);
        assert_eq!(at(other, 100), Some(Ticks(51_650)));
    }

    #[test]
    fn a_clock_that_others_are_tied_to_follows_the_latest_readings() {
        let mut ties = Ties::default();
        let (own, card) = (1 << 27, 1 << 28);
        let slope = |ties: &Ties, of: u64| ties.conversions[&(7, of)].slope;
        ties.convert((own, card), (0, 0), 2.0, 7);
        assert_eq!(slope(&ties, card), 0.5);
        ties.convert((own, card), (0, 0), 4.0, 7);
        assert_eq!(slope(&ties, card), 0.25);
        ties.convert((card, own), (0, 0), 3.0, 7);
        ties.convert((own, card), (0, 0), 4.0, 7);
        assert_eq!(slope(&ties, card), 3.0);
    }

    #[test]
    fn clocks_beyond_the_maximum_are_counted() {
        let mut ties = Ties::default();
        for clock in 0..MAX_TIES as u64 + 2 {
            for _ in 0..2 {
                ties.synchronize(7, (1000 + clock, kind::TOOL), (0, 0));
            }
        }
        assert_eq!((ties.points.len(), ties.beyond), (MAX_TIES, 4));
    }
}
