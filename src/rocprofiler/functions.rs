//! The functions of the library, and the callbacks of a tool.

use crate::enumerations::*;
use crate::types::*;
use crate::{
    CallbackTracingRecord, CounterRecord, CounterRecordDimensionInfo, DispatchCountingData,
    PcSamplingConfiguration,
};
use core::ffi::{CStr, c_char, c_int, c_void};

/// A tool as the library knows it. The tool sets its `name`.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct ClientId {
    /// Bytes of this structure.
    pub size: usize,
    /// The tool's name, or null.
    pub name: *const c_char,
    /// The library's number of the tool.
    pub handle: u32,
}

/// The answer of a tool that is configured.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct ToolConfigureResult {
    /// Bytes of this structure.
    pub size: usize,
    /// Makes contexts and services; an answer other than 0 gives them up.
    pub initialize: Option<ToolInitialize>,
    /// Called at the end.
    pub finalize: Option<ToolFinalize>,
    /// The argument of both.
    pub tool_data: *mut c_void,
}

/// Ends a tool before the process does.
pub type ClientFinalize = unsafe extern "C" fn(ClientId);
/// The beginning of a tool.
pub type ToolInitialize = unsafe extern "C" fn(Option<ClientFinalize>, *mut c_void) -> c_int;
/// The end of a tool.
pub type ToolFinalize = unsafe extern "C" fn(*mut c_void);
/// `rocprofiler_configure`, which a tool exports: the version, its text, the number of tools before this one, what the tool is.
pub type Configure =
    unsafe extern "C" fn(u32, *const c_char, u32, *mut ClientId) -> *mut ToolConfigureResult;
/// Takes the records of a buffer: the context, the buffer, the records and their number, the tool's data, the records dropped.
pub type BufferCallback =
    unsafe extern "C" fn(ContextId, BufferId, *mut *mut RecordHeader, usize, *mut c_void, u64);
/// Is told of a call or another event. The word is the same at enter and exit.
pub type TracingCallback = unsafe extern "C" fn(CallbackTracingRecord, *mut UserData, *mut c_void);
/// [`TracingCallback`] before version 1.0.
pub type TracingCallbackBefore1_0 =
    unsafe extern "C" fn(crate::before_1_0::CallbackTracingRecord, *mut UserData, *mut c_void);
/// Is given a kind; an answer other than 0 ends the iteration.
pub type CallbackKindVisitor = unsafe extern "C" fn(CallbackTracingKind, *mut c_void) -> c_int;
/// Is given an operation of a kind; an answer other than 0 ends the iteration.
pub type CallbackOperationVisitor =
    unsafe extern "C" fn(CallbackTracingKind, TracingOperation, *mut c_void) -> c_int;
/// Is given a kind; an answer other than 0 ends the iteration.
pub type BufferKindVisitor = unsafe extern "C" fn(BufferTracingKind, *mut c_void) -> c_int;
/// Is given an operation of a kind; an answer other than 0 ends the iteration.
pub type BufferOperationVisitor =
    unsafe extern "C" fn(BufferTracingKind, TracingOperation, *mut c_void) -> c_int;
/// Is given an argument of a call: its number, the address of its value, how many pointers it is away from its type, its type
/// as C++ mangles it, its name, its value as text, how many pointers were followed for that.
pub type CallbackArgumentVisitor = unsafe extern "C" fn(
    CallbackTracingKind,
    TracingOperation,
    u32,
    *const c_void,
    i32,
    *const c_char,
    *const c_char,
    *const c_char,
    i32,
    *mut c_void,
) -> c_int;
/// Is given an argument of a call in a record, as [`CallbackArgumentVisitor`]; no pointer is followed.
pub type BufferArgumentVisitor = unsafe extern "C" fn(
    BufferTracingKind,
    TracingOperation,
    u32,
    *const c_void,
    i32,
    *const c_char,
    *const c_char,
    *const c_char,
    *mut c_void,
) -> c_int;
/// Is given all agents, in the version that was requested.
pub type AgentsCallback =
    unsafe extern "C" fn(AgentVersion, *const *const c_void, usize, *mut c_void) -> Status;
