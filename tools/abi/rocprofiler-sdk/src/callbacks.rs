//! Callbacks of clients: what gputrail's subscribers are told, as the API tells it.
//!
//! Calls, enqueues, allocations, objects and markers are told on the thread that makes the call. A completion is told on a thread that
//! the runtime chooses, with the thread of the enqueue in its record. Of a copy, the enter comes with its enqueue, and the exit with
//! its completion; of one that the runtime refuses, at once, without times. What a callback itself calls is not told of.
//!
//! The records of markers are put into their buffers here, too, so that they have the ids of the callbacks.

use crate::context::{BufferService, CallbackService, Context, Services};
use crate::hip::{self, Arguments, HipData};
use crate::markers::{self, Begun, MarkerData, MarkerIds};
use crate::objects;
use crate::{kinds, payload};
use core::ffi::c_void;
use gputrail_abi::activity::{RangeEvent, Ranges, Transfer};
use gputrail_abi::functions::{all_calls, returned};
use gputrail_abi::lock;
use gputrail_record::{Allocation, Completion, Domain, Marker, MemoryCopy, Operation, WorkId};
use gputrail_rocprofiler::{
    ApiRecord, BufferCategory, BufferTracingKind, CallbackPhase, CallbackTracingKind as Kind,
    CallbackTracingRecord, ContextId, CorrelationId, KernelDispatchData, KernelDispatchOperation,
    MarkerCoreRangeApi, MemoryAllocationData, MemoryCopyData, TracingOperation, UserData,
};
use gputrail_tool::events::{kernel_dispatch, memory_allocation, memory_copy};
use gputrail_tool::{self as tool, Callback, Phase, Subscriber};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// The most arguments of a call of a kind of gputrail's.
const ARGUMENTS: usize = 20;
/// Work that is followed at a time. The completions of more are not told.
const MAX_FOLLOWED: usize = 1 << 16;

/// The payload of a callback on a call of OpenCL or of the simulated GPU's runtime (`rocprofiler_gputrail_call_data_t`).
#[repr(C)]
struct CallData {
    size: u64,
    count: u64,
    arguments: [u64; ARGUMENTS],
    result: u64,
}

/// Work or memory, of whose begin and end clients are told.
#[derive(Copy, Clone)]
enum Payload {
    Kernel(KernelDispatchData),
    Copy(TracingOperation, MemoryCopyData),
    Memory(TracingOperation, MemoryAllocationData),
}

impl Payload {
    /// The work or memory that a callback is about, if it is told of. Work has an id once it is enqueued.
    fn of(callback: &Callback<'_>) -> Option<(WorkId, Payload)> {
        let of_kernel = callback.record().map(payload::dispatch_info);
        let dispatch = of_kernel.or_else(|| callback.record().map(payload::fill_info));
        if let Some(dispatch_info) = dispatch {
            let data = KernelDispatchData {
                size: size_of::<KernelDispatchData>() as u64,
                start_timestamp: 0,
                end_timestamp: 0,
                dispatch_info,
            };
            return Some((WorkId(dispatch_info.dispatch_id), Payload::Kernel(data)));
        }
        if let Some(copy) = callback.record::<MemoryCopy>() {
            let shown = Transfer::of(copy)?;
            let (from, to) = (payload::end(shown.from), payload::end(shown.to));
            let data = MemoryCopyData {
                size: size_of::<MemoryCopyData>() as u64,
                start_timestamp: 0,
                end_timestamp: 0,
                dst_agent_id: to.0,
                src_agent_id: from.0,
                bytes: copy.bytes,
                dst_address: to.1,
                src_address: from.1,
            };
            let copied = Payload::Copy(payload::direction(&shown).0, data);
            return Some((copy.work.id, copied));
        }
        let one = callback.record::<Allocation>()?;
        let data = MemoryAllocationData {
            size: size_of::<MemoryAllocationData>() as u64,
            start_timestamp: one.start.0,
            end_timestamp: one.end.0,
            agent_id: payload::agent_of_memory(one),
            address: one.address,
            allocation_size: one.bytes,
        };
        let memory = Payload::Memory(payload::allocation(one)?.0, data);
        Some((WorkId::NONE, memory))
    }

    /// Puts the times of work that has completed.
    fn put_times(&mut self, completion: &Completion) {
        let (start, end) = match self {
            Payload::Kernel(data) => (&mut data.start_timestamp, &mut data.end_timestamp),
            Payload::Copy(_, data) => (&mut data.start_timestamp, &mut data.end_timestamp),
            Payload::Memory(..) => return,
        };
        (*start, *end) = (completion.start.0, completion.end.0);
    }
}

