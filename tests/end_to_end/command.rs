//! The command under test, and the programs it records.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use gputrail_harness::pocl::{Driver, on_pocl};
use gputrail_harness::program::{Ended, compile, compile_with, run};
use gputrail_harness::repository;
use gputrail_harness::trace::Trace;
use tempfile::TempDir;

/// A directory for the files of one test.
pub struct TestDir {
    folder: TempDir,
}

/// Has the signals that end a program end those that the tests start: a shell without a terminal ignores some of them in
/// what it runs in the background, and programs inherit that.
fn end_by_signals() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: the default action, which these tests never replace.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// The dynamic loader of this process: it can be called as a program, with the program to load.
fn dynamic_loader() -> PathBuf {
    let mappings =
        std::fs::read_to_string("/proc/self/maps").expect("the mappings of this process");
    let mut files = mappings
        .lines()
        .filter_map(|line| Some(&line[line.find('/')?..]));
    let loader = files.find(|file| file.contains("/ld-linux"));
    loader.expect("a dynamic loader").into()
}

impl TestDir {
    pub fn new() -> Self {
        end_by_signals();
        let folder = tempfile::Builder::new()
            .prefix("gputrail-test-")
            .tempdir()
            .expect("a folder for the test");
        Self { folder }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `gputrail` with arguments, in this directory, without our variables in its environment.
    pub fn gputrail<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gputrail"));
        command.args(arguments);
        self.prepare(&mut command);
        command
    }

    /// A program on PoCL, untraced.
    pub fn untraced(
        &self,
        driver: Driver,
        program: impl AsRef<OsStr>,
        arguments: &[&str],
    ) -> Command {
        let mut command = Command::new(program);
        command.args(arguments);
        self.prepare(&mut command);
        on_pocl(&mut command, driver);
        command
    }

    /// A program on PoCL, untraced, with a library preloaded into it alone. `LD_PRELOAD` would be inherited by programs that it
    /// starts: by the linker, say, which PoCL starts for a kernel that is not in its cache, so that what the library prints
    /// would depend on what has run before. The cache of these kernels is empty: each such run starts the linker.
    pub fn preloaded(
        &self,
        driver: Driver,
        library: impl AsRef<OsStr>,
        program: impl AsRef<OsStr>,
        arguments: &[&str],
    ) -> Command {
        let mut command = self.untraced(driver, dynamic_loader(), &[]);
        command.arg("--preload").arg(library);
        command.arg(program).args(arguments);
        let cache = tempfile::tempdir_in(self.path()).expect("a folder for kernels");
        command.env("POCL_CACHE_DIR", cache.keep());
        command
    }

    /// `gputrail record` of a program on PoCL, to `run.pftrace`.
    pub fn record(
        &self,
        driver: Driver,
        program: impl AsRef<OsStr>,
        arguments: &[&str],
    ) -> Command {
        self.record_with(&[], driver, program, arguments)
    }

    /// `gputrail record` of a program on PoCL, to `run.pftrace`, with options.
    pub fn record_with(
        &self,
        options: &[&str],
        driver: Driver,
        program: impl AsRef<OsStr>,
        arguments: &[&str],
    ) -> Command {
        let mut command = self.gputrail(["record", "-o", "run.pftrace"]);
        command.args(options).arg("--").arg(program).args(arguments);
        on_pocl(&mut command, driver);
        command
    }

    fn prepare(&self, command: &mut Command) {
        for (name, _) in std::env::vars_os() {
            let ours = name.to_string_lossy().starts_with("GPUTRAIL_");
            let others = [
                "CUDA_INJECTION64_PATH",
                "NVTX_INJECTION64_PATH",
                "OPENCL_LAYERS",
                "ROCP_TOOL_LIBRARIES",
            ];
            if ours || others.iter().any(|other| name == *other) {
                command.env_remove(name);
            }
        }
        // Not the user's own cache, in which the library is kept from one recording to the next.
        command.env(
            "XDG_CACHE_HOME",
            concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"),
        );
        command.current_dir(self.path());
    }

    /// A C program of `tests/programs`, compiled here.
    pub fn program(&self, name: &str) -> PathBuf {
        compile(
            &repository("tests/programs").join(name).with_extension("c"),
            self.path(),
        )
    }

    /// A C library of `tests/programs`, compiled here.
    pub fn library(&self, name: &str) -> String {
        let source = repository("tests/programs").join(name).with_extension("c");
        let library = compile_with(&["-shared", "-fPIC"], &source, self.path());
        library.into_os_string().into_string().expect("UTF-8")
    }

    /// The trace of [`TestDir::record`].
    #[track_caller]
    pub fn trace(&self) -> Trace {
        Trace::open(self.join("run.pftrace"))
    }

    /// The names of the files in this directory that end in `suffix`, sorted.
    pub fn files(&self, suffix: &str) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.path())
            .expect("the test's folder")
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .filter(|name| name.ends_with(suffix))
            .collect();
        names.sort();
        names
    }
}

/// The number of runs of a kernel in the trace.
pub fn kernels(trace: &mut Trace, name: &str) -> i64 {
    trace.value(&format!(
        "select count(*) from gpu_slice where name = '{name}'"
    ))
}

/// Runs a command and checks that it ends with exit code 0.
#[track_caller]
pub fn well(command: &mut Command) -> Ended {
    run(command).well()
}
