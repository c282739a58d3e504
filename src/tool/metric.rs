//! Metrics: what they are computed from, and their values by the totals of their counters.

use super::Error;
use super::counting::text;
use super::functions::{c_string, call, check, read_list};
use gputrail_interface::c::{MetricPart, NamedValue};
use gputrail_record::AgentId;

/// The parts that a metric is computed from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricParts {
    /// Counters of the agent.
    pub counters: Vec<&'static str>,
    /// Properties of the agent, as expressions name them: `CU_NUM` say, or `KERNEL_TIME`.
    pub properties: Vec<&'static str>,
}

/// The parts that a metric of an agent is computed from.
///
/// # Errors
///
/// `NOT_FOUND` for an unknown metric, with the nearest names; `INVALID_ARGUMENT` for a counter, and for a metric that the
/// totals of its counters do not tell, since it takes the greatest instance of a block, say; `NO_SUCH_AGENT`.
pub fn metric_parts(agent: AgentId, metric: &str) -> Result<MetricParts, Error> {
    let metric = c_string(metric)?;
    let all: Vec<MetricPart> = read_list(|to, capacity, count| {
        // SAFETY: a text that ends with a 0, room for that many, and a place for their number.
        unsafe {
            call!(gputrail_metric_parts(
                agent,
                metric.as_ptr(),
                to,
                capacity,
                count
            ))
        }
    })?;
    let those = |which: bool| {
        let parts = all.iter().filter(|part| (part.is_property != 0) == which);
        parts.map(|part| text(part.name)).collect()
    };
    Ok(MetricParts {
        counters: those(false),
        properties: those(true),
    })
}

/// The value of a metric, by `values`: the totals of its counters over all instances of their blocks, and properties, by
/// their names. `KERNEL_TIME` is in nanoseconds. A property that is not among them is the agent's, as far as it is known;
/// `KERNEL_TIME` is not.
///
/// # Errors
///
/// As for [`metric_parts`]; `NOT_FOUND` also if a counter or property is missing; `NO_VALUE` for a division by 0, and for a
/// result that is too large.
pub fn metric_value(agent: AgentId, metric: &str, values: &[(&str, f64)]) -> Result<f64, Error> {
    let metric = c_string(metric)?;
    let names = values.iter().map(|(name, _)| c_string(name));
    let names = names.collect::<Result<Vec<_>, Error>>()?;
    let values: Vec<NamedValue> = names
        .iter()
        .zip(values)
        .map(|(name, (_, value))| NamedValue {
            name: name.as_ptr(),
            value: *value,
        })
        .collect();
    let mut value = 0.0;
    // SAFETY: texts that end with a 0, as many values as it says, and a place for the number.
    check(unsafe {
        call!(gputrail_metric_value(
            agent,
            metric.as_ptr(),
            values.as_ptr(),
            values.len(),
            &mut value
        ))
    })?;
    Ok(value)
}
