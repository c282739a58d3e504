//! Our own declarations of CUPTI's profiler host and range profiler interface, of CUDA 12.6 and later.
//!
//! A function takes one structure, which begins with its size: the end of its last member. Later versions have longer
//! structures, and take these.

use core::ffi::{c_char, c_void};
use core::mem::{offset_of, size_of};

/// Values of [`SetConfig::range`] and [`SetConfig::replay`]: each kernel is a range, and runs once for each pass.
pub(in crate::cuda) const AUTO_RANGE: u32 = 1;
pub(in crate::cuda) const KERNEL_REPLAY: u32 = 2;
/// Values of the same: ranges are pushed and popped, and nothing runs again by itself.
pub(in crate::cuda) const USER_RANGE: u32 = 2;
pub(in crate::cuda) const USER_REPLAY: u32 = 3;
/// The value of [`DeviceSupported::supported`] of a device that can be profiled.
pub(in crate::cuda) const SUPPORTED: u32 = 3;

const fn last(ends: &[usize]) -> usize {
    match ends {
        [.., end] => *end,
        [] => 0,
    }
}

/// Declares structures, with the offsets of their fields for the tests.
macro_rules! structures {
    ($($(#[$meta:meta])* $name:ident { $($field:ident: $type:ty,)* })*) => {
        $($(#[$meta])*
        #[repr(C)]
        pub(in crate::cuda) struct $name {
            pub size: usize,
            /// Null.
            pub private: *mut c_void,
            $(pub $field: $type,)*
        }

        impl $name {
            /// The end of the last member, bytes.
            pub const SIZE: usize = last(&[
                offset_of!($name, private) + size_of::<*mut c_void>(),
                $(offset_of!($name, $field) + size_of::<$type>(),)*
            ]);

            /// The structure with its size, and 0 or null for everything else.
            pub fn new() -> $name {
                $name { size: $name::SIZE, ..bytemuck::Zeroable::zeroed() }
            }
        }

        // SAFETY: numbers and pointers, which may be null.
        unsafe impl bytemuck::Zeroable for $name {})*

        /// The offset of each field, by structure and name.
        #[cfg(test)]
        pub(in crate::cuda) const FIELDS: &[(&str, &str, usize)] = &[$($((
            stringify!($name),
            stringify!($field),
            offset_of!($name, $field),
        ),)*)*];

        /// The size of each structure.
        #[cfg(test)]
        pub(in crate::cuda) const SIZES: &[(&str, usize)] = &[$((stringify!($name), $name::SIZE),)*];
    };
}

pub(in crate::cuda) type ProfilerText = *const c_char;

structures! {
    /// CUPTI: `CUpti_Profiler_Initialize_Params`.
    Initialize {}
    /// CUPTI: `CUpti_Profiler_DeviceSupported_Params`.
    DeviceSupported {
        device: i32,
        supported: u32,
        architecture: u32,
        sli: u32,
        vgpu: u32,
        confidential: u32,
        mining: u32,
        wsl: u32,
        api: u32,
    }
    /// CUPTI: `CUpti_Device_GetChipName_Params`.
    ChipName { device: usize, name: ProfilerText, }
    /// CUPTI: `CUpti_Profiler_Host_Initialize_Params`.
    HostInitialize { profiler: u32, chip: ProfilerText, availability: *const u8, host: *mut c_void, }
    /// CUPTI: `CUpti_Profiler_Host_Deinitialize_Params`.
    HostDeinitialize { host: *mut c_void, }
    /// CUPTI: `CUpti_Profiler_Host_GetBaseMetrics_Params`.
    BaseMetrics { host: *mut c_void, kind: u32, names: *const ProfilerText, count: usize, }
    /// CUPTI: `CUpti_Profiler_Host_GetSubMetrics_Params`.
    SubMetrics { host: *mut c_void, kind: u32, metric: ProfilerText, count: usize, names: *const ProfilerText, }
    /// CUPTI: `CUpti_Profiler_Host_GetMetricProperties_Params`.
    MetricProperties {
        host: *mut c_void,
        metric: ProfilerText,
        description: ProfilerText,
        hardware: ProfilerText,
        unit: ProfilerText,
        kind: u32,
    }
    /// CUPTI: `CUpti_Profiler_Host_EvaluateToGpuValues_Params`.
    Evaluate {
        host: *mut c_void,
        image: *const u8,
        image_size: usize,
        range: usize,
        names: *const ProfilerText,
        count: usize,
        values: *mut f64,
    }
    /// CUPTI: `CUpti_Profiler_Host_ConfigAddMetrics_Params`.
    AddMetrics { host: *mut c_void, names: *const ProfilerText, count: usize, }
    /// CUPTI: `CUpti_Profiler_Host_GetConfigImageSize_Params`.
    ConfigSize { host: *mut c_void, bytes: usize, }
    /// CUPTI: `CUpti_Profiler_Host_GetConfigImage_Params`.
    Config { host: *mut c_void, bytes: usize, image: *mut u8, }
    /// CUPTI: `CUpti_Profiler_Host_GetNumOfPasses_Params`.
    Passes { bytes: usize, image: *const u8, passes: usize, }
    /// CUPTI: `CUpti_RangeProfiler_Enable_Params`.
    Enable { context: *mut c_void, profiler: *mut c_void, }
    /// CUPTI: `CUpti_RangeProfiler_Start_Params`, `CUpti_RangeProfiler_Disable_Params`, `CUpti_RangeProfiler_PopRange_Params`.
    OfProfiler { profiler: *mut c_void, }
    /// CUPTI: `CUpti_RangeProfiler_PushRange_Params`.
    PushRange { profiler: *mut c_void, name: ProfilerText, }
    /// CUPTI: `CUpti_RangeProfiler_Stop_Params`.
    Stop { profiler: *mut c_void, pass: usize, level: usize, is_complete: u8, }
    /// CUPTI: `CUpti_RangeProfiler_SetConfig_Params`.
    SetConfig {
        profiler: *mut c_void,
        config_size: usize,
        config: *const u8,
        image_size: usize,
        image: *mut u8,
        range: u32,
        replay: u32,
        most_ranges: usize,
        levels: u16,
        first_level: u16,
        pass: usize,
        target_level: u16,
    }
    /// CUPTI: `CUpti_RangeProfiler_DecodeData_Params`.
    Decode { profiler: *mut c_void, dropped: usize, }
    /// CUPTI: `CUpti_RangeProfiler_GetCounterDataSize_Params`.
    DataSize {
        profiler: *mut c_void,
        names: *const ProfilerText,
        count: usize,
        most_ranges: usize,
        most_nodes: u32,
        bytes: usize,
    }
    /// CUPTI: `CUpti_RangeProfiler_CounterDataImage_Initialize_Params`.
    InitializeData { profiler: *mut c_void, bytes: usize, image: *mut u8, }
    /// CUPTI: `CUpti_RangeProfiler_GetCounterDataInfo_Params`.
    DataInfo { image: *const u8, bytes: usize, ranges: usize, }
}
