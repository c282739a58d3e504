//! Each rule on a small recording that has the fault, and on one that has not.

use super::*;
use gputrail_record::ThreadId;
use gputrail_trace::model::{
    Agent, AgentIndex, Call, Consumer, EventArgument, EventId, Function, FunctionIndex, Launch,
    Loss, Parent, Process, ProcessIndex, QueueIndex, Resources, Slice, Stage, StageId, Track,
    TrackIndex, TrackKind, Value, Work, WorkKind,
};

/// Builds a recording. Work of a process has queues and stages of its own.
struct Recording {
    summary: Summary,
    functions: Vec<String>,
    stages: Vec<String>,
    events: u64,
}

/// The properties of a piece of work that differ between tests.
#[derive(Copy, Clone)]
struct Piece<'a> {
    process: u32,
    queue: u32,
    name: &'a str,
    kind: WorkKind,
    bytes: u64,
    occupancy: Option<u64>,
}

const KERNEL: Piece<'static> = Piece {
    process: 0,
    queue: 0,
    name: "k",
    kind: WorkKind::Kernel,
    bytes: 0,
    occupancy: None,
};

impl Recording {
    fn new() -> Recording {
        let mut summary = Summary::default();
        let titles = ["GPU 0", "GPU 1", "GPU 2"];
        let agents = titles.map(|title| Agent {
            title: title.to_owned(),
            ..Agent::default()
        });
        summary.agents(AgentIndex(0), &agents).unwrap();
        for rank in 0..3 {
            let process = Process {
                pid: gputrail_record::ProcessId(100 + rank),
                name: "train",
                rank: &format!("rank {rank} of 3"),
                command: &[],
                order: None,
            };
            summary.process(ProcessIndex(rank), &process).unwrap();
            let track = Track {
                parent: Parent::Process(ProcessIndex(rank)),
                name: "",
                kind: TrackKind::Thread(ProcessIndex(rank), ThreadId(1)),
                order: None,
            };
            summary.track(TrackIndex(rank), &track).unwrap();
        }
        Recording {
            summary,
            functions: Vec::new(),
            stages: Vec::new(),
            events: 0,
        }
    }

    /// A call of process 0, which submits the next `submits` pieces of work.
    fn call(&mut self, name: &str, start: u64, end: u64, submits: u64) {
        self.failing_call(name, (start, end), submits, None);
    }

    /// A call without work, inside of which others may be until [`returned`](Recording::returned).
    fn open_call(&mut self, name: &str, (start, end): (u64, u64)) {
        let function = Function {
            index: FunctionIndex(place(&mut self.functions, name) as u32),
            name: name.into(),
            ..Function::default()
        };
        let call = Call {
            thread: ThreadId(1),
            start: Nanos(start),
            end: Some(Nanos(end)),
            open: true,
            ..Call::blank(&function)
        };
        self.summary.call(&call).unwrap();
    }

    fn returned(&mut self, end: u64) {
        let track = Call::blank(&Function::default()).track;
        self.summary.end(track, Nanos(end)).unwrap();
    }

    fn failing_call(
        &mut self,
        name: &str,
        (start, end): (u64, u64),
        submits: u64,
        error: Option<i32>,
    ) {
        let function = Function {
            index: FunctionIndex(place(&mut self.functions, name) as u32),
            name: name.into(),
            ..Function::default()
        };
        let submitted: Vec<_> = (0..submits)
            .map(|next| EventId(self.events + next))
            .collect();
        let call = Call {
            thread: ThreadId(1),
            start: Nanos(start),
            end: Some(Nanos(end)),
            submitted: &submitted,
            error,
            ..Call::blank(&function)
        };
        self.summary.call(&call).unwrap();
    }

