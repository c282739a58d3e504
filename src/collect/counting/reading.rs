//! The reading of a basic counter.

use gputrail_record::{ALWAYS_SCHEDULED, CounterInvalid};

/// The reading of a basic counter.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterReading {
    /// The values of the instances of its block.
    pub instances: Vec<u64>,
    /// The share of the time during which it counted, in thousandths.
    pub scheduled: u16,
    /// The reason for which there is no value.
    pub invalid: CounterInvalid,
}

impl CounterReading {
    /// A value of all instances together that counted all the time.
    pub fn of(value: u64) -> CounterReading {
        CounterReading {
            instances: vec![value],
            scheduled: ALWAYS_SCHEDULED,
            invalid: CounterInvalid::NO,
        }
    }

    /// No value, for this reason.
    pub fn invalid(invalid: CounterInvalid) -> CounterReading {
        CounterReading {
            instances: vec![0],
            scheduled: 0,
            invalid,
        }
    }
}
