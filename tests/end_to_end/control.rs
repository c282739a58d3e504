//! `gputrail status`, `start`, `stop`, `flush` and `dump` of a recording that runs.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::{compile_with, run};
use gputrail_harness::repository;
use gputrail_harness::trace::Trace;
use serde_json::Value;

use crate::command::{TestDir, kernels, well};

/// Number of kernels of a round.
const WORK: i64 = 50;
/// A time limit that is exceeded only if the test fails.
const PATIENCE: Duration = Duration::from_secs(600);
/// The user `nobody`.
const NOBODY: u32 = 65534;

/// A running `gputrail record`.
struct Recording<'a> {
    dir: &'a TestDir,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl<'a> Recording<'a> {
    /// Records `program`, which reads its input.
    fn start(dir: &'a TestDir, options: &[&str], program: &Path, arguments: &[&str]) -> Self {
        let mut command = dir.record_with(options, Driver::Basic, program, arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("gputrail runs");
        Recording {
            dir,
            input: child.stdin.take().expect("piped"),
            output: BufReader::new(child.stdout.take().expect("piped")),
            child,
        }
    }

    /// Waits for a line of the program.
    #[track_caller]
    fn expect(&mut self, line: &str) {
        let mut said = String::new();
        self.output.read_line(&mut said).expect("text");
        assert_eq!(said.trim(), line);
    }

    fn go_on(&mut self) {
        writeln!(self.input).expect("the program reads");
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// The output of `gputrail VERB PID`, which must succeed.
    #[track_caller]
    fn control(&self, verb: &str) -> String {
        well(&mut self.dir.gputrail([verb, &self.pid()])).text()
    }

    #[track_caller]
    fn status(&self) -> Value {
        let mut command = self
            .dir
            .gputrail(["status", &self.pid(), "--format", "json"]);
        serde_json::from_str(&well(&mut command).text()).expect("JSON")
    }

    /// The path of the socket on which it is controlled.
    fn socket(&self) -> PathBuf {
        let program = self.status()["program_pid"].as_u64().expect("a number");
        let environment = std::fs::read(format!("/proc/{program}/environ")).expect("a process");
        let directory = environment
            .split(|byte| *byte == 0)
            .find_map(|variable| variable.strip_prefix(b"GPUTRAIL_SESSION="))
            .expect("it is recorded");
        PathBuf::from(String::from_utf8_lossy(directory).into_owned()).join("control")
    }

    /// The exit code, the remaining output of the program, and the output of gputrail.
    fn end(self) -> (i32, String, String) {
        drop(self.input);
        let (mut child, mut output) = (self.child, self.output);
        let (mut rest, mut said) = (String::new(), String::new());
        output.read_to_string(&mut rest).expect("text");
        let mut stderr = child.stderr.take().expect("piped");
        stderr.read_to_string(&mut said).expect("text");
        let status = child.wait().expect("it ends");
        (status.code().expect("it exits"), rest, said)
    }
}

/// Sends a request to a control socket, as the command does.
fn request(socket: &Path, verb: &str) -> Value {
    let mut connection = UnixStream::connect(socket).expect("somebody listens");
    writeln!(connection, "gputrail 1 {verb}").expect("it reads");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("an answer");
    serde_json::from_str(&answer).expect("JSON")
}

/// The slices in which the recording was off: begin, end and reason.
fn off(trace: &mut Trace) -> Vec<(i64, i64, String)> {
    trace.rows(
        "select ts, ts + dur, extract_arg(arg_set_id, 'debug.reason') from slice \
         where name = 'recording off' order by ts",
    )
}

fn kibibytes(pid: u64, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find(|line| line.starts_with(field));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.expect("a field").parse().expect("a number")
}

/// The size of what a process shares with others: the memory of its buffers, and its files. Its private memory is
/// measured by what is used of it, since the allocator reserves 64 MiB at once for a thread that meets another one.
fn shared_kibibytes(pid: u64) -> u64 {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("a process");
    let sizes = maps.lines().filter_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (begin, end) = range.split_once('-')?;
        let address = |text| u64::from_str_radix(text, 16).expect("an address");
        (rest.as_bytes()[3] == b's').then(|| (address(end) - address(begin)) / 1024)
    });
    sizes.sum()
}

/// `switched.c`, which needs the header of the C API.
fn switched(dir: &TestDir) -> PathBuf {
    let include = format!("-I{}", repository("include").display());
    let source = repository("tests/programs/switched.c");
    compile_with(&[&include], &source, dir.path())
}