    fn work(&mut self, piece: Piece<'_>, enqueued: u64, start: u64, end: u64) {
        let stage = place(&mut self.stages, piece.name) as u64;
        let arguments: Vec<_> = piece
            .occupancy
            .iter()
            .map(|percent| EventArgument {
                name: "est. achieved occupancy %",
                value: Value::Uint(*percent),
            })
            .collect();
        let work = Work {
            process: ProcessIndex(piece.process),
            thread: ThreadId(1),
            event: Some(EventId(self.events)),
            agent: AgentIndex(piece.process),
            queue: QueueIndex(10 * piece.process + piece.queue),
            stage: Stage {
                id: StageId(stage),
                kind: piece.kind,
                name: piece.name,
                ..Stage::default()
            },
            enqueued: Some(Nanos(enqueued)),
            interval: Some((Nanos(start), Nanos(end))),
            launch: Some(Launch {
                grid: [65536, 1, 1],
                workgroup: [256, 1, 1],
            }),
            resources: Resources {
                registers: 255,
                ..Resources::default()
            },
            bytes: piece.bytes,
            arguments: &arguments,
            ..Work::default()
        };
        self.events += 1;
        self.summary.work(&work).unwrap();
    }

    fn range(&mut self, process: u32, name: &str, start: u64, end: u64) {
        let slice = Slice {
            track: TrackIndex(process),
            name,
            category: "user_annotation",
            start: Nanos(start),
            end: Some(Nanos(end)),
            ..Slice::default()
        };
        self.summary.slice(&slice).unwrap();
    }

    fn advice(&self, rule: &str) -> Option<Advice> {
        let all = advise(&Evidence::of(&self.summary));
        all.into_iter().find(|one| one.rule == rule)
    }

    /// The advice of a rule that must speak.
    fn told(&self, rule: &str) -> Advice {
        let advice = self.advice(rule);
        advice.unwrap_or_else(|| panic!("no {rule}: {:?}", advise(&Evidence::of(&self.summary))))
    }
}

fn place(known: &mut Vec<String>, name: &str) -> usize {
    known.iter().position(|one| one == name).unwrap_or_else(|| {
        known.push(name.to_owned());
        known.len() - 1
    })
}

#[test]
fn an_empty_recording_gets_no_advice() {
    assert_eq!(advise(&Evidence::of(&Summary::default())), []);
}

#[test]
fn compilation_dominates_from_a_fifth_on() {
    let with = |took: u64| {
        let mut recording = Recording::new();
        recording.call("clBuildProgram", 100, 100 + took, 0);
        recording.work(KERNEL, 900, 900, 1100);
        recording
    };
    let advice = with(200).told("compilation");
    assert_eq!(
        (advice.place, advice.stake),
        (Some(Nanos(100)), Some(Nanos(200)))
    );
    assert!(
        advice.seen.contains("1 call") && advice.seen.contains("20.0 %"),
        "{}",
        advice.seen
    );
    assert_eq!(with(199).advice("compilation"), None);
}

#[test]
fn a_wait_behind_each_launch_is_seen() {
    let with = |launches_each: u64| {
        let mut recording = Recording::new();
        for step in 0..30 {
            let begin = 1000 * step;
            for launch in 0..launches_each {
                recording.call("cudaLaunchKernel", begin + launch, begin + launch, 0);
            }
            recording.call("cudaDeviceSynchronize", begin + 10, begin + 110 + step, 0);
        }
        recording
    };
    let advice = with(1).told("wait-after-launch");
    assert_eq!(advice.place, Some(Nanos(29_010)));
    assert!(
        advice.seen.starts_with("30 of 30 launches"),
        "{}",
        advice.seen
    );
    assert_eq!(with(3).advice("wait-after-launch"), None);
}

#[test]
fn a_device_that_waits_for_the_host_names_what_the_host_did() {
    let with = |enqueued| {
        let mut recording = Recording::new();
        recording.work(KERNEL, 0, 0, 100);
        recording.range(0, "load data", 90, 280);
        recording.work(KERNEL, enqueued, 300, 400);
        recording
    };
    let advice = with(290).told("device-waits");
    assert_eq!(
        (advice.place, advice.stake),
        (Some(Nanos(100)), Some(Nanos(190)))
    );
    assert!(advice.seen.contains("47.5 %"), "{}", advice.seen);
    assert!(
        advice
            .seen
            .ends_with("ended with k, and the host was in load data then"),
        "{}",
        advice.seen
    );
    // It waited for something else.
    assert_eq!(with(120).advice("device-waits"), None);
}

