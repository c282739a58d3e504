//! Running programs: with their output kept, their exit code or signal, and a time limit.

use std::io::Read;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A time limit that no test program reaches on the slowest machine unless it hangs.
const PATIENCE: Duration = Duration::from_secs(600);

/// The end and the output of a program.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code or signal.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: String,
}

impl Ended {
    /// The exit code, as a shell gives it: 128 and the signal's number after a death by signal.
    pub fn code(&self) -> i32 {
        let status = self.status;
        status
            .code()
            .unwrap_or_else(|| 128 + status.signal().expect("ended by exit or by signal"))
    }

    /// The signal that ended the program.
    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// The standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Checks that the program ended with exit code 0, and returns `self`.
    #[track_caller]
    pub fn well(self) -> Self {
        assert!(
            self.status.success(),
            "{}\n{}\n{}",
            self.status,
            self.text(),
            self.stderr
        );
        self
    }
}

/// A running program whose output is being collected.
pub struct Running {
    child: Child,
    stdout: thread::JoinHandle<Vec<u8>>,
    stderr: thread::JoinHandle<Vec<u8>>,
    name: String,
}

impl Running {
    /// Starts a program with an empty standard input.
    pub fn start(command: &mut Command) -> Self {
        let name = format!("{command:?}");
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let stdout = collect(child.stdout.take().expect("piped"));
        let stderr = collect(child.stderr.take().expect("piped"));
        Self {
            child,
            stdout,
            stderr,
            name,
        }
    }

    /// The process's id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the program has ended already.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("the child is ours").is_some()
    }

    /// Waits until the program has ended.
    pub fn end(mut self) -> Ended {
        let patience = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("the child is ours") {
                break status;
            }
            if Instant::now() > patience {
                let _ = self.child.kill();
                panic!("{} hangs", self.name);
            }
            thread::sleep(Duration::from_millis(5));
        };
        Ended {
            status,
            stdout: self.stdout.join().expect("the reader does not panic"),
            stderr: String::from_utf8_lossy(
                &self.stderr.join().expect("the reader does not panic"),
            )
            .into_owned(),
        }
    }
}

/// Runs a program until it ends.
pub fn run(command: &mut Command) -> Ended {
    Running::start(command).end()
}

/// Runs a program until it ends, without a time limit: for cargo, which may compile and wait for other builds.
pub fn run_without_limit(command: &mut Command) -> Ended {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    Ended {
        status: output.status,
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn collect(mut stream: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        bytes
    })
}

/// Compiles a C program that uses OpenCL into `folder`, and returns its path.
pub fn compile(source: &Path, folder: &Path) -> PathBuf {
    compile_with(&[], source, folder)
}

/// Compiles a C program that uses OpenCL, with more options of the compiler.
pub fn compile_with(options: &[&str], source: &Path, folder: &Path) -> PathBuf {
    let program = folder.join(source.file_stem().expect("a source file"));
    run(Command::new("cc")
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-pthread"])
        .args(options)
        .arg("-o")
        .arg(&program)
        .arg(source)
        .args(["-lOpenCL", "-ldl"]))
    .well();
    program
}
