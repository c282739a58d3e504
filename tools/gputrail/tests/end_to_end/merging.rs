//! `gputrail merge`: what was in each trace is in the merged one, at its time, and nothing runs into one another.

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;
use gputrail_harness::trace::Trace;

use crate::command::{Place, well};

/// Two demos; the second one as another machine's, if it is given that one's name.
fn two_demos(place: &Place, other_machine: bool) {
    for (name, seed) in [("a.pftrace", "1"), ("b.pftrace", "2")] {
        well(&mut place.gputrail(["demo", "-q", "--capture", "--seed", seed, "-o", name]));
    }
    if other_machine {
        let path = place.join("b.pftrace");
        let mut trace = std::fs::read(&path).unwrap();
        for place in 0..trace.len() - 9 {
            if &trace[place..place + 9] == b"simulated" {
                trace[place + 8] = b'x';
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
    let place = Place::new();
    two_demos(&place, false);
    let ended =
        well(&mut place.gputrail(["merge", "a.pftrace", "b.pftrace", "-o", "both.pftrace"]));
    assert!(
        ended.stderr.contains("own clock: exact"),
        "{}",
        ended.stderr
    );
    well(&mut place.gputrail(["check", "both.pftrace"]));
    let mut both = Trace::open(place.join("both.pftrace"));
    both.assert_sound();
    let [a, b] = ["a.pftrace", "b.pftrace"].map(|name| numbers(&mut Trace::open(place.join(name))));
    assert_eq!(numbers(&mut both), (a.0 + b.0, a.1 + b.1, a.2 + b.2));
}

#[test]
fn captures_and_traces_merge_alike() {
    needs!(captures_and_traces_merge_alike: Need::TraceProcessor);
    let place = Place::new();
    two_demos(&place, false);
    well(&mut place.gputrail([
        "merge",
        "-q",
        "a.gputrail",
        "b.pftrace",
        "-o",
        "mixed.pftrace",
    ]));
    well(&mut place.gputrail([
        "merge",
        "-q",
        "a.pftrace",
        "b.pftrace",
        "-o",
        "both.pftrace",
    ]));
    well(&mut place.gputrail(["check", "mixed.pftrace"]));
    let [mixed, both] =
        ["mixed.pftrace", "both.pftrace"].map(|name| numbers(&mut Trace::open(place.join(name))));
    assert_eq!(mixed, both);
}

#[test]
fn another_machine_keeps_its_processes_and_devices_apart() {
    needs!(another_machine_keeps_its_processes_and_devices_apart: Need::TraceProcessor);
    let place = Place::new();
    two_demos(&place, true);
    let ended = well(&mut place.gputrail([
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
    well(&mut place.gputrail(["check", "both.pftrace"]));
    let mut both = Trace::open(place.join("both.pftrace"));
    both.assert_sound();
    let train = both.value::<i64>("select count(*) from process where name = 'train'");
    assert_eq!(train, 2, "one process id on two machines is two processes");
    let begins: Vec<(i64, i64)> = both.rows(
        "select p.machine_id is not null, min(ts) from slice join thread_track on slice.track_id = thread_track.id \
         join thread using (utid) join process p using (upid) group by 1 order by 1",
    );
    let alone = |name: &str| {
        Trace::open(place.join(name)).value::<i64>(
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
    let counters: Vec<(String,)> =
        both.rows("select name from gpu_counter_track where name glob '*in flight' order by 1");
    let expected = [
        "GPU 0 . train 4000 . kernels in flight",
        "GPU 1 . train 4000 . kernels in flight",
        "GPU 2 . machine 1 . train 4000 . kernels in flight",
        "GPU 3 . machine 1 . train 4000 . kernels in flight",
    ];
    assert_eq!(counters, expected.map(|name| (name.to_owned(),)));
}

#[test]
fn by_real_time_it_is_said_how_far_to_trust_it() {
    let place = Place::new();
    two_demos(&place, true);
    let ended =
        well(&mut place.gputrail(["merge", "a.pftrace", "b.pftrace", "-o", "both.pftrace"]));
    assert!(
        ended.stderr.contains("real-time clocks"),
        "{}",
        ended.stderr
    );
}

#[test]
fn what_cannot_be_merged_is_said() {
    let place = Place::new();
    two_demos(&place, false);
    // One packet, of sequence 1, and nothing about clocks.
    std::fs::write(place.join("clockless.pftrace"), [0x0a, 2, 0x50, 1]).unwrap();
    std::fs::write(place.join("text"), "not a trace at all").unwrap();
    for (arguments, words) in [
        (&["a.pftrace", "clockless.pftrace"][..], "--offset 2="),
        (&["a.pftrace", "text"], "no packet"),
        (&["a.pftrace", "none"], "none"),
        (&["a.pftrace", "b.pftrace", "--offset", "3=1"], "2 inputs"),
    ] {
        let ended =
            run(&mut place.gputrail(["merge", "-o", "out.pftrace"].iter().chain(arguments)));
        assert_eq!(ended.code(), 125, "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
        assert!(
            place.files("out.pftrace").is_empty(),
            "nothing is left behind"
        );
    }
}

#[test]
fn the_ranks_of_a_job_are_told_apart_by_name() {
    needs!(the_ranks_of_a_job_are_told_apart_by_name: Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let place = Place::new();
    let program = place.program("waits");
    for rank in ["0", "1"] {
        let name = format!("{rank}.pftrace");
        let mut record = place.record(Driver::Basic, &program, &[]);
        // Under Slurm, by torchrun.
        let job = [("SLURM_PROCID", "0"), ("RANK", rank), ("WORLD_SIZE", "2")];
        well(record.envs(job));
        std::fs::rename(place.join("run.pftrace"), place.join(&name)).unwrap();
    }
    well(&mut place.gputrail(["merge", "-q", "0.pftrace", "1.pftrace", "-o", "job.pftrace"]));
    well(&mut place.gputrail(["check", "job.pftrace"]));
    let mut job = Trace::open(place.join("job.pftrace"));
    job.assert_sound();
    let names: Vec<(String,)> =
        job.rows("select name from process where name glob 'waits*' order by 1");
    let expected = ["waits (rank 0 of 2)", "waits (rank 1 of 2)"];
    assert_eq!(names, expected.map(|name| (name.to_owned(),)));
    let queues =
        "select count(distinct t.name) from gpu_slice g join gpu_track t on g.track_id = t.id";
    for rank in ["(rank 0 of 2)", "(rank 1 of 2)"] {
        let own = format!("{queues} where t.name glob '* {rank} . *'");
        assert_eq!(job.value::<i64>(&own), 3, "queues of {rank}");
    }
}

#[test]
fn samples_of_merged_traces_add_up() {
    needs!(samples_of_merged_traces_add_up: Need::TraceProcessor);
    let place = Place::new();
    for (name, method) in [("a.pftrace", "stochastic"), ("b.pftrace", "host-trap")] {
        well(&mut place.gputrail(["demo", "-q", "--pc-sampling", method, "-o", name]));
    }
    well(&mut place.gputrail(["merge", "a.pftrace", "b.pftrace", "-o", "both.pftrace"]));
    well(&mut place.gputrail(["check", "both.pftrace"]));
    // In the flame graph, and in the exact counts.
    let [a, b, both] = ["a.pftrace", "b.pftrace", "both.pftrace"].map(|name| {
        let mut trace = Trace::open(place.join(name));
        let shown = trace.value::<i64>("select count(*) from cpu_profile_stack_sample");
        let report = well(&mut place.gputrail(["hotspots", name, "--format", "json"])).text();
        let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        (shown, report["samples"].as_i64().expect("a number"))
    });
    assert!(a.1 > 0 && b.1 > 0);
    assert_eq!(both, (a.0 + b.0, a.1 + b.1));
}
