//! CUDA through stand-ins of libcuda and libcupti, which are made here from our own declarations and play the parts of
//! several versions with their faults. No GPU and no library of NVIDIA's takes part: that CUDA works is not shown here.

use std::path::PathBuf;
use std::process::Command;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::program::run;
use gputrail_harness::repository;

use crate::command::{TestDir, kernels, well};

/// The versions that the stand-in plays: of each change of a record that is read.
const VERSIONS: [&str; 7] = ["1108", "1201", "1209", "1300", "1301", "1303", "1305"];

/// The stand-ins and the program, compiled.
struct StandIns {
    dir: TestDir,
    program: PathBuf,
}

impl StandIns {
    fn new() -> StandIns {
        let dir = TestDir::new();
        let compile = |name: &str, to: &str, options: &[&str]| {
            let to = dir.join(to);
            let source = repository("tests/programs/cuda").join(name);
            let mut command = Command::new("cc");
            command.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-pthread"]);
            well(
                command
                    .args(options)
                    .arg("-o")
                    .arg(&to)
                    .arg(source)
                    .arg("-ldl"),
            );
            to
        };
        let library = ["-shared", "-fPIC"];
        compile("libcuda.c", "libcuda.so.1", &library);
        compile("libcupti.c", "libcupti.so.12", &library);
        let program = compile("program.c", "program", &[]);
        StandIns { dir, program }
    }

    /// `gputrail record` of the program, to `run.pftrace`.
    fn record(&self, version: &str, faults: &str, arguments: &[&str]) -> Command {
        self.record_with(&[], version, faults, arguments)
    }

    fn record_with(
        &self,
        options: &[&str],
        version: &str,
        faults: &str,
        arguments: &[&str],
    ) -> Command {
        let mut command = self.dir.gputrail(["record", "-o", "run.pftrace"]);
        command
            .args(options)
            .arg("--")
            .arg(&self.program)
            .args(arguments);
        self.prepare(&mut command, version, faults);
        command
    }

    fn prepare(&self, command: &mut Command, version: &str, faults: &str) {
        command
            .env("LD_LIBRARY_PATH", self.dir.path())
            .env("STANDIN_VERSION", version)
            .env("STANDIN_FAULT", faults);
    }
}

/// The number of calls of a function in the trace.
fn calls(trace: &mut gputrail_harness::trace::Trace, name: &str) -> i64 {
    trace.value(&format!("select count(*) from slice where name = '{name}'"))
}

