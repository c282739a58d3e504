//! Traces of other programs in the model: what is counted, and how much memory their events take while they wait.

use std::io;

use prost::Message;

use super::limits::MAX_NAME_BYTES;
use super::{Replayed, TraceReplay};
use crate::model::{
    Consumer, CounterValue, Instant, Process, ProcessIndex, Producer, Slice, StackFrame,
    StackIndex, StackSamples, Track, TrackIndex, Work,
};
use crate::perfetto::schema::debug_annotation::{self, Value};
use crate::perfetto::schema::field::{self, debug_annotation as annotation, track_event as event};
use crate::perfetto::schema::gpu_counter_descriptor::GpuCounterSpec;
use crate::perfetto::schema::gpu_counter_event::{GpuCounter, gpu_counter};
use crate::perfetto::schema::gpu_render_stage_event::ExtraData;
use crate::perfetto::schema::trace_packet::Data;
use crate::perfetto::schema::{
    DebugAnnotation, GpuCounterDescriptor, GpuCounterEvent, GpuRenderStageEvent, InternedData,
    InternedString, ProcessDescriptor, StreamingProfilePacket, ThreadDescriptor, Trace,
    TracePacket, TrackDescriptor, TrackEvent, track_event,
};
use crate::perfetto::stacks::INVENTED;
use crate::perfetto::wire::Encoder;
use gputrail_record::Nanos;

/// The sequence of all packets.
const SEQUENCE: u32 = 1;
/// Length of the long texts.
const LONG: usize = 256 << 10;

/// The stream in lines.
#[derive(Default)]
struct Lines {
    tracks: Vec<String>,
    lines: Vec<String>,
    /// The sum of the lengths of all texts of arguments.
    argument_bytes: usize,
}

impl Lines {
    fn count(&self, word: &str) -> usize {
        let lines = self.lines.iter();
        lines.filter(|line| line.starts_with(word)).count()
    }
}

impl Consumer for Lines {
    crate::leave_out!(clocks attributes agents queue counters call end counter_values samples loss note);

    fn process(&mut self, _: ProcessIndex, process: &Process<'_>) -> io::Result<()> {
        self.lines.push(format!("process {}", process.name.len()));
        Ok(())
    }

    fn track(&mut self, _: TrackIndex, track: &Track<'_>) -> io::Result<()> {
        self.tracks.push(track.name.to_owned());
        Ok(())
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        let name = slice.name.split_at(slice.name.len().min(8)).0;
        self.lines.push(format!("slice {name}"));
        for argument in slice.arguments {
            if let crate::model::Value::Text(text) = argument.value {
                self.argument_bytes += text.len();
            }
        }
        Ok(())
    }

    fn instant(&mut self, instant: &Instant<'_>) -> io::Result<()> {
        self.lines.push(format!("instant {}", instant.name));
        Ok(())
    }

    fn work(&mut self, _: &Work<'_>) -> io::Result<()> {
        self.lines.push("work".to_owned());
        Ok(())
    }

    fn value(&mut self, track: TrackIndex, time: Nanos, value: CounterValue) -> io::Result<()> {
        let name = &self.tracks[track.0 as usize];
        let line = format!("value of {name} at {}: {value:?}", time.0);
        self.lines.push(line);
        Ok(())
    }

    fn stack(&mut self, _: TrackIndex, _: StackIndex, _: &[StackFrame]) -> io::Result<()> {
        Ok(())
    }

    fn stack_samples(&mut self, samples: &StackSamples<'_>) -> io::Result<()> {
        self.lines
            .push(format!("{} samples", samples.samples.len()));
        Ok(())
    }
}

fn packet(timestamp: u64, data: Data) -> TracePacket {
    TracePacket {
        timestamp: Some(timestamp),
        trusted_packet_sequence_id: Some(SEQUENCE),
        data: Some(data),
        ..TracePacket::default()
    }
}

/// The first packet of the sequence, whose annotation text 1 is long.
fn first() -> TracePacket {
    TracePacket {
        trusted_packet_sequence_id: Some(SEQUENCE),
        sequence_flags: Some(1),
        interned_data: Some(InternedData {
            debug_annotation_string_values: vec![InternedString {
                iid: Some(1),
                str: Some(vec![b'x'; LONG]),
            }],
            ..InternedData::default()
        }),
        ..TracePacket::default()
    }
}

/// A begin (1), end (2) or instant (3) with the long text as each of `arguments` arguments.
fn event_with(kind: i32, name: &str, arguments: usize) -> TrackEvent {
    let argument = DebugAnnotation {
        name_field: Some(debug_annotation::NameField::Name("text".into())),
        value: Some(Value::StringValueIid(1)),
    };
    TrackEvent {
        r#type: Some(kind),
        track_uuid: Some(5),
        debug_annotations: vec![argument; arguments],
        name_field: Some(track_event::NameField::Name(name.into())),
        ..TrackEvent::default()
    }
}

