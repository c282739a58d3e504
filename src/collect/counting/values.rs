//! The records of values: basic counters as they were read, and metrics computed from them.

use super::{CounterReading, CounterSet};
use gputrail_capture::names::Names;
use gputrail_counters::{
    Counted, Definition, Invalid, Measured, Property, Resolution, Usage, ValueColumn, evaluate,
};
use gputrail_interface::counting::Number;
use gputrail_record::{
    ALL_INSTANCES, ALWAYS_SCHEDULED, AgentId, CorrelationId, CounterInvalid, CounterUsage,
    CounterValue, DeviceTime, QueueId, StringId, WorkId,
};
use std::collections::HashMap;
use std::sync::Arc;

/// The subject of values: a dispatch, a span of time, or a range of markers.
#[derive(Copy, Clone, Debug, Default)]
pub struct Subject {
    /// The dispatch; none for a span or a range.
    pub work: WorkId,
    /// The call that enqueued the dispatch.
    pub correlation: CorrelationId,
    /// The queue of the dispatch.
    pub queue: QueueId,
    /// The span; 0 for a dispatch, and in ticks of the host for a range.
    pub span: (DeviceTime, DeviceTime),
    /// The name of the range; none for a dispatch or a span.
    pub range: StringId,
    /// The duration in ns, if it is known.
    pub duration: Option<u64>,
}

/// Makes the records of one set of counters of one agent.
pub struct ValueRecords {
    set: Arc<CounterSet>,
    properties: HashMap<Property, f64>,
    /// The records of the set's counters and metrics, without values.
    blank: Vec<CounterValue>,
    has_metrics: bool,
}

impl ValueRecords {
    /// The records of `set` on an agent with these `properties`.
    pub fn new(
        set: Arc<CounterSet>,
        agent: AgentId,
        properties: HashMap<Property, f64>,
        names: &Names,
    ) -> ValueRecords {
        let architecture = set.architecture();
        let mut has_metrics = false;
        let count = set.wanted().len();
        let blank = set.wanted().iter().enumerate().map(|(place, index)| {
            let counter = architecture.counter(*index);
            let mut record = CounterValue::blank();
            record.agent = agent;
            record.counter = names.string(&counter.name);
            record.instance = ALL_INSTANCES;
            record.scheduled = ALWAYS_SCHEDULED;
            record.usage = usage(counter.usage);
            record.remaining = (count - 1 - place).min(u16::MAX.into()) as u16;
            match counter.definition {
                Definition::Basic { block, .. } => {
                    let block = &architecture.blocks()[block.0 as usize];
                    record.block = names.string(&block.name);
                }
                Definition::Derived(..) => has_metrics = true,
            }
            record
        });
        ValueRecords {
            blank: blank.collect(),
            has_metrics,
            properties,
            set,
        }
    }

    /// The properties of the agent.
    pub fn properties(&self) -> &HashMap<Property, f64> {
        &self.properties
    }

    /// The set.
    pub fn set(&self) -> &Arc<CounterSet> {
        &self.set
    }

    /// The records of `subject`, whose counters have these readings.
    pub fn of(
        &self,
        subject: &Subject,
        readings: &[(Counted, CounterReading)],
    ) -> Vec<CounterValue> {
        let metrics = if self.has_metrics {
            self.metrics(subject, readings)
        } else {
            Vec::new()
        };
        let architecture = self.set.architecture();
        let mut records = self.blank.clone();
        let mut instances = Vec::new();
        for (place, (record, index)) in records.iter_mut().zip(self.set.wanted()).enumerate() {
            record.work = subject.work;
            record.correlation = subject.correlation;
            record.queue = subject.queue;
            (record.start, record.end) = subject.span;
            record.range = subject.range;
            if let Definition::Basic { .. } = architecture.counter(*index).definition {
                let found = readings
                    .iter()
                    .find(|(counted, _)| *counted == (*index, Resolution::None));
                match found {
                    Some((_, reading)) if reading.invalid == CounterInvalid::NO => {
                        let read = self.read_instances(reading);
                        instances.push((place, read));
                        let sum = read.iter().copied().fold(0, u64::saturating_add);
                        *record = record.with_uint(sum);
                        record.scheduled = reading.scheduled;
                    }
                    Some((_, reading)) => record.invalid = reading.invalid,
                    None => record.invalid = CounterInvalid::MISSING,
                }
                continue;
            }
            match metrics.get(place).map(|column| column.get(0)) {
                Some(Ok(value)) => {
                    let used = architecture.basic_counters(*index);
                    let shares = readings
                        .iter()
                        .filter(|(counted, _)| used.contains(counted))
                        .map(|(_, reading)| reading.scheduled);
                    *record = record.with_double(value);
                    record.scheduled = shares.min().unwrap_or(ALWAYS_SCHEDULED);
                }
                Some(Err(reason)) => record.invalid = invalid(reason),
                None => record.invalid = CounterInvalid::MISSING,
            }
        }
        if self.set.each_instance() {
            spread(&records, &instances, CounterValue::with_uint)
        } else {
            records
        }
    }

