//! Conversions of whole captures: simulated hosts and agents whose truth is known, hostile
//! records, and the clocks of this machine.

use super::*;
use gputrail_record::{ClockPair, ClockSnapshot, DeviceTime, Nanos, Ticks};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

/// A host whose clocks are known exactly. It has been up for an hour of BOOTTIME at start.
#[derive(Clone, Copy, Debug)]
struct Host {
    /// Ticks a second.
    frequency: u64,
    /// How fast MONOTONIC runs against the ticks' nominal rate, in parts per billion.
    slew: i64,
    /// MONOTONIC_RAW stands this far from MONOTONIC at start.
    raw_ahead: u64,
}

const HOST: Host = Host {
    frequency: 3_000_000_000,
    slew: 20_000,
    raw_ahead: 246_000_000,
};

impl Host {
    /// Ticks `elapsed` nanoseconds (of the counter) after the start.
    fn ticks(&self, elapsed: u64) -> Ticks {
        let ticks = u128::from(elapsed) * u128::from(self.frequency) / u128::from(SECOND);
        Ticks(1 << 40 | ticks as u64)
    }

    fn clock(&self, clock: SystemClock, elapsed: u64) -> Nanos {
        let slewed = elapsed as i128 + elapsed as i128 * self.slew as i128 / 1_000_000_000;
        let slewed = slewed as u64;
        Nanos(match clock {
            SystemClock::Monotonic => 3000 * SECOND + slewed,
            SystemClock::Boottime => 3600 * SECOND + slewed,
            SystemClock::MonotonicRaw => 3000 * SECOND + self.raw_ahead + elapsed,
            SystemClock::Realtime => 1_700_000_000 * SECOND + slewed,
        })
    }

    /// A snapshot whose window is `width` nanoseconds wide, the clocks read somewhere inside.
    fn snapshot(&self, elapsed: u64, width: u64, at: u64) -> ClockSnapshot {
        let read = |clock| self.clock(clock, elapsed + at.min(width));
        ClockSnapshot {
            before: self.ticks(elapsed),
            after: self.ticks(elapsed + width),
            monotonic: read(SystemClock::Monotonic),
            monotonic_raw: read(SystemClock::MonotonicRaw),
            boottime: read(SystemClock::Boottime),
            realtime: read(SystemClock::Realtime),
            ..ClockSnapshot::blank()
        }
    }

    fn convert(&self, snapshots: &[ClockSnapshot]) -> HostClock {
        HostClock::new(TickSource::Tsc, self.frequency, snapshots).unwrap()
    }

    /// Ten seconds, a snapshot in each.
    fn ten_seconds(&self) -> HostClock {
        let snapshots: Vec<_> = (0..=10)
            .map(|i| self.snapshot(i * SECOND, 100, 10 * i))
            .collect();
        self.convert(&snapshots)
    }

    fn pair(&self, elapsed: u64, width: u64, device: u64) -> ClockPair {
        ClockPair {
            before: self.ticks(elapsed),
            after: self.ticks(elapsed + width),
            device: DeviceTime(device),
            ..ClockPair::blank()
        }
    }

    /// 200 readings over ten seconds of a clock that shows `device(elapsed)`.
    fn pairs(&self, device: impl Fn(u64) -> u64) -> Vec<ClockPair> {
        let reading = |i: u64| {
            let (elapsed, width) = (i * SECOND / 20, 2000 + i % 7 * 500);
            self.pair(elapsed, width, device(elapsed + width * (i % 5) / 5))
        };
        (0..200).map(reading).collect()
    }
}

fn off(found: Nanos, truth: Nanos) -> u64 {
    found.0.abs_diff(truth.0)
}

#[test]
fn no_snapshot_makes_no_clock() {
    assert_eq!(
        HostClock::new(TickSource::Tsc, 1, &[]).unwrap_err(),
        NoSnapshot
    );
    let mut backwards = HOST.snapshot(0, 100, 50);
    std::mem::swap(&mut backwards.before, &mut backwards.after);
    assert!(HostClock::new(TickSource::Tsc, 1, &[backwards]).is_err());
}

#[test]
fn every_clock_converts_within_the_bound() {
    let clock = HOST.ten_seconds();
    let bound = clock.error_bound().0;
    assert!(bound < 200, "{bound}");
    for elapsed in (0..10 * SECOND).step_by(777_777_777) {
        for which in SystemClock::ALL {
            let truth = HOST.clock(which, elapsed);
            let found = clock.to(which, HOST.ticks(elapsed));
            assert!(off(found, truth) <= bound + 1, "{which:?} {found} {truth}");
        }
    }
}

