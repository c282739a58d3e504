//! Times and names: what ids and times in records stand for.

use super::Error;
use super::functions::{act, ask, call, check, list, text};
use core::ffi::CStr;
use gputrail_record::*;

/// The time now, in the clock of host times in records.
pub fn now() -> Ticks {
    call!(gputrail_now()).unwrap_or(Ticks::NONE)
}

/// How many ticks a second has; 0 outside of a program that gputrail observes.
pub fn ticks_per_second() -> u64 {
    call!(gputrail_ticks_per_second()).unwrap_or(0)
}

/// Host time on CLOCK_BOOTTIME.
///
/// # Errors
///
/// `NOT_INITIALISED` after the tool's end.
pub fn to_nanos(ticks: Ticks) -> Result<Nanos, Error> {
    ask!(gputrail_ticks_to_nanos(ticks))
}

/// Time of an agent's clock on CLOCK_BOOTTIME.
///
/// # Errors
///
/// `CLOCK_UNKNOWN` before the agent's first work has completed; `NOT_INITIALISED` after the tool's end.
pub fn device_time_to_nanos(agent: AgentId, time: DeviceTime) -> Result<Nanos, Error> {
    ask!(gputrail_device_time_to_nanos(agent, time))
}

/// How far the times that [`device_time_to_nanos`] tells of an agent may be off; of no agent, those of the host.
///
/// # Errors
///
/// As for [`device_time_to_nanos`].
pub fn clock_error(agent: AgentId) -> Result<Nanos, Error> {
    ask!(gputrail_clock_error(agent))
}

/// The version of the library in the process, which may be another than that of this crate.
pub fn version() -> Option<&'static str> {
    let version = call!(gputrail_version()).ok()?;
    // SAFETY: it ends with a 0 and lasts for ever.
    unsafe { CStr::from_ptr(version) }.to_str().ok()
}

/// The id of the calling thread in records.
pub fn thread() -> ThreadId {
    call!(gputrail_thread()).unwrap_or(ThreadId::NONE)
}

/// The text of a string id.
pub fn string(id: StringId) -> Option<String> {
    text!(gputrail_string(id))
}

/// The name of a kernel.
pub fn kernel_name(id: KernelId) -> Option<String> {
    text!(gputrail_kernel_name(id))
}

/// The name of an agent.
pub fn agent_name(id: AgentId) -> Option<String> {
    text!(gputrail_agent_name(id))
}

/// An attribute of an agent that its record does not have, such as the size of its L2 cache.
///
/// # Errors
///
/// `NOT_FOUND` if the agent is not known, or does not have the attribute.
pub fn agent_attribute(id: AgentId, what: AgentAttributeKind) -> Result<u64, Error> {
    ask!(gputrail_agent_attribute(id, what))
}

/// The links of an agent: those to the host first, then those to other agents, which the later of the two has.
///
/// # Errors
///
/// `NOT_FOUND` if the agent is not known.
pub fn agent_links(id: AgentId) -> Result<Vec<Link>, Error> {
    list!(gputrail_agent_links(id))
}

/// The name of an operation.
pub fn operation_name(operation: Operation) -> Option<&'static str> {
    let name = call!(gputrail_operation_name(operation)).ok()?;
    // SAFETY: not null, and then it ends with a 0 and lasts for ever.
    (!name.is_null())
        .then(|| unsafe { CStr::from_ptr(name) })?
        .to_str()
        .ok()
}

/// The operation of a domain that has this name.
pub fn operation(domain: Domain, name: &CStr) -> Option<Operation> {
    let mut operation = Operation::default();
    // SAFETY: a text that ends with a 0, and a place for the answer.
    let found = unsafe {
        call!(gputrail_operation_by_name(
            domain,
            name.as_ptr(),
            &mut operation
        ))
    };
    check(found).ok().map(|()| operation)
}

/// The operations of a domain; none if the library does not observe it.
///
/// # Errors
///
/// `NOT_AVAILABLE` outside of a program that gputrail observes.
pub fn operations(domain: Domain) -> Result<Vec<Operation>, Error> {
    list!(gputrail_operations(domain))
}

/// A record that describes an object: see [`describe`].
pub trait Described: Record {
    /// Its id.
    type Id: Copy;
    #[doc(hidden)]
    fn ask(id: Self::Id) -> Result<Self, Error>;
}

macro_rules! described {
    ($($record:ty, $id:ty, $function:ident;)*) => {
        $(impl Described for $record {
            type Id = $id;
            fn ask(id: $id) -> Result<$record, Error> {
                ask!($function(id))
            }
        })*
    };
}

described! {
    Agent, AgentId, gputrail_describe_agent;
    Context, ContextId, gputrail_describe_runtime_context;
    Queue, QueueId, gputrail_describe_queue;
    Stream, StreamId, gputrail_describe_stream;
    Event, EventId, gputrail_describe_event;
    Module, ModuleId, gputrail_describe_module;
    KernelSymbol, KernelId, gputrail_describe_kernel;
    CodeObject, CodeObjectId, gputrail_describe_code_object;
    Thread, ThreadId, gputrail_describe_thread;
}

/// The description of an agent, a context, a queue, a module, a kernel, a code object or a thread:
/// `describe::<Agent>(id)`.
///
/// # Errors
///
/// `NOT_FOUND`; `NOT_INITIALISED` after the tool's end.
pub fn describe<R: Described>(id: R::Id) -> Result<R, Error> {
    R::ask(id)
}

/// The agents of the process that are known: those that the program has asked about.
///
/// # Errors
///
/// `NOT_INITIALISED` after the tool's end.
pub fn agents() -> Result<Vec<AgentId>, Error> {
    list!(gputrail_agents())
}

/// Makes the devices of all platforms of OpenCL known, before the program creates a context of them. If the program has not
/// called OpenCL yet, its loader is opened, and asked for the platforms in a call that counts as one of the program's.
///
/// # Errors
///
/// `NOT_FOUND` without a loader of OpenCL; `NOT_INITIALISED` after the tool's end.
pub fn find_agents() -> Result<(), Error> {
    act!(gputrail_find_agents())
}

/// The agent that has this handle in its runtime, in OpenCL its `cl_device_id`.
pub fn agent_of(handle: u64) -> Option<AgentId> {
    ask!(gputrail_agent_of(handle)).ok()
}

/// The context that has this handle in its runtime, in OpenCL its `cl_context`.
pub fn context_of(handle: u64) -> Option<ContextId> {
    ask!(gputrail_runtime_context_of(handle)).ok()
}

/// The queue that has this handle in its runtime, in OpenCL its `cl_command_queue`.
pub fn queue_of(handle: u64) -> Option<QueueId> {
    ask!(gputrail_queue_of(handle)).ok()
}

/// The stream that has this handle in its runtime, in CUDA its `CUstream`.
pub fn stream_of(handle: u64) -> Option<StreamId> {
    ask!(gputrail_stream_of(handle)).ok()
}

/// The event object that has this handle in its runtime, in CUDA CUPTI's number of the event.
pub fn event_of(handle: u64) -> Option<EventId> {
    ask!(gputrail_event_of(handle)).ok()
}
