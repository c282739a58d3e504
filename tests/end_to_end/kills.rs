//! Programs killed at random moments: everything recorded by then is in the trace, once.
//!
//! A [`Witness`] counts what has been recorded. Records are checked in the kept capture, by the sequence numbers of
//! each lane, and against the trace.
//!
//! `GPUTRAIL_KILLS` sets how many programs are killed; a failure names the seed that `GPUTRAIL_TEST_SEED` repeats.

use gputrail_collect::switchboard::Switchboard;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use gputrail_capture::Reader;
use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::{Running, run};
use gputrail_harness::trace::Trace;
use gputrail_record::{
    Api, Completion, CorrelationId, KernelDispatch, Kind, Loss, NoteKind, ThreadId, WorkId, flags,
};
use gputrail_sources::sim;

use crate::command::{TestDir, well};
use crate::processes::child_of;
use crate::random::Random;
use crate::transparency::ffmpeg;
use crate::witness::{WITNESSED, Witness};

/// The default number of programs killed by all tests together.
const KILLS: u32 = 100;
/// One of this many traces is opened with Perfetto; the others are read as captures only.
const ASKED: u32 = 8;
/// `percent` of all kills.
fn share(percent: u32) -> u32 {
    let kills = std::env::var("GPUTRAIL_KILLS").map_or(KILLS, |kills| {
        kills.parse().expect("GPUTRAIL_KILLS is a number")
    });
    (kills * percent).div_ceil(100)
}

/// Kills the program that `recorder` records once the witness has counted `calls` calls; if `calls` is 0, `moment`
/// after the start.
fn kill_at(recorder: &mut Running, witness: &Witness, calls: u64, moment: Duration) {
    let process = if calls == 0 {
        while std::fs::read_to_string(children_file(recorder.id()))
            .is_ok_and(|children| children.is_empty())
            && !recorder.has_ended()
        {
            sleep(Duration::from_micros(100));
        }
        sleep(moment);
        if recorder.has_ended() {
            return;
        }
        child_of(recorder.id())
    } else {
        while witness.calls() < calls {
            if recorder.has_ended() {
                return;
            }
            sleep(Duration::from_micros(20));
        }
        witness.process().expect("it has counted")
    };
    // SAFETY: kill() takes numbers; the process is not reaped before its recorder has noticed its death.
    unsafe { libc::kill(process, libc::SIGKILL) };
}

fn children_file(process: u32) -> String {
    format!("/proc/{process}/task/{process}/children")
}

/// The contents of a process's capture.
#[derive(Default)]
struct Account {
    /// The number of ended calls of witnessed functions, by thread.
    ended: BTreeMap<ThreadId, u64>,
    /// The number of witnessed calls in progress, by thread.
    open: BTreeMap<ThreadId, u64>,
    /// The number of calls of any function.
    calls: u64,
    /// The notes about the death of the process.
    deaths: Vec<String>,
    /// Whether the process ended its recording itself.
    whole: bool,
}

