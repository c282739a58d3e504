//! The samples of the program counter: counts by kernel and instruction, a flame graph, and curves of stall reasons, as from
//! captures.

use std::collections::{HashMap, HashSet};
use std::io;

use super::pass_on::{process_index, time};
use super::{AgentHandle, ProcessHandle, QueueHandle, SampleRow, StageHandle, Tables, TextId};
use crate::code::aggregate::{Address, Outcome};
use crate::record::{
    Absent, AgentId, CodeObjectId, CorrelationId, ExternalId, HardwareId, KernelId, QueueId,
    SamplingMethod, WorkId,
};
use crate::trace::model::flame::{Flame, SampledQueue, Stack};
use crate::trace::model::stalls::Stalls;
use crate::trace::model::{
    CodeAddress, CodeFrame, Consumer, OutcomeCount, RawSample, SampleCount, SampleTotals,
    SamplerIndex, Samples, StackFrame, Stream, WorkSamples,
};

/// Entries of one part of the counts.
const PART: usize = 1000;

/// A dispatch of a process.
type Dispatch = (ProcessHandle, u64);

/// Where a dispatch ran, and what.
#[derive(Copy, Clone)]
struct Ran {
    agent: AgentHandle,
    queue: QueueHandle,
    stage: StageHandle,
}

/// An agent, a kernel, a place and an outcome.
type CountKey = (AgentId, KernelId, u32, Outcome);
/// Samples with a key, and latency samples among them.
type Counted = (CountKey, (u64, u64));

/// Samples and outcomes of one dispatch.
type Outcomes = Vec<(Outcome, u64)>;

/// The samples of tables, by dispatch.
pub(super) struct Sampled {
    outcomes: HashMap<Dispatch, Outcomes>,
    /// Dispatches that were sampled.
    ran: HashMap<Dispatch, Ran>,
}

/// Ids as records have them: from 1, 0 for none.
fn agent_id(ran: Option<&Ran>) -> AgentId {
    AgentId(ran.map_or(0, |ran| ran.agent.0.wrapping_add(1)))
}

fn kernel_id(ran: Option<&Ran>) -> KernelId {
    KernelId(ran.map_or(0, |ran| ran.stage.0 + 1))
}

impl Sampled {
    /// Counts the samples of each dispatch.
    pub fn new(tables: &Tables) -> Sampled {
        let mut outcomes: HashMap<Dispatch, Outcomes> = HashMap::new();
        for sample in &tables.samples {
            let of = outcomes
                .entry((sample.process, sample.dispatch))
                .or_default();
            match of.iter_mut().find(|(known, _)| *known == sample.outcome) {
                Some((_, sum)) => *sum += 1,
                None => of.push((sample.outcome, 1)),
            }
        }
        let mut ran = HashMap::new();
        for work in &tables.work {
            let dispatch = (work.process, work.dispatch);
            if work.dispatch != 0
                && outcomes.contains_key(&dispatch)
                && let Some(queue) = tables.queues.get(work.queue.0)
            {
                let row = Ran {
                    agent: queue.agent,
                    queue: work.queue,
                    stage: work.stage,
                };
                ran.entry(dispatch).or_insert(row);
            }
        }
        Sampled { outcomes, ran }
    }

    /// The samples of a dispatch; none if it was not sampled.
    pub fn of(&self, process: ProcessHandle, dispatch: u64) -> Option<WorkSamples> {
        let outcomes = self
            .outcomes
            .get(&(process, dispatch))
            .filter(|_| dispatch != 0)?;
        Some(WorkSamples::of(0, outcomes))
    }

