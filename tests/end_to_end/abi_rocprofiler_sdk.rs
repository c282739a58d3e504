//! rocprofiler-sdk by its own names: programs and tools in C that know it alone.

use std::path::PathBuf;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;
use gputrail_harness::repository;

use crate::abi::Abi;
use crate::c_api::{C, compiled};
use crate::command::TestDir;

pub const ROCPROFILER_SDK: Abi = Abi {
    name: "rocprofiler-sdk",
    library: "librocprofiler-sdk.so.1",
};

/// The headers have unions without names.
pub const C11: &[&str] = &["-std=c11"];

/// A tool that is called `name`, which says at the end what it has counted.
fn tool(dir: &TestDir, name: &str) -> PathBuf {
    let include = repository("tools/abi/rocprofiler-sdk/include");
    let (include, called) = (
        format!("-I{}", include.display()),
        format!("-DNAME=\"{name}\""),
    );
    let options = ["-shared", "-fPIC", "-Wl,--as-needed", &include, &called];
    let source = repository("tests/programs/abi/rocprofiler_sdk_tool.c");
    compiled(
        dir,
        &[C, C11].concat(),
        &options,
        &source,
        &format!("lib{name}.so"),
    )
}

/// The words of a tool about `kernels` kernels, as the client at a place.
fn said(name: &str, place: u32, kernels: u32) -> String {
    format!(
        "{name} {place}: {kernels} kernels, 0 copies, some symbols, as many calls as callbacks, 0 bad\n"
    )
}

#[test]
fn every_function_of_rocprofiler_sdk_answers_as_its_document_says() {
    needs!(every_function_of_rocprofiler_sdk_answers_as_its_document_says: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    // The program is its own tool, which the library looks for.
    let compiler = [C, C11, &["-rdynamic"]].concat();
    let source = "tests/programs/abi/rocprofiler_sdk.c";
    let program = ROCPROFILER_SDK.program(&dir, &compiler, source, true);
    for arguments in [&[][..], &["force"]] {
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
}

/// Runs a program that is its own tool, and prints that it has passed.
fn passes(source: &str) {
    let dir = TestDir::new();
    let compiler = [C, C11, &["-rdynamic"]].concat();
    let program = ROCPROFILER_SDK.program(&dir, &compiler, source, true);
    for driver in [Driver::Basic, Driver::Threaded] {
        let ended = run(&mut dir.untraced(driver, &program, &[]));
        assert_eq!(
            (ended.text().as_str(), ended.stderr.as_str()),
            ("passed\n", "")
        );
        ended.well();
    }
}

#[test]
fn markers_have_the_same_ids_in_callbacks_and_records_of_rocprofiler_sdk() {
    needs!(markers_have_the_same_ids_in_callbacks_and_records_of_rocprofiler_sdk: Need::Pocl, Need::OpenClToolchain);
    passes("tests/programs/abi/rocprofiler_sdk_markers.c");
}

#[test]
fn what_begins_has_an_end_in_callbacks_of_rocprofiler_sdk_also_if_it_is_refused() {
    needs!(what_begins_has_an_end_in_callbacks_of_rocprofiler_sdk_also_if_it_is_refused: Need::Pocl, Need::OpenClToolchain);
    passes("tests/programs/abi/rocprofiler_sdk_ends.c");
}

#[test]
fn tools_of_rocprofiler_sdk_are_loaded_in_their_order_into_programs_that_know_nothing_of_it() {
    needs!(tools_of_rocprofiler_sdk_are_loaded_in_their_order_into_programs_that_know_nothing_of_it:
        Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let library = ROCPROFILER_SDK.library(&dir);
    let (first, second) = (tool(&dir, "first"), tool(&dir, "second"));
    let program = dir.program("lives");
    // A colon behind the last one is no further tool.
    let named = format!(
        "{}:/nowhere/libtool.so:{}:",
        first.display(),
        second.display()
    );
    let mut command = dir.preloaded(Driver::Threaded, &library, &program, &["20"]);
    let ended = run(command.env("ROCP_TOOL_LIBRARIES", &named)).well();
    let text = ended.text();
    let expected = said("first", 0, 20) + &said("second", 1, 20);
    assert!(text.ends_with(&expected), "{text}");
    let told = "librocprofiler-sdk: ROCP_TOOL_LIBRARIES: /nowhere/libtool.so: ";
    assert!(ended.stderr.starts_with(told), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);

    // As a tool of a recording.
    let options = ["-q", "--tool", library.to_str().unwrap()];
    let mut command = dir.record_with(&options, Driver::Threaded, &program, &["20"]);
    let text = run(command.env("ROCP_TOOL_LIBRARIES", &second))
        .well()
        .text();
    assert!(text.ends_with(&said("second", 0, 20)), "{text}");
}

#[test]
fn a_tool_of_rocprofiler_sdk_counts_on_the_simulated_gpu() {
    needs!(a_tool_of_rocprofiler_sdk_counts_on_the_simulated_gpu: Need::OpenClToolchain);
    let dir = TestDir::new();
    let library = ROCPROFILER_SDK.library(&dir);
    let options = [
        "demo",
        "-q",
        "--steps",
        "1",
        "--tool",
        library.to_str().unwrap(),
    ];
    let mut command = dir.gputrail(options);
    let ended = run(command.env("ROCP_TOOL_LIBRARIES", tool(&dir, "simulated"))).well();
    let text = ended.text();
    assert!(text.starts_with("simulated 0: "), "{text}");
    assert!(
        text.ends_with("as many calls as callbacks, 0 bad\n"),
        "{text}"
    );
    assert!(
        !text.contains(" 0 kernels") && !text.contains(" 0 copies"),
        "{text}"
    );
}

#[test]
fn without_gputrails_library_rocprofiler_sdk_says_what_to_do() {
    needs!(without_gputrails_library_rocprofiler_sdk_says_what_to_do: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let library = ROCPROFILER_SDK.library(&dir);
    let tool = tool(&dir, "alone");
    let program = dir.program("lives");
    std::fs::remove_file(dir.join("libgputrail.so.0")).unwrap();
    let mut command = dir.untraced(Driver::Threaded, &program, &["20"]);
    command
        .env("LD_PRELOAD", &library)
        .env("LD_LIBRARY_PATH", dir.path())
        .env("ROCP_TOOL_LIBRARIES", tool);
    let ended = run(&mut command).well();
    let told = "librocprofiler-sdk: libgputrail.so.0 is not found (";
    assert!(ended.stderr.starts_with(told), "{}", ended.stderr);
    assert!(!ended.text().contains("alone"), "{}", ended.text());
}
