//! The samples of the program counter: counts by kernel and instruction, a flame graph, and curves of stall reasons, as from
//! captures.

use std::collections::{HashMap, HashSet};
use std::io;

use super::join::SorterEntry;
use super::pack::Pack;
use super::pass_on::{process_index, time};
use super::{
    AgentHandle, ProcessHandle, QueueHandle, RowCounts, SampleRow, StageHandle, Tables, TextHandle,
    WorkRow,
};
use gputrail_code::aggregate::{Address, WaveOutcome};
use gputrail_record::{
    Absent, AgentId, CodeObjectId, CorrelationId, ExternalId, HardwareId, KernelId, QueueId,
    SamplingMethod, WorkId,
};
use gputrail_trace::model::flame::{Flame, SampledQueue, Stack};
use gputrail_trace::model::stalls::Stalls;
use gputrail_trace::model::{
    CodeAddress, CodeFrame, Consumer, OutcomeCount, RawSample, SampleCount, SampleTotals,
    SamplerIndex, Samples, StackFrame, Stream, UNKNOWN_DEVICE,
};
use gputrail_trace::sorter::Sorter;

/// Entries of one part of the counts.
const PART: usize = 1000;

/// Where a dispatch ran, and what.
#[derive(Copy, Clone)]
struct RanDispatch {
    agent: AgentHandle,
    queue: QueueHandle,
    stage: StageHandle,
}

/// An agent, a kernel, a place and an outcome.
type CountKey = (AgentId, KernelId, u32, WaveOutcome);
/// Samples with a key, and latency samples among them.
type KeyedCount = (CountKey, (u64, u64));

/// The number of dispatches by process, agent and kernel.
#[derive(Debug, Default)]
pub(super) struct DispatchCounts {
    dispatches: HashMap<(ProcessHandle, AgentId, KernelId), u64>,
}

/// Ids as records have them: from 1, 0 for none.
fn agent_id(ran: Option<&RanDispatch>) -> AgentId {
    AgentId(ran.map_or(0, |ran| ran.agent.0.wrapping_add(1)))
}

fn kernel_id(ran: Option<&RanDispatch>) -> KernelId {
    KernelId(ran.map_or(0, |ran| ran.stage.0 + 1))
}

impl RanDispatch {
    fn new(tables: &Tables, (queue, stage): (QueueHandle, StageHandle)) -> Option<RanDispatch> {
        let agent = tables.queues.get(queue.0)?.agent;
        Some(RanDispatch {
            agent,
            queue,
            stage,
        })
    }
}

impl DispatchCounts {
    /// Counts a dispatch.
    pub fn ran(&mut self, tables: &Tables, row: &WorkRow) {
        let ran = RanDispatch::new(tables, (row.queue, row.stage));
        let key = (row.process, agent_id(ran.as_ref()), kernel_id(ran.as_ref()));
        *self.dispatches.entry(key).or_default() += 1;
    }

    /// Passes on all samples, which come by process and time.
    pub fn pass_on(
        &self,
        tables: &Tables,
        samples: Sorter,
        stream: &mut Stream<'_>,
        counts: &mut RowCounts,
    ) -> io::Result<()> {
        let mut process: Option<PassedSamples<'_>> = None;
        samples.drain(|_, mut bytes| {
            let SorterEntry::Sample(sample, ran) = SorterEntry::unpack(&mut bytes) else {
                return Ok(());
            };
            counts.samples += 1;
            if process
                .as_ref()
                .is_none_or(|own| own.process != sample.process)
            {
                let next = PassedSamples::new(tables, sample.process);
                if let Some(ended) = process.replace(next) {
                    ended.end(self, stream)?;
                }
            }
            let ran = ran.and_then(|ran| RanDispatch::new(tables, ran));
            match &mut process {
                Some(process) => process.add(&sample, ran.as_ref(), stream),
                None => Ok(()),
            }
        })?;
        process.map_or(Ok(()), |process| process.end(self, stream))
    }
}

/// The samples of one process.
struct PassedSamples<'r> {
    tables: &'r Tables,
    process: ProcessHandle,
    flame: Flame,
    stalls: Stalls,
    parts: SampleParts<'r>,
    /// By agent, kernel, place and outcome: samples and latency samples.
    counts: HashMap<CountKey, (u64, u64)>,
    totals: HashMap<(AgentId, KernelId), SampleTotals>,
}