thread_local! {
    /// What has begun in the calls of the thread, by context and call, until it is enqueued or refused.
    static ENTERED: RefCell<Vec<(u64, u64, Payload)>> = const { RefCell::new(Vec::new()) };
}

/// The callbacks of one context.
pub struct Told {
    context: ContextId,
    services: HashMap<Kind, CallbackService>,
    /// The buffers of the context that get records of markers, by kind.
    buffers: HashMap<Kind, BufferService>,
    /// Work that has been enqueued, with its thread.
    followed: Mutex<HashMap<WorkId, (u64, Payload)>>,
    ranges: Mutex<Ranges<Begun>>,
}

/// The ids of a callback.
#[derive(Copy, Clone)]
pub struct Ids {
    /// The thread.
    pub thread: u64,
    /// The call.
    pub correlation: CorrelationId,
}

impl Ids {
    /// The ids of what belongs to no call, on a thread.
    pub fn of_no_call(thread: u64) -> Ids {
        Ids {
            thread,
            correlation: CorrelationId {
                internal: 0,
                external: UserData::from(0),
                ancestor: 0,
            },
        }
    }

    /// The ids of a callback of gputrail's, within the call around it.
    fn of(callback: &Callback<'_>, ancestor: u64) -> Ids {
        Ids {
            thread: callback.thread().0.into(),
            correlation: CorrelationId {
                internal: callback.correlation().0,
                external: UserData::from(callback.external().0),
                ancestor,
            },
        }
    }
}

/// The subscribers of a context. Those of streams come first, so that a stream is set before the call in it is told.
pub fn subscribe(context: &Context, services: &Services) -> Result<Vec<Subscriber>, tool::Error> {
    let told = Arc::new(Told::new(context.id, services));
    let mut subscribers = Vec::new();
    let mut add = |operations: &[Operation], tell: fn(&Told, Callback<'_>, &mut u64)| {
        if operations.is_empty() {
            return Ok(());
        }
        let told = told.clone();
        let subscribed =
            context
                .gputrail
                .call_back(operations, move |callback: Callback<'_>, word| {
                    tell(&told, callback, word);
                });
        subscribers.push(subscribed?);
        Ok::<(), tool::Error>(())
    };
    if let Some(service) = told.services.get(&Kind::HIP_STREAM) {
        add(&objects::of_streams(&service.operations), objects::stream)?;
    }
    add(&told.operations(), Told::tell)?;
    add(&told.own_calls(), Told::tell_own_call)?;
    Ok(subscribers)
}

/// The kinds of markers.
const OF_MARKERS: [(Kind, BufferTracingKind); 2] = [
    (Kind::MARKER_CORE_API, BufferTracingKind::MARKER_CORE_API),
    (
        Kind::MARKER_CORE_RANGE_API,
        BufferTracingKind::MARKER_CORE_RANGE_API,
    ),
];

impl Told {
    /// The records of a context with these services. Buffers of other contexts get nothing.
    pub fn new(context: ContextId, services: &Services) -> Told {
        let buffer = |(kind, of): (Kind, BufferTracingKind)| {
            let service = services.buffers.get(&of)?;
            (service.buffer.context == context).then(|| (kind, service.clone()))
        };
        Told {
            context,
            services: services.callbacks.clone(),
            buffers: OF_MARKERS.into_iter().filter_map(buffer).collect(),
            followed: Mutex::default(),
            ranges: Mutex::default(),
        }
    }

    /// The context.
    pub fn context(&self) -> ContextId {
        self.context
    }

    /// Whether anybody is told of a kind of markers.
    fn has_markers(&self, kind: Kind) -> bool {
        self.services.contains_key(&kind) || self.buffers.contains_key(&kind)
    }

