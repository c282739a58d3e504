//! Traces that are read back: the model is the one that was written.

use std::collections::HashMap;
use std::io;

use proptest::prelude::*;
use prost::Message;

use gputrail_code::aggregate::WaveOutcome;
use gputrail_record::{
    AgentId, ArgumentType, CodeObjectId, ContextId, CorrelationId, Domain, ExternalId, KernelId,
    Kind, Nanos, NoteKind, OperationGroup, ProcessId, SamplingMethod, SamplingUnit, ThreadId,
};
use gputrail_trace::model::*;
use gputrail_trace::perfetto::Exporter;
use gputrail_trace::perfetto::merge;
use gputrail_trace::perfetto::reader::{Replayed, TraceReplay, check, info};
use gputrail_trace::perfetto::schema::trace_packet::Data;
use gputrail_trace::perfetto::schema::{
    ClockSnapshot, CounterDescriptor, DebugAnnotation, TracePacket, TrackDescriptor, TrackEvent,
    clock_snapshot, debug_annotation, track_event,
};
use gputrail_trace::perfetto::wire::Encoder;

/// Writes every event down as a line. Ids that only hold in one stream are replaced by names.
#[derive(Default)]
struct Transcript {
    lines: Vec<String>,
    processes: Vec<u32>,
    tracks: Vec<String>,
    queues: Vec<String>,
    blocks: HashMap<CounterIndex, String>,
    stacks: HashMap<(TrackIndex, StackIndex), String>,
    /// Lines of the open slices of each track.
    open: HashMap<TrackIndex, Vec<usize>>,
}

impl Transcript {
    fn pid(&self, process: ProcessIndex) -> u32 {
        self.processes[process.0 as usize]
    }

    fn track_name(&self, track: TrackIndex) -> &str {
        &self.tracks[track.0 as usize]
    }

    fn slice_line(&mut self, track: TrackIndex, line: String, (open, end): (bool, Option<Nanos>)) {
        self.lines.push(line);
        if open {
            self.open
                .entry(track)
                .or_default()
                .push(self.lines.len() - 1)
        } else {
            *self.lines.last_mut().expect("a line") += &format!(" end {end:?}")
        }
    }

    /// All lines, in an order that does not depend on that of the stream.
    fn sorted(mut self) -> Vec<String> {
        self.lines.sort();
        self.lines
    }
}

