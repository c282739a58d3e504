//! The host's clocks of one capture: ticks to nanoseconds and back.

use super::line::Line;
use super::{SystemClock, TickSource};
use crate::record::{ClockSnapshot, Nanos, Ticks};

/// A capture holds no snapshot of the host's clocks that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no usable clock snapshot: the times of this capture cannot be told")]
pub struct NoSnapshot;

/// Assumed error of a rate that stands in a capture's header: it was measured in no time.
const NOMINAL_RATE_ERROR: f64 = 1e-3;

/// Turns the ticks of one capture into nanoseconds of a system clock.
///
/// Piecewise linear through the capture's snapshots; before the first and after the last it goes
/// on at the rate last measured. Never runs backwards, whatever the snapshots hold.
/// A time that is not known (0) stays 0; a known one never becomes 0.
#[derive(Clone, Debug)]
pub struct HostClock {
    source: TickSource,
    /// Those in use, in the order of their ticks; at least one.
    snapshots: Vec<ClockSnapshot>,
    /// From ticks, in the order of [`SystemClock::ALL`].
    lines: [Line; 4],
    bound: u64,
}

impl HostClock {
    /// The clock that `snapshots` tell, in any order. `source` and `frequency`, in ticks a second, come
    /// from the capture's header; the frequency counts only where the snapshots do not tell.
    pub fn new(
        source: TickSource,
        frequency: u64,
        snapshots: &[ClockSnapshot],
    ) -> Result<HostClock, NoSnapshot> {
        let snapshots = usable(snapshots, frequency);
        let nominal = 1e9 / frequency as f64;
        let line = |clock: SystemClock| {
            let points = snapshots.iter().map(|s| (middle(s), clock.of(s).0));
            Line::through(points.collect(), nominal).ok_or(NoSnapshot)
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

    /// What the capture's ticks count.
    pub fn source(&self) -> TickSource {
        self.source
    }

    /// CLOCK_BOOTTIME, the trace's clock, at `ticks`.
    #[inline]
    pub fn to_boottime(&self, ticks: Ticks) -> Nanos {
        self.to(SystemClock::Boottime, ticks)
    }

    /// The same of times that belong together, which are mostly near each other.
    #[cfg(feature = "perfetto")]
    #[inline(always)]
    pub(crate) fn all_to_boottime<const N: usize>(&self, ticks: [Ticks; N]) -> [Nanos; N] {
        let near = match ticks.iter().all(|ticks| ticks.is_some()) {
            true => self.boottime().at_near(ticks.map(|ticks| ticks.0)),
            false => None,
        };
        match near {
            Some(times) => times.map(Nanos),
            None => ticks.map(|ticks| self.to_boottime(ticks)),
        }
    }

    /// What `clock` showed at `ticks`.
    #[inline(always)]
    pub fn to(&self, clock: SystemClock, ticks: Ticks) -> Nanos {
        if ticks.is_some() {
            Nanos(self.line(clock).at(ticks.0).max(1))
        } else {
            Nanos::NONE
        }
    }

    /// The ticks when `clock` showed `time`.
    pub fn ticks_of(&self, clock: SystemClock, time: Nanos) -> Ticks {
        if time.is_some() {
            Ticks(self.line(clock).inverse(time.0).max(1))
        } else {
            Ticks::NONE
        }
    }

    /// How far [`to_boottime`](HostClock::to_boottime) may be off between the first snapshot and
    /// the last: half the widest window in which the clocks were read, and how much the rate was
    /// seen to wander between snapshots.
    pub fn error_bound(&self) -> Nanos {
        Nanos(self.bound)
    }

    /// The same at `ticks`, which may lie outside the snapshots: there it grows with the distance.
    pub fn error_at(&self, ticks: Ticks) -> Nanos {
        let line = self.boottime();
        let rate_error = line.measured_span().map_or(NOMINAL_RATE_ERROR, |span| {
            (2 * u128::from(self.bound)) as f64 / span as f64
        });
        let growth = line.outside(ticks.0) as f64 * rate_error;
        Nanos(self.bound.saturating_add(growth.ceil() as u64))
    }

    /// CLOCK_BOOTTIME as a function of `clock`, and how far that may be off.
    pub(super) fn boottime_of(&self, clock: SystemClock) -> Option<(Line, u64)> {
        let points = self.snapshots.iter().map(|s| (clock.of(s).0, s.boottime.0));
        let line = Line::through(points.collect(), 1.0)?;
        let bound = match clock {
            SystemClock::Boottime => 0,
            _ => self.widest().saturating_add(line.unevenness()),
        };
        Some((line, bound))
    }

    fn line(&self, clock: SystemClock) -> &Line {
        match clock {
            SystemClock::Monotonic => &self.lines[0],
            SystemClock::Boottime => &self.lines[1],
            SystemClock::MonotonicRaw => &self.lines[2],
            SystemClock::Realtime => &self.lines[3],
        }
    }

    fn boottime(&self) -> &Line {
        self.line(SystemClock::Boottime)
    }

    /// The widest window of a snapshot, in nanoseconds.
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

/// The snapshots worth using: those read in good order, and not in a far wider window than usual
/// (the thread had lost its processor in every attempt), which would bend a good line.
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