fn replayed_bytes(bytes: &[u8]) -> (Replayed, Lines) {
    let mut lines = Lines::default();
    let replayed = TraceReplay::new(bytes).produce(&mut lines).unwrap();
    assert_eq!(replayed.outcome.findings.list(), []);
    (replayed, lines)
}

fn replayed(packets: Vec<TracePacket>) -> (Replayed, Lines) {
    let trace = Trace { packet: packets };
    replayed_bytes(&trace.encode_to_vec())
}

/// The number of parts that were left out for a reason with these words.
fn left_out(replayed: &Replayed, words: &str) -> u64 {
    let tallies = replayed.left_out.iter();
    let tallies = tallies.filter(|tally| tally.reason.contains(words));
    tallies.map(|tally| tally.count).sum()
}

/// Values of counters of a device, by the numbers of the counters.
fn counters(gpu: i32, values: &[(u32, Option<i64>)]) -> GpuCounterEvent {
    let counters = values.iter().map(|(id, value)| GpuCounter {
        counter_id: Some(*id),
        value: value.map(gpu_counter::Value::IntValue),
    });
    GpuCounterEvent {
        counter_descriptor: None,
        counters: counters.collect(),
        gpu_id: Some(gpu),
    }
}

/// The description of counter 1 of a device.
fn described(gpu: i32, name: &str) -> GpuCounterEvent {
    GpuCounterEvent {
        counter_descriptor: Some(GpuCounterDescriptor {
            specs: vec![GpuCounterSpec {
                counter_id: Some(1),
                name: Some(name.into()),
                ..GpuCounterSpec::default()
            }],
            blocks: Vec::new(),
        }),
        ..counters(gpu, &[])
    }
}

#[test]
fn counters_of_several_devices_may_have_the_same_number() {
    let events = [
        described(0, "clock"),
        described(1, "clock"),
        counters(0, &[(1, Some(10))]),
        counters(1, &[(1, Some(20))]),
    ];
    let packets = (1..).zip(events);
    let packets = packets.map(|(time, event)| packet(time, Data::GpuCounterEvent(event)));
    let (_, lines) = replayed(packets.collect());
    let expected = [
        "value of GPU 0 clock at 3: Int(10)",
        "value of GPU 1 clock at 4: Int(20)",
    ];
    assert_eq!(lines.lines, expected);
}

#[test]
fn counters_without_a_value_and_values_without_a_time_are_counted() {
    let mut untimed = packet(
        0,
        Data::GpuCounterEvent(counters(0, &[(1, Some(1)), (1, None)])),
    );
    untimed.timestamp = None;
    let (replayed, lines) = replayed(vec![
        packet(1, Data::GpuCounterEvent(described(0, "clock"))),
        packet(
            2,
            Data::GpuCounterEvent(counters(0, &[(1, None), (1, Some(7)), (9, Some(8))])),
        ),
        untimed,
    ]);
    assert_eq!(lines.count("value"), 1);
    assert_eq!(left_out(&replayed, "without a value"), 2);
    assert_eq!(left_out(&replayed, "without a time"), 1);
    assert_eq!(left_out(&replayed, "without a description"), 1);
}

#[test]
fn samples_of_stacks_without_a_time_are_counted() {
    let thread = ThreadDescriptor {
        pid: Some(7),
        tid: Some(i64::from(INVENTED | 7)),
        ..ThreadDescriptor::default()
    };
    let interned = InternedData {
        callstacks: vec![crate::perfetto::schema::Callstack {
            iid: Some(1),
            frame_ids: Vec::new(),
        }],
        ..InternedData::default()
    };
    let samples = StreamingProfilePacket {
        callstack_iid: vec![1; 5],
        timestamp_delta_us: vec![10; 3],
    };
    let mut of_thread = packet(1, Data::ThreadDescriptor(thread));
    of_thread.sequence_flags = Some(1);
    of_thread.interned_data = Some(interned);
    let (replayed, lines) = replayed(vec![
        of_thread,
        packet(2, Data::StreamingProfilePacket(samples)),
    ]);
    assert_eq!(lines.count("3 samples"), 1);
    assert_eq!(left_out(&replayed, "stack without a time"), 2);
}

#[test]
fn late_events_are_passed_on_and_are_not_among_those_that_are_left_out() {
    let instants =
        (0..40).map(|number| packet(1000 + number, Data::TrackEvent(event_with(3, "a", 1))));
    let mut packets: Vec<_> = std::iter::once(first()).chain(instants).collect();
    packets.push(packet(1, Data::TrackEvent(event_with(3, "late", 0))));
    let (replayed, lines) = replayed(packets);
    assert_eq!(
        (lines.count("instant a"), lines.count("instant late")),
        (40, 1)
    );
    assert_eq!(replayed.left_out, []);
    assert_eq!(replayed.late[0].count, 1);
}

#[test]
fn an_event_that_refers_to_a_long_text_again_and_again_has_bounded_arguments() {
    let (replayed, lines) = replayed(vec![
        first(),
        packet(1, Data::TrackEvent(event_with(1, "a", 40))),
        packet(2, Data::TrackEvent(event_with(2, "", 0))),
    ]);
    assert_eq!(lines.argument_bytes, 3 * LONG);
    assert_eq!(left_out(&replayed, "argument of an event beyond"), 37);
}

