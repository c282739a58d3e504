//! The layouts of activity records: those of CUDA 10.0, each the newest of its kind. They begin at multiples of 8 bytes.

use super::kind::ActivityKind;
use core::ffi::{c_char, c_void};

/// An activity record.
///
/// # Safety
///
/// A `repr(C)` structure without padding bytes, a multiple of 8 bytes long, that begins with its kind.
pub unsafe trait ActivityRecord: Copy {
    /// The kind of the records, where they have one kind alone.
    const KIND: ActivityKind;

    /// A record with its kind and zeros.
    fn blank() -> Self;
}

/// What a record is about (`CUpti_ActivityObjectKindId`): process and thread; or device, context and stream.
pub type ObjectId = [u32; 3];

/// `CUpti_ActivityObjectKind`.
#[allow(missing_docs)]
pub mod object {
    pub const THREAD: u32 = 2;
    pub const DEVICE: u32 = 3;
    pub const CONTEXT: u32 = 4;
    pub const STREAM: u32 = 5;
}

/// The attributes of a device in [`Pcie`].
#[derive(Copy, Clone)]
#[repr(C)]
pub struct PcieAttributes {
    pub uuid_dev: [u8; 16],
    pub peer_dev: [i32; 32],
}

macro_rules! records {
    ($($(#[$what:meta])* $name:ident = $kind:ident { $($field:ident: $type:ty,)* })*) => {
        $(
            $(#[$what])*
            #[allow(missing_docs)]
            #[derive(Copy, Clone)]
            #[repr(C, align(8))]
            pub struct $name { $(pub $field: $type,)* }

            // SAFETY: the fields fill the structure, as checked below.
            unsafe impl ActivityRecord for $name {
                const KIND: ActivityKind = ActivityKind::$kind;

                fn blank() -> Self {
                    // SAFETY: zeros are a value of each field: numbers and pointers.
                    let mut blank: Self = unsafe { core::mem::zeroed() };
                    blank.kind = Self::KIND.0;
                    blank
                }
            }

            const _: () = assert!(size_of::<$name>() == 0 $(+ size_of::<$type>())*);
        )*

        /// The bytes of a record of a kind, if the kind has records here.
        pub fn size_of_kind(kind: ActivityKind) -> Option<usize> {
            match kind {
                $(ActivityKind::$kind => Some(size_of::<$name>()),)*
                ActivityKind::CONCURRENT_KERNEL => Some(size_of::<Kernel4>()),
                ActivityKind::RUNTIME => Some(size_of::<Api>()),
                _ => None,
            }
        }

        /// Name, field, offset and bytes of every field, for the test of layouts.
        #[cfg(test)]
        pub fn fields() -> Vec<(&'static str, &'static str, usize, usize)> {
            vec![$($((stringify!($name), stringify!($field), core::mem::offset_of!($name, $field), size_of::<$type>()),)*)*]
        }
    };
}

records! {
    /// `CUpti_ActivityMemcpy`.
    Memcpy = MEMCPY {
        kind: u32,
        copy_kind: u8,
        src_kind: u8,
        dst_kind: u8,
        flags: u8,
        bytes: u64,
        start: u64,
        end: u64,
        device_id: u32,
        context_id: u32,
        stream_id: u32,
        correlation_id: u32,
        runtime_correlation_id: u32,
        pad: u32,
        reserved0: *const c_void,
    }
    /// `CUpti_ActivityMemcpy2`.
    Memcpy2 = MEMCPY2 {
        kind: u32,
        copy_kind: u8,
        src_kind: u8,
        dst_kind: u8,
        flags: u8,
        bytes: u64,
        start: u64,
        end: u64,
        device_id: u32,
        context_id: u32,
        stream_id: u32,
        src_device_id: u32,
        src_context_id: u32,
        dst_device_id: u32,
        dst_context_id: u32,
        correlation_id: u32,
        reserved0: *const c_void,
    }
    /// `CUpti_ActivityMemset`.
    Memset = MEMSET {
        kind: u32,
        value: u32,
        bytes: u64,
        start: u64,
        end: u64,
        device_id: u32,
        context_id: u32,
        stream_id: u32,
        correlation_id: u32,
        flags: u16,
        memory_kind: u16,
        pad: u32,
        reserved0: *const c_void,
    }
    /// `CUpti_ActivityMemory`.
    Memory = MEMORY {
        kind: u32,
        memory_kind: u32,
        address: u64,
        bytes: u64,
        start: u64,
        end: u64,
        alloc_pc: u64,
        free_pc: u64,
        process_id: u32,
        device_id: u32,
        context_id: u32,
        pad: u32,
        name: *const c_char,
    }
    /// `CUpti_ActivityKernel4`.
    Kernel4 = KERNEL {
        kind: u32,
        cache_config: u8,
        shared_memory_config: u8,
        registers_per_thread: u16,
        partitioned_global_cache_requested: u32,
        partitioned_global_cache_executed: u32,
        start: u64,
        end: u64,
        completed: u64,
        device_id: u32,
        context_id: u32,
        stream_id: u32,
        grid_x: i32,
        grid_y: i32,
        grid_z: i32,
        block_x: i32,
        block_y: i32,
        block_z: i32,
        static_shared_memory: i32,
        dynamic_shared_memory: i32,
        local_memory_per_thread: u32,
        local_memory_total: u32,
        correlation_id: u32,
        grid_id: i64,
        name: *const c_char,
        reserved0: *const c_void,
        queued: u64,
        submitted: u64,
        launch_type: u8,
        is_shared_memory_carveout_requested: u8,
        shared_memory_carveout_requested: u8,
        padding: u8,
        shared_memory_executed: u32,
    }
    /// `CUpti_ActivityCdpKernel`.
    CdpKernel = CDP_KERNEL {
        kind: u32,
        cache_config: u8,
        shared_memory_config: u8,
        registers_per_thread: u16,
        start: u64,
        end: u64,
        device_id: u32,
        context_id: u32,
        stream_id: u32,
        grid_x: i32,
        grid_y: i32,
        grid_z: i32,
        block_x: i32,
        block_y: i32,
        block_z: i32,
        static_shared_memory: i32,
        dynamic_shared_memory: i32,
        local_memory_per_thread: u32,
        local_memory_total: u32,
        correlation_id: u32,
        grid_id: i64,
        parent_grid_id: i64,
        queued: u64,
        submitted: u64,
        completed: u64,
        parent_block_x: u32,
        parent_block_y: u32,
        parent_block_z: u32,
        pad: u32,
        name: *const c_char,
    }
    /// `CUpti_ActivityPreemption`.
    Preemption = PREEMPTION {
        kind: u32,
        preemption_kind: u32,
        timestamp: u64,
        grid_id: i64,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        pad: u32,
    }
    /// `CUpti_ActivityAPI`.
    Api = DRIVER {
        kind: u32,
        cbid: u32,
        start: u64,
        end: u64,
        process_id: u32,
        thread_id: u32,
        correlation_id: u32,
        return_value: u32,
    }
    /// `CUpti_ActivityDevice2`.
    Device2 = DEVICE {
        kind: u32,
        flags: u32,
        global_memory_bandwidth: u64,
        global_memory_size: u64,
        constant_memory_size: u32,
        l2_cache_size: u32,
        num_threads_per_warp: u32,
        core_clock_rate: u32,
        num_memcpy_engines: u32,
        num_multiprocessors: u32,
        max_ipc: u32,
        max_warps_per_multiprocessor: u32,
        max_blocks_per_multiprocessor: u32,
        max_shared_memory_per_multiprocessor: u32,
        max_registers_per_multiprocessor: u32,
        max_registers_per_block: u32,
        max_shared_memory_per_block: u32,
        max_threads_per_block: u32,
        max_block_dim_x: u32,
        max_block_dim_y: u32,
        max_block_dim_z: u32,
        max_grid_dim_x: u32,
        max_grid_dim_y: u32,
        max_grid_dim_z: u32,
        compute_capability_major: u32,
        compute_capability_minor: u32,
        id: u32,
        ecc_enabled: u32,
        uuid: [u8; 16],
        name: *const c_char,
    }
    /// `CUpti_ActivityDeviceAttribute`.
    DeviceAttribute = DEVICE_ATTRIBUTE {
        kind: u32,
        flags: u32,
        device_id: u32,
        attribute: u32,
        value: u64,
    }
    /// `CUpti_ActivityContext`.
    Context = CONTEXT {
        kind: u32,
        context_id: u32,
        device_id: u32,
        compute_api_kind: u16,
        null_stream_id: u16,
    }
    /// `CUpti_ActivityName`.
    Name = NAME {
        kind: u32,
        object_kind: u32,
        object_id: ObjectId,
        pad: u32,
        name: *const c_char,
    }
    /// `CUpti_ActivityMarker2`.
    Marker2 = MARKER {
        kind: u32,
        flags: u32,
        timestamp: u64,
        id: u32,
        object_kind: u32,
        object_id: ObjectId,
        pad: u32,
        name: *const c_char,
        domain: *const c_char,
    }
    /// `CUpti_ActivityMarkerData`.
    MarkerData = MARKER_DATA {
        kind: u32,
        flags: u32,
        id: u32,
        payload_kind: u32,
        payload: u64,
        color: u32,
        category: u32,
    }
    /// `CUpti_ActivityOverhead`.
    Overhead = OVERHEAD {
        kind: u32,
        overhead_kind: u32,
        object_kind: u32,
        object_id: ObjectId,
        start: u64,
        end: u64,
    }
    /// `CUpti_ActivityEnvironment`.
    Environment = ENVIRONMENT {
        kind: u32,
        device_id: u32,
        timestamp: u64,
        environment_kind: u32,
        data: [u32; 5],
    }
    /// `CUpti_ActivityUnifiedMemoryCounter2`.
    UnifiedMemoryCounter2 = UNIFIED_MEMORY_COUNTER {
        kind: u32,
        counter_kind: u32,
        value: u64,
        start: u64,
        end: u64,
        address: u64,
        src_id: u32,
        dst_id: u32,
        stream_id: u32,
        process_id: u32,
        flags: u32,
        pad: u32,
    }
    /// `CUpti_ActivityFunction`.
    Function = FUNCTION {
        kind: u32,
        id: u32,
        context_id: u32,
        module_id: u32,
        function_index: u32,
        pad: u32,
        name: *const c_char,
    }
    /// `CUpti_ActivityModule`.
    Module = MODULE {
        kind: u32,
        context_id: u32,
        id: u32,
        cubin_size: u32,
        cubin: *const c_void,
    }
    /// `CUpti_ActivityCudaEvent`.
    CudaEvent = CUDA_EVENT {
        kind: u32,
        correlation_id: u32,
        context_id: u32,
        stream_id: u32,
        event_id: u32,
        pad: u32,
    }
    /// `CUpti_ActivityStream`.
    Stream = STREAM {
        kind: u32,
        context_id: u32,
        stream_id: u32,
        priority: u32,
        flag: u32,
        correlation_id: u32,
    }
    /// `CUpti_ActivitySynchronization`.
    Synchronization = SYNCHRONIZATION {
        kind: u32,
        r#type: u32,
        start: u64,
        end: u64,
        correlation_id: u32,
        context_id: u32,
        stream_id: u32,
        cuda_event_id: u32,
    }
    /// `CUpti_ActivityExternalCorrelation`.
    ExternalCorrelation = EXTERNAL_CORRELATION {
        kind: u32,
        external_kind: u32,
        external_id: u64,
        correlation_id: u32,
        reserved: u32,
    }
    /// `CUpti_ActivityNvLink3`.
    NvLink3 = NVLINK {
        kind: u32,
        nvlink_version: u32,
        type_dev0: u32,
        type_dev1: u32,
        id_dev0: [u8; 16],
        id_dev1: [u8; 16],
        flag: u32,
        physical_nv_link_count: u32,
        port_dev0: [i8; 16],
        port_dev1: [i8; 16],
        bandwidth: u64,
        nvswitch_connected: u8,
        pad: [u8; 7],
    }
    /// `CUpti_ActivityPcie`.
    Pcie = PCIE {
        kind: u32,
        r#type: u32,
        id: u32,
        domain: u32,
        pcie_generation: u16,
        link_rate: u16,
        link_width: u16,
        upstream_bus: u16,
        attr: PcieAttributes,
    }
    /// `CUpti_ActivityEvent`.
    Event = EVENT {
        kind: u32,
        id: u32,
        value: u64,
        domain: u32,
        correlation_id: u32,
    }
    /// `CUpti_ActivityEventInstance`.
    EventInstance = EVENT_INSTANCE {
        kind: u32,
        id: u32,
        domain: u32,
        instance: u32,
        value: u64,
        correlation_id: u32,
        pad: u32,
    }
    /// `CUpti_ActivityMetric`.
    Metric = METRIC {
        kind: u32,
        id: u32,
        value: u64,
        correlation_id: u32,
        flags: u8,
        pad: [u8; 3],
    }
    /// `CUpti_ActivityMetricInstance`.
    MetricInstance = METRIC_INSTANCE {
        kind: u32,
        id: u32,
        value: u64,
        instance: u32,
        correlation_id: u32,
        flags: u8,
        pad: [u8; 7],
    }
    /// `CUpti_ActivitySourceLocator`.
    SourceLocator = SOURCE_LOCATOR {
        kind: u32,
        id: u32,
        line_number: u32,
        pad: u32,
        file_name: *const c_char,
    }
    /// `CUpti_ActivityGlobalAccess3`.
    GlobalAccess3 = GLOBAL_ACCESS {
        kind: u32,
        flags: u32,
        source_locator_id: u32,
        correlation_id: u32,
        function_id: u32,
        executed: u32,
        pc_offset: u64,
        threads_executed: u64,
        l2_transactions: u64,
        theoretical_l2_transactions: u64,
    }
    /// `CUpti_ActivityBranch2`.
    Branch2 = BRANCH {
        kind: u32,
        source_locator_id: u32,
        correlation_id: u32,
        function_id: u32,
        pc_offset: u32,
        diverged: u32,
        threads_executed: u64,
        executed: u32,
        pad: u32,
    }
    /// `CUpti_ActivityInstructionExecution`.
    InstructionExecution = INSTRUCTION_EXECUTION {
        kind: u32,
        flags: u32,
        source_locator_id: u32,
        correlation_id: u32,
        function_id: u32,
        pc_offset: u32,
        threads_executed: u64,
        not_pred_off_threads_executed: u64,
        executed: u32,
        pad: u32,
    }
    /// `CUpti_ActivitySharedAccess`.
    SharedAccess = SHARED_ACCESS {
        kind: u32,
        flags: u32,
        source_locator_id: u32,
        correlation_id: u32,
        function_id: u32,
        pc_offset: u32,
        threads_executed: u64,
        shared_transactions: u64,
        theoretical_shared_transactions: u64,
        executed: u32,
        pad: u32,
    }
    /// `CUpti_ActivityPCSampling3`.
    PcSampling3 = PC_SAMPLING {
        kind: u32,
        flags: u32,
        source_locator_id: u32,
        correlation_id: u32,
        function_id: u32,
        latency_samples: u32,
        samples: u32,
        stall_reason: u32,
        pc_offset: u64,
    }
    /// `CUpti_ActivityPCSamplingRecordInfo`.
    PcSamplingRecordInfo = PC_SAMPLING_RECORD_INFO {
        kind: u32,
        correlation_id: u32,
        total_samples: u64,
        dropped_samples: u64,
        sampling_period_in_cycles: u64,
    }
    /// `CUpti_ActivityInstructionCorrelation`.
    InstructionCorrelation = INSTRUCTION_CORRELATION {
        kind: u32,
        flags: u32,
        source_locator_id: u32,
        function_id: u32,
        pc_offset: u32,
        pad: u32,
    }
    /// `CUpti_ActivityInstantaneousEvent`.
    InstantaneousEvent = INSTANTANEOUS_EVENT {
        kind: u32,
        id: u32,
        value: u64,
        timestamp: u64,
        device_id: u32,
        reserved: u32,
    }
    /// `CUpti_ActivityInstantaneousEventInstance`.
    InstantaneousEventInstance = INSTANTANEOUS_EVENT_INSTANCE {
        kind: u32,
        id: u32,
        value: u64,
        timestamp: u64,
        device_id: u32,
        instance: u8,
        pad: [u8; 3],
    }
    /// `CUpti_ActivityInstantaneousMetric`.
    InstantaneousMetric = INSTANTANEOUS_METRIC {
        kind: u32,
        id: u32,
        value: u64,
        timestamp: u64,
        device_id: u32,
        flags: u8,
        pad: [u8; 3],
    }
    /// `CUpti_ActivityInstantaneousMetricInstance`.
    InstantaneousMetricInstance = INSTANTANEOUS_METRIC_INSTANCE {
        kind: u32,
        id: u32,
        value: u64,
        timestamp: u64,
        device_id: u32,
        flags: u8,
        instance: u8,
        pad: [u8; 2],
    }
    /// `CUpti_ActivityOpenAccData`.
    OpenAccData = OPENACC_DATA {
        kind: u32,
        event_kind: u32,
        parent_construct: u32,
        version: u32,
        implicit: u32,
        device_type: u32,
        device_number: u32,
        thread_id: u32,
        r#async: u64,
        async_map: u64,
        line_no: u32,
        end_line_no: u32,
        func_line_no: u32,
        func_end_line_no: u32,
        start: u64,
        end: u64,
        cu_device_id: u32,
        cu_context_id: u32,
        cu_stream_id: u32,
        cu_process_id: u32,
        cu_thread_id: u32,
        external_id: u32,
        src_file: *const c_char,
        func_name: *const c_char,
        bytes: u64,
        host_ptr: u64,
        device_ptr: u64,
        var_name: *const c_char,
    }
    /// `CUpti_ActivityOpenAccLaunch`.
    OpenAccLaunch = OPENACC_LAUNCH {
        kind: u32,
        event_kind: u32,
        parent_construct: u32,
        version: u32,
        implicit: u32,
        device_type: u32,
        device_number: u32,
        thread_id: u32,
        r#async: u64,
        async_map: u64,
        line_no: u32,
        end_line_no: u32,
        func_line_no: u32,
        func_end_line_no: u32,
        start: u64,
        end: u64,
        cu_device_id: u32,
        cu_context_id: u32,
        cu_stream_id: u32,
        cu_process_id: u32,
        cu_thread_id: u32,
        external_id: u32,
        src_file: *const c_char,
        func_name: *const c_char,
        num_gangs: u64,
        num_workers: u64,
        vector_length: u64,
        kernel_name: *const c_char,
    }
    /// `CUpti_ActivityOpenAccOther`.
    OpenAccOther = OPENACC_OTHER {
        kind: u32,
        event_kind: u32,
        parent_construct: u32,
        version: u32,
        implicit: u32,
        device_type: u32,
        device_number: u32,
        thread_id: u32,
        r#async: u64,
        async_map: u64,
        line_no: u32,
        end_line_no: u32,
        func_line_no: u32,
        func_end_line_no: u32,
        start: u64,
        end: u64,
        cu_device_id: u32,
        cu_context_id: u32,
        cu_stream_id: u32,
        cu_process_id: u32,
        cu_thread_id: u32,
        external_id: u32,
        src_file: *const c_char,
        func_name: *const c_char,
    }
    /// `CUpti_ActivityOpenMp`.
    OpenMp = OPENMP {
        kind: u32,
        event_kind: u32,
        version: u32,
        thread_id: u32,
        start: u64,
        end: u64,
        cu_process_id: u32,
        cu_thread_id: u32,
    }
}