#[test]
fn one_snapshot_goes_on_at_the_frequency_of_the_header() {
    let clock = HOST.convert(&[HOST.snapshot(0, 100, 50)]);
    let (ticks, truth) = (
        HOST.ticks(SECOND),
        HOST.clock(SystemClock::Boottime, SECOND),
    );
    let off = off(clock.to_boottime(ticks), truth);
    // Slewing is what the header cannot know; the error says so.
    assert!(off > clock.error_bound().0);
    assert!(off <= clock.error_at(ticks).0);
}

#[test]
fn the_rate_last_measured_goes_on_after_the_last_snapshot() {
    let clock = HOST.ten_seconds();
    let (ticks, truth) = (
        HOST.ticks(12 * SECOND),
        HOST.clock(SystemClock::Boottime, 12 * SECOND),
    );
    assert!(off(clock.to_boottime(ticks), truth) <= clock.error_at(ticks).0);
    assert!(clock.error_at(ticks).0 < 2000);
}

#[test]
fn a_wide_snapshot_among_tight_ones_is_not_believed() {
    let mut snapshots: Vec<_> = (0..=10)
        .map(|i| HOST.snapshot(i * SECOND, 100, 50))
        .collect();
    let clean = HOST.convert(&snapshots);
    snapshots.push(HOST.snapshot(5 * SECOND + SECOND / 2, 50_000_000, 0));
    let clock = HOST.convert(&snapshots);
    assert_eq!(clock.error_bound(), clean.error_bound());
}

#[test]
fn the_order_and_repetition_of_snapshots_do_not_matter() {
    let mut snapshots: Vec<_> = (0..=10)
        .map(|i| HOST.snapshot(i * SECOND, 100, i))
        .collect();
    let clean = HOST.convert(&snapshots);
    snapshots.reverse();
    snapshots.extend_from_within(2..7);
    let clock = HOST.convert(&snapshots);
    for elapsed in (0..20 * SECOND).step_by(333_333_333) {
        let ticks = HOST.ticks(elapsed);
        assert_eq!(clock.to_boottime(ticks), clean.to_boottime(ticks));
    }
}

#[test]
fn virtual_time_converts_exactly() {
    let snapshots = [
        virtual_snapshot(Ticks(5 * SECOND)),
        virtual_snapshot(Ticks(9 * SECOND)),
    ];
    let clock = HostClock::new(TickSource::Virtual, SECOND, &snapshots).unwrap();
    assert_eq!(clock.error_bound(), Nanos(0));
    for ticks in [
        1,
        77,
        5 * SECOND,
        6 * SECOND + 1,
        9 * SECOND,
        1000 * SECOND + 3,
    ] {
        assert_eq!(clock.to_boottime(Ticks(ticks)), Nanos(ticks));
    }
}

#[test]
fn an_unknown_time_stays_unknown() {
    let clock = HOST.ten_seconds();
    assert_eq!(clock.to_boottime(Ticks::NONE), Nanos::NONE);
    assert_eq!(
        clock.ticks_of(SystemClock::Boottime, Nanos::NONE),
        Ticks::NONE
    );
    // A known time long before the machine was up is still known.
    assert!(clock.to_boottime(Ticks(1)).is_some());
    let agent = AgentClock::new(&clock, &HOST.pairs(|t| t + 1));
    assert_eq!(agent.to_boottime(DeviceTime::NONE), None);
}

#[test]
fn an_agent_that_shows_a_system_clock_is_found_out() {
    let host = HOST.ten_seconds();
    for clock in [
        SystemClock::Monotonic,
        SystemClock::MonotonicRaw,
        SystemClock::Boottime,
        SystemClock::Realtime,
    ] {
        let agent = AgentClock::new(&host, &HOST.pairs(|t| HOST.clock(clock, t).0));
        assert_eq!(agent.domain(), ClockDomain::System(clock));
        assert!(agent.error_bound().0 < 1000, "{agent}");
        let found = agent
            .to_boottime(DeviceTime(HOST.clock(clock, 3 * SECOND).0))
            .unwrap();
        let truth = HOST.clock(SystemClock::Boottime, 3 * SECOND);
        assert!(off(found, truth) <= agent.error_bound().0);
        assert!(agent.describe().starts_with(clock.name()), "{agent}");
    }
}

