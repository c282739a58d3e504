//! Callbacks about objects: machine code and its kernels, and queues as streams.
//!
//! | field | here |
//! |---|---|
//! | `uri`, `memory_base`, `memory_size` | the bytes are there during the callback of the load, as far as the runtime gives them; without any, `uri` is the file. The unload says the same |
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
use gputrail_abi::activity::stream_of;
use gputrail_abi::functions::all_calls;
use gputrail_abi::{kept, lock, names};
use gputrail_record::{
    Agent, CodeObject, CodeObjectId, Domain, KernelSymbol, Operation, QueueId, Stream, StreamId,
};
use gputrail_rocprofiler::{
    self as sdk, CallbackPhase, CallbackTracingKind as Kind, CodeObjectLoadData,
    CodeObjectOperation, HipStreamData, HipStreamOperation, KernelSymbolData,
};
use gputrail_tool::events::resource;
use gputrail_tool::{self as tool, Callback, describe};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
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

/// The machine code that contexts have been told of, by context and gputrail's number: its unload says what its load has said.
static TOLD: LazyLock<Mutex<HashMap<(u64, u32), CodePlace>>> = LazyLock::new(Mutex::default);

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
    let ids = Ids::of_no_call(callback.thread().0.into());
    if let Some(object) = callback.record::<CodeObject>() {
        let what = (Kind::CODE_OBJECT, CodeObjectOperation::LOAD.0);
        let of_context = (told.context().handle, object.id.0);
        let before = lock(&TOLD).remove(&of_context).filter(|_| !is_load);
        let place = before.unwrap_or_else(|| CodePlace::new(object, callback.code()));
        if is_load {
            lock(&TOLD).insert(of_context, place);
        }
        let mut data = load_data(object, place);
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
            // Outside of the lock, since it calls the library.
            let place = CodePlace::new(&object, &[]);
            match lock(&TOLD).entry((context.id.handle, id.0)) {
                Entry::Occupied(_) => continue,
                Entry::Vacant(untold) => untold.insert(place),
            };
            let what = (Kind::CODE_OBJECT, CodeObjectOperation::LOAD.0);
            let (ids, mut data) = (
                Ids::of_no_call(crate::thread_id()),
                load_data(&object, place),
            );
            told.call(what, CallbackPhase::LOAD, ids, &mut data, &mut 0);
        }
    }
}

/// The place of the bytes of a code object, as its load has told.
#[derive(Copy, Clone)]
struct CodePlace {
    uri: &'static CStr,
    storage: i32,
    base: u64,
    bytes: u64,
}

impl CodePlace {
    fn new(object: &CodeObject, code: &[u8]) -> CodePlace {
        if code.is_empty() {
            let path = tool::string(object.path).unwrap_or_default();
            let uri = match path.contains("://") {
                true => path,
                false => format!("file://{path}"),
            };
            return CodePlace {
                uri: kept(&uri),
                storage: CodeObjectLoadData::FILE,
                base: NO_FILE,
                bytes: 0,
            };
        }
        let (process, at) = (std::process::id(), code.as_ptr().addr());
        let uri = format!("memory://{process}#offset={at:#x}&size={}", code.len());
        CodePlace {
            uri: kept(&uri),
            storage: CodeObjectLoadData::MEMORY,
            base: code.as_ptr().expose_provenance() as u64,
            bytes: code.len() as u64,
        }
    }
}

fn load_data(object: &CodeObject, place: CodePlace) -> CodeObjectLoadData {
    let handle = describe::<Agent>(object.agent).map_or(0, |agent| agent.handle);
    CodeObjectLoadData {
        size: size_of::<CodeObjectLoadData>() as u64,
        code_object_id: object.id.0.into(),
        agent_id: agents::of_record(object.agent),
        hsa_agent: handle,
        uri: place.uri.as_ptr(),
        load_base: object.load_base,
        load_size: object.load_size,
        load_delta: object.load_base as i64,
        storage_type: place.storage,
        memory_base: place.base,
        memory_size: place.bytes,
    }
}

fn symbol(kernel: &KernelSymbol) -> KernelSymbolData {
    let word = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let name = names::kernel(kernel.id).unwrap_or_default();
    KernelSymbolData {
        size: size_of::<KernelSymbolData>() as u64,
        kernel_id: kernel.id.0.into(),
        code_object_id: kernel.code_object.0.into(),
        kernel_name: name.as_ptr(),
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
            let Some((id, value, _)) = stream_of(&callback) else {
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
        stream_id: sdk::StreamId { handle: id.into() },
        stream_value: value,
    };
    let what = (Kind::HIP_STREAM, operation.0);
    let ids = Ids::of_no_call(callback.thread().0.into());
    told.call(what, phase, ids, &mut data, word);
}

/// The id and the handle of the queue or stream that a call is given.
fn of_call(callback: &Callback<'_>) -> Option<(u32, u64)> {
    let operation = callback.operation();
    let mut arguments = callback.arguments();
    let value = arguments.nth(place_of_queue(operation)?)?.value();
    if operation.domain == Domain::OPENCL {
        return Some((tool::queue_of(value).unwrap_or(QueueId::NONE).0, value));
    }
    // A stream of the simulated GPU is named by its number.
    let stream = describe::<Stream>(StreamId(value as u32)).ok()?;
    Some((stream.id.0, stream.handle))
}