fn arguments(list: &[EventArgument<'_>]) -> String {
    list.iter()
        .map(|argument| format!(" {}={:?}", argument.name, argument.value))
        .collect()
}

impl Consumer for Transcript {
    fn begin(&mut self, header: &TraceHeader) -> io::Result<()> {
        let TraceHeader {
            clocks, machine, ..
        } = header;
        self.lines.push(format!("begin {clocks:?} {machine:?}"));
        Ok(())
    }

    fn clocks(&mut self, clocks: &SystemClocks) -> io::Result<()> {
        self.lines.push(format!("{clocks:?}"));
        Ok(())
    }

    fn attributes(&mut self, attributes: &[(String, String)]) -> io::Result<()> {
        self.lines.push(format!("attributes {attributes:?}"));
        Ok(())
    }

    fn agents(&mut self, first: AgentIndex, agents: &[Agent]) -> io::Result<()> {
        self.lines.push(format!("agents {first:?} {agents:?}"));
        Ok(())
    }

    fn process(&mut self, _: ProcessIndex, process: &Process<'_>) -> io::Result<()> {
        self.processes.push(process.pid.0);
        self.lines.push(format!("{process:?}"));
        Ok(())
    }

    fn track(&mut self, _: TrackIndex, track: &Track<'_>) -> io::Result<()> {
        let parent = match track.parent {
            Parent::Trace => "trace".to_owned(),
            Parent::Process(process) => self.pid(process).to_string(),
            Parent::Track(track) => self.track_name(track).to_owned(),
        };
        let kind = match track.kind {
            TrackKind::Thread(process, thread) => format!("thread {} {thread}", self.pid(process)),
            TrackKind::ThreadRanges(process, thread) => {
                format!("ranges of {} {thread}", self.pid(process))
            }
            kind => format!("{kind:?}"),
        };
        let name = format!("{parent}/{kind}/{}", track.name);
        self.lines.push(format!("track {name} {:?}", track.order));
        self.tracks.push(name);
        Ok(())
    }

    fn queue(&mut self, _: QueueIndex, queue: &Queue<'_>) -> io::Result<()> {
        let (pid, agent) = (self.pid(queue.process), queue.agent);
        self.queues.push(format!("{pid}/{agent:?}/{}", queue.name));
        let line = format!(
            "queue {pid} {agent:?} {} {:?} {}",
            queue.name, queue.domain, queue.out_of_order
        );
        self.lines.push(line);
        Ok(())
    }

    fn counters(&mut self, index: CounterIndex, block: &CounterBlock) -> io::Result<()> {
        let name = format!("{} {}", self.pid(block.process), block.name);
        let counters = block.counters.iter();
        let counters = counters.map(|one| {
            (
                &one.name,
                &one.description,
                one.unit == CounterUnit::Percent,
            )
        });
        let counters: Vec<_> = counters.collect();
        let line = format!(
            "block {name} {:?} {} {counters:?}",
            block.agent, block.memory
        );
        self.lines.push(line);
        self.blocks.insert(index, name);
        Ok(())
    }

    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        let function = call.function;
        let names = function.parameters.iter().map(|parameter| &parameter.name);
        let values: Vec<_> = names.zip(call.arguments).collect();
        let line = format!(
            "call {} {} {} {:?} {:?} {} {} {} {:?} {:?} {:?} {values:?} {:?} {}",
            self.pid(call.process),
            call.thread,
            function.name,
            function.domain,
            function.category,
            call.start,
            call.correlation.0,
            call.external.0,
            call.error,
            call.submitted,
            call.waited,
            call.flows,
            self.track_name(call.track),
        );
        self.slice_line(call.track, line, (call.open, call.end));
        Ok(())
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        let line = format!(
            "slice {} {} {} {} {}{} {:?}",
            self.track_name(slice.track),
            slice.name,
            slice.category,
            slice.start,
            slice.correlation.0,
            arguments(slice.arguments),
            slice.flows,
        );
        self.slice_line(slice.track, line, (slice.open, slice.end));
        Ok(())
    }

    fn end(&mut self, track: TrackIndex, end: Nanos) -> io::Result<()> {
        let open = self.open.get_mut(&track).and_then(Vec::pop);
        self.lines[open.expect("an open slice")] += &format!(" end {:?}", Some(end));
        Ok(())
    }

    fn end_slice(&mut self, end: &SliceEnd<'_>) -> io::Result<()> {
        let open = self.open.get_mut(&end.track).and_then(Vec::pop);
        let line = &mut self.lines[open.expect("an open slice")];
        *line += &format!(
            " end {:?}{} {:?}",
            Some(end.time),
            arguments(end.arguments),
            end.flows
        );
        Ok(())
    }

    fn instant(&mut self, instant: &Instant<'_>) -> io::Result<()> {
        let line = format!(
            "instant {} {} {} {}{} {:?}",
            self.track_name(instant.track),
            instant.name,
            instant.category,
            instant.time,
            arguments(instant.arguments),
            instant.flows,
        );
        self.lines.push(line);
        Ok(())
    }

    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        let stage = work.stage;
        // Arguments of work are texts in a trace.
        let list = work.arguments.iter();
        let list = list.map(|one| match one.value {
            Value::Text(text) => format!("{}={text}", one.name),
            Value::Uint(number) => format!("{}={number}", one.name),
            other => format!("{}={other:?}", one.name),
        });
        let list: Vec<String> = list.collect();
        let line = format!(
            "work {} {} {} {:?} {} {} {:?} {} {} {} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {} {} {:?} {:?} {list:?}",
            self.pid(work.process),
            work.thread,
            work.correlation.0,
            work.event,
            self.queues[work.queue.0 as usize],
            work.stream,
            stage.kind,
            stage.name,
            stage.demangled,
            stage.architecture,
            work.enqueued,
            work.queued,
            work.submitted,
            work.interval,
            work.start,
            work.duration,
            work.unfinished,
            work.launch,
            work.resources,
            work.bytes,
            work.status,
            work.waits,
            work.samples,
        );
        self.lines.push(line);
        Ok(())
    }

    fn value(&mut self, track: TrackIndex, time: Nanos, value: CounterValue) -> io::Result<()> {
        let line = format!("value {} {time} {value:?}", self.track_name(track));
        self.lines.push(line);
        Ok(())
    }

    fn counter_values(
        &mut self,
        block: CounterIndex,
        time: Nanos,
        values: &[CounterValue],
    ) -> io::Result<()> {
        let line = format!("values {} {time} {values:?}", self.blocks[&block]);
        self.lines.push(line);
        Ok(())
    }

    fn samples(&mut self, samples: &Samples) -> io::Result<()> {
        let samples = Samples {
            sampler: SamplerIndex(0),
            ..samples.clone()
        };
        self.lines.push(format!("{samples:?}"));
        Ok(())
    }

    fn stack(
        &mut self,
        track: TrackIndex,
        stack: StackIndex,
        frames: &[StackFrame],
    ) -> io::Result<()> {
        self.stacks.insert((track, stack), format!("{frames:?}"));
        Ok(())
    }

    fn stack_samples(&mut self, samples: &StackSamples<'_>) -> io::Result<()> {
        for (time, stack) in samples.samples {
            let line = format!(
                "sample {} {time} {}",
                self.track_name(samples.track),
                self.stacks[&(samples.track, *stack)]
            );
            self.lines.push(line);
        }
        Ok(())
    }

    fn loss(&mut self, loss: &Loss) -> io::Result<()> {
        let process = loss.process.map(|process| self.pid(process));
        let track = loss.track.map(|track| self.track_name(track).to_owned());
        let Loss {
            kind,
            count,
            first,
            last,
            time,
            ..
        } = loss;
        self.lines.push(format!(
            "loss {process:?} {track:?} {kind:?} {count} {first} {last} {time}"
        ));
        Ok(())
    }

    fn note(&mut self, note: &Note<'_>) -> io::Result<()> {
        let line = format!(
            "note {} {} {}{}",
            self.pid(note.process),
            note.name,
            note.time,
            arguments(note.arguments)
        );
        self.lines.push(line);
        Ok(())
    }
}

