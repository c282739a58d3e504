//! CUPTI's range profiler of one context: each kernel is a range, which CUPTI counts in as many runs of the kernel as its
//! metrics take passes; or there is one range, which is pushed and popped and counted in one pass.

use super::ffi as profiler;
use super::host::{FailedStep, MetricHost, step};
use crate::cuda::ffi::{Cupti, SUCCESS, call};
use core::ffi::{CStr, c_void};
use profiler::ProfilerText;
use std::ffi::CString;

/// The room for ranges from begin to end: for the one that is counted, and for a kernel that nobody launched, which shows then.
const MOST_RANGES: usize = 2;

/// The ranges that a profiler counts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum ProfiledRanges {
    /// A kernel.
    Kernels,
    /// All kernels from the begin to the end.
    Pushed,
}

/// The range profiler of a context. Between [`RangeProfiler::begin`] and [`RangeProfiler::end`] all kernels are counted.
pub(super) struct RangeProfiler {
    object: *mut c_void,
    ranges: ProfiledRanges,
    names: Vec<CString>,
    config: Vec<u8>,
    /// The values of the ranges, as CUPTI keeps them.
    data: Vec<u8>,
    pub is_begun: bool,
}

// SAFETY: a handle that CUPTI takes on any thread.
unsafe impl Send for RangeProfiler {}

impl RangeProfiler {
    /// Enables the profiler of `context`, for metrics of `chip`.
    pub fn enable(
        cupti: &Cupti,
        context: *mut c_void,
        chip: &CStr,
        names: Vec<CString>,
        ranges: ProfiledRanges,
    ) -> Result<RangeProfiler, FailedStep> {
        let texts: Vec<ProfilerText> = names.iter().map(|name| name.as_ptr()).collect();
        let config = MetricHost::new(cupti, chip)?.configure(&texts)?;
        let mut params = profiler::Enable::new();
        params.context = context;
        // SAFETY: the context of a call in progress.
        unsafe { step!(cupti, cuptiRangeProfilerEnable, params) }?;
        let mut enabled = RangeProfiler {
            object: params.profiler,
            ranges,
            names,
            config,
            data: Vec::new(),
            is_begun: false,
        };
        let mut size = profiler::DataSize::new();
        size.profiler = enabled.object;
        (size.names, size.count) = (texts.as_ptr(), texts.len());
        (size.most_ranges, size.most_nodes) = (MOST_RANGES, MOST_RANGES as u32);
        // SAFETY: the profiler that was just enabled, and `count` names, which CUPTI reads in the call; `enabled` has the
        // texts.
        match unsafe { step!(cupti, cuptiRangeProfilerGetCounterDataSize, size) } {
            Ok(()) => enabled.data = vec![0; size.bytes],
            Err(failed) => {
                enabled.disable(cupti);
                return Err(failed);
            }
        }
        Ok(enabled)
    }

    /// The ranges that it counts.
    pub fn ranges(&self) -> ProfiledRanges {
        self.ranges
    }

    /// Counts kernels from now on. `name` is that of the range that is pushed.
    pub fn begin(&mut self, cupti: &Cupti, name: &CStr) -> Result<(), FailedStep> {
        let mut params = profiler::InitializeData::new();
        params.profiler = self.object;
        (params.bytes, params.image) = (self.data.len(), self.data.as_mut_ptr());
        // SAFETY: the profiler is enabled; `data` is as long as CUPTI wants (`enable`).
        unsafe { step!(cupti, cuptiRangeProfilerCounterDataImageInitialize, params) }?;
        let mut params = profiler::SetConfig::new();
        params.profiler = self.object;
        (params.config_size, params.config) = (self.config.len(), self.config.as_ptr());
        (params.image_size, params.image) = (self.data.len(), self.data.as_mut_ptr());
        (params.range, params.replay) = match self.ranges {
            ProfiledRanges::Kernels => (profiler::AUTO_RANGE, profiler::KERNEL_REPLAY),
            ProfiledRanges::Pushed => (profiler::USER_RANGE, profiler::USER_REPLAY),
        };
        params.most_ranges = MOST_RANGES;
        (params.levels, params.first_level) = (1, 1);
        // SAFETY: the profiler is enabled; `config` and `data` are as long as stated. CUPTI writes to `data` until the
        // profiler has ended: `self` keeps both, and changes neither.
        unsafe { step!(cupti, cuptiRangeProfilerSetConfig, params) }?;
        let mut params = profiler::OfProfiler::new();
        params.profiler = self.object;
        // SAFETY: the profiler is enabled, and has its configuration.
        unsafe { step!(cupti, cuptiRangeProfilerStart, params) }?;
        self.is_begun = true;
        if self.ranges == ProfiledRanges::Pushed {
            let mut params = profiler::PushRange::new();
            (params.profiler, params.name) = (self.object, name.as_ptr());
            // SAFETY: the profiler is enabled; the agent keeps the text `name` until the range is popped.
            unsafe { step!(cupti, cuptiRangeProfilerPushRange, params) }?;
        }
        Ok(())
    }

    /// Counts no kernels from now on. Returns the values of the range that was pushed, or of the kernel that was launched.
    pub fn end(&mut self, cupti: &Cupti, chip: &CStr) -> Result<Vec<Vec<f64>>, FailedStep> {
        self.is_begun = false;
        if self.ranges == ProfiledRanges::Pushed {
            let mut params = profiler::OfProfiler::new();
            params.profiler = self.object;
            // SAFETY: the profiler is enabled.
            unsafe { step!(cupti, cuptiRangeProfilerPopRange, params) }?;
        }
        let mut params = profiler::Stop::new();
        params.profiler = self.object;
        // SAFETY: the profiler is enabled.
        unsafe { step!(cupti, cuptiRangeProfilerStop, params) }?;
        let mut params = profiler::Decode::new();
        params.profiler = self.object;
        // SAFETY: the profiler is enabled; CUPTI writes to `data`, as its configuration says.
        unsafe { step!(cupti, cuptiRangeProfilerDecodeData, params) }?;
        let mut info = profiler::DataInfo::new();
        (info.image, info.bytes) = (self.data.as_ptr(), self.data.len());
        // SAFETY: `data` is as long as stated, and CUPTI reads it in the call.
        unsafe { step!(cupti, cuptiRangeProfilerGetCounterDataInfo, info) }?;
        let host = MetricHost::new(cupti, chip)?;
        let names: Vec<ProfilerText> = self.names.iter().map(|name| name.as_ptr()).collect();
        (0..info.ranges.min(MOST_RANGES))
            .map(|range| host.evaluate(&self.data, range, &names))
            .collect()
    }

    /// Disables the profiler, which has ended or failed.
    pub fn disable(self, cupti: &Cupti) {
        let mut params = profiler::OfProfiler::new();
        params.profiler = self.object;
        // SAFETY: the profiler is enabled, and nothing uses it any more.
        if unsafe { step!(cupti, cuptiRangeProfilerDisable, params) }.is_err() {
            // CUPTI may go on to write to it.
            std::mem::forget(self);
        }
    }
}
