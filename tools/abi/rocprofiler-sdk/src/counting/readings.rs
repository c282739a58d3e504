//! Values of counters as records: those of one dispatch, and those that add up from one reading of an agent to the next.

use super::catalogue::KnownCounter;
use super::configs::Config;
use gputrail_abi::counting::{instance, name_of};
use gputrail_record::{CounterInvalid, CounterValue, CounterValueType};
use gputrail_rocprofiler::{AgentId, CounterRecord, DispatchId, UserData};
use gputrail_tool::counting::{metric_parts, metric_value};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

fn record(
    counter: &KnownCounter,
    instance: u32,
    value: f64,
    (dispatch_id, agent_id, user_data): (DispatchId, AgentId, UserData),
) -> CounterRecord {
    CounterRecord {
        id: counter.instance_id(instance),
        counter_value: value,
        dispatch_id,
        user_data,
        agent_id,
    }
}

/// The records of a dispatch, with the client's word for it. A value that could not be counted has none. A ratio of nothing is 0, as with AMD's library.
pub fn of_dispatch(
    config: &Config,
    values: &[CounterValue],
    dispatch: DispatchId,
    user_data: UserData,
) -> Vec<CounterRecord> {
    let of = |value: &CounterValue| {
        let name = name_of(value.counter)?;
        let number = match value.invalid {
            CounterInvalid::DIVISION_BY_ZERO => 0.0,
            _ => value.number()?,
        };
        let mut counters = config.counters.iter();
        let counter = counters.find(|one| one.counter.name == &*name)?;
        let place = (dispatch, config.agent, user_data);
        Some(record(counter, instance(value), number, place))
    };
    values.iter().filter_map(of).collect()
}

/// The totals of an agent since its context was started.
#[derive(Debug)]
pub struct Totals {
    begin: Instant,
    values: HashMap<(Arc<str>, u32), f64>,
}

impl Default for Totals {
    fn default() -> Totals {
        Totals {
            begin: Instant::now(),
            values: HashMap::new(),
        }
    }
}

impl Totals {
    /// The names that are counted for a set: its counters, and what its metrics are computed from. A metric that the totals of its
    /// counters do not tell is counted itself.
    pub fn names(config: &Config) -> Vec<&'static str> {
        let mut names = Vec::new();
        for counter in &config.counters {
            let name = counter.counter.name;
            let parts = match counter.counter.is_metric {
                true => metric_parts(config.device, name).map(|parts| parts.counters),
                false => Ok(vec![name]),
            };
            for part in parts.unwrap_or_else(|_| vec![name]) {
                if !names.contains(&part) {
                    names.push(part);
                }
            }
        }
        names
    }

    /// Adds a value of a span of time. The latest one of a metric holds.
    pub fn add(&mut self, value: &CounterValue) {
        let (Some(name), Some(number)) = (name_of(value.counter), value.number()) else {
            return;
        };
        let total = self.values.entry((name, instance(value))).or_default();
        match value.value_type {
            CounterValueType::UINT64 => *total += number,
            _ => *total = number,
        }
    }

    fn get(&self, name: &str, instance: u32) -> Option<f64> {
        let key: (Arc<str>, u32) = (name.into(), instance);
        self.values.get(&key).copied()
    }

    /// The total of a counter over its instances.
    fn sum(&self, name: &str) -> f64 {
        let of = self.values.iter().filter(|((one, _), _)| &**one == name);
        of.map(|(_, value)| *value).sum()
    }

    /// A metric, by the totals of its counters, with the time since the start as that of kernels. A ratio of nothing is 0, as with
    /// AMD's library.
    fn metric(&self, config: &Config, name: &str) -> f64 {
        let parts = metric_parts(config.device, name);
        let value = parts.and_then(|parts| {
            let counters = parts.counters.iter();
            let time = ("KERNEL_TIME", self.begin.elapsed().as_nanos() as f64);
            let values = counters.map(|one| (*one, self.sum(one))).chain([time]);
            let values: Vec<(&str, f64)> = values.collect();
            metric_value(config.device, name, &values)
        });
        value.unwrap_or_else(|_| self.get(name, 0).unwrap_or(0.0))
    }

    /// The records of a set: one for each instance of each counter.
    pub fn records(&self, config: &Config, user_data: UserData) -> Vec<CounterRecord> {
        let mut records = Vec::new();
        let place = (0, config.agent, user_data);
        for counter in &config.counters {
            let name = counter.counter.name;
            if counter.counter.is_metric {
                records.push(record(counter, 0, self.metric(config, name), place));
                continue;
            }
            for instance in 0..counter.instances() {
                let value = self.get(name, instance).unwrap_or(0.0);
                records.push(record(counter, instance, value, place));
            }
        }
        records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_those_of_an_instance_and_of_all() {
        let mut totals = Totals::default();
        let name: Arc<str> = "A".into();
        totals.values.insert((name.clone(), 0), 2.0);
        totals.values.insert((name, 3), 5.0);
        totals.values.insert(("B".into(), 0), 7.0);
        assert_eq!((totals.get("A", 3), totals.get("A", 1)), (Some(5.0), None));
        assert_eq!((totals.sum("A"), totals.sum("C")), (7.0, 0.0));
    }
}
