//! Our own declarations of the part of libnvperf_host's interface that is in use.
//!
//! A function takes one structure, which begins with its size: the end of its last member. Names are those of the library.

use core::ffi::{c_char, c_void};
use core::mem::{offset_of, size_of};

/// The parameters of a function of the library.
pub(super) trait Parameters {
    /// The name of the function.
    const FUNCTION: &'static str;
    /// The end of the last member, bytes.
    const SIZE: usize;
}

/// The last of the ends of members.
const fn last(ends: &[usize]) -> usize {
    match ends {
        [.., end] => *end,
        [] => 0,
    }
}

/// Declares structures, each with the function that takes it.
macro_rules! parameters {
    ($($function:ident => $name:ident { $($field:ident: $type:ty,)* })*) => {$(
        #[repr(C)]
        pub(in super::super) struct $name {
            pub size: usize,
            /// Null.
            pub private: *const c_void,
            $(pub $field: $type,)*
        }

        impl Parameters for $name {
            const FUNCTION: &'static str = stringify!($function);
            const SIZE: usize = last(&[
                offset_of!($name, private) + size_of::<*const c_void>(),
                $(offset_of!($name, $field) + size_of::<$type>(),)*
            ]);
        }

        // SAFETY: numbers and pointers, which may be null.
        unsafe impl bytemuck::Zeroable for $name {}
    )*};
}

/// A metrics evaluator, or a configuration of raw metrics.
pub(super) type Object = *mut c_void;
pub(super) type Text = *const c_char;

parameters! {
    NVPW_InitializeHost => InitializeHost {}
    NVPW_GetSupportedChipNames => ChipNames { names: *const Text, count: usize, }
    NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize => ScratchSize {
        chip: Text,
        availability: *const u8,
        bytes: usize,
    }
    NVPW_CUDA_MetricsEvaluator_Initialize => InitializeEvaluator {
        scratch: *mut u8,
        bytes: usize,
        chip: Text,
        availability: *const u8,
        data: *const u8,
        data_bytes: usize,
        evaluator: Object,
    }
    NVPW_MetricsEvaluator_Destroy => DestroyEvaluator { evaluator: Object, }
    NVPW_MetricsEvaluator_GetMetricNames => MetricNames {
        evaluator: Object,
        kind: u8,
        texts: Text,
        begins: *const usize,
        count: usize,
    }
    NVPW_MetricsEvaluator_GetSupportedSubmetrics => Submetrics {
        evaluator: Object,
        kind: u8,
        submetrics: *const u16,
        count: usize,
    }
    NVPW_MetricsEvaluator_GetCounterProperties => CounterProperties {
        evaluator: Object,
        index: usize,
        description: Text,
        unit: u32,
    }
    NVPW_MetricsEvaluator_GetRatioMetricProperties => RatioProperties {
        evaluator: Object,
        index: usize,
        description: Text,
        unit: u64,
    }
    NVPW_MetricsEvaluator_GetThroughputMetricProperties => ThroughputProperties {
        evaluator: Object,
        index: usize,
        description: Text,
        unit: u32,
        counter_count: usize,
        counters: *const usize,
        part_count: usize,
        parts: *const usize,
    }
    NVPW_MetricsEvaluator_HwUnitToString => UnitName { evaluator: Object, unit: u32, name: Text, }
    NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest => ConvertName {
        evaluator: Object,
        name: Text,
        request: *mut Request,
        request_size: usize,
    }
    NVPW_MetricsEvaluator_GetMetricDimUnits => Dimensions {
        evaluator: Object,
        request: *const Request,
        request_size: usize,
        factors: *mut Factor,
        count: usize,
        factor_size: usize,
    }
    NVPW_MetricsEvaluator_DimUnitToString => DimensionName {
        evaluator: Object,
        dimension: u32,
        singular: Text,
        plural: Text,
    }
    NVPW_MetricsEvaluator_GetMetricRawDependencies => RawDependencies {
        evaluator: Object,
        requests: *const Request,
        request_count: usize,
        request_size: usize,
        request_stride: usize,
        names: *mut Text,
        count: usize,
        optional_names: *mut Text,
        optional_count: usize,
    }
    NVPW_CUDA_RawMetricsConfig_Create_V2 => CreateConfiguration {
        activity: u32,
        chip: Text,
        availability: *const u8,
        configuration: Object,
    }
    NVPW_RawMetricsConfig_BeginPassGroup => BeginPassGroup {
        configuration: Object,
        most_passes: usize,
    }
    NVPW_RawMetricsConfig_AddMetrics => AddMetrics {
        configuration: Object,
        requests: *const RawRequest,
        count: usize,
    }
    NVPW_RawMetricsConfig_EndPassGroup => EndPassGroup { configuration: Object, }
    NVPW_RawMetricsConfig_GetNumPasses_V2 => PassCount { configuration: Object, count: usize, }
    NVPW_RawMetricsConfig_Destroy => DestroyConfiguration { configuration: Object, }
}

/// `NVPA_ACTIVITY_KIND_PROFILER`: counters of workloads, one after the other.
pub(super) const ACTIVITY_PROFILER: u32 = 1;

/// A metric with its form, as the library has it: `NVPW_MetricEvalRequest`.
#[derive(Copy, Clone, Debug, Default)]
#[repr(C)]
pub(in super::super) struct Request {
    pub index: usize,
    pub kind: u8,
    pub rollup: u8,
    pub submetric: u16,
}

impl Request {
    /// The end of its last member, bytes.
    pub const SIZE: usize = offset_of!(Request, submetric) + size_of::<u16>();
}

/// A power of a unit: `NVPW_DimUnitFactor`.
#[derive(Copy, Clone, Debug, Default)]
#[repr(C)]
pub(in super::super) struct Factor {
    pub dimension: u32,
    pub exponent: i8,
}

impl Factor {
    /// The end of its last member, bytes.
    pub const SIZE: usize = offset_of!(Factor, exponent) + size_of::<i8>();
}

/// A counter of the hardware that is to be configured: `NVPA_RawMetricRequest`.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub(in super::super) struct RawRequest {
    pub size: usize,
    /// Null.
    pub private: *const c_void,
    pub name: Text,
    /// 1: counted for one workload alone.
    pub isolated: u8,
    pub keeps_instances: u8,
}

impl RawRequest {
    /// The end of its last member, bytes.
    pub const SIZE: usize = offset_of!(RawRequest, keeps_instances) + size_of::<u8>();
}
