//! Traces of our own, whole and spoiled, as the reader sees them.

use std::io::Write as _;

use proptest::prelude::*;
use prost::Message;

use super::{
    EventKind, Findings, HostEvent, PacketPosition, ReadOutcome, TraceReplay, Visitor, check, info,
    read,
};
use crate::model;
use crate::model::{
    Agent, AgentIndex, Call, Consumer, EventArgument, EventId, Function, Launch, Parent, Process,
    ProcessIndex, Producer, Queue, QueueIndex, Slice, Stage, StageId, SystemClocks, TraceHeader,
    Track, TrackIndex, TrackKind, Value, Work, WorkKind,
};
use crate::perfetto::Exporter;
use crate::perfetto::schema::trace_packet::Data;
use crate::perfetto::schema::{Trace, TracePacket, TraceStats, TrackDescriptor, trace_stats};
use gputrail_record::{CorrelationId, Domain, Nanos, ProcessId, ThreadId};

const CLOCKS: SystemClocks = SystemClocks {
    boottime: Nanos(1_000_000),
    monotonic: Nanos(900_000),
    monotonic_raw: Nanos::NONE,
    realtime: Nanos(5_000_000),
};

/// Calls that submit a kernel each, as (begin, end of the call, start of the kernel, how long it ran).
type Calls = [(u64, u64, u64, u64)];

const PROCESS: ProcessIndex = ProcessIndex(0);
const THREAD: TrackIndex = TrackIndex(0);

/// The trace of a thread that makes `calls`.
fn trace_of(calls: &Calls) -> Vec<u8> {
    trace(false, |exporter| write_calls(exporter, calls))
}

