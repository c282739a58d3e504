//! How fast traces are written, beside prost on the same packets and beside write(2) on the same bytes; and how fast they are
//! read back, beside copying them.
//!
//! `cargo bench --bench trace`. Every figure is the best of many rounds in one run, in processor time;
//! machines differ, the ratios carry over.

use std::hint::black_box;
use std::io::Write;
use std::time::Duration;

use bytemuck::bytes_of;
use gputrail::buffer::BlockView;
use gputrail::capture::{FileHeader, Reader, Writer};
use gputrail::clock::{TickSource, virtual_snapshot};
use gputrail::names::Names;
use gputrail::perfetto::reader;
use gputrail::perfetto::schema::gpu_render_stage_event::{ComputeKernelLaunch, Dim3, ExtraData};
use gputrail::perfetto::schema::trace_packet::Data;
use gputrail::perfetto::schema::track_event::{CorrelationIdField, NameField};
use gputrail::perfetto::schema::{
    GpuApi, GpuCorrelation, GpuRenderStageEvent, TracePacket, TrackEvent,
};
use gputrail::perfetto::{
    ContextApi, Detail, DetailValue, Event, Label, Launch, Machine, Observer, Options,
    QueueDescription, Resources, Stage, SystemClocks, TraceWriter, Work, convert,
};
use gputrail::record::*;
use gputrail::summary::Summary;
use prost::Message;
use rustix::time::{ClockId, clock_gettime};

const ROUNDS: usize = 60;
/// Enqueues in a round; each has four cheap calls beside it and a kernel, as in clpeak's trace.
const ENQUEUES: u64 = 4_000;
const CALLS: u64 = 5 * ENQUEUES;
/// Packets that those make: a begin and an end for each call, and one for each kernel.
const PACKETS: u64 = 2 * CALLS + ENQUEUES;

/// The shortest of several rounds.
fn best(mut round: impl FnMut()) -> Duration {
    let timed = |_| {
        let start = processor_time();
        round();
        processor_time() - start
    };
    (0..ROUNDS).map(timed).min().expect("at least one round")
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn nanos_per(time: Duration, count: u64) -> f64 {
    time.as_nanos() as f64 / count as f64
}

fn main() {
    let ours = best(encode_by_hand);
    let theirs = best(encode_with_prost);
    println!("encoding, ns a packet");
    println!("  by hand               {:8.1}", nanos_per(ours, PACKETS));
    println!("  prost, fresh structs  {:8.1}", nanos_per(theirs, PACKETS));
    println!(
        "  ratio                 {:8.1}",
        theirs.as_secs_f64() / ours.as_secs_f64()
    );

    let directory = tempfile::tempdir().expect("a temporary directory");
    let capture = directory.path().join("run.gputrail");
    let records = write_capture(&capture);
    let capture = Reader::open(&capture).expect("the capture just written");
    let mut trace = Vec::new();
    let mut convert_for = |observer: &mut dyn Observer| {
        best(|| {
            trace.clear();
            let captures = [reopened(&capture)];
            convert(&captures, &mut trace, &Options::default(), observer).expect("no error");
        })
    };
    let converting = convert_for(&mut ());
    let summing_up = convert_for(&mut Summary::default());
    let out = directory.path().join("out");
    let writing = best(|| {
        let mut file = std::fs::File::create(&out).expect("a file");
        trace
            .chunks(128 << 10)
            .for_each(|chunk| file.write_all(chunk).expect("room"));
    });
    println!("from capture to trace, one core");
    println!(
        "  with a summary            {:6.1} million records a second",
        1e3 / nanos_per(summing_up, records)
    );
    println!(
        "  million records a second  {:6.1}",
        1e3 / nanos_per(converting, records)
    );
    println!(
        "  bytes of trace a record   {:6.1}",
        trace.len() as f64 / records as f64
    );
    println!(
        "  write(2) alone, by this   {:6.1} times as fast",
        converting.as_secs_f64() / writing.as_secs_f64()
    );
    read_back(&trace);
}

/// How fast `trace` is read, beside copying its bytes.
fn read_back(trace: &[u8]) {
    let mut copy = vec![0; trace.len()];
    let rate = |time: Duration| trace.len() as f64 / 1e6 / time.as_secs_f64();
    println!("reading a trace back, MB a second, one core");
    let info = best(|| drop(black_box(reader::info(trace))));
    println!("  info                  {:8.0}", rate(info));
    let check = best(|| drop(black_box(reader::check(trace))));
    println!("  check                 {:8.0}", rate(check));
    let summary = best(|| drop(black_box(reader::replay(trace, &mut Summary::default()))));
    println!("  summary               {:8.0}", rate(summary));
    let copying = best(|| copy.copy_from_slice(black_box(trace)));
    println!("  copying the bytes     {:8.0}", rate(copying));
}

fn reopened(capture: &Reader) -> Reader {
    Reader::open(capture.path()).expect("it was open before")
}

fn encode_by_hand() {
    let clocks = SystemClocks {
        boottime: 1 << 40,
        ..SystemClocks::default()
    };
    let mut trace =
        TraceWriter::new(std::io::sink(), 1, &clocks, &Machine::default()).expect("a sink");
    let category = trace.name("opencl").expect("a first name");
    let names =
        ["clSetKernelArg", "clEnqueueNDRangeKernel"].map(|name| trace.name(name).expect("few"));
    let process = trace.process(4242, "app", &[]).expect("a sink");
    let thread = trace.thread(process, 4242, "").expect("a sink");
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
        let event = 1 << 40 | number;
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
            };
            trace.begin(thread, time, &call).expect("a sink");
            trace.end(thread, time + 300).expect("a sink");
        }
        let work = Work {
            event,
            start: time + 5_000,
            duration: Some(1_400),
            queue,
            stream: 0,
            stage: Stage {
                number: 1,
                name: "saxpy",
                demangled: "",
                architecture: "",
                kernel: true,
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
        };
        trace.work(device, &work).expect("a sink");
    }
    black_box(trace.bytes());
}

