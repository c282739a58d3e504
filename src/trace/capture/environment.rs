//! Clocks, temperature and power of agents, and page faults of managed memory: as counters of the agents.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;

use super::devices::Devices;
use crate::record::{AgentId, Environment, EnvironmentKind, Nanos, UnifiedMemoryCounter};
use crate::trace::model::{
    CounterBlock, CounterDescription, CounterIndex, CounterUnit, CounterValue, Parent,
    ProcessIndex, Stream, Track, TrackIndex, TrackKind,
};

/// The counters of one process.
#[derive(Debug, Default)]
pub(super) struct Environments {
    /// By agent and name.
    counters: BTreeMap<(AgentId, &'static str), Counter>,
    /// Counters without an agent, by name: their tracks and latest values.
    of_process: BTreeMap<&'static str, (TrackIndex, u64)>,
}

/// A counter that has `value` from `time` on.
#[derive(Debug)]
struct Counter {
    index: CounterIndex,
    time: Nanos,
    value: u64,
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
        counter.change(stream, time, record.value)
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
        let agent = match record.source_agent {
            AgentId::NONE => record.destination_agent,
            agent => agent,
        };
        if agent == AgentId::NONE {
            return self.add_to_process(stream, (process, name), record.value, time);
        }
        let key = (agent, name);
        let unit = CounterUnit::Count;
        let Some(counter) = self.counter(stream, (process, devices), key, unit)? else {
            return Ok(());
        };
        let sum = counter.value.saturating_add(record.value);
        counter.change(stream, time, sum)
    }

    fn add_to_process(
        &mut self,
        stream: &mut Stream<'_>,
        (process, name): (ProcessIndex, &'static str),
        more: u64,
        time: Nanos,
    ) -> io::Result<()> {
        let (track, sum) = match self.of_process.entry(name) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(entry) => entry.insert((
                stream.new_track(&Track {
                    parent: Parent::Process(process),
                    name,
                    kind: TrackKind::Counter(CounterUnit::Count),
                    order: None,
                })?,
                0,
            )),
        };
        *sum = sum.saturating_add(more);
        let value = CounterValue::Int(i64::try_from(*sum).unwrap_or(i64::MAX));
        stream.consumer.value(*track, time, value)
    }

    /// Passes on the last values, which last until `end`.
    pub fn finish(&mut self, stream: &mut Stream<'_>, end: Nanos) -> io::Result<()> {
        let mut counters = self.counters.values_mut();
        counters.try_for_each(|counter| counter.change(stream, end, counter.value))
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
            over_time: false,
            counters: vec![description],
        };
        stream.consumer.counters(index, &block)?;
        Ok(Some(entry.insert(Counter {
            index,
            time: Nanos(0),
            value: 0,
        })))
    }
}

impl Counter {
    /// The value is `value` from `time` on: counters of agents look back, so the value before is passed on.
    fn change(&mut self, stream: &mut Stream<'_>, time: Nanos, value: u64) -> io::Result<()> {
        self.time = self.time.max(time);
        let before = std::mem::replace(&mut self.value, value);
        let before = CounterValue::Int(i64::try_from(before).unwrap_or(i64::MAX));
        stream
            .consumer
            .counter_values(self.index, self.time, &[before])
    }
}
