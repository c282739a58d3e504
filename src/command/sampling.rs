//! Checks before the program starts whether the sampling that `record --pc-sampling` requests is possible, so that an
//! impossible request is refused with the possible ones. The agents are queried in a process of its own, and only if
//! necessary: the query loads the drivers, which costs more than sampling a short program.

use crate::{Failure, say};
use anyhow::{Context, anyhow};
use gputrail_collect::sampling::Possible;
use gputrail_collect::scope::Scope;
use gputrail_interface::sampling::Request;
use gputrail_sources::cuda::{self, CuptiError};
use gputrail_sources::opencl;
use gputrail_sources::perf::SampleSource;
use std::process::{Command, Stdio};

/// Checks whether an agent may do the sampling in `scope`. The sampling of host processors needs only permission from
/// the system; whether there is such a device, the program will see. For all other requests another process queries the
/// agents. If it finds no agents, the request is accepted, too.
pub fn probe(scope: &Scope, source: SampleSource) -> Result<(), Failure> {
    let Some(request) = scope.sampling else {
        return Ok(());
    };
    if source.possible().iter().any(|one| one.allows(&request)) {
        return source
            .permitted(request.interval)
            .map_err(|why| Failure::from(anyhow!("PC sampling is not possible: {why}")));
    }
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
pub fn answer(request: &Request) -> Result<u8, Failure> {
    let opencl = opencl::all_devices().unwrap_or_default();
    let opencl = opencl.iter().map(|of| (of.name.clone(), of.sampling()));
    let cuda = cuda::enumerate();
    let hindered = match &cuda {
        Ok(devices) if devices.is_empty() => None,
        Ok(_) => cuda::locate().err(),
        Err(_) => None,
    };
    // A program may bring a libcupti that is not found here; none replaces one that the user has named.
    let is_final = matches!(&hindered, Some(error) if *error != CuptiError::NoLibrary);
    let without_driver = cuda.as_ref().err().map(ToString::to_string);
    let cuda = cuda.unwrap_or_default();
    let of_cuda = cuda.iter().map(|of| {
        if is_final {
            (of.name.clone(), Vec::new())
        } else {
            (of.name.clone(), of.sampling())
        }
    });
    let devices: Vec<_> = opencl.chain(of_cuda).collect();
    if devices.is_empty() {
        return Ok(0);
    }
    let mut can = false;
    let mut list = Vec::new();
    for (number, (name, possible)) in devices.into_iter().enumerate() {
        can |= possible.iter().any(|one| one.allows(request));
        let possible = Possible(possible);
        list.push(format!("agent {number} ({name}): {possible}"));
    }
    let hindered = hindered.map(|error| error.to_string());
    for why in without_driver.iter().chain(&hindered) {
        list.push(format!("CUDA: {why}"));
    }
    if !can {
        crate::stdout::print(&format!(
            "no agent offers PC sampling {request}; available configurations: {}\n",
            list.join("; ")
        ))?;
        return Ok(REFUSED);
    }
    let by_cuda = cuda.iter().flat_map(cuda::Device::sampling);
    if let Some(why) = hindered
        && by_cuda.into_iter().any(|one| one.allows(request))
    {
        crate::stdout::print(&format!(
            "CUDA is not sampled unless the program brings a libcupti: {why}\n"
        ))?;
    }
    Ok(0)
}
