//! Types of the API, laid out as in ROCm's `rocprofiler.h` 8.0, and those of HSA that they are made of.
//!
//! Sizes and places of fields, constants and types of functions were compared with ROCm's header 8.0 and HSA's headers of Debian
//! 12 on x86-64, and the test program of ROCm's form was compiled with those headers and run. Tests check the same numbers without
//! them, since no package registry has ROCm's header.

use core::ffi::{c_char, c_int, c_void};
use gputrail_abi::enumeration;
use gputrail_tool::{self as tool, Status as Of};

enumeration! {
    /// The result of a function (`hsa_status_t`); programs may return other values from their callbacks.
    Status {
        SUCCESS = 0, "HSA_STATUS_SUCCESS";
        INFO_BREAK = 1, "HSA_STATUS_INFO_BREAK";
        ERROR = 0x1000, "HSA_STATUS_ERROR";
        INVALID_ARGUMENT = 0x1001, "HSA_STATUS_ERROR_INVALID_ARGUMENT";
        INVALID_AGENT = 0x1004, "HSA_STATUS_ERROR_INVALID_AGENT";
        OUT_OF_RESOURCES = 0x1008, "HSA_STATUS_ERROR_OUT_OF_RESOURCES";
        NOT_INITIALIZED = 0x100B, "HSA_STATUS_ERROR_NOT_INITIALIZED";
        INVALID_INDEX = 0x100E, "HSA_STATUS_ERROR_INVALID_INDEX";
    }
}

enumeration! {
    /// The kind of information (`rocprofiler_info_kind_t`).
    InfoKind {
        METRIC = 0, "ROCPROFILER_INFO_KIND_METRIC";
        METRIC_COUNT = 1, "ROCPROFILER_INFO_KIND_METRIC_COUNT";
        TRACE = 2, "ROCPROFILER_INFO_KIND_TRACE";
        TRACE_COUNT = 3, "ROCPROFILER_INFO_KIND_TRACE_COUNT";
        TRACE_PARAMETER = 4, "ROCPROFILER_INFO_KIND_TRACE_PARAMETER";
        TRACE_PARAMETER_COUNT = 5, "ROCPROFILER_INFO_KIND_TRACE_PARAMETER_COUNT";
    }
}

enumeration! {
    /// The kind of a feature (`rocprofiler_feature_kind_t`). The modifiers are bits beside that of a trace.
    FeatureKind {
        METRIC = 0, "ROCPROFILER_FEATURE_KIND_METRIC";
        TRACE = 1, "ROCPROFILER_FEATURE_KIND_TRACE";
        SPM_MOD = 2, "ROCPROFILER_FEATURE_KIND_SPM_MOD";
        PCSMP_MOD = 4, "ROCPROFILER_FEATURE_KIND_PCSMP_MOD";
    }
}

enumeration! {
    /// The kind of a value (`rocprofiler_data_kind_t`).
    DataKind {
        UNINIT = 0, "ROCPROFILER_DATA_KIND_UNINIT";
        INT32 = 1, "ROCPROFILER_DATA_KIND_INT32";
        INT64 = 2, "ROCPROFILER_DATA_KIND_INT64";
        FLOAT = 3, "ROCPROFILER_DATA_KIND_FLOAT";
        DOUBLE = 4, "ROCPROFILER_DATA_KIND_DOUBLE";
        BYTES = 5, "ROCPROFILER_DATA_KIND_BYTES";
    }
}

enumeration! {
    /// A clock (`rocprofiler_time_id_t`).
    TimeId {
        CLOCK_REALTIME = 0, "ROCPROFILER_TIME_ID_CLOCK_REALTIME";
        CLOCK_REALTIME_COARSE = 1, "ROCPROFILER_TIME_ID_CLOCK_REALTIME_COARSE";
        CLOCK_MONOTONIC = 2, "ROCPROFILER_TIME_ID_CLOCK_MONOTONIC";
        CLOCK_MONOTONIC_COARSE = 3, "ROCPROFILER_TIME_ID_CLOCK_MONOTONIC_COARSE";
        CLOCK_MONOTONIC_RAW = 4, "ROCPROFILER_TIME_ID_CLOCK_MONOTONIC_RAW";
    }
}

/// Bits of the mode of a context (`rocprofiler_mode_t`).
pub mod mode {
    /// Counts whatever runs on the device.
    pub const STANDALONE: u32 = 1;
    /// Has a queue created for that.
    pub const CREATEQUEUE: u32 = 2;
    /// Fails if several groups are needed.
    pub const SINGLEGROUP: u32 = 4;
    /// All of them.
    pub const ALL: u32 = STANDALONE | CREATEQUEUE | SINGLEGROUP;
}

