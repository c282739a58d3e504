//! The counters of a set, and the place of each value that the SDK delivers among their instances.

use super::counters::{AgentCounters, instances};
use super::service::CounterDimension;
use crate::rocm::sdk::Sdk;
use gputrail_buffer::platform::sync::QuietMutex;
use gputrail_collect::counting::values::InstanceNumbers;
use gputrail_collect::counting::{CounterReading, CounterSet};
use gputrail_counters::{Counted, Resolution};
use gputrail_record::CounterInvalid;
use gputrail_rocprofiler::{CounterId, CounterInstanceId, CounterRecord};
use std::collections::HashMap;

/// The most instances of a counter.
const MAX_INSTANCES: usize = 1 << 16;

/// The counters of a set, in its order.
pub(super) struct Columns {
    sdk: Sdk,
    counters: Vec<Column>,
    /// The counter and the instance of a value, by the SDK's number of both; `None` if it is of no counter of the set.
    places: QuietMutex<HashMap<CounterInstanceId, Option<(usize, usize)>>>,
}

struct Column {
    id: CounterId,
    dimensions: Vec<CounterDimension>,
    /// Whether it is counted, and not computed.
    is_count: bool,
}

impl Columns {
    /// The counters of `set`, which this agent has.
    pub fn new(sdk: Sdk, counters: &AgentCounters, set: &CounterSet) -> Columns {
        let names = names_of(set);
        let column = |name: &&str| {
            let counter = counters.find(name).cloned().unwrap_or_default();
            Column {
                id: counter.id,
                dimensions: sdk.counter_dimensions(counter.id),
                is_count: !counter.is_derived,
            }
        };
        Columns {
            sdk,
            counters: names.iter().map(column).collect(),
            places: QuietMutex::default(),
        }
    }

    /// The number of values that the SDK delivers at most.
    pub fn instances(&self) -> usize {
        let all = self.counters.iter().map(|one| instances(&one.dimensions));
        all.fold(0, |sum, more| sum.saturating_add(more.min(MAX_INSTANCES)))
    }

    /// The values of the instances of each counter, from what the SDK has delivered.
    pub fn values(
        &self,
        records: &[CounterRecord],
    ) -> Vec<Result<InstanceNumbers, CounterInvalid>> {
        let mut values: Vec<Option<Vec<f64>>> = vec![None; self.counters.len()];
        let mut places = self.places.lock();
        for record in records {
            let place = *places
                .entry(record.id)
                .or_insert_with(|| self.place(record.id));
            let Some((counter, instance)) = place else {
                continue;
            };
            let numbers = values[counter].get_or_insert_default();
            if numbers.len() <= instance {
                numbers.resize(instance + 1, 0.0);
            }
            // Values of one instance are parts of it.
            numbers[instance] += record.counter_value;
        }
        drop(places);
        let counters = self.counters.iter().zip(values);
        let value = |(column, numbers): (&Column, Option<Vec<f64>>)| {
            let numbers = numbers.ok_or(CounterInvalid::MISSING)?;
            Ok(InstanceNumbers {
                numbers,
                are_counts: column.is_count,
            })
        };
        counters.map(value).collect()
    }

    /// The counter and the instance of a value.
    fn place(&self, value: CounterInstanceId) -> Option<(usize, usize)> {
        let counter = self.sdk.counter_of(value)?;
        let place = self.counters.iter().position(|one| one.id == counter)?;
        let dimensions = self.counters[place].dimensions.iter();
        let positions = dimensions.map(|dimension| {
            let position = self.sdk.position_of(value, dimension.id);
            (position, dimension.size)
        });
        Some((place, instance(positions)?))
    }
}

/// The number of an instance with these positions in dimensions of these sizes, the first one fastest.
fn instance(positions: impl Iterator<Item = (usize, usize)>) -> Option<usize> {
    let (number, _) = positions.fold((0_usize, 1_usize), |(number, step), (position, size)| {
        let number = number.saturating_add(position.saturating_mul(step));
        (number, step.saturating_mul(size.max(1)))
    });
    (number < MAX_INSTANCES).then_some(number)
}

/// The names of a set's counters, in its order.
pub(super) fn names_of(set: &CounterSet) -> Vec<&str> {
    let names = set.wanted().iter();
    let names = names.map(|index| set.architecture().counter(*index).name.as_str());
    names.collect()
}

/// The values as readings of the set's counters, for a tool that asks for these.
pub(super) fn readings(
    set: &CounterSet,
    values: &[Result<InstanceNumbers, CounterInvalid>],
) -> Vec<(Counted, CounterReading)> {
    let reading = |value: &Result<InstanceNumbers, CounterInvalid>| match value {
        Ok(value) => {
            let mut reading = CounterReading::of(0);
            // Numbers that are too large, or negative, are the nearest there is.
            reading.instances = value.numbers.iter().map(|one| one.round() as u64).collect();
            reading
        }
        Err(reason) => CounterReading::invalid(*reason),
    };
    let wanted = set.wanted().iter().zip(values);
    wanted
        .map(|(index, value)| ((*index, Resolution::None), reading(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_are_numbered_with_the_first_dimension_fastest() {
        let number = |positions: &[(usize, usize)]| instance(positions.iter().copied());
        assert_eq!(number(&[]), Some(0));
        assert_eq!(number(&[(3, 8), (0, 4)]), Some(3));
        assert_eq!(number(&[(0, 8), (1, 4)]), Some(8));
        assert_eq!(number(&[(7, 8), (3, 4)]), Some(31));
        assert_eq!(number(&[(0, 1 << 20), (1, 1 << 20)]), None);
    }
}
