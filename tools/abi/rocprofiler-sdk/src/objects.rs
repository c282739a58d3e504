//! Callbacks about objects: machine code and its kernels, and queues as streams.
//!
//! | field | here |
//! |---|---|
//! | `uri`, `memory_base`, `memory_size` | the bytes are there during the callback, as far as the runtime gives them; without any, `uri` is the file |
//! | `hsa_agent` | the handle of the device in its runtime |
//! | `load_delta` | as `load_base` |
//! | `kernel_object` | the handle of the kernel in its runtime |
//! | registers, `kernarg_segment_size`, `kernel_address` | 0 |
//!
//! Machine code that samples show, and that was not told of before, is told of ahead of them, on the thread that brings them: that of
//! PoCL's kernels. It has no end.
//!
//! A kernel is registered when the program makes an object of it. A stream is a queue, of the simulated GPU one of its streams; it is
//! set around each call that is given it.

use crate::agents;
use crate::callbacks::{self, Ids, Told};
use crate::context::{self, Operations};
use core::ffi::CStr;
use gputrail_abi::functions::all_calls;
use gputrail_abi::{kept, lock};
use gputrail_record::{
    Agent, CodeObject, CodeObjectId, Context, Domain, KernelSymbol, Operation, Queue, QueueId,
    Stream, StreamId,
};
use gputrail_rocprofiler::{
    self as sdk, CallbackPhase, CallbackTracingKind as Kind, CodeObjectLoadData,
    CodeObjectOperation, CorrelationId, HipStreamData, HipStreamOperation, KernelSymbolData,
    UserData,
};
use gputrail_tool::events::resource;
use gputrail_tool::{self as tool, Callback, describe};
use std::collections::{HashMap, HashSet};
use std::sync::{LazyLock, Mutex};

/// `memory_base`, the low half of which is a descriptor, where no file is open.
pub const NO_FILE: u64 = u32::MAX as u64;

/// Events of machine code and kernels.
pub const OF_CODE: [Operation; 4] = [
    resource::CODE_OBJECT_LOADED,
    resource::CODE_OBJECT_UNLOADED,
    resource::KERNEL_SYMBOL_REGISTERED,
    resource::KERNEL_SYMBOL_UNREGISTERED,
];

/// Events of queues and streams.
const OF_STREAMS: [Operation; 4] = [
    resource::QUEUE_CREATED,
    resource::QUEUE_DESTROYED,
    resource::STREAM_CREATED,
    resource::STREAM_DESTROYED,
];

/// The machine code that contexts have been told of: a context, and gputrail's number.
static TOLD: LazyLock<Mutex<HashSet<(u64, u32)>>> = LazyLock::new(Mutex::default);

/// The ids of what belongs to no call, on a thread.
fn ids(thread: u64) -> Ids {
    Ids {
        thread,
        correlation: CorrelationId {
            internal: 0,
            external: UserData::from(0),
            ancestor: 0,
        },
    }
}

/// Tells of machine code, or of a kernel.
pub fn code(told: &Told, callback: Callback<'_>, word: &mut u64) {
    let is_load = matches!(
        callback.operation(),
        resource::CODE_OBJECT_LOADED | resource::KERNEL_SYMBOL_REGISTERED
    );
    let phase = match is_load {
        true => CallbackPhase::LOAD,
        false => CallbackPhase::UNLOAD,
    };
    let ids = ids(callback.thread().0.into());
    if let Some(object) = callback.record::<CodeObject>() {
        let what = (Kind::CODE_OBJECT, CodeObjectOperation::LOAD.0);
        let mut data = loaded(object, callback.code());
        let of_context = (told.context().handle, object.id.0);
        match is_load {
            true => lock(&TOLD).insert(of_context),
            false => lock(&TOLD).remove(&of_context),
        };
        told.call(what, phase, ids, &mut data, word);
    } else if let Some(kernel) = callback.record::<KernelSymbol>() {
        let register = CodeObjectOperation::DEVICE_KERNEL_SYMBOL_REGISTER;
        let mut data = symbol(kernel);
        told.call((Kind::CODE_OBJECT, register.0), phase, ids, &mut data, word);
    }
}

/// Tells all contexts of machine code that samples show, as far as they have not been told of it.
pub fn sampled(all: &[CodeObjectId]) {
    for context in context::all() {
        let services = lock(&context.services).clone();
        if !context.is_started() || !services.callbacks.contains_key(&Kind::CODE_OBJECT) {
            continue;
        }
        let told = Told::new(context.id, &services);
        for id in all {
            let Ok(object) = describe::<CodeObject>(*id) else {
                continue;
            };
            if !lock(&TOLD).insert((context.id.handle, id.0)) {
                continue;
            }
            let what = (Kind::CODE_OBJECT, CodeObjectOperation::LOAD.0);
            let (ids, mut data) = (ids(crate::thread_id()), loaded(&object, &[]));
            told.call(what, CallbackPhase::LOAD, ids, &mut data, &mut 0);
        }
    }
}

