//! The command line, parsed by clap, and its help, which starts with examples.

pub mod answers;
pub mod contents;
pub mod convert;
pub mod counters;
pub mod demo;
pub mod help;
pub mod kernels;
pub mod merge;
pub mod record;
pub mod summary;

use self::answers::{Advise, Diff, Report};
use self::convert::Convert;
use self::counters::Counters;
use self::demo::Demo;
use self::help::*;
use self::kernels::sampling_method;
use self::merge::Merge;
use self::record::Record;
use self::summary::Summary;
use crate::apis::ApiName;
use clap::{Args, Parser, Subcommand, ValueEnum};
use gputrail_record::SamplingMethod;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Records what programs do on GPUs into Perfetto traces.
#[derive(Parser)]
#[command(name = "gputrail", version, help_template = TEMPLATE, before_help = EXAMPLES, after_help = EXIT_CODES)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    Record(Box<Record>),
    Attach(Box<Attach>),
    Convert(Convert),
    Demo(Demo),
    /// List the devices that can be traced, their clocks, and what can be collected on them
    Agents,
    Counters(Counters),
    Merge(Merge),
    View(View),
    Info(Info),
    Check(Check),
    Summary(Summary),
    Advise(Advise),
    Diff(Diff),
    Report(Report),
    Hotspots(Hotspots),
    Library(Library),
    /// Show the help of a verb, or a page of the documentation; without a topic, the list of pages
    Help(Help),
    /// Print the script by which a shell completes the command line
    Completions(Completions),
    /// Write the pages of the manual, `gputrail.1` and one for each verb
    Man(Man),
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
    /// Internal: checks whether agents can do what is requested
    #[command(hide = true)]
    Probe(Probe),
    /// Internal: checks whether a library is a tool before a program loads it
    #[command(hide = true)]
    ProbeTool(ProbeTool),
    /// The simulated program in a process of its own, which `demo --tool` records
    #[command(hide = true)]
    RunDemo(RunDemo),
    /// Internal: attaches to a process, and detaches at the end, while `attach` records it
    #[command(hide = true)]
    AttachHere(AttachHere),
}

/// Record a program of ROCm that runs already
#[derive(Args)]
#[command(help_template = TEMPLATE, before_help = ATTACH_EXAMPLES, after_help = ATTACH_NOTES)]
pub struct Attach {
    /// The process
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    pub pid: u32,

    /// The trace [default: attached-PID.pftrace]
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<OsString>,

    /// Detach after this time; until then, Ctrl-C does
    #[arg(long = "for", value_name = "TIME", value_parser = gputrail_collect::scope::time)]
    pub attached_for: Option<Duration>,

    /// Keep the raw records beside the trace (.gputrail), for `gputrail convert`
    #[arg(long)]
    pub capture: bool,

    #[command(flatten)]
    pub scope: record::Scope,

    /// Print no summary, only errors and warnings
    #[arg(short, long)]
    pub quiet: bool,
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
    /// A line for each stack of kernel, functions and instruction, with its samples: for flame graphs
    Folded,
    /// The same stacks, as JSON for speedscope.app
    Speedscope,
    /// The same stacks, for `go tool pprof`, packed with gzip
    Pprof,
}

/// The topic of `gputrail help`
#[derive(Args)]
pub struct Help {
    /// A verb, such as record, or a page, such as markers
    #[arg(value_name = "TOPIC")]
    pub topic: Option<String>,
}

/// Print the script by which a shell completes the command line
#[derive(Args)]
#[command(help_template = TEMPLATE, before_help = COMPLETIONS_EXAMPLES)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Shells that complete command lines.
#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Write the pages of the manual
#[derive(Args)]
#[command(help_template = TEMPLATE, before_help = MAN_EXAMPLES)]
pub struct Man {
    /// The folder that gets them; it is made if it is not there
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Checks, in this process, whether agents can do what is requested
#[derive(Args)]
pub struct Probe {
    /// The words of a question to the library
    pub words: Vec<String>,
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

/// Attach to a process in this one, which `record` runs
#[derive(Args)]
pub struct AttachHere {
    /// The process
    pub pid: u32,
    /// The time after which it is detached from
    pub milliseconds: Option<u64>,
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

    /// Write a library with a vendor's names, too, and its headers (may be repeated). PATH is a folder, and the printed
    /// variable is that by which programs find the libraries; see `gputrail help apis`
    #[arg(long, value_enum, value_name = "API", conflicts_with_all = ["header", "capture"])]
    pub api: Vec<ApiName>,

    /// The folder with the libraries that cargo has made of the packages of `tools/abi`, for a gputrail that carries none
    #[arg(long, value_name = "FOLDER", requires = "api")]
    pub built: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use gputrail_collect::scope;
    use gputrail_collect::session::Size;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
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
            "record", "attach", "convert", "demo", "merge", "view", "info", "check", "summary",
            "advise", "diff", "report", "hotspots", "library",
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
