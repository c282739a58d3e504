//! Checks before the program starts whether the sampling that `record --pc-sampling` requests is possible, so that an
//! impossible request is refused with the possible ones. The library asks the agents in a process of its own: a driver may
//! crash there.

use crate::carried::Carried;
use crate::cli::ProbeSampling;
use crate::failure::Failure;
use crate::messages::say;
use crate::{questions, stdout};
use anyhow::{Context, anyhow};
use gputrail_collect::question::SAMPLING;
use gputrail_collect::sampling::SampleSource;
use gputrail_collect::scope::Scope;
use std::process::{Command, Stdio};

/// Checks whether an agent may do the sampling in `scope`, by asking in another process. If there are no agents, the request
/// is accepted, too.
pub fn probe(scope: &Scope, source: SampleSource) -> Result<(), Failure> {
    let Some(request) = scope.sampling else {
        return Ok(());
    };
    let method = request.method.name().unwrap_or_default();
    let unit = request.unit.name().unwrap_or_default();
    let ourselves = std::env::current_exe().context("cannot find this command again")?;
    let output = Command::new(ourselves)
        .arg("probe-sampling")
        .arg(format!("{method},{}{unit}", request.interval))
        .envs(variable(source))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .context("cannot query the sampling configurations of the agents")?;
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

/// `gputrail probe-sampling`: the result is the exit code. The reason of a refusal goes to standard output, and what may
/// hinder the sampling that is not refused.
pub fn answer(arguments: &ProbeSampling, carried: Carried) -> Result<u8, Failure> {
    match questions::ask(carried, &[SAMPLING, &arguments.request]) {
        Ok(text) => stdout::print(&text).map(|()| 0),
        Err(reason) => stdout::print(&format!("{reason}\n")).map(|()| REFUSED),
    }
}