/// Passes on a stream with every kind of event, and every kind of value.
fn everything(consumer: &mut dyn Consumer) -> io::Result<()> {
    let clocks = |second: u64| SystemClocks {
        boottime: Nanos(second * 1_000_000_000),
        monotonic: Nanos(second * 1_000_000_000 - 500),
        monotonic_raw: Nanos(second * 1_000_000_000 - 900),
        realtime: Nanos((1 << 60) + second * 1_000_000_000),
    };
    let machine = Machine {
        host: "machine".into(),
        system: "Linux".into(),
        release: "6".into(),
        version: "#1".into(),
        architecture: "x86_64".into(),
        processors: 2,
    };
    consumer.begin(&TraceHeader {
        identity: 7,
        clocks: clocks(5),
        machine,
        ..TraceHeader::default()
    })?;
    consumer.attributes(&[("key".into(), "value".into())])?;
    let mut stream = Stream::new(consumer);
    let agent = Agent {
        title: "CPU 0".into(),
        name: "a device".into(),
        vendor: "v".into(),
        model: "m".into(),
        architecture: "a".into(),
        pci_address: "0000:01:00.0".into(),
        attributes: vec![("kind".into(), "CPU".into())],
    };
    stream.consumer.agents(AgentIndex(0), &[agent])?;
    let process = ProcessIndex(0);
    stream.consumer.process(
        process,
        &Process {
            pid: ProcessId(42),
            name: "app",
            rank: "rank 3 of 8",
            command: &["app", "--fast"],
            order: Some(2),
        },
    )?;
    let mut track = |parent, name, kind, order| {
        stream.new_track(&Track {
            parent,
            name,
            kind,
            order,
        })
    };
    let of_process = Parent::Process(process);
    let thread = track(
        of_process,
        "main",
        TrackKind::Thread(process, ThreadId(43)),
        Some(1),
    )?;
    let below = Parent::Track(thread);
    let markers = track(
        below,
        "markers",
        TrackKind::ThreadRanges(process, ThreadId(43)),
        None,
    )?;
    let ranges = track(of_process, "ranges", TrackKind::Ranges, None)?;
    let slices = track(Parent::Trace, "slices", TrackKind::Slices, None)?;
    let inner = track(Parent::Track(slices), "below", TrackKind::Slices, None)?;
    let rows = track(below, "calls row 2", TrackKind::Slices, None)?;
    let bytes = track(
        of_process,
        "memory",
        TrackKind::Counter(CounterUnit::Bytes),
        None,
    )?;
    let share = track(
        below,
        "share",
        TrackKind::Counter(CounterUnit::Percent),
        None,
    )?;
    let time = track(
        Parent::Trace,
        "time",
        TrackKind::Counter(CounterUnit::Nanoseconds),
        None,
    )?;
    let flame = track(of_process, "stacks", TrackKind::Samples, None)?;
    for (counter, value) in [
        (bytes, CounterValue::Int(-5)),
        (bytes, CounterValue::Int(i64::MAX)),
        (share, CounterValue::Double(0.25)),
        (time, CounterValue::Int(1)),
    ] {
        stream
            .consumer
            .value(counter, Nanos(5_000_000_100), value)?;
    }
    let values = [
        ("flag", Value::Bool(true)),
        ("whole", Value::Uint(u64::MAX)),
        ("signed", Value::Int(-1)),
        ("share", Value::Double(0.1)),
        ("text", Value::Text("\u{e4}\"")),
        ("handle", Value::Pointer(0xdead)),
        ("list", Value::Json("[1,{\"a\":null}]")),
    ];
    let list = values.map(|(name, value)| EventArgument { name, value });
    let flow = |id: u64, last| FlowPoint {
        flow: FlowId(id << 50 | 1),
        last,
    };
    let slice = |track, name, start: u64, end: Option<u64>| Slice {
        track,
        name,
        category: "things",
        start: Nanos(start),
        end: end.map(Nanos),
        open: false,
        correlation: CorrelationId::NONE,
        arguments: &[],
        flows: &[],
    };
    let consumer = &mut *stream.consumer;
    // A slice inside another one, with values that became known at its end, and an instant at the same time.
    consumer.slice(&Slice {
        open: true,
        arguments: &list,
        flows: &[flow(1, false)],
        ..slice(slices, "outer", 5_000_001_000, Some(5_000_009_000))
    })?;
    consumer.slice(&Slice {
        open: true,
        correlation: CorrelationId(77),
        ..slice(slices, "inner", 5_000_001_000, Some(5_000_002_000))
    })?;
    consumer.instant(&Instant {
        track: slices,
        name: "now",
        category: "things",
        time: Nanos(5_000_001_000),
        arguments: &list[..2],
        flows: &[flow(1, true)],
    })?;
    consumer.end_slice(&SliceEnd {
        track: slices,
        time: Nanos(5_000_002_000),
        arguments: &list[3..],
        flows: &[flow(2, false)],
    })?;
    consumer.end(slices, Nanos(5_000_009_000))?;
    consumer.slice(&slice(inner, "apart", 5_000_003_000, Some(5_000_003_000)))?;
    consumer.slice(&slice(inner, "without an end", 5_000_004_000, None))?;
    consumer.slice(&slice(ranges, "range", 5_000_001_500, Some(5_000_008_000)))?;
    consumer.slice(&Slice {
        open: true,
        end: None,
        ..slice(markers, "pushed", 5_000_001_000, None)
    })?;
    consumer.end(markers, Nanos(5_000_008_500))?;
    let parameter = |(name, kind): (&str, _)| Parameter {
        name: name.into(),
        kind,
    };
    let function = |index, name: &str, domain, category: Option<&str>, parameters: &[_]| Function {
        index: FunctionIndex(index),
        name: name.into(),
        domain,
        category: category.map(Into::into),
        group: OperationGroup::OTHER,
        parameters: parameters.iter().copied().map(parameter).collect(),
    };
    let enqueue = function(
        0,
        "clEnqueue",
        Domain::OPENCL,
        None,
        &[
            ("size", ArgumentType::UNSIGNED),
            ("name", ArgumentType::STRING),
        ],
    );
    let launch = function(1, "launch", Domain::CUDA_RUNTIME, Some("cuda_runtime"), &[]);
    let call = |function, start: u64, end: Option<u64>, id| Call {
        process,
        thread: ThreadId(43),
        track: thread,
        function,
        start: Nanos(start),
        end: end.map(Nanos),
        open: false,
        nested: false,
        correlation: CorrelationId(id),
        external: ExternalId::NONE,
        error: None,
        submitted: &[],
        waited: &[],
        arguments: &[],
        flows: &[],
    };
    consumer.call(&Call {
        open: true,
        submitted: &[EventId(1 << 40 | 1)],
        arguments: &[Value::Uint(1 << 33), Value::Text("saxpy")],
        external: ExternalId(9),
        ..call(&enqueue, 5_000_001_000, Some(5_000_002_000), 1 << 33 | 5)
    })?;
    consumer.call(&Call {
        nested: true,
        error: Some(-5),
        ..call(&launch, 5_000_001_200, Some(5_000_001_300), 6)
    })?;
    consumer.end(thread, Nanos(5_000_002_000))?;
    consumer.call(&Call {
        track: rows,
        waited: &[EventId(1 << 40 | 1)],
        flows: &[flow(2, true)],
        ..call(&launch, 5_000_001_100, Some(5_000_005_000), 0)
    })?;
    consumer.slice(&slice(
        thread,
        "no call",
        5_000_006_000,
        Some(5_000_006_500),
    ))?;
    consumer.call(&call(&launch, 5_000_007_000, None, 8))?;
    let queue = |name, out_of_order| Queue {
        process,
        agent: AgentIndex(0),
        context: ContextId(1),
        domain: Domain::OPENCL,
        name,
        out_of_order,
    };
    let queues = [
        stream.new_queue(&queue("queue 00", true))?,
        stream.new_queue(&queue("queue 01", false))?,
    ];
    let samples = WorkSamples {
        samples: 9,
        dropped: 2,
        leading: "issued 50 %".into(),
    };
    let work = Work {
        process,
        thread: ThreadId(43),
        correlation: CorrelationId(1 << 33 | 5),
        event: Some(EventId(1 << 40 | 1)),
        agent: AgentIndex(0),
        queue: queues[0],
        stream: 3,
        stage: Stage {
            id: StageId(1),
            kind: WorkKind::Kernel,
            name: "saxpy",
            demangled: "void saxpy(float*)",
            architecture: "gfx90a",
        },
        enqueued: Some(Nanos(5_000_001_000)),
        queued: Some(Nanos(5_000_001_500)),
        submitted: Some(Nanos(5_000_001_600)),
        interval: Some((Nanos(5_000_002_000), Nanos(5_000_003_000))),
        start: Some(Nanos(5_000_002_000)),
        duration: Some(1000),
        unfinished: None,
        launch: Some(Launch {
            grid: [100, 2, 3],
            workgroup: [64, 1, 1],
        }),
        resources: Resources {
            registers: 32,
            accumulation_registers: 8,
            scalar_registers: 96,
            static_local: 64,
            dynamic_local: 128,
            private: 16,
        },
        bytes: 0,
        status: -5,
        waits: &[],
        samples: Some(&samples),
        arguments: &[],
    };
    stream.consumer.work(&work)?;
    let arguments = [("External id", Value::Uint(4)), ("note", Value::Text("x"))];
    let arguments = arguments.map(|(name, value)| EventArgument { name, value });
    stream.consumer.work(&Work {
        thread: ThreadId::NONE,
        correlation: CorrelationId(12),
        event: Some(EventId(1 << 40 | 2)),
        queue: queues[1],
        stream: 0,
        stage: Stage {
            id: StageId(2),
            kind: WorkKind::Copy,
            name: "Memcpy HtoD",
            demangled: "",
            architecture: "",
        },
        enqueued: None,
        queued: None,
        submitted: None,
        interval: None,
        duration: Some(7),
        unfinished: Some("not complete"),
        launch: None,
        resources: Resources::default(),
        bytes: 1 << 40,
        status: 0,
        waits: &[EventId(1 << 40 | 1)],
        samples: None,
        arguments: &arguments,
        ..work
    })?;
    let block = stream.new_counters();
    let counter = |name: &str, unit| CounterDescription {
        name: name.into(),
        description: "how much".into(),
        unit,
    };
    let described = CounterBlock {
        name: "kernels".into(),
        process,
        agent: AgentIndex(0),
        memory: true,
        over_time: false,
        counters: vec![
            counter("kernels", CounterUnit::Count),
            counter("occupied %", CounterUnit::Percent),
        ],
    };
    stream.consumer.counters(block, &described)?;
    let values = [CounterValue::Int(3), CounterValue::Double(0.5)];
    stream
        .consumer
        .counter_values(block, Nanos(5_000_002_000), &values)?;
    stream.consumer.clocks(&clocks(6))?;
    let frame = |name: &str| StackFrame {
        name: name.into(),
        mapping: "app".into(),
    };
    stream
        .consumer
        .stack(flame, StackIndex(0), &[frame("queue"), frame("saxpy")])?;
    // Whole microseconds of CLOCK_MONOTONIC.
    let times = [5_000_007_500, 6_000_008_500].map(|time| (Nanos(time), StackIndex(0)));
    stream.consumer.stack_samples(&StackSamples {
        track: flame,
        samples: &times,
    })?;
    stream.consumer.samples(&sampled(process))?;
    let loss = Loss {
        process: Some(process),
        thread: ThreadId::NONE,
        track: None,
        kind: Kind::API,
        count: 12,
        first: Nanos(5_000_000_001),
        last: Nanos(5_000_000_002),
        time: Nanos(5_000_000_002),
    };
    stream.consumer.loss(&loss)?;
    stream.consumer.loss(&Loss {
        process: None,
        track: Some(thread),
        count: 3,
        kind: Kind(0),
        ..loss
    })?;
    stream.consumer.note(&Note {
        process,
        time: Nanos(5_000_000_001),
        name: "recording",
        arguments: &[argument("clock", "own"), list[4]],
    })?;
    stream.consumer.note(&Note {
        process,
        time: Nanos(5_000_000_002),
        name: NoteKind::ENDED_EARLY.name().unwrap(),
        arguments: &[argument("detail", "the disk is full")],
    })?;
    stream.consumer.note(&Note {
        process,
        time: Nanos(5_000_000_002),
        name: NoteKind::DIED.name().unwrap(),
        arguments: &[argument("detail", "by a signal")],
    })?;
    stream.consumer.finish()
}

