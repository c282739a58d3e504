//! The kinds of activity records. `sampling` has those of source-level kinds.
//!
//! Records of one thread come in the order in which they were written; those of kernels, copies and fills when these have ended, of
//! several threads in no order. With `EXTERNAL_CORRELATION`, they come after those of the call, or at a flush.
//!
//! | `CUPTI_ACTIVITY_KIND_` | here |
//! |---|---|
//! | `MEMCPY` | copies, and memory that is mapped: from the device at its map, to it at its unmap. Migrations of managed memory are records of `UNIFIED_MEMORY_COUNTER` instead. Of one context, too |
//! | `MEMCPY2` | copies between devices. Of one context, too |
//! | `MEMSET` | fills. Of one context, too |
//! | `KERNEL`, `CONCURRENT_KERNEL` | Kernels run as they do without: none is serialized. If both are enabled, records are of the second kind. Of one context, too |
//! | `CDP_KERNEL` | kernels that kernels have launched, of the simulated GPU: they come with `CONCURRENT_KERNEL`, so that a program has to look at the kind of each record; `NOT_COMPATIBLE` alone |
//! | `DRIVER`, `RUNTIME` | all functions of OpenCL are the driver's, those of the simulated GPU's runtime the runtime's, under gputrail's ids; functions of OpenCL with a like in CUDA's runtime are the runtime's under its ids, too ([`cuda`](crate::cuda)) |
//! | `DEVICE`, `DEVICE_ATTRIBUTE` | each device once. Attributes that are not known are 0, or have no record: the compute capability of all but the simulated GPU is 0.0. `uuid` is the PCI address as text where the runtime has no id |
//! | `CONTEXT`, `STREAM`, `MODULE`, `FUNCTION` | each object once, with the next records that are delivered. Modules have no `cubin`: the callback has it |
//! | `NAME` | devices, threads, contexts and streams that have a name, and again when it changes; at a flush |
//! | `MARKER`, `MARKER_DATA` | moments and both ends of ranges; those of NVTX's locks have the flags `SYNC_ACQUIRE` (the wait begins), `..._SUCCESS` and `..._FAILED` (it ends) and `SYNC_RELEASE` (the hold ends), too; values of counters and names of resources have none. A payload that is a text is its address |
//! | `OVERHEAD` | compilers, and gputrail's own |
//! | `PREEMPTION` | of the simulated GPU |
//! | `ENVIRONMENT` | where a driver tells it: of the simulated GPU with `gputrail demo --environment-period 5ms` |
//! | `CUDA_EVENT` | markers that are put into a queue; an event of OpenCL has the id 0 |
//! | `SYNCHRONIZATION` | waits of the host for events, queues, contexts, and queues that wait. Of one context, too |
//! | `EXTERNAL_CORRELATION` | ahead of the record of a call; `DRIVER` or `RUNTIME` has to be enabled |
//! | `UNIFIED_MEMORY_COUNTER` | of the simulated GPU: pages that moved, page faults, thrashing, throttling, remote maps |
//! | `MEMORY` | each allocation when it is freed; at a forced flush also those that live, whose end is 0 |
//! | `MEMORY2` | each allocation and each release. Of one context, too |
//! | `JIT` | compilers: programs that OpenCL builds. `cacheSize` and `cachePath` are 0 |
//! | `PCIE` | devices whose link is known: no bridges |
//! | `NVLINK` | links of known devices to each other; `NOT_COMPATIBLE` where there are none, as in OpenCL |
//! | `EVENT`, `METRIC` and their like | `NOT_COMPATIBLE`, and `INVALID_KIND` when they are disabled: profilers make them of what they read |
//! | `OPENACC_DATA`, `OPENACC_LAUNCH`, `OPENACC_OTHER` | what a runtime tells after `cuptiOpenACCInitialize`, at its end. Devices, contexts and streams are 0. With `EXTERNAL_CORRELATION`, calls within have the record's `externalId` |
//! | `MEMORY_POOL`, `DEVICE_GRAPH_TRACE`, `MEM_DECOMPRESS`, `CONFIDENTIAL_COMPUTE_ROTATION`, `GRAPH_HOST_NODE`, `COMPUTE_ENGINE_CTX_SWITCH`, `GREEN_CONTEXT`, `INTERNAL_LAUNCH_API` | can be enabled; none: no device has any |
//! | `GRAPH_TRACE`, `HOST_LAUNCH` | `NOT_COMPATIBLE`: the nodes of a graph have their records, host functions that of their call |
//! | `OPENMP` | what a runtime tells after `cuptiOpenMpInitialize`: parallel regions, threads, waits at barriers and for tasks; no tasks and idle threads |

use crate::layout::{LAYOUTS, layout};
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
    INTERNAL_LAUNCH_API = 48;
    MEMORY2 = 49;
    MEMORY_POOL = 50;
    GRAPH_TRACE = 51;
    JIT = 52;
    DEVICE_GRAPH_TRACE = 53;
    MEM_DECOMPRESS = 54;
    CONFIDENTIAL_COMPUTE_ROTATION = 55;
    GRAPH_HOST_NODE = 56;
    COMPUTE_ENGINE_CTX_SWITCH = 57;
    HOST_LAUNCH = 58;
    GREEN_CONTEXT = 59;
}

/// One more than the greatest kind of each layout (`CUPTI_ACTIVITY_KIND_COUNT`).
const COUNTS: [u32; LAYOUTS] = [48, 53, 56, 60];
/// One more than the greatest kind of all.
pub const COUNT: u32 = COUNTS[LAYOUTS - 1];

impl ActivityKind {
    /// `INVALID_KIND` for a number that is no kind in the library's layout.
    pub fn checked(self) -> Answer<ActivityKind> {
        if (1..COUNTS[layout() as usize]).contains(&self.0) {
            Ok(self)
        } else {
            Err(CUptiResult::INVALID_KIND)
        }
    }

    /// Whether it is a kind that can be enabled, and of which there are never records: no device here has what it tells of.
    pub fn never_happens(self) -> bool {
        let kinds = [
            ActivityKind::INTERNAL_LAUNCH_API,
            ActivityKind::MEMORY_POOL,
            ActivityKind::DEVICE_GRAPH_TRACE,
            ActivityKind::MEM_DECOMPRESS,
            ActivityKind::CONFIDENTIAL_COMPUTE_ROTATION,
            ActivityKind::GRAPH_HOST_NODE,
            ActivityKind::COMPUTE_ENGINE_CTX_SWITCH,
            ActivityKind::GREEN_CONTEXT,
        ];
        kinds.contains(&self)
    }

    /// The kind as a bit.
    pub const fn bit(self) -> u64 {
        1 << self.0
    }
}