#[test]
fn one_reading_is_enough_to_know_a_system_clock() {
    let host = HOST.ten_seconds();
    let raw = HOST.clock(SystemClock::MonotonicRaw, 3 * SECOND + 500);
    let agent = AgentClock::new(&host, &[HOST.pair(3 * SECOND, 1000, raw.0)]);
    assert_eq!(
        agent.domain(),
        ClockDomain::System(SystemClock::MonotonicRaw)
    );
}

#[test]
fn a_clock_of_coarse_steps_is_still_found_out() {
    let host = HOST.ten_seconds();
    let micros = |t| HOST.clock(SystemClock::Realtime, t).0 / 1000 * 1000;
    let pairs: Vec<_> = (0..100)
        .map(|i| HOST.pair(i * SECOND / 10, 150, micros(i * SECOND / 10)))
        .collect();
    let agent = AgentClock::new(&host, &pairs);
    assert_eq!(agent.domain(), ClockDomain::System(SystemClock::Realtime));
    assert!(agent.error_bound().0 >= 1000);
}

#[test]
fn a_few_false_readings_do_not_hide_a_system_clock() {
    let host = HOST.ten_seconds();
    let mut pairs = HOST.pairs(|t| HOST.clock(SystemClock::MonotonicRaw, t).0);
    for pair in pairs.iter_mut().step_by(40) {
        pair.device.0 += SECOND;
    }
    let agent = AgentClock::new(&host, &pairs);
    assert_eq!(
        agent.domain(),
        ClockDomain::System(SystemClock::MonotonicRaw)
    );
    assert!(agent.describe().contains("195 of 200"), "{agent}");
}

#[test]
fn where_two_clocks_are_the_same_monotonic_is_named() {
    // A machine that never slept, and never heard of NTP.
    let snapshots: Vec<_> = (1..10)
        .map(|i| virtual_snapshot(Ticks(i * SECOND)))
        .collect();
    let host = HostClock::new(TickSource::Virtual, SECOND, &snapshots).unwrap();
    let pair = ClockPair {
        before: Ticks(2 * SECOND),
        after: Ticks(2 * SECOND + 10),
        device: DeviceTime(2 * SECOND + 5),
        ..ClockPair::blank()
    };
    let agent = AgentClock::new(&host, &[pair]);
    assert_eq!(agent.domain(), ClockDomain::System(SystemClock::Monotonic));
    assert_eq!(agent.to_boottime(pair.device), Some(Nanos(pair.device.0)));
    assert!(agent.error_bound().0 < 10);
}

#[test]
fn two_clocks_that_the_readings_cannot_distinguish_widen_the_bound() {
    let host = HOST.ten_seconds();
    let raw = HOST.clock(SystemClock::MonotonicRaw, SECOND).0;
    let agent = AgentClock::new(&host, &[HOST.pair(SECOND / 2, SECOND, raw)]);
    let truth = HOST.clock(SystemClock::Boottime, SECOND);
    assert!(off(agent.to_boottime(DeviceTime(raw)).unwrap(), truth) <= agent.error_bound().0);
}

#[test]
fn an_agent_with_an_offset_and_drift_of_its_own_is_fitted() {
    let host = HOST.ten_seconds();
    for drift in [-50_000, 0, 35_000i64] {
        let device = |t: u64| 77 * SECOND + (t as i64 + t as i64 / 1_000_000 * drift / 1000) as u64;
        let agent = AgentClock::new(&host, &HOST.pairs(device));
        assert_eq!(agent.domain(), ClockDomain::Own, "{agent}");
        assert!(agent.error_bound().0 < 5000, "{agent}");
        for elapsed in (0..10 * SECOND).step_by(123_456_789) {
            let found = agent.to_boottime(DeviceTime(device(elapsed))).unwrap();
            let truth = HOST.clock(SystemClock::Boottime, elapsed);
            assert!(off(found, truth) <= agent.error_bound().0, "{agent}");
        }
    }
}

#[test]
fn a_clock_whose_rate_wanders_is_followed() {
    // In five minutes from 40 ppm slow to 40 ppm fast, read fifty times a second.
    const READINGS: u64 = 15_000;
    let device = |time: u64| {
        let seconds = time as f64 / 1e9;
        let ahead = -40e-6 * seconds + 40e-6 / 300.0 * seconds * seconds;
        (time as f64 + ahead * 1e9).round() as u64
    };
    let reading = |number: u64| {
        let time = SECOND + number * 20_000_000;
        own::ClockWindow {
            device: device(time),
            earliest: time - 300 - number * 37 % 400,
            latest: time + 300 + number * 53 % 400,
        }
    };
    let fit = own::fit((0..READINGS).map(reading).collect()).expect("the readings agree");
    assert!(fit.agreeing as u64 > READINGS * 9 / 10, "{}", fit.agreeing);
    assert!(fit.error < 2_000, "{}", fit.error);
    for time in (SECOND..300 * SECOND).step_by(777_777_777) {
        assert!(off(Nanos(fit.line.at(device(time))), Nanos(time)) <= fit.error);
    }
}

