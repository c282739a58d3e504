//! Conversion of times in a running process: host ticks and agent times, as tools find them in records, to
//! CLOCK_BOOTTIME in nanoseconds.
//!
//! The conversion rests on clock readings and is fitted again about once a second. The result for one time may
//! therefore change later, within the error bounds.

use gputrail_buffer::clock::{self, AgentClock, HostClock, NoSnapshot};
use gputrail_capture::names::Names;
use gputrail_record::{AgentId, ClockSnapshot, DeviceTime, Nanos, Ticks};
use std::collections::HashMap;

/// The most snapshots of the host's clocks. When they are reached, every second one is removed.
const MAX_SNAPSHOTS: usize = 64;

/// Converts times; see the module.
pub struct TimeConverter {
    names: Names,
    snapshots: Vec<ClockSnapshot>,
    host: HostClock,
    agents: HashMap<AgentId, FittedAgent>,
    /// Ticks between two snapshots.
    period: u64,
}

/// The fitted clock of an agent, and the readings that it was fitted to.
#[derive(Debug)]
struct FittedAgent {
    clock: AgentClock,
    /// The number of clock pairs.
    pairs: u64,
    /// The latest snapshot of the host's clocks.
    snapshots: Ticks,
}

impl TimeConverter {
    /// Creates a converter for the process and the agents of `names`. Reads the host's clocks.
    pub fn new(names: Names) -> Result<TimeConverter, NoSnapshot> {
        let frequency = clock::frequency();
        let snapshots = vec![clock::snapshot()];
        Ok(TimeConverter {
            names,
            host: HostClock::new(clock::init(), frequency, &snapshots)?,
            snapshots,
            agents: HashMap::new(),
            period: frequency,
        })
    }

    /// CLOCK_BOOTTIME at `ticks`. None for unknown ticks.
    pub fn host(&mut self, ticks: Ticks) -> Nanos {
        self.read_clocks();
        self.host.to_boottime(ticks)
    }

    /// CLOCK_BOOTTIME at `ticks`, by the readings so far.
    pub fn host_by_readings(&self, ticks: Ticks) -> Nanos {
        self.host.to_boottime(ticks)
    }

    /// CLOCK_BOOTTIME when the clock of `agent` showed `time`. `None` if the time is unknown, or the agent's clock is,
    /// which it is until work of the agent has completed.
    pub fn device(&mut self, agent: AgentId, time: DeviceTime) -> Option<Nanos> {
        self.clock_of(agent)?.to_boottime(time)
    }

    /// [`device`](TimeConverter::device) of the times of work that was enqueued at `enqueued`. None of them is before
    /// that by less than the error of the two clocks.
    pub fn of_work<const N: usize>(
        &mut self,
        agent: AgentId,
        enqueued: Nanos,
        times: [DeviceTime; N],
    ) -> [Nanos; N] {
        let host_error = self.host_error().0;
        let Some(clock) = self.clock_of(agent) else {
            return [Nanos::NONE; N];
        };
        let bound = Nanos(clock.error_bound().0.saturating_add(host_error));
        let times = times.map(|time| clock.to_boottime(time));
        clock::clamp_all(enqueued, times, bound).map(Option::unwrap_or_default)
    }

    /// The clock of `agent`, fitted to what has been read of it so far.
    pub fn clock_of(&mut self, agent: AgentId) -> Option<&AgentClock> {
        self.read_clocks();
        let last = self
            .snapshots
            .last()
            .map_or(Ticks::NONE, |snapshot| snapshot.before);
        let pairs = self.names.clock_pairs_read(agent);
        let fits = self
            .agents
            .get(&agent)
            .is_some_and(|fitted| fitted.pairs == pairs && fitted.snapshots == last);
        if !fits {
            let clock = AgentClock::new(&self.host, &self.names.clock_pairs(agent));
            self.agents.insert(
                agent,
                FittedAgent {
                    clock,
                    pairs,
                    snapshots: last,
                },
            );
        }
        Some(&self.agents.get(&agent)?.clock)
    }

    /// The error bound of host times.
    pub fn host_error(&self) -> Nanos {
        self.host.error_bound()
    }

    /// How far times of `agent` may be off. `None`: the agent's clock is not known yet.
    pub fn device_error(&mut self, agent: AgentId) -> Option<Nanos> {
        let clock = self.clock_of(agent)?;
        (clock.domain() != clock::ClockDomain::Unknown).then(|| clock.error_bound())
    }

    /// Reads the host's clocks if the last reading is old enough.
    pub fn read_clocks(&mut self) {
        let (first, last) = (self.snapshots.first(), self.snapshots.last());
        let age = last.map_or(u64::MAX, |last| clock::now() - last.before);
        // More often in the beginning: two readings determine the rate.
        let young = first
            .zip(last)
            .is_some_and(|(first, last)| last.before - first.before < self.period);
        let period = if young { self.period / 20 } else { self.period };
        if age < period {
            return;
        }
        if self.snapshots.len() == MAX_SNAPSHOTS {
            let mut index = 0;
            self.snapshots.retain(|_| {
                index += 1;
                index % 2 == 1
            });
        }
        self.snapshots.push(clock::snapshot());
        if let Ok(host) = HostClock::new(clock::init(), self.period, &self.snapshots) {
            self.host = host;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_buffer::clock::SystemClock;
    use gputrail_record::ClockPair;

    #[test]
    fn now_is_what_the_clock_shows() {
        let mut times = TimeConverter::new(Names::new()).unwrap();
        for _ in 0..200 {
            let before = SystemClock::Boottime.read();
            let now = times.host(clock::now());
            let after = SystemClock::Boottime.read();
            let error = times.host_error().0 + 1_000_000;
            assert!(before.0 <= now.0 + error && now.0 <= after.0 + error);
        }
        assert_eq!(times.host(Ticks::NONE), Nanos::NONE);
    }

    #[test]
    fn an_agents_times_are_known_once_its_clock_has_been_read() {
        let names = Names::new();
        let mut times = TimeConverter::new(names.clone()).unwrap();
        let agent = AgentId(1);
        let time = DeviceTime(SystemClock::MonotonicRaw.read().0);
        assert_eq!(times.device(agent, time), None);
        for _ in 0..20 {
            let mut pair = ClockPair::blank();
            pair.agent = agent;
            pair.before = clock::now_ordered();
            pair.device = DeviceTime(SystemClock::MonotonicRaw.read().0);
            pair.after = clock::now_ordered();
            names.clock_pair(pair);
        }
        // Asked before any conversion.
        let error = times.device_error(agent).unwrap();
        let converted = times.device(agent, time).unwrap();
        let now = SystemClock::Boottime.read();
        assert!(converted.0 <= now.0 + error.0);
    }
}
