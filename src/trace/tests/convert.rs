//! Traces of captures that are made record by record.

use std::cell::RefCell;
use std::path::PathBuf;

use super::{Reader as TraceReader, Seen};
use crate::buffer::BlockView;
use crate::capture::names::Names;
use crate::capture::{FileHeader, Reader, Writer};
use crate::clock::{TickSource, virtual_snapshot};
use crate::record::*;
use crate::trace::capture::{Options, Report};
use crate::trace::perfetto::schema::trace_packet::Data;
use crate::trace::perfetto::schema::trace_stats;
use crate::trace::perfetto::schema::{GpuRenderStageEvent, InternedData, TrackEvent};
use crate::trace::perfetto::*;
use crate::trace::{Converted, convert};
use proptest::prelude::*;

const CALL: Operation = Operation {
    domain: Domain::OPENCL,
    number: 1,
};
pub(super) const MAIN: ThreadId = ThreadId(100);
pub(super) const HELPER: ThreadId = ThreadId(101);

/// A capture that is being made. Ticks and device times are nanoseconds of BOOTTIME.
pub(super) struct Making {
    pub(super) directory: tempfile::TempDir,
    path: PathBuf,
    pub(super) writer: Writer,
    pub(super) names: Names,
    pub(super) agent: AgentId,
    queue: QueueId,
    pub(super) kernel: KernelId,
    runs: RefCell<u32>,
}

impl Making {
    pub(super) fn new(pid: u32) -> Making {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.gputrail");
        let ticks = TickSource::Virtual.code();
        let header = FileHeader::new(ticks, ProcessId(pid), 1_000_000_000, 0, [pid as u8; 16]);
        let writer = Writer::create(&path, &header).unwrap();
        let names = Names::writing_to(writer.clone());
        names.process(Process {
            id: ProcessId(pid),
            executable: names.string("/usr/bin/app"),
            command: names.string("app --fast"),
            host: names.string("machine"),
            version: names.string("0.1.0"),
            configuration: names.string("lossless"),
            ..Process::blank()
        });
        for time in [1, 1_000_000_000] {
            names.clock_snapshot(virtual_snapshot(Ticks(time)));
        }
        let agent = names.agent(Agent {
            name: names.string("Device"),
            architecture: names.string("gfx"),
            domain: Domain::OPENCL,
            kind: AgentKind::GPU,
            ..Agent::blank()
        });
        for time in [1, 1_000_000_000] {
            names.clock_pair(ClockPair {
                before: Ticks(time),
                after: Ticks(time),
                device: DeviceTime(time),
                agent,
                ..ClockPair::blank()
            });
        }
        let context = names.context(Context {
            agent,
            domain: Domain::OPENCL,
            ..Context::blank()
        });
        let queue = names.queue(Queue {
            context,
            agent,
            ..Queue::blank()
        });
        let kernel = names.kernel(KernelSymbol {
            name: names.string("saxpy"),
            ..KernelSymbol::blank()
        });
        names.thread(MAIN, "main");
        names.operation(
            CALL,
            "clCall",
            "size:uint,name:string",
            OperationGroup::ENQUEUE,
        );
        Making {
            directory,
            path,
            writer,
            names,
            agent,
            queue,
            kernel,
            runs: RefCell::new(0),
        }
    }

    /// Appends a run of records.
    pub(super) fn run(&self, thread: ThreadId, records: &[&[u8]]) {
        let mut runs = self.runs.borrow_mut();
        *runs += 1;
        let view = BlockView {
            lane: thread.0,
            thread,
            sequence: *runs,
            offset: 0,
            first_record: 0,
            bytes: &records.concat(),
        };
        self.writer.records(&view).unwrap();
    }

    pub(super) fn dispatch(&self, work: u64, call: u64, enqueued: u64) -> KernelDispatch {
        KernelDispatch {
            work: WorkHeader {
                id: WorkId(work),
                correlation: CorrelationId(call),
                enqueued: Ticks(enqueued),
                agent: self.agent,
                queue: self.queue,
                thread: MAIN,
                ..WorkHeader::default()
            },
            kernel: self.kernel,
            grid: [128, 1, 1],
            workgroup: [64, 1, 1],
            ..KernelDispatch::blank()
        }
    }

