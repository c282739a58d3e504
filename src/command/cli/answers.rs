//! The command lines of `gputrail advise` and `gputrail diff`, and the options of all verbs that print tables.

use super::help::{
    ADVISE_EXAMPLES, ADVISE_NOTES, DIFF_EXAMPLES, DIFF_NOTES, REPORT_EXAMPLES, REPORT_NOTES,
    TEMPLATE,
};
use crate::tables::Format;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// Options of tables.
#[derive(Args, Clone, Debug)]
pub struct TableOptions {
    /// Format of the tables
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "table")]
    pub format: Format,

    /// Only this table, by its name in JSON, such as kernels or steps. May be given more than once
    #[arg(long, value_name = "NAME")]
    pub table: Vec<String>,

    /// Only the first N rows of each table [default: all; of tables for reading that --table does not name, 30]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,

    /// Write each table into a file of its own in this folder, which is made: NAME.csv, .md, .json or .txt
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// Say what to do: what was seen, why it matters, and what to try
#[derive(Args)]
#[command(help_template = TEMPLATE, before_help = ADVISE_EXAMPLES, after_help = ADVISE_NOTES)]
pub struct Advise {
    /// A trace of any origin, the captures (.gputrail) of one recording, or a folder of ranks
    #[arg(required = true, value_name = "TRACE|CAPTURE")]
    pub files: Vec<PathBuf>,

    /// Ranges with this name are steps; * and ? are wildcards. May be given more than once [default: names that end in a
    /// number behind `step` or `iteration`]
    #[arg(long, value_name = "PATTERN")]
    pub step: Vec<String>,

    #[command(flatten)]
    pub tables: TableOptions,
}

/// Compare two recordings, or several of each side
#[derive(Args)]
#[command(help_template = TEMPLATE, before_help = DIFF_EXAMPLES, after_help = DIFF_NOTES)]
pub struct Diff {
    /// The recordings before and after: traces, captures or folders of ranks. With --, all of those before
    #[arg(required = true, value_name = "A")]
    pub files: Vec<PathBuf>,

    /// The recordings after the change
    #[arg(last = true, value_name = "B")]
    pub after: Vec<PathBuf>,

    /// Fail if a figure has changed so: `total > +5 %`, `busy < -10 %`, `kernel:gemm* > +2 ms`. May be given more than once
    #[arg(long, value_name = "CONDITION", value_parser = crate::diff::condition)]
    pub fail_if: Vec<crate::diff::Condition>,

    /// Ranges with this name are steps; * and ? are wildcards. May be given more than once [default: names that end in a
    /// number behind `step` or `iteration`]
    #[arg(long, value_name = "PATTERN")]
    pub step: Vec<String>,

    #[command(flatten)]
    pub tables: TableOptions,
}

/// Write a page of HTML: the timeline of busy time, advice, tables, and the roofline where counters tell it
#[derive(Args)]
#[command(help_template = TEMPLATE, before_help = REPORT_EXAMPLES, after_help = REPORT_NOTES)]
pub struct Report {
    /// A trace of any origin, the captures (.gputrail) of one recording, or a folder of ranks
    #[arg(required = true, value_name = "TRACE|CAPTURE")]
    pub files: Vec<PathBuf>,

    /// The page [default: the name of the first file, with .html]
    #[arg(short, long, value_name = "HTML")]
    pub output: Option<OsString>,

    /// Ranges with this name are steps; * and ? are wildcards. May be given more than once [default: names that end in a
    /// number behind `step` or `iteration`]
    #[arg(long, value_name = "PATTERN")]
    pub step: Vec<String>,

    /// Only the first N rows of each table
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub top: usize,

    /// Print nothing but errors and warnings
    #[arg(short, long)]
    pub quiet: bool,
}
