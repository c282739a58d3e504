//! Counter collection: when counters are read, what groups, pools and sessions of counters are made with, and their values.

use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;
use gputrail_record::{CounterInvalid, Nanos, QueueId};

/// When counters are read.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum CountingMode {
    /// For each dispatch. Kernels of the agent run one after the other, so that each has its own values.
    #[default]
    Dispatch,
    /// At a period, whatever runs.
    Device {
        /// The time from one reading to the next.
        period: Nanos,
    },
    /// For each range of markers as a whole: what the kernels count that are enqueued from its begin to its end.
    Range,
}

impl CountingMode {
    /// Whether dispatches are counted one by one: for themselves, or for their ranges.
    pub fn is_of_dispatches(self) -> bool {
        matches!(self, CountingMode::Dispatch | CountingMode::Range)
    }
}

impl fmt::Display for CountingMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CountingMode::Dispatch => f.write_str("for each dispatch"),
            CountingMode::Range => f.write_str("for each range of markers"),
            CountingMode::Device { period } => {
                write!(f, "of the agent every {}", in_words(*period))
            }
        }
    }
}

/// A time with a unit that fits: "100us".
pub fn in_words(time: Nanos) -> String {
    format!("{:?}", Duration::from_nanos(time.0)).replace('µ', "u")
}

/// How a group counts.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupOptions {
    /// While kernels run (CUPTI: collection mode kernel), which then run one after the other, or all the time (CUPTI:
    /// collection mode continuous), read at a period, and when the group is stopped.
    pub mode: CountingMode,
    /// The most counters of a pass, if the blocks' capacities are not to be used in full.
    pub per_pass: Option<NonZeroU32>,
    /// The most instances of a block that are read, the first ones; `None` for all of them.
    pub instances: Option<NonZeroU32>,
}

/// A value of a group, of the type of its counter.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Number {
    /// A whole number.
    Uint(u64),
    /// A floating-point number.
    Double(f64),
}

/// A getter was asked for another type than that of the value.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the value is of the type {0}")]
pub struct WrongType(&'static str);

impl Number {
    /// The whole number.
    ///
    /// # Errors
    ///
    /// [`WrongType`] if it is a floating-point number.
    pub fn uint(self) -> Result<u64, WrongType> {
        match self {
            Number::Uint(value) => Ok(value),
            Number::Double(_) => Err(WrongType("double")),
        }
    }

    /// The floating-point number.
    ///
    /// # Errors
    ///
    /// [`WrongType`] if it is a whole number.
    pub fn double(self) -> Result<f64, WrongType> {
        match self {
            Number::Double(value) => Ok(value),
            Number::Uint(_) => Err(WrongType("uint64")),
        }
    }
}

/// What a counter of a group has counted since the group was created or reset.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupValue {
    /// The counter or metric.
    pub name: String,
    /// The sum over all dispatches or periods. Of a percentage or ratio: its formula, of the sums of its counters.
    pub value: Number,
    /// The number of dispatches or periods that have a value.
    pub readings: u64,
    /// The number of those that have none.
    pub invalid: u64,
    /// The reason of the latest one that has none.
    pub reason: CounterInvalid,
    /// The number of instances of the block that are read; 1 for metrics.
    pub sampled_instances: u32,
    /// The number of all instances of the block.
    pub total_instances: u32,
}

impl GroupValue {
    /// The value for all instances, if those that are read stand for the others: multiplied by all over sampled instances
    /// (CUPTI: the normalized value of an event).
    pub fn normalized(&self) -> f64 {
        let value = match self.value {
            Number::Uint(value) => value as f64,
            Number::Double(value) => value,
        };
        value * f64::from(self.total_instances) / f64::from(self.sampled_instances.max(1))
    }
}

/// The counters and entries of a pool.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolOptions {
    /// The number of entries: kernels that are in flight or whose values have not been released.
    pub entries: u32,
    /// The most counters of a pass, if the blocks' capacities are not to be used in full.
    pub per_pass: Option<NonZeroU32>,
    /// The most passes of a kernel; `None` for as many as the agent can do (ROCProfiler v1: 1 in the mode of a single group).
    pub passes: Option<NonZeroU32>,
    /// The most instances of a block that are read, the first ones; `None` for all of them.
    pub instances: Option<NonZeroU32>,
}

/// The value of a counter for a sample, or the reason why there is none.
pub type SampleNumber = Result<Number, CounterInvalid>;

/// How the counters of an agent are opened.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionOptions {
    /// Kernels of this queue alone are counted; `None` for all queues of the agent.
    pub queue: Option<QueueId>,
    /// The most counters of a pass, if the blocks' capacities are not to be used in full.
    pub per_pass: Option<NonZeroU32>,
}
