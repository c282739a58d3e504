//! Sampling and counting of kernels on the command line.

use clap::{Args, ValueEnum};
use gputrail_collect::sampling::SampleSource;
use gputrail_collect::scope;
use gputrail_interface::sampling::Request;
use gputrail_record::{SamplingMethod, SamplingUnit};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// Sampling of kernels.
#[derive(Args)]
#[command(next_help_heading = "Where kernels spend their time")]
pub struct Sampling {
    /// Sample the program counter of kernels: `host-trap` or `stochastic`, as far as the agents can (`gputrail agents`
    /// lists it)
    #[arg(long, value_name = "METHOD", value_parser = sampling_method)]
    pub pc_sampling: Option<SamplingMethod>,

    /// Time from one sample to the next of a thread or compute unit; or cycles or instructions, `65536cycles`, where
    /// agents count those [default: 1ms, or the shortest that `--sampling-source timer` reaches; for `stochastic`,
    /// 65536cycles]
    #[arg(long, value_name = "INTERVAL", value_parser = scope::interval_of, requires = "pc_sampling")]
    pub interval: Option<(u64, SamplingUnit)>,

    /// Run kernels of sampled CUDA devices one after the other, so that samples belong to dispatches (from CUDA 12.4
    /// on). Kernels that would have run at the same time take longer
    #[arg(long, requires = "pc_sampling")]
    pub serialize_kernels: bool,

    /// How samples of OpenCL on processors are taken. Use `timer` if perf events are forbidden: timers send signals to
    /// the program's threads, which may interrupt system calls, and reach 250 Hz
    #[arg(long, value_enum, default_value_t, requires = "pc_sampling")]
    pub sampling_source: SamplingSource,

    /// Build OpenCL programs with line information, for source lines. PoCL before version 4 has lines only for code
    /// that it does not optimise, which runs several times slower; PoCL 6 has them at full speed. Programs that are
    /// loaded as binaries have none
    #[arg(long)]
    pub kernel_debug_info: bool,
}

/// Counting of kernels.
#[derive(Args, Default)]
#[command(next_help_heading = "What kernels do, in numbers")]
pub struct Counting {
    /// Collect counters and metrics, such as TASK_CLOCK,PAGE_FAULTS for OpenCL on processors. `gputrail counters list --agent`
    /// lists those of an agent
    #[arg(long, value_name = "NAMES", conflicts_with = "pc_sampling")]
    pub counters: Vec<String>,

    /// Collect the counters and metrics that a file names: lines of names, as ROCProfiler and rocprofv3 have them with `pmc:`
    /// before, `range:`, `gpu:` and `kernel:`, and comments with `#`; or rocprofv3's jobs in YAML or JSON. May be given
    /// several times
    #[arg(long, value_name = "FILE", conflicts_with = "pc_sampling")]
    pub counters_file: Vec<PathBuf>,

    /// When counters are read: for each dispatch, one after the other; for each range of markers as a whole; or of the device
    /// as a whole at a period
    #[arg(long, value_enum, value_name = "MODE")]
    pub counters_mode: Option<CountersMode>,

    /// The ranges of markers that are counted with `--counters-mode range`: a pattern of their names [default: the outermost
    /// ranges]
    #[arg(long, value_name = "NAME", conflicts_with = "counters_period")]
    pub counters_range: Option<String>,

    /// Time from one reading of a device's counters to the next [default: 1ms]
    #[arg(long, value_name = "TIME", value_parser = scope::time)]
    pub counters_period: Option<Duration>,

    /// The most counters of a pass: a kernel whose counters need several passes runs once for each [default: as many as the
    /// hardware counts at a time]
    #[arg(long, value_name = "N", conflicts_with = "counters_period")]
    pub counters_per_pass: Option<NonZeroU32>,

    /// The part that runs once for each pass: `kernel`, each kernel, with its memory restored; or `application`, the whole program,
    /// whose later runs read nothing from a pipe or terminal and whose output is not shown. Its kernels are to be the same in each run
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        default_value = "kernel",
        conflicts_with = "counters_period"
    )]
    pub replay: Replay,
}

/// The part of a program that runs once for each pass.
#[derive(Copy, Clone, Default, PartialEq, Eq, ValueEnum)]
pub enum Replay {
    /// Each kernel
    #[default]
    Kernel,
    /// The program
    Application,
}

/// When counters are read.
#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
pub enum CountersMode {
    /// For each dispatch
    Dispatch,
    /// For each range of markers
    Range,
    /// At a period
    Device,
}

/// The default sampling interval, in nanoseconds.
const DEFAULT_INTERVAL: u64 = 1_000_000;
/// The default interval of stochastic sampling.
pub const DEFAULT_CYCLES: (u64, SamplingUnit) = (1 << 16, SamplingUnit::CYCLES);

/// How samples are taken.
#[derive(Copy, Clone, Default, ValueEnum)]
pub enum SamplingSource {
    /// Perf events
    #[default]
    Perf,
    /// POSIX timers
    Timer,
}

impl From<SamplingSource> for SampleSource {
    fn from(source: SamplingSource) -> SampleSource {
        match source {
            SamplingSource::Perf => SampleSource::PerfEvents,
            SamplingSource::Timer => SampleSource::Timers,
        }
    }
}

impl Sampling {
    /// Adds these options to `scope`.
    pub fn add_to(&self, scope: &mut scope::Scope) {
        let is_stochastic = self.pc_sampling == Some(SamplingMethod::STOCHASTIC);
        let (interval, unit) = self.interval.unwrap_or_else(|| {
            if is_stochastic {
                DEFAULT_CYCLES
            } else {
                let source = SampleSource::from(self.sampling_source);
                let shortest = source.possible().first().map_or(0, |possible| possible.min);
                (DEFAULT_INTERVAL.max(shortest), SamplingUnit::TIME)
            }
        });
        scope.sampling = self.pc_sampling.map(|method| Request {
            method,
            unit,
            interval,
        });
        scope.kernel_debug_info = self.kernel_debug_info;
    }
}

/// The method of this name.
pub fn sampling_method(name: &str) -> Result<SamplingMethod, String> {
    SamplingMethod::from_name(name).ok_or_else(|| "expected host-trap or stochastic".into())
}