/// A device (`hsa_agent_t`): its handle in its runtime, in OpenCL the `cl_device_id`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct AgentHandle {
    pub handle: u64,
}

/// A signal (`hsa_signal_t`). There are none here.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct Signal {
    pub handle: u64,
}

/// A queue (`hsa_queue_t`).
#[derive(Debug)]
#[repr(C)]
pub struct Queue {
    pub queue_type: u32,
    pub features: u32,
    pub base_address: *mut c_void,
    pub doorbell_signal: Signal,
    pub size: u32,
    pub reserved: u32,
    pub id: u64,
}

/// A kernel that is put into a queue (`hsa_kernel_dispatch_packet_t`).
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct Packet {
    pub header: u16,
    pub setup: u16,
    pub workgroup_size: [u16; 3],
    pub reserved0: u16,
    pub grid_size: [u32; 3],
    pub private_segment_size: u32,
    pub group_segment_size: u32,
    pub kernel_object: u64,
    pub kernarg_address: *mut c_void,
    pub reserved2: u64,
    pub completion_signal: Signal,
}

/// Global properties (`rocprofiler_settings_t`). Those of HSA and of traces have no effect.
#[derive(Copy, Clone, Debug, Default)]
#[repr(C)]
pub struct Settings {
    pub intercept_mode: u32,
    pub code_obj_tracking: u32,
    pub memcopy_tracking: u32,
    pub trace_size: u32,
    pub trace_local: u32,
    pub timeout: u64,
    pub timestamp_on: u32,
    pub hsa_intercepting: u32,
    pub k_concurrent: u32,
    pub opt_mode: u32,
    pub obj_dumping: u32,
}

/// A metric (`rocprofiler_info_data_t`, `metric`).
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct MetricInfo {
    pub name: *const c_char,
    pub instances: u32,
    pub expr: *const c_char,
    pub description: *const c_char,
    pub block_name: *const c_char,
    pub block_counters: u32,
}

/// A trace (`rocprofiler_info_data_t`, `trace`).
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct TraceInfo {
    pub name: *const c_char,
    pub description: *const c_char,
    pub parameter_count: u32,
}

/// A parameter of a trace (`rocprofiler_info_data_t`, `trace_parameter`).
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct TraceParameterInfo {
    pub code: u32,
    pub trace_name: *const c_char,
    pub parameter_name: *const c_char,
    pub description: *const c_char,
}

/// A metric, a trace or a parameter of a trace.
#[derive(Copy, Clone)]
#[repr(C)]
pub union InfoUnion {
    pub metric: MetricInfo,
    pub trace: TraceInfo,
    pub trace_parameter: TraceParameterInfo,
}

/// Information (`rocprofiler_info_data_t`).
#[derive(Copy, Clone)]
#[repr(C)]
pub struct InfoData {
    pub agent_index: u32,
    pub kind: InfoKind,
    pub of: InfoUnion,
}

/// The information that a program asks for (`rocprofiler_info_query_t`): a kind, or the parameters of a trace by its name.
#[derive(Copy, Clone)]
#[repr(C)]
pub union InfoQuery {
    pub info_kind: InfoKind,
    pub trace_name: *const c_char,
}

/// A callback that gets information.
pub type InfoCallback = unsafe extern "C-unwind" fn(info: InfoData, data: *mut c_void) -> Status;

/// A parameter of a trace (`rocprofiler_parameter_t`).
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct Parameter {
    pub name: c_int,
    pub value: u32,
}

/// The bytes of a trace.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct ResultBytes {
    pub ptr: *mut c_void,
    pub size: u32,
    pub instance_count: u32,
    pub copy: bool,
}

/// The values that data can have.
#[derive(Copy, Clone)]
#[repr(C)]
pub union DataUnion {
    pub int64: u64,
    pub double: f64,
    pub bytes: ResultBytes,
}

/// A value (`rocprofiler_data_t`).
#[derive(Copy, Clone)]
#[repr(C)]
pub struct Data {
    pub kind: DataKind,
    pub of: DataUnion,
}

/// A counter as the event of a block (`rocprofiler_feature_t`, `counter`).
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct BlockEvent {
    pub block: *const c_char,
    pub event: u32,
}