#[test]
fn a_recording_holds_what_began_while_it_was_on_and_the_trace_shows_when_it_was_off() {
    needs!(a_recording_holds_what_began_while_it_was_on_and_the_trace_shows_when_it_was_off:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let program = dir.program("flight");
    let work = WORK.to_string();
    let mut recording = Recording::start(&dir, &["--paused"], &program, &["4", &work]);
    recording.expect("1");
    assert_eq!(recording.control("stop"), "the recording was off already\n");
    assert_eq!(
        recording.control("start"),
        "the recording is on; it was off\n"
    );
    assert_eq!(recording.control("start"), "the recording was on already\n");
    recording.go_on();
    recording.expect("2");
    // Any process of the recording names it.
    let pid = recording.status()["program_pid"].to_string();
    let stopped = well(&mut dir.gputrail(["stop", &pid])).text();
    assert_eq!(stopped, "the recording is off; it was on\n");
    recording.go_on();
    recording.expect("3");
    recording.control("start");
    recording.go_on();
    recording.expect("4");
    let (code, _, said) = recording.end();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("nothing was lost"), "{said}");
    assert!(said.contains("the recording was off for"), "{said}");

    let mut trace = dir.trace();
    trace.assert_sound();
    let rounds = [1, 2, 3, 4].map(|round| kernels(&mut trace, &format!("round_{round}")));
    assert_eq!(rounds, [0, 1, 0, 1]);
    assert_eq!(kernels(&mut trace, "work"), 2 * WORK);
    let off = off(&mut trace);
    let reasons: Vec<&str> = off.iter().map(|(.., reason)| reason.as_str()).collect();
    assert_eq!(reasons, ["record --paused", "gputrail stop"]);
    for (from, to, _) in &off {
        let calls: i64 = trace.value(&format!(
            "select count(*) from slice where category = 'opencl' and ts > {from} and ts < {to}"
        ));
        assert_eq!(calls, 0);
    }
    // What was off is neither a loss nor a defect.
    well(&mut dir.gputrail(["check", "run.pftrace"]));
    let summary = well(&mut dir.gputrail(["summary", "run.pftrace"])).text();
    assert!(summary.contains("switched off"), "{summary}");
}