fn loaded(object: &CodeObject, code: &[u8]) -> CodeObjectLoadData {
    let handle = describe::<Agent>(object.agent).map_or(0, |agent| agent.handle);
    let uri = if code.is_empty() {
        let path = tool::string(object.path).unwrap_or_default();
        match path.contains("://") {
            true => path,
            false => format!("file://{path}"),
        }
    } else {
        let (process, at) = (std::process::id(), code.as_ptr().addr());
        format!("memory://{process}#offset={at:#x}&size={}", code.len())
    };
    CodeObjectLoadData {
        size: size_of::<CodeObjectLoadData>() as u64,
        code_object_id: object.id.0.into(),
        agent_id: agents::of_record(object.agent),
        hsa_agent: handle,
        uri: lasting(object, uri),
        load_base: object.load_base,
        load_size: object.load_size,
        load_delta: object.load_base as i64,
        storage_type: match code {
            [] => CodeObjectLoadData::FILE,
            _ => CodeObjectLoadData::MEMORY,
        },
        memory_base: match code {
            [] => NO_FILE,
            _ => code.as_ptr().expose_provenance() as u64,
        },
        memory_size: code.len() as u64,
    }
}

/// The place of a code object as a text, which lasts for ever: one for each object.
fn lasting(object: &CodeObject, uri: String) -> *const core::ffi::c_char {
    static URIS: LazyLock<Mutex<HashMap<u32, &'static CStr>>> = LazyLock::new(Mutex::default);
    let mut uris = lock(&URIS);
    uris.entry(object.id.0)
        .or_insert_with(|| kept(&uri))
        .as_ptr()
}

fn symbol(kernel: &KernelSymbol) -> KernelSymbolData {
    let word = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let name = tool::kernel_name(kernel.id).unwrap_or_default();
    KernelSymbolData {
        size: size_of::<KernelSymbolData>() as u64,
        kernel_id: kernel.id.0.into(),
        code_object_id: kernel.code_object.0.into(),
        kernel_name: kept(&name).as_ptr(),
        kernel_object: kernel.handle,
        kernarg_segment_size: 0,
        kernarg_segment_alignment: 0,
        group_segment_size: word(kernel.local_memory),
        private_segment_size: word(kernel.private_memory),
        sgpr_count: 0,
        arch_vgpr_count: 0,
        accum_vgpr_count: 0,
        kernel_code_entry_byte_offset: 0,
        kernel_address: 0,
    }
}

/// The operations that a client is told of which wants these operations on streams.
pub fn of_streams(operations: &Operations) -> Vec<Operation> {
    let mut all = Vec::new();
    if operations.has(HipStreamOperation::CREATE.0) || operations.has(HipStreamOperation::DESTROY.0)
    {
        all.extend(OF_STREAMS);
    }
    if operations.has(HipStreamOperation::SET.0) {
        all.extend(all_calls().filter(|call| place_of_queue(*call).is_some()));
    }
    all
}

/// The place of the queue or stream among the arguments of a function.
fn place_of_queue(call: Operation) -> Option<usize> {
    static PLACES: LazyLock<HashMap<Operation, usize>> = LazyLock::new(|| {
        let place = |call: Operation| {
            let mut arguments = tool::arguments_of_operation(call);
            let name = match call.domain {
                Domain::OPENCL => "command_queue",
                _ => "stream",
            };
            let place = arguments.position(|argument| argument.name() == name)?;
            Some((call, place))
        };
        all_calls().filter_map(place).collect()
    });
    PLACES.get(&call).copied()
}

/// Tells of a stream: that it is made or destroyed, or is set.
pub fn stream(told: &Told, callback: Callback<'_>, word: &mut u64) {
    let (operation, phase, id, value) = match callback.operation().domain {
        Domain::RESOURCE => {
            let is_made = matches!(
                callback.operation(),
                resource::QUEUE_CREATED | resource::STREAM_CREATED
            );
            let operation = match is_made {
                true => HipStreamOperation::CREATE,
                false => HipStreamOperation::DESTROY,
            };
            let Some((id, value)) = of_object(&callback) else {
                return;
            };
            (operation, CallbackPhase::NONE, id, value)
        }
        _ => {
            let Some(phase) = callbacks::phase(&callback) else {
                return;
            };
            let Some((id, value)) = of_call(&callback) else {
                return;
            };
            (HipStreamOperation::SET, phase, id, value)
        }
    };
    let mut data = HipStreamData {
        size: size_of::<HipStreamData>() as u64,
        stream_id: sdk::StreamId { handle: id },
        stream_value: value,
    };
    let what = (Kind::HIP_STREAM, operation.0);
    let ids = ids(callback.thread().0.into());
    told.call(what, phase, ids, &mut data, word);
}

/// The id and the handle of a queue or stream that comes or goes. Where the runtime has streams, its queues are its own.
fn of_object(callback: &Callback<'_>) -> Option<(u64, u64)> {
    if let Some(stream) = callback.record::<Stream>() {
        return Some((stream.id.0.into(), stream.handle));
    }
    let queue = callback.record::<Queue>()?;
    let context = describe::<Context>(queue.context).ok()?;
    (context.domain == Domain::OPENCL).then(|| (queue.id.0.into(), queue.handle))
}

/// The id and the handle of the queue or stream that a call is given.
fn of_call(callback: &Callback<'_>) -> Option<(u64, u64)> {
    let operation = callback.operation();
    let mut arguments = callback.arguments();
    let value = arguments.nth(place_of_queue(operation)?)?.value();
    let id = match operation.domain {
        Domain::OPENCL => tool::queue_of(value).unwrap_or(QueueId::NONE).0,
        _ => tool::stream_of(value).unwrap_or(StreamId::NONE).0,
    };
    Some((id.into(), value))
}
