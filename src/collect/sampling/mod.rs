//! PC sampling: where kernels spend their time, and why their waves wait.
//!
//! PC sampling is a [service of agents](crate::agents): a context says how an agent is sampled ([`Request`])
//! and which buffer gets the records. Semantics are those of rocprofiler-sdk's PC sampling service; CUPTI's way of
//! asking is a [`SamplingPeriod`].

pub mod code;
mod configuration;
mod debugger;
mod error;
pub mod lines;
mod possible;
#[cfg(target_os = "linux")]
mod source;
#[cfg(test)]
mod tests;

pub use error::SamplingError;
pub use possible::Possible;
#[cfg(target_os = "linux")]
pub use source::{SampleSource, shortest_timer};

pub use gputrail_record::{InstructionType, NotIssued, SamplingMethod, SamplingUnit, StallReason};

use super::agents::{self, AgentRequest, AgentService, ServiceKind};
use gputrail_interface::sampling::{Configuration, Deliver, Request, SamplingPeriod};
use gputrail_record::AgentId;

/// The PC sampling service.
pub type SamplingService = AgentService<Request>;
/// Where the samples of an agent go.
pub type SampleDelivery = agents::Delivery<Deliver>;

impl AgentRequest for Request {
    const SERVICE: ServiceKind = ServiceKind::PcSampling;
    type Configuration = Configuration;
    type Deliver = Deliver;
    type Error = SamplingError;

    fn is_same(&self, other: &Request) -> bool {
        self == other
    }

    fn active(&self, possible: &[Configuration]) -> Configuration {
        Configuration::active(*self, possible)
    }

    fn check(&self, agent: &str, possible: Vec<Configuration>) -> Result<(), SamplingError> {
        configuration::check(agent, possible, self)
    }

    fn check_process() -> Result<(), SamplingError> {
        match debugger::tracer() {
            Some(tracer) => Err(SamplingError::Debugger { tracer }),
            None => Ok(()),
        }
    }
}

impl SamplingService {
    /// The request that CUPTI's way of asking makes of `agent`.
    ///
    /// # Errors
    ///
    /// As for [`AgentService::configurations`]; [`SamplingError::Period`] if nothing is set, or an exponent or level that does
    /// not exist; [`SamplingError::Method`] if an exponent is asked of an agent that does not count cycles.
    pub fn request(
        &self,
        agent: AgentId,
        period: SamplingPeriod,
    ) -> Result<Request, SamplingError> {
        let (possible, name) = self.named_configurations(agent)?;
        configuration::at_period(period, &name, &possible)
    }
}
