//! Tests of Chrome trace events.

use super::*;
use gputrail_record::{OperationGroup, ProcessId, ThreadId};
use gputrail_trace::model::{Function, FunctionIndex, Launch};

const PROCESS: ProcessIndex = ProcessIndex(0);
const MAIN: TrackIndex = TrackIndex(0);
const MAIN_THREAD: ThreadId = ThreadId(8);

fn slice(name: &str, start: u64, end: Option<u64>, open: bool) -> Slice<'_> {
    Slice {
        track: MAIN,
        name,
        category: "",
        start: Nanos(start),
        end: end.map(Nanos),
        open,
        correlation: CorrelationId::NONE,
        arguments: &[],
        flows: &[],
    }
}

/// The events that become of a stream about one thread: phase, name and times.
fn events(
    most_held: usize,
    stream: impl FnOnce(&mut dyn Consumer) -> io::Result<()>,
) -> (String, Vec<String>) {
    let mut writer = ChromeWriter::new(Vec::new());
    writer.most_held = most_held;
    writer.begin(&TraceHeader::default()).unwrap();
    let process = Process {
        pid: ProcessId(7),
        name: "program",
        rank: "",
        command: &[],
        order: None,
    };
    writer.process(PROCESS, &process).unwrap();
    let track = Track {
        parent: Parent::Process(PROCESS),
        name: "main",
        kind: TrackKind::Thread(PROCESS, MAIN_THREAD),
        order: None,
    };
    writer.track(MAIN, &track).unwrap();
    stream(&mut writer).unwrap();
    writer.finish().unwrap();
    assert_eq!(writer.held, 0);
    let text = String::from_utf8(writer.into_inner()).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let events = json["traceEvents"].as_array().unwrap().iter();
    let events = events.filter(|event| event["ph"] != "M").map(|event| {
        let field = |name: &str| match &event[name] {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Null => "-".to_owned(),
            value => value.to_string(),
        };
        let args = match event.get("args") {
            Some(args) => format!(" {args}"),
            None => String::new(),
        };
        let fields = ["ph", "name", "ts", "dur"].map(field);
        format!("{}{args}", fields.join(" "))
    });
    let base = json["baseTimeNanoseconds"].to_string();
    (base, events.collect())
}

#[test]
fn times_count_from_a_round_number_that_stands_ahead() {
    let start = 1_760_010_000_000_000_001;
    let (base, found) = events(MAX_HELD, |to| {
        to.slice(&slice("a", start, Some(start + 1500), false))
    });
    assert_eq!(base, "1760000000000000000");
    assert_eq!(found, ["X a 10000000000.001 1.5"]);
    // What comes later in the stream may have happened before.
    let (base, found) = events(MAX_HELD, |to| {
        to.slice(&slice("late", BASE + 1, Some(BASE + 2), false))?;
        to.slice(&slice("early", BASE - 1, Some(BASE + 2), false))
    });
    assert_eq!(base, "0");
    assert_eq!(found.len(), 2);
    assert_eq!(events(MAX_HELD, |_| Ok(())), ("0".to_owned(), vec![]));
}

#[test]
fn an_arrow_to_the_end_of_a_slice_is_inside_of_it_and_may_come_first() {
    let point = |last| {
        [FlowPoint {
            flow: FlowId(5),
            last,
        }]
    };
    let (_, found) = events(MAX_HELD, |to| {
        to.slice(&slice("waits", 1000, Some(9000), true))?;
        to.slice(&Slice {
            flows: &point(false),
            ..slice("from", 2000, Some(3000), false)
        })?;
        to.end_slice(&SliceEnd {
            track: MAIN,
            time: Nanos(9000),
            arguments: &[],
            flows: &point(true),
        })
    });
    let expected = [
        "X from 2.0 1.0",
        "s flow 2.0 -",
        "X waits 1.0 8.0",
        "f flow 8.999 -",
    ];
    assert_eq!(found, expected);
    let mut writer = ChromeWriter::new(Vec::new());
    for last in [true, false] {
        writer.make_flows((1, 1), (7, 7), &point(last));
    }
    let ids: Vec<_> = writer.event.match_indices("\"id\":1").collect();
    assert_eq!(ids.len(), 2, "{}", writer.event);
}

#[test]
fn slices_and_what_begins_with_them_come_behind_the_outer_one() {
    let (_, found) = events(MAX_HELD, |to| {
        to.slice(&slice("outer", 1000, None, true))?;
        to.slice(&slice("inner", 1000, None, true))?;
        to.slice(&slice("first", 1000, Some(1000), false))?;
        to.end(MAIN, Nanos(2000))?;
        to.slice(&slice("later", 3000, Some(4000), false))?;
        to.end(MAIN, Nanos(5000))
    });
    // The later one begins by itself: its place in the file is of no interest.
    assert_eq!(
        found,
        [
            "X later 3.0 1.0",
            "X outer 1.0 4.0",
            "X inner 1.0 1.0",
            "X first 1.0 0.0"
        ]
    );
}

