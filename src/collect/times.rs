//! Times of this process in nanoseconds, while it runs: ticks of the host and times of agents, as tools get them in
//! records, on CLOCK_BOOTTIME.
//!
//! It rests on readings of the clocks that are taken as time goes on, and is fitted anew about once a second: the
//! same time may be told a little differently later, within the error bounds.

use crate::capture::names::Names;
use crate::clock::{self, AgentClock, HostClock, NoSnapshot};
use crate::record::{AgentId, ClockSnapshot, DeviceTime, Nanos, Ticks};
use std::collections::HashMap;

/// Snapshots of the host's clocks that are kept. With more, every second one goes.
const SNAPSHOTS: usize = 64;

/// See the module.
pub struct Times {
    names: Names,
    snapshots: Vec<ClockSnapshot>,
    host: HostClock,
    agents: HashMap<AgentId, FittedAgent>,
    /// Ticks between two snapshots.
    period: u64,
}

/// The clock of an agent, and how it was come by.
#[derive(Debug)]
struct FittedAgent {
    clock: AgentClock,
    /// Readings of the agent's clock that there were.
    pairs: u64,
    /// Snapshots of the host's clocks that there were.
    snapshots: Ticks,
}

impl Times {
    /// The times of the process whose agents `names` names. Reads the host's clocks.
    pub fn new(names: Names) -> Result<Times, NoSnapshot> {
        let frequency = clock::frequency();
        let snapshots = vec![clock::snapshot()];
        Ok(Times {
            names,
            host: HostClock::new(clock::init(), frequency, &snapshots)?,
            snapshots,
            agents: HashMap::new(),
            period: frequency,
        })
    }

    /// CLOCK_BOOTTIME at `ticks`, in nanoseconds; none for none.
    pub fn host(&mut self, ticks: Ticks) -> Nanos {
        self.read_clocks();
        self.host.to_boottime(ticks)
    }

    /// CLOCK_BOOTTIME when the clock of `agent` showed `time`. `None`: the time is not known, or the agent's clock is
    /// not yet: it is known once work of the agent has completed.
    pub fn device(&mut self, agent: AgentId, time: DeviceTime) -> Option<Nanos> {
        self.clock_of(agent)?.to_boottime(time)
    }

    /// The clock of `agent`, fitted to what has been read of it so far.
    fn clock_of(&mut self, agent: AgentId) -> Option<&AgentClock> {
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

    /// How far host times may be off.
    pub fn host_error(&self) -> Nanos {
        self.host.error_bound()
    }

    /// How far times of `agent` may be off. `None`: the agent's clock is not known yet.
    pub fn device_error(&mut self, agent: AgentId) -> Option<Nanos> {
        let clock = self.clock_of(agent)?;
        (clock.domain() != clock::Domain::Unknown).then(|| clock.error_bound())
    }

    /// Reads the host's clocks, if that was some time ago.
    fn read_clocks(&mut self) {
        let (first, last) = (self.snapshots.first(), self.snapshots.last());
        let age = last.map_or(u64::MAX, |last| clock::now() - last.before);
        // Soon after the first too: two readings tell the rate.
        let young = first
            .zip(last)
            .is_some_and(|(first, last)| last.before - first.before < self.period);
        let wanted = if young { self.period / 20 } else { self.period };
        if age < wanted {
            return;
        }
        if self.snapshots.len() == SNAPSHOTS {
            let mut place = 0;
            self.snapshots.retain(|_| {
                place += 1;
                place % 2 == 1
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
    use crate::clock::SystemClock;
    use crate::record::ClockPair;

    #[test]
    fn now_is_what_the_clock_shows() {
        let mut times = Times::new(Names::new()).unwrap();
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
        let mut times = Times::new(names.clone()).unwrap();
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
        let told = times.device(agent, time).unwrap();
        let now = SystemClock::Boottime.read();
        assert!(told.0 <= now.0 + error.0);
    }
}