    /// The subjects of all services but those of streams and of gputrail's own kinds.
    fn operations(&self) -> Vec<Operation> {
        let mut all = Vec::new();
        if let Some(service) = self.services.get(&Kind::HIP_RUNTIME_API) {
            all.extend(all_calls().filter(|call| {
                let mut operations = hip::operations_of(*call);
                operations.any(|operation| service.operations.has(operation))
            }));
        }
        let of_kinds: [(Kind, &[Operation]); 3] = [
            (
                Kind::KERNEL_DISPATCH,
                &[
                    kernel_dispatch::ENQUEUE,
                    kernel_dispatch::COMPLETE,
                    memory_copy::FILL_ENQUEUE,
                    memory_copy::FILL_COMPLETE,
                ],
            ),
            (
                Kind::MEMORY_COPY,
                &[memory_copy::COPY_ENQUEUE, memory_copy::COPY_COMPLETE],
            ),
            (
                Kind::MEMORY_ALLOCATION,
                &[memory_allocation::ALLOCATE, memory_allocation::FREE],
            ),
        ];
        for (kind, operations) in of_kinds {
            if self.services.contains_key(&kind) {
                all.extend(operations);
            }
        }
        if self.services.contains_key(&Kind::CODE_OBJECT) {
            all.extend(objects::OF_CODE);
        }
        if OF_MARKERS.iter().any(|(kind, _)| self.has_markers(*kind)) {
            let markers = tool::operations(Domain::MARKER).unwrap_or_default();
            // The others are no markers of ROCTx.
            all.extend(
                markers
                    .into_iter()
                    .filter(|one| (1..=5).contains(&one.number)),
            );
        }
        all
    }

    /// The subjects of the services of gputrail's own kinds.
    fn own_calls(&self) -> Vec<Operation> {
        let is_told = |call: &Operation| {
            let kind = kinds::of_calls(call.domain).map(Kind);
            kind.is_some_and(|kind| self.service(kind, call.number.into()).is_some())
        };
        all_calls().filter(is_told).collect()
    }

    /// The service of a kind, if it is for `operation`.
    pub fn service(&self, kind: Kind, operation: TracingOperation) -> Option<&CallbackService> {
        let service = self.services.get(&kind);
        service.filter(|service| service.operations.has(operation))
    }

    /// Calls the client. `word` is its own, which it finds again at the exit.
    pub fn call<T>(
        &self,
        (kind, operation): (Kind, TracingOperation),
        phase: CallbackPhase,
        ids: Ids,
        payload: &mut T,
        word: &mut u64,
    ) {
        let Some(service) = self.service(kind, operation) else {
            return;
        };
        let record = CallbackTracingRecord {
            context_id: self.context,
            thread_id: ids.thread,
            correlation_id: ids.correlation,
            kind,
            operation,
            phase,
            payload: core::ptr::from_mut(payload).cast::<c_void>(),
        };
        let word = core::ptr::from_mut(word).cast::<UserData>();
        // SAFETY: the client's function for this, with the payload of the kind, and a word, which any bits are a value of.
        unsafe { (service.function)(record, word, service.data) };
    }

    /// Tells of a callback of gputrail's.
    fn tell(&self, callback: Callback<'_>, word: &mut u64) {
        match callback.operation().domain {
            Domain::OPENCL | Domain::SIM => self.tell_call(callback, word),
            Domain::KERNEL_DISPATCH | Domain::MEMORY_COPY | Domain::MEMORY_ALLOCATION => {
                self.tell_payload(callback, word);
            }
            Domain::RESOURCE => objects::code(self, callback, word),
            Domain::MARKER => self.tell_marker(callback, word),
            _ => {}
        }
    }

    /// A call, under the operation of HIP that does the same.
    fn tell_call(&self, callback: Callback<'_>, word: &mut u64) {
        let (Some(phase), Some(shown)) = (phase(&callback), hip::shown(callback.operation()))
        else {
            return;
        };
        let ids = Ids::of(&callback, ancestor(&callback));
        let arguments = Arguments::of(&callback);
        let mut data = HipData::new();
        data.put(shown, &arguments);
        if phase == CallbackPhase::EXIT {
            data.put_result(shown, &arguments, &callback);
        }
        let operation = shown.number(Some(&arguments)) as TracingOperation;
        let what = (Kind::HIP_RUNTIME_API, operation);
        self.call(what, phase, ids, &mut data, word);
    }

    /// A call, under its own operation.
    fn tell_own_call(&self, callback: Callback<'_>, word: &mut u64) {
        let operation = callback.operation();
        let (Some(phase), Some(kind)) = (phase(&callback), kinds::of_calls(operation.domain))
        else {
            return;
        };
        let ids = Ids::of(&callback, ancestor(&callback));
        let mut data = CallData {
            size: size_of::<CallData>() as u64,
            count: 0,
            arguments: [0; ARGUMENTS],
            result: returned(&callback),
        };
        for (to, argument) in data.arguments.iter_mut().zip(callback.arguments()) {
            *to = argument.value();
            data.count += 1;
        }
        let what = (Kind(kind), operation.number.into());
        self.call(what, phase, ids, &mut data, word);
    }

