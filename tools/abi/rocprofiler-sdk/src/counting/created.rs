//! Counters that a client defines by an expression, as metrics of gputrail.

use super::catalogue;
use super::failed;
use crate::agents;
use crate::place::{array, place_of};
use crate::result::{Answer, api};
use core::ffi::c_char;
use gputrail_abi::counting::define;
use gputrail_rocprofiler::{AgentId, CounterId, Status};

/// A text of the client's.
///
/// # Safety
///
/// `text` is null or leads to `length` bytes, which the client leaves alone during the call.
unsafe fn given<'a>(text: *const c_char, length: usize) -> Answer<&'a str> {
    // SAFETY: `text` is null or leads to `length` bytes.
    let bytes = unsafe { array(text.cast::<u8>(), length) };
    std::str::from_utf8(bytes).map_err(|_| Status::ERROR_INVALID_ARGUMENT)
}

fn create(agent: AgentId, name: &str, expression: &str, description: &str) -> Answer<CounterId> {
    let before = catalogue::of_agent(agent)?;
    let is_name = |one: char| one.is_ascii_alphanumeric() || one == '_';
    let is_taken = before.iter().any(|one| one.counter.name == name);
    if name.is_empty() || !name.chars().all(is_name) || is_taken {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    // Characters that would end a text of the file.
    let is_of_file = |one: char| one == '"' || one.is_control();
    if expression.trim().is_empty() || expression.contains(is_of_file) {
        return Err(Status::ERROR_AST_GENERATION_FAILED);
    }
    let description: String = description
        .chars()
        .map(|one| if is_of_file(one) { ' ' } else { one })
        .collect();
    // A definition of ROCProfiler v1: the recorded program reads no YAML.
    let refused = define(&format!(
        "<global>\n<metric name=\"{name}\" descr=\"{description}\" expr=\"{expression}\"></metric>\n</global>\n"
    ));
    let refused = refused.map_err(failed)?;
    if refused != 0 {
        return Err(Status::ERROR_AST_GENERATION_FAILED);
    }
    let after = catalogue::of_agent(agent)?.into_iter();
    let mut after = after.filter(|one| one.counter.name == name);
    // An agent has it only if it has all that the expression names.
    let new = after.next().ok_or(Status::ERROR_AST_GENERATION_FAILED)?;
    Ok(new.id)
}

/// Defines a counter of an agent, for sets that are made from now on: metrics of gputrail's, which other agents with the same counters
/// have as well. A sentence about an expression that cannot be understood is written to standard error.
///
/// `AGENT_NOT_FOUND`; `INVALID_ARGUMENT` for a name that is in use or is none; `AST_GENERATION_FAILED` for an expression that cannot
/// be understood, or names counters that the agent does not have.
///
/// # Safety
///
/// The texts are null or as long as they are said to be; `counter` is null or a place for an id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_create_counter(
    name: *const c_char,
    name_length: usize,
    expression: *const c_char,
    expression_length: usize,
    description: *const c_char,
    description_length: usize,
    agent: AgentId,
    counter: *mut CounterId,
) -> Status {
    api(|| {
        // SAFETY: `counter` is null or a place for an id.
        let place = unsafe { place_of(counter) }?;
        // SAFETY: null or as long as it is said to be.
        let name = unsafe { given(name, name_length) }?;
        // SAFETY: null or as long as it is said to be.
        let expression = unsafe { given(expression, expression_length) }?;
        // SAFETY: null or as long as it is said to be.
        let description = unsafe { given(description, description_length) }?;
        if agent == agents::host() {
            return Err(Status::ERROR_AGENT_ARCH_NOT_SUPPORTED);
        }
        place.put(create(agent, name, expression, description)?);
        Ok(())
    })
}
