//! `gputrail summary` of profiles of Triton's Proton: trees of sums without times.

use crate::cli::summary::Summary as Arguments;
use crate::failure::{DAMAGED, Failure};
use crate::flame::{self, FlameUnit};
use crate::messages::say;
use crate::summary::columns::{COUNT, NAME, SHARE, TOTAL, column, share};
use crate::tables::{Cell, Column, Table};
use anyhow::anyhow;
use gputrail_analysis::stacks::StackTree;
use gputrail_convert::import::ProtonTree;
use gputrail_record::Nanos;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Scopes with a smaller share of the time are not in the table of scopes.
const LEAST_SHARE: f64 = 0.001;

/// The profiles of files; none if no file is one.
pub fn open(files: &[PathBuf]) -> Result<Option<Vec<ProtonTree>>, Failure> {
    let mut trees = Vec::new();
    let mut other: Option<&Path> = None;
    for path in files.iter().filter(|path| path.is_file()) {
        let tree = ProtonTree::open(path)
            .map_err(|error| anyhow!("cannot read {}: {error}", path.display()))?;
        match tree {
            Some(tree) => trees.push(tree),
            None => other = Some(path),
        }
    }
    match (trees.len(), other) {
        (0, _) => Ok(None),
        (count, None) if count == files.len() => Ok(Some(trees)),
        (_, other) => {
            let other = other.unwrap_or(Path::new("a folder")).display();
            let text = format!(
                "profiles of Triton's Proton cannot be combined with other inputs ({other})"
            );
            Err(anyhow!(text).into())
        }
    }
}

/// Prints profiles; the result is the exit code.
pub fn print(trees: &[ProtonTree], arguments: &Arguments) -> Result<u8, Failure> {
    let findings = trees.iter().flat_map(|tree| &tree.findings);
    let mut exit = 0;
    for finding in findings {
        say!("{finding}");
        exit = DAMAGED;
    }
    if let Some(format) = arguments.flame {
        let output = arguments.tables.output.as_deref();
        flame::print(&stacks(trees), (format, FlameUnit::DeviceTime), output)?;
    } else {
        arguments.tables.print(vec![
            kernels(trees),
            scopes(trees),
            metrics(trees),
            devices(trees),
        ])?;
    }
    Ok(exit)
}

fn total(trees: &[ProtonTree]) -> u64 {
    let nodes = trees.iter().flat_map(|tree| &tree.nodes);
    nodes.map(|node| node.time).fold(0, u64::saturating_add)
}

/// Nodes that ran on a device, by name and device.
fn kernels(trees: &[ProtonTree]) -> Table {
    let mut sums: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    for node in trees.iter().flat_map(|tree| &tree.nodes) {
        if node.time > 0 || node.count > 0 {
            let (count, time) = sums.entry((&node.name, &node.device)).or_default();
            *count = count.saturating_add(node.count);
            *time = time.saturating_add(node.time);
        }
    }
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by_key(|((name, device), (_, time))| (u64::MAX - time, *name, *device));
    let all = total(trees);
    let row = |((name, device), (count, time)): ((&str, &str), (u64, u64))| {
        vec![
            Cell::Text(name.to_owned()),
            Cell::Text(device.to_owned()),
            Cell::Count(count),
            Cell::Time(Nanos(time)),
            share(time, all),
            match time.checked_div(count) {
                Some(average) => Cell::Time(Nanos(average)),
                None => Cell::Nothing,
            },
        ]
    };
    Table {
        name: column("Kernels", "kernels"),
        columns: vec![
            NAME,
            column("Device", "device"),
            COUNT,
            TOTAL,
            SHARE,
            column("Average", "average_ns"),
        ],
        rows: rows.into_iter().map(row).collect(),
    }
}

/// Scopes and kernels as they stand in the tree.
fn scopes(trees: &[ProtonTree]) -> Table {
    let all = total(trees);
    let mut rows = Vec::new();
    for tree in trees {
        for (place, time) in tree.inclusive().into_iter().enumerate() {
            if time == 0 || (time as f64) < LEAST_SHARE * all as f64 {
                continue;
            }
            let node = &tree.nodes[place];
            rows.push(vec![
                Cell::Text(path_of(tree, place)),
                Cell::Count(node.count),
                Cell::Time(Nanos(time)),
                share(time, all),
                Cell::Time(Nanos(node.time)),
            ]);
        }
    }
    const OWN: Column = column("Own", "own_ns");
    Table {
        name: column("Scopes, with all in them", "scopes"),
        columns: vec![NAME, COUNT, TOTAL, SHARE, OWN],
        rows,
    }
}