    /// Passes on all samples.
    pub fn pass_on(&self, tables: &Tables, stream: &mut Stream<'_>) -> io::Result<()> {
        // Sorted by time, and stays so within a process.
        let mut samples: Vec<&SampleRow> = tables.samples.iter().collect();
        samples.sort_by_key(|sample| sample.process);
        let mut dispatches: HashMap<(ProcessHandle, AgentId, KernelId), u64> = HashMap::new();
        for work in &tables.work {
            if let Some(queue) = tables.queues.get(work.queue.0) {
                let ran = Ran {
                    agent: queue.agent,
                    queue: work.queue,
                    stage: work.stage,
                };
                let key = (work.process, agent_id(Some(&ran)), kernel_id(Some(&ran)));
                *dispatches.entry(key).or_default() += 1;
            }
        }
        let mut by_process: HashMap<ProcessHandle, Vec<(u64, &Outcomes)>> = HashMap::new();
        for ((process, dispatch), outcomes) in &self.outcomes {
            by_process
                .entry(*process)
                .or_default()
                .push((*dispatch, outcomes));
        }
        for samples in samples.chunk_by(|one, other| one.process == other.process) {
            let process = samples[0].process;
            let outcomes = by_process.remove(&process).unwrap_or_default();
            let totals = self.totals(process, &outcomes, &dispatches);
            self.process(tables, samples, totals, stream)?;
        }
        Ok(())
    }

    /// Passes on the samples of one process.
    fn process(
        &self,
        tables: &Tables,
        samples: &[&SampleRow],
        totals: Vec<SampleTotals>,
        stream: &mut Stream<'_>,
    ) -> io::Result<()> {
        let process = samples[0].process;
        let (mut flame, mut stalls) = (Flame::default(), Stalls::default());
        let mut parts = Parts::new(tables, process);
        // By agent, kernel, place and outcome: samples and latency samples.
        let mut counts: HashMap<CountKey, (u64, u64)> = HashMap::new();
        for sample in samples {
            let ran = self.ran.get(&(process, sample.dispatch));
            let (agent, kernel) = (agent_id(ran), kernel_id(ran));
            let when = time(sample.time);
            let queue = QueueId(ran.map_or(0, |ran| ran.queue.0 + 1));
            flame.add(
                when,
                Stack {
                    queue: SampledQueue::Known(queue),
                    kernel,
                    // Instructions without a code object have no offset: the place itself tells them apart.
                    address: Some(Address {
                        code_object: CodeObjectId::NONE,
                        offset: sample.place.0.into(),
                    }),
                },
            );
            if sample.outcome.method == SamplingMethod::STOCHASTIC {
                stalls.add(agent, when, &sample.outcome);
            }
            let count = counts
                .entry((agent, kernel, sample.place.0, sample.outcome))
                .or_default();
            count.0 += 1;
            count.1 += u64::from(sample.latency);
            parts.raw(
                stream.consumer,
                ran,
                RawSample {
                    time: when,
                    address: sample.place.0 + 1,
                    outcome: sample.outcome,
                    agent,
                    kernel,
                    work: WorkId(sample.dispatch),
                    correlation: CorrelationId(sample.correlation),
                    external: ExternalId(sample.external),
                    exec_mask: sample.exec_mask,
                    hardware: HardwareId(sample.hardware),
                    workgroup: sample.workgroup,
                    wave_in_group: sample.wave_in_group,
                    wave_count: sample.wave_count,
                    absent: Absent(sample.absent),
                },
            )?;
        }
        let title = |agent: AgentId| title(tables, agent);
        stalls.finish(stream, process_index(process), title)?;
        flame.finish(stream, process_index(process), |stack| {
            frames(tables, stack)
        })?;
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_unstable_by_key(|(key, _)| *key);
        let at_one = |a: &Counted, b: &Counted| {
            let ((agent, kernel, place, _), (other_agent, other_kernel, other_place, _)) =
                (a.0, b.0);
            (agent, kernel, place) == (other_agent, other_kernel, other_place)
        };
        for counted in counts.chunk_by(at_one) {
            let ((agent, kernel, place, _), _) = counted[0];
            parts.count(stream.consumer, agent, kernel, place, counted)?;
        }
        parts.next.totals = totals;
        parts.next.shown_one_of = Some(flame.one_of());
        parts.flush(stream.consumer)
    }

