//! Groups of counters that code starts, stops, reads and resets.

use super::kinds::list;
use super::objects::{CounterGroupHandle, destroy};
use super::sized::{self, sized};
use super::status::{Failure, Status};
use super::text::{given, kept};
use super::{Answer, callback, checked, done, library, place};
use core::ffi::c_char;
use core::num::NonZeroU32;
use gputrail_collect::context::{CounterGroup, GroupError, GroupOptions, Number};
use gputrail_collect::counting::CountingMode;
use gputrail_record::{AgentId, CounterInvalid, CounterValueType, Nanos};
use std::sync::Arc;

/// The counters of a group, and how they are counted.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct CounterGroupOptions {
    /// `sizeof(gputrail_counter_group_options)`.
    pub size: usize,
    /// The names of counters and of metrics that add up, with commas between them.
    pub counters: *const c_char,
    /// 0 to count while kernels run, one after the other (CUPTI: collection mode kernel); otherwise to count all the time
    /// (CUPTI: collection mode continuous), read at this period in nanoseconds.
    pub period: u64,
    /// The most counters of a pass of a kernel, 0 for as many as the hardware counts at a time. Not for a period.
    pub per_pass: u32,
    /// The most instances of each block that are read, the first ones; 0 for all of them.
    pub instances: u32,
}
sized!(CounterGroupOptions, "gputrail_counter_group_options", 24);

/// What a counter of a group has counted since the group was created or reset. `gputrail_counter_group_uint64` and
/// `gputrail_counter_group_double` read the value.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct CounterGroupValue {
    /// The counter or metric. The text is never freed.
    pub name: *const c_char,
    /// The sum over all dispatches or periods: an integer, or the bits of a double.
    pub value: u64,
    /// The number of dispatches or periods that have a value.
    pub readings: u64,
    /// The number of those that have none.
    pub invalid: u64,
    /// The number of instances of the block that are read; 1 for metrics.
    pub sampled_instances: u32,
    /// The number of all instances of the block.
    pub total_instances: u32,
    /// The value for all instances: multiplied by all over sampled instances.
    pub normalized: f64,
    /// The type of `value`.
    pub value_type: CounterValueType,
    /// The reason of the latest dispatch or period that has none.
    pub reason: CounterInvalid,
    /// 0.
    pub reserved: [u8; 6],
}

impl Default for CounterGroupValue {
    fn default() -> CounterGroupValue {
        CounterGroupValue {
            name: std::ptr::null(),
            value: 0,
            readings: 0,
            invalid: 0,
            sampled_instances: 0,
            total_instances: 0,
            normalized: 0.0,
            value_type: CounterValueType::UINT64,
            reason: CounterInvalid::NO,
            reserved: [0; 6],
        }
    }
}

impl From<GroupError> for Failure {
    fn from(error: GroupError) -> Failure {
        let status = match error {
            GroupError::Started => Status::STARTED,
            GroupError::Stopped => Status::STOPPED,
            GroupError::DoesNotAddUp { .. } => Status::INVALID_ARGUMENT,
            GroupError::Tool(error) => return error.into(),
        };
        Failure::new(status, error.to_string())
    }
}

/// Creates a group of counters of an agent, stopped. While it is started, it has the counter collection service of the
/// process: no other group and no context counts then.
///
/// Errors: `GPUTRAIL_INVALID_ARGUMENT` also for percentages and ratios that the sums of their counters do not tell; as for
/// `gputrail_context_count`.
///
/// # Safety
///
/// `options` is null or leads to options, whose text ends with a 0; `group` is null or a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_group_create(
    agent: AgentId,
    options: *const CounterGroupOptions,
    group: *mut CounterGroupHandle,
) -> Status {
    done(|| {
        // SAFETY: the caller's promise.
        let place = unsafe { place(group, "group") }?;
        drop(library::state()?);
        // SAFETY: the caller's promise.
        let asked = unsafe { sized::read(options) }?;
        // SAFETY: the caller's promise.
        let names = unsafe { given(asked.counters, "counters") }?;
        let names: Vec<&str> = names.split(',').collect();
        if names.iter().any(|name| name.trim().is_empty()) {
            let text = "counters: expected names with commas between them";
            return Err(Failure::new(Status::INVALID_ARGUMENT, text));
        }
        let mode = match asked.period {
            0 => CountingMode::Dispatch,
            period => CountingMode::Device {
                period: Nanos(period),
            },
        };
        let options = GroupOptions {
            mode,
            per_pass: NonZeroU32::new(asked.per_pass),
            instances: NonZeroU32::new(asked.instances),
        };
        let made = Arc::new(CounterGroup::new(agent, &names, options)?);
        let mut state = library::state()?;
        let handle = state.groups.new_handle();
        state.groups.insert(handle, made);
        place.write(CounterGroupHandle { handle });
        Ok(())
    })
}

fn found(group: CounterGroupHandle) -> Answer<Arc<CounterGroup>> {
    library::state()?.groups.get(group.handle)
}

