//! A thread of the program, and the calls it can make. Each call takes virtual time, is recorded, and returns a status.
//!
//! This module has the common part of all calls and those that do not enqueue work; see `kernels` and `enqueue` for the others.

use super::callbacks::{self, Site};
use super::device::DEVICE_MEMORY;
use super::host::{Host, HostRef};
use super::memory::{MemoryLocation, Pointer};
use super::operations::Function;
use super::random::Random;
use super::runtime::{Awaited, Event, HOST_MEMORY, Runtime, Stream, count};
use gputrail_collect::correlation::{CallInProgress, Extra};
use gputrail_collect::switchboard::Within;
use gputrail_interface::operations::{memory_allocation, resource, synchronization};
use gputrail_record::*;
use std::rc::Rc;

/// The status that a call returns.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Status(pub(super) i32);

impl Status {
    pub(super) const SUCCESS: Status = Status(0);
    pub(super) const INVALID_VALUE: Status = Status(1);
    pub(super) const OUT_OF_MEMORY: Status = Status(2);
    pub(super) const NOT_READY: Status = Status(3);
}

/// A thread of the program.
pub(super) struct Thread {
    pub(super) runtime: Rc<Runtime>,
    host: Host,
    pub(super) random: Random,
    /// The current device.
    pub(super) device: usize,
    last_error: Status,
    /// Calls in progress: their functions and arguments.
    open: Vec<(Function, Vec<u64>)>,
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

impl Thread {
    pub(super) fn new(runtime: Rc<Runtime>, host: Host, random: Random) -> Thread {
        Thread {
            runtime,
            host,
            random,
            device: 0,
            last_error: Status::SUCCESS,
            open: Vec::new(),
        }
    }

    /// The thread's state, while the result lives.
    pub(super) fn host(&mut self) -> HostRef<'_> {
        self.host.borrow()
    }

    /// The thread as callbacks see it.
    pub(super) fn site(&mut self) -> Site {
        self.host.site()
    }

    /// Computes for about `span` outside of the runtime.
    pub(super) async fn compute(&mut self, span: Nanos) {
        let span = Nanos(self.random.host(span.0));
        self.runtime.executor.sleep(span).await;
    }

