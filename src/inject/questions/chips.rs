//! `gputrail counters --chip`: what NVIDIA's chips can count, as NVIDIA's library tells it.

use gputrail_collect::question::of_rows;
use gputrail_counters::describe::{passes_of_a_kernel, together};
use gputrail_sources::cuda::metrics::{Chip, Metric, MetricError, MetricLibrary};
use std::fmt::Write;

/// Answers `list`, `info` or `check` of a chip.
pub fn answer(words: &[String]) -> Result<String, String> {
    let [question, chip, names @ ..] = words else {
        return Err("the chip is missing".to_owned());
    };
    let answer = match (&**question, names) {
        ("list", _) => list(chip),
        ("info", [name]) => info(chip, name),
        ("check", names) => check(chip, names),
        _ => return Err(format!("{question:?} is no question about a chip")),
    };
    answer.map_err(|error| error.to_string())
}

/// The metrics of a chip: name, kind, hardware, unit, description.
fn list(chip: &str) -> Result<String, MetricError> {
    let library = MetricLibrary::open()?;
    let chip = library.chip(chip)?;
    let row = |metric: &Metric| {
        let properties = chip.properties(metric)?;
        Ok([
            metric.name.clone(),
            metric.kind.to_string(),
            properties.hardware,
            properties.unit,
            properties.description,
        ])
    };
    let found: Result<Vec<_>, MetricError> = chip.metrics().iter().map(row).collect();
    found.map(of_rows)
}

/// A metric: what it is, its forms, and the passes that it takes.
fn info(chip: &str, name: &str) -> Result<String, MetricError> {
    let library = MetricLibrary::open()?;
    let chip = library.chip(chip)?;
    let metric = chip.find(name)?;
    let properties = chip.properties(metric)?;
    let mut text = format!("{}\n  {}\n", metric.name, properties.description);
    let _ = writeln!(text, "  a {} of {}", metric.kind, chip.name);
    for (title, value) in [
        ("hardware", &properties.hardware),
        ("unit", &properties.unit),
    ] {
        if !value.is_empty() {
            let _ = writeln!(text, "  {title}: {value}");
        }
    }
    if metric.name != name {
        let _ = writeln!(text, "  {name}: in {}", chip.unit(name)?);
    }
    if !properties.parts.is_empty() {
        let _ = writeln!(text, "  the largest of:");
        for part in &properties.parts {
            let _ = writeln!(text, "    {part}");
        }
    }
    let _ = writeln!(text, "  passes: {}", chip.passes(&[name])?);
    let _ = writeln!(text, "  forms:");
    for form in chip.forms(metric.kind)? {
        // Not every metric has every form of its kind.
        if chip.passes(&[&format!("{}{form}", metric.name)]).is_ok() {
            let _ = writeln!(text, "    {form}");
        }
    }
    Ok(text)
}

/// The passes that metrics need together, and which of them fit one pass.
fn check(chip: &str, names: &[String]) -> Result<String, MetricError> {
    let library = MetricLibrary::open()?;
    let chip = library.chip(chip)?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let passes = chip.passes(&names)?;
    let mut text = passes_of_a_kernel(passes);
    for name in &names {
        let _ = match chip.passes(&[name])? {
            1 => writeln!(text, "  {name}: 1 alone"),
            passes => writeln!(text, "  {name}: {passes} alone"),
        };
    }
    if passes > 1 {
        text += &together(&names, &mut |chosen| fit(&chip, chosen))?;
    }
    Ok(text)
}

/// Whether metrics are counted in one pass.
fn fit(chip: &Chip<'_>, names: &[&str]) -> Result<bool, MetricError> {
    Ok(chip.passes(names)? <= 1)
}