#[test]
fn the_status_tells_what_is_recorded_of_which_process() {
    needs!(the_status_tells_what_is_recorded_of_which_process: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = dir.program("flight");
    let mut recording = Recording::start(&dir, &[], &program, &["2", "10"]);
    recording.expect("1");
    // Ten kernels, each with its call, its enqueue and its completion, which are in memory.
    let status = recording.status();
    assert!(status["records"].as_u64() > Some(30), "{status}");
    recording.control("flush");
    let status = recording.status();
    assert_eq!(
        (&status["state"], &status["found"]),
        (&"on".into(), &"on".into())
    );
    assert_eq!(
        (&status["switches"], &status["lost"]),
        (&0.into(), &0.into())
    );
    assert_eq!(status["gputrail"].to_string(), recording.pid());
    assert_eq!(status["dumps"], Value::Null);
    let [process] = &status["processes"].as_array().expect("processes")[..] else {
        panic!("{status}");
    };
    assert_eq!(process["pid"], status["program_pid"]);
    assert!(process["records"].as_u64() > Some(30), "{status}");
    assert_eq!(process["records"], status["records"]);
    let output = status["output"].as_str().expect("a path");
    assert!(output.ends_with("run.pftrace"), "{output}");
    let text = recording.control("status");
    assert!(
        text.contains(": on for ") && text.contains("no record was dropped"),
        "{text}"
    );
    recording.go_on();
    assert_eq!(recording.end().0, 0);
}

#[test]
fn a_flush_makes_the_trace_so_far_and_the_whole_trace_replaces_it() {
    needs!(a_flush_makes_the_trace_so_far_and_the_whole_trace_replaces_it:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    for options in [&[][..], &["--capture"]] {
        let dir = TestDir::new();
        let program = dir.program("flight");
        let work = WORK.to_string();
        let mut recording = Recording::start(&dir, options, &program, &["3", &work]);
        for round in 1..=2_i64 {
            recording.expect(&round.to_string());
            let said = recording.control("flush");
            assert!(said.contains("run.pftrace"), "{said}");
            let mut trace = dir.trace();
            trace.assert_sound();
            assert_eq!(kernels(&mut trace, "work"), round * WORK);
            assert_eq!(kernels(&mut trace, &format!("round_{round}")), 1);
            recording.go_on();
        }
        recording.expect("3");
        let (code, _, said) = recording.end();
        assert_eq!(code, 0, "{said}");
        let mut trace = dir.trace();
        trace.assert_sound();
        assert_eq!(kernels(&mut trace, "work"), 3 * WORK);
        assert_eq!(dir.files(".pftrace"), ["run.pftrace"]);
    }
}

#[test]
fn a_dump_is_requested_from_outside() {
    needs!(a_dump_is_requested_from_outside: Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let program = dir.program("flight");
    let options = ["--flight-recorder", "16M", "--dumps", "1"];
    let mut recording = Recording::start(&dir, &options, &program, &["2", "10"]);
    recording.expect("1");
    assert_eq!(recording.control("dump"), "dump 1 is being written\n");
    let path = dir.join("run-flight-1.pftrace");
    let begin = Instant::now();
    while !path.exists() {
        assert!(begin.elapsed() < PATIENCE, "no {}", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
    let again = run(&mut dir.gputrail(["dump", &recording.pid()]));
    assert_eq!(again.code(), 125);
    assert!(again.stderr.contains("--dumps"), "{}", again.stderr);
    recording.go_on();
    recording.expect("2");
    assert_eq!(recording.end().0, 0);
    let mut dump = Trace::open(path);
    dump.assert_sound();
    assert_eq!(kernels(&mut dump, "round_1"), 1);
}

#[test]
fn what_cannot_be_controlled_is_named() {
    needs!(what_cannot_be_controlled_is_named: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let refused = |arguments: &[&str], reason: &str| {
        let ended = run(&mut dir.gputrail(arguments));
        assert_eq!(ended.code(), 125, "{arguments:?}");
        assert!(ended.stderr.contains(reason), "{}", ended.stderr);
    };
    let own = std::process::id().to_string();
    refused(
        &["status", &own],
        "neither a `gputrail record` nor recorded by one",
    );
    // Which reason it is depends on the rights of this user.
    refused(&["status", "1"], "process 1");
    refused(&["start", "4194304"], "there is no process 4194304");
    // It has ended, and waits for its parent.
    let mut ended = Command::new("true").spawn().expect("true");
    let exits = format!("/proc/{}/stat", ended.id());
    while !std::fs::read_to_string(&exits)
        .expect("a process")
        .contains(") Z ")
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    let pid = ended.id().to_string();
    refused(&["status", &pid], &format!("process {pid} has ended"));
    ended.wait().expect("it has ended");
    // One whose recording is over: its variable names a directory that is gone.
    let mut later = Command::new("cat")
        .env("GPUTRAIL_SESSION", dir.join("gone"))
        .stdin(Stdio::piped())
        .spawn()
        .expect("cat");
    let pid = later.id().to_string();
    refused(
        &["status", &pid],
        &format!("the recording of process {pid} has ended"),
    );
    drop(later.stdin.take());
    later.wait().expect("it ends");
    refused(&["stop", "0"], "0");
    refused(&["flush"], "PID");
    let program = dir.program("flight");
    let mut recording = Recording::start(&dir, &["--paused"], &program, &["1", "1"]);
    recording.expect("1");
    refused(&["dump", &recording.pid()], "no --flight-recorder");
    let socket = recording.socket();
    let other = request(&socket, "dance");
    assert!(
        other["error"]
            .as_str()
            .is_some_and(|text| text.contains("another version"))
    );
    // A silent client does not keep others out for ever.
    drop(UnixStream::connect(&socket).expect("somebody listens"));
    let (code, _, said) = recording.end();
    assert_eq!(code, 0);
    assert!(said.contains("it was never switched on"), "{said}");
}

#[test]
fn another_user_cannot_control_a_recording() {
    needs!(another_user_cannot_control_a_recording: Need::Root, Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = dir.program("flight");
    let mut recording = Recording::start(&dir, &[], &program, &["1", "1"]);
    recording.expect("1");
    let everybody = |path: &Path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("it is ours");
    };
    everybody(dir.path(), 0o755);
    let command = dir.join("gputrail");
    std::fs::copy(env!("CARGO_BIN_EXE_gputrail"), &command).expect("a copy");
    for verb in ["status", "start", "stop", "flush", "dump"] {
        let mut command = Command::new(&command);
        let ended = run(command
            .args([verb, &recording.pid()])
            .uid(NOBODY)
            .gid(NOBODY));
        assert_eq!(ended.code(), 125);
        assert!(
            ended.stderr.contains("only the user who records"),
            "{}",
            ended.stderr
        );
    }
    // Past the permissions of the directory, the credentials of the connection decide.
    let socket = recording.socket();
    everybody(socket.parent().expect("a directory"), 0o711);
    everybody(&socket, 0o666);
    let answer = std::thread::spawn(move || {
        // SAFETY: changes the user of this thread alone, which ends soon.
        let changed = unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
        assert_eq!(changed, 0);
        request(&socket, "stop")
    });
    let answer = answer.join().expect("an answer");
    assert_eq!(answer["error"], "this recording belongs to another user");
    assert_eq!(recording.status()["state"], "on");
    recording.go_on();
    assert_eq!(recording.end().0, 0);
}

#[test]
fn a_process_that_names_the_recording_of_another_user_controls_nothing() {
    needs!(a_process_that_names_the_recording_of_another_user_controls_nothing:
        Need::Root, Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = dir.program("flight");
    let mut recording = Recording::start(&dir, &[], &program, &["1", "1"]);
    recording.expect("1");
    let socket = recording.socket();
    let session = socket.parent().expect("a directory");
    // Root asks for the recording of this process, which says that it is that of root.
    let mut other = Command::new("cat")
        .env("GPUTRAIL_SESSION", session)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .uid(NOBODY)
        .gid(NOBODY)
        .spawn()
        .expect("cat");
    let ended = run(&mut dir.gputrail(["stop", &other.id().to_string()]));
    drop(other.stdin.take());
    other.wait().expect("it ends");
    assert_eq!(ended.code(), 125);
    let expected = "is of user 65534, and names a recording of user 0";
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    assert_eq!(recording.status()["state"], "on");
    recording.go_on();
    assert_eq!(recording.end().0, 0);
}

#[test]
fn a_silent_client_or_recorder_keeps_nobody_waiting_for_ever() {
    needs!(a_silent_client_or_recorder_keeps_nobody_waiting_for_ever: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = dir.program("flight");
    let mut recording = Recording::start(&dir, &[], &program, &["1", "1"]);
    recording.expect("1");
    // Clients that say nothing, more than are served at a time, and one that says it letter by letter.
    let socket = recording.socket();
    let connect = || UnixStream::connect(&socket).expect("somebody listens");
    let silent: Vec<UnixStream> = (0..8).map(|_| connect()).collect();
    assert_eq!(recording.status()["state"], "on");
    let mut slow = connect();
    for letter in "gputrail 1 status\n".bytes() {
        slow.write_all(&[letter]).expect("it reads");
    }
    let mut answer = String::new();
    slow.read_to_string(&mut answer).expect("an answer");
    assert!(answer.contains("\"state\""), "{answer}");
    drop(silent);

    let recorder = recording.child.id() as i32;
    // SAFETY: no preconditions.
    let signal = |signal| assert_eq!(unsafe { libc::kill(recorder, signal) }, 0);
    signal(libc::SIGSTOP);
    let ended = run(&mut dir.gputrail(["status", &recording.pid()]));
    signal(libc::SIGCONT);
    assert_eq!(ended.code(), 125);
    assert!(
        ended.stderr.contains("gave no answer for 5 s"),
        "{}",
        ended.stderr
    );
    assert_eq!(recording.status()["state"], "on");
    recording.go_on();
    assert_eq!(recording.end().0, 0);
}

#[test]
fn all_processes_follow_also_those_that_begin_later_and_forked_children() {
    needs!(all_processes_follow_also_those_that_begin_later_and_forked_children:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let program = switched(&dir);
    let program = program.display();
    // The second program begins when there is a file.
    let second = format!("while [ ! -e go ]; do sleep 0.01; done; {program} 1 fork");
    let script = format!("exec 3<&0; {program} 1 <&3 & {second}; wait");
    let mut recording = Recording::start(&dir, &["--paused"], Path::new("sh"), &["-c", &script]);
    recording.expect("ready");
    std::fs::write(dir.join("go"), "").expect("a file");
    recording.expect("ready");
    let busy = |recording: &Recording<'_>, since: &HashMap<u64, u64>| {
        recording.control("flush");
        let status = recording.status();
        let processes = status["processes"].as_array().expect("processes").clone();
        let of = |process: &Value| (process["pid"].as_u64(), process["records"].as_u64());
        let records: HashMap<u64, u64> = processes
            .iter()
            .filter_map(|process| of(process).0.zip(of(process).1))
            .collect();
        let grew = records
            .iter()
            .filter(|(pid, records)| {
                since.get(pid).is_none_or(|before| *records > before) && **records > 0
            })
            .count();
        (records, grew)
    };
    let (before, _) = busy(&recording, &HashMap::new());
    assert!(before.values().all(|records| *records == 0), "{before:?}");
    recording.control("start");
    let begin = Instant::now();
    while busy(&recording, &before).1 < 2 {
        assert!(begin.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(5));
    }
    recording.control("stop");
    let (code, _, said) = recording.end();
    assert_eq!(code, 0, "{said}");
    let mut trace = dir.trace();
    trace.assert_sound();
    let processes: i64 = trace.value(
        "select count(distinct upid) from thread_track join thread using(utid) \
         join slice on slice.track_id = thread_track.id where slice.category = 'opencl'",
    );
    assert_eq!(processes, 2);
    let reasons = off(&mut trace).into_iter().map(|(.., reason)| reason);
    let mut reasons: Vec<String> = reasons.collect();
    reasons.sort();
    let [stop, paused] = ["gputrail stop", "record --paused"];
    assert_eq!(reasons, [stop, stop, paused, paused]);
    well(&mut dir.gputrail(["check", "run.pftrace"]));
}

#[test]
fn a_thousand_starts_and_stops_under_load_lose_and_invent_nothing() {
    needs!(a_thousand_starts_and_stops_under_load_lose_and_invent_nothing:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    const CYCLES: usize = 1000;
    const THREADS: i64 = 2;
    let dir = TestDir::new();
    let program = switched(&dir);
    let threads = THREADS.to_string();
    let mut recording = Recording::start(&dir, &["--paused"], &program, &[&threads]);
    recording.expect("ready");
    let socket = recording.socket();
    for _ in 0..CYCLES {
        for (verb, found, state) in [("start", "off", "on"), ("stop", "on", "off")] {
            let answer = request(&socket, verb);
            assert_eq!(
                (&answer["found"], &answer["state"]),
                (&found.into(), &state.into())
            );
        }
    }
    let status = recording.status();
    assert_eq!(status["switches"].as_u64(), Some(2 * CYCLES as u64));
    assert_eq!(status["lost"], 0);
    let (code, steps, said) = recording.end();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("nothing was lost"), "{said}");
    let steps: Vec<i64> = steps
        .lines()
        .map(|line| line.parse().expect("steps"))
        .collect();

    let mut trace = dir.trace();
    trace.assert_sound();
    well(&mut dir.gputrail(["check", "run.pftrace"]));
    let off = off(&mut trace);
    assert_eq!(off.len(), CYCLES + 1);
    // All work of recorded calls is there, once, and no other.
    let enqueued: i64 = trace.value(
        "select count(*) from slice where category = 'opencl' and name = 'clEnqueueNDRangeKernel'",
    );
    assert_eq!(kernels(&mut trace, "work"), enqueued);
    assert!(enqueued > 0);
    // The steps of each thread are complete except across times in which it was off.
    let recorded: Vec<(i64, i64, String)> = trace.rows(
        "select ts, cast_int!(extract_arg(arg_set_id, 'debug.payload')), \
         extract_arg(arg_set_id, 'debug.domain') from slice where name = 'step' order by ts",
    );
    for (thread, steps) in steps.iter().enumerate() {
        let domain = format!("thread {thread}");
        let recorded: Vec<(i64, i64)> = recorded
            .iter()
            .filter(|(.., of)| *of == domain)
            .map(|(time, step, _)| (*time, *step))
            .collect();
        assert!(!recorded.is_empty());
        for pair in recorded.windows(2) {
            let [(before, one), (after, next)] = pair else {
                unreachable!("pairs");
            };
            let next_off = off.partition_point(|(_, to, _)| to <= before);
            let was_off = off.get(next_off).is_some_and(|(from, ..)| from < after);
            assert!(one < next && next <= steps, "{pair:?} of {steps}");
            assert!(*next == one + 1 || was_off, "{pair:?} in no time off");
        }
    }
    // A thread may be interrupted between its look at the switch and at the clock, once for each stop.
    let calls: Vec<(i64,)> =
        trace.rows("select ts from slice where category = 'opencl' order by ts");
    let mut late = 0;
    for (from, to, _) in &off {
        let before = |time: &i64| calls.partition_point(|(ts,)| ts < time) as i64;
        let within = before(to) - before(&(from + 1));
        assert!(within <= THREADS, "{within} calls between {from} and {to}");
        late += within;
    }
    assert!(late < calls.len() as i64 / 2, "{late} of {}", calls.len());
}

#[test]
fn starts_and_stops_leave_nothing_behind() {
    needs!(starts_and_stops_leave_nothing_behind: Need::Pocl, Need::OpenClToolchain);
    const CYCLES: u64 = 1000;
    let dir = TestDir::new();
    let program = dir.program("flight");
    let mut recording = Recording::start(&dir, &["--paused"], &program, &["2", "10"]);
    recording.expect("1");
    let socket = recording.socket();
    let cycle = || {
        request(&socket, "start");
        request(&socket, "stop")
    };
    for _ in 0..10 {
        cycle();
    }
    let measure = |status: &Value| {
        let number = |name: &str| status[name].as_u64().expect("a number");
        let memory = |name| kibibytes(number(name), "VmRSS");
        (number("bytes"), memory("gputrail") + memory("program_pid"))
    };
    let before = measure(&cycle());
    for _ in 0..CYCLES {
        cycle();
    }
    let after = measure(&cycle());
    let bytes = (after.0 - before.0) / CYCLES;
    assert!(
        bytes < 1024,
        "{bytes} bytes of capture for each start and stop"
    );
    assert!(after.1 < before.1 + 2048, "{before:?} -> {after:?} KiB");
    recording.go_on();
    recording.expect("2");
    assert_eq!(recording.end().0, 0);
}

#[test]
fn days_of_which_each_has_a_recorded_time_leave_nothing_but_their_records() {
    needs!(days_of_which_each_has_a_recorded_time_leave_nothing_but_their_records:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    /// Days of a month, and those at its begin in which caches fill.
    const DAYS: usize = 31;
    const FIRST_DAYS: usize = 6;
    /// Steps of the program that are recorded each day.
    const RECORDS: u64 = 2000;
    let dir = TestDir::new();
    let program = switched(&dir);
    let mut recording = Recording::start(&dir, &["--paused"], &program, &["2"]);
    recording.expect("ready");
    let socket = recording.socket();
    let status = |verb: &str| request(&socket, verb);
    let number = |status: &Value, name: &str| status[name].as_u64().expect("a number");
    let entries = |path: PathBuf| std::fs::read_dir(path).expect("a directory").count();
    let measure = |status: &Value| {
        let processes = ["gputrail", "program_pid"].map(|name| number(status, name));
        let memory = |pid| kibibytes(pid, "VmRSS");
        let files = |pid: u64| entries(format!("/proc/{pid}/fd").into());
        let threads = |pid| kibibytes(pid, "Threads") as usize;
        let left =
            entries(dir.path().into()) + entries(socket.parent().expect("a directory").into());
        (
            processes.map(memory).iter().sum::<u64>(),
            processes.map(shared_kibibytes).iter().sum::<u64>(),
            [processes.map(files), processes.map(threads), [left, 0]].concat(),
        )
    };
    let mut days = Vec::new();
    for _ in 0..DAYS {
        let until = number(&status("start"), "records") + RECORDS;
        let begin = Instant::now();
        loop {
            // Takes the records from the program's memory.
            std::thread::sleep(Duration::from_millis(20));
            if number(&status("status"), "records") >= until {
                break;
            }
            assert!(begin.elapsed() < PATIENCE, "no records");
        }
        status("stop");
        days.push(measure(&status("status")));
    }
    let (early, late) = (&days[FIRST_DAYS], &days[DAYS - 1]);
    assert!(late.0 < early.0 + 4096, "memory in KiB: {days:?}");
    assert!(late.1 < early.1 + 4096, "shared KiB: {days:?}");
    // The thread that gave the latest answer may still be ending.
    let mut counts = late.2.iter().zip(&early.2);
    assert!(
        counts.all(|(late, early)| *late <= early + 1),
        "files and threads: {days:?}"
    );
    let (code, _, said) = recording.end();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("nothing was lost"), "{said}");
    let mut trace = dir.trace();
    trace.assert_sound();
    assert_eq!(off(&mut trace).len(), DAYS + 1);
}
