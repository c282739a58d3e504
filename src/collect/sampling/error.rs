//! Errors of PC sampling.

use super::Possible;
use crate::agents::{AgentRefusal, HeldBy};
use gputrail_interface::sampling::{Configuration, Request, SamplingPeriod};
use gputrail_record::{AgentId, SamplingUnit};

/// The reason why an agent cannot be sampled as requested. Messages name the possible configurations.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SamplingError {
    /// No agent has this id, or none that a source knows to sample.
    #[error(
        "no agent with sampling information has the id {0}; gputrail_sampling_agents lists those agents"
    )]
    UnknownAgent(AgentId),
    /// The agent cannot be sampled.
    #[error("{agent} cannot be sampled: `gputrail agents` lists the agents that can")]
    NotSupported {
        /// Its id and name.
        agent: String,
    },
    /// Not by this method, or not in this unit.
    #[error("{agent} cannot do {request}; it can do: {possible}")]
    Method {
        /// Its id and name.
        agent: String,
        /// The request.
        request: Request,
        /// The configurations that it offers.
        possible: Possible,
    },
    /// The interval is out of range.
    #[error("{agent} cannot do {request}; it can do: {possible}")]
    Interval {
        /// Its id and name.
        agent: String,
        /// The request.
        request: Request,
        /// The configurations that it offers with this method.
        possible: Possible,
    },
    /// The interval has to be a power of two.
    #[error(
        "{agent} cannot do {request}: intervals are powers of two, the nearest {below} and {above} {}",
        unit(request.unit)
    )]
    PowerOfTwo {
        /// Its id and name.
        agent: String,
        /// The request.
        request: Request,
        /// The nearest shorter interval.
        below: u64,
        /// The nearest longer interval.
        above: u64,
    },
    /// It samples otherwise already: configured in this process, or meanwhile in another one (rocprofiler-sdk:
    /// `ROCPROFILER_STATUS_ERROR_NOT_AVAILABLE`). Asked again, the agent names that configuration alone.
    #[error("{agent} is configured already: {active}")]
    Taken {
        /// Its id and name.
        agent: String,
        /// Its configuration.
        active: Possible,
    },
    /// Another context of the process samples.
    #[error("{0} has the PC sampling service: only one context can have it")]
    OtherContext(HeldBy),
    /// This context or another one of the process collects counters, which cannot be done together.
    #[error(
        "counters are collected in this process: PC sampling and counter collection exclude each other"
    )]
    Counters,
    /// The process is being debugged.
    #[error("PC sampling is not available under a debugger: process {tracer} traces this one")]
    Debugger {
        /// The process that does it.
        tracer: u32,
    },
    /// Asked from within a buffer's callback, which may be what a sampler waits for.
    #[error("busy: samplers are not available within a buffer's callback")]
    Busy,
    /// CUPTI's configuration names no period.
    #[error(
        "no such sampling period: level {} and exponent {}; levels are min, low, mid, high, max, exponents 5 to 31, 0 \
         is not set", .0.level, .0.exponent
    )]
    Period(SamplingPeriod),
    /// The system does not allow it.
    #[error("{agent} cannot be sampled: {reason}")]
    System {
        /// Its id and name.
        agent: String,
        /// The obstacle, and the remedy.
        reason: String,
    },
    /// The system allows it, and configuring it failed all the same (rocprofiler-sdk: `ROCPROFILER_STATUS_ERROR`).
    #[error("{agent} could not be configured for sampling: {reason}")]
    Failed {
        /// Its id and name.
        agent: String,
        /// The cause.
        reason: String,
    },
}

fn unit(unit: SamplingUnit) -> &'static str {
    unit.name().unwrap_or("units")
}

impl From<AgentRefusal<Configuration>> for SamplingError {
    fn from(refused: AgentRefusal<Configuration>) -> SamplingError {
        match refused {
            AgentRefusal::UnknownAgent(agent) => SamplingError::UnknownAgent(agent),
            AgentRefusal::Taken { agent, active } => SamplingError::Taken {
                agent,
                active: Possible(active),
            },
            AgentRefusal::OtherContext(by) => SamplingError::OtherContext(by),
            AgentRefusal::OtherService(_) => SamplingError::Counters,
            AgentRefusal::Busy => SamplingError::Busy,
            AgentRefusal::System { agent, reason } => SamplingError::System { agent, reason },
            AgentRefusal::Failed { agent, reason } => SamplingError::Failed { agent, reason },
        }
    }
}
