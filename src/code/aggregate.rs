//! Samples counted by address.
//!
//! [`Aggregates`] reads samples in place, as they are streamed, and counts for each dispatch the samples at each
//! address with each [`WaveOutcome`]. A complete dispatch is removed, and added to its kernel ([`SampledKernels`]) or
//! written as records ([`DispatchSamples::records`]). Memory is bounded: the owner removes the oldest dispatches
//! ([`Aggregates::excess`]) if there are more entries than a maximum. Nothing is lost by that: later samples of such a
//! dispatch are counted separately, and the sums are the same.

use std::collections::VecDeque;

use gputrail_record::number_map::NumberMap;
use gputrail_record::{
    AgentId, CodeObjectId, CorrelationId, HostTrapSample, InstructionType, KernelId, NotIssued,
    SampleAggregate, SamplingMethod, SamplingTotals, StallReason, StochasticSample, WorkId,
};

/// Maximum number of entries (an address and an outcome of a dispatch) that [`Aggregates`] holds before it has excess:
/// about 20 MB.
pub const MAX_ENTRIES: usize = 1 << 18;
/// Maximum number of dispatches that it holds before it has excess.
pub const MAX_DISPATCHES: usize = 1 << 14;

/// The state of the sampled wave.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WaveOutcome {
    /// The sampling method. Host-trap samples contain nothing else.
    pub method: SamplingMethod,
    /// The type of the instruction that the wave issued; [`InstructionType::NONE`] if it did not issue.
    pub instruction: InstructionType,
    /// The reason why it did not issue, as rocprofiler-sdk names it; [`NotIssued::NONE`] if it did.
    pub reason: NotIssued,
    /// The corresponding stall reason of CUPTI, which depends on all fields of the sample.
    pub stall: StallReason,
}

impl WaveOutcome {
    /// The outcome of host-trap samples.
    pub const HOST_TRAP: WaveOutcome = WaveOutcome {
        method: SamplingMethod::HOST_TRAP,
        instruction: InstructionType::NONE,
        reason: NotIssued::NONE,
        stall: StallReason::INVALID,
    };

    /// The outcome of a stochastic sample.
    #[inline]
    pub fn of(sample: &StochasticSample) -> WaveOutcome {
        WaveOutcome {
            method: SamplingMethod::STOCHASTIC,
            instruction: sample.issued().unwrap_or(InstructionType::NONE),
            reason: sample.not_issued().unwrap_or(NotIssued::NONE),
            stall: StallReason::of(sample),
        }
    }

    /// Whether the wave issued an instruction.
    pub fn issued(&self) -> bool {
        self.method == SamplingMethod::STOCHASTIC && self.stall == StallReason::NONE
    }

    /// The reason why the wave waited, in the words that its agent uses: rocprofiler-sdk's or CUPTI's.
    pub fn why(&self) -> &'static str {
        match (self.reason, self.stall) {
            (NotIssued::NONE, stall) if stall != StallReason::INVALID => stall.name(),
            (reason, _) => reason.name(),
        }
        .unwrap_or("other")
    }

    /// The outcome as one number.
    #[inline]
    pub fn code(&self) -> u32 {
        u32::from_le_bytes([
            self.stall.0,
            self.reason.0,
            self.instruction.0,
            self.method.0,
        ])
    }

    /// The outcome whose [`WaveOutcome::code`] is `code`.
    pub fn from_code(code: u32) -> WaveOutcome {
        let [stall, reason, instruction, method] = code.to_le_bytes();
        WaveOutcome {
            method: SamplingMethod(method),
            instruction: InstructionType(instruction),
            reason: NotIssued(reason),
            stall: StallReason(stall),
        }
    }
}

/// A sampled address.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// The code object, or none.
    pub code_object: CodeObjectId,
    /// Offset in bytes from the load base of the code object; the address itself if there is no code object.
    pub offset: u64,
}

/// A number of samples.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// All samples.
    pub samples: u64,
    /// Samples at which the arbiter issued no instruction at all.
    pub latency: u64,
}

