//! Counter collection.

use super::sized::sized;
use core::ffi::c_char;
use gputrail_record::CounterUsage;

/// A counter or metric of an agent. The texts are never freed.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct CounterDefinition {
    /// Its name.
    pub name: *const c_char,
    /// A description.
    pub description: *const c_char,
    /// The block of hardware that counts it, or the formula of a metric.
    pub from: *const c_char,
    /// 1 for a metric, which is computed from counters.
    pub is_metric: u8,
    /// The unit of its values.
    pub usage: CounterUsage,
    /// The number of events that the block counts at a time; 0 if it is not known, and of metrics.
    pub capacity: u16,
    /// The number of instances of the block; 0 if it is not known, and 1 of metrics.
    pub instances: u32,
}

impl Default for CounterDefinition {
    fn default() -> CounterDefinition {
        CounterDefinition {
            name: std::ptr::null(),
            description: std::ptr::null(),
            from: std::ptr::null(),
            is_metric: 0,
            usage: CounterUsage::ITEMS,
            capacity: 0,
            instances: 0,
        }
    }
}

/// The counters of an agent, and when they are read.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct CountingOptions {
    /// `sizeof(gputrail_counting_options)`.
    pub size: usize,
    /// The names of counters and metrics, with commas between them.
    pub counters: *const c_char,
    /// 0 for the values of each dispatch; otherwise the time from one reading of the agent to the next, in nanoseconds.
    pub period: u64,
    /// The most counters of a pass of a kernel, 0 for as many as the hardware counts at a time. Not for a period.
    pub per_pass: u32,
    /// 1 for a value of each instance of a block in the place of their sum: the values of a counter follow each other, by
    /// the number of the instance. Not with `per_pass`.
    pub each_instance: u32,
    /// Not null: the values of each range of markers whose name matches this pattern (`*` stands for any text, `?` for one
    /// character), as a whole; an empty text stands for the outermost ranges, whatever their names. Ranges inside of such a
    /// range belong to it. One range of the process is counted at a time: the values of a range of another thread that
    /// begins meanwhile are invalid. The context has to trace or call back for markers and kernel dispatches. Not with a
    /// period, `per_pass` or `each_instance`.
    pub range: *const c_char,
}
sized!(CountingOptions, "gputrail_counting_options", 24);