#[test]
fn kernels_shorter_than_their_launches_are_seen() {
    let with = |ran| {
        let mut recording = Recording::new();
        for number in 0..100 {
            let begin = 1000 * number;
            recording.call("cudaLaunchKernel", begin, begin + 20, 1);
            recording.work(KERNEL, begin, begin + 50, begin + 50 + ran);
        }
        recording
    };
    let advice = with(19).told("short-kernels");
    assert!(
        advice.seen.starts_with("100 of 100 kernels"),
        "{}",
        advice.seen
    );
    assert_eq!(advice.stake, Some(Nanos(2000)));
    assert_eq!(with(20).advice("short-kernels"), None);
}

#[test]
fn synchronous_pageable_and_tiny_copies_are_seen() {
    let with = |function, name, bytes| {
        let mut recording = Recording::new();
        for number in 0..100 {
            let begin = 1000 * number;
            recording.call(function, begin, begin + 100, 1);
            let copy = Piece {
                kind: WorkKind::Copy,
                name,
                bytes,
                ..KERNEL
            };
            recording.work(copy, begin, begin + 50, begin + 90);
        }
        recording
    };
    let bad = with("cudaMemcpy", "Memcpy HtoD (Pageable -> Device)", 4096);
    assert_eq!(bad.told("synchronous-copies").stake, Some(Nanos(10_000)));
    assert_eq!(bad.told("pageable-copies").stake, Some(Nanos(4_000)));
    // The copies and the calls up to their begins.
    assert_eq!(bad.told("tiny-copies").stake, Some(Nanos(9_000)));
    let good = with("cudaMemcpyAsync", "Memcpy HtoD (Pinned -> Device)", 1 << 20);
    for rule in ["synchronous-copies", "pageable-copies", "tiny-copies"] {
        assert_eq!(good.advice(rule), None, "{rule}");
    }
}

#[test]
fn large_copies_and_those_without_a_size_are_not_tiny() {
    let mut recording = Recording::new();
    for number in 0..300 {
        let begin = 1000 * number;
        recording.call("cudaMemcpyAsync", begin, begin + 20, 1);
        let copy = Piece {
            kind: WorkKind::Copy,
            name: "Memcpy DtoD",
            bytes: [4096, 64 << 20, 0][number as usize % 3],
            ..KERNEL
        };
        recording.work(copy, begin, begin + 20, begin + 70);
    }
    // A hundred of them, each with its call.
    assert_eq!(recording.told("tiny-copies").stake, Some(Nanos(7_000)));
    let work = recording.summary.other_work();
    assert_eq!((work[0].sized_time, work[0].times.total), (10_000, 15_000));
}

#[test]
fn a_copy_within_a_copy_counts_once_and_saves_no_time_of_kernels() {
    let mut recording = Recording::new();
    for number in 0..20 {
        let begin = 1000 * number;
        recording.open_call("cudaMemcpy", (begin, begin + 400));
        recording.open_call("cuMemcpyHtoD", (begin + 10, begin + 390));
        recording.returned(begin + 390);
        recording.returned(begin + 400);
        recording.call("cuLaunchKernel", begin + 400, begin + 401, 1);
        recording.work(KERNEL, begin + 400, begin + 401, begin + 900);
    }
    let advice = recording.told("synchronous-copies");
    assert!(advice.seen.contains("20 calls"), "{}", advice.seen);
    assert_eq!(advice.stake, Some(Nanos(8_000)));
    // A kernel of another queue fills the gaps.
    let all = Piece { queue: 1, ..KERNEL };
    recording.call("cuLaunchKernel", 19_901, 19_902, 1);
    recording.work(all, 19_901, 401, 19_400);
    let stake = recording.told("synchronous-copies").stake.unwrap();
    assert!(stake < Nanos(8_000), "{stake:?}");
}

