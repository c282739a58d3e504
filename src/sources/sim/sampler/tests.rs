//! Samples of the demo, as its capture and tools get them.

use super::*;
use crate::sim::compute_units::unit_of;
use crate::sim::{Simulation, TrainingRun};
use gputrail_buffer::clock::TickSource;
use gputrail_capture::{Reader, Writer};
use gputrail_collect::context::{BufferOptions, Context, RecordBuffer, ToolError};
use gputrail_collect::recorder::RecorderOptions;
use gputrail_collect::sampling::SamplingError;
use gputrail_collect::scope::Scope;
use gputrail_collect::switchboard::RecordSelection;
use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;

const STOCHASTIC: Request = Request {
    method: SamplingMethod::STOCHASTIC,
    unit: SamplingUnit::CYCLES,
    interval: 1 << 14,
};
const HOST_TRAP: Request = Request {
    method: SamplingMethod::HOST_TRAP,
    unit: SamplingUnit::TIME,
    interval: 20_000,
};
const DEMO: TrainingRun = TrainingRun { seed: 5, steps: 1 };

fn recorder(path: &Path, sampling: Option<Request>) -> Recorder {
    let options = RecorderOptions {
        ticks: TickSource::Virtual,
        scope: Scope {
            sampling,
            ..Scope::default()
        },
        ..RecorderOptions::default()
    };
    let header = Recorder::file_header(options.ticks, TrainingRun::PROCESS);
    let writer = Writer::create(path, &header).unwrap();
    Recorder::start(&options, None, writer).unwrap()
}

/// The recorded samples of a run.
#[derive(Default)]
struct Run {
    bytes: Vec<u8>,
    /// Kernels by what people call them.
    names: HashMap<KernelId, String>,
    kernels: HashMap<WorkId, KernelDispatch>,
    completions: HashMap<WorkId, Completion>,
    host_trap: Vec<HostTrapSample>,
    stochastic: Vec<StochasticSample>,
    invalid: Vec<InvalidSample>,
    totals: HashMap<WorkId, SamplingTotals>,
    aggregates: Vec<SampleAggregate>,
    locators: Vec<SourceLocator>,
    instructions: Vec<InstructionCorrelation>,
}

impl Run {
    fn of(request: Request) -> Run {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("demo.gputrail");
        let recorder = recorder(&path, Some(request));
        DEMO.run(&recorder).unwrap();
        recorder.finish().unwrap();
        let reader = Reader::open(&path).unwrap();
        let mut run = Run {
            bytes: std::fs::read(&path).unwrap(),
            names: recorder
                .names()
                .all::<KernelSymbol>()
                .into_iter()
                .map(|symbol| (symbol.id, recorder.names().text(symbol.demangled).unwrap()))
                .collect(),
            ..Run::default()
        };
        let mut chunks = reader.chunks();
        while let Some(chunk) = chunks.next() {
            chunk.records().for_each(|record| run.add(&record));
        }
        run
    }

    fn add(&mut self, record: &RecordRef<'_>) {
        match record.activity() {
            Activity::KernelDispatch(one) => drop(self.kernels.insert(one.work.id, *one)),
            Activity::Completion(one) => drop(self.completions.insert(one.work, *one)),
            Activity::HostTrapSample(one) => self.host_trap.push(*one),
            Activity::StochasticSample(one) => self.stochastic.push(*one),
            Activity::InvalidSample(one) => self.invalid.push(*one),
            Activity::SampleAggregate(one) => self.aggregates.push(*one),
            Activity::SourceLocator(one) => self.locators.push(*one),
            Activity::InstructionCorrelation(one) => self.instructions.push(*one),
            Activity::SamplingTotals(one) => {
                let second = self.totals.insert(one.work, *one);
                assert!(second.is_none(), "{:?} has two totals", one.work);
            }
            _ => {}
        }
    }

    /// Samples that came, by dispatch.
    fn samples(&self) -> HashMap<WorkId, u64> {
        let mut samples = HashMap::new();
        let works = self.host_trap.iter().map(|one| one.work);
        let works = works.chain(self.stochastic.iter().map(|one| one.work));
        for work in works.chain(self.invalid.iter().map(|one| one.work)) {
            *samples.entry(work).or_insert(0) += 1;
        }
        samples
    }

