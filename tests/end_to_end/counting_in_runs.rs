//! `--replay application`: counters that need several passes, of a program that runs once for each.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;
use serde_json::Value;

use crate::command::{TestDir, well};

/// The table of counters: kernel and counter with the number of dispatches.
fn counted(dir: &TestDir, file: &str) -> BTreeMap<(String, String), u64> {
    let row = |row: &Value| {
        let text = |key: &str| row[key].as_str().expect("a text").to_owned();
        let dispatches = row["dispatches"].as_u64().expect("a number");
        ((text("kernel"), text("counter")), dispatches)
    };
    table(dir, file).iter().map(row).collect()
}

fn table(dir: &TestDir, file: &str) -> Vec<Value> {
    let text = well(&mut dir.gputrail(["summary", file, "--format", "json"])).text();
    let tables: Value = serde_json::from_str(&text).expect("JSON");
    tables["counters"].as_array().expect("a table").clone()
}

/// `command` with `file` as its standard input.
fn with_input(command: &Command, file: &Path) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "input=$1; shift; exec \"$0\" \"$@\" < \"$input\""]);
    shell
        .arg(command.get_program())
        .arg(file)
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    shell
}

#[test]
fn the_demo_has_the_same_values_in_one_run_and_in_several() {
    let dir = TestDir::new();
    let demo = [
        "demo",
        "--steps",
        "1",
        "--counters",
        "SQ_WAVES,VALUInsts,FETCH_SIZE,L2CacheHit",
    ];
    well(&mut dir.gputrail([&demo[..], &["-q", "-o", "one.pftrace"]].concat()));
    let runs = ["--counters-per-pass", "2", "--replay", "application"];
    let told =
        well(&mut dir.gputrail([&demo[..], &runs, &["--capture", "-o", "runs.pftrace"]].concat()));
    assert!(!told.stderr.contains("do not"), "{}", told.stderr);
    let one = table(&dir, "one.pftrace");
    assert!(one.len() > 20, "{one:?}");
    assert_eq!(table(&dir, "runs.pftrace"), one);
    assert_eq!(table(&dir, "runs.gputrail"), one);
    let info = well(&mut dir.gputrail(["info", "runs.gputrail"])).text();
    assert!(info.contains("counters: run 1 of 3"), "{info}");
}

#[test]
fn a_program_runs_once_for_each_pass_and_is_one_recording() {
    needs!(a_program_runs_once_for_each_pass_and_is_one_recording: Need::Pocl, Need::OpenClToolchain);
    let names = "TASK_CLOCK,CPU_CLOCK,PAGE_FAULTS,CONTEXT_SWITCHES,CPU_MIGRATIONS";
    for driver in [Driver::Basic, Driver::Threaded] {
        let dir = TestDir::new();
        let program = dir.program("hot_loop");
        run(&mut dir.untraced(driver, &program, &[])); // fills the kernel cache
        let options = [
            "--counters",
            names,
            "--counters-per-pass",
            "2",
            "--replay",
            "application",
        ];
        let ended = run(&mut dir.record_with(&options, driver, &program, &[])).well();
        assert_eq!(
            ended.text().matches("result").count(),
            1,
            "{}",
            ended.text()
        );
        assert!(!ended.stderr.contains("do not"), "{}", ended.stderr);
        dir.trace().assert_sound();
        let expected = names
            .split(',')
            .map(|name| (("hot".to_owned(), name.to_owned()), 20));
        assert_eq!(counted(&dir, "run.pftrace"), expected.collect());
    }
}

