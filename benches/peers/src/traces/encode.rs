//! The packets of clpeak's trace, encoded by gputrail, by prost and by perfetto_protos. Every enqueue has four cheap
//! calls beside it, and a kernel.

use std::hint::black_box;

use gputrail_trace::model::{
    EventId, Launch, Machine, Resources, Stage, StageId, SystemClocks, WorkKind,
};
use gputrail_trace::perfetto::schema::gpu_render_stage_event::{
    ComputeKernelLaunch, Dim3, ExtraData,
};
use gputrail_trace::perfetto::schema::trace_packet::Data;
use gputrail_trace::perfetto::schema::track_event::NameField;
use gputrail_trace::perfetto::schema::{
    DebugAnnotation, GpuApi, GpuCorrelation, GpuRenderStageEvent, TracePacket, TrackEvent,
    debug_annotation,
};
use gputrail_trace::perfetto::{
    ContextApi, Detail, DetailValue, Event, Label, QueueDescription, RenderStageEvent, TraceWriter,
};
use prost::Message;

/// Number of enqueues that are encoded in a round.
const ENQUEUES: u64 = 4_000;
/// Number of packets for them: a begin and an end for each call, and one for each kernel.
pub const PACKETS: u64 = 11 * ENQUEUES;
/// Number of bytes at which the packets would be written to a file.
const FLUSH_AT: usize = 128 << 10;

pub fn by_hand() {
    let clocks = SystemClocks {
        boottime: 1 << 40,
        ..SystemClocks::default()
    };
    let mut trace =
        TraceWriter::new(std::io::sink(), 1, &clocks, &Machine::default()).expect("a sink");
    let category = trace.name("opencl").expect("a first name");
    let names =
        ["clSetKernelArg", "clEnqueueNDRangeKernel"].map(|name| trace.name(name).expect("few"));
    let process = trace.process(4242, "app", &[], None).expect("a sink");
    let thread = trace.thread(process, 4242, "", None).expect("a sink");
    let device = trace.device();
    let context = trace.context(4242, ContextApi::OpenCl);
    let queue = trace.queue(QueueDescription {
        name: "GPU 0 . app 4242 . queue 0".into(),
        description: "in order".into(),
        gpu: 0,
        context,
        device: 0,
    });
    let mut time = clocks.boottime;
    for number in 0..ENQUEUES {
        let event = EventId(number + 1);
        for call in 0..5 {
            time += 700;
            let submitted = [event];
            let enqueues = call == 4;
            let call = Event {
                label: Label::Name(names[usize::from(enqueues)]),
                category,
                correlation: Some(number * 5 + call),
                submitted: &submitted[..usize::from(enqueues)],
                waited: &[],
                api: enqueues.then_some(GpuApi::OpenCl),
                annotations: &[],
                flows: &[],
            };
            trace.begin(thread, time, &call).expect("a sink");
            trace.end(thread, time + 300).expect("a sink");
        }
        let work = RenderStageEvent {
            event,
            start: time + 5_000,
            duration: Some(1_400),
            queue,
            stream: 0,
            stage: Stage {
                id: StageId(1),
                name: "saxpy",
                demangled: "",
                architecture: "",
                kind: WorkKind::Kernel,
            },
            launch: Some(Launch {
                grid: [1 << 20, 1, 1],
                workgroup: [256, 1, 1],
            }),
            resources: Resources::default(),
            correlation: number,
            waits: &[],
            details: &[
                Detail {
                    name: "queued",
                    value: DetailValue::Number(-4_700),
                },
                Detail {
                    name: "submit",
                    value: DetailValue::Number(-900),
                },
            ],
            arguments: &[],
        };
        trace.work(device, &work).expect("a sink");
    }
    black_box(trace.bytes());
}

