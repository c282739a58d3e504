//! The translation of CUPTI's activity records into ours.

use super::counts;
use super::ffi;
use super::inner::Told;
use super::objects::{KnownObjects, StreamIds, UNIFIED_MEMORY};
use super::recent::{RECENT, RecentCall};
use super::records::{
    self, Copy, CreatedStream, CudaEvent, Environment, External, FunctionOf, Jit, Kernel, Memory,
    MemoryPool, Overhead, PeerCopy, Set, Synchronization, UnifiedMemory,
};
use super::session::CuptiReading;
use core::ffi::{CStr, c_char};
use gputrail_buffer::platform::sync::QuietGuard;
use gputrail_capture::names::Names;
use gputrail_collect::correlation::HostThread;
use gputrail_collect::outstanding::completion_header;
use gputrail_collect::switchboard::Buffers;
use gputrail_record::{
    self as record, AgentId, Allocation, AllocationOperation, Completion, ContextId, DeviceTime,
    EnvironmentKind, ExternalCorrelation, ExternalId, ExternalKind, GraphNode, KernelDispatch,
    Kind, LaunchType, MemoryCopy, MemoryKind, MemorySet, OverheadKind, StreamFlag,
    SynchronizationType, Ticks, TransferKind, Unfinished, UnifiedMemoryCounterKind, WorkHeader,
    flags,
};

/// The number by which CUPTI says that a synchronization concerns no stream, or no event.
const NONE: u32 = u32::MAX;

/// The translation of some records of one buffer.
pub(super) struct Translation<'a> {
    /// CUPTI's clock when the session began.
    pub begin: u64,
    pub names: &'a Names,
    pub objects: &'a mut KnownObjects,
    pub host: &'a mut HostThread,
    pub now: Ticks,
    /// The reading of CUPTI's clock by which its times become the host's.
    pub reading: Option<CuptiReading>,
    /// Ticks in a second.
    pub frequency: u64,
    /// The work that subscribers follow, if they follow any.
    pub told: Option<QuietGuard<'a, Told>>,
}

/// The fields that the records of all work have.
struct WorkFields {
    device: u32,
    context: u32,
    stream: u32,
    node: ActivityNode,
    correlation: u32,
    times: ActivityTimes,
}

/// The node of a CUDA graph that a piece of work is, by CUPTI's numbers; 0 for other work.
#[derive(core::marker::Copy, Clone, Default)]
struct ActivityNode {
    graph: u32,
    node: u64,
}

/// The times of a piece of work.
#[derive(core::marker::Copy, Clone, Default)]
struct ActivityTimes {
    queued: u64,
    submitted: u64,
    start: u64,
    end: u64,
}

impl ActivityTimes {
    fn of(start: u64, end: u64) -> ActivityTimes {
        ActivityTimes {
            start,
            end,
            ..ActivityTimes::default()
        }
    }
}

/// The [`WorkFields`] of a record.
macro_rules! work {
    ($record:expr) => {
        WorkFields {
            device: $record.device,
            context: $record.context,
            stream: $record.stream,
            node: ActivityNode {
                graph: $record.graph,
                node: $record.graph_node,
            },
            correlation: $record.correlation,
            times: ActivityTimes::of($record.start, $record.end),
        }
    };
}

/// A piece of work whose records are written.
struct WrittenWork {
    header: WorkHeader,
    buffers: Buffers,
    node: ActivityNode,
    times: ActivityTimes,
    /// CUPTI's id of its call.
    call: u32,
}