#[test]
fn calls_kernels_copies_and_fills_are_recorded_by_each_version_of_the_stand_in() {
    needs!(calls_kernels_copies_and_fills_are_recorded_by_each_version_of_the_stand_in:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new();
    for version in VERSIONS {
        let ended = well(&mut stand_ins.record(version, "", &["10", "3"]));
        assert_eq!(ended.text(), "done\n", "{version}");
        let mut trace = stand_ins.dir.trace();
        trace.assert_sound();
        let counts = ["saxpy", "_Z5scalePff", "node", "fill"].map(|name| kernels(&mut trace, name));
        assert_eq!(counts, [30, 30, 9, 3], "{version}");
        let copies: i64 =
            trace.value("select count(*) from gpu_slice where name = 'copy host to device'");
        assert_eq!(copies, 3, "{version}");
        let of = [
            "cuLaunchKernel",
            "cudaLaunchKernel",
            "cuGraphLaunch",
            "cuInit",
        ]
        .map(|name| calls(&mut trace, name));
        assert_eq!(of, [63, 30, 3, 1], "{version}");
    }
}

#[test]
fn faults_of_cupti_neither_disturb_the_program_nor_pass_silently() {
    needs!(faults_of_cupti_neither_disturb_the_program_nor_pass_silently:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new();
    // The fault, kernels in the trace, calls of cuLaunchKernel in it, and words of the messages.
    let faults = [
        ("late", 5, 11, ""),
        ("foreign", 5, 11, ""),
        ("before", 5, 11, ""),
        (
            "dropped",
            5,
            11,
            "CUDA: 3 activity records were dropped by CUPTI",
        ),
        ("never", 0, 11, ""),
        (
            "subscribed",
            0,
            0,
            "another profiler observes CUDA in this process",
        ),
        ("unknown", 0, 0, "CUPTI status 999"),
    ];
    for version in ["1209", "1305"] {
        for (fault, of_kernel, of_calls, words) in faults {
            let ended = well(&mut stand_ins.record(version, fault, &["5"]));
            assert_eq!(ended.text(), "done\n", "{fault}");
            assert!(ended.stderr.contains(words), "{fault}: {}", ended.stderr);
            let mut trace = stand_ins.dir.trace();
            // What CUPTI has dropped is a loss of the trace, and nothing else is.
            let lost: i64 = trace.complaints().iter().map(|(_, lost)| lost).sum();
            assert_eq!(lost, if fault == "dropped" { 3 } else { 0 }, "{fault}");
            let counts = [
                kernels(&mut trace, "saxpy"),
                calls(&mut trace, "cuLaunchKernel"),
                kernels(&mut trace, "warm_up"),
            ];
            assert_eq!(counts, [of_kernel, of_calls, 0], "{fault} {version}");
        }
    }
}

#[test]
fn kernels_without_times_are_counted() {
    needs!(kernels_without_times_are_counted: Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new();
    well(&mut stand_ins.record("1209", "untimed", &["5"]));
    let mut trace = stand_ins.dir.trace();
    let longer: i64 = trace.value("select count(*) from gpu_slice where dur > 0");
    assert_eq!(longer, 0);
    let info = well(&mut stand_ins.dir.gputrail(["info", "run.pftrace"])).text();
    assert!(info.contains("activity records have no times"), "{info}");
}

#[test]
fn a_killed_program_leaves_what_cupti_had_delivered() {
    needs!(a_killed_program_leaves_what_cupti_had_delivered:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new();
    let ended = run(&mut stand_ins.record("1209", "", &["kill", "20"]));
    assert_eq!(ended.code(), 137, "{}", ended.stderr);
    let mut trace = stand_ins.dir.trace();
    trace.assert_sound();
    let counts = [
        kernels(&mut trace, "saxpy"),
        calls(&mut trace, "cuLaunchKernel"),
    ];
    assert_eq!(counts, [20, 41]);
}

#[test]
fn a_program_without_cuda_loads_nothing_and_another_library_is_initialised_too() {
    needs!(a_program_without_cuda_loads_nothing_and_another_library_is_initialised_too:
        Need::Program("cc"));
    let stand_ins = StandIns::new();
    let dir = &stand_ins.dir;
    let maps = "/proc/self/maps";
    let mut command = dir.gputrail(["record", "-o", "run.pftrace", "--", "cat", maps]);
    stand_ins.prepare(&mut command, "1209", "");
    let maps = well(&mut command).text();
    assert!(
        !maps.is_empty() && !maps.contains("gputrail") && !maps.contains("libcu"),
        "{maps}"
    );

    let (source, other) = (dir.join("other.c"), dir.join("other.so"));
    let text = "#include <stdio.h>\nint InitializeInjection(void) { puts(\"other\"); return 1; }\n";
    std::fs::write(&source, text).unwrap();
    let mut compiler = Command::new("cc");
    well(
        compiler
            .args(["-shared", "-fPIC", "-o"])
            .arg(&other)
            .arg(&source),
    );
    let mut command = stand_ins.record("1209", "", &["1"]);
    let ended = well(command.env("CUDA_INJECTION64_PATH", &other));
    assert_eq!(ended.text(), "other\ndone\n");
}

#[test]
fn a_forked_child_of_a_program_with_cuda_goes_on() {
    needs!(a_forked_child_of_a_program_with_cuda_goes_on:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new();
    well(&mut stand_ins.record("1300", "", &["fork"]));
    assert_eq!(kernels(&mut stand_ins.dir.trace(), "saxpy"), 2);
}
