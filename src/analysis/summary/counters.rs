//! Counters by kernel: how the values of each counter and metric are distributed over the dispatches of a kernel.

use std::collections::{BTreeMap, BTreeSet};

use super::Distribution;
use crate::trace::model::{CounterBlock, Value, Work, WorkKind};

/// Maximum number of names of counters.
const MAX_NAMES: usize = 1 << 12;
/// Maximum number of pairs of a kernel and a counter. The values of further ones are left out.
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
    /// The sum of all values.
    pub total: f64,
}

#[derive(Debug)]
struct Values {
    min: f64,
    max: f64,
    total: f64,
    distribution: Distribution,
}

/// The counters of a recording.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// The names of counters that have been declared. Other arguments of kernels are no counters.
    names: BTreeSet<String>,
    kernels: BTreeMap<String, BTreeMap<String, Values>>,
    pairs: usize,
}

impl Counters {
    /// Declares the counters of a block.
    pub fn declare(&mut self, block: &CounterBlock) {
        for counter in &block.counters {
            if self.names.len() < MAX_NAMES {
                self.names.insert(counter.name.clone());
            }
        }
    }

    /// Adds the values beside a kernel.
    pub fn add(&mut self, work: &Work<'_>) {
        if work.stage.kind != WorkKind::Kernel || self.names.is_empty() {
            return;
        }
        for argument in work.arguments {
            let value = match argument.value {
                Value::Uint(value) => value as f64,
                Value::Int(value) => value as f64,
                Value::Double(value) => value,
                // Traces have the values beside kernels as texts.
                Value::Text(text) => text.parse().unwrap_or(f64::NAN),
                _ => continue,
            };
            if !value.is_finite() {
                continue;
            }
            if !self.names.contains(argument.name) {
                continue;
            }
            let is_known =
                |counters: &BTreeMap<String, Values>| counters.contains_key(argument.name);
            if !self.kernels.get(work.stage.name).is_some_and(is_known) {
                if self.pairs >= MAX_PAIRS {
                    continue;
                }
                self.pairs += 1;
                let counters = self.kernels.entry(work.stage.name.to_owned());
                let none = Values {
                    min: value,
                    max: value,
                    total: 0.0,
                    distribution: Distribution::default(),
                };
                counters.or_default().insert(argument.name.to_owned(), none);
            }
            let counters = self.kernels.get_mut(work.stage.name);
            let values = counters.and_then(|counters| counters.get_mut(argument.name));
            if let Some(values) = values {
                values.min = values.min.min(value);
                values.max = values.max.max(value);
                values.total += value;
                values.distribution.add((value * STEPS_PER_UNIT) as u64);
            }
        }
    }

    /// The counters of each kernel, by name.
    pub fn list(&self) -> Vec<CounterSummary> {
        let summary = |kernel: &String, counter: &String, values: &Values| {
            let Values { min, max, .. } = *values;
            let median = values.distribution.median() as f64 / STEPS_PER_UNIT;
            let is_whole = min.fract() == 0.0 && max.fract() == 0.0;
            let median = if is_whole { median.round() } else { median };
            CounterSummary {
                kernel: kernel.clone(),
                counter: counter.clone(),
                dispatches: values.distribution.count,
                min,
                median: median.clamp(min, max),
                max,
                total: values.total,
            }
        };
        let kernels = self.kernels.iter();
        let all = kernels.flat_map(|(kernel, counters)| {
            let counters = counters.iter();
            counters.map(move |(counter, values)| summary(kernel, counter, values))
        });
        all.collect()
    }
}
