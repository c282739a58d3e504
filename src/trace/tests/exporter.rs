//! Tests of the exporter alone.

use std::io;

use super::{Reader, Seen};
use gputrail_record::{ArgumentType, CorrelationId, Domain, Nanos, ProcessId, ThreadId};
use gputrail_trace::model::{
    Agent, AgentIndex, Call, Consumer, EventArgument, EventId, Function, Launch, Loss, Parameter,
    Parent, Process, ProcessIndex, Queue, QueueIndex, Resources, Slice, Stage, StageId,
    SystemClocks, TraceHeader, Track, TrackIndex, TrackKind, Value, Work, WorkKind,
};
use gputrail_trace::perfetto::Exporter;
use gputrail_trace::perfetto::schema::interned_gpu_render_stage_specification::RenderStageCategory;
use gputrail_trace::perfetto::schema::interned_graphics_context::Api;
use gputrail_trace::perfetto::schema::trace_packet::Data;
use gputrail_trace::perfetto::schema::{GpuApi, TracePacket};

const PROCESS: ProcessIndex = ProcessIndex(0);
/// The tracks of the threads of the process.
const THREADS: [TrackIndex; 2] = [TrackIndex(0), TrackIndex(1)];

/// The trace of a process with two threads and a queue, and of what `write` writes.
fn trace(write: impl FnOnce(&mut Exporter<'_>) -> io::Result<()>) -> Reader {
    let mut bytes = Vec::new();
    let mut exporter = Exporter::new(&mut bytes);
    declare(&mut exporter).unwrap();
    write(&mut exporter).unwrap();
    exporter.finish().unwrap();
    drop(exporter);
    Reader::new(&bytes)
}

fn declare(exporter: &mut Exporter<'_>) -> io::Result<()> {
    exporter.begin(&TraceHeader {
        identity: 7,
        clocks: SystemClocks {
            boottime: Nanos(5_000_000_000),
            monotonic: Nanos(4_000_000_000),
            monotonic_raw: Nanos(4_100_000_000),
            realtime: Nanos(1_700_000_000_000_000_000),
        },
        ..TraceHeader::default()
    })?;
    let agent = Agent {
        title: "GPU 0".into(),
        ..Agent::default()
    };
    exporter.agents(AgentIndex(0), &[agent])?;
    let process = Process {
        pid: ProcessId(4242),
        name: "app",
        rank: "",
        command: &["app", "-x"],
        order: None,
    };
    exporter.process(PROCESS, &process)?;
    for (track, name) in THREADS.into_iter().zip(["main", ""]) {
        let thread = Track {
            parent: Parent::Process(PROCESS),
            name,
            kind: TrackKind::Thread(PROCESS, ThreadId(track.0 + 1)),
            order: None,
        };
        exporter.track(track, &thread)?;
    }
    let queue = Queue {
        process: PROCESS,
        agent: AgentIndex(0),
        context: Default::default(),
        domain: Domain::OPENCL,
        name: "queue 0",
        out_of_order: false,
    };
    exporter.queue(QueueIndex(0), &queue)
}

fn kernel(name: &str, number: u64) -> Stage<'_> {
    Stage {
        id: StageId(number),
        name,
        demangled: "",
        architecture: "sim",
        kind: WorkKind::Kernel,
    }
}

