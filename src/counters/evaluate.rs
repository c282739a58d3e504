//! Values of metrics, computed from those of basic counters for many dispatches at once.

use super::catalogue::{Architecture, CounterIndex, Definition, Formula, Property};
use super::expression::{Operator, Reduction, Resolution};
use std::collections::HashMap;
use std::ops::Range;

/// Why a value is invalid.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Invalid {
    /// Something was divided by 0.
    DivisionByZero,
    /// A result is larger than a number can be.
    Overflow,
    /// A counter or property that it needs has no value.
    Missing,
}

impl Invalid {
    /// The reason as text.
    pub fn text(self) -> &'static str {
        match self {
            Invalid::DivisionByZero => "division by zero",
            Invalid::Overflow => "overflow",
            Invalid::Missing => "a counter that it needs has no value",
        }
    }
}

/// The values of one counter or metric, one for each dispatch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueColumn {
    /// The values; 0 where they are invalid.
    pub values: Vec<f64>,
    /// For each dispatch, why its value is invalid; empty if all are valid.
    pub invalid: Vec<Option<Invalid>>,
}

impl ValueColumn {
    /// The value for one dispatch.
    pub fn get(&self, dispatch: usize) -> Result<f64, Invalid> {
        match self.invalid.get(dispatch) {
            Some(Some(reason)) => Err(*reason),
            _ => self.values.get(dispatch).copied().ok_or(Invalid::Missing),
        }
    }
}

/// The measured values of dispatches.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The number of dispatches.
    pub dispatches: usize,
    /// Of each basic counter the values of each instance, which has one for each dispatch.
    pub counters: HashMap<(CounterIndex, Resolution), Vec<Vec<f64>>>,
    /// The properties of the agent.
    pub properties: HashMap<Property, f64>,
    /// The durations of the dispatches, in ns; empty: not known.
    pub kernel_times: Vec<f64>,
}

/// The number of dispatches that are evaluated together. Their values of all counters and metrics fit into the caches of a
/// processor, and are small enough for the allocator to keep their memory. In tests, few: their dispatches are evaluated in parts.
const TOGETHER: usize = if cfg!(test) { 2 } else { 1024 };

/// The values of `wanted`, in their order.
pub fn evaluate(
    architecture: &Architecture,
    wanted: &[CounterIndex],
    measured: &Measured,
) -> Vec<ValueColumn> {
    let mut needed = vec![false; architecture.counters().len()];
    wanted
        .iter()
        .for_each(|index| needed[index.0 as usize] = true);
    // Metrics stand behind those that they use, so that from the back all that are needed are known.
    for index in architecture.metrics_in_order().iter().rev() {
        if let Definition::Derived(_, formula) = &architecture.counter(*index).definition
            && needed[index.0 as usize]
        {
            formula.each_metric(&mut |used| needed[used.0 as usize] = true);
        }
    }
    let sum = |index: CounterIndex| {
        let instances = Formula::Counter(index, Resolution::None);
        Formula::Reduce(Reduction::Sum, Box::new(instances), None)
    };
    let mut columns = vec![ValueColumn::default(); wanted.len()];
    for first in (0..measured.dispatches).step_by(TOGETHER) {
        let mut evaluation = Evaluation {
            measured,
            dispatches: first..measured.dispatches.min(first + TOGETHER),
            metrics: HashMap::new(),
        };
        for index in architecture.metrics_in_order() {
            if let Definition::Derived(_, formula) = &architecture.counter(*index).definition
                && needed[index.0 as usize]
            {
                let value = evaluation.formula(formula);
                evaluation.metrics.insert(*index, value);
            }
        }
        for (column, index) in columns.iter_mut().zip(wanted) {
            let value = match &architecture.counter(*index).definition {
                Definition::Basic { .. } => evaluation.formula(&sum(*index)),
                Definition::Derived(..) => {
                    let metric = evaluation.metrics.get(index).cloned();
                    let metric = metric.unwrap_or_else(Instances::missing);
                    metric.reduce(Reduction::Sum, None)
                }
            };
            column.append(value.finish(evaluation.dispatches.len()));
        }
    }
    columns
}

