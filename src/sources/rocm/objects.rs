//! The objects that records name by the SDK's numbers: agents, queues, streams, kernels and their code, each with its id in the
//! names store.
//!
//! Work of HIP is shown by its stream, other work by its queue, and copies without a stream by their device. Processors of the host are no
//! agents of a trace.

use super::code;
use super::sdk::text_of;
use super::session::{Reading, SdkAgent};
use foldhash::HashMap;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_capture::names::Names;
use gputrail_collect::process;
use gputrail_record::{
    AgentId, CodeObjectId, Context, ContextId, Domain, KernelId, KernelSymbol, MemoryKind, Module,
    ModuleId, Queue, QueueId, Stream, StreamFlag, StreamId, queue_properties,
};
use gputrail_rocprofiler::{
    self as rocprofiler, AgentType, CallbackPhase, CallbackTracingRecord, CodeObjectLoadData,
    CodeObjectOperation, HipStreamData, KernelSymbolData, Pc, read,
};

/// Rows of a stream or queue whose work overlaps.
const MAX_ROWS: usize = 64;
/// Allocations whose size is kept until they are freed.
const MAX_ALLOCATIONS: usize = 1 << 20;

/// The objects of this process.
pub(super) static OBJECTS: PerProcess<KnownObjects> = PerProcess::new();

/// The objects that are known, by the SDK's numbers.
#[derive(Default)]
pub(super) struct KnownObjects {
    /// The latest reading of the SDK's clock.
    pub latest_reading: Option<Reading>,
    agents: HashMap<rocprofiler::AgentId, AgentId>,
    contexts: HashMap<AgentId, ContextId>,
    streams: HashMap<u64, StreamId>,
    modules: HashMap<u64, ModuleId>,
    kernels: HashMap<u64, KnownKernel>,
    rows: HashMap<(AgentId, Place), WorkRows>,
    /// By address: allocated memory.
    allocations: HashMap<u64, KnownAllocation>,
}

/// Memory that is allocated.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct KnownAllocation {
    pub bytes: u64,
    pub agent: AgentId,
    pub memory: MemoryKind,
}

/// A kernel that has been loaded.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct KnownKernel {
    pub id: KernelId,
    /// Vector registers of a work-item: ordinary ones, and those that matrix instructions accumulate in.
    pub vector_registers: u32,
    pub accumulation_registers: u32,
    /// Scalar registers of a wave.
    pub scalar_registers: u32,
    /// LDS of a workgroup that the kernel declares, in bytes.
    pub local_memory: u32,
}

/// The place where work of an agent is shown.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Place {
    /// A stream of HIP.
    Stream(u64),
    /// A queue of HSA.
    Queue(u64),
    /// Copies that belong to no stream.
    Copies,
    /// Pages that the driver moves.
    Pages,
}

impl Place {
    fn name(self) -> String {
        match self {
            Place::Stream(0) => "default stream".to_owned(),
            Place::Stream(number) => format!("stream {number}"),
            Place::Queue(number) => format!("queue {number}"),
            Place::Copies => "copies".to_owned(),
            Place::Pages => "managed memory".to_owned(),
        }
    }

    /// The number of the stream or queue.
    fn number(self) -> u64 {
        match self {
            Place::Stream(number) | Place::Queue(number) => number,
            Place::Copies | Place::Pages => 0,
        }
    }
}

/// The queues that stand for a place: more than one if its work overlaps, as that of several streams in one queue does.
struct WorkRows {
    place: Place,
    stream: StreamId,
    context: ContextId,
    agent: AgentId,
    rows: Vec<LatestWork>,
}

/// A queue, with the start and the end of its latest work.
struct LatestWork {
    queue: QueueId,
    start: u64,
    end: u64,
}

/// The place of a piece of work, in the names store.
#[derive(Copy, Clone, Debug)]
pub(super) struct PlaceIds {
    pub context: ContextId,
    pub queue: QueueId,
    pub stream: StreamId,
}

