//! The host's clocks of one capture: ticks to nanoseconds and back.

use super::line::ClockLine;
use super::{SystemClock, TickSource};
use gputrail_record::{ClockSnapshot, Nanos, Ticks};

/// The capture holds no usable snapshot of the host's clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no usable clock snapshot: the times of this capture cannot be converted")]
pub struct NoSnapshot;

/// Assumed relative error of the nominal rate in a capture's header, which was measured over a short span.
const NOMINAL_RATE_ERROR: f64 = 1e-3;

/// Converts the ticks of one capture to nanoseconds of a system clock.
///
/// The conversion is piecewise linear through the capture's snapshots and continues outside them at the rate last
/// measured. It is monotonic for any snapshots, including damaged ones. An unknown time (0) stays 0, and a known time
/// never becomes 0.
#[derive(Clone, Debug)]
pub struct HostClock {
    source: TickSource,
    /// The usable snapshots, at least one, sorted by ticks.
    snapshots: Vec<ClockSnapshot>,
    /// Ticks to each clock, in the order of [`SystemClock::ALL`].
    lines: [ClockLine; 4],
    bound: u64,
}

impl HostClock {
    /// Creates the clock from `snapshots`, in any order. `source` and `frequency` (ticks per second) come from the
    /// capture's header; the frequency is used only where the snapshots do not give a rate.
    pub fn new(
        source: TickSource,
        frequency: u64,
        snapshots: &[ClockSnapshot],
    ) -> Result<HostClock, NoSnapshot> {
        let snapshots = usable(snapshots, frequency);
        let nominal = 1e9 / frequency as f64;
        let line = |clock: SystemClock| {
            let points = snapshots.iter().map(|s| (middle(s), clock.of(s).0));
            ClockLine::through(points.collect(), nominal).ok_or(NoSnapshot)
        };
        let [monotonic, boottime, raw, realtime] = SystemClock::ALL;
        let lines = [
            line(monotonic)?,
            line(boottime)?,
            line(raw)?,
            line(realtime)?,
        ];
        let mut clock = HostClock {
            source,
            snapshots,
            lines,
            bound: 0,
        };
        clock.bound = clock
            .widest()
            .div_ceil(2)
            .saturating_add(clock.boottime().unevenness());
        Ok(clock)
    }

    /// The tick source of the capture.
    pub fn source(&self) -> TickSource {
        self.source
    }

    /// CLOCK_BOOTTIME, the trace's clock, at `ticks`.
    #[inline]
    pub fn to_boottime(&self, ticks: Ticks) -> Nanos {
        self.to(SystemClock::Boottime, ticks)
    }

    /// Converts several times at once. Faster than one by one if they are close to each other.
    #[inline(always)]
    pub fn all_to_boottime<const N: usize>(&self, ticks: [Ticks; N]) -> [Nanos; N] {
        let near = if ticks.iter().all(|ticks| ticks.is_some()) {
            self.boottime().at_fast(ticks.map(|ticks| ticks.0))
        } else {
            None
        };
        match near {
            Some(times) => times.map(Nanos),
            None => ticks.map(|ticks| self.to_boottime(ticks)),
        }
    }

    /// The time of `clock` at `ticks`.
    #[inline(always)]
    pub fn to(&self, clock: SystemClock, ticks: Ticks) -> Nanos {
        if ticks.is_some() {
            Nanos(self.line(clock).at(ticks.0).max(1))
        } else {
            Nanos::NONE
        }
    }

    /// The ticks at which `clock` showed `time`.
    pub fn ticks_of(&self, clock: SystemClock, time: Nanos) -> Ticks {
        if time.is_some() {
            Ticks(self.line(clock).inverse(time.0).max(1))
        } else {
            Ticks::NONE
        }
    }

    /// The error bound of [`to_boottime`](HostClock::to_boottime) between the first snapshot and the last: half the
    /// widest snapshot window, plus the observed variation of the rate.
    pub fn error_bound(&self) -> Nanos {
        Nanos(self.bound)
    }

    /// The error bound at `ticks`. It grows with the distance from the snapshots.
    pub fn error_at(&self, ticks: Ticks) -> Nanos {
        let line = self.boottime();
        let rate_error = line.measured_span().map_or(NOMINAL_RATE_ERROR, |span| {
            (2 * u128::from(self.bound)) as f64 / span as f64
        });
        let growth = line.outside(ticks.0) as f64 * rate_error;
        Nanos(self.bound.saturating_add(growth.ceil() as u64))
    }

    /// CLOCK_BOOTTIME as a function of `clock`, with the error bound of that.
    pub(super) fn boottime_of(&self, clock: SystemClock) -> Option<(ClockLine, u64)> {
        let points = self.snapshots.iter().map(|s| (clock.of(s).0, s.boottime.0));
        let line = ClockLine::through(points.collect(), 1.0)?;
        let bound = match clock {
            SystemClock::Boottime => 0,
            _ => self.widest().saturating_add(line.unevenness()),
        };
        Some((line, bound))
    }

    fn line(&self, clock: SystemClock) -> &ClockLine {
        match clock {
            SystemClock::Monotonic => &self.lines[0],
            SystemClock::Boottime => &self.lines[1],
            SystemClock::MonotonicRaw => &self.lines[2],
            SystemClock::Realtime => &self.lines[3],
        }
    }

    fn boottime(&self) -> &ClockLine {
        self.line(SystemClock::Boottime)
    }

    /// The width of the widest snapshot window, in nanoseconds.
    fn widest(&self) -> u64 {
        let width = |s: &ClockSnapshot| {
            let line = self.boottime();
            line.at(s.after.0) - line.at(s.before.0)
        };
        self.snapshots.iter().map(width).max().unwrap_or(0)
    }
}

fn middle(snapshot: &ClockSnapshot) -> u64 {
    snapshot.before.0 + (snapshot.after - snapshot.before) / 2
}

/// The snapshots whose ticks are in order and whose window is not far wider than the median. A wide window means that
/// the thread was descheduled in every attempt, and would bend the line.
fn usable(snapshots: &[ClockSnapshot], frequency: u64) -> Vec<ClockSnapshot> {
    let orderly = |s: &&ClockSnapshot| s.before.is_some() && s.before <= s.after;
    let mut kept: Vec<ClockSnapshot> = snapshots.iter().filter(orderly).copied().collect();
    let mut widths: Vec<u64> = kept.iter().map(|s| s.after - s.before).collect();
    if !widths.is_empty() {
        let middle = widths.len() / 2;
        let median = *widths.select_nth_unstable(middle).1;
        let limit = median.saturating_mul(4).max(frequency / 1_000_000);
        kept.retain(|s| s.after - s.before <= limit);
    }
    kept.sort_unstable_by_key(|s| s.before);
    kept
}
