//! Metrics: what they are computed from, and their values by the totals of their counters.

use core::ffi::c_char;

/// A counter of an agent, or a property of it, that a metric is computed from. The texts are never freed.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct MetricPart {
    /// The name: of a property, as expressions have it, `CU_NUM` say.
    pub name: *const c_char,
    /// 1 for a property.
    pub is_property: u8,
    /// 0.
    pub reserved: [u8; 7],
}

impl Default for MetricPart {
    fn default() -> MetricPart {
        MetricPart {
            name: std::ptr::null(),
            is_property: 0,
            reserved: [0; 7],
        }
    }
}

/// The value of a counter or a property.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct NamedValue {
    /// Its name.
    pub name: *const c_char,
    /// The value: of a counter, the sum over all instances of its block. `KERNEL_TIME` is in nanoseconds.
    pub value: f64,
}
