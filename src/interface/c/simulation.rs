//! The simulated GPU: a tool's author tries everything without a GPU.

use super::sized::sized;
use gputrail_record::Nanos;

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
