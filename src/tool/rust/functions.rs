//! The functions of the library that is in the process, found by name: a tool in Rust has a copy of this crate of its
//! own, whose objects are not those that the layer writes to.

use super::Error;
use crate::record::*;
use crate::tool::c::*;
use core::ffi::{c_char, c_void};
use std::ffi::CString;
use std::sync::OnceLock;

macro_rules! functions {
    ($($field:ident = $function:ident: $type:ty;)*) => {
        /// See the module.
        pub struct Functions {
            $(pub $field: $type,)*
        }

        // What is found by name has the type of what is declared here.
        $(const _: $type = $function;)*

        impl Functions {
            fn find() -> Option<Functions> {
                // SAFETY: asks for a library that is there already, and is never unloaded.
                let library = unsafe { libc::dlopen(c"libgputrail.so.0".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
                if library.is_null() {
                    return None;
                }
                Some(Functions {
                    $($field: {
                        let name = concat!(stringify!($function), "\0");
                        // SAFETY: a library that is open, and a name that ends with a 0.
                        let function = unsafe { libc::dlsym(library, name.as_ptr().cast()) };
                        if function.is_null() {
                            return None;
                        }
                        // SAFETY: the library's function of this name has this type, in all versions with it.
                        unsafe { core::mem::transmute::<*mut c_void, $type>(function) }
                    },)*
                })
            }

            /// The names of all of them.
            #[cfg(test)]
            pub const NAMES: &[&str] = &[$(stringify!($function)),*];
        }
    };
}

type Text<I> = unsafe extern "C" fn(I, *mut c_char, usize, *mut usize) -> Status;
type List<T> = unsafe extern "C" fn(*mut T, usize, *mut usize) -> Status;
type Ask<I, T> = unsafe extern "C" fn(I, *mut T) -> Status;
type Make<T> = unsafe extern "C" fn(*mut T) -> Status;
type Act<T> = extern "C" fn(T) -> Status;
type Do = extern "C" fn() -> Status;

functions! {
    last_error = gputrail_last_error: unsafe extern "C" fn(*mut c_char, usize) -> Status;
    version = gputrail_version: extern "C" fn() -> *const c_char;
    thread = gputrail_thread: extern "C" fn() -> ThreadId;
    attributes_get = gputrail_attributes_get: Make<AttributeValues>;
    attributes_set = gputrail_attributes_set: unsafe extern "C" fn(*const AttributeValues) -> Status;
    limits_get = gputrail_limits_get: Make<LimitValues>;

    now = gputrail_now: extern "C" fn() -> Ticks;
    ticks_per_second = gputrail_ticks_per_second: extern "C" fn() -> u64;
    ticks_to_nanos = gputrail_ticks_to_nanos: Ask<Ticks, Nanos>;
    device_time_to_nanos = gputrail_device_time_to_nanos: unsafe extern "C" fn(AgentId, DeviceTime, *mut Nanos) -> Status;
    clock_error = gputrail_clock_error: Ask<AgentId, Nanos>;

    string = gputrail_string: Text<StringId>;
    kernel_name = gputrail_kernel_name: Text<KernelId>;
    agent_name = gputrail_agent_name: Text<AgentId>;
    describe_agent = gputrail_describe_agent: Ask<AgentId, Agent>;
    describe_context = gputrail_describe_context: Ask<ContextId, crate::record::Context>;
    describe_queue = gputrail_describe_queue: Ask<QueueId, Queue>;
    describe_module = gputrail_describe_module: Ask<ModuleId, Module>;
    describe_kernel = gputrail_describe_kernel: Ask<KernelId, KernelSymbol>;
    describe_code_object = gputrail_describe_code_object: Ask<CodeObjectId, CodeObject>;
    describe_thread = gputrail_describe_thread: Ask<ThreadId, Thread>;
    agents = gputrail_agents: List<AgentId>;
    agent_of = gputrail_agent_of: Ask<u64, AgentId>;
    context_of = gputrail_context_of: Ask<u64, ContextId>;
    queue_of = gputrail_queue_of: Ask<u64, QueueId>;
    operations = gputrail_operations: unsafe extern "C" fn(Domain, *mut Operation, usize, *mut usize) -> Status;
    operation_name = gputrail_operation_name: extern "C" fn(Operation) -> *const c_char;
    operation_by_name = gputrail_operation_by_name: unsafe extern "C" fn(Domain, *const c_char, *mut Operation) -> Status;

    context_create = gputrail_context_create: Make<ContextHandle>;
    context_destroy = gputrail_context_destroy: Act<ContextHandle>;
    context_start = gputrail_context_start: Act<ContextHandle>;
    context_stop = gputrail_context_stop: Act<ContextHandle>;
    context_is_active = gputrail_context_is_active: Ask<ContextHandle, i32>;
    trace_to = gputrail_context_trace_to: unsafe extern "C" fn(ContextHandle, BufferHandle, *const SelectionOptions) -> Status;
    enable_kind = gputrail_context_enable_kind: extern "C" fn(ContextHandle, BufferHandle, Kind, i32) -> Status;
    enable_kind_in = gputrail_context_enable_kind_in: extern "C" fn(ContextHandle, BufferHandle, ContextId, Kind, i32) -> Status;
    enable_operation = gputrail_context_enable_operation: extern "C" fn(ContextHandle, BufferHandle, Operation, i32) -> Status;

    buffer_create = gputrail_buffer_create: unsafe extern "C" fn(*const BufferSettings, BatchCallback, *mut c_void, *mut BufferHandle) -> Status;
    buffer_create_of_client = gputrail_buffer_create_of_client: unsafe extern "C" fn(*const BufferSettings, RequestFunction, BatchCallback, CompleteFunction, *mut c_void, *mut BufferHandle) -> Status;
    buffer_file_bytes = gputrail_buffer_file_bytes: unsafe extern "C" fn(*const BufferSettings, *mut u64) -> Status;
    buffer_create_in_file = gputrail_buffer_create_in_file: unsafe extern "C" fn(i32, *const BufferSettings, BatchCallback, *mut c_void, *mut BufferHandle) -> Status;
    recover = gputrail_recover: unsafe extern "C" fn(i32, BatchCallback, *mut c_void) -> Status;
    buffer_destroy = gputrail_buffer_destroy: Act<BufferHandle>;
    buffer_flush = gputrail_buffer_flush: Act<BufferHandle>;
    buffer_flush_forced = gputrail_buffer_flush_forced: Act<BufferHandle>;
    buffer_dropped = gputrail_buffer_dropped: Ask<BufferHandle, DropCounts>;
    buffer_dropped_in_total = gputrail_buffer_dropped_in_total: Ask<BufferHandle, DropCounts>;
    buffer_assign = gputrail_buffer_assign: extern "C" fn(BufferHandle, ThreadHandle) -> Status;
    callback_thread_create = gputrail_callback_thread_create: Make<ThreadHandle>;
    callback_thread_destroy = gputrail_callback_thread_destroy: Act<ThreadHandle>;
    thread_watch = gputrail_thread_watch: unsafe extern "C" fn(ThreadFunction, *mut c_void, *mut WatchHandle) -> Status;
    thread_unwatch = gputrail_thread_unwatch: Act<WatchHandle>;

    subscribe = gputrail_subscribe: unsafe extern "C" fn(ContextHandle, *const Operation, usize, CallbackFunction, *mut c_void, *mut SubscriberHandle) -> Status;
    unsubscribe = gputrail_unsubscribe: Act<SubscriberHandle>;
    enable_callback = gputrail_enable_callback: extern "C" fn(SubscriberHandle, Operation, i32) -> Status;
    enable_domain = gputrail_enable_domain: extern "C" fn(SubscriberHandle, Domain, i32) -> Status;
    enable_all_callbacks = gputrail_enable_all_callbacks: extern "C" fn(SubscriberHandle, i32) -> Status;
    callback_is_enabled = gputrail_callback_is_enabled: unsafe extern "C" fn(SubscriberHandle, Operation, *mut i32) -> Status;
    enabled_callbacks = gputrail_enabled_callbacks: unsafe extern "C" fn(SubscriberHandle, *mut Operation, usize, *mut usize) -> Status;
    callback_argument = gputrail_callback_argument: unsafe extern "C" fn(*const CallbackData, u32, *mut Argument) -> Status;
    callback_argument_text = gputrail_callback_argument_text: unsafe extern "C" fn(*const CallbackData, u32, u32, *mut c_char, usize, *mut usize) -> Status;
    record_argument = gputrail_record_argument: unsafe extern "C" fn(*const Header, u32, *mut Argument) -> Status;
    operation_argument = gputrail_operation_argument: unsafe extern "C" fn(Operation, u32, *mut Argument) -> Status;

    external_register_kind = gputrail_external_register_kind: unsafe extern "C" fn(*const c_char, *mut ExternalKind) -> Status;
    external_kind_name = gputrail_external_kind_name: Text<ExternalKind>;
    external_current = gputrail_external_current: extern "C" fn() -> ExternalId;
    external_push = gputrail_external_push: extern "C" fn(ExternalKind, ExternalId) -> Status;
    external_pop = gputrail_external_pop: Ask<ExternalKind, ExternalId>;
    external_name = gputrail_external_name: unsafe extern "C" fn(ExternalKind, ExternalId, *const c_char) -> Status;
    external_supply = gputrail_external_supply: unsafe extern "C" fn(ContextHandle, *const Operation, usize, SupplyFunction, *mut c_void, *mut SubscriberHandle) -> Status;

    mark = gputrail_mark: unsafe extern "C" fn(*const MarkOptions) -> Status;
    range_push = gputrail_range_push: unsafe extern "C" fn(*const MarkOptions) -> Status;
    range_pop = gputrail_range_pop: Do;
    range_start = gputrail_range_start: unsafe extern "C" fn(*const MarkOptions, *mut u64) -> Status;
    range_end = gputrail_range_end: Act<u64>;
    name_thread = gputrail_name_thread: unsafe extern "C" fn(*const c_char) -> Status;
    name_queue = gputrail_name_queue: unsafe extern "C" fn(*const c_void, *const c_char, *mut QueueId) -> Status;
    name_agent = gputrail_name_agent: unsafe extern "C" fn(AgentId, *const c_char) -> Status;
    recording_start = gputrail_recording_start: Do;
    recording_stop = gputrail_recording_stop: Do;
    recording_flush = gputrail_recording_flush: Do;
    recording_dump = gputrail_recording_dump: Do;

    sampling_agents = gputrail_sampling_agents: List<AgentId>;
    sampling_configurations = gputrail_sampling_configurations: unsafe extern "C" fn(AgentId, *mut SamplingConfiguration, usize, *mut usize) -> Status;
    context_sample = gputrail_context_sample: unsafe extern "C" fn(ContextHandle, BufferHandle, AgentId, *const SamplingOptions) -> Status;
    context_sample_every = gputrail_context_sample_every: unsafe extern "C" fn(ContextHandle, BufferHandle, AgentId, *const SamplingPeriodOptions, *mut u64) -> Status;
    context_collects_counters = gputrail_context_collects_counters: Act<ContextHandle>;

    timeline_create = gputrail_timeline_create: Make<TimelineHandle>;
    timeline_add = gputrail_timeline_add: unsafe extern "C" fn(TimelineHandle, *const Batch, WorkFunction, *mut c_void) -> Status;
    timeline_destroy = gputrail_timeline_destroy: unsafe extern "C" fn(TimelineHandle, WorkFunction, *mut c_void) -> Status;
    flight_start = gputrail_flight_start: unsafe extern "C" fn(*const FlightSettings, *mut FlightHandle) -> Status;
    flight_dump = gputrail_flight_dump: unsafe extern "C" fn(FlightHandle, *const c_char, *mut u64) -> Status;
    flight_triggered = gputrail_flight_triggered: Ask<FlightHandle, usize>;
    flight_path = gputrail_flight_path: unsafe extern "C" fn(FlightHandle, usize, *mut c_char, usize, *mut usize) -> Status;
    flight_stop = gputrail_flight_stop: Act<FlightHandle>;
    tool_finish = gputrail_tool_finish: Act<ToolHandle>;
}

/// Those of the library in this process.
pub fn functions() -> Result<&'static Functions, Error> {
    static FUNCTIONS: OnceLock<Option<Functions>> = OnceLock::new();
    FUNCTIONS.get_or_init(Functions::find).as_ref().ok_or_else(|| Error {
        status: Status::NOT_AVAILABLE,
        text: "there is no libgputrail.so.0 of this version in the process: tools are loaded by gputrail".into(),
    })
}

/// What a call's status says.
pub fn check(status: Status) -> Result<(), Error> {
    if status == Status::OK {
        return Ok(());
    }
    let mut text = [0u8; 512];
    if let Ok(functions) = functions() {
        // SAFETY: room for that many bytes.
        unsafe { (functions.last_error)(text.as_mut_ptr().cast(), text.len()) };
    }
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(0);
    Err(Error {
        status,
        text: String::from_utf8_lossy(&text[..end]).into_owned(),
    })
}

/// What `ask` answers by a place that it is given.
pub fn answer<T: Default>(ask: impl FnOnce(&Functions, *mut T) -> Status) -> Result<T, Error> {
    let mut place = T::default();
    check(ask(functions()?, &mut place))?;
    Ok(place)
}

/// The text that `ask` copies to so many bytes, telling how many there are.
pub fn text(
    mut ask: impl FnMut(&Functions, *mut c_char, usize, *mut usize) -> Status,
) -> Option<String> {
    let functions = functions().ok()?;
    let mut bytes = vec![0u8; 256];
    loop {
        let mut length = 0;
        let status = ask(
            functions,
            bytes.as_mut_ptr().cast(),
            bytes.len(),
            &mut length,
        );
        match status {
            Status::OK => {
                bytes.truncate(length);
                return String::from_utf8(bytes).ok();
            }
            Status::TOO_SMALL if length >= bytes.len() => bytes.resize(length + 1, 0),
            _ => return None,
        }
    }
}

/// What `ask` lists in room for so many, telling how many there are.
pub fn list<T: Copy + Default>(
    mut ask: impl FnMut(&Functions, *mut T, usize, *mut usize) -> Status,
) -> Result<Vec<T>, Error> {
    let functions = functions()?;
    let mut all = vec![T::default(); 64];
    loop {
        let mut count = 0;
        let status = ask(functions, all.as_mut_ptr(), all.len(), &mut count);
        if status == Status::TOO_SMALL && count > all.len() {
            all.resize(count, T::default());
            continue;
        }
        check(status)?;
        all.truncate(count);
        return Ok(all);
    }
}

/// A text of the tool's, for C.
pub fn c_string(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error {
        status: Status::INVALID_ARGUMENT,
        text: format!("{text:?} has a 0 in it"),
    })
}

