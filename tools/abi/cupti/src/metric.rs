//! The Metric API.
//!
//! Metrics are those of a device that follow from the totals of their counters, and those of CUPTI's tables that can be computed from
//! them (`counting/document.xml`): the latter have all kinds of values but `INT64`. Statuses are those of CUPTI's text, as in `event`.
//!
//! | function | here | statuses |
//! |---|---|---|
//! | `cuptiGetNumMetrics`, `cuptiEnumMetrics`, `cuptiDeviceGetNumMetrics`, `cuptiDeviceEnumMetrics` | as the text says | `INVALID_DEVICE`, `INVALID_PARAMETER` |
//! | `cuptiMetricGetIdFromName` | exact names | `INVALID_DEVICE`, `INVALID_METRIC_NAME`, `INVALID_PARAMETER` |
//! | `cuptiMetricGetAttribute` | values of metrics that are not CUPTI's are `PERCENT` or `DOUBLE`; all are evaluated in `AGGREGATE` | `INVALID_METRIC_ID` |
//! | `cuptiMetricGetNumEvents`, `cuptiMetricEnumEvents` | as the text says | `INVALID_METRIC_ID`, `INVALID_PARAMETER` |
//! | `cuptiMetricGetNumProperties`, `cuptiMetricEnumProperties` | `MULTIPROCESSOR_COUNT`, `KERNEL_GPU_TIME`, `CLOCK_RATE` (kHz) and `GLOBAL_MEMORY_BANDWIDTH` (kB/s), where the formula has them. Further facts of a formula are the device's | `INVALID_METRIC_ID`, `INVALID_PARAMETER` |
//! | `cuptiMetricGetRequiredEventGroupSets` | all events of the metric, where they are several and one pass is enough; null otherwise | `INVALID_CONTEXT`, `INVALID_METRIC_ID`, `INVALID_PARAMETER` |
//! | `cuptiMetricGetValue`, `cuptiMetricGetValue2` | as the text says | `INVALID_METRIC_ID`; `INVALID_EVENT_VALUE`, also of an invalid value; `INVALID_METRIC_VALUE`, of the second `NOT_COMPATIBLE`: a division by 0; `PARAMETER_SIZE_NOT_SUFFICIENT`: an event or its value is missing; `INVALID_OPERATION`: a property is missing, or the device does not tell a fact of the formula |
//!
//! `INVALID_METRIC_VALUE` of a negative value is not returned, since no metric is unsigned.

use crate::counting::catalogue::{self, Family, Metric};
use crate::counting::document::ValueKind;
use crate::counting::groups::{INVALID, of_context};
use crate::counting::sets::{self, EventGroupSets};
use crate::counting::values::{listed, read_array, write_array, write_text};
use crate::event::id_named;
use crate::objects::{CUcontext, CUdevice};
use crate::place::{Place, write_attribute};
use crate::result::{Answer, CUptiResult};
use crate::with_gputrail;
use core::ffi::{c_char, c_int, c_void};
use gputrail_abi::kept;
use gputrail_record::{AgentAttributeKind, CounterUsage};
use gputrail_tool::counting::metric_value;
use gputrail_tool::{Status, agent_attribute};

/// `CUpti_MetricValue`: the bits of a value of its kind.
pub type MetricValue = u64;

/// Properties (`CUpti_MetricPropertyID`), by the names that gputrail has for them. Those that CUPTI has no id for are the
/// device's.
const PROPERTIES: [(u32, &str); 4] = [
    (0, "CU_NUM"),           // CUPTI_METRIC_PROPERTY_MULTIPROCESSOR_COUNT
    (2, "KERNEL_TIME"),      // _KERNEL_GPU_TIME
    (3, CLOCK),              // _CLOCK_RATE, in kilohertz
    (5, "MEMORY_BANDWIDTH"), // _GLOBAL_MEMORY_BANDWIDTH
];
/// In Hz.
const CLOCK: &str = "max_engine_clk_fcompute";

/// The kind of a metric's values.
fn kind(metric: &Metric) -> ValueKind {
    ValueKind::of(metric.name).unwrap_or(match metric.usage {
        CounterUsage::PERCENTAGE => ValueKind::Percent,
        _ => ValueKind::Double,
    })
}

/// The category of a metric (`CUpti_MetricCategory`), by the blocks that count its events.
fn category(family: &Family, metric: &Metric) -> u32 {
    let counts = |block: &str| {
        let mut events = metric.events.iter();
        events.any(|event| family.domain_of(*event).name == block)
    };
    let (memory, instruction, multiprocessor, cache, texture) = (0, 1, 2, 3, 4);
    let bytes = [CounterUsage::BYTES, CounterUsage::KILOBYTES];
    if bytes.contains(&metric.usage) || metric.name.contains("SIZE") {
        memory
    } else if ["TCC", "TCP", "GL2C"].iter().any(|block| counts(block))
        || metric.name.contains("CACHE")
    {
        cache
    } else if counts("TA") {
        texture
    } else if counts("GRBM") {
        multiprocessor
    } else {
        instruction
    }
}

