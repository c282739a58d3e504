//! The command line, parsed by clap, and its help, which starts with examples.

use crate::flight::{Keep, Trigger};
use crate::merge::Offset;
use crate::tables::Format;
use clap::{Args, Parser, Subcommand, ValueEnum};
use gputrail_buffer::Policy;
use gputrail_collect::sampling::SampleSource;
use gputrail_collect::scope;
use gputrail_collect::session::Size;
use gputrail_interface::sampling::Request;
use gputrail_record::{Kind, SamplingMethod, SamplingUnit};
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

const TEMPLATE: &str =
    "{about}\n\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}\n";

const EXAMPLES: &str = "\
Examples:
  gputrail record -- clpeak --kernel-latency    trace an OpenCL program, unchanged
  gputrail demo                                 trace a workload on the simulated GPU
  gputrail agents                               list the devices that can be traced
Then open the .pftrace file in https://ui.perfetto.dev (\"Open trace file\").";

const EXIT_CODES: &str = "\
Exit codes: 0 on success; 125 when gputrail itself fails. `record` passes on the code of the
program, or 128+n when signal n ended it; 126 when it cannot be executed, 127 when it is not found.";

const RECORD_EXAMPLES: &str = "\
Examples:
  gputrail record -- clpeak --kernel-latency
  gputrail record -o run.pftrace -- ffmpeg -init_hw_device opencl=gpu -i in.mkv -f null -
  gputrail record -o 'runs/%h-%q{RANK}-%p.pftrace' -- ./solver input.dat
  gputrail record --open -- ./program
  gputrail record --delay 5s --duration 500ms --kernel 'gemm*' -- ./solver
  gputrail record --start-on 'step 10' --stop-on 'step 20' -- ./train
  gputrail record --capture --buffers 64M -- python train.py
  gputrail record --pc-sampling stochastic --interval 65536cycles -- python train.py      CUDA: docs/cuda.md
  gputrail record --flight-recorder 30s --slower-than 5ms -- ./server      then: gputrail dump $(pidof gputrail)
  gputrail record --paused -- ./server      then: gputrail start $(pidof server); sleep 30; gputrail stop $(pidof server)";

const RECORD_NOTES: &str = "\
The program runs as it would without us: same output, same results, same exit code. Its children are
traced into the same file. Ctrl-C ends the program and still leaves a whole trace; a second Ctrl-C
kills it.

Exit codes: that of the program, 128+n when signal n ended it; 125 when gputrail itself fails, 126 when
the program cannot be executed, 127 when it is not found.

If gputrail itself is killed, the program goes on, and what gputrail had written stays in a hidden folder beside the trace: all
that was recorded up to about a second before, and of a flight recorder the dumps. The next `gputrail record` to the same folder
names the command that makes a trace of it, and the trace says from when on records may be missing.

The program's own marks by NVTX, ROCTx and CLPerfMarker are recorded: docs/markers.md.

CUDA programs are recorded through NVIDIA's libcupti: `gputrail agents` says whether it is found, docs/cuda.md what it takes.

Where gputrail cannot be the parent (containers, job launchers), see `gputrail library --help`.";

const CONVERT_EXAMPLES: &str = "\
Examples:
  gputrail convert run.gputrail                       makes run.pftrace
  gputrail convert run-*.gputrail -o run.pftrace      several processes in one trace
  gputrail convert profile.json.gz                    of PyTorch's profiler, or of Chrome
  gputrail convert profile.json.gz --from ProfilerStep#5 --to ProfilerStep#6 -o steps.pftrace
  gputrail convert run.gputrail -o run.json.gz        for tools that read PyTorch's traces
  gputrail convert rank3.json.gz -o /shared/job/      Parquet tables of each rank, for DuckDB, Polars and Spark";

const CONVERT_NOTES: &str = "\
Reads captures (.gputrail), Perfetto traces, Chrome trace events as PyTorch's profiler writes them (JSON), tables and databases
of rocprofv3 (CSV, JSON, rocpd), and exports of Nsight Systems (SQLite); plain, or packed with gzip or zstd. The content decides, not
the name. docs/convert.md lists what becomes of each field.