    pub(super) fn completion(&self, work: u64, start: u64, end: u64) -> Completion {
        Completion {
            work: WorkId(work),
            queued: DeviceTime(start.saturating_sub(20)),
            submitted: DeviceTime(start.saturating_sub(10)),
            start: DeviceTime(start),
            end: DeviceTime(end),
            completed: Ticks(end + 5),
            agent: self.agent,
            ..Completion::blank()
        }
    }

    pub(super) fn capture(&self) -> Reader {
        Reader::open(&self.path).unwrap()
    }

    fn convert(&self) -> (Report, TraceReader) {
        converted(&[self.capture()], &Options::default())
    }
}

pub(super) fn converted(captures: &[Reader], options: &Options) -> (Report, TraceReader) {
    let mut out = Vec::new();
    let converted = convert(captures, Exporter::new(&mut out), options, &mut ());
    let Converted { report, bytes } = converted.unwrap();
    assert_eq!(bytes, out.len() as u64);
    (report, TraceReader::new(&out))
}

pub(super) fn call(id: u64, ancestor: u64, start: u64, end: u64) -> Api {
    Api {
        start: Ticks(start),
        end: Ticks(end),
        correlation: CorrelationId(id),
        ancestor: CorrelationId(ancestor),
        thread: MAIN,
        operation: CALL,
        ..Api::blank()
    }
}

use bytemuck::bytes_of;

/// Begins of calls, with their times.
fn begins(trace: &TraceReader) -> Vec<(u64, TrackEvent)> {
    let mut begins = Vec::new();
    trace.walk(|packet, time, _| {
        if let Some(Data::TrackEvent(event)) = &packet.data
            && event.r#type == Some(1)
        {
            begins.push((time, event.clone()));
        }
    });
    begins
}

fn stage_name(event: &GpuRenderStageEvent, interned: &InternedData) -> String {
    let mut specifications = interned.gpu_specifications.iter();
    let stage = specifications.find(|specification| specification.iid == event.stage_iid);
    stage.unwrap().name().to_owned()
}

fn details(event: &GpuRenderStageEvent) -> Vec<(&str, &str)> {
    let details = event.extra_data.iter();
    details
        .map(|detail| (detail.name(), detail.value()))
        .collect()
}

#[test]
fn a_call_its_kernel_and_their_tie_are_in_the_trace() {
    let making = Making::new(1);
    making.run(
        MAIN,
        &[
            bytes_of(&making.dispatch(5, 1, 1000)),
            bytes_of(&call(1, 0, 1000, 1200)),
        ],
    );
    making.run(HELPER, &[bytes_of(&making.completion(5, 1300, 1400))]);
    let (report, trace) = making.convert();
    assert_eq!((report.calls, report.kernels, report.work()), (1, 1, 1));
    assert_eq!((report.clamped, report.unfinished, report.lost), (0, 0, 0));

    let begins = begins(&trace);
    let correlation = begins[0].1.gpu_correlation.as_ref().unwrap();
    let [(time, stage, interned)] = &trace.stages()[..] else {
        panic!("one kernel");
    };
    assert_eq!(
        correlation.render_stage_submission_event_ids,
        [stage.event_id()]
    );
    assert_eq!((begins[0].0, *time, stage.duration()), (1000, 1300, 100));
    assert_eq!(stage_name(stage, interned), "saxpy");
    assert_eq!(details(stage), [("queued", "-20"), ("submit", "-10")]);
    let queue = &interned.gpu_specifications[0];
    assert_eq!(queue.name(), "GPU 0 · 1 · queue 00");
}

#[test]
fn a_completion_may_come_before_its_enqueue() {
    let making = Making::new(1);
    making.run(HELPER, &[bytes_of(&making.completion(5, 1300, 1400))]);
    making.run(MAIN, &[bytes_of(&making.dispatch(5, 1, 1000))]);
    let (report, trace) = making.convert();
    assert_eq!((report.kernels, report.unfinished), (1, 0));
    assert_eq!(trace.stages()[0].0, 1300);
}

