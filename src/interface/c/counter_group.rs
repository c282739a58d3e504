//! Groups of counters that code starts, stops, reads and resets.

use super::sized::sized;
use core::ffi::c_char;
use gputrail_record::{CounterInvalid, CounterValueType};

/// The counters of a group, and how they are counted.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct CounterGroupOptions {
    /// `sizeof(gputrail_counter_group_options)`.
    pub size: usize,
    /// The names of counters and of metrics that add up, with commas between them.
    pub counters: *const c_char,
    /// 0 to count while kernels run, one after the other (CUPTI: collection mode kernel); otherwise to count all the time
    /// (CUPTI: collection mode continuous), read at this period in nanoseconds.
    pub period: u64,
    /// The most counters of a pass of a kernel, 0 for as many as the hardware counts at a time. Not for a period.
    pub per_pass: u32,
    /// The most instances of each block that are read, the first ones; 0 for all of them.
    pub instances: u32,
}
sized!(CounterGroupOptions, "gputrail_counter_group_options", 24);

/// What a counter of a group has counted since the group was created or reset. `gputrail_counter_group_uint64` and
/// `gputrail_counter_group_double` read the value.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct CounterGroupValue {
    /// The counter or metric. The text is never freed.
    pub name: *const c_char,
    /// The sum over all dispatches or periods: an integer, or the bits of a double.
    pub value: u64,
    /// The number of dispatches or periods that have a value.
    pub readings: u64,
    /// The number of those that have none.
    pub invalid: u64,
    /// The number of instances of the block that are read; 1 for metrics.
    pub sampled_instances: u32,
    /// The number of all instances of the block.
    pub total_instances: u32,
    /// The value for all instances: multiplied by all over sampled instances.
    pub normalized: f64,
    /// The type of `value`.
    pub value_type: CounterValueType,
    /// The reason of the latest dispatch or period that has none.
    pub reason: CounterInvalid,
    /// 0.
    pub reserved: [u8; 6],
}

impl Default for CounterGroupValue {
    fn default() -> CounterGroupValue {
        CounterGroupValue {
            name: std::ptr::null(),
            value: 0,
            readings: 0,
            invalid: 0,
            sampled_instances: 0,
            total_instances: 0,
            normalized: 0.0,
            value_type: CounterValueType::UINT64,
            reason: CounterInvalid::NO,
            reserved: [0; 6],
        }
    }
}
