//! Clocks, temperature and power of agents, and page faults of managed memory: as counters of the agents.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;

use super::devices::Devices;
use crate::record::{AgentId, Environment, EnvironmentKind, Nanos, UnifiedMemoryCounter};
use crate::trace::model::{
    CounterBlock, CounterDescription, CounterIndex, CounterUnit, CounterValue, ProcessIndex, Stream,
};

/// The counters of one process.
#[derive(Debug, Default)]
pub(super) struct Environments {
    /// By agent and name.
    counters: HashMap<(AgentId, &'static str), Counter>,
}

#[derive(Debug)]
struct Counter {
    index: CounterIndex,
    latest: Nanos,
    sum: u64,
}

impl Environments {
    /// Adds a reading of an agent at `time`.
    pub fn add(
        &mut self,
        stream: &mut Stream<'_>,
        (process, devices): (ProcessIndex, &Devices),
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
        let key = (record.agent, name);
        let Some(counter) = self.counter(stream, (process, devices), key, unit)? else {
            return Ok(());
        };
        counter.write(stream, time, record.value)
    }

    /// Adds events of managed memory, which are counted from the start of the recording, at `time`.
    pub fn add_faults(
        &mut self,
        stream: &mut Stream<'_>,
        (process, devices): (ProcessIndex, &Devices),
        record: &UnifiedMemoryCounter,
        time: Nanos,
    ) -> io::Result<()> {
        let Some(name) = record.what.name() else {
            return Ok(());
        };
        // Faults of the host are those of pages on some device.
        let agent = match record.source_agent {
            AgentId::NONE => record.destination_agent,
            agent => agent,
        };
        let key = (agent, name);
        let unit = CounterUnit::Count;
        let Some(counter) = self.counter(stream, (process, devices), key, unit)? else {
            return Ok(());
        };
        counter.sum = counter.sum.saturating_add(record.value);
        counter.write(stream, time, counter.sum)
    }

    /// The counter of an agent; `None` if the agent is unknown.
    fn counter(
        &mut self,
        stream: &mut Stream<'_>,
        (process, devices): (ProcessIndex, &Devices),
        (agent, name): (AgentId, &'static str),
        unit: CounterUnit,
    ) -> io::Result<Option<&mut Counter>> {
        let Some(index_of_agent) = devices.index(agent) else {
            return Ok(None);
        };
        let entry = match self.counters.entry((agent, name)) {
            Entry::Occupied(known) => return Ok(Some(known.into_mut())),
            Entry::Vacant(entry) => entry,
        };
        let index = stream.new_counters();
        let description = CounterDescription {
            name: name.to_owned(),
            description: "Reported by the driver".to_owned(),
            unit,
        };
        let block = CounterBlock {
            name: name.to_owned(),
            process,
            agent: index_of_agent,
            memory: false,
            counters: vec![description],
        };
        stream.consumer.counters(index, &block)?;
        Ok(Some(entry.insert(Counter {
            index,
            latest: Nanos(0),
            sum: 0,
        })))
    }
}

impl Counter {
    fn write(&mut self, stream: &mut Stream<'_>, time: Nanos, value: u64) -> io::Result<()> {
        self.latest = self.latest.max(time);
        let value = CounterValue::Int(i64::try_from(value).unwrap_or(i64::MAX));
        stream
            .consumer
            .counter_values(self.index, self.latest, &[value])
    }
}
