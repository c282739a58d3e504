//! `gputrail record --call-stacks`: programs whose functions are known, in C and Python, with OpenCL and the stand-ins of CUDA.

use std::path::{Path, PathBuf};
use std::process::Command;

use gputrail_harness::machine::{Need, skipped};
use gputrail_harness::needs;
use gputrail_harness::pocl::{Driver, on_pocl};
use gputrail_harness::program::run;
use gputrail_harness::repository;
use serde_json::Value;

use crate::command::{TestDir, well};
use crate::cuda::StandIns;

/// The recorded call stacks, innermost function first, in the order of the calls.
fn stacks(dir: &TestDir, trace: &str) -> Vec<Vec<String>> {
    let _ = std::fs::remove_file(dir.join("stacks.json"));
    well(&mut dir.gputrail(["convert", trace, "-o", "stacks.json"]));
    let text = std::fs::read_to_string(dir.join("stacks.json")).expect("it was written");
    let file: Value = serde_json::from_str(&text).expect("JSON");
    let events = file["traceEvents"].as_array().expect("events");
    let texts = events
        .iter()
        .filter_map(|event| event["args"]["stack"].as_str());
    let frames = |text: &str| text.split(" < ").map(str::to_owned).collect();
    texts.map(frames).collect()
}

/// The first functions of a stack.
fn begins(stack: &[String], functions: &[&str]) -> bool {
    stack.len() >= functions.len() && stack.iter().zip(functions).all(|(one, other)| one == other)
}

/// The program of known functions, compiled with these options.
fn program(dir: &TestDir, options: &[&str]) -> PathBuf {
    let to = dir.join("call_stacks");
    let mut compiler = Command::new("cc");
    compiler.args(options).args(["-pthread", "-o"]).arg(&to);
    well(
        compiler
            .arg(repository("tests/programs/call_stacks.c"))
            .arg("-lOpenCL"),
    );
    to
}

/// The map that a recorded program has written for perf, which is removed at the end of the test.
struct PerfMap(String);

impl PerfMap {
    /// That of the program whose stacks have been read.
    fn of(dir: &TestDir) -> PerfMap {
        let text = std::fs::read_to_string(dir.join("stacks.json")).expect("it was written");
        let file: Value = serde_json::from_str(&text).expect("JSON");
        let events = file["traceEvents"].as_array().expect("events");
        let mut with_stack = events
            .iter()
            .filter(|event| event["args"]["stack"].is_string());
        let process = with_stack.next().and_then(|event| event["pid"].as_u64());
        PerfMap(format!("/tmp/perf-{}.map", process.expect("a process")))
    }
}

