//! Our own declarations of CUPTI's Event and Metric APIs, up to CUDA 12.

use core::ffi::c_void;
use libloading::os::unix::Library;

/// A set of groups of events that can be enabled at the same time. CUPTI: `CUpti_EventGroupSet`.
#[repr(C)]
pub(in crate::cuda) struct GroupSet {
    pub count: u32,
    pub groups: *mut *mut c_void,
}

/// The sets in which events are counted, one for each pass. CUPTI: `CUpti_EventGroupSets`.
#[repr(C)]
pub(in crate::cuda) struct GroupSets {
    pub count: u32,
    pub sets: *mut GroupSet,
}

super::super::ffi::functions! {
    /// The functions of the Event and Metric APIs. Devices and numbers of events and metrics are 32 bits wide; a value of a metric
    /// has 64 bits of several types.
    EventApi {
        cuptiDeviceGetNumEventDomains(i32, *mut u32);
        cuptiDeviceEnumEventDomains(i32, *mut usize, *mut u32);
        cuptiDeviceGetEventDomainAttribute(i32, u32, u32, *mut usize, *mut c_void);
        cuptiEventDomainGetNumEvents(u32, *mut u32);
        cuptiEventDomainEnumEvents(u32, *mut usize, *mut u32);
        cuptiEventGetAttribute(u32, u32, *mut usize, *mut c_void);
        cuptiDeviceGetNumMetrics(i32, *mut u32);
        cuptiDeviceEnumMetrics(i32, *mut usize, *mut u32);
        cuptiMetricGetAttribute(u32, u32, *mut usize, *mut c_void);
        cuptiMetricGetNumEvents(u32, *mut u32);
        cuptiMetricEnumEvents(u32, *mut usize, *mut u32);
        cuptiMetricGetValue(i32, u32, usize, *mut u32, usize, *mut u64, u64, *mut u64);
        cuptiMetricCreateEventGroupSets(*mut c_void, usize, *mut u32, *mut *mut GroupSets);
        cuptiEventGroupSetsCreate(*mut c_void, usize, *mut u32, *mut *mut GroupSets);
        cuptiEventGroupSetsDestroy(*mut GroupSets);
        cuptiEventGroupGetAttribute(*mut c_void, u32, *mut usize, *mut c_void);
        cuptiEventGroupSetAttribute(*mut c_void, u32, usize, *mut c_void);
        cuptiEventGroupEnable(*mut c_void);
        cuptiEventGroupDisable(*mut c_void);
        cuptiEventGroupReadAllEvents(*mut c_void, u32, *mut usize, *mut u64, *mut usize, *mut u32, *mut usize);
        cuptiSetEventCollectionMode(*mut c_void, u32);
        cuptiEnableKernelReplayMode(*mut c_void);
        cuptiDisableKernelReplayMode(*mut c_void);
    }
}

/// Attributes of events, metrics, domains and groups.
pub(in crate::cuda) mod attribute {
    pub const NAME: u32 = 0;
    pub const SHORT_DESCRIPTION: u32 = 1;
    pub const LONG_DESCRIPTION: u32 = 2;
    pub const METRIC_KIND: u32 = 4;
    pub const DOMAIN_NAME: u32 = 0;
    pub const DOMAIN_ALL_INSTANCES: u32 = 3;
    pub const GROUP_DOMAIN: u32 = 0;
    pub const GROUP_ALL_INSTANCES: u32 = 1;
    pub const GROUP_EVENTS: u32 = 3;
    pub const GROUP_INSTANCES: u32 = 5;
}

/// The type of a metric's value.
pub(in crate::cuda) mod kind {
    pub const DOUBLE: u32 = 0;
    pub const UINT64: u32 = 1;
    pub const PERCENT: u32 = 2;
    pub const THROUGHPUT: u32 = 3;
    pub const INT64: u32 = 4;
    pub const UTILIZATION: u32 = 5;
}

/// Events are counted while kernels run, which then run one after the other.
pub(in crate::cuda) const MODE_KERNEL: u32 = 1;
/// Values that are none.
pub(in crate::cuda) const OVERFLOW: u64 = u64::MAX;
pub(in crate::cuda) const INVALID: u64 = u64::MAX - 1;
/// Statuses of metrics without a value: one of its events overflowed, and a value that its type cannot express.
pub(in crate::cuda) const INVALID_EVENT_VALUE: i32 = 22;
