// This file is @generated from schemas/perfetto_*.proto.
pub mod callstack {
    pub const IID: u32 = 1;
    pub const FRAME_IDS: u32 = 2;
}
pub mod clock_snapshot {
    pub const CLOCKS: u32 = 1;
    pub const PRIMARY_TRACE_CLOCK: u32 = 2;
    pub mod clock {
        pub const CLOCK_ID: u32 = 1;
        pub const TIMESTAMP: u32 = 2;
        pub const IS_INCREMENTAL: u32 = 3;
        pub const UNIT_MULTIPLIER_NS: u32 = 4;
    }
}
pub mod counter_descriptor {
    pub const UNIT: u32 = 3;
    pub const UNIT_MULTIPLIER: u32 = 4;
    pub const IS_INCREMENTAL: u32 = 5;
    pub const UNIT_NAME: u32 = 6;
}
pub mod debug_annotation {
    pub const NAME_IID: u32 = 1;
    pub const BOOL_VALUE: u32 = 2;
    pub const UINT_VALUE: u32 = 3;
    pub const INT_VALUE: u32 = 4;
    pub const DOUBLE_VALUE: u32 = 5;
    pub const STRING_VALUE: u32 = 6;
    pub const POINTER_VALUE: u32 = 7;
    pub const LEGACY_JSON_VALUE: u32 = 9;
    pub const NAME: u32 = 10;
    pub const DICT_ENTRIES: u32 = 11;
    pub const ARRAY_VALUES: u32 = 12;
    pub const STRING_VALUE_IID: u32 = 17;
}
pub mod debug_annotation_name {
    pub const IID: u32 = 1;
    pub const NAME: u32 = 2;
}
pub mod descriptor_proto {
    pub const NAME: u32 = 1;
    pub const FIELD: u32 = 2;
    pub const EXTENSION: u32 = 6;
}
pub mod enum_descriptor_proto {
    pub const NAME: u32 = 1;
    pub const VALUE: u32 = 2;
}
pub mod enum_value_descriptor_proto {
    pub const NAME: u32 = 1;
    pub const NUMBER: u32 = 2;
}
pub mod event_category {
    pub const IID: u32 = 1;
    pub const NAME: u32 = 2;
}
pub mod event_name {
    pub const IID: u32 = 1;
    pub const NAME: u32 = 2;
}
pub mod extension_descriptor {
    pub const EXTENSION_SET: u32 = 1;
}
pub mod field_descriptor_proto {
    pub const NAME: u32 = 1;
    pub const EXTENDEE: u32 = 2;
    pub const NUMBER: u32 = 3;
    pub const LABEL: u32 = 4;
    pub const TYPE: u32 = 5;
    pub const TYPE_NAME: u32 = 6;
}
pub mod file_descriptor_proto {
    pub const NAME: u32 = 1;
    pub const PACKAGE: u32 = 2;
    pub const MESSAGE_TYPE: u32 = 4;
    pub const ENUM_TYPE: u32 = 5;
}
pub mod file_descriptor_set {
    pub const FILE: u32 = 1;
}
pub mod frame {
    pub const IID: u32 = 1;
    pub const FUNCTION_NAME_ID: u32 = 2;
    pub const MAPPING_ID: u32 = 3;
    pub const REL_PC: u32 = 4;
}
pub mod ftrace_event {
    pub const TIMESTAMP: u32 = 1;
}
pub mod ftrace_event_bundle {
    pub const EVENT: u32 = 2;
    pub const COMPACT_SCHED: u32 = 4;
    pub const FTRACE_CLOCK: u32 = 5;
    pub const BOOT_TIMESTAMP: u32 = 7;
    pub const ERROR: u32 = 8;
    pub const LAST_READ_EVENT_TIMESTAMP: u32 = 9;
    pub const PREVIOUS_BUNDLE_END_TIMESTAMP: u32 = 10;
    pub mod compact_sched {
        pub const SWITCH_TIMESTAMP: u32 = 1;
        pub const WAKING_TIMESTAMP: u32 = 7;
    }
}
pub mod gpu_correlation {
    pub const RENDER_STAGE_SUBMISSION_EVENT_IDS: u32 = 1;
    pub const RENDER_STAGE_WAIT_EVENT_IDS: u32 = 2;
}
pub mod gpu_counter_descriptor {
    pub const SPECS: u32 = 1;
    pub const BLOCKS: u32 = 2;
    pub mod gpu_counter_block {
        pub const BLOCK_ID: u32 = 1;
        pub const BLOCK_CAPACITY: u32 = 2;
        pub const NAME: u32 = 3;
        pub const DESCRIPTION: u32 = 4;
        pub const COUNTER_IDS: u32 = 5;
    }
    pub mod gpu_counter_spec {
        pub const COUNTER_ID: u32 = 1;
        pub const NAME: u32 = 2;
        pub const DESCRIPTION: u32 = 3;
        pub const INT_PEAK_VALUE: u32 = 5;
        pub const DOUBLE_PEAK_VALUE: u32 = 6;
        pub const NUMERATOR_UNITS: u32 = 7;
        pub const DENOMINATOR_UNITS: u32 = 8;
        pub const SELECT_BY_DEFAULT: u32 = 9;
        pub const GROUPS: u32 = 10;
        pub const VALUE_DIRECTION: u32 = 11;
    }
}
pub mod gpu_counter_event {
    pub const COUNTER_DESCRIPTOR: u32 = 1;
    pub const COUNTERS: u32 = 2;
    pub const GPU_ID: u32 = 3;
    pub mod gpu_counter {
        pub const COUNTER_ID: u32 = 1;
        pub const INT_VALUE: u32 = 2;
        pub const DOUBLE_VALUE: u32 = 3;
    }
}
pub mod gpu_info {
    pub const GPUS: u32 = 1;
    pub mod gpu {
        pub const NAME: u32 = 1;
        pub const VENDOR: u32 = 2;
        pub const MODEL: u32 = 3;
        pub const ARCHITECTURE: u32 = 4;
        pub const UUID: u32 = 5;
        pub const EXTRA_INFO: u32 = 6;
        pub const PCI_BDF: u32 = 7;
    }
    pub mod key_value {
        pub const KEY: u32 = 1;
        pub const VALUE: u32 = 2;
    }
}
pub mod gpu_render_stage_event {
    pub const EVENT_ID: u32 = 1;
    pub const DURATION: u32 = 2;
    pub const CONTEXT: u32 = 5;
    pub const EXTRA_DATA: u32 = 6;
    pub const SUBMISSION_ID: u32 = 10;
    pub const GPU_ID: u32 = 11;
    pub const HW_QUEUE_IID: u32 = 13;
    pub const STAGE_IID: u32 = 14;
    pub const NAME: u32 = 17;
    pub const EVENT_WAIT_IDS: u32 = 18;
    pub const KERNEL_IID: u32 = 19;
    pub const NAME_IID: u32 = 20;
    pub const LAUNCH: u32 = 21;
    pub mod compute_kernel_launch {
        pub const GRID_SIZE: u32 = 1;
        pub const WORKGROUP_SIZE: u32 = 2;
        pub const ARGS: u32 = 3;
    }
    pub mod dim3 {
        pub const X: u32 = 1;
        pub const Y: u32 = 2;
        pub const Z: u32 = 3;
    }
    pub mod extra_compute_arg {
        pub const NAME_IID: u32 = 1;
        pub const NAME: u32 = 2;
        pub const INT_VALUE: u32 = 3;
        pub const UINT_VALUE: u32 = 4;
        pub const DOUBLE_VALUE: u32 = 5;
        pub const STRING_VALUE: u32 = 6;
        pub const STRING_VALUE_IID: u32 = 7;
    }
    pub mod extra_data {
        pub const NAME: u32 = 1;
        pub const VALUE: u32 = 2;
    }
}
pub mod interned_compute_arg_name {
    pub const IID: u32 = 1;
    pub const NAME: u32 = 2;
}
pub mod interned_compute_kernel {
    pub const IID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const DEMANGLED_NAME: u32 = 3;
    pub const ARCH: u32 = 4;
    pub const ARGS: u32 = 5;
}
pub mod interned_data {
    pub const EVENT_CATEGORIES: u32 = 1;
    pub const EVENT_NAMES: u32 = 2;
    pub const DEBUG_ANNOTATION_NAMES: u32 = 3;
    pub const SOURCE_LOCATIONS: u32 = 4;
    pub const FUNCTION_NAMES: u32 = 5;
    pub const FRAMES: u32 = 6;
    pub const CALLSTACKS: u32 = 7;
    pub const MAPPING_PATHS: u32 = 17;
    pub const MAPPINGS: u32 = 19;
    pub const GRAPHICS_CONTEXTS: u32 = 23;
    pub const GPU_SPECIFICATIONS: u32 = 24;
    pub const DEBUG_ANNOTATION_STRING_VALUES: u32 = 29;
    pub const COMPUTE_KERNELS: u32 = 1000;
    pub const COMPUTE_ARG_NAMES: u32 = 1001;
}
pub mod interned_gpu_render_stage_specification {
    pub const IID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const DESCRIPTION: u32 = 3;
    pub const CATEGORY: u32 = 4;
}
pub mod interned_graphics_context {
    pub const IID: u32 = 1;
    pub const PID: u32 = 2;
    pub const API: u32 = 3;
}
pub mod interned_string {
    pub const IID: u32 = 1;
    pub const STR: u32 = 2;
}
pub mod mapping {
    pub const IID: u32 = 1;
    pub const PATH_STRING_IDS: u32 = 7;
}
pub mod pc_samples {
    pub const PID: u32 = 1;
    pub const PROCESS: u32 = 2;
    pub const TEXTS: u32 = 3;
    pub const AGENTS: u32 = 4;
    pub const KERNELS: u32 = 5;
    pub const CODE_OBJECTS: u32 = 6;
    pub const ADDRESSES: u32 = 7;
    pub const COUNTS: u32 = 8;
    pub const TOTALS: u32 = 9;
    pub const CONFIGURATIONS: u32 = 10;
    pub const INVALID: u32 = 11;
    pub const SHOWN_ONE_OF: u32 = 12;
    pub const RAW: u32 = 13;
    pub const LINES: u32 = 14;
    pub const EXECUTIONS: u32 = 16;
    pub mod address {
        pub const ID: u32 = 1;
        pub const CODE_OBJECT: u32 = 2;
        pub const OFFSET: u32 = 3;
        pub const SYMBOL: u32 = 4;
        pub const INSTRUCTION: u32 = 5;
        pub const FRAMES: u32 = 6;
        pub const MISSING: u32 = 7;
        pub mod frame {
            pub const FUNCTION: u32 = 1;
            pub const FILE: u32 = 2;
            pub const LINE: u32 = 3;
        }
    }
    pub mod agent {
        pub const ID: u32 = 1;
        pub const NAME: u32 = 2;
    }
    pub mod code_object {
        pub const ID: u32 = 1;
        pub const PATH: u32 = 2;
    }
    pub mod configuration {
        pub const AGENT: u32 = 1;
        pub const METHOD: u32 = 2;
        pub const UNIT: u32 = 3;
        pub const INTERVAL: u32 = 4;
    }
    pub mod count {
        pub const AGENT: u32 = 1;
        pub const KERNEL: u32 = 2;
        pub const ADDRESS: u32 = 3;
        pub const OUTCOMES: u32 = 4;
    }
    pub mod execution {
        pub const AGENT: u32 = 1;
        pub const KERNEL: u32 = 2;
        pub const ADDRESS: u32 = 3;
        pub const EXECUTED: u32 = 4;
        pub const THREADS: u32 = 5;
        pub const DIVERGED: u32 = 6;
        pub const TRANSACTIONS: u32 = 7;
        pub const IDEAL_TRANSACTIONS: u32 = 8;
    }
    pub mod kernel {
        pub const ID: u32 = 1;
        pub const NAME: u32 = 2;
    }
    pub mod line {
        pub const FILE: u32 = 1;
        pub const LINE: u32 = 2;
        pub const TEXT: u32 = 3;
    }
    pub mod raw {
        pub const TIMES: u32 = 1;
        pub const ADDRESSES: u32 = 2;
        pub const AGENTS: u32 = 3;
        pub const KERNELS: u32 = 4;
        pub const OUTCOMES: u32 = 5;
        pub const DISPATCHES: u32 = 6;
        pub const CORRELATIONS: u32 = 7;
        pub const EXTERNALS: u32 = 8;
        pub const EXEC_MASKS: u32 = 9;
        pub const HARDWARE: u32 = 10;
        pub const WORKGROUPS: u32 = 11;
        pub const WAVES_IN_GROUP: u32 = 12;
        pub const WAVE_COUNTS: u32 = 13;
        pub const ABSENT: u32 = 14;
    }
    pub mod text {
        pub const ID: u32 = 1;
        pub const TEXT: u32 = 2;
    }
    pub mod totals {
        pub const AGENT: u32 = 1;
        pub const KERNEL: u32 = 2;
        pub const METHOD: u32 = 3;
        pub const DISPATCHES: u32 = 4;
        pub const SAMPLES: u32 = 5;
        pub const DROPPED: u32 = 6;
    }
}
pub mod perf_sample {
    pub const CALLSTACK_IID: u32 = 4;
}
pub mod process_descriptor {
    pub const PID: u32 = 1;
    pub const CMDLINE: u32 = 2;
    pub const LEGACY_SORT_INDEX: u32 = 3;
    pub const PROCESS_NAME: u32 = 6;
    pub const START_TIMESTAMP_NS: u32 = 7;
    pub const PROCESS_LABELS: u32 = 8;
}
pub mod process_tree {
    pub const PROCESSES: u32 = 1;
    pub mod process {
        pub const PID: u32 = 1;
        pub const CMDLINE: u32 = 3;
    }
}
pub mod streaming_profile_packet {
    pub const CALLSTACK_IID: u32 = 1;
    pub const TIMESTAMP_DELTA_US: u32 = 2;
}
pub mod system_info {
    pub const UTSNAME: u32 = 1;
    pub const TRACING_SERVICE_VERSION: u32 = 4;
    pub const NUM_CPUS: u32 = 8;
    pub const MACHINE_NAME: u32 = 17;
}
pub mod thread_descriptor {
    pub const PID: u32 = 1;
    pub const TID: u32 = 2;
    pub const LEGACY_SORT_INDEX: u32 = 3;
    pub const THREAD_NAME: u32 = 5;
    pub const REFERENCE_TIMESTAMP_US: u32 = 6;
}
pub mod trace {
    pub const PACKET: u32 = 1;
}
pub mod trace_attributes {
    pub const ATTRIBUTE: u32 = 1;
    pub mod attribute {
        pub const KEY: u32 = 1;
        pub const LONG_VALUE: u32 = 2;
        pub const STRING_VALUE: u32 = 3;
    }
}
pub mod trace_packet {
    pub const FTRACE_EVENTS: u32 = 1;
    pub const PROCESS_TREE: u32 = 2;
    pub const CLOCK_SNAPSHOT: u32 = 6;
    pub const TIMESTAMP: u32 = 8;
    pub const TRUSTED_PACKET_SEQUENCE_ID: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const TRACE_STATS: u32 = 35;
    pub const PREVIOUS_PACKET_DROPPED: u32 = 42;
    pub const THREAD_DESCRIPTOR: u32 = 44;
    pub const SYSTEM_INFO: u32 = 45;
    pub const COMPRESSED_PACKETS: u32 = 50;
    pub const GPU_COUNTER_EVENT: u32 = 52;
    pub const GPU_RENDER_STAGE_EVENT: u32 = 53;
    pub const STREAMING_PROFILE_PACKET: u32 = 54;
    pub const TIMESTAMP_CLOCK_ID: u32 = 58;
    pub const TRACE_PACKET_DEFAULTS: u32 = 59;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    pub const PERF_SAMPLE: u32 = 66;
    pub const EXTENSION_DESCRIPTOR: u32 = 72;
    pub const FIRST_PACKET_ON_SEQUENCE: u32 = 87;
    pub const TRACE_UUID: u32 = 89;
    pub const MACHINE_ID: u32 = 98;
    pub const TRACE_ATTRIBUTES: u32 = 126;
    pub const GPU_INFO: u32 = 128;
    pub const ZSTD_COMPRESSED_PACKETS: u32 = 133;
    pub const PC_SAMPLES: u32 = 1789;
}
pub mod trace_packet_defaults {
    pub const TRACK_EVENT_DEFAULTS: u32 = 11;
    pub const TIMESTAMP_CLOCK_ID: u32 = 58;
}
pub mod trace_stats {
    pub const BUFFER_STATS: u32 = 1;
    pub const FINAL_FLUSH_OUTCOME: u32 = 15;
    pub mod buffer_stats {
        pub const TRACE_WRITER_PACKET_LOSS: u32 = 19;
    }
}
pub mod trace_uuid {
    pub const MSB: u32 = 1;
    pub const LSB: u32 = 2;
}
pub mod track_descriptor {
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PROCESS: u32 = 3;
    pub const THREAD: u32 = 4;
    pub const PARENT_UUID: u32 = 5;
    pub const COUNTER: u32 = 8;
    pub const STATIC_NAME: u32 = 10;
    pub const CHILD_ORDERING: u32 = 11;
    pub const SIBLING_ORDER_RANK: u32 = 12;
}
pub mod track_event {
    pub const CATEGORY_IIDS: u32 = 3;
    pub const DEBUG_ANNOTATIONS: u32 = 4;
    pub const LEGACY_EVENT: u32 = 6;
    pub const TYPE: u32 = 9;
    pub const NAME_IID: u32 = 10;
    pub const TRACK_UUID: u32 = 11;
    pub const EXTRA_COUNTER_VALUES: u32 = 12;
    pub const CATEGORIES: u32 = 22;
    pub const NAME: u32 = 23;
    pub const COUNTER_VALUE: u32 = 30;
    pub const EXTRA_COUNTER_TRACK_UUIDS: u32 = 31;
    pub const SOURCE_LOCATION_IID: u32 = 34;
    pub const FLOW_IDS_OLD: u32 = 36;
    pub const TERMINATING_FLOW_IDS_OLD: u32 = 42;
    pub const DOUBLE_COUNTER_VALUE: u32 = 44;
    pub const EXTRA_DOUBLE_COUNTER_TRACK_UUIDS: u32 = 45;
    pub const EXTRA_DOUBLE_COUNTER_VALUES: u32 = 46;
    pub const FLOW_IDS: u32 = 47;
    pub const TERMINATING_FLOW_IDS: u32 = 48;
    pub const CORRELATION_ID: u32 = 52;
    pub const CORRELATION_ID_STR: u32 = 53;
    pub const CALLSTACK_IID: u32 = 56;
    pub const GPU_CORRELATION: u32 = 3000;
    pub const GPU_API: u32 = 3001;
}
pub mod track_event_defaults {
    pub const TRACK_UUID: u32 = 11;
}
pub mod utsname {
    pub const SYSNAME: u32 = 1;
    pub const VERSION: u32 = 2;
    pub const RELEASE: u32 = 3;
    pub const MACHINE: u32 = 4;
}