/// Counts of samples at two addresses of a kernel.
fn sampled(process: ProcessIndex) -> Samples {
    let (waiting, issued) = (
        WaveOutcome::from_code(0x0001_0102),
        WaveOutcome::from_code(0x0002),
    );
    let counted = |outcome, samples, latency| OutcomeCount {
        outcome,
        samples,
        latency,
    };
    let (agent, kernel) = (AgentId(0x10), KernelId(0x20));
    let count = |address, outcomes: &[_]| SampleCount {
        agent,
        kernel,
        address,
        outcomes: outcomes.to_vec(),
    };
    let address = |id| CodeAddress {
        id,
        code_object: CodeObjectId(0x30),
        offset: u64::from(id) * 8,
        symbol: 1,
        ..CodeAddress::default()
    };
    Samples {
        sampler: SamplerIndex(0),
        process: Some(process),
        texts: vec![(1, "saxpy".into())],
        agents: vec![(agent, "CPU 0".into())],
        kernels: vec![(kernel, "saxpy".into())],
        code_objects: vec![(CodeObjectId(0x30), "saxpy.so".into())],
        addresses: vec![address(1), address(2)],
        counts: vec![
            count(1, &[counted(waiting, 3, 1), counted(issued, 40, 0)]),
            count(2, &[counted(issued, 500, 0)]),
        ],
        executions: vec![ExecutionCount {
            agent,
            kernel,
            address: 2,
            executions: Executions {
                executed: 90,
                threads: 900,
                diverged: 3,
                transactions: 70,
                ideal_transactions: 35,
            },
        }],
        totals: vec![SampleTotals {
            agent,
            kernel,
            method: SamplingMethod::STOCHASTIC,
            dispatches: 1,
            samples: 550,
            dropped: 5,
        }],
        configurations: vec![AgentConfiguration {
            agent,
            method: SamplingMethod::STOCHASTIC,
            unit: SamplingUnit::CYCLES,
            interval: 1024,
        }],
        invalid: 2,
        shown_one_of: Some(8),
        ..Samples::default()
    }
}

