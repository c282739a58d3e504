//! The clock of one agent: what it is, found by measuring, and its times told in CLOCK_BOOTTIME.
//!
//! Runtimes say in words at best which clock their devices' times come from, and some say it
//! wrong. Pairs do not: the agent's clock was read at some moment between two ticks, so it is a
//! system clock if that clock, and no other, showed such times in these windows.

use super::line::Line;
use super::own::{self, Window};
use super::{HostClock, SystemClock};
use crate::record::{ClockPair, DeviceTime, Nanos};
use std::fmt;

/// What an agent's clock is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// A clock of the operating system.
    System(SystemClock),
    /// A clock of its own, with its own offset and drift.
    Own,
    /// Not known: nothing ties it to the host, or what does contradicts itself.
    Unknown,
}

/// Of a hundred pairs, how many must agree with a system clock for it to be the agent's.
const SHARE: usize = 95;

/// Turns the device times of one agent into nanoseconds.
#[derive(Clone, Debug)]
pub struct AgentClock {
    domain: Domain,
    /// From device times to CLOCK_BOOTTIME; `None` only in an unknown domain.
    line: Option<Line>,
    bound: Nanos,
    /// Pairs that were usable, and how many of them agree with the line.
    pairs: usize,
    agreeing: usize,
}

impl AgentClock {
    /// The clock that the `pairs` of one agent tell, in any order. Pairs without a time or with
    /// ticks in the wrong order are passed over.
    pub fn new(host: &HostClock, pairs: &[ClockPair]) -> AgentClock {
        let known =
            |p: &&ClockPair| p.device.is_some() && p.before.is_some() && p.before <= p.after;
        let pairs: Vec<&ClockPair> = pairs.iter().filter(known).collect();
        let resolution = resolution(&pairs);
        system(host, &pairs, resolution)
            .or_else(|| fitted(host, &pairs, resolution))
            .unwrap_or(AgentClock {
                domain: Domain::Unknown,
                line: None,
                bound: Nanos(u64::MAX),
                pairs: pairs.len(),
                agreeing: 0,
            })
    }

    /// What the clock is.
    pub fn domain(&self) -> Domain {
        self.domain
    }

    /// CLOCK_BOOTTIME at `time`; `None` if the time or the clock is not known.
    #[inline]
    pub fn to_boottime(&self, time: DeviceTime) -> Option<Nanos> {
        let line = self.line.as_ref().filter(|_| time.is_some())?;
        Some(Nanos(line.at(time.0).max(1)))
    }

    /// The same of times that belong together, which are mostly near each other.
    #[cfg(feature = "perfetto")]
    #[inline(always)]
    pub(crate) fn all_to_boottime<const N: usize>(
        &self,
        times: [DeviceTime; N],
    ) -> [Option<Nanos>; N] {
        let near = match (&self.line, times.iter().all(|time| time.is_some())) {
            (Some(line), true) => line.at_near(times.map(|time| time.0)),
            _ => None,
        };
        match near {
            Some(times) => times.map(|time| Some(Nanos(time))),
            None => times.map(|time| self.to_boottime(time)),
        }
    }

    /// How far [`to_boottime`](AgentClock::to_boottime) may be off while the pairs last. Against a
    /// converted tick, the bounds of both add up.
    pub fn error_bound(&self) -> Nanos {
        self.bound
    }

    /// In words: which clock, found by how many pairs, how exact.
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
            Domain::System(clock) => write!(f, "{}", clock.name())?,
            Domain::Own => {
                write!(f, "a clock of its own")?;
                if let Some(rate) = self.line.as_ref().and_then(Line::mean_rate) {
                    // The rate is nanoseconds of the host in a unit of the device.
                    let drift = (1.0 / rate - 1.0) * 1e6;
                    match drift.abs() {
                        ..1000.0 => write!(f, ", {drift:+.2} ppm against the host's")?,
                        _ => write!(f, ", {:.6} units a nanosecond", 1.0 / rate)?,
                    }
                }
            }
            Domain::Unknown if *pairs == 0 => {
                return write!(f, "unknown: never read with the host's");
            }
            Domain::Unknown => return write!(f, "unknown: {pairs} readings contradict each other"),
        }
        write!(
            f,
            " ({agreeing} of {pairs} readings agree, within {})",
            Span(self.bound)
        )
    }
}

/// A span of time with a unit that suits it.
struct Span(Nanos);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.0 {
            nanos @ ..1_000 => write!(f, "{nanos} ns"),
            nanos @ 1_000..1_000_000 => write!(f, "{:.1} us", nanos as f64 / 1e3),
            nanos @ 1_000_000..1_000_000_000 => write!(f, "{:.1} ms", nanos as f64 / 1e6),
            nanos => write!(f, "{:.1} s", nanos as f64 / 1e9),
        }
    }
}

/// The steps in which the clock seems to advance, at most a millisecond. A time may be that much
/// older than its reading.
fn resolution(pairs: &[&ClockPair]) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let step = pairs.iter().fold(0, |step, pair| gcd(step, pair.device.0));
    // A few times may be round by chance.
    if pairs.len() < 8 {
        1
    } else {
        step.clamp(1, 1_000_000)
    }
}

/// The system clock whose times the agent's are, if there is one.
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
    // Stable: of those that fit equally well, the preferred one comes first.
    candidates.sort_by_key(|&(_, n)| std::cmp::Reverse(n));
    let &(clock, agreeing) = candidates.first()?;
    let (line, error) = host.boottime_of(clock)?;

    // Where the windows are too wide to tell two clocks apart, it may be either.
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
        domain: Domain::System(clock),
        bound: Nanos(error.saturating_add(ambiguity).saturating_add(resolution)),
        line: Some(line),
        pairs: pairs.len(),
        agreeing,
    })
}

/// The agent's own clock, fitted to the pairs, if most of them agree on one.
fn fitted(host: &HostClock, pairs: &[&ClockPair], resolution: u64) -> Option<AgentClock> {
    let windows = pairs.iter().map(|pair| Window {
        device: pair.device.0,
        earliest: host.to_boottime(pair.before).0,
        latest: host.to_boottime(pair.after).0,
    });
    let fit = own::fit(windows.collect())?;
    Some(AgentClock {
        domain: Domain::Own,
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
