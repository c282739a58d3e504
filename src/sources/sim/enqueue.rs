//! The calls that enqueue work in streams: copies, fills, kernels, event waits, and libraries on top of them.

use super::callbacks;
use super::code::{Code, Loaded};
use super::counters::{CountedLaunch, DispatchCounters};
use super::device::{COMPUTE_UNITS, QueueChoice};
use super::instructions::CountedInstructions;
use super::machine::Demand;
use super::memory::{MemoryLocation, Pointer};
use super::operations::Function;
use super::runtime::{EnqueuedWork, Event, Stream, count};
use super::sampler::Launched;
use super::thread::{Status, Thread, wait};
use gputrail_collect::correlation::CallInProgress;
use gputrail_collect::switchboard::Within;
use gputrail_interface::operations::{kernel_dispatch, memory_copy, resource};
use gputrail_record::*;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A kernel in the source of a module.
#[derive(Debug)]
pub(super) struct KernelSource {
    /// The mangled name.
    pub(super) name: &'static str,
    /// The demangled name.
    pub(super) demangled: &'static str,
    /// Work-items of a workgroup in x, y, z.
    pub(super) workgroup: [u32; 3],
    /// Registers per work-item.
    pub(super) registers: u32,
    /// Local memory per workgroup, in bytes.
    pub(super) local_memory: u32,
    /// Private memory per work-item for registers that were spilled, in bytes.
    pub(super) private_memory: u32,
    /// Workgroups that fit on a compute unit at once.
    pub(super) resident: u64,
    /// The time that a compute unit takes for `resident` workgroups, in nanoseconds.
    pub(super) group_time: u64,
    /// The code.
    pub(super) code: &'static Code,
    /// The kernel that each of its workgroups launches, by a part of its demangled name.
    pub(super) child: Option<&'static str>,
}

/// A module loaded on one device.
#[derive(Debug)]
pub(super) struct Module {
    id: ModuleId,
    code: CodeObjectId,
    pub(super) device: usize,
    kernels: Vec<Kernel>,
    /// The code of the kernels.
    executed: Rc<Loaded>,
    /// Whether its bytes have been stored, which samples and counts of instructions need for their lines.
    is_stored: Cell<bool>,
    /// Whether each kernel has been compiled for the device, which its first launch does.
    compiled: RefCell<Vec<bool>>,
}

#[derive(Debug)]
struct Kernel {
    id: KernelId,
    source: &'static KernelSource,
}

/// The size and the stream of a launch.
#[derive(Copy, Clone, Debug)]
pub(super) struct Launch {
    /// Workgroups in x, y, z.
    pub(super) groups: [u32; 3],
    /// Local memory per workgroup beyond the kernel's own, in bytes.
    pub(super) local_memory: u32,
    pub(super) stream: Stream,
    /// Managed memory that the kernel accesses.
    pub(super) managed: Option<Pointer>,
}

impl Launch {
    fn all_groups(&self) -> u64 {
        self.groups.iter().copied().map(u64::from).product()
    }
}

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
/// The most waves of a compute unit, and the lanes of a wave.
const MOST_WAVES: u64 = 40;
const LANES: u64 = 64;
/// Cache configurations: no preference, more local memory, more first-level cache, equal parts.
const CACHE_NONE: u8 = 0;
const CACHE_LOCAL: u8 = 1;
const CACHE_FIRST_LEVEL: u8 = 2;
const CACHE_EQUAL: u8 = 3;
/// The time that a compute unit takes to move a byte, in thousandths of a nanosecond.
const BYTE_TIME: u64 = 100;

impl Module {
    /// The id of kernel `index`.
    pub(super) fn kernel_id(&self, index: usize) -> KernelId {
        self.kernels[index].id
    }

    /// The index of the kernel that each workgroup of kernel `index` launches.
    pub(super) fn child(&self, index: usize) -> Option<usize> {
        self.kernels[index].source.child.map(|name| self.find(name))
    }

    /// The index of the kernel whose demangled name contains `name`.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub(super) fn find(&self, name: &str) -> usize {
        let index = self
            .kernels
            .iter()
            .position(|one| one.source.demangled.contains(name));
        index.unwrap_or_else(|| panic!("no kernel is called {name}"))
    }
}