fn argument<'a>(name: &'a str, text: &'a str) -> EventArgument<'a> {
    EventArgument {
        name,
        value: Value::Text(text),
    }
}

/// The stream of a trace, and what was found in it.
pub(super) fn read_back(trace: &[u8]) -> (Vec<String>, Replayed) {
    let mut transcript = Transcript::default();
    let replayed = TraceReplay::new(trace)
        .produce(&mut transcript)
        .expect("a vector takes all");
    (transcript.sorted(), replayed)
}

#[test]
fn a_trace_is_read_as_the_stream_it_was_written_from() {
    let mut written = Transcript::default();
    let mut trace = Vec::new();
    everything(&mut (&mut written, &mut Exporter::new(&mut trace))).expect("a vector takes all");
    let (lines, replayed) = read_back(&trace);
    assert_eq!(replayed.left_out, []);
    let (written, missing): (Vec<_>, Vec<_>) = (written.sorted(), Vec::<String>::new());
    let absent = |these: &[String], those: &[String]| -> Vec<String> {
        these
            .iter()
            .filter(|line| !those.contains(line))
            .cloned()
            .collect()
    };
    assert_eq!(absent(&written, &lines), missing);
    assert_eq!(absent(&lines, &written), missing);
    assert_eq!(lines, written);
}

