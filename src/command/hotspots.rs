//! `gputrail hotspots`: prints where kernels spend their time.

mod csv;
mod json;
mod table;

use crate::cli::contents::Contents;
use crate::cli::{Hotspots as Arguments, HotspotsFormat};
use crate::failure::Failure;
use crate::figures::count;
use crate::messages::say;
use crate::terminal::has_colours;
use crate::{input, stdout};
use anyhow::anyhow;
use gputrail_analysis::hotspots::{HotspotAnalysis, HotspotReport, KernelHotspots};
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
        _ => {
            let colours = has_colours(&std::io::stdout());
            let text = table::write(&report, &wanted, arguments.kernel.is_some(), colours);
            stdout::print_painted(&text)?;
        }
    }
    Ok(0)
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
