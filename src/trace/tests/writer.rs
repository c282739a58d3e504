//! Tests of the writer alone.

use std::collections::HashSet;

use super::{Reader, Seen};
use gputrail_trace::model::{
    EventId, Launch, Machine, Resources, Stage, StageId, SystemClocks, Value, WorkKind,
};
use gputrail_trace::perfetto::schema::interned_gpu_render_stage_specification::RenderStageCategory;
use gputrail_trace::perfetto::schema::trace_packet::Data;
use gputrail_trace::perfetto::schema::{GpuApi, TracePacket};
use gputrail_trace::perfetto::*;

fn writer() -> TraceWriter<Vec<u8>> {
    let clocks = SystemClocks {
        boottime: 5_000_000_000,
        monotonic: 4_000_000_000,
        monotonic_raw: 4_100_000_000,
        realtime: 1_700_000_000_000_000_000,
    };
    TraceWriter::new(Vec::new(), 7, &clocks, &Machine::default()).unwrap()
}

fn event<'a>(label: Label<'a>, category: Name) -> Event<'a> {
    Event {
        label,
        category,
        correlation: None,
        submitted: &[],
        waited: &[],
        api: None,
        annotations: &[],
        flows: &[],
    }
}

fn queue(writer: &mut TraceWriter<Vec<u8>>, name: &str) -> HardwareQueue {
    let context = writer.context(4242, ContextApi::OpenCl);
    writer.queue(QueueDescription {
        name: name.to_owned(),
        description: "in order".to_owned(),
        gpu: 0,
        context,
        device: 0,
    })
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

fn work(event: u64, start: u64, queue: HardwareQueue, stage: Stage<'_>) -> RenderStageEvent<'_> {
    RenderStageEvent {
        event: EventId(event),
        start,
        duration: Some(100),
        queue,
        stream: 3,
        stage,
        launch: Some(Launch {
            grid: [1000, 2, 1],
            workgroup: [64, 2, 1],
        }),
        resources: Resources::default(),
        correlation: 9,
        waits: &[],
        details: &[],
        arguments: &[],
    }
}

#[test]
fn slices_come_back_on_their_tracks_with_their_times() {
    let mut writer = writer();
    let process = writer.process(4242, "app", &["app", "-x"], None).unwrap();
    let one = writer.thread(process, 1, "main", None).unwrap();
    let two = writer.thread(process, 2, "", None).unwrap();
    let category = writer.name("opencl").unwrap();
    let name = writer.name("clFinish").unwrap();
    writer
        .begin(one, 10_000, &event(Label::Name(name), category))
        .unwrap();
    writer
        .begin(two, 9_000, &event(Label::Text("late"), category))
        .unwrap();
    writer.end(one, 10_400).unwrap();
    writer
        .begin(one, 9_900, &event(Label::Name(name), category))
        .unwrap();
    writer.end(one, 10_500).unwrap();
    writer.end(two, 9_001).unwrap();

    let events = Reader::new(&writer.finish().unwrap()).events();
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
    use gputrail_trace::perfetto::schema::debug_annotation::{self, NameField};
    let mut writer = writer();
    let process = writer.process(1, "app", &[], None).unwrap();
    let thread = writer.thread(process, 1, "", None).unwrap();
    let category = writer.name("opencl").unwrap();
    let error = writer.name("error").unwrap();
    let annotations = [Annotation {
        name: error,
        value: Value::Int(-5),
    }];
    let call = Event {
        correlation: Some(77),
        submitted: &[EventId(1 << 40 | 5)],
        waited: &[EventId(3), EventId(4)],
        api: Some(GpuApi::OpenCl),
        annotations: &annotations,
        ..event(Label::Text("clEnqueueNDRangeKernel"), category)
    };
    writer.begin(thread, 10, &call).unwrap();

    let trace = Reader::new(&writer.finish().unwrap());
    let [call] = &trace.track_events()[..] else {
        panic!("one event");
    };
    let gpu = call.gpu_correlation.as_ref().unwrap();
    assert_eq!(gpu.render_stage_submission_event_ids, [1 << 40 | 5]);
    assert_eq!(gpu.render_stage_wait_event_ids, [3, 4]);
    assert_eq!(call.gpu_api(), GpuApi::OpenCl);
    let [correlation, annotation] = &call.debug_annotations[..] else {
        panic!("two values");
    };
    let iid = |name: Name| Some(NameField::NameIid(name.iid()));
    assert_eq!(correlation.name_field, iid(Name::CORRELATION));
    assert_eq!(
        correlation.value,
        Some(debug_annotation::Value::UintValue(77))
    );
    assert_eq!(annotation.name_field, iid(error));
    assert_eq!(
        annotation.value,
        Some(debug_annotation::Value::IntValue(-5))
    );
}

#[test]
fn work_names_its_stage_queue_context_and_kernel() {
    let mut writer = writer();
    let device = writer.device();
    let queue = queue(&mut writer, "GPU 0 . app 4242 . queue 0");
    let details = [
        Detail {
            name: "queued",
            value: DetailValue::Number(-12),
        },
        Detail {
            name: "why",
            value: DetailValue::Text("because"),
        },
    ];
    let first = RenderStageEvent {
        resources: Resources {
            registers: 32,
            ..Resources::default()
        },
        waits: &[EventId(8)],
        details: &details,
        ..work(9, 1000, queue, kernel("saxpy", 1))
    };
    writer.work(device, &first).unwrap();
    writer
        .work(device, &work(10, 900, queue, kernel("saxpy", 1)))
        .unwrap();

    let stages = Reader::new(&writer.finish().unwrap()).stages();
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
    assert_eq!(queue.name(), "GPU 0 . app 4242 . queue 0");
    let context = interned
        .graphics_contexts
        .iter()
        .find(|context| context.iid == event.context)
        .unwrap();
    assert_eq!((context.pid(), context.api()), (4242, ContextApi::OpenCl));
    let kernel = interned
        .compute_kernels
        .iter()
        .find(|kernel| kernel.iid == event.kernel_iid)
        .unwrap();
    assert_eq!((kernel.name(), kernel.args.len()), ("saxpy", 3));
    let launch = event.launch.as_ref().unwrap();
    let grid = launch.grid_size.as_ref().unwrap();
    assert_eq!((grid.x(), grid.y(), grid.z()), (16, 1, 1));
    assert_eq!(event.extra_data[0].value(), "-12");
    assert_eq!(event.extra_data[1].value(), "because");

    let (time, event, _) = &stages[1];
    assert_eq!((*time, event.event_id()), (900, 10));
}

#[test]
fn full_tables_are_dropped_and_what_is_used_is_sent_again() {
    let mut writer = writer();
    let device = writer.device();
    let queue = queue(&mut writer, "q");
    let names: Vec<String> = (0..10_000).map(|number| format!("k{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        let number = number as u64;
        let work = work(number, number * 10, queue, kernel(name, number));
        writer.work(device, &work).unwrap();
    }
    let trace = Reader::new(&writer.finish().unwrap());
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
fn a_reset_sends_names_defaults_and_clock_again() {
    let mut writer = writer();
    let process = writer.process(1, "app", &[], None).unwrap();
    let thread = writer.thread(process, 1, "", None).unwrap();
    let category = writer.name("opencl").unwrap();
    let name = writer.name("clFlush").unwrap();
    for time in [100, 200, 300] {
        writer
            .begin(thread, time, &event(Label::Name(name), category))
            .unwrap();
        writer.end(thread, time + 50).unwrap();
        writer.reset();
    }
    let events = Reader::new(&writer.finish().unwrap()).events();
    let tracks: HashSet<u64> = events.iter().map(|event| event.track).collect();
    assert_eq!(tracks.len(), 1);
    let begins: Vec<_> = events.iter().filter(|event| event.kind == 1).collect();
    assert!(begins.iter().all(|event| event.name == "clFlush"));
    let times: Vec<u64> = events.iter().map(|event| event.time).collect();
    assert_eq!(times, [100, 150, 200, 250, 300, 350]);
}

#[test]
fn losses_add_up_in_the_statistics() {
    let mut writer = writer();
    writer.lost(3);
    writer.lost(4);
    let trace = Reader::new(&writer.finish().unwrap());
    let Some(Data::TraceStats(stats)) = &trace.packets.last().unwrap().data else {
        panic!("statistics at the end");
    };
    assert_eq!(stats.buffer_stats[0].trace_writer_packet_loss, Some(7));
}

#[test]
fn a_trace_without_loss_has_no_statistics_of_it() {
    let trace = Reader::new(&writer().finish().unwrap());
    let is_stats = |packet: &TracePacket| matches!(packet.data, Some(Data::TraceStats(_)));
    assert!(!trace.packets.iter().any(is_stats));
}
