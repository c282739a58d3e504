//! `gputrail record --flight-recorder`: the latest records are written out when a trigger fires, while the program goes
//! on, and when the program ends in any way.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;
use gputrail_harness::trace::Trace;

use crate::command::{TestDir, kernels, well};

/// Number of kernels of a round: their records exceed [`KEPT`] by far.
const WORK: i64 = 4000;
const KEPT: &str = "512K";
/// A time limit that is exceeded only if the test fails.
const PATIENCE: Duration = Duration::from_secs(600);

/// `gputrail record` of `flight.c`, controlled round by round.
struct Recording {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Recording {
    fn start(dir: &TestDir, options: &[&str], rounds: &str) -> Recording {
        let program = dir.program("flight");
        let options = [options, &["--buffer-size", "16K"]].concat();
        let arguments = [rounds, &WORK.to_string()];
        let mut command = dir.record_with(&options, Driver::Threaded, &program, &arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("gputrail runs");
        Recording {
            input: child.stdin.take().expect("piped"),
            output: BufReader::new(child.stdout.take().expect("piped")),
            child,
        }
    }

    /// Waits until the program has completed a round.
    #[track_caller]
    fn round(&mut self, number: u32) {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("text");
        assert_eq!(line.trim(), number.to_string());
    }

    fn say(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("the program reads");
    }

    fn signal(&self, signal: libc::c_int) {
        // SAFETY: kill() takes numbers; the process has not been waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    /// The exit code, and the output of gputrail.
    fn end(self) -> (i32, String) {
        drop(self.input);
        let mut child = self.child;
        // The program's output is small: no pipe fills up.
        let status = child.wait().expect("it ends");
        let mut said = String::new();
        let mut stderr = child.stderr.take().expect("piped");
        std::io::Read::read_to_string(&mut stderr, &mut said).expect("text");
        (status.code().expect("it exits"), said)
    }
}

/// The trace at `path`, once it exists.
#[track_caller]
fn awaited(path: &Path) -> Trace {
    let begin = Instant::now();
    while !path.exists() {
        assert!(begin.elapsed() < PATIENCE, "no {}", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
    Trace::open(path.to_owned())
}

#[test]
fn a_signal_has_what_happened_last_written_out_and_a_killed_program_leaves_it_too() {
    needs!(a_signal_has_what_happened_last_written_out_and_a_killed_program_leaves_it_too:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let options = ["--flight-recorder", KEPT, "--trigger", "USR2"];
    let mut recording = Recording::start(&dir, &options, "3");
    recording.round(1);
    recording.signal(libc::SIGUSR2);
    let mut first = awaited(&dir.join("run-flight-1.pftrace"));
    recording.say("");
    recording.round(2);
    recording.signal(libc::SIGUSR2);
    let mut second = awaited(&dir.join("run-flight-2.pftrace"));
    recording.say("");
    recording.round(3);
    recording.say("kill");
    let (code, said) = recording.end();
    assert_eq!(code, 137, "{said}");
    assert!(said.contains("run-flight-1.pftrace"), "{said}");

    let mut last = dir.trace();
    for (number, trace) in [(1, &mut first), (2, &mut second), (3, &mut last)] {
        trace.assert_sound();
        // The round that had just ended is in the trace, by its name, and not much before it.
        assert_eq!(kernels(trace, &format!("round_{number}")), 1, "{number}");
        assert_eq!(
            kernels(trace, &format!("round_{}", number - 1)),
            0,
            "{number}"
        );
        let kept = kernels(trace, "work");
        assert!((1..WORK).contains(&kept), "{number}: {kept}");
        // All kernels had completed. The completions of some were overwritten, which says nothing of the kernels.
        let info = well(dir.gputrail(["info"]).arg(trace.path())).text();
        let mut lines = info.lines();
        let unfinished = lines.find(|line| line.trim_start().starts_with("unfinished"));
        assert!(!unfinished.expect("a line").contains("operation"), "{info}");
    }
    assert!(!said.contains("had not completed at the end"), "{said}");
    assert_eq!(dir.files("2.pftrace").len(), 1);
}

#[test]
fn a_slow_call_has_what_happened_before_it_written_out() {
    needs!(a_slow_call_has_what_happened_before_it_written_out:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    // Building the program takes longer than this.
    let options = [
        "--flight-recorder",
        "16M",
        "--slower-than",
        "100us",
        "--dumps",
        "2",
    ];
    let mut recording = Recording::start(&dir, &options, "1");
    let mut trace = awaited(&dir.join("run-flight-1.pftrace"));
    recording.round(1);
    let (code, said) = recording.end();
    assert_eq!(code, 0, "{said}");
    trace.assert_sound();
    let slow: i64 = trace.value(
        "select count(*) from slice where category = 'opencl' and (dur >= 100000 or dur = -1)",
    );
    assert!(slow > 0, "{said}");
    assert!(dir.files(".pftrace").len() <= 3, "two dumps at most");
    dir.trace().assert_sound();
}

#[test]
fn the_program_itself_asks_for_what_happened_in_the_last_while() {
    needs!(the_program_itself_asks_for_what_happened_in_the_last_while:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let mut recording = Recording::start(&dir, &["--flight-recorder", "5min"], "2");
    recording.round(1);
    recording.say("dump");
    let mut dump = awaited(&dir.join("run-flight-1.pftrace"));
    recording.round(2);
    let (code, said) = recording.end();
    assert_eq!(code, 0, "{said}");
    dump.assert_sound();
    assert_eq!(kernels(&mut dump, "round_1"), 1);
    let mut whole = dir.trace();
    whole.assert_sound();
    // The memory was large enough for all records.
    assert_eq!(kernels(&mut whole, "work"), 2 * WORK);
}

#[test]
fn a_dump_of_a_time_has_nothing_that_ended_before_that_time() {
    needs!(a_dump_of_a_time_has_nothing_that_ended_before_that_time:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let mut recording = Recording::start(&dir, &["--flight-recorder", "100ms"], "3");
    recording.round(1);
    // The first round ends before the time that is kept, and its last records lie in the block that goes on.
    std::thread::sleep(Duration::from_millis(200));
    recording.say("");
    recording.round(2);
    recording.say("dump");
    let mut dump = awaited(&dir.join("run-flight-1.pftrace"));
    recording.round(3);
    let (code, said) = recording.end();
    assert_eq!(code, 0, "{said}");
    dump.assert_sound();
    assert_eq!(kernels(&mut dump, "round_1"), 0);
    let first: i64 = dump.value("select count(*) from slice where name = 'clBuildProgram'");
    assert_eq!(first, 0);
    assert!(said.contains(" left out)"), "{said}");
    // The trace at the end has all that the memory held.
    assert_eq!(kernels(&mut dir.trace(), "round_1"), 1);
}

#[test]
fn a_marker_or_a_call_of_a_name_has_what_happened_before_it_written_out() {
    needs!(a_marker_or_a_call_of_a_name_has_what_happened_before_it_written_out:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    for name in ["late*", "clCreateCommandQueue"] {
        let dir = TestDir::new();
        let options = ["--flight-recorder", "64M", "--dump-on", name];
        let mut recording = Recording::start(&dir, &options, "2");
        recording.round(1);
        let is_marker = name == "late*";
        assert!(!is_marker || dir.files("flight-1.pftrace").is_empty());
        recording.say("late");
        let mut dump = awaited(&dir.join("run-flight-1.pftrace"));
        recording.round(2);
        let (code, said) = recording.end();
        assert_eq!(code, 0, "{said}");
        dump.assert_sound();
        let mut slices = |name: &str| -> i64 {
            dump.value(&format!("select count(*) from slice where name = '{name}'"))
        };
        // The trace has everything before the dump: all of the first round, or the building of the program.
        assert_eq!(slices("late frame"), i64::from(is_marker));
        assert_eq!(slices("clBuildProgram"), 1);
        if is_marker {
            assert_eq!(kernels(&mut dump, "round_1"), 1);
        }
        let mut whole = dir.trace();
        whole.assert_sound();
        assert_eq!(
            kernels(&mut whole, "work"),
            2 * WORK,
            "the recording goes on"
        );
        assert_eq!(dir.files(".pftrace").len(), 2, "once");
    }
}

#[test]
fn invalid_flight_recorder_options_are_refused_before_the_program_runs() {
    let dir = TestDir::new();
    for (options, reason) in [
        (&["--flight-recorder", "soon"][..], "neither a size"),
        (&["--slower-than", "5ms"], "--flight-recorder"),
        (&["--dump-on", "clFinish"], "--flight-recorder"),
        (
            &["--flight-recorder", "1M", "--dump-on", ""],
            "not be empty",
        ),
        (
            &["--flight-recorder", "1M", "--trigger", "KILL"],
            "neither USR1 nor USR2",
        ),
        (&["--flight-recorder", "1K"], "1024 bytes do not hold"),
    ] {
        let mut command = dir.gputrail(["record"]);
        let ended = run(command.args(options).args(["--", "touch", "ran"]));
        assert!(![0, 127].contains(&ended.code()), "{options:?}");
        assert!(ended.stderr.contains(reason), "{}", ended.stderr);
        assert!(!dir.join("ran").exists());
    }
}

#[test]
fn a_memory_that_reaches_less_far_back_than_asked_for_is_mentioned() {
    needs!(a_memory_that_reaches_less_far_back_than_asked_for_is_mentioned: Need::Pocl, Need::OpenClToolchain);
    for (buffers, short) in [(KEPT, true), ("64M", false)] {
        let dir = TestDir::new();
        let options = ["--flight-recorder", "60min", "--buffers", buffers];
        let mut recording = Recording::start(&dir, &options, "2");
        recording.round(1);
        recording.say("dump");
        recording.round(2);
        let (code, said) = recording.end();
        assert_eq!(code, 0, "{said}");
        assert_eq!(
            said.contains("the memory reaches back"),
            short,
            "{buffers}: {said}"
        );
    }
}