    /// The records of `subject`, whose counters have these values in the order of the set, as its vendor's library has
    /// computed them; `Err` for all of them without values.
    pub fn of_numbers(
        &self,
        subject: &Subject,
        values: Result<&[f64], CounterInvalid>,
    ) -> Vec<CounterValue> {
        let mut records = self.blank.clone();
        for (place, record) in records.iter_mut().enumerate() {
            (record.work, record.correlation) = (subject.work, subject.correlation);
            record.queue = subject.queue;
            (record.start, record.end) = subject.span;
            record.range = subject.range;
            match values.map(|values| values.get(place)) {
                Ok(Some(value)) => *record = record.with_double(*value),
                Ok(None) => record.invalid = CounterInvalid::MISSING,
                Err(reason) => record.invalid = reason,
            }
        }
        records
    }

    /// [`ValueRecords::of_numbers`], of values each of which may be invalid.
    pub fn of_results(
        &self,
        subject: &Subject,
        values: &[Result<f64, CounterInvalid>],
    ) -> Vec<CounterValue> {
        let numbers: Vec<f64> = values.iter().map(|value| value.unwrap_or(0.0)).collect();
        let mut records = self.of_numbers(subject, Ok(&numbers));
        for (record, value) in records.iter_mut().zip(values) {
            if let Err(reason) = value {
                (record.value, record.invalid) = (0, *reason);
            }
        }
        records
    }

    /// The records of `subject`, whose counters have these values of their instances in the order of the set, as their vendor's
    /// library has read or computed them: the sum, or each of them if the set asks for that.
    pub fn of_instances(
        &self,
        subject: &Subject,
        values: &[Result<InstanceNumbers, CounterInvalid>],
    ) -> Vec<CounterValue> {
        let mut instances = Vec::new();
        let most = self.set.instances().map(|most| most.get() as usize);
        let sums: Vec<Result<f64, CounterInvalid>> = (values.iter().enumerate())
            .map(|(place, value)| {
                let value = value.as_ref().map_err(|reason| *reason)?;
                let most = most.unwrap_or(usize::MAX).min(value.numbers.len());
                let read = value.numbers[..most].iter();
                let read: Vec<Number> = read.map(|number| value.number(*number)).collect();
                let sum = value.numbers[..most].iter().sum();
                instances.push((place, read));
                Ok(sum)
            })
            .collect();
        let mut records = self.of_results(subject, &sums);
        for (place, _) in &instances {
            if let (Ok(value), Ok(sum)) = (&values[*place], &sums[*place])
                && let Some(record) = records.get_mut(*place)
            {
                *record = with_number(*record, value.number(*sum));
            }
        }
        if !self.set.each_instance() {
            return records;
        }
        let instances: Vec<(usize, &[Number])> = instances
            .iter()
            .map(|(place, read)| (*place, &read[..]))
            .collect();
        spread(&records, &instances, with_number)
    }

    /// The instances that the set reads.
    fn read_instances<'r>(&self, reading: &'r CounterReading) -> &'r [u64] {
        let all = &reading.instances[..];
        let most = self
            .set
            .instances()
            .map_or(all.len(), |most| most.get() as usize);
        &all[..most.min(all.len())]
    }

    fn metrics(
        &self,
        subject: &Subject,
        readings: &[(Counted, CounterReading)],
    ) -> Vec<ValueColumn> {
        let valid = readings
            .iter()
            .filter(|(_, reading)| reading.invalid == CounterInvalid::NO);
        let instances = |reading: &CounterReading| {
            let instances = self.read_instances(reading).iter();
            instances.map(|value| vec![*value as f64]).collect()
        };
        let measured = Measured {
            dispatches: 1,
            counters: valid
                .map(|(counted, reading)| (*counted, instances(reading)))
                .collect(),
            properties: self.properties.clone(),
            kernel_times: subject.duration.iter().map(|time| *time as f64).collect(),
        };
        evaluate(self.set.architecture(), self.set.wanted(), &measured)
    }
}

