//! Fits an agent's own clock to the windows of host time in which it was read.
//!
//! A reading says only that the clock showed `device` at some moment of its window. Over a stretch of time that is
//! short enough for a steady drift, every reading confines the clock's offset to an interval, and the offset lies where
//! most intervals overlap (Marzullo's algorithm, which NTP uses to select servers). Narrow readings and overlapping
//! wide ones sharpen the result, and false ones are outvoted. A line through the offsets of successive stretches
//! follows the drift. Drift varies over a long time, so each stretch uses the rate at which more of its readings
//! overlap: its own, or that of all readings.

use super::line::{ClockLine, median};

/// A reading: the agent's clock showed `device` at some moment between two host times.
#[derive(Copy, Clone, Debug)]
pub(super) struct ClockWindow {
    pub device: u64,
    /// At most `latest`.
    pub earliest: u64,
    pub latest: u64,
}

impl ClockWindow {
    fn width(&self) -> u64 {
        self.latest - self.earliest
    }

    fn middle(&self) -> u64 {
        self.earliest + self.width() / 2
    }

    /// The distance of `time` from the window.
    fn misses(&self, time: u64) -> u64 {
        self.earliest
            .saturating_sub(time)
            .max(time.saturating_sub(self.latest))
    }
}

/// A fitted clock.
pub(super) struct Fit {
    /// From device times to host times.
    pub line: ClockLine,
    /// The error bound of the line, in host time.
    pub error: u64,
    /// The number of readings that agree with the line.
    pub agreeing: usize,
}

/// The fewest readings of a stretch.
const MIN_READINGS: usize = 16;
/// The least average length of a stretch, in host time.
const MIN_STRETCH: u64 = 1_000_000_000;

/// The clock on which most `windows` agree, or `None` if there is none.
pub(super) fn fit(mut windows: Vec<ClockWindow>) -> Option<Fit> {
    windows.sort_unstable_by_key(|w| (w.device, w.earliest));
    let (first, last) = (windows.first()?, windows.last()?);
    let span = last.middle().abs_diff(first.middle());
    let typical = median_width(&windows);
    let rate = rate(&windows, typical);

    let stretches = (windows.len() / MIN_READINGS)
        .min((span / MIN_STRETCH) as usize)
        .max(1);
    let mut half_width = 0;
    let mut knots = Vec::with_capacity(stretches);
    for stretch in windows.chunks(windows.len().div_ceil(stretches)) {
        let usual = agreement(stretch, rate);
        let own = agreement(stretch, self::rate(stretch, typical));
        let best = if own.overlapping > usual.overlapping {
            own
        } else {
            usual
        };
        half_width = half_width.max(best.half_width);
        knots.push(best.knot);
    }
    let line = ClockLine::through(knots, rate)?;

    // The bound comes from the measured distances of the readings.
    let mut misses: Vec<u64> = windows
        .iter()
        .map(|w| w.misses(line.at(w.device)))
        .collect();
    let agreeing = misses.iter().filter(|&&miss| miss <= typical).count();
    if agreeing * 2 <= windows.len() {
        return None;
    }
    let percentile = (misses.len() * 95).div_ceil(100) - 1;
    let missed = *misses.select_nth_unstable(percentile).1;
    Some(Fit {
        line,
        error: half_width.saturating_add(missed),
        agreeing,
    })
}

fn median_width(windows: &[ClockWindow]) -> u64 {
    let mut widths: Vec<u64> = windows.iter().map(ClockWindow::width).collect();
    let middle = widths.len() / 2;
    *widths.select_nth_unstable(middle).1
}

/// Host nanoseconds per device unit, by the Theil-Sen estimator: the median over pairs of readings half the series
/// apart, which tolerates a quarter of false readings. The rate is 1 unless the measured one differs by more than its
/// uncertainty.
fn rate(windows: &[ClockWindow], typical: u64) -> f64 {
    let half = windows.len().div_ceil(2);
    // An odd and an even distance: if two kinds of readings alternate, either distance alone is biased.
    let pairs = [half, half + 1].into_iter().flat_map(|apart| {
        let later = windows.get(apart..).unwrap_or_default();
        windows.iter().zip(later)
    });
    let mut span = 0;
    let mut rates = Vec::with_capacity(windows.len());
    for (from, to) in pairs {
        let device = to.device - from.device;
        let host = to.middle().saturating_sub(from.middle());
        if device > 0 && host > 0 {
            span = span.max(host);
            rates.push(host as f64 / device as f64);
        }
    }
    let Some(measured) = median(&mut rates) else {
        return 1.0;
    };
    let uncertainty = typical as f64 / span as f64;
    if (measured - 1.0).abs() <= uncertainty {
        1.0
    } else {
        measured
    }
}

/// Where most readings of a stretch overlap.
struct Agreement {
    /// Device time and host time in the middle of the stretch.
    knot: (u64, u64),
    /// Half the width of the overlap, in host time.
    half_width: u64,
    /// The number of readings that overlap there.
    overlapping: usize,
}

/// Finds where most readings of a stretch overlap, given the clock's rate.
fn agreement(stretch: &[ClockWindow], rate: f64) -> Agreement {
    let origin = stretch[stretch.len() / 2];
    // Relative to the origin, so that an f64 represents nanoseconds.
    let offset = |w: &ClockWindow, time: u64| {
        let elapsed = (i128::from(w.device) - i128::from(origin.device)) as f64;
        (i128::from(time) - i128::from(origin.earliest)) as f64 - elapsed * rate
    };
    // Openings sort before closings at the same position: intervals that touch overlap.
    let mut edges: Vec<(f64, bool)> = stretch
        .iter()
        .flat_map(|w| [(offset(w, w.earliest), false), (offset(w, w.latest), true)])
        .collect();
    edges.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));

    let (mut open, mut most) = (0usize, 0);
    let mut overlap = (0.0, 0.0);
    for (i, &(at, closes)) in edges.iter().enumerate() {
        if closes {
            open -= 1;
        } else {
            open += 1;
            if open > most {
                most = open;
                // The next edge is a closing, or another opening that becomes the new maximum.
                overlap = (at, edges.get(i + 1).map_or(at, |next| next.0));
            }
        }
    }
    let (low, high) = overlap;
    let time = i128::from(origin.earliest) + f64::midpoint(low, high).round() as i128;
    let time = time.clamp(0, i128::from(u64::MAX)) as u64;
    Agreement {
        knot: (origin.device, time),
        half_width: ((high - low) / 2.0).ceil() as u64,
        overlapping: most,
    }
}
