//! The sum of the counts of several kernels.

use super::{CounterReading, DispatchReadings};
use gputrail_counters::{Counted, Property};
use gputrail_record::{CounterInvalid, Nanos};
use std::collections::HashMap;

/// The sum of the counts of several kernels.
#[derive(Clone, Default)]
pub(crate) struct Sum {
    /// The readings of the basic counters, added up for each instance.
    pub readings: Vec<(Counted, CounterReading)>,
    /// The time of all kernels; `None` if it is not known of each.
    pub duration: Option<Nanos>,
    /// The properties of the agent.
    pub properties: HashMap<Property, f64>,
    /// The number of kernels.
    pub kernels: u32,
}

impl Sum {
    /// Adds the counts of a kernel.
    pub fn add(&mut self, dispatch: &DispatchReadings) {
        let before = match self.kernels {
            0 => Some(Nanos(0)),
            _ => self.duration,
        };
        let both = before.zip(dispatch.duration);
        self.duration = both.map(|(before, more)| Nanos(before.0.saturating_add(more.0)));
        self.kernels += 1;
        self.properties.clone_from(&dispatch.properties);
        for (counted, reading) in &dispatch.readings {
            let known = self.readings.iter_mut().find(|(of, _)| of == counted);
            let Some((_, sum)) = known else {
                self.readings.push((*counted, reading.clone()));
                continue;
            };
            let instances = sum.instances.len().max(reading.instances.len());
            sum.instances.resize(instances, 0);
            for (sum, more) in sum.instances.iter_mut().zip(&reading.instances) {
                *sum = sum.saturating_add(*more);
            }
            sum.scheduled = sum.scheduled.min(reading.scheduled);
            if reading.invalid != CounterInvalid::NO {
                sum.invalid = reading.invalid;
            }
        }
    }
}