impl Drop for PerfMap {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn enqueues_have_the_functions_that_they_were_made_from() {
    needs!(enqueues_have_the_functions_that_they_were_made_from: Need::Pocl, Need::Program("cc"));
    for options in [
        &["-O2", "-fomit-frame-pointer"][..],
        &[
            "-O2",
            "-fno-omit-frame-pointer",
            "-fno-asynchronous-unwind-tables",
        ],
        &["-O0"],
        &["-O2", "-no-pie"],
    ] {
        let dir = TestDir::new();
        let program = program(&dir, options);
        well(&mut dir.record_with(&["--call-stacks", "-q"], Driver::Threaded, &program, &["3"]));
        let found = stacks(&dir, "run.pftrace");
        let _map = PerfMap::of(&dir);
        let count = |functions: &[&str]| {
            found
                .iter()
                .filter(|stack| begins(stack, functions))
                .count()
        };
        assert_eq!(
            count(&["fill", "inner_step", "outer_step", "main"]),
            3,
            "{options:?}: {found:?}"
        );
        // Of 301 functions, the innermost are kept.
        let deep = found
            .iter()
            .find(|stack| begins(stack, &["fill", "descend", "descend"]));
        assert_eq!(
            deep.map(Vec::len),
            Some(gputrail_record::MAX_FRAMES),
            "{options:?}"
        );
        assert_eq!(count(&["fill", "on_thread"]), 1, "{options:?}: {found:?}");
        assert_eq!(count(&["fill", "on_fiber"]), 1, "{options:?}: {found:?}");
        // Each of the ten with a broken frame pointer ends behind the code that has it, or is longer by chance.
        let broken = found.iter().filter(|stack| {
            stack.first().is_some_and(|name| name == "fill")
                && stack.get(1).is_some_and(|name| name.starts_with("0x"))
        });
        if cfg!(target_arch = "x86_64") && !options.contains(&"-fno-asynchronous-unwind-tables") {
            assert_eq!(broken.count(), 10, "{options:?}: {found:?}");
            let generated = |stack: &&Vec<String>| {
                begins(stack, &["fill", "generated code"])
                    && stack.iter().any(|name| name == "main")
            };
            assert_eq!(
                found.iter().filter(generated).count(),
                1,
                "{options:?}: {found:?}"
            );
        }
        // All enqueues but that on a thread whose stack has no room.
        assert_eq!(
            found.len(),
            3 + 1 + 1 + 1 + 1 + 10,
            "{options:?}: {found:?}"
        );
    }
}

#[test]
fn device_time_by_call_stack_is_that_of_all_devices_and_survives_conversion() {
    needs!(device_time_by_call_stack_is_that_of_all_devices_and_survives_conversion:
        Need::Pocl, Need::Program("cc"));
    let dir = TestDir::new();
    let program = program(&dir, &["-O2"]);
    let options = ["--call-stacks", "--capture", "-q"];
    well(&mut dir.record_with(&options, Driver::Threaded, &program, &["5"]));
    stacks(&dir, "run.pftrace");
    let _map = PerfMap::of(&dir);
    well(&mut dir.gputrail(["convert", "run.pftrace", "-o", "again.pftrace"]));
    well(&mut dir.gputrail(["check", "run.pftrace"]));
    let table = |file: &str| {
        let arguments = ["summary", "--by", "stack", "--format", "json", file];
        let text = well(&mut dir.gputrail(arguments)).text();
        let tables: Value = serde_json::from_str(&text).expect("JSON");
        (tables["by_stack"].clone(), tables["operations"].clone())
    };
    let (rows, operations) = table("run.pftrace");
    let sum = |rows: &Value, key: &str| -> u64 {
        let rows = rows.as_array().expect("rows");
        rows.iter().filter_map(|row| row[key].as_u64()).sum()
    };
    assert!(sum(&rows, "count") > 0);
    for key in ["count", "total_ns"] {
        assert_eq!(
            sum(&rows, key),
            sum(&operations, key),
            "{rows} {operations}"
        );
    }
    for file in ["again.pftrace", "run.gputrail"] {
        assert_eq!(table(file).0, rows, "{file}");
    }
    let arguments = [
        "summary",
        "--by",
        "stack",
        "--flame",
        "folded",
        "run.pftrace",
    ];
    let folded = well(&mut dir.gputrail(arguments)).text();
    let line = folded
        .lines()
        .find(|line| line.contains(";outer_step;"))
        .expect("a line");
    assert!(
        line.contains(";main;outer_step;inner_step;fill;fill "),
        "{line}"
    );
    let refused = run(&mut dir.gputrail([
        "summary",
        "--by",
        "rank",
        "--flame",
        "folded",
        "run.pftrace",
    ]));
    assert_ne!(refused.code(), 0);
}

#[test]
fn functions_of_a_file_that_has_been_replaced_are_not_named() {
    needs!(functions_of_a_file_that_has_been_replaced_are_not_named: Need::Pocl, Need::Program("cc"));
    let dir = TestDir::new();
    program(&dir, &["-O2"]);
    let options = ["--call-stacks", "--capture", "-q"];
    well(&mut dir.record_with(&options, Driver::Threaded, dir.join("call_stacks"), &[]));
    program(&dir, &["-O1"]);
    well(&mut dir.gputrail(["convert", "run.gputrail", "-o", "later.pftrace"]));
    let found = stacks(&dir, "later.pftrace");
    let _map = PerfMap::of(&dir);
    let all = found.iter().flatten();
    assert!(
        all.clone().any(|name| name.starts_with("call_stacks+0x")),
        "{found:?}"
    );
    assert!(!all.clone().any(|name| name == "fill"), "{found:?}");
}

#[test]
fn functions_of_python_have_their_names() {
    needs!(functions_of_python_have_their_names: Need::Pocl);
    let script = repository("tests/programs/call_stacks.py");
    let versions = ["3.12", "3.13", "3.14"].map(python).into_iter().flatten();
    let versions: Vec<PathBuf> = versions.collect();
    if versions.is_empty() {
        skipped(
            "functions_of_python_have_their_names",
            "this machine has no Python from 3.12 on, which knows -X perf",
        );
    }
    for python in versions {
        let dir = TestDir::new();
        let mut record = dir.gputrail(["record", "--call-stacks", "-q", "-o", "run.pftrace", "--"]);
        record.arg(&python).args(["-X", "perf"]).arg(&script);
        well(on_pocl(&mut record, Driver::Threaded));
        let found = stacks(&dir, "run.pftrace");
        let _map = PerfMap::of(&dir);
        assert_eq!(found.len(), 3, "{python:?}: {found:?}");
        for stack in &found {
            let of_python = stack.iter().filter_map(|name| name.strip_prefix("py::"));
            let names: Vec<&str> = of_python
                .filter_map(|name| name.split(':').next())
                .collect();
            assert_eq!(
                names,
                ["forward", "training_step", "train", "<module>"],
                "{stack:?}"
            );
        }
    }
}

/// A Python of this version, if there is one.
fn python(version: &str) -> Option<PathBuf> {
    let installed = std::env::var_os("HOME").map(|home| Path::new(&home).join(".pyenv/versions"));
    let installed = installed.and_then(|folder| std::fs::read_dir(folder).ok());
    let of_pyenv = installed
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let of_pyenv = of_pyenv.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_prefix(version)
            .is_some_and(|rest| rest.starts_with('.'))
    });
    let of_pyenv = of_pyenv.map(|path| path.join("bin/python3"));
    let of_system = Path::new("/usr/bin").join(format!("python{version}"));
    of_pyenv.chain([of_system]).find(|path| path.is_file())
}

