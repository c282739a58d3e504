//! Where kernels spend their time: samples by kernel, source line and instruction, and how often instructions were executed.
//!
//! [`HotspotAnalysis`] consumes the [model of a trace](gputrail_trace::model) and returns a [`HotspotReport`] at the
//! end. Traces may be hostile: memory is bounded, and entries beyond the bound are counted.

use std::collections::{BTreeMap, HashMap};
use std::io;

use gputrail_code::aggregate::WaveOutcome;
use gputrail_record::number_map::NumberMap;
use gputrail_record::{
    AgentId, CodeObjectId, InstructionType, KernelId, Nanos, NotIssued, ProcessId, SamplingMethod,
    SamplingUnit, StallReason,
};
use gputrail_trace::model::{
    self, CodeAddress, Consumer, Executions, Note, Process, ProcessIndex, RawSample, SamplerIndex,
    Samples,
};

/// Maximum size of all texts and counts that are kept.
const MAX_BYTES: usize = 256 << 20;
/// Maximum number of notes about what is missing.
const MAX_MISSING: usize = 16;
/// Size of an entry without its texts.
const ENTRY: usize = 96;

/// The distribution of samples over the states of waves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of samples.
    pub samples: u64,
    /// The number of stochastic samples; only for these the rest is known.
    pub stochastic: u64,
    /// Stochastic samples whose wave issued an instruction.
    pub issued: u64,
    /// Samples at which the arbiter issued no instruction at all.
    pub latency: u64,
    /// Samples whose wave did not issue, by the reason.
    pub reasons: BTreeMap<NotIssued, u64>,
    /// The samples, by CUPTI's stall reasons.
    pub stalls: BTreeMap<StallReason, u64>,
    /// Samples whose wave issued, by the type of the instruction.
    pub types: BTreeMap<InstructionType, u64>,
    /// Exact counts of executions, where instructions are counted.
    pub executions: Executions,
}

impl Tally {
    fn add(&mut self, outcome: &WaveOutcome, samples: u64, latency: u64) {
        let plus = |sum: &mut u64, count: u64| *sum = sum.saturating_add(count);
        plus(&mut self.samples, samples);
        plus(&mut self.latency, latency);
        if outcome.method != SamplingMethod::STOCHASTIC {
            return;
        }
        plus(&mut self.stochastic, samples);
        if outcome.issued() {
            plus(&mut self.issued, samples);
            plus(self.types.entry(outcome.instruction).or_default(), samples);
        } else {
            plus(self.reasons.entry(outcome.reason).or_default(), samples);
            plus(self.stalls.entry(outcome.stall).or_default(), samples);
        }
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Tally) {
        let plus = |sum: &mut u64, count: u64| *sum = sum.saturating_add(count);
        plus(&mut self.samples, other.samples);
        plus(&mut self.stochastic, other.stochastic);
        plus(&mut self.issued, other.issued);
        plus(&mut self.latency, other.latency);
        self.executions.add(&other.executions);
        for (why, count) in &other.reasons {
            plus(self.reasons.entry(*why).or_default(), *count);
        }
        for (why, count) in &other.stalls {
            plus(self.stalls.entry(*why).or_default(), *count);
        }
        for (what, count) in &other.types {
            plus(self.types.entry(*what).or_default(), *count);
        }
    }

    /// What lists are ordered by: samples, then executions.
    fn order(&self) -> (u64, u64) {
        (self.samples, self.executions.executed)
    }

    /// The share of samples whose wave issued, 0 to 1; `None` without stochastic samples.
    pub fn issue_rate(&self) -> Option<f64> {
        (self.stochastic > 0).then(|| self.issued as f64 / self.stochastic as f64)
    }

