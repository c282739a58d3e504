//! The command line of `gputrail demo`.

use super::contents::Contents;
use super::help::{DEMO_EXAMPLES, TEMPLATE};
use super::kernels::{Counting, DEFAULT_CYCLES, sampling_method};
use super::record::period;
use clap::Args;
use gputrail_collect::scope;
use gputrail_interface::sampling::Request;
use gputrail_record::{Kind, SamplingMethod, SamplingUnit};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Trace a workload on the simulated GPU
#[derive(Args)]
#[command(help_template = TEMPLATE, before_help = DEMO_EXAMPLES)]
pub struct Demo {
    /// The trace
    #[arg(short, long, value_name = "OUT", default_value = "demo.pftrace")]
    pub output: OsString,

    /// The run to simulate: equal seeds make equal records
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// The architecture by which the second of the two devices counts (--counters); the first one is gfx9
    #[arg(long, value_name = "NAME", default_value = "gfx9", value_parser = ["gfx9", "gfx11"], conflicts_with = "tool")]
    pub second_device: String,

    /// Have the kernels of a device take turns of this length, of at least 1us: each runs alone, and is preempted while the others
    /// have theirs
    #[arg(long, value_name = "TIME", value_parser = period, conflicts_with = "tool")]
    pub time_slice: Option<Duration>,

    /// Steps of the simulated training
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub steps: u64,

    /// Write the profiles of a training run on N ranks, some of them slow for reasons that are told, into the folder OUT
    /// [default: job], as PyTorch's profiler writes them: rank0.json.gz, rank1.json.gz, ...
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=100_000), conflicts_with_all = ["pc_sampling", "counters", "counters_file", "tool", "capture"])]
    pub ranks: Option<u64>,

    /// Sample the program counter of kernels: `host-trap`, or `stochastic`, which records why waves wait
    #[arg(long, value_name = "METHOD", value_parser = sampling_method)]
    pub pc_sampling: Option<SamplingMethod>,

    /// Time from one sample of a compute unit to the next [default: 50us, or 65536cycles if the method is stochastic]
    #[arg(long, value_name = "INTERVAL", value_parser = scope::interval_of, requires = "pc_sampling")]
    pub interval: Option<(u64, SamplingUnit)>,

    /// Count samples by dispatch, address and reason as they are taken, and record only the counts: for very many
    /// samples
    #[arg(long, requires = "pc_sampling")]
    pub aggregate_samples: bool,

    /// Read the clocks, temperature, power and fan of agents at this period, as counters of the trace: of processors, from
    /// 1ms, and of the simulated GPU. CUDA reports them at a period of its own
    #[arg(long, value_name = "PERIOD", value_parser = period)]
    pub environment_period: Option<Duration>,

    /// Record only this kind, as in `record`: instruction-count counts each instruction of the kernels, beside
    /// kernel-dispatch. May be given more than once
    #[arg(long = "kind", value_name = "KIND", value_parser = scope::kind)]
    pub kinds: Vec<Kind>,

    #[command(flatten)]
    pub counting: Counting,

    /// A tool to load into the simulated program: a library that was made with gputrail.h, see docs/guide.md. The program
    /// then runs in a process of its own, in real time. May be given several times
    #[arg(long, value_name = "LIBRARY")]
    pub tool: Vec<PathBuf>,

    /// Keep the raw records beside the trace (.gputrail)
    #[arg(long)]
    pub capture: bool,

    #[command(flatten)]
    pub contents: Contents,

    /// Print no summary, only errors and warnings
    #[arg(short, long)]
    pub quiet: bool,
}

impl Demo {
    /// The sampling configuration of its devices, if they are sampled.
    pub fn sampling(&self) -> Option<Request> {
        let method = self.pc_sampling?;
        let (interval, unit) = self.interval.unwrap_or(match method {
            SamplingMethod::STOCHASTIC => DEFAULT_CYCLES,
            _ => (50_000, SamplingUnit::TIME),
        });
        Some(Request {
            method,
            unit,
            interval,
        })
    }
}
