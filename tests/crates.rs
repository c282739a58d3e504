//! Dependencies of the crates, which are cut along the boundary of the process.

use std::collections::BTreeSet;
use std::process::Command;

use gputrail_harness::repository;

/// The crates of this project that are compiled for `package`, without what only its build or its tests need.
fn compiled_for(package: &str) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(repository("."));
    cargo.args(["tree", "--locked", "--package", package]);
    cargo.args(["--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    let output = cargo.output().expect("cargo can be started");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let tree = String::from_utf8_lossy(&output.stdout);
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    let ours = names.filter(|name| name.starts_with("gputrail"));
    ours.map(str::to_owned).collect()
}

#[test]
fn a_tool_compiles_records_blocks_and_the_interface_of_the_library() {
    let needed = ["buffer", "interface", "record", "tool"].map(|name| format!("gputrail-{name}"));
    assert_eq!(compiled_for("gputrail-tool"), BTreeSet::from(needed));
}

#[test]
fn the_command_links_no_source_of_events() {
    let linked = compiled_for("gputrail");
    assert!(linked.contains("gputrail-command"), "{linked:?}");
    for observing in ["inject", "sources"] {
        let name = format!("gputrail-{observing}");
        assert!(!linked.contains(&name), "{name} is in {linked:?}");
    }
}
