//! `gputrail merge`: the contents of each trace are in the merged one at their times, and ids do not collide.

use std::io::Write;
use std::process::{Command, Stdio};

use gputrail_buffer::clock;
use gputrail_harness::machine::{self, Need};
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;
use gputrail_harness::trace::Trace;
use gputrail_harness::{needs, repository};
use gputrail_record::ClockSnapshot;

use crate::command::{TestDir, well};

/// Two demos; if `other_machine`, the second one gets another machine's name.
fn two_demos(dir: &TestDir, other_machine: bool) {
    for (name, seed) in [("a.pftrace", "1"), ("b.pftrace", "2")] {
        well(&mut dir.gputrail(["demo", "-q", "--capture", "--seed", seed, "-o", name]));
    }
    if other_machine {
        let path = dir.join("b.pftrace");
        let mut trace = std::fs::read(&path).unwrap();
        for at in 0..trace.len() - 9 {
            if &trace[at..at + 9] == b"simulated" {
                trace[at + 8] = b'x';
            }
        }
        std::fs::write(path, trace).unwrap();
    }
}

fn numbers(trace: &mut Trace) -> (i64, i64, i64) {
    trace
        .rows(
            "select (select count(*) from slice join thread_track on slice.track_id = thread_track.id), \
             (select count(*) from gpu_slice), (select sum(dur) from gpu_slice)",
        )
        .remove(0)
}

#[test]
fn traces_of_one_machine_make_one_trace() {
    needs!(traces_of_one_machine_make_one_trace: Need::TraceProcessor);
    let dir = TestDir::new();
    two_demos(&dir, false);
    let ended = well(&mut dir.gputrail(["merge", "a.pftrace", "b.pftrace", "-o", "both.pftrace"]));
    assert!(
        ended.stderr.contains("own clock: exact"),
        "{}",
        ended.stderr
    );
    well(&mut dir.gputrail(["check", "both.pftrace"]));
    let mut both = Trace::open(dir.join("both.pftrace"));
    both.assert_sound();
    let [a, b] = ["a.pftrace", "b.pftrace"].map(|name| numbers(&mut Trace::open(dir.join(name))));
    assert_eq!(numbers(&mut both), (a.0 + b.0, a.1 + b.1, a.2 + b.2));
}

#[test]
fn captures_and_traces_merge_alike() {
    needs!(captures_and_traces_merge_alike: Need::TraceProcessor);
    let dir = TestDir::new();
    two_demos(&dir, false);
    well(&mut dir.gputrail([
        "merge",
        "-q",
        "a.gputrail",
        "b.pftrace",
        "-o",
        "mixed.pftrace",
    ]));
    well(&mut dir.gputrail([
        "merge",
        "-q",
        "a.pftrace",
        "b.pftrace",
        "-o",
        "both.pftrace",
    ]));
    well(&mut dir.gputrail(["check", "mixed.pftrace"]));
    let [mixed, both] =
        ["mixed.pftrace", "both.pftrace"].map(|name| numbers(&mut Trace::open(dir.join(name))));
    assert_eq!(mixed, both);
}

#[test]
fn another_machine_keeps_its_processes_and_devices_apart() {
    needs!(another_machine_keeps_its_processes_and_devices_apart: Need::TraceProcessor);
    let dir = TestDir::new();
    two_demos(&dir, true);
    let ended = well(&mut dir.gputrail([
        "merge",
        "a.pftrace",
        "b.pftrace",
        "--offset",
        "2=5000000",
        "-o",
        "both.pftrace",
    ]));
    assert!(
        ended
            .stderr
            .contains("machine 1 (simulatex), times +5.00 ms"),
        "{}",
        ended.stderr
    );
    well(&mut dir.gputrail(["check", "both.pftrace"]));
    let mut both = Trace::open(dir.join("both.pftrace"));
    both.assert_sound();
    let train = both.value::<i64>("select count(*) from process where name = 'train'");
    assert_eq!(train, 2, "one process id on two machines is two processes");
    let begins: Vec<(i64, i64)> = both.rows(
        "select p.machine_id is not null, min(ts) from slice join thread_track on slice.track_id = thread_track.id \
         join thread using (utid) join process p using (upid) group by 1 order by 1",
    );
    let alone = |name: &str| {
        Trace::open(dir.join(name)).value::<i64>(
            "select min(ts) from slice join thread_track on slice.track_id = thread_track.id",
        )
    };
    assert_eq!(
        begins,
        [(0, alone("a.pftrace")), (1, alone("b.pftrace") + 5_000_000)]
    );
    let devices = both.value::<i64>(
        "select count(distinct substr(name, 1, 5)) from gpu_track where name glob 'GPU *'",
    );
    assert_eq!(devices, 4);
    // Counters are named after their devices.
    let counters: Vec<(String,)> = both
        .rows("select name from gpu_counter_track where name glob '* kernels (*) · *' order by 1");
    let expected = [
        "GPU 0 kernels (100 us mean) · 4000",
        "GPU 1 kernels (100 us mean) · 4000",
        "GPU 2 kernels (100 us mean) · 4000",
        "GPU 3 kernels (100 us mean) · 4000",
    ];
    assert_eq!(counters, expected.map(|name| (name.to_owned(),)));
}

