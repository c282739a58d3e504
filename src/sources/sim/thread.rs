//! A thread of the program, and the calls it can make. Each call takes virtual time, is recorded, and returns a status.
//!
//! This module has the common part of all calls and those that do not enqueue work; see `kernels` and `enqueue` for the others.

use super::callbacks::{self, SimSite};
use super::device::{DEVICE_MEMORY, attribute_of_cuda};
use super::host::{HostRef, HostState};
use super::memory::{Pointer, PointerMemory};
use super::operations::SimFunction;
use super::random::Random;
use super::runtime::{Awaited, HOST_MEMORY, Runtime, SimEvent, SimStream, count};
use gputrail_collect::correlation::{CallInProgress, Extra};
use gputrail_collect::switchboard::ReportedPart;
use gputrail_interface::operations::{memory_allocation, resource, synchronization};
use gputrail_record::*;
use std::rc::Rc;

/// The status that a call returns.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct CallStatus(pub(super) i32);

impl CallStatus {
    pub(super) const SUCCESS: CallStatus = CallStatus(0);
    pub(super) const INVALID_VALUE: CallStatus = CallStatus(1);
    pub(super) const OUT_OF_MEMORY: CallStatus = CallStatus(2);
    pub(super) const NOT_READY: CallStatus = CallStatus(3);
}

/// A call in progress.
struct OpenCall {
    function: SimFunction,
    arguments: Vec<u64>,
    /// The object that it made, or the value that it found out: callbacks are told at its exit.
    result: Option<u64>,
}

/// A thread of the program.
pub(super) struct SimThread {
    pub(super) runtime: Rc<Runtime>,
    host: HostState,
    pub(super) random: Random,
    /// The current device.
    pub(super) device: usize,
    last_error: CallStatus,
    /// Calls in progress.
    open: Vec<OpenCall>,
}

/// The operation under which subscribers see a wait.
pub(super) fn wait(what: SynchronizationType) -> Operation {
    Operation {
        number: what.0.into(),
        ..synchronization::COMPLETE
    }
}

/// The address of a thread's stack.
const STACK: usize = 0x7ffd_0000_0000;
/// The size of a stack frame.
const FRAME: usize = 0xc0;

impl SimThread {
    pub(super) fn new(runtime: Rc<Runtime>, host: HostState, random: Random) -> SimThread {
        SimThread {
            runtime,
            host,
            random,
            device: 0,
            last_error: CallStatus::SUCCESS,
            open: Vec::new(),
        }
    }

