//! The stand-in of rocprofiler-sdk with runtimes below it, which the tests of ROCm compile from our own declarations, its log, and
//! the records of a capture.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use gputrail_capture::{Metadata, Reader};
use gputrail_harness::repository;
use gputrail_record::{
    Activity, Allocation, Api, Completion, CorrelationId, KernelDispatch, MemoryCopy, MemorySet,
    Overhead, WorkId,
};

use crate::command::{TestDir, well};

/// The versions that the stand-in plays.
pub const VERSIONS: [u32; 5] = [500, 600, 10_000, 10_200, 10_300];
/// The newest of them.
pub const NEWEST: u32 = 10_300;
pub const RUNTIME: &str = "libamdhip64.so.6";

/// The stand-ins of one version and the program, compiled.
pub struct StandIns {
    dir: TestDir,
    pub program: PathBuf,
    version: u32,
}

impl StandIns {
    pub fn new(version: u32) -> StandIns {
        let dir = TestDir::new();
        let stand_ins = StandIns {
            program: dir.join("program"),
            dir,
            version,
        };
        let soname = stand_ins.soname();
        let sdk = [
            "sdk.c",
            "tracing.c",
            "sampling.c",
            "counting.c",
            "functions.c",
        ];
        stand_ins.library(&sdk, soname);
        stand_ins.library(&["runtime.c", "functions.c"], RUNTIME);
        stand_ins.compile(&["program.c"], &stand_ins.program, &[]);
        stand_ins
    }

    /// The name of the SDK's library.
    pub fn soname(&self) -> &'static str {
        match self.version < 10_000 {
            true => "librocprofiler-sdk.so.0",
            false => "librocprofiler-sdk.so.1",
        }
    }

    pub fn library(&self, sources: &[&str], name: &str) -> PathBuf {
        let (to, folder) = (self.dir.join(name), self.dir.path().display());
        let (soname, path) = (
            format!("-Wl,-soname,{name}"),
            format!("-Wl,-rpath,{folder}"),
        );
        let options = ["-shared", "-fPIC", &soname, &path];
        self.compile(sources, &to, &options);
        to
    }

    pub fn compile(&self, sources: &[&str], to: &Path, options: &[&str]) {
        let folder = repository("tests/programs/rocm");
        let mut command = Command::new("cc");
        command.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-pthread"]);
        command.arg(format!("-DVERSION={}", self.version));
        command.args(options).arg("-o").arg(to);
        command.args(sources.iter().map(|name| folder.join(name)));
        well(command.arg("-ldl"));
    }

    /// The directory with the stand-ins.
    pub fn dir(&self) -> &TestDir {
        &self.dir
    }

    /// `gputrail record` of the program, to `run.pftrace`.
    pub fn record(&self, options: &[&str], faults: &str, arguments: &[&str]) -> Command {
        let mut command = self.dir.gputrail(["record", "-o", "run.pftrace"]);
        command.args(options).arg("--").arg(&self.program);
        command.arg(self.dir.join(RUNTIME)).args(arguments);
        self.prepare(&mut command, faults);
        command
    }

    /// A command that finds the stand-in, whose log begins anew.
    pub fn prepare(&self, command: &mut Command, faults: &str) {
        let log = self.dir.join("log");
        let _ = std::fs::remove_file(&log);
        command
            .env("LD_LIBRARY_PATH", self.dir.path())
            .env("STANDIN_LOG", log)
            .env("STANDIN_FAULT", faults);
    }

    /// The log of the latest program.
    pub fn log(&self) -> Log {
        let text = std::fs::read_to_string(self.dir.join("log")).unwrap_or_default();
        let words = |line: &str| line.split(' ').map(str::to_owned).collect();
        Log(text.lines().map(words).collect())
    }
}

/// The stand-in's account of its deeds: words of lines.
pub struct Log(Vec<Vec<String>>);

impl Log {
    /// The lines of this kind, without it.
    pub fn of(&self, kind: &str) -> impl Iterator<Item = &[String]> {
        let lines = self.0.iter().filter(move |line| line[0] == kind);
        lines.map(|line| &line[1..])
    }
}

pub fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("no number: {word}"))
}

/// The records of a capture.
#[derive(Default)]
pub struct Recorded {
    pub metadata: Metadata,
    pub calls: Vec<Api>,
    /// The values of the arguments of calls, by name.
    pub arguments: Vec<(String, Vec<u64>)>,
    pub dispatches: Vec<KernelDispatch>,
    pub copies: Vec<MemoryCopy>,
    pub sets: Vec<MemorySet>,
    pub completions: BTreeMap<WorkId, Completion>,
    pub allocations: Vec<Allocation>,
    pub overheads: Vec<Overhead>,
}

impl Recorded {
    /// The records of the capture that `record --capture` left.
    pub fn of(dir: &TestDir) -> Recorded {
        let capture = dir.join("run.gputrail");
        let reader = Reader::open(&capture).expect("a capture");
        // The next recording would not replace it.
        std::fs::remove_file(&capture).expect("a capture");
        let mut recorded = Recorded {
            metadata: reader.metadata().clone(),
            ..Recorded::default()
        };
        let mut chunks = reader.chunks();
        while let Some(chunk) = chunks.next() {
            for record in chunk.records() {
                match record.activity() {
                    Activity::Api(call) => recorded.calls.push(*call),
                    Activity::KernelDispatch(one) => recorded.dispatches.push(*one),
                    Activity::MemoryCopy(one) => recorded.copies.push(*one),
                    Activity::MemorySet(one) => recorded.sets.push(*one),
                    Activity::Completion(one) => {
                        recorded.completions.insert(one.work, *one);
                    }
                    Activity::Allocation(one) => recorded.allocations.push(*one),
                    Activity::Overhead(one) => recorded.overheads.push(*one),
                    Activity::Arguments {
                        operation, values, ..
                    } => {
                        let name = recorded.metadata.operation(operation).to_string();
                        recorded.arguments.push((name, values.to_vec()));
                    }
                    _ => {}
                }
            }
        }
        recorded
    }

    /// The name of the call with this id; "-" if there is none.
    pub fn call(&self, id: CorrelationId) -> String {
        let call = self.calls.iter().find(|call| call.correlation == id);
        call.map_or("-".to_owned(), |call| {
            self.metadata.operation(call.operation).to_string()
        })
    }

    pub fn kernel(&self, dispatch: &KernelDispatch) -> &str {
        let kernel = &self.metadata.kernels[&dispatch.kernel];
        self.metadata.string(kernel.name)
    }

    /// The start and end of a piece of work, in the SDK's nanoseconds.
    pub fn times(&self, work: WorkId) -> (u64, u64) {
        let completion = &self.completions[&work];
        (completion.start.0, completion.end.0)
    }
}