/// The name of a feature, or its event of a block. Nothing tells them apart, and the name is read, as ROCm's library does.
#[derive(Copy, Clone)]
#[repr(C)]
pub union FeatureUnion {
    pub name: *const c_char,
    pub counter: BlockEvent,
}

/// A feature (`rocprofiler_feature_t`): a counter or metric by name, and its value.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct Feature {
    pub kind: FeatureKind,
    pub of: FeatureUnion,
    pub parameters: *const Parameter,
    pub parameter_count: u32,
    pub data: Data,
}

/// A context or a pool, as programs have it: a number that is no address.
pub type Handle = *mut c_void;

/// A group of features that are counted together (`rocprofiler_group_t`).
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct Group {
    pub index: u32,
    pub features: *mut *mut Feature,
    pub feature_count: u32,
    pub context: Handle,
}

/// A callback on a context whose data is ready (`rocprofiler_handler_t`). ROCm's returns a `bool` that means nothing, and the
/// document's (`rocprofiler_context_callback_t`) returns nothing: no result is read, so that this is the type of both.
pub type ContextHandler = unsafe extern "C-unwind" fn(group: Group, arg: *mut c_void);

/// Properties of a context (`rocprofiler_properties_t`).
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct Properties {
    pub queue: *mut Queue,
    pub queue_depth: u32,
    pub handler: Option<ContextHandler>,
    pub handler_arg: *mut c_void,
}

/// The times of a dispatch (`rocprofiler_dispatch_record_t`), in nanoseconds of CLOCK_BOOTTIME.
#[derive(Copy, Clone, Debug, Default)]
#[repr(C)]
pub struct DispatchRecord {
    pub dispatch: u64,
    pub begin: u64,
    pub end: u64,
    pub complete: u64,
}

/// A dispatch (`rocprofiler_callback_data_t`).
#[derive(Debug)]
#[repr(C)]
pub struct CallbackData {
    pub agent: AgentHandle,
    pub agent_index: u32,
    pub queue: *const Queue,
    pub queue_index: u64,
    pub queue_id: u32,
    pub completion_signal: Signal,
    pub packet: *const Packet,
    pub kernel_name: *const c_char,
    pub kernel_object: u64,
    /// The machine code for HSA (`amd_kernel_code_t`): zeros, since no kernel has any.
    pub kernel_code: *const c_void,
    pub thread_id: u32,
    pub record: *const DispatchRecord,
}

/// A callback on dispatches (`rocprofiler_callback_t`).
pub type DispatchCallback = unsafe extern "C-unwind" fn(
    data: *const CallbackData,
    user_data: *mut c_void,
    group: *mut Group,
) -> Status;

/// A callback on queues that are created or destroyed.
pub type QueueCallback =
    unsafe extern "C-unwind" fn(queue: *mut Queue, data: *mut c_void) -> Status;

/// Callbacks on queues (`rocprofiler_queue_callbacks_t`).
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct QueueCallbacks {
    pub dispatch: Option<DispatchCallback>,
    pub create: Option<QueueCallback>,
    pub destroy: Option<QueueCallback>,
}

/// An entry of a pool (`rocprofiler_pool_entry_t`).
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct PoolEntry {
    pub context: Handle,
    pub payload: *mut c_void,
}

/// A callback on entries whose kernels have ended (`rocprofiler_pool_handler_t`).
pub type PoolHandler =
    unsafe extern "C-unwind" fn(entry: *const PoolEntry, arg: *mut c_void) -> bool;

/// A callback on the entries of a pool.
pub type PoolVisitor =
    unsafe extern "C-unwind" fn(entry: *mut PoolEntry, data: *mut c_void) -> Status;

/// Properties of a pool (`rocprofiler_pool_properties_t`).
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct PoolProperties {
    pub num_entries: u32,
    pub payload_bytes: u32,
    pub handler: Option<PoolHandler>,
    pub handler_arg: *mut c_void,
}

/// A callback on the data of traces (`hsa_ven_amd_aqlprofile_data_callback_t`).
pub type TraceCallback = unsafe extern "C-unwind" fn(
    kind: c_int,
    data: *mut c_void,
    callback_data: *mut c_void,
) -> Status;

/// The type of the data of traces (`HSA_VEN_AMD_AQLPROFILE_INFO_TRACE_DATA`).
pub const INFO_TRACE_DATA: c_int = 3;