#[test]
fn nested_calls_are_written_outer_first() {
    let making = Making::new(1);
    let records = [
        call(2, 1, 1000, 1100),
        call(3, 1, 1100, 1200),
        call(1, 0, 1000, 1200),
    ];
    making.run(MAIN, &records.each_ref().map(bytes_of));
    let (_, trace) = making.convert();
    let told: Vec<(u64, i32)> = trace
        .events()
        .into_iter()
        .filter(|Seen { kind, .. }| *kind != 3)
        .map(|event| (event.time, event.kind))
        .collect();
    assert_eq!(
        told,
        [
            (1000, 1),
            (1000, 1),
            (1100, 2),
            (1100, 1),
            (1200, 2),
            (1200, 2)
        ]
    );
}

#[test]
fn a_start_before_its_enqueue_is_moved_only_within_the_clocks_error() {
    let making = Making::new(1);
    making.run(
        MAIN,
        &[
            bytes_of(&making.dispatch(1, 1, 5000)),
            bytes_of(&making.completion(1, 2000, 2500)),
        ],
    );
    let (report, trace) = making.convert();
    assert_eq!((report.clamped, report.before_enqueue), (0, 1));
    assert_eq!(trace.stages()[0].0, 2000);
}

#[test]
fn work_on_which_a_queue_hung_lasts_until_the_process_died() {
    let making = Making::new(1);
    making.run(
        MAIN,
        &[
            bytes_of(&making.dispatch(1, 1, 1000)),
            bytes_of(&making.dispatch(2, 2, 2000)),
            bytes_of(&making.dispatch(3, 3, 2100)),
            bytes_of(&making.completion(1, 1500, 2500)),
        ],
    );
    let died = Note {
        time: Ticks(9000),
        what: NoteKind::DIED,
        ..Note::blank()
    };
    making.writer.metadata_record(&died).unwrap();
    let (report, trace) = making.convert();
    assert_eq!((report.kernels, report.unfinished), (3, 2));
    let stages = trace.stages();
    let shown: Vec<_> = stages
        .iter()
        .map(|(time, stage, _)| (*time, stage.duration))
        .collect();
    // The second waited for the first; the third comes after it.
    assert_eq!(
        shown,
        [(1500, Some(1000)), (2500, Some(6500)), (2100, None)]
    );
}

#[test]
fn work_that_could_not_be_tracked_is_counted_apart() {
    let making = Making::new(1);
    let mut untracked = making.dispatch(1, 1, 2000);
    untracked.header = untracked.header.with(flags::UNTRACKED);
    making.run(
        MAIN,
        &[bytes_of(&untracked), bytes_of(&making.dispatch(2, 2, 2500))],
    );
    let (report, trace) = making.convert();
    let counted = (report.kernels, report.untracked, report.unfinished);
    assert_eq!(counted, (2, 1, 1));
    let stages = trace.stages();
    let reason = ("unfinished", "its completion could not be tracked");
    assert!(
        stages
            .iter()
            .any(|(_, stage, _)| details(stage).contains(&reason))
    );
}

#[test]
fn work_that_did_not_complete_is_shown_as_such() {
    let making = Making::new(1);
    let at_end = Completion {
        end: DeviceTime(0),
        unfinished: Unfinished::AT_END,
        ..making.completion(2, 3000, 3100)
    };
    making.run(
        MAIN,
        &[
            bytes_of(&making.dispatch(1, 1, 2000)),
            bytes_of(&making.dispatch(2, 2, 2500)),
            bytes_of(&at_end),
        ],
    );
    let (report, trace) = making.convert();
    assert_eq!((report.kernels, report.unfinished), (2, 2));
    let stages = trace.stages();
    let (time, running, _) = &stages[0];
    assert_eq!((*time, running.duration), (3000, Some(105)));
    assert!(details(running).contains(&("unfinished", "not complete when the recording ended")));
    let (time, silent, _) = &stages[1];
    // Until the end of the recording.
    assert_eq!((*time, silent.duration), (2000, Some(999_998_000)));
    assert!(details(silent).contains(&("unfinished", "no completion was recorded")));
}

