//! PC sampling: what agents can do. [`Context::sample`](super::Context::sample) has it done, as rocprofiler-sdk's PC sampling
//! service does; [`Context::sample_every`](super::Context::sample_every) takes a [`SamplingPeriod`], as CUPTI does.

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
