//! Counters of agents whose kernels run on threads of this process, such as PoCL's processors.
//!
//! The counted threads are those of the runtime: all that the process did not have before the runtime was used, but those that
//! enqueue kernels outside of the runtime's callbacks. Between two readings of their events lies one dispatch: the calling
//! thread waits for the work before it, reads, enqueues the kernel, waits for it, and reads again. So kernels of all threads of the program run one after the other, which is the cost of
//! values that belong to one kernel. Counters that need several passes are read around as many runs of the kernel, which the
//! layer makes (`sources/opencl/layer/replay`). A kernel is not counted, and its values are invalid, where waiting could last for ever
//! or lasts too long: if the work may wait for the program, or a thread of the runtime enqueues.
//!
//! At a period, a thread of the library reads the events, and nothing waits. Under load it reads later than the period says; a
//! value covers the time since the one before. The last period ends with counting, and a tool's flush ends the current one of
//! every agent. Counters of the whole machine (`machine`) are read then, too.
//!
//! PoCL's driver `basic` is recognised by the fact that no thread has begun until counting starts: the values of a dispatch are those
//! of the thread that enqueues it; those of a period are of all threads that begin later and of the one that started counting.

mod architecture;
mod counted;
mod group;
mod host_event;
mod machine;
mod threads;

pub(crate) use counted::CountedKernel;

use super::event::sample_time;
use counted::{CountedAgent, invalid};
use gputrail_buffer::platform::inside::message;
use gputrail_buffer::platform::internal_thread;
use gputrail_buffer::platform::sync::{QuietGuard, Signal, lock_std};
use gputrail_buffer::platform::sysfs;
use gputrail_buffer::platform::system::thread_id;
use gputrail_capture::names::Names;
use gputrail_collect::agents::{ConfigureError, Provider};
use gputrail_collect::correlation::HostThread;
use gputrail_collect::counting::values::Subject;
use gputrail_collect::counting::{
    Countable, CounterReading, CountingDelivery, CountingRequest, DispatchReadings,
};
use gputrail_collect::process;
use gputrail_collect::switchboard::Buffers;
use gputrail_counters::Counted;
use gputrail_interface::counting::CountingMode;
use gputrail_record::{
    AgentId, CorrelationId, CounterInvalid, DeviceTime, KernelDispatch, Nanos, WorkId,
};
use machine::MachineCounters;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The shortest period at which events are read.
const SHORTEST_PERIOD: Nanos = Nanos(100_000);
/// How long a thread waits for a kernel of another thread that is being counted. An owner waits for less: one that stays
/// longer has ended, or has left its call by an exception or a longjmp.
const LONGEST_OWNERSHIP: Duration = Duration::from_secs(15);
const STEP: Duration = Duration::from_micros(20);
/// How long the end of counting at a period waits for the thread that reads.
const LONGEST_LAST_READING: Duration = Duration::from_secs(1);

/// Whether any agent of the process is counted for each dispatch.
static IS_ACTIVE: AtomicBool = AtomicBool::new(false);
/// Whether any agent of the process is configured to count dispatches in several passes.
static HAS_PASSES: AtomicBool = AtomicBool::new(false);
/// The most passes of a kernel.
const MAX_PASSES: usize = 64;

/// The counters of this process's threads. Agents share them, since they share the processors.
pub struct HostCounters {
    /// The thread whose kernel is being counted; 0 if there is none.
    owner: AtomicU32,
    state: Mutex<HostCountersState>,
    wake: Signal,
}

#[derive(Default)]
struct HostCountersState {
    agents: Vec<CountedAgent>,
    /// The threads that the process had before the runtime was used, and those of the program that have enqueued kernels.
    of_program: Vec<u32>,
    /// The threads of the runtime that have enqueued kernels, in callbacks.
    callers_of_runtime: Vec<u32>,
    /// What has been read of the owner's kernel.
    measured: Option<MeasuredKernel>,
    /// The number of the latest start.
    starts: u64,
}

/// The readings of a kernel.
struct MeasuredKernel {
    /// The agent that it runs on.
    agent: AgentId,
    /// The pass in progress, if there is one.
    pass: Option<usize>,
    readings: Vec<(Counted, CounterReading)>,
}

/// One agent of the counters.
struct CounterAgent {
    counters: Arc<HostCounters>,
    names: Names,
    agent: AgentId,
}

impl Default for HostCounters {
    fn default() -> Self {
        HostCounters::new()
    }
}

