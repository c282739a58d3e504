//! The records of callbacks.

use crate::enumerations::{CallbackPhase, CallbackTracingKind};
use crate::layouts::layouts;
use crate::types::{
    AgentId, ContextId, CorrelationId, Dim3, KernelDispatchInfo, QueueId, StreamId, ThreadId,
    Timestamp, TracingOperation,
};
use core::ffi::{c_char, c_void};

layouts! { CALLBACK_LAYOUTS:
    /// The record that a callback gets. It has no size: its layout is that of the library's version.
    fixed CallbackTracingRecord = "rocprofiler_callback_tracing_record_t" {
        context_id: ContextId,
        thread_id: ThreadId,
        correlation_id: CorrelationId,
        kind: CallbackTracingKind,
        operation: TracingOperation,
        phase: CallbackPhase,
        payload: *mut c_void,
    }

    /// Code that is loaded on an agent. Its bytes are those of an ELF file: `memory_size` at `memory_base` if `storage_type` is
    /// [`MEMORY`](CodeObjectLoadData::MEMORY), otherwise the file behind `uri`, whose descriptor is the low half of `memory_base`.
    growing CodeObjectLoadData = "rocprofiler_callback_tracing_code_object_load_data_t" {
        size: u64,
        code_object_id: u64,
        agent_id: AgentId,
        hsa_agent: u64,
        uri: *const c_char,
        load_base: u64,
        load_size: u64,
        load_delta: i64,
        storage_type: i32,
        memory_base: u64,
        memory_size: u64,
    }

    /// A kernel of code that is loaded.
    growing KernelSymbolData = "rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t" {
        size: u64,
        kernel_id: u64,
        code_object_id: u64,
        kernel_name: *const c_char,
        kernel_object: u64,
        kernarg_segment_size: u32,
        kernarg_segment_alignment: u32,
        group_segment_size: u32,
        private_segment_size: u32,
        sgpr_count: u32,
        arch_vgpr_count: u32,
        accum_vgpr_count: u32,
        kernel_code_entry_byte_offset: i64,
        kernel_address: u64,
    }

    /// A function of the program that launches a kernel.
    growing HostKernelSymbolData = "rocprofiler_callback_tracing_code_object_host_kernel_symbol_register_data_t" {
        size: u64,
        host_function_id: u64,
        kernel_id: u64,
        code_object_id: u64,
        host_function: u64,
        modules: u64,
        device_function: *const c_char,
        thread_limit: u32,
        thread_ids: Dim3,
        block_ids: Dim3,
        block_dims: Dim3,
        grid_dims: Dim3,
        workgroup_size: u64,
    }

    /// A dispatch. The times are there when it has completed.
    growing KernelDispatchData = "rocprofiler_callback_tracing_kernel_dispatch_data_t" {
        size: u64,
        start_timestamp: Timestamp,
        end_timestamp: Timestamp,
        dispatch_info: KernelDispatchInfo,
    }

    /// A copy. The times are there when it has completed.
    growing MemoryCopyData = "rocprofiler_callback_tracing_memory_copy_data_t" {
        size: u64,
        start_timestamp: Timestamp,
        end_timestamp: Timestamp,
        dst_agent_id: AgentId,
        src_agent_id: AgentId,
        bytes: u64,
        dst_address: u64,
        src_address: u64,
    }

    /// An allocation or release of memory. Times and address are there when it has been made.
    growing MemoryAllocationData = "rocprofiler_callback_tracing_memory_allocation_data_t" {
        size: u64,
        start_timestamp: Timestamp,
        end_timestamp: Timestamp,
        agent_id: AgentId,
        address: u64,
        allocation_size: u64,
    }

    /// A change of the scratch memory of a queue. `args` depends on the operation and the phase: the dispatch's number, then
    /// bytes and slots of the allocation. `args_kind` is HSA's kind of event.
    growing ScratchMemoryData = "rocprofiler_callback_tracing_scratch_memory_data_t" {
        size: u64,
        agent_id: AgentId,
        queue_id: QueueId,
        flags: i32,
        args_kind: i32,
        args: [u64; 3],
    }

    /// A runtime was loaded.
    growing RuntimeInitializationData = "rocprofiler_callback_tracing_runtime_initialization_data_t" {
        size: u64,
        version: u64,
        instance: u64,
    }

    /// The stream of HIP that is created, destroyed, or in use. `stream_value` is the program's handle.
    growing HipStreamData = "rocprofiler_callback_tracing_hip_stream_data_t" {
        size: u64,
        stream_id: StreamId,
        stream_value: u64,
    }
}

impl CodeObjectLoadData {
    /// `storage_type`: the bytes are those of a file.
    pub const FILE: i32 = 1;
    /// `storage_type`: the bytes are in memory.
    pub const MEMORY: i32 = 2;
}

/// The bytes of the result of a call of HIP; the last field of what its callback is given.
pub const HIP_RESULT_BYTES: usize = 24;
/// The bytes of the result of a call of HSA, ROCTx or RCCL.
pub const RESULT_BYTES: usize = 8;