impl Thread {
    pub(super) async fn module_load(
        &mut self,
        path: &str,
        sources: &'static [KernelSource],
    ) -> Module {
        let names = self.runtime.names().clone();
        let path = names.string(path);
        let call = self.enter(Function::ModuleLoad, &[path.0.into()]).await;
        let is_counted = !self.host().buffers_for(Kind::INSTRUCTION_COUNT).is_none();
        let device = &self.runtime.devices[self.device];
        let executed = self.runtime.load(sources);
        let sampled = is_counted || device.sampler.is_configured();
        let mut module = gputrail_record::Module::blank();
        module.context = device.context;
        if sampled {
            module.source = names.string(executed.source());
        }
        let module = names.module(module);
        let mut code = CodeObject::blank();
        (code.module, code.agent, code.path) = (module, device.agent, path);
        code.load_base = 0x7e80_0000_0000 + 0x100_0000 * self.device as u64;
        code.load_size = 0x4_0000;
        let code = names.code_object(code);
        if sampled {
            executed.store_bytes(&names, code);
        }
        let loaded = resource::MODULE_LOADED;
        callbacks::object::<gputrail_record::Module>(&self.site(), &call, loaded, module.0);
        let loaded = resource::CODE_OBJECT_LOADED;
        callbacks::object::<CodeObject>(&self.site(), &call, loaded, code.0);
        let _ = self.exit(call, Ok(())).await;

        let mut kernels = Vec::new();
        for (number, source) in sources.iter().enumerate() {
            let name = names.string(source.name);
            let arguments = [module.0.into(), name.0.into()];
            let call = self.enter(Function::ModuleGetKernel, &arguments).await;
            let mut symbol = KernelSymbol::blank();
            (symbol.module, symbol.code_object, symbol.name) = (module, code, name);
            symbol.demangled = names.string(source.demangled);
            symbol.handle = 0x5581_4600_0000 + 0x100 * number as u64;
            symbol.local_memory = source.local_memory.into();
            symbol.max_workgroup = 1_024;
            symbol.workgroup_multiple = 32;
            let id = names.kernel(symbol);
            let registered = resource::KERNEL_SYMBOL_REGISTERED;
            callbacks::object::<KernelSymbol>(&self.site(), &call, registered, id.0);
            kernels.push(Kernel { id, source });
            let _ = self.exit(call, Ok(())).await;
        }
        Module {
            id: module,
            code,
            executed,
            is_stored: Cell::new(sampled),
            device: self.device,
            compiled: RefCell::new(vec![false; kernels.len()]),
            kernels,
        }
    }

    pub(super) async fn module_unload(&mut self, module: &Module) {
        let call = self
            .enter(Function::ModuleUnload, &[module.id.0.into()])
            .await;
        for kernel in &module.kernels {
            let unloaded = resource::KERNEL_SYMBOL_UNREGISTERED;
            callbacks::object::<KernelSymbol>(&self.site(), &call, unloaded, kernel.id.0);
        }
        let unloaded = resource::CODE_OBJECT_UNLOADED;
        callbacks::object::<CodeObject>(&self.site(), &call, unloaded, module.code.0);
        let unloaded = resource::MODULE_UNLOADED;
        callbacks::object::<gputrail_record::Module>(&self.site(), &call, unloaded, module.id.0);
        let _ = self.exit(call, Ok(())).await;
    }

    /// Launches kernel `index` of the module.
    pub(super) async fn launch(
        &mut self,
        module: &Module,
        index: usize,
        launch: Launch,
    ) -> Result<(), Status> {
        let Kernel { id, source } = &module.kernels[index];
        let [x, y, z] = launch.groups.map(u64::from);
        let local = u64::from(launch.local_memory);
        let arguments = [id.0.into(), x, y, z, local, self.stream_id(launch.stream)];
        let call = self.enter(Function::LaunchKernel, &arguments).await;
        if x * y * z == 0 || source.local_memory + launch.local_memory > MAX_LOCAL_MEMORY {
            return self.exit(call, Err(Status::INVALID_VALUE)).await;
        }
        self.compile_once(&call, module, index).await;
        if let Some(child) = module.child(index) {
            self.compile_once(&call, module, child).await;
        }
        self.enqueue_kernel(&call, module, index, launch, None);
        self.exit(call, Ok(())).await
    }

    /// Compiles a kernel for the device, which its first launch does.
    pub(super) async fn compile_once(
        &mut self,
        call: &CallInProgress,
        module: &Module,
        index: usize,
    ) {
        if !std::mem::replace(&mut module.compiled.borrow_mut()[index], true) {
            self.compile(call, module, module.kernels[index].source)
                .await;
        }
    }