Exit codes: 0 on success; 1 when an input was damaged, or one that was named has no known format, and all else was converted;
125 when gputrail itself fails; 128+n when signal n ended it.";

const DEMO_EXAMPLES: &str = "\
Examples:
  gputrail demo
  gputrail demo -o other.pftrace --seed 7
  gputrail demo --pc-sampling stochastic
  gputrail demo --pc-sampling host-trap --interval 20us
  gputrail demo --tool ./libcounter.so          try a tool of your own without a GPU
  gputrail demo --ranks 64 -o job               profiles of 64 ranks, for docs/scale.md";

const MERGE_EXAMPLES: &str = "\
Examples:
  gputrail merge a.pftrace b.pftrace -o both.pftrace
  gputrail merge node*/run.pftrace -o job.pftrace
  gputrail merge run.pftrace scheduling.perfetto-trace -o run-with-scheduling.pftrace
  gputrail merge a.pftrace b.pftrace --offset 2=-1500000 -o both.pftrace";

const MERGE_NOTES: &str = "\
Traces of one machine (the same name, and started at the same time) share its clock and need nothing else. The times
of another machine are shifted so that the real-time clocks meet, or by --offset; the summary
says which of the two it was, and how exact the result is.";

const VIEW_EXAMPLES: &str = "\
Examples:
  gputrail view run.pftrace
  gputrail view run.pftrace --ui ~/perfetto-ui      without internet
  ssh -L 9001:127.0.0.1:9001 server gputrail view run.pftrace";

const VIEW_NOTES: &str = "\
Serves the trace on 127.0.0.1:9001, to this machine and to Perfetto's UI only, opens the browser ($BROWSER or
xdg-open; the link is printed in any case), and ends when the UI has loaded the trace, or with Ctrl-C.
The link has a secret: other users of this machine cannot fetch the trace without it.
The trace does not leave the machine: the UI reads it in the browser.";

const INFO_EXAMPLES: &str = "\
Examples:
  gputrail info run.pftrace
  gputrail info run.gputrail";

const CHECK_EXAMPLES: &str = "\
Examples:
  gputrail check run.pftrace
  gputrail check run.pftrace && cp run.pftrace /results";

const CHECK_NOTES: &str = "\
Of anybody's trace: the wire format, what is interned and referred to. Of a trace of ours also that every
id of work is resolved, that no interval is impossible, and that nothing was lost. Each finding names
the packet by its offset in the file.

Exit codes: 0 when nothing is wrong, 1 when there are findings, 125 when the file cannot be read.";

const SUMMARY_EXAMPLES: &str = "\
Examples:
  gputrail summary run.pftrace
  gputrail summary run.pftrace --format json | jq '.kernels[0]'
  gputrail summary run-*.gputrail --format csv | grep ^gaps";

const SUMMARY_NOTES: &str = "\
Medians come from a sketch of the values and are off by at most the share that the first table names; all
else is exact. Times of calls include the calls they make. A gap is a time in which a device had no
work between two pieces of it; before the work that ends it was enqueued, the host let the device wait.";

const HOTSPOTS_EXAMPLES: &str = "\
Examples:
  gputrail hotspots run.pftrace
  gputrail hotspots run.pftrace --kernel 'gemm*'
  gputrail hotspots run.pftrace --format json | jq '.kernels[0].lines[0]'
  gputrail hotspots run.gputrail --format csv > pc_sampling.csv";

const HOTSPOTS_NOTES: &str = "\
Samples come from `gputrail record --pc-sampling`. Counts are exact, also where the flame graph shows only some of the
samples. `issued` is the share of samples at which the wave issued an instruction; stochastic sampling alone tells that,
and why the others did not. CSV has a row for each sample, in the columns of rocprofv3's PC sampling files: it
takes a capture, or a trace that was made with --raw-samples.";

const CONTROL_EXAMPLES: &str = "\
Examples:
  gputrail status $(pidof server)
  gputrail status 4711 --format json | jq .state
  gputrail start 4711; sleep 30; gputrail stop 4711
  gputrail flush 4711      the trace of what has been recorded so far
  gputrail dump 4711       what a flight recorder keeps";

