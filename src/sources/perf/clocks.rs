//! Conversion of device times to the clock that stamps samples. PoCL normally uses that same clock; clock pairs decide
//! whether a device does, and the times of other clocks are converted.

use gputrail_buffer::clock;
use gputrail_buffer::clock::{AgentClock, ClockDomain, HostClock, SystemClock};
use gputrail_capture::names::Names;
use gputrail_record::{AgentId, ClockPair, ClockSnapshot, DeviceTime};
use std::collections::HashMap;

/// The most snapshots of the host's clocks that are kept.
const MAX_SNAPSHOTS: usize = 64;
/// The number of clock pairs after which an agent's clock is no longer measured again.
const MAX_PAIRS: u64 = 20;

/// The clocks of the sampled agents.
pub struct Clocks {
    names: Names,
    snapshots: Vec<ClockSnapshot>,
    /// Each with the number of clock pairs that it was derived from.
    agents: HashMap<AgentId, (u64, DeviceClock)>,
}

/// The clock of an agent.
enum DeviceClock {
    /// The samples' clock, as far as the pairs show.
    Samples,
    /// Another clock, and its conversion.
    Other(Box<(HostClock, AgentClock)>),
}

impl Clocks {
    /// The clocks of the agents in `names`.
    pub fn new(names: Names) -> Clocks {
        Clocks {
            names,
            snapshots: vec![clock::snapshot()],
            agents: HashMap::new(),
        }
    }

    /// Converts two times of `agent` to the samples' clock.
    pub fn sample_times(&mut self, agent: AgentId, (begin, end): (u64, u64)) -> (u64, u64) {
        let read = self.names.clock_pairs_read(agent);
        let is_known = self
            .agents
            .get(&agent)
            .is_some_and(|(of, known)| match known {
                DeviceClock::Samples => *of == read || *of >= MAX_PAIRS,
                DeviceClock::Other(_) => *of == read,
            });
        if !is_known {
            let known = self.measure(agent);
            self.agents.insert(agent, (read, known));
        }
        let Some((_, DeviceClock::Other(clocks))) = self.agents.get(&agent) else {
            return (begin, end);
        };
        let (host, device) = &**clocks;
        let to = |time| {
            let boottime = device.to_boottime(DeviceTime(time))?;
            let ticks = host.ticks_of(SystemClock::Boottime, boottime);
            Some(host.to(SystemClock::MonotonicRaw, ticks).0)
        };
        to(begin).zip(to(end)).unwrap_or((begin, end))
    }

    fn measure(&mut self, agent: AgentId) -> DeviceClock {
        if self.snapshots.len() == MAX_SNAPSHOTS {
            self.snapshots.remove(1);
        }
        self.snapshots.push(clock::snapshot());
        let frequency = clock::frequency();
        let Ok(host) = HostClock::new(clock::init(), frequency, &self.snapshots) else {
            return DeviceClock::Samples;
        };
        let pairs = self.names.clock_pairs(agent);
        // The readings of the first calls, which may be long, fit several clocks.
        let is_of_samples = |pair: &ClockPair| {
            let shown = |ticks| host.to(SystemClock::MonotonicRaw, ticks).0;
            let error = host.error_bound().0;
            let earliest = shown(pair.before).saturating_sub(error);
            (earliest..=shown(pair.after).saturating_add(error)).contains(&pair.device.0)
        };
        if pairs.iter().all(is_of_samples) {
            return DeviceClock::Samples;
        }
        let device = AgentClock::new(&host, &pairs);
        match device.domain() {
            ClockDomain::System(SystemClock::MonotonicRaw) | ClockDomain::Unknown => {
                DeviceClock::Samples
            }
            _ => DeviceClock::Other(Box::new((host, device))),
        }
    }
}

/// The execution of a dispatch, by both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Execution {
    /// By the device's clock.
    pub device: (u64, u64),
    /// By the samples' clock.
    pub samples: (u64, u64),
}

impl Execution {
    /// Converts the time of a sample to the device's clock.
    pub fn to_device(self, time: u64) -> u64 {
        if self.device == self.samples {
            return time;
        }
        let length = |(begin, end): (u64, u64)| u128::from(end.saturating_sub(begin));
        let within = u128::from(time.saturating_sub(self.samples.0));
        let scaled = within * length(self.device) / length(self.samples).max(1);
        self.device.0 + (scaled as u64).min(length(self.device) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_record::Ticks;
    use std::time::Duration;

    const AGENT: AgentId = AgentId(1);

    fn read(names: &Names, device: impl Fn() -> u64) {
        for _ in 0..40 {
            let mut pair = ClockPair::blank();
            (pair.agent, pair.before) = (AGENT, clock::now_ordered());
            pair.device = DeviceTime(device());
            pair.after = clock::now_ordered();
            names.clock_pair(pair);
        }
    }

    #[test]
    fn times_of_the_samples_clock_are_unchanged() {
        let names = Names::new();
        let mut clocks = Clocks::new(names.clone());
        assert_eq!(
            clocks.sample_times(AGENT, (5, 9)),
            (5, 9),
            "nothing is known"
        );
        read(&names, || SystemClock::MonotonicRaw.read().0);
        let now = SystemClock::MonotonicRaw.read().0;
        assert_eq!(clocks.sample_times(AGENT, (now, now + 7)), (now, now + 7));
    }

    #[test]
    fn a_reading_that_fits_several_clocks_is_one_of_the_samples_clock() {
        let names = Names::new();
        let mut clocks = Clocks::new(names.clone());
        let (now, raw) = (clock::now_ordered(), SystemClock::MonotonicRaw.read());
        let mut pair = ClockPair::blank();
        (pair.agent, pair.device) = (AGENT, DeviceTime(raw.0));
        // CLOCK_MONOTONIC differs by some milliseconds for each hour since the start.
        let second = clock::ticks_of(Duration::from_secs(1));
        (pair.before, pair.after) = (Ticks(now.0 - second), Ticks(now.0 + second));
        names.clock_pair(pair);
        assert_eq!(
            clocks.sample_times(AGENT, (raw.0, raw.0 + 7)),
            (raw.0, raw.0 + 7)
        );
    }

    #[test]
    fn times_of_another_clock_are_converted() {
        // Clocks that differ from CLOCK_MONOTONIC_RAW in rate or offset.
        let day = 86_400_000_000_000;
        let ahead = move || SystemClock::MonotonicRaw.read().0 + day;
        let realtime = || SystemClock::Realtime.read().0;
        for device in [&ahead as &dyn Fn() -> u64, &realtime] {
            let names = Names::new();
            let mut clocks = Clocks::new(names.clone());
            read(&names, device);
            let before = SystemClock::MonotonicRaw.read().0;
            let time = device();
            let after = SystemClock::MonotonicRaw.read().0;
            let device = (time, time + 1_000_000);
            let samples = clocks.sample_times(AGENT, device);
            let slack = 10_000_000;
            assert!(before - slack <= samples.0 && samples.0 <= after + slack);
            let span = Execution { device, samples };
            assert_eq!(span.to_device(samples.0), device.0);
            assert_eq!(span.to_device(samples.1), device.1);
            let middle = span.to_device((samples.0 + samples.1) / 2);
            assert!(middle.abs_diff(time + 500_000) <= 2);
        }
    }
}