    /// The reasons why waves did not issue, the most frequent first: in CUPTI's words where the agent uses these.
    pub fn leading(&self) -> Vec<(&'static str, u64)> {
        let speaks_cupti = self.reasons.contains_key(&NotIssued::NONE)
            && self.stalls.keys().any(|why| *why != StallReason::INVALID);
        let mut list: Vec<_> = if speaks_cupti {
            named(&self.stalls, StallReason::name)
        } else {
            named(&self.reasons, NotIssued::name)
        };
        list.sort_by_key(|(why, count)| (std::cmp::Reverse(*count), *why));
        list
    }
}

fn named<R: Copy>(
    counts: &BTreeMap<R, u64>,
    name: impl Fn(R) -> Option<&'static str>,
) -> Vec<(&'static str, u64)> {
    let counts = counts.iter();
    counts
        .map(|(why, count)| (name(*why).unwrap_or("unknown"), *count))
        .collect()
}

/// An instruction of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledInstruction {
    /// The path of its code object, or its id as text.
    pub code_object: String,
    /// Offset in bytes from the load base of the code object; the address itself if there is no code object.
    pub offset: u64,
    /// The function of the symbol table that contains it; empty if there is none.
    pub symbol: String,
    /// Its text; empty without a disassembler for its architecture.
    pub text: String,
    /// The index of its source line in [`KernelHotspots::lines`].
    pub line: Option<usize>,
    /// Its functions with file and line, innermost first.
    pub frames: Vec<(String, String, u32)>,
    /// Its samples.
    pub tally: Tally,
}

/// A source line of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledLine {
    /// Its file, as named in the debug information.
    pub file: String,
    /// Its number, from 1.
    pub line: u32,
    /// Its text, if known.
    pub text: Option<String>,
    /// Its samples.
    pub tally: Tally,
}

/// A kernel on one kind of agent.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelHotspots {
    /// Its name.
    pub name: String,
    /// The agent on which it ran.
    pub agent: String,
    /// Its samples.
    pub tally: Tally,
    /// The number of its dispatches whose totals are known.
    pub dispatches: u64,
    /// The number of dropped samples of these dispatches.
    pub dropped: u64,
    /// The sampled lines, by descending number of samples.
    pub lines: Vec<SampledLine>,
    /// The sampled instructions, by descending number of samples.
    pub instructions: Vec<SampledInstruction>,
    /// The reasons why instructions have no line, with the number of samples of these instructions, in descending
    /// order.
    pub missing: Vec<(String, u64)>,
    /// Source text near the lines, by file and line number.
    pub source: BTreeMap<(String, u32), String>,
}

/// The sampling configuration of an agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampledAgent {
    /// The agent.
    pub agent: String,
    /// The sampling method.
    pub method: SamplingMethod,
    /// The unit of the interval.
    pub unit: SamplingUnit,
    /// The interval.
    pub interval: u64,
}

/// The counts of all samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HotspotReport {
    /// The kernels, by descending number of samples.
    pub kernels: Vec<KernelHotspots>,
    /// The sampling configurations of the agents.
    pub sampled: Vec<SampledAgent>,
    /// The number of samples.
    pub samples: u64,
    /// The number of samples that their agent could not complete.
    pub invalid: u64,
    /// The number of dropped samples.
    pub dropped: u64,
    /// The number of entries that were left out for lack of space.
    pub left_out: u64,
    /// The first notes of the recording that say what is missing from it, and why.
    pub missing: Vec<String>,
}

/// A single sample, from a trace that keeps them.
#[derive(Copy, Clone, Debug)]
pub struct Sample<'a> {
    /// The sampled process.
    pub process: ProcessId,
    /// The time of the sample, BOOTTIME.
    pub time: Nanos,
    /// The active lanes, as bits.
    pub exec_mask: u64,
    /// The dispatch's work id.
    pub dispatch: u64,
    /// Internal correlation id of the call that enqueued it.
    pub correlation: u64,
    /// The instruction; empty if its text is unknown.
    pub instruction: &'a str,
    /// The path of its code object.
    pub code_object: &'a str,
    /// Bytes from the code object's load base.
    pub offset: u64,
    /// File and line, if known.
    pub line: Option<(&'a str, u32)>,
    /// The kernel.
    pub kernel: &'a str,
    /// The state of the wave.
    pub outcome: WaveOutcome,
    /// Number of active waves on the compute unit.
    pub wave_count: u32,
}