#[test]
fn an_agent_that_does_not_count_nanoseconds_is_fitted() {
    let host = HOST.ten_seconds();
    // 27 MHz.
    let agent = AgentClock::new(&host, &HOST.pairs(|t| 1000 + t * 27 / 1000));
    assert_eq!(agent.domain(), ClockDomain::Own);
    let found = agent
        .to_boottime(DeviceTime(1000 + 4 * SECOND * 27 / 1000))
        .unwrap();
    let truth = HOST.clock(SystemClock::Boottime, 4 * SECOND);
    assert!(off(found, truth) <= agent.error_bound().0, "{agent}");
    let text = agent.describe();
    assert!(text.contains("0.026999 units a nanosecond"), "{text}");
    // The bound has a unit.
    assert!(
        text.contains("of 200 readings agree, within ") && text.ends_with(" ns)"),
        "{text}"
    );
}

#[test]
fn the_drift_of_an_agents_clock_is_stated() {
    let device = |t: u64| 77 * SECOND + t + t / 1_000_000 * 35;
    let text = AgentClock::new(&HOST.ten_seconds(), &HOST.pairs(device)).describe();
    // The host's clocks run 20 ppm fast against its ticks.
    assert!(
        text.starts_with("a clock of its own, +14.99 ppm against the host's "),
        "{text}"
    );
}

#[test]
fn wide_readings_sharpen_each_other() {
    let host = HOST.ten_seconds();
    let device = |t: u64| 5 * SECOND + t;
    // Each window is 100 us wide, the clock read now at its beginning, now at its end.
    let reading = |i: u64| {
        let elapsed = SECOND + i * 10_000_019;
        HOST.pair(elapsed, 100_000, device(elapsed + i % 2 * 100_000))
    };
    let pairs: Vec<_> = (0..50).map(reading).collect();
    let agent = AgentClock::new(&host, &pairs);
    // 20 ppm in half a second is 10 us.
    assert!(agent.error_bound().0 < 25_000, "{agent}");
}

#[test]
fn readings_that_miss_the_line_by_less_than_their_width_agree_with_it() {
    // The clock jitters by 120 ns, and is read within 100 ns.
    let reading = |number: u64| {
        let time = SECOND + number * 20_000_000;
        own::ClockWindow {
            device: time,
            earliest: time - 50 + number % 2 * 120,
            latest: time + 50 + number % 2 * 120,
        }
    };
    let fit = own::fit((0..100).map(reading).collect()).expect("the readings agree");
    assert_eq!(fit.agreeing, 100);
    assert!((70..=170).contains(&fit.error), "{}", fit.error);
}

#[test]
fn false_readings_are_outvoted() {
    let host = HOST.ten_seconds();
    let device = |t: u64| 77 * SECOND + t;
    let mut pairs = HOST.pairs(device);
    for (i, pair) in pairs.iter_mut().enumerate().filter(|(i, _)| i % 11 == 3) {
        pair.device.0 += i as u64 * 10_000_000;
    }
    let agent = AgentClock::new(&host, &pairs);
    assert_eq!(agent.domain(), ClockDomain::Own);
    let truth = HOST.clock(SystemClock::Boottime, 4 * SECOND);
    let found = agent.to_boottime(DeviceTime(device(4 * SECOND))).unwrap();
    assert!(off(found, truth) < 20_000, "{agent}");
}

#[test]
fn contradictory_readings_give_no_clock() {
    let host = HOST.ten_seconds();
    let agent = AgentClock::new(
        &host,
        &HOST.pairs(|t| t.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20 | 1),
    );
    assert_eq!(agent.domain(), ClockDomain::Unknown);
    assert_eq!(agent.to_boottime(DeviceTime(7)), None);
    assert!(agent.describe().contains("contradict"));
}

#[test]
fn an_agent_without_readings_is_unknown() {
    let agent = AgentClock::new(&HOST.ten_seconds(), &[]);
    assert_eq!(agent.domain(), ClockDomain::Unknown);
    assert_eq!(agent.describe(), "unknown: never read with the host's");
}

