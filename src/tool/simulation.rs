//! The simulated GPU: a tool's author tries everything without a GPU.

use super::Error;
use super::functions::{call, check};
pub use gputrail_interface::c::{SimulationOptions, SizedStruct};

pub use gputrail_interface::c::SimulationReport;

/// Runs `steps` of a program on two simulated GPUs, in this process and in real time, with the calling thread as its main
/// thread. Everything that observes the process observes it. 0 asks for the usual seed, or number of steps.
///
/// # Errors
///
/// `NOT_INITIALISED` if nothing observes the process; `BUSY` within a callback; `TOO_MANY`, `SAMPLING_NOT_AVAILABLE`.
pub fn simulate(seed: u64, steps: u64) -> Result<SimulationReport, Error> {
    let options = SimulationOptions {
        seed,
        steps,
        ..SimulationOptions::blank()
    };
    let mut report = SimulationReport::blank();
    // SAFETY: structures of these sizes.
    check(unsafe { call!(gputrail_simulation_run(&options, &mut report)) })?;
    Ok(report)
}