impl KnownObjects {
    /// The agents that are known.
    pub fn agents(&self) -> impl Iterator<Item = AgentId> + '_ {
        self.agents.values().copied()
    }

    /// The agent of a GPU with the SDK's id; none for processors of the host.
    #[inline]
    pub fn agent(&self, id: rocprofiler::AgentId) -> AgentId {
        self.agents.get(&id).copied().unwrap_or_default()
    }

    /// A GPU has an agent.
    pub fn add_agent(&mut self, agent: &SdkAgent, id: AgentId) {
        self.agents.insert(agent.info.id, id);
    }

    /// The kernel with the SDK's number.
    #[inline]
    pub fn kernel(&self, number: rocprofiler::KernelId) -> Option<KnownKernel> {
        self.kernels.get(&number).copied()
    }

    /// Memory was allocated.
    pub fn allocated(&mut self, address: u64, allocation: KnownAllocation) {
        if address != 0 && self.allocations.len() < MAX_ALLOCATIONS {
            self.allocations.insert(address, allocation);
        }
    }

    /// Memory was freed. Returns what was allocated there, as far as it is known.
    pub fn freed(&mut self, address: u64) -> KnownAllocation {
        self.allocations.remove(&address).unwrap_or_default()
    }

    /// The context of an agent: HIP has one for each device.
    fn context(&mut self, names: &Names, agent: AgentId) -> ContextId {
        *self.contexts.entry(agent).or_insert_with(|| {
            let mut context = Context::blank();
            (context.agent, context.agents) = (agent, 1);
            context.domain = Domain::HIP;
            names.context(context)
        })
    }

    /// The place of work that an agent has executed from `start` to `end`.
    #[inline]
    pub fn place(
        &mut self,
        names: &Names,
        agent: AgentId,
        place: Place,
        interval: (u64, u64),
    ) -> PlaceIds {
        let key = (agent, place);
        if !self.rows.contains_key(&key) {
            self.add_place(names, key);
        }
        let Some(rows) = self.rows.get_mut(&key) else {
            return PlaceIds {
                context: ContextId::NONE,
                queue: QueueId::NONE,
                stream: StreamId::NONE,
            };
        };
        PlaceIds {
            context: rows.context,
            queue: rows.row(names, interval),
            stream: rows.stream,
        }
    }

    #[cold]
    fn add_place(&mut self, names: &Names, (agent, place): (AgentId, Place)) {
        let context = self.context(names, agent);
        let stream = match place {
            Place::Stream(number) => self.stream_of(names, number, agent, context),
            _ => StreamId::NONE,
        };
        let rows = WorkRows {
            place,
            stream,
            context,
            agent,
            rows: Vec::new(),
        };
        self.rows.insert((agent, place), rows);
    }

    /// The stream with the SDK's number, in which work of an agent has run.
    fn stream_of(
        &mut self,
        names: &Names,
        number: u64,
        agent: AgentId,
        context: ContextId,
    ) -> StreamId {
        let known = self.streams.get(&number);
        let known = known.and_then(|id| names.get::<Stream>(id.0));
        let mut stream = known.unwrap_or_else(|| new_stream(names, number, 0));
        if stream.agent.is_some() {
            // Of another device: the stream of all threads.
            return stream.id;
        }
        (stream.agent, stream.context) = (agent, context);
        let id = names.stream(stream);
        self.streams.insert(number, id);
        id
    }
}

/// A stream with the SDK's number, and the program's handle.
fn new_stream(names: &Names, number: u64, handle: u64) -> Stream {
    let mut stream = Stream::blank();
    stream.name = names.string(&Place::Stream(number).name());
    stream.handle = handle;
    if number == 0 {
        stream.flag = StreamFlag::NULL;
    }
    stream
}

impl WorkRows {
    /// The first row that is free from `start` to `end`.
    #[inline]
    fn row(&mut self, names: &Names, (start, end): (u64, u64)) -> QueueId {
        // Records come in any order: earlier work need not overlap.
        let is_free = |row: &LatestWork| end == 0 || row.end <= start || end <= row.start;
        match self.rows.iter().position(is_free) {
            Some(row) => {
                let row = &mut self.rows[row];
                if end != 0 {
                    (row.start, row.end) = (start, end);
                }
                row.queue
            }
            None if self.rows.len() == MAX_ROWS => self.rows[0].queue,
            None => self.add_row(names, (start, end)),
        }
    }

    #[cold]
    fn add_row(&mut self, names: &Names, (start, end): (u64, u64)) -> QueueId {
        // The program may have named the stream.
        let stream = names.get::<Stream>(self.stream.0);
        let given = stream.and_then(|stream| names.text(stream.name));
        let name = given.unwrap_or_else(|| self.place.name());
        let name = match self.rows.len() {
            0 => name,
            number => format!("{name} row {}", number + 1),
        };
        let mut queue = Queue::blank();
        (queue.context, queue.agent) = (self.context, self.agent);
        (queue.name, queue.handle) = (names.string(&name), self.place.number());
        queue.number = self.place.number() as u32;
        if self.place == Place::Copies {
            queue.properties = queue_properties::COPY_ENGINE;
        }
        let queue = names.queue(queue);
        self.rows.push(LatestWork { queue, start, end });
        queue
    }
}

/// A stream of HIP was created. Work that runs in it says on which device it is.
pub(super) fn stream_created(stream: &HipStreamData) {
    let Some(names) = process::names() else {
        return;
    };
    let number = stream.stream_id.handle;
    let id = names.stream(new_stream(names, number, stream.stream_value));
    OBJECTS.lock().streams.insert(number, id);
}

/// A stream of HIP was destroyed: its number is not used again, and its handle may be.
pub(super) fn stream_destroyed(stream: &HipStreamData) {
    let number = stream.stream_id.handle;
    if number != 0 {
        // Work that has run in it may still be told of: what has a place keeps it.
        OBJECTS.lock().streams.remove(&number);
    }
}

