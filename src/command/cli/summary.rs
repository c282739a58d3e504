//! The command line of `gputrail summary`.

use super::answers::TableOptions;
use super::help::{SUMMARY_EXAMPLES, SUMMARY_NOTES, TEMPLATE};
use crate::flame::FlameFormat;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Show where the time went: calls, kernels, memory operations, devices and their gaps, ranks, steps and ranges
#[derive(Args)]
#[command(help_template = TEMPLATE, before_help = SUMMARY_EXAMPLES, after_help = SUMMARY_NOTES)]
pub struct Summary {
    /// A trace of any origin, the captures (.gputrail) of one recording, a folder of ranks, or a profile of Triton's Proton
    /// (.hatchet)
    #[arg(required = true, value_name = "TRACE|CAPTURE")]
    pub files: Vec<PathBuf>,

    /// The grouping of the first table [default: rank, if several processes used devices]
    #[arg(long, value_enum, value_name = "GROUP")]
    pub by: Option<By>,

    /// Ranges with this name are steps; * and ? are wildcards. May be given more than once [default: names that end in a
    /// number behind `step` or `iteration`]
    #[arg(long, value_name = "PATTERN")]
    pub step: Vec<String>,

    /// Write no tables but device time by process, ranges, operators and kernels as stacks, or with --by stack by process, call
    /// stack of the host and kernel, to standard output or to the file of --output
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with_all = ["table", "top"])]
    pub flame: Option<FlameFormat>,

    #[command(flatten)]
    pub tables: TableOptions,
}

/// The grouping of the first table of a summary.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Ranks, or processes without one
    Rank,
    /// Processes
    Process,
    /// Devices of processes
    Device,
    /// Queues of devices
    Queue,
    /// Ranges of markers and operators, with the kernels that were launched in them
    Range,
    /// Call stacks of the host from which work was launched, as `record --call-stacks` takes them
    Stack,
}