/// Reads a capture, and checks that each lane's sequence has no gap and no duplicate.
fn account(capture: &Path) -> Account {
    let reader = Reader::open(capture).unwrap_or_else(|error| panic!("{error}"));
    let metadata = reader.metadata();
    let mut account = Account {
        whole: reader.ended(),
        ..Account::default()
    };
    for note in &metadata.notes {
        if note.what == NoteKind::DIED {
            account.deaths.push(metadata.string(note.text).to_owned());
        }
    }
    let mut next: HashMap<u32, u32> = HashMap::new();
    let mut correlations: HashSet<CorrelationId> = HashSet::new();
    let mut completed: HashSet<WorkId> = HashSet::new();
    let mut dispatched: HashSet<WorkId> = HashSet::new();
    // A launch of a graph dispatches several kernels.
    let mut launches: HashSet<CorrelationId> = HashSet::new();
    let mut enqueued: Vec<CorrelationId> = Vec::new();
    let mut chunks = reader.chunks();
    while let Some(chunk) = chunks.next() {
        for record in chunk.records() {
            // Lane 0 contains the records of the recovery.
            if chunk.lane != 0 {
                let expected = next.entry(chunk.lane).or_default();
                let number = record.header().sequence;
                let kind = record.kind();
                assert_eq!(number, *expected, "lane {}: {kind:?}", chunk.lane);
                *expected += 1;
            }
            match record.kind() {
                Kind::API => {
                    let api: Api = record.read().expect("its size was checked");
                    assert!(correlations.insert(api.correlation), "twice: {api:?}");
                    account.calls += 1;
                    let name = metadata.operation(api.operation);
                    if WITNESSED.contains(&&*name) {
                        let ended = !api.header.has(flags::UNFINISHED);
                        let count = if ended {
                            &mut account.ended
                        } else {
                            &mut account.open
                        };
                        *count.entry(api.thread).or_default() += 1;
                        if ended && name == "clEnqueueNDRangeKernel" && api.return_code == 0 {
                            enqueued.push(api.correlation);
                        }
                    }
                }
                Kind::KERNEL_DISPATCH => {
                    let dispatch: KernelDispatch = record.read().expect("its size was checked");
                    assert!(dispatched.insert(dispatch.work.id), "twice: {dispatch:?}");
                    launches.insert(dispatch.work.correlation);
                }
                Kind::COMPLETION => {
                    let completion: Completion = record.read().expect("its size was checked");
                    assert!(completed.insert(completion.work), "twice: {completion:?}");
                }
                Kind::LOSS => panic!("lost: {:?}", record.read::<Loss>()),
                _ => {}
            }
        }
    }
    for call in enqueued {
        assert!(launches.contains(&call), "{call:?} enqueued nothing");
    }
    account
}

impl Account {
    /// Checks that the capture has every call that the witness counted, and no others.
    fn agrees_with(&self, witness: &Witness) {
        for (thread, seen) in witness.threads() {
            let of = |counts: &BTreeMap<ThreadId, u64>| counts.get(&thread).copied().unwrap_or(0);
            let (ended, open) = (of(&self.ended), of(&self.open));
            let told = format!("{thread:?}: {seen} seen, {ended} ended, {open} in progress");
            assert!(open <= 1, "a call in progress stands there once: {told}");
            // All calls but the last had returned; the last one has begun. Another one may have begun that the witness
            // has not counted.
            assert!(ended + 1 >= seen, "ended calls are missing: {told}");
            assert!(ended + open >= seen, "the last call is missing: {told}");
            assert!(ended + open <= seen + 1, "too many calls: {told}");
        }
    }
}

/// A program to be killed.
struct Victim<'a> {
    driver: Driver,
    program: &'a Path,
    arguments: &'a [&'a str],
}

impl Victim<'_> {
    /// Has the program recorded and killed `kills` times.
    fn die(&self, dir: &TestDir, kills: u32) {
        let mut random = Random::new();
        let start = |witness: &Witness| -> Command {
            for old in ["run.pftrace", "run.gputrail"] {
                let _ = fs::remove_file(dir.join(old));
            }
            let options = ["--capture", "-q"];
            let mut command = dir.record_with(&options, self.driver, self.program, self.arguments);
            witness.watch(dir, &mut command);
            command
        };
        // The first run fills the kernel cache; its number of calls is the range in which the others are killed.
        let witness = Witness::new(dir);
        well(&mut start(&witness));
        let all = witness.calls();
        assert!(all > 100, "{all} calls are too few to be killed in");

        let mut killed = 0;
        for kill in 0..kills {
            let witness = Witness::new(dir);
            // Some are killed before their first call, at any moment of their start.
            let calls = random.up_to(all).saturating_sub(all / 20);
            let moment = Duration::from_micros(random.up_to(100_000));
            let told = format!("kill {kill}, at call {calls} of {all}");
            let mut recorder = Running::start(&mut start(&witness));
            kill_at(&mut recorder, &witness, calls, moment);
            let ended = recorder.end();
            if ended.code() != 0 {
                assert_eq!(
                    ended.code(),
                    128 + libc::SIGKILL,
                    "{told}: {}",
                    ended.stderr
                );
            }
            let capture = dir.join("run.gputrail");
            if !capture.exists() {
                assert_eq!(witness.calls(), 0, "{told}: no capture: {}", ended.stderr);
                continue;
            }
            eprintln!("{told}");
            let account = account(&capture);
            account.agrees_with(&witness);
            if account.whole {
                continue;
            }
            killed += 1;
            assert_eq!(account.deaths, ["killed by signal 9 (SIGKILL)"], "{told}");
            if kill % ASKED == 0 {
                account.agrees_with_trace(&mut dir.trace());
            }
        }
        assert!(
            killed * 2 > kills,
            "{killed} of {kills} were killed in time"
        );
    }
}

