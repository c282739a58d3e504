//! What ids and times in records stand for.

use super::Error;
use super::functions::{Functions, answer, check, functions, list, text};
use crate::record::*;
use crate::tool::c::Status;
use core::ffi::CStr;

/// The time now, in the clock of host times in records.
pub fn now() -> Ticks {
    functions().map_or(Ticks::NONE, |functions| (functions.now)())
}

/// How many ticks a second has; 0 outside of a program that gputrail observes.
pub fn ticks_per_second() -> u64 {
    functions().map_or(0, |functions| (functions.ticks_per_second)())
}

/// Host time on CLOCK_BOOTTIME.
///
/// # Errors
///
/// `NOT_INITIALISED` after the tool's end.
pub fn to_nanos(ticks: Ticks) -> Result<Nanos, Error> {
    // SAFETY: a place for the answer.
    answer(|functions, nanos| unsafe { (functions.ticks_to_nanos)(ticks, nanos) })
}

/// Time of an agent's clock on CLOCK_BOOTTIME.
///
/// # Errors
///
/// `CLOCK_UNKNOWN` before the agent's first work has completed; `NOT_INITIALISED` after the tool's end.
pub fn device_time_to_nanos(agent: AgentId, time: DeviceTime) -> Result<Nanos, Error> {
    // SAFETY: a place for the answer.
    answer(|functions, nanos| unsafe { (functions.device_time_to_nanos)(agent, time, nanos) })
}

/// How far the times that [`device_time_to_nanos`] tells of an agent may be off; of no agent, those of the host.
///
/// # Errors
///
/// As for [`device_time_to_nanos`].
pub fn clock_error(agent: AgentId) -> Result<Nanos, Error> {
    // SAFETY: a place for the answer.
    answer(|functions, nanos| unsafe { (functions.clock_error)(agent, nanos) })
}

/// The version of the library in the process, which may be another than that of this crate.
pub fn version() -> Option<&'static str> {
    let version = (functions().ok()?.version)();
    // SAFETY: it ends with a 0 and lasts for ever.
    unsafe { CStr::from_ptr(version) }.to_str().ok()
}

/// What records call the calling thread.
pub fn thread() -> ThreadId {
    functions().map_or(ThreadId::NONE, |functions| (functions.thread)())
}

/// The text of a string id.
pub fn string(id: StringId) -> Option<String> {
    text(|functions, to, room, length| {
        // SAFETY: room for that many bytes, and a place for the length.
        unsafe { (functions.string)(id, to, room, length) }
    })
}

/// The name of a kernel.
pub fn kernel_name(id: KernelId) -> Option<String> {
    text(|functions, to, room, length| {
        // SAFETY: room for that many bytes, and a place for the length.
        unsafe { (functions.kernel_name)(id, to, room, length) }
    })
}

/// The name of an agent.
pub fn agent_name(id: AgentId) -> Option<String> {
    text(|functions, to, room, length| {
        // SAFETY: room for that many bytes, and a place for the length.
        unsafe { (functions.agent_name)(id, to, room, length) }
    })
}

/// The name of an operation.
pub fn operation_name(operation: Operation) -> Option<&'static str> {
    let name = (functions().ok()?.operation_name)(operation);
    // SAFETY: not null, and then it ends with a 0 and lasts for ever.
    (!name.is_null())
        .then(|| unsafe { CStr::from_ptr(name) })?
        .to_str()
        .ok()
}

/// The operation of a domain that has this name.
pub fn operation(domain: Domain, name: &CStr) -> Option<Operation> {
    answer(|functions, operation| {
        // SAFETY: a text that ends with a 0, and a place for the answer.
        unsafe { (functions.operation_by_name)(domain, name.as_ptr(), operation) }
    })
    .ok()
}

/// The operations of a domain; none if the library does not observe it.
///
/// # Errors
///
/// `NOT_AVAILABLE` outside of a program that gputrail observes.
pub fn operations(domain: Domain) -> Result<Vec<Operation>, Error> {
    list(|functions, to, room, count| {
        // SAFETY: room for so many, and a place for the number.
        unsafe { (functions.operations)(domain, to, room, count) }
    })
}

/// Something that the library can describe: see [`describe`].
pub trait Described: Record {
    /// What names one.
    type Id: Copy;
    #[doc(hidden)]
    fn ask(functions: &Functions) -> unsafe extern "C" fn(Self::Id, *mut Self) -> Status;
}

macro_rules! described {
    ($($record:ty, $id:ty, $function:ident;)*) => {
        $(impl Described for $record {
            type Id = $id;
            fn ask(functions: &Functions) -> unsafe extern "C" fn($id, *mut $record) -> Status {
                functions.$function
            }
        })*
    };
}

described! {
    Agent, AgentId, describe_agent;
    Context, ContextId, describe_context;
    Queue, QueueId, describe_queue;
    Module, ModuleId, describe_module;
    KernelSymbol, KernelId, describe_kernel;
    CodeObject, CodeObjectId, describe_code_object;
    Thread, ThreadId, describe_thread;
}

/// What is known of an agent, a context, a queue, a module, a kernel, a code object or a thread: `describe::<Agent>(id)`.
///
/// # Errors
///
/// `NOT_FOUND`; `NOT_INITIALISED` after the tool's end.
pub fn describe<R: Described>(id: R::Id) -> Result<R, Error> {
    let mut record = R::zeroed();
    // SAFETY: a place for the answer.
    check(unsafe { R::ask(functions()?)(id, &mut record) })?;
    Ok(record)
}

/// The agents of the process that are known: those that the program has asked about.
///
/// # Errors
///
/// `NOT_INITIALISED` after the tool's end.
pub fn agents() -> Result<Vec<AgentId>, Error> {
    list(|functions, to, room, count| {
        // SAFETY: room for so many, and a place for the number.
        unsafe { (functions.agents)(to, room, count) }
    })
}

/// The agent that has this handle in its runtime, in OpenCL its `cl_device_id`.
pub fn agent_of(handle: u64) -> Option<AgentId> {
    // SAFETY: a place for the answer.
    answer(|functions, id| unsafe { (functions.agent_of)(handle, id) }).ok()
}

/// The context that has this handle in its runtime, in OpenCL its `cl_context`.
pub fn context_of(handle: u64) -> Option<ContextId> {
    // SAFETY: a place for the answer.
    answer(|functions, id| unsafe { (functions.context_of)(handle, id) }).ok()
}

/// The queue that has this handle in its runtime, in OpenCL its `cl_command_queue`.
pub fn queue_of(handle: u64) -> Option<QueueId> {
    // SAFETY: a place for the answer.
    answer(|functions, id| unsafe { (functions.queue_of)(handle, id) }).ok()
}
