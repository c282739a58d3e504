//! The initialization of a runtime: OpenCL, or that of the simulated GPU. It is told as HIP's, once, within the program's first call.
//! There is no version, which is 0. The kernel that fills are dispatches of is loaded then.

use crate::callbacks::{Ids, Told};
use crate::context::{self, Context};
use crate::objects::NO_FILE;
use crate::payload::FILL;
use crate::{agents, now, thread_id};
use gputrail_abi::lock;
use gputrail_rocprofiler::{
    BufferCategory, BufferTracingKind, CallbackPhase, CallbackTracingKind, CodeObjectLoadData,
    CodeObjectOperation, KernelSymbolData, RuntimeInitializationData,
    RuntimeInitializationOperation, RuntimeInitializationRecord, TracingOperation,
};

const OPERATION: RuntimeInitializationOperation = RuntimeInitializationOperation::HIP;

/// Tells the contexts that are started.
pub fn initialised() {
    for context in context::all().iter().filter(|one| one.is_started()) {
        let told = Told::new(context.id, &lock(&context.services));
        tell_fill(&told);
        tell(&told);
        record(context);
    }
}

/// Calls a client about what belongs to no call.
fn call<T>(
    told: &Told,
    what: (CallbackTracingKind, TracingOperation),
    phase: CallbackPhase,
    payload: &mut T,
) {
    told.call(what, phase, Ids::of_no_call(thread_id()), payload, &mut 0);
}

/// The kernel of fills.
fn tell_fill(told: &Told) {
    let kind = CallbackTracingKind::CODE_OBJECT;
    let mut code = CodeObjectLoadData {
        size: size_of::<CodeObjectLoadData>() as u64,
        code_object_id: FILL,
        agent_id: agents::host(),
        uri: c"gputrail://fill".as_ptr(),
        storage_type: CodeObjectLoadData::FILE,
        memory_base: NO_FILE,
        // SAFETY: all bytes 0 are a value of a growing structure.
        ..unsafe { core::mem::zeroed() }
    };
    let load = (kind, CodeObjectOperation::LOAD.0);
    call(told, load, CallbackPhase::LOAD, &mut code);
    let mut kernel = KernelSymbolData {
        size: size_of::<KernelSymbolData>() as u64,
        kernel_id: FILL,
        code_object_id: FILL,
        kernel_name: c"gputrail_fill".as_ptr(),
        // SAFETY: all bytes 0 are a value of a growing structure.
        ..unsafe { core::mem::zeroed() }
    };
    let register = CodeObjectOperation::DEVICE_KERNEL_SYMBOL_REGISTER;
    call(told, (kind, register.0), CallbackPhase::LOAD, &mut kernel);
}

fn tell(told: &Told) {
    let mut data = RuntimeInitializationData {
        size: size_of::<RuntimeInitializationData>() as u64,
        version: 0,
        instance: 0,
    };
    let kind = CallbackTracingKind::RUNTIME_INITIALIZATION;
    call(told, (kind, OPERATION.0), CallbackPhase::NONE, &mut data);
}

fn record(context: &Context) {
    let kind = BufferTracingKind::RUNTIME_INITIALIZATION;
    let service = lock(&context.services).buffers.get(&kind).cloned();
    let wanted = service.filter(|service| {
        service.buffer.context == context.id && service.operations.has(OPERATION.0)
    });
    if let Some(service) = wanted {
        let record = RuntimeInitializationRecord {
            size: size_of::<RuntimeInitializationRecord>() as u64,
            kind,
            operation: OPERATION.0,
            correlation_id: Ids::of_no_call(thread_id()).correlation,
            thread_id: thread_id(),
            timestamp: now(),
            version: 0,
            instance: 0,
        };
        service.buffer.put(BufferCategory::TRACING, kind.0, &record);
    }
}
