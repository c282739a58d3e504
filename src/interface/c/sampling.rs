//! PC sampling, and the words for what waves wait for.

use super::sized::sized;
use crate::sampling::PeriodLevel;
use gputrail_record::{SamplingMethod, SamplingUnit};

/// One way in which an agent can be sampled.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SamplingConfiguration {
    /// The shortest interval, in units.
    pub min_interval: u64,
    /// The longest interval.
    pub max_interval: u64,
    /// How samples are taken.
    pub method: SamplingMethod,
    /// The unit of intervals.
    pub unit: SamplingUnit,
    /// 1 if intervals have to be powers of two.
    pub power_of_two: u8,
    /// 0.
    pub reserved: [u8; 5],
}

/// How an agent is to be sampled.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct SamplingOptions {
    /// `sizeof(gputrail_sampling_options)`.
    pub size: usize,
    /// Units from one sample of a compute unit to the next.
    pub interval: u64,
    /// How samples are taken.
    pub method: SamplingMethod,
    /// The unit of `interval`.
    pub unit: SamplingUnit,
    /// 1 for the numbers of samples by dispatch, address and reason, instead of the samples.
    pub aggregates: u8,
    /// 0.
    pub reserved: [u8; 5],
}
sized!(SamplingOptions, "gputrail_sampling_options", 24);

/// How often an agent is to be sampled, as CUPTI has it asked for.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct SamplingPeriodOptions {
    /// `sizeof(gputrail_sampling_period)`.
    pub size: usize,
    /// One of five levels.
    pub level: PeriodLevel,
    /// From 5 to 31: 2 to that many cycles, whatever the level says. 0: not set.
    pub exponent: u32,
    /// 1 for the numbers of samples by dispatch, address and reason, instead of the samples.
    pub aggregates: u8,
    /// 0.
    pub reserved: [u8; 7],
}
sized!(SamplingPeriodOptions, "gputrail_sampling_period", 24);

/// In the place of an agent's id in `gputrail_context_sample`, `gputrail_context_count` and their like: all agents, also those that the
/// process comes to know later, even while the context is started. If there are agents with this service, and none can do what is
/// asked for, that is refused as it is for one agent. Otherwise agents that cannot do it are left out, which a message on the
/// standard error says once of each; agents that the context has configured for themselves before keep that. A context asks so once
/// for a service; another time is `GPUTRAIL_CONFLICT`.
pub const GPUTRAIL_ALL_AGENTS: u32 = 0xffff_ffff;