/// The ids and counts of one sampler.
#[derive(Debug, Default)]
struct SamplerCounts {
    pid: ProcessId,
    texts: NumberMap<u32, Box<str>>,
    agents: NumberMap<AgentId, Box<str>>,
    kernels: NumberMap<KernelId, Box<str>>,
    objects: NumberMap<CodeObjectId, Box<str>>,
    addresses: NumberMap<u32, CodeAddress>,
    lines: NumberMap<(u32, u32), Box<str>>,
    /// Samples and latency samples, by agent, kernel, address and outcome.
    counts: NumberMap<(AgentId, KernelId, u32, u32), (u64, u64)>,
    /// Executions, by agent, kernel and address.
    executions: NumberMap<(AgentId, KernelId, u32), Executions>,
    /// Dispatches and dropped samples, by agent and kernel.
    totals: NumberMap<(AgentId, KernelId), (u64, u64)>,
    sampled: Vec<model::AgentConfiguration>,
}

/// The function that is called with each single sample.
type EachSample<'s> = Box<dyn FnMut(&Sample<'_>) + Send + 's>;

/// Counts samples by kernel, line and instruction.
#[derive(Default)]
pub struct HotspotAnalysis<'s> {
    sources: BTreeMap<SamplerIndex, SamplerCounts>,
    processes: NumberMap<ProcessIndex, ProcessId>,
    each: Option<EachSample<'s>>,
    invalid: u64,
    bytes: usize,
    left_out: u64,
    missing: Vec<String>,
}

impl std::fmt::Debug for HotspotAnalysis<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hotspots")
            .field("sources", &self.sources.len())
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl Consumer for HotspotAnalysis<'_> {
    gputrail_trace::leave_out!(
        clocks attributes agents track queue counters call slice end instant work value counter_values stack
        stack_samples loss
    );

    fn wants_calls(&self) -> bool {
        false
    }

    fn process(&mut self, index: ProcessIndex, process: &Process<'_>) -> io::Result<()> {
        if self.room(0) {
            self.processes.insert(index, process.pid);
        }
        Ok(())
    }

    fn note(&mut self, note: &Note<'_>) -> io::Result<()> {
        if let Some(reason) = note.missing().filter(|_| self.missing.len() < MAX_MISSING) {
            self.missing.push(reason.to_owned());
        }
        Ok(())
    }

    fn samples(&mut self, samples: &Samples) -> io::Result<()> {
        self.invalid = self.invalid.saturating_add(samples.invalid);
        if !self.room(1) {
            return Ok(());
        }
        let sampler = samples.sampler;
        if !self.sources.contains_key(&sampler) {
            self.bytes += ENTRY;
            self.sources.insert(sampler, SamplerCounts::default());
        }
        let mut source = self.sources.remove(&sampler).unwrap_or_default();
        self.take(&mut source, samples);
        if let Some(each) = &mut self.each {
            source.each(&samples.raw, each);
        }
        self.sources.insert(sampler, source);
        Ok(())
    }
}

impl<'s> HotspotAnalysis<'s> {
    /// Calls `each` with every single sample, if the trace keeps them.
    pub fn with_each(each: impl FnMut(&Sample<'_>) + Send + 's) -> HotspotAnalysis<'s> {
        HotspotAnalysis {
            each: Some(Box::new(each)),
            ..HotspotAnalysis::default()
        }
    }

    /// Whether there is space for an entry with `bytes` bytes of text; if so, it is reserved.
    fn room(&mut self, bytes: usize) -> bool {
        if self.bytes + bytes + ENTRY > MAX_BYTES {
            self.left_out += 1;
            return false;
        }
        self.bytes += bytes + ENTRY;
        true
    }

