//! The texts of the help: examples, notes, exit codes and variables.

pub const TEMPLATE: &str =
    "{about}\n\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}\n";

pub const EXAMPLES: &str = "\
Examples:
  gputrail record -- clpeak --kernel-latency    trace an OpenCL program, unchanged
  gputrail demo                                 trace a workload on the simulated GPU
  gputrail agents                               list the devices that can be traced
Then open the .pftrace file in https://ui.perfetto.dev (\"Open trace file\").";

pub const EXIT_CODES: &str = "\
Exit codes: 0 on success; 1 when input was damaged; 3 when a condition of `diff --fail-if` holds; 125 when gputrail itself fails. `record` passes on the code of the \
program, or 128+n when signal n ended it; 126 when it cannot be executed, 127 when it is not found.";

pub const RECORD_EXAMPLES: &str = "\
Examples:
  gputrail record -- clpeak --kernel-latency
  gputrail record -o run.pftrace -- ffmpeg -init_hw_device opencl=gpu -i in.mkv -f null -
  gputrail record -o 'runs/%h-%q{RANK}-%p.pftrace' -- ./solver input.dat
  gputrail record --open -- ./program
  gputrail record --delay 5s --duration 500ms --kernel 'gemm*' -- ./solver
  gputrail record --start-on 'step 10' --stop-on 'step 20' -- ./train
  gputrail record --capture --buffers 64M -- python train.py
  gputrail record --call-stacks -- python -X perf train.py      then: gputrail summary --by stack TRACE
  gputrail record --pc-sampling stochastic --interval 65536cycles -- python train.py      CUDA: gputrail help cuda
  gputrail record --flight-recorder 30s --slower-than 5ms -- ./server      then: gputrail dump $(pidof gputrail)
  gputrail record --paused -- ./server      then: gputrail start $(pidof server); sleep 30; gputrail stop $(pidof server)";

pub const RECORD_NOTES: &str = "\
The program runs as it would without us: same output, same results, same exit code. Its children are \
traced into the same file. Ctrl-C ends the program and still leaves a whole trace; a second Ctrl-C \
kills it.

Exit codes: that of the program, 128+n when signal n ended it; 125 when gputrail itself fails, 126 when \
the program cannot be executed, 127 when it is not found.

If gputrail itself is killed, the program goes on, and what gputrail had written stays in a hidden folder beside the trace: all \
that was recorded up to about a second before, and of a flight recorder the dumps. The next `gputrail record` to the same folder \
names the command that makes a trace of it, and the trace says from when on records may be missing.

The program's own marks by NVTX, ROCTx and CLPerfMarker are recorded: `gputrail help markers`.

CUDA programs are recorded through NVIDIA's libcupti: `gputrail agents` says whether it is found, `gputrail help cuda` what \
it takes. Programs of ROCm are recorded through AMD's rocprofiler-sdk: `gputrail help rocm`.

Where gputrail cannot be the parent (containers, job launchers), see `gputrail library --help`.";

pub const ATTACH_EXAMPLES: &str = "\
Examples:
  ROCP_TOOL_ATTACH=1 ./server & sleep 60; gputrail attach $! --for 10s
  gputrail attach $(pidof server) -o run.pftrace      until Ctrl-C";

pub const ATTACH_NOTES: &str = "\
Programs of ROCm alone can be attached to, by AMD's librocprofiler-sdk-rocattach, and of them those that were started with \
ROCP_TOOL_ATTACH=1. A process is attached to once. Other programs are started under `gputrail record --paused`, and the recording is \
switched on when it is wanted: `gputrail start --help`.";

pub const CONVERT_EXAMPLES: &str = "\
Examples:
  gputrail convert run.gputrail                       makes run.pftrace
  gputrail convert run-*.gputrail -o run.pftrace      several processes in one trace
  gputrail convert profile.json.gz                    of PyTorch's profiler, or of Chrome
  gputrail convert profile.json.gz --from ProfilerStep#5 --to ProfilerStep#6 -o steps.pftrace
  gputrail convert run.gputrail -o run.json.gz        for tools that read PyTorch's traces
  gputrail convert rank3.json.gz -o /shared/job/      Parquet tables of each rank, for DuckDB, Polars and Spark";