    /// Enters a call. Its host time passes before it takes effect.
    pub(super) async fn enter(&mut self, function: Function, arguments: &[u64]) -> CallInProgress {
        self.runtime.keep_room();
        self.open.push((function, arguments.to_vec()));
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

    /// Exits a call.
    pub(super) async fn exit<R>(
        &mut self,
        call: CallInProgress,
        result: Result<R, Status>,
    ) -> Result<R, Status> {
        self.compute(Nanos(90)).await;
        let open = self.open.pop();
        let counts = &self.runtime.counts;
        count(&counts.calls);
        let mut extra = Extra::NONE;
        let status = match &result {
            Ok(_) => Status::SUCCESS,
            // Not an error.
            Err(Status::NOT_READY) => Status::NOT_READY,
            Err(status) => {
                count(&counts.failed_calls);
                self.last_error = *status;
                extra.flags = flags::FAILED;
                *status
            }
        };
        let now = self.runtime.ticks();
        self.host().exit(&call, now, status.0, extra);
        if let Some((function, arguments)) = open {
            let context = self.runtime.devices[self.device].context;
            let called = (function, arguments.as_slice());
            callbacks::call(&self.site(), &call, context, called, Some(status.0));
        }
        result
    }

    /// A call without further records.
    async fn plain(&mut self, function: Function, arguments: &[u64]) {
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
        self.plain(Function::Init, &[0]).await;
    }

    pub(super) async fn shutdown(&mut self) {
        let call = self.enter(Function::Shutdown, &[]).await;
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
        self.plain(Function::GetDeviceCount, &[]).await;
        self.runtime.devices.len()
    }

    pub(super) async fn set_device(&mut self, device: usize) -> Result<(), Status> {
        let call = self.enter(Function::SetDevice, &[device as u64]).await;
        if device >= self.runtime.devices.len() {
            return self.exit(call, Err(Status::INVALID_VALUE)).await;
        }
        self.device = device;
        self.exit(call, Ok(())).await
    }

    pub(super) async fn device_attribute(&mut self, attribute: u64) {
        let arguments = [attribute, self.device as u64];
        self.plain(Function::DeviceGetAttribute, &arguments).await;
    }

    pub(super) async fn memory_info(&mut self) {
        self.plain(Function::MemGetInfo, &[]).await;
    }

    /// Returns and clears the last error of this thread.
    pub(super) async fn last_error(&mut self) -> Status {
        self.plain(Function::GetLastError, &[]).await;
        std::mem::replace(&mut self.last_error, Status::SUCCESS)
    }

    pub(super) async fn malloc(&mut self, bytes: u64) -> Result<Pointer, Status> {
        let location = MemoryLocation::device(self.device);
        self.allocate(Function::Malloc, location, bytes, DEVICE_MEMORY)
            .await
    }

    pub(super) async fn malloc_host(&mut self, bytes: u64) -> Result<Pointer, Status> {
        self.allocate(
            Function::MallocHost,
            MemoryLocation::PINNED,
            bytes,
            HOST_MEMORY,
        )
        .await
    }

    /// Allocates memory that moves to whoever accesses it. Its pages are the host's at first.
    pub(super) async fn malloc_managed(&mut self, bytes: u64) -> Result<Pointer, Status> {
        let location = MemoryLocation::MANAGED;
        let function = Function::MallocManaged;
        let pointer = self
            .allocate(function, location, bytes, HOST_MEMORY)
            .await?;
        self.runtime.managed.borrow_mut().add(pointer, bytes);
        Ok(pointer)
    }

    async fn allocate(
        &mut self,
        function: Function,
        location: MemoryLocation,
        bytes: u64,
        capacity: u64,
    ) -> Result<Pointer, Status> {
        let call = self.enter(function, &[bytes]).await;
        let pointer = self
            .runtime
            .memory
            .borrow_mut()
            .allocate(location, bytes, capacity);
        let result = pointer.ok_or(Status::OUT_OF_MEMORY);
        if let Some(pointer) = pointer {
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

    pub(super) async fn free(&mut self, pointer: Pointer) -> Result<(), Status> {
        let pinned = self.runtime.memory.borrow().location(pointer) == MemoryLocation::PINNED;
        let function = if pinned {
            Function::FreeHost
        } else {
            Function::Free
        };
        let call = self.enter(function, &[pointer.0]).await;
        self.runtime.managed.borrow_mut().remove(pointer);
        let freed = self.runtime.memory.borrow_mut().free(pointer);
        if let Some(freed) = freed {
            let free = AllocationOperation::FREE;
            self.allocation(&call, free, freed.location, pointer, freed.bytes);
        }
        self.exit(call, freed.map(|_| ()).ok_or(Status::INVALID_VALUE))
            .await
    }

    fn allocation(
        &mut self,
        call: &CallInProgress,
        operation: AllocationOperation,
        location: MemoryLocation,
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
        callbacks::begin(&self.site(), call, Within::Work, operation, none, &record);
        self.host().write(record);
        callbacks::end(&self.site(), call, Within::Work, operation, none, &record);
    }

    pub(super) async fn stream_create(
        &mut self,
        name: &str,
        priority: i32,
        flag: StreamFlag,
    ) -> Stream {
        let call = self.enter(Function::StreamCreate, &[priority as u64]).await;
        let stream = self.runtime.new_stream(self.device, name, (priority, flag));
        let id = self.stream_id(stream) as u32;
        callbacks::object::<gputrail_record::Stream>(
            &self.site(),
            &call,
            resource::STREAM_CREATED,
            id,
        );
        let _ = self.exit(call, Ok(())).await;
        stream
    }

    pub(super) async fn stream_destroy(&mut self, stream: Stream) {
        let id = self.stream_id(stream);
        let call = self.enter(Function::StreamDestroy, &[id]).await;
        let (gone, id) = (resource::STREAM_DESTROYED, id as u32);
        callbacks::object::<gputrail_record::Stream>(&self.site(), &call, gone, id);
        let _ = self.exit(call, Ok(())).await;
    }

    pub(super) async fn event_create(&mut self) -> Event {
        let call = self.enter(Function::EventCreate, &[]).await;
        let event = self.runtime.new_event(self.device);
        let _ = self.exit(call, Ok(())).await;
        event
    }

    pub(super) async fn event_destroy(&mut self, event: Event) {
        let id = self.event_id(event);
        self.plain(Function::EventDestroy, &[id.0.into()]).await;
    }

    /// Returns `NOT_READY` unless the work captured by the event has completed.
    pub(super) async fn event_query(&mut self, event: Event) -> Result<(), Status> {
        let id = self.event_id(event);
        let call = self.enter(Function::EventQuery, &[id.0.into()]).await;
        let result = match self.runtime.awaited_event(event) {
            Some(awaited) if awaited.completed.count() < awaited.count => Err(Status::NOT_READY),
            _ => Ok(()),
        };
        self.exit(call, result).await
    }

    /// Waits for all work in the stream.
    pub(super) async fn stream_synchronize(&mut self, stream: Stream) {
        let id = self.stream_id(stream);
        let call = self.enter(Function::StreamSynchronize, &[id]).await;
        let awaited = self.runtime.awaited(stream);
        let what = SynchronizationType::STREAM_SYNCHRONIZE;
        self.synchronize(&call, what, &awaited, None).await;
        let _ = self.exit(call, Ok(())).await;
    }

    /// Waits for the work captured by the event.
    pub(super) async fn event_synchronize(&mut self, event: Event) {
        let id = self.event_id(event);
        let call = self.enter(Function::EventSynchronize, &[id.0.into()]).await;
        if let Some(awaited) = self.runtime.awaited_event(event) {
            let what = SynchronizationType::EVENT_SYNCHRONIZE;
            self.synchronize(&call, what, &awaited, Some(id)).await;
        }
        let _ = self.exit(call, Ok(())).await;
    }

    /// Waits for all work on the device.
    pub(super) async fn device_synchronize(&mut self) {
        let call = self.enter(Function::DeviceSynchronize, &[]).await;
        let streams = self.runtime.streams.borrow().len();
        let of_device = (0..streams)
            .map(Stream)
            .filter(|stream| self.runtime.streams.borrow()[stream.0].device == self.device);
        let all: Vec<Awaited> = of_device
            .map(|stream| self.runtime.awaited(stream))
            .collect();
        let what = SynchronizationType::CONTEXT_SYNCHRONIZE;
        let before = self.synchronization(&call, what);
        let (operation, none) = (wait(what), KernelId::NONE);
        callbacks::begin(&self.site(), &call, Within::Wait, operation, none, &before);
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
        callbacks::end(&self.site(), &call, Within::Wait, operation, none, &record);
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
        callbacks::begin(&self.site(), call, Within::Wait, operation, none, &before);
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
        callbacks::end(&self.site(), call, Within::Wait, operation, none, &record);
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

    pub(super) fn stream_id(&self, stream: Stream) -> u64 {
        self.runtime.streams.borrow()[stream.0].id.0.into()
    }

    pub(super) fn event_id(&self, event: Event) -> EventId {
        self.runtime.events.borrow()[event.0].id
    }
}
