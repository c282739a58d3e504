//! PC sampling: what agents can do. [`Context::sample`](super::Context::sample) has it done, as rocprofiler-sdk's PC sampling
//! service does; [`Context::sample_every`](super::Context::sample_every) takes a [`SamplingPeriod`], as CUPTI does.
//!
//! A context gets single samples, or counts by dispatch, address and reason
//! ([`SampleAggregate`](gputrail_record::SampleAggregate)). With counts, the kinds `SOURCE_LOCATOR` and `INSTRUCTION_CORRELATION`
//! give each sampled line, and each instruction of the sampled functions with line and text, once, as in CUPTI.
//! `libgputrail-symbols.so.0` beside `libgputrail.so.0` looks them up, never in a call of the program; if it cannot be opened,
//! samples come without locators, and one line on standard error says why. [`StallReason::of`](gputrail_record::StallReason::of)
//! has CUPTI's word for a single sample.
//!
//! * An agent has one configuration, and offers no other, until the tool destroys the context or the buffer. Its context may ask
//!   for the same again.
//! * One context of a process samples, on any number of agents; that of `gputrail record --pc-sampling` is one.
//! * A process under a debugger (ptrace) is not sampled. A process cannot sample and count at once; counters that a tool collects
//!   by its own means (`gputrail_context_collects_counters`) exclude sampling in the same context only.
//! * Other processes never configure a process's processors or simulated devices.

use super::Error;
use super::functions::{ask, list};
use gputrail_interface::c::SamplingConfiguration;
use gputrail_record::{AgentId, CodeObjectId};

pub use gputrail_interface::c::SourceLine;

pub use gputrail_interface::sampling::PeriodLevel;
pub use gputrail_interface::sampling::{Configuration, Deliver, Request, SamplingPeriod};

/// The agents whose sources know whether they can be sampled: those that the program has asked about.
///
/// # Errors
///
/// `NOT_INITIALISED` after the tool's end.
pub fn agents() -> Result<Vec<AgentId>, Error> {
    list!(gputrail_sampling_agents())
}

/// How an agent can be sampled at this moment: once somebody has configured it, only so; not at all if there is nothing
/// in the list.
///
/// # Errors
///
/// `NO_SUCH_AGENT`, `SAMPLING_NOT_AVAILABLE` under a debugger.
pub fn configurations(agent: AgentId) -> Result<Vec<Configuration>, Error> {
    let all = list!(gputrail_sampling_configurations(agent))?;
    let of = |one: SamplingConfiguration| Configuration {
        method: one.method,
        unit: one.unit,
        min: one.min_interval,
        max: one.max_interval,
        power_of_two: one.power_of_two != 0,
    };
    Ok(all.into_iter().map(of).collect())
}

/// The source line of an address, given as records of samples have it (CUPTI: `cuptiGetSassToSourceCorrelation`). The code objects of
/// sampled and counted agents can be looked up, also after they were unloaded. Each is read at the first look-up in it.
///
/// # Errors
///
/// `NOT_FOUND` if the line is not known, with the reason; `NOT_INITIALISED` after the tool's end.
pub fn source_line(code_object: CodeObjectId, offset: u64) -> Result<SourceLine, Error> {
    ask!(gputrail_source_line_of(code_object, offset))
}
