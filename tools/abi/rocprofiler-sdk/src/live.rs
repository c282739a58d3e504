//! The services of a context in gputrail: a buffer, whose records are translated; subscribers, for callbacks; and one that
//! supplies external ids.

use crate::callbacks;
use crate::context::{Context, Services};
use crate::counting;
use crate::external::RequestService;
use crate::hip::{self, KeptArguments};
use crate::kinds;
use crate::result::{Answer, failed};
use crate::sampling;
use crate::translate::{self, Translator};
use gputrail_abi::activity::Reader;
use gputrail_abi::functions::all_calls;
use gputrail_abi::lock;
use gputrail_record::{ExternalId, Kind, Operation};
use gputrail_rocprofiler::{
    BufferTracingKind, CallbackTracingKind, ContextId, ExternalCorrelationRequestKind,
    KernelDispatchOperation, MemoryAllocationOperation, MemoryCopyOperation, TracingOperation,
};
use gputrail_tool::events::{kernel_dispatch, memory_allocation, memory_copy};
use gputrail_tool::{
    self as tool, Batch, Buffer, BufferOptions, Callback, ExternalRequest, Policy, Subscriber,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often records are looked for.
const PERIOD: Duration = Duration::from_millis(100);

/// The services, until the process ends.
pub struct Live {
    feed: Option<Feed>,
    _subscribers: Vec<Subscriber>,
}

/// gputrail's buffer.
struct Feed {
    buffer: Buffer,
    reader: Arc<Mutex<Reader<Translator>>>,
}

impl Live {
    /// Adds the services to gputrail's context.
    ///
    /// # Errors
    ///
    /// `OUT_OF_RESOURCES` if gputrail has no place for them.
    pub fn new(context: &Context) -> Answer<Live> {
        let services = lock(&context.services).clone();
        let mut subscribers = Vec::new();
        subscribers.extend(supplier(context, &services).map_err(failed)?);
        let of_callbacks = callbacks::subscribe(context, &services);
        subscribers.extend(of_callbacks.map_err(failed)?);
        let arguments = Arc::new(KeptArguments::default());
        let keeping = keeping(context, &services, &arguments);
        subscribers.extend(keeping.map_err(failed)?);
        Ok(Live {
            feed: Feed::new(context, &services, arguments).map_err(failed)?,
            _subscribers: subscribers,
        })
    }

    /// Puts what gputrail has recorded into the buffers. `false` within a callback of gputrail's, where that is not possible.
    pub fn collect(&self) -> bool {
        self.feed.as_ref().is_none_or(Feed::collect)
    }
}

impl Feed {
    fn new(
        context: &Context,
        services: &Services,
        arguments: Arc<KeptArguments>,
    ) -> Result<Option<Feed>, tool::Error> {
        let (kinds, calls) = wanted(services);
        if kinds.is_empty() {
            return Ok(None);
        }
        let mut buffers = services.buffers.values();
        let options = BufferOptions {
            policy: match buffers.any(|service| service.buffer.is_lossless) {
                true => Policy::Lossless,
                false => Policy::Discard,
            },
            watermark: Some(0),
            period: PERIOD,
            ..BufferOptions::default()
        };
        let translator = Translator::new(context.id, services, arguments);
        let reader = Arc::new(Mutex::new(Reader::new(translator)));
        let of_buffer = reader.clone();
        let buffer = Buffer::new(options, move |batch: Batch<'_>| {
            translate::add(&mut lock(&of_buffer), batch);
        })?;
        context
            .gputrail
            .trace_operations_to(&buffer, &kinds, &calls)?;
        Ok(Some(Feed { buffer, reader }))
    }

    fn collect(&self) -> bool {
        let is_possible = match self.buffer.flush() {
            Err(error) => error.status != tool::Status::BUSY,
            Ok(()) => true,
        };
        let translator = &mut lock(&self.reader).to;
        translator.settle(is_possible);
        if let Ok(drops) = self.buffer.dropped() {
            translator.count_dropped(&drops);
        }
        is_possible
    }
}

