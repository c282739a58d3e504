//! Lives and ends of programs: exit codes and signals pass through, children are in the trace, and records before a
//! violent end are kept.

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::{Running, run};
use gputrail_harness::trace::Trace;

use crate::command::{TestDir, kernels, well};

const NEEDS: [Need; 3] = [Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor];

/// What the trace says of processes that ended without ending their recording; each after its last call.
fn deaths_in(trace: &mut Trace) -> Vec<String> {
    let last = trace
        .value::<i64>("select max(ts) from slice join thread_track on track_id = thread_track.id");
    let deaths = trace.rows::<(i64, String)>(
        "select ts, name || ': ' || extract_arg(arg_set_id, 'debug.detail') from slice
         where name in ('process died', 'process exited', 'process replaced')",
    );
    assert!(
        deaths.iter().all(|(time, _)| *time >= last),
        "{deaths:?} before {last}"
    );
    deaths.into_iter().map(|(_, text)| text).collect()
}

#[test]
fn exit_codes_are_passed_on() {
    needs!(exit_codes_are_passed_on: NEEDS[0], NEEDS[1], NEEDS[2]);
    let dir = TestDir::new();
    let lives = dir.program("lives");
    for (then, code) in [
        ("exit", "0"),
        ("exit", "3"),
        ("exit", "255"),
        ("_exit", "4"),
    ] {
        let ended = run(&mut dir.record(Driver::Threaded, &lives, &["20", then, code]));
        assert_eq!(ended.code().to_string(), code, "{then}: {}", ended.stderr);
        let mut trace = dir.trace();
        trace.assert_sound();
        assert_eq!(kernels(&mut trace, "work"), 20, "{then} {code}");
        let deaths = if then == "exit" { 0 } else { 1 };
        let found = deaths_in(&mut trace);
        assert_eq!(
            found.len(),
            deaths,
            "{then} {code}: {found:?}; {}",
            ended.stderr
        );
    }
}

#[test]
fn a_death_by_signal_is_passed_on_and_loses_nothing() {
    needs!(a_death_by_signal_is_passed_on_and_loses_nothing: NEEDS[0], NEEDS[1], NEEDS[2]);
    let dir = TestDir::new();
    let lives = dir.program("lives");
    for signal in [libc::SIGTERM, libc::SIGSEGV, libc::SIGABRT, libc::SIGKILL] {
        let number = signal.to_string();
        let ended = run(&mut dir.record(Driver::Threaded, &lives, &["20", "signal", &number]));
        assert_eq!(ended.code(), 128 + signal, "{}", ended.stderr);
        let mut trace = dir.trace();
        trace.assert_sound();
        assert_eq!(kernels(&mut trace, "work"), 20, "signal {signal}");
        let found = deaths_in(&mut trace);
        assert_eq!(found.len(), 1, "signal {signal}: {found:?}");
    }
}

#[test]
fn a_program_that_ends_without_its_exit_handlers_leaves_a_whole_trace_that_says_so() {
    needs!(a_program_that_ends_without_its_exit_handlers_leaves_a_whole_trace_that_says_so:
        NEEDS[0], NEEDS[1], NEEDS[2]);
    let dir = TestDir::new();
    let lives = dir.program("lives");
    for (then, code, by) in [
        (
            "_exit",
            0,
            "ended with exit code 0 without ending its recording",
        ),
        (
            "quick_exit",
            5,
            "ended with exit code 5 without ending its recording",
        ),
        ("abort", 128 + libc::SIGABRT, "killed by signal 6 (SIGABRT)"),
        (
            "crash",
            128 + libc::SIGSEGV,
            "killed by signal 11 (SIGSEGV)",
        ),
    ] {
        let arguments = ["300", then, "5"];
        let arguments = &arguments[..if code == 5 { 3 } else { 2 }];
        let ended = run(&mut dir.record(Driver::Threaded, &lives, arguments));
        assert_eq!(ended.code(), code, "{then}: {}", ended.stderr);
        let mut trace = dir.trace();
        trace.assert_sound();
        assert_eq!(kernels(&mut trace, "work"), 300, "{then}");
        let found = deaths_in(&mut trace);
        assert_eq!(found.len(), 1, "{then}: {found:?}");
        let sql = "select extract_arg(arg_set_id, 'debug.detail') from slice where name in ('process died', 'process exited', 'process replaced')";
        assert!(trace.value::<String>(sql).contains(by), "{then}");
    }
}

