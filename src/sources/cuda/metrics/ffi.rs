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
pub(super) type NvpwObject = *mut c_void;
pub(super) type NvpwText = *const c_char;

parameters! {
    NVPW_InitializeHost => InitializeHost {}
    NVPW_GetSupportedChipNames => ChipNames { names: *const NvpwText, count: usize, }
    NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize => ScratchSize {
        chip: NvpwText,
        availability: *const u8,
        bytes: usize,
    }
    NVPW_CUDA_MetricsEvaluator_Initialize => InitializeEvaluator {
        scratch: *mut u8,
        bytes: usize,
        chip: NvpwText,
        availability: *const u8,
        data: *const u8,
        data_bytes: usize,
        evaluator: NvpwObject,
    }
    NVPW_MetricsEvaluator_Destroy => DestroyEvaluator { evaluator: NvpwObject, }
    NVPW_MetricsEvaluator_GetMetricNames => MetricNames {
        evaluator: NvpwObject,
        kind: u8,
        texts: NvpwText,
        begins: *const usize,
        count: usize,
    }
    NVPW_MetricsEvaluator_GetSupportedSubmetrics => Submetrics {
        evaluator: NvpwObject,
        kind: u8,
        submetrics: *const u16,
        count: usize,
    }
    NVPW_MetricsEvaluator_GetCounterProperties => CounterProperties {
        evaluator: NvpwObject,
        index: usize,
        description: NvpwText,
        unit: u32,
    }
    NVPW_MetricsEvaluator_GetRatioMetricProperties => RatioProperties {
        evaluator: NvpwObject,
        index: usize,
        description: NvpwText,
        unit: u64,
    }
    NVPW_MetricsEvaluator_GetThroughputMetricProperties => ThroughputProperties {
        evaluator: NvpwObject,
        index: usize,
        description: NvpwText,
        unit: u32,
        counter_count: usize,
        counters: *const usize,
        part_count: usize,
        parts: *const usize,
    }
    NVPW_MetricsEvaluator_HwUnitToString => UnitName { evaluator: NvpwObject, unit: u32, name: NvpwText, }
    NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest => ConvertName {
        evaluator: NvpwObject,
        name: NvpwText,
        request: *mut MetricRequest,
        request_size: usize,
    }
    NVPW_MetricsEvaluator_GetMetricDimUnits => Dimensions {
        evaluator: NvpwObject,
        request: *const MetricRequest,
        request_size: usize,
        factors: *mut Factor,
        count: usize,
        factor_size: usize,
    }
    NVPW_MetricsEvaluator_DimUnitToString => DimensionName {
        evaluator: NvpwObject,
        dimension: u32,
        singular: NvpwText,
        plural: NvpwText,
    }
    NVPW_MetricsEvaluator_GetMetricRawDependencies => RawDependencies {
        evaluator: NvpwObject,
        requests: *const MetricRequest,
        request_count: usize,
        request_size: usize,
        request_stride: usize,
        names: *mut NvpwText,
        count: usize,
        optional_names: *mut NvpwText,
        optional_count: usize,
    }
    NVPW_CUDA_RawMetricsConfig_Create_V2 => CreateConfiguration {
        activity: u32,
        chip: NvpwText,
        availability: *const u8,
        configuration: NvpwObject,
    }
    NVPW_RawMetricsConfig_BeginPassGroup => BeginPassGroup {
        configuration: NvpwObject,
        most_passes: usize,
    }
    NVPW_RawMetricsConfig_AddMetrics => AddMetrics {
        configuration: NvpwObject,
        requests: *const RawRequest,
        count: usize,
    }
    NVPW_RawMetricsConfig_EndPassGroup => EndPassGroup { configuration: NvpwObject, }
    NVPW_RawMetricsConfig_GetNumPasses_V2 => PassCount { configuration: NvpwObject, count: usize, }
    NVPW_RawMetricsConfig_Destroy => DestroyConfiguration { configuration: NvpwObject, }
}

/// `NVPA_ACTIVITY_KIND_PROFILER`: counters of workloads, one after the other.
pub(super) const ACTIVITY_PROFILER: u32 = 1;

/// A metric with its form, as the library has it: `NVPW_MetricEvalRequest`.
#[derive(Copy, Clone, Debug, Default)]
#[repr(C)]
pub(in super::super) struct MetricRequest {
    pub index: usize,
    pub kind: u8,
    pub rollup: u8,
    pub submetric: u16,
}

impl MetricRequest {
    /// The end of its last member, bytes.
    pub const SIZE: usize = offset_of!(MetricRequest, submetric) + size_of::<u16>();
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
    pub name: NvpwText,
    /// 1: counted for one workload alone.
    pub isolated: u8,
    pub keeps_instances: u8,
}

impl RawRequest {
    /// The end of its last member, bytes.
    pub const SIZE: usize = offset_of!(RawRequest, keeps_instances) + size_of::<u8>();
}
