//! The objects that ids in records name.

use super::kinds::list;
use super::library::board;
use super::status::FailedCall;
use super::{Answer, checked, done, place, text};
use core::ffi::c_char;
use gputrail_interface::c::Status;
use gputrail_record::*;
use gputrail_sources::{handles, opencl};

/// The text of a string id, ended by a 0. `length`, which may be null, gets the length without the 0; a null `to` asks
/// for it alone.
///
/// Errors: `GPUTRAIL_NOT_FOUND`; `GPUTRAIL_TOO_SMALL`, and nothing is written but the length;
/// `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `to` is null or leads to `capacity` bytes, `length` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_string(
    id: StringId,
    to: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Status {
    done(|| {
        let found = string(id)?;
        // SAFETY: `to` is null or leads to `capacity` bytes, `length` is null or a place for a number (the caller's
        // promises).
        unsafe { text::copy(&found, to, capacity, length) }
    })
}

fn string(id: StringId) -> Answer<String> {
    let found = board()?.names().text(id);
    found.ok_or_else(|| FailedCall::new(Status::NOT_FOUND, format!("no string has the id {id}")))
}

/// The name of a kernel, as the program calls it. As `gputrail_string`.
///
/// # Safety
///
/// As for `gputrail_string`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_kernel_name(
    id: KernelId,
    to: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Status {
    done(|| {
        let name = string(named::<KernelSymbol>(id.0, "kernel")?.name)?;
        // SAFETY: `to` is null or leads to `capacity` bytes, `length` is null or a place for a number (the caller's
        // promises).
        unsafe { text::copy(&name, to, capacity, length) }
    })
}

/// The name of an agent. As `gputrail_string`.
///
/// # Safety
///
/// As for `gputrail_string`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_agent_name(
    id: AgentId,
    to: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Status {
    done(|| {
        let name = string(named::<Agent>(id.0, "agent")?.name)?;
        // SAFETY: `to` is null or leads to `capacity` bytes, `length` is null or a place for a number (the caller's
        // promises).
        unsafe { text::copy(&name, to, capacity, length) }
    })
}

/// An attribute of an agent that its record does not have, such as the size of its L2 cache.
///
/// Errors: `GPUTRAIL_NOT_FOUND` if the agent is not known, or does not have the attribute;
/// `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `value` is null or leads to a place for the value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_agent_attribute(
    id: AgentId,
    what: AgentAttributeKind,
    value: *mut u64,
) -> Status {
    done(|| {
        // SAFETY: `value` is null or a place for a number (the caller's promise).
        let value = unsafe { place(value, "value") }?;
        let found = board()?.names().attribute_of(id, what);
        let missing = || {
            let name = what.name().unwrap_or("an unknown attribute");
            FailedCall::new(
                Status::NOT_FOUND,
                format!(
                    "agent {} has no value of attribute {} ({name})",
                    id.0, what.0
                ),
            )
        };
        value.write(found.ok_or_else(missing)?);
        Ok(())
    })
}

/// The links of an agent: those to the host first, then those to other agents, which the later of the two has. As
/// `gputrail_kinds`.
///
/// Errors: `GPUTRAIL_NOT_FOUND` if the agent is not known; `GPUTRAIL_TOO_SMALL`, and as many as fit are written;
/// `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `links` is null or leads to room for `capacity` records, `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_agent_links(
    agent: AgentId,
    links: *mut Link,
    capacity: usize,
    count: *mut usize,
) -> Status {
    done(|| {
        checked(count, "count")?;
        let _: Agent = named(agent.0, "agent")?;
        let mut all: Vec<Link> = board()?.names().all();
        all.retain(|link| link.agent == agent);
        all.sort_by_key(|link| (link.peer, link.what));
        // SAFETY: `links` is null or has room for `capacity` records, `count` is null or a place for a number (the caller's
        // promises).
        unsafe { list(&all, links, capacity, count) }
    })
}

fn named<R: Record>(id: u32, what: &str) -> Answer<R> {
    let found = board()?.names().get(id);
    found.ok_or_else(|| FailedCall::new(Status::NOT_FOUND, format!("no {what} has the id {id}")))
}