impl<'r> PassedSamples<'r> {
    fn new(tables: &'r Tables, process: ProcessHandle) -> PassedSamples<'r> {
        PassedSamples {
            tables,
            process,
            flame: Flame::default(),
            stalls: Stalls::default(),
            parts: SampleParts::new(tables, process),
            counts: HashMap::new(),
            totals: HashMap::new(),
        }
    }

    fn add(
        &mut self,
        sample: &SampleRow,
        ran: Option<&RanDispatch>,
        stream: &mut Stream<'_>,
    ) -> io::Result<()> {
        let (agent, kernel) = (agent_id(ran), kernel_id(ran));
        let when = time(sample.time);
        let queue = QueueId(ran.map_or(0, |ran| ran.queue.0 + 1));
        let stack = Stack {
            queue: SampledQueue::Known(queue),
            kernel,
            // Instructions without a code object have no offset: the place itself tells them apart.
            address: Some(Address {
                code_object: CodeObjectId::NONE,
                offset: sample.place.0.into(),
            }),
        };
        self.flame.add(when, stack);
        if sample.outcome.method == SamplingMethod::STOCHASTIC {
            self.stalls.add(agent, when, &sample.outcome);
        }
        let key = (agent, kernel, sample.place.0, sample.outcome);
        let count = self.counts.entry(key).or_default();
        count.0 += 1;
        count.1 += u64::from(sample.latency);
        if ran.is_some() {
            let total = self.totals.entry((agent, kernel));
            let total = total.or_insert_with(|| SampleTotals {
                agent,
                kernel,
                method: sample.outcome.method,
                dispatches: 0,
                samples: 0,
                dropped: 0,
            });
            total.samples += 1;
        }
        self.parts.raw(
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
        )
    }

    fn end(mut self, sampled: &DispatchCounts, stream: &mut Stream<'_>) -> io::Result<()> {
        let tables = self.tables;
        let index = process_index(self.process);
        self.stalls
            .finish(stream, index, |agent| title(tables, agent))?;
        self.flame
            .finish(stream, index, |stack| frames(tables, self.process, stack))?;
        let mut counts: Vec<_> = self.counts.into_iter().collect();
        counts.sort_unstable_by_key(|(key, _)| *key);
        let place = |(key, _): &KeyedCount| (key.0, key.1, key.2);
        for counted in counts.chunk_by(|one, other| place(one) == place(other)) {
            let (agent, kernel, at) = place(&counted[0]);
            self.parts
                .count(stream.consumer, agent, kernel, at, counted)?;
        }
        let mut totals: Vec<_> = self.totals.into_values().collect();
        for total in &mut totals {
            let key = (self.process, total.agent, total.kernel);
            total.dispatches = sampled.dispatches.get(&key).copied().unwrap_or(0);
        }
        totals.sort_by_key(|total| (total.agent, total.kernel));
        self.parts.next.totals = totals;
        self.parts.next.shown_one_of = Some(self.flame.one_of());
        self.parts.flush(stream.consumer)
    }
}

fn title(tables: &Tables, agent: AgentId) -> String {
    let agent = agent.0.checked_sub(1);
    let row = agent.and_then(|place| tables.agents.get(place as usize));
    row.map_or(UNKNOWN_DEVICE, |row| &row.agent.title)
        .to_owned()
}

fn kernel_name(tables: &Tables, kernel: KernelId) -> &str {
    let stage = kernel.0.checked_sub(1);
    let stage = stage.and_then(|place| tables.stages.get(place));
    stage.map_or("unknown kernel", |stage| tables.texts.get(stage.name))
}

/// The frames of a stack, outermost first: queue, kernel, line, instruction.
fn frames(tables: &Tables, process: ProcessHandle, stack: &Stack) -> Vec<StackFrame> {
    let place = stack.address.map(|address| address.offset as u32);
    let place = place.and_then(|place| tables.places.get(place));
    let object = place.map_or(0, |place| place.code_object);
    let object = match (object, tables.code_objects.get(&(process, object))) {
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
struct SampleParts<'r> {
    tables: &'r Tables,
    process: ProcessHandle,
    next: Samples,
    texts: HashSet<TextHandle>,
    agents: HashSet<AgentId>,
    kernels: HashSet<KernelId>,
    objects: HashSet<CodeObjectId>,
    places: HashSet<u32>,
}

impl<'r> SampleParts<'r> {
    fn new(tables: &'r Tables, process: ProcessHandle) -> SampleParts<'r> {
        SampleParts {
            tables,
            process,
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
            let key = (self.process, row.code_object);
            let path = self.tables.code_objects.get(&key);
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

    fn text(&mut self, text: TextHandle) -> u32 {
        if text != TextHandle::default() && self.texts.insert(text) {
            let content = self.tables.texts.get(text).to_owned();
            self.next.texts.push((text.0, content));
        }
        text.0
    }

    /// Adds a sample by itself.
    fn raw(
        &mut self,
        consumer: &mut dyn Consumer,
        ran: Option<&RanDispatch>,
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
        counted: &[KeyedCount],
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