impl Formula {
    /// Calls `see` with each metric that the formula uses.
    pub fn each_metric(&self, see: &mut impl FnMut(CounterIndex)) {
        match self {
            Formula::Metric(index) => see(*index),
            Formula::Binary(_, operands) => operands.iter().for_each(|part| part.each_metric(see)),
            Formula::Reduce(_, of, _) | Formula::Select(of, _) => of.each_metric(see),
            Formula::Number(_)
            | Formula::Property(_)
            | Formula::Counter(..)
            | Formula::Instance(..) => {}
        }
    }
}

/// A value with its instances: for each the values of all dispatches, or one value for all.
#[derive(Clone, Debug)]
struct Instances {
    instances: Vec<Vec<f64>>,
    /// Whether each instance has one value for all dispatches.
    is_constant: bool,
    /// The dispatches whose value is invalid. A reason in place 0 of a constant is that of all.
    invalid: Vec<Option<Invalid>>,
}

impl Instances {
    fn constant(value: f64) -> Instances {
        Instances {
            instances: vec![vec![value]],
            is_constant: true,
            invalid: Vec::new(),
        }
    }

    fn missing() -> Instances {
        Instances {
            invalid: vec![Some(Invalid::Missing)],
            ..Instances::constant(0.0)
        }
    }

    /// The column of a value that has been reduced.
    fn finish(mut self, dispatches: usize) -> ValueColumn {
        let spread = |values: Vec<f64>| {
            if self.is_constant {
                vec![values.first().copied().unwrap_or(0.0); dispatches]
            } else {
                values
            }
        };
        let values = spread(self.instances.pop().unwrap_or_default());
        let invalid = match (self.is_constant, self.invalid.first()) {
            (true, Some(reason)) => vec![*reason; dispatches],
            (true, None) => Vec::new(),
            (false, _) => self.invalid,
        };
        let mut column = ValueColumn { values, invalid };
        column.check();
        column
    }

    /// One value for all instances, or the first `count` of them.
    fn reduce(mut self, reduction: Reduction, count: Option<u32>) -> Instances {
        let count = count.map_or(self.instances.len(), |count| count as usize);
        self.instances.truncate(count.max(1));
        let taken = self.instances.len();
        let mut instances = self.instances.into_iter();
        let Some(mut reduced) = instances.next() else {
            return Instances::missing();
        };
        for instance in instances {
            let pairs = reduced.iter_mut().zip(&instance);
            match reduction {
                Reduction::Sum | Reduction::Average => pairs.for_each(|(sum, value)| *sum += value),
                Reduction::Min => pairs.for_each(|(least, value)| *least = least.min(*value)),
                Reduction::Max => pairs.for_each(|(most, value)| *most = most.max(*value)),
            }
        }
        if reduction == Reduction::Average {
            reduced.iter_mut().for_each(|value| *value /= taken as f64);
        }
        Instances {
            instances: vec![reduced],
            ..self
        }
    }

    fn binary(self, operator: Operator, right: Instances) -> Instances {
        let is_constant = self.is_constant && right.is_constant;
        let rows = self.rows(&right);
        let mut invalid = Vec::new();
        merge(&mut invalid, &self.invalid, self.is_constant, rows);
        merge(&mut invalid, &right.invalid, right.is_constant, rows);
        let count = self.instances.len().max(right.instances.len());
        let mut instances = Vec::with_capacity(count);
        let one = [0.0];
        for place in 0..count {
            let left = instance(&self.instances, place).unwrap_or(&one);
            let right = instance(&right.instances, place).unwrap_or(&one);
            if operator == Operator::Divide {
                flag(
                    &mut invalid,
                    right,
                    rows,
                    Invalid::DivisionByZero,
                    |value| value == 0.0,
                );
            }
            let values = apply(operator, left, right, rows);
            flag(&mut invalid, &values, rows, Invalid::Overflow, |value| {
                !value.is_finite()
            });
            instances.push(values);
        }
        Instances {
            instances,
            is_constant,
            invalid,
        }
    }

