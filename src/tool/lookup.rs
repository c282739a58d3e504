//! What ids and times in records stand for.

use super::Error;
use super::functions::{self, check, functions};
use crate::capi::Status;
use crate::record::*;
use core::ffi::CStr;

/// The time now, in the clock of host times in records.
pub fn now() -> Ticks {
    functions().map_or(Ticks::NONE, |functions| (functions.now)())
}

/// How many ticks a second has; 0 outside of a program that gputrail observes.
pub fn ticks_per_second() -> u64 {
    functions().map_or(0, |functions| (functions.ticks_per_second)())
}

/// Host time on CLOCK_BOOTTIME.
///
/// # Errors
///
/// `NOT_INITIALISED` after the tool's end.
pub fn to_nanos(ticks: Ticks) -> Result<Nanos, Error> {
    let mut nanos = Nanos::NONE;
    // SAFETY: a place for the answer.
    check(unsafe { (functions()?.ticks_to_nanos)(ticks, &mut nanos) })?;
    Ok(nanos)
}

/// The text of a string id.
pub fn string(id: StringId) -> Option<String> {
    functions::text(|functions| functions.string, id)
}

/// The name of a kernel.
pub fn kernel_name(id: KernelId) -> Option<String> {
    functions::text(|functions| functions.kernel_name, id)
}

/// The name of an agent.
pub fn agent_name(id: AgentId) -> Option<String> {
    functions::text(|functions| functions.agent_name, id)
}

/// The name of an operation.
pub fn operation_name(operation: Operation) -> Option<&'static str> {
    let name = (functions().ok()?.operation_name)(operation);
    // SAFETY: not null, and then it ends with a 0 and lasts for ever.
    (!name.is_null())
        .then(|| unsafe { CStr::from_ptr(name) })?
        .to_str()
        .ok()
}

/// The operation of a domain that has this name.
pub fn operation(domain: Domain, name: &CStr) -> Option<Operation> {
    let mut operation = Operation::default();
    // SAFETY: a text that ends with a 0, and a place for the answer.
    let status =
        unsafe { (functions().ok()?.operation_by_name)(domain, name.as_ptr(), &mut operation) };
    (status == Status::OK).then_some(operation)
}
