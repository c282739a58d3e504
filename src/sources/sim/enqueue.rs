//! The calls that enqueue work in streams: copies, fills, kernels, event waits, and libraries on top of them.

use super::callbacks;
use super::compute_units::COMPUTE_UNITS;
use super::device::QueueChoice;
use super::kernels::{SimLaunch, SimModule};
use super::machine::Demand;
use super::memory::{Pointer, PointerMemory};
use super::operations::SimFunction;
use super::runtime::{EnqueuedWork, SimEvent, SimStream, count};
use super::thread::{CallStatus, SimThread, wait};
use gputrail_collect::correlation::CallInProgress;
use gputrail_collect::switchboard::ReportedPart;
use gputrail_interface::operations::{kernel_dispatch, memory_copy};
use gputrail_record::*;

/// The most local memory of a workgroup.
const MAX_LOCAL_MEMORY: u32 = 96 << 10;
/// Bandwidth of a copy engine for page-locked memory, in thousandths of a byte per nanosecond.
const PINNED_WIDTH: u64 = 24_000;
/// Bandwidth for pageable memory, which goes through a staging buffer.
const PAGEABLE_WIDTH: u64 = 9_000;
/// Bandwidth of a peer link.
const PEER_WIDTH: u64 = 40_000;
/// The time of a copy of page-locked memory until its first byte: that of a descriptor and a round trip on PCI Express.
const PINNED_LATENCY: Nanos = Nanos(1_400);
/// The time for pageable memory, which the staging adds to.
const PAGEABLE_LATENCY: Nanos = Nanos(6_800);
/// The time on a peer link.
const PEER_LATENCY: Nanos = Nanos(2_100);
/// The time that a compute unit takes to move a byte, in thousandths of a nanosecond.
const BYTE_TIME: u64 = 100;

impl SimThread {
    /// Launches kernel `index` of the module.
    pub(super) async fn launch(
        &mut self,
        module: &SimModule,
        index: usize,
        launch: SimLaunch,
    ) -> Result<(), CallStatus> {
        let (id, source) = (module.kernel_id(index), module.source(index));
        let [x, y, z] = launch.groups.map(u64::from);
        let [block_x, block_y, block_z] = source.workgroup.map(u64::from);
        let (local, stream) = (launch.local_memory.into(), self.stream_id(launch.stream));
        let of_kernel = id.0.into();
        let arguments = [of_kernel, x, y, z, block_x, block_y, block_z, local, stream];
        let call = self.enter(SimFunction::LaunchKernel, &arguments).await;
        if x * y * z == 0 || source.local_memory + launch.local_memory > MAX_LOCAL_MEMORY {
            return self.exit(call, Err(CallStatus::INVALID_VALUE)).await;
        }
        self.compile_once(&call, module, index).await;
        if let Some(child) = module.child(index) {
            self.compile_once(&call, module, child).await;
        }
        self.enqueue_kernel(&call, module, index, launch, None);
        self.exit(call, Ok(())).await
    }

    /// Enqueues kernel `index` of the module, as this node of a graph if it is one.
    pub(super) fn enqueue_kernel(
        &mut self,
        call: &CallInProgress,
        module: &SimModule,
        index: usize,
        launch: SimLaunch,
        node: Option<GraphNode>,
    ) {
        let id = module.kernel_id(index);
        let fault = launch.managed.and_then(|pointer| {
            let mut managed = self.runtime.managed.borrow_mut();
            managed.access(pointer, Some(module.device))
        });
        self.runtime.serve(module.device);
        let counters = self.runtime.devices[module.device].counters.clone();
        let mut demand = self.kernel_demand(module, index, launch);
        let mut record = self.kernel_record(module, index, launch);
        let work = self.work_header(call, launch.stream);
        let chosen = counters.of_dispatch(|| KernelDispatch { work, ..record });
        demand.amount *= chosen.passes();
        demand.setup = fault.map_or(Nanos(0), |fault| fault.stall());
        let enqueued = self.enqueue(call, launch.stream, QueueChoice::Compute, demand);
        self.runtime.set_fault(fault);
        record.work = enqueued.work;
        let is_sampled = self.runtime.devices[module.device].sampler.is_configured();
        if is_sampled || counters.is_configured() {
            callbacks::profiled(&self.site(), call, id);
        }
        let operations = (kernel_dispatch::ENQUEUE, kernel_dispatch::COMPLETE);
        if let Some(mut node) = node {
            node.work = enqueued.work.id;
            self.host().write(node);
        }
        self.write_enqueued(call, operations, id, &record);
        if chosen.passes() > 1 {
            let followers = callbacks::of_passes(&self.site(), call, id);
            let passes = chosen.passes() as u32;
            let replay = followers.map(|followers| (followers, passes));
            self.runtime.set_replay(replay);
        }
        self.kernel_launched(module, index, launch, (&enqueued, demand), chosen);
        self.enqueue_children(call, module, launch, (&enqueued, &record), index);
    }

