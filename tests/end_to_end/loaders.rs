//! OpenCL loaders and implementations: programs on ocl-icd and on Khronos's loader, on PoCL, on Intel's implementation and on
//! Mesa's rusticl; and what is said of loaders that do not take the layer.

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::{Driver, Loader, Runtime, on, on_sycl};
use gputrail_harness::program::{Ended, compile_with, run};
use gputrail_harness::repository;

use crate::command::{TestDir, kernels, well};

/// Runs a program under `gputrail record`, with this loader and implementation.
#[track_caller]
fn recorded(
    dir: &TestDir,
    (loader, runtime): (Loader, Runtime),
    program: &str,
    arguments: &[&str],
) -> Ended {
    let program = dir.join(program);
    let mut command = dir.record(Driver::Threaded, program, arguments);
    run(on(&mut command, loader, runtime)).well()
}

/// What `timed` prints of its work: name, length, and whether it was computed rightly.
fn work_of(output: &str) -> Vec<(String, i64, i64)> {
    let lines = output.lines().filter(|line| !line.starts_with("late"));
    let read = lines.map(|line| {
        let mut words = line.split(' ');
        let mut next = || words.next().expect("three words");
        let (name, length, is_right) = (next(), next(), next());
        let number = |text: &str| text.parse().expect("a number");
        (name.to_owned(), number(length), number(is_right))
    });
    read.collect()
}