/// The trace of a process with a thread and a queue, and of what `write` writes.
fn trace(
    compressed: bool,
    write: impl FnOnce(&mut Exporter<'_>) -> std::io::Result<()>,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut exporter = Exporter::new(&mut bytes).compressed(compressed);
    declare(&mut exporter).unwrap();
    write(&mut exporter).unwrap();
    exporter.finish().unwrap();
    drop(exporter);
    bytes
}

fn declare(exporter: &mut Exporter<'_>) -> std::io::Result<()> {
    exporter.begin(&TraceHeader {
        identity: 7,
        clocks: CLOCKS,
        ..TraceHeader::default()
    })?;
    let gpu = Agent {
        title: "GPU 0".into(),
        name: "a device".into(),
        ..Agent::default()
    };
    exporter.agents(AgentIndex(0), &[gpu])?;
    let process = Process {
        pid: ProcessId(42),
        name: "program",
        rank: "",
        command: &[],
        order: None,
    };
    exporter.process(PROCESS, &process)?;
    let thread = Track {
        parent: Parent::Process(PROCESS),
        name: "main",
        kind: TrackKind::Thread(PROCESS, ThreadId(43)),
        order: None,
    };
    exporter.track(THREAD, &thread)?;
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

fn write_calls(exporter: &mut Exporter<'_>, calls: &Calls) -> std::io::Result<()> {
    let function = Function {
        name: "clEnqueueNDRangeKernel".into(),
        domain: Domain::OPENCL,
        ..Function::default()
    };
    for (number, (begin, end, start, duration)) in (1..).zip(calls) {
        exporter.call(&Call {
            start: Nanos(*begin),
            end: Some(Nanos(*end)),
            correlation: CorrelationId(number),
            submitted: &[EventId(number)],
            ..Call::blank(&function)
        })?;
        exporter.work(&Work {
            event: Some(EventId(number)),
            start: Some(Nanos(*start)),
            duration: Some(*duration),
            stage: Stage {
                id: StageId(1),
                name: "saxpy",
                kind: WorkKind::Kernel,
                ..Stage::default()
            },
            launch: Some(Launch {
                grid: [64, 1, 1],
                workgroup: [8, 1, 1],
            }),
            correlation: CorrelationId(number),
            ..Work::default()
        })?;
    }
    Ok(())
}

const TWO: &[(u64, u64, u64, u64); 2] = &[
    (2_000_000, 2_000_500, 2_000_400, 100),
    (2_001_000, 2_001_500, 2_002_000, 50),
];

/// The packets of a trace, changed.
fn changed(trace: &[u8], change: impl FnOnce(&mut Vec<TracePacket>)) -> Vec<u8> {
    let mut trace = Trace::decode(trace).unwrap();
    change(&mut trace.packet);
    trace.encode_to_vec()
}

fn whats(outcome: &ReadOutcome) -> Vec<&str> {
    let findings = outcome.findings.list();
    findings.iter().map(|finding| &finding.what[..]).collect()
}

/// Checks that a changed trace has one finding, which contains `what`.
#[track_caller]
fn one_finding(trace: &[u8], what: &str) {
    let outcome = check(trace);
    let whats = whats(&outcome);
    assert!(whats.len() == 1 && whats[0].contains(what), "{whats:?}");
    let position = outcome.findings.list()[0].position;
    assert!(position.offset < trace.len() as u64, "{position}");
}

fn is_work(packet: &TracePacket) -> bool {
    matches!(packet.data, Some(Data::GpuRenderStageEvent(_)))
}

fn is_slice(packet: &TracePacket) -> bool {
    matches!(packet.data, Some(Data::TrackEvent(_)))
}

#[derive(Default)]
struct Heard {
    calls: Vec<(String, u64, u64)>,
    work: Vec<(String, Option<u64>, (u64, u64))>,
}

impl Consumer for Heard {
    crate::leave_out!(
        clocks attributes agents process track queue counters slice end instant value counter_values samples stack
        stack_samples loss note
    );

    fn call(&mut self, call: &Call<'_>) -> std::io::Result<()> {
        let end = call.end.expect("it returned").0;
        let name = call.function.name.clone().into();
        self.calls.push((name, call.start.0, end));
        Ok(())
    }

    fn work(&mut self, work: &model::Work<'_>) -> std::io::Result<()> {
        assert_eq!(work.stage.kind, WorkKind::Kernel);
        let (start, end) = work.interval.expect("it ended");
        let enqueued = work.enqueued.map(|time| time.0);
        self.work
            .push((work.stage.name.to_owned(), enqueued, (start.0, end.0)));
        Ok(())
    }
}

#[test]
fn a_trace_of_ours_has_no_findings_and_lists_its_contents() {
    let trace = trace_of(TWO);
    assert_eq!(whats(&check(&trace[..])), [""; 0]);
    let info = info(&trace[..]);
    assert_eq!(info.version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!((info.slices, info.open_slices, info.kernels), (2, 0, 2));
    assert_eq!(
        info.span.map(|(from, to)| (from.0, to.0)),
        Some((2_000_000, 2_002_050))
    );
    assert_eq!(
        (&info.devices[0].name[..], info.devices[0].work),
        ("a device", 2)
    );
    assert_eq!(
        (info.processes[0].pid.0, &info.processes[0].name[..]),
        (42, "program")
    );
    assert_eq!((info.outcome.bytes, info.lost), (trace.len() as u64, 0));
}

#[test]
fn traces_one_behind_the_other_are_kept_apart() {
    // Their sequences, tracks and ids have the same numbers, and their times overlap.
    let later =
        TWO.map(|(begin, end, start, duration)| (begin + 700, end + 700, start + 700, duration));
    let both = [trace_of(TWO), trace_of(&later), trace_of(&later[..1])].concat();
    assert_eq!(whats(&check(&both[..])), [""; 0]);
    let info = info(&both[..]);
    assert_eq!((info.slices, info.open_slices, info.kernels), (5, 0, 5));
    let mut starts = Vec::new();
    /// The starts of all work and of its calls.
    struct Ties<'a>(&'a mut Vec<(u64, Option<u64>)>);
    impl Consumer for Ties<'_> {
        crate::leave_out!(
            clocks attributes agents process track queue counters call slice end instant value counter_values
            samples stack stack_samples loss note
        );

        fn work(&mut self, work: &Work<'_>) -> std::io::Result<()> {
            let start = work.start.map_or(0, |start| start.0);
            self.0.push((start, work.enqueued.map(|time| time.0)));
            Ok(())
        }
    }
    let replayed = TraceReplay::new(&both[..])
        .produce(&mut Ties(&mut starts))
        .unwrap();
    assert_eq!(replayed.untied, 0);
    let calls = TWO.iter().chain(&later).chain(&later[..1]);
    let expected: Vec<_> = calls
        .map(|(begin, _, start, _)| (*start, Some(*begin)))
        .collect();
    assert_eq!(starts, expected);
}

#[test]
fn calls_and_work_are_read_as_they_were_written() {
    let mut heard = Heard::default();
    let replayed = TraceReplay::new(&trace_of(TWO)[..])
        .produce(&mut heard)
        .unwrap();
    assert_eq!((replayed.untied, replayed.outcome.findings.count()), (0, 0));
    let name = "clEnqueueNDRangeKernel".to_owned();
    assert_eq!(heard.calls[0], (name.clone(), 2_000_000, 2_000_500));
    assert_eq!(heard.calls[1], (name, 2_001_000, 2_001_500));
    let work = ("saxpy".to_owned(), Some(2_001_000), (2_002_000, 2_002_050));
    assert_eq!(heard.work[1], work);
}

#[test]
fn work_may_come_before_its_call() {
    let trace = changed(&trace_of(TWO), |packets| {
        let place = packets.iter().position(is_slice).unwrap();
        // The calls and what belongs to their sequence go to the end.
        let sequence = packets[place].trusted_packet_sequence_id;
        packets.sort_by_key(|packet| packet.trusted_packet_sequence_id == sequence);
    });
    assert_eq!(whats(&check(&trace[..])), [""; 0]);
    let mut heard = Heard::default();
    let replayed = TraceReplay::new(&trace[..]).produce(&mut heard).unwrap();
    assert_eq!(replayed.untied, 0);
    assert_eq!(heard.work[0].1, Some(2_000_000));
}

#[test]
fn a_call_has_its_correlation_id_beside_any_other_annotations() {
    #[derive(Default)]
    struct Begins(Vec<(Option<u64>, Vec<String>)>);
    impl Visitor for Begins {
        fn host(&mut self, _: PacketPosition, event: &HostEvent<'_>, _: &mut Findings) {
            if event.kind == EventKind::Begin {
                let names = event.annotations.iter().map(|(name, _)| name.to_string());
                self.0.push((event.correlation, names.collect()));
            }
        }
    }
    let sizes = [EventArgument {
        name: "size",
        value: Value::Uint(1 << 40),
    }];
    let trace = trace(false, |exporter| {
        let ids = [(1 << 40, &sizes[..]), (2, &[]), (0, &sizes)];
        ids.into_iter().try_for_each(|(correlation, arguments)| {
            exporter.slice(&Slice {
                track: THREAD,
                name: "clEnqueue",
                category: "opencl",
                start: Nanos(2_000_000),
                open: true,
                correlation: CorrelationId(correlation),
                arguments,
                ..Slice::default()
            })
        })
    });
    let mut begins = Begins::default();
    let outcome = read(&trace[..], &mut begins);
    assert_eq!(outcome.findings.list(), []);
    let size = || vec!["size".to_owned()];
    let expected = [(Some(1 << 40), size()), (Some(2), vec![]), (None, size())];
    assert_eq!(begins.0, expected);
}

#[test]
fn references_to_missing_work_are_found() {
    let trace = changed(&trace_of(TWO), |packets| {
        let last = packets.iter().rposition(is_work).unwrap();
        packets.remove(last);
    });
    one_finding(&trace, "names 0x2 as its work, which is not in the trace");
}

#[test]
fn work_that_no_call_names_is_found() {
    let trace = changed(&trace_of(TWO), |packets| {
        for packet in packets {
            if let Some(Data::TrackEvent(event)) = &mut packet.data
                && !event.debug_annotations.is_empty()
                && event
                    .gpu_correlation
                    .as_ref()
                    .unwrap()
                    .render_stage_submission_event_ids
                    == [2]
            {
                event.gpu_correlation = None;
            }
        }
    });
    one_finding(&trace, "no call names the work 0x2");
}

#[test]
fn ids_that_are_used_twice_are_found() {
    let trace = changed(&trace_of(TWO), |packets| {
        let last = packets.iter().rposition(is_work).unwrap();
        let packet = TracePacket {
            timestamp: Some(0),
            ..packets[last].clone()
        };
        packets.push(packet);
    });
    one_finding(&trace, "a second piece of work has the id 0x2");
    let trace = changed(&trace_of(TWO), |packets| {
        let named = |packet: &mut TracePacket, work: &[u64]| match &mut packet.data {
            Some(Data::TrackEvent(event)) if event.gpu_correlation.is_some() => {
                let ids = event.gpu_correlation.as_mut().unwrap();
                ids.render_stage_submission_event_ids.extend(work);
                true
            }
            _ => false,
        };
        assert!(packets.iter_mut().any(|packet| named(packet, &[2])));
    });
    one_finding(&trace, "two calls name 0x2 as their work");
}

#[test]
fn waits_for_work_that_is_missing_are_found() {
    let trace = changed(&trace_of(TWO), |packets| {
        let events = packets
            .iter_mut()
            .filter_map(|packet| match &mut packet.data {
                Some(Data::TrackEvent(event)) => event.gpu_correlation.as_mut(),
                _ => None,
            });
        for ids in events {
            ids.render_stage_wait_event_ids = vec![1, 7];
        }
    });
    one_finding(&trace, "a call waited for 0x7, which is not in the trace");
}

#[test]
fn all_ids_are_checked_however_many_there_are() {
    // More than fit into the memory for ids.
    const COUNT: u64 = 10_000;
    let trace = changed(&trace_of(TWO), |packets| {
        let mut events = packets
            .iter_mut()
            .filter_map(|packet| match &mut packet.data {
                Some(Data::TrackEvent(event)) => event.gpu_correlation.as_mut(),
                _ => None,
            });
        let ids = events.next().expect("a call");
        ids.render_stage_wait_event_ids = (10..10 + COUNT).rev().collect();
    });
    let found = check(&trace[..]);
    assert_eq!(
        (found.findings.count(), found.findings.unlisted()),
        (COUNT, 0)
    );
    assert_eq!(found.findings.list().len(), 1);
    assert!(found.unchecked.is_empty());
}

#[test]
fn work_of_a_device_that_is_not_described_is_found() {
    let trace = changed(&trace_of(TWO), |packets| {
        let last = packets.iter().rposition(is_work).unwrap();
        if let Some(Data::GpuRenderStageEvent(work)) = &mut packets[last].data {
            work.gpu_id = Some(1);
        }
    });
    one_finding(&trace, "work of device 1, which is not described");
}

#[test]
fn work_before_its_call_is_found() {
    let early = [(2_000_000, 2_000_500, 1_999_999, 100)];
    one_finding(&trace_of(&early), "begins 1 ns before the call");
}

#[test]
fn a_negative_duration_is_found() {
    let endless = [(2_000_000, 2_000_500, 2_000_100, -5_i64 as u64)];
    one_finding(&trace_of(&endless), "duration of -5 ns");
}

#[test]
fn slices_that_end_too_often_or_too_early_are_found() {
    let early = changed(&trace_of(TWO), |packets| {
        let last = packets.iter().rposition(is_slice).unwrap();
        packets[last].timestamp = Some(-700_i64 as u64);
    });
    one_finding(&early, "ends 700 ns before it begins");
    let twice = changed(&trace_of(TWO), |packets| {
        let last = packets.iter().rposition(is_slice).unwrap();
        packets.push(packets[last].clone());
    });
    one_finding(&twice, "ends that has not begun");
}

#[test]
fn names_that_were_never_sent_are_found() {
    let trace = changed(&trace_of(&TWO[..1]), |packets| {
        let place = packets.iter().position(is_slice).unwrap();
        packets[place]
            .interned_data
            .as_mut()
            .unwrap()
            .event_names
            .clear();
    });
    one_finding(&trace, "event name 25 was never interned");
}

#[test]
fn a_number_that_stands_for_two_names_is_found() {
    let trace = changed(&trace_of(TWO), |packets| {
        let place = packets.iter().position(is_slice).unwrap();
        let mut data = packets[place].interned_data.clone().unwrap();
        data.event_names[0].name = Some("something else".into());
        let last = packets.iter().rposition(is_slice).unwrap();
        packets[last].interned_data = Some(data);
    });
    one_finding(&trace, "event name 25 is interned again as something else");
}

#[test]
fn losses_are_found_and_reported() {
    let trace = changed(&trace_of(TWO), |packets| {
        let buffer = trace_stats::BufferStats {
            trace_writer_packet_loss: Some(9),
        };
        packets.push(TracePacket {
            data: Some(Data::TraceStats(TraceStats {
                buffer_stats: vec![buffer],
                final_flush_outcome: None,
            })),
            ..TracePacket::default()
        });
    });
    one_finding(&trace, "9 records lost");
    assert_eq!(info(&trace[..]).lost, 9);
}

#[test]
fn a_sequence_that_lost_its_state_is_found() {
    let trace = changed(&trace_of(TWO), |packets| {
        let last = packets.iter().rposition(is_work).unwrap();
        packets[last].previous_packet_dropped = Some(true);
    });
    let outcome = check(&trace[..]);
    let whats = whats(&outcome);
    assert!(
        whats.iter().any(|what| what.contains("were dropped")),
        "{whats:?}"
    );
    assert!(
        whats.iter().any(|what| what.contains("needs state")),
        "{whats:?}"
    );
}

#[test]
fn events_without_a_time_are_found() {
    for is_event in [is_slice, is_work] {
        let trace = changed(&trace_of(TWO), |packets| {
            let event = packets.iter_mut().rfind(|packet| is_event(packet));
            let event = event.expect("there is one");
            // Without a clock of its own, the packet has the time that its sequence is at.
            (event.timestamp, event.timestamp_clock_id) = (None, Some(6));
        });
        let outcome = check(&trace[..]);
        let found = whats(&outcome);
        assert!(found.contains(&"an event without a time"), "{found:?}");
    }
}

#[test]
fn tracks_that_stand_below_themselves_are_found() {
    let trace = changed(&trace_of(TWO), |packets| {
        for (uuid, parent) in [(1, 2), (2, 3), (3, 1), (4, 1)] {
            packets.push(TracePacket {
                data: Some(Data::TrackDescriptor(TrackDescriptor {
                    uuid: Some(uuid),
                    parent_uuid: Some(parent),
                    ..TrackDescriptor::default()
                })),
                ..TracePacket::default()
            });
        }
    });
    one_finding(&trace, "is its own ancestor");
}

#[test]
fn a_file_that_is_not_a_trace_is_reported_as_such() {
    assert_eq!(whats(&check(&b""[..])), ["the trace is empty"]);
    let text = check(&b"This is a letter, not a trace."[..]);
    assert!(
        whats(&text)
            .last()
            .unwrap()
            .contains("not a Perfetto trace")
    );
}

#[test]
fn compressed_groups_are_whole_packets_and_a_cut_costs_the_last_one() {
    let calls: Vec<_> = (0..20_000)
        .map(|number| {
            let begin = 2_000_000 + number * 100;
            (begin, begin + 50, begin + 60, 30 + number % 7)
        })
        .collect();
    let plain = trace_of(&calls);
    let packed = trace(true, |exporter| write_calls(exporter, &calls));
    assert!(
        packed.len() * 2 < plain.len(),
        "{} of {}",
        packed.len(),
        plain.len()
    );
    assert_eq!(whats(&check(&packed[..])), [""; 0]);
    let (all, known) = (info(&packed[..]), info(&plain[..]));
    assert_eq!(all.packets, known.packets);
    assert!(all.outcome.groups > 5);
    let packets = Trace::decode(&packed[..]).unwrap().packet.len() as u64;
    assert_eq!(
        packets, all.outcome.groups,
        "nothing stands outside of a group"
    );
    let cut = info(&packed[..packed.len() - 1]);
    assert_eq!(cut.outcome.groups, all.outcome.groups - 1);
    assert_eq!(cut.outcome.findings.count(), 1);
}

#[test]
fn a_trace_reads_the_same_when_it_is_compressed() {
    let trace = trace_of(TWO);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&trace).unwrap();
    let gzipped = gzip.finish().unwrap();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    zlib.write_all(&trace).unwrap();
    let mut grouped = crate::perfetto::wire::Encoder::default();
    let packet = grouped.open(1);
    grouped.raw(50, &zlib.finish().unwrap());
    grouped.close(packet);
    for packed in [&gzipped[..], grouped.bytes()] {
        assert_eq!(whats(&check(packed)), [""; 0]);
        let (plain, packed) = (info(&trace[..]), info(packed));
        assert_eq!(plain.span, packed.span);
        assert_eq!(plain.packets, packed.packets);
    }
}

proptest! {
    #[test]
    fn a_cut_anywhere_but_between_packets_is_found(cut: prop::sample::Index) {
        let trace = trace_of(TWO);
        let cut = cut.index(trace.len());
        let whole = Trace::decode(&trace[..cut]).is_ok();
        let outcome = check(&trace[..cut]);
        let cuts = outcome.findings.list().iter().filter(|finding| finding.what.contains("cut")).count();
        prop_assert_eq!(cuts, usize::from(!whole), "{:?}", outcome.findings);
    }

    #[test]
    fn spoiled_bytes_are_read_to_their_end(
        spoiled in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut trace = trace_of(TWO);
        for (place, byte) in spoiled {
            let place = place.index(trace.len());
            trace[place] = byte;
        }
        for finding in check(&trace[..]).findings.list() {
            prop_assert!(finding.position.offset <= trace.len() as u64);
        }
        info(&trace[..]);
        struct Everything;
        impl Consumer for Everything {
            crate::leave_out!(
                clocks attributes agents process track queue counters call slice end instant work value
                counter_values samples stack stack_samples loss note
            );
        }
        TraceReplay::new(&trace[..]).produce(&mut Everything).unwrap();
    }
}
