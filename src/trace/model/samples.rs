//! Samples of the program counter: exact counts by kernel and address, and single samples.
//!
//! Counts come in parts ([`Samples`]), each with the counts since the part before. Ids of texts, agents, kernels, code
//! objects and addresses are declared once for each [sampler](Samples::sampler), in the part that uses them first or in
//! an earlier one.

use super::{ProcessIndex, SamplerIndex, StackIndex, TrackIndex};
use gputrail_code::aggregate::WaveOutcome;
use gputrail_record::{
    Absent, AgentId, CodeObjectId, CorrelationId, ExternalId, HardwareId, KernelId, Nanos,
    SamplingMethod, SamplingUnit, WorkId,
};

/// A part of the counts of a process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// The scope of all ids below.
    pub sampler: SamplerIndex,
    /// The process, if it is known.
    pub process: Option<ProcessIndex>,
    /// Texts that addresses and lines refer to. Id 0 is the empty text.
    pub texts: Vec<(u32, String)>,
    /// Names of agents.
    pub agents: Vec<(AgentId, String)>,
    /// Names of kernels.
    pub kernels: Vec<(KernelId, String)>,
    /// Paths of code objects.
    pub code_objects: Vec<(CodeObjectId, String)>,
    /// Addresses. Id 0 stands for addresses that are not distinguished.
    pub addresses: Vec<CodeAddress>,
    /// Lines of source code that were sampled, and those around them.
    pub lines: Vec<SourceText>,
    /// Counts of samples.
    pub counts: Vec<SampleCount>,
    /// Exact counts of executions, where instructions are counted.
    pub executions: Vec<ExecutionCount>,
    /// Sums over dispatches that have ended.
    pub totals: Vec<SampleTotals>,
    /// How agents were sampled.
    pub configurations: Vec<AgentConfiguration>,
    /// Number of samples that their agent could not complete.
    pub invalid: u64,
    /// How many samples one shown stack ([`StackSamples`]) stands for, if not all are shown.
    pub shown_one_of: Option<u64>,
    /// Single samples, if they were requested.
    pub raw: Vec<RawSample>,
}

/// An address of code, with its symbol, its instruction and its source lines. Texts are given by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeAddress {
    /// Its id.
    pub id: u32,
    /// The code object, or none.
    pub code_object: CodeObjectId,
    /// Offset in bytes from the load base of the code object; the address itself if there is no code object.
    pub offset: u64,
    /// The function of the symbol table.
    pub symbol: u32,
    /// The instruction.
    pub instruction: u32,
    /// Functions and lines, innermost first; an inlined function has a frame of its own.
    pub frames: Vec<CodeFrame>,
    /// The reason for which there is no line.
    pub missing: Option<u32>,
}

/// A function and a line.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeFrame {
    /// The function, a text.
    pub function: u32,
    /// The file, a text.
    pub file: Option<u32>,
    /// The line, from 1.
    pub line: Option<u32>,
}

/// A line of source code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText {
    /// The file, a text.
    pub file: u32,
    /// The line, from 1.
    pub line: u32,
    /// Its content.
    pub text: String,
}

/// Counts of samples of one kernel at one address.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleCount {
    /// The agent.
    pub agent: AgentId,
    /// The kernel.
    pub kernel: KernelId,
    /// The address.
    pub address: u32,
    /// The number of samples of each outcome.
    pub outcomes: Vec<OutcomeCount>,
}

/// The number of samples with one outcome.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct OutcomeCount {
    /// The outcome: the state of the sampled wave.
    pub outcome: WaveOutcome,
    /// The number of samples.
    pub samples: u64,
    /// The number of these samples at which the arbiter issued no instruction at all.
    pub latency: u64,
}

/// Executions of an instruction, over all dispatches that were counted.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Executions {
    /// Times that a wave executed it.
    pub executed: u64,
    /// The sum of the active lanes over these times.
    pub threads: u64,
    /// Times after which lanes of one wave went different ways.
    pub diverged: u64,
    /// Requests to global memory, or cycles of local memory.
    pub transactions: u64,
    /// The fewest transactions in which these bytes can be had.
    pub ideal_transactions: u64,
}

