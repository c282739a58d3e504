//! The C API: programs in C and C++ that are linked with the library written by `gputrail library`.

use std::path::{Path, PathBuf};
use std::process::Command;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;
use gputrail_harness::repository;
use gputrail_harness::trace::Trace;

use crate::command::{TestDir, kernels, well};

const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-pedantic"];
/// A compiler of C.
pub const C: &[&str] = &["cc", "-std=c99", "-D_GNU_SOURCE"];
pub const CPP: &[&str] = &["c++", "-x", "c++"];

/// Writes the library and its header, and compiles a program of `tests/programs` with them.
fn linked(dir: &TestDir, compiler: &[&str], program: &str) -> PathBuf {
    let source = repository("tests/programs")
        .join(program)
        .with_extension("c");
    compiled(dir, compiler, &[], &source, program)
}

/// Compiles any source, to a file in this directory.
pub fn compiled(
    dir: &TestDir,
    compiler: &[&str],
    options: &[&str],
    source: &Path,
    output: &str,
) -> PathBuf {
    let library = dir.join("libgputrail.so.0");
    if !library.exists() {
        well(&mut dir.gputrail(["library", "libgputrail.so.0", "--header", "gputrail.h"]));
    }
    let output = dir.join(output);
    let mut command = Command::new(compiler[0]);
    command
        .args(&compiler[1..])
        .args(STRICT)
        .args(options)
        .arg("-I")
        .arg(dir.path())
        .arg("-o")
        .arg(&output)
        .arg(source)
        .arg("-L")
        .arg(dir.path())
        .args(["-l:libgputrail.so.0", "-lOpenCL", "-lpthread"])
        .arg("-Wl,-rpath,$ORIGIN");
    run(&mut command).well();
    output
}

#[test]
fn every_misuse_has_its_status_in_c_and_in_cpp() {
    needs!(every_misuse_has_its_status_in_c_and_in_cpp: Need::OpenClToolchain);
    let dir = TestDir::new();
    for compiler in [C, CPP] {
        let program = linked(&dir, compiler, "c_api");
        let ended = run(&mut dir.untraced(Driver::Threaded, &program, &[])).well();
        assert!(ended.text().starts_with("passed"), "{}", ended.text());
        assert_eq!(ended.stderr, "");
    }
}

#[test]
fn every_error_that_a_function_documents_is_seen() {
    needs!(every_error_that_a_function_documents_is_seen: Need::OpenClToolchain);
    let dir = TestDir::new();
    for compiler in [C, CPP] {
        let program = linked(&dir, compiler, "c_api_errors");
        let ended = run(&mut dir.untraced(Driver::Threaded, &program, &[])).well();
        assert_eq!(ended.text(), "passed\n");
        assert_eq!(ended.stderr, "");
    }

    // These statuses do not occur in the C programs: the system refuses memory or a thread, the process is ending, or
    // another test covers them.
    let elsewhere = |function: &str, status: &str| {
        let of_the_system = ["OUT_OF_MEMORY", "NO_THREAD", "NOT_AVAILABLE"];
        let of_recordings = function.starts_with("gputrail_recording_");
        of_the_system.contains(&status)
            || (of_recordings && ["STARTED", "STOPPED"].contains(&status))
            // `sampling::under_a_debugger_there_is_no_sampling_and_it_is_named`
            || (function, status) == ("gputrail_sampling_configurations", "SAMPLING_NOT_AVAILABLE")
            // `tools::a_library_that_is_not_a_tool_is_named_before_the_program_runs`
            || (function, status) == ("gputrail_tool_probe", "WRONG_SIZE")
            // The machine of the tests has a loader of OpenCL.
            || (function, status) == ("gputrail_find_agents", "NOT_FOUND")
            // The maximum number of each kind of object is exceeded.
            || (function, status) == ("gputrail_buffer_create", "TOO_MANY")
            // No agent has counters for more passes than it can do.
            || (function, status) == ("gputrail_counter_sessions_passes", "INVALID_ARGUMENT")
    };
    let programs = std::fs::read_dir(repository("tests/programs")).expect("a folder");
    let programs = programs.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
    let programs: String = programs.collect();
    let header = std::fs::read_to_string(dir.join("gputrail.h")).expect("the header");
    let mut documented = 0;
    let mut unseen = Vec::new();
    for comment in header.split("/*") {
        let Some((text, code)) = comment.split_once("*/") else {
            continue;
        };
        let function = code.trim_start().strip_prefix("gputrail_status ");
        let function = function.and_then(|code| code.split_once('('));
        let (Some((function, _)), Some((_, errors))) = (function, text.split_once("Errors:"))
        else {
            continue;
        };
        let calls: Vec<&str> = programs
            .split(&format!("{function}("))
            .skip(1)
            .filter_map(|call| call.split(';').next())
            .collect();
        for status in errors.split("GPUTRAIL_").skip(1) {
            let is_name = |letter: char| letter.is_ascii_uppercase() || letter == '_';
            let status = &status[..status
                .find(|letter| !is_name(letter))
                .unwrap_or(status.len())];
            documented += 1;
            let name = format!("GPUTRAIL_{status}");
            if !calls.iter().any(|call| call.contains(&name)) && !elsewhere(function, status) {
                unseen.push((function, status));
            }
        }
    }
    assert!(documented > 200, "{documented}");
    assert!(unseen.is_empty(), "{unseen:#?}");
}

