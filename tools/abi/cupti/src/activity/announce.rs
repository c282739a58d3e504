//! Records of objects: devices, contexts, streams, modules and functions are told once each, as soon as records are
//! delivered after the process has come to know them; names of objects whenever they change.

use super::created;
use super::kind::ActivityKind;
use super::links;
use super::record::{
    self, ActivityRecord, Device, DeviceAttribute, Function, Name, ObjectId, object,
};
use super::sink;
use crate::objects;
use gputrail_abi::activity::is_stream;
use gputrail_abi::{lock, names};
use gputrail_record::{
    Agent, AgentAttributeKind, AgentId, AgentKind, Context, ContextId, KernelId, KernelSymbol,
    Module, ModuleId, Queue, QueueId, Stream, StreamId, StringId, Thread, ThreadId,
};
use gputrail_tool::{self as tool, describe};
use std::collections::{HashMap, HashSet};
use std::sync::{LazyLock, Mutex};

/// How far behind the last known id another one is looked for: several threads may get ids at once.
const AHEAD: u32 = 16;

/// The objects of one type that have been told.
#[derive(Default)]
struct Told(HashSet<u32>, u32);

impl Told {
    /// Calls `tell` for the objects that `describe` knows and that have not been told.
    fn new_ones<R>(&mut self, describe: impl Fn(u32) -> Option<R>, mut tell: impl FnMut(R)) {
        let Told(known, last) = self;
        let mut id = last.saturating_sub(AHEAD);
        while id < last.saturating_add(AHEAD) {
            id += 1;
            if known.contains(&id) {
                continue;
            }
            if let Some(one) = describe(id) {
                known.insert(id);
                *last = id.max(*last);
                tell(one);
            }
        }
    }
}

#[derive(Default)]
struct State {
    devices: Told,
    attributes: Told,
    links: Told,
    ports: Told,
    contexts: Told,
    /// Streams, and queues of runtimes without streams.
    streams: Told,
    queues: Told,
    modules: Told,
    functions: Told,
    threads: HashSet<ThreadId>,
    names: HashMap<(u32, ObjectId), StringId>,
}

static STATE: LazyLock<Mutex<State>> = LazyLock::new(Mutex::default);

/// Has the names of `thread` told.
pub fn thread(thread: ThreadId) {
    if thread.is_some() {
        lock(&STATE).threads.insert(thread);
    }
}

/// Forgets what has been told.
pub fn forget() {
    *lock(&STATE) = State::default();
}

/// Puts the records of new objects of the `kinds`, bits of [`ActivityKind::bit`]. `with_names` looks at all names, too, and at streams
/// whose creation was not observed.
pub fn new_objects(kinds: u64, with_names: bool) {
    let mut state = lock(&STATE);
    let wanted = |kind: ActivityKind| kinds & kind.bit() != 0;
    if wanted(ActivityKind::DEVICE) {
        state.devices.new_ones(agent, device);
    }
    if wanted(ActivityKind::DEVICE_ATTRIBUTE) {
        state.attributes.new_ones(agent, attributes);
    }
    if wanted(ActivityKind::PCIE) {
        state.links.new_ones(agent, |agent| links::pcie(&agent));
    }
    if wanted(ActivityKind::NVLINK) {
        state.ports.new_ones(agent, |agent| links::peers(&agent));
    }
    if wanted(ActivityKind::CONTEXT) {
        state.contexts.new_ones(context_of, context);
    }
    if wanted(ActivityKind::STREAM) {
        // The call that creates one may not have said so yet.
        let is_due = |handle| with_names || created::has_call(handle);
        let of_stream = |id| describe::<Stream>(StreamId(id)).ok();
        let of_stream = |id| of_stream(id).filter(|stream| is_due(stream.handle));
        state.streams.new_ones(of_stream, stream);
        let of_queue = |id| describe::<Queue>(QueueId(id)).ok();
        let of_queue = |id| of_queue(id).filter(|queue| is_due(queue.handle));
        state.queues.new_ones(of_queue, queue);
    }
    if wanted(ActivityKind::MODULE) {
        let of_module = |id| describe::<Module>(ModuleId(id)).ok();
        state.modules.new_ones(of_module, module);
    }
    if wanted(ActivityKind::FUNCTION) {
        let of_kernel = |id| describe::<KernelSymbol>(KernelId(id)).ok();
        state.functions.new_ones(of_kernel, function);
    }
    if wanted(ActivityKind::NAME) && with_names {
        new_names(&mut state);
    }
}