impl Executions {
    /// Adds further ones.
    pub fn add(&mut self, more: &Executions) {
        let plus = |sum: &mut u64, count: u64| *sum = sum.saturating_add(count);
        plus(&mut self.executed, more.executed);
        plus(&mut self.threads, more.threads);
        plus(&mut self.diverged, more.diverged);
        plus(&mut self.transactions, more.transactions);
        plus(&mut self.ideal_transactions, more.ideal_transactions);
    }
}

/// Executions of one kernel at one address.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ExecutionCount {
    /// The agent.
    pub agent: AgentId,
    /// The kernel.
    pub kernel: KernelId,
    /// The address.
    pub address: u32,
    /// The executions.
    pub executions: Executions,
}

/// Sums over dispatches of a kernel.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct SampleTotals {
    /// The agent.
    pub agent: AgentId,
    /// The kernel.
    pub kernel: KernelId,
    /// The sampling method.
    pub method: SamplingMethod,
    /// The number of dispatches.
    pub dispatches: u64,
    /// The number of all samples, including invalid and dropped ones.
    pub samples: u64,
    /// The number of dropped samples.
    pub dropped: u64,
}

/// The sampling configuration of an agent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct AgentConfiguration {
    /// The agent.
    pub agent: AgentId,
    /// The sampling method.
    pub method: SamplingMethod,
    /// The unit of the interval.
    pub unit: SamplingUnit,
    /// The interval.
    pub interval: u64,
}

/// One sample.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct RawSample {
    /// When it was taken.
    pub time: Nanos,
    /// The address.
    pub address: u32,
    /// The state of the sampled wave.
    pub outcome: WaveOutcome,
    /// The agent.
    pub agent: AgentId,
    /// The kernel.
    pub kernel: KernelId,
    /// The dispatch.
    pub work: WorkId,
    /// The call that enqueued the dispatch.
    pub correlation: CorrelationId,
    /// The id that the program had pushed at that call.
    pub external: ExternalId,
    /// Active lanes.
    pub exec_mask: u64,
    /// The position on the agent.
    pub hardware: HardwareId,
    /// The workgroup, in x, y, z.
    pub workgroup: [u32; 3],
    /// Index of the wave in its workgroup.
    pub wave_in_group: u8,
    /// The number of active waves on the compute unit; 0 if unknown.
    pub wave_count: u32,
    /// The fields that could not be determined.
    pub absent: Absent,
}

/// A frame of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StackFrame {
    /// Its name: a queue, a kernel, a function, a line or an instruction.
    pub name: String,
    /// The module of its code.
    pub mapping: String,
}

/// Samples of one track, each with its time and its stack, in the order of their times.
#[derive(Copy, Clone, Debug)]
pub struct StackSamples<'a> {
    /// The track.
    pub track: TrackIndex,
    /// The samples.
    pub samples: &'a [(Nanos, StackIndex)],
}

/// Leading reasons that are shown beside a kernel.
const LEADING: usize = 3;

impl super::WorkSamples {
    /// The samples of a dispatch, by what they say of their waves. `dropped` further ones are missing.
    pub fn of(dropped: u64, outcomes: &[(WaveOutcome, u64)]) -> Self {
        let samples: u64 = outcomes.iter().map(|(_, count)| count).sum();
        Self {
            samples: samples.saturating_add(dropped),
            dropped,
            leading: leading(outcomes),
        }
    }
}

/// The most frequent states of the waves, as text; empty if unknown.
fn leading(outcomes: &[(WaveOutcome, u64)]) -> String {
    let mut ways: Vec<(&'static str, u64)> = Vec::new();
    for (outcome, count) in outcomes {
        let name = match outcome {
            outcome if outcome.method != SamplingMethod::STOCHASTIC => continue,
            outcome if outcome.issued() => "issued",
            outcome => outcome.why(),
        };
        match ways.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += count,
            None => ways.push((name, *count)),
        }
    }
    let all: u64 = ways.iter().map(|(_, count)| count).sum();
    ways.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    let share = |count: u64| (100 * count + all / 2) / all.max(1);
    let words = ways.iter().take(LEADING);
    let words = words.map(|(name, count)| format!("{name} {} %", share(*count)));
    words.collect::<Vec<_>>().join(", ")
}