impl HostCounters {
    /// Creates the counters of this process. Its present threads are those of the program.
    pub fn new() -> HostCounters {
        IS_ACTIVE.store(false, Ordering::Relaxed);
        HAS_PASSES.store(false, Ordering::Relaxed);
        HostCounters {
            owner: AtomicU32::new(0),
            state: Mutex::new(HostCountersState {
                of_program: threads::all_threads(),
                ..HostCountersState::default()
            }),
            wake: Signal::default(),
        }
    }

    /// The interface of `agent` to the counter collection service.
    pub fn agent(
        self: &Arc<Self>,
        agent: AgentId,
        names: &Names,
    ) -> Arc<dyn Provider<CountingRequest>> {
        Arc::new(CounterAgent {
            counters: self.clone(),
            names: names.clone(),
            agent,
        })
    }

    /// What all such agents count, and how.
    pub fn countable() -> Countable {
        Countable {
            architecture: architecture::architecture(),
            dispatches: true,
            shortest_period: Some(SHORTEST_PERIOD),
            passes: MAX_PASSES,
            range_passes: MAX_PASSES,
            per_pass: None,
        }
    }

    /// Sentences about counters of the whole machine: that there are none, what the system does not allow, and descriptions of
    /// the kernel that cannot be read.
    pub fn machine_notes() -> Vec<String> {
        MachineCounters::this().notes(&sysfs::root())
    }

    /// Finds the counters of the machine that is described below `root`, for the fuzz target.
    #[cfg(fuzzing)]
    pub fn machine_notes_of(root: &std::path::Path) -> Vec<String> {
        MachineCounters::find(root).notes(root)
    }

    /// Whether any agent of this process is counted for each dispatch.
    #[inline(always)]
    pub fn is_active() -> bool {
        IS_ACTIVE.load(Ordering::Relaxed)
    }

    /// Whether any agent of this process is configured to count dispatches in several passes.
    #[inline(always)]
    pub fn has_passes() -> bool {
        HAS_PASSES.load(Ordering::Relaxed)
    }

