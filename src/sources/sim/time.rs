//! Virtual time and its clocks: the host's ticks, and for each device a clock with its own offset and drift.

use super::random::{Purpose, Random};
use gputrail_buffer::clock;
use gputrail_record::{AgentId, ClockPair, DeviceTime, Nanos, Ticks};
use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment of virtual time, in nanoseconds since the machine was started.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(pub(super) u64);

impl Moment {
    /// The beginning of every simulation: the machine has been up for two minutes.
    pub(super) const BEGIN: Moment = Moment(120_000_000_000);
}

impl Add<Nanos> for Moment {
    type Output = Moment;

    fn add(self, span: Nanos) -> Moment {
        Moment(self.0 + span.0)
    }
}

impl Sub for Moment {
    type Output = Nanos;

    fn sub(self, earlier: Moment) -> Nanos {
        Nanos(self.0 - earlier.0)
    }
}

/// A span of microseconds.
pub(super) const fn us(microseconds: u64) -> Nanos {
    Nanos(microseconds * 1_000)
}

/// The clock that stamps what the host's threads do.
#[derive(Copy, Clone, Debug)]
pub(super) enum HostTime {
    /// [`TickSource::Virtual`](gputrail_buffer::clock::TickSource::Virtual): nanoseconds.
    Virtual,
    /// The ticks of this process. Simulated time passes as fast as real time.
    Real {
        /// The ticks at [`Moment::BEGIN`].
        begin: Ticks,
        /// Ticks of a second.
        frequency: u64,
    },
}

impl HostTime {
    /// The clock of this process, from now on.
    pub(super) fn real() -> HostTime {
        HostTime::Real {
            frequency: clock::frequency(),
            begin: clock::now(),
        }
    }

    /// The ticks at `moment`.
    pub(super) fn ticks(self, moment: Moment) -> Ticks {
        match self {
            HostTime::Virtual => Ticks(moment.0),
            HostTime::Real { begin, frequency } => {
                let nanos = u128::from((moment - Moment::BEGIN).0);
                Ticks(begin.0 + (nanos * u128::from(frequency) / 1_000_000_000) as u64)
            }
        }
    }

    /// Sleeps until `moment` is at most `ahead` in the future.
    pub(super) fn wait(self, moment: Moment, ahead: Duration) {
        let HostTime::Real { frequency, .. } = self else {
            return;
        };
        let ticks = self.ticks(moment).0.saturating_sub(clock::now().0);
        let left = Duration::from_secs_f64(ticks as f64 / frequency as f64);
        if left > ahead {
            std::thread::sleep(left);
        }
    }
}

/// The clock of a device: nanoseconds from its own start, at a varying rate that differs from the host's by some parts
/// per million.
#[derive(Clone, Debug)]
pub(super) struct SimClock {
    random: Random,
    /// The device times at which segments of [`SEGMENT`] nanoseconds begin; never empty.
    segments: Vec<ClockSegment>,
}

#[derive(Copy, Clone, Debug)]
struct ClockSegment {
    device: u64,
    /// The deviation of the device's rate in parts per billion.
    drift: i64,
}

/// The interval in which the rate changes, in nanoseconds.
const SEGMENT: u64 = 25_000_000;

impl SimClock {
    /// The clock of device `number`.
    pub(super) fn new(seed: u64, number: usize) -> SimClock {
        let mut random = Random::fork(seed, Purpose::Clock, number);
        let first = ClockSegment {
            device: 40_000_000_000 + random.below(20_000_000_000),
            drift: random.below(80_000) as i64 - 40_000,
        };
        SimClock {
            random,
            segments: vec![first],
        }
    }

    /// The reading at `moment`.
    pub(super) fn read(&mut self, moment: Moment) -> DeviceTime {
        let since = moment.0 - Moment::BEGIN.0;
        let index = (since / SEGMENT) as usize;
        while self.segments.len() <= index {
            let last = *self.segments.last().expect("never empty");
            self.segments.push(ClockSegment {
                device: last.at(SEGMENT),
                drift: last.drift + self.random.below(2_001) as i64 - 1_000,
            });
        }
        DeviceTime(self.segments[index].at(since % SEGMENT))
    }

    /// Reads the clock together with the host's ticks at `moment`.
    pub(super) fn pair(&mut self, agent: AgentId, moment: Moment, host: HostTime) -> ClockPair {
        let before = Nanos(300 + self.random.below(400));
        let after = Nanos(300 + self.random.below(400));
        let mut record = ClockPair::blank();
        record.agent = agent;
        record.before = host.ticks(moment);
        record.device = self.read(moment + before);
        record.after = host.ticks(moment + before + after);
        record
    }
}

impl ClockSegment {
    fn at(self, offset: u64) -> u64 {
        (self.device + offset).wrapping_add_signed(offset as i64 * self.drift / 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_clock_never_goes_back_and_drifts_by_parts_per_million() {
        for number in 0..8 {
            let mut clock = SimClock::new(3, number);
            let begin = clock.read(Moment::BEGIN).0;
            let mut last = begin;
            for step in 1..2_000 {
                let now = clock.read(Moment::BEGIN + us(step * 500)).0;
                assert!(now > last);
                last = now;
            }
            let elapsed = (last - begin) as i64;
            let drift = (elapsed - 1_999 * 500_000).abs();
            assert!(
                drift < 1_000_000_000 / 1_000_000 * 90,
                "{drift} ns in a second"
            );
        }
    }

    #[test]
    fn a_pair_encloses_the_moment_it_was_read_at() {
        let mut clock = SimClock::new(3, 0);
        let moment = Moment::BEGIN + us(777);
        let pair = clock.pair(AgentId(1), moment, HostTime::Virtual);
        assert!(pair.before < pair.after);
        let early = clock.read(moment);
        let late = clock.read(moment + us(2));
        assert!(early <= pair.device && pair.device <= late);
    }
}