const CONTROL_NOTES: &str = "\
PID is a `gputrail record`, or any process of the program that it records: all of them are switched, and those that begin
later find the recording as it is then. Only the user who records can control the recording. docs/control.md says what becomes
of calls and work that are in progress, and what the trace shows.

Exit codes: 0 on success, also when the recording was in that state already; 125 when there is no such recording, when it
belongs to another user, or when it cannot do what is asked for.";

pub const LIBRARY_EXAMPLES: &str = "\
Examples:
  eval \"$(gputrail library /tmp/libgputrail.so)\" && ./program && gputrail convert gputrail-*.gputrail -o run.pftrace
  gputrail library ./libgputrail.so --capture '/results/%h-%p.gputrail'
  gputrail library ./gputrail     for tools in C and C++, see docs/guide.md

The library alone records, without a parent: the variables that are printed are all that a container or
a job launcher has to pass on. Unlike under `gputrail record`, what a killed program had not yet
written is lost, about its last second, and the trace says so. Tools that request source lines of sampled code get them
from libgputrail-symbols.so.0, which is written into the same folder. That folder is one in which nobody else can replace
files, as your own or /tmp; the libraries of markers go into gputrail-markers beside the library, to which only you can write.

The variables that are printed. Where one is set already, what it names is kept:
  GPUTRAIL_CAPTURE         name of the capture: %p process id, %h host, %q{VAR} environment variable, %% a percent sign
  OPENCL_LAYERS            libraries that OpenCL's loader puts around its functions, separated by colons; ours comes last
  CUDA_INJECTION64_PATH    the library that CUDA's driver loads; the one that it named before is in
                           GPUTRAIL_NEXT_CUDA_INJECTION, and is initialised after ours
  NVTX_INJECTION64_PATH    the library that NVTX loads; the one that it named before is in GPUTRAIL_NVTX_INJECTION, and gets
                           all calls, too
  LD_LIBRARY_PATH          ends with the folder in which the library has the names of those of ROCTx and CLPerfMarker

A program that has more rights than its user (set-user-ID, file capabilities) follows none of them.

Variables that may be set besides:
  GPUTRAIL_BUFFERS, GPUTRAIL_BUFFER_SIZE    memory for records, and of a piece of it (65536, 64K, 16M, 1G)
  GPUTRAIL_POLICY              what happens when it is full: lossless (the program waits), discard
  GPUTRAIL_SCOPE               what to record and when, as the options of `record` say it:
                               delay=5s;duration=1s;start-on=NAME;stop-on=NAME;dump-on=NAME;kind=KIND;call=NAME;
                               kernel=NAME;range-ids;pc-sampling=stochastic,65536cycles;kernel-debug-info;
                               environment-period=1s;counter=NAME;counters-period=1ms;counters-per-pass=N;
                               counters-run=N;counters-device=N;counters-kernel=NAME;counters-include=REGEX;
                               counters-exclude=REGEX;counters-dispatches=N-M;counters-iterations=N-M;
                               no-enqueue-arguments (else calls that enqueue work have theirs); from=, of gputrail itself
  GPUTRAIL_TOOLS               tools to load, separated by colons (`record --tool`)
  GPUTRAIL_CLPERFMARKER        name of the file of CLPerfMarker's markers, without its extension (`record --clperfmarker`)
  GPUTRAIL_SERIALIZE_KERNELS   1: kernels of CUDA that are sampled run one after the other (`record --serialize-kernels`)
  OMP_TOOL_LIBRARIES           libraries that an OpenMP runtime asks for a tool; this one observes OpenMP (`record --openmp`)
  ACC_PROFLIB                  libraries that an OpenACC runtime loads; this one observes OpenACC (`record --openacc`)
  GPUTRAIL_CUPTI               path of libcupti, or of its folder; no other one is taken then (docs/cuda.md)
  GPUTRAIL_SAMPLING_SOURCE     timer: samples of kernels on processors are taken by timers instead of perf events
  GPUTRAIL_SYSFS               folder that has what /sys has elsewhere, such as the host's in a container
  GPUTRAIL_CLOCK               monotonic: times are read from CLOCK_MONOTONIC instead of the processor's counter";