#[test]
fn a_completion_without_its_enqueue_is_still_shown() {
    let making = Making::new(1);
    making.run(HELPER, &[bytes_of(&making.completion(7, 3000, 3100))]);
    let (report, trace) = making.convert();
    assert_eq!(report.unknown_work, 1);
    let (time, stage, interned) = &trace.stages()[0];
    assert_eq!((*time, stage.duration()), (3000, 100));
    assert_eq!(stage_name(stage, interned), "work without its enqueue");
}

#[test]
fn losses_reach_the_thread_the_statistics_and_the_report() {
    let making = Making::new(1);
    let loss = Loss {
        count: 12,
        first: Ticks(100),
        last: Ticks(200),
        thread: MAIN,
        lost: Kind::API,
        ..Loss::blank()
    };
    making.run(ThreadId(0), &[bytes_of(&loss)]);
    let (report, trace) = making.convert();
    assert_eq!(report.lost, 12);
    let lost = trace
        .events()
        .into_iter()
        .find(|event| event.name == "records lost");
    assert_eq!(lost.unwrap().time, 100);
    let Some(Data::TraceStats(stats)) = &trace.packets.last().unwrap().data else {
        panic!("statistics at the end");
    };
    assert_eq!(stats.buffer_stats[0].trace_writer_packet_loss, Some(12));
}

#[test]
fn arguments_of_calls_that_enqueue_are_shown_on_request_only() {
    let making = Making::new(1);
    let create = Operation { number: 2, ..CALL };
    making
        .names
        .operation(create, "clCreate", "size:uint", OperationGroup::CREATE);
    let text = making.names.string("hello");
    let arguments = Arguments::new(CorrelationId(1), CALL, &[42, text.0.into()]);
    let bytes = &bytes_of(&arguments)[..Arguments::bytes_for(2)];
    let other = Arguments::new(CorrelationId(2), create, &[7]);
    let created = Api {
        operation: create,
        ..call(2, 0, 30, 40)
    };
    making.run(
        MAIN,
        &[
            bytes,
            bytes_of(&call(1, 0, 10, 20)),
            &bytes_of(&other)[..Arguments::bytes_for(1)],
            bytes_of(&created),
        ],
    );
    let shown = |arguments| {
        let options = Options {
            arguments,
            ..Options::default()
        };
        let (_, trace) = converted(&[making.capture()], &options);
        let begins = begins(&trace);
        let annotations = |begin: usize| begins[begin].1.debug_annotations.iter();
        assert_eq!(annotations(1).len(), 2);
        let values = annotations(0).map(|annotation| annotation.value.clone().unwrap());
        values.collect::<Vec<_>>()
    };
    use crate::trace::perfetto::schema::debug_annotation::Value;
    let [one, size] = [1, 42].map(Value::UintValue);
    assert_eq!(shown(false), std::slice::from_ref(&one));
    let hello = Value::StringValue("hello".into());
    assert_eq!(shown(true), [one, size, hello]);
}

#[test]
fn a_failed_call_carries_its_code() {
    let making = Making::new(1);
    let mut failed = call(1, 0, 10, 20);
    failed.header = failed.header.with(flags::FAILED);
    failed.return_code = -54;
    making.run(MAIN, &[bytes_of(&failed)]);
    let (report, trace) = making.convert();
    assert_eq!(report.failed_calls, 1);
    let annotation = &begins(&trace)[0].1.debug_annotations[1];
    use crate::trace::perfetto::schema::debug_annotation::Value;
    assert_eq!(annotation.value, Some(Value::IntValue(-54)));
}