fn work(event: u64, start: u64, stage: Stage<'_>) -> Work<'_> {
    Work {
        event: Some(EventId(event)),
        start: Some(Nanos(start)),
        duration: Some(100),
        stream: 3,
        stage,
        launch: Some(Launch {
            grid: [1000, 2, 1],
            workgroup: [64, 2, 1],
        }),
        correlation: CorrelationId(9),
        ..Work::default()
    }
}

#[test]
fn slices_come_back_on_their_tracks_with_their_times() {
    let [one, two] = THREADS;
    let begin = |track, start, name| Slice {
        track,
        name,
        category: "opencl",
        start: Nanos(start),
        open: true,
        ..Slice::default()
    };
    let trace = trace(|exporter| {
        exporter.slice(&begin(one, 10_000, "clFinish"))?;
        exporter.slice(&begin(two, 9_000, "late"))?;
        exporter.end(one, Nanos(10_400))?;
        exporter.slice(&begin(one, 9_900, "clFinish"))?;
        exporter.end(one, Nanos(10_500))?;
        exporter.end(two, Nanos(9_001))
    });
    let events = trace.events();
    let (one, two) = (events[0].track, events[1].track);
    assert_ne!(one, two);
    let seen = |track, time, kind, name: &str| Seen {
        track,
        time,
        kind,
        name: name.to_owned(),
    };
    assert_eq!(
        events,
        [
            seen(one, 10_000, 1, "clFinish"),
            seen(two, 9_000, 1, "late"),
            seen(one, 10_400, 2, ""),
            seen(one, 9_900, 1, "clFinish"),
            seen(one, 10_500, 2, ""),
            seen(two, 9_001, 2, ""),
        ]
    );
}

#[test]
fn a_call_carries_its_ids_and_values() {
    use gputrail_trace::perfetto::schema::debug_annotation;
    let function = Function {
        name: "clEnqueueNDRangeKernel".into(),
        domain: Domain::OPENCL,
        parameters: vec![Parameter {
            name: "size".into(),
            kind: ArgumentType::UNSIGNED,
        }],
        ..Function::default()
    };
    let call = Call {
        start: Nanos(10),
        correlation: CorrelationId(77),
        error: Some(-5),
        submitted: &[EventId(1 << 40 | 5)],
        waited: &[EventId(3), EventId(4)],
        arguments: &[Value::Uint(6)],
        ..Call::blank(&function)
    };
    let trace = trace(|exporter| exporter.call(&call));
    let [call] = &trace.track_events()[..] else {
        panic!("one event");
    };
    let gpu = call.gpu_correlation.as_ref().unwrap();
    assert_eq!(gpu.render_stage_submission_event_ids, [1 << 40 | 5]);
    assert_eq!(gpu.render_stage_wait_event_ids, [3, 4]);
    assert_eq!(call.gpu_api(), GpuApi::OpenCl);
    let values = call.debug_annotations.iter();
    let values: Vec<_> = values.map(|annotation| annotation.value.clone()).collect();
    let expected = [
        debug_annotation::Value::UintValue(77),
        debug_annotation::Value::IntValue(-5),
        debug_annotation::Value::UintValue(6),
    ];
    assert_eq!(values, expected.map(Some));
}

#[test]
fn work_names_its_stage_queue_context_and_kernel() {
    let first = Work {
        resources: Resources {
            registers: 32,
            ..Resources::default()
        },
        queued: Some(Nanos(988)),
        waits: &[EventId(8)],
        arguments: &[EventArgument {
            name: "why",
            value: Value::Text("because"),
        }],
        ..work(9, 1000, kernel("saxpy", 1))
    };
    let trace = trace(|exporter| {
        exporter.work(&first)?;
        exporter.work(&work(10, 900, kernel("saxpy", 1)))
    });
    let stages = trace.stages();
    let (time, event, interned) = &stages[0];
    assert_eq!((*time, event.event_id(), event.duration()), (1000, 9, 100));
    assert_eq!(event.submission_id(), 9);
    assert_eq!(event.event_wait_ids, [8]);
    let stage = interned
        .gpu_specifications
        .iter()
        .find(|specification| specification.iid == event.stage_iid)
        .unwrap();
    assert_eq!(stage.name(), "saxpy");
    assert_eq!(
        stage.description(),
        "1000 x 2 x 1 work-items in workgroups of 64 x 2 x 1"
    );
    let queue = interned
        .gpu_specifications
        .iter()
        .find(|specification| specification.iid == event.hw_queue_iid)
        .unwrap();
    assert_eq!(queue.name(), "GPU 0 ·  queue    0");
    let context = interned
        .graphics_contexts
        .iter()
        .find(|context| context.iid == event.context)
        .unwrap();
    assert_eq!((context.pid(), context.api()), (4242, Api::OpenCl));
    let kernel = interned
        .compute_kernels
        .iter()
        .find(|kernel| kernel.iid == event.kernel_iid)
        .unwrap();
    assert_eq!((kernel.name(), kernel.args.len()), ("saxpy", 3));
    let launch = event.launch.as_ref().unwrap();
    let grid = launch.grid_size.as_ref().unwrap();
    assert_eq!((grid.x(), grid.y(), grid.z()), (16, 1, 1));
    let details: Vec<_> = event.extra_data.iter().map(|one| one.value()).collect();
    assert_eq!(details, ["-12ns", "8", "because"]);

    let (time, event, _) = &stages[1];
    assert_eq!((*time, event.event_id()), (900, 10));
}

#[test]
fn full_tables_are_dropped_and_what_is_used_is_sent_again() {
    let names: Vec<String> = (0..10_000).map(|number| format!("k{number}")).collect();
    let trace = trace(|exporter| {
        (0..).zip(&names).try_for_each(|(number, name)| {
            exporter.work(&work(number, number * 10, kernel(name, number)))
        })
    });
    let cleared = |packet: &&TracePacket| packet.sequence_flags == Some(1);
    assert!(trace.packets.iter().filter(cleared).count() > 2);
    let mut number = 0;
    trace.each_stage(|time, event, interned| {
        assert_eq!(time, number as u64 * 10);
        let called = |iid: Option<u64>| {
            let specifications = interned.gpu_specifications.iter();
            specifications.filter(move |entry| entry.iid == iid)
        };
        let stages: Vec<_> = called(event.stage_iid).collect();
        assert_eq!(stages.len(), 1, "one meaning at a time");
        assert_eq!(stages[0].name(), names[number]);
        assert_eq!(stages[0].category(), RenderStageCategory::Compute);
        assert_eq!(called(event.hw_queue_iid).count(), 1);
        let contexts = interned.graphics_contexts.iter();
        assert_eq!(
            contexts
                .filter(|context| context.iid == event.context)
                .count(),
            1
        );
        number += 1;
    });
    assert_eq!(number, names.len());
}

#[test]
fn losses_add_up_in_the_statistics() {
    let loss = |count| Loss {
        process: None,
        thread: ThreadId::NONE,
        track: None,
        kind: Default::default(),
        count,
        first: Nanos(0),
        last: Nanos(0),
        time: Nanos(0),
    };
    let trace = trace(|exporter| {
        exporter.loss(&loss(3))?;
        exporter.loss(&loss(4))
    });
    let Some(Data::TraceStats(stats)) = &trace.packets.last().unwrap().data else {
        panic!("statistics at the end");
    };
    assert_eq!(stats.buffer_stats[0].trace_writer_packet_loss, Some(7));
}

#[test]
fn a_trace_without_loss_has_no_statistics_of_it() {
    let trace = trace(|_| Ok(()));
    let is_stats = |packet: &TracePacket| matches!(packet.data, Some(Data::TraceStats(_)));
    assert!(!trace.packets.iter().any(is_stats));
}
