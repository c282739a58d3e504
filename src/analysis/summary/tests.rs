//! Tests of the summary on small recordings whose sums are computed by hand.

use super::*;
use gputrail_record::{CorrelationId, Domain, ExternalId, OperationGroup, ThreadId, Unfinished};
use gputrail_trace::model::{
    Agent, Call, Consumer, CounterBlock, CounterDescription, CounterIndex, CounterUnit,
    CounterValue, EventArgument, EventId, Function, Note, Parent, Process, Resources, Slice, Stage,
    Track, TrackKind, Value, Work,
};

fn function(name: &str, index: u32) -> Function {
    Function {
        index: FunctionIndex(index),
        name: name.into(),
        domain: Domain::OPENCL,
        category: None,
        group: OperationGroup::ENQUEUE,
        parameters: Vec::new(),
    }
}

fn call(function: &Function, start: u64, end: u64, error: Option<i32>) -> Call<'_> {
    Call {
        process: ProcessIndex(0),
        thread: ThreadId(1),
        track: TrackIndex(0),
        function,
        start: Nanos(start),
        end: Some(Nanos(end)),
        open: false,
        nested: false,
        correlation: CorrelationId(1),
        external: ExternalId::NONE,
        error,
        submitted: &[],
        waited: &[],
        arguments: &[],
        flows: &[],
    }
}

fn kernel(name: &str, stage: u64, interval: Option<(u64, u64)>) -> Work<'_> {
    Work {
        process: ProcessIndex(0),
        thread: ThreadId(1),
        correlation: CorrelationId(1),
        event: Some(EventId(1)),
        agent: AgentIndex(0),
        queue: QueueIndex(0),
        stream: 0,
        stage: Stage {
            id: StageId(stage),
            kind: WorkKind::Kernel,
            name,
            demangled: "",
            architecture: "",
        },
        enqueued: None,
        queued: None,
        submitted: None,
        interval: interval.map(|(start, end)| (Nanos(start), Nanos(end))),
        start: None,
        duration: None,
        unfinished: None,
        launch: None,
        resources: Resources::default(),
        bytes: 0,
        status: 0,
        waits: &[],
        samples: None,
        arguments: &[],
    }
}

fn agent(name: &str) -> Agent {
    Agent {
        name: name.into(),
        ..Agent::default()
    }
}

#[test]
fn functions_come_by_time_and_processes_are_put_together() {
    let mut summary = Summary::default();
    let [short, long, elsewhere] =
        [("short", 0), ("long", 1), ("short", 7)].map(|(name, index)| function(name, index));
    summary.call(&call(&short, 0, 10, None)).unwrap();
    summary.call(&call(&long, 10, 40, None)).unwrap();
    let elsewhere = Call {
        process: ProcessIndex(1),
        ..call(&elsewhere, 100, 105, None)
    };
    summary.call(&elsewhere).unwrap();
    let functions = summary.functions();
    assert_eq!(functions[0].name, "long");
    let times = &functions[1].times;
    assert_eq!(
        (times.count, times.total, times.least, times.most),
        (2, 15, 5, 10)
    );
    assert_eq!(times.mean(), 7);
    assert_eq!(summary.span(), Some((Nanos(0), Nanos(105))));
}

#[test]
fn failures_are_counted_by_code() {
    let mut summary = Summary::default();
    let function = function("clX", 0);
    for error in [Some(-5), Some(-30), Some(-5), None] {
        summary.call(&call(&function, 0, 1, error)).unwrap();
    }
    let failures: Vec<_> = summary
        .failures()
        .iter()
        .map(|f| (f.code, f.count))
        .collect();
    assert_eq!(failures, [(-5, 2), (-30, 1)]);
}

#[test]
fn reasons_of_missing_records_are_counted_up_to_a_limit() {
    let mut summary = Summary::default();
    let mut note = |name, text: &str| {
        let value = Value::Text(text);
        let arguments = [EventArgument {
            name: "detail",
            value,
        }];
        let note = Note {
            process: ProcessIndex(0),
            time: Nanos(1),
            name,
            arguments: &arguments,
        };
        summary.note(&note).unwrap();
    };
    for reason in 0..MAX_MISSING + 2 {
        note("records missing", &reason.to_string());
    }
    note("records missing", "7");
    note("recording", "of something else");
    let missing = summary.missing();
    assert_eq!(missing.len(), MAX_MISSING + 1);
    assert_eq!((missing["7"], missing[REST]), (2, 2));
}