    /// Of each dispatch, what came and what was dropped is what there was.
    fn totals_add_up(&self) {
        let mut samples = self.samples();
        for aggregate in &self.aggregates {
            *samples.entry(aggregate.work).or_insert(0) += aggregate.samples;
        }
        assert!(samples.keys().all(|work| self.totals.contains_key(work)));
        for totals in self.totals.values() {
            let came = samples.get(&totals.work).copied().unwrap_or(0);
            assert_eq!(came + totals.dropped, totals.total, "{totals:?}");
        }
        let dispatched = self.kernels.len();
        assert_eq!(self.totals.len(), dispatched);
    }
}

/// One run for all tests that only read its records.
fn stochastic() -> &'static Run {
    static RUN: OnceLock<Run> = OnceLock::new();
    RUN.get_or_init(|| Run::of(STOCHASTIC))
}

#[test]
fn every_sample_lies_within_its_dispatch_and_is_whole() {
    let run = stochastic();
    assert!(run.stochastic.len() > 10_000 && run.host_trap.is_empty());
    for sample in &run.stochastic {
        let completion = &run.completions[&sample.work];
        let kernel = &run.kernels[&sample.work];
        assert!((completion.start..=completion.end).contains(&sample.time));
        assert_eq!(sample.correlation, kernel.work.correlation);
        assert_eq!(sample.external, kernel.work.external);
        assert_eq!(
            (sample.kernel, sample.agent),
            (kernel.kernel, kernel.work.agent)
        );
        assert!(sample.code_object.is_some() && sample.exec_mask != 0);
        assert!(unit_of(sample.hardware) < COMPUTE_UNITS);
        assert!((1..=40).contains(&sample.wave_count));
        assert_eq!(sample.absent, Absent::NOTHING);
        assert_eq!(sample.issued().is_some(), sample.not_issued().is_none());
        assert_ne!(sample.not_issued(), Some(NotIssued::NONE));
        for axis in 0..3 {
            let groups = kernel.grid[axis] / u64::from(kernel.workgroup[axis]);
            assert!(u64::from(sample.workgroup[axis]) < groups);
        }
    }
    run.totals_add_up();

    let run = Run::of(HOST_TRAP);
    assert!(run.host_trap.len() > 10_000 && run.stochastic.is_empty());
    for sample in &run.host_trap {
        let completion = &run.completions[&sample.work];
        assert!((completion.start..=completion.end).contains(&sample.time));
    }
    run.totals_add_up();
}

#[test]
fn all_units_are_visited_at_the_same_moments_each_once() {
    let run = stochastic();
    let mut moments: HashMap<(AgentId, DeviceTime), Vec<u16>> = HashMap::new();
    for sample in &run.stochastic {
        let units = moments.entry((sample.agent, sample.time)).or_default();
        units.push(unit_of(sample.hardware) as u16);
    }
    for units in moments.values_mut() {
        units.sort_unstable();
        assert!(units.windows(2).all(|two| two[0] < two[1]));
    }
    let whole = moments.values().filter(|units| units.len() == 80).count();
    assert!(
        whole * 2 > moments.len(),
        "most moments find all units busy"
    );
}

#[test]
fn an_interval_of_instructions_samples_what_each_unit_issues() {
    let request = Request {
        unit: SamplingUnit::INSTRUCTIONS,
        interval: 1 << 12,
        ..STOCHASTIC
    };
    let run = Run::of(request);
    run.totals_add_up();
    assert!(run.stochastic.len() > 1_000, "{}", run.stochastic.len());
    for sample in &run.stochastic {
        assert!(sample.issued().is_some());
        let completion = &run.completions[&sample.work];
        assert!((completion.start..=completion.end).contains(&sample.time));
    }
    for totals in run.totals.values() {
        assert_eq!((totals.unit, totals.interval), (request.unit, 1 << 12));
    }
    // Twice the interval, half of the samples.
    let interval = 1 << 13;
    let half = Run::of(Request {
        interval,
        ..request
    });
    let ratio = run.stochastic.len() as f64 / half.stochastic.len() as f64;
    assert!((1.9..2.1).contains(&ratio), "{ratio}");
}

