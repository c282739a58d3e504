//! Units of metrics whose definitions give none: ROCProfiler's and rocprofiler-sdk's say them in words.

use super::{Architecture, CounterIndex, Definition, Formula, Property, Usage};
use crate::expression::Operator;

impl Architecture {
    /// Gives each metric of events its unit: that which its description names, or a ratio if it is divided by what was counted.
    pub(super) fn infer_units(&mut self) {
        for place in 0..self.order.len() {
            let CounterIndex(index) = self.order[place];
            let counter = &self.counters[index as usize];
            let Definition::Derived(_, formula) = &counter.definition else {
                continue;
            };
            if counter.usage != Usage::Items {
                continue;
            }
            let usage = match counter.description.to_ascii_lowercase() {
                text if text.contains("percent") => Usage::Percentage,
                text if text.contains("kilobytes") => Usage::Kilobytes,
                _ if self.is_ratio(formula) => Usage::Ratio,
                _ => continue,
            };
            self.counters[index as usize].usage = usage;
        }
    }

    /// Whether a formula, or a metric of it, has a divisor that was counted or measured.
    fn is_ratio(&self, formula: &Formula) -> bool {
        let mut is_ratio = false;
        formula.visit(&mut |part| match part {
            Formula::Binary(Operator::Divide, operands) => {
                operands[1].visit(&mut |divisor| {
                    is_ratio |= matches!(
                        divisor,
                        Formula::Counter(..)
                            | Formula::Instance(..)
                            | Formula::Property(Property::KernelTime)
                    );
                    // A metric without counters is a property in other words.
                    if let Formula::Metric(index) = divisor {
                        is_ratio |= !self.basic_counters(*index).is_empty();
                    }
                });
            }
            Formula::Metric(index) => {
                let usage = self.counter(*index).usage;
                is_ratio |= matches!(usage, Usage::Ratio | Usage::Percentage);
            }
            _ => {}
        });
        is_ratio
    }
}
