//! Descriptions of counters, with their dimensions and instances.

use super::catalogue::{self, KnownCounter, found};
use crate::place::place_of;
use crate::result::api;
use core::ffi::c_void;
use gputrail_abi::{kept, lock};
use gputrail_rocprofiler::*;
use std::collections::HashMap;
use std::sync::Mutex;

/// The one dimension that counters have.
const DIMENSION: &core::ffi::CStr = c"DIMENSION_INSTANCE";

/// The arrays of a counter's description, which last for ever.
#[derive(Copy, Clone)]
struct Described {
    dimensions: &'static [*const CounterRecordDimensionInfo],
    instances: &'static [*const CounterRecordDimensionInstanceInfo],
}

// SAFETY: pointers to structures that do not change.
unsafe impl Send for Described {}

/// The arrays that have been asked for, by the ids of their counters.
static DESCRIBED: Mutex<Option<HashMap<u64, Described>>> = Mutex::new(None);

/// Pointers to values, all of which last for ever.
fn lasting<T>(all: Vec<T>) -> &'static [*const T] {
    let all: &'static [T] = Vec::leak(all);
    let pointers: Vec<*const T> = all.iter().map(core::ptr::from_ref).collect();
    Vec::leak(pointers)
}

fn dimension(counter: &KnownCounter) -> CounterRecordDimensionInfo {
    CounterRecordDimensionInfo {
        name: DIMENSION.as_ptr(),
        instance_size: counter.instances() as usize,
        id: DIMENSION_INSTANCE,
    }
}

fn described(counter: &KnownCounter) -> Described {
    let mut all = lock(&DESCRIBED);
    let all = all.get_or_insert_default();
    *all.entry(counter.id.handle).or_insert_with(|| {
        let positions = (0..counter.instances()).map(|index| CounterDimensionInfo {
            size: size_of::<CounterDimensionInfo>() as u64,
            dimension_name: DIMENSION.as_ptr(),
            index: index as usize,
        });
        let positions = lasting(positions.collect());
        let instances = (0..).zip(positions);
        let instances = instances.map(|(index, position)| CounterRecordDimensionInstanceInfo {
            size: size_of::<CounterRecordDimensionInstanceInfo>() as u64,
            instance_id: counter.instance_id(index),
            counter_id: counter.id.handle,
            dimensions_count: 1,
            dimensions: core::ptr::from_ref(position),
        });
        Described {
            dimensions: lasting(vec![dimension(counter)]),
            instances: lasting(instances.collect()),
        }
    })
}

/// The description that both versions have.
fn version_0(counter: &KnownCounter) -> CounterInfoV0 {
    let of = &counter.counter;
    let (block, expression) = if of.is_metric {
        (c"", kept(of.from))
    } else {
        (kept(of.from), c"")
    };
    CounterInfoV0 {
        id: counter.id,
        name: kept(of.name).as_ptr(),
        description: kept(of.description).as_ptr(),
        block: block.as_ptr(),
        expression: expression.as_ptr(),
        flags: if of.is_metric { IS_DERIVED } else { 0 },
    }
}

fn version_1(counter: &KnownCounter) -> CounterInfoV1 {
    let (known, more) = (version_0(counter), described(counter));
    CounterInfoV1 {
        size: size_of::<CounterInfoV1>() as u64,
        id: known.id,
        name: known.name,
        description: known.description,
        block: known.block,
        expression: known.expression,
        flags: known.flags,
        dimensions_count: more.dimensions.len() as u64,
        dimensions: more.dimensions.as_ptr(),
        dimensions_instances_count: more.instances.len() as u64,
        dimensions_instances: more.instances.as_ptr(),
        spm_support: 0,
        reserved_padding: [0; 7],
    }
}