#[test]
fn one_seed_gives_the_same_capture_byte_for_byte() {
    assert!(Run::of(STOCHASTIC).bytes == stochastic().bytes);
}

#[test]
fn samples_for_which_the_device_has_no_room_are_dropped_and_counted() {
    let run = Run::of(Request {
        interval: 1 << 8,
        ..STOCHASTIC
    });
    run.totals_add_up();
    let dropped: u64 = run.totals.values().map(|totals| totals.dropped).sum();
    let total: u64 = run.totals.values().map(|totals| totals.total).sum();
    assert!(
        dropped > total / 10 && dropped < total,
        "{dropped} of {total}"
    );
}

#[test]
fn the_kernels_of_the_demo_wait_for_what_their_kind_waits_for() {
    let run = stochastic();
    let share = |kernel: &str, of: &dyn Fn(&StochasticSample) -> bool| {
        let is_it = |sample: &&StochasticSample| run.names[&sample.kernel].contains(kernel);
        let samples: Vec<_> = run.stochastic.iter().filter(is_it).collect();
        assert!(samples.len() > 100, "{kernel}");
        samples.iter().filter(|one| of(one)).count() as f64 / samples.len() as f64
    };
    let waits = |for_what| move |one: &StochasticSample| one.not_issued() == Some(for_what);
    for memory_bound in ["dropout_add", "layer_norm", "flash_attention", "bias_gelu"] {
        assert!(share(memory_bound, &waits(NotIssued::WAITCNT)) > 0.3);
    }
    let barrier = |kernel| share(kernel, &waits(NotIssued::BARRIER_WAIT));
    assert!(barrier("gradient_norm") > 0.4 && barrier("layer_norm") > 0.2);
    assert!(barrier("dropout_add") < 0.01 && barrier("adam_step") < 0.01);
    // The matrix pipes of the SIMDs, whether they take an instruction or are busy with one.
    let matrix = |kernel| {
        share(kernel, &|one| {
            one.snapshot.issue_matrix() + one.snapshot.stall_matrix() > 0
        })
    };
    assert!(matrix("gemm_f16") > 0.4, "{}", matrix("gemm_f16"));
    assert!(matrix("adam_step") == 0.0);
}

/// A machine that waits, and what a tool needs to sample it.
struct Tool {
    simulation: Simulation,
    agent: AgentId,
    context: Context,
    buffer: RecordBuffer,
    got: Arc<Mutex<Run>>,
    _directory: tempfile::TempDir,
}

impl Tool {
    fn new() -> Tool {
        let directory = tempfile::tempdir().unwrap();
        let recorder = recorder(&directory.path().join("demo.gputrail"), None);
        let simulation = DEMO.prepare(&recorder);
        let got = Arc::new(Mutex::new(Run::default()));
        let run = got.clone();
        let options = BufferOptions {
            pool_bytes: 256 << 20,
            block_bytes: 1 << 20,
            ..BufferOptions::default()
        };
        let board = recorder.board();
        let deliver = move |view: &gputrail_buffer::BlockView<'_>| {
            let mut run = lock_std(&run);
            view.records().for_each(|record| run.add(&record));
        };
        let buffer = RecordBuffer::on(board, options, deliver).unwrap();
        Tool {
            agent: simulation.agents()[0],
            simulation,
            context: Context::on(board).unwrap(),
            buffer,
            got,
            _directory: directory,
        }
    }

    /// Runs the machine while the context is started.
    fn run(self) -> Run {
        self.context.start().unwrap();
        self.simulation.run().unwrap();
        self.context.stop().unwrap();
        drop(self.buffer);
        std::mem::take(&mut *lock_std(&self.got))
    }
}