/// Starts a group; what it has counted before stays.
///
/// Errors: `GPUTRAIL_STARTED`; `GPUTRAIL_CONTEXT_CONFLICT` if another group or context counts; `GPUTRAIL_BUSY` from within a buffer's callback; `GPUTRAIL_NO_SUCH_COUNTER_GROUP`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_counter_group_start(group: CounterGroupHandle) -> Status {
    done(|| {
        callback::refuse_inside_batch()?;
        Ok(found(group)?.start()?)
    })
}

/// Stops a group. Others can be started then.
///
/// Errors: `GPUTRAIL_STOPPED`; `GPUTRAIL_BUSY` from within a callback; `GPUTRAIL_NO_SUCH_COUNTER_GROUP`,
/// `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_counter_group_stop(group: CounterGroupHandle) -> Status {
    done(|| {
        callback::refuse_inside()?;
        Ok(found(group)?.stop()?)
    })
}

/// What a group has counted so far, in the order of the names. As `gputrail_kinds`. The group may be started: kernels that
/// have not ended are not in it.
///
/// Errors: `GPUTRAIL_TOO_SMALL`, and as many as fit are written; `GPUTRAIL_BUSY` from within a callback;
/// `GPUTRAIL_NO_SUCH_COUNTER_GROUP`, `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `values` is null or leads to room for `capacity` of them, `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_group_read(
    group: CounterGroupHandle,
    values: *mut CounterGroupValue,
    capacity: usize,
    count: *mut usize,
) -> Status {
    done(|| {
        callback::refuse_inside()?;
        let read = found(group)?.read()?;
        let all: Vec<CounterGroupValue> = read
            .iter()
            .map(|value| {
                let (bits, value_type) = match value.value {
                    Number::Uint(number) => (number, CounterValueType::UINT64),
                    Number::Double(number) => (number.to_bits(), CounterValueType::DOUBLE),
                };
                CounterGroupValue {
                    name: kept(&value.name),
                    value: bits,
                    readings: value.readings,
                    invalid: value.invalid,
                    sampled_instances: value.sampled_instances,
                    total_instances: value.total_instances,
                    normalized: value.normalized(),
                    value_type,
                    reason: value.reason,
                    reserved: [0; 6],
                }
            })
            .collect();
        // SAFETY: the caller's promises.
        unsafe { list(&all, values, capacity, count) }
    })
}

/// Forgets what a group has counted. The group may be started.
///
/// Errors: `GPUTRAIL_BUSY` from within a callback; `GPUTRAIL_NO_SUCH_COUNTER_GROUP`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_counter_group_reset(group: CounterGroupHandle) -> Status {
    done(|| {
        callback::refuse_inside()?;
        Ok(found(group)?.reset()?)
    })
}

/// Stops a group if it is started, and destroys it.
///
/// Errors: `GPUTRAIL_BUSY` from within a callback; `GPUTRAIL_NO_SUCH_COUNTER_GROUP`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_counter_group_destroy(group: CounterGroupHandle) -> Status {
    done(|| {
        callback::refuse_inside()?;
        let gone = library::state()?.groups.remove(group.handle)?;
        destroy(gone);
        Ok(())
    })
}

/// Reads a value of a group that is a whole number.
///
/// Errors: `GPUTRAIL_WRONG_TYPE` if it is a double; `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `value` is null or leads to a value, `number` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_group_uint64(
    value: *const CounterGroupValue,
    number: *mut u64,
) -> Status {
    done(|| {
        // SAFETY: the caller's promises.
        let (value, place) = unsafe { (read(value)?, place(number, "number")?) };
        place.write(value.number().uint().map_err(wrong_type)?);
        Ok(())
    })
}

/// Reads a value of a group that is a floating-point number.
///
/// Errors: `GPUTRAIL_WRONG_TYPE` if it is a whole number; `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `value` is null or leads to a value, `number` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_group_double(
    value: *const CounterGroupValue,
    number: *mut f64,
) -> Status {
    done(|| {
        // SAFETY: the caller's promises.
        let (value, place) = unsafe { (read(value)?, place(number, "number")?) };
        place.write(value.number().double().map_err(wrong_type)?);
        Ok(())
    })
}

impl CounterGroupValue {
    fn number(&self) -> Number {
        match self.value_type {
            CounterValueType::DOUBLE => Number::Double(f64::from_bits(self.value)),
            _ => Number::Uint(self.value),
        }
    }
}

/// # Safety
///
/// `value` is null or leads to a value.
unsafe fn read(value: *const CounterGroupValue) -> Answer<CounterGroupValue> {
    checked(value, "value")?;
    // SAFETY: not null and aligned, and the caller's promise.
    Ok(unsafe { value.read() })
}

fn wrong_type(error: gputrail_collect::context::WrongType) -> Failure {
    Failure::new(Status::WRONG_TYPE, error.to_string())
}
