//! Clocks, temperature and power of agents, and page faults of managed memory: as counters of the process, named after
//! their agents.
//!
//! A reading holds from its time on. Counters of agents in a trace look back, and fall to 0 after their last value.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;

use super::devices::Devices;
use crate::model::{
    CounterUnit, CounterValue, Parent, ProcessIndex, Stream, Track, TrackIndex, TrackKind,
};
use gputrail_record::{AgentId, Environment, EnvironmentKind, Nanos, UnifiedMemoryCounter};

/// The counters of one process.
#[derive(Debug, Default)]
pub(super) struct Environments {
    /// By agent and name; agent none is the host.
    counters: BTreeMap<(AgentId, &'static str), EnvironmentCounter>,
}

/// A counter and its latest value.
#[derive(Debug)]
struct EnvironmentCounter {
    track: TrackIndex,
    value: u64,
}

impl Environments {
    /// Adds a reading of an agent at `time`.
    pub fn add(
        &mut self,
        stream: &mut Stream<'_>,
        place: (ProcessIndex, &Devices),
        record: &Environment,
        time: Nanos,
    ) -> io::Result<()> {
        let Some(name) = record.what.name() else {
            return Ok(());
        };
        let unit = match record.what {
            EnvironmentKind::FAN_SPEED => CounterUnit::Percent,
            _ => CounterUnit::Unspecified,
        };
        let counter = self.counter(stream, place, (record.agent, name), unit)?;
        counter.change(stream, time, record.value)
    }

    /// Adds events of managed memory, which are counted from the start of the recording, at `time`.
    pub fn add_faults(
        &mut self,
        stream: &mut Stream<'_>,
        place: (ProcessIndex, &Devices),
        record: &UnifiedMemoryCounter,
        time: Nanos,
    ) -> io::Result<()> {
        let Some(name) = record.what.name() else {
            return Ok(());
        };
        let agent = match record.source_agent {
            AgentId::NONE => record.destination_agent,
            agent => agent,
        };
        let counter = self.counter(stream, place, (agent, name), CounterUnit::Count)?;
        let sum = counter.value.saturating_add(record.value);
        counter.change(stream, time, sum)
    }

    fn counter(
        &mut self,
        stream: &mut Stream<'_>,
        (process, devices): (ProcessIndex, &Devices),
        (agent, name): (AgentId, &'static str),
        unit: CounterUnit,
    ) -> io::Result<&mut EnvironmentCounter> {
        let entry = match self.counters.entry((agent, name)) {
            Entry::Occupied(known) => return Ok(known.into_mut()),
            Entry::Vacant(entry) => entry,
        };
        let title = devices.title(agent);
        let name = title.map_or(name.to_owned(), |title| format!("{title} · {name}"));
        let track = stream.new_track(&Track {
            parent: Parent::Process(process),
            name: &name,
            kind: TrackKind::Counter(unit),
            order: None,
        })?;
        Ok(entry.insert(EnvironmentCounter { track, value: 0 }))
    }
}

impl EnvironmentCounter {
    /// The value is `value` from `time` on.
    fn change(&mut self, stream: &mut Stream<'_>, time: Nanos, value: u64) -> io::Result<()> {
        self.value = value;
        let value = CounterValue::Int(i64::try_from(value).unwrap_or(i64::MAX));
        stream.consumer.value(self.track, time, value)
    }
}