#[test]
fn children_are_in_the_same_trace() {
    needs!(children_are_in_the_same_trace: NEEDS[0], NEEDS[1], NEEDS[2]);
    let dir = TestDir::new();
    let lives = dir.program("lives");
    for (then, processes) in [("fork", 2), ("spawn", 2), ("exec", 1)] {
        well(&mut dir.record(Driver::Threaded, &lives, &["30", then]));
        let mut trace = dir.trace();
        trace.assert_sound();
        assert_eq!(kernels(&mut trace, "work"), 60, "{then}");
        let sql = "select count(distinct pid) from slice \
            join thread_track on slice.track_id = thread_track.id \
            join thread using (utid) join process using (upid) \
            where slice.name = 'clEnqueueNDRangeKernel'";
        assert_eq!(trace.value::<i64>(sql), processes, "{then}");
    }
}

#[test]
fn every_thread_has_its_calls_on_its_own_track() {
    needs!(every_thread_has_its_calls_on_its_own_track: NEEDS[0], NEEDS[1], NEEDS[2]);
    let dir = TestDir::new();
    let lives = dir.program("lives");
    well(&mut dir.record(Driver::Threaded, &lives, &["50", "threads", "8"]));
    let mut trace = dir.trace();
    trace.assert_sound();
    assert_eq!(kernels(&mut trace, "work"), 400);
    let sql = "select count(*) from slice join thread_track on slice.track_id = thread_track.id \
        join thread using (utid) where slice.name = 'clEnqueueNDRangeKernel' group by tid";
    assert_eq!(trace.rows::<(i64,)>(sql), [(50,); 8]);
}

/// Starts a recorded program that waits for ever, in a process group of its own, and returns once it waits.
fn waiting(dir: &TestDir, lives: &std::path::Path) -> Running {
    let ready = dir.join("ready");
    let script = format!("exec '{}' 20 wait > '{}'", lives.display(), ready.display());
    let mut command = dir.record(Driver::Threaded, "sh", &["-c", &script]);
    let running = Running::start(in_foreground(&mut command));
    while !std::fs::read_to_string(&ready).is_ok_and(|text| text.contains("ready")) {
        sleep(Duration::from_millis(10));
    }
    running
}

/// Runs a command as an interactive shell does: in a process group of its own, and with the default action for Ctrl-C,
/// which the parent of the tests may have set to be ignored.
fn in_foreground(command: &mut Command) -> &mut Command {
    let listen = || {
        // SAFETY: signal() may be called between fork and exec.
        unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
        Ok(())
    };
    // SAFETY: all that `listen` does may be done there.
    unsafe { command.process_group(0).pre_exec(listen) }
}

/// Sends Ctrl-C as the terminal does to a command started [in the foreground](in_foreground).
fn ctrl_c(running: &Running) {
    // SAFETY: kill() takes numbers; the process group is that of our own child, which has not been waited for.
    unsafe { libc::kill(-(running.id() as i32), libc::SIGINT) };
}

/// The process that executed the command of `sh -c exec`: the one whose parent is `parent`.
pub fn child_of(parent: u32) -> i32 {
    let children = format!("/proc/{parent}/task/{parent}/children");
    let text = std::fs::read_to_string(children).expect("the recorder lives");
    text.split_whitespace()
        .next()
        .expect("it has a child")
        .parse()
        .expect("a number")
}

#[test]
fn ctrl_c_ends_the_program_and_leaves_a_whole_trace() {
    needs!(ctrl_c_ends_the_program_and_leaves_a_whole_trace: NEEDS[0], NEEDS[1], NEEDS[2]);
    let dir = TestDir::new();
    let lives = dir.program("lives");
    let running = waiting(&dir, &lives);
    ctrl_c(&running);
    let ended = running.end();
    assert_eq!(ended.code(), 128 + libc::SIGINT, "{}", ended.stderr);
    let mut trace = dir.trace();
    trace.assert_sound();
    assert_eq!(kernels(&mut trace, "work"), 20);
}

