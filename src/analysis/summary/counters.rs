//! Counters by kernel, by range and by agent: how the values of each counter and metric are distributed over the dispatches of a
//! kernel, over ranges of one name, or over the periods at which an agent was read.

use std::collections::BTreeMap;

use super::Distribution;
use gputrail_trace::model::{
    AgentIndex, CounterBlock, CounterIndex, CounterUnit, CounterValue, EventArgument, Slice, Value,
    Work, WorkKind,
};

/// Maximum number of names of counters.
const MAX_NAMES: usize = 1 << 12;
/// Maximum number of pairs of a kernel or agent and a counter, of those with a reason in addition, and of blocks of a period. The
/// values of further ones are left out.
const MAX_PAIRS: usize = 1 << 15;
/// Steps of the distribution in one unit of a value: the resolution of medians of small values.
const STEPS_PER_UNIT: f64 = 1000.0;

/// The values of a counter or metric over the dispatches of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterSummary {
    /// The kernel.
    pub kernel: String,
    /// The counter or metric.
    pub counter: String,
    /// The number of dispatches with a valid value.
    pub dispatches: u64,
    /// The least value.
    pub min: f64,
    /// The median, with the error of [`Distribution::MEDIAN_ERROR`], but at least a thousandth.
    pub median: f64,
    /// The greatest value.
    pub max: f64,
    /// The sum of all values; `None` of percentages and ratios, which do not add up.
    pub total: Option<f64>,
}

/// The values of a counter or metric that was read at a period.
#[derive(Clone, Debug, PartialEq)]
pub struct PeriodSummary {
    /// The short name of the agent.
    pub agent: String,
    /// The counter or metric.
    pub counter: String,
    /// The number of periods.
    pub periods: u64,
    /// The least value of a period.
    pub min: f64,
    /// The median, with the error of [`CounterSummary::median`].
    pub median: f64,
    /// The greatest value.
    pub max: f64,
    /// The sum of all values; `None` of percentages and ratios, which do not add up.
    pub total: Option<f64>,
}

/// The values of a counter or metric over the ranges of markers with one name.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeCounterSummary {
    /// The range.
    pub range: String,
    /// The counter or metric.
    pub counter: String,
    /// The number of ranges with a valid value; one that used several agents is counted for each.
    pub ranges: u64,
    /// The least value.
    pub min: f64,
    /// The median, with the error of [`CounterSummary::median`].
    pub median: f64,
    /// The greatest value.
    pub max: f64,
    /// The sum of all values; `None` of percentages and ratios, which do not add up.
    pub total: Option<f64>,
}

/// Values of a kernel's or range's counter that are no numbers, for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidCounter {
    /// The kernel, or the range.
    pub kernel: String,
    /// The counter or metric.
    pub counter: String,
    /// The reason.
    pub reason: String,
    /// The number of values.
    pub values: u64,
}

#[derive(Debug)]
struct ValueStatistics {
    min: f64,
    max: f64,
    total: f64,
    distribution: Distribution,
}

impl Default for ValueStatistics {
    fn default() -> ValueStatistics {
        ValueStatistics {
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            total: 0.0,
            distribution: Distribution::default(),
        }
    }
}

impl ValueStatistics {
    fn add(&mut self, value: f64) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.total += value;
        self.distribution.add((value * STEPS_PER_UNIT) as u64);
    }

    fn median(&self) -> f64 {
        let median = self.distribution.median() as f64 / STEPS_PER_UNIT;
        let is_whole = self.min.fract() == 0.0 && self.max.fract() == 0.0;
        let median = if is_whole { median.round() } else { median };
        median.clamp(self.min, self.max)
    }

    fn total(&self, unit: CounterUnit) -> Option<f64> {
        unit.adds_up().then_some(self.total)
    }
}

/// Values by kernel or range, and counter.
type ByName = BTreeMap<String, BTreeMap<String, ValueStatistics>>;

/// The counters of a recording.
#[derive(Debug, Default)]
pub(super) struct CounterFigures {
    /// The counters that have been declared, with their units. Other arguments of kernels are no counters.
    units: BTreeMap<String, CounterUnit>,
    kernels: ByName,
    ranges: ByName,
    /// The number of values in both.
    pairs: usize,
    invalid: BTreeMap<(String, String, String), u64>,
    /// The blocks that are read at a period: their agents and counters.
    blocks: BTreeMap<CounterIndex, (AgentIndex, Vec<String>)>,
    periods: BTreeMap<(AgentIndex, String), ValueStatistics>,
}

impl CounterFigures {
    /// Declares the counters of a block.
    pub fn declare(&mut self, index: CounterIndex, block: &CounterBlock) {
        for counter in &block.counters {
            if self.units.len() < MAX_NAMES {
                self.units.insert(counter.name.clone(), counter.unit);
            }
        }
        if block.over_time && self.blocks.len() < MAX_PAIRS {
            let names = block.counters.iter().map(|counter| counter.name.clone());
            self.blocks.insert(index, (block.agent, names.collect()));
        }
    }