    fn state(&self) -> QuietGuard<'_, HostCountersState> {
        lock_std(&self.state)
    }

    /// Finds out once whether the calling thread, which began after the runtime was used, is one of the runtime's, as
    /// `may_be_of_runtime` says.
    fn recognise_caller(&self, may_be_of_runtime: impl FnOnce() -> bool) {
        let me = thread_id();
        let state = self.state();
        if state.of_program.contains(&me) || state.callers_of_runtime.contains(&me) {
            return;
        }
        // Outside of the lock, since the loader's is taken.
        drop(state);
        let is_of_runtime = may_be_of_runtime();
        let all = threads::all_threads();
        let mut state = self.state();
        // The system gives the numbers of threads that have ended to others.
        state.of_program.retain(|thread| all.contains(thread));
        state
            .callers_of_runtime
            .retain(|thread| all.contains(thread));
        if is_of_runtime {
            return state.callers_of_runtime.push(me);
        }
        state.of_program.push(me);
        for counted in &mut state.agents {
            counted.threads.leave_out(me);
        }
    }

    /// Makes the calling thread the owner of the counters, which it has to be to count a kernel of `agent`. `false` if it
    /// cannot be: it runs kernels itself, or has interrupted itself while counting. `may_be_of_runtime` says which threads run
    /// kernels.
    pub(crate) fn acquire(&self, agent: AgentId, may_be_of_runtime: impl FnOnce() -> bool) -> bool {
        self.recognise_caller(may_be_of_runtime);
        let me = thread_id();
        let counts = |counted: &CountedAgent| {
            counted.agent == agent
                && counted.delivery.is_some()
                && !counted.threads.is_of_runtime(me)
        };
        if !self.state().agents.iter().any(counts) || self.is_owner() {
            return false;
        }
        let (mut owner, mut since) = (0, Instant::now());
        loop {
            let replaced = if since.elapsed() > LONGEST_OWNERSHIP {
                owner
            } else {
                0
            };
            let taken =
                self.owner
                    .compare_exchange(replaced, me, Ordering::Acquire, Ordering::Relaxed);
            match taken {
                Ok(_) => return true,
                Err(other) if other != owner => (owner, since) = (other, Instant::now()),
                Err(_) => {}
            }
            std::thread::sleep(STEP);
        }
    }

    /// Whether the calling thread is the owner.
    pub(crate) fn is_owner(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == thread_id()
    }

    /// Whether the calling thread is one of the runtime, which a kernel may need to run. `may_be_of_runtime` says so of threads that
    /// began after the runtime was used.
    pub(crate) fn is_of_runtime(&self, may_be_of_runtime: impl FnOnce() -> bool) -> bool {
        self.recognise_caller(may_be_of_runtime);
        let state = self.state();
        let mut agents = state.agents.iter();
        agents.any(|counted| counted.threads.is_of_runtime(thread_id()))
    }

    /// The number of passes in which kernels of `agent` are counted.
    pub(crate) fn passes(&self, agent: AgentId) -> usize {
        let mut state = self.state();
        state
            .find(agent)
            .map_or(1, |counted| counted.threads.passes())
    }

    /// Has the tool that chooses counters choose those of a kernel of `agent`. The calling thread owns the counters if
    /// `is_owner`; otherwise the kernel cannot be counted, and its values are going to be invalid. `false`: the kernel has no
    /// values.
    pub(crate) fn choose(
        &self,
        agent: AgentId,
        is_owner: bool,
        dispatch: impl FnOnce() -> Option<KernelDispatch>,
    ) -> bool {
        let choice = {
            let mut state = self.state();
            let counted = state.find(agent);
            let counted = counted.filter(|counted| counted.delivery.is_some());
            counted.and_then(|counted| counted.choice.clone())
        };
        let Some(choice) = choice else {
            return is_owner;
        };
        let Some(dispatch) = dispatch() else {
            return false;
        };
        let Some(set) = choice.choose(&dispatch) else {
            return false;
        };
        let call = dispatch.work.correlation;
        let mut state = self.state();
        let of_program = state.of_program.clone();
        let Some(counted) = state.find(agent) else {
            drop(state);
            choice.abandoned(call, WorkId::NONE);
            return false;
        };
        let records = if is_owner {
            counted.count_set(set, &of_program);
            counted.records.clone()
        } else {
            counted.records_of(set)
        };
        counted.chosen.insert(call, records);
        true
    }

    /// The kernel of this call has not been counted: it does not run, or is not recorded, or has `run` all the same. The
    /// result tells the tool that has chosen its counters.
    pub(crate) fn abandon(&self, call: CorrelationId, run: bool) -> CountedKernel {
        let mut kernel = CountedKernel::default();
        for counted in &mut self.state().agents {
            let Some(records) = counted.chosen.remove(&call) else {
                continue;
            };
            kernel.choice = counted.choice.clone();
            if run {
                kernel.readings.call = call;
                kernel.readings.readings = invalid(&records, CounterInvalid::NOT_AWAITED);
            } else {
                kernel.abandoned = Some(call)
            }
        }
        self.release();
        kernel
    }

    /// Reads the events before `pass` of a kernel of `agent`.
    pub(crate) fn begin(&self, agent: AgentId, pass: usize) {
        let mut state = self.state();
        let Some(counted) = state.find(agent) else {
            return;
        };
        counted.dispatches += 1;
        counted.threads.prepare();
        // Runtimes make threads when they are first used, and later.
        if counted.dispatches.is_power_of_two() {
            counted.threads.scan();
        }
        counted.threads.count(pass, true);
        counted.threads.read_dispatch(pass);
        if pass == 0 || state.measured.is_none() {
            state.measured = Some(MeasuredKernel {
                agent,
                pass: None,
                readings: Vec::new(),
            });
        }
        if let Some(measured) = &mut state.measured {
            measured.pass = Some(pass);
        }
    }

    /// Whether the calling thread owns the counters, and a pass of its kernel is being counted.
    pub(crate) fn is_counting(&self) -> bool {
        let counts = |measured: &MeasuredKernel| measured.pass.is_some();
        self.is_owner() && self.state().measured.as_ref().is_some_and(counts)
    }

    /// Reads the events after the pass of a kernel that [`HostCounters::begin`] began.
    pub(crate) fn end(&self) {
        let state = &mut *self.state();
        let Some(measured) = &mut state.measured else {
            return;
        };
        let mut agents = state.agents.iter_mut();
        let counted = agents.find(|counted| counted.agent == measured.agent);
        if let (Some(counted), Some(pass)) = (counted, measured.pass.take()) {
            measured
                .readings
                .extend(counted.threads.read_dispatch(pass));
            counted.threads.count(pass, false);
        }
    }

    /// The owner's kernel of `agent` is not counted for this reason.
    pub(crate) fn refuse(&self, agent: AgentId, reason: CounterInvalid) {
        let mut state = self.state();
        let readings = state
            .find(agent)
            .map(|counted| invalid(&counted.records, reason));
        state.measured = readings.map(|readings| MeasuredKernel {
            agent,
            pass: None,
            readings,
        });
    }

    /// Writes the values of a kernel of `agent`, and releases the counters if the calling thread owns them. Values of a
    /// kernel that was not measured are invalid. The result passes them to the tool that has chosen the counters.
    pub(crate) fn write(
        &self,
        host: &mut HostThread,
        agent: AgentId,
        subject: &Subject,
    ) -> CountedKernel {
        let values = self.values(agent, subject);
        // Writing may wait for a buffer.
        self.release();
        let Some((buffers, counted)) = values else {
            return CountedKernel::default();
        };
        if let Some(buffers) = buffers {
            for record in &counted.values {
                host.write_to(buffers, *record);
            }
        }
        counted
    }

    /// The values of a kernel of `agent`, and where they go. After counting has been stopped there are no values, and the
    /// tool gets the readings of a kernel that it has chosen before.
    fn values(
        &self,
        agent: AgentId,
        subject: &Subject,
    ) -> Option<(Option<Buffers>, CountedKernel)> {
        let mut state = self.state();
        let measured = if self.is_owner() {
            state.measured.take()
        } else {
            None
        };
        let counted = state.find(agent)?;
        let buffers = counted.delivery.map(|delivery| delivery.buffers);
        let choice = counted.choice.clone();
        if choice.is_none() && buffers.is_none() {
            return None;
        }
        let records = match &choice {
            Some(_) => counted.chosen.remove(&subject.correlation)?,
            None => counted.records.clone(),
        };
        let readings = match measured {
            Some(measured) if measured.agent == agent && measured.pass.is_none() => {
                measured.readings
            }
            _ => invalid(&records, CounterInvalid::NOT_AWAITED),
        };
        let values = match buffers {
            Some(_) if counted.mode == CountingMode::Dispatch => records.of(subject, &readings),
            _ => Vec::new(),
        };
        let readings = DispatchReadings {
            call: subject.correlation,
            work: subject.work,
            duration: subject.duration.map(Nanos),
            readings,
            properties: HashMap::new(),
        };
        let counted = CountedKernel {
            choice,
            values,
            readings,
            abandoned: None,
        };
        Some((buffers, counted))
    }

    /// Releases the counters if the calling thread owns them.
    pub(crate) fn release(&self) {
        let _ = self
            .owner
            .compare_exchange(thread_id(), 0, Ordering::Release, Ordering::Relaxed);
    }

    fn start(self: &Arc<Self>, agent: AgentId, to: CountingDelivery) {
        let mut state = self.state();
        state.starts += 1;
        let start = state.starts;
        let Some(counted) = state.find(agent) else {
            return;
        };
        counted.delivery = Some(to);
        counted.start = start;
        counted.threads.scan();
        counted.threads.read();
        counted.machine.read();
        match counted.mode {
            CountingMode::Dispatch | CountingMode::Range => {
                IS_ACTIVE.store(true, Ordering::Relaxed);
            }
            CountingMode::Device { period } => {
                counted.reader = start;
                counted.span_begin = sample_time();
                drop(state);
                let counters = self.clone();
                let read = move || {
                    let reader = PeriodReader {
                        counters,
                        agent,
                        start,
                    };
                    reader.run(period);
                };
                // Where there is no thread, the closure and its reader have not been made.
                if let Err(error) = internal_thread::spawn(read) {
                    message(format_args!("no counters at a period: {error}"));
                    if let Some(counted) = self.state().find(agent) {
                        counted.reader = 0;
                    }
                }
            }
        }
    }

    fn stop(&self, agent: AgentId) {
        let mut state = self.state();
        let mut reads = false;
        if let Some(counted) = state.find(agent) {
            counted.start = 0;
            reads = counted.delivery.is_some() && counted.reader != 0;
            if !reads {
                counted.delivery = None;
            }
        }
        let counts =
            |counted: &CountedAgent| counted.delivery.is_some() && counted.mode.is_of_dispatches();
        let any = state.agents.iter().any(counts);
        IS_ACTIVE.store(any, Ordering::Relaxed);
        drop(state);
        self.wake.raise();
        if reads {
            self.wait_for_reader(agent);
            if let Some(counted) = self.state().find(agent) {
                counted.delivery = None;
            }
        }
    }

    /// Waits until the thread that reads the events of `agent` at a period has written what came after its latest period.
    fn wait_for_reader(&self, agent: AgentId) {
        let until = Instant::now() + LONGEST_LAST_READING;
        loop {
            let seen = self.wake.value();
            let mut state = self.state();
            if state.find(agent).is_none_or(|counted| counted.reader == 0) {
                return;
            }
            drop(state);
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.wake.wait(seen, left);
        }
    }
}

