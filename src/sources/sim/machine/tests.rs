use super::*;
use crate::sim::random::{Purpose, Random};

fn command(queue: QueueIndex, nanos: u64, width: u64, after: &[WorkIndex]) -> SimCommand {
    SimCommand {
        queue,
        demand: Demand {
            amount: nanos * width,
            width,
            setup: Nanos(0),
        },
        arrives: Moment::BEGIN,
        latency: Nanos(0),
        after: after.to_vec(),
        parent: None,
    }
}

/// Runs everything, and returns start and end of each command relative to the beginning.
fn run(mut machine: SimMachine) -> Vec<(u64, u64)> {
    let mut finished = Vec::new();
    machine.advance(Moment(u64::MAX), &mut finished);
    finished.sort_by_key(|one| one.work);
    assert_eq!(WorkIndex(finished.len()), machine.works.next());
    let since = |moment: Moment| (moment - Moment::BEGIN).0;
    finished
        .iter()
        .map(|one| (since(one.start), since(one.end)))
        .collect()
}

#[test]
fn a_queue_runs_one_work_after_the_other() {
    let mut machine = SimMachine::default();
    let engine = machine.engine(1_000);
    let queue = machine.queue(engine);
    machine.submit(command(queue, 50, 1_000, &[]));
    machine.submit(command(queue, 30, 1_000, &[]));
    assert_eq!(run(machine), [(0, 50), (50, 80)]);
}

#[test]
fn work_uses_the_engine_after_its_setup() {
    let mut machine = SimMachine::default();
    let engine = machine.engine(1_000);
    let (one, two) = (machine.queue(engine), machine.queue(engine));
    machine.submit(command(one, 100, 1_000, &[]));
    let mut late = command(two, 30, 1_000, &[]);
    late.demand.setup = Nanos(20);
    machine.submit(late);
    // The first has the engine for 20, then each has half of it until the second ends.
    assert_eq!(run(machine), [(0, 130), (0, 80)]);
}

#[test]
fn two_queues_of_one_engine_slow_each_other_down() {
    let mut machine = SimMachine::default();
    let engine = machine.engine(1_000);
    let (one, two) = (machine.queue(engine), machine.queue(engine));
    machine.submit(command(one, 100, 1_000, &[]));
    machine.submit(command(two, 50, 1_000, &[]));
    // Half each until 100, when the short one ends; the other one has 50 left.
    assert_eq!(run(machine), [(0, 150), (0, 100)]);
}

#[test]
fn narrow_work_leaves_the_rest_to_wide_work() {
    let mut machine = SimMachine::default();
    let engine = machine.engine(1_000);
    let (one, two) = (machine.queue(engine), machine.queue(engine));
    machine.submit(command(one, 100, 1_000, &[]));
    machine.submit(command(two, 80, 200, &[]));
    // The narrow one runs at full speed; the wide one has 800 of 1000 for 80 ns, then everything.
    assert_eq!(run(machine), [(0, 116), (0, 80)]);
}

#[test]
fn work_on_a_watched_engine_is_kept_with_its_share() {
    let mut machine = SimMachine::default();
    let engine = machine.engine(1_000);
    machine.watch(engine);
    let (one, two) = (machine.queue(engine), machine.queue(engine));
    let wide = machine.submit(command(one, 100, 1_000, &[]));
    let narrow = machine.submit(command(two, 80, 200, &[]));
    machine.advance(Moment(u64::MAX), &mut Vec::new());
    let span = |from: u64, to: u64, shares: &[(WorkIndex, u64)]| ShareSpan {
        engine,
        from: Moment::BEGIN + Nanos(from),
        to: Moment::BEGIN + Nanos(to),
        shares: shares.to_vec(),
    };
    let expected = [
        span(0, 80, &[(wide, 800), (narrow, 200)]),
        span(80, 116, &[(wide, 1_000)]),
    ];
    assert_eq!(machine.take_spans(), expected);
    assert!(machine.take_spans().is_empty());
}

#[test]
fn a_parent_is_saved_at_half_of_its_work_until_its_children_have_ended() {
    let mut machine = SimMachine::default();
    let engine = machine.engine(1_000);
    machine.watch(engine);
    let (one, two) = (machine.queue(engine), machine.queue(engine));
    let parent = machine.submit(command(one, 100, 1_000, &[]));
    for nanos in [30, 20] {
        machine.submit(SimCommand {
            parent: Some(parent),
            ..command(two, nanos, 1_000, &[])
        });
    }
    machine.submit(command(one, 10, 1_000, &[]));
    let mut finished = Vec::new();
    machine.advance(Moment(u64::MAX), &mut finished);
    let since = |moment: Moment| (moment - Moment::BEGIN).0;
    let mut times: Vec<_> = finished
        .iter()
        .map(|one| (one.work.0, since(one.start), since(one.end)))
        .collect();
    times.sort();
    let expected = [(0, 0, 150), (1, 50, 80), (2, 80, 100), (3, 150, 160)];
    assert_eq!(times, expected);
    let preempted: Vec<_> = machine
        .take_preempted()
        .iter()
        .map(|one| (one.work, since(one.at), one.saved))
        .collect();
    assert_eq!(preempted, [(parent, 50, true), (parent, 100, false)]);
    let used: Vec<_> = machine
        .take_spans()
        .iter()
        .map(|span| span.shares.len())
        .collect();
    assert_eq!(used, [1, 1, 1, 1, 1], "a saved parent uses nothing");
}