/// The kinds of gputrail's records that the buffers are made from, and the calls; all of them if there are none.
fn wanted(services: &Services) -> (Vec<Kind>, Vec<Operation>) {
    use BufferTracingKind as Of;
    let has = |kind: Of| services.buffers.contains_key(&kind);
    let of_hip = [Of::HIP_RUNTIME_API, Of::HIP_RUNTIME_API_EXT];
    let calls: Vec<Operation> = all_calls()
        .filter(|call| {
            let has_operation = |kind: Of, operation: TracingOperation| {
                let service = services.buffers.get(&kind);
                service.is_some_and(|service| service.operations.has(operation))
            };
            let is_shown = of_hip.iter().any(|kind| {
                let mut operations = hip::operations_of(*call);
                operations.any(|operation| has_operation(*kind, operation))
            });
            let own = kinds::of_calls(call.domain).map(Of);
            is_shown || own.is_some_and(|kind| has_operation(kind, call.number.into()))
        })
        .collect();
    let mut kinds = Vec::new();
    for (kind, of) in [
        (Of::KERNEL_DISPATCH, Kind::KERNEL_DISPATCH),
        (Of::KERNEL_DISPATCH, Kind::MEMORY_SET),
        (Of::MEMORY_COPY, Kind::MEMORY_COPY),
        (Of::MEMORY_ALLOCATION, Kind::MEMORY_ALLOCATION),
        (Of::CORRELATION_ID_RETIREMENT, Kind::RETIREMENT),
    ] {
        if has(kind) {
            kinds.push(of);
        }
    }
    if has(Of::KERNEL_DISPATCH) || has(Of::MEMORY_COPY) {
        kinds.push(Kind::COMPLETION);
    }
    // The ids of all calls retire.
    if has(Of::CORRELATION_ID_RETIREMENT) {
        kinds.push(Kind::API);
        if of_hip.into_iter().any(has) {
            kinds.push(Kind::ARGUMENTS);
        }
        return (kinds, Vec::new());
    }
    if !calls.is_empty() {
        kinds.push(Kind::API);
        if of_hip.into_iter().any(has) {
            kinds.push(Kind::ARGUMENTS);
        }
    }
    (kinds, calls)
}

/// The subscriber that keeps the arguments of calls for their records, if those have arguments.
fn keeping(
    context: &Context,
    services: &Services,
    arguments: &Arc<KeptArguments>,
) -> Result<Option<Subscriber>, tool::Error> {
    let kind = BufferTracingKind::HIP_RUNTIME_API_EXT;
    let Some(service) = services.buffers.get(&kind) else {
        return Ok(None);
    };
    let is_wanted = |call: &Operation| {
        let mut operations = hip::operations_of(*call);
        operations.any(|operation| service.operations.has(operation))
    };
    let calls: Vec<Operation> = all_calls().filter(is_wanted).collect();
    let arguments = arguments.clone();
    let subscriber = context
        .gputrail
        .call_back(&calls, move |callback: Callback<'_>, _| {
            if callback.is_enter() {
                arguments.keep(&callback);
            }
        })?;
    Ok(Some(subscriber))
}