/// # Safety
///
/// `record` is null, misaligned or a place for the answer.
unsafe fn describe<R: Record>(id: u32, what: &str, record: *mut R) -> Status {
    done(|| {
        // SAFETY: `record` is null, misaligned or a place for an `R` (the caller's promise), as `place` asks.
        let record = unsafe { place(record, "record") }?;
        record.write(named::<R>(id, what)?);
        Ok(())
    })
}

/// Describes an agent.
///
/// Errors: `GPUTRAIL_NOT_FOUND`, `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `record` is null or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_describe_agent(id: AgentId, record: *mut Agent) -> Status {
    // SAFETY: `record` is null or a place for an `Agent` (the caller's promise).
    unsafe { describe(id.0, "agent", record) }
}

/// Describes a context of a runtime.
///
/// Errors: `GPUTRAIL_NOT_FOUND`, `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `record` is null or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_describe_runtime_context(
    id: ContextId,
    record: *mut Context,
) -> Status {
    // SAFETY: `record` is null or a place for a `Context` (the caller's promise).
    unsafe { describe(id.0, "context", record) }
}

/// Describes a queue.
///
/// Errors: `GPUTRAIL_NOT_FOUND`, `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `record` is null or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_describe_queue(id: QueueId, record: *mut Queue) -> Status {
    // SAFETY: `record` is null or a place for a `Queue` (the caller's promise).
    unsafe { describe(id.0, "queue", record) }
}

/// Describes a stream.
///
/// Errors: `GPUTRAIL_NOT_FOUND`, `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `record` is null or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_describe_stream(id: StreamId, record: *mut Stream) -> Status {
    // SAFETY: `record` is null or a place for a `Stream` (the caller's promise).
    unsafe { describe(id.0, "stream", record) }
}

/// Describes an event object.
///
/// Errors: `GPUTRAIL_NOT_FOUND`, `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `record` is null or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_describe_event(id: EventId, record: *mut Event) -> Status {
    // SAFETY: `record` is null or a place for an `Event` (the caller's promise).
    unsafe { describe(id.0, "event", record) }
}

/// Describes a module or program.
///
/// Errors: `GPUTRAIL_NOT_FOUND`, `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `record` is null or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_describe_module(id: ModuleId, record: *mut Module) -> Status {
    // SAFETY: `record` is null or a place for a `Module` (the caller's promise).
    unsafe { describe(id.0, "module", record) }
}

/// Describes a kernel.
///
/// Errors: `GPUTRAIL_NOT_FOUND`, `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `record` is null or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_describe_kernel(
    id: KernelId,
    record: *mut KernelSymbol,
) -> Status {
    // SAFETY: `record` is null or a place for a `KernelSymbol` (the caller's promise).
    unsafe { describe(id.0, "kernel", record) }
}

/// Describes a code object.
///
/// Errors: `GPUTRAIL_NOT_FOUND`, `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `record` is null or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_describe_code_object(
    id: CodeObjectId,
    record: *mut CodeObject,
) -> Status {
    // SAFETY: `record` is null or a place for a `CodeObject` (the caller's promise).
    unsafe { describe(id.0, "code object", record) }
}

/// Describes a thread.
///
/// Errors: `GPUTRAIL_NOT_FOUND`, `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `record` is null or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_describe_thread(id: ThreadId, record: *mut Thread) -> Status {
    // SAFETY: `record` is null or a place for a `Thread` (the caller's promise).
    unsafe { describe(id.0, "thread", record) }
}

/// The agents of this process that are known: those that the program has asked about. As `gputrail_kinds`.
///
/// Errors: `GPUTRAIL_TOO_SMALL`, and as many as fit are written; `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `agents` is null or leads to room for `capacity` ids, `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_agents(
    agents: *mut AgentId,
    capacity: usize,
    count: *mut usize,
) -> Status {
    done(|| {
        let all: Vec<Agent> = board()?.names().all();
        let mut all: Vec<AgentId> = all.iter().map(|agent| agent.id).collect();
        all.sort_unstable();
        // SAFETY: `agents` is null or has room for `capacity` ids, `count` is null or a place for a number (the caller's
        // promises).
        unsafe { list(&all, agents, capacity, count) }
    })
}

