//! A trace with every kind of packet that the exporter writes, queried with SQL: Perfetto must report no error and show
//! its contents.

use std::path::PathBuf;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::trace::{Trace, packet_kinds};
use gputrail_record::{ArgumentType, CorrelationId, Domain, Nanos, ProcessId, ThreadId};
use gputrail_trace::model::{
    Agent, AgentIndex, Call, CounterBlock, CounterDescription, CounterUnit, CounterValue,
    EventArgument, EventId, Function, FunctionIndex, Instant, Launch, Loss, Machine, Parameter,
    Parent, Process, ProcessIndex, Queue, Slice, Stage, StageId, Stream, SystemClocks, TraceHeader,
    Track, TrackIndex, TrackKind, Value, Work, WorkKind,
};
use gputrail_trace::perfetto::Exporter;

const START: u64 = 5_000_000_000;

const VALUES: [(&str, Value<'_>); 6] = [
    ("flag", Value::Bool(true)),
    ("count", Value::Uint(u64::MAX)),
    ("signed", Value::Int(-1)),
    ("share", Value::Double(0.25)),
    ("text", Value::Text("words")),
    ("handle", Value::Pointer(0xdead_beef)),
];

/// The trace, with `losses` lost records.
fn every_packet(losses: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write(&mut Stream::new(&mut Exporter::new(&mut bytes)), losses)?;
    Ok(bytes)
}

fn write(stream: &mut Stream<'_>, losses: u64) -> std::io::Result<()> {
    stream.consumer.begin(&TraceHeader {
        identity: 1,
        clocks: SystemClocks {
            boottime: Nanos(START),
            monotonic: Nanos(START - 500),
            monotonic_raw: Nanos(START - 900),
            realtime: Nanos(1_700_000_000_000_000_000),
        },
        machine: Machine {
            host: "build-host".into(),
            system: "Linux".into(),
            release: "6.1.0".into(),
            version: "#1 SMP".into(),
            architecture: "x86_64".into(),
            processors: 2,
        },
        ..TraceHeader::default()
    })?;
    let attributes = [("gputrail.policy".into(), "lossless".into())];
    stream.consumer.attributes(&attributes)?;
    let agents = [
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
    ];
    stream.consumer.agents(AgentIndex(0), &agents)?;
    let notes = track(stream, Parent::Trace, "gputrail", TrackKind::Slices)?;
    let arguments = VALUES.map(|(name, value)| EventArgument { name, value });
    stream.consumer.instant(&Instant {
        track: notes,
        name: "trace",
        category: "opencl",
        time: Nanos(START),
        arguments: &arguments,
        flows: &[],
    })?;
    // Two processes that use the same numbers.
    for (index, pid) in [(0, 4242), (1, 4243)] {
        one_process(stream, ProcessIndex(index), pid)?;
    }
    stream.consumer.clocks(&SystemClocks {
        boottime: Nanos(START + 200_000_000),
        monotonic: Nanos(START + 200_000_000 - 500),
        ..SystemClocks::default()
    })?;
    let at = Nanos(START + 20_000);
    stream.consumer.loss(&Loss {
        process: None,
        thread: ThreadId::NONE,
        track: (losses > 0).then_some(notes),
        kind: Default::default(),
        count: losses,
        first: at,
        last: at,
        time: at,
    })?;
    stream.consumer.finish()
}

fn track(
    stream: &mut Stream<'_>,
    parent: Parent,
    name: &str,
    kind: TrackKind,
) -> std::io::Result<TrackIndex> {
    stream.new_track(&Track {
        parent,
        name,
        kind,
        order: None,
    })
}

fn one_process(stream: &mut Stream<'_>, index: ProcessIndex, pid: u32) -> std::io::Result<()> {
    let process = Process {
        pid: ProcessId(pid),
        name: "app",
        rank: "",
        command: &["app", "--fast"],
        order: None,
    };
    stream.consumer.process(index, &process)?;
    let own = Parent::Process(index);
    let thread = |tid| TrackKind::Thread(index, ThreadId(tid));
    let main = track(stream, own, "main", thread(pid))?;
    let helper = track(stream, own, "helper", thread(pid + 10))?;
    let child = track(stream, Parent::Track(main), "overhead", TrackKind::Slices)?;
    let bytes = TrackKind::Counter(CounterUnit::Bytes);
    let memory = track(stream, own, "memory in use", bytes)?;
    for (time, bytes) in [(START + 10, 1 << 40), (START + 20, 0)] {
        let value = CounterValue::Int(bytes);
        stream.consumer.value(memory, Nanos(time), value)?;
    }
    let block = stream.new_counters();
    let counter = |name: &str, unit| CounterDescription {
        name: name.into(),
        description: "how much".into(),
        unit,
    };
    let block_of_kernels = CounterBlock {
        name: "kernels".into(),
        process: index,
        agent: AgentIndex(0),
        memory: false,
        over_time: false,
        counters: vec![
            counter("kernels in flight", CounterUnit::Count),
            counter("compute units filled", CounterUnit::Percent),
            counter("copy bandwidth", CounterUnit::BytesPerSecond),
        ],
    };
    stream.consumer.counters(block, &block_of_kernels)?;
    for time in [START + 30, START + 40] {
        let values = [
            CounterValue::Double(0.5),
            CounterValue::Int(100),
            CounterValue::Int(1 << 40),
        ];
        let time = Nanos(time);
        stream.consumer.counter_values(block, time, &values)?;
    }
    let mut queues = Vec::new();
    for number in 0..2 {
        queues.push(stream.new_queue(&Queue {
            process: index,
            agent: AgentIndex(number),
            context: Default::default(),
            domain: Domain::OPENCL,
            name: &format!("queue {number}"),
            out_of_order: false,
        })?);
    }
    let function = |index, name: &str, parameters| Function {
        index: FunctionIndex(index),
        name: name.into(),
        domain: Domain::OPENCL,
        parameters,
        ..Function::default()
    };
    let parameters = VALUES.map(|(name, _)| Parameter {
        name: name.into(),
        kind: ArgumentType::UNSIGNED,
    });
    let enqueue = function(0, "clEnqueueNDRangeKernel", parameters.into());
    let finish = function(1, "clFinish", Vec::new());
    let consumer = &mut *stream.consumer;
    for number in 0..1000_u64 {
        let time = START + 1_000 + number * 10_000;
        let event = EventId(u64::from(index.0 + 1) << 40 | (number + 1));
        let id = CorrelationId(number * 2 + 1);
        consumer.call(&Call {
            process: index,
            track: main,
            start: Nanos(time),
            end: Some(Nanos(time + 1_000)),
            correlation: id,
            submitted: &[event],
            ..Call::blank(&enqueue)
        })?;
        consumer.slice(&Slice {
            track: child,
            name: "compilation",
            category: "overhead",
            start: Nanos(time),
            end: Some(Nanos(time + 500)),
            ..Slice::default()
        })?;
        consumer.call(&Call {
            process: index,
            track: helper,
            start: Nanos(time + 1_000),
            end: Some(Nanos(time + 9_000)),
            correlation: CorrelationId(number * 2 + 2),
            error: (number == 7).then_some(-54),
            waited: &[event],
            ..Call::blank(&finish)
        })?;
        let name = ["saxpy", "sgemm", "copy buffer"][number as usize % 3];
        let first = [EventId(u64::from(index.0 + 1) << 40 | 1)];
        let is_kernel = name != "copy buffer";
        consumer.work(&Work {
            process: index,
            event: Some(event),
            queue: queues[number as usize % 2],
            stream: number as u32 % 2,
            stage: Stage {
                id: StageId(number % 3),
                kind: if is_kernel {
                    WorkKind::Kernel
                } else {
                    WorkKind::Copy
                },
                name,
                demangled: "",
                architecture: "sim1",
            },
            queued: Some(Nanos(time + 500)),
            start: Some(Nanos(time + 2_000)),
            duration: Some(4_000),
            launch: is_kernel.then_some(Launch {
                grid: [4096, 1, 1],
                workgroup: [64, 1, 1],
            }),
            correlation: id,
            waits: &first[..usize::from(number > 0)],
            ..Work::default()
        })?;
    }
    // A call that did not return.
    let values = VALUES.map(|(_, value)| value);
    consumer.call(&Call {
        process: index,
        track: main,
        start: Nanos(START + 100_000_000),
        correlation: CorrelationId(9_999),
        arguments: &values,
        ..Call::blank(&enqueue)
    })
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
