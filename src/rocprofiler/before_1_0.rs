//! Structures that contain a correlation id, as they were before version 1.0: without the `ancestor`.

use crate::enumerations::{BufferTracingKind, CallbackPhase, CallbackTracingKind};
use crate::layouts::layouts;
use crate::types::{
    AgentId, AsyncCorrelationId, ContextId, QueueId, ThreadId, Timestamp, TracingOperation,
};
use core::ffi::c_void;

layouts! { LAYOUTS_BEFORE_1_0:
    /// The record that a callback gets.
    fixed CallbackTracingRecord = "rocprofiler_callback_tracing_record_t" {
        context_id: ContextId,
        thread_id: ThreadId,
        correlation_id: AsyncCorrelationId,
        kind: CallbackTracingKind,
        operation: TracingOperation,
        phase: CallbackPhase,
        payload: *mut c_void,
    }

    /// A call.
    growing ApiRecord = "rocprofiler_buffer_tracing_hip_api_record_t" {
        size: u64,
        kind: BufferTracingKind,
        operation: TracingOperation,
        correlation_id: AsyncCorrelationId,
        start_timestamp: Timestamp,
        end_timestamp: Timestamp,
        thread_id: ThreadId,
    }

    /// An allocation or release of memory.
    growing MemoryAllocationRecord = "rocprofiler_buffer_tracing_memory_allocation_record_t" {
        size: u64,
        kind: BufferTracingKind,
        operation: TracingOperation,
        correlation_id: AsyncCorrelationId,
        thread_id: ThreadId,
        start_timestamp: Timestamp,
        end_timestamp: Timestamp,
        agent_id: AgentId,
        address: u64,
        allocation_size: u64,
    }

    /// A change of the scratch memory of a queue.
    growing ScratchMemoryRecord = "rocprofiler_buffer_tracing_scratch_memory_record_t" {
        size: u64,
        kind: BufferTracingKind,
        operation: TracingOperation,
        correlation_id: AsyncCorrelationId,
        agent_id: AgentId,
        queue_id: QueueId,
        thread_id: ThreadId,
        start_timestamp: Timestamp,
        end_timestamp: Timestamp,
        flags: i32,
        allocation_size: u64,
    }

    /// A runtime was loaded.
    growing RuntimeInitializationRecord = "rocprofiler_buffer_tracing_runtime_initialization_record_t" {
        size: u64,
        kind: BufferTracingKind,
        operation: TracingOperation,
        correlation_id: AsyncCorrelationId,
        thread_id: ThreadId,
        timestamp: Timestamp,
        version: u64,
        instance: u64,
    }
}
