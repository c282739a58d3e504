//! Metrics: what they are computed from, and their values by the totals of their counters.

use super::kinds::list;
use super::library::board;
use super::status::FailedCall;
use super::text::{given, kept};
use super::{Answer, checked, done, place};
use core::ffi::c_char;
use gputrail_counters::{Architecture, CounterIndex, Definition, Invalid, Property};
use gputrail_interface::c::{MetricPart, NamedValue, Status};
use gputrail_record::AgentId;
use std::collections::HashMap;
use std::sync::Arc;

/// A metric of an agent whose value follows from the totals of its counters.
fn found(agent: AgentId, name: &str) -> Answer<(Arc<Architecture>, CounterIndex)> {
    let possible = board()?.counting().configurations(agent);
    let possible = possible.map_err(gputrail_collect::context::ToolError::from)?;
    let unknown = |nearest: &str| {
        let text = format!("agent {agent} has no metric {name:?}{nearest}");
        FailedCall::new(Status::NOT_FOUND, text)
    };
    let architecture = possible.first().ok_or_else(|| unknown(""))?;
    let architecture = architecture.architecture.clone();
    let nearest = || gputrail_counters::the_nearest(&architecture.nearest(name));
    let index = architecture.find(name).ok_or_else(|| unknown(&nearest()))?;
    if let Definition::Basic { .. } = architecture.counter(index).definition {
        let text = format!("{name} is a counter, not a metric");
        return Err(FailedCall::new(Status::INVALID_ARGUMENT, text));
    }
    if !architecture.follows_from_totals(index) {
        let text =
            format!("{name} depends on single instances of a block, which totals do not tell");
        return Err(FailedCall::new(Status::INVALID_ARGUMENT, text));
    }
    Ok((architecture, index))
}

/// The counters and properties that a metric is computed from: the counters first. As `gputrail_kinds`.
///
/// Errors: `GPUTRAIL_NOT_FOUND` for an unknown metric, with the nearest names; `GPUTRAIL_INVALID_ARGUMENT` for a counter, and
/// for a metric that the totals of its counters do not tell, since it takes the greatest instance of a block, say;
/// `GPUTRAIL_TOO_SMALL`, and as many as fit are written; `GPUTRAIL_NO_SUCH_AGENT`, `GPUTRAIL_NULL_POINTER`,
/// `GPUTRAIL_NOT_INITIALISED`; `GPUTRAIL_BUSY` from within a buffer's callback.
///
/// # Safety
///
/// `metric` is null or ends with a 0; `parts` is null or leads to room for `capacity` of them, `count` is null or a place
/// for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_metric_parts(
    agent: AgentId,
    metric: *const c_char,
    parts: *mut MetricPart,
    capacity: usize,
    count: *mut usize,
) -> Status {
    done(|| {
        // SAFETY: `metric` is null or a text that ends with a 0 (the caller's promise).
        let (architecture, index) = found(agent, unsafe { given(metric, "metric") }?)?;
        let counters = architecture.basic_counters(index).into_iter();
        let counter = |(index, _)| MetricPart {
            name: kept(&architecture.counter(index).name),
            ..MetricPart::default()
        };
        let property = |property: Property| MetricPart {
            name: kept(property.name()),
            is_property: 1,
            ..MetricPart::default()
        };
        let properties = architecture.properties_of(index).into_iter();
        let all: Vec<MetricPart> = counters
            .map(counter)
            .chain(properties.map(property))
            .collect();
        // SAFETY: `parts` is null or has room for `capacity` parts, `count` is null or a place for a number (the caller's
        // promises).
        unsafe { list(&all, parts, capacity, count) }
    })
}

/// The value of a metric, by the totals of its counters and by properties, as `gputrail_metric_parts` names them. Further
/// ones are passed over. A property that is not among them is the agent's, as far as it is known; `KERNEL_TIME` is not.
///
/// Errors: as for `gputrail_metric_parts`; `GPUTRAIL_NOT_FOUND` also if a counter or property is missing;
/// `GPUTRAIL_NO_VALUE` for a division by 0, and for a result that is too large.
///
/// # Safety
///
/// `metric` is null or ends with a 0; `values` is null or leads to `value_count` of them, whose names are null or end with
/// a 0; `value` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_metric_value(
    agent: AgentId,
    metric: *const c_char,
    values: *const NamedValue,
    value_count: usize,
    value: *mut f64,
) -> Status {
    done(|| {
        // SAFETY: `value` is null or a place for a number (the caller's promise).
        let place = unsafe { place(value, "value") }?;
        // SAFETY: `metric` is null or a text that ends with a 0 (the caller's promise).
        let name = unsafe { given(metric, "metric") }?;
        let (architecture, index) = found(agent, name)?;
        let (mut totals, mut properties) = (HashMap::new(), HashMap::new());
        for number in 0..value_count {
            checked(values, "values")?;
            // SAFETY: `checked` has refused null and misaligned pointers; otherwise `values` leads to `value_count` values,
            // more than `number` (the caller's promise), any bytes of which are valid.
            let one = unsafe { values.add(number).read() };
            // SAFETY: the name of a value is null or ends with a 0 (the caller's promise).
            let name = unsafe { given(one.name, "the name of a value") }?;
            if let Some(counter) = architecture.find(name) {
                totals.insert(counter, one.value);
            } else if let Some(property) = Property::named(name) {
                properties.insert(property, one.value);
            }
        }
        let result = architecture.of_totals(index, &totals, &properties);
        place.write(result.map_err(|invalid| {
            let status = match invalid {
                Invalid::Missing => Status::NOT_FOUND,
                Invalid::DivisionByZero | Invalid::Overflow => Status::NO_VALUE,
            };
            FailedCall::new(status, format!("{name}: {}", invalid.text()))
        })?);
        Ok(())
    })
}
