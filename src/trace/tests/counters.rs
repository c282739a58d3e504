//! Counters in traces.

use bytemuck::bytes_of;

use super::Reader as TraceReader;
use super::making::{HELPER, MAIN, Making, call, converted};
use gputrail_record::*;
use gputrail_trace::capture::{Options, Report};
use gputrail_trace::perfetto::schema::trace_packet::Data;

/// Values of two counters of one block, and of a metric.
fn values(making: &Making, about: CounterValue) -> [CounterValue; 3] {
    let value = |name: &str, block: &str, remaining| CounterValue {
        agent: making.agent,
        counter: making.names.string(name),
        block: match block {
            "" => StringId::NONE,
            block => making.names.string(block),
        },
        instance: ALL_INSTANCES,
        scheduled: ALWAYS_SCHEDULED,
        remaining,
        ..about
    };
    [
        value("SQ_WAVES", "SQ", 2).with_uint(64),
        value("SQ_INSTS", "SQ", 1).with_uint(640),
        value("PerWave", "", 0).with_double(2.5),
    ]
}

fn of_work(work: u64) -> CounterValue {
    CounterValue {
        work: WorkId(work),
        correlation: CorrelationId(work),
        ..CounterValue::blank()
    }
}

/// A capture of dispatches 1 and 2, whose values are in another lane, and what has become of it.
fn dispatches(of: impl Fn(&Making, u64) -> Vec<CounterValue>) -> (Report, TraceReader) {
    let making = Making::new(7);
    making.names.note(NoteKind::COUNTERS, "SQ_WAVES");
    let (mut host, mut device) = (Vec::new(), Vec::new());
    for work in 1..=2 {
        let start = work * 1_000_000;
        host.extend_from_slice(bytes_of(&making.dispatch(work, work, start - 400)));
        host.extend_from_slice(bytes_of(&call(work, 0, start - 500, start - 100)));
        host.extend_from_slice(bytes_of(&making.completion(work, start, start + 100_000)));
        for value in of(&making, work) {
            device.extend_from_slice(bytes_of(&value));
        }
    }
    making.run(MAIN, &[&host]);
    making.run(HELPER, &[&device]);
    converted(&[making.capture()], &Options::default())
}

/// The names and values beside each kernel.
fn details(trace: &TraceReader) -> Vec<Vec<(String, String)>> {
    let works = trace
        .packets
        .iter()
        .filter_map(|packet| match &packet.data {
            Some(Data::GpuRenderStageEvent(work)) => Some(work),
            _ => None,
        });
    let counted = |name: &str| name.contains("SQ_") || name.contains("PerWave");
    works
        .map(|work| {
            let details = work.extra_data.iter();
            details
                .filter(|detail| counted(detail.name()))
                .map(|detail| (detail.name().to_owned(), detail.value().to_owned()))
                .collect()
        })
        .collect()
}

/// The descriptions of counters, and the number of packets with values.
fn tracks(trace: &TraceReader) -> (Vec<String>, usize) {
    let events = trace
        .packets
        .iter()
        .filter_map(|packet| match &packet.data {
            Some(Data::GpuCounterEvent(event)) => Some(event),
            _ => None,
        });
    let mut names = Vec::new();
    let mut values = 0;
    for event in events {
        if let Some(descriptor) = &event.counter_descriptor {
            names.extend(descriptor.specs.iter().map(|spec| spec.name().to_owned()));
        } else if event.counters.len() > 1 {
            values += 1;
        }
    }
    (names, values)
}

#[test]
fn values_stand_beside_their_kernel_and_on_tracks_of_their_block() {
    let (report, trace) = dispatches(|making, work| values(making, of_work(work)).into());
    assert_eq!(
        (report.counter_values, report.invalid_counter_values),
        (6, 0)
    );
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let expected = vec![
        pair("SQ_WAVES", "64"),
        pair("SQ_INSTS", "640"),
        pair("PerWave", "2.5"),
    ];
    assert_eq!(details(&trace), [expected.clone(), expected]);
    let (names, values) = tracks(&trace);
    assert!(
        names.iter().any(|name| name.contains("SQ_WAVES")),
        "{names:?}"
    );
    // For each kernel its value, and 0 before it.
    assert_eq!(values, 4);
}

#[test]
fn an_invalid_value_says_why_and_a_scaled_one_its_share_of_time() {
    let (report, trace) = dispatches(|making, work| {
        let [mut waves, mut instructions, _] = values(making, of_work(work));
        (waves.value, waves.invalid) = (0, CounterInvalid::NOT_SERIALIZED);
        (instructions.scheduled, instructions.remaining) = (250, 0);
        vec![waves, instructions]
    });
    assert_eq!(
        (report.counter_values, report.invalid_counter_values),
        (4, 2)
    );
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let expected = [
        pair("SQ_WAVES", "the dispatch was not alone on the agent"),
        pair("SQ_INSTS", "640"),
        pair("SQ_INSTS share of time counted", "0.25"),
    ];
    assert_eq!(details(&trace)[0], expected);
}

#[test]
fn kernels_whose_values_are_lost_are_there_all_the_same() {
    let (_, trace) = dispatches(|making, work| match work {
        1 => Vec::new(),
        _ => values(making, of_work(work))[..1].to_vec(),
    });
    let waves = ("SQ_WAVES".to_owned(), "64".to_owned());
    assert_eq!(details(&trace), [vec![], vec![waves]]);
}

#[test]
fn spans_of_time_are_tracks_without_kernels() {
    let making = Making::new(7);
    let mut device = Vec::new();
    for span in 0..3 {
        let about = CounterValue {
            start: DeviceTime(1_000_000 + span * 1000),
            end: DeviceTime(1_001_000 + span * 1000),
            ..CounterValue::blank()
        };
        for value in values(&making, about) {
            device.extend_from_slice(bytes_of(&value));
        }
    }
    making.run(HELPER, &[&device]);
    let (report, trace) = converted(&[making.capture()], &Options::default());
    assert_eq!(report.counter_values, 9);
    // The first span has a 0 before it.
    assert_eq!(tracks(&trace).1, 4);
    assert!(details(&trace).is_empty());
}

#[test]
fn values_that_are_not_shown_over_time_are_counted() {
    const MOST: u32 = 1 << 12;
    let (report, _) = dispatches(|making, work| {
        let [value, ..] = values(making, of_work(work));
        let unknown = CounterValue {
            work: WorkId(99),
            ..value
        };
        let many = (0..MOST + 3).rev();
        let many = many.map(|remaining| CounterValue {
            remaining: remaining as _,
            ..value
        });
        std::iter::once(unknown).chain(many).collect()
    });
    // Of each dispatch those beyond the limit, and those of the dispatch that was not recorded.
    assert_eq!(report.left_out_counter_values, 3 + 3 + 2);

    let making = Making::new(7);
    let span = |number: u64| {
        let about = CounterValue {
            start: DeviceTime(1_000_000 + number * 1000),
            end: DeviceTime(1_001_000 + number * 1000),
            ..CounterValue::blank()
        };
        values(&making, about)
    };
    // The first and the last one lack their last value.
    let parts = [&span(0)[..2], &span(1)[..], &span(2)[..1]];
    let device: Vec<u8> = parts
        .concat()
        .iter()
        .flat_map(|value| bytes_of(value).to_vec())
        .collect();
    making.run(HELPER, &[&device]);
    let (report, _) = converted(&[making.capture()], &Options::default());
    assert_eq!(report.counter_values, 3);
    assert_eq!(report.left_out_counter_values, 2 + 1);
}