#[cfg(test)]
mod tests {
    use super::Functions;

    /// What has no place in a tool in Rust: what programs call, what gputrail itself calls, and what the records' types
    /// say.
    const NOT_FOR_TOOLS: [&str; 28] = [
        "gputrail_initialise",
        "gputrail_finalise",
        "gputrail_is_initialised",
        "gputrail_observe_opencl",
        "gputrail_tool_probe",
        "gputrail_tool_configure",
        "gputrail_api_version",
        "gputrail_process",
        "gputrail_status_name",
        "gputrail_status_message",
        "gputrail_kind_name",
        "gputrail_kind_by_name",
        "gputrail_kinds",
        "gputrail_domain_name",
        "gputrail_domain_by_name",
        "gputrail_domains",
        "gputrail_group_of_operation",
        "gputrail_batch_next",
        "gputrail_context_is_valid",
        "gputrail_range_push_name",
        "gputrail_instruction_type_name",
        "gputrail_instruction_type_by_name",
        "gputrail_not_issued_name",
        "gputrail_not_issued_by_name",
        "gputrail_stall_reason_name",
        "gputrail_stall_reason_by_name",
        "gputrail_stall_reason_of",
        "gputrail_not_issued_of",
    ];

    #[test]
    fn all_that_tools_in_c_can_call_tools_in_rust_can_do() {
        let header = include_str!("../../../include/gputrail.h");
        let declared: Vec<&str> = header
            .lines()
            .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
            .filter(|line| !line.starts_with("typedef"))
            .filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next())
            .filter(|name| name.starts_with("gputrail_"))
            .collect();
        let is_there =
            |name: &&str| Functions::NAMES.contains(name) || NOT_FOR_TOOLS.contains(name);
        let missing: Vec<&str> = declared
            .iter()
            .copied()
            .filter(|name| !is_there(name))
            .collect();
        assert_eq!(missing, [""; 0]);
        assert_eq!(declared.len(), Functions::NAMES.len() + NOT_FOR_TOOLS.len());
    }
}
