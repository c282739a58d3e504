//! `gputrail hotspots` on recordings of PoCL: lines, instructions, and the output without lines.

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;
use gputrail_harness::trace::packet_kinds;
use serde_json::Value;

use crate::command::{TestDir, well};

/// The first line of the file that rocprofv3 writes for host-trap samples.
const ROCPROFV3_COLUMNS: &str = r#""Sample_Timestamp","Exec_Mask","Dispatch_Id","Instruction","Instruction_Comment","Correlation_Id""#;

/// Records a program with one hot loop; `options` are added to those that enable sampling.
fn sampled(options: &[&str]) -> TestDir {
    let dir = TestDir::new();
    let program = dir.program("hot_loop");
    let sampling = ["-q", "--pc-sampling", "host-trap", "--interval", "1ms"];
    let options = [&sampling[..], options].concat();
    well(&mut dir.record_with(&options, Driver::Threaded, &program, &[]));
    dir
}

/// The output of `gputrail hotspots`.
#[track_caller]
fn hotspots(dir: &TestDir, arguments: &[&str]) -> String {
    let mut command = dir.gputrail(["hotspots"]);
    run(command.args(arguments)).well().text()
}

#[test]
fn lines_behind_a_line_directive_have_its_numbers_and_their_own_text() {
    needs!(lines_behind_a_line_directive_have_its_numbers_and_their_own_text:
        Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = dir.program("hot_loop");
    let options = [
        "-q",
        "--pc-sampling",
        "host-trap",
        "--interval",
        "1ms",
        "--kernel-debug-info",
    ];
    // PoCL's cache of kernels knows a program by its text without directives: this one has a text of its own.
    let begin = "#line 1000 \"foo.cl\"\nconstant int behind_a_directive = 1;\n";
    let arguments = ["", "20", begin];
    well(&mut dir.record_with(&options, Driver::Threaded, &program, &arguments));
    let text = hotspots(&dir, &["run.pftrace"]);
    let line = text.lines().find(|line| line.contains(" 1007 |"));
    let line = line.unwrap_or_else(|| panic!("line 1007 in {text}"));
    assert!(line.contains("for (int j = 0; j < rounds; j++)"), "{line}");
}

#[test]
fn hotspots_name_the_line_next_to_its_text() {
    needs!(hotspots_name_the_line_next_to_its_text: Need::Pocl, Need::OpenClToolchain);
    let dir = sampled(&["--kernel-debug-info", "--capture"]);
    let text = hotspots(&dir, &["run.pftrace"]);
    let line = text.lines().find(|line| line.contains(" 7 |"));
    let line = line.unwrap_or_else(|| panic!("line 7 in {text}"));
    assert!(line.contains("for (int j = 0; j < rounds; j++)"), "{line}");
    assert!(!text.contains('\x1b'), "no colours where no terminal is");
    assert_eq!(
        text,
        hotspots(&dir, &["run.gputrail"]),
        "the capture says the same"
    );

    let json = hotspots(&dir, &["run.pftrace", "--format", "json"]);
    let report: Value = serde_json::from_str(&json).expect("JSON");
    let kernel = &report["kernels"][0];
    assert_eq!(kernel["name"], "hot");
    assert_eq!(kernel["lines"][0]["line"], 7);
    assert!(kernel["lines"][0]["share"].as_f64() >= Some(0.95), "{json}");
    let instructions = kernel["instructions"].as_array().expect("a list");
    let samples = instructions.iter().map(|one| one["samples"].as_u64());
    assert_eq!(samples.sum::<Option<u64>>(), kernel["samples"].as_u64());

    dir.trace().assert_sound();
    well(&mut dir.gputrail(["check", "run.pftrace"]));
    let info = run(&mut dir.gputrail(["info", "run.pftrace"]))
        .well()
        .text();
    assert!(info.contains("samples of the program counter"), "{info}");
    packet_kinds(&dir.join("run.pftrace"));
}

#[test]
fn rows_are_those_of_rocprofv3_one_for_each_sample() {
    needs!(rows_are_those_of_rocprofv3_one_for_each_sample: Need::Pocl, Need::OpenClToolchain);
    let dir = sampled(&["--kernel-debug-info", "--capture", "--raw-samples"]);
    let csv = hotspots(&dir, &["run.pftrace", "--format", "csv"]);
    let of_capture = hotspots(&dir, &["run.gputrail", "--format", "csv"]);
    let mut rows = csv.lines();
    assert_eq!(rows.next(), Some(ROCPROFV3_COLUMNS));
    let json = hotspots(&dir, &["run.pftrace", "--format", "json"]);
    let report: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        Some(rows.clone().count() as u64),
        report["samples"].as_u64()
    );
    let in_line = rows.clone().filter(|row| row.contains(".cl:7\","));
    assert!(in_line.count() * 100 >= rows.count() * 95, "{csv}");
    let without_times = |csv: &str| -> Vec<String> {
        let rows = csv
            .lines()
            .map(|row| row.split_once(',').expect("columns").1);
        rows.map(str::to_owned).collect()
    };
    assert_eq!(without_times(&csv), without_times(&of_capture));
}

#[test]
fn without_lines_functions_are_shown_and_what_would_help() {
    needs!(without_lines_functions_are_shown_and_what_would_help: Need::Pocl, Need::OpenClToolchain);
    let dir = sampled(&[]);
    let text = hotspots(&dir, &["run.pftrace", "--kernel", "h*t"]);
    assert!(text.contains("--kernel-debug-info"), "{text}");
    let function = |line: &str| line.trim_end().ends_with(" %   hot");
    assert!(text.lines().any(function), "{text}");
    let rows = run(&mut dir.gputrail(["hotspots", "run.pftrace", "--format", "csv"]));
    assert_eq!(rows.code(), 125);
    assert!(rows.stderr.contains("--raw-samples"), "{}", rows.stderr);
    let none = run(&mut dir.gputrail(["hotspots", "run.pftrace", "--kernel", "nothing"]));
    assert_eq!(none.code(), 125);
    assert!(
        none.stderr.contains("there are samples of hot"),
        "{}",
        none.stderr
    );
}

#[test]
fn a_trace_that_is_cut_has_hotspots_of_what_is_left() {
    needs!(a_trace_that_is_cut_has_hotspots_of_what_is_left: Need::Pocl, Need::OpenClToolchain);
    let dir = sampled(&[]);
    let trace = std::fs::read(dir.join("run.pftrace")).expect("the trace");
    // The last packets describe the recording; the counts come before them.
    let cut = &trace[..trace.len() - 20];
    std::fs::write(dir.join("cut.pftrace"), cut).expect("written");
    let text = hotspots(&dir, &["cut.pftrace"]);
    assert!(text.contains("hot"), "{text}");
    std::fs::write(dir.join("head.pftrace"), &trace[..1000]).expect("written");
    let nothing = run(&mut dir.gputrail(["hotspots", "head.pftrace"]));
    assert_eq!(nothing.code(), 125);
    assert!(
        nothing.stderr.contains("--pc-sampling"),
        "{}",
        nothing.stderr
    );
}
