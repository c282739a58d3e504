//! Categories by which events are told apart: as PyTorch's profiler and `gputrail convert` write them.

use super::{ascend, unitrace, xla};

/// The category of launches of graphs, as `gputrail convert` writes it. Their nodes are the work of the call.
pub(super) const GRAPH: &str = "gpu_graph";

/// Categories of device work.
pub(super) fn is_work(category: &str) -> bool {
    matches!(
        category,
        "kernel"
            | "gpu_memcpy"
            | "gpu_memset"
            | "Kernel"
            | "Memcpy"
            | "Memset"
            | "concurrent_kernel"
            // As `gputrail convert` writes barriers, launches of graphs, and work whose kind is not known.
            | "gpu_sync"
            | GRAPH
            | "gpu_work"
    )
}

/// Categories of API calls.
pub(super) fn is_call(category: &str) -> bool {
    matches!(
        category,
        "cuda_runtime"
            | "cuda_driver"
            | "hip_runtime"
            | "hip_driver"
            | "rocm_runtime"
            | "mtia_runtime"
            | "xpu_runtime"
            | "xpu_driver"
            | "glow_runtime"
            | "privateuse1_runtime"
            | "privateuse1_driver"
            | "Runtime"
            // As `gputrail convert` writes calls of other APIs.
            | "opencl"
            | "hip"
            | "hsa"
            | "sim"
            | ascend::CALL
            | unitrace::CALL
    )
}

/// Categories that stand on the rows of devices and are no work.
pub(super) fn is_beside_work(category: &str) -> bool {
    matches!(
        category,
        "gpu_user_annotation"
            | "cuda_sync"
            | "cuda_event"
            | "cuda_profiler_range"
            | "gpu_pm_counter"
            | "mtia_ccp_events"
            | "mtia_insight"
            | "collective_comm"
            | "xpu_scope_profiler"
            | "xpu_sync"
            | "hpu_op"
            | xla::BESIDE_WORK
            | ascend::BESIDE_WORK
            | ascend::COMMUNICATION
            | ascend::STEP
    )
}

/// Categories of operators and annotations of the host.
pub(super) fn is_operator(category: &str) -> bool {
    matches!(
        category,
        "cpu_op" | "Operator" | "user_annotation" | "python_function"
    )
}

/// Arrows from calls to work, which correlation ids give too.
pub(super) fn is_call_to_work(category: &str) -> bool {
    matches!(category, "ac2g" | "async_gpu" | "async_cpu_to_gpu")
}
