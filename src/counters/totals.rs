//! Metrics of which nothing is known but the totals of their counters: the sums over the instances of a block.

use super::{
    Architecture, CounterIndex, Definition, Formula, Invalid, Measured, Property, Reduction,
    Resolution, evaluate,
};
use std::collections::HashMap;

impl Architecture {
    /// The number of instances of the block that counts a basic counter, if it is known.
    fn instances_of(&self, counter: CounterIndex) -> Option<u32> {
        match self.counter(counter).definition {
            Definition::Basic { block, .. } => self.blocks()[block.0 as usize].instances,
            Definition::Derived(..) => None,
        }
    }

    /// Whether the totals of its counters, and properties of the agent, tell the value of a metric. They do not where a
    /// formula takes single instances, the least or the greatest of them, or a counter that the hardware accumulates.
    pub fn follows_from_totals(&self, metric: CounterIndex) -> bool {
        match &self.counter(metric).definition {
            Definition::Derived(_, formula) => self.formula_follows(formula),
            Definition::Basic { .. } => false,
        }
    }

    fn formula_follows(&self, formula: &Formula) -> bool {
        match formula {
            Formula::Number(_) | Formula::Property(_) => true,
            Formula::Counter(index, Resolution::None) => self.instances_of(*index) == Some(1),
            Formula::Metric(index) => self.follows_from_totals(*index),
            Formula::Binary(_, operands) => {
                operands.iter().all(|operand| self.formula_follows(operand))
            }
            Formula::Reduce(reduction, of, count) => match &**of {
                Formula::Counter(index, Resolution::None) => {
                    let (instances, count) = (self.instances_of(*index), count.unwrap_or(u32::MAX));
                    match reduction {
                        Reduction::Sum | Reduction::Average => {
                            count == u32::MAX || instances.is_some_and(|all| all <= count)
                        }
                        Reduction::Min | Reduction::Max => instances == Some(1),
                    }
                }
                of => self.formula_follows(of),
            },
            Formula::Counter(..) | Formula::Instance(..) | Formula::Select(..) => false,
        }
    }

    /// The properties of the agent that a metric needs, each once.
    pub fn properties_of(&self, metric: CounterIndex) -> Vec<Property> {
        let (mut found, mut open) = (Vec::new(), vec![metric]);
        while let Some(next) = open.pop() {
            if let Definition::Derived(_, formula) = &self.counter(next).definition {
                formula.visit(&mut |part| match part {
                    Formula::Property(property) => found.push(*property),
                    Formula::Metric(index) => open.push(*index),
                    _ => {}
                });
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The value of a metric by the totals of its counters, if [it follows from them](Self::follows_from_totals).
    /// Properties that are not given are those of the architecture.
    ///
    /// # Errors
    ///
    /// The reason for which it has no value; [`Invalid::Missing`] if a total or a property is missing.
    pub fn of_totals(
        &self,
        metric: CounterIndex,
        totals: &HashMap<CounterIndex, f64>,
        properties: &HashMap<Property, f64>,
    ) -> Result<f64, Invalid> {
        // Spread evenly, so that averages are those of the instances.
        let instances = |(counter, total): (&CounterIndex, &f64)| {
            let count = self.instances_of(*counter).unwrap_or(1).max(1);
            let values = vec![vec![total / f64::from(count)]; count as usize];
            ((*counter, Resolution::None), values)
        };
        let time = properties.get(&Property::KernelTime);
        let own = self.properties().iter().chain(properties);
        let measured = Measured {
            dispatches: 1,
            counters: totals.iter().map(instances).collect(),
            properties: own.map(|(property, value)| (*property, *value)).collect(),
            kernel_times: time.copied().into_iter().collect(),
        };
        let columns = evaluate(self, &[metric], &measured);
        let column = columns.first();
        column.map_or(Err(Invalid::Missing), |column| column.get(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Catalogue, HardwareBlock, Sources, read_text};

    /// An architecture with a block of one instance and one of four.
    fn architecture() -> Architecture {
        let text = "<a>\n<metric name=ONE block=B event=1 descr=\"one\"></metric>\n\
            <metric name=FOUR block=C event=1 descr=\"four\"></metric>\n\
            <metric name=SUM expr=sum(FOUR,4) descr=\"d\"></metric>\n\
            <metric name=MEAN expr=avr(FOUR,4)*CU_NUM descr=\"d\"></metric>\n\
            <metric name=MOST expr=max(FOUR,4) descr=\"d\"></metric>\n\
            <metric name=PART expr=sum(FOUR,2) descr=\"d\"></metric>\n\
            <metric name=RATE expr=ONE/KERNEL_TIME descr=\"d\"></metric>\n\
            <metric name=OF_MOST expr=2*MOST descr=\"d\"></metric>\n</a>\n";
        let mut sources = Sources::default();
        read_text("a.xml", text, &mut |_| Err(String::new()), &mut sources);
        for definitions in sources.architectures.values_mut() {
            definitions.blocks = [("B", 1), ("C", 4)]
                .map(|(name, instances)| HardwareBlock {
                    name: name.to_owned(),
                    instances: Some(instances),
                    capacity: Some(2),
                })
                .into();
        }
        let mut catalogue = Catalogue::from(sources);
        catalogue
            .architectures
            .remove("a")
            .expect("the architecture")
    }

    #[test]
    fn totals_tell_sums_and_averages_and_not_the_greatest_instance() {
        let of = architecture();
        let follows = |name| of.follows_from_totals(of.find(name).expect(name));
        for name in ["SUM", "MEAN", "RATE"] {
            assert!(follows(name), "{name}");
        }
        for name in ["ONE", "FOUR", "MOST", "PART", "OF_MOST"] {
            assert!(!follows(name), "{name}");
        }
    }

    #[test]
    fn a_metric_is_computed_from_totals_and_properties() {
        let of = architecture();
        let index = |name| of.find(name).expect(name);
        let totals = HashMap::from([(index("FOUR"), 10.0), (index("ONE"), 6.0)]);
        let mut properties = HashMap::from([(Property::ComputeUnits, 8.0)]);
        let value = |name, properties: &_| of.of_totals(index(name), &totals, properties);
        assert_eq!(value("SUM", &properties), Ok(10.0));
        assert_eq!(value("MEAN", &properties), Ok(20.0));
        assert_eq!(value("RATE", &properties), Err(Invalid::Missing));
        properties.insert(Property::KernelTime, 3.0);
        assert_eq!(value("RATE", &properties), Ok(2.0));
        properties.insert(Property::KernelTime, 0.0);
        assert_eq!(value("RATE", &properties), Err(Invalid::DivisionByZero));
        assert_eq!(of.properties_of(index("MEAN")), [Property::ComputeUnits]);
    }
}
