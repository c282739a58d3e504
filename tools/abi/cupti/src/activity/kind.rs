//! The kinds of activity records.

use crate::result::{Answer, CUptiResult};

/// `CUpti_ActivityKind`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct ActivityKind(pub u32);

macro_rules! kinds {
    ($($name:ident = $number:literal;)*) => {
        #[allow(missing_docs, dead_code, reason = "all kinds of the document")]
        impl ActivityKind {
            $(pub const $name: ActivityKind = ActivityKind($number);)*
        }
    };
}

kinds! {
    MEMCPY = 1;
    MEMSET = 2;
    KERNEL = 3;
    DRIVER = 4;
    RUNTIME = 5;
    EVENT = 6;
    METRIC = 7;
    DEVICE = 8;
    CONTEXT = 9;
    CONCURRENT_KERNEL = 10;
    NAME = 11;
    MARKER = 12;
    MARKER_DATA = 13;
    SOURCE_LOCATOR = 14;
    GLOBAL_ACCESS = 15;
    BRANCH = 16;
    OVERHEAD = 17;
    CDP_KERNEL = 18;
    PREEMPTION = 19;
    ENVIRONMENT = 20;
    EVENT_INSTANCE = 21;
    MEMCPY2 = 22;
    METRIC_INSTANCE = 23;
    INSTRUCTION_EXECUTION = 24;
    UNIFIED_MEMORY_COUNTER = 25;
    FUNCTION = 26;
    MODULE = 27;
    DEVICE_ATTRIBUTE = 28;
    SHARED_ACCESS = 29;
    PC_SAMPLING = 30;
    PC_SAMPLING_RECORD_INFO = 31;
    INSTRUCTION_CORRELATION = 32;
    OPENACC_DATA = 33;
    OPENACC_LAUNCH = 34;
    OPENACC_OTHER = 35;
    CUDA_EVENT = 36;
    STREAM = 37;
    SYNCHRONIZATION = 38;
    EXTERNAL_CORRELATION = 39;
    NVLINK = 40;
    INSTANTANEOUS_EVENT = 41;
    INSTANTANEOUS_EVENT_INSTANCE = 42;
    INSTANTANEOUS_METRIC = 43;
    INSTANTANEOUS_METRIC_INSTANCE = 44;
    MEMORY = 45;
    PCIE = 46;
    OPENMP = 47;
}

/// One more than the greatest kind (`CUPTI_ACTIVITY_KIND_COUNT`).
pub const COUNT: u32 = 48;

impl ActivityKind {
    /// `INVALID_KIND` for a number that is no kind.
    pub fn checked(self) -> Answer<ActivityKind> {
        if (1..COUNT).contains(&self.0) {
            Ok(self)
        } else {
            Err(CUptiResult::INVALID_KIND)
        }
    }

    /// The kind as a bit.
    pub const fn bit(self) -> u64 {
        1 << self.0
    }
}