    /// Work or memory. What the runtime refuses has an end, too.
    fn tell_payload(&self, callback: Callback<'_>, word: &mut u64) {
        let ids = Ids::of(&callback, current());
        match (callback.phase(), Payload::of(&callback)) {
            (Some(Phase::Enter), Some((_, payload))) => {
                self.enter(ids, payload);
                self.call_with(payload, CallbackPhase::ENTER, ids, word);
            }
            (Some(Phase::Exit), Some((work, payload))) => {
                self.leave(ids, |_| {});
                self.follow(work, ids.thread, payload);
                // A copy ends when it has completed.
                if !matches!(payload, Payload::Copy(..)) {
                    self.call_with(payload, CallbackPhase::EXIT, ids, word);
                }
            }
            (Some(Phase::Exit), None) => self.leave(ids, |payload| {
                self.call_with(payload, CallbackPhase::EXIT, ids, word);
            }),
            _ => {
                if let Some(completion) = callback.record::<Completion>()
                    && let Some((thread, mut payload)) = self.followed(completion.work)
                {
                    payload.put_times(completion);
                    let phase = match payload {
                        Payload::Kernel(_) => CallbackPhase::NONE,
                        _ => CallbackPhase::EXIT,
                    };
                    self.call_with(payload, phase, Ids { thread, ..ids }, word);
                }
            }
        }
    }

    /// Calls the client about work or memory.
    fn call_with(&self, payload: Payload, phase: CallbackPhase, ids: Ids, word: &mut u64) {
        match payload {
            Payload::Kernel(mut data) => {
                let operation = match phase {
                    CallbackPhase::NONE => KernelDispatchOperation::COMPLETE,
                    _ => KernelDispatchOperation::ENQUEUE,
                };
                let what = (Kind::KERNEL_DISPATCH, operation.0);
                self.call(what, phase, ids, &mut data, word);
            }
            Payload::Copy(operation, mut data) => {
                self.call((Kind::MEMORY_COPY, operation), phase, ids, &mut data, word);
            }
            Payload::Memory(operation, mut data) => {
                let what = (Kind::MEMORY_ALLOCATION, operation);
                self.call(what, phase, ids, &mut data, word);
            }
        }
    }

    /// Keeps what begins in a call.
    fn enter(&self, ids: Ids, payload: Payload) {
        let (context, call) = (self.context.handle, ids.correlation.internal);
        // The thread may be ending.
        let _ = ENTERED.try_with(|entered| {
            let mut entered = entered.borrow_mut();
            // A context that was stopped has not seen the end.
            entered.retain(|(of, within, _)| *of != context || *within == call);
            entered.push((context, call, payload));
        });
    }

    /// Gives what has begun in a call to `end`.
    fn leave(&self, ids: Ids, mut end: impl FnMut(Payload)) {
        let (context, call) = (self.context.handle, ids.correlation.internal);
        let is_it = |one: &(u64, u64, Payload)| (one.0, one.1) == (context, call);
        let take = |entered: &RefCell<Vec<(u64, u64, Payload)>>| {
            let mut entered = entered.borrow_mut();
            let place = entered.iter().position(is_it)?;
            Some(entered.remove(place).2)
        };
        while let Some(payload) = ENTERED.try_with(take).ok().flatten() {
            end(payload);
        }
    }

    /// Keeps what is told again when the work has completed; of a command buffer, its first part.
    fn follow(&self, work: WorkId, thread: u64, payload: Payload) {
        let mut followed = lock(&self.followed);
        if work.is_some() && followed.len() < MAX_FOLLOWED {
            followed.entry(work).or_insert((thread, payload));
        }
    }

    fn followed(&self, work: WorkId) -> Option<(u64, Payload)> {
        lock(&self.followed).remove(&work)
    }