#[test]
fn two_processes_keep_their_queues_and_event_ids_apart_and_share_the_device() {
    let captures = [Making::new(1), Making::new(2)];
    for making in &captures {
        making.run(
            MAIN,
            &[
                bytes_of(&making.dispatch(1, 1, 100)),
                bytes_of(&making.completion(1, 200, 300)),
            ],
        );
    }
    let (report, trace) = converted(
        &captures.each_ref().map(Making::capture),
        &Options::default(),
    );
    assert_eq!((report.processes, report.kernels), (2, 2));
    let stages = trace.stages();
    assert_ne!(stages[0].1.event_id(), stages[1].1.event_id());
    assert_ne!(stages[0].1.hw_queue_iid(), stages[1].1.hw_queue_iid());
    assert_eq!((stages[0].1.gpu_id(), stages[1].1.gpu_id()), (0, 0));
    let gpus = trace.packets.iter().find_map(|packet| match &packet.data {
        Some(Data::GpuInfo(info)) => Some(info.gpus.len()),
        _ => None,
    });
    assert_eq!(gpus, Some(1));
}

#[test]
fn all_kernels_of_a_command_buffer_are_shown_each_with_its_own_id() {
    let making = Making::new(1);
    let kernel = KernelDispatch {
        header: Header::of::<KernelDispatch>().with(flags::SHARED),
        launch: LaunchType::COMMAND_BUFFER,
        ..making.dispatch(1, 1, 100)
    };
    making.run(
        MAIN,
        &[
            bytes_of(&kernel),
            bytes_of(&kernel),
            bytes_of(&call(1, 0, 100, 150)),
            bytes_of(&making.completion(1, 200, 300)),
        ],
    );
    let (report, trace) = making.convert();
    assert_eq!((report.kernels, report.unfinished), (2, 0));
    let ids: Vec<u64> = trace
        .stages()
        .iter()
        .map(|(_, stage, _)| stage.event_id())
        .collect();
    assert_ne!(ids[0], ids[1]);
    let correlation = begins(&trace)[0].1.gpu_correlation.clone().unwrap();
    assert_eq!(correlation.render_stage_submission_event_ids, ids);
}

#[test]
fn a_wait_of_the_host_is_tied_to_what_it_waited_for() {
    let making = Making::new(1);
    let wait = Synchronization {
        work: WorkHeader {
            correlation: CorrelationId(2),
            enqueued: Ticks(200),
            thread: MAIN,
            ..WorkHeader::default()
        },
        waited_for: WorkId(1),
        what: SynchronizationType::STREAM_SYNCHRONIZE,
        end: Ticks(400),
        ..Synchronization::blank()
    };
    making.run(
        MAIN,
        &[
            bytes_of(&making.dispatch(1, 1, 100)),
            bytes_of(&call(1, 0, 100, 150)),
            bytes_of(&wait),
            bytes_of(&call(2, 0, 200, 400)),
            bytes_of(&making.completion(1, 200, 300)),
        ],
    );
    let (_, trace) = making.convert();
    let waited = begins(&trace)[1].1.gpu_correlation.clone().unwrap();
    let event = trace.stages()[0].1.event_id();
    assert_eq!(waited.render_stage_wait_event_ids, [event]);
}

#[test]
fn work_is_tied_to_the_work_it_waited_for() {
    let making = Making::new(1);
    let depends = |work, waited_for| Dependency {
        correlation: CorrelationId(work),
        work: WorkId(work),
        waited_for: WorkId(waited_for),
        ..Dependency::blank()
    };
    making.run(
        MAIN,
        &[
            bytes_of(&making.dispatch(1, 1, 100)),
            bytes_of(&making.dispatch(2, 2, 110)),
            bytes_of(&depends(3, 1)),
            bytes_of(&depends(3, 2)),
            bytes_of(&making.dispatch(3, 3, 120)),
            bytes_of(&making.completion(1, 200, 300)),
            bytes_of(&making.completion(2, 300, 400)),
            bytes_of(&making.completion(3, 400, 500)),
        ],
    );
    let (_, trace) = making.convert();
    let stages: Vec<_> = trace
        .stages()
        .into_iter()
        .map(|(_, stage, _)| stage)
        .collect();
    let ids: Vec<u64> = stages.iter().map(GpuRenderStageEvent::event_id).collect();
    assert_eq!(stages[2].event_wait_ids, ids[..2]);
    let shown = format!("{}, {}", ids[0], ids[1]);
    assert!(details(&stages[2]).contains(&("waits_for", shown.as_str())));
    assert!(
        stages[..2]
            .iter()
            .all(|stage| stage.event_wait_ids.is_empty())
    );
}

