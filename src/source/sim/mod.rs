//! The simulated GPU: a machine with devices, streams and events in virtual time, a runtime with an API
//! of its own, and a program that uses it. The embedded default, and the ground of deterministic
//! tests: one seed gives the same records, byte for byte.
//!
//! * `machine` has the devices: engines that share their power, hardware queues that feed them.
//! * `executor` runs host threads as futures, `time` has their ticks and the devices' clocks.
//! * `waves` is what goes on inside compute units, `code` what they execute, `sampler` samples it.
//! * `runtime`, `device`, `thread` and `enqueue` are the runtime and its calls; `collective` is a library on top.
//! * `training` is the program of the [`Demo`].
//!
//! Threads and records come from a [`Recorder`] whose ticks are
//! [`TickSource::Virtual`](crate::clock::TickSource::Virtual); everything behind it is the same as
//! for any other source.

mod code;
mod collective;
mod device;
mod enqueue;
mod executor;
mod machine;
mod memory;
mod operations;
mod random;
mod recent;
mod runtime;
mod sampler;
mod tell;
mod thread;
mod time;
mod training;
mod waves;

#[cfg(test)]
mod tests;

pub use device::{COMPUTE_UNITS, DEVICE_MEMORY};
pub use runtime::SimulationError;

/// The ways in which its devices can be sampled.
pub fn sampling_configurations() -> Vec<Configuration> {
    sampler::CONFIGURATIONS.to_vec()
}

use crate::collect::operations::OperationInfo;
use crate::collect::process;
use crate::collect::recorder::Recorder;
use crate::collect::sampling::{Configuration, Request};
use crate::collect::source::Source;
use crate::record::{AgentId, Domain, ExternalKind, Nanos, Process, ProcessId, ThreadId};
use runtime::Runtime;
use std::rc::Rc;
use time::HostTime;

/// The source of the simulated runtime.
#[derive(Debug)]
pub struct Simulated;

impl Source for Simulated {
    fn domain(&self) -> Domain {
        Domain::SIM
    }

    fn operations(&self) -> Vec<OperationInfo> {
        let all = operations::Function::ALL.iter();
        all.map(|function| function.info()).collect()
    }

    fn status_name(&self, status: i32) -> Option<&'static str> {
        ["SUCCESS", "INVALID_VALUE", "OUT_OF_MEMORY", "NOT_READY"]
            .get(usize::try_from(status).ok()?)
            .copied()
    }
}

/// A small training run on two devices.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Demo {
    /// The same seed gives the same records.
    pub seed: u64,
    /// Steps of the training; each takes some 20 ms of virtual time and makes some 1500 records.
    pub steps: u64,
}

impl Default for Demo {
    fn default() -> Demo {
        Demo { seed: 1, steps: 6 }
    }
}

/// What a [`Demo`] did.
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

/// A [`Demo`] that has not begun.
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

    /// Has another process configure PC sampling of `agent`, or give it back.
    pub fn sampled_elsewhere(&self, agent: AgentId, request: Option<Request>) {
        let mut devices = self.runtime.devices.iter();
        if let Some(device) = devices.find(|device| device.agent == agent) {
            device.sampler.configured_elsewhere(request);
        }
    }

    /// Runs it to its end. Where the recording's scope says how, the devices are sampled.
    ///
    /// # Errors
    ///
    /// [`SimulationError::Sampling`], which says what the agents can do, before anything has happened.
    pub fn run(self) -> Result<DemoReport, SimulationError> {
        let runtime = self.runtime;
        for device in &runtime.devices {
            runtime.recorder.sample(device.agent, &device.name)?;
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

/// Devices of the demo's machine.
const DEVICES: usize = 2;
/// The virtual process; its threads' ids follow on it.
const PROCESS: ProcessId = ProcessId(4_000);

impl Demo {
    /// The process id of the simulated program.
    pub const PROCESS: ProcessId = PROCESS;

    /// Runs it into `recorder`, whose ticks are virtual; [`Recorder::finish`] is the caller's.
    pub fn run(&self, recorder: &Recorder) -> Result<DemoReport, SimulationError> {
        self.prepare(recorder).run()
    }

    /// Makes the machine, and lets it wait: its agents can be asked for, and be sampled.
    pub fn prepare(&self, recorder: &Recorder) -> Simulation {
        self.describe(recorder);
        Simulation {
            steps: self.steps,
            runtime: Runtime::new(recorder, self.seed, DEVICES, HostTime::Virtual),
        }
    }

    /// Runs it in this process, in real time, with the calling thread as its main thread. It attaches as a source, beside others
    /// that the process has, and is recorded with them.
    ///
    /// # Errors
    ///
    /// [`SimulationError::NotRecorded`] where the environment asks for no recording.
    pub fn run_here(&self) -> Result<DemoReport, SimulationError> {
        process::attach(&Simulated);
        let recorder = process::recorder().ok_or(SimulationError::NotRecorded)?;
        self.name_steps(recorder);
        let simulation = Simulation {
            steps: self.steps,
            runtime: Runtime::new(recorder, self.seed, DEVICES, HostTime::real()),
        };
        simulation.run()
    }

    fn name_steps(&self, recorder: &Recorder) {
        for step in 0..self.steps {
            let name = format!("step {}", step + 1);
            let id = training::step_id(step);
            recorder.names().external(ExternalKind::CUSTOM0, id, &name);
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
        process.configuration = names.string("virtual time");
        process.main_thread = ThreadId(runtime::FIRST_THREAD);
        names.process(process);
        self.name_steps(recorder);
    }
}