#[test]
fn the_clocks_of_this_machine_convert_within_their_windows() {
    let first = snapshot();
    let frequency = frequency();
    let between = snapshot();
    let last = snapshot();
    let clock = HostClock::new(init(), frequency, &[first, between, last]).unwrap();
    let (before, after) = (
        clock.to_boottime(first.before),
        clock.to_boottime(first.after),
    );
    assert!(before <= first.boottime && first.boottime <= after);
    let found = clock.to_boottime(between.before);
    assert!(first.boottime <= found && found <= last.boottime);

    // A clock read now lies between the ticks around it, give or take the bound.
    for system in SystemClock::ALL {
        let before = now_ordered();
        let read = system.read();
        let after = now_ordered();
        let clock = HostClock::new(init(), frequency, &[first, between, last, snapshot()]).unwrap();
        if system == SystemClock::Realtime {
            continue; // may be set while the test runs
        }
        let slack = clock.error_bound().0 + 1;
        assert!(clock.to(system, before).0 <= read.0 + slack, "{system:?}");
        assert!(read.0 <= clock.to(system, after).0 + slack, "{system:?}");
    }
}

#[test]
fn an_agent_that_shows_a_clock_of_this_machine_is_found_out() {
    let mut snapshots = vec![snapshot()];
    let mut pairs = Vec::new();
    for _ in 0..50 {
        let before = now_ordered();
        let device = DeviceTime(SystemClock::MonotonicRaw.read().0);
        let after = now_ordered();
        pairs.push(ClockPair {
            before,
            after,
            device,
            ..ClockPair::blank()
        });
    }
    let frequency = frequency();
    snapshots.push(snapshot());
    let host = HostClock::new(init(), frequency, &snapshots).unwrap();
    let agent = AgentClock::new(&host, &pairs);
    let middle = pairs[25];
    let found = agent.to_boottime(middle.device).unwrap();
    let slack = agent.error_bound().0 + host.error_bound().0;
    assert!(
        host.to_boottime(middle.before).0 <= found.0 + slack,
        "{agent}"
    );
    assert!(
        found.0 <= host.to_boottime(middle.after).0 + slack,
        "{agent}"
    );
}

fn any_number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..1000u64,
        Just(u64::MAX),
        Just(0),
        (0..64u32).prop_map(|n| 1 << n)
    ]
}

prop_compose! {
    fn any_snapshot()(n in proptest::array::uniform6(any_number())) -> ClockSnapshot {
        ClockSnapshot {
            before: Ticks(n[0]),
            after: Ticks(n[1]),
            monotonic: Nanos(n[2]),
            monotonic_raw: Nanos(n[3]),
            boottime: Nanos(n[4]),
            realtime: Nanos(n[5]),
            ..ClockSnapshot::blank()
        }
    }
}

prop_compose! {
    fn any_pair()(n in proptest::array::uniform3(any_number())) -> ClockPair {
        ClockPair {
            before: Ticks(n[0]),
            after: Ticks(n[1]),
            device: DeviceTime(n[2]),
            ..ClockPair::blank()
        }
    }
}

prop_compose! {
    fn any_host()(
        frequency in 1_000_000..6_000_000_000u64,
        slew in -500_000..500_000i64,
        raw_ahead in 0..SECOND,
    ) -> Host {
        Host { frequency, slew, raw_ahead }
    }
}