#[test]
fn a_list_that_refers_to_a_long_text_again_and_again_is_counted() {
    let mut encoder = Encoder::default();
    encoder.raw(field::trace::PACKET, &first().encode_to_vec());
    let packet = encoder.open(field::trace::PACKET);
    encoder.uint(field::trace_packet::TIMESTAMP, 1);
    encoder.uint(
        field::trace_packet::TRUSTED_PACKET_SEQUENCE_ID,
        SEQUENCE.into(),
    );
    let of_track = encoder.open(field::trace_packet::TRACK_EVENT);
    encoder.uint(event::TYPE, 3);
    encoder.uint(event::TRACK_UUID, 5);
    let list = encoder.open(event::DEBUG_ANNOTATIONS);
    for _ in 0..100_000 {
        let entry = encoder.open(annotation::ARRAY_VALUES);
        encoder.uint(annotation::STRING_VALUE_IID, 1);
        encoder.close(entry);
    }
    encoder.close(list);
    encoder.close(of_track);
    encoder.close(packet);
    let (replayed, lines) = replayed_bytes(encoder.bytes());
    assert_eq!(lines.count("instant"), 1);
    assert_eq!(left_out(&replayed, "or longer than"), 1);
}

#[test]
fn ends_with_long_arguments_do_not_wait_for_their_outermost_slice() {
    let mut packets = vec![
        first(),
        packet(1, Data::TrackEvent(event_with(1, "outer", 0))),
    ];
    for number in 0..64 {
        packets.push(packet(
            2 + 2 * number,
            Data::TrackEvent(event_with(1, "inner", 0)),
        ));
        packets.push(packet(
            3 + 2 * number,
            Data::TrackEvent(event_with(2, "", 1)),
        ));
    }
    packets.push(packet(500, Data::GpuCounterEvent(described(0, "clock"))));
    packets.push(packet(
        500,
        Data::GpuCounterEvent(counters(0, &[(1, Some(1))])),
    ));
    packets.push(packet(600, Data::TrackEvent(event_with(2, "", 0))));
    let (_, lines) = replayed(packets);
    let before = lines
        .lines
        .iter()
        .position(|line| line.starts_with("value"));
    assert!(before.unwrap() > 30, "{before:?}");
    assert_eq!(lines.count("slice"), 65);
}

#[test]
fn work_with_long_details_does_not_wait_for_its_call_for_ever() {
    let work = |id| GpuRenderStageEvent {
        event_id: Some(id),
        duration: Some(1),
        extra_data: vec![ExtraData {
            name: Some("reason".into()),
            value: Some("y".repeat(LONG)),
        }],
        ..GpuRenderStageEvent::default()
    };
    let mut packets: Vec<_> = (1..=64)
        .map(|id| packet(id, Data::GpuRenderStageEvent(work(id))))
        .collect();
    packets.push(packet(500, Data::GpuCounterEvent(described(0, "clock"))));
    packets.push(packet(
        500,
        Data::GpuCounterEvent(counters(0, &[(1, Some(1))])),
    ));
    let (replayed, lines) = replayed(packets);
    let before = lines
        .lines
        .iter()
        .position(|line| line.starts_with("value"));
    assert!(before.unwrap() > 30, "{before:?}");
    assert_eq!((lines.count("work"), replayed.untied), (64, 64));
}

#[test]
fn names_beyond_the_bound_are_passed_on_without_being_kept() {
    let mut packets = Vec::new();
    for number in 0..16 {
        let name = format!("name {number:03}{}", "z".repeat(LONG));
        packets.push(packet(
            2 * number,
            Data::TrackEvent(event_with(1, &name, 0)),
        ));
        packets.push(packet(
            2 * number + 1,
            Data::TrackEvent(event_with(2, "", 0)),
        ));
    }
    let (replayed, lines) = replayed(packets);
    let names: Vec<String> = (0..16)
        .map(|number| format!("slice name {number:03}"))
        .collect();
    assert_eq!(lines.lines, names);
    assert_eq!(replayed.left_out, []);
}

#[test]
fn descriptions_of_processes_beyond_the_bound_are_counted() {
    let described = |pid: i32| TrackDescriptor {
        uuid: Some(pid as u64),
        process: Some(ProcessDescriptor {
            pid: Some(pid),
            process_name: Some("p".repeat(LONG)),
            ..ProcessDescriptor::default()
        }),
        ..TrackDescriptor::default()
    };
    let packets = (1..=16).map(|pid| packet(1, Data::TrackDescriptor(described(pid))));
    let (replayed, lines) = replayed(packets.collect());
    let fit = MAX_NAME_BYTES / LONG;
    assert_eq!(lines.count(&format!("process {LONG}")), fit);
    assert_eq!(
        left_out(&replayed, "command line of a process"),
        16 - fit as u64
    );
}