pub const CONVERT_NOTES: &str = "\
Reads captures (.gputrail), Perfetto traces, Chrome trace events as PyTorch's profiler writes them (JSON), tables and databases \
of rocprofv3 (CSV, JSON, rocpd), databases of rocmProfileData (RPD), exports of Nsight Systems (SQLite), XPlane files of JAX and \
XProf, and traces of Ascend, Intel and Triton's Proton (JSON, CSV); plain, or packed with gzip or zstd. The content decides, not the name. `gputrail help convert` lists what becomes of each field.

Exit codes: 0 on success; 1 when an input was damaged, or one that was named has no known format, and all else was converted; \
125 when gputrail itself fails; 128+n when signal n ended it.";

pub const DEMO_EXAMPLES: &str = "\
Examples:
  gputrail demo
  gputrail demo -o other.pftrace --seed 7
  gputrail demo --pc-sampling stochastic
  gputrail demo --pc-sampling host-trap --interval 20us
  gputrail demo --tool ./libcounter.so          try a tool of your own without a GPU
  gputrail demo --ranks 64 -o job               profiles of 64 ranks: gputrail help scale";

pub const MERGE_EXAMPLES: &str = "\
Examples:
  gputrail merge a.pftrace b.pftrace -o both.pftrace
  gputrail merge node*/run.pftrace -o job.pftrace
  gputrail merge run.pftrace scheduling.perfetto-trace -o run-with-scheduling.pftrace
  gputrail merge a.pftrace b.pftrace --offset 2=-1500000 -o both.pftrace";

pub const MERGE_NOTES: &str = "\
Traces of one machine (the same name, and started at the same time) share its clock and need nothing else. The times \
of another machine are shifted so that the real-time clocks meet, or by --offset; the summary \
says which of the two it was, and how exact the result is.";

pub const VIEW_EXAMPLES: &str = "\
Examples:
  gputrail view run.pftrace
  gputrail view run.pftrace --ui ~/perfetto-ui      without internet
  ssh -L 9001:127.0.0.1:9001 server gputrail view run.pftrace";

pub const VIEW_NOTES: &str = "\
Serves the trace on 127.0.0.1:9001, to this machine and to Perfetto's UI only, opens the browser ($BROWSER or \
xdg-open; the link is printed in any case), and ends when the UI has loaded the trace, or with Ctrl-C. \
The link has a secret: other users of this machine cannot fetch the trace without it. \
The trace does not leave the machine: the UI reads it in the browser.";

pub const INFO_EXAMPLES: &str = "\
Examples:
  gputrail info run.pftrace
  gputrail info run.gputrail";

pub const CHECK_EXAMPLES: &str = "\
Examples:
  gputrail check run.pftrace
  gputrail check run.pftrace && cp run.pftrace /results";

pub const CHECK_NOTES: &str = "\
Of anybody's trace: the wire format, what is interned and referred to. Of a trace of ours also that every \
id of work is resolved, that no interval is impossible, and that nothing was lost. Each finding names \
the packet by its offset in the file.

Exit codes: 0 when nothing is wrong, 1 when there are findings, 125 when the file cannot be read.";

pub const SUMMARY_EXAMPLES: &str = "\
Examples:
  gputrail summary run.pftrace
  gputrail summary run.pftrace --format json | jq '.kernels[0]'
  gputrail summary job/ --by rank --top 8                the slowest ranks first
  gputrail summary profile.json.gz --table steps         ProfilerStep#N, step N; others by --step
  gputrail summary run.pftrace --flame folded | flamegraph.pl > run.svg
  gputrail summary run.pftrace --by stack                the code that launched the work: record --call-stacks
  gputrail summary run-*.gputrail --format csv -o tables  tables/kernels.csv, tables/gaps.csv, ...
  gputrail summary profile.hatchet --flame folded         of Triton's Proton";

pub const SUMMARY_NOTES: &str = "\
Medians come from a sketch of the values and are off by at most the share that the first table names; all \
else is exact. `gputrail help answers` explains the tables. Times of calls include the calls they make. A gap is a time in which a device had no \
work between two pieces of it; before the work that ends it was enqueued, the host let the device wait.";

