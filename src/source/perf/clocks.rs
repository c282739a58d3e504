//! Times of agents by the clock that stamps samples. PoCL stamps its work with that very clock, as far as is known; readings
//! of both tell, and where they say otherwise, times are told in the other's.

use crate::capture::names::Names;
use crate::clock;
use crate::clock::{AgentClock, Domain, HostClock, SystemClock};
use crate::record::{AgentId, ClockSnapshot, DeviceTime};
use std::collections::HashMap;

/// Snapshots of the host's clocks that are kept.
const SNAPSHOTS: usize = 64;
/// Readings of an agent's clock, beyond which no more are needed to tell which clock it is.
const ENOUGH: u64 = 20;

/// The clocks of the agents that are sampled.
pub struct Clocks {
    names: Names,
    snapshots: Vec<ClockSnapshot>,
    /// As they were after so many readings.
    agents: HashMap<AgentId, (u64, Known)>,
}

/// What is known of an agent's clock.
enum Known {
    /// It stamps samples, too; or nothing says otherwise.
    Same,
    /// It is another one.
    Other(Box<(HostClock, AgentClock)>),
}

impl Clocks {
    /// The clocks of the agents that `names` names.
    pub fn new(names: Names) -> Clocks {
        Clocks {
            names,
            snapshots: vec![clock::snapshot()],
            agents: HashMap::new(),
        }
    }

    /// The times `begin` and `end` of `agent` as the clock of samples showed them.
    pub fn by_clock_of_samples(&mut self, agent: AgentId, (begin, end): (u64, u64)) -> (u64, u64) {
        let read = self.names.clock_pairs_read(agent);
        let is_known = self
            .agents
            .get(&agent)
            .is_some_and(|(of, known)| match known {
                Known::Same => *of == read || *of >= ENOUGH,
                Known::Other(_) => *of == read,
            });
        if !is_known {
            let known = self.measure(agent);
            self.agents.insert(agent, (read, known));
        }
        let Some((_, Known::Other(clocks))) = self.agents.get(&agent) else {
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

    fn measure(&mut self, agent: AgentId) -> Known {
        if self.snapshots.len() == SNAPSHOTS {
            self.snapshots.remove(1);
        }
        self.snapshots.push(clock::snapshot());
        let frequency = clock::frequency();
        let Ok(host) = HostClock::new(clock::init(), frequency, &self.snapshots) else {
            return Known::Same;
        };
        let device = AgentClock::new(&host, &self.names.clock_pairs(agent));
        match device.domain() {
            Domain::System(SystemClock::MonotonicRaw) | Domain::Unknown => Known::Same,
            _ => Known::Other(Box::new((host, device))),
        }
    }
}

/// When a dispatch ran, by both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// As its device says.
    pub device: (u64, u64),
    /// By the clock of samples.
    pub samples: (u64, u64),
}

impl Span {
    /// The device's time of a sample in it.
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
    use crate::record::ClockPair;

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
    fn times_of_the_clock_that_stamps_samples_stay_what_they_are() {
        let names = Names::new();
        let mut clocks = Clocks::new(names.clone());
        assert_eq!(
            clocks.by_clock_of_samples(AGENT, (5, 9)),
            (5, 9),
            "nothing is known"
        );
        read(&names, || SystemClock::MonotonicRaw.read().0);
        let now = SystemClock::MonotonicRaw.read().0;
        assert_eq!(
            clocks.by_clock_of_samples(AGENT, (now, now + 7)),
            (now, now + 7)
        );
    }

    #[test]
    fn times_of_another_clock_are_told_in_that_of_samples() {
        // CLOCK_MONOTONIC_RAW goes otherwise than these; one runs ahead by a day.
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
            let samples = clocks.by_clock_of_samples(AGENT, device);
            let slack = 10_000_000;
            assert!(before - slack <= samples.0 && samples.0 <= after + slack);
            let span = Span { device, samples };
            assert_eq!(span.to_device(samples.0), device.0);
            assert_eq!(span.to_device(samples.1), device.1);
            let middle = span.to_device((samples.0 + samples.1) / 2);
            assert!(middle.abs_diff(time + 500_000) <= 2);
        }
    }
}