    fn take(&mut self, source: &mut SamplerCounts, samples: &Samples) {
        let pid = samples.process.and_then(|index| self.processes.get(&index));
        source.pid = pid.copied().unwrap_or(source.pid);
        for (id, text) in &samples.texts {
            if self.room(text.len()) {
                source.texts.insert(*id, text[..].into());
            }
        }
        for (id, name) in &samples.agents {
            if self.room(name.len()) {
                source.agents.insert(*id, name[..].into());
            }
        }
        for (id, name) in &samples.kernels {
            if self.room(name.len()) {
                source.kernels.insert(*id, name[..].into());
            }
        }
        for (id, path) in &samples.code_objects {
            if self.room(path.len()) {
                source.objects.insert(*id, path[..].into());
            }
        }
        for address in &samples.addresses {
            if self.room(address.frames.len() * ENTRY) {
                source.addresses.insert(address.id, address.clone());
            }
        }
        for line in &samples.lines {
            if self.room(line.text.len()) {
                let key = (line.file, line.line);
                source.lines.insert(key, line.text[..].into());
            }
        }
        for count in &samples.counts {
            for one in &count.outcomes {
                let outcome = one.outcome.code();
                let key = (count.agent, count.kernel, count.address, outcome);
                if source.counts.contains_key(&key) || self.room(0) {
                    let (samples, latency) = source.counts.entry(key).or_default();
                    *samples = samples.saturating_add(one.samples);
                    *latency = latency.saturating_add(one.latency);
                }
            }
        }
        for count in &samples.executions {
            let key = (count.agent, count.kernel, count.address);
            if source.executions.contains_key(&key) || self.room(0) {
                let sum = source.executions.entry(key).or_default();
                sum.add(&count.executions);
            }
        }
        for totals in &samples.totals {
            let key = (totals.agent, totals.kernel);
            if source.totals.contains_key(&key) || self.room(0) {
                let (dispatches, dropped) = source.totals.entry(key).or_default();
                *dispatches = dispatches.saturating_add(totals.dispatches);
                *dropped = dropped.saturating_add(totals.dropped);
            }
        }
        for how in &samples.configurations {
            if !source.sampled.contains(how) && source.sampled.len() < 64 && self.room(0) {
                source.sampled.push(*how);
            }
        }
    }

    /// The report on the samples so far.
    pub fn report(&self) -> HotspotReport {
        let mut report = HotspotReport {
            invalid: self.invalid,
            left_out: self.left_out,
            missing: self.missing.clone(),
            ..HotspotReport::default()
        };
        let mut kernels: HashMap<(String, String), Building> = HashMap::new();
        for source in self.sources.values() {
            for ((agent, kernel, address, outcome), (samples, latency)) in &source.counts {
                let kernel = source.building(&mut kernels, *agent, *kernel);
                let outcome = WaveOutcome::from_code(*outcome);
                kernel.count(source, *address, &outcome, (*samples, *latency));
                report.samples = report.samples.saturating_add(*samples);
            }
            for ((agent, kernel, address), executions) in &source.executions {
                let kernel = source.building(&mut kernels, *agent, *kernel);
                kernel.executed(source, *address, executions);
            }
            for ((agent, kernel), (dispatches, dropped)) in &source.totals {
                let kernel = &mut source.building(&mut kernels, *agent, *kernel).kernel;
                kernel.dispatches = kernel.dispatches.saturating_add(*dispatches);
                kernel.dropped = kernel.dropped.saturating_add(*dropped);
                report.dropped = report.dropped.saturating_add(*dropped);
            }
            for how in &source.sampled {
                report.sampled.push(SampledAgent {
                    agent: source.agent(how.agent).to_owned(),
                    method: how.method,
                    unit: how.unit,
                    interval: how.interval,
                });
            }
        }
        report.sampled.sort();
        report.sampled.dedup();
        // Totals of dispatches without a sample may not name their kernel, and those of no dispatch name none.
        let sampled = kernels.into_values().filter(|building| {
            let kernel = &building.kernel;
            let is_counted = kernel.tally.samples > 0 || kernel.tally.executions.executed > 0;
            is_counted || (kernel.dropped > 0 && kernel.dispatches > 0)
        });
        report.kernels = sampled.map(Building::finish).collect();
        report.kernels.sort_by(|a, b| {
            let most = b.tally.order().cmp(&a.tally.order());
            most.then_with(|| (&a.name, &a.agent).cmp(&(&b.name, &b.agent)))
        });
        report
    }
}

