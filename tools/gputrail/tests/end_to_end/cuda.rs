//! CUDA through stand-ins of libcuda and libcupti, which are made here from our own declarations and play the parts of
//! several versions with their faults. No GPU and no library of NVIDIA's takes part: that CUDA works is not shown here.

use std::path::{Path, PathBuf};
use std::process::Command;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::program::{Ended, run};
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
    trace.value(&format!(
        "select count(*) from slice where name = '{name}' and cat like '%'"
    ))
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
        let counts = ["saxpy", "scale", "node", "memset"].map(|name| kernels(&mut trace, name));
        assert_eq!(counts[..3], [30, 30, 9], "{version}");
        let copies: i64 =
            trace.value("select count(*) from gpu_slice where name like '%host to device%'");
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
