//! Stacks with values as files of other programs: folded lines (flamegraph.pl, inferno), speedscope, and pprof.

mod pprof;

use crate::failure::Failure;
use crate::stdout;
use anyhow::{Context, anyhow};
use clap::ValueEnum;
use gputrail_analysis::stacks::StackTree;
use gputrail_record::printable;
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::path::Path;

/// A format of stacks.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum FlameFormat {
    /// A line for each stack: its frames between semicolons, and its nanoseconds or samples
    Folded,
    /// JSON for speedscope.app
    Speedscope,
    /// For `go tool pprof` and its relatives, packed with gzip
    Pprof,
}

/// The unit of the values of stacks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum FlameUnit {
    /// Device time, ns.
    DeviceTime,
    /// Samples of the program counter.
    Samples,
}

impl FlameUnit {
    fn name(self) -> &'static str {
        match self {
            FlameUnit::DeviceTime => "device time",
            FlameUnit::Samples => "samples",
        }
    }
}

/// Writes stacks to a file or to standard output.
pub fn print(
    tree: &StackTree,
    (format, unit): (FlameFormat, FlameUnit),
    output: Option<&Path>,
) -> Result<(), Failure> {
    let bytes = match format {
        FlameFormat::Folded => folded(tree).into_bytes(),
        FlameFormat::Speedscope => speedscope(tree, unit).into_bytes(),
        FlameFormat::Pprof => pprof::packed(tree, unit)?,
    };
    match output {
        Some(path) => {
            let written = std::fs::write(path, bytes);
            written.with_context(|| format!("cannot write {}", path.display()))?;
            Ok(())
        }
        None if format == FlameFormat::Pprof => {
            let mut out = std::io::stdout();
            if out.is_terminal() {
                return Err(anyhow!("pprof is no text: name a file with -o").into());
            }
            out.write_all(&bytes).context("standard output")?;
            Ok(())
        }
        None => {
            let text = String::from_utf8_lossy(&bytes);
            match format {
                FlameFormat::Speedscope => stdout::print_json(&text),
                _ => stdout::print(&text),
            }
        }
    }
}

fn folded(tree: &StackTree) -> String {
    let names = tree.names().iter();
    // Semicolons separate frames, and line ends stacks.
    let names: Vec<String> = names
        .map(|name| printable(name).replace(';', ":").replace(['\n', '\r'], " "))
        .collect();
    let line = |(frames, _, value): (Vec<u32>, u64, u64)| {
        let frames = frames.iter().map(|frame| &*names[*frame as usize]);
        format!("{} {value}\n", frames.collect::<Vec<_>>().join(";"))
    };
    tree.stacks().map(line).collect()
}

fn speedscope(tree: &StackTree, unit: FlameUnit) -> String {
    let (mut samples, mut weights, mut end) = (Vec::new(), Vec::new(), 0_u64);
    for (frames, _, value) in tree.stacks() {
        samples.push(frames);
        weights.push(value);
        end = end.saturating_add(value);
    }
    let frames: Vec<_> = tree
        .names()
        .iter()
        .map(|name| json!({ "name": name }))
        .collect();
    let file = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": concat!("gputrail ", env!("CARGO_PKG_VERSION")),
        "shared": { "frames": frames },
        "profiles": [{
            "type": "sampled",
            "name": unit.name(),
            "unit": match unit {
                FlameUnit::DeviceTime => "nanoseconds",
                FlameUnit::Samples => "none",
            },
            "startValue": 0,
            "endValue": end,
            "samples": samples,
            "weights": weights,
        }],
    });
    file.to_string() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn tree() -> StackTree {
        let mut tree = StackTree::default();
        tree.add(["rank 0", "step;1", "gemm"].into_iter(), 10);
        tree.add(["rank 0", "gemm"].into_iter(), 5);
        tree
    }

    #[test]
    fn folded_lines_have_no_semicolon_in_a_frame() {
        assert_eq!(folded(&tree()), "rank 0;step:1;gemm 10\nrank 0;gemm 5\n");
    }

    #[test]
    fn speedscope_has_frames_samples_and_weights() {
        let value: serde_json::Value =
            serde_json::from_str(&speedscope(&tree(), FlameUnit::DeviceTime)).unwrap();
        let profile = &value["profiles"][0];
        assert_eq!(profile["samples"], json!([[0, 1, 2], [0, 2]]));
        assert_eq!(profile["weights"], json!([10, 5]));
        assert_eq!(profile["endValue"], 15);
        assert_eq!(value["shared"]["frames"][2]["name"], "gemm");
    }
}
