//! Groups of counters that code starts, stops, reads and resets.

use super::kinds::list;
use super::objects::destroy;
use super::sized;
use super::status::FailedCall;
use super::text::{given, kept};
use super::{Answer, caller, checked, done, library, place};
use core::num::NonZeroU32;
use gputrail_collect::context::{CounterGroup, GroupError};
use gputrail_interface::c::{CounterGroupHandle, CounterGroupOptions, CounterGroupValue, Status};
use gputrail_interface::counting::CountingMode;
use gputrail_interface::counting::{GroupOptions, Number};
use gputrail_record::{AgentId, CounterValueType, Nanos};
use std::sync::Arc;

impl From<GroupError> for FailedCall {
    fn from(error: GroupError) -> FailedCall {
        let status = match error {
            GroupError::Started => Status::STARTED,
            GroupError::Stopped => Status::STOPPED,
            GroupError::DoesNotAddUp { .. } => Status::INVALID_ARGUMENT,
            GroupError::Tool(error) => return error.into(),
        };
        FailedCall::new(status, error.to_string())
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
/// `options` is null or leads to options, whose text is null or ends with a 0; `group` is null or a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_group_create(
    agent: AgentId,
    options: *const CounterGroupOptions,
    group: *mut CounterGroupHandle,
) -> Status {
    done(|| {
        // SAFETY: `group` is null or a place for a handle (the caller's promise).
        let place = unsafe { place(group, "group") }?;
        drop(library::state()?);
        // SAFETY: `options` is null or leads to options of as many bytes as their size says (the caller's promise).
        let asked = unsafe { sized::read(options) }?;
        // SAFETY: the text in the options is null or ends with a 0 (the caller's promise); `names` is not used after this
        // call.
        let names = unsafe { given(asked.counters, "counters") }?;
        let names: Vec<&str> = names.split(',').collect();
        if names.iter().any(|name| name.trim().is_empty()) {
            let text = "counters: expected names with commas between them";
            return Err(FailedCall::new(Status::INVALID_ARGUMENT, text));
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
        caller::refuse_inside_batch()?;
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
        caller::refuse_inside()?;
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
        caller::refuse_inside()?;
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
        // SAFETY: `values` is null or has room for `capacity` values, `count` is null or a place for a number (the caller's
        // promises).
        unsafe { list(&all, values, capacity, count) }
    })
}

/// Forgets what a group has counted. The group may be started.
///
/// Errors: `GPUTRAIL_BUSY` from within a callback; `GPUTRAIL_NO_SUCH_COUNTER_GROUP`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_counter_group_reset(group: CounterGroupHandle) -> Status {
    done(|| {
        caller::refuse_inside()?;
        Ok(found(group)?.reset()?)
    })
}

/// Stops a group if it is started, and destroys it.
///
/// Errors: `GPUTRAIL_BUSY` from within a callback; `GPUTRAIL_NO_SUCH_COUNTER_GROUP`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_counter_group_destroy(group: CounterGroupHandle) -> Status {
    done(|| {
        caller::refuse_inside()?;
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
        // SAFETY: `value` is null or leads to a value, `number` is null or a place for a number (the caller's promises).
        let (value, place) = unsafe { (read(value)?, place(number, "number")?) };
        place.write(number_of(&value).uint().map_err(wrong_type)?);
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
        // SAFETY: `value` is null or leads to a value, `number` is null or a place for a number (the caller's promises).
        let (value, place) = unsafe { (read(value)?, place(number, "number")?) };
        place.write(number_of(&value).double().map_err(wrong_type)?);
        Ok(())
    })
}

fn number_of(value: &CounterGroupValue) -> Number {
    match value.value_type {
        CounterValueType::DOUBLE => Number::Double(f64::from_bits(value.value)),
        _ => Number::Uint(value.value),
    }
}

/// # Safety
///
/// `value` is null, misaligned, or leads to an initialised value, which nobody writes during the call.
unsafe fn read(value: *const CounterGroupValue) -> Answer<CounterGroupValue> {
    checked(value, "value")?;
    // SAFETY: `checked` has refused null and misaligned pointers; otherwise `value` leads to an initialised value (the
    // caller's promise), any bytes of which are valid.
    Ok(unsafe { value.read() })
}

fn wrong_type(error: gputrail_interface::counting::WrongType) -> FailedCall {
    FailedCall::new(Status::WRONG_TYPE, error.to_string())
}