#[test]
fn dispatches_that_differ_from_run_to_run_are_left_out_and_told() {
    needs!(dispatches_that_differ_from_run_to_run_are_left_out_and_told: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = dir.program("other_runs");
    let runs = dir.join("runs");
    let options = [
        "--counters",
        "PAGE_FAULTS,CONTEXT_SWITCHES",
        "--counters-per-pass",
        "1",
        "--replay",
        "application",
    ];
    std::fs::write(dir.join("input"), "a line\n").expect("a file");
    let words = [runs.to_str().expect("a path")];
    let command = dir.record_with(&options, Driver::Basic, &program, &words);
    let ended = run(&mut with_input(&command, &dir.join("input")));
    // Output and exit code are those of the first run.
    assert_eq!((ended.code(), ended.text().as_str()), (0, "run 0\n"));
    let text = ended.stderr.replace('\n', " ");
    for sentence in [
        "run 2 of 2 ended otherwise than the first one: with exit code 1, and not 0",
        "2 dispatches match the first run, and 4 do not, whose values are left out: 1 missing in this run, 1 missing in the \
         first run, 1 of another grid, 1 in another order",
    ] {
        assert!(text.contains(sentence), "{text}");
    }
    for run in ["runs.0", "runs.1"] {
        let read = std::fs::read_to_string(dir.join(run)).expect("a run");
        assert_eq!(read, "a line\n", "each run has the input");
    }
    let counted = counted(&dir, "run.pftrace");
    let number = |kernel: &str, counter: &str| {
        let key = (kernel.to_owned(), counter.to_owned());
        counted.get(&key).copied().unwrap_or(0)
    };
    for (kernel, launches) in [("a", 2), ("b", 1), ("c", 1), ("d", 1), ("e", 0)] {
        assert_eq!(number(kernel, "PAGE_FAULTS"), launches, "{kernel}");
    }
    let joined: u64 = ["a", "b", "c", "d", "e"]
        .map(|kernel| number(kernel, "CONTEXT_SWITCHES"))
        .iter()
        .sum();
    assert_eq!((joined, number("b", "CONTEXT_SWITCHES")), (2, 0));
}

#[test]
fn a_name_that_needs_several_passes_alone_has_no_run() {
    let dir = TestDir::new();
    let demo = [
        "demo",
        "-q",
        "--steps",
        "1",
        "--counters",
        "SQ_WAVES,VALUInsts",
    ];
    let runs = ["--counters-per-pass", "1", "--replay", "application"];
    let told = run(&mut dir.gputrail([&demo[..], &runs].concat())).well();
    let sentence = "not counted: VALUInsts: the counters need 2 passes";
    assert!(told.stderr.contains(sentence), "{}", told.stderr);
    let refused = ["--counters-period", "1ms", "--replay", "application"];
    let refused = run(&mut dir.gputrail([&demo[..], &refused].concat()));
    assert_ne!(refused.code(), 0);
}

#[test]
fn devices_of_two_architectures_count_what_each_has() {
    let dir = TestDir::new();
    let demo = ["demo", "--steps", "1", "--second-device", "gfx11"];
    let names = ["--counters", "SQ_WAVES,GPU_UTIL,L2CacheHit"];
    let told = run(&mut dir.gputrail([&demo[..], &names].concat())).well();
    let unknown = told
        .stderr
        .matches("no counter or metric \"GPU_UTIL\"")
        .count();
    assert_eq!(unknown, 1, "{}", told.stderr);
    let counted = counted(&dir, "demo.pftrace");
    let of = |name: &str| {
        counted
            .keys()
            .filter(|(_, counter)| counter == name)
            .count()
    };
    assert!(
        of("GPU_UTIL") > 5 && of("SQ_WAVES") >= of("GPU_UTIL"),
        "{counted:?}"
    );
    let text = well(&mut dir.gputrail(["counters", "list", "--agent", "sim:gfx11"])).text();
    assert!(text.contains("WAVE_DEP_WAIT"), "{text}");
    let refused = ["--replay", "application", "--counters", "SQ_WAVES"];
    let refused = run(&mut dir.gputrail([&demo[..], &refused].concat()));
    assert_eq!(refused.code(), 125, "{}", refused.stderr);
}