    fn rows(&self, right: &Instances) -> usize {
        let rows = |value: &Instances| value.instances.first().map_or(0, Vec::len);
        match (self.is_constant, right.is_constant) {
            (true, false) => rows(right),
            (false, true) => rows(self),
            _ => rows(self).min(rows(right)),
        }
    }
}

/// The instance of a value: a value without instances has it for all.
fn instance(instances: &[Vec<f64>], place: usize) -> Option<&[f64]> {
    let found = match instances {
        [one] => Some(one),
        all => all.get(place),
    };
    found.map(Vec::as_slice)
}

/// Adds the reasons of one operand.
fn merge(all: &mut Vec<Option<Invalid>>, of: &[Option<Invalid>], is_constant: bool, rows: usize) {
    if of.iter().all(Option::is_none) {
        return;
    }
    all.resize(rows, None);
    for (row, reason) in all.iter_mut().enumerate() {
        let other = of.get(if is_constant { 0 } else { row }).copied().flatten();
        *reason = reason.or(other);
    }
}

/// Flags the rows whose value `is_invalid`.
fn flag(
    invalid: &mut Vec<Option<Invalid>>,
    values: &[f64],
    rows: usize,
    why: Invalid,
    is_invalid: impl Fn(f64) -> bool,
) {
    if !values.iter().any(|value| is_invalid(*value)) {
        return;
    }
    invalid.resize(rows, None);
    for (row, reason) in invalid.iter_mut().enumerate() {
        let value = values.get(row).or(values.first());
        if value.is_some_and(|value| is_invalid(*value)) {
            reason.get_or_insert(why);
        }
    }
}

/// One operation for all rows; an operand of one value has it for all.
fn apply(operator: Operator, left: &[f64], right: &[f64], rows: usize) -> Vec<f64> {
    fn each(left: &[f64], right: &[f64], rows: usize, work: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        match (left, right) {
            ([left], [right]) => vec![work(*left, *right); rows],
            ([left], right) => right.iter().map(|right| work(*left, *right)).collect(),
            (left, [right]) => left.iter().map(|left| work(*left, *right)).collect(),
            (left, right) => left
                .iter()
                .zip(right)
                .map(|(left, right)| work(*left, *right))
                .collect(),
        }
    }
    match operator {
        Operator::Add => each(left, right, rows, |left, right| left + right),
        Operator::Subtract => each(left, right, rows, |left, right| left - right),
        Operator::Multiply => each(left, right, rows, |left, right| left * right),
        Operator::Divide => each(left, right, rows, |left, right| {
            if right == 0.0 { 0.0 } else { left / right }
        }),
        Operator::Min => each(left, right, rows, f64::min),
        Operator::Max => each(left, right, rows, f64::max),
    }
}

impl ValueColumn {
    /// Adds the values of further dispatches.
    fn append(&mut self, more: ValueColumn) {
        let before = self.values.len();
        self.values.extend(more.values);
        if !self.invalid.is_empty() || !more.invalid.is_empty() {
            self.invalid.resize(before, None);
            self.invalid.extend(more.invalid);
            self.invalid.resize(self.values.len(), None);
        }
    }

    /// Flags values that are no numbers.
    fn check(&mut self) {
        if self.invalid.is_empty() && self.values.iter().all(|value| value.is_finite()) {
            return;
        }
        self.invalid.resize(self.values.len(), None);
        for (value, reason) in self.values.iter_mut().zip(&mut self.invalid) {
            if !value.is_finite() {
                reason.get_or_insert(Invalid::Overflow);
            }
            if reason.is_some() {
                *value = 0.0;
            }
        }
    }
}