#[test]
fn a_second_ctrl_c_kills_a_program_that_does_not_listen() {
    needs!(a_second_ctrl_c_kills_a_program_that_does_not_listen: NEEDS[0], NEEDS[1], NEEDS[2]);
    let dir = TestDir::new();
    let lives = dir.program("lives");
    let ready = dir.join("ready");
    let script = format!(
        "trap '' INT; '{}' 20; echo ready > '{}'; while :; do sleep 1; done",
        lives.display(),
        ready.display()
    );
    let mut command = dir.record(Driver::Threaded, "sh", &["-c", &script]);
    let running = Running::start(in_foreground(&mut command));
    while !ready.exists() {
        sleep(Duration::from_millis(10));
    }
    for _ in 0..2 {
        ctrl_c(&running);
        sleep(Duration::from_millis(300)); // two signals at once are one
    }
    let ended = running.end();
    assert_eq!(ended.code(), 128 + libc::SIGKILL, "{}", ended.stderr);
    let mut trace = dir.trace();
    trace.assert_sound();
    assert_eq!(kernels(&mut trace, "work"), 20);
}

#[test]
fn queues_of_several_processes_stay_apart() {
    needs!(queues_of_several_processes_stay_apart: NEEDS[0], NEEDS[1], NEEDS[2]);
    let dir = TestDir::new();
    let lives = dir.program("lives");
    let script = format!("for i in 1 2 3; do '{}' 10; done", lives.display());
    well(&mut dir.record(Driver::Threaded, "sh", &["-c", &script]));
    let mut trace = dir.trace();
    trace.assert_sound();
    let sql = "select count(*) from gpu_slice join gpu_track on track_id = gpu_track.id group by gpu_track.name";
    assert_eq!(
        trace.rows::<(i64,)>(sql),
        [(10,); 3],
        "one track for the queue of each process"
    );
}

#[test]
fn a_killed_program_leaves_what_it_had_done() {
    needs!(a_killed_program_leaves_what_it_had_done: NEEDS[0], NEEDS[1], NEEDS[2]);
    let dir = TestDir::new();
    let lives = dir.program("lives");
    let running = waiting(&dir, &lives);
    // SAFETY: kill() takes numbers; the process is a child of our own child, and waits for ever.
    unsafe { libc::kill(child_of(running.id()), libc::SIGKILL) };
    let ended = running.end();
    assert_eq!(ended.code(), 128 + libc::SIGKILL, "{}", ended.stderr);
    let mut trace = dir.trace();
    trace.assert_sound();
    assert_eq!(kernels(&mut trace, "work"), 20);
}

#[test]
fn a_program_killed_at_work_leaves_a_sound_trace() {
    needs!(a_program_killed_at_work_leaves_a_sound_trace: NEEDS[0], NEEDS[1], NEEDS[2]);
    let dir = TestDir::new();
    let lives = dir.program("lives");
    let script = format!(
        "'{}' 2000000 announce > '{1}' & work=$!; until [ -s '{1}' ]; do sleep 0.01; done; sleep 0.3; \
         kill -KILL $work; wait $work; exit 0",
        lives.display(),
        dir.join("working").display()
    );
    well(&mut dir.record(Driver::Basic, "sh", &["-c", &script]));
    let mut trace = dir.trace();
    trace.assert_sound();
    assert!(kernels(&mut trace, "work") > 0);
}