/// Records what programs do on GPUs into Perfetto traces.
#[derive(Parser)]
#[command(name = "gputrail", version, help_template = TEMPLATE, before_help = EXAMPLES, after_help = EXIT_CODES)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    Record(Box<Record>),
    Convert(Convert),
    Demo(Demo),
    /// List the devices that can be traced, their clocks, and what can be collected on them
    Agents,
    Counters(crate::counters::Counters),
    Merge(Merge),
    View(View),
    Info(Info),
    Check(Check),
    Summary(Summary),
    Hotspots(Hotspots),
    Library(Library),
    /// Show what a running recording has recorded so far, and whether it is on
    Status(Control),
    /// Switch a running recording on
    Start(Control),
    /// Switch a running recording off; the program goes on
    Stop(Control),
    /// Make the trace of what has been recorded so far; the recording goes on
    Flush(Control),
    /// Have a flight recorder write out what it keeps
    Dump(Control),
    /// Internal: checks whether agents can be sampled as requested
    #[command(hide = true)]
    ProbeSampling(ProbeSampling),
    /// Internal: checks whether a library is a tool before a program loads it
    #[command(hide = true)]
    ProbeTool(ProbeTool),
    /// What `demo --tool` records: the simulated program in a process of its own
    #[command(hide = true)]
    RunDemo(RunDemo),
}

/// Run a program and trace what it does on GPUs
#[derive(Args)]
#[command(help_template = TEMPLATE, before_help = RECORD_EXAMPLES, after_help = RECORD_NOTES)]
pub struct Record {
    /// The trace [default: PROGRAM-PID.pftrace, never replacing an older file]. %p is the process id, %h the host,
    /// %q{VAR} an environment variable, %% a percent sign
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<OsString>,

    /// Memory for records, per process
    #[arg(long, value_name = "SIZE", default_value = "16M")]
    pub buffers: Size,

    /// Size of one block of that memory; a thread fills one at a time
    #[arg(long, value_name = "SIZE", default_value = "64K")]
    pub buffer_size: Size,

    /// What to do when the memory is full: `lossless` lets threads wait where they can (up to 1024 at a time, and not in
    /// callbacks or signal handlers), `discard` drops records and counts them
    #[arg(long, value_name = "POLICY", default_value = "lossless")]
    pub policy: Policy,

    /// Keep only the latest records of each process, SIZE (64M) of them or those of the last TIME (30s) as far as
    /// --buffers reaches; write them out when one of the triggers fires, while the program goes on, and, all that the
    /// memory holds, at its end
    #[arg(long, value_name = "SIZE|TIME", conflicts_with = "policy")]
    pub flight_recorder: Option<Keep>,

    /// Write out the kept records after each call that takes at least this long
    #[arg(long, value_name = "TIME", value_parser = scope::time, requires = "flight_recorder")]
    pub slower_than: Option<Duration>,

    /// Write out the kept records when an API call with this name begins, and at each marker, range or external id with
    /// it; * and ? are wildcards
    #[arg(long, value_name = "NAME", value_parser = scope::name, requires = "flight_recorder")]
    pub dump_on: Option<String>,