#[test]
fn a_tool_samples_one_agent_and_gets_nothing_of_the_other() {
    let tool = Tool::new();
    let possible = tool.context.sampling_configurations(tool.agent).unwrap();
    assert_eq!(possible, CONFIGURATIONS);
    let samples = Deliver::Samples;
    let sampled = tool
        .context
        .sample(&tool.buffer, tool.agent, STOCHASTIC, samples);
    sampled.unwrap();
    let agent = tool.agent;
    let run = tool.run();
    assert!(run.stochastic.len() > 5_000);
    assert!(run.stochastic.iter().all(|sample| sample.agent == agent));
    let samples = run.samples();
    for totals in run.totals.values() {
        let came = samples.get(&totals.work).copied().unwrap_or(0);
        assert_eq!(came + totals.dropped, totals.total);
    }
}

#[test]
fn a_subscriber_is_told_once_of_each_module_that_is_sampled() {
    use gputrail_collect::context::{OperationSet, Payload};
    use gputrail_interface::operations::resource;
    let tool = Tool::new();
    let sampled = tool
        .context
        .sample(&tool.buffer, tool.agent, STOCHASTIC, Deliver::Samples);
    sampled.unwrap();
    let modules = Arc::new(Mutex::new(Vec::new()));
    let into = modules.clone();
    let mut of = OperationSet::default();
    of.set(resource::MODULE_PROFILED, true);
    let subscriber = tool.context.call_back(of, move |callback| {
        let Payload::Record(record) = callback.payload else {
            panic!("{callback:?}");
        };
        lock_std(&into).push(record.read::<Module>().unwrap().id);
    });
    let names = tool.simulation.runtime.names().clone();
    let run = tool.run();
    assert!(subscriber.unwrap().is_subscribed(), "it did not panic");
    let code = run.stochastic.iter().map(|sample| sample.code_object.0);
    let code: std::collections::BTreeSet<u32> = code.collect();
    let sampled: Vec<ModuleId> = code
        .iter()
        .map(|id| names.get::<CodeObject>(*id).unwrap().module)
        .collect();
    let mut told = lock_std(&modules).clone();
    told.sort();
    assert_eq!(told, sampled);
    assert!(!told.is_empty());
}

#[test]
fn aggregates_say_the_same_as_the_samples() {
    let of = |deliver| {
        let tool = Tool::new();
        let sampled = tool
            .context
            .sample(&tool.buffer, tool.agent, STOCHASTIC, deliver);
        sampled.unwrap();
        tool.run()
    };
    let (samples, aggregates) = (of(Deliver::Samples), of(Deliver::Aggregates));
    assert!(aggregates.stochastic.is_empty());
    let mut counted: HashMap<_, u64> = HashMap::new();
    for one in &samples.stochastic {
        let issued = one.issued().unwrap_or(InstructionType::NONE);
        let reason = one.not_issued().unwrap_or(NotIssued::NONE);
        *counted
            .entry((one.work, one.offset, reason, issued, StallReason::of(one)))
            .or_insert(0) += 1;
    }
    let mut told: HashMap<_, u64> = HashMap::new();
    for one in &aggregates.aggregates {
        assert!(one.kernel.is_some() && one.correlation.is_some());
        let key = (one.work, one.offset, one.reason, one.instruction, one.stall);
        *told.entry(key).or_insert(0) += one.samples;
    }
    assert!(counted == told);
    let totals = |run: &Run| {
        let mut totals: Vec<_> = run
            .totals
            .values()
            .map(|one| (one.work, one.total))
            .collect();
        totals.sort_unstable();
        totals
    };
    assert_eq!(totals(&samples), totals(&aggregates));
}