#[test]
fn a_call_is_tied_to_the_last_work_of_every_queue_it_waited_for() {
    let making = Making::new(1);
    let also = Dependency {
        correlation: CorrelationId(3),
        waited_for: WorkId(2),
        ..Dependency::blank()
    };
    let wait = Synchronization {
        work: WorkHeader {
            correlation: CorrelationId(3),
            enqueued: Ticks(200),
            thread: MAIN,
            ..WorkHeader::default()
        },
        waited_for: WorkId(1),
        what: SynchronizationType::EVENT_SYNCHRONIZE,
        end: Ticks(400),
        ..Synchronization::blank()
    };
    making.run(
        MAIN,
        &[
            bytes_of(&also),
            bytes_of(&wait),
            bytes_of(&call(3, 0, 200, 400)),
        ],
    );
    let (_, trace) = making.convert();
    let waited = begins(&trace)[0].1.gpu_correlation.clone().unwrap();
    let own = waited
        .render_stage_wait_event_ids
        .iter()
        .map(|id| id & 0xff);
    assert_eq!(own.collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn concurrent_work_is_counted() {
    let making = Making::new(1);
    let mut records = Vec::new();
    // Two that overlap, then so many in one window that only their mean is shown.
    let mut spans = vec![(1_000_000, 3_000_000), (2_000_000, 4_000_000)];
    spans.extend((0..10).map(|n| (5_000_000 + n * 10_000, 5_005_000 + n * 10_000)));
    for (work, (start, end)) in (1..).zip(spans) {
        records.push(bytes_of(&making.dispatch(work, work, 100)).to_vec());
        records.push(bytes_of(&making.completion(work, start, end)).to_vec());
    }
    let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
    making.run(MAIN, &records);
    let (_, trace) = making.convert();
    let mut told = Vec::new();
    let mut described = 0;
    trace.walk(|packet, time, _| {
        let Some(Data::GpuCounterEvent(event)) = &packet.data else {
            return;
        };
        described += usize::from(event.counter_descriptor.is_some());
        use crate::trace::perfetto::schema::gpu_counter_event::gpu_counter::Value;
        told.extend(event.counters.iter().map(|counter| match counter.value {
            Some(Value::IntValue(value)) => (time, value as f64),
            Some(Value::DoubleValue(value)) => (time, value),
            None => panic!("a counter without a value"),
        }));
    });
    // Each value covers the time before it.
    let expected = [
        (1_000_000, 0.0),
        (2_000_000, 1.0),
        (3_000_000, 2.0),
        (4_000_000, 1.0),
        (5_000_000, 0.0),
        (5_100_000, 0.5),
    ];
    assert_eq!((described, &told[..]), (1, &expected[..]));
}

#[test]
fn a_damaged_run_costs_itself_alone_and_is_reported() {
    let making = Making::new(1);
    making.run(MAIN, &[bytes_of(&call(1, 0, 100, 150))]);
    let damaged_at = making.writer.bytes();
    making.run(MAIN, &[bytes_of(&call(2, 0, 200, 250))]);
    making.run(MAIN, &[bytes_of(&call(3, 0, 300, 350))]);
    let mut bytes = std::fs::read(&making.path).unwrap();
    bytes[damaged_at as usize + 60] ^= 1;
    std::fs::write(&making.path, bytes).unwrap();
    let (report, trace) = making.convert();
    assert_eq!(report.calls, 2);
    assert!(
        trace
            .events()
            .iter()
            .any(|event| event.name == "not readable")
    );
    let [(path, finding)] = &report.findings[..] else {
        panic!("{:?}", report.findings);
    };
    assert_eq!(path, &making.path);
    assert!(finding.offset >= damaged_at);
}

#[test]
fn a_capture_without_clocks_is_reported_and_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.gputrail");
    let header = FileHeader::new(
        TickSource::Virtual.code(),
        ProcessId(1),
        1_000_000_000,
        0,
        [0; 16],
    );
    drop(Writer::create(&path, &header).unwrap());
    let (report, _) = converted(&[Reader::open(&path).unwrap()], &Options::default());
    assert!(
        report.findings[0]
            .1
            .what
            .contains("no usable clock snapshot")
    );
}

#[test]
fn a_full_disk_is_reported_with_what_had_been_written() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let making = Making::new(1);
    let error = convert(
        &[making.capture()],
        Exporter::new(Full),
        &Options::default(),
        &mut (),
    )
    .unwrap_err();
    assert_eq!(
        (error.written, error.source.kind()),
        (0, std::io::ErrorKind::StorageFull)
    );
    assert!(making.directory.path().exists());
}