pub const ADVISE_EXAMPLES: &str = "\
Examples:
  gputrail advise run.pftrace
  gputrail advise profile.json.gz --top 3
  gputrail advise job/ --format json | jq '.advice[].rule'";

pub const ADVISE_NOTES: &str = "\
Each piece of advice says what was seen, where it is worst (a time that the command `Pan to timestamp` of Perfetto's UI takes), \
why it matters and what to try. `gputrail help answers` lists the rules and their thresholds. A rule that lacks its data is silent.";

pub const DIFF_EXAMPLES: &str = "\
Examples:
  gputrail diff before.pftrace after.pftrace
  gputrail diff before/ after/ --format markdown --top 10      for a pull request
  gputrail diff a1.pftrace a2.pftrace -- b1.pftrace b2.pftrace
  gputrail diff main.pftrace new.pftrace --fail-if 'total > +5 %'";

pub const DIFF_NOTES: &str = "\
Rows without a change are left out. Kernels are matched by their full names, and what is left by names without template \
arguments, parameters and tile sizes. With several runs a side, values are means, and `Spread` is the distance from the least \
run to the greatest.

--fail-if takes FIGURE OPERATOR VALUE. Figures: total (from the first event to the last), busy, idle, computing, exposed, \
transfers, kernels, calls, and the total of rows as kernel:NAME, call:NAME, copy:NAME, gap:NAME, range:NAME, step:NAME, with \
wildcards. Operators: > >= < <=. Values with a sign are changes, in % or s, ms, us, ns; without one, the value after the change.

Exit codes: 0 on success; 1 when an input was damaged, and the rest was compared; 3 when a condition of --fail-if holds; 125 when \
gputrail itself fails.";

pub const REPORT_EXAMPLES: &str = "\
Examples:
  gputrail report run.pftrace                     makes run.html
  gputrail report profile.json.gz -o report.html
  gputrail report job/ -o job.html                all ranks";

pub const REPORT_NOTES: &str = "\
The page is one file that loads nothing and runs no script: it can be mailed, and opened without a network. Numbers in its tables \
are those of `gputrail summary`. It draws up to 64 devices, 16 queues of each and 400 steps of a process.

Exit codes: 0 on success; 1 when an input was damaged, and the page is of the rest; 125 when gputrail itself fails.";

pub const HOTSPOTS_EXAMPLES: &str = "\
Examples:
  gputrail hotspots run.pftrace
  gputrail hotspots run.pftrace --kernel 'gemm*'
  gputrail hotspots run.pftrace --format json | jq '.kernels[0].lines[0]'
  gputrail hotspots run.gputrail --format csv > pc_sampling.csv
  gputrail hotspots run.pftrace --format folded | flamegraph.pl > run.svg";

pub const HOTSPOTS_NOTES: &str = "\
Samples come from `gputrail record --pc-sampling`. Counts are exact, also where the flame graph shows only some of the \
samples. `issued` is the share of samples at which the wave issued an instruction; stochastic sampling alone tells that, \
and why the others did not. CSV has a row for each sample, in the columns of rocprofv3's PC sampling files: it \
takes a capture, or a trace that was made with --raw-samples.";

pub const CONTROL_EXAMPLES: &str = "\
Examples:
  gputrail status $(pidof server)
  gputrail status 4711 --format json | jq .state
  gputrail start 4711; sleep 30; gputrail stop 4711
  gputrail flush 4711      the trace of what has been recorded so far
  gputrail dump 4711       what a flight recorder keeps";

pub const CONTROL_NOTES: &str = "\
PID is a `gputrail record`, or any process of the program that it records: all of them are switched, and those that begin \
later find the recording as it is then. Only the user who records can control the recording. `gputrail help control` says what \
becomes of calls and work that are in progress, and what the trace shows.

Exit codes: 0 on success, also when the recording was in that state already; 125 when there is no such recording, when it \
belongs to another user, or when it cannot do what is asked for.";

pub const LIBRARY_EXAMPLES: &str = "\
Examples:
  eval \"$(gputrail library /tmp/libgputrail.so)\" && ./program && gputrail convert gputrail-*.gputrail -o run.pftrace
  gputrail library ./libgputrail.so --capture '/results/%h-%p.gputrail'
  gputrail library ./gputrail     for tools in C and C++, see gputrail help guide