    /// Write out the kept records when gputrail gets this signal: USR1 or USR2
    #[arg(
        long,
        value_name = "SIGNAL",
        default_value = "USR1",
        requires = "flight_recorder"
    )]
    pub trigger: Trigger,

    /// Maximum number of times that the kept records are written out
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        requires = "flight_recorder"
    )]
    pub dumps: u32,

    /// Record nothing until `gputrail start PID`; see `gputrail start --help`
    #[arg(long)]
    pub paused: bool,

    /// A tool to load into the program: a library built with gputrail.h, see docs/guide.md. May be given several times
    #[arg(long, value_name = "LIBRARY")]
    pub tool: Vec<PathBuf>,

    /// Read the clocks, temperature, power and fan of agents at this period, as counters of the trace: of processors, from
    /// 1ms, and of the simulated GPU. CUDA reports them at a period of its own
    #[arg(long, value_name = "PERIOD", value_parser = period)]
    pub environment_period: Option<Duration>,

    /// Name the pushed range, with its domain, beside the calls and work inside of it, as their argument `range`
    #[arg(long)]
    pub range_ids: bool,

    /// Write the program's markers of CLPerfMarker to BASE.clperfmarker, too; `gputrail convert` reads the file
    #[arg(long, value_name = "BASE")]
    pub clperfmarker: Option<PathBuf>,

    /// Show the program's OpenMP: parallel regions, loops, waits and target regions on its threads. Takes a runtime of LLVM or Intel
    #[arg(long)]
    pub openmp: bool,

    /// Show the program's OpenACC: constructs, launches and data operations on its threads
    #[arg(long)]
    pub openacc: bool,

    /// Keep the raw records beside the trace (.gputrail), for `gputrail convert`
    #[arg(long)]
    pub capture: bool,

    #[command(flatten)]
    pub contents: Contents,

    /// Open the trace in Perfetto's UI, as `gputrail view` does
    #[arg(long)]
    pub open: bool,

    #[command(flatten)]
    pub scope: Scope,

    #[command(flatten)]
    pub sampling: Sampling,

    #[command(flatten)]
    pub counting: Counting,

    /// Print no summary, only errors and warnings
    #[arg(short, long)]
    pub quiet: bool,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,

    /// Whether the program is the simulated one, whose agents are asked there whether they can be sampled
    #[arg(skip)]
    pub is_demo: bool,
}

/// Control of a running recording
#[derive(Args)]
#[command(help_template = TEMPLATE, before_help = CONTROL_EXAMPLES, after_help = CONTROL_NOTES)]
pub struct Control {
    /// The process id of `gputrail record` or of a process that it records
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    pub pid: u32,

    /// The format of the answer
    #[arg(long, value_enum, default_value_t)]
    pub format: AnswerFormat,
}

/// Formats of an answer.
#[derive(Copy, Clone, Default, PartialEq, Eq, ValueEnum)]
pub enum AnswerFormat {
    /// For people
    #[default]
    Text,
    /// One object
    Json,
}

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

    /// Compress the trace; viewers open it without unpacking
    #[arg(long)]
    pub compress: bool,
}

/// What to record and when
#[derive(Args)]
#[command(next_help_heading = "What to record, and when")]
pub struct Scope {
    /// Record nothing for this time after the start
    #[arg(long, value_name = "TIME", value_parser = scope::time)]
    pub delay: Option<Duration>,

    /// End the recording after this time; the program goes on
    #[arg(long, value_name = "TIME", value_parser = scope::time)]
    pub duration: Option<Duration>,

    /// Begin with the first API call, marker, range or external id with this name, and again with the next one after
    /// --stop-on; * and ? are wildcards
    #[arg(long, value_name = "NAME", value_parser = scope::name)]
    pub start_on: Option<String>,

    /// Stop with the next one with this name; with that of --start-on, each second one stops
    #[arg(long, value_name = "NAME", value_parser = scope::name)]
    pub stop_on: Option<String>,

    /// Record only this kind: api, kernel-dispatch, memory-copy, memory-set, memory-allocation, synchronization,
    /// dependency, graph-node, arguments, overhead, marker, child-kernel, preemption, environment, and on request only
    /// graph-change, unified-memory-counter and instruction-count. May be given more than once
    #[arg(long = "kind", value_name = "KIND", value_parser = scope::kind)]
    pub kinds: Vec<Kind>,

    /// Record only API calls with this name (but all of their work), or, with ! before it, all others. May be given
    /// more than once
    #[arg(long = "call", value_name = "NAME", value_parser = scope::name)]
    pub calls: Vec<String>,

    /// Record only kernels with this name, or, with ! before it, all others. May be given more than once
    #[arg(long = "kernel", value_name = "NAME", value_parser = scope::name)]
    pub kernels: Vec<String>,
}

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

    /// What runs once for each pass: `kernel`, each kernel, with its memory restored; or `application`, the whole program,
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

/// What runs once for each pass.
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
const DEFAULT_CYCLES: (u64, SamplingUnit) = (1 << 16, SamplingUnit::CYCLES);

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