#[test]
fn arguments_that_become_known_at_the_end_are_those_of_the_slice() {
    let argument = |name, value| EventArgument {
        name,
        value: Value::Uint(value),
    };
    for (first, expected) in [
        (&[argument("a", 1)][..], r#"X s 0.001 0.002 {"a":1,"b":2}"#),
        (&[], r#"X s 0.001 0.002 {"b":2}"#),
    ] {
        let (_, found) = events(MAX_HELD, |to| {
            to.slice(&Slice {
                arguments: first,
                ..slice("s", 1, None, true)
            })?;
            to.end_slice(&SliceEnd {
                track: MAIN,
                time: Nanos(3),
                arguments: &[argument("b", 2)],
                flows: &[FlowPoint {
                    flow: FlowId(5),
                    last: false,
                }],
            })
        });
        assert_eq!(found, [expected, "s flow 0.001 -"]);
    }
}

#[test]
fn slices_that_do_not_end_are_begins_and_ends_without_a_begin_are_nothing() {
    let (_, found) = events(MAX_HELD, |to| {
        to.end(MAIN, Nanos(500))?;
        to.slice(&slice("a", 1000, None, false))?;
        to.slice(&slice("b", 2000, None, true))
    });
    assert_eq!(found, ["B a 1.0 -", "B b 2.0 -"]);
}

#[test]
fn open_slices_beyond_the_memory_for_them_are_begins_and_ends() {
    let (_, found) = events(150, |to| {
        to.slice(&slice("outer", 1000, None, true))?;
        to.slice(&slice("inner", 1000, None, true))?;
        to.slice(&slice("first", 1000, Some(1500), false))?;
        to.slice(&slice("second", 1600, None, true))?;
        to.end(MAIN, Nanos(1700))?;
        to.end(MAIN, Nanos(2000))?;
        to.end(MAIN, Nanos(5000))
    });
    assert_eq!(
        found,
        [
            "B outer 1.0 -",
            "B inner 1.0 -",
            "X first 1.0 0.5",
            "X second 1.6 0.1",
            "E - 2.0 -",
            "E - 5.0 -"
        ]
    );
}

#[test]
fn calls_without_correlation_ids_and_calls_of_several_processes_are_told_apart() {
    let function = Function {
        index: FunctionIndex(0),
        name: "launch".into(),
        domain: Domain::CUDA_RUNTIME,
        category: None,
        group: OperationGroup::ENQUEUE,
        parameters: Vec::new(),
    };
    let call = |process, correlation, submitted: &[EventId], to: &mut dyn Consumer| {
        to.call(&Call {
            process: ProcessIndex(process),
            thread: MAIN_THREAD,
            track: MAIN,
            function: &function,
            start: Nanos(1000),
            end: Some(Nanos(2000)),
            open: false,
            nested: false,
            correlation: CorrelationId(correlation),
            external: gputrail_record::ExternalId::NONE,
            error: None,
            submitted,
            waited: &[],
            arguments: &[],
            flows: &[],
        })
    };
    let (_, found) = events(MAX_HELD, |to| {
        call(0, 5, &[EventId(1)], to)?;
        call(1, 5, &[EventId(2)], to)?;
        call(0, 0, &[EventId(3), EventId(4)], to)?;
        call(0, 0, &[], to)
    });
    let others = 5_u64 | 1 << CORRELATION_BITS;
    let own = OWN_CORRELATION | 3;
    assert_eq!(
        found,
        [
            r#"X launch 1.0 1.0 {"correlation":5}"#.to_owned(),
            "s ac2g 1.0 -".to_owned(),
            format!(r#"X launch 1.0 1.0 {{"correlation":{others}}}"#),
            "s ac2g 1.0 -".to_owned(),
            format!(r#"X launch 1.0 1.0 {{"correlation":{own}}}"#),
            "s ac2g 1.0 -".to_owned(),
            "X launch 1.0 1.0".to_owned(),
        ]
    );
}

#[test]
fn a_launch_whose_workgroups_are_unknown_has_its_work_items() {
    let work = |workgroup| Work {
        launch: Some(Launch {
            grid: [1024, 2, 1],
            workgroup,
        }),
        start: Some(Nanos(1000)),
        duration: Some(500),
        interval: Some((Nanos(1000), Nanos(1500))),
        ..Work::default()
    };
    let (_, found) = events(MAX_HELD, |to| {
        to.work(&work([0; 3]))?;
        to.work(&work([64, 1, 1]))
    });
    let [chosen, told] = &found[..] else {
        panic!("{found:?}");
    };
    assert!(chosen.contains(r#""work-items":[1024,2,1]"#), "{chosen}");
    assert!(
        !chosen.contains("grid") && !chosen.contains("block"),
        "{chosen}"
    );
    assert!(told.contains(r#""block":[64,1,1]"#), "{told}");
    assert!(told.contains(r#""grid":[16,2,1]"#), "{told}");
}