/// The service that supplies external ids, if the client does so. It is asked for calls and work of which the context tells, as callbacks or
/// records.
fn supplier(context: &Context, services: &Services) -> Result<Option<Subscriber>, tool::Error> {
    let Some(requests) = services.requests.clone() else {
        return Ok(None);
    };
    let mut operations: Vec<Operation> = all_calls()
        .filter(|call| request_for_call(&requests, services, *call).is_some())
        .collect();
    let of_work: [(_, _, _, &[Operation]); 3] = [
        (
            ExternalCorrelationRequestKind::KERNEL_DISPATCH,
            BufferTracingKind::KERNEL_DISPATCH,
            CallbackTracingKind::KERNEL_DISPATCH,
            &[kernel_dispatch::ENQUEUE, memory_copy::FILL_ENQUEUE],
        ),
        (
            ExternalCorrelationRequestKind::MEMORY_COPY,
            BufferTracingKind::MEMORY_COPY,
            CallbackTracingKind::MEMORY_COPY,
            &[memory_copy::COPY_ENQUEUE],
        ),
        (
            ExternalCorrelationRequestKind::MEMORY_ALLOCATION,
            BufferTracingKind::MEMORY_ALLOCATION,
            CallbackTracingKind::MEMORY_ALLOCATION,
            &[memory_allocation::ALLOCATE, memory_allocation::FREE],
        ),
    ];
    // Values and samples have the ids of kernels.
    let has_kernels = counting::is_configured(context.id) || sampling::is_configured(context.id);
    for (kind, of_buffer, of_callback, of) in of_work {
        let is_told = services.buffers.contains_key(&of_buffer)
            || services.callbacks.contains_key(&of_callback)
            || has_kernels && kind == ExternalCorrelationRequestKind::KERNEL_DISPATCH;
        if is_told && requests.is_for(kind) {
            operations.extend(of);
        }
    }
    if operations.is_empty() {
        return Ok(None);
    }
    let (id, services) = (context.id, services.clone());
    let subscriber = context.gputrail.supply_external_ids(
        &operations,
        move |request: ExternalRequest<'_>| {
            let what = match request.operation() {
                kernel_dispatch::ENQUEUE | memory_copy::FILL_ENQUEUE => (
                    ExternalCorrelationRequestKind::KERNEL_DISPATCH,
                    KernelDispatchOperation::ENQUEUE.0,
                ),
                // The direction is not known yet.
                memory_copy::COPY_ENQUEUE => (
                    ExternalCorrelationRequestKind::MEMORY_COPY,
                    MemoryCopyOperation::NONE.0,
                ),
                memory_allocation::ALLOCATE => (
                    ExternalCorrelationRequestKind::MEMORY_ALLOCATION,
                    MemoryAllocationOperation::ALLOCATE.0,
                ),
                memory_allocation::FREE => (
                    ExternalCorrelationRequestKind::MEMORY_ALLOCATION,
                    MemoryAllocationOperation::FREE.0,
                ),
                call => request_for_call(&requests, &services, call)?,
            };
            asked(&requests, id, request, what)
        },
    )?;
    Ok(Some(subscriber))
}

fn asked(
    requests: &RequestService,
    context: ContextId,
    request: ExternalRequest<'_>,
    what: (ExternalCorrelationRequestKind, TracingOperation),
) -> Option<ExternalId> {
    let thread = request.thread().0.into();
    requests.supply(context, thread, what, request.correlation().0)
}

/// The request for a call that the context tells of: as one of HIP, or else as one of gputrail's kinds.
fn request_for_call(
    requests: &RequestService,
    services: &Services,
    call: Operation,
) -> Option<(ExternalCorrelationRequestKind, TracingOperation)> {
    let has_records = |kind: BufferTracingKind, operation: TracingOperation| {
        let service = services.buffers.get(&kind);
        service.is_some_and(|service| service.operations.has(operation))
    };
    let has_callbacks = |kind: CallbackTracingKind, operation: TracingOperation| {
        let service = services.callbacks.get(&kind);
        service.is_some_and(|service| service.operations.has(operation))
    };
    let hip = ExternalCorrelationRequestKind::HIP_RUNTIME_API;
    if requests.is_for(hip) {
        let told = |operation: &TracingOperation| {
            has_records(BufferTracingKind::HIP_RUNTIME_API, *operation)
                || has_records(BufferTracingKind::HIP_RUNTIME_API_EXT, *operation)
                || has_callbacks(CallbackTracingKind::HIP_RUNTIME_API, *operation)
        };
        if let Some(operation) = hip::operations_of(call).find(told) {
            return Some((hip, operation));
        }
    }
    let own = kinds::of_calls(call.domain)?;
    let kind = ExternalCorrelationRequestKind(own);
    let operation = TracingOperation::from(call.number);
    let is_told = has_records(BufferTracingKind(own), operation)
        || has_callbacks(CallbackTracingKind(own), operation);
    (requests.is_for(kind) && is_told).then_some((kind, operation))
}
