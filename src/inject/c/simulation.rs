//! The simulated GPU: a tool's author tries everything without a GPU.

use super::caller::refuse_inside;
use super::done;
use super::sized;
use super::status::FailedCall;
use super::tools::serve_tools;
use gputrail_interface::c::{SimulationOptions, SimulationReport, SizedStruct, Status};
use gputrail_sources::sim::{SimulationError, TrainingRun};

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
        let mut demo = TrainingRun::default();
        if !options.is_null() {
            // SAFETY: `options` is not null, so it leads to options of as many bytes as their size says (the caller's
            // promise).
            let asked = unsafe { sized::read(options) }?;
            if asked.seed != 0 {
                demo.seed = asked.seed;
            }
            if asked.steps != 0 {
                demo.steps = asked.steps;
            }
        }
        if !report.is_null() {
            // SAFETY: `report` is not null, so it leads to a structure of as many bytes as its size says (the caller's
            // promise). A wrong size is found before the run.
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
            FailedCall::new(status, error.to_string())
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
        // SAFETY: as for the first write, which left the size as it was: nobody else uses `report` until this returns, not
        // even the callbacks of the run (the caller's promise).
        unsafe { sized::write(report, &answer) }
    })
}
