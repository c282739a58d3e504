//! Sessions, passes and samples of counters.

use super::sized::sized;
use core::ffi::c_char;
use gputrail_record::{CounterInvalid, CounterUsage, CounterValueType, QueueId};

/// How the counters of an agent are opened for sessions.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct CounterSessionsOptions {
    /// `sizeof(gputrail_counter_sessions_options)`.
    pub size: usize,
    /// Kernels of this queue alone are counted; 0 for all queues of the agent.
    pub queue: QueueId,
    /// The most counters of a pass, 0 for as many as the hardware counts at a time.
    pub per_pass: u32,
}
sized!(
    CounterSessionsOptions,
    "gputrail_counter_sessions_options",
    16
);

/// A counter or metric that can be enabled. Its place in the list is its index.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct SessionCounter {
    /// Its name. The text is never freed.
    pub name: *const c_char,
    /// A description. The text is never freed.
    pub description: *const c_char,
    /// The type of its values: `GPUTRAIL_COUNTER_VALUE_TYPE_UINT64` of counters, `..._DOUBLE` of metrics.
    pub value_type: CounterValueType,
    /// The unit of its values.
    pub usage: CounterUsage,
    /// Reserved, 0.
    pub reserved: [u8; 6],
}

impl Default for SessionCounter {
    fn default() -> SessionCounter {
        SessionCounter {
            name: core::ptr::null(),
            description: core::ptr::null(),
            value_type: CounterValueType::UINT64,
            usage: CounterUsage::ITEMS,
            reserved: [0; 6],
        }
    }
}

/// The value of an enabled counter for a sample.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct SampleValue {
    /// The value: an integer, or the bits of a double; 0 if it is invalid.
    pub value: u64,
    /// The index of the counter.
    pub counter: u32,
    /// The type of the counter's values.
    pub value_type: CounterValueType,
    /// The reason for which there is no value; 0 if there is one.
    pub invalid: CounterInvalid,
    /// Reserved, 0.
    pub reserved: [u8; 2],
}

impl Default for SampleValue {
    fn default() -> SampleValue {
        SampleValue {
            value: 0,
            counter: 0,
            value_type: CounterValueType::UINT64,
            invalid: CounterInvalid::NO,
            reserved: [0; 2],
        }
    }
}
