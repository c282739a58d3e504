//! The initialization of a runtime: OpenCL, or that of the simulated GPU. It is told as HIP's, once, within the program's first call.
//! There is no version, which is 0.

use crate::context::{self, Context};
use crate::{now, thread_id};
use core::ffi::c_void;
use gputrail_abi::lock;
use gputrail_rocprofiler::{
    BufferCategory, BufferTracingKind, CallbackPhase, CallbackTracingKind, CallbackTracingRecord,
    CorrelationId, RuntimeInitializationData, RuntimeInitializationOperation,
    RuntimeInitializationRecord, UserData,
};

const OPERATION: RuntimeInitializationOperation = RuntimeInitializationOperation::HIP;

/// It belongs to no call.
fn no_call() -> CorrelationId {
    CorrelationId {
        internal: 0,
        external: UserData::from(0),
        ancestor: 0,
    }
}

/// Tells the contexts that are started.
pub fn initialised() {
    for context in context::all().iter().filter(|one| one.is_started()) {
        tell(context);
        record(context);
    }
}

fn tell(context: &Context) {
    let kind = CallbackTracingKind::RUNTIME_INITIALIZATION;
    let service = lock(&context.services).callbacks.get(&kind).cloned();
    let Some(service) = service.filter(|service| service.operations.has(OPERATION.0)) else {
        return;
    };
    let mut data = RuntimeInitializationData {
        size: size_of::<RuntimeInitializationData>() as u64,
        version: 0,
        instance: 0,
    };
    let record = CallbackTracingRecord {
        context_id: context.id,
        thread_id: thread_id(),
        correlation_id: no_call(),
        kind,
        operation: OPERATION.0,
        phase: CallbackPhase::NONE,
        payload: (&raw mut data).cast::<c_void>(),
    };
    let mut word = UserData::from(0);
    // SAFETY: the client's function for this, with the payload of the kind, and a word.
    unsafe { (service.function)(record, &raw mut word, service.data) };
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
            correlation_id: no_call(),
            thread_id: thread_id(),
            timestamp: now(),
            version: 0,
            instance: 0,
        };
        service.buffer.put(BufferCategory::TRACING, kind.0, &record);
    }
}
