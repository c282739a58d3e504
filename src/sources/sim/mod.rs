//! The simulated GPU: a machine with devices, streams and events in virtual time, a runtime with its own API, and a
//! program that uses it. It is the built-in demo and the basis of deterministic tests: equal seeds give equal records,
//! byte for byte.
//!
//! * `machine` has the devices: engines with a limited capacity, and the hardware queues that feed them.
//! * `executor` runs host threads as futures, in a program each on a `system_thread`; `time` has their ticks and the devices'
//!   clocks.
//! * `waves` simulates compute units, `code` the kernels that they execute, `sampler` samples them, and `counters` counts
//!   their `events`.
//! * `instructions` tells how often each instruction was executed.
//! * `environment` has the heat, power and clocks of the devices.
//! * `runtime` is the runtime, with its devices (`device`, `compute_units`), and runs the threads of the program; `host` has the
//!   threads that record. `callbacks` reports to subscribers.
//! * `thread` and `enqueue` are the runtime's calls, `kernels` what is launched: by a call, several by one call (`graphs`), or by
//!   kernels (`children`, each of a `family`). `managed` has memory that moves by page faults, which `migrations` records.
//! * `collective` is a library on top of the runtime.
//! * `training` is the program of the [`TrainingRun`].
//!
//! Threads and records come from a [`Recorder`] whose ticks are
//! [`TickSource::Virtual`](gputrail_buffer::clock::TickSource::Virtual). Everything behind it is shared with the other
//! sources.

mod callbacks;
mod children;
mod code;
mod collective;
mod compute_units;
mod counters;
mod device;
mod enqueue;
mod environment;
mod events;
mod executor;
mod family;
mod graphs;
mod host;
mod instructions;
mod kernels;
mod machine;
mod managed;
mod memory;
mod migrations;
mod operations;
mod random;
mod recent;
mod runtime;
mod sampler;
mod system_thread;
mod thread;
mod time;
mod training;
mod waves;

#[cfg(test)]
mod tests;

pub use compute_units::COMPUTE_UNITS;
pub use counters::ARCHITECTURE;
pub use device::{DEVICE_MEMORY, links_in_words};
pub use runtime::SimulationError;

/// The sampling configurations that the simulated devices support.
pub fn sampling_configurations() -> Vec<Configuration> {
    sampler::CONFIGURATIONS.to_vec()
}

/// The counters and metrics of the simulated devices, and how they are counted.
pub fn countable() -> Countable {
    counters::countable(counters::ARCHITECTURE)
}

/// Those of the simulated devices of each architecture.
pub fn all_countable() -> impl Iterator<Item = Countable> {
    counters::ARCHITECTURES.into_iter().map(counters::countable)
}

/// The counters of simulated devices of the architecture called `name`, gfx9 or gfx11; `None` for others.
pub fn countable_as(name: &str) -> Option<Countable> {
    let known = counters::ARCHITECTURES.contains(&name);
    known.then(|| counters::countable(name))
}

use gputrail_collect::counting::Countable;
use gputrail_collect::notify::Notifier;
use gputrail_collect::operations::OperationInfo;
use gputrail_collect::process;
use gputrail_collect::recorder::Recorder;
use gputrail_collect::scope;
use gputrail_collect::source::Source;
use gputrail_collect::switchboard::{Payload, Switchboard};
use gputrail_interface::operations::resource;
use gputrail_interface::sampling::{Configuration, Request};
use gputrail_record::{
    Agent, AgentId, Context, CorrelationId, Domain, ExternalId, ExternalKind, Nanos, Process,
    ProcessId, Queue, ThreadId,
};
use runtime::Runtime;
use std::rc::Rc;
use std::time::Duration;
use time::HostTime;

/// The source of the simulated runtime.
#[derive(Debug)]
pub struct Simulated;

impl Source for Simulated {
    fn domain(&self) -> Domain {
        Domain::SIM
    }

    fn operations(&self) -> Vec<OperationInfo> {
        operations::SimFunction::infos()
    }
}

/// A small training run on two devices.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TrainingRun {
    /// The seed. Equal seeds give equal records.
    pub seed: u64,
    /// Steps of the training. Each takes about 20 ms of virtual time and makes about 1500 records.
    pub steps: u64,
}

impl Default for TrainingRun {
    fn default() -> TrainingRun {
        TrainingRun { seed: 1, steps: 6 }
    }
}

/// The work done by a [`TrainingRun`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct DemoReport {
    /// Devices of the machine.
    pub devices: usize,
    /// Threads of the program, those of the runtime included.
    pub threads: u32,
    /// API calls.
    pub calls: u64,
    /// API calls that failed.
    pub failed_calls: u64,
    /// Kernels that were launched.
    pub kernels: u64,
    /// Copies between host and devices, and between devices.
    pub copies: u64,
    /// Fills.
    pub fills: u64,
    /// Virtual time from beginning to end.
    pub duration: Nanos,
}

/// A [`TrainingRun`] that is ready to run.
pub struct Simulation {
    steps: u64,
    runtime: Rc<Runtime>,
}

impl Simulation {
    /// The devices, as agents.
    pub fn agents(&self) -> Vec<AgentId> {
        let devices = self.runtime.devices.iter();
        devices.map(|device| device.agent).collect()
    }

    /// Has `agent` count by the definitions of the architecture called `name`, gfx9 or gfx11. `false`: there is no such agent
    /// or architecture.
    pub fn counts_as(&self, agent: AgentId, name: &str) -> bool {
        let mut names = counters::ARCHITECTURES.into_iter();
        let mut devices = self.runtime.devices.iter();
        let device = devices.find(|device| device.agent == agent);
        match (device, names.find(|known| *known == name)) {
            (Some(device), Some(name)) => {
                device.counters.set_architecture(name);
                true
            }
            _ => false,
        }
    }