listed! {
    /// The metrics of all devices, each once, as many as there is room for.
    cuptiGetNumMetrics, cuptiEnumMetrics() => catalogue::all_ids(|family| family.metrics.len())?;
    /// The metrics of a device, as many as there is room for.
    cuptiDeviceGetNumMetrics, cuptiDeviceEnumMetrics(device: CUdevice) => {
        let family = catalogue::of_device(device)?;
        family.ids(family.metrics.len()).collect()
    };
    /// The events that a metric is computed from, as many as there is room for.
    cuptiMetricGetNumEvents, cuptiMetricEnumEvents(metric: u32) => {
        let (family, place) = catalogue::metric(metric)?;
        let events = family.metrics[place].events.iter();
        events.map(|event| family.id(*event)).collect()
    };
    /// The properties that a metric is computed from, as many as there is room for.
    cuptiMetricGetNumProperties, cuptiMetricEnumProperties(metric: u32) => {
        let (family, place) = catalogue::metric(metric)?;
        properties(&family.metrics[place]).collect()
    };
}

/// The metric of a device with this name.
///
/// # Safety
///
/// `name` is null or ends with a 0; `metric` is null or a place for the id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiMetricGetIdFromName(
    device: CUdevice,
    name: *const c_char,
    metric: *mut u32,
) -> CUptiResult {
    let find = |family: &Family, name: &str| family.metrics.iter().position(|one| one.name == name);
    // SAFETY: `name` is null or ends with a 0; `metric` is null or a place for the id.
    unsafe { id_named(device, name, metric, find, CUptiResult::INVALID_METRIC_NAME) }
}

/// Reads an attribute of a metric.
///
/// # Safety
///
/// `size` is null or leads to a number; `value` is null or leads to that many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiMetricGetAttribute(
    metric: u32,
    attribute: c_int,
    size: *mut usize,
    value: *mut c_void,
) -> CUptiResult {
    /// `CUPTI_METRIC_EVALUATION_MODE_AGGREGATE`
    const AGGREGATE: u32 = 1 << 1;
    with_gputrail(|| {
        let (family, place) = catalogue::metric(metric)?;
        let of = &family.metrics[place];
        // SAFETY: `size` is null or leads to a number; `value` is null or leads to that many bytes.
        unsafe {
            match attribute {
                // CUPTI_METRIC_ATTR_NAME
                0 => write_text(size, value.cast(), kept(of.name)),
                // _SHORT_DESCRIPTION, _LONG_DESCRIPTION
                1 | 2 => write_text(size, value.cast(), kept(of.description)),
                // _CATEGORY
                3 => write_attribute(size, value.cast(), category(&family, of)),
                // _VALUE_KIND
                4 => write_attribute(size, value.cast(), kind(of) as u32),
                // _EVALUATION_MODE
                5 => write_attribute(size, value.cast(), AGGREGATE),
                _ => Err(CUptiResult::INVALID_PARAMETER),
            }
        }
    })
}

/// The properties of a metric that have an id.
fn properties(metric: &Metric) -> impl Iterator<Item = u32> {
    let ids = PROPERTIES.into_iter();
    ids.filter(|(_, name)| metric.properties.contains(name))
        .map(|(id, _)| id)
}

/// Makes the groups that count the events of metrics, and says which of them go together: one set for each pass.
///
/// # Safety
///
/// `ids` is null or leads to `size` bytes; `passes` is null or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiMetricCreateEventGroupSets(
    context: CUcontext,
    size: usize,
    ids: *mut u32,
    passes: *mut *mut EventGroupSets,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `passes` is null or a place for a pointer, and `ids` is null or leads to `size` bytes.
        let (to, ids) = unsafe { (Place::new(passes)?, read_array(ids, size)?) };
        let (.., own) = of_context(context)?;
        let mut events = Vec::new();
        for id in ids {
            let (family, place) = of_family(id, &own)?;
            for event in &family.metrics[place].events {
                if !events.contains(event) {
                    events.push(*event);
                }
            }
        }
        to.put(sets::create(context, &events)?);
        Ok(())
    })
}

/// A metric, which has to be one of devices of a family.
fn of_family(metric: u32, own: &Family) -> Answer<(std::sync::Arc<Family>, usize)> {
    let (family, place) = catalogue::metric(metric)?;
    if family.is_same(own) {
        Ok((family, place))
    } else {
        Err(CUptiResult::INVALID_METRIC_ID)
    }
}

/// The events of a metric that have to be counted in the same pass: all of them, where one pass is enough for several; null
/// otherwise.
///
/// # Safety
///
/// `required` is null or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiMetricGetRequiredEventGroupSets(
    context: CUcontext,
    metric: u32,
    required: *mut *mut EventGroupSets,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `required` is null or a place for a pointer.
        let to = unsafe { Place::new(required) }?;
        let (.., own) = of_context(context)?;
        let (family, place) = of_family(metric, &own)?;
        let events = &family.metrics[place].events;
        to.put(
            if events.len() > 1 && sets::pass_count(&family, events) == 1 {
                sets::create(context, events)?
            } else {
                std::ptr::null_mut()
            },
        );
        Ok(())
    })
}

