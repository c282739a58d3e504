//! PC sampling: how an agent can be sampled, how often, and what is delivered.

use core::fmt;
use gputrail_record::{SamplingMethod, SamplingUnit, open_enum};

/// One way in which an agent can be sampled (rocprofiler-sdk: `rocprofiler_pc_sampling_configuration_t`).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// How samples are taken.
    pub method: SamplingMethod,
    /// The unit of intervals.
    pub unit: SamplingUnit,
    /// The shortest interval, in `unit`.
    pub min: u64,
    /// The longest interval.
    pub max: u64,
    /// Whether intervals have to be powers of two.
    pub power_of_two: bool,
}

/// How an agent is to be sampled.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// How samples are taken.
    pub method: SamplingMethod,
    /// The unit of `interval`.
    pub unit: SamplingUnit,
    /// Units from one sample of a compute unit to the next.
    pub interval: u64,
}

impl Configuration {
    /// The configuration that is this request and nothing else: that of an agent which samples so already. Its flag is that of the
    /// configuration among `possible` that the request is of.
    pub fn active(request: Request, possible: &[Configuration]) -> Configuration {
        let of = possible.iter().find(|one| one.is_of(&request));
        Configuration {
            method: request.method,
            unit: request.unit,
            min: request.interval,
            max: request.interval,
            power_of_two: of.is_some_and(|one| one.power_of_two),
        }
    }

    /// Whether the agent can do what `request` says.
    pub fn allows(&self, request: &Request) -> bool {
        self.is_of(request)
            && (self.min..=self.max).contains(&request.interval)
            && (!self.power_of_two || request.interval.is_power_of_two())
    }

    /// Whether the agent is sampled as `request` says, at whatever interval.
    pub fn is_of(&self, request: &Request) -> bool {
        (self.method, self.unit) == (request.method, request.unit)
    }
}

/// An interval for people, in its unit.
struct ReadableInterval(u64, SamplingUnit);

impl fmt::Display for ReadableInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReadableInterval(interval, unit) = *self;
        if unit != SamplingUnit::TIME {
            return write!(f, "{interval} {}", unit.name().unwrap_or("units"));
        }
        match interval {
            0 => write!(f, "0 ns"),
            _ if interval % 1_000_000_000 == 0 => write!(f, "{} s", interval / 1_000_000_000),
            _ if interval % 1_000_000 == 0 => write!(f, "{} ms", interval / 1_000_000),
            _ if interval % 1_000 == 0 => write!(f, "{} us", interval / 1_000),
            _ => write!(f, "{interval} ns"),
        }
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = self.method.name().unwrap_or("unknown method");
        let interval = |of| ReadableInterval(of, self.unit);
        if self.min == self.max {
            return write!(f, "{method} every {}", interval(self.min));
        }
        let (min, max) = (interval(self.min), interval(self.max));
        write!(f, "{method} every {min} to {max}")?;
        if self.power_of_two {
            f.write_str(", a power of two")
        } else {
            Ok(())
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Configuration::active(*self, &[]).fmt(f)
    }
}

open_enum! {
    /// How often, in words (CUPTI: `CUpti_ActivityPCSamplingPeriod`).
    PeriodLevel(u32) {
        /// Not set.
        INVALID = 0, "not set";
        /// The shortest period that the agent can do.
        MIN = 1, "min";
        /// A short one.
        LOW = 2, "low";
        /// A medium one.
        MID = 3, "mid";
        /// A long one.
        HIGH = 4, "high";
        /// The longest period that the agent can do.
        MAX = 5, "max";
    }
}

/// CUPTI's way of asking (`CUpti_ActivityPCSamplingConfig`).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct SamplingPeriod {
    /// One of five levels.
    pub level: PeriodLevel,
    /// An exponent from 5 to 31, which overrides the level: 2 to that many cycles. 0 is not set.
    pub exponent: u32,
}

/// The samples that a tool gets. In any case it gets totals per dispatch
/// ([`SamplingTotals`](gputrail_record::SamplingTotals)).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum Deliver {
    /// Each of them.
    #[default]
    Samples,
    /// Their numbers by dispatch, address and reason ([`SampleAggregate`](gputrail_record::SampleAggregate)).
    Aggregates,
}