impl SamplerCounts {
    fn text(&self, id: u32) -> &str {
        self.texts.get(&id).map_or("", |text| text)
    }

    fn agent(&self, id: AgentId) -> &str {
        self.agents
            .get(&id)
            .map_or(model::UNKNOWN_DEVICE, |name| name)
    }

    fn kernel(&self, id: KernelId) -> &str {
        self.kernels.get(&id).map_or("unknown kernel", |name| name)
    }

    /// The path of a code object, or its id as text.
    fn object(&self, id: CodeObjectId) -> String {
        match (id, self.objects.get(&id).map_or("", |path| path)) {
            (CodeObjectId::NONE, _) => "no code object".to_owned(),
            (id, "") => format!("code object {id}"),
            (_, path) => path.to_owned(),
        }
    }

    fn building<'b>(
        &self,
        kernels: &'b mut HashMap<(String, String), Building>,
        agent: AgentId,
        kernel: KernelId,
    ) -> &'b mut Building {
        let key = (self.kernel(kernel).to_owned(), self.agent(agent).to_owned());
        kernels.entry(key.clone()).or_insert_with(|| Building {
            kernel: KernelHotspots {
                name: key.0,
                agent: key.1,
                tally: Tally::default(),
                dispatches: 0,
                dropped: 0,
                lines: Vec::new(),
                instructions: Vec::new(),
                missing: Vec::new(),
                source: BTreeMap::new(),
            },
            instructions: HashMap::new(),
            lines: HashMap::new(),
            missing: BTreeMap::new(),
        })
    }

    fn each(&self, samples: &[RawSample], each: &mut EachSample<'_>) {
        for sample in samples {
            let unknown = CodeAddress::default();
            let address = self.addresses.get(&sample.address).unwrap_or(&unknown);
            each(&Sample {
                process: self.pid,
                time: sample.time,
                exec_mask: sample.exec_mask,
                dispatch: sample.work.0,
                correlation: sample.correlation.0,
                instruction: self.text(address.instruction),
                code_object: self
                    .objects
                    .get(&address.code_object)
                    .map_or("", |path| path),
                offset: address.offset,
                line: self.line(address),
                kernel: self.kernel(sample.kernel),
                outcome: sample.outcome,
                wave_count: sample.wave_count,
            });
        }
    }

    /// The file and line of an address.
    fn line(&self, address: &CodeAddress) -> Option<(&str, u32)> {
        let frame = address.frames.first()?;
        let (file, line) = (self.text(frame.file?), frame.line?);
        (!file.is_empty() && line != 0).then_some((file, line))
    }
}

/// A kernel whose samples are being collected.
struct Building {
    kernel: KernelHotspots,
    instructions: HashMap<(String, u64), usize>,
    lines: HashMap<(String, u32), usize>,
    missing: BTreeMap<String, u64>,
}

impl Building {
    fn count(
        &mut self,
        source: &SamplerCounts,
        address: u32,
        outcome: &WaveOutcome,
        (samples, latency): (u64, u64),
    ) {
        self.kernel.tally.add(outcome, samples, latency);
        let Some((place, address)) = self.instruction(source, address) else {
            return;
        };
        let instruction = &mut self.kernel.instructions[place];
        instruction.tally.add(outcome, samples, latency);
        match instruction.line {
            Some(line) => self.kernel.lines[line].tally.add(outcome, samples, latency),
            None => {
                let why = source.text(address.missing.unwrap_or(0));
                let sum = self.missing.entry(why.to_owned()).or_default();
                *sum = sum.saturating_add(samples);
            }
        }
    }

