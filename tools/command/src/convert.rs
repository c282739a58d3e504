//! `gputrail convert`: makes a trace from captures.

use crate::cli::Convert;
use crate::output::Output;
use crate::signals::Signals;
use crate::summary_text::Known;
use crate::trace::Order;
use crate::{Failure, say, summary_text};
use anyhow::{Context, anyhow};
use gputrail::capture::Reader;

/// Runs the command; the result is the exit code.
pub fn run(arguments: Convert) -> Result<u8, Failure> {
    // A user who names captures wants all of them: if one cannot be read, nothing is written.
    let mut incomplete = false;
    for capture in &arguments.captures {
        let reader = Reader::open(capture).map_err(|error| anyhow!(error))?;
        if !reader.ended() {
            incomplete = true;
            say!(
                "{}: cut: its process did not end the recording itself",
                capture.display()
            );
        }
    }
    let output = match &arguments.output {
        Some(name) => Output::named(name)?,
        None => Output::beside(&arguments.captures[0])?,
    };
    // An interruption ends the writing like an error, and leaves no file.
    let _signals = Signals::take().context("cannot take signals")?;
    let workshop = output.workshop()?;
    let path = output.path(std::process::id())?;
    let made = Order {
        captures: &arguments.captures,
        output: &output,
        path: &path,
        workshop: workshop.path(),
        contents: arguments.contents,
        captures_may_go: false,
    }
    .make()
    .context("the trace could not be made")?;
    if !arguments.quiet {
        summary_text::print(
            &made,
            &Known {
                unseen: None,
                incomplete,
            },
        );
    }
    Ok(0)
}