fn agent(id: u32) -> Option<Agent> {
    describe::<Agent>(AgentId(id)).ok()
}

fn context_of(id: u32) -> Option<Context> {
    describe::<Context>(ContextId(id)).ok()
}

/// An attribute of a device; 0 if it is not known.
fn attribute(agent: AgentId, what: AgentAttributeKind) -> u64 {
    tool::agent_attribute(agent, what).unwrap_or(0)
}

/// A number that CUPTI has 32 bits for.
fn word(number: u64) -> u32 {
    number.try_into().unwrap_or(u32::MAX)
}

fn device(agent: Agent) {
    use AgentAttributeKind as Kind;
    let of = |what| word(attribute(agent.id, what));
    let mut record = Device::blank();
    record.flags = u32::from(agent.kind != AgentKind::CPU);
    // Kilobytes per second, and kilohertz.
    record.global_memory_bandwidth = attribute(agent.id, Kind::MEMORY_BANDWIDTH) / 1000;
    record.core_clock_rate = agent.clock_mhz.saturating_mul(1000);
    record.global_memory_size = agent.memory;
    record.constant_memory_size = of(Kind::CONSTANT_MEMORY);
    record.l2_cache_size = of(Kind::L2_CACHE);
    record.num_threads_per_warp = of(Kind::WAVE_SIZE);
    record.num_memcpy_engines = of(Kind::COPY_ENGINES);
    record.num_multiprocessors = agent.compute_units;
    record.max_ipc = of(Kind::MAX_INSTRUCTIONS_PER_CYCLE);
    record.max_warps_per_multiprocessor = of(Kind::MAX_WAVES);
    record.max_blocks_per_multiprocessor = of(Kind::MAX_WORKGROUPS);
    record.max_shared_memory_per_multiprocessor = word(agent.local_memory);
    record.max_registers_per_multiprocessor = of(Kind::REGISTERS);
    record.max_registers_per_block = of(Kind::MAX_REGISTERS_OF_WORKGROUP);
    record.max_shared_memory_per_block = match of(Kind::MAX_LOCAL_MEMORY_OF_WORKGROUP) {
        0 => word(agent.local_memory),
        known => known,
    };
    record.max_threads_per_block = agent.max_workgroup;
    record.max_block_dim_x = of(Kind::MAX_WORKGROUP_X);
    record.max_block_dim_y = of(Kind::MAX_WORKGROUP_Y);
    record.max_block_dim_z = of(Kind::MAX_WORKGROUP_Z);
    record.max_grid_dim_x = of(Kind::MAX_GRID_X);
    record.max_grid_dim_y = of(Kind::MAX_GRID_Y);
    record.max_grid_dim_z = of(Kind::MAX_GRID_Z);
    record.id = objects::device_of(agent.id).unwrap_or(u32::MAX);
    record.ecc_enabled = of(Kind::ECC);
    record.uuid = links::uuid(&agent);
    record.name = names::of_string(agent.name);
    record.is_cuda_visible = 1;
    record.compute_capability_major = of(Kind::COMPUTE_CAPABILITY_MAJOR);
    record.compute_capability_minor = of(Kind::COMPUTE_CAPABILITY_MINOR);
    // No device is a part of one.
    (record.gpu_instance_id, record.compute_instance_id) = (u32::MAX, u32::MAX);
    sink::put(&record);
}

/// The attributes that CUDA's driver has a number for.
fn attributes(agent: Agent) {
    use AgentAttributeKind as Kind;
    let of = |what| attribute(agent.id, what);
    let all = [
        (1, agent.max_workgroup.into()),
        (2, of(Kind::MAX_WORKGROUP_X)),
        (3, of(Kind::MAX_WORKGROUP_Y)),
        (4, of(Kind::MAX_WORKGROUP_Z)),
        (5, of(Kind::MAX_GRID_X)),
        (6, of(Kind::MAX_GRID_Y)),
        (7, of(Kind::MAX_GRID_Z)),
        (9, of(Kind::CONSTANT_MEMORY)),
        (10, of(Kind::WAVE_SIZE)),
        (13, u64::from(agent.clock_mhz) * 1000),
        (16, agent.compute_units.into()),
        (38, of(Kind::L2_CACHE)),
        (39, of(Kind::MAX_WAVES).saturating_mul(of(Kind::WAVE_SIZE))),
        (75, of(Kind::COMPUTE_CAPABILITY_MAJOR)),
        (76, of(Kind::COMPUTE_CAPABILITY_MINOR)),
    ];
    for (number, value) in all.into_iter().filter(|(_, value)| *value != 0) {
        let mut record = DeviceAttribute::blank();
        // CUPTI_ACTIVITY_FLAG_DEVICE_ATTRIBUTE_CUDEVICE
        record.flags = 1;
        record.device_id = objects::device_of(agent.id).unwrap_or(u32::MAX);
        record.attribute = number;
        // CUDA's attributes are an int.
        record.value = value.min(i32::MAX as u64);
        sink::put(&record);
    }
}