impl From<Scope> for scope::Scope {
    fn from(asked: Scope) -> scope::Scope {
        let scope = scope::Scope {
            not_before: None,
            duration: asked.duration,
            start_on: asked.start_on,
            stop_on: asked.stop_on,
            kinds: asked.kinds,
            calls: asked.calls,
            kernels: asked.kernels,
            ..scope::Scope::default()
        };
        match asked.delay {
            Some(delay) => scope.delayed(delay),
            None => scope,
        }
    }
}

/// Make a trace from captures and from files of other programs
#[derive(Args)]
#[command(help_template = TEMPLATE, before_help = CONVERT_EXAMPLES, after_help = CONVERT_NOTES)]
pub struct Convert {
    /// Files and folders, all of which go into one trace; `-` is standard input
    #[arg(required = true, value_name = "IN")]
    pub inputs: Vec<PathBuf>,

    /// The output [default: the first input's name with .pftrace, never replacing an older file]. A name that ends in .json or
    /// .json.gz makes Chrome trace events; in .csv, a folder of tables with rocprofv3's columns; in .parquet or /, or a folder
    /// that is there, Parquet tables
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<OsString>,

    /// The format of the output, whatever its name
    #[arg(long, value_name = "FORMAT", value_parser = ["perfetto", "json", "csv", "parquet"])]
    pub format: Option<String>,

    /// List what the inputs hold, and write nothing
    #[arg(long, conflicts_with = "output")]
    pub dry_run: bool,

    /// How many inputs are read at the same time [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,

    /// Leave the clocks of ranks as they are. Otherwise, where the output is one timeline, they are aligned by the ends of the
    /// collective operations (NCCL, RCCL) that the ranks share
    #[arg(long)]
    pub no_align: bool,

    /// Make the output at most this large: keep the beginning of what is selected, and say what is left out
    #[arg(long, value_name = "SIZE", value_parser = output_size, conflicts_with = "split")]
    pub max_size: Option<u64>,

    /// Make several outputs of at most this size, one after the other in time, each of which opens on its own
    #[arg(long, value_name = "SIZE", value_parser = output_size)]
    pub split: Option<u64>,

    #[command(flatten)]
    pub selection: Selection,

    #[command(flatten)]
    pub contents: Contents,

    /// Print no summary, only errors and warnings
    #[arg(short, long)]
    pub quiet: bool,
}

/// A size of outputs, in the units in which sizes are printed: 200M and 200MB are 200 000 000 bytes, 200MiB is 200 * 2^20.
fn output_size(text: &str) -> Result<u64, String> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let factor = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => Some(1),
        "K" | "KB" => Some(1000),
        "M" | "MB" => Some(1000_u64.pow(2)),
        "G" | "GB" => Some(1000_u64.pow(3)),
        "KIB" => Some(1 << 10),
        "MIB" => Some(1 << 20),
        "GIB" => Some(1 << 30),
        _ => None,
    };
    let bytes = number.parse::<u64>().ok().zip(factor);
    match bytes.and_then(|(number, factor)| number.checked_mul(factor)) {
        None => Err("expected bytes such as 500K, 200M, 200MB, 200MiB or 1G".to_owned()),
        Some(0) => Err("expected more than 0 bytes".to_owned()),
        Some(bytes) => Ok(bytes),
    }
}

/// What to keep of the inputs
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Selection")]
pub struct Selection {
    /// Leave out what ends before TIME: since the beginning (1.5s, 20ms, 7us), in the clock of the trace (nanoseconds), or the
    /// begin of a slice or marker, by its name (ProfilerStep#5)
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,

    /// Leave out what begins after TIME; a slice's name stands for its end
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,

    /// Keep processes with this id, name or rank; * and ? stand for any letters
    #[arg(long, value_name = "PROCESS")]
    pub process: Vec<String>,

    /// Keep work of the device with this number (GPU N), of each input that has one
    #[arg(long, value_name = "N")]
    pub device: Vec<u32>,

    /// Keep work of streams with this number
    #[arg(long, value_name = "N")]
    pub stream: Vec<u32>,

    /// Keep slices, calls, markers, work and counters with this name; * and ? stand for any letters
    #[arg(long, value_name = "NAME")]
    pub name: Vec<String>,

    /// Keep slices, calls and markers of this category; * and ? stand for any letters
    #[arg(long, value_name = "CATEGORY")]
    pub category: Vec<String>,