    /// Copies `bytes` in stream order. The pointers determine the direction.
    pub(super) async fn memcpy_async(
        &mut self,
        destination: Pointer,
        source: Pointer,
        bytes: u64,
        stream: SimStream,
    ) -> Result<(), CallStatus> {
        let arguments = [destination.0, source.0, bytes, self.stream_id(stream)];
        let call = self.enter(SimFunction::MemcpyAsync, &arguments).await;
        self.copy(
            &call,
            destination,
            source,
            bytes,
            stream,
            flags::ASYNCHRONOUS,
        );
        self.exit(call, Ok(())).await
    }

    /// Copies `bytes` from one device to another.
    pub(super) async fn memcpy_peer_async(
        &mut self,
        destination: Pointer,
        source: Pointer,
        bytes: u64,
        stream: SimStream,
    ) -> Result<(), CallStatus> {
        let arguments = [destination.0, source.0, bytes, self.stream_id(stream)];
        let call = self.enter(SimFunction::MemcpyPeerAsync, &arguments).await;
        self.copy(
            &call,
            destination,
            source,
            bytes,
            stream,
            flags::ASYNCHRONOUS,
        );
        self.exit(call, Ok(())).await
    }

    /// Copies `bytes` and waits for completion.
    pub(super) async fn memcpy(
        &mut self,
        destination: Pointer,
        source: Pointer,
        bytes: u64,
        stream: SimStream,
    ) -> Result<(), CallStatus> {
        let call = self
            .enter(SimFunction::Memcpy, &[destination.0, source.0, bytes])
            .await;
        self.copy(&call, destination, source, bytes, stream, 0);
        let awaited = self.runtime.awaited(stream);
        let what = SynchronizationType::STREAM_SYNCHRONIZE;
        self.synchronize(&call, what, &awaited, None).await;
        self.exit(call, Ok(())).await
    }

    fn copy(
        &mut self,
        call: &CallInProgress,
        destination: Pointer,
        source: Pointer,
        bytes: u64,
        stream: SimStream,
        asynchronous: u8,
    ) {
        let (from, to) = {
            let memory = self.runtime.memory.borrow();
            (memory.location(source), memory.location(destination))
        };
        let (transfer, queue, mut demand) = direction(from, to, bytes);
        demand.amount = self.random.around(demand.amount, 2);
        let enqueued = self.enqueue(call, stream, queue, demand);
        let agent = |location: PointerMemory| {
            location
                .device
                .map_or(AgentId::NONE, |device| self.runtime.devices[device].agent)
        };
        let mut record = MemoryCopy::blank();
        record.header = record.header.with(asynchronous);
        record.work = enqueued.work;
        record.bytes = bytes;
        (record.source_address, record.destination_address) = (source.0, destination.0);
        (record.source_agent, record.destination_agent) = (agent(from), agent(to));
        if let (Some(source), Some(destination)) = (from.device, to.device)
            && source != destination
        {
            let devices = &self.runtime.devices;
            record.source_context = devices[source].context;
            record.destination_context = devices[destination].context;
        }
        record.transfer = transfer;
        (record.source_memory, record.destination_memory) = (from.kind, to.kind);
        let operations = (memory_copy::COPY_ENQUEUE, memory_copy::COPY_COMPLETE);
        self.write_enqueued(call, operations, KernelId::NONE, &record);
        count(&self.runtime.counts.copies);
    }

    /// Sets `bytes` to `value` in stream order.
    pub(super) async fn memset_async(
        &mut self,
        pointer: Pointer,
        value: u8,
        bytes: u64,
        stream: SimStream,
    ) -> Result<(), CallStatus> {
        let arguments = [pointer.0, value.into(), bytes, self.stream_id(stream)];
        let call = self.enter(SimFunction::MemsetAsync, &arguments).await;
        let demand = Demand {
            amount: self.random.around(bytes * BYTE_TIME, 2),
            width: COMPUTE_UNITS * 1_000,
            setup: Nanos(0),
        };
        let enqueued = self.enqueue(&call, stream, QueueChoice::Compute, demand);
        let mut record = MemorySet::blank();
        record.header = record.header.with(flags::ASYNCHRONOUS);
        record.work = enqueued.work;
        (record.bytes, record.address) = (bytes, pointer.0);
        (record.value, record.pattern_bytes) = (value.into(), 1);
        record.memory = MemoryKind::DEVICE;
        let operations = (memory_copy::FILL_ENQUEUE, memory_copy::FILL_COMPLETE);
        self.write_enqueued(&call, operations, KernelId::NONE, &record);
        count(&self.runtime.counts.fills);
        self.exit(call, Ok(())).await
    }

    /// Reports enqueued work to subscribers, which may supply its external id, writes its record, and stores the
    /// followers of its completion.
    fn write_enqueued<R: Record>(
        &mut self,
        call: &CallInProgress,
        operations: (Operation, Operation),
        kernel: KernelId,
        record: &R,
    ) {
        let followers = callbacks::enqueued(&self.site(), call, operations, kernel, record);
        let runtime = self.runtime.clone();
        runtime.write_work(&mut self.host(), *record);
        runtime.set_followers(followers);
    }

