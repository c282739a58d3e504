//! Counters: what agents have, and their values for dispatches and for agents.
//!
//! | here | of gputrail |
//! |---|---|
//! | counter | a counter of a block of the agent, with a dimension `DIMENSION_INSTANCE`; or a metric, which is derived and has one instance |
//! | set of counters | what can be counted in one pass: more is `EXCEEDS_HW_LIMIT` |
//! | dispatch counting | counters that are chosen for each kernel; the kernels of all agents run one after the other ([`dispatches`]) |
//! | device counting | counters of an agent from when its context is started ([`devices`]) |
//!
//! Agents with equal counters share their ids. An id has 16 bits, and the id of a value has it above the positions in the
//! dimensions, as AMD's: 6 bits each for XCC, AID, shader engine, agent, shader array and WGP, and 10 for the instance.
//!
//! One context of a process counts dispatches at a time, which is `CONTEXT_CONFLICT` when another one is started; so is a context that
//! counts while one samples, or while gputrail records counters. A context counts either dispatches or agents:
//! `AGENT_DISPATCH_CONFLICT`.

pub mod catalogue;
pub mod configs;
pub mod created;
pub mod devices;
pub mod dispatches;
pub mod info;
pub mod readings;

use gputrail_rocprofiler::{ContextId, Status};
use gputrail_tool as tool;

/// Whether a context counts.
pub fn is_configured(context: ContextId) -> bool {
    dispatches::is_configured(context) || devices::is_configured(context)
}

/// The status for an error of counting.
fn failed(error: tool::Error) -> Status {
    use tool::Status as Of;
    match error.status {
        Of::NOT_FOUND => Status::ERROR_COUNTER_NOT_FOUND,
        // More passes than one, or than there can be.
        Of::INVALID_ARGUMENT => Status::ERROR_EXCEEDS_HW_LIMIT,
        Of::COUNTERS_NOT_AVAILABLE => Status::ERROR_NOT_AVAILABLE,
        Of::LOCKED => Status::ERROR_CONFIGURATION_LOCKED,
        Of::BUSY => Status::ERROR_CONTEXT_ERROR,
        _ => crate::result::failed(error),
    }
}
