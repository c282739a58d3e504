//! Work of devices as slices of tracks, as rocprof-sys writes it.

use std::io;

use prost::Message;

use super::{Replayed, TraceReplay};
use crate::model::{
    Call, Consumer, EventId, Producer, Queue, QueueIndex, Slice, Track, TrackIndex, Work,
};
use crate::perfetto::schema::debug_annotation::{self, Value};
use crate::perfetto::schema::trace_packet::Data;
use crate::perfetto::schema::{
    DebugAnnotation, EventCategory, InternedData, ProcessDescriptor, ThreadDescriptor, Trace,
    TracePacket, TrackDescriptor, TrackEvent, track_event,
};

/// The numbers of categories.
const CALL: u64 = 1;
const KERNEL: u64 = 2;
const STREAM: u64 = 3;
const CATEGORIES: [&str; 3] = ["rocm_hip_api", "rocm_kernel_dispatch", "rocm_hip_stream"];

/// The tracks of the process, of its thread, and of two queues.
const PROCESS: u64 = 1;
const THREAD: u64 = 2;
const QUEUE: u64 = 3;
const OTHER: u64 = 4;

#[derive(Default)]
struct Lines {
    queues: Vec<String>,
    lines: Vec<String>,
}

impl Consumer for Lines {
    crate::leave_out!(clocks attributes agents process counters end counter_values samples stack stack_samples loss note instant value);

    fn track(&mut self, _: TrackIndex, _: &Track<'_>) -> io::Result<()> {
        Ok(())
    }

    fn queue(&mut self, _: QueueIndex, queue: &Queue<'_>) -> io::Result<()> {
        self.queues
            .push(format!("{:?} {}", queue.agent, queue.name));
        Ok(())
    }

    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        let submitted: Vec<&EventId> = call.submitted.iter().collect();
        self.lines.push(format!(
            "call {} {} {} {} flows {}",
            call.function.name,
            call.start.0,
            call.correlation.0,
            submitted.len(),
            call.flows.len()
        ));
        Ok(())
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        self.lines
            .push(format!("slice {} {}", slice.name, slice.start.0));
        Ok(())
    }

    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        self.lines.push(format!(
            "work {} [{}] {:?} {:?} {} {:?} {:?} {:?}",
            work.stage.name,
            self.queues[work.queue.0 as usize],
            work.start.map(|start| start.0),
            work.duration,
            work.correlation.0,
            work.enqueued.map(|time| time.0),
            work.launch.map(|launch| (launch.grid, launch.workgroup)),
            work.arguments
                .iter()
                .map(|one| one.name)
                .collect::<Vec<_>>(),
        ));
        Ok(())
    }
}

fn packet(time: u64, data: Data) -> TracePacket {
    TracePacket {
        timestamp: Some(time),
        trusted_packet_sequence_id: Some(1),
        data: Some(data),
        ..TracePacket::default()
    }
}

/// The first packet, with the categories, and the descriptions of the tracks.
fn descriptions() -> Vec<TracePacket> {
    let categories = (1..).zip(CATEGORIES).map(|(iid, name)| EventCategory {
        iid: Some(iid),
        name: Some(name.into()),
    });
    let first = TracePacket {
        trusted_packet_sequence_id: Some(1),
        sequence_flags: Some(1),
        interned_data: Some(InternedData {
            event_categories: categories.collect(),
            ..InternedData::default()
        }),
        ..TracePacket::default()
    };
    let process = TrackDescriptor {
        uuid: Some(PROCESS),
        process: Some(ProcessDescriptor {
            pid: Some(42),
            ..ProcessDescriptor::default()
        }),
        ..TrackDescriptor::default()
    };
    let thread = TrackDescriptor {
        uuid: Some(THREAD),
        parent_uuid: Some(PROCESS),
        thread: Some(ThreadDescriptor {
            pid: Some(42),
            tid: Some(43),
            ..ThreadDescriptor::default()
        }),
        ..TrackDescriptor::default()
    };
    let queue = |uuid, name: &str| TrackDescriptor {
        uuid: Some(uuid),
        parent_uuid: Some(PROCESS),
        name: Some(name.into()),
        ..TrackDescriptor::default()
    };
    let tracks = [
        process,
        thread,
        queue(QUEUE, "GPU Kernel Dispatch [1] Queue 3"),
        queue(OTHER, "HIP Activity Stream 2"),
    ];
    let tracks = tracks
        .into_iter()
        .map(|track| packet(0, Data::TrackDescriptor(track)));
    std::iter::once(first).chain(tracks).collect()
}

