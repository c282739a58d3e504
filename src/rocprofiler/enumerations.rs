//! The numbers of version 1.3, by their names in AMD's headers without the prefix of their enumeration.

/// An enumeration of C: numbers with names, others allowed.
macro_rules! enumerations {
    ($($(#[$what:meta])* $type:ident { $($name:ident = $value:literal;)* })*) => {
        $($(#[$what])*
        #[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(transparent)]
        pub struct $type(pub i32);

        // Names as AMD writes them; those of functions are in mixed case.
        #[allow(missing_docs, non_upper_case_globals)]
        impl $type {
            $(pub const $name: $type = $type($value);)*

            /// All numbers, with their names.
            pub const ALL: &[($type, &core::ffi::CStr)] = &[$(($type($value), name(concat!(stringify!($name), "\0"))),)*];

            /// The name of this number, if it has one.
            pub fn name(self) -> Option<&'static core::ffi::CStr> {
                let named = $type::ALL.iter().find(|(one, _)| *one == self);
                named.map(|(_, name)| *name)
            }
        })*
    };
}

/// A name as a text of C.
const fn name(text: &'static str) -> &'static core::ffi::CStr {
    match core::ffi::CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name ends with a 0, and has none within"),
    }
}

enumerations! {
    /// The answer of a function.
    Status {
        SUCCESS = 0;
        ERROR = 1;
        ERROR_CONTEXT_NOT_FOUND = 2;
        ERROR_BUFFER_NOT_FOUND = 3;
        ERROR_KIND_NOT_FOUND = 4;
        ERROR_OPERATION_NOT_FOUND = 5;
        ERROR_THREAD_NOT_FOUND = 6;
        ERROR_AGENT_NOT_FOUND = 7;
        ERROR_COUNTER_NOT_FOUND = 8;
        ERROR_CONTEXT_ERROR = 9;
        ERROR_CONTEXT_INVALID = 10;
        ERROR_CONTEXT_NOT_STARTED = 11;
        ERROR_CONTEXT_CONFLICT = 12;
        ERROR_CONTEXT_ID_NOT_ZERO = 13;
        ERROR_BUFFER_BUSY = 14;
        ERROR_SERVICE_ALREADY_CONFIGURED = 15;
        ERROR_CONFIGURATION_LOCKED = 16;
        ERROR_NOT_IMPLEMENTED = 17;
        ERROR_INCOMPATIBLE_ABI = 18;
        ERROR_INVALID_ARGUMENT = 19;
        ERROR_METRIC_NOT_VALID_FOR_AGENT = 20;
        ERROR_FINALIZED = 21;
        ERROR_HSA_NOT_LOADED = 22;
        ERROR_DIM_NOT_FOUND = 23;
        ERROR_PROFILE_COUNTER_NOT_FOUND = 24;
        ERROR_AST_GENERATION_FAILED = 25;
        ERROR_AST_NOT_FOUND = 26;
        ERROR_AQL_NO_EVENT_COORD = 27;
        ERROR_INCOMPATIBLE_KERNEL = 28;
        ERROR_OUT_OF_RESOURCES = 29;
        ERROR_CONFIG_NOT_FOUND = 30;
        ERROR_AGENT_DISPATCH_CONFLICT = 31;
        INTERNAL_NO_AGENT_CONTEXT = 32;
        ERROR_SAMPLE_RATE_EXCEEDED = 33;
        ERROR_NO_PROFILE_QUEUE = 34;
        ERROR_NO_HARDWARE_COUNTERS = 35;
        ERROR_AGENT_MISMATCH = 36;
        ERROR_NOT_AVAILABLE = 37;
        ERROR_EXCEEDS_HW_LIMIT = 38;
        ERROR_AGENT_ARCH_NOT_SUPPORTED = 39;
        ERROR_PERMISSION_DENIED = 40;
        ERROR_INCOMPATIBLE_REGISTER_VERSION = 41;
    }

    /// The subject of the records of a buffer.
    BufferCategory {
        NONE = 0;
        TRACING = 1;
        PC_SAMPLING = 2;
        COUNTERS = 3;
    }

    /// The sort of a processor.
    AgentType {
        NONE = 0;
        CPU = 1;
        GPU = 2;
    }

    /// Whether a callback comes before or after what it tells of. A load is an enter, an unload an exit.
    CallbackPhase {
        NONE = 0;
        ENTER = 1;
        LOAD = 1;
        EXIT = 2;
        UNLOAD = 2;
    }

    /// The subject of callbacks.
    CallbackTracingKind {
        NONE = 0;
        HSA_CORE_API = 1;
        HSA_AMD_EXT_API = 2;
        HSA_IMAGE_EXT_API = 3;
        HSA_FINALIZE_EXT_API = 4;
        HIP_RUNTIME_API = 5;
        HIP_COMPILER_API = 6;
        MARKER_CORE_API = 7;
        MARKER_CONTROL_API = 8;
        MARKER_NAME_API = 9;
        CODE_OBJECT = 10;
        SCRATCH_MEMORY = 11;
        KERNEL_DISPATCH = 12;
        MEMORY_COPY = 13;
        RCCL_API = 14;
        OMPT = 15;
        MEMORY_ALLOCATION = 16;
        RUNTIME_INITIALIZATION = 17;
        ROCDECODE_API = 18;
        ROCJPEG_API = 19;
        HIP_STREAM = 20;
        MARKER_CORE_RANGE_API = 21;
    }

    /// The subject of records.
    BufferTracingKind {
        NONE = 0;
        HSA_CORE_API = 1;
        HSA_AMD_EXT_API = 2;
        HSA_IMAGE_EXT_API = 3;
        HSA_FINALIZE_EXT_API = 4;
        HIP_RUNTIME_API = 5;
        HIP_COMPILER_API = 6;
        MARKER_CORE_API = 7;
        MARKER_CONTROL_API = 8;
        MARKER_NAME_API = 9;
        MEMORY_COPY = 10;
        KERNEL_DISPATCH = 11;
        SCRATCH_MEMORY = 12;
        CORRELATION_ID_RETIREMENT = 13;
        RCCL_API = 14;
        OMPT = 15;
        MEMORY_ALLOCATION = 16;
        RUNTIME_INITIALIZATION = 17;
        ROCDECODE_API = 18;
        ROCJPEG_API = 19;
        HIP_STREAM = 20;
        HIP_RUNTIME_API_EXT = 21;
        HIP_COMPILER_API_EXT = 22;
        ROCDECODE_API_EXT = 23;
        KFD_EVENT_PAGE_MIGRATE = 24;
        KFD_EVENT_PAGE_FAULT = 25;
        KFD_EVENT_QUEUE = 26;
        KFD_EVENT_UNMAP_FROM_GPU = 27;
        KFD_EVENT_DROPPED_EVENTS = 28;
        KFD_PAGE_MIGRATE = 29;
        KFD_PAGE_FAULT = 30;
        KFD_QUEUE = 31;
        MARKER_CORE_RANGE_API = 32;
    }

    /// An event of code.
    CodeObjectOperation {
        NONE = 0;
        LOAD = 1;
        DEVICE_KERNEL_SYMBOL_REGISTER = 2;
        HOST_KERNEL_SYMBOL_REGISTER = 3;
    }

    /// An event of a stream of HIP. `SET` comes around what is done in the stream.
    HipStreamOperation {
        NONE = 0;
        CREATE = 1;
        DESTROY = 2;
        SET = 3;
    }

    /// The direction of a copy.
    MemoryCopyOperation {
        NONE = 0;
        HOST_TO_HOST = 1;
        HOST_TO_DEVICE = 2;
        DEVICE_TO_HOST = 3;
        DEVICE_TO_DEVICE = 4;
    }

    /// How memory is allocated or released.
    MemoryAllocationOperation {
        NONE = 0;
        ALLOCATE = 1;
        VMEM_ALLOCATE = 2;
        FREE = 3;
        VMEM_FREE = 4;
    }

    /// An event of a dispatch.
    KernelDispatchOperation {
        NONE = 0;
        ENQUEUE = 1;
        COMPLETE = 2;
    }

    /// An event of scratch memory.
    ScratchMemoryOperation {
        NONE = 0;
        ALLOC = 1;
        FREE = 2;
        ASYNC_RECLAIM = 3;
    }

    /// The runtime that was loaded.
    RuntimeInitializationOperation {
        NONE = 0;
        HSA = 1;
        HIP = 2;
        MARKER = 3;
        RCCL = 4;
        ROCDECODE = 5;
        ROCJPEG = 6;
        OMPT = 7;
    }

    /// The taker of samples.
    PcSamplingMethod {
        NONE = 0;
        STOCHASTIC = 1;
        HOST_TRAP = 2;
    }

    /// The unit of the interval of samples. Times are microseconds: AMD's headers say nanoseconds, and its library passes the number on
    /// to the driver, which counts microseconds, in all versions up to 1.3.
    PcSamplingUnit {
        NONE = 0;
        INSTRUCTIONS = 1;
        CYCLES = 2;
        TIME = 3;
    }

    /// The behaviour of a full buffer: records are dropped, or their writers wait.
    BufferPolicy {
        NONE = 0;
        DISCARD = 1;
        LOSSLESS = 2;
    }

    /// The structure that describes a counter.
    CounterInfoVersion {
        VERSION_NONE = 0;
        VERSION_0 = 1;
        VERSION_1 = 2;
    }

    /// A record of the counters.
    CounterRecordKind {
        NONE = 0;
        PROFILE_COUNTING_DISPATCH_HEADER = 1;
        VALUE = 2;
    }

    /// How counters are read and defined.
    CounterFlag {
        NONE = 0;
        ASYNC = 1;
        APPEND_DEFINITION = 2;
    }

    /// A record of the samples.
    PcSamplingRecordKind {
        NONE = 0;
        INVALID_SAMPLE = 1;
        HOST_TRAP_V0_SAMPLE = 2;
        STOCHASTIC_V0_SAMPLE = 3;
    }

    /// Libraries that make threads, as bits.
    RuntimeLibrary {
        LIBRARY = 1;
        HSA_LIBRARY = 2;
        HIP_LIBRARY = 4;
        MARKER_LIBRARY = 8;
        RCCL_LIBRARY = 16;
        ROCDECODE_LIBRARY = 32;
        ROCJPEG_LIBRARY = 64;
        OMPT_LIBRARY = 128;
    }

    /// Tables of functions, as bits.
    InterceptTable {
        HSA_TABLE = 1;
        HIP_RUNTIME_TABLE = 2;
        HIP_COMPILER_TABLE = 4;
        MARKER_CORE_TABLE = 8;
        MARKER_CONTROL_TABLE = 16;
        MARKER_NAME_TABLE = 32;
        RCCL_TABLE = 64;
        ROCDECODE_TABLE = 128;
        ROCJPEG_TABLE = 256;
    }

    /// The structure that describes an agent.
    AgentVersion {
        VERSION_NONE = 0;
        VERSION_0 = 1;
    }

    /// The subject of a request for an external id.
    ExternalCorrelationRequestKind {
        NONE = 0;
        HSA_CORE_API = 1;
        HSA_AMD_EXT_API = 2;
        HSA_IMAGE_EXT_API = 3;
        HSA_FINALIZE_EXT_API = 4;
        HIP_RUNTIME_API = 5;
        HIP_COMPILER_API = 6;
        MARKER_CORE_API = 7;
        MARKER_CONTROL_API = 8;
        MARKER_NAME_API = 9;
        MEMORY_COPY = 10;
        KERNEL_DISPATCH = 11;
        SCRATCH_MEMORY = 12;
        RCCL_API = 13;
        OMPT = 14;
        MEMORY_ALLOCATION = 15;
        ROCDECODE_API = 16;
        ROCJPEG_API = 17;
        MARKER_CORE_RANGE_API = 18;
    }

    /// The properties of the interval.
    PcSamplingConfigurationFlags {
        NONE = 0;
        INTERVAL_POW2 = 1;
    }

    /// The instruction that was issued.
    PcSamplingInstructionType {
        NONE = 0;
        VALU = 1;
        MATRIX = 2;
        SCALAR = 3;
        TEX = 4;
        LDS = 5;
        LDS_DIRECT = 6;
        FLAT = 7;
        EXPORT = 8;
        MESSAGE = 9;
        BARRIER = 10;
        BRANCH_NOT_TAKEN = 11;
        BRANCH_TAKEN = 12;
        JUMP = 13;
        OTHER = 14;
        NO_INST = 15;
        DUAL_VALU = 16;
    }

    /// Why no instruction was issued.
    PcSamplingInstructionNotIssuedReason {
        NONE = 0;
        NO_INSTRUCTION_AVAILABLE = 1;
        ALU_DEPENDENCY = 2;
        WAITCNT = 3;
        INTERNAL_INSTRUCTION = 4;
        BARRIER_WAIT = 5;
        ARBITER_NOT_WIN = 6;
        ARBITER_WIN_EX_STALL = 7;
        OTHER_WAIT = 8;
        SLEEP_WAIT = 9;
    }

    /// How scratch memory was allocated.
    ScratchAllocFlag {
        NONE = 0;
        USE_ONCE = 1;
        ALT = 2;
    }

    /// An event of a migration of pages.
    KfdEventPageMigrateOperation {
        NONE = -1;
        PREFETCH = 0;
        PAGEFAULT_GPU = 1;
        PAGEFAULT_CPU = 2;
        TTM_EVICTION = 3;
        END = 4;
    }

    /// An event of a page fault.
    KfdEventPageFaultOperation {
        NONE = -1;
        START = 0;
        START_READ_FAULT = 1;
        START_WRITE_FAULT = 2;
        END_PAGE_MIGRATED = 3;
        END_PAGE_UPDATED = 4;
    }

    /// An event of a queue: it is taken off the hardware or put back.
    KfdEventQueueOperation {
        NONE = -1;
        EVICT_SVM = 0;
        EVICT_USERPTR = 1;
        EVICT_TTM = 2;
        EVICT_SUSPEND = 3;
        EVICT_CRIU_CHECKPOINT = 4;
        EVICT_CRIU_RESTORE = 5;
        RESTORE_RESCHEDULED = 6;
        RESTORE = 7;
    }

    /// Why a range was unmapped.
    KfdEventUnmapFromGpuOperation {
        NONE = -1;
        MMU_NOTIFY = 0;
        MMU_NOTIFY_MIGRATE = 1;
        UNMAP_FROM_CPU = 2;
    }

    /// Events that the driver dropped.
    KfdEventDroppedEventsOperation {
        NONE = -1;
        DROPPED_EVENTS = 0;
    }

    /// Why pages migrated.
    KfdPageMigrateOperation {
        NONE = -1;
        PREFETCH = 0;
        PAGEFAULT_GPU = 1;
        PAGEFAULT_CPU = 2;
        TTM_EVICTION = 3;
    }

    /// How a page fault was resolved.
    KfdPageFaultOperation {
        NONE = -1;
        READ_FAULT_MIGRATED = 0;
        READ_FAULT_UPDATED = 1;
        WRITE_FAULT_MIGRATED = 2;
        WRITE_FAULT_UPDATED = 3;
    }

    /// Why a queue was off the hardware.
    KfdQueueOperation {
        NONE = -1;
        EVICT_SVM = 0;
        EVICT_USERPTR = 1;
        EVICT_TTM = 2;
        EVICT_SUSPEND = 3;
        EVICT_CRIU_CHECKPOINT = 4;
        EVICT_CRIU_RESTORE = 5;
    }

    /// Functions of ROCTx.
    MarkerCoreApi {
        NONE = -1;
        roctxMarkA = 0;
        roctxRangePushA = 1;
        roctxRangePop = 2;
        roctxRangeStartA = 3;
        roctxRangeStop = 4;
        roctxGetThreadId = 5;
    }

    /// Functions of ROCTx.
    MarkerControlApi {
        NONE = -1;
        roctxProfilerPause = 0;
        roctxProfilerResume = 1;
    }

    /// Functions of ROCTx.
    MarkerNameApi {
        NONE = -1;
        roctxNameOsThread = 0;
        roctxNameHsaAgent = 1;
        roctxNameHipDevice = 2;
        roctxNameHipStream = 3;
    }

    /// Functions of ROCTx.
    MarkerCoreRangeApi {
        NONE = -1;
        roctxMarkA = 0;
        roctxThreadRangeA = 1;
        roctxProcessRangeA = 2;
        roctxGetThreadId = 3;
    }
}