impl HostCounters {
    /// Ends the period in progress of an agent that is read at a period: writes its values.
    fn end_span(&self, agent: AgentId) {
        let mut state = self.state();
        let (Some(counted), Some(thread)) = (state.find(agent), process::current()) else {
            return;
        };
        let Some(delivery) = counted.delivery.filter(|_| counted.reader != 0) else {
            return;
        };
        counted.spans += 1;
        if counted.spans.is_power_of_two() {
            counted.threads.scan();
        }
        let end = sample_time();
        let begin = std::mem::replace(&mut counted.span_begin, end);
        let subject = Subject {
            span: (DeviceTime(begin), DeviceTime(end)),
            duration: Some(end - begin),
            ..Subject::default()
        };
        let mut readings = counted.threads.read();
        readings.extend(counted.machine.read());
        let records = counted.records.of(&subject, &readings);
        // Writing may wait for a buffer.
        drop(state);
        thread.with(|host| {
            for record in &records {
                host.write_to(delivery.buffers, *record);
            }
        });
    }
}

/// The thread that reads the events of an agent at a period.
struct PeriodReader {
    counters: Arc<HostCounters>,
    agent: AgentId,
    /// The number of the start from which it reads.
    start: u64,
}

impl PeriodReader {
    /// Reads the events until they are stopped, and once more then.
    fn run(&self, period: Nanos) {
        let (counters, agent) = (&self.counters, self.agent);
        loop {
            let seen = counters.wake.value();
            let (is_last, next) = match counters.state().find(agent) {
                Some(counted) if counted.reader == self.start => {
                    let next = counted.span_begin.saturating_add(period.0);
                    (counted.start != self.start, next)
                }
                _ => return,
            };
            let due = next.saturating_sub(sample_time());
            if !is_last && due > 0 {
                counters.wake.wait(seen, Duration::from_nanos(due));
                continue;
            }
            let read = || counters.end_span(agent);
            if let Err(panic) = catch_unwind(AssertUnwindSafe(read)) {
                // The payload may panic when it is dropped.
                std::mem::forget(panic);
                return;
            }
            if is_last {
                return;
            }
        }
    }
}