    /// Leave out arguments
    #[arg(long)]
    pub drop_args: bool,
}

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

/// Merge several traces into one, of one machine or of several
#[derive(Args)]
#[command(help_template = TEMPLATE, before_help = MERGE_EXAMPLES, after_help = MERGE_NOTES)]
pub struct Merge {
    /// Traces, including those of Perfetto's own tools, and captures (.gputrail)
    #[arg(required = true, value_name = "TRACE|CAPTURE")]
    pub inputs: Vec<PathBuf>,

    /// The merged trace
    #[arg(short, long, value_name = "OUT")]
    pub output: OsString,

    /// The time to add to an input (numbered from 1), in nanoseconds; may be given for several
    #[arg(long, value_name = "INPUT=NANOSECONDS", allow_hyphen_values = true)]
    pub offset: Vec<Offset>,

    /// Print only errors and warnings
    #[arg(short, long)]
    pub quiet: bool,
}

/// Open a trace in Perfetto's UI
#[derive(Args)]
#[command(help_template = TEMPLATE, before_help = VIEW_EXAMPLES, after_help = VIEW_NOTES)]
pub struct View {
    /// The trace
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,

    /// Serve a local copy of the UI from this folder, until Ctrl-C, instead of opening ui.perfetto.dev
    #[arg(long, value_name = "DIR")]
    pub ui: Option<PathBuf>,

    /// Port to serve on; ui.perfetto.dev may fetch from 9001 only [default: 9001]
    #[arg(long, value_name = "PORT", requires = "ui")]
    pub port: Option<u16>,
}

/// Show the contents of a trace or a capture, and how complete it is
#[derive(Args)]
#[command(help_template = TEMPLATE, before_help = INFO_EXAMPLES)]
pub struct Info {
    /// A trace of any origin, compressed or not, or a capture (.gputrail)
    #[arg(value_name = "TRACE|CAPTURE")]
    pub file: PathBuf,
}

/// Check a trace for defects
#[derive(Args)]
#[command(help_template = TEMPLATE, before_help = CHECK_EXAMPLES, after_help = CHECK_NOTES)]
pub struct Check {
    /// A trace of any origin, compressed or not
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
}

/// Show where the time went: calls, kernels, memory operations, devices and their gaps
#[derive(Args)]
#[command(help_template = TEMPLATE, before_help = SUMMARY_EXAMPLES, after_help = SUMMARY_NOTES)]
pub struct Summary {
    /// A trace of any origin, or the captures (.gputrail) of one recording
    #[arg(required = true, value_name = "TRACE|CAPTURE")]
    pub files: Vec<PathBuf>,

    /// Format of the tables
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "table")]
    pub format: Format,
}

/// Show where kernels spend their time: samples by kernel, source line and instruction
#[derive(Args)]
#[command(help_template = TEMPLATE, before_help = HOTSPOTS_EXAMPLES, after_help = HOTSPOTS_NOTES)]
pub struct Hotspots {
    /// A trace, or the captures (.gputrail) of one recording
    #[arg(required = true, value_name = "TRACE|CAPTURE")]
    pub files: Vec<PathBuf>,

    /// Only kernels with this name, with all of their lines and instructions; * and ? are wildcards
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,

    /// Only samples taken with this method, as rows of CSV; for files with both methods
    #[arg(long, value_name = "METHOD", value_parser = sampling_method)]
    pub method: Option<SamplingMethod>,

    /// Format of the output
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "table")]
    pub format: HotspotsFormat,
}

/// The output format of hotspots.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum HotspotsFormat {
    /// For reading, beside the source text
    Table,
    /// One object with all kernels, lines and instructions
    Json,
    /// A row for each sample, as rocprofv3 writes them
    Csv,
}

/// A time after which something is done again.
fn period(text: &str) -> Result<Duration, String> {
    const LEAST: Duration = Duration::from_micros(1);
    let period = scope::time(text).map_err(|error| error.to_string())?;
    if period >= LEAST {
        Ok(period)
    } else {
        Err("expected at least 1us".to_owned())
    }
}

fn sampling_method(name: &str) -> Result<SamplingMethod, String> {
    SamplingMethod::from_name(name).ok_or_else(|| "expected host-trap or stochastic".into())
}