    /// The samples and dispatches of each sampled kernel of a process.
    fn totals(
        &self,
        process: ProcessHandle,
        outcomes: &[(u64, &Outcomes)],
        dispatches: &HashMap<(ProcessHandle, AgentId, KernelId), u64>,
    ) -> Vec<SampleTotals> {
        let mut totals: HashMap<(AgentId, KernelId), SampleTotals> = HashMap::new();
        for (dispatch, outcomes) in outcomes {
            let Some(ran) = self.ran.get(&(process, *dispatch)) else {
                continue;
            };
            let (agent, kernel) = (agent_id(Some(ran)), kernel_id(Some(ran)));
            let method = outcomes.first().map(|(outcome, _)| outcome.method);
            let total = totals
                .entry((agent, kernel))
                .or_insert_with(|| SampleTotals {
                    agent,
                    kernel,
                    method: method.unwrap_or(SamplingMethod::HOST_TRAP),
                    dispatches: dispatches
                        .get(&(process, agent, kernel))
                        .copied()
                        .unwrap_or(0),
                    samples: 0,
                    dropped: 0,
                });
            total.samples += outcomes.iter().map(|(_, count)| count).sum::<u64>();
        }
        let mut totals: Vec<_> = totals.into_values().collect();
        totals.sort_by_key(|total| (total.agent, total.kernel));
        totals
    }
}

fn title(tables: &Tables, agent: AgentId) -> String {
    let agent = agent.0.checked_sub(1);
    let row = agent.and_then(|place| tables.agents.get(place as usize));
    row.map_or("unknown device", |row| &row.agent.title)
        .to_owned()
}

fn kernel_name(tables: &Tables, kernel: KernelId) -> &str {
    let stage = kernel.0.checked_sub(1);
    let stage = stage.and_then(|place| tables.stages.get(place));
    stage.map_or("unknown kernel", |stage| tables.texts.get(stage.name))
}

/// The frames of a stack, outermost first: queue, kernel, line, instruction.
fn frames(tables: &Tables, stack: &Stack) -> Vec<StackFrame> {
    let place = stack.address.map(|address| address.offset as u32);
    let place = place.and_then(|place| tables.places.get(place));
    let object = place.map_or(0, |place| place.code_object);
    let object = match (object, tables.code_objects.get(&object)) {
        (_, Some(path)) => path.clone(),
        (0, None) => "no code object".to_owned(),
        (object, None) => format!("code object {object}"),
    };
    let of = |name: String, mapping: &str| StackFrame {
        name,
        mapping: mapping.to_owned(),
    };
    let queue = match stack.queue {
        SampledQueue::Known(queue) => queue.0.checked_sub(1),
        SampledQueue::OfDispatch(_) => None,
    };
    let queue = match queue.and_then(|queue| tables.queues.get(queue)) {
        Some(queue) => {
            let agent = title(tables, AgentId(queue.agent.0.wrapping_add(1)));
            format!("{agent} · {}", tables.texts.get(queue.name))
        }
        None => "unknown queue".to_owned(),
    };
    let mut frames = vec![
        of(queue, "device"),
        of(kernel_name(tables, stack.kernel).to_owned(), &object),
    ];
    let Some(place) = place else {
        return frames;
    };
    if place.line != 0 {
        let file = tables.texts.get(place.file);
        let file = file.rsplit('/').next().unwrap_or(file);
        frames.push(of(format!("{file}:{}", place.line), &object));
    }
    let instruction = tables.texts.get(place.instruction);
    frames.push(match (instruction, place.code_object, place.offset) {
        ("", _, offset) => of(format!("{offset:#x}"), &object),
        (text, 0, 0) => of(text.to_owned(), &object),
        (text, _, offset) => of(format!("{text}  @{offset:#x}"), &object),
    });
    frames
}