/// A callback about code: a code object is loaded or unloaded, or one of its kernels is registered.
///
/// # Safety
///
/// `record` is the SDK's, and its payload the structure of its operation.
pub(super) unsafe fn code(record: &CallbackTracingRecord) {
    let Some(names) = process::names() else {
        return;
    };
    let is_load = record.phase == CallbackPhase::LOAD;
    match CodeObjectOperation(record.operation) {
        CodeObjectOperation::LOAD if is_load => {
            // SAFETY: the structure of this operation, which begins with its size (`# Safety`).
            let data: CodeObjectLoadData = unsafe { read(record.payload.cast()) };
            let (agent, context) = {
                let mut objects = OBJECTS.lock();
                let agent = objects.agent(data.agent_id);
                (agent, objects.context(names, agent))
            };
            let mut module = Module::blank();
            (module.context, module.handle) = (context, data.code_object_id);
            let module = names.module(module);
            OBJECTS.lock().modules.insert(data.code_object_id, module);
            // SAFETY: the description, in the callback that tells of it.
            unsafe { code::loaded(names, (agent, module), &data) };
        }
        CodeObjectOperation::DEVICE_KERNEL_SYMBOL_REGISTER if is_load => {
            // SAFETY: the structure of this operation, which begins with its size (`# Safety`).
            let data: KernelSymbolData = unsafe { read(record.payload.cast()) };
            // SAFETY: null or a text of the SDK's that stays during the callback.
            let name = unsafe { text_of(data.kernel_name) }.unwrap_or_default();
            register(names, &data, &name);
        }
        // Records of kernels may still come when the code is gone: the numbers are not used again.
        _ => {}
    }
}

/// A kernel was loaded.
fn register(names: &Names, data: &KernelSymbolData, name: &str) {
    // The symbol is that of the kernel's descriptor.
    let name = name.strip_suffix(".kd").unwrap_or(name);
    let module = OBJECTS.lock().modules.get(&data.code_object_id).copied();
    let mut symbol = KernelSymbol::blank();
    symbol.module = module.unwrap_or_default();
    symbol.handle = data.kernel_object;
    symbol.local_memory = data.group_segment_size.into();
    symbol.private_memory = data.private_segment_size.into();
    symbol.code_object = code_object_of(data.code_object_id);
    let kernel = KnownKernel {
        id: process::add_kernel(names, name, symbol),
        vector_registers: data.arch_vgpr_count,
        accumulation_registers: data.accum_vgpr_count,
        scalar_registers: data.sgpr_count,
        local_memory: data.group_segment_size,
    };
    OBJECTS.lock().kernels.insert(data.kernel_id, kernel);
}

/// Our code object with the SDK's number, if its code is kept.
fn code_object_of(number: u64) -> CodeObjectId {
    let start = Pc {
        code_object_id: number,
        code_object_offset: 0,
    };
    code::object(number).map_or(CodeObjectId::NONE, |object| object.place(start).0)
}

/// Whether the SDK's id is that of a GPU.
pub(super) fn is_gpu(agent: &SdkAgent) -> bool {
    agent.info.type_ == AgentType::GPU
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_overlaps_has_rows_of_its_own() {
        let (names, mut objects) = (Names::new(), KnownObjects::default());
        let agent = AgentId(1);
        let mut place = |place, interval| objects.place(&names, agent, place, interval);
        let one = place(Place::Stream(7), (10, 20));
        let other = place(Place::Queue(7), (10, 20));
        assert_ne!(one.queue, other.queue);
        assert!(one.stream.is_some() && !other.stream.is_some());
        assert_eq!(one.context, other.context);
        // Without overlap, in any order, and without times.
        for interval in [(20, 30), (0, 0), (5, 20)] {
            assert_eq!(place(Place::Stream(7), interval).queue, one.queue);
        }
        let row = place(Place::Stream(7), (10, 15)).queue;
        let name = |queue: QueueId| names.text(names.get::<Queue>(queue.0).unwrap().name);
        assert_eq!(name(one.queue).as_deref(), Some("stream 7"));
        assert_eq!(name(row).as_deref(), Some("stream 7 row 2"));
        let copies = place(Place::Copies, (1, 2)).queue;
        let copies = names.get::<Queue>(copies.0).unwrap();
        assert_eq!(copies.properties, queue_properties::COPY_ENGINE);
    }

    #[test]
    fn freed_memory_is_as_large_as_it_was_allocated() {
        let mut objects = KnownObjects::default();
        let memory = KnownAllocation {
            bytes: 64,
            agent: AgentId(1),
            memory: MemoryKind::DEVICE,
        };
        objects.allocated(16, memory);
        assert_eq!(objects.freed(16).bytes, 64);
        assert_eq!(objects.freed(16).bytes, 0);
    }
}
