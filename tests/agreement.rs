//! The encoder and an independent implementation of Perfetto's messages agree, field by field, on randomly generated
//! records.

use std::process::Command;

use gputrail_harness::machine::{Need, tools};
use gputrail_harness::program::run;
use gputrail_harness::{needs, repository};
use gputrail_record::{ArgumentType, CorrelationId, Domain, Nanos, ProcessId, ThreadId};
use gputrail_trace::model::{
    Agent, AgentIndex, Call, Consumer, CounterBlock, CounterDescription, CounterIndex, CounterUnit,
    CounterValue, EventArgument, EventId, Function, FunctionIndex, Instant, Launch, Parameter,
    Parent, Process, ProcessIndex, Queue, QueueIndex, Resources, Slice, Stage, StageId,
    SystemClocks, TraceHeader, Track, TrackIndex, TrackKind, Value, Work, WorkKind,
};
use gputrail_trace::perfetto::Exporter;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

const START: u64 = 1_000_000;
const PID: u32 = 42;
const PROCESS: ProcessIndex = ProcessIndex(0);
const QUEUES: usize = 3;
const NAMES: [&str; 4] = ["a", "clFinish", "", "ä · 名"];

/// The name under which work is shown.
fn shown(name: &str) -> &str {
    if name.is_empty() { "(no name)" } else { name }
}

/// The counters of each block: name and unit.
const COUNTERS: [(&str, CounterUnit); 2] = [
    ("share", CounterUnit::Percent),
    ("bandwidth", CounterUnit::BytesPerSecond),
];

/// The value of an annotation, by its kind and its bits.
type AnyValue = (u8, u64);

/// Some numbers are small, so that one byte holds them, and some as large as they get.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..300, any::<u64>(), Just(u64::MAX)]
}

