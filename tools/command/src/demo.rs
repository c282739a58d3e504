//! `gputrail demo`: records a workload on the simulated GPU.

use crate::cli::Demo;
use crate::output::Output;
use crate::signals::Signals;
use crate::summary_text::Known;
use crate::trace::{self, Order};
use crate::{Failure, say, summary_text};
use anyhow::{Context, anyhow};
use gputrail::capture::Writer;
use gputrail::clock::TickSource;
use gputrail::collect::recorder::{Recorder, RecorderOptions};
use gputrail::collect::scope::{self, Scope};
use gputrail::source::sim;

/// Runs the command; the result is the exit code.
pub fn run(arguments: Demo) -> Result<u8, Failure> {
    let output = Output::named(&arguments.output)?;
    // An interruption ends the writing like an error, and leaves no file.
    let _signals = Signals::take().context("cannot take signals")?;
    let workshop = output.workshop()?;
    let path = output.path(std::process::id())?;
    let capture = workshop.path().join("demo.gputrail");
    record(&capture, &arguments)?;
    let made = Order {
        captures: std::slice::from_ref(&capture),
        output: &output,
        path: &path,
        workshop: workshop.path(),
        contents: arguments.contents,
        captures_may_go: !arguments.capture,
    }
    .make()
    .context("the trace could not be made")?;
    if arguments.capture {
        let kept = trace::keep_file(&capture, &made.path.with_extension("gputrail"))?;
        if !arguments.quiet {
            say!("capture kept in {}", kept.display());
        }
    }
    if !arguments.quiet {
        summary_text::print(&made, &Known::default());
    }
    Ok(0)
}

/// A sampling configuration of the simulated devices by another process, to try out that case: `host-trap,20us`.
const ELSEWHERE: &str = "GPUTRAIL_DEMO_SAMPLED_ELSEWHERE";

fn record(capture: &std::path::Path, arguments: &Demo) -> Result<(), Failure> {
    let options = RecorderOptions {
        ticks: TickSource::Virtual,
        scope: Scope {
            sampling: arguments.sampling(),
            ..Scope::default()
        },
        aggregate_samples: arguments.aggregate_samples,
        ..RecorderOptions::default()
    };
    let header = Recorder::file_header(options.ticks, sim::Demo::PROCESS);
    let writer = Writer::create(capture, &header)
        .with_context(|| format!("cannot write {}", capture.display()))?;
    let recorder = Recorder::start(&options, None, writer).map_err(|error| anyhow!(error))?;
    let demo = sim::Demo {
        seed: arguments.seed,
        steps: arguments.steps,
    };
    let simulation = demo.prepare(&recorder);
    if let Ok(text) = std::env::var(ELSEWHERE) {
        let request = scope::sampling(&text).with_context(|| format!("{ELSEWHERE} is wrong"))?;
        for agent in simulation.agents() {
            simulation.sampled_elsewhere(agent, Some(request));
        }
    }
    simulation.run().map_err(|error| anyhow!(error))?;
    recorder
        .finish()
        .map_err(|(error, lost)| anyhow!("{error}; {lost} records are lost"))?;
    Ok(())
}
