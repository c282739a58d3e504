//! The `gputrail` command, which records programs into Perfetto traces. `gputrail --help` starts with examples. Its own
//! messages go to standard error, each line after `gputrail: `.
//!
//! A part of gputrail, not meant for others: what is public here may change in any version.

mod ahead;
mod cache;
mod check;
mod cli;
mod contents;
mod control;
mod convert;
mod counters;
mod demo;
mod development;
mod figures;
mod flight;
mod hotspots;
mod info;
mod input;
mod library;
mod links;
mod merge;
mod output;
mod peer;
mod private_dir;
mod program;
mod progress;
mod questions;
mod ranks;
mod record;
mod replay;
mod sampling;
mod signals;
mod stdout;
mod summary;
mod summary_text;
mod tables;
mod tools;
mod trace;
mod view;
mod watch;

use clap::Parser;
use cli::Command;
use gputrail_record::printable_lines;
pub use library::{Carried, CarriedLibrary};
use std::io::{self, Write};
use std::process::ExitCode;

/// Exit code of a failure of gputrail itself.
const FAILED: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Prints a message of one line to standard error, after `gputrail: `.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::say_lines(&::gputrail_record::printable(&format!($($text)*)))
    };
}
use say;

/// The reason why a command ends without a result.
#[derive(Debug)]
struct Failure {
    /// Our exit code.
    code: u8,
    /// The reason.
    error: anyhow::Error,
}

impl Failure {
    /// The program to record does not exist.
    fn not_found(error: anyhow::Error) -> Failure {
        Failure {
            code: NOT_FOUND,
            error,
        }
    }

    /// The program to record cannot be executed.
    fn not_executable(error: anyhow::Error) -> Failure {
        Failure {
            code: NOT_EXECUTABLE,
            error,
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure {
            code: FAILED,
            error,
        }
    }
}

/// `gputrail agents`: prints the devices that each source finds.
fn agents(carried: Carried) -> Result<u8, Failure> {
    stdout::print(&questions::ask(
        carried,
        &[gputrail_collect::question::AGENTS],
    )?)?;
    Ok(0)
}

/// Runs the command line. `carried` are the libraries that `gputrail record` loads into programs.
pub fn run(carried: Carried) -> ExitCode {
    gputrail_code::reader::link(&gputrail_symbols::GPUTRAIL_SYMBOLS);
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            if error.use_stderr() {
                // It quotes the arguments.
                let text = error.render().to_string();
                let _ = io::stderr().write_all(printable_lines(&text).as_bytes());
                return FAILED.into();
            }
            // Help and version were requested, so they go to standard output.
            let _ = error.print();
            return 0.into();
        }
    };
    let result = match cli.command {
        Command::Record(arguments) => record::run(*arguments, carried),
        Command::Convert(arguments) => convert::run(arguments),
        Command::Demo(arguments) => demo::run(arguments, carried),
        Command::Agents => agents(carried),
        Command::Counters(arguments) => counters::run(&arguments, carried),
        Command::Info(arguments) => info::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Merge(arguments) => merge::run(&arguments),
        Command::View(arguments) => view::run(&arguments),
        Command::Summary(arguments) => summary::run(&arguments),
        Command::Hotspots(arguments) => hotspots::run(&arguments),
        Command::Status(arguments) => control::run(control::Verb::Status, &arguments),
        Command::Start(arguments) => control::run(control::Verb::Start, &arguments),
        Command::Stop(arguments) => control::run(control::Verb::Stop, &arguments),
        Command::Flush(arguments) => control::run(control::Verb::Flush, &arguments),
        Command::Dump(arguments) => control::run(control::Verb::Dump, &arguments),
        Command::ProbeSampling(arguments) => sampling::answer(&arguments, carried),
        Command::ProbeTool(arguments) => tools::probe_here(&arguments.library, &arguments.tool),
        Command::RunDemo(arguments) => demo::run_here(&arguments),
        Command::Library(arguments) => library::write_out(
            carried,
            &arguments.path,
            arguments.header.as_deref(),
            &arguments.capture,
        )
        .map(|()| 0)
        .map_err(Failure::from),
    };
    match result {
        Ok(code) => code.into(),
        Err(failure) => {
            say!("{}", in_words(&failure.error));
            failure.code.into()
        }
    }
}

/// An error and its causes. Some errors include the text of their cause: then it is not repeated.
fn in_words(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Prints a message of several lines to standard error, each after `gputrail: `. Its parts that come from outside are
/// [`printable`](gputrail_record::printable) texts: ends of lines in them would begin lines that look like ours.
fn say_lines(text: &str) {
    let lines: String = printable_lines(text)
        .lines()
        .map(|line| format!("gputrail: {line}\n"))
        .collect();
    // If standard error is closed, there is no place for the message.
    let _ = io::stderr().write_all(lines.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow::anyhow!("no space")
            .context("run.pftrace: no space")
            .context("cannot write");
        assert_eq!(in_words(&error), "cannot write: run.pftrace: no space");
    }
}