fn begin(
    time: u64,
    track: u64,
    category: u64,
    name: &str,
    flow: u64,
    numbers: &[(&str, u64)],
) -> TracePacket {
    let annotation = |name: &str, value| DebugAnnotation {
        name_field: Some(debug_annotation::NameField::Name(name.into())),
        value: Some(value),
    };
    let mut annotations: Vec<_> = numbers
        .iter()
        .map(|(name, value)| annotation(name, Value::UintValue(*value)))
        .collect();
    if category != CALL && !numbers.is_empty() {
        annotations.push(annotation(
            "grid_size",
            Value::StringValue("(256,2,1)".into()),
        ));
        annotations.push(annotation(
            "workgroup_size",
            Value::StringValue("(64,1,1)".into()),
        ));
    }
    let event = TrackEvent {
        r#type: Some(1),
        track_uuid: Some(track),
        category_iids: vec![category],
        flow_ids: Vec::from_iter((flow != 0).then_some(flow)),
        debug_annotations: annotations,
        name_field: Some(track_event::NameField::Name(name.into())),
        ..TrackEvent::default()
    };
    packet(time, Data::TrackEvent(event))
}

fn end(time: u64, track: u64) -> TracePacket {
    let event = TrackEvent {
        r#type: Some(2),
        track_uuid: Some(track),
        ..TrackEvent::default()
    };
    packet(time, Data::TrackEvent(event))
}

fn replayed(events: Vec<TracePacket>) -> (Replayed, Lines) {
    let packets = descriptions().into_iter().chain(events).collect();
    let bytes = Trace { packet: packets }.encode_to_vec();
    let mut lines = Lines::default();
    let replayed = TraceReplay::new(&bytes[..]).produce(&mut lines).unwrap();
    assert_eq!(replayed.outcome.findings.list(), []);
    (replayed, lines)
}

#[test]
fn slices_of_queues_are_work_of_the_calls_whose_flow_they_have() {
    // Packets of the device stand behind those of the host.
    let (replayed, lines) = replayed(vec![
        begin(100, THREAD, CALL, "hipLaunchKernel", 7, &[("corr_id", 9)]),
        end(120, THREAD),
        begin(130, THREAD, CALL, "hipMemcpyAsync", 8, &[]),
        end(140, THREAD),
        begin(150, THREAD, CALL, "hipDeviceSynchronize", 99, &[]),
        end(400, THREAD),
        begin(
            160,
            QUEUE,
            KERNEL,
            "void scale<float>(float*)",
            7,
            &[
                ("begin_ns", 160),
                ("end_ns", 190),
                ("corr_id", 9),
                ("kernel_id", 3),
            ],
        ),
        // The next kernel of the queue begins before the end of the first one.
        begin(
            180,
            QUEUE,
            KERNEL,
            "add",
            0,
            &[("begin_ns", 180), ("end_ns", 240)],
        ),
        end(190, QUEUE),
        end(240, QUEUE),
        begin(200, OTHER, STREAM, "MEMORY_COPY_HOST_TO_DEVICE", 8, &[]),
        end(230, OTHER),
        begin(300, OTHER, STREAM, "copy_kernel(int*)", 0, &[]),
    ]);
    assert!(replayed.left_out.is_empty(), "{:?}", replayed.left_out);
    let mut work: Vec<_> = lines.lines.clone();
    work.sort();
    assert_eq!(
        work,
        [
            "call hipDeviceSynchronize 150 0 0 flows 1",
            "call hipLaunchKernel 100 9 1 flows 0",
            "call hipMemcpyAsync 130 0 1 flows 0",
            "work add [AgentIndex(1) GPU Kernel Dispatch [1] Queue 3] Some(180) Some(60) 0 None Some(([256, 2, 1], [64, 1, 1])) []",
            "work copy host to device [AgentIndex(4294967295) HIP Activity Stream 2] Some(200) Some(30) 0 Some(130) None []",
            "work copy_kernel [AgentIndex(4294967295) HIP Activity Stream 2] Some(300) None 0 None None []",
            "work scale<float> [AgentIndex(1) GPU Kernel Dispatch [1] Queue 3] Some(160) Some(30) 9 Some(100) Some(([256, 2, 1], [64, 1, 1])) [\"kernel_id\"]",
        ]
    );
    assert_eq!(replayed.untied, 2);
}

#[test]
fn slices_of_threads_and_of_other_categories_stay_slices_and_calls() {
    let (_, lines) = replayed(vec![
        begin(100, THREAD, KERNEL, "launch", 0, &[]),
        end(120, THREAD),
        begin(130, QUEUE, CALL, "row", 0, &[]),
        end(140, QUEUE),
    ]);
    assert_eq!(
        lines.lines,
        ["call launch 100 0 0 flows 0", "slice row 130"]
    );
}
