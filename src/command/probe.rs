//! Checks before the program starts whether what is requested of agents is possible: the sampling of `--pc-sampling`, the counters
//! of `--counters`. An impossible request is refused with the possible ones. The library asks the agents in a process of its
//! own: a driver may crash there.

use crate::carried::Carried;
use crate::cli::Probe;
use crate::failure::Failure;
use crate::messages::say;
use crate::{questions, stdout};
use anyhow::{Context, anyhow};
use gputrail_collect::question::{COUNTING, SAMPLING};
use gputrail_collect::sampling::SampleSource;
use gputrail_collect::scope::Scope;
use std::process::{Command, Stdio};

/// Checks whether agents may do the sampling and the counting in `scope`. If there are no agents, they are accepted, too.
pub fn probe(scope: &Scope, source: SampleSource) -> Result<(), Failure> {
    if let Some(request) = scope.sampling {
        let method = request.method.name().unwrap_or_default();
        let unit = request.unit.name().unwrap_or_default();
        let request = format!("{method},{}{unit}", request.interval);
        ask(&[SAMPLING, &request], source)?;
    }
    if let Some(choice) = &scope.counters {
        let names = choice.names.iter().map(String::as_str);
        let words: Vec<&str> = [COUNTING].into_iter().chain(names).collect();
        ask(&words, source)?;
    }
    Ok(())
}

/// Asks the library in another process. What may hinder a request that is possible is said.
fn ask(words: &[&str], source: SampleSource) -> Result<(), Failure> {
    let ourselves = std::env::current_exe().context("cannot find this command again")?;
    let output = Command::new(ourselves)
        .arg("probe")
        .arg("--")
        .args(words)
        .envs(variable(source))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .context("cannot ask what the agents offer")?;
    match output.status.code() {
        Some(code) if code == i32::from(REFUSED) => {
            let why = String::from_utf8_lossy(&output.stdout);
            Err(Failure::from(anyhow!("{}", why.trim_end())))
        }
        Some(0) if !output.stdout.is_empty() => {
            say!("{}", String::from_utf8_lossy(&output.stdout).trim_end());
            Ok(())
        }
        // A driver that crashes in that process is no reason to refuse.
        _ => Ok(()),
    }
}

/// The environment variable and value that select the source of samples in the program.
pub fn variable(source: SampleSource) -> Option<(&'static str, &'static str)> {
    (source == SampleSource::Timers).then_some((SampleSource::VARIABLE, SampleSource::TIMER))
}

/// The exit code of a refusal.
const REFUSED: u8 = 3;

/// `gputrail probe`: the result is the exit code. The reason of a refusal goes to standard output, and what may hinder a request
/// that is not refused.
pub fn answer(arguments: &Probe, carried: Carried) -> Result<u8, Failure> {
    match questions::ask(carried, &arguments.words) {
        Ok(text) => stdout::print(&text).map(|()| 0),
        Err(reason) => stdout::print(&format!("{reason}\n")).map(|()| REFUSED),
    }
}