impl Count {
    fn add(&mut self, other: Count) {
        self.samples = self.samples.saturating_add(other.samples);
        self.latency = self.latency.saturating_add(other.latency);
    }
}

/// An address and an outcome, as three numbers.
type OutcomeKey = (CodeObjectId, u64, u32);

/// The samples of one dispatch; or of a kernel, if the agent cannot identify dispatches.
#[derive(Clone, Debug)]
pub struct DispatchSamples {
    /// The dispatch, or none.
    pub work: WorkId,
    /// The call that enqueued it.
    pub correlation: CorrelationId,
    /// The agent.
    pub agent: AgentId,
    /// The kernel.
    pub kernel: KernelId,
    table: NumberMap<OutcomeKey, Count>,
    all: u64,
}

impl DispatchSamples {
    /// The number of samples.
    pub fn samples(&self) -> u64 {
        self.all
    }

    /// The counts, in no order.
    pub fn entries(&self) -> impl Iterator<Item = (Address, WaveOutcome, Count)> {
        entries(&self.table)
    }

    /// The number of samples with each outcome, in descending order.
    pub fn outcomes(&self) -> Vec<(WaveOutcome, u64)> {
        let mut list: Vec<(WaveOutcome, u64)> = Vec::new();
        for (_, outcome, count) in self.entries() {
            match list.iter_mut().find(|(known, _)| *known == outcome) {
                Some((_, sum)) => *sum += count.samples,
                None => list.push((outcome, count.samples)),
            }
        }
        list.sort_by_key(|(outcome, count)| (std::cmp::Reverse(*count), *outcome));
        list
    }

    /// The counts as records, ordered by address. Source locators are left to callers that know lines.
    pub fn records(&self) -> impl Iterator<Item = SampleAggregate> {
        let mut all: Vec<_> = self.entries().collect();
        all.sort_by_key(|(address, outcome, _)| (*address, *outcome));
        all.into_iter()
            .map(|(address, outcome, count)| SampleAggregate {
                correlation: self.correlation,
                work: self.work,
                offset: address.offset,
                samples: count.samples,
                latency_samples: count.latency,
                code_object: address.code_object,
                kernel: self.kernel,
                agent: self.agent,
                stall: outcome.stall,
                reason: outcome.reason,
                instruction: outcome.instruction,
                method: outcome.method,
                ..SampleAggregate::blank()
            })
    }
}

fn entries(
    table: &NumberMap<OutcomeKey, Count>,
) -> impl Iterator<Item = (Address, WaveOutcome, Count)> {
    table.iter().map(|((code_object, offset, outcome), count)| {
        let address = Address {
            code_object: *code_object,
            offset: *offset,
        };
        (address, WaveOutcome::from_code(*outcome), *count)
    })
}

/// The key of a dispatch; without a dispatch id, agent and kernel are the key.
type DispatchKey = (WorkId, AgentId, KernelId);

fn group(work: WorkId, agent: AgentId, kernel: KernelId) -> DispatchKey {
    if work.is_some() {
        (work, AgentId::NONE, KernelId::NONE)
    } else {
        (work, agent, kernel)
    }
}

/// The samples of incomplete dispatches.
#[derive(Debug, Default)]
pub struct Aggregates {
    /// Freed slots are reused.
    dispatches: Vec<Option<DispatchSamples>>,
    free: Vec<u32>,
    places: NumberMap<DispatchKey, u32>,
    /// In the order of their arrival; includes dispatches that have been removed since.
    order: VecDeque<DispatchKey>,
    latest: Option<(DispatchKey, u32)>,
    entries: usize,
    /// Empty tables for reuse by new dispatches.
    spare: Vec<NumberMap<OutcomeKey, Count>>,
}

/// Maximum number of tables that are kept for reuse, and maximum capacity of each.
const MAX_SPARE_TABLES: usize = 64;
const MAX_SPARE_CAPACITY: usize = 1 << 12;