#[test]
fn long_first_executions_are_seen() {
    let with = |first| {
        let mut recording = Recording::new();
        recording.work(KERNEL, 0, 0, first);
        for number in 1..5 {
            recording.work(KERNEL, 1000 * number, 1000 * number, 1000 * number + 10);
        }
        recording
    };
    let advice = with(500).told("first-executions");
    assert_eq!(
        (advice.place, advice.stake),
        (Some(Nanos(0)), Some(Nanos(490)))
    );
    assert_eq!(with(50).advice("first-executions"), None);
}

#[test]
fn low_occupancy_names_the_limit() {
    let with = |percent| {
        let mut recording = Recording::new();
        let piece = Piece {
            occupancy: percent,
            ..KERNEL
        };
        recording.work(piece, 0, 0, 500);
        recording
    };
    let advice = with(Some(12)).told("low-occupancy");
    assert!(
        advice
            .seen
            .ends_with("with 12 %; its registers are the limit"),
        "{}",
        advice.seen
    );
    assert_eq!(with(Some(25)).advice("low-occupancy"), None);
    assert_eq!(with(None).advice("low-occupancy"), None);
    // The launch has 256 workgroups: the estimate failed.
    assert_eq!(with(Some(0)).advice("low-occupancy"), None);
}

#[test]
fn one_queue_for_copies_and_kernels_is_seen() {
    let with = |queue| {
        let mut recording = Recording::new();
        let copy = Piece {
            kind: WorkKind::Copy,
            name: "copy",
            queue,
            ..KERNEL
        };
        recording.work(copy, 0, 0, 300);
        recording.work(KERNEL, 0, 300, 1000);
        recording
    };
    assert_eq!(with(0).told("one-queue").stake, Some(Nanos(300)));
    assert_eq!(with(1).advice("one-queue"), None);
}

#[test]
fn the_slow_rank_and_exposed_communication_are_seen() {
    let with = |slow: u64| {
        let mut recording = Recording::new();
        for rank in 0..3 {
            let computes = if rank == 1 { slow } else { 600 };
            let piece = Piece {
                process: rank,
                ..KERNEL
            };
            recording.work(piece, 0, 0, computes);
            let sum = Piece {
                name: "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)",
                queue: 1,
                ..piece
            };
            recording.work(sum, 0, computes, 1000);
        }
        recording
    };
    let advice = with(900).told("slow-rank");
    assert_eq!(advice.stake, Some(Nanos(300)));
    assert!(
        advice.seen.starts_with("rank 1 takes 900 ns"),
        "{}",
        advice.seen
    );
    assert!(
        advice
            .seen
            .ends_with("it computes 300 ns longer than the median"),
        "{}",
        advice.seen
    );
    assert_eq!(with(629).advice("slow-rank"), None);
    let advice = with(900).told("exposed-communication");
    // 900 ns on three devices at once.
    assert_eq!(advice.stake, Some(Nanos(300)));
    assert!(advice.seen.contains("30.0 %"), "{}", advice.seen);
}

#[test]
fn a_slow_step_says_what_differs() {
    let with = |late: u64| {
        let mut recording = Recording::new();
        let mut time = 0;
        for step in 0..5 {
            let begin = time;
            time += 100 + if step == 3 { late } else { 0 };
            recording.range(0, &format!("ProfilerStep#{step}"), begin, time);
            recording.work(KERNEL, time - 80, time - 80, time);
        }
        recording
    };
    let advice = with(50).told("slow-step");
    assert_eq!(
        (advice.place, advice.stake),
        (Some(Nanos(300)), Some(Nanos(50)))
    );
    assert!(
        advice
            .seen
            .contains("ProfilerStep#3 of rank 0, took 150 ns instead of 100 ns"),
        "{}",
        advice.seen
    );
    assert!(
        advice
            .seen
            .ends_with("its device idles 50 ns longer than the median"),
        "{}",
        advice.seen
    );
    assert_eq!(with(20).advice("slow-step"), None);
}