/// The names from the outermost scope to a node.
fn path_of(tree: &ProtonTree, place: usize) -> String {
    let stack = tree.stack(place);
    let names: Vec<&str> = stack
        .iter()
        .map(|place| &*tree.nodes[*place].name)
        .collect();
    names.join(" > ")
}

/// Metrics of the program and of sampling, by kernel.
fn metrics(trees: &[ProtonTree]) -> Table {
    let mut sums: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    let mut texts = Vec::new();
    for node in trees.iter().flat_map(|tree| &tree.nodes) {
        for (metric, value) in &node.metrics {
            match value.parse::<f64>() {
                Ok(0.0) => {}
                Ok(number) => *sums.entry((&node.name, metric)).or_default() += number,
                Err(_) => texts.push((&*node.name, &**metric, Cell::Text(value.clone()))),
            }
        }
    }
    let sums = sums.into_iter();
    let sums = sums.map(|((name, metric), value)| (name, metric, Cell::Number(value)));
    let row = |(name, metric, value): (&str, &str, Cell)| {
        vec![
            Cell::Text(name.to_owned()),
            Cell::Text(metric.to_owned()),
            value,
        ]
    };
    Table {
        name: column("Metrics", "metrics"),
        columns: vec![NAME, column("Metric", "metric"), column("Sum", "sum")],
        rows: sums.chain(texts).map(row).collect(),
    }
}

fn devices(trees: &[ProtonTree]) -> Table {
    let rows = trees.iter().flat_map(|tree| &tree.devices);
    let row = |(name, properties): &(String, String)| {
        vec![Cell::Text(name.clone()), Cell::Text(properties.clone())]
    };
    Table {
        name: column("Devices", "devices"),
        columns: vec![NAME, column("Properties", "properties")],
        rows: rows.map(row).collect(),
    }
}

/// The stacks of nodes with a time of their own, and the time in ns.
fn stacks(trees: &[ProtonTree]) -> StackTree {
    let mut stacks = StackTree::default();
    for tree in trees {
        for (place, node) in tree.nodes.iter().enumerate() {
            if node.time > 0 {
                let frames = tree.stack(place);
                let names = frames.iter().map(|frame| &*tree.nodes[*frame].name);
                stacks.add(names, node.time);
            }
        }
    }
    stacks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_and_tables_are_those_of_the_tree() {
        let text = r#"[{"frame":{"name":"ROOT"},"metrics":{},"children":[
            {"frame":{"name":"a;b"},"metrics":{},"children":[
                {"frame":{"name":"k"},"metrics":{"count":2,"time (ns)":30,"flops":5},"children":[]}]},
            {"frame":{"name":"k"},"metrics":{"count":1,"time (ns)":10,"flops":1},"children":[]}]}]"#;
        let tree = ProtonTree::parse(Path::new("x"), text.as_bytes());
        assert_eq!(tree.findings, []);
        let trees = [tree];
        let stacks = stacks(&trees);
        let names = |frames: &[u32]| -> Vec<&str> {
            let names = frames.iter().map(|frame| &*stacks.names()[*frame as usize]);
            names.collect()
        };
        let lines: Vec<_> = stacks.stacks().collect();
        assert_eq!(lines.len(), 2);
        assert_eq!((names(&lines[0].0), lines[0].2), (vec!["a;b", "k"], 30));
        assert_eq!((names(&lines[1].0), lines[1].2), (vec!["k"], 10));
        let [rows, in_scopes, sums] = [kernels(&trees), scopes(&trees), metrics(&trees)];
        assert_eq!(rows.rows.len(), 1);
        assert_eq!(rows.rows[0][2..4], [Cell::Count(3), Cell::Time(Nanos(40))]);
        assert_eq!(in_scopes.rows[2][0], Cell::Text("a;b > k".to_owned()));
        assert_eq!(sums.rows[0][2], Cell::Number(6.0));
    }
}