/// Encodes the same packets as [`by_hand`].
pub fn with_prost() {
    let mut out = Vec::with_capacity(1 << 20);
    let mut write = |packet: TracePacket| {
        if out.len() > FLUSH_AT {
            out.clear();
        }
        packet.encode_length_delimited(&mut out).expect("room");
    };
    let packet = |sequence, timestamp, flags, data| TracePacket {
        trusted_packet_sequence_id: Some(sequence),
        timestamp: Some(timestamp),
        sequence_flags: flags,
        data: Some(data),
        ..TracePacket::default()
    };
    for number in 0..ENQUEUES {
        let event = number + 1;
        for call in 0..5 {
            let begin = TrackEvent {
                category_iids: vec![1],
                r#type: Some(1),
                name_field: Some(NameField::NameIid(2)),
                debug_annotations: vec![DebugAnnotation {
                    name_field: Some(debug_annotation::NameField::NameIid(1)),
                    value: Some(debug_annotation::Value::UintValue(number * 5 + call)),
                }],
                gpu_correlation: (call == 4).then(|| GpuCorrelation {
                    render_stage_submission_event_ids: vec![event],
                    ..GpuCorrelation::default()
                }),
                gpu_api: (call == 4).then_some(GpuApi::OpenCl as i32),
                ..TrackEvent::default()
            };
            write(packet(2, 400, Some(2), Data::TrackEvent(begin)));
            let end = TrackEvent {
                r#type: Some(2),
                ..TrackEvent::default()
            };
            write(packet(2, 300, None, Data::TrackEvent(end)));
        }
        let size = |x| Dim3 {
            x: Some(x),
            y: Some(1),
            z: Some(1),
        };
        let detail = |name: &str, value: i64| ExtraData {
            name: Some(name.to_owned()),
            value: Some(value.to_string()),
        };
        let stage = GpuRenderStageEvent {
            event_id: Some(event),
            duration: Some(1_400),
            context: Some(1),
            extra_data: vec![detail("queued", -4_700), detail("submit", -900)],
            submission_id: Some(number as u32),
            gpu_id: Some(0),
            hw_queue_iid: Some(1),
            stage_iid: Some(2),
            kernel_iid: Some(1),
            launch: Some(ComputeKernelLaunch {
                grid_size: Some(size(4096)),
                workgroup_size: Some(size(256)),
                args: Vec::new(),
            }),
            ..GpuRenderStageEvent::default()
        };
        write(packet(3, 8_500, Some(2), Data::GpuRenderStageEvent(stage)));
    }
    black_box(&out);
}

/// Encodes the same packets with the fields that this package's version of Perfetto has: kernels and their launches are
/// left out, and so are the ids that link calls to them.
pub fn with_perfetto_protos() {
    use perfetto_protos::gpu_render_stage_event::GpuRenderStageEvent;
    use perfetto_protos::gpu_render_stage_event::gpu_render_stage_event::ExtraData;
    use perfetto_protos::trace_packet::TracePacket;
    use perfetto_protos::track_event::TrackEvent;
    use perfetto_protos::track_event::track_event::Type;
    use protobuf::{CodedOutputStream, Message};

    let mut out = Vec::with_capacity(1 << 20);
    let mut write = |packet: TracePacket| {
        if out.len() > FLUSH_AT {
            out.clear();
        }
        let mut stream = CodedOutputStream::vec(&mut out);
        let bytes = packet.compute_size();
        stream.write_raw_varint64(bytes).expect("room");
        packet
            .write_to_with_cached_sizes(&mut stream)
            .expect("room");
        stream.flush().expect("room");
    };
    let packet = |sequence, timestamp, flags: Option<u32>| {
        let mut packet = TracePacket::new();
        packet.set_trusted_packet_sequence_id(sequence);
        packet.set_timestamp(timestamp);
        packet.sequence_flags = flags;
        packet
    };
    for number in 0..ENQUEUES {
        for call in 0..5 {
            let mut begin = TrackEvent::new();
            begin.category_iids.push(1);
            begin.set_type(Type::TYPE_SLICE_BEGIN);
            begin.set_name_iid(2);
            let mut correlation = perfetto_protos::debug_annotation::DebugAnnotation::new();
            correlation.set_name_iid(1);
            correlation.set_uint_value(number * 5 + call);
            begin.debug_annotations.push(correlation);
            let mut holder = packet(2, 400, Some(2));
            holder.set_track_event(begin);
            write(holder);
            let mut end = TrackEvent::new();
            end.set_type(Type::TYPE_SLICE_END);
            let mut holder = packet(2, 300, None);
            holder.set_track_event(end);
            write(holder);
        }
        let detail = |name: &str, value: i64| {
            let mut detail = ExtraData::new();
            detail.set_name(name.to_owned());
            detail.set_value(value.to_string());
            detail
        };
        let mut stage = GpuRenderStageEvent::new();
        stage.set_event_id(number + 1);
        stage.set_duration(1_400);
        stage.set_context(1);
        stage.extra_data = vec![detail("queued", -4_700), detail("submit", -900)];
        stage.set_submission_id(number as u32);
        stage.set_gpu_id(0);
        stage.set_hw_queue_iid(1);
        stage.set_stage_iid(2);
        let mut holder = packet(3, 8_500, Some(2));
        holder.set_gpu_render_stage_event(stage);
        write(holder);
    }
    black_box(&out);
}