/// Requests the external id of a call or of work: the thread, the context, the kind, the operation, the internal id, a place for
/// the external one, the tool's data. An answer other than 0 leaves the id of the stack.
pub type ExternalCorrelationRequest = unsafe extern "C" fn(
    ThreadId,
    ContextId,
    ExternalCorrelationRequestKind,
    TracingOperation,
    u64,
    *mut UserData,
    *mut c_void,
) -> c_int;
/// Is told before or after a runtime makes a thread.
pub type ThreadCallback = unsafe extern "C" fn(RuntimeLibrary, *mut c_void);
/// Is given the tables of a runtime: the table, its version, how many were there before, the tables, their number.
pub type InterceptCallback =
    unsafe extern "C" fn(InterceptTable, u64, u64, *mut *mut c_void, u64, *mut c_void);
/// Is given the counters of an agent.
pub type CountersCallback =
    unsafe extern "C" fn(AgentId, *mut CounterId, usize, *mut c_void) -> Status;
/// Is given the dimensions of a counter.
pub type CounterDimensionsCallback = unsafe extern "C" fn(
    CounterId,
    *const CounterRecordDimensionInfo,
    usize,
    *mut c_void,
) -> Status;
/// Chooses what is counted of a dispatch.
pub type DispatchCountingCallback =
    unsafe extern "C" fn(DispatchCountingData, *mut CounterConfigId, *mut UserData, *mut c_void);
/// Is given the values of a dispatch.
pub type DispatchCountingRecordCallback =
    unsafe extern "C" fn(DispatchCountingData, *mut CounterRecord, usize, UserData, *mut c_void);
/// Sets what an agent counts.
pub type DeviceCountingSetter = unsafe extern "C" fn(ContextId, CounterConfigId) -> Status;
/// Chooses what an agent counts.
pub type DeviceCountingCallback =
    unsafe extern "C" fn(ContextId, AgentId, Option<DeviceCountingSetter>, *mut c_void);
/// Is given the ways in which an agent can sample.
pub type SamplingConfigurationsCallback =
    unsafe extern "C" fn(*const PcSamplingConfiguration, usize, *mut c_void) -> Status;