#[test]
fn a_step_is_not_what_the_host_did() {
    let mut recording = Recording::new();
    recording.work(KERNEL, 0, 0, 100);
    recording.range(0, "step 1", 90, 280);
    recording.work(KERNEL, 290, 300, 400);
    let advice = recording.told("device-waits");
    assert!(advice.seen.ends_with("ended with k"), "{}", advice.seen);
}

#[test]
fn short_kernels_of_one_call_are_not_compared_with_it() {
    let mut recording = Recording::new();
    recording.call("cudaGraphLaunch", 0, 5000, 200);
    for number in 0..200 {
        let begin = 6000 + 10 * number;
        recording.work(KERNEL, 0, begin, begin + 5);
    }
    assert_eq!(recording.advice("short-kernels"), None);
}

#[test]
fn failed_calls_are_seen() {
    let with = |error| {
        let mut recording = Recording::new();
        recording.call("cudaMalloc", 5, 8, 0);
        recording.failing_call("cudaMalloc", (10, 20), 0, error);
        recording
    };
    let advice = with(Some(2)).told("failed-calls");
    assert_eq!((advice.place, advice.stake), (Some(Nanos(10)), None));
    assert_eq!(
        advice.seen,
        "1 call failed, 1 of them of cudaMalloc with code 2"
    );
    assert_eq!(with(None).advice("failed-calls"), None);
}

#[test]
fn missing_records_are_seen() {
    let with = |count| {
        let mut recording = Recording::new();
        recording.work(KERNEL, 0, 0, 100);
        let loss = Loss {
            process: None,
            thread: ThreadId::NONE,
            track: None,
            kind: gputrail_record::Kind(0),
            count,
            first: Nanos(0),
            last: Nanos(0),
            time: Nanos(0),
        };
        recording.summary.loss(&loss).unwrap();
        recording
    };
    let advice = with(3).told("lost-records");
    assert_eq!(advice.seen, "3 records dropped for want of memory");
    // Blocks that lost nothing say so, too.
    assert_eq!(with(0).advice("lost-records"), None);
}

#[test]
fn doubtful_clocks_are_seen() {
    let with = |early: u64, all: u64| {
        let mut recording = Recording::new();
        for number in 0..all {
            let start = if number < early { 35 } else { 45 };
            let begin = 1000 * number;
            recording.work(KERNEL, begin + 40, begin + start, begin + 100);
        }
        recording
    };
    let advice = with(10, 20).told("clock-doubt");
    assert_eq!((advice.place, advice.stake), (Some(Nanos(35)), None));
    assert_eq!(
        advice.seen,
        "10 of 20 pieces of work begin before the call that enqueued them, by up to 5 ns"
    );
    for (early, all) in [(0, 20), (9, 20), (10, 1001)] {
        assert_eq!(
            with(early, all).advice("clock-doubt"),
            None,
            "{early} of {all}"
        );
    }
}

#[test]
fn advice_that_makes_the_rest_uncertain_comes_first() {
    let mut recording = Recording::new();
    recording.failing_call("cudaMalloc", (10, 20), 0, Some(2));
    let loss = Loss {
        process: None,
        thread: ThreadId::NONE,
        track: None,
        kind: gputrail_record::Kind(0),
        count: 3,
        first: Nanos(0),
        last: Nanos(0),
        time: Nanos(0),
    };
    recording.summary.loss(&loss).unwrap();
    for number in 0..10 {
        recording.work(
            KERNEL,
            1000 * number + 40,
            1000 * number + 35,
            1000 * number + 100,
        );
    }
    assert_eq!(recording.told("failed-calls").place, Some(Nanos(10)));
    let all = advise(&Evidence::of(&recording.summary));
    let first: Vec<_> = all.iter().take(3).map(|one| one.rule).collect();
    assert_eq!(first, ["lost-records", "clock-doubt", "failed-calls"]);
    assert_eq!(all[1].place, Some(Nanos(35)));
    assert!(all[1].seen.contains("by up to 5 ns"), "{}", all[1].seen);
}
