//! `gputrail demo`: the workload of the simulated GPU, recorded into a file.

use gputrail_buffer::clock::TickSource;
use gputrail_capture::Writer;
use gputrail_collect::recorder::{Recorder, RecorderOptions};
use gputrail_collect::scope::{self, Scope};
use gputrail_record::count;
use gputrail_sources::sim;
use std::ffi::OsStr;
use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

/// A sampling configuration of the simulated devices by another process, to try out that case: `host-trap,20us`.
const ELSEWHERE: &str = "GPUTRAIL_DEMO_SAMPLED_ELSEWHERE";

/// The run that the words ask for.
#[derive(Default)]
struct WantedDemo<'a> {
    demo: sim::TrainingRun,
    second_device: Option<&'a str>,
    time_slice: Option<Duration>,
    aggregate_samples: bool,
}

impl<'a> WantedDemo<'a> {
    fn of(words: &'a [&'a OsStr]) -> Option<WantedDemo<'a>> {
        let mut wanted = WantedDemo::default();
        for word in words {
            let word = word.to_str()?;
            match word.split_once('=').unwrap_or((word, "")) {
                ("seed", number) => wanted.demo.seed = number.parse().ok()?,
                ("steps", number) => wanted.demo.steps = number.parse().ok()?,
                ("second-device", name) => wanted.second_device = Some(name),
                ("time-slice", nanos) => {
                    wanted.time_slice = Some(Duration::from_nanos(nanos.parse().ok()?));
                }
                ("aggregate-samples", _) => wanted.aggregate_samples = true,
                _ => return None,
            }
        }
        Some(wanted)
    }
}

/// Runs the workload in virtual time. The words are the capture to write, the scope, and how to run it.
pub fn answer(words: &[&OsStr]) -> Result<String, String> {
    let [capture, scope, how @ ..] = words else {
        return Err("the capture and the scope are missing".to_owned());
    };
    let scope = Scope::parse(&scope.to_string_lossy()).map_err(text)?;
    let wanted =
        WantedDemo::of(how).ok_or_else(|| format!("{how:?} is not how to run the demo"))?;
    let options = RecorderOptions {
        ticks: TickSource::Virtual,
        scope,
        aggregate_samples: wanted.aggregate_samples,
        ..RecorderOptions::default()
    };
    let capture = Path::new(capture);
    let header = Recorder::file_header(options.ticks, sim::TrainingRun::PROCESS);
    let writer = Writer::create(capture, &header)
        .map_err(|error| format!("cannot write {}: {error}", capture.display()))?;
    let recorder = Recorder::start(&options, None, writer).map_err(text)?;
    let simulation = wanted.demo.prepare(&recorder);
    recorder.open_gate();
    if let Ok(request) = std::env::var(ELSEWHERE) {
        let request =
            scope::sampling(&request).map_err(|error| format!("{ELSEWHERE} is wrong: {error}"))?;
        for agent in simulation.agents() {
            simulation.sampled_elsewhere(agent, Some(request));
        }
    }
    if let (Some(agent), Some(name)) = (simulation.agents().get(1), wanted.second_device)
        && !simulation.counts_as(*agent, name)
    {
        return Err(format!("there is no architecture {name}"));
    }
    if let Some(slice) = wanted.time_slice {
        simulation.time_slice(slice);
    }
    simulation.run().map_err(text)?;
    recorder
        .finish()
        .map_err(|(error, lost)| format!("{error}; lost: {}", count(lost, "record")))?;
    Ok(String::new())
}

fn text(error: impl Display) -> String {
    error.to_string()
}
