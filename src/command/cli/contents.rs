//! Optional contents of traces, which each verb that makes traces takes.

use clap::Args;

/// Optional contents of a trace.
#[derive(Args, Copy, Clone, Debug, Default)]
pub struct Contents {
    /// Show the arguments of calls that enqueue work, too; this makes the trace larger
    #[arg(long)]
    pub arguments: bool,

    /// Keep each sample of the program counter with all of its fields, for `gputrail hotspots --format csv`; about 25
    /// bytes a sample. CUDA gives counts of samples, and no sample by itself
    #[arg(long)]
    pub raw_samples: bool,

    /// One row for each device of a process, instead of one for each queue; work has its queue as an argument
    #[arg(long)]
    pub device_rows: bool,

    /// Compress the trace; viewers open it without unpacking
    #[arg(long)]
    pub compress: bool,
}