impl Aggregates {
    /// Counts a host-trap sample.
    #[inline]
    pub fn host_trap(&mut self, sample: &HostTrapSample) {
        self.sample(sample, WaveOutcome::HOST_TRAP, false);
    }

    /// Counts a stochastic sample.
    #[inline]
    pub fn stochastic(&mut self, sample: &StochasticSample) {
        self.sample(sample.place(), WaveOutcome::of(sample), sample.is_latency());
    }

    #[inline]
    fn sample(&mut self, sample: &HostTrapSample, outcome: WaveOutcome, is_latency: bool) {
        let key = (sample.code_object, sample.offset, outcome.code());
        let count = Count {
            samples: 1,
            latency: is_latency.into(),
        };
        let group = group(sample.work, sample.agent, sample.kernel);
        self.count(group, key, count, || {
            (sample.correlation, sample.agent, sample.kernel)
        });
    }

    /// Adds counts from a record.
    pub fn aggregate(&mut self, record: &SampleAggregate) {
        let outcome = WaveOutcome {
            method: record.method,
            instruction: record.instruction,
            reason: record.reason,
            stall: record.stall,
        };
        let count = Count {
            samples: record.samples,
            latency: record.latency_samples,
        };
        let key = (record.code_object, record.offset, outcome.code());
        let group = group(record.work, record.agent, record.kernel);
        self.count(group, key, count, || {
            (record.correlation, record.agent, record.kernel)
        });
    }

    #[inline]
    fn count(
        &mut self,
        group: DispatchKey,
        key: OutcomeKey,
        count: Count,
        whose: impl FnOnce() -> (CorrelationId, AgentId, KernelId),
    ) {
        let place = match self.latest {
            Some((latest, place)) if latest == group => place,
            _ => self.place(group, whose),
        };
        let Some(dispatch) = self.dispatches[place as usize].as_mut() else {
            return;
        };
        dispatch.all = dispatch.all.saturating_add(count.samples);
        match dispatch.table.get_mut(&key) {
            Some(sum) => sum.add(count),
            None => {
                dispatch.table.insert(key, count);
                self.entries += 1;
            }
        }
    }

    fn place(
        &mut self,
        group: DispatchKey,
        whose: impl FnOnce() -> (CorrelationId, AgentId, KernelId),
    ) -> u32 {
        let place = match self.places.get(&group) {
            Some(place) => *place,
            None => {
                let (correlation, agent, kernel) = whose();
                let dispatch = DispatchSamples {
                    work: group.0,
                    correlation,
                    agent,
                    kernel,
                    table: self.spare.pop().unwrap_or_default(),
                    all: 0,
                };
                let place = match self.free.pop() {
                    Some(place) => place,
                    None => {
                        self.dispatches.push(None);
                        self.dispatches.len() as u32 - 1
                    }
                };
                self.dispatches[place as usize] = Some(dispatch);
                self.places.insert(group, place);
                self.forget_taken();
                self.order.push_back(group);
                place
            }
        };
        self.latest = Some((group, place));
        place
    }

    /// Removes dispatches that are gone from `order`, so that it does not grow.
    fn forget_taken(&mut self) {
        if self.order.len() > 2 * self.places.len() + 64 {
            let places = &self.places;
            self.order.retain(|group| places.contains_key(group));
        }
    }

    /// Removes a complete dispatch; `None` if it had no samples.
    pub fn take(&mut self, work: WorkId) -> Option<DispatchSamples> {
        if work.is_some() {
            self.take_group(group(work, AgentId::NONE, KernelId::NONE))
        } else {
            None
        }
    }

    /// Removes the oldest dispatch if the maximum is exceeded; to be called until it returns `None`.
    #[inline]
    pub fn excess(&mut self) -> Option<DispatchSamples> {
        if self.entries <= MAX_ENTRIES && self.places.len() <= MAX_DISPATCHES {
            return None;
        }
        self.oldest()
    }