/// The data of a trace (`hsa_ven_amd_aqlprofile_info_data_t`, `trace_data`).
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct TraceData {
    pub sample_id: u32,
    pub ptr: *mut c_void,
    pub size: u32,
    pub reserved: u64,
}

/// The result of a function, or why it failed.
pub type Answer<T = ()> = Result<T, Failure>;

/// A failed call: its status, and a sentence for `rocprofiler_error_string`.
#[derive(Clone, Debug)]
pub struct Failure {
    pub status: Status,
    pub text: String,
}

impl Failure {
    pub fn new(status: Status, text: impl Into<String>) -> Failure {
        let text = text.into();
        Failure { status, text }
    }

    /// Bad input.
    pub fn argument(text: impl Into<String>) -> Failure {
        Failure::new(Status::INVALID_ARGUMENT, text)
    }

    /// What is not possible now.
    pub fn state(text: impl Into<String>) -> Failure {
        Failure::new(Status::ERROR, text)
    }

    /// A null pointer.
    pub fn null(what: &str) -> Failure {
        Failure::argument(format!("{what} is null"))
    }
}

impl From<tool::Error> for Failure {
    fn from(error: tool::Error) -> Failure {
        let status = match error.status {
            Of::NULL_POINTER | Of::INVALID_ARGUMENT | Of::NOT_FOUND | Of::OUT_OF_RANGE => {
                Status::INVALID_ARGUMENT
            }
            Of::NO_SUCH_AGENT => Status::INVALID_AGENT,
            Of::NOT_INITIALISED | Of::NOT_AVAILABLE | Of::TOO_LATE => Status::NOT_INITIALIZED,
            Of::OUT_OF_MEMORY | Of::TOO_MANY | Of::NO_THREAD => Status::OUT_OF_RESOURCES,
            Of::BUSY => return Failure::state("a callback cannot wait for what is being counted"),
            _ => Status::ERROR,
        };
        Failure::new(status, error.text)
    }
}

/// Pins the size of a type and the places of its fields, as ROCm's header 8.0 has them on x86-64 and on aarch64.
macro_rules! layout {
    ($($type:ident: $size:literal { $($field:ident @ $place:literal),* })*) => {
        $(const _: () = {
            assert!(size_of::<$type>() == $size);
            $(assert!(core::mem::offset_of!($type, $field) == $place);)*
        };)*
    };
}

layout! {
    Queue: 40 { base_address @ 8, doorbell_signal @ 16, size @ 24, id @ 32 }
    Packet: 64 { workgroup_size @ 4, grid_size @ 12, private_segment_size @ 24, kernel_object @ 32, completion_signal @ 56 }
    Settings: 56 {
        code_obj_tracking @ 4, memcopy_tracking @ 8, trace_size @ 12, trace_local @ 16, timeout @ 24, timestamp_on @ 32,
        hsa_intercepting @ 36, k_concurrent @ 40, opt_mode @ 44, obj_dumping @ 48
    }
    MetricInfo: 48 { instances @ 8, expr @ 16, description @ 24, block_name @ 32, block_counters @ 40 }
    TraceInfo: 24 { description @ 8, parameter_count @ 16 }
    TraceParameterInfo: 32 { trace_name @ 8, parameter_name @ 16, description @ 24 }
    InfoData: 56 { agent_index @ 0, kind @ 4, of @ 8 }
    InfoQuery: 8 { info_kind @ 0, trace_name @ 0 }
    ResultBytes: 24 { size @ 8, instance_count @ 12, copy @ 16 }
    Data: 32 { kind @ 0, of @ 8 }
    BlockEvent: 16 { event @ 8 }
    Feature: 72 { of @ 8, parameters @ 24, parameter_count @ 32, data @ 40 }
    Group: 32 { features @ 8, feature_count @ 16, context @ 24 }
    Properties: 32 { queue @ 0, queue_depth @ 8, handler @ 16, handler_arg @ 24 }
    DispatchRecord: 32 { begin @ 8, end @ 16, complete @ 24 }
    CallbackData: 96 {
        agent_index @ 8, queue @ 16, queue_index @ 24, queue_id @ 32, completion_signal @ 40, packet @ 48, kernel_name @ 56,
        kernel_object @ 64, kernel_code @ 72, thread_id @ 80, record @ 88
    }
    QueueCallbacks: 24 { dispatch @ 0, create @ 8, destroy @ 16 }
    PoolEntry: 16 { payload @ 8 }
    PoolProperties: 24 { payload_bytes @ 4, handler @ 8, handler_arg @ 16 }
}