#[derive(Clone, Debug)]
enum Record {
    Begin {
        kind: Begun,
        track: usize,
        time: u64,
        name: usize,
        correlation: u64,
        submitted: Vec<u64>,
        waited: Vec<u64>,
        api: bool,
        annotations: Vec<AnyValue>,
    },
    End {
        track: usize,
        time: u64,
    },
    Value {
        time: u64,
        value: i64,
    },
    Work {
        event: u64,
        start: u64,
        duration: Option<u64>,
        queue: usize,
        stream: u32,
        name: usize,
        kernel: bool,
        launch: Option<([u64; 3], [u32; 3])>,
        resources: [u32; 4],
        correlation: u64,
        waits: Vec<u64>,
        bytes: u64,
    },
    Counters {
        block: usize,
        time: u64,
        values: [AnyCount; 2],
    },
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Begun {
    Instant,
    Slice,
    Call,
}

/// The value of a counter: whether it is whole, and its bits.
type AnyCount = (bool, i64);

fn count_of((whole, value): AnyCount) -> (CounterValue, serde_json::Value) {
    if whole {
        (CounterValue::Int(value), json!(["int_value", value]))
    } else {
        let value = value as f64 / 8.0;
        (CounterValue::Double(value), json!(["double_value", value]))
    }
}

fn record() -> impl Strategy<Value = Record> {
    let time = || prop_oneof![START..START + 1000, START..1 << 50];
    let ids = || vec(number(), 0..4);
    let begin = (
        (
            prop_oneof![Just(Begun::Instant), Just(Begun::Slice), Just(Begun::Call)],
            0_usize..2,
            time(),
            0..NAMES.len(),
        ),
        (number(), ids(), ids(), any::<bool>()),
        vec((0_u8..6, number()), 0..5),
    );
    let work = (
        (
            number(),
            time(),
            proptest::option::of(number()),
            0..QUEUES,
            0_u32..3,
            0..NAMES.len(),
        ),
        (
            any::<bool>(),
            proptest::option::of((any::<[u64; 3]>(), [0_u32..99, 0..99, 0..99])),
        ),
        (any::<[u32; 4]>(), number(), ids(), number()),
    );
    prop_oneof![
        8 => begin.prop_map(|((kind, track, time, name), (correlation, submitted, waited, api), annotations)| {
            Record::Begin { kind, track, time, name, correlation, submitted, waited, api, annotations }
        }),
        4 => (0_usize..2, time()).prop_map(|(track, time)| Record::End { track, time }),
        2 => (time(), any::<i64>()).prop_map(|(time, value)| Record::Value { time, value }),
        8 => work.prop_map(|((event, start, duration, queue, stream, name), (kernel, launch), (resources, correlation, waits, bytes))| {
            Record::Work { event, start, duration, queue, stream, name, kernel, launch, resources, correlation, waits, bytes }
        }),
        4 => (0_usize..2, time(), any::<[AnyCount; 2]>()).prop_map(|(block, time, values)| {
            Record::Counters { block, time, values }
        }),
    ]
}

fn value_of((kind, bits): AnyValue) -> (Value<'static>, serde_json::Value) {
    match kind {
        0 => (
            Value::Bool(bits % 2 == 1),
            json!(["bool_value", bits % 2 == 1]),
        ),
        1 => (Value::Uint(bits), json!(["uint_value", bits])),
        2 => (Value::Int(bits as i64), json!(["int_value", bits as i64])),
        3 => (
            Value::Double(bits as f64 / 8.0),
            json!(["double_value", bits as f64 / 8.0]),
        ),
        4 => {
            let text = NAMES[bits as usize % NAMES.len()];
            (Value::Text(text), json!(["string_value", text]))
        }
        _ => (Value::Pointer(bits), json!(["pointer_value", bits])),
    }
}

/// Declares a process with two threads, a counter, queues on three devices, and blocks of counters on two of them.
fn declare(trace: &mut Exporter<'_>) -> std::io::Result<()> {
    trace.begin(&TraceHeader {
        identity: 3,
        clocks: SystemClocks {
            boottime: Nanos(START),
            ..SystemClocks::default()
        },
        ..TraceHeader::default()
    })?;
    let agents = (0..QUEUES).map(|number| Agent {
        title: format!("GPU {number}"),
        ..Agent::default()
    });
    trace.agents(AgentIndex(0), &agents.collect::<Vec<_>>())?;
    let process = Process {
        pid: ProcessId(PID),
        name: "program",
        rank: "",
        command: &[],
        order: None,
    };
    trace.process(PROCESS, &process)?;
    let tracks = [
        ("one", TrackKind::Thread(PROCESS, ThreadId(43))),
        ("two", TrackKind::Thread(PROCESS, ThreadId(44))),
        ("bytes", TrackKind::Counter(CounterUnit::Bytes)),
    ];
    for (index, (name, kind)) in (0..).zip(tracks) {
        let track = Track {
            parent: Parent::Process(PROCESS),
            name,
            kind,
            order: None,
        };
        trace.track(TrackIndex(index), &track)?;
    }
    for number in 0..QUEUES as u32 {
        let queue = Queue {
            process: PROCESS,
            agent: AgentIndex(number),
            context: Default::default(),
            domain: Domain::OPENCL,
            name: &format!("queue {number}"),
            out_of_order: false,
        };
        trace.queue(QueueIndex(number), &queue)?;
    }
    for gpu in 0..2 {
        let counter = |(name, unit): &(&str, CounterUnit)| CounterDescription {
            name: (*name).to_owned(),
            description: String::new(),
            unit: *unit,
        };
        let block = CounterBlock {
            name: "both".into(),
            process: PROCESS,
            agent: AgentIndex(gpu),
            memory: false,
            over_time: false,
            counters: COUNTERS.iter().map(counter).collect(),
        };
        trace.counters(CounterIndex(gpu), &block)?;
    }
    Ok(())
}

/// Writes the records; returns the expected contents of each packet.
fn write(trace: &mut Exporter<'_>, records: &[Record]) -> std::io::Result<serde_json::Value> {
    declare(trace)?;
    let mut expected = Vec::new();
    for record in records {
        match record {
            Record::Begin {
                kind,
                track,
                time,
                name,
                correlation,
                submitted,
                waited,
                api,
                annotations,
            } => {
                let values: Vec<_> = annotations.iter().map(|value| value_of(*value)).collect();
                let names = NAMES.iter().cycle();
                let arguments = values.iter().zip(names.clone());
                let arguments: Vec<_> = arguments
                    .map(|((value, _), name)| EventArgument {
                        name,
                        value: *value,
                    })
                    .collect();
                let index = TrackIndex(*track as u32);
                let (named, correlation) = (NAMES[*name], CorrelationId(*correlation));
                // What a trace says of all calls of an API, and of other events that have it.
                let mut ids = correlation.is_some().then_some(correlation.0);
                let mut links = (&[][..], &[][..]);
                match kind {
                    Begun::Instant => {
                        ids = None;
                        trace.instant(&Instant {
                            track: index,
                            name: named,
                            category: "category",
                            time: Nanos(*time),
                            arguments: &arguments,
                            flows: &[],
                        })?;
                    }
                    Begun::Slice => trace.slice(&Slice {
                        track: index,
                        name: named,
                        category: "category",
                        start: Nanos(*time),
                        open: true,
                        correlation,
                        arguments: &arguments,
                        ..Slice::default()
                    })?,
                    Begun::Call => {
                        if *api {
                            ids = Some(correlation.0);
                        }
                        links = (&submitted[..], &waited[..]);
                        let parameters = names.take(values.len()).map(|name| Parameter {
                            name: (*name).into(),
                            kind: ArgumentType::UNSIGNED,
                        });
                        let kind = (name * 8 + values.len()) * 2 + usize::from(*api);
                        let function = Function {
                            index: FunctionIndex(kind as u32),
                            name: named.into(),
                            domain: if *api { Domain::OPENCL } else { Domain(0) },
                            category: Some("category".into()),
                            parameters: parameters.collect(),
                            ..Function::default()
                        };
                        let events =
                            |ids: &[u64]| ids.iter().copied().map(EventId).collect::<Vec<_>>();
                        trace.call(&Call {
                            track: index,
                            start: Nanos(*time),
                            open: true,
                            correlation,
                            submitted: &events(submitted),
                            waited: &events(waited),
                            arguments: &values.iter().map(|(value, _)| *value).collect::<Vec<_>>(),
                            ..Call::blank(&function)
                        })?;
                    }
                }
                let api = *api && !(links.0.is_empty() && links.1.is_empty());
                let annotations = values.iter().zip(NAMES.iter().cycle());
                let annotations: Vec<_> = annotations
                    .map(|((_, told), name)| json!([name, told[0], told[1]]))
                    .collect();
                expected.push(json!({
                    "time": time, "type": if *kind == Begun::Instant { 3 } else { 1 }, "name": named,
                    "categories": ["category"], "correlation": ids, "api": api.then_some(3), "submitted": links.0, "waited": links.1,
                    "annotations": annotations, "track": track, "value": null,
                }));
            }
            Record::End { track, time } => {
                trace.end(TrackIndex(*track as u32), Nanos(*time))?;
                expected.push(bare(*time, 2, *track, None));
            }
            Record::Value { time, value } => {
                trace.value(TrackIndex(2), Nanos(*time), CounterValue::Int(*value))?;
                expected.push(bare(*time, 4, 2, Some(*value)));
            }
            Record::Work {
                event,
                start,
                duration,
                queue,
                stream,
                name,
                kernel,
                launch,
                resources,
                correlation,
                waits,
                bytes,
            } => {
                let after: Vec<_> = waits.iter().copied().map(EventId).collect();
                let [registers, static_local, dynamic_local, private] = *resources;
                trace.work(&Work {
                    event: Some(EventId(*event)),
                    start: Some(Nanos(*start)),
                    duration: *duration,
                    queue: QueueIndex(*queue as u32),
                    stream: *stream,
                    stage: Stage {
                        id: StageId((*name as u64) << 1 | u64::from(*kernel)),
                        kind: if *kernel {
                            WorkKind::Kernel
                        } else {
                            WorkKind::Copy
                        },
                        name: NAMES[*name],
                        demangled: "void f()",
                        architecture: "arch",
                    },
                    launch: launch.map(|(grid, workgroup)| Launch { grid, workgroup }),
                    resources: Resources {
                        registers,
                        static_local,
                        dynamic_local,
                        private,
                        ..Resources::default()
                    },
                    correlation: CorrelationId(*correlation),
                    bytes: *bytes,
                    waits: &after,
                    ..Work::default()
                })?;
                let mut details = Vec::new();
                if *bytes > 0 {
                    details.push(json!(["bytes", (*bytes as i64).to_string()]));
                }
                if !waits.is_empty() {
                    let ids: Vec<_> = waits.iter().map(u64::to_string).collect();
                    details.push(json!(["waits_for", ids.join(", ")]));
                }
                let launch = launch.filter(|(_, workgroup)| !workgroup.contains(&0)).map(
                    |(grid, workgroup)| {
                        let groups = [0, 1, 2]
                            .map(|at| grid[at].div_ceil(workgroup[at].into()).min(u32::MAX.into()));
                        json!([groups, workgroup])
                    },
                );
                let mut arguments = serde_json::Map::new();
                arguments.insert("device".into(), json!(queue));
                arguments.insert("stream".into(), json!(stream));
                let names = [
                    "registers_per_thread",
                    "shared_mem_static",
                    "shared_mem_dynamic",
                    "private_mem_per_thread",
                ];
                for (name, value) in names
                    .into_iter()
                    .zip(resources)
                    .filter(|(_, value)| **value != 0)
                {
                    arguments.insert(name.into(), json!(value));
                }
                expected.push(json!({
                    "start": start, "event": event, "duration": duration, "gpu": queue, "context": [PID, 3],
                    "submission": (*correlation != 0).then_some(*correlation as u32), "queue": format!("GPU {queue} ·  queue    {queue}"),
                    "stage": shown(NAMES[*name]), "category": if *kernel { 2 } else { 0 }, "launch": launch, "waits": waits,
                    "kernel": [kernel.then_some(shown(NAMES[*name])), "void f()", "arch"], "arguments": arguments,
                    "details": details,
                }));
            }
            Record::Counters {
                block,
                time,
                values,
            } => {
                let values = values.map(count_of);
                let index = CounterIndex(*block as u32);
                trace.counter_values(index, Nanos(*time), &[values[0].0, values[1].0])?;
                let counters = values.map(|(_, told)| told);
                let counters = counters.iter().zip(COUNTERS);
                let counters: Vec<_> = counters
                    .map(|(told, (name, _))| {
                        let name = format!("GPU {block} {name}");
                        json!([name, told[0], told[1]])
                    })
                    .collect();
                expected.push(
                    json!({"time": time, "gpu": block, "block": "both", "counters": counters}),
                );
            }
        }
    }
    trace.finish()?;
    Ok(json!(expected))
}

/// An end or a value, without annotations.
fn bare(time: u64, kind: u32, track: usize, value: Option<i64>) -> serde_json::Value {
    json!({
        "time": time, "type": kind, "name": null, "categories": [], "correlation": null, "api": null, "submitted": [],
        "waited": [], "annotations": [], "track": track, "value": value,
    })
}

#[test]
fn another_decoder_reads_what_was_written_field_by_field() {
    needs!(another_decoder_reads_what_was_written_field_by_field: Need::PythonBindings);
    let folder = tempfile::tempdir().expect("a folder");
    let (trace, expected) = (folder.path().join("trace"), folder.path().join("records"));
    let config = ProptestConfig {
        cases: 8,
        max_shrink_iters: 50,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(records in vec(record(), 300..600))| {
        let mut bytes = Vec::new();
        let records = write(&mut Exporter::new(&mut bytes), &records).expect("memory takes any trace");
        std::fs::write(&trace, bytes).unwrap();
        std::fs::write(&expected, records.to_string()).unwrap();
        let ended = run(Command::new("python3")
            .env("PYTHONPATH", tools().join("python"))
            .arg(repository("tests/perfetto/check_packets.py"))
            .args([&trace, &expected]));
        prop_assert!(ended.code() == 0, "{}", ended.stderr);
    });
}