    /// Removes the oldest dispatch; `None` if there is none left.
    pub fn oldest(&mut self) -> Option<DispatchSamples> {
        loop {
            let group = self.order.pop_front()?;
            if let Some(dispatch) = self.take_group(group) {
                return Some(dispatch);
            }
        }
    }

    fn take_group(&mut self, group: DispatchKey) -> Option<DispatchSamples> {
        let place = self.places.remove(&group)?;
        self.latest = None;
        self.free.push(place);
        let dispatch = self.dispatches[place as usize].take()?;
        self.entries -= dispatch.table.len();
        Some(dispatch)
    }

    /// Returns a dispatch that is no longer needed, so that its memory is reused.
    pub fn give_back(&mut self, mut dispatch: DispatchSamples) {
        if self.spare.len() < MAX_SPARE_TABLES && dispatch.table.capacity() <= MAX_SPARE_CAPACITY {
            dispatch.table.clear();
            self.spare.push(dispatch.table);
        }
    }
}

/// The samples of one kernel on one agent.
#[derive(Clone, Debug, Default)]
pub struct KernelSamples {
    table: NumberMap<OutcomeKey, Count>,
    totals: Vec<(SamplingMethod, Totals)>,
}

/// Sums over the totals of dispatches.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The number of dispatches.
    pub dispatches: u64,
    /// The number of their samples, including invalid and dropped ones.
    pub samples: u64,
    /// The number of dropped samples.
    pub dropped: u64,
}

impl KernelSamples {
    /// The counts, in no order.
    pub fn entries(&self) -> impl Iterator<Item = (Address, WaveOutcome, Count)> {
        entries(&self.table)
    }

    /// The totals of dispatches, by sampling method.
    pub fn totals(&self) -> &[(SamplingMethod, Totals)] {
        &self.totals
    }

    fn totals_of(&mut self, method: SamplingMethod) -> &mut Totals {
        let known = self.totals.iter().position(|(known, _)| *known == method);
        let place = known.unwrap_or_else(|| {
            self.totals.push((method, Totals::default()));
            self.totals.len() - 1
        });
        &mut self.totals[place].1
    }
}

/// The samples of kernels, from complete dispatches.
#[derive(Debug, Default)]
pub struct SampledKernels {
    kernels: NumberMap<(AgentId, KernelId), KernelSamples>,
    entries: usize,
}

impl SampledKernels {
    /// Adds the samples of a dispatch.
    pub fn fold(&mut self, dispatch: &DispatchSamples) {
        let kernel = self.kernel(dispatch.agent, dispatch.kernel);
        let before = kernel.table.len();
        for (key, count) in &dispatch.table {
            kernel.table.entry(*key).or_default().add(*count);
        }
        let added = kernel.table.len() - before;
        self.entries += added;
    }

    /// Adds the totals of a dispatch of `kernel`, or of samples whose dispatch the agent cannot identify.
    pub fn totals(&mut self, kernel: KernelId, totals: &SamplingTotals) {
        let sum = self.kernel(totals.agent, kernel).totals_of(totals.method);
        sum.dispatches += u64::from(totals.work.is_some());
        sum.samples = sum.samples.saturating_add(totals.total);
        sum.dropped = sum.dropped.saturating_add(totals.dropped);
    }

    fn kernel(&mut self, agent: AgentId, kernel: KernelId) -> &mut KernelSamples {
        self.kernels.entry((agent, kernel)).or_default()
    }

    /// The number of entries of all kernels. The caller of `fold` bounds it by `take`.
    pub fn entries(&self) -> usize {
        self.entries + self.kernels.len()
    }

    /// Removes everything, by agent and kernel.
    pub fn take(&mut self) -> Vec<(AgentId, KernelId, KernelSamples)> {
        self.entries = 0;
        let all = std::mem::take(&mut self.kernels).into_iter();
        let mut all: Vec<_> = all
            .map(|((agent, kernel), samples)| (agent, kernel, samples))
            .collect();
        all.sort_by_key(|(agent, kernel, _)| (*agent, *kernel));
        all
    }
}

#[cfg(test)]
mod tests;
