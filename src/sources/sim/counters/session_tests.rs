//! Sessions of counters on the demo's devices.

use super::tests::{DISPATCH, run};
use crate::sim::TrainingRun;
use gputrail_buffer::clock::TickSource;
use gputrail_capture::Writer;
use gputrail_collect::context::{
    BufferOptions, Context, CounterSessions, OperationSet, Payload, RecordBuffer, RecordSelection,
    Subscriber,
};
use gputrail_collect::recorder::{Recorder, RecorderOptions};
use gputrail_interface::counting::{Number, SessionOptions};
use gputrail_interface::operations::Phase;
use gputrail_interface::operations::kernel_dispatch;
use gputrail_record::{AgentId, KernelDispatch, Kind};
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

const DEMO: TrainingRun = TrainingRun { seed: 5, steps: 1 };
const AGENT: AgentId = AgentId(1);
/// Counters that follow from a kernel's program and size, whenever it runs.
const NAMES: [&str; 5] = [
    "SQ_WAVES",
    "SQ_INSTS_VALU",
    "SQ_INSTS_LDS",
    "TCC_EA_RDREQ",
    "TCC_MISS",
];
/// Kernels of a sample. Each pass has two samples.
const KERNELS: usize = 5;

/// A kernel and its size, on which its counts depend.
type Shape = (u32, [u64; 3], [u32; 3]);

fn shape(kernel: &KernelDispatch) -> Shape {
    (kernel.kernel.0, kernel.grid, kernel.workgroup)
}

/// The session in progress: the kernels of each sample of each pass.
#[derive(Default)]
struct Progress {
    passes: Vec<[Vec<Shape>; 2]>,
    has_ended: bool,
}

impl Progress {
    /// Notes a kernel, and begins the next sample or pass after enough of them.
    fn enqueued(&mut self, sessions: &CounterSessions, kernel: &KernelDispatch, passes: usize) {
        if self.has_ended {
            return;
        }
        let of_pass = self.passes.last_mut().unwrap();
        let place = usize::from(of_pass[0].len() == KERNELS);
        of_pass[place].push(shape(kernel));
        if of_pass[place].len() < KERNELS {
            return;
        }
        sessions.end_sample().unwrap();
        if place == 0 {
            return sessions.begin_sample(20).unwrap();
        }
        sessions.end_pass().unwrap();
        if self.passes.len() < passes {
            self.passes.push(Default::default());
            sessions.begin_pass().unwrap();
            return sessions.begin_sample(10).unwrap();
        }
        sessions.end().unwrap();
        self.has_ended = true;
        // The kernel that was enqueued last has not ended.
        assert!(!sessions.is_ready(1).unwrap());
        assert!(!sessions.is_sample_ready(1, 20).unwrap());
    }
}

/// A recorder whose file is in `directory`.
fn recorder(directory: &Path) -> Recorder {
    let options = RecorderOptions {
        ticks: TickSource::Virtual,
        ..RecorderOptions::default()
    };
    let header = Recorder::file_header(options.ticks, TrainingRun::PROCESS);
    let writer = Writer::create(&directory.join("demo.gputrail"), &header).unwrap();
    Recorder::start(&options, None, writer).unwrap()
}

/// Has `act` called for each kernel of the agent that is enqueued.
fn on_kernels(
    recorder: &Recorder,
    act: impl Fn(&KernelDispatch) + Send + Sync + 'static,
) -> (Context, Subscriber) {
    let context = Context::on(recorder.board()).unwrap();
    let mut enqueues = OperationSet::default();
    enqueues.set(kernel_dispatch::ENQUEUE, true);
    let subscriber = context.call_back(enqueues, move |callback| {
        if let (Phase::Enter, Payload::Record(record)) = (callback.phase, callback.payload)
            && let Some(kernel) = record.read::<KernelDispatch>()
            && kernel.work.agent == AGENT
        {
            act(&kernel);
        }
    });
    let subscriber = subscriber.unwrap();
    context.start().unwrap();
    (context, subscriber)
}

#[test]
fn a_sample_of_several_passes_is_the_sum_of_its_kernels() {
    // The counts of each kernel, counted one by one in another run.
    let alone = run(&NAMES, DISPATCH).unwrap();
    let mut counts = HashMap::<Shape, [f64; NAMES.len()]>::new();
    let of_each = NAMES.map(|name| alone.of(name));
    for kernel in &alone.kernels {
        let values = of_each.each_ref().map(|values| values[&kernel.work.id]);
        let known = counts.entry(shape(kernel)).or_insert(values);
        assert_eq!(*known, values, "they follow from the kernel alone");
    }

    let directory = tempfile::tempdir().unwrap();
    let recorder = recorder(directory.path());
    let simulation = DEMO.prepare(&recorder);
    let limit = NonZeroU32::new(2);
    let asked = SessionOptions {
        per_pass: limit,
        ..SessionOptions::default()
    };
    let sessions = Arc::new(CounterSessions::on(recorder.board(), AGENT, asked).unwrap());
    for name in NAMES {
        sessions.enable(sessions.find(name).unwrap()).unwrap();
    }
    let set = recorder.board().counting().set(AGENT, &NAMES, limit);
    let set = set.unwrap();
    let passes = sessions.passes().unwrap() as usize;
    assert_eq!((set.passes().len(), passes), (3, 3));

    assert_eq!(sessions.begin().unwrap(), 1);
    sessions.begin_pass().unwrap();
    sessions.begin_sample(10).unwrap();
    let progress = Arc::new(Mutex::new(Progress {
        passes: vec![Default::default()],
        has_ended: false,
    }));
    let (counted, into) = (sessions.clone(), progress.clone());
    let (_context, subscriber) = on_kernels(&recorder, move |kernel| {
        let mut progress = into.lock().unwrap();
        progress.enqueued(&counted, kernel, passes);
    });
    simulation.run().unwrap();
    assert!(subscriber.is_subscribed(), "its callback did not panic");
    let progress = progress.lock().unwrap();
    assert!(progress.has_ended);
    assert!(sessions.is_ready(1).unwrap());
    assert_eq!(sessions.samples(1).unwrap(), 2);

    for (place, sample) in [(0, 10), (1, 20)] {
        let values: HashMap<u32, Number> = sessions
            .values(1, sample)
            .unwrap()
            .into_iter()
            .map(|(counter, value)| (counter, value.unwrap()))
            .collect();
        assert_eq!(values.len(), NAMES.len());
        for (of, name) in NAMES.iter().enumerate() {
            let index = set.architecture().find(name).unwrap();
            let counts_it = |pass: &Vec<_>| pass.iter().any(|(counter, _)| *counter == index);
            let pass = set.passes().iter().position(counts_it).unwrap();
            let kernels = &progress.passes[pass][place];
            assert_eq!(kernels.len(), KERNELS);
            let expected: f64 = kernels.iter().map(|shape| counts[shape][of]).sum();
            let counter = sessions.find(name).unwrap();
            assert_eq!(values[&counter], Number::Uint(expected as u64), "{name}");
        }
    }
    let waves = sessions.find("SQ_WAVES").unwrap();
    assert!(sessions.value(1, 10, waves).unwrap() != Number::Uint(0));
    drop(subscriber);
    recorder.finish().unwrap();
}

