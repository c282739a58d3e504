//! PC sampling: where kernels spend their time, and why their waves wait.
//!
//! An agent that can be sampled has a [`Sampler`]; the service ([`Sampling`]) hands it to one context of the process, which
//! says what is sampled how ([`Request`]) and which buffer gets the records. Semantics are those of rocprofiler-sdk's PC
//! sampling service; CUPTI's way of asking is a [`SamplingPeriod`].

mod configuration;
mod debugger;
#[cfg(any(feature = "opencl", feature = "sim"))]
pub(crate) mod lines;
mod service;
#[cfg(test)]
mod tests;

pub use configuration::{Configuration, PeriodLevel, Possible, Request, SamplingPeriod};
pub use service::{Deliver, Delivery, Refusal, Sampler, Sampling, SamplingError};

pub use crate::record::{InstructionType, NotIssued, SamplingMethod, SamplingUnit, StallReason};