#[test]
fn a_program_without_a_gpu_runs_and_observes_the_simulated_one() {
    needs!(a_program_without_a_gpu_runs_and_observes_the_simulated_one: Need::OpenClToolchain);
    let dir = TestDir::new();
    for compiler in [C, CPP] {
        let program = linked(&dir, compiler, "c_api_simulation");
        let ended = run(&mut dir.untraced(Driver::Threaded, &program, &[])).well();
        assert_eq!(ended.text(), "passed\n");
    }
}

#[test]
fn calls_of_the_simulated_gpu_come_from_threads_of_the_program() {
    needs!(calls_of_the_simulated_gpu_come_from_threads_of_the_program: Need::OpenClToolchain);
    let dir = TestDir::new();
    for compiler in [C, CPP] {
        let program = linked(&dir, compiler, "c_api_threads");
        let ended = run(&mut dir.untraced(Driver::Threaded, &program, &[])).well();
        assert_eq!(ended.text(), "passed\n");
    }
}

#[test]
fn joined_records_are_in_nanoseconds_flagged_where_times_are_missing_and_fit_any_memory() {
    needs!(joined_records_are_in_nanoseconds_flagged_where_times_are_missing_and_fit_any_memory: Need::OpenClToolchain);
    let dir = TestDir::new();
    for compiler in [C, CPP] {
        let program = linked(&dir, compiler, "c_api_joined");
        let ended = run(&mut dir.untraced(Driver::Threaded, &program, &[])).well();
        assert_eq!(ended.text(), "passed\n");
    }
}