    /// The header of a kernel's record before the kernel is enqueued in `stream`.
    pub(super) fn work_header(&mut self, call: &CallInProgress, stream: SimStream) -> WorkHeader {
        let thread = self.host().thread();
        let state = &self.runtime.streams.borrow()[stream.0];
        let device = &self.runtime.devices[state.device];
        WorkHeader {
            correlation: call.correlation,
            enqueued: call.start,
            agent: device.agent,
            context: device.context,
            queue: device.queue(QueueChoice::Compute, state.compute_queue).id,
            stream: state.id,
            thread,
            ..WorkHeader::default()
        }
    }

    fn enqueue(
        &mut self,
        call: &CallInProgress,
        stream: SimStream,
        queue: QueueChoice,
        demand: Demand,
    ) -> EnqueuedWork {
        let runtime = self.runtime.clone();
        runtime.enqueue(&mut self.host(), call, stream, queue, demand, None)
    }

    /// Records `event` in `stream`.
    pub(super) async fn event_record(&mut self, event: SimEvent, stream: SimStream) {
        let arguments = [self.event_id(event).0.into(), self.stream_id(stream)];
        let call = self.enter(SimFunction::EventRecord, &arguments).await;
        self.runtime.record(event, stream);
        let _ = self.exit(call, Ok(())).await;
    }

    /// Makes later work in `stream` wait for `event`.
    pub(super) async fn stream_wait_event(&mut self, stream: SimStream, event: SimEvent) {
        let id = self.event_id(event);
        let arguments = [self.stream_id(stream), id.0.into()];
        let call = self.enter(SimFunction::StreamWaitEvent, &arguments).await;
        self.runtime.wait(stream, event);
        let what = SynchronizationType::STREAM_WAIT_EVENT;
        let mut record = self.synchronization(&call, what);
        let (operation, none) = (wait(what), KernelId::NONE);
        callbacks::begin(
            &self.site(),
            &call,
            ReportedPart::Wait,
            operation,
            none,
            &record,
        );
        {
            let streams = self.runtime.streams.borrow();
            let device = &self.runtime.devices[streams[stream.0].device];
            record.work.stream = streams[stream.0].id;
            (record.work.agent, record.work.context) = (device.agent, device.context);
        }
        (record.event, record.events) = (id, 1);
        self.host().write(record);
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

    /// A matrix product: a library call that launches a kernel.
    pub(super) async fn blas_gemm(
        &mut self,
        module: &SimModule,
        index: usize,
        [m, n, k]: [u32; 3],
        stream: SimStream,
    ) -> Result<(), CallStatus> {
        let arguments = [m.into(), n.into(), k.into(), self.stream_id(stream)];
        let call = self.enter(SimFunction::BlasGemm, &arguments).await;
        // A workgroup computes a tile of 128 x 256, in slices of 32 along k. The third dimension of the grid splits the
        // slices.
        let launch = SimLaunch {
            groups: [m.div_ceil(128), n.div_ceil(256), k.div_ceil(1_024)],
            local_memory: 48 << 10,
            stream,
            managed: None,
        };
        let result = self.launch(module, index, launch).await;
        self.exit(call, result).await
    }
}

/// The kind of a transfer, its queue, and its demand.
fn direction(
    from: PointerMemory,
    to: PointerMemory,
    bytes: u64,
) -> (TransferKind, QueueChoice, Demand) {
    let by_engine = |width, setup| Demand {
        amount: bytes * 1_000,
        width,
        setup,
    };
    let with_host = |host: PointerMemory| match host.kind {
        MemoryKind::PAGEABLE => by_engine(PAGEABLE_WIDTH, PAGEABLE_LATENCY),
        _ => by_engine(PINNED_WIDTH, PINNED_LATENCY),
    };
    match (from.device, to.device) {
        (None, Some(_)) => (
            TransferKind::HOST_TO_DEVICE,
            QueueChoice::Upload,
            with_host(from),
        ),
        (Some(_), None) => (
            TransferKind::DEVICE_TO_HOST,
            QueueChoice::Download,
            with_host(to),
        ),
        (None, None) => (
            TransferKind::HOST_TO_HOST,
            QueueChoice::Download,
            with_host(to),
        ),
        (Some(one), Some(other)) if one == other => {
            let demand = Demand {
                amount: bytes * BYTE_TIME,
                width: COMPUTE_UNITS * 1_000,
                setup: Nanos(0),
            };
            (TransferKind::DEVICE_TO_DEVICE, QueueChoice::Compute, demand)
        }
        (Some(_), Some(_)) => (
            TransferKind::PEER_TO_PEER,
            QueueChoice::Peer,
            by_engine(PEER_WIDTH, PEER_LATENCY),
        ),
    }
}
