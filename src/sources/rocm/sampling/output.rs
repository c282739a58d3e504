//! The records that samples become: one for each, or counts for each dispatch, and the totals of dispatches.

use super::records::{SampleOrigin, SampleWords, SdkSample, host_trap, invalid, stochastic};
use super::refusals::SampleLosses;
use crate::rocm::code::{self, LoadedObject};
use crate::rocm::dispatches::{self, DispatchedKernel};
use crate::rocm::objects::OBJECTS;
use gputrail_code::aggregate::{Aggregates, DispatchSamples};
use gputrail_collect::correlation::HostThread;
use gputrail_collect::process;
use gputrail_collect::sampling::SampleDelivery;
use gputrail_collect::sampling::lines::WrittenLines;
use gputrail_collect::switchboard::Buffers;
use gputrail_interface::sampling::{Deliver, Request};
use gputrail_record::{AgentId, CodeObjectId, CorrelationId, KernelId, SamplingTotals, WorkId};
use gputrail_rocprofiler::{DispatchId, Pc};
use std::collections::{BTreeMap, HashMap};

/// The most dispatches that are counted at a time. The totals of the oldest are written then.
const MOST_DISPATCHES: usize = 1 << 16;

/// The way of samples into records.
#[derive(Default)]
pub(super) struct SampleOutput {
    words: Option<SampleWords>,
    /// Code objects that samples have named, by the SDK's number.
    code: HashMap<u64, LoadedObject>,
    /// Dispatches that have samples and no totals.
    dispatches: BTreeMap<DispatchId, CountedDispatch>,
    /// Samples that are delivered as counts.
    aggregates: Aggregates,
    lines: WrittenLines,
    pub losses: SampleLosses,
}

/// The samples of a dispatch.
#[derive(Copy, Clone, Debug, Default)]
struct CountedDispatch {
    agent: AgentId,
    work: WorkId,
    correlation: CorrelationId,
    total: u64,
    dropped: u64,
}

/// The totals of a dispatch on an agent that is sampled so.
fn totals(of: &CountedDispatch, request: Request) -> SamplingTotals {
    let mut totals = SamplingTotals::blank();
    (totals.correlation, totals.work) = (of.correlation, of.work);
    (totals.total, totals.dropped) = (of.total, of.dropped);
    (totals.interval, totals.unit) = (request.interval, request.unit);
    (totals.agent, totals.method) = (of.agent, request.method);
    totals
}

impl SampleOutput {
    /// The library's numbers of instruction types and reasons.
    pub fn learn_words(&mut self, words: SampleWords) {
        self.words = Some(words);
    }

    /// Sampling of an agent begins: says so to those who read the records.
    pub fn begin(&mut self, agent: AgentId, request: Request, delivery: SampleDelivery) {
        let none = CountedDispatch {
            agent,
            ..CountedDispatch::default()
        };
        with_host(|host| {
            host.write_to(delivery.buffers, totals(&none, request));
        });
    }

    /// Writes samples of an agent, or counts them.
    pub fn take(
        &mut self,
        agent: AgentId,
        request: Request,
        delivery: SampleDelivery,
        samples: &[SdkSample],
    ) {
        let mut seen: Option<(DispatchId, SampleOrigin)> = None;
        with_host(|host| {
            for sample in samples {
                if let SdkSample::Invalid = sample {
                    let invalid = invalid(agent, request.method);
                    if !host.write_to(delivery.buffers, invalid) {
                        self.losses.unwritten += 1;
                    }
                    continue;
                }
                let dispatch = sample.dispatch();
                let mut origin = match seen {
                    Some((latest, origin)) if latest == dispatch => origin,
                    _ => origin_of(agent, dispatch, sample.answer()),
                };
                seen = Some((dispatch, origin));
                origin.code = self.place(sample.pc());
                if !origin.kernel.is_some() {
                    self.losses.without_kernel += 1;
                }
                let written = self.write(host, delivery, sample, &origin);
                self.losses.unwritten += u64::from(!written);
                if origin.work.is_some() {
                    let counted = self.dispatches.entry(dispatch).or_default();
                    (counted.agent, counted.work) = (agent, origin.work);
                    counted.correlation = origin.correlation;
                    counted.total += 1;
                    counted.dropped += u64::from(!written);
                }
            }
        });
        while self.dispatches.len() > MOST_DISPATCHES
            && let Some((dispatch, _)) = self.dispatches.first_key_value()
        {
            let dispatch = *dispatch;
            self.end(dispatch, agent, request, delivery);
        }
    }

