//! Functions that no device here has anything for: the profiler's ranges, its host and its samplers, metrics of instructions, locks of
//! clocks and names of chips answer as a device does that is not supported.
//!
//! Counters are those of the Event and Metric APIs.

use crate::objects::CUcontext;
use crate::result::CUptiResult;
use crate::with_gputrail;
use core::ffi::c_void;

macro_rules! unsupported {
    ($($name:ident,)*) => {
        $(
            /// `NOT_SUPPORTED`; `INVALID_PARAMETER` of null.
            #[unsafe(no_mangle)]
            pub extern "C" fn $name(parameters: *mut c_void) -> CUptiResult {
                with_gputrail(|| {
                    if parameters.is_null() {
                        Err(CUptiResult::INVALID_PARAMETER)
                    } else {
                        Err(CUptiResult::NOT_SUPPORTED)
                    }
                })
            }
        )*
    };
}

unsupported! {
    cuptiProfilerInitialize,
    cuptiProfilerDeInitialize,
    cuptiProfilerCounterDataImageCalculateSize,
    cuptiProfilerCounterDataImageInitialize,
    cuptiProfilerCounterDataImageCalculateScratchBufferSize,
    cuptiProfilerCounterDataImageInitializeScratchBuffer,
    cuptiProfilerBeginSession,
    cuptiProfilerEndSession,
    cuptiProfilerSetConfig,
    cuptiProfilerUnsetConfig,
    cuptiProfilerBeginPass,
    cuptiProfilerEndPass,
    cuptiProfilerEnableProfiling,
    cuptiProfilerDisableProfiling,
    cuptiProfilerIsPassCollected,
    cuptiProfilerFlushCounterData,
    cuptiProfilerPushRange,
    cuptiProfilerPopRange,
    cuptiProfilerGetCounterAvailability,
    cuptiProfilerHostInitialize,
    cuptiProfilerHostDeinitialize,
    cuptiProfilerHostGetSupportedChips,
    cuptiProfilerHostGetBaseMetrics,
    cuptiProfilerHostGetSubMetrics,
    cuptiProfilerHostGetMetricProperties,
    cuptiProfilerHostGetRangeName,
    cuptiProfilerHostEvaluateToGpuValues,
    cuptiProfilerHostConfigAddMetrics,
    cuptiProfilerHostGetConfigImageSize,
    cuptiProfilerHostGetConfigImage,
    cuptiProfilerHostGetNumOfPasses,
    cuptiProfilerHostGetMaxNumHardwareMetricsPerPass,
    cuptiProfilerHostSetDevicePartitionInfo,
    cuptiProfilerHostGetSinglePassSets,
    cuptiProfilerHostGetMetricsInSinglePassSet,
    cuptiRangeProfilerEnable,
    cuptiRangeProfilerDisable,
    cuptiRangeProfilerSetConfig,
    cuptiRangeProfilerStart,
    cuptiRangeProfilerStop,
    cuptiRangeProfilerPushRange,
    cuptiRangeProfilerPopRange,
    cuptiRangeProfilerDecodeData,
    cuptiRangeProfilerGetCounterDataSize,
    cuptiRangeProfilerGetCounterDataInfo,
    cuptiRangeProfilerCounterDataImageInitialize,
    cuptiRangeProfilerCounterDataGetRangeInfo,
    cuptiRangeProfilerGetDevicePartitionInfo,
    cuptiPmSamplingEnable,
    cuptiPmSamplingDisable,
    cuptiPmSamplingSetConfig,
    cuptiPmSamplingStart,
    cuptiPmSamplingStop,
    cuptiPmSamplingDecodeData,
    cuptiPmSamplingGetCounterAvailability,
    cuptiPmSamplingGetCounterDataSize,
    cuptiPmSamplingGetCounterDataInfo,
    cuptiPmSamplingCounterDataImageInitialize,
    cuptiPmSamplingCounterDataGetSampleInfo,
    cuptiSassMetricsGetNumOfMetrics,
    cuptiSassMetricsGetMetrics,
    cuptiSassMetricsGetProperties,
    cuptiSassMetricsSetConfig,
    cuptiSassMetricsUnsetConfig,
    cuptiSassMetricsEnable,
    cuptiSassMetricsDisable,
    cuptiSassMetricsGetDataProperties,
    cuptiSassMetricsFlushData,
    cuptiDeviceGetChipName,
}

/// `CUpti_Profiler_DeviceSupported_Params`, as far as it is written.
#[repr(C)]
pub struct DeviceSupported {
    size: usize,
    private: *mut c_void,
    device: i32,
    is_supported: u32,
}

/// No device is supported (`CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED`).
///
/// # Safety
///
/// `parameters` is null or leads to as many bytes as its first field says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiProfilerDeviceSupported(
    parameters: *mut DeviceSupported,
) -> CUptiResult {
    with_gputrail(|| {
        if parameters.is_null() || !parameters.is_aligned() {
            return Err(CUptiResult::INVALID_PARAMETER);
        }
        // SAFETY: `parameters` is not null, so that it leads to the field with its size.
        let size = unsafe { (*parameters).size };
        if size < size_of::<DeviceSupported>() {
            return Err(CUptiResult::INVALID_PARAMETER);
        }
        // SAFETY: the structure has these fields, as its size says.
        unsafe {
            crate::objects::agent((*parameters).device)?;
            (*parameters).is_supported = 1;
        }
        Ok(())
    })
}

/// `NOT_SUPPORTED`: no clock of a device can be locked.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiClockControlLock(_: CUcontext, _mode: u32) -> CUptiResult {
    with_gputrail(|| Err(CUptiResult::NOT_SUPPORTED))
}

/// As [`cuptiClockControlLock`].
#[unsafe(no_mangle)]
pub extern "C" fn cuptiClockControlUnlock() -> CUptiResult {
    with_gputrail(|| Err(CUptiResult::NOT_SUPPORTED))
}

/// As [`cuptiClockControlLock`]; `INVALID_PARAMETER` of null.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiClockControlGetStatus(_: CUcontext, status: *mut c_void) -> CUptiResult {
    cuptiPmSamplingStart(status)
}