/// The value that belongs to an id.
fn value_of(id: u32, ids: &[u32], values: &[u64]) -> Option<u64> {
    let place = ids.iter().position(|own| *own == id);
    place.and_then(|place| values.get(place)).copied()
}

/// The totals of events, with the names of these.
///
/// # Safety
///
/// `ids` is null or leads to `id_size` bytes, `values` to `size` bytes.
unsafe fn totals(
    metric: (&Family, &Metric),
    (ids, id_size): (*const u32, usize),
    (values, size): (*const u64, usize),
) -> Answer<Vec<(&'static str, f64)>> {
    // SAFETY: `ids` is null or leads to `id_size` bytes, `values` to `size` bytes; both are copied.
    let (ids, values) = unsafe { (read_array(ids, id_size)?, read_array(values, size)?) };
    let mut totals = Vec::new();
    for event in &metric.1.events {
        let value = value_of(metric.0.id(*event), &ids, &values);
        let value = value.ok_or(CUptiResult::PARAMETER_SIZE_NOT_SUFFICIENT)?;
        if value >= INVALID {
            return Err(CUptiResult::INVALID_EVENT_VALUE);
        }
        totals.push((metric.0.events[*event].name, value as f64));
    }
    Ok(totals)
}

/// The value of a metric; `unfit` is the status for one that is no number.
fn value(
    metric: (&Family, &Metric),
    values: &[(&str, f64)],
    unfit: CUptiResult,
) -> Answer<MetricValue> {
    let value = metric_value(metric.0.agent, metric.1.name, values);
    let value = value.map_err(|error| match error.status {
        Status::NO_VALUE => unfit,
        // A property is missing.
        Status::NOT_FOUND => CUptiResult::INVALID_OPERATION,
        _ => error.into(),
    })?;
    Ok(kind(metric.1).bits(value))
}

/// The value of a metric of a device, by the totals of its events and the time in which they were counted, in nanoseconds.
///
/// # Safety
///
/// `ids` is null or leads to `id_size` bytes, `values` to `size` bytes; `result` is null or a place for the value.
#[allow(clippy::too_many_arguments)] // as the document declares it
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiMetricGetValue(
    device: CUdevice,
    metric: u32,
    id_size: usize,
    ids: *mut u32,
    size: usize,
    values: *mut u64,
    time: u64,
    result: *mut MetricValue,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `result` is null or a place for a value.
        let to = unsafe { Place::new(result) }?;
        let (family, place) = of_family(metric, &*catalogue::of_device(device)?)?;
        let of = (&*family, &family.metrics[place]);
        // SAFETY: `ids` is null or leads to `id_size` bytes, and `values` to `size` bytes.
        let mut given = unsafe { totals(of, (ids, id_size), (values, size)) }?;
        given.push(("KERNEL_TIME", time as f64));
        let bandwidth = AgentAttributeKind::MEMORY_BANDWIDTH;
        if let Ok(bandwidth) = agent_attribute(family.agent, bandwidth) {
            given.push(("MEMORY_BANDWIDTH", bandwidth as f64));
        }
        to.put(value(of, &given, CUptiResult::INVALID_METRIC_VALUE)?);
        Ok(())
    })
}

/// The value of a metric, by the totals of its events and by its properties.
///
/// # Safety
///
/// `ids` is null or leads to `id_size` bytes, `values` to `size`, `property_ids` to `property_id_size` and `property_values`
/// to `property_size` bytes; `result` is null or a place for the value.
#[allow(clippy::too_many_arguments)] // as the document declares it
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiMetricGetValue2(
    metric: u32,
    id_size: usize,
    ids: *mut u32,
    size: usize,
    values: *mut u64,
    property_id_size: usize,
    property_ids: *mut u32,
    property_size: usize,
    property_values: *mut u64,
    result: *mut MetricValue,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `result` is null or a place for a value.
        let to = unsafe { Place::new(result) }?;
        let (family, place) = catalogue::metric(metric)?;
        let of = (&*family, &family.metrics[place]);
        // SAFETY: `ids` is null or leads to `id_size` bytes, and `values` to `size` bytes.
        let mut given = unsafe { totals(of, (ids, id_size), (values, size)) }?;
        for id in properties(of.1) {
            // SAFETY: `property_ids` is null or leads to `property_id_size` bytes, and `property_values` to `property_size`
            // bytes.
            let (ids, values) = unsafe {
                (
                    read_array(property_ids.cast_const(), property_id_size)?,
                    read_array(property_values.cast_const(), property_size)?,
                )
            };
            let value = value_of(id, &ids, &values);
            let value = value.ok_or(CUptiResult::INVALID_OPERATION)?;
            let name = PROPERTIES.iter().find(|(own, _)| *own == id);
            let name = name.map_or("", |(_, name)| name);
            given.push((name, in_units(name, value)));
        }
        to.put(value(of, &given, CUptiResult::NOT_COMPATIBLE)?);
        Ok(())
    })
}

/// The value of a property in gputrail's unit.
fn in_units(name: &str, value: u64) -> f64 {
    match name {
        CLOCK | "MEMORY_BANDWIDTH" => value as f64 * 1000.0,
        _ => value as f64,
    }
}
