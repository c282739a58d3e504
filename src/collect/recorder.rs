//! A recording of one process: pool, collector, names and capture together.
//!
//! Sources get their host threads and names from it. With the memory and file that `gputrail record` supplies, or with
//! its own.

mod ending;

use crate::correlation::HostThread;
use crate::counting::{
    CountSelected, CounterChoice, CountingDelivery, CountingError, SelectedKernels, run_note,
};
use crate::marker::ids;
use crate::rank;
use crate::sampling::{SampleDelivery, SamplingError};
use crate::scope::{Gate, Scope};
use crate::switchboard::{
    Buffers, ContextKey, Interest, KindSet, RecordSelection, ServiceConsumer, SlowCalls,
    Switchboard, TooMany,
};
use gputrail_buffer::clock::{self, TickSource};
use gputrail_buffer::platform::inside::message;
use gputrail_buffer::platform::sync::QuietMutex;
use gputrail_buffer::platform::system;
use gputrail_buffer::{
    Buffer, Collector, CollectorOptions, Layout, LayoutError, Mapping, MappingError, Policy,
};
use gputrail_capture::kernel_names::kernel_name;
use gputrail_capture::names::Names;
use gputrail_capture::{CaptureSink, FileHeader, Writer};
use gputrail_interface::counting::CountingMode;
use gputrail_interface::sampling::{Deliver, Request};
use gputrail_record::{AgentId, KernelId, Kind, NoteKind, Process, ProcessId, ThreadId};
use std::sync::Arc;
use std::time::Duration;

/// Pool size where nothing else is said: 100 ms of 2.5 million calls a second, since a collector can lose its core for
/// so long.
pub const DEFAULT_POOL_BYTES: usize = 16 << 20;
/// Block size where nothing else is said: each recording thread holds one, and filling one takes far longer than
/// changing it.
pub const DEFAULT_BLOCK_BYTES: usize = 64 << 10;
/// Blocks whose pages are in place when a recording begins that has no thread to do it meanwhile.
pub(crate) const FIRST_BLOCKS: u32 = 8;
/// Lanes of a pool.
pub const DEFAULT_LANES: u32 = 1024;

/// How a process is recorded.
#[derive(Debug, Clone)]
pub struct RecorderOptions {
    /// Bytes of all blocks together.
    pub pool_bytes: usize,
    /// Bytes of one block.
    pub block_bytes: usize,
    /// The policy when no block is empty.
    pub policy: Policy,
    /// Bytes in a lane's block from which on they are written to the capture; 0 writes whatever is
    /// there at each poll.
    pub watermark: u32,
    /// Longest time between two looks of the collector.
    pub period: Duration,
    /// Where ticks come from. [`TickSource::Virtual`] is a simulation: it gets no collector thread and no clock
    /// snapshots. It calls [`Recorder::flush`] itself while blocks are left, since nobody empties one that its lanes
    /// would wait for, and writes its own clocks.
    pub ticks: TickSource,
    /// Lanes at a time.
    pub lanes: u32,
    /// The scope. Where it is not everything, [`Recorder::open_gate`] must be called.
    pub scope: Scope,
    /// Records counts of PC samples by dispatch, address and reason in place of the samples, where the source counts
    /// them.
    pub aggregate_samples: bool,
}

impl Default for RecorderOptions {
    fn default() -> Self {
        RecorderOptions {
            pool_bytes: DEFAULT_POOL_BYTES,
            block_bytes: DEFAULT_BLOCK_BYTES,
            policy: Policy::Lossless,
            watermark: u32::MAX,
            period: Duration::from_millis(100),
            ticks: clock::init(),
            lanes: DEFAULT_LANES,
            scope: Scope::default(),
            aggregate_samples: false,
        }
    }
}

impl RecorderOptions {
    /// The layout of the pool's memory.
    pub fn layout(&self) -> Result<Layout, LayoutError> {
        Layout::new(self.pool_bytes, self.block_bytes, self.lanes)
    }
}