proptest! {
    #[test]
    fn hostile_records_neither_panic_nor_make_time_run_backwards(
        frequency in any_number(),
        snapshots in proptest::collection::vec(any_snapshot(), 1..20),
        pairs in proptest::collection::vec(any_pair(), 0..60),
        mut times in proptest::collection::vec(any_number(), 1..40),
    ) {
        let Ok(host) = HostClock::new(TickSource::Tsc, frequency, &snapshots) else {
            return Ok(());
        };
        times.sort_unstable();
        for clock in SystemClock::ALL {
            let there: Vec<_> = times.iter().map(|&t| host.to(clock, Ticks(t))).collect();
            prop_assert!(there.is_sorted());
            let back: Vec<_> = times.iter().map(|&t| host.ticks_of(clock, Nanos(t))).collect();
            prop_assert!(back.is_sorted());
        }
        for &time in &times {
            prop_assert!(host.error_at(Ticks(time)) >= host.error_bound());
        }
        let agent = AgentClock::new(&host, &pairs);
        let there: Vec<_> = times.iter().filter_map(|&t| agent.to_boottime(DeviceTime(t))).collect();
        prop_assert!(there.is_sorted());
        prop_assert!(!agent.describe().is_empty());
    }

    #[test]
    fn an_honest_host_converts_within_the_bound_and_back(
        host in any_host(),
        reads in proptest::collection::vec((0..300u64, 0..300u64), 2..30),
        elapsed in proptest::collection::vec(0..SECOND, 1..30),
    ) {
        let period = SECOND / 4;
        let snapshots: Vec<_> = reads.iter().zip(0..)
            .map(|(&(width, at), i)| host.snapshot(i * period, width, at))
            .collect();
        let clock = host.convert(&snapshots);
        let tick = SECOND / host.frequency + 1;
        for elapsed in elapsed {
            let elapsed = elapsed % ((reads.len() as u64 - 1) * period);
            let ticks = host.ticks(elapsed);
            let truth = host.clock(SystemClock::Boottime, elapsed);
            let found = clock.to_boottime(ticks);
            prop_assert!(off(found, truth) <= clock.error_bound().0 + 2 * tick);

            let back = clock.ticks_of(SystemClock::Boottime, found);
            prop_assert!(off(clock.to_boottime(back), found) <= tick);
        }
    }

    #[test]
    fn a_time_lies_within_its_stated_error_however_far_from_the_snapshots(
        host in any_host(),
        widths in (1..100_000u64, 1..100_000u64),
        first_is_late in any::<bool>(),
        elapsed in 0..100 * SECOND,
    ) {
        // Snapshots that are wrong by as much as their windows allow, in opposite directions.
        let (start, end) = (49 * SECOND, 51 * SECOND);
        let at = |width, is_late| if is_late { width } else { 0 };
        let clock = host.convert(&[
            host.snapshot(start, widths.0, at(widths.0, first_is_late)),
            host.snapshot(end, widths.1, at(widths.1, !first_is_late)),
        ]);
        let ticks = host.ticks(elapsed);
        let truth = host.clock(SystemClock::Boottime, elapsed);
        let tick = SECOND / host.frequency + 1;
        // A tick more for the rounding of each snapshot, which grows with the distance as their errors do.
        let rounding = 4 * tick * (1 + elapsed.abs_diff(50 * SECOND) / SECOND);
        let (found, error) = (clock.to_boottime(ticks), clock.error_at(ticks).0);
        prop_assert!(off(found, truth) <= error + rounding, "{} off, {} stated", off(found, truth), error);
    }

    #[test]
    fn an_honest_agent_converts_within_the_bound(
        host in any_host(),
        offset in 1..1_000_000 * SECOND,
        drift in -100_000..100_000i64,
        reads in proptest::collection::vec((200..20_000u64, 0.0..1.0f64), 1..100),
    ) {
        let clock = host.ten_seconds();
        let device = |t: u64| offset + (t as i64 + (t as i128 * drift as i128 / 1_000_000_000) as i64) as u64;
        let step = 10 * SECOND / reads.len() as u64;
        let pairs: Vec<_> = reads.iter().zip(0..)
            .map(|(&(width, at), i)| host.pair(i * step, width, device(i * step + (width as f64 * at) as u64)))
            .collect();
        let agent = AgentClock::new(&clock, &pairs);
        prop_assert_eq!(agent.domain(), ClockDomain::Own);
        // The bound covers all but one reading in twenty, and those are near.
        for pair in &pairs {
            let found = agent.to_boottime(pair.device).unwrap().0;
            let slack = agent.error_bound().0;
            let miss = clock.to_boottime(pair.before).0.saturating_sub(found)
                .max(found.saturating_sub(clock.to_boottime(pair.after).0));
            prop_assert!(miss <= slack + 20_000, "{} misses by {}", agent, miss);
        }
    }
}

#[test]
fn the_environment_chooses_the_source_of_ticks() {
    if std::env::var_os(CLOCK_VARIABLE).is_some() {
        let requested = TickSource::requested().unwrap();
        assert_eq!(requested, Some(TickSource::Monotonic));
        return assert_eq!(init(), TickSource::Monotonic);
    }
    assert_eq!(TickSource::requested().unwrap(), None);
    // The variable holds for a process as a whole: the test again, in one of its own.
    let again = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "clock::tests::the_environment_chooses_the_source_of_ticks",
        ])
        .env(CLOCK_VARIABLE, "monotonic")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&again.stdout);
    assert!(
        again.status.success() && said.contains("1 passed"),
        "{said}"
    );
}
