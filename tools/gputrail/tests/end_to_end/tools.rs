//! Tools that are libraries of their own, loaded into programs that know nothing of them: the examples, and what
//! is no tool.

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::{Ended, run};
use gputrail_harness::repository;

use crate::c_api::{C, compiled};
use crate::command::{Place, kernels};

/// A tool in C, compiled.
fn tool(place: &Place, options: &[&str], source: &str, output: &str) -> String {
    let shared = [&["-shared", "-fPIC"], options].concat();
    let library = compiled(place, C, &shared, &repository(source), output);
    library.into_os_string().into_string().expect("UTF-8")
}

fn example(place: &Place, name: &str) -> String {
    tool(
        place,
        &[],
        &format!("examples/c/{name}.c"),
        &format!("lib{name}.so"),
    )
}

/// Records a program of `tests/programs` with tools.
fn with_tools(place: &Place, tools: &[&str], program: &str, arguments: &[&str]) -> Ended {
    let program = place.program(program);
    let options: Vec<&str> = tools
        .iter()
        .flat_map(|tool| ["--tool", tool])
        .chain(["-q"])
        .collect();
    run(&mut place.record_with(&options, Driver::Threaded, &program, arguments))
}

/// The line of `text` that begins with `start`.
#[track_caller]
fn line<'a>(text: &'a str, start: &str) -> &'a str {
    let found = text.lines().find(|line| line.starts_with(start));
    found.unwrap_or_else(|| panic!("no line begins with {start}:\n{text}"))
}

#[test]
fn several_tools_observe_a_program_that_is_recorded_too() {
    needs!(several_tools_observe_a_program_that_is_recorded_too:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let place = Place::new();
    let (times, latency) = (
        example(&place, "kernel_times"),
        example(&place, "api_latency"),
    );
    let ended = with_tools(&place, &[&times, &latency], "lives", &["40"]).well();
    assert!(
        line(&ended.stderr, "work: ").contains("40 runs"),
        "{}",
        ended.stderr
    );
    let calls: Vec<&str> = line(&ended.stderr, "clEnqueueNDRangeKernel")
        .split_whitespace()
        .collect();
    assert_eq!(calls[1..3], ["40", "0"], "{}", ended.stderr);
    // The one named first was initialised first, and is finalised last.
    let place_of = |text| ended.stderr.find(text).expect("both have said something");
    assert!(
        place_of("function ") < place_of("work: "),
        "{}",
        ended.stderr
    );
    let mut trace = place.trace();
    trace.assert_sound();
    assert_eq!(kernels(&mut trace, "work"), 40);
}

#[test]
fn the_bandwidth_of_copies_is_told() {
    needs!(the_bandwidth_of_copies_is_told: Need::Pocl, Need::OpenClToolchain);
    let place = Place::new();
    let tool = example(&place, "copy_bandwidth");
    let ended = with_tools(&place, &[&tool], "events", &[]);
    assert!(ended.stderr.contains("in total: "), "{}", ended.stderr);
    assert!(ended.stderr.contains(" GB/s"), "{}", ended.stderr);
}

#[test]
fn variables_alone_load_a_tool() {
    needs!(variables_alone_load_a_tool: Need::Pocl, Need::OpenClToolchain);
    let place = Place::new();
    let tool = example(&place, "kernel_times");
    let lives = place.program("lives");
    let mut command = place.alone(Driver::Threaded, &lives, &["10"]);
    command.env("OPENCL_LAYERS", place.join("libgputrail.so.0"));
    let ended = run(command.env("GPUTRAIL_TOOLS", tool)).well();
    assert!(
        line(&ended.stderr, "work: ").contains("10 runs"),
        "{}",
        ended.stderr
    );
    assert_eq!(place.files(".pftrace"), [""; 0]);
}

#[test]
fn what_is_no_tool_is_named_before_the_program_runs() {
    needs!(what_is_no_tool_is_named_before_the_program_runs: Need::OpenClToolchain);
    let place = Place::new();
    let bad = |option: &str| {
        let options = [format!("-D{option}")];
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        tool(
            &place,
            &options,
            "tests/programs/bad_tools.c",
            &format!("{option}.so"),
        )
    };
    std::fs::write(place.join("text.so"), "no library").expect("a file");
    for (path, reason) in [
        ("missing.so".to_owned(), "No such file"),
        ("text.so".to_owned(), "file too short"),
        (bad("NO_ENTRY"), "gputrail_tool_configure"),
        (bad("OTHER_VERSION"), "version 77"),
        (bad("WRONG_SIZE"), "3 bytes"),
        (bad("CRASHES"), "SIGABRT"),
        (bad("EXITS"), "ended the process"),
    ] {
        let mut command = place.gputrail(["record", "--tool", &path, "--", "touch", "ran"]);
        let ended = run(&mut command);
        assert_eq!(ended.code(), 125, "{path}: {}", ended.stderr);
        assert!(ended.stderr.contains(&path), "{path}: {}", ended.stderr);
        assert!(ended.stderr.contains(reason), "{path}: {}", ended.stderr);
        assert!(!place.join("ran").exists());
    }
}

#[test]
fn a_tool_whose_initialisation_fails_is_discarded_and_the_program_runs() {
    needs!(a_tool_whose_initialisation_fails_is_discarded_and_the_program_runs:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let place = Place::new();
    let bad = tool(&place, &[], "tests/programs/bad_tools.c", "bad.so");
    let good = example(&place, "kernel_times");
    let ended = with_tools(&place, &[&bad, &good], "lives", &["10", "exit", "6"]);
    assert_eq!(ended.code(), 6, "{}", ended.stderr);
    let said = line(&ended.stderr, "gputrail: tool bad");
    assert!(said.contains("GPUTRAIL_TOO_MANY"), "{said}");
    assert!(
        line(&ended.stderr, "work: ").contains("10 runs"),
        "{}",
        ended.stderr
    );
    let mut trace = place.trace();
    trace.assert_sound();
    assert_eq!(kernels(&mut trace, "work"), 10);
}
