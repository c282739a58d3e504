//! The clock of one agent, identified from measurements and converted to CLOCK_BOOTTIME.
//!
//! Runtimes describe the clock of their device times vaguely at best, and some describe it wrongly. Clock pairs decide
//! instead: the agent's clock was read at some moment between two ticks. It is a system clock if exactly that clock
//! showed the device's times within these windows.

use super::line::ClockLine;
use super::own::{self, ClockWindow};
use super::{HostClock, SystemClock};
use gputrail_record::{ClockPair, DeviceTime, Nanos, count};
use std::fmt;

/// The clock domain of an agent.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClockDomain {
    /// A clock of the operating system.
    System(SystemClock),
    /// A clock of the agent's own, with its own offset and drift.
    Own,
    /// Unknown: there are no pairs with the host's clock, or they contradict each other.
    Unknown,
}

/// The percentage of pairs that must agree with a system clock for it to be the agent's.
const SHARE: usize = 95;

/// Converts the device times of one agent to nanoseconds.
#[derive(Clone, Debug)]
pub struct AgentClock {
    domain: ClockDomain,
    /// From device times to CLOCK_BOOTTIME; `None` only in an unknown domain.
    line: Option<ClockLine>,
    bound: Nanos,
    /// Usable pairs, and how many of them agree with the line.
    pairs: usize,
    agreeing: usize,
}

impl AgentClock {
    /// Identifies the clock from the agent's `pairs`, in any order. Pairs without a time or with ticks in the wrong
    /// order are ignored.
    pub fn new(host: &HostClock, pairs: &[ClockPair]) -> AgentClock {
        let known =
            |p: &&ClockPair| p.device.is_some() && p.before.is_some() && p.before <= p.after;
        let pairs: Vec<&ClockPair> = pairs.iter().filter(known).collect();
        let resolution = resolution(&pairs);
        system(host, &pairs, resolution)
            .or_else(|| fitted(host, &pairs, resolution))
            .unwrap_or(AgentClock {
                domain: ClockDomain::Unknown,
                line: None,
                bound: Nanos(u64::MAX),
                pairs: pairs.len(),
                agreeing: 0,
            })
    }

    /// The clock domain.
    pub fn domain(&self) -> ClockDomain {
        self.domain
    }

    /// CLOCK_BOOTTIME at `time`, or `None` if the time or the clock is unknown.
    #[inline]
    pub fn to_boottime(&self, time: DeviceTime) -> Option<Nanos> {
        let line = self.line.as_ref().filter(|_| time.is_some())?;
        Some(Nanos(line.at(time.0).max(1)))
    }

    /// Converts several times at once. Faster than one by one if they are close to each other.
    #[inline(always)]
    pub fn all_to_boottime<const N: usize>(&self, times: [DeviceTime; N]) -> [Option<Nanos>; N] {
        let near = match (&self.line, times.iter().all(|time| time.is_some())) {
            (Some(line), true) => line.at_fast(times.map(|time| time.0)),
            _ => None,
        };
        match near {
            Some(times) => times.map(|time| Some(Nanos(time))),
            None => times.map(|time| self.to_boottime(time)),
        }
    }

    /// The error bound of [`to_boottime`](AgentClock::to_boottime) within the span of the pairs. Compared with a
    /// converted tick, the bounds of both clocks add up.
    pub fn error_bound(&self) -> Nanos {
        self.bound
    }

    /// Describes the clock: its domain, the number of pairs that agree, and its error bound.
    pub fn describe(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for AgentClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AgentClock {
            pairs, agreeing, ..
        } = self;
        match self.domain {
            ClockDomain::System(clock) => write!(f, "{}", clock.name())?,
            ClockDomain::Own => {
                write!(f, "a clock of its own")?;
                if let Some(rate) = self.line.as_ref().and_then(ClockLine::mean_rate) {
                    // The rate is host nanoseconds per device unit.
                    let drift = (1.0 / rate - 1.0) * 1e6;
                    match drift.abs() {
                        ..1000.0 => write!(f, ", {drift:+.2} ppm against the host's")?,
                        _ => write!(f, ", {:.6} units a nanosecond", 1.0 / rate)?,
                    }
                }
            }
            ClockDomain::Unknown if *pairs == 0 => {
                return write!(f, "unknown: never read with the host's");
            }
            ClockDomain::Unknown => {
                return write!(f, "unknown: {pairs} readings contradict each other");
            }
        }
        write!(
            f,
            " ({agreeing} of {} agree, within {})",
            count(*pairs as u64, "reading"),
            ReadableSpan(self.bound)
        )
    }
}