/// Checks, in this process, whether an agent can be sampled as requested
#[derive(Args)]
pub struct ProbeSampling {
    /// Method and interval, in the syntax of a scope
    pub request: String,
}

/// Checks, in this process, whether a library is a tool
#[derive(Args)]
pub struct ProbeTool {
    /// The injected library
    pub library: PathBuf,
    /// The tool
    pub tool: PathBuf,
}

/// Run the simulated program in this process, which `record` records
#[derive(Args)]
pub struct RunDemo {
    /// Which run to simulate
    pub seed: u64,
    /// Steps of the simulated training
    pub steps: u64,
}

/// Write out the library that traces a program by environment variables alone
#[derive(Args)]
#[command(help_template = TEMPLATE, before_help = LIBRARY_EXAMPLES)]
pub struct Library {
    /// The file to write; an older file is replaced. A folder, or a name without .so, gets what tools are built from: headers,
    /// libgputrail.so, and files for pkg-config and CMake
    #[arg(value_name = "PATH")]
    pub path: PathBuf,

    /// File name of the captures, for the printed GPUTRAIL_CAPTURE
    #[arg(long, value_name = "OUT", default_value = "gputrail-%p.gputrail")]
    pub capture: OsString,

    /// Write the C header of this version, too, and beside it gputrail.hpp, for C++
    #[arg(long, value_name = "HEADER")]
    pub header: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn periods_are_at_least_a_microsecond() {
        assert_eq!(period("1us"), Ok(Duration::from_micros(1)));
        for text in ["0ms", "100ns", "x"] {
            assert!(period(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_help_of_record_names_each_kind() {
        let command = Cli::command();
        let record = command.find_subcommand("record").expect("a verb");
        let mut options = record.get_arguments();
        let option = options.find(|option| option.get_long() == Some("kind"));
        let help = option
            .and_then(|option| option.get_help())
            .expect("a help")
            .to_string();
        let refusal = scope::kind("?").unwrap_err().to_string();
        let (_, kinds) = refusal.split_once("the kinds are: ").expect("a list");
        for kind in kinds.split(", ") {
            let mut words = help.split([' ', ',', ':', '.', '\n']);
            assert!(words.any(|word| word == kind), "{kind}: {help}");
        }
    }

    #[test]
    fn help_starts_with_examples() {
        let mut command = Cli::command();
        command.build();
        for name in [
            "record", "convert", "demo", "merge", "view", "info", "check", "summary", "hotspots",
            "library",
        ] {
            let help = command
                .find_subcommand_mut(name)
                .unwrap()
                .render_help()
                .to_string();
            let place = |what| {
                help.find(what)
                    .unwrap_or_else(|| panic!("{what} in {help}"))
            };
            assert!(place("Examples:") < place("Usage:"), "{help}");
        }
    }

    #[test]
    fn the_defaults_are_those_of_the_library() {
        let Command::Record(record) = Cli::parse_from(["gputrail", "record", "true"]).command
        else {
            panic!("record");
        };
        assert_eq!(
            (record.buffers, record.buffer_size),
            (Size::BUFFERS, Size::BLOCK)
        );
    }

    #[test]
    fn a_threshold_needs_a_flight_recorder_which_has_a_policy_of_its_own() {
        let refused = |arguments: &[&str]| {
            let all = ["gputrail", "record"].iter().chain(arguments).chain(&["x"]);
            Cli::try_parse_from(all).is_err()
        };
        assert!(refused(&["--slower-than", "5ms"]) && refused(&["--trigger", "USR2"]));
        assert!(refused(&["--flight-recorder", "1M", "--policy", "discard"]));
        assert!(!refused(&[
            "--flight-recorder",
            "1M",
            "--slower-than",
            "5ms"
        ]));
    }

    #[test]
    fn arguments_after_the_program_belong_to_the_program() {
        let Command::Record(record) =
            Cli::parse_from(["gputrail", "record", "-q", "prog", "-o", "x"]).command
        else {
            panic!("record");
        };
        assert!(record.quiet && record.output.is_none());
        assert_eq!(record.program, ["prog", "-o", "x"]);
    }
}