#[test]
fn work_that_did_not_end_takes_no_time() {
    let mut summary = Summary::default();
    summary.agents(AgentIndex(0), &[agent("gpu")]).unwrap();
    summary.work(&kernel("k", 1, Some((10, 20)))).unwrap();
    summary.work(&kernel("k", 2, None)).unwrap();
    let kernels = summary.kernels();
    assert_eq!((kernels[0].times.count, kernels[0].unfinished), (1, 1));
    assert_eq!(summary.gpus()[0].busy.as_ref().unwrap().busy, Nanos(10));
}

#[test]
fn work_without_an_end_takes_time_only_if_its_start_was_measured() {
    let shown = |why| Work {
        start: Some(Nanos(20)),
        duration: Some(5),
        unfinished: why,
        ..kernel("k", 1, None)
    };
    // Not known to have started; running at the end.
    let reasons = [
        (Some("no completion was recorded"), 0),
        (Unfinished::AT_END.name(), 5),
    ];
    for (why, ran) in reasons {
        let mut summary = Summary::default();
        summary.agents(AgentIndex(0), &[agent("gpu")]).unwrap();
        summary.work(&kernel("k", 1, Some((10, 20)))).unwrap();
        summary.work(&shown(why)).unwrap();
        let k = &summary.kernels()[0];
        let sums = (k.times.total, k.unfinished, k.untimed);
        assert_eq!(sums, (10 + ran, 1, u64::from(ran == 0)));
        let gpu = &summary.gpus()[0];
        assert_eq!(gpu.busy.as_ref().unwrap().busy, Nanos(10 + ran));
        assert_eq!(gpu.kernels, Nanos(10 + ran));
    }
}

#[test]
fn a_device_may_copy_while_it_computes() {
    let mut summary = Summary::default();
    summary.agents(AgentIndex(0), &[agent("gpu")]).unwrap();
    let enqueued = Some(Nanos(7));
    let work = Work {
        enqueued,
        ..kernel("k", 1, Some((10, 20)))
    };
    summary.work(&work).unwrap();
    let mut copy = kernel("copy", 2, Some((15, 40)));
    (copy.stage.kind, copy.bytes) = (WorkKind::Copy, 64);
    summary.work(&copy).unwrap();
    let gpu = &summary.gpus()[0];
    assert_eq!(
        (gpu.kernels, gpu.transfers, gpu.overlap),
        (Nanos(10), Nanos(25), Nanos(5))
    );
    assert_eq!(summary.kernels()[0].latency.total, 3);
    assert_eq!(summary.other_work()[0].sizes.total, 64);
}

#[test]
fn counters_of_a_kernel_have_their_extremes_and_median() {
    let mut summary = Summary::default();
    let block = CounterBlock {
        name: "SQ".to_owned(),
        process: ProcessIndex(0),
        agent: AgentIndex(0),
        memory: false,
        over_time: false,
        counters: vec![CounterDescription {
            name: "SQ_WAVES".to_owned(),
            description: String::new(),
            unit: CounterUnit::Count,
        }],
    };
    Consumer::counters(&mut summary, CounterIndex(0), &block).unwrap();
    for value in [2.0, 0.25, 16.0] {
        let argument = |name, value| EventArgument { name, value };
        let arguments = [
            argument("SQ_WAVES", Value::Double(value)),
            argument("not declared", Value::Double(value)),
        ];
        let work = Work {
            arguments: &arguments,
            ..kernel("k", 1, Some((10, 20)))
        };
        summary.work(&work).unwrap();
    }
    let invalid = [EventArgument {
        name: "SQ_WAVES",
        value: Value::Text("overflow"),
    }];
    let work = Work {
        arguments: &invalid,
        ..kernel("k", 1, Some((10, 20)))
    };
    summary.work(&work).unwrap();
    let [waves] = &summary.counters()[..] else {
        panic!("{:?}", summary.counters());
    };
    assert_eq!((&*waves.kernel, &*waves.counter), ("k", "SQ_WAVES"));
    assert_eq!((waves.dispatches, waves.min, waves.max), (3, 0.25, 16.0));
    assert!((waves.median - 2.0).abs() < 0.02, "{}", waves.median);
    assert_eq!(waves.total, Some(18.25));
    let reason = InvalidCounter {
        kernel: "k".to_owned(),
        counter: "SQ_WAVES".to_owned(),
        reason: "overflow".to_owned(),
        values: 1,
    };
    assert_eq!(summary.invalid_counters(), [reason]);
    assert_eq!(summary.period_counters(), []);
}

