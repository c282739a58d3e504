//! A trace with every kind of packet that the writer knows, queried with SQL: Perfetto must report no error and show
//! its contents.

use std::path::PathBuf;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::trace::{Trace, packet_kinds};
use gputrail_trace::model::{
    Agent, AgentIndex, CounterBlock, CounterDescription, CounterIndex, CounterUnit, CounterValue,
    EventId, Launch, Machine, ProcessIndex, Resources, Stage, StageId, SystemClocks, Value,
    WorkKind,
};
use gputrail_trace::perfetto::schema::GpuApi;
use gputrail_trace::perfetto::{
    Annotation, ContextApi, Detail, DetailValue, Event, Label, QueueDescription, RenderStageEvent,
    TraceWriter,
};

const START: u64 = 5_000_000_000;

/// Writes the trace, with `losses` lost records.
fn every_packet(losses: u64) -> std::io::Result<Vec<u8>> {
    let clocks = SystemClocks {
        boottime: START,
        monotonic: START - 500,
        monotonic_raw: START - 900,
        realtime: 1_700_000_000_000_000_000,
    };
    let machine = Machine {
        host: "build-host".into(),
        system: "Linux".into(),
        release: "6.1.0".into(),
        version: "#1 SMP".into(),
        architecture: "x86_64".into(),
        processors: 2,
    };
    let mut trace = TraceWriter::new(Vec::new(), 1, &clocks, &machine)?;
    trace.attributes(&[("gputrail.policy".into(), "lossless".into())])?;
    trace.gpus(&[
        Agent {
            title: "GPU 0".into(),
            name: "Simulated GPU".into(),
            vendor: "gputrail".into(),
            model: "S1".into(),
            architecture: "sim1".into(),
            pci_address: "0000:01:00.0".into(),
            attributes: vec![("compute_units".into(), "16".into())],
        },
        Agent {
            name: "Other".into(),
            ..Agent::default()
        },
    ])?;
    let category = trace.name("opencl").unwrap();
    let overhead = trace.name("overhead").unwrap();
    let enqueue = trace.name("clEnqueueNDRangeKernel").unwrap();
    let finish = trace.name("clFinish").unwrap();
    let error = trace.name("error").unwrap();
    let kinds = ["flag", "count", "signed", "share", "text", "handle"];
    let kinds = kinds.map(|kind| trace.name(kind).unwrap());
    let notes = trace.global("gputrail")?;
    let values = [
        Value::Bool(true),
        Value::Uint(u64::MAX),
        Value::Int(-1),
        Value::Double(0.25),
        Value::Text("words"),
        Value::Pointer(0xdead_beef),
    ];
    let annotations: Vec<_> = kinds
        .into_iter()
        .zip(values)
        .map(|(name, value)| Annotation { name, value })
        .collect();
    let plain = Event {
        label: Label::Text("trace"),
        category,
        correlation: None,
        submitted: &[],
        waited: &[],
        api: None,
        annotations: &annotations,
        flows: &[],
    };
    trace.instant(notes, START, &plain)?;

    // Two processes that use the same numbers.
    for (index, pid) in [(1_u64, 4242), (2, 4243)] {
        let process = trace.process(pid, "app", &["app", "--fast"], None)?;
        let main = trace.thread(process, pid, "main", None)?;
        let helper = trace.thread(process, pid + 10, "helper", None)?;
        let child = trace.child(main, "overhead")?;
        let notes = trace.process_child(process, "losses")?;
        let memory = trace.process_counter(process, "memory in use", CounterUnit::Bytes)?;
        for (time, bytes) in [(START + 10, 1 << 40), (START + 20, 0)] {
            trace.value(memory, time, CounterValue::Int(bytes))?;
        }
        let block = CounterIndex(index as u32 - 1);
        let counter = |what: &str, unit| CounterDescription {
            name: format!("GPU 0 . app {pid} . {what}"),
            description: "how much".into(),
            unit,
        };
        let block_of_kernels = CounterBlock {
            name: "kernels".into(),
            process: ProcessIndex(index as u32 - 1),
            agent: AgentIndex(0),
            memory: false,
            over_time: false,
            counters: vec![
                counter("kernels in flight", CounterUnit::Count),
                counter("compute units filled", CounterUnit::Percent),
                counter("copy bandwidth", CounterUnit::BytesPerSecond),
            ],
        };
        trace.describe_counters(block, &block_of_kernels)?;
        for time in [START + 30, START + 40] {
            let values = [
                CounterValue::Double(0.5),
                CounterValue::Int(100),
                CounterValue::Int(1 << 40),
            ];
            trace.counter_values(block, time, &values)?;
        }
        let device = trace.device();
        let context = trace.context(pid, ContextApi::OpenCl);
        let queues = [0, 1].map(|number| {
            trace.queue(QueueDescription {
                name: format!("GPU {number} . app {pid} . queue {number}"),
                description: "in order".into(),
                gpu: number,
                context,
                device: number,
            })
        });
        for call in 0..1000_u64 {
            let time = START + 1_000 + call * 10_000;
            let event = EventId(index << 40 | (call + 1));
            let submit = Event {
                label: Label::Name(enqueue),
                correlation: Some(call * 2 + 1),
                submitted: &[event],
                api: Some(GpuApi::OpenCl),
                annotations: &[],
                ..plain
            };
            trace.begin(main, time, &submit)?;
            let compile = Event {
                label: Label::Text("compilation"),
                category: overhead,
                annotations: &[],
                ..plain
            };
            trace.begin(child, time, &compile)?;
            trace.end(child, time + 500)?;
            trace.end(main, time + 1_000)?;
            let failure = [Annotation {
                name: error,
                value: Value::Int(-54),
            }];
            let wait = Event {
                label: Label::Name(finish),
                correlation: Some(call * 2 + 2),
                waited: &[event],
                annotations: if call == 7 { &failure } else { &[] },
                ..plain
            };
            trace.begin(helper, time + 1_000, &wait)?;
            trace.end(helper, time + 9_000)?;
            let name = ["saxpy", "sgemm", "copy buffer"][call as usize % 3];
            let first = [EventId(index << 40 | 1)];
            let is_kernel = name != "copy buffer";
            trace.work(
                device,
                &RenderStageEvent {
                    event,
                    start: time + 2_000,
                    duration: Some(4_000),
                    queue: queues[call as usize % 2],
                    stream: call as u32 % 2,
                    stage: Stage {
                        id: StageId(call % 3),
                        kind: if is_kernel {
                            WorkKind::Kernel
                        } else {
                            WorkKind::Copy
                        },
                        name,
                        demangled: "",
                        architecture: "sim1",
                    },
                    launch: is_kernel.then_some(Launch {
                        grid: [4096, 1, 1],
                        workgroup: [64, 1, 1],
                    }),
                    resources: Resources::default(),
                    correlation: call * 2 + 1,
                    waits: &first[..usize::from(call > 0)],
                    details: &[Detail {
                        name: "queued",
                        value: DetailValue::Number(-1_500),
                    }],
                    arguments: &[],
                },
            )?;
            if call == 500 {
                trace.reset();
            }
        }
        let lost = Event {
            label: Label::Text("records lost"),
            category,
            ..plain
        };
        trace.instant(notes, START + 20_000, &lost)?;
        trace.begin(
            main,
            START + 100_000_000,
            &Event {
                annotations: &[],
                ..plain
            },
        )?;
    }
    trace.clocks(&SystemClocks {
        boottime: START + 200_000_000,
        monotonic: START + 200_000_000 - 500,
        ..SystemClocks::default()
    })?;
    trace.lost(losses);
    trace.finish()
}

