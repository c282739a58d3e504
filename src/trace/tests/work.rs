//! Work of devices in the traces of captures.

use bytemuck::bytes_of;

use super::making::*;
use gputrail_record::*;
use gputrail_trace::capture::Options;
use gputrail_trace::perfetto::Exporter;
use gputrail_trace::perfetto::schema::GpuRenderStageEvent;
use gputrail_trace::perfetto::schema::trace_packet::Data;
use gputrail_trace::{make_trace, model};

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
    assert_eq!(details(stage), [("queued", "-20ns"), ("submit", "-10ns")]);
    let queue = &interned.gpu_specifications[0];
    assert_eq!(queue.name(), "GPU 0 ·  queue    0");
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
fn work_whose_completion_may_be_overwritten_is_not_said_to_run_until_the_end() {
    let making = Making::new(1);
    making.run(MAIN, &[bytes_of(&making.dispatch(1, 1, 2000))]);
    making.overwrite(HELPER);
    making.run(HELPER, &[bytes_of(&making.completion(2, 3000, 3100))]);
    let (report, trace) = making.convert();
    assert_eq!((report.unfinished, report.unrecorded), (0, 1));
    let stages = trace.stages();
    let (time, stage, _) = &stages[0];
    assert_eq!((*time, stage.duration()), (2000, 0));
    let why =
        "no completion was recorded: it was overwritten or lost, or the work had not completed";
    assert!(details(stage).contains(&("unfinished", why)));
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
    let kernel = |command| {
        let mut kernel = making.dispatch(1, 1, 100);
        kernel.header = Header::of::<KernelDispatch>().with(flags::SHARED);
        kernel.launch = LaunchType::COMMAND_BUFFER;
        (kernel.work.command, kernel.work.commands) = (command, 2);
        kernel
    };
    making.run(
        MAIN,
        &[
            bytes_of(&kernel(0)),
            bytes_of(&kernel(1)),
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
    let is_launch = |id: &u64| model::EventId(*id).is_without_call();
    let (launches, kernels): (Vec<u64>, Vec<u64>) = ids.into_iter().partition(is_launch);
    assert_eq!((launches.len(), kernels.len()), (1, 2));
    assert_ne!(kernels[0], kernels[1]);
    let correlation = begins(&trace)[0].1.gpu_correlation.clone().unwrap();
    let submitted = correlation.render_stage_submission_event_ids;
    assert!(submitted.len() == 2 && kernels.iter().all(|id| submitted.contains(id)));
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
        use gputrail_trace::perfetto::schema::gpu_counter_event::gpu_counter::Value;
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
    let mut summary = gputrail_analysis::summary::Summary::default();
    make_trace(
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
fn agents_that_are_declared_one_after_the_other_are_all_in_the_trace() {
    let agent = |number: u32| model::Agent {
        title: format!("GPU {number}"),
        name: format!("device {number}"),
        ..model::Agent::default()
    };
    let mut bytes = Vec::new();
    let mut exporter = Exporter::new(&mut bytes);
    model::Consumer::begin(&mut exporter, &model::TraceHeader::default()).unwrap();
    for first in [0, 1] {
        let index = model::AgentIndex(first);
        model::Consumer::agents(&mut exporter, index, &[agent(first)]).unwrap();
    }
    model::Consumer::finish(&mut exporter).unwrap();
    drop(exporter);
    let info = gputrail_trace::perfetto::reader::info(&bytes[..]);
    let devices = info.devices.iter();
    let devices: Vec<_> = devices
        .map(|device| (&device.title[..], &device.name[..]))
        .collect();
    assert_eq!(devices, [("GPU 0", "device 0"), ("GPU 1", "device 1")]);
}
