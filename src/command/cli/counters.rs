//! The command line of `gputrail counters`.

use super::help::{COUNTERS_EXAMPLES, COUNTERS_NOTES, TEMPLATE};
use crate::tables::Format;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Tell what the counters of GPUs are, and in how many passes they can be collected
#[derive(Args)]
#[command(help_template = TEMPLATE, before_help = COUNTERS_EXAMPLES, after_help = COUNTERS_NOTES)]
pub struct Counters {
    #[command(subcommand)]
    pub question: Question,
}

#[derive(Subcommand)]
pub enum Question {
    /// List architectures, or the counters and metrics of one
    List {
        #[command(flatten)]
        of: Of,

        /// The format of the table
        #[arg(long, value_enum, default_value = "table")]
        format: Format,
    },
    /// Describe a counter or metric: its formula, and the basic counters that it needs
    Info {
        #[command(flatten)]
        of: Of,

        /// Its name; upper and lower case are alike
        name: String,
    },
    /// Tell in how many passes of a kernel counters and metrics can be collected together
    Check {
        #[command(flatten)]
        of: Of,

        /// Their names
        #[arg(required = true, value_delimiter = ',')]
        names: Vec<String>,
    },
}

#[derive(Args)]
pub struct Of {
    /// The architecture, such as gfx90a
    #[arg(short, long, value_name = "NAME")]
    pub architecture: Option<String>,

    /// Read definitions from a file instead: metrics.xml of ROCProfiler v1, counter_defs.yaml of rocprofiler-sdk, or the public
    /// counters of GPUPerfAPI. May be given several times
    #[arg(short, long, value_name = "FILE")]
    pub definitions: Vec<PathBuf>,

    /// The counters that an agent collects: its number in `gputrail agents`, `cuda:0` for one of CUDA's, `sim` for the
    /// simulated GPU, `sim:gfx11` as one of that architecture
    #[arg(long, value_name = "AGENT", conflicts_with_all = ["architecture", "definitions"])]
    pub agent: Option<String>,

    /// The metrics of a chip of NVIDIA's, such as gh100, as NVIDIA's library knows them
    #[arg(long, value_name = "CHIP", conflicts_with_all = ["architecture", "definitions", "agent"])]
    pub chip: Option<String>,
}
