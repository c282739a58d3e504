//! The command line of `gputrail convert`.

use super::contents::Contents;
use super::help::{CONVERT_EXAMPLES, CONVERT_NOTES, TEMPLATE};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

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

    /// How many inputs are read at the same time [default: the number of processors]. With more than one, the steps of each have
    /// threads of their own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,

    /// Leave the clocks of ranks as they are. Otherwise, where the output is one timeline, they are aligned by the ends of the
    /// collective operations (NCCL, RCCL) that the ranks share
    #[arg(long)]
    pub no_align: bool,

    /// Add rows to each device with the ranges and operators in which its work was launched, from the first such work to the
    /// last
    #[arg(long)]
    pub project_ranges: bool,

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

/// The part of the inputs that is kept
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