#[test]
fn a_trace_lists_its_contents() {
    let mut trace = Vec::new();
    everything(&mut Exporter::new(&mut trace)).expect("a vector takes all");
    let info = info(&trace[..]);
    assert_eq!(info.version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(
        (&info.writer[..], &info.host[..]),
        (concat!("gputrail ", env!("CARGO_PKG_VERSION")), "machine")
    );
    let (first, last) = info.span.expect("there are events");
    // Without the notes about the recording, which are earlier.
    assert_eq!((first.0, last.0), (5_000_001_000, 5_000_009_000));
    let counts = info.packets.iter();
    let counts: Vec<_> = counts.map(|(kind, (count, _))| (*kind, *count)).collect();
    use gputrail_trace::perfetto::schema::field::trace_packet::*;
    for (kind, count) in [(TRACK_EVENT, 30), (TRACK_DESCRIPTOR, 11), (PC_SAMPLES, 1)] {
        assert!(counts.contains(&(kind, count)), "{kind}: {counts:?}");
    }
    let bytes: u64 = info.packets.values().map(|(_, bytes)| bytes).sum();
    assert!((trace.len() * 9 / 10..=trace.len()).contains(&(bytes as usize)));
    let process = &info.processes[..];
    assert_eq!(
        format!("{process:?}"),
        r#"[ProcessInfo { pid: ProcessId(42), name: "app (rank 3 of 8)", threads: 1 }]"#
    );
    let devices = &info.devices;
    assert_eq!(
        format!("{devices:?}"),
        r#"[TraceDevice { title: "CPU 0", name: "a device", vendor: "v", work: 2, address: "0000:01:00.0", links: [] }]"#
    );
    let clocks = info.clocks.iter();
    let clocks: Vec<_> = clocks
        .map(|clock| (&clock.name[..], clock.snapshots))
        .collect();
    let names = ["REALTIME", "MONOTONIC", "MONOTONIC_RAW", "BOOTTIME"];
    assert_eq!(clocks, names.map(|name| (name, 2)));
    assert_eq!(info.device_clocks, ["own"]);
    assert_eq!((info.slices, info.open_slices, info.instants), (11, 2, 6));
    // Four on tracks, two of a device.
    assert_eq!((info.values, info.lost), (6, 15));
    assert_eq!((info.kernels, info.other_work, info.unfinished), (1, 1, 1));
    let dropped = (info.invalid_samples, info.dropped_samples);
    assert_eq!(
        (info.samples, dropped, info.samples_shown_one_of),
        (543, (2, 5), 8)
    );
    assert_eq!(info.attributes, [("key".to_owned(), "value".to_owned())]);
    let reason = "the disk is full".to_owned();
    assert_eq!(info.ended_early, [(Nanos(5_000_000_002), reason)]);
    assert_eq!(info.ends, ["by a signal"]);
    let notes: Vec<_> = info
        .notes
        .iter()
        .map(|(note, count)| (&note[..], *count))
        .collect();
    let ended = format!(
        "{}: the disk is full",
        NoteKind::ENDED_EARLY.name().unwrap()
    );
    let died = format!("{}: by a signal", NoteKind::DIED.name().unwrap());
    let mut expected = [(&ended[..], 1), (&died[..], 1), ("records lost", 2)];
    expected.sort_unstable();
    assert_eq!(notes, expected);
    let outcome = check(&trace[..]);
    let mut findings: Vec<_> = outcome
        .findings
        .list()
        .iter()
        .map(|one| &one.what[..])
        .collect();
    findings.sort_unstable();
    assert_eq!(
        findings,
        [
            "15 records lost while recording",
            "no call names the work 0x10000000002 as its own",
            "the recording is incomplete from 5000000002 ns on: the disk is full",
        ]
    );
}

#[test]
fn a_trace_that_is_written_again_says_the_same() {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    everything(&mut Exporter::new(&mut first)).expect("a vector takes all");
    let replay = TraceReplay::new(&first[..]);
    replay
        .produce(&mut Exporter::new(&mut second))
        .expect("a vector takes all");
    assert_eq!(read_back(&first).0, read_back(&second).0);
}

/// An event on one of three tracks, and the time since the event before it.
#[derive(Copy, Clone, Debug)]
enum Happening {
    Begins,
    Ends,
    Instant,
}

/// Passes on slices and instants that happen in this order. All slices end.
fn nested(consumer: &mut dyn Consumer, list: &[(usize, Happening, u64)]) -> io::Result<()> {
    consumer.begin(&TraceHeader::default())?;
    let mut stream = Stream::new(consumer);
    let process = ProcessIndex(0);
    stream.consumer.process(
        process,
        &Process {
            pid: ProcessId(42),
            name: "app",
            rank: "",
            command: &[],
            order: None,
        },
    )?;
    let mut track = |parent, name, kind| {
        stream.new_track(&Track {
            parent,
            name,
            kind,
            order: None,
        })
    };
    let ranges = TrackKind::ThreadRanges(process, ThreadId(43));
    let thread = TrackKind::Thread(process, ThreadId(43));
    let thread = track(Parent::Process(process), "main", thread)?;
    let tracks = [
        track(Parent::Trace, "slices", TrackKind::Slices)?,
        track(Parent::Track(thread), "rows", TrackKind::Slices)?,
        track(Parent::Track(thread), "markers", ranges)?,
    ];
    let mut open = [0_u32; 3];
    let mut now = 1_000_000_000;
    let ending = (0..3).flat_map(|place| vec![(place, Happening::Ends, 1); list.len()]);
    for (number, (place, happening, after)) in list.iter().copied().chain(ending).enumerate() {
        let track = tracks[place];
        match happening {
            Happening::Ends if open[place] == 0 => continue,
            Happening::Ends => {
                open[place] -= 1;
                now += after;
                stream.consumer.end(track, Nanos(now))?;
            }
            Happening::Begins => {
                open[place] += 1;
                now += after;
                stream.consumer.slice(&Slice {
                    track,
                    name: &format!("slice {number}"),
                    category: "things",
                    start: Nanos(now),
                    end: None,
                    open: true,
                    correlation: CorrelationId::NONE,
                    arguments: &[argument("depth", &open[place].to_string())],
                    flows: &[],
                })?;
            }
            Happening::Instant => {
                now += after;
                stream.consumer.instant(&Instant {
                    track,
                    name: &format!("instant {number}"),
                    category: "things",
                    time: Nanos(now),
                    arguments: &[],
                    flows: &[],
                })?;
            }
        }
    }
    stream.consumer.finish()
}

/// The slices of a stream, each with the number of slices around it and with the number that its arguments say.
#[derive(Default)]
struct Depths {
    open: HashMap<TrackIndex, usize>,
    found: Vec<(String, String, String)>,
}

impl Consumer for Depths {
    gputrail_trace::leave_out!(
        clocks attributes agents process track queue counters call instant work value counter_values samples stack
        stack_samples loss note
    );

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        let open = self.open.entry(slice.track).or_default();
        let depth = (*open + 1).to_string();
        *open += usize::from(slice.open);
        let said = match slice.arguments {
            [
                EventArgument {
                    value: Value::Text(said),
                    ..
                },
            ] => (*said).to_owned(),
            other => format!("{other:?}"),
        };
        self.found.push((slice.name.to_owned(), depth, said));
        Ok(())
    }

    fn end(&mut self, track: TrackIndex, _: Nanos) -> io::Result<()> {
        *self.open.entry(track).or_default() -= 1;
        Ok(())
    }
}