#[test]
fn samples_that_change_within_a_launch_of_a_graph_become_ready() {
    let alone = run(&["SQ_WAVES"], DISPATCH).unwrap();
    let of_each = alone.of("SQ_WAVES");
    let of_agent = |kernel: &&KernelDispatch| kernel.work.agent == AGENT;
    let kernels = alone.kernels.iter().filter(of_agent);
    let expected: f64 = kernels.map(|kernel| of_each[&kernel.work.id]).sum();

    let directory = tempfile::tempdir().unwrap();
    let recorder = recorder(directory.path());
    let simulation = DEMO.prepare(&recorder);
    let asked = SessionOptions::default();
    let sessions = Arc::new(CounterSessions::on(recorder.board(), AGENT, asked).unwrap());
    let waves = sessions.find("SQ_WAVES").unwrap();
    sessions.enable(waves).unwrap();
    sessions.begin().unwrap();
    sessions.begin_pass().unwrap();
    sessions.begin_sample(0).unwrap();
    let counted = sessions.clone();
    let changes = AtomicU32::new(0);
    let (_context, subscriber) = on_kernels(&recorder, move |_| {
        let before = changes.fetch_add(1, Ordering::Relaxed);
        counted.end_sample().unwrap();
        counted.begin_sample(before + 1).unwrap();
    });
    simulation.run().unwrap();
    assert!(subscriber.is_subscribed(), "its callback did not panic");
    sessions.end_sample().unwrap();
    sessions.end_pass().unwrap();
    sessions.end().unwrap();
    assert!(sessions.is_ready(1).unwrap());
    let of_sample = |sample| match sessions.value(1, sample, waves).unwrap() {
        Number::Uint(value) => value as f64,
        Number::Double(value) => value,
    };
    let samples = sessions.samples(1).unwrap();
    assert_eq!((0..samples).map(of_sample).sum::<f64>(), expected);
    drop(subscriber);
    recorder.finish().unwrap();
}

#[test]
fn each_pass_of_a_kernel_is_reported_when_it_has_run() {
    let directory = tempfile::tempdir().unwrap();
    let recorder = recorder(directory.path());
    let simulation = DEMO.prepare(&recorder);
    let board = recorder.board();
    let buffer = RecordBuffer::on(board, BufferOptions::default(), |_| {}).unwrap();
    let context = Context::on(board).unwrap();
    let kernels = RecordSelection::kinds(&[Kind::KERNEL_DISPATCH, Kind::COMPLETION]);
    context.trace_to(&buffer, kernels).unwrap();
    // Both agents, by the request for all of them.
    let limit = NonZeroU32::new(2).unwrap();
    context
        .count_in_passes(&buffer, AgentId::ALL, &NAMES, limit)
        .unwrap();
    let mut operations = OperationSet::default();
    operations.set(kernel_dispatch::COMPLETE, true);
    operations.set(kernel_dispatch::REPLAY, true);
    // By call: the passes that were told, and whether the kernel had completed by then.
    let told = Arc::new(Mutex::new(Vec::new()));
    let into = told.clone();
    let subscriber = context.call_back(operations, move |callback| {
        let told = &mut *into.lock().unwrap();
        let of = (callback.correlation, callback.kernel);
        match callback.payload {
            Payload::Replay { done, passes } => told.push((of, Some((done, passes)))),
            _ => told.push((of, None)),
        }
    });
    let _subscriber = subscriber.unwrap();
    context.start().unwrap();
    simulation.run().unwrap();
    context.stop().unwrap();
    let told = told.lock().unwrap();
    let completed = told.iter().filter(|(_, passes)| passes.is_none()).count();
    assert!(completed > 100, "{completed}");
    // Kernels of graphs have one call, and children are counted with the kernels that launch them.
    let last = told.iter().filter(|(_, passes)| *passes == Some((3, 3)));
    assert!(last.count() * 2 > completed);
    for passes in told.windows(4) {
        if let [(of, Some((1, 3))), second, third, complete] = passes {
            assert_eq!(*second, (*of, Some((2, 3))));
            assert_eq!(*third, (*of, Some((3, 3))));
            assert_eq!(*complete, (*of, None));
            assert!(of.1.is_some());
        }
    }
}