/// The trace in a file, and opened.
fn open(trace: &[u8], name: &str) -> Trace {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, trace).expect("the trace is written");
    Trace::open(file)
}

#[test]
fn perfetto_reports_no_error_on_any_kind_of_packet() {
    needs!(perfetto_reports_no_error_on_any_kind_of_packet: Need::TraceProcessor);
    open(&every_packet(0).unwrap(), "every-packet.pftrace").assert_sound();
}

#[test]
fn perfetto_counts_the_records_lost() {
    needs!(perfetto_counts_the_records_lost: Need::TraceProcessor);
    let complaints = open(&every_packet(41).unwrap(), "lost.pftrace").complaints();
    assert_eq!(
        complaints,
        [("traced_buf_trace_writer_packet_loss".to_owned(), 41)]
    );
}

#[test]
fn every_field_of_every_packet_is_one_that_perfetto_knows() {
    needs!(every_field_of_every_packet_is_one_that_perfetto_knows: Need::PythonBindings);
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("known-fields.pftrace");
    std::fs::write(&file, every_packet(3).unwrap()).expect("the trace is written");
    let kinds = packet_kinds(&file);
    for kind in [
        "track_event",
        "track_descriptor",
        "gpu_render_stage_event",
        "gpu_counter_event",
        "gpu_info",
    ] {
        assert!(kinds.contains_key(kind), "{kind} is not among {kinds:?}");
    }
}