#[test]
fn work_lasts_as_long_in_the_trace_as_the_program_is_told_on_each_loader_and_implementation() {
    needs!(work_lasts_as_long_in_the_trace_as_the_program_is_told_on_each_loader_and_implementation:
        Need::Pocl, Need::Intel, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    dir.program("timed");
    for loader in [Loader::OclIcd, Loader::Khronos] {
        for runtime in [Runtime::Pocl, Runtime::Intel] {
            let ended = recorded(&dir, (loader, runtime), "timed", &["9", "late"]);
            let output = ended.text();
            // A call behind the handlers of exit, before the loader's own end.
            assert!(output.ends_with("late: 0\n"), "{output}");
            let told = work_of(&output);
            assert!(told.iter().all(|(.., is_right)| *is_right == 1), "{told:?}");
            let mut trace = dir.trace();
            trace.assert_sound();
            let sql = "select name, dur, 1 from gpu_slice order by ts";
            let traced: Vec<(String, i64, i64)> = trace.rows(sql);
            assert_eq!(
                traced.len(),
                told.len(),
                "{loader:?} {runtime:?}: {}",
                ended.stderr
            );
            for ((name, told, _), (traced_name, traced, _)) in told.iter().zip(&traced) {
                let is_same = match name.as_str() {
                    "read" => traced_name.starts_with("copy"),
                    name => name == traced_name,
                };
                assert!(is_same, "{name} is {traced_name}");
                // The clock of the device runs a little faster or slower than that of the trace.
                let tolerance = 1000 + told / 1000;
                assert!(
                    (traced - told).abs() <= tolerance,
                    "{name}: {traced}, not {told}"
                );
            }
            let late: i64 =
                trace.value("select count(*) from slice where name = 'clRetainContext'");
            assert_eq!(late, 1, "{loader:?} {runtime:?}");
            well(&mut dir.gputrail(["check", "run.pftrace"]));
        }
    }
}

#[test]
fn a_loader_may_be_closed_while_work_runs_and_opened_again() {
    needs!(a_loader_may_be_closed_while_work_runs_and_opened_again:
        Need::Pocl, Need::Intel, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let source = repository("tests/programs/reopened.c");
    compile_with(&["-Wl,--as-needed"], &source, dir.path());
    for loader in [Loader::OclIcd, Loader::Khronos] {
        let arguments = ["libOpenCL.so.1", "3"];
        let ended = recorded(&dir, (loader, Runtime::Pocl), "reopened", &arguments);
        assert!(ended.text().starts_with("sum 3, "), "{}", ended.text());
        assert_eq!(
            kernels(&mut dir.trace(), "work"),
            3,
            "{loader:?}: {}",
            ended.stderr
        );
    }
}

#[test]
fn a_program_may_end_while_work_runs_with_each_loader_and_implementation() {
    needs!(a_program_may_end_while_work_runs_with_each_loader_and_implementation:
        Need::Pocl, Need::Intel, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let source = repository("tests/programs/reopened.c");
    compile_with(&["-Wl,--as-needed"], &source, dir.path());
    for loader in [Loader::OclIcd, Loader::Khronos] {
        for runtime in [Runtime::Pocl, Runtime::Intel] {
            let arguments = ["libOpenCL.so.1", "1", "leave"];
            let ended = recorded(&dir, (loader, runtime), "reopened", &arguments);
            // It may have completed before the end, or not.
            let work = kernels(&mut dir.trace(), "work");
            assert_eq!(work, 1, "{loader:?} {runtime:?}: {}", ended.stderr);
            well(&mut dir.gputrail(["check", "run.pftrace"]));
        }
    }
}

#[test]
fn a_program_in_sycl_is_recorded_as_its_runtime_reports_it() {
    needs!(a_program_in_sycl_is_recorded_as_its_runtime_reports_it: Need::Intel, Need::TraceProcessor);
    let dir = TestDir::new();
    let program = repository("tests/programs/sycl.py");
    let arguments = ["-W", "ignore", program.to_str().expect("UTF-8")];
    let mut command = dir.record(Driver::Threaded, "python3", &arguments);
    // SYCL's own log of what it asks of its adapter for OpenCL.
    let ended = run(on_sycl(&mut command).env("SYCL_UR_TRACE", "2")).well();
    let output = ended.text();
    assert!(output.contains("\n200000000.0\n") && output.contains("\n40000\n"));
    let logged = |function: &str| output.matches(&format!("<--- {function}(")).count() as i64;
    let mut trace = dir.trace();
    trace.assert_sound();
    let all: i64 = trace.value("select count(*) from gpu_slice");
    let fills: i64 = trace.value("select count(*) from gpu_slice where name = 'fill'");
    let copies: i64 = trace.value("select count(*) from gpu_slice where name glob 'copy * to *'");
    assert_eq!(fills, logged("urEnqueueUSMFill"));
    assert_eq!(copies, logged("urEnqueueUSMMemcpy"));
    assert_eq!(all - fills - copies, logged("urEnqueueKernelLaunch"));
    // The compiler names kernels after types of C++; they are shown as C++ writes them.
    let mangled: i64 = trace.value("select count(*) from gpu_slice where name glob '_Z*'");
    assert_eq!(mangled, 0);
    let named: i64 =
        trace.value("select count(*) from gpu_slice where name glob '*sin_contig_kernel*'");
    assert_eq!(named, 10, "{}", ended.stderr);
}

#[test]
fn numbers_that_rusticl_gives_for_times_are_no_times() {
    needs!(numbers_that_rusticl_gives_for_times_are_no_times:
        Need::Rusticl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    dir.program("timed");
    let ended = recorded(&dir, (Loader::OclIcd, Runtime::Rusticl), "timed", &["9"]);
    let told = work_of(&ended.text());
    assert_eq!(told.len(), 11);
    if told.iter().any(|(_, length, _)| *length > 3) {
        let test = "numbers_that_rusticl_gives_for_times_are_no_times";
        gputrail_harness::machine::skipped(test, "this version of rusticl measures times");
        return;
    }
    let said = "11 operations of a device completed without times: the runtime gave none";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
    assert!(
        !ended.stderr.contains("clock is unknown"),
        "{}",
        ended.stderr
    );
    let mut trace = dir.trace();
    trace.assert_sound();
    let timed: i64 = trace.value("select count(*) from gpu_slice where dur > 0");
    assert_eq!(timed, 0);
    let summary = ["summary", "--format", "json", "run.pftrace"];
    let summary = well(&mut dir.gputrail(summary)).text();
    let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
    let kernels = summary["kernels"].as_array().expect("a table");
    let counted: i64 = kernels
        .iter()
        .filter_map(|kernel| kernel["count"].as_i64())
        .sum();
    let measured: i64 = kernels
        .iter()
        .filter_map(|kernel| kernel["total_ns"].as_i64())
        .sum();
    assert_eq!((counted, measured), (9, 0), "{summary:#}");
    let info = well(&mut dir.gputrail(["info", "run.pftrace"])).text();
    assert!(info.contains("11 operations"), "{info}");
    well(&mut dir.gputrail(["check", "run.pftrace"]));
}

/// A loader that asks the layers of OPENCL_LAYERS what they are, and takes none.
fn reluctant_loader(dir: &TestDir) -> String {
    let source = repository("tests/programs/reluctant_loader.c");
    let folder = dir.join("loader");
    std::fs::create_dir(&folder).expect("a folder");
    let options = ["-shared", "-fPIC", "-Wl,-soname,libOpenCL.so.1"];
    let library = compile_with(&options, &source, dir.path());
    std::fs::rename(library, folder.join("libOpenCL.so.1")).expect("the same disk");
    folder.into_os_string().into_string().expect("UTF-8")
}

#[test]
fn a_loader_that_does_not_take_the_layer_is_the_reason_however_short_the_program_is() {
    needs!(a_loader_that_does_not_take_the_layer_is_the_reason_however_short_the_program_is: Need::OpenClToolchain);
    let dir = TestDir::new();
    let source = repository("tests/programs/late.c");
    let late = compile_with(&["-Wl,--as-needed"], &source, dir.path());
    let loader = reluctant_loader(&dir);
    let mut command = dir.record(Driver::Threaded, &late, &["once"]);
    let ended = run(command.env("LD_LIBRARY_PATH", loader)).well();
    assert_eq!(ended.text(), "platforms 0\n");
    let said =
        "was not traced: its OpenCL loader has loaded our library and has not made it a layer";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
}

#[test]
fn a_program_with_process_ids_of_its_own_is_recorded_and_nothing_else_is_said() {
    needs!(a_program_with_process_ids_of_its_own_is_recorded_and_nothing_else_is_said:
        Need::Root, Need::Pocl, Need::OpenClToolchain, Need::Program("unshare"));
    let dir = TestDir::new();
    let program = dir.program("waits");
    let program = program.to_str().expect("UTF-8");
    let arguments = ["--pid", "--fork", "--mount-proc", program];
    let ended = run(&mut dir.record(Driver::Threaded, "unshare", &arguments)).well();
    assert!(ended.stderr.contains("kernel"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("was not traced"), "{}", ended.stderr);
}

#[test]
fn a_process_that_cannot_attach_is_told_so_and_so_is_the_user() {
    needs!(a_process_that_cannot_attach_is_told_so_and_so_is_the_user: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let source = repository("tests/programs/late.c");
    let late = compile_with(&["-Wl,--as-needed"], &source, dir.path());
    let ended = run(&mut dir.record(Driver::Threaded, late, &["shut-out"])).well();
    assert!(ended.text().starts_with("platforms "), "{}", ended.text());
    let own = "cannot reach the running gputrail";
    let said = "our library was loaded, but could not reach this gputrail";
    assert!(
        ended.stderr.contains(own) && ended.stderr.contains(said),
        "{}",
        ended.stderr
    );
}