    /// Enqueues kernel `index` of the module, as this node of a graph if it is one.
    pub(super) fn enqueue_kernel(
        &mut self,
        call: &CallInProgress,
        module: &Module,
        index: usize,
        launch: Launch,
        node: Option<GraphNode>,
    ) {
        let id = module.kernels[index].id;
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

    /// What a launch of kernel `index` demands of the device, which shares its compute units between kernels.
    pub(super) fn kernel_demand(
        &mut self,
        module: &Module,
        index: usize,
        launch: Launch,
    ) -> Demand {
        let source = module.kernels[index].source;
        // The number of compute units that the launch fills.
        let busy = launch.all_groups().div_ceil(source.resident);
        Demand {
            amount: self.random.around(busy * source.group_time * 1_000, 3),
            width: busy.min(COMPUTE_UNITS) * 1_000,
            setup: Nanos(0),
        }
    }

    /// The record of a launch of kernel `index`, without the fields of all work.
    pub(super) fn kernel_record(
        &self,
        module: &Module,
        index: usize,
        launch: Launch,
    ) -> KernelDispatch {
        let Kernel { id, source } = &module.kernels[index];
        let mut record = KernelDispatch::blank();
        record.header = record.header.with(flags::ASYNCHRONOUS);
        record.kernel = *id;
        for axis in 0..3 {
            record.grid[axis] = u64::from(launch.groups[axis] * source.workgroup[axis]);
        }
        record.workgroup = source.workgroup;
        record.registers = source.registers;
        record.static_local_memory = source.local_memory;
        record.dynamic_local_memory = launch.local_memory;
        record.executed_local_memory =
            (source.local_memory + launch.local_memory).next_multiple_of(8 << 10);
        record.private_memory = source.private_memory;
        record.private_memory_total =
            u64::from(source.private_memory) * COMPUTE_UNITS * MOST_WAVES * LANES;
        record.grid_id = 1 + self.runtime.counts.kernels.get() as i64;
        (record.cache_requested, record.cache_executed) =
            cache_configuration(source.local_memory + launch.local_memory);
        record.local_memory_config = module.executed.kernel(index).bank_configuration();
        record.carveout = 255;
        record.launch = LaunchType::REGULAR;
        record.dimensions = 3;
        record
    }

    /// Tells what samples and counts of a kernel that was enqueued.
    pub(super) fn kernel_launched(
        &mut self,
        module: &Module,
        index: usize,
        launch: Launch,
        (enqueued, demand): (&EnqueuedWork, Demand),
        chosen: DispatchCounters,
    ) {
        let Kernel { id, source } = &module.kernels[index];
        let groups = launch.all_groups();
        let external = self.host().external_of_samples();
        let is_counted = !self.host().buffers_for(Kind::INSTRUCTION_COUNT).is_none();
        let device = &self.runtime.devices[module.device];
        let is_wanted = is_counted || device.sampler.is_configured();
        if is_wanted && !module.is_stored.replace(true) {
            let names = self.runtime.names();
            module.executed.store_bytes(names, module.code);
        }
        let waves_per_group = source.workgroup.iter().product::<u32>().div_ceil(64);
        let resident = source.resident.min(groups.div_ceil(COMPUTE_UNITS));
        device.sampler.launched(enqueued.index, || Launched {
            work: enqueued.work.id,
            correlation: enqueued.work.correlation,
            external,
            kernel: *id,
            code_object: module.code,
            code: module.executed.kernel(index),
            groups: launch.groups,
            waves_per_group,
            resident,
            queue: enqueued.queue_number,
        });
        device
            .counters
            .launched(enqueued.index, chosen, || CountedLaunch {
                work: enqueued.work.id,
                correlation: enqueued.work.correlation,
                queue: enqueued.work.queue,
                code: module.executed.kernel(index),
                groups,
                waves_per_group: waves_per_group.into(),
                resident,
                demand: demand.amount,
            });
        if is_counted {
            self.runtime.count_instructions(CountedInstructions {
                code: module.executed.kernel(index),
                code_object: module.code,
                kernel: *id,
                groups,
                waves_per_group: waves_per_group.into(),
            });
        }
        count(&self.runtime.counts.kernels);
    }

    async fn compile(&mut self, call: &CallInProgress, module: &Module, source: &KernelSource) {
        let start = self.runtime.now();
        let work = 180_000 + 2_600 * u64::from(source.registers);
        self.compute(Nanos(work)).await;
        let mut record = Overhead::blank();
        record.correlation = call.correlation;
        record.start = self.runtime.ticks_at(start);
        record.end = self.runtime.ticks();
        record.thread = self.host().thread();
        record.agent = self.runtime.devices[module.device].agent;
        record.module = module.id;
        record.what = OverheadKind::COMPILATION;
        record.detail = self.runtime.names().string(source.demangled);
        self.host().write(record);
    }

    /// Copies `bytes` in stream order. The pointers determine the direction.
    pub(super) async fn memcpy_async(
        &mut self,
        destination: Pointer,
        source: Pointer,
        bytes: u64,
        stream: Stream,
    ) -> Result<(), Status> {
        let arguments = [destination.0, source.0, bytes, self.stream_id(stream)];
        let call = self.enter(Function::MemcpyAsync, &arguments).await;
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
        stream: Stream,
    ) -> Result<(), Status> {
        let arguments = [destination.0, source.0, bytes, self.stream_id(stream)];
        let call = self.enter(Function::MemcpyPeerAsync, &arguments).await;
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
        stream: Stream,
    ) -> Result<(), Status> {
        let call = self
            .enter(Function::Memcpy, &[destination.0, source.0, bytes])
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
        stream: Stream,
        asynchronous: u8,
    ) {
        let (from, to) = {
            let memory = self.runtime.memory.borrow();
            (memory.location(source), memory.location(destination))
        };
        let (transfer, queue, mut demand) = direction(from, to, bytes);
        demand.amount = self.random.around(demand.amount, 2);
        let enqueued = self.enqueue(call, stream, queue, demand);
        let agent = |location: MemoryLocation| {
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
        stream: Stream,
    ) -> Result<(), Status> {
        let arguments = [pointer.0, value.into(), bytes, self.stream_id(stream)];
        let call = self.enter(Function::MemsetAsync, &arguments).await;
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
    pub(super) fn work_header(&mut self, call: &CallInProgress, stream: Stream) -> WorkHeader {
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
        stream: Stream,
        queue: QueueChoice,
        demand: Demand,
    ) -> EnqueuedWork {
        let runtime = self.runtime.clone();
        runtime.enqueue(&mut self.host(), call, stream, queue, demand, None)
    }

    /// Records `event` in `stream`.
    pub(super) async fn event_record(&mut self, event: Event, stream: Stream) {
        let arguments = [self.event_id(event).0.into(), self.stream_id(stream)];
        let call = self.enter(Function::EventRecord, &arguments).await;
        self.runtime.record(event, stream);
        let _ = self.exit(call, Ok(())).await;
    }

    /// Makes later work in `stream` wait for `event`.
    pub(super) async fn stream_wait_event(&mut self, stream: Stream, event: Event) {
        let id = self.event_id(event);
        let arguments = [self.stream_id(stream), id.0.into()];
        let call = self.enter(Function::StreamWaitEvent, &arguments).await;
        self.runtime.wait(stream, event);
        let what = SynchronizationType::STREAM_WAIT_EVENT;
        let mut record = self.synchronization(&call, what);
        let (operation, none) = (wait(what), KernelId::NONE);
        callbacks::begin(&self.site(), &call, Within::Wait, operation, none, &record);
        {
            let streams = self.runtime.streams.borrow();
            let device = &self.runtime.devices[streams[stream.0].device];
            record.work.stream = streams[stream.0].id;
            (record.work.agent, record.work.context) = (device.agent, device.context);
        }
        (record.event, record.events) = (id, 1);
        self.host().write(record);
        callbacks::end(&self.site(), &call, Within::Wait, operation, none, &record);
        let _ = self.exit(call, Ok(())).await;
    }

    /// A matrix product: a library call that launches a kernel.
    pub(super) async fn blas_gemm(
        &mut self,
        module: &Module,
        index: usize,
        [m, n, k]: [u32; 3],
        stream: Stream,
    ) -> Result<(), Status> {
        let arguments = [m.into(), n.into(), k.into(), self.stream_id(stream)];
        let call = self.enter(Function::BlasGemm, &arguments).await;
        // A workgroup computes a tile of 128 x 256, in slices of 32 along k. The third dimension of the grid splits the
        // slices.
        let launch = Launch {
            groups: [m.div_ceil(128), n.div_ceil(256), k.div_ceil(1_024)],
            local_memory: 48 << 10,
            stream,
            managed: None,
        };
        let result = self.launch(module, index, launch).await;
        self.exit(call, result).await
    }
}

/// The cache configuration that a kernel with this much local memory asks for, and the one that it gets.
fn cache_configuration(local_memory: u32) -> (u8, u8) {
    match local_memory {
        0 => (CACHE_FIRST_LEVEL, CACHE_FIRST_LEVEL),
        1..0x4000 => (CACHE_NONE, CACHE_EQUAL),
        _ => (CACHE_LOCAL, CACHE_LOCAL),
    }
}

/// The kind of a transfer, its queue, and its demand.
fn direction(
    from: MemoryLocation,
    to: MemoryLocation,
    bytes: u64,
) -> (TransferKind, QueueChoice, Demand) {
    let by_engine = |width, setup| Demand {
        amount: bytes * 1_000,
        width,
        setup,
    };
    let with_host = |host: MemoryLocation| match host.kind {
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
