//! The functions of the library that is in the process, found by name: a tool in Rust has a copy of this crate of its
//! own, whose objects are not those that the layer writes to.

use super::Error;
use crate::capi::*;
use crate::record::*;
use core::ffi::{c_char, c_void};
use std::sync::OnceLock;

macro_rules! functions {
    ($($field:ident = $function:ident: $type:ty, $name:literal;)*) => {
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
                        // SAFETY: a library that is open, and a name.
                        let function = unsafe { libc::dlsym(library, $name.as_ptr()) };
                        if function.is_null() {
                            return None;
                        }
                        // SAFETY: the library's function of this name has this type, in all versions with it.
                        unsafe { core::mem::transmute::<*mut c_void, $type>(function) }
                    },)*
                })
            }
        }
    };
}

type Text<I> = unsafe extern "C" fn(I, *mut c_char, usize, *mut usize) -> Status;

functions! {
    last_error = gputrail_last_error: unsafe extern "C" fn(*mut c_char, usize) -> Status, c"gputrail_last_error";
    now = gputrail_now: extern "C" fn() -> Ticks, c"gputrail_now";
    ticks_per_second = gputrail_ticks_per_second: extern "C" fn() -> u64, c"gputrail_ticks_per_second";
    ticks_to_nanos = gputrail_ticks_to_nanos: unsafe extern "C" fn(Ticks, *mut Nanos) -> Status, c"gputrail_ticks_to_nanos";
    string = gputrail_string: Text<StringId>, c"gputrail_string";
    kernel_name = gputrail_kernel_name: Text<KernelId>, c"gputrail_kernel_name";
    agent_name = gputrail_agent_name: Text<AgentId>, c"gputrail_agent_name";
    operation_name = gputrail_operation_name: extern "C" fn(Operation) -> *const c_char, c"gputrail_operation_name";
    operation_by_name = gputrail_operation_by_name: unsafe extern "C" fn(Domain, *const c_char, *mut Operation) -> Status, c"gputrail_operation_by_name";
    context_create = gputrail_context_create: unsafe extern "C" fn(*mut ContextHandle) -> Status, c"gputrail_context_create";
    context_destroy = gputrail_context_destroy: extern "C" fn(ContextHandle) -> Status, c"gputrail_context_destroy";
    context_start = gputrail_context_start: extern "C" fn(ContextHandle) -> Status, c"gputrail_context_start";
    context_stop = gputrail_context_stop: extern "C" fn(ContextHandle) -> Status, c"gputrail_context_stop";
    trace_to = gputrail_context_trace_to: unsafe extern "C" fn(ContextHandle, BufferHandle, *const SelectionOptions) -> Status, c"gputrail_context_trace_to";
    buffer_create = gputrail_buffer_create: unsafe extern "C" fn(*const BufferSettings, BatchCallback, *mut c_void, *mut BufferHandle) -> Status, c"gputrail_buffer_create";
    buffer_destroy = gputrail_buffer_destroy: extern "C" fn(BufferHandle) -> Status, c"gputrail_buffer_destroy";
    buffer_flush = gputrail_buffer_flush: extern "C" fn(BufferHandle) -> Status, c"gputrail_buffer_flush";
    buffer_flush_forced = gputrail_buffer_flush_forced: extern "C" fn(BufferHandle) -> Status, c"gputrail_buffer_flush_forced";
    external_supply = gputrail_external_supply: unsafe extern "C" fn(ContextHandle, *const Operation, usize, SupplyFunction, *mut c_void, *mut SubscriberHandle) -> Status, c"gputrail_external_supply";
    recording_dump = gputrail_recording_dump: extern "C" fn() -> Status, c"gputrail_recording_dump";
    buffer_dropped = gputrail_buffer_dropped_in_total: unsafe extern "C" fn(BufferHandle, *mut DropCounts) -> Status, c"gputrail_buffer_dropped_in_total";
    subscribe = gputrail_subscribe: unsafe extern "C" fn(ContextHandle, *const Operation, usize, CallbackFunction, *mut c_void, *mut SubscriberHandle) -> Status, c"gputrail_subscribe";
    unsubscribe = gputrail_unsubscribe: extern "C" fn(SubscriberHandle) -> Status, c"gputrail_unsubscribe";
    timeline_create = gputrail_timeline_create: unsafe extern "C" fn(*mut TimelineHandle) -> Status, c"gputrail_timeline_create";
    timeline_add = gputrail_timeline_add: unsafe extern "C" fn(TimelineHandle, *const Batch, WorkFunction, *mut c_void) -> Status, c"gputrail_timeline_add";
    timeline_destroy = gputrail_timeline_destroy: unsafe extern "C" fn(TimelineHandle, WorkFunction, *mut c_void) -> Status, c"gputrail_timeline_destroy";
    flight_start = gputrail_flight_start: unsafe extern "C" fn(*const FlightSettings, *mut FlightHandle) -> Status, c"gputrail_flight_start";
    flight_dump = gputrail_flight_dump: unsafe extern "C" fn(FlightHandle, *const c_char, *mut u64) -> Status, c"gputrail_flight_dump";
    flight_triggered = gputrail_flight_triggered: unsafe extern "C" fn(FlightHandle, *mut usize) -> Status, c"gputrail_flight_triggered";
    flight_stop = gputrail_flight_stop: extern "C" fn(FlightHandle) -> Status, c"gputrail_flight_stop";
    tool_finish = gputrail_tool_finish: extern "C" fn(ToolHandle) -> Status, c"gputrail_tool_finish";
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

/// The text that `ask` copies for `id`.
pub fn text<I: Copy>(ask: fn(&Functions) -> Text<I>, id: I) -> Option<String> {
    let ask = ask(functions().ok()?);
    let mut bytes = vec![0u8; 256];
    loop {
        let mut length = 0;
        // SAFETY: room for that many bytes, and a place for the length.
        let status = unsafe { ask(id, bytes.as_mut_ptr().cast(), bytes.len(), &mut length) };
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
