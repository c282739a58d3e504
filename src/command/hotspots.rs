//! `gputrail hotspots`: prints where kernels spend their time.

mod csv;
mod json;
mod table;

use crate::cli::contents::Contents;
use crate::cli::{Hotspots as Arguments, HotspotsFormat};
use crate::failure::Failure;
use crate::figures::count;
use crate::flame::{self, FlameFormat, FlameUnit};
use crate::messages::say;
use crate::terminal::has_colours;
use crate::{input, stdout};
use anyhow::anyhow;
use gputrail_analysis::hotspots::{HotspotAnalysis, HotspotReport, KernelHotspots};
use gputrail_analysis::stacks::StackTree;
use wildmatch::WildMatch;

const NO_SAMPLES: &str = "no samples of the program counter. `gputrail record --pc-sampling` takes them, and so does \
    rocprofv3 with its PC sampling. If sampling was on, no kernel ran longer than the interval, or `gputrail info` has \
    a note that says why";

/// Runs the command; the result is the exit code.
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    if arguments.format == HotspotsFormat::Csv {
        return csv::run(arguments);
    }
    let mut hotspots = HotspotAnalysis::default();
    let problems = input::read(&arguments.files, Contents::default(), &mut hotspots)?;
    for problem in &problems {
        say!("{problem}");
    }
    let report = hotspots.report();
    if report.left_out > 0 {
        let entries = count(report.left_out, "entry");
        say!("{entries} left out to bound memory");
    }
    let wanted = wanted(&report, arguments)?;
    match arguments.format {
        HotspotsFormat::Json => stdout::print_json(&json::write(&report, &wanted))?,
        HotspotsFormat::Folded => print_stacks(&wanted, FlameFormat::Folded)?,
        HotspotsFormat::Speedscope => print_stacks(&wanted, FlameFormat::Speedscope)?,
        HotspotsFormat::Pprof => print_stacks(&wanted, FlameFormat::Pprof)?,
        HotspotsFormat::Table | HotspotsFormat::Csv => {
            let colours = has_colours(&std::io::stdout());
            let text = table::write(&report, &wanted, arguments.kernel.is_some(), colours);
            stdout::print_painted(&text)?;
        }
    }
    Ok(0)
}

/// Prints the samples as stacks: kernel, functions from the outermost on, instruction.
fn print_stacks(kernels: &[&KernelHotspots], format: FlameFormat) -> Result<(), Failure> {
    let mut tree = StackTree::default();
    for kernel in kernels {
        for instruction in &kernel.instructions {
            let frames = instruction.frames.iter().rev();
            let frames = frames.map(|(function, file, line)| match file.is_empty() {
                true => function.clone(),
                false => format!("{function} ({file}:{line})"),
            });
            let last = match instruction.text.is_empty() {
                true => format!("+{:#x}", instruction.offset),
                false => format!("+{:#x} {}", instruction.offset, instruction.text),
            };
            let stack: Vec<String> = std::iter::once(kernel.name.clone())
                .chain(frames)
                .chain([last])
                .collect();
            let samples = instruction.tally.samples;
            if samples > 0 {
                tree.add(stack.iter().map(String::as_str), samples);
            }
        }
    }
    flame::print(&tree, (format, FlameUnit::Samples), None)
}

/// Why there are no samples, as far as the recording says it.
fn no_samples(report: &HotspotReport) -> String {
    let notes = report.missing.iter();
    notes.fold(NO_SAMPLES.to_owned(), |text, note| {
        format!("{text}; records missing: {note}")
    })
}

/// The kernels that `arguments` select.
fn wanted<'r>(
    report: &'r HotspotReport,
    arguments: &Arguments,
) -> Result<Vec<&'r KernelHotspots>, Failure> {
    let files = arguments.files.iter();
    let files = files.map(|file| file.display().to_string());
    let files = files.collect::<Vec<_>>().join(", ");
    if report.kernels.is_empty() {
        return Err(anyhow!("{files}: {}", no_samples(report)).into());
    }
    let Some(name) = &arguments.kernel else {
        return Ok(report.kernels.iter().collect());
    };
    let pattern = WildMatch::new(name);
    let kernels = report.kernels.iter();
    let wanted: Vec<_> = kernels
        .filter(|kernel| pattern.matches(&kernel.name))
        .collect();
    if wanted.is_empty() {
        let names: Vec<_> = report
            .kernels
            .iter()
            .take(10)
            .map(|kernel| &kernel.name[..])
            .collect();
        return Err(anyhow!(
            "{files}: no samples of a kernel {name}; there are samples of {}",
            names.join(", ")
        )
        .into());
    }
    Ok(wanted)
}