/// Counts, in parts. Ids are declared with their first use.
struct Parts<'r> {
    tables: &'r Tables,
    next: Samples,
    texts: HashSet<TextId>,
    agents: HashSet<AgentId>,
    kernels: HashSet<KernelId>,
    objects: HashSet<CodeObjectId>,
    places: HashSet<u32>,
}

impl<'r> Parts<'r> {
    fn new(tables: &'r Tables, process: ProcessHandle) -> Parts<'r> {
        Parts {
            tables,
            next: Samples {
                sampler: SamplerIndex(process.0),
                process: Some(process_index(process)),
                ..Samples::default()
            },
            texts: HashSet::new(),
            agents: HashSet::new(),
            kernels: HashSet::new(),
            objects: HashSet::new(),
            places: HashSet::new(),
        }
    }

    fn declare(&mut self, agent: AgentId, kernel: KernelId, place: u32) {
        if self.agents.insert(agent) {
            let name = title(self.tables, agent);
            self.next.agents.push((agent, name));
        }
        if self.kernels.insert(kernel) {
            let name = kernel_name(self.tables, kernel).to_owned();
            self.next.kernels.push((kernel, name));
        }
        let row = self.tables.places.get(place);
        let Some(row) = row.filter(|_| self.places.insert(place)) else {
            return;
        };
        let object = CodeObjectId(row.code_object);
        if object.is_some() && self.objects.insert(object) {
            let path = self.tables.code_objects.get(&row.code_object);
            let path = path.cloned().unwrap_or_default();
            self.next.code_objects.push((object, path));
        }
        let instruction = self.text(row.instruction);
        let file = self.text(row.file);
        let frame = CodeFrame {
            function: 0,
            file: Some(file),
            line: Some(row.line),
        };
        self.next.addresses.push(CodeAddress {
            id: place + 1,
            code_object: object,
            offset: match (row.code_object, row.offset) {
                // Instructions are told apart by their addresses: those without one are numbered.
                (0, 0) => u64::from(place) + 1,
                (_, offset) => offset,
            },
            symbol: 0,
            instruction,
            frames: (row.line != 0).then_some(frame).into_iter().collect(),
            missing: None,
        });
    }

    fn text(&mut self, text: TextId) -> u32 {
        if text != TextId::default() && self.texts.insert(text) {
            let content = self.tables.texts.get(text).to_owned();
            self.next.texts.push((text.0, content));
        }
        text.0
    }

    /// Adds a sample by itself.
    fn raw(
        &mut self,
        consumer: &mut dyn Consumer,
        ran: Option<&Ran>,
        sample: RawSample,
    ) -> io::Result<()> {
        self.declare(agent_id(ran), kernel_id(ran), sample.address - 1);
        self.next.raw.push(sample);
        match self.next.raw.len() {
            PART.. => self.flush(consumer),
            _ => Ok(()),
        }
    }

    /// Adds the counts of one place.
    fn count(
        &mut self,
        consumer: &mut dyn Consumer,
        agent: AgentId,
        kernel: KernelId,
        place: u32,
        counted: &[Counted],
    ) -> io::Result<()> {
        self.declare(agent, kernel, place);
        let outcomes = counted
            .iter()
            .map(|((.., outcome), (samples, latency))| OutcomeCount {
                outcome: *outcome,
                samples: *samples,
                latency: *latency,
            });
        self.next.counts.push(SampleCount {
            agent,
            kernel,
            address: place + 1,
            outcomes: outcomes.collect(),
        });
        match self.next.counts.len() {
            PART.. => self.flush(consumer),
            _ => Ok(()),
        }
    }

    fn flush(&mut self, consumer: &mut dyn Consumer) -> io::Result<()> {
        let following = Samples {
            sampler: self.next.sampler,
            process: self.next.process,
            ..Samples::default()
        };
        consumer.samples(&std::mem::replace(&mut self.next, following))
    }
}