#[test]
fn work_that_takes_turns_runs_alone_and_is_saved_while_others_run() {
    let mut machine = SimMachine::default();
    let engine = machine.engine(1_000);
    machine.slice(engine, Nanos(30));
    let (one, two) = (machine.queue(engine), machine.queue(engine));
    let long = machine.submit(command(one, 100, 1_000, &[]));
    let short = machine.submit(command(two, 50, 1_000, &[]));
    let mut finished = Vec::new();
    machine.advance(Moment(u64::MAX), &mut finished);
    let since = |moment: Moment| (moment - Moment::BEGIN).0;
    let times: Vec<_> = finished
        .iter()
        .map(|one| (one.work, since(one.start), since(one.end)))
        .collect();
    assert_eq!(times, [(short, 30, 110), (long, 0, 150)]);
    let preempted: Vec<_> = machine
        .take_preempted()
        .iter()
        .map(|one| (one.work, since(one.at), one.saved))
        .collect();
    let expected = [
        (long, 30, true),
        (short, 60, true),
        (long, 60, false),
        (long, 90, true),
        (short, 90, false),
        (long, 110, false),
    ];
    assert_eq!(preempted, expected);
}

#[test]
fn parents_and_children_take_turns_with_other_work() {
    let mut machine = SimMachine::default();
    let engine = machine.engine(1_000);
    machine.slice(engine, Nanos(40));
    let queues = [(); 3].map(|()| machine.queue(engine));
    let parent = machine.submit(command(queues[0], 100, 1_000, &[]));
    machine.submit(SimCommand {
        parent: Some(parent),
        ..command(queues[1], 30, 1_000, &[])
    });
    machine.submit(command(queues[2], 100, 1_000, &[]));
    // Nothing is lost or done twice: the engine is in use all the time.
    let times = run(machine);
    assert_eq!(times.iter().map(|(_, end)| *end).max(), Some(230));
    assert!(times.iter().all(|(start, end)| start < end));
}

#[test]
fn engines_do_not_disturb_each_other() {
    let mut machine = SimMachine::default();
    let (compute, copy) = (machine.engine(1_000), machine.engine(1_000));
    let (one, two) = (machine.queue(compute), machine.queue(copy));
    machine.submit(command(one, 100, 1_000, &[]));
    machine.submit(command(two, 70, 1_000, &[]));
    assert_eq!(run(machine), [(0, 100), (0, 70)]);
}

#[test]
fn work_waits_for_what_it_depends_on_and_blocks_its_queue() {
    let mut machine = SimMachine::default();
    let engine = machine.engine(4_000);
    let (one, two) = (machine.queue(engine), machine.queue(engine));
    let first = machine.submit(command(one, 100, 1_000, &[]));
    machine.submit(command(two, 10, 1_000, &[first]));
    machine.submit(command(two, 10, 1_000, &[]));
    assert_eq!(run(machine), [(0, 100), (100, 110), (110, 120)]);
}

#[test]
fn work_starts_its_latency_after_it_has_arrived() {
    let mut machine = SimMachine::default();
    let engine = machine.engine(1_000);
    let queue = machine.queue(engine);
    machine.submit(SimCommand {
        arrives: Moment::BEGIN + Nanos(40),
        latency: Nanos(5),
        ..command(queue, 10, 1_000, &[])
    });
    assert_eq!(run(machine), [(45, 55)]);
}

#[test]
fn any_workload_ends_and_keeps_its_order() {
    for seed in 0..50 {
        let mut random = Random::fork(seed, Purpose::Device, 0);
        let mut machine = SimMachine::default();
        let engines: Vec<_> = (0..3)
            .map(|_| machine.engine(1 + random.below(5_000)))
            .collect();
        let queues: Vec<_> = (0..6).map(|n| machine.queue(engines[n % 3])).collect();
        let mut submitted = Vec::new();
        for n in 0..200 {
            let after = match n {
                0 => vec![],
                _ => (0..random.below(3))
                    .map(|_| WorkIndex(random.below(n) as usize))
                    .collect(),
            };
            let queue = random.below(6) as usize;
            submitted.push((queue, after.clone()));
            machine.submit(SimCommand {
                arrives: Moment::BEGIN + Nanos(random.below(20_000)),
                latency: Nanos(random.below(50)),
                ..command(
                    queues[queue],
                    random.below(900),
                    random.below(4_000),
                    &after,
                )
            });
        }
        let times = run(machine);
        let mut last_of_queue = [0; 6];
        for ((queue, after), (start, end)) in submitted.iter().zip(&times) {
            assert!(start < end);
            assert!(*start >= last_of_queue[*queue], "seed {seed}");
            last_of_queue[*queue] = *end;
            for other in after {
                assert!(*start >= times[other.0].1, "seed {seed}");
            }
        }
    }
}