#[test]
fn launches_of_cuda_have_their_stacks_with_the_stand_ins() {
    needs!(launches_of_cuda_have_their_stacks_with_the_stand_ins: Need::Program("cc"));
    let stand_ins = StandIns::new();
    let options = ["--call-stacks", "-q"];
    well(&mut stand_ins.record_with(&options, "1305", "", &["10", "2"]));
    let found = stacks(stand_ins.dir(), "run.pftrace");
    // Two threads with ten launches by each API, and with copies, fills and graphs.
    let of_thread = |stack: &&Vec<String>| stack.iter().any(|name| name == "work");
    let launches = found.iter().filter(of_thread).count();
    assert!(launches >= 2 * (10 + 10), "{launches}: {found:?}");
    let arguments = [
        "summary",
        "--by",
        "stack",
        "--flame",
        "folded",
        "run.pftrace",
    ];
    let folded = well(&mut stand_ins.dir().gputrail(arguments)).text();
    let kernel = folded
        .lines()
        .find(|line| line.contains(";saxpy "))
        .expect("a kernel");
    assert!(kernel.contains(";work;"), "{folded}");
}

#[test]
fn without_the_option_there_are_no_stacks() {
    needs!(without_the_option_there_are_no_stacks: Need::Pocl, Need::Program("cc"));
    let dir = TestDir::new();
    let program = program(&dir, &["-O2"]);
    well(&mut dir.record_with(&["-q"], Driver::Threaded, &program, &[]));
    assert!(stacks(&dir, "run.pftrace").is_empty());
}