#[test]
fn lines_come_once_each_beside_counts_for_those_who_want_them() {
    let of = |kinds: &[Kind]| {
        let tool = Tool::new();
        let names = tool.simulation.runtime.names().clone();
        let wanted = tool
            .context
            .trace_to(&tool.buffer, RecordSelection::kinds(kinds));
        wanted.unwrap();
        let counts = Deliver::Aggregates;
        let sampled = tool
            .context
            .sample(&tool.buffer, tool.agent, STOCHASTIC, counts);
        sampled.unwrap();
        (tool.run(), names)
    };
    let (without, _) = of(&[]);
    assert!(without.locators.is_empty() && without.instructions.is_empty());
    let unknown = |one: &SampleAggregate| one.source_locator == SourceLocatorId::NONE;
    assert!(without.aggregates.iter().all(unknown));

    let (run, names) = of(&[Kind::SOURCE_LOCATOR, Kind::INSTRUCTION_CORRELATION]);
    let lines: HashMap<_, _> = run
        .locators
        .iter()
        .map(|one| (one.id, (names.text(one.file).unwrap(), one.line)))
        .collect();
    assert_eq!(lines.len(), run.locators.len(), "an id each");
    let different: std::collections::HashSet<_> = lines.values().collect();
    assert_eq!(different.len(), lines.len(), "and told once");
    assert!(
        lines
            .values()
            .all(|(file, line)| file.ends_with(".cl") && *line > 0)
    );
    // Each instruction of what was sampled is told once, with the line that the samples there have.
    let told: HashMap<_, _> = run
        .instructions
        .iter()
        .map(|one| ((one.code_object, one.offset), one))
        .collect();
    assert_eq!(told.len(), run.instructions.len());
    let sampled: std::collections::HashSet<_> = run
        .aggregates
        .iter()
        .map(|one| (one.code_object, one.offset))
        .collect();
    assert!(told.len() > sampled.len(), "those without samples, too");
    for one in &run.aggregates {
        let instruction = told[&(one.code_object, one.offset)];
        assert_eq!(instruction.source_locator, one.source_locator);
        assert_eq!(instruction.kernel, one.kernel);
        assert!(lines.contains_key(&one.source_locator));
        assert!(!names.text(instruction.text).unwrap().is_empty());
    }
}

#[test]
fn an_agent_that_another_process_has_taken_is_sampled_as_that_one_does() {
    let tool = Tool::new();
    let sample = |request| {
        tool.context
            .sample(&tool.buffer, tool.agent, request, Deliver::Samples)
    };
    tool.simulation
        .sampled_elsewhere(tool.agent, Some(HOST_TRAP));
    let refused = sample(STOCHASTIC);
    let theirs = vec![Configuration::active(HOST_TRAP, &CONFIGURATIONS)];
    assert!(matches!(
        refused,
        Err(ToolError::Sampling(SamplingError::Method { .. }))
    ));
    assert_eq!(
        tool.context.sampling_configurations(tool.agent).unwrap(),
        theirs
    );
    sample(HOST_TRAP).unwrap();
    let run = tool.run();
    assert!(!run.host_trap.is_empty());
}

#[test]
fn a_flush_brings_what_the_device_holds() {
    let tool = Tool::new();
    let Tool {
        context,
        buffer,
        agent,
        ..
    } = &tool;
    context
        .sample(buffer, *agent, STOCHASTIC, Deliver::Samples)
        .unwrap();
    context.start().unwrap();
    let sampler = tool.simulation.runtime.devices[0].sampler.clone();
    let host = HostThread::new(&tool.simulation.runtime.board, ThreadId(77), false);
    sampler.set_writer(host.unwrap(), tool.simulation.runtime.recorder.clone());
    let sample = StochasticSample::blank();
    lock_std(&sampler.0)
        .buffered
        .push(BufferedSample::Stochastic(sample));
    assert!(lock_std(&tool.got).stochastic.is_empty());
    buffer.flush().unwrap();
    assert_eq!(lock_std(&tool.got).stochastic.len(), 1);
}

#[test]
fn a_recording_that_asks_for_what_no_device_can_do_is_refused_with_what_they_can() {
    let directory = tempfile::tempdir().unwrap();
    let asked = Request {
        interval: 1_000,
        ..STOCHASTIC
    };
    let recorder = recorder(&directory.path().join("demo.gputrail"), Some(asked));
    let refused = DEMO.run(&recorder).unwrap_err().to_string();
    assert!(refused.contains("512 and 1024 cycles"), "{refused}");
}
