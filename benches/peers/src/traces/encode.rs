//! The packets of clpeak's trace, encoded by gputrail, by prost and by perfetto_protos. Every enqueue has four cheap
//! calls beside it, and a kernel.

use std::hint::black_box;

use gputrail_record::{CorrelationId, Domain, Nanos, ProcessId, ThreadId};
use gputrail_trace::model::{
    AgentIndex, Call, Consumer, EventId, Function, FunctionIndex, Launch, Parent, Process,
    ProcessIndex, Queue, QueueIndex, Stage, StageId, SystemClocks, TraceHeader, Track, TrackIndex,
    TrackKind, Work, WorkKind,
};
use gputrail_trace::perfetto::Exporter;
use gputrail_trace::perfetto::schema::gpu_render_stage_event::{
    ComputeKernelLaunch, Dim3, ExtraData,
};
use gputrail_trace::perfetto::schema::trace_packet::Data;
use gputrail_trace::perfetto::schema::track_event::NameField;
use gputrail_trace::perfetto::schema::{
    DebugAnnotation, GpuApi, GpuCorrelation, GpuRenderStageEvent, TracePacket, TrackEvent,
    debug_annotation,
};
use prost::Message;

/// Number of enqueues that are encoded in a round.
const ENQUEUES: u64 = 4_000;
/// Number of packets for them: a begin and an end for each call, and one for each kernel.
pub const PACKETS: u64 = 11 * ENQUEUES;
/// Number of bytes at which the packets would be written to a file.
const FLUSH_AT: usize = 128 << 10;

pub fn by_hand() {
    let mut trace = Exporter::new(std::io::sink());
    encode(&mut trace).expect("a sink");
    black_box(trace.bytes());
}

fn encode(trace: &mut Exporter<'_>) -> std::io::Result<()> {
    let mut time = 1 << 40;
    trace.begin(&TraceHeader {
        clocks: SystemClocks {
            boottime: Nanos(time),
            ..SystemClocks::default()
        },
        ..TraceHeader::default()
    })?;
    let process = ProcessIndex(0);
    trace.process(
        process,
        &Process {
            pid: ProcessId(4242),
            name: "app",
            rank: "",
            command: &[],
            order: None,
        },
    )?;
    let thread = Track {
        parent: Parent::Process(process),
        name: "",
        kind: TrackKind::Thread(process, ThreadId(4242)),
        order: None,
    };
    trace.track(TrackIndex(0), &thread)?;
    let queue = Queue {
        process,
        agent: AgentIndex(0),
        context: Default::default(),
        domain: Domain::OPENCL,
        name: "queue 0",
        out_of_order: false,
    };
    trace.queue(QueueIndex(0), &queue)?;
    let functions = [(0, "clSetKernelArg"), (1, "clEnqueueNDRangeKernel")];
    let functions = functions.map(|(index, name)| Function {
        index: FunctionIndex(index),
        name: name.into(),
        domain: Domain::OPENCL,
        ..Function::default()
    });
    for number in 0..ENQUEUES {
        let event = EventId(number + 1);
        for call in 0..5 {
            time += 700;
            let submitted = [event];
            let enqueues = call == 4;
            trace.call(&Call {
                start: Nanos(time),
                end: Some(Nanos(time + 300)),
                correlation: CorrelationId(number * 5 + call),
                submitted: &submitted[..usize::from(enqueues)],
                ..Call::blank(&functions[usize::from(enqueues)])
            })?;
        }
        let start = time + 5_000;
        trace.work(&Work {
            event: Some(event),
            queued: Some(Nanos(start - 4_700)),
            submitted: Some(Nanos(start - 900)),
            start: Some(Nanos(start)),
            duration: Some(1_400),
            stage: Stage {
                id: StageId(1),
                name: "saxpy",
                kind: WorkKind::Kernel,
                ..Stage::default()
            },
            launch: Some(Launch {
                grid: [1 << 20, 1, 1],
                workgroup: [256, 1, 1],
            }),
            correlation: CorrelationId(number),
            ..Work::default()
        })?;
    }
    Ok(())
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
