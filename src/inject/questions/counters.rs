//! `gputrail counters --agent`: what an agent of this machine counts.

use gputrail_collect::question::of_rows;
use gputrail_counters::{Architecture, describe, the_nearest};
use gputrail_sources::{cuda, opencl, rocm, sim};

/// Answers `list`, `notes`, `info` or `check` of an agent.
pub fn answer(words: &[String]) -> Result<String, String> {
    let [question, agent, names @ ..] = words else {
        return Err("the agent is missing".to_owned());
    };
    if question == "notes" {
        return Ok(notes_of_agent(agent).join("\n"));
    }
    if let Some(number) = agent.strip_prefix("rocm:") {
        return answer_of_rocm(question, number, names);
    }
    let architecture = counters_of_agent(agent)?;
    match (&**question, names) {
        ("list", _) => Ok(of_rows(describe::rows(&architecture))),
        ("info", [name]) => describe::info(&architecture, name),
        ("check", names) => describe::check(&architecture, names),
        _ => Err(format!("{question:?} is no question about an agent")),
    }
}

/// Answers `list`, `info` or `check` of a GPU of AMD's, as rocprofiler-sdk defines its counters.
fn answer_of_rocm(question: &str, number: &str, names: &[String]) -> Result<String, String> {
    let place = number.parse::<usize>();
    let place = place.map_err(|_| format!("rocm:{number}: expected a number, such as rocm:0"))?;
    let counters = rocm::counters(place)?;
    match (question, names) {
        ("list", _) => Ok(of_rows(counters.rows())),
        ("info", [name]) => counters.info(name),
        ("check", names) => counters.check(names),
        _ => Err(format!("{question:?} is no question about an agent")),
    }
}

/// The events and metrics of a device of CUDA that is too old to have those of its chip.
fn counters_of_cuda(number: &str) -> Result<Architecture, String> {
    let devices = cuda::enumerate().map_err(|error| error.to_string())?;
    let found = number.parse().ok();
    let found = found.and_then(|number: usize| Some((number, devices.get(number)?)));
    let (place, device) = found
        .ok_or_else(|| format!("there is no device cuda:{number}: `gputrail agents` lists them"))?;
    if !device.is_counted_by_events() {
        return Err(format!(
            "cuda:{number} ({}) has the metrics of its chip: `gputrail counters list --chip NAME` lists them, such as gh100",
            device.name
        ));
    }
    let counters = cuda::event_counters(place as i32, &device.name);
    counters.map_err(|reason| format!("cuda:{number} ({}): {reason}", device.name))
}

/// Sentences about counters that an agent of this machine lacks.
fn notes_of_agent(agent: &str) -> Vec<String> {
    let number = agent.parse::<usize>().ok();
    let devices = number.and_then(|_| opencl::all_devices().ok());
    match (number, devices) {
        (Some(number), Some(devices)) => devices
            .get(number)
            .map_or_else(Vec::new, |device| device.counter_notes()),
        _ => Vec::new(),
    }
}

/// The counters that an agent of this machine collects.
fn counters_of_agent(agent: &str) -> Result<Architecture, String> {
    if agent == "sim" {
        return Ok((*sim::countable().architecture).clone());
    }
    let architecture = agent.strip_prefix("sim:").and_then(sim::countable_as);
    if let Some(countable) = architecture {
        return Ok((*countable.architecture).clone());
    }
    if let Some(number) = agent.strip_prefix("cuda:") {
        return counters_of_cuda(number);
    }
    let number: usize = agent.parse().map_err(|_| {
        format!("{agent:?}: expected the number of an agent, cuda:0 or another of CUDA's, rocm:0 or another of ROCm's, sim, or sim:gfx11")
    })?;
    let devices = opencl::all_devices().map_err(|error| error.to_string())?;
    let Some(device) = devices.get(number) else {
        return Err(format!(
            "there is no agent {number}: `gputrail agents` lists them"
        ));
    };
    match device.countable() {
        Some(countable) => Ok((*countable.architecture).clone()),
        None => Err(format!(
            "agent {number} ({}) has no counters that can be collected",
            device.name
        )),
    }
}

/// Answers whether an agent of this machine counts anything of what is named; the reason why not has the nearest names. What is
/// unknown beside that is told when the program runs. Without agents all is accepted, and of devices of CUDA and of ROCm only their
/// libraries know, in the program. The simulated GPU, which a program may run, is an
/// agent whose names are never suggested.
pub fn are_known(names: &[String]) -> Result<String, String> {
    let has_cuda = cuda::enumerate().is_ok_and(|devices| !devices.is_empty());
    if has_cuda || rocm::enumerate().is_ok_and(|found| !found.devices.is_empty()) {
        return Ok(String::new());
    }
    let devices = opencl::all_devices().unwrap_or_default();
    let Some(countable) = devices.iter().find_map(|device| device.countable()) else {
        return Ok(String::new());
    };
    let simulated: Vec<_> = sim::all_countable()
        .map(|countable| countable.architecture)
        .collect();
    let has = |architecture: &Architecture, name: &str| {
        let found = architecture.find(name);
        found
            .or_else(|| architecture.find_ignoring_case(name))
            .is_some()
    };
    let of_host = &countable.architecture;
    let is_unknown =
        |name: &&String| !has(of_host, name) && !simulated.iter().any(|sim| has(sim, name));
    let unknown: Vec<String> = names
        .iter()
        .filter(is_unknown)
        .map(|name| {
            let nearest = the_nearest(&of_host.nearest(name));
            format!("no agent of this machine counts {name:?}{nearest}")
        })
        .collect();
    if unknown.len() < names.len() {
        return Ok(String::new());
    }
    Err(format!(
        "{} (`gputrail agents` lists the agents, `gputrail counters list --agent N` what one counts)",
        unknown.join("; ")
    ))
}