/// The values of the instances of a counter, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InstanceNumbers {
    /// The values.
    pub numbers: Vec<f64>,
    /// Whether they are counts: whole numbers.
    pub are_counts: bool,
}

impl InstanceNumbers {
    /// The number as a value of this counter.
    fn number(&self, number: f64) -> Number {
        // Above 2^53 a floating-point number is not exact, and the sum of several may be none.
        const EXACT: f64 = (1_u64 << 53) as f64;
        let is_whole = number.fract() == 0.0 && (0.0..=EXACT).contains(&number);
        match self.are_counts && is_whole {
            true => Number::Uint(number as u64),
            false => Number::Double(number),
        }
    }
}

fn with_number(record: CounterValue, number: Number) -> CounterValue {
    match number {
        Number::Uint(number) => record.with_uint(number),
        Number::Double(number) => record.with_double(number),
    }
}

/// The records, where those at the given places, each of which is a sum, are replaced by one for each instance, made `with` its value.
fn spread<T: Copy>(
    sums: &[CounterValue],
    instances: &[(usize, &[T])],
    with: impl Fn(CounterValue, T) -> CounterValue,
) -> Vec<CounterValue> {
    let mut records = Vec::new();
    for (place, sum) in sums.iter().enumerate() {
        let of = instances.iter().find(|(of, _)| *of == place);
        let Some((_, values)) = of else {
            records.push(*sum);
            continue;
        };
        for (value, instance) in values.iter().zip(0..) {
            let mut record = with(*sum, *value);
            record.instance = instance;
            records.push(record);
        }
    }
    let count = records.len();
    for (place, record) in records.iter_mut().enumerate() {
        record.remaining = (count - 1 - place).min(u16::MAX.into()) as u16;
    }
    records
}

fn invalid(reason: Invalid) -> CounterInvalid {
    match reason {
        Invalid::DivisionByZero => CounterInvalid::DIVISION_BY_ZERO,
        Invalid::Overflow => CounterInvalid::OVERFLOW,
        Invalid::Missing => CounterInvalid::MISSING,
    }
}

/// The unit in records.
pub fn usage(usage: Usage) -> CounterUsage {
    match usage {
        Usage::Items => CounterUsage::ITEMS,
        Usage::Percentage => CounterUsage::PERCENTAGE,
        Usage::Ratio => CounterUsage::RATIO,
        Usage::Bytes => CounterUsage::BYTES,
        Usage::Kilobytes => CounterUsage::KILOBYTES,
        Usage::Milliseconds => CounterUsage::MILLISECONDS,
        Usage::Nanoseconds => CounterUsage::NANOSECONDS,
        Usage::Cycles => CounterUsage::CYCLES,
        Usage::Microjoules => CounterUsage::MICROJOULES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_record::CounterValueType;

    #[test]
    fn a_sum_is_spread_over_its_instances_and_other_values_stay() {
        let mut sum = CounterValue::blank().with_uint(6);
        sum.instance = ALL_INSTANCES;
        let mut metric = CounterValue::blank().with_double(0.5);
        metric.instance = ALL_INSTANCES;
        let records = spread(&[sum, metric], &[(0, &[1, 2, 3])], CounterValue::with_uint);
        let of = |value: &CounterValue| (value.instance, value.number(), value.remaining);
        let all: Vec<_> = records.iter().map(of).collect();
        assert_eq!(
            all,
            [
                (0, Some(1.0), 3),
                (1, Some(2.0), 2),
                (2, Some(3.0), 1),
                (ALL_INSTANCES, Some(0.5), 0),
            ]
        );
    }

    #[test]
    fn counts_are_whole_numbers_and_metrics_are_not() {
        let of = |are_counts| InstanceNumbers {
            numbers: Vec::new(),
            are_counts,
        };
        let blank = CounterValue::blank();
        let count = with_number(blank, of(true).number(7.0));
        assert_eq!(
            (count.value_type, count.value),
            (CounterValueType::UINT64, 7)
        );
        for (are_counts, number) in [(false, 7.0), (true, -1.0), (true, 0.5), (true, 1e300)] {
            let value = with_number(blank, of(are_counts).number(number));
            assert_eq!(value.value_type, CounterValueType::DOUBLE);
            assert_eq!(value.number(), Some(number));
        }
    }
}