impl Translation<'_> {
    /// Translates a record of a kind that is read.
    pub fn record(&mut self, bytes: &[u8]) {
        match records::kind(bytes) {
            ffi::KERNEL | ffi::CONCURRENT_KERNEL => self.kernel(records::read(bytes)),
            ffi::MEMCPY => self.copy(records::read(bytes)),
            ffi::MEMCPY_PEER => self.peer_copy(records::read(bytes)),
            ffi::MEMSET => self.set(records::read(bytes)),
            ffi::MEMORY => self.memory(records::read(bytes)),
            ffi::MEMORY_POOL => self.memory_pool(records::read(bytes)),
            ffi::SYNCHRONIZATION => self.synchronization(records::read(bytes)),
            ffi::CUDA_EVENT => self.event(records::read(bytes)),
            ffi::STREAM => self.stream(records::read(bytes)),
            ffi::UNIFIED_MEMORY_COUNTER => self.unified_memory(records::read(bytes)),
            ffi::ENVIRONMENT => self.environment(records::read(bytes)),
            ffi::OVERHEAD => self.overhead(records::read(bytes)),
            ffi::JIT => self.jit(records::read(bytes)),
            ffi::EXTERNAL_CORRELATION => self.external(records::read(bytes)),
            ffi::FUNCTION => self.function(records::read(bytes)),
            _ => counts::FOREIGN.add(1),
        }
    }

    /// Whether an activity that ended at `end` is from before the start.
    fn is_early(&self, end: u64) -> bool {
        let early = end != 0 && end < self.begin;
        if early {
            counts::BEFORE_START.add(1);
        }
        early
    }

    /// The host's ticks at a time of CUPTI's clock.
    fn ticks(&self, time: u64) -> Option<Ticks> {
        let reading = self.reading.filter(|_| time != 0)?;
        Some(reading.to_ticks(time, self.frequency))
    }

    /// The call to which CUPTI gave an id, and the buffers that wanted `kind` when it was made: those that want it now
    /// if the call is not known.
    fn call(&self, correlation: u32, kind: Kind) -> (RecentCall, Buffers) {
        match RECENT.get(correlation) {
            Some(call) => (call, call.wanted(kind)),
            None => (RecentCall::default(), self.host.buffers_for(kind)),
        }
    }

    /// The call and place of a piece of work, and the buffers that want it; `None` if it is from before the start.
    fn begin(&mut self, work: &WorkFields, kind: Kind) -> Option<WrittenWork> {
        if self.is_early(work.times.end) {
            return None;
        }
        let agent = self.objects.agent(self.names, work.device);
        let StreamIds {
            context,
            queue,
            stream,
        } = self.objects.place(
            self.names,
            agent,
            (work.context, work.stream),
            work.node.graph != 0,
            (work.times.start, work.times.end),
        );
        let (call, buffers) = self.call(work.correlation, kind);
        if !call.correlation.is_some() {
            counts::WITHOUT_CALL.add(1);
        }
        let id = if RECENT.take_work(work.correlation, call.work) {
            call.work
        } else {
            self.host.new_work()
        };
        let header = WorkHeader {
            id,
            correlation: call.correlation,
            external: call.external,
            enqueued: call.start,
            agent,
            context,
            queue,
            stream,
            thread: call.thread,
            command: 0,
            commands: 0,
        };
        Some(WrittenWork {
            header,
            buffers,
            node: work.node,
            times: work.times,
            call: work.correlation,
        })
    }

    /// Writes the completion of work whose enqueue record was written, and which node of a graph it is.
    fn complete(&mut self, origin: &WrittenWork) {
        if origin.node.graph != 0 {
            let mut node = GraphNode::blank();
            (node.work, node.node) = (origin.header.id, origin.node.node);
            node.graph = origin.node.graph;
            let wanted = self.host.buffers_for(Kind::GRAPH_NODE);
            self.host.write_late(origin.buffers.and(wanted), node);
        }
        let times = origin.times;
        let unfinished = match (times.start, times.end) {
            (0, 0) => {
                counts::UNTIMED.add(1);
                Unfinished::NO_TIMES
            }
            _ => Unfinished::NO,
        };
        let mut completion = Completion::blank();
        completion.header = completion_header(0, unfinished);
        completion.work = origin.header.id;
        completion.correlation = origin.header.correlation;
        completion.queued = DeviceTime(times.queued);
        completion.submitted = DeviceTime(times.submitted);
        completion.start = DeviceTime(times.start);
        completion.end = DeviceTime(times.end);
        (completion.completed, completion.agent) = (self.now, origin.header.agent);
        completion.unfinished = unfinished;
        self.host.write_late(origin.buffers, completion);
        if let Some(told) = self.told.as_mut() {
            told.complete(origin.call, &completion);
        }
    }

    fn kernel(&mut self, record: Kernel) {
        let mut work = work!(record);
        super::counting::note_time(record.correlation, record.end.saturating_sub(record.start));
        (work.times.queued, work.times.submitted) = (record.queued, record.submitted);
        let Some(mut origin) = self.begin(&work, Kind::KERNEL_DISPATCH) else {
            return;
        };
        // SAFETY: CUPTI's name of the kernel, which lasts as long as the record.
        let kernel = unsafe { self.objects.kernel(self.names, record.name) };
        let left_out = self.host.board().left_out(kernel);
        origin.buffers = origin.buffers.without(left_out);
        let (grid, block) = (record.grid, record.block);
        let mut dispatch = KernelDispatch::blank();
        dispatch.header = dispatch.header.with(flags::LATE | flags::ASYNCHRONOUS);
        (dispatch.work, dispatch.kernel) = (origin.header, kernel);
        dispatch.workgroup = block;
        // CUPTI counts workgroups.
        dispatch.grid = core::array::from_fn(|at| u64::from(grid[at]) * u64::from(block[at]));
        dispatch.registers = record.registers.into();
        dispatch.static_local_memory = record.static_shared;
        dispatch.dynamic_local_memory = record.dynamic_shared;
        dispatch.private_memory = record.local_per_thread;
        dispatch.private_memory_total = match record.local_total_64 {
            0 => record.local_total.into(),
            total => total,
        };
        dispatch.grid_id = record.grid_id;
        dispatch.executed_local_memory = record.shared_executed;
        dispatch.cache_requested = record.cache_config & 15;
        dispatch.cache_executed = record.cache_config >> 4;
        dispatch.local_memory_config = record.shared_memory_config;
        dispatch.carveout = match record.carveout_is_requested {
            0 => 255,
            _ => record.carveout_requested,
        };
        dispatch.launch = match record.launch_type {
            1 => LaunchType::COOPERATIVE_SINGLE_DEVICE,
            2 => LaunchType::COOPERATIVE_MULTI_DEVICE,
            _ => LaunchType::REGULAR,
        };
        dispatch.dimensions = 3;
        self.host.write_late(origin.buffers, dispatch);
        self.complete(&origin);
    }

    fn copy(&mut self, record: Copy) {
        let Some(origin) = self.begin(&work!(record), Kind::MEMORY_COPY) else {
            return;
        };
        let agent = origin.header.agent;
        let mut copy = MemoryCopy::blank();
        copy.transfer = TransferKind(record.copy_kind);
        copy.source_memory = memory_kind(record.source_kind.into());
        copy.destination_memory = memory_kind(record.destination_kind.into());
        copy.source_agent = of_device(copy.source_memory, agent);
        copy.destination_agent = of_device(copy.destination_memory, agent);
        self.write_copy(&origin, copy, record.bytes, record.flags);
    }

    fn peer_copy(&mut self, record: PeerCopy) {
        let Some(origin) = self.begin(&work!(record), Kind::MEMORY_COPY) else {
            return;
        };
        let mut copy = MemoryCopy::blank();
        copy.transfer = TransferKind(record.copy_kind);
        copy.source_memory = memory_kind(record.source_kind.into());
        copy.destination_memory = memory_kind(record.destination_kind.into());
        copy.source_agent = self.objects.agent(self.names, record.source_device);
        copy.destination_agent = self.objects.agent(self.names, record.destination_device);
        let contexts = [
            (record.source_context, copy.source_agent),
            (record.destination_context, copy.destination_agent),
        ];
        let contexts = contexts.map(|(context, agent)| match context {
            0 => ContextId::NONE,
            context => self.objects.context(self.names, context, agent),
        });
        [copy.source_context, copy.destination_context] = contexts;
        self.write_copy(&origin, copy, record.bytes, record.flags);
    }

    fn write_copy(&mut self, origin: &WrittenWork, mut copy: MemoryCopy, bytes: u64, flags: u8) {
        copy.header = copy.header.with(asynchronous(flags));
        (copy.work, copy.bytes) = (origin.header, bytes);
        self.host.write_late(origin.buffers, copy);
        self.complete(origin);
    }

    fn set(&mut self, record: Set) {
        let Some(origin) = self.begin(&work!(record), Kind::MEMORY_SET) else {
            return;
        };
        let mut set = MemorySet::blank();
        set.header = set.header.with(asynchronous(record.flags as u8));
        (set.work, set.bytes, set.value) = (origin.header, record.bytes, record.value);
        set.memory = memory_kind(record.memory_kind.into());
        self.host.write_late(origin.buffers, set);
        self.complete(&origin);
    }

    /// Pages of managed memory that moved are copies without a call; all else are counters.
    fn unified_memory(&mut self, record: UnifiedMemory) {
        // Faults of the processor have a time and no duration.
        if self.is_early(record.end.max(record.start)) {
            return;
        }
        let transfer = match record.what {
            1 => Some((TransferKind::HOST_TO_DEVICE, record.destination)),
            2 => Some((TransferKind::DEVICE_TO_HOST, record.source)),
            8 => Some((TransferKind::PEER_TO_PEER, record.destination)),
            _ => None,
        };
        let agent_of = |this: &mut Self, device| match device {
            NONE => AgentId::NONE,
            device => this.objects.agent(this.names, device),
        };
        let Some((transfer, device)) = transfer else {
            let buffers = self.host.buffers_for(Kind::UNIFIED_MEMORY_COUNTER);
            let Some(start) = self.ticks(record.start) else {
                return counts::UNTIMED.add(1);
            };
            let mut counter = record::UnifiedMemoryCounter::blank();
            counter.start = start;
            counter.value = match record.what {
                // One fault. CUPTI's value is the address of the instruction.
                3 => 1,
                _ => record.value,
            };
            counter.end = self.ticks(record.end).unwrap_or(start);
            counter.address = record.address;
            // The agents that CUPTI defines for each kind; thrashing has a mask of them.
            (counter.source_agent, counter.destination_agent) = match record.what {
                3 => (AgentId::NONE, AgentId::NONE),
                4 | 6 => (agent_of(self, record.source), AgentId::NONE),
                5 if record.source == 0 => (AgentId::NONE, AgentId::NONE),
                5 => (
                    agent_of(self, record.source.trailing_zeros()),
                    AgentId::NONE,
                ),
                _ => (
                    agent_of(self, record.source),
                    agent_of(self, record.destination),
                ),
            };
            counter.flags = record.flags;
            counter.what = UnifiedMemoryCounterKind(record.what as u8);
            return self.host.write_late(buffers, counter);
        };
        let agent = self.objects.agent(self.names, device);
        let times = ActivityTimes::of(record.start, record.end);
        let place = (0, UNIFIED_MEMORY + device.min(0xff));
        let interval = (record.start, record.end);
        let ids = self
            .objects
            .place(self.names, agent, place, false, interval);
        let mut copy = MemoryCopy::blank();
        copy.transfer = transfer;
        copy.source_memory = MemoryKind::MANAGED;
        copy.destination_memory = MemoryKind::MANAGED;
        copy.source_address = record.address;
        copy.destination_address = record.address;
        if transfer != TransferKind::HOST_TO_DEVICE {
            copy.source_agent = agent_of(self, record.source);
        }
        if transfer != TransferKind::DEVICE_TO_HOST {
            copy.destination_agent = agent;
        }
        let header = WorkHeader {
            id: self.host.new_work(),
            agent,
            context: ids.context,
            queue: ids.queue,
            ..WorkHeader::default()
        };
        let buffers = self.host.buffers_for(Kind::MEMORY_COPY);
        let origin = WrittenWork {
            header,
            buffers,
            node: ActivityNode::default(),
            times,
            call: 0,
        };
        self.write_copy(&origin, copy, record.value, 1);
    }

    fn memory(&mut self, record: Memory) {
        let operation = match record.operation {
            1 => AllocationOperation::ALLOCATE,
            2 => AllocationOperation::FREE,
            _ => return,
        };
        let mut allocation = Allocation::blank();
        (allocation.address, allocation.bytes) = (record.address, record.bytes);
        allocation.memory = memory_kind(record.memory_kind);
        let at = (record.correlation, record.timestamp, record.device);
        self.write_allocation(allocation, operation, at);
    }

    fn memory_pool(&mut self, record: MemoryPool) {
        let operation = match record.operation {
            1 => AllocationOperation::CREATE_POOL,
            2 => AllocationOperation::DESTROY_POOL,
            3 => AllocationOperation::TRIM_POOL,
            _ => return,
        };
        let mut allocation = Allocation::blank();
        (allocation.address, allocation.bytes) = (record.address, record.bytes);
        allocation.memory = MemoryKind::DEVICE;
        let at = (record.correlation, record.timestamp, record.device);
        self.write_allocation(allocation, operation, at);
    }

    fn write_allocation(
        &mut self,
        mut allocation: Allocation,
        operation: AllocationOperation,
        (correlation, timestamp, device): (u32, u64, u32),
    ) {
        if self.is_early(timestamp) {
            return;
        }
        let (call, buffers) = self.call(correlation, Kind::MEMORY_ALLOCATION);
        allocation.operation = operation;
        allocation.correlation = call.correlation;
        allocation.external = call.external;
        allocation.thread = call.thread;
        allocation.end = self.ticks(timestamp).unwrap_or(self.now);
        allocation.start = if call.start.is_some() {
            call.start.min(allocation.end)
        } else {
            allocation.end
        };
        if !matches!(allocation.memory, MemoryKind::PAGEABLE | MemoryKind::PINNED) {
            allocation.agent = self.objects.agent(self.names, device);
        }
        self.host.write_late(buffers, allocation);
    }

    /// A wait of the host, or of a stream for an event.
    fn synchronization(&mut self, record: Synchronization) {
        if self.is_early(record.end) {
            return;
        }
        let (call, buffers) = self.call(record.correlation, Kind::SYNCHRONIZATION);
        let mut wait = record::Synchronization::blank();
        wait.work = WorkHeader {
            correlation: call.correlation,
            external: call.external,
            enqueued: call.start,
            thread: call.thread,
            ..WorkHeader::default()
        };
        let known = self.objects.known_place((record.context, record.stream));
        if let Some((agent, place)) = known.filter(|_| record.stream != NONE) {
            wait.work.agent = agent;
            wait.work.context = place.context;
            wait.work.queue = place.queue;
            wait.work.stream = place.stream;
        }
        let (Some(start), Some(end)) = (self.ticks(record.start), self.ticks(record.end)) else {
            return counts::UNTIMED.add(1);
        };
        if !call.start.is_some() {
            wait.work.enqueued = start;
        }
        wait.end = end.max(wait.work.enqueued);
        wait.what = SynchronizationType(record.what as u8);
        if !matches!(record.event, 0 | NONE) {
            wait.events = 1;
            wait.event = self
                .objects
                .event(self.names, (record.context, record.event));
        }
        self.host.write_late(buffers, wait);
    }

    /// An event that was recorded in a stream: a marker, which is work of the stream.
    fn event(&mut self, record: CudaEvent) {
        if record.timestamp == 0 {
            // Versions before 13.0 have such records if they are asked for waits: they say no more than the call.
            return;
        }
        // Versions before 12.9 do not say the device.
        let known = self.objects.known_place((record.context, record.stream));
        let device = match known {
            Some((agent, _)) => self.objects.device(agent),
            None => record.device,
        };
        let work = WorkFields {
            device,
            context: record.context,
            stream: record.stream,
            node: ActivityNode::default(),
            correlation: record.correlation,
            times: ActivityTimes::of(record.timestamp, record.timestamp),
        };
        let Some(origin) = self.begin(&work, Kind::SYNCHRONIZATION) else {
            return;
        };
        let mut marker = record::Synchronization::blank();
        marker.header = marker.header.with(flags::LATE | flags::ASYNCHRONOUS);
        (marker.work, marker.what) = (origin.header, SynchronizationType::MARKER);
        marker.event = self
            .objects
            .event(self.names, (record.context, record.event));
        self.host.write_late(origin.buffers, marker);
        self.complete(&origin);
    }

    /// A stream that was created. It gets a description when work runs in it.
    fn stream(&mut self, record: CreatedStream) {
        let key = (record.context, record.stream);
        let created = (record.priority as i32, StreamFlag(record.flag));
        self.objects.created(self.names, key, created);
    }

    /// Clocks, temperature, power and fan of a device: a record of ours for each value.
    fn environment(&mut self, record: Environment) {
        if self.is_early(record.timestamp) {
            return;
        }
        let Some(time) = self.ticks(record.timestamp) else {
            return counts::UNTIMED.add(1);
        };
        let kinds: &[EnvironmentKind] = match record.what {
            1 => &[
                EnvironmentKind::CLOCK,
                EnvironmentKind::MEMORY_CLOCK,
                EnvironmentKind::PCIE_GENERATION,
                EnvironmentKind::PCIE_WIDTH,
                EnvironmentKind::THROTTLE_REASONS,
            ],
            2 => &[EnvironmentKind::TEMPERATURE],
            3 => &[EnvironmentKind::POWER, EnvironmentKind::POWER_LIMIT],
            4 => &[EnvironmentKind::FAN_SPEED],
            _ => &[],
        };
        let agent = self.objects.agent(self.names, record.device);
        let buffers = self.host.buffers_for(Kind::ENVIRONMENT);
        let values = record.values;
        for (what, value) in kinds.iter().zip(values) {
            let mut environment = record::Environment::blank();
            (environment.time, environment.agent) = (time, agent);
            (environment.what, environment.value) = (*what, value.into());
            self.host.write_late(buffers, environment);
        }
    }

    fn overhead(&mut self, record: Overhead) {
        if self.is_early(record.end) {
            return;
        }
        let (Some(start), Some(end)) = (self.ticks(record.start), self.ticks(record.end)) else {
            return counts::UNTIMED.add(1);
        };
        let (call, buffers) = self.call(record.correlation, Kind::OVERHEAD);
        let mut overhead = record::Overhead::blank();
        (overhead.correlation, overhead.thread) = (call.correlation, call.thread);
        (overhead.start, overhead.end) = (start, end);
        overhead.what = match record.overhead_kind {
            1 => OverheadKind::COMPILATION,
            0x1_0000 => OverheadKind::FLUSH,
            0x2_0000 => OverheadKind::INSTRUMENTATION,
            0x3_0000 => OverheadKind::RESOURCE,
            _ => OverheadKind::UNKNOWN,
        };
        self.host.write_late(buffers, overhead);
    }

    /// Work of the driver's compiler or of its cache, in the call that needs the code.
    fn jit(&mut self, record: Jit) {
        if self.is_early(record.end) {
            return;
        }
        let (Some(start), Some(end)) = (self.ticks(record.start), self.ticks(record.end)) else {
            return counts::UNTIMED.add(1);
        };
        let (call, buffers) = self.call(record.correlation, Kind::OVERHEAD);
        let code = match record.entry {
            1 => "PTX to machine code",
            2 => "NVVM IR to PTX",
            _ => "code",
        };
        let operation = match record.operation {
            1 => "loaded from the cache",
            2 => "stored in the cache",
            3 => "compiled",
            _ => "prepared",
        };
        // SAFETY: CUPTI's path, which lasts as long as the record.
        let path = unsafe { text(record.cache_path) };
        let detail = match &path[..] {
            "" => format!("{code}: {operation}"),
            path => format!("{code}: {operation} {path}"),
        };
        let mut overhead = record::Overhead::blank();
        (overhead.correlation, overhead.thread) = (call.correlation, call.thread);
        (overhead.start, overhead.end) = (start, end);
        overhead.agent = self.objects.agent(self.names, record.device);
        (overhead.what, overhead.detail) = (OverheadKind::JIT, self.names.string(&detail));
        self.host.write_late(buffers, overhead);
    }

    /// A function of a module that was loaded.
    fn function(&mut self, record: FunctionOf) {
        let module = (record.context, record.module);
        // SAFETY: CUPTI's name of the function, which lasts as long as the record.
        unsafe {
            self.objects
                .register(self.names, module, record.name as *const c_char);
        }
    }

    /// An id that the program had pushed to CUPTI when it made a call.
    fn external(&mut self, record: External) {
        let Some(call) = RECENT.get(record.correlation) else {
            return counts::WITHOUT_CALL.add(1);
        };
        let mut external = ExternalCorrelation::blank();
        external.header = external.header.with(flags::LATE);
        (external.correlation, external.external) = (call.correlation, ExternalId(record.id));
        external.kind = ExternalKind(record.external_kind);
        let buffers = self.host.buffers_for(Kind::EXTERNAL_CORRELATION);
        self.host.write_late(buffers, external);
    }
}

/// A text of CUPTI's.
///
/// # Safety
///
/// `text` is 0 or the address of a text that ends with a 0.
unsafe fn text(text: u64) -> String {
    match text {
        0 => String::new(),
        // SAFETY: `text` is not 0, so that it leads to a text that ends with a 0 (`# Safety`); it is copied.
        text => unsafe { CStr::from_ptr(text as *const c_char) }
            .to_string_lossy()
            .into_owned(),
    }
}

/// The flags of a copy or fill.
fn asynchronous(flags_of_cupti: u8) -> u8 {
    match flags_of_cupti & 1 {
        0 => flags::LATE,
        _ => flags::LATE | flags::ASYNCHRONOUS,
    }
}

/// CUPTI's kinds of memory have the numbers of ours.
fn memory_kind(kind: u32) -> MemoryKind {
    MemoryKind(u8::try_from(kind).unwrap_or(0))
}

/// `agent` if memory of this kind is a device's.
fn of_device(kind: MemoryKind, agent: AgentId) -> AgentId {
    match kind {
        MemoryKind::PAGEABLE | MemoryKind::PINNED | MemoryKind::UNKNOWN => AgentId::NONE,
        _ => agent,
    }
}