impl Drop for PeriodReader {
    fn drop(&mut self) {
        if let Some(counted) = self.counters.state().find(self.agent)
            && counted.reader == self.start
        {
            counted.reader = 0;
        }
        self.counters.wake.raise();
    }
}

impl fmt::Debug for HostCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostCounters").finish_non_exhaustive()
    }
}

impl HostCountersState {
    fn note_passes(&self) {
        let mut agents = self.agents.iter();
        let any = agents.any(|counted| {
            counted.choice.is_some()
                || counted.mode == CountingMode::Dispatch && counted.threads.passes() > 1
        });
        HAS_PASSES.store(any, Ordering::Relaxed);
    }

    fn find(&mut self, agent: AgentId) -> Option<&mut CountedAgent> {
        self.agents
            .iter_mut()
            .find(|counted| counted.agent == agent)
    }
}

impl Provider<CountingRequest> for CounterAgent {
    fn configurations(&self) -> Vec<Countable> {
        vec![HostCounters::countable()]
    }

    fn check(&self, request: &CountingRequest) -> Result<(), ConfigureError> {
        counted::opened(request).map(drop)
    }

    fn configure(&self, request: &CountingRequest) -> Result<(), ConfigureError> {
        let of_program = self.counters.state().of_program.clone();
        let counted = CountedAgent::new(self.agent, &self.names, request, of_program)?;
        let mut state = self.counters.state();
        state.agents.retain(|counted| counted.agent != self.agent);
        state.agents.push(counted);
        state.note_passes();
        Ok(())
    }

    fn release(&self) {
        let mut state = self.counters.state();
        state.agents.retain(|counted| counted.agent != self.agent);
        state.note_passes();
    }

    fn start(&self, to: CountingDelivery) {
        self.counters.start(self.agent, to);
    }

    fn stop(&self) {
        self.counters.stop(self.agent);
    }

    fn flush(&self) {
        self.counters.end_span(self.agent);
    }
}
