//! The objects that activity records name by number: devices, contexts, streams and kernels, each with its id in the
//! names store.

use super::cupti;
use super::ffi::{
    CONTEXT_CREATED, CONTEXT_DESTROYED, CallData, Cuda, STREAM_CREATED, STREAM_DESTROYED, SUCCESS,
    call,
};
use super::inside::InsideCupti;
use super::sampling::ffi::Resource;
use super::session::{CuptiReading, CuptiSession, current_session};
use core::ffi::{CStr, c_char, c_void};
use foldhash::HashMap;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_capture::names::Names;
use gputrail_collect::process;
use gputrail_collect::source::Handles;
use gputrail_record::{
    Agent, AgentId, AgentKind, Context, ContextId, Domain, Event, EventId, KernelId, KernelSymbol,
    Module, ModuleId, Queue, QueueId, Stream, StreamFlag, StreamId,
};
use std::collections::BTreeSet;

/// Kernels that are found by the address of their name.
const CACHED: usize = 1024;

/// The objects of this process.
pub(super) static OBJECTS: PerProcess<KnownObjects> = PerProcess::new();

/// The objects that are known, by CUPTI's numbers.
#[derive(Default)]
pub(super) struct KnownObjects {
    /// The latest reading of CUPTI's clock.
    pub latest_reading: Option<CuptiReading>,
    pub agents: HashMap<u32, AgentId>,
    contexts: HashMap<u32, ContextId>,
    streams: Vec<CudaStream>,
    /// By context and stream: the index in `streams`.
    places: HashMap<(u32, u32), usize>,
    latest: Option<((u32, u32), usize)>,
    /// The names that the program has given to streams, by context and number.
    stream_names: HashMap<(u32, u32), String>,
    /// The names that the program has given to contexts.
    context_names: HashMap<u32, String>,
    /// The priorities and flags of the streams that CUPTI has reported, by context and number.
    created: HashMap<(u32, u32), (i32, StreamFlag)>,
    events: HashMap<(u32, u32), EventId>,
    /// By context and number: the modules that are loaded.
    modules: HashMap<(u32, u32), ModuleId>,
    kernels: HashMap<Box<[u8]>, KernelId>,
    /// Functions of modules that subscribers are not told of yet.
    registered: Vec<KernelId>,
    /// By the address of the name, direct-mapped: the name and its kernel.
    cached: Vec<(Box<[u8]>, KernelId)>,
}

/// The number under which the work of CUDA graphs is kept together, as that of a stream.
const GRAPHS: u32 = u32::MAX;
/// The number under which pages of managed memory of device 0 that move are kept together, as the work of a stream; those
/// of further devices have the numbers above.
pub(super) const UNIFIED_MEMORY: u32 = u32::MAX - 0x1ff;
/// Functions of modules that are registered at a time.
const MAX_REGISTERED: usize = 1 << 16;
/// Rows of a stream whose work overlaps.
const MAX_ROWS: usize = 64;

/// A stream, or the graphs of a context.
struct CudaStream {
    context: ContextId,
    stream: StreamId,
    agent: AgentId,
    number: u32,
    name: String,
    /// The queues that stand for it: more than one if its work overlaps, as dependent launches and nodes of graphs do.
    rows: Vec<LatestWork>,
}

/// A queue, with the start and the end of its latest work.
struct LatestWork {
    queue: QueueId,
    start: u64,
    end: u64,
}

/// The place of a piece of work.
#[derive(Copy, Clone, Debug)]
pub(super) struct StreamIds {
    pub context: ContextId,
    pub queue: QueueId,
    pub stream: StreamId,
}

/// The context of a call.
pub(super) fn context_of(names: &Names, call: &CallData) -> ContextId {
    if call.context.is_null() {
        return ContextId::NONE;
    }
    if let Some(context) = OBJECTS.lock().contexts.get(&call.context_uid) {
        return *context;
    }
    let device = current_session().and_then(|session| {
        let _inside = InsideCupti::begin();
        // SAFETY: the context of the call in progress.
        unsafe { session.cupti.device_of(call.context) }
    });
    let device = device.unwrap_or(0);
    let mut objects = OBJECTS.lock();
    let agent = objects.agent(names, device);
    objects.context(names, call.context_uid, agent)
}