#[test]
fn a_program_goes_on_when_gputrail_is_killed() {
    needs!(a_program_goes_on_when_gputrail_is_killed: NEEDS[0], NEEDS[1]);
    let dir = TestDir::new();
    let (lives, done) = (dir.program("lives"), dir.join("done"));
    // A pool that is full at once when nobody empties it: its lanes must not wait for ever.
    let script = format!(
        "'{}' 300000 announce > '{2}' & work=$!; until [ -s '{2}' ]; do sleep 0.01; done; \
         kill -KILL $PPID; wait $work; echo $? > '{1}.part'; mv '{1}.part' '{1}'",
        lives.display(),
        done.display(),
        dir.join("working").display()
    );
    let small = ["--buffers", "1M", "--buffer-size", "64K"];
    let mut command = dir.record_with(&small, Driver::Basic, "sh", &["-c", &script]);
    // No remaining process waits for the end of our own output.
    let mut running = command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    assert!(!running.wait().unwrap().success());
    while !done.exists() {
        sleep(Duration::from_millis(10));
    }
    assert_eq!(std::fs::read_to_string(&done).unwrap(), "0\n");
}

#[test]
fn the_next_gputrail_names_the_command_that_rescues_what_a_killed_one_had_recorded() {
    needs!(the_next_gputrail_names_the_command_that_rescues_what_a_killed_one_had_recorded:
        NEEDS[0], NEEDS[1], NEEDS[2]);
    let dir = TestDir::new();
    let (lives, done) = (dir.program("lives"), dir.join("done"));
    let script = format!(
        "'{}' 20000; kill -KILL $PPID; touch '{}'",
        lives.display(),
        done.display()
    );
    let ended = run(&mut dir.record_with(&["-q"], Driver::Basic, "sh", &["-c", &script]));
    assert_eq!(ended.signal(), Some(libc::SIGKILL));
    while !done.exists() {
        sleep(Duration::from_millis(10));
    }
    // A folder that has just been made may be that of a recording that begins.
    let mut folders = std::fs::read_dir(dir.path()).unwrap().flatten();
    let folder = folders.find(|entry| {
        entry
            .file_name()
            .to_string_lossy()
            .starts_with(".gputrail-")
    });
    let folder = std::fs::File::open(folder.expect("what was recorded").path()).unwrap();
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
    folder.set_modified(long_ago).unwrap();

    let said = well(&mut dir.record_with(&["-q"], Driver::Basic, "true", &[])).stderr;
    let command = said.split('`').nth(1).expect("a command");
    let arguments = command.strip_prefix("gputrail ").expect("one of ours");
    let rescue = format!("'{}' {arguments}", env!("CARGO_BIN_EXE_gputrail"));
    let mut command = Command::new("sh");
    let ended = run(command.args(["-c", &rescue]).current_dir(dir.path()));
    // The kill may have cut a chunk that was being written.
    let is_cut = ended.stderr.contains("the file was cut");
    assert_eq!(ended.code(), i32::from(is_cut), "{}", ended.stderr);
    let mut trace = Trace::open(dir.join("rescued.pftrace"));
    assert!(kernels(&mut trace, "work") > 0);
    // It may have ended the recording before it was killed. Otherwise the trace tells of a loss, and nothing else is wrong.
    let info = well(&mut dir.gputrail(["info", "rescued.pftrace"])).text();
    let is_open = info.contains("the recording was not ended");
    let expected: &[_] = if is_open {
        &[("traced_final_flush_failed".to_owned(), 1)]
    } else {
        &[]
    };
    assert_eq!(trace.complaints(), expected);
}

#[test]
fn what_a_killed_gputrail_left_in_shared_memory_is_removed_by_the_next() {
    needs!(what_a_killed_gputrail_left_in_shared_memory_is_removed_by_the_next: NEEDS[0], NEEDS[1]);
    let dir = TestDir::new();
    let (lives, done) = (dir.program("lives"), dir.join("done"));
    // The session lies in the first of the folders that hold sessions.
    let shared = dir.join("shm");
    std::fs::create_dir(&shared).unwrap();
    let sessions = || std::fs::read_dir(&shared).unwrap().flatten();
    let script = format!(
        "'{}' 20; kill -KILL $PPID; touch '{}'",
        lives.display(),
        done.display()
    );
    let mut command = dir.record_with(&["-q"], Driver::Basic, "sh", &["-c", &script]);
    let ended = run(command.env("XDG_RUNTIME_DIR", &shared));
    assert_eq!(ended.signal(), Some(libc::SIGKILL));
    while !done.exists() {
        sleep(Duration::from_millis(10));
    }
    let left = sessions().next().expect("the session's folder").path();
    // A folder that has just been made may be that of a session that begins.
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
    let folder = std::fs::File::open(&left).unwrap();
    folder.set_modified(long_ago).unwrap();
    let mut next = dir.record_with(&["-q"], Driver::Basic, "true", &[]);
    well(next.env("XDG_RUNTIME_DIR", &shared));
    assert_eq!(sessions().count(), 0, "{}", left.display());
}