    fn executed(&mut self, source: &SamplerCounts, address: u32, executions: &Executions) {
        self.kernel.tally.executions.add(executions);
        let Some((place, _)) = self.instruction(source, address) else {
            return;
        };
        let instruction = &mut self.kernel.instructions[place];
        instruction.tally.executions.add(executions);
        if let Some(line) = instruction.line {
            self.kernel.lines[line].tally.executions.add(executions);
        }
    }

    /// The place of the instruction at an address among those of the kernel.
    fn instruction<'s>(
        &mut self,
        source: &'s SamplerCounts,
        address: u32,
    ) -> Option<(usize, &'s CodeAddress)> {
        let address = source.addresses.get(&address)?;
        let key = (source.object(address.code_object), address.offset);
        if let Some(place) = self.instructions.get(&key) {
            return Some((*place, address));
        }
        let line = self.line(source, address);
        self.kernel.instructions.push(SampledInstruction {
            code_object: key.0.clone(),
            offset: key.1,
            symbol: source.text(address.symbol).to_owned(),
            text: source.text(address.instruction).to_owned(),
            line,
            frames: address
                .frames
                .iter()
                .map(|frame| {
                    let text = |id| source.text(id).to_owned();
                    let file = text(frame.file.unwrap_or(0));
                    (text(frame.function), file, frame.line.unwrap_or(0))
                })
                .collect(),
            tally: Tally::default(),
        });
        let place = self.kernel.instructions.len() - 1;
        self.instructions.insert(key, place);
        Some((place, address))
    }

    fn line(&mut self, source: &SamplerCounts, address: &CodeAddress) -> Option<usize> {
        let (file, line) = source.line(address)?;
        let id = address.frames.first()?.file?;
        let near = line.saturating_sub(2)..=line.saturating_add(2);
        for number in near {
            if let Some(text) = source.lines.get(&(id, number)) {
                let key = (file.to_owned(), number);
                self.kernel.source.insert(key, text.to_string());
            }
        }
        let key = (file.to_owned(), line);
        if let Some(place) = self.lines.get(&key) {
            return Some(*place);
        }
        self.kernel.lines.push(SampledLine {
            file: key.0.clone(),
            line,
            text: self.kernel.source.get(&key).cloned(),
            tally: Tally::default(),
        });
        let place = self.kernel.lines.len() - 1;
        self.lines.insert(key, place);
        Some(place)
    }

    fn finish(self) -> KernelHotspots {
        let mut kernel = self.kernel;
        // The line indices of instructions follow the new order of the lines.
        let mut order: Vec<usize> = (0..kernel.lines.len()).collect();
        order.sort_by(|a, b| {
            let (a, b) = (&kernel.lines[*a], &kernel.lines[*b]);
            let most = b.tally.order().cmp(&a.tally.order());
            most.then_with(|| (&a.file, a.line).cmp(&(&b.file, b.line)))
        });
        let mut places = vec![0; order.len()];
        for (new, old) in order.iter().enumerate() {
            places[*old] = new;
        }
        let lines = order.iter().map(|old| kernel.lines[*old].clone());
        kernel.lines = lines.collect();
        for instruction in &mut kernel.instructions {
            instruction.line = instruction.line.map(|old| places[old]);
        }
        kernel.instructions.sort_by(|a, b| {
            let most = b.tally.order().cmp(&a.tally.order());
            most.then_with(|| (&a.code_object, a.offset).cmp(&(&b.code_object, b.offset)))
        });
        kernel.missing = self.missing.into_iter().collect();
        kernel
            .missing
            .sort_by_key(|(why, samples)| (std::cmp::Reverse(*samples), why.clone()));
        kernel
    }
}

#[cfg(test)]
mod tests;
