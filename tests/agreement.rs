//! The encoder and an independent implementation of Perfetto's messages agree, field by field, on randomly generated
//! records.

use std::process::Command;

use gputrail_harness::machine::{Need, tools};
use gputrail_harness::program::run;
use gputrail_harness::{needs, repository};
use gputrail_trace::model::{
    AgentIndex, CounterBlock, CounterDescription, CounterIndex, CounterUnit, CounterValue, EventId,
    Launch, Machine, ProcessIndex, Resources, Stage, StageId, SystemClocks, Value, WorkKind,
};
use gputrail_trace::perfetto::schema::GpuApi;
use gputrail_trace::perfetto::{
    Annotation, ContextApi, Detail, DetailValue, Event, Label, QueueDescription, RenderStageEvent,
    TraceWriter,
};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

const START: u64 = 1_000_000;
const PID: u32 = 42;
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
        instant: bool,
        track: usize,
        time: u64,
        name: usize,
        interned: bool,
        correlation: Option<u64>,
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
        detail: Option<i64>,
    },
    Counters {
        block: usize,
        time: u64,
        values: [AnyCount; 2],
    },
    Reset,
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
            any::<bool>(),
            0_usize..2,
            time(),
            0..NAMES.len(),
            any::<bool>(),
        ),
        (proptest::option::of(number()), ids(), ids(), any::<bool>()),
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
        (
            any::<[u32; 4]>(),
            number(),
            ids(),
            proptest::option::of(any::<i64>()),
        ),
    );
    prop_oneof![
        8 => begin.prop_map(|((instant, track, time, name, interned), (correlation, submitted, waited, api), annotations)| {
            Record::Begin { instant, track, time, name, interned, correlation, submitted, waited, api, annotations }
        }),
        4 => (0_usize..2, time()).prop_map(|(track, time)| Record::End { track, time }),
        2 => (time(), any::<i64>()).prop_map(|(time, value)| Record::Value { time, value }),
        8 => work.prop_map(|((event, start, duration, queue, stream, name), (kernel, launch), (resources, correlation, waits, detail))| {
            Record::Work { event, start, duration, queue, stream, name, kernel, launch, resources, correlation, waits, detail }
        }),
        4 => (0_usize..2, time(), any::<[AnyCount; 2]>()).prop_map(|(block, time, values)| {
            Record::Counters { block, time, values }
        }),
        1 => Just(Record::Reset),
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

/// Writes the records; returns the trace, and the expected contents of each packet.
fn written(records: &[Record]) -> std::io::Result<(Vec<u8>, serde_json::Value)> {
    let clocks = SystemClocks {
        boottime: START,
        ..SystemClocks::default()
    };
    let mut trace = TraceWriter::new(Vec::new(), 3, &clocks, &Machine::default())?;
    let interned = NAMES.map(|name| trace.name(name).expect("few names"));
    let category = trace.name("category").expect("few names");
    let process = trace.process(PID, "program", &[], None)?;
    let tracks = [
        trace.thread(process, 43, "one", None)?,
        trace.thread(process, 44, "two", None)?,
    ];
    let counter = trace.process_counter(process, "bytes", CounterUnit::Bytes)?;
    let device = trace.device();
    let context = trace.context(PID, ContextApi::OpenCl);
    let queues: Vec<_> = (0..QUEUES as u32)
        .map(|queue| {
            trace.queue(QueueDescription {
                name: format!("queue {queue}"),
                description: String::new(),
                gpu: queue,
                context,
                device: queue + 5,
            })
        })
        .collect();
    let mut blocks = Vec::new();
    for gpu in 0..2 {
        let block = CounterIndex(gpu);
        let counter = |(name, unit): &(&str, CounterUnit)| CounterDescription {
            name: format!("{name} of {gpu}"),
            description: String::new(),
            unit: *unit,
        };
        let description = CounterBlock {
            name: "both".into(),
            process: ProcessIndex(0),
            agent: AgentIndex(gpu),
            memory: false,
            over_time: false,
            counters: COUNTERS.iter().map(counter).collect(),
        };
        trace.describe_counters(block, &description)?;
        blocks.push(block);
    }
    let mut expected = Vec::new();
    for record in records {
        match record {
            Record::Begin {
                instant,
                track,
                time,
                name,
                interned: by_number,
                correlation,
                submitted,
                waited,
                api,
                annotations,
            } => {
                let values: Vec<_> = annotations.iter().map(|value| value_of(*value)).collect();
                let beside: Vec<_> = values
                    .iter()
                    .zip(interned.iter().cycle())
                    .map(|((value, _), name)| Annotation {
                        name: *name,
                        value: *value,
                    })
                    .collect();
                let ids = |ids: &[u64]| ids.iter().copied().map(EventId).collect::<Vec<_>>();
                let (by, after) = (ids(submitted), ids(waited));
                let event = Event {
                    label: if *by_number {
                        Label::Name(interned[*name])
                    } else {
                        Label::Text(NAMES[*name])
                    },
                    category,
                    correlation: *correlation,
                    submitted: &by,
                    waited: &after,
                    api: api.then_some(GpuApi::OpenCl),
                    annotations: &beside,
                    flows: &[],
                };
                if *instant {
                    trace.instant(tracks[*track], *time, &event)?;
                } else {
                    trace.begin(tracks[*track], *time, &event)?;
                }
                let annotations = values.iter().zip(NAMES.iter().cycle());
                let annotations: Vec<_> = annotations
                    .map(|((_, told), name)| json!([name, told[0], told[1]]))
                    .collect();
                expected.push(json!({
                    "time": time, "type": if *instant { 3 } else { 1 }, "name": NAMES[*name], "categories": ["category"],
                    "correlation": correlation, "api": api.then_some(3), "submitted": submitted, "waited": waited,
                    "annotations": annotations, "track": track, "value": null,
                }));
            }
            Record::End { track, time } => {
                trace.end(tracks[*track], *time)?;
                expected.push(bare(*time, 2, *track, None));
            }
            Record::Value { time, value } => {
                trace.value(counter, *time, CounterValue::Int(*value))?;
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
                detail,
            } => {
                let after: Vec<_> = waits.iter().copied().map(EventId).collect();
                let [registers, static_local, dynamic_local, private] = *resources;
                let details: Vec<_> = detail
                    .iter()
                    .map(|number| Detail {
                        name: "bytes",
                        value: DetailValue::Number(*number),
                    })
                    .collect();
                trace.work(
                    device,
                    &RenderStageEvent {
                        event: EventId(*event),
                        start: *start,
                        duration: *duration,
                        queue: queues[*queue],
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
                        },
                        correlation: *correlation,
                        waits: &after,
                        details: &details,
                        arguments: &[],
                    },
                )?;
                let launch = launch.filter(|(_, workgroup)| !workgroup.contains(&0)).map(
                    |(grid, workgroup)| {
                        let groups = [0, 1, 2]
                            .map(|at| grid[at].div_ceil(workgroup[at].into()).min(u32::MAX.into()));
                        json!([groups, workgroup])
                    },
                );
                let mut arguments = serde_json::Map::new();
                arguments.insert("device".into(), json!(queue + 5));
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
                    "submission": (*correlation != 0).then_some(*correlation as u32), "queue": format!("queue {queue}"),
                    "stage": shown(NAMES[*name]), "category": if *kernel { 2 } else { 0 }, "launch": launch, "waits": waits,
                    "kernel": [kernel.then_some(shown(NAMES[*name])), "void f()", "arch"], "arguments": arguments,
                    "details": details.iter().zip(detail).map(|(_, number)| json!(["bytes", number.to_string()])).collect::<Vec<_>>(),
                }));
            }
            Record::Counters {
                block,
                time,
                values,
            } => {
                let values = values.map(count_of);
                trace.counter_values(blocks[*block], *time, &[values[0].0, values[1].0])?;
                let counters = values.map(|(_, told)| told);
                let counters = counters.iter().zip(COUNTERS);
                let counters: Vec<_> = counters
                    .map(|(told, (name, _))| {
                        let name = format!("{name} of {block}");
                        json!([name, told[0], told[1]])
                    })
                    .collect();
                expected.push(
                    json!({"time": time, "gpu": block, "block": "both", "counters": counters}),
                );
            }
            Record::Reset => trace.reset(),
        }
    }
    Ok((trace.finish()?, json!(expected)))
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
        let (bytes, records) = written(&records).expect("memory takes any trace");
        std::fs::write(&trace, bytes).unwrap();
        std::fs::write(&expected, records.to_string()).unwrap();
        let ended = run(Command::new("python3")
            .env("PYTHONPATH", tools().join("python"))
            .arg(repository("tests/perfetto/check_packets.py"))
            .args([&trace, &expected]));
        prop_assert!(ended.code() == 0, "{}", ended.stderr);
    });
}
