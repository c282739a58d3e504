//! Tools that misbehave: that end the program in a callback, fork there, throw exceptions, or are named twice.

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::{Ended, run};
use gputrail_harness::repository;

use crate::c_api::{CPP, compiled};
use crate::command::TestDir;

/// Compiles the tool.
fn unruly(dir: &TestDir) -> String {
    let source = repository("tests/programs/unruly_tool.cpp");
    let library = compiled(dir, CPP, &["-shared", "-fPIC"], &source, "unruly.so");
    library.into_os_string().into_string().expect("UTF-8")
}

/// Records `lives` with the tool, which misbehaves in this way.
fn record(dir: &TestDir, tool: &str, way: &str, arguments: &[&str]) -> Ended {
    let program = dir.program("lives");
    let options = ["-q", "--tool", tool];
    let mut command = dir.record_with(&options, Driver::Threaded, &program, arguments);
    run(command.env("UNRULY", way))
}

/// The numbers of the calls that had ended, that were delivered, and that were dropped, as the end of the tool says them.
#[track_caller]
fn at_the_end(ended: &Ended) -> [u64; 3] {
    let line = ended.stderr.lines().find(|line| line.contains("end: "));
    let line = line.unwrap_or_else(|| panic!("the tool has not ended: {}", ended.stderr));
    let words = line.split_whitespace().filter_map(|word| word.parse().ok());
    words
        .collect::<Vec<u64>>()
        .try_into()
        .expect("three numbers")
}

#[test]
fn records_are_delivered_when_a_callback_of_a_subscriber_ends_the_program() {
    needs!(records_are_delivered_when_a_callback_of_a_subscriber_ends_the_program: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let ended = record(&dir, &unruly(&dir), "exit-call", &["40"]);
    assert_eq!(ended.code(), 5, "{}", ended.stderr);
    assert_eq!(at_the_end(&ended), [30, 30, 0], "{}", ended.stderr);
    assert!(
        ended.stderr.contains("flush GPUTRAIL_OK"),
        "{}",
        ended.stderr
    );
}

#[test]
fn records_are_counted_when_the_callback_of_their_buffer_ends_the_program() {
    needs!(records_are_counted_when_the_callback_of_their_buffer_ends_the_program: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let ended = record(&dir, &unruly(&dir), "exit-deliver", &["40", "wait"]);
    assert_eq!(ended.code(), 5, "{}", ended.stderr);
    let [calls, delivered, dropped] = at_the_end(&ended);
    assert_eq!((calls, delivered + dropped), (30, 30), "{}", ended.stderr);
    assert!(delivered > 0, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("flush GPUTRAIL_BUSY"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_subscriber_whose_callback_ends_the_program_is_not_called_any_more() {
    needs!(a_subscriber_whose_callback_ends_the_program_is_not_called_any_more: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let (tool, program) = (unruly(&dir), dir.program("two_callers"));
    let options = ["-q", "--tool", &tool];
    // Kernels complete within clFinish.
    let mut command = dir.record_with(&options, Driver::Basic, &program, &[]);
    let ended = run(command.env("UNRULY", "exit-complete"));
    assert_eq!(ended.code(), 5, "{}", ended.stderr);
    assert!(ended.stderr.contains("after exit: 0\n"), "{}", ended.stderr);
}

#[test]
fn a_child_that_a_callback_forks_initialises_the_library_for_itself() {
    needs!(a_child_that_a_callback_forks_initialises_the_library_for_itself: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let ended = record(&dir, &unruly(&dir), "fork", &["40"]).well();
    assert!(ended.stderr.contains("child: 0 1 0\n"), "{}", ended.stderr);
}

#[test]
fn a_tool_that_an_exception_leaves_is_named() {
    needs!(a_tool_that_an_exception_leaves_is_named: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let tool = unruly(&dir);
    for (place, named) in [
        ("configure", format!("tool {tool}: an exception")),
        ("initialise", format!("tool unruly ({tool}): an exception")),
        ("call", format!("tool unruly ({tool}): an exception")),
        ("deliver", format!("tool unruly ({tool}): an exception")),
        ("finalise", format!("tool unruly ({tool}): an exception")),
    ] {
        let ended = record(&dir, &tool, &format!("throw-{place}"), &["40"]);
        assert!(ended.stderr.contains(&named), "{place}: {}", ended.stderr);
        assert_eq!(ended.code(), 128 + libc::SIGABRT, "{place}");
    }
}

#[test]
fn a_tool_that_is_named_twice_is_loaded_once() {
    needs!(a_tool_that_is_named_twice_is_loaded_once: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let (tool, link) = (unruly(&dir), dir.join("link.so"));
    std::os::unix::fs::symlink(&tool, &link).expect("a link");
    let program = dir.program("lives");
    let mut command = dir.record_with(
        &["-q", "--tool", &tool],
        Driver::Threaded,
        &program,
        &["40"],
    );
    // The command resolves links in its own options.
    let ended = run(command.env("GPUTRAIL_TOOLS", &link)).well();
    assert_eq!(ended.stderr.matches("end: ").count(), 1, "{}", ended.stderr);
    let again = format!(
        "tool {}: loaded once, though it is named again",
        link.display()
    );
    assert!(ended.stderr.contains(&again), "{}", ended.stderr);
    assert!(!ended.stderr.contains("not loaded"), "{}", ended.stderr);
}