#[test]
fn a_forced_flush_and_the_end_tell_of_kernels_that_have_not_completed() {
    needs!(a_forced_flush_and_the_end_tell_of_kernels_that_have_not_completed: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    for compiler in [C, CPP] {
        let program = linked(&dir, compiler, "c_api_pending");
        let ended = run(&mut dir.untraced(Driver::Threaded, &program, &[])).well();
        assert_eq!(ended.text(), "passed\n");
        assert_eq!(ended.stderr, "");
    }
}

#[test]
fn a_program_that_is_linked_with_the_library_observes_itself() {
    needs!(a_program_that_is_linked_with_the_library_observes_itself: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    for compiler in [C, CPP] {
        let program = linked(&dir, compiler, "c_api_opencl");
        let ended = run(&mut dir.untraced(Driver::Threaded, &program, &[])).well();
        assert_eq!(ended.text(), "passed: 20 kernels\n");
        assert_eq!(ended.stderr, "");
    }
}

#[test]
fn everything_works_in_the_callbacks_that_an_end_causes() {
    needs!(everything_works_in_the_callbacks_that_an_end_causes: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = linked(&dir, C, "c_api_ends");
    for end in ["finalise", "destroy"] {
        let ended = run(&mut dir.untraced(Driver::Threaded, &program, &[end])).well();
        assert_eq!(
            (ended.text().as_str(), ended.stderr.as_str()),
            ("passed\n", ""),
            "{end}"
        );
    }
}

#[test]
fn opencl_that_has_been_used_can_no_longer_be_observed() {
    needs!(opencl_that_has_been_used_can_no_longer_be_observed: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = linked(&dir, C, "c_api_ends");
    let ended = run(&mut dir.untraced(Driver::Threaded, &program, &["late"])).well();
    assert_eq!(ended.text(), "passed\n");
}

#[test]
fn a_program_that_finalises_leaves_the_tools_beside_it_alone() {
    needs!(a_program_that_finalises_leaves_the_tools_beside_it_alone: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = linked(&dir, C, "c_api_ends");
    let tool = crate::tools::example(&dir, "copy_bandwidth");
    let mut command = dir.untraced(Driver::Threaded, &program, &["twice"]);
    let ended = run(command.env("GPUTRAIL_TOOLS", tool)).well();
    assert_eq!(ended.text(), "passed\n");
    let total = ended
        .stderr
        .lines()
        .find(|line| line.starts_with("in total: device to host"));
    assert!(
        total.is_some_and(|line| line.contains("20 copies")),
        "{}",
        ended.stderr
    );
}

#[test]
fn records_in_memory_that_a_program_supplies_are_all_accounted_for() {
    needs!(records_in_memory_that_a_program_supplies_are_all_accounted_for: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    for compiler in [C, CPP] {
        let program = linked(&dir, compiler, "c_api_memory");
        let ended = run(&mut dir.untraced(Driver::Threaded, &program, &[])).well();
        assert_eq!(ended.text(), "passed: 1200 launches\n");
        assert_eq!(ended.stderr, "");
    }
}

#[test]
fn a_program_samples_its_own_kernels() {
    needs!(a_program_samples_its_own_kernels: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    for compiler in [C, CPP] {
        let program = linked(&dir, compiler, "c_api_sampling");
        for driver in [Driver::Basic, Driver::Threaded] {
            let ended = run(&mut dir.untraced(driver, &program, &[])).well();
            assert_eq!(ended.text(), "passed\n");
            assert_eq!(ended.stderr, "");
        }
        // Where the system forbids it, a status of its own says so.
        let mut sandboxed = dir.untraced(Driver::Basic, dir.program("no_perf_events"), &[]);
        let ended = run(sandboxed.arg(&program).arg("forbidden")).well();
        assert_eq!(ended.text(), "passed\n");
    }
}

#[test]
fn a_program_counts_what_its_own_kernels_do() {
    needs!(a_program_counts_what_its_own_kernels_do: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    for compiler in [C, CPP] {
        let program = linked(&dir, compiler, "c_api_counting");
        for driver in [Driver::Basic, Driver::Threaded] {
            let ended = run(&mut dir.untraced(driver, &program, &[])).well();
            assert_eq!(ended.text(), "passed\n");
            assert_eq!(ended.stderr, "");
        }
    }
}

#[test]
fn a_program_starts_stops_reads_and_resets_groups_of_counters() {
    needs!(a_program_starts_stops_reads_and_resets_groups_of_counters: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    for compiler in [C, CPP] {
        let program = linked(&dir, compiler, "c_api_counter_groups");
        for driver in [Driver::Basic, Driver::Threaded] {
            let ended = run(&mut dir.untraced(driver, &program, &[])).well();
            assert_eq!(ended.text(), "passed\n");
            assert_eq!(ended.stderr, "");
        }
    }
}

#[test]
fn a_program_chooses_the_counters_of_each_kernel() {
    needs!(a_program_chooses_the_counters_of_each_kernel: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    for compiler in [C, CPP] {
        let program = linked(&dir, compiler, "c_api_counter_sets");
        for driver in [Driver::Basic, Driver::Threaded] {
            let ended = run(&mut dir.untraced(driver, &program, &[])).well();
            assert_eq!(ended.text(), "passed\n");
            assert_eq!(ended.stderr, "");
        }
    }
}

#[test]
fn a_program_counts_in_sessions_passes_and_samples() {
    needs!(a_program_counts_in_sessions_passes_and_samples: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    for compiler in [C, CPP] {
        let program = linked(&dir, compiler, "c_api_counter_sessions");
        for driver in [Driver::Basic, Driver::Threaded] {
            let ended = run(&mut dir.untraced(driver, &program, &[])).well();
            assert_eq!(ended.text(), "passed\n");
            assert_eq!(ended.stderr, "");
        }
    }
}

#[test]
fn a_program_counts_kernels_in_entries_of_a_pool() {
    needs!(a_program_counts_kernels_in_entries_of_a_pool: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    for compiler in [C, CPP] {
        let program = linked(&dir, compiler, "c_api_counter_pools");
        let ended = run(&mut dir.untraced(Driver::Basic, &program, &[])).well();
        assert_eq!(ended.text(), "passed\n");
        assert_eq!(ended.stderr, "");
    }
}

#[test]
fn a_program_gets_the_messages_of_the_kinds_that_it_chooses() {
    needs!(a_program_gets_the_messages_of_the_kinds_that_it_chooses: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    for compiler in [C, CPP] {
        let program = linked(&dir, compiler, "c_api_log");
        let ended = run(&mut dir.untraced(Driver::Basic, &program, &[])).well();
        assert_eq!(ended.text(), "passed\n");
        assert_eq!(ended.stderr, "");
    }
}

#[test]
fn a_program_that_observes_itself_is_recorded_as_well() {
    needs!(a_program_that_observes_itself_is_recorded_as_well:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let program = linked(&dir, C, "c_api_opencl");
    let ended = well(&mut dir.record_with(&["-q"], Driver::Threaded, &program, &[]));
    assert_eq!(ended.text(), "passed: 20 kernels\n");
    let mut trace = dir.trace();
    trace.assert_sound();
    assert_eq!(kernels(&mut trace, "triple"), 20, "each kernel once");
    let slices = |trace: &mut Trace, name: &str| -> i64 {
        trace.value(&format!("select count(*) from slice where name = '{name}'"))
    };
    for (name, count) in [
        ("rounds", 1),
        ("seven", 1),
        // That of the flush that synchronises; the other one comes while the recording is stopped.
        ("clReleaseMemObject", 1),
        ("clFinish", 22),
    ] {
        assert_eq!(slices(&mut trace, name), count, "{name}");
    }
    let during: i64 = trace.value(
        "select count(*) from slice call, slice range where range.name = 'rounds' and call.name = 'clFinish'
         and call.ts >= range.ts and call.ts + call.dur <= range.ts + range.dur",
    );
    assert_eq!(during, 20);
    let overheads = trace.rows::<(String,)>(
        "select distinct name from slice where category = 'overhead' order by name",
    );
    let overheads: Vec<String> = overheads.into_iter().map(|(name,)| name).collect();
    assert_eq!(
        overheads,
        [
            "collector resources",
            "compilation",
            "flush",
            "instrumentation"
        ]
    );
}

#[test]
fn a_recorded_call_with_a_callback_makes_no_system_call() {
    needs!(a_recorded_call_with_a_callback_makes_no_system_call:
        Need::OpenClToolchain, Need::Pocl, Need::Program("strace"));
    let dir = TestDir::new();
    let program = linked(&dir, C, "c_api_hot");
    // Those of the calling thread alone: others look at buffers from time to time.
    let system_calls = |calls: u32| -> usize {
        let mut command = dir.untraced(Driver::Threaded, "strace", &["-qq", "-o", "calls"]);
        command.arg(&program).arg(calls.to_string());
        let said = format!("{} callbacks with a context, all recorded\n", 2 * calls);
        assert_eq!(run(&mut command).well().text(), said);
        let calls = std::fs::read_to_string(dir.join("calls")).unwrap();
        calls.lines().count()
    };
    // The first run compiles the kernel.
    system_calls(1);
    let (few, many) = (system_calls(100), system_calls(20_100));
    assert!(many < few + 2_000, "{few} and {many}");
}