#[test]
fn by_real_time_it_is_said_how_far_to_trust_it() {
    let dir = TestDir::new();
    two_demos(&dir, true);
    let ended = well(&mut dir.gputrail(["merge", "a.pftrace", "b.pftrace", "-o", "both.pftrace"]));
    assert!(
        ended.stderr.contains("real-time clocks"),
        "{}",
        ended.stderr
    );
}

#[test]
fn traces_that_cannot_be_merged_are_named() {
    let dir = TestDir::new();
    two_demos(&dir, false);
    // One packet, of sequence 1, without clocks.
    std::fs::write(dir.join("clockless.pftrace"), [0x0a, 2, 0x50, 1]).unwrap();
    std::fs::write(dir.join("text"), "not a trace at all").unwrap();
    for (arguments, words) in [
        (&["a.pftrace", "clockless.pftrace"][..], "--offset 2="),
        (
            &["a.pftrace", "text"],
            "a text that begins with \"not a trace at all\"; expected one of: ",
        ),
        (&["a.pftrace", "none"], "none"),
        (&["a.pftrace", "b.pftrace", "--offset", "3=1"], "2 inputs"),
    ] {
        let ended = run(&mut dir.gputrail(["merge", "-o", "out.pftrace"].iter().chain(arguments)));
        assert_eq!(ended.code(), 125, "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
        assert!(
            dir.files("out.pftrace").is_empty(),
            "nothing is left behind"
        );
    }
}

/// A zstd frame with uncompressed blocks.
pub fn packed_with_zstd(bytes: &[u8]) -> Vec<u8> {
    // The magic number, no single segment, a window of 128 KiB.
    let mut packed = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3];
    let mut blocks = bytes.chunks(1 << 16).peekable();
    while let Some(block) = blocks.next() {
        let is_last = u32::from(blocks.peek().is_none());
        let head = (block.len() as u32) << 3 | is_last;
        packed.extend_from_slice(&head.to_le_bytes()[..3]);
        packed.extend_from_slice(block);
    }
    packed
}

#[test]
fn packed_traces_merge_and_damage_ends_in_exit_code_1() {
    let dir = TestDir::new();
    two_demos(&dir, false);
    let b = std::fs::read(dir.join("b.pftrace")).unwrap();
    std::fs::write(dir.join("b.zst"), packed_with_zstd(&b)).unwrap();
    let merge = |second: &str, output: &str| {
        run(&mut dir.gputrail(["merge", "-q", "a.pftrace", second, "-o", output]))
    };
    for (second, output) in [("b.pftrace", "plain.pftrace"), ("b.zst", "packed.pftrace")] {
        let ended = merge(second, output);
        assert_eq!(ended.code(), 0, "{second}: {}", ended.stderr);
    }
    let [plain, packed] =
        ["plain.pftrace", "packed.pftrace"].map(|name| std::fs::read(dir.join(name)).unwrap());
    assert!(plain == packed, "the same trace, however it is packed");

    // From the beginning of a packet in the middle.
    let mut damaged = b.clone();
    let mut at = 0;
    while at < b.len() / 2 {
        let digits = b[at + 1..]
            .iter()
            .position(|byte| byte & 0x80 == 0)
            .unwrap()
            + 1;
        let length = &b[at + 1..at + 1 + digits];
        let length = length
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 7 | usize::from(byte & 0x7f));
        at += 1 + digits + length;
    }
    damaged[at..at + 40].fill(0);
    std::fs::write(dir.join("damaged.pftrace"), damaged).unwrap();
    let ended = merge("damaged.pftrace", "out.pftrace");
    assert_eq!(ended.code(), 1, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("damaged.pftrace: at byte"),
        "{}",
        ended.stderr
    );
    assert!(dir.join("out.pftrace").exists());
}