impl KnownObjects {
    /// The agents that are known.
    pub fn agents(&self) -> impl Iterator<Item = AgentId> + '_ {
        self.agents.values().copied()
    }

    /// The agent of a device.
    pub fn agent(&mut self, names: &Names, device: u32) -> AgentId {
        match self.agents.get(&device) {
            Some(agent) => *agent,
            None => self.add_agent(names, device, Agent::blank()),
        }
    }

    /// Names a device that has no agent.
    pub fn add_agent(&mut self, names: &Names, device: u32, mut agent: Agent) -> AgentId {
        if !agent.name.is_some() {
            agent.name = names.string(&format!("CUDA device {device}"));
        }
        agent.vendor = names.string("NVIDIA Corporation");
        agent.platform = names.string("CUDA");
        (agent.domain, agent.kind) = (Domain::CUDA_DRIVER, AgentKind::GPU);
        (agent.handle, agent.timer_resolution) = (device.into(), 1);
        let id = names.agent(agent);
        self.agents.insert(device, id);
        let first = current_session().and_then(|session| session.first_reading);
        for reading in [first, self.latest_reading].into_iter().flatten() {
            names.clock_pair(CuptiReading::of_agent(reading, id));
        }
        id
    }

    /// The number of the device of an agent.
    pub fn device(&self, agent: AgentId) -> u32 {
        let found = self.agents.iter().find(|(_, id)| **id == agent);
        found.map_or(0, |(device, _)| *device)
    }

    /// The event of a context.
    pub fn event(&mut self, names: &Names, (context, number): (u32, u32)) -> EventId {
        let context_id = self.contexts.get(&context).copied().unwrap_or_default();
        *self.events.entry((context, number)).or_insert_with(|| {
            let mut event = Event::blank();
            (event.context, event.handle) = (context_id, number.into());
            names.event(event)
        })
    }

    /// A module that is loaded.
    pub fn module(&mut self, names: &Names, context: ContextId, key: (u32, u32)) -> ModuleId {
        *self.modules.entry(key).or_insert_with(|| {
            let mut module = Module::blank();
            (module.context, module.handle) = (context, key.1.into());
            names.module(module)
        })
    }

    /// A module is unloaded: its number may be another's from now on.
    pub fn unloaded(&mut self, key: (u32, u32)) -> ModuleId {
        self.modules.remove(&key).unwrap_or_default()
    }

    /// The agent and the place of a stream in which work has run.
    pub fn known_place(&self, key: (u32, u32)) -> Option<(AgentId, StreamIds)> {
        let state = &self.streams[*self.places.get(&key)?];
        let place = StreamIds {
            context: state.context,
            stream: state.stream,
            queue: state.rows.first()?.queue,
        };
        Some((state.agent, place))
    }

    /// The stream of a context.
    pub fn stream_of(&mut self, names: &Names, agent: AgentId, key: (u32, u32)) -> StreamId {
        let place = self.stream(names, agent, key);
        self.streams[place].stream
    }

    /// The context with this number.
    pub fn context(&mut self, names: &Names, context: u32, agent: AgentId) -> ContextId {
        *self.contexts.entry(context).or_insert_with(|| {
            let mut record = Context::blank();
            (record.agent, record.agents) = (agent, 1);
            (record.handle, record.domain) = (context.into(), Domain::CUDA_DRIVER);
            if let Some(name) = self.context_names.get(&context) {
                record.name = names.string(name);
            }
            names.context(record)
        })
    }

    /// The place of work that runs from `start` to `end` in a stream of a context, perhaps as a node of a graph. Nodes run
    /// in streams of CUDA's own choice: they are kept together.
    #[inline]
    pub fn place(
        &mut self,
        names: &Names,
        agent: AgentId,
        (context, stream): (u32, u32),
        is_node: bool,
        interval: (u64, u64),
    ) -> StreamIds {
        let place = self.stream(names, agent, (context, stream));
        let (context_id, stream_id) = (self.streams[place].context, self.streams[place].stream);
        let rows = if is_node {
            self.stream(names, agent, (context, GRAPHS))
        } else {
            place
        };
        StreamIds {
            context: context_id,
            stream: stream_id,
            queue: self.streams[rows].row(names, interval),
        }
    }

    #[inline]
    fn stream(&mut self, names: &Names, agent: AgentId, key: (u32, u32)) -> usize {
        match self.latest {
            Some((latest, place)) if latest == key => place,
            _ => self.find_stream(names, agent, key),
        }
    }

    #[cold]
    fn find_stream(&mut self, names: &Names, agent: AgentId, key: (u32, u32)) -> usize {
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None => {
                let state = self.add_stream(names, agent, key);
                self.streams.push(state);
                self.places.insert(key, self.streams.len() - 1);
                self.streams.len() - 1
            }
        };
        self.latest = Some((key, place));
        place
    }

    fn add_stream(
        &mut self,
        names: &Names,
        agent: AgentId,
        key @ (context, number): (u32, u32),
    ) -> CudaStream {
        let given = self.stream_names.get(&key).cloned();
        let name = given.unwrap_or_else(|| name_of(number));
        let context = self.context(names, context, agent);
        let mut stream = Stream::blank();
        (stream.context, stream.agent) = (context, agent);
        (stream.name, stream.handle) = (names.string(&name), number.into());
        if let Some(created) = self.created.get(&key) {
            (stream.priority, stream.flag) = *created;
        }
        CudaStream {
            context,
            agent,
            number,
            name,
            stream: match number {
                UNIFIED_MEMORY.. => StreamId::NONE,
                _ => names.stream(stream),
            },
            rows: Vec::new(),
        }
    }

    /// A stream was created with this priority and flag. Work may have run in it before CUPTI says so.
    pub fn created(&mut self, names: &Names, key: (u32, u32), (priority, flag): (i32, StreamFlag)) {
        self.created.insert(key, (priority, flag));
        let known = self.known_stream(key);
        if let Some(mut stream) = known.and_then(|id| names.get::<Stream>(id.0)) {
            (stream.priority, stream.flag) = (priority, flag);
            names.stream(stream);
        }
    }

    /// The stream of a context, if work has run in it.
    fn known_stream(&self, key: (u32, u32)) -> Option<StreamId> {
        let place = self.places.get(&key)?;
        Some(self.streams[*place].stream)
    }

    /// Gives a stream of a context a name. Work may have run in it before. Returns its id, or none.
    fn name_stream(&mut self, names: &Names, key: (u32, u32), name: &str) -> StreamId {
        self.stream_names.insert(key, name.to_owned());
        if let Some(place) = self.places.get(&key) {
            self.streams[*place].rename(names, name);
        }
        self.known_stream(key).unwrap_or_default()
    }

    /// Gives a context a name. Returns its id, or none if it has no record yet.
    fn name_context(&mut self, names: &Names, number: u32, name: &str) -> ContextId {
        self.context_names.insert(number, name.to_owned());
        let id = self.contexts.get(&number).copied().unwrap_or_default();
        if let Some(mut context) = names.get::<Context>(id.0) {
            context.name = names.string(name);
            names.context(context);
        }
        id
    }

    /// The kernel of a name.
    ///
    /// # Safety
    ///
    /// `name` is null or leads to a text that ends with a 0 and stays as it is during the call.
    #[inline]
    pub unsafe fn kernel(&mut self, names: &Names, name: u64) -> KernelId {
        if name == 0 {
            return KernelId::NONE;
        }
        // SAFETY: `name` is not 0, so that it leads to a text that ends with a 0 and stays during the call.
        let text = unsafe { CStr::from_ptr(name as *const c_char) }.to_bytes();
        if self.cached.is_empty() {
            self.cached.resize_with(CACHED, Default::default);
        }
        // An address may become that of another name: a module was unloaded.
        let place = (name >> 3) as usize % CACHED;
        if *self.cached[place].0 == *text && self.cached[place].1.is_some() {
            return self.cached[place].1;
        }
        let id = match self.kernels.get(text) {
            Some(id) => *id,
            None => self.add_kernel(names, text, ModuleId::NONE),
        };
        self.cached[place] = (text.into(), id);
        id
    }

    fn add_kernel(&mut self, names: &Names, name: &[u8], module: ModuleId) -> KernelId {
        let mut symbol = KernelSymbol::blank();
        symbol.module = module;
        let id = process::add_kernel(names, &String::from_utf8_lossy(name), symbol);
        self.kernels.insert(name.into(), id);
        id
    }

    /// A function of a module that was loaded. A function with the name of an earlier one is that one: CUPTI's records of
    /// kernels have names only.
    ///
    /// # Safety
    ///
    /// `name` is null or leads to a text that ends with a 0 and stays as it is during the call.
    pub unsafe fn register(&mut self, names: &Names, module: (u32, u32), name: *const c_char) {
        if name.is_null() || self.registered.len() >= MAX_REGISTERED {
            return;
        }
        // SAFETY: `name` is not null, so that it ends with a 0 and stays during the call.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes();
        if !self.kernels.contains_key(name) {
            let module = self.modules.get(&module).copied().unwrap_or_default();
            let kernel = self.add_kernel(names, name, module);
            self.registered.push(kernel);
        }
    }

    /// The functions that were registered, of which subscribers are told once.
    pub fn take_registered(&mut self) -> Vec<KernelId> {
        std::mem::take(&mut self.registered)
    }
}