#[test]
fn a_summary_has_what_the_trace_shows() {
    let making = Making::new(1);
    making.run(
        MAIN,
        &[
            bytes_of(&making.dispatch(5, 1, 1000)),
            bytes_of(&call(1, 0, 1000, 1200)),
            bytes_of(&making.completion(5, 1300, 1400)),
        ],
    );
    let mut summary = crate::analysis::summary::Summary::default();
    convert(
        &[making.capture()],
        Exporter::new(std::io::sink()),
        &Options::default(),
        &mut summary,
    )
    .unwrap();
    assert_eq!(summary.functions()[0].name, "clCall");
    assert_eq!(summary.kernels()[0].name, "saxpy");
    assert_eq!(summary.gpus()[0].busy.as_ref().unwrap().busy, Nanos(100));
    assert_eq!(summary.span(), Some((Nanos(1000), Nanos(1400))));
}

#[test]
fn a_call_takes_at_most_40_bytes_and_a_kernel_100() {
    use prost::Message;
    let making = Making::new(4_000_000);
    let (mut id, mut time) = (1 << 20, 50_000_000);
    let mut records = Vec::new();
    let mut completions = Vec::new();
    const KERNELS: u64 = 20_000;
    for work in 0..KERNELS {
        let work = work + (1 << 20);
        for set in 0..5 {
            id += 1;
            time += 700;
            if set == 4 {
                let dispatch = KernelDispatch {
                    grid: [1 << 22, 1, 1],
                    workgroup: [256, 1, 1],
                    ..making.dispatch(work, id, time)
                };
                records.extend_from_slice(bytes_of(&dispatch));
                let completion = Completion {
                    queued: DeviceTime(time + 500),
                    submitted: DeviceTime(time + 45_000),
                    ..making.completion(work, time + 60_000, time + 140_000)
                };
                completions.extend_from_slice(bytes_of(&completion));
            }
            let record = Api {
                operation: Operation {
                    number: set,
                    ..CALL
                },
                ..call(id, 0, time, time + 400)
            };
            records.extend_from_slice(bytes_of(&record));
        }
        time += 25_000;
    }
    making.run(MAIN, &[&records]);
    making.run(HELPER, &[&completions]);
    let (report, trace) = making.convert();
    assert_eq!((report.calls, report.kernels), (5 * KERNELS, KERNELS));
    let bytes_where = |wanted: fn(&Data) -> bool| {
        let packets = trace.packets.iter();
        let packets = packets.filter(|packet| packet.data.as_ref().is_some_and(wanted));
        packets
            .map(|packet| {
                prost::length_delimiter_len(packet.encoded_len()) + packet.encoded_len() + 1
            })
            .sum::<usize>() as f64
    };
    let calls = bytes_where(|data| matches!(data, Data::TrackEvent(_))) / report.calls as f64;
    let kernels =
        bytes_where(|data| matches!(data, Data::GpuRenderStageEvent(_))) / report.kernels as f64;
    println!("{calls:.1} bytes a call, {kernels:.1} bytes a kernel");
    assert!(calls <= 40.0, "{calls} bytes a call");
    assert!(kernels <= 100.0, "{kernels} bytes a kernel");
}