    /// Writes a sample, or counts it. `false`: there was no room for it.
    fn write(
        &mut self,
        host: &mut HostThread,
        delivery: SampleDelivery,
        sample: &SdkSample,
        origin: &SampleOrigin,
    ) -> bool {
        match sample {
            SdkSample::HostTrap(sample) => {
                let record = host_trap(sample, origin);
                match delivery.deliver {
                    Deliver::Samples => host.write_to(delivery.buffers, record),
                    Deliver::Aggregates => {
                        self.aggregates.host_trap(&record);
                        true
                    }
                }
            }
            SdkSample::Stochastic(sample) => {
                let Some(words) = &self.words else {
                    return false;
                };
                let record = stochastic(sample, origin, words);
                match delivery.deliver {
                    Deliver::Samples => host.write_to(delivery.buffers, record),
                    Deliver::Aggregates => {
                        self.aggregates.stochastic(&record);
                        true
                    }
                }
            }
            SdkSample::Invalid => true,
        }
    }

    /// The code object of an address, and the address in its file; none and the address itself if it is unknown.
    fn place(&mut self, pc: Pc) -> (CodeObjectId, u64) {
        let number = pc.code_object_id;
        if number == 0 {
            return (CodeObjectId::NONE, pc.code_object_offset);
        }
        let known = self.code.get(&number).copied().or_else(|| {
            let found = code::object(number)?;
            self.code.insert(number, found);
            Some(found)
        });
        match known {
            Some(object) => object.place(pc),
            None => (CodeObjectId::NONE, pc.code_object_offset),
        }
    }

    /// All samples of a dispatch have come: writes its totals, and its samples if they were counted.
    pub fn end(
        &mut self,
        dispatch: DispatchId,
        agent: AgentId,
        request: Request,
        delivery: SampleDelivery,
    ) {
        let mut counted = self.dispatches.remove(&dispatch).unwrap_or_else(|| {
            let noted = dispatches::noted(dispatch).unwrap_or_default();
            CountedDispatch {
                agent,
                work: noted.work,
                correlation: noted.correlation,
                ..CountedDispatch::default()
            }
        });
        if !counted.work.is_some() {
            return;
        }
        let aggregated = self.aggregates.take(counted.work);
        with_host(|host| {
            if let Some(samples) = &aggregated {
                let unwritten = self.write_counts(host, delivery.buffers, samples);
                counted.dropped += unwritten;
                self.losses.unwritten += unwritten;
            }
            host.write_to(delivery.buffers, totals(&counted, request));
        });
        if let Some(samples) = aggregated {
            self.aggregates.give_back(samples);
        }
    }

    /// No more samples of an agent come: writes the totals of all its dispatches, and what was counted without one.
    pub fn end_all(&mut self, agent: AgentId, request: Request, delivery: SampleDelivery) {
        let of_agent = self.dispatches.iter().filter(|(_, of)| of.agent == agent);
        let all: Vec<DispatchId> = of_agent.map(|(dispatch, _)| *dispatch).collect();
        for dispatch in all {
            self.end(dispatch, agent, request, delivery);
        }
        let mut others = Vec::new();
        while let Some(samples) = self.aggregates.oldest() {
            others.push(samples);
        }
        with_host(|host| {
            for samples in others.iter().filter(|samples| samples.agent == agent) {
                self.losses.unwritten += self.write_counts(host, delivery.buffers, samples);
            }
        });
        // Samples of other agents are counted again.
        let rest = others.iter().filter(|samples| samples.agent != agent);
        for record in rest.flat_map(DispatchSamples::records) {
            self.aggregates.aggregate(&record);
        }
    }

    /// Writes the counts of a dispatch, with their lines. Returns the number of samples for which there was no room.
    fn write_counts(
        &mut self,
        host: &mut HostThread,
        buffers: Buffers,
        samples: &DispatchSamples,
    ) -> u64 {
        let names = host.board().names().clone();
        let mut unwritten = 0;
        for mut record in samples.records() {
            self.lines.of(&names, host, &mut record);
            if !host.write_to(buffers, record) {
                unwritten += record.samples;
            }
        }
        unwritten
    }
}

/// The dispatch of samples, as far as it is known, whose call the SDK has this answer of ours for. Their code is not yet.
fn origin_of(agent: AgentId, dispatch: DispatchId, answer: u64) -> SampleOrigin {
    let noted = dispatches::noted(dispatch);
    let DispatchedKernel {
        kernel,
        correlation,
        external,
        work,
    } = noted.unwrap_or(DispatchedKernel {
        correlation: CorrelationId(answer),
        ..DispatchedKernel::default()
    });
    let loaded = OBJECTS.lock().kernel(kernel);
    SampleOrigin {
        agent,
        kernel: loaded.map_or(KernelId::NONE, |loaded| loaded.id),
        correlation,
        external,
        work,
        ..SampleOrigin::default()
    }
}

/// Works with the calling thread's lanes, unless it is ending or in the middle of a record.
fn with_host(work: impl FnOnce(&mut HostThread)) {
    if let Some(thread) = process::current() {
        thread.with(work);
    }
}