/// The name of a stream.
fn name_of(number: u32) -> String {
    match number {
        GRAPHS => "CUDA graphs".to_owned(),
        UNIFIED_MEMORY.. => "managed memory".to_owned(),
        number => format!("stream {number}"),
    }
}

impl CudaStream {
    /// The first row that is free from `start` to `end`.
    #[inline]
    fn row(&mut self, names: &Names, (start, end): (u64, u64)) -> QueueId {
        // Records of several threads come in any order: earlier work need not overlap.
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
        let name = names.string(&row_name(&self.name, self.rows.len()));
        let mut queue = Queue::blank();
        (queue.context, queue.agent) = (self.context, self.agent);
        (queue.name, queue.handle) = (name, self.number.into());
        queue.number = self.number;
        let queue = names.queue(queue);
        self.rows.push(LatestWork { queue, start, end });
        queue
    }
}

impl CudaStream {
    /// Gives the stream and its rows another name.
    fn rename(&mut self, names: &Names, name: &str) {
        self.name = name.to_owned();
        if let Some(mut stream) = names.get::<Stream>(self.stream.0) {
            stream.name = names.string(name);
            names.stream(stream);
        }
        for (number, row) in self.rows.iter().enumerate() {
            if let Some(mut queue) = names.get::<Queue>(row.queue.0) {
                queue.name = names.string(&row_name(name, number));
                names.queue(queue);
            }
        }
    }
}

