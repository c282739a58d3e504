//! Time domains of deferred events and samples, and their conversion to the ticks of this process.
//!
//! A time domain is a type of timestamps, such as CLOCK_REALTIME, or one that the program registers. The program ties a
//! clock of unknown type, such as that of a network card, to another time domain by a factor or by two readings of both.

use super::functions::{Domain, answer, domain, id};
use crate::clock::{self, SystemClock, TickSource};
use crate::collect::marker::Registry;
use crate::platform::sync::PerProcess;
use crate::record::Ticks;
use std::time::Duration;

/// Predefined types of timestamps.
mod kind {
    pub const UNKNOWN: u64 = 0;
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
/// The conversions from a time domain to another one.
static CONVERSIONS: Registry<(u32, u64), Conversion> = Registry::new();
/// The latest reading of two time domains at the same instant.
static SYNC_POINTS: Registry<(u32, u64, u64), (i64, i64)> = Registry::new();

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
    let slope = match latest.0 == first.0 {
        true => 1.0,
        false => (latest.1 - first.1) as f64 / latest.0.wrapping_sub(first.0) as f64,
    };
    Conversion {
        to: kind::TOOL,
        slope,
        from: first,
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

struct Conversion {
    to: u64,
    slope: f64,
    from: (i64, i64),
}

impl Timestamp {
    /// The ticks of this timestamp of the NVTX domain with this number; `None` if its clock is not known.
    pub fn ticks(self, domain: u32) -> Option<Ticks> {
        let mut timestamp = self;
        for _ in 0..MAX_CONVERSIONS {
            let kind = match TIME_DOMAINS.get(&(domain, timestamp.time_domain)) {
                Some(kind) => *kind,
                // The program says nothing about its timestamps.
                None if timestamp.time_domain == 0 => kind::TOOL,
                None => timestamp.time_domain,
            };
            if let Some(ticks) = ticks_of(kind, timestamp.value) {
                return Some(ticks);
            }
            let conversion = CONVERSIONS.get(&(domain, timestamp.time_domain))?;
            timestamp = Timestamp {
                time_domain: conversion.to,
                value: conversion.apply(timestamp.value),
            };
        }
        None
    }
}

impl Conversion {
    fn apply(&self, value: i64) -> i64 {
        let (from, to) = self.from;
        let distance = value.wrapping_sub(from) as f64 * self.slope;
        to.saturating_add(distance as i64)
    }
}

/// The ticks of a timestamp of a predefined type.
fn ticks_of(kind: u64, timestamp: i64) -> Option<Ticks> {
    let system = |clock: SystemClock| {
        let (now, ticks) = (clock.read().0, clock::now());
        let ago = i128::from(now) - i128::from(timestamp);
        let distance = Duration::from_nanos(u64::try_from(ago.unsigned_abs()).ok()?);
        let distance = clock::ticks_of(distance);
        match ago >= 0 {
            true => ticks.0.checked_sub(distance),
            false => ticks.0.checked_add(distance),
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
            let distance = |clock: &SystemClock| (clock.read().0 as i64).abs_diff(timestamp);
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

impl TimeDomainAttributes {
    /// The attributes with an id.
    pub fn with_id(&self, id: u64) -> TimeDomainAttributes {
        TimeDomainAttributes { id, ..*self }
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

pub(super) unsafe extern "C" fn time_domain_register(
    handle: Domain,
    given: *const TimeDomainAttributes,
) -> u64 {
    answer(kind::UNKNOWN, || {
        // SAFETY: null or a program's attributes.
        let Some(given) = (unsafe { given.as_ref() }) else {
            return kind::UNKNOWN;
        };
        let id = id(given.id);
        let put = TIME_DOMAINS.put((domain(handle).number(), id), given.kind);
        put.map_or(kind::UNKNOWN, |_| id)
    })
}

pub(super) unsafe extern "C" fn time_sync_point(
    handle: Domain,
    source: u64,
    destination: u64,
    at_source: i64,
    at_destination: i64,
) {
    answer((), || {
        let domain = domain(handle).number();
        synchronize(domain, (source, destination), (at_source, at_destination));
    });
}

pub(super) unsafe extern "C" fn time_sync_point_table(
    handle: Domain,
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
        for point in [first, last] {
            let at = (point.source, point.destination);
            synchronize(domain, (source, destination), at);
        }
    });
}

pub(super) unsafe extern "C" fn timestamp_conversion_factor(
    handle: Domain,
    source: u64,
    destination: u64,
    slope: f64,
    at_source: i64,
    at_destination: i64,
) {
    answer((), || {
        let domain = domain(handle).number();
        convert(
            (source, destination),
            (at_source, at_destination),
            slope,
            domain,
        );
    });
}

/// Two time domains had these values at the same instant. Two such readings give a conversion.
fn synchronize(domain: u32, (source, destination): (u64, u64), at: (i64, i64)) {
    let key = (domain, source, destination);
    let before = SYNC_POINTS.get(&key).copied();
    if let Some(before) = before
        && before.0 != at.0
    {
        let rise = (at.1 as f64) - (before.1 as f64);
        let run = (at.0 as f64) - (before.0 as f64);
        convert((source, destination), at, rise / run, domain);
    }
    if before != Some(at) {
        SYNC_POINTS.put(key, at);
    }
}

/// Keeps a conversion, and the inverse one where the destination has no conversion of its own.
fn convert((source, destination): (u64, u64), at: (i64, i64), slope: f64, domain: u32) {
    let put = |of: u64, to: u64, slope: f64, from: (i64, i64)| {
        if slope.is_finite() {
            CONVERSIONS.put((domain, of), Conversion { to, slope, from });
        }
    };
    put(source, destination, slope, at);
    if CONVERSIONS.get(&(domain, destination)).is_none() {
        put(destination, source, slope.recip(), (at.1, at.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time_domain: u64, value: i64) -> Option<Ticks> {
        Timestamp { time_domain, value }.ticks(7)
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
            let ticks = at(kind, monotonic - 3600 * 1_000_000_000).unwrap();
            let hour = clock::ticks_of(Duration::from_secs(3600));
            assert!((now.0 - ticks.0).abs_diff(hour) < wide, "{kind}");
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
        TIME_DOMAINS.put((7, 1 << 24), kind::UNKNOWN);
        assert_eq!(at(1 << 24, 42), None);
        TIME_DOMAINS.put((7, 1 << 24), kind::TOOL);
        assert_eq!(at(1 << 24, 42), Some(Ticks(42)));
    }

    #[test]
    fn two_readings_at_the_same_instant_tie_a_clock_to_another_one() {
        let (card, other) = (1 << 25, 1 << 26);
        synchronize(7, (card, kind::TOOL), (1000, 50_000));
        assert_eq!(at(card, 1000), None);
        synchronize(7, (card, kind::TOOL), (2000, 53_000));
        assert_eq!(at(card, 1500), Some(Ticks(51_500)));
        // The clock of another card is known by that of the first.
        convert((other, card), (0, 1500), 0.5, 7);
        assert_eq!(at(other, 100), Some(Ticks(51_650)));
    }
}