#[test]
fn an_input_is_never_the_output_of_a_merge_or_a_conversion() {
    let dir = TestDir::new();
    two_demos(&dir, false);
    std::fs::create_dir(dir.join("folder")).unwrap();
    std::fs::rename(dir.join("b.pftrace"), dir.join("folder/b.pftrace")).unwrap();
    let before = std::fs::read(dir.join("folder/b.pftrace")).unwrap();
    for command in ["merge", "convert"] {
        for output in ["a.pftrace", "folder/b.pftrace", "folder/../a.pftrace"] {
            let ended = run(&mut dir.gputrail([command, "a.pftrace", "folder", "-o", output]));
            assert_eq!(ended.code(), 125, "{command} {output}: {}", ended.stderr);
            assert!(ended.stderr.contains("is an input"), "{}", ended.stderr);
        }
    }
    assert!(std::fs::read(dir.join("folder/b.pftrace")).unwrap() == before);
}

#[test]
fn the_ranks_of_a_job_are_distinguished_by_name() {
    needs!(the_ranks_of_a_job_are_distinguished_by_name: Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let program = dir.program("waits");
    for rank in ["0", "1"] {
        let name = format!("{rank}.pftrace");
        let mut record = dir.record(Driver::Basic, &program, &[]);
        // Under Slurm, by torchrun.
        let job = [("SLURM_PROCID", "0"), ("RANK", rank), ("WORLD_SIZE", "2")];
        well(record.envs(job));
        std::fs::rename(dir.join("run.pftrace"), dir.join(&name)).unwrap();
    }
    well(&mut dir.gputrail(["merge", "-q", "0.pftrace", "1.pftrace", "-o", "job.pftrace"]));
    well(&mut dir.gputrail(["check", "job.pftrace"]));
    let mut job = Trace::open(dir.join("job.pftrace"));
    job.assert_sound();
    let names: Vec<(String,)> =
        job.rows("select name from process where name glob 'waits*' order by 1");
    let expected = ["waits (rank 0 of 2)", "waits (rank 1 of 2)"];
    assert_eq!(names, expected.map(|name| (name.to_owned(),)));
    let queues =
        "select count(distinct t.name) from gpu_slice g join gpu_track t on g.track_id = t.id";
    for rank in [0, 1] {
        let own = format!("{queues} where t.name glob '* · rank *{rank} · *'");
        assert_eq!(job.value::<i64>(&own), 3, "queues of {rank}");
    }
}

#[test]
fn samples_of_merged_traces_add_up() {
    needs!(samples_of_merged_traces_add_up: Need::TraceProcessor);
    let dir = TestDir::new();
    for (name, method) in [("a.pftrace", "stochastic"), ("b.pftrace", "host-trap")] {
        well(&mut dir.gputrail(["demo", "-q", "--pc-sampling", method, "-o", name]));
    }
    well(&mut dir.gputrail(["merge", "a.pftrace", "b.pftrace", "-o", "both.pftrace"]));
    well(&mut dir.gputrail(["check", "both.pftrace"]));
    // In the flame graph, and in the exact counts.
    let [a, b, both] = ["a.pftrace", "b.pftrace", "both.pftrace"].map(|name| {
        let mut trace = Trace::open(dir.join(name));
        let shown = trace.value::<i64>("select count(*) from cpu_profile_stack_sample");
        let report = well(&mut dir.gputrail(["hotspots", name, "--format", "json"])).text();
        let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        (shown, report["samples"].as_i64().expect("a number"))
    });
    assert!(a.1 > 0 && b.1 > 0);
    assert_eq!(both, (a.0 + b.0, a.1 + b.1));
}

/// Writes a trace in the way Perfetto's own service records scheduling: process `pid` ran from the first reading of the
/// clocks to the second.
pub fn like_traced(dir: &TestDir, name: &str, pid: i64, clocks: &[ClockSnapshot; 2]) {
    let reading = |clocks: &ClockSnapshot| {
        let (boottime, monotonic) = (clocks.boottime.0, clocks.monotonic.0);
        let realtime = clocks.realtime.0;
        format!(r#"{{"boottime":{boottime},"monotonic":{monotonic},"realtime":{realtime}}}"#)
    };
    let (from, to) = (clocks[0].boottime.0, clocks[1].boottime.0);
    let happened = clocks[0].monotonic.0 + (to - from) / 2;
    let given = format!(
        r#"{{"clocks":[{},{}],"pid":{pid},"from":{from},"to":{to},"monotonic":{happened}}}"#,
        reading(&clocks[0]),
        reading(&clocks[1])
    );
    let mut python = Command::new("python3")
        .env("PYTHONPATH", machine::tools().join("python"))
        .arg(repository("tests/perfetto/like_traced.py"))
        .arg(dir.join(name))
        .stdin(Stdio::piped())
        .spawn()
        .expect("Python");
    let mut stdin = python.stdin.take().expect("a pipe");
    stdin.write_all(given.as_bytes()).expect("Python reads");
    drop(stdin);
    assert!(python.wait().expect("an end").success());
}

/// The number of slices of the program's threads, and of those within the time in which its first thread ran by
/// `sched`; and of the other trace the time on each processor, and the instant.
fn lined_up(path: std::path::PathBuf) -> (i64, i64, Vec<(i64, i64)>, i64) {
    let mut trace = Trace::open(path);
    trace.assert_sound();
    let slices = "select count(*) from slice join thread_track on slice.track_id = thread_track.id join thread using (utid)";
    let all = trace.value(slices);
    let within = trace.value(&format!(
        "{slices} join sched on sched.utid = thread.utid and cpu = 0 where slice.ts > sched.ts \
         and slice.ts + slice.dur < sched.ts + sched.dur"
    ));
    let ran = trace.rows(
        "select sched.ts, sched.dur from sched join thread using (utid) where tid != 0 order by sched.ts",
    );
    (
        all,
        within,
        ran,
        trace.value("select ts from slice where name = 'happened'"),
    )
}

#[test]
fn calls_line_up_with_the_scheduling_that_perfetto_traced() {
    needs!(calls_line_up_with_the_scheduling_that_perfetto_traced: Need::Pocl, Need::OpenClToolchain,
        Need::TraceProcessor, Need::PythonBindings);
    let dir = TestDir::new();
    let program = dir.program("waits");
    let before = clock::snapshot();
    well(&mut dir.record(Driver::Basic, &program, &[]));
    let clocks = [before, clock::snapshot()];
    let pid: i64 = dir
        .trace()
        .value("select pid from process where name glob 'waits*'");
    like_traced(&dir, "sched.pftrace", pid, &clocks);
    // Merged by our command, and by plain concatenation.
    let ended = well(&mut dir.gputrail([
        "merge",
        "run.pftrace",
        "sched.pftrace",
        "-o",
        "merged.pftrace",
    ]));
    assert!(
        ended
            .stderr
            .contains("its clock began with that of the first"),
        "{}",
        ended.stderr
    );
    well(&mut dir.gputrail(["check", "sched.pftrace"]));
    let files = ["sched.pftrace", "run.pftrace"].map(|name| std::fs::read(dir.join(name)).unwrap());
    std::fs::write(dir.join("joined.pftrace"), files.concat()).unwrap();
    let (from, to) = (clocks[0].boottime.0 as i64, clocks[1].boottime.0 as i64);
    for name in ["merged.pftrace", "joined.pftrace"] {
        let (all, within, ran, happened) = lined_up(dir.join(name));
        assert!(all > 20, "{name}: {all} calls");
        assert_eq!(within, all, "{name}: calls while the process ran");
        assert_eq!(
            ran,
            [(from, to - from), (2 * to - from, to - from)],
            "{name}"
        );
        assert!((from..to).contains(&happened), "{name}: {happened}");
    }
}

#[test]
fn the_kernels_events_move_with_their_machine() {
    needs!(the_kernels_events_move_with_their_machine: Need::TraceProcessor, Need::PythonBindings);
    let dir = TestDir::new();
    well(&mut dir.gputrail(["demo", "-q", "-o", "a.pftrace"]));
    let before = clock::snapshot();
    let mut after = before;
    after.boottime.0 += 1_000_000;
    after.monotonic.0 += 1_000_000;
    after.realtime.0 += 1_000_000;
    like_traced(&dir, "sched.pftrace", 4242, &[before, after]);
    let options = ["--offset", "2=7000", "-o", "merged.pftrace"];
    well(
        &mut dir.gputrail(
            ["merge", "-q", "a.pftrace", "sched.pftrace"]
                .iter()
                .chain(&options),
        ),
    );
    let mut merged = Trace::open(dir.join("merged.pftrace"));
    merged.assert_sound();
    let moved = before.boottime.0 as i64 + 7000;
    let ran: Vec<(i64, i64)> = merged.rows(
        "select sched.ts, sched.dur from sched join thread using (utid) where tid = 4242 order by 1",
    );
    assert_eq!(ran, [(moved, 1_000_000), (moved + 2_000_000, 1_000_000)]);
    let happened: i64 = merged.value("select ts from slice where name = 'happened'");
    assert_eq!(happened, moved + 500_000);
}