/// The name of a row of a stream, by its number from 0.
fn row_name(stream: &str, number: usize) -> String {
    match number {
        0 => stream.to_owned(),
        number => format!("{stream} row {}", number + 1),
    }
}

/// The handles of the contexts and streams that exist. With others the driver and CUPTI crash.
static LIVE: PerProcess<BTreeSet<u64>> = PerProcess::new();

/// The handles of streams that always exist: null, the default stream of all threads, and that of each thread.
const DEFAULT_STREAMS: std::ops::RangeInclusive<u64> = 0..=2;

/// A callback of CUPTI about a context or a stream.
///
/// # Safety
///
/// `data` is null or what CUPTI passes with this number, valid during the call.
pub(super) unsafe fn resource(number: u32, data: *const c_void) {
    if !matches!(
        number,
        CONTEXT_CREATED | CONTEXT_DESTROYED | STREAM_CREATED | STREAM_DESTROYED
    ) {
        // Others have another description, or none.
        return;
    }
    // SAFETY: `data` is null or a `CUpti_ResourceData`, as CUPTI passes with these numbers; it is valid during the call.
    let Some(resource) = (unsafe { data.cast::<Resource>().as_ref() }) else {
        return;
    };
    let (context, stream) = (resource.context as u64, resource.handle as u64);
    match number {
        CONTEXT_CREATED => drop(LIVE.lock().insert(context)),
        CONTEXT_DESTROYED => drop(LIVE.lock().remove(&context)),
        STREAM_CREATED => drop(LIVE.lock().insert(stream)),
        _ => drop(LIVE.lock().remove(&stream)),
    }
}

/// CUPTI's number of a context that the program knows by `handle`. CUPTI is called: hold no lock.
fn context_number(session: &CuptiSession, handle: u64) -> Option<u32> {
    if !LIVE.lock().contains(&handle) {
        return None;
    }
    let _inside = InsideCupti::begin();
    // SAFETY: the context exists (`LIVE`), and the program, which names it now, does not destroy it meanwhile.
    unsafe { session.cupti.context_number(pointer(handle)) }
}

/// CUPTI's numbers of a stream that the program knows by `handle`, and of its context. The driver and CUPTI are called: hold
/// no lock.
fn stream_numbers(session: &CuptiSession, handle: u64) -> Option<(u32, u32)> {
    if !DEFAULT_STREAMS.contains(&handle) && !LIVE.lock().contains(&handle) {
        return None;
    }
    let library = cupti::driver()?;
    let _inside = InsideCupti::begin();
    let (driver, cupti) = (Cuda::of(&library), &session.cupti);
    let (stream, any) = (pointer(handle), core::ptr::null_mut());
    let mut context = core::ptr::null_mut();
    // SAFETY: the stream is a default one or exists (`LIVE`), and the program, which names it now, does not destroy it
    // meanwhile, nor its context. The driver writes the context to a local.
    unsafe {
        if call!(driver, cuStreamGetCtx(stream, &raw mut context)) != Some(SUCCESS) {
            return None;
        }
        Some((
            cupti.context_number(context)?,
            cupti.stream_number(any, stream)?,
        ))
    }
}