/// The same packets as [`encode_by_hand`] makes.
fn encode_with_prost() {
    let mut out = Vec::with_capacity(1 << 20);
    let mut write = |packet: TracePacket| {
        if out.len() > 128 << 10 {
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
        let event = 1 << 40 | number;
        for call in 0..5 {
            let begin = TrackEvent {
                category_iids: vec![1],
                r#type: Some(1),
                name_field: Some(NameField::NameIid(2)),
                correlation_id_field: Some(CorrelationIdField::CorrelationId(number * 5 + call)),
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

/// A capture of the same calls; returns the number of records.
fn write_capture(path: &std::path::Path) -> u64 {
    let ticks = TickSource::Virtual.code();
    let header = FileHeader::new(ticks, ProcessId(4242), 1_000_000_000, 0, [1; 16]);
    let writer = Writer::create(path, &header).expect("room for the capture");
    let names = Names::writing_to(writer.clone());
    let agent = names.agent(Agent {
        name: names.string("GPU"),
        ..Agent::blank()
    });
    let queue = names.queue(Queue {
        agent,
        ..Queue::blank()
    });
    let kernel = names.kernel(KernelSymbol {
        name: names.string("saxpy"),
        ..KernelSymbol::blank()
    });
    for time in [1, 10_000_000_000] {
        names.clock_snapshot(virtual_snapshot(Ticks(time)));
        names.clock_pair(ClockPair {
            before: Ticks(time),
            after: Ticks(time),
            device: DeviceTime(time),
            agent,
            ..ClockPair::blank()
        });
    }
    let thread = ThreadId(4242);
    let (mut calls, mut completions) = (Vec::new(), Vec::new());
    let mut time = 1_000;
    for number in 0..ENQUEUES {
        for call in 0..5 {
            time += 700;
            let correlation = CorrelationId(number * 5 + call + 1);
            if call == 4 {
                calls.extend_from_slice(bytes_of(&KernelDispatch {
                    correlation,
                    work: WorkId(number + 1),
                    enqueued: Ticks(time),
                    kernel,
                    agent,
                    queue,
                    thread,
                    grid: [1 << 20, 1, 1],
                    workgroup: [256, 1, 1],
                    ..KernelDispatch::blank()
                }));
                completions.extend_from_slice(bytes_of(&Completion {
                    work: WorkId(number + 1),
                    correlation,
                    queued: DeviceTime(time + 300),
                    submitted: DeviceTime(time + 4_100),
                    start: DeviceTime(time + 5_000),
                    end: DeviceTime(time + 6_400),
                    completed: Ticks(time + 7_000),
                    agent,
                    ..Completion::blank()
                }));
            }
            let operation = Operation {
                domain: Domain::OPENCL,
                number: call as u16,
            };
            calls.extend_from_slice(bytes_of(&Api {
                start: Ticks(time),
                end: Ticks(time + 300),
                correlation,
                thread,
                operation,
                ..Api::blank()
            }));
        }
        if calls.len() > 200_000 || number + 1 == ENQUEUES {
            for (lane, bytes) in [(1, &mut calls), (2, &mut completions)] {
                let view = BlockView {
                    lane,
                    thread,
                    sequence: number as u32,
                    offset: 0,
                    first_record: 0,
                    bytes,
                };
                writer.records(&view).expect("room for the capture");
                bytes.clear();
            }
        }
    }
    CALLS + 2 * ENQUEUES
}