struct Evaluation<'a> {
    measured: &'a Measured,
    /// The dispatches that are evaluated.
    dispatches: Range<usize>,
    metrics: HashMap<CounterIndex, Instances>,
}

impl Evaluation<'_> {
    fn formula(&self, formula: &Formula) -> Instances {
        match formula {
            Formula::Number(number) => Instances::constant(*number),
            Formula::Property(Property::KernelTime) => {
                self.column(std::slice::from_ref(&self.measured.kernel_times))
            }
            Formula::Property(property) => {
                let value = self.measured.properties.get(property);
                value.map_or_else(Instances::missing, |value| Instances::constant(*value))
            }
            Formula::Counter(counter, resolution) => {
                let values = self.measured.counters.get(&(*counter, *resolution));
                self.column(values.map_or(&[], Vec::as_slice))
            }
            Formula::Instance(counter, instance) => {
                let values = self.measured.counters.get(&(*counter, Resolution::None));
                let one = values.and_then(|values| values.get(*instance as usize));
                self.column(one.map_or(&[], std::slice::from_ref))
            }
            Formula::Metric(metric) => {
                let known = self.metrics.get(metric).cloned();
                known.unwrap_or_else(Instances::missing)
            }
            Formula::Binary(operator, operands) => {
                let [left, right] = &**operands;
                self.formula(left).binary(*operator, self.formula(right))
            }
            Formula::Reduce(reduction, of, count) => self.formula(of).reduce(*reduction, *count),
            Formula::Select(of, coordinates) => {
                let mut value = self.formula(of);
                if let [(_, taken)] = &coordinates[..] {
                    let mut place = 0;
                    value.instances.retain(|_| {
                        place += 1;
                        taken.contains(&(place - 1))
                    });
                }
                if value.instances.is_empty() {
                    Instances::missing()
                } else {
                    value
                }
            }
        }
    }

    /// The instances that were measured for every dispatch.
    fn column(&self, instances: &[Vec<f64>]) -> Instances {
        let is_whole = |values: &Vec<f64>| values.len() == self.measured.dispatches;
        if instances.is_empty() || !instances.iter().all(is_whole) {
            return Instances::missing();
        }
        let evaluated = |values: &Vec<f64>| values[self.dispatches.clone()].to_vec();
        Instances {
            instances: instances.iter().map(evaluated).collect(),
            is_constant: false,
            invalid: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::{
        Catalogue, Defined, DefinedFrom, DefinitionPlace, Definitions, Dialect, Sources, Usage,
    };
    use super::super::expression::Expression;
    use super::*;

    fn defined(name: &str, from: DefinedFrom) -> Defined {
        let at = DefinitionPlace {
            file: "made".into(),
            line: 1,
            column: 1,
        };
        Defined {
            name: name.to_owned(),
            description: String::new(),
            usage: Usage::Items,
            from,
            at,
        }
    }

    /// Counters A and B of two instances, C of one that is 0 in the second dispatch, and a metric.
    fn value(dialect: Dialect, metric: &str) -> Vec<Result<f64, Invalid>> {
        let event = |event| DefinedFrom::Event {
            block: "SQ".to_owned(),
            event,
            instance: None,
        };
        let at = defined("", event(0)).at;
        let expression = DefinedFrom::Expression(Expression::parse(metric).unwrap(), at);
        let definitions = vec![
            defined("A", event(1)),
            defined("B", event(2)),
            defined("C", event(3)),
            defined("M", expression),
        ];
        let mut sources = Sources::default();
        let definitions = Definitions {
            dialect,
            blocks: Vec::new(),
            counters: definitions,
        };
        sources.architectures.insert("made".to_owned(), definitions);
        let catalogue = Catalogue::from(sources);
        assert_eq!(catalogue.refused, []);
        let made = &catalogue.architectures["made"];
        let counter = |name| (made.find(name).unwrap(), Resolution::None);
        let measured = Measured {
            dispatches: 3,
            counters: HashMap::from([
                (
                    counter("A"),
                    vec![vec![1.0, 2.0, 3.0], vec![10.0, 20.0, 30.0]],
                ),
                (
                    counter("B"),
                    vec![vec![5.0, 5.0, 5.0], vec![7.0, 7.0, 1e308]],
                ),
                (counter("C"), vec![vec![4.0, 0.0, 8.0]]),
            ]),
            properties: HashMap::from([(Property::ComputeUnits, 64.0)]),
            kernel_times: vec![100.0, 200.0, 400.0],
        };
        let column = &evaluate(made, &[counter("M").0], &measured)[0];
        (0..3).map(|dispatch| column.get(dispatch)).collect()
    }

    #[test]
    fn dispatches_that_are_not_evaluated_together_keep_their_places_and_reasons() {
        let mut column = ValueColumn::default();
        let valid = |values: &[f64]| ValueColumn {
            values: values.to_vec(),
            invalid: Vec::new(),
        };
        column.append(valid(&[1.0, 2.0]));
        assert_eq!(column, valid(&[1.0, 2.0]));
        column.append(ValueColumn {
            values: vec![0.0, 4.0],
            invalid: vec![Some(Invalid::Overflow), None],
        });
        column.append(valid(&[5.0]));
        let all: Vec<_> = (0..6).map(|dispatch| column.get(dispatch)).collect();
        let expected = [
            Ok(1.0),
            Ok(2.0),
            Err(Invalid::Overflow),
            Ok(4.0),
            Ok(5.0),
            Err(Invalid::Missing),
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn instances_are_reduced_and_operations_go_instance_by_instance() {
        let sum = |text| value(Dialect::Instances, text);
        assert_eq!(sum("reduce(A,sum)"), [Ok(11.0), Ok(22.0), Ok(33.0)]);
        assert_eq!(sum("reduce(A*2,max)"), [Ok(20.0), Ok(40.0), Ok(60.0)]);
        assert_eq!(sum("reduce(A-A/2,avr)"), [Ok(2.75), Ok(5.5), Ok(8.25)]);
        assert_eq!(
            sum("reduce(select(A,[D=[1]]),min)"),
            [Ok(10.0), Ok(20.0), Ok(30.0)]
        );
        assert_eq!(
            sum("CU_NUM*KERNEL_TIME"),
            [Ok(6400.0), Ok(12800.0), Ok(25600.0)]
        );
        let old = |text| value(Dialect::Sum, text);
        assert_eq!(old("A/CU_NUM*64"), [Ok(11.0), Ok(22.0), Ok(33.0)]);
        assert_eq!(old("max(A,1)+A[1]"), [Ok(11.0), Ok(22.0), Ok(33.0)]);
    }

    #[test]
    fn a_division_by_zero_stays_invalid_whatever_is_done_with_it() {
        let divided = Err(Invalid::DivisionByZero);
        let of = |text| value(Dialect::Sum, text);
        assert_eq!(of("A/C"), [Ok(2.75), divided, Ok(33.0 / 8.0)]);
        assert_eq!(of("1/(A/C)*0"), [Ok(0.0), divided, Ok(0.0)]);
        assert_eq!(of("min(A/C, 1)"), [Ok(1.0), divided, Ok(1.0)]);
        assert_eq!(of("5/0"), [divided; 3]);
        assert_eq!(
            of("1/(B*B)+1"),
            [
                Ok(1.0 + 1.0 / 144.0),
                Ok(1.0 + 1.0 / 144.0),
                Err(Invalid::Overflow)
            ]
        );
        assert_eq!(of("B*B"), [Ok(144.0), Ok(144.0), Err(Invalid::Overflow)]);
        assert_eq!(of("SIMD_NUM*A"), [Err(Invalid::Missing); 3]);
    }
}
