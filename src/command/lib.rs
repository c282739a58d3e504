//! The `gputrail` command, which records programs into Perfetto traces. `gputrail --help` starts with examples. Its own
//! messages go to standard error, each line after `gputrail: `.
//!
//! A part of gputrail, not meant for others: what is public here may change in any version.

mod advise;
mod ahead;
mod apis;
mod attach;
mod cache;
mod carried;
mod check;
mod cli;
mod contents;
mod control;
mod convert;
mod counters;
mod demo;
mod development;
mod diff;
mod early_trace;
mod failure;
mod figures;
mod first_view;
mod flame;
mod flight;
mod help;
mod hotspots;
mod html_report;
mod info;
mod input;
mod library;
mod lines;
mod link_library;
mod links;
mod markers;
mod merge;
mod messages;
mod objdump;
mod output;
mod peer;
mod private_dir;
mod probe;
mod program;
mod progress;
mod proton;
mod questions;
mod ranks;
mod record;
mod replay;
mod report;
mod signals;
mod soname;
mod stdout;
mod summary;
mod summary_text;
mod table_output;
mod tables;
mod terminal;
mod tools;
mod trace;
mod view;
mod watch;

pub use carried::{Carried, CarriedApi, CarriedLibrary};
use clap::Parser;
use cli::Command;
use failure::{FAILED, Failure, in_words};
use gputrail_record::{printable, printable_lines};
use std::io::{self, Write};
use std::process::ExitCode;

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
    gputrail_code::disassembly::link(&objdump::LLVM_OBJDUMP);
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
        Command::Attach(arguments) => attach::run(*arguments, carried),
        Command::Convert(arguments) => convert::run(arguments),
        Command::Demo(arguments) => demo::run(arguments, carried),
        Command::Agents => agents(carried),
        Command::Counters(arguments) => counters::run(&arguments, carried),
        Command::Info(arguments) => info::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Merge(arguments) => merge::run(&arguments),
        Command::View(arguments) => view::run(&arguments),
        Command::Summary(arguments) => summary::run(&arguments),
        Command::Advise(arguments) => advise::run(&arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Report(arguments) => html_report::run(&arguments),
        Command::Hotspots(arguments) => hotspots::run(&arguments),
        Command::Status(arguments) => control::run(control::Verb::Status, &arguments),
        Command::Start(arguments) => control::run(control::Verb::Start, &arguments),
        Command::Stop(arguments) => control::run(control::Verb::Stop, &arguments),
        Command::Flush(arguments) => control::run(control::Verb::Flush, &arguments),
        Command::Dump(arguments) => control::run(control::Verb::Dump, &arguments),
        Command::Help(arguments) => help::show(carried, arguments.topic.as_deref()),
        Command::Completions(arguments) => help::completions(arguments.shell),
        Command::Man(arguments) => help::man(&arguments.folder),
        Command::Probe(arguments) => probe::answer(&arguments, carried),
        Command::ProbeTool(arguments) => tools::probe_here(&arguments.library, &arguments.tool),
        Command::RunDemo(arguments) => demo::run_here(&arguments),
        Command::AttachHere(arguments) => attach::run_here(&arguments),
        Command::Library(arguments) => library::write_out(carried, &arguments)
            .map(|()| 0)
            .map_err(Failure::from),
    };
    match result {
        Ok(code) => code.into(),
        Err(failure) => {
            let words = printable(&in_words(&failure.error)).into_owned();
            messages::say_styled(&words, |_| terminal::Style::Loss);
            failure.code.into()
        }
    }
}