/// A recording that could not begin.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The sizes make no pool.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The pool's memory could not be had.
    #[error(transparent)]
    Memory(#[from] MappingError),
    /// The process has no room for another buffer.
    #[error(transparent)]
    Buffers(#[from] TooMany),
    /// The process has no room for another context.
    #[error("too many contexts")]
    Contexts,
    /// The collector's thread could not be started.
    #[error("cannot start the collector's thread: {0}")]
    Thread(std::io::Error),
}

/// The recording of one process. Clones are handles to the same.
///
/// A recording is a context with one service, which directs everything to one buffer, and a capture.
#[derive(Clone)]
pub struct Recorder {
    board: Arc<Switchboard>,
    context: ContextKey,
    buffer: Buffer,
    /// `None`: the parent collects.
    collector: Option<Collector>,
    writer: Writer,
    ticks: TickSource,
    gate: Arc<Gate>,
    /// Calls after which what is kept is to be dumped.
    _slow_calls: Option<SlowCalls>,
    slot: usize,
    /// How agents are sampled, if they are.
    sampling: Option<Request>,
    /// The counters that are collected, if any.
    counters: Option<CounterChoice>,
    /// The kernels whose counters are collected.
    counted: Arc<SelectedKernels>,
    /// Messages about samples and counters that have been printed.
    told: Arc<QuietMutex<Vec<String>>>,
    deliver: Deliver,
    kernel_debug_info: bool,
}

impl Recorder {
    /// Begins a recording into `writer`, in `mapping` or in memory of its own, by a switchboard of its own.
    pub fn start(
        options: &RecorderOptions,
        mapping: Option<Mapping>,
        writer: Writer,
    ) -> Result<Recorder, RecorderError> {
        Self::start_on(&Switchboard::new(), options, mapping, writer)
    }

    /// Begins a recording of what comes by way of `board`.
    pub fn start_on(
        board: &Arc<Switchboard>,
        options: &RecorderOptions,
        mapping: Option<Mapping>,
        writer: Writer,
    ) -> Result<Recorder, RecorderError> {
        let is_shared = mapping.is_some();
        let mapping = match mapping {
            Some(mapping) => mapping,
            None => Mapping::anonymous(options.layout()?)?,
        };
        let buffer = Buffer::new(mapping, options.policy);
        let sink = CaptureSink::new(writer.clone());
        board.names().add_writer(writer.clone());
        let collecting = CollectorOptions {
            period: options.period,
            watermark: options.watermark,
            complete_at_ticks: true,
            ticks: options.ticks,
        };
        let collector = if options.ticks == TickSource::Virtual {
            Collector::without_thread(buffer.clone(), vec![Box::new(sink)], collecting)
        } else {
            board.names().clock_snapshot(clock::snapshot());
            Collector::start(buffer.clone(), vec![Box::new(sink)], collecting)
                .map_err(RecorderError::Thread)?
        };
        let ticks = options.ticks;
        let mut recorder = Self::of_buffer(
            board,
            (buffer, is_shared),
            Some(collector),
            writer,
            ticks,
            (&options.scope, true),
        )?;
        if options.aggregate_samples {
            recorder.deliver = Deliver::Aggregates;
        }
        Ok(recorder)
    }

    /// The recording of what comes by way of `board` into `buffer`. With `is_shared`, the parent reads the memory when
    /// the process has died.
    fn of_buffer(
        board: &Arc<Switchboard>,
        (buffer, is_shared): (Buffer, bool),
        collector: Option<Collector>,
        writer: Writer,
        ticks: TickSource,
        (scope, is_on): (&Scope, bool),
    ) -> Result<Recorder, RecorderError> {
        let key = board.add_buffer(buffer.clone())?;
        if is_shared {
            board.is_recovered(key.slot);
        }
        let context = board.add_context().map_err(|_| RecorderError::Contexts)?;
        board
            .add_service(context, ServiceConsumer::Buffer(key.slot), recorded(scope))
            .map_err(|_| RecorderError::Contexts)?;
        board.set_recording(context);
        if scope.counters.is_some() {
            // A tool that counts already goes on, and the recording says of each agent that it cannot.
            let _ = board.reserve_counters(context);
        }
        if scope.range_ids {
            ids::give();
        }
        if let Some(counters) = &scope.counters
            && counters.mode == CountingMode::Range
        {
            board.ranges().expect(counters.range.as_deref(), context);
        }
        let gate = Gate::new(scope.clone(), board, context, key.slot, is_on);
        Ok(Recorder {
            board: board.clone(),
            context,
            buffer,
            collector,
            writer,
            ticks,
            gate: Arc::new(gate),
            _slow_calls: None,
            slot: key.slot,
            sampling: scope.sampling,
            counted: Arc::new(match &scope.counters {
                Some(counters) => SelectedKernels::new(&counters.kernels),
                None => SelectedKernels::default(),
            }),
            counters: scope.counters.clone(),
            told: Arc::default(),
            deliver: Deliver::Samples,
            kernel_debug_info: scope.kernel_debug_info,
        })
    }

    /// Whether programs are to be built with line information.
    pub fn wants_kernel_debug_info(&self) -> bool {
        self.kernel_debug_info
    }

    /// Whether the source text of programs is kept: where there are samples to be shown in it.
    pub fn keeps_source(&self) -> bool {
        self.sampling.is_some() || self.kernel_debug_info
    }

    /// Samples `agent`, called `name`, as the scope asks: from now on, or when the recording begins. If a tool has the service of
    /// the process, the recording goes without, which is told once.
    ///
    /// # Errors
    ///
    /// [`SamplingError`], which says what the agent can do.
    pub fn sample(&self, agent: AgentId, name: &str) -> Result<(), SamplingError> {
        let by = match self.configure_sampling(agent, name) {
            Err(SamplingError::OtherContext(_)) => "a tool samples in this process",
            Err(SamplingError::Counters) => "a tool collects counters in this process",
            other => return other,
        };
        self.tell_once(
            NoteKind::MISSING,
            &format!("the recording has no samples: {by}, and only one context of a process can sample or count"),
        );
        Ok(())
    }

    fn configure_sampling(&self, agent: AgentId, name: &str) -> Result<(), SamplingError> {
        let Some(request) = self.sampling else {
            return Ok(());
        };
        let delivery = SampleDelivery {
            buffers: self.buffers(),
            deliver: self.deliver,
        };
        let sampling = self.board.sampling();
        match sampling.configure(self.context, agent, request, delivery) {
            // No source has offered to sample the agent.
            Err(SamplingError::UnknownAgent(id)) => {
                let agent = format!("agent {id} ({name})");
                return Err(SamplingError::NotSupported { agent });
            }
            configured => configured?,
        }
        if self.board.is_started(self.context) {
            sampling.start(self.context);
        }
        Ok(())
    }

    /// Counts on `agent`, called `name`, as the scope asks: from now on, or when the recording begins. Counters that cannot
    /// be had are left out, which is told once; so are all of them if a tool has the service of the process.
    ///
    /// # Errors
    ///
    /// [`CountingError`], which says what the agent can do.
    pub fn count(&self, agent: AgentId, name: &str) -> Result<(), CountingError> {
        let by = match self.configure_counting(agent, name) {
            Err(CountingError::OtherContext(_)) => "a tool collects counters in this process",
            Err(CountingError::Sampling) => "a tool samples in this process",
            other => return other,
        };
        self.tell_once(
            NoteKind::MISSING,
            &format!("the recording has no counters: {by}, and only one context of a process can sample or count"),
        );
        Ok(())
    }

    fn configure_counting(&self, agent: AgentId, name: &str) -> Result<(), CountingError> {
        let Some(choice) = &self.counters else {
            return Ok(());
        };
        let counting = self.board.counting();
        let (names, per_pass) = (&choice.names, choice.per_pass);
        let possible = match choice.run {
            None => counting
                .possible_request(agent, names, choice.mode, per_pass)
                .map(|(request, left_out)| (Some(request), left_out, None)),
            Some(run) => counting
                .run_request(agent, names, per_pass, run)
                .map(|one| (one.request, one.left_out, Some((run, one.runs)))),
        };
        let (request, left_out, run) = match possible {
            // No source has offered counters of the agent.
            Err(CountingError::UnknownAgent(id)) => {
                let agent = format!("agent {id} ({name})");
                return Err(CountingError::NotSupported { agent });
            }
            possible => possible?,
        };
        for left_out in left_out {
            self.tell_once(NoteKind::OTHER, &format!("counters: {left_out}"));
        }
        let Some(request) = request else {
            return Ok(());
        };
        let mut request = request.of_ranges(choice.range.clone());
        if !self.counted.has_next_device() {
            return Ok(());
        }
        if choice.mode == CountingMode::Dispatch && !choice.kernels.is_all() {
            let tool = CountSelected {
                kernels: self.counted.clone(),
                set: request.set.clone(),
                names: self.names().clone(),
            };
            request = request.chosen_by(Arc::new(tool));
        }
        let delivery = CountingDelivery {
            buffers: self.buffers(),
            deliver: (),
        };
        self.board
            .configure_counting(self.context, agent, request, delivery)?;
        if let Some((run, runs)) = run {
            let text = run_note(run, runs);
            self.names().note(NoteKind::OTHER, &text);
        }
        if self.board.is_started(self.context) {
            counting.start(self.context);
        }
        Ok(())
    }

    /// Prints a message, and notes it in the recording. Devices of one kind have the same message.
    fn tell_once(&self, kind: NoteKind, text: &str) {
        let mut told = self.told.lock();
        if !told.iter().any(|one| one == text) {
            told.push(text.to_owned());
            drop(told);
            message(format_args!("{text}"));
            self.names().note(kind, text);
        }
    }

    /// Begins a recording into `buffer`, which another process collects. That process appends the records to the file
    /// that `writer` appends the names to. The session is switched on or off.
    pub(crate) fn in_session(
        board: &Arc<Switchboard>,
        buffer: Buffer,
        ticks: TickSource,
        writer: Writer,
        scope: &Scope,
        is_on: bool,
    ) -> Result<Recorder, RecorderError> {
        let names = board.names();
        names.add_writer(writer.clone());
        if ticks != TickSource::Virtual {
            names.clock_snapshot(clock::snapshot_of(ticks));
        }
        let mapping = buffer.mapping();
        mapping.populate(0..FIRST_BLOCKS.min(mapping.layout().blocks()));
        mapping.begin();
        Self::of_buffer(board, (buffer, true), None, writer, ticks, (scope, is_on))
    }

    /// Asks for a [dump](Recorder::dump) after each call that takes at least as long.
    pub(crate) fn dumped_after_calls_of(mut self, slow: Option<Duration>) -> Recorder {
        let buffer = self.buffer.clone();
        let watch = |slow| self.board.watch_slow_calls(slow, move || buffer.trigger());
        self._slow_calls = slow.map(watch);
        self
    }

    /// Asks `gputrail record --flight-recorder`, which keeps what happens last, to write it out soon. `false`: the
    /// recording is of another kind.
    pub fn dump(&self) -> bool {
        let keeps = self.buffer.policy() == Policy::Overwrite && self.collector.is_none();
        if keeps {
            self.buffer.trigger();
        }
        keeps
    }

    /// The header of a new capture of this process.
    pub fn file_header(ticks: TickSource, process: ProcessId) -> FileHeader {
        let (created, identity, frequency) = match ticks {
            // A simulation makes the same bytes each time.
            TickSource::Virtual => (0, [0; 16], 1_000_000_000),
            _ => (
                clock::SystemClock::Realtime.read().0,
                random_identity(),
                clock::frequency_of(ticks),
            ),
        };
        FileHeader::new(ticks.code(), process, frequency, created, identity)
    }

    /// A thread that records, or `None` when no lane is free or the recording has ended.
    pub fn host_thread(&self, thread: ThreadId, is_main: bool) -> Option<HostThread> {
        let mut host = HostThread::new(&self.board, thread, is_main)?;
        host.open_lanes().then_some(host)
    }

    /// The operations of the process have their names: from now on its scope decides what is recorded.
    pub fn open_gate(&self) {
        self.gate.prepare();
    }

    /// The gate, which switches the recording on and off.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Goes on after [`Recorder::pause`], as far as nothing else holds the recording. `false`: it was not paused.
    pub fn resume(&self) -> bool {
        self.gate.resume()
    }

    /// Records nothing until [`Recorder::resume`]; what is in progress is still recorded. `false`: it is paused
    /// already.
    pub fn pause(&self) -> bool {
        self.gate.pause()
    }

    /// A kernel has got its name, and that name as C++ writes it, which is empty if it is none of C++: whether its
    /// dispatches are recorded is decided now.
    pub(crate) fn kernel_named(&self, kernel: KernelId, name: &str, demangled: &str) {
        let names = [name, demangled, kernel_name(name, demangled)];
        if !self.gate.scope().has_kernel(&names) {
            self.board.leave_out(kernel, self.gate.buffer());
        }
    }

    /// The switchboard that it listens to.
    pub fn board(&self) -> &Arc<Switchboard> {
        &self.board
    }

    /// The names store.
    pub fn names(&self) -> &Names {
        self.board.names()
    }

    /// The buffer.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Where ticks come from.
    pub fn ticks(&self) -> TickSource {
        self.ticks
    }

    /// Describes this process in the names store, as the system knows it.
    pub fn describe_process(&self, configuration: &str) {
        Self::describe(self.names(), configuration);
    }

    /// Describes this process in `names`.
    pub(crate) fn describe(names: &Names, configuration: &str) {
        let mut process = Process::blank();
        process.id = ProcessId(std::process::id());
        process.parent = ProcessId(std::os::unix::process::parent_id());
        let executable = std::fs::read_link("/proc/self/exe").unwrap_or_default();
        process.executable = names.string(&executable.to_string_lossy());
        let command = std::fs::read("/proc/self/cmdline").unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        process.command = names.string(command.trim_end());
        process.host = names.string(&rustix::system::uname().nodename().to_string_lossy());
        process.version = names.string(env!("CARGO_PKG_VERSION"));
        process.configuration = names.string(configuration);
        process.main_thread = ThreadId(std::process::id());
        let rank = rank::of_this_process().map(|rank| rank.to_string());
        process.rank = names.string(&rank.unwrap_or_default());
        let named: Option<Process> = names.get(process.id.0);
        process.name = named.map(|named| named.name).unwrap_or_default();
        names.process(process);
    }

    /// Whether another process collects: then the recording need not end before the process does.
    pub(crate) fn outlives_exit(&self) -> bool {
        self.collector.is_none()
    }

    /// The buffer as a set.
    pub(crate) fn buffers(&self) -> Buffers {
        Interest::buffer(self.slot).buffers()
    }
}

/// The selection of a recording: everything except the external ids of every call, since it keeps each push and pop,
/// and except retirements, which would need a count of the work of each call.
fn recorded(scope: &Scope) -> RecordSelection {
    let mut selection = RecordSelection::all();
    selection.kinds = KindSet::ALL.without(KindSet::of(&[
        Kind::EXTERNAL_CORRELATION,
        Kind::RETIREMENT,
        // Lines are looked up when the trace is made, and not in the program.
        Kind::SOURCE_LOCATOR,
        Kind::INSTRUCTION_CORRELATION,
        // A graph has thousands of nodes.
        Kind::GRAPH_CHANGE,
        // Faults of pages take longer when the runtime reports them.
        Kind::UNIFIED_MEMORY_COUNTER,
        // Each kernel has hundreds of instructions.
        Kind::INSTRUCTION_COUNT,
    ]));
    selection.enqueue_arguments = !scope.no_enqueue_arguments;
    selection.call_stacks = scope.call_stacks;
    selection
}

fn random_identity() -> [u8; 16] {
    let mut identity = [0; 16];
    // Without random bytes, captures made in one nanosecond by one process look alike.
    if !system::random(&mut identity) {
        identity[..8].copy_from_slice(&clock::SystemClock::Realtime.read().0.to_le_bytes());
        identity[8..12].copy_from_slice(&std::process::id().to_le_bytes());
    }
    identity
}