    /// Adds the values of a period.
    pub fn add_period(&mut self, index: CounterIndex, values: &[CounterValue]) {
        let Some((agent, names)) = self.blocks.get(&index) else {
            return;
        };
        for (name, value) in names.iter().zip(values) {
            let value = match *value {
                CounterValue::Int(value) => value as f64,
                CounterValue::Double(value) => value,
            };
            let key = (*agent, name.clone());
            let has_room = self.periods.len() < MAX_PAIRS || self.periods.contains_key(&key);
            if has_room && value.is_finite() {
                self.periods.entry(key).or_default().add(value);
            }
        }
    }

    /// Adds the values beside a kernel.
    pub fn add(&mut self, work: &Work<'_>) {
        if work.stage.kind == WorkKind::Kernel {
            self.add_arguments(work.stage.name, work.arguments, |all| &mut all.kernels);
        }
    }

    /// Adds the values beside a range that was counted.
    pub fn add_range(&mut self, range: &Slice<'_>) {
        self.add_arguments(range.name, range.arguments, |all| &mut all.ranges);
    }

    fn add_arguments(
        &mut self,
        name: &str,
        arguments: &[EventArgument<'_>],
        place: fn(&mut CounterFigures) -> &mut ByName,
    ) {
        if self.units.is_empty() {
            return;
        }
        for argument in arguments {
            if !self.units.contains_key(argument.name) {
                continue;
            }
            let value = match argument.value {
                Value::Uint(value) => value as f64,
                Value::Int(value) => value as f64,
                Value::Double(value) => value,
                // Traces have the values beside kernels as texts; the reason of a value without a number is one.
                Value::Text(text) => match text.parse::<f64>() {
                    Ok(value) => value,
                    Err(_) => {
                        self.add_invalid(name, argument.name, text);
                        continue;
                    }
                },
                _ => continue,
            };
            if value.is_finite() {
                self.add_value(name, argument.name, value, place);
            }
        }
    }

    fn add_value(
        &mut self,
        name: &str,
        counter: &str,
        value: f64,
        place: fn(&mut CounterFigures) -> &mut ByName,
    ) {
        let is_known =
            |counters: &BTreeMap<String, ValueStatistics>| counters.contains_key(counter);
        if !place(self).get(name).is_some_and(is_known) {
            if self.pairs >= MAX_PAIRS {
                return;
            }
            self.pairs += 1;
            let counters = place(self).entry(name.to_owned()).or_default();
            counters.insert(counter.to_owned(), ValueStatistics::default());
        }
        let counters = place(self).get_mut(name);
        if let Some(values) = counters.and_then(|counters| counters.get_mut(counter)) {
            values.add(value);
        }
    }

    fn add_invalid(&mut self, kernel: &str, counter: &str, reason: &str) {
        let key = (kernel.to_owned(), counter.to_owned(), reason.to_owned());
        if self.invalid.len() < MAX_PAIRS || self.invalid.contains_key(&key) {
            *self.invalid.entry(key).or_default() += 1;
        }
    }

    fn unit(&self, counter: &str) -> CounterUnit {
        let unit = self.units.get(counter).copied();
        unit.unwrap_or(CounterUnit::Unspecified)
    }

    /// The counters of each kernel, by name.
    pub fn list(&self) -> Vec<CounterSummary> {
        let summary =
            |kernel: &String, counter: &String, values: &ValueStatistics| CounterSummary {
                kernel: kernel.clone(),
                counter: counter.clone(),
                dispatches: values.distribution.count,
                min: values.min,
                median: values.median(),
                max: values.max,
                total: values.total(self.unit(counter)),
            };
        let kernels = self.kernels.iter();
        let all = kernels.flat_map(|(kernel, counters)| {
            let counters = counters.iter();
            counters.map(move |(counter, values)| summary(kernel, counter, values))
        });
        all.collect()
    }

    /// The counters of each range, by name.
    pub fn ranges(&self) -> Vec<RangeCounterSummary> {
        let summary =
            |range: &String, counter: &String, values: &ValueStatistics| RangeCounterSummary {
                range: range.clone(),
                counter: counter.clone(),
                ranges: values.distribution.count,
                min: values.min,
                median: values.median(),
                max: values.max,
                total: values.total(self.unit(counter)),
            };
        let ranges = self.ranges.iter();
        let all = ranges.flat_map(|(range, counters)| {
            let counters = counters.iter();
            counters.map(move |(counter, values)| summary(range, counter, values))
        });
        all.collect()
    }

    /// Values without a number, by kernel, counter and reason.
    pub fn invalid(&self) -> Vec<InvalidCounter> {
        let invalid = self.invalid.iter();
        let row = |((kernel, counter, reason), values): (&(String, String, String), &u64)| {
            InvalidCounter {
                kernel: kernel.clone(),
                counter: counter.clone(),
                reason: reason.clone(),
                values: *values,
            }
        };
        invalid.map(row).collect()
    }

    /// The counters of each agent that was read at a period; `title` names agents.
    pub fn periods(&self, title: impl Fn(AgentIndex) -> String) -> Vec<PeriodSummary> {
        let row =
            |((agent, counter), values): (&(AgentIndex, String), &ValueStatistics)| PeriodSummary {
                agent: title(*agent),
                counter: counter.clone(),
                periods: values.distribution.count,
                min: values.min,
                median: values.median(),
                max: values.max,
                total: values.total(self.unit(counter)),
            };
        self.periods.iter().map(row).collect()
    }
}