proptest! {
    #[test]
    fn json_keeps_the_nesting_of_slices_that_take_time(
        mut list in prop::collection::vec(
            (
                0_usize..3,
                prop_oneof![Just(Happening::Begins), Just(Happening::Ends), Just(Happening::Instant)],
                0_u64..3,
            ),
            0..60,
        ),
    ) {
        // Slices that end together are fine, but each takes some time.
        let (mut open, mut follows_end) = ([0_u32; 3], false);
        list.retain_mut(|(track, happening, after)| {
            let is_end = matches!(happening, Happening::Ends);
            if is_end && open[*track] == 0 {
                return false;
            }
            match happening {
                Happening::Begins => open[*track] += 1,
                Happening::Ends => open[*track] -= 1,
                Happening::Instant => {}
            }
            if is_end && !follows_end {
                *after = (*after).max(1);
            }
            follows_end = is_end;
            true
        });
        let mut json = gputrail_convert::export::ChromeWriter::new(Vec::new());
        let mut written = Depths::default();
        nested(&mut (&mut written, &mut json), &list).expect("a vector takes all");
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        io::Write::write_all(&mut file, &json.into_inner()).expect("room");
        let mut read = Depths::default();
        let inputs = gputrail_convert::import::Inputs::open(&[file.path()]).expect("JSON");
        let report = inputs.produce(&mut read).expect("it takes all");
        prop_assert!(report.is_sound() && report.unrepresented.is_empty(), "{:?}", report.unrepresented);
        for (name, depth, said) in &read.found {
            prop_assert_eq!(depth, said, "{}", name);
        }
        prop_assert_eq!(read.found.len(), written.found.len());
    }
}

proptest! {
    #[test]
    fn slices_and_instants_keep_their_nesting(
        list in prop::collection::vec(
            (
                0_usize..3,
                prop_oneof![Just(Happening::Begins), Just(Happening::Ends), Just(Happening::Instant)],
                0_u64..3,
            ),
            0..60,
        ),
    ) {
        let mut written = Transcript::default();
        let mut trace = Vec::new();
        nested(&mut (&mut written, &mut Exporter::new(&mut trace)), &list).expect("a vector takes all");
        let (lines, replayed) = read_back(&trace);
        prop_assert!(replayed.left_out.is_empty(), "{:?}", replayed.left_out);
        let ours = |lines: Vec<String>| -> Vec<String> {
            let kinds = ["slice", "instant"];
            lines.into_iter().filter(|line| kinds.iter().any(|kind| line.starts_with(kind))).collect()
        };
        prop_assert_eq!(ours(lines), ours(written.sorted()));
    }
}