/// A time span, shown in a suitable unit.
struct ReadableSpan(Nanos);

impl fmt::Display for ReadableSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.0 {
            nanos @ ..1_000 => write!(f, "{nanos} ns"),
            nanos @ 1_000..1_000_000 => write!(f, "{:.1} us", nanos as f64 / 1e3),
            nanos @ 1_000_000..1_000_000_000 => write!(f, "{:.1} ms", nanos as f64 / 1e6),
            nanos => write!(f, "{:.1} s", nanos as f64 / 1e9),
        }
    }
}

/// The step size of the clock, at most a millisecond: the greatest common divisor of its readings. A reading may be
/// that much older than its moment.
fn resolution(pairs: &[&ClockPair]) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let step = pairs.iter().fold(0, |step, pair| gcd(step, pair.device.0));
    // A few readings may share a divisor by chance.
    if pairs.len() < 8 {
        1
    } else {
        step.clamp(1, 1_000_000)
    }
}

/// Matches the pairs with each system clock. `None` if none of them fits.
fn system(host: &HostClock, pairs: &[&ClockPair], resolution: u64) -> Option<AgentClock> {
    let slack = host.error_bound().0.saturating_add(resolution);
    let agreeing = |clock: SystemClock| {
        let inside = |pair: &&&ClockPair| {
            let (before, after) = (host.to(clock, pair.before), host.to(clock, pair.after));
            let window = before.0.saturating_sub(slack)..=after.0.saturating_add(slack);
            window.contains(&pair.device.0)
        };
        pairs.iter().filter(inside).count()
    };
    let mut candidates: Vec<(SystemClock, usize)> = SystemClock::ALL
        .map(|clock| (clock, agreeing(clock)))
        .into_iter()
        .filter(|&(_, n)| n > 0 && n * 100 >= pairs.len() * SHARE)
        .collect();
    // The sort is stable: candidates that fit equally well stay in order of preference.
    candidates.sort_by_key(|&(_, n)| std::cmp::Reverse(n));
    let &(clock, agreeing) = candidates.first()?;
    let (line, error) = host.boottime_of(clock)?;

    // Windows too wide to tell two clocks apart leave both possible: their distance adds to the bound.
    let others = candidates[1..]
        .iter()
        .filter_map(|&(other, _)| host.boottime_of(other));
    let ambiguity = others
        .flat_map(|(other, _)| {
            let apart =
                |pair: &&ClockPair| line.at(pair.device.0).abs_diff(other.at(pair.device.0));
            pairs.iter().map(apart).collect::<Vec<_>>()
        })
        .max()
        .unwrap_or(0);
    Some(AgentClock {
        domain: ClockDomain::System(clock),
        bound: Nanos(error.saturating_add(ambiguity).saturating_add(resolution)),
        line: Some(line),
        pairs: pairs.len(),
        agreeing,
    })
}

/// Fits a clock of the agent's own to the pairs. `None` if most of them do not agree on one.
fn fitted(host: &HostClock, pairs: &[&ClockPair], resolution: u64) -> Option<AgentClock> {
    let windows = pairs.iter().map(|pair| ClockWindow {
        device: pair.device.0,
        earliest: host.to_boottime(pair.before).0,
        latest: host.to_boottime(pair.after).0,
    });
    let fit = own::fit(windows.collect())?;
    Some(AgentClock {
        domain: ClockDomain::Own,
        bound: Nanos(
            fit.error
                .saturating_add(host.error_bound().0)
                .saturating_add(resolution),
        ),
        line: Some(fit.line),
        pairs: pairs.len(),
        agreeing: fit.agreeing,
    })
}