#[test]
fn counters_of_a_period_are_summed_up_by_agent_and_percentages_have_no_sum() {
    let mut summary = Summary::default();
    let counter = |name: &str, unit| CounterDescription {
        name: name.to_owned(),
        description: String::new(),
        unit,
    };
    let block = CounterBlock {
        name: "SQ".to_owned(),
        process: ProcessIndex(0),
        agent: AgentIndex(0),
        memory: false,
        over_time: true,
        counters: vec![
            counter("SQ_WAVES", CounterUnit::Count),
            counter("VALUBusy", CounterUnit::Percent),
        ],
    };
    let title = Agent {
        title: "GPU 0".to_owned(),
        ..agent("a")
    };
    summary.agents(AgentIndex(0), &[title]).unwrap();
    Consumer::counters(&mut summary, CounterIndex(4), &block).unwrap();
    let zeros = [CounterValue::Int(0); 2];
    summary
        .derived_values(CounterIndex(4), Nanos(1), &zeros)
        .unwrap();
    for (time, value) in [(2, 5), (3, 7), (4, 100)] {
        let values = [CounterValue::Int(value), CounterValue::Double(50.0)];
        summary
            .counter_values(CounterIndex(4), Nanos(time), &values)
            .unwrap();
    }
    let [waves, busy] = &summary.period_counters()[..] else {
        panic!("{:?}", summary.period_counters());
    };
    assert_eq!((&*waves.agent, &*waves.counter), ("GPU 0", "SQ_WAVES"));
    assert_eq!((waves.periods, waves.min, waves.max), (3, 5.0, 100.0));
    assert_eq!((waves.median, waves.total), (7.0, Some(112.0)));
    assert_eq!((busy.median, busy.total), (50.0, None));
}

#[test]
fn a_device_without_work_has_no_busy_time() {
    let mut summary = Summary::default();
    summary.agents(AgentIndex(3), &[agent("idle")]).unwrap();
    assert_eq!(summary.gpus()[0].busy, None);
}

#[test]
fn operators_and_annotations_of_a_thread_are_ranges_around_its_calls() {
    let mut summary = Summary::default();
    summary.agents(AgentIndex(0), &[agent("gpu")]).unwrap();
    let process = Process {
        pid: gputrail_record::ProcessId(7),
        name: "train (rank 3 of 8)",
        rank: "",
        command: &[],
        order: None,
    };
    summary.process(ProcessIndex(0), &process).unwrap();
    let track = Track {
        parent: Parent::Process(ProcessIndex(0)),
        name: "",
        kind: TrackKind::Thread(ProcessIndex(0), ThreadId(1)),
        order: None,
    };
    summary.track(TrackIndex(0), &track).unwrap();
    let slice = |name, category, start: u64, end: u64| Slice {
        name,
        category,
        start: Nanos(start),
        end: Some(Nanos(end)),
        open: true,
        ..Slice::default()
    };
    summary
        .slice(&slice("ProfilerStep#3", "user_annotation", 0, 100))
        .unwrap();
    summary
        .slice(&slice("forward.py(3)", "python_function", 1, 90))
        .unwrap();
    summary.slice(&slice("aten::mm", "cpu_op", 10, 50)).unwrap();
    let launch = function("cudaLaunchKernel", 0);
    let events = [EventId(1)];
    let outer = Call {
        open: true,
        nested: true,
        submitted: &events,
        ..call(&launch, 20, 30, None)
    };
    summary.call(&outer).unwrap();
    let inner = function("cuLaunchKernel", 1);
    summary.call(&call(&inner, 22, 28, None)).unwrap();
    for end in [30, 50, 90, 100] {
        summary.end(TrackIndex(0), Nanos(end)).unwrap();
    }
    let work = Work {
        enqueued: Some(Nanos(20)),
        ..kernel("gemm", 1, Some((40, 70)))
    };
    summary.work(&work).unwrap();
    let ranges = summary.ranges();
    let told: Vec<_> = ranges
        .iter()
        .map(|one| {
            (
                &*one.name,
                one.is_operator,
                one.times.total,
                one.calls,
                one.work_time.0,
            )
        })
        .collect();
    // The call inside of the call does not count.
    let expected = [
        ("ProfilerStep#3", false, 100, 1, 30),
        ("aten::mm", true, 40, 1, 30),
    ];
    assert_eq!(told, expected);
    let kernels = summary.range_kernels();
    let kernels: Vec<_> = kernels
        .iter()
        .map(|one| (&*one.range, &*one.kernel, one.count))
        .collect();
    assert_eq!(
        kernels,
        [("ProfilerStep#3", "gemm", 1), ("aten::mm", "gemm", 1)]
    );
    let settled = summary.places();
    let [step] = &settled.steps[..] else {
        panic!("{settled:?}");
    };
    assert_eq!(
        (&*step.name, step.times.busy(), step.idle()),
        ("ProfilerStep#3", Nanos(30), Some(Nanos(70)))
    );
    assert_eq!(summary.process_label(step.process).text(), "rank 3");
    let gemm = &summary.kernels()[0];
    let parts = (gemm.parts.in_call, gemm.parts.rest, gemm.latency.total);
    assert_eq!(parts, (10, 10, 20));
}
