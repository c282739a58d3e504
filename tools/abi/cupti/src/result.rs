//! Statuses, and the last error of each thread.

use crate::layout::Layout;
use gputrail_abi::{contained, enumeration};
use gputrail_tool as tool;
use std::cell::Cell;

enumeration! {
    /// A status (`CUptiResult`).
    CUptiResult {
        SUCCESS = 0, "no error";
        INVALID_PARAMETER = 1, "a parameter is invalid";
        INVALID_DEVICE = 2, "there is no such device";
        INVALID_CONTEXT = 3, "the context is null, or there is no such context";
        INVALID_EVENT_DOMAIN_ID = 4, "there is no such event domain";
        INVALID_EVENT_ID = 5, "there is no such event";
        INVALID_EVENT_NAME = 6, "no event has this name";
        INVALID_OPERATION = 7, "the operation is not possible in this state";
        OUT_OF_MEMORY = 8, "there is not enough memory";
        HARDWARE = 9, "the hardware that measures has failed, or this machine does not have the event";
        PARAMETER_SIZE_NOT_SUFFICIENT = 10, "the memory for the answer is too small";
        API_NOT_IMPLEMENTED = 11, "the function is not implemented";
        MAX_LIMIT_REACHED = 12, "the limit is reached";
        NOT_READY = 13, "the object is not ready for this";
        NOT_COMPATIBLE = 14, "the object's state does not allow this";
        NOT_INITIALIZED = 15, "CUPTI cannot be initialized";
        INVALID_METRIC_ID = 16, "there is no such metric";
        INVALID_METRIC_NAME = 17, "no metric has this name";
        QUEUE_EMPTY = 18, "the queue is empty";
        INVALID_HANDLE = 19, "the handle is invalid";
        INVALID_STREAM = 20, "there is no such stream";
        INVALID_KIND = 21, "there is no such kind";
        INVALID_EVENT_VALUE = 22, "a value of an event is invalid";
        DISABLED = 23, "another profiler is in use";
        INVALID_MODULE = 24, "there is no such module";
        INVALID_METRIC_VALUE = 25, "a value of a metric is invalid";
        HARDWARE_BUSY = 26, "the hardware that measures is in use";
        NOT_SUPPORTED = 27, "the system or the device does not support this";
        UM_PROFILING_NOT_SUPPORTED = 28, "the system does not report unified memory";
        UM_PROFILING_NOT_SUPPORTED_ON_DEVICE = 29, "the device does not report unified memory";
        UM_PROFILING_NOT_SUPPORTED_ON_NON_P2P_DEVICES = 30, "unified memory is not reported of devices without access to each other";
        UM_PROFILING_NOT_SUPPORTED_WITH_MPS = 31, "unified memory is not reported under MPS";
        CDP_TRACING_NOT_SUPPORTED = 32, "kernels that kernels launch are not traced";
        VIRTUALIZED_DEVICE_NOT_SUPPORTED = 33, "virtual devices are not supported";
        CUDA_COMPILER_NOT_COMPATIBLE = 34, "the program's compiler is too old for exact results";
        INSUFFICIENT_PRIVILEGES = 35, "the user may not profile";
        OLD_PROFILER_API_INITIALIZED = 36, "the older API for events and metrics is in use";
        OPENACC_UNDEFINED_ROUTINE = 37, "the OpenACC library lacks a function";
        LEGACY_PROFILER_NOT_SUPPORTED = 38, "the device does not have the API for events and metrics";
        MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39, "there is a subscriber already";
        VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES = 40, "the hypervisor does not allow to profile the virtual device";
        CONFIDENTIAL_COMPUTING_NOT_SUPPORTED = 41, "the device is in confidential computing mode";
        CMP_DEVICE_NOT_SUPPORTED = 42, "the device is made for mining";
        MIG_DEVICE_NOT_SUPPORTED = 43, "the device is divided into instances";
        SLI_DEVICE_NOT_SUPPORTED = 44, "the device is one of several that are joined";
        WSL_DEVICE_NOT_SUPPORTED = 45, "the device is that of a Windows host";
        INVALID_CHIP_NAME = 46, "no chip has this name";
        HES_TRACE_NOT_SUPPORTED_ON_MPS = 47, "the hardware's events are not reported under MPS";
        UNKNOWN = 999, "unknown error";
        FORCE_INT = 0x7fffffff, "";
    }
}

impl CUptiResult {
    /// Whether the version of a layout has the status.
    pub fn is_of(self, layout: Layout) -> bool {
        let last = match layout {
            Layout::Cuda10 => CUptiResult::INSUFFICIENT_PRIVILEGES,
            Layout::Cuda11 => CUptiResult::CMP_DEVICE_NOT_SUPPORTED,
            Layout::Cuda12 => CUptiResult::WSL_DEVICE_NOT_SUPPORTED,
            Layout::Cuda13 => CUptiResult::HES_TRACE_NOT_SUPPORTED_ON_MPS,
        };
        self.0 <= last.0 || self == CUptiResult::UNKNOWN
    }
}

/// What a function answers.
pub type Answer<T = ()> = Result<T, CUptiResult>;

impl From<tool::Error> for CUptiResult {
    fn from(error: tool::Error) -> CUptiResult {
        match error.status {
            tool::Status::NOT_INITIALISED | tool::Status::NOT_AVAILABLE => {
                CUptiResult::NOT_INITIALIZED
            }
            tool::Status::OUT_OF_MEMORY => CUptiResult::OUT_OF_MEMORY,
            tool::Status::INVALID_ARGUMENT | tool::Status::NOT_FOUND => {
                CUptiResult::INVALID_PARAMETER
            }
            _ => CUptiResult::UNKNOWN,
        }
    }
}

thread_local! {
    static LAST: Cell<CUptiResult> = const { Cell::new(CUptiResult::SUCCESS) };
}

/// Runs a function of the API, whose error is kept for its thread.
pub fn api(work: impl FnOnce() -> Answer) -> CUptiResult {
    let status = match contained(work) {
        Some(Ok(())) => return CUptiResult::SUCCESS,
        Some(Err(status)) => status,
        None => CUptiResult::UNKNOWN,
    };
    // The thread may be ending.
    let _ = LAST.try_with(|last| last.set(status));
    status
}

/// The last error of the calling thread, which is forgotten.
pub fn take_last() -> CUptiResult {
    LAST.try_with(|last| last.replace(CUptiResult::SUCCESS))
        .unwrap_or(CUptiResult::SUCCESS)
}
