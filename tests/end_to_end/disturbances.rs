//! Programs whose threads are cancelled, interrupted and forked in the middle of their calls, tools whose destructors
//! run, programs that load OpenCL late, and devices that lack functions: a recorded program behaves as it does alone.

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::{compile_with, run};
use gputrail_harness::repository;

use std::os::unix::process::CommandExt;

use crate::c_api::{CPP, compiled};
use crate::command::{TestDir, kernels, well};

/// Records `disturbed` with these arguments, and returns what it printed and the folder with its trace.
fn disturbed(arguments: &[&str]) -> (String, TestDir) {
    let dir = TestDir::new();
    let program = dir.program("disturbed");
    let ended = run(&mut dir.record_with(&["-q"], Driver::Threaded, &program, arguments));
    let text = ended.well().text();
    assert!(text.ends_with("ended\n"), "{text}");
    (text, dir)
}

/// The number of calls of `function` in the trace.
fn calls(dir: &TestDir, function: &str) -> i64 {
    dir.trace().value(&format!(
        "select count(*) from slice where name = '{function}' and dur >= 0"
    ))
}

#[test]
fn a_thread_that_is_cancelled_in_its_first_call_ends_alone_and_the_call_is_recorded() {
    needs!(a_thread_that_is_cancelled_in_its_first_call_ends_alone_and_the_call_is_recorded:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let (text, dir) = disturbed(&["cancel-first"]);
    assert!(text.contains("\ncancelled\n"), "{text}");
    assert_eq!(calls(&dir, "clGetPlatformIDs"), 2);
}

#[test]
fn threads_that_are_cancelled_at_any_instruction_end_alone() {
    needs!(threads_that_are_cancelled_at_any_instruction_end_alone: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = dir.program("cancelled_anywhere");
    let ended = run(&mut dir.record_with(&["-q"], Driver::Threaded, &program, &[]));
    assert_eq!(ended.well().text(), "ended\n");
}

#[test]
fn a_thread_with_a_small_stack_is_recorded() {
    needs!(a_thread_with_a_small_stack_is_recorded: Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let program = dir.program("small_stack");
    let ended = run(&mut dir.record_with(&["-q"], Driver::Threaded, &program, &[]));
    assert_eq!(ended.well().text(), "ended\n");
    assert!(calls(&dir, "clGetDeviceInfo") >= 10);
}

#[test]
fn a_program_whose_filter_ends_it_at_our_calls_is_not_recorded_and_goes_on() {
    needs!(a_program_whose_filter_ends_it_at_our_calls_is_not_recorded_and_goes_on:
        Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = dir.program("secured");
    let ended = run(&mut dir.record_with(&[], Driver::Threaded, &program, &[])).well();
    assert!(ended.text().starts_with("ended\n"), "{}", ended.text());
    assert!(
        ended.stderr.contains("a filter of system calls (seccomp)"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_command_with_too_few_open_files_says_so() {
    needs!(a_command_with_too_few_open_files_says_so: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = dir.program("lives");
    let mut command = dir.record_with(&[], Driver::Threaded, &program, &["1"]);
    // SAFETY: the function makes one system call.
    unsafe {
        command.pre_exec(|| {
            let limit = libc::rlimit {
                rlim_cur: 16,
                rlim_max: 16,
            };
            match libc::setrlimit(libc::RLIMIT_NOFILE, &limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let ended = run(&mut command).well();
    assert!(
        ended
            .stderr
            .contains("no more files could be opened (16 for gputrail)"),
        "{}",
        ended.stderr
    );
    assert!(
        !ended.stderr.contains("neither an OpenCL library"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_thread_that_is_cancelled_while_it_creates_objects_ends_alone() {
    needs!(a_thread_that_is_cancelled_while_it_creates_objects_ends_alone:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let (text, dir) = disturbed(&["cancel-naming"]);
    assert!(text.contains("\ncancelled\n"), "{text}");
    assert_eq!(
        calls(&dir, "clCreateKernel"),
        calls(&dir, "clReleaseKernel")
    );
}

#[test]
fn children_forked_while_other_threads_hold_locks_of_ours_end() {
    needs!(children_forked_while_other_threads_hold_locks_of_ours_end: Need::Pocl, Need::OpenClToolchain);
    let (text, _) = disturbed(&["forks", "200"]);
    assert!(text.contains("children: 200 ended, 0 hung"), "{text}");
}

#[test]
fn calls_in_a_signal_handler_wait_for_no_lock_that_its_thread_holds() {
    needs!(calls_in_a_signal_handler_wait_for_no_lock_that_its_thread_holds: Need::Pocl, Need::OpenClToolchain);
    let (text, _) = disturbed(&["handler", "2000"]);
    let references = text.lines().find(|line| line.starts_with("references"));
    assert!(
        references.is_some_and(|line| line.ends_with(" 1")),
        "{text}"
    );
}

#[test]
fn a_program_that_closes_all_descriptors_is_recorded_and_nothing_is_written_to_its_files() {
    needs!(a_program_that_closes_all_descriptors_is_recorded_and_nothing_is_written_to_its_files:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let (text, dir) = disturbed(&["closes", "50000"]);
    let size = text.lines().find(|line| line.starts_with("of_file"));
    assert!(size.is_some_and(|line| line.ends_with(" 0")), "{text}");
    assert_recorded(&dir, 100_001);
}

#[test]
fn words_of_the_shared_header_that_the_program_overwrites_cost_nothing() {
    needs!(words_of_the_shared_header_that_the_program_overwrites_cost_nothing:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let (_, dir) = disturbed(&["scribbles", "50000"]);
    assert_recorded(&dir, 100_001);
}

#[test]
fn a_queue_has_no_references_of_ours_to_work_that_failed() {
    needs!(a_queue_has_no_references_of_ours_to_work_that_failed: Need::Pocl, Need::OpenClToolchain);
    let (text, _) = disturbed(&["fails", "10"]);
    let references = text.lines().find(|line| line.starts_with("references"));
    assert!(
        references.is_some_and(|line| line.ends_with(" 1")),
        "{text}"
    );
}

/// Checks that the trace is complete, with this many calls of clGetPlatformIDs and what was named after them.
fn assert_recorded(dir: &TestDir, platform_calls: i64) {
    assert_eq!(calls(dir, "clGetPlatformIDs"), platform_calls);
    assert_eq!(calls(dir, "clCreateKernel"), 1);
    let info = well(&mut dir.gputrail(["info", "run.pftrace"])).text();
    assert!(!info.contains("incomplete"), "{info}");
    well(&mut dir.gputrail(["check", "run.pftrace"]));
}

#[test]
fn a_tools_static_objects_last_until_it_is_finalised() {
    needs!(a_tools_static_objects_last_until_it_is_finalised:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let source = repository("tests/programs/static_tool.cpp");
    let tool = compiled(&dir, CPP, &["-shared", "-fPIC"], &source, "static_tool.so");
    let tool = tool.to_str().expect("UTF-8");
    let lives = dir.program("lives");
    for how in [&["500"][..], &["500", "exit", "0"], &["50", "threads", "8"]] {
        let options = ["-q", "--tool", tool];
        let ended = run(&mut dir.record_with(&options, Driver::Threaded, &lives, how)).well();
        let sql = "select count(*) from slice where category = 'api' or name glob 'cl[A-Z]*'";
        let recorded: i64 = dir.trace().value(sql);
        let said = format!("static tool: {recorded} and {recorded} calls");
        assert!(ended.stderr.contains(&said), "{said}: {}", ended.stderr);
        std::fs::remove_file(dir.join("run.pftrace")).expect("the trace");
    }
}

#[test]
fn an_old_device_is_asked_for_nothing_that_came_later() {
    needs!(an_old_device_is_asked_for_nothing_that_came_later:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let layer = dir.library("old_device_layer");
    let lives = dir.program("lives");
    let mut command = dir.record_with(&["-q"], Driver::Threaded, &lives, &["40"]);
    run(command.env("OPENCL_LAYERS", layer)).well();
    assert_eq!(kernels(&mut dir.trace(), "work"), 40);
}

/// The program `late`, which is not linked with OpenCL.
fn late(dir: &TestDir) -> std::path::PathBuf {
    let source = repository("tests/programs/late.c");
    compile_with(&["-Wl,--as-needed"], &source, dir.path())
}

#[test]
fn a_program_that_emptied_its_environment_is_told_so() {
    needs!(a_program_that_emptied_its_environment_is_told_so: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let ended = run(&mut dir.record(Driver::Threaded, late(&dir), &["emptied"])).well();
    let said = "it called no OpenCL function while gputrail recorded, had emptied or changed its environment before";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
    assert!(ended.stderr.contains("late (process "), "{}", ended.stderr);
}

#[test]
fn a_daemon_that_goes_on_without_its_program_is_a_named_cause() {
    needs!(a_daemon_that_goes_on_without_its_program_is_a_named_cause: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let done = dir.join("done");
    let arguments = ["daemon", done.to_str().expect("UTF-8")];
    let ended = run(&mut dir.record(Driver::Threaded, late(&dir), &arguments)).well();
    while !done.exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let said = "went on without the program, as daemons do";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
}

#[test]
fn a_program_whose_libraries_have_many_thread_locals_is_recorded() {
    needs!(a_program_whose_libraries_have_many_thread_locals_is_recorded:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let late = late(&dir);
    let source = repository("tests/programs/thread_locals.c");
    // The larger one leaves no room among the static thread-local variables of the process, which it takes to the last byte.
    for bytes in [1024, 1536, 1660] {
        let bytes = format!("-DBYTES={bytes}");
        let library = compile_with(&["-shared", "-fPIC", &bytes], &source, dir.path());
        let arguments = ["crowded", library.to_str().expect("UTF-8")];
        let ended = run(&mut dir.record(Driver::Threaded, &late, &arguments)).well();
        assert!(ended.text().starts_with("platforms "), "{}", ended.text());
        let recorded = calls(&dir, "clGetPlatformIDs");
        assert_eq!(recorded, 10, "{bytes}: {}", ended.stderr);
        std::fs::remove_file(dir.join("run.pftrace")).expect("the trace");
    }
}
