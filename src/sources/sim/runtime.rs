//! The simulated runtime: devices, streams and events shared by the threads of the program. `run` is its course.
//!
//! A stream is an order of work. Its hardware queue depends on the kind of work: kernels go to the compute queue of the
//! stream, copies to the copy engine of their direction. A thread of the runtime per device receives completions and
//! writes their records.

use super::code::{KernelSource, LoadedModule};
use super::device::{self, COMPUTE_QUEUES, QueueChoice, SimDevice};
use super::environment::Readings;
use super::executor::{Executor, Halted, Polling, SimGate};
use super::family::Family;
use super::host::{completion_buffers, keep_room};
use super::instructions::CountedInstructions;
use super::machine::{Demand, SimCommand, SimMachine};
use super::managed::{Fault, Managed};
use super::memory::SimMemory;
use super::operations::SimFunction;
use super::random::{Purpose, Random};
use super::recent::{Recent, WorkIndex};
use super::time::{HostTime, Moment, us};
use gputrail_capture::names::Names;
use gputrail_collect::correlation::{CallInProgress, HostThread};
use gputrail_collect::counting::CountingError;
use gputrail_collect::notify::Followers;
use gputrail_collect::recorder::Recorder;
use gputrail_collect::sampling::SamplingError;
use gputrail_collect::sampling::lines::WrittenLines;
use gputrail_collect::switchboard::{Buffers, Switchboard};
use gputrail_record::*;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

mod run;

/// Host memory that can be page-locked.
pub(super) const HOST_MEMORY: u64 = 64 << 30;
/// Bandwidth of the host's memory for all copy engines together, in thousandths of a byte per nanosecond.
const HOST_BANDWIDTH: u64 = 36_000;
/// The interval of clock pairs.
const CLOCK_PERIOD: Nanos = us(10_000);
/// The id of the first virtual thread.
pub(super) const FIRST_THREAD: u32 = 4_001;
/// The id of the first writer of samples and values of counters in a real process: the system gives such ids to no thread.
const FIRST_THREAD_HERE: u32 = 1 << 23;
/// A stream of the program.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct SimStream(pub(super) usize);

/// An event of the program.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct SimEvent(pub(super) usize);