/// A handle as CUDA's functions take it.
fn pointer(handle: u64) -> *mut c_void {
    core::ptr::without_provenance_mut(handle as usize)
}

/// CUDA's handles. CUPTI numbers contexts and streams, so the driver and CUPTI are asked for the numbers.
pub(super) struct CudaHandles;

impl Handles for CudaHandles {
    fn context(&self, handle: u64) -> Option<ContextId> {
        let number = context_number(current_session()?, handle)?;
        OBJECTS.lock().contexts.get(&number).copied()
    }

    fn stream(&self, handle: u64) -> Option<StreamId> {
        let key = stream_numbers(current_session()?, handle)?;
        OBJECTS.lock().known_stream(key)
    }

    fn name_context(&self, handle: u64, name: &str) -> Option<ContextId> {
        let names = process::names()?;
        let number = context_number(current_session()?, handle)?;
        Some(OBJECTS.lock().name_context(names, number, name))
    }

    fn name_stream(&self, handle: u64, name: &str) -> Option<StreamId> {
        let names = process::names()?;
        let key = stream_numbers(current_session()?, handle)?;
        Some(OBJECTS.lock().name_stream(names, key, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_named_once() {
        let (names, mut objects) = (Names::new(), KnownObjects::default());
        let agent = objects.agent(&names, 0);
        assert_eq!(objects.agent(&names, 0), agent);
        let mut place = |stream, is_node, interval| {
            objects.place(&names, agent, (1, stream), is_node, interval)
        };
        let one = place(7, false, (10, 20));
        let other = place(13, false, (10, 20));
        // Without overlap, in any order, and without times.
        for interval in [(20, 30), (0, 0), (5, 20)] {
            assert_eq!(place(7, false, interval).queue, one.queue);
        }
        assert_ne!(one.queue, other.queue);
        assert_ne!(place(7, false, (10, 15)).queue, one.queue);
        let nodes = [(1, (10, 20)), (2, (15, 25)), (3, (20, 30))];
        let [first, second, third] = nodes.map(|(stream, interval)| place(stream, true, interval));
        assert_eq!((first.queue, first.context), (third.queue, one.context));
        assert_ne!((first.queue, first.stream), (second.queue, second.stream));
        let name = |queue: QueueId| names.text(names.get::<Queue>(queue.0).unwrap().name);
        assert_eq!(name(other.queue).as_deref(), Some("stream 13"));
        assert_eq!(name(second.queue).as_deref(), Some("CUDA graphs row 2"));
        // Named after work ran in it, and before.
        let rows = [(10, 20), (10, 15)].map(|interval| {
            let place = objects.place(&names, agent, (1, 7), false, interval);
            place.queue
        });
        objects.name_stream(&names, (1, 7), "copies");
        objects.name_stream(&names, (1, 20), "kernels");
        let new = objects.place(&names, agent, (1, 20), false, (1, 2));
        assert_eq!(name(new.queue).as_deref(), Some("kernels"));
        let renamed = rows.map(|row| name(row).unwrap());
        assert!(
            renamed.iter().all(|name| name.starts_with("copies")),
            "{renamed:?}"
        );
    }

    #[test]
    fn a_name_at_the_address_of_another_is_another_kernel() {
        let (names, mut objects) = (Names::new(), KnownObjects::default());
        let mut text = *b"add\0";
        let address = text.as_ptr() as u64;
        // SAFETY: a text with its end.
        let mut kernel = || unsafe { objects.kernel(&names, address) };
        let add = kernel();
        assert_eq!(kernel(), add);
        text[0] = b'o';
        std::hint::black_box(&mut text);
        let odd = kernel();
        assert_ne!(odd, add);
        text[0] = b'a';
        std::hint::black_box(&mut text);
        assert_eq!(kernel(), add);
        // SAFETY: a null pointer is allowed.
        assert_eq!(unsafe { objects.kernel(&names, 0) }, KernelId::NONE);
    }
}