    /// Simulates that another process has configured PC sampling of `agent`, or released it (`None`).
    pub fn sampled_elsewhere(&self, agent: AgentId, request: Option<Request>) {
        let mut devices = self.runtime.devices.iter();
        if let Some(device) = devices.find(|device| device.agent == agent) {
            device.sampler.configured_elsewhere(request);
        }
    }

    /// Has the kernels of each device take turns of this length, of at least a microsecond, instead of sharing its compute units.
    pub fn time_slice(&self, slice: Duration) {
        let slice = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
        self.runtime.time_slice(Nanos(slice.max(1_000)));
    }

    /// Runs the demo to its end, sampling the devices and counting on them if the recording's scope asks for that.
    ///
    /// # Errors
    ///
    /// [`SimulationError::Sampling`] and [`SimulationError::Counting`] if the devices do not support that. Nothing has been recorded then.
    pub fn run(self) -> Result<DemoReport, SimulationError> {
        let runtime = self.runtime;
        runtime.read_first_clocks();
        for device in &runtime.devices {
            runtime.board.agent_offered(device.agent);
            if let Some(recorder) = &runtime.recorder {
                recorder.sample(device.agent, &device.name)?;
                recorder.count(device.agent, &device.name)?;
            }
        }
        training::Training::start(&runtime, self.steps);
        runtime.run()?;
        let counts = &runtime.counts;
        Ok(DemoReport {
            devices: DEVICES,
            threads: runtime.threads(),
            calls: counts.calls.get(),
            failed_calls: counts.failed_calls.get(),
            kernels: counts.kernels.get(),
            copies: counts.copies.get(),
            fills: counts.fills.get(),
            duration: runtime.now() - time::Moment::BEGIN,
        })
    }
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulation").finish_non_exhaustive()
    }
}

/// The number of devices.
const DEVICES: usize = 2;
/// The id of the virtual process. The ids of its threads follow.
const PROCESS: ProcessId = ProcessId(4_000);

impl TrainingRun {
    /// The process id of the simulated program.
    pub const PROCESS: ProcessId = PROCESS;

    /// Runs the demo with virtual ticks into `recorder`. The caller calls [`Recorder::finish`].
    pub fn run(&self, recorder: &Recorder) -> Result<DemoReport, SimulationError> {
        self.prepare(recorder).run()
    }

    /// Creates the machine without running it, so that its agents can be queried and configured.
    pub fn prepare(&self, recorder: &Recorder) -> Simulation {
        self.describe(recorder);
        Simulation {
            steps: self.steps,
            runtime: Runtime::new(
                recorder.board(),
                Some(recorder),
                self.seed,
                DEVICES,
                HostTime::Virtual,
            ),
        }
    }

    /// Runs it in this process, in real time, with the calling thread as its main thread and a new thread for each of its
    /// others. It attaches as a source, beside others that the process has: the recording that the environment asks for, and
    /// tools, observe it.
    ///
    /// # Errors
    ///
    /// [`SimulationError::NotRecorded`] where there is neither a recording nor a tool.
    pub fn run_here(&self) -> Result<DemoReport, SimulationError> {
        process::attach_before_tools(&Simulated);
        let board = process::board().ok_or(SimulationError::NotRecorded)?;
        self.name_steps(board);
        let recorder = process::recorder();
        let simulation = Simulation {
            steps: self.steps,
            runtime: Runtime::new(board, recorder, self.seed, DEVICES, HostTime::real()),
        };
        // Tools find the devices when they are initialised, which takes no simulated time.
        process::load_tools();
        if !process::is_observed() {
            return Err(SimulationError::NotRecorded);
        }
        simulation.runtime.begin_at(HostTime::real());
        if let Some(thread) = process::current() {
            let notifier = Notifier {
                board,
                state: thread.state(),
                correlation: CorrelationId::NONE,
                depth: 0,
            };
            notifier.instant(resource::RUNTIME_INITIALIZED, Payload::None);
            for device in simulation.runtime.devices.iter() {
                notifier.object::<Agent>(resource::AGENT_KNOWN, device.agent.0);
                notifier.object::<Context>(resource::CONTEXT_CREATED, device.context.0);
                for queue in device.queue_ids() {
                    notifier.object::<Queue>(resource::QUEUE_CREATED, queue.0);
                }
            }
        }
        simulation.run()
    }

    fn name_steps(&self, board: &Switchboard) {
        let (names, ranges) = (board.names(), board.ranges());
        names.external(ExternalKind::CUSTOM0, ExternalId::NONE, "steps");
        for step in 0..self.steps {
            let name = format!("step {}", step + 1);
            let id = training::step_id(step);
            names.external(ExternalKind::CUSTOM0, id, &name);
            ranges.name_external(ExternalKind::CUSTOM0, id, &name);
        }
    }

    fn describe(&self, recorder: &Recorder) {
        let names = recorder.names();
        let mut process = Process::blank();
        process.id = PROCESS;
        process.parent = ProcessId(1);
        process.executable = names.string("train");
        process.command = names.string(&format!(
            "train --seed {} --steps {}",
            self.seed, self.steps
        ));
        process.host = names.string("simulated");
        process.version = names.string(env!("CARGO_PKG_VERSION"));
        let selected = scope::selected(recorder.gate().scope());
        process.configuration = names.string(&format!("virtual time{selected}"));
        process.main_thread = ThreadId(runtime::FIRST_THREAD);
        names.process(process);
        self.name_steps(recorder.board());
    }
}