/// A failure of a simulation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimulationError {
    /// The recording had no lane for a thread.
    #[error("no lane is free for thread {0:?} of the simulation")]
    NoLane(String),
    /// A call returned an error that the program does not handle.
    #[error("thread {thread:?} of the simulation ended by status {status}")]
    Ended {
        /// The thread.
        thread: String,
        /// The status that the call returned.
        status: i32,
    },
    /// The process in which it was to run is not recorded.
    #[error("this process is not recorded")]
    NotRecorded,
    /// The devices do not support the sampling that the recording asks for.
    #[error(transparent)]
    Sampling(#[from] SamplingError),
    /// The devices do not have the counters that the recording asks for.
    #[error(transparent)]
    Counting(#[from] CountingError),
    /// The threads wait for each other.
    #[error("{0} threads of the simulation wait for something that will not happen")]
    Stuck(usize),
    /// The system refused a thread.
    #[error("thread {name:?} of the simulation cannot be started: {reason}")]
    NoThread {
        /// The thread.
        name: String,
        /// The answer of the system.
        reason: String,
    },
    /// The process was forked within the simulation, and this is the child.
    #[error("a forked child has no threads of the simulation")]
    Forked,
}

impl From<Halted> for SimulationError {
    fn from(halted: Halted) -> SimulationError {
        match halted {
            Halted::Stuck(threads) => SimulationError::Stuck(threads),
            Halted::NoThread { name, reason } => SimulationError::NoThread { name, reason },
            Halted::Forked => SimulationError::Forked,
        }
    }
}

/// The state shared by the threads of the program.
pub(super) struct Runtime {
    pub(super) executor: Executor,
    pub(super) board: Arc<Switchboard>,
    /// The recording, unless tools alone observe the program.
    pub(super) recorder: Option<Recorder>,
    pub(super) devices: Vec<SimDevice>,
    pub(super) streams: RefCell<Vec<StreamState>>,
    pub(super) events: RefCell<Vec<EventState>>,
    pub(super) memory: RefCell<SimMemory>,
    pub(super) managed: RefCell<Managed>,
    pub(super) graphs: GraphNumbers,
    pub(super) counts: RuntimeCounts,
    /// The source lines that have been written.
    lines: Arc<Mutex<WrittenLines>>,
    /// Loaded code by its kernels, shared by the devices.
    loaded: RefCell<HashMap<*const KernelSource, Rc<LoadedModule>>>,
    machine: RefCell<SimMachine>,
    pub(super) works: RefCell<Recent<WorkState>>,
    seed: u64,
    threads: Cell<u32>,
    first_thread: u32,
    time: Cell<HostTime>,
    next_clocks: Cell<Moment>,
    /// The reading of the devices' environment, if it is asked for.
    readings: RefCell<Option<Readings>>,
    failure: RefCell<Option<SimulationError>>,
}

/// Counts for the report.
#[derive(Debug, Default)]
pub(super) struct RuntimeCounts {
    pub(super) calls: Cell<u64>,
    pub(super) failed_calls: Cell<u64>,
    pub(super) kernels: Cell<u64>,
    pub(super) copies: Cell<u64>,
    pub(super) fills: Cell<u64>,
}

/// Increments a count.
pub(super) fn count(one: &Cell<u64>) {
    one.set(one.get() + 1);
}

/// The latest numbers of graphs and nodes.
#[derive(Debug, Default)]
pub(super) struct GraphNumbers {
    graphs: Cell<u32>,
    nodes: Cell<u64>,
}

impl GraphNumbers {
    pub(super) fn graph(&self) -> u32 {
        self.graphs.set(self.graphs.get() + 1);
        self.graphs.get()
    }

    pub(super) fn node(&self) -> u64 {
        self.nodes.set(self.nodes.get() + 1);
        self.nodes.get()
    }
}

/// A stream's state.
pub(super) struct StreamState {
    pub(super) id: StreamId,
    pub(super) handle: u64,
    pub(super) device: usize,
    pub(super) compute_queue: usize,
    last: Option<WorkIndex>,
    /// Work of other streams that the next work has to wait for.
    waits: Vec<WorkIndex>,
    submitted: u64,
    /// The number of commands whose completion the host has seen.
    completed: SimGate,
}

/// An event's state.
pub(super) struct EventState {
    pub(super) id: EventId,
    recorded: Option<Recorded>,
}

/// The state of a stream when an event was recorded: everything submitted until then.
struct Recorded {
    stream: SimStream,
    submitted: u64,
    last: Option<WorkIndex>,
    /// Waits of the stream that no work has taken over yet.
    waits: Vec<WorkIndex>,
}

/// Enqueued work, until its completion is recorded.
pub(super) struct WorkState {
    id: WorkId,
    correlation: CorrelationId,
    device: usize,
    stream: SimStream,
    pub(super) queued: Moment,
    pub(super) submitted: Moment,
    /// The buffers that get its completion.
    buffers: Buffers,
    /// Subscribers to its completion.
    followers: Option<Followers>,
    /// Subscribers to its passes and their number, if its counters need several.
    replay: Option<Box<(Followers, u32)>>,
    /// The page fault at its start.
    fault: Option<Fault>,
    /// The children that it launches.
    pub(super) family: Option<Family>,
    /// Set if its instructions are counted.
    instructions: Option<CountedInstructions>,
    /// Whether its completion was recorded.
    completed: bool,
}

/// The target of a host wait.
pub(super) struct Awaited {
    pub(super) completed: SimGate,
    pub(super) count: u64,
    pub(super) last: WorkId,
    pub(super) stream: SimStream,
}

/// Enqueued work.
pub(super) struct EnqueuedWork {
    pub(super) work: WorkHeader,
    pub(super) queue_number: u32,
    pub(super) index: WorkIndex,
}

impl Runtime {
    /// Creates a machine that `board` and `recorder` observe, with the ticks of `time`. In real time its first thread is
    /// the one that calls [`Runtime::run`], and each of the others is a thread of this process.
    pub(super) fn new(
        board: &Arc<Switchboard>,
        recorder: Option<&Recorder>,
        seed: u64,
        devices: usize,
        time: HostTime,
    ) -> Rc<Runtime> {
        let first_thread = match time {
            HostTime::Virtual => FIRST_THREAD,
            HostTime::Real { .. } => FIRST_THREAD_HERE,
        };
        let lines = Arc::default();
        let mut machine = SimMachine::default();
        let host_link = machine.engine(HOST_BANDWIDTH);
        let devices: Vec<SimDevice> = board.names().batch(devices, |names| {
            SimFunction::name_all(board.names());
            board.observe(&SimFunction::infos());
            let numbers = 0..devices;
            let devices = numbers
                .map(|number| SimDevice::new(board, &mut machine, host_link, seed, number, &lines));
            let devices: Vec<SimDevice> = devices.collect();
            (0..devices.len()).for_each(|number| device::name_links(names, &devices, number));
            devices
        });
        let runtime = Runtime {
            executor: Executor::new(match time {
                HostTime::Virtual => Polling::OneThread,
                HostTime::Real { .. } => Polling::ThreadEach,
            }),
            board: board.clone(),
            recorder: recorder.cloned(),
            devices,
            streams: RefCell::default(),
            events: RefCell::default(),
            memory: RefCell::default(),
            managed: RefCell::default(),
            graphs: GraphNumbers::default(),
            counts: RuntimeCounts::default(),
            lines,
            loaded: RefCell::default(),
            machine: RefCell::new(machine),
            works: RefCell::default(),
            seed,
            threads: Cell::new(first_thread),
            first_thread,
            time: Cell::new(time),
            next_clocks: Cell::new(Moment::BEGIN + CLOCK_PERIOD),
            readings: RefCell::default(),
            failure: RefCell::default(),
        };
        Rc::new(runtime)
    }

    /// Moves the beginning of the simulation to that of `time`. Nothing has run.
    pub(super) fn begin_at(&self, time: HostTime) {
        self.time.set(time);
    }

    /// The current time.
    pub(super) fn now(&self) -> Moment {
        self.executor.now()
    }

    /// The ticks now.
    pub(super) fn ticks(&self) -> Ticks {
        self.ticks_at(self.now())
    }

    /// The ticks at `moment`.
    pub(super) fn ticks_at(&self, moment: Moment) -> Ticks {
        self.time.get().ticks(moment)
    }

    /// Has a device's samples and the values of its counters written, from when they are first configured.
    pub(super) fn serve(&self, number: usize) {
        let device = &self.devices[number];
        if device.sampler.is_configured() && !device.sampler.has_writer() {
            self.machine.borrow_mut().watch(device.compute);
            if let Some((host, _)) = self.new_thread(&format!("sim sampling {number}")) {
                device.sampler.set_writer(host, self.recorder.clone());
            }
        }
        if !device.counters.is_configured() || device.counters.has_writer() {
            return;
        }
        self.machine.borrow_mut().watch(device.compute);
        if let Some((host, _)) = self.new_thread(&format!("sim counters {number}")) {
            device.counters.set_writer(host, self.recorder.clone());
        }
    }

    /// The code of a module's kernels, loaded once.
    pub(super) fn load(&self, sources: &'static [KernelSource]) -> Rc<LoadedModule> {
        let mut loaded = self.loaded.borrow_mut();
        let of = loaded.entry(sources.as_ptr());
        of.or_insert_with(|| Rc::new(LoadedModule::new(sources)))
            .clone()
    }

    fn new_thread(&self, name: &str) -> Option<(HostThread, Random)> {
        let thread = ThreadId(self.threads.get());
        let is_virtual = matches!(self.time.get(), HostTime::Virtual);
        let is_main = is_virtual && self.threads() == 0;
        let random = self.count_thread();
        let host = match &self.recorder {
            Some(recorder) => recorder.host_thread(thread, is_main),
            None => HostThread::new(&self.board, thread, is_main),
        };
        let Some(mut host) = host else {
            let failure = SimulationError::NoLane(name.into());
            self.failure.borrow_mut().get_or_insert(failure);
            return None;
        };
        if is_virtual {
            // Waiting for an empty block would never end: nothing else runs meanwhile. See `keep_room`.
            host.set_may_wait(false);
        }
        self.names().thread(thread, name);
        Some((host, random))
    }

    /// Counts a new thread, and returns its random numbers.
    fn count_thread(&self) -> Random {
        let index = self.threads();
        self.threads.set(self.threads.get() + 1);
        Random::fork(self.seed, Purpose::Thread, index as usize)
    }

    /// See [`keep_room`].
    pub(super) fn keep_room(&self) {
        keep_room(self.recorder.as_ref());
    }

    /// Has the kernels of each device take turns of this length.
    pub(super) fn time_slice(&self, slice: Nanos) {
        let mut machine = self.machine.borrow_mut();
        for device in &self.devices {
            machine.slice(device.compute, slice);
        }
    }

    /// The names store.
    pub(super) fn names(&self) -> &Names {
        self.board.names()
    }

    /// The number of threads started.
    pub(super) fn threads(&self) -> u32 {
        self.threads.get() - self.first_thread
    }

    /// Creates a stream on a device. Streams use its compute queues in turn.
    pub(super) fn new_stream(
        &self,
        device: usize,
        name: &str,
        (priority, flag): (i32, StreamFlag),
    ) -> SimStream {
        let mut streams = self.streams.borrow_mut();
        let before = streams
            .iter()
            .filter(|stream| stream.device == device)
            .count();
        let mut record = gputrail_record::Stream::blank();
        record.context = self.devices[device].context;
        record.agent = self.devices[device].agent;
        record.name = self.names().string(name);
        record.handle = 0x5581_4400_0000 + 0x200 * streams.len() as u64;
        (record.priority, record.flag) = (priority, flag);
        streams.push(StreamState {
            id: self.names().stream(record),
            handle: record.handle,
            device,
            compute_queue: before % COMPUTE_QUEUES,
            last: None,
            waits: Vec::new(),
            submitted: 0,
            completed: SimGate::default(),
        });
        SimStream(streams.len() - 1)
    }

    /// Creates an event on a device.
    pub(super) fn new_event(&self, device: usize) -> SimEvent {
        let mut events = self.events.borrow_mut();
        let mut record = gputrail_record::Event::blank();
        record.context = self.devices[device].context;
        record.handle = 0x5581_4800_0000 + 0x80 * events.len() as u64;
        events.push(EventState {
            id: self.names().event(record),
            recorded: None,
        });
        SimEvent(events.len() - 1)
    }

    /// Enqueues work in `stream`, or work that `parent` launches, which is no part of the stream's order.
    pub(super) fn enqueue(
        &self,
        host: &mut HostThread,
        call: &CallInProgress,
        stream: SimStream,
        choice: QueueChoice,
        demand: Demand,
        parent: Option<WorkIndex>,
    ) -> EnqueuedWork {
        let state = &mut self.streams.borrow_mut()[stream.0];
        let device = &self.devices[state.device];
        let queue = device.queue(choice, state.compute_queue);
        let mut random = device.random.borrow_mut();
        let submitted = self.now() + Nanos(random.around(450, 30));
        let mut after = match parent {
            Some(_) => Vec::new(),
            None => std::mem::take(&mut state.waits),
        };
        let work = host.new_work();
        for waited_for in &after {
            let mut record = Dependency::blank();
            (record.correlation, record.work) = (call.correlation, work);
            record.waited_for = self.work_id(Some(*waited_for));
            host.write(record);
        }
        after.extend(state.last.filter(|_| parent.is_none()));
        let mut machine = self.machine.borrow_mut();
        if choice == QueueChoice::Compute {
            after.extend(device.counters.serialize(machine.next_index()));
        }
        let index = machine.submit(SimCommand {
            queue: queue.index,
            demand,
            arrives: submitted + Nanos(random.around(1_300, 20)),
            latency: Nanos(random.around(1_100, 40)),
            after,
            parent,
        });
        if parent.is_none() {
            state.last = Some(index);
        }
        state.submitted += 1;
        host.work_begins(call);
        let new = WorkState {
            id: work,
            correlation: call.correlation,
            device: state.device,
            stream,
            queued: self.now(),
            submitted,
            buffers: Buffers::default(),
            followers: None,
            replay: None,
            fault: None,
            family: None,
            instructions: None,
            completed: false,
        };
        self.works.borrow_mut().push(new, |work| work.completed);
        EnqueuedWork {
            work: WorkHeader {
                id: work,
                correlation: call.correlation,
                external: ExternalId::NONE,
                enqueued: call.start,
                agent: device.agent,
                context: device.context,
                queue: queue.id,
                // The streams of kernels are not those of the host.
                stream: match parent {
                    None => state.id,
                    Some(_) => StreamId::NONE,
                },
                thread: host.thread(),
                ..WorkHeader::default()
            },
            queue_number: queue.number,
            index,
        }
    }

    /// Sets the page fault of the work enqueued last.
    pub(super) fn set_fault(&self, fault: Option<Fault>) {
        if let Some(work) = self.works.borrow_mut().last_mut() {
            work.fault = fault;
        }
    }

    /// Sets the children of the work enqueued last.
    pub(super) fn set_family(&self, family: Family) {
        if let Some(work) = self.works.borrow_mut().last_mut() {
            work.family = Some(family);
        }
    }

    /// Has the instructions of the work enqueued last counted.
    pub(super) fn count_instructions(&self, of: CountedInstructions) {
        if let Some(work) = self.works.borrow_mut().last_mut() {
            work.instructions = Some(of);
        }
    }

    /// Writes the record of the work enqueued last, whose completion goes to the same buffers.
    pub(super) fn write_work<R: Record>(&self, host: &mut HostThread, record: R) {
        if let Some(work) = self.works.borrow_mut().last_mut() {
            work.buffers = completion_buffers(host, R::KIND);
        }
        host.write(record);
    }

    /// Sets the followers of the work enqueued last.
    pub(super) fn set_followers(&self, followers: Option<Followers>) {
        if let Some(work) = self.works.borrow_mut().last_mut() {
            work.followers = followers;
        }
    }

    /// Sets the followers of the passes of the work enqueued last, and the number of its passes.
    pub(super) fn set_replay(&self, replay: Option<(Followers, u32)>) {
        if let Some(work) = self.works.borrow_mut().last_mut() {
            work.replay = replay.map(Box::new);
        }
    }

    /// Records `event` in `stream`.
    pub(super) fn record(&self, event: SimEvent, stream: SimStream) {
        let streams = self.streams.borrow();
        let state = &streams[stream.0];
        self.events.borrow_mut()[event.0].recorded = Some(Recorded {
            stream,
            submitted: state.submitted,
            last: state.last,
            waits: state.waits.clone(),
        });
    }

    /// Makes the next work of `stream` wait for `event`, if that has been recorded.
    pub(super) fn wait(&self, stream: SimStream, event: SimEvent) {
        if let Some(recorded) = &self.events.borrow()[event.0].recorded {
            let waits = &mut self.streams.borrow_mut()[stream.0].waits;
            waits.extend(recorded.last);
            waits.extend(&recorded.waits);
        }
    }

    /// The target of a wait for everything in `stream`.
    pub(super) fn awaited(&self, stream: SimStream) -> Awaited {
        let streams = self.streams.borrow();
        let state = &streams[stream.0];
        Awaited {
            completed: state.completed.clone(),
            count: state.submitted,
            last: self.work_id(state.last),
            stream,
        }
    }

    /// The target of a wait for `event`, if it has been recorded.
    pub(super) fn awaited_event(&self, event: SimEvent) -> Option<Awaited> {
        let events = self.events.borrow();
        let recorded = events[event.0].recorded.as_ref()?;
        Some(Awaited {
            completed: self.streams.borrow()[recorded.stream.0].completed.clone(),
            count: recorded.submitted,
            last: self.work_id(recorded.last),
            stream: recorded.stream,
        })
    }

    fn work_id(&self, index: Option<WorkIndex>) -> WorkId {
        let works = self.works.borrow();
        let work = index.and_then(|index| works.get(index));
        work.map_or(WorkId::NONE, |work| work.id)
    }
}