The library alone records, without a parent: the variables that are printed are all that a container or \
a job launcher has to pass on. Unlike under `gputrail record`, what a killed program had not yet \
written is lost, about its last second, and the trace says so. Tools that request source lines of sampled code get them \
from libgputrail-symbols.so.0, which is written into the same folder. That folder is one in which nobody else can replace \
files, as your own or /tmp; the libraries of markers go into gputrail-markers beside the library, to which only you can write.

The variables that are printed. Where one is set already, what it names is kept:
  GPUTRAIL_CAPTURE         name of the capture: %p process id, %h host, %q{VAR} environment variable, %% a percent sign
  OPENCL_LAYERS            libraries that OpenCL's loader puts around its functions, separated by colons; ours comes last
  CUDA_INJECTION64_PATH    the library that CUDA's driver loads; the one that it named before is in
                           GPUTRAIL_NEXT_CUDA_INJECTION, and is initialised after ours
  ROCP_TOOL_LIBRARIES      libraries that ROCm's rocprofiler-sdk loads as tools, separated by colons; ours comes first
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
                               no-enqueue-arguments (else calls that enqueue work have theirs);call-stacks;
                               from=, of gputrail itself
  GPUTRAIL_TOOLS               tools to load, separated by colons (`record --tool`)
  GPUTRAIL_CLPERFMARKER        name of the file of CLPerfMarker's markers, without its extension (`record --clperfmarker`)
  GPUTRAIL_SERIALIZE_KERNELS   1: kernels of CUDA that are sampled run one after the other (`record --serialize-kernels`)
  OMP_TOOL_LIBRARIES           libraries that an OpenMP runtime asks for a tool; this one observes OpenMP (`record --openmp`)
  ACC_PROFLIB                  libraries that an OpenACC runtime loads; this one observes OpenACC (`record --openacc`)
  GPUTRAIL_CUPTI               path of libcupti, or of its folder; no other one is taken then
  GPUTRAIL_ROCPROFILER         path of librocprofiler-sdk, or of its folder, for `gputrail agents` and late starts
  GPUTRAIL_SAMPLING_SOURCE     timer: samples of kernels on processors are taken by timers instead of perf events
  GPUTRAIL_SYSFS               folder that has what /sys has elsewhere, such as the host's in a container
  GPUTRAIL_CLOCK               monotonic: times are read from CLOCK_MONOTONIC instead of the processor's counter";

pub const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  source <(gputrail completions bash)
  gputrail completions zsh > \"${fpath[1]}/_gputrail\"
  gputrail completions fish > ~/.config/fish/completions/gputrail.fish";

pub const MAN_EXAMPLES: &str = "\
Examples:
  gputrail man ~/.local/share/man/man1 && man gputrail-record";

pub const COUNTERS_EXAMPLES: &str = "\
Examples:
  gputrail counters list                                   architectures
  gputrail counters list -a gfx90a                         counters and metrics of one
  gputrail counters info -a gfx90a OccupancyPercent        formula down to basic counters
  gputrail counters check -a gfx90a MfmaUtil,L2CacheHit    passes of a kernel that they need
  gputrail counters list --agent 0                         counters that an agent of this machine collects
  gputrail counters list --agent sim                       those of the simulated GPU
  gputrail counters list -d metrics.xml -a gfx906          by other definitions
  gputrail counters list --chip gh100                      metrics of a chip of NVIDIA's
  gputrail counters check --chip gh100 dram__bytes_read.sum,sm__throughput";

pub const COUNTERS_NOTES: &str = "\
The definitions that are built in are rocprofiler-sdk's: they tell what the hardware can count, and in how many passes. `gputrail \
record --counters` and `gputrail demo --counters` collect the counters of agents.

--chip asks NVIDIA's libnvperf_host, which comes with CUPTI and needs no GPU; GPUTRAIL_CUPTI names a libcupti beside which it lies. \
`gputrail record --counters` has CUPTI count them for kernels of CUDA (`gputrail help counters`).

Exit codes: 0 on success; 1 when definitions of a file were refused, each with its place; 125 when there is no such counter or \
architecture, or a file cannot be read.";