/// Gives the counters of an agent to a callback, whose answer is the function's. `AGENT_ARCH_NOT_SUPPORTED` if it has none.
///
/// # Safety
///
/// `callback` takes ids and `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_iterate_agent_supported_counters(
    agent: AgentId,
    callback: Option<CountersCallback>,
    data: *mut c_void,
) -> Status {
    api(|| {
        let callback = callback.ok_or(Status::ERROR_INVALID_ARGUMENT)?;
        let all = catalogue::of_agent(agent)?.into_iter();
        let mut all: Vec<CounterId> = all.map(|counter| counter.id).collect();
        // SAFETY: the client's function for this, with as many ids as are said.
        match unsafe { callback(agent, all.as_mut_ptr(), all.len(), data) } {
            Status::SUCCESS => Ok(()),
            other => Err(other),
        }
    })
}

/// Describes a counter. `INCOMPATIBLE_ABI` for another version, `COUNTER_NOT_FOUND`. Texts and arrays last for ever.
///
/// # Safety
///
/// `info` is null or a place for the structure of the version.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_counter_info(
    counter: CounterId,
    version: CounterInfoVersion,
    info: *mut c_void,
) -> Status {
    api(|| match version {
        CounterInfoVersion::VERSION_0 => {
            // SAFETY: `info` is null or a place for this structure.
            let place = unsafe { place_of(info.cast::<CounterInfoV0>()) }?;
            place.put(version_0(found(counter)?));
            Ok(())
        }
        CounterInfoVersion::VERSION_1 => {
            // SAFETY: `info` is null or a place for this structure.
            let place = unsafe { place_of(info.cast::<CounterInfoV1>()) }?;
            place.put(version_1(found(counter)?));
            Ok(())
        }
        _ => Err(Status::ERROR_INCOMPATIBLE_ABI),
    })
}

/// Gives the dimensions of a counter to a callback, whose answer has no effect. `COUNTER_NOT_FOUND`.
///
/// # Safety
///
/// `callback` takes dimensions and `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_iterate_counter_dimensions(
    counter: CounterId,
    callback: Option<CounterDimensionsCallback>,
    data: *mut c_void,
) -> Status {
    api(|| {
        let callback = callback.ok_or(Status::ERROR_INVALID_ARGUMENT)?;
        let dimension = dimension(found(counter)?);
        // SAFETY: the client's function for this, with one dimension.
        unsafe { callback(counter, &raw const dimension, 1, data) };
        Ok(())
    })
}

/// The number of instances of a counter on an agent. `AGENT_NOT_FOUND`, `COUNTER_NOT_FOUND` also if the agent does not have it.
///
/// # Safety
///
/// `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_counter_instance_count(
    agent: AgentId,
    counter: CounterId,
    count: *mut usize,
) -> Status {
    api(|| {
        // SAFETY: `count` is null or a place for a number.
        let place = unsafe { place_of(count) }?;
        place.put(0);
        let all = catalogue::of_agent(agent)?;
        let counter = found(counter)?;
        if !all.iter().any(|one| one.id == counter.id) {
            return Err(Status::ERROR_COUNTER_NOT_FOUND);
        }
        place.put(counter.instances() as usize);
        Ok(())
    })
}

/// The counter of a value.
///
/// # Safety
///
/// `counter` is null or a place for an id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_record_counter_id(
    value: CounterInstanceId,
    counter: *mut CounterId,
) -> Status {
    // SAFETY: `counter` is null or a place for an id.
    let place = unsafe { place_of(counter) };
    api(|| {
        place?.put(catalogue::counter_of(value));
        Ok(())
    })
}

/// The position of a value in a dimension; 0 in one that the counter does not have.
///
/// # Safety
///
/// `position` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_record_dimension_position(
    value: CounterInstanceId,
    dimension: CounterDimensionId,
    position: *mut usize,
) -> Status {
    // SAFETY: `position` is null or a place for a number.
    let place = unsafe { place_of(position) };
    api(|| {
        place?.put(catalogue::position(value, dimension));
        Ok(())
    })
}
