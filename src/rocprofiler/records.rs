//! The records of buffer tracing. Times are nanoseconds of CLOCK_BOOTTIME.

use crate::enumerations::BufferTracingKind;
use crate::layouts::layouts;
use crate::types::{
    AgentId, AsyncCorrelationId, CorrelationId, KernelDispatchInfo, QueueId, ThreadId, Timestamp,
    TracingOperation,
};

layouts! { RECORD_LAYOUTS:
    /// A call: of HSA, HIP, ROCTx, RCCL, rocDecode or rocJPEG. All of these have this layout, which is named after HIP's.
    growing ApiRecord = "rocprofiler_buffer_tracing_hip_api_record_t" {
        size: u64,
        kind: BufferTracingKind,
        operation: TracingOperation,
        correlation_id: CorrelationId,
        start_timestamp: Timestamp,
        end_timestamp: Timestamp,
        thread_id: ThreadId,
    }

    /// An event of OpenMP's runtime. What it is about depends on the operation.
    growing OmptRecord = "rocprofiler_buffer_tracing_ompt_record_t" {
        size: u64,
        kind: BufferTracingKind,
        operation: TracingOperation,
        correlation_id: CorrelationId,
        start_timestamp: Timestamp,
        end_timestamp: Timestamp,
        thread_id: ThreadId,
        reserved: [u64; 5],
    }

    /// A copy that an engine or a kernel of the runtime's has made.
    growing MemoryCopyRecord = "rocprofiler_buffer_tracing_memory_copy_record_t" {
        size: u64,
        kind: BufferTracingKind,
        operation: TracingOperation,
        correlation_id: AsyncCorrelationId,
        thread_id: ThreadId,
        start_timestamp: Timestamp,
        end_timestamp: Timestamp,
        dst_agent_id: AgentId,
        src_agent_id: AgentId,
        bytes: u64,
        dst_address: u64,
        src_address: u64,
    }

    /// An allocation or release of memory.
    growing MemoryAllocationRecord = "rocprofiler_buffer_tracing_memory_allocation_record_t" {
        size: u64,
        kind: BufferTracingKind,
        operation: TracingOperation,
        correlation_id: CorrelationId,
        thread_id: ThreadId,
        start_timestamp: Timestamp,
        end_timestamp: Timestamp,
        agent_id: AgentId,
        address: u64,
        allocation_size: u64,
    }

    /// A kernel that an agent has executed.
    growing KernelDispatchRecord = "rocprofiler_buffer_tracing_kernel_dispatch_record_t" {
        size: u64,
        kind: BufferTracingKind,
        operation: TracingOperation,
        correlation_id: AsyncCorrelationId,
        thread_id: ThreadId,
        start_timestamp: Timestamp,
        end_timestamp: Timestamp,
        dispatch_info: KernelDispatchInfo,
    }

    /// Pages have begun or ended to migrate.
    growing KfdEventPageMigrateRecord = "rocprofiler_buffer_tracing_kfd_event_page_migrate_record_t" {
        size: u64,
        kind: BufferTracingKind,
        operation: TracingOperation,
        timestamp: Timestamp,
        pid: u32,
        start_address: u64,
        end_address: u64,
        src_agent: AgentId,
        dst_agent: AgentId,
        prefetch_agent: AgentId,
        preferred_agent: AgentId,
        error_code: i32,
    }

    /// A page fault has begun or ended.
    growing KfdEventPageFaultRecord = "rocprofiler_buffer_tracing_kfd_event_page_fault_record_t" {
        size: u64,
        kind: BufferTracingKind,
        operation: TracingOperation,
        timestamp: Timestamp,
        pid: u32,
        agent_id: AgentId,
        address: u64,
    }

    /// A queue was taken off the hardware or put back.
    growing KfdEventQueueRecord = "rocprofiler_buffer_tracing_kfd_event_queue_record_t" {
        size: u64,
        kind: BufferTracingKind,
        operation: TracingOperation,
        timestamp: Timestamp,
        pid: u32,
        agent_id: AgentId,
    }

    /// A range was unmapped.
    growing KfdEventUnmapFromGpuRecord = "rocprofiler_buffer_tracing_kfd_event_unmap_from_gpu_record_t" {
        size: u64,
        kind: BufferTracingKind,
        operation: TracingOperation,
        timestamp: Timestamp,
        pid: u32,
        agent_id: AgentId,
        start_address: u64,
        end_address: u64,
    }

    /// The driver has dropped events.
    growing KfdEventDroppedEventsRecord = "rocprofiler_buffer_tracing_kfd_event_dropped_events_record_t" {
        size: u64,
        kind: BufferTracingKind,
        operation: TracingOperation,
        timestamp: Timestamp,
        pid: u32,
        count: u32,
    }

    /// Pages that have migrated.
    growing KfdPageMigrateRecord = "rocprofiler_buffer_tracing_kfd_page_migrate_record_t" {
        size: u64,
        kind: BufferTracingKind,
        operation: TracingOperation,
        start_timestamp: Timestamp,
        end_timestamp: Timestamp,
        pid: u32,
        start_address: u64,
        end_address: u64,
        src_agent: AgentId,
        dst_agent: AgentId,
        prefetch_agent: AgentId,
        preferred_agent: AgentId,
        error_code: i32,
    }

    /// A page fault that was resolved.
    growing KfdPageFaultRecord = "rocprofiler_buffer_tracing_kfd_page_fault_record_t" {
        size: u64,
        kind: BufferTracingKind,
        operation: TracingOperation,
        start_timestamp: Timestamp,
        end_timestamp: Timestamp,
        pid: u32,
        agent_id: AgentId,
        address: u64,
    }

    /// A queue that was off the hardware.
    growing KfdQueueRecord = "rocprofiler_buffer_tracing_kfd_queue_record_t" {
        size: u64,
        kind: BufferTracingKind,
        operation: TracingOperation,
        start_timestamp: Timestamp,
        end_timestamp: Timestamp,
        pid: u32,
        agent_id: AgentId,
    }

    /// A change of the scratch memory of a queue. `flags` is a [`ScratchAllocFlag`](crate::ScratchAllocFlag).
    growing ScratchMemoryRecord = "rocprofiler_buffer_tracing_scratch_memory_record_t" {
        size: u64,
        kind: BufferTracingKind,
        operation: TracingOperation,
        correlation_id: CorrelationId,
        agent_id: AgentId,
        queue_id: QueueId,
        thread_id: ThreadId,
        start_timestamp: Timestamp,
        end_timestamp: Timestamp,
        flags: i32,
        allocation_size: u64,
    }

    /// No record will have this correlation id any more.
    growing CorrelationIdRetirementRecord = "rocprofiler_buffer_tracing_correlation_id_retirement_record_t" {
        size: u64,
        kind: BufferTracingKind,
        timestamp: Timestamp,
        internal_correlation_id: u64,
    }

    /// A runtime was loaded. Its version is 10 000 times the major one, 100 times the minor one, and the patch. Of version
    /// `instance` are as many loaded before.
    growing RuntimeInitializationRecord = "rocprofiler_buffer_tracing_runtime_initialization_record_t" {
        size: u64,
        kind: BufferTracingKind,
        operation: TracingOperation,
        correlation_id: CorrelationId,
        thread_id: ThreadId,
        timestamp: Timestamp,
        version: u64,
        instance: u64,
    }
}
