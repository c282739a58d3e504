//! API calls in the traces of captures.

use bytemuck::bytes_of;

use super::Seen;
use super::making::*;
use gputrail_record::*;
use gputrail_trace::capture::Options;
use gputrail_trace::perfetto::schema::trace_packet::Data;

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
    use gputrail_trace::perfetto::schema::debug_annotation::Value;
    let [one, size] = [1, 42].map(Value::UintValue);
    assert_eq!(shown(false), std::slice::from_ref(&one));
    let hello = Value::StringValue("hello".into());
    assert_eq!(shown(true), [one, size, hello]);
}

#[test]
fn calls_have_their_stacks_and_equal_ones_are_sent_once() {
    use gputrail_trace::perfetto::schema::debug_annotation::Value;
    let making = Making::new(1);
    let module = making.names.host_module("/nowhere/libapp.so", "");
    let frames = [
        FrameAddress::new(module, 0x10),
        FrameAddress::new(HostModuleId::NONE, 0x7000),
    ];
    let stack = making.names.call_stack(&frames, true);
    let calls = [1, 2].map(|id| Api {
        stack,
        ..call(id, 0, 10 * id, 10 * id + 5)
    });
    making.run(MAIN, &calls.each_ref().map(bytes_of));
    let (_, trace) = making.convert();
    let begins = begins(&trace);
    let values = begins
        .iter()
        .flat_map(|(_, event)| &event.debug_annotations);
    let values = values.filter_map(|annotation| match annotation.value {
        Some(Value::StringValueIid(number)) => Some(number),
        _ => None,
    });
    let values: Vec<u64> = values.collect();
    let mut texts = Vec::new();
    trace.walk(|packet, _, _| {
        let interned = packet.interned_data.iter();
        let of_packet = interned.flat_map(|interned| &interned.debug_annotation_string_values);
        texts.extend(of_packet.map(|text| {
            let bytes = text.str.clone().unwrap_or_default();
            (text.iid.unwrap_or(0), String::from_utf8(bytes).unwrap())
        }));
    });
    assert_eq!(texts, [(values[0], "libapp.so+0x10 < 0x7000".to_owned())]);
    assert_eq!(values, [values[0]; 2]);
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
    use gputrail_trace::perfetto::schema::debug_annotation::Value;
    assert_eq!(annotation.value, Some(Value::IntValue(-54)));
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
