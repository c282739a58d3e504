//! Samples and counters of rocprofiler-sdk by its own names: programs and tools in C that know it alone.

use std::path::PathBuf;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;
use gputrail_harness::repository;

use crate::abi_rocprofiler_sdk::{C11, ROCPROFILER_SDK};
use crate::c_api::{C, compiled};
use crate::command::TestDir;

/// A program that is its own tool, which the library looks for.
fn program(dir: &TestDir, name: &str) -> PathBuf {
    let compiler = [C, C11, &["-rdynamic"]].concat();
    let source = format!("tests/programs/abi/rocprofiler_sdk_{name}.c");
    ROCPROFILER_SDK.program(dir, &compiler, &source, true)
}

/// A tool of the simulated GPU, which says at the end what it has seen.
fn said_of_the_demo(what: &[&str]) -> String {
    let dir = TestDir::new();
    let library = ROCPROFILER_SDK.library(&dir);
    let include = repository("tools/abi/rocprofiler-sdk/include");
    let include = format!("-I{}", include.display());
    let mut options = vec!["-shared", "-fPIC", "-Wl,--as-needed", &include];
    options.extend(what);
    let source = repository("tests/programs/abi/rocprofiler_sdk_services_tool.c");
    let tool = compiled(
        &dir,
        &[C, C11].concat(),
        &options,
        &source,
        "libservices.so",
    );
    let options = [
        "demo",
        "-q",
        "--steps",
        "1",
        "--tool",
        library.to_str().unwrap(),
    ];
    let mut command = dir.gputrail(options);
    let ended = run(command.env("ROCP_TOOL_LIBRARIES", tool)).well();
    assert_eq!(ended.stderr, "");
    ended.text()
}

#[test]
fn kernels_are_sampled_as_rocprofiler_sdks_document_says() {
    needs!(kernels_are_sampled_as_rocprofiler_sdks_document_says: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = program(&dir, "sampling");
    for arguments in [&[][..], &["called"]] {
        for driver in [Driver::Basic, Driver::Threaded] {
            let ended = run(&mut dir.untraced(driver, &program, arguments));
            assert_eq!(
                (ended.text().as_str(), ended.stderr.as_str()),
                ("passed\n", ""),
                "{arguments:?}"
            );
            ended.well();
        }
    }
    // Where the system forbids it, a status of its own says so.
    let mut sandboxed = dir.untraced(Driver::Basic, dir.program("no_perf_events"), &[]);
    let ended = run(sandboxed.arg(&program).arg("forbidden"));
    assert_eq!(ended.text(), "passed\n");
    ended.well();
}

#[test]
fn counters_of_dispatches_and_devices_are_as_rocprofiler_sdks_document_says() {
    needs!(counters_of_dispatches_and_devices_are_as_rocprofiler_sdks_document_says:
        Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = program(&dir, "counting");
    for arguments in [&[][..], &["called"]] {
        for driver in [Driver::Basic, Driver::Threaded] {
            let ended = run(&mut dir.untraced(driver, &program, arguments));
            assert_eq!(ended.text(), "passed\n", "{arguments:?}");
            // One expression cannot be understood.
            assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
            ended.well();
        }
    }
}

#[test]
fn a_tool_of_rocprofiler_sdk_samples_the_simulated_gpu_by_both_methods() {
    needs!(a_tool_of_rocprofiler_sdk_samples_the_simulated_gpu_by_both_methods: Need::OpenClToolchain);
    let said = said_of_the_demo(&["-DSAMPLING", "-DHOST_TRAP"]);
    assert_eq!(said, "sampling: many by host trap, 0 others, 0 bad\n");
    let said = said_of_the_demo(&["-DSAMPLING"]);
    let expected = "sampling: many stochastic, 0 others, some issued, several reasons, memory counters, 0 bad\n";
    assert_eq!(said, expected);
}

#[test]
fn a_tool_of_rocprofiler_sdk_sees_the_streams_and_statuses_of_the_simulated_gpu() {
    needs!(a_tool_of_rocprofiler_sdk_sees_the_streams_and_statuses_of_the_simulated_gpu: Need::OpenClToolchain);
    let said = said_of_the_demo(&["-DCALLS"]);
    assert_eq!(said, "calls: streams, sets, results, memory, 0 bad\n");
}

#[test]
fn a_tool_of_rocprofiler_sdk_counts_each_instance_of_the_simulated_gpu() {
    needs!(a_tool_of_rocprofiler_sdk_counts_each_instance_of_the_simulated_gpu: Need::OpenClToolchain);
    assert_eq!(
        said_of_the_demo(&[]),
        "counting: many dispatches, waves, 0 bad\n"
    );
    assert_eq!(
        said_of_the_demo(&["-DDEVICES"]),
        "device: samples, waves, 0 bad\n"
    );
}