/// Makes the devices of all platforms of OpenCL known, before the program creates a context of them: `gputrail_agents` and its
/// like have them then, and `GPUTRAIL_RESOURCE_AGENT_KNOWN` is called for each new one. If the program has not called OpenCL yet, its
/// loader is opened, and asked for the platforms in a call that counts as one of the program's; the library observes OpenCL by
/// then (`gputrail_observe_opencl`). It takes as long as the runtimes need to begin. Where the simulated GPU runs, its devices are those
/// of the machine, and OpenCL is not asked. May be called from several threads.
///
/// Errors: `GPUTRAIL_NOT_FOUND` without a loader of OpenCL; `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_find_agents() -> Status {
    done(|| {
        let known: Vec<Agent> = board()?.names().all();
        if known.iter().any(|agent| agent.kind == AgentKind::SIMULATED) {
            return Ok(());
        }
        opencl::find_agents().map_err(|error| FailedCall::new(Status::NOT_FOUND, error.to_string()))
    })
}

/// The latest of `all` whose handle is `handle`: a runtime may use the handle of what is gone again.
fn of_handle<R: Record>(handle: u64, what: &str, of: impl Fn(&R) -> u64) -> Answer<R> {
    let all: Vec<R> = board()?.names().all();
    let found = all
        .into_iter()
        .rfind(|record| of(record) == handle && handle != 0);
    found.ok_or_else(|| no_such(what, handle))
}

fn no_such(what: &str, handle: u64) -> FailedCall {
    let text = format!("no {what} has the handle {handle:#x}");
    FailedCall::new(Status::NOT_FOUND, text)
}

/// The agent that has this handle in its runtime, in OpenCL its `cl_device_id`.
///
/// Errors: `GPUTRAIL_NOT_FOUND`, `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `id` is null or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_agent_of(handle: u64, id: *mut AgentId) -> Status {
    done(|| {
        // SAFETY: `id` is null or a place for an id (the caller's promise).
        let id = unsafe { place(id, "id") }?;
        id.write(of_handle(handle, "agent", |agent: &Agent| agent.handle)?.id);
        Ok(())
    })
}

/// The context that has this handle in its runtime: a `cl_context`, or the `CUcontext` of a live context that work has been
/// recorded of.
///
/// Errors: `GPUTRAIL_NOT_FOUND`, `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `id` is null or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_runtime_context_of(handle: u64, id: *mut ContextId) -> Status {
    done(|| {
        // SAFETY: `id` is null or a place for an id (the caller's promise).
        let id = unsafe { place(id, "id") }?;
        board()?;
        let found = handles::context_of(handle);
        id.write(found.ok_or_else(|| no_such("context", handle))?);
        Ok(())
    })
}

/// The queue that has this handle in its runtime, in OpenCL its `cl_command_queue`.
///
/// Errors: `GPUTRAIL_NOT_FOUND`, `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `id` is null or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_queue_of(handle: u64, id: *mut QueueId) -> Status {
    done(|| {
        // SAFETY: `id` is null or a place for an id (the caller's promise).
        let id = unsafe { place(id, "id") }?;
        id.write(of_handle(handle, "queue", |queue: &Queue| queue.handle)?.id);
        Ok(())
    })
}

/// The stream that has this handle in its runtime, in CUDA the `CUstream` of a live stream in which work has run (CUPTI:
/// `cuptiGetStreamIdEx`).
///
/// Errors: `GPUTRAIL_NOT_FOUND`, `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `id` is null or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_stream_of(handle: u64, id: *mut StreamId) -> Status {
    done(|| {
        // SAFETY: `id` is null or a place for an id (the caller's promise).
        let id = unsafe { place(id, "id") }?;
        board()?;
        let found = handles::stream_of(handle);
        id.write(found.ok_or_else(|| no_such("stream", handle))?);
        Ok(())
    })
}

/// The event object that has this handle in its runtime. In CUDA that is CUPTI's number of the event: CUPTI does not tell the
/// number of a `CUevent`. OpenCL's events are not described: there is one for each command.
///
/// Errors: `GPUTRAIL_NOT_FOUND`, `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `id` is null or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_event_of(handle: u64, id: *mut EventId) -> Status {
    done(|| {
        // SAFETY: `id` is null or a place for an id (the caller's promise).
        let id = unsafe { place(id, "id") }?;
        id.write(of_handle(handle, "event", |event: &Event| event.handle)?.id);
        Ok(())
    })
}
