//! Devices, contexts and streams: as CUDA's handles, and as the ids of records.

use crate::result::{Answer, CUptiResult};
use core::ffi::{c_int, c_void};
use gputrail_abi::agents::{any, sought};
use gputrail_abi::lock;
use gputrail_record::{
    Agent, AgentId, Context, ContextId, KernelId, KernelSymbol, Queue, QueueId, Stream, StreamId,
};
use gputrail_tool::{Error, agents, context_of, describe, queue_of, stream_of};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// `CUdevice`: the number of a device in the order in which the process has come to know its agents. They are there before the program
/// makes a context.
pub type CUdevice = c_int;
/// `CUcontext`: the handle of a context in its runtime, in OpenCL the `cl_context`.
pub type CUcontext = *mut c_void;
/// `CUstream`: the handle of a stream, or of a queue where the runtime has no streams: in OpenCL the `cl_command_queue`.
pub type CUstream = *mut c_void;

thread_local! {
    static CURRENT: Cell<ContextId> = const { Cell::new(ContextId::NONE) };
}

/// The device that an agent is.
pub fn device_of(agent: AgentId) -> Answer<u32> {
    let all = agents()?;
    let place = all.iter().position(|one| *one == agent);
    place
        .map(|place| place as u32)
        .ok_or(CUptiResult::INVALID_DEVICE)
}

/// The agents that are known, or else all that there are.
pub fn any_agents() -> Answer<Vec<AgentId>> {
    Ok(any(agents)?)
}

/// The agent that a device is.
pub fn agent(device: CUdevice) -> Answer<AgentId> {
    let place = usize::try_from(device).map_err(|_| CUptiResult::INVALID_DEVICE)?;
    let found = sought(|| Ok::<_, Error>(agents()?.get(place).copied()))?;
    found.ok_or(CUptiResult::INVALID_DEVICE)
}

/// The description of a device's agent.
pub fn described(device: CUdevice) -> Answer<Agent> {
    describe::<Agent>(agent(device)?).map_err(|_| CUptiResult::INVALID_DEVICE)
}

/// A context, by its handle.
pub fn context(handle: CUcontext) -> Answer<Context> {
    if handle.is_null() {
        return Err(CUptiResult::INVALID_CONTEXT);
    }
    let found = context_of(handle.addr() as u64).and_then(|id| describe::<Context>(id).ok());
    found.ok_or(CUptiResult::INVALID_CONTEXT)
}

/// The handle of a context; null for none.
pub fn handle_of_context(id: ContextId) -> CUcontext {
    let handle = describe::<Context>(id).map_or(0, |context| context.handle);
    std::ptr::without_provenance_mut(handle as usize)
}

/// The handle of a stream, or else of the queue.
pub fn handle_of_stream(stream: StreamId, queue: QueueId) -> CUstream {
    let handle = if stream.is_some() {
        describe::<Stream>(stream).map(|stream| stream.handle)
    } else {
        describe::<Queue>(queue).map(|queue| queue.handle)
    };
    std::ptr::without_provenance_mut(handle.unwrap_or(0) as usize)
}

/// The place of a function among those of its module, from 1 (in ELF files, the symbol 0 is none).
pub fn function_index(kernel: KernelId) -> u32 {
    static INDICES: Mutex<BTreeMap<KernelId, u32>> = Mutex::new(BTreeMap::new());
    if let Some(known) = lock(&INDICES).get(&kernel) {
        return *known;
    }
    let module = |id| describe::<KernelSymbol>(KernelId(id)).map(|kernel| kernel.module);
    let Ok(own) = module(kernel.0) else {
        return 0;
    };
    let before = (1..kernel.0).filter(|id| module(*id).is_ok_and(|of| of == own));
    let index = before.count() as u32 + 1;
    lock(&INDICES).insert(kernel, index);
    index
}

/// The priority of a stream; 0 where the runtime has no streams.
pub fn priority(stream: StreamId) -> i32 {
    static PRIORITIES: Mutex<BTreeMap<StreamId, i32>> = Mutex::new(BTreeMap::new());
    if !stream.is_some() {
        return 0;
    }
    if let Some(known) = lock(&PRIORITIES).get(&stream) {
        return *known;
    }
    let Ok(known) = describe::<Stream>(stream) else {
        return 0;
    };
    lock(&PRIORITIES).insert(stream, known.priority);
    known.priority
}

/// The id of a stream in records: of a queue where the runtime has no streams.
pub fn stream_id(stream: StreamId, queue: QueueId) -> u32 {
    if stream.is_some() { stream.0 } else { queue.0 }
}

/// The id of the stream with this handle, and its context.
pub fn stream(handle: CUstream) -> Answer<(u32, ContextId)> {
    let handle = handle.addr() as u64;
    let streams = stream_of(handle).and_then(|id| describe::<Stream>(id).ok());
    if let Some(stream) = streams {
        return Ok((stream.id.0, stream.context));
    }
    let queues = queue_of(handle).and_then(|id| describe::<Queue>(id).ok());
    let queue = queues.ok_or(CUptiResult::INVALID_STREAM)?;
    Ok((queue.id.0, queue.context))
}

/// The context of the call that the calling thread is called back about.
pub fn current() -> ContextId {
    CURRENT.try_with(Cell::get).unwrap_or(ContextId::NONE)
}

/// Does `work`, a callback, in which `context` is current.
pub fn within<T>(context: ContextId, work: impl FnOnce() -> T) -> T {
    struct Restore(ContextId);
    impl Drop for Restore {
        fn drop(&mut self) {
            let _ = CURRENT.try_with(|current| current.set(self.0));
        }
    }
    let _restore = Restore(current());
    let _ = CURRENT.try_with(|current| current.set(context));
    work()
}