impl Account {
    /// Checks that the trace has the same calls.
    fn agrees_with_trace(&self, trace: &mut Trace) {
        trace.assert_sound();
        let sql = "select count(*) from slice join thread_track on track_id = thread_track.id \
            where slice.name glob 'cl*'";
        assert_eq!(trace.value::<u64>(sql), self.calls, "calls in the trace");
        let sql =
            "select extract_arg(arg_set_id, 'debug.detail') from slice where name = 'process died'";
        let deaths: Vec<String> = trace.rows(sql).into_iter().map(|(it,)| it).collect();
        assert_eq!(deaths, self.deaths);
    }
}

#[test]
fn nothing_of_clpeak_is_lost_or_twice_whenever_it_is_killed() {
    needs!(nothing_of_clpeak_is_lost_or_twice_whenever_it_is_killed:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor, Need::Program("clpeak"));
    let victim = Victim {
        driver: Driver::Basic,
        program: Path::new("clpeak"),
        arguments: &["--kernel-latency"],
    };
    victim.die(&TestDir::new(), share(30));
}

#[test]
fn nothing_of_ffmpeg_is_lost_or_twice_whenever_it_is_killed() {
    needs!(nothing_of_ffmpeg_is_lost_or_twice_whenever_it_is_killed:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor, Need::Program("ffmpeg"));
    let arguments = ffmpeg(25, &["-f", "null", "-"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let victim = Victim {
        driver: Driver::Threaded,
        program: Path::new("ffmpeg"),
        arguments: &arguments,
    };
    victim.die(&TestDir::new(), share(15));
}

#[test]
fn nothing_of_several_threads_is_lost_or_twice_whenever_they_are_killed() {
    needs!(nothing_of_several_threads_is_lost_or_twice_whenever_they_are_killed:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let lives = dir.program("lives");
    let victim = Victim {
        driver: Driver::Threaded,
        program: &lives,
        arguments: &["1000", "threads", "6"],
    };
    victim.die(&dir, share(35));
}

/// The environment variable that makes this binary the simulated program; it names the witness's file.
const SIMULATE: &str = "SIMULATED_PROGRAM_WITNESS";

/// Not a test, but the program of the next test, which starts it: a program of simulated devices, recorded in the
/// session that its environment names. It counts the calls of each run that has ended.
#[test]
fn the_simulated_program() {
    let Some(path) = std::env::var_os(SIMULATE) else {
        return;
    };
    let witness = File::options().write(true).open(path).expect("the file");
    let recorder = gputrail_collect::session::begin(&Switchboard::new())
        .expect("a session")
        .expect("one");
    let mut calls = 0_u64;
    for seed in 0.. {
        let report = sim::TrainingRun { seed, steps: 1 }
            .run(&recorder)
            .expect("it runs");
        calls += report.calls;
        witness
            .write_all_at(&std::process::id().to_ne_bytes(), 0)
            .and_then(|()| witness.write_all_at(&calls.to_ne_bytes(), Witness::CALLS))
            .expect("the file takes it");
    }
}

#[test]
fn nothing_of_a_simulated_gpu_is_lost_or_twice_whenever_its_program_is_killed() {
    let dir = TestDir::new();
    let this = std::env::current_exe().expect("this test has a file");
    let mut random = Random::new();
    for _ in 0..share(20) {
        for old in ["run.pftrace", "run.gputrail"] {
            let _ = fs::remove_file(dir.join(old));
        }
        let witness = Witness::new(&dir);
        let arguments = ["kills::the_simulated_program", "--exact", "--nocapture"];
        let mut command = dir.gputrail(["record", "-q", "--capture", "-o", "run.pftrace", "--"]);
        command
            .arg(&this)
            .args(arguments)
            .env(SIMULATE, &witness.path);
        let mut recorder = Running::start(&mut command);
        let calls = 1 + random.up_to(20_000);
        kill_at(&mut recorder, &witness, calls, Duration::ZERO);
        let ended = recorder.end();
        assert_eq!(ended.code(), 128 + libc::SIGKILL, "{}", ended.stderr);
        let account = account(&dir.join("run.gputrail"));
        let (seen, recorded) = (witness.calls(), account.calls);
        assert!(recorded >= seen, "{recorded} calls recorded, {seen} made");
        assert_eq!(account.deaths, ["killed by signal 9 (SIGKILL)"]);
    }
}

#[test]
fn what_a_killed_gputrail_had_not_written_is_told_by_every_command() {
    let dir = TestDir::new();
    let this = std::env::current_exe().expect("this test has a file");
    let witness = Witness::new(&dir);
    let arguments = ["kills::the_simulated_program", "--exact", "--nocapture"];
    let mut command = dir.gputrail(["record", "-q", "-o", "run.pftrace", "--"]);
    command
        .arg(&this)
        .args(arguments)
        .env(SIMULATE, &witness.path);
    let mut recorder = Running::start(&mut command);
    while witness.calls() == 0 {
        assert!(!recorder.has_ended(), "{}", recorder.end().stderr);
        sleep(Duration::from_millis(1));
    }
    let program = witness.process().expect("it has counted");
    for process in [recorder.id() as i32, program] {
        // SAFETY: kill() takes numbers; the program ends only here, and its recorder has not been reaped.
        unsafe { libc::kill(process, libc::SIGKILL) };
    }
    assert_eq!(recorder.end().signal(), Some(libc::SIGKILL));

    let folders = fs::read_dir(dir.path()).expect("a folder").flatten();
    let mut folders = folders.filter(|entry| entry.file_name().as_encoded_bytes()[0] == b'.');
    let folder = folders.next().expect("what was recorded").path();
    let files = fs::read_dir(folder).expect("a folder").flatten();
    let mut files = files.map(|entry| entry.path());
    let capture = files.find(|path| path.extension().is_some_and(|name| name == "gputrail"));
    let capture = capture.expect("a capture");
    let capture = capture.to_str().expect("UTF-8");

    let told = "the recording was not ended: gputrail was killed";
    let says = |arguments: &[&str], code: i32| {
        let ended = run(&mut dir.gputrail(arguments));
        assert_eq!(ended.code(), code, "{arguments:?}: {}", ended.stderr);
        let all = ended.text() + &ended.stderr;
        assert!(all.contains(told), "{arguments:?}: {all}");
        assert!(!all.contains("nothing is missing"), "{arguments:?}: {all}");
        assert!(!all.contains("nothing was lost"), "{arguments:?}: {all}");
        all
    };
    says(&["info", capture], 0);
    says(&["summary", capture], 0);
    says(&["convert", capture, "-o", "cut.pftrace"], 0);
    let info = says(&["info", "cut.pftrace"], 0);
    assert!(info.contains("complete       no, from "), "{info}");
    says(&["summary", "cut.pftrace"], 0);
    says(&["check", "cut.pftrace"], 1);
}
