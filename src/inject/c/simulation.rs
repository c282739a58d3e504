//! The simulated GPU: a tool's author tries everything without a GPU.

use super::callback::refuse_inside;
use super::done;
use super::sized::{self, SizedStruct, sized};
use super::status::{Failure, Status};
use super::tools::serve_tools;
use gputrail_record::Nanos;
use gputrail_sources::sim::{Demo, SimulationError};

/// The run of the simulated GPU. A field of 0 asks for the usual value.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct SimulationOptions {
    /// `sizeof(gputrail_simulation_options)`.
    pub size: usize,
    /// The seed of its random numbers; usually 1. The same seed gives the same calls and work.
    pub seed: u64,
    /// Steps of the training, of about 20 ms and 1500 records each; usually 6.
    pub steps: u64,
}
sized!(SimulationOptions, "gputrail_simulation_options", 24);

/// The work that a simulation has done.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct SimulationReport {
    /// `sizeof(gputrail_simulation_report)`.
    pub size: usize,
    /// Devices of the machine.
    pub devices: u64,
    /// Threads of the program, those of the runtime included.
    pub threads: u64,
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
    /// Time from beginning to end.
    pub duration: Nanos,
}
sized!(SimulationReport, "gputrail_simulation_report", 72);

/// Runs a program, the training of a small network on two simulated GPUs, in this process and in real time, with the
/// calling thread as its main thread and a thread for each of its others, of which one runs at a time. Its runtime has an API of its own, of the domain `GPUTRAIL_DOMAIN_SIM`, with
/// kernels, copies, streams and events. Everything that observes the process observes it: buffers and callbacks of the
/// caller, and, as beside any other runtime, the recording and the tools that the environment names. Its agents can be
/// sampled in both ways, also by a tool that configures that when it is called back about `agent known`, before the
/// first call. A null `options` asks for the usual values; `report` may be null.
///
/// `gputrail demo --tool` does this in a process of its own.
///
/// Errors: `GPUTRAIL_NOT_INITIALISED` if nothing observes the process; `GPUTRAIL_BUSY` from within a callback;
/// `GPUTRAIL_NO_THREAD`, `GPUTRAIL_WRONG_SIZE`.
///
/// # Safety
///
/// `options` is null or leads to options, `report` is null or leads to such a structure, whose size is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_simulation_run(
    options: *const SimulationOptions,
    report: *mut SimulationReport,
) -> Status {
    done(|| {
        let mut demo = Demo::default();
        if !options.is_null() {
            // SAFETY: the caller's promise.
            let asked = unsafe { sized::read(options) }?;
            if asked.seed != 0 {
                demo.seed = asked.seed;
            }
            if asked.steps != 0 {
                demo.steps = asked.steps;
            }
        }
        if !report.is_null() {
            // SAFETY: the caller's promise. A wrong size is found before the run.
            unsafe { sized::write(report, &SimulationReport::blank()) }?;
        }
        refuse_inside()?;
        serve_tools();
        let did = demo.run_here().map_err(|error| {
            let status = match error {
                SimulationError::NotRecorded => Status::NOT_INITIALISED,
                SimulationError::NoLane(_) => Status::TOO_MANY,
                SimulationError::NoThread { .. } => Status::NO_THREAD,
                SimulationError::Sampling(_) => Status::SAMPLING_NOT_AVAILABLE,
                _ => Status::INTERNAL,
            };
            Failure::new(status, error.to_string())
        })?;
        if report.is_null() {
            return Ok(());
        }
        let answer = SimulationReport {
            devices: did.devices as u64,
            threads: did.threads.into(),
            calls: did.calls,
            failed_calls: did.failed_calls,
            kernels: did.kernels,
            copies: did.copies,
            fills: did.fills,
            duration: did.duration,
            ..SimulationReport::blank()
        };
        // SAFETY: the caller's promise.
        unsafe { sized::write(report, &answer) }
    })
}