fn context(context: Context) {
    let mut record = record::Context::blank();
    record.context_id = context.id.0;
    record.device_id = objects::device_of(context.agent).unwrap_or(u32::MAX);
    record.process_id = std::process::id().into();
    // CUPTI_ACTIVITY_COMPUTE_API_CUDA, as which all APIs are told.
    record.compute_api_kind = 1;
    sink::put(&record);
}

fn stream(stream: Stream) {
    let mut record = record::Stream::blank();
    record.context_id = stream.context.0;
    record.stream_id = stream.id.0;
    record.priority = stream.priority as u32;
    record.flag = stream.flag.0;
    record.correlation_id = created::take_call(stream.handle);
    sink::put(&record);
}

/// A queue of a runtime without streams is a stream.
fn queue(queue: Queue) {
    if !is_stream(&queue) {
        return;
    }
    let mut record = record::Stream::blank();
    record.context_id = queue.context.0;
    record.stream_id = queue.id.0;
    // CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING: there is no default stream.
    record.flag = 2;
    record.correlation_id = created::take_call(queue.handle);
    sink::put(&record);
}

fn module(module: Module) {
    let mut record = record::Module::blank();
    record.context_id = module.context.0;
    record.id = module.id.0;
    sink::put(&record);
}

fn function(kernel: KernelSymbol) {
    let module = describe::<Module>(kernel.module);
    let mut record = Function::blank();
    record.id = kernel.id.0;
    record.context_id = module.map_or(0, |module| module.context.0);
    record.module_id = kernel.module.0;
    record.function_index = objects::function_index(kernel.id);
    record.name = names::of_kernel(kernel.id);
    sink::put(&record);
}

/// Tells the names that are new.
fn new_names(state: &mut State) {
    let State { threads, names, .. } = state;
    let process = std::process::id();
    let mut tell = |kind: u32, id: ObjectId, name: StringId| {
        if !name.is_some() || names.insert((kind, id), name) == Some(name) {
            return;
        }
        let mut record = Name::blank();
        record.object_kind = kind;
        record.object_id = id;
        record.name = names::of_string(name);
        sink::put(&record);
    };
    for agent in tool::agents().unwrap_or_default() {
        if let (Ok(agent), Ok(device)) = (describe::<Agent>(agent), objects::device_of(agent)) {
            tell(object::DEVICE, [device, 0, 0], agent.name);
        }
    }
    for thread in threads.iter() {
        if let Ok(description) = describe::<Thread>(*thread) {
            tell(object::THREAD, [process, thread.0, 0], description.name);
        }
    }
    let device = |agent| objects::device_of(agent).unwrap_or(u32::MAX);
    Told::default().new_ones(context_of, |one| {
        tell(object::CONTEXT, [device(one.agent), one.id.0, 0], one.name);
    });
    let of_stream = |id| describe::<Stream>(StreamId(id)).ok();
    Told::default().new_ones(of_stream, |one| {
        let id = [device(one.agent), one.context.0, one.id.0];
        tell(object::STREAM, id, one.name);
    });
    let of_queue = |id| describe::<Queue>(QueueId(id)).ok();
    Told::default().new_ones(of_queue, |one| {
        let id = [device(one.agent), one.context.0, one.id.0];
        tell(object::STREAM, id, one.name);
    });
}

/// Whether a device of the process has a link to another one.
pub fn has_peers() -> bool {
    let agents = tool::agents().unwrap_or_default().into_iter();
    let mut described = agents.filter_map(|id| describe::<Agent>(id).ok());
    described.any(|agent| links::has_peers(&agent))
}