/// The functions of the library: for a client, which finds them by their symbols.
macro_rules! functions {
    ($($(#[$what:meta])* $name:ident($($type:ty),*) -> $answer:ty;)*) => {
        /// The functions that a library has. Those that are missing are none.
        #[derive(Copy, Clone, Debug, Default)]
        pub struct Functions {
            $($(#[$what])* pub $name: Option<unsafe extern "C" fn($($type),*) -> $answer>,)*
        }

        impl Functions {
            /// The symbols of all functions.
            pub const SYMBOLS: &[&CStr] =
                &[$(symbol(concat!("rocprofiler_", stringify!($name), "\0")),)*];

            /// The functions of a library. `find` has the address of a symbol, null if there is none.
            ///
            /// # Safety
            ///
            /// A symbol that `find` has is the function of rocprofiler-sdk with this name, for as long as it is called.
            pub unsafe fn find(mut find: impl FnMut(&CStr) -> *mut c_void) -> Functions {
                Functions {
                    $($name: {
                        let found = find(symbol(concat!("rocprofiler_", stringify!($name), "\0")));
                        // SAFETY: the function with this name has this type; null is none.
                        unsafe {
                            core::mem::transmute::<
                                *mut c_void,
                                Option<unsafe extern "C" fn($($type),*) -> $answer>,
                            >(found)
                        }
                    },)*
                }
            }
        }
    };
}

const fn symbol(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(symbol) => symbol,
        Err(_) => panic!("a symbol ends with a 0, and has none within"),
    }
}

functions! {
    /// Has a tool configured now: the way in for a process that already runs.
    force_configure(Option<Configure>) -> Status;
    /// 0: not initialised; 1: it is; -1: it is being initialised.
    is_initialized(*mut c_int) -> Status;
    /// 0: not finalised; 1: it is; -1: it is being finalised.
    is_finalized(*mut c_int) -> Status;
    /// Major, minor and patch; each place may be null.
    get_version(*mut u32, *mut u32, *mut u32) -> Status;
    /// The version in one structure.
    get_version_triplet(*mut VersionTriplet) -> Status;
    /// Now.
    get_timestamp(*mut Timestamp) -> Status;
    /// The calling thread.
    get_thread_id(*mut ThreadId) -> Status;
    /// The name of a status, null if it is none.
    get_status_name(Status) -> *const c_char;
    /// A sentence about a status, null if it is none.
    get_status_string(Status) -> *const c_char;

    /// Makes a context.
    create_context(*mut ContextId) -> Status;
    /// Starts the services of a context.
    start_context(ContextId) -> Status;
    /// Stops them.
    stop_context(ContextId) -> Status;
    /// Whether a context is started.
    context_is_active(ContextId, *mut c_int) -> Status;
    /// Whether a context can be started.
    context_is_valid(ContextId, *mut c_int) -> Status;

    /// Makes a buffer: its context, bytes, watermark in bytes, policy, callback, the tool's data, a place for its id.
    create_buffer(ContextId, usize, usize, BufferPolicy, Option<BufferCallback>, *mut c_void, *mut BufferId) -> Status;
    /// Destroys a buffer.
    destroy_buffer(BufferId) -> Status;
    /// Delivers what a buffer has.
    flush_buffer(BufferId) -> Status;
    /// Makes a thread for callbacks of buffers.
    create_callback_thread(*mut CallbackThread) -> Status;
    /// Has a buffer's callback called on a thread.
    assign_callback_thread(BufferId, CallbackThread) -> Status;
    /// Is told of the threads that runtimes make.
    at_internal_thread_create(Option<ThreadCallback>, Option<ThreadCallback>, c_int, *mut c_void) -> Status;
    /// Is given the tables of functions that runtimes register.
    at_intercept_table_registration(Option<InterceptCallback>, c_int, *mut c_void) -> Status;
    /// The name of a table.
    query_intercept_table_name(InterceptTable, *mut *const c_char, *mut u64) -> Status;

    /// Has records written: the context, the kind, its operations (all of them if there are none), the buffer.
    configure_buffer_tracing_service(ContextId, BufferTracingKind, *const TracingOperation, usize, BufferId) -> Status;
    /// The name of a kind.
    query_buffer_tracing_kind_name(BufferTracingKind, *mut *const c_char, *mut u64) -> Status;
    /// The name of an operation.
    query_buffer_tracing_kind_operation_name(BufferTracingKind, TracingOperation, *mut *const c_char, *mut u64) -> Status;
    /// Visits all kinds.
    iterate_buffer_tracing_kinds(Option<BufferKindVisitor>, *mut c_void) -> Status;
    /// Visits the operations of a kind.
    iterate_buffer_tracing_kind_operations(BufferTracingKind, Option<BufferOperationVisitor>, *mut c_void) -> Status;
    /// Visits the arguments of a call in a record.
    iterate_buffer_tracing_record_args(RecordHeader, Option<BufferArgumentVisitor>, *mut c_void) -> Status;

    /// Has a callback called: the context, the kind, its operations (all of them if there are none), the callback, its data.
    configure_callback_tracing_service(ContextId, CallbackTracingKind, *const TracingOperation, usize, Option<TracingCallback>, *mut c_void) -> Status;
    /// The name of a kind.
    query_callback_tracing_kind_name(CallbackTracingKind, *mut *const c_char, *mut u64) -> Status;
    /// The name of an operation.
    query_callback_tracing_kind_operation_name(CallbackTracingKind, TracingOperation, *mut *const c_char, *mut u64) -> Status;
    /// Visits all kinds.
    iterate_callback_tracing_kinds(Option<CallbackKindVisitor>, *mut c_void) -> Status;
    /// Visits the operations of a kind.
    iterate_callback_tracing_kind_operations(CallbackTracingKind, Option<CallbackOperationVisitor>, *mut c_void) -> Status;
    /// Visits the arguments of a call, and follows this many pointers.
    iterate_callback_tracing_kind_operation_args(CallbackTracingRecord, Option<CallbackArgumentVisitor>, i32, *mut c_void) -> Status;

    /// Puts an external id on the stack of a thread.
    push_external_correlation_id(ContextId, ThreadId, UserData) -> Status;
    /// Takes one from it.
    pop_external_correlation_id(ContextId, ThreadId, *mut UserData) -> Status;
    /// Has the tool asked for external ids.
    configure_external_correlation_id_request_service(ContextId, *const ExternalCorrelationRequestKind, usize, Option<ExternalCorrelationRequest>, *mut c_void) -> Status;
    /// The name of a kind of request.
    query_external_correlation_id_request_kind_name(ExternalCorrelationRequestKind, *mut *const c_char, *mut u64) -> Status;

    /// Gives all agents to a callback: the version, the callback, the bytes of the tool's structure, the tool's data.
    query_available_agents(AgentVersion, Option<AgentsCallback>, usize, *mut c_void) -> Status;

    /// Gives the counters of an agent to a callback.
    iterate_agent_supported_counters(AgentId, Option<CountersCallback>, *mut c_void) -> Status;
    /// Describes a counter.
    query_counter_info(CounterId, CounterInfoVersion, *mut c_void) -> Status;
    /// The dimensions of a counter; replaced by version 1 of its description.
    iterate_counter_dimensions(CounterId, Option<CounterDimensionsCallback>, *mut c_void) -> Status;
    /// The number of instances of a counter on an agent; replaced by version 1 of its description.
    query_counter_instance_count(AgentId, CounterId, *mut usize) -> Status;
    /// The counter of a value.
    query_record_counter_id(CounterInstanceId, *mut CounterId) -> Status;
    /// The position of a value in a dimension.
    query_record_dimension_position(CounterInstanceId, CounterDimensionId, *mut usize) -> Status;
    /// Defines a counter: its name, expression and description, each with its length, the agent, a place for its id.
    create_counter(*const c_char, usize, *const c_char, usize, *const c_char, usize, AgentId, *mut CounterId) -> Status;
    /// Makes a set of counters. If the place has a set, its counters are in the new one, too.
    create_counter_config(AgentId, *mut CounterId, usize, *mut CounterConfigId) -> Status;
    /// Destroys a set.
    destroy_counter_config(CounterConfigId) -> Status;
    /// `create_counter_config` before version 1.0.
    create_profile_config(AgentId, *mut CounterId, usize, *mut CounterConfigId) -> Status;
    /// `destroy_counter_config` before version 1.0.
    destroy_profile_config(CounterConfigId) -> Status;
    /// Counts dispatches into a buffer.
    configure_buffer_dispatch_counting_service(ContextId, BufferId, Option<DispatchCountingCallback>, *mut c_void) -> Status;
    /// Counts dispatches for a callback.
    configure_callback_dispatch_counting_service(ContextId, Option<DispatchCountingCallback>, *mut c_void, Option<DispatchCountingRecordCallback>, *mut c_void) -> Status;
    /// Counts what an agent does.
    configure_device_counting_service(ContextId, BufferId, AgentId, Option<DeviceCountingCallback>, *mut c_void) -> Status;
    /// Reads what agents have counted: the context, a word for the records, a flag, a place for records, and for their number.
    sample_device_counting_service(ContextId, UserData, CounterFlag, *mut CounterRecord, *mut usize) -> Status;

    /// Gives the ways in which an agent can sample to a callback.
    query_pc_sampling_agent_configurations(AgentId, Option<SamplingConfigurationsCallback>, *mut c_void) -> Status;
    /// Has an agent sample: the context, the agent, the method, the unit, the interval, the buffer, flags (0).
    configure_pc_sampling_service(ContextId, AgentId, PcSamplingMethod, PcSamplingUnit, u64, BufferId, c_int) -> Status;
    /// The name of an instruction type, null if it is none.
    get_pc_sampling_instruction_type_name(PcSamplingInstructionType) -> *const c_char;
    /// The name of a reason, null if it is none.
    get_pc_sampling_instruction_not_issued_reason_name(PcSamplingInstructionNotIssuedReason) -> *const c_char;
}