    /// The thread's state, while the result lives.
    pub(super) fn host(&mut self) -> HostRef<'_> {
        self.host.borrow()
    }

    /// The thread as callbacks see it.
    pub(super) fn site(&mut self) -> SimSite {
        self.host.site()
    }

    /// Computes for about `span` outside of the runtime.
    pub(super) async fn compute(&mut self, span: Nanos) {
        let span = Nanos(self.random.host(span.0));
        self.runtime.executor.sleep(span).await;
    }

    /// Enters a call. Its host time passes before it takes effect.
    pub(super) async fn enter(
        &mut self,
        function: SimFunction,
        arguments: &[u64],
    ) -> CallInProgress {
        self.runtime.keep_room();
        self.open.push(OpenCall {
            function,
            arguments: arguments.to_vec(),
            result: None,
        });
        let frame = STACK - self.open.len() * FRAME;
        let now = self.runtime.ticks();
        let call = self.host().enter(function.operation(), frame, now);
        if function.has_arguments() {
            self.host().write_arguments(&call, arguments);
        }
        let context = self.runtime.devices[self.device].context;
        callbacks::call(&self.site(), &call, context, (function, arguments), None);
        self.compute(function.cost()).await;
        call
    }

    /// Has the exit of the innermost call in progress tell its result: what it made or found out.
    pub(super) fn returns(&mut self, result: u64) {
        if let Some(open) = self.open.last_mut() {
            open.result = Some(result);
        }
    }

    /// Exits a call.
    pub(super) async fn exit<R>(
        &mut self,
        call: CallInProgress,
        result: Result<R, CallStatus>,
    ) -> Result<R, CallStatus> {
        self.compute(Nanos(90)).await;
        let open = self.open.pop();
        let counts = &self.runtime.counts;
        count(&counts.calls);
        let mut extra = Extra::NONE;
        let status = match &result {
            Ok(_) => CallStatus::SUCCESS,
            // Not an error.
            Err(CallStatus::NOT_READY) => CallStatus::NOT_READY,
            Err(status) => {
                count(&counts.failed_calls);
                self.last_error = *status;
                extra.flags = flags::FAILED;
                *status
            }
        };
        let now = self.runtime.ticks();
        self.host().exit(&call, now, status.0, extra);
        if let Some(open) = open {
            let context = self.runtime.devices[self.device].context;
            let called = (open.function, open.arguments.as_slice());
            let returned = (status.0, open.result);
            callbacks::call(&self.site(), &call, context, called, Some(returned));
        }
        result
    }

    /// A call without further records.
    async fn plain(&mut self, function: SimFunction, arguments: &[u64]) {
        let call = self.enter(function, arguments).await;
        let _ = self.exit(call, Ok(())).await;
    }

    /// Pushes an external id.
    pub(super) fn push_external(&mut self, id: ExternalId) {
        let now = self.runtime.ticks();
        self.host().push_external(ExternalKind::CUSTOM0, id, now);
    }

    pub(super) fn pop_external(&mut self) {
        let now = self.runtime.ticks();
        self.host().pop_external(ExternalKind::CUSTOM0, now);
    }

    pub(super) async fn init(&mut self) {
        self.plain(SimFunction::Init, &[0]).await;
    }

    pub(super) async fn shutdown(&mut self) {
        let call = self.enter(SimFunction::Shutdown, &[]).await;
        let site = self.site();
        for device in self.runtime.devices.iter() {
            for queue in device.queue_ids() {
                callbacks::object::<Queue>(&site, &call, resource::QUEUE_DESTROYED, queue.0);
            }
            let context = device.context.0;
            callbacks::object::<Context>(&site, &call, resource::CONTEXT_DESTROYED, context);
        }
        let _ = self.exit(call, Ok(())).await;
    }

    pub(super) async fn device_count(&mut self) -> usize {
        let call = self.enter(SimFunction::GetDeviceCount, &[]).await;
        let count = self.runtime.devices.len();
        self.returns(count as u64);
        let _ = self.exit(call, Ok(())).await;
        count
    }

    pub(super) async fn set_device(&mut self, device: usize) -> Result<(), CallStatus> {
        let call = self.enter(SimFunction::SetDevice, &[device as u64]).await;
        if device >= self.runtime.devices.len() {
            return self.exit(call, Err(CallStatus::INVALID_VALUE)).await;
        }
        self.device = device;
        self.exit(call, Ok(())).await
    }

    /// Asks for an attribute of the device, by the number that it has in CUDA.
    pub(super) async fn device_attribute(&mut self, attribute: u64) {
        let arguments = [attribute, self.device as u64];
        let call = self
            .enter(SimFunction::DeviceGetAttribute, &arguments)
            .await;
        self.returns(attribute_of_cuda(attribute));
        let _ = self.exit(call, Ok(())).await;
    }

    /// Asks for the free memory of the device.
    pub(super) async fn memory_info(&mut self) {
        let call = self.enter(SimFunction::MemGetInfo, &[]).await;
        let location = PointerMemory::device(self.device);
        let free = self
            .runtime
            .memory
            .borrow()
            .free_bytes(location, DEVICE_MEMORY);
        self.returns(free);
        let _ = self.exit(call, Ok(())).await;
    }

    /// Returns and clears the last error of this thread.
    pub(super) async fn last_error(&mut self) -> CallStatus {
        self.plain(SimFunction::GetLastError, &[]).await;
        std::mem::replace(&mut self.last_error, CallStatus::SUCCESS)
    }

    pub(super) async fn malloc(&mut self, bytes: u64) -> Result<Pointer, CallStatus> {
        let location = PointerMemory::device(self.device);
        self.allocate(SimFunction::Malloc, location, bytes, DEVICE_MEMORY)
            .await
    }

    pub(super) async fn malloc_host(&mut self, bytes: u64) -> Result<Pointer, CallStatus> {
        self.allocate(
            SimFunction::MallocHost,
            PointerMemory::PINNED,
            bytes,
            HOST_MEMORY,
        )
        .await
    }

    /// Allocates memory that moves to whoever accesses it. Its pages are the host's at first.
    pub(super) async fn malloc_managed(&mut self, bytes: u64) -> Result<Pointer, CallStatus> {
        let location = PointerMemory::MANAGED;
        let function = SimFunction::MallocManaged;
        let pointer = self
            .allocate(function, location, bytes, HOST_MEMORY)
            .await?;
        self.runtime.managed.borrow_mut().add(pointer, bytes);
        Ok(pointer)
    }

    async fn allocate(
        &mut self,
        function: SimFunction,
        location: PointerMemory,
        bytes: u64,
        capacity: u64,
    ) -> Result<Pointer, CallStatus> {
        let call = self.enter(function, &[bytes]).await;
        let pointer = self
            .runtime
            .memory
            .borrow_mut()
            .allocate(location, bytes, capacity);
        let result = pointer.ok_or(CallStatus::OUT_OF_MEMORY);
        if let Some(pointer) = pointer {
            self.returns(pointer.0);
            self.allocation(
                &call,
                AllocationOperation::ALLOCATE,
                location,
                pointer,
                bytes,
            );
        }
        self.exit(call, result).await
    }

    pub(super) async fn free(&mut self, pointer: Pointer) -> Result<(), CallStatus> {
        let pinned = self.runtime.memory.borrow().location(pointer) == PointerMemory::PINNED;
        let function = if pinned {
            SimFunction::FreeHost
        } else {
            SimFunction::Free
        };
        let call = self.enter(function, &[pointer.0]).await;
        self.runtime.managed.borrow_mut().remove(pointer);
        let freed = self.runtime.memory.borrow_mut().free(pointer);
        if let Some(freed) = freed {
            let free = AllocationOperation::FREE;
            self.allocation(&call, free, freed.location, pointer, freed.bytes);
        }
        self.exit(call, freed.map(|_| ()).ok_or(CallStatus::INVALID_VALUE))
            .await
    }

    fn allocation(
        &mut self,
        call: &CallInProgress,
        operation: AllocationOperation,
        location: PointerMemory,
        pointer: Pointer,
        bytes: u64,
    ) {
        let mut record = Allocation::blank();
        record.correlation = call.correlation;
        record.start = call.start;
        record.end = self.runtime.ticks();
        (record.address, record.bytes) = (pointer.0, bytes);
        if let Some(device) = location.device {
            record.agent = self.runtime.devices[device].agent;
        }
        record.context = self.runtime.devices[self.device].context;
        record.thread = self.host().thread();
        record.operation = operation;
        record.memory = location.kind;
        let operation = match operation {
            AllocationOperation::FREE => memory_allocation::FREE,
            _ => memory_allocation::ALLOCATE,
        };
        let none = KernelId::NONE;
        callbacks::begin(
            &self.site(),
            call,
            ReportedPart::Work,
            operation,
            none,
            &record,
        );
        self.host().write(record);
        callbacks::end(
            &self.site(),
            call,
            ReportedPart::Work,
            operation,
            none,
            &record,
        );
    }

    pub(super) async fn stream_create(
        &mut self,
        name: &str,
        priority: i32,
        flag: StreamFlag,
    ) -> SimStream {
        let call = self
            .enter(SimFunction::StreamCreate, &[priority as u64])
            .await;
        let stream = self.runtime.new_stream(self.device, name, (priority, flag));
        let id = self.stream_id(stream);
        let handle = self.runtime.streams.borrow()[stream.0].handle;
        self.returns(handle);
        callbacks::object::<gputrail_record::Stream>(
            &self.site(),
            &call,
            resource::STREAM_CREATED,
            id as u32,
        );
        let _ = self.exit(call, Ok(())).await;
        stream
    }

    pub(super) async fn stream_destroy(&mut self, stream: SimStream) {
        let id = self.stream_id(stream);
        let call = self.enter(SimFunction::StreamDestroy, &[id]).await;
        let (gone, id) = (resource::STREAM_DESTROYED, id as u32);
        callbacks::object::<gputrail_record::Stream>(&self.site(), &call, gone, id);
        let _ = self.exit(call, Ok(())).await;
    }

    pub(super) async fn event_create(&mut self) -> SimEvent {
        let call = self.enter(SimFunction::EventCreate, &[]).await;
        let event = self.runtime.new_event(self.device);
        self.returns(self.event_id(event).0.into());
        let _ = self.exit(call, Ok(())).await;
        event
    }

    pub(super) async fn event_destroy(&mut self, event: SimEvent) {
        let id = self.event_id(event);
        self.plain(SimFunction::EventDestroy, &[id.0.into()]).await;
    }

    /// Returns `NOT_READY` unless the work captured by the event has completed.
    pub(super) async fn event_query(&mut self, event: SimEvent) -> Result<(), CallStatus> {
        let id = self.event_id(event);
        let call = self.enter(SimFunction::EventQuery, &[id.0.into()]).await;
        let result = match self.runtime.awaited_event(event) {
            Some(awaited) if awaited.completed.count() < awaited.count => {
                Err(CallStatus::NOT_READY)
            }
            _ => Ok(()),
        };
        self.exit(call, result).await
    }

    /// Waits for all work in the stream.
    pub(super) async fn stream_synchronize(&mut self, stream: SimStream) {
        let id = self.stream_id(stream);
        let call = self.enter(SimFunction::StreamSynchronize, &[id]).await;
        let awaited = self.runtime.awaited(stream);
        let what = SynchronizationType::STREAM_SYNCHRONIZE;
        self.synchronize(&call, what, &awaited, None).await;
        let _ = self.exit(call, Ok(())).await;
    }

    /// Waits for the work captured by the event.
    pub(super) async fn event_synchronize(&mut self, event: SimEvent) {
        let id = self.event_id(event);
        let call = self
            .enter(SimFunction::EventSynchronize, &[id.0.into()])
            .await;
        if let Some(awaited) = self.runtime.awaited_event(event) {
            let what = SynchronizationType::EVENT_SYNCHRONIZE;
            self.synchronize(&call, what, &awaited, Some(id)).await;
        }
        let _ = self.exit(call, Ok(())).await;
    }

    /// Waits for all work on the device.
    pub(super) async fn device_synchronize(&mut self) {
        let call = self.enter(SimFunction::DeviceSynchronize, &[]).await;
        let streams = self.runtime.streams.borrow().len();
        let of_device = (0..streams)
            .map(SimStream)
            .filter(|stream| self.runtime.streams.borrow()[stream.0].device == self.device);
        let all: Vec<Awaited> = of_device
            .map(|stream| self.runtime.awaited(stream))
            .collect();
        let what = SynchronizationType::CONTEXT_SYNCHRONIZE;
        let before = self.synchronization(&call, what);
        let (operation, none) = (wait(what), KernelId::NONE);
        callbacks::begin(
            &self.site(),
            &call,
            ReportedPart::Wait,
            operation,
            none,
            &before,
        );
        for awaited in &all {
            awaited
                .completed
                .wait(&self.runtime.executor, awaited.count)
                .await;
        }
        let mut record = self.synchronization(&call, what);
        if let Some(last) = all.iter().max_by_key(|awaited| awaited.last) {
            record.waited_for = last.last;
            self.host().write(record);
        }
        callbacks::end(
            &self.site(),
            &call,
            ReportedPart::Wait,
            operation,
            none,
            &record,
        );
        let _ = self.exit(call, Ok(())).await;
    }

    /// Waits on the host, and writes the record.
    pub(super) async fn synchronize(
        &mut self,
        call: &CallInProgress,
        what: SynchronizationType,
        awaited: &Awaited,
        event: Option<EventId>,
    ) {
        let before = self.synchronization(call, what);
        let operation = wait(what);
        let none = KernelId::NONE;
        callbacks::begin(
            &self.site(),
            call,
            ReportedPart::Wait,
            operation,
            none,
            &before,
        );
        awaited
            .completed
            .wait(&self.runtime.executor, awaited.count)
            .await;
        let mut record = self.synchronization(call, what);
        record.work.stream = self.runtime.streams.borrow()[awaited.stream.0].id;
        record.event = event.unwrap_or_default();
        record.events = event.is_some().into();
        record.waited_for = awaited.last;
        self.host().write(record);
        callbacks::end(
            &self.site(),
            call,
            ReportedPart::Wait,
            operation,
            none,
            &record,
        );
    }

    /// The record of a synchronization that ends now.
    pub(super) fn synchronization(
        &mut self,
        call: &CallInProgress,
        what: SynchronizationType,
    ) -> Synchronization {
        let thread = self.host().thread();
        let device = &self.runtime.devices[self.device];
        let mut record = Synchronization::blank();
        record.work = WorkHeader {
            correlation: call.correlation,
            enqueued: call.start,
            agent: device.agent,
            context: device.context,
            thread,
            ..WorkHeader::default()
        };
        record.end = self.runtime.ticks();
        record.what = what;
        record
    }

    pub(super) fn stream_id(&self, stream: SimStream) -> u64 {
        self.runtime.streams.borrow()[stream.0].id.0.into()
    }

    pub(super) fn event_id(&self, event: SimEvent) -> EventId {
        self.runtime.events.borrow()[event.0].id
    }
}