    fn tell_marker(&self, callback: Callback<'_>, word: &mut u64) {
        let Some(marker) = callback.record::<Marker>() else {
            return;
        };
        let external = callback.external().0;
        let ids = |correlation| Ids {
            thread: marker.thread.0.into(),
            correlation: CorrelationId {
                internal: correlation,
                external: UserData::from(external),
                ancestor: current(),
            },
        };
        let of_marker = MarkerIds::of(marker, self.context);
        let now = marker.time.0;
        let mut data = MarkerData::new(marker);
        if let Some(function) = markers::function(marker.what) {
            let (what, ids) = ((Kind::MARKER_CORE_API, function), ids(of_marker.call));
            for phase in [CallbackPhase::ENTER, CallbackPhase::EXIT] {
                self.call(what, phase, ids, &mut data, word);
            }
            self.put_marker(what, ids, (now, now));
        }
        let kind = Kind::MARKER_CORE_RANGE_API;
        if !self.has_markers(kind) {
            return;
        }
        *word = 0;
        let event = lock(&self.ranges).event(marker);
        match event {
            Some(RangeEvent::Mark) => {
                let what = (kind, MarkerCoreRangeApi::roctxMarkA.0);
                let ids = ids(of_marker.range);
                for phase in [CallbackPhase::ENTER, CallbackPhase::EXIT] {
                    self.call(what, phase, ids, &mut data, word);
                }
                self.put_marker(what, ids, (now, now));
            }
            Some(RangeEvent::Begin) => {
                let begun = Begun::new(marker, of_marker.range, external);
                lock(&self.ranges).begin(marker, begun);
                let (what, ids) = ((kind, begun.operation), ids(begun.correlation));
                self.call(what, CallbackPhase::ENTER, ids, &mut data, word);
                if let Some(begun) = lock(&self.ranges).begun(marker) {
                    begun.data = *word;
                }
            }
            Some(RangeEvent::End(begun)) => {
                data.arguments[0] =
                    markers::message(begun.name).as_ptr().expose_provenance() as u64;
                *word = begun.data;
                let mut ids = Ids {
                    thread: begun.thread.0.into(),
                    ..ids(begun.correlation)
                };
                let what = (kind, begun.operation);
                self.call(what, CallbackPhase::EXIT, ids, &mut data, word);
                ids.correlation.external = UserData::from(begun.external);
                self.put_marker(what, ids, (begun.time, now));
            }
            None => {}
        }
    }

    /// Puts the record of a marker or a range, if a buffer is for it.
    fn put_marker(
        &self,
        (kind, operation): (Kind, TracingOperation),
        ids: Ids,
        (start, end): (u64, u64),
    ) {
        let service = self.buffers.get(&kind);
        let Some(service) = service.filter(|service| service.operations.has(operation)) else {
            return;
        };
        let of_kind = OF_MARKERS.iter().find(|(known, _)| *known == kind);
        let Some((_, kind)) = of_kind else {
            return;
        };
        let record = ApiRecord {
            size: size_of::<ApiRecord>() as u64,
            kind: *kind,
            operation,
            correlation_id: ids.correlation,
            start_timestamp: start,
            end_timestamp: end,
            thread_id: ids.thread,
        };
        let buffer = &service.buffer;
        buffer.put_without_waiting(BufferCategory::TRACING, kind.0, &record);
    }
}

/// Whether a call or an enqueue begins or has ended; none of what happens once.
pub fn phase(callback: &Callback<'_>) -> Option<CallbackPhase> {
    match callback.phase()? {
        Phase::Enter => Some(CallbackPhase::ENTER),
        Phase::Exit => Some(CallbackPhase::EXIT),
        _ => None,
    }
}

/// A call in progress on a thread.
struct OpenCall {
    correlation: u64,
    has_ended: bool,
}

thread_local! {
    /// The calls of the thread that clients have been told of, each within the one before. One that has ended stays until the next
    /// one begins: several contexts are told of it.
    static OPEN: RefCell<Vec<OpenCall>> = const { RefCell::new(Vec::new()) };
}

/// The call around the one that a callback is about; 0 if there is none.
pub fn ancestor(callback: &Callback<'_>) -> u64 {
    let correlation = callback.correlation().0;
    let around = |open: &RefCell<Vec<OpenCall>>| {
        let Ok(mut open) = open.try_borrow_mut() else {
            return 0;
        };
        let known = open
            .iter()
            .rposition(|call| call.correlation == correlation);
        let place = match known {
            Some(place) => {
                // A call that is left above it was left by longjmp or an exception.
                open.truncate(place + 1);
                place
            }
            None => {
                while open.last().is_some_and(|last| last.has_ended) {
                    open.pop();
                }
                open.push(OpenCall {
                    correlation,
                    has_ended: false,
                });
                open.len() - 1
            }
        };
        open[place].has_ended |= !callback.is_enter();
        match place {
            0 => 0,
            place => open[place - 1].correlation,
        }
    };
    // The thread may be ending.
    OPEN.try_with(around).unwrap_or(0)
}

/// The call around the one in progress on this thread, as far as clients have been told of them; 0 if there is none.
fn current() -> u64 {
    let around = |open: &RefCell<Vec<OpenCall>>| {
        let open = open.try_borrow().ok()?;
        let mut calls = open.iter().rev().filter(|call| !call.has_ended);
        calls.nth(1).map(|call| call.correlation)
    };
    OPEN.try_with(around).ok().flatten().unwrap_or(0)
}
