//! The command line of `gputrail record`.

use super::contents::Contents;
use super::help::{RECORD_EXAMPLES, RECORD_NOTES, TEMPLATE};
use super::kernels::{Counting, Sampling};
use clap::Args;
use gputrail_buffer::Policy;
use gputrail_collect::scope;
use gputrail_collect::session::Size;
use gputrail_record::Kind;
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

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

    /// The policy when the memory is full: `lossless` lets threads wait where they can (up to 1024 at a time, and not in
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

    /// Take the host's call stack in each call that enqueues work, and show it as the argument `stack` of the call
    #[arg(long)]
    pub call_stacks: bool,

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

/// How much is kept.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The latest records of each process, of this size.
    Bytes(Size),
    /// The records of this latest period, as far as the memory reaches.
    Time(Duration),
}

impl FromStr for Keep {
    type Err = String;

    fn from_str(text: &str) -> Result<Keep, String> {
        // A minute is `min` here, since `64m` is a size.
        let keep = if text.ends_with('s') || text.ends_with("min") {
            scope::time(text).ok().map(Keep::Time)
        } else {
            text.parse().ok().map(Keep::Bytes)
        };
        keep.ok_or_else(|| {
            format!("`{text}` is neither a size, such as 64M, nor a time, such as 30s or 5min")
        })
    }
}

/// The signal that triggers a dump.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Trigger(pub libc::c_int);

impl FromStr for Trigger {
    type Err = String;

    fn from_str(text: &str) -> Result<Trigger, String> {
        match text.strip_prefix("SIG").unwrap_or(text) {
            "USR1" => Ok(Trigger(libc::SIGUSR1)),
            "USR2" => Ok(Trigger(libc::SIGUSR2)),
            _ => Err(format!("`{text}` is neither USR1 nor USR2")),
        }
    }
}

/// The selection of what is recorded, and when
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

    /// Record only kernels with this name, or, with ! before it, all others: the name as traces show it, as the program
    /// has it, or with parameters as C++ writes it. May be given more than once
    #[arg(long = "kernel", value_name = "NAME", value_parser = scope::name)]
    pub kernels: Vec<String>,
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

/// A time after which something is done again.
pub fn period(text: &str) -> Result<Duration, String> {
    const LEAST: Duration = Duration::from_micros(1);
    let period = scope::time(text).map_err(|error| error.to_string())?;
    if period >= LEAST {
        Ok(period)
    } else {
        Err("expected at least 1us".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_much_is_kept_is_a_size_or_a_time() {
        let keep = |text: &str| text.parse::<Keep>();
        assert_eq!(keep("64M"), Ok(Keep::Bytes(Size(64 << 20))));
        assert_eq!(keep("64m"), Ok(Keep::Bytes(Size(64 << 20))));
        assert_eq!(keep("30s"), Ok(Keep::Time(Duration::from_secs(30))));
        assert_eq!(keep("500ms"), Ok(Keep::Time(Duration::from_millis(500))));
        assert_eq!(keep("5min"), Ok(Keep::Time(Duration::from_secs(300))));
        assert!(keep("five").unwrap_err().contains("such as 64M"));
        assert!(keep("5 weeks").is_err());
    }

    #[test]
    fn signals_have_their_names() {
        assert_eq!("USR2".parse(), Ok(Trigger(libc::SIGUSR2)));
        assert_eq!("SIGUSR1".parse(), Ok(Trigger(libc::SIGUSR1)));
        assert!("KILL".parse::<Trigger>().is_err());
    }

    #[test]
    fn periods_are_at_least_a_microsecond() {
        assert_eq!(period("1us"), Ok(Duration::from_micros(1)));
        for text in ["0ms", "100ns", "x"] {
            assert!(period(text).is_err(), "{text}");
        }
    }
}