/// A record of any kind, its body anything.
fn any_record() -> impl Strategy<Value = Vec<u8>> {
    let kinds = prop::sample::select(vec![
        Kind::API,
        Kind::KERNEL_DISPATCH,
        Kind::MEMORY_COPY,
        Kind::MEMORY_SET,
        Kind::SYNCHRONIZATION,
        Kind::COMPLETION,
        Kind::ARGUMENTS,
        Kind::OVERHEAD,
        Kind::LOSS,
        Kind::NOTE,
        Kind::MEMORY_ALLOCATION,
        Kind(0xee),
    ]);
    // Words that collide, absurd words, and meaningful words.
    let word = prop_oneof![4 => 0u64..4, 1 => any::<u64>(), 3 => 1_000u64..2_000, 1 => Just(u64::MAX), 1 => Just(1 << 32 | 1)];
    (kinds, any::<u8>(), prop::collection::vec(word, 0..24)).prop_map(|(kind, flags, body)| {
        let header = Header {
            kind,
            flags,
            words: body.len() as u16 + 1,
            sequence: 0,
        };
        let mut bytes = bytes_of(&header).to_vec();
        body.iter()
            .for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_records_give_a_trace(records in prop::collection::vec(any_record(), 1..60)) {
        let making = Making::new(1);
        let records: Vec<&[u8]> = records.iter().map(|record| &record[..]).collect();
        making.run(MAIN, &records);
        let options = Options { arguments: true, ..Options::default() };
        let (report, trace) = converted(&[making.capture()], &options);
        let begins = trace.events().iter().filter(|event| event.kind == 1).count() as u64;
        prop_assert!(begins >= report.calls);
        prop_assert!(trace.stages().len() as u64 <= report.work());
    }
}

/// The findings of `check`, and the result of `info`, for the trace of a capture.
fn examined(making: &Making) -> (Vec<String>, reader::Info) {
    let mut out = Vec::new();
    let captures = [making.capture()];
    convert(
        &captures,
        Exporter::new(&mut out),
        &Options::default(),
        &mut (),
    )
    .unwrap();
    let checked = reader::check(&out[..]);
    let findings = checked.findings.list().iter().map(ToString::to_string);
    (findings.collect(), reader::info(&out[..]))
}

#[test]
fn a_recording_that_ended_early_is_incomplete_and_why_and_since_when_is_found() {
    let making = Making::new(1);
    making.run(MAIN, &[bytes_of(&call(1, 0, 1000, 2000))]);
    let note = Note {
        time: Ticks(9000),
        what: NoteKind::ENDED_EARLY,
        text: making.names.string("no space left on the device"),
        ..Note::blank()
    };
    making.writer.metadata_record(&note).unwrap();
    let (findings, info) = examined(&making);
    let expected = "the recording is incomplete from 9000 ns on: no space left on the device";
    assert!(
        findings.len() == 1 && findings[0].contains(expected),
        "{findings:?}"
    );
    let early = (Nanos(9000), "no space left on the device".to_owned());
    assert_eq!(info.ended_early, [early]);
    let (_, trace) = making.convert();
    let failed = trace_stats::FinalFlushOutcome::FinalFlushFailed;
    let stats = trace.packets.iter().find_map(|packet| match &packet.data {
        Some(Data::TraceStats(stats)) => Some(stats),
        _ => None,
    });
    assert_eq!(stats.unwrap().final_flush_outcome(), failed);
}

#[test]
fn check_does_not_expect_records_that_were_not_selected() {
    for (configuration, complaints) in [
        ("session, discard policy", 1),
        ("session, discard policy; selected: kernel=gemm", 0),
        ("session, overwrite policy", 0),
    ] {
        let making = Making::new(1);
        let mut process = Process::blank();
        process.id = ProcessId(1);
        process.configuration = making.names.string(configuration);
        making.names.process(process);
        // Work whose call was not recorded.
        making.run(
            MAIN,
            &[
                bytes_of(&making.dispatch(1, 1, 1000)),
                bytes_of(&making.completion(1, 1500, 2500)),
            ],
        );
        let (findings, _) = examined(&making);
        assert_eq!(findings.len(), complaints, "{configuration}: {findings:?}");
    }
}