/// The packets of another program: two threads of a process write slices of one track, later ones first.
fn foreign() -> Vec<TracePacket> {
    let packet = |sequence, timestamp, data| TracePacket {
        trusted_packet_sequence_id: Some(sequence),
        timestamp: Some(timestamp),
        data: Some(data),
        ..TracePacket::default()
    };
    let event = |kind: track_event::Type, name: &str| TrackEvent {
        r#type: Some(kind as i32),
        track_uuid: Some(9),
        name_field: (!name.is_empty()).then(|| track_event::NameField::Name(name.into())),
        ..TrackEvent::default()
    };
    let clock = |clock_id| clock_snapshot::Clock {
        clock_id: Some(clock_id),
        timestamp: Some(500),
        ..Default::default()
    };
    let clocks = ClockSnapshot {
        clocks: vec![clock(6), clock(3)],
        ..ClockSnapshot::default()
    };
    let track = TrackDescriptor {
        uuid: Some(9),
        name: Some("asynchronous".into()),
        ..TrackDescriptor::default()
    };
    let nested = |name: &str, value| DebugAnnotation {
        name_field: Some(debug_annotation::NameField::Name(name.into())),
        value,
    };
    let begin = TrackEvent {
        debug_annotations: vec![nested("count", Some(debug_annotation::Value::IntValue(-3)))],
        ..event(track_event::Type::SliceBegin, "first")
    };
    vec![
        packet(1, 500, Data::ClockSnapshot(clocks)),
        packet(1, 500, Data::TrackDescriptor(track)),
        packet(
            1,
            2_000,
            Data::TrackEvent(event(track_event::Type::SliceEnd, "")),
        ),
        packet(
            1,
            3_000,
            Data::TrackEvent(event(track_event::Type::SliceBegin, "second")),
        ),
        packet(2, 1_000, Data::TrackEvent(begin)),
        packet(
            2,
            4_000,
            Data::TrackEvent(event(track_event::Type::SliceEnd, "")),
        ),
    ]
}

/// The bytes of packets, and of one of a kind that gputrail does not know.
fn encoded(packets: &[TracePacket]) -> Vec<u8> {
    let mut trace = Encoder::default();
    for packet in packets {
        trace.raw(1, &packet.encode_to_vec());
    }
    let unknown = trace.open(1);
    trace.uint(10, 3);
    trace.raw(77, b"of another program");
    trace.close(unknown);
    trace.bytes().to_vec()
}

#[test]
fn events_of_other_programs_are_put_in_order_and_unknown_packets_are_counted() {
    let trace = encoded(&foreign());
    let (lines, replayed) = read_back(&trace);
    let slices: Vec<&String> = lines
        .iter()
        .filter(|line| line.starts_with("slice"))
        .collect();
    assert_eq!(
        slices,
        [
            "slice trace/Slices/asynchronous first  1000 0 count=Int(-3) [] end Some(Nanos(2000))",
            "slice trace/Slices/asynchronous second  3000 0 [] end Some(Nanos(4000))",
        ]
    );
    let [left_out] = &replayed.left_out[..] else {
        panic!("{:?}", replayed.left_out);
    };
    assert_eq!(
        (left_out.count, &*left_out.reason),
        (1, "packet of kind 77")
    );
    let offset = encoded(&foreign()[..0]).len();
    assert_eq!(left_out.first[0].offset, (trace.len() - offset) as u64);
}

/// An event that also has values of two counters, of which the second counts fractions.
fn with_further_values() -> Vec<u8> {
    let described = |uuid, track: TrackDescriptor| TracePacket {
        data: Some(Data::TrackDescriptor(TrackDescriptor {
            uuid: Some(uuid),
            ..track
        })),
        trusted_packet_sequence_id: Some(1),
        timestamp: Some(500),
        ..TracePacket::default()
    };
    // Descriptions of a track add up.
    let counter = |uuid, name: &str| {
        let name = TrackDescriptor {
            name: Some(name.into()),
            ..TrackDescriptor::default()
        };
        let counter = TrackDescriptor {
            counter: Some(CounterDescriptor::default()),
            ..TrackDescriptor::default()
        };
        let parent = TrackDescriptor {
            parent_uuid: Some(9),
            ..TrackDescriptor::default()
        };
        [name, counter, parent].map(|track| described(uuid, track))
    };
    let mut trace = Encoder::default();
    for packet in [counter(20, "whole"), counter(21, "fraction")].as_flattened() {
        trace.raw(1, &packet.encode_to_vec());
    }
    let packet = trace.open(1);
    trace.uint(8, 1_000);
    trace.uint(10, 1);
    let event = trace.open(11);
    trace.uint(9, track_event::Type::Instant as u64);
    trace.uint(11, 9);
    trace.raw(23, b"with values");
    for (tracks, uuid) in [(31, 20), (45, 21)] {
        trace.uint(tracks, uuid);
    }
    trace.uint(12, 7);
    trace.double(46, 0.5);
    trace.close(event);
    trace.close(packet);
    trace.bytes().to_vec()
}

#[test]
fn values_of_counters_beside_an_event_are_read() {
    let trace = [encoded(&foreign()), with_further_values()].concat();
    let (lines, _) = read_back(&trace);
    let values: Vec<_> = lines
        .iter()
        .filter(|line| line.starts_with("value"))
        .collect();
    assert_eq!(
        values,
        [
            "value trace/Slices/asynchronous/Counter(Unspecified)/fraction 1000 Double(0.5)",
            "value trace/Slices/asynchronous/Counter(Unspecified)/whole 1000 Int(7)",
        ]
    );
    let instants = lines.iter().filter(|line| line.starts_with("instant"));
    assert_eq!(instants.count(), 1);
}

#[test]
fn a_copy_has_every_packet_byte_for_byte() {
    let trace = encoded(&foreign());
    let mut copied = Vec::new();
    let findings = merge::copy(&trace[..], &mut copied).expect("a vector takes all");
    assert_eq!((findings, &copied), (vec![], &trace));
    let damaged = [&trace[..], &[0xff; 9], &trace].concat();
    copied.clear();
    let findings = merge::copy(&damaged[..], &mut copied).expect("a vector takes all");
    assert_eq!((findings.len(), copied), (1, [&trace[..], &trace].concat()));
}
