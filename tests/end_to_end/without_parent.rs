//! Recording by environment variables alone, without `gputrail record` as the parent of the program.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::{Ended, run};

use crate::command::{TestDir, kernels, well};

/// Runs a program with the injected library and these variables.
fn run_with(dir: &TestDir, variables: &[(&str, &str)], arguments: &[&str]) -> Ended {
    let lives = dir.program("lives");
    let library = dir.join("libgputrail.so");
    well(&mut dir.gputrail(["library", library.to_str().expect("UTF-8")]));
    let mut command: Command = dir.untraced(Driver::Threaded, &lives, arguments);
    command
        .env("OPENCL_LAYERS", &library)
        .envs(variables.iter().copied());
    run(&mut command)
}

#[test]
fn variables_alone_record_to_a_capture() {
    needs!(variables_alone_record_to_a_capture: Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let ended = run_with(
        &dir,
        &[
            ("GPUTRAIL_CAPTURE", "rank-%q{RANK}.gputrail"),
            ("RANK", "3"),
        ],
        &["40", "exit", "6"],
    );
    assert_eq!(ended.code(), 6, "{}", ended.stderr);
    assert_eq!(dir.files(".gputrail"), ["rank-3.gputrail"]);
    well(&mut dir.gputrail(["convert", "rank-3.gputrail", "-o", "run.pftrace"]));
    let mut trace = dir.trace();
    trace.assert_sound();
    assert_eq!(kernels(&mut trace, "work"), 40);
}

#[test]
fn a_program_with_more_rights_than_its_user_follows_no_variables() {
    needs!(a_program_with_more_rights_than_its_user_follows_no_variables: Need::Root, Need::Pocl, Need::OpenClToolchain);
    const NOBODY: u32 = 65534;
    let dir = TestDir::new();
    let library = dir.join("libgputrail.so");
    well(&mut dir.gputrail(["library", library.to_str().expect("UTF-8")]));
    let program = dir.program("small_stack");
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).expect("it is ours");
    for (mode, captures) in [(0o755, 1), (0o4755, 0)] {
        std::fs::set_permissions(&program, PermissionsExt::from_mode(mode)).expect("it is ours");
        let mut command: Command = dir.untraced(Driver::Threaded, &program, &[]);
        command
            .env("OPENCL_LAYERS", &library)
            .env("GPUTRAIL_CAPTURE", "%p.gputrail")
            .env("GPUTRAIL_TOOLS", dir.join("no-such-tool.so"))
            .env("POCL_CACHE_DIR", dir.join("kernels"))
            .uid(NOBODY)
            .gid(NOBODY);
        let ended = run(&mut command).well();
        assert_eq!(dir.files(".gputrail").len(), captures, "{}", ended.stderr);
        assert_eq!(
            ended.stderr.contains("no-such-tool"),
            captures == 1,
            "{}",
            ended.stderr
        );
        dir.files(".gputrail").iter().for_each(|name| {
            std::fs::remove_file(dir.join(name)).expect("it is there");
        });
    }
}

#[test]
fn captures_of_several_processes_become_one_trace() {
    needs!(captures_of_several_processes_become_one_trace: Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    run_with(
        &dir,
        &[("GPUTRAIL_CAPTURE", "part-%p.gputrail")],
        &["10", "spawn"],
    )
    .well();
    let captures = dir.files(".gputrail");
    assert_eq!(captures.len(), 2, "{captures:?}");
    well(
        dir.gputrail(["convert", "-o", "run.pftrace"])
            .args(&captures),
    );
    let mut trace = dir.trace();
    trace.assert_sound();
    assert_eq!(kernels(&mut trace, "work"), 20);
}

#[test]
fn damaged_variables_are_named_and_the_program_runs() {
    needs!(damaged_variables_are_named_and_the_program_runs: Need::Pocl, Need::OpenClToolchain);
    for (name, value) in [
        ("GPUTRAIL_BUFFERS", "many"),
        ("GPUTRAIL_BUFFER_SIZE", "-1"),
        ("GPUTRAIL_POLICY", "never"),
        ("GPUTRAIL_CAPTURE", "run-%z.gputrail"),
        ("GPUTRAIL_CAPTURE", "/no/such/folder/run.gputrail"),
        ("GPUTRAIL_SESSION", "not/absolute"),
    ] {
        let dir = TestDir::new();
        let mut variables = vec![(name, value)];
        if !["GPUTRAIL_CAPTURE", "GPUTRAIL_SESSION"].contains(&name) {
            variables.push(("GPUTRAIL_CAPTURE", "run.gputrail"));
        }
        let ended = run_with(&dir, &variables, &["5", "exit", "7"]);
        assert_eq!(ended.code(), 7, "{name}={value}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(value),
            "{name}={value}: {}",
            ended.stderr
        );
    }
}

#[test]
fn without_any_variable_the_library_does_nothing() {
    needs!(without_any_variable_the_library_does_nothing: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let ended = run_with(&dir, &[], &["5"]).well();
    assert_eq!((ended.text(), ended.stderr), (String::new(), String::new()));
    assert_eq!(dir.files(".gputrail"), [""; 0]);
}

#[test]
fn a_session_that_is_over_is_nothing_to_complain_about() {
    needs!(a_session_that_is_over_is_nothing_to_complain_about: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let session = [("GPUTRAIL_SESSION", "/no/such/session")];
    let ended = run_with(&dir, &session, &["5"]).well();
    assert_eq!(ended.stderr, "");
}

#[test]
fn other_layers_work_beside_ours() {
    needs!(other_layers_work_beside_ours: Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let lives = dir.program("lives");
    let layer = dir.library("counting_layer");
    let mut command = dir.record_with(&["-q"], Driver::Threaded, &lives, &["15"]);
    let ended = well(command.env("OPENCL_LAYERS", &layer));
    assert_eq!(ended.stderr, "the layer counted 15 kernels\n");
    let mut trace = dir.trace();
    trace.assert_sound();
    assert_eq!(kernels(&mut trace, "work"), 15);
}

#[test]
fn recording_where_the_variables_are_set_already_records_once() {
    needs!(recording_where_the_variables_are_set_already_records_once:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let lives = dir.program("lives");
    let library = dir.join("libgputrail.so");
    well(&mut dir.gputrail(["library", library.to_str().expect("UTF-8")]));
    let mut command = dir.record(Driver::Threaded, &lives, &["15"]);
    well(
        command
            .env("OPENCL_LAYERS", &library)
            .env("GPUTRAIL_CAPTURE", "run.gputrail"),
    );
    let mut trace = dir.trace();
    trace.assert_sound();
    assert_eq!(kernels(&mut trace, "work"), 15, "each kernel once");
}