#[test]
fn a_kernel_that_runs_at_exit_delays_nothing_and_lasts_until_then() {
    needs!(a_kernel_that_runs_at_exit_delays_nothing_and_lasts_until_then: NEEDS[0], NEEDS[1], NEEDS[2]);
    let dir = TestDir::new();
    let program = dir.program("disturbed");
    let ended = run(&mut dir.record(Driver::Threaded, &program, &["exits-running"])).well();
    assert!(!ended.stderr.contains("had no work"), "{}", ended.stderr);
    let mut trace = dir.trace();
    trace.assert_sound();
    let [(enqueued, start, duration)] = trace.rows::<(i64, i64, i64)>(
        "select (select max(ts) from slice where name = 'clFlush'), ts, dur from gpu_slice where name = 'endless'",
    )[..] else {
        panic!("one kernel");
    };
    assert!(
        start + duration >= enqueued + 100_000_000,
        "{start} + {duration}, {enqueued}"
    );
    let summary = well(&mut dir.gputrail(["summary", "run.pftrace"])).text();
    let line = summary
        .lines()
        .find(|line| line.trim_start().starts_with("endless"));
    // Nobody knows when it began to run, or whether it did.
    let cells: Vec<&str> = line.into_iter().flat_map(str::split_whitespace).collect();
    assert_eq!(&cells[1..6], ["0.0", "%", "0", "ns", "1"], "{summary}");
    assert_eq!(cells.last(), Some(&"1"), "{summary}");
}

#[test]
fn calls_of_threads_that_go_on_while_the_program_exits_are_recorded() {
    needs!(calls_of_threads_that_go_on_while_the_program_exits_are_recorded:
        NEEDS[0], NEEDS[1], NEEDS[2]);
    let dir = TestDir::new();
    let program = dir.program("disturbed");
    let ended = run(&mut dir.record_with(&["-q"], Driver::Threaded, &program, &["exits", "5000"]));
    let text = ended.well().text();
    let count = text.lines().find(|line| line.starts_with("made"));
    let made: i64 = count
        .and_then(|line| line.rsplit(' ').next()?.parse().ok())
        .expect("a count");
    let mut trace = dir.trace();
    trace.assert_sound();
    let recorded: i64 = trace.value("select count(*) from slice where name = 'clGetDeviceIDs'");
    assert_eq!(recorded, made + 1, "and the one at the beginning");
    well(&mut dir.gputrail(["check", "run.pftrace"]));
}

#[test]
fn standard_streams_are_the_programs() {
    needs!(standard_streams_are_the_programs: Need::TraceProcessor);
    let dir = TestDir::new();
    let script = "printf out; printf err >&2";
    let ended = well(&mut dir.record_with(&["-q"], Driver::Threaded, "sh", &["-c", script]));
    assert_eq!(
        (ended.text().as_str(), ended.stderr.as_str()),
        ("out", "err")
    );
    let ended = well(&mut dir.record(Driver::Threaded, "sh", &["-c", script]));
    assert_eq!(ended.text(), "out", "our own words go to standard error");
}

#[test]
fn the_program_reads_our_standard_input() {
    needs!(the_program_reads_our_standard_input: Need::TraceProcessor);
    let dir = TestDir::new();
    let recorder = dir.record_with(&["-q"], Driver::Threaded, "cat", &[]);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "echo input | \"$@\"", "sh"])
        .arg(recorder.get_program())
        .args(recorder.get_args());
    let ended = well(shell.current_dir(dir.path()));
    assert_eq!(ended.text(), "input\n");
}
